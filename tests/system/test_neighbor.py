#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A service address on the balancer's own segment: a kernel there asks who has it, by ARP and
by neighbour discovery, and then reaches the service, over packet sockets and XDP sockets.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

# A client on the segment between the router and the balancer.
NAME = "beside"
ADDRESS = {4: "192.0.2.77", 6: "2001:db8:2::77"}
# Of a service, and of nobody.
SERVED = {4: "192.0.2.50", 6: "2001:db8:2::50"}
FREE = {4: "192.0.2.60", 6: "2001:db8:2::60"}
N_REQUESTS = 50


def setUpModule():  # pylint: disable=invalid-name
    """The client; and backends that keep it to themselves that the address is theirs too."""
    NETWORK.batch("router", f"link add near-{NAME} type veth peer name eth0 "
                  f"netns {NETWORK.netns(NAME)}", f"link set near-{NAME} master near up")
    NETWORK.batch(NAME, "link set eth0 up", *(
        f"address add {ADDRESS[family]}/{lab.LENGTH[family]} dev eth0"
        for family in lab.FAMILIES))
    NETWORK.run(NAME, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro",
                "off")
    # Who does not answer once does not answer three times. Without a nonce the kernel's probe
    # for a duplicate has no option at all, and the answer is longer than it.
    NETWORK.run(NAME, "sh", "-c", "cd /proc/sys/net && echo 2 >ipv6/conf/eth0/accept_dad && "
                "for k in all eth0; do echo 0 >ipv6/conf/$k/enhanced_dad; done && "
                "for v in ipv4 ipv6; do echo 1 >$v/neigh/eth0/mcast_solicit; done")
    for name in lab.BACKENDS:
        NETWORK.run(name, "sh", "-c", "echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce")
        NETWORK.batch(name, *(f"address add {SERVED[family]}/{lab.HOST[family]} dev lo"
                              for family in lab.FAMILIES))


def near_service(family):
    return lab.service(family, "l2", address=SERVED[family])


def ask(family, address):
    """Make the kernel ask. Returns the MAC address that it was told, or None."""
    neighbour = (address, "dev", "eth0")
    NETWORK.ip(NAME, "neighbour", "replace", *neighbour, "nud", "none")
    NETWORK.ip(NAME, "neighbour", "delete", *neighbour)
    subprocess.run(NETWORK.command(NAME, "ping", f"-{family}", "-n", "-c", "1", "-W", "5",
                                   "-w", "1", address),
                   check=False, stdout=subprocess.DEVNULL, timeout=lab.TIMEOUT_S)

    def entry():
        found = json.loads(NETWORK.ip(NAME, "-j", "neighbour", "show", "to", *neighbour)
                           or "[]")
        return found[0] if found and found[0]["state"] != ["INCOMPLETE"] else None

    return wait_until(entry, f"an end to asking for {address}").get("lladdr")


