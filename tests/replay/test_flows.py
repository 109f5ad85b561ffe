#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flows: what begins one, what it is remembered for, and for how long."""

import lib
import wire
from lib import CLIENT, CLIENT6, ROUTER, ROUTER6, VIP, VIP6, at, config, items, service
from wire import ACK, FIN, RST, SYN


def tcp(flags, seq=1, sport=1000):
    return wire.tcp(CLIENT, VIP, sport, 80, flags, seq)


def udp(sport=1000):
    return wire.udp(CLIENT, VIP, sport, 80, b"data")


def timeouts(**times):
    return {"flow_timeout": times}


class FlowWords(lib.ReplayCase):
    def words(self, rows, settings=None, **keys):
        """The decisions' flow words of packets at their times in seconds."""
        packets = [at(seconds, packet) for seconds, packet in rows]
        self.result = self.replay(packets, settings, write=False, **keys)
        return self.result.column("flow")

    def test_hit_and_miss(self):
        self.assertEqual(self.words([(0, tcp(SYN)), (1, tcp(ACK)), (2, tcp(ACK, sport=1001))]),
                         ["miss", "hit", "miss"])
        self.assertEqual(self.result.report["flows"]["total"], 2)

    def test_a_repeated_syn_is_a_retransmission(self):
        rows = [(0, tcp(SYN, 7)), (1, tcp(SYN, 7)), (3, tcp(SYN, 7)), (3.1, tcp(ACK, 8))]
        self.assertEqual(self.words(rows), ["miss", "hit", "hit", "hit"])
        self.assertEqual(self.result.report["flows"]["total"], 1)

    def test_another_syn_is_a_new_flow_on_the_same_ports(self):
        rows = [(0, tcp(SYN, 7)), (1, tcp(ACK, 8)), (2, tcp(SYN, 9)), (3, tcp(SYN, 9)),
                (4, tcp(ACK, 10))]
        self.assertEqual(self.words(rows), ["miss", "hit", "miss", "hit", "hit"])
        self.assertEqual(self.result.report["flows"]["total"], 2)

    def test_port_reuse_picks_afresh_and_a_retransmission_does_not(self):
        rows = [(i, tcp(SYN, 7, sport)) for i, sport in enumerate(range(1, 13))]
        rows += [(20, tcp(SYN, 7, sport)) for sport in range(1, 13)]
        rows += [(21, tcp(SYN, 8, sport)) for sport in range(1, 13)]
        drains = items(*[{"after": 12, "drain": f"web/web-{i}"} for i in (1, 2)])
        settings = config(service(), dataplane=timeouts(tcp_syn="60s"))
        self.words(rows, settings, events=drains)
        before, again, reused = (self.result.column("backend")[i:i + 12] for i in (0, 12, 24))
        self.assertEqual(self.result.column("flow"), ["miss"] * 12 + ["hit"] * 12 +
                         ["miss"] * 12)
        self.assertEqual(before, again)
        self.assertEqual(set(before), {"web-1", "web-2", "web-3"})
        self.assertEqual(set(reused), {"web-3"})
        # Each is a flow of its own: none has moved.
        self.assertEqual(self.result.report["flows"],
                         {"total": 24, "moved": 0, "broken": 0})

    def test_a_syn_ack_or_segment_begins_no_second_flow(self):
        rows = [(0, tcp(SYN, 7)), (1, tcp(SYN | ACK, 9)), (2, tcp(ACK, 1))]
        self.assertEqual(self.words(rows), ["miss", "hit", "hit"])

    def test_a_flow_may_begin_in_its_middle(self):
        self.assertEqual(self.words([(0, tcp(ACK, 7)), (1, tcp(SYN, 7)), (2, tcp(ACK, 8))]),
                         ["miss", "miss", "hit"])

    def test_default_timeouts(self):
        rows = [
            ("a SYN alone, 10 s", [(0, tcp(SYN)), (9.99, tcp(ACK))], "hit"),
            ("a SYN alone, over 10 s", [(0, tcp(SYN)), (10.01, tcp(ACK))], "miss"),
            ("a retransmission confirms nothing",
             [(0, tcp(SYN)), (5, tcp(SYN)), (15.01, tcp(ACK))], "miss"),
            ("but it is seen", [(0, tcp(SYN)), (5, tcp(SYN)), (14.99, tcp(ACK))], "hit"),
            ("a connection, 15 min", [(0, tcp(SYN)), (1, tcp(ACK)), (900.99, tcp(ACK))], "hit"),
            ("a connection, over 15 min",
             [(0, tcp(SYN)), (1, tcp(ACK)), (901.01, tcp(ACK))], "miss"),
            ("after a FIN, 30 s",
             [(0, tcp(SYN)), (1, tcp(ACK)), (2, tcp(FIN | ACK)), (31.99, tcp(ACK))], "hit"),
            ("after a FIN, over 30 s",
             [(0, tcp(SYN)), (1, tcp(ACK)), (2, tcp(FIN | ACK)), (32.01, tcp(ACK))], "miss"),
            ("after a FIN counted from its last packet",
             [(0, tcp(SYN)), (1, tcp(FIN | ACK)), (20, tcp(ACK)), (49.9, tcp(ACK))], "hit"),
            ("after a FIN the last packet changes nothing else",
             [(0, tcp(SYN)), (1, tcp(FIN | ACK)), (20, tcp(ACK)), (50.1, tcp(ACK))], "miss"),
            ("after a RST, 30 s",
             [(0, tcp(SYN)), (1, tcp(ACK)), (2, tcp(RST)), (31.99, tcp(ACK))], "hit"),
            ("after a RST, over 30 s",
             [(0, tcp(SYN)), (1, tcp(ACK)), (2, tcp(RST)), (32.01, tcp(ACK))], "miss"),
            ("UDP, 60 s", [(0, udp()), (1, udp()), (60.99, udp())], "hit"),
            ("UDP, over 60 s", [(0, udp()), (1, udp()), (61.01, udp())], "miss"),
            ("a single datagram, 60 s", [(0, udp()), (59.99, udp())], "hit"),
            ("a single datagram, over 60 s", [(0, udp()), (60.01, udp())], "miss"),
        ]
        self.check_timeouts(rows, config(service(protocol="any")))

    def check_timeouts(self, rows, settings):
        """The last packet's word of each row; the rows in one run, each with its own client."""
        packets = []
        for number, (_, row, _) in enumerate(rows):
            for seconds, packet in row:
                mine = wire.ether(move(packet, 10000 + number))
                packets.append(lib.Packet(mine, lib.FIRST_NS + round(seconds * 1e9)))
        packets.sort(key=lambda packet: packet.time_ns)
        result = self.replay(packets, settings, write=False)
        last = {}
        for packet, decision in zip(packets, result.decisions):
            last[packet.data[34:36]] = decision["flow"]
        for number, (words, _, expected) in enumerate(rows):
            with self.subTest(words):
                self.assertEqual(last[(10000 + number).to_bytes(2, "big")], expected)

    def test_configured_timeouts(self):
        rows = []
        kinds = [
            ("tcp_syn", [(0, tcp(SYN))], tcp(ACK)),
            ("tcp", [(0, tcp(SYN)), (0, tcp(ACK))], tcp(ACK)),
            ("tcp_closing", [(0, tcp(SYN)), (0, tcp(FIN))], tcp(ACK)),
            ("udp", [(0, udp()), (0, udp())], udp()),
        ]
        for words, begin, end in kinds:
            rows.append((f"{words} within 1 s", begin + [(0.999, end)], "hit"))
            rows.append((f"{words} after 1 s", begin + [(1.001, end)], "miss"))
        times = dict.fromkeys(("tcp_syn", "tcp", "tcp_closing", "udp"), "1s")
        self.check_timeouts(rows, config(service(protocol="any"), dataplane=timeouts(**times)))

    def test_a_timeout_of_a_millisecond(self):
        times = {"tcp_syn": "1ms", "tcp": "1ms", "tcp_closing": "1ms", "udp": "1ms"}
        settings = config(service(protocol="any"), dataplane=timeouts(**times))
        rows = [(0, udp()), (0.000999, udp()), (0.002001, udp())]
        self.assertEqual(self.words(rows, settings), ["miss", "hit", "miss"])

    def test_a_week_is_remembered(self):
        settings = config(service(protocol="udp"), dataplane=timeouts(udp="7d"))
        week = 7 * 86400
        self.assertEqual(self.words([(0, udp()), (week - 1, udp()), (2 * week + 1, udp())],
                                    settings), ["miss", "hit", "miss"])


