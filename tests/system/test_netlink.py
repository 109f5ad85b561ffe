#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ctl_netlink against a real kernel: netlink_probe watches destinations in one network
namespace, and a second one answers for them. shuntd keeps its twins there as they are to be.
NETLINK_PROBE and SHUNTD name the programs.
"""

import atexit
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = os.environ.get("NETLINK_PROBE", "")
SHUNTD = os.environ.get("SHUNTD", "")
# Of one change to be seen, also under sanitizers on a busy machine.
TIMEOUT_S = 60

NEAR = f"shunt-netlink-{os.getpid()}-near"
FAR = f"shunt-netlink-{os.getpid()}-far"
# Each link lanN joins near's 10.0.N.1 to far's 10.0.N.2 and .3, and fd00:N::1 likewise.
MACS = ["02:00:00:00:00:02", "02:00:00:00:01:02"]
OTHER_MAC = "02:00:00:00:00:aa"


def run(*command, **keys):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          timeout=120, **keys).stdout


def near(command):
    return run("ip", "-n", NEAR, *command.split())


def far(command):
    return run("ip", "-n", FAR, *command.split())


def batch(namespace, lines):
    run("ip", "-n", namespace, "-batch", "-", input="\n".join(lines) + "\n")


def sysctl(namespace, name, value):
    run("ip", "netns", "exec", namespace, "sh", "-c", f"echo {value} >/proc/sys/net/{name}")


def if_index(name, namespace=NEAR):
    return json.loads(run("ip", "-n", namespace, "-j", "link", "show", name))[0]["ifindex"]


def neigh_states(addr):
    entries = json.loads(run("ip", "-n", NEAR, "-j", "neigh", "show", "to", addr) or "[]")
    return [state for entry in entries for state in entry["state"]]


def n_lost():
    """Notifications that the kernel could not queue for a program in near."""
    table = run("ip", "netns", "exec", NEAR, "cat", "/proc/net/netlink")
    names, *rows = [line.split() for line in table.splitlines()]
    return sum(int(row[names.index("Drops")]) for row in rows)


def remove_namespaces():
    for namespace in (NEAR, FAR):
        subprocess.run(["ip", "netns", "del", namespace], check=False,
                       stderr=subprocess.DEVNULL)


def make_link(n):
    near(f"link add lan{n} type veth peer name lan{n} netns {FAR}")
    far(f"link set lan{n} address {MACS[n]}")
    for namespace in (NEAR, FAR):
        sysctl(namespace, f"ipv6/conf/lan{n}/accept_dad", 0)
        # Nothing is to teach near who far is, unless it asks.
        sysctl(namespace, f"ipv6/conf/lan{n}/router_solicitations", 0)
    batch(NEAR, [f"addr add 10.0.{n}.1/24 dev lan{n}",
                 f"addr add fd00:{n}::1/64 dev lan{n} nodad", f"link set lan{n} up"])
    batch(FAR, [f"addr add 10.0.{n}.2/24 dev lan{n}", f"addr add 10.0.{n}.3/24 dev lan{n}",
                f"addr add fd00:{n}::2/64 dev lan{n} nodad",
                f"addr add fd00:{n}::3/64 dev lan{n} nodad",
                f"addr add fe80::{n}:2/64 dev lan{n} nodad", f"link set lan{n} up"])


def make_namespaces():
    for namespace in (NEAR, FAR):
        run("ip", "netns", "add", namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")
    make_link(0)
    make_link(1)


class Probe:
    """netlink_probe at work: what it has said last of each destination."""

    def __init__(self, *dsts):
        self.process = subprocess.Popen(["ip", "netns", "exec", NEAR, PROGRAM, *dsts],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.lines = queue.Queue()
        self.known = {}
        self.n_callbacks = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def take(self, timeout_s):
        """One line. Returns it; raises queue.Empty where there is none in time."""
        line = self.lines.get(timeout=timeout_s)
        if line is None:
            raise AssertionError("netlink_probe has ended")
        if line == "callback":
            self.n_callbacks += 1
        elif not line.startswith("done "):
            dst, said = line.split(" ", 1)
            self.known[dst] = said
        return line

    def wait_for(self, is_true, what=""):
        end = time.monotonic() + TIMEOUT_S
        while not is_true():
            try:
                self.take(max(end - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError(f"not in time: {what}; but: {self.known}") from None

    def take_all(self, silent_s):
        """Until nothing was said for a while."""
        end = time.monotonic() + TIMEOUT_S
        try:
            while time.monotonic() < end:
                self.take(silent_s)
        except queue.Empty:
            return
        raise AssertionError("netlink_probe does not fall silent")

    def commands(self, *lines):
        """Several at one go. Returns what each came to."""
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()
        results = []
        while len(results) < len(lines):
            said = self.take(TIMEOUT_S)
            if said.startswith("done "):
                results.append(int(said.split()[1]))
        return results

    def command(self, line):
        return self.commands(line)[0]

    def end(self):
        """Returns the exit status."""
        self.process.stdin.close()
        return self.process.wait(TIMEOUT_S)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.reader.join()


def reason_to_skip():
    """In words, or None."""
    if os.geteuid() != 0:
        return "making network namespaces takes root"
    try:
        run("ip", "netns", "add", NEAR, stderr=subprocess.PIPE)
    except FileNotFoundError:
        return "there is no ip; tools/setup check installs it"
    except subprocess.CalledProcessError as error:
        return f"no network namespace can be made here: {error.stderr.strip()}"
    remove_namespaces()
    return None


class NetlinkCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_to_skip()
        if reason is not None:
            raise unittest.SkipTest(reason)

    def setUp(self):
        self.addCleanup(remove_namespaces)
        make_namespaces()
        self.lans = [if_index("lan0"), if_index("lan1")]

    def watch(self, *dsts):
        probe = Probe(*dsts)
        self.addCleanup(probe.kill)
        self.probe = probe
        return probe

    def at(self, n, mac=None):
        """What the probe says of a destination behind far's end of lanN."""
        return f"if {self.lans[n]} mac {mac or MACS[n]}"

    def unresolved(self, n):
        return f"if {self.lans[n]} unresolved"

    def expect(self, dsts):
        self.probe.wait_for(lambda: dsts.items() <= self.probe.known.items(), dsts)

    def expect_shown(self, dsts):
        """What is in force now, without waiting."""
        self.assertEqual(self.probe.command("show"), 0)
        self.assertEqual({dst: self.probe.known.get(dst) for dst in dsts}, dsts)

    def wait_until(self, is_true):
        end = time.monotonic() + TIMEOUT_S
        while not is_true():
            if time.monotonic() > end:
                self.fail(f"not in time: {near('addr show')}{near('neigh show')}\n{self.words()}")
            time.sleep(0.02)

    def words(self):
        return f"{self.probe.known}"

    def end(self):
        self.assertEqual(self.probe.end(), 0)


