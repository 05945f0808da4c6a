#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How wrong each load generator is: every client against the same simulator, on pinned cores.

The simulator writes down when each request was complete in its kernel and when it sent each event.
Every client's own output is joined with that, request by request and gap by gap:

    TTFT error  the client's TTFT minus (first send - request received)
    ITL error   the client's gap minus the gap between the two sends, without sign

run.sh makes what is needed and calls this; see bench/README.md. Tools that are not installed are
left out and named. Results are kept in OUT/results.json, one row per tool, scene and repeat, so
that a study which was interrupted goes on; report.py turns them into docs/study.md.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

RUN_TIMEOUT_S = 600
READY_TIMEOUT_S = 20
FILES_MAX = 65536
PROMPT_TOKENS = 64

# name, streams, requests, events of each, arguments of the simulator. As many requests as streams:
# a burst, all on new connections; more: each stream sends its next one when an answer has ended.
SCENES = [
    ("1 x 100/s", 1, 20, 50, ["--ttft-ms", "20", "--itl-ms", "10"]),
    ("10 x 100/s", 10, 10, 200, ["--ttft-ms", "20", "--itl-ms", "10"]),
    ("100 x 100/s", 100, 100, 200, ["--ttft-ms", "20", "--itl-ms", "10"]),
    ("100 x 100/s, loop", 100, 1000, 50, ["--ttft-ms", "20", "--itl-ms", "10"]),
    ("1,000 x 100/s", 1000, 1000, 200, ["--ttft-ms", "20", "--itl-ms", "10"]),
    ("5,000 x 10/s", 5000, 5000, 40, ["--ttft-ms", "20", "--itl-ms", "100"]),
    ("10,000 x 5/s", 10000, 10000, 20, ["--ttft-ms", "20", "--itl-ms", "200"]),
    ("256 in steps of 20 ms", 256, 256, 100, ["--ttft-ms", "20", "--burst-ms", "20"]),
]


def percentile(values: list[float], p: float) -> float:
    """Linear interpolation between the two nearest ranks, as NumPy's default."""
    v = sorted(values)
    at = (len(v) - 1) * p / 100
    low = int(at)
    return v[low] + (v[min(low + 1, len(v) - 1)] - v[low]) * (at - low)


