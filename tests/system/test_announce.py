#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Services that are ready are announced: shuntd's routes, and real BIRD on both sides of a BGP
session, the balancer's by the sample and the router's, which routes by what it hears.

Both BIRDs look at the kernel's routes by themselves once an hour: what is seen here they were
told of. SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs, SHUNT_SAMPLES the samples' folder.
"""

import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import (  # noqa: E402 pylint: disable=wrong-import-position
    FAMILIES, NETWORK, OWN, TIMEOUT_S, VIP, wait_until)
from announcing import (  # noqa: E402 pylint: disable=wrong-import-position
    BEHIND, INTERFACE, SAMPLES, SLOW_SCAN, Announcer, Bird, balancer_config)

PROTOCOL = "83"
PREFIX = "198.51.100.32/28"
PORT = lab.PORTS["ipip"]
MANY = 4000

ROUTER_CONFIG = f"""
router id {lab.ROUTER[4]};
log stderr all;
protocol device {{ {SLOW_SCAN} }}
protocol kernel {{ {SLOW_SCAN} ipv4 {{ import none; export all; }}; }}
protocol kernel {{ {SLOW_SCAN} ipv6 {{ import none; export all; }}; }}
protocol bgp {{
    local {lab.ROUTER[4]} as 65000; neighbor {OWN[4]} as 65001; connect delay time 1;
    ipv4 {{ import all; export none; }};
}}
protocol bgp {{
    local {lab.ROUTER[6]} as 65000; neighbor {OWN[6]} as 65001; connect delay time 1;
    ipv6 {{ import all; export none; }};
}}
"""


def routes(name, *filters):
    """The kernel's routes in a namespace, of both families: their prefixes."""
    return {route["dst"] for family in ("-4", "-6")
            for route in json.loads(NETWORK.ip(name, family, "-j", "route", "show", *filters))}


def announced():
    """What the balancer's kernel has of shuntd."""
    return routes("balancer", "dev", INTERFACE, "proto", PROTOCOL) \
        if NETWORK.has_interface("balancer", INTERFACE) else set()


def heard():
    """What the router's kernel has of BIRD."""
    return routes("router", "proto", "bird")


class Frr:
    """zebra and bgpd in the balancer's namespace, by the sample as it is."""

    PROGRAMS = pathlib.Path("/usr/lib/frr")

    def __init__(self):
        # Sockets and files of its own, that the user frr may write to, as it becomes that.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-frr-"))
        shutil.chown(self.folder, "frr", "frr")
        self.processes = [self.spawn(name) for name in ("zebra", "bgpd")]

    def spawn(self, name):
        return NETWORK.spawn(
            "balancer", self.PROGRAMS / name, "-f", SAMPLES / "frr.conf", "-z",
            self.folder / "zserv", "-i", self.folder / f"{name}.pid", "--vty_socket",
            self.folder, "-P", "0", "--log", "stdout", log=self.folder / f"{name}.log")

    def words(self):
        return "".join((self.folder / f"{name}.log").read_text(encoding="utf-8")
                       for name in ("zebra", "bgpd"))

    def remove(self):
        for process in reversed(self.processes):
            lab.stop(process)
            NETWORK.processes.remove(process)
        shutil.rmtree(self.folder)


class Requests:
    """The netlink socket by which a shuntd asks for routes: the one whose answers it waits for
    no longer than 5 s."""

    SYS_PIDFD_GETFD = 438
    SO_ATTACH_FILTER = 26
    SO_DETACH_FILTER = 27

    def __init__(self, pid):
        pidfd = os.pidfd_open(pid)
        sockets = [self.duplicate(pidfd, int(path.name))
                   for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()
                   if os.readlink(path).startswith("socket:")]
        os.close(pidfd)
        for one in sockets:
            if one.family == socket.AF_NETLINK and one.getsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == struct.pack("ll", 5, 0):
                self.socket = one
            else:
                one.close()

    def duplicate(self, pidfd, number):
        made = lab.LIBC.syscall(self.SYS_PIDFD_GETFD, pidfd, number, 0)
        if made < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return socket.socket(fileno=made)

    def drop_answers(self):
        drop = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # return 0
        self.socket.setsockopt(socket.SOL_SOCKET, self.SO_ATTACH_FILTER,
                               struct.pack("HP", 1, ctypes.addressof(drop)))

    def take_answers(self):
        self.socket.setsockopt(socket.SOL_SOCKET, self.SO_DETACH_FILTER, 0)

    def close(self):
        self.socket.close()


