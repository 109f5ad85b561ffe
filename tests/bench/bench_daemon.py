#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of a running shuntd; printed, and no time is asserted.

  swap     the packet path under full load, with and without 100 changes a second: how long
           the turns of the worker's loop take, which is how long a packet may wait
  control  how soon `status` is answered while tables of 655373 slots are being built
  trace    packets in a second of a worker's CPU, with traces and without, in turns
  reload   from `reload` to its answer: one line changed of 10000 services of 10 backends
  etcd     from a configuration of 100 services written to etcd to the new one in the workers

That packets were forwarded and every change came into force is asserted.
"""

import base64
import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_lab as lab  # noqa: E402 pylint: disable=wrong-import-position

N_FLOWS = 1024
IDLE_DEVICE = "net_null0,no-rx=1"

SWAP_HZ = 100
SWAP_BACKENDS, SWAP_SLOTS = 100, 65537

CONTROL_BACKENDS, CONTROL_SLOTS = 1000, 655373
ASK_EVERY_S = 0.005

ETCD_SERVICES, ETCD_BACKENDS, ETCD_SLOTS = 100, 10, 65537
ETCD_BOUND_MS = 200
ETCD_KEY = base64.b64encode(b"bench").decode()

RELOAD_SERVICES, RELOAD_BACKENDS, RELOAD_SLOTS = 10000, 10, 251


def microseconds(nanoseconds):
    if nanoseconds is None:
        return "1e6 or more"
    return f"{nanoseconds / 1e3:.0f}" if nanoseconds >= 1e5 else f"{nanoseconds / 1e3:.1f}"


class Turns:
    """How long turns took: {nanoseconds at most: how many}."""

    def __init__(self):
        self.counts = {}

    def add(self, counts):
        for bound, n in counts.items():
            self.counts[bound] = self.counts.get(bound, 0) + n

    def total(self):
        return sum(self.counts.values())

    def below(self, share):
        """A time that this share of all turns took less than, as sharp as the bounds are; None
        beyond the last of them."""
        n, wanted = 0, share * self.total()
        for bound in sorted(self.counts):
            n += self.counts[bound]
            if n >= wanted and n > 0:
                return bound if bound != float("inf") else None
        return 0

    def over(self, nanoseconds):
        return sum(n for bound, n in self.counts.items() if bound > nanoseconds)

    def figures(self):
        return {"turns": self.total(), "p50_ns": self.below(0.5), "p99_ns": self.below(0.99),
                "p999_ns": self.below(0.999), "p9999_ns": self.below(0.9999),
                "max_ns": self.below(1), "over_1_ms": self.over(1.1e6)}


BARE_LOOP = """
import os, sys, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
counts, now = [0] * 64, time.monotonic_ns
before = now()
end = before + int(float(sys.argv[1]) * 1e9)
while before < end:
    after = now()
    counts[(after - before).bit_length()] += 1
    before = after
