#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of shunt-compare: drawn by rsvg-convert, light and dark, and read as XML."""

import pathlib
import re
import struct
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
import zlib

import lib
from lib import ALGORITHMS, CompareCase, run

SVG = "{http://www.w3.org/2000/svg}"
PLOTS = ["backends.svg", "balance.svg", "disruption.svg", "size.svg"]
DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{\n(.*?)\n\}\n", re.DOTALL)
# Of a letter, in parts of the font's size: DejaVu Sans' is wide.
LETTER = 0.62


def paeth(left, up, corner):
    near = left + up - corner
    return min((abs(near - left), 0, left), (abs(near - up), 1, up),
               (abs(near - corner), 2, corner))[2]


def unfilter(kind, line, before, pixel):
    for i, byte in enumerate(line):
        left = line[i - pixel] if i >= pixel else 0
        corner = before[i - pixel] if i >= pixel else 0
        add = (0, left, before[i], (left + before[i]) // 2, 0)[kind]
        if kind == 4:
            add = paeth(left, before[i], corner)
        line[i] = (byte + add) & 255
    return line


def pixels(png):
    """Colours of a PNG of 8 bits a channel, counted."""
    at, data, counts = 8, b"", {}
    while at < len(png):
        n_bytes, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + n_bytes]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            data += body
        at += 12 + n_bytes
    pixel = {2: 3, 6: 4}[colour]
    assert depth == 8
    data = zlib.decompress(data)
    before = bytearray(width * pixel)
    for y in range(height):
        start = y * (width * pixel + 1)
        before = unfilter(data[start], bytearray(data[start + 1:start + 1 + width * pixel]),
                          before, pixel)
        for x in range(0, len(before), pixel):
            key = bytes(before[x:x + 3])
            counts[key] = counts.get(key, 0) + 1
    return counts


def draw(svg):
    return pixels(subprocess.run(["rsvg-convert"], input=svg.encode(), stdout=subprocess.PIPE,
                                 check=True, timeout=60).stdout)


def font_size(element):
    classes = element.get("class", "").split()
    return {"small": 11, "label": 12, "head": 15}.get(
        next((c for c in classes if c in ("small", "label", "head")), ""), 13)


def box(element):
    """(left, top, right, bottom) of a text that is not turned, generously."""
    classes = element.get("class", "").split()
    x, y, size = float(element.get("x")), float(element.get("y")), font_size(element)
    width = LETTER * size * len(element.text or "")
    left = x - width if "end" in classes else x - width / 2 if "middle" in classes else x
    return left, y - 0.8 * size, left + width, y + 0.2 * size


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

    def check_texts(self, name, svg):
        root = ElementTree.fromstring(svg)
        width, height = float(root.get("width")), float(root.get("height"))
        texts = [t for t in root.iter(SVG + "text") if t.get("transform") is None]
        self.assertGreater(len(texts), 8, name)
        boxes = [(box(t), t.text) for t in texts]
        for (left, top, right, bottom), text in boxes:
            self.assertTrue(left >= 0 and top >= 0 and right <= width and bottom <= height,
                            f"{name}: '{text}' is cut off")
        for i, (one, text) in enumerate(boxes):
            for other, beside in boxes[:i]:
                apart = (one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or
                         other[1] >= one[3])
                self.assertTrue(apart, f"{name}: '{text}' lies over '{beside}'")

    def test_pictures_are_not_blank_on_light_and_dark_and_their_words_can_be_read(self):
        plots = self.plot("--backends", "20,5,100", "--size", "4093,1021")
        self.assertEqual(sorted(plots), PLOTS)
        for name, svg in plots.items():
            self.check_texts(name, svg)
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
            self.check_texts(name, svg)
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
