#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Random packets, made by scapy and then damaged at random, against a second opinion: a verdict
worked out here from what INTERFACES and the RFCs say, one packet at a time.
"""

import ipaddress
import random
import struct
import unittest

import captures
import lib
import wire
from lib import FIRST_NS, config, service

try:
    # pylint: disable=no-name-in-module
    from scapy.all import (AH, ARP, Dot1Q, ESP, Ether, GRE, ICMP, IP, IPv6, SCTP, TCP, UDP,
                           ICMPv6EchoReply, ICMPv6PacketTooBig, IPv6ExtHdrDestOpt,
                           IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN, Raw)
except ImportError:
    IP = None

N_PACKETS = 2000
SERVICES = [  # name, prefix, protocol, port, carried tunnels; the last has no backend
    ("web", "198.51.100.10/32", "tcp", 80, ()),
    ("dns", "198.51.100.0/28", "udp", 53, ()),
    ("any", "198.51.100.11/32", "any", "any", (wire.GRE,)),
    ("web6", "2001:db8:51::10/128", "tcp", 80, ()),
    ("wide6", "2001:db8:51::/64", "any", "any", ()),
    ("empty", "198.51.100.12/32", "any", "any", ()),
]
EXTENSIONS = (0, 43, 44, 51, 60, 135, 139, 140)
DESTINATIONS = {4: ["198.51.100.10", "198.51.100.11", "198.51.100.12", "198.51.100.13",
                    "203.0.113.99"],
                6: ["2001:db8:51::10", "2001:db8:51::11", "2001:db8:52::1"]}


# --- the second opinion ---

class Verdict(Exception):
    """What becomes of a packet, as soon as that is clear; None: not judged here."""


class View:
    """A frame's bytes, of which some may never have been there and some been cut."""

    def __init__(self, data, wire_bytes):
        self.data = data
        self.end = max(wire_bytes, len(data))

    def load(self, at, n):
        if at + n > self.end:
            raise Verdict("truncated")
        if at + n > len(self.data):
            raise Verdict("snaplen")
        return self.data[at:at + n]

    def number(self, at, n=2):
        return int.from_bytes(self.load(at, n), "big")

    def narrow(self, end):
        self.end = end
        self.data = self.data[:end]


def services_of(dst):
    """Those that cover an address, the longest prefix first."""
    found = [(ipaddress.ip_network(row[1]), row) for row in SERVICES]
    found = [(net, row) for net, row in found if dst.version == net.version and dst in net]
    return [row for _, row in sorted(found, key=lambda pair: -pair[0].prefixlen)]


def service_for(dst, proto, port):
    names = {wire.TCP: "tcp", wire.UDP: "udp"}
    for row in services_of(dst):
        is_port = row[3] == "any" or (proto in names and row[3] == port)
        if is_port and row[2] in ("any", names.get(proto)):
            return row
    return None


def choose(dst, proto, port, is_cut):
    row = service_for(dst, proto, port)
    if row is None:
        raise Verdict("kernel")
    if proto == wire.UDP and port in (4789, 6080, 6081) and row[3] == "any":
        raise Verdict("unsupported_l4")
    if is_cut:
        raise Verdict("snaplen")
    raise Verdict("no_backend" if row[0] == "empty" else "forward")


def judge(packet):
    view = View(packet.data, len(packet.data) if packet.wire is None else packet.wire)
    try:
        judge_frame(view)
    except Verdict as verdict:
        return verdict.args[0]
    raise AssertionError("no verdict")


def read_ether(view):
    """Where the IP packet begins, and what EtherType says it is one."""
    view.load(0, 14)
    at = 14
    for _ in range(2):
        if view.number(at - 2) in (0x8100, 0x88A8, 0x9100):
            view.load(at, 4)
            at += 4
    ethertype = view.number(at - 2)
    if ethertype in (0x8100, 0x88A8, 0x9100):
        raise Verdict("vlan_depth")
    return at, ethertype


def judge_frame(view):
    try:
        at, ethertype = read_ether(view)
    except Verdict as verdict:
        # Nothing shows that what was cut so early was meant for a service.
        raise Verdict("kernel" if verdict.args[0] == "snaplen" else verdict.args[0]) from None
    if ethertype not in (0x0800, 0x86DD):
        raise Verdict("kernel")
    is_v4 = ethertype == 0x0800
    place = slice(at + 16, at + 20) if is_v4 else slice(at + 24, at + 40)
    dst = view.data[place]
    try:
        (judge_ipv4 if is_v4 else judge_ipv6)(view, at)
    except Verdict as verdict:
        # Whom it was for is known from the fixed header: only a service's bytes are missed.
        if verdict.args[0] == "snaplen" and (len(dst) != place.stop - place.start or
                                             not services_of(ipaddress.ip_address(dst))):
            raise Verdict("kernel") from None
        raise


