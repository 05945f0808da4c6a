#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Columns of a store while a dashboard runs on it: one upload does not use them up, those of removed
# runs come back, what is asked of a column that has gone is refused, and a kill at any moment leaves
# a good store.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Test::More;
use Time::HiRes qw(sleep time);

use constant KILLS => $ENV{KILLS} || 4;
srand 19; # when it is killed

sub document {
	my ($id, $name, %tags) = @_;

	return json_text({ schema_version => 1, run_id => $id, timestamp => '2026-01-02T03:04:05Z',
		config => { name => $name, server => { model => 'm' }, tags => \%tags },
		results => { request_throughput => 1.5 }, environment => {}, status => 'completed' });
}

sub junk {
	my ($round, $run) = @_;

	return document("junk_${round}_$run", 'junk', map { ("r${round}_${run}_$_" => $_) } 1 .. 3000);
}

my $d = start_dashboard();
my @store = ('--store', $d->{store});

sub upload { return ask($d, 'POST', '/api/upload/raw', $_[0]) }
sub columns { return ask($d, 'GET', '/api/data/summary')->{json}{columns} }

sub value_of {
	my ($run, $column) = @_;
	my $r = ask($d, 'GET', "/api/data/experiments/$run")->{json};

	return $r->{values}{$column};
}

sub is_good {
	my ($what) = @_;
	my $r = run(args => ['store', 'check', @store]);

	is($r->{status}, 0, "$what: nothing is wrong") or diag $r->{out}, $r->{err};
	return $r->{out};
}

sub remove_junk {
	return ['store', 'remove', @store, '--yes', '--filter', '{"column": "name", "in": ["junk"]}'];
}

# ---- one upload, and the same in thirty ----

my $began = time;
my $r = upload(join "\n", map { junk(0, $_) } 1 .. 30);
note sprintf '30 runs of 3,000 new names: %.1f s', time - $began;
is($r->{status}, 201, 'thirty runs of three thousand new names are taken in');
like($r->{json}{results}[0]{reason}, qr/^2700 of its values are only in its document/,
	'with a note that counts what has no column');
like($r->{json}{results}[0]{reason}, qr/: "tags\.r0_1_\d+", .* and 2697 more\. Keep values .* in a list/,
	'and names the first, and says what to do');
cmp_ok(columns()->{used}, '<=', 600, 'an upload adds some hundred columns');
$r = upload(document('honest_0', 'honest', mine_0 => 7));
is($r->{json}{results}[0]{reason}, undef, 'a new parameter of somebody else is a column');
is(value_of('honest_0', 'tags.mine_0'), 7, 'with its value');
upload(junk(1, $_)) for 1 .. 30;
note 'used after thirty more uploads: ', columns()->{used}, ' of ', columns()->{limit};
upload(document('honest_1', 'honest', mine_1 => 8));
$r = run(args => ['export', @store, '--columns', 'run_id,tags.mine_1', '--filter',
	'{"column": "tags.mine_1", "in": [8]}']);
is($r->{out}, "run_id,tags.mine_1\r\nhonest_1,8\r\n", 'so after thirty more uploads');

# ---- many files in one upload ----

my $job = ask($d, 'POST', '/api/upload/batch', form(map { ['files', "part$_.json", junk(2, $_)] } 1 .. 5))
	->{json}{job_id};
wait_for('the files are taken in', sub {
	($r = ask($d, 'GET', "/api/upload/status/$job")->{json})->{state} eq 'done' });
is((grep { $_->{reason} =~ /^3000 of its values/ } @{$r->{files}}) > 0, 1,
	'all files of an upload share what it may add') or diag explain $r->{files};

# ---- how full it is ----

$r = ask($d, 'GET', '/metrics')->{content};
like($r, qr/^profllm_store_columns @{[columns()->{used}]}$/m, '/metrics has what is used');
like($r, qr/^profllm_store_columns_max @{[columns()->{limit}]}$/m, 'and the limit');
like(is_good('a store with junk'), qr/^@{[columns()->{used}]} of @{[columns()->{limit}]} columns /m,
	'store check prints both');

# ---- they come back ----

my $gone = 'tags.r1_1_1';
$gone = (grep { /^tags\.r1_1_/ } keys %{ask($d, 'GET', '/api/data/experiments/junk_1_1')->{json}{values}})[0];
my %filter = (filter => { column => $gone, in => [1] });
is(ask($d, 'POST', '/api/filters/apply', { %filter, limit => 1 })->{status}, 200, 'a column of the junk');
$r = run(args => remove_junk());
is($r->{status}, 0, 'the junk is removed') or diag $r->{err};
wait_for('the columns come back', sub { columns()->{used} == 2 });
is(columns()->{used}, 2, 'all of its columns have come back, while the dashboard runs');
wait_for('the index follows', sub {
	ask($d, 'POST', '/api/filters/apply', { %filter, limit => 1 })->{status} == 400 });
