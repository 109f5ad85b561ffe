#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What workers say of their flows, under live traffic: explain and plan against what happens.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import json
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK  # noqa: E402 pylint: disable=wrong-import-position

N_FLOWS = 8


class Connections:
    """Connections of the client's that are open, each with the backend that answers it."""

    def __init__(self):
        self.sockets = []
        self.ends = []  # (client's address and port, backend)

    def open(self, port):
        """To be run by a thread of its own, which goes to where the client is."""
        NETWORK.enter("client")
        for _ in range(N_FLOWS):
            self.open_one(port)

    def open_one(self, port):
        """With an answer under way until it is closed."""
        made = socket.socket()
        self.sockets.append(made)
        made.settimeout(lab.TIMEOUT_S)
        made.connect((lab.VIP[4], port))
        made.sendall(b"GET /long HTTP/1.0\r\n\r\n")
        head = b""
        while len(head.partition(b"\r\n\r\n")[2]) < 2:
            head += made.recv(4096)
        address, client_port = made.getsockname()
        self.ends.append((f"{address}:{client_port}", head.partition(b"\r\n\r\n")[2][:2].decode()))

    def close(self):
        for made in self.sockets:
            made.close()


class Asking(lab.LabCase):
    """Each test has a mode, and so a port, of its own: the ends of a test's connections, which
    the client repeats for a while, are no flows of the next one's.
    """

    mode = "ipip"

    def setUp(self):
        self.connections = Connections()
        self.addCleanup(self.connections.close)

    def begin(self):
        daemon = self.start("net_af_packet", 2, lab.service(4, self.mode))
        opening = threading.Thread(target=self.connections.open,
                                   args=(lab.PORTS[self.mode],))
        opening.start()
        opening.join()
        self.assertEqual(len(self.connections.ends), N_FLOWS)
        return daemon

    def explain(self, daemon, client):
        return daemon.json("explain", "tcp", client, self.destination())

    def destination(self):
        return f"{lab.VIP[4]}:{lab.PORTS[self.mode]}"

    def write(self, daemon, *backends):
        """A file with these backends, which is not the daemon's own."""
        own, daemon.config = daemon.config, daemon.folder / "next.yaml"
        daemon.write(lab.service(4, self.mode, backends=list(backends)))
        path, daemon.config = daemon.config, own
        return path

    def plan(self, daemon, *backends):
        plan = daemon.json("plan", self.write(daemon, *backends))
        for service in plan["services"]:
            self.assertEqual(service["flows"], plan["flows"])
        return plan["flows"]

    def test_explain_says_where_a_flow_is(self):
        daemon = self.begin()
        workers = set()
        for client, backend in self.connections.ends:
            told = self.explain(daemon, client)
            entry = told["entry"]
            workers.add(entry["worker"])
            self.assertEqual((told["verdict"], told["flow"], told["backend"]),
                             ("forward", "hit", backend))
            self.assertEqual((entry["service"], entry["backend"], entry["confirmed"]),
                             (told["service"], backend, True))
            self.assertLess(entry["idle_seconds"], lab.TIMEOUT_S)
        self.assertLessEqual(workers, {0, 1})
        self.assertEqual(self.explain(daemon, "203.0.113.250:1")["flow"], "miss")
        text = daemon.ctl("explain", "tcp", client, self.destination())
        self.assertIn(f"flow      hit, worker {entry['worker']} has "
                      f"{entry['service']}/{backend}, idle for", text)

    def test_another_seed_moves_no_flow(self):
        self.mode = "vxlan"
        daemon = self.begin()
        config = json.loads(daemon.config.read_text(encoding="utf-8"))
        daemon.config.write_text(json.dumps({**config, "hash_seed": 7}), encoding="utf-8")
        plan = daemon.json("plan", daemon.config)
        self.assertEqual((plan["services"][0]["slots_moved"], plan["flows"]), (None, 0))
        daemon.ctl("reload")
        for client, backend in self.connections.ends:
            told = self.explain(daemon, client)
            self.assertEqual((told["flow"], told["backend"]), ("hit", backend))

    def test_a_flow_stays_where_its_slot_no_longer_is(self):
        self.mode = "gre"
        daemon = self.begin()
        client, backend = self.connections.ends[0]
        slot = self.explain(daemon, client)["slot"]
        daemon.ctl("backend", "drain", f"{self.mode}-v4/{backend}")
        told = self.explain(daemon, client)
        self.assertEqual((told["flow"], told["backend"], told["slot"]), ("hit", backend, slot))
        # Its packets pick another, or will.
        daemon.ctl("backend", "down", f"{self.mode}-v4/{backend}")
        told = self.explain(daemon, client)
        self.assertEqual(told["slot"], slot)
        self.assertNotEqual(told["backend"], backend)
        entry = told["entry"]["backend"]
        self.assertEqual(entry, told["backend"] if told["flow"] == "hit" else backend)

    def test_plan_counts_the_flows_that_would_move(self):
        self.mode = "gue"
        daemon = self.begin()
        busy = self.connections.ends[0][1]
        on_busy = sum(backend == busy for _, backend in self.connections.ends)

        def backends(**keys):
            return [lab.backend(4, self.mode, k, **keys) for k in range(1, lab.N_BACKENDS + 1)]

        others = [one for one in backends() if one["name"] != busy]
        more = {"name": "more", "address": lab.farm_address(4, 77)}
        rows = [
            ("one is gone", others, on_busy),
            ("all are gone", [], N_FLOWS),
            ("all are down", backends(state="down"), N_FLOWS),
            ("all as they are", backends(), 0),
            ("all drain", backends(state="drain"), 0),
            ("all weigh less", backends(weight=7), 0),
            ("one more", [*backends(), more], 0),
            ("one more for one that is gone", [*others, more], on_busy),
        ]
        for what, next_backends, n_flows in rows:
            with self.subTest(what):
                self.assertEqual(self.plan(daemon, *next_backends), n_flows)
        text = daemon.ctl("plan", self.write(daemon, *others))
        self.assertRegex(text, rf"in all: [1-9]\d* slots move, {on_busy} live flows")
        # Elsewhere: what comes of its flows is not said.
        elsewhere = self.write(daemon, *backends())
        config = json.loads(elsewhere.read_text(encoding="utf-8"))
        config["services"][0]["port"] += 100
        elsewhere.write_text(json.dumps(config), encoding="utf-8")
        plan = daemon.json("plan", elsewhere)
        self.assertEqual((plan["services"][0]["flows"], plan["flows"]), (None, None))
        # Who is down already keeps no flow.
        daemon.ctl("backend", "down", f"{self.mode}-v4/{busy}")
        self.assertEqual(self.plan(daemon, *others), 0)


if __name__ == "__main__":
    lab.main()
