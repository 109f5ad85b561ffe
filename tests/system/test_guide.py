#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tools/guide/README.md has people type is typed here: the commands of a backend, in a
namespace that has nothing yet, and each of shuntctl's, at a shuntd that runs.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import re
import shlex
import shutil
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
import terminal  # noqa: E402 pylint: disable=wrong-import-position
from lab import (  # noqa: E402 pylint: disable=wrong-import-position
    FAMILIES, HOST, NETWORK, VIP, wait_until)

GUIDE = (pathlib.Path(__file__).resolve().parents[2] / "tools" / "guide" / "README.md").read_text(
    encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The backend of the guide is the lab's first one, by its addresses.
NAME = lab.BACKENDS[0]
VXLAN = "shunt0"
UPLOAD_BYTES = 300000
# Asks for IPv4 addresses by ARP, and says which of them were answered for. The last one is
# somebody's, and answers in order.
ASK = """
import socket, struct, sys
interface, own, *wanted = sys.argv[1:]
there = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
there.bind((interface, 0x0806))
there.settimeout(20)
mac = there.getsockname()[4]
for address in wanted:
    there.send(b"\\xff" * 6 + mac + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, 1) + mac
               + socket.inet_aton(own) + bytes(6) + socket.inet_aton(address))
said = ""
while said != wanted[-1]:
    frame = there.recv(2048)
    said = socket.inet_ntoa(frame[28:32])
    if frame[20:22] == b"\\0\\2" and said in wanted:
        print(said)
"""


def section(title):
    """The text below a heading that ends so."""
    found = re.search(rf"^## [^\n]*{title}\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    return found[1]


def blocks(text, kind="text"):
    return [block for word, block in BLOCK.findall(text) if word == kind]


def lines_of(text, kind="text"):
    """Of its blocks: lines without what is said behind them, those that go on put together."""
    return [line.partition("   ")[0].strip() for block in blocks(text, kind)
            for line in block.replace("\\\n", " ").splitlines() if line.strip()]


class Backend(lab.LabCase):
    """One on which nothing of Shunt is set."""

    @classmethod
    def setUpClass(cls):
        mine = [one for one in NETWORK.processes
                if lab.SHUNT_DECAP in one.args and NETWORK.netns(NAME) in one.args]
        for one in mine:
            lab.stop(one)
            NETWORK.processes.remove(one)
        NETWORK.batch(NAME, "link delete vxlan4",
                      *(f"address delete {VIP[family]}/{HOST[family]} dev lo"
                        for family in FAMILIES))
        # As Debian's kernel has it, and a careful administrator.
        NETWORK.run(NAME, "sh", "-c", "cd /proc/sys/net/ipv4/conf && for k in *; do "
                    "echo 0 >$k/arp_ignore && echo 1 >$k/rp_filter; done")

    def do_as_told(self):
        """Each line of section 3; programs that stay run beside."""
        for line in lines_of(section("Backends")):
            words = shlex.split(line)
            if words[0] == "shunt-decap":
                log = NETWORK.folder / NAME / "guide.log"
                decap = NETWORK.spawn(NAME, lab.SHUNT_DECAP, *words[1:], log=log)
                self.addCleanup(lab.stop, decap)
                wait_until(lambda: "attached" in log.read_text(encoding="utf-8"),
                           lambda: log.read_text(encoding="utf-8"))
            else:
                NETWORK.run(NAME, *words)

    def answered(self, *addresses):
        return NETWORK.run("router", "/usr/bin/python3", "-c", ASK, "farm", lab.FARM_ROUTER[4],
                           *addresses).split()

    def upload(self):
        """By a connection of the client's. Returns the most bytes of a segment."""
        found = []

        def send():
            NETWORK.enter("client")
            with socket.create_connection((VIP[4], lab.PORTS["ipip"]), timeout=20) as there:
                there.sendall(b"POST / HTTP/1.0\r\nContent-Length: "
                              + str(UPLOAD_BYTES).encode() + b"\r\n\r\n" + bytes(UPLOAD_BYTES))
                segment = there.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
                found.extend([segment, there.recv(1000)])

        thread = threading.Thread(target=send)
        thread.start()
        thread.join()
        self.assertEqual(len(found), 2)
        self.assertTrue(found[1].startswith(b"HTTP/1.1 "), found)
        return found[0]

    def test_it_serves_once_it_is_set_as_told(self):
        own = lab.farm_address(4, 1)
        NETWORK.ip(NAME, "address", "add", f"{VIP[4]}/32", "dev", "lo")
        self.assertEqual(self.answered(VIP[4], own), [VIP[4], own])
        NETWORK.ip(NAME, "address", "delete", f"{VIP[4]}/32", "dev", "lo")

        self.do_as_told()
        self.assertEqual(self.answered(VIP[4], own), [own])
        services = [lab.service(family, mode, backends=[lab.backend(family, mode, 1)])
                    for family, mode in ((4, "ipip"), (6, "ipip"), (4, "vxlan"))]
        daemon = self.start("net_af_packet", 1, *services)
        for family, mode in ((4, "ipip"), (6, "ipip"), (4, "vxlan")):
            with self.subTest(mode, family=family):
                self.assertEqual(self.fetch(family, lab.PORTS[mode], 3), [NAME] * 3)
        # What it is sent fits the way with the outer header on, by the route's advmss.
        self.assertLessEqual(self.upload(), 1440)
        packets = daemon.json("stats")["packets"]
        self.assertEqual((packets["dropped"], packets["replied"]), (0, 0))

    def test_systemd_takes_the_unit(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("there is no systemd-analyze here")
        text, = blocks(section("Backends"), "ini")
        self.assertIn("/usr/sbin/shunt-decap", text)
        unit = NETWORK.folder / "shunt-decap.service"
        unit.write_text(text.replace("/usr/sbin/shunt-decap", lab.SHUNT_DECAP),
                        encoding="utf-8")
        done = lab.subprocess.run([analyze, "verify", "--man=no", str(unit)], check=False,
                                  text=True, stdout=lab.subprocess.PIPE,
                                  stderr=lab.subprocess.STDOUT, timeout=lab.TIMEOUT_S)
        # It also speaks of other units of the machine; what it says of ours names ours.
        self.assertEqual([line for line in done.stdout.splitlines() if "shunt-decap" in line],
                         [])
        self.assertEqual(done.returncode, 0, done.stdout)


class Commands(lab.LabCase):
    def test_shuntctl_takes_each_command(self):
        """At a service web with the backends web-1 and web-2."""
        daemon = lab.Daemon("net_af_packet", 1)
        self.addCleanup(daemon.remove)
        backends = [{"name": f"web-{k}", "address": lab.farm_address(4, k)} for k in (1, 2)]
        daemon.write(lab.service(4, "ipip", name="web", backends=backends, port=443))
        daemon.start()
        commands = [shlex.split(line) for line in lines_of(GUIDE)
                    if line.startswith("shuntctl ")]
        commands += [shlex.split(words) for words in re.findall(r"`shuntctl ([^`]*)`", GUIDE)]
        self.assertGreater(len(commands), 12)
        for words in commands:
            words = [str(daemon.config) if word == "FILE" or word.endswith(".yaml") else word
                     for word in words if word != "shuntctl"]
            with self.subTest(" ".join(words)):
                # Without traffic a trace ends by time alone.
                if words[0] == "trace" and "--seconds" not in words:
                    words += ["--seconds", "1"]
                if words[0] == "top":
                    self.look_at_top(daemon)
                else:
                    daemon.ctl(*words)

    def look_at_top(self, daemon):
        top = terminal.Terminal(lab.SHUNTCTL, "--socket", daemon.socket, "top")
        self.addCleanup(top.close)
        top.until_text("web-1")
        top.type("q")
        self.assertEqual(top.wait(), 0)

    def test_an_explanation_tells_where_and_how(self):
        """What the guide says explain tells."""
        daemon = self.start("net_af_packet", 1, lab.service(4, "ipip", port=443))
        words = next(line for line in lines_of(GUIDE) if line.startswith("shuntctl explain"))
        found = json.loads(daemon.ctl("--json", *shlex.split(words)[1:]))
        self.assertEqual((found["service"], found["verdict"]), ("ipip-v4", "forward"))


if __name__ == "__main__":
    lab.main(("sysctl", "procps"))
