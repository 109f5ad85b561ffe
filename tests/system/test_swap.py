#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Changes, reloads and ends of shuntd under live traffic: who is harmed, and who must not be.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import contextlib
import ipaddress
import itertools
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

PORT = lab.PORTS["ipip"]
SERVICE = "ipip-v4"
N_CHANGES = 200
# Requests, at least, from one change to the next.
N_BETWEEN = 5
# As long as a retransmission or two: in time, but not out of patience.
PATIENCE_S = 15
STREAMS_PORT = 5201
# Of each of three clients of iperf3; Mbit/s each.
N_STREAMS = 4
STREAM_MBITS = 5
# A storm would be many segments of a hundred.
LOST_MAX = 0.01
# At most, by either family; none that fits the client's own link fits the tunnel too.
SEGMENT_BYTES = 1448


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

        wait_until(is_none_left, "requests under way end", pause_s=0.002)

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(timeout=2 * PATIENCE_S)

    def n_over(self):
        with self.lock:
            return sum(self.answers.values()) + len(self.failures)


class Wrk:
    """Requests on a few connections that stay open all the time, by wrk."""

    def __init__(self, folder, family):
        host = lab.VIP[family] if family == 4 else f"[{lab.VIP[family]}]"
        self.log = folder / f"wrk{family}.log"
        script = folder / "wrk.lua"
        # As the machine has other things to do: ms between two requests of a connection.
        script.write_text("function delay() return 20 end\n", encoding="ascii")
        self.process = NETWORK.spawn(
            "client", "wrk", "--threads", 1, "--connections", 6, "--duration", 600,
            "--timeout", PATIENCE_S, "--script", script, f"http://{host}:{PORT}/keep",
            log=self.log)

    def stop(self):
        """What it has to say of it all."""
        status = lab.stop(self.process, signal.SIGINT)
        words = self.log.read_text(encoding="utf-8")
        if status != 0:
            raise AssertionError(f"wrk ended with {status}: {words}")
        return words


