#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What shunt-compare measures, what it says of it, and what it refuses."""

import bisect
import json
import pathlib
import re
import struct
import subprocess
import sys
import unittest

import xxhash

import lib
from lib import ALGORITHMS, CHANGES, WITH_SIZE, CompareCase, change, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import stable as golden_stable  # pylint: disable=wrong-import-position
import tables as golden  # pylint: disable=wrong-import-position

QUICK = ["--seeds", 2, "--size", 4093, "--keys", 20000]


def service(backends, **keys):
    return {"name": "web", "address": "198.51.100.10", "protocol": "tcp", "port": 80,
            "table": {"algorithm": "maglev", "size": 251}, **keys,
            "backends": [{"name": name, "address": f"10.0.{i // 250}.{i % 250 + 1}",
                          "weight": weight, "state": state}
                         for i, (name, weight, state) in enumerate(backends)]}


def config(backends, hash_seed=0, **keys):
    """A configuration as text; JSON is YAML too."""
    return json.dumps({"services": [service(backends, **keys)], "hash_seed": hash_seed})


def pool(n, weight=lambda i: 100, state=lambda i: "up"):
    return [(f"web-{i}", weight(i), state(i)) for i in range(n)]


def owners_of(algorithm, backends, size, seed):
    """By slot, in Python: the configured table, and where some are not up the overlay."""
    named = [(name.encode(), weight) for name, weight, _ in backends]
    slots = getattr(golden, algorithm)(named, size, seed)
    dead = {i for i, (_, _, state) in enumerate(backends) if state != "up"}
    if dead:
        slots = golden_stable.overlay(slots, dead)
    return [backends[i][0] for i in slots]


def quotas_of(backends):
    weights = {name: weight if state == "up" else 0 for name, weight, state in backends}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def judge(algorithm, before, after, size, seed):
    """What JSON should say of a change: moved, needless, moved over minimal."""
    old, new = (owners_of(algorithm, b, size, seed) for b in (before, after))
    had, has = quotas_of(before), quotas_of(after)
    moves = [(a, b) for a, b in zip(old, new) if a != b]
    more = {n for n in has if has[n] > had.get(n, 0) + 1e-12}
    less = {n for n in had if has.get(n, 0) < had[n] - 1e-12}
    needless = sum(a not in less or b not in more for a, b in moves)
    minimal = sum(has[n] - had.get(n, 0) for n in more)
    return len(moves) / size, needless / size, len(moves) / size / minimal


