#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo-store.sh: a results store with 200 runs of simulated engines in it, and how to look at them.
#
# 140 runs are a grid: five kinds of GPU, four sizes of tensor parallelism, seven concurrencies. 60 are
# the history of an engine: 20 commits, three runs of each, and from the thirteenth on a decoding step takes a
# quarter longer. What make demo measured is put in too, when it is there.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/demo/store
step() { printf '\n== %s\n' "$*"; }
# An unfinished suite goes on where it was. What its members warn of is in a log.
suite() {
	"$PROFLLM" run --config "$dir/$1.yaml" --output "$dir/$1.json" --progress none --resume \
		>"$dir/$1.out" 2>"$dir/$1.log" || { tail -n 5 "$dir/$1.log" >&2; exit 1; }
	grep -E '^(Suite|Document)' "$dir/$1.out"
}

mkdir -p "$dir"
cat >"$dir/grid.yaml" <<'EOT'
suite: gpus
jobs: 4
server: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, max_model_len: 4096}
benchmark:
  tokenizer: sim
  dataset_name: random
  random_input_len: 256
  random_output_len: 12
  ignore_eos: true
  temperature: 0
  num_prompts: 64
matrix:
  server.gpu: [h100-80gb, h200-141gb, a100-80gb, mi300x-192gb, b200-192gb]
  server.tensor_parallel_size: [1, 2, 4, 8]
  benchmark.max_concurrency: [1, 2, 4, 8, 16, 32, 64]
EOT
{
	cat <<-'EOT'
	suite: commits
	repeat: 3
	jobs: 4
	server: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, max_model_len: 4096, gpu: h100-80gb}
	benchmark:
	  tokenizer: sim
	  dataset_name: random
	  random_input_len: 256
	  random_output_len: 24
	  ignore_eos: true
	  temperature: 0
	  num_prompts: 32
	  max_concurrency: 8
	experiments:
	EOT
	for i in $(seq 20); do
		printf '  - {name: commit-%02d,' "$i"
		printf ' provenance: {engine_commit: "%07x"},' $((0xa1b2c3 + i * 7919))
		printf ' server: {decode_base_us: %d}}\n' $((i > 12 ? 7500 : 6000))
	done
} >"$dir/commits.yaml"

step "200 runs of simulated engines, a minute or two: a grid of GPUs, the history of an engine"
suite grid
suite commits

step "the store"
[ ! -f "$O/demo/result.json" ] || set -- "$O/demo/result.json"
"$PROFLLM" ingest --store "$dir/runs.db" "$@" "$dir/grid.json" "$dir/commits.json" | tail -n 1
printf '  %-38s %s\n' "$dir/runs.db" "every parameter and metric of every run, and its document"

step "the dashboard on it"
printf '  %s dashboard --store %s\n' "$PROFLLM" "$dir/runs.db"
printf 'then open the URL that it prints in a browser: its first page is the Overview, with the best\n'
printf 'configuration at each load and the slower commit. Next: docs/guide/dashboard.md.\n'
