#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist.sh OUT: the packages of the checked-out commit, in the folder OUT (make dist).
#
#   profllm-VERSION.tar.gz                       source, with the pages built
#   profllm_VERSION_ARCH.deb                     program and dashboard service for Debian 12
#   profllm-client-VERSION-linux-ARCH.tar.gz     the client for glibc 2.28 or newer
#   *.spdx.json                                  what the two contain and are linked with
#   SHA256SUMS
#
# Both programs are built from the source tarball. VERSION is the tag, or 0~git, date and commit
# without one. Two builds of a commit give the same bytes, wherever and whenever, on machines with
# the same compiler and libraries. DIST_WORK is a folder for intermediate files (default: OUT/work).
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd) out=$(realpath -m "${1:?usage: dist.sh OUT}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}
. "$source/packaging/common.sh"
work=$(realpath -m "${DIST_WORK:-$out/work}")
cd "$source"
[ -z "$(git status --porcelain)" ] ||
	echo "dist.sh: what is not committed is left out: this is commit $(git rev-parse --short HEAD)" >&2

if tag=$(git describe --tags --exact-match 2>/dev/null); then
	version=${tag#v}
else
	version=0~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$(git rev-parse --short=8 HEAD)
fi
plain=${version#0~} arch=$(uname -m)
mkdir -p "$out" "$work"
rm -f "$out"/profllm[-_]* "$out/SHA256SUMS" # of another commit
packaging/source.sh "$version" "profllm-$plain" "$work/source" "$out/profllm-$plain.tar.gz"
unpacked=$work/source/profllm-$plain

deb=profllm_${version}_$(dpkg --print-architecture).deb
packaging/deb.sh "$unpacked" "$work/deb" "$version" "$out/$deb"
cp "$work/deb/files/usr/share/doc/profllm/sbom.spdx.json" "$out/$deb.spdx.json"

client=profllm-client-$plain-linux-$arch
packaging/portable.sh "$unpacked" "$work/portable" "$client" "$out/$client.tar.gz"
cp "$work/portable/$client/share/doc/profllm/sbom.spdx.json" "$out/$client.tar.gz.spdx.json"

cd "$out"
sha256sum "profllm-$plain.tar.gz" "$deb" "$deb.spdx.json" "$client.tar.gz" "$client.tar.gz.spdx.json" \
	>SHA256SUMS
ls -l --block-size=K "$out" | sed -n 's/^-.* \([0-9]*K\) .* \([^ ]*\)$/\1  \2/p'
