#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What users of load balancers have reported, a row each: odd packets, floods, long waits."""

import json
import struct

import captures
import lib
import wire
from lib import CLIENT, CLIENT6, FIRST_NS, ROUTER, ROUTER6, VIP, VIP6, at, config, items, service
from wire import ACK, FIN, SYN

HOP_BY_HOP, ROUTING, AH, NONE, EXPERIMENT = 0, 43, 51, 59, 253
ANY, ANY6 = "198.51.100.20", "2001:db8:51::20"
SETTINGS = config(service(n=5), service("web6", n=5, address=VIP6),
                  service("any", n=5, address=ANY, protocol="any", port="any"),
                  service("any6", n=5, address=ANY6, protocol="any", port="any"))


def chained(following, *headers, dst=VIP6, sport=1000):
    """TCP behind extension headers, each given as its bytes without the next header's byte."""
    payload = wire.tcp(CLIENT6, dst, sport, 80, payload=b"x" * 20)[40:]
    kinds = [*following, wire.TCP]
    for kind, header in reversed(list(zip(kinds[1:], headers))):
        payload = bytes([kind]) + header + payload
    return wire.ipv6(CLIENT6, dst, kinds[0], payload)


OPTIONS = b"\0\1\4\0\0\0\0"  # padding, of 8 bytes in all
AH_HEADER = b"\4\0\0" + b"\0\0\1\0" + b"\0\0\0\1" + b"i" * 12


def route(left):
    return b"\2\4" + bytes([left]) + b"\0\0\0\0" + b"\x20\1\r\xb8" + b"\0" * 12


