#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What goes into packages and into a container, without building either.

BUILD names the build and PREFIX its folder; meson sets them.
"""

import fnmatch
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("BUILD", ""))
PREFIX = os.environ.get("PREFIX", "")
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "tools" / "debian"
CONTAINERFILE = ROOT / "tools" / "Containerfile"
UNIT = ROOT / "tools" / "systemd" / "shuntd.service.in"
PACKAGES = ("shunt", "shunt-decap")
TIMEOUT_S = 60
# Of what tools/setup installs to build, these are there wherever a package is built.
ESSENTIAL = {"gcc", "libc6-dev", "ninja-build"}
INSTRUCTIONS = {"FROM", "COPY", "RUN", "ENTRYPOINT", "CMD"}
# Of Markdown: [words](where), and where it leads without #heading.
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def read(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def installed():
    """Files that `meson install` makes, as under /usr and without its slash; folders as such."""
    out = subprocess.run(["meson", "introspect", "--installed", str(BUILD)], check=True,
                         text=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S).stdout
    return sorted({"usr" + to.removeprefix(PREFIX) for to in json.loads(out).values()})


def source_of(path):
    """Of a document that is installed, or a part of a folder of documents."""
    return ROOT / path.removeprefix("usr/share/doc/shunt/")


def patterns(name):
    return [line.split()[0] for line in read(DEBIAN / name).splitlines() if line]


def places(name):
    """What a package has of the files that are installed: {its place: the installed file}."""
    found = {}
    for line in read(DEBIAN / f"{name}.install").splitlines():
        pattern, _, folder = line.partition(" ")
        for path in installed():
            if is_in(path, pattern):
                to = f"{folder}/{os.path.basename(path)}" if folder else path
                found[to] = path
    return found


def links(name):
    """Symbolic links that a package has, and where they lead."""
    path = DEBIAN / f"{name}.links"
    return dict(reversed(line.split()) for line in read(path).splitlines()) \
        if path.exists() else {}


def is_in(path, pattern):
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(pattern + "/")


def words_of_setup(name):
    """Packages of one array of tools/setup."""
    body = re.search(rf"^{name}=\((.*?)^\)", read(ROOT / "tools" / "setup"), re.M | re.S)[1]
    return {word for line in body.splitlines() for word in line.partition("#")[0].split()
            if not word.startswith('"')}


def field(text, name):
    """The items of a field of debian/control that goes over several lines."""
    body = re.search(rf"^{name}:\n((?: .*\n)+)", text, re.M)[1]
    return {re.split(r"[ (,]", item.strip())[0] for item in body.splitlines()}


def instructions():
    """(instruction, its text) of the Containerfile, lines that go on put together."""
    lines = [line for line in read(CONTAINERFILE).splitlines() if not line.startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def commands():
    """Commands of the Containerfile's RUN, each a list of words."""
    for word, text in instructions():
        if word == "RUN":
            for command in text.split("&&"):
                yield shlex.split(command)


class Package(unittest.TestCase):
    @unittest.skipUnless(shutil.which("scdoc"), "man pages are not installed: there is no scdoc")
    def test_each_file_goes_into_a_package_and_no_two_have_one_place(self):
        kept = patterns("not-installed")
        of_package = {name: places(name) for name in PACKAGES}
        files = installed()
        self.assertGreater(len(files), 15)
        for path in files:
            with self.subTest(path):
                takers = [name for name, has in of_package.items() if path in has.values()]
                left_out = any(is_in(path, one) for one in kept)
                # What there is to read may be in both.
                most = len(PACKAGES) if path.endswith(".md") else 1
                self.assertIn(len(takers), [0] if left_out else range(1, most + 1), takers)
        shared = set.intersection(*(set(has) for has in of_package.values()))
        self.assertEqual(shared, set())

    @unittest.skipUnless(shutil.which("scdoc"), "man pages are not installed: there is no scdoc")
    def test_each_link_of_a_document_leads_to_what_its_package_has(self):
        for name, least in (("shunt", 20), ("shunt-decap", 0)):
            has = places(name)
            linked = links(name)
            n_links = 0
            for place, path in has.items():
                if not path.endswith(".md"):
                    continue
                for link in LINK.findall(read(source_of(path))):
                    if "://" in link:
                        continue
                    n_links += 1
                    to = os.path.normpath(os.path.join(os.path.dirname(place), link))
                    with self.subTest(f"{name}: {place}", link=link):
                        self.assertTrue(source_of(to).exists(), to)
                        self.assertTrue(to in linked or any(
                            is_in(one, to) or is_in(to, one) for one in has))
            self.assertGreaterEqual(n_links, least)

    @unittest.skipUnless(shutil.which("scdoc"), "man pages are not installed: there is no scdoc")
    def test_no_package_asks_for_what_is_not_installed(self):
        files = installed()
        for name in ("not-installed", *(f"{name}.install" for name in PACKAGES)):
            for pattern in patterns(name):
                with self.subTest(f"{name}: {pattern}"):
                    self.assertTrue(any(is_in(path, pattern) for path in files))

    def test_examples_exist(self):
        names = patterns("shunt.examples")
        self.assertEqual([name for name in names if not (ROOT / name).is_file()], [])
        self.assertEqual({pathlib.Path(name).name for name in names},
                         {"demo.pcap", "demo.yaml", "events.yaml", "expect.yaml"})

    def test_it_is_built_with_what_setup_installs(self):
        wanted = field(read(DEBIAN / "control"), "Build-Depends") - {"debhelper-compat"}
        self.assertEqual(wanted, words_of_setup("build_packages") - ESSENTIAL)

    def test_the_unit_goes_on_until_it_is_restarted(self):
        self.assertIn("dh_installsystemd --no-enable --no-stop-on-upgrade",
                      read(DEBIAN / "rules"))

    def test_a_purge_takes_the_state_away(self):
        """Copies of etcd's documents have secrets in them."""
        state = re.search(r"^StateDirectory=(\S+)$", read(UNIT), re.M)[1]
        script = read(DEBIAN / "shunt.postrm")
        self.assertIn(f" /var/lib/{state}\n", script)
        self.assertIn("\n#DEBHELPER#\n", script)
        with tempfile.TemporaryDirectory(prefix="shunt-purge-") as folder:
            there = pathlib.Path(folder) / "lib" / state
            there.mkdir(parents=True)
            (there / "etcd-shunt.yaml").write_text("secret", encoding="ascii")
            for word, is_kept in (("remove", True), ("upgrade", True), ("purge", False),
                                  ("purge", False)):
                with self.subTest(word):
                    subprocess.run(["sh", "-c", script.replace("/var/lib", f"{folder}/lib"),
                                    "postrm", word], check=True, timeout=TIMEOUT_S)
                    self.assertEqual(there.exists(), is_kept)

    def test_package_says_what_is_wrong_with_its_arguments(self):
        for arguments in (["--fast"], ["one", "two"]):
            with self.subTest(arguments):
                done = subprocess.run([ROOT / "tools" / "package", *arguments], check=False,
                                      text=True, capture_output=True, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("usage: tools/package"))


