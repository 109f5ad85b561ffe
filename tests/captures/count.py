#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count what the captures of this folder hold, as the table in README.md.

count.py          prints the table
count.py --check  exits 1 where README.md's table is another
"""

import pathlib
import sys

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """\
| file | seconds | packets | IPv4 | IPv6 | TCP | UDP | ICMP errors | later fragments | 5-tuples |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def is_later_fragment(packet):
    if IP in packet:
        return packet[IP].frag != 0
    return IPv6ExtHdrFragment in packet and packet[IPv6ExtHdrFragment].offset != 0


def is_icmp_error(packet):
    if ICMPv6PacketTooBig in packet:
        return True
    return ICMP in packet and packet[ICMP].type in (3, 11, 12)


def row(path):
    packets = []
    times = []
    for data, meta in RawPcapReader(str(path)):
        times.append(meta.sec + meta.usec / 1e6)
        packets.append(Ether(data))

    n = dict.fromkeys(("v4", "v6", "tcp", "udp", "error", "later"), 0)
    tuples = set()
    for packet in packets:
        ip = packet[IP] if IP in packet else packet[IPv6]
        n["v4" if IP in packet else "v6"] += 1
        if is_icmp_error(packet):
            n["error"] += 1
            continue
        if is_later_fragment(packet):
            n["later"] += 1
            continue
        for layer, name in ((TCP, "tcp"), (UDP, "udp")):
            if layer in packet:
                n[name] += 1
                tuples.add((ip.src, ip.dst, name, packet[layer].sport, packet[layer].dport))
    cells = [path.name, f"{times[-1] - times[0]:.1f}", len(packets), *n.values(), len(tuples)]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main():
    table = "\n".join([HEAD] + [row(path) for path in sorted(HERE.glob("*.pcap"))])
    if sys.argv[1:] != ["--check"]:
        print(table)
        return 0
    if table in (HERE / "README.md").read_text(encoding="utf-8"):
        return 0
    print(f"tests/captures/README.md should hold this table:\n{table}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
