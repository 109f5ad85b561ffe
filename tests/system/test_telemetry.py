#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd's figures by DPDK's telemetry, held against shuntctl and the metrics.

Ports are DPDK's null and pcap devices, and DPDK's runtime folder is the test's own, so this takes
no privileges and no namespaces. SHUNTD and SHUNTCTL name the programs.
"""

import contextlib
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

from test_metrics import (SHUNTCTL, SHUNTD, TIMEOUT_S, VIP_EMPTY, MetricsCase, backends,
                          service)

SCRIPT = shutil.which("dpdk-telemetry.py")
COMMANDS = ["backend", "backends", "drops", "packets", "ports", "service", "services", "status", "worker",
            "workers"]
NO_PARAMETER = ("status", "packets", "drops", "workers", "ports")
PAGE, SHOWN_MAX, NAME_MAX = 50, 127, 255
N_CLIENTS = 8


def shown(name):
    """A name as an answer has it."""
    text = ""
    for byte in name.encode("utf-8"):
        more = chr(byte) if 0x20 <= byte < 0x7f else f"%{byte:02X}"
        if len(text + more) > SHOWN_MAX:
            break
        text += more
    return text


class Client:
    """Of a telemetry socket: one command at a time."""

    def __init__(self, path):
        end = time.monotonic() + TIMEOUT_S
        greeting = b""
        # DPDK closes the connections of more than ten clients, those that have just left included.
        while greeting == b"" and time.monotonic() < end:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            # Not by settimeout(): it would fail at once where others wait to be accepted.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                                   struct.pack("@ll", TIMEOUT_S, 0))
            try:
                self.socket.connect(str(path))
                self.socket.settimeout(TIMEOUT_S)
                greeting = self.socket.recv(1024)
            finally:
                if greeting == b"":
                    self.socket.close()
        self.info = json.loads(greeting)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, command, parameter=None):
        text = command if parameter is None else f"{command},{parameter}"
        self.socket.send(text.encode("utf-8"))
        answer = json.loads(self.socket.recv(self.info["max_output_len"]))
        (name, found), = answer.items()
        if name != command:
            raise ValueError(f"{text}: an answer to {name}")
        return found


class TelemetryCase(MetricsCase):
    def setUp(self):
        super().setUp()
        environment = unittest.mock.patch.dict(os.environ,
                                               {"RUNTIME_DIRECTORY": str(self.folder)})
        environment.start()
        self.addCleanup(environment.stop)

    def socket_path(self, path=None):
        """Of the daemon with a control socket."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", str(path or self.socket)[1:])
        return self.folder / "dpdk" / name[-48:] / "dpdk_telemetry.v2"

    def start(self, *services):
        super().start(*services)
        # It says that it is ready just before it answers.
        self.wait_until(lambda: self.tell("status") is not None)

    def client(self):
        return Client(self.socket_path())

    def tell(self, command, parameter=None):
        with self.client() as client:
            return client.ask(f"/shunt/{command}", parameter)


