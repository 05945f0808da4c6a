# SPDX-License-Identifier: Apache-2.0
"""The command lines that both clients are given. Rows, no code.

In arguments, {model} is the model directory, {data} the made data files and
{port} the server's port; what every case has in common is in COMMON. A case:

  args    arguments of `bench serve`
  sim     more arguments of `profllm sim`
  env     environment variables
  tap     also compare the header fields, through a recording relay
  order   requests must arrive in the order of their index
  exit    the two exit statuses, where they differ by decision
  before  files that stand in the result directory already: name, text
  no_model, is_other_model   leave --model to discovery; serve the other model
  plain   keep COMMON_FILE out (the case names its own files)
"""

COMMON = ["--host", "127.0.0.1", "--port", "{port}", "--request-id-prefix", "peer-"]
COMMON_MODEL = ["--model", "{model}"]
COMMON_FILE = ["--save-result", "--save-detailed", "--result-dir", "{dir}",
               "--result-filename", "result.json"]

CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
RANDOM = ["--dataset-name", "random", "--random-input-len", "40", "--random-output-len", "6"]
SHAREGPT = ["--dataset-name", "sharegpt", "--dataset-path", "{data}/sharegpt.json"]
CUSTOM = ["--dataset-name", "custom", "--dataset-path", "{data}/custom.jsonl",
          "--skip-chat-template"]
ALL_METRICS = ["--percentile-metrics",
               "ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue",
               "--metric-percentiles", "50,90,99.9"]
SAMPLING = ["--top-p", "0.9", "--top-k", "7", "--min-p", "0.05", "--temperature", "0",
            "--frequency-penalty", "0.5", "--presence-penalty", "1", "--repetition-penalty", "1.1"]
LORA = ["--lora-modules", "red", "green", "blue"]
LORA_SIM = ["--served-model-name", "{model}", "red", "green", "blue"]

CASES = [
    {"name": "defaults", "args": ["--num-prompts", "60"]},
    {"name": "random", "args": [*RANDOM, "--num-prompts", "40"]},
    {"name": "random-one-by-one", "order": True,
     "args": [*RANDOM, "--num-prompts", "12", "--max-concurrency", "1", *ALL_METRICS]},
    {"name": "random-range", "args": [*RANDOM, "--num-prompts", "40", "--seed", "7",
     "--random-range-ratio", "0.5", "--random-prefix-len", "12", "--request-rate", "40"]},
    {"name": "random-range-pair", "args": [*RANDOM, "--num-prompts", "30", "--seed", "4294967295",
     "--random-range-ratio", '{{"input": 0.3, "output": 0.7}}', "--request-rate", "20",
     "--burstiness", "0.5"]},
    {"name": "random-long", "args": ["--dataset-name", "random", "--input-len", "700",
     "--output-len", "3", "--num-prompts", "12", "--seed", "123", "--temperature", "0.25"]},
    {"name": "even", "args": [*RANDOM, "--num-prompts", "20", "--request-rate", "20",
     "--burstiness", "inf", "--max-concurrency", "3", *ALL_METRICS]},
    {"name": "gamma-smooth", "args": [*RANDOM, "--num-prompts", "25", "--request-rate", "33.3",
     "--burstiness", "4", "--seed", "99"]},
    {"name": "ramp-linear", "args": [*RANDOM, "--num-prompts", "40", "--ramp-up-strategy", "linear",
     "--ramp-up-start-rps", "5", "--ramp-up-end-rps", "60", "--label", "ramp"]},
    {"name": "ramp-exponential", "args": [*RANDOM, "--num-prompts", "30", "--ramp-up-strategy",
     "exponential", "--ramp-up-start-rps", "4", "--ramp-up-end-rps", "50", "--burstiness", "2",
     "--max-concurrency", "4"]},
    {"name": "sharegpt-oversampled", "args": [*SHAREGPT, "--num-prompts", "90", "--seed", "3"]},
    {"name": "sharegpt-few", "args": [*SHAREGPT, "--num-prompts", "9", "--disable-shuffle"]},
    {"name": "sharegpt-output-len", "args": [*SHAREGPT, *CHAT, "--num-prompts", "50",
     "--sharegpt-output-len", "3", "--no-oversample", "--seed", "11"]},
    {"name": "custom-own-lengths", "args": [*CUSTOM, "--num-prompts", "40", "--custom-output-len",
     "-1", "--seed", "5"]},
    {"name": "custom-all-rows", "args": [*CUSTOM, *CHAT, "--num-prompts", "0",
     "--custom-output-len", "4", "--ignore-eos"]},
    {"name": "custom-without-tokenizer", "args": [*CUSTOM, "--num-prompts", "10",
     "--skip-tokenizer-init", "--percentile-metrics", "ttft,tpot,itl,e2el"]},
    {"name": "chat-sampling", "tap": True, "env": {"OPENAI_API_KEY": "key-1"},
     "args": [*RANDOM, *CHAT, "--num-prompts", "8", *SAMPLING, "--header", "X-One=a=b", " X-Two = c ",
     "--extra-body", '{{"min_tokens": 2, "top_p": 0.5, "note": "é \\u0001 /"}}']},
    {"name": "completions-fields", "tap": True, "env": {"OPENAI_API_KEY": "key-1"},
     "sim": ["--served-model-name", "{model}", "alias"],
     "args": [*RANDOM, "--num-prompts", "8", "--served-model-name", "alias", "--logprobs", "2",
     "--header", "Authorization=Bearer other", "Content-Type=application/json; charset=utf-8",
     "--extra-body.nested.deep", "3", "--extra-body.max_tokens", "2", "--disable-tqdm"]},
    {"name": "metadata", "args": [*RANDOM, "--num-prompts", "6", "--metadata", "gpu=H200", "a=b=c",
     "backend=mine", "completed=early", "--goodput", "ttft:500", "e2el:1000", "tpot:0.001",
     "--percentile-metrics", "e2el,ttft", "--metric-percentiles", "0,50,90,99.9,100"]},
    {"name": "lora-random", "sim": LORA_SIM, "args": [*RANDOM, *LORA, "--num-prompts", "30"]},
    {"name": "lora-after-shuffle", "sim": LORA_SIM,
     "args": [*SHAREGPT, *LORA, "--num-prompts", "60", "--seed", "21"]},
    {"name": "lora-round-robin", "sim": LORA_SIM,
     "args": [*CUSTOM, *LORA, "--num-prompts", "11", "--lora-assignment", "round-robin"]},
    {"name": "ready-and-warm", "tap": True, "args": [*RANDOM, "--num-prompts", "5",
     "--ready-check-timeout-sec", "20", "--num-warmups", "3", "--max-concurrency", "2"]},
    {"name": "discovered-model", "no_model": True, "args": [*RANDOM, "--num-prompts", "5"]},
    {"name": "other-model-random", "is_other_model": True, "args": [*RANDOM, "--num-prompts", "40",
     "--random-prefix-len", "7", "--random-range-ratio", "0.9", "--seed", "1000000007"]},
    {"name": "other-model-sharegpt", "is_other_model": True,
     "args": [*SHAREGPT, "--num-prompts", "70", "--seed", "42", "--request-rate", "100"]},
    {"name": "other-tokenizer",
     "args": [*RANDOM, "--num-prompts", "20", "--tokenizer", "{other}"]},
    {"name": "some-refused", "sim": ["--fault", "status=503:id=peer-1*"],
     "args": [*RANDOM, "--num-prompts", "24"]},
    {"name": "all-refused", "sim": ["--fault", "status=500:1"], "exit": (0, 1),
     "args": [*RANDOM, "--num-prompts", "12"]},
    {"name": "appended", "before": {"result.json": '{"an": "earlier run"}'},
     "args": [*RANDOM, "--num-prompts", "4", "--append-result"]},
    {"name": "generated-name", "plain": True, "args": [*RANDOM, "--num-prompts", "4",
     "--request-rate", "50", "--max-concurrency", "2", "--append-result", "--result-dir", "{dir}"]},
    {"name": "generated-name-ramp", "plain": True, "args": [*RANDOM, "--num-prompts", "4",
     "--label", "L", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "20",
     "--ramp-up-end-rps", "40", "--save-result", "--result-dir", "{dir}"]},
]

