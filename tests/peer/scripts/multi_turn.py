# SPDX-License-Identifier: Apache-2.0
"""benchmark_serving_multi_turn.py and `bench multi-turn`: the same requests in the same order, the
same figures of every request but its times, and the same tables over the same figures."""

import contextlib
import io
import json
import os
import re

import pandas as pd
from openpyxl import load_workbook
from peer import COLOR, Verdicts, client, compare_requests, read, read_json
from transformers import AutoTokenizer

SCRIPT = "multi_turn/benchmark_serving_multi_turn.py"
TIMES = {"ttft_ms", "tpot_ms", "latency_ms", "start_time_ms"}
OURS_ALONE = {"server_prompt_tokens", "server_cached_tokens", "server_output_tokens"}
UNTIMED_ROWS = ("input_num_turns", "input_num_tokens", "output_num_tokens", "output_num_chunks")
COMPAT = ["--compat", "multi-turn"]
FILES = ["--stats-json-output", "stats.json", "-o", "said.json"]
GENERATED = ("num_turns", "conversation_turns", "user_tokens", "assistant_tokens", "request_tokens")


def talk(name: str, *args: str, data: str = "conversations", **more) -> dict:
    return {"name": name, "args": ["-i", "{data}/" + data + ".json", "-m", "{model}", *args, *FILES],
            "own": COMPAT, "beside": ["novel.txt"], **more}


# any_order: several clients share a queue. `differs`: a row of docs/differences.md.
CASES = [
    talk("plain"),
    talk("warmup-step", "--warmup-step"),
    talk("warmup-step-two", "--warmup-step", "-k", "2", data="equal"),
    talk("warmup-step-short", "--warmup-step", data="short"),
    talk("active-2", "-k", "2"),
    talk("active-3", "-k", "3", data="equal"),
    talk("active-all", "-k", "8"),
    talk("random", "-k", "4", "--conversation-sampling", "random", data="equal"),
    talk("random-seed", "-k", "3", "--conversation-sampling", "random", "--seed", "99"),
    talk("round-robin", "-k", "3", "--conversation-sampling", "round_robin", "--seed", "5"),
    talk("max-requests", "-n", "7"),
    talk("max-requests-active", "-n", "9", "-k", "4", data="equal"),
    talk("max-turns-4", "--max-turns", "4"),
    talk("max-turns-3", "--max-turns", "3", "-k", "2"),
    talk("max-turns-1", "--max-turns", "1"),
    talk("limits", "--limit-min-tokens", "3", "--limit-max-tokens", "5"),
    talk("no-limits", "--limit-min-tokens", "-1", "--limit-max-tokens", "-1", "--max-turns", "4",
         sim=["--output-len", "9"]),
    talk("no-stream", "--no-stream"),
    talk("session-header", "--send-conversation-id", data="equal"),
    talk("headers", "--header", "X-One: a b", "--header", "x-two=c d=e", "--api-key", "k y"),
    talk("served-name", "--served-model-name", "other", sim=["--served-model-name", "other"]),
    talk("rate", "--request-rate", "80", "--seed", "3"),
    talk("rate-random", "--request-rate", "200", "-k", "3", "--conversation-sampling", "random"),
    talk("percentages", "--warmup-percentages", "0%,25%,60%"),
    talk("percentage", "--warmup-percentages", "10"),
    talk("verbose-excel", "-v", "-e", "-k", "2", "--warmup-percentages", "0%,50%"),
    talk("constant", data="constant"),
    talk("generated", "--seed", "1", "-e", data="readme"),
    talk("generated-seed", "--seed", "12345", "-k", "3", data="readme"),
    talk("generated-mixed", data="mixed"),
    talk("generated-mixed-seed", "--seed", "8", data="mixed"),
    talk("generated-ratio", "--seed", "4", "--warmup-step", data="ratio"),
    talk("tokens-together", sim=["--tokens-per-event", "3"]),
    talk("clients-3", "-p", "3", "--no-early-stop", data="equal", any_order=True),
    talk("clients-2-active-2", "-p", "2", "-k", "2", "--no-early-stop", any_order=True),
    talk("clients-4-warmup", "-p", "4", "--warmup-step", "--no-early-stop", data="equal",
         any_order=True),
]


def server(url: str) -> list[str]:
    return ["-u", url]


def option(args: list[str], *names: str):
    return next((args[args.index(n) + 1] for n in names if n in args), None)


