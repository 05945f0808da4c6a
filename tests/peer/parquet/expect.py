# SPDX-License-Identifier: Apache-2.0
"""The rows of a Parquet file as pyarrow reads them, spelled as table/parquet_spell.h says."""
import base64
import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq

TEMPORAL = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_date, pa.types.is_duration)


def plain(t):
    """The type with every time in it as the integer that it is stored as."""
    if any(test(t) for test in TEMPORAL):
        return pa.int32() if t.bit_width == 32 else pa.int64()
    if pa.types.is_dictionary(t):
        return plain(t.value_type)
    if pa.types.is_map(t):
        return pa.map_(pa.field("key", plain(t.key_type), nullable=False), t.item_field.with_type(plain(t.item_type)))
    if pa.types.is_struct(t):
        return pa.struct([f.with_type(plain(f.type)) for f in t])
    if pa.types.is_fixed_size_list(t):
        return pa.list_(t.value_field.with_type(plain(t.value_type)), t.list_size)
    if pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(plain(t.value_type)))
    if pa.types.is_large_list(t):
        return pa.large_list(t.value_field.with_type(plain(t.value_type)))
    return t


DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def clock(seconds, fraction, digits):
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{fraction:0{digits}d}" if fraction else "")


def date(day):
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def timestamp(t, v):
    digits = DIGITS[t.unit]
    seconds, fraction = divmod(v, 10**digits)
    day, seconds = divmod(seconds, 86400)
    return f"{date(day)}T{clock(seconds, fraction, digits)}" + ("+00:00" if t.tz else "")


class Pairs(list):
    """An object whose keys may repeat."""


def value(t, v):
    if v is None:
        return None
    if pa.types.is_timestamp(t):
        return timestamp(t, v)
    if pa.types.is_time(t):
        seconds, fraction = divmod(v, 10 ** DIGITS[t.unit])
        return clock(seconds, fraction, DIGITS[t.unit])
    if pa.types.is_date(t):
        return date(v if t.bit_width == 32 else v // 86400000)
    if pa.types.is_decimal(t):
        return format(v, "f")
    if pa.types.is_dictionary(t):
        return value(t.value_type, v)
    if pa.types.is_map(t):
        pairs = [(value(t.key_type, k), value(t.item_type, x)) for k, x in v]
        if pa.types.is_string(t.key_type) or pa.types.is_large_string(t.key_type):
            return Pairs(pairs)
        return [{"key": k, "value": x} for k, x in pairs]
    if pa.types.is_struct(t):
        return {f.name: value(f.type, v[f.name]) for f in t}
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return [value(t.value_type, x) for x in v]
    if isinstance(v, bytes):
        return "data:;base64," + base64.b64encode(v).decode()
    if pa.types.is_floating(t):
        return float(v)
    if isinstance(v, (bool, int, str)):
        return v
    return str(v)  # UUID


def spell(v):
    if isinstance(v, Pairs):
        return "{" + ", ".join(spell(k) + ": " + spell(x) for k, x in v) + "}"
    if isinstance(v, dict):
        return "{" + ", ".join(spell(k) + ": " + spell(x) for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[" + ", ".join(spell(x) for x in v) + "]"
    return json.dumps(v, ensure_ascii=False)


def rows(path, columns=None):
    """Every row as one line of JSON."""
    table = pq.ParquetFile(path).read(columns=columns)
    out = [[] for _ in range(table.num_rows)]
    for field, column in zip(table.schema, table.columns):
        t = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) and str(field.type) != "extension<arrow.uuid>" else field.type
        if t is not field.type:
            column = pa.chunked_array([c.storage for c in column.chunks], t)
        simple = plain(t)
        if simple != t:
            column = column.cast(simple)
        name = json.dumps(field.name, ensure_ascii=False)
        for line, v in zip(out, column.to_pylist()):
            line.append(name + ": " + spell(value(t, v)))
    return ["{" + ", ".join(line) + "}" for line in out]
