#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shunt-bench as its users run it. SHUNT_BENCH names the program. No time is asserted."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = os.environ.get("SHUNT_BENCH", "")
# What it is built with, as b_sanitize has it.
SANITIZER = os.environ.get("SHUNT_SANITIZER", "none")
# Of one run, also under sanitizers on a busy machine.
TIMEOUT_S = 240
QUICK = ["--seconds", "0.02"]
# What scripts may rely on, and what there is besides.
KEYS = ["case", "family", "forward", "flows", "services", "backends", "workers",
        "ns_per_packet", "mpps_per_worker", "generator_ns", "hugepages"]
MORE_KEYS = ["algorithm", "packet_size", "new_flows", "flow_entries", "rounds", "spread", "packets",
             "forwarded", "hit_share", "checked", "flow_table_fill", "swaps"]
OPTIONS = ["flows", "services", "backends", "family", "forward", "algorithm", "packet-size",
           "workers", "syn", "new-flows", "swap-every", "stage", "seconds", "memory", "json", "help",
           "version"]
MODES = ["l2", "ipip", "gre", "gue", "vxlan"]
STAGES = ["parse", "service", "hash", "flow", "table", "encap"]
ONE = ["--flows", "1000", "--family", "4"]


def run(*args, **keys):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False, **keys)


