#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh: everything about the tree that a tool can judge without compiling it.
#
# One finding per line, `file:line: what`, then `tidy: N files, M findings`; 1 when M > 0.
# C rules are in tidy.awk, layers in layers.awk, words in words.pl; here is what concerns several
# files.
set -u
export LC_ALL=C
found=$(mktemp)
trap 'rm -f "$found"' EXIT

if ! files=$(git ls-files -co --exclude-standard 2>/dev/null) || [ -z "$files" ]; then
	files=$(find . -path ./build -prune -o -type f -print | sed 's,^\./,,')
fi
# Files that git still lists but that are gone from disk are no concern of ours.
mapfile -t files < <(printf '%s\n' "$files" | while read -r f; do [ -f "$f" ] && echo "$f"; done | sort)
of() { printf '%s\n' "${files[@]}" | grep -E "$1"; }
mapfile -t c < <(of '^(src|tests|bench|tools|workers)/.*\.[ch]$')
mapfile -t layered < <(of '^src/.*/.*\.[ch]$')

lint_c() {
	awk -f tools/layers.awk src/LAYERS "${layered[@]}"
	awk -f tools/tidy.awk "${c[@]}"
}

# A header that only its own .c includes should be a .c; one that no file includes is dead.
dead_files() {
	local f base
	for f in "${layered[@]}"; do
		case $f in
		src/*/*/*/*) echo "$f:1: folders are two levels deep" ;;
		*.h)
			base=${f#src/}
			printf '%s\n' "${c[@]}" Makefile | grep -vFx -e "$f" -e "${f%.h}.c" |
				xargs grep -qE "\"$base\"|include $f" ||
				echo "$f:1: nobody but its own .c includes it" ;;
		esac
	done
	for f in $(of '^tests/unit/.*\.[ch]$'); do
		base=${f#tests/unit/}
		case $base in
		test_*.c)
			base=${base#test_} base=${base%.c}
			grep -qE "^([a-z]+/)?${base%%_*}:" src/LAYERS ||
				echo "$f:1: no make rule runs it: ${base%%_*} is not a layer" ;;
		*.h) grep -qF "\"$base\"" tests/unit/*.[ch] || echo "$f:1: nobody includes it" ;;
		*) echo "$f:1: no make rule runs it: unit tests are named test_<layer>.c" ;;
		esac
	done
	for f in $(of '^tests/(cli|load)/[^/]*\.t$'); do
		[ -x "$f" ] || echo "$f:1: not executable"
	done
	for f in $(of '^tests/fuzz/[^/]*\.c$'); do
		base=${f#tests/fuzz/fuzz_} base=${base%.c}
		ls tests/fuzz/corpus/"$base"/* >/dev/null 2>&1 || echo "$f:1: no corpus/$base"
	done
	for f in $(of '^tests/fuzz/corpus/' | cut -d/ -f4 | sort -u); do
		[ -f "tests/fuzz/fuzz_$f.c" ] || echo "tests/fuzz/corpus/$f:1: no target reads it"
	done
}

# Scripts, makefiles and pages: blanks, length, and C's words for unfinished work.
text_files() {
	local f kinds='\.(sh|awk|mk|t|pl)$|^(workers|python)/.*\.py$|^(tests/)?web/.*\.(mjs|ts|css)$'

	for f in $(of "$kinds|^Makefile\$|^scripts/|^\.ci/"); do
		awk -v f="$f" '/[ \t]$/ { print f ":" FNR ": blanks at the end of the line" }
			{ t = $0; gsub(/[\200-\277]/, "", t); gsub(/\t/, "        ", t) }
			length(t) > 110 { print f ":" FNR ": " length(t) " columns, the limit is 110" }
			FNR == 2 && /Generated from/ { made = 1 }
			END { if (NR > 1000 && !made)
				print f ":" NR ": " NR " lines, the limit is 1000" }' "$f"
	done
	grep -nE '\b(TODO|FIXME)\b|not (yet )?implemented' $(of '^(docs/.*|[A-Z]*)\.md$') /dev/null |
		sed 's/:[^:]*$/: the wording of unfinished work/'
	[ "$(wc -l <Makefile)" -lt 200 ] || echo "Makefile:200: the limit is 200 lines; use mk/"
}

# Paths and hosts of a developer's machine.
personal() {
	grep -nIE '/home/[a-z]|/[r]oot/|/[w]ork/(main|shared)|/[U]sers/[A-Za-z]' "${files[@]}" |
		sed -E 's/^([^:]*:[0-9]*):.*/\1: a path of one machine/'
}

# Every word a user can give to make is in docs/building.md, every file a page links to exists.
documented() {
	local word f link
	for word in $(sed -n 's/^\.PHONY: *//p' Makefile); do
		[ "$word" = FORCE ] || grep -qE "make( [a-z]+)* $word|\`$word\`" docs/building.md ||
			echo "docs/building.md:1: make $word is not documented"
	done
	for f in $(of '^(docs/.*|tests/.*|[A-Z]*)\.md$'); do
		grep -oE '\]\([^)#: ]+' "$f" | sed 's/^](//' | while read -r link; do
			[ -e "$(dirname "$f")/$link" ] || echo "$f:1: link to $link, which does not exist"
		done
	done
}

words() { perl tools/words.pl; perl tools/words.pl --comments; }
{ lint_c; dead_files; text_files; personal; documented; words; } >"$found" 2>&1
cat "$found"
n=$(wc -l <"$found")
echo "tidy: ${#files[@]} files, $n findings"
[ "$n" -eq 0 ]
