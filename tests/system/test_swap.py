#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Changes, reloads and ends of shuntd under live traffic: who is harmed, and who must not be.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import contextlib
import itertools
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

PORT = lab.PORTS["ipip"]
SERVICE = "ipip-v4"
N_CHANGES = 100
# Requests, at least, from one change to the next.
N_BETWEEN = 15
# As long as a retransmission or two: in time, but not out of patience.
PATIENCE_S = 15


def connect(family, path):
    """A request under way: its socket, and what it calls itself."""
    made = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET,
                         socket.SOCK_STREAM)
    try:
        made.settimeout(PATIENCE_S)
        made.connect((lab.VIP[family], PORT))
        made.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    except OSError:
        made.close()
        raise
    return made


def read_answer(connection):
    """The body, to the last byte that was promised."""
    chunks = []
    while True:
        chunk = connection.recv(65536)
        if not chunk:
            break
        chunks.append(chunk)
    head, _, body = b"".join(chunks).partition(b"\r\n\r\n")
    length = [line.split(b":")[1] for line in head.split(b"\r\n")
              if line.lower().startswith(b"content-length:")]
    if not head.startswith(b"HTTP/1.1 200 ") or len(body) != int(length[0]):
        raise OSError(f"cut short after {len(body)} bytes: {head!r}")
    return body.decode()


class Load:
    """Short requests, one after the other in each of some threads, of both families."""

    def __init__(self, n_threads=4):
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.running = {}
        self.answers = {}
        self.failures = []  # (begun, ended, words)
        self.threads = [threading.Thread(target=self.repeat, args=(i,), daemon=True)
                        for i in range(n_threads)]
        for thread in self.threads:
            thread.start()

    def repeat(self, place):
        NETWORK.enter("client")
        for family in itertools.cycle(lab.FAMILIES):
            if self.is_over.is_set():
                break
            begun = time.monotonic()
            with self.lock:
                self.running[place] = begun
            try:
                with connect(family, "/") as connection:
                    name = read_answer(connection).strip()
                with self.lock:
                    self.answers[name] = self.answers.get(name, 0) + 1
            except OSError as error:
                with self.lock:
                    self.failures.append((begun, time.monotonic(), f"IPv{family}: {error}"))
            # All four threads' worth of it, the machine has to share with nginx and shuntd.
            time.sleep(0.001)
        with self.lock:
            self.running.pop(place, None)

    def wait_for_those_under_way(self):
        """Until none of the requests is left that are under way now, and some more are over."""
        now = time.monotonic()
        n = self.n_over()

        def is_none_left():
            with self.lock:
                is_left = any(begun <= now for begun in self.running.values())
            return not is_left and self.n_over() >= n + N_BETWEEN

        wait_until(is_none_left, "requests under way end")

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(timeout=2 * PATIENCE_S)

    def n_over(self):
        with self.lock:
            return sum(self.answers.values()) + len(self.failures)