class Download:
    """A request whose answer takes its time."""

    def __init__(self, family, path):
        self.backend = None
        self.error = None
        self.thread = threading.Thread(target=self.fetch, args=(family, path), daemon=True)
        self.thread.start()
        wait_until(lambda: self.backend or self.error, "a download begins")

    def fetch(self, family, path):
        NETWORK.enter("client")
        try:
            with connect(family, path) as connection:
                head = b""
                while len(head.partition(b"\r\n\r\n")[2]) < 2:
                    head += connection.recv(65536)
                self.backend = head.partition(b"\r\n\r\n")[2][:2].decode()
                with connection.makefile("rb") as rest:
                    body = head.partition(b"\r\n\r\n")[2] + rest.read()
                n_bytes = lab.LONG_BYTES[path]
                if body != f"{self.backend}\n".encode() * (n_bytes // 3):
                    raise OSError(f"{len(body)} bytes of {n_bytes}, or other ones")
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

    def wrk(self):
        """Of both families; it has no word for a first answer, so nginx is asked."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-lab-"))
        self.addCleanup(shutil.rmtree, folder)
        made = [Wrk(folder, family) for family in lab.FAMILIES]
        for one in made:
            self.addCleanup(lab.stop, one.process)
        wait_until(lambda: self.n_established() >= 12, "wrk connects")
        return made

    @staticmethod
    def n_established():
        return len(NETWORK.run("client", "ss", "-Htn", "state", "established", "dport", "=",
                               f":{PORT}").splitlines())

    def load(self):
        made = Load()
        self.addCleanup(made.stop)
        wait_until(lambda: made.n_over() > 20, lambda: f"requests: {made.failures[:3]}")
        return made

    def some_downloads(self, path):
        """Under way, at least one from every backend, and by both families."""
        found = []
        while len({one.backend for one in found}) < lab.N_BACKENDS or len(found) < 6:
            self.assertLess(len(found), 60)
            found.append(Download(lab.FAMILIES[len(found) % 2], path))
            self.assertIsNone(found[-1].error)
        return found


class EachDriver:
    losses = ["down", "remove"]

    def test_changes_harm_nobody(self):
        """Not one request fails, and downloads stay where they are."""
        daemon = self.begin()
        wrk = self.wrk()
        load = self.load()
        downloads = self.some_downloads("/long")
        n = 0
        for changes in self.all_changes():
            if n >= N_CHANGES:
                break
            n += changes(daemon, load)
            self.assertEqual(load.failures, [])
        for one in downloads:
            one.finish()
            self.assertIsNone(one.error, one.backend)
        for one in wrk:
            words = one.stop()
            self.assertRegex(words, r"[1-9][0-9]+ requests in ")
            self.assertNotIn("Socket errors", words)
            self.assertNotIn("Non-2xx", words)
        load.stop()
        self.assertEqual(load.failures, [])
        self.assertEqual(set(load.answers), set(lab.BACKENDS))
        self.check_drops(daemon)

    def check_drops(self, daemon):
        """None, but of what a busy kernel has not taken in time."""
        drops = daemon.json("stats")["drops"]
        self.assertEqual(sum(drops.values()), drops.get("tx_full", 0), drops)

    @staticmethod
    def n_not_taken(daemon):
        """Packets that had no room in the queues between shuntd and a busy kernel."""
        return daemon.json("stats")["drops"].get("tx_full", 0) + sum(
            sum(port["missed"].values()) for port in daemon.json("status")["ports"])

    @staticmethod
    def n_sent_twice():
        """Segments that the client sent again, and their first had arrived, too: as a busy
        machine let them wait for longer than TCP does."""
        return sum(NETWORK.snmp("client", f"TcpExt.{name}")
                   for name in ("TCPDSACKRecv", "TCPDSACKOfoRecv"))

    def all_changes(self):
        """Over and over; each makes some changes and says how many."""
        return itertools.cycle((self.drain_and_remove, self.reweigh, self.drain, self.reload))

    @staticmethod
    def names(backend):
        return [f"ipip-v{family}/{backend}" for family in lab.FAMILIES]

    def change(self, daemon, load, n, *commands):
        """One after the other, with requests under way before each and begun after: n changes
        in all."""
        before = daemon.json("status")["generation"]
        for args in commands:
            daemon.ctl(*args)
            if load is not None:
                load.wait_for_those_under_way()
        self.assertEqual(daemon.json("status")["generation"], before + n)
        return n

    def drain_and_remove(self, daemon, load):
        """A fourth backend, which is the second's machine, comes and goes."""
        return self.change(
            daemon, load, 6,
            *(("backend", "add", f"ipip-v{family}/guest", lab.farm_address(family, 2))
              for family in lab.FAMILIES),
            ("backend", "drain", *self.names("guest")),
            ("backend", "remove", *self.names("guest")))

    def reweigh(self, daemon, load):
        return self.change(
            daemon, load, 4,
            *(("backend", "weight", f"{SERVICE}/{name}", weight)
              for name, weight in (("s1", 300), ("s3", 0), ("s3", 100), ("s1", 100))))

    def drain(self, daemon, load):
        return self.change(
            daemon, load, 8,
            *(("backend", state, *self.names(name))
              for name in ("s1", "s2") for state in ("drain", "up")))

    def reload(self, daemon, load):
        """The file, in another order and of other weights; then the first, by a signal."""
        other = [{**one, "backends": [{**each, "weight": 50} for each in one["backends"][::-1]]}
                 for one in self.services]
        daemon.write(*other)
        before = daemon.json("status")["generation"]
        daemon.ctl("reload")
        self.assertEqual(daemon.json("status")["generation"], before + 1)
        daemon.write(*self.services)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.json("status")["generation"] == before + 2, daemon.words)
        if load is not None:
            load.wait_for_those_under_way()
        return 2

    def test_streams_stay_where_they_are(self):
        """Of iperf3, to each backend: for their whole time, whatever changes around them."""
        self.services = [lab.service(family, "ipip", port=STREAMS_PORT, affinity="source-ip")
                         for family in lab.FAMILIES]
        daemon = self.start(self.driver, self.workers, *self.services)
        begun = time.monotonic()
        n_tried = self.drain_and_remove(daemon, None) + self.reload(daemon, None)
        longest_s = time.monotonic() - begun
        seconds = 6 + int(2 * N_CHANGES * longest_s / n_tried)
        n_sent_twice = self.n_sent_twice()
        streams, begun = self.some_streams(daemon, seconds)
        # Each client's control connection, and its streams.
        placed = {name: N_STREAMS + 1 for name in lab.BACKENDS}
        wait_until(lambda: self.flows(daemon) == placed, lambda: f"{self.flows(daemon)}")
        n = 0
        for changes in self.all_changes():
            # All of them, or on a machine that got slower as many as there is time for.
            now = time.monotonic()
            if n >= N_CHANGES or now + 2 + 4 * longest_s > begun + seconds:
                break
            n += changes(daemon, None)
            longest_s = max(longest_s, time.monotonic() - now)
        self.assertGreaterEqual(n, n_tried)
        n_bytes = n_again = 0
        is_too_early = any(client.poll() is not None for _, client in streams)
        for server, client in streams:
            said, _ = client.communicate(timeout=seconds + lab.TIMEOUT_S)
            self.assertFalse(is_too_early, f"it ended before the changes did: {said}")
            self.assertEqual(client.returncode, 0, said)
            self.assertEqual(server.wait(timeout=lab.TIMEOUT_S), 0)
            end = json.loads(said)["end"]
            self.assertEqual(len(end["streams"]), N_STREAMS)
            sent = end["sum_sent"]
            self.assertGreaterEqual(sent["seconds"], seconds - 0.1)
            # What is under way at the end is not waited for.
            self.assertGreater(end["sum_received"]["bytes"], 0.8 * sent["bytes"])
            n_bytes += sent["bytes"]
            n_again += sent["retransmits"]
        n_lost = n_again - (self.n_sent_twice() - n_sent_twice) - self.n_not_taken(daemon)
        self.assertLess(n_lost * SEGMENT_BYTES, n_bytes * LOST_MAX)
        self.assertEqual(self.flows(daemon), placed)
        self.check_drops(daemon)

    @staticmethod
    def flows(daemon):
        """To each backend, of both families."""
        found = dict.fromkeys(lab.BACKENDS, 0)
        for one in daemon.json("stats")["services"]:
            for each in one["backends"]:
                found[each["name"]] = found.get(each["name"], 0) + each["flows"]
        return found

    def some_streams(self, daemon, seconds):
        """To each backend: by a client whose address leads there, as iperf3 must find its own
        server by each of its connections. Returns [(server, client)] and when they began."""
        ends = []
        for name, family in zip(lab.BACKENDS, (4, 6, 4)):
            server = NETWORK.spawn(name, "iperf3", "--server", "--one-off", "--port",
                                   STREAMS_PORT)
            self.addCleanup(lab.stop, server)
            ends.append((server, family, self.client_of(daemon, family, name)))
        for name in lab.BACKENDS:
            wait_until(lambda name=name: f":{STREAMS_PORT} " in NETWORK.run(name, "ss", "-Hltn"),
                       "iperf3 listens")
        begun = time.monotonic()
        found = []
        for server, family, address in ends:
            client = subprocess.Popen(
                NETWORK.command("client", "iperf3", "--client", lab.VIP[family], "--port",
                                STREAMS_PORT, "--bind", address, "--parallel", N_STREAMS,
                                "--bitrate", f"{STREAM_MBITS}M", "--time", seconds, "--json"),
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.addCleanup(client.stdout.close)
            self.addCleanup(lab.stop, client, signal.SIGKILL)
            found.append((server, client))
        return found, begun

    @staticmethod
    def client_of(daemon, family, name):
        """Another address of the client's, for which the service chooses that backend."""
        for k in range(100, 200):
            address = str(ipaddress.ip_address(lab.CLIENT[family]) + k)
            left, right = (address, lab.VIP[family]) if family == 4 else (
                f"[{address}]", f"[{lab.VIP[family]}]")
            if daemon.json("explain", "tcp", f"{left}:50000",
                           f"{right}:{STREAMS_PORT}")["backend"] == name:
                NETWORK.ip("client", "address", "replace", f"{address}/{lab.LENGTH[family]}",
                           "dev", "eth0", *(["nodad"] if family == 6 else []))
                return address
        raise AssertionError(f"no way to {name}")

    def test_the_loss_of_a_backend_harms_its_own_requests_alone(self):
        """down and remove end what is under way there, and nothing else."""
        for what in self.losses:
            with self.subTest(what):
                daemon = self.begin()
                load = self.load()
                downloads = self.some_downloads("/longish")
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
    losses = ["remove"]  # they differ in control alone


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
    lab.main(("wrk", "wrk"), ("iperf3", "iperf3"))
