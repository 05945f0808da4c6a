# SPDX-License-Identifier: Apache-2.0
"""
compare.py DRIVER DIR [SEED [COUNT]]: random schemas and values, written by pyarrow, by DuckDB
and by hand (hand.py); every row that our reader prints must be the one that pyarrow reads.
"""
import datetime
import decimal
import os
import random
import string
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import expect
import hand

R = random.Random()
WORDS = ["", "a", "hello", "Ünïcödé", "line\nbreak", 'quote " \\', "\x01\x7f", "漢字", "😀", "user", "assistant"]


def text():
    if R.random() < 0.02:
        return "".join(R.choice(string.printable) for _ in range(R.randrange(3000)))
    return " ".join(R.choice(WORDS) for _ in range(R.randrange(4)))


def number(bits, signed=True):
    width = R.randrange(1, bits + 1)
    v = R.getrandbits(width)
    if not signed:
        return v
    v = min(v, 2 ** (bits - 1) - 1)
    return -v - 1 if R.random() < 0.5 else v


def real():
    return R.choice([0.0, -0.0, 1.5, -2.25, 0.1, 1e300, 5e-324, float("inf"), float("nan"), R.random(), R.gauss(0, 1e6)])


def data(n=None):
    return bytes(R.getrandbits(8) for _ in range(R.randrange(40) if n is None else n))


def decimal_of(precision, scale):
    v = R.getrandbits(R.randrange(1, int(precision * 3.3219))) % 10**precision
    return decimal.Decimal(v if R.random() < 0.5 else -v).scaleb(-scale, decimal.Context(prec=80))


SIMPLE = [
    (pa.string(), text), (pa.string(), text), (pa.large_string(), text), (pa.binary(), data), (pa.bool_(), lambda: R.random() < 0.5),
    (pa.int8(), lambda: number(8)), (pa.int16(), lambda: number(16)), (pa.int32(), lambda: number(32)), (pa.int64(), lambda: number(64)),
    (pa.uint8(), lambda: number(8, False)), (pa.uint16(), lambda: number(16, False)), (pa.uint32(), lambda: number(32, False)),
    (pa.uint64(), lambda: number(64, False)), (pa.float32(), real),
    (pa.float64(), real), (pa.float16(), lambda: R.choice([0.0, -1.5, 0.1, 65504.0, 6e-8, 1e-5, float("inf"), float("nan")])),
    (pa.date32(), lambda: R.randrange(-700000, 2900000)), (pa.date64(), lambda: R.randrange(-70000, 29000) * 86400000),
    (pa.time32("s"), lambda: R.randrange(86400)), (pa.time32("ms"), lambda: R.randrange(86400000)),
    (pa.time64("us"), lambda: R.randrange(86400) * 1000000 + R.choice([0, 5, 250000])), (pa.time64("ns"), lambda: R.randrange(86400 * 10**9)),
    (pa.timestamp("s"), lambda: R.randrange(-10**10, 10**11)), (pa.timestamp("ms"), lambda: R.randrange(-10**13, 10**14)),
    (pa.timestamp("us", "UTC"), lambda: R.randrange(-10**16, 10**17)), (pa.timestamp("us"), lambda: R.randrange(-10**10, 10**11) * 10**6),
    (pa.timestamp("ns", "Europe/Paris"), lambda: R.randrange(-10**18, 9 * 10**18)), (pa.timestamp("ns"), lambda: R.randrange(-10**18, 9 * 10**18)),
    (pa.duration("us"), lambda: R.randrange(-10**12, 10**12)),
    (pa.decimal128(9, 2), lambda: decimal_of(9, 2)), (pa.decimal128(18, 0), lambda: decimal_of(18, 0)), (pa.decimal128(38, 10), lambda: decimal_of(38, 10)),
    (pa.decimal128(5, 5), lambda: decimal_of(5, 5)), (pa.decimal256(76, 30), lambda: decimal_of(76, 30)),
    (pa.binary(3), lambda: data(3)), (pa.binary(40), lambda: data(40)), (pa.uuid(), lambda: data(16)), (pa.null(), lambda: None),
    (pa.dictionary(pa.int32(), pa.string()), text),
]


