#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/monitoring with a Prometheus that reads a shuntd with traffic: the sample configuration,
the alerts, and each query of the dashboard.

SHUNTD and SHUNTCTL name the programs.
"""

import json
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.parse
import urllib.request

from lab import TIMEOUT_S, stop, wait_until
from small import METRICS, ODD_SERVICE, SmallCase, main

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "monitoring"
DASHBOARD = json.loads((FOLDER / "shunt-dashboard.json").read_text(encoding="utf-8"))
RULES = (FOLDER / "shunt.rules.yml").read_text(encoding="utf-8")
CASES = (FOLDER / "shunt.rules.test.yml").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9090"
# As Grafana puts them in; rates are over some samples.
VARIABLES = {"$job": "shunt", "$instance": ".*", "$service": ".*", "$__rate_interval": "5s"}


def promtool(*args):
    return subprocess.run(["promtool", *args], cwd=FOLDER, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


class Files(unittest.TestCase):
    def test_the_sample_configuration_is_one(self):
        done = promtool("check", "config", "prometheus.yml")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_cases_of_the_alerts_hold(self):
        done = promtool("test", "rules", "shunt.rules.test.yml")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_alert_has_a_case(self):
        alerts = re.findall(r"- alert: (\w+)", RULES)
        self.assertEqual(sorted(alerts), sorted(set(alerts)))
        self.assertEqual(set(alerts), set(re.findall(r'alertname="(\w+)"', CASES)))

    def test_the_dashboard_is_whole(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        known = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
        self.assertEqual({f"${name}" for name in known - {"datasource"}},
                         set(VARIABLES) - {"$__rate_interval"})
        for panel in panels():
            with self.subTest(panel["title"]):
                self.assertTrue(panel["description"] and panel["fieldConfig"]["defaults"]["unit"])
                refs = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(refs), len(set(refs)))
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)


class Running(SmallCase):
    more = {"announce": {"interface": "shunt-vips", "withdraw_before_stop": "0s"}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.balancer.folder
        shutil.copy(FOLDER / "shunt.rules.yml", folder)
        text = (FOLDER / "prometheus.yml").read_text(encoding="utf-8")
        if METRICS not in text:
            raise AssertionError("the sample asks another address than the default")
        (folder / "prometheus.yml").write_text(text.replace("15s", "1s"), encoding="utf-8")
        cls.log = folder / "prometheus.log"
        with open(cls.log, "wb") as log:
            process = subprocess.Popen(
                ["prometheus", "--config.file", folder / "prometheus.yml",
                 "--storage.tsdb.path", folder / "data", "--web.listen-address", ADDRESS],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(stop, process)
        # A command, to be counted.
        wait_until(lambda: process.poll() is not None or cls.is_ready(),
                   lambda: cls.log.read_text(encoding="utf-8"))
        cls.balancer.ctl("status")
        wait_until(lambda: cls.ask("count_over_time(shunt_uptime_seconds[1m])", at_least=5),
                   lambda: cls.log.read_text(encoding="utf-8"))

    @classmethod
    def get(cls, path, **params):
        url = f"http://{ADDRESS}/{path}?{urllib.parse.urlencode(params)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read() or "null") if path.startswith("api") else answer.read()

    @classmethod
    def is_ready(cls):
        try:
            return cls.get("-/ready")
        except OSError:
            return False

    @classmethod
    def ask(cls, query, at_least=None):
        """The samples of an instant query, those of a value at least."""
        found = cls.get("api/v1/query", query=query)["data"]["result"]
        return [one for one in found if at_least is None or float(one["value"][1]) >= at_least]

    def test_each_query_of_the_dashboard_returns_data(self):
        n = 0
        for panel in panels():
            for target in panel["targets"]:
                query = target["expr"]
                for name, value in VARIABLES.items():
                    query = query.replace(name, value)
                with self.subTest(panel["title"], query=query):
                    self.assertNotIn("$", query)
                    samples = self.ask(query)
                    self.assertNotEqual(samples, [])
                    self.assertNotIn("NaN", [sample["value"][1] for sample in samples][:1])
                    for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                        self.assertIn(label, samples[0]["metric"])
                n += 1
        self.assertGreater(n, 25)

    def test_each_variable_of_the_dashboard_has_values(self):
        for variable in DASHBOARD["templating"]["list"][1:]:
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)",
                                         variable["query"]["query"]).groups()
            for name, value in VARIABLES.items():
                series = series.replace(name, value)
            found = {one[label] for one in
                     self.get("api/v1/series", **{"match[]": series})["data"]}
            self.assertEqual(found, {"job": {"shunt"}, "instance": {METRICS},
                                     "service": {"web", "shop", "empty", ODD_SERVICE}}[label])

    def test_alerts_are_told_in_words(self):
        rules = [rule for group in self.get("api/v1/rules")["data"]["groups"]
                 for rule in group["rules"]]
        self.assertEqual([rule["lastError"] for rule in rules if rule["health"] != "ok"], [])
        self.assertEqual(len(rules), RULES.count("- alert: "))
        alerts = {(one["labels"]["alertname"], one["labels"].get("service")):
                  one["annotations"] for one in self.get("api/v1/alerts")["data"]["alerts"]}
        self.assertIn(("ShuntServiceNotReady", "empty"), alerts)
        self.assertEqual(alerts["ShuntServiceNotReady", "empty"]["summary"],
                         f"Service empty is not ready on {METRICS}")
        self.assertNotIn(("ShuntServiceNotReady", "web"), alerts)
        self.assertNotIn(("ShuntDown", None), alerts)

    def test_prometheus_reads_all_that_is_there(self):
        (target,) = self.get("api/v1/targets")["data"]["activeTargets"]
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))
        with urllib.request.urlopen(f"http://{METRICS}/metrics") as answer:
            names = set(re.findall(r"^(shunt_\w+)", answer.read().decode(), re.MULTILINE))
        found = {name for name in self.get("api/v1/label/__name__/values")["data"]
                 if name.startswith("shunt_")}
        self.assertEqual(found, names)


if __name__ == "__main__":
    main(("prometheus", "prometheus"), ("promtool", "prometheus"), ("ip", "iproute2"))
