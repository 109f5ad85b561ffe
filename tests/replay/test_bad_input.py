#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures that cannot be read or end badly, and outputs that cannot be written."""

import gzip
import json
import os
import resource
import struct
import subprocess

import captures
import lib
import wire
from lib import CLIENT, VIP, at, config, service


def udp(i, size=20):
    return wire.udp(CLIENT, VIP, 1000 + i, 80, bytes([i % 256]) * size)


SETTINGS = config(service(protocol="udp"))
PACKETS = [at(i / 10, udp(i)) for i in range(10)]


class Unreadable(lib.ReplayCase):
    def refuse_capture(self, path, *says, stdin=b""):
        """No report, no output: there was nothing to replay."""
        out = self.folder / "new.pcap"
        result = self.refuse("-c", self.put("c.yaml", SETTINGS), "-w", out, "-j", path,
                             status=1, says=says, stdin=stdin)
        self.assertEqual(result.stdout, b"")
        self.assertFalse(out.exists())

    def test_missing(self):
        path = self.folder / "missing.pcap"
        self.refuse_capture(path, str(path), "No such file")

    def test_a_directory(self):
        self.refuse_capture(self.folder, str(self.folder), "directory")

    def test_what_is_no_capture(self):
        data = captures.pcap(PACKETS)
        rows = [
            ("an empty file", b"", "empty"),
            ("a text file", b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "text"),
            ("snoop", b"snoop\0\0\0" + b"\0\0\0\2\0\0\0\4" + data, "snoop"),
            ("gzip", gzip.compress(data), "gzip"),
            ("noise", bytes(range(128, 256)), "pcap"),
            ("two bytes", data[:2], "2 bytes"),
            ("half a header", data[:12], "header"),
            ("a later version", data[:4] + b"\3\0\0\0" + data[8:], "version"),
        ]
        for words, content, says in rows:
            with self.subTest(words):
                path = self.put("in.bin", content)
                self.refuse_capture(path, str(path), says)
                self.refuse_capture("-", "standard input", says, stdin=content)

    def test_linktypes_by_name(self):
        for number, name in ((105, "IEEE802_11"), (127, "IEEE802_11_RADIO"), (147, "147"),
                             (9, "PPP"), (189, "USB_LINUX"), (65000, "65000")):
            with self.subTest(name):
                data = captures.pcap(PACKETS, linktype=number)
                self.refuse_capture(self.put("in.pcap", data), name, str(number))
        self.refuse_capture(self.put("in.pcapng", captures.pcapng(PACKETS, linktype=105)),
                            "IEEE802_11")


