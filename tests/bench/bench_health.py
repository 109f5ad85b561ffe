#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What health checks cost, and how soon they help; printed, and no time is asserted.

  rate   the packet path under full load with 10,000 backends checked every 2 s, metrics
         scraped each second and `top` open, against none, in turns: packets for the worker's
         CPU time
  types  what a check of each type takes of the prober's CPU time
  https  the same of 1,000 backends by https every 2 s, with nginx answering; and the memory
  death  from a backend's death to its last packet, beside interval x fall + timeout + 100 ms

That packets were forwarded, everybody was checked, and the dead one got nothing in the end is
asserted. It runs in a network namespace of its own, in which every address of the backends is
this machine's, served by a process of this program's.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import selectors
import shutil
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_lab as lab  # noqa: E402 pylint: disable=wrong-import-position

N_FLOWS = 1024
RATE_BACKENDS, RATE_SLOTS, RATE_INTERVAL_S = 10000, 65537, 2
RATE_LISTENERS = 8
ALL_OF_THEM = "checks, metrics and top"
# So few that a server in Python keeps up with their handshakes.
TYPE_BACKENDS, TYPE_INTERVAL_S = 40, 1
TYPES = ("tcp", "http", "https")
HTTPS_BACKENDS, HTTPS_INTERVAL_S = 1000, 2
HTTPS_NAME = "bench.example.org"
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  server {{
    listen 0.0.0.0:{port} ssl backlog=4096;
    ssl_certificate {pem}; ssl_certificate_key {pem};
    location / {{ return 204; }}
  }}
}}
"""
DEATH_BACKENDS = 3
DEATH = {"type": "tcp", "interval": "200ms", "timeout": "100ms", "fall": 2, "rise": 1,
         "flap_half_life": "off"}
DEATH_BOUND_MS = 200 * 2 + 100 + 100
FIRST, ALL = "10.1.0.1", "10.1.0.0/16"
INSIDE = "SHUNT_BENCH_INSIDE"


def take(listeners):
    """Take whoever comes, and no more."""
    waiting = selectors.DefaultSelector()
    for listener in listeners:
        listener.setblocking(False)
        waiting.register(listener, selectors.EVENT_READ)
    print("listens", flush=True)
    while True:
        for key, _ in waiting.select():
            with contextlib.suppress(OSError):
                while True:
                    key.fileobj.accept()[0].close()


def serve(listener, pem):
    """Answer whoever comes, by HTTP, or TLS where there is a certificate."""
    context = None
    if pem != "-":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    print("listens", flush=True)
    while True:
        for key, _ in waiting.select():
            with contextlib.suppress(OSError):
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    if context is not None:
                        connection.settimeout(1)
                        connection = context.wrap_socket(connection, server_side=True)
                    waiting.register(connection, selectors.EVENT_READ)
                    continue
                waiting.unregister(key.fileobj)
                with key.fileobj as connection:
                    if connection.recv(4096):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def main_of_server(how, *fds):
    listeners = [socket.socket(fileno=int(fd)) for fd in fds]
    if how == "take":
        take(listeners)
    else:
        serve(listeners[0], how)


@contextlib.contextmanager
def server(how="-", n_listeners=1):
    """Its port. how: "take", "-" for HTTP, or a certificate's file. Several listeners of one
    port have room for more that wait to be taken."""
    listeners = [socket.create_server(("0.0.0.0", 0), backlog=4096, reuse_port=True)]
    port = listeners[0].getsockname()[1]
    listeners += [socket.create_server(("0.0.0.0", port), backlog=4096, reuse_port=True)
                  for _ in range(n_listeners - 1)]
    fds = [listener.fileno() for listener in listeners]
    process = subprocess.Popen([sys.executable, __file__, "serve", how, *map(str, fds)],
                               pass_fds=fds, stdout=subprocess.PIPE)
    for listener in listeners:
        listener.close()
    try:
        assert process.stdout.readline() == b"listens\n"
        yield port
    finally:
        process.stdout.close()
        process.terminate()
        process.wait()


def checked(n_backends, n_slots, health):
    return {**lab.service(n_backends, n_slots), "health": health,
            "backends": lab.backends(n_backends, FIRST)}


def read_metrics(daemon):
    with urllib.request.urlopen(f"http://{daemon.metrics}/metrics",
                                timeout=lab.TIMEOUT_S) as answer:
        return answer.read().decode()


def count_checks(daemon):
    found = dict(re.findall(r'shunt_health_checks_total\{result="(\w+)"\} (\d+)',
                            read_metrics(daemon)))
    return {result: int(n) for result, n in found.items()}


def prober_cpu_ns(daemon):
    for task in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() == "shunt-health":
            return int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return 0


@contextlib.contextmanager
def watching(options, daemon):
    """With `top` open on a terminal, which has to have drawn something."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    process = subprocess.Popen(
        [options.build / "tools" / "shuntctl", "--socket", daemon.socket, "top"], stdin=slave,
        stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    drawn = []

    def read():
        with contextlib.suppress(OSError):
            while data := os.read(master, 65536):
                drawn.append(len(data))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
        assert process.poll() is None and sum(drawn) > 1000, "top has drawn nothing"
    finally:
        lab.stop(process)
        os.close(slave)
        thread.join()
        os.close(master)


