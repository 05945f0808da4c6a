# SPDX-License-Identifier: Apache-2.0
"""Run both clients over the cases, side by side, and compare what they did.

usage: compare.py --ours BINARY --model DIR --other DIR --data DIR --out DIR [CASE...]

For every case a fresh `profllm sim` serves each client. Compared are: exit
status; the workload (prompts, lengths, ids) and due times, upstream's taken
where its traffic layer receives them; every body the server received, byte
for byte; the report's lines and, where they are not times, their values; the
result file's keys, order, spelling and values; and the statistics in our
file, recomputed by upstream's own NumPy code from our per-request arrays.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings

import upstream
from cases import (CASES, COMMON, COMMON_FILE, COMMON_MODEL, REFUSED)
from tap import Tap
from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput

# Keys whose values are times, or follow from them; all others must be equal.
TIMED = re.compile(r"^(date|duration|.*throughput|request_goodput|ttfts|itls|latencies|start_times"
                   r"|queue_times|max_output_tokens_per_s|max_concurrent_requests|errors"
                   r"|rps_change_events|(mean|median|std|p[0-9.]+)_.*_ms)$")
TIMED_LINES = re.compile(r"throughput|duration|goodput|\(ms\)|Peak|^Error ")
LOG_LINE = re.compile(r"^(\(\w+ pid=\d+\) )?(INFO|WARNING|ERROR) \d\d-\d\d ")
END = "=" * 50
DUE_TOLERANCE_S = 1e-12


class Verdicts:
    """Named outcomes of one case: nothing to say is a pass."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.counts: dict[str, int] = {}

    def check(self, ok: bool, text: str) -> None:
        if not ok:
            self.problems.append(text)

    def equal(self, what: str, theirs, ours) -> None:
        if theirs != ours:
            self.problems.append(f"{what}: upstream {shorten(theirs)}, ours {shorten(ours)}")

    def count(self, what: str, n: int) -> None:
        self.counts[what] = self.counts.get(what, 0) + n


def shorten(value, width: int = 150) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def first_difference(a: str, b: str) -> str:
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: {a[max(0, at - 30):at + 50]!r} against {b[max(0, at - 30):at + 50]!r}"


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def read_lines(path: str) -> list[dict]:
    return [json.loads(line) for line in read(path).splitlines()]


class Sim:
    """One `profllm sim`, with a file of the requests it received."""

    def __init__(self, binary: str, folder: str, tokenizer: str, args: list[str]) -> None:
        port_file = os.path.join(folder, "port")
        self.requests_path = os.path.join(folder, "requests.jsonl")
        self.log = open(os.path.join(folder, "sim.log"), "w", encoding="utf-8")
        command = [binary, "sim", "--port", "0", "--port-file", port_file, "--tokenizer", tokenizer,
                   "--requests", self.requests_path, "--ttft-ms", "4", "--itl-ms", "2", *args]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(400):
            if read(port_file).strip():
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"sim ended: {read(self.log.name)}")
            time.sleep(0.05)
        self.port = int(read(port_file))

    def stop(self) -> list[dict]:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        return read_lines(self.requests_path)


def run_client(who: str, case: dict, o: argparse.Namespace) -> dict:
    """One client against its own sim; returns everything it left behind."""
    folder = os.path.join(o.out, case["name"], who)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    for name, text in case.get("before", {}).items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    model = o.other if case.get("is_other_model") else o.model
    fill = {"model": model, "other": o.other, "data": o.data, "dir": folder}
    sim_args = [a.format(**fill) for a in case.get("sim", [])]
    sim = Sim(o.ours, folder, model, ["--model", model, *sim_args])
    tap = Tap(sim.port) if case.get("tap") else None
    fill["port"] = str(tap.port if tap else sim.port)
    args = COMMON + ([] if case.get("no_model") else COMMON_MODEL) + case["args"]
    args += [] if case.get("plain") else COMMON_FILE
    args = [a.format(**fill) for a in args]
    paths = {k: os.path.join(folder, k) for k in ("stdout", "stderr", "workload.jsonl")}
    try:
        status = run_args(who, args, paths, case.get("env", {}), o)
    finally:
        requests = sim.stop()
        heads = tap.stop() if tap else []
    results = sorted(n for n in os.listdir(folder) if n.endswith(".json"))
    return {"status": status, "stdout": read(paths["stdout"]), "stderr": read(paths["stderr"]),
            "workload": read_lines(paths["workload.jsonl"]), "requests": requests, "heads": heads,
            "result_name": results[0] if results else None,
            "result": read(os.path.join(folder, results[0])) if results else ""}


