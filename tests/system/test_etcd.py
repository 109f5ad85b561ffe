#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd with its configuration in etcd: a real one, and servers that only say they are one.

Ports are DPDK's null devices. What shows a full disk takes root, for a mount in a namespace of its
own. SHUNTD and SHUNTCTL name the programs.
"""

import base64
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
# Of one command, start or change to be seen, also under sanitizers on a busy machine.
TIMEOUT_S = 60
DONE, FAILED, BAD_USAGE = 0, 1, 2
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
KEY = "shunt/site-1"


def encode(text):
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def free_ports(n):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def wait_until(is_true, what, timeout_s=TIMEOUT_S, pause_s=0.02):
    """Until is_true() is; what it gave. what: in words, or a function that finds them."""
    end = time.monotonic() + timeout_s
    while True:
        found = is_true()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not in {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(pause_s)


def document(socket_path, n=1, services=1):
    """A configuration whose backend's address tells n."""
    return json.dumps({
        "dataplane": {
            "workers": 1, "kernel": "none", "idle": "adaptive", "flow_entries": 1024,
            "ports": [{"name": "wan", "device": "net_null0,no-rx=1",
                       "addresses": ["192.0.2.1/24"], "next_hop": "02:00:00:00:00:fe"}]},
        "control": {"socket": str(socket_path), "metrics": "off"},
        "services": [{
            "name": f"web-{k}", "address": "198.51.100.10", "protocol": "tcp", "port": 80 + k,
            "table": {"algorithm": "maglev", "size": 1009},
            "backends": [{"name": "a", "address": f"10.0.{n // 250}.{1 + n % 250}"}]}
            for k in range(services)]}, indent=1)


