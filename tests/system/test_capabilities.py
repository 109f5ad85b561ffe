#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The capabilities that tools/README.md gives a container are enough to run shuntd with.

SHUNTD and SHUNTCTL name the programs. A network namespace has a pair of interfaces, and shuntd,
root without any other capability, a port on one of them.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from lab import run, stop, wait_until

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "tools" / "README.md").read_text(encoding="utf-8").partition(
    "## In a container")[2]
NETNS = f"shunt-capabilities-{os.getpid()}"


def capabilities(text):
    return set(re.findall(r"--cap-add=(\w+)", text))


GIVEN = capabilities(PAGE.partition("podman run")[2].partition("```")[0])
FOR_XDP = capabilities(PAGE.partition("Ports of `net_af_xdp` take ")[2].partition(" as well")[0])


class Capabilities(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="shunt-capabilities-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        run("ip", "netns", "add", NETNS)
        self.addCleanup(run, "ip", "netns", "del", NETNS)
        run("ip", "-n", NETNS, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
        for interface in ("eth0", "eth1"):
            run("ip", "-n", NETNS, "link", "set", interface, "up")

    def start(self, driver, given):
        """shuntd with these capabilities alone."""
        config = self.folder / "shunt.yaml"
        config.write_text(json.dumps({
            "dataplane": {"workers": 1, "idle": "adaptive", "idle_sleep": "1ms", "ports": [
                {"name": "wan", "device": f"{driver},iface=eth0", "addresses": ["192.0.2.1/24"]}]},
            "control": {"socket": str(self.folder / "sock"), "metrics": "off"}}), encoding="utf-8")
        # Of AddressSanitizer's leaks those of libxdp alone are not counted.
        suppressions = self.folder / "lsan"
        suppressions.write_text("leak:libxdp.so\n", encoding="ascii")
        words = ",".join(f"+{one.lower()}" for one in sorted(given))
        with open(self.folder / "log", "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(
                ["ip", "netns", "exec", NETNS, "setpriv", f"--bounding-set=-all,{words}", SHUNTD,
                 "--config", config], stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "LSAN_OPTIONS": f"suppressions={suppressions}"})
        self.addCleanup(stop, daemon)
        return daemon

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def expect_ready(self, driver, given):
        daemon = self.start(driver, given)
        wait_until(lambda: "ready" in self.log() or daemon.poll() is not None, self.log)
        self.assertIsNone(daemon.poll(), self.log())
        ports = json.loads(run(SHUNTCTL, "--socket", self.folder / "sock", "-j", "status"))["ports"]
        self.assertEqual([port["link"] for port in ports], ["up"])
        self.assertEqual(stop(daemon), 0, self.log())

    def test_those_given_run_a_port_by_packet_sockets(self):
        self.assertGreaterEqual(len(GIVEN), 4)
        self.expect_ready("net_af_packet", GIVEN)

    def test_those_for_xdp_run_a_port_by_xdp_sockets_and_its_twin(self):
        self.assertGreaterEqual(len(FOR_XDP), 1)
        self.expect_ready("net_af_xdp", GIVEN | FOR_XDP)

    def test_without_the_network_s_nothing_starts(self):
        daemon = self.start("net_af_packet", GIVEN - {"NET_ADMIN"})
        self.assertEqual(daemon.wait(timeout=60), 1)
        self.assertIn("CAP_NET_ADMIN", self.log())


def main():
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    if os.geteuid() != 0:
        print("skipped: not root: network namespaces and ports take it")
        sys.exit(77)
    # A time limit's SIGTERM must not leave the namespace behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unittest.main()


if __name__ == "__main__":
    main()
