# SPDX-License-Identifier: BSD-3-Clause
"""Packets as bytes: built from their fields, and taken apart again. Written from the RFCs."""

import dataclasses
import ipaddress
import struct

# The recordings' and the tests' frames go from the router to the balancer.
ROUTER_MAC = "02:00:00:00:00:01"
OWN_MAC = "02:00:00:00:00:02"

ICMP, IPIP, TCP, UDP, IPV6, GRE, ICMPV6 = 1, 4, 6, 17, 41, 47, 58
FRAGMENT, DESTINATION_OPTIONS = 44, 60
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


def checksum(data):
    """RFC 1071, as the number that goes into the field."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def address(text):
    return ipaddress.ip_address(text).packed


def pseudo_header(src, dst, proto, length):
    if len(src) == 4:
        return src + dst + struct.pack("!BBH", 0, proto, length)
    return src + dst + struct.pack("!IHBB", length, 0, 0, proto)


def ether(payload, src=ROUTER_MAC, dst=OWN_MAC, tags=(), ethertype=None):
    """A frame. Tags are (EtherType, TCI), outermost first."""
    if ethertype is None:
        ethertype = 0x86DD if payload[0] >> 4 == 6 else 0x0800
    head = b"".join(struct.pack("!HH", *tag) for tag in tags)
    return mac(dst) + mac(src) + head + struct.pack("!H", ethertype) + payload


def ipv4(src, dst, proto, payload, *, ttl=64, tos=0, ident=0, fragment=0, options=b"",
         version=4, ihl=None, total=None, csum=None):
    """fragment is the whole field: flags and offset."""
    ihl = 5 + len(options) // 4 if ihl is None else ihl
    total = 20 + len(options) + len(payload) if total is None else total

    def header(value):
        return struct.pack("!BBHHHBBH", version << 4 | ihl, tos, total, ident, fragment, ttl,
                           proto, value) + address(src) + address(dst) + options

    return header(checksum(header(0)) if csum is None else csum) + payload


def ipv6(src, dst, proto, payload, *, ttl=64, tos=0, label=0, length=None, version=6):
    length = len(payload) if length is None else length
    head = struct.pack("!IHBB", version << 28 | tos << 20 | label, length, proto, ttl)
    return head + address(src) + address(dst) + payload


def ip(src, dst, proto, payload, **fields):
    make = ipv6 if ":" in src else ipv4
    return make(src, dst, proto, payload, **fields)


def tcp(src, dst, sport, dport, flags=ACK, seq=1, payload=b"", **fields):
    """A whole IP packet with a TCP segment."""
    def segment(value):
        return struct.pack("!HHIIBBHHH", sport, dport, seq, 0, 0x50, flags, 65535, value,
                           0) + payload

    pseudo = pseudo_header(address(src), address(dst), TCP, 20 + len(payload))
    return ip(src, dst, TCP, segment(checksum(pseudo + segment(0))), **fields)


def udp_datagram(src, dst, sport, dport, payload=b""):
    length = 8 + len(payload)
    bare = struct.pack("!HHHH", sport, dport, length, 0) + payload
    value = checksum(pseudo_header(address(src), address(dst), UDP, length) + bare) or 0xFFFF
    return bare[:6] + struct.pack("!H", value) + payload


def udp(src, dst, sport, dport, payload=b"", **fields):
    """A whole IP packet with a UDP datagram."""
    return ip(src, dst, UDP, udp_datagram(src, dst, sport, dport, payload), **fields)


def icmp(src, dst, kind, code, rest, **fields):
    """A whole IP packet with ICMP or ICMPv6; rest is all after the checksum."""
    proto = ICMPV6 if ":" in src else ICMP
    bare = struct.pack("!BBH", kind, code, 0) + rest
    pseudo = b""
    if proto == ICMPV6:
        pseudo = pseudo_header(address(src), address(dst), proto, len(bare))
    value = checksum(pseudo + bare)
    return ip(src, dst, proto, bare[:2] + struct.pack("!H", value) + rest, **fields)


def too_big(router, quoted, mtu=1400, **fields):
    """A router's complaint about a packet to whoever sent that."""
    if quoted[0] >> 4 == 6:
        sender = str(ipaddress.ip_address(quoted[8:24]))
        return icmp(router, sender, 2, 0, struct.pack("!I", mtu) + quoted, **fields)
    sender = str(ipaddress.ip_address(quoted[12:16]))
    return icmp(router, sender, 3, 4, struct.pack("!HH", 0, mtu) + quoted, **fields)