class EachDriver:
    driver = ""
    workers = 1

    def start_near(self, **keys):
        daemon = lab.Daemon(self.driver, self.workers)
        self.addCleanup(daemon.remove)
        self.write(daemon, **keys)
        daemon.start()
        if self.driver == "net_af_packet":
            # As lab.give_addresses(): the kernel with its copy is to keep quiet.
            for family in lab.FAMILIES:
                NETWORK.ip("balancer", "route", "replace", "blackhole",
                           f"{SERVED[family]}/{lab.HOST[family]}")
        return daemon

    @staticmethod
    def write(daemon, **keys):
        daemon.write(*(near_service(family) for family in lab.FAMILIES),
                     *(lab.service(family, "ipip") for family in lab.FAMILIES), **keys)

    def own_mac(self):
        return json.loads(NETWORK.ip("balancer", "-j", "link", "show", "wan0"))[0]["address"]

    def expect(self, wanted):
        for family in lab.FAMILIES:
            with self.subTest(family=family):
                self.assertEqual(ask(family, SERVED[family]), wanted)

    def test_it_answers_where_it_is_told_to(self):
        """Not before a reload says so, and not after one that takes it back."""
        daemon = self.start_near()
        self.expect(None)
        self.assertEqual(daemon.json("stats")["packets"]["replied"], 0)

        self.write(daemon, answer_arp=True)
        changed = {one["key"]: (one["from"], one["to"])
                   for one in daemon.json("plan", daemon.config)["settings"]}
        self.assertEqual(changed["dataplane.answer_arp"], (False, True))
        daemon.ctl("reload")
        self.expect(self.own_mac())
        self.assertIn("answer_arp: true", daemon.ctl("config", "show"))
        stats = daemon.json("stats")
        self.assertGreaterEqual(stats["packets"]["replied"], len(lab.FAMILIES))
        self.assertEqual(stats["packets"]["dropped"], 0, stats["drops"])

        self.write(daemon)
        daemon.ctl("reload")
        self.expect(None)

    def test_the_service_is_reached(self):
        self.start_near(answer_arp=True)
        for family in lab.FAMILIES:
            with self.subTest(family=family):
                host = SERVED[family] if family == 4 else f"[{SERVED[family]}]"
                text = NETWORK.run(NAME, "curl", "--silent", "--show-error", "--fail",
                                   "--fail-early", "--noproxy", "*", "--max-time", "20",
                                   f"http://{host}:{lab.PORTS['l2']}/[1-{N_REQUESTS}]")
                self.assertEqual(len(text.split()), N_REQUESTS)
                self.assertEqual(set(text.split()), set(lab.BACKENDS))

    def test_a_neighbour_that_looks_again_finds_it(self):
        """The kernel asks whom it knows already, and nobody else."""
        self.start_near(answer_arp=True)
        for family in lab.FAMILIES:
            with self.subTest(family=family):
                neighbour = (SERVED[family], "dev", "eth0")
                NETWORK.ip(NAME, "neighbour", "replace", neighbour[0], "lladdr",
                           self.own_mac(), "nud", "probe", *neighbour[1:])
                wait_until(lambda: "REACHABLE" in NETWORK.ip(NAME, "neighbour", "show", "to",
                                                             *neighbour),
                           lambda: NETWORK.ip(NAME, "neighbour", "show", "to", *neighbour))

    def test_nobody_takes_the_address(self):
        """IPv6 looks for a duplicate first, and finds one."""
        self.start_near(answer_arp=True)
        address = f"{SERVED[6]}/{lab.LENGTH[6]}"
        NETWORK.ip(NAME, "address", "add", address, "dev", "eth0")
        try:
            wait_until(lambda: "dadfailed" in NETWORK.ip(NAME, "address", "show", "dev", "eth0"),
                       lambda: NETWORK.ip(NAME, "address", "show", "dev", "eth0"))
        finally:
            NETWORK.ip(NAME, "address", "delete", address, "dev", "eth0")

    def test_other_addresses_are_not_answered_for(self):
        """What is no service's, and a service's that is on no network of the port."""
        daemon = self.start_near(answer_arp=True)
        for family in lab.FAMILIES:
            elsewhere = f"{lab.VIP[family]}/{lab.HOST[family]}"
            NETWORK.ip(NAME, "route", "replace", elsewhere, "dev", "eth0")
            try:
                for address in (FREE[family], lab.VIP[family]):
                    with self.subTest(address):
                        self.assertIsNone(ask(family, address))
            finally:
                NETWORK.ip(NAME, "route", "delete", elsewhere, "dev", "eth0")
            self.assertIsNotNone(ask(family, lab.OWN[family]))  # by the kernel
        self.assertEqual(daemon.json("stats")["packets"]["replied"], 0)

    def test_a_port_may_differ(self):
        """The port's own word counts."""
        daemon = lab.Daemon(self.driver, self.workers)
        self.addCleanup(daemon.remove)
        self.write(daemon, answer_arp=True)
        config = json.loads(daemon.config.read_text(encoding="utf-8"))
        config["dataplane"]["ports"][0]["answer_arp"] = False
        daemon.config.write_text(json.dumps(config), encoding="utf-8")
        daemon.start()
        self.expect(None)


class PacketSockets(EachDriver, lab.LabCase):
    driver = "net_af_packet"


class XdpSocketsTwoWorkers(EachDriver, lab.LabCase):
    driver = "net_af_xdp"
    workers = 2


if __name__ == "__main__":
    NETWORK.names.append(NAME)
    lab.main()
