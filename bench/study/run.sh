#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - the study of client errors, from nothing to docs/study.md: opt-in, an hour on two cores.
#
#   make && bench/study/run.sh [DIR [OPTION of study.py]...]     default: ${TMPDIR:-/tmp}/profllm-study
#
# DIR gets Python environments with aiperf and guidellm, and vllm's maintained Rust client out of
# its wheel. vllm's Python client and the model's vocabulary are those of tests/peer/setup.sh. The
# archived Rust client is measured when its program is DIR/vllm-bench (built with cargo from the
# public repository vllm-project/vllm-bench). What was measured before is not measured again.
# With options of study.py (a part of the study) the page goes to DIR/study.md, not into docs/.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
case ${1:-} in -*)
	echo "usage: bench/study/run.sh [DIR [OPTION of bench/study/study.py]...]" >&2
	[ "$1" = --help ] && exit 0
	exit 2 ;;
esac
dir=${1:-${TMPDIR:-/tmp}/profllm-study}
[ $# -gt 0 ] && shift
page=$root/docs/study.md
[ $# -gt 0 ] && page=$dir/study.md
peer=${PROFLLM_PEER:-${TMPDIR:-/tmp}/profllm-peer}
profllm=${PROFLLM:-$root/build/profllm}
aiperf=0.13.0 guidellm=0.8.1 vllm=0.32.0

say() { printf 'study: %s\n' "$*"; }

# Only what --only-tool names is set up; without it, all.
only= last=
for word; do
	[ "$last" = --only-tool ] && only="$only $word "
	last=$word
done
is_wanted() { [ -z "$only" ] || case $only in *" $1 "*) ;; *) return 1 ;; esac; }

mkdir -p "$dir"
"$root/tests/peer/setup.sh" "$peer"
for tool in "aiperf==$aiperf" "guidellm==$guidellm"; do
	name=${tool%%=*}
	is_wanted "$name" || continue
	[ -x "$dir/$name/bin/$name" ] && continue
	say "$tool"
	python3 -m venv "$dir/$name"
	"$dir/$name/bin/pip" install -q "$tool"
done
if is_wanted vllm-rs && ! [ -x "$dir/vllm-rs" ]; then
	say "vllm-rs of vllm $vllm"
	python3 -m pip download -q --no-deps --dest "$dir/wheel" "vllm==$vllm"
	python3 - "$dir" <<'EOT'
import glob, os, sys, zipfile
dir = sys.argv[1]
with zipfile.ZipFile(glob.glob(f"{dir}/wheel/vllm-*.whl")[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith("/vllm-rs"))
    with open(f"{dir}/vllm-rs", "wb") as out:
        out.write(wheel.read(name))
os.chmod(f"{dir}/vllm-rs", 0o755)
EOT
fi
set -- --profllm "$profllm" --model "$peer/models/llama3_1" --out "$dir/out" \
	--vllm "$peer/venv/bin/vllm" "$@"
for tool in vllm-rs vllm-bench aiperf/bin/aiperf guidellm/bin/guidellm; do
	[ -x "$dir/$tool" ] && set -- "--${tool##*/}" "$dir/$tool" "$@"
done
python3 "$here/study.py" "$@"
[ -e "$page" ] || cp "$root/docs/study.md" "$page"
python3 "$here/report.py" "$dir/out/results.json" "$page"
say "tables and figures are in $page"
