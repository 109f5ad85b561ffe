#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run shunt-bench over what a balancer grows in, and draw it.

usage: plot_bench.py SHUNT-BENCH DIRECTORY [--quick]

Nanoseconds a packet by flows, services, backends, workers, way of forwarding and stage, an SVG
file each in the directory, with the figures beside them in bench.json. --quick is for a test:
little time, and nothing large.
"""

import argparse
import html
import json
import math
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 60, 110, 40, 50
COLOURS = {4: "#1f6fb4", 6: "#d1660b"}
STAGES = "parse,service,hash,flow,table,encap"
MODES = "l2,ipip,gre,gue,vxlan"
# What is shown of a result, and the runs that it takes: one value each, or lists of them.
SERIES = [
    ("flows", [["--flows", "1000,10000,100000,1000000,4000000"]]),
    ("services", [["--services", n] for n in ("1", "10", "100", "1000")]),
    ("backends", [["--backends", n] for n in ("10", "100", "1000", "10000")]),
    ("workers", [["--workers", n] for n in ("1", "2", "4")]),
    ("forward", [["--forward", MODES]]),
    ("case", [["--stage", STAGES]]),
]
QUICK_SERIES = [
    ("flows", [["--flows", "1000,10000"]]),
    ("backends", [["--backends", n] for n in ("1", "10")]),
    ("forward", [["--forward", MODES]]),
    ("case", [["--stage", STAGES]]),
]


def measure(program, seconds, args):
    if "--flows" not in args:
        args = [*args, "--flows", "10000"]
    done = subprocess.run([program, "--json", "--seconds", str(seconds), *args],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["results"]


def nice_top(value):
    """The least of 1, 2 or 5 times a power of ten that is not below it."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def text(x, y, words, anchor="middle"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f'{html.escape(str(words))}</text>')


def frame(key, labels, top, x_of):
    """Axes, grid and words."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(WIDTH / 2, 20, f"CPU time of a packet, nanoseconds, by {key}")]
    for i in range(6):
        y = y_of(top * i / 5, top)
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="#dddddd"/>', text(LEFT - 8, y + 4, f"{top * i / 5:g}", "end")]
    out += [text(x_of(i), HEIGHT - BOTTOM + 20, label) for i, label in enumerate(labels)]
    for row, (family, colour) in enumerate(COLOURS.items()):
        y = TOP + 20 + 20 * row
        out += [f'<rect x="{WIDTH - RIGHT + 15}" y="{y - 10}" width="12" height="12" '
                f'fill="{colour}"/>', text(WIDTH - RIGHT + 33, y, f"IPv{family}", "start")]
    return out


def y_of(value, top):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(value, 0) / top


def whisker(x, result, top, colour):
    """From the least to the most of the rounds."""
    low, high = (y_of(min(result["spread"][end], top), top) for end in ("min", "max"))
    return (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" '
            f'stroke="{colour}"/>')


def draw(key, results):
    labels = list(dict.fromkeys(result[key] for result in results))
    top = nice_top(max(result["ns_per_packet"] for result in results) * 1.05)
    step = (WIDTH - LEFT - RIGHT) / len(labels)

    def x_of(place):
        return LEFT + step * (place + 0.5)

    out = frame("stage" if key == "case" else key,
                [str(label).removeprefix("stage-") for label in labels], top, x_of)
    for side, (family, colour) in enumerate(COLOURS.items()):
        width = step / 4
        for result in results:
            if result["family"] != family:
                continue
            x = x_of(labels.index(result[key])) + (side - 0.5) * width
            y = y_of(result["ns_per_packet"], top)
            out += [f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width * 0.9:.1f}" '
                    f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{colour}"/>',
                    whisker(x, result, top, "black"),
                    text(x, HEIGHT - BOTTOM + 36, f"{result['ns_per_packet']:.0f}")]
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", metavar="SHUNT-BENCH")
    parser.add_argument("directory", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    figures = []
    for key, runs in QUICK_SERIES if options.quick else SERIES:
        results = []
        for args in runs:
            results += measure(options.program, 0.02 if options.quick else 1, args)
        name = "stage" if key == "case" else key
        (options.directory / f"{name}.svg").write_text(draw(key, results), encoding="utf-8")
        print(options.directory / f"{name}.svg", flush=True)
        figures.append({"by": name, "results": results})
    (options.directory / "bench.json").write_text(
        json.dumps({"schema": 1, "series": figures}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
