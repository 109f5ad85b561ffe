# SPDX-License-Identifier: BSD-3-Clause
"""Pictures in SVG, as tests look at them: drawn by rsvg-convert, and read as XML."""

import collections
import re
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"
DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{\n(.*?)\n\}\n", re.DOTALL)
# Of a letter, in parts of the font's size: DejaVu Sans' is wide.
LETTER = 0.62


def paeth(left, up, corner):
    near = left + up - corner
    return min((abs(near - left), 0, left), (abs(near - up), 1, up),
               (abs(near - corner), 2, corner))[2]


def unfilter(kind, line, before, pixel):
    if kind == 0:
        return line
    if kind == 2:
        return bytes((byte + up) & 255 for byte, up in zip(line, before))
    line = bytearray(line)
    for i, byte in enumerate(line):
        left = line[i - pixel] if i >= pixel else 0
        if kind == 1:
            add = left
        elif kind == 3:
            add = (left + before[i]) // 2
        else:
            add = paeth(left, before[i], before[i - pixel] if i >= pixel else 0)
        line[i] = (byte + add) & 255
    return bytes(line)


def pixels(png):
    """Colours of a PNG of 8 bits a channel, counted."""
    at, data, counts = 8, b"", collections.Counter()
    while at < len(png):
        n_bytes, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + n_bytes]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            data += body
        at += 12 + n_bytes
    pixel = {2: 3, 6: 4}[colour]
    assert depth == 8
    data = zlib.decompress(data)
    before = bytes(width * pixel)
    for y in range(height):
        start = y * (width * pixel + 1)
        before = unfilter(data[start], data[start + 1:start + 1 + width * pixel], before, pixel)
        counts.update(zip(*(before[channel::pixel] for channel in range(3))))
    return {bytes(colour): n for colour, n in counts.items()}


def draw(svg):
    return pixels(subprocess.run(["rsvg-convert"], input=svg.encode(), stdout=subprocess.PIPE,
                                 check=True, timeout=60).stdout)


def font_size(element):
    classes = element.get("class", "").split()
    return {"small": 11, "label": 12, "head": 15}.get(
        next((c for c in classes if c in ("small", "label", "head")), ""), 13)


def box(element):
    """(left, top, right, bottom) of a text that is not turned, generously."""
    classes = element.get("class", "").split()
    x, y, size = float(element.get("x")), float(element.get("y")), font_size(element)
    width = LETTER * size * len(element.text or "")
    left = x - width if "end" in classes else x - width / 2 if "middle" in classes else x
    return left, y - 0.8 * size, left + width, y + 0.2 * size


def check_texts(case, name, svg):
    """Of a unittest case: no text is cut off, or lies over another."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    texts = [t for t in root.iter(SVG + "text") if t.get("transform") is None]
    case.assertGreater(len(texts), 8, name)
    boxes = [(box(t), t.text) for t in texts]
    for (left, top, right, bottom), text in boxes:
        case.assertTrue(left >= 0 and top >= 0 and right <= width and bottom <= height,
                        f"{name}: '{text}' is cut off")
    for i, (one, text) in enumerate(boxes):
        for other, beside in boxes[:i]:
            apart = (one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or
                     other[1] >= one[3])
            case.assertTrue(apart, f"{name}: '{text}' lies over '{beside}'")
