#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run shunt-bench over what a balancer grows in, and draw it.

usage: plot_bench.py [--quick] [--seconds S] SHUNT-BENCH DIRECTORY
       plot_bench.py --draw DIRECTORY

Nanoseconds a packet by flows, new flows, services, backends, workers, packet size, way of
forwarding, swaps of snapshots and stage: an SVG file each in the directory, with the figures
beside them in bench.json. --draw only draws what is in there. --quick is for a test: little
time, and nothing large.
"""

import argparse
import html
import json
import math
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 56, 16, 62, 66
COLOURS = {4: "#1f6fb4", 6: "#d1660b"}
FLOWS = [("1", 1), ("1k", 1000), ("10k", 10000), ("100k", 100000), ("1M", 1000000),
         ("4M", 4000000), ("16M", 16000000)]
POWERS = [("1", 1), ("10", 10), ("100", 100), ("1k", 1000), ("10k", 10000)]
# A file's name, what it is by, and of each value the options: those of all of it come first.
SERIES = [
    ("flows", "warm flows", [], [(name, ["--flows", n]) for name, n in FLOWS]),
    ("syn", "entries of a full flow table, every packet the SYN of a new flow", ["--syn"],
     [(name, ["--flows", n]) for name, n in FLOWS if 100000 < n < 10000000]),
    ("new", "percent of packets that are SYNs of new flows, between 100k warm ones",
     ["--flows", 100000],
     [(n, ["--new-flows", n]) for n in ("0", "1", "5", "10", "25", "50", "100")]),
    ("services", "services of 10 backends, 100k warm flows",
     ["--flows", 100000, "--backends", 10],
     [(name, ["--services", n]) for name, n in POWERS]),
    ("backends", "backends of a service, 100k warm flows", ["--flows", 100000],
     [(name, ["--backends", n]) for name, n in POWERS]),
    ("workers", "workers, 100k warm flows", ["--flows", 100000],
     [(n, ["--workers", n]) for n in ("1", "2")]),
    ("size", "bytes of a frame, 10k warm flows", ["--flows", 10000],
     [(n, ["--packet-size", n]) for n in ("78", "128", "256", "512", "1024", "1518")]),
    ("forward", "way of forwarding, 10k warm flows", ["--flows", 10000],
     [(mode, ["--forward", mode]) for mode in ("l2", "ipip", "gre", "gue", "vxlan")]),
    ("swap", "milliseconds from one snapshot to the next, 10k warm flows", ["--flows", 10000],
     [("never", [])] + [(n, ["--swap-every", n]) for n in ("1000", "100", "10")]),
    ("stage", "stage alone, 10k warm flows", ["--flows", 10000],
     [(stage, ["--stage", stage])
      for stage in ("parse", "service", "hash", "flow", "table", "encap")]),
]
QUICK = {"flows": ("1k", "10k"), "backends": ("1", "10"), "forward": ("l2", "ipip"),
         "swap": ("never", "10"), "stage": ("parse", "encap")}


def measure(program, seconds, args):
    done = subprocess.run([program, "--json", "--seconds", str(seconds), *map(str, args)],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["results"]


def run_all(program, seconds, wanted):
    """The figures of each series, of all values or of those wanted alone."""
    figures = []
    for name, by, common, values in SERIES:
        if wanted is not None:
            values = [value for value in values if value[0] in wanted.get(name, ())]
        if not values:
            continue
        print(name, flush=True)
        figures.append({"name": name, "by": by, "values": [
            {"label": label, "results": measure(program, seconds, common + args)}
            for label, args in values]})
    return {"schema": 1, "processor": processor(), "series": figures}


def processor():
    """Its model, as the kernel names it."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def nice_top(value):
    """The least of 1, 2 or 5 times a power of ten that is not below it."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def text(x, y, words, anchor="middle", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
            f'{html.escape(str(words))}</text>')


def y_of(value, top):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(value, 0), top) / top


def frame(title, by, top, note):
    """Axes, grid and words, on white: to be read on a page of any colour."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" fill="#222222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 22, title, "start", 15), text(LEFT, 40, note, "start", 11),
           text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, by)]
    for i in range(6):
        y = y_of(top * i / 5, top)
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="#dddddd"/>', text(LEFT - 8, y + 4, f"{top * i / 5:g}", "end")]
    for column, (family, colour) in enumerate(COLOURS.items()):
        x = WIDTH - RIGHT - 130 + 70 * column
        out += [f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/>',
                text(x + 18, 22, f"IPv{family}", "start")]
    return out


def bar(x, width, result, top):
    """With a line from the least to the most of the rounds, and the figure below."""
    y = y_of(result["ns_per_packet"], top)
    low, high = (y_of(result["spread"][end], top) for end in ("min", "max"))
    return [f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLOURS[result["family"]]}"/>',
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" '
            'stroke="#222222"/>',
            text(x, HEIGHT - BOTTOM + 15, f'{result["ns_per_packet"]:.0f}', size=11)]


def draw(series, model):
    values = series["values"]
    results = [result for value in values for result in value["results"]]
    top = nice_top(max(result["ns_per_packet"] for result in results) * 1.05)
    step = (WIDTH - LEFT - RIGHT) / len(values)
    pages = "huge" if results[0]["hugepages"] else "ordinary"
    out = frame("CPU time of a packet, ns", series["by"], top,
                f"{model}, one core a worker, {pages} pages; median, least and most of "
                f'{results[0]["rounds"]} rounds')
    for place, value in enumerate(values):
        middle = LEFT + step * (place + 0.5)
        width = min(step / 3, 60)
        out.append(text(middle, HEIGHT - BOTTOM + 34, value["label"]))
        for result in value["results"]:
            side = -0.52 if result["family"] == 4 else 0.52
            out += bar(middle + side * width, width, result, top)
    return "\n".join(out + ["</svg>", ""])


def draw_all(directory):
    report = json.loads((directory / "bench.json").read_text(encoding="utf-8"))
    for series in report["series"]:
        file = directory / f'{series["name"]}.svg'
        file.write_text(draw(series, report["processor"]), encoding="utf-8")
        print(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", metavar="SHUNT-BENCH", nargs="?")
    parser.add_argument("directory", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=1, metavar="S", help="of each case")
    parser.add_argument("--draw", action="store_true", help="only what is in bench.json")
    options = parser.parse_args()
    if options.draw != (options.program is None):
        parser.error("name SHUNT-BENCH, or --draw")
    if not options.draw:
        seconds, wanted = (0.02, QUICK) if options.quick else (options.seconds, None)
        report = run_all(options.program, seconds, wanted)
        options.directory.mkdir(parents=True, exist_ok=True)
        (options.directory / "bench.json").write_text(json.dumps(report, indent=1) + "\n",
                                                      encoding="utf-8")
    draw_all(options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
