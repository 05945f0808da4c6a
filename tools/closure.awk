# SPDX-License-Identifier: Apache-2.0
# awk -v want=LAYER -f tools/closure.awk src/LAYERS: LAYER and every layer it may use.
/^[a-z\/]+:/ {
	split($0, kv, ":")
	sub(/.*\//, "", kv[1])
	may[kv[1]] = kv[2]
}
END { walk(want) }
function walk(l,   n, i, dep) {
	if (l in seen) return
	seen[l] = 1
	printf "%s ", l
	n = split(may[l], dep, " ")
	for (i = 1; i <= n; i++) walk(dep[i])
}