def compare_stats(v: Verdicts, case: dict, theirs: list, ours: list) -> None:
    keys = list(theirs[0]) if theirs else []
    mine = [k for k in (ours[0] if ours else {}) if k not in OURS_ALONE]
    v.equal("stats: keys", keys, mine)
    columns = [k for k in keys if k not in TIMES and not (case.get("any_order") and k == "client_id")]
    a, b = ([tuple(r[k] for k in columns) for r in rows] for rows in (theirs, ours))
    if case.get("any_order"):
        a, b = sorted(a, key=repr), sorted(b, key=repr)
    if v.equal("stats: number of requests", len(a), len(b)):
        for i, (x, y) in enumerate(zip(a, b)):
            if not v.equal(f"stats: request {i}: {columns}", x, y):
                return
        v.count("figures of requests", len(a) * len(columns))


def rounding(text: str) -> float:
    return 0.0051 * 10.0 ** int(text.partition("e")[2] or 0)


def tables(text: str) -> dict[str, list[list[tuple[float, float]]]]:
    """Rows of every table: label and numbers with half their last digit, in their order."""
    out: dict[str, list] = {}
    for line in text.splitlines():
        m = re.match(r"^([a-z]\w+)((?:\s+(?:-?\d+(?:\.\d+)?(?:e[-+]\d+)?|NaN))+)$", line)
        if m:
            out.setdefault(m[1], []).append([(float(x), rounding(x)) for x in m[2].split()])
    return out


def compare_tables(v: Verdicts, theirs: str, ours: str) -> None:
    """What both print, where it is no time: within the rounding of two decimals."""
    a, b = tables(theirs), tables(ours)
    v.equal("tables: rows", {k: len(x) for k, x in a.items()}, {k: len(x) for k, x in b.items()})
    for name in [k for k in a if k in UNTIMED_ROWS + GENERATED]:
        for x, y in zip(a[name], b.get(name, [])):
            close = len(x) == len(y) and all(abs(p - q) <= max(r, s) or p != p
                                             for (p, r), (q, s) in zip(x, y))
            v.check(close, f"tables: {name}: upstream {x}, ours {y}")
            v.count("printed figures", len(x))


def recomputed(module, case: dict, rows: list, folder: str, n_conversations: int, warmup_s) -> str:
    """Upstream's own report over our figures of requests."""
    args = case["args"]
    shares = [0.0]
    if "--warmup-step" not in args and (given := option(args, "--warmup-percentages")):
        shares = sorted(float(x.replace("%", "")) / 100 for x in given.split(","))
    clients = int(option(args, "-p") or 1)
    params = {"model": case["model"], "num_clients": clients, "num_conversations": n_conversations,
              "active_conversations": int(option(args, "-k") or clients),
              "seed": int(option(args, "--seed") or 0)}
    for key in ("min_tokens", "max_tokens"):
        n = int(option(args, "--limit-" + key.replace("_", "-")) or 0)
        if n > 0:
            params[key] = n
    data = read_json(args[1].format(data=case["data"]))
    generated = module.parse_input_json_file(data) if isinstance(data, dict) else None
    metrics = [module.RequestStats(**{k: x for k, x in r.items() if k not in OURS_ALONE}) for r in rows]
    text, before = io.StringIO(), os.getcwd()
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(text):
            module.process_statistics(metrics, shares, params, "-v" in args, generated, "-e" in args,
                                      warmup_s)
    finally:
        os.chdir(before)
    return COLOR.sub("", text.getvalue())


def compare_report(v: Verdicts, case: dict, module, run: dict, rows: list, n_conversations) -> None:
    """Our report is upstream's report of our figures, line by line."""
    folder = os.path.join(run["folder"], "recomputed")
    lines = run["stdout"].splitlines()
    # The warm-up's own time is in no file.
    found = re.search(r"^warmup_runtime_sec = ([\d.]+)$", run["stdout"], re.M)
    text = recomputed(module, case, rows, folder, n_conversations, float(found[1]) if found else None)
    want = [x.rstrip() for x in text.splitlines()]
    first = next((i for i, x in enumerate(lines) if x == "Parameters:"), 0) - 1
    got = [x.rstrip() for x in lines[first:first + len(want)]]
    if found:  # a sum of rounded numbers
        want, got = ([x for x in y if not x.startswith("total_runtime_incl")] for y in (want, got))
    for x, y in zip(want, got):
        if not v.equal("report over our figures", x, y):
            return
    v.equal("report: lines", len(want), len(got))
    v.count("lines of reports", len(want))
    if "-e" in case["args"]:
        compare_sheets(v, folder, run["folder"])


