# SPDX-License-Identifier: BSD-3-Clause
"""The network of the live demo: each machine a network namespace, all on one switch.

    client   balancer   web-1   web-2   web-3   web-4
       |         |        |       |       |       |
    ===+=========+========+=======+=======+=======+===  switch, 192.0.2.0/24

The client's way to the service's address leads to the balancer. shuntd there sends each packet
on to a server, in an IPIP tunnel; shunt-decap takes it out, and the server, which has the
service's address on lo, answers straight to the client.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

SERVICE = "198.51.100.10"
PORT = 80
BALANCER = "192.0.2.1"
CLIENT = "192.0.2.100"
SERVERS = {f"web-{k}": f"192.0.2.{10 + k}" for k in range(1, 5)}
FIRST_SERVERS = ["web-1", "web-2", "web-3"]

# A download takes as long as its server makes it: 12 seconds.
DOWNLOAD_BYTES = 1200000
DOWNLOAD_RATE = "100k"

PATIENCE_S = 30
PREFIX = "shunt-demo-"
PROGRAMS = {"ip", "nginx", "shuntd", "shunt-decap"}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

CONFIG = """\
dataplane:
  workers: 1
  idle: adaptive
  ports:
    - {{name: wan, device: "net_af_packet,iface=wan0", addresses: [{balancer}/24]}}
control:
  socket: {socket}
  metrics: "off"
services:
  - name: web
    address: {service}
    protocol: tcp
    port: {port}
    forward: ipip
    backends:
