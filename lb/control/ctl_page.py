#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the status page as C: its bytes, and the policy that lets its own script and style run.

usage: ctl_page.py PAGE.html OUT.c
"""

import base64
import hashlib
import pathlib
import re
import sys


def hashes(page, element):
    """As a policy has them, of each <element>…</element>: without attributes, as all are."""
    found = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
    if not found or len(found) != page.count(f"<{element}"):
        sys.exit(f"ctl_page.py: a <{element}> is missing, or has attributes or no end")
    digests = [hashlib.sha256(text.encode()).digest() for text in found]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def main():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    policy = "; ".join([
        "default-src 'none'", f"script-src {hashes(page, 'script')}",
        f"style-src {hashes(page, 'style')}", "connect-src 'self'", "img-src data:",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'"])
    data = page.encode()
    lines = [", ".join(map(str, data[at:at + 20])) for at in range(0, len(data), 20)]
    rows = ",\n\t".join(lines)
    pathlib.Path(sys.argv[2]).write_text(
        '#include "ctl_page.h"\n\n'
        f'const char ctl_page_policy[] = "{policy}";\n'
        f"const size_t ctl_page_bytes = {len(data)};\n"
        f"const unsigned char ctl_page[] = {{\n\t{rows}}};\n", encoding="ascii")


if __name__ == "__main__":
    main()
