#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is seen of packets and flows under live traffic: shuntctl trace and flows.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading

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
        self.assertIn("its time was over, 1 s; use --seconds N",
                      daemon.ctl("trace", "--seconds", 1, "--port", 1))

    def test_it_ends_when_nobody_reads_it(self):
        daemon = self.begin()
        trace = subprocess.Popen(
            [lab.SHUNTCTL, "--socket", str(daemon.socket), "trace", "--port", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("tracing", trace.stderr.readline())
        trace.stdout.close()
        trace.wait(timeout=lab.TIMEOUT_S)
        trace.stderr.close()

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


class Flows(lab.LabCase):
    def begin(self, *services, **dataplane):
        daemon = lab.Daemon("net_af_packet", 2)
        self.addCleanup(daemon.remove)
        daemon.write(*services or [lab.service(4, "ipip"), lab.service(4, "gre")],
                     **{"flow_addresses": True, **dataplane})
        daemon.start()
        return daemon

    def flows(self, daemon, *options):
        return daemon.json("flows", "list", *options)["flows"]

    def n_flows(self, daemon, *options):
        found = daemon.json("flows", "count", *options)
        self.assertEqual(sum(one["flows"] for one in found["counts"]), found["total"])
        return found["total"]

    def test_flows_are_listed_counted_and_found(self):
        daemon = self.begin()
        backends = self.fetch(4, PORT, 20)
        others = self.fetch(4, PORTS["gre"], 10)
        flows = self.flows(daemon)
        self.assertEqual(len(flows), 30)
        self.assertEqual(
            sorted((flow["service"], flow["backend"]) for flow in flows),
            sorted([(SERVICE, name) for name in backends] + [("gre-v4", name)
                                                             for name in others]))
        for flow in flows:
            told = daemon.json("explain", "tcp", flow["client"], flow["destination"])["entry"]
            self.assertEqual((told["worker"], told["backend"], flow["protocol"]),
                             (flow["worker"], flow["backend"], "tcp"))
            found = daemon.json("flows", "find", "tcp", flow["client"], flow["destination"])
            found["flows"][0]["idle_seconds"] = flow["idle_seconds"]
            self.assertEqual(found["flows"], [flow])
            self.assertTrue(flow["closing"] and flow["confirmed"])  # nginx has closed it
        self.assertEqual(len({flow["client"] for flow in flows}), 30)
        for by, names in (("service", [SERVICE, "gre-v4"]), ("client", [CLIENT[4]]),
                          ("worker", sorted({str(flow["worker"]) for flow in flows}))):
            found = daemon.json("flows", "count", "--by", by)
            self.assertEqual((sorted(one["name"] for one in found["counts"]), found["total"]),
                             (sorted(names), 30))
        text = daemon.ctl("flows", "count", "--by", "service")
        self.assertRegex(text, rf"^NAME +FLOWS\n{SERVICE} +20\ngre-v4 +10\nin all: 30\n$")
        self.assertIn("no worker knows that flow",
                      daemon.ctl("flows", "find", "tcp", f"{CLIENT[4]}:1", f"{VIP[4]}:{PORT}",
                                 status=lab.FAILED))

    def test_filters_hold_together(self):
        daemon = self.begin()
        backends = self.fetch(4, PORT, 20)
        self.fetch(4, PORTS["gre"], 10)
        one = self.flows(daemon, "--service", SERVICE)[0]
        port = one["client"].rpartition(":")[2]
        rows = [
            (["--service", SERVICE], 20),
            (["--backend", f"{SERVICE}/s1"], backends.count("s1")),
            (["--backend", f"{SERVICE}/s1", "--service", "gre-v4"], 0),
            (["--client", lab.CLIENTS[4]], 30),
            (["--client", VIP[4]], 0),
            (["--host", VIP[4]], 30),
            (["--net", "203.0.112.0/24"], 0),
            (["--port", PORTS["gre"]], 10),
            (["--port", port, "--service", SERVICE], 1),
            (["--protocol", "tcp"], 30),
            (["--protocol", "udp"], 0),
            (["--confirmed"], 30),
            (["--unconfirmed"], 0),
            (["--idle", 0], 30),
            (["--idle", 100000], 0),
        ]
        for options, n in rows:
            with self.subTest(options):
                self.assertEqual(self.n_flows(daemon, *options), n)
                self.assertEqual(len(self.flows(daemon, *options)), n)
        self.assertEqual(len(self.flows(daemon, "--count", 7)), 7)

    def test_what_is_cleared_is_forgotten(self):
        daemon = self.begin()
        backends = self.fetch(4, PORT, 20)
        self.fetch(4, PORTS["gre"], 10)
        self.assertIn("which flows?", daemon.ctl("flows", "clear", status=lab.BAD_USAGE))
        self.assertEqual(self.n_flows(daemon), 30)
        self.assertEqual(daemon.ctl("flows", "clear", "--backend", f"{SERVICE}/{backends[0]}"),
                         f"{backends.count(backends[0])} flows cleared\n")
        self.assertEqual(self.n_flows(daemon), 30 - backends.count(backends[0]))
        self.assertEqual(daemon.json("flows", "clear", "--all")["cleared"],
                         30 - backends.count(backends[0]))
        self.assertEqual(self.flows(daemon), [])
        # It goes on: new flows are known as before.
        self.fetch(4, PORT, 3)
        self.assertEqual(self.n_flows(daemon), 3)

    def test_null_says_nothing_of_what_is_to_be_cleared(self):
        """A script's variable that has no value means no flow, and not all of them."""
        daemon = self.begin()
        self.fetch(4, PORT, 3)
        rows = [{key: None} for key in ("service", "backend", "host", "net", "client", "port",
                                        "protocol", "confirmed", "idle")]
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(lab.TIMEOUT_S)
            made.connect(str(daemon.socket))
            with made.makefile("rw") as lines:
                for params in [{}, {"all": False}, {"all": None}, *rows]:
                    lines.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "flows.clear",
                                            "params": params}) + "\n")
                    lines.flush()
                    answer = json.loads(lines.readline())
                    self.assertIn("which flows?", answer.get("error", answer).get("message", ""),
                                  params)
        self.assertEqual(self.n_flows(daemon), 3)

    def test_without_addresses_the_rest_is_told(self):
        daemon = self.begin(flow_addresses=False)
        backends = self.fetch(4, PORT, 5)
        flows = self.flows(daemon)
        self.assertEqual(sorted(flow["backend"] for flow in flows), sorted(backends))
        self.assertEqual({(flow["client"], flow["destination"], flow["protocol"])
                          for flow in flows}, {(None, None, "tcp")})
        self.assertIn("clients and destinations are not kept; 'flow_addresses: true'",
                      daemon.ctl("flows", "list"))
        self.assertEqual(self.n_flows(daemon, "--protocol", "tcp", "--service", SERVICE), 5)
        for options in (["list", "--client", "203.0.113.0/24"], ["clear", "--port", 80],
                        ["count", "--by", "client"], ["list", "--protocol", "icmp"]):
            self.assertIn("are not kept", daemon.ctl("flows", *options, status=lab.FAILED))
        self.assertEqual(self.n_flows(daemon), 5)

    def test_flows_of_who_is_gone_have_no_names(self):
        daemon = self.begin()
        backends = self.fetch(4, PORT, 10)
        gone = backends[0]
        daemon.ctl("backend", "remove", f"{SERVICE}/{gone}")
        flows = self.flows(daemon)
        self.assertEqual(sum(flow["backend"] is None for flow in flows), backends.count(gone))
        found = daemon.json("flows", "count")["counts"]
        self.assertIn({"name": "-", "flows": backends.count(gone)}, found)

    def send_from_many_ports(self, n):
        """A datagram from each of n ports of the client's, from 20000 on; a thread's."""
        NETWORK.enter("client")
        for port in range(20000, 20000 + n):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
                made.bind((CLIENT[4], port))
                made.sendto(b"x", (VIP[4], PORT))
            if port % 50 == 0:
                lab.time.sleep(0.005)

    def test_many_flows_come_page_by_page(self):
        daemon = self.begin(lab.service(4, "ipip", protocol="udp"))
        n = 3000

        def is_there():
            """A datagram that a busy machine loses is sent once more."""
            sending = threading.Thread(target=self.send_from_many_ports, args=(n,))
            sending.start()
            sending.join()
            return self.n_flows(daemon) == n

        lab.wait_until(is_there, lambda: f"{self.n_flows(daemon)} flows: {daemon.ctl('stats')}")
        flows = self.flows(daemon, "--protocol", "udp")
        self.assertEqual(sorted(flow["client"] for flow in flows),
                         [f"{CLIENT[4]}:{port}" for port in range(20000, 20000 + n)])
        lines = daemon.ctl("flows", "list").splitlines()
        self.assertEqual(len(lines), 1 + n)
        self.assertRegex(lines[0], "^PROTOCOL +CLIENT +DESTINATION +BACKEND +STATE +IDLE +WORKER$")
        self.assertRegex(lines[1], rf"^udp +{CLIENT[4]}:2\d+ +{VIP[4]}:{PORT} +{SERVICE}/s\d "
                         r"+(un)?confirmed +\d+\.\d s +[01]$")
        pages = list(self.pages(daemon, "flows.list"))
        self.assertGreater(len(pages), 3)
        self.assertLessEqual(max(len(page["flows"]) for page in pages), 1000)
        self.assertEqual(sum(len(page["flows"]) for page in pages), n)

    def pages(self, daemon, method):
        """As a client of the socket sees them."""
        params = {}
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(lab.TIMEOUT_S)
            made.connect(str(daemon.socket))
            with made.makefile("rw") as lines:
                while True:
                    lines.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                                            "params": params}) + "\n")
                    lines.flush()
                    page = json.loads(lines.readline())["result"]
                    yield page
                    if page["cursor"] is None:
                        return
                    params["cursor"] = page["cursor"]

    def test_a_cursor_that_is_none_is_refused(self):
        daemon = self.begin()
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(lab.TIMEOUT_S)
            made.connect(str(daemon.socket))
            with made.makefile("rw") as lines:
                for cursor in ("", "0", "2.0", "0.131072", "0.x", "0.-1", "x" * 100, 7):
                    lines.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "flows.clear",
                                            "params": {"all": True, "cursor": cursor}}) + "\n")
                    lines.flush()
                    self.assertIn("cursor", json.loads(lines.readline())["error"]["message"])

    def test_bad_input_is_refused_in_words(self):
        daemon = self.begin()
        rows = [
            (["list", "--service", "ipip-v5"], "there is no service 'ipip-v5'; the nearest is"),
            (["list", "--backend", f"{SERVICE}/s9"], "there is no backend 'ipip-v4/s9'; the "
             "nearest is 'ipip-v4/s"),
            (["list", "--backend", "s1"], "backend: expected SERVICE/NAME of one that is there"),
            (["list", "--client", "192.0.2.1/24"], "has host bits; did you mean '192.0.2.0/24'"),
            (["list", "--idle", "x"], "idle: expected a whole number, 0 to"),
            (["list", "--count", "0"], "--count: expected a number from 1 on, found '0'"),
            (["count", "--by", "port"], "--by: expected service, backend, client or worker"),
            (["count", "--confirmed", "--unconfirmed"], "no flow is --confirmed and"),
            (["find", "icmp", "192.0.2.1:1", "192.0.2.2:2"], "protocol: expected tcp or udp"),
            (["list", "--by", "service"], "--by is not for 'flows list'"),
            (["show"], "no command is called 'flows show'"),
        ]
        for options, words in rows:
            with self.subTest(options):
                self.assertIn(words, daemon.ctl("flows", *options, status=lab.BAD_USAGE))


if __name__ == "__main__":
    lab.main()
