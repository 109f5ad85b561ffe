#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Health checks by a whole shuntd: who fails goes, whoever is well again comes back.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import (  # noqa: E402 pylint: disable=wrong-import-position
    BACKENDS, NETWORK, PORTS, backend, service, wait_until)

SERVER = pathlib.Path(__file__).with_name("odd_server.py")
PORT = 9000
TLS_PORT = 9443
NAME = "web"
METRICS = {"metrics": "127.0.0.1:9464"}
# Quick, so that the tests are, and yet not so that a busy machine takes anybody down.
QUICK = {"type": "http", "port": PORT, "interval": "500ms", "timeout": "500ms", "rise": 2,
         "fall": 3, "flap_half_life": "off"}


class HealthCase(lab.LabCase):
    """A server beside nginx on each backend, whose manner a test says."""

    @classmethod
    def setUpClass(cls):
        cls.files = {}
        cls.pem = NETWORK.folder / "certificate.pem"
        lab.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=farm",
                "-addext", "subjectAltName=DNS:farm.example.org", "-keyout", cls.pem, "-out",
                NETWORK.folder / "certificate.only")
        with open(cls.pem, "a", encoding="ascii") as pem:
            pem.write((NETWORK.folder / "certificate.only").read_text(encoding="ascii"))
        # XDP programs of backends see what the kernel has left for a NIC to do: a checksum.
        NETWORK.run("balancer", "ethtool", "-K", "wan0", "tx", "off")
        for k, name in enumerate(BACKENDS, 1):
            address = lab.farm_address(4, k)
            cls.files[name] = NETWORK.folder / f"{name}.manner"
            cls.files[name].write_text("200", encoding="ascii")
            addresses = f"{address},{lab.VIP[4]}"
            for words in ((PORT, cls.files[name], addresses),
                          (TLS_PORT, cls.files[name], addresses, cls.pem)):
                NETWORK.spawn(name, "/usr/bin/python3", SERVER, *words,
                              log=NETWORK.folder / f"{name}.{words[0]}.log")
            wait_until(lambda n=name: all(
                f":{port} " in NETWORK.run(n, "ss", "-Hltn") for port in (PORT, TLS_PORT)),
                "the odd servers listen")

    def setUp(self):
        for name in BACKENDS:
            self.behave(name, "200")

    def behave(self, name, manner):
        new = self.files[name].with_suffix(".new")
        new.write_text(manner, encoding="ascii")
        new.rename(self.files[name])

    def run_with(self, *services):
        return self.start("net_af_packet", 1, *services)

    def make(self, health=None, **keys):
        return service(4, "ipip", name=NAME, health={**QUICK, **(health or {})}, **keys)

    def write_more(self, daemon, more, health=None, **keys):
        """The configuration of a service, with more beside it."""
        daemon.write(self.make(health, **keys))
        text = json.loads(daemon.config.read_text(encoding="utf-8"))
        for key, values in more.items():
            text[key] = {**text.get(key, {}), **values}
        daemon.config.write_text(json.dumps(text), encoding="utf-8")

    @staticmethod
    def backends(daemon, name=NAME):
        return {one["name"]: one for one in daemon.json("backend", "list", name)["backends"]}

    def shown(self, daemon, key, name=NAME):
        return {one: about[key] for one, about in self.backends(daemon, name).items()}

    def wait_for(self, daemon, name, word, of=NAME):
        wait_until(lambda: self.backends(daemon, of)[name]["health"] == word,
                   lambda: f"{name} is {word}: {self.backends(daemon, of)}\n{daemon.words()}")

    def wait_for_all(self, daemon, word, of=NAME):
        for name in self.backends(daemon, of):
            self.wait_for(daemon, name, word, of)

    def wait_for_slots(self, daemon, slots):
        wait_until(lambda: self.shown(daemon, "slots") == slots,
                   lambda: f"slots: {self.shown(daemon, 'slots')}, not {slots}")