class Destinations(NetlinkCase):
    def test_on_link_destinations_are_asked_for_before_any_packet(self):
        for addr in ("10.0.0.2", "fd00:0::2"):
            self.assertEqual(neigh_states(addr), [])
        self.watch("10.0.0.2", "fd00::2", "10.0.1.2", "fd00:1::2", "10.0.0.99")
        self.expect({"10.0.0.2": self.at(0), "fd00::2": self.at(0), "10.0.1.2": self.at(1),
                     "fd00:1::2": self.at(1), "10.0.0.99": self.unresolved(0)})
        for addr in ("10.0.0.2", "fd00:0::2"):
            self.assertEqual(len(neigh_states(addr)), 1)
        self.end()

    def test_gateways(self):
        batch(NEAR, ["route add 203.0.113.0/25 via 10.0.0.2",
                     "route add 203.0.113.128/25 via 10.0.1.2",
                     "route add 198.51.100.0/24 via inet6 fd00:1::3",
                     "route add 2001:db8:1::/48 via fd00:0::2",
                     "route add 2001:db8:2::/48 via fe80::1:2 dev lan1"])
        self.watch("203.0.113.1", "203.0.113.200", "198.51.100.1", "2001:db8:1::1",
                   "2001:db8:2::1")
        self.expect({"203.0.113.1": self.at(0), "203.0.113.200": self.at(1),
                     "198.51.100.1": self.at(1), "2001:db8:1::1": self.at(0),
                     "2001:db8:2::1": self.at(1)})

    def test_no_route_and_default_route(self):
        self.watch("203.0.113.1", "2001:db8::1", "10.0.0.2")
        self.expect({"10.0.0.2": self.at(0)})
        self.expect_shown({"203.0.113.1": "unreachable", "2001:db8::1": "unreachable"})
        near("route add default via 10.0.0.2")
        self.expect({"203.0.113.1": self.at(0)})
        self.assertEqual(self.probe.known["2001:db8::1"], "unreachable")
        near("-6 route add default via fd00:1::2")
        self.expect({"2001:db8::1": self.at(1)})
        near("route del default")
        near("-6 route del default")
        self.expect({"203.0.113.1": "unreachable", "2001:db8::1": "unreachable"})
        self.expect_shown({"10.0.0.2": self.at(0)})

    def test_refused_and_local_destinations_are_without_route(self):
        kinds = ["blackhole", "unreachable", "prohibit"]
        dsts = []
        near("route add default via 10.0.0.2")
        near("-6 route add default via fd00:0::2")
        for i, kind in enumerate(kinds):
            near(f"route add {kind} 203.0.113.{i}/32")
            near(f"-6 route add {kind} 2001:db8::{i + 1}/128")
            dsts += [f"203.0.113.{i}", f"2001:db8::{i + 1}"]
        # Its own address, and a broadcast address.
        dsts += ["10.0.0.1", "fd00::1", "10.0.0.255"]
        self.watch(*dsts, "203.0.113.9", "2001:db8::9")
        self.expect({"203.0.113.9": self.at(0), "2001:db8::9": self.at(0)})
        self.expect_shown({dst: "unreachable" for dst in dsts})
        near("route del blackhole 203.0.113.0/32")
        near("-6 route del blackhole 2001:db8::1/128")
        self.expect({"203.0.113.0": self.at(0), "2001:db8::1": self.at(0)})
        near("addr add 203.0.113.9/32 dev lan1")
        self.expect({"203.0.113.9": "unreachable"})

    def test_destinations_in_place_of_others(self):
        self.watch("10.0.0.2", "10.0.1.2", "10.0.0.2")
        self.expect({"10.0.0.2": self.at(0), "10.0.1.2": self.at(1)})
        # Both before it can ask anything: what stays is known all the while.
        self.assertEqual(
            self.probe.commands("watch 10.0.1.2 fd00:1::2 10.0.1.2", "show"), [0, 0])
        self.assertEqual(self.probe.known["10.0.1.2"], self.at(1))
        self.assertEqual(self.probe.known["fd00:1::2"], "unreachable")
        self.expect({"fd00:1::2": self.at(1)})
        n_callbacks = self.probe.n_callbacks
        near("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:aa dev lan0")
        self.probe.take_all(1)
        self.assertEqual(self.probe.n_callbacks, n_callbacks)
        self.assertEqual(self.probe.command("watch"), 0)
        self.assertEqual(self.probe.command("watch 10.0.0.2"), 0)
        self.expect({"10.0.0.2": self.at(0, OTHER_MAC)})
        self.end()


