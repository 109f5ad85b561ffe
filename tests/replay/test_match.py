#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which service a packet is for, and what of it chooses the backend."""

import lib
import wire
from lib import CLIENT, CLIENT6, VIP, VIP6, at, config, service

ESP, SCTP, ICMP6 = 50, 132, 58


def other(proto, dst=VIP, src=CLIENT):
    return wire.ip(src, dst, proto, b"\0" * 32)


class ServiceMatch(lib.ReplayCase):
    def check(self, services, rows):
        """Rows are a packet and the service that takes it; None is the kernel."""
        result = self.replay([at(i / 1000, packet) for i, (packet, _) in enumerate(rows)],
                             config(*services), write=False)
        self.assertEqual(result.column("service"), [name for _, name in rows])

    def test_the_longest_prefix_with_a_match(self):
        services = [
            service("all", address="0.0.0.0/0", protocol="any", port="any"),
            service("sixteen", address="198.51.0.0/16", port="any"),
            service("twentyfour", address="198.51.100.0/24", port=443),
            service("twentyeight", address="198.51.100.0/28", port="any", protocol="udp"),
            service("one", address=VIP, port=80),
            service("six", address="2001:db8:51::/48", port="any"),
            service("six-one", address=VIP6, port=80),
        ]
        self.check(services, [
            (wire.tcp(CLIENT, VIP, 1, 80), "one"),
            (wire.tcp(CLIENT, VIP, 1, 443), "twentyfour"),
            (wire.tcp(CLIENT, VIP, 1, 22), "sixteen"),
            (wire.udp(CLIENT, VIP, 1, 80), "twentyeight"),
            (wire.udp(CLIENT, "198.51.100.15", 1, 53), "twentyeight"),
            (wire.udp(CLIENT, "198.51.100.16", 1, 53), "all"),
            (wire.tcp(CLIENT, "198.51.100.16", 1, 443), "twentyfour"),
            (wire.tcp(CLIENT, "198.51.101.1", 1, 443), "sixteen"),
            (wire.tcp(CLIENT, "198.52.0.1", 1, 443), "all"),
            (other(ESP), "all"),
            (wire.tcp(CLIENT6, VIP6, 1, 80), "six-one"),
            (wire.tcp(CLIENT6, VIP6, 1, 81), "six"),
            (wire.tcp(CLIENT6, "2001:db8:51:ffff::1", 1, 80), "six"),
            (wire.tcp(CLIENT6, "2001:db8:52::1", 1, 80), None),
            (wire.udp(CLIENT6, VIP6, 1, 80), None),
        ])

    def test_an_exact_port_then_an_exact_protocol(self):
        services = [
            service("any-any", protocol="any", port="any"),
            service("tcp-any", protocol="tcp", port="any"),
            service("any-80", protocol="any", port=80),
            service("tcp-443", protocol="tcp", port=443),
            service("any-443", protocol="any", port=443),
        ]
        self.check(services, [
            (wire.tcp(CLIENT, VIP, 1, 80), "any-80"),
            (wire.udp(CLIENT, VIP, 1, 80), "any-80"),
            (wire.tcp(CLIENT, VIP, 1, 443), "tcp-443"),
            (wire.udp(CLIENT, VIP, 1, 443), "any-443"),
            (wire.tcp(CLIENT, VIP, 1, 8080), "tcp-any"),
            (wire.udp(CLIENT, VIP, 1, 8080), "any-any"),
            (wire.tcp(CLIENT, VIP, 80, 1), "tcp-any"),
            (other(SCTP), "any-any"),
        ])

    def test_the_order_in_the_file_is_nothing(self):
        services = [service("wide", address="198.51.100.0/24", port="any"),
                    service("web"), service("dns", protocol="udp", port=53)]
        rows = [(wire.tcp(CLIENT, VIP, 1, 80), "web"), (wire.tcp(CLIENT, VIP, 1, 81), "wide"),
                (wire.udp(CLIENT, VIP, 1, 53), "dns"), (wire.udp(CLIENT, VIP, 1, 54), None)]
        self.check(services, rows)
        self.check(services[::-1], rows)

    def test_an_error_is_for_the_service_of_its_flow(self):
        quoted = wire.udp(VIP, CLIENT, 53, 1000)
        self.check([service(), service("dns", protocol="udp", port=53)],
                   [(wire.too_big(lib.ROUTER, quoted), "dns")])

    def test_every_protocol_by_address_pair(self):
        services = [service(protocol="any", port="any"),
                    service("six", address=VIP6, protocol="any", port="any")]
        packets = [other(ESP), other(ESP), other(SCTP), other(ESP, src="203.0.113.8"),
                   other(SCTP, VIP6, CLIENT6), other(SCTP, VIP6, CLIENT6),
                   wire.tcp(CLIENT, VIP, 1, 1), wire.udp(CLIENT, VIP, 1, 1)]
        result = self.replay([at(0, packet) for packet in packets], config(*services))
        self.assertEqual(result.column("service"), ["web"] * 4 + ["six"] * 2 + ["web"] * 2)
        self.assertEqual(result.column("flow"), ["miss", "hit", "miss", "miss", "miss", "hit",
                                                 "miss", "miss"])
        for packet, found in zip(packets, result.output.packets):
            self.assertEqual(wire.parse_tunnel(found.data, "ipip").inner, packet)

    def test_icmp_that_is_no_error_is_the_kernel_s(self):
        self.check([service(protocol="any", port="any")], [
            (wire.icmp(CLIENT, VIP, 13, 0, b"\0" * 16), None),
            (wire.icmp(CLIENT, VIP, 0, 0, b"\0" * 8), None),
        ])

    def test_tunnels_only_where_they_are_carried(self):
        inner = wire.tcp("10.1.1.1", "10.2.2.2", 1, 2)
        inner6 = wire.tcp(CLIENT6, VIP6, 1, 2)
        packets = [wire.ipv4(CLIENT, VIP, wire.IPIP, inner),
                   wire.ipv4(CLIENT, VIP, wire.IPV6, inner6),
                   wire.ipv4(CLIENT, VIP, wire.GRE, b"\0\0\x08\0" + inner)]
        rows = [
            ([], (False, False, False)),
            (["ipip"], (True, False, False)),
            (["ipv6"], (False, True, False)),
            (["gre"], (False, False, True)),
            ([47, "ipip"], (True, False, True)),
            ([4, 41, 47], (True, True, True)),
        ]
        for carry, expected in rows:
            with self.subTest(carry=carry):
                settings = config(service(protocol="any", port="any", carry=carry))
                result = self.replay([at(0, packet) for packet in packets], settings)
                self.assertEqual(result.column("reason"),
                                 [None if is_carried else "unsupported_l4"
                                  for is_carried in expected])

    def reasons(self, packets, *services):
        result = self.replay([at(0, packet) for packet in packets], config(*services))
        return result.column("reason")

    def test_tunnels_by_udp_only_where_they_are_carried(self):
        ports = {"gue": 6080, "vxlan": 4789, "geneve": 6081}
        ends = ((CLIENT, VIP), (CLIENT6, VIP6))
        packets = [wire.udp(src, dst, 1, port, b"x" * 60)
                   for src, dst in ends for port in ports.values()]
        others = [make(src, dst, 1, port) for src, dst in ends
                  for make, port in ((wire.udp, 4788), (wire.udp, 6082), (wire.tcp, 4789))]
        for protocol in ("any", "udp"):
            for carry in ([], ["gue"], ["vxlan"], ["geneve"], list(ports)):
                with self.subTest(protocol=protocol, carry=carry):
                    services = [service(name, address=address, protocol=protocol, port="any",
                                        carry=carry)
                                for name, address in (("web", VIP), ("six", VIP6))]
                    self.assertEqual(self.reasons(packets, *services),
                                     [None if name in carry else "unsupported_l4"
                                      for name in ports] * 2)
                    self.assertEqual(set(self.reasons(others, *services)), {None})

    def test_a_tunnel_is_known_by_every_service_s_port(self):
        """By the port that another service gives it, too, and its own is one still."""
        packets = [wire.udp(CLIENT, VIP, 1, port) for port in (7000, 7001, 7002, 6080, 4789)]
        others = [service("a", address="198.51.100.20", forward="gue", tunnel_port=7000),
                  service("b", address="198.51.100.21", forward="vxlan", tunnel_port=7001)]
        rows = [([], [1, 1, 0, 1, 1]), (["gue"], [0, 1, 0, 0, 1]), (["vxlan"], [1, 0, 0, 1, 0])]
        for carry, refused in rows:
            with self.subTest(carry=carry):
                found = self.reasons(packets, *others, service(protocol="any", port="any",
                                                               carry=carry))
                self.assertEqual(found, ["unsupported_l4" if no else None for no in refused])

    def test_a_tunnel_s_port_by_name(self):
        """It is taken, unless it would be put into UDP once more unasked."""
        packet = [wire.udp(CLIENT, VIP, 1, 4789, b"x" * 60)]
        rows = [("ipip", [], None), ("gre", [], None), ("l2", [], None),
                ("vxlan", [], "unsupported_l4"), ("gue", [], "unsupported_l4"),
                ("vxlan", ["vxlan"], None), ("gue", ["vxlan"], None),
                ("gue", ["gue"], "unsupported_l4")]
        for forward, carry, reason in rows:
            with self.subTest(forward=forward, carry=carry):
                found = self.reasons(packet, service(protocol="udp", port=4789,
                                                     forward=forward, carry=carry))
                self.assertEqual(found, [reason])
        self.assertEqual(self.reasons([wire.udp(CLIENT, VIP, 1, 53)],
                                      service(protocol="udp", port=53, forward="gue")), [None])

    def test_no_packet_goes_round_between_two_balancers(self):
        """Each has a service address of the other for its backend (RFC 2003, section 4.4)."""
        far = "198.51.100.99"
        for mode in ("ipip", "gre", "gue", "vxlan"):
            for protocol in ("udp", "any"):
                with self.subTest(mode=mode, protocol=protocol):
                    here, there = [
                        config(service("a", address=address, protocol=protocol, port="any",
                                       forward=mode,
                                       backends=[{"name": "b", "address": other}]))
                        for address, other in ((VIP, far), (far, VIP))]
                    first = self.replay([at(0, wire.udp(CLIENT, VIP, 1, 53))], here)
                    self.assertEqual(first.column("verdict"), ["forward"])
                    second = self.replay(first.output.packets, there)
                    self.assertEqual(second.column("reason"), ["unsupported_l4"])


