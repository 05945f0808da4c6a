# SPDX-License-Identifier: Apache-2.0
"""Argument lines for the four offline commands: written ones, and random ones of their own options.

A written line is what somebody is likely to type, right or wrong. A random one takes options of the
command at random, each with a value that is right most of the time.
"""

import json
import random

MODEL = ["--model", "{model}"]
RANDOM = ["--input-len", "32", "--output-len", "8"]

# What every integer option is given besides good values, and what every real number is.
BAD_INTS = ["", "x", "1.5", "1e3", "0x10", "1_0_", "--", "None", "1k", " 7 ", "1_000", "+3"]
BAD_FLOATS = ["", "x", "1,5", "nan", "inf", "-inf", "1_0.5", ".5", "5.", "1e400", "0x1p3", "Infinity"]
BAD_RATIOS = ["1.0", "-0.1", "x", '{"input": 0.5}', '{"input": 0.1, "output": 2}', "[0.1]", "",
              '{"input": 0.2, "output": 0.3}']

WRITTEN = {
    "throughput": [
        [],
        MODEL,
        ["--input-len", "32"],
        [*MODEL, *RANDOM],
        [*MODEL, "--input-len", "32"],
        [*MODEL, "--output-len", "32"],
        [*MODEL, *RANDOM, "--random-input-len", "64", "--random-output-len", "16"],
        [*MODEL, *RANDOM, "--prefix-len", "4"],
        [*MODEL, *RANDOM, "--dataset-name", "random-mm"],
        [*MODEL, *RANDOM, "--dataset-name", "sonnet"],
        [*MODEL, *RANDOM, "--dataset-name", "hf"],
        [*MODEL, "--dataset-name", "hf", "--dataset-path", "x/y", "--hf-subset", "a"],
        [*MODEL, "--dataset-name", "sharegpt", "--dataset-path", "/nonexistent.json"],
        [*MODEL, "--dataset-name", "sharegpt", "--dataset-path", "x", "--hf-split", "train"],
        [*MODEL, "--dataset-name", "prefix_repetition"],
        [*MODEL, "--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", "8"],
        [*MODEL, "--dataset-name", "burstgpt"],
        [*MODEL, "--dataset-name", "random-rerank", "--dataset-path", "x"],
        [*MODEL, "--dataset-path", "x", "--random-batch-size", "4"],
        [*MODEL, "--dataset-path", "x", "--no-reranker"],
        [*MODEL, "--dataset-path", "x", "--prefix-len", "3"],
        [*MODEL, *RANDOM, "--backend", "hf"],
        [*MODEL, *RANDOM, "--backend", "hf", "--hf-max-batch-size", "8"],
        [*MODEL, *RANDOM, "--backend", "hf", "--hf-max-batch-size", "8", "-q", "awq"],
        [*MODEL, *RANDOM, "--hf-max-batch-size", "8"],
        [*MODEL, *RANDOM, "--backend", "mii"],
        [*MODEL, *RANDOM, "--backend", "mii", "--n", "2"],
        [*MODEL, *RANDOM, "--backend", "mii", "--dtype", "half"],
        [*MODEL, *RANDOM, "--backend", "mii", "--tokenizer", "other"],
        [*MODEL, *RANDOM, "--backend", "mii", "--quantization", "awq"],
        [*MODEL, *RANDOM, "--backend", "sglang"],
        [*MODEL, *RANDOM, "--backend", "vllm-chat"],
        [*MODEL, *RANDOM, "--async-engine"],
        [*MODEL, *RANDOM, "--prequeue-requests"],
        [*MODEL, *RANDOM, "--prequeue-requests", "--async-engine"],
        [*MODEL, *RANDOM, "--prequeue-requests", "--backend", "hf", "--hf-max-batch-size", "1"],
        [*MODEL, *RANDOM, "--prequeue-requests", "--backend", "vllm-chat"],
        [*MODEL, *RANDOM, "--enable-lora"],
        [*MODEL, *RANDOM, "--enable-lora", "--lora-path", "x"],
        [*MODEL, *RANDOM, "--enable-lora", "--lora-path", "x", "--backend", "vllm-chat"],
        [*MODEL, *RANDOM, "--lora-path", "x"],
        [*MODEL, *RANDOM, "--lora-path", "x", "--lora-assignment", "round-robin"],
        [*MODEL, *RANDOM, "--lora-assignment", "every"],
        [*MODEL, *RANDOM, "--data-parallel-size", "2"],
        [*MODEL, *RANDOM, "-dp", "2", "--distributed-executor-backend", "external_launcher"],
        [*MODEL, *RANDOM, "-dp", "2", "--distributed-executor-backend", "external_launcher",
         "--async-engine"],
        [*MODEL, *RANDOM, "--disable-frontend-multiprocessing"],
        [*MODEL, *RANDOM, "--enable-multimodal-chat"],
        [*MODEL, *RANDOM, "--profile"],
        [*MODEL, *RANDOM, "--random-mm-limit-mm-per-prompt", "{"],
        [*MODEL, *RANDOM, "--random-mm-limit-mm-per-prompt", '{"image": 2}'],
        [*MODEL, *RANDOM, "--random-mm-bucket-config", "{(64, 64, 1): 1.0}"],
        [*MODEL, *RANDOM, "--random-mm-bucket-config", "{(64, 64): 1.0}"],
        [*MODEL, *RANDOM, "--random-mm-bucket-config", "[1]"],
        [*MODEL, *RANDOM, "--seed", "7"],
        [*MODEL, *RANDOM, "--num-warmups", "3"],
        [*MODEL, *RANDOM, "--no-oversample"],
        [*MODEL, "--input-len", "32", "--output-len", "8", "--num-prompts", "0"],
        [*MODEL, *RANDOM, "--num-prompts", "-3"],
        [*MODEL, *RANDOM, "--asr-max-audio-len-sec", "inf"],
        [*MODEL, *RANDOM, "--custom-output-len", "16"],
        [*MODEL, *RANDOM, "--hf-name", "lmms-lab/x"],
    ],
    "latency": [
        [],
        MODEL,
        [*MODEL, "--batch-size", "0"],
        [*MODEL, "--batch-size", "-1"],
        [*MODEL, "--input-len", "0"],
        [*MODEL, "--output-len", "0"],
        [*MODEL, "--use-beam-search"],
        [*MODEL, "--use-beam-search", "--n", "4"],
        [*MODEL, "--n", "0"],
        [*MODEL, "--num-iters", "0"],
        [*MODEL, "--num-iters-warmup", "0"],
        [*MODEL, "--num-iters-warm", "0"],
        [*MODEL, "--num-iter", "3"],
        [*MODEL, "--profile"],
        [*MODEL, "--profile", "--profiler-config", '{"profiler": "torch", "torch_profiler_dir": "/tmp/p"}'],
        [*MODEL, "--disable-detokenize"],
        [*MODEL, "--enable-prefix-caching"],
        [*MODEL, "--no-enable-prefix-caching"],
        [*MODEL, "--load-format", "dummy"],
        [*MODEL, "--dtype", "float8"],
        [*MODEL, "-tp", "2"],
        [*MODEL, "-tp", "two"],
        [*MODEL, "--temperature", "0"],
        [*MODEL, "--async-engine"],
        [*MODEL, "--quantization", "awq"],
        [*MODEL, "--output-json", "x.json"],
        [*MODEL, "--output-json"],
        [*MODEL, "x"],
    ],
    "startup": [
        [],
        MODEL,
        [*MODEL, "--num-iters-cold", "0"],
        [*MODEL, "--num-iters-warm", "0"],
        [*MODEL, "--num-iters-warmup", "0"],
        [*MODEL, "--num-iters", "1"],
        [*MODEL, "--num-iters-cold", "-1"],
        [*MODEL, "--num-iters-wa", "2"],
        [*MODEL, "-O0"],
        [*MODEL, "-O", "3"],
        [*MODEL, "-O=1"],
        [*MODEL, "-Ox"],
        [*MODEL, "--optimization-level", "2"],
        [*MODEL, "--output-json", "a/b.json"],
        [*MODEL, "--batch-size", "8"],
        [*MODEL, "--compilation-config", '{"mode": 3}'],
        [*MODEL, "-cc.mode=3"],
        [*MODEL, "-cc.mode=none"],
        [*MODEL, "--compilation-config", "{"],
    ],
    "mm-processor": [
        [],
        MODEL,
        [*MODEL, "--dataset-name", "hf"],
        [*MODEL, "--dataset-name", "hf", "--dataset-path", "lmarena-ai/VisionArena-Chat"],
        [*MODEL, "--dataset-name", "hf", "--dataset-path", "yale-nlp/MMVU"],
        [*MODEL, "--dataset-name", "hf", "--dataset-path", "nobody/nothing"],
        [*MODEL, "--dataset-name", "random"],
        [*MODEL, "--dataset-path", "x"],
        [*MODEL, "--num-prompts", "0"],
        [*MODEL, "--num-warmups", "0"],
        [*MODEL, "--metric-percentiles", "50,90,99"],
        [*MODEL, "--metric-percentiles", "50,x"],
        [*MODEL, "--metric-percentiles", ""],
        [*MODEL, "--metric-percentiles", "101"],
        [*MODEL, "--metric-percentiles", "99.9, 50"],
        [*MODEL, "--disable-tqdm"],
        [*MODEL, "--no-enable-mm-processor-stats"],
        [*MODEL, "--enable-mm-processor-stats"],
        [*MODEL, "--output-len", "4"],
        [*MODEL, "--input-len", "4"],
        [*MODEL, "--backend", "vllm"],
        [*MODEL, "--random-mm-bucket-config", "{(256, 256, 1): 0.7, (720, 1280, 1): 0.3}"],
        [*MODEL, "--random-mm-limit-mm-per-prompt", '{"image": 3, "video": 0}'],
        [*MODEL, "--random-mm-base-items-per-request", "2"],
    ],
}