def random_type(depth):
    """A type and how to make a value of it."""
    kind = R.random()
    if depth == 0 or kind < 0.45:
        return R.choice(SIMPLE)
    if kind < 0.7:
        t, make = random_type(depth - 1)
        size = R.choice([2, 4, 4, 30])
        nullable = R.random() < 0.6
        field = pa.field("element", t, nullable)
        make = maybe(make, 0.2 if nullable else 0, t)
        return R.choice([pa.list_, pa.large_list])(field), lambda: [make() for _ in range(R.randrange(size))]
    if kind < 0.92:
        members = [(f"{R.choice(['role', 'content', 'x', 'é'])}{i}", *random_type(depth - 1), R.random() < 0.6) for i in range(R.randrange(1, 4))]
        makes = {name: maybe(make, 0.2 if null else 0, t) for name, t, make, null in members}
        return pa.struct([pa.field(n, t, null) for n, t, _, null in members]), lambda: {n: m() for n, m in makes.items()}
    key = R.choice(SIMPLE[:2] + SIMPLE[7:8])
    t, make = random_type(depth - 1)
    make = maybe(make, 0.2, t)
    return pa.map_(key[0], t), lambda: [(key[1](), make()) for _ in range(R.randrange(4))]


def maybe(make, chance, t):
    if pa.types.is_null(t):
        return lambda: None
    return lambda: None if R.random() < chance else make()


def array(t, values):
    """Integers stand for times; pa.array takes them at any depth."""
    if isinstance(t, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(t, pa.array(values, t.storage_type))
    return pa.array(values, t)


def has_uuid(t):
    if isinstance(t, pa.BaseExtensionType):
        return True
    return any(has_uuid(t.field(i).type) for i in range(t.num_fields))


def has(t, test):
    return test(t) or any(has(t.field(i).type, test) for i in range(t.num_fields))


def write_arrow(path):
    """
    And a twin in few pages, which pyarrow is asked to read: of some maps in many pages it
    loses a row.
    """
    rows = R.choice([0, 1, 7, 100, 1000])
    fields, columns = [], []
    while len(fields) < R.randrange(1, 6):
        t, make = random_type(R.choice([0, 1, 2, 3, 4]))
        if has_uuid(t) and not isinstance(t, pa.BaseExtensionType):
            continue
        nullable = R.random() < 0.7 or has(t, pa.types.is_null)
        make = maybe(make, R.choice([0, 0.1, 0.9]) if nullable else 0, t)
        if R.random() < 0.3:  # long runs
            runs, make_one = [], make
            while len(runs) < rows:
                runs += [make_one()] * R.randrange(1, 200)
            values = runs[:rows]
        else:
            values = [make() for _ in range(rows)]
        fields.append(pa.field(f"c{len(fields)}", t, nullable))
        columns.append(array(t, values))
    table = pa.table(columns, pa.schema(fields))
    options = {
        "compression": R.choice(["snappy", "zstd", "gzip", "brotli", "lz4", "none"]),
        "data_page_version": R.choice(["1.0", "2.0"]),
        "data_page_size": R.choice([1, 64, 500, 5000, 1 << 20]),
        "write_batch_size": R.choice([1, 10, 1024]),
        "row_group_size": R.choice([3, 50, 1 << 20]) if rows < 1000 else R.choice([300, 1 << 20]),
        "dictionary_pagesize_limit": R.choice([50, 1 << 20]),
        "use_dictionary": R.random() < 0.6,
        "write_page_index": R.random() < 0.3,
        "store_schema": R.random() < 0.5,
        "write_page_checksum": R.random() < 0.3,
        "use_compliant_nested_type": R.random() < 0.7,
        "store_decimal_as_integer": R.random() < 0.3,
        "version": R.choice(["1.0", "2.4", "2.6"]),
    }
    if not any(has(f.type, pa.types.is_null) or has(f.type, pa.types.is_time) for f in fields) and R.random() < 0.1:
        if not any(has(f.type, lambda t: pa.types.is_timestamp(t) and t.unit != "ns") for f in fields):
            options["use_deprecated_int96_timestamps"] = True
    if options["version"] == "1.0":
        del options["version"]
    if not options["use_dictionary"] and R.random() < 0.8:
        options["column_encoding"] = encodings(table.schema)
        if not options["column_encoding"]:
            del options["column_encoding"]
    pq.write_table(table, path, **options)
    shown = dict(options)
    for name in "data_page_size", "write_batch_size", "row_group_size", "column_encoding":
        options.pop(name, None)
    pq.write_table(table, path + ".twin", **options)
    return ["arrow", str(table.schema), shown]


def encodings(schema):
    """An encoding for some of the flat columns."""
    chosen = {}
    for f in schema:
        t = f.type
        if pa.types.is_integer(t) and t.bit_width >= 8 or pa.types.is_date(t) or pa.types.is_timestamp(t) or pa.types.is_time(t):
            of = ["DELTA_BINARY_PACKED", "PLAIN", "BYTE_STREAM_SPLIT"]
        elif pa.types.is_float16(t):
            of = ["PLAIN", "BYTE_STREAM_SPLIT"]
        elif pa.types.is_floating(t):
            of = ["BYTE_STREAM_SPLIT", "PLAIN"]
        elif pa.types.is_string(t) or pa.types.is_binary(t) or pa.types.is_large_string(t):
            of = ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN"]
        elif pa.types.is_boolean(t):
            of = ["RLE", "PLAIN"]
        elif pa.types.is_fixed_size_binary(t):
            of = ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "PLAIN"]
        else:
            continue
        chosen[f.name] = R.choice(of)
    return chosen