for (['a filter', 'filters/apply', { %filter }], ['a sort', 'filters/apply',
	{ sort => [{ column => $gone }] }], ['an export', 'export/csv', { columns => [$gone] }]) {
	my ($what, $path, $body) = @$_;
	my $now = ask($d, 'POST', "/api/$path", $body);
	my $never = ask($d, 'POST', "/api/$path", json_of(json_text($body) =~ s/\Q$gone\E/tags.never_was/r));

	is($now->{status}, 400, "$what by it is refused");
	is($now->{status}, $never->{status}, 'as by a name that never was one');
}
$r = upload(document('next', 'honest', map { ("n$_" => 1000 + $_) } 1 .. 200));
is($r->{json}{results}[0]{reason}, undef, 'others get them');
is(value_of('next', "tags.n$_"), 1000 + $_, 'with their own values') for 1, 100, 200;
is(value_of('honest_1', 'tags.mine_1'), 8, 'and what was there keeps its own');
is(value_of('honest_1', 'tags.n1'), undef, 'and gets none');
is_good('with columns that were used before');

# ---- over a restart, a backup, and on the other side of it ----

$d->stop;
$d = start_dashboard(@store);
is(value_of('next', 'tags.n200'), 1200, 'a restarted dashboard has them');
is(run(args => ['backup', 'runs.backup', @store])->{status}, 0, 'a backup');
is(run(args => ['restore', 'runs.backup', '--store', 'sqlite:copy.db'])->{status}, 0, 'is restored');
$r = run(args => ['export', '--store', 'sqlite:copy.db', '--columns', 'run_id,tags.n200,tags.mine_1',
	'--sort', 'run_id']);
is($r->{out}, "run_id,tags.n200,tags.mine_1\r\nhonest_0,,\r\nhonest_1,,8\r\nnext,1200,\r\n",
	'with the same values');
check_run('and is good', run(args => [qw(store check --store sqlite:copy.db)]), { status => 0,
	out => ['nothing is wrong'] });

# ---- what was left out, once there is room ----

upload(document('long', 'honest', map { ("l$_" => $_) } 1 .. 400));
is((grep { /^tags\.l/ } keys %{ask($d, 'GET', '/api/data/experiments/long')->{json}{values}}), 300,
	'a run of four hundred names has three hundred');
check_run('the rest is brought in', run(args => ['store', 'check', '--repair', @store]), { status => 0,
	out => ['0 columns freed, 100 values of 1 run added, benchmark_runs rebuilt'] });
wait_for('the dashboard follows', sub {
	grep({ /^tags\.l/ } keys %{ask($d, 'GET', '/api/data/experiments/long')->{json}{values}}) == 400 });
is(value_of('long', "tags.l$_"), $_, 'with its value') for 1, 77, 400;
is(value_of('next', 'tags.n200'), 1200, 'and others keep theirs');
is($d->stop, 0, 'the dashboard ends well');
is(slurp($d->{err}) =~ /error/i, '', 'and nothing went wrong in it');

# ---- killed in the middle ----

my $cut = 0;
for my $round (3 .. 2 + KILLS) {
	spew("junk$round.jsonl", join "\n", map { junk($round, $_) } 1 .. 2);
	my $put = run(args => ['ingest', "junk$round.jsonl", @store]);

	is($put->{status}, 0, 'junk again') or diag $put->{err};
	for my $args (remove_junk(), ['store', 'check', '--repair', @store]) {
		my $killed = begin(args => $args);

		sleep rand 0.5;
		kill 'KILL', $killed->{pid};
		$cut++ if finish($killed)->{status} eq 'signal 9';
		is_good("after a kill in `@$args[0, 1]`");
	}
}
note "killed before the end: $cut of ", 2 * KILLS;
is(run(args => remove_junk())->{status}, 0, 'removed at last');
is(run(args => ['store', 'check', '--repair', @store])->{status}, 0, 'and repaired');
like(is_good('in the end'), qr/^602 of /m, 'with the columns of those that are left');
$r = run(args => ['export', @store, '--columns', 'run_id,tags.n200,tags.mine_1,tags.l400', '--sort',
	'run_id']);
is($r->{out}, "run_id,tags.n200,tags.mine_1,tags.l400\r\nhonest_0,,,\r\nhonest_1,,8,\r\nlong,,,400\r\n"
	. "next,1200,,\r\n", 'and their values');
done_testing;
