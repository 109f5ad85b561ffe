#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-dumpcap beside a shuntd with traffic: it captures what is received and what is sent, where
shuntd was started for that, and the traffic goes on.

SHUNTD and SHUNTCTL name the programs.
"""

import atexit
import contextlib
import os
import pathlib
import struct
import subprocess
import sys

from lab import LIBC, TIMEOUT_S, wait_until
from small import VIP, SmallCase, main

HUGE_PAGES = pathlib.Path("/dev/hugepages")
# Of 2 MiB; shuntd and the capture take fewer.
PAGES_MIN = 160
IPIP, TCP = 4, 6
CLONE_NEWNS = 0x00020000


def free_pages():
    free = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(free.read_text(encoding="ascii")) if HUGE_PAGES.is_mount() and free.exists() else 0


def frames(data):
    """Those of a capture in pcap, of either precision."""
    found = []
    at = 24
    while at + 16 <= len(data):
        length, = struct.unpack_from("=I", data, at + 8)
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


class DumpcapCase(SmallCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = str(cls.balancer.socket).strip("/").replace("/", "-")
        # Pages stay where shuntd leaves them, for its next start.
        cls.addClassCleanup(lambda: [page.unlink() for page in HUGE_PAGES.glob(f"{cls.prefix}map_*")])

    def dumpcap(self, *args):
        return subprocess.run(
            ["dpdk-dumpcap", f"--file-prefix={self.prefix}", *map(str, args)], check=False,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
            env={**os.environ, "RUNTIME_DIRECTORY": str(self.balancer.folder)})


class Shared(DumpcapCase):
    arguments = ["--eal", "--proc-type=primary"]

    def received(self):
        return self.balancer.ctl("stats")["packets"]["received"]

    def test_it_captures_both_ways(self):
        listed = self.dumpcap("-D")
        self.assertIn("0. net_af_packet0", listed.stdout)
        wait_until(self.received, "traffic")
        file = self.balancer.folder / "captured.pcap"
        for _ in range(2):
            done = self.dumpcap("-i", "0", "-P", "-c", "200", "-a", "duration:20", "-w", file)
            self.assertEqual(done.returncode, 0, done.stdout)
            found = frames(file.read_bytes())
            self.assertGreaterEqual(len(found), 200, done.stdout)
            vip = bytes(map(int, VIP.split(".")))
            found = [frame for frame in found if len(frame) > 54]  # nothing of ARP
            came = [frame for frame in found if frame[23] == TCP and frame[30:34] == vip]
            went = [frame for frame in found if frame[23] == IPIP and frame[50:54] == vip]
            self.assertGreater(len(came), 20, done.stdout)
            self.assertGreater(len(went), 20, done.stdout)
            # What it took is given back, and shuntd goes on.
            before = self.received()
            wait_until(lambda: self.received() > before, "traffic after a capture")


class NotShared(DumpcapCase):
    def test_it_finds_nobody_unless_shuntd_was_told(self):
        done = self.dumpcap("-D")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is primary process running?", done.stdout)


def make_pages():
    """Have enough huge pages, and a way to them, both for this test alone."""
    count = pathlib.Path("/proc/sys/vm/nr_hugepages")
    before = count.read_text(encoding="ascii")
    lacking = PAGES_MIN - free_pages()
    if lacking > 0:
        atexit.register(count.write_text, before, encoding="ascii")
        count.write_text(str(int(before) + PAGES_MIN), encoding="ascii")
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError("no mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    HUGE_PAGES.mkdir(exist_ok=True)
    if not HUGE_PAGES.is_mount():
        subprocess.run(["mount", "-t", "hugetlbfs", "none", HUGE_PAGES], check=True)


if __name__ == "__main__":
    if os.geteuid() == 0:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            make_pages()
    if free_pages() < PAGES_MIN:
        print(f"skipped: {PAGES_MIN} free huge pages, at /dev/hugepages, cannot be had here")
        sys.exit(77)
    main(("dpdk-dumpcap", "dpdk-dev"))
