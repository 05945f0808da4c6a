#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# corpus.sh - fetches what corpus.mjs cuts its texts from.
#
#   corpus.sh DIR
#
# Manual pages come from Debian 12, sources from npm, all in fixed versions, so
# the sums at the end are the same everywhere. A DIR that is complete is left alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
if ! [ -s mixed.txt ]; then
	mkdir -p raw/man raw/code
	cd raw
	apt-get -qq -o APT::Sandbox::User=root download manpages manpages-dev manpages-ja manpages-zh
	for deb in *.deb; do
		dpkg -x "$deb" man
	done
	for name in rxjs@7.8.2 node-gyp@11.0.0 usb@2.14.0; do
		tar=$(npm pack --silent "$name")
		mkdir -p "code/${name%@*}"
		tar xzf "$tar" -C "code/${name%@*}"
	done
	cd ..
	node "$here/corpus.mjs" raw .
	rm -r raw
fi
sha256sum english.txt code.txt cjk.txt mixed.txt | cut -c 1-16,65-