class Words(lib.ReplayCase):
    """What becomes of single packets."""

    def check(self, rows, settings=SETTINGS):
        """Rows are words, a packet of a capture, and its verdict or reason."""
        result = self.same([packet for _, packet, _ in rows], settings, workers=(1, 8))
        for (words, _, expected), d in zip(rows, result.decisions):
            with self.subTest(words):
                self.assertEqual(d["reason"] or d["verdict"], expected)
        return result

    def test_ipv4_options_change_no_backend(self):
        packets = [wire.tcp(CLIENT, VIP, sport, 80, options=b"\1" * (4 * words))
                   for sport in range(20) for words in range(11)]
        result = self.replay([at(0, packet) for packet in packets], SETTINGS)
        for sport in range(20):
            self.assertEqual(len(set(result.column("backend")[11 * sport:11 * sport + 11])), 1)
        self.assertEqual([wire.parse_tunnel(p.data, "ipip").inner for p in
                          result.output.packets], packets)
        # Each opens a flow for itself as it would have without them.
        alone = [self.replay([at(0, packet)], SETTINGS, write=False).decisions[0]["slot"]
                 for packet in (packets[0], packets[1], packets[10])]
        self.assertEqual(len(set(alone)), 1)

    def test_ipv6_extension_headers(self):
        far = b"\x20" + b"\0" * 6  # says 264 bytes
        rows = [
            ("none", chained([]), "forward"),
            ("hop by hop", chained([HOP_BY_HOP], OPTIONS), "forward"),
            ("destination options", chained([60], OPTIONS), "forward"),
            ("authentication", chained([AH], AH_HEADER), "forward"),
            ("a route that is done", chained([ROUTING], route(0)), "forward"),
            ("all of them", chained([HOP_BY_HOP, 60, ROUTING, AH, 60], OPTIONS, OPTIONS,
                                    route(0), AH_HEADER, OPTIONS), "forward"),
            ("a route that is not done", chained([ROUTING], route(1)), "kernel"),
            ("40 headers", chained([60] * 40, *[OPTIONS] * 40), "unknown_extension_header"),
            ("one longer than the packet", chained([60], far), "truncated"),
            ("no next header", wire.ipv6(CLIENT6, VIP6, NONE, b""), "kernel"),
            ("an unknown one", wire.ipv6(CLIENT6, VIP6, EXPERIMENT, b"x" * 20), "kernel"),
            ("an unknown one, any protocol",
             wire.ipv6(CLIENT6, ANY6, EXPERIMENT, b"x" * 20), "forward"),
            ("no next header, any protocol", wire.ipv6(CLIENT6, ANY6, NONE, b""), "forward"),
        ]
        result = self.check([(words, at(0, packet), expected)
                             for words, packet, expected in rows])
        self.assertEqual(len(set(result.column("backend")[:6])), 1)
        self.assertEqual(result.column("flow")[1:6], ["hit"] * 5)

    def test_padding_is_never_sent_on(self):
        """A bare ACK is 40 bytes, and the smallest frame has room for 46."""
        packet = wire.tcp(CLIENT, VIP, 1000, 80)
        tag = ((0x8100, 7),)
        packets = [captures.Packet(wire.ether(packet, tags=tags) + b"\xee" * n, FIRST_NS)
                   for tags in ((), tag) for n in (0, 6, 10)]
        for mode in ("ipip", "gre", "gue", "vxlan", "l2"):
            result = self.replay(packets, config(service(forward=mode)))
            for found in result.output.packets:
                self.assertEqual(wire.parse_tunnel(found.data, mode).inner, packet)

    def test_header_lengths(self):
        self.check([(f"{n} words", at(0, wire.tcp(CLIENT, VIP, 1, 80, ihl=n)),
                     "bad_header_length") for n in range(5)])

    def test_tags_of_every_kind(self):
        """Up to two are looked through, whatever their EtherTypes."""
        kinds = (0x8100, 0x88A8, 0x9100)
        rows = []
        for packet in (wire.tcp(CLIENT, VIP, 1, 80), wire.tcp(CLIENT6, VIP6, 1, 80)):
            rows += [("one", at(0, packet, tags=((a, 5),)), "forward") for a in kinds]
            rows += [("two", at(0, packet, tags=((a, 5), (b, 6))), "forward")
                     for a in kinds for b in kinds]
            rows += [("three", at(0, packet, tags=((a, 5), (b, 6), (c, 7))), "vlan_depth")
                     for a in kinds for b in kinds for c in kinds]
        result = self.check(rows)
        sent = [packet for _, packet, expected in rows if expected == "forward"]
        for packet, found in zip(sent, result.output.packets):
            frame = wire.parse_ether(packet.data)
            tunnel = wire.parse_tunnel(found.data, "ipip")
            self.assertEqual((tunnel.frame.tags, tunnel.inner), (frame.tags, frame.payload))

    def test_tunnels_by_udp_are_udp(self):
        """VXLAN and Geneve have ports: nobody's, or a service's that asks for none by name."""
        rows = []
        for port in (4789, 6081):
            rows += [("to a port", at(0, wire.udp(CLIENT, VIP, 1, port, b"x" * 60)), "kernel"),
                     ("to any", at(0, wire.udp(CLIENT, ANY, 1, port, b"x" * 60)), "unsupported_l4")]
        self.check(rows)

    def test_groups_are_the_kernel_s(self):
        rows = [
            ("OSPF", at(0, wire.ipv4(ROUTER, "224.0.0.5", 89, b"x" * 44, ttl=1)), "kernel"),
            ("OSPFv3", at(0, wire.ipv6(ROUTER6, "ff02::5", 89, b"x" * 36, ttl=1)), "kernel"),
            ("mDNS", at(0, wire.udp(CLIENT, "224.0.0.251", 5353, 5353, b"x")), "kernel"),
            ("DHCP", at(0, wire.udp("0.0.0.0", "255.255.255.255", 68, 67, b"x")), "kernel"),
        ]
        self.check(rows)

    def test_what_no_prefix_takes(self):
        """Groups, broadcasts, link-local and own addresses, but for a service of just one."""
        settings = config(
            service("low", address="0.0.0.0/1", protocol="any", port="any"),
            service("high", address="128.0.0.0/1", protocol="any", port="any"),
            service("six", address="::/0", protocol="any", port="any"),
            service("own", address=lib.OUTER, port=8080),
            service("own6", address=lib.OUTER6, port=8080))
        rows = [
            ("OSPF", at(0, wire.ipv4(ROUTER, "224.0.0.5", 89, b"x" * 44, ttl=1)), "kernel"),
            ("OSPFv3", at(0, wire.ipv6("fe80::1", "ff02::5", 89, b"x" * 36, ttl=1)), "kernel"),
            ("mDNS", at(0, wire.udp(CLIENT, "224.0.0.251", 5353, 5353, b"x")), "kernel"),
            ("DHCP", at(0, wire.udp("0.0.0.0", "255.255.255.255", 68, 67, b"x")), "kernel"),
            ("its network's broadcast", at(0, wire.udp(ROUTER, "192.0.2.255", 137, 137, b"x")),
             "kernel"),
            ("a link-local neighbour", at(0, wire.tcp("fe80::1", "fe80::2", 1, 179)), "kernel"),
            ("GRE to a group", at(0, wire.ipv4(CLIENT, "224.0.0.9", wire.GRE, b"\0" * 20)),
             "kernel"),
            ("a client", at(0, wire.tcp(CLIENT, "198.51.100.77", 1, 80)), "forward"),
            ("its network's neighbour", at(0, wire.tcp(CLIENT, "192.0.2.254", 1, 80)),
             "forward")]
        for client, own in ((CLIENT, lib.OUTER), (CLIENT6, lib.OUTER6)):
            rows += [("BGP", at(0, wire.tcp(client, own, 1, 179)), "kernel"),
                     ("UDP", at(0, wire.udp(client, own, 1, 8080, b"x")), "kernel"),
                     ("a service of its own", at(0, wire.tcp(client, own, 1, 8080)), "forward")]
        self.check(rows, settings)
        pings = [("a ping", at(0, wire.echo_request(client, own)), "kernel")
                 for client, own in ((CLIENT, lib.OUTER), (CLIENT6, lib.OUTER6),
                                     (ROUTER, "192.0.2.255"), (CLIENT, "224.0.0.1"))]
        self.check(pings, config(service("v4", address="0.0.0.0/0", port="any"),
                                 service("v6", address="::/0", port="any")))

    def test_what_nobody_has_on_a_wire(self):
        """RFC 1812, 5.3.7; RFC 4291: neither a wide prefix nor the kernel gets it."""
        wide = config(service("v4", address="0.0.0.0/0", protocol="any", port="any"),
                      service("v6", address="::/0", protocol="any", port="any"))
        rows = []
        for client, nobody in ((CLIENT, "127.0.0.1"), (CLIENT, "127.255.255.255"),
                               (CLIENT, "0.0.0.0"), (CLIENT, "0.0.0.1"), (CLIENT6, "::1"),
                               (CLIENT6, "::")):
            cut = wire.pieces(wire.udp(client, nobody, 1, 80, b"x" * 100), 64)
            rows += [(f"{nobody} by {word}", at(0, packet), "martian_destination")
                     for word, packet in (
                         ("TCP", wire.tcp(client, nobody, 1, 80)),
                         ("echo", wire.echo_request(client, nobody)),
                         ("GRE", wire.ip(client, nobody, wire.GRE, b"\0" * 20)),
                         ("a first fragment", cut[0]), ("a later one", cut[1]))]
        self.check(rows, wide)
        self.check(rows, config(service()))
        self.check([("the next", at(0, wire.tcp(CLIENT, "128.0.0.1", 1, 80)), "forward"),
                    ("the next over IPv6", at(0, wire.tcp(CLIENT6, "::2", 1, 80)), "forward")],
                   wide)

    def test_source_routes(self):
        """RFC 7126, 4.3 and 4.4; RFC 5095."""
        rows = []
        for kind in (b"\x83", b"\x89"):
            for words, route, expected in (("to be followed", b"\7\4\1\2\3\4\0", "source_route"),
                                           ("used up", b"\7\x08\1\2\3\4\0", "forward")):
                options = kind + route
                cut = wire.pieces(wire.udp(CLIENT, VIP, 1, 80, b"x" * 100, options=options), 64)
                rows += [
                    (words, at(0, wire.tcp(CLIENT, VIP, 1, 80, options=options)), expected),
                    ("a later fragment " + words, at(0, cut[1]),
                     "fragment_unmatched" if expected == "forward" else expected),
                    ("for another " + words, at(0, wire.tcp(CLIENT, "198.51.100.99", 1, 80,
                                                            options=options)), "kernel")]
            rows.append(("a ping", at(0, wire.echo_request(
                CLIENT, VIP, options=kind + b"\7\4\1\2\3\4\0")), "source_route"))
        segment = wire.tcp(CLIENT6, VIP6, 1, 80)
        for words, data, expected in (
                ("type 0 with a segment left", b"\0\1" + bytes(20), "source_route"),
                ("type 0 that is over", b"\0\0" + bytes(20), "forward"),
                ("type 4 with a segment left", b"\4\1" + bytes(20), "kernel")):
            routed = wire.extension(6, data) + segment[40:]
            rows.append((words, at(0, segment[:4] + struct.pack("!HB", len(routed), 43) +
                                   segment[7:40] + routed), expected))
        self.check(rows, config(service(protocol="any"),
                                service("web6", address=VIP6, protocol="any")))

    def test_frames_to_a_group_of_the_link(self):
        """Nobody forwards those (RFC 1812, section 5.3.4), of flows that are known either."""
        rows = []
        for i, dst in enumerate(("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01",
                                 "33:33:00:00:00:01")):
            for client, vip, other in ((CLIENT, VIP, "198.51.100.99"),
                                       (CLIENT6, VIP6, "2001:db8:51::99")):
                known = wire.tcp(client, vip, 1000 + i, 80)
                first, later = wire.pieces(wire.tcp(client, vip, 2000 + i, 80,
                                                    payload=b"x" * 100), 64, ident=i)
                rows += [
                    ("unicast", at(0, known), "forward"),
                    ("a known flow's", at(0, known, dst=dst), "link_multicast"),
                    ("a new flow's", at(0, wire.tcp(client, vip, 3000, 80), dst=dst),
                     "link_multicast"),
                    ("tagged", at(0, known, dst=dst, tags=((0x8100, 5),)), "link_multicast"),
                    ("an error", at(0, wire.too_big(client, wire.tcp(vip, client, 80, 1)),
                                    dst=dst), "link_multicast"),
                    ("a first fragment", at(0, first, dst=dst), "link_multicast"),
                    ("a later fragment", at(0, later, dst=dst), "link_multicast"),
                    ("a wrong port", at(0, wire.tcp(client, vip, 1, 81), dst=dst), "kernel"),
                    ("a ping", at(0, wire.echo_request(client, vip), dst=dst), "link_multicast"),
                    ("another address", at(0, wire.tcp(client, other, 1, 80), dst=dst),
                     "kernel")]
        self.check(rows)

    def test_martian_sources(self):
        """What no host has for a source, and what is the balancer's: to a service alone."""
        four = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "224.0.0.1",
                "239.255.255.255", "240.0.0.1", "255.255.255.255", lib.OUTER]
        six = ["::", "::1", "ff02::1", "ff0e::1", lib.OUTER6]
        rows = []
        for make in (wire.tcp, wire.udp):
            for src, served, other in [(src, ANY, "198.51.100.99") for src in four] + \
                    [(src, ANY6, "2001:db8:51::99") for src in six]:
                rows.append((src, at(0, make(src, served, 1, 80)), "martian_source"))
                rows.append((f"{src}, elsewhere", at(0, make(src, other, 1, 80)), "kernel"))
        for bad, served, client, router in [(src, ANY, CLIENT, ROUTER) for src in four + [ANY]] + \
                [(src, ANY6, CLIENT6, ROUTER6) for src in six + [ANY6]]:
            quoted = wire.tcp(served, client, 80, 1)
            astray = wire.tcp(served, bad, 80, 1)
            rows += [(f"an error from {bad}", at(0, wire.too_big(bad, quoted)),
                      "martian_source"),
                     (f"an error about {bad}", at(0, wire.too_big(router, astray)),
                      "martian_source"),
                     ("an error", at(0, wire.too_big(router, quoted)), "forward"),
                     ("a far router's", at(0, wire.too_big(client, quoted)), "forward")]
        rows += [(src, at(0, wire.tcp(src, ANY, 1, 80)), "forward")
                 for src in ("1.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.255",
                             "10.0.0.1", "169.254.0.1", "192.0.2.2")]
        rows += [(src, at(0, wire.tcp(src, ANY6, 1, 80)), "forward")
                 for src in ("::2", "fe80::1", "fc00::1", "2001:db8::2")]
        self.check(rows)

    def test_clients_within_a_service_s_prefix(self):
        """They are no martians, and the error about their flow is none; its one address is."""
        settings = config(
            service("all", address="0.0.0.0/0", protocol="udp", port="any"),
            service("all6", address="::/0", protocol="udp", port="any"),
            service("near", address="203.0.113.0/24", port=22),
            service("near6", address="2001:db8:113::/48", port=22),
            service("one", address="203.0.113.99", port=22),
            service("one6", address="2001:db8:113::99", port=22),
            service(), service("web6", address=VIP6))
        rows = []
        for client, one, own, vip, router in (
                (CLIENT, "203.0.113.99", lib.OUTER, VIP, ROUTER),
                (CLIENT6, "2001:db8:113::99", lib.OUTER6, VIP6, ROUTER6)):
            rows += [("UDP to everybody", at(0, wire.udp(client, vip, 1, 53, b"x")), "forward"),
                     ("TCP to another", at(0, wire.tcp(client, vip, 1, 80)), "forward"),
                     ("an error about it", at(0, wire.too_big(router, wire.tcp(
                         vip, client, 80, 1))), "forward"),
                     ("a client's error", at(0, wire.too_big(client, wire.tcp(
                         vip, client, 80, 1))), "forward"),
                     ("a ping", at(0, wire.echo_request(client, vip)), "reply"),
                     ("from one", at(0, wire.tcp(one, vip, 1, 80)), "martian_source"),
                     ("from a port", at(0, wire.udp(own, vip, 1, 53, b"x")), "martian_source"),
                     ("to itself", at(0, wire.udp(client, client, 1, 53, b"x")),
                      "martian_source"),
                     ("a ping of itself", at(0, wire.echo_request(client, client)), "martian_source"),
                     ("an error to its sender", at(0, wire.too_big(vip, wire.tcp(
                         vip, client, 80, 1))), "martian_source")]
        self.check(rows, settings)

    def test_dscp_and_ecn_are_copied_by_every_way(self):
        """RFC 6040, normal mode."""
        modes = [(mode, outer) for mode in ("ipip", "gre", "gue", "vxlan") for outer in (4, 6)]
        settings, rows = [], []
        for i, (mode, outer) in enumerate(modes):
            backend = {"name": "b", "address": "10.0.0.1" if outer == 4 else "2001:db8:b::1"}
            for src, vip in ((CLIENT, f"198.51.100.{i}"), (CLIENT6, f"2001:db8:51::{i}")):
                settings.append(service(f"{mode} {vip}", 0, address=vip, forward=mode,
                                        backends=[backend]))
                rows += [(mode, outer, wire.tcp(src, vip, 1, 80, tos=dscp << 2 | ecn))
                         for dscp in (0, 46, 63) for ecn in range(4)]
        result = self.replay([at(0, packet) for _, _, packet in rows], config(*settings))
        for (mode, outer, packet), found in zip(rows, result.output.packets):
            tunnel = wire.parse_tunnel(found.data, mode)
            inner = wire.parse_ip(packet)
            self.assertEqual((tunnel.outer.version, tunnel.outer.tos, tunnel.inner),
                             (outer, inner.tos, packet))


