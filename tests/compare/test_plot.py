#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of shunt-compare: drawn by rsvg-convert, light and dark, and read as XML."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

import lib
from lib import ALGORITHMS, CompareCase, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pictures import DARK, SVG, check_texts, draw  # noqa: E402

PLOTS = ["backends.svg", "balance.svg", "disruption.svg", "size.svg"]
# Pictures of lb/core/README.md.
COMMITTED = pathlib.Path(__file__).resolve().parents[2] / "lb" / "core" / "plots"


def names(svg):
    """What each mark says beside the pointer: its figures."""
    return {title.text for group in ElementTree.fromstring(svg).iter(SVG + "g")
            for title in group.iter(SVG + "title")}


def shares(svg):
    """The balance that stands beside each algorithm."""
    return set(re.findall(r">(\w+)</text>\n(?:<line .*\n)+<text .*>([\d.]+ to [\d.]+)<", svg))


def look(svg):
    return re.search(r"<style>.*</style>", svg, re.DOTALL)[0]


class Plots(CompareCase):
    def plot(self, *args):
        """The text of each picture, by name."""
        folder = self.folder / "plots"
        run("--plot", folder, "--seeds", 2, "--keys", 20000, *args)
        return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}

    def test_pictures_are_not_blank_on_light_and_dark_and_their_words_can_be_read(self):
        plots = self.plot("--backends", "20,5,100", "--size", "4093,1021")
        self.assertEqual(sorted(plots), PLOTS)
        for name, svg in plots.items():
            check_texts(self, name, svg)
            light, dark = draw(DARK.sub("", svg)), draw(DARK.sub(r"\1\n", svg))
            for colours, page in ((light, b"\xff\xff\xff"), (dark, b"\x0d\x11\x17")):
                total = sum(colours.values())
                self.assertEqual(max(colours, key=colours.get), page, name)
                self.assertLess(colours[page], 0.98 * total, f"{name} is blank")
                self.assertGreater(len(colours), 50, name)
            for colour in (b"\x00\x72\xb2", ) if name == "balance.svg" else (
                    b"\x00\x72\xb2", b"\xd5\x5e\x00"):
                self.assertGreater(light.get(colour, 0), 50, name)

    def test_every_algorithm_is_in_its_picture_with_units(self):
        plots = self.plot("--backends", "20,5", "--size", "4093,1021")
        for name, svg in plots.items():
            words = [t.text for t in ElementTree.fromstring(svg).iter(SVG + "text")]
            for algorithm in ALGORITHMS[:5] if name == "size.svg" else ALGORITHMS:
                self.assertIn(algorithm, words, name)
            unit = "divided by what is its by weight" if name == "balance.svg" else "percent"
            self.assertTrue(any(unit in word for word in words), name)
            self.assertIn("prefers-color-scheme:dark", svg)

    def test_the_committed_pictures_are_what_is_measured_now(self):
        # A part of what they show, as all of it takes minutes.
        now = self.plot("--backends", "100,10,30", "--size", "65537,16381", "--algorithms",
                        "maglev,stable,ring,bounded,slots", "--seeds", 10)
        self.assertEqual(sorted(now), PLOTS)
        for name, svg in now.items():
            committed = (COMMITTED / name).read_text(encoding="utf-8")
            found = shares(svg) if name == "balance.svg" else names(svg)
            self.assertGreater(len(found), 4, name)
            self.assertLessEqual(found, shares(committed) | names(committed), name)
            self.assertEqual(look(svg), look(committed), name)

    def test_what_is_very_small_is_on_the_scale(self):
        plots = self.plot("--backends", "5,10", "--size", "4093,655373", "--algorithms",
                          "maglev,stable,ring", "--changes", "remove-one,drain")
        for name, svg in plots.items():
            check_texts(self, name, svg)
        # Five of 655373 slots: at the most one more than a fifth, 0.0006 % above it.
        labels = [t.text for t in ElementTree.fromstring(plots["size.svg"]).iter(SVG + "text")]
        self.assertIn("0.0001 %", labels)

    def test_a_name_cannot_break_a_picture(self):
        weights = self.put("a<b>&c", "1\n2\n3\n")
        plots = self.plot("--weights", weights, "--algorithms", "ring")
        self.assertEqual(sorted(plots), ["balance.svg", "disruption.svg"])
        for svg in plots.values():
            title = ElementTree.fromstring(svg).find(SVG + "title").text
            self.assertIn("/a<b>&c, ", title)

    def test_what_has_too_little_to_draw_is_said(self):
        _, stderr = run("--plot", self.folder / "p", "--seeds", 1, "--keys", 100, "-a", "ring")
        self.assertIn("no backends.svg: that takes several --backends", stderr)
        self.assertIn("no size.svg: that takes several --size", stderr)

    def test_a_folder_that_cannot_be_is_a_failure_before_any_work(self):
        for path in (self.put("file", ""), self.folder / "no" / "parent"):
            stdout, stderr = run("--plot", path, status=1)
            self.assertIn("cannot be made", stderr)
            self.assertEqual(stdout, "")

    def test_a_picture_that_cannot_be_written_is_a_failure(self):
        (self.folder / "p" / "balance.svg").mkdir(parents=True)
        _, stderr = run("--plot", self.folder / "p", "--seeds", 1, "--keys", 100, "-a", "ring",
                        status=1)
        self.assertIn("balance.svg cannot be written", stderr)


if __name__ == "__main__":
    lib.main()
