#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens to flows while backends come and go, to the packet."""

import captures
import lib
import wire
from lib import CLIENT, VIP, at, config, items, service

N = 60


def udp(sport):
    return wire.udp(CLIENT, VIP, sport, 80, b"data")


def rounds(n, first=1000, n_flows=N):
    """Flow by flow a packet each second: round r holds packets N r + 1 to N (r + 1)."""
    return [at(r + i / 1000, udp(first + i)) for r in range(n) for i in range(n_flows)]


SETTINGS = config(service(protocol="udp", n=4))


class Changes(lib.ReplayCase):
    def run_rounds(self, n, events, packets=None, settings=SETTINGS):
        """The backends by round and flow, and the flow words."""
        result = self.replay(packets or rounds(n), settings, events=events)
        self.backends = split(result.column("backend"))
        self.words = split(result.column("flow"))
        self.flows = result.report["flows"]
        self.rows = {b["name"]: b for b in result.report["services"][0]["backends"]}
        return result

    def movers(self, before=0, after=1):
        """Flows that are on another backend in a later round."""
        pairs = zip(self.backends[before], self.backends[after])
        return [i for i, (one, other) in enumerate(pairs) if one != other]

    def on(self, backend, number=0):
        return [i for i, name in enumerate(self.backends[number]) if name == backend]

    def test_nothing_happens(self):
        self.run_rounds(2, items())
        self.assertEqual(self.movers(), [])
        self.assertEqual(self.words, [["miss"] * N, ["hit"] * N])
        self.assertEqual(self.flows, {"total": N, "moved": 0, "broken": 0})
        self.assertEqual(set(self.backends[0]), {"web-1", "web-2", "web-3", "web-4"})

    def test_remove_moves_its_own_and_no_other(self):
        result = self.run_rounds(3, items({"at": "0.9s", "remove": "web/web-2"}))
        own = self.on("web-2")
        self.assertGreater(len(own), 5)
        self.assertEqual(self.movers(), own)
        self.assertEqual(self.movers(1, 2), [])
        self.assertEqual(self.on("web-2", 1), [])
        self.assertEqual([i for i in range(N) if self.words[1][i] == "miss"], own)
        self.assertEqual(self.words[2], ["hit"] * N)
        self.assertEqual(self.flows, {"total": N, "moved": len(own), "broken": 0})
        self.assertEqual(self.rows["web-2"]["packets"], len(own))
        addresses = {name: f"10.0.0.{10 + i}" for i, name in enumerate(
            ("web-1", "web-2", "web-3", "web-4"), 1)}
        for decision, packet in zip(result.decisions, result.output.packets):
            self.assertEqual(wire.parse_tunnel(packet.data, "ipip").outer.dst,
                             addresses[decision["backend"]])

    def test_down_moves_its_own_and_up_brings_none_back(self):
        packets = rounds(3) + [at(3 + i / 1000, udp(2000 + i)) for i in range(N)]
        self.run_rounds(3, items({"at": "0.9s", "down": "web/web-2"},
                                 {"at": "1.9s", "up": "web/web-2"}), packets)
        own = self.on("web-2")
        self.assertEqual(self.movers(), own)
        self.assertEqual(self.movers(1, 2), [])
        self.assertEqual(self.flows, {"total": 2 * N, "moved": len(own), "broken": 0})
        self.assertEqual(self.rows["web-2"]["state"], "up")
        # New flows find it, where they would have without it ever having been down.
        undisturbed = self.replay([at(i / 1000, udp(2000 + i)) for i in range(N)], SETTINGS)
        self.assertEqual(self.backends[3], undisturbed.column("backend"))

    def test_drain_keeps_its_flows_and_gets_no_new_ones(self):
        packets = rounds(2) + [at(2 + i / 1000, udp(2000 + i)) for i in range(N)]
        self.run_rounds(2, items({"at": "0.9s", "drain": "web/web-2"}), packets)
        self.assertEqual(self.movers(), [])
        self.assertNotEqual(self.on("web-2", 1), [])
        self.assertEqual(self.on("web-2", 2), [])
        self.assertEqual(self.flows, {"total": 2 * N, "moved": 0, "broken": 0})
        self.assertEqual(self.rows["web-2"]["state"], "drain")

    def test_drain_and_up_move_none(self):
        """Not what was there, nor what begins meanwhile, and what begins later is as ever."""
        packets = rounds(3) + [at(3 + i / 1000, udp(1000 + i)) for i in range(N)]
        packets += [at(1.5 + i / 1000, udp(2000 + i)) for i in range(N)]
        packets += [at(3.5 + i / 1000, udp(2000 + i)) for i in range(N)]
        packets += [at(4 + i / 1000, udp(3000 + i)) for i in range(N)]
        packets.sort(key=lambda packet: packet.time_ns)
        # So small a table shows what moves needlessly.
        settings = config(service(protocol="udp", n=4, table={"size": 101}))
        self.run_rounds(3, items({"at": "0.9s", "drain": "web/web-2"},
                                 {"at": "2.9s", "up": "web/web-2"}), packets, settings)
        self.assertEqual(self.movers(0, 4), [])
        self.assertEqual(self.movers(2, 5), [])
        self.assertEqual(self.on("web-2", 2), [])
        self.assertEqual(self.flows, {"total": 3 * N, "moved": 0, "broken": 0})
        undisturbed = self.replay([at(i / 1000, udp(3000 + i)) for i in range(N)], settings)
        self.assertEqual(self.backends[6], undisturbed.column("backend"))
        # Who began elsewhere meanwhile would have gone to a backend that was up all the time.
        undisturbed = self.replay([at(i / 1000, udp(2000 + i)) for i in range(N)], settings)
        moved = [was for was, now in zip(undisturbed.column("backend"), self.backends[2])
                 if was != now]
        self.assertEqual(set(moved), {"web-2"})

    def test_add_moves_none_and_gets_new_flows(self):
        packets = rounds(2) + [at(2 + i / 1000, udp(2000 + i)) for i in range(N)]
        new = {"service": "web", "name": "web-9", "address": "10.0.0.19", "weight": 100}
        result = self.run_rounds(2, items({"at": "0.9s", "add": new}), packets)
        self.assertEqual(self.movers(), [])
        self.assertNotEqual(self.on("web-9", 2), [])
        self.assertEqual(self.flows, {"total": 2 * N, "moved": 0, "broken": 0})
        place = 2 * N + self.on("web-9", 2)[0]
        tunnel = wire.parse_tunnel(result.output.packets[place].data, "ipip")
        self.assertEqual(tunnel.outer.dst, "10.0.0.19")

    def test_weight_moves_none_and_turns_new_flows(self):
        packets = rounds(2) + [at(2 + i / 1000, udp(2000 + i)) for i in range(N)]
        for weight, check in ((0, lambda n: n == 0), (10000, lambda n: n > N / 2)):
            events = items({"at": "0.9s", "weight": {"backend": "web/web-2", "to": weight}})
            self.run_rounds(2, events, packets)
            self.assertEqual(self.movers(), [])
            self.assertTrue(check(len(self.on("web-2", 2))), weight)
            self.assertEqual(self.flows, {"total": 2 * N, "moved": 0, "broken": 0})

    def test_reload_is_relative_to_the_events_file(self):
        one = service(protocol="udp", n=4)
        del one["backends"][1]
        other = service("other", protocol="udp", port=81, n=1)
        self.put("deep/other.yaml", config(one, other))
        events = self.put("deep/events.yaml", items({"at": "0.9s", "reload": "other.yaml"}))
        packets = rounds(2) + [at(3, wire.udp(CLIENT, VIP, 1, 81))]
        result = self.replay(packets, SETTINGS, args=["--events", events])
        self.backends = split(result.column("backend"))
        self.assertEqual(self.movers(), self.on("web-2"))
        self.assertEqual(result.report["flows"],
                         {"total": N + 1, "moved": len(self.on("web-2")), "broken": 0})
        self.assertEqual(result.decisions[-1]["service"], "other")

    def test_reload_may_take_a_service_away_and_bring_it_back(self):
        self.put("none.yaml", config())
        self.put("again.yaml", SETTINGS)
        result = self.replay(rounds(3), SETTINGS, events=items(
            {"after": N, "reload": "none.yaml"}, {"after": 2 * N, "reload": "again.yaml"}))
        self.assertEqual(result.column("verdict"), ["forward"] * N + ["kernel"] * N +
                         ["forward"] * N)
        self.assertEqual(result.report["services"][0]["packets"], 2 * N)

    def test_another_seed_moves_no_flow(self):
        self.put("seed.yaml", config(service(protocol="udp", n=4), hash_seed=5))
        result = self.run_rounds(3, items({"at": "0.9s", "reload": "seed.yaml"}))
        self.assertEqual(self.movers(), [])
        self.assertEqual(self.words[1], ["hit"] * N)
        self.assertEqual(result.report["flows"], {"total": N, "moved": 0, "broken": 0})

    def test_a_backend_that_comes_back_is_the_same(self):
        back = {"service": "web", "name": "web-2", "address": "10.0.0.99"}
        result = self.run_rounds(3, items({"at": "0.9s", "remove": "web/web-2"},
                                          {"at": "0.95s", "add": back}))
        self.assertEqual(self.movers(), [])
        self.assertEqual(self.words[1], ["hit"] * N)
        tunnel = wire.parse_tunnel(result.output.packets[N + self.on("web-2")[0]].data, "ipip")
        self.assertEqual(tunnel.outer.dst, "10.0.0.99")

    def test_all_leave(self):
        events = items(*[{"at": "0.9s", "remove": f"web/web-{i}"} for i in (1, 2, 3, 4)])
        result = self.run_rounds(2, events)
        self.assertEqual(result.column("reason"), [None] * N + ["no_backend"] * N)
        self.assertEqual(self.flows, {"total": N, "moved": 0, "broken": 0})


