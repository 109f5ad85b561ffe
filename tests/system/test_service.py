#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd under systemd: what it tells it, and its log.

systemd is played by a socket of the test's. SHUNTD names the program.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SHUNTD = os.environ.get("SHUNTD", "")
# Errors of one file that are told.
N_TOLD = 1000
# Of one start or word, also under sanitizers on a busy machine.
TIMEOUT_S = 60


# A command, after a word into a system log that is the socket FOLDER/syslog.
IN_DEV = """
folder=$1
shift
# Behind the other /dev they would be mounted, and not found.
if mountpoint -q /dev/hugepages; then
        umount /dev/hugepages
fi
mkdir "$folder/dev"
mount -t tmpfs none "$folder/dev"
for name in null zero random urandom; do
        touch "$folder/dev/$name"
        mount --bind "/dev/$name" "$folder/dev/$name"
done
touch "$folder/dev/log"
mount --bind "$folder/syslog" "$folder/dev/log"
mount --rbind "$folder/dev" /dev
logger --socket /dev/log --rfc3164 here
exec "$@"
"""


class ServiceCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-service-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.systemd.close)
        self.systemd.bind(str(self.folder / "notify"))
        self.systemd.settimeout(TIMEOUT_S)
        self.config = self.folder / "shunt.yaml"
        self.process = None
        self.status = None  # the last that it told
        self.addCleanup(self.kill)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def write(self, n_backends):
        plane = {"workers": 1, "kernel": "none", "idle": "adaptive", "idle_sleep": "1ms",
                 "flow_entries": 1024,
                 "ports": [{"name": "wan", "device": "net_null0,no-rx=1",
                            "addresses": ["192.0.2.1/24"],
                            "next_hop": "02:00:00:00:00:fe"}]}
        services = [{"name": "web", "address": "198.51.100.10", "protocol": "tcp", "port": 80,
                     "backends": [{"name": f"web-{i}", "address": f"10.0.0.{i + 1}"}
                                  for i in range(n_backends)]}]
        self.config.write_text(json.dumps(
            {"dataplane": plane, "services": services,
             "control": {"socket": str(self.folder / "shunt.sock"), "metrics": "off"}}),
            encoding="utf-8")

    def start(self, notify="notify", **environment):
        self.write(3)
        kept = {key: value for key, value in os.environ.items()
                if key not in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")}
        if notify is not None:
            kept["NOTIFY_SOCKET"] = str(self.folder / notify)
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen([SHUNTD, "--config", self.config], stderr=log,
                                            env={**kept, **environment})

    def log_text(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def told(self):
        """The next words, as a dictionary; a status on the way is kept."""
        while True:
            text = self.systemd.recv(65536).decode("utf-8")
            words = dict(line.split("=", 1) for line in text.splitlines())
            if list(words) != ["STATUS"]:
                return words
            self.status = words["STATUS"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(timeout=TIMEOUT_S), 0, self.log_text())

    def reload(self):
        before_us = time.monotonic_ns() // 1000
        self.process.send_signal(signal.SIGHUP)
        words = self.told()
        self.assertEqual(words.pop("RELOADING"), "1")
        now_us = time.monotonic_ns() // 1000
        self.assertIn(int(words.pop("MONOTONIC_USEC")), range(before_us, now_us + 1))
        self.assertEqual(words, {})
        self.assertEqual(self.told(), {"READY": "1"})

    def ask(self, method, **params):
        """The socket that has the answer to come."""
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(TIMEOUT_S)
        client.connect(str(self.folder / "shunt.sock"))
        client.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                                   "params": params}).encode("ascii") + b"\n")
        return client

    def answer(self, client):
        return json.loads(client.makefile(encoding="utf-8").readline())

    def write_wrong(self, n_errors):
        path = self.folder / "wrong.yaml"
        path.write_text("services:\n" + "- 1\n" * n_errors
                        + "dataplane: {ports: [{name: a, device: b}]}\n", encoding="ascii")
        return str(path)


