#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kernel.sh PROGRAM ARGUMENTS...: runs a program of build/bench under a kernel of its own.
#
# For figures that this machine's limits forbid: a container may not raise its limit of open files,
# under user-mode Linux it may. That kernel is a process: it has one processor, MEMORY (8192 MB), the
# files of this machine and an interface to itself. Its system calls cost several times as much, so
# times are worse than those of the machine; STREAMS_RATE of the environment is passed on.
#
#   make build/profllm build/bench/scale && bench/kernel.sh scale --only streams --repeats 1
#
# Needs `apt-get install user-mode-linux`. Exit status: the program's; 2 where something is missing.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] && [ -x "build/bench/$1" ] || { sed -n '3,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v linux.uml >/dev/null ||
	{ echo "kernel.sh: linux.uml is not there: apt-get install user-mode-linux" >&2; exit 2; }

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
program=$1
shift
cat >"$home/init" <<END
#!/bin/sh
mount -t proc proc /proc
mount -t tmpfs tmp /run
export TMPDIR=/run STREAMS_RATE=${STREAMS_RATE-}
ip link set lo up
ulimit -Hn 1000000
cd "$PWD"
build/bench/$program $(printf '%q ' "$@") >"$home/out" 2>&1
echo \$? >"$home/status"
exec halt -f
END
chmod +x "$home/init"
linux.uml "mem=${MEMORY:-8192}M" rootfstype=hostfs rootflags=/ rw "init=$home/init" \
	con=null con0=null,fd:1 quiet </dev/null >"$home/log" 2>&1 || :
cat "$home/out" 2>/dev/null || cat "$home/log"
exit "$(cat "$home/status" 2>/dev/null || echo 1)"
