#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unused.sh OBJDIR: global functions and tables that no other object, test or bench uses.
#
# Such a name should be static, or its file is dead. Prints one line each; 1 when any. Objects of
# deleted files are not judged, nor what a sanitizer added.
set -eu
find "$1" -name '*.o' | LC_ALL=C sort | xargs nm -A --defined-only --extern-only |
	awk '{ print $NF, $1 }' | sed 's/:[0-9a-f]*$//' | LC_ALL=C sort >"$1/.defined"
find "$1" -name '*.o' | xargs nm --undefined-only | awk 'NF == 2 { print $2 }' |
	LC_ALL=C sort -u >"$1/.used"
bad=0
while read -r name object; do
	grep -qsw -- "$name" tests/unit/*.[ch] tests/fuzz/*.c bench/*.[ch] bench/*/*.[ch] && continue
	file=src${object#"$1"}
	file=${file%.o}.c
	[ -e "$file" ] || continue
	echo "$file: $name: global, but nobody outside this file uses it"
	bad=1
done < <(LC_ALL=C join -v 1 "$1/.defined" "$1/.used" | grep -v '^main \|^__')
exit $bad
