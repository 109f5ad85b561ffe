#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""shuntd beside DPDK's own testpmd: the same device, CPU, burst and buffers, in turns.

testpmd's io touches no packet, macswap changes the MAC addresses, 5tswap those, the IP
addresses and the ports. None of them looks anything up, and none checks a packet. Time is the
worker's on its CPU, so that what else the machine runs counts as little as can be.

net_null cannot give what shuntd forwards. There testpmd has shunt-bench beside it: shuntd's
packet path without a device, in turns with the rest.

Every trial asserts that packets went through, and an exit status of 0.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_lab as lab  # noqa: E402 pylint: disable=wrong-import-position

SKIPPED = 77
# net_pcap keeps a capture in buffers of the port's, for which shuntd has so many: lb/README.md.
N_KEPT = 16384
N_FLOWS, N_FLOWS_MAX = 8000, N_KEPT
N_BENCH_FLOWS = 1000
N_BACKENDS, N_SLOTS = 100, 65537
MODES = ("io", "macswap", "5tswap")
SHUNT_BENCH = "shunt-bench ipip"
# shuntd's own, for one worker: packets at once, and buffers of a port.
BURST, MBUF_CACHE = 64, 256
N_MBUFS = {"net_pcap": 6144 + N_KEPT, "net_null": 6144}
# Enough of a worker's time to say that it runs, and for caches to be as they will be.
WARM_NS = 200_000_000


class Trial:
    """Packets and time between two looks at a worker."""

    def __init__(self, n_packets, wall_ns, cpu_ns):
        assert n_packets > 0 and wall_ns > 0 and cpu_ns > 0, (n_packets, wall_ns, cpu_ns)
        self.ns = cpu_ns / n_packets
        self.mpps = n_packets / wall_ns * 1e3


def warm_up(process):
    end = time.monotonic() + lab.TIMEOUT_S
    while lab.worker_cpu_ns(process.pid) < WARM_NS:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            told = process.stdout.read() if process.stdout is not None else ""
            raise AssertionError(f"no worker runs, exit {process.returncode}: {told}")
        time.sleep(0.02)