def both():
    """A service of each family, on one address each."""
    return [lab.service(family, "ipip") for family in FAMILIES]


class AnnounceCase(lab.LabCase):
    def make(self, *services, **keys):
        daemon = Announcer(**keys)
        self.addCleanup(daemon.remove)
        daemon.write(*services)
        return daemon

    def started(self, *services, **keys):
        daemon = self.make(*services, **keys)
        daemon.start()
        return daemon

    def services_of(self, daemon):
        """By name: whether they are announced, and why not."""
        return {service["name"]: (service["announced"], service["not_announced"])
                for service in daemon.json("service", "list")["services"]}

    def wait_announced(self, daemon, *prefixes):
        wait_until(lambda: announced() == set(prefixes),
                   lambda: f"{announced()}\n{daemon.words()}")


class Bgp(AnnounceCase):
    """What the router hears."""

    @classmethod
    def setUpClass(cls):
        # As in make_client(): the router itself has a session with the balancer.
        NETWORK.run("router", "ethtool", "-K", "near", "tx", "off", "tso", "off", "gso", "off")
        for family in FAMILIES:
            NETWORK.ip("router", "route", "delete", VIP[family])

    @classmethod
    def tearDownClass(cls):
        for family in FAMILIES:
            NETWORK.ip("router", "route", "add", VIP[family], "via", OWN[family])

    def setUp(self):
        self.peer = Bird("router", ROUTER_CONFIG)
        self.addCleanup(self.peer.stop)

    def start_bird(self):
        bird = Bird("balancer", balancer_config())
        self.addCleanup(bird.stop)
        wait_until(bird.has_sessions, lambda: bird.show("protocols", "all"))
        return bird

    def wait_heard(self, what, since, *prefixes):
        """Until the router has routes to these and no others; says how long it took."""
        wait_until(lambda: heard() == set(prefixes),
                   lambda: f"{what}: the router has {heard()}", pause_s=0.002)
        print(f"{what}: {(time.monotonic() - since) * 1e3:.0f} ms")

    def expect_served(self):
        for family in FAMILIES:
            self.assertEqual(len(self.fetch(family, PORT, 3)), 3)

    def test_a_route_is_there_while_its_service_is_ready(self):
        daemon = self.started(*both())
        self.start_bird()
        everything = (VIP[4], VIP[6])
        self.wait_heard("at first", time.monotonic(), *everything)
        self.expect_served()
        names = [f"ipip-v4/{name}" for name in lab.BACKENDS]
        address = lab.farm_address(4, 1)
        rows = [
            ("all drained", [["drain", name] for name in names], False),
            ("one up", [["up", names[2]]], True),
            ("that one down", [["down", names[2]]], False),
            ("all up", [["up", name] for name in names], True),
            ("weights 0", [["weight", name, "0"] for name in names], False),
            ("a weight of 1", [["weight", names[0], "1"]], True),
            ("it is removed", [["remove", names[0]]], False),
            ("it is added", [["add", names[0], address]], True),
            ("all removed", [["remove", name] for name in names], False),
            ("one added", [["add", names[0], address]], True),
        ]
        for what, commands, is_there in rows:
            with self.subTest(what):
                for command in commands[:-1]:
                    daemon.ctl("backend", *command)
                since = time.monotonic()
                daemon.ctl("backend", *commands[-1])
                self.wait_heard(what, since, *(everything if is_there else [VIP[6]]))
                self.assertEqual(self.services_of(daemon)["ipip-v4"][0], is_there)
                if is_there:
                    self.expect_served()

    def test_what_a_reload_brings_and_takes(self):
        daemon = self.started(*both())
        self.start_bird()
        self.wait_heard("at first", time.monotonic(), VIP[4], VIP[6])
        wide = lab.service(4, "gue", address=PREFIX)
        twin = lab.service(4, "gre")
        rows = [
            ("a prefix more", [*both(), wide], [VIP[4], VIP[6], PREFIX]),
            ("a second service of an address", [*both(), twin], [VIP[4], VIP[6]]),
            ("that one alone", [twin], [VIP[4]]),
            ("it with one that is not ready",
             [twin, lab.service(4, "ipip", backends=[])], [VIP[4]]),
            ("none", [], []),
            ("all again", both(), [VIP[4], VIP[6]]),
        ]
        for what, services, prefixes in rows:
            with self.subTest(what):
                daemon.write(*services)
                since = time.monotonic()
                daemon.ctl("reload")
                self.wait_heard(what, since, *prefixes)
        self.assertEqual(self.services_of(daemon),
                         {"ipip-v4": (True, None), "ipip-v6": (True, None)})

    def test_it_is_withdrawn_before_the_stop(self):
        """A router that has not heard of it yet goes on sending, and loses nothing."""
        daemon = self.started(*both(), withdraw="5m")
        self.start_bird()
        self.wait_heard("at first", time.monotonic(), VIP[4], VIP[6])
        self.expect_served()
        process = daemon.process
        since = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.wait_heard("at SIGTERM", since)
        self.assertEqual(self.services_of(daemon), {
            "ipip-v4": (False, "shuntd stops"), "ipip-v6": (False, "shuntd stops")})
        for family in FAMILIES:
            NETWORK.ip("router", "route", "add", VIP[family], "via", OWN[family],
                       "metric", BEHIND)
            self.addCleanup(NETWORK.ip, "router", "route", "delete", VIP[family],
                            "metric", BEHIND)
        self.expect_served()
        self.assertIsNone(process.poll(), "it has not waited")
        # What changes meanwhile brings nothing back.
        daemon.ctl("service", "add", "late", "--address", PREFIX, "--protocol", "udp",
                   "--port", "53")
        daemon.ctl("backend", "add", "late/a", lab.farm_address(4, 1))
        self.assertEqual(self.services_of(daemon)["late"], (False, "shuntd stops"))
        self.assertEqual(announced(), set())
        self.expect_served()
        self.assertIsNone(process.poll(), "it has not waited")
        daemon.stop()  # at once

    def test_a_kill_withdraws_and_a_restart_announces(self):
        daemon = self.started(*both(), withdraw="5m")
        bird = self.start_bird()
        for _ in range(2):
            self.wait_heard("at a start", time.monotonic(), VIP[4], VIP[6])
            self.expect_served()
            since = time.monotonic()
            daemon.kill()
            self.wait_heard("at a kill -9", since)
            self.assertTrue(bird.has_sessions(), "it was the session's end")
            daemon.start()
        self.wait_heard("after it", time.monotonic(), VIP[4], VIP[6])
        since = time.monotonic()
        daemon.kill()
        self.wait_heard("at a kill -9", since)

    def test_the_session_may_go_through_a_twin(self):
        """BIRD speaks by a port of shuntd's own, while that runs."""
        daemon = self.started(*both(), withdraw="2s", driver="net_af_xdp")
        self.start_bird()
        self.wait_heard("at first", time.monotonic(), VIP[4], VIP[6])
        self.expect_served()
        since = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        self.wait_heard("at SIGTERM", since)
        self.assertEqual(daemon.process.wait(timeout=TIMEOUT_S), 0, daemon.words())
        self.assertIn("stops in 2000 ms, and forwards until then", daemon.words())

    def test_bird_may_come_later_and_go(self):
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        self.assertEqual(heard(), set())
        bird = Bird("balancer", balancer_config())
        self.wait_heard("once there is a BIRD", time.monotonic(), VIP[4], VIP[6])
        bird.stop()
        self.wait_heard("once it is gone", time.monotonic())
        self.assertEqual(announced(), {VIP[4], VIP[6]})
        self.expect_no_words(daemon)

    @unittest.skipUnless((Frr.PROGRAMS / "bgpd").exists(), "there is no FRR (Debian: frr)")
    def test_frr_by_its_sample(self):
        daemon = self.started(*both())
        frr = Frr()
        self.addCleanup(frr.remove)
        wait_until(lambda: heard() == {VIP[4], VIP[6]},
                   lambda: f"{heard()}\n{frr.words()}")
        self.expect_served()
        for name in lab.BACKENDS[:-1]:
            daemon.ctl("backend", "drain", f"ipip-v4/{name}")
        since = time.monotonic()
        daemon.ctl("backend", "drain", f"ipip-v4/{lab.BACKENDS[-1]}")
        self.wait_heard("FRR: all drained", since, VIP[6])
        since = time.monotonic()
        daemon.ctl("backend", "up", f"ipip-v4/{lab.BACKENDS[0]}")
        self.wait_heard("FRR: one up", since, VIP[4], VIP[6])
        since = time.monotonic()
        daemon.kill()
        self.wait_heard("FRR: at a kill -9", since)
        daemon.start()
        self.wait_heard("FRR: at a restart", time.monotonic(), VIP[4], VIP[6])

    def expect_no_words(self, daemon):
        self.assertEqual([line for line in daemon.words().splitlines()
                          if "error" in line or "warning" in line], [])