class Values(TelemetryCase):
    def start_with_traffic(self):
        self.capture_traffic()
        self.start(service(), service("none", address=VIP_EMPTY, backends=[],
                                      table={"algorithm": "stable", "overload": "3%"}))
        self.wait_until(lambda: self.tell("packets")["received"] == 69)

    def test_they_are_those_of_shuntctl(self):
        self.start_with_traffic()
        stats = self.ctl("stats")
        status = self.ctl("status")
        self.assertEqual(stats["packets"]["forwarded"], 60)
        self.assertEqual(self.tell("packets"), stats["packets"])
        self.assertEqual(self.tell("drops"), stats["drops"])
        told = self.tell("status")
        for name in ("version", "pid", "generation", "workers", "services", "backends",
                     "unreached"):
            self.assertEqual(told[name], status[name], name)
        self.assertEqual(told["build_ns"], round(status["build_seconds"] * 1e9))
        self.assertGreaterEqual(told["uptime_seconds"], int(status["uptime_seconds"]))
        for wanted in stats["services"]:
            told = self.tell("service", wanted["name"])
            for name in ("packets", "bytes", "flows"):
                self.assertEqual(told[name], wanted[name], name)
            self.assertEqual((told["algorithm"], told["size"]),
                             (wanted["table"]["algorithm"], wanted["table"]["size"]))
            self.assertEqual(told.get("overload"), wanted["table"].get("overload"))
            self.assertEqual(told["backends"], [one["name"] for one in wanted["backends"]])
            for one in wanted["backends"]:
                told = self.tell("backend", f"{wanted['name']}/{one['name']}")
                for name in ("packets", "bytes", "flows", "slots", "state"):
                    self.assertEqual(told[name], one[name], name)

    def test_they_are_those_of_the_metrics(self):
        self.start_with_traffic()
        metrics = self.scrape()
        packets = self.tell("packets")
        for name in ("received", "forwarded", "replied", "to_kernel"):
            self.assertEqual(packets[name], metrics.get(f"{name}_packets_total"), name)
        for reason, count in self.tell("drops").items():
            self.assertEqual(count, metrics.get("dropped_packets_total", reason=reason))
        for name in self.tell("service", "web")["backends"]:
            told = self.tell("backend", f"web/{name}")
            labels = {"service": "web", "backend": name}
            for figure in ("packets", "bytes", "flows"):
                self.assertEqual(told[figure], metrics.get(f"backend_{figure}_total", **labels))
            self.assertEqual(told["slots"], metrics.get("backend_slots", **labels))
            self.assertEqual(told["weight"], metrics.get("backend_weight", **labels))
            self.assertEqual(metrics.get("backend_info", **labels, address=told["address"],
                                         state=told["state"]), 1)

    def test_workers_are_those_of_the_others(self):
        self.start_with_traffic()
        (wanted,) = self.ctl("stats")["workers"]
        metrics = self.scrape()
        told = self.tell("workers")
        one = self.tell("worker", 0)
        self.assertEqual({name: [one[name]] for name in one if name not in ("turns", "polls")},
                         {name: value for name, value in told.items() if name != "polls"})
        self.assertGreaterEqual(told["polls"][0], wanted["polls"])
        self.assertGreaterEqual(one["polls"], told["polls"][0])
        self.assertEqual((one["busy_polls"], one["flow_entries"], one["turns_ns"]),
                         (wanted["busy_polls"], wanted["flow_entries"],
                          wanted["turns"]["total_ns"]))
        self.assertEqual(one["flow_entries"], metrics.get("flow_entries"))
        self.assertEqual(one["turns"],
                         [bucket["count"] for bucket in wanted["turns"]["buckets"]])
        self.assertEqual(sum(one["turns"]), one["busy_polls"])
        longest = max(i for i, count in enumerate(one["turns"]) if count > 0)
        self.assertEqual(one["turns_below_ns"], 2**longest)

    def test_the_service_is_as_configured(self):
        self.start(service(port=8080), service("all", address="2001:db8::/64",
                                                    protocol="any", port="any"))
        web = self.tell("service", "web")
        self.assertEqual((web["address"], web["protocol"], web["port"], web["total"]),
                         ("198.51.100.10", "tcp", 8080, 3))
        found = self.tell("service", "all")
        self.assertEqual((found["address"], found["protocol"], found["port"]),
                         ("2001:db8::/64", "any", 0))

    def test_every_command_has_a_help(self):
        self.start()
        with self.client() as client:
            self.assertEqual(client.info["pid"], self.process.pid)
            self.assertEqual([name for name in client.ask("/") if name.startswith("/shunt/")],
                             [f"/shunt/{name}" for name in COMMANDS])
            for name in COMMANDS:
                told = client.ask("/help", f"/shunt/{name}")
                self.assertIn("arameter", told[f"/shunt/{name}"])

    @unittest.skipUnless(SCRIPT, "no dpdk-telemetry.py (Debian: dpdk-dev)")
    def test_the_script_of_dpdk_connects(self):
        self.start()
        prefix = self.socket_path().parent.name
        listed = subprocess.run([SCRIPT, "--list"], check=True, text=True, timeout=TIMEOUT_S,
                                stdout=subprocess.PIPE).stdout
        self.assertIn(prefix, listed.split())
        done = subprocess.run([SCRIPT, "--file-prefix", prefix], check=True, text=True,
                              input="/shunt/services\n", stdout=subprocess.PIPE,
                              timeout=TIMEOUT_S)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1]),
                         {"/shunt/services": {"total": 1, "first": 0, "services": ["web"]}})


