# SPDX-License-Identifier: Apache-2.0
"""Make the data files of the comparison: made up, fixed by a seed.

usage: make_data.py OUT_DIR

OUT_DIR/*            files for --dataset-path of the sets that read one file or folder
OUT_DIR/hub/ORG/NAME folders shaped like the repositories of the hub
OUT_DIR/home         a hub cache (HF_HOME) with the repositories that are only found there
"""

import csv
import json
import os
import random
import shutil
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from words import KINDS, code, picture, samples, sound, text

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write(path: str, data: bytes | str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def jsonl(path: str, rows: list[dict], ascii_too: bool = True) -> None:
    lines = [json.dumps(r, ensure_ascii=ascii_too and bool(i % 2)) for i, r in enumerate(rows)]
    write(path, "\n".join(lines) + "\n")


def parquet(path: str, rows: list[dict], schema: pa.Schema | None = None, **options) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)


def shards(folder: str, rows: list[dict], cuts: list[int], name: str = "data/train",
           schema: pa.Schema | None = None, options: list[dict] | None = None) -> None:
    """Rows in several files, each written with its own options."""
    schema = schema or pa.Table.from_pylist(rows).schema
    ends = [*cuts, len(rows)]
    for i, (start, end) in enumerate(zip([0, *cuts], ends)):
        more = (options or [{}])[i % len(options or [{}])]
        parquet(f"{folder}/{name}-{i:05d}-of-{len(ends):05d}.parquet", rows[start:end], schema, **more)


# ---- sets that read one file or folder ----

def turns(rng: random.Random) -> list[dict]:
    prompt = rng.choice([1, 2, 6, 20, 60, 200, 900])
    reply = rng.choice([1, 2, 8, 12, 30, 200])
    return [{"from": "human", "value": text(rng, prompt)}, {"from": "gpt", "value": text(rng, reply)},
            {"from": "human", "value": "more?"}]


def sharegpt(out: str, rng: random.Random) -> None:
    entries = []
    for i in range(160):
        entry = {"id": f"c{i}", "conversations": turns(rng)[: rng.choice([0, 1, 2, 2, 3, 3, 3])]}
        if i % 17 == 5:
            del entry["conversations"]
        entries.append(entry)
    write(f"{out}/sharegpt.json", json.dumps(entries, ensure_ascii=False, indent=1))
    inline = "data:image/png;base64,iVBORw0KGgo="
    images = ["pictures/a b.png", "/abs/é.jpg", "https://example.org/x.png?q=1&r=%20",
              "http://example.org/y", "file:///z.png", inline, "", None]
    videos = ["clips/a.mp4", "https://example.org/v.mp4", "file:///v.mp4", "data:video/mp4;base64,AA=="]
    for i, entry in enumerate(entries):
        if i % 3:
            entry["image"] = rng.choice(images)
        if i % 4 == 1:
            entry["video"] = rng.choice(videos)
    write(f"{out}/sharegpt_media.json", json.dumps(entries))


def custom(out: str, rng: random.Random) -> None:
    rows = [{"prompt": text(rng, 1 + 2 * i), "output_tokens": 1 + i % 9, "extra": i} for i in range(50)]
    jsonl(f"{out}/custom.jsonl", rows)
    lines = open(f"{out}/custom.jsonl", encoding="utf-8").read().split("\n")
    write(f"{out}/custom_blank.jsonl", "\n\n".join(lines) + "\n  \n")
    floats = [{"prompt": r["prompt"], "output_tokens": float(r["output_tokens"])} for r in rows]
    jsonl(f"{out}/custom_float.jsonl", floats)


