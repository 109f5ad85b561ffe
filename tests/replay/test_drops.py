#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every reason to drop that a replay can meet, one packet each, and what comes close to it."""

import captures
import lib
import wire
from lib import CLIENT, CLIENT6, FIRST_NS, ROUTER, VIP, VIP6, at, config, service


def tcp(**fields):
    return wire.tcp(CLIENT, VIP, 1000, 80, payload=b"x" * 20, **fields)


def tcp6(**fields):
    return wire.tcp(CLIENT6, VIP6, 1000, 80, payload=b"x" * 20, **fields)


def cut(packet, n_bytes, is_on_wire=True):
    """A frame of which n_bytes are left, by the capture or already on the wire."""
    data = wire.ether(packet)
    return captures.Packet(data[:n_bytes], FIRST_NS, len(data) if is_on_wire else None)


def chain(n):
    """IPv6 with n extension headers."""
    payload = wire.tcp(CLIENT6, VIP6, 1000, 80)[40:]
    following = wire.TCP
    for _ in range(n):
        payload = wire.extension(following) + payload
        following = wire.DESTINATION_OPTIONS
    return wire.ipv6(CLIENT6, VIP6, following, payload)


def later_fragment(family=4, proto=wire.UDP, dst=None):
    if family == 4:
        return wire.ipv4(CLIENT, dst or VIP, proto, b"x" * 64, fragment=185)
    payload = wire.fragment_header(proto, 1480, 0) + b"x" * 64
    return wire.ipv6(CLIENT6, dst or VIP6, wire.FRAGMENT, payload)


SETTINGS = config(service(), service("web6", address=VIP6),
                  service("empty", n=0, address="198.51.100.20"),
                  service("empty-udp", n=0, address="198.51.100.20", protocol="udp"))