def run_testpmd(program, device, n_mbufs, mode, seconds):
    """It writes when it likes, so what it writes is read at the end."""
    cpus = sorted(os.sched_getaffinity(0))
    command = [
        program, *lab.memory_arguments(), "--no-pci", "--no-telemetry", "--log-level=*:error",
        "--lcores", f"0@{cpus[0]},1@{cpus[-1]}", f"--vdev={device}", "--",
        "-i", f"--forward-mode={mode}", f"--burst={BURST}", "--nb-cores=1",
        "--port-topology=loop", f"--total-num-mbufs={n_mbufs}", f"--mbcache={MBUF_CACHE}",
        "--no-flush-rx"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as child:
        try:
            looks = []
            child.stdin.write("start\n")
            child.stdin.flush()
            warm_up(child)
            for i in range(2):
                time.sleep(i * seconds)
                looks.append((time.monotonic_ns(), lab.worker_cpu_ns(child.pid)))
                child.stdin.write("show port stats 0\n")
                child.stdin.flush()
            output, _ = child.communicate("stop\nquit\n", timeout=lab.TIMEOUT_S)
        finally:
            child.kill()
    assert child.returncode == 0, f"{command}: exit {child.returncode}\n{output}"
    # The two looks, and the sums once it has stopped.
    sent = [int(n) for n in re.findall(r"TX-packets: +(\d+)", output)]
    assert len(sent) >= 2, output
    return Trial(sent[1] - sent[0], *(b - a for a, b in zip(*looks)))


def run_shuntd(build, device, forward, expects, seconds):
    """expects: where its packets are to end, as `stats` has it."""
    with lab.running(build, device, lab.service(N_BACKENDS, N_SLOTS, forward)) as daemon, \
            daemon.connect() as client:
        warm_up(daemon.process)
        looks, counts = [], []
        for i in range(2):
            time.sleep(i * seconds)
            looks.append((time.monotonic_ns(), lab.worker_cpu_ns(daemon.process.pid)))
            counts.append(client.call("stats")["packets"])
    n = {key: counts[1][key] - counts[0][key] for key in counts[0]}
    assert n[expects] == n["received"], n
    return Trial(n[expects], *(b - a for a, b in zip(*looks)))


def run_shunt_bench(build, forward, seconds):
    """On the CPU that testpmd's worker has, and in pages of the same kind."""
    command = [build / "tools" / "shunt-bench", "--flows", str(N_BENCH_FLOWS), "--family", "4",
               "--backends", str(N_BACKENDS), "--forward", forward, "--seconds", str(seconds),
               "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          timeout=lab.TIMEOUT_S + seconds)
    result, = json.loads(done.stdout)["results"]
    assert result["forwarded"] == result["packets"], result
    assert result["hugepages"] == lab.has_huge_pages(), result
    cpu_ns = result["ns_per_packet"] * result["packets"]
    return Trial(result["packets"], cpu_ns, cpu_ns)


def trials(options, program, capture):
    """{device: {what: a function that runs it}}"""
    found = {}
    for name, device in (("net_pcap", lab.pcap_device(capture)), ("net_null", "net_null0")):
        found[name] = {
            f"testpmd {mode}": functools.partial(run_testpmd, program, device, N_MBUFS[name],
                                                 mode)
            for mode in MODES}
        if name == "net_pcap":
            for forward in ("l2", "ipip"):
                found[name][f"shuntd {forward}"] = functools.partial(
                    run_shuntd, options.build, device, forward, "forwarded")
        else:
            found[name]["shuntd, dropping"] = functools.partial(
                run_shuntd, options.build, device, "l2", "dropped")
            found[name][SHUNT_BENCH] = functools.partial(
                run_shunt_bench, options.build, "ipip")
    return found


def measure(options, program):
    with lab.temporary_capture(options.flows) as capture:
        wanted = trials(options, program, capture)
        done = {device: {what: [] for what in rows} for device, rows in wanted.items()}
        for _ in range(options.rounds):
            for device, rows in wanted.items():
                for what, run in rows.items():
                    done[device][what].append(run(options.seconds))
    found = {}
    for device, rows in done.items():
        median = {what: statistics.median(t.ns for t in made) for what, made in rows.items()}
        found[device] = {what: {
            "ns": median[what], "ns_min": min(t.ns for t in made),
            "ns_max": max(t.ns for t in made),
            "mpps": statistics.median(t.mpps for t in made),
            # shunt-bench has no device, so there is nothing of one to be taken off.
            "ns_beyond_io": (None if what == SHUNT_BENCH
                             else median[what] - median["testpmd io"]),
            "ns_to_5tswap": median[what] / median["testpmd 5tswap"],
            "rate_to_5tswap": median["testpmd 5tswap"] / median[what],
        } for what, made in rows.items()}
    return found


def cell(row, key):
    if row[key] is None:
        return "-"
    return f"{row[key]:.{1 if key.startswith('ns') and key != 'ns_to_5tswap' else 2}f}"


def show(found, options):
    columns = {"ns": "ns a packet", "ns_min": "least", "ns_max": "most",
               "ns_beyond_io": "beyond io", "ns_to_5tswap": "times 5tswap's",
               "rate_to_5tswap": "rate to 5tswap's", "mpps": "Mpps"}
    print(f"one worker, bursts of {BURST}, {options.rounds} rounds in turns; "
          f"{'huge' if lab.has_huge_pages() else 'ordinary'} pages for all")
    for device, rows in found.items():
        print()
        lab.print_table([device, *columns.values()],
                        [[what, *[cell(row, key) for key in columns]]
                         for what, row in rows.items()])
    print(f"""
ns a packet: the worker's time on its CPU, median; Mpps: by the clock, whatever else ran.
net_pcap: {options.flows} flows of one packet each, again and again, and what is sent is dropped. It
copies each packet from a ring, which costs what testpmd's io shows. There are
{N_MBUFS['net_pcap']} buffers for each program, as the capture is kept in some.
net_null gives frames of nothing but zeros, and cannot give others: shuntd drops them as no
service's, so that its row there is the cost of taking a packet and of dropping it. Nor has
testpmd's 5tswap more than MAC addresses to swap there. There are {N_MBUFS['net_null']} buffers.
shunt-bench has {N_BENCH_FLOWS} flows, no device, and its Mpps by its time: shuntd's packet path,
from received buffers to their release. testpmd's time has what its device takes in it.""")


def main():
    parser = lab.parser(__doc__, rounds=5, seconds=0.7)
    parser.add_argument("--flows", type=int, default=N_FLOWS, metavar="N",
                        help=f"of a packet each, 1..{N_FLOWS_MAX} (default: {N_FLOWS})")
    options = lab.parse(parser)
    if not 1 <= options.flows <= N_FLOWS_MAX:
        parser.error(f"--flows: 1..{N_FLOWS_MAX}")
    if not (options.build / "tools" / "shunt-bench").exists():
        parser.error(f"{options.build} has no tools/shunt-bench: build it")
    program = shutil.which("dpdk-testpmd")
    if program is None:
        print("skipped: there is no dpdk-testpmd command (Debian: dpdk-dev)")
        sys.exit(SKIPPED)
    found = measure(options, program)
    if options.json:
        print(json.dumps({"machine": lab.machine(), "devices": found}, indent=1))
    else:
        lab.print_machine()
        show(found, options)


if __name__ == "__main__":
    main()
