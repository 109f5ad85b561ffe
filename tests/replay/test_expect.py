#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""--expect and --expect-output: what holds, what does not, and what is said of it."""

import captures
import lib
import wire
from lib import CLIENT, VIP, at, config, items, service

PACKETS = [
    at(0, wire.tcp(CLIENT, VIP, 1000, 80, wire.SYN)),
    at(1, wire.tcp(CLIENT, VIP, 1000, 80)),
    at(2, wire.tcp(CLIENT, VIP, 1001, 80, ttl=0)),
    at(3, wire.tcp(CLIENT, VIP, 1001, 81)),
    at(4, wire.udp(CLIENT, VIP, 1000, 80)),
    at(5, wire.udp(CLIENT, VIP, 1001, 80)),
]
# All of web's flows are on its one backend with a weight; dns has two.
WEB = service(n=2)
WEB["backends"][1]["weight"] = 0
SETTINGS = config(WEB, service("dns", protocol="udp"))


class Expectations(lib.ReplayCase):
    def test_each_kind(self):
        first = self.replay(PACKETS, SETTINGS).decisions[0]
        dns = self.replay(PACKETS, SETTINGS).report["services"][1]["backends"]
        shares = {b["name"]: b["flows"] / 2 for b in dns}
        rows = [  # the item, whether it holds
            ({"value": "flows.broken", "max": 0}, True),
            ({"value": "flows.total", "is": 3}, True),
            ({"value": "flows.total", "is": 4}, False),
            ({"value": "flows.total", "min": 3, "max": 3}, True),
            ({"value": "flows.total", "min": 4}, False),
            ({"value": "flows.total", "max": 2}, False),
            ({"value": "packets.received", "is": 6}, True),
            ({"value": "packets.forwarded", "min": 5}, False),
            ({"value": "drops.ttl_expired", "is": 1}, True),
            ({"value": "drops.tx_full", "is": 0}, True),
            ({"value": "services.web.packets", "is": 2}, True),
            ({"value": "services.web.packets", "is": 3}, False),
            ({"value": "services.web.backends.web-1.flows", "is": 1}, True),
            ({"value": "services.web.table.size", "is": 65537}, True),
            ({"value": "services.web.backends.web-2.slots", "max": 0}, True),
            ({"value": "services.wbe.packets", "is": 2}, False),
            ({"value": "flows.lost", "max": 0}, False),
            ({"value": "rate.mpps", "min": 0}, True),
            ({"value": "schema", "is": 1}, True),
            ({"share": "web/web-1", "is": 1}, True),
            ({"share": "web/web-1", "min": 0.45, "max": 0.55}, False),
            ({"share": "web/web-2", "max": 0}, True),
            ({"share": "dns/dns-1", "is": shares["dns-1"]}, True),
            ({"share": "dns/dns-1", "min": 0, "max": 1}, True),
            ({"share": "web/web-9", "max": 1}, False),
            ({"packet": 1, "verdict": "forward"}, True),
            ({"packet": 1, "verdict": "forward", "backend": "web-1"}, True),
            ({"packet": 1, "verdict": "forward", "backend": "web/web-1"}, True),
            ({"packet": 1, "backend": "dns/web-1"}, False),
            ({"packet": 1, "backend": "web-2"}, False),
            ({"packet": 1, "service": "web", "flow": "miss", "reason": None}, True),
            ({"packet": 1, "slot": first["slot"]}, True),
            ({"packet": 1, "slot": (first["slot"] + 1) % 65537}, False),
            ({"packet": 2, "flow": "hit", "slot": None}, True),
            ({"packet": 2, "flow": "miss"}, False),
            ({"packet": 3, "verdict": "drop", "reason": "ttl_expired"}, True),
            ({"packet": 3, "reason": "truncated"}, False),
            ({"packet": 3, "reason": None}, False),
            ({"packet": 4, "verdict": "kernel", "service": None, "backend": None}, True),
            ({"packet": 4, "verdict": "drop"}, False),
            ({"packet": 7, "verdict": "forward"}, False),
            ({"drops": "ttl_expired", "is": 1}, True),
            ({"drops": "ttl_expired", "max": 0}, False),
            ({"drops": "truncated", "is": 2}, False),
            ({"drops": "truncated", "max": 0}, True),
        ]
        held = [item for item, holds in rows if holds]
        result = self.replay(PACKETS, SETTINGS, expect=items(*held))
        self.assertEqual(result.stderr, "")

        result = self.replay(PACKETS, SETTINGS, expect=items(*[item for item, _ in rows]),
                             status=3)
        lines = result.stderr.splitlines()
        path = self.folder / "expect.yaml"
        told = [int(line.split(":")[1]) for line in lines if line.startswith(f"{path}:")]
        self.assertEqual(told, [n for n, (_, holds) in enumerate(rows, 1) if not holds])
        self.assertEqual(len(lines), len(told))

    def test_what_was_found_is_told(self):
        rows = [({"value": "flows.total", "is": 4}, ["flows.total", "3"]),
                ({"share": "web/web-1", "max": 0.5}, ["web/web-1", "1"]),
                ({"packet": 3, "verdict": "forward"}, ["3", "drop", "ttl_expired"]),
                ({"packet": 1, "backend": "web-2"}, ["web-1"]),
                ({"packet": 9, "backend": "web-2"}, ["9", "6"]),
                ({"drops": "ttl_expired", "is": 0}, ["ttl_expired", "1"])]
        result = self.replay(PACKETS, SETTINGS, expect=items(*[item for item, _ in rows]),
                             status=3)
        for line, (_, says) in zip(result.stderr.splitlines(), rows, strict=True):
            for text in says:
                self.assertIn(text, line)

    def test_a_bad_file_is_told_before_anything_is_written(self):
        rows = [
            {"value": "flows.total"},
            {"value": "flows.total", "is": 1, "max": 2},
            {"value": "flows.total", "min": 3, "max": 2},
            {"value": "flows.total", "is": "many"},
            {"share": "web/web-1", "max": 45},
            {"share": "web-1", "max": 0.5},
            {"packet": 1},
            {"packet": 0, "verdict": "forward"},
            {"packet": 1, "verdict": "forwarded"},
            {"packet": 1, "reason": "because"},
            {"packet": 1, "flow": "maybe"},
            {"packet": 1, "max": 2},
            {"drops": "because", "is": 1},
            {"drops": "truncated", "value": "flows.total", "is": 1},
            {"is": 1},
            {"valeu": "flows.total", "is": 1},
            "flows.total",
        ]
        path = self.put("expect.yaml", items(*rows))
        out = self.folder / "new.pcap"
        settings = self.put("c.yaml", SETTINGS)
        capture = self.put("in.pcap", captures.pcap(PACKETS))
        result = self.refuse("-c", settings, "-x", path, "-w", out, capture, status=2,
                             says=[f"{path}:{line}:" for line in range(1, len(rows) + 1)])
        self.assertEqual(result.stdout, b"")
        self.assertFalse(out.exists())
        for text in ("value: flows.total\n", "- {value: flows.total\n"):
            self.refuse("-c", settings, "-x", self.put("x.yaml", text), capture, status=2)
        self.refuse("-c", settings, "-x", self.folder / "missing.yaml", capture, status=2)

    def test_an_empty_list_holds(self):
        self.replay(PACKETS, SETTINGS, expect="[]\n")


