#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Other people's captures: every file of a folder, with a service that fits it.

The folder is SHUNT_CAPTURES, or ../shared/captures beside the checkout; without it there is
nothing to do.
"""

import collections
import ipaddress
import os
import pathlib
import struct
import unittest

import captures
import lib
import wire
from lib import config, service

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = pathlib.Path(os.environ.get("SHUNT_CAPTURES", TOP.parent / "shared" / "captures"))
MAGICS = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d",
          b"\x0a\x0d\x0d\x0a", b"snoop\0\0\0")
HEADER_BYTES = {captures.NULL: 4, captures.LOOP: 4, captures.RAW: 0, 12: 0, captures.SLL: 16,
                captures.IPV4: 0, captures.IPV6: 0, captures.SLL2: 20}


def find_captures():
    if not FOLDER.is_dir():
        return []
    return [path for path in sorted(FOLDER.iterdir())
            if path.is_file() and path.read_bytes()[:8].startswith(MAGICS)]


def ip_of(packet):
    """Where the IP packet begins; None if it is none."""
    if packet.linktype == captures.ETHERNET:
        at = 12
        while packet.data[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        if packet.data[at:at + 2] not in (b"\x08\x00", b"\x86\xdd"):
            return None
        return packet.data[at + 2:]
    return packet.data[HEADER_BYTES[packet.linktype]:]


def destination(packet):
    """
    Address, protocol, port of whole TCP and UDP; protocol and port None of others. None where
    the header's checksum is wrong: the machine that captured left it to its network card.
    """
    data = ip_of(packet)
    if not data or len(data) < 20:
        return None
    if data[0] >> 4 == 4:
        at, proto, dst = (data[0] & 15) * 4, data[9], data[16:20]
        if wire.checksum(data[:at]) != 0:
            return None
        if struct.unpack_from("!H", data, 6)[0] & 0x1FFF:
            proto = None
    elif data[0] >> 4 == 6 and len(data) >= 40:
        at, proto, dst = 40, data[6], data[24:40]
    else:
        return None
    name = ipaddress.ip_address(dst)
    if name.is_multicast or name.is_unspecified or str(name) == "255.255.255.255":
        return None
    if proto not in (wire.TCP, wire.UDP) or len(data) < at + 4:
        return str(name), None, None
    return str(name), {wire.TCP: "tcp", wire.UDP: "udp"}[proto], \
        struct.unpack_from("!H", data, at + 2)[0]


def fitting_service(packets):
    """A service for the busiest destination: with its port, if it has one."""
    counts = collections.Counter(filter(None, map(destination, packets))).most_common()
    for (address, protocol, port), _ in counts:
        if port:
            return service(address=address, protocol=protocol, port=port)
    address = counts[0][0][0] if counts else lib.VIP
    return service(address=address, protocol="any", port="any")


def same_linktype(packets):
    """The packets up to a change of their linktype, and whether there is one."""
    for i, packet in enumerate(packets):
        if packet.linktype != packets[0].linktype:
            return packets[:i], True
    return packets, False


@unittest.skipIf(not find_captures(), f"there are no captures in {FOLDER}")
class Shared(lib.ReplayCase):
    def check_capture(self, path):
        capture = captures.read(path.read_bytes())
        packets, is_mixed = same_linktype(capture.packets)
        one = fitting_service(packets)
        result = self.replay(path, config(one, port={"mtu": 9216}), status=1 if is_mixed else 0)
        if is_mixed:
            self.assertRegex(result.stderr, rf"\bpacket {len(packets) + 1}\b.*linktype")
        else:
            self.assertEqual(result.stderr, "")
        self.assertEqual(result.report["packets"]["received"], len(packets))
        self.assertEqual(result.column("packet"), list(range(1, len(packets) + 1)))
        n_sent = result.report["packets"]["forwarded"] + result.report["packets"]["replied"]
        self.assertGreaterEqual(len(result.output.packets), n_sent)
        self.check_forwarded(packets, result)
        return result, one

    def check_forwarded(self, packets, result):
        """What is forwarded is what came."""
        output = iter(result.output.packets)
        for packet, decision in zip(packets, result.decisions):
            if decision["verdict"] != "forward":
                continue
            inner = wire.parse_tunnel(next(output).data, "ipip").inner
            self.assertEqual(ip_of(packet)[:len(inner)], inner)

    def check_refused(self, path, says):
        settings = self.put("c.yaml", config(service()))
        self.refuse("-c", settings, path, status=1, says=[path.name, says])

    def test_each_file(self):
        for path in find_captures():
            data = path.read_bytes()
            with self.subTest(path.name):
                if data.startswith(b"snoop"):
                    self.check_refused(path, "snoop")
                    continue
                linktype = captures.read(data).linktype
                if linktype != captures.ETHERNET and linktype not in HEADER_BYTES:
                    self.check_refused(path, f"linktype {linktype}")
                    continue
                result, one = self.check_capture(path)
                if one["port"] != "any":
                    # Some are of loopback alone, of hosts without an address, or of what is
                    # sent to all on the link.
                    drops = result.report["drops"]
                    n_seen = result.report["packets"]["forwarded"] + drops["martian_source"] \
                        + drops["link_multicast"]
                    self.assertGreater(n_seen, 0)


if __name__ == "__main__":
    lib.main()