def judge_ipv4(view, at):
    head = view.load(at, 20)
    if head[0] >> 4 != 4:
        raise Verdict("bad_ip_version")
    length = (head[0] & 15) * 4
    if length < 20:
        raise Verdict("bad_header_length")
    head = view.load(at, length)
    total = struct.unpack_from("!H", head, 2)[0]
    if total < length:
        raise Verdict("bad_total_length")
    if at + total > view.end:
        raise Verdict("truncated")
    is_cut = at + total > len(view.data)
    view.narrow(at + total)
    if wire.checksum(head) != 0:
        raise Verdict("bad_checksum")
    if head[8] == 0:
        raise Verdict("ttl_expired")
    field = struct.unpack_from("!H", head, 6)[0]
    piece = Piece((field & 0x1FFF) * 8, bool(field & 0x2000), total - length, total)
    judge_l4(view, at + length, head[9], ipaddress.ip_address(head[16:20]), piece, is_cut)


def judge_ipv6(view, at):
    head = view.load(at, 40)
    if head[0] >> 4 != 6:
        raise Verdict("bad_ip_version")
    end = at + 40 + struct.unpack_from("!H", head, 4)[0]
    if end > view.end:
        raise Verdict("truncated")
    is_cut = end > len(view.data)
    view.narrow(end)
    if head[7] == 0:
        raise Verdict("ttl_expired")
    proto, at, piece = walk(view, head[6], at + 40)
    judge_l4(view, at, proto, ipaddress.ip_address(head[24:40]), piece, is_cut)


class Piece:
    """What of a datagram a packet is; reach: bytes that its headers add to the offset."""

    def __init__(self, offset, more, n_bytes, reach):
        self.is_later = offset != 0
        self.is_first = offset == 0 and more
        self.offset = offset
        self.more = more
        self.n_bytes = n_bytes
        self.reach = offset + reach

    def check(self, proto, version):
        if not (self.is_first or self.is_later):
            return
        if self.n_bytes == 0 or self.reach > 65535 or (self.more and self.n_bytes % 8 != 0):
            raise Verdict("fragment_bad")
        if version == 4 and proto == wire.TCP and self.offset in (8, 16):
            raise Verdict("fragment_bad")


WHOLE = Piece(0, False, 0, 0)


def walk_one(view, proto, at, start, piece):
    """One extension header: what follows, where, and what piece of a datagram it is."""
    head = view.load(at, 8)
    length = 8 if proto == 44 else (head[1] + 2) * 4 if proto == 51 else (head[1] + 1) * 8
    view.load(at, length)
    if proto == 43 and head[3] != 0:
        piece.check(proto, 6)
        raise Verdict("kernel")
    if proto == 44:
        if piece.is_first:
            raise Verdict("fragment_bad")
        field = struct.unpack_from("!H", head, 2)[0]
        piece = Piece(field & 0xFFF8, bool(field & 1), view.end - at - 8, view.end - start - 8)
    return head[0], at + length, piece


def walk(view, proto, at):
    """Past the extension headers: the protocol, where it is, what piece of a datagram."""
    start, piece = at, WHOLE
    try:
        for _ in range(16):
            if proto not in EXTENSIONS or piece.is_later:
                return proto, at, piece
            proto, at, piece = walk_one(view, proto, at, start, piece)
    except Verdict as verdict:
        if piece.is_first and verdict.args[0] == "truncated":
            raise Verdict("fragment_bad") from None
        raise
    if proto in EXTENSIONS and not piece.is_later:
        raise Verdict("unknown_extension_header")
    return proto, at, piece


def judge_l4(view, at, proto, dst, piece, is_cut):
    piece.check(proto, dst.version)
    try:
        judge_piece(view, at, proto, dst, piece, is_cut)
    except Verdict as verdict:
        if piece.is_first and verdict.args[0] == "truncated":
            raise Verdict("fragment_bad") from None
        raise


def load_options(view, at):
    """A first fragment has all of them, though a capture may have cut them."""
    try:
        view.load(at, (view.load(at, 20)[12] >> 4) * 4)
    except Verdict as verdict:
        if verdict.args[0] != "snaplen":
            raise


