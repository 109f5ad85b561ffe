# SPDX-License-Identifier: BSD-3-Clause
"""Running shunt-compare as its users do. SHUNT_COMPARE names the program."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("SHUNT_COMPARE", "")
# Of one run of the program, also under sanitizers on a busy machine.
TIMEOUT_S = 240

ALGORITHMS = ["maglev", "stable", "ring", "bounded", "rendezvous", "slots", "anchor", "jump",
              "ketama", "modulo"]
WITH_SIZE = ALGORITHMS[:5]
CHANGES = ["remove-one", "add-one", "reweight", "drain", "remove-tenth", "fail-tenth"]


def run(*args, status=0, **popen):
    """(stdout, stderr) of the program; AssertionError for another status, or a crash."""
    done = subprocess.run([PROGRAM, *map(str, args)], stdin=subprocess.DEVNULL,
                          stdout=popen.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False, **popen)
    stderr = done.stderr.decode(errors="surrogateescape")
    if done.returncode != status or "Sanitizer" in stderr or "runtime error" in stderr:
        raise AssertionError(f"{args}: status {done.returncode}, not {status}:\n{stderr}")
    return (done.stdout or b"").decode(), stderr


class CompareCase(unittest.TestCase):
    """A folder for each test, and results in one call."""

    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-compare-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, content):
        """Write a file into the test's folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def compare(self, *args):
        """The JSON object, whose figures must hold together."""
        report = json.loads(run("--json", *args)[0])
        self.assertEqual(report["schema"], 1)
        for result in report["results"]:
            self.check_result(result)
        return report

    def check_result(self, result):
        """What must hold of any result."""
        for one in [result, result["balance"], *result["changes"]]:
            for key, most in one.items():
                if key.endswith("_max") and most is not None:
                    self.assertLessEqual(one[key[:-4]], most * (1 + 1e-7), key)
        for change in result["changes"]:
            if change["moved"] is not None:
                self.assertLessEqual(0, change["needless"])
                self.assertLessEqual(change["needless"], change["moved"])
                self.assertLessEqual(change["moved_max"], 1)
        balance = result["balance"]
        self.assertLessEqual(balance["min_over_mean"], 1.000001)
        self.assertGreaterEqual(balance["max_over_mean"], 0.999999)

    def results(self, *args):
        """Results by algorithm, of one number of backends and one size."""
        found = {}
        for result in self.compare(*args)["results"]:
            self.assertNotIn(result["algorithm"], found)
            found[result["algorithm"]] = result
        return found


def change(result, name):
    return next(c for c in result["changes"] if c["change"] == name)


def main():
    if not PROGRAM:
        sys.exit("SHUNT_COMPARE must name the program: build/tools/shunt-compare, say")
    unittest.main()
