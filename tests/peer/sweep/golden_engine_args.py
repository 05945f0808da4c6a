# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/engine_golden.h: how vLLM's own parser reads arguments of `vllm serve`.

    VENV/bin/python tests/peer/sweep/golden_engine_args.py >tests/unit/engine_golden.h

Needs an installed vLLM (0.32.0 was used); the header is committed, so nothing else does. A
row: the arguments, whether the parser takes them, and one value that results, as JSON. What
the parser takes and the engine refuses later (ranges) is not in the table.
"""
import contextlib
import io
import json
import sys

CASES = """
m -tp 2|tensor_parallel_size
m -tp=4|tensor_parallel_size
m --tensor-parallel-size=8|tensor_parallel_size
m --tensor_parallel_size 2|tensor_parallel_size
m --tensor_parallel-size=2|tensor_parallel_size
m --tensor-parallel 3|tensor_parallel_size
m -tp 2 -tp 4|tensor_parallel_size
m -tp|
m -tp4|
m -tp x|
m -tp 2.0|
m -pp 2|pipeline_parallel_size
m -dp 3|data_parallel_size
m -n 2|nnodes
m -n2|nnodes
m --tp 2|
m -q awq|quantization
m -qawq|quantization
m --quant awq|
m --quantization=fp8|quantization
m --seed 1_000|seed
m --seed -5|seed
m --seed None|
m --seed 1e3|
m --max-num-seqs 64|max_num_seqs
m --max_num_seqs=64|max_num_seqs
m --max-num-batched-tokens 4k|max_num_batched_tokens
m --max-num-batched-tokens 4K|max_num_batched_tokens
m --max-num-batched-tokens 2.5k|max_num_batched_tokens
m --max-num-batched-tokens 1.5K|
m --max-num-batched-tokens 1M|max_num_batched_tokens
m --max-num-batched-tokens 12kb|
m --max-num-batched 8192|max_num_batched_tokens
m --max-num 8192|
m --max-model-len 32k|max_model_len
m --max-model-len auto|max_model_len
m --max-model-len AUTO|max_model_len
m --max-model-len -1|max_model_len
m --max-model-len none|
m --kv-cache-memory-bytes 1g|kv_cache_memory_bytes
m --kv-cache-memory-bytes None|kv_cache_memory_bytes
m --gpu-memory-utilization 0.8|gpu_memory_utilization
m --gpu_memory_utilization=.5|gpu_memory_utilization
m --device-memory-utilization 0.7|gpu_memory_utilization
m --gpu-memory-utilization half|
m --dtype bfloat16|dtype
m --dtype fp4|
m --dtype=|
m --max-lora-rank 64|max_lora_rank
m --max-lora-rank 7|
m --kv-cache-dtype fp8_e4m3|kv_cache_dtype
m --kv-cache-dtype fp16|
m --moe-backend DEEP-GEMM|moe_backend
m --moe-backend nope|
m --enable-lora|enable_lora
m --no-enable-lora|enable_lora
m --no_enable_lora|enable_lora
m --enable-lora true|
m --enable-lora=true|
m --no-enable-lora=1|
m --enable-prefix-caching --no-enable-prefix-caching|enable_prefix_caching
m --no-enable-prefix-c|enable_prefix_caching
m --enable-prefix|enable_prefix_caching
m --no-tensor-parallel-size 2|
m --headless|headless
m --headless=1|
m --no-headless|
m --enforce-eager|enforce_eager
m --speculative-config.num_speculative_tokens 3|speculative_config
m --speculative-config.num_speculative_tokens=3 --speculative-config.method ngram|speculative_config
m --speculative_config.num_speculative_tokens 3|speculative_config
m --speculative-config {"method":"x"}|speculative_config
m --speculative-config {"method":"x"} --speculative-config.method y|speculative_config
m --speculative-config {bad|
m -sc.method ngram|speculative_config
m --limit-mm-per-prompt image=2|
m --limit-mm-per-prompt.image 2|limit_mm_per_prompt
m --override-generation-config {"temperature":0.5}|override_generation_config
m --override-generation-config.stop+ a,b|override_generation_config
m --override-generation-config.top_k 1k|override_generation_config
m --hf-overrides x.y|hf_overrides
m --hf-overrides {"a":1}|hf_overrides
m --hf-overrides {"a":}|
m --pt-load-map-location cuda|pt_load_map_location
m --allowed-origins ["a"]|allowed_origins
m --allowed-origins a|
m -O3|optimization_level
m -O 1|optimization_level
m -O=2|optimization_level
m -O {"mode":3}|
m --optimization-level 0|optimization_level
m --api-key a b|api_key
m --api-key a b --port 81|port
m --served-model-name a --port=81|port
m --served-model-name|
m --port x|
m --host 0.0.0.0|host
m --collect-detailed-traces model worker|collect_detailed_traces
m --collect-detailed-traces model,worker|
m --max-log-len None|max_log_len
m --hf-token|
m --hf-token --port 9|port
m --swap-space 4|
m --bogus 1|
m --bogus=1|
m extra|
m -1|
--model x|model
--port 81 m|model_tag
--uvicorn-log-level warning|uvicorn_log_level
m --uvicorn-log-level WARNING|
m --log-level INFO|log_level
m --cpu-offload-params a b|
m --attention-backend FLASH_ATTN|attention_backend
m --block-size 32|block_size
m --num-gpu-blocks-override None|num_gpu_blocks_override
m --watermark 0.01|watermark
m --scheduling-policy priority|scheduling_policy
m --scheduling-policy lifo|
m --async-scheduling|async_scheduling
m --no-async-scheduling|async_scheduling
m --cudagraph-capture-sizes 1 2 4|
m --distributed-executor-backend mp|distributed_executor_backend
""".strip().splitlines()


def plain(value):
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return str(value)


def main():
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Made by tests/peer/sweep/golden_engine_args.py with vLLM 0.32.0. */")
    print("#pragma once\n#include <stdbool.h>\n")
    print("static const struct {\n\tconst char *args;\n\tbool is_taken;\n"
          "\tconst char *name, *json;\n} engine_golden[] = {")
    for case in CASES:
        args, name = case.rsplit("|", 1)
        value = None
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                value = getattr(parser.parse_args(args.split(" ")), name) if name else (
                    parser.parse_args(args.split(" ")) and None)
            taken = True
        except (SystemExit, ValueError):
            taken = False
        text = json.dumps(plain(value)) if taken and name else ""
        row = [args, taken, name.replace("_", "-").removesuffix("-tag") if taken else "", text]
        print("\t{ " + ", ".join(json.dumps(x) for x in row) + " },")
    print("};")


if __name__ == "__main__":
    sys.exit(main())
