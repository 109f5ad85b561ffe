#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Golden stable tables and health overlays, from the words of the headers and not from the C.

    tests/golden/stable.py > tests/golden/stable.txt

Needs python3-xxhash. Each set of the file is

    set SLOTS SEED SLACK BACKENDS
    backend NAME WEIGHT            one line each, in canonical order; its index is the line's
    slots I I I ...                the index of each slot, or
    fnv1a HEX                      64-bit FNV-1a of the slots as 16-bit little-endian
    slots, or fnv1a                of the overlay where each third backend is dead, from index 0
    end
"""

from fractions import Fraction

from tables import MASK, fnv1a, h, pool


def stable(backends, size, seed, slack):
    inverse = [0] + [pow(i, -1, size) for i in range(1, size)]
    total = sum(weight for _, weight in backends)
    pairs = []
    room = []
    for rank, (name, weight) in enumerate(backends):
        h_1, h_2, h_3 = (h(name, seed, k) for k in (1, 2, 3))
        offset, scale, start = h_1 % size, h_2 % (size - 1) + 1, h_3 % size
        rate = 2**30 // weight
        time = 0
        for r in range(size):
            time += 16 * size // (size - r)
            slot = (offset + scale * inverse[(r + start) % size]) % size
            pairs.append((time * rate + h_3 * 16 * rate // 2**64, rank, slot))
        unit = 1000 * total
        dither = h_2 * unit // 2**64 if slack else 0
        room.append(Fraction((1000 + slack) * size * weight + dither, unit))
    left = [int(x) for x in room]
    order = sorted(range(len(room)), key=lambda b: (int(room[b]) - room[b], b))
    for b in order[: max(0, size - sum(left))]:
        left[b] += 1
    slots = [None] * size
    for _, rank, slot in sorted(pairs):
        if slots[slot] is None and left[rank]:
            slots[slot] = rank
            left[rank] -= 1
    return slots


def mixed(value, key):
    odd = 0xD6E8FEB86659FD93
    value = (value ^ key) * odd & MASK
    value = (value ^ value >> 32) * odd & MASK
    return value ^ value >> 32


def ranking(slot, size):
    odd = 0xD6E8FEB86659FD93
    key = (slot + 1) * 0x9E3779B97F4A7C15 & MASK
    key = (key ^ key >> 32) * odd & MASK
    key = (key ^ key >> 32) * odd & MASK
    for k in range(64):
        yield mixed(k, key) * size >> 64
    for step in range(1, size):
        yield (slot + step) % size


def overlay(slots, dead):
    result = []
    for slot, owner in enumerate(slots):
        if owner in dead:
            owner = next(o for o in (slots[s] for s in ranking(slot, len(slots))) if o not in dead)
        result.append(owner)
    return result


SETS = [
    (7, 0, 20, [("a", 100), ("b", 100), ("c", 100)]),
    (7, 42, 20, [("a", 1), ("b", 65535)]),
    (11, 1, 0, [("c", 100), ("b", 100), ("a", 100)]),
    (11, 2**64 - 1, 20, [("left", 1), ("right", 10)]),
    (11, 0xFEEDFACECAFEBEEF, 20, pool(11, lambda i: 7)),
    (251, 3, 20, pool(5, lambda i: 100)),
    (251, 4, 0, pool(9, lambda i: [3, 7, 2][i % 3])),
    (251, 5, 20, pool(40, lambda i: 1 + i * 7 % 100)),
    (251, 6, 100, [("heavy", 65535), ("light", 1), ("medium", 300), ("größer-日本", 40000)]),
    (251, 7, 20, pool(60, lambda i: 100)),
    (65537, 2026, 20, pool(12, lambda i: 100)),
    (65537, 2027, 20, pool(20, lambda i: 1 + i * 37 % 100)),
]


def show(slots):
    if len(slots) <= 251:
        print("slots", *slots)
    else:
        print(f"fnv1a {fnv1a(slots):016x}")


def main():
    for size, seed, slack, backends in SETS:
        backends = sorted(backends, key=lambda b: (h(b[0].encode(), seed, 0), b[0].encode()))
        print("set", size, seed, slack, len(backends))
        for name, weight in backends:
            print("backend", name, weight)
        slots = stable([(n.encode(), w) for n, w in backends], size, seed, slack)
        show(slots)
        show(overlay(slots, set(range(0, len(backends), 3))))
        print("end")


if __name__ == "__main__":
    main()
