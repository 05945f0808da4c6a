# SPDX-License-Identifier: Apache-2.0
# awk -f tools/layers.awk src/LAYERS src/*/*.[ch]: every include that a layer may not make.
#
# A file in src/x/ may include x and what the line of x in src/LAYERS names, nothing else;
# and a layer may only name layers above its own line, so that the list has no cycles.
FILENAME == "src/LAYERS" {
	if ($0 ~ /^[a-z]+:/) {
		split($0, kv, ":")
		n = split(kv[2], dep, " ")
		for (i = 1; i <= n; i++)
			if (!(dep[i] in may))
				report(dep[i] " stands below or is no layer")
		may[kv[1]] = " " kv[1] kv[2] " "
	}
	next
}
FNR == 1 {
	split(FILENAME, path, "/")
	if (!(path[2] in may))
		report("folder src/" path[2] " is not in src/LAYERS")
}
/^[ \t]*#[ \t]*include "/ {
	split($0, part, "\"")
	if (split(part[2], inc, "/") < 2) {
		if (part[2] != "version.h")
			report("\"" part[2] "\": includes are written from src/")
	} else if (index(may[path[2]], " " inc[1] " ") == 0)
		report(path[2] " may not use " inc[1])
}
function report(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
