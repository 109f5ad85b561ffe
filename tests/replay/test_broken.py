#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
flows.moved and flows.broken against a count of our own, also where flows do break: a flow
table that is too small forgets some, and these go where the changed table says.
"""

import itertools
import json
import struct

import captures
import lib
import wire
from lib import CLIENT, FIRST_NS, VIP, at, config, items, service

# A flow table has 524288 entries at least, in buckets of four: so full, it has no room for some.
N_FLOWS = 480_000
N_PORTS = 60_000


def many_flows():
    """A capture: two packets of each flow, which confirm it, and later one more of each."""
    frame = wire.ether(wire.udp(CLIENT, VIP, 0, 0, b"x" * 4))
    head = captures.pcap_record(captures.Packet(frame, FIRST_NS))[:-12]
    ports = [struct.pack("!H", port) for port in range(1, N_PORTS + 1)]
    tail = frame[-8:-6] + b"\0\0" + frame[-4:]
    records = [head + sport + dport + tail
               for dport in ports[:N_FLOWS // N_PORTS] for sport in ports]
    twice = b"".join(itertools.chain.from_iterable(zip(records, records)))
    return captures.pcap_header() + twice + b"".join(records)


class Broken(lib.ReplayCase):
    def count(self, path):
        """Flows that were on more than one backend, from the decisions."""
        with open(path, encoding="utf-8") as lines:
            backends = [line.split('"backend":"', 1)[1].split('"', 1)[0] for line in lines]
        first, last = backends[:2 * N_FLOWS:2], backends[2 * N_FLOWS:]
        self.assertEqual(first, backends[1:2 * N_FLOWS:2])
        return sum(one != other for one, other in zip(first, last))

    def run_many(self, name, data, flow_entries):
        settings = self.put("c.yaml", config(
            service(port="any", protocol="udp"), dataplane={"flow_entries": flow_entries}))
        new = {"service": "web", "name": "web-9", "address": "10.0.0.19"}
        events = self.put("e.yaml", items({"after": 2 * N_FLOWS, "add": new}))
        decisions = self.folder / name
        result = lib.run("-c", settings, "-e", events, "-d", decisions, "-j", "-", stdin=data)
        self.assertEqual(result.status, 0, result.stderr)
        report = json.loads(result.stdout)
        self.check_report(report)
        self.assertEqual(report["packets"]["forwarded"], 3 * N_FLOWS)
        return report["flows"], decisions, settings, events

    def test_a_table_too_small_breaks_flows_and_the_report_says_so(self):
        data = many_flows()
        flows, decisions, settings, events = self.run_many("small.jsonl", data, 1)
        self.assertGreater(flows["broken"], 500)
        self.assertEqual(flows["moved"], self.count(decisions))
        self.assertEqual(flows["broken"], flows["moved"])
        text = lib.run("-c", settings, "-e", events, "-", stdin=data).stdout.decode()
        self.assertIn(f"moved {flows['moved']}, broken {flows['broken']}", text)

        with_room, decisions, _, _ = self.run_many("large.jsonl", data, 4 * N_FLOWS)
        self.assertEqual(with_room["moved"], 0)
        self.assertEqual(with_room["moved"], self.count(decisions))


class Moved(lib.ReplayCase):
    def flows(self, packets, *events, settings=config(service(protocol="any", n=4))):
        result = self.replay(packets, settings, events=items(*events), write=False)
        self.backends = result.column("backend")
        return result.report["flows"]

    def backend_of(self, packet):
        settings = config(service(protocol="any", n=4))
        return self.replay([at(0, packet)], settings, write=False).decisions[0]["backend"]

    def test_a_flow_that_moves_twice_has_moved_once(self):
        packet = wire.udp(CLIENT, VIP, 7, 80)
        packets = [at(i, packet) for i in range(3)]
        first = self.backend_of(packet)
        self.flows(packets, {"at": "0.5s", "down": f"web/{first}"})
        second = self.backends[1]
        flows = self.flows(packets, {"at": "0.5s", "down": f"web/{first}"},
                           {"at": "1.5s", "down": f"web/{second}"})
        self.assertEqual(len(set(self.backends)), 3)
        self.assertEqual(flows, {"total": 1, "moved": 1, "broken": 0})

    def test_the_same_ports_again_are_another_flow(self):
        """After its time, and by another SYN: a new flow, which may go anywhere."""
        udp = wire.udp(CLIENT, VIP, 7, 80)
        first = self.backend_of(udp)
        flows = self.flows([at(0, udp), at(61, udp)], {"at": "1s", "drain": f"web/{first}"})
        self.assertEqual(flows, {"total": 2, "moved": 0, "broken": 0})
        self.assertEqual(len(set(self.backends)), 2)

        syns = [wire.tcp(CLIENT, VIP, 7, 80, wire.SYN, seq) for seq in (1, 2)]
        first = self.backend_of(syns[0])
        flows = self.flows([at(0, syns[0]), at(2, syns[1])],
                           {"at": "1s", "drain": f"web/{first}"})
        self.assertEqual(flows, {"total": 2, "moved": 0, "broken": 0})
        self.assertEqual(len(set(self.backends)), 2)

    def test_one_packet_has_nowhere_to_move(self):
        packets = [at(i, wire.udp(CLIENT, VIP, 100 + i, 80)) for i in range(20)]
        flows = self.flows(packets, {"at": "5s", "remove": "web/web-1"},
                           {"at": "9s", "remove": "web/web-2"})
        self.assertEqual(flows, {"total": 20, "moved": 0, "broken": 0})

    def test_a_flow_that_is_not_forwarded_for_a_while_has_not_moved(self):
        packet = wire.udp(CLIENT, VIP, 7, 80)
        first = self.backend_of(packet)
        others = [f"web-{i}" for i in range(1, 5) if f"web-{i}" != first]
        down = [{"at": "0.5s", "down": f"web/{name}"} for name in (first, *others)]
        flows = self.flows([at(i, packet) for i in range(3)], *down,
                           {"at": "1.5s", "up": f"web/{first}"})
        self.assertEqual(self.backends, [first, None, first])
        self.assertEqual((flows["moved"], flows["broken"]), (0, 0))


if __name__ == "__main__":
    lib.main()