# Of algorithms whose tables are built differently; all keep a table through states alike.
TABLES = [{"algorithm": name, "size": 251} for name in ("maglev", "ring", "rendezvous", "stable")]


class States(lib.ReplayCase):
    """What is asked of the table while backends are not up: new flows, one of each slot."""

    def owners(self, *events, table, states=()):
        """Whose each slot is after the events, by slot; and the backends' rows at the end."""
        one = service(protocol="udp", n=4, table=table)
        for backend, state in zip(one["backends"], states):
            backend["state"] = state
        packets = [at(i, udp(7)) for i in range(len(events) + 1)]
        packets += [at(100 + i / 10000, udp(1000 + i)) for i in range(3000)]
        result = self.replay(packets, config(one), write=False, events=items(
            *({"at": f"{i + 0.5}s", **event} for i, event in enumerate(events))))
        found = {}
        for decision in result.decisions[len(events) + 1:]:
            found.setdefault(decision["slot"], set()).add(decision["backend"])
        self.assertEqual(len(found), 251)
        self.assertTrue(all(len(names) == 1 for names in found.values()))
        return ({slot: names.pop() for slot, names in found.items()},
                {b["name"]: b for b in result.report["services"][0]["backends"]})

    def test_no_slot_moves_needlessly(self):
        for table in TABLES:
            up, _ = self.owners(table=table)
            for event in ("down", "drain"):
                with self.subTest(event, **table):
                    less, rows = self.owners({event: "web/web-2"}, table=table)
                    own = {slot for slot in up if up[slot] == "web-2"}
                    self.assertEqual({slot for slot in up if up[slot] != less[slot]}, own)
                    self.assertGreater(len(own), 30)
                    self.assertEqual({less[slot] for slot in own}, {"web-1", "web-3", "web-4"})
                    for name, row in rows.items():
                        n = sum(owner == name for owner in less.values())
                        self.assertEqual(row["slots"], n, name)

    def test_up_again_is_the_very_table(self):
        for table in TABLES:
            with self.subTest(**table):
                up, rows = self.owners(table=table)
                again = self.owners({"drain": "web/web-2"}, {"down": "web/web-3"},
                                    {"up": "web/web-2"}, {"up": "web/web-3"}, table=table)
                self.assertEqual(again[0], up)
                self.assertEqual({name: row["slots"] for name, row in again[1].items()},
                                 {name: row["slots"] for name, row in rows.items()})

    def test_balancers_with_other_histories_agree(self):
        for table in TABLES:
            with self.subTest(**table):
                one, _ = self.owners({"drain": "web/web-4"}, {"down": "web/web-2"},
                                     {"down": "web/web-1"}, {"up": "web/web-4"},
                                     {"up": "web/web-1"}, {"drain": "web/web-3"}, table=table)
                other, _ = self.owners(table=table, states=("up", "drain", "down"))
                self.assertEqual(one, other)
                self.assertEqual(set(one.values()), {"web-1", "web-4"})


