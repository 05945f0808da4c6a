#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generated conversations beside NumPy: the rules of the specification written once more, with
NumPy's own generator, against what `profllm dataset show` would send.

    PROFLLM=build/profllm /tmp/golden/bin/python tests/peer/datasets/conversations.py

The tokenizer has a token for each byte; the text is random. Prints how many seeds differ.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

INSTRUCTION = "Please rewrite the following text and add more content: "
SEEDS = 20
GENERATOR = {
    "filetype": "generate_conversations", "num_conversations": 24, "text_files": ["book.txt"],
    "prompt_input": {
        "num_turns": {"distribution": "poisson", "alpha": 11, "max": 18},
        "common_prefix_num_tokens": {"distribution": "zipf", "alpha": 1.3, "max": 500},
        "prefix_num_tokens": {"distribution": "lognormal", "average": 1000, "max": 5000},
        "num_tokens": {"distribution": "lognormal", "mean": 4.9, "sigma": 0.3, "max": 400}},
    "prompt_output": {"num_tokens": {"distribution": "uniform", "min": 3, "max": 90}},
}


def draw(spec, n):
    kind, most = spec["distribution"], spec.get("max")
    if kind == "constant":
        return np.full(n, spec["value"])
    if kind == "uniform":
        return np.random.randint(spec["min"], most + 1, size=n)
    if kind in ("zipf", "poisson"):
        x = getattr(np.random, kind)(spec["alpha"], size=n)
    elif "average" in spec:
        median = spec["average"] * spec.get("median_ratio", 0.85)
        x = np.random.lognormal(np.log(median), np.sqrt(2 * np.log(spec["average"] / median)), n)
        x *= spec["average"] / x.mean()
    else:
        x = np.random.lognormal(spec["mean"], spec["sigma"], n)
    return np.round(np.minimum(x, most) if most else x).astype(int)


def requests(conf, text, seed):
    """(text of the user, tokens of the answer) of every request."""
    np.random.seed(seed)
    asked = conf["prompt_input"]
    turns = np.maximum(draw(asked["num_turns"], conf["num_conversations"]), 2)
    turns = turns + turns % 2
    prefix = draw(asked["prefix_num_tokens"], conf["num_conversations"])
    base = int(draw(asked["common_prefix_num_tokens"], 1)[0])
    common = text[:max(base - 2, 0)] + "." if base else ""
    for j, n in enumerate(turns):
        user = np.maximum(draw(asked["num_tokens"], n), len(INSTRUCTION))
        answer = np.maximum(draw(conf["prompt_output"]["num_tokens"], n), 1)
        for t in range(0, n, 2):
            said = (common if t == 0 else "") + f"{j} is a nice number... "
            left = user[t] - len(said) - len(INSTRUCTION)
            if t == 0 and prefix[j] > 0:
                said += f"{j}, " + text[base:base + prefix[j]]
                base += prefix[j]
            said += INSTRUCTION
            begin = base + t * user.max()
            yield said + text[begin:begin + max(left, 0)], int(answer[t + 1])
        base += n


def byte_tokenizer():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    vocab = {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(hidden)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "merges": [], "vocab": vocab}}


def main():
    program = os.path.abspath(os.environ["PROFLLM"])
    text = "".join(random.Random(1).choices("abcdefghij \n", k=200000))
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, content in [("tokenizer.json", json.dumps(byte_tokenizer())), ("book.txt", text),
                              ("generate.json", json.dumps(GENERATOR))]:
            with open(name, "w", encoding="utf-8") as f:
                f.write(content)
        for seed in range(SEEDS):
            out = subprocess.run(
                [program, "dataset", "show", "--tokenizer", ".", "--backend", "openai-chat", "--json",
                 "--examples", "1000000", "--seed", str(seed), "--dataset-name", "conversations",
                 "--dataset-path", "generate.json"], capture_output=True, check=True).stdout
            got = [(e["messages"][0]["content"], e["output_len"])
                   for e in json.loads(out)["examples"]]
            want = list(requests(GENERATOR, text, seed))
            print(f"seed {seed}: {len(want)} requests, {'equal' if got == want else 'DIFFERENT'}")
            differing += got != want
        os.chdir("/")
    print(f"{differing} of {SEEDS} seeds differ")
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
