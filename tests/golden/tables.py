#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Golden tables, from the words of the design and not from the C.

    tests/golden/tables.py > tests/golden/tables.txt

Needs python3-xxhash. Each set of the file is

    set ALGORITHM SLOTS SEED BACKENDS
    backend NAME WEIGHT            one line each, in the order given to build()
    slots I I I ...                the backend of each slot, or
    fnv1a HEX                      64-bit FNV-1a of the slots as 16-bit little-endian
    end
"""

import struct
from decimal import Decimal, getcontext

import xxhash

getcontext().prec = 60
MASK = 2**64 - 1


def h(name, seed, k):
    """h_k of a name."""
    return xxhash.xxh3_64_intdigest(name, (seed + k) & MASK)


def canonical(backends, seed):
    """(position, name, weight) in canonical order, weight 0 left out."""
    live = [(i, n, w) for i, (n, w) in enumerate(backends) if w > 0]
    return sorted(live, key=lambda b: (h(b[1], seed, 0), b[1]))


def permutation(offset, skip, size):
    return ((offset + j * skip) % size for j in range(size))


def maglev(backends, size, seed):
    slots = [None] * size
    order = canonical(backends, seed)
    largest = max(w for _, _, w in order)
    turns = []
    for i, name, weight in order:
        offset = h(name, seed, 1) % size
        skip = h(name, seed, 2) % (size - 1) + 1
        turns.append([i, weight, largest - weight, permutation(offset, skip, size)])
    left = size
    while left:
        for turn in turns:
            turn[2] += turn[1]
            if turn[2] < largest or not left:
                continue
            turn[2] -= largest
            slot = next(s for s in turn[3] if slots[s] is None)
            slots[slot] = turn[0]
            left -= 1
    return slots


def ring(backends, size, seed):
    points = []
    for rank, (i, name, weight) in enumerate(canonical(backends, seed)):
        for k in range(max(1, (160 * weight + 50) // 100)):
            at = xxhash.xxh3_64_intdigest(struct.pack("<I", k), h(name, seed, 1))
            points.append((at, rank, i))
    points.sort()
    slots = []
    p = 0
    for s in range(size):
        at = s * 2**64 // size
        while p < len(points) and points[p][0] < at:
            p += 1
        slots.append(points[p % len(points)][2])
    return slots


LOG2 = [int((1 + Decimal(i) / 256).ln() / Decimal(2).ln() * 2**40) for i in range(257)]


def score(u):
    if u == 0:
        return 64 * 2**40
    e = u.bit_length() - 1
    below = u - 2**e
    m = below << (39 - e) if e <= 39 else below >> (e - 39)
    i, x = divmod(m, 2**31)
    return (64 - e) * 2**40 - LOG2[i] - (LOG2[i + 1] - LOG2[i]) * x // 2**31


def rendezvous(backends, size, seed):
    mix = 0xD6E8FEB86659FD93
    order = [(i, h(name, seed, 1), w) for i, name, w in canonical(backends, seed)]
    slots = []
    for s in range(size):
        k = (s + 1) * 0x9E3779B97F4A7C15 & MASK
        k = (k ^ k >> 32) * mix & MASK
        k = (k ^ k >> 32) * mix & MASK
        best = None
        for i, h_1, weight in order:
            u = (h_1 ^ k) * mix & MASK
            u = (u ^ u >> 32) * mix & MASK
            u ^= u >> 32
            mine = (score(u), weight, u, i)
            if best is None or mine[0] * best[1] < best[0] * mine[1] or (
                mine[0] * best[1] == best[0] * mine[1] and mine[2] > best[2]
            ):
                best = mine
        slots.append(best[3])
    return slots


def stable(backends, size, seed):
    # Here, as stable.py takes its hashes from this file.
    import stable as plain  # pylint: disable=import-outside-toplevel

    order = canonical(backends, seed)
    ranks = plain.stable([(name, weight) for _, name, weight in order], size, seed, 20)
    return [order[rank][0] for rank in ranks]


def fnv1a(slots):
    value = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(slots)}H", *slots):
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def pool(n, weight):
    return [(f"web-{i}.example", weight(i)) for i in range(n)]


SETS = [
    (7, 0, [("a", 100), ("b", 100), ("c", 100)]),
    (7, 42, [("a", 1)]),
    (7, 42, [("only", 65535), ("gone", 0)]),
    (11, 1, [("c", 100), ("b", 100), ("a", 100)]),
    (11, 2**64 - 1, [("left", 1), ("right", 10)]),
    (11, 0xFEEDFACECAFEBEEF, pool(11, lambda i: 7)),
    (251, 3, pool(5, lambda i: 100)),
    (251, 4, pool(9, lambda i: [3, 7, 0][i % 3])),
    (251, 5, pool(40, lambda i: 1 + i * 7 % 100)),
    (251, 6, [("heavy", 65535), ("light", 1), ("medium", 300), ("größer-日本", 40000)]),
    (65537, 2026, pool(12, lambda i: 100)),
    (65537, 2027, pool(20, lambda i: 1 + i * 37 % 100)),
]


def main():
    for algorithm in (maglev, ring, rendezvous, stable):
        for size, seed, backends in SETS:
            print("set", algorithm.__name__, size, seed, len(backends))
            for name, weight in backends:
                print("backend", name, weight)
            slots = algorithm([(n.encode(), w) for n, w in backends], size, seed)
            if size <= 251:
                print("slots", *slots)
            else:
                print(f"fnv1a {fnv1a(slots):016x}")
            print("end")


if __name__ == "__main__":
    main()
