# SPDX-License-Identifier: Apache-2.0
"""Make the data files of the comparison: our own words, fixed by a seed.

usage: make_data.py OUT_DIR  ->  sharegpt.json, custom.jsonl, trace.jsonl, image.jsonl,
                                images.jsonl, audio.jsonl and its sounds

The conversations have every length class the filter knows (too short, too
long, replies of one word), entries with one turn or none, and characters
that need escaping or several bytes.
"""

import json
import math
import os
import random
import struct
import sys
import wave

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


def write_rows(path: str, rows: list[dict]) -> None:
    with open(path, "w", encoding="utf-8") as f:
        for i, row in enumerate(rows):
            f.write(json.dumps(row, ensure_ascii=bool(i % 2)) + "\n")


def write_sound(path: str, rate: int, seconds: float, hertz: float) -> None:
    samples = [round(9000 * math.sin(2 * math.pi * hertz * i / rate))
               for i in range(int(rate * seconds))]
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def trace(rng: random.Random) -> list[dict]:
    """Chunks of 16 ids; a whole number of them, so that ids do not depend on how one is cut."""
    return [{"timestamp": round(0.03 * i, 3), "input_length": 16 * n, "output_length": 2 + i % 4,
             "hash_ids": [rng.randrange(9) for _ in range(n)]}
            for i, n in enumerate(rng.choice([1, 2, 5]) for _ in range(12))]


def images(rng: random.Random, most: int) -> list[dict]:
    """Addresses, which go to the server as they are."""
    return [{"prompt": text(rng, 1 + i), "image_files": [
        f"https://pictures.example/{i}/{k}.png" for k in range(1 + i % most)]} for i in range(8)]


def sounds(rng: random.Random, out: str) -> list[dict]:
    rows = []
    for i, (rate, seconds) in enumerate([(16000, 1.0), (8000, 0.5), (44100, 0.3), (16000, 2.25)]):
        path = os.path.join(out, f"{i}.wav")
        write_sound(path, rate, seconds, 220.0 * (i + 1))
        rows.append({"prompt": text(rng, i), "audio": path, "output_tokens": 3 + i})
    return rows


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
    write_rows(os.path.join(out, "trace.jsonl"), trace(rng))
    write_rows(os.path.join(out, "image.jsonl"), images(rng, 1))
    write_rows(os.path.join(out, "images.jsonl"), images(rng, 3))
    write_rows(os.path.join(out, "audio.jsonl"), sounds(rng, out))


if __name__ == "__main__":
    main()
