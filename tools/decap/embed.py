# SPDX-License-Identifier: BSD-3-Clause
"""embed.py OBJECT OUT.c: the compiled XDP program as an array in C."""

import pathlib
import sys

source, out = map(pathlib.Path, sys.argv[1:])
data = source.read_bytes()
rows = "\n".join("\t" + " ".join(f"{byte:#04x}," for byte in data[at:at + 12])
                 for at in range(0, len(data), 12))
out.write_text(f"""/* Made by embed.py. */
#include <stdalign.h>

#include "decap_program.h"

alignas(8) const unsigned char decap_object[] = {{
{rows}
}};
const size_t decap_object_bytes = sizeof(decap_object);
""", encoding="utf-8")
