#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets that are not just a flow's next: echo requests, what is too big for a tunnel,
fragments, ICMP errors, VLAN tags. From real kernels to real kernels, over packet sockets and
XDP sockets.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import concurrent.futures
import contextlib
import errno
import hashlib
import heapq
import ipaddress
import itertools
import json
import os
import pathlib
import random
import re
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

# Beside nginx at lab.PORTS: the servers of this file, by UDP and TCP, one port a mode.
PORTS = {mode: port + 1000 for mode, port in lab.PORTS.items()}
MTU = 1500
# Of outer headers; l2 has none.
OVERHEAD = {4: {"ipip": 20, "gre": 24, "gue": 28, "vxlan": 50},
            6: {"ipip": 40, "gre": 44, "gue": 48, "vxlan": 70}}
IP_BYTES = {4: 20, 6: 40}
UDP_BYTES = 8
TUNNELS = list(OVERHEAD[4])
NAME_BYTES = 2
UPLOAD_BYTES = 100000
DOWNLOAD_BYTES = 100000
# Below MTU and what any tunnel leaves of it, above the least of IPv6.
NARROW_MTU = 1300
# An answer that is lost is not waited for any longer.
ANSWER_S = 2
N_TRIES = 4
# More than one packet.
CUT_BYTES = 1900
# In three, by hand.
N_EACH = 640
N_PINGS = 3
N_FLOOD = 2000
# Pings at a time.
BURST = 400
SEED = 7

# What the modules of socket do not name everywhere.
IP_MTU_DISCOVER, IP_PMTUDISC_DONT = 10, 0
IP_RECVERR, IPV6_RECVERR, MSG_ERRQUEUE = 11, 25, 0x2000
IPV6_HDRINCL = 36
IP_BIT_MF = 0x2000
VLAN, VLAN_OUTER = 0x8100, 0x88a8
PRIORITY_1, PRIORITY_3 = 1 << 13, 3 << 13
DOMAIN = {4: socket.AF_INET, 6: socket.AF_INET6}
LATE_S = 0.3


class Server:
    """On a backend, in one thread, at the service addresses.

    A datagram comes back with the backend's name before it; one that begins with "late" after
    a while. By TCP, a client says first how many bytes it wants; when it has said all, it gets
    a line of JSON, and so many. Errors that the kernel has for a UDP socket are told on stdout.
    """

    def __init__(self, name):
        self.name = name
        self.selector = selectors.DefaultSelector()
        self.late = []  # (when, number, socket, datagram, address)
        self.numbers = itertools.count()
        for family in lab.FAMILIES:
            for port in PORTS.values():
                self.listen(family, port)

    def listen(self, family, port):
        datagrams = socket.socket(DOMAIN[family], socket.SOCK_DGRAM)
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if family == 4:
            datagrams.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        else:
            datagrams.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        connections = socket.socket(DOMAIN[family], socket.SOCK_STREAM)
        connections.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for made in (datagrams, connections):
            made.bind((lab.VIP[family], port))
            made.setblocking(False)
        connections.listen(64)
        self.selector.register(datagrams, selectors.EVENT_READ, self.answer)
        self.selector.register(connections, selectors.EVENT_READ, self.accept)

    def run(self):
        print("ready", flush=True)
        while True:
            timeout = max(0, self.late[0][0] - time.monotonic()) if self.late else None
            for key, _ in self.selector.select(timeout):
                key.data(key.fileobj)
            while self.late and self.late[0][0] <= time.monotonic():
                *_, there, datagram, address = heapq.heappop(self.late)
                self.send(there, datagram, address)

    def answer(self, there):
        while self.tell_error(there):
            pass
        try:
            datagram, address = there.recvfrom(65535)
        except OSError:  # nothing there, or an error that is told already
            return
        if datagram.startswith(b"late"):
            heapq.heappush(self.late, (time.monotonic() + LATE_S, next(self.numbers), there,
                                       datagram, address))
        else:
            self.send(there, datagram, address)

    def send(self, there, datagram, address):
        """An error that the socket has of what it sent before is not about this."""
        for _ in range(len(PORTS)):
            try:
                there.sendto(self.name.encode() + datagram, address)
                break
            except OSError:
                pass

    @staticmethod
    def tell_error(there):
        try:
            datagram, ancillary, _, to = there.recvmsg(65535, 512, MSG_ERRQUEUE)
        except OSError:
            return False
        for _, _, error in ancillary:
            number, _, kind, code, _, _, _ = struct.unpack_from("=IBBBBII", error)
            if there.family == socket.AF_INET:
                by = socket.inet_ntop(socket.AF_INET, error[20:24])
            else:
                by = socket.inet_ntop(socket.AF_INET6, error[24:40])
            print(json.dumps({"errno": number, "type": kind, "code": code, "by": by,
                              "to": to[1], "datagram": datagram[:40].decode("latin-1")}),
                  flush=True)
        return True

    def accept(self, there):
        connection, _ = there.accept()
        threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.setblocking(True)
            with connection.makefile("rb") as said:
                n_wanted = int(said.readline())
                body = said.read()
            connection.sendall(json.dumps({
                "name": self.name, "n": len(body), "sha256": hashlib.sha256(body).hexdigest(),
                "mss": connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)}).encode()
                               + b"\n" + b"x" * n_wanted)


