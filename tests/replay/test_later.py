#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What is promised of a packet path that answers and knows datagrams, and is not kept yet: each
is expected to fail, and its test fails as soon as it does not, so that it moves from here.
"""

import struct
import unittest

import lib
import wire
from lib import CLIENT, CLIENT6, VIP, VIP6, at, config, service

SETTINGS = config(service(protocol="any", port="any"),
                  service("web6", address=VIP6, protocol="any", port="any"))
DATAGRAM = wire.udp_datagram(CLIENT, VIP, 1000, 80, bytes(range(250)) * 8)


def fragment(begin, end):
    """Bytes begin..end of the datagram, in IPv4."""
    more = 0x2000 if end < len(DATAGRAM) else 0
    return wire.ipv4(CLIENT, VIP, wire.UDP, DATAGRAM[begin:end], ident=7,
                     fragment=more | begin // 8)


class Replies(lib.ReplayCase):
    def reply_to(self, packet):
        result = self.replay([at(0, packet)], SETTINGS)
        self.assertEqual(result.column("verdict"), ["reply"])
        frame = wire.parse_ether(result.output.packets[0].data)
        return wire.parse_ip(frame.payload)

    @unittest.expectedFailure
    def test_echo_to_a_service_is_answered(self):
        for src, dst, kind in ((CLIENT, VIP, 0), (CLIENT6, VIP6, 129)):
            request = wire.echo_request(src, dst, b"payload")
            reply = self.reply_to(request)
            self.assertEqual((reply.src, reply.dst, reply.payload[0]), (dst, src, kind))
            self.assertTrue(request.endswith(reply.payload[4:]))

    @unittest.expectedFailure
    def test_with_df_what_does_not_fit_is_answered(self):
        packet = wire.udp(CLIENT, VIP, 1, 80, b"x" * 1460, fragment=0x4000)
        reply = self.reply_to(packet)
        self.assertEqual((reply.dst, reply.payload[:2]), (CLIENT, b"\3\4"))
        self.assertEqual(struct.unpack_from("!H", reply.payload, 6)[0], 1480)
        self.assertTrue(packet.startswith(reply.payload[8:36]))

    @unittest.expectedFailure
    def test_in_ipv6_what_does_not_fit_is_answered(self):
        reply = self.reply_to(wire.udp(CLIENT6, VIP6, 1, 80, b"x" * 1440))
        self.assertEqual((reply.dst, reply.payload[:2]), (CLIENT6, b"\2\0"))
        self.assertEqual(struct.unpack_from("!I", reply.payload, 4)[0], 1480)

    @unittest.expectedFailure
    def test_without_df_what_does_not_fit_is_fragmented_inside(self):
        packet = wire.udp(CLIENT, VIP, 1, 80, b"x" * 1460)
        result = self.replay([at(0, packet)], SETTINGS)
        self.assertEqual(result.column("verdict"), ["forward"])
        inner = [wire.parse_ip(wire.parse_tunnel(p.data, "ipip").inner)
                 for p in result.output.packets]
        self.assertEqual(len(inner), 2)
        self.assertEqual(inner[0].payload + inner[1].payload, packet[20:])


class Fragments(lib.ReplayCase):
    def check_order(self, order, expected_times):
        parts = [fragment(0, 800), fragment(800, 1600), fragment(1600, len(DATAGRAM))]
        result = self.replay([at(i / 10, parts[number]) for i, number in enumerate(order)],
                             SETTINGS)
        self.assertEqual(result.column("verdict"), ["forward"] * 3)
        self.assertEqual(len(set(result.column("backend"))), 1)
        self.assertEqual(sorted(result.column("flow")), ["hit", "hit", "miss"])
        times = [(p.time_ns - lib.FIRST_NS) / 1e9 for p in result.output.packets]
        self.assertEqual(times, expected_times)

    @unittest.expectedFailure
    def test_a_later_fragment_goes_with_its_first(self):
        self.check_order((0, 1, 2), [0, 0.1, 0.2])

    @unittest.expectedFailure
    def test_a_later_fragment_waits_for_its_first(self):
        self.check_order((1, 0, 2), [0.1, 0, 0.2])


if __name__ == "__main__":
    lib.main()
