#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets a second through shunt-replay, and the memory it takes, printed.

usage: bench_replay.py SHUNT-REPLAY [PACKETS]

The capture goes in by a pipe, so nothing of its size is kept anywhere. Memory is asserted, as
it is no time: within 300 MiB whatever the capture's length and the number of its flows.

What one percent of fragments and ICMP errors costs is measured in turns with none of them, and
the ratio of the medians of CPU time is printed.
"""

import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading

LIMIT_MIB = 300
CHUNK = 4096
TURNS = 5
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


def ip_frame(protocol, client, service, payload, ident=0, fragment=0):
    fields = [0x45, 0, 20 + len(payload), ident, fragment, 64, protocol, 0, client, service]
    fields[7] = checksum(IP.pack(*fields))
    return ETHER + IP.pack(*fields) + payload


def odd_frames(i):
    """A datagram of two fragments, and an error that quotes what its backend answered."""
    client, web = 0x0b000000 + i, 0xc633640a
    segment = TCP.pack(1024 + i, 80, 0, 0, 0x50, 0x10, 1000, 0, 0) + bytes(44)
    quoted = ip_frame(6, web, client, TCP.pack(80, 1024 + i, 0, 0, 0x50, 0x10, 1000, 0, 0))
    error = bytes((3, 1, 0, 0, 0, 0, 0, 0)) + quoted[len(ETHER):]
    return [ip_frame(6, client, web, segment[:40], ident=i + 1, fragment=0x2000),
            ip_frame(6, client, web, segment[40:], ident=i + 1, fragment=5),
            ip_frame(1, client, web, error)]


def write_capture(file, frames):
    file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
    for i, data in enumerate(frames):
        file.write(RECORD.pack(1700000000, i, len(data), len(data)) + data)
    file.close()


def mixed_frames(n_packets, has_odd):
    """Of 1000 flows; where it has odd ones, every hundredth is one of them."""
    plain = [frame(0x0b000000 + i, 1024 + i) for i in range(1000)]
    odd = [data for i in range(1000) for data in odd_frames(i)]
    return [odd[i // 100 % len(odd)] if has_odd and i % 100 == 99 else plain[i % 1000]
            for i in range(n_packets)]


def cpu_seconds_of(program, config, capture, n_loops):
    """Of a whole run, which has to forward every packet."""
    command = [program, "--config", config, "--json", "--loop", str(n_loops), capture]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    packets = json.loads(done.stdout)["packets"]
    assert packets["forwarded"] == packets["received"] > 0, packets
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_odd_ones(program, config, n_packets):
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("plain.pcap", "odd.pcap")]
        for name, has_odd in zip(names, (False, True)):
            write_capture(open(name, "wb"), mixed_frames(n_packets // 10, has_odd))
        costs = [[cpu_seconds_of(program, config, name, 10) for name in names]
                 for _ in range(TURNS)]
    plain, odd = (statistics.median(column) for column in zip(*costs))
    print(f"1 % of fragments and errors: {odd / plain:.3f} times the CPU time of none "
          f"({plain:.2f} s for {n_packets} packets, medians of {TURNS} in turns)")


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
        measure_odd_ones(program, config.name, n_packets)
        for n_flows in (1000, n_packets):
            run(program, config.name, n_packets, n_flows)
            mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{n_packets} packets of {n_flows} flows, from a pipe: "
                  f"{mib:.0f} MiB at most")
            assert mib <= LIMIT_MIB, f"{mib:.0f} MiB is more than {LIMIT_MIB}"


if __name__ == "__main__":
    main()
