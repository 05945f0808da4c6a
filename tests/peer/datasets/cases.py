# SPDX-License-Identifier: Apache-2.0
"""The command lines that both sides are given. Rows, no code.

In arguments {data} is the folder that make_data.py made. A case:

  name    unique; what of it stands before the first "/" is the dataset it counts for
  args    arguments of `bench serve`
  sizes   the numbers of requests
  on      tokenizers, "plain" (no special tokens around a text) and "bos" (one in front)
  seeds   instead of SEEDS
  refused both sides must refuse
  differs keys that are not compared, each with its reason (docs/differences.md)
  only    why ours does otherwise (a row of docs/differences.md)
"""

SEEDS = (0, 1, 42)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
COMMON = ["--host", "127.0.0.1", "--port", "9", "--request-id-prefix", "p-", "--request-rate", "7",
          "--lora-modules", "red", "green", "blue"]
CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
# No list depends on the API further than "chat or not": the APIs that embeddings, ranking and
# audio are meant for need not be there.
AUDIO = CHAT
EMBED = RERANK = []
PLAIN = ["--skip-chat-template"]
BOTH = ("plain", "bos")
MM = ["--enable-multimodal-chat"]


def random_(*more):
    return ["--dataset-name", "random", "--random-input-len", "50", "--random-output-len", "12", *more]


def mm(*more):
    return ["--dataset-name", "random-mm", *CHAT, "--random-input-len", "9", "--random-output-len", "5",
            *more]


def rerank(*more):
    return ["--dataset-name", "random-rerank", *RERANK, "--random-input-len", "64", *more]


def prefix(*more):
    return ["--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", "40",
            "--prefix-repetition-suffix-len", "24", "--prefix-repetition-num-prefixes", "5", *more]


def file_(name, path, *more):
    return ["--dataset-name", name, "--dataset-path", "{data}/" + path, *more]


def hub(name, *more):
    """A folder and the name of the repository that it is a copy of."""
    return ["--dataset-name", "hf", "--dataset-path", "{data}/hub/" + name, "--hf-name", name, *more]


def cached(name, *more):
    """The folder of a hub cache, because upstream looks for media there whatever the path is."""
    folder = "{data}/" + "home/hub/datasets--" + name.replace("/", "--") + "/snapshots/" + COMMIT
    return ["--dataset-name", "hf", "--dataset-path", folder, "--hf-name", name, *more]


TRACE = ["--timed-trace-label-timestamp", "ts", "--timed-trace-label-input-length", "in",
         "--timed-trace-label-output-length", "out", "--timed-trace-label-hash-ids", "blocks"]
MOONCAKE = ["--timed-trace-chunk-hash-size", "512", "--timed-trace-sec-multiplier", "0.001"]
BUCKETS = "{(48, 64, 1): 0.5, (33, 17, 1): 0.25, (16, 16, 1): 0.25, (64, 64, 4): 0}"
VIDEO = "{(48, 64, 1): 0.4, (64, 80, 3): 0.4, (50, 34, 7): 0.2}"
NO_HASH = {"prompt": "ids of chunks are drawn from a stable hash; upstream's is salted per process"}
UPRIGHT = "pictures are turned upright whether or not the file says they are pictures"
NO_TOOLS = {"prompt_len": "templates with tools are rendered by a server only"}

