#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The project's own captures (tests/captures), packet by packet against a reading of ours."""

import dataclasses
import pathlib
import struct

import captures
import lib
import wire
from lib import OUTER, OUTER6, VIP, VIP6, config, items, service

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "captures"
MODES = ("l2", "ipip", "gre", "gue", "vxlan")
BACKENDS = {4: [f"10.0.0.{i}" for i in (11, 12, 13)],
            6: [f"2001:db8:b::{i}" for i in (11, 12, 13)]}


@dataclasses.dataclass
class Seen:
    """What a recorded packet is about."""
    flow: tuple  # seen from the client; None of later fragments and echo
    flags: int = 0
    seq: int = 0
    is_error: bool = False


def look(packet):
    """An IP packet as the balancer should see it. The recordings have no options."""
    found = wire.parse_ip(packet)
    proto, payload = found.proto, found.payload
    if found.version == 4 and found.fragment & 0x1FFF:
        return Seen(None)
    if found.version == 6 and proto == wire.FRAGMENT:
        if struct.unpack_from("!H", payload, 2)[0] & 0xFFF8:
            return Seen(None)
        proto, payload = payload[0], payload[8:]
    if (proto, payload[0]) in ((wire.ICMP, 3), (wire.ICMPV6, 2)):
        quoted = payload[8:]
        head = 20 if found.version == 4 else 40
        l4 = quoted[9] if found.version == 4 else quoted[6]
        ends = quoted[12:20] if found.version == 4 else quoted[8:40]
        sport, dport = struct.unpack_from("!HH", quoted, head)
        half = len(ends) // 2
        return Seen((ends[half:], ends[:half], l4, dport, sport), is_error=True)
    if proto not in (wire.TCP, wire.UDP):
        return Seen(None)
    sport, dport = struct.unpack_from("!HH", payload)
    seen = Seen((wire.address(found.src), wire.address(found.dst), proto, sport, dport))
    if proto == wire.TCP:
        seen.seq, = struct.unpack_from("!I", payload, 4)
        seen.flags = payload[13]
    return seen


def count_flows(seen):
    """By 5-tuple and SYN: how many flows there are, with nothing timing out."""
    syns = {}
    n = 0
    for one in seen:
        if one.flow is None or one.is_error:
            continue
        is_syn = one.flags & (wire.SYN | wire.ACK) == wire.SYN
        if one.flow not in syns or (is_syn and syns[one.flow] != one.seq):
            n += 1
            syns[one.flow] = one.seq if is_syn else None
    return n


def settings(mode="ipip", family=4, port=None, mtu=9000):
    rows = [{"name": f"web-{i}", "address": address}
            for i, address in enumerate(BACKENDS[family], 1)]
    keys = {"protocol": "any", "port": port or "any", "forward": mode, "backends": rows}
    return config(service("four", **keys), service("six", **{**keys, "address": VIP6}),
                  port={"mtu": mtu})


