# SPDX-License-Identifier: Apache-2.0
"""What is compared between two runs, and what may differ on purpose.

A difference that is meant has a row in docs/differences.md. INTENDED names the
row's first cell; every time one is met it is counted and printed at the end, so
nothing is left out unseen.
"""

import json
import math
import re

from shapes import (END, error_lines, header_fields, is_timed, line_form, namespace, parts_of,
                    report_lines, shorten, first_difference, shape)

DUE_TOLERANCE_S = 1e-12

# Name of an intended difference -> first cell of its row in docs/differences.md.
INTENDED = {
    "own fields": "`User-Agent`, `Accept`, `Connection`, order of headers",
    "encoding": "`Accept-Encoding`",
    "tokenize": "comparing token counts with the server's `/tokenize`",
    "helper key": "auth headers of `/metrics`, `/tokenize`, `/v1/models`",
    "metrics": "how often `/metrics` is read",
    "contact": "the first contact",
    "down": "the server is down, wants a key, or lacks the model; a certificate that nobody knows; "
            "`/v1` twice; http for https",
    "refused first": "the first 10 requests all refused with the same status 4xx",
    "refused option": "a wrong value of an option",
    "noise": "the `Namespace(...)` line, the note on the default of temperature, lines about a "
             "ready check that is not made, the tip about termplotlib",
    "only failures": "the report when no request succeeded",
    "not finite": "numbers of options that are not finite, in files (`--burstiness inf`)",
    "exit": "no request succeeded",
    "errors": "errors",
    "report": "the report",
    "result": "the result file",
    "pytorch": "`SAVE_TO_PYTORCH_BENCHMARK_FORMAT` without `--result-filename`",
    "plot files": "`--plot-dataset-stats`",
    "stats": "`--plot-dataset-stats` alone",
    "probe": "`--probe-request-rate` with `vllm-rerank`",
    "sonnet": "`sonnet`",
    "bad event": "events after one that cannot be read",
}


class Verdicts:
    """Named outcomes of one case: nothing to say is a pass."""

    def __init__(self, case: dict) -> None:
        self.differs = case.get("differs", {})
        self.problems: list[str] = []
        self.counts: dict[str, int] = {}
        self.meant: dict[str, int] = {}

    def check(self, ok: bool, text: str) -> None:
        """TEXT begins with the aspect, which the case may have named as meant to differ."""
        if ok:
            return
        for aspect, row in self.differs.items():
            if text.startswith(aspect):
                self.intend(row)
                return
        self.problems.append(text)

    def equal(self, what: str, theirs, ours) -> None:
        self.check(theirs == ours, f"{what}: upstream {shorten(theirs)}, ours {shorten(ours)}")

    def intend(self, row: str) -> None:
        assert row in INTENDED, row
        self.meant[row] = self.meant.get(row, 0) + 1

    def count(self, what: str, n: int) -> None:
        self.counts[what] = self.counts.get(what, 0) + n


# ---- the workload ----

def compare_workloads(v: Verdicts, theirs: list[dict], ours: list[dict]) -> None:
    if not theirs:
        return
    v.equal("requests in the workload", len(theirs), len(ours))
    worst = 0.0
    for i, (a, b) in enumerate(zip(theirs, ours)):
        for key in ("request_id", "prompt", "prompt_len", "output_len"):
            if a[key] != b.get(key):
                v.check(False, f"workload {i} {key}: " + (
                    first_difference(a[key], b[key]) if isinstance(a[key], str)
                    and isinstance(b.get(key), str) else f"{a[key]} against {b.get(key)}"))
                return
        worst = max(worst, abs(a["due_s"] - b["due_s"]))
    v.check(worst <= DUE_TOLERANCE_S, f"due times differ by up to {worst:g} s")
    v.count("prompts", len(ours))
    v.count("due times", len(ours))
    v.count("due times equal to the last bit",
            sum(a["due_s"] == b["due_s"] for a, b in zip(theirs, ours)))


# ---- what the server received ----

HELPERS = ("/metrics", "/tokenize", "/detokenize", "/v1/models", "/start_profile", "/stop_profile")