class Affinity(lib.ReplayCase):
    def places(self, affinity, ends):
        """Backend and slot of a SYN of each (client, source port, destination port)."""
        one = service(port="any", n=20, affinity=affinity)
        packets = [at(0, wire.tcp(src, VIP, sport, dport, wire.SYN))
                   for src, sport, dport in ends]
        result = self.replay(packets, config(one), write=False)
        # The flow table holds 5-tuples whatever chooses the slot.
        self.assertEqual(result.column("flow"), ["miss"] * len(ends))
        self.assertEqual(result.report["flows"]["total"], len(ends))
        return list(zip(result.column("backend"), result.column("slot")))

    def test_what_is_hashed(self):
        ports = [(CLIENT, sport, 80) for sport in range(1, 41)]
        dports = [(CLIENT, 1, dport) for dport in range(1, 41)]
        clients = [(f"203.0.113.{i}", 1, 80) for i in range(1, 41)]
        rows = [("5-tuple", ports, False), ("5-tuple", dports, False),
                ("5-tuple", clients, False), ("source-ip", ports, True),
                ("source-ip", dports, True), ("source-ip", clients, False),
                ("source-ip-port", ports, False), ("source-ip-port", dports, True),
                ("source-ip-port", clients, False)]
        for affinity, ends, is_one in rows:
            with self.subTest(affinity=affinity, ends=ends[:2]):
                places = self.places(affinity, ends)
                self.assertEqual(len(set(places)) == 1, is_one)
                if not is_one:
                    self.assertGreater(len({backend for backend, _ in places}), 8)

    def test_source_ip_is_one_backend_for_all_protocols(self):
        packets = [wire.tcp(CLIENT, VIP, 7, 80), wire.udp(CLIENT, VIP, 9, 53), other(ESP)]
        one = service(protocol="any", port="any", n=20, affinity="source-ip")
        result = self.replay([at(0, packet) for packet in packets], config(one), write=False)
        self.assertEqual(len(set(result.column("slot"))), 1)

    def test_the_seed_is_the_cluster_s(self):
        packets = [at(0, wire.tcp(CLIENT, VIP, sport, 80)) for sport in range(1, 60)]
        places = []
        for seed in (0, 0, 1, 2**64 - 1):
            result = self.replay(packets, config(service(), hash_seed=seed), write=False)
            places.append(result.column("slot"))
        self.assertEqual(places[0], places[1])
        self.assertEqual(len({tuple(slots) for slots in places}), 3)

    def test_a_backend_is_its_name(self):
        """Neither the place in the file nor the address has a say."""
        packets = [at(0, wire.tcp(CLIENT, VIP, sport, 80)) for sport in range(1, 60)]
        one, two = service(n=5), service(n=5)
        two["backends"].reverse()
        for backend in two["backends"]:
            backend["address"] = backend["address"].replace("10.0.0", "10.7.7")
        first = self.replay(packets, config(one), write=False)
        second = self.replay(packets, config(two), write=False)
        self.assertEqual(first.decisions, second.decisions)


if __name__ == "__main__":
    lib.main()
