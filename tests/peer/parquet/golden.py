# SPDX-License-Identifier: Apache-2.0
"""
golden.py DIR: writes the small files that tests/unit/test_table_parquet.c reads, each with its
rows as pyarrow reads them beside it (.jsonl); what is damaged has no rows.
"""
import decimal
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import expect
import hand

DIR = sys.argv[1]
e = hand.element
turn = pa.struct([("role", pa.string()), ("content", pa.string())])


def write(name, table, same=None, **options):
    """same: the name of the rows, where several files have the same ones."""
    path = os.path.join(DIR, name + ".parquet")
    options = {"store_schema": False, "write_statistics": False, **options}
    pq.write_table(table, path, **options)
    rows(same or name, path)


def rows(name, path):
    with open(os.path.join(DIR, name + ".jsonl"), "w") as f:
        f.writelines(line + "\n" for line in expect.rows(path))


def by_hand(name, schema, count, leaves, judged=True):
    path = os.path.join(DIR, name + ".parquet")
    if judged:
        packing = [leaf.msb for leaf in leaves]
        for leaf in leaves:
            leaf.msb = False
        hand.write(path, schema, count, leaves)
        rows(name, path)
        for leaf, msb in zip(leaves, packing):
            leaf.msb = msb
    hand.write(path, schema, count, leaves)


def mixed(n):
    """Flat and nested columns with nulls and repeats."""
    return pa.table({
        "id": pa.array(range(n), pa.int64()),
        "text": [None if i % 7 == 3 else f"row {i} " * (i % 4) for i in range(n)],
        "kind": [["alpha", "beta", None][i % 3] for i in range(n)],
        "score": [i / 3 for i in range(n)],
        "good": [None if i % 5 == 0 else i % 2 == 0 for i in range(n)],
        "tags": [None if i % 6 == 5 else [f"t{i % 3}", None][: i % 3] for i in range(n)],
    })


def conversations(n):
    """The shapes of VisionArena, ShareGPT and image sets, with nulls at every level."""
    def turns(i):
        return None if i % 11 == 10 else [
            None if (i + k) % 9 == 8 else [
                None if (i + k + j) % 8 == 7 else {"role": ["user", "assistant"][j % 2], "content": None if (i + j) % 10 == 9 else f"wörd {i}.{k}.{j}"}
                for j in range((i + k) % 3)]
            for k in range(i % 4)]
    said = pa.struct([("from", pa.string()), ("value", pa.string())])
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({
        "conversation": pa.array([turns(i) for i in range(n)], pa.list_(pa.list_(turn))),
        "conversations": pa.array([[{"from": "human" if k % 2 == 0 else "gpt", "value": "x" * k} for k in range(i % 5)] for i in range(n)], pa.list_(said)),
        "images": pa.array([None if i % 4 == 3 else [{"bytes": bytes([i % 256] * (i % 9)), "path": None}] * (i % 3) for i in range(n)], pa.list_(image)),
        "image": pa.array([None if i % 5 == 4 else {"bytes": None if i % 3 == 2 else b"\x89PNG" + bytes([i % 256]), "path": f"{i}.png"} for i in range(n)], image),
        "turns": pa.array([[f"turn {k}" for k in range(i % 3)] for i in range(n)], pa.list_(pa.string())),
    })


def types():
    columns = {
        "i8": pa.array([-128, 127, None], pa.int8()), "i16": pa.array([-32768, 32767, None], pa.int16()),
        "i32": pa.array([-2**31, 2**31 - 1, None], pa.int32()), "i64": pa.array([-2**63, 2**63 - 1, None], pa.int64()),
        "u8": pa.array([0, 255, None], pa.uint8()), "u16": pa.array([0, 65535, None], pa.uint16()),
        "u32": pa.array([0, 2**32 - 1, None], pa.uint32()), "u64": pa.array([0, 2**64 - 1, None], pa.uint64()),
        "f16": pa.array([0.1, float("-inf"), 6e-8], pa.float16()), "f32": pa.array([0.1, float("nan"), 1e-45], pa.float32()),
        "f64": pa.array([0.1, float("inf"), 5e-324], pa.float64()), "bool": pa.array([True, False, None]),
        "date": pa.array([0, -719162, 2932896], pa.date32()), "ts_ms": pa.array([0, -1, 1700000000123], pa.timestamp("ms")),
        "ts_us": pa.array([0, -62135596800000000, 253402300799999999], pa.timestamp("us", "UTC")),
        "ts_ns": pa.array([1, -2**63, 2**63 - 1], pa.timestamp("ns")), "t_ms": pa.array([0, 86399999, 1000], pa.time32("ms")),
        "t_us": pa.array([0, 86399999999, 1], pa.time64("us")), "t_ns": pa.array([0, 86399999999999, 1], pa.time64("ns")),
        "d9": pa.array([decimal.Decimal("-0.05"), decimal.Decimal("9999999.99"), None], pa.decimal128(9, 2)),
        "d38": pa.array([decimal.Decimal("-1") * 10**37, decimal.Decimal("0"), None], pa.decimal128(38, 0)),
        "d76": pa.array([decimal.Decimal("-1E-70"), decimal.Decimal("12345.5"), None], pa.decimal256(76, 70)),
        "fixed": pa.array([b"abc", b"\0\xff\x80", None], pa.binary(3)), "uuid": pa.array([bytes(range(16)), bytes(16), None], pa.uuid()),
        "bytes": pa.array([b"", b"\0", b"ab"]), "text": pa.array(['"\\/\n\x01\x7f', "漢字 😀", ""]), "null": pa.nulls(3),
        "text_map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
        "int_map": pa.array([[(1, ["x"]), (2, None)], [], None], pa.map_(pa.int32(), pa.list_(pa.string()))),
        "deep": pa.array([{"a": {"b": [{"c": None}, None]}}, {"a": None}, None], pa.struct([("a", pa.struct([("b", pa.list_(pa.struct([("c", pa.int8())])))]))])),
    }
    return pa.table(columns)