def kind(r: dict) -> str:
    """A helper's path, or what it is of the load."""
    path = next((h for h in HELPERS if r["target"].endswith(h)), None)
    if path:
        return f'{r["method"]} {r["target"]}'
    return "main" if "x-request-id" in header_fields(r) else "extra"


def asks_tokenize(case: dict) -> bool:
    args = case["args"]
    name = args[args.index("--dataset-name") + 1] if "--dataset-name" in args else "random"
    return name in ("random", "prefix_repetition") and "--random-batch-size" not in args


def steps(v: Verdicts, case: dict, requests: list[dict]) -> list[str]:
    """The order of kinds, repeats as one; what is ours by decision taken out and counted."""
    out: list[str] = []
    for r in requests:
        k = kind(r)
        if k.endswith("/metrics"):
            k = "GET /metrics"
        elif k.endswith("tokenize"):
            if not asks_tokenize(case):
                v.intend("tokenize")
                continue
            k = "align"
        if k in ("main", "extra") and case.get("is_mixed"):
            k = "load"
        if not out or out[-1] != k:
            out.append(k)
    return without_series(v, out)


def without_series(v: Verdicts, kinds: list[str]) -> list[str]:
    """Reads of /metrics while the load runs are ours."""
    load = ("main", "extra", "load")
    out: list[str] = []
    for i, k in enumerate(kinds):
        if k == "GET /metrics" and out and out[-1] in load and kinds[i + 1:i + 2] != [] \
                and kinds[i + 1] in load:
            v.intend("metrics")
        elif not out or out[-1] != k:
            out.append(k)
    return out


def request_form(v: Verdicts, r: dict) -> tuple:
    """A request as it is compared: fields without those that are ours by decision."""
    fields = header_fields(r)
    for name in ("user-agent", "accept", "connection"):
        if name in fields and not case_sets(v, name):
            fields.pop(name)
    v.intend("own fields")
    if fields.pop("accept-encoding", None):
        v.intend("encoding")
    fields.pop("host", None) if fields.get("host", "").endswith(":PORT") else None
    if kind(r).split("/")[-1] in ("metrics", "tokenize", "detokenize", "models"):
        for name in list(fields):
            if name not in ("content-type", "content-length") or name in v.set_fields:
                fields.pop(name)
                v.intend("helper key")
    body = r["body"]
    if "multipart/form-data; boundary=" in fields.get("content-type", ""):
        body = parts_of(fields, body)
        fields.pop("content-length")
        fields["content-type"] = "multipart/form-data"
    return (r["method"], r["target"], tuple(sorted(fields.items())), body)


def case_sets(v: Verdicts, name: str) -> bool:
    return name in getattr(v, "set_fields", ())


def differing_part(a: tuple, b: tuple) -> str:
    for name, x, y in zip(("method", "target", "header fields", "body"), a, b):
        if x == y:
            continue
        if name == "header fields":
            return f"header fields: only upstream {sorted(set(x) - set(y))}, only ours " \
                   f"{sorted(set(y) - set(x))}"
        if isinstance(x, str) and isinstance(y, str):
            return f"{name}: {first_difference(x, y)}"
        if isinstance(x, list) and isinstance(y, list):
            i = next((i for i, p in enumerate(zip(x, y)) if p[0] != p[1]), min(len(x), len(y)))
            return f"part {i}: {shorten(x[i:i + 1], 200)} against {shorten(y[i:i + 1], 200)}"
        return f"{name}: {shorten(x)} against {shorten(y)}"
    return "nothing"


def without_contact(v: Verdicts, theirs: list[dict], ours: list[dict]) -> list[dict]:
    """Our very first request may be one more for the list of models."""
    models = [sum(kind(r).endswith("/v1/models") for r in g) for g in (theirs, ours)]
    if models[1] != models[0] + 1 or not kind(ours[0]).endswith("/v1/models"):
        return ours
    v.equal("first contact", ("GET", ""), (ours[0]["method"], ours[0]["body"]))
    v.intend("contact")
    return ours[1:]


