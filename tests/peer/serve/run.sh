#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - compare `profllm bench serve` with the real `vllm bench serve`.
#
#   tests/peer/serve/run.sh [sim [--fresh] [CASE...] | engine [KIND...] | foreign | all]
#
# sim      both clients against `profllm sim`, case by case (compare.py)
# engine   both clients against real vLLM engines on the CPU (engine.py), all or some KINDs:
#          generate, embed, rank, hear
# foreign  ours against `transformers serve`, whose answers are unlike vLLM's (foreign.py)
#
# PEER_DIR   what tests/peer/setup.sh made (default ${TMPDIR:-/tmp}/profllm-peer)
# PROFLLM    the program under test (default build/profllm)
#
# Without PEER_DIR's environment it says so and ends with 0: a machine that
# cannot install the peer has nothing to compare.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
dir=${PEER_DIR:-${TMPDIR:-/tmp}/profllm-peer}
ours=${PROFLLM:-$root/build/profllm}
what=${1:-all}
[ $# -gt 0 ] && shift

if ! [ -x "$dir/venv/bin/vllm" ] || ! [ -s "$dir/models/whisper/model.safetensors" ]; then
	echo "skipped: no peer in $dir (tests/peer/setup.sh makes one)"
	exit 0
fi
if ! [ -x "$ours" ]; then
	echo "run.sh: $ours is missing; run make first" >&2
	exit 1
fi
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_LOGGING_LEVEL=INFO
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
unset OPENAI_API_KEY

py=$dir/venv/bin/python
failed=0
case $what in
sim | all)
	"$py" "$here/make_data.py" "$dir/data"
	"$py" "$here/compare.py" --ours "$ours" --model "$dir/models/llama3_1" \
		--other "$dir/models/qwen3" --data "$dir/data" --out "$dir/out/serve" \
		--differences "$root/docs/differences.md" "$@" || failed=1
	;;
esac
case $what in
engine | all)
	"$py" "$here/make_data.py" "$dir/data"
	"$py" "$here/engine.py" --ours "$ours" --models "$dir/models" \
		--data "$dir/data" --out "$dir/out/engine" "$@" || failed=1
	;;
esac
case $what in
foreign | all)
	"$py" "$here/foreign.py" --ours "$ours" --models "$dir/models" \
		--out "$dir/out/foreign" "$@" || failed=1
	;;
sim | engine) ;;
*)
	echo "run.sh: $what is none of sim, engine, foreign, all" >&2
	exit 2
	;;
esac
exit $failed