class Rows(HealthCase):
    def test_who_fails_goes_and_comes_back_to_the_very_same_slots(self):
        daemon = self.run_with(self.make())
        self.wait_for_all(daemon, "up")
        before = self.shown(daemon, "slots")
        self.behave("s2", "503")
        self.wait_for(daemon, "s2", "down")
        wait_until(lambda: self.shown(daemon, "slots")["s2"] == 0, "its slots are gone")
        after = self.shown(daemon, "slots")
        self.assertGreater(after["s1"], before["s1"])
        self.assertGreater(after["s3"], before["s3"])
        self.assertEqual(sum(after.values()), sum(before.values()))
        self.assertNotIn("s2", self.fetch(4, PORTS["ipip"], 60))
        shown = self.backends(daemon)["s2"]
        self.assertEqual(shown["state"], "up")
        self.assertEqual(shown["health_error"], "status 503, expected 200-399")
        self.assertGreaterEqual(shown["health_seconds"], 0)
        titles, *rows = daemon.ctl("backend", "list", NAME).splitlines()
        self.assertRegex(titles, r"STATE +SINCE +REACHED +SLOTS .* HEALTH +SINCE +ERROR")
        self.assertRegex(rows[1], r" up +(-|\d+[sm]) +yes +0 .* down +\d+s +"
                                  r"status 503, expected 200-399$")

        self.behave("s2", "204")
        self.wait_for(daemon, "s2", "up")
        self.wait_for_slots(daemon, before)
        self.assertIn("s2", self.fetch(4, PORTS["ipip"], 60))
        lines = [line for line in daemon.words().splitlines() if f"{NAME}/s2" in line]
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("web/s2 is down: status 503, expected 200-399", lines[0])
        self.assertRegex(lines[1], r"web/s2 is up, after \d+\.\d s")

    def test_connections_of_the_others_stay(self):
        daemon = self.run_with(self.make())
        self.wait_for_all(daemon, "up")
        log = NETWORK.folder / "long.log"
        url = f"http://{lab.VIP[4]}:{PORTS['ipip']}/long"
        many = [NETWORK.spawn("client", "curl", "--silent", "--show-error", "--fail", "--noproxy",
                              "*", "--max-time", "50", url, log=f"{log}.{k}")
                for k in range(12)]
        wait_until(lambda: sum(pathlib.Path(f"{log}.{k}").stat().st_size > 0
                               for k in range(12)) == 12, "all downloads have begun")
        of = [pathlib.Path(f"{log}.{k}").read_text(encoding="ascii")[:2] for k in range(12)]
        self.behave("s3", "503")
        self.wait_for(daemon, "s3", "down")
        for name, process in zip(of, many):
            status = process.wait(timeout=60)
            if name != "s3":
                self.assertEqual(status, 0, f"a download from {name}")
        self.assertIn("s1", of)

    def test_a_reload_does_not_forget(self):
        daemon = self.run_with(self.make())
        self.wait_for_all(daemon, "up")
        self.behave("s1", "500")
        self.wait_for(daemon, "s1", "down")
        # Nobody asks again before the test is over.
        daemon.write(self.make({"interval": "1h", "timeout": "1s"}),
                     service(4, "gre", name="other"))
        daemon.ctl("reload")
        shown = self.backends(daemon)
        self.assertEqual({name: one["health"] for name, one in shown.items()},
                         {"s1": "down", "s2": "up", "s3": "up"})
        self.assertEqual(shown["s1"]["slots"], 0)
        self.assertEqual(shown["s1"]["health_error"], "status 500, expected 200-399")

        # One that is new has to pass first, and so has one that has moved.
        changed = self.make({"interval": "1h", "timeout": "1s"})
        changed["backends"][2]["address"] = lab.farm_address(4, 2)
        changed["backends"].append({**backend(4, "ipip", 2), "name": "s4"})
        daemon.write(changed)
        daemon.ctl("reload")
        words, slots = self.shown(daemon, "health"), self.shown(daemon, "slots")
        for name in ("s3", "s4"):
            if words[name] == "unknown":
                self.assertEqual(slots[name], 0, name)
        self.assertEqual(words["s1"], "down")
        self.assertEqual(words["s2"], "up")

    def test_who_was_there_before_checks_is_used_until_it_fails(self):
        daemon = self.run_with(service(4, "ipip", name=NAME, when_all_down="drop"))
        before = self.shown(daemon, "slots")
        self.assertEqual(set(self.shown(daemon, "health").values()), {"none"})
        daemon.write(self.make({"interval": "1h", "timeout": "1s"}, when_all_down="drop"))
        daemon.ctl("reload")
        self.assertEqual(self.shown(daemon, "slots"), before)
        daemon.write(self.make(when_all_down="drop"))
        daemon.ctl("reload")
        self.wait_for_all(daemon, "up")
        self.assertEqual(self.shown(daemon, "slots"), before)

    def test_administrative_states_win(self):
        daemon = self.run_with(self.make())
        self.wait_for_all(daemon, "up")
        before = self.shown(daemon, "slots")
        daemon.ctl("backend", "drain", f"{NAME}/s1")
        daemon.ctl("backend", "down", f"{NAME}/s2")
        self.assertEqual(self.shown(daemon, "state"), {"s1": "drain", "s2": "down", "s3": "up"})
        # It is checked all the same, and what is found changes nothing.
        self.behave("s1", "503")
        self.wait_for(daemon, "s1", "down")
        self.wait_for(daemon, "s2", "up")
        slots = {"s1": 0, "s2": 0, "s3": sum(before.values())}
        self.assertEqual(self.shown(daemon, "slots"), slots)
        # The last one that is up by its state fails: the service keeps to it.
        self.behave("s3", "503")
        self.wait_for(daemon, "s3", "down")
        self.wait_for_slots(daemon, slots)
        self.behave("s1", "200")
        self.behave("s3", "200")
        self.wait_for_all(daemon, "up")
        daemon.ctl("backend", "up", f"{NAME}/s1")
        daemon.ctl("backend", "up", f"{NAME}/s2")
        self.assertEqual(self.shown(daemon, "slots"), before)

    def test_all_down_is_kept_or_dropped(self):
        daemon = self.run_with(self.make(min_healthy=2),
                               {**self.make(when_all_down="drop"), "name": "other",
                                "port": PORTS["gre"]})
        self.wait_for_all(daemon, "up")
        self.wait_for_all(daemon, "up", "other")
        before = self.shown(daemon, "slots")

        wait_until(lambda: self.services(daemon, "ready") == {NAME: True, "other": True},
                   "both are ready")
        self.behave("s1", "503")
        self.behave("s2", "503")
        for name in ("s1", "s2"):
            self.wait_for(daemon, name, "down")
            self.wait_for(daemon, name, "down", "other")
        wait_until(lambda: self.services(daemon, "ready") == {NAME: False, "other": True},
                   lambda: f"too few: {self.services(daemon, 'ready')}")
        self.assertEqual(self.services(daemon, "healthy"), {NAME: 1, "other": 1})
        # Too few for the one, and it goes on with them.
        self.wait_for_slots(daemon, {"s1": 0, "s2": 0, "s3": sum(before.values())})
        self.behave("s3", "503")
        self.wait_for(daemon, "s3", "down")
        self.wait_for(daemon, "s3", "down", "other")
        self.wait_for_slots(daemon, before)
        wait_until(lambda: sum(self.shown(daemon, "slots", "other").values()) == 0,
                   "nobody is left of the other")
        self.assertEqual(self.services(daemon, "ready"), {NAME: False, "other": False})
        self.assertEqual(len(self.fetch(4, PORTS["ipip"], 10)), 10)
        dropped = daemon.json("stats")["drops"]["no_backend"]
        with self.assertRaises(OSError):
            NETWORK.run("client", "curl", "--silent", "--max-time", "1",
                        f"http://{lab.VIP[4]}:{PORTS['gre']}/")
        self.assertGreater(daemon.json("stats")["drops"]["no_backend"], dropped)

    def services(self, daemon, key):
        return {one["name"]: one[key] for one in daemon.json("service", "list")["services"]}

    def test_a_start_is_ready_when_checks_have_passed(self):
        for name in BACKENDS:
            self.behave(name, "503")
        # Nobody is down before the test is over, and packets go by all of them.
        daemon = self.run_with(self.make({"interval": "300ms", "timeout": "300ms", "fall": 100},
                                         min_healthy=2))
        wait_until(lambda: None not in self.shown(daemon, "health_error").values(),
                   "all have failed once")
        self.assertEqual(set(self.shown(daemon, "health").values()), {"unknown"})
        self.assertGreater(min(self.shown(daemon, "slots").values()), 0)
        self.assertEqual(self.services(daemon, "ready"), {NAME: False})
        self.assertEqual(self.services(daemon, "healthy"), {NAME: 0})
        self.behave("s1", "200")
        self.wait_for(daemon, "s1", "up")
        self.assertEqual(self.services(daemon, "ready"), {NAME: False})
        self.assertEqual(self.services(daemon, "healthy"), {NAME: 1})
        self.behave("s2", "200")
        wait_until(lambda: self.services(daemon, "ready") == {NAME: True}, "two have passed")
        # They are known, so a reload is no start.
        daemon.write(self.make({"interval": "1h", "timeout": "1s"}, min_healthy=2),
                     service(4, "gre", name="other"))
        daemon.ctl("reload")
        self.assertEqual(self.services(daemon, "ready"), {NAME: True, "other": True})

    def test_each_manner_has_its_words_once(self):
        daemon = self.run_with(self.make({"timeout": "150ms", "fall": 1, "rise": 1}))
        self.wait_for_all(daemon, "up")
        rows = (("hang", "status: timed out after 0.15 s"),
                ("bytes", "status: timed out after 0.15 s"),
                ("rubbish", "status: the answer is no HTTP"),
                ("close", "(status|connect): "),
                ("reset", "(status|connect): "),
                ("404", "status 404, expected 200-399"))
        for manner, words in rows:
            said = len(daemon.words())
            self.behave("s1", manner)
            self.wait_for(daemon, "s1", "down")
            time.sleep(0.7)
            new = daemon.words()[said:]
            self.assertEqual(new.count(f"{NAME}/s1"), 1, f"{manner}: {new}")
            self.assertRegex(new, f"{NAME}/s1 is down: {words}")
            self.behave("s1", "endless")
            self.wait_for(daemon, "s1", "up")

    def let_flap(self, daemon):
        """s1 fails and passes too often."""
        for _ in range(3):
            self.behave("s1", "503")
            self.wait_for(daemon, "s1", "down")
            self.behave("s1", "200")
            wait_until(lambda: self.backends(daemon)["s1"]["health"] != "down", "it passes")

    def test_who_flaps_stays_out_for_a_while(self):
        daemon = self.run_with(self.make({"rise": 1, "fall": 2, "flap_half_life": "4s"}))
        self.wait_for_all(daemon, "up")
        before = self.shown(daemon, "slots")
        self.let_flap(daemon)
        self.assertEqual(self.backends(daemon)["s1"]["health"], "flapping", daemon.words())
        self.assertEqual(self.backends(daemon)["s1"]["slots"], 0)
        self.assertRegex(daemon.words(), r"web/s1 is up, but has failed too often: it stays out "
                                         r"for \d+ s if it fails no more")
        # Rather one that flaps than none.
        self.behave("s2", "503")
        self.behave("s3", "503")
        self.wait_for(daemon, "s2", "down")
        self.wait_for(daemon, "s3", "down")
        self.wait_for_slots(daemon, {"s1": sum(before.values()), "s2": 0, "s3": 0})
        self.assertEqual(self.services(daemon, "healthy"), {NAME: 1})
        self.assertEqual(self.services(daemon, "ready"), {NAME: True})
        shown = self.backends(daemon)
        self.assertGreater(shown["s1"]["health_back_seconds"], 0)
        self.assertIsNone(shown["s2"]["health_back_seconds"])
        self.assertRegex(daemon.ctl("backend", "list", NAME), r"flapping, \d+s more ")
        self.behave("s2", "200")
        self.behave("s3", "200")
        self.wait_for_all(daemon, "up")
        self.wait_for_slots(daemon, before)
        self.assertIn("web/s1 has not failed for a while, and is used again", daemon.words())

    def test_who_is_put_up_by_hand_is_forgiven(self):
        daemon = self.run_with(self.make({"rise": 1, "fall": 2, "flap_half_life": "1h"}))
        self.wait_for_all(daemon, "up")
        before = self.shown(daemon, "slots")
        self.let_flap(daemon)
        self.assertEqual(self.shown(daemon, "slots")["s1"], 0)
        daemon.ctl("backend", "drain", f"{NAME}/s1")
        daemon.ctl("backend", "up", f"{NAME}/s1")
        self.assertEqual(self.backends(daemon)["s1"]["health"], "up")
        self.assertEqual(self.shown(daemon, "slots"), before)

    def test_slow_start_gives_slots_bit_by_bit(self):
        daemon = self.run_with(self.make(slow_start="3s"))
        self.wait_for_all(daemon, "up")
        before = self.shown(daemon, "slots")
        self.behave("s2", "503")
        self.wait_for(daemon, "s2", "down")
        self.behave("s2", "200")
        self.wait_for(daemon, "s2", "up")
        seen = []
        wait_until(lambda: seen.append((self.backends(daemon)["s2"]["share"],
                                        self.backends(daemon)["s2"]["slots"]))
                   or seen[-1][0] == 16, "its share is whole")
        self.wait_for_slots(daemon, before)
        slots = [one[1] for one in seen]
        self.assertLess(slots[0], before["s2"])
        self.assertEqual(slots, sorted(slots), "it gives nothing back")
        self.assertGreater(len(set(slots)), 4, f"in steps: {slots}")
        # New, and so slow too; the others have had theirs.
        changed = self.make(slow_start="1h")
        changed["backends"].append({**backend(4, "ipip", 3), "name": "s4"})
        daemon.write(changed)
        daemon.ctl("reload")
        self.wait_for(daemon, "s4", "up")
        self.assertEqual(self.shown(daemon, "share"), {"s1": 16, "s2": 16, "s3": 16, "s4": 1})
        wait_until(lambda: self.shown(daemon, "slots")["s4"] > 0, "it has some")
        self.assertLess(self.shown(daemon, "slots")["s4"], self.shown(daemon, "slots")["s1"] / 4)

    def test_every_type_passes_and_fails(self):
        rows = (("tcp", {"type": "tcp", "port": PORT}, {}, "connect: Connection refused"),
                ("http", {"type": "http", "port": PORT, "path": "/", "expect": [200, "301-302"]},
                 {"port": 9}, "connect: Connection refused"),
                ("https", {"type": "https", "port": TLS_PORT, "verify": False},
                 {"verify": True}, "certificate: self-signed certificate"),
                ("udp", {"type": "udp", "port": PORT, "expect": "reply"}, {"port": 9},
                 "reply: Connection refused"),
                ("icmp", {"type": "icmp"}, {}, "reply: timed out after 0.2 s"))
        common = {"interval": "200ms", "timeout": "200ms", "fall": 2, "rise": 1}
        services = [{**self.make(), "name": name, "port": 7000 + k,
                     "health": {**common, **health}} for k, (name, health, _, _)
                    in enumerate(rows)]
        daemon = self.run_with(*services)
        for name, *_ in rows:
            self.wait_for_all(daemon, "up", name)
        for made, (name, health, change, _) in zip(services, rows):
            made["health"] = {**made["health"], **change}
            if name in ("tcp",):
                made["health"]["port"] = 9
            if name == "icmp":
                made["backends"] = [{"name": "nobody", "address": "10.0.0.99"}]
        daemon.write(*services)
        daemon.ctl("reload")
        for name, _, _, words in rows:
            self.wait_for_all(daemon, "down", name)
            for one in self.backends(daemon, name).values():
                if name in ("icmp", "udp"):
                    self.assertTrue(one["health_error"].startswith("reply: "), one)
                else:
                    self.assertEqual(one["health_error"], words, name)

    def test_who_is_behind_a_firewall_that_says_so_is_down(self):
        """Of ICMPv6's "prohibited" the kernel makes the very error of a rule of its own."""
        for family in lab.FAMILIES:
            with self.subTest(family=family):
                closed = lab.farm_address(family, 80)
                route = ("prohibit", f"{closed}/{lab.HOST[family]}")
                NETWORK.ip("router", "route", "add", *route)
                self.addCleanup(NETWORK.ip, "router", "route", "delete", *route)
                # The first SYN's answer may come before the kernel is ready for it: the
                # second's, a second later, does not.
                daemon = self.run_with({
                    **service(family, "ipip", name=NAME),
                    "health": {"type": "tcp", "port": PORTS["ipip"], "interval": "4s",
                               "timeout": "4s", "fall": 1},
                    "backends": [backend(family, "ipip", 1),
                                 {"name": "closed", "address": closed}]})
                self.wait_for(daemon, "closed", "down")
                self.assertRegex(self.backends(daemon)["closed"]["health_error"],
                                 "^connect: (Permission denied|No route to host)$")
                self.assertNotIn("checks cannot be made", daemon.words())
                daemon.stop()

    def test_metrics_and_the_shown_configuration_say_so(self):
        daemon = lab.Daemon("net_af_packet", 1)
        self.addCleanup(daemon.remove)
        self.write_more(daemon, {"control": METRICS}, min_healthy=3, slow_start="10s",
                        when_all_down="drop")
        NETWORK.ip("balancer", "link", "set", "lo", "up")
        daemon.start()
        self.wait_for_all(daemon, "up")

        def metrics():
            return NETWORK.run("balancer", "curl", "--silent", "--fail", "--noproxy", "*",
                               "http://127.0.0.1:9464/metrics")

        self.assertIn('shunt_backend_up{service="web",backend="s1"} 1\n', metrics())
        self.assertIn('shunt_service_ready{service="web"} 1\n', metrics())
        self.behave("s1", "503")
        self.wait_for(daemon, "s1", "down")
        wait_until(lambda: 'service_ready{service="web"} 0\n' in metrics(), "it is not ready")
        shown = metrics()
        self.assertIn('shunt_backend_up{service="web",backend="s1"} 0\n', shown)
        self.assertIn('shunt_backend_up{service="web",backend="s2"} 1\n', shown)
        self.assertIn('shunt_service_ready{service="web"} 0\n', shown)
        self.assertIn('shunt_service_healthy_backends{service="web"} 2\n', shown)
        self.assertGreater(int(re.search(r'health_checks_total\{result="failed"\} (\d+)',
                                         shown)[1]), 0)
        config = daemon.ctl("config", "show")
        for line in ("slow_start: 10s", "min_healthy: 3", "when_all_down: drop",
                     "health: {type: http, port: 9000"):
            self.assertIn(line, config)
        self.assertNotIn("state: down", config)
        shown = daemon.json("service", "show", NAME)["service"]
        self.assertEqual(shown["health"]["interval"], "500ms")
        text = daemon.ctl("service", "show", NAME)
        self.assertRegex(text, r"(?m)^health +type http, port 9000, .*interval 500ms, ")
        for line in (r"slow_start +10s", r"min_healthy +3", r"when_all_down +drop"):
            self.assertRegex(text, rf"(?m)^{line}$")
        # What a change would do: only what it is about.
        self.write_more(daemon, {"control": METRICS}, {"rise": 9}, min_healthy=3,
                        slow_start="10s", when_all_down="drop")
        plan = daemon.json("plan", daemon.config)["services"]
        self.assertEqual([one["key"] for one in plan[0]["changes"]], ["health"])
        self.assertEqual(plan[0]["slots_moved"], 0)

    def test_who_is_not_ready_is_not_announced(self):
        daemon = lab.Daemon("net_af_packet", 1)
        self.addCleanup(daemon.remove)
        self.write_more(daemon, {"announce": {"interface": "shunt-vips",
                                              "table": 83, "withdraw_before_stop": "0s"}},
                        min_healthy=2)
        daemon.start()

        def is_announced():
            return lab.VIP[4] in NETWORK.ip("balancer", "route", "show", "table", "all", "dev",
                                            "shunt-vips")

        self.wait_for_all(daemon, "up")
        wait_until(is_announced, "it is announced")
        self.behave("s1", "503")
        self.wait_for(daemon, "s1", "down")
        self.assertTrue(is_announced())
        self.behave("s2", "503")
        wait_until(lambda: not is_announced(), "it is withdrawn")
        shown = daemon.json("service", "list")["services"][0]
        self.assertEqual(shown["not_announced"], "fewer backends are healthy than have to be")
        self.assertFalse(shown["ready"])
        self.behave("s2", "200")
        wait_until(is_announced, "it is announced again")

    def test_the_tunnel_shows_a_data_path_that_is_closed(self):
        """Asked directly all is well; what lies between is seen through the tunnel alone."""
        direct = {**self.make(), "name": "direct", "port": 7000}
        for family in lab.FAMILIES:
            with self.subTest(family=family):
                made = service(family, "ipip", name=NAME, health={
                    **QUICK, "via": "tunnel", "port": PORTS["gre"]})
                daemon = self.run_with(made, direct)
                self.wait_for_all(daemon, "up")
                self.wait_for_all(daemon, "up", "direct")
                before = self.shown(daemon, "slots")

                # It has not the address.
                address = f"{lab.VIP[family]}/{lab.HOST[family]}"
                NETWORK.ip("s1", "address", "del", address, "dev", "lo")
                # It takes no tunnel.
                NETWORK.run("s2", lab.SHUNT_DECAP, "--interface", "eth0", "--detach")
                for name in ("s1", "s2"):
                    self.wait_for(daemon, name, "down")
                self.assertEqual(set(self.shown(daemon, "health", "direct").values()), {"up"})
                self.wait_for_slots(daemon, {"s1": 0, "s2": 0, "s3": sum(before.values())})
                self.assertIn("web/s2 is down: connect: timed out after 0.5 s", daemon.words())
                self.assertEqual(self.fetch(family, PORTS["ipip"], 9), ["s3"] * 9)
                # Nobody is at the port: said by the server's own kernel, through all of it.
                made["health"]["port"] = 9
                daemon.write(made, direct)
                daemon.ctl("reload")
                wait_until(lambda d=daemon: self.backends(d)["s3"]["health_error"]
                           == "connect: Connection refused", daemon.words)

                NETWORK.ip("s1", "address", "add", address, "dev", "lo")
                NETWORK.decapsulate("s2")
                made["health"]["port"] = PORTS["gre"]
                daemon.write(made, direct)
                daemon.ctl("reload")
                self.wait_for_all(daemon, "up")
                self.wait_for_slots(daemon, before)
                daemon.stop()

    def test_the_tunnel_leaves_the_host_and_the_figures_alone(self):
        def routes():
            return [line for family in ("-4", "-6")
                    for line in NETWORK.ip("balancer", family, "route").splitlines()]

        daemon = self.run_with(self.make())
        self.wait_for_all(daemon, "up")
        before = routes()
        daemon.write(self.make({"via": "tunnel", "port": PORTS["gre"], "path": "/other"}))
        daemon.ctl("reload")
        asked = daemon.json("stats")["packets"]["to_kernel"]
        wait_until(lambda: daemon.json("stats")["packets"]["to_kernel"] > asked + 20,
                   "answers come")
        self.assertEqual(set(self.shown(daemon, "health").values()), {"up"})
        address, device = lab.VIP[4], "shunt-probe"
        self.assertNotIn(device, NETWORK.ip("balancer", "route", "get", "10.0.0.11"))
        self.assertNotIn(address, NETWORK.ip("balancer", "route", "show", "dev", device))
        for word in ("packets", "flows", "bytes"):
            self.assertEqual(set(self.shown(daemon, word).values()), {0}, word)
        packets = daemon.json("stats")["packets"]
        self.assertEqual(packets["forwarded"], 0, "probes are no packets of the service's")
        self.assertEqual(packets["received"], sum(
            packets[word] for word in ("forwarded", "replied", "to_kernel", "dropped")))
        # The networks that the device has.
        new = [line for line in routes() if line not in before]
        self.assertEqual(len(new), 2, new)
        self.assertTrue(all(device in line for line in new), new)
        daemon.stop()
        self.assertFalse(NETWORK.has_interface("balancer", device))

    def test_the_tunnel_asks_whoever_is_new_once_the_workers_know_it(self):
        made = self.make({"via": "tunnel", "port": PORTS["gre"], "interval": "100ms",
                          "timeout": "100ms", "fall": 1})
        made["backends"] = made["backends"][:2]
        daemon = self.run_with(made)
        self.wait_for_all(daemon, "up")
        made["backends"].append(backend(4, "ipip", 3))
        daemon.write(made)
        daemon.ctl("reload")
        self.wait_for(daemon, "s3", "up")
        # One that moves is another.
        made["backends"][2]["address"] = "10.0.0.99"
        daemon.write(made)
        daemon.ctl("reload")
        self.wait_for(daemon, "s3", "down")
        made["backends"][2] = backend(4, "ipip", 3)
        daemon.write(made)
        daemon.ctl("reload")
        self.wait_for(daemon, "s3", "up")
        self.assertNotIn("cannot be made", daemon.words())

    def test_every_type_goes_through_the_tunnel(self):
        common = {"interval": "300ms", "timeout": "300ms", "via": "tunnel"}
        rows = (("tcp", {"type": "tcp", "port": PORT}),
                ("http", {"type": "http", "port": PORT}),
                ("https", {"type": "https", "port": TLS_PORT, "verify": False}),
                ("udp", {"type": "udp", "port": PORT, "expect": "reply"}))
        services = [{**self.make(), "name": name, "port": 7000 + k,
                     "health": {**common, **health}} for k, (name, health) in enumerate(rows)]
        daemon = self.run_with(*services)
        for name, _ in rows:
            self.wait_for_all(daemon, "up", name)
            self.assertEqual(daemon.json("service", "show", name)["service"]["health"]["via"],
                             "tunnel")
        self.assertIn("via: tunnel", daemon.ctl("config", "show"))

    def test_without_its_device_the_tunnel_asks_nobody_and_takes_nobody_down(self):
        NETWORK.ip("balancer", "link", "add", "shunt-probe", "type", "veth",
                   "peer", "name", "spare0")
        daemon = self.run_with(self.make({"via": "tunnel", "interval": "100ms",
                                          "timeout": "100ms"}))
        wait_until(lambda: "health checks cannot be made" in daemon.words(), daemon.words)
        words = daemon.words()
        self.assertIn("'shunt-probe' cannot be made: Device or resource busy; another shuntd "
                      "has it", words)
        self.assertEqual(words.count("via: tunnel: the device for it could not be made"), 1)
        self.assertEqual(set(self.shown(daemon, "health").values()), {"unknown"})
        self.assertEqual(len(self.fetch(4, PORTS["ipip"], 6)), 6)
        # Once the name is free it is made.
        NETWORK.ip("balancer", "link", "del", "shunt-probe")
        self.wait_for_all(daemon, "up")

    def test_the_tunnel_s_device_is_mended_and_its_faults_are_not_the_backends(self):
        made = [service(family, "ipip", name=f"v{family}", when_all_down="drop",
                        health={**QUICK, "via": "tunnel", "port": PORTS["gre"],
                                "interval": "700ms", "timeout": "700ms", "rise": 1,
                                "fall": 2})
                for family in lab.FAMILIES]
        daemon = self.run_with(*made)
        # As most hosts have: a way for everything. This one counts what goes there.
        NETWORK.ip("balancer", "link", "add", "away", "type", "veth", "peer", "name",
                   "away-peer")
        self.addCleanup(NETWORK.ip, "balancer", "link", "del", "away")
        NETWORK.run("balancer", "sysctl", "-qw", "net.ipv6.conf.away.disable_ipv6=1")
        for end in ("away-peer", "away"):
            NETWORK.ip("balancer", "link", "set", end, "up")
        NETWORK.ip("balancer", "route", "add", "default", "dev", "away")
        names = [one["name"] for one in made]
        for name in names:
            self.wait_for_all(daemon, "up", name)
        device, n_before = "shunt-probe", daemon.words().count(" is down")
        rows = [("down", [["link", "set", device, "down"]]),
                ("without addresses", [["address", "flush", "dev", device]]),
                ("gone", [["link", "del", device]]),
                ("renamed", [["link", "set", device, "down"],
                             ["link", "set", device, "name", "other"]])]
        for what, commands in rows:
            with self.subTest(what):
                for command in commands:
                    NETWORK.ip("balancer", *command)
                wait_until(lambda: NETWORK.has_interface("balancer", device) and all(
                    address in NETWORK.ip("balancer", "address", "show", "up", "dev", device)
                    for address in ("240.0.0.1/10", "fd73:6875:6e74::1/64")), daemon.words)
                self.assertFalse(NETWORK.has_interface("balancer", "other"))
                # Whoever fails is seen, and nobody else.
                for command, word in (("del", "down"), ("add", "up")):
                    for family in lab.FAMILIES:
                        NETWORK.ip("s1", "address", command,
                                   f"{lab.VIP[family]}/{lab.HOST[family]}", "dev", "lo")
                    for name in names:
                        self.wait_for(daemon, "s1", word, name)
                n_before += len(lab.FAMILIES)
                self.assertEqual(daemon.words().count(" is down"), n_before, daemon.words())
        away, = json.loads(NETWORK.ip("balancer", "-s", "-j", "link", "show", "away"))
        self.assertEqual(away["stats64"]["tx"]["packets"], 0, "questions went elsewhere")
        self.assertIn("shunt-probe is, or was, down or gone", daemon.words())
        self.assertEqual(daemon.words().count("shunt-probe was gone, and is there again"), 2)

    def test_service_add_takes_checks(self):
        daemon = self.run_with(self.make())
        add = ("service", "add", "new", "--address", lab.VIP[4], "--protocol", "tcp", "--port",
               "7000")
        daemon.ctl(*add, "--health", f"type=https,port={TLS_PORT},path=/a?b=c,verify=false,"
                   "expect=200-299,interval=300ms,timeout=300ms,via=tunnel",
                   "--slow-start", "1s", "--min-healthy", "2", "--when-all-down", "drop")
        daemon.ctl("backend", "add", "new/s1", lab.farm_address(4, 1))
        self.wait_for(daemon, "s1", "up", "new")
        shown = daemon.ctl("config", "show")
        for words in ("type: https, port: 9443, path: \"/a?b=c\", expect: [200-299], verify: false, "
                      "via: tunnel, interval: 300ms", "slow_start: 1s", "min_healthy: 2",
                      "when_all_down: drop"):
            self.assertIn(words, shown)
        add = ("service", "add", "bad", *add[3:-1], "7001", "--health")
        for words, said in (("type=tcp,colour", "unknown key 'colour'"),
                            ("port=80", "this check has no key 'type'"),
                            ("type=icmp,via=tunnel", "via: tunnel is for type tcp")):
            self.assertIn(said, daemon.ctl(*add, words, status=lab.BAD_USAGE))

    def test_it_stops_while_everybody_hangs(self):
        daemon = self.run_with(self.make({"interval": "1h", "timeout": "1h"}))
        for name in BACKENDS:
            self.behave(name, "hang")
        daemon.write(self.make({"interval": "30s", "timeout": "30s", "path": "/other"}))
        daemon.ctl("reload")
        begun = daemon.process
        begun.send_signal(signal.SIGTERM)
        self.assertEqual(begun.wait(timeout=lab.TIMEOUT_S), 0)


if __name__ == "__main__":
    lab.main(("openssl", "openssl"), ("sysctl", "procps"))
