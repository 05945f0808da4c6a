# SPDX-License-Identifier: Apache-2.0
"""Make the data files of the comparison: our own words, fixed by a seed.

usage: make_data.py OUT_DIR  ->  sharegpt.json, custom.jsonl

The conversations have every length class the filter knows (too short, too
long, replies of one word), entries with one turn or none, and characters
that need escaping or several bytes.
"""

import json
import os
import random
import sys

WORDS = (
    "river lamp seventeen copper bridge quiet orchard signal margin velvet harbor candle "
    "ordinary weather kitchen thirteen paper engine morning garden lantern window number "
    "naïve Straße café señor 東京 速度 Привет 🙂 e\u0301 \u00a0 tab\tword line\nbreak quote\"s back\\slash "
    "</script> \u2028 2.5e-3 don't we'll 1234567 __init__ == ;;"
).split(" ")


def text(rng: random.Random, n: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(n))


def conversations(rng: random.Random) -> list[dict]:
    out = []
    for i in range(60):
        prompt = rng.choice([1, 2, 6, 20, 60, 200, 900])
        reply = rng.choice([1, 2, 8, 12, 30])
        turns = [{"from": "human", "value": text(rng, prompt)},
                 {"from": "gpt", "value": text(rng, reply)},
                 {"from": "human", "value": "more?"}]
        entry = {"id": f"c{i}", "conversations": turns[: rng.choice([0, 1, 2, 2, 3, 3, 3])]}
        if i % 17 == 5:
            del entry["conversations"]
        out.append(entry)
    return out


def main() -> None:
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    rng = random.Random(20)
    with open(os.path.join(out, "sharegpt.json"), "w", encoding="utf-8") as f:
        json.dump(conversations(rng), f, ensure_ascii=False, indent=1)
    with open(os.path.join(out, "custom.jsonl"), "w", encoding="utf-8") as f:
        for i in range(25):
            row = {"prompt": text(rng, 1 + 3 * i), "output_tokens": 1 + i % 9, "extra": i}
            f.write(json.dumps(row, ensure_ascii=bool(i % 2)) + "\n")


if __name__ == "__main__":
    main()