def custom_image(out: str, rng: random.Random) -> None:
    files = []
    for kind in KINDS:
        suffix = kind.split("-")[0].replace("jpeg444", "jpg").replace("jpeg", "jpg")
        files.append(write(f"{out}/pictures/{kind}.{suffix}", picture(rng, kind)))
    others = ["https://example.org/a.png", "relative/b.jpg", "file:///c d.png",
              "data:image/png;base64,iVBORw0KGgo="]
    form_a, form_b, local = [], [], []
    for i in range(40):
        some = rng.sample(files + others, rng.randrange(1, 4))
        form_a.append({"prompt": text(rng, 1 + i % 13), "image_files": some, "id": i})
        parts = [{"type": "text", "text": text(rng, 1 + i % 5)}]
        for ref in some:
            parts.append(rng.choice([
                {"type": "image", "image": ref},
                {"type": "image_url", "image_url": ref},
                {"type": "image_url", "image_url": {"detail": "low", "url": ref, "n": 1.5}}]))
            if rng.random() < 0.4:
                parts.append({"type": "text", "text": text(rng, rng.randrange(3))})
        form_b.append({"content": parts})
        some = rng.sample(files + others[3:], rng.randrange(1, 4))
        local.append({"prompt": text(rng, 3), "image_files": some} if i % 2 else
                     {"content": [{"type": "image", "image": r} for r in some]})
    jsonl(f"{out}/custom_image_a.jsonl", form_a)
    jsonl(f"{out}/custom_image_b.jsonl", form_b)
    jsonl(f"{out}/custom_image_mixed.jsonl", [x for p in zip(form_a, form_b) for x in p])
    jsonl(f"{out}/custom_image_local.jsonl", local)


def other_formats(out: str) -> None:
    path = write(f"{out}/pictures/bmp.bmp", picture(random.Random(1), "bmp"))
    jsonl(f"{out}/custom_image_bmp.jsonl", [{"prompt": "What is it?", "image_files": [path]}])


def custom_audio(out: str, rng: random.Random) -> None:
    rows, arrays = [], []
    for i in range(24):
        kind = rng.choice(["flac", "wav", "wav-stereo", "wav-float", "wav-8k"])
        path = write(f"{out}/sounds/{i}.{kind.split('-')[0]}", sound(rng, kind))
        rows.append({"prompt": text(rng, 1 + i % 7), "audio": path, "output_tokens": 5 + i})
        wave = [round(float(x), 3) for x in samples(rng, 200 + i)]
        arrays.append({"prompt": text(rng, 2), "audio": {"array": wave, "sampling_rate": 8000}})
    jsonl(f"{out}/custom_audio.jsonl", rows)
    jsonl(f"{out}/custom_audio_array.jsonl", arrays)


def bench_files(out: str, rng: random.Random) -> None:
    categories = ["writing", "math", "coding", "rag"]
    rows = [{"question_id": i, "category": rng.choice(categories),
             "turns": [text(rng, 1 + i % 40), text(rng, 3)][: 1 + i % 2]} for i in range(90)]
    jsonl(f"{out}/question.jsonl", rows)
    for name, n in (("qualitative", 70), ("throughput_1k", 45)):
        rows = [{"question_id": f"q{i}", "category": rng.choice(categories), "sub_category": "x",
                 "messages": [{"role": "user", "content": text(rng, 1 + i)},
                              {"role": "assistant", "content": "no"}],
                 "source": "s", "src_id": i, "difficulty": None, "multiturn": bool(i % 2)}
                for i in range(n)]
        jsonl(f"{out}/speed/{name}.jsonl", rows)


def burstgpt(out: str, rng: random.Random) -> None:
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/burstgpt.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f)
        w.writerow(["Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"])
        for i in range(400):
            request, response = rng.randrange(1, 400), rng.choice([0, 1, 7, 250])
            w.writerow([i * 3, rng.choice(["GPT-4", "ChatGPT", "gpt-4"]), request, response,
                        request + response, rng.choice(["Conversation log", "API log"])])