class Measures(CompareCase):
    def test_every_figure_has_its_name_and_its_largest_beside_it(self):
        report = self.compare(*QUICK, "--backends", "20")
        self.assertEqual(list(report), ["schema", "seeds", "keys", "results"])
        self.assertEqual([r["algorithm"] for r in report["results"]], ALGORITHMS)
        for result in report["results"]:
            self.assertEqual(list(result), [
                "algorithm", "backends", "slots", "weights", "balance", "changes", "build_ms",
                "build_ms_max", "build_over_plain", "build_over_plain_max", "build_bytes",
                "build_bytes_max", "lookup_ns", "lookup_ns_max", "bytes", "bytes_max"])
            self.assertEqual((result["backends"], result["weights"]), (20, "equal"))
            self.assertEqual(list(result["balance"]), [
                "max_over_mean", "max_over_mean_max", "min_over_mean", "min_over_mean_max",
                "min_over_mean_min", "stddev_over_mean", "stddev_over_mean_max"])
            self.assertEqual([c["change"] for c in result["changes"]], CHANGES)
            for one in result["changes"]:
                self.assertEqual(list(one), ["change", "moved", "moved_max", "needless",
                                             "needless_max", "moved_over_minimal",
                                             "moved_over_minimal_max"])
            self.assertGreater(result["build_ms"], 0)
            self.assertGreater(result["lookup_ns"], 0)

    def test_every_combination_is_measured_once(self):
        results = self.compare("--seeds", 1, "--keys", 1000, "--changes", "drain", "--backends",
                               "5,20", "--size", "251,509")["results"]
        found = [(r["algorithm"], r["backends"], r["slots"]) for r in results]
        wanted = [(a, n, m) for a in WITH_SIZE for n in (5, 20) for m in (251, 509)]
        wanted += [("slots", n, 16384) for n in (5, 20)]
        wanted += [(a, n, None) for a in ALGORITHMS[6:] for n in (5, 20)]
        self.assertCountEqual(found, wanted)

    def test_figures_are_means_over_seeds(self):
        once, twice = (self.results("--seeds", n, "--size", 4093, "--algorithms", "ring")["ring"]
                       ["balance"] for n in (1, 2))
        self.assertEqual(once["max_over_mean"], once["max_over_mean_max"])
        # Two seeds: one is the first, the other one follows from the mean.
        other = 2 * twice["max_over_mean"] - once["max_over_mean"]
        self.assertNotAlmostEqual(other, once["max_over_mean"], 4)
        self.assertAlmostEqual(twice["max_over_mean_max"], max(other, once["max_over_mean"]), 6)

    def test_a_run_is_repeatable_but_for_times(self):
        reports = [self.compare(*QUICK, "--weights", "1..100") for _ in range(2)]
        for report in reports:
            for result in report["results"]:
                for key in [k for k in result if k.startswith(("build", "lookup"))]:
                    del result[key]
        self.assertEqual(*reports)

    def test_what_theory_says_of_needless_moves(self):
        found = self.results("--seeds", 3, "--backends", 40, "--keys", 200000)
        for name in ("ring", "rendezvous", "slots", "anchor"):
            for kind in CHANGES:
                self.assertEqual(change(found[name], kind)["needless_max"], 0, (name, kind))
        for name in WITH_SIZE:
            for kind in ("drain", "fail-tenth"):
                self.assertEqual(change(found[name], kind)["needless_max"], 0, (name, kind))
        for kind in ("remove-one", "add-one", "drain", "remove-tenth", "fail-tenth"):
            self.assertEqual(change(found["ketama"], kind)["needless_max"], 0, kind)
        self.assertGreater(change(found["ketama"], "reweight")["needless"], 0)
        for name in ALGORITHMS:
            for kind in ("drain", "fail-tenth"):
                self.assertGreater(change(found[name], kind)["moved_over_minimal"], 0.6, name)
        self.assertEqual(change(found["jump"], "add-one")["needless_max"], 0)
        self.assertGreater(change(found["jump"], "remove-one")["needless"], 0.05)
        self.assertAlmostEqual(change(found["modulo"], "add-one")["moved"], 40 / 41, 2)

    def test_moves_are_held_against_the_least_that_a_change_asks_for(self):
        found = self.results("--seeds", 3, "--backends", 40, "--algorithms", "anchor,modulo")
        # of 40: a 40th leaves, a 41st comes, 10/4010 more weight, 4 leave
        for kind, least in [("remove-one", 1 / 40), ("add-one", 1 / 41), ("drain", 1 / 40),
                            ("reweight", 110 / 4010 - 1 / 40), ("remove-tenth", 0.1),
                            ("fail-tenth", 0.1)]:
            one = change(found["modulo"], kind)
            self.assertAlmostEqual(one["moved"] / one["moved_over_minimal"], least, 6, kind)
            self.assertAlmostEqual(change(found["anchor"], kind)["moved_over_minimal"], 1,
                                   delta=0.15, msg=kind)

    def test_stable_is_even_and_moves_less_than_maglev(self):
        found = self.results("--seeds", 10, "--changes", "remove-one,remove-tenth",
                             "--algorithms", "maglev,stable")
        self.assertLess(found["maglev"]["balance"]["max_over_mean_max"], 1.002)
        self.assertLessEqual(found["stable"]["balance"]["max_over_mean"], 1.025)
        self.assertGreaterEqual(found["stable"]["balance"]["min_over_mean"], 0.93)
        maglev = change(found["maglev"], "remove-one")["needless"]
        self.assertAlmostEqual(maglev, 0.0058, delta=0.0005)
        self.assertLessEqual(change(found["stable"], "remove-one")["needless"], 0.001)
        self.assertLessEqual(change(found["stable"], "remove-tenth")["needless"], 0.0025)

    def test_what_stable_reaches_with_more_backends_and_slots(self):
        # 100 and 655373: one backend in a hundred is at its capacity, so it takes more seeds.
        rows = [(1000, 65537, 10, 0.0018, 0.016, 1.03, 0.75),
                (100, 655373, 20, 0.00003, 0.00003, 1.025, 0.97),
                (1000, 655373, 10, 0.0004, 0.0025, 1.025, 0.9)]
        for backends, size, seeds, one, tenth, largest, least in rows:
            found = self.results("--seeds", seeds, "--backends", backends, "--size", size,
                                 "--changes", "remove-one,remove-tenth", "--algorithms", "stable",
                                 "--keys", 1000)["stable"]
            self.assertLessEqual(change(found, "remove-one")["needless"], one)
            self.assertLessEqual(change(found, "remove-tenth")["needless"], tenth)
            self.assertLessEqual(found["balance"]["max_over_mean"], largest)
            self.assertGreaterEqual(found["balance"]["min_over_mean"], least)

    def test_bounded_keeps_its_bound_and_the_ring_does_not(self):
        found = self.results("--seeds", 3, "--algorithms", "ring,bounded")
        self.assertGreater(found["ring"]["balance"]["max_over_mean"], 1.12)
        self.assertLess(found["bounded"]["balance"]["max_over_mean_max"], 1.102)

    def test_balance_is_held_against_weights(self):
        found = self.results("--weights", "1..100", "--seeds", 2, "--algorithms",
                             "maglev,slots,modulo", "--size", 655373)
        for name, most in [("maglev", 1.06), ("slots", 1.6), ("modulo", 1.6)]:
            self.assertLess(found[name]["balance"]["max_over_mean"], most)

    def test_memory_is_what_lookups_read(self):
        found = self.results("--seeds", 1, "--size", 65537, "--keys", 1000)
        self.assertEqual(found["slots"]["bytes"], 2 * 16384)
        self.assertEqual(found["jump"]["bytes"], 4 * 100)
        self.assertEqual(found["ketama"]["bytes"], 8 * 160 * 100)
        self.assertEqual(found["anchor"]["bytes"], 20 * 151)
        self.assertAlmostEqual(found["maglev"]["bytes"], 2 * 65537, delta=192)

    def test_a_build_takes_no_more_memory_than_a_few_slots_need(self):
        for size, backends in ((65537, 1000), (655373, 1000), (655373, 100)):
            found = self.results("--seeds", 1, "--size", size, "--backends", backends, "--keys",
                                 1000, "--changes", "drain", "--algorithms", "maglev,stable")
            for name, result in found.items():
                self.assertGreater(result["build_bytes"], result["bytes"], name)
                self.assertLessEqual(result["build_bytes"], 24 * size, (name, size))
            # Slots, inverses, times, and what is free.
            self.assertGreater(found["stable"]["build_bytes"], 15 * size)

    def test_a_build_is_held_against_the_plain_one_of_as_many_slots(self):
        found = self.results(*QUICK, "--backends", "20")
        for name, result in found.items():
            self.assertEqual(result["build_over_plain"] is not None, name in WITH_SIZE, name)
        self.assertEqual(self.results("--seeds", 1, "--size", 4096, "--algorithms", "ring")
                         ["ring"]["build_over_plain"], None)
        # 65535 beside very many of 1 would be a round for each slot.
        heavy = self.put("heavy", "65535\n" + "1\n" * 20000)
        self.assertEqual(self.results("--seeds", 1, "--weights", heavy, "--changes", "drain",
                                      "--algorithms", "maglev")["maglev"]["build_over_plain"],
                         None)

    def test_one_backend_cannot_leave(self):
        found = self.results(*QUICK, "--backends", "1")
        for kind in ("remove-one", "drain", "remove-tenth", "fail-tenth"):
            self.assertIsNone(change(found["maglev"], kind)["moved"], kind)
        self.assertIsNotNone(change(found["maglev"], "add-one")["moved"])


