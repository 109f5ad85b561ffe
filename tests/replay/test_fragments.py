#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fragments: where the first goes the others go, whatever the order and the workers."""

import dataclasses
import json
import random
import struct

import captures
import lib
import wire
from lib import FIRST_NS, VIP, VIP6, at, config, items, service

ESP = 50
MS = 0.001
ADDRESSES = {
    4: {"vip": VIP, "any": "198.51.100.20", "empty": "198.51.100.30", "none": "198.51.100.99"},
    6: {"vip": VIP6, "any": "2001:db8:51::20", "empty": "2001:db8:51::30",
        "none": "2001:db8:51::99"},
}


def services(n=5):
    found = []
    for family, end in ((4, ""), (6, "6")):
        addresses = ADDRESSES[family]
        found += [
            service("web" + end, n, address=addresses["vip"], protocol="any"),
            service("any" + end, n, address=addresses["any"], protocol="any", port="any"),
            service("empty" + end, 0, address=addresses["empty"], protocol="any"),
        ]
    return found


# Nothing is cut once more.
SETTINGS = config(*services(), port={"mtu": 9000})


@dataclasses.dataclass
class Row:
    """
    Packets (seconds, packet), and what becomes of each: "to" and maybe a word, one backend for
    all of a word; or "kernel"; or why it is dropped. They leave as they came, except those that
    wait for a first one: after[first] are theirs, which leave right after it.
    """
    words: str
    sends: list
    expected: list
    after: dict


class Client:
    """A client of one row alone."""

    def __init__(self, family, number):
        self.family = family
        self.name = (f"203.0.{113 + number // 250}.{1 + number % 250}" if family == 4 else
                     f"2001:db8:113::{number + 1:x}")

    def whole(self, make=wire.udp, *, to="vip", size=400, sport=1000, dport=80, ident=1):
        """A datagram, or a segment, as it is before it is cut."""
        fields = {"ident": ident} if self.family == 4 else {}
        return make(self.name, ADDRESSES[self.family][to], sport, dport,
                    payload=random.Random(size + sport).randbytes(size), **fields)

    def raw(self, proto, *, to="any", size=400):
        fields = {"ident": 1} if self.family == 4 else {}
        return wire.ip(self.name, ADDRESSES[self.family][to], proto,
                       random.Random(proto).randbytes(size), **fields)

    def time_stamps(self, *, to="vip", size=400):
        """ICMP of the largest type, which no version of it knows."""
        return wire.icmp(self.name, ADDRESSES[self.family][to], 255, 0, b"x" * size)


class Rows:
    """Rows of one family; each asks for its client."""

    def __init__(self, family):
        self.family = family
        self.rows = []

    def client(self):
        return Client(self.family, len(self.rows))

    def add(self, words, sends, expected, after=None):
        self.rows.append(Row(f"IPv{self.family}: {words}", sends, expected, after or {}))


def spread(packets, begin=0.0, step=MS):
    return [(begin + step * i, packet) for i, packet in enumerate(packets)]


def add_orders(rows):
    for make in (wire.tcp, wire.udp):
        name = make.__name__
        parts = wire.pieces(rows.client().whole(make), 104)
        n = len(parts)
        rows.add(f"{name} in order", spread(parts), ["to"] * n)
        parts = wire.pieces(rows.client().whole(make), 104)
        rows.add(f"{name} backwards", spread(parts[::-1]), ["to"] * n,
                 {n - 1: range(n - 1)})
        parts = wire.pieces(rows.client().whole(make), 104)
        rows.add(f"{name}, one before the first, and the second at the end",
                 spread([parts[i] for i in (2, 0, *range(3, n), 1)]), ["to"] * n, {1: [0]})
        client = rows.client()
        parts = wire.pieces(client.whole(make), 104)
        rows.add(f"{name} with its flow's whole packets around",
                 spread([client.whole(make), *parts, client.whole(make)]), ["to"] * (n + 2))
        parts = wire.pieces(rows.client().whole(make), 104)
        rows.add(f"{name}, each twice", spread([p for p in parts for _ in (0, 1)]),
                 ["to"] * (2 * n))
        parts = wire.pieces(rows.client().whole(make), 104)
        rows.add(f"{name}, each twice, later ones first",
                 spread([parts[2], parts[2], parts[1], parts[0], parts[0]]),
                 ["to"] * 5, {3: [0, 1, 2]})
        parts = wire.pieces(rows.client().whole(make), 104)
        rows.add(f"{name}, without an end", spread(parts[:2]), ["to"] * 2)