class Container(unittest.TestCase):
    def test_its_instructions_are_known(self):
        words = [word for word, _ in instructions()]
        self.assertEqual(set(words), INSTRUCTIONS)
        self.assertEqual(words[0], "FROM")
        self.assertEqual(words[-2:], ["ENTRYPOINT", "CMD"])

    def test_what_is_copied_exists(self):
        stages = set()
        for word, text in instructions():
            if word == "FROM":
                self.assertRegex(text, r"^docker\.io/library/debian:bookworm-slim( AS \w+)?$")
                stages.update(re.findall(r" AS (\w+)", text))
            if word == "COPY":
                with self.subTest(text):
                    *options, source, _ = text.split()
                    if options:
                        self.assertIn(options[0].removeprefix("--from="), stages)
                    else:
                        self.assertTrue((ROOT / source).exists())

    def test_the_scripts_it_runs_exist(self):
        scripts = [ROOT / command[0].removeprefix("/src/") for command in commands()
                   if command[0].startswith("/src/")]
        self.assertEqual([path.name for path in scripts], ["setup", "package"])
        for path in scripts:
            self.assertTrue(os.access(path, os.X_OK))

    def test_what_it_installs_exists(self):
        names = [word for command in commands() if command[:2] == ["apt-get", "install"]
                 for word in command[2:] if not word.startswith(("-", "/packages/"))]
        self.assertEqual(names, ["librte-meta-net"])
        known = subprocess.run(["apt-cache", "pkgnames", "lib"], check=False, text=True,
                               stdout=subprocess.PIPE, timeout=TIMEOUT_S).stdout.split()
        if "libdpdk-dev" not in known:
            self.skipTest("apt has no lists here: apt-get update")
        self.assertEqual(set(names) - set(known), set())

    def test_it_starts_a_program_that_a_package_has(self):
        said = dict(instructions())
        program, = json.loads(said["ENTRYPOINT"])
        self.assertIn(program.lstrip("/"), patterns("shunt.install"))
        arguments = json.loads(said["CMD"])
        self.assertEqual(arguments[0], "--config")
        folder = pathlib.Path(arguments[1]).parent
        self.assertIn(str(folder).lstrip("/"), read(DEBIAN / "shunt.dirs").split())

    def test_it_gets_no_capability_that_the_unit_does_not_have(self):
        unit = set(re.findall(r"CAP_(\w+)", re.search(
            r"^CapabilityBoundingSet=(.*)$", read(UNIT), re.M)[1]))
        page = read(ROOT / "tools" / "README.md").partition("## In a container")[2]
        given = set(re.findall(r"--cap-add=(\w+)", page))
        self.assertIn("--cap-drop=ALL", page)
        self.assertGreaterEqual(given, {"NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_NICE"})
        self.assertEqual(given - unit, set())
        devices = set(re.findall(r"--device=(\S+?)[ `]", page)) - {"/dev/vfio/GROUP"}
        self.assertEqual({device for device in devices
                          if f"DeviceAllow={device} rw" not in read(UNIT)}, set())


def main():
    if not (BUILD / "build.ninja").is_file():
        sys.exit("BUILD does not name a build; meson sets it")
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
