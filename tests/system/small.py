# SPDX-License-Identifier: BSD-3-Clause
"""A shuntd with some traffic in a network namespace of the test's own process, as root.

    eth1 ==== eth0: shuntd's port          10.0.0.1 … on lo: its backends, as far as checks go

What is started afterwards is in the same namespace, which ends with the last of them. SHUNTD
and SHUNTCTL name the programs.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from lab import CLONE_NEWNET, LIBC, SHUNTCTL, SHUNTD, run, stop, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import wire  # noqa: E402

VIP, VIP_CHECKED, VIP_6, CLIENT = "198.51.100.10", "198.51.100.20", "2001:db8:51::10", "203.0.113.7"
METRICS = "127.0.0.1:9464"
CHECKED_PORT = 9000
PAUSE_S = 0.05
# Names are text, wherever they are shown.
ODD_SERVICE, ODD_BACKEND = "<img src=x onerror=odd=1>", "<script>odd=1"


def make_network():
    """Become a process of another network namespace."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise OSError("no network namespace can be made")
    run("ip", "link", "set", "lo", "up")
    for k in (1, 2, 3):
        run("ip", "address", "add", f"10.0.0.{k}/32", "dev", "lo")
    run("ip", "link", "add", "eth0", "address", wire.OWN_MAC, "type", "veth", "peer", "name", "eth1")
    for interface in ("eth0", "eth1"):
        run("ip", "link", "set", interface, "up")


class Traffic:
    """Some hundred packets a second, in flows that begin anew every now and then."""

    def __init__(self):
        self.is_over = threading.Event()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.bind(("eth1", 0))
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        for n in range(10 ** 9):
            for i in range(16):
                port = 1024 + (n // 20 * 16 + i) % 60000
                for vip, dport in ((VIP, 80), (VIP_CHECKED, 443)):
                    self.socket.send(wire.ether(wire.tcp(CLIENT, vip, port, dport,
                                                         payload=bytes(60))))
            self.socket.send(wire.ether(wire.tcp(CLIENT, "192.0.2.77", 1, 80)))
            self.socket.send(wire.ether(wire.tcp(CLIENT, VIP, 1, 80)[:30]))
            if self.is_over.wait(PAUSE_S):
                return

    def stop(self):
        self.is_over.set()
        self.thread.join()
        self.socket.close()


class Server:
    """Accepts connections, and ends them."""

    def __init__(self, address):
        self.socket = socket.create_server((address, CHECKED_PORT))
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()

    def accept(self):
        try:
            while True:
                self.socket.accept()[0].close()
        except OSError:
            pass

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


def backends(prefix, weights):
    return [{"name": f"{prefix}-{k}", "address": f"10.0.0.{k}", "weight": weight}
            for k, weight in enumerate(weights, 1)]


def services():
    check = {"type": "tcp", "port": CHECKED_PORT, "interval": "200ms", "timeout": "100ms"}
    return [
        {"name": "web", "address": VIP, "protocol": "tcp", "port": 80,
         "backends": backends("web", [100, 100, 50])},
        {"name": "shop", "address": VIP_CHECKED, "protocol": "tcp", "port": 443, "health": check,
         "min_healthy": 2, "backends": backends("shop", [100, 100])},
        {"name": ODD_SERVICE, "address": VIP_6, "protocol": "udp", "port": "any", "forward": "gue",
         "backends": [{"name": ODD_BACKEND, "address": "2001:db8:a::1"},
                      {"name": "n" * 255, "address": "2001:db8:a::2", "state": "drain"}]},
        {"name": "empty", "address": "198.51.100.30", "protocol": "tcp", "port": 80,
         "backends": []}]


class Balancer:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-small-"))
        self.socket = self.folder / "shunt.sock"
        self.config = self.folder / "shunt.yaml"
        self.log = self.folder / "log"
        self.more = {}  # keys of the file
        self.arguments = []
        self.process = None

    def write(self, *of_services):
        port = {"name": "wan", "device": "net_af_packet0,iface=eth0",
                "addresses": ["192.0.2.1/24", "2001:db8:2::1/64"],
                "next_hop": "02:00:00:00:00:fe"}
        self.config.write_text(json.dumps({
            "dataplane": {"workers": 1, "kernel": "none", "idle": "adaptive", "idle_sleep": "1ms",
                          "flow_entries": 4096, "ports": [port]},
            "control": {"socket": str(self.socket), "metrics": METRICS},
            "services": of_services, **self.more}), encoding="utf-8")

    def words(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [SHUNTD, "--config", self.config, *self.arguments], stderr=log,
                env={"RUNTIME_DIRECTORY": str(self.folder), **os.environ})
        wait_until(lambda: "shuntd: ready" in self.words() or self.process.poll() is not None,
                   self.words)
        if self.process.poll() is not None:
            raise AssertionError(self.words())

    def ctl(self, *args):
        return json.loads(run(SHUNTCTL, "--socket", self.socket, "-j", *args))

    def stop(self):
        process, self.process = self.process, None
        if process is None:
            return
        status = stop(process)
        words = self.words()
        if status != 0 or "Sanitizer" in words or "runtime error" in words:
            raise AssertionError(f"shuntd ended with {status}:\n{words}")

    def remove(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder)


class SmallCase(unittest.TestCase):
    """All tests of a class share a balancer, its traffic, and servers for shop."""

    maxDiff = 4000
    more = {}
    arguments = []

    @classmethod
    def setUpClass(cls):
        cls.balancer = Balancer()
        cls.balancer.more = cls.more
        cls.balancer.arguments = cls.arguments
        cls.addClassCleanup(cls.balancer.remove)
        cls.servers = {}
        cls.addClassCleanup(lambda: [server.stop() for server in cls.servers.values()])
        for k in (1, 2):
            cls.servers[k] = Server(f"10.0.0.{k}")
        cls.balancer.write(*services())
        cls.balancer.start()
        traffic = Traffic()
        cls.addClassCleanup(traffic.stop)


def main(*needs):
    """Run the tests. needs: (command, Debian package) of what these tests take."""
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if os.geteuid() != 0:
        print("skipped: not root: network namespaces and packet sockets take it")
        sys.exit(77)
    for program, package in needs:
        if shutil.which(program) is None:
            print(f"skipped: there is no {program} command (Debian: {package})")
            sys.exit(77)
    try:
        make_network()
    except OSError as error:
        print(f"skipped: no such network here: {error}")
        sys.exit(77)
    unittest.main(verbosity=2)