class Kernel(AnnounceCase):
    """The routes, and what others do to them."""

    def test_the_kernel_has_what_was_asked_for(self):
        daemon = self.make(table=1000, metric=7)
        daemon.more["control"] = {"socket": str(daemon.socket), "metrics": "127.0.0.1:9464"}
        daemon.write(*both())
        daemon.start()
        wait_until(lambda: routes("balancer", "table", "1000") == {VIP[4], VIP[6]},
                   daemon.words)
        self.assertEqual(announced(), set())
        for family in ("-4", "-6"):
            route, = json.loads(NETWORK.ip("balancer", family, "-j", "route", "show", "table",
                                           "1000"))
            self.assertEqual((route["dev"], route["metric"], route["protocol"]),
                             (INTERFACE, 7, PROTOCOL))
        # No address, not even of the link: the kernel says nothing there.
        link, = json.loads(NETWORK.ip("balancer", "-j", "address", "show", INTERFACE))
        self.assertEqual(link["addr_info"], [])
        self.assertIn("POINTOPOINT", link["flags"])
        status = daemon.json("status")["announce"]
        self.assertEqual(status, {"interface": INTERFACE, "link": "up", "table": 1000,
                                  "metric": 7, "announced": 2})
        self.assertIn(f"announced      2 services, by the interface {INTERFACE}, which is up",
                      daemon.ctl("status"))
        daemon.ctl("backend", "remove", "ipip-v4/s1")
        for name in ("s2", "s3"):
            daemon.ctl("backend", "drain", f"ipip-v4/{name}")
        wait_until(lambda: routes("balancer", "table", "1000") == {VIP[6]}, daemon.words)
        shown = daemon.ctl("service", "list")
        self.assertIn("no: no backend is up with a weight above 0", shown)
        self.assertRegex(shown, r"ipip-v6 .* yes\n")
        self.assertIn("announced    no: no backend is up", daemon.ctl("service", "show",
                                                                      "ipip-v4"))
        metrics = NETWORK.run("balancer", "curl", "--silent", "--noproxy", "*",
                              "http://127.0.0.1:9464/metrics")
        self.assertIn('\nshunt_service_announced{service="ipip-v4"} 0\n'
                      'shunt_service_announced{service="ipip-v6"} 1\n', metrics)

    def test_off_is_off(self):
        daemon = self.make(*both())
        daemon.more = {}
        daemon.write(*both())
        daemon.start()
        self.assertFalse(NETWORK.has_interface("balancer", INTERFACE))
        self.assertNotIn("announce", daemon.ctl("config", "show"))
        self.assertIsNone(daemon.json("status")["announce"])
        self.assertEqual(self.services_of(daemon),
                         {"ipip-v4": (None, None), "ipip-v6": (None, None)})
        self.assertIn("announced      off", daemon.ctl("status"))

    def test_an_administrator_takes_it_down_and_up(self):
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        for _ in range(2):
            NETWORK.ip("balancer", "link", "set", INTERFACE, "down")
            wait_until(lambda: self.services_of(daemon)["ipip-v4"]
                       == (False, "the interface is down"), daemon.words)
            self.assertEqual(daemon.json("status")["announce"]["link"], "down")
            daemon.ctl("backend", "down", "ipip-v6/s1")
            self.assertEqual(announced(), set())
            NETWORK.ip("balancer", "link", "set", INTERFACE, "up")
            self.wait_announced(daemon, VIP[4], VIP[6])
            wait_until(lambda: self.services_of(daemon)["ipip-v6"] == (True, None),
                       daemon.words)
        self.assertEqual(daemon.words().count(f"the interface {INTERFACE} is down, and"), 2)

    def test_what_another_program_takes_comes_back(self):
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        n_before = daemon.words().count("announced: ")
        for family in FAMILIES:
            NETWORK.ip("balancer", "route", "delete", VIP[family], "dev", INTERFACE)
            wait_until(lambda name=f"ipip-v{family}": self.services_of(daemon)[name] == (
                False, "another program has taken its route away; it comes back within a "
                "second"), daemon.words)
            self.wait_announced(daemon, VIP[4], VIP[6])
        self.assertEqual(daemon.words().count("announced: "), n_before + len(FAMILIES))
        NETWORK.ip("balancer", "link", "delete", INTERFACE)
        wait_until(lambda: "is there again" in daemon.words(), daemon.words)
        self.wait_announced(daemon, VIP[4], VIP[6])
        self.assertIn(f"the interface {INTERFACE} is gone", daemon.words())

    def test_what_another_program_replaces_comes_back_once_that_is_gone(self):
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        for family, metric in ((4, "0"), (6, "1024")):
            # In the way of nothing: it is another route, of another metric.
            NETWORK.ip("balancer", "route", "add", "blackhole", VIP[family], "metric", "4000")
            NETWORK.ip("balancer", "route", "replace", "blackhole", VIP[family], "metric",
                       "4000")
            NETWORK.ip("balancer", "route", "delete", "blackhole", VIP[family], "metric",
                       "4000")
            self.assertIn(VIP[family], announced())
            NETWORK.ip("balancer", "route", "replace", "blackhole", VIP[family], "metric",
                       metric)
            self.assertNotIn(VIP[family], announced())
            name = f"ipip-v{family}"
            wait_until(lambda of=name: "there is another route to it, with the same metric"
                       in (self.services_of(daemon)[of][1] or ""), daemon.words)
            NETWORK.ip("balancer", "route", "delete", "blackhole", VIP[family], "metric",
                       metric)
            self.wait_announced(daemon, VIP[4], VIP[6])
            wait_until(lambda of=name: self.services_of(daemon)[of] == (True, None),
                       daemon.words)

    def test_a_new_name_is_none(self):
        """Routing daemons know the interface by its name."""
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        NETWORK.ip("balancer", "link", "set", INTERFACE, "down")
        NETWORK.ip("balancer", "link", "set", INTERFACE, "name", "other")
        wait_until(lambda: "is there again" in daemon.words(), daemon.words)
        self.wait_announced(daemon, VIP[4], VIP[6])
        self.assertFalse(NETWORK.has_interface("balancer", "other"))

    def test_what_the_kernel_does_not_answer_is_asked_for(self):
        daemon = self.started(lab.service(6, "ipip"))
        self.wait_announced(daemon, VIP[6])
        daemon.write(*both())
        requests = Requests(daemon.process.pid)
        self.addCleanup(requests.close)
        requests.drop_answers()
        daemon.process.send_signal(signal.SIGHUP)
        self.wait_announced(daemon, VIP[4], VIP[6])
        requests.take_answers()
        wait_until(lambda: self.services_of(daemon).get("ipip-v4") == (True, None),
                   daemon.words)
        self.assertIn("is not as it is to be: Connection timed out", daemon.words())
        self.assertIn(f"announced: {VIP[4]}", daemon.words())
        self.assertNotIn("there is another route", daemon.words())
        for name in lab.BACKENDS:
            daemon.ctl("backend", "drain", f"ipip-v4/{name}")
        self.wait_announced(daemon, VIP[6])

    def test_another_route_of_the_same_metric(self):
        daemon = self.make(*both())
        NETWORK.ip("balancer", "route", "add", "blackhole", VIP[4])
        daemon.start()
        self.wait_announced(daemon, VIP[6])
        is_there, why = self.services_of(daemon)["ipip-v4"]
        self.assertFalse(is_there)
        self.assertIn("there is another route to it, with the same metric", why)
        # Told once, though it is tried each second.
        time.sleep(2.5)
        self.assertEqual(daemon.words().count("not as it is to be"), 1, daemon.words())
        self.assertIn(f"warning: the route to {VIP[4]} by {INTERFACE} is not as it is to be: "
                      "there is another route to it", daemon.words())
        NETWORK.ip("balancer", "route", "delete", "blackhole", VIP[4])
        self.wait_announced(daemon, VIP[4], VIP[6])
        # Nor is a route of others taken away with ours.
        self.assertEqual(routes("balancer", "type", "blackhole", "metric", BEHIND),
                         {VIP[4], VIP[6]})

    def test_backends_that_cannot_be_reached_are_none(self):
        """The balancer's way to the farm is taken away, and comes back."""
        daemon = self.started(lab.service(4, "ipip"))
        self.wait_announced(daemon, VIP[4])
        NETWORK.ip("balancer", "route", "delete", lab.FARM[4])
        self.addCleanup(daemon.route, 4, lab.ROUTER[4])
        self.wait_announced(daemon)
        self.assertEqual(self.services_of(daemon)["ipip-v4"],
                         (False, "no backend that is up has a next hop"))
        daemon.route(4, lab.ROUTER[4])
        self.wait_announced(daemon, VIP[4])

    def test_backends_behind_a_port_whose_link_is_down_are_not_reached(self):
        """No check says so, and no neighbor."""
        daemon = self.make()
        near, = json.loads(NETWORK.ip("router", "-j", "link", "show", "near"))
        daemon.write(lab.service(4, "ipip"), ports=[daemon.port(next_hop=near["address"])])
        daemon.start()
        self.wait_announced(daemon, VIP[4])
        link = ["link", "set", lab.CABLE["balancer"]]
        self.addCleanup(NETWORK.ip, "router", *link, "up")
        for _ in range(2):
            NETWORK.ip("router", *link, "down")
            self.wait_announced(daemon)
            wait_until(lambda: self.services_of(daemon)["ipip-v4"]
                       == (False, "no backend that is up has a next hop by a port that is up"),
                       daemon.words)
            self.assertFalse(daemon.json("service", "list")["services"][0]["ready"])
            NETWORK.ip("router", *link, "up")
            self.wait_announced(daemon, VIP[4])

    def test_a_kernel_without_ipv6(self):
        daemon = self.make(*both())
        daemon.start()
        self.wait_announced(daemon, VIP[4], VIP[6])
        NETWORK.run("balancer", "sysctl", "-qw", f"net.ipv6.conf.{INTERFACE}.disable_ipv6=1")
        wait_until(lambda: not self.services_of(daemon)["ipip-v6"][0], daemon.words)
        self.assertEqual(self.services_of(daemon)["ipip-v4"], (True, None))
        NETWORK.run("balancer", "sysctl", "-qw", f"net.ipv6.conf.{INTERFACE}.disable_ipv6=0")
        self.wait_announced(daemon, VIP[4], VIP[6])

    def test_a_reload_keeps_to_the_interface(self):
        daemon = self.started(*both())
        self.wait_announced(daemon, VIP[4], VIP[6])
        for key, value in (("interface", "other"), ("interface", "off"), ("table", 9),
                           ("metric", 9)):
            with self.subTest(key, value=value):
                daemon.announce(**{key: value})
                daemon.write(*both())
                self.assertIn(f"announce.{key}: fixed at the start; restart shuntd to change it",
                              daemon.ctl("reload", status=lab.FAILED))
        daemon.announce(withdraw_before_stop="7s")
        daemon.write(*both())
        self.assertIn("announce.withdraw_before_stop", daemon.ctl("plan", daemon.config))
        daemon.ctl("reload")
        self.assertIn("withdraw_before_stop: 7s", daemon.ctl("config", "show"))
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stops in 7000 ms" in daemon.words(), daemon.words)
        self.assertEqual(announced(), set())
        daemon.stop()  # at once

    def test_many_services(self):
        services = [{"name": f"s{i}", "address": f"198.18.{i // 250}.{i % 250 + 1}",
                     "protocol": "tcp", "port": 80, "table": {"size": 7},
                     "backends": [{"name": "a", "address": lab.farm_address(4, 1)}]}
                    for i in range(MANY)]
        daemon = self.make(*services)
        daemon.start()
        wait_until(lambda: len(announced()) == MANY, daemon.words)
        self.assertIn(f" and {MANY - 1} more\n", daemon.words())
        daemon.write()
        since = time.monotonic()
        daemon.ctl("reload")
        wait_until(lambda: not announced(), daemon.words)
        print(f"{MANY} routes gone: {(time.monotonic() - since) * 1e3:.0f} ms")


    def test_what_is_taken_unseen_comes_back(self):
        """More routes are taken at a time than the kernel has room to tell of."""
        services = [{"name": f"s{i}", "address": address, "protocol": "tcp", "port": 80,
                     "table": {"size": 7},
                     "backends": [{"name": "a", "address": lab.farm_address(4, 1)}]}
                    for i, address in enumerate(
                        [f"198.18.{i // 250}.{i % 250 + 1}" for i in range(MANY)]
                        + [f"2001:db8:18::{i:x}" for i in range(1, 100)])]
        daemon = self.make(*services)
        daemon.start()
        addresses = {service["address"] for service in services}
        self.wait_announced(daemon, *addresses)

        def unseen(*commands):
            """What is done while shuntd does not look."""
            daemon.process.send_signal(signal.SIGSTOP)
            for command in commands:
                NETWORK.ip("balancer", *command)
            daemon.process.send_signal(signal.SIGCONT)

        flush = [[family, "route", "flush", "table", "main", "proto", PROTOCOL]
                 for family in ("-4", "-6")]
        unseen(*flush)
        self.assertLess(len(announced()), MANY // 2)
        self.wait_announced(daemon, *addresses)
        self.assertEqual(set(self.services_of(daemon).values()), {(True, None)})
        # Of many some stay, and nobody's flow is sent elsewhere for a moment.
        unseen(["-4", "route", "flush", "table", "main", "proto", PROTOCOL, "root",
                "198.18.0.0/21"])
        self.wait_announced(daemon, *addresses)
        # Of the interface itself nothing is heard either.
        unseen(*flush, ["link", "set", INTERFACE, "down"])
        wait_until(lambda: daemon.json("status")["announce"]["link"] == "down", daemon.words)
        self.assertEqual({there for there, _ in self.services_of(daemon).values()}, {False})
        unseen(["link", "set", INTERFACE, "up"])
        self.wait_announced(daemon, *addresses)
        unseen(*flush, ["link", "delete", INTERFACE])
        self.wait_announced(daemon, *addresses)
        self.assertIn("is there again", daemon.words())


class Stop(AnnounceCase):
    """What systemd is told, and that nobody waits for nothing."""

    def setUp(self):
        self.folder = pathlib.Path(NETWORK.folder)
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.systemd.close)
        path = self.folder / "notify"
        self.systemd.bind(str(path))
        self.addCleanup(path.unlink)
        self.systemd.settimeout(TIMEOUT_S)

    def told(self):
        text = self.systemd.recv(4096).decode("ascii")
        return dict(line.split("=", 1) for line in text.splitlines())

    def start_told(self, *services, **keys):
        daemon = self.make(*services, **keys)
        daemon.environment["NOTIFY_SOCKET"] = str(self.folder / "notify")
        daemon.start()
        self.assertEqual(self.told(), {"READY": "1"})
        return daemon

    def test_systemd_waits_and_a_second_signal_does_not(self):
        daemon = self.start_told(*both(), withdraw="5m")
        self.wait_announced(daemon, VIP[4], VIP[6])
        process = daemon.process
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.told(), {"STOPPING": "1",
                                       "EXTEND_TIMEOUT_USEC": str((300 + 10) * 1000000)})
        wait_until(lambda: announced() == set(), daemon.words)
        # A reload is none any more.
        process.send_signal(signal.SIGHUP)
        self.assertEqual(daemon.json("status")["announce"]["announced"], 0)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=TIMEOUT_S), 0, daemon.words())
        self.systemd.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            self.told()

    def test_a_reload_that_ends_after_the_stop_began_makes_nothing_ready(self):
        daemon = self.start_told(*both(), withdraw="5m")
        self.wait_announced(daemon, VIP[4], VIP[6])
        daemon.write(lab.service(4, "ipip"))
        # Opening a file that another has a lease of waits until that is given back.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        with open(daemon.config, "rb") as file:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            daemon.process.send_signal(signal.SIGHUP)
            self.assertEqual(self.told()["RELOADING"], "1")
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.told()["STOPPING"], "1")
        wait_until(lambda: "generation 2: reload of" in daemon.words(), daemon.words)
        self.systemd.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            self.told()
        daemon.stop()  # at once

    def test_where_nothing_is_announced_the_stop_is_at_once(self):
        rows = [("no service is ready", [lab.service(4, "ipip", backends=[])], "5m"),
                ("there are none", [], "5m"),
                ("no time is to pass", both(), "0s")]
        for what, services, withdraw in rows:
            with self.subTest(what):
                daemon = self.start_told(*services, withdraw=withdraw)
                daemon.process.send_signal(signal.SIGTERM)
                self.assertEqual(self.told(), {"STOPPING": "1"})
                daemon.stop()
                self.assertFalse(NETWORK.has_interface("balancer", INTERFACE))


