#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a replay: its lines hold as many packets as the report says, events stand where
they were, and it can be read, by light and dark."""

import dataclasses
import pathlib
import resource
import sys
import xml.etree.ElementTree as ElementTree

import lib
import wire
from lib import CLIENT, ReplayCase, at, config, items, run, service

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pictures import DARK, SVG, check_texts, draw  # noqa: E402

SECONDS = 4
VIPS = [f"198.51.100.{10 + i}" for i in range(15)]
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def traffic(n=4000, seconds=SECONDS, vips=VIPS[:1], n_flows=400):
    """Packets at even times, their flows in turns."""
    return [at(seconds * i / (n - 1), wire.tcp(CLIENT, vips[i % len(vips)],
                                               1024 + i // len(vips) % n_flows, 80))
            for i in range(n)]


@dataclasses.dataclass
class Panel:
    """What a panel shows, as its axes say: by backend (packets, [(from, to, rate)]); events."""

    steps: dict
    marks: list


class Picture:
    def __init__(self, svg):
        self.svg = svg
        self.root = ElementTree.fromstring(svg)
        self.texts = [(float(text.get("x")), float(text.get("y")), text.text)
                      for text in self.root.iter(SVG + "text") if text.get("x")]
        self.words = [text for _, _, text in self.texts]
        # Axes by their own words: pixels of 0 and of the last tick.
        ends = [y for _, y, text in self.texts if text == "seconds since the first packet"]
        self.panels = [self.read_panel(y) for y in ends]

    def read_panel(self, below):
        bottom = below - 37
        times = [(float(text), x) for x, y, text in self.texts if y == bottom + 19]
        rates = [(self.number(text), y - 4) for x, y, text in self.texts
                 if x == 74 and bottom - 200 < y <= bottom + 5]
        (t0, x0), (t1, x1) = times[0], times[-1]
        (r0, y0), (r1, y1) = rates[0], rates[-1]

        def seconds(x):
            return t0 + (t1 - t0) * (x - x0) / (x1 - x0)

        def rate(y):
            return r0 + (r1 - r0) * (y - y0) / (y1 - y0)

        found = {}
        for group in self.root.iter(SVG + "g"):
            line = group.find(SVG + "polyline")
            if line is None:
                continue
            points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
            if bottom - 191 < points[0][1] < bottom + 1:
                name, _, packets = group.find(SVG + "title").text.rpartition(": ")
                steps = [(seconds(a[0]), seconds(b[0]), rate(a[1]))
                         for a, b in zip(points[::2], points[1::2])]
                found[name] = (int(packets.split()[0]), steps)
        marks = [(group.find(SVG + "title").text, seconds(float(line.get("x1"))))
                 for group in self.root.iter(SVG + "g")
                 if (line := group.find(SVG + "line")) is not None
                 and abs(float(line.get("y2")) - bottom) < 1]
        return Panel(found, marks)

    @staticmethod
    def number(text):
        value, _, unit = text.partition(" ")
        return float(value) * UNITS.get(unit, 1)


class Plot(ReplayCase):
    def plot(self, packets, *services, status=0, args=(), **keys):
        folder = self.folder / "plots"
        result = self.replay(packets, config(*services), args=["--plot", folder, *args],
                             status=status, write=False, **keys)
        return result.report, Picture((folder / "packets.svg").read_text(encoding="utf-8"))

    def check_lines(self, panel, of_service):
        """Each line holds the packets of its backend, by number and by area."""
        backends = {one["name"]: one["packets"] for one in of_service["backends"]
                    if one["packets"] > 0}
        self.assertEqual({name: n for name, (n, _) in panel.steps.items()}, backends)
        for name, (n, steps) in panel.steps.items():
            ends = [0, *(end for _, end, _ in steps)]
            for before, (begin, _, _) in zip(ends, steps):
                self.assertAlmostEqual(begin, before, delta=ends[-1] / 1000, msg=name)
            area = sum((end - begin) * rate for begin, end, rate in steps)
            self.assertAlmostEqual(area / n, 1, delta=0.03, msg=name)

    def test_lines_hold_what_the_report_says(self):
        report, picture = self.plot(
            traffic(6000, vips=VIPS[:2]), service(n=3),
            service("other", n=2, address=VIPS[1]), service("silent", address=VIPS[2]))
        self.assertEqual(len(picture.panels), 2)
        for panel, of_service in zip(picture.panels, report["services"]):
            self.check_lines(panel, of_service)
        for word in ("web", "other", "web-3", "other-2", "packets a second"):
            self.assertIn(word, picture.svg)
        self.assertNotIn("silent", picture.svg)

    def test_events_stand_where_they_were_and_what_they_did_is_seen(self):
        report, picture = self.plot(
            traffic(), service(n=3), events=items(
                {"at": "1s", "remove": "web/web-2"}, {"after": 3000, "drain": "web/web-1"},
                {"at": "3.5s", "add": {"service": "web", "name": "web-9", "address": "10.0.0.9"}}))
        panel, = picture.panels
        self.check_lines(panel, report["services"][0])
        wanted = [("remove web/web-2", 1), ("drain web/web-1", 3), ("add web/web-9", 3.5)]
        self.assertEqual([title for title, _ in panel.marks], [title for title, _ in wanted])
        for (_, found), (title, seconds) in zip(panel.marks, wanted):
            self.assertAlmostEqual(found, seconds, delta=0.01, msg=title)
            self.assertIn(title, picture.words)
        for number in ("1", "2", "3", "1.000000 s", "3.500000 s"):
            self.assertIn(number, picture.words)
        rates = {name: steps for name, (_, steps) in panel.steps.items()}
        self.assertGreater(min(rate for _, end, rate in rates["web-2"] if end < 1), 0)
        self.assertEqual([rate for begin, _, rate in rates["web-2"] if begin > 1.001 and rate > 1],
                         [])

    def test_it_is_not_blank_by_light_and_dark(self):
        _, picture = self.plot(traffic(), service(n=3))
        light, dark = draw(DARK.sub("", picture.svg)), draw(DARK.sub(r"\1\n", picture.svg))
        for colours, page in ((light, b"\xff\xff\xff"), (dark, b"\x0d\x11\x17")):
            self.assertEqual(max(colours, key=colours.get), page)
            self.assertGreater(len(colours), 50)
        for colour in (b"\x00\x72\xb2", b"\xd5\x5e\x00", b"\x00\x9e\x73"):
            self.assertGreater(light.get(colour, 0), 50)

    def test_its_words_can_be_read(self):
        _, picture = self.plot(
            traffic(6000, vips=VIPS[:3]), service("n" * 200, n=3),
            service("größer 漢字" * 9, n=12, address=VIPS[1]),
            service("a<b>&c", n=2, address=VIPS[2]),
            events=items(*({"at": f"{k / 20}s", "drain" if k % 2 else "up": "a<b>&c/a<b>&c-1"}
                           for k in range(1, 46))))
        check_texts(self, "packets.svg", picture.svg)
        self.assertIn("and 5 more events", picture.words)

    def test_of_too_many_backends_the_least_share_a_line(self):
        report, picture = self.plot(traffic(6000), service(n=25))
        panel, = picture.panels
        self.assertEqual(len(panel.steps), 10)
        packets = sorted((one["packets"] for one in report["services"][0]["backends"]),
                         reverse=True)
        together, _ = panel.steps.pop("16 others together")
        self.assertEqual(sorted((n for n, _ in panel.steps.values()), reverse=True), packets[:9])
        self.assertEqual(together, sum(packets[9:]))

    def test_of_too_many_services_those_with_the_most_packets_are_shown(self):
        packets = traffic(3000, vips=VIPS[:14]) + [
            at(SECONDS, wire.tcp(CLIENT, vip, 1, 80)) for vip in VIPS[3:]]
        _, picture = self.plot(packets, *(service(f"s{k}", n=1, address=vip)
                                          for k, vip in enumerate(VIPS)))
        self.assertEqual(len(picture.panels), 12)
        self.assertIn("not shown: 3 more services, with fewer packets", picture.words)
        self.assertNotIn("s14", picture.words)

    def test_what_has_no_time_is_said(self):
        for packets in ([at(0, wire.tcp(CLIENT, VIPS[0], 1, 80))] * 3,
                        [at(k, wire.tcp(CLIENT, "192.0.2.9", 1, 80)) for k in range(3)], []):
            _, picture = self.plot(packets, service())
            self.assertEqual(picture.panels, [])
            self.assertTrue(any("Nothing to show" in word for word in picture.words))

    def test_times_of_any_size(self):
        for seconds in (3e-6, 1e-3, 86400 * 300):
            report, picture = self.plot(traffic(900, seconds=seconds), service())
            self.check_lines(picture.panels[0], report["services"][0])
            check_texts(self, f"{seconds} s", picture.svg)

    def test_a_loop_goes_on_and_workers_change_nothing(self):
        pictures = {self.plot(traffic(2000), service(), args=["--loop", "3", "--workers", n])[1].svg
                    for n in (1, 2, 8)}
        self.assertEqual(len(pictures), 1)
        panel, = Picture(pictures.pop()).panels
        ends = [end for _, steps in panel.steps.values() for _, end, _ in steps]
        self.assertAlmostEqual(max(ends), 3 * SECONDS, delta=0.1)

    def test_a_folder_that_cannot_be_is_a_failure_before_any_work(self):
        settings = self.put("shunt.yaml", config(service()))
        capture = self.put("in.pcap", lib.captures.pcap(traffic(10)))
        for path in (self.put("file", ""), self.folder / "no" / "parent"):
            self.refuse("--config", settings, "--write", self.folder / "out.pcap", "--plot", path,
                        capture, status=1, says=["cannot be made"])
            self.assertFalse((self.folder / "out.pcap").exists())

    def test_a_picture_that_cannot_be_written_is_a_failure_with_a_report(self):
        (self.folder / "plots" / "packets.svg").mkdir(parents=True)
        result = self.replay(traffic(10), config(service()), write=False, status=1,
                             args=["--plot", self.folder / "plots"])
        self.assertIn("packets.svg cannot be written", result.stderr)
        self.assertEqual(result.report["packets"]["forwarded"], 10)

    def test_a_disk_that_fills_up_leaves_no_part_of_a_picture(self):
        """Here it is a limit, which is met in the same way as a full disk."""
        settings = self.put("shunt.yaml", config(service()))
        capture = self.put("in.pcap", lib.captures.pcap(traffic(1000)))
        plots = self.folder / "plots"
        command = ["--config", settings, "--plot", plots, capture]

        for before in ([], ["packets.svg"]):
            result = run(*command, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (1000, 1000)))
            self.assertEqual(result.status, 1)
            self.assertIn("packets.svg cannot be written: File too large", result.stderr)
            self.assertEqual([path.name for path in plots.iterdir()], before)
            run(*command)
            whole = (plots / "packets.svg").read_bytes()
            self.assertTrue(whole.endswith(b"</svg>\n"))

    def test_what_is_before_a_damage_is_drawn(self):
        damaged = lib.captures.pcap(traffic(1000))[:-7]
        report, picture = self.plot(damaged, service(), status=1)
        self.check_lines(picture.panels[0], report["services"][0])

    def test_the_help_has_it(self):
        self.assertRegex(run("--help").stdout.decode(), r"--plot DIR +draw")


if __name__ == "__main__":
    lib.main()
