#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd's metrics, read over HTTP by clients of every kind and held against shuntctl.

Ports are DPDK's null and pcap devices, so this takes no privileges and no namespaces. SHUNTD
and SHUNTCTL name the programs.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import captures  # noqa: E402
import wire  # noqa: E402

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
# Of one command, start or scrape, also under sanitizers on a busy machine.
TIMEOUT_S = 60
# What one client may take for a request, and what a test allows beyond that.
CLIENT_S, GRACE_S = 10, 10

VIP, VIP_EMPTY, CLIENT = "198.51.100.10", "198.51.100.11", "203.0.113.7"

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "config" / "README.md").read_text(
    encoding="utf-8")
TYPES = {"/": "text/html; charset=utf-8", "/status.json": "application/json",
         "/metrics": "text/plain; version=0.0.4; charset=utf-8"}

METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
HISTOGRAM = ("_bucket", "_sum", "_count")
SAMPLE = re.compile(rf"({METRIC})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


class Metrics:
    """A strict reader of the text format: what is not exactly as it has to be is an error."""

    def __init__(self, text):
        self.types = {}
        self.values = {}
        if not text.endswith("\n"):
            raise ValueError("the last line has no end")
        helped = None
        current = None
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                helped = self.read_help(line)
            elif line.startswith("# TYPE "):
                current = self.read_type(line, helped)
            else:
                self.read_sample(line, current)
        self.empty = set(self.types) - {self.metric_of(name) for name, _ in self.values}

    def metric_of(self, sample):
        """Whose sample it is: a histogram has them under three names."""
        return sample if sample in self.types else sample[:sample.rindex("_")]

    def is_count(self, sample):
        """Whether it has no fraction, and never goes back."""
        return (self.types[self.metric_of(sample)] == "counter"
                or sample.endswith(("_bucket", "_count")))

    def read_help(self, line):
        match = re.fullmatch(rf"# HELP ({METRIC}) (\S.*)", line)
        if match is None or match[1] in self.types or not match[1].startswith("shunt_"):
            raise ValueError(line)
        return match[1]

    def read_type(self, line, helped):
        match = re.fullmatch(rf"# TYPE ({METRIC}) (counter|gauge|histogram)", line)
        if match is None or match[1] != helped or match[1] in self.types:
            raise ValueError(line)
        if (match[2] == "counter") != match[1].endswith("_total"):
            raise ValueError(f"{line}: _total is for counters, and all of them")
        self.types[match[1]] = match[2]
        return match[1]

    def read_sample(self, line, current):
        match = SAMPLE.fullmatch(line)
        parts = HISTOGRAM if self.types.get(current) == "histogram" else ("",)
        if match is None or match[1] not in [current + part for part in parts]:
            raise ValueError(line)
        pairs = [(name, re.sub(r"\\.", lambda escape: UNESCAPED[escape[0]], value))
                 for name, value in re.findall(LABEL, match[2] or "")]
        key = match[1], frozenset(pairs)
        if len(dict(pairs)) != len(pairs) or key in self.values:
            raise ValueError(f"{line}: twice")
        number = match[match.re.groups]
        if self.is_count(match[1]) and not number.isdigit():
            raise ValueError(f"{line}: no count")
        self.values[key] = float(number) if "." in number else int(number)

    def get(self, name, **labels):
        return self.values[f"shunt_{name}", frozenset(labels.items())]

    def labels(self, name):
        """The label sets of a metric's samples."""
        return [dict(labels) for found, labels in self.values if found == f"shunt_{name}"]

    def counters(self):
        return {key: value for key, value in self.values.items()
                if self.types[self.metric_of(key[0])] in ("counter", "histogram")}

    def buckets(self, name, **labels):
        """A histogram's (bound, count below it), in the order of the text."""
        found = [(dict(pairs).pop("le"), value) for (sample, pairs), value in self.values.items()
                 if sample == f"shunt_{name}_bucket" and labels.items() <= dict(pairs).items()]
        return [(float(bound), value) for bound, value in found]


def free_port(family=socket.AF_INET, address="127.0.0.1"):
    with socket.socket(family) as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def backends(n, first=1):
    return [{"name": f"web-{i}", "address": f"10.0.{i // 250}.{1 + i % 250}"}
            for i in range(first, first + n)]


def service(name="web", **keys):
    found = {"name": name, "address": VIP, "protocol": "tcp", "port": 80,
             "backends": backends(3)}
    found.update(keys)
    return found


def request(text, port, timeout_s=TIMEOUT_S, host="127.0.0.1"):
    """Send bytes, read to the end. Returns (status, headers, body); None where there is no
    answer."""
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        answer = b""
        try:
            connection.sendall(text)
            while True:
                part = connection.recv(1 << 20)
                if part == b"":
                    break
                answer += part
        except (ConnectionResetError, BrokenPipeError):
            pass
    if answer == b"":
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("ascii").split("\r\n")
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip()
               for line in lines}
    return int(status.split(" ")[1]), headers, body


class MetricsCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-metrics-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.port = free_port()
        self.metrics = f"127.0.0.1:{self.port}"
        self.device = "net_null0,no-rx=1"
        self.workers = 1
        self.socket = self.folder / "shunt.sock"
        self.config = self.folder / "shunt.yaml"
        self.log = self.folder / "log"
        self.before = []  # a command that becomes shuntd
        self.process = None
        self.addCleanup(self.stop)

    def write(self, *services):
        plane = {"workers": self.workers, "kernel": "none", "idle": "adaptive",
                 "idle_sleep": "1ms", "flow_entries": 1024,
                 "ports": [{"name": "wan", "device": self.device,
                            "addresses": ["192.0.2.1/24"],
                            "next_hop": "02:00:00:00:00:fe"}]}
        self.config.write_text(json.dumps(
            {"dataplane": plane, "services": list(services),
             "control": {"socket": str(self.socket), "metrics": self.metrics}}),
            encoding="utf-8")

    def launch(self, *services):
        self.write(*(services or [service()]))
        with open(self.log, "wb") as log:
            # Under a sanitizer memory is given back all the same.
            options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
            self.process = subprocess.Popen(
                [*self.before, SHUNTD, "--config", self.config], stderr=log,
                env={"RUNTIME_DIRECTORY": str(self.folder), **os.environ,
                     "ASAN_OPTIONS": options})

    def log_text(self):
        return self.log.read_text(encoding="utf-8")

    def start(self, *services):
        self.launch(*services)
        self.wait_until(lambda: "shuntd: ready" in self.log_text()
                        or self.process.poll() is not None)
        self.assertIsNone(self.process.poll(), self.log_text())

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            status = self.process.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        self.assertEqual(status, 0, self.log_text())
        self.assertNotRegex(self.log_text(), "Sanitizer|runtime error")

    def wait_until(self, is_true, timeout_s=TIMEOUT_S):
        end = time.monotonic() + timeout_s
        while not is_true():
            self.assertLess(time.monotonic(), end, "it has not come to that")
            time.sleep(0.02)

    def ctl(self, *args):
        done = subprocess.run([SHUNTCTL, "--socket", self.socket, "-j", *args], check=True,
                              text=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
        return json.loads(done.stdout)

    def get(self, path="/metrics", method="GET", timeout_s=TIMEOUT_S):
        return request(f"{method} {path} HTTP/1.1\r\nHost: shunt\r\n\r\n".encode(), self.port,
                       timeout_s)

    def scrape(self, timeout_s=TIMEOUT_S):
        status, headers, body = self.get(timeout_s=timeout_s)
        self.assertEqual(status, 200)
        self.assertEqual(int(headers["content-length"]), len(body))
        return Metrics(body.decode("utf-8"))

    def reload(self, generation):
        self.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: self.ctl("status")["generation"] == generation)

    def capture_traffic(self):
        """69 packets: 60 in 30 flows, and 9 for nobody."""
        others = ([wire.ether(wire.tcp(CLIENT, "192.0.2.77", 1, 80))] * 3
                  + [wire.ether(wire.tcp(CLIENT, VIP_EMPTY, 1, 80))] * 2
                  + [wire.ether(wire.tcp(CLIENT, VIP, 1, 80)[:30])] * 4)
        self.capture(frames(30) + others)

    def capture(self, frames):
        """A port that receives these frames once and then nothing."""
        inbound = self.folder / "in.pcap"
        inbound.write_bytes(captures.pcap(
            [captures.Packet(frame) for frame in frames]))
        self.device = f"net_pcap0,rx_pcap={inbound},tx_pcap={self.folder / 'out.pcap'}"


