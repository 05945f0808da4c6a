#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - results of other tools, made by running them against `profllm sim`; see README.md.
#
#   tests/peer/foreign/run.sh DIR [guidellm|aiperf|genai-perf|loadgen|endpoints|inferencex]...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
program=${PROFLLM:-$root/build/profllm}
[ $# -gt 0 ] || { sed -n '3,6s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1/foreign" "$1/run"
dir=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- guidellm aiperf genai-perf loadgen endpoints inferencex
out=$dir/foreign
cd "$dir/run"
rm -f port
"$program" sim --port 0 --port-file port --ttft-ms 50 --itl-ms 10 >sim.log 2>&1 &
sim=$!
trap 'kill $sim 2>/dev/null || true' EXIT
until [ -s port ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat port)

# env NAME PYTHON PACKAGES...: a virtual environment with these, once.
env_of() {
	name=$1 python=$2
	shift 2
	[ -x "$dir/$name/bin/python" ] || "$python" -m venv "$dir/$name"
	"$dir/$name/bin/pip" install -q --disable-pip-version-check "$@"
}

tokenizer() {
	[ -d tok ] || "$dir/$1/bin/python" "$here/make_tokenizer.py" tok
	export HF_HUB_OFFLINE=1
}

small() { python3 "$here/small.py" "$1" "$out/$2" "$dir/run" && echo "made $out/$2"; }

for tool in "$@"; do
	case $tool in
	guidellm)
		env_of guidellm python3 guidellm==0.8.1
		tokenizer guidellm
		timeout 300 "$dir/guidellm/bin/guidellm" run --disable-progress \
			--backend "kind=openai_http,target=$url,model=sim,request_format=/v1/completions" \
			--profile '{"kind": "concurrent", "streams": [2, 4]}' \
			--constraint kind=max_requests,count=24 \
			--tokenizer "kind=hf_auto,model=$PWD/tok" \
			--data kind=synthetic_text,prompt_tokens=64,output_tokens=8 \
			--output "kind=json,path=$PWD/guidellm.json" >guidellm.log 2>&1
		small guidellm.json guidellm.json
		;;
	aiperf)
		env_of aiperf python3 aiperf==0.13.0
		tokenizer aiperf
		# It takes no path for a tokenizer: a cache of the model hub, made up, with this one in it.
		export HF_HOME=$PWD/hub
		repo=$HF_HOME/hub/models--local--tokenizer
		mkdir -p "$repo/refs" "$repo/snapshots"
		printf 0123 >"$repo/refs/main"
		[ -d "$repo/snapshots/0123" ] || cp -r tok "$repo/snapshots/0123"
		timeout 300 "$dir/aiperf/bin/aiperf" profile --model sim --tokenizer local/tokenizer \
			--url "$url" --endpoint-type completions --streaming --concurrency 2 \
			--request-count 12 \
			--synthetic-input-tokens-mean 64 --synthetic-input-tokens-stddev 0 \
			--output-tokens-mean 8 --output-tokens-stddev 0 \
			--extra-inputs ignore_eos:true --random-seed 1 \
			--use-server-token-count --use-legacy-max-tokens --ui none \
			--output-artifact-dir aiperf >aiperf.log 2>&1
		small aiperf/profile_export_aiperf.json aiperf.json
		;;
	genai-perf)
		env_of genai-perf python3 genai-perf==0.0.16 nvidia-cuda-runtime-cu12
		tokenizer genai-perf
		if ! [ -x "$dir/genai-perf/bin/perf_analyzer" ]; then
			"$dir/genai-perf/bin/pip" download -q --no-deps -d . tritonclient==2.51.0
			python3 - tritonclient-2.51.0-*.whl "$dir/genai-perf/bin/perf_analyzer" <<'PY'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as z, open(sys.argv[2], "wb") as f:
    f.write(z.read("tritonclient-2.51.0.data/data/bin/perf_analyzer"))
PY
			chmod +x "$dir/genai-perf/bin/perf_analyzer"
		fi
		cuda=$(find "$dir/genai-perf/" -name libcudart.so.12 | head -1)
		PATH=$dir/genai-perf/bin:$PATH LD_LIBRARY_PATH=$(dirname "$cuda") timeout 300 \
			genai-perf profile -m sim --endpoint-type completions --streaming -u "$url" \
			--tokenizer "$PWD/tok" --concurrency 2 --request-count 24 \
			--synthetic-input-tokens-mean 64 --output-tokens-mean 8 \
			--extra-inputs ignore_eos:true --extra-inputs max_tokens:8 \
			--artifact-dir genai >genai-perf.log 2>&1
		small genai/sim-openai-completions-concurrency2/profile_export_genai_perf.json genai_perf.json
		;;
	loadgen)
		env_of loadgen python3 mlcommons-loadgen==6.0.17
		for scenario in Server SingleStream; do
			mkdir -p "loadgen/$scenario"
			timeout 120 "$dir/loadgen/bin/python" "$here/loadgen.py" "$url" \
				"loadgen/$scenario" "$scenario"
		done
		small loadgen/Server/mlperf_log_detail.txt mlperf_log_detail.txt
		small loadgen/Server/mlperf_log_summary.txt mlperf_log_summary.txt
		small loadgen/SingleStream/mlperf_log_detail.txt mlperf_single_stream.txt
		;;
	endpoints)
		if [ -z "${ENDPOINTS:-}" ]; then
			echo 'endpoints: left out; ENDPOINTS names no checkout of mlcommons/endpoints' >&2
			continue
		fi
		env_of endpoints "${PYTHON312:-python3.12}" "$ENDPOINTS"
		tokenizer endpoints
		python3 -c 'import json
for i in range(30): print(json.dumps({"prompt": "Question %d: what is it?" % i}))' >prompts.jsonl
		timeout 300 "$dir/endpoints/bin/inference-endpoint" benchmark online --model sim \
			--endpoints "$url" --dataset prompts.jsonl --tokenizer "$PWD/tok" \
			--streaming on --max-output-tokens 8 \
			--num-samples 40 --duration 1s --load-pattern concurrency --concurrency 4 \
			--workers 1 --report-dir endpoints >endpoints.log 2>&1
		small endpoints/performance/result_summary.json mlperf_endpoints.json
		;;
	inferencex)
		if [ -z "${INFERENCEX:-}" ]; then
			echo 'inferencex: left out; INFERENCEX names no checkout of it' >&2
			continue
		fi
		mkdir -p inferencex/collected
		cp "$root/tests/cli/foreign/vllm_serve.json" inferencex/sim.json
		(cd inferencex && RUNNER_TYPE=h200 FRAMEWORK=vllm PRECISION=fp8 SPEC_DECODING=none \
			RESULT_FILENAME=sim ISL=64 OSL=8 DISAGG=false MODEL_PREFIX=sim \
			IMAGE=vllm/vllm-openai:v0.11.0 TP=8 EP_SIZE=1 DP_ATTENTION=false \
			python3 "$INFERENCEX/utils/process_result.py" >/dev/null &&
			mv agg_sim.json collected &&
			python3 "$INFERENCEX/utils/collect_results.py" collected bmk)
		small inferencex/agg_bmk.json inferencex.json
		;;
	*)
		echo "run.sh: no tool $tool" >&2
		exit 2
		;;
	esac
done