def add_mixtures(rows):
    """Datagrams that are not to be taken for one another."""
    client = rows.client()
    wholes = [client.whole(sport=1000 + i, ident=10 + i) for i in range(4)]
    cut = [wire.pieces(whole, 136, 10 + i) for i, whole in enumerate(wholes)]
    sends = [cut[i][k] for k in range(3) for i in range(4)] + wholes
    rows.add("four datagrams of four flows, interleaved", spread(sends),
             [f"to {i}" for _ in range(4) for i in range(4)])
    client = rows.client()
    wholes = [client.whole(sport=1000 + i, ident=10 + i) for i in range(4)]
    cut = [wire.pieces(whole, 136, 10 + i) for i, whole in enumerate(wholes)]
    rows.add("the same, second ones first",
             spread([cut[i][k] for k in (1, 0, 2) for i in range(4)] + wholes),
             [f"to {i}" for _ in range(4) for i in range(4)],
             {4: [0], 5: [1], 6: [2], 7: [3]})
    if rows.family == 4:
        client = rows.client()
        datagram, segment = (wire.pieces(client.whole(make), 104)
                             for make in (wire.udp, wire.tcp))
        rows.add("UDP and TCP of one identification", spread(
            [datagram[0], segment[0], datagram[1], segment[1], client.whole(),
             client.whole(wire.tcp)]), ["to udp", "to tcp"] * 3)
    client = rows.client()
    one, two = client.whole(sport=1), client.whole(sport=2)
    rows.add("an identification once more, after its datagram was whole", spread(
        wire.pieces(one, 208) + wire.pieces(two, 208) + [one, two]),
        ["to 1", "to 1", "to 2", "to 2", "to 1", "to 2"])
    for words, again in (("its last", slice(-1, None)), ("its first", slice(1)), ("it", slice(None)),
                         ("it backwards", slice(None, None, -1))):
        client = rows.client()
        one, two = client.whole(sport=1), client.whole(sport=2, size=300)
        parts = wire.pieces(one, 208)
        rows.add(f"{words} once more after a datagram was whole, and the next of its number",
                 spread([*parts, *parts[again], *wire.pieces(two, 104), one, two]),
                 ["to 1"] * (2 + len(parts[again])) + ["to 2"] * 3 + ["to 1", "to 2"])
    client = rows.client()
    one, two = client.whole(sport=1), client.whole(sport=2, size=300)
    rows.add("the next of its number after a whole datagram, backwards",
             spread(wire.pieces(one, 208) + wire.pieces(two, 104)[::-1] + [one, two]),
             ["to 1"] * 2 + ["to 2"] * 3 + ["to 1", "to 2"], {4: [2, 3]})
    client = rows.client()
    rows.add("an identification once more, more than a second after half a datagram",
             [(0, wire.piece(one_of(client, 1), 0, 104, 1)),
              (1.1, wire.piece(one_of(client, 2), 0, 104, 1)),
              (1.2, wire.piece(one_of(client, 2), 104, 104, 1)),
              (1.3, one_of(client, 1)), (1.4, one_of(client, 2))],
             ["to 1", "to 2", "to 2", "to 1", "to 2"])


def one_of(client, sport):
    return client.whole(sport=sport)


