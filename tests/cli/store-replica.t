#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dashboard on a read replica of PostgreSQL next to one on its primary: what is taken in, tagged and
# deleted through one is seen in the other, and what would write to the replica is refused in one sentence.
# It needs PROFLLM_TEST_POSTGRES (tests/with_postgres.sh).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use Dash;
use Test::More;

plan skip_all => 'PROFLLM_TEST_POSTGRES names no server' unless $ENV{PROFLLM_TEST_POSTGRES};
my ($primary_dir) = $ENV{PROFLLM_TEST_POSTGRES} =~ /host=([^&]*)/;
my ($bin) = $ENV{PROFLLM_TEST_CREATEDB} =~ m{^(\S*/)createdb};
plan skip_all => 'that server has no socket, or its programs are unknown' unless $primary_dir && $bin;

local $ENV{TEST_STORE} = 'postgresql';
my $home = "$primary_dir/replica$$"; # in a folder of the user that the server runs as
my @as = $> == 0 ? (qw(runuser -u postgres --)) : ();

sub as {
	my @command = @_;
	my $log = getcwd() . '/replica.log';

	# pg_ctl's server keeps what it is given open.
	return system('sh', '-c', 'cd / && exec "$@" >>"$0" 2>&1 </dev/null', $log, @as, @command) == 0;
}

sub result {
	my ($n) = @_;
	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
		request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
		total_output_tokens => 100, output_throughput => 50, request_throughput => $n,
		mean_ttft_ms => 3 });
}

sub total { return ask($_[0], 'POST', '/api/filters/apply', '{"limit": 1}')->{json}{total} }

my $store = store_url('replica');
my $primary = start_dashboard('--no-launch', '--store', $store);
is(ask($primary, 'POST', '/api/upload/raw', result($_))->{status}, 201, "run $_ is taken in") for 1 .. 3;

# With a slot the primary keeps what the replica has not read yet, however much other tests write.
ok(as("${bin}pg_basebackup", '-h', $primary_dir, '-U', 'postgres', '-D', $home, '-R', '-X',
	'stream', '-c', 'fast', '--no-sync', '-C', '-S', "replica$$"), 'a replica is made')
	or BAIL_OUT(slurp('replica.log'));
END {
	diag("the replica's log:\n" . join '', grep { defined } (split /^/, slurp("$home/log"))[-20 .. -1])
		if $? && -e "$home/log";
	local $?;
	as("${bin}pg_ctl", '-D', $home, '-m', 'immediate', '-w', 'stop')
		if $home && -e "$home/postmaster.pid";
	as("${bin}psql", '-q', '-h', $primary_dir, '-U', 'postgres', '-c',
		"select pg_drop_replication_slot('replica$$')") if $home && -d $home;
}
ok(as("${bin}pg_ctl", '-D', $home, '-w', '-l', "$home/log", '-o',
	"-k $home -c listen_addresses='' -c max_connections=200 -c hot_standby_feedback=on", 'start'),
	'and started')
	or BAIL_OUT(slurp('replica.log'));
my $copy = $store =~ s/\Q$primary_dir\E/$home/r;

my $replica = start_dashboard('--no-launch', '--store', $copy);
like(slurp($replica->{err}), qr/takes no writes, as a read replica does: this dashboard is read-only/,
	'its dashboard says that it is read-only');
is(total($replica), 3, 'and has the runs');
my $answer = ask($replica, 'POST', '/api/upload/raw', result(9));
is($answer->{status}, 403, 'an upload there is refused');
like($answer->{content}, qr/this dashboard is read-only: .*read replica/, 'with the reason');

is(ask($primary, 'POST', '/api/upload/raw', result(4))->{status}, 201, 'a fourth run comes to the primary');
wait_for('the fourth run in the replica', sub { total($replica) == 4 }, 180);
my $ids = [map { $_->{id} } @{ask($primary, 'POST', '/api/filters/apply', '{"limit": 2}')->{json}{items}}];
is(ask($primary, 'POST', '/api/data/bulk', json_text({ action => 'delete',
	ids => [$ids->[0]] }))->{status}, 200, 'a run is deleted');
wait_for('the delete in the replica', sub { total($replica) == 3 }, 180);
is(ask($primary, 'POST', '/api/data/bulk', json_text({ action => 'exclude', ids => [$ids->[1]],
	text => 'not this one' }))->{status}, 200, 'another one excluded');
wait_for('the exclusion in the replica', sub { total($replica) == 2 }, 180);
pass('each change was followed');

spew('r.json', result(10));
my $r = run(args => ['ingest', 'r.json', '--store', $copy]);
is($r->{status}, 2, 'ingest there is a mistake of the user');
like($r->{err}, qr/takes no writes, because its server is a read replica .*: name the primary server/,
	'said in one sentence');
$r = run(args => ['export', '--store', $copy, '--columns', 'request_throughput']);
is($r->{status}, 0, 'export reads the replica');
$r = run(args => ['store', 'check', '--store', $copy]);
is($r->{status}, 0, 'and so does store check') or diag $r->{out}, $r->{err};
done_testing;