class BenchCase(unittest.TestCase):
    def measure(self, *args):
        """All results of a run, after what holds of any."""
        done = run(*QUICK, "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(list(report), ["schema", "results"])
        self.assertEqual(report["schema"], 1)
        for result in report["results"]:
            self.hold(result)
        return report["results"]

    def hold(self, result):
        self.assertEqual(set(result), set(KEYS + MORE_KEYS))
        self.assertGreater(result["generator_ns"], 0)
        self.assertIsInstance(result["hugepages"], bool)
        self.assertLessEqual(result["spread"]["min"], result["spread"]["max"])
        self.assertGreater(result["packets"], 0)
        # One window of packets a worker is looked at, byte by byte.
        self.assertEqual(result["checked"], 512 * result["workers"])
        if result["case"].startswith("stage-"):
            self.assertIsNone(result["forwarded"])
            self.assertIsNone(result["hit_share"])
            return
        self.assertGreater(result["ns_per_packet"], 0)
        self.assertAlmostEqual(result["mpps_per_worker"] * result["ns_per_packet"], 1000,
                               delta=1)
        self.assertEqual(result["forwarded"], result["packets"])

    def column(self, results, key):
        return [result[key] for result in results]


class Usage(BenchCase):
    def test_help_and_version(self):
        for option in ("--help", "-h"):
            done = run(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in OPTIONS:
                self.assertIn(f"--{name}", done.stdout)
        for option in ("--version", "-V"):
            done = run(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"\Ashunt-bench \d+\.\d+\.\d+\n\Z")

    def test_bad_usage_says_what_would_be_right(self):
        rows = [
            (["--flows", "0"], "1..536870912"),
            (["--flows", "1,,2"], "commas between"),
            (["--flows", "1,"], "commas between"),
            (["--flows", "536870913"], "1..536870912"),
            (["--flows", ",".join(map(str, range(1, 18)))], "16 values"),
            (["--flows", "1", "--workers", "2"], "2 at least"),
            (["--services", "x"], "1..1048576"),
            (["--services", "-1"], "1..1048576"),
            (["--services", "1048577"], "1..1048576"),
            (["--services", "1025", "--backends", "1024"], "1048576 at most"),
            (["--backends", "65536"], "1..65535"),
            (["--family", "5"], "4, 6"),
            (["--forward", "ipip,ip"], "l2, ipip, gre, gue, vxlan"),
            (["--algorithm", "magic"], "knows maglev"),
            (["--packet-size", "63", "--family", "4"], "64 at least"),
            (["--packet-size", "64"], "78 at least with --family 6"),
            (["--packet-size", "1519"], "1..1518"),
            (["--workers", "128"], "1..127"),
            (["--swap-every", "0"], "1..3600000"),
            (["--new-flows", "101"], "0..100"),
            (["--new-flows", "1", "--syn"], "leave --new-flows out"),
            (["--new-flows", "1", "--stage", "hash"], "leave --new-flows out"),
            (["--stage", "all"], "parse, service, hash, flow, table, encap"),
            (["--stage", "parse", "--syn"], "leave --syn out"),
            (["--stage", "parse", "--swap-every", "1"], "leave --swap-every out"),
            (["--seconds", "0"], "above 0"),
            (["--seconds", "nan"], "above 0"),
            (["--seconds", "1s"], "above 0"),
            (["maglev"], "nothing to name but options"),
            (["--flow-table"], "unrecognized option"),
        ]
        for args, says in rows:
            with self.subTest(args=args):
                done = run(*args)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(says, done.stderr)
                self.assertIn("--help", done.stderr)

    def test_short_options(self):
        short = ["-f", "100", "-s", "2", "-b", "3", "-F", "6", "-m", "gre", "-a", "ring",
                 "-p", "100", "-n", "2", "-w", "1", "-S", "0.02", "-j"]
        done = run(*short)
        self.assertEqual(done.returncode, 0, done.stderr)
        result, = json.loads(done.stdout)["results"]
        self.hold(result)
        want = {"case": "warm-swap", "family": 6, "forward": "gre", "algorithm": "ring",
                "flows": 100, "services": 2, "backends": 3, "workers": 2, "packet_size": 100}
        self.assertEqual({key: result[key] for key in want}, want)
        done = run("-y", "-f", "1", "-F", "4", "-S", "0.02", "-j")
        self.assertEqual(json.loads(done.stdout)["results"][0]["case"], "syn")
        done = run("-N", "50", "-f", "1", "-F", "4", "-S", "0.02", "-j")
        self.assertEqual(json.loads(done.stdout)["results"][0]["case"], "mixed")
        done = run("-t", "hash", "-f", "1", "-F", "4", "-S", "0.02", "-j")
        self.assertEqual(json.loads(done.stdout)["results"][0]["case"], "stage-hash")
        self.assertIn("memory", json.loads(run("-M", "-j").stdout))

    def test_a_table_for_people(self):
        done = run(*QUICK, *ONE, "--forward", "ipip,gue")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, *rows = done.stdout.splitlines()[:3]
        for row, mode in zip(rows, ["ipip", "gue"]):
            cells = dict(zip(head.split(), row.split()))
            self.assertEqual(cells["case"], "warm")
            self.assertEqual(cells["forward"], mode)
            self.assertEqual(cells["flows"], "1000")
            self.assertGreater(float(cells["ns/packet"]), 0)
            self.assertGreater(float(cells["generator"]), 0)
        self.assertIn("pages", done.stdout)

    def test_results_that_cannot_be_written(self):
        for option in ([], ["--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *QUICK, *ONE, *option], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S,
                                      check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be written", done.stderr)


class Cases(BenchCase):
    def test_every_combination_is_a_case(self):
        results = self.measure("--flows", "1000,5000", "--forward", ",".join(MODES))
        self.assertEqual(
            [(result["family"], result["forward"], result["flows"]) for result in results],
            [(family, mode, flows) for family in (4, 6) for mode in MODES
             for flows in (1000, 5000)])
        self.assertEqual(self.column(results, "hit_share"), [1] * len(results))
        self.assertEqual(set(self.column(results, "case")), {"warm"})

    def test_algorithms(self):
        names = ["maglev", "ring", "rendezvous"]
        results = self.measure(*ONE, "--algorithm", ",".join(names))
        self.assertEqual(self.column(results, "algorithm"), names)

    def test_services_and_backends(self):
        result, = self.measure(*ONE, "--services", "30", "--backends", "7")
        self.assertEqual((result["services"], result["backends"]), (30, 7))

    def test_packet_sizes(self):
        self.assertEqual(self.column(self.measure("--flows", "10"), "packet_size"), [64, 78])
        results = self.measure("--flows", "10", "--packet-size", "1518", "--forward", "vxlan")
        self.assertEqual(self.column(results, "packet_size"), [1518, 1518])

    def test_workers_share_the_flows(self):
        result, = self.measure("--flows", "1001", "--family", "4", "--workers", "3")
        self.assertEqual(result["workers"], 3)
        entries = result["workers"] * result["flow_entries"]
        self.assertAlmostEqual(result["flow_table_fill"] * entries, 1001, delta=5)

    def test_known_flows_are_in_the_table_and_leave_half_of_it_free(self):
        result, = self.measure("--flows", "300000", "--family", "4")
        self.assertGreaterEqual(result["hit_share"], 0.9999)
        self.assertGreaterEqual(result["flow_entries"], 600000)
        self.assertAlmostEqual(result["flow_table_fill"] * result["flow_entries"], 300000,
                               delta=30)

    def test_a_flood_is_all_new_flows_and_fills_the_table(self):
        for result in self.measure("--flows", "1000", "--syn"):
            self.assertEqual(result["case"], "syn")
            self.assertEqual(result["hit_share"], 0)
            self.assertGreaterEqual(result["flow_table_fill"], 0.99)

    def test_new_flows_come_between_known_ones_and_push_none_of_them_out(self):
        for percent in (1, 30, 100):
            result, = self.measure("--flows", "200000", "--family", "4", "--new-flows",
                                   str(percent))
            self.assertEqual((result["case"], result["new_flows"]), ("mixed", percent))
            self.assertAlmostEqual(result["hit_share"], 1 - percent / 100, delta=0.0001)
            self.assertGreaterEqual(result["flow_table_fill"], 0.99)

    def test_swaps_move_no_known_flow(self):
        result, = self.measure(*ONE, "--swap-every", "1", "--services", "3",
                               "--seconds", "0.5")
        self.assertEqual(result["case"], "warm-swap")
        self.assertGreater(result["swaps"], 0)
        self.assertEqual(result["hit_share"], 1)
        result, = self.measure(*ONE)
        self.assertEqual(result["swaps"], 0)

    def test_stages(self):
        results = self.measure("--flows", "1000", "--stage", ",".join(STAGES))
        self.assertEqual([(result["family"], result["case"]) for result in results],
                         [(family, f"stage-{stage}") for family in (4, 6)
                          for stage in STAGES])

    def test_an_empty_stage_costs_nothing(self):
        """Beside what a stage costs that does little."""
        none, parse = self.measure("--flows", "1000", "--family", "4", "--stage", "none,parse")
        self.assertEqual(none["case"], "stage-none")
        self.assertLess(abs(none["ns_per_packet"]), parse["ns_per_packet"] / 4)

    def test_seconds_are_wall_clock_of_a_case(self):
        """More time is more packets; how many is the machine's to say."""
        few, = self.measure(*ONE)
        many, = self.measure(*ONE, "--seconds", "2")
        self.assertGreater(many["packets"], few["packets"])

    def test_memory_takes_no_file_for_each_of_its_pages(self):
        """Sixteen workers take four files each, and half a hundred huge pages for buffers."""
        done = run(*QUICK, "--flows", "16", "--family", "4", "--workers", "16",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)))
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_it_needs_no_privileges(self):
        done = run(*QUICK, *ONE, user=65534, group=65534, extra_groups=[], cwd="/",
                   env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr)


class Memory(BenchCase):
    def read(self, *args):
        done = run("--memory", "--json", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual((report["schema"], report["results"]), (1, []))
        return report["memory"]

    def test_each_has_its_bytes(self):
        one = self.read()
        self.assertEqual(list(one), ["flow_bytes", "service_bytes", "backend_bytes",
                                     "slot_bytes", "total_bytes"])
        self.assertAlmostEqual(one["flow_bytes"], 20, delta=0.01)
        self.assertAlmostEqual(one["slot_bytes"], 2, delta=0.01)
        self.assertGreater(one["backend_bytes"], 128)
        # Each worker has a line of its own of a backend, and how many flows began on it.
        two = self.read("--workers", "2")
        self.assertEqual(two["backend_bytes"] - one["backend_bytes"], 64 + 8)

    def test_together_it_is_that_often(self):
        memory = self.read("--services", "1000", "--backends", "10", "--flows", "5000,300000")
        total = (2**20 * memory["flow_bytes"] + 1000 * memory["service_bytes"]
                 + 1000 * 65537 * memory["slot_bytes"] + 10000 * memory["backend_bytes"])
        self.assertAlmostEqual(memory["total_bytes"] / total, 1, delta=0.001)

    def test_a_fleet_fits_in_two_gigabytes(self):
        """Though no two services share a table, each has 65,537 slots, and a million flows."""
        memory = self.read("--services", "10000", "--backends", "10", "--flows", "1000000")
        print(f"10,000 services of 10 backends: {memory['total_bytes'] / 2**30:.2f} GiB")
        self.assertLess(memory["total_bytes"], 2 * 2**30)

    @unittest.skipUnless(SANITIZER == "none", "sanitizers take memory of their own")
    def test_services_with_the_same_backends_have_their_slots_once(self):
        """A process that runs the fleet: each with slots of its own they alone were 1.3 GB."""
        child = subprocess.Popen([PROGRAM, *QUICK, *ONE, "--services", "10000", "--backends",
                                  "10"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        print(f"10,000 services of the same 10 names: {usage.ru_maxrss / 1024:.0f} MiB")
        self.assertLess(usage.ru_maxrss, 512 * 1024)

    def test_for_people(self):
        done = run("--memory")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"a flow +20\.0")


class Plots(unittest.TestCase):
    SCRIPT = pathlib.Path(__file__).with_name("plot_bench.py")
    COMMITTED = pathlib.Path(__file__).with_name("plots")

    def draw(self, *args):
        subprocess.run([sys.executable, self.SCRIPT, *args], check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)

    def test_each_result_is_a_bar(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "plots"
            self.draw("--quick", PROGRAM, folder)
            report = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
            self.assertEqual(report["schema"], 1)
            self.assertEqual([series["name"] for series in report["series"]],
                             ["flows", "backends", "forward", "swap", "stage"])
            for series in report["series"]:
                root = xml.etree.ElementTree.parse(folder / f"{series['name']}.svg").getroot()
                rects = root.findall("{http://www.w3.org/2000/svg}rect")
                # Besides the bars, of two families, the background and a word on each family.
                self.assertEqual(len(rects), 2 * len(series["values"]) + 3)

    def test_what_is_committed_is_drawn_from_its_figures(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            figures = (self.COMMITTED / "bench.json").read_bytes()
            (folder / "bench.json").write_bytes(figures)
            self.draw("--draw", folder)
            drawn = {file.name: file.read_bytes() for file in folder.iterdir()}
            committed = {file.name: file.read_bytes() for file in self.COMMITTED.iterdir()}
            self.assertEqual(drawn, committed)


if __name__ == "__main__":
    unittest.main()