# Words, a packet of the capture, the reason (None: it is no drop).
ROWS = [
    ("no Ethernet header", captures.Packet(b"\2\0\0\0\0\1\2\0\0\0\0\2\x08", FIRST_NS),
     "truncated"),
    ("no byte at all", captures.Packet(b"", FIRST_NS), "truncated"),
    ("a tag cut short", captures.Packet(wire.ether(b"", ethertype=0x8100) + b"\0\1", FIRST_NS),
     "truncated"),
    ("19 bytes of IPv4", cut(tcp(), 14 + 19, False), "truncated"),
    ("39 bytes of IPv6", cut(tcp6(), 14 + 39, False), "truncated"),
    ("IPv4 with a byte missing", cut(tcp(), 14 + 59, False), "truncated"),
    ("IPv6 with a byte missing", cut(tcp6(), 14 + 79, False), "truncated"),
    ("options beyond the frame", at(0, wire.ipv4(CLIENT, VIP, 6, b"", ihl=15, total=60)),
     "truncated"),
    ("half a TCP header", at(0, wire.ipv4(CLIENT, VIP, 6, b"\0" * 19)), "truncated"),
    ("half a UDP header", at(0, wire.ipv4(CLIENT, VIP, 17, b"\0" * 7)), "truncated"),
    ("half an ICMP header", at(0, wire.ipv4(CLIENT, VIP, 1, b"\0" * 7)), "truncated"),
    ("half a TCP header in a first fragment",
     at(0, wire.ipv4(CLIENT, VIP, 6, b"\0" * 16, fragment=0x2000)), "fragment_bad"),
    ("a first fragment in IPv6 without UDP",
     at(0, wire.ipv6(CLIENT6, VIP6, wire.FRAGMENT,
                     wire.fragment_header(wire.DESTINATION_OPTIONS, 0, 1)
                     + wire.extension(wire.UDP))), "fragment_bad"),
    ("a fragment that is no multiple of 8, and not the last",
     at(0, wire.ipv4(CLIENT, VIP, 17, b"\0" * 63, fragment=0x2001)), "fragment_bad"),
    ("a fragment past 65535",
     at(0, wire.ipv4(CLIENT, VIP, 17, b"\0" * 8, fragment=0x1FFF)), "fragment_bad"),
    ("half an extension header", at(0, wire.ipv6(CLIENT6, VIP6, 60, b"\6\0\0\0")), "truncated"),
    ("an extension header beyond the packet",
     at(0, wire.ipv6(CLIENT6, VIP6, 60, b"\6\7" + b"\0" * 30)), "truncated"),
    ("version 5 by an IPv4 EtherType", at(0, tcp(version=5), ethertype=0x0800),
     "bad_ip_version"),
    ("version 6 by an IPv4 EtherType", at(0, tcp6(), ethertype=0x0800), "bad_ip_version"),
    ("version 4 by an IPv6 EtherType", at(0, tcp(), ethertype=0x86DD), "bad_ip_version"),
    ("version and header length both wrong", at(0, tcp(version=5, ihl=4), ethertype=0x0800),
     "bad_ip_version"),
    ("a header of 16 bytes", at(0, tcp(ihl=4)), "bad_header_length"),
    ("a header of none, and a total length of none", at(0, tcp(ihl=0, total=0)),
     "bad_header_length"),
    ("a total length within the header", at(0, tcp(total=19)), "bad_total_length"),
    ("a total length of none, a wrong checksum", at(0, tcp(total=0, csum=1)),
     "bad_total_length"),
    ("a wrong checksum", at(0, tcp(csum=0x1234)), "bad_checksum"),
    ("a wrong checksum and no TTL", at(0, tcp(csum=0x1234, ttl=0)), "bad_checksum"),
    ("no TTL", at(0, tcp(ttl=0)), "ttl_expired"),
    ("no hop limit", at(0, tcp6(ttl=0)), "ttl_expired"),
    ("a TTL of one", at(0, tcp(ttl=1)), None),
    ("a hop limit of one", at(0, tcp6(ttl=1)), None),
    ("8 extension headers", at(0, chain(8)), None),
    ("100 extension headers", at(0, chain(100)), "unknown_extension_header"),
    ("a later fragment whose first never comes", at(0, later_fragment()), "fragment_unmatched"),
    ("the same in IPv6", at(0, later_fragment(6)), "fragment_unmatched"),
    ("nobody's later fragment", at(0, later_fragment(dst="198.51.100.99")), "kernel"),
    ("only the reserved bit", at(0, tcp(fragment=0x8000)), None),
    ("a service without backends", at(0, wire.tcp(CLIENT, "198.51.100.20", 1, 80)),
     "no_backend"),
    ("an ICMP error that does not fit the MTU, and may not be cut",
     at(0, wire.too_big(ROUTER, wire.tcp(VIP, CLIENT, 80, 1000, payload=b"x" * 1420),
                        fragment=0x4000)), "too_big"),
    ("from a loopback address", at(0, wire.tcp("127.0.0.1", VIP, 1000, 80)), "martian_source"),
    ("from the balancer's own address", at(0, wire.tcp("192.0.2.1", VIP, 1000, 80)),
     "martian_source"),
    ("from the service's own address", at(0, wire.tcp(VIP, VIP, 1000, 80)), "martian_source"),
    ("from a loopback address to somebody else",
     at(0, wire.tcp("127.0.0.1", "198.51.100.99", 1000, 80)), "kernel"),
    ("GRE to a service's address", at(0, wire.ipv4(CLIENT, VIP, wire.GRE, b"\0" * 30)),
     "unsupported_l4"),
    ("IPIP to a service's address", at(0, wire.ipv4(CLIENT, VIP, wire.IPIP, tcp())),
     "unsupported_l4"),
    ("6in4 to a service's address", at(0, wire.ipv4(CLIENT, VIP, wire.IPV6, tcp6())),
     "unsupported_l4"),
    ("GRE to somebody else", at(0, wire.ipv4(CLIENT, "198.51.100.99", wire.GRE, b"\0" * 30)),
     "kernel"),
    ("two tags", at(0, tcp(), tags=((0x88A8, 1), (0x8100, 2))), None),
    ("three tags", at(0, tcp(), tags=((0x88A8, 1), (0x8100, 2), (0x8100, 3))), "vlan_depth"),
    ("IPv4 cut by the capture", cut(tcp(), 14 + 59), "snaplen"),
    ("IPv6 cut by the capture", cut(tcp6(), 14 + 79), "snaplen"),
    ("cut within the IPv4 header", cut(tcp(), 14 + 10), "kernel"),
    ("cut after the ports", cut(tcp(), 14 + 24), "snaplen"),
    ("cut after the ports, another port", cut(wire.tcp(CLIENT, VIP, 1000, 81), 14 + 24), "kernel"),
    ("cut within the ports", cut(tcp(), 14 + 22), "snaplen"),
    ("cut, but only padding is missing",
     captures.Packet(wire.ether(tcp()), FIRST_NS, 14 + 60 + 40), None),
    ("cut, but nobody's", cut(wire.tcp(CLIENT, "198.51.100.99", 1, 80, payload=b"x" * 20), 70),
     "kernel"),
    ("cut within the ports, but nobody's", cut(wire.tcp(CLIENT, "198.51.100.99", 1, 80), 36),
     "kernel"),
    ("a later fragment of ICMP",
     at(0, wire.ipv4(CLIENT, VIP, wire.ICMP, b"\0" * 64, fragment=185)), "fragment_unmatched"),
    ("cut and its checksum wrong", cut(tcp(csum=0x1234), 14 + 59), "bad_checksum"),
    ("no IP at all", at(0, b"\0" * 46, ethertype=0x0806), "kernel"),
    ("a length and no EtherType", at(0, b"\0" * 46, ethertype=46), "kernel"),
    ("another port", at(0, wire.tcp(CLIENT, VIP, 1000, 81)), "kernel"),
    ("another protocol", at(0, wire.ipv4(CLIENT, VIP, 132, b"\0" * 30)), "kernel"),
]