def echo_request(src, dst, payload=b"ping", **fields):
    kind = 128 if ":" in src else 8
    return icmp(src, dst, kind, 0, struct.pack("!HH", 1, 1) + payload, **fields)


def extension(following, data=b"\x01\x04\0\0\0\0"):
    """A destination options header; its data is padding."""
    return bytes([following, (len(data) + 2) // 8 - 1]) + data


def fragment_header(following, offset, more, ident=1):
    """Offset in bytes, a multiple of 8."""
    return struct.pack("!BBHI", following, 0, offset | more, ident)


def set_ipv4(packet, payload, fragment):
    """An IPv4 packet's header before another payload."""
    n = (packet[0] & 15) * 4
    head = packet[:2] + struct.pack("!H", n + len(payload)) + packet[4:6]
    head += struct.pack("!H", fragment) + packet[8:10] + b"\0\0" + packet[12:n]
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def piece(packet, offset, n_bytes, more, ident=1):
    """
    A fragment of a whole packet: n_bytes of what follows the fixed header (IPv6), or the header
    (IPv4, whose identification and flags stay).
    """
    if packet[0] >> 4 == 6:
        payload = fragment_header(packet[6], offset, more, ident)
        payload += packet[40 + offset:40 + offset + n_bytes]
        return packet[:4] + struct.pack("!HB", len(payload), FRAGMENT) + packet[7:40] + payload
    n = (packet[0] & 15) * 4
    flags = packet[6] << 8 & 0xC000 | more << 13
    return set_ipv4(packet, packet[n + offset:n + offset + n_bytes], flags | offset // 8)


def pieces(packet, n_bytes, ident=1):
    """All fragments of a packet in order; n_bytes, a multiple of 8, in each but the last."""
    total = len(packet) - (40 if packet[0] >> 4 == 6 else (packet[0] & 15) * 4)
    return [piece(packet, offset, n_bytes, offset + n_bytes < total, ident)
            for offset in range(0, total, n_bytes)]


def place_of(packet):
    """Of a fragment: offset, whether more follow, payload, next header (IPv6)."""
    if packet[0] >> 4 == 6:
        assert packet[6] == FRAGMENT, "no fragment header"
        following, _, field, _ = struct.unpack_from("!BBHI", packet, 40)
        return field & 0xFFF8, field & 1, packet[48:], following
    field, = struct.unpack_from("!H", packet, 6)
    return (field & 0x1FFF) * 8, field >> 13 & 1, packet[(packet[0] & 15) * 4:], None


def put_together(packets):
    """The packet whose fragments these are, which must fit without gap or overlap."""
    places = sorted((place_of(packet), packet) for packet in packets)
    payload = b""
    for (offset, more, part, _), packet in places:
        parse_ip(packet)
        assert offset == len(payload), f"at {offset}, where {len(payload)} is next"
        assert more == (packet is not places[-1][1]), "more fragments"
        payload += part
    (_, _, _, following), first = places[0]
    if first[0] >> 4 == 6:
        return first[:4] + struct.pack("!HB", len(payload), following) + first[7:40] + payload
    return set_ipv4(first, payload, first[6] << 8 & 0x8000)


@dataclasses.dataclass
class Ip:
    """A packet with all its lengths checked."""
    version: int
    src: str
    dst: str
    proto: int
    ttl: int
    tos: int
    payload: bytes
    fragment: int = 0  # IPv4: the whole field
    ident: int = 0
    label: int = 0  # IPv6


def parse_ip(data):
    """The first IP packet of data, which must end where the packet does."""
    if data[0] >> 4 == 6:
        word, length, proto, ttl = struct.unpack_from("!IHBB", data)
        assert len(data) == 40 + length, "IPv6 length"
        return Ip(6, str(ipaddress.ip_address(data[8:24])),
                  str(ipaddress.ip_address(data[24:40])), proto, ttl, word >> 20 & 0xFF,
                  data[40:], label=word & 0xFFFFF)
    first, tos, total, ident, fragment, ttl, proto = struct.unpack_from("!BBHHHBB", data)
    assert first >> 4 == 4, "IPv4 version"
    header = (first & 15) * 4
    assert len(data) == total, f"IPv4 length {total}, there are {len(data)}"
    assert checksum(data[:header]) == 0, "IPv4 header checksum"
    return Ip(4, str(ipaddress.ip_address(data[12:16])),
              str(ipaddress.ip_address(data[16:20])), proto, ttl, tos, data[header:],
              fragment, ident)


@dataclasses.dataclass
class Icmp:
    """ICMP or ICMPv6 with its checksum checked."""
    kind: int
    code: int
    rest: bytes  # all after the checksum


def parse_icmp(outer):
    """Of an Ip."""
    pseudo = b""
    if outer.version == 6:
        assert outer.proto == ICMPV6, "not ICMPv6"
        pseudo = pseudo_header(address(outer.src), address(outer.dst), ICMPV6,
                               len(outer.payload))
    else:
        assert outer.proto == ICMP, "not ICMP"
    assert checksum(pseudo + outer.payload) == 0, "ICMP checksum"
    return Icmp(outer.payload[0], outer.payload[1], outer.payload[4:])


@dataclasses.dataclass
class Frame:
    dst: str
    src: str
    tags: tuple
    ethertype: int
    payload: bytes


def parse_ether(data):
    tags = []
    at = 12
    while struct.unpack_from("!H", data, at)[0] in (0x8100, 0x88A8, 0x9100):
        tags.append(struct.unpack_from("!HH", data, at))
        at += 4
    ethertype = struct.unpack_from("!H", data, at)[0]
    return Frame(data[:6].hex(":"), data[6:12].hex(":"), tuple(tags), ethertype,
                 data[at + 2:])


@dataclasses.dataclass
class Tunnel:
    """What a forwarded frame is made of."""
    frame: Frame
    outer: Ip  # None for l2
    inner: bytes
    sport: int = 0
    dport: int = 0
    vni: int = 0
    inner_frame: Frame = None


def parse_udp(outer):
    """Ports and payload. Length and checksum are checked: none over IPv4, one over IPv6."""
    sport, dport, length, value = struct.unpack_from("!HHHH", outer.payload)
    assert length == len(outer.payload), "UDP length"
    if outer.version == 4:
        assert value == 0, "UDP checksum over IPv4"
    else:
        assert value != 0, "no UDP checksum over IPv6"
        pseudo = pseudo_header(address(outer.src), address(outer.dst), UDP, length)
        assert checksum(pseudo + outer.payload) == 0, "UDP checksum over IPv6"
    return sport, dport, outer.payload[8:]


def parse_tunnel(data, mode):
    """Take a forwarded frame apart, and insist on all that does not depend on the flow."""
    frame = parse_ether(data)
    if mode == "l2":
        return Tunnel(frame, None, frame.payload)
    outer = parse_ip(frame.payload)
    assert frame.ethertype == {4: 0x0800, 6: 0x86DD}[outer.version], "EtherType"
    if mode == "ipip":
        inner = outer.payload
        assert outer.proto == {4: IPIP, 6: IPV6}[inner[0] >> 4], "outer protocol"
        return Tunnel(frame, outer, inner)
    if mode == "gre":
        flags, kind = struct.unpack_from("!HH", outer.payload)
        inner = outer.payload[4:]
        assert outer.proto == GRE and flags == 0, "GRE"
        assert kind == {4: 0x0800, 6: 0x86DD}[inner[0] >> 4], "GRE's EtherType"
        return Tunnel(frame, outer, inner)
    assert outer.proto == UDP, "outer protocol"
    sport, dport, payload = parse_udp(outer)
    assert 49152 <= sport <= 65535, "source port"
    if mode == "gue":
        return Tunnel(frame, outer, payload, sport, dport)
    flags, vni = struct.unpack_from("!II", payload)
    assert flags == 0x08000000 and vni & 0xFF == 0, "VXLAN"
    inner_frame = parse_ether(payload[8:])
    inner = inner_frame.payload
    assert inner_frame.ethertype == {4: 0x0800, 6: 0x86DD}[inner[0] >> 4], "inner EtherType"
    return Tunnel(frame, outer, inner, sport, dport, vni >> 8, inner_frame)