def add_waits(rows):
    for words, seconds, is_matched in (("1 s", 1.0, True), ("over 1 s", 1.000001, False)):
        first, later = wire.pieces(rows.client().whole(), 208)
        rows.add(f"{words} before its first", [(0, later), (seconds, first)],
                 ["to", "to"] if is_matched else ["fragment_unmatched", "to"],
                 {1: [0]} if is_matched else {})
    first, later = wire.pieces(rows.client().whole(), 208)
    rows.add("long after its first", [(0, first), (1.000001, later)],
             ["to", "fragment_unmatched"])
    parts = wire.pieces(rows.client().whole(size=500), 128)
    rows.add("each within 1 s of the one before",
             [(0, parts[0]), (0.9, parts[1]), (1.8, parts[2]), (2.7, parts[3])], ["to"] * 4)
    parts = wire.pieces(rows.client().whole(), 104)
    rows.add("one waits too long, and another does not",
             [(0, parts[1]), (0.5, parts[2]), (1.2, parts[0])],
             ["fragment_unmatched", "to", "to"], {2: [1]})
    later = wire.pieces(rows.client().whole(), 208)[1]
    rows.add("without a first at the capture's end", [(3, later)], ["fragment_unmatched"])


def with_options(segment, n_words):
    """A TCP header of so many words: the payload's first bytes are its options."""
    at_offset = (20 if segment[0] >> 4 == 4 else 40) + 12
    return segment[:at_offset] + bytes([n_words << 4]) + segment[at_offset + 1:]


def add_bad(rows):
    """Overlaps make a datagram worthless (RFC 5722), and tiny ones hide what it is."""
    for words, offset, n in (("over half of one", 48, 104), ("within one", 8, 16),
                             ("over two", 104 - 8, 16)):
        parts = wire.pieces(rows.client().whole(), 104)
        whole = wire.put_together(parts)
        rows.add(f"one lies {words} before", spread(
            [parts[0], parts[1], wire.piece(whole, offset + 104, n, 1), parts[3]]),
            ["to", "to", "fragment_overlap", "fragment_overlap"])
    client = rows.client()
    rows.add("past the end", spread(
        [wire.piece(client.whole(), 0, 104, 1), wire.piece(client.whole(), 104, 8, 0),
         wire.piece(client.whole(), 208, 8, 1)]), ["to", "to", "fragment_unmatched"])
    client = rows.client()
    rows.add("two ends", spread(
        [wire.piece(client.whole(), 0, 104, 1), wire.piece(client.whole(), 208, 8, 0),
         wire.piece(client.whole(), 304, 8, 0)]), ["to", "to", "fragment_overlap"])

    client = rows.client()
    whole = client.whole(wire.tcp)
    rows.add("a first one with 16 bytes of TCP", spread(
        [wire.piece(whole, 0, 16, 1), wire.piece(whole, 24, 96, 1)]),
        ["fragment_bad", "fragment_unmatched"])
    client = rows.client()
    whole = client.whole(wire.tcp)
    rows.add("one with TCP's flags alone, to write over them", spread(
        [wire.piece(whole, 0, 104, 1), wire.piece(whole, 8, 8, 1)]),
        ["to", "fragment_bad" if rows.family == 4 else "fragment_overlap"])
    whole = with_options(rows.client().whole(wire.tcp), 10)
    rows.add("a first one without the last of TCP's options", spread(
        [wire.piece(whole, 0, 32, 1), wire.piece(whole, 32, 104, 1)]),
        ["fragment_bad", "fragment_unmatched"])
    whole = with_options(rows.client().whole(wire.tcp), 10)
    rows.add("a first one with all of TCP's options", spread(
        [wire.piece(whole, 0, 40, 1), wire.piece(whole, 40, 104, 1)]), ["to", "to"])
    client = rows.client()
    whole = client.whole(wire.tcp)
    rows.add("a first one with just TCP's header", spread(
        [wire.piece(whole, 0, 24, 1), wire.piece(whole, 24, 104, 1)]), ["to", "to"])
    client = rows.client()
    rows.add("a first one with just UDP's header", spread(
        [wire.piece(client.whole(), 0, 8, 1), wire.piece(client.whole(), 8, 8, 1)]),
        ["to", "to"])


