#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - compare the offline benchmarks with the real ones, on the real engine.
#
#   tests/peer/offline/run.sh [arguments [VERB...] | heard [CASE...] | timed [CASE...] |
#                              failures [CASE...] | all]
#
# arguments  lines through both parsers, right ones and wrong ones (arguments.py); no engine
# heard      each command once, with everything written down that the engine is asked (compare.py)
# timed      each command RUNS times, alternating: the ratio of the medians
# failures   runs that end badly: the same status and sentence
#
# PEER_DIR   what tests/peer/setup.sh made (default ${TMPDIR:-/tmp}/profllm-peer)
# PROFLLM    the program under test (default build/profllm)
# RUNS       of each command when timed (default 5)
# TOLERANCE  of the ratio of medians (default 0.05)
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

if ! [ -x "$dir/venv/bin/vllm" ] || ! [ -s "$dir/models/qwen2vl/model.safetensors" ]; then
	echo "skipped: no peer in $dir (tests/peer/setup.sh makes one)"
	exit 0
fi
if ! [ -x "$ours" ]; then
	echo "run.sh: $ours is missing; run make first" >&2
	exit 1
fi
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export PYTHONHASHSEED=0

py=$dir/venv/bin/python
failed=0
compare() {
	step=$1
	shift
	"$py" "$here/compare.py" --ours "$ours" --models "$dir/models" --out "$dir/out/offline" \
		--runs "${RUNS:-5}" --tolerance "${TOLERANCE:-0.05}" "--$step" "$@" || failed=1
}
case $what in
arguments | all)
	"$py" "$here/arguments.py" --ours "$ours" --model "$dir/models/llama3_1" "$@" || failed=1
	;;
esac
case $what in
heard | failures | timed) compare "$what" "$@" ;;
all)
	for step in failures heard timed; do
		compare "$step"
	done
	;;
arguments) ;;
*)
	echo "run.sh: $what is none of arguments, heard, timed, failures, all" >&2
	exit 2
	;;
esac
exit $failed