CASES = [
    # ---- random ----
    {"name": "random/plain", "args": random_(), "sizes": (5, 40), "on": BOTH},
    {"name": "random/defaults", "args": ["--dataset-name", "random"], "sizes": (3, 12), "on": BOTH},
    {"name": "random/range", "args": random_("--random-range-ratio", "0.5"), "sizes": (7, 60),
     "on": BOTH},
    {"name": "random/range-pair", "sizes": (7, 60), "on": BOTH,
     "args": random_("--random-range-ratio", '{"input": 0.9, "output": 0.1}')},
    {"name": "random/prefix", "args": random_("--random-prefix-len", "33"), "sizes": (7, 50), "on": BOTH},
    {"name": "random/prefix-range", "sizes": (7, 50), "on": BOTH,
     "args": random_("--random-prefix-len", "8", "--random-range-ratio", "0.99")},
    {"name": "random/batch", "sizes": (5, 41), "on": BOTH,
     "args": random_("--random-batch-size", "8", *EMBED, "--random-range-ratio", "0.3")},
    {"name": "random/long", "sizes": (2, 8), "on": BOTH,
     "args": ["--dataset-name", "random", "--input-len", "3000", "--output-len", "7"]},
    {"name": "random/one-token", "sizes": (5, 300), "on": BOTH, "seeds": (0, 1, 42),
     "args": ["--dataset-name", "random", "--random-input-len", "2", "--random-output-len", "1"]},
    {"name": "random/too-short", "sizes": (4,), "on": ("bos",), "seeds": (0,), "refused": True,
     "args": ["--dataset-name", "random", "--random-input-len", "1"]},
    # ---- random-mm ----
    {"name": "random-mm/buckets", "sizes": (3, 14), "on": BOTH,
     "args": mm("--random-mm-bucket-config", BUCKETS)},
    {"name": "random-mm/defaults", "args": mm(), "sizes": (1, 3)},
    {"name": "random-mm/many", "sizes": (3, 14), "args": mm(
        "--random-mm-bucket-config", BUCKETS,
        "--random-mm-base-items-per-request", "3", "--random-mm-num-mm-items-range-ratio", "1.0",
        "--random-range-ratio", "0.5", "--random-prefix-len", "5")},
    {"name": "random-mm/video", "sizes": (3, 10), "args": mm(
        "--random-mm-bucket-config", VIDEO,
        "--random-mm-base-items-per-request", "3", "--random-mm-num-mm-items-range-ratio", "0.7",
        "--random-mm-limit-mm-per-prompt", '{"image": 2, "video": 1}')},
    {"name": "random-mm/chat", "sizes": (3, 10), "args": mm(
        *MM, "--random-mm-bucket-config", VIDEO)},
    {"name": "random-mm/limits", "sizes": (4,), "seeds": (0,), "refused": True, "args": mm(
        "--random-mm-base-items-per-request", "3", "--random-mm-limit-mm-per-prompt",
        '{"image": 1, "video": 1}')},
    {"name": "random-mm/no-chat-backend", "sizes": (4,), "seeds": (0,), "refused": True,
     "args": ["--dataset-name", "random-mm"]},
    # ---- random-rerank ----
    {"name": "random-rerank/reranker", "sizes": (5, 30), "on": BOTH,
     "args": rerank("--random-batch-size", "4")},
    {"name": "random-rerank/range", "sizes": (5, 30), "on": BOTH,
     "args": rerank("--random-batch-size", "3", "--random-range-ratio", "0.4")},
    {"name": "random-rerank/single", "sizes": (5, 30), "on": BOTH, "args": rerank()},
    {"name": "random-rerank/embedder", "sizes": (5, 31), "on": BOTH,
     "args": rerank("--random-batch-size", "5", "--no-reranker", "--random-range-ratio", "0.2")},
    {"name": "random-rerank/embedder-one", "sizes": (1,), "seeds": (0,), "refused": True,
     "args": rerank("--random-batch-size", "5", "--no-reranker")},
    # ---- prefix_repetition, burstgpt ----
    {"name": "prefix_repetition/even", "args": prefix(), "sizes": (5, 50), "on": BOTH},
    {"name": "prefix_repetition/unshuffled", "args": prefix("--disable-shuffle", "--output-len", "9"),
     "sizes": (10, 45), "on": BOTH},
    {"name": "prefix_repetition/remainder", "args": prefix(), "sizes": (8, 23),
     "only": "the rest goes to the first prefixes, as in newer releases; 0.32.0 drops it"},
    {"name": "prefix_repetition/too-few", "args": prefix(), "sizes": (4,), "seeds": (0,),
     "refused": True},
    {"name": "burstgpt/few", "args": file_("burstgpt", "burstgpt.csv"), "sizes": (10, 60), "on": BOTH},
    {"name": "burstgpt/more-than-rows", "args": file_("burstgpt", "burstgpt.csv"), "sizes": (300, 420)},
    # ---- sharegpt ----
    {"name": "sharegpt/some", "args": file_("sharegpt", "sharegpt.json"), "sizes": (10, 40), "on": BOTH},
    {"name": "sharegpt/oversampled", "args": file_("sharegpt", "sharegpt.json"), "sizes": (150, 230)},
    {"name": "sharegpt/no-oversample", "sizes": (150, 230),
     "args": file_("sharegpt", "sharegpt.json", "--no-oversample")},
    {"name": "sharegpt/output-len", "sizes": (10, 150),
     "args": file_("sharegpt", "sharegpt.json", "--sharegpt-output-len", "1", "--disable-shuffle")},
    {"name": "sharegpt/media", "args": file_("sharegpt", "sharegpt_media.json", *CHAT), "sizes": (20, 120)},
    {"name": "sharegpt/media-chat", "sizes": (20, 120),
     "args": file_("sharegpt", "sharegpt_media.json", *CHAT, *MM)},
    # ---- custom, custom_image, custom_audio ----
    {"name": "custom/plain", "args": file_("custom", "custom.jsonl", *PLAIN), "sizes": (10, 0),
     "on": BOTH},
    {"name": "custom/templated", "args": file_("custom", "custom.jsonl"), "sizes": (10, 50), "on": BOTH},
    {"name": "custom/own-lengths", "sizes": (10, 80),
     "args": file_("custom", "custom_float.jsonl", "--custom-output-len", "-1", *PLAIN)},
    {"name": "custom/blank-lines", "sizes": (10, -1),
     "args": file_("custom", "custom_blank.jsonl", *PLAIN, "--disable-shuffle")},
    {"name": "custom/no-oversample", "sizes": (30, 80),
     "args": file_("custom", "custom.jsonl", *PLAIN, "--no-oversample", "--output-len", "3")},
    {"name": "custom/no-tokenizer", "sizes": (10, 70),
     "args": file_("custom", "custom.jsonl", "--skip-tokenizer-init")},
    {"name": "custom_image/files", "sizes": (10, 60), "on": BOTH,
     "args": file_("custom_image", "custom_image_a.jsonl", *CHAT)},
    {"name": "custom_image/files-chat", "sizes": (10, 0),
     "args": file_("custom_image", "custom_image_a.jsonl", *CHAT, *MM)},
    {"name": "custom_image/content", "sizes": (10, 60), "on": BOTH,
     "args": file_("custom_image", "custom_image_b.jsonl", *CHAT, "--custom-output-len", "7")},
    {"name": "custom_image/content-chat", "sizes": (10, 0),
     "args": file_("custom_image", "custom_image_b.jsonl", *CHAT, *MM)},
    {"name": "custom_image/mixed", "sizes": (10, 100),
     "args": file_("custom_image", "custom_image_mixed.jsonl", *CHAT, "--disable-shuffle")},
    {"name": "custom_image/inline", "sizes": (10, 40), "args": file_(
        "custom_image", "custom_image_local.jsonl", *CHAT, "--custom-ensure-client-side-data")},
    {"name": "custom_image/bmp", "sizes": (1,), "seeds": (0,),
     "only": "of picture formats ours has JPEG, PNG, WebP and GIF", "args": file_(
         "custom_image", "custom_image_bmp.jsonl", *CHAT, "--custom-ensure-client-side-data")},
    {"name": "custom_image/no-tokenizer", "sizes": (5, 50), "args": file_(
        "custom_image", "custom_image_mixed.jsonl", *CHAT, "--skip-tokenizer-init")},
    {"name": "custom_audio/upload", "sizes": (8, 40), "on": BOTH,
     "args": file_("custom_audio", "custom_audio.jsonl")},
    {"name": "custom_audio/chat", "sizes": (8, 0),
     "args": file_("custom_audio", "custom_audio.jsonl", *CHAT, *MM, "--custom-output-len", "-1")},
    {"name": "custom_audio/arrays", "sizes": (8, 40),
     "args": file_("custom_audio", "custom_audio_array.jsonl", *CHAT, *MM)},
    {"name": "custom_audio/arrays-upload", "sizes": (8, 24),
     "args": file_("custom_audio", "custom_audio_array.jsonl")},
    # ---- spec_bench, speed_bench ----
    {"name": "spec_bench/all", "args": file_("spec_bench", "question.jsonl"), "sizes": (20, 0),
     "on": BOTH},
    {"name": "spec_bench/category", "sizes": (10, 40),
     "args": file_("spec_bench", "question.jsonl", "--spec-bench-category", "math",
                   "--spec-bench-output-len", "11")},
    {"name": "spec_bench/unshuffled", "sizes": (20, 0),
     "args": file_("spec_bench", "question.jsonl", "--disable-shuffle", "--output-len", "5")},
    {"name": "speed_bench/qualitative", "sizes": (20, 100), "on": BOTH,
     "args": file_("speed_bench", "speed", *PLAIN)},
    {"name": "speed_bench/throughput", "sizes": (20, 0), "args": file_(
        "speed_bench", "speed", "--speed-bench-dataset-subset", "throughput_1k",
        "--speed-bench-category", "rag", "--speed-bench-output-len", "77", "--output-len", "5")},
    # ---- timed_trace ----
    {"name": "timed_trace/mooncake", "args": file_("timed_trace", "mooncake.jsonl", *MOONCAKE),
     "sizes": (10, 60), "on": BOTH, "differs": NO_HASH},
    {"name": "timed_trace/qwen", "args": file_("timed_trace", "qwen_trace.jsonl", *TRACE),
     "sizes": (10, 99), "differs": NO_HASH},
    {"name": "timed_trace/not-self-timed", "sizes": (10, 60), "differs": NO_HASH,
     "args": file_("timed_trace", "qwen_trace.jsonl", *TRACE, "--no-self-timed")},
    {"name": "timed_trace/wrong-label", "sizes": (4,), "seeds": (0,), "refused": True,
     "args": file_("timed_trace", "qwen_trace.jsonl")},
    # ---- hf ----
    {"name": "hf-VisionArena/chat", "args": hub("lmarena-ai/VisionArena-Chat", *CHAT),
     "sizes": (10, 60), "on": BOTH},
    {"name": "hf-VisionArena/no-stream", "sizes": (10, 60),
     "args": hub("lmarena-ai/VisionArena-Chat", *CHAT, *MM, "--no-stream")},
    {"name": "hf-VisionArena/oversampled", "sizes": (170,),
     "args": hub("lmarena-ai/VisionArena-Chat", *CHAT, "--hf-output-len", "9")},
    {"name": "hf-VisionArena/bench", "args": hub("lmarena-ai/vision-arena-bench-v0.1", *CHAT),
     "sizes": (10, 60), "differs": {"media": UPRIGHT}},
    {"name": "hf-MMVU/stream", "args": cached("yale-nlp/MMVU", *CHAT), "sizes": (10, 70), "on": BOTH},
    {"name": "hf-MMVU/chat", "sizes": (10, 70),
     "args": cached("yale-nlp/MMVU", *CHAT, *MM, "--no-stream")},
    {"name": "hf-MMStar/stream", "args": hub("Lin-Chen/MMStar", *CHAT), "sizes": (10, 70), "on": BOTH},
    {"name": "hf-MMStar/chat", "args": hub("Lin-Chen/MMStar", *CHAT, *MM, "--no-stream"),
     "sizes": (10, 80)},
    {"name": "hf-LLaVA/stream", "sizes": (10, 60), "on": BOTH,
     "args": hub("lmms-lab/LLaVA-OneVision-Data", *CHAT, "--hf-split", "train")},
    {"name": "hf-LLaVA/output-len", "sizes": (10, 140), "args": hub(
        "lmms-lab/LLaVA-OneVision-Data", *CHAT, *MM, "--hf-split", "train", "--hf-output-len", "3")},
    {"name": "hf-InstructCoder/stream", "args": hub("likaixin/InstructCoder"), "sizes": (10, 90),
     "on": BOTH},
    {"name": "hf-InstructCoder/no-stream", "sizes": (10, 1500),
     "args": hub("likaixin/InstructCoder", "--no-stream", *PLAIN)},
    {"name": "hf-InstructCoder/valid", "sizes": (10, 20),
     "args": hub("likaixin/InstructCoder", "--hf-split", "validation", "--disable-shuffle")},
    {"name": "hf-MTBench/stream", "args": hub("philschmid/mt-bench"), "sizes": (10, 80), "on": BOTH},
    {"name": "hf-MTBench/oversampled", "sizes": (90,),
     "args": hub("philschmid/mt-bench", *PLAIN, "--output-len", "6")},
    {"name": "hf-HumanEval/stream", "args": hub("openai/openai_humaneval"), "sizes": (10, 170),
     "on": BOTH},
    {"name": "hf-GSM8K/stream", "args": hub("openai/gsm8k", *PLAIN), "sizes": (10, 1250), "on": BOTH},
    {"name": "hf-GSM8K/no-stream", "args": hub("openai/gsm8k", "--no-stream"), "sizes": (10, 300)},
    {"name": "hf-GSM8K/socratic", "args": hub("openai/gsm8k", "--hf-subset", "socratic"),
     "sizes": (10, 30)},
    {"name": "hf-GSM8K/train", "sizes": (10, 40),
     "args": hub("openai/gsm8k", "--hf-split", "train", "--no-oversample", "--disable-shuffle")},
    {"name": "hf-Conversation/stream", "sizes": (10, 500), "on": BOTH,
     "args": hub("Aeala/ShareGPT_Vicuna_unfiltered", "--hf-split", "train")},
    {"name": "hf-Conversation/no-stream", "sizes": (10, 900), "args": hub(
        "Aeala/ShareGPT_Vicuna_unfiltered", "--hf-split", "train", "--no-stream", "--hf-output-len", "5")},
    {"name": "hf-Conversation/chat", "sizes": (10, 40), "args": hub(
        "Aeala/ShareGPT_Vicuna_unfiltered", "--hf-split", "train", *MM, *CHAT, "--disable-shuffle")},
    {"name": "hf-AIMO/aime", "args": hub("AI-MO/aimo-validation-aime"), "sizes": (10, 100), "on": BOTH},
    {"name": "hf-AIMO/numina", "args": hub("AI-MO/NuminaMath-CoT"), "sizes": (10, 1700)},
    {"name": "hf-AIMO/no-stream", "sizes": (10, 300),
     "args": hub("AI-MO/NuminaMath-CoT", "--no-stream", "--hf-output-len", "3")},
    {"name": "hf-Zeta/stream", "args": hub("zed-industries/zeta"), "sizes": (10, 140), "on": BOTH},
    {"name": "hf-Zeta/eval", "sizes": (5, 20),
     "args": hub("zed-industries/zeta", "--hf-split", "test", "--hf-output-len", "4")},
    {"name": "hf-ASR/librispeech", "sizes": (10, 60), "on": BOTH, "args": hub(
        "openslr/librispeech_asr", *AUDIO, "--hf-split", "test", "--hf-subset", "default")},
    {"name": "hf-ASR/window", "sizes": (10, 100), "args": hub(
        "openslr/librispeech_asr", *AUDIO, "--hf-split", "test", "--asr-min-audio-len-sec", "0.7",
        "--asr-max-audio-len-sec", "1.5", "--hf-output-len", "40")},
    {"name": "hf-ASR/voxpopuli", "sizes": (10, 50), "args": hub("facebook/voxpopuli", *AUDIO)},
    {"name": "hf-ASR/earnings22", "sizes": (5, 20),
     "args": cached("ArtificialAnalysis/Earnings22-Cleaned-AA", *AUDIO, "--hf-split", "test")},
    {"name": "hf-Blazedit/stream", "sizes": (10, 90), "on": BOTH,
     "args": ["--dataset-name", "hf", "--dataset-path", "vdaita/edit_5k_char"]},
    {"name": "hf-Blazedit/window", "sizes": (5, 20), "args": [
        "--dataset-name", "hf", "--dataset-path", "vdaita/edit_10k_char", *PLAIN, "--no-stream",
        "--blazedit-min-distance", "0.2", "--blazedit-max-distance", "0.8"]},
    {"name": "hf-MLPerf/stream", "sizes": (10, 80), "on": BOTH,
     "args": hub("mgoin/mlperf-inference-llama2-data")},
    {"name": "hf-MLPerf/output-len", "sizes": (10, 150),
     "args": hub("mgoin/mlperf-inference-llama2-data", "--hf-output-len", "6", "--no-stream")},
    {"name": "hf-BFCL/default", "sizes": (10, 75), "on": BOTH, "differs": NO_TOOLS, "args": [
        "--dataset-name", "hf", "--dataset-path", "gorilla-llm/Berkeley-Function-Calling-Leaderboard",
        *CHAT]},
    {"name": "hf-BFCL/categories", "sizes": (10, 60), "differs": NO_TOOLS, "args": [
        "--dataset-name", "hf", "--dataset-path", "gorilla-llm/Berkeley-Function-Calling-Leaderboard",
        *CHAT, "--bfcl-categories", "parallel, simple,", "--disable-shuffle", "--hf-output-len", "8"]},
    {"name": "hf-BFCL/backend", "sizes": (5,), "seeds": (0,), "refused": True, "args": [
        "--dataset-name", "hf", "--dataset-path", "gorilla-llm/Berkeley-Function-Calling-Leaderboard"]},
    {"name": "hf/unknown", "sizes": (5,), "seeds": (0,),
     "only": "any data with text are read, by the names of their columns", "args": [
         "--dataset-name", "hf", "--dataset-path", "{data}/hub/openai/gsm8k"]},
]
