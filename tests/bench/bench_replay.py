#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets a second through shunt-replay, and the memory it takes, printed.

usage: bench_replay.py SHUNT-REPLAY [PACKETS]

The capture goes in by a pipe, so nothing of its size is kept anywhere. Memory is asserted, as
it is no time: within 300 MiB whatever the capture's length and the number of its flows.
"""

import json
import resource
import struct
import subprocess
import sys
import tempfile
import threading

LIMIT_MIB = 300
CHUNK = 4096
CONFIG = """
dataplane:
  ports:
    - {name: wan, device: net_null0, addresses: [192.0.2.1/24], next_hop: '02:00:00:00:00:fe'}
services:
  - name: web
    address: 198.51.100.10
    protocol: tcp
    port: 80
    backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]
"""
ETHER = bytes.fromhex("020000000001020000000002") + b"\x08\x00"
IP = struct.Struct(">BBHHHBBHII")
TCP = struct.Struct(">HHIIBBHHH")
RECORD = struct.Struct("<IIII")


def checksum(header):
    total = sum(struct.unpack(">10H", header))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return 0xffff - total


def frame(client, port):
    fields = [0x45, 0, 40, 0, 0x4000, 64, 6, 0, client, 0xc633640a]
    fields[7] = checksum(IP.pack(*fields))
    return ETHER + IP.pack(*fields) + TCP.pack(port, 80, 0, 0, 0x50, 0x10, 1000, 0, 0)


def feed(pipe, n_packets, n_flows):
    """Packet i belongs to flow i modulo n_flows, a millisecond's thousandth apart."""
    pipe.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
    frames = [frame(0x0b000000 + i, 1024 + i % 60000) for i in range(min(n_flows, CHUNK))]
    for start in range(0, n_packets, CHUNK):
        out = bytearray()
        for i in range(start, min(start + CHUNK, n_packets)):
            flow = i % n_flows
            data = frames[flow] if n_flows <= CHUNK else frame(0x0b000000 + flow, 1024)
            out += RECORD.pack(1700000000 + i // 1000000, i % 1000000, len(data), len(data))
            out += data
        pipe.write(out)
    pipe.close()


def run(program, config, n_packets, n_flows):
    command = [program, "--config", config, "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        feeder = threading.Thread(target=feed, args=(child.stdin, n_packets, n_flows))
        feeder.start()
        report = json.loads(child.stdout.read())
        feeder.join()
    assert child.returncode == 0, child.returncode
    assert report["packets"]["forwarded"] == n_packets, report["packets"]
    return report


def run_file(program, config, n_packets):
    """From a file, where making the packets takes none of the time."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as capture:
        feed(open(capture.name, "wb"), n_packets // 10, 1000)
        done = subprocess.run(
            [program, "--config", config, "--json", "--loop", "10", capture.name],
            stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main():
    program = sys.argv[1]
    n_packets = int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(CONFIG)
        config.flush()
        rate = run_file(program, config.name, n_packets)["rate"]
        print(f"{n_packets} packets of 1000 flows, from a file: "
              f"{rate['mpps']:.2f} million packets a second, no output files")
        for n_flows in (1000, n_packets):
            run(program, config.name, n_packets, n_flows)
            mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{n_packets} packets of {n_flows} flows, from a pipe: "
                  f"{mib:.0f} MiB at most")
            assert mib <= LIMIT_MIB, f"{mib:.0f} MiB is more than {LIMIT_MIB}"


if __name__ == "__main__":
    main()