SERVER_LOGS = {}


def setUpModule():  # pylint: disable=invalid-name
    """The servers; and kernels that tell of each error."""
    for name in ("client", "router"):
        NETWORK.run(name, "sh", "-c", "cd /proc/sys/net && echo 0 >ipv4/icmp_ratelimit && "
                    "echo 0 >ipv6/icmp/ratelimit")
    for name in lab.BACKENDS:
        log = NETWORK.folder / name / "server.log"
        SERVER_LOGS[name] = log
        NETWORK.spawn(name, sys.executable, __file__, "--serve", name, log=log)
    for log in SERVER_LOGS.values():
        wait_until(lambda log=log: "ready" in log.read_text(encoding="utf-8"),
                   lambda log=log: log.read_text(encoding="utf-8"))


def told(name):
    """The errors that the kernel of a backend had for its UDP sockets, so far."""
    return [json.loads(line) for line in
            SERVER_LOGS[name].read_text(encoding="utf-8").splitlines() if line[0] == "{"]


CLIENT = concurrent.futures.ThreadPoolExecutor(
    max_workers=2 * len(lab.MODES), initializer=lambda: NETWORK.enter("client"))


def at_client(function, *args):
    return CLIENT.submit(function, *args).result(timeout=lab.TIMEOUT_S)


