#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""--workers and --loop: neither changes what becomes of a packet."""

import random

import captures
import lib
import wire
from lib import CLIENT, CLIENT6, ROUTER, ROUTER6, VIP, VIP6, at, config, items, service

SETTINGS = config(service(protocol="any", port="any", n=5),
                  service("six", address=VIP6, n=4, forward="gue", affinity="source-ip"),
                  service("down", address="198.51.100.11", n=0))


def mixed_packets(n=3000):
    """Some of everything: flows, errors about them, fragments, damage, others' packets."""
    rng = random.Random(4711)
    packets = []
    for i in range(n):
        sport = rng.randrange(1, 200)
        kind = rng.randrange(12)
        flags = rng.choice((wire.SYN, wire.ACK, wire.ACK, wire.ACK, wire.FIN | wire.ACK))
        if kind < 4:
            packet = wire.tcp(CLIENT, VIP, sport, 80, flags, rng.randrange(3))
        elif kind < 6:
            packet = wire.udp(CLIENT, VIP, sport, 53, rng.randbytes(20))
        elif kind < 8:
            packet = wire.tcp(CLIENT6, VIP6, sport, 80, flags, rng.randrange(3))
        elif kind == 8:
            packet = wire.too_big(ROUTER, wire.tcp(VIP, CLIENT, 80, sport))
        elif kind == 9:
            packet = wire.too_big(ROUTER6, wire.tcp(VIP6, CLIENT6, 80, sport))
        elif kind == 10:
            packet = wire.tcp(CLIENT, rng.choice(("198.51.100.11", "198.51.100.99")), 1, 80)
        else:
            packet = wire.ipv4(CLIENT, VIP, rng.choice((17, 50, 47)), b"\0" * 40,
                               fragment=rng.choice((0, 0, 0x2000, 100)), ttl=rng.choice((0, 9)))
        packets.append(at(i / 100, packet))
    return packets


EVENTS = items({"at": "5s", "remove": "web/web-2"}, {"at": "9s", "drain": "six/six-1"},
               {"after": 1500, "add": {"service": "web", "name": "web-9",
                                       "address": "10.0.0.19"}})


class Workers(lib.ReplayCase):
    def everything(self, packets, *args):
        result = self.replay(packets, SETTINGS, events=EVENTS, args=args)
        del result.report["rate"]
        return (result.report, result.decisions, (self.folder / "out.pcap").read_bytes())

    def test_any_number_gives_the_same(self):
        packets = mixed_packets()
        one = self.everything(packets)
        self.assertGreater(one[0]["flows"]["moved"], 20)
        self.assertGreater(one[0]["packets"]["dropped"], 20)
        for n in (1, 2, 3, 8):
            with self.subTest(workers=n):
                self.assertEqual(self.everything(packets, "--workers", n), one)

    def test_a_first_fragment_that_the_capture_cut(self):
        packets = []
        for i in range(16):
            first = wire.pieces(wire.udp(f"203.0.113.{i + 1}", VIP, 5, 99, b"x" * 400, ident=i), 104)[0]
            packet = at(i / 100, first)
            packet.wire = len(packet.data)
            packet.data = packet.data[:60]
            packets.append(packet)
        for n in (1, 2, 4):
            with self.subTest(workers=n):
                result = self.replay(packets, config(service(protocol="udp")), args=["-n", str(n)])
                self.assertEqual(result.column("verdict"), ["kernel"] * 16)

    def test_what_the_configuration_says_of_workers_is_shuntd_s(self):
        packets = mixed_packets(300)
        results = []
        for plane in ({}, {"workers": "auto"}, {"workers": 4, "idle": "adaptive"}):
            settings = config(service(protocol="any", port="any"), dataplane=plane)
            results.append(self.replay(packets, settings).decisions)
        self.assertTrue(all(decisions == results[0] for decisions in results))


class Loop(lib.ReplayCase):
    def udp(self, sport):
        return wire.udp(CLIENT, VIP, sport, 80, b"data")

    def test_numbers_and_time_go_on_and_flows_stay(self):
        packets = [at(0, self.udp(1)), at(1, self.udp(2)), at(4, self.udp(3))]
        settings = config(service(protocol="udp"))
        result = self.replay(packets, settings, args=["--loop", "3"])
        self.assertEqual(result.column("packet"), list(range(1, 10)))
        self.assertEqual(result.column("flow"), ["miss"] * 3 + ["hit"] * 6)
        self.assertEqual(result.column("backend")[:3] * 3, result.column("backend"))
        self.assertEqual(result.report["packets"]["received"], 9)
        self.assertEqual(result.report["flows"], {"total": 3, "moved": 0, "broken": 0})
        times = [(p.time_ns - lib.FIRST_NS) / captures.NS for p in result.output.packets]
        self.assertEqual(times, [0, 1, 4, 4, 5, 8, 8, 9, 12])

    def test_flows_age_in_the_time_that_goes_on(self):
        settings = config(service(protocol="udp"), dataplane={"flow_timeout": {"udp": "3s"}})
        packets = [at(0, self.udp(1)), at(1, self.udp(2)), at(4.5, self.udp(2))]
        result = self.replay(packets, settings, args=["--loop", "2"])
        # 1 after 4.5 s, 2 after 1 s, 2 after 3.5 s.
        self.assertEqual(result.column("flow"), ["miss", "miss", "miss", "miss", "hit", "miss"])

    def test_events_happen_once(self):
        packets = [at(i, self.udp(i)) for i in range(4)]
        settings = config(service(protocol="udp", n=1))
        # The second pass begins at 3 s: its packets 5 to 8 come at 3, 4, 5 and 6 s.
        events = items({"at": "2s", "down": "web/web-1"}, {"at": "2.5s", "up": "web/web-1"},
                       {"at": "4.5s", "drain": "web/web-1"}, {"after": 7, "down": "web/web-1"})
        result = self.replay(packets, settings, events=events, args=["--loop", "2"])
        self.assertEqual(result.stderr, "")
        # Packet 7 is of the flow that found nobody before, and a draining backend takes none.
        self.assertEqual(result.column("verdict"), ["forward", "forward", "drop", "forward",
                                                    "forward", "forward", "drop", "drop"])

    def test_an_empty_capture_may_be_looped(self):
        result = self.replay([], args=["--loop", "3"])
        self.assertEqual(result.report["packets"]["received"], 0)


if __name__ == "__main__":
    lib.main()