@contextlib.contextmanager
def scraping(daemon):
    is_over = threading.Event()

    def scrape():
        while not is_over.wait(1):
            read_metrics(daemon)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def measure_once(daemon, client, seconds):
    """Packets, and nanoseconds of the worker's CPU time and of the wall's."""
    def read():
        return (client.call("stats")["packets"]["forwarded"],
                lab.worker_cpu_ns(daemon.process.pid), time.monotonic_ns())

    before = read()
    time.sleep(seconds)
    packets, cpu_ns, wall_ns = (b - a for a, b in zip(before, read()))
    assert packets > 0
    return packets * 1e3 / cpu_ns, packets * 1e3 / wall_ns


def measure_rate(options):
    """One daemon, which a reload takes from one to the other and back."""
    n = 500 if options.quick else RATE_BACKENDS
    rows = {"none": [], ALL_OF_THEM: []}
    with lab.temporary_capture(N_FLOWS) as capture, \
            server("take", RATE_LISTENERS) as port:
        health = {"type": "tcp", "port": port, "interval": f"{RATE_INTERVAL_S}s",
                  "timeout": f"{RATE_INTERVAL_S}s"}
        kinds = {"none": checked(n, RATE_SLOTS, {"type": "none"}),
                 ALL_OF_THEM: checked(n, RATE_SLOTS, health)}
        with lab.running(options.build, lab.pcap_device(capture), kinds["none"]) as daemon, \
                daemon.connect() as client:
            n_checks, prober_ns, seconds = 0, 0, 0.0
            for _ in range(options.rounds):
                for kind, made in kinds.items():
                    daemon.write(made)
                    client.call("reload")
                    if kind == "none":
                        rows[kind].append(measure_once(daemon, client, options.seconds))
                        continue
                    # All of them are under way after an interval.
                    time.sleep(RATE_INTERVAL_S)
                    before, cpu_ns = count_checks(daemon), prober_cpu_ns(daemon)
                    begun = time.monotonic()
                    with scraping(daemon), watching(options, daemon):
                        rows[kind].append(measure_once(daemon, client, options.seconds))
                    seconds += time.monotonic() - begun
                    prober_ns += prober_cpu_ns(daemon) - cpu_ns
                    n_checks += sum(count_checks(daemon).values()) - sum(before.values())
            counts = count_checks(daemon)
    assert counts["passed"] >= n and n_checks > 0, counts
    ratios = [b[0] / a[0] for a, b in zip(rows["none"], rows[ALL_OF_THEM])]
    return {"backends": n, "checks": counts, "checks_a_second": n_checks / seconds,
            "prober_cpu_share": prober_ns / 1e9 / seconds,
            "rows": {kind: {"mpps_of_cpu_time": statistics.median(one[0] for one in found),
                            "mpps": statistics.median(one[1] for one in found)}
                     for kind, found in rows.items()},
            "ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios)}


def print_rate(found):
    print(f"rate: {found['backends']} backends, {found['checks_a_second']:.0f} checks a second, "
          f"by {found['prober_cpu_share']:.2f} of a CPU; {found['checks']}")
    lab.print_table(["", "Mpps of CPU time", "Mpps"],
                    [[kind, f"{row['mpps_of_cpu_time']:.3f}", f"{row['mpps']:.3f}"]
                     for kind, row in found["rows"].items()])
    print(f"ratio {found['ratio']:.3f} (median of rounds; {found['ratio_min']:.3f} to "
          f"{found['ratio_max']:.3f}), to be 0.98 at least")


def make_certificate(folder):
    pem, only = folder / "all.pem", folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=bench",
                    "-addext", f"subjectAltName=DNS:{HTTPS_NAME}", "-keyout", pem, "-out", only], check=True, stderr=subprocess.DEVNULL)
    pem.write_text(pem.read_text(encoding="ascii") + only.read_text(encoding="ascii"),
                   encoding="ascii")
    return pem


