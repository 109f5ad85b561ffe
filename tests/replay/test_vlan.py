#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""VLAN tags by what a port says: as they came, none, or one VLAN's."""

import lib
import wire
from lib import CLIENT, CLIENT6, VIP, VIP6, at, config, service

# Priority 5 and drop eligible, priority 1, and none.
TAGS = [(), ((0x8100, 0xB007),), ((0x88A8, 0x2063),), ((0x88A8, 0xB064), (0x8100, 0x6007)),
        ((0x9100, 0x0001), (0x8100, 0xF123))]


def expected(vlan, tags):
    """802.1Q, 6.9.3: priority and drop eligibility stay those of the outermost tag."""
    if vlan == "keep":
        return tags
    if vlan == "none":
        return ()
    return ((0x8100, (tags[0][1] & 0xF000 if tags else 0) | vlan),)


class Vlan(lib.ReplayCase):
    def check(self, sends, modes, **keys):
        """Each packet with each of TAGS, by each mode, from a port of each kind."""
        for vlan in (None, "keep", "none", 1, 100, 4094):
            for mode in modes:
                with self.subTest(vlan=vlan, mode=mode):
                    port = {"mtu": 1400, **({} if vlan is None else {"vlan": vlan})}
                    settings = config(service(protocol="any", forward=mode, **keys),
                                      service("web6", address=VIP6, protocol="any",
                                              forward=mode), port=port)
                    packets = [at(i, packet, tags=tags) for i, (packet, tags) in enumerate(
                        (packet, tags) for packet in sends for tags in TAGS)]
                    result = self.replay(packets, settings)
                    self.check_frames(packets, result, vlan or "keep", mode)

    def check_frames(self, packets, result, vlan, mode):
        frames = {}
        for packet in result.output.packets:
            frames.setdefault(packet.time_ns, []).append(packet.data)
        for packet, d in zip(packets, result.decisions):
            asked = wire.parse_ether(packet.data)
            left = [wire.parse_ether(data) for data in frames[packet.time_ns]]
            if d["verdict"] == "reply":
                self.assertEqual([frame.tags for frame in left], [asked.tags])
                continue
            self.assertEqual(d["verdict"], "forward")
            self.assertEqual({frame.tags for frame in left}, {expected(vlan, asked.tags)})
            self.assertEqual({(frame.dst, frame.src) for frame in left},
                             {(lib.NEXT_HOP, wire.OWN_MAC)})
            if len(left) == 1:
                inner = wire.parse_tunnel(frames[packet.time_ns][0], mode).inner
                self.assertEqual(inner, asked.payload)
            else:
                self.check_pieces(frames[packet.time_ns], asked.payload, mode)

    def check_pieces(self, frames, packet, mode):
        """Cut inside or outside, together they are the packet."""
        ips = [wire.parse_ether(data).payload for data in frames]
        if wire.place_of(ips[0])[1]:
            at_ip = len(frames[0]) - len(ips[0])
            inner = wire.parse_tunnel(frames[0][:at_ip] + wire.put_together(ips), mode).inner
        else:
            inner = wire.put_together([wire.parse_tunnel(data, mode).inner for data in frames])
        self.assertEqual(inner, packet)

    def test_packets_of_flows(self):
        sends = [wire.tcp(CLIENT, VIP, 1000, 80, payload=b"x"), wire.tcp(CLIENT6, VIP6, 1, 80),
                 wire.udp(CLIENT, VIP, 1000, 80, b"x" * 1000)]
        self.check(sends, ("ipip", "vxlan", "l2"))

    def test_pieces(self):
        self.check([wire.udp(CLIENT, VIP, 1000, 80, b"x" * 1472)], ("gre",))
        self.check([wire.udp(CLIENT, VIP, 1000, 80, b"x" * 1472)], ("gue",), fragment="outer")

    def test_replies_go_back_as_they_came(self):
        sends = [wire.echo_request(CLIENT, VIP), wire.echo_request(CLIENT6, VIP6),
                 wire.udp(CLIENT, VIP, 1000, 80, b"x" * 1472, fragment=0x4000),
                 wire.udp(CLIENT6, VIP6, 1000, 80, b"x" * 1400)]
        self.check(sends, ("ipip",))

    def test_those_that_waited(self):
        first, later = wire.pieces(wire.udp(CLIENT, VIP, 1000, 80, b"x" * 400), 208)
        tags = TAGS[1]
        settings = config(service(protocol="udp"), port={"vlan": 100})
        result = self.same([at(0, later, tags=tags), at(0.1, first, tags=tags)], settings)
        self.assertEqual([wire.parse_ether(p.data).tags for p in result.output.packets],
                         [expected(100, tags)] * 2)


if __name__ == "__main__":
    lib.main()