def move(packet, sport):
    """The packet of an IPv4 client from another port; L4 checksums are nobody's business."""
    return packet[:20] + sport.to_bytes(2, "big") + packet[22:]


class IcmpErrors(lib.ReplayCase):
    """An error about a flow goes where the flow goes."""

    def quoted(self, length=None, family=4, proto="tcp"):
        """What the backend sent to the client, as a router quotes it."""
        make = wire.tcp if proto == "tcp" else wire.udp
        pair = (VIP, CLIENT) if family == 4 else (VIP6, CLIENT6)
        return make(*pair, 80, 1000, payload=b"x" * 100)[:length]

    def follow(self, quoted, proto="tcp", **keys):
        family = quoted[0] >> 4
        ends = (CLIENT, VIP) if family == 4 else (CLIENT6, VIP6)
        make = wire.tcp if proto == "tcp" else wire.udp
        packet = make(*ends, 1000, 80)
        error = wire.too_big(ROUTER if family == 4 else ROUTER6, quoted)
        settings = config(service(protocol=proto, address=ends[1]))
        return self.replay([at(0, packet), at(1, error), at(2, packet)], settings, **keys)

    def test_it_follows_the_flow_after_the_table_changed(self):
        rows = [(f"{proto} over IPv{family}, {length or 'all'} bytes quoted", proto, family,
                 length)
                for family, head in ((4, 20), (6, 40)) for proto in ("tcp", "udp")
                for length in (None, head + 8)]
        for words, proto, family, length in rows:
            with self.subTest(words):
                quoted = self.quoted(length, family, proto)
                first = self.follow(quoted, proto).decisions[0]["backend"]
                events = items({"after": 1, "drain": f"web/{first}"})
                result = self.follow(quoted, proto, events=events)
                self.assertEqual(result.column("backend"), [first] * 3)
                self.assertEqual(result.column("flow"), ["miss", "hit", "hit"])
                self.assertEqual(result.report["flows"],
                                 {"total": 1, "moved": 0, "broken": 0})
                error = wire.parse_tunnel(result.output.packets[1].data, "ipip").inner
                self.assertTrue(error.endswith(quoted))

    def test_it_moves_with_the_flow_of_a_backend_that_is_gone(self):
        first = self.follow(self.quoted()).decisions[0]["backend"]
        result = self.follow(self.quoted(), events=items({"after": 1,
                                                          "remove": f"web/{first}"}))
        self.assertEqual(result.column("flow"), ["miss"] * 3)
        self.assertNotEqual(result.decisions[1]["backend"], first)
        self.assertEqual(result.decisions[1]["backend"], result.decisions[2]["backend"])

    def test_before_its_flow_it_goes_where_the_flow_will(self):
        error = wire.too_big(ROUTER, self.quoted())
        result = self.replay([at(0, error), at(1, tcp(SYN)), at(2, tcp(ACK)), at(3, error)])
        self.assertEqual(result.column("flow"), ["miss", "miss", "hit", "hit"])
        self.assertEqual(len(set(result.column("backend"))), 1)
        self.assertEqual(result.decisions[0]["slot"], result.decisions[1]["slot"])

    def test_it_keeps_no_flow_alive(self):
        error = wire.too_big(ROUTER, self.quoted())
        result = self.replay([at(0, tcp(SYN)), at(8, error), at(10.1, tcp(ACK))])
        self.assertEqual(result.column("flow"), ["miss", "hit", "miss"])

    def test_kinds_of_errors(self):
        quoted, quoted6 = self.quoted(), self.quoted(family=6)
        rest = b"\0\0\0\0"
        settings = config(service(), service("web6", address=VIP6))
        rows = [(wire.icmp(ROUTER, VIP, kind, 0, rest + quoted), verdict)
                for kind, verdict in ((3, "forward"), (11, "forward"), (12, "forward"),
                                      (0, "kernel"), (5, "kernel"), (13, "kernel"))]
        rows += [(wire.icmp(ROUTER6, VIP6, kind, 0, rest + quoted6), verdict)
                 for kind, verdict in ((1, "forward"), (2, "forward"), (3, "forward"),
                                       (4, "forward"), (129, "kernel"), (135, "kernel"))]
        # No error about a flow of ours.
        rows += [(wire.too_big(ROUTER, self.quoted(27)), "kernel"),
                 (wire.too_big(ROUTER, self.quoted(19)), "kernel"),
                 (wire.icmp(ROUTER, VIP, 3, 4,
                            rest + wire.tcp("198.51.100.99", CLIENT, 80, 1)), "kernel"),
                 (wire.icmp(ROUTER, VIP, 3, 4, rest + wire.echo_request(VIP, CLIENT)),
                  "kernel")]
        result = self.replay([at(0, packet) for packet, _ in rows], settings)
        self.assertEqual(result.column("verdict"), [verdict for _, verdict in rows])


if __name__ == "__main__":
    lib.main()