def add_elsewhere(rows):
    """Not for a backend, or by another way."""
    parts = wire.pieces(rows.client().whole(dport=81), 208)
    rows.add("another port is the kernel's", spread(parts), ["kernel"] * 2)
    parts = wire.pieces(rows.client().whole(dport=81), 208)
    rows.add("another port is the kernel's, backwards", spread(parts[::-1]), ["kernel"] * 2)
    parts = wire.pieces(rows.client().whole(to="none"), 208)
    rows.add("nobody's are the kernel's at once", [(0, parts[1]), (2, parts[0])],
             ["kernel"] * 2)
    client = rows.client()
    parts = wire.pieces(client.time_stamps(), 208)
    rows.add("ICMP that is no echo is the kernel's", spread(parts[::-1]), ["kernel"] * 2)
    parts = wire.pieces(rows.client().time_stamps(to="none"), 208)
    rows.add("and nobody's at once", [(0, parts[1]), (2, parts[0])], ["kernel"] * 2)
    parts = wire.pieces(rows.client().whole(to="empty"), 104)
    rows.add("of a service without backends",
             spread([parts[1], parts[0], parts[2]]),
             ["no_backend"] * 3)
    client = rows.client()
    parts = wire.pieces(client.raw(ESP), 104)
    if rows.family == 4:
        rows.add("ESP goes by its addresses", [(0, parts[1]), (2, parts[0]), (4, parts[2]),
                                               (6, client.raw(ESP))], ["to"] * 4)
    else:
        rows.add("ESP", spread([parts[1], parts[0], parts[2], client.raw(ESP)]), ["to"] * 4,
                 {1: [0]})
    parts = wire.pieces(rows.client().raw(ESP, to="vip"), 208)
    rows.add("ESP where a service has a port", spread(parts), ["kernel"] * 2)
    parts = wire.pieces(rows.client().raw(wire.GRE, to="vip"), 208)
    rows.add("GRE that nobody carries", spread(parts), ["unsupported_l4"] * 2)


def add_next_headers(rows):
    """Of IPv6 the first one's says what the datagram is (RFC 8200, section 4.5)."""
    for own in (wire.UDP, wire.TCP, wire.IPV6, wire.ICMPV6, 59, 60, 0, ESP, 253):
        client = rows.client()
        first, *others = wire.pieces(client.whole(), 104)
        others = [other[:40] + bytes([own]) + other[41:] for other in others]
        rows.add(f"UDP, and {own} in the later ones' headers",
                 spread([others[0], first, *others[1:], client.whole()]),
                 ["to"] * (len(others) + 2), {1: [0]})
        first, *others = wire.pieces(rows.client().whole(dport=81), 208)
        others = [other[:40] + bytes([own]) + other[41:] for other in others]
        rows.add(f"another port, and {own} in the later ones' headers",
                 spread([*others, first]), ["kernel"] * 2)


def add_atomic(rows):
    """IPv6 fragments that are whole (RFC 6946)."""
    client = rows.client()
    whole = client.whole()
    atomic = wire.piece(whole, 0, len(whole) - 40, 0)
    rows.add("atomic, and its flow", spread([atomic, whole, atomic]), ["to"] * 3)
    client = rows.client()
    parts = wire.pieces(client.whole(), 208)
    atomic = wire.piece(client.whole(sport=7), 0, 408, 0)
    rows.add("atomic, of an identification that waits",
             spread([parts[1], atomic, parts[0], client.whole(), client.whole(sport=7)]),
             ["to", "to other", "to", "to", "to other"], {2: [0]})
    for number in range(4):
        client = rows.client()
        whole = client.whole()
        payload = wire.extension(wire.UDP) + whole[40:]
        parts = wire.pieces(wire.ipv6(client.name, VIP6, 60, payload), 104, ident=number)
        rows.add("options in what is cut", spread([parts[1], parts[0], parts[2], whole]),
                 ["to"] * 4, {1: [0]})


def all_rows():
    found = []
    for family in (4, 6):
        rows = Rows(family)
        for add in (add_orders, add_mixtures, add_waits, add_bad, add_elsewhere):
            add(rows)
        if family == 6:
            add_atomic(rows)
            add_next_headers(rows)
        found += rows.rows
    return found


