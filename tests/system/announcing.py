# SPDX-License-Identifier: BSD-3-Clause
"""A shuntd that announces its services, and real BIRD. SHUNT_SAMPLES names the samples' folder."""

import os
import pathlib
import shutil
import subprocess

import lab
from lab import FAMILIES, HOST, NETWORK, OWN, TIMEOUT_S, VIP, wait_until

SAMPLES = pathlib.Path(os.environ.get("SHUNT_SAMPLES", ""))
INTERFACE = "shunt-vips"
SLOW_SCAN = "scan time 3600;"
# Above the kernel's own, so that a route of the test's is behind shuntd's.
BEHIND = "5000"


def balancer_config(own=None):
    """The sample, with the lab's addresses in it as they are, or those of another balancer."""
    text = (SAMPLES / "bird.conf").read_text(encoding="utf-8")
    for value in (OWN[4], OWN[6], lab.ROUTER[4], lab.ROUTER[6], "= 65000;", "= 65001;"):
        if value not in text:
            raise AssertionError(f"the sample has no {value}")
    for family in FAMILIES if own else ():
        text = text.replace(f"= {OWN[family]};", f"= {own[family]};")
    return (text.replace("log syslog all;", "log stderr all;")
            .replace("protocol device {", f"protocol device {{ {SLOW_SCAN}")
            .replace("learn;", f"learn; {SLOW_SCAN}")
            .replace("hold time 9;", "hold time 9; connect delay time 1;"))


class Bird:
    """A BIRD in a namespace."""

    def __init__(self, name, text):
        self.folder = NETWORK.folder / f"bird-{name}"
        self.folder.mkdir(exist_ok=True)
        self.control = self.folder / "ctl"
        self.log = self.folder / "log"
        config = self.folder / "bird.conf"
        config.write_text(text, encoding="utf-8")
        self.process = NETWORK.spawn(
            name, shutil.which("bird", path=lab.PATH), "-f", "-c", config, "-s", self.control,
            "-P", self.folder / "pid", log=self.log)
        wait_until(self.is_there, lambda: self.log.read_text(encoding="utf-8"))

    def is_there(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text(encoding="utf-8"))
        done = subprocess.run([shutil.which("birdc", path=lab.PATH), "-s", self.control, "show",
                               "status"], check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=TIMEOUT_S)
        return done.returncode == 0

    def show(self, *words):
        return lab.run(shutil.which("birdc", path=lab.PATH), "-s", self.control, "show",
                       *words)

    def has_sessions(self):
        return self.show("protocols").count("Established") == len(FAMILIES)

    def stop(self):
        lab.stop(self.process)
        NETWORK.processes.remove(self.process)


class Announcer(lab.Daemon):
    """With the interface, and routes that keep the kernel silent behind those of shuntd."""

    def __init__(self, withdraw="0s", driver="net_af_packet", place="balancer", **announce):
        super().__init__(driver, 1, place)
        self.announce(withdraw_before_stop=withdraw, **announce)

    def announce(self, **keys):
        self.more = {"announce": {"interface": INTERFACE, **keys}}

    def give_addresses(self, interface):
        for family in FAMILIES:
            NETWORK.ip(self.place, "address", "replace",
                       f"{self.own[family]}/{lab.LENGTH[family]}", "dev", interface)
            NETWORK.ip(self.place, "route", "replace", "blackhole",
                       f"{VIP[family]}/{HOST[family]}", "metric", BEHIND)
