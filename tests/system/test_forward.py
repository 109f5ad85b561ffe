#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd on live interfaces: HTTP from a client through it to three nginx, in every forward
mode and both families, over packet sockets and XDP sockets.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import collections
import ipaddress
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

# That one of three backends gets none of them by chance has odds of one to 10^9.
N_REQUESTS = 50
N_PINGS = 3


def tcp_to_service(frame):
    """Of what an Ethernet frame holds for a service address, by itself or in IPIP: (family,
    port, IP bytes); None of other frames."""
    kind, = struct.unpack_from("!H", frame, 12)
    packet = frame[14:]
    while True:
        if kind == 0x0800:
            family, start = 4, (packet[0] & 15) * 4
            n_bytes, = struct.unpack_from("!H", packet, 2)
            protocol, to = packet[9], packet[16:20]
        elif kind == 0x86dd:
            family, start = 6, 40
            n_bytes = 40 + struct.unpack_from("!H", packet, 4)[0]
            protocol, to = packet[6], packet[24:40]
        else:
            return None
        if protocol not in (4, 41):
            break
        kind = 0x0800 if protocol == 4 else 0x86dd
        packet = packet[start:]
    if protocol != 6 or to != ipaddress.ip_address(lab.VIP[family]).packed:
        return None
    return family, struct.unpack_from("!H", packet, start + 2)[0], n_bytes


def tally(frames):
    """{service: [packets, bytes]} of frames that are for one."""
    modes = {port: mode for mode, port in lab.PORTS.items()}
    found = {}
    for frame in frames:
        what = tcp_to_service(frame)
        if what is not None:
            one = found.setdefault(f"{modes[what[1]]}-v{what[0]}", [0, 0])
            one[0] += 1
            one[1] += what[2]
    return found


class Sent:
    """What the kernels of the client and of the backends, and shunt-decap, have counted."""

    def __init__(self):
        self.by_client = (NETWORK.snmp("client", "Tcp.OutSegs")
                          + NETWORK.snmp("client", "Tcp.RetransSegs"))
        self.by_backends = {name: NETWORK.snmp(name, "Tcp.InSegs") for name in lab.BACKENDS}
        self.decap = [NETWORK.decap_counters(name) for name in lab.BACKENDS]

    def decapsulated(self, kind=None):
        return sum(value for counters in self.decap
                   for name, value in counters["decapsulated"].items()
                   if kind is None or name == kind)

    def decapsulated_bytes(self):
        return sum(counters["decapsulated_bytes"] for counters in self.decap)


