# SPDX-License-Identifier: Apache-2.0
"""Upstream's offline benchmarks and ours on the same engine, case by case.

usage: compare.py --ours BINARY --models DIR --out DIR [--runs N] [--tolerance R] [--heard]
                  [--timed] [--failures] [--fresh] [CASE...]

heard   each command once with few tokens while hook/sitecustomize.py writes down what the engine is
        asked: the same calls with the same prompts, parameters and adapters in the same order; the
        same keys, counts, side files, lines of the terminal and warnings.
timed   each command N times, alternating, with more tokens: the ratio of the medians of each
        figure lies within the tolerance.
failures   runs that end badly: the same status and the same sentence.

What upstream did when it was heard is kept in OUT/upstream; --fresh runs it again.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

from cases import CASES, FAILURES

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_TIMEOUT_S = 1200
SHOWN = 12
LOG_LINE = re.compile(r"^\(\w+(-\w+)? pid=\d+\) |^\[rank\d+\]|^(INFO|WARNING) \d\d-\d\d ")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
WARNED = re.compile(r"^\S+:\d+: UserWarning: (.*)$")
RAISED = re.compile(r"^(?:\[rank\d+\]: )?(?:[\w.]+\.)?\w*(?:Error|Exception): (.*)$")


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def command(who: str, case: dict, words: list[str], o) -> list[str]:
    vllm = os.path.join(os.path.dirname(sys.executable), "vllm")
    model = os.path.join(o.models, case["model"])
    line = ["bench", case["verb"], "--model", model, *case["words"], *words]
    if who == "upstream":
        return [vllm, *line, "--output-json", "r.json"]
    return [o.ours, *line, "--output-json", "r.json", "--python", sys.executable]


def run(who: str, case: dict, words: list[str], folder: str, is_heard: bool, o) -> dict:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    dump = os.path.join(folder, "dump.jsonl")
    env = {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "SAVE_TO_PYTORCH_BENCHMARK_FORMAT": "1",
        "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"],
        **({"PYTHONPATH": os.path.join(HERE, "hook"), "PROFLLM_PEER_DUMP": dump} if is_heard else {}),
    }
    out, err = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    began = time.monotonic()
    with open(out, "wb") as a, open(err, "wb") as b:
        status = subprocess.run(command(who, case, words, o), cwd=folder, stdout=a, stderr=b, env=env,
                                stdin=subprocess.DEVNULL, check=False,
                                timeout=RUN_TIMEOUT_S).returncode
    files = {os.path.basename(p): read(p) for p in glob.glob(os.path.join(folder, "*.json"))}
    return {
        "status": status,
        "wall_s": time.monotonic() - began,
        "stdout": [x for x in read(out).splitlines() if x.strip() and not LOG_LINE.match(x)],
        "stderr": read(err),
        "result": json.loads(files.pop("r.json", "null")),
        "sides": {k: json.loads(v) for k, v in files.items()},
        "calls": [json.loads(x) for x in read(dump).splitlines()],
    }


def upstream_heard(case: dict, words: list[str], folder: str, o) -> dict:
    """What upstream did, kept under a hash of all that it depends on."""
    parts = [version("vllm-cpu"), command("upstream", case, words, o),
             read(os.path.join(HERE, "hook", "sitecustomize.py"))]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    kept = os.path.join(o.out, "upstream", name + ".json")
    if not o.fresh and os.path.exists(kept):
        return json.loads(read(kept))
    outcome = run("upstream", case, words, folder, True, o)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with open(kept, "w", encoding="utf-8") as f:
        json.dump(outcome, f)
    return outcome


def masked(line: str) -> str:
    """Figures by their shape: whole, with two decimals, with any; columns by their words."""

    def shape(m):
        decimals = len(m.group(1) or "") - 1
        return "N" if decimals < 0 else "N.NN" if decimals <= 2 else "N.n"

    return re.sub(r"\s+", " ", NUMBER.sub(shape, line)).strip()


def key_paths(value, at: str = "") -> list[str]:
    """The keys of a JSON value in their order; of a list its first entry's."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in [f"{at}.{k}", *key_paths(v, f"{at}.{k}")]]
    if isinstance(value, list) and value:
        return [f"{at}[]", *key_paths(value[0], f"{at}[]")]
    return []


