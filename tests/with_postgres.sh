#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# with_postgres.sh COMMAND...: runs COMMAND while a PostgreSQL server of its own is there.
#
# The server lives in a scratch folder, listens on a socket in it and nowhere else, and is gone at
# the end with all it had. PROFLLM_TEST_POSTGRES is its URL with @ in place of the database; each
# program in C that reads that variable has a database of its own, named after its file with _ for
# whatever is no letter or digit (test_store_c), so that tests can run at once.
# PROFLLM_TEST_CREATEDB makes another one: the command, to which its name is added.
#
# PostgreSQL refuses to run as root: then it runs as user postgres. Exit status: the command's; 1
# without PostgreSQL. POSTGRES=0 runs the command alone, and what needs a server is left out.
set -eu

[ $# -gt 0 ] || { echo "usage: with_postgres.sh COMMAND..." >&2; exit 2; }
[ "${POSTGRES:-1}" != 0 ] || exec "$@"
[ -z "${PROFLLM_TEST_POSTGRES:-}" ] || exec "$@" # there is one already

tests=$(cd "$(dirname "$0")" && pwd)
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || bin=$(dirname "$(command -v initdb || echo /nowhere/initdb)")
if [ ! -x "$bin/initdb" ]; then
	echo "with_postgres.sh: no PostgreSQL here; scripts/setup --tests installs it" >&2
	exit 1
fi

home=$(mktemp -d /tmp/profllm-pg-XXXXXX)
as() { (cd "$home" && "$@"); }
if [ "$(id -u)" = 0 ]; then
	chown postgres "$home"
	as() { (cd "$home" && runuser -u postgres -- "$@"); }
fi
stop() {
	as "$bin/pg_ctl" -D "$home/data" -m immediate -w stop >/dev/null 2>&1 || :
	rm -rf "$home"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

as "$bin/initdb" -D "$home/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 \
	>"$home/initdb.log" 2>&1 || { cat "$home/initdb.log" >&2; exit 1; }
# Nothing here outlives a crash of the machine, so nothing waits for the disk.
as "$bin/pg_ctl" -D "$home/data" -l "$home/log" -w -o "-k $home -c listen_addresses='' \
	-c fsync=off -c full_page_writes=off -c max_connections=200" start >/dev/null ||
	{ cat "$home/log" >&2; exit 1; }

for file in $(grep -lE "PROFLLM_TEST_POSTGRES|store_rig\.h" "$tests"/*/*.c "$tests"/../bench/*.c); do
	name=$(basename "$file" | tr -c 'a-zA-Z0-9\n' _)
	echo "CREATE DATABASE \"$name\";"
done | as "$bin/psql" -q -h "$home" -U postgres -d postgres

export PROFLLM_TEST_CREATEDB="$bin/createdb -h $home -U postgres"
status=0
PROFLLM_TEST_POSTGRES="postgresql:///@?host=$home&user=postgres" "$@" || status=$?
exit $status
