#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The live demo: three web servers, a balancer and a client, and what changes do to requests.

usage: live.py BUILD-FOLDER

Exit status: 0 no request failed, and each went where it should; 1 otherwise.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from client import CHANGING, Client  # noqa: E402
from network import SERVERS, SERVICE, PORT, Network, remove_leftovers  # noqa: E402
from screen import Screen  # noqa: E402

SHARED, DRAINED, LEAVING, KILLED, ADDED = PHASES = [
    "three share", "web-2 drained", "web-3 drained", "web-3 killed", "web-4 added"]
# Phase, server, and whether it gets requests then.
EXPECTED = [
    (SHARED, "web-1", True), (SHARED, "web-2", True), (SHARED, "web-3", True),
    (DRAINED, "web-1", True), (DRAINED, "web-2", False), (DRAINED, "web-3", True),
    (LEAVING, "web-1", True), (LEAVING, "web-2", True), (LEAVING, "web-3", False),
    (KILLED, "web-1", True), (KILLED, "web-2", True), (KILLED, "web-3", False),
    (ADDED, "web-1", True), (ADDED, "web-2", True), (ADDED, "web-3", False),
    (ADDED, "web-4", True),
]
# How long there is something to see; and how long a server's downloads may take to end.
SHORT_S, USUAL_S, LIMIT_S = 6, 8, 40