def frames(n_flows):
    """Two packets of each flow to the service."""
    return [wire.ether(wire.tcp(CLIENT, VIP, 1024 + i % n_flows, 80, payload=b"x" * 60))
            for i in range(2 * n_flows)]


class Values(MetricsCase):
    def start_with_traffic(self):
        self.capture_traffic()
        self.start(service(), service("none", address=VIP_EMPTY, backends=[]))
        self.wait_until(lambda: self.scrape().get("received_packets_total") == 69)

    def test_packets_are_counted(self):
        self.start_with_traffic()
        metrics = self.scrape()
        rows = [("forwarded_packets_total", 60), ("replied_packets_total", 0),
                ("to_kernel_packets_total", 0), ("flow_entries", 30),
                ("flow_entries_max", 524288), ("backends_unreached", 0),
                ("config_generation", 1), ("control_requests_total", 0)]
        for name, value in rows:
            self.assertEqual(metrics.get(name), value, name)
        drops = {labels["reason"]: metrics.get("dropped_packets_total", **labels)
                 for labels in metrics.labels("dropped_packets_total")}
        self.assertEqual({reason: n for reason, n in drops.items() if n > 0},
                         {"no_service": 3, "no_backend": 2, "truncated": 4})
        totals = {"packets": 0, "bytes": 0, "flows": 0}
        for name in totals:
            for labels in metrics.labels(f"backend_{name}_total"):
                totals[name] += metrics.get(f"backend_{name}_total", **labels)
        self.assertEqual(totals, {"packets": 60, "bytes": 60 * 100, "flows": 30})

    def test_as_many_are_counted_as_the_device_hands_over(self):
        """Flows that are known, between them what is for nobody, and two workers, of which one
        has no queue to send by: the other sends its bursts. What finds no room is counted."""
        flows = [wire.ether(wire.tcp(CLIENT, VIP, 1024 + i, 80)) for i in range(128)]
        nobody = [wire.ether(wire.tcp(CLIENT, VIP, 1024 + i, 81)) for i in range(128)]
        received = (flows * 100 + nobody * 2) * 8
        self.capture(received)
        self.workers = 2
        self.start()
        self.wait_until(lambda: self.scrape().get("received_packets_total")
                        == len(received))
        forwarded = self.scrape().get("forwarded_packets_total")
        self.assertGreater(forwarded, 0)
        self.stop()
        # One as long as the other.
        n_bytes = (self.folder / "out.pcap").stat().st_size - len(captures.pcap_header())
        self.assertEqual(n_bytes, forwarded * len(captures.pcap_record(
            captures.Packet(flows[0] + bytes(20)))))

    def test_they_are_those_of_shuntctl(self):
        self.start_with_traffic()
        stats = self.ctl("stats")
        status = self.ctl("status")
        metrics = self.scrape()
        for name in ("received", "forwarded", "replied", "to_kernel"):
            self.assertEqual(metrics.get(f"{name}_packets_total"), stats["packets"][name])
        self.assertEqual({labels["reason"]: metrics.get("dropped_packets_total", **labels)
                          for labels in metrics.labels("dropped_packets_total")},
                         stats["drops"])
        web = stats["services"][0]
        self.assertEqual(len(metrics.labels("backend_slots")), len(web["backends"]))
        for one in web["backends"]:
            labels = {"service": web["name"], "backend": one["name"]}
            for name in ("packets", "bytes", "flows"):
                self.assertEqual(metrics.get(f"backend_{name}_total", **labels), one[name])
            self.assertEqual(metrics.get("backend_slots", **labels), one["slots"])
        self.assertEqual(metrics.get("build_info", version=status["version"]), 1)
        self.assertEqual(metrics.get("backends_unreached"), status["unreached"])
        self.assertAlmostEqual(metrics.get("table_build_seconds"), status["build_seconds"], 8)
        for name in ("accepted", "refused", "evicted", "requests", "errors", "oversized",
                     "stalled"):
            self.assertEqual(metrics.get(f"control_{name}_total"), status["rpc"][name], name)
        self.assertGreaterEqual(metrics.get("uptime_seconds"), status["uptime_seconds"])

    def test_turns_are_those_of_shuntctl(self):
        self.start_with_traffic()
        (worker,) = self.ctl("stats")["workers"]
        metrics = self.scrape()
        turns = worker["turns"]
        counts = [(bucket["below_ns"], bucket["count"]) for bucket in turns["buckets"]]
        self.assertEqual([bound for bound, _ in counts], [2**i for i in range(35)] + [None])
        # A burst is 64 packets at most, so 69 are two turns at least.
        n = sum(count for _, count in counts)
        self.assertEqual(n, worker["busy_polls"])
        self.assertIn(n, range(2, 70))
        self.assertEqual((worker["worker"], worker["flow_entries"]), (0, 30))
        self.assertLessEqual(worker["polls"], metrics.get("worker_polls_total", worker="0"))
        # As many nanoseconds as the buckets' bounds allow.
        self.assertGreaterEqual(turns["total_ns"], sum(bound // 2 * count
                                                       for bound, count in counts[:-1]))
        self.assertLess(turns["total_ns"], sum(bound * count for bound, count in counts[:-1]))
        wanted = [(2**i / 1e9, sum(count for _, count in counts[:i + 1]))
                  for i in range(10, 31)] + [(float("inf"), n)]
        self.assertEqual(metrics.buckets("worker_turn_seconds", worker="0"), wanted)
        self.assertEqual(metrics.get("worker_turn_seconds_count", worker="0"), n)
        self.assertEqual(metrics.get("worker_turn_seconds_sum", worker="0"),
                         turns["total_ns"] / 1e9)

    def test_a_backend_that_comes_back_has_its_counts(self):
        self.start_with_traffic()
        labels = {"service": "web", "backend": "web-2"}
        before = self.scrape().get("backend_packets_total", **labels)
        self.assertGreater(before, 0)
        self.ctl("backend", "remove", "web/web-2")
        self.assertNotIn(labels, self.scrape().labels("backend_packets_total"))
        self.ctl("backend", "add", "web/web-2", "10.0.9.9", "--state", "drain")
        metrics = self.scrape()
        self.assertEqual(metrics.get("backend_packets_total", **labels), before)
        self.assertEqual(metrics.get("backend_slots", **labels), 0)
        self.assertEqual(
            metrics.get("backend_info", **labels, address="10.0.9.9", state="drain"), 1)

    def test_odd_names_come_through(self):
        odd = ['"', "\\", 'a"b\\"', "\\n", "a,b={}", " ", "größer 漢字", "}", 'x\\\\"" 1 #']
        self.start(service('s"\\', backends=[{"name": name, "address": f"10.0.0.{i + 1}"}
                                            for i, name in enumerate(odd)]))
        metrics = self.scrape()
        for name in ("backend_packets_total", "backend_bytes_total", "backend_flows_total",
                     "backend_slots", "backend_weight", "backend_up"):
            self.assertEqual(metrics.labels(name),
                             [{"service": 's"\\', "backend": name} for name in odd])
        self.assertEqual([one["backend"] for one in metrics.labels("backend_info")], odd)

    def test_each_is_in_the_document_with_its_unit(self):
        """Its labels, type and unit, too; what is not here is announce's or etcd's alone."""
        rows = re.findall(r"^\| (`[^|]*`) \| (\w+) \| ([^|]+) \| [^|]+ \|$",
                          DOCUMENT.partition("| metrics | type | unit | what |")[2]
                          .partition("\n\n")[0], re.MULTILINE)
        documented = {f"shunt_{name}": (set(filter(None, labels.split(","))), kind, unit)
                      for names, kind, unit in rows
                      for name, labels in re.findall(r"`([a-z_]+)(?:\{([a-z_,]*)\})?`", names)}
        self.start()
        metrics = self.scrape()
        labels = {metrics.metric_of(sample): {name for name, _ in pairs} - {"le"}
                  for sample, pairs in metrics.values}
        found = {name: (labels[name], kind) for name, kind in metrics.types.items()}
        self.assertEqual(found, {name: (its, kind) for name, (its, kind, _) in documented.items()
                                 if name not in ("shunt_service_announced", "shunt_twin_up")
                                 and not name.startswith("shunt_etcd_")})
        for name, (_, kind, unit) in documented.items():
            if unit in ("seconds", "bytes", "ratio", "packets", "info"):
                self.assertRegex(name, rf"_{unit}(_total)?$")
            else:
                self.assertNotRegex(name, "_(seconds|bytes|ratio|packets|info)(_total)?$")

    def test_no_service_is_no_sample(self):
        self.start(service(backends=[]))
        self.assertEqual(self.scrape().empty,
                         {f"shunt_backend_{name}" for name in
                          ("packets_total", "bytes_total", "flows_total", "slots", "weight",
                           "info", "up")})

    def test_workers_that_are_busy_and_idle(self):
        for device, is_busy in (("net_null0", True), ("net_null0,no-rx=1", False)):
            with self.subTest(device):
                self.device = device
                self.start()
                first = self.scrape()
                time.sleep(2.2)  # two samples
                second = self.scrape()
                ratio = second.get("worker_busy_ratio", worker="0")
                self.assertEqual((ratio > 0, 0 <= ratio <= 1), (is_busy, True))
                told = json.loads(self.get("/status.json")[2])["workers"][0]["busy_ratio"]
                self.assertEqual((told > 0, 0 <= told <= 1), (is_busy, True))
                polls = [one.get("worker_polls_total", worker="0") for one in (first, second)]
                busy = [one.get("worker_busy_polls_total", worker="0")
                        for one in (first, second)]
                self.assertLess(polls[0], polls[1])
                self.assertEqual(busy[0] < busy[1], is_busy)
                self.stop()


