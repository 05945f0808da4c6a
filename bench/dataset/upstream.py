# SPDX-License-Identifier: Apache-2.0
"""Time upstream's own get_samples() for random prompts, and what they are.

usage: upstream.py MODEL_DIR INPUT_LEN N   ->  one line of JSON

Imports, the tokenizer and a first prompt stand before the clock.
"""

import hashlib
import json
import logging
import os
import resource
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")

import vllm.benchmarks.serve as serve
from vllm.utils.argparse_utils import FlexibleArgumentParser


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    model, length, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    logging.disable(logging.WARNING)
    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    args = parser.parse_args(["--model", model, "--random-input-len", length, "--num-prompts", "1"])
    tokenizer = serve.get_tokenizer(model)
    serve.get_samples(args, tokenizer)
    args.num_prompts = n
    start, used = time.perf_counter(), cpu_s()
    requests = serve.get_samples(args, tokenizer)
    wall, used = time.perf_counter() - start, cpu_s() - used
    text = "".join(r.prompt for r in requests)
    print(json.dumps({"wall": wall, "cpu": used, "n": len(requests),
                      "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "sha": hashlib.sha256(text.encode()).hexdigest()}))


if __name__ == "__main__":
    main()
