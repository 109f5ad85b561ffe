#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shunt-decap against the kernel: frames in at one end of a veth pair, a backend at the other.

Both ends are in network namespaces of their own. The sending end says nothing by itself (no
ARP, no IPv6), so that the counters can be held to the packet. SHUNT_DECAP names the program.
"""

import contextlib
import ctypes
import ipaddress
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import wire  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = os.environ.get("SHUNT_DECAP", "")
TIMEOUT_S = 60

CLIENT, CLIENT6 = "203.0.113.7", "2001:db8:113::7"
VIP, VIP6 = "198.51.100.10", "2001:db8:51::10"
OTHER, OTHER6 = "198.51.100.99", "2001:db8:51::99"
ROUTER, ROUTER6 = "10.0.0.1", "2001:db8:a::1"
BACKEND, BACKEND6 = "10.0.0.11", "2001:db8:a::11"
TOLD = "192.0.2.77"
GUE_PORT = 6080
ECHO_PORT = 7000
NOT_ECT, ECT1, ECT0, CE = range(4)

PACKET_AUXDATA = 8
SOL_PACKET = 263
PACKET_OUTGOING = 4
ETH_P_ALL = 3
LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*args, netns=None):
    prefix = ["ip"] if netns is None else ["ip", "-n", netns]
    done = subprocess.run([*prefix, *args], check=False, capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(args)}: {done.stderr}")


@contextlib.contextmanager
def inside(netns):
    """What is made in here, sockets above all, belongs to that namespace."""
    with open("/proc/self/ns/net", "rb") as home, open(f"/run/netns/{netns}", "rb") as there:
        for fd in (there, home):
            if LIBC.setns(fd.fileno(), 0x40000000) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            if fd is there:
                try:
                    yield
                except BaseException:
                    LIBC.setns(home.fileno(), 0x40000000)
                    raise


def raw_socket(netns, interface):
    with inside(netns):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.bind((interface, 0))
    made.settimeout(5)
    made.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    return made


def receive(tap):
    """The next frame that came in, with the tag that the kernel has put aside in its place."""
    while True:
        data, ancillary, _, address = tap.recvmsg(65536, 256)
        if address[2] == PACKET_OUTGOING:
            continue
        for level, kind, aux in ancillary:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack_from("=IIIHHHH", aux)
                if status & 0x10:  # TP_STATUS_VLAN_VALID
                    data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data


def tunnel(kind, outer, inner, *, tos=0, options=b"", dst=None, port=GUE_PORT):
    """inner in an outer packet to the backend, as the balancer makes it."""
    src, own = (ROUTER, BACKEND) if outer == 4 else (ROUTER6, BACKEND6)
    fields = {"tos": tos}
    if options:
        fields["options"] = options
    is_v6 = inner[0] >> 4 == 6
    if kind == "ipip":
        proto, payload = wire.IPV6 if is_v6 else wire.IPIP, inner
    elif kind == "gre":
        proto = wire.GRE
        payload = struct.pack("!HH", 0, 0x86DD if is_v6 else 0x0800) + inner
    else:
        proto = wire.UDP
        payload = struct.pack("!HHHH", 50000, port, 8 + len(inner), 0) + inner
    return wire.ip(src, dst or own, proto, payload, **fields)


def request(family=4, dst=None, payload=b"are you there?", **fields):
    """A datagram of a client's to the service."""
    src, own = (CLIENT, VIP) if family == 4 else (CLIENT6, VIP6)
    return wire.udp(src, dst or own, 40000, ECHO_PORT, payload, **fields)


# The kernel remembers a connection for a while, from one test to the next.
FRESH_PORTS = itertools.count(30000)

ALL = [(kind, outer, inner) for kind in ("ipip", "gre", "gue") for outer in (4, 6)
       for inner in (4, 6)]