class Names(TelemetryCase):
    def test_lists_come_in_pages(self):
        services = [service(f"s-{i}", port=1 + i, backends=[]) for i in range(2 * PAGE + 3)]
        services[7]["backends"] = backends(PAGE)
        services[8]["backends"] = backends(PAGE + 1)
        self.start(*services)
        names = [one["name"] for one in services]
        for first in (None, 0, 1, PAGE, 2 * PAGE, 2 * PAGE + 2):
            begin = first or 0
            self.assertEqual(self.tell("services", first),
                             {"total": len(names), "first": begin,
                              "services": names[begin:begin + PAGE]})
        for place, parameter, begin in ((7, "s-7", 0), (8, "s-8", 0), (8, "s-8/0", 0),
                                        (8, f"s-8/{PAGE}", PAGE), (9, "s-9", 0)):
            names = [one["name"] for one in services[place]["backends"]]
            self.assertEqual(self.tell("backends", parameter),
                             {"total": len(names), "first": begin,
                              "backends": names[begin:begin + PAGE]})
        for first in (len(services), -1, "1x", "x", " 1", "99999999999999999999", "0x1"):
            self.assertIsNone(self.tell("services", first), first)
        for first in (f"s-8/{PAGE + 1}", "s-8/", "s-8/-1", "s-9/0/0", "s-9/1", "/", "s-8//1"):
            self.assertIsNone(self.tell("backends", first), first)

    def test_odd_names_are_shown_and_found(self):
        odd = ['"', "\\", 'a"b\\"', "\\n", "a,b={}", " x", "größer 漢字", "}", "%41", "A", "%",
               "x,0", "7"]
        self.start(*(service(name, port=1 + i, backends=[{"name": name, "address": "10.0.0.1"}])
                     for i, name in enumerate(odd)))
        self.assertEqual(self.tell("services")["services"], [shown(name) for name in odd])
        for i, name in enumerate(odd):
            for text in (name, shown(name)):
                self.assertEqual(self.tell("service", text)["port"], 1 + i, text)
                self.assertEqual(self.tell("service", text)["backends"], [shown(name)])
                self.assertEqual(self.tell("backends", text)["total"], 1)
                self.assertEqual(self.tell("backend", f"{text}/{text}")["address"], "10.0.0.1")

    def test_the_longest_names_fit_an_answer(self):
        long = ['"' * (NAME_MAX - 4) + f"{i:04}" for i in range(PAGE + 1)]
        alike = "z" * SHOWN_MAX
        self.start(service("quotes", backends=[{"name": name, "address": f"10.0.0.{i + 1}"}
                                               for i, name in enumerate(long)]),
                   *(service(name, port=1 + i, backends=[])
                     for i, name in enumerate((alike + "1", alike + "2", "y" + alike, "ö" * 100))))
        self.assertEqual(self.tell("service", "quotes")["backends"], ['"' * SHOWN_MAX] * PAGE)
        self.assertEqual(self.tell("backends", f"quotes/{PAGE}")["backends"],
                         ['"' * SHOWN_MAX])
        self.assertEqual(self.tell("backend", f"quotes/{long[PAGE]}")["address"], "10.0.0.51")
        self.assertEqual(self.tell("services")["services"],
                         ["quotes", alike, alike, ("y" + alike)[:SHOWN_MAX], "%C3%B6" * 21])
        self.assertEqual(self.tell("service", alike + "2")["port"], 2)
        self.assertEqual(self.tell("service", ("y" + alike)[:SHOWN_MAX])["port"], 3)
        self.assertIsNone(self.tell("service", alike))  # which?
        self.assertIsNone(self.tell("backend", "quotes/" + '"' * SHOWN_MAX))

    def test_what_is_not_there_is_null(self):
        self.start(service(), service("none", address=VIP_EMPTY, backends=[]))
        rows = [(name, parameter) for name in NO_PARAMETER for parameter in ("0", "web", ",")]
        rows += [(name, None) for name in ("service", "backends", "backend", "worker")]
        rows += [("service", text) for text in ("we", "web1", "WEB", "web/web-1", "x" * 900, "/")]
        rows += [("backends", text) for text in ("we", "webs", "none/0", "x" * 900, "%%n%s")]
        rows += [("backend", text) for text in ("web", "web/", "web/web", "web/web-4", "/web-1",
                                                "web//web-1", "none/web-1", "web/web-1/", "/",
                                                "x" * 400 + "/" + "x" * 400)]
        rows += [("worker", text) for text in ("1", "-1", "x", "0 ", "4294967296",
                                               "18446744073709551616", "0,0")]
        with self.client() as client:
            for name, text in rows:
                self.assertIsNone(client.ask(f"/shunt/{name}", text), (name, text))
            self.assertIsNone(client.ask("/shunt/nothing"))
        self.assertEqual(self.tell("status")["services"], 2)