class Changes(NetlinkCase):
    def test_another_gateway_and_another_interface(self):
        near(f"neigh add 10.0.0.9 lladdr {OTHER_MAC} dev lan0 nud permanent")
        near(f"neigh add fd00:0::9 lladdr {OTHER_MAC} dev lan0 nud permanent")
        near("route add 203.0.113.0/24 via 10.0.0.2")
        near("route add 2001:db8::/32 via fd00:0::2")
        self.watch("203.0.113.1", "2001:db8::1")
        self.expect({"203.0.113.1": self.at(0), "2001:db8::1": self.at(0)})
        near("route replace 203.0.113.0/24 via 10.0.0.9")
        near("route replace 2001:db8::/32 via fd00:0::9")
        self.expect({"203.0.113.1": self.at(0, OTHER_MAC),
                     "2001:db8::1": self.at(0, OTHER_MAC)})
        # Not made an ordinary one by our asking.
        self.assertEqual(neigh_states("10.0.0.9"), ["PERMANENT"])
        self.assertEqual(neigh_states("fd00:0::9"), ["PERMANENT"])
        near("route replace 203.0.113.0/24 via 10.0.1.3")
        near("route replace 2001:db8::/32 via fd00:1::3")
        self.expect({"203.0.113.1": self.at(1), "2001:db8::1": self.at(1)})
        # A longer prefix, and it goes again.
        near("route add 203.0.113.1/32 via 10.0.0.2")
        self.expect({"203.0.113.1": self.at(0)})
        near("route del 203.0.113.1/32")
        self.expect({"203.0.113.1": self.at(1)})

    def test_rules(self):
        near("route add 203.0.113.0/24 via 10.0.0.2")
        near("route add 2001:db8::/32 via fd00:0::2")
        near("route add 203.0.113.0/24 via 10.0.1.2 table 100")
        near("route add 2001:db8::/32 via fd00:1::2 table 100")
        self.watch("203.0.113.1", "2001:db8::1")
        self.expect({"203.0.113.1": self.at(0), "2001:db8::1": self.at(0)})
        near("rule add to 203.0.113.0/24 lookup 100")
        self.expect({"203.0.113.1": self.at(1)})
        near("-6 rule add to 2001:db8::/32 lookup 100")
        self.expect({"2001:db8::1": self.at(1)})
        near("rule del to 203.0.113.0/24 lookup 100")
        self.expect({"203.0.113.1": self.at(0)})

    def test_the_gateways_mac_changes(self):
        near("route add 203.0.113.0/24 via 10.0.0.2")
        self.watch("203.0.113.1", "fd00::2")
        self.expect({"203.0.113.1": self.at(0), "fd00::2": self.at(0)})
        near(f"neigh replace 10.0.0.2 lladdr {OTHER_MAC} dev lan0 nud reachable")
        near(f"neigh replace fd00:0::2 lladdr {OTHER_MAC} dev lan0 nud reachable")
        self.expect({"203.0.113.1": self.at(0, OTHER_MAC), "fd00::2": self.at(0, OTHER_MAC)})

    def test_link_down_and_up(self):
        near("route add 203.0.113.0/24 via 10.0.1.2")
        self.watch("10.0.0.2", "203.0.113.1", "10.0.1.3")
        everything = {"10.0.0.2": self.at(0), "203.0.113.1": self.at(1),
                      "10.0.1.3": self.at(1)}
        self.expect(everything)
        near("link set lan1 down")
        self.expect({"203.0.113.1": "unreachable", "10.0.1.3": "unreachable"})
        self.assertEqual(self.probe.known["10.0.0.2"], self.at(0))
        near("link set lan1 up")
        self.expect({"10.0.1.3": self.at(1)})
        near("route add 203.0.113.0/24 via 10.0.1.2")
        self.expect(everything)
        # The other end goes: routes stay, nobody answers.
        far("link set lan1 down")
        self.expect({"203.0.113.1": self.unresolved(1), "10.0.1.3": self.unresolved(1)})
        far("link set lan1 up")
        self.expect(everything)
        near("link del lan1")
        self.expect({"203.0.113.1": "unreachable", "10.0.1.3": "unreachable"})
        self.end()

    def test_changes_close_together_are_one_callback(self):
        dsts = [f"203.0.113.{i}" for i in range(1, 101)]
        near("route add 203.0.113.0/24 via 10.0.0.2")
        self.watch(*dsts)
        self.expect({dst: self.at(0) for dst in dsts})
        self.probe.take_all(1)
        # One change for all of them, and many while it does not get to run.
        for via, changes in (("10.0.1.2", ["route replace 203.0.113.0/24 via 10.0.1.2"]),
                             ("10.0.0.2", [f"route add {dst}/32 via 10.0.0.2" for dst in dsts])):
            n_callbacks = self.probe.n_callbacks
            self.probe.process.send_signal(signal.SIGSTOP)
            batch(NEAR, changes)
            began = time.monotonic()
            self.probe.process.send_signal(signal.SIGCONT)
            self.expect({dst: self.at(int(via == "10.0.1.2")) for dst in dsts})
            took_ms = 1000 * (time.monotonic() - began)
            # One in 5 ms at the most.
            self.assertLessEqual(self.probe.n_callbacks - n_callbacks, 1 + took_ms / 5)
            self.probe.take_all(1)

    def test_a_callback_tells_of_a_change(self):
        self.watch("10.0.0.2")
        self.expect({"10.0.0.2": self.at(0)})
        self.probe.take_all(1)
        n_callbacks = self.probe.n_callbacks
        near("route add 203.0.113.0/24 via 10.0.0.2")
        near("link set lan1 mtu 1400")
        near("neigh change 10.0.0.2 dev lan0 nud stale")
        self.probe.take_all(2)
        self.assertEqual(self.probe.n_callbacks, n_callbacks)