DUCK = [
    "i", "i * 1000000007", "CASE WHEN i % 7 = 0 THEN NULL ELSE i END", "i::DOUBLE / 3", "(i % 5)::TINYINT", "i::FLOAT / 7",
    "'text ' || i", "repeat('long ', (i % 50)::INT)", "CASE WHEN i % 3 = 0 THEN NULL ELSE 'x' || (i % 4) END", "i % 2 = 0",
    "DATE '2020-01-01' + (i % 3000)::INT", "TIMESTAMP '2020-01-01 10:00:00' + INTERVAL (i) SECOND", "i::DECIMAL(12, 3)", "i::DECIMAL(30, 5)",
    "[x FOR x IN range(i % 5)]", "CASE WHEN i % 4 = 0 THEN NULL ELSE [{'role': 'user', 'content': 'c' || i}, NULL] END",
    "{'bytes': ('b' || i)::BLOB, 'path': NULL::VARCHAR}", "[[{'a': i, 'b': [i, NULL]}], [], NULL]", "MAP {'k' || i: i}", "MAP {i: 'v'}",
    "('b' || i)::BLOB", "i::UBIGINT", "(i % 250)::UTINYINT", "TIME '10:00:00' + INTERVAL (i) SECOND", "NULL::INTEGER",
]


def write_duck(path):
    rows = R.choice([1, 100, 3000, 5000])
    columns = ", ".join(f"{R.choice(DUCK)} AS c{n}" for n in range(R.randrange(1, 6)))
    options = f"FORMAT parquet, COMPRESSION {R.choice(['snappy', 'zstd', 'gzip', 'brotli', 'lz4_raw', 'uncompressed'])}, " \
        f"PARQUET_VERSION {R.choice(['V1', 'V2'])}, ROW_GROUP_SIZE {R.choice([2048, 100000])}"
    if R.random() < 0.3:
        options += f", DICTIONARY_SIZE_LIMIT {R.choice([1, 10])}"
    query = f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}' ({options})"
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(query)
    connection.close()
    return ["duckdb", query]


def list_entries(rows, filled, value_def, make):
    """Entries of a list column: a row is None (when filled > 1), [] or its items."""
    out = []
    for row in rows:
        if row is None:
            out.append((0, 0))
        elif not row:
            out.append((0, filled - 1))
        for i, item in enumerate(row or []):
            rep = 0 if i == 0 else 1
            out.append((rep, value_def, make(item)) if item is not None else (rep, filled))
    return out


def random_rows(null_rows, null_items):
    rows = []
    for _ in range(R.choice([1, 20, 500])):
        if null_rows and R.random() < 0.2:
            rows.append(None)
        else:
            rows.append([None if null_items and R.random() < 0.2 else R.randrange(1000) for _ in range(R.choice([0, 1, 3, 40]))])
    return rows