def judge_piece(view, at, proto, dst, piece, is_cut):
    covered = bool(services_of(dst))
    is_icmp = proto == (wire.ICMP if dst.version == 4 else wire.ICMPV6)
    if piece.is_later:
        if proto in (wire.TCP, wire.UDP) or is_icmp or dst.version == 6:
            lost = "snaplen" if is_cut else "fragment_unmatched"
            raise Verdict(lost if covered else "kernel")
    elif proto in (wire.TCP, wire.UDP):
        try:
            view.load(at, 20 if proto == wire.TCP else 8)
        except Verdict as verdict:
            # The ports may be there still.
            if verdict.args[0] != "snaplen":
                raise
        else:
            if proto == wire.TCP and piece.is_first:
                load_options(view, at)
        choose(dst, proto, view.number(at + 2), is_cut)
    elif is_icmp:
        judge_icmp(view, at, dst, piece, is_cut)
    # A tunnel is one in its later fragments too.
    if proto in (wire.IPIP, wire.IPV6, wire.GRE):
        row = service_for(dst, proto, 0)
        if row is None or proto not in row[4]:
            raise Verdict("unsupported_l4" if covered else "kernel")
    choose(dst, proto, 0, is_cut)


def judge_icmp(view, at, dst, piece, is_cut):
    kind = view.load(at, 8)[0]
    if kind == (8 if dst.version == 4 else 128):
        raise Verdict(None)
    if kind not in ((3, 11, 12) if dst.version == 4 else (1, 2, 3, 4)) or piece.is_first:
        raise Verdict("kernel")
    try:
        src, proto, l4 = read_quote(view, at + 8, dst.version)
        # Here the balancer answers echo, and no service goes by addresses alone.
        if src != dst or proto == (wire.ICMP if dst.version == 4 else wire.ICMPV6):
            raise Verdict("kernel")
        port = 0
        if proto in (wire.TCP, wire.UDP):
            if l4 is None:
                raise Verdict("kernel")
            port = struct.unpack("!H", view.load(l4, 8)[:2])[0]
    except Verdict as verdict:
        # A quote that is of no use makes it no error about a flow.
        raise Verdict("snaplen" if verdict.args[0] == "snaplen" else "kernel") from None
    choose(src, proto, port, is_cut)


def read_quote(view, at, version):
    """Whose packet it was, its protocol, and where its ports are: None, of a later fragment."""
    if version == 4:
        head = view.load(at, 20)
        length = (head[0] & 15) * 4
        if head[0] >> 4 != 4 or length < 20:
            raise Verdict("kernel")
        view.load(at, length)
        is_later = struct.unpack_from("!H", head, 6)[0] & 0x1FFF
        return ipaddress.ip_address(head[12:16]), head[9], None if is_later else at + length
    head = view.load(at, 40)
    if head[0] >> 4 != 6:
        raise Verdict("kernel")
    proto, l4, piece = walk(view, head[6], at + 40)
    if piece.is_later and proto in EXTENSIONS:
        raise Verdict("kernel")
    return ipaddress.ip_address(head[8:24]), proto, None if piece.is_later else l4


# --- random packets ---

def cut_quote(rng, quoted):
    """As a later fragment of it."""
    if IP in quoted:
        quoted.frag = 1 + rng.randrange(100)
        return quoted
    return IPv6(src=quoted.src, dst=quoted.dst) / IPv6ExtHdrFragment(
        offset=1 + rng.randrange(100), m=rng.randrange(2)) / quoted.payload


def random_l4(rng, dst, client):
    dport = rng.choice((80, 53, 443))
    sport = rng.randrange(1, 65536)
    version = 6 if ":" in dst else 4
    tcp = TCP(sport=sport, dport=dport, flags=rng.choice(("S", "A", "FA", "R")),
              seq=rng.getrandbits(32))
    udp = UDP(sport=sport, dport=rng.choice((dport, dport, 4789, 6080, 6081)))
    layer = IP if version == 4 else IPv6
    quoted = layer(src=dst, dst=client) / rng.choice((
        TCP(sport=dport, dport=sport), UDP(sport=dport, dport=sport), Raw(b"\0" * 8),
        ICMP(type=0) if version == 4 else ICMPv6EchoReply()))
    if rng.randrange(4) == 0:
        quoted = cut_quote(rng, quoted)
    if version == 4:
        error = ICMP(type=rng.choice((3, 11, 12, 5)), code=0) / quoted
        other = ICMP(type=rng.choice((0, 13)))
    else:
        error, other = ICMPv6PacketTooBig(mtu=1280) / quoted, ICMPv6EchoReply()
    tunnel = GRE() / IP(dst="10.1.1.1") / UDP()
    return rng.choice((tcp, tcp, udp, udp, error, other, tunnel, SCTP(dport=80),
                       ESP(spi=1, seq=1, data=b"x" * 24), AH(nh=6) / tcp, IP() / udp,
                       IPv6() / udp))


def add_extensions(rng, packet):
    """In place: each / copies all that is before it."""
    n = rng.choice((0, 0, 0, 1, 2, 8, 40))
    for _ in range(n):
        packet.add_payload(rng.choice((IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop))(
            options=[PadN(optdata=bytes(4 + 8 * rng.randrange(2)))]))
    if rng.randrange(6) == 0:
        packet.add_payload(IPv6ExtHdrFragment(offset=rng.choice((0, 0, 1, 100)),
                                              m=rng.randrange(2), id=rng.getrandbits(32)))


