# SPDX-License-Identifier: Apache-2.0
"""
Writes Parquet byte by byte, for what pyarrow reads but does not write: older list forms,
levels in the deprecated packing, lists that span pages, unusual footers.
"""
import struct

BOOL, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
UTF8, MAP, MAP_KEY_VALUE, LIST = range(4)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def zigzag(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def thrift(fields):
    """A struct of (id, value): int is i32, ("l", n) i64, bytes, list of structs or ints, bool."""
    out, last = b"", 0
    for number, v in fields:
        if v is None:
            continue
        if isinstance(v, bool):
            kind, body = (1 if v else 2), b""
        elif isinstance(v, int):
            kind, body = 5, zigzag(v)
        elif isinstance(v, tuple):
            kind, body = 6, zigzag(v[1])
        elif isinstance(v, bytes):
            kind, body = 8, varint(len(v)) + v
        elif isinstance(v, dict):
            kind, body = 12, thrift(v.items())
        else:
            item = 12 if not v or isinstance(v[0], dict) else 8 if isinstance(v[0], bytes) else 5
            body = bytes([len(v) << 4 | item]) if len(v) < 15 else bytes([0xF0 | item]) + varint(len(v))
            for x in v:
                body += thrift(x.items()) if item == 12 else varint(len(x)) + x if item == 8 else zigzag(x)
            kind = 9
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number)
        out += body
        last = number
    return out + b"\0"


def element(name, repetition=None, kind=None, children=None, converted=None, length=None):
    return {1: kind, 2: length, 3: repetition, 4: name.encode(), 5: children, 6: converted}


def levels(values, top, msb=False):
    """One level stream of a V1 page."""
    if top == 0:
        return b""
    bits = top.bit_length()
    if msb:
        text = "".join(f"{v:0{bits}b}" for v in values)
        text += "0" * (-len(text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
    out, i = b"", 0
    while i < len(values):  # runs of equal ones, else groups of eight
        n = 1
        while i + n < len(values) and values[i + n] == values[i]:
            n += 1
        if n >= 8 or i + n == len(values):
            out += varint(n << 1) + bytes([values[i]])
            i += n
            continue
        group = values[i : i + 8] + [0] * max(0, 8 - len(values[i : i + 8]))
        number = sum(v << bits * k for k, v in enumerate(group))
        out += varint(1 << 1 | 1) + number.to_bytes(bits, "little")
        i += 8
    return struct.pack("<I", len(out)) + out


def plain(kind, value):
    if kind == BYTES:
        return struct.pack("<I", len(value)) + value
    return struct.pack({INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLE: "<d"}[kind], value)


class Leaf:
    """A leaf's entries: (rep, def) or (rep, def, value), and how many go on each page."""

    def __init__(self, path, kind, max_rep, max_def, entries, page=1000, msb=False, v2_rows=None):
        self.path, self.kind, self.entries, self.page, self.msb = path, kind, entries, page, msb
        self.v2_rows = v2_rows  # what the headers of version 2 say; None: version 1
        self.max_rep, self.max_def = max_rep, max_def

    def page_v2(self, part):
        reps = levels([e[0] for e in part], self.max_rep)[4:]
        defs = levels([e[1] for e in part], self.max_def)[4:]
        body = reps + defs + b"".join(plain(self.kind, e[2]) for e in part if len(e) > 2)
        data = {1: len(part), 2: 0, 3: self.v2_rows, 4: 0, 5: len(defs), 6: len(reps), 7: False}
        return thrift({1: 3, 2: len(body), 3: len(body), 8: data}.items()) + body

    def pages(self):
        out = b""
        for i in range(0, len(self.entries), self.page):
            part = self.entries[i : i + self.page]
            if self.v2_rows is not None:
                out += self.page_v2(part)
                continue
            body = levels([e[0] for e in part], self.max_rep, self.msb)
            body += levels([e[1] for e in part], self.max_def, self.msb)
            body += b"".join(plain(self.kind, e[2]) for e in part if len(e) > 2)
            encoding = 4 if self.msb else 3
            head = thrift({1: 0, 2: len(body), 3: len(body), 5: {1: len(part), 2: 0, 3: encoding, 4: encoding}}.items())
            out += head + body
        return out


def write(path, schema, rows, leaves):
    """schema: elements with the root first; one row group."""
    out, columns = b"PAR1", []
    for leaf in leaves:
        pages = leaf.pages()
        columns.append({2: ("l", len(out)), 3: {1: leaf.kind, 2: [0, 3], 3: [p.encode() for p in leaf.path], 4: 0,
                        5: ("l", len(leaf.entries)), 6: ("l", len(pages)), 7: ("l", len(pages)), 9: ("l", len(out))}})
        out += pages
    footer = thrift({1: 1, 2: schema, 3: ("l", rows), 4: [{1: columns, 2: ("l", len(out)), 3: ("l", rows)}]}.items())
    with open(path, "wb") as f:
        f.write(out + footer + struct.pack("<I", len(footer)) + b"PAR1")