class Ways(lib.ReplayCase):
    def test_flows_to_one_backend_are_spread_by_the_outer_header(self):
        """1000 flows: ports of 16384, flow labels of 2^20; hardly two alike."""
        for mode, address in (("gue", "10.0.0.1"), ("vxlan", "10.0.0.1"),
                              ("gue", "2001:db8:b::1"), ("vxlan", "2001:db8:b::1"),
                              ("ipip", "2001:db8:b::1"), ("gre", "2001:db8:b::1")):
            with self.subTest(mode, address=address):
                one = service(forward=mode, backends=[{"name": "b", "address": address}])
                packets = [at(i, wire.tcp(CLIENT, VIP, sport, 80)) for i in (0, 1)
                           for sport in range(1000, 2000)]
                found = [wire.parse_tunnel(packet.data, mode) for packet in
                         self.replay(packets, config(one)).output.packets]
                if mode in ("gue", "vxlan"):
                    what = [tunnel.sport for tunnel in found]
                    self.assertGreater(len(set(what)), 940)
                else:
                    what = [tunnel.outer.label for tunnel in found]
                    self.assertGreater(len(set(what)), 995)
                self.assertEqual(what[:1000], what[1000:])


class Times(lib.ReplayCase):
    def tcp(self, flags, seq=1, sport=1000):
        return wire.tcp(CLIENT, VIP, sport, 80, flags, seq)

    def test_ports_used_again_after_a_drain(self):
        """FIN, FIN, and a SYN of the same ports within the timeout is a new flow."""
        packets = []
        for sport in range(1, 31):
            packets += [at(0, self.tcp(SYN, 7, sport)), at(0, self.tcp(ACK, 8, sport))]
        packets += [at(1, self.tcp(FIN | ACK, 8, sport)) for sport in range(1, 31)] * 2
        packets += [at(2, self.tcp(SYN, 500, sport)) for sport in range(1, 31)]
        packets += [at(3, self.tcp(ACK, 501, sport)) for sport in range(1, 31)]
        events = items({"at": "0.5s", "drain": "web/web-1"}, {"at": "0.5s", "drain": "web/web-2"})
        result = self.same(packets, events=events)
        self.assertEqual(set(result.column("backend")[:60]), {"web-1", "web-2", "web-3"})
        self.assertEqual(result.column("backend")[:60:2] * 2, result.column("backend")[60:120])
        self.assertEqual(set(result.column("backend")[120:]), {"web-3"})
        self.assertEqual(result.column("flow")[120:], ["miss"] * 30 + ["hit"] * 30)
        self.assertEqual(result.report["flows"], {"total": 60, "moved": 0, "broken": 0})

    def test_a_backend_goes_from_under_udp(self):
        """Its flows move at their next packet and the others stay: none is broken."""
        packets = [at(i, wire.udp(src, dst, sport, 80, b"data")) for i in range(4)
                   for src, dst in ((CLIENT, VIP), (CLIENT6, VIP6)) for sport in range(1, 101)]
        settings = config(service(protocol="udp"), service("web6", address=VIP6, protocol="udp"))
        events = items({"at": "1.5s", "remove": "web/web-1"},
                       {"at": "1.5s", "remove": "web6/web6-2"})
        result = self.same(packets, settings, events=events)
        rounds = [result.column("backend")[i * 200:i * 200 + 200] for i in range(4)]
        self.assertEqual(rounds[0], rounds[1])
        self.assertEqual(rounds[2], rounds[3])
        n_moved = 0
        for before, after in zip(rounds[1], rounds[2]):
            if before in ("web-1", "web6-2"):
                n_moved += 1
                self.assertNotIn(after, ("web-1", "web6-2"))
            else:
                self.assertEqual(before, after)
        self.assertGreater(n_moved, 40)
        self.assertEqual(result.report["flows"], {"total": 200, "moved": n_moved, "broken": 0})

    def test_timeouts_of_minutes_and_a_day(self):
        """A flow is there a thousandth before its time, and gone a thousandth after."""
        begins = [[SYN], [SYN, ACK], [SYN, FIN], [SYN, wire.RST], []]
        for text, seconds in (("1s", 1), ("600s", 600), ("24h", 86400)):
            plane = {"flow_timeout": dict.fromkeys(("tcp_syn", "tcp", "tcp_closing", "udp"),
                                                   text)}
            packets, ends = [], []
            for i, (flags, factor) in enumerate((flags, factor) for factor in (0.999, 1.001)
                                                for flags in begins):
                end = self.tcp(ACK, sport=i + 1) if flags else \
                    wire.udp(CLIENT, VIP, i + 1, 80)
                packets += [at(0, self.tcp(flag, sport=i + 1)) for flag in flags] or [at(0, end)]
                ends.append(at(seconds * factor, end))
            settings = config(service(protocol="any"), dataplane=plane)
            result = self.replay(packets + ends, settings, write=False)
            self.assertEqual(result.column("flow")[len(packets):], ["hit"] * 5 + ["miss"] * 5)


    def test_a_short_timeout_beside_a_long_one(self):
        """One tick for all, a millionth of the longest: late by two of them at most."""
        for longest, late in (("1s", 0.000002), ("15m", 0.00105), ("7d", 1.0738)):
            plane = {"flow_timeout": {"tcp_syn": "1s", "tcp": longest, "tcp_closing": "1s",
                                      "udp": "1s"}}
            rows = [(1, "hit"), (1 + late, "miss")]
            packets = [at(0, wire.udp(CLIENT, VIP, i + 1, 80)) for i in range(2)]
            packets += [at(seconds, wire.udp(CLIENT, VIP, i + 1, 80))
                        for i, (seconds, _) in enumerate(rows)]
            settings = config(service(protocol="any"), dataplane=plane)
            result = self.replay(packets, settings, write=False)
            self.assertEqual(result.column("flow")[2:], [flow for _, flow in rows], longest)