class Fragments(lib.ReplayCase):
    def test_rows(self):
        self.check_rows(all_rows(), SETTINGS)

    def test_a_first_one_too_late_for_its_datagram(self):
        """What waits contradicts itself, or the first one: none of that leaves."""
        for family in (4, 6):
            whole = Client(family, 1).whole()
            parts = wire.pieces(whole, 104)
            for words, sends in (
                    ("among themselves", [parts[1], wire.piece(whole, 112, 104, 1), parts[0],
                                          parts[3]]),
                    ("with the first", [parts[1], parts[2], wire.piece(whole, 0, 112, 1),
                                        parts[3]])):
                for n in (1, 8):
                    with self.subTest(words, family=family, workers=n):
                        result = self.replay([at(0, packet) for packet in sends], SETTINGS,
                                             args=["--workers", n])
                        self.assertEqual(result.column("reason"), ["fragment_overlap"] * 4)
                        self.assertEqual(result.output.packets, [])

    def test_an_identification_used_again_by_another_flow(self):
        """One lost its last fragment; nobody can tell whose the later ones are, so none leave."""
        for family in (4, 6):
            parts = wire.pieces(Client(family, 1).whole(), 104)
            again = wire.pieces(Client(family, 1).whole(sport=4711), 104)
            for n in (1, 2, 4):
                with self.subTest(family=family, workers=n):
                    result = self.replay([at(0, packet) for packet in [parts[0], parts[0], *again]],
                                         SETTINGS, args=["--workers", n])
                    self.assertEqual(result.column("reason"),
                                     [None] * 2 + ["fragment_overlap"] * len(again))

    def test_without_a_kernel_there_is_no_service(self):
        sends = []
        for number, order in enumerate((1, -1)):
            sends += wire.pieces(Client(4, number).whole(dport=81), 208)[::order]
        settings = config(*services(), dataplane={"kernel": "none"})
        result = self.same([at(0, packet) for packet in sends], settings)
        self.assertEqual(result.column("reason"), ["no_service"] * 4)

    def check_rows(self, rows, settings):
        """All rows in one capture, and a row's outcome is what it says."""
        sends = sorted(((seconds, r, k) for r, row in enumerate(rows)
                        for k, (seconds, _) in enumerate(row.sends)), key=lambda s: s[0])
        packets = [at(seconds, rows[r].sends[k][1]) for seconds, r, k in sends]
        result = self.same(packets, settings)
        self.assertEqual(result.column("packet"), list(range(1, len(packets) + 1)))
        numbers = {(r, k): number for number, (_, r, k) in enumerate(sends)}
        leaves = [(wire.parse_tunnel(p.data, "ipip").inner, p.time_ns)
                  for p in result.output.packets]
        places = {}
        for place, leaf in enumerate(leaves):
            places.setdefault(leaf, []).append(place)
        for r, row in enumerate(rows):
            with self.subTest(row.words):
                mine = [numbers[r, k] for k in range(len(row.sends))]
                self.check_row(row, [result.decisions[number] for number in mine])
                self.check_leaves(row, [packets[number].time_ns for number in mine], places)

    def check_row(self, row, decisions):
        found = []
        backends = {}
        for expected, d in zip(row.expected, decisions):
            if d["verdict"] == "forward":
                self.assertEqual(backends.setdefault(expected, d["backend"]), d["backend"])
                found.append(expected if expected.startswith("to") else "to")
            else:
                found.append(d["reason"] or d["verdict"])
        self.assertEqual(found, row.expected)

    def check_leaves(self, row, times, places):
        waiting = {k for waiters in row.after.values() for k in waiters}
        found = []
        for k, what in enumerate(row.expected):
            if what.startswith("to") and k not in waiting:
                group = [places[row.sends[i][1], times[i]].pop(0)
                         for i in (k, *row.after.get(k, ()))]
                self.assertEqual(group, list(range(group[0], group[0] + len(group))))
                found += group
        self.assertEqual(found, sorted(found), "another order")


