#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo-run.sh: whole experiments from one file each, on the simulator.
#
# A first experiment and its document; then a suite of four, two values of each of two settings, and
# what they change. All output is in $O/demo-run. No GPU is needed; with one, leave out `command:
# sim`.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/demo-run
step() { printf '\n== %s\n' "$*"; }
run() {
	printf '$ profllm'
	printf ' %q' "$@"
	printf '\n'
	"$PROFLLM" "$@"
}

rm -rf "$dir"
mkdir -p "$dir"

step "one experiment: GPUs and port, server, load, what the machine did, a document"
run run --config examples/quickstart.yaml --output "$dir/quickstart.json" --progress none

step "what the document holds, in part"
grep -E '^  "|"(verdict|output_throughput|median_ttft_ms|startup_s|kernel|engine_commit)"' \
	"$dir/quickstart.json" | cut -c1-100

cat >"$dir/suite.yaml" <<'EOT'
suite: budgets
server: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, gpu: h100-80gb, max_model_len: 4096}
benchmark:
  tokenizer: sim
  dataset_name: random
  random_input_len: 1024
  random_output_len: 32
  ignore_eos: true
  num_prompts: 48
  max_concurrency: 16
matrix:
  server.max_num_batched_tokens: [1024, 8192]
  server.max_num_seqs: [8, 64]
EOT
step "a suite of four: would it work?"
run run --config "$dir/suite.yaml" --output "$dir/suite.json" --check --only '*=1024-max_num_seqs=8'

step "all four of it"
run run --config "$dir/suite.yaml" --output "$dir/suite.json" --progress none | grep -E '^(\[|Suite)'

step "what more sequences change, for each token budget"
run bench compare "$dir/suite.json" --by max_num_seqs --metrics output_throughput,median_ttft_ms,p99_itl_ms

step "what is left"
find "$dir" -name '*.json' | sort | sed 's/^/  /'
printf 'Next: docs/guide/experiments.md; examples/ has a configuration for each question.\n'