class Neighbours(NetlinkCase):
    def test_one_that_fails_is_asked_again(self):
        self.watch("10.0.0.2", "fd00::2")
        self.expect({"10.0.0.2": self.at(0), "fd00::2": self.at(0)})
        far("addr del 10.0.0.2/24 dev lan0")
        far("addr del fd00:0::2/64 dev lan0")
        near("neigh change 10.0.0.2 dev lan0 nud failed")
        near("neigh change fd00:0::2 dev lan0 nud failed")
        self.expect({"10.0.0.2": self.unresolved(0), "fd00::2": self.unresolved(0)})
        # Long enough for the kernel to give up more than once.
        self.probe.take_all(5)
        self.assertEqual(self.probe.known["10.0.0.2"], self.unresolved(0))
        far("addr add 10.0.0.2/24 dev lan0")
        far("addr add fd00:0::2/64 dev lan0 nodad")
        self.expect({"10.0.0.2": self.at(0), "fd00::2": self.at(0)})

    def test_one_that_is_removed_is_asked_again(self):
        self.watch("10.0.0.2", "fd00::2")
        self.expect({"10.0.0.2": self.at(0), "fd00::2": self.at(0)})
        for _ in range(3):
            near("neigh del 10.0.0.2 dev lan0")
            near("neigh del fd00:0::2 dev lan0")
            self.wait_until(lambda: neigh_states("10.0.0.2") == ["REACHABLE"] ==
                            neigh_states("fd00::2"))
            self.probe.take_all(0.3)
            self.expect({"10.0.0.2": self.at(0), "fd00::2": self.at(0)})

    def test_one_that_is_stale_is_confirmed(self):
        sysctl(NEAR, "ipv4/neigh/lan0/delay_first_probe_time", 1)
        self.watch("10.0.0.2")
        self.expect({"10.0.0.2": self.at(0)})
        near(f"neigh replace 10.0.0.2 lladdr {OTHER_MAC} dev lan0 nud stale")
        self.expect({"10.0.0.2": self.at(0, OTHER_MAC)})
        self.expect({"10.0.0.2": self.at(0)})
        self.assertEqual(neigh_states("10.0.0.2"), ["REACHABLE"])

    def test_a_link_without_arp_needs_none(self):
        near("link set lan1 arp off")
        self.watch("10.0.1.2")
        mac = json.loads(near("-j link show lan1"))[0]["address"]
        # In its first word: there is nothing to wait for.
        self.probe.wait_for(lambda: "10.0.1.2" in self.probe.known)
        self.assertEqual(self.probe.known["10.0.1.2"], self.at(1, mac))