def run_args(who: str, args: list[str], paths: dict, env: dict, o: argparse.Namespace) -> int:
    if who == "upstream":
        return upstream.run(args, stdout=paths["stdout"], stderr=paths["stderr"],
                            workload=paths["workload.jsonl"], env=env)
    command = [o.ours, "bench", "serve", *args, "--dump-workload", paths["workload.jsonl"]]
    with open(paths["stdout"], "wb") as out, open(paths["stderr"], "wb") as err:
        done = subprocess.run(command, stdout=out, stderr=err, timeout=300, check=False,
                              env={**os.environ, **env})
    return done.returncode


# ---- what is compared ----

def compare_workloads(v: Verdicts, theirs: list[dict], ours: list[dict]) -> None:
    v.equal("requests in the workload", len(theirs), len(ours))
    worst = 0.0
    for i, (a, b) in enumerate(zip(theirs, ours)):
        for key in ("request_id", "prompt", "prompt_len", "output_len"):
            if a[key] != b[key]:
                v.check(False, f"workload {i} {key}: " + (
                    first_difference(a[key], b[key]) if isinstance(a[key], str)
                    and isinstance(b[key], str) else f"{a[key]} against {b[key]}"))
                return
        worst = max(worst, abs(a["due_s"] - b["due_s"]))
    v.check(worst <= DUE_TOLERANCE_S, f"due times differ by up to {worst:g} s")
    v.count("prompts", len(ours))
    v.count("due times", len(ours))
    v.count("due times equal to the last bit",
            sum(a["due_s"] == b["due_s"] for a, b in zip(theirs, ours)))


def by_kind(case: dict, requests: list[dict]) -> dict[str, list]:
    """Requests with an id by id, the others as a sorted list per path.

    Two things of the asking around the load are ours by decision, and left out: we bring the
    key to /tokenize too, and ask it about every kind of dataset. How often /metrics is read is
    no part of the load either.
    """
    out: dict[str, list] = {}
    for r in requests:
        is_helper = r["path"] in ("/tokenize", "/detokenize")
        if r["path"] == "/metrics" or (is_helper and "random" not in case["args"]):
            continue
        key = r["request_id"] or f'{r["method"]} {r["path"]} without id'
        is_authorized = r["authorization"] and not is_helper
        out.setdefault(key, []).append((r["method"], r["path"], is_authorized, r["body"]))
    return {k: sorted(out[k]) for k in sorted(out)}


def compare_requests(v: Verdicts, case: dict, theirs: list[dict], ours: list[dict]) -> None:
    a, b = by_kind(case, theirs), by_kind(case, ours)
    v.check(list(a) == list(b), f"kinds of requests: only upstream {sorted(set(a) - set(b))[:6]}, "
                                f"only ours {sorted(set(b) - set(a))[:6]}")
    for key in a.keys() & b.keys():
        v.equal(f"{key}: requests", len(a[key]), len(b[key]))
        for x, y in zip(a[key], b[key]):
            v.equal(f"{key}: method, path, key sent", x[:3], y[:3])
            if x[3] != y[3]:
                v.check(False, f"{key}: body differs {first_difference(x[3], y[3])}")
        v.count("bodies", len(b[key]))
    if case.get("order"):
        for who, requests in (("upstream", theirs), ("ours", ours)):
            ids = [int(r["request_id"].rsplit("-", 1)[1]) for r in requests if r["request_id"]]
            v.check(ids == sorted(ids), f"{who}: requests came out of order")


OWN_FIELDS = {"user-agent", "accept", "accept-encoding", "connection", "host"}


def fields(head: dict) -> list[tuple[str, str]]:
    """Header fields as a set of lower-case names, without those that are ours by decision."""
    return sorted((k.lower(), x) for k, x in head["fields"] if k.lower() not in OWN_FIELDS)


def compare_heads(v: Verdicts, theirs: list[dict], ours: list[dict]) -> None:
    def key(head):
        return (head["target"], dict(fields(head)).get("x-request-id", ""), fields(head))

    a, b = (sorted((h for h in heads if h["target"].endswith("completions")), key=key)
            for heads in (theirs, ours))
    v.equal("requests seen by the relay", len(a), len(b))
    for x, y in zip(a, b):
        v.equal(f'{x["method"]} {x["target"]} header fields', fields(x), fields(y))
        v.equal("target", (x["method"], x["target"]), (y["method"], y["target"]))
    v.count("heads", len(b))


def report_lines(text: str) -> list[str]:
    """Upstream's part of stdout: up to the closing line, without log lines."""
    lines = [x for x in text.split("\n") if not LOG_LINE.match(x)]
    lines = lines[: lines.index(END) + 1] if END in lines else lines
    return [x for x in lines if not x.startswith("Namespace(")]


