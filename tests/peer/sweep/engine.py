# SPDX-License-Identifier: Apache-2.0
"""A sweep over a real engine flag, with a real vLLM engine on the CPU, end to end.

usage: engine.py --ours BINARY --model DIR --out DIR [--only-ours]

`bench sweep serve` starts `vllm serve` twice, with two values of max_num_seqs, measures each and
resets its caches; then upstream's own tool does the same. Required of both: exit status 0, the
same folders, files and columns; what every result counts is what that engine's /metrics gained
and its access log shows. Of ours besides: the caches' endpoints were asked and answered 200, the
points differ the way the flag says, and no process of the engine is left.
"""

import argparse
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

from judge import free_port, read

COUNTERS = {
    "vllm:prompt_tokens_total": "prompt",
    "vllm:generation_tokens_total": "generated",
    "vllm:request_success_total": "requests",
}
POINTS = [{"max_num_seqs": 2}, {"max_num_seqs": 8}]
# The second is short: while it runs the first one's counts can be read at leisure.
PROMPTS = [24, 1]
TIMEOUT_S = 3600
POLL_S = 0.1
MARK = "PROFLLM_PEER_ENGINE"
CACHES = ("/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache")


class Watch(threading.Thread):
    """What /metrics counted, time after time, for every engine that came and went on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.url, self.engines, self.is_over, self.was_gone = (
            f"http://127.0.0.1:{port}/metrics",
            [],
            False,
            True,
        )

    def ask(self) -> None:
        try:
            with urllib.request.urlopen(self.url, timeout=5) as r:
                text = r.read().decode()
        except OSError:
            self.was_gone = True
            return
        counts = dict.fromkeys(COUNTERS.values(), 0)
        for line in text.splitlines():
            name = line.partition("{")[0]
            if name in COUNTERS:
                counts[COUNTERS[name]] += int(float(line.rpartition(" ")[2]))
        if self.was_gone:
            self.engines.append([])
        self.engines[-1].append(counts)
        self.was_gone = False

    def run(self) -> None:
        while not self.is_over:
            self.ask()
            time.sleep(POLL_S)

    def stop(self) -> list[list[dict]]:
        self.is_over = True
        self.join()
        return self.engines


def left(mark: str) -> list[str]:
    """Processes that have our mark in their environment."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if f"{MARK}={mark}".encode() in f.read().split(b"\0"):
                    found.append(
                        read(os.path.join(os.path.dirname(path), "cmdline")).replace("\0", " ")[:80]
                    )
        except OSError:
            continue
    return found


def sweep(who: str, vllm: str, o) -> dict:
    folder = os.path.join(o.out, who)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "s.json"), "w", encoding="utf-8") as f:
        json.dump(POINTS, f)
    with open(os.path.join(folder, "b.json"), "w", encoding="utf-8") as f:
        json.dump([{"num_prompts": n} for n in PROMPTS], f)
    port = free_port()
    bench = (
        f"vllm bench serve --backend openai --model {o.model} --host 127.0.0.1 --port {port} --dataset-name "
        f"random --random-input-len 48 --random-output-len 12 --ignore-eos "
        "--max-concurrency 12 --temperature 0"
    )
    serve = (
        f"{vllm} serve {o.model} --host 127.0.0.1 --port {port} --enforce-eager --max-model-len 1024 "
        "--max-num-seqs 4"
    )
    command = [o.ours] if who == "ours" else [vllm]
    command += [
        "bench",
        "sweep",
        "serve",
        "--serve-cmd",
        serve,
        "--bench-cmd",
        bench,
        "--serve-params",
        "s.json",
        "--bench-params",
        "b.json",
        "--num-runs",
        "1",
        "-e",
        "x",
        "--server-ready-timeout",
        "1800",
        "--show-stdout",
    ]
    env = {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        MARK: folder,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "PATH": os.path.dirname(vllm) + ":" + os.environ["PATH"],
    }
    watch = Watch(port)
    watch.start()
    start = time.monotonic()
    with open(folder + ".stdout", "wb") as out, open(folder + ".stderr", "wb") as err:
        status = subprocess.run(
            command, cwd=folder, stdout=out, stderr=err, env=env, check=False, timeout=TIMEOUT_S
        ).returncode
    engines, time_s = watch.stop(), time.monotonic() - start
    results = {}
    for point in POINTS:
        name = f"max_num_seqs={point['max_num_seqs']}"
        paths = [f"results/x/SERVE--{name}-BENCH--num_prompts={n}/run=0.json" for n in PROMPTS]
        results[name] = [json.loads(read(os.path.join(folder, path)) or "{}") for path in paths]
    # Ours keeps what the servers said in files, upstream lets it through.
    logs = glob.glob(os.path.join(glob.escape(folder), "results/x/logs/*"))
    said = "".join(map(read, logs or [folder + ".stdout", folder + ".stderr"]))
    rows = list(csv.reader(read(os.path.join(folder, "results/x/summary.csv")).splitlines()))
    return {
        "status": status,
        "engines": engines,
        "results": results,
        "said": said,
        "time_s": time_s,
        "columns": rows[0] if rows else [],
        "left": left(folder),
        "stderr": read(folder + ".stderr"),
        "servers": json.loads(read(os.path.join(folder, "results/x/servers.json")) or "null"),
    }


