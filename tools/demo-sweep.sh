#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo-sweep.sh: which settings of a server are best, and how much load they carry.
#
# A sweep over two server options and the load, a search for the highest load within two limits,
# plots and the Pareto frontier, all on the simulator's model of an 8B model on one GPU. All output
# is in $O/demo-sweep. Each server is started and stopped by the program.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/demo-sweep
step() { printf '\n== %s\n' "$*"; }
run() {
	printf '$ profllm'
	printf ' %q' "$@"
	printf '\n'
	"$PROFLLM" "$@"
}
# A port that is free now; the simulator is asked for one and stopped.
free_port() {
	rm -f "$dir/port"
	"$PROFLLM" sim --port 0 --port-file "$dir/port" >"$dir/port.log" 2>&1 &
	for _ in $(seq 100); do [ -s "$dir/port" ] && break; sleep 0.05; done
	kill $! && wait $! 2>/dev/null || true
	cat "$dir/port"
}

rm -rf "$dir"
mkdir -p "$dir"
port=$(free_port)
serve="$PROFLLM sim --model demo --model-shape qwen3-8b --gpu h100-80gb --max-model-len 4096 --port $port"
bench="vllm bench serve --model demo --tokenizer sim --port $port --dataset-name random"
bench="$bench --random-input-len 1024 --random-output-len 64 --ignore-eos --temperature 0 --progress none"

cat >"$dir/serve.json" <<'EOF'
[{"max_num_seqs": 16, "max_num_batched_tokens": 1024}, {"max_num_seqs": 16, "max_num_batched_tokens": 8192},
 {"max_num_seqs": 128, "max_num_batched_tokens": 1024}, {"max_num_seqs": 128, "max_num_batched_tokens": 8192}]
EOF
cat >"$dir/load.json" <<'EOF'
[{"max_concurrency": 4, "num_prompts": 24}, {"max_concurrency": 16, "num_prompts": 64},
 {"max_concurrency": 64, "num_prompts": 128}]
EOF
cat >"$dir/limits.json" <<'EOF'
[{"p99_ttft_ms": "<=400", "p99_itl_ms": "<=60"}, {"p99_ttft_ms": "<=1000"}]
EOF
cat >"$dir/budgets.json" <<'EOF'
{"small": {"max_num_batched_tokens": 1024}, "large": {"max_num_batched_tokens": 8192}}
EOF

step "sweep: max_num_seqs x max_num_batched_tokens x concurrency"
run bench sweep serve --serve-cmd "$serve" --serve-params "$dir/serve.json" --bench-cmd "$bench" \
	--bench-params "$dir/load.json" --num-runs 1 -o "$dir" -e grid

step "plots: latency against throughput, speed per user against speed per GPU"
run bench sweep plot "$dir/grid" --var-x output_throughput --var-y p99_itl_ms --col-by max_num_seqs \
	--curve-by max_num_batched_tokens --fig-dpi 100
run bench sweep plot_pareto "$dir/grid"

step "search: the highest request rate within limits"
run bench sweep serve_sla --serve-cmd "$serve --max-num-seqs 128 --max-num-batched-tokens 1024" \
	--bench-cmd "$bench --num-prompts 100" --sla-params "$dir/limits.json" --num-runs 1 \
	-o "$dir" -e search

step "comparison: what a larger token budget changes, by five runs of each"
run bench sweep serve --serve-cmd "$serve" --serve-params "$dir/budgets.json" --restart run \
	--bench-cmd "$bench --num-prompts 48 --max-concurrency 16" --num-runs 5 -o "$dir" -e budgets
run bench compare "$dir/budgets/SERVE--small" "$dir/budgets/SERVE--large"

step "what is left"
find "$dir" \( -name '*.png' -o -name summary.csv -o -name capacity.json \) | sort | sed 's/^/  /'
printf 'Next: docs/guide/sweeps.md sweeps a server of yours.\n'
