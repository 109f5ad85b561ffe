# SPDX-License-Identifier: BSD-3-Clause
"""A small network for shuntd, in network namespaces of its own.

    client ---- router ==== near ==== balancer
                  |            \\
                  |             \\ (l2)
                  +===== farm ==== three backends, with the service addresses on lo

near and farm are bridges in the router's namespace. Requests go from the client through the
router to the balancer and on to a backend, answers from the backend through the router
straight to the client. The router has a second way into near, `side`, so that next hops can
change. A test that wants it adds a second balancer to near. SHUNTD, SHUNTCTL and SHUNT_DECAP
name the programs.
"""

import contextlib
import ctypes
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SHUNTD = os.environ.get("SHUNTD", "")
SHUNTCTL = os.environ.get("SHUNTCTL", "")
SHUNT_DECAP = os.environ.get("SHUNT_DECAP", "")
# Of one command, start or change to be seen, also under sanitizers on a busy machine.
TIMEOUT_S = 60

DONE, FAILED, BAD_USAGE = 0, 1, 2
FAMILIES = (4, 6)
N_BACKENDS = 3
BACKENDS = [f"s{k}" for k in range(1, N_BACKENDS + 1)]

CLIENT = {4: "203.0.113.7", 6: "2001:db8:113::7"}
VIP = {4: "198.51.100.10", 6: "2001:db8:51::10"}
OWN = {4: "192.0.2.1", 6: "2001:db8:2::1"}
SECOND_OWN = {4: "192.0.2.2", 6: "2001:db8:2::2"}
ROUTER = {4: "192.0.2.254", 6: "2001:db8:2::fe"}
SIDE = {4: "192.0.2.253", 6: "2001:db8:2::fd"}
SIDE_MAC = "02:00:00:00:00:fd"
CLIENTS = {4: "203.0.113.0/24", 6: "2001:db8:113::/64"}
FARM = {4: "10.0.0.0/24", 6: "2001:db8:a::/64"}
FARM_ROUTER = {4: "10.0.0.1", 6: "2001:db8:a::1"}
LENGTH = {4: 24, 6: 64}
HOST = {4: 32, 6: 128}

MODES = ["ipip", "gre", "gue", "vxlan", "l2"]
# One service a forward mode, at a port of its own; the first is also the one of one-mode tests.
PORTS = {mode: 8001 + place for place, mode in enumerate(MODES)}
VXLAN_PORT = 4789
# Of downloads: seven seconds of it, or three.
LONG_BYTES = {"/long": 2100000, "/longish": 900000}
LONG_RATE = "300k"
# Of the router's end of a balancer's or a backend's cable; what goes out there arrives.
CABLE = {"balancer": "near-b", "second": "near-b2"}

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def farm_address(family, k):
    """Of the k-th backend, where a tunnel ends."""
    return f"10.0.0.{10 + k}" if family == 4 else f"2001:db8:a::{10 + k}"


def near_address(family, k):
    """Of the k-th backend, on the balancer's own segment."""
    return f"192.0.2.{10 + k}" if family == 4 else f"2001:db8:2::{10 + k}"


def vxlan_mac(address):
    return ":".join(["02", "00", *(f"{byte:02x}"
                                   for byte in ipaddress.ip_address(address).packed[-4:])])


