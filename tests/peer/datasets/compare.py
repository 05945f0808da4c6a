# SPDX-License-Identifier: Apache-2.0
"""Compare the request lists of both sides, case by case (cases.py).

usage: compare.py --ours BINARY --peer DIR --data DIR --out DIR [--python PYTHON] [CASE...]

CASE is the beginning of a case's name. Upstream's lists are made once per command line and kept
in OUT/upstream; removing the folder makes them again. Compared are the number of requests and for
each, in order: request_id, prompt, prompt_len, output_len, messages, media (kind, size, frames,
sampling, and pixels within a tolerance; uploads: name, frames, rate, samples), overrides,
timestamp, due time and LoRA name (the last two show that both sides have drawn the same
numbers from the process's generators).
"""

import argparse
import base64
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys

from cases import CASES, COMMON, SEEDS
from digest import digest, same, upload

KEYS = ("request_id", "prompt", "prompt_len", "output_len", "messages", "media", "file", "overrides",
        "timestamp_s")
MODELS = {"plain": "qwen3", "bos": "llama3_1"}
DUE_TOLERANCE_S = 1e-12


class Run:
    """One command line, for both sides."""

    def __init__(self, case: dict, on: str, seed: int, size: int, o: argparse.Namespace) -> None:
        self.case, self.on, self.seed, self.size = case, on, seed, size
        args = [a.replace("{data}", o.data) for a in case["args"]]
        self.argv = [*COMMON, "--model", f"{o.peer}/models/{MODELS[on]}", "--num-prompts", str(size),
                     "--seed", str(seed), *args]
        self.name = f"{case['name']} {on} seed {seed} n {size}"
        key = hashlib.sha256(json.dumps(self.argv).encode()).hexdigest()[:16]
        self.upstream = f"{o.out}/upstream/{key}.json"
        self.ours = f"{o.out}/ours/{key}.{os.getpid()}.jsonl"


def runs(o: argparse.Namespace) -> list[Run]:
    return [Run(c, on, seed, size, o) for c in CASES
            if not o.case or any(c["name"].startswith(x) for x in o.case)
            for on in c.get("on", ("plain",)) for seed in c.get("seeds", SEEDS) for size in c["sizes"]]