class Damaged(lib.ReplayCase):
    def broken_at(self, data, number):
        """What came before packet `number` is replayed, reported and written."""
        result = self.replay(data, SETTINGS, status=1)
        self.assertRegex(result.stderr, rf"\bpacket {number}\b")
        self.assertEqual(result.column("packet"), list(range(1, number)))
        self.assertEqual(result.report["packets"]["received"], number - 1)
        self.assertEqual(len(result.output.packets), number - 1)
        for found, packet in zip(result.output.packets, PACKETS):
            self.assertTrue(found.data.endswith(packet.data[14:]))

    def test_it_ends_in_a_packet(self):
        data = captures.pcap(PACKETS)
        size = len(captures.pcap_record(PACKETS[0]))
        for cut in (1, 15, 16, 17, size - 1):
            for whole in (0, 3, 9):
                with self.subTest(cut=cut, whole=whole):
                    self.broken_at(data[:24 + whole * size + cut], whole + 1)

    def test_it_may_end_between_packets(self):
        data = captures.pcap(PACKETS)
        size = len(captures.pcap_record(PACKETS[0]))
        for whole in (0, 1, 9):
            result = self.replay(data[:24 + whole * size], SETTINGS)
            self.assertEqual(result.report["packets"]["received"], whole)

    def test_pcapng_ends_in_a_block(self):
        for order in "<>":
            data = captures.pcapng(PACKETS, order)
            size = len(captures.pcapng_packet(PACKETS[0], order))
            begin = len(data) - size * len(PACKETS)
            for cut in (1, 7, 8, 30, size - 1):
                for whole in (0, 5):
                    with self.subTest(order=order, cut=cut, whole=whole):
                        self.broken_at(data[:begin + whole * size + cut], whole + 1)

    def test_lengths_that_cannot_be(self):
        size = len(captures.pcap_record(PACKETS[0]))
        for name, offset, value in (("captured", 8, 0xFFFFFFFF), ("captured", 8, 300_000),
                                    ("on the wire", 12, 3)):
            with self.subTest(name, value=value):
                data = bytearray(captures.pcap(PACKETS))
                struct.pack_into("<I", data, 24 + 4 * size + offset, value)
                self.broken_at(bytes(data), 5)

    def test_pcapng_lengths_that_cannot_be(self):
        size = len(captures.pcapng_packet(PACKETS[0]))
        for offset, value in ((4, 0), (4, 11), (4, 0xFFFFFFF0), (20, 0xFFFFFFFF),
                              (size - 4, 8), (8, 7)):
            with self.subTest(offset=offset, value=value):
                data = bytearray(captures.pcapng(PACKETS))
                begin = len(data) - 6 * size
                struct.pack_into("<I", data, begin + offset, value)
                self.broken_at(bytes(data), 5)

    def test_a_linktype_that_changes(self):
        data = captures.pcapng(PACKETS[:3]) + captures.pcapng_interface(linktype=101)
        other = captures.Packet(udp(3), PACKETS[3].time_ns)
        data += captures.pcapng_packet(other, interface=1)
        self.broken_at(data, 4)

    def test_by_standard_input_too(self):
        data = captures.pcap(PACKETS)[:-5]
        decisions = self.folder / "d.jsonl"
        result = lib.run("-c", self.put("c.yaml", SETTINGS), "-j", "-d", decisions, "-",
                         stdin=data)
        self.assertEqual(result.status, 1)
        self.assertIn("packet 10", result.stderr)
        self.assertEqual(json.loads(result.stdout)["packets"]["received"], 9)
        self.assertEqual(len(decisions.read_text(encoding="utf-8").splitlines()), 9)

    def test_the_second_pass_of_a_loop_may_fail_too(self):
        data = captures.pcap(PACKETS)[:-5]
        result = self.replay(data, SETTINGS, status=1, args=["--loop", "3"])
        self.assertEqual(result.report["packets"]["received"], 9)

    def test_every_cut_of_a_small_capture(self):
        """None crashes, and none is more than it holds."""
        data = captures.pcapng(PACKETS[:2])
        settings = self.put("c.yaml", SETTINGS)
        for n in range(0, len(data), 9):
            with self.subTest(bytes=n):
                result = lib.run("-c", settings, "-j", "-", stdin=data[:n])
                self.assertIn(result.status, (0, 1), result.stderr)
                if result.stdout:
                    self.assertLessEqual(json.loads(result.stdout)["packets"]["received"], 1)

    def test_an_empty_capture(self):
        for data in (captures.pcap([]), captures.pcap([], ">", True), captures.pcapng([])):
            result = self.replay(data, SETTINGS)
            self.assertEqual(result.report["packets"]["received"], 0)
            self.assertEqual(result.decisions, [])
            self.assertEqual(result.output.packets, [])


def limit_files(n_bytes):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