class Start(AnnounceCase):
    """Errors of the start name the cure."""

    def expect_refused(self, daemon, says, *before):
        done = subprocess.run(
            NETWORK.command("balancer", *before, lab.SHUNTD, "--config", daemon.config),
            check=False, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            env=daemon.environment, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, lab.FAILED, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertNotIn("shuntd: ready", done.stderr)

    def unprivileged(self):
        """A daemon that takes no privileges but for what it announces."""
        daemon = self.make()
        daemon.port = lambda **keys: {
            "name": "wan", "device": "net_null0", "addresses": [f"{OWN[4]}/24"],
            "next_hop": "02:00:00:00:00:fe"}
        daemon.write(kernel="none")
        return daemon

    def test_the_name_is_taken(self):
        kinds = [("veth", ["link", "add", INTERFACE, "type", "veth", "peer", "name", "other"]),
                 ("tun", ["tuntap", "add", INTERFACE, "mode", "tun"])]
        daemon = self.make(*both())
        for what, command in kinds:
            with self.subTest(what):
                NETWORK.ip("balancer", *command)
                self.expect_refused(
                    daemon, f"announce.interface: there is an interface '{INTERFACE}' already, "
                    "of another shuntd or another program; stop that, or remove it (ip link "
                    f"delete {INTERFACE}), or give announce.interface another name")
                self.assertTrue(NETWORK.has_interface("balancer", INTERFACE))
                NETWORK.ip("balancer", "link", "delete", INTERFACE)
        daemon.start()
        self.wait_announced(daemon, VIP[4], VIP[6])
        second = self.unprivileged()
        self.expect_refused(second, f"there is an interface '{INTERFACE}' already")
        self.wait_announced(daemon, VIP[4], VIP[6])

    def test_it_takes_a_capability(self):
        self.expect_refused(
            self.unprivileged(), f"announce.interface: '{INTERFACE}' cannot be made: Operation "
            "not permitted; start shuntd as root, or with CAP_NET_ADMIN, or turn it 'off'",
            "setpriv", "--bounding-set=-net_admin")

    def test_there_is_no_tun(self):
        self.expect_refused(
            self.unprivileged(), f"announce.interface: '{INTERFACE}' cannot be made: the kernel "
            "has no /dev/net/tun; load its module (modprobe tun), or turn it 'off'",
            "unshare", "--mount", "sh", "-c",
            'mount -t tmpfs none /dev/net && exec "$@"', "sh")


if __name__ == "__main__":
    lab.main(("bird", "bird2"), ("setpriv", "util-linux"), ("sysctl", "procps"))