class Notifications(ServiceCase):
    def test_start_reloads_and_stop(self):
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        self.assertIn("shuntd: ready", self.log_text())
        self.write(5)
        self.reload()
        self.reload()
        self.stop()
        self.assertEqual(self.told(), {"STOPPING": "1"})
        self.assertEqual(self.nothing_for(0.3), [])

    def test_a_reload_that_fails_is_over_too(self):
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        rows = [
            ("no YAML", "{", "is not loaded"),
            ("another socket", self.config.read_text(encoding="utf-8").replace(
                "shunt.sock", "other.sock"),
             "control.socket: fixed at the start; restart shuntd to change it"),
        ]
        for what, text, says in rows:
            with self.subTest(what):
                self.config.write_text(text, encoding="utf-8")
                self.reload()
                self.assertIn(says, self.log_text())
                self.assertIn(self.status.removeprefix("reload refused: "), self.log_text())
                self.assertRegex(self.status, "^reload refused: .+")
        self.write(4)
        self.reload()
        self.assertEqual(self.status, "")
        self.stop()

    def test_a_reload_by_shuntctl_that_fails_is_told(self):
        """As `systemctl reload` does it."""
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        good = self.config.read_text(encoding="utf-8")
        for what, text in (("no YAML", "{"), ("two errors", "services:\n- 1\n- 2\n"),
                           ("another socket", good.replace("shunt.sock", "other.sock"))):
            with self.subTest(what):
                self.config.write_text(text, encoding="utf-8")
                said = self.answer(self.ask("reload"))["error"]["message"]
                self.assertEqual(self.nothing_for(0.1), [])
                self.assertEqual(self.status, f"reload refused: {said.splitlines()[0]}")
                self.config.write_text(good, encoding="utf-8")
                self.assertIn("result", self.answer(self.ask("reload")))
                self.assertEqual(self.nothing_for(0.1), [])
                self.assertEqual(self.status, "")
        self.stop()

    def test_a_reload_waits_for_nobody(self):
        """Whatever is in the file's place: it is refused, and shuntd goes on."""
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})

        def listen():
            there = socket.socket(socket.AF_UNIX)
            self.addCleanup(there.close)
            there.bind(str(self.config))

        rows = [
            ("a socket", listen, "a regular file, found a socket"),
            ("a device", lambda: self.config.symlink_to("/dev/zero"),
             "a regular file, found a device"),
            ("a folder", self.config.mkdir, "a regular file, found a directory"),
            ("a pipe", lambda: os.mkfifo(self.config), "a regular file, found a pipe"),
        ]
        for what, put, says in rows:
            with self.subTest(what):
                if self.config.is_dir():
                    self.config.rmdir()
                else:
                    self.config.unlink()
                put()
                self.reload()
                self.assertIn(says, self.log_text())
        self.config.unlink()
        self.write(4)
        self.reload()
        self.stop()

    def test_a_thousand_errors_of_a_file_are_told(self):
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        for n_errors in (N_TOLD, N_TOLD + 1, 50 * N_TOLD):
            with self.subTest(n_errors):
                path = self.write_wrong(n_errors)
                said = self.answer(self.ask("plan", path=path))["error"]["message"]
                lines = said.split("\n")
                expected = [f"{path}:{k + 2}:3: " for k in range(N_TOLD)]
                if n_errors > N_TOLD:
                    expected.append(f"{path}: ... and more: {N_TOLD} errors are shown")
                self.assertEqual([line[:len(place)] for line, place in zip(lines, expected)],
                                 expected)
                self.assertEqual(len(lines), len(expected))
        self.stop()

    def test_a_stop_does_not_wait_for_what_is_read(self):
        """Files of millions of items, of which reading the first has begun."""
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        path = self.write_wrong(15_000_000)
        clients = [self.ask(method, path=path) for method in ("plan", "reload", "reload")]
        # Not begun yet is the same: nobody waits for it then.
        time.sleep(0.2)
        self.stop()
        for client in clients:
            self.assertEqual(self.answer(client)["error"]["message"], "shuntd stops")

    def test_a_stop_does_not_wait_for_a_file_that_another_holds(self):
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.start()
        self.assertEqual(self.told(), {"READY": "1"})
        with open(self.config, "rb+") as held:
            # Who opens it waits until this process has let go of it.
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            clients = [self.ask("plan", path=str(self.config)), self.ask("reload")]
            time.sleep(0.2)
            self.stop()
        for client in clients:
            self.assertEqual(self.answer(client)["error"]["message"], "shuntd stops")

    def nothing_for(self, seconds):
        """What is told in that time."""
        found = []
        self.systemd.settimeout(seconds)
        try:
            while True:
                found.append(self.told())
        except TimeoutError:
            return found

    def test_a_start_that_fails_is_not_ready(self):
        self.start()
        self.kill()
        self.nothing_for(0.1)
        self.config.write_text("services: 7", encoding="utf-8")
        done = subprocess.run([SHUNTD, "--config", self.config], check=False,
                              stderr=subprocess.DEVNULL, timeout=TIMEOUT_S,
                              env={**os.environ, "NOTIFY_SOCKET": str(self.folder / "notify")})
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.nothing_for(0.1), [])

    def test_the_watchdog_is_told_twice_in_its_time(self):
        self.start(WATCHDOG_USEC="2000000")
        while self.told() != {"READY": "1"}:
            pass
        times = []
        for _ in range(4):
            self.assertEqual(self.told(), {"WATCHDOG": "1"})
            times.append(time.monotonic())
        # Never early; late on a busy machine, yet in time on the whole.
        self.assertGreater((times[3] - times[0]) / 3, 0.7)
        self.assertLess((times[3] - times[0]) / 3, 1.8)
        # Not while it is stopped: then systemd may act.
        self.process.send_signal(signal.SIGSTOP)
        self.nothing_for(0.3)
        self.assertEqual(self.nothing_for(1.5), [])
        self.process.send_signal(signal.SIGCONT)
        self.systemd.settimeout(TIMEOUT_S)
        self.assertEqual(self.told(), {"WATCHDOG": "1"})
        self.stop()

    def test_another_process_watchdog_is_not_ours(self):
        self.start(WATCHDOG_USEC="200000", WATCHDOG_PID="1")
        self.assertEqual(self.told(), {"READY": "1"})
        self.assertEqual(self.nothing_for(0.5), [])
        self.stop()

    def test_it_runs_without_systemd(self):
        for notify in (None, "nobody-here"):
            with self.subTest(notify):
                self.start(notify)
                end = time.monotonic() + TIMEOUT_S
                while "shuntd: ready" not in self.log_text():
                    self.assertLess(time.monotonic(), end)
                    self.assertIsNone(self.process.poll(), self.log_text())
                    time.sleep(0.02)
                self.process.send_signal(signal.SIGHUP)
                self.stop()


