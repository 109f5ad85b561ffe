#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Usage, report, decisions, output: what each run of shunt-replay promises."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import captures
import lib
import wire
from lib import CLIENT, CLIENT6, FIRST_NS, VIP, VIP6, at, config, service

OPTIONS = ["config", "events", "write", "port", "workers", "report", "json", "decisions",
           "expect", "expect-output", "loop", "help", "version"]


def tcp(sport, **keys):
    return wire.tcp(CLIENT, VIP, sport, 80, **keys)


def some_packets():
    """Forwarded, for the kernel, dropped: a little of each."""
    return [
        at(0, tcp(1000, flags=wire.SYN)),
        at(0.1, tcp(1001, flags=wire.SYN)),
        at(0.2, tcp(1000, payload=b"hello")),
        at(0.3, wire.udp(CLIENT, VIP, 1000, 53)),
        at(0.4, tcp(1002, ttl=0)),
        at(0.5, tcp(1003, payload=b"x" * 100)),
    ]


class Usage(lib.ReplayCase):
    def test_help(self):
        for option in ("--help", "-h"):
            result = lib.run(option)
            self.assertEqual((result.status, result.stderr), (0, ""))
            for name in OPTIONS:
                self.assertIn(f"--{name}", result.stdout.decode())

    def test_version(self):
        for option in ("--version", "-V"):
            result = lib.run(option)
            self.assertEqual((result.status, result.stderr), (0, ""))
            self.assertRegex(result.stdout.decode(), r"^shunt-replay \d+\.\d+\.\d+\n$")

    def test_bad_usage(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        with_config = ["--config", self.put("c.yaml", config(service()))]
        rows = [
            ("nothing at all", []),
            ("no capture", with_config),
            ("two captures", with_config + [capture, capture]),
            ("no configuration", [capture]),
            ("an unknown option", with_config + ["--frobnicate", capture]),
            ("an unknown short option", with_config + ["-Z", capture]),
            ("an option without its value", [capture, "--config"]),
            ("a value that no option takes", with_config + ["--json=yes", capture]),
            ("no workers", with_config + ["--workers", "0", capture]),
            ("fewer workers than none", with_config + ["--workers", "-1", capture]),
            ("too many workers", with_config + ["--workers", "129", capture]),
            ("workers in words", with_config + ["--workers", "two", capture]),
            ("half a worker", with_config + ["--workers", "1.5", capture]),
            ("workers and blanks", with_config + ["--workers", " 2", capture]),
            ("an empty number", with_config + ["--workers", "", capture]),
            ("no loop", with_config + ["--loop", "0", capture]),
            ("a loop beyond 64 bits", with_config + ["--loop", "1" * 30, capture]),
            ("an unknown report", with_config + ["--report", "xml", capture]),
            ("standard input twice", with_config + ["--loop", "2", "-"]),
        ]
        for words, args in rows:
            with self.subTest(words):
                result = self.refuse(*args, status=2, says=["--help"])
                self.assertEqual(result.stdout, b"")

    def test_options_may_follow_the_capture(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        settings = self.put("c.yaml", config(service()))
        self.assertEqual(lib.run(capture, "-c", settings, "-j", "-n", "2").status, 0)


class Configuration(lib.ReplayCase):
    def test_a_bad_configuration_is_told_by_line_and_column(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("bad.yaml", "services:\n  - name: web\n    adress: 198.51.100.10\n"
                        "    protocol: tcp\n    port: 70000\n")
        out = self.folder / "out.pcap"
        result = self.refuse("--config", path, "--write", out, capture, status=2,
                             says=[f"{path}:3:5:", f"{path}:5:11:"])
        self.assertEqual(result.stdout, b"")
        self.assertFalse(out.exists())

    def test_an_unreadable_configuration(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        for path in (self.folder / "missing.yaml", self.folder):
            self.refuse("--config", path, capture, status=2, says=[str(path)])

    def test_without_services_all_goes_to_the_kernel(self):
        for text in (config(), "services: []\n"):
            result = self.replay(some_packets(), text)
            self.assertEqual(result.report["packets"]["forwarded"], 0)
            self.assertEqual(result.report["packets"]["to_kernel"], 5)
            self.assertEqual(result.report["drops"]["ttl_expired"], 1)
            self.assertEqual(result.output.packets, [])

    def test_without_ports_there_is_no_next_hop(self):
        result = self.replay(some_packets(), json.dumps({"services": [service()]}))
        self.assertEqual(result.report["drops"]["no_next_hop"], 4)

    def test_a_port_is_chosen_by_name(self):
        lan = {"name": "lan", "device": "net_null1", "addresses": ["10.9.9.9/24"],
               "next_hop": "02:00:00:00:00:aa"}
        settings = config(service(), dataplane={"ports": [lib.PORT, lan]})
        for args, source, mac in (((), lib.OUTER, lib.NEXT_HOP),
                                  (("--port", "wan"), lib.OUTER, lib.NEXT_HOP),
                                  (("-p", "lan"), "10.9.9.9", "02:00:00:00:00:aa")):
            result = self.replay([at(0, tcp(1))], settings, args=args)
            tunnel = wire.parse_tunnel(result.output.packets[0].data, "ipip")
            self.assertEqual((tunnel.outer.src, tunnel.frame.dst), (source, mac))

    def test_an_unknown_port(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("c.yaml", config(service()))
        out = self.folder / "out.pcap"
        self.refuse("--config", path, "--port", "dmz", "--write", out, capture, status=2,
                    says=["dmz", "wan"])
        self.assertFalse(out.exists())


class Report(lib.ReplayCase):
    def test_json(self):
        packets = some_packets()
        report = self.replay(packets).report
        self.assertEqual(report["packets"], {"received": 6, "forwarded": 4, "replied": 0,
                                             "to_kernel": 1, "dropped": 1})
        self.assertEqual(sorted(report["drops"]), sorted(lib.DROPS))
        self.assertEqual(report["drops"]["ttl_expired"], 1)
        web, = report["services"]
        self.assertEqual((web["name"], web["packets"], web["flows"]), ("web", 4, 3))
        self.assertEqual(web["bytes"], sum(len(packets[i].data) - 14 for i in (0, 1, 2, 5)))
        self.assertEqual(web["table"], {"algorithm": "maglev", "size": 65537})
        self.assertEqual([b["name"] for b in web["backends"]], ["web-1", "web-2", "web-3"])
        for backend in web["backends"]:
            self.assertLessEqual({"name", "packets", "bytes", "flows", "slots", "state"},
                                 set(backend))
            self.assertEqual(backend["state"], "up")
            self.assertIn(backend["slots"], (21845, 21846))
        self.assertEqual(sum(b["slots"] for b in web["backends"]), 65537)
        self.assertEqual(report["flows"], {"total": 3, "moved": 0, "broken": 0})
        self.assertEqual(sorted(report["rate"]), ["mpps", "seconds"])
        self.assertGreaterEqual(report["rate"]["seconds"], 0)

    def test_the_service_table_of_each_algorithm(self):
        for algorithm, size in (("maglev", 7), ("ring", 16384), ("rendezvous", 4096)):
            one = service(table={"algorithm": algorithm, "size": size}, n=2)
            report = self.replay(some_packets(), config(one)).report
            self.assertEqual(report["services"][0]["table"],
                             {"algorithm": algorithm, "size": size})

    def test_states_are_told(self):
        one = service()
        one["backends"][0]["state"] = "drain"
        one["backends"][1]["state"] = "down"
        report = self.replay(some_packets(), config(one)).report
        found = [(b["state"], b["slots"], b["packets"]) for b in
                 report["services"][0]["backends"]]
        self.assertEqual(found, [("drain", 0, 0), ("down", 0, 0), ("up", 65537, 4)])

    def test_text_is_the_default_and_tells_the_same(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("c.yaml", config(service()))
        text = lib.run("--config", path, capture)
        self.assertEqual((text.status, text.stderr), (0, ""))
        words = text.stdout.decode()
        self.assertEqual(strip_rate(words),
                         strip_rate(lib.run("--report", "text", "--config", path,
                                            capture).stdout.decode()))
        for pattern in (r"received +6\b", r"forwarded +4\b", r"kernel +1\b", r"dropped +1\b",
                        r"\b1 +ttl_expired", r"service web", r"total 3, moved 0, broken 0"):
            self.assertRegex(words, pattern)
        for name in ("web-1", "web-2", "web-3"):
            self.assertIn(name, words)

    def test_json_is_report_json(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("c.yaml", config(service()))
        reports = []
        for args in (["--json"], ["-j"], ["--report", "json"], ["-r", "json"]):
            report = json.loads(lib.run("--config", path, *args, capture).stdout)
            del report["rate"]
            reports.append(report)
        self.assertTrue(all(report == reports[0] for report in reports))


class Decisions(lib.ReplayCase):
    def test_one_line_a_packet_with_every_key(self):
        result = self.replay(some_packets())
        for number, decision in enumerate(result.decisions, 1):
            self.assertEqual(list(decision), lib.DECISION_KEYS)
            self.assertEqual(decision["packet"], number)
        self.assertEqual(result.column("verdict"), ["forward"] * 3 +
                         ["kernel", "drop", "forward"])
        self.assertEqual(result.column("flow"), ["miss", "miss", "hit", "none", "none", "miss"])
        self.assertEqual(result.column("reason"), [None] * 4 + ["ttl_expired", None])
        self.assertEqual(result.column("service"), ["web"] * 3 + [None, None, "web"])
        for decision in result.decisions:
            is_forward = decision["verdict"] == "forward"
            self.assertEqual(decision["backend"] is not None, is_forward)
            if decision["flow"] == "miss":
                self.assertIn(decision["slot"], range(65537))
            else:
                self.assertIsNone(decision["slot"])

    def test_to_standard_output(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("c.yaml", config(service()))
        result = lib.run("-c", path, "-j", "-d", "-", capture)
        self.assertEqual(result.status, 0)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["packet"] for line in lines], [1, 2, 3, 4, 5, 6])
        self.assertEqual(json.loads(result.stderr)["packets"]["received"], 6)

    def test_names_are_escaped(self):
        one = service("dash \"board\" \\ \u00fc", n=0)
        one["backends"] = [{"name": "say \"hi\"", "address": "10.0.0.1"}]
        result = self.replay([at(0, tcp(1))], config(one))
        self.assertEqual(result.decisions[0]["service"], "dash \"board\" \\ \u00fc")
        self.assertEqual(result.decisions[0]["backend"], "say \"hi\"")


class Output(lib.ReplayCase):
    def expected(self, packet, backend_address, **frame):
        """An IPIP frame, built here."""
        proto = 4 if packet[0] >> 4 == 4 else 41
        tos = packet[1] if proto == 4 else (packet[0] << 8 | packet[1]) >> 4 & 0xFF
        outer = wire.ipv4(lib.OUTER, backend_address, proto, packet, tos=tos, fragment=0x4000)
        return wire.ether(outer, src=wire.OWN_MAC, dst=lib.NEXT_HOP, **frame)

    def test_ipip_to_the_byte(self):
        tags = ((0x88A8, 0x6005), (0x8100, 0x0007))
        rows = [
            ("plain", tcp(1, payload=b"abc"), {}),
            ("DSCP and ECN", tcp(2, tos=0xB9), {}),
            ("a CE mark", tcp(3, tos=0x03), {}),
            ("one tag", tcp(4), {"tags": tags[1:]}),
            ("two tags", tcp(5), {"tags": tags}),
            ("options", tcp(6, options=b"\x94\x04\0\0"), {}),
            ("the inner TTL stays", tcp(7, ttl=1), {}),
            ("IPv6 inside", wire.tcp(CLIENT6, VIP6, 8, 80, tos=0x2E), {}),
            ("IPv6 with two tags", wire.tcp(CLIENT6, VIP6, 9, 80), {"tags": tags}),
        ]
        settings = config(service(n=1), service("web6", n=1, address=VIP6))
        packets = [at(i, packet, **frame) for i, (_, packet, frame) in enumerate(rows)]
        result = self.replay(packets, settings)
        self.assertEqual(len(result.output.packets), len(rows))
        for (words, packet, frame), found in zip(rows, result.output.packets):
            with self.subTest(words):
                self.assertEqual(found.data.hex(),
                                 self.expected(packet, "10.0.0.11", **frame).hex())
                self.assertEqual(found.wire, len(found.data))

    def test_padding_is_not_encapsulated(self):
        packet = wire.udp(CLIENT, VIP, 1, 80, b"x")
        frame = wire.ether(packet) + b"\xee" * 17
        result = self.replay([captures.Packet(frame, FIRST_NS)],
                             config(service(protocol="udp", n=1)))
        self.assertEqual(result.output.packets[0].data, self.expected(packet, "10.0.0.11"))
        self.assertEqual(result.report["services"][0]["bytes"], len(packet))

    def test_a_udp_checksum_of_zero_stays(self):
        bare = wire.struct.pack("!HHHH", 5, 80, 12, 0) + b"data"
        for src, dst in ((CLIENT, VIP), (CLIENT6, VIP6)):
            packet = wire.ip(src, dst, wire.UDP, bare)
            one = service(protocol="udp", n=1, address=dst)
            result = self.replay([at(0, packet)], config(one))
            self.assertEqual(result.output.packets[0].data, self.expected(packet, "10.0.0.11"))

    def test_timestamps_and_precision_are_the_input_s(self):
        frame = wire.ether(tcp(1))
        times = [FIRST_NS, FIRST_NS + 1, FIRST_NS + 999, FIRST_NS + 1000, FIRST_NS + 10**10 + 7]
        packets = [captures.Packet(frame, time_ns) for time_ns in times]
        for make in (captures.pcap, captures.pcapng):
            for order in "<>":
                for is_nano in (False, True):
                    with self.subTest(make=make.__name__, order=order, is_nano=is_nano):
                        result = self.replay(make(packets, order, is_nano))
                        unit = 1 if is_nano else 1000
                        self.assertEqual(result.output.is_nano, is_nano)
                        self.assertEqual([p.time_ns for p in result.output.packets],
                                         [time_ns // unit * unit for time_ns in times])
                        self.assertEqual(result.output.linktype, captures.ETHERNET)

    def test_time_does_not_turn_back(self):
        frame = wire.ether(tcp(1))
        times = [FIRST_NS, FIRST_NS + 5000, FIRST_NS + 2000, FIRST_NS + 6000]
        packets = [captures.Packet(frame, time_ns) for time_ns in times]
        found = self.replay(packets).output.packets
        self.assertEqual([p.time_ns - FIRST_NS for p in found], [0, 5000, 5000, 6000])

    def test_packets_without_a_time_take_the_last(self):
        frame = wire.ether(tcp(1))
        data = captures.pcapng([captures.Packet(frame, FIRST_NS)]) + captures.pcapng_packet(
            captures.Packet(frame), kind=3)
        found = self.replay(data).output.packets
        self.assertEqual([p.time_ns for p in found], [FIRST_NS, FIRST_NS])

    def test_every_kind_of_pcapng_block(self):
        packets = [at(0, tcp(1)), at(1, tcp(2))]
        for kind in (2, 3, 6):
            for order in "<>":
                found = self.replay(captures.pcapng(packets, order, kind=kind)).output.packets
                self.assertEqual(len(found), 2)
                self.assertTrue(found[0].data.endswith(packets[0].data[14:]))

    def test_every_linktype_gives_the_same_packets(self):
        four, six = tcp(1), wire.tcp(CLIENT6, VIP6, 1, 80)
        settings = config(service(n=1), service("web6", n=1, address=VIP6))
        for linktype, make in LINKS:
            for order in "<>":
                with self.subTest(linktype=linktype, order=order):
                    rows = [p for p in (four, six) if make(p, order) is not None]
                    packets = [captures.Packet(make(p, order), FIRST_NS) for p in rows]
                    result = self.replay(captures.pcap(packets, order, linktype=linktype),
                                         settings)
                    found = [wire.parse_tunnel(p.data, "ipip") for p in result.output.packets]
                    self.assertEqual([tunnel.inner for tunnel in found], rows)

    def test_to_standard_output_with_the_report_on_standard_error(self):
        capture = self.put("in.pcap", captures.pcap(some_packets()))
        path = self.put("c.yaml", config(service()))
        out = self.folder / "out.pcap"
        lib.run("-c", path, "-w", out, capture)
        result = lib.run("-c", path, "-j", "-w", "-", capture)
        self.assertEqual(result.stdout, out.read_bytes())
        self.assertEqual(json.loads(result.stderr)["packets"]["forwarded"], 4)


def null_header(packet, order):
    family = 2 if packet[0] >> 4 == 4 else 30
    return captures.struct.pack(order + "I", family) + packet


def loop_header(packet, _):
    return null_header(packet, ">")


def sll_header(packet, _):
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return captures.struct.pack("!HHH8sH", 0, 1, 6, b"\2\0\0\0\0\1\0\0", kind) + packet


def sll2_header(packet, _):
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return captures.struct.pack("!HHIHBB8s", kind, 0, 1, 1, 0, 6, b"\2\0\0\0\0\1\0\0") + packet


def only(version):
    return lambda packet, _: packet if packet[0] >> 4 == version else None


LINKS = [
    (captures.ETHERNET, lambda packet, _: wire.ether(packet)),
    (captures.RAW, lambda packet, _: packet),
    (12, lambda packet, _: packet),
    (captures.IPV4, only(4)),
    (captures.IPV6, only(6)),
    (captures.NULL, null_header),
    (captures.LOOP, loop_header),
    (captures.SLL, sll_header),
    (captures.SLL2, sll2_header),
]


def strip_rate(text):
    return re.sub(r"\nrate\n.*", "", text, flags=re.DOTALL)


class Running(lib.ReplayCase):
    def setUp(self):
        super().setUp()
        self.settings = self.put("c.yaml", config(service()))

    def command(self, name, source):
        return ["-c", self.settings, "-j", "-w", self.folder / f"{name}.pcap",
                "-d", self.folder / f"{name}.jsonl", source]

    def outputs(self, name, report):
        report = json.loads(report)
        del report["rate"]
        return (report, (self.folder / f"{name}.pcap").read_bytes(),
                (self.folder / f"{name}.jsonl").read_bytes())

    def test_standard_input_is_streamed(self):
        data = captures.pcap(some_packets())
        source = self.put("in.pcap", data)
        file = lib.run(*self.command("file", source))
        piped = lib.run(*self.command("piped", "-"), stdin=data)
        self.assertEqual(self.outputs("file", file.stdout), self.outputs("piped", piped.stdout))

        with subprocess.Popen([lib.PROGRAM, *map(str, self.command("slow", "-"))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for start in range(0, len(data), 23):
                process.stdin.write(data[start:start + 23])
                process.stdin.flush()
            slow, _ = process.communicate(timeout=lib.TIMEOUT_S)
        self.assertEqual(self.outputs("file", file.stdout), self.outputs("slow", slow))

    def test_a_run_is_repeatable_to_the_byte(self):
        source = self.put("in.pcap", captures.pcap(some_packets()))
        first = lib.run(*self.command("first", source))
        second = lib.run(*self.command("second", source))
        self.assertEqual(self.outputs("first", first.stdout),
                         self.outputs("second", second.stdout))

    def test_two_at_the_same_time(self):
        source = self.put("in.pcap", captures.pcap(some_packets() * 2000))
        running = []
        for name in ("one", "two", "three"):
            command = [lib.PROGRAM, *map(str, self.command(name, source))]
            # pylint: disable-next=consider-using-with
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        reports = [process.communicate(timeout=lib.TIMEOUT_S)[0] for process in running]
        self.assertEqual([process.returncode for process in running], [0, 0, 0])
        self.assertEqual(self.outputs("one", reports[0]), self.outputs("two", reports[1]))
        self.assertEqual(self.outputs("one", reports[0]), self.outputs("three", reports[2]))

    @unittest.skipIf(os.getuid() != 0, "only root can become nobody; the others are nobody")
    def test_it_needs_no_privileges(self):
        # Where nobody can get at it: the build folder may be root's own.
        program = pathlib.Path(shutil.copy(lib.PROGRAM, self.folder / "program"))
        program.chmod(0o755)
        self.folder.chmod(0o777)
        source = self.put("in.pcap", captures.pcap(some_packets()))
        as_root = lib.run(*self.command("root", source))
        command = [program, *self.command("nobody", source)]
        done = subprocess.run([str(word) for word in command], user="nobody", group="nogroup",
                              extra_groups=[], capture_output=True, check=False, cwd="/",
                              env={"HOME": "/nonexistent"}, timeout=lib.TIMEOUT_S)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.outputs("nobody", done.stdout),
                         self.outputs("root", as_root.stdout))


if __name__ == "__main__":
    lib.main()
