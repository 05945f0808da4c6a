# SPDX-License-Identifier: Apache-2.0
"""Measure a real vLLM engine and check our counts against its own.

usage: engine.py --ours BINARY --model DIR --data DIR --out DIR

A `vllm serve` of a tiny model runs on the CPU. For every workload ours runs,
then upstream's client with the same arguments. What each says it sent and
received must be what the engine's /metrics gained and its access log shows.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import upstream

RANDOM = ["--dataset-name", "random", "--random-range-ratio", "0.5"]
CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
WORKLOADS = [
    ("random", [*RANDOM, "--random-input-len", "120", "--random-output-len", "24",
                "--num-prompts", "40", "--max-concurrency", "8"]),
    ("random-paced", [*RANDOM, "--random-input-len", "32", "--random-output-len", "8",
                      "--num-prompts", "40", "--request-rate", "10", "--burstiness", "0.5"]),
    ("random-chat", [*RANDOM, *CHAT, "--random-input-len", "60", "--random-output-len", "12",
                     "--num-prompts", "24", "--max-concurrency", "4"]),
    ("sharegpt", ["--dataset-name", "sharegpt", "--dataset-path", "{data}/sharegpt.json",
                  "--num-prompts", "30", "--max-concurrency", "8", "--temperature", "0"]),
    ("custom-chat", ["--dataset-name", "custom", "--dataset-path", "{data}/custom.jsonl", *CHAT,
                     "--skip-chat-template", "--custom-output-len", "16", "--num-prompts", "25",
                     "--temperature", "0", "--ready-check-timeout-sec", "60"]),
]
COUNTERS = {"vllm:prompt_tokens_total": "prompt", "vllm:generation_tokens_total": "generated",
            "vllm:request_success_total": "requests"}
START_S, SETTLE_S = 300, 10


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Engine:
    def __init__(self, model: str, folder: str) -> None:
        self.port = free_port()
        self.log_path = os.path.join(folder, "engine.log")
        env = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        vllm = os.path.join(os.path.dirname(sys.executable), "vllm")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [vllm, "serve", model, "--host", "127.0.0.1", "--port", str(self.port),
                 "--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "16"],
                stdout=log, stderr=log, env=env)
        deadline = time.monotonic() + START_S
        while not self.answers("/health"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the engine did not start; see {self.log_path}")
            time.sleep(1)

    def answers(self, path: str) -> bool:
        try:
            self.get(path)
            return True
        except OSError:
            return False

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as r:
            return r.read().decode()

    def counters(self) -> dict[str, int]:
        out = dict.fromkeys(COUNTERS.values(), 0)
        for line in self.get("/metrics").splitlines():
            name = line.partition("{")[0]
            if name in COUNTERS:
                out[COUNTERS[name]] += int(float(line.rpartition(" ")[2]))
        return out

    def posts(self) -> int:
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return len(re.findall(r'"POST /v1/(?:chat/)?completions HTTP/1.1" 200', f.read()))

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def gained(engine: Engine, before: dict[str, int], want_requests: int) -> dict[str, int]:
    """What the counters gained, once the engine has booked the last request."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        now = engine.counters()
        delta = {k: now[k] - before[k] for k in now}
        if delta["requests"] >= want_requests or time.monotonic() > deadline:
            return delta
        time.sleep(0.2)


def measure(who: str, engine: Engine, args: list[str], folder: str, ours: str) -> dict:
    os.makedirs(folder, exist_ok=True)
    args = [*args, "--host", "127.0.0.1", "--port", str(engine.port), "--save-result",
            "--save-detailed", "--result-dir", folder, "--result-filename", f"{who}.json"]
    out, err = (os.path.join(folder, f"{who}.{x}") for x in ("stdout", "stderr"))
    before, posts = engine.counters(), engine.posts()
    if who == "upstream":
        status = upstream.run(args, stdout=out, stderr=err)
    else:
        with open(out, "wb") as o, open(err, "wb") as e:
            status = subprocess.run([ours, "bench", "serve", *args], stdout=o, stderr=e,
                                    check=False, timeout=300).returncode
    if status != 0:
        raise RuntimeError(f"{who} ended with {status}; see {err}")
    with open(os.path.join(folder, f"{who}.json"), encoding="utf-8") as f:
        result = json.load(f)
    # The ready check is one more request with the first prompt; its counts are the engine's alone.
    extra = 1 if "--ready-check-timeout-sec" in args else 0
    delta = gained(engine, before, result["completed"] + extra)
    said = {"requests": result["completed"] + extra,
            "prompt": result["total_input_tokens"] + extra * result["input_lens"][0],
            "generated": result["total_output_tokens"] + extra * result["output_lens"][0]}
    return {"result": result, "said": said, "engine": delta, "posts": engine.posts() - posts}


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "model", "data", "out"):
        p.add_argument(f"--{name}", required=True)
    o = p.parse_args()
    for name in ("ours", "model", "data", "out"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    os.makedirs(o.out, exist_ok=True)
    engine = Engine(o.model, o.out)
    failed = 0
    try:
        print(f"engine: vllm {json.loads(engine.get('/version'))['version']}, CPU", flush=True)
        for name, args in WORKLOADS:
            args = ["--model", o.model, *[a.format(data=o.data) for a in args]]
            folder = os.path.join(o.out, name)
            runs = {who: measure(who, engine, args, folder, o.ours) for who in ("ours", "upstream")}
            problems = []
            for who, r in runs.items():
                if r["said"] != r["engine"] or r["posts"] != r["said"]["requests"]:
                    problems.append(f"{who}: said {r['said']}, engine {r['engine']}, "
                                    f"access log {r['posts']}")
            a, b = runs["upstream"]["result"], runs["ours"]["result"]
            for key in ("completed", "failed", "total_input_tokens", "input_lens", "output_lens"):
                if a[key] != b[key]:
                    problems.append(f"{key}: upstream {a[key]!r:.100}, ours {b[key]!r:.100}")
            failed += bool(problems)
            s = runs["ours"]["said"]
            print(f'{"FAIL" if problems else "PASS"}  {name:<14} ours = /metrics = access log: '
                  f'{s["requests"]} requests, {s["prompt"]} prompt and {s["generated"]} generated '
                  f"tokens", flush=True)
            for text in problems:
                print(f"      {text}", flush=True)
    finally:
        engine.stop()
    print(f"{len(WORKLOADS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