def value(rng, flag, row):
    if row["choices"]:
        return rng.choice([*map(str, row["choices"]), "other"])
    kind = row["type"]
    if kind == "int":
        return rng.choice([str(rng.randrange(1, 300)), "0", "-1", rng.choice(BAD_INTS)])
    if kind == "float":
        return rng.choice([repr(rng.random()), "0", "1", rng.choice(BAD_FLOATS)])
    if "ratio" in flag:
        return rng.choice(["0.0", "0.5", rng.choice(BAD_RATIOS)])
    if flag == "--random-mm-limit-mm-per-prompt":
        return rng.choice(['{"image": 2}', '{"image": 1, "video": 1}', "{", "3", "null"])
    if flag == "--random-mm-bucket-config":
        return rng.choice(["{(64, 64, 1): 1.0}", "{(64, 64, 1): 0.5, (32, 32, 2): 0.5}", "{}", "x",
                           "{(1, 2): 1}"])
    if flag == "--metric-percentiles":
        return rng.choice(["50,90,99", "25", "99.9", "x", "5,,6"])
    return rng.choice(["x", "a/b", "", "some file"])


def spelled(rng, flag):
    """The ways a flag may be written: underscores, and as far as it takes to be told from others."""
    roll = rng.random()
    if roll < 0.15:
        return flag[:2] + flag[2:].replace("-", "_")
    if roll < 0.25 and len(flag) > 8:
        return flag[: rng.randrange(6, len(flag))]
    return flag