class World:
    """Two namespaces: the router's end of a cable, and the backend's."""

    def __init__(self):
        self.router = f"shunt-decap-{os.getpid()}-r"
        self.backend = f"shunt-decap-{os.getpid()}-b"

    def make(self):
        router, backend = self.router, self.backend
        ip("netns", "add", router)
        ip("netns", "add", backend)
        for netns, key, value in ((router, "ipv6/conf/default/disable_ipv6", "1"),
                                  (backend, "ipv6/conf/default/accept_dad", "0"),
                                  (backend, "ipv4/conf/all/rp_filter", "0"),
                                  (backend, "ipv4/conf/default/rp_filter", "0")):
            with inside(netns):
                pathlib.Path("/proc/sys/net", key).write_text(value, encoding="ascii")
        ip("link", "add", "out", "mtu", "9000", "address", wire.ROUTER_MAC, "type", "veth",
           "peer", "name", "eth0", "mtu", "9000", "address", wire.OWN_MAC, "netns", backend,
           netns=router)
        ip("link", "set", "out", "arp", "off", "up", netns=router)
        ip("link", "set", "lo", "up", netns=backend)
        ip("link", "set", "eth0", "up", netns=backend)
        for address, interface in ((f"{BACKEND}/24", "eth0"), (f"{BACKEND6}/64", "eth0"),
                                   (f"{VIP}/32", "lo"), (f"{VIP6}/128", "lo")):
            ip("address", "add", address, "dev", interface, netns=backend)
        for family, gateway in (("-4", ROUTER), ("-6", ROUTER6)):
            ip(family, "neighbour", "add", gateway, "lladdr", wire.ROUTER_MAC, "dev", "eth0",
               netns=backend)
            ip(family, "route", "add", "default", "via", gateway, netns=backend)

    def remove(self):
        for netns in (self.router, self.backend):
            subprocess.run(["ip", "netns", "delete", netns], check=False,
                           capture_output=True)


WORLD = World()


def command(*args):
    return ["ip", "netns", "exec", WORLD.backend, PROGRAM, "--interface", "eth0", *args]


def run(*args, **popen):
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False, **popen)


