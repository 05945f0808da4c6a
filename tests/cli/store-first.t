#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The first hour with a store on PostgreSQL: a database that does not exist, has no tables, or gives
# the role no rights; passwords with characters that end them, which are never shown. What needs a
# server is left out where PROFLLM_TEST_POSTGRES names none.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

# ---- URLs, which need no server ----

my $cut = 'profllm store check: the password in the URL of the PostgreSQL store has a character that '
	. 'ends it: write %40 for @, %2F for /, %3F for ? and %23 for # (profllm help store_address)';
for my $password ('hidden@zebra', 'hidden/zebra', 'hidden?zebra', 'hidden#zebra') {
	my $r = run(args => ['store', 'check', '--store', "postgresql://u:$password\@127.0.0.1:1/runs"]);

	check_run("password $password", $r, { status => 2, err => $cut });
	unlike("$r->{out}$r->{err}", qr/hidden|zebra/, 'no part of it is shown');
}
for my $url ('postgresql://u:hidden%40word@127.0.0.1:1/runs', 'postgresql://127.0.0.1:1/a@b',
	'postgresql://u@127.0.0.1:1/runs?application_name=a@b') {
	my $r = run(args => ['store', 'check', '--store', $url]);

	is($r->{status}, 1, "$url is tried");
	like($r->{err}, qr/port 1 failed: Connection refused\. Is the server running/, 'in sentences');
	unlike($r->{err}, qr/hidden/, 'without the password');
}

# ---- databases ----

SKIP: {
	my $url = $ENV{PROFLLM_TEST_POSTGRES} or skip 'PROFLLM_TEST_POSTGRES names no server', 1;
	my ($host) = $url =~ /host=([^&]*)/;
	my ($bin) = $ENV{PROFLLM_TEST_CREATEDB} =~ m{^(\S*/)createdb};
	my $own = postgres_url();
	my ($database) = $own =~ m{///(\w+)};
	my $psql = sub {
		system("${bin}psql", qw(-q -U postgres -h), $host, '-d', $database, '-c', @_) == 0 or die;
	};

	spew('r.json', '{"date": "20260101-000000", "endpoint_type": "openai", "model_id": "m", '
		. '"num_prompts": 1, "duration": 1.0, "completed": 1, "request_throughput": 1.0}');
	my $ingest = sub { run(args => ['ingest', 'r.json', '--store', $_[0]]) };
	check_run('no such database', $ingest->($url =~ s/\@/nowhere/r), { status => 1,
		err => 'profllm ingest: PostgreSQL: *FATAL: database "nowhere" does not exist '
			. '(profllm help database_unreachable)' });
	check_run('no tables', run(args => ['store', 'check', '--store', $own]), { status => 2,
		err => 'profllm store check: the PostgreSQL store has no tables of a store yet: '
			. '`profllm ingest FILE --store URL` or a dashboard makes them' });
	$psql->('REVOKE CREATE ON SCHEMA public FROM PUBLIC; DROP ROLE IF EXISTS guest; '
		. 'CREATE ROLE guest LOGIN');
	check_run('a role without rights', $ingest->($own =~ s/user=postgres/user=guest/r), { status => 1,
		err => 'profllm ingest: the PostgreSQL store: PostgreSQL: ERROR: permission denied for '
		. 'schema public; for a new store the role needs a database of its own: ALTER DATABASE name '
		. 'OWNER TO role; to read the store of another role: GRANT SELECT ON ALL TABLES IN SCHEMA '
		. 'public TO role; to write it: GRANT owner TO role and ALTER ROLE role IN DATABASE name SET '
		. 'role TO owner' });

	# From SQLite, as the user of a password.
	is(run(args => [qw(ingest r.json --store sqlite:small.db)])->{status}, 0, 'a store on SQLite');
	my $secret = $own =~ s{///}{//postgres:hidden-word-1\@/}r =~ s/&user=postgres//r;
	my @convert = (qw(store convert --store sqlite:small.db --to), $secret);
	my $r = run(args => \@convert);
	is($r->{status}, 0, 'is converted') or diag($r->{err});
	like($r->{out}, qr{^postgresql://postgres:\*\*\*\@/$database\?\S+ now has the contents of },
		'and its new address has no password');
	check_run('it is not empty now', run(args => \@convert), { status => 2, err => 'profllm store '
		. 'convert: the PostgreSQL store is not empty; --force replaces what it holds' });
	like(run(args => ['store', 'check', '--store', $secret])->{out}, qr/^nothing is wrong$/m,
		'and nothing is wrong with it');
	check_run('which a role without rights cannot read', run(args => ['store', 'check', '--store',
		$own =~ s/user=postgres/user=guest/r]), { status => 1, err => 'profllm store check: the '
		. 'PostgreSQL store: PostgreSQL: ERROR: permission denied for table migrations; for a new '
		. 'store *' });
}

done_testing();
