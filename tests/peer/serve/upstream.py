# SPDX-License-Identifier: Apache-2.0
"""Run the real `vllm bench serve` in forked children of one warmed-up process.

Importing the package and reading a tokenizer take many seconds, so both are done
once; each run is a fork that calls the package's own entry point with its own
argument list. The only thing added is a listener: before get_request starts pacing, it is asked
once more with a clock that stands still, so that what it would sleep for is
the due time itself. The generators' state is put back, the run is unchanged.
"""

import json
import os
import signal
import sys
import traceback
import types

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import vllm.benchmarks.serve as serve
import vllm.entrypoints.cli.benchmark.main  # noqa: F401  (part of the warm-up)
import vllm.entrypoints.cli.collect_env  # noqa: F401
import vllm.entrypoints.cli.launch  # noqa: F401
import vllm.entrypoints.cli.main as cli
import vllm.entrypoints.cli.openai  # noqa: F401
import vllm.entrypoints.cli.run_batch  # noqa: F401
import vllm.entrypoints.cli.serve  # noqa: F401
import vllm.entrypoints.cli.snapshot  # noqa: F401

RUN_TIMEOUT_S = 150
ALWAYS = {"tokenizer_mode": "auto", "trust_remote_code": False}
tokenizers: dict[str, object] = {}


async def due_times(original, args, kwargs) -> list[float]:
    """What get_request would sleep for, counted from its start."""
    state = np.random.get_state()
    clock, sleeper = serve.time, serve.asyncio
    slept = [0.0]

    async def sleep(seconds):
        slept[0] = seconds

    still = types.SimpleNamespace(time=lambda: 0.0, perf_counter=lambda: 0.0)
    serve.time, serve.asyncio = still, types.SimpleNamespace(sleep=sleep)
    due = []
    try:
        async for _ in original(*args, **kwargs):
            due.append(slept[0])
            slept[0] = 0.0
    finally:
        serve.time, serve.asyncio = clock, sleeper
        np.random.set_state(state)
    return due


def listen(path: str) -> None:
    """Write the workload as get_request is given it, with due times."""
    original = serve.get_request

    async def get_request(*args, **kwargs):
        requests = args[0]
        due = await due_times(original, args, kwargs)
        with open(path, "w", encoding="utf-8") as f:
            for r, due_s in zip(requests, due, strict=True):
                row = {"request_id": r.request_id, "due_s": due_s, "prompt": r.prompt,
                       "prompt_len": r.prompt_len, "output_len": r.expected_output_len}
                f.write(json.dumps(row) + "\n")
        async for item in original(*args, **kwargs):
            yield item

    serve.get_request = get_request


def read_tokenizer(argv: list[str]) -> None:
    """Read the tokenizer that a run will ask for, with the package's own function."""
    names = [argv[i + 1] for i, a in enumerate(argv[:-1]) if a in ("--tokenizer", "--model")]
    for name in names:
        if name not in tokenizers and os.path.isdir(name):
            tokenizers[name] = serve.get_tokenizer(name, **ALWAYS)


def lend_tokenizers() -> None:
    original = serve.get_tokenizer

    def get_tokenizer(name, **options):
        if options == ALWAYS and name in tokenizers:
            return tokenizers[name]
        return original(name, **options)

    serve.get_tokenizer = get_tokenizer


def run(argv: list[str], *, stdout: str, stderr: str, workload: str | None = None,
        env: dict[str, str] | None = None) -> int:
    """Fork, run `vllm bench serve <argv>`, return its exit status."""
    read_tokenizer(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    signal.alarm(RUN_TIMEOUT_S)
    try:
        for path, fd in ((stdout, 1), (stderr, 2)):
            new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(new, fd)
        os.environ.update(env or {})
        lend_tokenizers()
        if workload:
            listen(workload)
        sys.argv = ["vllm", "bench", "serve", *argv]
        cli.main()
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
