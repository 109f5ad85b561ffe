# SPDX-License-Identifier: BSD-3-Clause
"""shuntd's ports: what they say at the start, and what becomes of them when devices go.

    peer: a1 ---- a0 :balancer: b0 ---- b1 :peer

Packets for two services come by a0. The backend of `near` is behind a0, by the kernel's route;
that of `far` is behind b0, by the port's next_hop.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import captures  # noqa: E402
import lab  # noqa: E402
from lab import run, wait_until  # noqa: E402
from test_telemetry import Client  # noqa: E402

NEAR, FAR = "198.51.100.1", "198.51.100.2"
NOBODY = "198.51.100.9"  # no service
OWN, ROUTER = "192.0.2.1", "192.0.2.254"
BACKEND = {NEAR: "192.0.2.2", FAR: "192.0.3.2"}
PEER_MAC = {"a1": "02:00:00:00:0a:01", "b1": "02:00:00:00:0b:01"}
N = 40
METRICS = "127.0.0.1:9101"
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_MULTI_QUEUE = 0x0002, 0x1000, 0x0100


class Pair:
    """The two namespaces; interfaces are made anew for each test."""

    @staticmethod
    def netns(name):
        return f"shunt-ports-{os.getpid()}-{name}"

    def ip(self, name, *args):
        return run("ip", "-n", self.netns(name), *args)

    def make(self):
        for name in ("balancer", "peer"):
            run("ip", "netns", "add", self.netns(name))
            self.ip(name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", self.netns(name), "sh", "-c",
                "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")

    def link(self, letter, mtu=1500, queues=1):
        there = f"{letter}1"
        each = ("mtu", mtu, "numtxqueues", queues, "numrxqueues", queues)
        self.ip("balancer", "link", "add", f"{letter}0", *each, "type", "veth", "peer",
                "name", there, "address", PEER_MAC[there], *each, "netns", self.netns("peer"))
        for name, interface in (("balancer", f"{letter}0"), ("peer", there)):
            if queues > 1:
                self.set_queues(name, interface, "rx", queues, "tx", queues)
        self.ip("balancer", "link", "set", f"{letter}0", "up")
        self.ip("peer", "link", "set", there, "up")
        run("ip", "netns", "exec", self.netns("peer"), "ethtool", "-K", there, "tx", "off")

    def set_queues(self, name, interface, *args):
        run("ip", "netns", "exec", self.netns(name), "ethtool", "-L", interface, *args)

    def links(self):
        for letter in "ab":
            self.link(letter)

    def route(self, interface):
        """To the backend of near; the start of a packet socket's driver would undo it."""
        self.ip("balancer", "address", "replace", f"{OWN}/24", "dev", interface)
        self.ip("balancer", "neighbour", "replace", BACKEND[NEAR], "lladdr",
                PEER_MAC["a1"], "dev", interface, "nud", "permanent")

    def unlink(self):
        for letter in "ab":
            with contextlib.suppress(OSError):
                self.ip("balancer", "link", "del", f"{letter}0")

    def mac(self, interface):
        shown = json.loads(self.ip("balancer", "-j", "link", "show", interface))
        return bytes.fromhex(shown[0]["address"].replace(":", ""))

    def inside(self, name, make):
        """What make() gives in that namespace: a thread goes there for it."""
        made = []

        def enter():
            with open(f"/run/netns/{self.netns(name)}", "rb") as there:
                if lab.LIBC.setns(there.fileno(), lab.CLONE_NEWNET) == 0:
                    made.append(make())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return made[0]

    def socket(self, name, *kind):
        return self.inside(name, lambda: socket.socket(*kind))

    def open_tap(self, interface):
        """One more queue of a TAP device in the balancer."""
        def make():
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", interface.encode(), flags))
            return fd

        return self.inside("balancer", make)

    def remove(self):
        for name in ("balancer", "peer"):
            subprocess.run(["ip", "netns", "delete", self.netns(name)], check=False,
                           stderr=subprocess.DEVNULL)


PAIR = Pair()


def udp(to, source_port, size=64):
    """An IPv4 packet of so many bytes."""
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 17, 0,
                         socket.inet_aton("203.0.113.7"), socket.inet_aton(to))
    total = sum(struct.unpack("!10H", header))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    header = header[:10] + struct.pack("!H", total ^ 0xffff) + header[12:]
    return header + struct.pack("!HHHH", source_port, 53, size - 20, 0) + bytes(size - 28)


class PortCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-ports-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o777)  # for whom it is started as
        self.addCleanup(PAIR.unlink)
        PAIR.links()
        self.process = None
        self.mac = PAIR.mac("a0")

    def write(self, ports, workers=1, kernel="none", near=None, **plane):
        config = self.folder / "shunt.yaml"
        ports = [{"addresses": [f"192.0.{2 + place}.1/24"], **port}
                 for place, port in enumerate(ports)]
        services = [{"name": name, "address": to, "protocol": "udp", "port": 53,
                     "forward": "ipip", "table": {"algorithm": "maglev", "size": 13},
                     "backends": [{"name": "one", "address": BACKEND[to]}]}
                    for name, to in (("near", NEAR), ("far", FAR))]
        services[0].update(near or {})
        config.write_text(json.dumps({
            "dataplane": {"workers": workers, "kernel": kernel, "idle": "adaptive",
                          "idle_sleep": "1ms",
                          "flow_entries": 4096, "ports": ports, **plane},
            "control": {"socket": str(self.folder / "sock"), "metrics": METRICS},
            "services": services}), encoding="utf-8")
        return config

    @staticmethod
    def command(config, *args, prefix=()):
        return ["ip", "netns", "exec", PAIR.netns("balancer"), *prefix, lab.SHUNTD,
                "--config", str(config), *args]

    def words(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def find_largest_mtu(self):
        """Of an XDP socket, as a refusal names it."""
        config = self.write([{"name": "a", "device": "net_af_xdp,iface=a0", "mtu": 9000}])
        done = subprocess.run(self.command(config), check=False, text=True,
                              stderr=subprocess.PIPE, timeout=lab.TIMEOUT_S)
        found = re.search(r"port 'a': device 'net_af_xdp,iface=a0' takes an MTU of at most "
                          r"(\d+), mtu: is 9000$", done.stderr)
        self.assertIsNotNone(found, done.stderr)
        mtu = int(found[1])
        self.assertIn(mtu, range(3000, 4096))
        return mtu

    def start(self, ports, **keys):
        if self.process is not None:
            lab.stop(self.process, signal.SIGKILL)
        config = self.write(ports, **keys)
        suppressions = self.folder / "lsan"  # see lab.py
        suppressions.write_text("leak:libxdp.so\n", encoding="ascii")
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                self.command(config), stderr=log,
                env={**os.environ, "LSAN_OPTIONS": f"suppressions={suppressions}",
                     "RUNTIME_DIRECTORY": str(self.folder)})
        self.addCleanup(lab.stop, self.process, signal.SIGKILL)
        wait_until(lambda: "shuntd: ready" in self.words() or self.process.poll() is not None,
                   self.words)
        self.assertIsNone(self.process.poll(), self.words())

    def finish(self):
        status = lab.stop(self.process)
        self.assertEqual(status, 0, self.words())
        self.assertNotIn("Sanitizer", self.words())

    def ask(self, what):
        return json.loads(run(lab.SHUNTCTL, "--socket", self.folder / "sock", "--json", what))

    def port(self, name):
        return next(port for port in self.ask("status")["ports"] if port["name"] == name)

    def wait_for(self, name, **keys):
        wait_until(lambda: keys.items() <= self.port(name).items(),
                   lambda: f"{keys}: {self.port(name)}\n{self.words()}")

    def counted(self):
        stats = self.ask("stats")
        return {"forwarded": stats["packets"]["forwarded"],
                "to_kernel": stats["packets"]["to_kernel"], **stats["drops"]}

    def send(self, to, n=N, size=64):
        with PAIR.socket("peer", socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("a1", 0))
            for i in range(n):
                out.send(self.mac + bytes.fromhex("0200000000fe") + b"\x08\x00"
                         + udp(to, 1024 + i, size))

    def expect(self, to, size=64, n=N, **counts):
        """What n packets to an address add to the counters, and nothing else."""
        before = self.counted()
        self.send(to, n, size)
        last = {}

        def is_so():
            now = self.counted()
            last.update({key: now[key] - before[key] for key in now
                         if now[key] != before[key]})
            return sum(last.values()) >= n

        wait_until(is_so, lambda: f"{to}: {last}\n{self.words()}")
        self.assertEqual(last, counts)

    def listen(self, interface):
        made = PAIR.socket("peer", socket.AF_PACKET, socket.SOCK_RAW,
                           socket.htons(0x0800))
        made.bind((interface, 0x0800))
        made.settimeout(lab.TIMEOUT_S)
        self.addCleanup(made.close)
        return made

    @staticmethod
    def hear(listener, n):
        """The lengths of the next n frames that arrive."""
        found = []
        while len(found) < n:
            frame, address = listener.recvfrom(4096)
            if address[2] != socket.PACKET_OUTGOING:
                found.append(len(frame))
        return found


