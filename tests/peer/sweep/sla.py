# SPDX-License-Identifier: Apache-2.0
"""The search for a service level: real old releases beside ours, on systems whose answer is known.

usage: sla.py --ours BINARY --old DIR --out DIR [--systems N]

DIR has vllm/benchmarks/sweep of 0.13.0 (estimate, double, bisect) and 0.16.0 (monotone cubic). Each
tool drives the same server and benchmark (fake/), whose latency is a formula of the load. Required:

- ours by --sla-search bisect and interpolate asks for no level that the release it is made after
  does not ask for, in no more runs;
- every search of ours gives the largest level that passes, 0 where none does; fitted within one level,
  and over all systems in at most 60 % of the runs that 0.13.0 needs with three runs a level, which is
  everybody's default (0.13.0 makes all of them at each of its levels).

Besides, tests/peer/sweep/golden_search.py is held against the releases: same levels, same answers.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import upstream
from judge import free_port, read, wait_for_port

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASES = {"bisect": "0.13.0", "interpolate": "0.16.0"}
HIGHEST = {"bisect": 65536, "interpolate": 8192, "fitted": 65536}
ENOUGH = 0.6
LEVELS = 400  # the systems have their limits below
RUNS = 3  # of a level; for the searches that are compared level by level one is enough


def system_of(seed: int) -> dict:
    draw = random.Random(seed)
    return {
        "capacity": round(draw.uniform(3, 110), 2),
        "base_ms": round(draw.uniform(5, 90), 2),
        "slope": draw.choice([1, 1.5, 2, 3]),
    }


def latency(system: dict, level: float, prompts: int) -> float:
    load = min(level, prompts, 3 * system["capacity"])
    return system["base_ms"] * (1 + (load / system["capacity"]) ** system["slope"])


def case_of(seed: int) -> dict:
    draw, system = random.Random(1000 + seed), system_of(seed)
    prompts = 5000
    at = draw.uniform(0.4, 2.5) * system["capacity"]
    limit = round(latency(system, max(at, 1.2), prompts), 2)
    slas = {"p99_e2el_ms": f"<={2 * limit}"}
    if seed % 3 == 1:
        slas = {"mean_ttft_ms": f"<{limit / 8}", "request_throughput": ">=0.01"}
    if seed % 3 == 2:
        slas = {"mean_e2el_ms": f"<={limit}", "p99_tpot_ms": f"<{limit / 15}"}
    if seed % 16 == 15:
        slas = {"mean_e2el_ms": f"<={system['base_ms'] / 2}"}
    variable = "max_concurrency" if seed % 4 == 3 else "request_rate"
    passing = [n for n in range(1, LEVELS) if holds(system, slas, n, prompts)]
    if passing and passing[-1] == LEVELS - 1:
        raise ValueError(f"system {seed} has no limit")
    return {
        "seed": seed,
        "system": system,
        "slas": slas,
        "variable": variable,
        "prompts": prompts,
        "answer": passing[-1] if passing else 0,
    }


def holds(system: dict, slas: dict, level: int, prompts: int) -> bool:
    t = latency(system, level, prompts)
    values = {
        "p99_e2el_ms": 2 * t,
        "mean_e2el_ms": t,
        "mean_ttft_ms": t / 8,
        "p99_tpot_ms": t / 20,
        "request_throughput": 1,
    }
    for key, text in slas.items():
        op = "<=" if text.startswith("<=") else text[0]
        limit = float(text.lstrip("<>="))
        value = values[key]
        if not {"<=": value <= limit, "<": value < limit, ">": True}[op]:
            return False
    return True


def runs_of(log: str, variable: str) -> list[int]:
    option = "--" + variable.replace("_", "-")
    rows = [json.loads(line) for line in log.splitlines()]
    return [int(r[r.index(option) + 1]) for r in rows if r[0] == "bench"]


def run(case: dict, how: str, old, o) -> dict:
    folder = os.path.join(o.out, f"{case['seed']}-{how}-{'upstream' if old else 'ours'}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    port = free_port()
    with open(os.path.join(folder, "sla.json"), "w", encoding="utf-8") as f:
        json.dump([case["slas"]], f)
    argv = [
        "--serve-cmd",
        f"vllm serve m --port {port}",
        "--bench-cmd",
        f"{'patient' if old else 'bench'} --num-prompts {case['prompts']}",
        "--num-runs",
        str(RUNS if how == "fitted" else 1),
        "--sla-params",
        "sla.json",
        "--sla-variable",
        case["variable"],
    ]
    env = {
        "PATH": os.path.join(HERE, "fake") + ":" + os.environ["PATH"],
        "FAKE_LOG": folder + ".log",
        "FAKE_PORT": str(port),
        "FAKE_SYSTEM": json.dumps(case["system"]),
        "XDG_RUNTIME_DIR": o.out,
    }
    with contextlib.suppress(FileNotFoundError):
        os.remove(folder + ".log")
    out, err = folder + ".stdout", folder + ".stderr"
    if old:
        status = upstream.run(argv, folder=folder, stdout=out, stderr=err, env=env, old=old)
    else:
        with open(out, "wb") as a, open(err, "wb") as b:
            status = subprocess.run(
                [
                    o.ours,
                    "bench",
                    "sweep",
                    "serve_sla",
                    *argv,
                    "-e",
                    "x",
                    "--sla-search",
                    how,
                    "--sla-max",
                    str(HIGHEST[how]),
                ],
                stdout=a,
                stderr=b,
                cwd=folder,
                timeout=120,
                check=False,
                env={**os.environ, **env},
            ).returncode
    wait_for_port(port)
    text = read(out)
    found = re.findall(rf"^Maximum {case['variable']} for SLA: (\d+) req/s\.$", text, re.M)
    if status != 0:
        raise RuntimeError(f"{folder}: exit status {status}: {read(err)[-400:]}")
    return {
        "answer": int(found[-1]) if found else 0,
        "levels": runs_of(read(folder + ".log"), case["variable"]),
        "text": text,
    }


def kept(case: dict, how: str, releases: dict, o) -> dict:
    """What a release did; it is the same every time."""
    path = os.path.join(o.out, "releases", f"{case['seed']}-{how}.json")
    if os.path.exists(path):
        stored = json.loads(read(path))
        if stored["case"] == case:
            return stored
    outcome = {**run(case, how, releases[how], o), "case": case}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(outcome, f)
    return outcome


def golden():
    """The module, which prints when it is loaded."""
    spec = importlib.util.spec_from_file_location("golden_search", os.path.join(HERE, "golden_search.py"))
    module = importlib.util.module_from_spec(spec)
    with contextlib.redirect_stdout(io.StringIO()):
        spec.loader.exec_module(module)
    return module


def release_on(module, system, latency_of, estimate_of, tmp: Path) -> tuple[list[int], int]:
    """A release's own search with nothing replaced but the benchmark."""
    probed = []

    def run_sla(_server, _cmd, *, bench_comb, **_kw):
        level = bench_comb["request_rate"]
        if level not in probed:
            probed.append(level)
        return [
            {"t": latency_of(system, level) if level else 0.0, "request_throughput": estimate_of(system)}
        ]

    sweep = sys.modules[module.SLASweepItem.__module__]
    item = sweep.SLASweepItem.from_record({"t": "<=100"})
    params = module.ParameterSweepItem.from_record({})
    module.run_sla, text = run_sla, io.StringIO()
    with contextlib.redirect_stdout(text):
        module.search_sla(
            None,
            [],
            serve_comb=params,
            bench_comb=params,
            sla_comb=item,
            sla_variable="request_rate",
            base_path=tmp,
            num_runs=1,
            dry_run=False,
        )
    [answer] = re.findall(r"for SLA: (\d+) req/s", text.getvalue())
    return probed, int(answer)