def write_hand(path):
    """
    Lists the way older writers spell them, pages cut anywhere. In the deprecated packing of
    levels, too: pyarrow takes its bits in the wrong order, so it reads a twin without it.
    """
    e, form, page, msb = hand.element, R.randrange(6), R.choice([1, 3, 50, 1000]), R.random() < 0.4
    make_text = lambda v: f"t{v}".encode()
    if form == 0:  # a repeated field and nothing around it
        rows = random_rows(False, False)
        schema = [e("root", children=1), e("c", hand.REPEATED, hand.INT32)]
        leaves = [hand.Leaf(["c"], hand.INT32, 1, 1, list_entries(rows, 1, 1, lambda v: v), page, msb)]
    elif form == 1:  # two levels: the repeated field is the element
        rows = random_rows(True, False)
        schema = [e("root", children=1), e("c", hand.OPTIONAL, children=1, converted=hand.LIST), e("array", hand.REPEATED, hand.BYTES, converted=hand.UTF8)]
        leaves = [hand.Leaf(["c", "array"], hand.BYTES, 1, 2, list_entries(rows, 2, 2, make_text), page, msb)]
    elif form == 2:  # two levels, the element is a struct of one, named so that it is no wrapper
        rows = random_rows(True, True)
        name = R.choice(["array", "c_tuple"])
        schema = [e("root", children=1), e("c", hand.OPTIONAL, children=1, converted=hand.LIST), e(name, hand.REPEATED, children=1),
                  e("value", hand.OPTIONAL, hand.INT64)]
        leaves = [hand.Leaf(["c", name, "value"], hand.INT64, 1, 3, list_entries(rows, 2, 3, lambda v: v), page, msb)]
    elif form == 3:  # two levels, a struct of two
        rows = random_rows(True, False)
        schema = [e("root", children=1), e("c", hand.OPTIONAL, children=1, converted=hand.LIST), e("bag", hand.REPEATED, children=2),
                  e("from", hand.REQUIRED, hand.BYTES, converted=hand.UTF8), e("n", hand.REQUIRED, hand.INT32)]
        leaves = [hand.Leaf(["c", "bag", "from"], hand.BYTES, 1, 2, list_entries(rows, 2, 2, make_text), page, msb),
                  hand.Leaf(["c", "bag", "n"], hand.INT32, 1, 2, list_entries(rows, 2, 2, lambda v: v), R.choice([1, 7, 99]), msb)]
    elif form == 4:  # three levels, lists that span pages
        rows = random_rows(True, True)
        schema = [e("root", children=2), e("c", hand.OPTIONAL, children=1, converted=hand.LIST), e("list", hand.REPEATED, children=1),
                  e("element", hand.OPTIONAL, hand.DOUBLE), e("id", hand.REQUIRED, hand.INT32)]
        leaves = [hand.Leaf(["c", "list", "element"], hand.DOUBLE, 1, 3, list_entries(rows, 2, 3, lambda v: v / 7), page, msb),
                  hand.Leaf(["id"], hand.INT32, 0, 0, [(0, 0, i) for i in range(len(rows))], R.choice([1, 10]))]
    else:  # a map of the older annotation
        rows = random_rows(True, False)
        rows = [r and sorted(set(r)) for r in rows]
        schema = [e("root", children=1), e("c", hand.OPTIONAL, children=1, converted=R.choice([hand.MAP, hand.MAP_KEY_VALUE])),
                  e("map", hand.REPEATED, children=2), e("key", hand.REQUIRED, hand.BYTES, converted=hand.UTF8), e("value", hand.OPTIONAL, hand.INT32)]
        leaves = [hand.Leaf(["c", "map", "key"], hand.BYTES, 1, 2, list_entries(rows, 2, 2, make_text), page, msb),
                  hand.Leaf(["c", "map", "value"], hand.INT32, 1, 3, list_entries(rows, 2, 3, lambda v: v), page, msb)]
    hand.write(path, schema, len(rows), leaves)
    for leaf in leaves:
        leaf.msb = False
    hand.write(path + ".twin", schema, len(rows), leaves)
    return ["hand", form, page, msb]


def check(driver, path, how, columns, judged):
    run = subprocess.run([driver, path, *(columns or [])], capture_output=True)
    ours = run.stdout.decode().split("\n")[:-1]
    theirs = expect.rows(judged, columns)
    if run.returncode == 0 and ours == theirs:
        return len(ours)
    kept = path + ".failed"
    os.rename(path, kept)
    print(f"not ok: {kept}: {how}\n{run.stderr.decode()[:2000]}")
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            print(f"row {i}\nours   {a[:2000]}\ntheirs {b[:2000]}")
            break
    else:
        print(f"{len(ours)} rows, expected {len(theirs)}")
    return None


def main():
    driver, folder, seed, count = sys.argv[1], sys.argv[2], int((sys.argv + [0] * 4)[3] or 1), int((sys.argv + [0] * 5)[4] or 300)
    files, rows, failed, unreadable = {"arrow": 0, "duckdb": 0, "hand": 0}, 0, 0, 0
    os.makedirs(folder, exist_ok=True)
    for i in range(count):
        R.seed(seed * 1000003 + i)
        path = os.path.join(folder, "case.parquet")
        write = R.choice([write_arrow] * 6 + [write_duck] * 2 + [write_hand] * 2)
        how = ["arrow"]
        try:
            how = write(path)
            judged = path if how[0] == "duckdb" else path + ".twin"
            names = pq.ParquetFile(judged).schema_arrow.names
            expect.rows(judged)
        except (pa.ArrowException, OSError, ValueError, OverflowError) as e:  # what pyarrow does not write, or writes and does not read
            print(f"# {i}: {how[0]}: pyarrow: {e}")
            unreadable += 1
            continue
        columns = R.sample(names, R.randrange(1, len(names) + 1)) if R.random() < 0.3 else None
        columns = columns and [n for n in names if n in columns]
        n = check(driver, path, [i] + how, columns, judged)
        failed += n is None
        rows += n or 0
        files[how[0]] += 1
    print(f"{sum(files.values())} files ({', '.join(f'{v} by {k}' for k, v in files.items())}), {rows} rows, "
          f"{failed} files differ; {unreadable} that pyarrow itself does not write or read")
    return failed > 0


sys.exit(main())