# Command lines that upstream refuses: (arguments, both exit statuses). Upstream's sentence must
# stand in ours, but for usage errors (2) and rows marked OWN: there it names no option, or is
# the text of a crash.
OWN = True
REFUSED = [
    (["--max-concurrency", "0"], (1, 1)),
    (["--request-rate", "0"], (1, 1)),
    (["--request-rate", "-1"], (1, 1)),
    (["--burstiness", "0"], (1, 1)),
    (["--burstiness=-2"], (1, 1)),
    (["--header", "nonsense"], (1, 1)),
    (["--metadata", "nonsense"], (1, 1)),
    (["--goodput", "ttft"], (1, 1)),
    (["--goodput", "ttft:x"], (1, 1)),
    (["--goodput", "itl:3"], (1, 1)),
    (["--goodput", "ttft:-1"], (1, 1)),
    (["--metric-percentiles", "101"], (1, 1)),
    (["--metric-percentiles", "x"], (1, 1)),
    (["--ramp-up-strategy", "linear", "--request-rate", "3"], (1, 1)),
    (["--ramp-up-strategy", "linear"], (1, 1)),
    (["--ramp-up-strategy", "linear", "--ramp-up-start-rps=-1", "--ramp-up-end-rps", "2"], (1, 1)),
    (["--ramp-up-strategy", "linear", "--ramp-up-start-rps", "5", "--ramp-up-end-rps", "2"], (1, 1)),
    (["--ramp-up-strategy", "exponential", "--ramp-up-start-rps", "0", "--ramp-up-end-rps", "2"],
     (1, 1)),
    (["--self-timed"], (1, 1)),
    (["--dataset-path", "x.json"], (1, 1)),
    (["--dataset-name", "sharegpt"], (1, 1), OWN),
    (["--dataset-name", "custom", "--dataset-path", "x.json"], (1, 1), OWN),
    (["--dataset-name", "sharegpt", "--dataset-path", "/nowhere.json"], (1, 1), OWN),
    (["--random-range-ratio", "1.0"], (1, 1), OWN),
    (["--random-range-ratio", '{{"input": 0.1}}'], (1, 1), OWN),
    (["--random-input-len", "0"], (1, 1), OWN),
    (["--num-prompts", "0"], (1, 1), OWN),
    (["--backend", "openai-chat"], (1, 1)),
    (["--backend", "nope"], (2, 2)),
    (["--num-prompts", "x"], (2, 2)),
    (["--extra-body", "{{"], (2, 2)),
    (["--nonsense"], (2, 2)),
    (["--num"], (2, 2)),
    (["--lora-assignment", "z"], (2, 2)),
]