class Etcd:
    """A real one, in clear and by TLS, of which a test may take what is to be listened at."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-etcd-"))
        self.port, self.tls_port, self.peer_port = free_ports(3)
        self.process = None
        self.make_certificates()

    def make_certificates(self):
        """A server's and a client's, by one authority; and another authority."""
        for name in ("ca", "other"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                         f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
        (self.folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n",
                                                encoding="ascii")
        for name in ("server", "client"):
            self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
                         f"{name}.csr")
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
                         "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions",
                         "-out", f"{name}.pem")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        peer = f"http://127.0.0.1:{self.peer_port}"
        clients = f"http://127.0.0.1:{self.port},https://127.0.0.1:{self.tls_port}"
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [shutil.which("etcd", path=PATH), "--data-dir", self.folder / "data",
                 "--listen-client-urls", clients, "--advertise-client-urls", clients,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}",
                 "--cert-file", self.folder / "server.pem",
                 "--key-file", self.folder / "server.key",
                 "--trusted-ca-file", self.folder / "ca.pem", "--client-cert-auth"],
                stdout=log, stderr=log)
        wait_until(self.is_healthy, "etcd does not start")

    def is_healthy(self):
        try:
            return self.call("kv/range", key=encode("x"))
        except (OSError, http.client.HTTPException, AssertionError):
            return None

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder)

    def call(self, method, token=None, **keys):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", f"/v3/{method}", json.dumps(keys),
                               {"Authorization": token} if token else {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"{method}: {answer.status} {text}")
        return json.loads(text)

    def put(self, text, key=KEY):
        return int(self.call("kv/put", key=encode(key), value=encode(text))["header"]["revision"])

    def url(self, key=KEY):
        return f"etcd://127.0.0.1:{self.port}/{key}"


ETCD = None


class Daemon:
    def __init__(self, url, **environment):
        self.url = url
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-etcd-"))
        self.socket = self.folder / "shunt.sock"
        self.state = self.folder / "state"
        self.log = self.folder / "log"
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": str(self.folder),
                            "STATE_DIRECTORY": str(self.state), "NO_PROXY": "", **environment}
        self.before = []  # a command that becomes shuntd
        self.local = None  # a file of what is its own
        self.process = None

    def document(self, n=1, services=1):
        return document(self.socket, n, services)

    def words(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def count(self, words):
        return len(re.findall(words, self.words()))

    def command(self):
        own = [] if self.local is None else ["--local", self.local]
        return [SHUNTD, "--config", self.url, *own]

    def launch(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.before, *self.command()], stderr=log,
                                            env=self.environment)

    def start(self):
        n_before = self.count("shuntd: ready") if self.log.exists() else 0
        self.launch()
        wait_until(lambda: self.count("shuntd: ready") > n_before
                   or self.process.poll() is not None, self.words)
        if self.process.poll() is not None:
            raise AssertionError(f"shuntd does not start:\n{self.words()}")

    def check(self):
        done = subprocess.run([*self.command(), "--check"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment, timeout=TIMEOUT_S)
        return done.returncode, done.stdout

    def ctl(self, *args, status=DONE):
        done = subprocess.run([SHUNTCTL, "--socket", str(self.socket), *map(str, args)],
                              check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
        if done.returncode != status:
            raise AssertionError(f"{args}: exit {done.returncode}: {done.stdout}\n{self.words()}")
        return done.stdout

    @contextlib.contextmanager
    def asking(self):
        """A function that gives the status, by a connection of its own: that is asked often."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(self.socket))
            with client.makefile("rw", encoding="utf-8") as stream:
                def ask():
                    stream.write('{"jsonrpc":"2.0","id":1,"method":"status"}\n')
                    stream.flush()
                    return json.loads(stream.readline())["result"]
                yield ask

    def status(self):
        with self.asking() as ask:
            return ask()

    def etcd(self):
        return self.status()["etcd"]

    def wait_for(self, **wanted):
        """Until the status of etcd has these."""
        with self.asking() as ask:
            def is_there():
                found = ask()["etcd"]
                return found if all(found[key] == wanted[key] for key in wanted) else None
            return wait_until(is_there, lambda: f"{wanted}: {self.etcd()}\n{self.words()}")

    def address(self):
        return json.loads(self.ctl("--json", "backend", "list"))["backends"][0]["address"]

    def copy(self):
        return next(self.state.glob("etcd-*.yaml"))

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.terminate()
        status = process.wait(timeout=TIMEOUT_S)
        words = self.words()
        if status != 0 or "Sanitizer" in words or "runtime error" in words:
            raise AssertionError(f"shuntd ended with {status}:\n{words}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def remove(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class EtcdCase(unittest.TestCase):
    maxDiff = 4000

    def daemon(self, url, **environment):
        made = Daemon(url, **environment)
        self.addCleanup(made.remove)
        return made


class RealTest(EtcdCase):
    def setUp(self):
        self.key = f"{KEY}/{self.id().rsplit('.', maxsplit=1)[1]}"
        if ETCD.process is None:
            ETCD.start()

    def put(self, text):
        return ETCD.put(text, self.key)

    def start(self, **environment):
        daemon = self.daemon(ETCD.url(self.key), **environment)
        self.put(daemon.document(1))
        daemon.start()
        daemon.wait_for(state="watching")
        return daemon

    def test_what_is_written_is_in_force(self):
        daemon = self.start()
        self.assertEqual(daemon.address(), "10.0.0.2")
        revision = self.put(daemon.document(2))
        found = daemon.wait_for(revision=revision, known_revision=revision)
        self.assertEqual(daemon.address(), "10.0.0.3")
        self.assertFalse(found["from_copy"])
        self.assertEqual(found["applied"], 1)
        self.assertIn(f"revision {revision}, hash {found['hash']}, watching since 2",
                      daemon.ctl("status"))
        self.assertIn(f"generation 2: revision {revision} of {daemon.url}", daemon.words())

    def test_a_hundred_edits_in_a_second(self):
        daemon = self.start()
        for n in range(100):
            revision = self.put(daemon.document(n))
        found = daemon.wait_for(revision=revision)
        self.assertEqual(daemon.address(), "10.0.0.100")
        self.assertLessEqual(found["applied"], 100)
        self.assertEqual(found["refused"], 0)
        self.assertEqual(daemon.status()["generation"], 1 + found["applied"])

    def test_a_bad_document_is_refused_and_told_once(self):
        daemon = self.start()
        before = daemon.etcd()
        revision = self.put(daemon.document(2).replace("backends", "backend"))
        found = daemon.wait_for(refused=1)
        self.assertEqual(found["refused_document"]["revision"], revision)
        self.assertIn("unknown key 'backend'", found["refused_document"]["error"])
        self.assertEqual((found["revision"], found["hash"]), (before["revision"], before["hash"]))
        self.assertEqual(daemon.count("unknown key 'backend'"), 1)
        self.assertIn(f"revision {revision} is refused: ", daemon.ctl("status"))
        self.put(json.dumps({"control": {"socket": str(daemon.socket)}}))
        found = daemon.wait_for(refused=2)
        self.assertIn("write 'services: []'", found["refused_document"]["error"])
        # What takes a restart is refused by this one.
        self.put(daemon.document(2).replace('"workers": 1', '"workers": 2'))
        found = daemon.wait_for(refused=3)
        self.assertIn("dataplane.workers", found["refused_document"]["error"])
        # And half a document; none at all; and a good one.
        self.put(daemon.document(2)[:300])
        daemon.wait_for(refused=4)
        ETCD.call("kv/deleterange", key=encode(self.key))
        found = daemon.wait_for(refused=5)
        self.assertEqual(found["refused_document"]["error"], "there is no such key")
        self.assertEqual(daemon.address(), "10.0.0.2")
        revision = self.put(daemon.document(3))
        daemon.wait_for(revision=revision, refused_document=None)

    def test_an_outage_and_a_restart_without_etcd_change_nothing(self):
        daemon = self.start()
        revision = self.put(daemon.document(2))
        before = daemon.wait_for(revision=revision)
        wait_until(lambda: f"revision {revision}," in daemon.copy().read_text("utf-8"),
                   "no copy")
        self.assertEqual(daemon.copy().stat().st_mode & 0o777, 0o600)
        ETCD.kill()
        found = daemon.wait_for(state="unreachable")
        self.assertEqual(found["hash"], before["hash"])
        wait_until(lambda: daemon.etcd()["failures"] >= 4, "no more tries")
        self.assertIn("Couldn't connect", daemon.etcd()["error"])
        self.assertEqual(daemon.count("warning: etcd: "), 1)
        self.assertIn("etcd: http", daemon.ctl("reload", status=FAILED))
        # As a power cut would.
        daemon.kill()
        daemon.start()
        found = daemon.wait_for(from_copy=True, state="unreachable")
        self.assertEqual((found["revision"], found["hash"]), (revision, before["hash"]))
        self.assertEqual(daemon.address(), "10.0.0.3")
        self.assertRegex(daemon.ctl("status"), r"from the copy of 20\d\d-\S+ \S+, "
                         r"etcd unreachable since 20\d\d-\S+ \S+\n")
        self.assertEqual(daemon.check()[0], FAILED)
        ETCD.start()
        daemon.wait_for(state="watching", from_copy=False, revision=revision)
        # It is the same as before: nothing was done, nor is it by the turn of the next change.
        daemon.ctl("backend", "up", "web-0/a")
        self.assertEqual(daemon.etcd()["applied"], 0)
        revision = self.put(daemon.document(4))
        daemon.wait_for(revision=revision)
        self.assertEqual(daemon.address(), "10.0.0.5")

    def test_an_etcd_that_hangs(self):
        daemon = self.start()
        ETCD.process.send_signal(signal.SIGSTOP)
        self.addCleanup(ETCD.process.send_signal, signal.SIGCONT)
        daemon.wait_for(state="unreachable")
        self.assertIn("no answer in time", daemon.etcd()["error"])
        ETCD.process.send_signal(signal.SIGCONT)
        daemon.wait_for(state="watching")

    def test_what_was_compacted_is_loaded_anew(self):
        """A proxy lets revisions pass, and go, between the load and the watch."""
        daemon = self.daemon(None)
        done = []

        def before_watch():
            if done:
                return
            for n in (2, 3, 4):
                done.append(self.put(daemon.document(n)))
            ETCD.call("kv/compaction", revision=done[-1])

        proxy = Proxy(before_watch)
        self.addCleanup(proxy.close)
        daemon.url = f"etcd://127.0.0.1:{proxy.port}/{self.key}"
        self.put(daemon.document(1))
        daemon.start()
        wait_until(lambda: done and daemon.etcd()["revision"] == done[-1], daemon.words)
        found = daemon.wait_for(state="watching")
        self.assertEqual((daemon.address(), found["failures"]), ("10.0.0.5", 0))

    def test_a_push_is_checked_and_goes_on_top_of_what_was_seen(self):
        daemon = self.start()
        file = daemon.folder / "next.yaml"
        file.write_text("services: 3\n", encoding="ascii")
        self.assertIn(f"{file}:1:11: services: expected a list",
                      daemon.ctl("config", "push", file, status=BAD_USAGE))
        # What is a balancer's own, by mistake: it would take all services away.
        for text in (json.dumps({"hash_seed": 0}), "services:\nhash_seed: 0\n",
                     json.dumps({k: v for k, v in json.loads(daemon.document(1)).items()
                                 if k != "services"})):
            file.write_text(text, encoding="ascii")
            self.assertIn("write 'services: []'",
                          daemon.ctl("config", "push", file, status=BAD_USAGE))
        file.write_text(daemon.document(2).replace('"workers": 1', '"workers": 2'),
                        encoding="ascii")
        self.assertIn("dataplane.workers", daemon.ctl("config", "push", file, status=FAILED))
        seen = daemon.etcd()["revision"]
        file.write_text(daemon.document(7), encoding="ascii")
        answer = json.loads(daemon.ctl("--json", "config", "push", file))
        daemon.wait_for(revision=answer["revision"], hash=answer["hash"])
        self.assertEqual(daemon.address(), "10.0.0.8")
        stored = ETCD.call("kv/range", key=encode(self.key))["kvs"][0]
        self.assertEqual(base64.b64decode(stored["value"]), file.read_bytes())
        self.assertIn(f"expected revision {seen}, and it is at revision {answer['revision']}",
                      daemon.ctl("config", "push", file, "--revision", seen, status=FAILED))
        self.assertIn("expected revision 0", daemon.ctl("config", "push", file, "--revision",
                                                        0, status=FAILED))
        daemon.ctl("config", "push", file, "--revision", "x", status=BAD_USAGE)
        # There is nothing, and then there is.
        ETCD.call("kv/deleterange", key=encode(self.key))
        daemon.wait_for(refused=1)
        self.assertRegex(daemon.ctl("config", "push", file),
                         r"etcd has it at revision \d+, hash [0-9a-f]{16}\n")
        daemon.wait_for(refused_document=None)
        self.assertIn("config push", daemon.ctl("config", "save", status=FAILED))
        self.assertIn("no-such-file", daemon.ctl("config", "push", "/no-such-file",
                                                 status=BAD_USAGE))

    def test_reload_asks_etcd_and_undoes_what_was_done_by_hand(self):
        daemon = self.start()
        daemon.ctl("backend", "drain", "web-0/a")
        daemon.ctl("reload")
        shown = json.loads(daemon.ctl("--json", "backend", "list"))["backends"][0]
        self.assertEqual(shown["state"], "up")
        daemon.ctl("backend", "drain", "web-0/a")
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: json.loads(daemon.ctl("--json", "backend", "list"))["backends"][0]
                   ["state"] == "up", daemon.words)
        self.put("services: 3")
        daemon.wait_for(refused=1)
        self.assertIn("expected a list", daemon.ctl("reload", status=BAD_USAGE))

    def test_users_and_passwords(self):
        for name in ("root", "lb"):
            ETCD.call("auth/user/add", name=name, password=f"{name}-secret")
        ETCD.call("auth/role/add", name="root")
        ETCD.call("auth/user/grant", user="root", role="root")
        ETCD.call("auth/role/add", name="lb")
        ETCD.call("auth/role/grant", name="lb", perm={"permType": "READWRITE",
                                                     "key": encode(self.key)})
        ETCD.call("auth/user/grant", user="lb", role="lb")
        file = ETCD.folder / "password"
        file.write_text("lb-secret\n", encoding="ascii")
        daemon = self.daemon(ETCD.url(self.key))
        self.put(daemon.document(1))
        ETCD.call("auth/enable")
        token = ETCD.call("auth/authenticate", name="root", password="root-secret")["token"]
        self.addCleanup(ETCD.call, "auth/disable", token=token)
        status, words = daemon.check()
        self.assertEqual(status, FAILED)
        self.assertIn("SHUNT_ETCD_USER", words)
        daemon.environment.update(SHUNT_ETCD_USER="lb", SHUNT_ETCD_PASSWORD="wrong")
        status, words = daemon.check()
        self.assertEqual(status, FAILED)
        self.assertIn("authentication failed", words)
        del daemon.environment["SHUNT_ETCD_PASSWORD"]
        daemon.environment["SHUNT_ETCD_PASSWORD_FILE"] = str(file)
        daemon.start()
        daemon.wait_for(state="watching")
        next_file = daemon.folder / "next.yaml"
        next_file.write_text(daemon.document(2), encoding="ascii")
        answer = json.loads(daemon.ctl("--json", "config", "push", next_file))
        daemon.wait_for(revision=answer["revision"])
        # A token that is none any more is asked for anew; a key of others is not shown.
        other = self.daemon(ETCD.url("another"), SHUNT_ETCD_USER="lb",
                            SHUNT_ETCD_PASSWORD="lb-secret")
        self.assertIn("permission denied", other.check()[1])
        self.assertNotIn("secret", daemon.words() + words)

    def test_tls(self):
        url = f"etcds://127.0.0.1:{ETCD.tls_port}/{self.key}"
        own = {f"SHUNT_ETCD_{name}": str(ETCD.folder / file) for name, file in (
            ("CA_FILE", "ca.pem"), ("CERT_FILE", "client.pem"), ("KEY_FILE", "client.key"))}
        daemon = self.daemon(url, **own)
        revision = self.put(daemon.document(1))
        daemon.start()
        daemon.wait_for(state="watching", revision=revision)
        for name, file, word in (("CA_FILE", "other.pem", "certificate"),
                                 ("CA_FILE", "none.pem", "none.pem"),
                                 ("CERT_FILE", "none.pem", "none.pem")):
            other = self.daemon(url, **{**own, f"SHUNT_ETCD_{name}": str(ETCD.folder / file)})
            status, words = other.check()
            self.assertEqual(status, FAILED, name)
            self.assertIn(word, words)
        other = self.daemon(url.replace("etcds", "etcd"), **own)
        self.assertEqual(other.check()[0], BAD_USAGE)

    def test_members_are_asked_in_turns(self):
        closed, = free_ports(1)
        daemon = self.daemon(f"etcd://127.0.0.1:{closed},127.0.0.1:{ETCD.port}/{self.key}")
        revision = self.put(daemon.document(1))
        daemon.start()
        daemon.wait_for(state="watching", revision=revision, failures=0)

    def test_metrics_say_the_same(self):
        port, = free_ports(1)
        daemon = self.daemon(ETCD.url(self.key))
        text = daemon.document(1).replace('"off"', f'"127.0.0.1:{port}"')
        revision = self.put(text)
        daemon.start()
        daemon.wait_for(state="watching")
        self.put("services: 3")
        daemon.wait_for(refused=1)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode("utf-8").split("\n")
        for line in ("etcd_watching 1", "etcd_failures_total 0", f"etcd_revision {revision}",
                     "etcd_from_copy 0", "etcd_refused 1", "etcd_copy_written 1",
                     'etcd_documents_total{result="applied"} 0',
                     'etcd_documents_total{result="refused"} 1'):
            self.assertIn(f"shunt_{line}", lines)
        connection.request("GET", "/status.json")
        self.assertEqual(json.loads(connection.getresponse().read())["etcd"], daemon.etcd())

    @unittest.skipUnless(os.geteuid() == 0, "mounts take root")
    def test_a_full_disk_under_the_copy(self):
        """Two pages: one for the copy and one for the next, unless ballast is there."""
        daemon = self.daemon(ETCD.url(self.key))
        daemon.state.mkdir()
        daemon.before = ["unshare", "-m", "sh", "-c",
                         f"mount -t tmpfs -o size=8k none {daemon.state} && "
                         f"head -c 4096 /dev/zero >{daemon.state}/ballast && exec \"$@\"", "-"]
        self.put(daemon.document(1))
        daemon.start()
        inside = pathlib.Path(f"/proc/{daemon.process.pid}/root{daemon.state}")
        wait_until(lambda: list(inside.glob("etcd-*.yaml")), daemon.words)
        copy = next(inside.glob("etcd-*.yaml"))
        old = copy.read_bytes()
        for n in (2, 3):
            revision = self.put(daemon.document(n))
            daemon.wait_for(revision=revision)
            wait_until(lambda: "No space left" in (daemon.etcd()["copy"]["error"] or ""),
                       daemon.words)
        self.assertEqual(daemon.address(), "10.0.0.4")
        self.assertEqual(daemon.count("cannot be written: No space left"), 1)
        self.assertEqual(sorted(path.name for path in inside.iterdir()),
                         sorted(["ballast", copy.name]))
        self.assertEqual(copy.read_bytes(), old)
        (inside / "ballast").unlink()
        revision = self.put(daemon.document(4))
        daemon.wait_for(revision=revision)
        wait_until(lambda: daemon.etcd()["copy"]["error"] is None, daemon.words)
        self.assertIn(f"revision {revision},", copy.read_text("utf-8").split("\n")[0])

    def test_two_balancers_reach_the_same_generation(self):
        """Of one document: each has what is its own from a file beside it."""
        pair = [self.daemon(ETCD.url(self.key)) for _ in range(2)]
        shared = json.loads(document("/run/shunt/shunt.sock", 1))
        self.put(json.dumps({"services": shared["services"]}))
        for daemon in pair:
            own = json.loads(daemon.document())
            del own["services"]
            daemon.local = daemon.folder / "local.yaml"
            daemon.local.write_text(json.dumps(own), encoding="ascii")
            self.assertEqual(daemon.check(), (DONE, ""))
            daemon.start()
        for n in (2, 3, 4):
            revision = self.put(document("/run/shunt/shunt.sock", n))
        pair[0].wait_for(revision=revision)
        # One of them has the next from the other; and what it prints is all there is to both.
        file = pair[0].folder / "next.yaml"
        file.write_text(document("/run/shunt/shunt.sock", 5), encoding="ascii")
        revision = json.loads(pair[0].ctl("--json", "config", "push", file))["revision"]
        found = [daemon.wait_for(revision=revision) for daemon in pair]
        self.assertEqual(found[0]["hash"], found[1]["hash"])
        self.assertEqual([daemon.address() for daemon in pair], ["10.0.0.6"] * 2)
        for daemon in pair:
            self.assertIn(f'socket: "{daemon.socket}"\n', daemon.ctl("config", "show"))
            daemon.ctl("reload")
            self.assertEqual(daemon.status()["generation"], daemon.etcd()["applied"] + 1)
        # A backend that is the balancer itself, by its own file.
        self.put(document("/run/shunt/shunt.sock", 5).replace("10.0.0.6", "192.0.2.1"))
        for daemon in pair:
            error = daemon.wait_for(refused=1)["refused_document"]["error"]
            self.assertIn("the balancer's own", error)

    def test_how_long_it_takes_for_100_services(self):
        """Printed, not asserted: from the write to the new table in the workers."""
        daemon = self.daemon(ETCD.url(self.key))
        self.put(daemon.document(0, 100))
        daemon.start()
        daemon.wait_for(state="watching")
        times = []
        with daemon.asking() as ask:
            for n in range(1, 21):
                text = daemon.document(n, 100)
                begun = time.monotonic()
                revision = self.put(text)
                while ask()["etcd"]["revision"] != revision:
                    time.sleep(0.001)
                times.append((time.monotonic() - begun) * 1e3)
        print(f"from a write to etcd to the new table, 100 services: median "
              f"{statistics.median(times):.1f} ms, at most {max(times):.1f} ms", file=sys.stderr)


