#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# portable.sh SOURCE WORK NAME OUT: the client in a tarball that runs on Linux with glibc 2.28 or newer.
#
# The program is compiled by this machine's compiler for the C library of Debian 11 (2.31), two of
# whose packages are downloaded once, with their checksums below; portable/compat.h and compat.c see
# to the rest. OpenSSL, PCRE2 and zlib are Debian 12's static libraries, so what remains is the C
# library. SOURCE is the unpacked source, WORK a folder for what is made on the way (WORK/sysroot is
# used again when it is there), NAME the tarball's folder, OUT the tarball.
set -euo pipefail
source=$(realpath "$1") work=$(realpath -m "$2") name=$3 out=$(realpath -m "$4")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

[ "$(dpkg --print-architecture)" = amd64 ] ||
	fail 1 "the portable tarball is made on amd64 only: the checksums in portable.sh are for it"
triplet=x86_64-linux-gnu
glibc=2.31-13+deb11u11
packages="
05f7264da867b37f4c5ce49266b558ea1e81e05a9464f623152fca70f3550282 libc6_${glibc}_amd64.deb
e7f7b45d9c5cfcf37609f0b6efd3c645272c812144703af89dfd32218fcb0fd3 libc6-dev_${glibc}_amd64.deb"
mirrors="http://deb.debian.org/debian http://archive.debian.org/debian"

# download SHA256 FILE: from the first mirror that has it.
download() {
	local mirror
	for mirror in $mirrors; do
		curl -fsSL --max-time 120 -o "$2.new" "$mirror/pool/main/g/glibc/${2##*/}" || continue
		echo "$1  $2.new" | sha256sum --check --quiet && mv "$2.new" "$2" && return 0
	done
	fail 1 "cannot download ${2##*/} with the SHA-256 $1 from: $mirrors"
}

# The C library of Debian 11, the kernel's headers and the libraries of this machine, static ones only.
make_sysroot() {
	local root=$1.new sum file link to
	rm -rf "$root"
	mkdir -p "$root/usr/include/$triplet" "$root/usr/lib/$triplet"
	while read -r sum file; do
		[ -n "$sum" ] || continue
		[ -e "$work/$file" ] || download "$sum" "$work/$file"
		dpkg-deb -x "$work/$file" "$root"
	done <<<"$packages"
	# Links to absolute paths would lead to this machine's files.
	find "$root" -type l -lname '/*' | while read -r link; do
		to=$(readlink "$link")
		ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$to")" "$link"
	done
	cp -r /usr/include/linux /usr/include/asm-generic "$root/usr/include"
	cp -r "/usr/include/$triplet/asm" "$root/usr/include/$triplet"
	for file in openssl curl "$triplet/openssl" "$triplet/curl" pcre2.h zlib.h zconf.h utf8proc.h; do
		[ ! -e "/usr/include/$file" ] || cp -r "/usr/include/$file" "$root/usr/include/$file"
	done
	for file in libssl libcrypto libpcre2-8 libz; do
		cp "/usr/lib/$triplet/$file.a" "$root/usr/lib/$triplet" ||
			fail 1 "scripts/setup installs the packages whose static libraries are needed"
	done
	mv "$root" "$1"
}

mkdir -p "$work"
[ -d "$work/sysroot" ] || make_sysroot "$work/sysroot"
# -B, for gcc looks in its own folders before it looks in the sysroot.
cc="${CC:-gcc} --sysroot=$work/sysroot -B$work/sysroot/usr/lib/$triplet"
flags="$dist_cflags -ffile-prefix-map=$work=. -include packaging/portable/compat.h -Ipackaging/portable"
mkdir -p "$work/obj"
(cd "$source" && $cc -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra $flags \
	-c -o "$work/obj/compat.o" packaging/portable/compat.c)
build_in "$source" O="$work/obj" CC="$cc" CFLAGS="$flags" \
	LDFLAGS="$dist_ldflags -static-libgcc" client \
	CLIENT_LDLIBS="$work/obj/compat.o -Wl,--as-needed -lssl -lcrypto -lpcre2-8 -lz -lm -ldl -pthread"

root=$work/$name
rm -rf "$root"
install -D "$work/obj/client/profllm" "$root/bin/profllm"
strip "$root/bin/profllm"
install -D -m 644 "$source/LICENSE" "$root/share/doc/profllm/LICENSE"
install -m 644 "$source/CHANGES.md" "$source/packaging/portable/README" "$root/share/doc/profllm"
for package in libssl-dev libpcre2-dev zlib1g-dev; do
	install -m 644 "/usr/share/doc/$package/copyright" "$root/share/doc/profllm/copyright.$package"
done
"$here/sbom.pl" portable "$root/bin/profllm" >"$root/share/doc/profllm/sbom.spdx.json"
pack "$work" "$name" "$out"
