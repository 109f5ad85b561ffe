#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold every #include against who may include whom, and the top level against its fixed list.

Arrows point down to lb/core; nothing points back up. What a rule below does not allow is
printed as FILE:LINE, and the exit status is 1.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP_LEVEL = {"lb", "config", "tests", "tools", "meson.build", "README.md", "LICENSE",
             "CONTRIBUTING.md"}

# Libraries by the headers they own; any other <header> has to be the system's.
LIBRARIES = {
    "dpdk": r"rte_.*\.h|cmdline.*\.h",
    "xxhash": r"xxhash\.h",
    "libyaml": r"yaml\.h",
    "libbpf": r"bpf/.*\.h",
    "libpcap": r"pcap(/.*)?\.h",
    "jansson": r"jansson\.h",
    "libcurl": r"curl/.*\.h",
    "libmnl": r"libmnl/.*\.h",
    "libmicrohttpd": r"microhttpd\.h",
    "libsystemd": r"systemd/.*\.h",
    "cmocka": r"cmocka\.h",
    "ncurses": r"curses\.h",
    "libcrypto": r"openssl/.*\.h",
    "intrinsics": r"immintrin\.h",
}
SYSTEM = re.compile(
    r"(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal"
    r"|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings"
    r"|tgmath|threads|time|uchar|wchar|wctype|dirent|endian|fcntl|fnmatch|getopt|glob|grp"
    r"|ifaddrs|langinfo|libgen|malloc|netdb|poll|pthread|pwd|regex|sched|semaphore|spawn|syslog|termios"
    r"|ucontext|unistd|sysexits)\.h|(sys|net|netinet|arpa|linux|asm|bits)/.*\.h")

# The first pattern that matches a file's path gives what it may include besides the system's
# headers: project files by pattern, libraries by name.
RULES = [
    (r"lb/core/lb_hash(_flow)?\.[ch]", [r"lb/core/.*"], {"xxhash"}),
    (r"lb/core/lb_(aes\.c|flow_lookup\.h)", [r"lb/core/.*"], {"intrinsics"}),
    (r"lb/core/.*", [r"lb/core/.*"], set()),
    (r"lb/dataplane/.*", [r"lb/dataplane/.*", r"lb/core/.*"], {"dpdk"}),
    (r"lb/health/hc_tls\.c", [r"lb/health/.*", r"lb/core/.*"], {"libcrypto"}),
    (r"lb/health/.*", [r"lb/health/.*", r"lb/core/.*"], set()),
    (r"lb/control/ctl_etcd_client\.c",
     [r"lb/control/.*", r"lb/core/.*"], {"libcurl", "libcrypto"}),
    (r"lb/control/.*",
     [r"lb/control/.*", r"lb/health/.*", r"config/.*", r"lb/core/.*",
      r"lb/dataplane/dp\.h"],
     {"jansson", "libmnl", "libmicrohttpd", "libsystemd"}),
    (r"lb/main\.c", [r"lb/control/.*", r"config/.*", r"lb/dataplane/dp\.h"], {"dpdk"}),
    (r"config/.*",
     [r"config/.*", r"lb/core/lb_(addr|compiler|device|hex|limits|prime)\.h"], {"libyaml"}),
    (r"tools/(shunt_)?bench.*",
     [r"tools/.*", r"config/.*", r"lb/core/.*", r"lb/control/ctl_apply\.h",
      r"lb/dataplane/.*"],
     {"dpdk", "jansson"}),
    (r"tools/(shunt_)?replay.*",
     [r"tools/.*", r"config/.*", r"lb/core/.*",
      r"lb/control/ctl_(proto|apply)\.h", r"lb/dataplane/dp\.h"],
     {"jansson", "libpcap"}),
    (r"tools/decap/.*",
     [r"tools/decap/.*", r"lb/core/lb_(addr|compiler)\.h"], {"jansson", "libbpf"}),
    (r"tools/compare_fill_keys\.c", [r"tools/.*", r"lb/core/.*"], {"libcrypto"}),
    (r"tools/shuntctl_top\.c",
     [r"tools/.*", r"lb/core/.*", r"lb/control/ctl_proto\.h"], {"jansson", "ncurses"}),
    (r"tools/.*",
     [r"tools/.*", r"config/.*", r"lb/core/.*", r"lb/control/ctl_proto\.h"], {"jansson"}),
    (r"tests/(unit|property|fuzz)/.*", [r".*"],
     {"cmocka", "jansson", "libcrypto", "libpcap", "libyaml", "xxhash"}),
    (r"tests/.*", [r".*"], set(LIBRARIES)),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def project_files():
    """What is committed or could be; in a copy without git, what lies there."""
    try:
        out = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
            capture_output=True, text=True).stdout
        names = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0].startswith("build")]
    return sorted(name for name in names if (ROOT / name).is_file())


def library_of(header):
    for name, pattern in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            return name
    return "system" if SYSTEM.fullmatch(header) else None


def fault(rule, quote, header, by_name):
    """Why the rule does not allow the include; None where it does."""
    _, allowed_files, allowed_libraries = rule
    if quote == "<":
        library = library_of(header)
        if library is None:
            return "no library that the project knows"
        if library != "system" and library not in allowed_libraries:
            return f"{library} is not for this folder"
        return None
    found = by_name.get(pathlib.PurePath(header).name, [])
    if not found:
        return "no such file in the project"
    if not any(re.fullmatch(pattern, path) for path in found for pattern in allowed_files):
        return "an arrow that points the wrong way"
    return None


def check_includes(names):
    by_name = {}
    for name in names:
        by_name.setdefault(pathlib.PurePath(name).name, []).append(name)
    faults = []
    for name in names:
        if not name.endswith((".c", ".h")):
            continue
        rule = next((rule for rule in RULES if re.fullmatch(rule[0], name)), None)
        if rule is None:
            faults.append(f"{name}:1: in no folder that the rules know")
            continue
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            why = match and fault(rule, match[1], match[2], by_name)
            if why:
                faults.append(f"{name}:{number}: {line.strip()}: {why}")
    return faults


def check_top_level(names):
    entries = {name.split("/")[0] for name in names}
    return [f"{entry}: not one of the fixed entries of the top level"
            for entry in sorted(entries - TOP_LEVEL) if not entry.startswith(".")]


def main():
    names = project_files()
    faults = check_includes(names) + check_top_level(names)
    print("\n".join(faults) or f"{len(names)} files keep to the rules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
