#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - compare `profllm bench sweep`, `compare` and `markdown` with the real tools.
#
#   tests/peer/sweep/run.sh [tools [CASE...] | figures | search | tables | engine | all]
#
# tools    serve, serve_workload and startup on the same argument lines (compare.py)
# figures  plot and plot_pareto on random sweeps (figures.py)
# search   serve_sla compared with the releases that had it (sla.py)
# tables   the dashboard's two scripts (tables.py)
# engine   a real vLLM engine on the CPU (engine.py)
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

if ! [ -x "$dir/venv/bin/vllm" ] || ! [ -d "$dir/scripts" ] || ! [ -d "$dir/old" ]; then
	echo "skipped: no peer in $dir (tests/peer/setup.sh makes one)"
	exit 0
fi
if ! [ -x "$ours" ]; then
	echo "run.sh: $ours is missing; run make first" >&2
	exit 1
fi
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_LOGGING_LEVEL=INFO
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0

py=$dir/venv/bin/python
out=$dir/out/sweep
failed=0
is() { [ "$what" = "$1" ] || [ "$what" = all ]; }

mkdir -p "$out"
case $what in
tools | figures | search | tables | engine | all) ;;
*)
	echo "run.sh: $what is none of tools, figures, search, tables, engine, all" >&2
	exit 2
	;;
esac
if is tools; then
	"$py" "$here/compare.py" --ours "$ours" --out "$out/tools" \
		--differences "$root/docs/differences.md" "$@" || failed=1
fi
if is figures; then
	"$py" "$here/figures.py" --ours "$ours" --out "$out/figures" || failed=1
fi
if is search; then
	"$py" "$here/sla.py" --ours "$ours" --old "$dir/old" --out "$out/search" || failed=1
fi
if is tables; then
	"$py" "$here/tables.py" --ours "$ours" --scripts "$dir/scripts" --out "$out/tables" || failed=1
fi
if is engine; then
	"$py" "$here/engine.py" --ours "$ours" --model "$dir/models/llama3_1" --out "$out/engine" || failed=1
fi
exit $failed
