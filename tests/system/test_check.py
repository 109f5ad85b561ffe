#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd's command line, and what --check says of a configuration; nothing is started.

SHUNTD and SHUNT_REPLAY name the programs.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

SHUNTD = os.environ.get("SHUNTD", "")
SHUNT_REPLAY = os.environ.get("SHUNT_REPLAY", "")
ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests" / "captures" / "demo.pcap"
DONE, FAILED, BAD_USAGE = 0, 1, 2
# Of one program, also under sanitizers on a busy machine.
TIMEOUT_S = 60

WAN = {"name": "wan", "device": "net_af_xdp,iface=eth0", "addresses": ["192.0.2.1/24"]}
SERVICES = [{"name": "web", "address": "198.51.100.10", "protocol": "tcp", "port": 443,
             "backends": [{"name": "web-1", "address": "10.0.0.11"}]}]
# What, the configuration, what is said of it after its path.
WRONG = [
    ("no ports", {"services": SERVICES},
     ["1:1: dataplane.ports: expected 1 to 16 ports, found none"]),
    ("an empty list of them", {"dataplane": {"ports": []}, "services": SERVICES},
     ["1:25: dataplane.ports: expected 1 to 16 ports, found none"]),
    ("one device twice",
     {"dataplane": {"ports": [WAN, {"name": "lan", "device": "net_af_packet,iface=eth0"}]}},
     ["1:135: device: 'net_af_packet,iface=eth0' is that of port 'wan', on line 1; expected "
      "one of its own"]),
    ("all that is wrong", {"hash_seed": -1, "services": [{}]},
     ["1:32: this service has no key 'name', which it needs",
      "1:32: this service has no key 'address', which it needs",
      "1:32: this service has no key 'protocol', which it needs",
      "1:32: this service has no key 'port', which it needs",
      "1:15: hash_seed: expected a whole number from 0 to 18446744073709551615, found the "
      "value '-1'",
      "1:1: dataplane.ports: expected 1 to 16 ports, found none"]),
]


def run(program, *options):
    return subprocess.run([program, *options], check=False, text=True, timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class CheckCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="shunt-check-")
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name) / "shunt.yaml"

    def write(self, model):
        self.config.write_text(json.dumps(model), encoding="utf-8")


class Check(CheckCase):
    def test_what_is_wrong_has_a_place_and_a_cure(self):
        """With --check and without."""
        for what, model, lines in WRONG:
            self.write(model)
            expected = [f"{self.config}:{line}" for line in lines]
            for check in ([], ["--check"]):
                with self.subTest(what, check=check):
                    done = run(SHUNTD, "--config", self.config, *check)
                    said = [line.removeprefix("shuntd: error: ")
                            for line in done.stderr.splitlines()]
                    self.assertEqual(said, expected)
                    self.assertEqual((done.stdout, done.returncode), ("", BAD_USAGE))

    def test_what_is_right_is_passed_over_in_silence(self):
        self.write({"dataplane": {"ports": [WAN]}, "services": SERVICES})
        done = run(SHUNTD, "--config", self.config, "--check")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", DONE))

    def test_a_warning_is_no_error(self):
        backends = [{"name": "a", "address": "10.0.0.1", "weight": 0}]
        self.write({"dataplane": {"ports": [WAN]},
                    "services": [{**SERVICES[0], "backends": backends}]})
        done = run(SHUNTD, "--config", self.config, "--check")
        self.assertIn("warning: all backends have weight 0", done.stderr)
        self.assertEqual((done.stdout, done.returncode), ("", DONE))

    def test_a_replay_takes_services_alone(self):
        self.write({"services": SERVICES})
        done = run(SHUNT_REPLAY, "--config", self.config, CAPTURE)
        self.assertEqual((done.stderr, done.returncode), ("", DONE))


class CommandLine(CheckCase):
    def test_bad_usage(self):
        self.write({"dataplane": {"ports": [WAN]}})
        rows = [
            ("no configuration", ["--check"], "Name it with --config FILE"),
            ("an unknown option", ["--config", self.config, "--nosuch"], "--nosuch"),
            ("an argument", ["--config", self.config, "--check", "x"], "options alone"),
            ("a file that is not there", ["--config", "/nosuch", "--check"],
             "/nosuch: it cannot be opened"),
        ]
        for what, options, says in rows:
            with self.subTest(what):
                done = run(SHUNTD, *options)
                self.assertIn(says, done.stderr)
                self.assertEqual((done.stdout, done.returncode), ("", BAD_USAGE))

    def test_help_and_version_are_results(self):
        for options in (["--help"], ["-h"], ["--version"], ["-V"]):
            with self.subTest(options):
                done = run(SHUNTD, *options)
                self.assertIn("shuntd", done.stdout)
                self.assertEqual((done.stderr, done.returncode), ("", DONE))

    def test_a_result_that_cannot_be_written(self):
        for option in ("--help", "--version"):
            with self.subTest(option), open("/dev/full", "wb") as full:
                done = subprocess.run([SHUNTD, option], check=False, stdout=full,
                                      timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, FAILED)


def main():
    if not all(pathlib.Path(name).is_file() for name in (SHUNTD, SHUNT_REPLAY)):
        sys.exit("SHUNTD and SHUNT_REPLAY must name the programs; meson sets them")
    # unittest runs no cleanups where it is interrupted by a time limit's SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