class ManyHops(NetlinkCase):
    def check_spread(self, dsts):
        everyone = {self.at(0), self.at(1)}
        self.probe.wait_for(lambda: all(self.probe.known.get(dst) in everyone
                                        for dst in dsts), "one of two hops")
        known = {dst: self.probe.known[dst] for dst in dsts}
        self.assertEqual(set(known.values()), everyone)
        # Something changes that is none of theirs, and they are looked up anew.
        near("link set lo mtu 60000")
        self.probe.take_all(2)
        self.expect_shown(known)
        return known

    def test_multipath_routes(self):
        near("route add 203.0.113.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2")
        near("route add 2001:db8::/32 nexthop via fd00:0::2 nexthop via fd00:1::2")
        v4 = [f"203.0.113.{i}" for i in range(1, 33)]
        v6 = [f"2001:db8::{i}" for i in range(1, 33)]
        self.watch(*v4, *v6)
        self.check_spread(v4)
        self.check_spread(v6)
        near("route replace 203.0.113.0/24 nexthop via 10.0.1.2")
        near("-6 route replace 2001:db8::/32 via fd00:1::2")
        self.expect({dst: self.at(1) for dst in v4 + v6})

    def test_nexthop_objects(self):
        near("nexthop add id 1 via 10.0.0.2 dev lan0")
        near("nexthop add id 2 via 10.0.1.2 dev lan1")
        near("nexthop add id 10 group 1/2")
        near("route add 203.0.113.0/24 nhid 10")
        dsts = [f"203.0.113.{i}" for i in range(1, 33)]
        self.watch(*dsts)
        self.check_spread(dsts)
        near("nexthop replace id 10 group 2")
        self.expect({dst: self.at(1) for dst in dsts})
        near("nexthop replace id 2 via 10.0.0.3 dev lan0")
        self.expect({dst: self.at(0) for dst in dsts})
        near("nexthop del id 2")
        self.expect({dst: "unreachable" for dst in dsts})


