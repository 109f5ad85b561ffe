#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd and shuntctl together, on ports that are none: every command, as its users type it.

Each test has a shuntd of its own, in a network namespace of its own. SHUNTD, SHUNTCTL and
SHUNT_REPLAY name the programs.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import captures  # noqa: E402
import wire  # noqa: E402

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
SHUNT_REPLAY = os.environ.get("SHUNT_REPLAY", "")
# Of one command or start, also under sanitizers on a busy machine.
TIMEOUT_S = 60

DONE, FAILED, BAD_USAGE = 0, 1, 2
REFUSED, WORKERS_LATE, INVALID_PARAMS, UNKNOWN_METHOD = 1, 3, -32602, -32601

VIP, VIP6, CLIENT, CLIENT6 = "198.51.100.10", "2001:db8:51::10", "203.0.113.7", "2001:db8:113::7"
COLUMNS = 13  # of `backend list`


def backends(n, service="web"):
    return [{"name": f"{service}-{i}", "address": f"10.0.0.{10 + i}"} for i in range(1, n + 1)]


def service(name="web", n=3, **keys):
    found = {"name": name, "address": VIP, "protocol": "tcp", "port": 80,
             "backends": backends(n, name)}
    found.update(keys)
    return found


class Daemon:
    """A shuntd at work in a folder."""

    def __init__(self, folder):
        self.config = folder / "shunt.yaml"
        self.socket = folder / "shunt.sock"
        self.log = folder / "log"
        self.process = None

    def write(self, *services, **keys):
        """The configuration file; JSON is YAML too."""
        plane = {"workers": 1, "kernel": "none", "idle": "adaptive", "idle_sleep": "1ms",
                 "flow_entries": 1024,
                 "ports": [{"name": "wan", "device": "net_null0,no-rx=1",
                            "addresses": ["192.0.2.1/24", "2001:db8::1/64"],
                            "next_hop": "02:00:00:00:00:fe"}]}
        plane.update(keys.pop("dataplane", {}))
        self.config.write_text(json.dumps(
            {"dataplane": plane, "control": {"socket": str(self.socket), "metrics": "off"},
             "services": list(services), **keys}), encoding="utf-8")

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", SHUNTD, "--config", self.config], stderr=log)
        end = time.monotonic() + TIMEOUT_S
        while "shuntd: ready" not in self.log.read_text(encoding="utf-8"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no start:\n{self.log.read_text(encoding='utf-8')}")
            time.sleep(0.02)

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            status = self.process.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        log = self.log.read_text(encoding="utf-8")
        if status != 0 or "Sanitizer" in log or "runtime error" in log:
            raise AssertionError(f"shuntd ended with {status}:\n{log}")


class Connection:
    """One client of the socket, without shuntctl."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")

    def ask(self, number, method, params=None):
        request = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            request["params"] = params
        self.file.write(json.dumps(request).encode() + b"\n")
        self.file.flush()

    def answer(self):
        return json.loads(self.file.readline())

    def call(self, method, params=None):
        self.ask(1, method, params)
        return self.answer()

    def close(self):
        self.file.close()
        self.socket.close()


class ControlCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("DPDK's ports and a network namespace take root")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-control-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.daemon = Daemon(self.folder)
        self.addCleanup(self.daemon.stop)

    def start(self, *services, **keys):
        self.daemon.write(*(services or [service()]), **keys)
        self.daemon.start()

    def run_ctl(self, *args, status=DONE, **popen):
        done = subprocess.run(
            [SHUNTCTL, *map(str, args)], check=False, text=True, timeout=TIMEOUT_S,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "SHUNT_SOCKET": str(self.daemon.socket)}, **popen)
        self.assertEqual(done.returncode, status, f"{args}: {done.stdout}{done.stderr}")
        return done

    def ctl(self, *args):
        """A command that is done and has no word to say of it on stderr. Returns its stdout."""
        done = self.run_ctl(*args)
        self.assertEqual(done.stderr, "", args)
        return done.stdout

    def json(self, *args):
        result = json.loads(self.ctl("--json", *args))
        self.assertEqual(result["schema"], 1, args)
        return result

    def refuse(self, *args, status, says=()):
        done = self.run_ctl(*args, status=status)
        self.assertEqual(done.stdout, "")
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertNotEqual(done.stderr, "")

    def connect(self):
        connection = Connection(self.daemon.socket)
        self.addCleanup(connection.close)
        return connection

    def generation(self):
        return self.json("status")["generation"]

    def backend(self, name):
        service_name, backend_name = name.split("/")
        found = [one for one in self.json("backend", "list", service_name)["backends"]
                 if one["name"] == backend_name]
        return found[0] if found else None

    def backend_line(self, name):
        """The line of `config show` that has a backend of this name."""
        lines = [line for line in self.ctl("config", "show").splitlines()
                 if f"{{name: {name}," in line]
        self.assertLessEqual(len(lines), 1)
        return lines[0] if lines else ""


class Edits(ControlCase):
    def test_each_edit_is_seen_and_counted(self):
        self.start()
        rows = [
            ("drain", ["backend", "drain", "web/web-1"], "state: drain"),
            ("up", ["backend", "up", "web/web-1"], "state: up"),
            ("down", ["backend", "down", "web/web-1"], "state: down"),
            ("weight", ["backend", "weight", "web/web-1", "70"], "weight: 70, state: down"),
            ("remove", ["backend", "remove", "web/web-1"], ""),
            ("add", ["backend", "add", "web/web-1", "10.0.0.99"],
             "address: 10.0.0.99, weight: 100, state: up"),
        ]
        for number, (what, args, says) in enumerate(rows, 2):
            with self.subTest(what):
                self.assertEqual(self.json(*args)["generation"], number)
                line = self.backend_line("web-1")
                self.assertIn(says, line)
                self.assertEqual(line == "", says == "")
                self.assertEqual(self.generation(), number)

    def test_states_and_weights_are_in_the_slots(self):
        self.start(service(table={"algorithm": "maglev", "size": 1009}))
        self.ctl("backend", "drain", "web/web-1")
        self.assertEqual(self.backend("web/web-1")["slots"], 0)
        self.ctl("backend", "down", "web/web-2")
        self.assertEqual(self.backend("web/web-3")["slots"], 1009)
        self.ctl("backend", "up", "web/web-1", "web/web-2")
        self.ctl("backend", "weight", "web/web-3", "0")
        slots = [one["slots"] for one in self.json("backend", "list")["backends"]]
        self.assertEqual((sum(slots), slots[2]), (1009, 0))
        self.assertEqual({505, 504}, set(slots[:2]))

    def test_up_again_has_the_slots_it_had(self):
        self.start(service(n=5, table={"algorithm": "stable", "size": 1009}))
        names = [f"web/web-{i}" for i in range(1, 6)]

        def slots():
            return [self.backend(name)["slots"] for name in names]
        before = slots()
        self.ctl("backend", "drain", "web/web-1")
        self.ctl("backend", "down", "web/web-2")
        less = slots()
        self.assertEqual((less[:2], sum(less)), ([0, 0], 1009))
        for now, was in zip(less[2:], before[2:]):
            self.assertGreater(now, was)
        self.ctl("backend", "up", "web/web-1")
        self.ctl("backend", "up", "web/web-2")
        self.assertEqual(slots(), before)

    def test_backend_add_takes_the_keys_of_the_file(self):
        self.start(service(forward="l2"))
        self.ctl("backend", "add", "web/web-9", "2001:db8::9", "--weight", "7", "--state",
                 "drain", "--mac", "02:00:00:00:00:09", "--zone", "rack 4")
        found = self.backend("web/web-9")
        self.assertEqual([found[key] for key in ("address", "weight", "state", "mac", "zone")],
                         ["2001:db8::9", 7, "drain", "02:00:00:00:00:09", "rack 4"])
        self.assertIsNone(self.backend("web/web-1")["zone"])
        self.assertIn(', zone: "rack 4"}', self.ctl("config", "show"))

    def test_several_backends_in_one_command(self):
        self.start()
        self.assertEqual(self.json("backend", "drain", "web/web-1", "web/web-3")["generation"],
                         3)
        states = [one["state"] for one in self.json("backend", "list")["backends"]]
        self.assertEqual(states, ["drain", "up", "drain"])
        self.refuse("backend", "remove", "web/web-1", "web/web-7", "web/web-2", status=FAILED,
                    says=["'web-7'", "those before 'web/web-7' are done"])
        names = [one["name"] for one in self.json("backend", "list")["backends"]]
        self.assertEqual(names, ["web-2", "web-3"])

    def test_service_add_takes_the_keys_of_the_file(self):
        self.start()
        self.ctl("service", "add", "dns", "--address", "198.51.100.16/28", "--protocol", "any",
                 "--port", "any", "--forward", "vxlan", "--vni", "77", "--tunnel-port", "4790",
                 "--affinity", "source-ip", "--table", "ring:512", "--carry", "ipip,gre")
        self.ctl("backend", "add", "dns/a", "10.0.1.1")
        found = self.json("service", "show", "dns")["service"]
        backend = found["backends"].pop()
        self.assertEqual((backend["name"], backend["slots"]), ("a", 512))
        self.assertEqual(found, {
            "name": "dns", "address": "198.51.100.16/28", "protocol": "any", "port": "any",
            "table": {"algorithm": "ring", "size": 512}, "affinity": "source-ip",
            "forward": "vxlan", "tunnel_port": 4790, "vni": 77, "carry": ["ipip", "gre"],
            "echo": "reply", "fragment": "inner", "mss_clamp": None, "quic": [],
            "health": None, "slow_start": None, "min_healthy": 1, "when_all_down": "keep",
            "announced": None, "not_announced": None, "packets": 0, "bytes": 0, "flows": 0, "backends": []})
        self.ctl("service", "add", "plain", "--address", VIP6, "--protocol", "udp", "--port",
                 "53")
        found = self.json("service", "show", "plain")["service"]
        self.assertEqual((found["table"], found["affinity"], found["forward"]),
                         ({"algorithm": "maglev", "size": 65537}, "5-tuple", "ipip"))
        self.ctl("service", "remove", "web")
        self.assertEqual([one["name"] for one in self.json("service", "list")["services"]],
                         ["dns", "plain"])

    def test_service_add_takes_a_stable_table(self):
        self.start()
        rows = [
            ("stable", 65537, "2%"),
            ("stable:1009", 1009, "2%"),
            ("stable:1009:0.5%", 1009, "0.5%"),
            ("stable:1009:0", 1009, "0%"),
        ]
        for i, (text, size, overload) in enumerate(rows):
            with self.subTest(text):
                self.ctl("service", "add", f"s{i}", "--address", VIP, "--protocol", "tcp",
                         "--port", 1000 + i, "--table", text)
                found = self.json("service", "show", f"s{i}")["service"]["table"]
                self.assertEqual(found, {"algorithm": "stable", "size": size,
                                         "overload": overload})
                shown = f"{{algorithm: stable, size: {size}, overload: {overload}}}"
                self.assertIn(shown, self.ctl("config", "show"))
                self.assertIn(f"stable:{size}:{overload}", self.ctl("service", "list"))

    def test_service_add_takes_what_becomes_of_special_packets(self):
        self.start()
        self.ctl("service", "add", "t", "--address", VIP, "--protocol", "tcp", "--port", "81",
                 "--echo", "forward", "--fragment", "outer", "--mss-clamp", "auto")
        found = self.json("service", "show", "t")["service"]
        self.assertEqual([found[key] for key in ("echo", "fragment", "mss_clamp", "quic")],
                         ["forward", "outer", "auto", []])
        text = self.ctl("service", "show", "t")
        for line in ("echo         forward\n", "fragment     outer\n", "mss_clamp    auto\n"):
            self.assertIn(line, text)

    def test_quic(self):
        self.start()
        self.ctl("service", "add", "q", "--address", VIP, "--protocol", "udp", "--port", "443",
                 "--affinity", "quic", "--quic", "0:2:4,6:1:18")
        self.ctl("backend", "add", "q/a", "10.0.1.1", "--quic-id", "1e10,00")
        self.ctl("backend", "add", "q/b", "10.0.1.2", "--quic-id", "0012")
        self.refuse("backend", "add", "q/c", "10.0.1.3", "--quic-id", "0012", status=FAILED,
                    says=["quic_id: 0012 is that of backend 'b'"])
        self.refuse("backend", "add", "q/c", "10.0.1.3", "--quic-id", "123", status=BAD_USAGE,
                    says=["quic_id: expected 1 to 15 bytes", "'123'"])
        self.refuse("service", "add", "r", "--address", VIP, "--protocol", "udp", "--port",
                    "444", "--affinity", "quic", "--quic", "0:2", status=BAD_USAGE,
                    says=["no key 'nonce_length'"])
        found = self.json("service", "show", "q")["service"]
        self.assertEqual(found["quic"], [
            {"config_id": 0, "server_id_length": 2, "nonce_length": 4, "cid_key": None,
             "first_octet_encodes_cid_length": False},
            {"config_id": 6, "server_id_length": 1, "nonce_length": 18, "cid_key": None,
             "first_octet_encodes_cid_length": False}])
        self.assertEqual([one["quic_id"] for one in found["backends"]], [["1e10", "00"], ["0012"]])
        self.assertIn("quic         config_id 6, server ids of 1 bytes, nonces of 18, no key\n",
                      self.ctl("service", "show", "q"))
        shown = self.ctl("config", "show")
        self.assertIn('quic_id: ["1e10", "00"]}', shown)
        self.daemon.config.write_text(shown, encoding="utf-8")
        self.assertIn("warning: the backend has no quic_id of 1 byte, as config_id 6 has them",
                      self.run_ctl("reload").stderr)
        self.assertEqual(self.ctl("config", "show"), shown)

    def test_a_key_is_shown_in_the_configuration_alone(self):
        self.start()
        key, other = "00112233445566778899aabbccddeeff", "ff112233445566778899aabbccddee00"
        config = {"config_id": 0, "server_id_length": 2, "nonce_length": 4, "cid_key": key}
        params = service("q", protocol="udp", affinity="quic", quic=[config], backends=[
            {"name": "a", "address": "10.0.1.1", "quic_id": "0012"}])
        connection = self.connect()
        self.assertNotIn("error", connection.call("service.add", params))
        shown = self.ctl("config", "show")
        self.assertIn(f'cid_key: "{key}"', shown)
        for args in (["service", "show", "q"], ["service", "list"], ["backend", "list"]):
            self.assertNotIn(key, self.ctl("--json", *args) + self.ctl(*args))
        self.assertEqual(self.json("service", "show", "q")["service"]["quic"][0]["cid_key"],
                         "set")
        self.daemon.config.write_text(shown.replace(key, other), encoding="utf-8")
        plan = self.ctl("--json", "plan", self.daemon.config)
        change, = json.loads(plan)["services"][0]["changes"]
        self.assertEqual([change[side][0]["cid_key"] for side in ("from", "to")],
                         ["set", "changed"])
        self.assertFalse(key in plan or other in plan)
        self.daemon.config.write_text(shown.replace(key, other[1:]), encoding="utf-8")
        said = self.run_ctl("reload", status=BAD_USAGE).stderr
        self.assertIn("cid_key: expected 32 hex digits", said)
        log = self.daemon.log.read_text(encoding="utf-8")
        self.assertFalse(other[1:] in said or other[1:] in log or key in log)

    def test_what_is_wrong_changes_nothing(self):
        self.start(service(table={"algorithm": "maglev", "size": 7}),
                   service("other", address="198.51.100.11"))
        before = self.ctl("config", "show")
        rows = [
            ("no such service", ["backend", "drain", "wbe/web-1"], FAILED,
             ["there is no service 'wbe'", "'web'"]),
            ("no such backend", ["backend", "drain", "web/web-4"], FAILED,
             ["service 'web' has no backend 'web-4'", "'web-1'"]),
            ("no name", ["backend", "drain", "web"], BAD_USAGE, ["SERVICE/NAME"]),
            ("a name that is there", ["backend", "add", "web/web-1", "10.0.0.9"], FAILED,
             ["has a backend 'web-1' already"]),
            ("no address", ["backend", "add", "web/web-9", "10.0.0.999"], BAD_USAGE,
             ["shuntctl: address: expected an IP address"]),
            ("a multicast address", ["backend", "add", "web/web-9", "224.0.0.1"], BAD_USAGE,
             ["shuntctl: address: expected a unicast address"]),
            ("no weight", ["backend", "weight", "web/web-1", "x"], BAD_USAGE, ["'x'"]),
            ("too much weight", ["backend", "weight", "web/web-1", "65536"], BAD_USAGE,
             ["65535"]),
            ("too much weight to add", ["backend", "add", "web/x", "10.0.0.9", "--weight",
                                        "65536"], BAD_USAGE, ["weight: expected"]),
            ("no state", ["backend", "add", "web/x", "10.0.0.9", "--state", "dwon"], BAD_USAGE,
             ["did you mean down?"]),
            ("mac without l2", ["backend", "add", "web/x", "10.0.0.9", "--mac",
                                "02:00:00:00:00:01"], FAILED, ["forward l2"]),
            ("a service that is there", ["service", "add", "web", "--address", "198.51.100.12",
                                         "--protocol", "tcp", "--port", "80"], FAILED,
             ["there is a service 'web' already"]),
            ("a place that is taken", ["service", "add", "new", "--address", VIP, "--protocol",
                                       "tcp", "--port", "80"], FAILED,
             ["address, protocol and port are those of service 'web'"]),
            ("no port", ["service", "add", "new", "--address", VIP, "--protocol", "tcp"],
             BAD_USAGE, ["no key 'port'"]),
            ("no prime", ["service", "add", "new", "--address", VIP, "--protocol", "tcp",
                          "--port", "81", "--table", "maglev:1000"], BAD_USAGE, ["1009"]),
            ("no stable prime", ["service", "add", "new", "--address", VIP, "--protocol", "tcp",
                                 "--port", "81", "--table", "stable:1000"], BAD_USAGE,
             ["stable needs a prime", "1009"]),
            ("no size", ["service", "add", "new", "--address", VIP, "--protocol", "tcp",
                         "--port", "81", "--table", "stable:"], BAD_USAGE, ["size: expected"]),
            ("no percentage", ["service", "add", "new", "--address", VIP, "--protocol", "tcp",
                               "--port", "81", "--table", "stable:1009:2"], BAD_USAGE,
             ["such as 2%"]),
            ("an overload of maglev", ["service", "add", "new", "--address", VIP, "--protocol",
                                       "tcp", "--port", "81", "--table", "maglev:1009:2%"],
             BAD_USAGE, ["overload is for algorithm stable"]),
            ("host bits", ["service", "add", "new", "--address", "198.51.100.10/28",
                           "--protocol", "tcp", "--port", "81"], BAD_USAGE,
             ["198.51.100.0/28"]),
            ("no forward mode", ["service", "add", "new", "--address", VIP, "--protocol",
                                 "tcp", "--port", "81", "--forward", "nat"], BAD_USAGE,
             ["ipip"]),
            ("no way to fragment", ["service", "add", "new", "--address", VIP, "--protocol",
                                    "tcp", "--port", "81", "--fragment", "no"], BAD_USAGE,
             ["inner, outer or drop"]),
            ("an MSS of UDP", ["service", "add", "new", "--address", VIP, "--protocol", "udp",
                               "--port", "81", "--mss-clamp", "1400"], BAD_USAGE,
             ["mss_clamp is for protocol tcp or any"]),
            ("the balancer's own address", ["backend", "add", "web/x", "192.0.2.1"], FAILED,
             ["192.0.2.1 is the balancer's own, of port 'wan'"]),
            ("a server id without configurations", ["backend", "add", "web/x", "10.0.0.9",
                                                    "--quic-id", "01"], FAILED,
             ["services with the key 'quic'"]),
            ("no service to remove", ["service", "remove", "new"], FAILED, ["'new'"]),
            ("no service to show", ["service", "show", "new"], FAILED, ["'new'"]),
            ("no service to list", ["backend", "list", "new"], FAILED, ["'new'"]),
        ]
        for what, args, status, says in rows:
            with self.subTest(what):
                self.refuse(*args, status=status, says=says)
        self.assertEqual(self.ctl("config", "show"), before)
        self.assertEqual(self.generation(), 1)

    def test_more_backends_than_slots_are_refused(self):
        self.start(service(n=7, table={"algorithm": "maglev", "size": 7}))
        self.refuse("backend", "add", "web/web-8", "10.0.0.18", status=FAILED,
                    says=["8 backends do not fit into 7 slots"])
        self.assertEqual(len(self.json("backend", "list")["backends"]), 7)


class Files(ControlCase):
    def test_save_and_restart(self):
        self.start()
        self.ctl("backend", "weight", "web/web-2", "5")
        self.ctl("backend", "drain", "web/web-1", "--save")
        shown = self.ctl("config", "show")
        self.assertEqual(self.daemon.config.read_text(encoding="utf-8"), shown)
        self.ctl("backend", "remove", "web/web-3")  # not saved
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.ctl("config", "show"), shown)
        self.assertEqual(self.generation(), 1)
        self.assertEqual(self.backend("web/web-1")["state"], "drain")
        self.assertNotEqual(self.backend("web/web-3"), None)

    def test_save_keeps_mode_link_and_folder(self):
        self.daemon.write(service())
        target = self.folder / "target.yaml"
        self.daemon.config.rename(target)
        self.daemon.config.symlink_to("target.yaml")
        target.chmod(0o640)
        os.chown(target, 12, 34)
        self.daemon.start()
        before = sorted(self.folder.iterdir())
        self.assertEqual(self.json("config", "save")["path"], str(self.daemon.config))
        self.assertTrue(self.daemon.config.is_symlink())
        info = target.stat()
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid),
                         (0o640, 12, 34))
        self.assertEqual(target.read_text(encoding="utf-8"), self.ctl("config", "show"))
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_full_disk_leaves_the_old_file(self):
        small = self.folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", small],
                                 check=False, stderr=subprocess.PIPE, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no mount here: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.daemon.config = small / "shunt.yaml"
        self.start()
        before = self.daemon.config.read_bytes()
        try:
            with open(small / "filler", "wb", buffering=0) as filler:
                while filler.write(bytes(4096)) > 0:
                    pass
        except OSError:
            pass
        self.refuse("backend", "drain", "web/web-1", "--save", status=FAILED,
                    says=["No space left", "the file is as it was",
                          "the change is in force, and not saved"])
        self.assertEqual(self.daemon.config.read_bytes(), before)
        self.assertEqual(sorted(path.name for path in small.iterdir()),
                         ["filler", "shunt.yaml"])
        self.assertEqual(self.backend("web/web-1")["state"], "drain")
        (small / "filler").unlink()
        self.ctl("config", "save")
        self.assertIn("drain", self.daemon.config.read_text(encoding="utf-8"))
        # The folder is in use until then.
        self.daemon.stop()

    def test_reload(self):
        self.start()
        self.ctl("backend", "drain", "web/web-1")
        self.assertEqual(self.json("reload")["generation"], 3)
        self.assertEqual(self.backend("web/web-1")["state"], "up")
        self.daemon.write(service(n=5), service("dns", 1, address="198.51.100.53"))
        self.ctl("reload")
        self.assertEqual([one["backends"] for one in self.json("service", "list")["services"]],
                         [5, 1])

    def test_reload_of_another_file(self):
        self.start()
        path = self.daemon.config
        self.daemon.config = self.folder / "other.yaml"
        self.daemon.write(service(n=1))
        # Relative to where shuntctl is, which is not where shuntd is.
        done = self.run_ctl("reload", "other.yaml", cwd=self.folder)
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(self.json("backend", "list")["backends"]), 1)
        self.assertEqual(self.json("status")["config"], str(path))
        self.ctl("reload")
        self.assertEqual(len(self.json("backend", "list")["backends"]), 3)

    def test_what_a_file_may_not_mean_is_told_with_a_plan_and_a_reload(self):
        self.start()
        self.assertEqual(self.json("backend", "drain", "web/web-1")["warnings"], [])
        self.assertEqual(self.json("reload")["warnings"], [])
        none_left = [{**backend, "weight": 0} for backend in backends(2)]
        self.daemon.write(service(backends=none_left, min_healthy=3))
        says = [rf"^{self.daemon.config}:\d+:\d+: warning: all backends have weight 0, ",
                rf"^{self.daemon.config}:\d+:\d+: warning: min_healthy: the service has 2 "]
        for command in (["plan", self.daemon.config], ["reload"]):
            with self.subTest(command):
                self.assertNotIn("warning", self.daemon.log.read_text(encoding="utf-8"), command)
                found = self.json(*command)["warnings"]
                self.assertEqual(len(found), 2, found)
                for line, pattern in zip(sorted(found), sorted(says)):
                    self.assertRegex(line, pattern)
                done = self.run_ctl(*command)
                self.assertEqual(sorted(done.stderr.splitlines()), sorted(found))
        # Of both reloads.
        for line in found:
            self.assertEqual(self.daemon.log.read_text(encoding="utf-8").count(line), 2)

    def test_a_bad_reload_changes_nothing(self):
        self.start()
        before = self.ctl("config", "show")
        good = self.daemon.config.read_text(encoding="utf-8")
        path = self.daemon.config
        rows = [
            ("half written", good[:len(good) // 2], BAD_USAGE, [f"{path}:1:"]),
            ("empty", "", BAD_USAGE, ["nothing is in it"]),
            ("two mistakes", good.replace("10.0.0.11", "10.0.0.1111")
             .replace('"port": 80', '"prot": 80'), BAD_USAGE, ["did you mean 'port'?",
                                                                "10.0.0.1111"]),
            ("another device", good.replace("net_null0", "net_null1"), FAILED, ["restart"]),
            ("another socket", good.replace("shunt.sock", "s.sock"), FAILED, ["restart"]),
            ("another table of flows", good.replace("1024", "4096"), FAILED, ["restart"]),
        ]
        for what, text, status, says in rows:
            with self.subTest(what):
                path.write_text(text, encoding="utf-8")
                self.refuse("reload", status=status,
                            says=[*says, "nothing is loaded; what runs goes on"])
        path.unlink()
        self.refuse("reload", status=BAD_USAGE, says=[str(path), "No such file"])
        os.mkfifo(path)
        self.refuse("reload", path, status=BAD_USAGE, says=["a regular file"])
        self.assertEqual(self.ctl("config", "show"), before)
        self.assertEqual(self.generation(), 1)

    def test_sighup_reloads(self):
        self.start()
        self.daemon.write(service(n=2))
        self.daemon.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + TIMEOUT_S
        while self.generation() == 1 and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(len(self.json("backend", "list")["backends"]), 2)


class Turns(ControlCase):
    """What is asked for while a reload's file is being read: a lease holds the reader up."""

    def setUp(self):
        super().setUp()
        # Blocked, it is kept for sigtimedwait(); ignored, it does no harm in the end.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGIO})
        self.start()
        self.daemon.write(service(n=5))
        self.held = os.open(self.daemon.config, os.O_RDONLY)
        self.addCleanup(os.close, self.held)
        self.hold()
        self.client = Connection(self.daemon.socket)
        self.addCleanup(self.client.close)

    def hold(self):
        fcntl.fcntl(self.held, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def wait_for_the_reader(self):
        """The kernel tells that somebody opens the file, who waits for us."""
        self.assertIsNotNone(signal.sigtimedwait({signal.SIGIO}, TIMEOUT_S))

    def let_go(self):
        fcntl.fcntl(self.held, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def reload(self, number):
        self.client.ask(number, "reload")
        self.wait_for_the_reader()

    def set_weight(self, number, weight):
        self.client.ask(number, "backend.weight",
                        {"service": "web", "name": "web-1", "weight": weight})

    def numbers(self, n):
        """Which calls are answered next; all as they should be."""
        found = [self.client.answer() for _ in range(n)]
        self.assertEqual([one for one in found if "result" not in one], [])
        return [one["id"] for one in found]

    def test_what_shows_does_not_wait(self):
        self.reload(1)
        self.set_weight(2, 7)
        self.client.ask(3, "status")
        shown = self.client.answer()
        self.assertEqual((shown["id"], shown["result"]["generation"]), (3, 1))
        self.assertEqual(self.generation(), 1)
        self.let_go()
        self.assertEqual(self.numbers(2), [1, 2])

    def test_changes_come_after_the_reload(self):
        self.reload(1)
        self.set_weight(2, 7)
        # There is none of that name before the reload.
        self.client.ask(3, "backend.remove", {"service": "web", "name": "web-5"})
        self.client.ask(4, "backend.add",
                        {"service": "web", "name": "web-9", "address": "10.0.0.19"})
        self.client.ask(5, "backend.down", {"service": "web", "name": "web-4"})
        self.client.ask(6, "backend.drain", {"service": "web", "name": "web-3"})
        self.client.ask(7, "backend.down", {"service": "web", "name": "web-2"})
        self.client.ask(8, "backend.up", {"service": "web", "name": "web-2"})
        self.client.ask(9, "service.add", service("dns", 1, address="198.51.100.53"))
        self.client.ask(10, "service.add", service("ntp", 1, address="198.51.100.54"))
        self.client.ask(11, "service.remove", {"name": "ntp"})
        self.let_go()
        self.assertEqual(self.numbers(11), list(range(1, 12)))
        self.assertEqual(
            [(one["service"], one["name"], one["state"], one["weight"])
             for one in self.json("backend", "list")["backends"]],
            [("web", "web-1", "up", 7), ("web", "web-2", "up", 100),
             ("web", "web-3", "drain", 100), ("web", "web-4", "down", 100),
             ("web", "web-9", "up", 100), ("dns", "dns-1", "up", 100)])
        self.assertEqual(self.generation(), 12)

    def test_a_reload_comes_after_the_changes_before_it(self):
        self.reload(1)
        self.set_weight(2, 7)
        self.client.ask(3, "reload")
        self.client.ask(4, "backend.remove", {"service": "web", "name": "web-5"})
        self.let_go()
        self.assertEqual(self.numbers(4), [1, 2, 3, 4])
        self.assertEqual(self.backend("web/web-1")["weight"], 100)
        self.assertEqual(len(self.json("backend", "list")["backends"]), 4)

    def test_a_save_comes_after_the_file_is_read(self):
        self.reload(1)
        self.client.ask(2, "config.save")
        self.client.ask(3, "status")
        self.assertEqual(self.numbers(1), [3])
        self.let_go()
        self.assertEqual(sorted(self.numbers(2)), [1, 2])
        self.assertEqual(len(self.json("backend", "list")["backends"]), 5)

    def test_changes_come_after_a_reload_that_fails(self):
        self.let_go()
        self.daemon.config.write_text("{", encoding="utf-8")
        self.hold()
        self.reload(1)
        self.set_weight(2, 7)
        # Time enough to build it, were it not to wait.
        for number in range(3, 203):
            self.client.ask(number, "status")
            shown = self.client.answer()
            self.assertEqual((shown["id"], shown["result"]["generation"]), (number, 1))
        self.let_go()
        failed = self.client.answer()
        self.assertEqual((failed["id"], failed["error"]["code"]), (1, INVALID_PARAMS))
        self.assertEqual(self.numbers(1), [2])
        self.assertEqual(self.backend("web/web-1")["weight"], 7)

    def test_changes_come_after_the_signals_before_them(self):
        self.daemon.process.send_signal(signal.SIGHUP)
        self.wait_for_the_reader()
        self.set_weight(1, 7)
        self.client.ask(2, "status")
        self.assertEqual(self.numbers(1), [2])
        self.let_go()
        self.assertEqual(self.numbers(1), [1])
        self.assertEqual(self.backend("web/web-1")["weight"], 7)
        self.assertEqual(len(self.json("backend", "list")["backends"]), 5)

    def test_changes_come_after_the_signal_that_came_while_others_waited(self):
        other = self.folder / "other.yaml"
        self.let_go()
        shutil.copy(self.daemon.config, other)
        self.hold()
        with open(other, "rb") as held:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            self.client.ask(1, "reload", {"path": str(other)})
            self.wait_for_the_reader()
            self.set_weight(2, 7)
            self.client.ask(3, "status")
            self.assertEqual(self.numbers(1), [3])
            self.daemon.process.send_signal(signal.SIGHUP)
            self.client.ask(4, "status")
            self.assertEqual(self.numbers(1), [4])
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        # The signal's file is being read; what comes now is to come after it.
        self.assertEqual(self.numbers(2), [1, 2])
        self.wait_for_the_reader()
        self.client.ask(5, "backend.drain", {"service": "web", "name": "web-2"})
        for number in range(6, 206):
            self.client.ask(number, "status")
            self.assertEqual(self.numbers(1), [number])
        self.let_go()
        self.assertEqual(self.numbers(1), [5])
        self.assertEqual(self.backend("web/web-1")["weight"], 100)
        self.assertEqual(self.backend("web/web-2")["state"], "drain")

    def test_what_comes_while_changes_wait_comes_after_them(self):
        # Also where the file is read already, and each of them has its turn still to come.
        n = 250
        self.reload(1)
        for number in range(2, n):
            self.set_weight(number, number)
        # The loop has seen them all.
        self.client.ask(n, "status")
        self.assertEqual(self.numbers(1), [n])
        late = self.connect()
        self.let_go()
        # All the while; were one of them early, there would be no web-1 to change.
        for _ in range(100):
            late.ask(1, "backend.remove", {"service": "web", "name": "web-1"})
            late.ask(2, "backend.add", {"service": "web", "name": "web-1",
                                        "address": "10.0.0.11"})
        self.assertEqual(self.numbers(n - 1), list(range(1, n)))
        self.assertEqual([late.answer().get("error") for _ in range(200)], [None] * 200)

    def test_it_stops_while_a_file_is_read(self):
        self.reload(1)
        self.set_weight(2, 7)
        # Both are there before it is told to stop.
        self.client.ask(3, "status")
        self.assertEqual(self.numbers(1), [3])
        self.daemon.process.terminate()
        refused = [self.client.answer()]
        self.let_go()
        refused.append(self.client.answer())
        self.assertEqual([(one["id"], one["error"]["message"]) for one in refused],
                         [(2, "shuntd stops"), (1, "shuntd stops")])
        self.daemon.stop()


class Plans(ControlCase):
    def plan(self, *services, **keys):
        path = self.daemon.config
        self.daemon.config = self.folder / "next.yaml"
        self.daemon.write(*services, **keys)
        self.daemon.config = path
        return self.json("plan", self.folder / "next.yaml")

    def plan_in_vain(self, *keys, **changed):
        """A plan that takes a restart, for these keys: it fails as the reload does."""
        path = self.daemon.config
        self.daemon.config = self.folder / "next.yaml"
        self.daemon.write(service(), **changed)
        self.daemon.config = path
        done = self.run_ctl("--json", "plan", self.folder / "next.yaml", status=FAILED)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["restart"], list(keys))
        refused = self.run_ctl("reload", self.folder / "next.yaml", status=FAILED).stderr
        why = f"{', '.join(keys)}: fixed at the start; restart shuntd to change "
        self.assertTrue(plan["obstacle"].startswith(why), plan["obstacle"])
        self.assertIn(plan["obstacle"], done.stderr)
        self.assertIn(plan["obstacle"], refused)
        text = self.run_ctl("plan", self.folder / "next.yaml", status=FAILED)
        self.assertEqual([line for line in text.stdout.splitlines() if line.startswith("!")],
                         [f"! {key}: takes a restart" for key in keys])
        self.assertIn("next.yaml would be refused: " + plan["obstacle"], text.stderr)
        self.assertEqual(self.generation(), 1)
        return plan

    def test_nothing_changes(self):
        self.start()
        plan = self.plan(service())
        self.assertEqual((plan["settings"], plan["services"], plan["obstacle"],
                          plan["restart"]), ([], [], None, []))
        self.assertEqual(self.ctl("plan", self.folder / "next.yaml"), "nothing changes\n")

    def test_what_changes(self):
        table = {"algorithm": "maglev", "size": 1009}
        self.start(service(table=table), service("old", 2, address="198.51.100.11"))
        changed = service(table=table, forward="gre")
        changed["backends"] = [{"name": "web-1", "address": "10.0.0.11", "state": "drain"},
                               {"name": "web-2", "address": "10.0.0.12", "weight": 50},
                               {"name": "web-9", "address": "10.0.0.19"}]
        plan = self.plan(changed, service("new", 1, address="198.51.100.12"))
        web, new, old = plan["services"]
        self.assertEqual(web["changes"], [{"key": "forward", "from": "ipip", "to": "gre"}])
        self.assertEqual(web["backends"], [
            {"name": "web-1", "change": "change",
             "changes": [{"key": "state", "from": "up", "to": "drain"}]},
            {"name": "web-2", "change": "change",
             "changes": [{"key": "weight", "from": 100, "to": 50}]},
            {"name": "web-9", "change": "add", "changes": []},
            {"name": "web-3", "change": "remove", "changes": []}])
        self.assertEqual((new["name"], new["change"], new["slots_moved"]), ("new", "add", 0))
        self.assertEqual((old["name"], old["change"], old["slots_moved"]),
                         ("old", "remove", 65537))
        self.assertEqual(self.generation(), 1)
        # What it says will move is what moves.
        self.assertEqual((web["slots"], web["flows"], plan["flows"]), (1009, 0, 0))
        # web-1 and web-3 lose all of their two thirds; the rest may move a little.
        self.assertGreaterEqual(web["slots_moved"], 672)
        self.assertLess(web["slots_moved"], 1009)

    def test_moved_slots_exactly(self):
        self.start(service(n=2))
        slots = {one["name"]: one["slots"] for one in self.json("backend", "list")["backends"]}
        plan = self.plan(service(n=1))
        self.assertEqual(plan["services"][0]["slots_moved"], slots["web-2"])
        plan = self.plan(service(n=0))
        self.assertEqual(plan["services"][0]["slots_moved"], 65537)
        self.ctl("backend", "remove", "web/web-1", "web/web-2")
        self.assertEqual(self.plan(service(n=1))["services"][0]["slots_moved"], 65537)

    def test_states_move_slots_of_their_own_alone(self):
        self.start(service(n=4))
        slots = {one["name"]: one["slots"] for one in self.json("backend", "list")["backends"]}
        changed = service(n=4)
        changed["backends"][1]["state"] = "drain"
        changed["backends"][2]["state"] = "down"
        plan = self.plan(changed)["services"][0]
        self.assertEqual(plan["slots_moved"], slots["web-2"] + slots["web-3"])
        # What it says is what comes of it; and the way back moves as many.
        self.ctl("reload", self.folder / "next.yaml")
        after = {one["name"]: one["slots"] for one in self.json("backend", "list")["backends"]}
        self.assertEqual((after["web-2"], after["web-3"], sum(after.values())), (0, 0, 65537))
        self.assertEqual(self.plan(service(n=4))["services"][0]["slots_moved"],
                         plan["slots_moved"])
        for backend in changed["backends"]:
            backend["state"] = "down"
        self.assertEqual(self.plan(changed)["services"][0]["slots_moved"], 65537)

    def test_an_overload_changes(self):
        self.start(service(table={"algorithm": "stable", "size": 1009}))
        table = {"algorithm": "stable", "size": 1009, "overload": "30%"}
        plan = self.plan(service(table=table))["services"][0]
        self.assertEqual(plan["changes"], [
            {"key": "table.overload", "from": "2%", "to": "30%"}])
        self.assertGreater(plan["slots_moved"], 0)
        plan = self.plan(service(table={"algorithm": "maglev", "size": 1009}))["services"][0]
        self.assertEqual(plan["changes"], [
            {"key": "table.algorithm", "from": "stable", "to": "maglev"},
            {"key": "table.overload", "from": "2%", "to": None}])

    def test_another_seed_hashes_all_anew(self):
        self.start()
        plan = self.plan(service(), hash_seed=7)
        self.assertEqual(plan["settings"], [{"key": "hash_seed", "from": "0", "to": "7"}])
        self.assertEqual(plan["services"][0]["slots_moved"], None)

    def test_what_takes_a_restart(self):
        self.start()
        plan = self.plan_in_vain("dataplane.workers", dataplane={"workers": 2})
        self.assertEqual(plan["settings"],
                         [{"key": "dataplane.workers", "from": 1, "to": 2}])

    def test_what_ports_have_takes_a_restart(self):
        """A device is given its MTU at the start, and so is a twin its addresses."""
        port = {"name": "wan", "device": "net_null0,no-rx=1",
                "addresses": ["192.0.2.1/24", "2001:db8::1/64"],
                "next_hop": "02:00:00:00:00:fe"}
        other = {**port, "addresses": ["192.0.2.7/24", "2001:db8::1/64"]}
        rows = [("none", {**port, "mtu": 1400}, "mtu"), ("none", other, None),
                ("tap", {**port, "mtu": 1400}, "mtu"), ("tap", other, "addresses"),
                ("tap", {**port, "addresses": port["addresses"][:1]}, "addresses"),
                ("tap", {**port, "vlan": 7}, None)]
        for kernel, changed, obstacle in rows:
            with self.subTest(kernel=kernel, changed=changed):
                self.daemon.stop()
                plane = {"kernel": kernel, "ports": [port]}
                self.start(service(), dataplane=plane)
                keys = {"dataplane": {**plane, "ports": [changed]}}
                if obstacle is None:
                    plan = self.plan(service(), **keys)
                    self.assertEqual((plan["obstacle"], plan["restart"]), (None, []))
                    self.ctl("reload", self.folder / "next.yaml")
                else:
                    plan = self.plan_in_vain(f"dataplane.ports.wan.{obstacle}", **keys)
                key, = set(changed) - set(port) or {"addresses"}
                change, = plan["settings"]
                self.assertEqual(change["key"], f"dataplane.ports.wan.{key}")
                self.assertEqual(change["to"], changed[key])

    def test_a_port_more_is_shown_whole(self):
        self.start()
        ports = [{"name": name, "device": f"net_null{i},no-rx=1",
                  "addresses": [f"192.0.{2 + i}.1/24"], "next_hop": "02:00:00:00:00:fe"}
                 for i, name in enumerate(("wan", "lan"))]
        plan = self.plan_in_vain("dataplane.ports", dataplane={"ports": ports})
        change, = plan["settings"]
        self.assertEqual(change["key"], "dataplane.ports")
        self.assertEqual([[one["name"] for one in change[side]] for side in ("from", "to")],
                         [["wan"], ["wan", "lan"]])

    def test_bounds_take_a_restart(self):
        self.start()
        plan = self.plan_in_vain(
            "dataplane.fragments.datagrams", "dataplane.fragments.waiting", "dataplane.handoff",
            "dataplane.replies.total", "dataplane.replies.source", dataplane={
                "fragments": {"datagrams": 64, "waiting": 17}, "handoff": 4096,
                "replies": {"total": 7, "source": 8}})
        self.assertEqual(plan["settings"], [
            {"key": "dataplane.fragments.datagrams", "from": 4096, "to": 64},
            {"key": "dataplane.fragments.waiting", "from": 1024, "to": 17},
            {"key": "dataplane.handoff", "from": 2048, "to": 4096},
            {"key": "dataplane.replies.total", "from": 10000, "to": 7},
            {"key": "dataplane.replies.source", "from": 100, "to": 8}])

    def test_a_vlan_and_special_packets_take_none(self):
        self.start()
        port = {"name": "wan", "device": "net_null0,no-rx=1", "vlan": 7,
                "addresses": ["192.0.2.1/24", "2001:db8::1/64"],
                "next_hop": "02:00:00:00:00:fe"}
        plan = self.plan(service(echo="drop", fragment="outer", mss_clamp=1400),
                         dataplane={"ports": [port]})
        change, = plan["settings"]
        self.assertEqual(change,
                         {"key": "dataplane.ports.wan.vlan", "from": "keep", "to": 7})
        self.assertEqual(plan["obstacle"], None)
        web, = plan["services"]
        self.assertEqual((web["changes"], web["slots_moved"]), ([
            {"key": "echo", "from": "reply", "to": "drop"},
            {"key": "fragment", "from": "inner", "to": "outer"},
            {"key": "mss_clamp", "from": None, "to": 1400}], 0))
        self.ctl("reload", self.folder / "next.yaml")
        self.assertIn("      vlan: 7\n", self.ctl("config", "show"))

    def test_zones_move_no_slot(self):
        self.start(service(n=2))
        changed = service(n=2)
        for backend in changed["backends"]:
            backend["zone"] = "a"
        found, = self.plan(changed)["services"]
        self.assertEqual((found["slots_moved"], found["backends"]), (0, [
            {"name": f"web-{i}", "change": "change",
             "changes": [{"key": "zone", "from": None, "to": "a"}]} for i in (1, 2)]))

    def test_server_ids_move_no_slot(self):
        self.start(service("q", 1, protocol="udp"))
        config = {"config_id": 0, "server_id_length": 1, "nonce_length": 4}
        changed = service("q", 1, protocol="udp", affinity="quic", quic=[config])
        changed["backends"][0]["quic_id"] = ["0a", "0b"]
        found, = self.plan(changed)["services"]
        self.assertEqual((found["slots_moved"], found["backends"]), (0, [
            {"name": "q-1", "change": "change",
             "changes": [{"key": "quic_id", "from": [], "to": ["0a", "0b"]}]}]))
        self.assertEqual(found["changes"], [
            {"key": "affinity", "from": "5-tuple", "to": "quic"},
            {"key": "quic", "from": [], "to": [
                {**config, "cid_key": None, "first_octet_encodes_cid_length": False}]}])

    def test_a_bad_file(self):
        self.start()
        path = self.folder / "bad.yaml"
        path.write_text("services: [{}]\n", encoding="utf-8")
        self.refuse("plan", path, status=BAD_USAGE, says=[f"{path}:1:12: "])
        self.refuse("plan", self.folder / "none.yaml", status=BAD_USAGE, says=["No such file"])


class Shows(ControlCase):
    def test_names_that_are_no_utf8(self):
        """Refused, and not left out: without its service a list would be of all backends."""
        self.start()
        for args in (("service", "show", "\udcff"), ("service", "remove", "\udcff"),
                     ("backend", "list", "\udcff"), ("backend", "drain", "web/\udcff"),
                     ("explain", "tcp", "\udcff:1", "198.51.100.10:80"),
                     ("plan", "\udcff"), ("reload", "\udcff")):
            with self.subTest(args[:2]):
                self.refuse(*args, status=BAD_USAGE, says=("to be UTF-8",))

    def test_a_path_from_a_folder_that_is_gone(self):
        self.start()
        gone = self.folder / "gone"
        gone.mkdir()
        done = subprocess.run(
            ["sh", "-c", 'rmdir "$PWD" && exec "$1" reload x.yaml', "sh",
             pathlib.Path(SHUNTCTL).resolve()], cwd=gone, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S,
            env={**os.environ, "SHUNT_SOCKET": str(self.daemon.socket)})
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("where x.yaml is cannot be found out: ", done.stderr)

    def test_status(self):
        self.start(service(), service("dns", 1, address="198.51.100.53"))
        status = self.json("status")
        self.assertEqual(status["pid"], self.daemon.process.pid)
        self.assertRegex(status["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual([status[key] for key in ("generation", "config", "workers", "services",
                                                  "backends", "unreached")],
                         [1, str(self.daemon.config), 1, 2, 4, 0])
        self.assertGreaterEqual(status["uptime_seconds"], 0)
        port, = status["ports"]
        self.assertRegex(port["mac"], r"^[0-9a-f:]{17}$")
        self.assertEqual([port[key] for key in ("name", "driver", "kernel_interface", "mtu",
                                                "rx_queues", "tx_queues")],
                         ["wan", "net_null", None, 1500, 1, 1])
        self.assertEqual(status["rpc"]["clients"], 1)
        memory = status["memory"]
        self.assertAlmostEqual(memory["flow_bytes"], 20, delta=0.01)
        self.assertAlmostEqual(memory["slot_bytes"], 2, delta=0.01)
        self.assertGreater(memory["service_bytes"], 0)
        self.assertGreater(memory["backend_bytes"], 128)
        text = self.ctl("status")
        for word in ("generation 1", str(self.daemon.config), "wan", "net_null",
                     "20.0 a flow"):
            self.assertIn(word, text)

    def test_workers_are_those_that_run(self):
        """What auto came to at the start, when all CPUs were there to be counted."""
        self.start(dataplane={"workers": "auto"})
        self.assertEqual(self.json("status")["workers"], len(self.json("stats")["workers"]))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU")
    def test_workers_have_their_cpus_alone(self):
        self.start(service())
        cpus = {}
        for task in pathlib.Path(f"/proc/{self.daemon.process.pid}/task").iterdir():
            name = (task / "comm").read_text(encoding="ascii").strip()
            cpus[f"{name} {task.name}"] = os.sched_getaffinity(int(task.name))
        workers = {name: own for name, own in cpus.items() if "worker" in name}
        (worker, own), = workers.items()
        self.assertEqual(own, {max(os.sched_getaffinity(0))})
        for name, other in cpus.items():
            if name != worker:
                self.assertFalse(other & own, name)

    def test_stats(self):
        self.start()
        stats = self.json("stats")
        packets = stats["packets"]
        self.assertEqual(list(packets),
                         ["received", "forwarded", "replied", "to_kernel", "dropped"])
        self.assertEqual(packets["received"], sum(packets.values()) - packets["received"])
        self.assertEqual(sum(stats["drops"].values()), packets["dropped"])
        self.assertIn("no_service", stats["drops"])
        web, = stats["services"]
        self.assertEqual([web[key] for key in ("name", "packets", "bytes", "flows", "table")],
                         ["web", 0, 0, 0, {"algorithm": "maglev", "size": 65537}])
        self.assertEqual(list(web["backends"][0]),
                         ["name", "packets", "bytes", "flows", "slots", "state", "weight",
                          "health", "reached"])
        self.assertEqual(sum(one["slots"] for one in web["backends"]), 65537)

    def read_some(self, *args):
        """What a command that never ends writes within two of its seconds."""
        with subprocess.Popen([SHUNTCTL, "--socket", self.daemon.socket, *args],
                              stdout=subprocess.PIPE, text=True) as running:
            time.sleep(2.5)
            running.terminate()
            return running.communicate(timeout=TIMEOUT_S)[0]

    def test_watch(self):
        self.start()
        lines = self.read_some("stats", "--watch", "--json").splitlines()
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertEqual(json.loads(line)["schema"], 1)
        text = self.read_some("stats", "-w")
        self.assertGreaterEqual(text.count("received"), 2)
        self.assertIn("PACKETS/S", text)

    def test_tables_are_aligned(self):
        self.start(service("wéb", 2), service("x", 1, address="198.51.100.12"))
        head, *rows = self.ctl("backend", "list").splitlines()
        self.assertEqual([row.split()[0] for row in rows], ["wéb/wéb-1", "wéb/wéb-2", "x/x-1"])
        column = head.index("ADDRESS")
        for row in rows:
            self.assertEqual(row[column - 1:column + 3], " 10.")
        self.assertEqual(len(head.split()), COLUMNS)

    def test_options_of_all(self):
        done = self.run_ctl("--help")
        for word in ("status", "stats", "top", "service add", "backend weight", "explain",
                     "plan", "reload", "config show", "--socket", "--json", "--save"):
            self.assertIn(word.split()[-1], done.stdout)
        self.assertRegex(self.run_ctl("-V").stdout, r"^shuntctl \d+\.\d+\.\d+\n$")
        rows = [
            ("nothing", [], "which command?"),
            ("no such command", ["statz"], "did you mean 'stats'?"),
            ("half a command", ["backend"], "which command of 'backend'?"),
            ("no such second word", ["backend", "drian"], "did you mean 'backend drain'?"),
            ("too many arguments", ["status", "now"], "expected: shuntctl status"),
            ("too few arguments", ["backend", "weight", "web/web-1"], "SERVICE/NAME N"),
            ("another command's option", ["status", "--weight", "5"], "--weight is not for"),
            ("another command's --watch", ["status", "--watch"], "--watch is not for"),
            ("another command's --save", ["reload", "--save"], "--save is not for"),
            ("no such option", ["--frobnicate"], "frobnicate"),
            ("no time", ["--timeout", "1s", "status"], "--timeout: expected seconds"),
            ("a time below none", ["--timeout=-1", "status"], "--timeout: expected seconds"),
            ("too much time", ["-t", "1000001", "status"], "0 to 1000000"),
        ]
        for what, args, says in rows:
            with self.subTest(what):
                self.refuse(*args, status=BAD_USAGE, says=[says, "shuntctl --help"])

    def test_no_daemon(self):
        self.refuse("status", status=FAILED, says=[str(self.daemon.socket), "--config",
                                                   "--socket", "SHUNT_SOCKET"])
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(self.daemon.socket))
        dead.close()
        self.refuse("status", status=FAILED, says=["Connection refused", "--config"])

    def test_workers_that_are_late_are_asked_again(self):
        """Over the same connection, and no longer than it takes to connect."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.daemon.socket))
        listener.listen(1)
        asked = []

        def answer(n_late):
            connection = listener.accept()[0]
            with connection, connection.makefile("rwb") as file:
                for line in file:
                    asked.append(json.loads(line)["method"])
                    said = ({"error": {"code": WORKERS_LATE, "message": "the workers are late"}}
                            if len(asked) <= n_late else
                            {"result": {"schema": 1, "flows": [], "cursor": None}})
                    file.write(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"],
                                           **said}).encode() + b"\n")
                    file.flush()

        for n_late, options in ((3, ()), (10 ** 9, ("--timeout", "1"))):
            asked.clear()
            server = threading.Thread(target=answer, args=(n_late,), daemon=True)
            server.start()
            if n_late == 3:
                self.ctl(*options, "flows", "list")
                self.assertEqual(asked, ["flows.list"] * 4)
            else:
                self.refuse(*options, "flows", "list", status=FAILED, says=["workers are late"])
                self.assertGreater(len(asked), 1)
            server.join()


class Protocol(ControlCase):
    def error(self, connection, method, params, code, says):
        answer = connection.call(method, params)
        self.assertEqual(answer["error"]["code"], code, answer)
        self.assertIn(says, answer["error"]["message"])

    def test_params_are_read_strictly(self):
        self.start()
        connection = self.connect()
        rows = [
            ("status", {"x": 1}, "takes none"),
            ("status", [1], "object"),
            ("service.show", {"nmae": "web"}, "the nearest is 'name'"),
            ("service.show", {}, "'name' is missing"),
            ("service.show", {"name": 7}, "'name' is to be a text"),
            ("service.add", None, "object"),
            ("service.add", {"name": "n\n", "address": VIP, "protocol": "tcp", "port": 1},
             "name"),
            ("service.add", {"name": "n", "address": [VIP], "protocol": "tcp", "port": 1},
             "found a list"),
            ("service.add", {"name": "n", "addres": VIP}, "did you mean 'address'?"),
            ("backend.add", {"service": "web", "name": "n", "address": VIP, "wieght": 1},
             "did you mean 'weight'?"),
            ("backend.add", {"service": "web", "address": VIP}, "no key 'name'"),
            ("backend.add", {"name": "n", "address": VIP}, "'service' is missing"),
            ("backend.weight", {"service": "web", "name": "web-1"}, "weight: expected"),
            ("backend.weight", {"service": "web", "name": "web-1", "weight": -1},
             "weight: expected"),
            ("backend.weight", {"service": "web", "name": "web-1", "weight": 1.5},
             "weight: expected"),
            ("backend.drain", {"service": "web", "name": "web-1", "weight": 1}, "unknown"),
            ("reload", {"path": 1}, "'path' is to be a text"),
            ("plan", {}, "'path' is missing"),
            ("explain", {"protocol": "sctp"}, "tcp or udp"),
            ("explain", {"protocol": "tcp", "client": CLIENT, "destination": f"{VIP}:80"},
             "ADDRESS:PORT"),
            ("explain", {"protocol": "tcp", "client": f"{CLIENT}:1",
                         "destination": f"{VIP}:65536"}, "ADDRESS:PORT"),
            ("explain", {"protocol": "tcp", "client": f"{CLIENT}:1",
                         "destination": f"[{VIP6}]:80"}, "one family"),
        ]
        for method, params, says in rows:
            with self.subTest(f"{method} {params}"):
                self.error(connection, method, params, INVALID_PARAMS, says)
        self.error(connection, "trace", {}, UNKNOWN_METHOD, "'trace'")
        self.assertEqual(connection.call("status")["result"]["generation"], 1)

    def test_fifty_clients_at_once(self):
        self.start(service(n=0))
        answers = {}

        def work(i):
            connection = Connection(self.daemon.socket)
            try:
                answers[i] = [
                    connection.call("backend.add", {"service": "web", "name": f"b{i}",
                                                    "address": f"10.1.0.{i + 1}"}),
                    connection.call("backend.weight", {"service": "web", "name": f"b{i}",
                                                       "weight": i + 1}),
                    connection.call("stats")]
            finally:
                connection.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 50)
        for added, weighed, stats in answers.values():
            # A change is in force when it is answered, with all those before it.
            self.assertLess(added["result"]["generation"], weighed["result"]["generation"])
            self.assertLessEqual(weighed["result"]["generation"],
                                 stats["result"]["generation"])
        self.assertEqual(self.generation(), 101)
        found = {one["name"]: (one["weight"], one["address"])
                 for one in self.json("backend", "list")["backends"]}
        self.assertEqual(found, {f"b{i}": (i + 1, f"10.1.0.{i + 1}") for i in range(50)})
        self.assertEqual(self.json("status")["rpc"]["accepted"], 53)


class Clients(ControlCase):
    """Those who take more than their part, and the others."""

    def log(self):
        return self.daemon.log.read_text(encoding="utf-8")

    def test_who_asks_much_and_does_not_read_holds_nobody_up(self):
        many = [{"name": f"web-{i}", "address": f"10.1.{i // 250}.{i % 250 + 1}"}
                for i in range(4000)]
        self.start(service(backends=many))
        line = b'{"jsonrpc":"2.0","id":1,"method":"backend.list"}\n'
        n_sent = 0
        for _ in range(5):
            client = self.connect()
            client.socket.setblocking(False)
            # Small enough to be taken whole, or not at all.
            for _ in range(1000):
                with contextlib.suppress(BlockingIOError):
                    n_sent += client.socket.send(line) == len(line)
        self.assertGreater(n_sent, 500)
        # As many as are told of here were carried out: one of each, and these.
        for number in range(1, 51):
            rpc = self.json("status")["rpc"]
            self.assertLessEqual(rpc["requests"], 5 + number)
        self.assertEqual((rpc["clients"], rpc["stalled"], rpc["evicted"]), (6, 0, 0))

    def test_all_places_taken_by_idle_clients(self):
        self.start()
        idle = [self.connect() for _ in range(64)]
        working = self.connect()  # there may be more in the backlog
        for number in (1, 2):
            self.assertEqual(self.json("status")["rpc"]["evicted"], number)
            idle.append(self.connect())
        told = json.loads(idle[0].file.readline())["error"]
        self.assertRegex(told["message"], "^closed after [0-9]+ s without a request")
        self.assertEqual(idle[0].file.readline(), b"")
        self.assertIn("64 clients", working.answer()["error"]["message"])
        # Told, and not again within the minute.
        self.assertEqual(self.log().count("was closed for a new one"), 1)

    def test_a_thousand_connections_are_waited_out(self):
        """Also where none of those that have a place may be closed yet."""
        self.start()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        held = [socket.socket(socket.AF_UNIX) for _ in range(1000)]
        for client in held:
            self.addCleanup(client.close)
            client.connect(str(self.daemon.socket))  # it waits while the backlog is full
            with contextlib.suppress(BrokenPipeError):
                client.sendall(b"{")  # more is to come

        def let_go():
            for client in held:
                client.close()

        done = self.run_ctl("--timeout", "1", "status", status=FAILED)
        self.assertIn("64 clients are connected already", done.stderr)
        timer = threading.Timer(2, let_go)
        timer.start()
        self.addCleanup(timer.join)
        self.ctl("backend", "drain", "web/web-1")
        # Once, however often it was tried.
        self.assertEqual(self.json("status")["generation"], 2)

    def ask_without_pause(self, over, counts, place):
        """One client, and another when it is closed, until it is over."""
        while not over.is_set():
            try:
                connection = Connection(self.daemon.socket)
                while not over.is_set() and "result" in connection.call("backend.list"):
                    counts[place] += 1
            except (OSError, ValueError):  # closed for another
                pass
            connection.close()

    def test_all_places_taken_by_those_who_ask_without_pause(self):
        self.start()
        over = threading.Event()
        counts = [0] * 64
        threads = [threading.Thread(target=self.ask_without_pause, args=(over, counts, i))
                   for i in range(64)]
        for thread in threads:
            thread.start()
        try:
            end = time.monotonic() + TIMEOUT_S
            while min(counts) < 32 and time.monotonic() < end:
                time.sleep(0.02)
            for _ in range(5):
                rpc = self.json("status")["rpc"]  # at once, without another try
            self.assertGreaterEqual(rpc["evicted"], 1)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertIn("one that asked the most was closed for a new one", self.log())

    def test_other_users_do_not_take_all_places(self):
        self.start()
        self.folder.chmod(0o755)
        self.daemon.socket.chmod(0o666)
        program = (
            "import socket, sys\n"
            "clients = [socket.socket(socket.AF_UNIX) for _ in range(63)]\n"
            "for client in clients:\n"
            "    client.connect(sys.argv[1])\n"
            "clients[0].sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\\n')\n"
            "clients[0].recv(1)\n"
            "print(clients[62].recv(1000).decode(), end='', flush=True)\n"
            "sys.stdin.read()\n")
        others = subprocess.Popen(["/usr/bin/python3", "-c", program, self.daemon.socket],
                                  user="nobody", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            told = json.loads(others.stdout.readline())["error"]["message"]
            self.assertEqual(told, "62 clients are connected already, and no more are taken")
            connections = [self.connect() for _ in range(2)]
            for connection in connections:
                rpc = connection.call("status")["result"]["rpc"]
            self.assertEqual((rpc["clients"], rpc["evicted"], rpc["refused"]), (64, 0, 1))
        finally:
            others.communicate(timeout=TIMEOUT_S)

    def test_a_file_is_read_with_the_rights_of_who_asks(self):
        """Of one who may speak to the daemon, and read less than it."""
        self.start()
        self.folder.chmod(0o755)
        self.daemon.socket.chmod(0o666)
        secret, own = self.folder / "secret", self.folder / "own.yaml"
        secret.write_text("root:$y$j9T$secret:1\n", encoding="ascii")
        secret.chmod(0o600)
        own.write_text(self.daemon.config.read_text("ascii").replace('"web-3"', '"web-9"'),
                       encoding="ascii")
        own.chmod(0o644)
        for method in (["plan"], ["reload"], ["config", "push"]):
            done = self.run_ctl(*method, secret, status=BAD_USAGE, user="nobody")
            self.assertIn(f"{secret}: cannot be opened: Permission denied", done.stderr)
            self.assertNotIn("$y$", done.stdout + done.stderr)
        program = (
            "import json, socket, sys\n"
            "with socket.socket(socket.AF_UNIX) as client:\n"
            "    client.connect(sys.argv[1])\n"
            "    for method in ('plan', 'reload', 'config.push'):\n"
            "        client.sendall(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method,\n"
            "            'params': {'path': sys.argv[2]}}).encode() + b'\\n')\n"
            "        print(client.makefile().readline(), end='')\n")
        said = subprocess.run(["/usr/bin/python3", "-c", program, self.daemon.socket, secret],
                              user="nobody", check=True, text=True, timeout=TIMEOUT_S,
                              stdout=subprocess.PIPE).stdout
        self.assertEqual(said.count("shuntd opens files by their path for root alone"), 3, said)
        self.assertNotIn("$y$", said + self.log())
        self.assertIn("+ backend web-9", self.run_ctl("plan", own, user="nobody").stdout)
        self.run_ctl("reload", own, user="nobody")
        self.assertIsNotNone(self.backend("web/web-9"))
        self.run_ctl("reload", user="nobody")
        self.assertIsNone(self.backend("web/web-9"))

    def test_files_that_come_with_requests(self):
        self.start()
        connection = self.connect()
        good = self.daemon.config.read_text("ascii")

        def ask(flags, text=good, n=1):
            path = self.folder / "passed"
            path.write_text(text, encoding="ascii")
            files = [os.open(path, flags) for _ in range(n)]
            os.lseek(files[0], 7, os.SEEK_SET)
            try:
                line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "plan",
                                   "params": {"path": "/a/name"}}).encode() + b"\n"
                socket.send_fds(connection.socket, [line], files)
            finally:
                for file in files:
                    os.close(file)
            return connection.answer()

        def n_open():
            connection.call("status")  # after all that was answered before
            return len(list(pathlib.Path(f"/proc/{self.daemon.process.pid}/fd").iterdir()))

        self.assertEqual(ask(os.O_RDONLY)["result"]["path"], "/a/name")
        n_before = n_open()
        self.assertEqual(ask(os.O_RDWR, n=3)["result"]["services"], [])
        self.assertIn("/a/name: cannot be opened: ",
                      ask(os.O_WRONLY)["error"]["message"])
        self.assertIn("/a/name:1:1: unknown key 'x'",
                      ask(os.O_RDONLY, "x: 1\n")["error"]["message"])
        # With what takes none; and one that is never asked about.
        with open("/dev/null", "rb") as null:
            for _ in range(10):
                socket.send_fds(connection.socket, [b" "], [null.fileno()])
            self.assertIn("result", connection.call("status"))
            self.assertEqual(n_open(), n_before)
            socket.send_fds(connection.socket, [b" "], [null.fileno()])
            self.assertIn("/a/name: expected a regular file, found a device",
                          connection.call("plan", {"path": "/a/name"})["error"]["message"])
        self.assertEqual(n_open(), n_before)

    def test_a_daemon_that_does_not_answer(self):
        self.start()
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            for args in (["status"], ["backend", "drain", "web/web-1"]):
                self.refuse("--timeout", "1", *args, status=FAILED,
                            says=[str(self.daemon.socket), "none came in time",
                                  "shuntd is stopped, or busy", "--timeout SECONDS"])
            waiting = subprocess.Popen([SHUNTCTL, "--socket", self.daemon.socket, "-t", "0",
                                        "status"], stdout=subprocess.DEVNULL)
            self.addCleanup(waiting.wait, TIMEOUT_S)
            with self.assertRaises(subprocess.TimeoutExpired):
                waiting.wait(1.5)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(waiting.wait(TIMEOUT_S), DONE)

    def test_why_a_build_failed_is_one_line(self):
        self.start()
        pid = self.daemon.process.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        used = 1024 * int(status.partition("VmSize:")[2].split()[0])
        connection = self.connect()
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        # Of the table's 32 MiB there is room for less.
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (24 << 20), before[1]))
        answer = connection.call("service.add", {
            "name": "big", "address": "198.51.100.99", "protocol": "tcp", "port": 1,
            "table": {"algorithm": "maglev", "size": 16777213}})
        resource.prlimit(pid, resource.RLIMIT_AS, before)
        self.assertEqual(answer["error"]["message"],
                         "there is not enough memory for the tables")
        self.assertIn("shuntd: error: the change is undone: there is not enough memory for the "
                      "tables\n", self.log())
        self.assertNotIn("\n\n", self.log())
        self.assertEqual(self.generation(), 1)

    def test_what_is_undone_stays_so_though_it_could_be_built_later(self):
        """Health has it built a second time, before it is known that the first build failed."""
        self.start(service(n=1))
        before = self.ctl("config", "show")
        pid = self.daemon.process.pid
        slow = [service(f"slow-{k}", address=f"198.51.100.{100 + k}", backends=backends(128),
                        table={"algorithm": "rendezvous", "size": 1048576}) for k in range(4)]
        big = service("big", 1, address="198.51.100.99",
                      table={"algorithm": "maglev", "size": 16777213})
        # Who was there before is used until it fails, and does so while the tables are built.
        checked = service(n=1, health={"type": "tcp", "interval": "100ms", "timeout": "100ms",
                                       "fall": 1})
        self.daemon.write(checked, *slow, big)
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        used = 1024 * int(status.partition("VmSize:")[2].split()[0])
        limit = resource.prlimit(pid, resource.RLIMIT_AS)
        connection = self.connect()
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (48 << 20), limit[1]))
        answer = connection.call("reload")
        resource.prlimit(pid, resource.RLIMIT_AS, limit)
        self.assertEqual(answer["error"]["message"],
                         "there is not enough memory for the tables")
        # It is built still, and after it what was there before; unless it has failed, too.
        end = time.monotonic() + TIMEOUT_S / 2
        while self.generation() != 3 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.ctl("config", "show"), before, self.log())
        self.ctl("backend", "drain", "web/web-1")
        self.ctl("backend", "up", "web/web-1")
        self.assertEqual(self.ctl("config", "show"), before)

    def test_a_small_limit_of_open_files_is_named(self):
        if pathlib.Path("/proc/sys/vm/nr_hugepages").read_text(encoding="ascii") != "0\n":
            self.skipTest("with huge pages the EAL has a file for each")
        started = []
        for n in range(10, 35):
            with self.subTest(n):
                self.addCleanup(self.daemon.stop)
                if self.starts_with_files(n):
                    started.append(n)
                    self.json("status")
                    self.daemon.stop()
                self.assertIn(f"the limit of open files is {n}, and ", self.log())
        self.assertEqual(started, list(range(started[0], 35)))

    def starts_with_files(self, n):
        """Whether; where not, it has ended, and not well."""
        self.daemon.write(service())
        with open(self.daemon.log, "wb") as log:
            process = subprocess.Popen(
                ["unshare", "--net", SHUNTD, "--config", self.daemon.config], stderr=log,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        self.daemon.process = process
        end = time.monotonic() + TIMEOUT_S
        while process.poll() is None and "ready" not in self.log():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        if process.poll() is None:
            return True
        self.daemon.process = None
        self.assertEqual(process.returncode, FAILED, self.log())
        return False

    def test_a_limit_of_open_files_is_raised_where_that_is_allowed(self):
        self.daemon.write(service())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertGreater(hard, 200)
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))
        try:
            self.daemon.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertRegex(self.log(), r"^shuntd: starting, version [0-9.]+\nshuntd: ready\n$")
        clients = [self.connect() for _ in range(63)]
        self.assertEqual(clients[-1].call("status")["result"]["rpc"]["clients"], 63)


class Explains(ControlCase):
    """What control says of a packet is what the packet path does with it."""

    def replay(self, flows):
        """Decisions and outputs of shunt-replay for one packet of each flow."""
        packets = []
        for proto, client, sport, vip, dport in flows:
            make = wire.tcp if proto == "tcp" else wire.udp
            packets.append(captures.Packet(wire.ether(make(client, vip, sport, dport))))
        (self.folder / "in.pcap").write_bytes(captures.pcap(packets))
        (self.folder / "running.yaml").write_text(self.ctl("config", "show"), encoding="utf-8")
        subprocess.run(
            [SHUNT_REPLAY, "--config", self.folder / "running.yaml", "--decisions",
             self.folder / "decisions", "--write", self.folder / "out.pcap",
             self.folder / "in.pcap"], check=True, stdout=subprocess.DEVNULL,
            timeout=TIMEOUT_S)
        lines = (self.folder / "decisions").read_text(encoding="utf-8").splitlines()
        output = captures.read((self.folder / "out.pcap").read_bytes())
        return [json.loads(line) for line in lines], [one.data for one in output.packets]

    def check_outer(self, outer, frame):
        """The header that was written has what was told of it."""
        size = 20 if frame[14] >> 4 == 4 else 40
        src, dst = (frame[26:30], frame[30:34]) if size == 20 else (frame[22:38], frame[38:54])
        if outer["mode"] == "l2":
            self.assertEqual((outer["source"], outer["overhead"]), (None, 0))
            return
        self.assertEqual((wire.address(outer["source"]), wire.address(outer["destination"])),
                         (src, dst))
        udp = frame[14 + size:18 + size]
        if outer["mode"] in ("gue", "vxlan"):
            self.assertEqual((outer["udp_source_port"], outer["udp_port"]),
                             (int.from_bytes(udp[:2], "big"), int.from_bytes(udp[2:], "big")))
        else:
            self.assertEqual((outer["udp_source_port"], outer["udp_port"]), (None, None))

    def test_it_is_what_shunt_replay_decides(self):
        six = [{"name": f"six-{i}", "address": f"2001:db8:9::{i}"} for i in range(1, 5)]
        mac = [{"name": f"mac-{i}", "address": f"192.0.2.{10 + i}",
                "mac": f"02:00:00:00:00:1{i}"} for i in range(3)]
        self.start(
            service(n=5, forward="gue"),
            service("six", address=VIP6, forward="vxlan", backends=six, vni=9),
            service("udp", protocol="udp", port=53, forward="gre", affinity="source-ip",
                    table={"algorithm": "ring", "size": 4096}),
            service("any", address="198.51.100.0/24", protocol="any", port="any",
                    forward="ipip", table={"algorithm": "rendezvous", "size": 1000}),
            service("mac", address="198.51.100.20", forward="l2", backends=mac),
            service("none", address="198.51.100.30", backends=[]),
            hash_seed=2**64 - 3)
        # Of what was changed since, too.
        self.ctl("backend", "drain", "web/web-2")
        self.ctl("backend", "down", "six/six-1")
        self.ctl("backend", "weight", "any/any-1", "7")
        self.ctl("backend", "add", "udp/new", "10.0.0.77")
        draw = random.Random(2)
        targets = [("tcp", VIP, 80), ("tcp", VIP6, 80), ("udp", VIP, 53), ("tcp", VIP, 81),
                   ("udp", "198.51.100.77", 9), ("tcp", "198.51.100.20", 80),
                   ("tcp", "198.51.100.30", 80), ("tcp", "192.0.2.99", 80)]
        flows = []
        for proto, vip, port in targets * 25:
            client = (CLIENT6 + f"{draw.randrange(1, 999)}" if ":" in vip
                      else f"203.0.113.{draw.randrange(1, 255)}")
            flows.append((proto, client, draw.randrange(1024, 65536), vip, port))
        decisions, frames = self.replay(flows)
        connection = self.connect()
        for flow, decision in zip(flows, decisions, strict=True):
            proto, client, sport, vip, dport = flow
            params = {"protocol": proto, "client": self.endpoint(client, sport),
                      "destination": self.endpoint(vip, dport)}
            told = connection.call("explain", params)["result"]
            for key in ("verdict", "reason", "service", "slot", "backend"):
                self.assertEqual(told[key], decision[key], (flow, key))
            if told["verdict"] == "forward":
                self.check_outer(told["outer"], frames.pop(0))
            else:
                self.assertEqual(told["outer"], None)
        self.assertEqual(frames, [])
        self.assertEqual({one["verdict"] for one in decisions}, {"forward", "drop"})

    def test_tunnels_that_a_service_refuses(self):
        def udp(name, end, port, **keys):
            return service(name, address=f"198.51.100.{end}", protocol="udp", port=port, **keys)

        self.start(udp("any", 41, "any", forward="ipip"),
                   udp("carries", 42, "any", forward="ipip", carry=["vxlan"]),
                   udp("again", 43, 4789, forward="gue"),
                   udp("twice", 44, 4789, forward="vxlan", carry=["vxlan"]),
                   udp("once", 45, 6081, forward="ipip"),
                   udp("own", 46, 53, forward="vxlan", tunnel_port=4799))
        rows = [(41, 4789, "unsupported_l4"), (41, 6080, "unsupported_l4"),
                (41, 6081, "unsupported_l4"), (41, 4799, "unsupported_l4"), (41, 53, None),
                (42, 4789, None), (42, 4799, None), (42, 6080, "unsupported_l4"),
                (43, 4789, "unsupported_l4"), (44, 4789, None), (45, 6081, None), (46, 53, None)]
        flows = [("udp", CLIENT, 1000, f"198.51.100.{end}", port) for end, port, _ in rows]
        decisions, _ = self.replay(flows)
        for (end, port, reason), decision in zip(rows, decisions, strict=True):
            with self.subTest(end=end, port=port):
                told = self.json("explain", "udp", f"{CLIENT}:1000",
                                 f"198.51.100.{end}:{port}")
                self.assertEqual((told["verdict"], told["reason"]),
                                 ("drop" if reason else "forward", reason))
                self.assertEqual((decision["verdict"], decision["reason"]),
                                 (told["verdict"], told["reason"]))
        self.assertIn("unsupported_l4",
                      self.ctl("explain", "udp", f"{CLIENT}:1000", "198.51.100.41:4789"))

    @staticmethod
    def endpoint(address, port):
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def test_as_it_is_typed(self):
        self.start()
        text = self.ctl("explain", "tcp", f"{CLIENT}:51515", f"{VIP}:80")
        told = self.json("explain", "tcp", f"{CLIENT}:51515", f"{VIP}:80")
        self.assertEqual([told[key] for key in ("service", "flow", "entry", "port",
                                                "next_hop")],
                         ["web", "miss", None, "wan", "02:00:00:00:00:fe"])
        for word in ("forward", "web", told["hash"], str(told["slot"]), told["backend"],
                     told["backend_address"], "ipip from 192.0.2.1", "flow      miss\n",
                     "next hop  02:00:00:00:00:fe, port wan\n"):
            self.assertIn(word, text)
        nobody = self.json("explain", "udp", f"{CLIENT}:1", f"{VIP}:80")
        self.assertEqual([nobody[key] for key in ("service", "flow", "entry", "port",
                                                  "next_hop", "outer")], [None] * 6)
        self.assertIn("no_service", self.ctl("explain", "udp", f"{CLIENT}:1", f"{VIP}:80"))
        self.refuse("explain", "tcp", CLIENT, f"{VIP}:80", status=BAD_USAGE,
                    says=["ADDRESS:PORT"])

    def test_sources_that_begin_no_flow(self):
        self.start()
        for source in ("127.0.0.1", "224.0.0.1", "192.0.2.1", VIP):
            with self.subTest(source):
                told = self.json("explain", "tcp", f"{source}:1", f"{VIP}:80")
                self.assertEqual([told[key] for key in ("verdict", "reason", "service", "backend",
                                                        "slot", "outer")],
                                 ["drop", "martian_source", "web", None, None, None])

    def ports(self, **keys):
        """Two, of which a backend leaves by the one that has a next hop."""
        return {"ports": [{"name": "wan", "device": "net_null0,no-rx=1",
                           "addresses": ["192.0.2.1/24", "2001:db8::1/64"]},
                          {"name": "lan", "device": "net_null1,no-rx=1",
                           "addresses": ["192.0.3.1/24"], **keys}]}

    def test_the_source_is_of_the_port_it_leaves_by(self):
        self.start(service(forward="gre"), service("six", address=VIP6, backends=[
            {"name": "six-1", "address": "2001:db8:9::1"}]),
                   dataplane=self.ports(next_hop="02:00:00:00:00:33"))
        told = self.json("explain", "tcp", f"{CLIENT}:51515", f"{VIP}:80")
        self.assertEqual((told["verdict"], told["port"], told["next_hop"],
                          told["outer"]["source"]),
                         ("forward", "lan", "02:00:00:00:00:33", "192.0.3.1"))
        # The port has no address of the family to write.
        told = self.json("explain", "tcp", f"[{CLIENT6}1]:51515", f"[{VIP6}]:80")
        self.assertEqual((told["verdict"], told["reason"], told["port"], told["next_hop"],
                          told["outer"]), ("drop", "no_next_hop", "lan", None, None))

    def test_without_a_way_there_is_none_to_tell(self):
        self.start(dataplane=self.ports())
        told = self.json("explain", "tcp", f"{CLIENT}:51515", f"{VIP}:80")
        self.assertEqual((told["verdict"], told["reason"], told["port"], told["next_hop"],
                          told["outer"]), ("drop", "no_next_hop", None, None, None))
        self.assertEqual(told["backend"].partition("-")[0], "web")
        self.assertIn("next hop  none, port -\n",
                      self.ctl("explain", "tcp", f"{CLIENT}:51515", f"{VIP}:80"))


def main():
    for name in ("SHUNTD", "SHUNTCTL", "SHUNT_REPLAY"):
        if not pathlib.Path(os.environ.get(name, "")).is_file():
            sys.exit(f"{name} does not name its program; meson sets it")
    # unittest runs no cleanups where it is interrupted by a time limit's SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