def measure_types(options):
    rows = {}
    with tempfile.TemporaryDirectory(prefix="shunt-bench-") as name:
        pem = make_certificate(pathlib.Path(name))
        for kind in TYPES:
            with server(str(pem) if kind == "https" else "-") as port:
                health = {"type": kind, "port": port, "interval": f"{TYPE_INTERVAL_S}s"}
                if kind == "https":
                    health["verify"] = False
                with lab.running(options.build, "net_null0,no-rx=1",
                                 checked(TYPE_BACKENDS, 1009, health),
                                 idle="adaptive") as daemon:
                    time.sleep(TYPE_INTERVAL_S)
                    before, cpu_ns = count_checks(daemon), prober_cpu_ns(daemon)
                    time.sleep(max(options.seconds, TYPE_INTERVAL_S))
                    cpu_ns = prober_cpu_ns(daemon) - cpu_ns
                    after = count_checks(daemon)
                    made = {key: after[key] - before[key] for key in ("passed", "failed")}
                    assert made["passed"] > 0, f"{kind}: {after}"
                    rows[kind] = {**made, "us_of_cpu": cpu_ns / 1e3 / sum(made.values())}
    return {"rows": rows}


def print_types(found):
    print(f"types: {TYPE_BACKENDS} backends every {TYPE_INTERVAL_S} s, a connection each; the "
          "prober's CPU time of one, microseconds")
    lab.print_table(["", "CPU time", "passed", "failed"],
                    [[kind, f"{row['us_of_cpu']:.0f}", row["passed"], row["failed"]]
                     for kind, row in found["rows"].items()])


@contextlib.contextmanager
def nginx(folder, pem):
    """Its port."""
    port = lab.free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, pem=pem, port=port),
                                       encoding="ascii")
    process = subprocess.Popen(["nginx", "-p", folder, "-e", folder / "error.log", "-c",
                                folder / "nginx.conf"])
    try:
        end = time.monotonic() + lab.TIMEOUT_S
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.02)
        assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
        yield port
    finally:
        lab.stop(process)


def resident_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmRSS:\s+(\d+) kB", text, re.M)[1])


def measure_https(options):
    if shutil.which("nginx") is None:
        return None
    n = 50 if options.quick else HTTPS_BACKENDS
    with tempfile.TemporaryDirectory(prefix="shunt-bench-") as name:
        folder = pathlib.Path(name)
        pem = make_certificate(folder)
        os.environ["SSL_CERT_FILE"] = str(folder / "certificate.pem")
        with nginx(folder, pem) as port:
            health = {"type": "https", "port": port, "host": HTTPS_NAME,
                      "interval": f"{HTTPS_INTERVAL_S}s", "timeout": f"{HTTPS_INTERVAL_S}s"}
            with lab.running(options.build, "net_null0,no-rx=1",
                             checked(n, 10007, {"type": "none"}), idle="adaptive") as daemon, \
                    daemon.connect() as client:
                kib = resident_kib(daemon.process.pid)
                daemon.write(checked(n, 10007, health))
                client.call("reload")
                # Everybody's second check is under way.
                time.sleep(2 * HTTPS_INTERVAL_S)
                before, cpu_ns = count_checks(daemon), prober_cpu_ns(daemon)
                begun = time.monotonic()
                time.sleep(max(options.seconds, HTTPS_INTERVAL_S))
                seconds = time.monotonic() - begun
                cpu_ns = prober_cpu_ns(daemon) - cpu_ns
                after = count_checks(daemon)
                kib = resident_kib(daemon.process.pid) - kib
    made = {key: after[key] - before[key] for key in ("passed", "failed")}
    assert made["passed"] > 0, after
    return {"backends": n, **made, "us_of_cpu": cpu_ns / 1e3 / sum(made.values()),
            "prober_cpu_share": cpu_ns / 1e9 / seconds, "kib_a_backend": kib / n}


