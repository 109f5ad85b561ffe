#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the balancer says by ICMP itself, and what it cuts into pieces instead."""

import itertools
import random
import struct

import captures
import lib
import wire
from captures import Packet
from lib import CLIENT, CLIENT6, FIRST_NS, VIP, VIP6, at, config, service

CLIENT_MAC, OWN_MAC = wire.ROUTER_MAC, wire.OWN_MAC
DF = 0x4000
# Bytes that each way to a backend adds, without the outer IP header.
MODES = {"ipip": 0, "gre": 4, "gue": 8, "vxlan": 8 + 8 + 14, "l2": None}
TAGS = [(), ((0x8100, 0x2007),), ((0x88A8, 0x6005), (0x8100, 0x0007))]


class Way:
    """A service of one family, by one mode over one outer family."""

    def __init__(self, number, family, mode, outer):
        self.family, self.mode, self.outer = family, mode, outer
        self.vip = f"198.51.100.{10 + number}" if family == 4 else f"2001:db8:51::{number:x}"
        self.client = f"203.0.113.{10 + number}" if family == 4 else \
            f"2001:db8:113::{number:x}"
        self.words = f"IPv{family} by {mode} over IPv{outer}"

    @property
    def overhead(self):
        head = MODES[self.mode]
        return 0 if head is None else head + (20 if self.outer == 4 else 40)

    def service(self, **keys):
        backend = {"name": "b", "address": "10.0.0.1" if self.outer == 4 else "2001:db8:b::1"}
        return service(self.words, 0, address=self.vip, protocol="any", forward=self.mode,
                       backends=[backend], **keys)

    def packet(self, n_bytes, make=wire.udp, sport=1000, **fields):
        """A whole packet of n_bytes, options included."""
        if self.family == 4:
            fields.setdefault("fragment", DF)
            fields.setdefault("ident", n_bytes)
        head = 40 if self.family == 6 else 20 + len(fields.get("options", b""))
        head += 20 if make is wire.tcp else 8
        payload = random.Random(n_bytes).randbytes(n_bytes - head)
        packet = make(self.client, self.vip, sport, 80, payload=payload, **fields)
        assert len(packet) == n_bytes
        return packet


def all_ways():
    pairs = [(mode, outer) for mode in MODES for outer in (4, 6) if (mode, outer) != ("l2", 6)]
    return [Way(i, family, mode, outer)
            for i, ((mode, outer), family) in enumerate(itertools.product(pairs, (4, 6)))]


class ReplyCase(lib.ReplayCase):
    def outputs(self, result, packets):
        """The frames that left for each packet: each packet has a time of its own."""
        found = {packet.time_ns: [] for packet in packets}
        self.assertEqual(len(found), len(packets))
        for packet in result.output.packets:
            found[packet.time_ns].append(packet.data)
        return [found[packet.time_ns] for packet in packets]

    def check_back(self, frame, asked):
        """A frame goes back whence it came. Returns its IP packet."""
        frame, asked = wire.parse_ether(frame), wire.parse_ether(asked)
        self.assertEqual((frame.dst, frame.src), (asked.src, asked.dst))
        self.assertEqual((frame.tags, frame.ethertype), (asked.tags, asked.ethertype))
        return wire.parse_ip(frame.payload)