def check_golden(releases: dict, o) -> int:
    """The recipes behind the golden levels, level by level."""
    module, failed, n, levels = golden(), 0, 0, 0
    tmp = Path(o.out) / "golden"
    tmp.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    for k in range(o.systems * 4):
        system = (k % 4, round(draw.uniform(1, 95), 3), round(draw.uniform(2, 700), 3))
        if module.margin(system, module.MAX_V2) <= 0 or module.margin(system, 1) > 0:
            continue
        for how, recipe in (("bisect", module.bisect), ("interpolate", module.interpolate)):
            want = release_on(releases[how], system, module.latency, module.estimate, tmp)
            have = recipe(system)
            n, levels = n + 1, levels + len(want[0])
            if (list(have[0]), have[1]) != want:
                failed += 1
                print(f"FAIL  recipe {how} on {system}: release {want}, recipe {have}")
    print(
        f"{'FAIL' if failed else 'PASS'}  recipes of golden_search.py: {n} searches, {levels} levels as "
        f"the releases'",
        flush=True,
    )
    return failed


def compare(case: dict, releases: dict, o, totals: dict) -> list[str]:
    problems = []
    for how in RELEASES:
        a, b = kept(case, how, releases, o), run(case, how, None, o)
        totals[how] = totals.get(how, 0) + len(b["levels"])
        totals["release " + how] = totals.get("release " + how, 0) + len(a["levels"])
        if b["answer"] != case["answer"]:
            problems.append(f"{how}: {b['answer']}, the largest that passes is {case['answer']}")
        if case["answer"] and a["answer"] != b["answer"]:
            problems.append(f"{how}: {b['answer']}, {RELEASES[how]} says {a['answer']}")
        if not set(b["levels"]) <= set(a["levels"]) or len(b["levels"]) > len(a["levels"]):
            problems.append(f"{how}: levels {b['levels']}, {RELEASES[how]} {a['levels']}")
    c = run(case, "fitted", None, o)
    totals["fitted"] = totals.get("fitted", 0) + len(c["levels"])
    if abs(c["answer"] - case["answer"]) > 1:
        problems.append(f"fitted: {c['answer']}, the largest that passes is {case['answer']}")
    totals["exact"] = totals.get("exact", 0) + (c["answer"] == case["answer"])
    return problems


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "old", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--systems", type=int, default=24)
    p.add_argument("--only-recipes", action="store_true")
    o = p.parse_args()
    o.ours, o.out = os.path.abspath(o.ours), os.path.abspath(o.out)
    releases = {
        how: upstream.old_release(os.path.join(o.old, v), "sweep_" + v.replace(".", "_"))
        for how, v in RELEASES.items()
    }
    failed, totals = (
        check_golden(
            {
                how: upstream.old_release(os.path.join(o.old, v), "recipe_" + v.replace(".", "_"))
                for how, v in RELEASES.items()
            },
            o,
        ),
        {},
    )
    if o.only_recipes:
        return 1 if failed else 0
    for seed in range(o.systems):
        case = case_of(seed)
        try:
            problems = compare(case, releases, o, totals)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            problems = [str(e)]
        failed += bool(problems)
        if problems:
            print(f"FAIL  system {seed} {case['variable']} {case['slas']} {case['system']}")
            for text in problems:
                print(f"      {text}", flush=True)
    for how, v in RELEASES.items():
        print(f"{how:<12} {totals.get(how, 0):>5} runs, {v} {totals.get('release ' + how, 0)}")
    whole = RUNS * totals.get("release bisect", 0)
    share = totals.get("fitted", 0) / max(whole, 1)
    print(
        f"fitted       {totals.get('fitted', 0):>5} runs, {100 * share:.0f} % of 0.13.0's {whole}; "
        f"{totals.get('exact', 0)} of {o.systems} exact"
    )
    if share > ENOUGH:
        failed += 1
        print(f"FAIL  more than {100 * ENOUGH:.0f} %")
    print(f"{o.systems} systems, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
