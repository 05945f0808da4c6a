# SPDX-License-Identifier: Apache-2.0
"""Run both clients over the cases and compare what they did.

usage: compare.py --ours BINARY --model DIR --other DIR --data DIR --out DIR [--fresh] [CASE...]

For every case a fresh `profllm sim` serves each client, behind a relay that
notes every request whole. What is compared stands in judge.py. Besides, the
statistics in our file are recomputed by upstream's own NumPy code from our
per-request arrays.
"""

import argparse
import json
import os
import re
import sys
import warnings

import upstream
from cases import CASES, COMMON, COMMON_MODEL, REFUSED
from clients import Sim, cache_path, read, run_args, run_client
from judge import (INTENDED, Verdicts, compare_files, compare_namespaces, compare_reports,
                   compare_requests, compare_workloads)
from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput

PROBLEMS_SHOWN = 6


def option(args: list[str], name: str, default: str) -> str:
    return args[args.index(name) + 1] if name in args else default


def outputs_of(result: dict) -> list[RequestFuncOutput]:
    """Upstream's records of single requests, made of the arrays of a detailed file."""
    n = len(result["errors"])

    def column(name, default):
        return result.get(name, [default] * n)

    return [RequestFuncOutput(
        success=not result["errors"][i], error=result["errors"][i],
        latency=result["latencies"][i], output_tokens=column("output_lens", 0)[i],
        ttft=column("ttfts", 0.0)[i], itl=column("itls", [])[i],
        prompt_len=result["input_lens"][i], start_time=column("start_times", 0.0)[i],
        client_queue_time=result["queue_times"][i]) for i in range(n)]


def upstream_numbers(result: dict, args: list[str]) -> dict:
    """What upstream's own code makes of our arrays."""
    outputs = outputs_of(result)
    percentiles = [float(p) for p in option(args, "--metric-percentiles", "99").split(",")]
    goodput = {a.split(":")[0]: float(a.split(":")[1]) for a in args
               if re.match(r"^(ttft|tpot|e2el):[0-9.]+$", a)}
    if "output_lens" not in result:
        m = upstream.serve.calculate_metrics_for_embeddings(
            outputs, result["duration"], percentiles)
        want = {"completed": m.completed, "total_input_tokens": m.total_input,
                "request_throughput": m.request_throughput,
                "total_token_throughput": m.total_token_throughput}
        names = ["e2el"]
    else:
        m, lens = upstream.serve.calculate_metrics(
            [], outputs, result["duration"], None, percentiles, goodput)
        want = {"failed": m.failed, "total_output_tokens": m.total_output, "output_lens": lens,
                "total_input_tokens": m.total_input, "request_throughput": m.request_throughput,
                "output_throughput": m.output_throughput, "completed": m.completed,
                "total_token_throughput": m.total_token_throughput,
                "request_goodput": m.request_goodput if goodput else None,
                "max_output_tokens_per_s": m.max_output_tokens_per_s,
                "max_concurrent_requests": m.max_concurrent_requests}
        names = ["ttft", "tpot", "itl", "e2el"]
    for name in names:
        want |= {f"{s}_{name}_ms": getattr(m, f"{s}_{name}_ms") for s in ("mean", "median", "std")}
        want |= {f"p{p:g}_{name}_ms": x for p, x in getattr(m, f"percentiles_{name}_ms")}
    queue = [x.client_queue_time for x in outputs if x.success]
    whole = [x.latency + x.client_queue_time for x in outputs if x.success]
    np = upstream.np
    for name, values in (("client_queue_time", queue), ("e2el_including_client_queue", whole)):
        want |= {f"mean_{name}_ms": np.mean(values or 0) * 1000,
                 f"median_{name}_ms": np.median(values or 0) * 1000,
                 f"std_{name}_ms": np.std(values or 0) * 1000}
        want |= {f"p{p:g}_{name}_ms": np.percentile(values or 0, p) * 1000 for p in percentiles}
    return want


def recompute(v: Verdicts, case: dict, text: str) -> None:
    """Upstream's code over our arrays must give our numbers, to the last bit."""
    result = json.loads(text.rpartition("\n")[2]) if text else {}
    if "input_lens" not in result:
        return
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as null:
        warnings.simplefilter("ignore")
        stdout, sys.stdout = sys.stdout, null
        try:
            want = upstream_numbers(result, case["args"])
        finally:
            sys.stdout = stdout
    metadata = {a.split("=")[0] for a in case["args"] if re.match(r"^\w+=", a)}
    for key, value in want.items():
        if key in result and key not in metadata:
            v.check(result[key] == value, f"{key}: NumPy {value!r}, ours {result[key]!r}")
            v.count("statistics", 1)


def compare_case(case: dict, o: argparse.Namespace) -> Verdicts:
    v = Verdicts(case)
    theirs, ours = run_client("upstream", case, o), run_client("ours", case, o)
    v.equal("exit status", case.get("exit", (0, 0)), (theirs["status"], ours["status"]))
    if theirs["status"] != ours["status"]:
        v.intend(case.get("exit_row", "exit"))
    v.check("Traceback" not in ours["stderr"], "stderr: ours has a traceback")
    if case.get("says"):
        v.check(case["says"] in theirs["stderr"], f"says: upstream does not say {case['says']!r}")
        v.check(case["says"] in ours["stderr"], f"says: ours does not say {case['says']!r}")
    if "only" in case:
        v.intend(case["only"])
        return v
    compare_workloads(v, theirs["workload"], ours["workload"])
    compare_requests(v, case, theirs["requests"], ours["requests"])
    compare_reports(v, theirs["stdout"], ours["stdout"])
    compare_namespaces(v, theirs["stdout"], ours["stdout"])
    compare_files(v, theirs["files"], ours["files"])
    recompute(v, case, ours["files"].get("result.json", ""))
    return v