class Proxy:
    """Passes bytes on to etcd; before a watch's it calls somebody."""

    def __init__(self, before_watch):
        self.before_watch = before_watch
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.ends = [self.server]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                there = socket.create_connection(("127.0.0.1", ETCD.port))
                self.ends += [client, there]
                threading.Thread(target=self.carry, args=(client, there, self.before_watch),
                                 daemon=True).start()
                threading.Thread(target=self.carry, args=(there, client, None),
                                 daemon=True).start()

    @staticmethod
    def carry(source, sink, before_watch):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if before_watch is not None and data.startswith(b"POST /v3/watch"):
                    before_watch()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Fake(http.server.ThreadingHTTPServer):
    """Answers as etcd would, or as its mode says; a mode of a watch begins with the word."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), FakeHandler)
        self.port = self.server_address[1]
        self.mode = "good"
        self.cluster = 7
        self.revision = 5  # of all there is, and the key
        self.text = ""
        self.changed = threading.Condition()
        self.has_leader = []
        self.before_load = None
        self.watcher = None  # the last, begun
        self.requests_seen = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that is gone is none."""

    def set(self, **keys):
        """Change, and end the watches there are."""
        with self.changed:
            for name, value in keys.items():
                setattr(self, name, value)
            self.changed.notify_all()

    def header(self):
        return {"cluster_id": str(self.cluster), "revision": str(self.revision)}

    def kv(self):
        return {"key": encode(KEY), "mod_revision": str(self.revision),
                "value": encode(self.text)}


class FakeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing: this is no server to look after."""

    def do_POST(self):  # noqa: N802, as its base has it
        self.rfile.read(int(self.headers["Content-Length"]))
        fake = self.server
        fake.requests_seen += 1
        if self.path == "/v3/watch":
            fake.has_leader.append(self.headers.get("Grpc-Metadata-hasleader"))
            self.watch(fake)
        else:
            self.load(fake)

    def answer(self, body, status=200, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None

    def load(self, fake):
        before, fake.before_load = fake.before_load, None
        if before is not None:
            before()
        good = json.dumps({"header": fake.header(), "kvs": [fake.kv()], "count": "1"}).encode()
        if fake.mode == "rubbish":
            self.answer(b"<html>It works!</html>")
        elif fake.mode == "half":
            self.answer(good[:len(good) // 2], length=len(good))
        elif fake.mode == "half, and says that it is all":
            self.answer(good[:len(good) // 2])
        elif fake.mode == "hangs":
            with fake.changed:
                fake.changed.wait(TIMEOUT_S)
            self.close_connection = True
        elif fake.mode == "another key":
            self.answer(good.replace(encode(KEY).encode(), encode("other").encode()))
        elif fake.mode == "bad base64":
            self.answer(good.replace(encode(fake.text).encode(), b"Zm9="))
        elif fake.mode == "an error":
            self.answer(b'{"error":"etcdserver: no space","code":8}', status=429)
        elif fake.mode == "an error of another":
            self.answer(b"Bad Gateway", status=502)
        elif fake.mode == "without end":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1 << 10):
                    self.wfile.write(b" " * (1 << 16))
            self.close_connection = True
        elif fake.mode == "byte by byte":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for byte in good:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.5)
            self.close_connection = True
        else:
            self.answer(good)

    def line(self, **result):
        text = json.dumps({"result": {"header": self.server.header(), **result}}) + "\n"
        self.raw(text.encode())

    def raw(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def watch(self, fake):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fake.mode == "watch: never begins":
            self.line(events=[{"kv": fake.kv()}])
            return
        self.line(created=True)
        fake.watcher = self
        if fake.mode == "watch: rubbish":
            self.raw(b"It works!\n")
        elif fake.mode == "watch: an old revision":
            kv = {**fake.kv(), "mod_revision": "2"}
            self.raw(json.dumps({"result": {"header": {**fake.header(), "revision": "2"},
                                            "events": [{"kv": kv}]}}).encode() + b"\n")
        elif fake.mode == "watch: no leader":
            self.line(canceled=True, cancel_reason="etcdserver: no leader")
        elif fake.mode == "watch: compacted":
            self.line(canceled=True, compact_revision="5")
        elif fake.mode == "watch: without end":
            for _ in range(1 << 10):
                self.raw(b"x" * (1 << 16))
        elif fake.mode == "watch: half a line":
            self.raw(b'{"result":{"header"')
        with fake.changed:
            fake.changed.wait(TIMEOUT_S)


class FakeTest(EtcdCase):
    """Each fault is told once, survived, and what runs goes on; then the next document comes."""

    def start(self):
        fake = Fake()
        self.addCleanup(fake.server_close)
        self.addCleanup(fake.shutdown)
        self.addCleanup(fake.set)
        daemon = self.daemon(f"etcd://127.0.0.1:{fake.port}/{KEY}")
        fake.text = daemon.document(1)
        daemon.start()
        daemon.wait_for(state="watching", revision=5)
        return fake, daemon

    def expect_faults(self, *rows):
        """(mode, words, what else changes): all beside each other, as they take their time."""
        made = [(self.start(), row) for row in rows]
        for (fake, _), (mode, _, keys) in made:
            fake.set(mode=mode, **keys)
        for (fake, daemon), (mode, words, _) in made:
            with self.subTest(mode):
                wait_until(lambda: words in (daemon.etcd()["error"] or ""),
                           lambda: f"{daemon.etcd()}\n{daemon.words()}")
                wait_until(lambda: daemon.etcd()["failures"] >= 4, daemon.words)
                self.assertEqual(daemon.count(f"warning: etcd: .*{re.escape(words)}"), 1,
                                 daemon.words())
                self.assertEqual((daemon.etcd()["revision"], daemon.address()),
                                 (5, "10.0.0.2"))
            fake.set(mode="good", revision=9, text=daemon.document(2))
        for (_, daemon), _ in made:
            daemon.wait_for(state="watching", revision=9)

    def test_rubbish(self):
        said = "nothing that etcd says"
        self.expect_faults(("rubbish", said, {}), ("half, and says that it is all", said, {}),
                           ("another key", said, {}), ("bad base64", said, {}),
                           ("without end", "too long", {}))

    def test_errors(self):
        self.expect_faults(("half", "transfer closed", {}), ("an error", "no space", {}),
                           ("an error of another", "HTTP status 502", {}))

    def test_watches(self):
        said = "nothing that etcd says"
        self.expect_faults(("watch: rubbish", said, {}), ("watch: never begins", said, {}),
                           ("watch: no leader", "no leader", {}),
                           ("watch: compacted", "compacted up to revision 5, time", {}),
                           ("watch: without end", "too long", {}),
                           ("watch: an old revision", "revision 2, which is older than 5", {}))

    def test_another_member_is_asked(self):
        """One whose watch is no good, though it can be loaded from."""
        pair = [Fake(), Fake()]
        hosts = ",".join(f"127.0.0.1:{fake.port}" for fake in pair)
        daemon = self.daemon(f"etcd://{hosts}/{KEY}")
        for fake in pair:
            self.addCleanup(fake.server_close)
            self.addCleanup(fake.shutdown)
            self.addCleanup(fake.set)
            fake.text = daemon.document(1)
        pair[0].mode = "watch: rubbish"
        daemon.start()
        daemon.wait_for(state="watching", failures=1)
        pair[1].set(revision=9, text=daemon.document(2))
        daemon.wait_for(revision=9)

    def test_an_old_revision(self):
        """Of the same cluster; of one that was restored it is the new one."""
        self.expect_faults(("good", "revision 3, which is older than 5",
                            {"revision": 3, "text": "{}"}))
        fake, daemon = self.start()
        self.assertEqual(set(fake.has_leader), {"true"})
        fake.set(revision=3, text=daemon.document(2))
        daemon.wait_for(state="unreachable")
        daemon.ctl("reload")
        daemon.wait_for(state="watching", revision=3)
        self.assertEqual(daemon.address(), "10.0.0.3")
        fake.set(revision=2, cluster=8, text=daemon.document(3))
        daemon.wait_for(state="watching", revision=2)
        self.assertEqual(daemon.address(), "10.0.0.4")
        self.assertIn("another one, or was restored", daemon.words())

    def test_a_reload_that_overtakes_the_watch(self):
        """What the watch had told before is not put in force after what etcd answers then."""
        fake, daemon = self.start()

        def tell(revision, n):
            fake.revision, fake.text = revision, daemon.document(n)
            fake.watcher.line(events=[{"kv": fake.kv()}])

        def while_asked():
            tell(8, 2)
            time.sleep(0.3)  # until it waits behind the reload
            fake.revision, fake.text = 9, daemon.document(3)

        fake.before_load = while_asked
        daemon.ctl("reload")
        tell(9, 3)
        time.sleep(1)
        found = daemon.etcd()
        self.assertEqual((found["revision"], found["known_revision"], daemon.address()),
                         (9, 9, "10.0.0.4"), daemon.words())

    def test_an_answer_that_the_watch_overtakes(self):
        fake, daemon = self.start()

        def while_asked():
            fake.revision, fake.text = 9, daemon.document(3)
            fake.watcher.line(events=[{"kv": fake.kv()}])
            time.sleep(0.3)
            fake.revision, fake.text = 8, daemon.document(2)

        fake.before_load = while_asked
        daemon.ctl("reload")
        found = daemon.wait_for(state="watching", revision=9)
        self.assertEqual((found["known_revision"], daemon.address()), (9, "10.0.0.4"),
                         daemon.words())

    def test_what_takes_too_long(self):
        """5 s each, beside each other: an answer byte by byte, and half a line of a watch."""
        pairs = [(self.start(), "byte by byte"), (self.start(), "watch: half a line")]
        for (fake, _), mode in pairs:
            fake.set(mode=mode)
        for (fake, daemon), _ in pairs:
            wait_until(lambda: "no answer in time" in (daemon.etcd()["error"] or ""),
                       daemon.words)
            fake.set(mode="good", revision=9, text=daemon.document(2))
        for (_, daemon), _ in pairs:
            daemon.wait_for(state="watching", revision=9)

    def test_a_watch_that_is_silent(self):
        """A proxy between passes nothing on; or the member hangs, and its kernel answers."""
        pairs = [self.start(), self.start()]
        (silent, first), (hanging, second) = pairs
        silent.revision, silent.text = 9, first.document(2)
        hanging.mode = "hangs"
        wait_until(lambda: "no answer in time" in (second.etcd()["error"] or ""), second.words)
        first.wait_for(state="watching", revision=9)
        self.assertEqual(first.count("warning: etcd: the watch is silent"), 1, first.words())
        self.assertEqual(first.etcd()["failures"], 1)
        hanging.set(mode="good", revision=9, text=second.document(2))
        second.wait_for(state="watching", revision=9)

    def test_a_flood_is_told_in_a_few_lines(self):
        """Of documents that are bad, and of clusters that alternate; then all is well again."""
        fake, daemon = self.start()

        def flood(n, **keys):
            for _ in range(n):
                fake.revision += 1
                fake.cluster += keys.get("cluster", 0)
                fake.text = keys.get("text", f"rubbish: {fake.revision}")
                fake.watcher.line(events=[{"kv": fake.kv()}])

        flood(2000)
        daemon.wait_for(known_revision=fake.revision)
        self.assertLess(len(daemon.words().split("\n")), 100)
        self.assertEqual(daemon.count("only now and then"), 1)
        flood(2000, cluster=1, text=daemon.document(1))
        found = daemon.wait_for(known_revision=fake.revision, revision=fake.revision)
        self.assertLess(daemon.count("the cluster is another one"), 50)
        # Whatever was told: what came last is in force.
        self.assertIsNone(found["refused_document"])

    def test_starts(self):
        """With what etcd has, or the copy, or neither: what the exit status says."""
        fake, daemon = self.start()
        good = fake.text
        wait_until(lambda: list(daemon.state.glob("etcd-*.yaml")), "no copy")
        daemon.stop()
        # A bad one: the copy is taken. An old one: so, too.
        for keys, words in (({"text": "services: 3", "revision": 6}, "expected a list"),
                            ({"text": "{}", "revision": 3}, "older than 5"),
                            ({"mode": "rubbish"}, "nothing that etcd says")):
            fake.set(**keys)
            daemon.start()
            found = daemon.etcd()
            self.assertEqual((found["from_copy"], found["revision"]), (True, 5))
            self.assertIn(words, daemon.words())
            daemon.stop()
        # Damage is no copy; nor is it one of another key.
        copy = daemon.copy()
        copy.write_bytes(copy.read_bytes()[:-9])
        daemon.launch()
        self.assertEqual(daemon.process.wait(TIMEOUT_S), FAILED)
        self.assertIn("it is damaged", daemon.words())
        copy.unlink()
        # It may be mended there: systemd is to try again. Who checks it wants to know.
        fake.set(mode="good", revision=6, text="services: 3")
        self.assertEqual(daemon.check()[0], BAD_USAGE)
        daemon.launch()
        self.assertEqual(daemon.process.wait(TIMEOUT_S), FAILED)
        self.assertIn("there is no copy to start with", daemon.words())
        daemon.process = None
        fake.set(text=good)
        self.assertEqual(daemon.check(), (DONE, ""))

    def test_what_is_own_goes_with_a_file(self):
        daemon = self.daemon(None)
        file = daemon.folder / "services.yaml"
        daemon.url = str(file)
        own = json.loads(daemon.document())
        file.write_text(json.dumps({"services": own.pop("services")}), encoding="ascii")
        daemon.local = daemon.folder / "local.yaml"
        daemon.local.write_text(json.dumps(own), encoding="ascii")
        daemon.start()
        self.assertIsNone(daemon.etcd())
        self.assertEqual(daemon.address(), "10.0.0.2")
        self.assertIn(str(daemon.local), daemon.ctl("config", "save", status=FAILED))
        self.assertIn("is a file", daemon.ctl("config", "push", file, status=FAILED))
        daemon.stop()
        daemon.local.write_text(daemon.document(), encoding="ascii")
        status, words = daemon.check()
        self.assertEqual(status, BAD_USAGE)
        self.assertIn("services: expected none here", words)

    def test_what_is_wrong_with_an_address(self):
        for url, words, environment in (
                ("etcd://127.0.0.1", "expected a key", {}),
                ("etcd://root:secret@127.0.0.1/k", "SHUNT_ETCD_PASSWORD_FILE", {}),
                ("etcd://127.0.0.1/k", "SHUNT_ETCD_USER", {"SHUNT_ETCD_PASSWORD": "x"}),
                ("etcd://127.0.0.1/k", "etcds://", {"SHUNT_ETCD_CA_FILE": "x"}),
                ("etcds://127.0.0.1/k", "SHUNT_ETCD_KEY_FILE", {"SHUNT_ETCD_CERT_FILE": "x"})):
            status, found = self.daemon(url, **environment).check()
            self.assertEqual(status, BAD_USAGE, found)
            self.assertIn(words, found)
            self.assertNotIn("secret", found)


def why_not():
    for program, package in (("etcd", "etcd-server"), ("openssl", "openssl")):
        if shutil.which(program, path=PATH) is None:
            return f"there is no {program} command (Debian: {package})"
    return ""


def main():
    global ETCD
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    # A time limit's SIGTERM must not leave etcd behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    why = why_not()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    ETCD = Etcd()
    try:
        unittest.main()
    finally:
        ETCD.remove()


if __name__ == "__main__":
    main()
