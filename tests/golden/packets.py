#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Outer headers, written a second time and independently of lb_encap.c.

Prints packets.txt; tests/unit/test_golden_packets.c compares to the byte:

    python3 tests/golden/packets.py > tests/golden/packets.txt

A line is: mode, outer source, outer destination, UDP port, VNI, entropy, inner packet in
hexadecimal, outer headers with inner packet in hexadecimal. Lines with # are comments.
"""

import ipaddress
import struct

INNER_DST_MAC = bytes.fromhex("020000000001")
INNER_SRC_MAC = bytes.fromhex("020000000002")
OUTER = {4: ("192.0.2.1", "10.0.0.11"), 6: ("2001:db8::1", "2001:db8:b::11")}
UDP_PORT = {"gue": 6080, "vxlan": 4789}
VNI = 0x123456
TOS = [("CE", 0x03), ("ECT(0)", 0x02), ("ECT(1)", 0x01), ("DSCP 46", 0xB8)]
# The low 20 bits of the second are 0: its flow label is 1.
ENTROPIES = [0x00000000, 0xFFF00000, 0xFFFFFFFF, 0xABCDEF12, 0x00040001]


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(word for (word,) in struct.iter_unpack("!H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packed(text):
    return ipaddress.ip_address(text).packed


def pseudo_header(src, dst, proto, length):
    if len(src) == 4:
        return src + dst + struct.pack("!BBH", 0, proto, length)
    return src + dst + struct.pack("!IHBB", length, 0, 0, proto)


def ipv4(src, dst, proto, payload, tos, ident=0, ttl=64):
    def header(csum):
        return struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), ident, 0x4000, ttl,
                           proto, csum) + src + dst

    return header(checksum(header(0))) + payload


def ipv6(src, dst, proto, payload, tos, label=0, ttl=64):
    word = 6 << 28 | tos << 20 | label
    return struct.pack("!IHBB", word, len(payload), proto, ttl) + src + dst + payload


def udp(src, dst, sport, dport, payload):
    length = 8 + len(payload)
    bare = struct.pack("!HHHH", sport, dport, length, 0) + payload
    csum = checksum(pseudo_header(src, dst, 17, length) + bare) or 0xFFFF
    return bare[:6] + struct.pack("!H", csum) + payload


def tcp(src, dst, sport, dport, payload):
    bare = struct.pack("!HHIIBBHHH", sport, dport, 0x01020304, 0x05060708, 5 << 4, 0x18, 1024,
                       0, 0) + payload
    csum = checksum(pseudo_header(src, dst, 6, len(bare)) + bare)
    return bare[:16] + struct.pack("!H", csum) + bare[18:]


def inner_packets():
    v4 = packed("203.0.113.7"), packed("198.51.100.10")
    v6 = packed("2001:db8:c::7"), packed("2001:db8:5::10")
    even, odd = b"shunt!", b"\xff\x00odd"
    for name, tos in TOS:
        yield f"IPv4 TCP, {name}", ipv4(*v4, 6, tcp(*v4, 51515, 443, even), tos, 0x1234, 57)
        yield f"IPv4 UDP of odd length, {name}", ipv4(*v4, 17, udp(*v4, 51515, 443, odd), tos,
                                                      0x1234, 57)
        yield f"IPv6 TCP, {name}", ipv6(*v6, 6, tcp(*v6, 51515, 443, even), tos, 0x54321, 57)
        yield f"IPv6 UDP of odd length, {name}", ipv6(*v6, 17, udp(*v6, 51515, 443, odd), tos,
                                                      0, 57)


def wrap(mode, src, dst, entropy, inner):
    is_v6 = inner[0] >> 4 == 6
    ethertype = struct.pack("!H", 0x86DD if is_v6 else 0x0800)
    tos = (inner[0] << 8 | inner[1]) >> 4 & 0xFF if is_v6 else inner[1]
    sport = 49152 + (entropy >> 18)

    if mode == "ipip":
        proto, payload = 41 if is_v6 else 4, inner
    elif mode == "gre":
        proto, payload = 47, b"\0\0" + ethertype + inner
    else:
        if mode == "vxlan":
            vxlan = struct.pack("!II", 0x08 << 24, VNI << 8)
            inner = vxlan + INNER_DST_MAC + INNER_SRC_MAC + ethertype + inner
        proto, payload = 17, udp(src, dst, sport, UDP_PORT[mode], inner)

    if len(src) == 16:
        return ipv6(src, dst, proto, payload, tos, entropy & 0xFFFFF or 1)
    if proto == 17:
        payload = payload[:6] + b"\0\0" + payload[8:]
    return ipv4(src, dst, proto, payload, tos)


def main():
    n = 0
    print("# Written by packets.py; see there.")
    for name, inner in inner_packets():
        for mode in ("ipip", "gre", "gue", "vxlan"):
            for version, (src, dst) in OUTER.items():
                entropy = ENTROPIES[n % len(ENTROPIES)]
                n += 1
                outer = wrap(mode, packed(src), packed(dst), entropy, inner)
                print(f"# {name}, {mode} over IPv{version}")
                print(mode, src, dst, UDP_PORT.get(mode, 0), f"{VNI:x}", f"{entropy:08x}",
                      inner.hex(), outer.hex())


if __name__ == "__main__":
    main()
