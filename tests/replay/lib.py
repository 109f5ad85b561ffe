# SPDX-License-Identifier: BSD-3-Clause
"""Running shunt-replay as its users do. SHUNT_REPLAY names the program."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import captures
import wire
from captures import Packet

PROGRAM = os.environ.get("SHUNT_REPLAY", "")
# Of one run of the program, also under sanitizers on a busy machine.
TIMEOUT_S = 240

VIP = "198.51.100.10"
VIP6 = "2001:db8:51::10"
CLIENT = "203.0.113.7"
CLIENT6 = "2001:db8:113::7"
ROUTER = "192.0.2.254"
ROUTER6 = "2001:db8:fe::1"
OUTER = "192.0.2.1"
OUTER6 = "2001:db8::1"
NEXT_HOP = "02:00:00:00:00:fe"
FIRST_NS = 1_700_000_000 * captures.NS + 123_456_000

PORT = {"name": "wan", "device": "net_null0", "addresses": [f"{OUTER}/24", f"{OUTER6}/64"],
        "next_hop": NEXT_HOP}
DECISION_KEYS = ["packet", "verdict", "service", "backend", "flow", "slot", "reason"]
DROPS = ["truncated", "bad_ip_version", "bad_header_length", "bad_total_length",
         "bad_checksum", "ttl_expired", "unknown_extension_header", "fragment_unmatched",
         "no_backend", "no_next_hop", "too_big", "unsupported_l4", "vlan_depth", "no_service",
         "tx_full", "no_memory", "snaplen", "handoff_full", "port_down", "kernel_down",
         "fragment_bad", "fragment_overlap", "fragment_excess",
         "martian_source", "echo_refused", "rate_limited", "link_multicast",
         "martian_destination", "source_route"]


def backends(n, service="web"):
    return [{"name": f"{service}-{i}", "address": f"10.0.0.{10 + i}"} for i in range(1, n + 1)]


def service(name="web", n=3, **keys):
    found = {"name": name, "address": VIP, "protocol": "tcp", "port": 80,
             "backends": backends(n, name)}
    found.update(keys)
    return found


def config(*services, port=None, dataplane=None, **keys):
    """A configuration as text; JSON is YAML too. port: changes to the one port's keys."""
    plane = {"ports": [{**PORT, **(port or {})}], **(dataplane or {})}
    return json.dumps({"dataplane": plane, "services": list(services), **keys})


def items(*values):
    """A list in YAML, one item a line, so that the n-th is on line n."""
    return "".join(f"- {json.dumps(value)}\n" for value in values)


def at(seconds, packet, **frame):
    """A packet of a capture: so long after the first, in a frame."""
    return Packet(wire.ether(packet, **frame), FIRST_NS + round(seconds * captures.NS))


@dataclasses.dataclass
class Result:
    status: int
    stdout: bytes
    stderr: str
    report: dict = None
    decisions: list = None
    output: captures.Capture = None

    def column(self, key):
        return [decision[key] for decision in self.decisions]


def run(*args, stdin=b"", timeout=TIMEOUT_S, **popen):
    """The program's exit status, stdout and stderr."""
    done = subprocess.run([PROGRAM, *map(str, args)], input=stdin, timeout=timeout,
                          stdout=popen.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          check=False, **popen)
    stderr = done.stderr.decode()
    if done.returncode < 0 or "Sanitizer" in stderr or "runtime error" in stderr:
        raise AssertionError(f"it crashed ({done.returncode}):\n{stderr}")
    return Result(done.returncode, done.stdout, stderr)


class ReplayCase(unittest.TestCase):
    """A folder for each test, and a replay in one call."""

    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-replay-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, content):
        """Write a file into the test's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    def replay(self, packets, settings=None, *, args=(), events=None, expect=None,
               write=True, status=0, **popen):
        """
        Replay packets (or a capture's bytes) and read back all that was written. The exit
        status must be `status`, the report must hold together.
        """
        if not isinstance(packets, (bytes, pathlib.Path)):
            packets = captures.pcap(packets)
        source = packets if isinstance(packets, pathlib.Path) else self.put("in.pcap", packets)
        command = ["--config", self.put("shunt.yaml", settings or config(service())), "--json",
                   "--decisions", self.folder / "decisions.jsonl"]
        if write:
            command += ["--write", self.folder / "out.pcap"]
        if events is not None:
            command += ["--events", self.put("events.yaml", events)]
        if expect is not None:
            command += ["--expect", self.put("expect.yaml", expect)]
        result = run(*command, *args, source, **popen)
        self.assertEqual(result.status, status, result.stderr)
        return self.read_back(result, write)

    def read_back(self, result, write=True):
        result.report = json.loads(result.stdout)
        self.check_report(result.report)
        text = (self.folder / "decisions.jsonl").read_text(encoding="utf-8")
        result.decisions = [json.loads(line) for line in text.splitlines()]
        if write:
            result.output = captures.read((self.folder / "out.pcap").read_bytes())
        return result

    def same(self, packets, settings=None, workers=(1, 5), **keys):
        """A replay with each number of workers, whose results must be the same to the byte."""
        found = []
        for n in workers:
            result = self.replay(packets, settings, args=["--workers", n], **keys)
            report = {key: value for key, value in result.report.items() if key != "rate"}
            found.append((report, result.decisions, (self.folder / "out.pcap").read_bytes()))
            for one, other in zip(found[0][1], found[-1][1]):
                self.assertEqual(one, other, f"{n} workers")
            self.assertEqual(found[-1][0], found[0][0], f"{n} workers")
            self.assertTrue(found[-1][2] == found[0][2], f"{n} workers: another output")
        return result

    def check_report(self, report):
        """What must hold of any report, whatever was replayed."""
        packets = report["packets"]
        self.assertEqual(report["schema"], 1)
        self.assertEqual(packets["received"], packets["forwarded"] + packets["replied"] +
                         packets["to_kernel"] + packets["dropped"])
        self.assertEqual(sum(report["drops"].values()), packets["dropped"])
        for one in report["services"]:
            for key in ("packets", "bytes", "flows"):
                self.assertEqual(one[key], sum(b[key] for b in one["backends"]), key)
        self.assertEqual(packets["forwarded"], sum(s["packets"] for s in report["services"]))
        flows = report["flows"]
        self.assertEqual(flows["total"], sum(s["flows"] for s in report["services"]))
        self.assertLessEqual(flows["broken"], flows["moved"])

    def refuse(self, *args, status, says=(), stdin=b"", **popen):
        """A run that ends with `status` and tells why; it says nothing on stdout."""
        result = run(*args, stdin=stdin, **popen)
        self.assertEqual(result.status, status, result.stderr)
        for text in says:
            self.assertIn(text, result.stderr)
        self.assertNotEqual(result.stderr, "")
        return result


def main():
    if not PROGRAM:
        sys.exit("SHUNT_REPLAY must name the program: build/tools/shunt-replay, say")
    unittest.main()