class Download:
    """A request whose answer takes its time."""

    def __init__(self, family=4):
        self.backend = None
        self.error = None
        self.thread = threading.Thread(target=self.fetch, args=(family,), daemon=True)
        self.thread.start()
        wait_until(lambda: self.backend or self.error, "a download begins")

    def fetch(self, family):
        NETWORK.enter("client")
        try:
            with connect(family, "/long") as connection:
                head = b""
                while len(head.partition(b"\r\n\r\n")[2]) < 2:
                    head += connection.recv(65536)
                self.backend = head.partition(b"\r\n\r\n")[2][:2].decode()
                with connection.makefile("rb") as rest:
                    body = head.partition(b"\r\n\r\n")[2] + rest.read()
                if body != f"{self.backend}\n".encode() * (lab.LONG_BYTES // 3):
                    raise OSError(f"{len(body)} bytes of {lab.LONG_BYTES}, or other ones")
        except OSError as error:
            self.error = error

    def finish(self):
        self.thread.join(timeout=lab.TIMEOUT_S)
        if self.thread.is_alive():
            raise AssertionError("a download does not end")


class SwapCase(lab.LabCase):
    driver = "net_af_packet"
    workers = 2

    def begin(self):
        self.services = [lab.service(family, "ipip") for family in lab.FAMILIES]
        return self.start(self.driver, self.workers, *self.services)

    def load(self):
        made = Load()
        self.addCleanup(made.stop)
        wait_until(lambda: made.n_over() > 20, lambda: f"requests: {made.failures[:3]}")
        return made

    def some_downloads(self):
        """Under way, at least one from every backend, and by both families."""
        found = []
        while len({one.backend for one in found}) < lab.N_BACKENDS or len(found) < 6:
            self.assertLess(len(found), 60)
            found.append(Download(lab.FAMILIES[len(found) % 2]))
            self.assertIsNone(found[-1].error)
        return found


class EachDriver:
    def test_changes_harm_nobody(self):
        """Not one request fails, and downloads stay where they are."""
        daemon = self.begin()
        load = self.load()
        downloads = self.some_downloads()
        before = daemon.json("status")["generation"]
        n = 0
        for changes in itertools.cycle((self.drain_and_remove, self.reweigh, self.drain,
                                        self.reload)):
            if n >= N_CHANGES:
                break
            n += changes(daemon, load)
            self.assertEqual(load.failures, [])
        self.assertEqual(daemon.json("status")["generation"] - before, n)
        for one in downloads:
            one.finish()
            self.assertIsNone(one.error, one.backend)
        load.stop()
        self.assertEqual(load.failures, [])
        self.assertEqual(set(load.answers), set(lab.BACKENDS))
        self.assertEqual(daemon.json("stats")["packets"]["dropped"], 0)

    @staticmethod
    def names(backend):
        return [f"ipip-v{family}/{backend}" for family in lab.FAMILIES]

    @staticmethod
    def change(daemon, load, *args):
        """One command, with requests under way before and begun after. How many changes."""
        before = daemon.json("status")["generation"]
        daemon.ctl(*args)
        load.wait_for_those_under_way()
        return daemon.json("status")["generation"] - before

    def drain_and_remove(self, daemon, load):
        """A fourth backend, which is the second's machine, comes and goes."""
        n = 0
        for family in lab.FAMILIES:
            n += self.change(daemon, load, "backend", "add", f"ipip-v{family}/guest",
                             lab.farm_address(family, 2))
        n += self.change(daemon, load, "backend", "drain", *self.names("guest"))
        n += self.change(daemon, load, "backend", "remove", *self.names("guest"))
        self.assertEqual(n, 6)
        return n

    def reweigh(self, daemon, load):
        n = 0
        for name, weight in (("s1", 300), ("s3", 0), ("s3", 100), ("s1", 100)):
            n += self.change(daemon, load, "backend", "weight", f"{SERVICE}/{name}", weight)
        self.assertEqual(n, 4)
        return n

    def drain(self, daemon, load):
        n = 0
        for name in ("s1", "s2"):
            for state in ("drain", "up"):
                n += self.change(daemon, load, "backend", state, *self.names(name))
        self.assertEqual(n, 8)
        return n

    def reload(self, daemon, load):
        """The file, in another order and of other weights; then the first, by a signal."""
        other = [{**one, "backends": [{**each, "weight": 50} for each in one["backends"][::-1]]}
                 for one in self.services]
        daemon.write(*other)
        n = self.change(daemon, load, "reload")
        daemon.write(*self.services)
        before = daemon.json("status")["generation"]
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.json("status")["generation"] == before + 1, daemon.words)
        load.wait_for_those_under_way()
        self.assertEqual(n, 1)
        return n + 1

    def test_the_loss_of_a_backend_harms_its_own_requests_alone(self):
        """down and remove end what is under way there, and nothing else."""
        for what in ("down", "remove"):
            with self.subTest(what):
                daemon = self.begin()
                load = self.load()
                downloads = self.some_downloads()
                begun = time.monotonic()
                daemon.ctl("backend", what, *self.names("s1"))
                ended = time.monotonic()
                load.wait_for_those_under_way()
                with load.lock:
                    count = dict(load.answers)
                for one in downloads:
                    one.finish()
                    self.assertEqual(one.error is not None, one.backend == "s1",
                                     f"{one.backend}: {one.error}")
                # Of those under way one may have waited longer than the downloads took.
                load.wait_for_those_under_way()
                load.stop()
                self.assertEqual(load.answers.pop("s1"), count.pop("s1"))
                self.assertGreater(sum(load.answers.values()), sum(count.values()))
                for failure in load.failures:
                    # One thread has one request under way, and the change takes a moment.
                    self.assertLess(failure[0], ended, failure)
                    self.assertGreater(failure[1], begun, failure)
                daemon.stop()


class PacketSockets(EachDriver, SwapCase):
    pass


class XdpSockets(EachDriver, SwapCase):
    driver = "net_af_xdp"
    workers = 1


