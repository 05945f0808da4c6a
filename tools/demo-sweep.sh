#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo-sweep.sh: which settings of a server are best, and how much load they carry.
#
# A sweep over two server options and the load, a search for the highest load within two limits,
# plots and the Pareto frontier, all on the simulator's model of an 8B model on one GPU.
# Everything it makes lies in $O/demo-sweep. Each server is started and stopped by the program.
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
# A port that nobody has now; the simulator is asked for one and stopped.
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
serve="$PROFLLM sim --model demo --model-shape qwen3-8b --gpu l4-24gb --max-model-len 4096 --port $port"
bench="vllm bench serve --model demo --tokenizer sim --port $port --dataset-name random"
bench="$bench --random-input-len 1024 --random-output-len 32 --ignore-eos --temperature 0"

cat >"$dir/serve.json" <<'EOF'
[{"max_num_seqs": 8, "max_num_batched_tokens": 1024}, {"max_num_seqs": 8, "max_num_batched_tokens": 4096},
 {"max_num_seqs": 64, "max_num_batched_tokens": 1024}, {"max_num_seqs": 64, "max_num_batched_tokens": 4096}]
EOF
cat >"$dir/load.json" <<'EOF'
[{"max_concurrency": 2, "num_prompts": 6}, {"max_concurrency": 8, "num_prompts": 16},
 {"max_concurrency": 32, "num_prompts": 64}]
EOF
cat >"$dir/limits.json" <<'EOF'
[{"p99_ttft_ms": "<=1500", "p99_itl_ms": "<=250"}, {"p99_ttft_ms": "<=4000"}]
EOF

step "sweep: max_num_seqs x max_num_batched_tokens x concurrency"
run bench sweep serve --serve-cmd "$serve" --serve-params "$dir/serve.json" --bench-cmd "$bench" \
	--bench-params "$dir/load.json" --num-runs 1 -o "$dir" -e grid

step "plots: latency against throughput"
run bench sweep plot "$dir/grid" --var-x output_throughput --var-y p99_itl_ms --col-by max_num_seqs \
	--curve-by max_num_batched_tokens --fig-dir plots --fig-dpi 100
run bench sweep plot_pareto "$dir/grid"

step "search: the highest request rate within limits"
run bench sweep serve_sla --serve-cmd "$serve --max-num-seqs 64 --max-num-batched-tokens 1024" \
	--bench-cmd "$bench --num-prompts 40" --sla-params "$dir/limits.json" --num-runs 1 \
	-o "$dir" -e search

step "comparison: what the larger token budget changes"
mkdir -p "$dir/small" "$dir/large"
cp -r "$dir"/grid/*64-max_num_batched_tokens=1024* "$dir/small"
cp -r "$dir"/grid/*64-max_num_batched_tokens=4096* "$dir/large"
run bench compare "$dir/small" "$dir/large"

step "what is left"
find "$dir" -name '*.png' -o -name '*.csv' -o -name capacity.json | sort | sed 's/^/  /'
printf 'Next: docs/guide/sweeps.md sweeps a server of yours.\n'