def random_packet(rng):
    version = rng.choice((4, 6))
    dst = rng.choice(DESTINATIONS[version])
    frame = Ether(src=wire.ROUTER_MAC, dst=wire.OWN_MAC)
    if rng.randrange(40) == 0:
        return bytes(frame / ARP())
    for _ in range(rng.choice((0,) * 12 + (1, 2, 3))):
        frame /= Dot1Q(vlan=rng.randrange(1, 4095))
    # Each packet is a client of its own, so that none has to do with another.
    if version == 4:
        client = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        packet = frame / IP(src=client, dst=dst, ttl=rng.choice((0, 1) + (64,) * 8),
                            tos=rng.getrandbits(8), id=rng.getrandbits(16),
                            flags=rng.choice(("", "DF", "MF", "evil")),
                            frag=rng.choice((0,) * 9 + (1, 185)),
                            options=rng.choice((b"", b"", b"\1" * 4, b"\1" * 40)))
    else:
        client = f"2001:db8:ff::{rng.getrandbits(16):x}:{rng.getrandbits(16):x}"
        packet = frame / IPv6(src=client, dst=dst, hlim=rng.choice((0, 1) + (64,) * 8),
                              tc=rng.getrandbits(8), fl=rng.getrandbits(20))
        add_extensions(rng, packet)
    packet.add_payload(random_l4(rng, dst, client))
    packet.add_payload(Raw(rng.randbytes(rng.randrange(64))))
    return bytes(packet)


def fix_checksum(data):
    """Of a plain IPv4 header, so that damage is not all found by its checksum."""
    n = (data[14] & 15) * 4
    if data[12:14] == b"\x08\0" and 20 <= n <= len(data) - 14:
        data[24:26] = b"\0\0"
        data[24:26] = struct.pack("!H", wire.checksum(bytes(data[14:14 + n])))


def damage(rng, frame):
    """The frame as it comes, damaged in half of all cases; and its length on the wire."""
    data = bytearray(frame)
    wire_bytes = None
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        kind = rng.randrange(6)
        if kind == 0:
            data[rng.randrange(len(data))] = rng.getrandbits(8)
        elif kind == 1 and len(data) > 12:
            # Version, lengths, next headers: where it hurts.
            at = rng.randrange(12, min(len(data), 62))
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[rng.randrange(1, len(data) + 1):]
        elif kind == 3:
            data += bytes(rng.randrange(1, 30))
        elif kind == 4:
            wire_bytes = max(len(data), wire_bytes or 0)
            del data[rng.randrange(1, len(data) + 1):]
        elif len(data) > 18:
            # IPv4's header and total length, where there are no tags.
            data[14] = data[14] & 0xF0 | rng.randrange(16)
            data[16:18] = struct.pack("!H", rng.randrange(80))
        if len(data) >= 34 and rng.randrange(3) != 0:
            fix_checksum(data)
    if wire_bytes is not None:
        wire_bytes = max(wire_bytes, len(data))
    return captures.Packet(bytes(data), FIRST_NS, wire_bytes)


@unittest.skipIf(IP is None, "scapy is not there (Debian: python3-scapy)")
class Differential(lib.ReplayCase):
    def settings(self):
        rows = []
        for name, prefix, protocol, port, carry in SERVICES:
            address = prefix.removesuffix("/32").removesuffix("/128")
            rows.append(service(name, 0 if name == "empty" else 3, address=address,
                                protocol=protocol, port=port, carry=list(carry)))
        return config(*rows, port={"mtu": 9216})

    def check_seed(self, seed):
        rng = random.Random(seed)
        packets = [damage(rng, random_packet(rng)) for _ in range(N_PACKETS)]
        result = self.replay(packets, self.settings())
        seen = set()
        for packet, decision in zip(packets, result.decisions):
            expected = judge(packet)
            seen.add(expected)
            if expected is None:
                continue
            found = decision["reason"] or decision["verdict"]
            self.assertEqual(found, expected, f"seed {seed}, packet {decision['packet']}: "
                             f"{packet.data.hex()} of {packet.wire} on the wire")
        # All there is to say was said: the random packets reach every branch of it.
        self.assertLessEqual({"forward", "kernel", "truncated", "snaplen", "bad_ip_version",
                              "bad_header_length", "bad_total_length", "bad_checksum",
                              "ttl_expired", "unknown_extension_header", "vlan_depth",
                              "fragment_unmatched", "fragment_bad", "no_backend",
                              "unsupported_l4"}, seen)

    def test_a_second_opinion(self):
        self.check_seed(20261)


if __name__ == "__main__":
    lib.main()