class Floods(NetlinkCase):
    DSTS = ["203.0.113.1", "2001:db8::1", "10.0.0.2"]

    def start(self):
        near("route add 203.0.113.0/24 via 10.0.0.2")
        near("route add 2001:db8::/32 via fd00:0::2")
        self.watch(*self.DSTS)
        self.expect({dst: self.at(0) for dst in self.DSTS})

    def flood(self):
        """10,000 changes of routes, most of them to a watched destination."""
        lines = []
        for i in range(2500):
            lines += [f"route replace 203.0.113.0/24 via 10.0.{i % 2}.3",
                      f"route replace 2001:db8::/32 via fd00:{i % 2}::3",
                      f"route add 198.18.{i // 250}.{i % 250}/32 via 10.0.0.2",
                      "route replace 203.0.113.1/32 via 10.0.0.2"]
        batch(NEAR, lines)
        # The last words, told in the middle of it all; permanent, so that nothing is asked of
        # the neighbour that would correct them.
        batch(NEAR, ["route replace 203.0.113.1/32 via 10.0.1.2",
                     "route replace 2001:db8::/32 via fd00:1::2",
                     f"neigh replace 10.0.0.2 lladdr {OTHER_MAC} dev lan0 nud permanent"])

    def check_after(self):
        self.expect({"203.0.113.1": self.at(1), "2001:db8::1": self.at(1),
                     "10.0.0.2": self.at(0, OTHER_MAC)})
        near("route del 203.0.113.1/32")
        near("route replace 203.0.113.0/24 via 10.0.1.3")
        self.expect({"203.0.113.1": self.at(1)})
        self.end()

    def test_ten_thousand_changes(self):
        self.start()
        self.flood()
        self.check_after()

    def test_lost_notifications_lead_to_a_full_reread(self):
        self.start()
        self.probe.process.send_signal(signal.SIGSTOP)
        self.flood()
        self.assertGreater(n_lost(), 0)
        self.probe.process.send_signal(signal.SIGCONT)
        self.check_after()

    def test_a_thousand_destinations(self):
        # The kernel's table of neighbours is one for all namespaces: from 512 of a family on it
        # may forget some, of 1,024 it refuses more.
        v4 = [f"10.9.0.{i}" for i in range(1, 201)]
        v6 = [f"fd09::{i:x}" for i in range(1, 201)]
        behind = [f"203.0.{112 + i // 200}.{i % 200}" for i in range(600)]
        near("route add 10.9.0.0/16 dev lan0")
        near("route add fd09::/64 dev lan1")
        near("route add 203.0.112.0/22 via 10.0.1.2")
        far("route add local 10.9.0.0/16 dev lo")
        batch(FAR, [f"addr add {dst}/128 dev lan1 nodad" for dst in v6])
        began = time.monotonic()
        self.watch(*v4, *v6, *behind)
        self.expect({**{dst: self.at(0) for dst in v4}, **{dst: self.at(1) for dst in v6},
                     **{dst: self.at(1) for dst in behind}})
        print(f"1,000 destinations: {time.monotonic() - began:.2f} s, "
              f"{self.probe.n_callbacks} callbacks", file=sys.stderr)
        near("route replace 203.0.112.0/22 via 10.0.0.3")
        self.expect({dst: self.at(0) for dst in behind})
        batch(NEAR, [f"route add {dst}/32 via 10.0.1.3" for dst in behind])
        self.expect({dst: self.at(1) for dst in behind})
        near("route del 10.9.0.0/16 dev lan0")
        self.expect({dst: "unreachable" for dst in v4})
        self.end()


