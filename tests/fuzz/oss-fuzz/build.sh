#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0
# build.sh: every fuzz target with its corpus into $OUT, as OSS-Fuzz calls it. TARGETS names some of them.
#
# The libraries that a target loads come along, because the image that runs it has none.
targets=${TARGETS:-$(ls tests/fuzz/fuzz_*.c | sed 's,.*/fuzz_,,; s,\.c$,,')}
make -j"$(nproc)" WEB=0 O=build-oss FUZZ_CC="$CC" FUZZ_SANITIZERS="$CFLAGS" \
	FUZZ_ENGINE="$LIB_FUZZING_ENGINE -Wl,--disable-new-dtags,-rpath,'\$\$ORIGIN/lib'" \
	$(printf 'build-oss/fuzz/%s ' $targets)
mkdir -p "$OUT/lib"
copy_needed() {
	ldd "$1" | awk '$3 ~ /^\// && $3 !~ /\/lib(c|m|dl|pthread|rt|gcc_s)\.so/ { print $3 }' |
		xargs -r -I{} cp -n {} "$OUT/lib/"
}
for target in $targets; do
	cp "build-oss/fuzz/$target" "$OUT/$target"
	copy_needed "$OUT/$target"
	(cd "tests/fuzz/corpus/$target" && zip -q -X "$OUT/${target}_seed_corpus.zip" *)
done
# Those that are loaded when they are first needed are named in the sources.
for library in $(grep -rhoE '"lib[a-z0-9]+(-[0-9]+)?\.so\.[0-9]+"' src/core src/input src/results src/web |
		tr -d '"' | sort -u); do
	path=$(ldconfig -p | awk -v name="$library" '$1 == name { print $NF; exit }')
	[ -z "$path" ] || { cp -nL "$path" "$OUT/lib/"; copy_needed "$path"; }
done
# tokenizer reads a small model of the tests.
mkdir -p "$OUT/tests/unit/token" && cp tests/unit/token/small.json "$OUT/tests/unit/token/"
