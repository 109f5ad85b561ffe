#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts where, and that it works there.

It is installed once, under a root folder (DESTDIR) of the test's own. BUILD names the build,
PREFIX and SYSCONFDIR its folders, HAS_DECAP is 1 where shunt-decap is built, MAN_PAGES has the
man pages that are, and VERSION is what programs say; meson sets them.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("BUILD", ""))
PREFIX = os.environ.get("PREFIX", "")
SYSCONFDIR = os.environ.get("SYSCONFDIR", "")
HAS_DECAP = os.environ.get("HAS_DECAP") == "1"
MAN_PAGES = os.environ.get("MAN_PAGES", "").split()
VERSION = os.environ.get("VERSION", "")
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of one program, also under sanitizers on a busy machine.
TIMEOUT_S = 60
# A terminal's, of old.
COLUMNS = 80

PROGRAMS = ["bin/shunt-bench", "bin/shunt-compare", "bin/shunt-replay", "bin/shuntctl",
            "sbin/shuntd"] + (["sbin/shunt-decap"] if HAS_DECAP else [])
DOC = "share/doc/shunt/"
UNIT = "lib/systemd/system/shuntd.service"
COMPLETION = "share/bash-completion/completions/shuntctl"
OTHERS = [UNIT, COMPLETION] + [DOC + name for name in (
    "CONTRIBUTING.md", "LICENSE", "README.md", "config/README.md", "lb/README.md",
    "lb/core/README.md", "tests/README.md", "tools/README.md", "tools/decap/README.md",
    "tools/demo.d/demo.yaml", "tools/guide/README.md")]
OTHERS += [f"share/man/man{page[-1]}/{page}" for page in MAN_PAGES]
FOLDERS = ["config/samples", "lb/core/plots", "tests/bench/plots", "tools/monitoring",
           "tools/samples"]
# Of Markdown: [words](where), and where it leads without #heading.
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def run(*command, **more):
    return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=TIMEOUT_S, **more)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="shunt-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        # By it `ninja uninstall` knows what a real installation put where.
        log = BUILD / "meson-logs" / "install-log.txt"
        before = log.read_bytes() if log.is_file() else None
        done = run("meson", "install", "-C", BUILD, "--no-rebuild",
                   env={**os.environ, "DESTDIR": str(cls.root)})
        if before is None:
            log.unlink(missing_ok=True)
        else:
            log.write_bytes(before)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.prefix = cls.root / PREFIX.lstrip("/")

    def test_these_files_and_no_others(self):
        within = [f"{DOC}{folder}/{path.name}" for folder in FOLDERS
                  for path in (ROOT / folder).iterdir()]
        found = [str(path.relative_to(self.root)) for path in self.root.rglob("*")
                 if not path.is_dir()]
        expected = [str(pathlib.Path(PREFIX.lstrip("/")) / name)
                    for name in PROGRAMS + OTHERS + within]
        self.assertEqual(sorted(found), sorted(expected))

    def test_each_link_of_a_document_leads_to_what_is_installed(self):
        n_links = 0
        for document in (self.prefix / DOC).rglob("*.md"):
            for link in LINK.findall(document.read_text(encoding="utf-8")):
                if "://" in link:
                    continue
                n_links += 1
                there = (document.parent / link).resolve()
                with self.subTest(document.name, link=link):
                    self.assertTrue(there.exists(), there)
                    self.assertTrue(there.is_relative_to(self.prefix.resolve() / DOC), there)
        self.assertGreater(n_links, 20)

    def test_each_program_says_its_version(self):
        for name in PROGRAMS:
            with self.subTest(name):
                done = run(self.prefix / name, "--version")
                self.assertEqual(done.stdout, f"{pathlib.Path(name).name} {VERSION}\n")
                self.assertEqual(done.returncode, 0)

    def test_help_fits_a_terminal(self):
        for name in PROGRAMS:
            with self.subTest(name):
                done = run(self.prefix / name, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertTrue(done.stdout.startswith(f"Usage: {pathlib.Path(name).name} "))
                self.assertEqual([line for line in done.stdout.splitlines()
                                  if len(line) > COLUMNS], [])

    def test_no_program_looks_for_libraries_in_the_build(self):
        for name in PROGRAMS:
            with self.subTest(name):
                done = run("readelf", "--dynamic", self.prefix / name)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn("(NEEDED)", done.stdout)
                self.assertNotIn("PATH)", done.stdout)

    def test_anyone_may_read_all_of_it(self):
        for path in self.root.rglob("*"):
            mode = path.stat().st_mode & 0o777
            is_open = path.is_dir() or "bin" in path.parent.name
            with self.subTest(path):
                self.assertEqual(mode, 0o755 if is_open else 0o644)

    def test_shuntd_takes_the_samples_for_it(self):
        for name in ("empty", "full", "ipv6", "l2", "minimal", "quic", "weights"):
            with self.subTest(name):
                done = run(self.prefix / "sbin/shuntd", "--check", "--config",
                           self.prefix / DOC / "config/samples" / f"{name}.yaml")
                self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_bash_completes_shuntctl(self):
        script = 'source "$1"; COMP_WORDS=(shuntctl sta); COMP_CWORD=1; _shuntctl; ' \
            'complete -p shuntctl; echo "${COMPREPLY[@]}"'
        done = run("bash", "-euc", script, "bash", self.prefix / COMPLETION)
        self.assertEqual(done.stdout, "complete -F _shuntctl shuntctl\nstatus stats\n")

    def test_bash_knows_each_option_of_shuntctl(self):
        words = re.compile(r"--[a-z-]+")
        said = set(words.findall(run(self.prefix / "bin/shuntctl", "--help").stdout))
        known = set(words.findall((self.prefix / COMPLETION).read_text(encoding="utf-8")))
        self.assertGreater(len(said), 5)
        self.assertEqual(said - known, set())

    def test_the_unit_starts_what_is_installed(self):
        lines = (self.prefix / UNIT).read_text(encoding="utf-8").splitlines()
        program = f"{PREFIX}/sbin/shuntd"
        self.assertTrue(os.access(f"{self.root}{program}", os.X_OK))
        self.assertIn(f"ExecStart={program} --config {SYSCONFDIR}/shunt/shunt.yaml", lines)
        self.assertTrue(os.access(f"{self.root}{PREFIX}/bin/shuntctl", os.X_OK))
        self.assertIn(f"ExecReload={PREFIX}/bin/shuntctl reload", lines)
        self.assertIn(f"ReadWritePaths=-{SYSCONFDIR}/shunt", lines)

    def test_systemd_takes_the_unit(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("there is no systemd-analyze here")
        text = (self.prefix / UNIT).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="shunt-unit-") as folder:
            unit = pathlib.Path(folder) / "shuntd.service"
            # It looks whether the program is there.
            unit.write_text(re.sub(f"={PREFIX}/(s?bin)", rf"={self.prefix}/\1", text),
                            encoding="utf-8")
            done = run(analyze, "verify", "--man=no", unit)
        # It also speaks of other units of the machine; what it says of ours names ours.
        about = [line for line in done.stdout.splitlines() if "shuntd" in line]
        self.assertEqual(about, [])
        self.assertEqual(done.returncode, 0, done.stdout)


def main():
    if not BUILD.is_dir() or not (BUILD / "build.ninja").is_file():
        sys.exit("BUILD does not name a build; meson sets it")
    # unittest runs no cleanups where it is interrupted by a time limit's SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
