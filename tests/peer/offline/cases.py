# SPDX-License-Identifier: Apache-2.0
"""What is measured beside upstream: a verb, its words, and the figure that is compared.

"short" words are what a run that is listened to has besides (few tokens, everything written
down); "long" ones make a timed run last some seconds. A figure is a name and how it is read from
the result; all of them are seconds or rates, compared by the ratio of their medians.
"""

TEXT = "llama3_1"
PICTURES = "qwen2vl"
EAGER = ["--enforce-eager", "--max-model-len", "2048"]

THROUGHPUT = {"requests/s": lambda r: r["requests_per_second"]}
LATENCY = {"median s": lambda r: r["percentiles"]["50"]}
STARTUP = {
    "cold s": lambda r: r["cold_startup_percentiles"]["50"],
    "warm s": lambda r: r["warm_startup_percentiles"]["50"],
}
PROCESSOR = {
    "median e2el ms": lambda r: r["median_e2el_ms"],
    "preprocessor ms": lambda r: r["mm_processor_stats"]["preprocessor_total_ms"]["median"],
}


def random_set(prompts, given, made):
    return ["--num-prompts", str(prompts), "--random-input-len", str(given),
            "--random-output-len", str(made)]


def batch(size, given, made, warm, iterations):
    return ["--batch-size", str(size), "--input-len", str(given), "--output-len", str(made),
            "--num-iters-warmup", str(warm), "--num-iters", str(iterations)]


def throughput(name, *words, prompts=32, model=TEXT, made=40, short=6):
    return {"name": name, "verb": "throughput", "words": [*EAGER, *words], "model": model,
            "short": random_set(short, 24, 8) + ["--num-warmups", "2"],
            "long": random_set(prompts, 128, made) + ["--num-warmups", "8"], "figures": THROUGHPUT}


def latency(name, *words, size=8, made=24):
    return {"name": name, "verb": "latency", "words": [*EAGER, *words], "model": TEXT,
            "short": batch(2, 16, 6, 1, 2), "long": batch(size, 64, made, 2, 8),
            "figures": LATENCY}


PICTURE_WORDS = [
    *EAGER, "--random-mm-bucket-config", "{(64, 64, 1): 0.5, (56, 112, 1): 0.5}",
    "--random-mm-base-items-per-request", "2", "--random-mm-limit-mm-per-prompt",
    '{"image": 2, "video": 0}', "--limit-mm-per-prompt", '{"image": 2, "video": 0}',
    "--metric-percentiles", "50,99"]

CASES = [
    throughput("throughput"),
    throughput("throughput-n2", "--n", "2", "--disable-detokenize", prompts=32),
    throughput("throughput-lengths", "--input-len", "48", "--output-len", "12",
               "--random-range-ratio", "0.5"),
    throughput("throughput-chat", "--backend", "vllm-chat"),
    throughput("throughput-async", "--async-engine"),
    throughput("throughput-prequeue", "--prequeue-requests"),
    throughput("throughput-prequeue-chat", "--prequeue-requests", "--backend", "vllm-chat"),
    throughput("throughput-hf", "--backend", "hf", "--hf-max-batch-size", "8", prompts=32),
    throughput("throughput-hf-n2", "--backend", "hf", "--hf-max-batch-size", "4", "--n", "2",
               "--dtype", "float32", prompts=16),
    throughput("throughput-hf-qwen", "--backend", "hf", "--hf-max-batch-size", "8", prompts=32,
               model="qwen3"),
    latency("latency"),
    latency("latency-n2", "--n", "2", "--disable-detokenize"),
    latency("latency-beam", "--use-beam-search", "--n", "2", size=4, made=16),
    latency("latency-cached", "--enable-prefix-caching"),
    {"name": "startup", "verb": "startup", "words": EAGER, "model": TEXT,
     "short": ["--num-iters-cold", "1", "--num-iters-warmup", "0", "--num-iters-warm", "1"],
     "long": ["--num-iters-cold", "2", "--num-iters-warmup", "1", "--num-iters-warm", "2"],
     "figures": STARTUP},
    {"name": "mm-processor", "verb": "mm-processor", "words": PICTURE_WORDS, "model": PICTURES,
     "short": random_set(3, 16, 4),
     "long": random_set(32, 64, 16) + ["--num-warmups", "4"], "figures": PROCESSOR},
]

# What ends before or while an engine is there: the same status, and the same last sentence.
FAILURES = [
    {"name": "fail-mii", "verb": "throughput",
     "words": ["--backend", "mii", *random_set(2, 16, 4)], "model": TEXT},
    {"name": "fail-hf-batch", "verb": "throughput",
     "words": ["--backend", "hf", *random_set(2, 16, 4)], "model": TEXT},
    {"name": "fail-too-long", "verb": "throughput",
     "words": [*EAGER, *random_set(2, 2040, 64)], "model": TEXT},
    {"name": "fail-latency-too-long", "verb": "latency",
     "words": [*EAGER, *batch(1, 2040, 64, 1, 1)], "model": TEXT},
    *({"name": f"fail-latency{option}-{value}", "verb": "latency", "model": TEXT,
       "words": [*EAGER, *batch(2, 8, 4, 1, 1), option, value]}
      for option, value in (("--n", "0"), ("--output-len", "0"), ("--input-len", "0"),
                            ("--input-len", "-1"), ("--batch-size", "0"), ("--num-iters", "0"))),
    {"name": "fail-model", "verb": "latency", "words": batch(1, 8, 4, 1, 1), "model": "nowhere"},
    {"name": "fail-model-startup", "verb": "startup",
     "words": ["--num-iters-cold", "1", "--num-iters-warm", "1"], "model": "nowhere"},
    {"name": "fail-engine-word", "verb": "latency",
     "words": [*batch(1, 8, 4, 1, 1), "--dtype", "float8"], "model": TEXT},
]
