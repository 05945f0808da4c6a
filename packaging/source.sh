#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# source.sh VERSION NAME WORK OUT: the source tarball, and the same unpacked in WORK/NAME.
#
# It has the files of the commit, the file VERSION, and the pages of web/ already built (web/dist), so that
# building it needs neither node nor a network.
set -euo pipefail
version=$1 name=$2 work=$(realpath -m "$3") out=$(realpath -m "$4")
source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/packaging/common.sh"
cd "$source"
[ -e web/dist/.made-of ] || fail 1 "web/dist is not built; run make web first"

rm -rf "${work:?}/$name"
mkdir -p "$work/$name"
git archive HEAD | tar -x -C "$work/$name"
printf '%s\n' "$version" >"$work/$name/VERSION"
cp -r web/dist "$work/$name/web/dist"
# One time for all, so that make takes no page for older than what it is made of.
find "$work/$name" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
pack "$work" "$name" "$out"