class Show:
    def __init__(self, net):
        self.network = net
        self.client = Client(net)
        self.screen = Screen(self.client, SERVERS)
        self.wrong = []

    def shuntctl(self, *words):
        """Run it as the person who watches would."""
        self.client.set_phase(CHANGING)
        self.screen.command(f"shuntctl {' '.join(words)}")
        self.network.shuntctl(*words)

    def watch(self, seconds):
        self.screen.watch(lambda passed: passed >= seconds)

    def watch_until_left(self, server):
        """Until the last request that runs there is over."""
        since = time.monotonic()
        self.screen.watch(lambda passed: passed >= LIMIT_S
                          or (passed >= SHORT_S and self.client.is_left_alone(server, since)))
        if not self.client.is_left_alone(server, since):
            self.wrong.append(f"{server} still had requests {LIMIT_S} s after its drain")

    def introduce(self):
        screen = self.screen
        screen.title("What there is")
        print(f"""
    client   balancer   web-1   web-2   web-3   web-4     each a network namespace
       |         |        |       |       |       |       of this machine
    ===+=========+========+=======+=======+=======+===
""")
        screen.say(f"""
        The client knows one address, {SERVICE}:{PORT}. It asks there all the time: short
        requests, about 200 a second, and ten downloads at a time, of 12 seconds each. The
        balancer, shuntd, sends each packet on to one of the servers, web-1 to web-3 for now.
        They are nginx. Answers go straight from server to client.""")
        screen.say()
        screen.say("To look closer, in another terminal:")
        print(f"  {self.network.tools}/shuntctl --socket {self.network.socket} top", flush=True)

    def share(self):
        self.screen.title("1. Three servers share the work")
        self.screen.say("""
        Which server a connection goes to follows from a hash of its addresses and ports: about
        a third to each.""")
        screen_is = ("every 'o' is a download that runs." if self.screen.is_terminal else
                     "each line tells of each server its new requests a second + its "
                     "downloads that run.")
        self.screen.say(f"Below, {screen_is}")
        print(flush=True)
        for name in ("web-1", "web-2", "web-3"):
            self.screen.states[name] = "up"
        self.client.start()
        self.client.set_phase(SHARED)
        self.watch(USUAL_S + 2)

    def drain(self):
        self.screen.title("2. web-2 is drained: its machine needs an update")
        self.screen.say("""
        It gets no new connections from now on, but keeps those it has: its downloads go on
        there to their last byte. Watch them become fewer. Then one may work on it.""")
        self.shuntctl("backend", "drain", "web/web-2")
        self.screen.states["web-2"] = "drain"
        self.client.set_phase(DRAINED)
        self.watch_until_left("web-2")

    def replace(self):
        self.screen.title("3. web-2 is back, and web-3 has to go for good")
        self.screen.say("""
        web-2 gets its old share of the table again. web-3 is drained, as web-2 was: what ends
        with a server is only what runs on it, so we let that end first.""")
        self.shuntctl("backend", "up", "web/web-2")
        self.screen.states["web-2"] = "up"
        self.shuntctl("backend", "drain", "web/web-3")
        self.screen.states["web-3"] = "drain"
        self.client.set_phase(LEAVING)
        self.watch_until_left("web-3")

    def kill(self):
        self.screen.title("4. web-3 is killed")
        self.screen.say("""
        First it is set down by hand, as this version of Shunt does not check its backends'
        health itself: it would go on sending to a dead server. Then its nginx is killed, and
        nobody notices.""")
        self.shuntctl("backend", "down", "web/web-3")
        pid = self.network.processes["nginx of web-3"].pid
        self.screen.command(f"kill -9 {pid}    # nginx of web-3")
        self.network.kill_nginx("web-3")
        self.screen.states["web-3"] = "dead"
        self.client.set_phase(KILLED)
        self.watch(SHORT_S + 1)

    def add(self):
        self.screen.title("5. web-4 is added")
        self.screen.say("""
        It takes its share of new connections at once. No connection that runs moves to it: the
        flow table remembers where each one is. A balancer that only hashed would break some of
        the downloads here.""")
        self.shuntctl("backend", "add", "web/web-4", SERVERS["web-4"])
        self.screen.states["web-4"] = "up"
        self.client.set_phase(ADDED)
        self.watch(USUAL_S)

    def finish(self):
        self.screen.title("6. The client stops; the downloads that still run may end")
        print(flush=True)
        self.client.set_phase(CHANGING)
        self.client.stop()
        self.screen.watch(lambda passed: passed >= LIMIT_S or self.client.is_done())
        if not self.client.is_done():
            self.wrong.append(f"requests still ran {LIMIT_S} s after the end")

    def judge(self):
        by_phase, failures = self.client.by_phase, self.client.failures
        if failures:
            self.wrong.append(f"{len(failures)} requests failed")
        for phase, server, is_some in EXPECTED:
            n = by_phase[phase][server]
            if (n > 0) != is_some:
                self.wrong.append(f"{server} got {n} requests in phase '{phase}', expected "
                                  f"{'some' if is_some else 'none'}")
        n_answers = sum(self.client.answers().values())
        if self.client.n_begun != n_answers + len(failures) and not failures:
            self.wrong.append(f"of {self.client.n_begun} requests, {n_answers} were answered")

    def summarize(self):
        client, answers = self.client, self.client.answers()
        self.judge()
        self.screen.title("Where the requests went, by what was the case when they began")
        print(f"\n  {'':<16}{''.join(f'{name:>9}' for name in SERVERS)}")
        for phase in [*PHASES, CHANGING]:
            print(f"  {phase:<16}"
                  + "".join(f"{client.by_phase[phase][name]:>9}" for name in SERVERS))
        print(f"  {'in all':<16}{''.join(f'{answers[name]:>9}' for name in SERVERS)}\n")
        print(self.screen.strong(f"  requests {client.n_begun}, {client.n_downloads} of them "
                                 f"downloads; failed {len(client.failures)}"))
        for words in client.failures[:10]:
            print(f"    failed: {words}")
        print(flush=True)
        if self.wrong:
            for words in self.wrong:
                print(f"NOT AS EXPECTED: {words}", flush=True)
            return 1
        self.screen.say("""
        As expected: web-2 got nothing new while it was drained, web-3 nothing from its drain
        on, web-4 its share once it was added; and each download ended whole, on the server
        where it began.""")
        return 0

    def run(self):
        self.introduce()
        for act in (self.share, self.drain, self.replace, self.kill, self.add, self.finish):
            act()
        return self.summarize()


def build_network(net):
    try:
        remove_leftovers()
        net.make()
    except OSError as error:
        sys.exit("tools/demo: this machine does not let us make network namespaces, as it is "
                 f"with\ncontainers: {error}\nWithout them there is: tools/demo replay")
    net.start_servers()
    net.start_balancer()


def end(number, _frame):
    sys.exit(128 + number)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: live.py BUILD-FOLDER")
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in ends:
        signal.signal(number, end)
    net = Network(sys.argv[1])
    try:
        build_network(net)
        status = Show(net).run()
    except BrokenPipeError:
        # Nobody reads what we show; nor would they read Python's last words of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    except OSError as error:
        print(f"tools/demo: {error}", file=sys.stderr)
        status = 1
    finally:
        # A second Ctrl-C is no reason to leave things behind.
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        net.remove()
    sys.exit(status)


if __name__ == "__main__":
    main()
