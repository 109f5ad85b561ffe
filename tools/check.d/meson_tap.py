#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tell what meson's testlog.json holds as TAP: meson_tap.py ROW BUILD-DIR."""

import json
import pathlib
import sys

GOOD = {"OK", "EXPECTEDFAIL"}


def main():
    row, build = sys.argv[1:]
    log = pathlib.Path(build, "meson-logs", "testlog.json")
    results = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for test in results:
        name = f"{row}: {test['name']}"
        if test["result"] == "SKIP":
            print(f"ok - {name} # SKIP")
        elif test["result"] in GOOD:
            print(f"ok - {name}")
        else:
            print(f"not ok - {name} ({test['result']})")
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            print("\n".join("# " + line for line in output.splitlines()[-30:]))
    if not results:
        print(f"not ok - {row}: has tests")


if __name__ == "__main__":
    main()
