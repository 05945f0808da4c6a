#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the pages are made of, without a browser: decoding, level of detail, order, formats.
if [ "${WEB:-1}" = 0 ]; then
	echo "1..0 # SKIP this build has no pages (WEB=0)"
	exit 0
fi
cd "$(dirname "$0")/../../web" || exit 1
exec node_modules/.bin/vitest run --reporter=tap-flat