class Status(MetricsCase):
    """/status.json, which the page shows."""

    def status(self):
        status, _, body = self.get("/status.json")
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_it_tells_what_shuntctl_tells(self):
        self.capture_traffic()
        self.start(service(backends=[*backends(3), {"name": "old", "address": "10.0.0.9",
                                                    "weight": 7, "state": "drain"}]),
                   service("none", address=VIP_EMPTY, backends=[], protocol="any", port="any"))
        self.wait_until(lambda: self.status()["packets"]["received"] == 69)
        told = self.status()
        self.assertEqual(told["schema"], 1)
        stats, status = self.ctl("stats"), self.ctl("status")
        for name in ("packets", "drops", "generation"):
            self.assertEqual(told[name], stats[name])
        for name in ("version", "ports", "unreached", "generation", "etcd"):
            self.assertEqual(told[name], status[name])
        self.assertLessEqual(told["uptime_seconds"], status["uptime_seconds"])
        (worker,) = told["workers"]
        self.assertEqual((worker["worker"], worker["flow_entries"]), (0, 30))
        self.assertEqual(told["flow_entries_max"], 524288)
        self.assertTrue(0 <= worker["busy_ratio"] <= 1)
        listed = self.ctl("service", "list")["services"]
        self.assertEqual([one["name"] for one in told["services"]], ["web", "none"])
        for one, in_list, counted in zip(told["services"], listed, stats["services"]):
            shown = self.ctl("service", "show", one["name"])["service"]
            for name in ("address", "protocol", "port", "forward", "table", "announced",
                         "not_announced", "min_healthy"):
                self.assertEqual(one[name], shown[name], name)
            for name in ("ready", "healthy"):
                self.assertEqual(one[name], in_list[name], name)
            for name in ("packets", "bytes", "flows"):
                self.assertEqual(one[name], counted[name], name)
            for backend, wanted in zip(one["backends"], shown["backends"], strict=True):
                wanted = {name: wanted[name] for name in backend if name != "reached"}
                self.assertLessEqual(backend["state_seconds"], wanted.pop("state_seconds"))
                self.assertEqual(backend, {**wanted, "reached": True,
                                           "state_seconds": backend["state_seconds"]})
        web, none = told["services"]
        self.assertEqual((web["ready"], web["not_ready"], web["packets"]), (True, None, 60))
        self.assertEqual((none["ready"], none["not_ready"]), (False, "it has no backends"))

    def test_its_keys_are_those_of_the_document(self):
        self.start()
        told = self.status()
        web = told["services"][0]
        for row, found in (("the whole", told), ("workers[]", told["workers"][0]),
                           ("services[]", web), ("backends[]", web["backends"][0])):
            line = re.search(rf"^\| {re.escape(row)} \| (.*) \|$", DOCUMENT, re.MULTILINE)[1]
            self.assertEqual(set(re.findall(r"`([a-z_]+)`", line)), set(found), row)

    def test_odd_names_come_through(self):
        odd = ['"', "\\", "<script>", "größer 漢字", " "]
        self.start(service('s"\\', backends=[{"name": name, "address": f"10.0.0.{i + 1}"}
                                            for i, name in enumerate(odd)]))
        (found,) = self.status()["services"]
        self.assertEqual((found["name"], [one["name"] for one in found["backends"]]),
                         ('s"\\', odd))

    def test_no_service_is_an_empty_list(self):
        self.write()
        self.start(service(backends=[]))
        self.ctl("service", "remove", "web")
        self.assertEqual(self.status()["services"], [])


