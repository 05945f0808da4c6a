#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build-image.sh - makes an image of the simulated server from an installed or built profllm.
#
#   examples/container/build-image.sh [RUNTIME [NAME [PROGRAM]]]
#
# RUNTIME is podman (default) or docker, NAME localhost/profllm-sim, PROGRAM the first profllm in
# PATH. Nothing is downloaded: the image is the program and the libraries that ldd names.
set -eu

runtime=${1:-podman}
name=${2:-localhost/profllm-sim}
program=${3:-$(command -v profllm || true)}
here=$(cd "$(dirname "$0")" && pwd)

if [ -z "$program" ] || [ ! -x "$program" ]; then
	echo "build-image.sh: '$program' is not a program; expected the path of profllm as the" \
		"third argument, or profllm in PATH" >&2
	exit 2
fi
if ! command -v "$runtime" >/dev/null; then
	echo "build-image.sh: there is no $runtime in PATH; expected podman or docker" >&2
	exit 2
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$folder/image/usr/bin" "$folder/image/tmp"
chmod 1777 "$folder/image/tmp"
cp "$program" "$folder/image/usr/bin/profllm"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
	mkdir -p "$folder/image$(dirname "$library")"
	cp -L "$library" "$folder/image$library"
done
cp "$here/Containerfile" "$folder/Containerfile"
"$runtime" build -f "$folder/Containerfile" -t "$name" "$folder"