class Datagrams:
    """A UDP socket of the client's: one flow, whose backend must not change."""

    def __init__(self, family, port, has_df=True):
        self.family = family
        self.backend = None
        self.n_lost = 0
        self.numbers = itertools.count()
        self.socket = socket.socket(DOMAIN[family], socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if not has_df and family == 4:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
        self.socket.connect((lab.VIP[family], port))
        self.address = self.socket.getsockname()

    def close(self):
        self.socket.close()

    def make(self, n_bytes):
        """Like no other of that size, as far as so few bytes can be."""
        number = next(self.numbers)
        return (struct.pack("!I", number) + random.Random(number).randbytes(n_bytes))[:n_bytes]

    def exchange(self, n_bytes):
        """Ask until an answer comes: some packets tell the sender only that they were too
        big."""
        for _ in range(N_TRIES):
            datagram = self.make(n_bytes)
            with contextlib.suppress(OSError):  # EMSGSIZE, once
                self.socket.send(datagram)
                if self.hear(datagram):
                    return
            self.n_lost += 1
        raise AssertionError(f"IPv{self.family}, {self.address[1]} to {self.backend}: no "
                             f"answer to {n_bytes} bytes")

    def hear(self, datagram):
        """Whether the answer to that datagram comes; others may be of tries before."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            try:
                answer = self.socket.recv(65535)
            except TimeoutError:
                return False
            name = answer[:NAME_BYTES].decode()
            if self.backend not in (None, name):
                raise AssertionError(f"IPv{self.family}, {self.address[1]}: from "
                                     f"{self.backend} to {name}")
            self.backend = name
            if answer[NAME_BYTES:] == datagram:
                return True
        return False


def upload(family, port, n_bytes, n_wanted=0, meanwhile=None):
    """By TCP. Returns what the server says of it, and how many bytes came after."""
    body = random.Random(SEED).randbytes(n_bytes)
    with socket.create_connection((lab.VIP[family], port), timeout=20) as connection:
        connection.sendall(f"{n_wanted}\n".encode() + body)
        if meanwhile is not None:
            meanwhile(connection)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as heard:
            said = json.loads(heard.readline() or "{}")
            n_heard = len(heard.read())
    if said.get("sha256") != hashlib.sha256(body).hexdigest():
        raise AssertionError(f"IPv{family}: {said}")
    return said, n_heard


def path_mtu(family):
    """What the client's kernel believes of the way to the service address."""
    route, = json.loads(NETWORK.ip("client", "-j", "route", "get", lab.VIP[family]))
    return next((metrics["mtu"] for metrics in route.get("metrics", []) if "mtu" in metrics),
                MTU)


def forget_path_mtu(name="client"):
    for family in lab.FAMILIES:
        NETWORK.ip(name, f"-{family}", "route", "flush", "cache")


def packet_service(family, mode, protocol, **keys):
    return lab.service(family, mode, name=f"{protocol}-{mode}-v{family}", protocol=protocol,
                       port=PORTS[mode], **keys)


def ip_header(family, n_bytes, ident, offset, has_more):
    """From the client to the service address, of UDP. The kernel adds an IPv4 checksum."""
    ends = (ipaddress.ip_address(lab.CLIENT[family]).packed
            + ipaddress.ip_address(lab.VIP[family]).packed)
    if family == 4:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + n_bytes, ident,
                           (IP_BIT_MF if has_more else 0) | offset >> 3, 64, 17, 0) + ends
    return (struct.pack("!IHBB", 6 << 28, 8 + n_bytes, 44, 64) + ends
            + struct.pack("!BBHI", 17, 0, offset | has_more, ident))


def checksum(data):
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def pseudo_header(family, protocol, n_bytes):
    return (ipaddress.ip_address(lab.CLIENT[family]).packed
            + ipaddress.ip_address(lab.VIP[family]).packed
            + struct.pack("!IHBB", n_bytes, 0, 0, protocol))


def udp_packet(family, sport, dport, payload):
    head = struct.pack("!HHHH", sport, dport, UDP_BYTES + len(payload), 0)
    total = checksum(pseudo_header(family, 17, len(head + payload)) + head + payload)
    return head[:6] + struct.pack("!H", total or 0xffff) + payload


def fragments_of(family, ident, datagram, n_each):
    """IP packets of a UDP datagram, in order."""
    return [ip_header(family, len(datagram[at:at + n_each]), ident, at,
                      at + n_each < len(datagram)) + datagram[at:at + n_each]
            for at in range(0, len(datagram), n_each)]


def send_raw(family, packets):
    """From the client, as they are; a number among them is a pause in seconds."""
    with socket.socket(DOMAIN[family], socket.SOCK_RAW, socket.IPPROTO_RAW) as out:
        if family == 6:
            out.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
        for packet in packets:
            if isinstance(packet, float):
                time.sleep(packet)
            else:
                out.sendto(packet, (lab.VIP[family], 0))


def send_frame(macs, tags, family, packet):
    """To the balancer by the router's end of its cable."""
    frame = macs + b"".join(struct.pack("!HH", *tag) for tag in tags) + (
        b"\x08\x00" if family == 4 else b"\x86\xdd") + packet

    def send():
        NETWORK.enter("router")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind((lab.CABLE["balancer"], 0))
            out.send(frame)

    sender = threading.Thread(target=send)
    sender.start()
    sender.join()


