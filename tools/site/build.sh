#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: the Markdown pages as a static site with a search of its own, in OUT/html.
#
# Needs mkdocs and the theme "material" (Debian's mkdocs and mkdocs-material). The pages are copied with
# the files that they link to, because mkdocs reads one folder; links out of the repository stay.
set -eu
out=$1
cd "$(dirname "$0")/../.."
if ! command -v mkdocs >/dev/null; then
	echo "make site: mkdocs is missing; install the packages mkdocs and mkdocs-material" >&2
	exit 1
fi
rm -rf "$out"
mkdir -p "$out/conf"
{
	cat tools/site/mkdocs.yml
	echo 'nav:'
	echo '  - Home: README.md'
	perl -ne 'print qq(  - "$1":\n) if /^## (.*)/;
		print qq(    - "$1": docs/$2\n) if /^\| \[([^\]`]+)\]\(([^)#]+\.md)\)/' \
		docs/README.md
	echo '  - Source:'
	printf '    - %s\n' ARCHITECTURE.md STYLE.md tests/README.md bench/README.md CHANGES.md
} | sed '/^  - "Commands":$/d' >"$out/conf/mkdocs.yml"
git ls-files -co --exclude-standard -- '*.md' docs examples LICENSE |
	grep -v '^tests/peer/.*/.*/' | while read -r file; do
	[ -f "$file" ] || continue
	mkdir -p "$out/pages/$(dirname "$file")"
	cp "$file" "$out/pages/$file"
done
cat >"$out/pages/wide.css" <<'EOT'
.md-grid { max-width: 82rem; }
/* An option stays in one piece: a line never ends between its hyphens. */
.md-typeset :not(pre) > code { display: inline-block; max-width: 100%; }
/* Commands wrap instead of being cut; output keeps its columns, in smaller letters. */
.md-typeset pre > code { font-size: .76em; }
.md-typeset .language-sh pre > code { white-space: pre-wrap; }
@media (min-width: 60rem) { .md-typeset td:first-child code { white-space: nowrap; } }
/* On a narrow screen a task has its answer below it, not in a narrow column. */
@media (max-width: 44rem) {
	.md-typeset table:has([id^="task-"]) thead { display: none; }
	.md-typeset table:has([id^="task-"]) tr { display: block; border-top: .05rem solid #8888; }
	.md-typeset table:has([id^="task-"]) td { display: block; border: 0; padding: .2em 1em; }
	.md-typeset table:has([id^="task-"]) td:first-child { font-weight: bold; padding-top: .6em; }
}
EOT
# Pages link to folders of examples, which need a list of their files.
find "$out/pages/examples" -type d | while read -r folder; do
	{
		echo "# ${folder#"$out/pages/"}"
		echo
		(cd "$folder" && find . -type f ! -name README.md | sort) |
			sed 's,^\./\(.*\),* [\1](\1),'
	} >"$folder/index.md"
done
# Each task of the index is a target of the search: its row gets an anchor here, its entry below.
perl -pi -e 's/^\| (?=[^|]*\? \|)/sprintf q(| <a id="task-%d"><\/a>), ++$n/e' "$out/pages/docs/how-to.md"
mkdocs build --strict -f "$out/conf/mkdocs.yml" 2>"$out/log" || {
	grep -E 'WARN|ERROR|Abort' "$out/log" >&2
	exit 1
}
perl tools/site/tasks.pl "$out/pages/docs/how-to.md" "$out/html/search/search_index.json"