"""

NGINX = """\
daemon off; master_process off; user root;
pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_timeout 0; default_type text/plain;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {port};
        root {folder};
        location / {{ return 200 "{name}\\n"; }}
        location /download {{ limit_rate {rate}; }}
    }}
}}
"""


def run(*command, **keys):
    """What a command writes; OSError where it fails. No signal of the terminal reaches it."""
    try:
        done = subprocess.run([str(word) for word in command], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE_S, start_new_session=True,
                              env={**os.environ, "PATH": PATH}, **keys)
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from error
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def wait_until(is_true, what):
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        if time.monotonic() > end:
            raise OSError(f"not in {PATIENCE_S} s: {what()}")
        time.sleep(0.05)


def answer_of(name):
    """What a server has for a download: lines of its name."""
    line = f"{name}\n".encode()
    return line * (DOWNLOAD_BYTES // len(line))


class Network:
    def __init__(self, build):
        self.tools = pathlib.Path(build).resolve() / "tools"
        self.names = ["switch", "client", "balancer", *SERVERS]
        self.processes = {}
        self.folder = None

    @property
    def socket(self):
        return self.folder / "shunt.sock"

    @staticmethod
    def netns(name):
        return f"{PREFIX}{os.getpid()}-{name}"

    def batch(self, name, *lines):
        run("ip", "-n", self.netns(name), "-batch", "-", input="\n".join(lines) + "\n")

    def run(self, name, *command):
        return run("ip", "netns", "exec", self.netns(name), *command)

    def enter(self, name):
        """This thread, for good: sockets that it makes belong to that machine."""
        with open(f"/run/netns/{self.netns(name)}", "rb") as there:
            if LIBC.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def spawn(self, name, machine, *command):
        """ip netns exec becomes the program. What it says is in the file NAME.log."""
        with open(self.log(name), "wb") as log:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", self.netns(machine), *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "PATH": PATH})

    def log(self, name):
        return self.folder / f"{name}.log"

    def words(self, name):
        return self.log(name).read_text(encoding="utf-8", errors="replace")

    def wait_for(self, name, word):
        """Until a program of ours has said so, or ended."""
        process = self.processes[name]
        wait_until(lambda: word in self.words(name) or process.poll() is not None,
                   lambda: f"{name}: {self.words(name)}")
        if process.poll() is not None:
            raise OSError(f"{name} does not start: {self.words(name)}")

    def make(self):
        """Machines and cables; OSError where the kernel does not let us."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        for name in self.names:
            run("ip", "netns", "add", self.netns(name))
            self.batch(name, "link set lo up")
        self.batch("switch", "link add switch type bridge", "link set switch up")
        self.plug("client", "eth0", CLIENT)
        # A packet socket sees what the kernel has left for a network card to do: nothing.
        self.run("client", "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off")
        self.batch("client", f"route add {SERVICE} via {BALANCER}")
        # The balancer's kernel sees the service's packets too, and is to leave them alone.
        self.plug("balancer", "wan0", BALANCER)
        self.batch("balancer", f"route add blackhole {SERVICE}")
        for name, address in SERVERS.items():
            self.plug(name, "eth0", address)
            self.batch(name, f"address add {SERVICE}/32 dev lo")

    def plug(self, name, interface, address):
        self.batch("switch", f"link add {name} type veth peer name {interface} "
                   f"netns {self.netns(name)}", f"link set {name} master switch up")
        self.batch(name, f"link set {interface} up",
                   f"address add {address}/24 dev {interface}")

    def start_servers(self):
        for name in SERVERS:
            folder = self.folder / name
            folder.mkdir()
            (folder / "download").write_bytes(answer_of(name))
            (folder / "nginx.conf").write_text(
                NGINX.format(folder=folder, name=name, port=PORT, rate=DOWNLOAD_RATE),
                encoding="ascii")
            self.spawn(f"nginx of {name}", name, "nginx", "-p", folder, "-c",
                       folder / "nginx.conf", "-e", folder / "error.log")
            self.spawn(f"shunt-decap of {name}", name, self.tools / "decap/shunt-decap",
                       "--interface", "eth0", "--service", SERVICE)
        for name in SERVERS:
            self.wait_for(f"shunt-decap of {name}", "attached")
            self.wait_for_nginx(name)

    def wait_for_nginx(self, name):
        wait_until(lambda: self.run(name, "ss", "-Hltn", f"sport = {PORT}") != "",
                   lambda: f"nginx of {name}: {self.words(f'nginx of {name}')}")

    def start_balancer(self):
        config = self.folder / "shunt.yaml"
        config.write_text(
            CONFIG.format(balancer=BALANCER, socket=self.socket, service=SERVICE, port=PORT)
            + "".join(f"      - {{name: {name}, address: {SERVERS[name]}}}\n"
                      for name in FIRST_SERVERS), encoding="ascii")
        self.spawn("shuntd", "balancer", self.tools / "shuntd", "--config", config)
        self.wait_for("shuntd", "shuntd: ready")
        wait_until(lambda: '"unreached":0' in self.shuntctl("--json", "status").replace(" ", ""),
                   lambda: f"next hops known: {self.shuntctl('status')}")

    def shuntctl(self, *words):
        return run(self.tools / "shuntctl", "--socket", self.socket, *words)

    def kill_nginx(self, name):
        process = self.processes[f"nginx of {name}"]
        process.kill()
        process.wait()

    def remove(self):
        """All of it, however far it came."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        for name in self.names:
            remove_namespace(self.netns(name))
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def remove_namespace(netns):
    """With what still runs there and is ours."""
    with contextlib.suppress(OSError):
        for pid in run("ip", "netns", "pids", netns).split():
            comm = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
            if comm in PROGRAMS:
                os.kill(int(pid), signal.SIGKILL)
    with contextlib.suppress(OSError):
        run("ip", "netns", "delete", netns)


def is_demo(pid):
    with contextlib.suppress(OSError):
        return b"demo.d/live.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def remove_leftovers():
    """Of demos that were killed before they could clean up."""
    name_of_ours = re.compile(rf"^{PREFIX}([0-9]+)-")
    folder = pathlib.Path("/run/netns")
    for path in folder.iterdir() if folder.is_dir() else ():
        found = name_of_ours.match(path.name)
        if found and not is_demo(found[1]):
            remove_namespace(path.name)
    for path in pathlib.Path(tempfile.gettempdir()).iterdir():
        found = name_of_ours.match(path.name)
        if found and not is_demo(found[1]) and path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
