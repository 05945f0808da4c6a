# SPDX-License-Identifier: Apache-2.0
# common.sh - what the packages' scripts share; sourced by them.
#
# Everything that could differ between two builds is fixed here: time (SOURCE_DATE_EPOCH, by default the
# time of the commit), zone, language, umask, owners, order of files, paths in debug information.
export LC_ALL=C TZ=UTC
umask 022
dist_cflags="-g0 -ffile-prefix-map=$source=. -fstack-protector-strong -D_FORTIFY_SOURCE=2"
dist_ldflags="-Wl,-z,relro,-z,now -Wl,--build-id=sha1"

# fail STATUS TEXT: one sentence, and the end.
fail() {
	echo "${0##*/}: $2" >&2
	exit "$1"
}

# build_in FOLDER WORDS...: make there, whatever the calling make was given.
build_in() {
	local folder=$1
	shift
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES make -s -C "$folder" -j"$(nproc)" DEV=0 "$@"
}

# pack PARENT NAME OUT: a tarball whose bytes depend on names, modes and contents alone.
pack() {
	tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mode=go+rX,go-w \
		--mtime="@$SOURCE_DATE_EPOCH" --format=gnu -cf - "$2" | gzip -n -9 >"$3.new"
	mv "$3.new" "$3"
}
