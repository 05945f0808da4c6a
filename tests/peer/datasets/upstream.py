# SPDX-License-Identifier: Apache-2.0
"""The request lists of the real `vllm bench serve`, taken from its own code.

The package's own argument parser and main function run up to the call of
benchmark(), which is replaced by a listener: it writes down the requests, asks the
package's arrival function for the due times, and ends the run. Nothing is sent.

usage: upstream.py JOBS     JOBS: JSON lines {"argv": [...], "out": FILE}
"""

import asyncio
import contextlib
import functools
import importlib.util
import io
import json
import os
import random
import sys
import traceback

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("serve_peer", f"{here}/../serve/upstream.py")
serve_peer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve_peer)

import soundfile
import vllm.benchmarks.serve as serve
from digest import digest, upload
from vllm.utils.argparse_utils import FlexibleArgumentParser


class Stop(Exception):
    pass


def as_file(media: dict) -> dict | None:
    """What the audio backend would upload, written the way it writes it."""
    if "audio_path" in media:
        with open(media["audio_path"], "rb") as f:
            return upload(media["audio_path"], f.read())
    if "audio" in media:
        samples, rate = media["audio"]
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, rate, format="WAV")
        return upload("audio.wav", buffer.getvalue())
    return None


def row(request, due_s: float, lora: int | None) -> dict:
    prompt, media, messages = request.prompt, request.multi_modal_data, request.chat_messages
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], dict) and "role" in prompt[0]:
        prompt, messages, media = None, prompt, None
    uploaded = as_file(media) if isinstance(media, dict) else None
    parts = None if uploaded or not media else media if isinstance(media, list) else [media]
    return {"request_id": request.request_id, "prompt": digest(prompt),
            "prompt_len": request.prompt_len, "output_len": request.expected_output_len,
            "messages": digest(messages), "media": digest(parts), "file": uploaded,
            "overrides": request.request_overrides, "timestamp_s": request.timestamp,
            "due_s": due_s, "lora": lora}


def lists(argv: list[str]) -> list[dict]:
    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    args = parser.parse_args(argv)
    rows: list[dict] = []

    async def listen(*, input_requests, request_rate, burstiness, self_timed, lora_modules, **_):
        due = await serve_peer.due_times(
            serve.get_request, (input_requests, request_rate, burstiness), {"self_timed": self_timed})
        names = list(range(len(lora_modules or [])))
        loras = [random.choice(names) for _ in input_requests] if names else [None] * len(due)
        rows.extend(row(*x) for x in zip(input_requests, due, loras, strict=True))
        raise Stop

    serve.benchmark = listen
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            asyncio.run(serve.main_async(args))
    except Stop:
        pass
    return rows


def main() -> None:
    serve.get_tokenizer = functools.lru_cache(serve.get_tokenizer)
    serve.freeze_gc_heap = lambda: None
    with open(sys.argv[1], encoding="utf-8") as f:
        jobs = [json.loads(line) for line in f]
    for job in jobs:
        try:
            result = {"rows": lists(job["argv"])}
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            if not isinstance(e, (ValueError, NotImplementedError, SystemExit, AssertionError)):
                traceback.print_exc()
            result = {"error": f"{type(e).__name__}: {e}"}
        part = f"{job['out']}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as f:
            json.dump(result, f)
        os.replace(part, job["out"])
        print(job["out"], len(result.get("rows", [])), result.get("error", "")[:300], flush=True)


if __name__ == "__main__":
    main()