def line_form(line: str) -> str:
    """A line with its value blanked when that is a time; trailing blanks stay."""
    if TIMED_LINES.search(line):
        return re.sub(r"(:\s+)[-0-9.naif]+( *)$", lambda m: m[1] + "#", line) \
            if not line.startswith("Error ") else line
    return line


def compare_reports(v: Verdicts, theirs: str, ours: str) -> None:
    a = [line_form(x) for x in report_lines(theirs)]
    b = [line_form(x) for x in report_lines(ours)]
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            v.check(False, f"report line {i + 1}: upstream {x!r}, ours {y!r}")
            break
    else:
        v.equal("report lines", len(a), len(b))
    v.count("report lines", len(b))


NAMESPACE_OWN = {"subparser", "bench_type", "dispatch_function", "port", "result_dir"}


def namespace(text: str) -> dict[str, str]:
    line = next((x for x in text.split("\n") if x.startswith("Namespace(")), "")
    line = line.partition(", log_config_file=")[0]  # options of the whole vllm command follow
    parts = re.split(r"(?:^|, )([a-z_]+)=", line.removeprefix("Namespace(").removesuffix(")"))
    return {k: x for k, x in zip(parts[1::2], parts[2::2]) if k not in NAMESPACE_OWN}


def compare_namespaces(v: Verdicts, theirs: str, ours: str) -> None:
    a, b = namespace(theirs), namespace(ours)
    v.equal("Namespace keys", list(a), [k for k in b if k in a])
    for key in a.keys() & b.keys():
        v.equal(f"Namespace {key}", a[key], b[key])


def compare_results(v: Verdicts, theirs: str, ours: str) -> None:
    if not theirs or not ours:
        v.equal("result file written", bool(theirs), bool(ours))
        return
    (before, _, theirs), (our_before, _, ours) = theirs.rpartition("\n"), ours.rpartition("\n")
    v.equal("what stood in the file", before, our_before)
    a, b = json.loads(theirs), json.loads(ours)
    keys = list(b)[: len(a)]
    if list(a) != keys:
        x, y = next((p for p in zip(a, keys) if p[0] != p[1]), (list(a)[-1], "(none)"))
        v.check(False, f"result keys differ first at upstream {x!r}, ours {y!r}")
    v.check(json.dumps(b) == ours, "our result is not spelled as upstream's writer would")
    for key in a.keys() & b.keys():
        v.equal(f"type of {key}", type(a[key]).__name__, type(b[key]).__name__)
        if isinstance(a[key], list):
            v.equal(f"length of {key}", len(a[key]), len(b[key]))
        if not TIMED.match(key):
            v.equal(f"value of {key}", a[key], b[key])
    for x, y in zip(a.get("errors", []), b.get("errors", [])):
        if not x.startswith("Traceback"):
            v.equal("value in errors", x, y)
    v.count("result keys", len(a))


def recompute(v: Verdicts, case: dict, text: str) -> None:
    """Upstream's calculate_metrics over our arrays must give our numbers, to the last bit."""
    result = json.loads(text.rpartition("\n")[2]) if text else {}
    if "ttfts" not in result:
        return
    outputs = []
    for i, error in enumerate(result["errors"]):
        outputs.append(RequestFuncOutput(
            success=not error, error=error, latency=result["latencies"][i],
            output_tokens=result["output_lens"][i], ttft=result["ttfts"][i],
            itl=result["itls"][i], prompt_len=result["input_lens"][i],
            start_time=result["start_times"][i], client_queue_time=result["queue_times"][i]))
    args = case["args"]
    percentiles = [99.0]
    if "--metric-percentiles" in args:
        percentiles = [float(p) for p in args[args.index("--metric-percentiles") + 1].split(",")]
    goodput = {a.split(":")[0]: float(a.split(":")[1]) for a in args
               if re.match(r"^(ttft|tpot|e2el):[0-9.]+$", a)}
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as null:
        warnings.simplefilter("ignore")
        stdout, sys.stdout = sys.stdout, null
        try:
            m, lens = upstream.serve.calculate_metrics(
                [], outputs, result["duration"], None, percentiles, goodput)
        finally:
            sys.stdout = stdout
    want = {"failed": m.failed, "total_output_tokens": m.total_output,
            "total_input_tokens": m.total_input, "request_throughput": m.request_throughput,
            "output_throughput": m.output_throughput, "completed": m.completed,
            "total_token_throughput": m.total_token_throughput, "output_lens": lens,
            "request_goodput": m.request_goodput if goodput else None,
            "max_output_tokens_per_s": m.max_output_tokens_per_s, "rtfx": m.rtfx,
            "max_concurrent_requests": m.max_concurrent_requests}
    queue = [x.client_queue_time for x in outputs if x.success]
    whole = [x.latency + x.client_queue_time for x in outputs if x.success]
    np = upstream.np
    for name in ("ttft", "tpot", "itl", "e2el"):
        want |= {f"{s}_{name}_ms": getattr(m, f"{s}_{name}_ms") for s in ("mean", "median", "std")}
        want |= {f"p{p:g}_{name}_ms": x for p, x in getattr(m, f"percentiles_{name}_ms")}
    for name, values in (("client_queue_time", queue), ("e2el_including_client_queue", whole)):
        want |= {f"mean_{name}_ms": np.mean(values or 0) * 1000,
                 f"median_{name}_ms": np.median(values or 0) * 1000,
                 f"std_{name}_ms": np.std(values or 0) * 1000}
        want |= {f"p{p:g}_{name}_ms": np.percentile(values or 0, p) * 1000 for p in percentiles}
    metadata = {a.split("=")[0] for a in args if re.match(r"^\w+=", a)}
    for key, value in want.items():
        if key in result and key not in metadata:
            v.check(result[key] == value, f"{key}: NumPy {value!r}, ours {result[key]!r}")
            v.count("statistics", 1)