def without_ours(value: dict) -> dict:
    return {k: v for k, v in value.items() if k != "profllm"}


def shorter(value) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + "..."


def differing_keys(name: str, theirs: list[str], ours: list[str]) -> list[str]:
    if theirs == ours:
        return []
    missing = [k for k in theirs if k not in ours]
    more = [k for k in ours if k not in theirs]
    if not missing and not more:
        return [f"{name}: the same keys in another order"]
    return [f"{name}: missing {missing[:SHOWN]} ({len(missing)}), more {more[:SHOWN]} ({len(more)})"]


def spread(call: dict) -> dict:
    """One set of parameters for all prompts is that set for each."""
    n = len(call["prompts"]) if isinstance(call.get("prompts"), list) else 0
    return {**call, "params": call["params"] * n} if n and len(call.get("params", [])) == 1 else call


def differing_calls(theirs: list[dict], ours: list[dict]) -> list[str]:
    a, b = [c["call"] for c in theirs], [c["call"] for c in ours]
    if a != b:
        return [f"the engine is asked {shorter(a)} by upstream, {shorter(b)} by ours"]
    problems = []
    for i, (x, y) in enumerate(zip(map(spread, theirs), map(spread, ours))):
        for k in x.keys() | y.keys():
            if x.get(k) != y.get(k):
                u, v = x.get(k), y.get(k)
                if isinstance(u, list) and isinstance(v, list) and len(u) == len(v):
                    j = next(j for j in range(len(u)) if u[j] != v[j])
                    u, v = f"[{j}] {shorter(u[j])}", f"[{j}] {shorter(v[j])}"
                problems.append(f"call {i} ({x['call']}), {k}: upstream {shorter(u)}, ours {shorter(v)}")
    return problems


def differing_lines(theirs: list[str], ours: list[str]) -> list[str]:
    """Upstream's lines come first and in its order; what is ours comes after them."""
    a, b = [masked(x) for x in theirs], [masked(x) for x in ours]
    problems = []
    for i, line in enumerate(a):
        have = b[i] if i < len(b) else "(nothing)"
        if line != have:
            problems.append(f"line {i + 1}: upstream {theirs[i]!r}, ours {ours[i] if i < len(b) else have!r}")
            break
    return problems


def differing_warnings(words: list[str], theirs: dict, ours: dict) -> list[str]:
    """Upstream warns of defaults of its own, too; what the user gave must be named by ours."""
    problems = []
    for m in filter(None, map(WARNED.match, theirs["stderr"].splitlines())):
        named = re.findall(r"--[a-z-]+", m.group(1))[:1]
        if named and named[0] in words and named[0] not in ours["stderr"]:
            problems.append(f"no warning that names {named[0]}: {m.group(1)}")
    return problems


def judge(words: list[str], theirs: dict, ours: dict) -> list[str]:
    if theirs["status"] or ours["status"]:
        return [f"status upstream {theirs['status']}, ours {ours['status']}: {ours['stderr'][-400:]}"]
    a, b = theirs["result"], ours["result"]
    if not b:
        return ["no result"]
    problems = differing_keys("result", key_paths(a), key_paths(without_ours(b)))
    for k, v in a.items():
        if not isinstance(v, float) and not isinstance(v, (dict, list)) and k != "timestamp":
            if b.get(k) != v:
                problems.append(f"{k}: upstream {v!r}, ours {b.get(k)!r}")
    if list(sorted(theirs["sides"])) != list(sorted(ours["sides"])):
        problems.append(f"side files {sorted(theirs['sides'])}, ours {sorted(ours['sides'])}")
    for name, side in sorted(theirs["sides"].items()):
        if name in ours["sides"]:
            problems += differing_keys(name, sorted(key_paths(side)), sorted(key_paths(ours["sides"][name])))
    problems += differing_lines(theirs["stdout"], ours["stdout"])
    problems += differing_warnings(words, theirs, ours)
    return problems + differing_calls(theirs["calls"], ours["calls"])