class Sim:
    """One `profllm sim` on the first core, with a truth file."""

    def __init__(self, o: argparse.Namespace, folder: str, args: list[str]) -> None:
        self.truth = os.path.join(folder, "truth.jsonl")
        port_file = os.path.join(folder, "port")
        command = ["taskset", "-c", o.server_cpu, o.profllm, "sim", o.model, "--port", "0",
                   "--port-file", port_file, "--tokenizer", o.model, "--truth", self.truth, *args]
        self.log = open(os.path.join(folder, "sim.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        until = time.monotonic() + READY_TIMEOUT_S
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the simulator did not start: see {self.log.name}")
            time.sleep(0.05)
        with open(port_file, encoding="utf-8") as f:
            self.url = f"http://127.0.0.1:{int(f.read())}"

    def stop(self) -> list[dict]:
        """Its truth: requests with answers, in the order in which they arrived."""
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
        with open(self.truth, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        return sorted((r for r in rows if r["status"] == 200 and r["send_ns"]),
                      key=lambda r: r["recv_ns"])


# ---- the clients: each gives the command and then [(request id or None, TTFT s, gaps s or None)] ----

class DropIn:
    """vllm bench serve and those that take its options and write its result file."""

    def __init__(self, command: list[str], extra: list[str]) -> None:
        self.command, self.extra = command, extra

    def run(self, o, url, folder, streams, requests, events) -> list[str]:
        return [*self.command, "--backend", "vllm", "--endpoint", "/v1/completions",
                "--base-url", url, "--model", o.model, "--dataset-name", "random",
                "--random-input-len", str(PROMPT_TOKENS), "--random-output-len", str(events),
                "--ignore-eos", "--num-prompts", str(requests), "--seed", "1",
                *(["--max-concurrency", str(streams)] if requests > streams else []),
                "--request-id-prefix", "study-", "--save-result", "--save-detailed",
                "--result-dir", folder, "--result-filename", "result.json", *self.extra]

    def read(self, folder) -> list[tuple]:
        with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
            result = json.load(f)
        return [(f"study-{i}", ttft, itls)
                for i, (ttft, itls) in enumerate(zip(result["ttfts"], result["itls"]))]


TOKENIZER = "local/tokenizer"


def hub_cache(model: str, folder: str) -> None:
    """The model's files as TOKENIZER of a hub cache: aiperf takes no folder without the hub."""
    at = os.path.join(folder, "models--" + TOKENIZER.replace("/", "--"))
    os.makedirs(os.path.join(at, "refs"), exist_ok=True)
    with open(os.path.join(at, "refs", "main"), "w", encoding="utf-8") as f:
        f.write("0" * 40)
    shutil.copytree(model, os.path.join(at, "snapshots", "0" * 40), dirs_exist_ok=True)


class Aiperf:
    def __init__(self, command: list[str]) -> None:
        self.command = command

    def run(self, o, url, folder, streams, requests, events) -> list[str]:
        return [*self.command, "profile", "--model", o.model, "--tokenizer", TOKENIZER, "--url", url,
                "--endpoint-type", "completions", "--streaming", "--concurrency", str(streams),
                "--request-count", str(requests), "--synthetic-input-tokens-mean",
                str(PROMPT_TOKENS), "--synthetic-input-tokens-stddev", "0",
                "--output-tokens-mean", str(events), "--output-tokens-stddev", "0",
                "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
                "--use-server-token-count", "--use-legacy-max-tokens", "--ui", "none",
                "--export-level", "records", "--output-artifact-dir", folder]

    def read(self, folder) -> list[tuple]:
        rows = []
        path = next(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
                    if name == "profile_export.jsonl")
        with open(path, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                m = row["metrics"]
                gaps = m.get("inter_chunk_latency", {}).get("value")
                rows.append((row["metadata"]["x_request_id"],
                             m["time_to_first_token"]["value"] / 1e3,
                             [g / 1e3 for g in gaps] if isinstance(gaps, list) else None))
        return rows


class Guidellm:
    """Sends no request id: joined by the order of starts. It keeps no gaps."""

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def run(self, o, url, folder, streams, requests, events) -> list[str]:
        return [*self.command, "run", "--backend",
                f"kind=openai_http,target={url},model={o.model},request_format=/v1/completions",
                "--profile", f"kind=concurrent,streams={streams}",
                "--constraint", f"kind=max_requests,count={requests}",
                "--tokenizer", f"kind=hf_auto,model={o.model}",
                "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={events}",
                "--output", f"kind=json,path={folder}/result.json", "--disable-progress"]

    def read(self, folder) -> list[tuple]:
        with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
            done = json.load(f)["benchmarks"][0]["requests"]["successful"]
        done.sort(key=lambda r: r["request_start_time"])
        return [(None, r["time_to_first_token_ms"] / 1e3, None) for r in done]


def clients(o: argparse.Namespace) -> dict:
    ours = [o.profllm, "bench", "serve", "--tokenizer", o.model]
    peer = ["--tokenizer", o.model]
    known = {
        "profllm, tap": DropIn(ours, ["--timestamps", "tap"]),
        "profllm, kernel stamps": DropIn(ours, ["--timestamps", "kernel"]),
        "profllm, user stamps": DropIn(ours, ["--timestamps", "user"]),
    }
    if o.vllm:
        known["vllm (Python)"] = DropIn([o.vllm, "bench", "serve"], peer)
    if o.vllm_rs:
        known["vllm-rs"] = DropIn([o.vllm_rs, "bench", "serve"], peer)
    if o.vllm_bench:
        known["vllm-bench (Rust)"] = DropIn([o.vllm_bench], peer)
    if o.aiperf:
        known["aiperf"] = Aiperf([o.aiperf])
    if o.guidellm:
        known["guidellm"] = Guidellm([o.guidellm])
    return known


# ---- one cell ----

def join(rows: list[tuple], truth: list[dict]) -> dict:
    by_id = {r["request_id"]: r for r in truth}
    ttft, itl, n_unjoined = [], [], 0
    for k, (name, seconds, gaps) in enumerate(rows):
        t = by_id.get(name) if name else truth[k] if k < len(truth) else None
        if t is None or not seconds:
            n_unjoined += 1
            continue
        ttft.append(seconds * 1e3 - (t["send_ns"][0] - t["recv_ns"]) / 1e6)
        sends = [(b - a) / 1e6 for a, b in zip(t["send_ns"], t["send_ns"][1:])]
        if gaps is None:
            continue
        if len(gaps) != len(sends):
            n_unjoined += 1
            continue
        itl += [abs(g * 1e3 - s) for g, s in zip(gaps, sends)]
    out = {"requests": len(rows), "not_joined": n_unjoined}
    if ttft:
        out |= {"ttft_mean_ms": statistics.fmean(ttft), "ttft_p99_ms": percentile(ttft, 99),
                "ttft_max_ms": max(ttft)}
    if itl:
        out |= {"gaps": len(itl), "itl_p50_ms": percentile(itl, 50),
                "itl_p99_ms": percentile(itl, 99), "itl_max_ms": max(itl)}
    return out


def cell(o, name: str, client, scene, repeat: int) -> dict:
    title, streams, requests, events, sim_args = scene
    folder = os.path.join(o.out, "run")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    row = {"tool": name, "scene": title, "repeat": repeat, "streams": streams,
           "asked": requests}
    sim = Sim(o, folder, sim_args)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        with open(os.path.join(folder, "client.log"), "w", encoding="utf-8") as log:
            done = subprocess.run(["taskset", "-c", o.client_cpu,
                                   *client.run(o, sim.url, folder, streams, requests,
                                               events)],
                                  stdout=log, stderr=log, timeout=RUN_TIMEOUT_S, env=o.env)
        row["status"] = done.returncode
    except subprocess.TimeoutExpired:
        row["status"] = "timeout"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row |= {"wall_s": time.monotonic() - began, "cpu_s": after.ru_utime + after.ru_stime
            - before.ru_utime - before.ru_stime}
    truth = sim.stop()
    try:
        row |= join(client.read(folder), truth)
    except (OSError, StopIteration, KeyError, ValueError, IndexError) as why:
        row["problem"] = f"{type(why).__name__}: {why}"
        shutil.copy(os.path.join(folder, "client.log"),
                    os.path.join(o.out, f"failed-{name}-{title}.log".replace("/", "_")))
    return row


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--out", required=True, help="folder of the results")
    p.add_argument("--profllm", required=True)
    p.add_argument("--model", required=True, help="a folder with a tokenizer.json")
    for tool in ("vllm", "vllm-rs", "vllm-bench", "aiperf", "guidellm"):
        p.add_argument(f"--{tool}", help="its program; left out without")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--server-cpu", default="0")
    p.add_argument("--client-cpu", default="1")
    p.add_argument("--only-scene", action="append", help="by name; may be given several times")
    p.add_argument("--only-tool", action="append", help="by name; may be given several times")
    o = p.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES_MAX, hard), hard))
    o.env = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.makedirs(o.out, exist_ok=True)
    o.env["HF_HUB_CACHE"] = os.path.join(o.out, "hub")
    hub_cache(o.model, o.env["HF_HUB_CACHE"])
    path = os.path.join(o.out, "results.json")
    rows = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            rows = json.load(f)
    seen = {(r["tool"], r["scene"], r["repeat"]) for r in rows}
    known = clients(o)
    for kind, given, names in (("scene", o.only_scene, [s[0] for s in SCENES]),
                               ("tool", o.only_tool, list(known))):
        for unknown in set(given or []) - set(names):
            p.error(f"--only-{kind} {unknown}: there are only {'; '.join(names)}")
    for repeat in range(o.repeats):
        for scene in SCENES:
            if o.only_scene and scene[0] not in o.only_scene:
                continue
            for name, client in known.items():
                if o.only_tool and name not in o.only_tool or (name, scene[0], repeat) in seen:
                    continue
                row = cell(o, name, client, scene, repeat)
                rows.append(row)
                with open(path + ".new", "w", encoding="utf-8") as f:
                    json.dump(rows, f, indent=1)
                os.replace(path + ".new", path)
                print(f"{scene[0]:22} {name:24} {row.get('problem') or ''} "
                      + " ".join(f"{k} {row[k]:.4g}" for k in ("ttft_mean_ms", "ttft_p99_ms",
                                 "itl_p99_ms", "cpu_s", "wall_s") if k in row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
