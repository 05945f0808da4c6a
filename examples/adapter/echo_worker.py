# SPDX-License-Identifier: Apache-2.0
"""An adapter in sixty lines: its engine says the words of the prompt again, one a millisecond.

profllm bench latency --backend worker --worker-cmd 'python3 echo_worker.py' --model any
docs/guide/adapters.md is what it speaks; put your engine in place of Engine.
"""
import json
import os
import socket
import struct
import time


class Engine:
    def __init__(self, args):
        self.pause_s = float(args[args.index("--pause") + 1]) if "--pause" in args else 0.001

    def generate(self, prompt, tokens):
        words = (prompt if isinstance(prompt, list) else prompt.split()) or [""]
        time.sleep(self.pause_s * tokens)
        return [words[i % len(words)] for i in range(tokens)]


sock = socket.socket(fileno=int(os.environ["PROFLLM_WORKER_FD"]))
stream = sock.makefile("rb")


def send(**frame):
    body = json.dumps(frame).encode()
    sock.sendall(struct.pack(">I", len(body)) + body)


def answer(q):
    global engine, held
    began = time.monotonic_ns()
    if q["type"] == "load":
        engine = Engine(q["args"])
        return {"began_ns": began, "ended_ns": time.monotonic_ns()}
    if q["type"] == "describe":
        return {"max_model_len": 4096, "device": "cpu", "vocab_size": 1000}
    if q["type"] == "put":
        held = q["requests"] if q["is_first"] else held + q["requests"]
        return {"n": len(held)}
    if q["type"] == "generate":
        told = [engine.generate(r["prompt"], (r["output_len"] or 16) * q["n"]) for r in held]
        return {"began_ns": began, "ended_ns": time.monotonic_ns(),
                "prompt_tokens": [r["prompt_len"] for r in held], "output_tokens": [len(t) for t in told]}
    raise NotImplementedError(f"this engine cannot {q['type']}")


send(type="hello", protocol=1, engine="echo", version="1.0", features=[])
while head := stream.read(4):
    question = json.loads(stream.read(*struct.unpack(">I", head)))
    if question["type"] == "shutdown":
        send(id=question["id"], type="ok")
        break
    try:
        send(id=question["id"], type="ok", **answer(question))
    except Exception as error:
        send(id=question["id"], type="error", category="other", text=str(error))
