# SPDX-License-Identifier: BSD-3-Clause
"""Captures, pcap and pcapng, in either byte order and precision: written and read."""

import dataclasses
import struct

ETHERNET, NULL, RAW, LOOP, SLL, IPV4, IPV6, SLL2 = 1, 0, 101, 108, 113, 228, 229, 276
NS = 1_000_000_000


@dataclasses.dataclass
class Packet:
    data: bytes
    time_ns: int = 0
    wire: int = None  # bytes on the wire; None: as many as there are
    linktype: int = ETHERNET


@dataclasses.dataclass
class Capture:
    packets: list
    linktype: int = ETHERNET
    is_nano: bool = False


def pcap(packets, order="<", is_nano=False, linktype=ETHERNET, snaplen=262144):
    out = [pcap_header(order, is_nano, linktype, snaplen)]
    for packet in packets:
        out.append(pcap_record(packet, order, is_nano))
    return b"".join(out)


def pcap_header(order="<", is_nano=False, linktype=ETHERNET, snaplen=262144):
    magic = 0xA1B23C4D if is_nano else 0xA1B2C3D4
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, linktype)


def pcap_record(packet, order="<", is_nano=False):
    wire = len(packet.data) if packet.wire is None else packet.wire
    fraction = packet.time_ns % NS // (1 if is_nano else 1000)
    head = struct.pack(order + "IIII", packet.time_ns // NS, fraction, len(packet.data), wire)
    return head + packet.data


def pcapng(packets, order="<", is_nano=False, linktype=ETHERNET, kind=6, snaplen=0):
    """One section, one interface; kind is the packets' block: 6 enhanced, 3 simple, 2 old."""
    out = [pcapng_section(order), pcapng_interface(order, is_nano, linktype, snaplen)]
    for packet in packets:
        out.append(pcapng_packet(packet, order, is_nano, kind))
    return b"".join(out)


def pcapng_block(order, kind, body):
    body += b"\0" * (-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def pcapng_section(order="<"):
    return pcapng_block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def pcapng_interface(order="<", is_nano=False, linktype=ETHERNET, snaplen=0):
    options = b""
    if is_nano:
        options = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)
    return pcapng_block(order, 1, struct.pack(order + "HHI", linktype, 0, snaplen) + options)


def pcapng_packet(packet, order="<", is_nano=False, kind=6, interface=0):
    ticks = packet.time_ns // (1 if is_nano else 1000)
    wire = len(packet.data) if packet.wire is None else packet.wire
    stamp = (ticks >> 32, ticks & 0xFFFFFFFF, len(packet.data), wire)
    if kind == 3:
        return pcapng_block(order, 3, struct.pack(order + "I", wire) + packet.data)
    if kind == 2:
        head = struct.pack(order + "HHIIII", interface, 0, *stamp)
    else:
        head = struct.pack(order + "IIIII", interface, *stamp)
    return pcapng_block(order, kind, head + packet.data)


def read(data):
    """A capture from bytes, whole: ValueError where it is damaged."""
    try:
        if data[:4] == b"\x0a\x0d\x0d\x0a":
            return read_pcapng(data)
        return read_pcap(data)
    except struct.error as error:
        raise ValueError("it ends too early") from error


def read_pcap(data):
    for order in "<>":
        magic, _, _, _, _, _, linktype = struct.unpack_from(order + "IHHiIII", data)
        if magic in (0xA1B2C3D4, 0xA1B23C4D):
            break
    else:
        raise ValueError("not a pcap file")
    capture = Capture([], linktype & 0xFFFF, magic == 0xA1B23C4D)
    at = 24
    while at < len(data):
        seconds, fraction, n, wire = struct.unpack_from(order + "IIII", data, at)
        at += 16
        if at + n > len(data):
            raise ValueError("a packet is cut")
        time_ns = seconds * NS + fraction * (1 if capture.is_nano else 1000)
        capture.packets.append(Packet(data[at:at + n], time_ns, wire, capture.linktype))
        at += n
    return capture


def resolution_of(options, order):
    """Ticks a second that an interface's options tell."""
    at = 0
    while at + 4 <= len(options):
        code, n = struct.unpack_from(order + "HH", options, at)
        if code == 9 and n == 1:
            value = options[at + 4]
            return 2 ** (value & 0x7F) if value & 0x80 else 10 ** value
        at += 4 + n + -n % 4
    return 1_000_000


def read_pcapng(data):
    """Packets of all interfaces; linktype and precision are the first interface's."""
    capture = Capture([], None)
    interfaces = []
    order = "<"
    at = 0
    last_ns = 0
    while at < len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, n = struct.unpack_from(order + "II", data, at)
        if at + n > len(data) or n < 12:
            raise ValueError("a block is cut")
        body = data[at + 8:at + n - 4]
        at += n
        if kind == 1:
            linktype, _, snaplen = struct.unpack_from(order + "HHI", body)
            interfaces.append((linktype, snaplen, resolution_of(body[8:], order)))
            if capture.linktype is None:
                capture.linktype = linktype
                capture.is_nano = interfaces[0][2] > 1_000_000
        elif kind in (2, 6):
            index, high, low, captured, wire = struct.unpack_from(order + "IIIII", body)
            if kind == 2:
                index, _ = struct.unpack_from(order + "HH", body)
            linktype, _, ticks = interfaces[index]
            last_ns = (high << 32 | low) * NS // ticks
            capture.packets.append(Packet(body[20:20 + captured], last_ns, wire, linktype))
        elif kind == 3:
            linktype, snaplen, _ = interfaces[0]
            wire, = struct.unpack_from(order + "I", body)
            n = min(wire, snaplen or wire, len(body) - 4)
            capture.packets.append(Packet(body[4:4 + n], last_ns, wire, linktype))
    return capture
