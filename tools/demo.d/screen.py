# SPDX-License-Identifier: BSD-3-Clause
"""What the live demo shows: a story, and under it a table that is redrawn on a terminal."""

import collections
import shutil
import sys
import textwrap
import time

WIDTH = 78
BAR = 24
REDRAW_S = 0.25
LINE_S = 2.0
# Rates are over so many seconds.
SPAN_S = 2.0


class Screen:
    def __init__(self, client, servers):
        self.client = client
        self.states = {name: "" for name in servers}
        self.is_terminal = sys.stdout.isatty()
        self.begun = time.monotonic()
        self.past = collections.deque()

    def say(self, text=""):
        for paragraph in text.split("\n\n"):
            print(textwrap.fill(" ".join(paragraph.split()), WIDTH), flush=True)

    def strong(self, text):
        return f"\033[1m{text}\033[0m" if self.is_terminal else text

    def title(self, text):
        print(f"\n{self.strong(text)}", flush=True)

    def command(self, text):
        print(f"\n  {self.strong('$ ' + text)}\n", flush=True)

    def watch(self, is_enough):
        """Show what goes on until is_enough(seconds) is true."""
        begun = time.monotonic()
        n_lines = 0
        last = 0.0
        while True:
            time.sleep(REDRAW_S)
            now = time.monotonic()
            is_last = is_enough(now - begun)
            rates = self.rates(now)
            if self.is_terminal:
                n_lines = self.draw(self.table(now, rates), n_lines)
            elif is_last or now - last >= LINE_S:
                last = now
                print(self.line(now, rates), flush=True)
            if is_last:
                return

    def rates(self, now):
        """New requests a second, of each server."""
        answers = self.client.answers()
        self.past.append((now, answers))
        while len(self.past) > 2 and now - self.past[1][0] >= SPAN_S:
            self.past.popleft()
        then, before = self.past[0]
        if then == now:
            return {name: 0.0 for name in self.states}
        return {name: (answers[name] - before[name]) / (now - then) for name in self.states}

    def heading(self, now):
        with self.client.lock:
            return (f"{now - self.begun:3.0f} s  {self.client.n_begun} requests, "
                    f"{len(self.client.failures)} failed")

    def table(self, now, rates):
        downloads, answers = self.client.downloads(), self.client.answers()
        most = max(1.0, *rates.values())
        lines = [self.heading(now),
                 f"  server  state    {'new requests a second':<{BAR + 8}}"
                 f"{'so far':>8}  downloads running"]
        for name, state in self.states.items():
            bar = "#" * round(BAR * rates[name] / most)
            lines.append(f"  {name:<7} {state:<8} {bar:<{BAR}} {rates[name]:5.0f}  "
                         f"{answers[name]:8}  {'o' * downloads[name]}")
        return lines

    def line(self, now, rates):
        downloads = self.client.downloads()
        parts = [f"{name} {rates[name]:.0f}+{downloads[name]}" for name in self.states
                 if self.states[name]]
        return f"{self.heading(now)} | {', '.join(parts)}"

    @staticmethod
    def draw(lines, n_before):
        """Over what was drawn before. No line may wrap, or the next would miss it."""
        columns = shutil.get_terminal_size().columns
        up = f"\033[{n_before}A" if n_before > 0 else ""
        print(up + "".join(f"\r{line[:columns - 1]}\033[K\n" for line in lines), end="",
              flush=True)
        return len(lines)