print(*counts)
"""


def loop_barely(seconds):
    """Nothing but the clock is read, on the worker's CPU: gaps that the machine makes by
    itself."""
    done = subprocess.run([sys.executable, "-c", BARE_LOOP, str(seconds)], check=True,
                          stdout=subprocess.PIPE, timeout=lab.TIMEOUT_S + seconds)
    return {float(1 << i): int(n) for i, n in enumerate(done.stdout.split())}


def change_steadily(daemon, seconds):
    """A backend in and out of its service's table, SWAP_HZ times a second, each once the one
    before is in force. Returns how long each took, in nanoseconds."""
    taken = []
    begun = time.monotonic()
    with daemon.connect() as client:
        generation = client.call("status")["generation"]
        while time.monotonic() < begun + seconds:
            method = "backend.drain" if len(taken) % 2 == 0 else "backend.up"
            taken.append(client.timed_call(method, service="web", name="b0"))
            time.sleep(max(0.0, begun + len(taken) / SWAP_HZ - time.monotonic()))
        made = client.call("status")["generation"] - generation
    assert made == len(taken) > 0, f"{made} generations by {len(taken)} changes"
    return taken


def observe(daemon, work):
    """Do some work. Returns the turns meanwhile, how often the kernel took the CPU from the
    worker, packets, and what work() gave."""
    with daemon.connect() as client:
        turns, packets = daemon.turns(), client.call("stats")["packets"]
        preempted = daemon.n_preempted()
        given = work()
        preempted = daemon.n_preempted() - preempted
        after = client.call("stats")
    n = {key: after["packets"][key] - packets[key] for key in packets}
    assert n["forwarded"] > 0 and n["dropped"] == 0, f"{n}, of all: {after['drops']}"
    now = daemon.turns()
    assert now, "shuntd tells nothing of its worker's turns"
    return {bound: now[bound] - turns[bound] for bound in now}, preempted, n["forwarded"], given


def measure_swap(options):
    found = {name: {"turns": Turns(), "preempted": 0, "packets": 0, "seconds": 0.0}
             for name in ("no changes", "changes")}
    bare = Turns()
    taken = []
    with contextlib.ExitStack() as stack:
        capture = stack.enter_context(lab.temporary_capture(N_FLOWS))
        for _ in range(options.rounds):
            with lab.running(options.build, lab.pcap_device(capture),
                             lab.service(SWAP_BACKENDS, SWAP_SLOTS)) as daemon:
                time.sleep(0.2)
                for name, work in (("no changes", lambda: time.sleep(options.seconds)),
                                   ("changes", lambda d=daemon: taken.extend(
                                       change_steadily(d, options.seconds)))):
                    begun = time.monotonic()
                    turns, preempted, packets, _ = observe(daemon, work)
                    row = found[name]
                    row["turns"].add(turns)
                    row["preempted"] += preempted
                    row["packets"] += packets
                    row["seconds"] += time.monotonic() - begun
            bare.add(loop_barely(options.seconds))
    rows = {name: {**row["turns"].figures(), "preempted": row["preempted"],
                   "mpps": row["packets"] / row["seconds"] / 1e6, "seconds": row["seconds"]}
            for name, row in found.items()}
    rows["bare loop"] = {**bare.figures(), "seconds": options.rounds * options.seconds}
    return {"rows": rows, "changes": len(taken),
            "changes_a_second": len(taken) / found["changes"]["seconds"],
            "change_ms_median": statistics.median(taken) / 1e6,
            "change_ms_max": max(taken) / 1e6}


def print_swap(found):
    print(f"swap: turns of a worker's loop at full load, microseconds that so many took less "
          f"than, by powers of two;\n{found['changes']} changes, "
          f"{found['changes_a_second']:.0f} a second, each a new table of {SWAP_SLOTS} slots and "
          f"{SWAP_BACKENDS} backends:\n"
          f"in force after {found['change_ms_median']:.1f} ms (median), "
          f"{found['change_ms_max']:.1f} at most")
    rows = []
    for name, row in found["rows"].items():
        rows.append([name, row["turns"],
                     *[microseconds(row[key]) for key in
                       ("p50_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns")],
                     row["over_1_ms"], row.get("preempted", "-"),
                     f"{row['mpps']:.2f}" if "mpps" in row else "-"])
    lab.print_table(["", "turns", "p50", "p99", "p99.9", "p99.99", "longest", "over 1 ms",
                     "preempted", "Mpps"], rows)
    print("preempted: how often the kernel gave the worker's CPU to another; the bare loop "
          "reads\nthe clock on that CPU and does nothing else: gaps that the machine makes.")


def ask_until(daemon, is_over):
    """`status`, again and again. Returns nanoseconds to each answer, of one at least."""
    taken = []
    with daemon.connect() as client:
        while not taken or not is_over():
            taken.append(client.timed_call("status"))
            time.sleep(ASK_EVERY_S)
    return taken


def ask_while(daemon, work):
    """work() in a thread of its own, and `status` meanwhile. Returns what both gave."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        asked = ask_until(daemon, working.done)
        return asked, working.result()


def build_steadily(daemon, seconds):
    """Another table again and again, each once the one before is in force. Returns nanoseconds
    to each answer."""
    taken = []
    end = time.monotonic() + seconds
    with daemon.connect() as client:
        generation = client.call("status")["generation"]
        while not taken or time.monotonic() < end:
            taken.append(client.timed_call("backend.weight", service="web", name="b0",
                                           weight=50 + len(taken) % 2))
        made = client.call("status")["generation"] - generation
    assert made == len(taken), f"{made} generations by {len(taken)} changes"
    return taken