def compare_case(case: dict, o: argparse.Namespace) -> Verdicts:
    v = Verdicts()
    theirs, ours = run_client("upstream", case, o), run_client("ours", case, o)
    v.equal("exit status", case.get("exit", (0, 0)), (theirs["status"], ours["status"]))
    compare_workloads(v, theirs["workload"], ours["workload"])
    compare_requests(v, case, theirs["requests"], ours["requests"])
    compare_heads(v, theirs["heads"], ours["heads"])
    compare_reports(v, theirs["stdout"], ours["stdout"])
    compare_namespaces(v, theirs["stdout"], ours["stdout"])
    compare_results(v, theirs["result"], ours["result"])
    names = [re.sub(r"\d{8}-\d{6}", "DATE", x["result_name"] or "") for x in (theirs, ours)]
    v.equal("result file name", *names)
    recompute(v, case, ours["result"])
    return v


def last_line(text: str) -> str:
    """The sentence at the end of stderr, without who says it."""
    lines = [x.strip() for x in text.strip().split("\n") if x.strip()]
    return re.sub(r"^(([\w.]+(Error|Exception|ption)?|error|profllm[\w ]*): )+", "",
                  lines[-1]) if lines else ""


def compare_refusals(o: argparse.Namespace) -> Verdicts:
    v = Verdicts()
    folder = os.path.join(o.out, "refused")
    os.makedirs(folder, exist_ok=True)
    sim = Sim(o.ours, folder, o.model, ["--model", o.model])
    base = COMMON + COMMON_MODEL + ["--dataset-name", "random", "--num-prompts", "2",
                                    "--random-input-len", "8", "--random-output-len", "2"]
    for i, (more, want, *own) in enumerate(REFUSED):
        args = [a.format(port=sim.port, model=o.model) for a in base + more]
        said = {}
        for who in ("upstream", "ours"):
            paths = {k: os.path.join(folder, f"{i}.{who}.{k}")
                     for k in ("stdout", "stderr", "workload.jsonl")}
            status = run_args(who, args, paths, {}, o)
            said[who] = (status, read(paths["stderr"]))
        got = (said["upstream"][0], said["ours"][0])
        v.equal(f"{' '.join(more)}: exit statuses", want, got)
        theirs, ours = last_line(said["upstream"][1]), said["ours"][1].strip()
        if want[1] == 1 and not own:
            v.check(theirs in ours, f"{' '.join(more)}: upstream says {theirs!r}, ours {ours!r}")
        v.check("Traceback" not in ours and ours != "", f"{' '.join(more)}: no clear sentence")
        v.count("refusals", 1)
    sim.stop()
    return v


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "model", "other", "data", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    for name in ("ours", "model", "other", "data", "out"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    jobs = [(c["name"], lambda c=c: compare_case(c, o)) for c in CASES]
    jobs.append(("refusals", lambda: compare_refusals(o)))
    known = {name for name, _ in jobs}
    if unknown := set(o.case) - known:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    failed, total = 0, {}
    for name, job in jobs:
        if o.case and name not in o.case:
            continue
        try:
            v = job()
        except Exception as e:
            v = Verdicts()
            v.check(False, f"{type(e).__name__}: {e}")
        failed += bool(v.problems)
        counts = ", ".join(f"{n} {what}" for what, n in v.counts.items())
        print(f'{"FAIL" if v.problems else "PASS"}  {name:<26} {counts}', flush=True)
        for text in v.problems[:6]:
            print(f"      {text}", flush=True)
        for what, n in v.counts.items():
            total[what] = total.get(what, 0) + n
    ran = len(o.case) or len(jobs)
    print("together: " + ", ".join(f"{n} {what}" for what, n in total.items()))
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