def surroundings(o: argparse.Namespace) -> dict:
    return {**os.environ, "HF_HOME": f"{o.data}/home", "HF_DATASETS_CACHE": f"{o.out}/arrow",
            "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "XDG_CACHE_HOME": f"{o.out}/cache"}


def make_upstream(all_runs: list[Run], o: argparse.Namespace) -> None:
    missing = {r.upstream: r for r in all_runs if not os.path.exists(r.upstream)}
    if not missing:
        return
    os.makedirs(f"{o.out}/upstream", exist_ok=True)
    jobs = f"{o.out}/jobs.{os.getpid()}.jsonl"
    with open(jobs, "w", encoding="utf-8") as f:
        for r in missing.values():
            f.write(json.dumps({"argv": r.argv, "out": r.upstream}) + "\n")
    print(f"upstream makes {len(missing)} lists (log: {o.out}/upstream.log)", flush=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream.py")
    with open(f"{o.out}/upstream.log", "a", encoding="utf-8") as log:
        subprocess.run([o.python, script, jobs], cwd=f"{o.data}/hub", env=surroundings(o), stdout=log,
                       stderr=log, check=True)
    os.remove(jobs)


def make_ours(r: Run, o: argparse.Namespace) -> tuple[int, str]:
    if os.path.exists(r.ours):
        os.remove(r.ours)
    command = [o.ours, "bench", "serve", *r.argv, "--dry-run", "--dump-workload", r.ours]
    try:
        done = subprocess.run(command, cwd=f"{o.data}/hub", env=surroundings(o), capture_output=True,
                              timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return -1, "no end after 300 s"
    return done.returncode, done.stderr.decode(errors="replace").strip()


def our_row(line: str) -> dict:
    row = json.loads(line)
    row = {**{k: digest(row.get(k)) for k in KEYS if k != "file"}, "due_s": row["due_s"],
           "lora": row.get("lora"), "file": row.get("file")}
    if isinstance(row["prompt"], list) and row["prompt"] and isinstance(row["prompt"][0], dict) \
            and "role" in row["prompt"][0]:
        row["prompt"], row["messages"] = None, row["prompt"]
    if row["file"]:
        row["file"] = upload(row["file"]["name"], base64.b64decode(row["file"]["bytes_base64"]))
    return row


def short(value, width: int = 220) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= width else f"{text[:width]}... ({len(text)})"


def difference(a, b, at: str = "") -> str:
    """Where two values differ first, going down as far as both have the same form."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(f"{at}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))]
    elif isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b) and "length" not in a:
        pairs = [(f"{at}.{k}", a[k], b[k]) for k in a]
    else:
        pairs = []
    for where, x, y in pairs:
        if not same(x, y, {}):
            return difference(x, y, where)
    if isinstance(a, str) and isinstance(b, str):
        i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        return (f"{at} from character {i} (of {len(a)} and {len(b)}): upstream "
                f"{a[max(0, i - 25):i + 40]!r}, ours {b[max(0, i - 25):i + 40]!r}")
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = ({k: v for k, v in d.items() if d.get(k) != e.get(k)} for d, e in ((a, b), (b, a)))
    return f"{at} upstream {short(without_look(a))}, ours {short(without_look(b))}"


def without_look(value):
    if isinstance(value, list):
        return [without_look(x) for x in value]
    if isinstance(value, dict):
        return {k: without_look(v) for k, v in value.items() if k != "tables"}
    return value


def compare_rows(r: Run, theirs: list[dict], ours: list[dict], counts: dict) -> str | None:
    """The first difference, or None."""
    for i, (a, b) in enumerate(zip(theirs, ours)):
        for key in KEYS:
            if key in r.case.get("differs", {}):
                continue
            # The content of a request's messages is not compared a second time.
            if a["messages"] is not None and (key == "media" or key == "prompt" and a[key] is None):
                continue
            x, y = a[key], b[key]
            if key == "media" and not x and not y:
                continue
            if not same(x, y, counts):
                return f"row {i} {key}: {difference(x, y)}"
        if abs(a["due_s"] - b["due_s"]) > DUE_TOLERANCE_S * max(1, a["due_s"]):
            return f"row {i} due_s: upstream {a['due_s']!r}, ours {b['due_s']!r}"
        if a["lora"] != b["lora"]:
            return f"row {i} lora: upstream {a['lora']}, ours {b['lora']}"
        counts["rows"] = counts.get("rows", 0) + 1
    if len(theirs) != len(ours):
        return f"upstream has {len(theirs)} requests, ours {len(ours)}"
    if "differs" in r.case and "prompt" in r.case["differs"]:
        return chunks_alike(r, theirs, ours)
    return None


def chunks_alike(r: Run, theirs: list[dict], ours: list[dict]) -> str | None:
    """Prompts of chunks with other ids: the same lengths, and full chunks repeat where they did."""
    args = r.case["args"]
    flag = "--timed-trace-chunk-hash-size"
    size = int(args[args.index(flag) + 1]) if flag in args else 16
    there, back = {}, {}
    for i, (a, b) in enumerate(zip(theirs, ours)):
        if len(a["prompt"]) != len(b["prompt"]):
            return f"row {i}: upstream has {len(a['prompt'])} ids, ours {len(b['prompt'])}"
        for at in range(0, len(a["prompt"]) - size + 1, size):
            x, y = tuple(a["prompt"][at:at + size]), tuple(b["prompt"][at:at + size])
            if there.setdefault(x, y) != y or back.setdefault(y, x) != x:
                return f"row {i}, id {at}: chunks that are equal on one side differ on the other"
    return None


def judge(r: Run, o: argparse.Namespace, counts: dict) -> tuple[str, str]:
    """A verdict (same, DIFFERENT, MISSING, known) and what there is to say."""
    with open(r.upstream, encoding="utf-8") as f:
        result = json.load(f)
    status, said = make_ours(r, o)
    if r.case.get("refused"):
        ok = "error" in result and status in (1, 2)
        return ("same" if ok else "DIFFERENT",
                f"upstream: {result.get('error', 'goes on')}; ours: exit {status} {said[-200:]}")
    if "error" in result:
        if "only" in r.case and status == 0:
            return "known", r.case["only"]
        return "UPSTREAM", f"{result['error'][:300]} (ours: exit {status})"
    if status != 0 or not os.path.exists(r.ours):
        known = "only" in r.case and status in (1, 2)
        return "known" if known else "MISSING", f"exit {status}: {said[-300:]}"
    with open(r.ours, encoding="utf-8") as f:
        ours = [our_row(line) for line in f]
    os.remove(r.ours)
    problem = compare_rows(r, result["rows"], ours, counts)
    if problem and "only" in r.case:
        return "known", f"{problem}; {r.case['only']}"
    return ("DIFFERENT", problem) if problem else ("same", "")


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "peer", "data", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--all", action="store_true", help="print every run, not the first of a case")
    p.add_argument("--fresh", action="store_true", help="make upstream's lists again")
    p.add_argument("--only-upstream", action="store_true", help="make upstream's lists and stop")
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    for name in ("ours", "peer", "data", "out"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    os.makedirs(f"{o.out}/ours", exist_ok=True)
    asked = runs(o)
    if not asked:
        sys.exit("no such case")
    for r in asked:
        if o.fresh and os.path.exists(r.upstream):
            os.remove(r.upstream)
    make_upstream(asked, o)
    if o.only_upstream:
        return 0
    return report(asked, o)


def report(asked: list[Run], o: argparse.Namespace) -> int:
    table: dict[str, dict] = {}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for r, (verdict, text, counts) in zip(asked, pool.map(lambda r: one(r, o), asked)):
            case = table.setdefault(r.case["name"], {"verdicts": {}, "counts": {}, "text": []})
            case["verdicts"][verdict] = case["verdicts"].get(verdict, 0) + 1
            for key, n in counts.items():
                case["counts"][key] = case["counts"].get(key, 0) + n
            if verdict not in ("same",) and (o.all or len(case["text"]) < 1 or verdict == "known"):
                if not case["text"] or o.all:
                    case["text"].append(f"{verdict}: {r.name}: {text}")
            failed += verdict not in ("same", "known")
            if r is last(asked, r):
                show(r.case, case)
    show_sums(table)
    print(f"{len(asked) - failed} of {len(asked)} command lines alike")
    return 1 if failed else 0


def one(r: Run, o: argparse.Namespace) -> tuple[str, str, dict]:
    counts: dict[str, int] = {}
    return *judge(r, o, counts), counts


def last(asked: list[Run], r: Run) -> Run:
    return next(x for x in reversed(asked) if x.case is r.case)


def show(case: dict, found: dict) -> None:
    counts = ", ".join(f"{n} {what}" for what, n in found["counts"].items())
    verdicts = ", ".join(f"{n} {what}" for what, n in found["verdicts"].items())
    good = set(found["verdicts"]) <= {"same", "known"}
    print(f"{'PASS' if good else 'FAIL'}  {case['name']:<28} {verdicts}; {counts}", flush=True)
    for key, why in case.get("differs", {}).items():
        print(f"      known: {key}: {why}")
    for text in found["text"]:
        print(f"      {text}", flush=True)


def show_sums(table: dict[str, dict]) -> None:
    sums: dict[str, dict] = {}
    for name, found in table.items():
        entry = sums.setdefault(name.split("/")[0], {"alike": 0, "not": 0, "rows": 0})
        for verdict, n in found["verdicts"].items():
            entry["alike" if verdict in ("same", "known") else "not"] += n
        entry["rows"] += found["counts"].get("rows", 0)
    print(f"\n{'dataset':<22}{'alike':>8}{'not':>6}{'rows':>9}")
    for name, e in sums.items():
        print(f"{name:<22}{e['alike']:>8}{e['not']:>6}{e['rows']:>9}")


if __name__ == "__main__":
    sys.exit(main())
