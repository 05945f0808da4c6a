#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# attack.sh KIND [NAME=VALUE...]: attacks on the program, longer than the suite can bear.
#
#   api        requests made from the OpenAPI document: SECONDS=3600 SEED=1 CONNECTIONS=12 TOKEN=...
#   files      mutated uploads, backups, records: UPLOADS=10000 BACKUPS=1000 RECORDS=1000 SEED=1
#   snapshots  mutated snapshots of the index, by libFuzzer: COUNT=20000
#   records    mutated records, by libFuzzer: COUNT=20000
#   sql        hostile names and values on SQLite and on PostgreSQL
#
# PROFLLM names the program; else it is build/asan/profllm when that is there (`make asan-program`).
# Each prints its seed and what it found; the exit status is 1 when that is anything.
set -eu
cd "$(dirname "$0")/.."
: "${O:=build}"
kind=${1:-}
[ $# -eq 0 ] || shift
for pair in "$@"; do
	case $pair in
	[A-Z]*=*) export "${pair?}" ;;
	*) echo "attack.sh: $pair: expected NAME=VALUE" >&2; exit 2 ;;
	esac
done
if [ -z "${PROFLLM:-}" ]; then
	PROFLLM=$O/profllm
	[ ! -x "$O/asan/profllm" ] || PROFLLM=$O/asan/profllm
fi
PROFLLM=$(realpath "$PROFLLM")
export O PROFLLM
# What was freed is kept for a while by AddressSanitizer: little of it, so that growth is the program's.
: "${ASAN_OPTIONS:=detect_stack_use_after_return=1:strict_string_checks=1}"
export ASAN_OPTIONS="$ASAN_OPTIONS:quarantine_size_mb=16"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

fuzz() {
	make --no-print-directory "$O/fuzz/$1"
	mkdir -p "$O/fuzz/work/$1" "$O/fuzz/crash/$1"
	"$O/fuzz/$1" -runs="${COUNT:-20000}" -timeout=10 -rss_limit_mb=2048 ${SEED:+-seed="$SEED"} \
		-artifact_prefix="$O/fuzz/crash/$1/" "$O/fuzz/work/$1" "tests/fuzz/corpus/$1"
}

case $kind in
api) exec node tests/web/attack.t ;;
files) exec perl tests/cli/attack-files.t ;;
snapshots) fuzz snapshot ;;
records) fuzz record ;;
sql)
	perl tests/cli/attack-sql.t
	TEST_STORE=postgresql tests/with_postgres.sh perl tests/cli/attack-sql.t ;;
*) sed -n 's/^# \{0,1\}//p' "$0" | sed -n '3,12p' >&2; exit 2 ;;
esac