def workbook(folder: str):
    name = next((x for x in sorted(os.listdir(folder)) if x.endswith(".xlsx")), None)
    return name and load_workbook(os.path.join(folder, name), data_only=True)


def compare_sheets(v: Verdicts, theirs: str, ours: str) -> None:
    a, b = workbook(theirs), workbook(ours)
    if not v.check(a and b, "spreadsheet: missing"):
        return
    v.equal("spreadsheet: sheets", a.sheetnames, b.sheetnames)
    for name in a.sheetnames:
        x, y = ([[c.value for c in row] for row in book[name].iter_rows()] for book in (a, b))
        v.equal(f"{name}: rows", len(x), len(y))
        for i, (p, q) in enumerate(zip(x, y)):
            q = q[:len(p)] if name == "Raw data" and len(q) > len(p) else q
            for k, (m, n) in enumerate(zip(p, q)):
                same = m == n or (isinstance(m, (int, float)) and isinstance(n, (int, float))
                                  and abs(m - n) <= 1e-9 * max(1, abs(m)))
                if not v.check(same, f"{name}: row {i + 1}, column {k + 1}: {m!r}, ours {n!r}"):
                    return
                v.count("cells", 1)


TOKENIZERS: dict[str, object] = {}


def widen() -> None:
    """A pipe has no width: the tables are not to be cut. The tokenizer is read once, not per run."""
    pd.set_option("display.width", 1000, "display.max_columns", None)
    AutoTokenizer.from_pretrained = staticmethod(lambda name, **_: TOKENIZERS[name])


def warm_up(model: str) -> None:
    TOKENIZERS[model] = AutoTokenizer.from_pretrained(model)
    widen()


def compare(case: dict, o, module) -> Verdicts:
    v = Verdicts()
    case = {**case, "model": o.model, "data": o.data}
    out = os.path.join(o.out, "multi-turn")
    verb = ["bench", "multi-turn"]
    theirs = client("upstream", o, case, SCRIPT, verb, server, out, widen)
    ours = client("ours", o, case, SCRIPT, verb, server, out)
    v.equal("exit status", theirs["status"], ours["status"])
    v.check("Traceback" not in theirs["stderr"], f"upstream: {theirs['stderr'][-300:]}")
    compare_requests(v, theirs["load"], ours["load"], not case.get("any_order"))
    stats = {w: read_json(os.path.join(r["folder"], "stats.json")) or []
             for w, r in (("upstream", theirs), ("ours", ours))}
    if len(stats["upstream"]) < len(stats["ours"]) == len(theirs["load"]):
        # Upstream lost the last ones, as it sometimes does.
        v.intend("results at the end of a run")
        keys = {(r["conversation_id"], r["input_num_turns"]) for r in stats["upstream"]}
        same = [r for r in stats["ours"] if (r["conversation_id"], r["input_num_turns"]) in keys]
        compare_stats(v, case, stats["upstream"], same)
    else:
        compare_stats(v, case, stats["upstream"], stats["ours"])
        compare_tables(v, theirs["stdout"], ours["stdout"])
    said = [read(os.path.join(r["folder"], "said.json")) for r in (theirs, ours)]
    compare_said(v, case, *said)
    n = re.search(r"^num_conversations=(\d+)$", ours["stdout"], re.M)
    compare_report(v, case, module, ours, stats["ours"], int(n[1]) if n else 0)
    for key in ("num_conversations", "active_conversations"):
        a, b = (re.search(rf"^{key}=(.*)$", r["stdout"], re.M) for r in (theirs, ours))
        if a and b and a[1] != b[1]:
            rows = {"num_conversations": "`num_conversations` after `--warmup-step`",
                    "active_conversations": "`-k` without a value"}
            v.intend(rows[key])
    return v


def compare_said(v: Verdicts, case: dict, theirs: str, ours: str) -> None:
    """Finished conversations; ours may have unfinished ones after them."""
    a, b = json.loads(theirs or "[]"), json.loads(ours or "[]")
    unfinished = [x for x in b if x.get("finished") is False]
    if unfinished:
        v.intend("`--output-file`")
    b = [x for x in b if "finished" not in x]
    if case.get("any_order"):
        a, b = (sorted(x, key=lambda c: c["id"]) for x in (a, b))
    if v.equal("-o: conversations", a, b) and not unfinished and not case.get("any_order"):
        v.equal("-o: text", theirs.rstrip("\n"), ours.rstrip("\n"))
    v.count("conversations", len(a))