class Configurations(CompareCase):
    def against(self, before, after, *args):
        first, second = self.put("a.yaml", before), self.put("b.yaml", after)
        return self.results("--config", first, "--service", "web", "--against", second, *args)

    def check_exactly(self, before, after, seed):
        found = self.against(config(before, seed), config(after, seed))
        for algorithm in ("maglev", "stable", "ring", "rendezvous"):
            one = change(found[algorithm], "against")
            wanted = judge(algorithm, before, after, 251, seed)
            for key, value in zip(("moved", "needless", "moved_over_minimal"), wanted):
                self.assertAlmostEqual(one[key], value, 6, (algorithm, key))
            counts = owners_of(algorithm, before, 251, seed)
            ratios = [counts.count(name) / 251 / quota
                      for name, quota in quotas_of(before).items() if quota > 0]
            self.assertAlmostEqual(found[algorithm]["balance"]["max_over_mean"], max(ratios), 6)
            self.assertAlmostEqual(found[algorithm]["balance"]["min_over_mean"], min(ratios), 6)

    def test_a_change_is_what_another_program_finds(self):
        before = pool(12, lambda i: 1 + i * 37 % 100)
        after = [b for b in before if b[0] != "web-5"] + [("new", 60, "up")]
        self.check_exactly(before, after, 7)

    def test_so_is_one_of_weights_alone(self):
        before = pool(9)
        after = [(name, weight + 30 * (name == "web-3"), state) for name, weight, state in before]
        self.check_exactly(before, after, 2**64 - 1)

    def test_the_dead_stay_in_the_table_and_only_their_slots_move(self):
        before = pool(12)
        after = pool(12, state=lambda i: {3: "down", 8: "drain"}.get(i, "up"))
        self.check_exactly(before, after, 3)
        for name, result in self.against(config(before), config(after)).items():
            if name in WITH_SIZE:
                self.assertEqual(change(result, "against")["needless"], 0, name)

    def test_no_change_moves_nothing(self):
        found = self.against(config(pool(5)), config(list(reversed(pool(5)))), "--algorithms",
                             "maglev,stable,ring,bounded,rendezvous,slots,anchor")
        for name, result in found.items():
            one = change(result, "against")
            self.assertEqual((one["moved"], one["moved_over_minimal"]), (0, None), name)

    def test_another_size_is_judged_by_keys(self):
        ring = {"table": {"algorithm": "ring", "size": 65536}}
        found = self.against(config(pool(5), table={"algorithm": "ring", "size": 100003}),
                             config(pool(5), **ring), "--algorithms", "ring,jump")
        self.assertGreater(change(found["ring"], "against")["moved"], 0)
        self.assertLess(change(found["ring"], "against")["moved"], 0.01)
        self.assertEqual(change(found["jump"], "against")["moved"], 0)

    def test_the_overload_of_stable_is_the_file_s(self):
        tables = [{"algorithm": "stable", "size": 4093, "overload": o} for o in (0, "50%")]
        even, uneven = (self.against(config(pool(9), table=t), config(pool(9), table=t))
                        ["stable"]["balance"]["max_over_mean"] for t in tables)
        self.assertLess(even, 1.003)
        self.assertGreater(uneven, 1.02)

    def test_the_table_marks_what_is_configured(self):
        first = self.put("a.yaml", config(pool(4)))
        text, _ = run("--config", first, "--service", "web", "--against", first)
        self.assertRegex(text, r"(?m)^maglev \* +251 ")
        self.assertIn("4 backends, then 4; 251 slots", text)

    def test_what_cannot_be_compared_is_refused(self):
        good = self.put("good.yaml", config(pool(3)))
        rows = [
            ("a service that is not there", {"services": []}, "has no service 'web'; it has none"),
            ("a service by another name",
             {"services": [{**service(pool(2)), "name": "mail"}]}, "it has mail"),
            ("another hash_seed", json.loads(config(pool(3), 9)), "hash_seed"),
            ("another affinity", json.loads(config(pool(3), affinity="source-ip")), "affinity"),
            ("nobody", json.loads(config([])), "no backend of service 'web' takes new flows"),
            ("nobody up", json.loads(config(pool(2, state=lambda i: "down"))), "no backend"),
            ("a name twice", json.loads(config(pool(2) + pool(1))), "bad.yaml:1:"),
            ("all weights 0", json.loads(config(pool(2, lambda i: 0))), "no backend"),
        ]
        for what, content, says in rows:
            with self.subTest(what):
                bad = self.put("bad.yaml", json.dumps(content))
                _, stderr = run("--config", good, "--service", "web", "--against", bad, status=2)
                self.assertIn(says, stderr)
        _, stderr = run("--config", self.folder / "gone.yaml", "--service", "web", "--against",
                        good, status=2)
        self.assertIn("gone.yaml", stderr)