class Commands(NetlinkCase):
    EEXIST = -17
    ENODEV = -19
    EINVAL = -22
    ENETUNREACH = -101

    def test_links_and_addresses(self):
        near("link set lan1 down")
        probe = self.watch("10.7.0.2")
        lan1 = self.lans[1]
        self.assertEqual(probe.command(f"up {lan1} 1400"), 0)
        link = json.loads(near("-j addr show lan1"))[0]
        self.assertEqual(link["mtu"], 1400)
        self.assertIn("UP", link["flags"])
        for _ in range(2):
            self.assertEqual(probe.command(f"address {lan1} 10.7.0.1/24"), 0)
            self.assertEqual(probe.command(f"address {lan1} fd07::1/64"), 0)
        found = {(info["local"], info["prefixlen"])
                 for info in json.loads(near("-j addr show lan1"))[0]["addr_info"]}
        self.assertLessEqual({("10.7.0.1", 24), ("fd07::1", 64)}, found)
        self.expect({"10.7.0.2": self.unresolved(1)})
        self.assertEqual(probe.command(f"up {lan1} 1"), self.EINVAL)
        self.assertEqual(probe.command("up 9999 1400"), self.ENODEV)
        self.assertEqual(probe.command("address 9999 10.7.0.1/24"), self.ENODEV)
        self.end()

    def test_routes(self):
        lan0, lan1 = self.lans
        probe = self.watch("203.0.113.1", "2001:db8::1")
        for _ in range(2):
            self.assertEqual(probe.command(f"route {lan0} 203.0.113.0/24 10.0.0.2"), 0)
            self.assertEqual(probe.command(f"route {lan0} 2001:db8::/32 fd00:0::2"), 0)
        for family, to, via in (("-4", "203.0.113.0/24", "10.0.0.2"),
                                ("-6", "2001:db8::/32", "fd00::2")):
            shown = near(f"{family} route show dev lan0 proto static").strip()
            self.assertEqual(shown.split(" metric")[0].strip(), f"{to} via {via}")
        self.expect({"203.0.113.1": self.at(0), "2001:db8::1": self.at(0)})
        # To the same by another way: that of before stays.
        self.assertEqual(probe.command(f"route {lan1} 203.0.113.0/24 10.0.1.2"), self.EEXIST)
        self.assertEqual(probe.command(f"route {lan0} 203.0.113.0/24 10.0.0.3"), self.EEXIST)
        self.assertEqual(probe.command(f"route {lan1} 2001:db8::/32 fd00:1::2"), self.EEXIST)
        self.assertEqual(near("route show 203.0.113.0/24").split()[2], "10.0.0.2")
        self.assertEqual(probe.command(f"route {lan0} 203.0.114.0/24 10.0.1.2"),
                         self.ENETUNREACH)
        self.end()