class OneFile(lib.ReplayCase):
    """What is read, or written already, is not written over, by whatever name."""

    def setUp(self):
        super().setUp()
        self.data = captures.pcap(PACKETS)
        self.capture = self.put("in.pcap", self.data)
        self.settings = self.put("c.yaml", SETTINGS)

    def refused(self, *args, **popen):
        result = lib.run("-c", self.settings, *args, **popen)
        self.assertEqual(result.status, 2, result.stderr)
        self.assertEqual(self.capture.read_bytes(), self.data)

    def test_the_capture(self):
        (self.folder / "link").symlink_to(self.capture)
        for name in ("in.pcap", "./in.pcap", "link"):
            self.refused("--write", self.folder / name, self.capture)
            self.refused("--decisions", self.folder / name, self.capture)

    def test_the_capture_as_a_standard_stream(self):
        for option in ("--write", "--decisions"):
            with open(self.capture, "rb") as stream:
                command = [lib.PROGRAM, "-c", self.settings, option, self.capture, "-"]
                done = subprocess.run(command, stdin=stream, capture_output=True, check=False,
                                      timeout=lib.TIMEOUT_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(self.capture.read_bytes(), self.data)
        with open(self.capture, "ab") as stream:
            self.refused("--write", "-", self.capture, stdout=stream)

    def test_two_outputs(self):
        new = self.folder / "new"
        self.refused("--write", new, "--decisions", f"{self.folder}/./new", self.capture)
        self.refused("--write", "-", "--decisions", "-", self.capture)

    def test_the_report_makes_way(self):
        out = self.folder / "out"
        for option in ("--write", "--decisions"):
            with open(out, "wb") as stream:
                result = lib.run("-c", self.settings, option, out, self.capture, stdout=stream)
            self.assertEqual(result.status, 0, result.stderr)
            self.assertIn("packets", result.stderr)
            self.assertNotIn(b"\npackets", out.read_bytes())

    def test_a_pipe_is_read_once(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        self.refused("--loop", "2", fifo)


class Unwritable(lib.ReplayCase):
    def setUp(self):
        super().setUp()
        self.settings = self.put("c.yaml", SETTINGS)
        self.capture = self.put("in.pcap", captures.pcap(PACKETS))

    def run_it(self, *args, **popen):
        return lib.run("-c", self.settings, *args, self.capture, **popen)

    def test_no_such_folder(self):
        for option in ("--write", "--decisions"):
            path = self.folder / "no" / "such"
            result = self.run_it(option, path)
            self.assertEqual(result.status, 1)
            self.assertIn(str(path), result.stderr)
            self.assertEqual(result.stdout, b"")

    def test_a_directory(self):
        for option in ("--write", "--decisions"):
            result = self.run_it(option, self.folder)
            self.assertEqual(result.status, 1)
            self.assertIn(str(self.folder), result.stderr)

    def test_a_full_device(self):
        for option in ("--write", "--decisions"):
            result = self.run_it(option, "/dev/full")
            self.assertEqual(result.status, 1, option)
            self.assertIn("/dev/full", result.stderr)
            self.assertIn("No space left", result.stderr)
        for args in ((), ("-j",), ("-d", "-"), ("-w", "-")):
            with open("/dev/full", "wb") as full:
                result = self.run_it(*args, stdout=full)
            self.assertEqual(result.status, 1, args)
            self.assertNotEqual(result.stderr, "")

    def test_a_disk_that_fills_up_leaves_a_valid_capture(self):
        """Here it is a limit, which is met in the same way as a full disk."""
        large = captures.pcap([at(i / 1000, udp(i, 900)) for i in range(3000)])
        self.capture = self.put("large.pcap", large)
        out = self.folder / "out.pcap"
        self.assertEqual(self.run_it("-w", out).status, 0)
        whole = captures.read(out.read_bytes()).packets
        for limit in (24, 1000, 100_000, 1_048_576, 2_500_000):
            with self.subTest(limit=limit):
                result = self.run_it("-w", out, "-j", preexec_fn=limit_files(limit))
                self.assertEqual(result.status, 1)
                self.assertIn(str(out), result.stderr)
                self.assertIn("File too large", result.stderr)
                found = captures.read(out.read_bytes()).packets
                self.assertEqual(found, whole[:len(found)])
                self.assertLessEqual(out.stat().st_size, limit)
                self.assertGreater(out.stat().st_size, limit - 1000)

    def test_a_limit_on_decisions(self):
        path = self.folder / "d.jsonl"
        result = self.run_it("-d", path, preexec_fn=limit_files(500))
        self.assertEqual(result.status, 1)
        self.assertIn(str(path), result.stderr)

    def test_a_reader_that_goes_away(self):
        large = self.put("large.pcap", captures.pcap(PACKETS * 5000))
        for option in ("-w", "-d"):
            command = [lib.PROGRAM, "-c", str(self.settings), option, "-", str(large)]
            with subprocess.Popen(command, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                process.stdout.read(10)
                process.stdout.close()
                stderr = process.stderr.read()
                self.assertEqual(process.wait(lib.TIMEOUT_S), 1, option)
            self.assertNotEqual(stderr, b"")

    def test_standard_output_that_is_closed(self):
        """Nothing else may take its place and get the report."""
        out, decisions = self.folder / "out.pcap", self.folder / "d.jsonl"
        result = self.run_it("-j", "-w", out, "-d", decisions, preexec_fn=lambda: os.close(1))
        self.assertEqual(result.status, 1, result.stderr)
        self.assertNotEqual(result.stderr, "")
        self.assertEqual(len(captures.read(out.read_bytes()).packets), len(PACKETS))
        for line in decisions.read_text(encoding="utf-8").splitlines():
            self.assertEqual(list(json.loads(line)), lib.DECISION_KEYS)

    def test_all_standard_streams_closed(self):
        out, decisions = self.folder / "out.pcap", self.folder / "d.jsonl"
        result = self.run_it("-j", "-w", out, "-d", decisions,
                             preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(result.status, 1)
        self.assertEqual(len(captures.read(out.read_bytes()).packets), len(PACKETS))
        self.assertEqual(len(decisions.read_text(encoding="utf-8").splitlines()), len(PACKETS))

    def test_an_input_is_not_overwritten(self):
        before = self.capture.read_bytes()
        for option in ("--write", "--decisions"):
            result = self.run_it(option, self.capture)
            self.assertNotEqual(result.status, 0, option)
            self.assertEqual(self.capture.read_bytes(), before, option)


if __name__ == "__main__":
    lib.main()