class DecapCase(unittest.TestCase):
    maxDiff = 3000
    mode = "auto"

    def setUp(self):
        self.tap = raw_socket(WORLD.backend, "eth0")
        self.addCleanup(self.tap.close)
        self.router = raw_socket(WORLD.router, "out")
        self.addCleanup(self.router.close)

    def start(self, *args, services=(VIP, VIP6)):
        """A running shunt-decap, with its program attached."""
        told = [word for service in services for word in ("--service", service)]
        running = subprocess.Popen(
            command("--mode", self.mode, *told, *args), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, running)
        line = running.stderr.readline()
        self.assertIn("attached", line)
        return running

    def end(self, running):
        if running.poll() is None:
            running.send_signal(signal.SIGTERM)
        _, stderr = running.communicate(timeout=TIMEOUT_S)
        self.assertNotIn("Sanitizer", stderr)
        return running.returncode, stderr

    def send(self, frame):
        self.router.send(frame)

    def expect(self, sent, received):
        """One frame in, that frame in front of the backend's kernel."""
        self.send(sent)
        self.assertEqual(receive(self.tap).hex(" "), received.hex(" "))

    def counters(self):
        shown = run("--show", "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        report = json.loads(shown.stdout)
        self.assertEqual(report["schema"], 1)
        self.assertEqual(report["received"], sum(
            sum(report[group].values()) for group in ("decapsulated", "dropped", "passed")))
        return report

    def expect_counters(self, **wanted):
        """Those named as GROUP_NAME, and all others of the groups 0."""
        report = self.counters()
        found = {f"{group}__{name}": value
                 for group in ("decapsulated", "dropped", "passed")
                 for name, value in report[group].items() if value != 0}
        self.assertEqual(found, wanted)
        return report


class EachMode:
    """What must hold in the driver as well as after it."""

    def test_every_tunnel_is_taken_off(self):
        self.start()
        total = 0
        for kind, outer, inner in ALL:
            with self.subTest(kind=kind, outer=outer, inner=inner):
                packet = request(inner, ttl=17, tos=0xB8)
                total += len(packet)
                self.expect(wire.ether(tunnel(kind, outer, packet, tos=0xB8)),
                            wire.ether(packet))
        report = self.expect_counters(**{
            f"decapsulated__{kind}_{inner}in{outer}": 1 for kind, outer, inner in ALL})
        self.assertEqual(report["decapsulated_bytes"], total)
        self.assertEqual(report["ecn_marked"], 0)
        self.assertEqual(report["mode"], self.mode)

    def test_a_server_hears_the_client_and_answers_it(self):
        self.start()
        for kind, outer, inner in ALL:
            family, vip = ((socket.AF_INET, VIP), (socket.AF_INET6, VIP6))[inner == 6]
            client = CLIENT if inner == 4 else CLIENT6
            with self.subTest(kind=kind, outer=outer, inner=inner):
                with inside(WORLD.backend):
                    server = socket.socket(family, socket.SOCK_DGRAM)
                with server:
                    server.settimeout(5)
                    server.bind((vip, ECHO_PORT))
                    self.send(wire.ether(tunnel(kind, outer, request(inner))))
                    data, peer = server.recvfrom(2048)
                    self.assertEqual((data, *peer[:2]), (b"are you there?", client, 40000))
                    server.sendto(b"I am", peer)
                answer = self.answer(wire.UDP, 40000)
                self.assertEqual((answer.src, answer.dst), (vip, client))
                self.assertEqual(answer.payload[8:], b"I am")

    def answer(self, proto, dport):
        """The next IP packet that the backend has sent to that port."""
        while True:
            frame = wire.parse_ether(receive(self.router))
            if frame.ethertype not in (0x0800, 0x86DD):
                continue
            packet = wire.parse_ip(frame.payload)
            if packet.proto == proto and packet.payload[2:4] == struct.pack("!H", dport):
                return packet

    def test_a_connection_is_made(self):
        self.start()
        for kind, outer in (("ipip", 4), ("gre", 6), ("gue", 4)):
            with self.subTest(kind=kind), inside(WORLD.backend):
                server = socket.create_server((VIP, 80))
            with server:
                server.settimeout(5)
                sport = next(FRESH_PORTS)
                syn = wire.tcp(CLIENT, VIP, sport, 80, wire.SYN, seq=1000)
                self.send(wire.ether(tunnel(kind, outer, syn)))
                reply = self.answer(wire.TCP, sport).payload
                their_seq, ours = struct.unpack_from("!II", reply, 4)
                self.assertEqual((ours, reply[13]), (1001, wire.SYN | wire.ACK))
                ack = self.segment(sport, 1001, their_seq + 1, b"GET /\r\n")
                self.send(wire.ether(tunnel(kind, outer, ack)))
                connection, peer = server.accept()
                with connection:
                    connection.settimeout(5)
                    self.assertEqual(peer, (CLIENT, sport))
                    self.assertEqual(connection.recv(100), b"GET /\r\n")

    @staticmethod
    def segment(sport, seq, ack, payload):
        """An ACK with data; wire.tcp() has no acknowledgement number."""
        def made(value):
            return struct.pack("!HHIIBBHHH", sport, 80, seq, ack & 0xFFFFFFFF, 0x50, wire.ACK,
                               65535, value, 0) + payload

        pseudo = wire.pseudo_header(wire.address(CLIENT), wire.address(VIP), wire.TCP,
                                    20 + len(payload))
        return wire.ipv4(CLIENT, VIP, wire.TCP, made(wire.checksum(pseudo + made(0))))

    def test_ecn_is_combined_as_rfc_6040_says(self):
        # Inner by outer, figure 4; None is the drop.
        table = {
            NOT_ECT: (NOT_ECT, NOT_ECT, NOT_ECT, None),
            ECT0: (ECT0, ECT1, ECT0, CE),
            ECT1: (ECT1, ECT1, ECT1, CE),
            CE: (CE, CE, CE, CE),
        }
        self.start()
        dropped = marked = 0
        for kind, outer, inner in ALL:
            for inner_ecn, row in table.items():
                for outer_ecn, result in enumerate(row):
                    with self.subTest(kind=kind, outer=outer, inner=inner,
                                      inner_ecn=inner_ecn, outer_ecn=outer_ecn):
                        sent = wire.ether(tunnel(
                            kind, outer, request(inner, tos=0xB8 | inner_ecn),
                            tos=0x28 | outer_ecn))
                        if result is None:
                            self.send(sent)
                            dropped += 1
                            continue
                        # The builder computes the checksum anew: an update has to agree.
                        self.expect(sent, wire.ether(request(inner, tos=0xB8 | result)))
                        marked += result != inner_ecn
        report = self.counters()
        self.assertEqual(report["dropped"], {"ecn": dropped, "failed": 0})
        self.assertEqual(dropped, len(ALL))
        self.assertEqual(report["ecn_marked"], marked)

    def test_ecn_marking_keeps_every_checksum_right(self):
        self.start()
        for ident in (*range(0, 65536, 1021), 0xFFFF, 0xFFFE):
            self.expect(wire.ether(tunnel("ipip", 4, request(tos=ECT0, ident=ident), tos=CE)),
                        wire.ether(request(tos=CE, ident=ident)))

    def test_a_wrong_inner_checksum_stays_wrong(self):
        self.start()
        packet = bytearray(request(tos=ECT0))
        packet[10] ^= 0x40
        self.send(wire.ether(tunnel("ipip", 4, bytes(packet), tos=CE)))
        self.assertNotEqual(wire.checksum(receive(self.tap)[14:34]), 0)

    def test_tags_are_kept(self):
        self.start()
        for tags in ([(0x8100, 0x600A)], [(0x88A8, 0x0014), (0x8100, 0x200A)]):
            for kind, outer, inner in ALL:
                with self.subTest(tags=tags, kind=kind, outer=outer, inner=inner):
                    self.expect(
                        wire.ether(tunnel(kind, outer, request(inner)), tags=tags),
                        wire.ether(request(inner), tags=tags))

    def test_three_tags_are_left_alone(self):
        self.start()
        frame = wire.ether(tunnel("ipip", 4, request()), tags=[(0x8100, 1)] * 3)
        self.expect(frame, frame)
        self.expect_counters(passed__other=1)

    def test_outer_options_go_with_the_header(self):
        self.start()
        for words in (1, 5, 10):
            self.expect(wire.ether(tunnel("gue", 4, request(), options=b"\x01" * 4 * words)),
                        wire.ether(request()))
        self.expect_counters(decapsulated__gue_4in4=3)

    def test_inner_options_and_fragments_stay(self):
        self.start()
        for packet in (request(options=b"\x01" * 40), request(fragment=0x2000),
                       wire.ipv4(CLIENT, VIP, wire.UDP, b"x" * 8, fragment=3)):
            self.expect(wire.ether(tunnel("ipip", 6, packet)), wire.ether(packet))

    def test_padding_stays_behind(self):
        self.start()
        packet = request(payload=b"")
        self.expect(wire.ether(tunnel("ipip", 4, packet)) + b"\0" * 20,
                    wire.ether(packet) + b"\0" * 20)

    def test_large_packets(self):
        self.start()
        packet = request(payload=b"x" * 8800)
        self.expect(wire.ether(tunnel("gue", 6, packet)), wire.ether(packet))

    def test_what_is_not_for_it_passes_untouched(self):
        plain = request()
        gre = struct.pack("!HH", 0, 0x0800) + plain

        def v4(proto, payload, **fields):
            return wire.ipv4(ROUTER, BACKEND, proto, payload, **fields)

        def gre_flags(bits, options):
            return v4(wire.GRE, struct.pack("!HH", bits, 0x0800) + options + plain)

        def gue(payload, **fields):
            length = fields.pop("length", 8 + len(payload))
            return v4(wire.UDP, struct.pack("!HHHH", 50000, GUE_PORT, length, 0) + payload,
                      **fields)

        def v6(proto, payload, **fields):
            return wire.ipv6(ROUTER6, BACKEND6, proto, payload, **fields)

        other = wire.udp(ROUTER, BACKEND, 1, 2, b"x")
        rows = [
            ("a datagram that is no tunnel's", other, "other"),
            ("TCP", wire.tcp(CLIENT, VIP, 1, 80), "other"),
            ("what was never in a tunnel", plain, "other"),
            ("a tunnel to another backend", tunnel("ipip", 4, plain, dst=OTHER), "outer"),
            ("GUE to another backend", tunnel("gue", 6, plain, dst=OTHER6), "outer"),
            ("no service inside", tunnel("ipip", 4, request(dst=OTHER)), "service"),
            ("no IPv6 service inside", tunnel("gue", 6, request(6, dst=OTHER6)), "service"),
            ("the backend's own address inside", tunnel("gre", 4, request(dst=BACKEND)),
             "service"),
            ("GRE with a checksum", gre_flags(0x8000, b"\0" * 4), "gre"),
            ("GRE with a key", gre_flags(0x2000, b"\0" * 4), "gre"),
            ("GRE with a sequence number", gre_flags(0x1000, b"\0" * 4), "gre"),
            ("GRE version 1", gre_flags(0x0001, b""), "gre"),
            ("GRE of a frame", v4(wire.GRE, struct.pack("!HH", 0, 0x6558) + plain), "gre"),
            ("half a GRE header", v4(wire.GRE, b"\0\0\x08"), "length"),
            ("GRE of nothing", v4(wire.GRE, gre[:4]), "length"),
            ("GRE that announces the other family",
             v4(wire.GRE, struct.pack("!HH", 0, 0x86DD) + plain), "inner"),
            ("IPIP that announces the other family", v4(wire.IPV6, plain), "inner"),
            ("GUE variant 0", gue(b"\0\x04\0\0" + plain), "gue"),
            ("GUE of IP version 5", gue(b"\x55" + plain[1:]), "inner"),
            ("GUE of nothing", gue(b""), "length"),
            ("half a UDP header", v4(wire.UDP, struct.pack("!HH", 1, GUE_PORT)), "other"),
            ("GUE longer than its packet", gue(plain, length=9 + len(plain)), "length"),
            ("GUE that cuts the inner packet", gue(plain, length=7 + len(plain)), "length"),
            ("GUE of length 0", gue(plain, length=0), "length"),
            ("the first fragment of a tunnel", v4(wire.IPIP, plain, fragment=0x2000),
             "fragment"),
            ("a later fragment of a tunnel", v4(wire.GRE, plain, fragment=7), "fragment"),
            ("a fragment of GUE", gue(plain, fragment=0x2000), "fragment"),
            ("a fragment of an IPv6 tunnel",
             v6(wire.FRAGMENT, wire.fragment_header(wire.IPIP, 0, 1) + plain), "fragment"),
            ("a fragment to another backend",
             wire.ipv4(ROUTER, OTHER, wire.IPIP, plain, fragment=0x2000), "outer"),
            ("an extension header outside",
             v6(wire.DESTINATION_OPTIONS, wire.extension(wire.IPIP) + plain), "other"),
            ("an outer checksum that is wrong", v4(wire.IPIP, plain, csum=0x1234),
             "checksum"),
            ("an outer checksum that is wrong, behind options",
             v4(wire.IPIP, plain, csum=0x1234, options=b"\x01" * 40), "checksum"),
            ("an outer header of 16 bytes", v4(wire.IPIP, plain, ihl=4), "length"),
            ("an outer header longer than its packet", v4(wire.IPIP, b"", ihl=15, total=40),
             "length"),
            ("an outer total length over the frame",
             v4(wire.IPIP, plain, total=21 + len(plain)), "length"),
            ("an outer total length that cuts the inner packet",
             v4(wire.IPIP, plain, total=19 + len(plain)), "length"),
            ("an outer total length under its header", v4(wire.IPIP, plain, total=19),
             "length"),
            ("an outer IPv6 length over the frame",
             v6(wire.IPIP, plain, length=len(plain) + 1), "length"),
            ("an outer IPv6 length of 0", v6(wire.IPIP, plain, length=0), "length"),
            ("an outer version that is not the EtherType's",
             v4(wire.IPIP, plain, version=5), "other"),
            ("an inner header of 16 bytes", v4(wire.IPIP, b"\x44" + plain[1:]), "inner"),
            ("an inner total length over its packet",
             tunnel("ipip", 4, wire.ipv4(CLIENT, VIP, 17, b"x" * 8, total=29)), "length"),
            ("an inner total length under its header",
             tunnel("ipip", 6, wire.ipv4(CLIENT, VIP, 17, b"x" * 8, total=19)), "length"),
            ("an inner IPv6 length over its packet",
             tunnel("gre", 4, wire.ipv6(CLIENT6, VIP6, 17, b"x" * 8, length=9)), "length"),
            ("19 bytes of IPv4 inside", v4(wire.IPIP, plain[:19]), "length"),
            ("39 bytes of IPv6 inside", v6(wire.IPV6, request(6)[:39]), "length"),
        ]
        self.start()
        wanted = {}
        for words, packet, reason in rows:
            with self.subTest(words):
                kind = 0x0800 if packet is not None and words.endswith("EtherType's") else None
                frame = wire.ether(packet, ethertype=kind)
                self.expect(frame, frame)
                key = f"passed__{reason}"
                wanted[key] = wanted.get(key, 0) + 1
                self.expect_counters(**wanted)

    def test_frames_that_end_anywhere_pass(self):
        self.start()
        n = 0
        for kind, outer, inner in ALL:
            for tags in ([], [(0x8100, 10)]):
                frame = wire.ether(tunnel(kind, outer, request(inner)), tags=tags)
                # With less than that the kernel drops it, whether or not there is XDP.
                for size in range(14 + 6 * len(tags), len(frame)):
                    self.expect(frame[:size], frame[:size])
                    n += 1
        report = self.counters()
        self.assertEqual(report["received"], n)
        self.assertEqual(sum(report["passed"].values()), n)

    def test_damaged_frames_come_to_one_end_each(self):
        self.start()
        rand = random.Random(6040)
        n = 2000
        for _ in range(n):
            kind, outer, inner = rand.choice(ALL)
            frame = bytearray(wire.ether(tunnel(kind, outer, request(inner))))
            for _ in range(rand.randint(1, 4)):
                frame[rand.randrange(14, min(len(frame), 110))] = rand.randrange(256)
            self.send(bytes(frame[:rand.randint(60, len(frame))]))
        # The last is handled after the others.
        deadline = time.monotonic() + 10
        while self.counters()["received"] < n and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.counters()["received"], n)
        self.assertEqual(self.counters()["dropped"]["failed"], 0)

    def test_services_by_prefix_and_another_port(self):
        self.start("--gue-port", "9999", services=("198.51.100.0/28", "2001:db8:51::/64"))
        inside_prefix = request(dst="198.51.100.15")
        self.expect(wire.ether(tunnel("gue", 4, inside_prefix, port=9999)),
                    wire.ether(inside_prefix))
        beyond = wire.ether(tunnel("gue", 4, request(dst="198.51.100.16"), port=9999))
        self.expect(beyond, beyond)
        usual = wire.ether(tunnel("gue", 4, request()))
        self.expect(usual, usual)
        self.expect(wire.ether(tunnel("gue", 4, request(6, dst=OTHER6), port=9999)),
                    wire.ether(request(6, dst=OTHER6)))
        self.expect_counters(decapsulated__gue_4in4=1, decapsulated__gue_6in4=1,
                             passed__service=1, passed__other=1)


