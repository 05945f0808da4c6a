#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--keep] [FOLDER]: see README.md. PROFLLM names the program, PROFLLM_PEER the folder of
# setup.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
program=$(readlink -f "${PROFLLM:-$root/build/profllm}")
peer=${PROFLLM_PEER:-/tmp/profllm-peer}
keep=0
[ "${1:-}" = --keep ] && keep=1 && shift
folder=${1:-/srv/profllm}

mkdir -p "$folder"
cd "$folder"
ln -sfn "$peer/venv/bin" bin
ln -sfn "$peer/models" models
cp "$here/experiment.yaml" .
rm -rf vllm-cpu.json vllm-cpu.d
HF_HUB_OFFLINE=1 "$program" run --config experiment.yaml --output vllm-cpu.json --progress lines
"$peer/venv/bin/python" "$here/judge.py" vllm-cpu.json
[ "$keep" = 0 ] || cp vllm-cpu.json "$root/examples/results/vllm-cpu.json"
