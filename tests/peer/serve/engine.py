# SPDX-License-Identifier: Apache-2.0
"""Measure a real vLLM engine and check our counts against its own.

usage: engine.py --ours BINARY --models DIR --data DIR --out DIR [ENGINE...]

For every kind of model a `vllm serve` of a tiny one runs on the CPU. For every
workload ours runs, then upstream's client with the same arguments (not for APIs
that upstream's has not). What each says it sent and received must be what the
engine's /metrics gained and its access log shows.
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

RANDOM = ["--dataset-name", "random", "--random-range-ratio", "0.5"]
SHORT = [*RANDOM, "--random-input-len", "32", "--random-output-len", "8"]
CUSTOM = ["--dataset-name", "custom", "--dataset-path", "{data}/custom.jsonl",
          "--skip-chat-template", "--custom-output-len", "16", "--num-prompts", "25"]
RERANK = ["--dataset-name", "random-rerank", "--random-input-len", "60", "--num-prompts", "24",
          "--random-batch-size", "4"]
GREEDY = ["--temperature", "0"]
READY = ["--ready-check-timeout-sec", "60"]


def api(backend: str, endpoint: str) -> list[str]:
    return ["--backend", backend, "--endpoint", endpoint]


CHAT = api("openai-chat", "/v1/chat/completions")
RESPONSES = api("openai-responses", "/v1/responses")
EMBED = api("openai-embeddings", "/v1/embeddings")
OURS_ALONE = True

# Model, arguments of `vllm serve`, workloads: name, arguments, whether upstream lacks the API.
ENGINES = {
    "generate": ("llama3_1", ["--max-model-len", "4096"], [
        ("random", [*RANDOM, "--random-input-len", "120", "--random-output-len", "24",
                    "--num-prompts", "40", "--max-concurrency", "8"]),
        ("random-paced", [*SHORT, "--num-prompts", "40", "--request-rate", "10", "--burstiness",
                          "0.5"]),
        ("random-chat", [*RANDOM, *CHAT, "--random-input-len", "60", "--random-output-len", "12",
                         "--num-prompts", "24", "--max-concurrency", "4"]),
        ("sharegpt", ["--dataset-name", "sharegpt", "--dataset-path", "{data}/sharegpt.json",
                      "--num-prompts", "30", "--max-concurrency", "8", *GREEDY]),
        ("custom-chat", [*CUSTOM, *CHAT, *GREEDY, *READY]),
        ("responses", [*SHORT, *RESPONSES, "--num-prompts", "24", "--max-concurrency", "4"]),
        ("responses-ready", [*CUSTOM, *RESPONSES, *GREEDY, *READY]),
        ("anthropic", [*CUSTOM, *api("anthropic", "/v1/messages"), *GREEDY], OURS_ALONE),
    ]),
    "embed": ("llama3_1", ["--runner", "pooling", "--convert", "embed", "--max-model-len",
                           "4096"], [
        ("embeddings", [*SHORT, *EMBED, "--num-prompts", "30", "--max-concurrency", "4"]),
        ("embeddings-batches", [*SHORT, *EMBED, "--num-prompts", "30", "--random-batch-size", "5"]),
        ("embeddings-chat", [*CUSTOM, *api("openai-embeddings-chat", "/v1/embeddings")]),
        ("embeddings-bytes", [*CUSTOM, *EMBED, "--extra-body", '{{"encoding_format": "bytes"}}']),
        ("embeddings-base64", [*CUSTOM, *EMBED, "--extra-body",
                               '{{"encoding_format": "base64"}}']),
        ("pooling", [*SHORT, *api("vllm-pooling", "/pooling"), "--num-prompts", "30",
                     "--extra-body", '{{"task": "embed"}}', *READY]),
    ]),
    "rank": ("llama3_1-ranker", ["--runner", "pooling", "--max-model-len", "4096"], [
        ("rerank", [*RERANK, *api("vllm-rerank", "/v1/rerank")]),
        ("rerank-paced", [*RERANK, *api("vllm-rerank", "/rerank"), "--request-rate", "10"]),
    ]),
    "hear": ("whisper", [], [
        ("transcriptions", ["--dataset-name", "custom_audio", "--dataset-path",
                            "{data}/audio.jsonl", "--tokenizer", "{models}/llama3_1",
                            *api("openai-audio", "/v1/audio/transcriptions"),
                            "--custom-output-len", "12", "--num-prompts", "4"]),
    ]),
}
COUNTERS = {"vllm:prompt_tokens_total": "prompt", "vllm:generation_tokens_total": "generated",
            "vllm:request_success_total": "requests"}
START_S, SETTLE_S = 600, 10


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Engine:
    def __init__(self, model: str, more: list[str], folder: str) -> None:
        self.port, self.asked = free_port(), 0
        self.log_path = os.path.join(folder, "engine.log")
        # One process: a second one would import the package again.
        env = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
               "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        vllm = os.path.join(os.path.dirname(sys.executable), "vllm")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [vllm, "serve", model, "--host", "127.0.0.1", "--port", str(self.port),
                 "--enforce-eager", "--max-num-seqs", "16", *more],
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
            return len(re.findall(r'"POST \S+ HTTP/1.1" 200', f.read())) - self.asked

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


def helper_posts(engine: Engine) -> int:
    """Requests that ask for tokens are no load."""
    with open(engine.log_path, encoding="utf-8", errors="replace") as f:
        return len(re.findall(r'"POST /(?:de)?tokenize HTTP/1.1" 200', f.read()))


def said_by(result: dict, extra: int) -> dict[str, int]:
    """What a client reports, with the ready check's request, which is one more of the first."""
    requests = result.get("total_input_sequences", result["completed"])
    generated = result.get("total_output_tokens", 0)
    return {"requests": requests + extra,
            "prompt": result["total_input_tokens"] + extra * result["input_lens"][0],
            "generated": generated + extra * result.get("output_lens", [0])[0]}