def split(column):
    return [column[i:i + N] for i in range(0, len(column), N)]


class Moments(lib.ReplayCase):
    """When an event applies. The packets: one a second, each of a flow of its own."""

    def gone_from(self, events, n=5, expected_warning=""):
        """The number of the first packet that a lone backend's service drops."""
        packets = [at(i, udp(1000 + i)) for i in range(n)]
        result = self.replay(packets, config(service(protocol="udp", n=1)), events=events)
        self.assertIn(expected_warning, result.stderr)
        self.assertEqual("warning" in result.stderr, expected_warning != "")
        reasons = result.column("reason")
        return reasons.index("no_backend") + 1 if "no_backend" in reasons else None

    def test_at_and_after(self):
        rows = [
            ({"at": "0s"}, 1),
            ({"at": "1ns"}, 2),
            ({"at": "1s"}, 2),
            ({"at": "1.000000001s"}, 3),
            ({"at": "2500ms"}, 4),
            ({"at": "4s"}, 5),
            ({"after": 0}, 1),
            ({"after": 1}, 2),
            ({"after": 4}, 5),
        ]
        for when, number in rows:
            with self.subTest(when):
                self.assertEqual(self.gone_from(items({**when, "remove": "web/web-1"})), number)

    def test_never_due_is_a_warning(self):
        for when in ({"at": "4.000001s"}, {"at": "1h"}, {"after": 5}, {"after": 10**9}):
            events = items({"at": "0s", "up": "web/web-1"}, {**when, "down": "web/web-1"})
            warning = f"{self.folder / 'events.yaml'}:2:"
            self.assertIsNone(self.gone_from(events, expected_warning=warning))

    def test_by_time_whatever_the_order_in_the_file(self):
        add = {"service": "web", "name": "web-1", "address": "10.0.0.99"}
        events = items({"at": "3s", "add": add}, {"at": "1s", "remove": "web/web-1"})
        packets = [at(i, udp(1000 + i)) for i in range(5)]
        result = self.replay(packets, config(service(protocol="udp", n=1)), events=events)
        self.assertEqual(result.column("verdict"),
                         ["forward", "drop", "drop", "forward", "forward"])

    def test_ties_in_file_order(self):
        add = {"service": "web", "name": "web-1", "address": "10.0.0.99"}
        settings = config(service(protocol="udp", n=1))
        packets = [at(i, udp(1000 + i)) for i in range(3)]
        for when in ({"at": "1s"}, {"after": 1}):
            remove_first = items({**when, "remove": "web/web-1"}, {**when, "add": add})
            result = self.replay(packets, settings, events=remove_first)
            self.assertEqual(result.column("verdict"), ["forward"] * 3)
            outer = [wire.parse_tunnel(p.data, "ipip").outer.dst for p in result.output.packets]
            self.assertEqual(outer, ["10.0.0.11", "10.0.0.99", "10.0.0.99"])
            events = self.put("events.yaml",
                              items({**when, "add": add}, {**when, "remove": "web/web-1"}))
            self.refuse("-c", self.put("c.yaml", settings), "-e", events,
                        self.put("in.pcap", captures.pcap(packets)), status=2,
                        says=[f"{events}:1:", "web-1"])

    def test_several_at_once(self):
        settings = config(service(protocol="udp", n=4))
        events = items({"at": "1s", "drain": "web/web-1"}, {"at": "1s", "down": "web/web-2"},
                       {"at": "0.5s", "weight": {"backend": "web/web-3", "to": 0}})
        packets = [at(0, udp(1))] + [at(1 + i / 1000, udp(1000 + i)) for i in range(40)]
        result = self.replay(packets, settings, events=events)
        self.assertEqual(set(result.column("backend")[1:]), {"web-4"})