class Whole(lib.ReplayCase):
    """The largest datagrams, as they come from wires of 1500, 1280 and 576 bytes."""

    def test_reordered_to_one_backend(self):
        for n_bytes, n_parts in ((1480, 45), (1232, 54), (552, 119)):
            with self.subTest(n_bytes):
                self.check_reordered(n_bytes, n_parts)

    def check_reordered(self, n_bytes, n_parts):
        rng = random.Random(n_bytes)
        sends = []
        for family, size in ((4, 65507), (6, 65527)):
            for number in range(8):
                parts = wire.pieces(Client(family, number).whole(size=size), n_bytes)
                self.assertEqual(len(parts), n_parts)
                parts = rng.sample(parts, len(parts)) if number else parts[::-1]
                sends += [(i * MS, family, number, part) for i, part in enumerate(parts)]
        sends.sort(key=lambda send: send[0])
        result = self.same([at(send[0], send[3]) for send in sends], SETTINGS)
        found = {}
        for (_, family, number, _), d in zip(sends, result.decisions):
            found.setdefault((family, number), set()).add((d["backend"], d["reason"]))
        for key, ways in found.items():
            with self.subTest(key):
                self.assertEqual(len(ways), 1, ways)
                self.assertEqual(ways.pop()[1], None)


class Together(lib.ReplayCase):
    """A datagram whose first fragment cannot leave does not leave in part."""

    def check(self, settings, reason):
        """Whatever the order, and a first one again at the end."""
        for family in (4, 6):
            parts = wire.pieces(Client(family, 1).whole(size=3000), 1200)
            for order in ((0, 1, 2, 0), (1, 0, 2, 0), (2, 1, 0, 0)):
                with self.subTest(reason, family=family, order=order):
                    result = self.same([at(i * MS, parts[k]) for i, k in enumerate(order)],
                                       settings)
                    self.assertEqual(result.column("reason"), [reason] * 4)
                    self.assertEqual(result.output.packets, [])

    def test_no_next_hop(self):
        settings = json.loads(SETTINGS)
        del settings["dataplane"]["ports"][0]["next_hop"]
        self.check(json.dumps(settings), "no_next_hop")

    def test_no_backend(self):
        self.check(config(service("web", 0, protocol="any"),
                          service("web6", 0, address=VIP6, protocol="any")), "no_backend")

    def test_what_would_be_cut_is_dropped_whole(self):
        """The first and the second are too big, and the last by itself is not."""
        parts = wire.pieces(Client(4, 1).whole(size=3000), 1400)
        settings = config(service("web", 5, protocol="any", fragment="drop"),
                          port={"mtu": 1400})
        for order in ((0, 1, 2, 0), (1, 0, 2, 0), (2, 1, 0, 0)):
            with self.subTest(order):
                result = self.same([at(i * MS, parts[k]) for i, k in enumerate(order)],
                                   settings)
                self.assertEqual(result.column("reason"), ["too_big"] * 4)
                self.assertEqual(result.output.packets, [])

    def test_what_is_answered_is_dropped_whole(self):
        """IPv6 is cut by its sender alone, who is told of the first."""
        parts = wire.pieces(Client(6, 1).whole(size=3000), 1400)
        settings = config(*services(), port={"mtu": 1400})
        for order, expected in (((0, 1, 2), ["reply", "too_big", "too_big"]),
                                ((2, 1, 0), ["too_big", "too_big", "reply"])):
            with self.subTest(order):
                result = self.same([at(i * MS, parts[k]) for i, k in enumerate(order)],
                                   settings)
                self.assertEqual([d["reason"] or d["verdict"] for d in result.decisions],
                                 expected)
                self.assertEqual(len(result.output.packets), 1)