def measure(who: str, engine: Engine, args: list[str], folder: str, ours: str) -> dict:
    os.makedirs(folder, exist_ok=True)
    args = [*args, "--host", "127.0.0.1", "--port", str(engine.port), "--save-result",
            "--save-detailed", "--result-dir", folder, "--result-filename", f"{who}.json"]
    out, err = (os.path.join(folder, f"{who}.{x}") for x in ("stdout", "stderr"))
    engine.asked = helper_posts(engine)
    before, posts = engine.counters(), engine.posts()
    if who == "upstream":
        import upstream  # the whole package, which a comparison of ours alone does without
        status = upstream.run(args, stdout=out, stderr=err)
    else:
        with open(out, "wb") as o, open(err, "wb") as e:
            status = subprocess.run([ours, "bench", "serve", *args], stdout=o, stderr=e,
                                    check=False, timeout=300).returncode
    if status != 0:
        raise RuntimeError(f"{who} ended with {status}; see {err}")
    with open(os.path.join(folder, f"{who}.json"), encoding="utf-8") as f:
        result = json.load(f)
    extra = 1 if "--ready-check-timeout-sec" in args else 0
    said = said_by(result, extra)
    delta = gained(engine, before, said["requests"])
    engine.asked = helper_posts(engine)
    return {"result": result, "said": said, "engine": delta, "posts": engine.posts() - posts,
            "want_posts": result["completed"] + extra}


def compare(engine: Engine, name: str, args: list[str], clients: list[str],
            o: argparse.Namespace) -> list[str]:
    """One workload by each client; a sentence for each thing that does not agree."""
    runs = {who: measure(who, engine, args, os.path.join(o.out, name), o.ours) for who in clients}
    problems = []
    for who, r in runs.items():
        # Both clients report the dataset's prompts for speech; what the engine has is its own.
        if "openai-audio" in args:
            r["said"]["prompt"] = r["engine"]["prompt"]
        if r["result"].get("failed"):
            problems.append(f"{who}: {r['result']['failed']} requests failed: "
                            f"{sorted(set(r['result']['errors']) - {''})}")
        if r["said"] != r["engine"] or r["posts"] != r["want_posts"]:
            problems.append(f"{who}: said {r['said']}, engine {r['engine']}, "
                            f"access log {r['posts']}")
    a, b = (runs[who]["result"] for who in (clients[-1], "ours"))
    for key in ("completed", "failed", "total_input_tokens", "total_input_sequences", "input_lens",
                "output_lens"):
        if key in a and a[key] != b[key]:
            problems.append(f"{key}: upstream {a[key]!r:.100}, ours {b[key]!r:.100}")
    s = runs["ours"]["said"]
    print(f'{"FAIL" if problems else "PASS"}  {name:<19} ours = /metrics = access log: '
          f'{s["requests"]} requests, {s["prompt"]} prompt and {s["generated"]} generated tokens'
          f'{"; upstream the same" if len(clients) > 1 else ""}', flush=True)
    for text in problems:
        print(f"      {text}", flush=True)
    return problems


def run_engine(kind: str, o: argparse.Namespace) -> tuple[int, int]:
    """All workloads of one engine: how many, and how many failed."""
    model, more, workloads = ENGINES[kind]
    model = os.path.join(o.models, model)
    folder = os.path.join(o.out, kind)
    os.makedirs(folder, exist_ok=True)
    engine = Engine(model, more, folder)
    failed = 0
    try:
        version = json.loads(engine.get("/version"))["version"]
        print(f"{kind}: vllm {version}, CPU, {os.path.basename(model)}", flush=True)
        for name, args, *is_alone in workloads:
            clients = ["ours"] if is_alone else ["ours", "upstream"]
            args = ["--model", model, *[a.format(data=o.data, models=o.models) for a in args]]
            try:
                failed += bool(compare(engine, name, args, clients, o))
            except (RuntimeError, OSError, KeyError) as e:
                failed += 1
                print(f"FAIL  {name:<19} {type(e).__name__}: {e}", flush=True)
    finally:
        engine.stop()
    return len(workloads), failed


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "models", "data", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("engine", nargs="*", choices=[[], *ENGINES])
    o = p.parse_args()
    for name in ("ours", "models", "data", "out"):
        setattr(o, name, os.path.abspath(getattr(o, name)))
    counts = [run_engine(kind, o) for kind in (o.engine or ENGINES)]
    total, failed = (sum(x) for x in zip(*counts))
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