def measure_control(options):
    rows = {}
    builds = []
    with lab.temporary_capture(N_FLOWS) as capture:
        for load, device, idle in (("no load", IDLE_DEVICE, "adaptive"),
                                   ("full load", lab.pcap_device(capture), "poll")):
            quiet, busy = [], []
            for _ in range(options.rounds):
                with lab.running(options.build, device,
                                 lab.service(CONTROL_BACKENDS, CONTROL_SLOTS),
                                 idle=idle) as daemon:
                    end = time.monotonic() + options.seconds
                    quiet += ask_until(daemon, lambda e=end: time.monotonic() >= e)
                    asked, built = ask_while(
                        daemon, lambda d=daemon: build_steadily(d, options.seconds))
                    busy += asked
                    builds += built
            rows[f"{load}, nothing built"] = quiet
            rows[f"{load}, tables built"] = busy
    return {"rows": {name: {"answers": len(asked),
                            "median_ms": statistics.median(asked) / 1e6,
                            "p99_ms": lab.percentile(asked, 0.99) / 1e6,
                            "max_ms": max(asked) / 1e6} for name, asked in rows.items()},
            "builds": len(builds), "build_ms_median": statistics.median(builds) / 1e6}


def print_control(found):
    print(f"control: `status` while tables of {CONTROL_SLOTS} slots and {CONTROL_BACKENDS} "
          f"backends are built, {found['builds']} of them,\n"
          f"each in force after {found['build_ms_median']:.0f} ms (median); milliseconds")
    lab.print_table(["", "answers", "median", "p99", "longest"],
                    [[name, row["answers"], *[f"{row[key]:.2f}" for key in
                                              ("median_ms", "p99_ms", "max_ms")]]
                     for name, row in found["rows"].items()])


TRACES = {"one in 1000": {"sample": 1000}, "a filter that nothing passes": {"net": "192.0.2.0/24"},
          "everything": {}}
BUSY_S = 20
TRACE_READ_S = 0.1


def follow(daemon, client, filters, seconds):
    """Packets forwarded in a second of the worker's CPU, while a trace with these filters is
    read; None: without. Returns that, and how many packets were traced."""
    n_traced = 0
    number = client.call("trace.begin", **filters)["trace"] if filters is not None else None
    begun = time.monotonic()
    cpu_ns = daemon.cpu_ns()
    before = client.call("stats")["packets"]["forwarded"]
    forwarded = 0
    # On a busy machine a worker may not run at all for a while.
    while time.monotonic() < begun + (seconds if forwarded > 0 else BUSY_S):
        time.sleep(TRACE_READ_S)
        if number is not None:
            n_traced += len(client.call("trace.read", trace=number)["packets"])
        forwarded = client.call("stats")["packets"]["forwarded"] - before
    rate = forwarded / (daemon.cpu_ns() - cpu_ns) * 1e9
    if number is not None:
        client.call("trace.end", trace=number)
    assert forwarded > 0, daemon.config
    return rate, n_traced


def measure_trace(options):
    ratios = {name: [] for name in TRACES}
    traced = {name: [] for name in TRACES}
    with lab.temporary_capture(N_FLOWS) as capture, lab.running(
            options.build, lab.pcap_device(capture),
            lab.service(SWAP_BACKENDS, SWAP_SLOTS)) as daemon, daemon.connect() as client:
        for _ in range(options.rounds):
            for name, filters in TRACES.items():
                off, _ = follow(daemon, client, None, options.seconds / 2)
                rate, n_traced = follow(daemon, client, filters, options.seconds)
                again, _ = follow(daemon, client, None, options.seconds / 2)
                ratios[name].append(rate / ((off + again) / 2))
                traced[name].append(n_traced / options.seconds)
    assert sum(traced["everything"]) > 0 == sum(traced["a filter that nothing passes"]), traced
    return {"rows": {name: {"ratio_median": statistics.median(found), "ratio_min": min(found),
                            "traced_a_second": statistics.median(traced[name])}
                     for name, found in ratios.items()}}


