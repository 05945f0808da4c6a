#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - compare the request lists of `profllm bench serve` with those of the real `vllm bench
# serve`.
#
#   tests/peer/datasets/run.sh [CASE...]     CASE: the beginning of a case's name (cases.py)
#
# PEER_DIR   what tests/peer/setup.sh made (default ${TMPDIR:-/tmp}/profllm-peer)
# PROFLLM    the program under test (default build/profllm)
#
# Without PEER_DIR's environment it says so and ends with 0.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
dir=${PEER_DIR:-${TMPDIR:-/tmp}/profllm-peer}
ours=${PROFLLM:-$root/build/profllm}
py=$dir/venv/bin/python

if ! [ -x "$dir/venv/bin/vllm" ] || ! "$py" -c 'import soundfile' 2>/dev/null; then
	echo "skipped: no peer in $dir (tests/peer/setup.sh makes one)"
	exit 0
fi
if ! [ -x "$ours" ]; then
	echo "run.sh: $ours is missing; run make first" >&2
	exit 1
fi
export PYTHONDONTWRITEBYTECODE=1
# Other data are other lists.
made=$(cat "$here/make_data.py" "$here/words.py" | sha256sum | cut -c 1-16)
if ! [ -e "$dir/datasets/$made" ]; then
	rm -rf "$dir/datasets" "$dir/out/datasets/upstream" "$dir/out/datasets/arrow"
	"$py" "$here/make_data.py" "$dir/datasets"
	: >"$dir/datasets/$made"
fi
exec "$py" "$here/compare.py" --ours "$ours" --peer "$dir" --data "$dir/datasets" \
	--out "$dir/out/datasets" "$@"