class Changes(lib.ReplayCase):
    """A change of backends while a datagram is under way."""

    def replay_halves(self, *events, is_first_before=True):
        """40 datagrams of either family, half before and half after what happens at 0.3 s."""
        early, late = [], []
        for family in (4, 6):
            for number in range(40):
                first, later = wire.pieces(Client(family, number).whole(), 208)
                early.append(first if is_first_before else later)
                late.append(later if is_first_before else first)
        sends = [at(0, packet) for packet in early] + [at(0.5, packet) for packet in late]
        result = self.same(sends, SETTINGS, events=items(*events))
        return [result.decisions[i::80] for i in range(80)]

    def test_to_the_first_one_s_backend_while_it_is_there(self):
        added = [{"at": "0.3s", "add": {"service": name, "name": f"{name}-{i}",
                                        "address": f"10.0.1.{i}"}}
                 for i in range(20, 40) for name in ("web", "web6")]
        rows = [
            ("20 are added", added),
            ("the others are drained", [{"at": "0.3s", "drain": f"{name}-{i}"}
                                        for i in range(1, 5) for name in ("web/web",
                                                                          "web6/web6")]),
            ("its weight is 0", [{"at": "0.3s", "weight": {"backend": f"{name}-1", "to": 0}}
                                 for name in ("web/web", "web6/web6")]),
        ]
        for words, events in rows:
            with self.subTest(words):
                pairs = self.replay_halves(*events)
                self.assertGreater(len({first["backend"] for first, _ in pairs}), 8)
                for first, later in pairs:
                    self.assertEqual((later["verdict"], later["backend"]),
                                     ("forward", first["backend"]))
                    self.assertEqual((later["flow"], later["slot"]), ("hit", None))

    def test_nowhere_once_it_is_gone(self):
        for event in ("remove", "down"):
            with self.subTest(event):
                pairs = self.replay_halves({"at": "0.3s", event: "web/web-1"},
                                           {"at": "0.3s", event: "web6/web6-2"})
                for first, later in pairs:
                    if first["backend"] in ("web-1", "web6-2"):
                        self.assertEqual(later["reason"], "fragment_unmatched")
                    else:
                        self.assertEqual(later["backend"], first["backend"])

    def test_those_that_wait_follow_what_is_in_force_for_the_first(self):
        pairs = self.replay_halves({"at": "0.3s", "remove": "web/web-1"},
                                   {"at": "0.3s", "drain": "web6/web6-2"},
                                   is_first_before=False)
        gone = {"web-1", "web6-2"}
        for later, first in pairs:
            self.assertEqual((later["verdict"], later["backend"]),
                             ("forward", first["backend"]))
            self.assertNotIn(first["backend"], gone)


class Floods(lib.ReplayCase):
    """Fragments of one kind, each of a datagram of its own, in little more than a second."""

    # First ones make more flows than the smallest table has entries, 524,288.
    N = {True: 600_000, False: 100_000}
    N_FLOWS = 500

    def flood(self, is_first):
        """Frames that differ in source and identification alone."""
        parts = wire.pieces(wire.udp("203.0.0.0", VIP, 1000, 80, b"x" * 24), 16)
        frame = bytearray(wire.ether(parts[0 if is_first else 1]))
        for i in range(self.N[is_first]):
            struct.pack_into("!H", frame, 14 + 4, i & 0xFFFF)
            struct.pack_into("!HI", frame, 14 + 10, 0, 0x0A000000 + i)
            struct.pack_into("!H", frame, 14 + 10, wire.checksum(bytes(frame[14:34])))
            yield captures.Packet(bytes(frame), FIRST_NS + captures.NS + 2000 * i)

    def flows(self, seconds):
        return [at(seconds, wire.udp("203.0.113.9", VIP, 1000 + i, 80, b"data"))
                for i in range(self.N_FLOWS)]

    def check_flood(self, is_first, expected):
        before = self.flows(0) + self.flows(0.1)
        packets = before + list(self.flood(is_first)) + self.flows(2.6)
        events = items({"at": "2.5s", "drain": "web/web-1"},
                       {"at": "2.5s", "drain": "web/web-2"})
        settings = config(*services(), port={"mtu": 9000}, dataplane={"flow_entries": 524288})
        result = self.replay(packets, settings, events=events, write=False)
        self.assertEqual(result.column("backend")[:self.N_FLOWS],
                         result.column("backend")[-self.N_FLOWS:])
        self.assertEqual(result.column("flow")[-self.N_FLOWS:], ["hit"] * self.N_FLOWS)
        flood = result.decisions[len(before):-self.N_FLOWS]
        self.assertEqual({(d["verdict"], d["reason"]) for d in flood}, expected)

    def test_first_ones(self):
        self.check_flood(True, {("forward", None)})

    def test_later_ones(self):
        self.check_flood(False, {("drop", "fragment_unmatched"), ("drop", "fragment_excess")})


if __name__ == "__main__":
    lib.main()