def print_trace(found):
    print("trace: packets in a second of the worker's CPU under full load, while a trace is read "
          "ten times\na second, in turns with none")
    lab.print_table(["", "ratio, median", "least", "traced a second"],
                    [[name, f"{row['ratio_median']:.3f}", f"{row['ratio_min']:.3f}",
                      f"{row['traced_a_second']:.0f}"] for name, row in found["rows"].items()])


def reload_text(head, n_services, weight):
    """As people write it; weight: of the first backend."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()] + ["services:"]
    for i in range(n_services):
        lines += [f"  - name: service-{i}",
                  f"    address: 198.{18 + i // 65536}.{i // 256 % 256}.{i % 256}",
                  "    protocol: tcp", "    port: 443",
                  f"    table: {{algorithm: maglev, size: {RELOAD_SLOTS}}}", "    backends:"]
        for k in range(RELOAD_BACKENDS):
            n = i * RELOAD_BACKENDS + k
            address = f"10.{n // 62500}.{n // 250 % 250}.{1 + n % 250}"
            lines.append(f"      - {{name: backend-{k}, address: {address}, "
                         f"weight: {weight if n == 0 else 100}}}")
    return "\n".join(lines) + "\n"


def rewrite(daemon, text):
    """Not a half of it is ever seen."""
    new = daemon.folder / "new.yaml"
    new.write_text(text, encoding="utf-8")
    new.rename(daemon.config)


def timed_run(*command):
    begun_ns = time.monotonic_ns()
    done = subprocess.run(command, check=False, timeout=lab.TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    taken_ns = time.monotonic_ns() - begun_ns
    assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}"
    return taken_ns


class Reloads:
    """A daemon with many services, and changes of the first backend's weight by every way."""

    def __init__(self, build, n_services):
        self.daemon = lab.Daemon(build, IDLE_DEVICE, idle="adaptive")
        self.shuntctl = build / "tools" / "shuntctl"
        self.texts = [reload_text(self.daemon.head(), n_services, weight)
                      for weight in (98, 99)]
        self.n_changes = 0
        self.taken = {}

    def note(self, what, taken_ns):
        self.taken.setdefault(what, []).append(taken_ns)

    def check(self, client, weight):
        shown = client.call("service.show", name="service-0")["service"]["backends"]
        assert shown[0]["weight"] == weight, shown[0]
        self.n_changes += 1

    def reload(self, client, i):
        rewrite(self.daemon, self.texts[i % 2])
        taken_ns = client.timed_call("reload")
        self.check(client, 98 + i % 2)
        return taken_ns

    def change(self, client, i):
        self.note("reload", self.reload(client, 0))
        self.note("of it, tables and snapshot", client.call("status")["build_seconds"] * 1e9)
        rewrite(self.daemon, self.texts[1])
        self.note("shuntctl reload",
                  timed_run(self.shuntctl, "--socket", self.daemon.socket, "reload"))
        self.check(client, 99)
        self.note("backend.weight", client.timed_call(
            "backend.weight", service="service-0", name="backend-0", weight=i))
        self.check(client, i)
        self.note("shuntd --check", timed_run(self.daemon.program, "--check", "--config",
                                              self.daemon.config))

    def run(self, n_times):
        rewrite(self.daemon, self.texts[0])
        self.daemon.start()
        with lab.beside_worker(), self.daemon.connect() as client:
            generation = client.call("status")["generation"]
            for i in range(n_times):
                self.change(client, i)
            self.taken["status, meanwhile"], _ = ask_while(
                self.daemon, lambda: [self.reload(client, i) for i in range(n_times)])
            made = client.call("status")["generation"] - generation
        assert made == self.n_changes, f"{made} generations by {self.n_changes} changes"


def measure_reload(options):
    n_services = 200 if options.quick else RELOAD_SERVICES
    reloads = Reloads(options.build, n_services)
    try:
        reloads.run(2 if options.quick else 3 + 2 * options.rounds)
    finally:
        reloads.daemon.remove()
    return {"services": n_services, "lines": reloads.texts[0].count("\n"),
            "bytes": len(reloads.texts[0]),
            "rows": {name: {"median_ms": statistics.median(taken) / 1e6,
                            "min_ms": min(taken) / 1e6, "max_ms": max(taken) / 1e6}
                     for name, taken in reloads.taken.items()}}