def good():
    for codec in "none", "snappy", "gzip", "zstd", "brotli", "lz4":
        write(codec + "-v1", mixed(60), "mixed", compression=codec, data_page_size=100, write_batch_size=20)
        write(codec + "-v2", mixed(60), "mixed", compression=codec, data_page_size=100, write_batch_size=20, data_page_version="2.0")
    small = {"data_page_size": 64, "write_batch_size": 5, "compression": "snappy"}
    write("nested-v1", conversations(40), "nested", row_group_size=17, use_dictionary=False, **small)
    write("nested-v2", conversations(40), "nested", row_group_size=17, data_page_version="2.0", **small)
    write("fallback", mixed(60), "mixed", dictionary_pagesize_limit=30, **small)
    write("types", types(), compression="none", version="2.6", use_dictionary=False)
    write("int96", pa.table({"t": pa.array([0, 1, -2**62, 2**62, None], pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
    seconds = [59, 60, 3599, 3600, 36000, 43200, 82800, 86340]
    write("times", pa.table({
        "t_ms": pa.array([s * 1000 for s in seconds], pa.time32("ms")), "t_us": pa.array([s * 1000000 + 5 for s in seconds], pa.time64("us")),
        "ts_ms": pa.array([-s * 1000 for s in seconds], pa.timestamp("ms")), "ts_ns": pa.array([s * 86400 * 10**9 for s in seconds], pa.timestamp("ns", "UTC")),
        "date": pa.array([-719162, -141427, -25508, 59, 11016, 11382, 47541, 157113], pa.date32()),
    }), compression="none", use_dictionary=False)
    write("empty", mixed(0))
    write("stored-decimal", types().select(["d9"]), store_decimal_as_integer=True)
    n = 120
    write("delta", pa.table({
        "small": pa.array([i * i % 1000 for i in range(n)], pa.int32()), "wide": pa.array([(-1) ** i * (i << 54) for i in range(n)], pa.int64()),
        "name": [f"prefix-{i // 10}-{i}" for i in range(n)], "length": ["x" * (i % 7) for i in range(n)], "fixed": pa.array([b"%03d" % i for i in range(n)], pa.binary(3)),
        "flag": [i % 13 < 4 for i in range(n)], "f32": pa.array([i / 7 for i in range(n)], pa.float32()), "f64": [i / 7 for i in range(n)],
    }), use_dictionary=False, data_page_version="2.0", compression="zstd", data_page_size=400, write_batch_size=100, column_encoding={
        "small": "DELTA_BINARY_PACKED", "wide": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "length": "DELTA_LENGTH_BYTE_ARRAY",
        "fixed": "DELTA_BYTE_ARRAY", "flag": "RLE", "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT"})
    path = os.path.join(DIR, "duckdb.parquet")
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("COPY (SELECT i, 'text ' || (i % 3) AS t, [[{'a': i, 'b': [i, NULL]}], [], NULL] AS n, MAP {'k' || i: i} AS m, i::DECIMAL(30, 5) AS d "
                       f"FROM range(50) r(i)) TO '{path}' (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION V2)")
    rows("duckdb", path)


def old_lists():
    ints = lambda rows, filled, top: [x for r in rows for x in ([(0, 0)] if r is None else [(0, filled - 1)] if not r else [(k > 0, top, v) for k, v in enumerate(r)])]
    texts = lambda rows, filled, top: [x[:2] + (b"t%d" % x[2],) if len(x) > 2 else x for x in ints(rows, filled, top)]
    lists = [[1, 2, 3], [], None, [4], list(range(30)), [], [7] * 9]
    bare = [r or [] for r in lists]
    by_hand("bare-list", [e("r", children=1), e("c", 2, hand.INT32)], 7, [hand.Leaf(["c"], hand.INT32, 1, 1, ints(bare, 1, 1), 4)])
    two = [e("r", children=1), e("c", 1, children=1, converted=hand.LIST)]
    by_hand("two-levels", two + [e("array", 2, hand.INT32)], 7, [hand.Leaf(["c", "array"], hand.INT32, 1, 2, ints(lists, 2, 2), 4)])
    by_hand("two-levels-packed", two + [e("array", 2, hand.INT32)], 7, [hand.Leaf(["c", "array"], hand.INT32, 1, 2, ints(lists, 2, 2), 4, True)])
    by_hand("two-levels-tuple", two + [e("c_tuple", 2, children=1), e("x", 0, hand.INT32)], 7, [hand.Leaf(["c", "c_tuple", "x"], hand.INT32, 1, 2, ints(lists, 2, 2), 5)])
    by_hand("two-levels-struct", two + [e("bag", 2, children=2), e("from", 0, hand.BYTES, converted=hand.UTF8), e("n", 0, hand.INT32)], 7,
            [hand.Leaf(["c", "bag", "from"], hand.BYTES, 1, 2, texts(lists, 2, 2), 3), hand.Leaf(["c", "bag", "n"], hand.INT32, 1, 2, ints(lists, 2, 2), 50)])
    by_hand("old-map", [e("r", children=1), e("c", 1, children=1, converted=hand.MAP_KEY_VALUE), e("map", 2, children=2), e("key", 0, hand.BYTES, converted=hand.UTF8), e("value", 1, hand.INT32)], 3,
            [hand.Leaf(["c", "map", "key"], hand.BYTES, 1, 2, texts([[1, 2], None, []], 2, 2)), hand.Leaf(["c", "map", "value"], hand.INT32, 1, 3, ints([[1, 2], None, []], 2, 3))])


def damaged():
    """Files that say what cannot be; each must be one sentence."""
    root, flat = e("r", children=1), [(0, 0, i) for i in range(5)]
    leaf = lambda entries=flat, **k: hand.Leaf(["c"], hand.INT32, 0, k.get("top", 0), entries)
    column = e("c", 0, hand.INT32)
    bad = lambda name, schema, count, leaves: by_hand("bad-" + name, schema, count, leaves, False)
    bad("more-rows", [root, column], 9, [leaf()])
    bad("more-children", [e("r", children=3), column], 5, [leaf()])
    bad("fewer-children", [root, column, e("d", 0, hand.INT32)], 5, [leaf()])
    bad("huge-children", [e("r", children=2**31 - 1), column], 5, [leaf()])
    bad("no-type", [root, e("c", 0)], 5, [leaf()])
    bad("type", [root, e("c", 0, 77)], 5, [leaf()])
    bad("other-type", [root, e("c", 0, hand.DOUBLE)], 5, [leaf()])
    bad("columns", [e("r", children=2), column, e("d", 0, hand.INT32)], 5, [leaf()])
    bad("deep", [root] + [e(f"n{i}", 0, children=1) for i in range(80)] + [column], 5, [leaf()])
    bad("values", [root, column], 6, [hand.Leaf(["c"], hand.INT32, 0, 0, flat + [(0, 0)])])
    bad("level", [root, e("c", 1, hand.INT32)], 20, [hand.Leaf(["c"], hand.INT32, 0, 1, [(0, 1, 7)] * 10 + [(0, 3)] * 10, 10)])
    pair = [root, e("c", 1, children=1, converted=hand.LIST), e("bag", 2, children=2), e("a", 0, hand.INT32), e("b", 0, hand.INT32)]
    one, two = [(0, 2, 1), (1, 2, 2), (0, 2, 3)], [(0, 2, 1), (0, 2, 2), (1, 2, 3)]
    bad("siblings", pair, 2, [hand.Leaf(["c", "bag", "a"], hand.INT32, 1, 2, one), hand.Leaf(["c", "bag", "b"], hand.INT32, 1, 2, two)])
    bad("siblings-null", pair, 2, [hand.Leaf(["c", "bag", "a"], hand.INT32, 1, 2, [(0, 0), (0, 1)]), hand.Leaf(["c", "bag", "b"], hand.INT32, 1, 2, two)])
    bad("page-rows", pair[:2] + [e("array", 2, hand.INT32)], 6, [hand.Leaf(["c", "array"], hand.INT32, 1, 2, [(0, 2, i) for i in range(6)], 3, v2_rows=2)])
    bad("no-row", pair[:2] + [e("array", 2, hand.INT32)], 1, [hand.Leaf(["c", "array"], hand.INT32, 1, 2, [(1, 2, 5), (0, 2, 6)])])


os.makedirs(DIR, exist_ok=True)
good()
old_lists()
damaged()