def compare_requests(v: Verdicts, case: dict, theirs: list[dict], ours: list[dict]) -> None:
    ours = without_contact(v, theirs, ours)
    v.set_fields = {a.partition("=")[0].strip().lower() for a in case["args"] if "=" in a}
    v.equal("order of requests", steps(v, case, theirs), steps(v, case, ours))
    groups: list[dict[str, list]] = []
    for requests in (theirs, ours):
        out: dict[str, list] = {}
        for r in requests:
            k = kind(r)
            if k == "main":
                k = header_fields(r)["x-request-id"]
            elif k.endswith("tokenize") and not asks_tokenize(case):
                continue
            out.setdefault(k, []).append(request_form(v, r))
        groups.append(out)
    a, b = groups
    v.check(set(a) == set(b), f"kinds of requests: only upstream {sorted(set(a) - set(b))[:6]}, "
                              f"only ours {sorted(set(b) - set(a))[:6]}")
    for key in sorted(a.keys() & b.keys()):
        compare_group(v, case, key, a[key], b[key])
    if case.get("order"):
        for who, requests in (("upstream", theirs), ("ours", ours)):
            ids = [header_fields(r).get("x-request-id", "") for r in requests]
            ids = [int(x.rsplit("-", 1)[1]) for x in ids if x]
            v.check(ids == sorted(ids), f"order of ids: {who}'s requests came out of order")


def compare_group(v: Verdicts, case: dict, key: str, theirs: list, ours: list) -> None:
    """Requests of one kind, or with one id, in any order."""
    if key.endswith("/metrics"):
        if len(theirs) != len(ours):
            v.intend("metrics")
        theirs, ours = theirs[:1], ours[:1]
    elif key == "extra" and case.get("is_mixed"):
        theirs, ours = ([x for i, x in enumerate(g) if x not in g[:i]] for g in (theirs, ours))
    theirs, ours = (sorted(g, key=repr) for g in (theirs, ours))
    v.equal(f"{key}: requests", len(theirs), len(ours))
    for x, y in zip(theirs, ours):
        v.check(x == y, f"{key}: {differing_part(x, y)}")
    v.count("helper requests" if "/" in key else "requests", len(ours))


# ---- what the clients print ----

SUMMARY = re.compile(r"\d+ requests? .*: \d+ succeeded, \d+ failed, in |.* requests/s$|The measurement is ")


def compare_reports(v: Verdicts, theirs: str, ours: str) -> None:
    a, after = report_lines(theirs)
    b, our_after = report_lines(ours)
    b = [x for x in b if not SUMMARY.match(x)]  # three lines of ours before upstream's block
    if a != error_lines(a):
        v.intend("errors")
    a, b = ([line_form(x) for x in error_lines(lines)] for lines in (a, b))
    if any(re.match(r"Successful requests: +0 *$", x) for x in a):
        a = only_failures(v, a, b)
    for i, (x, y) in enumerate(zip(a, b)):
        if x.endswith(": #") and x.startswith("Error "):
            y = re.sub(r"^(Error \d+: ).+", r"\1#", y)
        if x != y:
            v.check(False, f"report line {i + 1}: upstream {x!r}, ours {y!r}")
            break
    else:
        v.equal("report lines", len(a), len(b))
    v.count("report lines", len(b))
    if END in b and len(our_after) > len(after):
        v.intend("report")
    rest = iter(our_after)
    for x in after:
        v.check(x in rest, f"lines after the report: upstream's {x!r} is not in ours, or not there")


def only_failures(v: Verdicts, theirs: list[str], ours: list[str]) -> list[str]:
    """
    Upstream's report of zeros as ours has to be: its lines up to the numbers of requests, less
    the list of errors, whose reasons ours must name, and then what ours says about failures.
    """
    title = next(i for i, x in enumerate(theirs) if x.startswith("=") and x != END)
    listed = [i for i, x in enumerate(theirs[:title]) if x.startswith("Failed requests during")]
    errors = theirs[listed[0] + 1:title] if listed else []
    for x in errors:
        reason = x.partition(": ")[2]
        v.check(reason in ("", "#") or any(f" x {reason}" in y for y in ours),
                f"report: ours does not name {reason!r}")
    n = next((i for i, x in enumerate(theirs) if x.startswith("Failed requests:")), title + 1) + 1
    kept = theirs[:listed[0]] + theirs[title:n] if listed else theirs[:n]
    more = ours[len(kept):]
    v.check(any(re.match(r"Verdict: +INVALID", x) for x in more) and more[-1:] == [END],
            "report: ours does not end with its verdict")
    v.check(not any(re.search(r"throughput|\(ms\)", x) for x in more), "report: ours has numbers")
    v.intend("only failures")
    return kept + more


