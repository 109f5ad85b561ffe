# SPDX-License-Identifier: BSD-3-Clause
"""What the measurements of shuntd share: a daemon on ports that are none, a client of its
socket, captures made here, and how figures are shown.

No namespaces and no privileges: the ports are DPDK's null and pcap devices.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of one command, start or answer, also on a busy machine.
TIMEOUT_S = 60

VIP = "198.51.100.10"
NEXT_HOP = "02:00:00:00:00:fe"
ETHER = bytes.fromhex("020000000001020000000002") + b"\x08\x00"
IP = struct.Struct(">BBHHHBBHII")
TCP = struct.Struct(">HHIIBBHHH")
RECORD = struct.Struct("<IIII")
WORKER_NAMES = ("rte-worker-1", "lcore-worker-1")
FRAME_BYTES = 60  # and the four of the check sequence: the shortest there is


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return 0xffff - total


def frame(flow):
    """An ACK of a flow of its own, to VIP port 80."""
    vip = int.from_bytes(socket.inet_aton(VIP), "big")
    client = 0x0b000000 + flow
    fields = [0x45, 0, 40, 0, 0x4000, 64, 6, 0, client, vip]
    fields[7] = checksum(IP.pack(*fields))
    segment = [1024 + flow % 60000, 80, 0, 0, 0x50, 0x10, 1000, 0, 0]
    pseudo = struct.pack(">IIHH", client, vip, 6, TCP.size)
    segment[7] = checksum(pseudo + TCP.pack(*segment))
    return (ETHER + IP.pack(*fields) + TCP.pack(*segment)).ljust(FRAME_BYTES, b"\0")


def write_capture(path, n_flows):
    """A packet of each flow."""
    with open(path, "wb") as to:
        to.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for flow in range(n_flows):
            data = frame(flow)
            to.write(RECORD.pack(1700000000, flow, len(data), len(data)) + data)


@contextlib.contextmanager
def temporary_capture(n_flows):
    with tempfile.NamedTemporaryFile(prefix="shunt-bench-", suffix=".pcap") as made:
        write_capture(made.name, n_flows)
        yield made.name


@contextlib.contextmanager
def beside_worker():
    """This thread, and what it starts, keeps off the CPU that a worker has: the last one."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus - {max(cpus)} or cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def backends(n, first="10.0.0.1", prefix="b"):
    base = int.from_bytes(socket.inet_aton(first), "big")
    return [{"name": f"{prefix}{i}", "address": socket.inet_ntoa((base + i).to_bytes(4, "big"))}
            for i in range(n)]


def service(n_backends, n_slots, forward="ipip"):
    """Of VIP port 80, named web."""
    return {"name": "web", "address": VIP, "protocol": "tcp", "port": 80, "forward": forward,
            "table": {"algorithm": "maglev", "size": n_slots}, "backends": backends(n_backends)}


def pcap_device(capture):
    """Every packet of a capture again and again; what is sent is dropped."""
    return f"net_pcap0,rx_pcap={capture},infinite_rx=1"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