def run(*command, **keys):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S,
                          **keys)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def wait_until(is_true, what, timeout_s=TIMEOUT_S, pause_s=0.02):
    """Until is_true() is; what it gave. what: in words, or a function that finds them."""
    end = time.monotonic() + timeout_s
    while True:
        found = is_true()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not in {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(pause_s)


def stop(process, number=signal.SIGTERM):
    """End a process, if it has not ended. Returns its exit status."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class Network:
    """The namespaces, and what runs in them for as long as the tests do."""

    def __init__(self):
        self.names = ["client", "router", "balancer", *BACKENDS]
        self.processes = []
        self.folder = None

    def netns(self, name):
        return f"shunt-lab-{os.getpid()}-{name}"

    def ip(self, name, *args):
        return run("ip", "-n", self.netns(name), *args)

    def batch(self, name, *lines):
        run("ip", "-n", self.netns(name), "-batch", "-", input="\n".join(lines) + "\n")

    def command(self, name, *args):
        """ip netns exec becomes the program, so that its process is the program's."""
        return ["ip", "netns", "exec", self.netns(name), *map(str, args)]

    def run(self, name, *args, **keys):
        return run(*self.command(name, *args), **keys)

    def enter(self, name):
        """This thread, for good: sockets that it makes belong to that namespace."""
        with open(f"/run/netns/{self.netns(name)}", "rb") as there:
            if LIBC.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def snmp(self, name, key):
        """A counter of the kernel's of a namespace: "Tcp.InSegs", say; both families in it. Of
        TcpExt also."""
        group, field = key.split(".")
        lines = [line.split() for line in
                 self.run(name, "cat", "/proc/net/snmp", "/proc/net/netstat").splitlines()
                 if line.startswith(group + ":")]
        return int(lines[1][lines[0].index(field)])

    def rx_packets(self, name, interface):
        shown = json.loads(self.ip(name, "-s", "-j", "link", "show", interface))
        return shown[0]["stats64"]["rx"]["packets"]

    def has_xdp(self, name, interface):
        return "xdp" in json.loads(self.ip(name, "-j", "link", "show", interface))[0]

    def has_interface(self, name, interface):
        links = json.loads(self.ip(name, "-j", "link", "show"))
        return interface in [link["ifname"] for link in links]

    def make(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-lab-"))
        for name in self.names:
            self.make_namespace(name)
        self.make_router()
        self.make_client()
        self.batch("balancer", "link set wan0 up")
        for k, name in enumerate(BACKENDS, 1):
            self.make_backend(name, k)

    def make_namespace(self, name):
        run("ip", "netns", "add", self.netns(name))
        self.run(name, "sh", "-c", "cd /proc/sys/net && "
                 "for k in all default; do echo 0 >ipv4/conf/$k/rp_filter; "
                 "echo 0 >ipv6/conf/$k/accept_dad; echo 1 >ipv4/conf/$k/arp_ignore; "
                 "echo 0 >ipv6/conf/$k/router_solicitations; done; "
                 "echo 0 >ipv4/ip_forward; echo 0 >ipv6/conf/all/forwarding")
        self.batch(name, "link set lo up")

    def add_second_balancer(self):
        """For as long as the network is: a Daemon's place "second". The router spreads flows
        by their ports, once it has two ways to a service."""
        if "second" in self.names:
            return
        self.names.append("second")
        self.make_namespace("second")
        cable = CABLE["second"]
        self.batch("router", f"link add {cable} type veth peer name wan0 netns "
                   f"{self.netns('second')}", f"link set {cable} master near up")
        self.batch("second", "link set wan0 up")
        # By addresses, protocol and ports of each packet. Policy 1 says so too, but takes the
        # sending socket's own hash where that is in this kernel: another after each timeout.
        self.run("router", "sh", "-c", "cd /proc/sys/net && for k in ipv4 ipv6; do "
                 "echo 0x37 >$k/fib_multipath_hash_fields && "
                 "echo 3 >$k/fib_multipath_hash_policy || exit 1; done")

    def serve_by(self, *gateways):
        """The router's ways to the service addresses: one or several dicts by family."""
        for family in FAMILIES:
            hops = [word for one in gateways for word in ("nexthop", "via", one[family])]
            self.ip("router", "route", "replace", VIP[family], *hops)

    def make_router(self):
        self.run("router", "sh", "-c", "cd /proc/sys/net && echo 1 >ipv4/ip_forward && "
                 "echo 1 >ipv6/conf/all/forwarding")
        links = [f"link add out type veth peer name eth0 netns {self.netns('client')}",
                 "link add near type bridge", "link add farm type bridge",
                 f"link add {CABLE['balancer']} type veth peer name wan0 "
                 f"netns {self.netns('balancer')}",
                 f"link add side address {SIDE_MAC} type veth peer name near-side"]
        members = [("near", CABLE["balancer"]), ("near", "near-side")]
        for name in BACKENDS:
            for bridge, there in (("near", "near0"), ("farm", "eth0")):
                links.append(f"link add {bridge}-{name} type veth peer name {there} "
                             f"netns {self.netns(name)}")
                members.append((bridge, f"{bridge}-{name}"))
        for bridge, interface in members:
            links.append(f"link set {interface} master {bridge} up")
        for interface in ("near", "farm", "side", "out"):
            links.append(f"link set {interface} up")
        for family in FAMILIES:
            client_router = str(ipaddress.ip_address(CLIENT[family]) - 6)
            for address, interface in (
                    (f"{client_router}/{LENGTH[family]}", "out"),
                    (f"{ROUTER[family]}/{LENGTH[family]}", "near"),
                    (f"{SIDE[family]}/{HOST[family]}", "side"),
                    (f"{FARM_ROUTER[family]}/{LENGTH[family]}", "farm")):
                links.append(f"address add {address} dev {interface}"
                             + (" nodad" if family == 6 else ""))
            links.append(f"route add {VIP[family]} via {OWN[family]}")
        self.batch("router", *links)

    def make_client(self):
        lines = ["link set eth0 up"]
        for family in FAMILIES:
            lines.append(f"address add {CLIENT[family]}/{LENGTH[family]} dev eth0")
            lines.append(f"route add default via {ipaddress.ip_address(CLIENT[family]) - 6}")
        self.batch("client", *lines)
        # The kernel's packet sockets and XDP see what it has left for a NIC to do: nothing.
        for name in ("client", "router"):
            interface = "eth0" if name == "client" else "out"
            self.run(name, "ethtool", "-K", interface, "tx", "off", "tso", "off", "gso",
                     "off", "gro", "off")

    def make_backend(self, name, k):
        lines = ["link set eth0 up", "link set near0 up"]
        for family in FAMILIES:
            own = farm_address(family, k)
            lines += [f"address add {own}/{LENGTH[family]} dev eth0",
                      f"address add {near_address(family, k)}/{LENGTH[family]} dev near0",
                      f"address add {VIP[family]}/{HOST[family]} dev lo",
                      f"route add default via {FARM_ROUTER[family]}",
                      f"link add vxlan{family} address {vxlan_mac(own)} type vxlan id 0 "
                      f"local {own} dstport {VXLAN_PORT} nolearning",
                      f"link set vxlan{family} up"]
        self.batch(name, *lines)
        self.serve(name)
        self.decapsulate(name)

    def serve(self, name):
        """nginx: its name at /, and megabytes of it at /long*, which take their time."""
        folder = self.folder / name
        folder.mkdir()
        for path, n_bytes in LONG_BYTES.items():
            (folder / path[1:]).write_text(f"{name}\n" * (n_bytes // 3), encoding="ascii")
        listen = "".join(f"listen {port}; listen [::]:{port};" for port in PORTS.values())
        (folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {folder}/pid;
            error_log {folder}/error.log;
            events {{ worker_connections 4096; }}
            http {{
                access_log off; keepalive_timeout 0; default_type text/plain;
                client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
                fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
                scgi_temp_path {folder}/scgi;
                server {{
                    {listen}
                    root {folder};
                    location / {{ return 200 "{name}\\n"; }}
                    location /long {{ limit_rate {LONG_RATE}; }}
                    location /keep {{
                        keepalive_timeout 600; keepalive_requests 1000000;
                        return 200 "{name}\n";
                    }}
                }}
            }}
            """, encoding="ascii")
        self.spawn(name, shutil.which("nginx", path=PATH), "-p", folder, "-c",
                   folder / "nginx.conf", "-e", folder / "error.log")
        wait_until(lambda: f":{PORTS['l2']} " in self.run(name, "ss", "-Hltn"),
                   lambda: (folder / "error.log").read_text(encoding="utf-8"))

    def decapsulate(self, name):
        log = self.folder / name / "decap.log"
        self.spawn(name, SHUNT_DECAP, "--interface", "eth0", "--service", VIP[4],
                   "--service", VIP[6], log=log)
        wait_until(lambda: "attached" in log.read_text(encoding="utf-8"),
                   lambda: f"shunt-decap: {log.read_text(encoding='utf-8')}")

    def decap_counters(self, name):
        return json.loads(self.run(name, SHUNT_DECAP, "--interface", "eth0", "--show",
                                   "--json"))

    def spawn(self, name, *command, log=None):
        with open(log or os.devnull, "wb") as output:
            process = subprocess.Popen(self.command(name, *command), stdout=output,
                                       stderr=output)
        self.processes.append(process)
        return process

    def remove(self):
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                stop(process)
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", self.netns(name)], check=False,
                           stderr=subprocess.DEVNULL)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


NETWORK = Network()
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def backend(family, mode, k, **keys):
    address = near_address if mode == "l2" else farm_address
    return {"name": BACKENDS[k - 1], "address": address(family, k), **keys}


def service(family, mode, **keys):
    """The service of a forward mode, named MODE-vFAMILY."""
    made = {"name": f"{mode}-v{family}", "address": VIP[family], "protocol": "tcp",
            "port": PORTS[mode], "forward": mode,
            "table": {"algorithm": "maglev", "size": 1009},
            "backends": [backend(family, mode, k) for k in range(1, N_BACKENDS + 1)]}
    made.update(keys)
    return made


class Daemon:
    """A shuntd in the balancer's namespace, or in the second one's."""

    def __init__(self, driver, workers, place="balancer"):
        self.driver = driver
        self.workers = workers
        self.place = place
        self.own = OWN if place == "balancer" else SECOND_OWN
        # Where the kernel takes part: the twin, or the interface itself.
        self.interface = "wan" if driver == "net_af_xdp" else "wan0"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-lab-"))
        self.config = self.folder / "shunt.yaml"
        self.socket = self.folder / "shunt.sock"
        self.log = self.folder / "log"
        # Of DPDK's XDP sockets, not ours: libxdp keeps what it once made.
        suppressions = self.folder / "lsan"
        suppressions.write_text("leak:libxdp.so\n", encoding="ascii")
        self.environment = {**os.environ, "LSAN_OPTIONS": f"suppressions={suppressions}"}
        self.more = {}
        self.process = None

    def port(self, **keys):
        return {"name": "wan", "device": f"{self.driver},iface=wan0", "mtu": 1500,
                "addresses": [f"{self.own[family]}/{LENGTH[family]}" for family in FAMILIES],
                **keys}

    def write(self, *services, **dataplane):
        """The configuration file; JSON is YAML too. Not a half of it is ever seen."""
        new = self.folder / "new.yaml"
        new.write_text(json.dumps({
            "dataplane": {
                "workers": self.workers, "kernel": "tap", "idle": "adaptive", "idle_sleep": "1ms",
                "flow_entries": 65536,
                "ports": [self.port()],
                **dataplane},
            "control": {"socket": str(self.socket), "metrics": "off"},
            "services": services, **self.more}, indent=1), encoding="utf-8")
        new.rename(self.config)

    def words(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def start(self):
        """With addresses and routes as an administrator gives them, and next hops known."""
        if self.driver == "net_af_packet":
            self.give_addresses("wan0")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                NETWORK.command(self.place, SHUNTD, "--config", self.config),
                stderr=log, env=self.environment)
        wait_until(lambda: "shuntd: ready" in self.words() or self.process.poll() is not None,
                   self.words)
        if self.process.poll() is not None:
            raise AssertionError(f"shuntd does not start:\n{self.words()}")
        for family in FAMILIES:
            self.route(family, ROUTER[family])
            self.route(family, ROUTER[family], CLIENTS[family])
        self.wait_for_hops()

    def give_addresses(self, interface):
        """A kernel with a copy of all packets must not tell clients that it has no route."""
        for family in FAMILIES:
            NETWORK.ip(self.place, "address", "replace",
                       f"{self.own[family]}/{LENGTH[family]}", "dev", interface)
            NETWORK.ip(self.place, "route", "replace", "blackhole",
                       f"{VIP[family]}/{HOST[family]}")

    def route(self, family, gateway, prefix=None):
        NETWORK.ip(self.place, "route", "replace", prefix or FARM[family], "via", gateway,
                   "dev", self.interface)

    def wait_for_hops(self):
        wait_until(lambda: self.json("status")["unreached"] == 0,
                   lambda: f"next hops: {self.json('status')}")

    def ctl(self, *args, status=DONE):
        done = subprocess.run(
            [SHUNTCTL, "--socket", str(self.socket), *map(str, args)], check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        if done.returncode != status:
            raise AssertionError(f"{args}: exit {done.returncode}: {done.stdout}"
                                 f"{done.stderr}\n{self.words()}")
        return done.stdout + done.stderr

    def json(self, *args):
        return json.loads(self.ctl("--json", *args))

    def kill(self):
        """As a power cut would: it says nothing to anybody, and tidies nothing up."""
        process, self.process = self.process, None
        stop(process, signal.SIGKILL)

    def stop(self):
        """In an orderly way, and then its addresses are gone too."""
        if self.process is None:
            return
        process, self.process = self.process, None
        status = stop(process)
        NETWORK.ip(self.place, "address", "flush", "dev", "wan0", "scope", "global")
        words = self.words()
        if status != 0 or "Sanitizer" in words or "runtime error" in words:
            raise AssertionError(f"shuntd ended with {status}:\n{words}")

    def remove(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder)


class Capture:
    """tcpdump at one end of a cable, in one direction."""

    def __init__(self, folder, name, interface, direction):
        self.file = folder / f"{name}-{interface}.pcap"
        self.log = folder / f"{name}-{interface}.log"
        self.process = NETWORK.spawn(
            name, shutil.which("tcpdump", path=PATH), "-n", "-i", interface, "-Q", direction,
            "-U", "--immediate-mode", "-B", "16384", "-Z", "root", "-w", self.file,
            log=self.log)
        wait_until(lambda: "listening on" in self.words(), self.words)

    def words(self):
        return self.log.read_text(encoding="utf-8")

    def frames(self):
        """Those written by now: each as bytes, an Ethernet header first."""
        found = []
        data = self.file.read_bytes() if self.file.exists() else b""
        at = 24
        while at + 16 <= len(data):
            length, = struct.unpack_from("=I", data, at + 8)
            if at + 16 + length > len(data):
                break
            found.append(data[at + 16:at + 16 + length])
            at += 16 + length
        return found

    def stop(self):
        """All frames; an error if the kernel had no room for some."""
        stop(self.process, signal.SIGINT)
        if "\n0 packets dropped by kernel" not in self.words():
            raise AssertionError(self.words())
        return self.frames()


class LabCase(unittest.TestCase):
    maxDiff = 4000

    def start(self, driver, workers, *services, place="balancer"):
        daemon = Daemon(driver, workers, place)
        self.addCleanup(daemon.remove)
        daemon.write(*services)
        daemon.start()
        return daemon

    def fetch(self, family, port, n=1):
        """By curl, one connection each. Returns whom they came from, in order."""
        host = VIP[family] if family == 4 else f"[{VIP[family]}]"
        url = f"http://{host}:{port}/[1-{n}]"
        text = NETWORK.run("client", "curl", "--silent", "--show-error", "--fail",
                           "--fail-early", "--noproxy", "*", "--max-time", "20", url)
        found = text.split()
        self.assertEqual(len(found), n, text)
        return found


def why_not(needs):
    """Why this cannot be tested here; empty where it can."""
    if os.geteuid() != 0:
        return "not root: network namespaces, packet sockets and BPF take it"
    if not SHUNT_DECAP:
        return "shunt-decap is not built here"
    for program, package in (("ip", "iproute2"), ("nginx", "nginx-light"), ("curl", "curl"),
                             ("ping", "iputils-ping"), ("ethtool", "ethtool"), *needs):
        if shutil.which(program, path=PATH) is None:
            return f"there is no {program} command (Debian: {package})"
    try:
        NETWORK.make()
    except OSError as error:
        return f"no such network here: {error}"
    return ""


def main(*needs):
    """Run the tests. needs: (command, Debian package) of what these tests take beside."""
    if not SHUNTD or not SHUNTCTL:
        sys.exit("SHUNTD and SHUNTCTL must name the programs: build/tools/shuntd, say")
    # A time limit's SIGTERM must not leave the namespaces behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        why = why_not(needs)
        if why:
            print(f"skipped: {why}")
            sys.exit(77)
        unittest.main()
    finally:
        NETWORK.remove()