class Sockets(TelemetryCase):
    def launch_other(self, path, *args):
        """A second daemon, with another control socket and no metrics."""
        config = self.folder / f"{path.name}.yaml"
        text = json.loads(self.config.read_text(encoding="utf-8"))
        text["control"] = {"socket": str(path), "metrics": "off"}
        config.write_text(json.dumps(text), encoding="utf-8")
        log = self.folder / f"{path.name}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen([SHUNTD, "--config", config, *args], stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until(lambda: "shuntd: ready" in log.read_text(encoding="utf-8")
                        or process.poll() is not None)
        self.assertIsNone(process.poll(), log.read_text(encoding="utf-8"))
        return process

    def pid_at(self, path):
        with Client(path) as client:
            return client.info["pid"]

    def test_two_daemons_have_a_socket_each(self):
        self.start()
        other = self.folder / "other.sock"
        process = self.launch_other(other)
        self.assertEqual(self.pid_at(self.socket_path()), self.process.pid)
        self.assertEqual(self.pid_at(self.socket_path(other)), process.pid)
        process.terminate()
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 0)
        self.assertFalse(self.socket_path(other).parent.exists())
        self.assertEqual(self.tell("status")["pid"], self.process.pid)

    def test_two_of_one_prefix_have_a_socket_each(self):
        self.start()
        prefix = self.socket_path().parent.name
        process = self.launch_other(self.folder / "other.sock", "--eal",
                                    f"--file-prefix={prefix}")
        self.assertEqual(self.pid_at(self.socket_path()), self.process.pid)
        self.assertEqual(self.pid_at(f"{self.socket_path()}:1"), process.pid)
        process.terminate()
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 0)
        self.assertEqual(self.tell("status")["pid"], self.process.pid)

    def test_a_killed_one_leaves_its_place_to_the_next(self):
        self.start()
        for _ in range(2):
            self.process.kill()
            self.process.wait()
            self.assertTrue(self.socket_path().exists())
            self.start()
            self.assertEqual(self.tell("status")["pid"], self.process.pid)
            self.assertEqual([path.name for path in self.socket_path().parent.iterdir()],
                             ["dpdk_telemetry.v2"])

    def test_nothing_is_left_behind(self):
        self.start()
        self.assertTrue(self.socket_path().exists())
        self.stop()
        self.assertEqual(list((self.folder / "dpdk").iterdir()), [])

    def test_a_long_path_gives_its_end(self):
        self.socket = self.folder / ("long" * 12 + ".sock")
        self.start()
        self.assertEqual(len(self.socket_path().parent.name), 48)

    def test_telemetry_can_be_turned_off(self):
        self.start()
        other = self.folder / "other.sock"
        self.launch_other(other, "--eal", "--no-telemetry")
        self.assertFalse(self.socket_path(other).exists())
        self.assertEqual(self.ctl("status")["pid"], self.process.pid)

    def test_without_a_folder_it_starts_all_the_same(self):
        (self.folder / "file").write_text("", encoding="ascii")
        for folder in ("/nonexistent", str(self.folder / "file"), "/proc",
                       str(self.folder) + "/x" * 40):
            with self.subTest(folder):
                os.environ["RUNTIME_DIRECTORY"] = folder
                MetricsCase.start(self)
                self.assertIn("it has no telemetry", self.log_text())
                self.assertEqual(self.ctl("status")["pid"], self.process.pid)
                self.stop()

    @unittest.skipUnless(os.geteuid() == 0, "not root: it cannot be another user")
    def test_another_user_starts_with_a_folder_and_without(self):
        nobody = pwd.getpwnam("nobody")
        shutil.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        del os.environ["RUNTIME_DIRECTORY"]
        self.write(service())
        self.config.chmod(0o644)
        environment = {key: value for key, value in os.environ.items()
                       if key != "XDG_RUNTIME_DIR"}
        rows = [("unwritable", {"XDG_RUNTIME_DIR": "/root"}, True),
                ("writable", {"XDG_RUNTIME_DIR": str(self.folder)}, False),
                ("unset: /tmp, where another user may have been first", {}, None)]
        is_new = not os.path.exists("/tmp/dpdk")
        for title, more, is_deaf in rows:
            with self.subTest(title):
                self.start_as(nobody, {**environment, **more})
                if is_deaf is not None:
                    self.assertEqual("it has no telemetry" in self.log_text(), is_deaf)
                    self.assertEqual(self.socket_path().exists(), not is_deaf)
                self.stop()
        if is_new:
            os.rmdir("/tmp/dpdk")

    def start_as(self, user, environment):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [SHUNTD, "--config", self.config], stderr=log, env=environment,
                user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.wait_until(lambda: "shuntd: ready" in self.log_text()
                        or self.process.poll() is not None)
        self.assertIsNone(self.process.poll(), self.log_text())