def compare_namespaces(v: Verdicts, theirs: str, ours: str) -> None:
    """Printed by ours because every case has --compat stdout."""
    a, b = namespace(theirs), namespace(ours)
    if a:
        v.intend("noise")
    v.equal("Namespace keys", list(a), [k for k in b if k in a])
    for key in a.keys() & b.keys():
        v.equal(f"Namespace {key}", a[key], b[key])
    v.count("options printed", len(a))


# ---- the files they write ----

def compare_files(v: Verdicts, theirs: dict, ours: dict) -> None:
    more = [x for x in ours if re.search(r"\.dataset_stats\.(gp|html)$", x)]
    if more:
        v.intend("plot files")
    v.equal("files", sorted(theirs), sorted(set(ours) - set(more)))
    for name in sorted(theirs.keys() & ours.keys()):
        if name.endswith(".pytorch.json"):
            compare_records(v, theirs[name], ours[name])
        elif theirs[name] and (name.endswith("json") or "." not in name):
            compare_results(v, theirs[name], ours[name])


def compare_results(v: Verdicts, theirs: str, ours: str) -> None:
    (before, _, theirs), (our_before, _, ours) = theirs.rpartition("\n"), ours.rpartition("\n")
    v.equal("what stood in the file", before, our_before)
    a, b = json.loads(theirs), json.loads(ours)
    keys = list(b)[: len(a)]
    if list(a) != keys:
        x, y = next((p for p in zip(a, keys) if p[0] != p[1]), (list(a)[-1], "(none)"))
        v.check(False, f"result keys differ first at upstream {x!r}, ours {y!r}")
    if len(b) > len(a):
        v.intend("result")
    v.check(json.dumps(b) == ours, "our result is not spelled as upstream's writer would")
    for key in a.keys() & b.keys():
        if key == "errors" and a[key] != b[key]:
            compare_errors(v, a[key], b[key])
            continue
        if isinstance(a[key], float) and not math.isfinite(a[key]) and b[key] == str(a[key]):
            v.intend("not finite")
            continue
        v.equal(f"type of {key}", shape(a[key], a["completed"]), shape(b[key], a["completed"]))
        if not is_timed(key):
            v.equal(f"value of {key}", a[key], b[key])
    v.count("result keys", len(a))


def compare_errors(v: Verdicts, theirs: list[str], ours: list[str]) -> None:
    v.equal("which requests failed", [bool(x) for x in theirs], [bool(x) for x in ours])
    for x, y in zip(theirs, ours):
        if x.startswith("Traceback") or "Connect call failed" in x:
            v.intend("errors")
        else:
            v.equal("value of errors", x, y)


def compare_records(v: Verdicts, theirs: str, ours: str) -> None:
    """The PyTorch file: the same records, keys and values; times as numbers only."""
    a, b = json.loads(theirs), json.loads(ours)
    v.equal("records", [r["metric"]["name"] for r in a], [r["metric"]["name"] for r in b])
    for x, y in zip(a, b):
        args, our_args = (r["benchmark"]["extra_info"].pop("args") for r in (x, y))
        more = [k for k in our_args if k.startswith("sonnet_")]
        if more:
            v.intend("sonnet")
        v.equal("argument keys of a record", list(args), [k for k in our_args if k not in more])
        for key in args:
            v.equal(f"argument {key} of a record", args[key], our_args.get(key))
        info, our_info = (r["metric"].pop("extra_info") for r in (x, y))
        v.equal("result keys of a record", list(info), [k for k in our_info if k in info])
        for key in info:
            if not is_timed(key):
                v.equal(f"result {key} of a record", info[key], our_info.get(key))
        values, our_values = (r["metric"].pop("benchmark_values") for r in (x, y))
        v.equal("values of a record", shape(values, 1), shape(our_values, 1))
        v.equal("rest of a record", json.dumps(x), json.dumps(y))
    v.count("records", len(b))
