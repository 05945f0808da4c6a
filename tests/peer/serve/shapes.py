# SPDX-License-Identifier: Apache-2.0
"""Texts, requests and values in the form in which they are compared."""

import re

# Keys whose values are times, or follow from them; all others must be equal.
TIMED = re.compile(r"^(date|duration|.*throughput|request_goodput|ttfts|itls|latencies|start_times"
                   r"|queue_times|max_output_tokens_per_s|max_concurrent_requests|errors|rtfx"
                   r"|rps_change_events|probe_(completed|median_e2el_ms|p99_e2el_ms|max_e2el_ms)"
                   r"|(mean|median|std|p[0-9.]+)_.*_ms)$")
TIMED_LINES = re.compile(r"throughput|duration|goodput|\(ms\)|Peak|RTFx|Probe requests completed")
LOG_LINE = re.compile(r"^(\(\w+ pid=\d+\) )?(INFO|WARNING|ERROR) \d\d-\d\d ")
END = "=" * 50
# What the whole vllm command adds to the options, or differs from run to run.
NAMESPACE_OWN = {"subparser", "bench_type", "dispatch_function"}


def shorten(value, width: int = 150) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def first_difference(a: str, b: str) -> str:
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: {a[max(0, at - 30):at + 50]!r} against {b[max(0, at - 30):at + 50]!r}"


def is_timed(key: str) -> bool:
    return bool(TIMED.match(key))


def shape(value, completed: int):
    """Types all the way down; lengths of lists too, unless requests failed half way."""
    if isinstance(value, list):
        return [shape(x, completed) for x in value]
    if isinstance(value, dict):
        return {k: shape(x, completed) for k, x in value.items()}
    return type(value).__name__


# ---- requests ----

def header_fields(r: dict) -> dict[str, str]:
    """Fields by lower-case name; a name that comes twice keeps both values."""
    out: dict[str, str] = {}
    for k, x in r["fields"]:
        k = k.lower()
        out[k] = f"{out[k]}\n{x}" if k in out else x
    return out


def parts_of(fields: dict[str, str], body: str) -> list[tuple[str, str]]:
    """The parts of a multipart body, head and content, without the boundary."""
    boundary = "--" + fields["content-type"].partition("boundary=")[2].strip('"')
    first, *parts, last = body.split(boundary)
    assert first == "" and last.strip() == "--", "multipart body does not begin and end as it must"
    out = []
    for part in parts:
        head, _, content = part.removeprefix("\r\n").partition("\r\n\r\n")
        out.append((head, content))
    return out


# ---- stdout ----

def report_lines(text: str) -> tuple[list[str], list[str]]:
    """Stdout without log lines and options: up to the closing line, and behind it."""
    lines = [x for x in text.split("\n") if not LOG_LINE.match(x)]
    lines = [x for x in lines if not x.startswith("Namespace(")]
    at = lines.index(END) + 1 if END in lines else len(lines)
    return lines[:at], [re.sub(r"\d{8}-\d{6}", "DATE", x) for x in lines[at:] if x]


def error_lines(lines: list[str]) -> list[str]:
    """Lines of the report with each traceback cut to one line."""
    out, is_inside = [], False
    for x in lines:
        if re.match(r"Error \d+: Traceback", x):
            out.append(x.partition(":")[0] + ": #")
            is_inside = True
        elif is_inside and not re.match(r"Error \d+: |tip: |=====", x):
            continue
        else:
            is_inside = False
            out.append(x)
    return out


def line_form(line: str) -> str:
    """A line with its value blanked when that is a time; trailing blanks stay."""
    if not line.startswith("Error ") and TIMED_LINES.search(line):
        return re.sub(r"(:\s+)[-0-9.naif]+( *)$", lambda m: m[1] + "#", line)
    return line


def namespace(text: str) -> dict[str, str]:
    line = next((x for x in text.split("\n") if x.startswith("Namespace(")), "")
    line = line.partition(", log_config_file=")[0]  # options of the whole vllm command follow
    parts = re.split(r"(?:^|, )([a-z_]+)=", line.removeprefix("Namespace(").removesuffix(")"))
    return {k: x for k, x in zip(parts[1::2], parts[2::2]) if k not in NAMESPACE_OWN}