def last_line(text: str) -> str:
    """The sentence at the end of stderr, without who says it."""
    lines = [x.strip() for x in text.strip().split("\n") if x.strip()]
    return re.sub(r"^(([\w.]+(Error|Exception|ption)?|error|profllm[\w ]*): )+", "",
                  lines[-1]) if lines else ""


def refusal(who: str, args: list[str], folder: str, port: int, o: argparse.Namespace) -> tuple:
    """Exit status and stderr; upstream's are kept, for a refusal depends on nothing else."""
    kept = cache_path({"refused": args}, o)
    if who == "upstream" and not o.fresh and os.path.exists(kept):
        return tuple(json.loads(read(kept)))
    paths = {k: os.path.join(folder, f"{who}.{k}") for k in ("stdout", "stderr", "workload.jsonl")}
    filled = [a.format(port=port, model=o.model, data=o.data) for a in args]
    status = run_args(who, filled, paths, {}, o)
    if who == "upstream":
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(kept, "w", encoding="utf-8") as f:
            json.dump([status, read(paths["stderr"])], f)
    return status, read(paths["stderr"])


def compare_refusals(o: argparse.Namespace) -> Verdicts:
    v = Verdicts({})
    folder = os.path.join(o.out, "refused")
    os.makedirs(folder, exist_ok=True)
    sim = Sim(o.ours, folder, o.model, ["--model", o.model])
    base = COMMON + COMMON_MODEL + ["--dataset-name", "random", "--num-prompts", "2",
                                    "--random-input-len", "8", "--random-output-len", "2"]
    for more, want, *own in REFUSED:
        said = {who: refusal(who, base + more, folder, sim.port, o) for who in ("upstream", "ours")}
        got = (said["upstream"][0], said["ours"][0])
        v.equal(f"{' '.join(more)}: exit statuses", want, got)
        theirs, ours = last_line(said["upstream"][1]), said["ours"][1].strip()
        if want[1] == 1 and not own:
            v.check(theirs in ours, f"{' '.join(more)}: upstream says {theirs!r}, ours {ours!r}")
        if want[1] == 2:
            named = {x.lstrip("-") for x in re.findall(r"--[a-z][a-z-]*", last_line(ours))}
            given = {x.partition("=")[0].lstrip("-") for x in base + more if x.startswith("--")}
            v.check(named & given, f"{' '.join(more)}: ours names no option of it: {ours!r}")
        if want == (1, 2):
            v.intend("refused option")
        v.check("Traceback" not in ours and ours != "", f"{' '.join(more)}: no clear sentence")
        v.count("refusals", 1)
    sim.stop()
    return v


def check_rows(path: str) -> list[str]:
    """Every intended difference must stand in the documentation."""
    text = read(path)
    return [f"{name}: no row {row!r}" for name, row in INTENDED.items() if f"| {row} |" not in text]


def report(name: str, v: Verdicts) -> None:
    counts = ", ".join(f"{n} {what}" for what, n in v.counts.items())
    print(f'{"FAIL" if v.problems else "PASS"}  {name:<28} {counts}', flush=True)
    for text in v.problems[:PROBLEMS_SHOWN]:
        print(f"      {text}", flush=True)
    if len(v.problems) > PROBLEMS_SHOWN:
        print(f"      and {len(v.problems) - PROBLEMS_SHOWN} more", flush=True)


def add(total: dict[str, int], more: dict[str, int]) -> None:
    for what, n in more.items():
        total[what] = total.get(what, 0) + n


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    for name in ("ours", "model", "other", "data", "out", "differences"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--fresh", action="store_true", help="run upstream again where it is known")
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    for name in ("ours", "model", "other", "data", "out", "differences"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    return o


def main() -> int:
    o = arguments()
    os.makedirs(o.out, exist_ok=True)
    jobs = [(c["name"], lambda c=c: compare_case(c, o)) for c in CASES]
    jobs.append(("refusals", lambda: compare_refusals(o)))
    known = [name for name, _ in jobs]
    assert len(set(known)) == len(known), "two cases of one name"
    if unknown := set(o.case) - set(known):
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed, ran, total, meant = 0, 0, {}, {}
    for name, job in jobs:
        if o.case and name not in o.case:
            continue
        try:
            v = job()
        except Exception as e:
            v = Verdicts({})
            v.check(False, f"{type(e).__name__}: {e}")
        failed, ran = failed + bool(v.problems), ran + 1
        report(name, v)
        add(total, v.counts)
        add(meant, v.meant)
    print("together: " + ", ".join(f"{n} {what}" for what, n in total.items()))
    print("met on purpose (docs/differences.md):")
    for name, n in sorted(meant.items(), key=lambda x: -x[1]):
        print(f"  {n:>6}  {INTENDED[name]}")
    missing = check_rows(o.differences)
    for text in missing:
        print(f"FAIL  docs/differences.md {text}")
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
