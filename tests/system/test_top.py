#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntctl top on a terminal, beside a shuntd with traffic: what is on it, its keys, its sizes,
how it ends, and what it says when shuntd is away.

SHUNTD and SHUNTCTL name the programs.
"""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

from lab import BAD_USAGE, DONE, FAILED, SHUNTCTL, TIMEOUT_S, wait_until
from small import METRICS, SmallCase, main

try:
    from terminal import Terminal
except ImportError:
    print("skipped: there is no pyte (Debian: python3-pyte)")
    sys.exit(77)

USUAL, LARGE = (80, 24), (140, 40)
HEAD, ROWS = 5, 6
WIDTHS = [11, 9, 8, 8, 7, 7]  # of the columns after the name


def rows(lines):
    """By name, the cells of each row of the table."""
    found = {}
    for line in lines[ROWS:-1]:
        cells = []
        for width in reversed(WIDTHS):
            line, cell = line[:-width - 1], line[-width:]
            cells.insert(0, cell.strip())
        if line.strip():
            found[line.strip()] = cells
    return found


class Top(SmallCase):
    def start(self, size=USUAL, **environment):
        terminal = Terminal(SHUNTCTL, "--socket", self.balancer.socket, "top", size=size,
                            **environment)
        self.addCleanup(terminal.close)
        return terminal

    def start_and_see(self, size=USUAL, **environment):
        """Until rates are there, which takes two samples."""
        terminal = self.start(size, **environment)
        terminal.until(lambda lines: re.search(r"received [1-9]", lines[1]), "rates")
        return terminal

    def test_what_is_there_is_shown(self):
        self.start_and_see().until_passes(self.check_all)

    def check_all(self, lines):
        self.assertRegex(lines[0], r"^shuntctl top: generation \d+, services 4, backends 7 ")
        self.assertRegex(lines[1], r"received \d+  forwarded \d+  replied 0  to_kernel 0  dropped \d")
        self.assertRegex(lines[2], r"no_service [\d.]+ \(\d+\)")
        self.assertRegex(lines[2], r"truncated [\d.]+ \(\d+\)")
        self.assertNotIn("no_backend", lines[2])
        self.assertRegex(lines[3], r"0: \d+\.\d% \(\d+\)")
        self.assertEqual(lines[HEAD].split(),
                         "BACKEND STATE PACKETS/S BITS/S FLOWS/S SHARE DUE".split())
        self.assertIn("1-7 of 7 by packets", lines[-1])
        shown = rows(lines)
        state, packets, bits, _, share, due = shown["web/web-3"]
        self.assertEqual((state, due), ("up", "20.0%"))
        self.assertRegex(packets, r"^[1-9]")
        self.assertRegex(bits, r"k$")
        self.assertRegex(share, r"^\d+\.\d%$")
        # A name of 255 letters, and one with brackets.
        self.assertIn("<img src=x onerror=odd=~ draining 0 0 0 - 0.0%",
                      [" ".join(line.split()) for line in lines])

    def test_figures_are_those_of_stats(self):
        """Between two calls of it, by no clock but the one here."""
        before = self.balancer.ctl("stats")
        begin = time.monotonic()
        terminal = self.start_and_see()
        seen = []
        for _ in range(4):
            seen.append(float(re.search(r"received (\d+)", terminal.lines()[1])[1]))
            time.sleep(1)
        after = self.balancer.ctl("stats")
        rate = ((after["packets"]["received"] - before["packets"]["received"])
                / (time.monotonic() - begin))
        self.assertGreater(max(seen), rate / 2)
        self.assertLess(min(seen), rate * 2)

    def test_busy_is_of_time(self):
        """Few turns find packets here, and those are short: they are no part of all turns."""
        def read():
            with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=TIMEOUT_S) as page:
                text = page.read().decode()
            return [float(re.search(rf"(?m)^shunt_{name}{{worker=\"0\"}} (.*)$", text)[1])
                    for name in ("worker_turn_seconds_sum", "worker_busy_ratio")]

        begin, _ = read()
        time.sleep(2.2)  # two samples
        end, ratio = read()
        self.assertGreater(ratio, 0)
        # Of a second that lies between.
        self.assertLess(ratio, end - begin)

    def test_keys(self):
        terminal = self.start_and_see()
        terminal.type("s")
        terminal.until(lambda lines: lines[HEAD].startswith("SERVICE"), "services")
        terminal.until_passes(lambda lines: self.assertEqual(
            [rows(lines)[name][0] for name in ("web", "empty")], ["3 of 3", "0 of 0"]))
        terminal.type("n")
        terminal.until(lambda lines: [line.split()[0] for line in lines[ROWS:ROWS + 4]]
                       == ["<img", "empty", "shop", "web"], "sorted by name")
        terminal.type("r")
        terminal.until_text("by name, reversed")
        terminal.until_passes(lambda lines: self.assertEqual(list(rows(lines))[0], "web"))
        terminal.type("\t/SHOP\r")
        terminal.until_text("1-2 of 2 by name, reversed, with 'SHOP'")
        terminal.until_passes(lambda lines: self.assertEqual(list(rows(lines)),
                                                             ["shop/shop-2", "shop/shop-1"]))
        terminal.type("\033")
        terminal.until_text("1-7 of 7")
        terminal.type("h")
        terminal.until_text("any key ends it")
        terminal.type("x")
        terminal.until(lambda lines: lines[HEAD].startswith("BACKEND"), "backends again")
        terminal.type("q")
        self.assertEqual(terminal.wait(), DONE)
        wait_until(terminal.is_restored, "the terminal is as it was")

    def test_arrows_scroll(self):
        terminal = self.start_and_see((80, 12))
        terminal.type("n")
        terminal.until_text("1-5 of 7 by name")
        terminal.type("\033OB")  # down, as xterm has it for such programs
        terminal.until_text("2-6 of 7 by name")

    def test_sizes(self):
        terminal = self.start_and_see()
        terminal.resize(*LARGE)
        terminal.until(lambda lines: "1-7 of 7" in lines[LARGE[1] - 1]
                       and lines[LARGE[1] - 1].endswith("q quit"), "the large screen in use")
        terminal.until_passes(lambda lines: self.assertRegex(lines[HEAD], r"DUE$"))
        terminal.until_text("onerror=odd=1>/nnnn")
        terminal.resize(30, 5)
        terminal.until_text("it takes 40x6")
        terminal.resize(*USUAL)
        terminal.until(lambda lines: lines[-1].endswith("q quit"), "the usual size again")
        other = self.start_and_see(LARGE)
        other.until(lambda lines: lines[-1].endswith("q quit"), "another large one")

    def test_signals_end_it_in_an_orderly_way(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number.name):
                terminal = self.start_and_see()
                self.assertFalse(terminal.is_restored())
                terminal.process.send_signal(number)
                self.assertEqual(terminal.wait(), DONE)
                wait_until(terminal.is_restored, "the terminal is as it was")
        terminal = self.start_and_see()
        terminal.type("\x03")
        self.assertEqual(terminal.wait(), DONE)
        wait_until(terminal.is_restored, "the terminal is as it was")

    def test_shuntd_goes_and_comes_back(self):
        terminal = self.start_and_see()
        self.balancer.stop()
        try:
            terminal.until_text("no connection to shuntd: No such file or directory; trying again")
            terminal.until_text("web/web-1")
        finally:
            self.balancer.start()
        terminal.until(lambda lines: "1-7 of 7" in lines[-1] and re.search(r"received [1-9]", lines[1]),
                       "it is there again")

    def test_shuntd_stops_to_answer(self):
        terminal = self.start_and_see()
        self.balancer.process.send_signal(signal.SIGSTOP)
        try:
            terminal.until_text("no answer from shuntd for 3 s: it is stopped, or busy")
            terminal.type("s")
            terminal.until(lambda lines: lines[HEAD].startswith("SERVICE"), "keys still work")
            terminal.type("q")
            self.assertEqual(terminal.wait(), DONE)
        finally:
            self.balancer.process.send_signal(signal.SIGCONT)

    def test_states_as_they_change(self):
        terminal = self.start_and_see()
        self.balancer.ctl("backend", "drain", "web/web-2")
        self.addCleanup(self.balancer.ctl, "backend", "up", "web/web-2")
        terminal.until(lambda lines: rows(lines).get("web/web-2", [""])[0] == "draining", "it drains")
        terminal.until(lambda lines: rows(lines)["web/web-1"][-1] == "66.7%", "the others' due")

    def test_names_without_utf8(self):
        name = "wéb"
        self.balancer.ctl("backend", "add", f"web/{name}", "10.0.0.9")
        self.addCleanup(self.balancer.ctl, "backend", "remove", f"web/{name}")
        for locale, shown in (("C.UTF-8", "web/wéb "), ("C", "web/w??b ")):
            self.start(LC_ALL=locale).until_text(shown)

    def test_without_a_terminal(self):
        done = subprocess.run([SHUNTCTL, "--socket", self.balancer.socket, "top"], check=False,
                              text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stdout), (BAD_USAGE, ""))
        self.assertIn("shuntctl stats --watch", done.stderr)
        for name in ("dumb", "no-such-terminal", None):
            with self.subTest(TERM=name):
                terminal = self.start(TERM=name)
                self.assertEqual(terminal.wait(), BAD_USAGE)
                terminal.until_text("stats --watch")

    def test_no_daemon_from_the_start(self):
        terminal = Terminal(SHUNTCTL, "--socket", "/nowhere", "top")
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.wait(), FAILED)
        terminal.until_text("is shuntd running?")
        self.assertNotIn(b"1049h", terminal.written)

    def test_json_is_not_for_it(self):
        done = subprocess.run([SHUNTCTL, "-j", "top"], check=False, text=True, capture_output=True,
                              timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, BAD_USAGE)
        self.assertIn("stats --watch --json", done.stderr)


if __name__ == "__main__":
    os.environ.pop("ESCDELAY", None)
    main()
