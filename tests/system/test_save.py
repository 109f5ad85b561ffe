#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `--save` does where the file cannot be written, or was edited meanwhile: it says why, and
the file that was there is whole, whenever one looks and whatever ends.

SHUNTD and SHUNTCTL name the programs.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# Of one command or start, also under sanitizers on a busy machine.
TIMEOUT_S = 60
DONE, FAILED = 0, 1
N_BACKENDS = 200
NOBODY = 65534
N_KILLS = 5


class SaveCase(unittest.TestCase):
    """A shuntd on no ports, in a network namespace of its own."""

    maxDiff = 4000

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("mounts, DPDK's ports and a network namespace take root")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-save-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.place = self.folder / "place"
        self.place.mkdir()
        self.socket = self.folder / "shunt.sock"
        self.log = self.folder / "log"
        self.config = self.place / "shunt.yaml"
        self.process = None
        self.addCleanup(self.stop)

    def write(self):
        plane = {"workers": 1, "kernel": "none", "idle": "adaptive", "idle_sleep": "1ms",
                 "flow_entries": 1024,
                 "ports": [{"name": "wan", "device": "net_null0,no-rx=1",
                            "addresses": ["192.0.2.1/24"], "next_hop": "02:00:00:00:00:fe"}]}
        backends = [{"name": f"web-{i}", "address": f"10.0.1.{i}"}
                    for i in range(1, N_BACKENDS + 1)]
        self.config.write_text(json.dumps({
            "dataplane": plane, "control": {"socket": str(self.socket), "metrics": "off"},
            "services": [{"name": "web", "address": "198.51.100.10", "protocol": "tcp",
                          "port": 80, "backends": backends}]}), encoding="utf-8")

    def start(self, *before):
        """before: a command that becomes shuntd."""
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*before, "unshare", "--net", SHUNTD, "--config", self.config], stderr=log)
        end = time.monotonic() + TIMEOUT_S
        while "shuntd: ready" not in self.words():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no start:\n{self.words()}")
            time.sleep(0.02)

    def words(self):
        return self.log.read_text(encoding="utf-8")

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.terminate()
        try:
            status = process.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        if status != 0 or "Sanitizer" in self.words() or "runtime error" in self.words():
            raise AssertionError(f"shuntd ended with {status}:\n{self.words()}")

    def run_ctl(self, *args):
        return subprocess.run([SHUNTCTL, "--socket", self.socket, *args], check=False,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=TIMEOUT_S)

    def ctl(self, *args):
        done = self.run_ctl(*args)
        self.assertEqual(done.returncode, DONE, f"{args}: {done.stderr}{self.words()}")
        return done.stdout

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(TIMEOUT_S)
        client.connect(str(self.socket))
        return client

    @staticmethod
    def ask(client, *requests):
        """(method, params) each; all at once, and in this order."""
        client.sendall(b"".join(
            json.dumps({"jsonrpc": "2.0", "id": k, "method": method,
                        "params": params}).encode("ascii") + b"\n"
            for k, (method, params) in enumerate(requests)))

    def state(self, name):
        shown = json.loads(self.ctl("--json", "backend", "list", "web"))["backends"]
        return [one["state"] for one in shown if one["name"] == name]

    def mount(self, *options):
        done = subprocess.run(["mount", *options, self.place], check=False, text=True,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            self.skipTest(f"no mount here: {done.stderr}")

    def check_refusal(self, reason):
        """A change with --save: in force, not saved, and said so; the folder is as it was."""
        before = {one.name: one.read_bytes() for one in self.place.iterdir()}
        done = self.run_ctl("backend", "drain", "web/web-1", "--save")
        self.assertEqual(done.returncode, FAILED, done.stderr)
        for word in (str(self.config), reason, "the file is as it was",
                     "the change is in force, and not saved"):
            self.assertIn(word, done.stderr)
        self.assertEqual({one.name: one.read_bytes() for one in self.place.iterdir()}, before)
        self.assertEqual(self.state("web-1"), ["drain"])
        failures = [line for line in self.words().splitlines() if "cannot be saved" in line]
        self.assertRegex(failures[-1], f"^shuntd: error: .*{reason}")


class Refusals(SaveCase):
    def test_a_full_disk(self):
        self.mount("-t", "tmpfs", "-o", "size=64k", "tmpfs")
        self.addCleanup(subprocess.run, ["umount", self.place], check=True)
        self.addCleanup(self.stop)
        self.write()
        self.start()
        with open(self.place / "filler", "wb", buffering=0) as filler:
            with self.assertRaises(OSError):
                while True:
                    filler.write(bytes(4096))
        for what, room in (("not a page is left", 0), ("for some of the file", 4096)):
            with self.subTest(what):
                os.truncate(self.place / "filler",
                            (self.place / "filler").stat().st_size // 4096 * 4096 - room)
                self.check_refusal("No space left on device")
        (self.place / "filler").unlink()
        self.ctl("config", "save")
        self.assertEqual(self.config.read_text(encoding="utf-8"), self.ctl("config", "show"))

    def test_a_disk_that_is_read_only(self):
        self.mount("-t", "tmpfs", "-o", "size=1m", "tmpfs")
        self.addCleanup(subprocess.run, ["umount", self.place], check=True)
        self.addCleanup(self.stop)
        self.write()
        self.start()
        self.mount("-o", "remount,ro")
        self.check_refusal("Read-only file system")

    def test_a_folder_that_it_may_not_write(self):
        """Without the capabilities of root that look over modes."""
        self.write()
        self.start("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
        self.place.chmod(0o555)
        self.check_refusal("Permission denied")
        self.place.chmod(0o755)
        self.ctl("config", "save")
        self.assertEqual(self.config.read_text(encoding="utf-8"), self.ctl("config", "show"))

    def test_a_file_of_another_user_stays_his(self):
        """Also without the capability to change what is another's, as under the unit."""
        self.write()
        self.start("setpriv", "--bounding-set", "-fowner")
        for mode in (0o640, 0o604):
            os.chown(self.config, NOBODY, NOBODY)
            self.config.chmod(mode)
            self.ctl("backend", "drain", "web/web-1", "--save")
            info = self.config.stat()
            self.assertEqual((info.st_uid, info.st_gid, info.st_mode & 0o7777),
                             (NOBODY, NOBODY, mode))
        self.assertEqual(self.config.read_text(encoding="utf-8"), self.ctl("config", "show"))

    def test_a_folder_that_another_saves_into(self):
        self.write()
        self.start()
        there = os.open(self.place, os.O_RDONLY)
        self.addCleanup(os.close, there)
        fcntl.flock(there, fcntl.LOCK_EX)
        self.check_refusal("Device or resource busy")
        fcntl.flock(there, fcntl.LOCK_UN)
        self.ctl("config", "save")
        self.assertEqual(self.config.read_text(encoding="utf-8"), self.ctl("config", "show"))


class Edits(SaveCase):
    """What somebody has written into the file is not overwritten unread."""

    CHANGED = "changed since shuntd read it"

    def setUp(self):
        super().setUp()
        self.write()
        self.start()

    def edit(self, old, new):
        self.config.write_text(self.config.read_text(encoding="utf-8").replace(old, new),
                               encoding="utf-8")

    def check_saved(self):
        self.assertEqual(self.config.read_text(encoding="utf-8"), self.ctl("config", "show"))

    def test_an_edit_by_hand_is_kept(self):
        def replace():
            other = self.place / "other"
            other.write_bytes(self.config.read_bytes())
            other.rename(self.config)

        rows = [
            ("a comment", lambda: self.edit("{", "# by hand\n{")),
            ("of the same length", lambda: self.edit("10.0.1.7\"", "10.0.1.9\"")),
            ("an editor's new file", replace),
        ]
        for what, change in rows:
            with self.subTest(what):
                self.stop()
                self.write()
                self.start()
                change()
                self.check_refusal(self.CHANGED)
                self.check_refusal("shuntctl reload")
                # Who does not want it takes it away.
                self.config.unlink()
                self.ctl("config", "save")
                self.check_saved()

    def test_once_it_is_read_it_is_saved_again(self):
        self.edit("web-7\"", "web-777\"")
        self.check_refusal(self.CHANGED)
        self.ctl("reload")
        self.ctl("backend", "drain", "web/web-777", "--save")
        self.check_saved()
        self.assertEqual(self.state("web-777"), ["drain"])
        # Its own writing is no edit.
        self.ctl("backend", "up", "web/web-777", "--save")
        self.check_saved()

    def test_a_save_is_of_the_changes_before_it(self):
        """Also of those that are being built."""
        self.edit("web-7\"", "web-777\"")
        with self.connect() as client:
            self.ask(client, ("reload", {}),
                     ("backend.drain", {"service": "web", "name": "web-777"}),
                     ("config.save", {}))
            answers = client.makefile(encoding="utf-8")
            shown = [json.loads(answers.readline()) for _ in range(3)]
        self.assertEqual([one for one in shown if "result" not in one], [])
        self.assertEqual(shown[2]["result"]["generation"], 3)
        self.check_saved()
        self.assertIn("web-777", self.config.read_text(encoding="utf-8"))
        self.assertEqual(self.state("web-777"), ["drain"])

    def test_one_that_was_read_and_refused_is_kept(self):
        """What runs does not have what it says."""
        for what, old, new in (("wrong", "services", "service"),
                               ("not without a restart", "shunt.sock", "other.sock")):
            with self.subTest(what):
                self.stop()
                self.write()
                self.start()
                self.edit(old, new)
                self.assertNotEqual(self.run_ctl("reload").returncode, DONE)
                self.check_refusal(self.CHANGED)

    def test_another_file_that_is_read_says_nothing_of_it(self):
        other = self.folder / "other.yaml"
        other.write_bytes(self.config.read_bytes())
        self.ctl("reload", other)
        self.ctl("config", "save")
        self.check_saved()
        self.edit("services", "# by hand\nservices")
        self.ctl("reload", other)
        self.check_refusal(self.CHANGED)
        # By another name it is the same.
        link = self.folder / "link.yaml"
        link.symlink_to(self.config)
        self.ctl("reload", link)
        self.ctl("config", "save")
        self.check_saved()

    def test_a_mode_is_no_edit(self):
        self.config.chmod(0o640)
        self.ctl("config", "save")
        self.check_saved()


class Wholeness(SaveCase):
    def names(self):
        return sorted(one.name for one in self.place.iterdir())

    def test_what_was_left_by_one_that_was_killed(self):
        """Whatever has the name of the file beside: the next save replaces it, and writes to
        nothing that it points to."""
        self.write()
        self.start()
        beside = self.place / ".shunt.yaml.tmp"
        other = self.folder / "other"
        rows = [
            ("half a file", lambda: beside.write_text("services:", encoding="ascii")),
            ("a symbolic link", lambda: beside.symlink_to(other)),
            ("a hard link", lambda: beside.hardlink_to(other)),
        ]
        for what, put in rows:
            with self.subTest(what):
                other.write_text("another's", encoding="ascii")
                put()
                self.config.unlink()
                self.ctl("config", "save")
                self.assertEqual(self.names(), ["shunt.yaml"])
                self.assertEqual(self.config.read_text(encoding="utf-8"),
                                 self.ctl("config", "show"))
                self.assertEqual(other.read_text(encoding="ascii"), "another's")

    def test_the_file_is_whole_at_any_moment(self):
        """Read all the while, and after shuntd was killed at some moment of saving: the file
        is always one that a shuntd starts from, of the old state or of the new."""
        self.write()
        self.start()
        self.ctl("config", "save")
        other = self.ctl("config", "show")
        self.ctl("backend", "drain", "web/web-1", "--save")
        states = {other, self.ctl("config", "show")}
        self.assertEqual(len(states), 2)
        seen = set()
        is_over = threading.Event()

        def look():
            while not is_over.is_set():
                seen.add(self.config.read_text(encoding="utf-8"))

        reader = threading.Thread(target=look)
        reader.start()
        try:
            for k in range(N_KILLS):
                saver = threading.Thread(target=self.save_until_killed)
                saver.start()
                time.sleep(0.3 + 0.0017 * k)
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
                saver.join()
                self.assertIn(self.config.read_text(encoding="utf-8"), states)
                self.assertIn(self.names(), [["shunt.yaml"], [".shunt.yaml.tmp", "shunt.yaml"]])
                self.start()
        finally:
            is_over.set()
            reader.join()
        self.assertEqual(seen, states)
        self.ctl("config", "save")
        self.assertEqual(self.names(), ["shunt.yaml"])

    def save_until_killed(self):
        for state in ["up", "drain"] * 1000:
            if self.run_ctl("backend", state, "web/web-1", "--save").returncode != DONE:
                break


class Slowness(SaveCase):
    """A disk that takes as long as the test wants it to."""

    def mount_disk(self):
        for program in ("mkfs.ext4", "fsfreeze"):
            if shutil.which(program, path=PATH) is None:
                self.skipTest(f"there is no {program} command")
        disk = self.folder / "disk"
        with open(disk, "wb") as file:
            file.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", disk], check=True, env={"PATH": PATH})
        self.mount("-o", "loop", disk)
        self.addCleanup(subprocess.run, ["umount", self.place], check=True)
        self.addCleanup(self.stop)

    def freeze(self, how):
        subprocess.run(["fsfreeze", how, self.place], check=False, env={"PATH": PATH},
                       stderr=subprocess.DEVNULL)

    def test_who_does_not_save_does_not_wait(self):
        self.mount_disk()
        self.write()
        self.start()
        self.ctl("backend", "drain", "web/web-1")
        self.freeze("--freeze")
        self.addCleanup(self.freeze, "--unfreeze")
        with self.connect() as client:
            answers = client.makefile(encoding="utf-8")
            # What is asked for next is not in the first file, and waits for its turn.
            self.ask(client, ("config.save", {}),
                     ("backend.drain", {"service": "web", "name": "web-2"}), ("config.save", {}))
            for _ in range(3):
                self.ctl("--timeout", "5", "status")
                self.assertEqual(self.state("web-2"), ["up"])
            self.freeze("--unfreeze")
            shown = [json.loads(answers.readline()) for _ in range(3)]
            self.assertEqual([one["result"]["generation"] for one in shown], [2, 3, 3], shown)
            self.assertEqual(self.config.read_text(encoding="utf-8"),
                             self.ctl("config", "show"))
            self.assertEqual(self.state("web-2"), ["drain"])

            # One that is on its way when shuntd stops is done, and said to be.
            self.freeze("--freeze")
            self.ask(client, ("config.save", {}), ("status", {}))
            self.assertIn("result", json.loads(answers.readline()))
            self.process.terminate()
            with self.assertRaises(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.3)
            self.freeze("--unfreeze")
            self.assertEqual(json.loads(answers.readline())["result"]["path"], str(self.config))


def main():
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main()


if __name__ == "__main__":
    main()
