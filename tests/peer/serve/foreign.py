# SPDX-License-Identifier: Apache-2.0
"""Measure Hugging Face's `transformers serve`, whose answers are unlike vLLM's.

usage: foreign.py --ours BINARY --models DIR --out DIR

It sends a role event at once and its token counts with the last choice, and it refuses keys that
it does not know. By default our report keeps vLLM's reading of that, so its verdict must name both
and the switches, and the right values must be there as well; with the switches, the headline
itself must equal what the server says. What the server says is read from its answers on the wire.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from tap import Tap

PROMPTS, AT_ONCE, TOKENS = 12, 3, 16
START_S = 300
USAGE = re.compile(rb'"usage":\{"completion_tokens":(\d+),"prompt_tokens":(\d+)')


class AnswerTap(Tap):
    """Keeps the answers as well."""

    def __init__(self, server_port: int) -> None:
        self.answers: dict[int, bytes] = {}
        super().__init__(server_port)

    def relay(self, source, sink, reader) -> None:
        if reader is None:
            reader = Answers(self)
        super().relay(source, sink, reader)

    def usage(self) -> tuple[int, int]:
        """Output and prompt tokens of all answers."""
        counts = [m for data in self.answers.values() for m in USAGE.findall(data)]
        return sum(int(a) for a, _ in counts), sum(int(b) for _, b in counts)


class Answers:
    def __init__(self, tap: AnswerTap) -> None:
        self.tap = tap

    def feed(self, data: bytes) -> None:
        key = threading.get_ident()
        with self.tap.lock:
            self.tap.answers[key] = self.tap.answers.get(key, b"") + data


def start(model: str, folder: str) -> tuple[subprocess.Popen, int]:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    program = os.path.join(os.path.dirname(sys.executable), "transformers")
    with open(os.path.join(folder, "server.log"), "wb") as log:
        server = subprocess.Popen([program, "serve", "--host", "127.0.0.1", "--port", str(port),
                                   model], stdout=log, stderr=log)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
            return server, port
        except OSError:
            time.sleep(1)
    server.kill()
    raise RuntimeError(f"transformers serve did not start; see {folder}/server.log")


def measure(o: argparse.Namespace, port: int, model: str, name: str, more: list[str]) -> dict:
    tap = AnswerTap(port)
    with open(os.path.join(o.out, f"{name}.log"), "wb") as log:
        status = subprocess.run(
            [o.ours, "bench", "serve", "--backend", "openai-chat", "--endpoint",
             "/v1/chat/completions", "--model", model, "--base-url", f"http://127.0.0.1:{tap.port}",
             "--dataset-name", "random", "--random-input-len", "12", "--random-output-len",
             str(TOKENS), "--num-prompts", str(PROMPTS), "--max-concurrency", str(AT_ONCE),
             "--omit-body-keys", "ignore_eos", "--extra-body", json.dumps({"max_tokens": TOKENS}),
             "--save-result", "--result-dir", o.out, "--result-filename", f"{name}.json", *more],
            stdout=log, stderr=log, check=False, timeout=600).returncode
    time.sleep(0.5)
    tap.stop()
    if status != 0:
        raise RuntimeError(f"{name} ended with {status}; see {o.out}/{name}.log")
    with open(os.path.join(o.out, f"{name}.json"), encoding="utf-8") as f:
        result = json.load(f)
    result["server"] = tap.usage()
    return result


def check(problems: list[str], claim: str, holds: bool) -> None:
    print(f'{"PASS" if holds else "FAIL"}  {claim}', flush=True)
    if not holds:
        problems.append(claim)


def main() -> int:
    p = argparse.ArgumentParser()
    for name in ("ours", "models", "out"):
        p.add_argument(f"--{name}", required=True)
    o = p.parse_args()
    o.ours, o.out = os.path.abspath(o.ours), os.path.abspath(o.out)
    os.makedirs(o.out, exist_ok=True)
    model = os.path.join(os.path.abspath(o.models), "llama3_1")
    problems: list[str] = []
    server, port = start(model, o.out)
    try:
        measure(o, port, model, "first", [])  # the first answers wait for the model's own warm-up
        usual = measure(o, port, model, "usual", [])
        right = measure(o, port, model, "switches", ["--fix", "usage", "--compat", "role-chunk"])
    finally:
        server.terminate()
        server.wait(30)
    ours, out = usual["profllm"], usual["server"][0]
    codes = {r["code"]: r for r in ours["reasons"]}
    print(f'by default: mean TTFT {usual["mean_ttft_ms"]:.2f} ms, first content '
          f'{ours["ttft_content_ms"]["mean"]:.2f} ms; {usual["total_output_tokens"]} output tokens, '
          f'{ours["best_output_tokens"]} best known, {out} by the server; verdict '
          f'{ours["verdict"]} {sorted(codes)}')
    print(f'with the switches: mean TTFT {right["mean_ttft_ms"]:.2f} ms, output, input '
          f'{right["total_output_tokens"]}, {right["total_input_tokens"]} tokens, the server '
          f'{right["server"]}; verdict {right["profllm"]["verdict"]} '
          f'{[r["code"] for r in right["profllm"]["reasons"]]}')
    check(problems, "the verdict names the role event and its switch, and spoils TTFT",
          "--compat role-chunk" in codes.get("role_event", {}).get("text", "") and
          ours["verdicts"]["ttft"] != "VALID")
    check(problems, "the verdict names the ignored usage and its switch, and spoils throughput",
          "--fix usage" in codes.get("usage_ignored", {}).get("text", "") and
          ours["verdicts"]["output_throughput"] != "VALID")
    check(problems, "the best known output tokens are the server's", ours["best_output_tokens"] == out)
    check(problems, "the first content came long after the role event",
          ours["ttft_content_ms"]["mean"] > 2 * usual["mean_ttft_ms"])
    check(problems, "with the switches the token counts are the server's",
          (right["total_output_tokens"], right["total_input_tokens"]) == right["server"])
    check(problems, "with the switches neither is a reason any more",
          not {"role_event", "usage_ignored"} & {r["code"] for r in right["profllm"]["reasons"]})
    print(f"{6 - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
