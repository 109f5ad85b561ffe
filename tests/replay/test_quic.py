#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""QUIC: a connection stays with its server, which its id names, wherever its client goes."""

import random
import struct

import lib
import wire
from captures import Packet
from lib import ROUTER, VIP, VIP6, at, config, items, service

V1, V2, OTHER_VERSION = 1, 0x6B3343CF, 0xBABABABA
# draft-ietf-quic-load-balancers-21, appendix B: configuration, server id and connection id.
KEY = "8f95f09245765f80256934e50c66207f"
VECTORS = [
    (0, "ed793a", "0720b1d07b359d3c"),
    (1, "ed793a51d49b8f5fab65", "2fcc381bc74cb4fbad2823a3d1f8fed2"),
    (2, "ed793a51d49b8f5f", "504dd2d05a7b0de9b2b9907afb5ecf8cc3"),
    (3, "ed793a51d49b8f5fab", "725779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"),
]
LENGTHS = [(3, 4), (10, 5), (8, 8), (9, 9)]


def quic_config(config_id, server_id, nonce, **keys):
    return {"config_id": config_id, "server_id_length": server_id, "nonce_length": nonce,
            **keys}


def encrypted_configs():
    return [quic_config(i, *lengths, cid_key=KEY, first_octet_encodes_cid_length=True)
            for i, lengths in enumerate(LENGTHS)]


def plain_service(name="web", address=VIP, n=10, **keys):
    """Server ids of three bytes, 000001 and so on, and nonces of four."""
    one = service(name, n, address=address, protocol="udp", port=443, affinity="quic",
                  quic=[quic_config(0, 3, 4)], **keys)
    for i, backend in enumerate(one["backends"], 1):
        backend["quic_id"] = f"{i:06x}"
    return one


def plain_cid(server, nonce=0, config_id=0, more=b""):
    """A connection id of plain_service()'s server, 1 and so on; its random bits are nonce's."""
    return (bytes([config_id << 5 | nonce & 0x1F]) + server.to_bytes(3, "big")
            + struct.pack("!I", nonce) + more)


def short(cid):
    return b"\x40" + cid + b"protected" * 4


def long(cid, version=V1):
    return b"\xc0" + struct.pack("!IB", version, len(cid)) + cid + b"\0\0" + b"protected" * 40


def client(family, number):
    return f"203.0.{113 + number // 250}.{1 + number % 250}" if family == 4 else \
        f"2001:db8:113::{number + 1:x}"


def datagram(family, number, payload, sport=4000, **fields):
    return wire.udp(client(family, number), VIP if family == 4 else VIP6, sport, 443, payload,
                    **fields)


def both(make=plain_service, **keys):
    return [make("web", VIP, **keys), make("web6", VIP6, **keys)]


