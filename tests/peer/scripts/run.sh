#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - compare the benchmarks of vLLM's repository that are no verbs with ours.
#
#   tests/peer/scripts/run.sh [online [CASE...] | offline [CASE...] | engine [CASE...] | all]
#
# online   the scripts that ask a server, both against `profllm sim` (online.py)
# offline  those that drive an engine in their process, which is a stub that notes what it is asked;
#          the converter and the hash benchmarks (offline.py)
# engine   ours against real vLLM on the CPU: what is reported is what /metrics gained (engine.py)
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

if ! [ -x "$dir/venv/bin/vllm" ] ||
	! [ -s "$dir/benchmarks/multi_turn/benchmark_serving_multi_turn.py" ]; then
	echo "skipped: no peer in $dir (tests/peer/setup.sh makes one)"
	exit 0
fi
if ! [ -x "$ours" ]; then
	echo "run.sh: $ours is missing; run make first" >&2
	exit 1
fi
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_LOGGING_LEVEL=ERROR PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
unset OPENAI_API_KEY MULTITURN_BENCH_MAX_RETRIES

py=$dir/venv/bin/python
failed=0
"$py" "$here/make_data.py" "$dir/data-scripts"
compare() {
	step=$1
	shift
	[ "$step" = engine ] && export VLLM_LOGGING_LEVEL=INFO # its access log is read
	"$py" "$here/$step.py" --ours "$ours" --model "$dir/models/llama3_1" \
		--scripts "$dir/benchmarks" --data "$dir/data-scripts" --out "$dir/out/scripts/$step" \
		--differences "$root/docs/differences.md" "$@" || failed=1
}
case $what in
online | offline | engine) compare "$what" "$@" ;;
all)
	for step in online offline engine; do
		compare "$step"
	done
	;;
*)
	echo "run.sh: $what is none of online, offline, engine, all" >&2
	exit 2
	;;
esac
exit $failed