def rank_on_ring(backends, key):
    """Names of all backends by their first point at or after a key, in Python."""
    points = sorted((xxhash.xxh3_64_intdigest(struct.pack("<I", k), golden.h(name.encode(), 0, 1)),
                     name) for name, weight in backends
                    for k in range(max(1, (160 * weight + 50) // 100)))
    at = [hash for hash, _ in points]
    first = bisect.bisect_left(at, key)
    return list(dict.fromkeys(name for _, name in points[first:] + points[:first]))


def rank_by_hrw(backends, key):
    mix = 0xD6E8FEB86659FD93

    def rank(backend):
        u = (golden.h(backend[0].encode(), 0, 1) ^ key) * mix & golden.MASK
        u = (u ^ u >> 32) * mix & golden.MASK
        u ^= u >> 32
        return golden.score(u) / backend[1]
    return [name for name, _ in sorted(backends, key=rank)]


def spread(ranking, zones, k):
    """The first k of a ranking: the best of each zone, then those passed over."""
    chosen = []
    for name in ranking:
        if zones.get(name, name) not in [zones.get(other, other) for other in chosen]:
            chosen.append(name)
    return (chosen + [name for name in ranking if name not in chosen])[:k]


class Replicas(CompareCase):
    """Copies of keys: who has them, and in which zones."""

    BACKENDS = [(f"s-{i}", 20 + 30 * (i % 4)) for i in range(9)]

    def config(self, zones, state=lambda name: "up"):
        content = json.loads(config([(name, weight, state(name))
                                     for name, weight in self.BACKENDS]))
        for backend in content["services"][0]["backends"]:
            if backend["name"] in zones:
                backend["zone"] = zones[backend["name"]]
        return self.put("zones.yaml", json.dumps(content))

    def replicas(self, path, k, *args):
        stdout, stderr = run("--config", path, "--service", "web", "--replicas", k, "--json",
                             "--keys", 5000, *args)
        report = json.loads(stdout)
        self.assertEqual([r["algorithm"] for r in report["results"]], ["ring", "rendezvous"])
        for result in report["results"]:
            for part in ("share", "first", "copies"):
                self.assertAlmostEqual(sum(b[part] for b in result["backends"]), 1, 6)
            for backend in result["backends"]:
                self.assertAlmostEqual(backend["first"], backend["share"], delta=0.06)
        return report, stderr

    def test_copies_go_where_another_program_puts_them(self):
        zones = {name: f"rack {i % 4}" for i, (name, _) in enumerate(self.BACKENDS)}
        keys = ["user:42", "", "two words", "größer"]
        args = [word for key in keys for word in ("--key", key)]
        for k, told in ((1, ""), (3, ""), (4, ""), (6, "4 zones for 6 copies")):
            report, stderr = self.replicas(self.config(zones), k, *args)
            self.assertEqual((report["replicas"], report["zones"], report["keys"]), (k, 4, 5000))
            self.assertIn(told, stderr)
            for result, rank in zip(report["results"], (rank_on_ring, rank_by_hrw)):
                self.assertEqual([e["key"] for e in result["examples"]], keys)
                for example in result["examples"]:
                    key = xxhash.xxh3_64_intdigest(example["key"].encode(), 0)
                    self.assertEqual(example["owners"],
                                     spread(rank(self.BACKENDS, key), zones, k))

    def test_zones_keep_copies_apart_and_none_takes_them_all(self):
        zones = {name: f"rack {i % 3}" for i, (name, _) in enumerate(self.BACKENDS)}
        for result in self.replicas(self.config(zones), 3)[0]["results"]:
            self.assertEqual((result["apart"], result["lost"]), (1, 0))
            self.assertLess(result["apart_without_zones"], 0.5)
            self.assertGreater(result["lost_without_zones"], 0.01)

    def test_one_zone_takes_what_it_has_with_it(self):
        zones = {name: "all" for name, _ in self.BACKENDS}
        report, stderr = self.replicas(self.config(zones), 2)
        self.assertIn("there are 1 zones for 2 copies", stderr)
        for result in report["results"]:
            self.assertEqual((result["apart"], result["lost"]), (0, 1))

    def test_a_missing_zone_is_one_of_its_own_and_warned_of(self):
        report, stderr = self.replicas(self.config({"s-0": "r", "s-1": "r"}), 2)
        self.assertEqual(report["zones"], 8)
        self.assertIn("backend 's-2' has no zone, and others of the service have (7 such", stderr)
        self.assertIsNone(report["results"][0]["backends"][2]["zone"])
        report, stderr = self.replicas(self.config({}), 2)
        self.assertEqual((report["zones"], stderr), (9, ""))

    def test_who_takes_no_flows_gets_no_copies(self):
        path = self.config({}, lambda name: {"s-3": "down", "s-4": "drain"}.get(name, "up"))
        report, stderr = self.replicas(path, 9)
        names = [b["name"] for b in report["results"][0]["backends"]]
        self.assertEqual(names, ["s-0", "s-1", "s-2", "s-5", "s-6", "s-7", "s-8"])
        self.assertEqual(report["replicas"], 7)
        self.assertIn("9 copies are wanted, and 7 backends take any", stderr)

    def test_the_text_says_the_same(self):
        text, _ = run("--config", self.config({"s-0": "r"}), "-S", "web", "-r", 2, "-x", "a key",
                      "-K", 1000, "-a", "ring")
        self.assertIn("service web: 2 copies of each of 1000 keys, 9 zones", text)
        self.assertRegex(text, r"(?m)^ +20 +3\.70 +[\d.]+ +[\d.]+  s-0 \(r\)$")
        self.assertRegex(text, r"key a key\n  ring +s-\d( \(r\))?, s-\d( \(r\))?\n")
        for word in ("share", "first", "copies", "apart", "lost"):
            self.assertRegex(text, rf"(?m)^{word}  ", word)

    def test_what_does_not_go_with_copies_is_refused(self):
        path = self.config({})
        rows = [
            ("no configuration", ["-r", 2], "--replicas wants --config and --service"),
            ("two configurations", ["-f", path, "-S", "web", "-r", 2, "-g", path], "--against"),
            ("slots", ["-f", path, "-S", "web", "-r", 2, "-s", "251"], "--size"),
            ("what ranks nobody", ["-f", path, "-S", "web", "-r", 2, "-a", "maglev"],
             "--replicas knows ring and rendezvous"),
            ("no copies", ["-f", path, "-S", "web", "-r", 0], "1..64"),
            ("very many copies", ["-f", path, "-S", "web", "-r", 65], "1..64"),
            ("a key alone", ["-x", "a"], "--key is for --replicas"),
            ("17 keys", ["-x", "a"] * 17, "16 times at most"),
            ("a key that is no text", ["-f", path, "-S", "web", "-r", 2, "-x", b"\xff"],
             "UTF-8"),
            ("another service", ["-f", path, "-S", "mail", "-r", 2], "it has web"),
        ]
        for what, args, says in rows:
            with self.subTest(what):
                words = [a if isinstance(a, bytes) else str(a) for a in args]
                done = subprocess.run([lib.PROGRAM, *words], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=lib.TIMEOUT_S, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(says.encode(), done.stderr)
                self.assertEqual(done.stdout, b"")


class Weights(CompareCase):
    def with_file(self, content, *args):
        return self.results("--weights", self.put("weights", content), *QUICK, *args)

    def test_a_file_has_weights_or_names_and_weights(self):
        longest = "ü日" * 51  # 255 bytes
        found = self.with_file(
            f"# mine\n\n10\nx 20\r\n{longest} 30\n  two words\t40  \n".encode())
        self.assertEqual({r["backends"] for r in found.values()}, {4})
        self.assertTrue(found["maglev"]["weights"].endswith("/weights"))
        self.assertLess(found["maglev"]["balance"]["max_over_mean"], 1.01)

    def test_the_name_places_a_backend_and_not_its_line(self):
        files = ["a 1\nb 2\nc 3\n", "c 3\na 1\nb 2\n", "c 3\na 1\nd 2\n"]
        one, other, third = (self.with_file(f, "--algorithms", "ring")["ring"]["balance"]
                             for f in files)
        self.assertEqual(one, other)
        self.assertNotEqual(one, third)

    def test_what_gets_nothing_is_warned_of(self):
        rows = [
            ("a weight of 0", "5\n0\n", "1 of 2 backends have the weight 0"),
            ("65535 beside 1", "65535\n65535\n1\n",
             "the share of 1 of 3 backends is less than one of 4093 slots"),
        ]
        for what, content, says in rows:
            with self.subTest(what):
                _, stderr = run("--weights", self.put("w", content), *QUICK)
                self.assertIn(says, stderr)

    def test_files_that_are_wrong_are_refused_where_they_are(self):
        rows = [
            ("a duplicate name", "a 1\nb 1\na 2\n", "w:3: the name 'a' stands in line 1"),
            ("a made-up name that is there", "backend-2 1\n1\n", "w:2: the name 'backend-2'"),
            ("no weight", "a\n", "w:1: expected a weight"),
            ("a weight that is too large", "1\na 65536\n", "w:2: expected a weight"),
            ("a negative weight", "-1\n", "w:1: expected a weight"),
            ("all weights 0", "a 0\nb 0\n", "all weights are 0"),
            ("nothing", "# none\n", "there is no backend"),
            ("a name of 256 bytes", "x" * 256 + " 1\n", "255 bytes"),
            ("a name that is not UTF-8", b"\xff\xfe 1\n", "UTF-8"),
            ("a surrogate", b"\xed\xa0\x80 1\n", "UTF-8"),
            ("an overlong slash", b"\xe0\x80\xaf 1\n", "UTF-8"),
            ("half a character", b"\xc3 1\n", "UTF-8"),
            ("65536 backends", "1\n" * 65536, "65535 backends at most"),
            ("a slash", "a/b 1\n", "w:1: a name is UTF-8 without '/'"),
            ("a control character", "a\x01b 1\n", "w:1: a name is UTF-8 without"),
            ("a NUL", "a\0b 1\n", "w:1: a name is UTF-8 without"),
            ("a control character of two bytes", "1\na\x85 1\n", "w:2: a name is UTF-8"),
            ("an override of direction", "a\u202eb 1\n", "w:1: a name is UTF-8 without"),
            ("a list of weights", "1 2 3\n", "w:1: these are several numbers"),
            ("an empty file", "", "w:1: there is no backend"),
        ]
        for what, content, says in rows:
            with self.subTest(what):
                _, stderr = run("--weights", self.put("w", content), *QUICK, status=2)
                self.assertIn(says, stderr)

    def test_a_file_that_is_not_there_is_told_whatever_else_is_asked(self):
        for args in ([], ["-b", 5]):
            _, stderr = run("--weights", self.folder / "none", *args, status=2)
            self.assertIn("cannot be opened: No such file", stderr)
        _, stderr = run("--weights", self.put("w", "1\n"), "-b", 5, status=2)
        self.assertIn("leave --backends out", stderr)

    def test_all_that_is_wrong_is_told_at_once(self):
        _, stderr = run("--weights", self.put("w", "a\nb 1\nb 1\n-\n"), status=2)
        for line in ("w:1:", "w:3:", "w:4:"):
            self.assertIn(line, stderr)


class Usage(CompareCase):
    def test_bad_usage_says_what_would_be_right(self):
        rows = [
            ("no slots", ["--size", "0"], "7..16777213"),
            ("one slot", ["--size", "1"], "7..16777213"),
            ("too many slots", ["--size", "16777214"], "7..16777213"),
            ("not prime, for an algorithm by name",
             ["--algorithms", "maglev", "--size", "65536"], "next prime is 65537"),
            ("more backends than slots", ["--algorithms", "ring", "--backends", "200", "--size",
                                          "101"], "no more backends than slots"),
            ("70,000 backends", ["--backends", "70000"], "1..65535"),
            ("no backend", ["--backends", "0"], "1..65535"),
            ("a list that ends in a comma", ["--backends", "5,"], "commas between"),
            ("an unknown algorithm", ["--algorithms", "maglev,karma"], "--algorithms knows"),
            ("an unknown change", ["--changes", "explode"], "remove-one, add-one"),
            ("weights from high to low", ["--weights", "9..1"], "the least first"),
            ("weights from 0", ["--weights", "0..9"], "1 to 65535"),
            ("weights too large", ["--weights", "1..65536"], "1 to 65535"),
            ("no file", ["--weights", "/no/such/file"], "cannot be opened"),
            ("no seeds", ["--seeds", "0"], "1.."),
            ("no keys", ["--keys", "0"], "1.."),
            ("half a comparison", ["--config", "a.yaml"], "belong together"),
            ("two subjects", ["--config", "a", "--service", "b", "--against", "c",
                              "--backends", "3"], "leave --backends"),
            ("a lesson in JSON", ["--teach", "--json"], "--teach is a text"),
            ("an argument", ["what"], "'what' is no option"),
            ("an unknown option", ["--what"], "unrecognized"),
            ("more nodes than slots has", ["--algorithms", "slots", "--backends", "16385"],
             "16384 slots"),
            ("half a minute of scores, and more", ["--algorithms", "rendezvous", "--backends",
                                                   "1000", "--size", "16777213"], "2^33"),
            ("too many points", ["--algorithms", "ring", "--weights", "65535..65535",
                                 "--backends", "1000"], "16777216 points"),
            ("too many buckets", ["--algorithms", "anchor", "--weights", "1..65535",
                                  "--backends", "1000"], "11184800 buckets"),
            ("no algorithm is left", ["--backends", "65535", "--size", "7", "--algorithms",
                                      "bounded"], "no more backends than slots"),
        ]
        for what, args, says in rows:
            with self.subTest(what):
                stdout, stderr = run(*args, status=2)
                self.assertIn(says, stderr)
                self.assertIn("shunt-compare", stderr)
                self.assertEqual(stdout, "")

    def test_of_all_algorithms_those_that_cannot_are_left_out_with_a_warning(self):
        stdout, stderr = run("--json", "--size", "4096", "--seeds", 1, "--keys", 1000,
                             "--changes", "drain")
        found = [r["algorithm"] for r in json.loads(stdout)["results"]]
        self.assertEqual(found, [a for a in ALGORITHMS if a not in ("maglev", "stable")])
        self.assertIn("warning: left out: maglev takes a prime number of slots", stderr)
        self.assertIn("next prime is 4099", stderr)

    def test_short_options_are_the_long_ones(self):
        weights = self.put("w", "1\n2\n3\n")
        rows = [
            (["-a", "ring,jump", "-b", "5", "-s", "251", "-c", "drain", "-k", "2", "-K", "500",
              "-j"],
             ["--algorithms", "ring,jump", "--backends", "5", "--size", "251", "--changes",
              "drain", "--seeds", "2", "--keys", "500", "--json"]),
            (["-w", weights, "-a", "ring", "-j"],
             ["--weights", weights, "--algorithms", "ring", "--json"]),
            (["-t"], ["--teach"]), (["-h"], ["--help"]), (["-V"], ["--version"]),
        ]
        for short, long in rows:
            one, other = (re.sub(r'"(build|lookup)_\w+": [0-9.e-]+', "", run(*a)[0])
                          for a in (short, long))
            self.assertEqual(one, other)

    def test_results_that_cannot_be_written_are_a_failure(self):
        for args in ([*QUICK], [*QUICK, "--json"], ["--teach"], ["--help"]):
            with open("/dev/full", "wb") as full:
                run(*args, status=1, stdout=full)


class Explains(CompareCase):
    def test_the_text_has_a_row_for_each_algorithm_and_says_what_columns_mean(self):
        text, _ = run(*QUICK)
        for name in ALGORITHMS:
            self.assertEqual(len(re.findall(rf"(?m)^{name} ", text)), 2, name)
        self.assertRegex(text, r"(?m)^must move +1\.00 +0\.990 +0\.0989 +1\.00 +10\.0 +10\.0")
        for word in ("max/mean", "min/mean", "sd/mean", "build ms", "x plain",
                     "building", "lookup ns", "memory",
                     "moved", "needless", "must move"):
            self.assertRegex(text, rf"(?m)^{re.escape(word)}  ", word)

    def test_what_suits_is_said_by_the_figures(self):
        def answers(*args):
            text, _ = run("--seeds", 3, *args)
            return {question: re.search(rf"{question} +(\w+)", text)[1] for question in
                    ("most even", r"  moves the least", "a share, moves the least")}
        self.assertEqual(list(answers().values()), ["maglev", "rendezvous", "stable"])
        self.assertEqual(list(answers("-a", "ring,bounded,modulo").values()),
                         ["bounded", "ring", "none"])
        self.assertEqual(list(answers("-a", "maglev,ring").values()),
                         ["maglev", "ring", "maglev"])

    def test_who_is_left_out_is_told_and_what_leaves_out_is_not_advised(self):
        rows = [
            # As even as it gets at the top: who has 1000 of 1001 cannot have much more.
            ("one beside a thousand times as much", "1000\n1\n", 4093, ["-a", "maglev,ketama"],
             "ketama: up to 1 of 2 backends has no key", "maglev"),
            ("a few slots of stable", "1\n" * 50 + "100\n" * 50, 6553,
             ["-a", "stable,maglev"], r"stable: up to \d+ of 100 backends have no slot",
             "maglev"),
            ("nobody left", "1000\n1\n", 4093, ["-a", "ketama"],
             "ketama: up to 1 of 2 backends has no key", "none of these"),
        ]
        for what, weights, size, args, says, advised in rows:
            with self.subTest(what):
                text, _ = run("--weights", self.put("w", weights), "--seeds", 2, "--keys",
                              20000, "--size", size, "--changes", "remove-one", *args)
                self.assertRegex(text, f"(?m)^{says}$")
                found = re.findall(r"(?m)^  (?:most even|moves|with nobody|builds|least memory)"
                                   r".*?  +(\w+)", text)
                self.assertEqual(set(found) - {"none"}, {advised} - {"none of these"})

    def test_what_is_even_leaves_nobody_out(self):
        text, _ = run(*QUICK)
        self.assertNotRegex(text, "ha(s|ve) no (slot|key)")

    def test_what_is_uneven_is_called_so(self):
        text, _ = run(*QUICK, "-a", "maglev,ring")
        for line in re.findall(r"(?m)^  .*max/mean.*", text):
            self.assertEqual("ring:" in line, line.endswith("; uneven"), line)

    def test_the_lessons_show_what_they_tell(self):
        text, _ = run("--teach")
        self.assertIn("they have 64.7, 28.3 and 7.0 %", text)
        self.assertIn("the mean is 61.1, 27.8 and 11.1 %", text)
        rows = re.findall(r"(?m)^ +(\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+)$", text)
        self.assertEqual([int(r[0]) for r in rows], [1, 2, 5, 10, 20, 50, 100, 160, 200, 500])
        for column, sign in ((1, -1), (2, 1), (3, -1)):
            values = [sign * float(row[column]) for row in rows]
            self.assertEqual(values, sorted(values))
        moved = dict(re.findall(r"(?m)^   (ring|modulo).* ([\d.]+) % of the keys move", text))
        self.assertAlmostEqual(float(moved["ring"]), 25, delta=2)
        self.assertAlmostEqual(float(moved["modulo"]), 75, delta=0.5)
        self.assertRegex(text, r"ring, .*, 0\.0 % to a node that was there")
        largest = [float(x) for x in re.findall(r"(?m)^   (?:FNV|XXH)\S*(?: finalizer)? +"
                                                r"([\d.]+) ", text)]
        self.assertEqual(len(largest), 3)
        self.assertGreater(largest[0], 8)
        self.assertLess(max(largest[1:]), 4)

    def test_it_does_not_end_silently_when_nobody_reads(self):
        program = subprocess.Popen([lib.PROGRAM, "--teach"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        program.stdout.close()
        self.assertIn(b"cannot be written", program.stderr.read())
        self.assertEqual(program.wait(lib.TIMEOUT_S), 1)
        program.stderr.close()


if __name__ == "__main__":
    lib.main()