class Mistakes(lib.ReplayCase):
    def test_they_are_told_before_anything_is_written(self):
        add = {"service": "web", "name": "web-9", "address": "10.0.0.19"}
        at1 = {"at": "1s"}
        rows = [
            ("an unknown backend", {**at1, "remove": "web/web-7"}, "web-7"),
            ("an unknown service", {**at1, "drain": "wbe/web-1"}, "wbe"),
            ("a backend that will be gone", [{**at1, "remove": "web/web-1"},
                                             {"at": "2s", "up": "web/web-1"}], "web-1"),
            ("an add of a name that is there", {**at1, "add": {**add, "name": "web-1"}},
             "web-1"),
            ("an add to an unknown service", {**at1, "add": {**add, "service": "wbe"}}, "wbe"),
            ("an add without an address",
             {**at1, "add": {"service": "web", "name": "web-9"}}, "address"),
            ("an add with a bad address", {**at1, "add": {**add, "address": "10.0.0"}},
             "10.0.0"),
            ("an add of a multicast address", {**at1, "add": {**add, "address": "224.0.0.1"}},
             "224.0.0.1"),
            ("a weight that is too much",
             {**at1, "weight": {"backend": "web/web-1", "to": 65536}}, "65536"),
            ("a weight of nobody", {**at1, "weight": {"to": 1}}, "backend"),
            ("no time", {"remove": "web/web-1"}, "at"),
            ("two times", {**at1, "after": 1, "remove": "web/web-1"}, "after"),
            ("a time without its unit", {"at": 1, "remove": "web/web-1"}, "1s"),
            ("a time before the first packet", {"at": "-1s", "remove": "web/web-1"}, "-1s"),
            ("no number of packets", {"after": "many", "remove": "web/web-1"}, "many"),
            ("nothing happens", dict(at1), "remove"),
            ("two things happen", {**at1, "up": "web/web-1", "down": "web/web-2"}, "down"),
            ("an unknown key", {**at1, "remvoe": "web/web-1"}, "remove"),
            ("no service", {**at1, "up": "web-1"}, "web-1"),
            ("a reload of nothing", {**at1, "reload": "missing.yaml"}, "missing.yaml"),
            ("a reload of a bad file", {**at1, "reload": "bad.yaml"}, "bad.yaml"),
            ("no mapping", "remove", "remove"),
        ]
        self.put("bad.yaml", "services: 7\n")
        for words, events, says in rows:
            with self.subTest(words):
                listed = events if isinstance(events, list) else [events]
                self.refuse_events(items(*listed), [f":{len(listed)}:", says])

    def refuse_events(self, text, says):
        events = self.put("events.yaml", text)
        kept = self.put("kept.pcap", b"an older result")
        new = self.folder / "new.jsonl"
        result = self.refuse("-c", self.put("c.yaml", config(service())), "-e", events,
                             "-w", kept, "-d", new, "-j",
                             self.put("in.pcap", captures.pcap([at(0, udp(1))])), status=2,
                             says=[str(events), *says])
        self.assertEqual(result.stdout, b"")
        self.assertEqual(kept.read_bytes(), b"an older result")
        self.assertFalse(new.exists())

    def test_a_file_that_is_no_list(self):
        self.refuse_events("remove: web/web-1\n", ["list"])
        self.refuse_events("- {at: 1s\n", [])
        self.refuse_events("- {at: 1s, up: web/web-1}\n---\n- {at: 1s, up: web/web-1}\n", [])

    def test_a_file_that_is_not_there(self):
        capture = self.put("in.pcap", captures.pcap([at(0, udp(1))]))
        settings = self.put("c.yaml", config(service()))
        for path in (self.folder / "missing.yaml", self.folder):
            self.refuse("-c", settings, "-e", path, capture, status=2, says=[str(path)])

    def test_every_mistake_of_a_file_in_one_run(self):
        text = items({"at": "1s", "up": "web/web-7"}, {"at": "1s", "up": "web/web-1"},
                     {"at": "1s", "up": "web/web-8"})
        self.refuse_events(text, [":1:", ":3:"])

    def test_an_empty_list_is_no_mistake(self):
        result = self.replay([at(0, wire.tcp(CLIENT, VIP, 1, 80))], events="[]\n")
        self.assertEqual(result.report["packets"]["forwarded"], 1)


if __name__ == "__main__":
    lib.main()