class Reloads(MetricsCase):
    def test_counters_never_go_back(self):
        self.device = "net_null0"
        self.start()
        is_over = threading.Event()
        seen = []

        def read():
            while not is_over.is_set():
                seen.append(self.scrape())

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for generation in range(2, 22):
                self.write(service(backends=backends(1 + generation % 5)))
                self.reload(generation)
            self.config.write_text("services: 7", encoding="utf-8")
            self.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda: "is not loaded" in self.log_text())
        finally:
            is_over.set()
            reader.join()
        self.assertGreater(len(seen), 20)
        last = {}
        for metrics in [*seen, self.scrape()]:
            counters = metrics.counters()
            for key, value in counters.items():
                self.assertGreaterEqual(value, last.get(key, 0), key)
            last.update(counters)
        generations = [one.get("config_generation") for one in seen]
        self.assertEqual(generations, sorted(generations))
        self.assertEqual(self.scrape().get("config_generation"), 21)

    def test_another_address_takes_a_restart(self):
        self.start()
        self.metrics = f"127.0.0.1:{free_port()}"
        self.write(service())
        self.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: "control.metrics: fixed at the start" in self.log_text())
        self.scrape()


class Requests(MetricsCase):
    def test_what_is_asked_is_what_is_answered(self):
        self.start()
        rows = [
            ("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("GET", "/metrics?a=b", 200),
            ("GET", "/", 200), ("HEAD", "/", 200), ("GET", "/?a=b", 200),
            ("GET", "/status.json", 200), ("HEAD", "/status.json", 200),
            ("GET", "/metrics/", 404), ("GET", "/Metrics", 404), ("GET", "/index.html", 404),
            ("GET", "//metrics", 404), ("GET", "/metric", 404), ("GET", "//", 404),
            ("GET", "/status", 404), ("POST", "/a", 404), ("POST", "/", 405),
            ("POST", "/status.json", 405),
            ("POST", "/metrics", 405), ("PUT", "/metrics", 405), ("DELETE", "/metrics", 405),
            ("OPTIONS", "/metrics", 405), ("get", "/metrics", 405), ("X", "/metrics", 405),
        ]
        for method, path, wanted in rows:
            with self.subTest(f"{method} {path}"):
                status, headers, body = self.get(path, method)
                self.assertEqual(status, wanted)
                self.assertEqual(body == b"", method == "HEAD")
                self.assertEqual("allow" in headers, status == 405)
                self.assertEqual(headers["connection"].lower(), "close")
                self.assertEqual(headers["cache-control"], "no-store")
                self.assertEqual(headers["x-content-type-options"], "nosniff")
                if status == 200:
                    self.assertEqual(headers["content-type"], TYPES[path.partition("?")[0]])
                self.assertEqual("content-security-policy" in headers,
                                 status == 200 and path.startswith("/") and path[1:2] in "?")

    def test_other_forms(self):
        self.start()
        rows = [
            ("HTTP/1.0", b"GET /metrics HTTP/1.0\r\n\r\n", 200),
            ("a body", b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
             + b"x" * 1000000, 405),
            ("a body in chunks", b"PUT /metrics HTTP/1.1\r\nHost: a\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 405),
            ("two requests at once: one is answered", 2 * b"GET /metrics HTTP/1.1\r\n"
             b"Host: a\r\n\r\n", 200),
            ("no HTTP", b"\0\1\2\3\r\n\r\n", None),
            ("a header without end", b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100000, None),
        ]
        for name, text, wanted in rows:
            with self.subTest(name):
                answer = request(text, self.port)
                if wanted is not None:
                    self.assertEqual(answer[0], wanted)
                    self.assertEqual(answer[2].count(b"# TYPE shunt_build_info"),
                                     1 if wanted == 200 else 0)
                elif answer is not None:
                    self.assertIn(answer[0], range(400, 600))
                self.scrape()

    def open_many(self, n, text):
        found = []
        for _ in range(n):
            found.append(socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S))
            self.addCleanup(found[-1].close)
            try:
                found[-1].sendall(text)
            except (ConnectionResetError, BrokenPipeError):
                pass
        return found

    def wait_for_end(self, connections, timeout_s):
        """Until the daemon has ended them all."""
        end = time.monotonic() + timeout_s
        for connection in connections:
            connection.settimeout(max(0.01, end - time.monotonic()))
            try:
                while connection.recv(1 << 20) != b"":
                    pass
            except ConnectionResetError:
                pass

    def test_those_who_hang_on_are_in_nobodys_way(self):
        self.start()
        slow = self.open_many(300, b"GET /metrics HTTP/1.1\r\nHo")
        for _ in range(20):
            began = time.monotonic()
            self.scrape()
            self.ctl("status")
            self.assertLess(time.monotonic() - began, CLIENT_S / 2)
        self.wait_for_end(slow, CLIENT_S + GRACE_S)
        # Nor does the daemon turn idly meanwhile, or afterwards.
        before = self.process_cpu_s()
        time.sleep(1)
        self.assertLess(self.process_cpu_s() - before, 0.5)

    def process_cpu_s(self):
        """CPU time of the control thread."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/stat"
                              ).read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_a_byte_now_and_then_is_no_way_to_stay(self):
        self.start()
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S) as connection:
            try:
                while time.monotonic() - began < CLIENT_S + GRACE_S:
                    connection.sendall(b"G")
                    time.sleep(0.2)
            except (ConnectionResetError, BrokenPipeError):
                pass
        self.assertLess(time.monotonic() - began, CLIENT_S + GRACE_S)
        self.assertGreater(time.monotonic() - began, CLIENT_S - 1)

    def test_those_who_do_not_read_take_bounded_memory(self):
        many = [{**one, "name": one["name"] + 240 * "x"} for one in backends(10000)]
        self.start(service(backends=many))
        before = self.resident_mib()
        text_mib = len(self.get()[2]) / 2 ** 20
        self.assertGreater(text_mib, 15)
        slow = []
        most = 0
        for _ in range(22):
            slow += self.open_many(1, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            slow[-1].recv(1)  # its text is made
            time.sleep(0.3)   # and over for the next
            most = max(most, self.resident_mib() - before)
        self.assertLess(most, 256 + 3 * text_mib + 64)
        self.assertEqual(len(self.scrape().labels("backend_slots")), len(many))
        self.ctl("status")
        self.wait_for_end(slow, CLIENT_S + GRACE_S)
        self.wait_until(lambda: self.resident_mib() - before < 128)

    def test_a_text_that_takes_long_is_for_all_who_ask_soon(self):
        many = [{**one, "name": one["name"] + 240 * "x"} for one in backends(10000)]
        self.start(service(backends=many))
        uptimes = [self.uptime() for _ in range(8)]
        self.assertLess(len(set(uptimes)), len(uptimes))
        # Not for good.
        self.wait_until(lambda: self.uptime() > uptimes[-1])

    def uptime(self):
        """Of the text as it is: to read all of a long one takes longer than it is kept."""
        _, _, body = self.get()
        return float(re.search(rb"^shunt_uptime_seconds (\S+)$", body, re.MULTILINE)[1])

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


class Addresses(MetricsCase):
    def is_listening(self):
        """Whether the daemon has a listening TCP socket."""
        inodes = set()
        for kind in ("tcp", "tcp6"):
            path = pathlib.Path(f"/proc/{self.process.pid}/net/{kind}")
            for line in path.read_text(encoding="ascii").splitlines()[1:]:
                if line.split()[3] == "0A":
                    inodes.add(f"socket:[{line.split()[9]}]")
        files = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        return any(os.readlink(file) in inodes for file in files)

    def test_off_listens_nowhere(self):
        self.metrics = "off"
        self.start()
        self.assertFalse(self.is_listening())
        self.stop()
        self.metrics = f"127.0.0.1:{self.port}"
        self.start()
        self.assertTrue(self.is_listening())

    def test_ipv6(self):
        try:
            port = free_port(socket.AF_INET6, "::1")
        except OSError:
            self.skipTest("this machine has no ::1")
        self.metrics = f"[::1]:{port}"
        self.start()
        answer = request(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", port, host="::1")
        self.assertEqual(answer[0], 200)

    def test_a_restart_need_not_wait(self):
        for _ in range(3):
            self.start()
            self.scrape()
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                self.stop()
                self.assertEqual(connection.recv(1), b"")

    def refuse(self, address, says):
        self.metrics = address
        self.launch(service())
        self.assertEqual(self.process.wait(timeout=TIMEOUT_S), 1)
        self.process = None
        *_, last = self.log_text().splitlines()
        self.assertIn(f"control.metrics: cannot listen at {address}: ", last)
        self.assertIn(says, last)
        self.assertFalse(self.socket.exists())

    def test_an_address_in_use_is_an_error_in_words(self):
        with socket.create_server(("127.0.0.1", self.port)):
            self.refuse(f"127.0.0.1:{self.port}", "give it an address of its own")
        self.refuse("203.0.113.99:9464", "give it an address of this machine")

    def test_a_port_without_the_privilege_for_it_is_an_error_in_words(self):
        if os.geteuid() != 0:
            self.skipTest("a network namespace, where port 80 takes the privilege, takes root")
        self.before = ["unshare", "--net", "setpriv", "--bounding-set", "-net_bind_service"]
        self.refuse("0.0.0.0:80", "a port below 1024 takes root or CAP_NET_BIND_SERVICE")


def main():
    for name in ("SHUNTD", "SHUNTCTL"):
        if not pathlib.Path(os.environ.get(name, "")).is_file():
            sys.exit(f"{name} does not name its program; meson sets it")
    # unittest runs no cleanups where it is interrupted by a time limit's SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