class Loss(PortCase):
    def begin(self, driver):
        PAIR.unlink()
        PAIR.links()
        self.mac = PAIR.mac("a0")
        self.start([{"name": "a", "device": "net_af_packet,iface=a0"},
                    {"name": "b", "device": f"{driver},iface=b0",
                     "next_hop": PEER_MAC["b1"]}])
        PAIR.route("a0")
        wait_until(lambda: self.ask("status")["unreached"] == 0,
                   lambda: f"{self.ask('status')}\n{self.words()}")
        # New links have news for a second, and each makes the kernel be asked anew.
        wait_until(lambda: self.is_forwarded(NEAR), self.words)
        self.expect(NEAR, forwarded=N)
        self.expect(FAR, forwarded=N)

    def is_forwarded(self, to):
        before = self.counted()
        self.send(to, 1)
        wait_until(lambda: self.counted() != before, lambda: f"{to}: {before}\n{self.words()}")
        return self.counted()["forwarded"] > before["forwarded"]

    def read_up(self, of="port"):
        text = run("ip", "netns", "exec", PAIR.netns("balancer"), "curl", "--silent",
                   "--noproxy", "*", f"http://{METRICS}/metrics")
        return [line for line in text.splitlines() if line.startswith(f"shunt_{of}_up")]

    def test_a_device_that_is_gone_is_no_end(self):
        for driver in ("net_af_packet", "net_af_xdp"):
            with self.subTest(driver):
                self.begin(driver)
                self.assertEqual(self.read_up(), ['shunt_port_up{port="a"} 1',
                                                  'shunt_port_up{port="b"} 1'])
                PAIR.ip("balancer", "link", "del", "b0")
                self.wait_for("b", link="gone", speed_mbps=None)
                before = self.words()
                self.assertEqual(before.count("port 'b': its interface b0 is gone"), 1)
                self.assertEqual(self.read_up(), ['shunt_port_up{port="a"} 1',
                                                  'shunt_port_up{port="b"} 0'])
                self.expect(FAR, port_down=N)
                self.expect(NEAR, forwarded=N)
                self.assertEqual(self.words(), before)
                PAIR.link("b")
                wait_until(lambda: "interface b0 is there again" in self.words(), self.words)
                self.wait_for("b", link="gone")
                self.expect(FAR, port_down=N)
                self.assertEqual(self.words().count("is gone"), 1, self.words())
                self.assertEqual(self.words().count("is there again"), 1, self.words())
                self.finish()

    def test_a_link_that_is_down_comes_up_again(self):
        for driver in ("net_af_packet", "net_af_xdp"):
            for where, interface in (("peer", "b1"), ("balancer", "b0")):
                with self.subTest(driver=driver, where=where):
                    self.begin(driver)
                    PAIR.ip(where, "link", "set", interface, "down")
                    self.wait_for("b", link="down")
                    self.assertIn("port 'b': its interface b0 is down", self.words())
                    self.expect(FAR, port_down=N)
                    self.expect(NEAR, forwarded=N)
                    PAIR.ip(where, "link", "set", interface, "up")
                    self.wait_for("b", link="up")
                    self.expect(FAR, forwarded=N)
                    self.finish()

    def test_one_that_is_down_at_the_start(self):
        PAIR.ip("peer", "link", "set", "b1", "down")
        self.start([{"name": "a", "device": "net_af_packet,iface=a0"},
                    {"name": "b", "device": "net_af_packet,iface=b0",
                     "next_hop": PEER_MAC["b1"]}])
        self.assertEqual(self.port("b")["link"], "down")
        self.expect(FAR, port_down=N)
        self.finish()

    def forwards(self, to, n=20):
        """Beside whatever ARP has to say at the time."""
        before = self.counted()
        self.send(to, n)
        wait_until(lambda: self.counted()["forwarded"] >= before["forwarded"] + n,
                   lambda: f"{to}: {before}: {self.counted()}\n{self.words()}")
        self.assertEqual(self.counted()["no_next_hop"], before["no_next_hop"])

    def wait_for_hops(self, unreached, kept):
        def now():
            return self.ask("status")["unreached"], self.port("a")["kept_next_hops"]

        wait_until(lambda: now() == (unreached, kept), lambda: f"{now()}\n{self.words()}")

    def test_next_hops_are_kept_while_a_twin_is_down_or_gone(self):
        """One backend on the port's network and one by a router; that of far has no route."""
        for address in (BACKEND[NEAR], ROUTER):
            PAIR.ip("peer", "address", "add", f"{address}/24", "dev", "a1")
        route = ("route", "add", "203.0.113.0/24", "via", ROUTER)
        self.start([{"name": "a", "device": "net_af_xdp,iface=a0"}], kernel="tap",
                   near={"backends": [{"name": "one", "address": BACKEND[NEAR]},
                                      {"name": "two", "address": "203.0.113.9"}]})
        self.wait_for_hops(unreached=2, kept=0)
        wait_until(lambda: "2 of 3 backends" in self.words(), self.words)
        self.assertIn("2 of 3 backends without a next hop, what is for them is dropped, "
                      "no_next_hop: as 'near/two', 203.0.113.9: there is no route to it by a "
                      "port; see routes and next_hop of dataplane.ports[]", self.words())
        PAIR.ip("balancer", *route)
        self.wait_for_hops(unreached=1, kept=0)
        self.forwards(NEAR)
        PAIR.ip("balancer", "link", "set", "dev", "a", "down")
        self.wait_for_hops(unreached=1, kept=2)
        self.assertIn("port 'a': its twin a is down; next hops through it stay those of before",
                      self.words())
        self.forwards(NEAR)
        # The kernel has that of one again, and the other is kept until there is a route.
        PAIR.ip("balancer", "link", "set", "dev", "a", "up")
        self.wait_for_hops(unreached=1, kept=1)
        self.forwards(NEAR)
        PAIR.ip("balancer", *route)
        self.wait_for_hops(unreached=1, kept=0)
        self.forwards(NEAR)
        # Nobody brings it back: it is given up.
        PAIR.ip("balancer", "link", "set", "dev", "a", "down")
        self.wait_for_hops(unreached=1, kept=2)
        PAIR.ip("balancer", "link", "set", "dev", "a", "up")
        self.wait_for_hops(unreached=2, kept=0)
        # Of the one that was told of before, nothing more.
        self.assertNotIn("1 of 3 backends", self.words())
        PAIR.ip("balancer", *route)
        self.wait_for_hops(unreached=1, kept=0)
        PAIR.ip("balancer", "link", "del", "dev", "a")
        self.wait_for_hops(unreached=1, kept=2)
        self.forwards(NEAR)
        self.assertEqual(self.port("a")["kernel_link"], "gone")
        self.finish()

    def test_routes_of_a_port_are_there_whenever_its_twin_is(self):
        """A restart after a crash, and a twin that comes up; of both families."""
        network = "2001:db8:a::"
        for address in (f"{BACKEND[NEAR]}/24", f"{ROUTER}/24"):
            PAIR.ip("peer", "address", "add", address, "dev", "a1")
        run("ip", "netns", "exec", PAIR.netns("balancer"), "sh", "-c",
            "echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
        self.addCleanup(run, "ip", "netns", "exec", PAIR.netns("balancer"), "sh", "-c",
                        "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
        port = {"name": "a", "device": "net_af_xdp,iface=a0",
                "addresses": [f"{OWN}/24", f"{network}1/64"],
                "routes": [{"to": "203.0.113.0/24", "via": ROUTER},
                           {"to": "::/0", "via": f"{network}fe"},
                           {"to": "10.0.0.0/8", "via": ROUTER}]}
        near = {"backends": [{"name": "two", "address": "203.0.113.9"}]}
        # Somebody else's, to the same.
        PAIR.ip("balancer", "route", "add", "10.0.0.0/8", "dev", "b0")
        for _ in range(2):
            self.start([port], kernel="tap", near=near)
            self.wait_for_hops(unreached=1, kept=0)
            self.forwards(NEAR)
            self.assertIn("port 'a': the kernel does not take the route to 10.0.0.0/8 via "
                          f"{ROUTER}: there is another one to it", self.words())
            self.assertEqual(self.words().count("does not take"), 1, self.words())
            lab.stop(self.process, signal.SIGKILL)
        self.start([port], kernel="tap", near=near)
        self.wait_for_hops(unreached=1, kept=0)
        PAIR.ip("balancer", "link", "set", "dev", "a", "down")
        self.wait_for_hops(unreached=1, kept=1)
        PAIR.ip("balancer", "link", "set", "dev", "a", "up")
        self.wait_for_hops(unreached=1, kept=0)
        self.forwards(NEAR)
        for family, routes in (("-4", [f"203.0.113.0/24 via {ROUTER}"]),
                               ("-6", [f"default via {network}fe"])):
            shown = PAIR.ip("balancer", family, "route", "show", "dev", "a", "proto", "static")
            self.assertEqual([line.split(" metric")[0].strip()
                              for line in shown.splitlines()], routes)
        self.finish()

    def test_a_twin_that_is_gone_is_no_end(self):
        self.start([{"name": "a", "device": "net_af_xdp,iface=a0",
                     "next_hop": PEER_MAC["a1"]},
                    {"name": "b", "device": "net_af_packet,iface=b0"}], kernel="tap")
        self.wait_for("a", link="up", kernel_link="up")
        self.assertEqual(self.read_up("twin"), ['shunt_twin_up{port="a"} 1'])
        self.expect(FAR, forwarded=N)
        self.expect(NOBODY, to_kernel=N)
        PAIR.ip("balancer", "link", "set", "dev", "a", "down")
        self.wait_for("a", link="up", kernel_link="down")
        self.assertEqual(self.read_up("twin"), ['shunt_twin_up{port="a"} 0'])
        self.assertEqual(self.read_up()[0], 'shunt_port_up{port="a"} 1')
        self.expect(NOBODY, kernel_down=N)
        PAIR.ip("balancer", "link", "set", "dev", "a", "up")
        self.wait_for("a", link="up", kernel_link="up")
        self.expect(NOBODY, to_kernel=N)
        PAIR.ip("balancer", "link", "del", "dev", "a")
        self.wait_for("a", link="up", kernel_link="gone")
        before = self.words()
        self.assertEqual(before.count("port 'a': its twin a is gone; restart shuntd, which "
                                      "makes it anew"), 1)
        self.expect(NOBODY, kernel_down=N)
        self.expect(FAR, forwarded=N)
        self.assertEqual(self.words(), before)
        # One that somebody else makes is not its twin, and would be in the way of a start.
        PAIR.ip("balancer", "link", "add", "dev", "a", "type", "veth", "peer", "spare")
        wait_until(lambda: "another interface has its name; delete that one" in self.words(),
                   self.words)
        self.assertEqual(self.port("a")["kernel_link"], "gone")
        self.expect(NOBODY, kernel_down=N)
        self.finish()
        # The cure that was told.
        PAIR.ip("balancer", "link", "del", "dev", "a")
        self.start([{"name": "a", "device": "net_af_xdp,iface=a0",
                     "next_hop": PEER_MAC["a1"]},
                    {"name": "b", "device": "net_af_packet,iface=b0"}], kernel="tap")
        self.wait_for("a", link="up", kernel_link="up")
        self.expect(NOBODY, to_kernel=N)
        self.finish()


class Devices(PortCase):
    def test_what_the_kernel_sends_is_not_received(self):
        """Not even to the service's own address, by the interface that the port is."""
        self.start([{"name": "a", "device": "net_af_packet,iface=a0"}])
        PAIR.route("a0")
        wait_until(lambda: self.ask("status")["unreached"] == 1, self.words)
        PAIR.ip("balancer", "route", "add", NEAR, "via", BACKEND[NEAR], "dev", "a0")
        heard = self.listen("a1")
        before = self.ask("stats")["packets"]["received"]
        with PAIR.socket("balancer", socket.AF_INET, socket.SOCK_DGRAM) as out:
            for _ in range(N):
                out.sendto(b"of the kernel", (NEAR, 53))
        self.expect(NEAR, forwarded=N)  # behind them in the queue
        self.assertEqual(self.ask("stats")["packets"]["received"], before + N)
        protocols = []
        while len(protocols) < 2 * N:
            frame, address = heard.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING:
                protocols.append(frame[23])
        self.assertEqual(sorted(protocols), [4] * N + [17] * N)
        self.finish()

    def test_what_is_for_another_is_not_received(self):
        """As a switch floods it that does not know where that one is."""
        for driver in ("net_af_packet", "net_af_xdp"):
            with self.subTest(driver):
                self.start([{"name": "a", "device": f"{driver},iface=a0",
                             "next_hop": PEER_MAC["a1"]}])
                own, self.mac = self.mac, bytes.fromhex("0200000000aa")
                before = self.ask("stats")["packets"]["received"]
                self.send(NEAR)
                self.mac = own
                self.expect(NEAR, forwarded=N)  # behind them in the queue
                self.assertEqual(self.ask("stats")["packets"]["received"], before + N)
                self.finish()

    def test_workers_spread_what_the_device_does_not(self):
        rows = [("one queue, two workers", "net_af_packet,iface=a0", 2, 1, "workers"),
                ("two queues of a packet socket", "net_af_packet,iface=a0,qpairs=2", 2, 2,
                 "workers"),
                ("one worker has all flows", "net_af_packet,iface=a0", 1, 1, "device")]
        for what, device, workers, queues, spread_by in rows:
            with self.subTest(what):
                self.start([{"name": "a", "device": device}], workers=workers)
                PAIR.route("a0")
                wait_until(lambda: self.ask("status")["unreached"] == 1, self.words)
                port = self.port("a")
                self.assertEqual((port["rx_queues"], port["spread_by"]), (queues, spread_by))
                self.assertEqual("does not spread" in self.words(), queues > 1)
                self.expect(NEAR, forwarded=N)
                self.expect(NEAR, forwarded=N)
                self.finish()

    def test_a_large_mtu_is_one_in_deed(self):
        mtu = self.find_largest_mtu()
        PAIR.unlink()
        PAIR.link("a", mtu=mtu)
        self.mac = PAIR.mac("a0")
        self.start([{"name": "a", "device": "net_af_xdp,iface=a0", "mtu": mtu,
                     "next_hop": PEER_MAC["a1"]}], kernel="tap")
        self.assertIn("its twin takes an MTU of at most 1504", self.words())
        shown = json.loads(PAIR.ip("balancer", "-j", "link", "show", "dev", "a"))
        self.assertEqual(shown[0]["mtu"], 1504)
        heard = self.listen("a1")
        self.expect(FAR, size=mtu - 20, forwarded=N)
        self.assertEqual(self.hear(heard, N), [14 + mtu] * N)
        # Without DF a packet that is a byte too long leaves as two.
        self.expect(FAR, size=mtu - 19, forwarded=N)
        frames = self.hear(heard, 2 * N)
        self.assertLessEqual(max(frames), 14 + mtu)
        self.assertEqual(sum(frames), N * (mtu - 39 + 2 * (14 + 20 + 20)))
        self.expect(NOBODY, size=1504, to_kernel=N)
        self.expect(NOBODY, size=2500, too_big=N)
        self.expect(NOBODY, to_kernel=N)
        self.finish()

    def test_no_frame_goes_to_a_router_for_a_service(self):
        """forward: l2 keeps the service's address: the router would send it back."""
        behind = {"forward": "l2", "backends": [{"name": "one", "address": "10.9.9.9"}]}
        ports = [{"name": "a", "device": "net_af_packet,iface=a0"}]
        self.start(ports, near={**behind, "forward": "ipip"})
        PAIR.route("a0")
        PAIR.ip("balancer", "route", "add", "10.9.9.0/24", "via", BACKEND[NEAR])
        wait_until(lambda: self.ask("status")["unreached"] == 1, self.words)  # that of far
        self.expect(NEAR, forwarded=N)
        self.write(ports, near=behind)
        self.ask("reload")
        self.assertEqual(self.ask("status")["unreached"], 2)
        self.expect(NEAR, no_next_hop=N)
        self.assertIn("backend 'near/one' is behind a router, where forward: l2 does not reach",
                      self.words())
        # What it is told to use, it uses; and it does so where the backend is a neighbour.
        for hop, backend in (({}, {"address": "10.9.9.9", "mac": PEER_MAC["a1"]}),
                             ({}, {"address": BACKEND[NEAR]}),
                             ({"next_hop": PEER_MAC["a1"]}, {"address": "10.9.9.9"})):
            with self.subTest(hop=hop, backend=backend):
                self.write([{**ports[0], **hop}],
                           near={**behind, "backends": [{"name": "one", **backend}]})
                self.ask("reload")
                wait_until(lambda: self.ask("status")["unreached"] == (0 if hop else 1),
                           self.words)
                self.expect(NEAR, forwarded=N)
        self.assertEqual(self.words().count("is behind a router"), 1)
        self.finish()

    def test_more_workers_than_a_tap_device_has_queues(self):
        """DPDK passes on 8 descriptors of one, two for each pair of queues."""
        self.start([{"name": "a", "device": "net_af_xdp,iface=a0",
                     "next_hop": PEER_MAC["a1"]}], kernel="tap", workers=6)
        self.expect(FAR, forwarded=N)
        self.expect(NOBODY, to_kernel=N)
        self.finish()
        for port, kernel in (({**NULL, "device": "net_null0,no-rx=1"}, "tap"),
                             ({"name": "own", "device": "net_tap0,iface=shunttap"}, "none")):
            with self.subTest(port):
                self.start([port], kernel=kernel, workers=5)
                self.wait_for(port["name"], link="up")
                self.finish()

    def test_status_tells_of_links(self):
        self.start([{"name": "a", "device": "net_af_packet,iface=a0"},
                    {"name": "c", "device": "net_null0"}])
        self.assertEqual(self.port("a")["link"], "up")
        self.assertEqual(self.port("a")["speed_mbps"], 10000)  # as the kernel says of a veth
        self.assertIsNone(self.port("a")["kernel_link"])
        self.assertEqual(self.port("c")["link"], "up")
        self.assertIsNone(self.port("c")["speed_mbps"])
        text = run(lab.SHUNTCTL, "--socket", self.folder / "sock", "status")
        self.assertIn("LINK", text)
        self.finish()


PACKET = "net_af_packet,iface=a0"


class Floods(PortCase):
    """More packets than a port has buffers, each a flow of its own."""

    N = 100000

    def flood(self, n):
        """As fast as one process can."""
        head = self.mac + bytes.fromhex("0200000000fe") + b"\x08\x00"
        packet = udp(FAR, 0)
        with PAIR.socket("peer", socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("a1", 0))
            for i in range(n):
                out.send(head + packet[:20] + struct.pack("!H", i & 0xffff) + packet[22:])

    def count_missed(self):
        return sum(self.port("a")["missed"].values())

    def settle(self, n):
        """Each of all packets so far was received, or missed by the device."""
        def count():
            return sum(self.counted().values()) + self.count_missed()

        wait_until(lambda: count() == n,
                   lambda: f"{self.counted()} {self.port('a')}\n{self.words()}")

    def begin(self, mtu=1500, device="net_af_xdp,iface=a0", **keys):
        PAIR.unlink()
        PAIR.link("a", mtu=mtu)
        self.mac = PAIR.mac("a0")
        self.start([{"name": "a", "device": device, "mtu": mtu,
                     "next_hop": PEER_MAC["a1"]}], **keys)

    def test_a_port_receives_after_a_flood(self):
        """No buffer is lost in it, and no packet uncounted."""
        rows = [("one worker", {}), ("two workers", {"workers": 2}),
                ("two workers and a twin", {"workers": 2, "kernel": "tap"}),
                ("the largest MTU", {"workers": 2, "mtu": self.find_largest_mtu()}),
                ("a packet socket", {"device": PACKET}),
                ("two of them", {"device": f"{PACKET},qpairs=2", "workers": 2}),
                ("with larger frames", {"device": f"{PACKET},framesz=4096,blocksz=8192"})]
        for what, keys in rows:
            with self.subTest(what):
                self.begin(**keys)
                for i in range(3):
                    self.flood(self.N)
                    self.settle((i + 1) * self.N)
                self.expect(FAR, forwarded=N, size=keys.get("mtu", 1500) - 20)
                self.expect(FAR, forwarded=N)
                self.settle(3 * self.N + 2 * N)
                self.finish()

    def test_what_the_device_missed_is_told(self):
        for what, device, workers in (("an XDP socket", "net_af_xdp,iface=a0", 1),
                                      ("a packet socket", PACKET, 1),
                                      ("two of them", f"{PACKET},qpairs=2", 2)):
            with self.subTest(what):
                self.begin(device=device, workers=workers)
                self.miss()

    def miss(self):
        self.assertEqual(self.port("a")["missed"], {"no_room": 0, "error": 0, "no_buffer": 0})
        self.process.send_signal(signal.SIGSTOP)
        self.flood(10000)
        self.process.send_signal(signal.SIGCONT)
        self.settle(10000)
        missed = self.port("a")["missed"]
        self.assertGreater(missed["no_room"], 0)
        self.assertLess(missed["no_room"], 10000)
        text = run("ip", "netns", "exec", PAIR.netns("balancer"), "curl", "--silent",
                   "--noproxy", "*", f"http://{METRICS}/metrics")
        for reason, n in missed.items():
            self.assertIn(f'shunt_port_missed_packets_total{{port="a",reason="{reason}"}} {n}',
                          text.splitlines())
        *_, head, row = run(lab.SHUNTCTL, "--socket", self.folder / "sock",
                            "status").splitlines()
        self.assertEqual((head.split()[-1], row.split()[-1]),
                         ("MISSED", str(missed["no_room"])))
        with Client(next(self.folder.glob("dpdk/*/dpdk_telemetry.v2"))) as client:
            told = client.ask("/shunt/ports")
        self.assertEqual(told, {"ports": ["a"], "links": ["up"],
                                **{f"missed_{reason}": [n] for reason, n in missed.items()}})
        self.finish()


def as_nobody(*more):
    return ("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", *more)


# What, the ports, other keys of the plane, --eal, what it is started by, what it says.
A = {"name": "wan", "device": "net_af_packet,iface=a0"}
NULL = {"name": "wan", "device": "net_null0"}
START_ROWS = [
    ("no such interface", [{**A, "device": "net_af_packet,iface=nosuch"}], {}, None, (),
     "port 'wan': there is no interface 'nosuch'; 'ip link' lists those there are"),
    ("no such driver", [{**NULL, "device": "net_nosuch"}], {}, None, (),
     "a port's device is a PCI address or begins with the name of a driver"),
    ("no such PCI device", [{**NULL, "device": "0000:fe:1f.7"}], {}, None, (),
     "port 'wan': this machine has no PCI device at '0000:fe:1f.7'; 'lspci -D' lists"),
    ("an MTU that the device does not take", [{**A, "mtu": 9000}], {}, None, (),
     "port 'wan': device 'net_af_packet,iface=a0' takes an MTU of at most 1500, mtu: is 9000"),
    ("the twin's name is taken", [{**NULL, "name": "b0"}], {"kernel": "tap"}, None, (),
     "TAP device 'b0', cannot be made: there is an interface of that name; give the port "
     "another name"),
    ("the twin's name is the device's", [{**A, "name": "a0", "device": "net_af_xdp,iface=a0"}],
     {"kernel": "tap"}, None, (),
     "TAP device 'a0', cannot be made: there is an interface of that name; give the port "
     "another name"),
    ("frames that no buffer holds", [{**A, "device": "net_af_packet,iface=a0,framesz=65408,"
                                     "blocksz=131072"}], {}, None, (),
     "a packet buffer has no room for framesz=; it may be 65392"),
    ("queues without workers", [{**A, "device": "net_af_packet,iface=a0,qpairs=2"}], {}, None,
     (), "give it fewer, or set dataplane.workers: 2"),
    ("an argument that the EAL does not know", [NULL], {}, "--nosuch", (),
     "DPDK does not start: Invalid argument; is --eal '--nosuch' right? "),
    ("a memif whose other end is not there", [{**NULL, "device": "net_memif,socket=/nosuch"}],
     {}, None, (), "nobody listens at its memif socket; start the other end first, which has "
     "role=server, or give this one role=server"),
    ("too little memory", [NULL], {"workers": 16}, None, ("prlimit", "--as=300000000"),
     "memory"),
    ("a packet socket without a privilege", [A], {}, None, as_nobody(),
     "it takes root, or CAP_NET_RAW and CAP_NET_ADMIN"),
    ("an XDP socket without a privilege", [{**A, "device": "net_af_xdp,iface=a0"}], {}, None,
     as_nobody(), "it takes root, or CAP_NET_ADMIN and CAP_NET_RAW, and for XDP CAP_SYS_ADMIN"),
    ("a twin without a privilege", [NULL], {"kernel": "tap"}, None, as_nobody(),
     "this process may not: it takes root, or CAP_NET_ADMIN and access to /dev/net/tun"),
]


def limit_memory(mib):
    """Arguments of the EAL, which takes huge pages where there are free ones."""
    free = any(int(path.read_text()) for path in
               pathlib.Path("/sys/kernel/mm/hugepages").glob("*/free_hugepages"))
    if free and " hugetlbfs " in pathlib.Path("/proc/mounts").read_text(encoding="utf-8"):
        nodes = list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*"))
        return "--socket-limit=" + ",".join([str(mib)] * max(len(nodes), 1))
    return f"-m {mib}"


class Starts(PortCase):
    def refuse(self, ports, keys, eal, prefix, says):
        config = self.write(ports, **keys)
        done = subprocess.run(
            self.command(config, *(["--eal", eal] if eal else []), prefix=prefix),
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=lab.TIMEOUT_S)
        if "Sanitizer failed to allocate" in done.stderr:
            self.skipTest("a sanitizer needs more memory than this row leaves")
        self.assertEqual(done.returncode, lab.FAILED, done.stderr)
        # What is closed after that may have its libraries speak.
        last = [line for line in done.stderr.splitlines() if not line.startswith("lib")][-1]
        self.assertIn(says, last)
        return last

    def test_each_refusal_names_its_cure(self):
        for what, ports, keys, eal, prefix, says in START_ROWS:
            with self.subTest(what):
                last = self.refuse(ports, keys, eal, prefix, says)
                # It would be followed: no NIC is to go by it.
                self.assertNotIn("ip link del", last)

    def test_what_waits_takes_memory_that_is_named(self):
        """It is asked for with the rest; and where there is less, both keys are told."""
        waiting = {"workers": 2, "fragments": {"waiting": 65535}}
        last = self.refuse([NULL], waiting, limit_memory(256), (),
                           "of these dataplane.fragments.waiting: that, or fewer workers")
        total, of_it = (int(n) for n in re.findall(r"(\d+) bytes?, and (\d+) of", last)[0])
        self.assertGreater(of_it, 2 * 65535 * 2048)
        self.assertGreater(total, of_it)
        self.start([NULL], **waiting)
        self.finish()

    def test_a_tap_device_of_somebody_else_stays_his(self):
        PAIR.ip("balancer", "tuntap", "add", "dev", "wan", "mode", "tap",
                "multi_queue")
        self.addCleanup(PAIR.ip, "balancer", "link", "del", "dev", "wan")
        self.refuse([NULL], {"kernel": "tap"}, None, (),
                    "TAP device 'wan', cannot be made: there is an interface of that name; "
                    "give the port another name, or 'ip link del wan'")

    def test_queues_that_an_xdp_socket_leaves_unread(self):
        PAIR.unlink()
        PAIR.link("a", queues=2)
        self.mac = PAIR.mac("a0")
        device = "net_af_xdp,iface=a0"
        port = {"name": "a", "device": device, "next_hop": PEER_MAC["a1"]}
        self.refuse([port], {}, None, (),
                    f"port 'a': interface 'a0' receives by 2 queues, and device '{device}' "
                    "reads 1: 'ethtool -L a0 rx 1'; or if it steers")
        # Where somebody has it steer, he is told.
        self.start([{**port, "device": f"{device},start_queue=0"}])
        self.assertIn("reads 1 of the 2 queues of its interface; what comes by others is the "
                      "kernel's", self.words())
        self.finish()
        # The cure. The other end sends by no more than this one receives by.
        PAIR.set_queues("peer", "a1", "tx", 1)
        PAIR.set_queues("balancer", "a0", "rx", 1)
        self.start([port])
        self.assertNotIn("queues", self.words())
        self.expect(FAR, forwarded=N)
        self.finish()

    def test_an_xdp_socket_for_each_queue(self):
        """Of a driver whose channels receive and send."""
        PAIR.ip("balancer", "tuntap", "add", "dev", "many", "mode", "tap", "multi_queue")
        self.addCleanup(PAIR.ip, "balancer", "link", "del", "many")
        for _ in range(2):
            self.addCleanup(os.close, PAIR.open_tap("many"))
        PAIR.ip("balancer", "link", "set", "many", "up")
        device = "net_af_xdp,iface=many"
        self.refuse([{"name": "a", "device": device}], {}, None, (),
                    f"interface 'many' receives by 2 queues, and device '{device}' reads 1: "
                    "'ethtool -L many combined 1', or queue_count=2 in device: and "
                    "dataplane.workers: 2; or if")
        self.start([{"name": "a", "device": f"{device},queue_count=2"}], workers=2)
        self.assertEqual(self.port("a")["rx_queues"], 2)
        self.finish()

    def test_a_capture_again_and_again(self):
        """Its packets have buffers beside those that copies of them come in."""
        path = self.folder / "in.pcap"
        port = {"name": "a", "device": f"net_pcap0,{3 * f'rx_pcap={path},'}infinite_rx=1",
                "next_hop": PEER_MAC["a1"]}

        def write(n, size):
            frame = self.mac + bytes.fromhex("0200000000fe") + b"\x08\x00" + udp(FAR, 1024, size)
            path.write_bytes(captures.pcap([captures.Packet(frame)] * n))

        most = 16384
        write(most, 64)
        self.start([port], workers=3)
        wait_until(lambda: self.counted()["forwarded"] > 3 * most, self.words)
        self.assertEqual(self.counted()["no_memory"], 0)
        self.finish()
        # One too many; more than all buffers; one larger than a buffer.
        for n, size in ((most + 1, 64), (2 * most, 64), (1, 3000)):
            with self.subTest(n=n, size=size):
                write(n, size)
                self.refuse([port], {"workers": 3}, None, (),
                            f"it may have {most} packets, none of them longer than mtu: allows")

    def test_huge_pages_that_are_not_there(self):
        meminfo = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
        free = [line.split()[1] for line in meminfo.splitlines()
                if line.startswith("HugePages_Free:")]
        if free != ["0"]:
            self.skipTest("this machine has huge pages")
        self.refuse([NULL], {}, "--socket-mem=64", (),
                    "--eal asks for huge pages, and none are free")


def why_not():
    """Why this cannot be tested here; empty where it can."""
    if os.geteuid() != 0:
        return "not root: network namespaces and packet sockets take it"
    for program, package in (("ip", "iproute2"), ("curl", "curl"), ("ethtool", "ethtool"),
                             ("setpriv", "util-linux"), ("prlimit", "util-linux")):
        if shutil.which(program, path=lab.PATH) is None:
            return f"there is no {program} command (Debian: {package})"
    try:
        PAIR.make()
    except OSError as error:
        return f"no such network here: {error}"
    return ""


def main():
    if not lab.SHUNTD or not lab.SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        why = why_not()
        if why:
            print(f"skipped: {why}")
            sys.exit(77)
        unittest.main()
    finally:
        PAIR.remove()


if __name__ == "__main__":
    main()
