#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TARGET...: runs each fuzz target for SECONDS_EACH; one line per target, with the seconds of
# processor time that it had.
#
# New inputs go to $O/fuzz/work/TARGET, a crash to $O/fuzz/crash/TARGET; the corpus in the
# tree is only read. Exit status 1 when any target failed. `fuzz.sh --minimise TARGET...` copies the
# inputs of the corpus and of work/ that reach something new to $O/fuzz/kept/TARGET instead.
set -u
: "${O:=build}" "${SECONDS_EACH:=60}"
status=0
TIMEFORMAT='%U %S'
if [ "${1-}" = --minimise ]; then
	shift
	for target in "$@"; do
		kept=$O/fuzz/kept/$target
		rm -rf "$kept"
		mkdir -p "$kept" "$O/fuzz/work/$target"
		"$O/fuzz/$target" -merge=1 -timeout=10 "$kept" "tests/fuzz/corpus/$target" \
			"$O/fuzz/work/$target" >"$O/fuzz/$target.merge.log" 2>&1 || status=1
		printf 'fuzz %-12s %5s inputs, %6s bytes kept\n' "$target" "$(ls "$kept" | wc -l)" \
			"$(cat "$kept"/* 2>/dev/null | wc -c)"
	done
	exit $status
fi
for target in "$@"; do
	work=$O/fuzz/work/$target crash=$O/fuzz/crash/$target log=$O/fuzz/$target.log
	mkdir -p "$work" "$crash"
	seed=tests/fuzz/corpus/$target
	[ -d "$seed" ] || seed=
	word=clean
	used=$( { time "$O/fuzz/$target" -max_total_time="$SECONDS_EACH" -timeout=60 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$crash/" "$work" $seed >"$log" 2>&1; } 2>&1) || {
		word="FAILED (see $log and $crash)"
		status=1
	}
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	printf 'fuzz %-12s %4.0f s  %9s runs  %5s edges  %s\n' "$target" \
		"$(awk '{ print $1 + $2 }' <<<"$used")" "${runs:-?}" "${cover:-?}" "$word"
done
exit $status