def print_https(found):
    if found is None:
        print("https: there is no nginx here")
        return
    print(f"https: {found['backends']} backends every {HTTPS_INTERVAL_S} s: "
          f"{found['us_of_cpu']:.0f} microseconds of CPU time a check, "
          f"{found['prober_cpu_share']:.2f} of a CPU; {found['passed']} passed, "
          f"{found['failed']} failed; {found['kib_a_backend']:.1f} KiB of memory a backend")


def watch_death(client, listener):
    """Its server goes. Returns milliseconds from then to its last packet."""
    def packets():
        shown = client.call("service.show", name="web")["service"]["backends"]
        return next(one["packets"] for one in shown if one["name"] == "b0")

    begun = last = time.monotonic()
    listener.close()
    before = packets()
    # Until nothing has come for as long as it may take at most, and a machine that is late.
    while time.monotonic() < last + 2 * DEATH_BOUND_MS / 1e3 and \
            time.monotonic() < begun + lab.TIMEOUT_S:
        now = packets()
        if now != before:
            before, last = now, time.monotonic()
        time.sleep(0.001)
    assert time.monotonic() < begun + lab.TIMEOUT_S, "it gets packets for good"
    return (last - begun) * 1e3


def measure_death(options):
    taken = []
    with lab.temporary_capture(N_FLOWS) as capture:
        for _ in range(2 if options.quick else 3 * options.rounds):
            with contextlib.ExitStack() as stack:
                port = lab.free_port()
                listeners = [stack.enter_context(socket.create_server(
                    (one["address"], port), backlog=4096))
                    for one in lab.backends(DEATH_BACKENDS, FIRST)]
                daemon = stack.enter_context(lab.running(
                    options.build, lab.pcap_device(capture),
                    checked(DEATH_BACKENDS, 1009, {**DEATH, "port": port})))
                client = stack.enter_context(daemon.connect())
                end = time.monotonic() + lab.TIMEOUT_S
                while 'backend="b0"} 1\n' not in read_metrics(daemon) and \
                        time.monotonic() < end:
                    time.sleep(0.02)
                time.sleep(0.2)
                taken.append(watch_death(client, listeners[0]))
    return {"bound_ms": DEATH_BOUND_MS, "median_ms": statistics.median(taken),
            "max_ms": max(taken), "deaths": len(taken),
            "late": sum(one > DEATH_BOUND_MS for one in taken)}


def print_death(found):
    print(f"death: {found['deaths']} times a server is closed, under full load: its last packet "
          f"after {found['median_ms']:.0f} ms (median), {found['max_ms']:.0f} at most; to be "
          f"{found['bound_ms']} at most, and {found['late']} were later")


KINDS = {"rate": (measure_rate, print_rate), "types": (measure_types, print_types),
         "https": (measure_https, print_https), "death": (measure_death, print_death)}


def enter_namespace():
    """Start anew in one, where that may be; there, make the addresses local."""
    if INSIDE in os.environ:
        for words in ("link set lo up", f"route add local {ALL} dev lo"):
            subprocess.run(["ip", *words.split()], check=True)
        return
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else
                                     ["--user", "--map-root-user"])]
    try:
        subprocess.run([*unshare, "ip", "link"], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no network namespace here: {error}")
        sys.exit(77)
    os.environ[INSIDE] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, __file__, *sys.argv[1:]])


def main():
    if sys.argv[1:2] == ["serve"]:
        main_of_server(*sys.argv[2:])
        return
    made = lab.parser(__doc__, rounds=3, seconds=5)
    made.add_argument("kind", nargs="*", choices=[*KINDS, []],
                      help="which to measure (default: all)")
    options = lab.parse(made)
    enter_namespace()
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