def timed_trace(out: str, rng: random.Random) -> None:
    mooncake, qwen = [], []
    for i in range(60):
        length = rng.choice([3, 511, 512, 513, 1500, 2600])
        hashes = [min(j, 2) if j < 2 else rng.randrange(3, 40) for j in range((length + 511) // 512)]
        mooncake.append({"timestamp": 37 * i * i, "input_length": length,
                         "output_length": rng.randrange(1, 400), "hash_ids": hashes})
        length = rng.randrange(1, 200)
        qwen.append({"chat_id": i, "parent_chat_id": -1, "ts": 0.25 * i, "in": length,
                     "out": rng.randrange(1, 90), "type": "text", "turn": 1,
                     "blocks": [rng.randrange(30) for _ in range((length + 15) // 16 - (i % 5 == 4))]})
    jsonl(f"{out}/mooncake.jsonl", mooncake)
    jsonl(f"{out}/qwen_trace.jsonl", qwen)


# ---- sets shaped like repositories of the hub ----

def struct_of_bytes(rng: random.Random, make, kinds) -> dict:
    kind = rng.choice(kinds)
    return {"bytes": make(rng, kind), "path": f"{kind}.bin"}


def typed(schema: pa.Schema, **columns) -> pa.Schema:
    """schema as the hub's library writes it, with its own column types in the footer."""
    features = datasets.Features.from_arrow_schema(schema)
    features.update(columns)
    return features.arrow_schema


def images(hub: str, rng: random.Random) -> None:
    kinds = [k for k in KINDS]
    chat = [{"conversation_id": str(i), "images": [struct_of_bytes(rng, picture, kinds)
                                                   for _ in range(1 + i % 2)],
             "conversation": [[{"role": "user", "content": text(rng, 1 + i % 30)}],
                              [{"role": "assistant", "content": "yes"}]], "num_turns": 1}
            for i in range(150)]
    folder = f"{hub}/lmarena-ai/VisionArena-Chat"
    schema = typed(pa.Table.from_pylist(chat).schema, images=datasets.List(datasets.Image()))
    shards(folder, chat, [40, 41, 110], schema=schema,
           options=[{"compression": "snappy", "row_group_size": 7},
                    {"compression": "zstd", "use_dictionary": False},
                    {"compression": "gzip", "data_page_version": "2.0", "row_group_size": 20},
                    {"compression": "none", "data_page_size": 500}])
    bench = [{"images": r["images"], "turns": [[{"role": "user", "content": text(rng, 4)}]]} for r in chat]
    schema = pa.Table.from_pylist(bench[:60]).schema
    # Without types: upstream leaves pictures as their files have them.
    shards(f"{hub}/lmarena-ai/vision-arena-bench-v0.1", bench[:60], [], schema=schema,
           options=[{"compression": "brotli", "row_group_size": 25}])
    star = [{"index": i, "question": f" {text(rng, 1 + i % 9)}?\nOptions: A: {text(rng, 2)} Options: no",
             "image": struct_of_bytes(rng, picture, kinds), "answer": "A",
             "meta_info": {"source": "x", "split": None}} for i in range(70)]
    schema = typed(pa.Table.from_pylist(star).schema, image=datasets.Image())
    write(f"{hub}/Lin-Chen/MMStar/README.md", "---\nconfigs:\n- config_name: val\n  data_files:\n"
          "  - split: val\n    path: mmstar.parquet\n---\n\n# made up\n")
    parquet(f"{hub}/Lin-Chen/MMStar/mmstar.parquet", star, schema, compression="lz4", row_group_size=16)
    llava = []
    for i in range(120):
        conversation = [{"from": t["from"], "value": t["value"]} for t in turns(rng)]
        llava.append({"id": str(i), "image": struct_of_bytes(rng, picture, kinds),
                      "conversations": conversation[: rng.choice([1, 2, 3])], "data_source": "x"})
    schema = typed(pa.Table.from_pylist(llava).schema, image=datasets.Image())
    shards(f"{hub}/lmms-lab/LLaVA-OneVision-Data", llava, [50], name="chart2text(cauldron)/train",
           schema=schema, options=[{"row_group_size": 10}])


def texts(hub: str, rng: random.Random) -> None:
    rows = [{"instruction": text(rng, 1 + i % 9), "input": code(rng, i % 12), "output": "x"}
            for i in range(1400)]
    write(f"{hub}/likaixin/InstructCoder/train.json", json.dumps(rows, ensure_ascii=False, indent=2))
    write(f"{hub}/likaixin/InstructCoder/valid.json", json.dumps(rows[:20]))
    jsonl(f"{hub}/philschmid/mt-bench/question.jsonl",
          [{"question_id": 81 + i, "category": "writing", "turns": [text(rng, 2 + i), text(rng, 3)],
            "reference": [] if i % 2 else [text(rng, 2)]} for i in range(80)])
    parquet(f"{hub}/openai/openai_humaneval/openai_humaneval/test-00000-of-00001.parquet",
            [{"task_id": f"T/{i}", "prompt": f"def f{i}(x):\n    \"\"\"{text(rng, i)}\"\"\"\n",
              "canonical_solution": code(rng, 2), "test": code(rng, 3), "entry_point": "f"}
             for i in range(164)])
    for subset, split, n in (("main", "test", 1250), ("main", "train", 30), ("socratic", "test", 40)):
        parquet(f"{hub}/openai/gsm8k/{subset}/{split}-00000-of-00001.parquet",
                [{"question": f"{subset} {i} {text(rng, 1 + i % 23)}", "answer": str(i)}
                 for i in range(n)], row_group_size=1000)
    write(f"{hub}/openai/gsm8k/README.md", "---\nlanguage:\n- en\nconfigs:\n"
          "- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n"
          "  - split: test\n    path: main/test-*\n"
          "- config_name: socratic\n  data_files:\n  - split: test\n    path: socratic/test-*\n---\n")
    # The second file has the same columns as the first; both are one split.
    for name, n in (("ShareGPT_2023.json", 700), ("ShareGPT_V4.json", 600)):
        rows = [{"id": f"{name}{i}", "conversations": turns(rng)[: rng.choice([1, 2, 3])]}
                for i in range(n)]
        write(f"{hub}/Aeala/ShareGPT_Vicuna_unfiltered/{name}", json.dumps(rows, ensure_ascii=False))
    rows = [{"id": i, "problem": text(rng, rng.choice([1, 5, 50, 600])),
             "solution": text(rng, rng.choice([1, 9, 300])), "answer": "1", "url": None}
            for i in range(90)]
    shards(f"{hub}/AI-MO/aimo-validation-aime", rows, [])
    rows = [{"source": "s", "problem": text(rng, rng.choice([1, 5, 30])), "solution": text(rng, 1 + i % 20),
             "messages": [{"content": "a", "role": "user"}]} for i in range(2600)]
    shards(f"{hub}/AI-MO/NuminaMath-CoT", rows, [900, 901, 2000],
           options=[{"compression": "snappy"}, {"use_dictionary": False, "column_encoding": {
               "problem": "DELTA_LENGTH_BYTE_ARRAY", "solution": "DELTA_BYTE_ARRAY"}, },
               {"compression": "zstd", "row_group_size": 333}])
    marker = "<|editable_region_start|>"
    rows = [{"events": text(rng, i % 9), "input": f"{code(rng, 3)}{marker}{code(rng, 2)}",
             "output": f"{code(rng, i % 4)}{marker if i % 6 else ''}{text(rng, 1 + i % 30)}",
             "labels": "x"} for i in range(140)]
    for split, part in (("train", rows), ("eval", rows[:9]), ("dpo", rows[9:20])):
        jsonl(f"{hub}/zed-industries/zeta/{split}.jsonl", part, ascii_too=False)
    for name in ("edit_5k_char", "edit_10k_char"):
        shards(f"{hub}/vdaita/{name}",
               [{"code": code(rng, 1 + i % 20), "change_request": text(rng, 1 + i % 12),
                 "norm_distance": round(rng.random(), 4), "char_count": i} for i in range(90)], [])
    rows = [{"system_prompt": text(rng, 1 + i % 20), "question": text(rng, rng.choice([1, 8, 80, 800])),
             "output": text(rng, rng.choice([1, 2, 9, 90])), "input": "x"} for i in range(130)]
    shards(f"{hub}/mgoin/mlperf-inference-llama2-data", rows, [60])


def audios(hub: str, home: str, rng: random.Random) -> None:
    def some(n: int, kinds: list[str]) -> list[dict]:
        return [{"audio": struct_of_bytes(rng, sound, kinds), "text": text(rng, 3), "id": str(i)}
                for i in range(n)]
    rows = some(90, ["flac"])
    shards(f"{hub}/openslr/librispeech_asr", rows, [40], name="clean/test",
           options=[{"row_group_size": 9}])
    shards(f"{hub}/facebook/voxpopuli", some(40, ["wav", "wav-8k", "wav-float", "flac", "wav-stereo"]), [],
           name="en/train")
    rows = []
    snapshot = repository(home, "ArtificialAnalysis/Earnings22-Cleaned-AA")
    for i in range(12):
        name = f"audio/{i}.wav"
        write(f"{snapshot}/{name}", sound(rng, "wav"))
        rows.append({"id": i, "url": name, "transcript": text(rng, 4), "duration": 1.0, "language": "en"})
    for folder in (snapshot, f"{hub}/ArtificialAnalysis/Earnings22-Cleaned-AA"):
        jsonl(f"{folder}/test.jsonl", rows)


def repository(home: str, name: str) -> str:
    """A snapshot of a dataset in a hub cache; returns its folder."""
    base = f"{home}/hub/datasets--{name.replace('/', '--')}"
    write(f"{base}/refs/main", COMMIT)
    os.makedirs(f"{base}/snapshots/{COMMIT}", exist_ok=True)
    return f"{base}/snapshots/{COMMIT}"


def cached(hub: str, home: str, rng: random.Random) -> None:
    root = "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main"
    rows = []
    snapshot = repository(home, "yale-nlp/MMVU")
    for i in range(60):
        choices = {k: text(rng, 2) if i % 4 or k == "A" else None for k in "ABCDE"}
        name = f"videos/Art/{i}.mp4"
        write(f"{snapshot}/{name}", f"video {i}")
        rows.append({"id": f"v{i}", "video": f"{root}/{name}", "question_type": "mc",
                     "question": text(rng, 1 + i % 12), "choices": choices, "answer": "A",
                     "metadata": {"subject": "Art"}})
    for folder in (snapshot, f"{hub}/yale-nlp/MMVU"):
        write(f"{folder}/validation.json", json.dumps(rows, indent=1))
    snapshot = repository(home, "gorilla-llm/Berkeley-Function-Calling-Leaderboard")
    parameter_types = ["integer", "string", "float", "dict", "tuple", "any", "boolean", "array"]
    for category, n in (("simple", 40), ("live_simple", 25), ("multiple", 13), ("parallel", 7)):
        rows = []
        for i in range(n):
            function = {"name": f"f{i}", "description": text(rng, 4), "parameters": {
                "type": "dict", "properties": {
                    f"p{j}": {"type": kind, "description": text(rng, 2),
                              "items": {"type": rng.choice(parameter_types)}, "default": rng.random()}
                    for j, kind in enumerate(rng.sample(parameter_types, 3))}, "required": ["p0"]}}
            messages = [{"role": "user", "content": text(rng, 2 + i % 9)}]
            if i % 7 == 3:
                messages.insert(0, {"role": "system", "content": text(rng, 3)})
            row = {"id": f"{category}_{i}", "question": [messages], "function": [function] * (1 + i % 2)}
            if i % 5 == 1:
                row["function"] = function
            if i % 11 == 7:
                row[rng.choice(["question", "function"])] = []
            rows.append(row)
        jsonl(f"{snapshot}/BFCL_v3_{category}.json", rows)


def main() -> None:
    out = os.path.abspath(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    rng = random.Random(4)
    for make in (sharegpt, custom, custom_image, custom_audio, bench_files, burstgpt, timed_trace):
        make(out, rng)
    other_formats(out)
    hub, home = f"{out}/hub", f"{out}/home"
    images(hub, rng)
    texts(hub, rng)
    audios(hub, home, rng)
    cached(hub, home, rng)


if __name__ == "__main__":
    main()
