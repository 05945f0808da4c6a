#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo-offline.sh: the four offline modes on the simulated engine, with its own account.
#
# The engine is the simulator's model of an 8B model on one GPU, in a worker program of its own; a
# real one replaces it with another --backend. All output is in $O/demo-offline.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/demo-offline
step() { printf '\n== %s\n' "$*"; }
run() {
	printf '$ profllm'
	printf ' %q' "$@"
	printf '\n'
	"$PROFLLM" "$@"
}
engine=(--backend sim --model demo --tokenizer sim --gpu h100-80gb
	--model-shape llama-3.1-8b --max-model-len 8192)

rm -rf "$dir"
mkdir -p "$dir"

step "throughput: all prompts at once"
run bench throughput "${engine[@]}" --dataset-name random --random-input-len 512 --random-output-len 64 \
	--num-prompts 200 --num-warmups 8 --account "$dir/account.jsonl" --output-json "$dir/throughput.json"

step "what the simulated engine itself counted"
cat "$dir/account.jsonl"

step "latency: one batch, again and again"
run bench latency "${engine[@]}" --input-len 128 --output-len 32 --batch-size 8 --num-iters-warmup 2 \
	--num-iters 10 --output-json "$dir/latency.json"

step "start-up: with empty caches, and with full ones"
VLLM_CACHE_ROOT=$dir/cache run bench startup "${engine[@]}" --startup-scale 0.02 --num-iters-cold 2 \
	--num-iters-warmup 1 --num-iters-warm 2 --output-json "$dir/startup.json"

step "multimodal processor: the stages before and in the encoder"
run bench mm-processor "${engine[@]}" --num-prompts 4 --random-input-len 32 --random-output-len 8 \
	--random-mm-bucket-config '{(256, 256, 1): 1.0}' --output-json "$dir/mm.json"

step "made"
ls "$dir"
