#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# web.sh: the pages of web/ in web/dist, and what building and testing them needs.
#
# npm fetches packages only when the lockfile (or node) is not the one of last time; the pages
# are built only when something they are made of has changed. Several makes may run at once: the
# first does the work, the others wait and find it done.
set -eu
cd "$(dirname "$0")/../web"
say() { printf '  %-6s %s\n' "$@"; }
fail() {
	echo "web: $*" >&2
	echo "web: make WEB=0 builds everything but the pages" >&2
	exit 1
}
for tool in node npm; do
	command -v "$tool" >/dev/null || fail "$tool is not installed; scripts/setup installs it"
done
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] ||
	fail "node $(node -v) is too old; 18 or newer is needed"

exec 9>.lock
flock 9
log=$(mktemp)
trap 'rm -f "$log"' EXIT
packages=$( (node -v; cat package-lock.json) | sha256sum)
if [ "$(cat node_modules/.made-of 2>/dev/null)" != "$packages" ]; then
	say NPM web/node_modules
	npm ci --no-audit --no-fund --loglevel error >"$log" 2>&1 9>&- || {
		head -n 8 "$log" >&2
		fail "npm could not fetch the packages of web/package-lock.json"
	}
	echo "$packages" >node_modules/.made-of
fi
sources=$(find pages src app.config.mjs build.mjs tsconfig.json package.json package-lock.json -type f |
	LC_ALL=C sort | xargs sha256sum | sha256sum)
if [ "$(cat dist/.made-of 2>/dev/null)" != "$sources" ]; then
	say WEB web/dist
	npm run -s build >"$log" 2>&1 9>&- || {
		grep -v '^npm warn' "$log" >&2
		fail "the pages cannot be built"
	}
	echo "$sources" >dist/.made-of
fi
touch dist/.made-of
