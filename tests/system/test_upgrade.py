#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two balancers that announce by BGP are restarted one after the other, as for another version,
and no packet is lost: none comes to a balancer that is not there, and none is dropped.

Real BIRD on all three: the balancers' by the sample, the router's with both ways in force.
SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs, SHUNT_SAMPLES the samples' folder.
"""

import ipaddress
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from announcing import (  # noqa: E402 pylint: disable=wrong-import-position
    SLOW_SCAN, Announcer, Bird, balancer_config)
from lab import (  # noqa: E402 pylint: disable=wrong-import-position
    CABLE, FAMILIES, NETWORK, OWN, SECOND_OWN, VIP, wait_until)
from transfers import (  # noqa: E402 pylint: disable=wrong-import-position
    PORT, Echo, Transfers, resets)

IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"


def router_config():
    peers = "".join(f"""
        protocol bgp {{
            local {lab.ROUTER[family]} as 65000; neighbor {own[family]} as 65001;
            connect delay time 1; ipv{family} {{ import all; export none; }};
        }}""" for own in (OWN, SECOND_OWN) for family in FAMILIES)
    kernels = "".join(f"""
        protocol kernel {{
            {SLOW_SCAN} merge paths yes limit 2; ipv{family} {{ import none; export all; }};
        }}""" for family in FAMILIES)
    return f"""
        router id {lab.ROUTER[4]};
        log stderr all;
        protocol device {{ {SLOW_SCAN} }}
        {kernels}
        {peers}
        """


def ways(family):
    """The router's next hops to the service, by what it has heard."""
    found = set()
    for route in json.loads(NETWORK.ip("router", f"-{family}", "-j", "route", "show",
                                       VIP[family])):
        found.update(hop["gateway"] for hop in route.get("nexthops", [route]))
    return found


def for_service(frames):
    """Those with the address of a service as destination."""
    vip = {family: ipaddress.ip_address(VIP[family]).packed for family in FAMILIES}
    return [frame for frame in frames
            if (frame[12:14], frame[30:34]) == (IPV4, vip[4])
            or (frame[12:14], frame[38:54]) == (IPV6, vip[6])]


class Upgrade(lab.LabCase):
    def setUp(self):
        NETWORK.add_second_balancer()
        # As in lab.make_client(): the router itself has sessions with the balancers.
        NETWORK.run("router", "ethtool", "-K", "near", "tx", "off", "tso", "off", "gso", "off")
        for family in FAMILIES:
            NETWORK.ip("router", "route", "delete", VIP[family])
        self.addCleanup(NETWORK.serve_by, OWN)
        self.echoes = [Echo(name) for name in lab.BACKENDS]
        for one in self.echoes:
            self.addCleanup(one.stop)
        self.daemons = [self.start_announcer(place) for place in ("balancer", "second")]
        birds = [Bird("router", router_config()),
                 Bird("balancer", balancer_config()),
                 Bird("second", balancer_config(SECOND_OWN))]
        for bird in birds:
            self.addCleanup(bird.stop)

    def start_announcer(self, place):
        # Longer than any router takes here; a second signal ends it.
        daemon = Announcer(place=place, withdraw="5m")
        self.addCleanup(self.end, daemon)
        daemon.write(*(lab.service(family, "ipip", port=PORT) for family in FAMILIES))
        daemon.start()
        return daemon

    @staticmethod
    def withdraw(daemon):
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stops in" in daemon.words(), daemon.words)

    def end(self, daemon):
        if daemon.process is not None and daemon.process.poll() is None:
            self.withdraw(daemon)
        daemon.remove()

    def wait_ways(self, *daemons):
        wait_until(lambda: all(ways(family) == {one.own[family] for one in daemons}
                               for family in FAMILIES),
                   lambda: f"{[ways(family) for family in FAMILIES]}")

    def expect_at_work(self, transfers, *daemons):
        """All transfers go on, by these balancers, which drop nothing."""
        before = [one.json("stats")["packets"]["forwarded"] for one in daemons]
        transfers.wait_for_blocks()
        self.assertEqual(transfers.failures(), [])
        for one, n_before in zip(daemons, before):
            packets = one.json("stats")["packets"]
            self.assertEqual(packets["dropped"], 0, one.json("stats")["drops"])
            self.assertGreater(packets["forwarded"], n_before)

    def restart(self, daemon, other, transfers):
        self.withdraw(daemon)
        self.wait_ways(other)
        capture = lab.Capture(daemon.folder, "router", CABLE[daemon.place], "out")
        self.expect_at_work(transfers, other)
        stats = daemon.json("stats")
        self.assertEqual(stats["packets"]["dropped"], 0, stats["drops"])
        daemon.stop()
        self.expect_at_work(transfers, other)
        self.assertEqual(len(for_service(capture.stop())), 0)
        daemon.start()
        self.wait_ways(daemon, other)
        self.expect_at_work(transfers, daemon, other)

    def test_each_is_restarted_and_nothing_is_lost(self):
        before = resets()
        self.wait_ways(*self.daemons)
        transfers = Transfers()
        self.addCleanup(transfers.stop)
        self.expect_at_work(transfers, *self.daemons)
        first, second = self.daemons
        self.restart(first, second, transfers)
        self.restart(second, first, transfers)
        transfers.finish()
        self.assertEqual(transfers.faults(self.echoes), [])
        self.assertEqual(resets(), before)


if __name__ == "__main__":
    lab.main(("bird", "bird2"), ("tcpdump", "tcpdump"))