class TestNative(EachMode, DecapCase):
    mode = "native"


class TestGeneric(EachMode, DecapCase):
    mode = "generic"


class TestLife(DecapCase):
    """Coming and going, and what is said about it."""

    def is_attached(self):
        shown = subprocess.run(["ip", "-n", WORLD.backend, "-j", "link", "show", "eth0"],
                               check=True, capture_output=True, text=True)
        return "xdp" in json.loads(shown.stdout)[0]

    def test_it_detaches_at_the_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            running = self.start()
            self.assertTrue(self.is_attached())
            running.send_signal(number)
            self.assertEqual(running.wait(timeout=TIMEOUT_S), 0)
            self.assertFalse(self.is_attached())
            frame = wire.ether(tunnel("ipip", 4, request()))
            self.expect(frame, frame)

    def test_what_a_killed_one_leaves_is_taken_off(self):
        running = self.start()
        running.kill()
        running.wait(timeout=TIMEOUT_S)
        self.assertTrue(self.is_attached())
        self.expect(wire.ether(tunnel("ipip", 4, request())), wire.ether(request()))
        self.expect_counters(decapsulated__ipip_4in4=1)
        second = run("--service", VIP)
        self.assertEqual(second.returncode, 1)
        self.assertIn("shunt-decap --detach --interface eth0", second.stderr)
        self.assertTrue(self.is_attached())
        self.assertEqual(run("--detach").returncode, 0)
        self.assertFalse(self.is_attached())
        again = run("--detach")
        self.assertEqual(again.returncode, 1)
        self.assertIn("not attached", again.stderr)

    def test_anothers_program_is_left_alone(self):
        clang = shutil.which("clang")
        if clang is None:
            self.skipTest("no clang to compile another XDP program with")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-decap-"))
        self.addCleanup(shutil.rmtree, folder)
        (folder / "other.c").write_text(
            '__attribute__((section("xdp.frags"), used)) int other_one(void *c) { return 2; }\n'
            'char _license[] __attribute__((section("license"), used)) = "GPL";\n',
            encoding="utf-8")
        subprocess.run([clang, "-O2", "-g", "-target", "bpf", "-c", folder / "other.c", "-o",
                        folder / "other.o"], check=True)
        for mode in ("xdpdrv", "xdpgeneric"):
            ip("link", "set", "dev", "eth0", mode, "obj", str(folder / "other.o"), "sec",
               "xdp.frags", netns=WORLD.backend)
            try:
                for args in (("--service", VIP), ("--service", VIP, "--mode", "generic")):
                    refused = run(*args)
                    self.assertEqual(refused.returncode, 1)
                    self.assertIn("another XDP program is attached, 'other_one'",
                                  refused.stderr)
                for args in (("--detach",), ("--show",)):
                    refused = run(*args)
                    self.assertEqual(refused.returncode, 1)
                    self.assertIn("another XDP program is: other_one", refused.stderr)
                self.assertTrue(self.is_attached())
            finally:
                ip("link", "set", "dev", "eth0", mode, "off", netns=WORLD.backend)

    def test_it_ends_where_its_program_is_taken_off(self):
        running = self.start()
        ip("link", "set", "dev", "eth0", "xdpdrv", "off", netns=WORLD.backend)
        _, stderr = running.communicate(timeout=TIMEOUT_S)
        self.assertEqual(running.returncode, 1)
        self.assertIn("somebody has taken the XDP program off", stderr)
        running.communicate = lambda timeout: ("", "")  # the clean-up has nothing to read

    def test_addresses_come_and_go(self):
        self.start("--outer", TOLD)
        self.expect(wire.ether(tunnel("ipip", 4, request(), dst=TOLD)), wire.ether(request()))
        for new, prefix in (("10.0.0.12", 32), ("2001:db8:a::12", 128)):
            family = ipaddress.ip_address(new).version
            sent = wire.ether(tunnel("gue", family, request(), dst=new))
            self.expect(sent, sent)
            ip("address", "add", f"{new}/{prefix}", "dev", "eth0", netns=WORLD.backend)
            self.wait_for(sent, wire.ether(request()))
            ip("address", "delete", f"{new}/{prefix}", "dev", "eth0", netns=WORLD.backend)
            self.wait_for(sent, sent)
        self.expect(wire.ether(tunnel("ipip", 4, request(), dst=TOLD)), wire.ether(request()))

    def wait_for(self, sent, received):
        """The program hears of an address a moment after it is there."""
        deadline = time.monotonic() + 10
        found = None
        while found != received and time.monotonic() < deadline:
            self.send(sent)
            found = receive(self.tap)
        self.assertEqual(found.hex(" "), received.hex(" "))

    def test_a_driver_without_xdp(self):
        """The loopback's has none: auto goes on in generic mode, native says what to do."""
        refused = run("-i", "lo", "--service", VIP, "--mode", "native")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--mode generic", refused.stderr)
        running = self.start("--mode", "auto", "-i", "lo")
        shown = json.loads(run("-i", "lo", "--show", "--json").stdout)
        self.assertEqual((shown["interface"], shown["mode"]), ("lo", "generic"))
        self.assertEqual(self.end(running)[0], 0)
        self.assertEqual(run("-i", "lo", "--show").returncode, 1)
        running.communicate = lambda timeout: ("", "")  # the clean-up has nothing to read

    def test_sigusr1_prints_the_counters(self):
        running = self.start("--json")
        self.expect(wire.ether(tunnel("gre", 4, request())), wire.ether(request()))
        # ip netns exec becomes the program, so that this is its process.
        running.send_signal(signal.SIGUSR1)
        report = json.loads(running.stdout.readline())
        self.assertEqual(report["decapsulated"]["gre_4in4"], 1)
        self.assertEqual(report["interface"], "eth0")

    def test_counters_for_people(self):
        self.start()
        self.expect(wire.ether(tunnel("gre", 4, request())), wire.ether(request()))
        for word in ("--show", "--stats"):
            shown = run(word)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            lines = [line.split() for line in shown.stdout.splitlines()]
            self.assertEqual(lines[0], ["eth0:", "shunt-decap,", "native", "mode"])
            self.assertIn(["decapsulated.gre_4in4", "1"], lines)

    def test_no_privileges(self):
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest("the program is not where nobody may run it")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-decap-"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        copy = shutil.copy(PROGRAM, folder / "shunt-decap")
        with inside(WORLD.backend):
            done = subprocess.run([copy, "-i", "eth0", "-s", VIP], user=65534, group=65534,
                                  extra_groups=[], capture_output=True, text=True,
                                  check=False, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run it as root", done.stderr)
        self.assertFalse(self.is_attached())

    def test_words_for_bad_usage(self):
        rows = [
            (["--service", VIP], "which interface?"),
            (["-i", "eth0"], "for which services?"),
            (["-i", "eth0", "-s", "198.51.100.300"], "ADDRESS or ADDRESS/LENGTH"),
            (["-i", "eth0", "-s", "198.51.100.10/24"], "198.51.100.0/24 is the prefix"),
            (["-i", "eth0", "-s", VIP, "--outer", "224.0.0.1"], "unicast"),
            (["-i", "eth0", "-s", VIP, "--gue-port", "0"], "1..65535"),
            (["-i", "eth0", "-s", VIP, "--gue-port", "65536"], "1..65535"),
            (["-i", "eth0", "-s", VIP, "--mode", "fast"], "auto, native or generic"),
            (["-i", "eth0", "-s", VIP, "more"], "'more' is no option"),
            (["-i", "eth0", "--show", "--detach"], "one at a time"),
            (["--nothing"], "unrecognized"),
        ]
        for args, words in rows:
            with self.subTest(args):
                done = subprocess.run([PROGRAM, *args], capture_output=True, text=True,
                                      check=False, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_no_such_interface(self):
        for args in (("-s", VIP), ("--show",), ("--detach",)):
            done = subprocess.run([PROGRAM, "-i", "nowhere0", *args], capture_output=True,
                                  text=True, check=False, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no interface 'nowhere0'", done.stderr)

    def test_help_and_version(self):
        for option, words in (("--help", "Usage: shunt-decap"), ("--version", "shunt-decap ")):
            done = subprocess.run([PROGRAM, option], capture_output=True, text=True,
                                  check=False, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(words))


def why_not():
    """Why this cannot be tested here; empty where it can."""
    if os.geteuid() != 0:
        return "not root: network namespaces and BPF take it"
    if shutil.which("ip") is None:
        return "there is no ip command (Debian: iproute2)"
    try:
        WORLD.make()
    except OSError as error:
        return f"no network namespaces here: {error}"
    tried = run("--service", VIP, "--show")
    if "run it as root" in tried.stderr:
        return f"BPF is not allowed here: {tried.stderr}"
    with subprocess.Popen(command("--service", VIP, "--mode", "generic"),
                          stderr=subprocess.PIPE, text=True) as running:
        line = running.stderr.readline()
        running.terminate()
    if "run it as root" in line or "without BPF" in line:
        return f"BPF is not allowed here: {line}"
    return ""


def main():
    if not PROGRAM:
        sys.exit("SHUNT_DECAP must name the program: build/tools/decap/shunt-decap, say")
    # A time limit's SIGTERM must not leave the namespaces behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        why = why_not()
        if why:
            print(f"skipped: {why}")
            sys.exit(77)
        unittest.main()
    finally:
        WORLD.remove()


if __name__ == "__main__":
    main()
