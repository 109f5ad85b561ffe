# SPDX-License-Identifier: BSD-3-Clause
"""A program on a terminal, a pty with pyte behind it: what is on its screen, and keys for it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading

import pyte

from lab import TIMEOUT_S, stop, wait_until


class Terminal:
    def __init__(self, *command, size=(80, 24), **environment):
        """size: columns, lines. environment: more of it; a value of None takes a name out."""
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.lock = threading.Lock()
        self.set_size(*size)
        self.before = termios.tcgetattr(self.slave)
        words = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}
        # Its own session, whose terminal this is, as it is of a shell's.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *map(str, command)], stdin=self.slave, stdout=self.slave,
            stderr=self.slave, env={name: value for name, value in words.items() if value is not None})
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.is_over.is_set():
            if not select.select([self.master], [], [], 0.05)[0]:
                continue
            data = os.read(self.master, 65536)
            with self.lock:
                self.written += data
                self.stream.feed(data)

    def set_size(self, columns, lines):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns, lines):
        """As a window does: the kernel tells the program."""
        with self.lock:
            self.screen.resize(lines, columns)
        self.set_size(columns, lines)

    def lines(self):
        with self.lock:
            return list(self.screen.display)

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines())

    def type(self, keys):
        os.write(self.master, keys.encode())

    def until(self, is_true, what):
        """Until is_true(lines) is; what it gave."""
        return wait_until(lambda: is_true(self.lines()), lambda: f"{what}:\n{self.text()}")

    def until_passes(self, check):
        """Until check(lines) fails no assertion: a screen is seen while it is drawn, too."""
        def passes(lines):
            try:
                check(lines)
            except (AssertionError, LookupError):
                return False
            return True

        try:
            self.until(passes, "")
        except AssertionError:
            check(self.lines())  # says which
            raise

    def until_text(self, text):
        self.until(lambda lines: any(text in line for line in lines), text)

    def wait(self):
        return self.process.wait(timeout=TIMEOUT_S)

    def is_restored(self):
        """Its modes are what they were, and what was on it before the program is shown again."""
        with self.lock:
            written = self.written
        return (termios.tcgetattr(self.slave) == self.before
                and written.rfind(b"\033[?1049l") > written.rfind(b"\033[?1049h") >= 0
                and not self.screen.cursor.hidden)

    def close(self):
        stop(self.process)
        self.is_over.set()
        self.thread.join()
        os.close(self.master)
        os.close(self.slave)
