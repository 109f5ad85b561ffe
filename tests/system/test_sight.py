#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is seen of packets under live traffic: shuntctl trace.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import CLIENT, NETWORK, OWN, PORTS, VIP  # noqa: E402 pylint: disable=wrong-import-position

PORT = PORTS["ipip"]
SERVICE = "ipip-v4"
# A trace's, of a test that fails; those that do not end theirs themselves.
SECONDS = 120


class Trace:
    """A shuntctl trace that runs; its packets, once it has ended."""

    def __init__(self, daemon, *options, seconds=SECONDS):
        self.process = subprocess.Popen(
            [lab.SHUNTCTL, "--socket", str(daemon.socket), "--json", "trace",
             "--seconds", str(seconds), *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.words = self.process.stderr.readline()

    def wait(self):
        """Until it ends by itself. Returns its packets."""
        packets, words = self.process.communicate(timeout=lab.TIMEOUT_S)
        self.words += words
        if self.process.returncode != lab.DONE:
            raise AssertionError(f"exit {self.process.returncode}: {self.words}")
        return [json.loads(line) for line in packets.splitlines()]

    def end(self):
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Tracing(lab.LabCase):
    def begin(self, **keys):
        return self.start("net_af_packet", 2, lab.service(4, "ipip", **keys))

    def trace_fetches(self, daemon, *options, n=1):
        """What a trace sees of n connections. Returns it, and whom they came from."""
        trace = Trace(daemon, *options)
        found = self.fetch(4, PORT, n)
        # What came last may be on its way.
        lab.wait_until(lambda: self.is_idle(daemon), "traffic has ended")
        return trace.end(), found

    def is_idle(self, daemon):
        before = daemon.json("stats")["packets"]["forwarded"]
        lab.time.sleep(0.3)
        return daemon.json("stats")["packets"]["forwarded"] == before

    def test_a_connection_is_seen_as_explain_and_its_client_have_it(self):
        daemon = self.begin()
        packets, (backend,) = self.trace_fetches(daemon, "--host", CLIENT[4], "--port", PORT,
                                                 "--protocol", "tcp")
        self.assertGreaterEqual(len(packets), 4)
        first = packets[0]
        told = daemon.json("explain", "tcp", first["client"], first["destination"])
        for packet in packets:
            self.assertEqual(
                (packet["schema"], packet["kind"], packet["protocol"], packet["in_port"],
                 packet["destination"], packet["client"], packet["verdict"],
                 packet["service"], packet["backend"], packet["reason"]),
                (1, "flow", "tcp", "wan", f"{VIP[4]}:{PORT}", first["client"], "forward",
                 SERVICE, backend, None))
            self.assertEqual(packet["worker"], told["entry"]["worker"])
        self.assertEqual((first["flow"], first["slot"]), ("miss", told["slot"]))
        self.assertEqual({(packet["flow"], packet["slot"]) for packet in packets[1:]},
                         {("hit", None)})
        self.assertEqual(first["bytes"], 74)  # a SYN with Linux' options
        self.assertEqual(sorted(packets, key=lambda packet: packet["time"]), packets)
        self.assertRegex(first["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")

    def test_only_what_is_asked_for_is_seen(self):
        daemon = self.begin()
        packets, _ = self.trace_fetches(daemon, "--host", CLIENT[4], n=3)
        self.assertEqual(len({packet["client"] for packet in packets}), 3)
        rows = [
            (["--net", lab.CLIENTS[4], "--port", PORT], True),
            (["--net", "203.0.112.0/24"], False),
            (["--host", VIP[4], "--protocol", "6"], True),
            (["--host", "203.0.113.9"], False),
            (["--port", PORT + 100], False),
            (["--protocol", "udp"], False),
            (["--service", SERVICE], True),
            (["--service", SERVICE, "--dropped"], False),
        ]
        for options, is_seen in rows:
            with self.subTest(options):
                packets, _ = self.trace_fetches(daemon, *options)
                self.assertEqual(len(packets) > 0, is_seen, packets)

    def test_drops_and_what_is_no_services_say_why(self):
        daemon = self.begin()
        for name in lab.BACKENDS:
            daemon.ctl("backend", "down", f"{SERVICE}/{name}")
        trace = Trace(daemon, "--dropped", "--count", 1)
        client = NETWORK.spawn("client", "curl", "--silent", "--max-time", "10",
                               f"http://{VIP[4]}:{PORT}/")
        dropped, = trace.wait()
        lab.stop(client)
        self.assertEqual((dropped["verdict"], dropped["reason"], dropped["service"],
                          dropped["backend"], dropped["flow"]),
                         ("drop", "no_backend", SERVICE, None, "miss"))
        trace = Trace(daemon, "--host", OWN[4], "--protocol", "icmp", "--count", 1)
        NETWORK.run("client", "ping", "-c", "1", "-W", "5", OWN[4])
        ping, = trace.wait()
        self.assertEqual((ping["verdict"], ping["kind"], ping["client"], ping["service"],
                          ping["flow"], ping["slot"]),
                         ("kernel", "icmp", CLIENT[4], None, "none", None))
        trace = Trace(daemon, "--service", SERVICE, "--protocol", "icmp", "--count", 1)
        NETWORK.run("client", "ping", "-c", "1", "-W", "5", VIP[4])
        self.assertEqual(trace.wait()[0]["verdict"], "reply")

    def test_text_has_a_line_a_packet(self):
        daemon = self.begin()
        trace = subprocess.Popen(
            [lab.SHUNTCTL, "--socket", str(daemon.socket), "trace", "--service", SERVICE,
             "--count", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertRegex(trace.stderr.readline(), r"^shuntctl: tracing, for 600 s at most")
        backend, = self.fetch(4, PORT)
        lines, words = trace.communicate(timeout=lab.TIMEOUT_S)
        first, second = lines.splitlines()
        way = rf"wan/[01] tcp {CLIENT[4]}:\d+ > {VIP[4]}:{PORT}"
        self.assertRegex(first, rf"^\d\d:\d\d:\d\d\.\d{{6}} {way} 74 bytes: "
                         rf"forward {SERVICE}/{backend}, miss, slot \d+$")
        self.assertRegex(second, rf" {way} \d+ bytes: forward {SERVICE}/{backend}, hit$")
        self.assertEqual(words, "shuntctl: 2 packets\n")

    def test_there_is_one_trace_and_it_ends_with_its_client(self):
        daemon = self.begin()
        trace = Trace(daemon)
        self.assertIn("another trace runs", daemon.ctl("trace", status=lab.FAILED))
        trace.kill()
        # It is noticed in some seconds; and then there is room for another.
        lab.wait_until(lambda: subprocess.run(
            [lab.SHUNTCTL, "--socket", str(daemon.socket), "trace", "--seconds", "1"],
            check=False, capture_output=True, timeout=lab.TIMEOUT_S).returncode == lab.DONE,
            "another trace")
        self.assertIn("its time was over, 1 s; use --seconds N",
                      daemon.ctl("trace", "--seconds", 1, "--port", 1))

    def test_one_in_so_many_is_seen(self):
        daemon = self.begin()
        packets, _ = self.trace_fetches(daemon, "--service", SERVICE, n=100)
        sampled, _ = self.trace_fetches(daemon, "--service", SERVICE, "--sample", 8, n=100)
        self.assertGreater(len(sampled), len(packets) / 20)
        self.assertLess(len(sampled), len(packets) / 4)

    def test_a_reload_names_what_is_there_now(self):
        daemon = self.begin()
        trace = Trace(daemon, "--service", SERVICE)
        before = self.fetch(4, PORT)
        # Before it in the file: their places are others now, and their names are not.
        daemon.write(lab.service(4, "gre"), lab.service(4, "ipip"))
        daemon.ctl("reload")
        after = self.fetch(4, PORT)
        lab.wait_until(lambda: self.is_idle(daemon), "traffic has ended")
        packets = trace.end()
        self.assertEqual({packet["service"] for packet in packets}, {SERVICE})
        by_client = {packet["client"]: packet["backend"] for packet in packets}
        self.assertEqual(list(by_client.values()), before + after)

    def test_bad_input_is_refused_in_words(self):
        daemon = self.begin()
        rows = [
            (["--service", "ipip-v5"], "there is no service 'ipip-v5'; the nearest is"),
            (["--host", "192.0.2.0/24"], "a prefix is a 'net'"),
            (["--host", "web"], "host: expected an address"),
            (["--net", "192.0.2.1/24"], "has host bits; did you mean '192.0.2.0/24'?"),
            (["--net", "192.0.2/24"], "net: expected an address or a prefix"),
            (["--port", "65536"], "port: expected a whole number, 1 to 65535, found '65536'"),
            (["--protocol", "tpc"], "protocol: expected tcp, udp, icmp, icmpv6 or 0 to 255"),
            (["--count", "0"], "count: expected a whole number, 1 to"),
            (["--sample", "x"], "sample: expected a whole number, 1 to 1073741824, found 'x'"),
            (["--seconds", "86401"], "seconds: expected a whole number, 1 to 86400"),
            (["--weight", "1"], "--weight is not for 'trace'"),
            (["all"], "expected: shuntctl trace"),
        ]
        for options, words in rows:
            with self.subTest(options):
                self.assertIn(words, daemon.ctl("trace", *options, status=lab.BAD_USAGE))


if __name__ == "__main__":
    lab.main()