class ExpectedOutput(lib.ReplayCase):
    def setUp(self):
        super().setUp()
        self.output = self.replay(PACKETS, SETTINGS).output.packets

    def compare(self, data, status, *says):
        path = self.put("expected.pcap", data)
        result = self.replay(PACKETS, SETTINGS, args=["--expect-output", path], status=status)
        if status != 0:
            self.assertIn(str(path), result.stderr)
        for text in says:
            self.assertRegex(result.stderr, text)
        self.assertEqual(result.output.packets, self.output)

    def changed(self, number, at_byte):
        """The output with one byte of one packet (from 1) another."""
        packets = list(self.output)
        data = bytearray(packets[number - 1].data)
        data[at_byte] ^= 0xFF
        packets[number - 1] = captures.Packet(bytes(data), packets[number - 1].time_ns)
        return captures.pcap(packets)

    def test_the_same(self):
        self.compare(captures.pcap(self.output), 0)

    def test_the_same_in_another_format(self):
        self.compare(captures.pcapng(self.output, ">", is_nano=True), 0)

    def test_another_byte(self):
        for number, at_byte in ((1, 0), (2, 33), (4, len(self.output[3].data) - 1)):
            self.compare(self.changed(number, at_byte), 3, rf"packet {number}\b",
                         rf"byte {at_byte}\b")

    def test_only_the_first_difference_is_told(self):
        data = captures.pcap([captures.Packet(b"\0" * 60)] * 4)
        path = self.put("expected.pcap", data)
        result = self.replay(PACKETS, SETTINGS, args=["-o", path], status=3)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("packet 1 ", result.stderr)

    def test_a_packet_that_is_shorter_or_longer(self):
        for change in (lambda data: data[:-1], lambda data: data + b"\0"):
            packets = list(self.output)
            packets[1] = captures.Packet(change(packets[1].data))
            self.compare(captures.pcap(packets), 3, r"packet 2\b", r"byte \d+\b")

    def test_missing_and_extra_packets(self):
        self.compare(captures.pcap(self.output[:3]), 3, r"packet 4\b")
        self.compare(captures.pcap([]), 3, r"packet 1\b")
        self.compare(captures.pcap(self.output + [self.output[0]]), 3, r"packet 5\b")

    def test_a_capture_that_cannot_be_read_is_no_difference(self):
        for name, data in (("missing.pcap", None), ("text.pcap", b"not a capture\n")):
            path = self.folder / name
            if data is not None:
                path = self.put(name, data)
            settings = self.put("c.yaml", SETTINGS)
            capture = self.put("in.pcap", captures.pcap(PACKETS))
            self.refuse("-c", settings, "-o", path, capture, status=1, says=[str(path)])

    def test_a_failure_is_worse_than_a_difference(self):
        cut = captures.pcap(PACKETS)[:-3]
        path = self.put("expected.pcap", self.changed(1, 20))
        result = self.replay(cut, SETTINGS, args=["-o", path], status=1)
        self.assertIn("packet 6", result.stderr)


if __name__ == "__main__":
    lib.main()