def worker_task(pid):
    """The kernel's folder of the thread that DPDK calls so, of the first worker."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() in WORKER_NAMES:
            return task
    return None


def worker_cpu_ns(pid):
    """What the worker has had of a CPU; 0 where there is no worker yet."""
    task = worker_task(pid)
    return 0 if task is None else int((task / "schedstat").read_text().split()[0])


class Connection:
    """A client of the daemon's socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")

    def call(self, method, **params):
        """The result; an error of the daemon's is one here."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.file.write(json.dumps(request).encode() + b"\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        if "error" in answer:
            raise AssertionError(f"{method} {params}: {answer['error']}")
        return answer["result"]

    def timed_call(self, method, **params):
        """Nanoseconds to the answer."""
        begun_ns = time.monotonic_ns()
        self.call(method, **params)
        return time.monotonic_ns() - begun_ns

    def close(self):
        self.file.close()
        self.socket.close()


class Daemon:
    """A shuntd with one worker, in a folder that is gone with it."""

    def __init__(self, build, device, idle="poll", etcd=None):
        """etcd: an address of one that has the services, at the key bench."""
        self.program = build / "tools" / "shuntd"
        self.device = device
        self.idle = idle
        self.etcd = etcd
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shunt-bench-"))
        self.config = self.folder / "shunt.yaml"
        self.socket = self.folder / "shunt.sock"
        self.metrics = None
        self.process = None

    def head(self):
        """All but the services; JSON is YAML too."""
        self.metrics = self.metrics or f"127.0.0.1:{free_port()}"
        return {
            "dataplane": {
                "workers": 1, "kernel": "none", "idle": self.idle, "flow_entries": 1048576,
                "ports": [{"name": "wan", "device": self.device, "next_hop": NEXT_HOP,
                           "addresses": ["192.0.2.1/24"]}]},
            "control": {"socket": str(self.socket), "metrics": self.metrics}}

    def write(self, *services):
        self.config.write_text(json.dumps({**self.head(), "services": services}),
                               encoding="utf-8")

    def start(self):
        """With CPUs as it chooses: the worker has the last one."""
        log = self.folder / "log"
        with open(log, "wb") as output:
            source = ["--config", self.config]
            if self.etcd is not None:
                source = ["--config", f"{self.etcd.replace('http', 'etcd')}/bench", "--local",
                          self.config]
            self.process = subprocess.Popen([self.program, *source], stderr=output,
                                            env={**os.environ, "STATE_DIRECTORY": self.folder})
        end = time.monotonic() + TIMEOUT_S
        while "shuntd: ready" not in log.read_text(encoding="utf-8"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no start:\n{log.read_text(encoding='utf-8')}")
            time.sleep(0.02)

    def connect(self):
        return contextlib.closing(Connection(self.socket))

    def n_preempted(self):
        """How often the kernel took the CPU from the worker, so far."""
        text = (worker_task(self.process.pid) / "status").read_text(encoding="ascii")
        pairs = dict(line.split(":", 1) for line in text.splitlines())
        return int(pairs["nonvoluntary_ctxt_switches"])

    def cpu_ns(self):
        """What the worker had of a CPU so far."""
        text = (worker_task(self.process.pid) / "schedstat").read_text(encoding="ascii")
        return int(text.split()[0])

    def turns(self):
        """Turns of the worker's loop that found packets: {nanoseconds at most: how many}."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics",
                                    timeout=TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
        found, before = {}, 0
        for line in lines:
            if not line.startswith("shunt_worker_turn_seconds_bucket"):
                continue
            bound = float(line.partition('le="')[2].partition('"')[0])
            count = int(line.rpartition(" ")[2])
            found[bound * 1e9] = count - before
            before = count
        return found

    def remove(self):
        try:
            if self.process is not None:
                status = stop(self.process)
                if status != 0:
                    log = (self.folder / "log").read_text(encoding="utf-8")
                    raise AssertionError(f"shuntd ended with {status}:\n{log}")
        finally:
            shutil.rmtree(self.folder)


@contextlib.contextmanager
def running(build, device, *services, **keys):
    """A daemon, ready; on the way out it stops, and has to with status 0."""
    daemon = Daemon(build, device, **keys)
    try:
        daemon.write(*services)
        daemon.start()
        with beside_worker():
            yield daemon
    except BaseException:
        # The error is the one to tell of, not what it does to the end.
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            daemon.remove()
        raise
    daemon.remove()


def percentile(values, share):
    """The smallest value that at least that share of all are no larger than."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def has_huge_pages():
    """Free ones, and where to take them from: then shuntd takes them."""
    pages = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    mounts = pathlib.Path("/proc/mounts").read_text(encoding="utf-8")
    return re.search(r"^HugePages_Free: +[1-9]", pages, re.M) is not None and \
        " hugetlbfs " in mounts


def memory_arguments():
    """Of another program's EAL, for the same pages as shuntd's."""
    return ["--in-memory"] if has_huge_pages() else ["--no-huge", "--no-shconf", "-m", "256"]


def machine():
    """What the figures hang on."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.partition(":")[2].strip() for line in text.splitlines()
             if line.startswith("model name")]
    return {"cpu": names[0] if names else "unknown", "cpus": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "has_huge_pages": has_huge_pages(),
            "is_virtual": " hypervisor" in text}


def print_machine():
    found = machine()
    print(f"on {found['cpus']} CPUs{' of a virtual machine' if found['is_virtual'] else ''} "
          f"({found['cpu']}), load {found['load']:.1f}, "
          f"{'huge' if found['has_huge_pages'] else 'ordinary'} pages")


def print_table(titles, rows):
    """Columns as wide as they need; the first to the left, numbers to the right."""
    lines = [titles, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for line in lines:
        cells = [line[0].ljust(widths[0]),
                 *[cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]]
        print("  ".join(cells).rstrip())


def parser(description, rounds, seconds):
    """The options that all of them have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                      help="the build folder (default: build)")
    made.add_argument("--rounds", type=int, default=rounds,
                      help=f"how often each is measured, in turns (default: {rounds})")
    made.add_argument("--seconds", type=float, default=seconds,
                      help=f"how long each time (default: {seconds})")
    made.add_argument("--quick", action="store_true",
                      help="once, and as short as can be: to see that it works")
    made.add_argument("--json", action="store_true", help="figures as JSON")
    return made


def parse(made):
    options = made.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, min(options.seconds, 0.3)
    if options.rounds < 1 or not 0 < options.seconds <= 60:
        made.error("at least one round, and more than 0 and up to 60 seconds")
    if not (options.build / "tools" / "shuntd").exists():
        made.error(f"{options.build} has no tools/shuntd: build it, or name it by --build")
    # A time limit's SIGTERM must not leave daemons behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return options