class Reloads(SwapCase):
    def test_a_bad_file_changes_nothing(self):
        """It is said why, to who asked; requests go on."""
        daemon = self.begin()
        load = self.load()
        good = daemon.config.read_text(encoding="utf-8")
        shown = daemon.ctl("config", "show")
        parsed = json.loads(good)
        other_device = json.loads(good)
        other_device["dataplane"]["ports"][0]["device"] = "net_af_packet,iface=other0"
        other_workers = {**parsed, "dataplane": {**parsed["dataplane"], "workers": 1}}
        rows = [
            ("half of it", good[:len(good) // 2], lab.BAD_USAGE, "shunt.yaml:"),
            ("nothing", "", lab.BAD_USAGE, "shunt.yaml:"),
            ("another device", json.dumps(other_device), lab.FAILED, "restart shuntd"),
            ("other workers", json.dumps(other_workers), lab.FAILED, "restart shuntd"),
        ]
        for what, text, status, says in rows:
            with self.subTest(what):
                daemon.config.write_text(text, encoding="utf-8")
                self.assertIn(says, daemon.ctl("reload", status=status))
                before = len(daemon.words())
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: says in daemon.words()[before:], daemon.words)
                self.assertEqual(daemon.ctl("config", "show"), shown)
                self.assertEqual(daemon.json("status")["generation"], 1)
        daemon.config.unlink()
        self.assertIn("shunt.yaml", daemon.ctl("reload", status=lab.BAD_USAGE))
        load.wait_for_those_under_way()
        load.stop()
        self.assertEqual(load.failures, [])


class Life(SwapCase):
    def test_an_orderly_end_leaves_nothing(self):
        for driver in ("net_af_packet", "net_af_xdp"):
            for number in (signal.SIGTERM, signal.SIGINT):
                with self.subTest(driver=driver, number=number):
                    self.driver = driver
                    daemon = self.begin()
                    is_xdp = driver == "net_af_xdp"
                    self.assertEqual(NETWORK.has_interface("balancer", "wan"), is_xdp)
                    self.assertEqual(NETWORK.has_xdp("balancer", "wan0"), is_xdp)
                    self.assertTrue(daemon.socket.exists())
                    self.assertEqual(lab.stop(daemon.process, number), 0, daemon.words())
                    self.assertFalse(NETWORK.has_interface("balancer", "wan"))
                    self.assertFalse(NETWORK.has_xdp("balancer", "wan0"))
                    self.assertFalse(daemon.socket.exists())
                    daemon.stop()

    def test_it_starts_again_after_it_was_killed(self):
        for driver in ("net_af_packet", "net_af_xdp"):
            with self.subTest(driver):
                self.driver = driver
                daemon = self.begin()
                daemon.ctl("backend", "remove", f"{SERVICE}/s1")  # not saved
                self.assertNotIn("s1", self.fetch(4, PORT, 30))
                lab.stop(daemon.process, signal.SIGKILL)
                self.assertTrue(daemon.socket.exists())
                daemon.start()
                self.assertEqual(set(self.fetch(4, PORT, 60)), set(lab.BACKENDS))
                self.assertEqual(daemon.json("status")["generation"], 1)
                daemon.stop()

    def test_a_second_one_is_refused(self):
        """The first does not feel it; not even where only the ports are the same."""
        for driver in ("net_af_packet", "net_af_xdp"):
            with self.subTest(driver):
                self.driver = driver
                daemon = self.begin()
                load = self.load()
                self.refuse(daemon.config, f"another shuntd listens at {daemon.socket}")
                if driver == "net_af_xdp":  # packet sockets may be many
                    other = json.loads(daemon.config.read_text(encoding="utf-8"))
                    other["control"]["socket"] = str(daemon.folder / "other.sock")
                    second = daemon.folder / "second.yaml"
                    second.write_text(json.dumps(other), encoding="utf-8")
                    self.refuse(second, "port 'wan': device 'net_af_xdp,iface=wan0' does "
                                "not start")
                load.wait_for_those_under_way()
                self.assertEqual(set(self.fetch(4, PORT, 60)), set(lab.BACKENDS))
                load.stop()
                self.assertEqual(load.failures, [])
                self.assertEqual(daemon.json("status")["pid"], daemon.process.pid)
                daemon.stop()

    def refuse(self, config, says):
        done = subprocess.run(
            NETWORK.command("balancer", lab.SHUNTD, "--config", config), check=False,
            text=True, stderr=subprocess.PIPE, timeout=lab.TIMEOUT_S)
        self.assertEqual(done.returncode, lab.FAILED, done.stderr)
        self.assertIn(says, done.stderr)


class BadClients(SwapCase):
    """Of the control socket: they get an error or are sent away, and the others do not wait."""

    def connect(self, daemon):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(made.close)
        made.settimeout(lab.TIMEOUT_S)
        made.connect(str(daemon.socket))
        return made

    def test_control_goes_on_answering(self):
        daemon = self.begin()
        load = self.load()
        with self.subTest("a megabyte without a newline"):
            client = self.connect(daemon)
            with contextlib.suppress(ConnectionError):
                client.sendall(b"x" * (1 << 20) * 2)
            self.assertEqual(daemon.json("status")["generation"], 1)
        with self.subTest("away before the answer is read"):
            ask = b'{"jsonrpc":"2.0","id":1,"method":"config.show"}\n'
            for _ in range(100):
                client = self.connect(daemon)
                client.sendall(ask * 20)
                client.recv(1)
                client.close()
            self.assertEqual(daemon.json("status")["generation"], 1)
        with self.subTest("many"):
            clients = []
            for _ in range(1000):
                client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.addCleanup(client.close)
                client.settimeout(0.5)
                try:
                    client.connect(str(daemon.socket))
                except OSError:
                    client.close()
                    continue
                clients.append(client)
            for client in clients:
                client.close()
            wait_until(lambda: daemon.json("status")["rpc"]["clients"] <= 2, daemon.words)
        daemon.ctl("backend", "drain", f"{SERVICE}/s1")
        load.wait_for_those_under_way()
        load.stop()
        self.assertEqual(load.failures, [])


if __name__ == "__main__":
    lab.main()