class Twins(NetlinkCase):
    """far reaches 10.7.0.1 and fd07::1 of near by lan1, which shuntd has: its twin has them."""
    ADDRESSES = {("10.7.0.1", 24), ("fd07::1", 64)}
    MTU = 1400

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("ping") is None:
            raise unittest.SkipTest("there is no ping; tools/setup check installs it")

    def setUp(self):
        super().setUp()
        near("addr flush dev lan1")
        sysctl(NEAR, "ipv6/conf/lan1/disable_ipv6", 1)
        # Its own duplicate address detection takes a second.
        sysctl(NEAR, "ipv6/conf/default/accept_dad", 0)
        batch(FAR, ["addr add 10.7.0.2/24 dev lan1", "addr add fd07::2/64 dev lan1 nodad"])
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-netlink-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.process = self.start()
        self.wait_until(lambda: self.addresses() >= self.ADDRESSES)

    def start(self):
        config = self.folder / "shunt.yaml"
        config.write_text(json.dumps({
            "dataplane": {
                "workers": 1, "kernel": "tap", "idle": "adaptive", "idle_sleep": "1ms",
                "flow_entries": 4096,
                "ports": [{"name": "wan", "device": "net_af_xdp,iface=lan1",
                           "mtu": self.MTU,
                           "addresses": [f"{addr}/{length}"
                                         for addr, length in sorted(self.ADDRESSES)]}]},
            "control": {"socket": str(self.folder / "sock"), "metrics": "off"},
            "services": []}), encoding="utf-8")
        # Of DPDK's XDP sockets, not ours: libxdp keeps what it once made.
        suppressions = self.folder / "lsan"
        suppressions.write_text("leak:libxdp.so\n", encoding="ascii")
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", NEAR, SHUNTD, "--config", str(config)], stderr=log,
                env={**os.environ, "LSAN_OPTIONS": f"suppressions={suppressions}"})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until(lambda: "shuntd: ready" in self.words()
                        or process.poll() is not None)
        self.assertIsNone(process.poll(), self.words())
        return process

    def words(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def twin(self):
        return json.loads(near("-j addr show wan"))[0]

    def addresses(self):
        return {(info["local"], info["prefixlen"]) for info in self.twin()["addr_info"]}

    def is_up(self):
        return "UP" in self.twin()["flags"]

    def ping(self):
        """far's kernel knows nothing of near any more: it asks by ARP and ND first."""
        far("neigh flush dev lan1")
        for addr, _ in sorted(self.ADDRESSES):
            run("ip", "netns", "exec", FAR, "ping", "-q", "-c", "1", "-w", str(TIMEOUT_S),
                addr)

    def finish(self):
        self.process.terminate()
        self.assertEqual(self.process.wait(TIMEOUT_S), 0, self.words())
        self.assertNotIn("Sanitizer", self.words())
        self.assertNotIn("cannot be set up", self.words())

    def test_addresses_come_back_when_the_twin_comes_up(self):
        self.ping()
        for _ in range(2):
            near("link set wan down mtu 1300")
            self.wait_until(lambda: self.words().count("twin wan is down") > 0)
            self.assertNotIn(("fd07::1", 64), self.addresses())
            near("addr flush dev wan")
            near("link set wan up")
            self.wait_until(lambda: self.addresses() >= self.ADDRESSES)
            self.wait_until(lambda: self.twin()["mtu"] == self.MTU)
            self.ping()
        self.finish()

    def test_a_twin_that_goes_down_for_a_moment(self):
        for _ in range(10):
            batch(NEAR, ["link set wan down", "link set wan up"])
            self.wait_until(lambda: self.addresses() >= self.ADDRESSES)
        self.ping()
        self.finish()

    def test_a_twin_that_is_put_down_stays_down(self):
        near("link set wan down")
        self.wait_until(lambda: "twin wan is down" in self.words())
        # Other links' changes are none of its own.
        near("link set lan0 mtu 1450")
        near("link set lan0 down")
        near("link set lan0 up")
        time.sleep(2)
        self.assertFalse(self.is_up())
        self.assertNotIn(("fd07::1", 64), self.addresses())
        near("link set wan up")
        self.wait_until(lambda: self.addresses() >= self.ADDRESSES)
        self.ping()
        self.finish()

    def test_the_news_of_it_are_lost(self):
        """It went down and came up, and the kernel had no room to say so."""
        self.process.send_signal(signal.SIGSTOP)
        lines = [f"neigh replace 10.0.{i % 2}.{i // 2 % 50 + 9} lladdr {OTHER_MAC} "
                 f"dev lan0 nud {'reachable' if i % 3 else 'stale'}" for i in range(20000)]
        batch(NEAR, lines)
        batch(NEAR, ["link set wan down", "link set wan up"])
        self.assertGreater(n_lost(), 0)
        self.assertNotIn(("fd07::1", 64), self.addresses())
        self.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.addresses() >= self.ADDRESSES)
        self.ping()
        self.finish()


def main():
    for name, program in (("NETLINK_PROBE", PROGRAM), ("SHUNTD", SHUNTD)):
        if not pathlib.Path(program).is_file():
            sys.exit(f"{name} does not name a program; meson sets it")
    # unittest runs no cleanups where it is interrupted or cannot print.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.geteuid() == 0:
        atexit.register(remove_namespaces)
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped and result.testsRun == 0:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