class Quic(lib.ReplayCase):
    def names(self, result):
        """The backends' numbers."""
        return [d["backend"] and int(d["backend"].split("-")[1]) for d in result.decisions]

    def test_each_id_to_its_server_from_anywhere(self):
        rng = random.Random(9000)
        rows = []
        for number in range(300):
            server = rng.randrange(1, 11)
            cid = plain_cid(server, rng.randrange(1 << 32), more=bytes(rng.randrange(13)))
            payload = rng.choice((short(cid), long(cid), long(cid, V2)))
            rows.append((server, datagram(rng.choice((4, 6)), number, payload)))
        result = self.same([at(i / 1000, row[1]) for i, row in enumerate(rows)],
                           config(*both()))
        self.assertEqual(self.names(result), [row[0] for row in rows])
        self.assertEqual([wire.parse_tunnel(p.data, "ipip").inner for p in
                          result.output.packets], [row[1] for row in rows])

    def test_a_client_that_moves(self):
        """First its own id, by the ports; then its server's, from one address and the next."""
        for family in (4, 6):
            first = [datagram(family, i, long(b"\xff" * 8)) for i in range(60)]
            found = self.names(self.replay([at(0, packet) for packet in first],
                                           config(*both())))
            self.assertGreater(len(set(found)), 8)
            rounds = [first]
            for move in range(3):
                rounds.append([datagram(family, i + 100 * move, short(plain_cid(server, i)),
                                        sport=4000 + move)
                               for i, server in enumerate(found)])
            # The last address is known now, whatever id comes from there.
            rounds.append([datagram(family, i + 200, short(b"\xff" * 8), sport=4002)
                           for i in range(60)])
            # Nor does a change of backends do anything to a connection.
            events = items(*[{"at": "2.5s", "add": {"service": name, "name": f"{name}-{i}",
                                                    "address": f"10.0.1.{i}"}}
                             for i in range(20, 40) for name in ("web", "web6")])
            packets = [at(t, packet) for t, packets in enumerate(rounds) for packet in packets]
            result = self.same(packets, config(*both()), events=events)
            self.assertEqual(self.names(result), found * 5)
            self.assertEqual(result.report["flows"]["broken"], 0)

    def test_errors_follow_a_client_that_moved(self):
        packets = []
        for i in range(1, 11):
            packets.append(at(0, datagram(4, i, short(plain_cid(i)))))
            quoted = wire.udp(VIP, client(4, i), 443, 4000, b"x" * 1200)
            packets.append(at(1, wire.too_big(ROUTER, quoted)))
        packets.sort(key=lambda packet: packet.time_ns)
        result = self.same(packets, config(*both()))
        self.assertEqual(self.names(result), [*range(1, 11)] * 2)

    def test_what_pads_a_frame_is_no_id(self):
        """Nor what an IP packet has behind its UDP datagram: a flow stays where it is."""
        one = service("web", 8, protocol="udp", port=443, affinity="quic",
                      quic=[quic_config(0, 2, 4)])
        for i, backend in enumerate(one["backends"]):
            backend["quic_id"] = f"{i:04x}"
        six = {**one, "name": "web6", "address": VIP6,
               "backends": [{**b, "name": f"web6-{i}"} for i, b in
                            enumerate(one["backends"], 1)]}

        def frames(family, number):
            """A flow's: with an id, and with what would be one of each server's behind."""
            last = b"\x40" + b"\xff" * 30
            yield wire.ether(datagram(family, number, long(b"\xff" * 8)))
            yield wire.ether(datagram(family, number, last))
            for server in range(8):
                cid = b"\0" + server.to_bytes(2, "big") + bytes(4)
                for behind in (cid, cid + bytes(20)):
                    for payload in (b"", b"\0", b"\x40", b"\x40" + cid[:2]):
                        bare = datagram(family, number, payload)
                        yield wire.ether(bare) + behind[len(payload[1:]):]
                        yield wire.ether(self.lengthen(bare, behind[len(payload[1:]):]))
            yield wire.ether(self.lengthen(datagram(family, number, b"")[:-2] + b"\0\0",
                                           last, udp_bytes=0))
            yield wire.ether(datagram(family, number, last))

        flows = [frames(family, number) for number in range(8) for family in (4, 6)]
        rounds = list(zip(*flows))
        result = self.same([Packet(frame, lib.FIRST_NS + i)
                            for i, frame in enumerate(sum(rounds, ()))], config(one, six))
        found = result.column("backend")
        homes = found[:len(flows)]
        for i in range(len(rounds)):
            self.assertEqual(found[i * len(flows):(i + 1) * len(flows)], homes, i)
        self.assertGreater(len(set(homes)), 4)

    @staticmethod
    def lengthen(packet, behind, udp_bytes=None):
        """An IP packet with bytes behind its UDP datagram, which may say another length."""
        ip = wire.parse_ip(packet)
        head = ip.payload[:4] + struct.pack("!H", udp_bytes) + ip.payload[6:] \
            if udp_bytes is not None else ip.payload
        return wire.ip(ip.src, ip.dst, wire.UDP, head + behind)

    def test_ids_of_nobody_go_by_the_ports(self):
        """As under affinity 5-tuple, to the slot."""
        rows = [
            ("an unknown server", short(plain_cid(11))),
            ("an unknown configuration", short(plain_cid(1, config_id=1))),
            ("the codepoint of none", short(plain_cid(1, config_id=7))),
            ("another version", long(plain_cid(1), OTHER_VERSION)),
            ("version negotiation", long(plain_cid(1), 0)),
            ("a long header's id of no bytes", long(b"")),
            ("an id that is too short", long(plain_cid(1)[:7])),
            ("an id beyond the packet", long(plain_cid(1))[:10]),
            ("a short header cut within the id", short(plain_cid(1))[:8]),
            ("no payload", b""),
            ("one byte", b"\x40"),
        ]
        one = service(n=10, protocol="udp", port=443)
        packets = [at(0, datagram(4, i, payload)) for i, (_, payload) in enumerate(rows)]
        expected = self.replay(packets, config(one), write=False).decisions
        found = self.same(packets, config(plain_service())).decisions
        for (words, _), a, b in zip(rows, found, expected):
            with self.subTest(words):
                self.assertEqual(a, b)

    def test_a_server_that_drains_or_is_gone(self):
        """Draining it keeps its connections; without it they go by their ports."""
        packets = [at(t, datagram(4, i + 50 * t, short(plain_cid(3, i)))) for t in range(3)
                   for i in range(50)]
        events = items({"at": "0.5s", "drain": "web/web-3"}, {"at": "1.5s", "down": "web/web-3"})
        result = self.same(packets, config(plain_service()), events=events)
        found = self.names(result)
        self.assertEqual(set(found[:100]), {3})
        self.assertNotIn(3, found[100:])
        self.assertGreater(len(set(found[100:])), 5)

    def test_the_draft_s_encrypted_ids(self):
        """Under each of four configurations, from 50 addresses each."""
        def make(name, address):
            one = service(name, 10, address=address, protocol="udp", port=443, affinity="quic",
                          quic=encrypted_configs())
            rng = random.Random(21)
            for backend in one["backends"]:
                backend["quic_id"] = [rng.randbytes(n).hex() for n, _ in LENGTHS]
            one["backends"][6]["quic_id"] = [server_id for _, server_id, _ in VECTORS]
            return one

        sends = [datagram(family, number, form(bytes.fromhex(cid)))
                 for _, _, cid in VECTORS for family in (4, 6) for number in range(50)
                 for form in (short, long)]
        result = self.same([at(0, packet) for packet in sends], config(*both(make)))
        self.assertEqual(set(self.names(result)), {7})
        # With another key they are nobody's.
        wrong = config(*both(make)).replace(KEY, KEY[::-1])
        result = self.replay([at(0, packet) for packet in sends], wrong)
        self.assertGreater(len(set(self.names(result))), 8)

    def test_a_change_of_configuration(self):
        """Ids of the old and of the new one, while both are there, and the old one's end."""
        old, new = quic_config(0, 3, 4), quic_config(1, 2, 6)
        stages = ([old], [old, new], [new])

        def settings(configs):
            one = plain_service()
            one["quic"] = configs
            for i, backend in enumerate(one["backends"], 1):
                backend["quic_id"] = [f"{i:06x}"] * (old in configs) + \
                    [f"{i:04x}"] * (new in configs)
            return config(one)

        sends = []
        for t in range(3):
            for i in range(1, 11):
                sends.append(at(t, datagram(4, i + 30 * t, short(plain_cid(i, t)))))
                newer = b"\x20" + i.to_bytes(2, "big") + bytes(6)
                sends.append(at(t, datagram(4, i + 30 * t + 15, short(newer))))
        for t in (1, 2):
            self.put(f"{t}.yaml", settings(stages[t]))
        events = items({"at": "0.5s", "reload": "1.yaml"}, {"at": "1.5s", "reload": "2.yaml"})
        found = self.names(self.same(sends, settings(stages[0]), events=events))
        servers = list(range(1, 11))
        self.assertEqual(found[0:20:2], servers)
        self.assertNotEqual(found[1:20:2], servers)
        self.assertEqual(found[20:40:2] + found[21:40:2], servers * 2)
        self.assertNotEqual(found[40:60:2], servers)
        self.assertEqual(found[41:60:2], servers)

    def test_the_length_in_the_first_octet(self):
        """Where it is encoded, an id that says another is nobody's."""
        one = plain_service()
        one["quic"][0]["first_octet_encodes_cid_length"] = True
        right = [datagram(4, i, long(plain_cid(5, 7))) for i in range(50)]
        wrong = [datagram(4, i + 50, long(plain_cid(5, 6))) for i in range(50)]
        found = self.names(self.replay([at(0, packet) for packet in right + wrong],
                                       config(one)))
        self.assertEqual(set(found[:50]), {5})
        self.assertGreater(len(set(found[50:])), 5)

    def test_fragments_and_full_packets(self):
        """The first fragment shows the id, and the others follow."""
        sends = []
        for i in range(1, 11):
            parts = wire.pieces(datagram(4, i, short(plain_cid(i)) + b"x" * 400, ident=i), 208)
            sends += [parts[1], parts[0], parts[2]]
        found = self.names(self.same([at(0, packet) for packet in sends],
                                     config(plain_service())))
        self.assertEqual(found, [i for i in range(1, 11) for _ in range(3)])


if __name__ == "__main__":
    lib.main()