class Floods(lib.ReplayCase):
    """A table of 524288 entries, the least there is, against 640000 SYNs."""

    N_SOURCES, N_PORTS = 10, 64000

    def flood(self, begin, seconds):
        """Records of a capture, evenly in time by source."""
        out = []
        for i in range(self.N_SOURCES):
            frame = wire.ether(wire.tcp(f"10.9.9.{i + 1}", VIP, 1, 80, SYN))
            when = captures.Packet(frame, FIRST_NS + round(captures.NS * (
                begin + seconds * i / self.N_SOURCES)))
            record = captures.pcap_record(when)
            head, tail = record[:16 + 34], record[16 + 36:]
            out += [head + struct.pack("!H", port) + tail for port in range(1, self.N_PORTS + 1)]
        return b"".join(out)

    def replay_flood(self, before, flood, after, **keys):
        """The decisions of what comes before and after a flood."""
        data = captures.pcap(before) + flood + b"".join(map(captures.pcap_record, after))
        command = ["-c", self.put("shunt.yaml", keys["settings"]), "-j", "-d",
                   self.folder / "decisions.jsonl", "-e", self.put("events.yaml", keys["events"])]
        result = lib.run(*command, self.put("in.pcap", data))
        self.assertEqual((result.status, result.stderr), (0, ""))
        with open(self.folder / "decisions.jsonl", encoding="utf-8") as file:
            lines = file.read().splitlines()
        return ([json.loads(line) for line in lines[:len(before)]],
                [json.loads(line) for line in lines[-len(after):]])

    def test_an_idle_connection_outlives_it(self):
        """Idle for 14:59 of its 15 minutes, and then it goes on where it was."""
        begin = [at(0, wire.tcp(CLIENT, VIP, sport, 80, flags)) for flags in (SYN, ACK)
                 for sport in range(1, 201)]
        # Errors about them, and about flows that the full table does not have, before these.
        errors = [at(898.9, self.error(sport)) for sport in range(1, 401)]
        end = [at(899, wire.tcp(CLIENT, VIP, sport, 80)) for sport in range(1, 401)]
        gone = [at(1799.5, wire.tcp(CLIENT, VIP, sport, 80)) for sport in range(1, 201)]
        before, after = self.replay_flood(
            begin, self.flood(890, 8), errors + end + gone,
            settings=config(service(n=5), dataplane={"flow_entries": 1}),
            events=items({"at": "898.5s", "drain": "web/web-1"},
                         {"at": "898.5s", "drain": "web/web-2"}))
        errors, end, gone = after[:400], after[400:800], after[800:]
        self.assertEqual([d["backend"] for d in before[200:]],
                         [d["backend"] for d in end[:200]])
        self.assertEqual({d["flow"] for d in end[:200]}, {"hit"})
        self.assertEqual({d["flow"] for d in gone}, {"miss"})
        self.assertEqual([d["backend"] for d in errors], [d["backend"] for d in end])
        self.assertEqual([d["slot"] for d in errors], [d["slot"] for d in end])

    def error(self, sport):
        return wire.too_big(ROUTER, wire.tcp(VIP, CLIENT, 80, sport, payload=b"x" * 100))


if __name__ == "__main__":
    lib.main()
