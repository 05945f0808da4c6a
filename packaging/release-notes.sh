#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# release-notes.sh VERSION: what CHANGES.md says of this version, to stdout (make release-notes).
set -eu
version=${1:-}
changes=$(dirname "$0")/../CHANGES.md
[ -n "$version" ] || {
	echo "release-notes: VERSION is missing; for example: make release-notes VERSION=Unreleased" >&2
	exit 2
}
grep -qxF "## $version" "$changes" || {
	echo "release-notes: CHANGES.md has no section '## $version'; it has: $(sed -n 's/^## //p' \
		"$changes" | paste -sd' ')" >&2
	exit 2
}
awk -v head="## $version" '/^## / { on = $0 == head; next } on' "$changes" | sed '/./,$!d'