class Log(ServiceCase):
    """A line for each change and each failure, with its level where stderr is the journal."""

    def start_ready(self, **environment):
        self.start(**environment)
        self.assertEqual(self.told(), {"READY": "1"})

    def start_journal(self):
        """The log is what JOURNAL_STREAM names, as it is of a service of systemd's."""
        log = self.folder / "log"
        log.touch()
        info = log.stat()
        self.start_ready(JOURNAL_STREAM=f"{info.st_dev}:{info.st_ino}")

    def done(self, method, **params):
        answer = self.answer(self.ask(method, **params))
        self.assertIn("result", answer)
        return answer["result"]

    def refused(self, method, **params):
        return self.answer(self.ask(method, **params))["error"]["message"]

    def new_lines(self, act):
        """What act() adds to the log."""
        before = len(self.log_text())
        act()
        return self.log_text()[before:].splitlines()

    def test_each_change_that_took_effect(self):
        self.start_ready()
        one = {"service": "web", "name": "web-1"}
        service = {"name": "dns", "address": "198.51.100.11", "protocol": "udp", "port": 53,
                   "backends": [{"name": "d", "address": "10.0.0.9"}]}
        rows = [
            ("backend.drain", one, "backend.drain web/web-1"),
            ("backend.down", one, "backend.down web/web-1"),
            ("backend.up", one, "backend.up web/web-1"),
            ("backend.weight", {**one, "weight": 7}, "backend.weight web/web-1 7"),
            ("backend.remove", one, "backend.remove web/web-1"),
            ("backend.add", {**one, "address": "10.0.0.7"}, "backend.add web/web-1"),
            ("service.add", service, "service.add dns"),
            ("service.remove", {"name": "dns"}, "service.remove dns"),
            ("reload", {}, f"reload of {self.config}"),
        ]
        for generation, (method, params, what) in enumerate(rows, 2):
            with self.subTest(method):
                self.assertEqual(self.new_lines(lambda: self.done(method, **params)),
                                 [f"shuntd: generation {generation}: {what}"])
        self.assertEqual(self.new_lines(self.reload),
                         [f"shuntd: generation {len(rows) + 2}: reload of {self.config}"])
        self.assertEqual(self.new_lines(lambda: self.done("status")), [])
        self.stop()

    def test_each_file_that_is_refused(self):
        """By its first error and how many more there are; that is in the answer whole."""
        self.start_ready()
        path = self.write_wrong(3)
        for method in ("plan", "reload"):
            with self.subTest(method):
                said = []
                lines = self.new_lines(lambda: said.append(self.refused(method, path=path)))
                first, *more = said[0].splitlines()
                self.assertGreater(len(more), 0)
                self.assertEqual(lines, [f"shuntd: error: {method} of {path} failed: {first}; "
                                         f"and {len(more)} more"])
        self.config.write_text(self.config.read_text(encoding="utf-8").replace(
            "shunt.sock", "other.sock"), encoding="utf-8")
        said = []
        lines = self.new_lines(lambda: said.append(self.refused("reload")))
        self.assertEqual(lines, [f"shuntd: error: reload of {self.config} failed: {said[0]}"])
        self.stop()

    def test_a_name_cannot_forge_a_line(self):
        self.start_ready()
        lines = self.new_lines(lambda: self.refused("plan", path="/x\nshuntd: ready"))
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("shuntd: error: plan of /x?shuntd: ready failed: "),
                        lines)
        self.stop()

    def test_levels_in_the_journal(self):
        self.start_journal()
        self.assertRegex(self.log_text(), r"^<6>shuntd: starting, version [0-9.]+\n")
        self.assertIn("<6>shuntd: ready\n", self.log_text())
        self.assertEqual(
            self.new_lines(lambda: self.done("backend.drain", service="web", name="web-1")),
            ["<5>shuntd: generation 2: backend.drain web/web-1"])
        path = self.write_wrong(3)
        lines = self.new_lines(lambda: self.refused("reload", path=path))
        self.assertEqual([line[:10] for line in lines], ["<3>shuntd:"])
        self.config.write_text("services:\n- 1\n- 2\n", encoding="ascii")
        lines = self.new_lines(self.reload)
        self.assertGreater(len(lines), 2)
        self.assertEqual({line[:3] for line in lines}, {"<3>"}, lines)
        self.assertIn("is not loaded", lines[-1])
        self.assertEqual(self.new_lines(self.stop), ["<6>shuntd: stopping"])

    def test_levels_of_a_start_that_fails(self):
        log = self.folder / "log"
        self.config.write_text("services:\n- 1\n- 2\n", encoding="ascii")
        with open(log, "wb") as to:
            info = log.stat()
            done = subprocess.run(
                [SHUNTD, "--config", self.config], check=False, stderr=to, timeout=TIMEOUT_S,
                env={**os.environ, "JOURNAL_STREAM": f"{info.st_dev}:{info.st_ino}"})
        self.assertEqual(done.returncode, 2)
        lines = self.log_text().splitlines()
        self.assertGreater(len(lines), 1)
        self.assertEqual({line[:3] for line in lines}, {"<3>"}, lines)

    def test_drivers_do_not_write_into_the_system_log(self):
        """Where the unit has stderr go alone. There is another /dev here, with a log of ours."""
        if os.geteuid() != 0:
            self.skipTest("mounts take root")
        self.write(3)
        self.config.write_text(self.config.read_text(encoding="utf-8").replace(
            "net_null0,no-rx=1", "net_memif,socket=/nosuch"), encoding="utf-8")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            log.bind(str(self.folder / "syslog"))
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-euc", IN_DEV, "sh", self.folder, SHUNTD,
                 "--config", self.config], check=False, text=True, stderr=subprocess.PIPE,
                timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("memif_connect_client", done.stderr)
            self.assertTrue(log.recv(4096, socket.MSG_DONTWAIT).endswith(b": here"))
            with self.assertRaises(BlockingIOError):
                print(log.recv(4096, socket.MSG_DONTWAIT))

    def test_another_one_is_no_journal_of_ours(self):
        """Its JOURNAL_STREAM is inherited by what it starts with another stderr."""
        self.start_ready(JOURNAL_STREAM="1:2")
        self.assertIn("shuntd: ready\n", self.log_text())
        self.assertNotIn("<", self.log_text())
        self.stop()


def main():
    if not pathlib.Path(SHUNTD).is_file():
        sys.exit("SHUNTD does not name its file; meson sets it")
    # unittest runs no cleanups where it is interrupted by a time limit's SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