def random_line(rng, verb, flags):
    own = [r for r in flags[verb] if not r["is_engine"] and r["flags"][0] != "-h"]
    words = [] if rng.random() < 0.05 else [*MODEL]
    if verb == "throughput" and rng.random() < 0.8:
        words += RANDOM
    for row in rng.sample(own, rng.randrange(1, 5)):
        flag = row["flags"][0]
        name = spelled(rng, flag)
        if row["action"] != "_StoreAction":
            words.append(name if rng.random() < 0.95 else name + "=1")
        elif rng.random() < 0.3:
            # argparse forgets a value that is "--" after an equals sign.
            words.append(f"{name}={value(rng, flag, row)}".replace("=--", "=-1"))
        else:
            words += [name] if rng.random() < 0.03 else [name, value(rng, flag, row)]
    if rng.random() < 0.06:
        words.append(rng.choice(["--no-such-flag", "stray", "--", "-z", "--num_prompt=3"]))
    return words


def lines(verb, flags, n, seed):
    """Written lines, then n random ones."""
    rng = random.Random(f"{verb} {seed}")
    return WRITTEN[verb] + [random_line(rng, verb, flags) for _ in range(n)]


def filled(words, model):
    return [w.replace("{model}", model) if w == "{model}" else w for w in words]


def key(words):
    return json.dumps(words, ensure_ascii=False)