def heard(case: dict, o) -> bool:
    folder = os.path.join(o.out, case["name"])
    theirs = upstream_heard(case, case["short"], os.path.join(folder, "upstream-heard"), o)
    ours = run("ours", case, case["short"], os.path.join(folder, "ours-heard"), True, o)
    problems = judge(case["words"] + case["short"], theirs, ours)
    calls = theirs["calls"]
    n = sum(len(c["prompts"]) if isinstance(c.get("prompts"), list) else 1 for c in calls)
    print(f"{'FAIL' if problems else 'PASS'}  heard  {case['name']:<24} {len(calls)} calls, {n} prompts, "
          f"{len(theirs['stdout'])} lines", flush=True)
    for text in problems:
        print(f"      {text}", flush=True)
    return not problems


def timed(case: dict, o) -> bool:
    seen = {who: {name: [] for name in case["figures"]} for who in ("upstream", "ours")}
    wall = {who: [] for who in seen}
    for i in range(o.runs):
        for who in seen if i % 2 == 0 else reversed(seen):
            folder = os.path.join(o.out, case["name"], f"{who}-{i}")
            r = run(who, case, case["long"], folder, False, o)
            if r["status"]:
                print(f"FAIL  timed  {case['name']:<24} {who}: status {r['status']}: {r['stderr'][-400:]}",
                      flush=True)
                return False
            wall[who].append(r["wall_s"])
            for name, of in case["figures"].items():
                seen[who][name].append(of(r["result"]))
    is_right = True
    for name in case["figures"]:
        a, b = seen["upstream"][name], seen["ours"][name]
        ratio = statistics.median(b) / statistics.median(a)
        is_near = abs(ratio - 1) <= o.tolerance
        is_right = is_right and is_near
        print(f"{'PASS' if is_near else 'FAIL'}  timed  {case['name']:<24} {name}: ours "
              f"{statistics.median(b):.4g} ({min(b):.4g}..{max(b):.4g}), upstream "
              f"{statistics.median(a):.4g} ({min(a):.4g}..{max(a):.4g}), ratio {ratio:.3f}; "
              f"whole command {statistics.median(wall['ours']):.0f} s, "
              f"{statistics.median(wall['upstream']):.0f} s", flush=True)
    return is_right


def sentence(stderr: str) -> str:
    found = [m.group(1) for m in map(RAISED.match, stderr.splitlines()) if m]
    return found[-1] if found else (stderr.strip().splitlines() or [""])[-1]


def failure(case: dict, o) -> bool:
    folder = os.path.join(o.out, case["name"])
    a = upstream_heard(case, [], os.path.join(folder, "upstream"), o)
    b = run("ours", case, [], os.path.join(folder, "ours"), True, o)
    want, is_same = sentence(a["stderr"]), a["status"] == b["status"]
    is_said = re.sub(r"\s+", " ", want)[:160] in re.sub(r"\s+", " ", b["stderr"])
    print(f"{'PASS' if is_same and is_said else 'FAIL'}  fails  {case['name']:<24} status {a['status']}, "
          f"ours {b['status']}; {shorter(want)}", flush=True)
    if not is_said:
        print(f"      ours: {shorter(b['stderr'][-300:])}", flush=True)
    return is_same and is_said


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "models", "out"):
        p.add_argument(f"--{name}", required=True, type=os.path.abspath)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--tolerance", type=float, default=0.05)
    for name in ("heard", "timed", "failures", "fresh"):
        p.add_argument(f"--{name}", action="store_true")
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    unknown = set(o.case) - {c["name"] for c in CASES + FAILURES}
    if unknown:
        p.error(f"no such case: {', '.join(sorted(unknown))}")
    steps = [(heard, CASES)] * o.heard + [(failure, FAILURES)] * o.failures + [(timed, CASES)] * o.timed
    verdicts = [step(case, o) for step, cases in steps for case in cases
                if not o.case or case["name"] in o.case]
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    return 0 if verdicts and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
