#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build-image.sh - makes a container image from an installed or built profllm, without a network.
#
#   packaging/container/build-image.sh client|sim|dashboard [RUNTIME [NAME [PROGRAM]]]
#
# RUNTIME is podman (default) or docker, NAME localhost/profllm-KIND, PROGRAM the first profllm in PATH.
# Nothing is downloaded: the image has the program, the libraries that ldd names, certificates of
# authorities, and for the dashboard the libraries that it loads for stores, pages and uploads. No
# shell, no package manager. The Containerfile of each kind says how it is started. With RUNTIME `folder`
# NAME is a folder that is filled with all that a builder needs: Containerfile, image/ and data/.
set -eu

kind=${1:-} runtime=${2:-podman} name=${3:-localhost/profllm-${1:-}}
program=${4:-$(command -v profllm || true)}
here=$(cd "$(dirname "$0")" && pwd)
fail() {
	echo "build-image.sh: $1" >&2
	exit 2
}
case $kind in
client | sim | dashboard) ;;
*) fail "'$kind' is not a kind of image; expected client, sim or dashboard" ;;
esac
[ -n "$program" ] && [ -x "$program" ] || fail "'$program' is not a program; expected the path of \
profllm as the fourth argument, or profllm in PATH"
[ "$runtime" = folder ] || command -v "$runtime" >/dev/null ||
	fail "there is no $runtime in PATH; expected podman or docker"

# The loader's file of a library that the program loads by name.
find_library() {
	/sbin/ldconfig -p | sed -n "s,^\t$1 .*\(x86-64\|AArch64\).* => ,,p" | head -n 1
}
loaded='libcurl.so.4'
[ "$kind" != dashboard ] || loaded="$loaded libsqlite3.so.0 libpq.so.5 libmicrohttpd.so.12 libyaml-0.so.2"
[ "$kind" != sim ] || loaded=

folder=$name
if [ "$runtime" != folder ]; then
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	trap 'exit 1' HUP INT TERM
fi
image=$folder/image
mkdir -p "$image/usr/bin" "$image/tmp" "$image/etc/ssl/certs" "$image/work" "$folder/data/profllm"
chmod 1777 "$image/tmp" "$image/work"
cp "$program" "$image/usr/bin/profllm"
files=$program
for library in $loaded; do
	file=$(find_library "$library")
	[ -n "$file" ] || fail "$library is not installed; the image of kind $kind needs it"
	files="$files $file"
done
# Each under every path by which the loader or another library may ask for it.
for file in $files; do
	[ "$file" = "$program" ] || echo "$file"
	ldd "$file" | grep -o '/[^ ]*'
done | sort -u | while read -r library; do
	mkdir -p "$image$(dirname "$library")"
	cp -L "$library" "$image$library"
done
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -e $certificates ] || cp -L $certificates "$image$certificates"
echo 'profllm:x:65532:65532:ProfLLM:/var/lib/profllm:/sbin/nologin' >"$image/etc/passwd"
echo 'profllm:x:65532:' >"$image/etc/group"
echo 'hosts: files dns' >"$image/etc/nsswitch.conf"
if [ -n "${SBOM:-}" ]; then # a file for the bill of materials of the image
	"$here/../sbom.pl" image "$program" $(cd "$image" && find lib usr/lib lib64 -type f 2>/dev/null |
		sed 's,^,/,') >"$SBOM"
fi
cp "$here/Containerfile.$kind" "$folder/Containerfile"
[ "$runtime" != folder ] || exit 0
# Docker's format, because the other one has no health checks.
[ "$runtime" != podman ] || format='--format docker'
"$runtime" build ${format:-} -f "$folder/Containerfile" -t "$name" "$folder"