class Drops(lib.ReplayCase):
    def test_each_reason(self):
        result = self.replay([packet for _, packet, _ in ROWS], SETTINGS)
        counts = dict.fromkeys(lib.DROPS, 0)
        for (words, _, reason), decision in zip(ROWS, result.decisions):
            with self.subTest(words):
                found = (decision["verdict"], decision["reason"])
                if reason in (None, "kernel"):
                    self.assertEqual(found, (reason or "forward", None))
                else:
                    self.assertEqual(found, ("drop", reason))
                    counts[reason] += 1
        self.assertEqual(result.report["drops"], counts)

    def test_without_a_kernel_there_is_no_service(self):
        plane = {"kernel": "none"}
        rows = [
            (wire.tcp(CLIENT, VIP, 1, 80), None),
            (wire.tcp(CLIENT, VIP, 1, 81), "no_service"),
            (wire.tcp(CLIENT6, VIP6, 1, 80), "no_service"),
            (later_fragment(dst="198.51.100.99"), "no_service"),
            (wire.tcp(CLIENT, VIP, 1, 80, ttl=0), "ttl_expired"),
        ]
        packets = [at(0, packet) for packet, _ in rows]
        packets.append(at(0, b"\0" * 46, ethertype=0x0806))
        result = self.replay(packets, config(service(), dataplane=plane))
        self.assertEqual(result.column("reason"), [reason for _, reason in rows] +
                         ["no_service"])
        self.assertEqual(result.report["packets"]["to_kernel"], 0)

    def test_without_a_next_hop(self):
        port = {key: value for key, value in lib.PORT.items() if key != "next_hop"}
        one = service(n=1)
        one["backends"].append({"name": "web-2", "address": "10.0.0.12"})
        settings = config(one, dataplane={"ports": [port]})
        result = self.replay([at(0, tcp())], settings)
        self.assertEqual(result.column("reason"), ["no_next_hop"])
        self.assertEqual(result.column("service"), ["web"])

    def test_no_backend_names_the_service(self):
        for one in (service(n=0), down_service(), weightless_service()):
            result = self.replay([at(0, tcp())], config(one))
            self.assertEqual(result.decisions, [{"packet": 1, "verdict": "drop",
                                                 "service": "web", "backend": None,
                                                 "flow": "miss", "slot": None,
                                                 "reason": "no_backend"}])
            self.assertEqual(result.report["flows"]["total"], 0)


def down_service():
    one = service(n=2)
    for backend in one["backends"]:
        backend["state"] = "down"
    return one


def weightless_service():
    one = service(n=2)
    for backend in one["backends"]:
        backend["weight"] = 0
    return one


if __name__ == "__main__":
    lib.main()
