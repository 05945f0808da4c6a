# SPDX-License-Identifier: Apache-2.0
# awk -f tools/layers.awk src/LAYERS src/*/*.[ch] src/*/*/*.[ch]: every include that may not be.
#
# A file of a layer may include that layer and what its line in src/LAYERS names, nothing else. A
# layer may only name layers above its own line, and the layers of a folder are listed together, so
# that neither layers nor folders have cycles.
FILENAME == "src/LAYERS" {
	if ($0 ~ /^[a-z\/]+:/) {
		split($0, kv, ":")
		leaf = kv[1]
		sub(/.*\//, "", leaf)
		folder = kv[1] == leaf ? "" : substr(kv[1], 1, length(kv[1]) - length(leaf) - 1)
		if (leaf in dir)
			report("a second layer is called " leaf)
		if (folder != "" && folder != last && folder in is_over)
			report(kv[1] " is apart from the other layers of " folder)
		is_over[folder] = 1
		last = folder
		n = split(kv[2], dep, " ")
		for (i = 1; i <= n; i++)
			if (!(dep[i] in may))
				report(dep[i] " is below or is no layer")
		may[leaf] = " " leaf kv[2] " "
		dir[leaf] = kv[1]
	}
	next
}
FNR == 1 {
	folder = FILENAME
	sub(/^src\//, "", folder)
	sub(/\/[^\/]*$/, "", folder)
	leaf = folder
	sub(/.*\//, "", leaf)
	if (dir[leaf] != folder)
		report("folder src/" folder " is not in src/LAYERS")
}
/^[ \t]*#[ \t]*include "/ {
	split($0, part, "\"")
	from = part[2]
	if (!sub(/\/[^\/]*$/, "", from)) {
		if (from != "version.h")
			report("\"" from "\": includes are written from src/")
		next
	}
	other = from
	sub(/.*\//, "", other)
	if (dir[other] != from)
		report("\"" part[2] "\": " from " is no layer")
	else if (index(may[leaf], " " other " ") == 0)
		report(leaf " may not use " other)
}
function report(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