class Crowd(TelemetryCase):
    def ask_on(self, names, is_over, failures, number):
        """Each client asks of its own backend: another's answer is a failure."""
        asked = 0
        try:
            with self.client() as client:
                for name in itertools.cycle(names):
                    if is_over.is_set():
                        break
                    told = client.ask("/shunt/backend", f"web/{name}")
                    if told["weight"] != 1 + int(name.partition("-")[2]):
                        raise ValueError(f"{name}: {told}")
                    for command in NO_PARAMETER:
                        if client.ask(f"/shunt/{command}") is None:
                            raise ValueError(command)
                    if len(client.ask("/shunt/services")["services"]) < 1:
                        raise ValueError("no service")
                    asked += 1
        except (OSError, ValueError, KeyError, TypeError) as error:
            failures.append(f"client {number}: {error!r}")
        if asked == 0:
            failures.append(f"client {number} has not asked")

    def test_many_ask_while_it_reloads(self):
        self.device = "net_null0"
        known = [{**one, "weight": 1 + int(one["name"].partition("-")[2])}
                 for one in backends(4 * N_CLIENTS)]
        self.start(service(backends=known))
        is_over = threading.Event()
        failures = []
        clients = [threading.Thread(target=self.ask_on, args=(
            [one["name"] for one in known[i::N_CLIENTS]], is_over, failures, i))
            for i in range(N_CLIENTS)]
        for client in clients:
            client.start()
        try:
            for generation in range(2, 52):
                more = [service(f"more-{i}", port=1000 + i) for i in range(generation % 5)]
                self.write(service(backends=known + backends(generation % 7, 100)), *more)
                self.reload(generation)
        finally:
            is_over.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.tell("status")["generation"], 51)

    def test_it_stops_while_many_ask(self):
        for _ in range(5):
            self.start()
            clients = [threading.Thread(target=self.ask_until_the_end)
                       for _ in range(N_CLIENTS)]
            for client in clients:
                client.start()
            self.tell("status")
            self.stop()
            for client in clients:
                client.join()

    def ask_until_the_end(self):
        with contextlib.suppress(OSError, ValueError), self.client() as client:
            while True:
                client.ask("/shunt/service", "web")


if __name__ == "__main__":
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main()