def counted(result: dict) -> dict:
    return {
        "prompt": result["total_input_tokens"],
        "generated": result["total_output_tokens"],
        "requests": result["completed"],
    }


def problems_of(who: str, r: dict) -> list[str]:
    out = []
    if r["status"]:
        return [f"exit status {r['status']}: {r['stderr'][-500:]}"]
    if len(r["engines"]) != len(POINTS):
        out.append(f"{len(r['engines'])} engines were seen on the port")
    posts = len(re.findall(r'"POST /v1/completions HTTP/1.1" 200', r["said"]))
    for seen, (name, (result, short)) in zip(r["engines"], r["results"].items()):
        says, more = counted(result), counted(short)
        if says not in seen or any(seen[-1][k] > says[k] + more[k] for k in says):
            out.append(f"{name}: the results say {says} and {more}, /metrics at last {seen[-1]}")
        if [result["completed"], short["completed"]] != PROMPTS:
            out.append(f"{name}: {result['completed']} and {short['completed']} requests succeeded")
        print(
            f"      {who} {name}: {says['requests']} requests, {says['prompt']} prompt and "
            f"{says['generated']} generated tokens = /metrics; {result['request_throughput']:.2f} req/s, "
            f"mean TTFT {result['mean_ttft_ms']:.0f} ms",
            flush=True,
        )
    want = sum(PROMPTS) * len(POINTS)
    if posts != want:
        out.append(f"the access log shows {posts} requests, not {want}")
    for path in CACHES:
        n = len(re.findall(rf'"POST {path} HTTP/1.1" 200', r["said"]))
        if n != len(POINTS) * len(PROMPTS):
            out.append(f"{path} answered 200 {n} times, not {len(POINTS) * len(PROMPTS)}")
    return out


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "model", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--only-ours", action="store_true")
    o = p.parse_args()
    o.ours, o.model, o.out = map(os.path.abspath, (o.ours, o.model, o.out))
    vllm = os.path.join(os.path.dirname(sys.executable), "vllm")
    ours = sweep("ours", vllm, o)
    problems = problems_of("ours", ours)
    if ours["left"]:
        problems.append(f"left running: {ours['left']}")
    few, many = (x[0] for x in ours["results"].values())
    if few and many and few["mean_ttft_ms"] <= many["mean_ttft_ms"]:
        problems.append("two sequences at a time do not wait longer than eight")
    print(
        f"{'FAIL' if problems else 'PASS'}  ours, {ours['time_s']:.0f} s; servers.json: "
        f"{json.dumps(ours['servers'])[:600]}",
        flush=True,
    )
    if not o.only_ours:
        theirs = sweep("upstream", vllm, o)
        found = problems_of("upstream", theirs)
        mine = [c for c in ours["columns"] if c != "profllm"]
        if theirs["columns"] != mine:
            found.append(f"columns upstream {theirs['columns']}, ours {ours['columns']}")
        print(
            f"{'FAIL' if found else 'PASS'}  upstream, {theirs['time_s']:.0f} s; the same "
            f"{len(theirs['columns'])} columns",
            flush=True,
        )
        problems += found
    for text in problems:
        print(f"      {text}", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