def print_reload(found):
    print(f"reload: {found['services']} services of {RELOAD_BACKENDS} backends and "
          f"{RELOAD_SLOTS} slots, a file of {found['lines']} lines,\n"
          "one of which changes; milliseconds to the answer")
    lab.print_table(["", "median", "least", "most"],
                    [[name, *[f"{row[key]:.1f}" for key in ("median_ms", "min_ms", "max_ms")]]
                     for name, row in found["rows"].items()])


def put_in_etcd(url, text):
    """Returns the revision."""
    body = {"key": ETCD_KEY, "value": base64.b64encode(text.encode()).decode()}
    with urllib.request.urlopen(f"{url}/v3/kv/put", json.dumps(body).encode(),
                                timeout=lab.TIMEOUT_S) as answer:
        return int(json.loads(answer.read())["header"]["revision"])


@contextlib.contextmanager
def etcd():
    """The address of a real one."""
    with tempfile.TemporaryDirectory(prefix="shunt-bench-") as folder:
        url, peer = (f"http://127.0.0.1:{lab.free_port()}" for _ in range(2))
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(
                ["etcd", "--data-dir", f"{folder}/data", "--listen-client-urls", url,
                 "--advertise-client-urls", url, "--listen-peer-urls", peer,
                 "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
                stdout=log, stderr=log)
        try:
            end = time.monotonic() + lab.TIMEOUT_S
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    put_in_etcd(url, "services: []")
                    break
                time.sleep(0.05)
            yield url
        finally:
            lab.stop(process)


def etcd_document(n):
    """In which each service's first backend has another weight than in the one before."""
    services = []
    for i in range(ETCD_SERVICES):
        one = lab.service(ETCD_BACKENDS, ETCD_SLOTS)
        one.update(name=f"service-{i}", port=1 + i)
        one["backends"][0]["weight"] = 1 + (n + i) % 1000
        services.append(one)
    return json.dumps({"services": services})


def measure_etcd(options):
    if shutil.which("etcd") is None:
        return None
    taken = []
    with etcd() as url, lab.temporary_capture(N_FLOWS) as capture:
        put_in_etcd(url, etcd_document(0))
        with lab.running(options.build, lab.pcap_device(capture), etcd=url) as daemon, \
                daemon.connect() as client:
            for n in range(1, 1 + (2 if options.quick else 10 * options.rounds)):
                while client.call("status")["etcd"]["state"] != "watching":
                    time.sleep(0.01)
                begun_ns = time.monotonic_ns()
                revision = put_in_etcd(url, etcd_document(n))
                end_ns = begun_ns + lab.TIMEOUT_S * 10**9
                while client.call("status")["etcd"]["revision"] != revision:
                    assert time.monotonic_ns() < end_ns, "it does not come into force"
                    time.sleep(0.001)
                taken.append((time.monotonic_ns() - begun_ns) / 1e6)
    return {"services": ETCD_SERVICES, "writes": len(taken),
            "median_ms": statistics.median(taken), "max_ms": max(taken),
            "late": sum(one > ETCD_BOUND_MS for one in taken)}


def print_etcd(found):
    if found is None:
        print("etcd: there is none here")
        return
    print(f"etcd: {found['services']} services, each with a table of its own, all of them changed "
          f"{found['writes']} times under full\nload; from the write to the new tables in the "
          f"workers {found['median_ms']:.0f} ms (median), {found['max_ms']:.0f} at most; to be "
          f"below {ETCD_BOUND_MS},\nand {found['late']} were not")


KINDS = {"swap": (measure_swap, print_swap), "control": (measure_control, print_control),
         "trace": (measure_trace, print_trace), "reload": (measure_reload, print_reload),
         "etcd": (measure_etcd, print_etcd)}


def main():
    made = lab.parser(__doc__, rounds=3, seconds=5)
    made.add_argument("kind", nargs="*", choices=[*KINDS, []],
                      help="which to measure (default: all)")
    options = lab.parse(made)
    # Of two threads here, neither is to wait for the other's turn to end.
    sys.setswitchinterval(1e-4)
    results = {"machine": lab.machine()}
    if not options.json:
        lab.print_machine()
    for kind in options.kind or KINDS:
        measure, show = KINDS[kind]
        results[kind] = measure(options)
        if not options.json:
            print()
            show(results[kind])
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
