# SPDX-License-Identifier: Apache-2.0
"""Input files of the comparison of scripts.

usage: make_data.py DIR
"""

import json
import os
import random
import sys

WORDS = """the a river stone bridge quietly carries seven lanterns over deep water while two old
engineers argue about load, wind and rust; nobody counts the hours, but 42 of them pass before Zoë
answers: "naïve", she says, and draws a line — once, twice, 3.5 times""".split()


def text(rng: random.Random, n: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(n))


def conversations(rng: random.Random, lengths: list[int], is_spelled: bool = False) -> list[dict]:
    out = []
    for i, n in enumerate(lengths):
        messages = [{"role": "assistant" if k % 2 else "user", "content": text(rng, rng.randint(2, 14))}
                    for k in range(n)]
        out.append({"id": f"talk-{i}" if is_spelled else f"c{i}", "messages": messages})
    return out


def constant(n) -> dict:
    return {"distribution": "constant", "value": n}


def uniform(low, high) -> dict:
    return {"distribution": "uniform", "min": low, "max": high}


def generator(n: int, turns: dict, common: dict | None, prefix: dict, tokens: dict, answer: dict,
              **more) -> dict:
    asked = {"num_turns": turns, "prefix_num_tokens": prefix, "num_tokens": tokens}
    if common:
        asked["common_prefix_num_tokens"] = common
    return {"filetype": "generate_conversations", "num_conversations": n, "text_files": ["novel.txt"],
            "prompt_input": asked, "prompt_output": {"num_tokens": answer}, **more}


def sharegpt(rng: random.Random, n: int, is_foreign: bool) -> list[dict]:
    """With parts, in a row, that begin with what the last one ended with; foreign: non-ASCII texts."""
    out, ends = [], " é" if is_foreign else ""
    for i in range(n):
        for part in range(1 + (i % 4 == 3)):
            turns = rng.randint(2, 7)
            speakers = ["human", "gpt"] if i % 7 else ["gpt", "human"]
            out.append({"id": f"x{i:03}_{part}", "conversations": [
                {"from": speakers[k % 2], "value": text(rng, rng.randint(1, 30)) + ends}
                for k in range(turns)]})
    return out


def main(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(7)
    made = {
        "conversations.json": conversations(rng, [4, 6, 8, 4, 2, 10, 6, 4]),
        "equal.json": conversations(rng, [6] * 12, True),
        "short.json": conversations(rng, [2, 2, 4, 2, 4]),
        "constant.json": generator(5, constant(4), None, constant(0), constant(40), constant(6)),
        "readme.json": generator(
            8, uniform(4, 8), constant(50), {"distribution": "lognormal", "average": 100, "max": 500},
            uniform(40, 60), uniform(8, 12), print_stats=True),
        "mixed.json": generator(
            6, {"distribution": "poisson", "alpha": 5, "max": 8}, uniform(20, 30),
            {"distribution": "zipf", "alpha": 2, "max": 40},
            {"distribution": "lognormal", "mean": 4, "sigma": 0.3, "max": 120},
            {"distribution": "poisson", "alpha": 12}),
        "ratio.json": generator(
            6, uniform(3, 9), constant(2), constant(7),
            {"distribution": "lognormal", "average": 60, "median_ratio": 0.6},
            {"distribution": "zipf", "alpha": 1.7, "max": 20}),
        "sharegpt.json": sharegpt(rng, 120, False),
        "foreign.json": [r for r in sharegpt(rng, 160, True) if r["id"].endswith("_0")],
        "parts.json": sharegpt(rng, 60, True),
    }
    made["schema.json"] = {
        "type": "object", "required": ["näme", "age"], "additionalProperties": False, "properties": {
            "näme": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}}}
    for name, value in made.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=name != "foreign.json")
    with open(os.path.join(folder, "novel.txt"), "w", encoding="utf-8") as f:
        f.write("\n\n".join(text(rng, 120).capitalize() + "." for _ in range(60)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