def whole_packet(family, protocol, payload):
    ends = [ipaddress.ip_address(address[family]).packed for address in (lab.CLIENT, lab.VIP)]
    if family == 6:
        return b"".join((struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64), *ends,
                         payload))
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0)
    total = checksum(head + b"".join(ends))
    return head[:10] + struct.pack("!H", total) + b"".join(ends) + payload


def udp_to_service(family, mark):
    return whole_packet(family, 17, udp_packet(family, 1, PORTS["ipip"], mark))


def n_fragments(family, n_bytes):
    """As which a kernel sends so many bytes after the IP header."""
    if n_bytes <= MTU - IP_BYTES[family]:
        return 1
    return -(-n_bytes // ((MTU - IP_BYTES[family] - (8 if family == 6 else 0)) // 8 * 8))


def echo_request(family, mark):
    message = struct.pack("!BBHHH", 8 if family == 4 else 128, 0, 0, 1, 1) + mark
    total = checksum(message) if family == 4 else checksum(pseudo_header(6, 58, len(message))
                                                           + message)
    return whole_packet(family, 1 if family == 4 else 58,
                        message[:2] + struct.pack("!H", total) + message[4:])


def tags_of(frame):
    found = []
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        found.append(struct.unpack_from("!HH", frame, at))
        at += 4
    return found


# Bytes of datagrams; the answer to the largest is what IPv4 has room for.
SIZES = [1, 100, 1400, 1452, 1472, 1473, CUT_BYTES, 1, 3000, 9000, 20000, 65507 - NAME_BYTES, 1]


def exchange_all(flow):
    for size in SIZES:
        flow.exchange(size)


def is_too_big(frame):
    return (frame[12:14] == b"\x08\x00" and frame[23] == 1 and frame[34:36] == b"\x03\x04"
            or frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 2)


def source(frame):
    at = slice(26, 30) if frame[12:14] == b"\x08\x00" else slice(22, 38)
    return str(ipaddress.ip_address(frame[at]))


def is_fragment(frame):
    """Of the outermost packet."""
    if frame[12:14] == b"\x86\xdd":
        return frame[20] == 44
    return struct.unpack_from("!H", frame, 20)[0] & 0x3fff != 0


def tunnels(frames):
    """Those that left for a backend."""
    return [frame for frame in frames if is_tunnel(frame)]


def is_tunnel(frame):
    return frame[12:14] in (b"\x08\x00", b"\x86\xdd") and source(frame) in lab.OWN.values() \
        and (frame[23] in (4, 17, 47) if frame[12] == 8 else frame[20] in (17, 44))


class PacketCase(lab.LabCase):
    driver = "net_af_packet"
    workers = 2

    def begin(self, *services, **dataplane):
        """With counters that stand for what comes by the balancer's cable from now on."""
        forget_path_mtu()
        daemon = lab.Daemon(self.driver, self.workers)
        self.addCleanup(daemon.remove)
        daemon.write(*services, **dataplane)
        daemon.start()
        self.sent_before, self.stats_before = self.quiet(daemon)
        return daemon

    @staticmethod
    def n_missed(daemon):
        """Of what was sent to the balancer: there was no room for it."""
        port, = daemon.json("status")["ports"]
        return sum(port["missed"].values())

    def quiet(self, daemon):
        """Frames sent to the balancer, less those that its port missed, and its report, at a
        moment when nothing is under way."""
        def read():
            shown = json.loads(NETWORK.ip("router", "-s", "-j", "link", "show",
                                          lab.CABLE["balancer"]))
            return (shown[0]["stats64"]["tx"]["packets"] - self.n_missed(daemon),
                    daemon.json("stats"))

        def is_quiet():
            before = read()
            time.sleep(0.1)
            after = read()
            return after if (after[0], after[1]["packets"]) == (
                before[0], before[1]["packets"]) else None

        return wait_until(is_quiet, "the end of all traffic")

    def end(self, daemon, **drops):
        """Each frame has one verdict, and only these were dropped. Returns the report."""
        sent, stats = self.quiet(daemon)
        packets = stats["packets"]
        self.assertEqual(packets["received"], packets["forwarded"] + packets["replied"]
                         + packets["to_kernel"] + packets["dropped"])
        self.assertEqual(packets["received"] - self.stats_before["packets"]["received"],
                         sent - self.sent_before)
        self.assertEqual(packets["dropped"], sum(stats["drops"].values()))
        self.assertEqual(packets["forwarded"],
                         sum(one["packets"] for one in stats["services"]))
        self.assertEqual({reason: n for reason, n in stats["drops"].items() if n > 0}, drops)
        daemon.stop()
        return stats


class EachDriver:
    @staticmethod
    def services(protocol, *modes, **keys):
        return [packet_service(family, mode, protocol, **keys)
                for family in lab.FAMILIES for mode in modes]

    def ping(self, family, *args, status=0):
        """Returns how many requests were sent, and how many answers came; with -w, as many
        more as it takes."""
        done = subprocess.run(
            NETWORK.command("client", "ping", f"-{family}", "-n", "-q", "-i", "0.005", *args,
                            lab.VIP[family]),
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=lab.TIMEOUT_S)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout)
        self.assertNotIn("corrupted", done.stdout)
        found = re.search(r"(\d+) packets transmitted, (\d+) received", done.stdout)
        return int(found[1]), int(found[2])

    def test_a_service_address_answers_ping(self):
        """Of every size, in fragments too; so often a second and no more."""
        daemon = self.begin(*self.services("udp", "ipip"))
        n_sent = 0
        for family in lab.FAMILIES:
            for size in (0, 1, 56, MTU - IP_BYTES[family] - 8, CUT_BYTES, 65507):
                with self.subTest(family=family, size=size):
                    n, n_heard = self.ping(family, "-M", "want", "-c", N_PINGS, "-w", "10",
                                           "-s", size)
                    self.assertGreaterEqual(n_heard, N_PINGS)
                    n_sent += n * n_fragments(family, 8 + size)
        _, stats = self.quiet(daemon)
        self.assertEqual(stats["packets"]["replied"]
                         - self.stats_before["packets"]["replied"] + self.n_missed(daemon),
                         n_sent)
        for family in lab.FAMILIES:
            for _ in range(N_FLOOD // BURST):
                n, _ = self.ping(family, "-c", BURST, "-l", BURST, "-W", "0.05",
                                 status=None)
                n_sent += n
        time.sleep(0.1)  # until it may answer again
        for family in lab.FAMILIES:
            n, n_heard = self.ping(family, "-c", "1", "-w", "10")
            self.assertGreaterEqual(n_heard, 1)
            n_sent += n
        _, stats = self.quiet(daemon)
        n_dropped = stats["drops"]["rate_limited"]
        self.assertGreater(n_dropped, N_FLOOD)
        self.assertEqual(stats["packets"]["replied"] - self.stats_before["packets"]["replied"]
                         + n_dropped + self.n_missed(daemon), n_sent)
        self.end(daemon, rate_limited=n_dropped)

    def test_pings_for_a_backend_come_whole(self):
        """Where echo is a backend's it gets all fragments of a request, up to 64 KiB."""
        daemon = self.begin(packet_service(4, "ipip", "udp", echo="forward"),
                            packet_service(6, "l2", "udp", echo="forward"))
        for family in lab.FAMILIES:
            for size in (56, CUT_BYTES, 65507):
                with self.subTest(family=family, size=size):
                    _, n_heard = self.ping(family, "-M", "dont", "-c", N_PINGS, "-w", "10",
                                           "-s", size)
                    self.assertGreaterEqual(n_heard, N_PINGS)
        stats = self.end(daemon)
        self.assertEqual(stats["packets"]["replied"], self.stats_before["packets"]["replied"])

    def test_uploads_learn_what_fits(self):
        """Segments as large as the client's own link takes: its kernel is told by the service
        address how much less fits the tunnel, and sends that."""
        clamps = {"l2": 1000, "gre": "auto"}
        daemon = self.begin(*(
            packet_service(family, mode, "tcp",
                           **({"mss_clamp": clamps[mode]} if mode in clamps else {}))
            for family in lab.FAMILIES for mode in lab.MODES))
        heard = lab.Capture(self.scratch(), "client", "eth0", "in")
        for mode in lab.MODES:
            forget_path_mtu()
            for family in lab.FAMILIES:
                with self.subTest(mode=mode, family=family):
                    overhead = OVERHEAD[family].get(mode, 0)
                    said, _ = at_client(upload, family, PORTS[mode], UPLOAD_BYTES)
                    self.assertEqual(path_mtu(family), MTU - overhead)
                    # And what the server may send, of which a time stamp takes 12.
                    most = MTU - IP_BYTES[family] - 20
                    if mode in clamps:
                        most = clamps[mode] if clamps[mode] != "auto" else most - overhead
                    self.assertEqual(said["mss"], most - 12)
        stats = self.end(daemon)
        errors = [frame for frame in heard.stop() if is_too_big(frame)]
        self.assertGreaterEqual(len(errors), len(lab.FAMILIES) * len(TUNNELS))
        self.assertEqual(stats["packets"]["replied"]
                         - self.stats_before["packets"]["replied"], len(errors))
        self.assertEqual({source(frame) for frame in errors}, set(lab.VIP.values()))

    def scratch(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-lab-"))
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def test_datagrams_stay_whole_and_where_they_are(self):
        """Of one byte to 64 KiB, which the client's kernel cuts, while backends come and go."""
        daemon = self.begin(*self.services("udp", *lab.MODES))
        flows = [at_client(Datagrams, family, PORTS[mode])
                 for family in lab.FAMILIES for mode in lab.MODES]
        for one in flows:
            self.addCleanup(one.close)
            one.exchange(1)
        runs = [CLIENT.submit(exchange_all, one) for one in flows]
        n_changes = 0
        while n_changes == 0 or not all(run.done() for run in runs):
            for args in self.changes():
                daemon.ctl(*args)
                n_changes += 1
        for run in runs:
            run.result()
        self.assertGreater(len({one.backend for one in flows}), 1)
        # Once for each tunnel that its kernel did not know the MTU of yet.
        for one in flows:
            self.assertLessEqual(one.n_lost, len(TUNNELS))
        self.put_in_order(daemon)

    @staticmethod
    def changes():
        names = [f"udp-{mode}-v{family}" for family in lab.FAMILIES for mode in lab.MODES]
        for name in names:
            family = int(name[-1])
            address = lab.near_address if "-l2-" in name else lab.farm_address
            yield "backend", "add", f"{name}/guest", address(family, 2)
        yield "backend", "drain", *(f"{name}/s1" for name in names)
        yield "backend", "drain", *(f"{name}/guest" for name in names)
        yield "backend", "up", *(f"{name}/s1" for name in names)
        yield "backend", "remove", *(f"{name}/guest" for name in names)

    def put_in_order(self, daemon):
        """Fragments that overtake their first one wait for it; in vain, for a second."""
        orders = {"the first is late": (1, 2, 0.3, 0), "backwards": (2, 1, 0),
                  "one before": (1, 0, 2), "one twice": (0, 1, 1, 2)}
        for family in lab.FAMILIES:
            one = at_client(Datagrams, family, PORTS["gue"])
            self.addCleanup(one.close)
            one.exchange(10)
            for ident, (what, order) in enumerate(orders.items(), 100):
                with self.subTest(what, family=family):
                    datagram = one.make(CUT_BYTES)
                    packets = fragments_of(family, ident, udp_packet(
                        family, one.address[1], PORTS["gue"], datagram), N_EACH)
                    at_client(send_raw, family, [place if isinstance(place, float)
                                                 else packets[place] for place in order])
                    self.assertTrue(one.hear(datagram))
            packets = fragments_of(family, 99, udp_packet(family, 1, PORTS["gue"], datagram),
                                   N_EACH)
            at_client(send_raw, family, packets[1:])
        wait_until(lambda: daemon.json("stats")["drops"]["fragment_unmatched"] == 4,
                   lambda: f"the wait is over: {daemon.json('stats')['drops']}")
        # Where an ICMP error told the client the MTU, the others of that datagram.
        n_too_big = daemon.json("stats")["drops"]["too_big"]
        told = {"too_big": n_too_big} if n_too_big > 0 else {}
        stats = self.end(daemon, fragment_unmatched=4, **told)
        # The kernel has put nothing together before a packet socket had it.
        self.assertEqual(NETWORK.snmp("balancer", "Ip.ReasmReqds"), 0)
        if self.workers > 1:
            self.assertGreater(min(one["flow_entries"] for one in stats["workers"]), 0)

    def test_errors_find_the_backend_of_their_flow(self):
        """Of the client itself and of a router on the way; after many backends were added."""
        # So many changes take their time where much else runs; no flow is forgotten meanwhile.
        daemon = self.begin(*self.services("udp", "ipip"), *self.services("tcp", "gue"),
                            flow_timeout={"udp": "1h"})
        # That all have one backend by chance has odds of one to 10^7.
        flows = [at_client(Datagrams, family, PORTS["ipip"])
                 for family in lab.FAMILIES for _ in range(8)]
        is_changed = threading.Event()
        for one in flows:
            one.exchange(10)
        downloads = [CLIENT.submit(upload, family, PORTS["gue"], 1, DOWNLOAD_BYTES,
                                   lambda _: is_changed.wait()) for family in lab.FAMILIES]
        self.addCleanup(is_changed.set)
        wait_until(lambda: self.n_flows(daemon, "tcp") >= len(downloads),
                   "the downloads' connections")
        for family in lab.FAMILIES:
            for name in (f"udp-ipip-v{family}", f"tcp-gue-v{family}"):
                for k in range(20):  # where nobody is
                    daemon.ctl("backend", "add", f"{name}/new-{k}",
                               lab.farm_address(family, 80 + k))

        before = {name: told(name) for name in lab.BACKENDS}
        for one in flows:
            one.socket.send(b"late")
            one.close()
        wanted = {name: sorted(one.address[1] for one in flows if one.backend == name)
                  for name in lab.BACKENDS}
        self.assertGreater(sum(len(ports) > 0 for ports in wanted.values()), 1)

        def refused():
            return {name: sorted(error["to"] for error in told(name)[len(before[name]):]
                                 if error["errno"] == errno.ECONNREFUSED)
                    for name in lab.BACKENDS}

        wait_until(lambda: refused() == wanted, lambda: f"{refused()}, not {wanted}; "
                   f"{daemon.json('stats')['drops']}", timeout_s=10)

        self.addCleanup(NETWORK.ip, "router", "link", "set", "out", "mtu", MTU)
        for name in lab.BACKENDS:
            self.addCleanup(forget_path_mtu, name)
        NETWORK.ip("router", "link", "set", "out", "mtu", NARROW_MTU)
        is_changed.set()
        for one in downloads:
            _, n_heard = one.result(timeout=lab.TIMEOUT_S)
            self.assertEqual(n_heard, DOWNLOAD_BYTES)
        self.end(daemon)

    @staticmethod
    def n_flows(daemon, protocol):
        return sum(one["flows"] for one in daemon.json("stats")["services"]
                   if one["name"].startswith(protocol))

    def test_what_may_be_cut_is_cut(self):
        """Without DF the client hears of nothing. Within the tunnel, or the tunnel's own
        packet where the backend's kernel puts that together; or not at all."""
        def services(fragment):
            return [packet_service(4, mode, "udp", fragment=fragment) for mode in TUNNELS] + [
                packet_service(4, "l2", "udp", forward="vxlan", fragment=fragment,
                               backends=[lab.backend(6, "vxlan", k) for k in (1, 2, 3)])]

        rows = [("inner", lab.MODES), ("outer", ["vxlan", "l2"])]
        daemon = self.begin(*services("inner"))
        one_packet = MTU - IP_BYTES[4] - UDP_BYTES
        for fragment, modes in rows:
            daemon.write(*services(fragment))
            daemon.ctl("reload")
            for mode in modes:
                with self.subTest(fragment=fragment, mode=mode):
                    left = lab.Capture(self.scratch(), "router", lab.CABLE["balancer"], "in")
                    one = at_client(Datagrams, 4, PORTS[mode], False)
                    self.addCleanup(one.close)
                    for size in (one_packet, CUT_BYTES):
                        one.exchange(size)
                    self.assertEqual(one.n_lost, 0)
                    # Two of one packet; the other's fragments, the first of them in two.
                    n = 2 + 3
                    wait_until(lambda: len(tunnels(left.frames())) >= n, "all that has left")
                    frames = tunnels(left.stop())
                    self.assertEqual(len(frames), n)
                    self.assertEqual(sum(is_fragment(frame) for frame in frames),
                                     4 if fragment == "outer" else 0)
        self.assertEqual(path_mtu(4), MTU)
        daemon.write(*services("drop"))
        daemon.ctl("reload")
        one = at_client(Datagrams, 4, PORTS["ipip"], False)
        self.addCleanup(one.close)
        one.exchange(one_packet - OVERHEAD[4]["ipip"])
        one.socket.send(one.make(one_packet))
        wait_until(lambda: daemon.json("stats")["packets"]["dropped"] > 0, "it is dropped")
        self.end(daemon, too_big=1)


    def test_tags_are_those_of_the_port(self):
        """Frames of a trunk, as they come and as they leave; by the router's end of the cable,
        for not every kernel has VLAN interfaces."""
        services = self.services("udp", "ipip")
        daemon = self.begin(*services)
        left = lab.Capture(self.scratch(), "router", lab.CABLE["balancer"], "in")
        macs = b"".join(bytes.fromhex(json.loads(NETWORK.ip(
            name, "-j", "link", "show", interface))[0]["address"].replace(":", ""))
                        for name, interface in (("balancer", "wan0"), ("router", "near")))
        for vlan, rows in self.tag_rows():
            daemon.write(*services, ports=[daemon.port(vlan=vlan)])
            daemon.ctl("reload")
            for tags, wanted in rows:
                for family in lab.FAMILIES:
                    with self.subTest(vlan=vlan, tags=tags, family=family):
                        self.assertEqual(tags_of(self.what_leaves(
                            left, macs, tags, family, udp_to_service)), wanted)
                        # What is answered goes back to where it came from.
                        self.assertEqual(tags_of(self.what_leaves(
                            left, macs, tags, family, echo_request)), self.as_received(tags))
        left.stop()
        self.end(daemon)

    @staticmethod
    def what_leaves(left, macs, tags, family, make):
        mark = os.urandom(8)
        send_frame(macs, tags, family, make(family, mark))
        return wait_until(lambda: next((one for one in left.frames() if mark in one), None),
                          "it leaves")

    def as_received(self, tags):
        """DPDK's packet sockets do not tell what kind a tag is that the kernel took off."""
        if self.driver == "net_af_packet":
            return [(VLAN, tci) for _, tci in tags[:1]] + tags[1:]
        return tags

    def tag_rows(self):
        """What vlan says of the port, and for it: tags of a frame that comes, and leaves."""
        one = [(VLAN, PRIORITY_3 | 5)]
        two = [(VLAN_OUTER, PRIORITY_1 | 100), (VLAN, PRIORITY_3 | 5)]
        return [
            ("keep", [([], []), (one, one), (two, self.as_received(two))]),
            ("none", [([], []), (one, []), (two, [])]),
            (300, [([], [(VLAN, 300)]), (one, [(VLAN, PRIORITY_3 | 300)]),
                   (two, [(VLAN, PRIORITY_1 | 300)])]),
        ]


class PacketSockets(EachDriver, PacketCase):
    workers = 1


class PacketSocketsTwoWorkers(EachDriver, PacketCase):
    pass


class XdpSockets(EachDriver, PacketCase):
    driver = "net_af_xdp"
    workers = 1


class XdpSocketsTwoWorkers(EachDriver, PacketCase):
    driver = "net_af_xdp"


def main():
    if sys.argv[1:2] == ["--serve"]:
        Server(sys.argv[2]).run()
    lab.main()


if __name__ == "__main__":
    main()
