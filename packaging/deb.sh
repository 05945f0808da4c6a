#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh SOURCE WORK VERSION OUT: the package for Debian 12.
#
# `make install` of the unpacked SOURCE without library and headers, what deb/ has for the dashboard as a
# service, and what dpkg-shlibdeps says the program needs. deb/libraries says how much a package is needed
# whose library is loaded at run time; one that it does not name ends the build.
set -euo pipefail
source=$(realpath "$1") work=$(realpath -m "$2") version=$3 out=$(realpath -m "$4")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

root=$work/files
rm -rf "$root" "$work/debian"
mkdir -p "$root/DEBIAN" "$work/debian"
build_in "$source" O="$work/obj" CC="${CC:-gcc}" CFLAGS="$dist_cflags -ffile-prefix-map=$work=." \
	LDFLAGS="$dist_ldflags" DESTDIR="$root" PREFIX=/usr all install >"$work/install.log"
rm -r "$root/usr/lib" "$root/usr/include"
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root"/usr/share/zsh/site-functions/* "$root/usr/share/zsh/vendor-completions"
rmdir "$root/usr/share/zsh/site-functions"
strip "$root/usr/bin/profllm" "$root/usr/libexec/profllm/workers/llama_worker"
gzip -n -9 "$root"/usr/share/man/man1/*.1

doc=$root/usr/share/doc/profllm
rm "$doc/LICENSE"
install -m 644 "$here/deb/copyright" "$doc/copyright"
gzip -n -9 <"$source/CHANGES.md" >"$doc/changelog.gz"
install -D -m 644 "$here/deb/dashboard.service" "$root/usr/lib/systemd/system/profllm-dashboard.service"
install -D -m 644 "$here/deb/sysusers.conf" "$root/usr/lib/sysusers.d/profllm.conf"
install -D -m 644 "$here/deb/tmpfiles.conf" "$root/usr/lib/tmpfiles.d/profllm.conf"
install -D -m 644 "$here/deb/default" "$root/etc/default/profllm-dashboard"
install -D -m 644 -t "$doc/examples" "$here/nginx.conf" "$here/compose.yaml" "$here/kubernetes.yaml"
install -m 644 -t "$doc/examples" "$source"/examples/*.yaml
install -D -m 644 -t "$doc/examples/monitoring" "$source"/examples/monitoring/*
"$here/sbom.pl" deb "$root/usr/bin/profllm" >"$doc/sbom.spdx.json"

# needed KIND: the packages of that kind, with commas.
needed() { sed -n "s/^$1 *//p" "$here/deb/libraries" | tr -s ' \n' '\n' | paste -sd, | sed 's/,/, /g'; }
for package in $(sed -nE 's/.*LIBRARY\(.*"[^"]+\.so[^"]*", *"([^"]+)"\);/\1/p' -r "$source"/src/*/*/*.c); do
	grep -qw -- "$package" "$here/deb/libraries" ||
		fail 1 "$package is loaded at run time and is not in deb/libraries; add it there"
done
printf 'Source: profllm\n\nPackage: profllm\nArchitecture: any\n' >"$work/debian/control"
linked=$(cd "$work" && dpkg-shlibdeps -O -e files/usr/bin/profllm \
	-e files/usr/libexec/profllm/workers/llama_worker | sed 's/^shlibs:Depends=//')
find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%P\0' | sort -z |
	(cd "$root" && xargs -0 md5sum) >"$root/DEBIAN/md5sums"
echo /etc/default/profllm-dashboard >"$root/DEBIAN/conffiles"
install -m 755 "$here/deb/postinst" "$here/deb/prerm" "$here/deb/postrm" "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: profllm
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: ProfLLM developers <profllm@localhost>
Section: utils
Priority: optional
Installed-Size: $(du -k --apparent-size -s "$root/usr" | cut -f1)
Depends: $linked, $(needed depends)
Recommends: $(needed recommends)
Suggests: $(needed suggests)
Description: measures how fast a server of language models is
 A drop-in for vllm bench that proves its measurement, an experiment runner, a
 results store with a web dashboard, and a simulated server.
END
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$out.new" >/dev/null
mv "$out.new" "$out"
