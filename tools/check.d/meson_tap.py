#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tell what meson's testlog.json holds as TAP, or the names of the tests that failed."""

import argparse
import json
import pathlib

GOOD = {"OK", "EXPECTEDFAIL", "SKIP"}


def show(row, test):
    name = f"{row}: {test['name']}"
    if test["result"] == "SKIP":
        print(f"ok - {name} # SKIP")
    elif test["result"] in GOOD:
        print(f"ok - {name}")
    else:
        print(f"not ok - {name} ({test['result']})")
        output = (test.get("stdout") or "") + (test.get("stderr") or "")
        print("\n".join("# " + line for line in output.splitlines()[-30:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failed", action="store_true", help="only the names of what failed")
    parser.add_argument("--but-failed", action="store_true", help="only what did not fail")
    parser.add_argument("row", nargs="?", help="said before each name")
    parser.add_argument("build", type=pathlib.Path, help="the build's directory")
    args = parser.parse_args()
    log = args.build / "meson-logs" / "testlog.json"
    results = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for test in results:
        if args.failed:
            if test["result"] not in GOOD:
                print(test["name"].rpartition(" / ")[2])
        elif not args.but_failed or test["result"] in GOOD:
            show(args.row, test)
    if not results and not args.failed:
        print(f"not ok - {args.row}: has tests")


if __name__ == "__main__":
    main()
