#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages say what the programs say by --help, and shunt.yaml(5) has every key.

BUILD names the build; meson sets it. Pages are read as a terminal shows them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import yaml

BUILD = pathlib.Path(os.environ.get("BUILD", ""))
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "tools" / "man"
TIMEOUT_S = 60

PROGRAMS = {"shunt-bench.1": "shunt-bench", "shunt-compare.1": "shunt-compare",
            "shunt-decap.8": "decap/shunt-decap", "shunt-replay.1": "shunt-replay",
            "shuntctl.8": "shuntctl", "shuntd.8": "shuntd"}
# An option at the start of its line, with what it takes: "-c, --config FILE", "--show, --stats".
OPTION = re.compile(r"^ +((?:-\w, )?--[a-z-]+(?:, --[a-z-]+)*(?: \S+)?)(?= |$)", re.MULTILINE)
WORDS = re.compile(r"--[a-z][a-z-]+")
# A command of shuntctl, and the lines on which it goes on.
COMMAND = re.compile(r"^  ([a-z].*(?:\n {14}\[.*)*)", re.MULTILINE)


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          timeout=TIMEOUT_S, **more).stdout


def shown(page):
    """The page on a terminal so wide that no line has to be broken."""
    source = (PAGES / f"{page}.scd").read_text(encoding="utf-8")
    roff = run("scdoc", input=source)
    done = subprocess.run(["groff", "-k", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=1000n"],
                          check=True, text=True, capture_output=True, input=roff,
                          timeout=TIMEOUT_S)
    if done.stderr:
        raise AssertionError(f"{page}: {done.stderr}")
    return done.stdout


def help_of(page):
    return run(BUILD / "tools" / PROGRAMS[page], "--help")


def built_pages():
    return [page for page, program in PROGRAMS.items() if (BUILD / "tools" / program).is_file()]


def options_of(text):
    return {option.replace('"', "") for option in OPTION.findall(text)}


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*(keys_of(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(keys_of(item) for item in value))
    return set()


@unittest.skipUnless(shutil.which("scdoc"), "there is no scdoc here")
class ManPages(unittest.TestCase):
    def test_options_are_those_of_help(self):
        for page in built_pages():
            with self.subTest(page):
                options = options_of(help_of(page))
                self.assertGreaterEqual(len(options), 6)
                self.assertEqual(options_of(shown(page)), options)

    def test_no_option_is_left_out_or_made_up(self):
        for page in built_pages():
            with self.subTest(page):
                said = set(WORDS.findall(help_of(page)))
                self.assertEqual(set(WORDS.findall(shown(page))), said)

    def test_commands_of_shuntctl_are_those_of_help(self):
        page = shown("shuntctl.8")
        listed = {line.strip() for line in page.splitlines()}
        commands = [" ".join(re.split(r" {3,}", command.split("\n")[0])[0].split()
                             + [word for line in command.split("\n")[1:] for word in line.split()])
                    for command in COMMAND.findall(help_of("shuntctl.8"))]
        self.assertGreaterEqual(len(commands), 15)
        self.assertEqual([command for command in commands if command not in listed], [])

    def test_exit_statuses_are_those_of_help(self):
        for page in built_pages():
            with self.subTest(page):
                said = help_of(page).partition("Exit status:")[2]
                section = shown(page).partition("EXIT STATUS")[2]
                statuses = set(re.findall(r"\b([0-9]) [a-z]", said))
                self.assertGreaterEqual(len(statuses), 3)
                for status in statuses:
                    self.assertRegex(section, rf"(?m)(^ *|; ){status} [a-z]")

    def test_every_key_is_in_the_page_of_the_configuration(self):
        sample = ROOT / "config" / "samples" / "full.yaml"
        keys = keys_of(yaml.safe_load(sample.read_text(encoding="utf-8")))
        self.assertGreater(len(keys), 50)
        words = set(re.findall(r"[a-z_]+", shown("shunt.yaml.5")))
        self.assertEqual(keys - words, set())

    def test_each_page_is_named_by_its_heading_and_its_neighbours_exist(self):
        pages = {path.stem for path in PAGES.glob("*.scd")}
        self.assertEqual(pages, set(PROGRAMS) | {"shunt.yaml.5"})
        for page in pages:
            with self.subTest(page):
                name, _, section = page.rpartition(".")
                text = shown(page)
                self.assertTrue(text.startswith(f"{name}({section})"))
                neighbours = re.findall(r"\b(shunt[a-z.-]*)\((\d)\)", text)
                self.assertEqual({".".join(one) for one in neighbours} - pages, set())


def main():
    if not (BUILD / "build.ninja").is_file():
        sys.exit("BUILD does not name a build; meson sets it")
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