class Recorded(lib.ReplayCase):
    def load(self, name):
        path = FOLDER / name
        packets = captures.read(path.read_bytes()).packets
        return path, [packet.data[14:] for packet in packets]

    def test_every_flow_of_tcp_and_udp(self):
        for name in ("http4.pcap", "http6.pcap", "dns.pcap", "iperf3.pcap", "pmtu4.pcap",
                     "pmtu6.pcap", "demo.pcap"):
            with self.subTest(name):
                path, packets = self.load(name)
                seen = [look(packet) for packet in packets]
                result = self.replay(path, settings())
                self.assertEqual(result.report["packets"]["forwarded"], len(packets))
                self.assertEqual(result.report["flows"],
                                 {"total": count_flows(seen), "moved": 0, "broken": 0})
                self.check_backends(seen, result.decisions)
                inner = [wire.parse_tunnel(p.data, "ipip").inner for p in result.output.packets]
                self.assertEqual(inner, packets)

    def check_backends(self, seen, decisions):
        """One backend a flow, its ICMP errors included."""
        backends = {}
        for one, decision in zip(seen, decisions):
            first = backends.setdefault(one.flow, decision["backend"])
            self.assertEqual(decision["backend"], first, decision)

    def test_errors_follow_their_flows_though_the_backends_change(self):
        for name, owner in (("pmtu4.pcap", "four"), ("pmtu6.pcap", "six")):
            with self.subTest(name):
                path, packets = self.load(name)
                seen = [look(packet) for packet in packets]
                begun = {}
                for number, one in enumerate(seen, 1):
                    begun.setdefault(one.flow, number)
                drain = [{"after": max(begun.values()), "drain": f"{owner}/web-{i}"}
                         for i in (1, 2)]
                result = self.replay(path, settings(), events=items(*drain), write=False)
                errors = [d["flow"] for one, d in zip(seen, result.decisions) if one.is_error]
                self.assertEqual(len(errors), 80)
                self.assertEqual(set(errors), {"hit"})
                self.check_backends(seen, result.decisions)
                self.assertEqual(result.report["flows"]["moved"], 0)

    def test_a_backend_leaves_in_the_middle(self):
        path, packets = self.load("demo.pcap")
        seen = [look(packet) for packet in packets]
        result = self.replay(path, settings(port=80), write=False,
                             events=items({"at": "4s", "remove": "four/web-2"}))
        places = {}
        for one, decision in zip(seen, result.decisions):
            places.setdefault(one.flow, []).append(decision["backend"])
        moved = [backends for backends in places.values() if len(set(backends)) > 1]
        self.assertGreater(len(moved), 3)
        for backends in moved:
            self.assertEqual(backends[0], "web-2")
            self.assertEqual(len(set(backends)), 2)
        self.assertEqual(result.report["flows"]["moved"], len(moved))
        self.assertEqual(result.report["flows"]["broken"], 0)

    def test_every_forward_mode_and_family(self):
        for mode in MODES:
            for family, source in ((4, OUTER), (6, OUTER6)):
                for name in ("http4.pcap", "iperf3.pcap", "http6.pcap"):
                    with self.subTest(mode=mode, outer=family, name=name):
                        path, packets = self.load(name)
                        result = self.replay(path, settings(mode, family))
                        self.assertEqual(len(result.output.packets), len(packets))
                        for packet, found, decision in zip(packets, result.output.packets,
                                                           result.decisions):
                            tunnel = wire.parse_tunnel(found.data, mode)
                            self.check_tunnel(packet, tunnel, source)
                            if mode != "l2":
                                place = int(decision["backend"][-1]) - 1
                                self.assertEqual(tunnel.outer.dst, BACKENDS[family][place])
                        self.check_source_ports(packets, result.output.packets, mode)

    def check_tunnel(self, packet, tunnel, source):
        self.assertEqual(tunnel.inner, packet)
        self.assertEqual(tunnel.frame.dst, lib.NEXT_HOP)
        self.assertEqual(tunnel.frame.src, wire.OWN_MAC)
        self.assertEqual(tunnel.frame.tags, ())
        outer, inner = tunnel.outer, wire.parse_ip(packet)
        if outer is None:
            return
        self.assertEqual((outer.src, outer.ttl, outer.tos), (source, 64, inner.tos))
        if outer.version == 4:
            self.assertEqual(outer.fragment, 0x4000)
        if tunnel.dport:
            self.assertEqual(tunnel.dport, 4789 if tunnel.inner_frame else 6080)
        self.assertEqual(tunnel.vni, 0)

    def check_source_ports(self, packets, output, mode):
        """By flow and constant in it."""
        if mode not in ("gue", "vxlan"):
            return
        ports = {}
        for packet, found in zip(packets, output):
            tunnel = wire.parse_tunnel(found.data, mode)
            ports.setdefault(look(packet).flow, set()).add(tunnel.sport)
        self.assertTrue(all(len(some) == 1 for some in ports.values()))
        self.assertGreater(len(set.union(*ports.values())), len(ports) * 0.9)

    def test_ports_and_vni_as_configured(self):
        path, packets = self.load("http4.pcap")
        for mode, keys, expected in (("gue", {"tunnel_port": 6081}, (6081, 0)),
                                     ("vxlan", {"tunnel_port": 8472, "vni": 4711},
                                      (8472, 4711)),
                                     ("vxlan", {"vni": 0xFFFFFF}, (4789, 0xFFFFFF))):
            text = config(service(protocol="any", port="any", forward=mode, **keys),
                          port={"mtu": 9000})
            found = self.replay(path, text).output.packets
            self.assertEqual(len(found), len(packets))
            for packet in found:
                tunnel = wire.parse_tunnel(packet.data, mode)
                self.assertEqual((tunnel.dport, tunnel.vni), expected)

    def test_l2_goes_to_the_backend_s_mac(self):
        path, packets = self.load("http4.pcap")
        one = service(protocol="any", port="any", forward="l2")
        for i, backend in enumerate(one["backends"], 1):
            backend["mac"] = f"02:00:00:00:01:{i:02x}"
        result = self.replay(path, config(one))
        for packet, found, decision in zip(packets, result.output.packets, result.decisions):
            frame = wire.parse_ether(found.data)
            self.assertEqual(frame.dst, f"02:00:00:00:01:0{decision['backend'][-1]}")
            self.assertEqual((frame.src, frame.payload), (wire.OWN_MAC, packet))

    def test_first_fragments_go_with_their_flow(self):
        """The later ones too, where the protocol has no ports and an address pair is enough."""
        path, packets = self.load("udp-fragments.pcap")
        seen = [look(packet) for packet in packets]
        result = self.replay(path, settings(mtu=9000))
        for one, decision in zip(seen, result.decisions):
            if one.flow is not None:
                self.assertEqual(decision["verdict"], "forward")
        self.assertEqual(result.report["flows"]["total"], count_flows(seen))

    def test_a_service_takes_its_port_alone(self):
        path, packets = self.load("http4.pcap")
        seen = [look(packet) for packet in packets]
        for port in (80, 443):
            text = config(service(port=port, address=VIP), port={"mtu": 9000})
            result = self.replay(path, text, write=False)
            expected = ["forward" if one.flow[4] == port else "kernel" for one in seen]
            self.assertEqual(result.column("verdict"), expected)


if __name__ == "__main__":
    lib.main()
