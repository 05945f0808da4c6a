#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cov.sh BUILD MINIMUM LAYER...: line coverage from gcov; 1 when a named layer is below MINIMUM.
#
# Every layer is printed; only the named ones are held to the minimum.
set -eu
build=$1 minimum=$2
shift 2
for dir in "$build"/obj/*/; do
	gcov -n -r -s src -o "$dir" "$dir"*.gcda 2>/dev/null || true
done | awk -v minimum="$minimum" -v held="$*" '
	/^File / { gsub(/\047/, "", $2); file = $2; next }
	/^Lines executed:/ && file ~ /^(src\/)?[a-z]+\/[a-z0-9_]+\.[ch]$/ {
		sub(/^src\//, "", file)
		split($0, part, /[:% ]+/)
		split(file, path, "/")
		lines = $NF
		total[path[1]] += lines
		hit[path[1]] += lines * part[3] / 100
		file = ""
	}
	END {
		n = split(held, want, " ")
		for (i = 1; i <= n; i++) is_held[want[i]] = 1
		for (layer in total) {
			share = 100 * hit[layer] / total[layer]
			low = is_held[layer] && share < minimum
			bad += low
			printf "cov %-9s %6d lines %6.1f %%%s\n", layer, total[layer], share, \
				low ? "  below " minimum " %" : is_held[layer] ? "  held" : "" | "sort"
		}
		close("sort")
		for (i = 1; i <= n; i++)
			if (!total[want[i]]) { print "cov " want[i] ": no data"; bad++ }
		exit bad > 0
	}'