class TooBig(ReplyCase):
    MTU = 1400

    def check_too_big(self, frame, asked, mtu):
        """RFC 1191 and 1812, 4.3.2; RFC 4443, 3.2."""
        answer = self.check_back(frame, asked)
        packet = wire.parse_ether(asked).payload
        cause = wire.parse_ip(packet)
        self.assertEqual((answer.src, answer.dst), (cause.dst, cause.src))
        self.assertEqual(answer.ttl, 64)
        icmp = wire.parse_icmp(answer)
        if answer.version == 4:
            self.assertEqual((icmp.kind, icmp.code), (3, 4))
            self.assertEqual(icmp.rest[:4], struct.pack("!HH", 0, mtu))
            self.assertEqual(icmp.rest[4:], packet[:576 - 28])
            self.assertEqual(answer.tos, 0xC0)
        else:
            self.assertEqual((icmp.kind, icmp.code), (2, 0))
            self.assertEqual(icmp.rest[:4], struct.pack("!I", mtu))
            self.assertEqual(icmp.rest[4:], packet[:1280 - 48])

    def test_what_may_not_be_cut_is_answered(self):
        """Up to the byte: what just fits is sent on."""
        ways = all_ways()
        rows = []
        for way in ways:
            room = self.MTU - way.overhead
            for n_bytes in (1500, room + 1, room):
                for tags in TAGS:
                    for make in (wire.tcp, wire.udp):
                        rows.append((way, room, n_bytes, tags, make))
        packets = [at(i / 1000, way.packet(n_bytes, make), tags=tags)
                   for i, (way, _, n_bytes, tags, make) in enumerate(rows)]
        settings = config(*[way.service() for way in ways], port={"mtu": self.MTU})
        result = self.same(packets, settings)
        frames = self.outputs(result, packets)
        for row, packet, decision, left in zip(rows, packets, result.decisions, frames):
            way, room, n_bytes, tags, _ = row
            with self.subTest(way.words, n_bytes=n_bytes, tags=len(tags)):
                self.assertEqual(decision["verdict"], "reply" if n_bytes > room else "forward")
                self.assertEqual(len(left), 1)
                if n_bytes > room:
                    self.check_too_big(left[0], packet.data, room)
                else:
                    tunnel = wire.parse_tunnel(left[0], way.mode)
                    self.assertEqual(tunnel.inner, packet.data[14 + 4 * len(tags):])
                    self.assertEqual(len(tunnel.frame.payload), self.MTU)
        self.assertEqual(result.report["packets"]["replied"], len(rows) * 2 // 3)

    def test_the_quote_is_the_packet_s_beginning_or_all_of_it(self):
        """A port of 576 bytes, and packets around what an error has room to quote."""
        way = Way(1, 4, "vxlan", 4)
        port = {"mtu": 576, "addresses": [f"{lib.OUTER}/24"]}
        sizes = (527, 547, 548, 549, 576, 577, 1500)
        packets = [at(i, way.packet(n)) for i, n in enumerate(sizes)]
        result = self.replay(packets, config(way.service(), port=port))
        for packet, left in zip(packets, self.outputs(result, packets)):
            self.check_too_big(left[0], packet.data, 576 - 50)

    def test_ipv6_is_never_told_of_less_than_every_link_has(self):
        """RFC 8200, section 5: 1280."""
        way = Way(1, 6, "ipip", 6)
        packets = [at(0, way.packet(1281)), at(1, way.packet(1500))]
        result = self.replay(packets, config(way.service(), port={"mtu": 1280}))
        for packet, left in zip(packets, self.outputs(result, packets)):
            self.check_too_big(left[0], packet.data, 1280)

    def test_nobody_is_told(self):
        """RFC 1122, 3.2.2: not of an ICMP error, nor of a fragment after the first."""
        four, six = Way(1, 4, "ipip", 4), Way(2, 6, "ipip", 4)
        rows = []
        for way in (four, six):
            quoted = wire.udp(way.vip, way.client, 80, 1000, b"x" * 1420)
            fields = {"fragment": DF} if way.family == 4 else {}
            router = lib.ROUTER if way.family == 4 else lib.ROUTER6
            rows.append(("an ICMP error", wire.too_big(router, quoted, **fields), "too_big"))
            whole = way.packet(4000)
            rows.append(("a first fragment", wire.piece(whole, 0, 1440, 1), "reply"))
            rows.append(("a later one", wire.piece(whole, 1440, 1440, 1), "too_big"))
            rows.append(("the last one, which fits", wire.piece(whole, 2880, 800, 0),
                         "too_big"))
        packets = [at(i / 1000, packet) for i, (_, packet, _) in enumerate(rows)]
        settings = config(four.service(), six.service(), port={"mtu": self.MTU})
        result = self.same(packets, settings)
        for (words, _, expected), d in zip(rows, result.decisions):
            with self.subTest(words):
                self.assertEqual(d["reason"] or d["verdict"], expected)

    def test_answers_fit_the_link_that_they_leave_by(self):
        """RFC 1812, 4.3.2.3: 576; RFC 4443, 2.4(c): 1280. An echo's is as long as the request."""
        for mtu, family in ((576, 4), (1280, 4), (1280, 6), (1500, 4), (1500, 6)):
            way = Way(1, family, "vxlan", 4)
            port = {"mtu": mtu} if mtu >= 1280 else {"mtu": mtu,
                                                    "addresses": [f"{lib.OUTER}/24"]}
            head = 28 if family == 4 else 48
            asked = wire.echo_request(way.client, way.vip, b"p" * (mtu - head))
            self.assertEqual(len(asked), mtu)
            packets = [at(i, way.packet(n)) for i, n in enumerate((max(mtu, 1281), 9000))]
            packets.append(at(2, asked))
            result = self.same(packets, config(way.service(), port=port))
            lengths = []
            for frame in result.output.packets:
                ip = wire.parse_ether(frame.data).payload
                wire.parse_icmp(wire.parse_ip(ip))
                lengths.append(len(ip))
            error = 576 if family == 4 else 1280
            self.assertEqual(lengths, [error, error, mtu])

    def error(self, way, n_bytes, **fields):
        """A router's, of n_bytes, about the service's packet."""
        bare = wire.too_big(lib.ROUTER if way.family == 4 else lib.ROUTER6,
                            wire.udp(way.vip, way.client, 80, 1000))
        quoted = wire.udp(way.vip, way.client, 80, 1000,
                          random.Random(n_bytes).randbytes(n_bytes - len(bare)))
        return wire.too_big(lib.ROUTER if way.family == 4 else lib.ROUTER6, quoted, **fields)

    def test_errors_of_the_usual_size_pass_every_way(self):
        """What RFC 1812 and RFC 4443 let a router send fits with any outer header."""
        ways = all_ways()
        packets = [at(i, self.error(way, 576 if way.family == 4 else 1280))
                   for i, way in enumerate(ways)]
        settings = config(*[way.service() for way in ways])
        result = self.same(packets, settings)
        self.assertEqual(set(result.column("verdict")), {"forward"})
        for way, packet, left in zip(ways, packets, self.outputs(result, packets)):
            self.assertEqual(len(left), 1)
            self.assertEqual(wire.parse_tunnel(left[0], way.mode).inner, packet.data[14:])

    def test_errors_that_do_not_fit(self):
        """Nobody is told of an error; it is cut as other packets are where it may be."""
        way, six = Way(1, 4, "ipip", 4), Way(2, 6, "ipip", 4)
        rows = [("DF", 4, "inner", self.error(way, 1500, fragment=DF), "too_big"),
                ("without DF", 4, "inner", self.error(way, 1500), "forward"),
                ("the last byte", 4, "inner", self.error(way, 1381), "forward"),
                ("not to be cut", 4, "drop", self.error(way, 1381), "too_big"),
                ("that fits", 4, "drop", self.error(way, 1380, fragment=DF), "forward"),
                ("cut outside", 4, "outer", self.error(way, 1500), "forward"),
                ("IPv6", 6, "inner", self.error(six, 1381), "too_big")]
        for words, family, fragment, packet, expected in rows:
            with self.subTest(words):
                settings = config(way.service(fragment=fragment), six.service(),
                                  port={"mtu": self.MTU})
                result = self.replay([at(0, packet)], settings)
                d = result.decisions[0]
                self.assertEqual(d["reason"] or d["verdict"], expected)
                left = [p.data for p in result.output.packets]
                ips = [wire.parse_ether(frame).payload for frame in left]
                self.assertLessEqual(max(map(len, ips), default=0), self.MTU)
                if expected == "forward" and fragment == "outer":
                    left = [left[0][:14] + wire.put_together(ips)]
                inner = [wire.parse_tunnel(frame, "ipip").inner for frame in left]
                if expected == "forward":
                    self.assertEqual(wire.put_together(inner) if len(inner) > 1 else inner[0],
                                     packet)
                self.assertEqual(len(left) > 0, expected == "forward")
        result = self.replay([at(0, self.error(six, 1280))],
                             config(six.service(), port={"mtu": 1280}))
        ips = [wire.parse_ether(p.data).payload for p in result.output.packets]
        self.assertEqual(len(ips), 2)
        self.assertEqual(wire.put_together(ips)[20:], self.error(six, 1280))

    def test_from_and_to_whom_no_answer_goes(self):
        way = Way(1, 4, "ipip", 4)
        packet = way.packet(1500)
        group = "01:00:5e:00:00:01"
        packets = [at(0, packet, dst=group), at(1, packet, src=group),
                   at(2, packet, dst="ff:ff:ff:ff:ff:ff")]
        result = self.replay(packets, config(way.service()))
        self.assertEqual(result.column("reason"),
                         ["link_multicast", "too_big", "link_multicast"])
        self.assertEqual(result.output.packets, [])

    def test_too_many_of_one_source(self):
        """100 a second and at once, and nobody else's are any fewer."""
        ways = (Way(1, 4, "ipip", 4), Way(2, 6, "ipip", 4))
        settings = config(*[way.service() for way in ways])
        for way, neighbor in zip(ways, ("203.0.113.99", "2001:db8:114::9")):
            client = way.client
            packets = [at(i / 1e6, way.packet(1500)) for i in range(300)]
            way.client = neighbor
            packets.append(at(0.001, way.packet(1500)))
            way.client = client
            packets += [at(1.001 + i / 1e6, way.packet(1500)) for i in range(150)]
            result = self.same(packets, settings)
            reasons = result.column("reason")
            self.assertEqual(reasons[:100] + reasons[300:401], [None] * 201)
            self.assertEqual(reasons[100:300] + reasons[401:], ["rate_limited"] * 250)
            self.assertEqual(result.report["drops"]["rate_limited"], 250)


class Pieces(ReplyCase):
    """What may be cut is cut, and what the receiver puts together is what was sent."""

    MTU = 1400

    def inner_pieces(self, left, way):
        tunnels = [wire.parse_tunnel(frame, way.mode) for frame in left]
        for tunnel in tunnels:
            self.assertLessEqual(len(tunnel.frame.payload), self.MTU)
        return [tunnel.inner for tunnel in tunnels]

    def test_inside_by_every_way(self):
        """RFC 791. The last byte too many makes two; identification, flags and TTL stay."""
        ways = [way for way in all_ways() if way.family == 4]
        rows = [(way, n, tags) for way in ways for n in (self.MTU - way.overhead + 1, 1500)
                for tags in TAGS]
        rows += [(ways[0], n, ()) for n in (4000, 9000)]
        packets = [at(i / 1000, way.packet(n, fragment=0, ttl=7, tos=0xB9), tags=tags)
                   for i, (way, n, tags) in enumerate(rows)]
        settings = config(*[way.service() for way in ways], port={"mtu": self.MTU})
        result = self.same(packets, settings)
        self.assertEqual(result.column("verdict"), ["forward"] * len(rows))
        frames = self.outputs(result, packets)
        for (way, n_bytes, tags), packet, left in zip(rows, packets, frames):
            with self.subTest(way.words, n_bytes=n_bytes, tags=len(tags)):
                inner = self.inner_pieces(left, way)
                each = (self.MTU - way.overhead - 20) // 8 * 8
                self.assertEqual(len(inner), -(-(n_bytes - 20) // each))
                self.assertEqual(wire.put_together(inner), packet.data[14 + 4 * len(tags):])
                self.assertEqual({wire.parse_ether(frame).tags for frame in left}, {tags})
        self.assertEqual(result.report["packets"]["forwarded"], len(rows))
        self.assertEqual(sum(s["bytes"] for s in result.report["services"]),
                         sum(n for _, n, _ in rows))

    def test_the_pieces_of_a_flow_have_its_ports_outside(self):
        way = Way(1, 4, "gue", 4)
        packets = [at(0, way.packet(1500, fragment=0)), at(1, way.packet(100))]
        result = self.replay(packets, config(way.service(), port={"mtu": self.MTU}))
        ports = {wire.parse_tunnel(packet.data, "gue").sport for packet in
                 result.output.packets}
        self.assertEqual((len(result.output.packets), len(ports)), (3, 1))

    def test_options_that_are_to_be_copied(self):
        """Router alert (copied) in each, record route (not) in the first: RFC 791, 3.1."""
        way = Way(1, 4, "ipip", 4)
        alert, route = b"\x94\x04\0\0", b"\x07\x07\x04\0\0\0\0\x01"
        packets = [at(0, way.packet(1500, fragment=0, options=alert + route))]
        result = self.replay(packets, config(way.service(), port={"mtu": self.MTU}))
        inner = self.inner_pieces([p.data for p in result.output.packets], way)
        self.assertEqual([len(inner), inner[0][20:32], inner[1][20:24], inner[1][0]],
                         [2, alert + route, alert, 0x46])
        self.assertEqual(wire.put_together(inner), packets[0].data[14:])

    def test_fragments_are_cut_once_more(self):
        way = Way(1, 4, "ipip", 4)
        whole = way.packet(60000, fragment=0)
        parts = wire.pieces(whole, 1480)
        parts[:4] = [parts[i] for i in (3, 1, 0, 2)]
        packets = [at(i / 1000, part) for i, part in enumerate(parts)]
        result = self.same(packets, config(way.service(), port={"mtu": self.MTU}))
        inner = self.inner_pieces([p.data for p in result.output.packets], way)
        self.assertEqual(len(inner), 2 * len(parts) - 1)  # the last one fits
        self.assertEqual(wire.put_together(inner), whole)

    def test_those_that_waited_are_cut_too(self):
        way = Way(1, 4, "ipip", 4)
        whole = way.packet(4440, fragment=0)
        first, *later = wire.pieces(whole, 1480)
        packets = [at(i / 1000, part) for i, part in enumerate([*later, first])]
        result = self.same(packets, config(way.service(), port={"mtu": self.MTU}))
        inner = self.inner_pieces([p.data for p in result.output.packets], way)
        places = [wire.place_of(packet)[0] for packet in inner]
        self.assertEqual(places, [0, 1360, 1480, 2840, 2960, 4320])
        self.assertEqual(wire.put_together(inner), whole)
        self.assertEqual([p.time_ns for p in result.output.packets],
                         [packets[i].time_ns for i in (2, 2, 0, 0, 1, 1)])

    def outer_packet(self, left):
        """The outer packet that a backend puts together, as a frame."""
        ips = [wire.parse_ether(frame).payload for frame in left]
        for ip in ips:
            self.assertLessEqual(len(ip), 1280)
            if ip[0] >> 4 == 4:
                self.assertEqual(ip[6] & 0x40, 0, "DF")
        return left[0][:len(left[0]) - len(ips[0])] + wire.put_together(ips)

    def test_outside_where_ipv6_may_not_be_told(self):
        """RFC 2473, 7.2: what every link has room for gets through."""
        ways = [way for way in all_ways() if way.family == 6 and way.mode != "l2"]
        rows = [(way, n, tags) for way in ways for n in (1280 - way.overhead + 1, 1280)
                for tags in TAGS[:2]]
        packets = [at(i / 1000, way.packet(n), tags=tags) for i, (way, n, tags) in
                   enumerate(rows)]
        settings = config(*[way.service() for way in ways], port={"mtu": 1280})
        for n_workers in (1, 8):
            result = self.replay(packets, settings, args=["--workers", n_workers])
            self.assertEqual(result.column("verdict"), ["forward"] * len(rows))
            frames = self.outputs(result, packets)
            for (way, n_bytes, tags), packet, left in zip(rows, packets, frames):
                with self.subTest(way.words, n_bytes=n_bytes, workers=n_workers):
                    self.assertEqual(len(left), 2)
                    tunnel = wire.parse_tunnel(self.outer_packet(left), way.mode)
                    self.assertEqual(tunnel.inner, packet.data[14 + 4 * len(tags):])
                    self.assertEqual(tunnel.frame.tags, tags)
            self.check_ids(result.output.packets)

    def check_ids(self, packets):
        """Two that are cut have not one identification between the same ends."""
        ids = {}
        for packet in packets:
            ip = wire.parse_ether(packet.data).payload
            number = ip[4:6] if ip[0] >> 4 == 4 else ip[44:48]
            ids.setdefault((ip[0] >> 4, ip[9] if ip[0] >> 4 == 4 else 0, number),
                           set()).add(packet.time_ns)
        self.assertTrue(all(len(times) == 1 for times in ids.values()))


class Echo(ReplyCase):
    """RFC 792, RFC 4443: an address of a service answers, as it came."""

    def check_echo(self, frame, asked, n_payload):
        answer = self.check_back(frame, asked)
        question = wire.parse_ip(wire.parse_ether(asked).payload[:answer_bytes(asked)])
        self.assertEqual((answer.src, answer.dst), (question.dst, question.src))
        self.assertEqual((answer.ttl, answer.tos), (64, question.tos & 0xFC))
        icmp = wire.parse_icmp(answer)
        self.assertEqual((icmp.kind, icmp.code), (0 if answer.version == 4 else 129, 0))
        self.assertEqual(icmp.rest, question.payload[4:])
        self.assertEqual(len(icmp.rest), 4 + n_payload)

    def ask(self, family, number, payload, **fields):
        """A question of its own client: the limit is each source's."""
        src = f"203.0.{113 + number // 250}.{1 + number % 250}" if family == 4 else \
            f"2001:db8:{number + 1:x}::7"
        return wire.echo_request(src, VIP if family == 4 else VIP6, payload, **fields)

    def test_of_every_length(self):
        """Payloads of all ones, so that sums carry, of zeros, and of anything."""
        rng = random.Random(8)
        kinds = (lambda n: b"\xff" * n, bytes, rng.randbytes)
        rows = [(family, n, kinds[n % 3](n)) for n in range(1473) for family in (4, 6)
                if n <= 1452 or family == 4]
        packets = [at(i / 1000, self.ask(family, n, payload, tos=0x2E), tags=TAGS[n % 7 % 3])
                   for i, (family, n, payload) in enumerate(rows)]
        result = self.same(packets, config(service(), service("web6", address=VIP6)))
        self.assertEqual(set(result.column("verdict")), {"reply"})
        for row, packet, left in zip(rows, packets, self.outputs(result, packets)):
            self.assertEqual(len(left), 1)
            self.check_echo(left[0], packet.data, row[1])

    def test_sums_at_the_edge(self):
        """All checksums that a request can have, near where one's complement wraps."""
        rows = [struct.pack("!H", value) for edge in (0, 0x0800, 0x8000, 0xF7FF, 0xFFFF)
                for value in range(max(0, edge - 12), min(0xFFFF, edge + 12) + 1)]
        packets = [at(i / 1000, self.ask(family, i, payload)) for i, (family, payload) in
                   enumerate(itertools.product((4, 6), rows))]
        result = self.replay(packets, config(service(), service("web6", address=VIP6)))
        for packet, left in zip(packets, self.outputs(result, packets)):
            self.check_echo(left[0], packet.data, 2)

    def test_what_was_damaged_stays_damaged(self):
        packets = []
        for family, flip in itertools.product((4, 6), (1, 0x80, 0xFF)):
            for place in (2, 3, 8, 9, 20):  # the checksum, the payload
                ip = bytearray(self.ask(family, len(packets), b"p" * 32))
                ip[(20 if family == 4 else 40) + place] ^= flip
                packets.append(at(len(packets), bytes(ip)))
        result = self.replay(packets, config(service(), service("web6", address=VIP6)))
        for left in self.outputs(result, packets):
            for frame in left:
                with self.assertRaisesRegex(AssertionError, "ICMP checksum"):
                    wire.parse_icmp(wire.parse_ip(frame[14:]))

    def test_padding_is_not_sent_back(self):
        frame = wire.ether(self.ask(4, 1, b"x")) + b"\xee" * 17
        result = self.replay([captures.Packet(frame, FIRST_NS)])
        self.check_echo(result.output.packets[0].data, frame, 1)

    def test_options(self):
        """RFC 1122, 3.2.2.6; source routes are refused (RFC 7126)."""
        vip = wire.address(VIP)
        rows = [
            ("no-operations", b"\1\1\1\1", b"\1\1\1\1"),
            ("a route with room", b"\x07\x07\x04\0\0\0\0\0",
             b"\x07\x07\x08" + vip + b"\0"),
            ("a route that is full", b"\x07\x07\x08\1\2\3\4\0",
             b"\x07\x07\x08\1\2\3\4\0"),
            ("loose source route", b"\x83\x07\x04\1\2\3\4\0", "source_route"),
            ("strict source route", b"\x89\x07\x04\1\2\3\4\0", "source_route"),
            ("a source route that is used up", b"\x83\x07\x08\1\2\3\4\0", "kernel"),
            ("malformed", b"\x07\x2a\x04\0", "kernel"),
        ]
        packets = [at(i, self.ask(4, i, b"ping", options=options))
                   for i, (_, options, _) in enumerate(rows)]
        result = self.replay(packets)
        for (words, _, expected), d, left in zip(rows, result.decisions,
                                                 self.outputs(result, packets)):
            with self.subTest(words):
                if isinstance(expected, str):
                    self.assertEqual(d["reason"] or d["verdict"], expected)
                else:
                    self.assertEqual(d["verdict"], "reply")
                    self.assertEqual(left[0][34:34 + len(expected)], expected)
                    wire.parse_icmp(wire.parse_ip(left[0][14:]))

    def test_which_are_not_answered(self):
        ping = wire.echo_request
        rows = [
            ("another address", at(0, ping(CLIENT, "198.51.100.99")), "kernel"),
            ("another address, IPv6", at(1, ping(CLIENT6, "2001:db8:51::99")), "kernel"),
            ("from everybody", at(2, ping("255.255.255.255", VIP)), "martian_source"),
            ("from a group", at(3, ping("224.0.0.5", VIP)), "martian_source"),
            ("from loopback", at(4, ping("127.0.0.1", VIP)), "martian_source"),
            ("from nobody", at(5, ping("0.0.0.0", VIP)), "martian_source"),
            ("from the balancer", at(6, ping(lib.OUTER, VIP)), "martian_source"),
            ("from a group, IPv6", at(7, ping("ff02::5", VIP6)), "martian_source"),
            ("from loopback, IPv6", at(8, ping("::1", VIP6)), "martian_source"),
            ("from nobody, IPv6", at(9, ping("::", VIP6)), "martian_source"),
            ("from the balancer, IPv6", at(10, ping(lib.OUTER6, VIP6)), "martian_source"),
            ("to a group's MAC address", at(11, ping(CLIENT, VIP), dst="01:00:5e:00:00:01"),
             "link_multicast"),
            ("to all MAC addresses", at(12, ping(CLIENT, VIP), dst="ff:ff:ff:ff:ff:ff"),
             "link_multicast"),
            ("another address, to all MAC addresses",
             at(12, ping(CLIENT, "198.51.100.99"), dst="ff:ff:ff:ff:ff:ff"), "kernel"),
            ("a reply", at(13, wire.icmp(CLIENT, VIP, 0, 0, b"\0\1\0\1ping")), "kernel"),
            ("a reply, IPv6", at(14, wire.icmp(CLIENT6, VIP6, 129, 0, b"\0\1\0\1ping")),
             "kernel"),
            ("no TTL", at(15, ping(CLIENT, VIP, ttl=0)), "ttl_expired"),
        ]
        result = self.replay([packet for _, packet, _ in rows],
                             config(service(), service("web6", address=VIP6)))
        for (words, _, expected), d in zip(rows, result.decisions):
            with self.subTest(words):
                self.assertEqual(d["reason"] or d["verdict"], expected)
        self.assertEqual(result.output.packets, [])

    def test_too_many_of_one_source(self):
        for src, dst in ((CLIENT, VIP), (CLIENT6, VIP6)):
            packets = [at(i / 1e6, wire.echo_request(src, dst)) for i in range(150)]
            result = self.same(packets, config(service(), service("web6", address=VIP6)))
            self.assertEqual(result.column("reason"), [None] * 100 + ["rate_limited"] * 50)


class EchoInFragments(ReplyCase):
    """Each fragment of a request becomes one of its reply: nothing is put together."""

    SETTINGS = config(service(), service("web6", address=VIP6))

    @staticmethod
    def client(family, number):
        return f"203.0.{113 + number // 250}.{1 + number % 250}" if family == 4 else \
            f"2001:db8:{number + 1:x}::7"

    def ask(self, family, number, rest, **fields):
        """An echo request of all that follows the checksum."""
        return wire.icmp(self.client(family, number), VIP if family == 4 else VIP6,
                         8 if family == 4 else 128, 0, rest, **fields)

    def reply_to(self, asked):
        """What a host answers to a whole packet that asks, as one that is not cut."""
        ip = wire.parse_ip(asked)
        fields = {"tos": ip.tos & 0xFC}
        if ip.version == 4:
            fields["ident"] = ip.ident
        return wire.icmp(ip.dst, ip.src, 0 if ip.version == 4 else 129, 0, ip.payload[4:],
                         **fields)

    def check_reply(self, parts, left, asked):
        """Of fragments: one each, in its place, and the reply is what a host would say."""
        ips = []
        for part, frames in zip(parts, left):
            self.assertEqual(len(frames), 1)
            self.check_back(frames[0], part.data)
            ips.append(wire.parse_ether(frames[0]).payload)
            offset, more, payload, following = wire.place_of(ips[-1])
            self.assertEqual((offset, more, len(payload), following), tuple(
                len(value) if isinstance(value, bytes) else value
                for value in wire.place_of(wire.parse_ether(part.data).payload)))
        whole, expected = wire.put_together(ips), self.reply_to(asked)
        wire.parse_icmp(wire.parse_ip(whole))
        if whole != expected:  # of the two zeros a sum may be either
            self.assertEqual({whole[22:24], expected[22:24]}, {b"\0\0", b"\xff\xff"})
            expected = expected[:22] + whole[22:24] + expected[24:]
        self.assertEqual(whole, expected)

    def rows(self):
        """Family, size of the pieces, order, and what is asked."""
        rng = random.Random(5)
        kinds = (lambda n: b"\xff" * n, bytes, rng.randbytes)
        sizes = ((12, 8), (400, 104), (401, 208), (1473, 1400), (4000, 1480), (9000, 552))
        for family, (n, each), kind, order in itertools.product((4, 6), sizes, kinds, range(3)):
            n_parts = -(-(n + 4) // each)
            places = list(range(n_parts))
            if order == 1:
                places.reverse()
            elif order == 2:
                rng.shuffle(places)
            yield family, each, places, kind(n)

    def test_of_every_size_in_any_order(self):
        """All ones, so that sums carry, all zeros, and anything."""
        packets, found = [], []
        for number, (family, each, places, rest) in enumerate(self.rows()):
            fields = {"ident": number} if family == 4 else {}
            asked = self.ask(family, number, rest, tos=0x2E, **fields)
            parts = wire.pieces(asked, each, number)
            self.assertEqual(len(parts), len(places))
            found.append((asked, places))
            packets += [at(number / 10 + i / 10000, parts[place], tags=TAGS[number % 3])
                        for i, place in enumerate(places)]
        result = self.same(packets, self.SETTINGS)
        self.assertEqual(set(result.column("verdict")), {"reply"})
        frames, begin = self.outputs(result, packets), 0
        for asked, places in found:
            end = begin + len(places)
            self.check_reply(packets[begin:end], frames[begin:end], asked)
            begin = end
        self.assertEqual(result.report["packets"]["replied"], len(packets))

    def test_64_kib(self):
        asked = [self.ask(family, 0, random.Random(family).randbytes(65500))
                 for family in (4, 6)]
        parts = [part for ping in asked for part in reversed(wire.pieces(ping, 1480))]
        packets = [at(i / 1e5, part) for i, part in enumerate(parts)]
        result = self.same(packets, self.SETTINGS)
        frames, n = self.outputs(result, packets), len(packets) // 2
        self.check_reply(packets[:n], frames[:n], asked[0])
        self.check_reply(packets[n:], frames[n:], asked[1])

    def test_sums_at_the_edge(self):
        """The second fragment makes the sum what it is, the first one is the same."""
        rows = [struct.pack("!H", value) for edge in (0, 0x0800, 0x8000, 0xF7FF, 0xFFFF)
                for value in range(max(0, edge - 12), min(0xFFFF, edge + 12) + 1)]
        asked = [self.ask(family, i, bytes(4) + value) for i, (family, value) in
                 enumerate(itertools.product((4, 6), rows))]
        packets = [at(i / 10 + k / 1000, part) for i, ping in enumerate(asked)
                   for k, part in enumerate(wire.pieces(ping, 8, i))]
        frames = self.outputs(self.replay(packets, self.SETTINGS), packets)
        for i, ping in enumerate(asked):
            self.check_reply(packets[2 * i:2 * i + 2], frames[2 * i:2 * i + 2], ping)

    def test_what_was_damaged_stays_damaged(self):
        packets = []
        for number, (family, place) in enumerate(itertools.product((4, 6), (2, 9, 200, 399))):
            ip = bytearray(self.ask(family, number, b"p" * 400))
            ip[(20 if family == 4 else 40) + place] ^= 0x55
            packets += [at(number + k / 10, part)
                        for k, part in enumerate(wire.pieces(bytes(ip), 208, number))]
        frames = self.outputs(self.replay(packets, self.SETTINGS), packets)
        for i in range(0, len(packets), 2):
            whole = wire.put_together([frames[k][0][14:] for k in (i, i + 1)])
            with self.assertRaisesRegex(AssertionError, "ICMP checksum"):
                wire.parse_icmp(wire.parse_ip(whole))

    def test_a_datagram_costs_one_answer_and_is_answered_whole(self):
        for order in (1, -1):
            packets = [at(i / 1000 + k / 10000, part) for i in range(10) for k, part in
                       enumerate(wire.pieces(self.ask(4, 1, b"p" * 400, ident=i), 104)[::order])]
            settings = config(service(), dataplane={"replies": {"source": 4, "total": 1000}})
            result = self.same(packets, settings, workers=(1, 2, 8))
            self.assertEqual(result.column("verdict"), ["reply"] * 16 + ["drop"] * 24)
            self.assertEqual(result.report["drops"]["rate_limited"], 24)

    def test_a_repetition_is_not_answered_again(self):
        """Whether it comes before its datagram's first fragment, after it, or at the end."""
        for order in ((1, 1, 1, 2, 0), (0, 1, 1, 2), (0, 1, 2, 2, 1), (2, 1, 2, 0, 2)):
            for family in (4, 6):
                parts = wire.pieces(self.ask(family, 1, b"p" * 400), 152)
                result = self.same([at(i / 1000, parts[k]) for i, k in enumerate(order)],
                                   self.SETTINGS)
                self.assertEqual(result.column("reason"),
                                 [None if order.index(k) == i else "rate_limited"
                                  for i, k in enumerate(order)])
                self.assertEqual(len(result.output.packets), len(parts))

    def test_an_identification_once_more(self):
        """A datagram that was whole is over, and its number another's."""
        for family in (4, 6):
            parts = [part for sport in range(5)
                     for part in wire.pieces(self.ask(family, 1, bytes([sport]) * 400), 208)]
            packets = [at(i / 1000, part) for i, part in enumerate(parts)]
            result = self.same(packets, self.SETTINGS)
            self.assertEqual(result.column("verdict"), ["reply"] * 10)
            for k in range(5):
                frames = self.outputs(result, packets)[2 * k:2 * k + 2]
                self.assertEqual(wire.put_together([f[0][14:] for f in frames])[-1], k)

    def test_fragments_that_do_not_fit_together(self):
        asked = self.ask(4, 1, b"p" * 400)
        parts = [wire.piece(asked, 0, 104, 1), wire.piece(asked, 96, 104, 1),
                 wire.piece(asked, 200, 204, 0)]
        result = self.same([at(i / 1000, part) for i, part in enumerate(parts)], self.SETTINGS)
        self.assertEqual(result.column("reason"),
                         [None, "fragment_overlap", "fragment_overlap"])
        parts = [wire.piece(asked, 0, 104, 1), wire.piece(asked, 0, 112, 1),
                 wire.piece(asked, 104, 300, 0)]
        result = self.same([at(i / 1000, part) for i, part in enumerate(parts)], self.SETTINGS)
        self.assertEqual(result.column("reason"),
                         [None, "fragment_overlap", "fragment_overlap"])

    def test_options(self):
        """A recorded route is in the first alone; source routes are in all, and refused."""
        route, alert = b"\x07\x07\x04\0\0\0\0\0", b"\x94\x04\0\0"
        asked = [self.ask(4, 1, b"p" * 400, options=alert + route, ident=1),
                 self.ask(4, 2, b"p" * 400, options=b"\x83\x07\x04\1\2\3\4\0", ident=2)]
        packets = [at(i + k / 10, part) for i, ping in enumerate(asked)
                   for k, part in enumerate(wire.pieces(ping, 208))]
        result = self.same(packets, self.SETTINGS)
        self.assertEqual(result.column("reason"), [None] * 2 + ["source_route"] * 2)
        first = self.outputs(result, packets)[0][0]
        self.assertEqual(first[34:46], b"\1" * 4 + b"\x07\x07\x08" + wire.address(VIP) + b"\0")

    def test_a_later_one_that_cannot_be_answered(self):
        """Its datagram has been answered: nobody else can make use of it."""
        asked = self.ask(4, 1, b"p" * 400)
        refused = self.ask(4, 1, b"p" * 400, options=b"\x83\x07\x08\1\2\3\4\0")
        packets = [at(0, wire.piece(asked, 0, 208, 1)),
                   at(1, wire.piece(refused, 208, 208, 0))]
        result = self.same(packets, self.SETTINGS)
        self.assertEqual(result.column("reason"), [None, "fragment_bad"])

    def test_a_service_that_is_gone_or_changed_answers_no_more(self):
        asked = [self.ask(4, number, b"p" * 400) for number in range(2)]
        cut = [wire.pieces(ping, 208, 1) for ping in asked]
        packets = [at(k / 2, parts[k]) for k in (0, 1) for parts in cut]
        for services in ([service(echo="forward")], [service(address="198.51.100.99")]):
            self.put("other.yaml", config(*services))
            result = self.replay(packets, config(service()),
                                 events=lib.items({"at": "0.2s", "reload": "other.yaml"}))
            self.assertEqual(result.column("verdict")[:2], ["reply"] * 2)
            self.assertNotIn("reply", result.column("verdict")[2:])


class EchoBehindHeaders(ReplyCase):
    """IPv6 extension headers of a request, which no reply has but that of a fragment."""

    PADDED = b"\x01\x04\0\0\0\0"
    HOP_BY_HOP, ROUTING, AH, MOBILITY = 0, 43, 51, 135
    ROUTED = b"\x04\0\0\0\0\0"  # a type that nobody has, and no segments left

    def headers(self, *chain, last=wire.ICMPV6):
        """What comes before it, and the first one's type."""
        payload, following = b"", last
        for proto, data in reversed(chain):
            payload = wire.extension(following, data) + payload
            following = proto
        return following, payload

    def rows(self):
        """Words, the headers before what is cut, and whether the request is answered."""
        hop, dest, route = self.HOP_BY_HOP, wire.DESTINATION_OPTIONS, self.ROUTING
        yield "none", (), True
        yield "a router's alert", ((hop, b"\x05\x02\0\0\1\0"),), True
        yield "destination options", ((dest, self.PADDED),), True
        yield "both, and a long one", ((hop, self.PADDED), (dest, b"\x1e\x14" + bytes(20))), True
        yield "bytes of padding", ((dest, bytes(6)),), True
        yield "a route that is over", ((route, self.ROUTED),), True
        yield "seven", ((hop, self.PADDED), *[(dest, self.PADDED)] * 6), True
        yield "segments left", ((route, b"\x04\1\0\0\0\0"),), False
        for action in (0x40, 0x80, 0xC0):
            yield (f"an option to be known, {action:x}",
                   ((dest, bytes([action | 0x1E, 4]) + bytes(4)),), False)
            yield (f"one behind another, {action:x}",
                   ((hop, b"\x1e\0" + bytes([action | 0x1E, 2, 0, 0])),), False)
        yield "an option past the header's end", ((dest, b"\x1e\x05" + bytes(4)),), False
        yield "an option without its length", ((dest, b"\x01\x03\0\0\0\x1e"),), False
        yield "for each hop, and not the first", ((dest, self.PADDED), (hop, self.PADDED)), False
        yield "a mobile's", ((self.MOBILITY, self.PADDED),), False

    @staticmethod
    def before(request, first, chain):
        """A request's packet with headers in it, before its payload."""
        payload = chain + request[40:]
        return request[:4] + struct.pack("!HB", len(payload), first) + request[7:40] + payload

    def request(self, number, n=400):
        return wire.echo_request(f"2001:db8:{number + 1:x}::7", VIP6, b"p" * n, label=5)

    def check_whole(self, frame, asked):
        answer = self.check_back(frame, asked.data)
        icmp = wire.parse_icmp(answer)
        self.assertEqual((icmp.kind, answer.ttl, answer.label), (129, 64, 0))
        return icmp.rest

    def test_of_whole_requests(self):
        """Atomic fragments among them (RFC 6946)."""
        rows = list(self.rows())
        packets = []
        for number, (_, chain, _) in enumerate(rows):
            request = self.request(number)
            packets.append(at(number, self.before(request, *self.headers(*chain)),
                              tags=TAGS[number % 3]))
            first, payload = self.headers(*chain, last=wire.FRAGMENT)
            payload += wire.fragment_header(wire.ICMPV6, 0, 0)
            packets.append(at(number + 0.5, self.before(request, first, payload)))
        result = self.same(packets, config(service("web6", address=VIP6)))
        frames = self.outputs(result, packets)
        for number, (words, _, is_answered) in enumerate(rows):
            with self.subTest(words):
                for k in (2 * number, 2 * number + 1):
                    if not is_answered:
                        self.assertEqual(result.decisions[k]["verdict"], "kernel")
                        continue
                    self.assertEqual(result.decisions[k]["verdict"], "reply")
                    self.assertEqual(self.check_whole(frames[k][0], packets[k]),
                                     self.request(number)[44:])

    def test_of_fragments(self):
        rows = list(self.rows())
        packets = []
        for number, (_, chain, _) in enumerate(rows):
            for k, part in enumerate(wire.pieces(self.request(number), 208, number)):
                first, headers = self.headers(*chain, last=wire.FRAGMENT)
                packets.append(at(number + k / 10, self.before(part, first, headers)))
        result = self.same(packets, config(service("web6", address=VIP6)))
        frames = self.outputs(result, packets)
        for number, (words, _, is_answered) in enumerate(rows):
            with self.subTest(words):
                mine = [d["verdict"] for d in result.decisions[2 * number:2 * number + 2]]
                self.assertEqual(mine, ["reply" if is_answered else "kernel"] * 2)
                if not is_answered:
                    continue
                left = [frames[k][0][14:] for k in (2 * number, 2 * number + 1)]
                icmp = wire.parse_icmp(wire.parse_ip(wire.put_together(left)))
                self.assertEqual((icmp.kind, icmp.rest), (129, self.request(number)[44:]))

    def cut_rows(self):
        """Words, the headers that are cut with it, and whether the request is answered."""
        dest, long = wire.DESTINATION_OPTIONS, b"\x1e\x14" + bytes(20)
        yield "destination options", ((dest, self.PADDED),), True
        yield "two, and a long one", ((dest, self.PADDED), (dest, long)), True
        yield "an option to be known", ((dest, b"\x5e\4" + bytes(4)),), False
        yield "one behind another", ((dest, self.PADDED), (dest, b"\xde\4" + bytes(4))), False
        yield "a route that is over", ((self.ROUTING, self.ROUTED),), False
        yield "a route behind options", ((dest, self.PADDED), (self.ROUTING, self.ROUTED)), False

    def test_of_what_was_cut(self):
        """Their bytes count in each fragment's place, so the reply has them."""
        for number, (words, chain, is_answered) in enumerate(self.cut_rows()):
            first, headers = self.headers(*chain)
            parts = wire.pieces(self.before(self.request(number), first, headers), 208)
            for order in (1, -1):
                with self.subTest(words, order=order):
                    packets = [at(i / 10, part) for i, part in enumerate(parts[::order])]
                    result = self.same(packets, config(service("web6", address=VIP6)))
                    self.assertEqual(result.column("verdict"),
                                     ["reply" if is_answered else "kernel"] * len(parts))
                    if not is_answered:
                        continue
                    left = [f[0][14:] for f in self.outputs(result, packets)]
                    answer = wire.put_together(left)
                    self.assertEqual((answer[6], answer[40:40 + len(headers)]), (first, headers))
                    plain = answer[:40] + answer[40 + len(headers):]
                    icmp = wire.parse_icmp(wire.parse_ip(self.before(plain, wire.ICMPV6, b"")))
                    self.assertEqual((icmp.kind, icmp.rest), (129, self.request(number)[44:]))

    def test_of_groups(self):
        """To all on the link: all of a request fare alike, whole or cut."""
        for family, vip in ((4, VIP), (6, VIP6)):
            asked = wire.echo_request(CLIENT if family == 4 else CLIENT6, vip, b"p" * 400)
            parts = [asked, *wire.pieces(asked, 152)]
            for order in (1, -1):
                packets = [at(i / 10, part, dst="ff:ff:ff:ff:ff:ff")
                           for i, part in enumerate(parts[::order])]
                result = self.same(packets, config(service(), service("web6", address=VIP6)))
                self.assertEqual(result.column("reason"), ["link_multicast"] * len(parts))


class Configured(ReplyCase):
    """What a service says of echo, fragments and segment sizes."""

    def settings(self, **keys):
        return config(service("web", 5, protocol="any", **keys),
                      service("web6", 5, address=VIP6, protocol="any", **keys))

    def pings(self, n_payload=40):
        return [wire.echo_request(f"203.0.113.{i}", VIP, b"p" * n_payload) for i in range(1, 21)
                ] + [wire.echo_request(f"2001:db8:113::{i}", VIP6, b"p" * n_payload)
                     for i in range(1, 21)]

    def test_echo_for_a_backend(self):
        """By its addresses, as other protocols without ports."""
        packets = [at(t, ping) for t in (0, 1) for ping in self.pings()]
        result = self.same(packets, self.settings(echo="forward"))
        backends = result.column("backend")
        self.assertEqual(backends[:40], backends[40:])
        self.assertEqual(len(set(backends)), 10)
        self.assertEqual(result.column("flow"), ["miss"] * 40 + ["hit"] * 40)
        self.assertEqual([wire.parse_tunnel(p.data, "ipip").inner for p in
                          result.output.packets], [p.data[14:] for p in packets])

    def test_echo_for_nobody(self):
        result = self.same([at(0, packet) for packet in self.pings()],
                           self.settings(echo="drop"))
        self.assertEqual(result.report["drops"]["echo_refused"], 40)

    def test_fragments_of_an_echo_for_a_backend(self):
        """In any order they go where the whole one went; what is no echo is the kernel's."""
        whole = self.pings()
        cut = [part for ping in self.pings(1000) for part in reversed(wire.pieces(ping, 504))]
        packets = [*(at(0, ping) for ping in whole), *(at(0.5, part) for part in cut)]
        result = self.same(packets, self.settings(echo="forward"), workers=(1, 2, 8))
        self.assertEqual(set(result.column("verdict")), {"forward"})
        n_parts = len(cut) // len(whole)
        self.assertEqual(result.column("backend")[len(whole):],
                         [one for one in result.column("backend")[:len(whole)]
                          for _ in range(n_parts)])
        asks = wire.ipv4(CLIENT, VIP, wire.ICMP, bytes([13, 0]) + bytes(1000))
        parts = wire.pieces(asks, 504)
        result = self.same([at(0, part) for part in reversed(parts)],
                           self.settings(echo="forward"), workers=(1, 8))
        self.assertEqual(result.column("verdict"), ["kernel"] * len(parts))
        result = self.same([at(0, parts[1])], self.settings(echo="forward"), workers=(1, 8))
        self.assertEqual(result.column("reason"), ["fragment_unmatched"])

    def test_fragments_of_an_echo_for_nobody(self):
        parts = [part for ping in self.pings(1000) for part in wire.pieces(ping, 504)]
        result = self.same([at(0, part) for part in parts], self.settings(echo="drop"))
        self.assertEqual(result.column("reason"), ["echo_refused"] * 80)

    def quotes_of_echo(self, family):
        """Words, and what of a backend's echo a router quotes, and whether it is one."""
        vip, client = (VIP, CLIENT) if family == 4 else (VIP6, CLIENT6)
        reply, request, other = (0, 8, 14) if family == 4 else (129, 128, 136)
        whole = wire.icmp(vip, client, reply, 0, b"\0\1\0\1" + b"p" * 1000)
        yield "a reply", whole[:200], True
        yield "eight bytes of a reply", whole[:28 if family == 4 else 48], True
        yield "a request", wire.icmp(vip, client, request, 0, b"\0\1\0\1ping"), True
        first, later = wire.pieces(whole, 504)
        yield "a reply's first fragment", first, True
        yield "a reply's later fragment", later, True
        yield "other ICMP", wire.icmp(vip, client, other, 0, b"\0\1\0\1" + b"p" * 16), False
        yield "an error", wire.too_big(vip, wire.udp(client, vip, 1, 2)), False
        yield "seven bytes of a reply", whole[:27 if family == 4 else 47], False

    def test_errors_about_an_echo_follow_it(self):
        """To its backend, before and after 20 were added, and what is no echo's is not."""
        asked = {4: wire.echo_request(CLIENT, VIP), 6: wire.echo_request(CLIENT6, VIP6)}
        rows = [(family, words, wire.too_big(lib.ROUTER if family == 4 else lib.ROUTER6, quote),
                 is_echo) for family in (4, 6)
                for words, quote, is_echo in self.quotes_of_echo(family)]
        packets = [at(0, asked[4]), at(0, asked[6])]
        packets += [at(seconds, row[2]) for seconds in (0.1, 0.5) for row in rows]
        events = lib.items(*[{"at": "0.3s", "add": {"service": name, "name": f"{name}-{i}",
                                                    "address": f"10.0.0.{10 + i}"}}
                             for i in range(6, 26) for name in ("web", "web6")])
        result = self.same(packets, self.settings(echo="forward"), events=events)
        backends = dict(zip((4, 6), result.column("backend")))
        for (family, words, _, is_echo), early, late in zip(
                rows, result.decisions[2:], result.decisions[2 + len(rows):]):
            with self.subTest(words, family=family):
                for d in (early, late):
                    self.assertEqual((d["verdict"], d["backend"], d["flow"]),
                                     ("forward", backends[family], "hit") if is_echo else
                                     ("kernel", None, "none"))
        self.assertEqual(result.report["flows"], {"total": 2, "moved": 0, "broken": 0})
        inner = wire.parse_tunnel(result.output.packets[2].data, "ipip").inner
        self.assertEqual(inner, rows[0][2])

    def test_errors_about_an_echo_that_the_balancer_answered(self):
        errors = [wire.too_big(lib.ROUTER if family == 4 else lib.ROUTER6, quote)
                  for family in (4, 6) for _, quote, _ in self.quotes_of_echo(family)]
        for echo in ("reply", "drop"):
            result = self.same([at(0, error) for error in errors], self.settings(echo=echo))
            self.assertEqual(set(result.column("verdict")), {"kernel"})

    def test_the_outer_packet_is_cut(self):
        ways = [way for way in all_ways() if way.family == 4 and way.mode != "l2"]
        rows = [(way, n, tags) for way in ways for n in (1400 - way.overhead + 1, 1500, 4000)
                for tags in TAGS[:2]]
        packets = [at(i / 1000, way.packet(n, fragment=0), tags=tags)
                   for i, (way, n, tags) in enumerate(rows)]
        settings = config(*[way.service(fragment="outer") for way in ways], port={"mtu": 1400})
        result = self.replay(packets, settings)
        self.assertEqual(result.column("verdict"), ["forward"] * len(rows))
        for (way, n_bytes, tags), packet, left in zip(rows, packets,
                                                      self.outputs(result, packets)):
            with self.subTest(way.words, n_bytes=n_bytes):
                ips = [wire.parse_ether(frame).payload for frame in left]
                self.assertGreater(len(ips), 1)
                self.assertLessEqual(max(map(len, ips)), 1400)
                whole = left[0][:14 + 4 * len(tags)] + wire.put_together(ips)
                tunnel = wire.parse_tunnel(whole, way.mode)
                self.assertEqual((tunnel.inner, tunnel.frame.tags), (packet.data[14 + 4 * len(
                    tags):], tags))

    def test_what_would_be_cut_is_dropped(self):
        way = Way(1, 4, "ipip", 4)
        packets = [at(i, way.packet(n, fragment=0)) for i, n in enumerate((1380, 1381, 1500))]
        packets.append(at(3, way.packet(1500)))
        result = self.replay(packets, config(way.service(fragment="drop"), port={"mtu": 1400}))
        self.assertEqual([d["reason"] or d["verdict"] for d in result.decisions],
                         ["forward", "too_big", "too_big", "reply"])

    def segment(self, way, flags, options, **fields):
        """TCP with options, its checksum right."""
        src, dst = way.client, way.vip
        head = struct.pack("!HHIIBBHHH", 1000, 80, 7, 0, (20 + len(options)) * 4, flags, 65535,
                           0, 0) + options
        pseudo = wire.pseudo_header(wire.address(src), wire.address(dst), wire.TCP, len(head))
        value = struct.pack("!H", wire.checksum(pseudo + head))
        return wire.ip(src, dst, wire.TCP, head[:16] + value + head[18:], **fields)

    def told(self, packet):
        """The MSS in a segment, whose checksum is right; None: it has none."""
        ip = wire.parse_ip(packet)
        pseudo = wire.pseudo_header(wire.address(ip.src), wire.address(ip.dst), wire.TCP,
                                    len(ip.payload))
        self.assertEqual(wire.checksum(pseudo + ip.payload), 0)
        options = ip.payload[20:]
        while options and options[0] == 1:
            options = options[1:]
        return struct.unpack_from("!H", options, 2)[0] if options[:1] == b"\2" else None

    def test_segment_sizes(self):
        """A SYN's alone is lowered, never raised; where it has none it gets none."""
        ways = all_ways()
        mss = [b"\2\4" + struct.pack("!H", n) for n in (536, 1200, 1460, 65495)]
        for clamp, mtu in ((None, 1500), ("auto", 1400), (1200, 1500)):
            rows = [(way, flags, before + option) for way in ways
                    for flags in (wire.SYN, wire.SYN | 0xC0, wire.ACK)
                    for option in mss for before in (b"", b"\1\1\1\1", b"\1")]
            rows = [(way, flags, option + b"\0" * (-len(option) % 4))
                    for way, flags, option in rows] + [(way, wire.SYN, b"") for way in ways]
            sends = [self.segment(*row) for row in rows]
            keys = {} if clamp is None else {"mss_clamp": clamp}
            settings = config(*[way.service(**keys) for way in ways], port={"mtu": mtu})
            result = self.replay([at(i, packet) for i, packet in enumerate(sends)], settings)
            for (way, flags, _), packet, found in zip(rows, sends, result.output.packets):
                inner = wire.parse_tunnel(found.data, way.mode).inner
                asked = self.told(packet)
                room = {None: 65535, 1200: 1200, "auto": mtu - way.overhead - 20 - (
                    20 if way.family == 4 else 40)}[clamp]
                is_lowered = flags & wire.SYN and asked is not None and asked > room
                self.assertEqual(self.told(inner), room if is_lowered else asked, way.words)
                if not is_lowered:
                    self.assertEqual(inner, packet)

    def test_what_pads_a_frame_is_no_option(self):
        """A SYN that claims a longer header than its packet has goes as it came."""
        way = next(way for way in all_ways() if way.mode == "ipip" and way.family == 4)
        bare = self.segment(way, wire.SYN, b"")
        claims = bare[:32] + b"\x60" + bare[33:]
        padded = wire.ether(claims) + b"\2\4\xff\xff" + b"\0\0"
        result = self.replay([Packet(padded, lib.FIRST_NS)],
                             config(way.service(mss_clamp=1200)))
        found = wire.parse_tunnel(result.output.packets[0].data, way.mode).inner
        self.assertEqual(found, claims)


class Together(lib.ReplayCase):
    """What all workers have together they have in the order of the packets."""

    WORKERS = (1, 2, 4, 8)

    @staticmethod
    def ask(number, makes_echo):
        client = f"203.0.113.{1 + number % 200}"
        if makes_echo:
            return wire.echo_request(client, VIP)
        return wire.udp(client, VIP, 1000, 80, b"x" * 1472, fragment=DF)

    def settings(self, total):
        return config(service(protocol="any", port="any"),
                      dataplane={"replies": {"total": total, "source": 1}})

    def test_one_is_always_left(self):
        for order in ((True,), (False,), (True, False), (False, False, True)):
            packets = [at(2 * i, self.ask(i, order[i % len(order)])) for i in range(40)]
            result = self.same(packets, self.settings(1), self.WORKERS)
            self.assertEqual(result.report["packets"]["replied"], 40, order)

    def test_more_than_there_are(self):
        rng = random.Random(8)
        packets = [at(i / 500, self.ask(rng.randrange(1000), rng.random() < 0.5))
                   for i in range(1000)]
        result = self.same(packets, self.settings(50), self.WORKERS)
        replied = result.report["packets"]["replied"]
        self.assertIn(replied, range(100, 151))
        self.assertEqual(result.report["drops"]["rate_limited"], 1000 - replied)

    def test_pieces_of_large_packets(self):
        packets = [at(i / 1000, wire.udp(CLIENT, VIP, i, 80, bytes(65000), ident=i))
                   for i in range(256)]
        result = self.same(packets, config(service(protocol="any", port="any")), self.WORKERS)
        self.assertEqual(result.column("verdict"), ["forward"] * 256)

    def test_pieces_of_large_packets_that_waited(self):
        halves = [wire.pieces(wire.udp(CLIENT, VIP, i, 80, bytes(64000), ident=i), 32000)
                  for i in range(128)]
        packets = [at(i / 1000, packet)
                   for i, packet in enumerate([half[1] for half in halves] +
                                              [half[0] for half in halves])]
        result = self.same(packets, config(service(protocol="any", port="any")), self.WORKERS)
        self.assertEqual(result.report["packets"]["forwarded"], len(packets))


class Errors(lib.ReplayCase):
    """An error that others send about a flow goes where the flow goes, whatever it quotes."""

    KINDS = {4: [(3, code) for code in range(16)] + [(11, 0), (11, 1), (12, 0), (12, 1)],
             6: [(1, code) for code in range(8)] + [(2, 0), (3, 0), (3, 1), (4, 0), (4, 2)]}

    def quotes(self, family):
        """What a backend sent to the client, and how much of it a router quotes."""
        def sent(make=wire.tcp, **fields):
            return lambda vip, client: make(vip, client, 80, 1000, payload=b"x" * 100, **fields)

        head = 20 if family == 4 else 40
        yield from ((f"{make.__name__}, {n or 'all'} bytes", sent(make), n)
                    for make in (wire.tcp, wire.udp) for n in (head + 8, head + 19, None))
        yield "a UDP checksum of 0", self.without_sum, head + 8
        if family == 4:
            for words in (1, 10):
                yield (f"options of {4 * words} bytes", sent(options=b"\1" * (4 * words)),
                       head + 4 * words + 8)
            yield "a header checksum that is wrong", sent(csum=1, ttl=1), head + 8
            yield "a total length that was changed", sent(total=64), None
            yield "a first fragment", sent(wire.udp, fragment=0x2000), None
            yield "DF", sent(fragment=DF), head + 8
        else:
            for n in (1, 8):
                yield f"{n} extension headers", self.chain(n), None
            yield "a first fragment", lambda vip, client: wire.piece(
                sent(wire.udp)(vip, client), 0, 64, 1), None

    @staticmethod
    def without_sum(vip, client):
        packet = wire.udp(vip, client, 80, 1000, b"x" * 100)
        at_sum = (20 if packet[0] >> 4 == 4 else 40) + 6
        return packet[:at_sum] + b"\0\0" + packet[at_sum + 2:]

    @staticmethod
    def chain(n):
        def make(vip, client):
            payload, following = wire.tcp(vip, client, 80, 1000)[40:], wire.TCP
            for _ in range(n):
                payload, following = wire.extension(following) + payload, 60
            return wire.ipv6(vip, client, following, payload)
        return make

    def rows(self):
        """Words, the flow's packet, the error; each with a client of its own."""
        rows = []

        def add(words, family, make_quote, n_bytes, kind, src=None):
            number = len(rows)
            vip = VIP if family == 4 else VIP6
            client = f"203.0.113.{number + 1}" if family == 4 else f"2001:db8:113::{number:x}"
            quoted = make_quote(vip, client)
            proto = wire.udp if "udp" in words.lower() or "fragment" in words else wire.tcp
            router = {4: lib.ROUTER, 6: lib.ROUTER6}[family] if src is None else client
            error = wire.icmp(router, vip, *kind, b"\0\0\5\0" + quoted[:n_bytes])
            rows.append((f"IPv{family}: {words}", proto(client, vip, 1000, 80), error))

        for family in (4, 6):
            for kind in self.KINDS[family]:
                add(f"type {kind[0]} code {kind[1]}", family,
                    lambda vip, client: wire.tcp(vip, client, 80, 1000, payload=b"x" * 40),
                    None, kind)
            for words, make_quote, n_bytes in self.quotes(family):
                kind = (3, 4) if family == 4 else (2, 0)
                add(words, family, make_quote, n_bytes, kind)
                add(words + ", from the client", family, make_quote, n_bytes, kind, "client")
        return rows

    def settings(self, n=3):
        return config(*[service(name, n, address=vip, protocol="any")
                        for name, vip in (("web", VIP), ("web6", VIP6))])

    def test_after_20_backends_were_added(self):
        rows = self.rows()
        packets = [at(seconds, row[k]) for seconds, k in ((0, 1), (0.1, 1), (0.2, 2), (0.5, 2),
                                                          (0.6, 1)) for row in rows]
        events = lib.items(*[{"at": "0.3s", "add": {"service": name, "name": f"{name}-{i}",
                                                    "address": f"10.0.0.{10 + i}"}}
                             for i in range(4, 24) for name in ("web", "web6")])
        result = self.same(packets, self.settings(), events=events)
        n = len(rows)
        for i, (words, _, error) in enumerate(rows):
            with self.subTest(words):
                mine = result.decisions[i::n]
                self.assertEqual({d["backend"] for d in mine}, {mine[0]["backend"]})
                self.assertEqual([d["flow"] for d in mine], ["miss"] + ["hit"] * 4)
                inner = wire.parse_tunnel(result.output.packets[2 * n + i].data, "ipip").inner
                self.assertEqual(inner, error)
        self.assertEqual(result.report["flows"], {"total": n, "moved": 0, "broken": 0})
        # Without the flows nearly all would go elsewhere by now.
        late = self.replay(packets[3 * n:], self.settings(23), write=False)
        n_elsewhere = sum(a != b for a, b in zip(late.column("backend"),
                                                 result.column("backend")[3 * n:]))
        self.assertGreater(n_elsewhere, n)

    def test_in_an_empty_table_where_the_flow_will_go(self):
        rows = self.rows()
        packets = [at(seconds, row[k]) for seconds, k in ((0, 2), (1, 1)) for row in rows]
        result = self.same(packets, self.settings(23))
        self.assertEqual(result.column("slot")[:len(rows)], result.column("slot")[len(rows):])
        self.assertEqual(set(result.column("flow")), {"miss"})


class ErrorsAboutLaterFragments(lib.ReplayCase):
    """They quote no ports: they go to a backend where addresses decide, and nowhere else."""

    OTHER, OTHER6 = "198.51.100.20", "2001:db8:51::20"

    def quoted(self, client, vip, make=wire.udp):
        """What a router quotes of a datagram that a backend sent in fragments."""
        whole = make(vip, client, 80, 1000, payload=b"x" * 400)
        return wire.pieces(whole, 208)[1][:28 if "." in vip else 56]

    def error(self, client, vip, make=wire.udp):
        return wire.too_big(lib.ROUTER if "." in vip else lib.ROUTER6,
                            self.quoted(client, vip, make))

    @staticmethod
    def clients(vip):
        return [f"203.0.113.{i}" if "." in vip else f"2001:db8:113::{i:x}" for i in range(1, 31)]

    def replay_pairs(self, services, vip, make):
        """Of each client a packet of a flow, and the error. Their decisions."""
        packets = [at(0, make(client, vip, 1000, 80)) for client in self.clients(vip)]
        packets += [at(1, self.error(client, vip, make)) for client in self.clients(vip)]
        result = self.same(packets, config(*services))
        return result.decisions[:30], result.decisions[30:]

    def test_where_addresses_decide(self):
        """A service that is alone at its address, or has any port of it."""
        by_source = {"affinity": "source-ip"}
        around = service("around", 5, address="198.51.100.0/24", protocol="any", port="any")
        rows = [
            ("one port", [service("web", 5, protocol="tcp", **by_source)], VIP, wire.tcp),
            ("any port", [service("web", 5, protocol="udp", port="any", **by_source), around],
             VIP, wire.udp),
            ("a prefix", [service("web", 5, address="198.51.100.0/28", protocol="any",
                                  port="any", **by_source)], VIP, wire.udp),
            ("beside another protocol's", [
                service("web", 5, protocol="udp", **by_source),
                service("other", 5, protocol="tcp")], VIP, wire.udp),
            ("IPv6", [service("web", 5, address=VIP6, protocol="any", **by_source),
                      service("all", 5, address="2001:db8:51::/48", protocol="tcp")], VIP6, wire.udp),
        ]
        for words, services, vip, make in rows:
            with self.subTest(words):
                flows, errors = self.replay_pairs(services, vip, make)
                self.assertGreater(len({d["backend"] for d in flows}), 3)
                for flow, error in zip(flows, errors):
                    self.assertEqual((error["verdict"], error["service"], error["backend"]),
                                     ("forward", "web", flow["backend"]))

    def test_where_ports_would(self):
        by_source = {"affinity": "source-ip"}
        web = service("web", 5, protocol="udp", **by_source)
        rows = [
            ("by 5-tuple", [service("web", 5, protocol="udp")], VIP),
            ("by source and port", [service("web", 5, protocol="udp",
                                            affinity="source-ip-port")], VIP),
            ("two ports", [web, service("other", 5, protocol="udp", port=81, **by_source)], VIP),
            ("a port and any", [web, service("other", 5, protocol="any", port="any",
                                             **by_source)], VIP),
            ("a shorter prefix has the other ports", [
                web, service("other", 5, address="198.51.100.0/24", protocol="any", port="any",
                             **by_source)], VIP),
            ("a far shorter one, and one beside it", [
                web, service("other", 5, address="198.51.0.0/16", protocol="udp", port="any"),
                service("near", 5, address="198.51.100.8/32", protocol="udp", **by_source)],
             VIP),
            ("IPv6, with IPv4 between", [
                service("web", 5, address=VIP6, protocol="udp", **by_source),
                service("four", 5, protocol="udp", **by_source),
                service("all", 5, address="::/0", protocol="udp", port="any")], VIP6),
        ]
        for words, services, vip in rows:
            with self.subTest(words):
                _, errors = self.replay_pairs(services, vip, wire.udp)
                self.assertEqual({d["verdict"] for d in errors}, {"kernel"})

    def test_protocols_without_ports_have_their_flow(self):
        """By address pair, before and after a change."""
        packets, pairs = [], [(client, vip) for vip in (VIP, VIP6)
                              for client in self.clients(vip)]
        for client, vip in pairs:
            packets.append(at(0, wire.ip(client, vip, 50, b"x" * 100)))
        for client, vip in pairs:
            later = wire.pieces(wire.ip(vip, client, 50, b"x" * 400), 208)[1]
            packets.append(at(1, wire.too_big(lib.ROUTER if "." in vip else lib.ROUTER6, later)))
        settings = config(*[service(name, 5, address=vip, protocol="any", port="any")
                            for name, vip in (("web", VIP), ("web6", VIP6))])
        events = lib.items(*[{"at": "0.5s", "add": {"service": name, "name": f"{name}-{i}",
                                                    "address": f"10.0.0.{10 + i}"}}
                             for i in range(6, 26) for name in ("web", "web6")])
        result = self.same(packets, settings, events=events)
        self.assertEqual(result.column("backend")[60:], result.column("backend")[:60])
        self.assertEqual(result.column("flow"), ["miss"] * 60 + ["hit"] * 60)

    def test_from_nowhere(self):
        """And of what begins no flow none is begun."""
        services = config(service(protocol="udp", affinity="source-ip"))
        bad = wire.too_big("127.0.0.1", self.quoted(CLIENT, VIP))
        good = self.error(CLIENT, VIP)
        result = self.same([at(0, bad), at(1, good), at(2, good)], services)
        self.assertEqual(result.column("reason"), ["martian_source", None, None])
        self.assertEqual(result.column("flow")[1:], ["miss"] * 2)
        self.assertEqual(result.report["flows"]["total"], 0)


def answer_bytes(frame):
    """Of a frame with an IP packet: how long that is, without padding."""
    ip = wire.parse_ether(frame).payload
    if ip[0] >> 4 == 6:
        return 40 + struct.unpack_from("!H", ip, 4)[0]
    return struct.unpack_from("!H", ip, 2)[0]


if __name__ == "__main__":
    lib.main()