class EachDriver:
    driver = ""
    workers = 1

    def check_stats(self, stats):
        """Whatever has been sent: the parts of the report are the whole."""
        packets = stats["packets"]
        self.assertEqual(packets["received"], packets["forwarded"] + packets["replied"]
                         + packets["to_kernel"] + packets["dropped"])
        self.assertEqual(packets["dropped"], sum(stats["drops"].values()))
        for one in stats["services"]:
            for key in ("packets", "bytes", "flows"):
                self.assertEqual(one[key], sum(each[key] for each in one["backends"]), one)
        self.assertEqual(packets["forwarded"],
                         sum(one["packets"] for one in stats["services"]))

    def settled_stats(self, daemon, before):
        """The report, once all that the client has sent is in it."""
        def is_settled():
            stats = daemon.json("stats")
            sent = (NETWORK.snmp("client", "Tcp.OutSegs")
                    + NETWORK.snmp("client", "Tcp.RetransSegs") - before.by_client)
            return stats if stats["packets"]["forwarded"] == sent else None

        return wait_until(is_settled, lambda: f"as many forwarded as sent: "
                          f"{daemon.json('stats')['packets']}", timeout_s=10)

    def test_every_mode(self):
        """Each service's requests are answered, by every backend; and each packet counted."""
        before = Sent()
        daemon = self.start(self.driver, self.workers,
                            *(lab.service(family, mode) for family in lab.FAMILIES
                              for mode in lab.MODES))
        answered = {}
        for family in lab.FAMILIES:
            for mode in lab.MODES:
                with self.subTest(mode=mode, family=family):
                    answered[f"{mode}-v{family}"] = collections.Counter(
                        self.fetch(family, lab.PORTS[mode], N_REQUESTS))
        stats = self.settled_stats(daemon, before)
        after = Sent()
        self.check_stats(stats)
        self.assertEqual(stats["packets"]["dropped"], 0, stats["drops"])
        services = {one["name"]: one for one in stats["services"]}
        for name, counter in answered.items():
            with self.subTest(name):
                self.assertEqual(set(counter), set(lab.BACKENDS))
                self.assertEqual({one["name"]: one["flows"]
                                  for one in services[name]["backends"]}, counter)

        # What has left is what the backends got: each packet once, each in its tunnel.
        for name in lab.BACKENDS:
            self.assertEqual(
                after.by_backends[name] - before.by_backends[name],
                sum(one["packets"] for each in stats["services"] for one in each["backends"]
                    if one["name"] == name))
        for family in lab.FAMILIES:
            for mode in ("ipip", "gre", "gue"):
                kind = f"{mode}_{family}in{family}"
                self.assertEqual(after.decapsulated(kind) - before.decapsulated(kind),
                                 services[f"{mode}-v{family}"]["packets"], kind)
        self.assertEqual(after.decapsulated_bytes() - before.decapsulated_bytes(),
                         sum(one["bytes"] for name, one in services.items()
                             if name.split("-")[0] in ("ipip", "gre", "gue")))

    def captures(self):
        """At the balancer's end, and of the frames to each backend by farm and by near. With
        XDP, and at backends with their XDP program, what arrives is seen at the router's end
        of the cable alone."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-lab-"))
        self.addCleanup(shutil.rmtree, folder)
        places = {"balancer": ("balancer", "wan0", "in")}
        if self.driver == "net_af_xdp":
            places["balancer"] = ("router", lab.CABLE["balancer"], "out")
        for name in lab.BACKENDS:
            for bridge in ("farm", "near"):
                places[bridge, name] = ("router", f"{bridge}-{name}", "out")
        found = {}
        for what, place in places.items():
            found[what] = lab.Capture(folder, *place)
            self.addCleanup(lab.stop, found[what].process)
        return found

    @staticmethod
    def quiet(daemon, capture):
        """The report and how many frames had arrived, at a moment when nothing arrives."""
        def read():
            return len(capture.frames()), daemon.json("stats")

        def is_quiet():
            before = read()
            time.sleep(0.2)
            after = read()
            return after if (after[0], after[1]["packets"]) == (
                before[0], before[1]["packets"]) else None

        return wait_until(is_quiet, "the end of all traffic")

    def test_counters_are_what_is_on_the_wire(self):
        """Each packet and byte, by service and backend, at both ends of the balancer."""
        modes = ("ipip", "l2")
        services = [lab.service(family, mode) for family in lab.FAMILIES for mode in modes]
        # Connections of tests before may still say their last words: not to this daemon.
        for _ in range(10):
            daemon = self.start(self.driver, self.workers, *services)
            captures = self.captures()
            n_before, before = self.quiet(daemon, captures["balancer"])
            if before["packets"]["forwarded"] == 0:
                break
            for one in captures.values():
                one.stop()
            daemon.stop()
        self.assertEqual(before["packets"]["forwarded"], 0)
        for family in lab.FAMILIES:
            for mode in modes:
                self.fetch(family, lab.PORTS[mode], N_REQUESTS)
        n_after, after = self.quiet(daemon, captures["balancer"])
        frames = {place: one.stop() for place, one in captures.items()}
        self.check_stats(after)
        self.assertEqual(after["packets"]["received"] - before["packets"]["received"],
                         n_after - n_before)
        arrived = tally(frames["balancer"])
        self.assertEqual({one["name"]: [one["packets"], one["bytes"]]
                          for one in after["services"]}, arrived)
        self.assertEqual(after["packets"]["forwarded"], sum(one[0] for one in arrived.values()))
        for one in after["services"]:
            bridge = "near" if one["name"].startswith("l2") else "farm"
            self.assertEqual({each["name"]: [each["packets"], each["bytes"]]
                              for each in one["backends"]},
                             {name: tally(frames[bridge, name])[one["name"]]
                              for name in lab.BACKENDS}, one["name"])
        # A worker keeps what it has forwarded: so all of them did, a real share each.
        entries = [one["flow_entries"] for one in after["workers"]]
        self.assertEqual(len(entries), self.workers)
        self.assertEqual(sum(entries), sum(one["flows"] for one in after["services"]))
        self.assertGreater(min(entries), sum(entries) / 5)

    def test_the_balancer_itself_is_there(self):
        """Its own addresses answer: the kernel gets what is for no service, and is heard."""
        daemon = self.start(self.driver, self.workers, lab.service(4, "ipip"))
        before = daemon.json("stats")["packets"]
        for family in lab.FAMILIES:
            for size in (56, 1400):
                NETWORK.run("client", "ping", "-n", "-c", N_PINGS, "-i", "0.01", "-W", "5",
                            "-s", size, lab.OWN[family])
        after = daemon.json("stats")
        self.check_stats(after)
        self.assertGreaterEqual(after["packets"]["to_kernel"] - before["to_kernel"],
                                2 * 2 * N_PINGS)
        self.assertEqual(after["packets"]["forwarded"], 0)
        # No service at that port: the kernel says so, over TCP too, with good checksums.
        done = subprocess.run(
            NETWORK.command("client", "curl", "--silent", "--show-error", "--noproxy", "*",
                            "--max-time", "20", f"http://{lab.OWN[4]}:8001/"),
            check=False, text=True, stderr=subprocess.PIPE, timeout=lab.TIMEOUT_S)
        self.assertEqual(done.returncode, 7, done.stderr)  # refused

    def test_next_hops_are_the_kernels(self):
        """Requests go the way that the kernel has, also when that changes."""
        daemon = self.start(self.driver, self.workers,
                            *(lab.service(family, "ipip") for family in lab.FAMILIES))
        for family in lab.FAMILIES:
            with self.subTest("a route by way of another router", family=family):
                self.goes_by_side(family, False)
                daemon.route(family, lab.SIDE[family])
                self.goes_by_side(family, True)
                daemon.route(family, lab.ROUTER[family])
                self.goes_by_side(family, False)
            with self.subTest("another MAC address", family=family):
                neighbour = (lab.ROUTER[family], "dev", daemon.interface)
                NETWORK.ip("balancer", "neighbour", "replace", neighbour[0], "lladdr",
                           lab.SIDE_MAC, "nud", "permanent", *neighbour[1:])
                self.goes_by_side(family, True)
                NETWORK.ip("balancer", "neighbour", "delete", *neighbour)
                self.goes_by_side(family, False)
            with self.subTest("no route, and one again", family=family):
                NETWORK.ip("balancer", "route", "delete", lab.FARM[family])
                wait_until(lambda: daemon.json("status")["unreached"] == lab.N_BACKENDS,
                           lambda: f"no way to the backends: {daemon.json('status')}")
                daemon.route(family, lab.ROUTER[family])
                daemon.wait_for_hops()
                self.goes_by_side(family, False)

    def goes_by_side(self, family, wanted):
        """In a moment, requests reach the router there, or where it usually is."""
        def packets():
            return NETWORK.rx_packets("router", "side")

        def is_so():
            before = packets()
            self.fetch(family, lab.PORTS["ipip"], 5)
            # A request is a SYN, two acknowledgements, the request itself and a FIN.
            return (packets() - before >= 5 * 4) == wanted

        wait_until(is_so, f"by way of side: {wanted}")


class SentBack(lab.LabCase):
    """A kernel that routes, and has a way to a service's address by a port."""

    AWAY = {4: "198.51.100.77", 6: "2001:db8:51::77"}

    def test_the_log_has_a_warning(self):
        self.addCleanup(NETWORK.run, "balancer", "sh", "-c",
                        "echo 0 >/proc/sys/net/ipv4/ip_forward")
        NETWORK.run("balancer", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for family in lab.FAMILIES:
            NETWORK.ip("balancer", "address", "replace",
                       f"{lab.OWN[family]}/{lab.LENGTH[family]}", "dev", "wan0")
            prefix = f"{self.AWAY[family]}/{lab.HOST[family]}"
            NETWORK.ip("balancer", "route", "replace", prefix, "via", lab.ROUTER[family], "dev",
                       "wan0")
            self.addCleanup(NETWORK.ip, "balancer", f"-{family}", "route", "flush", prefix)
        services = [lab.service(family, "ipip") for family in lab.FAMILIES]
        services += [lab.service(family, "ipip", name=f"away-v{family}",
                                 address=self.AWAY[family]) for family in lab.FAMILIES]
        daemon = self.start("net_af_packet", 1, *services)
        wait_until(lambda: "would send back" in daemon.words(), daemon.words)
        line, = (line for line in daemon.words().splitlines() if "would send back" in line)
        # The other address has a blackhole route, and IPv6 is not routed.
        for words in ("warning: ", " by wan0 ", "service 'away-v4'", "(of 1 services' addresses)",
                      f"ip route add blackhole {self.AWAY[4]} metric 5000"):
            self.assertIn(words, line)


class PacketSockets(EachDriver, lab.LabCase):
    driver = "net_af_packet"


class PacketSocketsTwoWorkers(EachDriver, lab.LabCase):
    driver = "net_af_packet"
    workers = 2


class XdpSockets(EachDriver, lab.LabCase):
    driver = "net_af_xdp"


class XdpSocketsTwoWorkers(EachDriver, lab.LabCase):
    driver = "net_af_xdp"
    workers = 2


if __name__ == "__main__":
    lab.main(("tcpdump", "tcpdump"))
