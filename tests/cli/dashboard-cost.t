#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# suite: first
# What a request may cost: many who read nothing of large answers, one user who asks all the time, a
# store that hangs. Others are answered all the while, memory stays below a limit and comes back.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(_exit);
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;
use Time::HiRes qw(sleep time);

use constant { RUNS => 6000, FILE_RUNS => 500, NOTES => 120, READERS => 60 };
use constant { MEMORY_MB => 1024, HEALTH_S => 0.1, QUICK_S => 5 };

sub memory_mb {
	my ($d) = @_;
	my ($kb) = slurp("/proc/$d->{pid}/status") =~ /^VmRSS:\s+(\d+)/m;
	return $kb / 1024;
}

# Connected, with little room for what it does not read.
sub reader {
	my ($d, $room) = @_;
	my $s = IO::Socket::INET->new(Proto => 'tcp') or die "no socket: $!\n";

	setsockopt $s, SOL_SOCKET, SO_RCVBUF, $room // 4096;
	connect $s, pack_address($d->{port}) or die "no connection: $!\n";
	return $s;
}

sub pack_address { return Socket::pack_sockaddr_in($_[0], Socket::inet_aton('127.0.0.1')) }

sub request {
	my ($method, $path, $body, @headers) = @_;
	my $text = defined $body ? json_text($body) : '';

	return join "\r\n", "$method $path HTTP/1.1", 'Host: localhost', @headers,
		'Content-Type: application/json', 'Content-Length: ' . length $text, '', $text;
}

# All that comes until it is closed.
sub rest_of {
	my ($s) = @_;
	local $/;
	return <$s> // '';
}

sub status_line { return $_[0] =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }

sub figure {
	my ($d, $name, %headers) = @_;
	my ($n) = ask($d, 'GET', '/metrics', undef, %headers)->{content} =~ /^\Q$name\E (\S+)$/m;
	return $n;
}

# How long health takes, many times; a busy machine may be late sometimes.
sub health_seconds {
	my ($d) = @_;
	my $began = time;
	my $r = ask($d, 'GET', '/api/health');

	die "health: $r->{status}\n" if $r->{status} != 200;
	return time - $began;
}

sub check_health {
	my ($name, @seconds) = @_;
	my @sorted = sort { $a <=> $b } @seconds;

	diag sprintf '%s: %d times, median %.4f s, longest %.4f s', $name, scalar @sorted,
		$sorted[$#sorted / 2], $sorted[-1];
	cmp_ok($sorted[0], '<', HEALTH_S, "$name: health answers at once");
	cmp_ok($sorted[-1], '<', QUICK_S, 'and never keeps anybody waiting');
}

# ---- PostgreSQL that hangs ----

# A relay to the server that can be stopped: to the dashboard the server then appears stopped.
sub start_door {
	my ($host) = $ENV{PROFLLM_TEST_POSTGRES} =~ /host=([^&]+)/;
	my $pid;

	mkdir 'door';
	my $listener = IO::Socket::UNIX->new(Local => 'door/.s.PGSQL.5432', Listen => 64) or die "door: $!\n";
	chmod 0777, 'door', 'door/.s.PGSQL.5432';
	$pid = fork;
	if (!$pid) {
		my %other;
		my $select = IO::Select->new($listener);

		while (1) {
			for my $s ($select->can_read) {
				if ($s == $listener) {
					my $in = $listener->accept;
					my $out = IO::Socket::UNIX->new(Peer => "$host/.s.PGSQL.5432")
						or _exit(1);
					@other{$in, $out} = ($out, $in);
					$select->add($in, $out);
					next;
				}
				my $to = $other{$s};
				my $n = sysread $s, my $bytes, 65536;
				if ($n) {
					print $to $bytes;
					$to->flush;
					next;
				}
				$select->remove($s, $to);
				close $_ for $s, $to;
			}
		}
	}
	return $pid;
}

if (($ENV{TEST_STORE} // '') eq 'postgresql') {
	my $url = store_url('door');
	my $door = start_door();
	my $cwd = POSIX::getcwd();

	$url =~ s/host=[^&]+/host=$cwd\/door/;
	my $d = start_dashboard('--no-launch', '--store', $url);
	is(ask($d, 'GET', '/api/health/ready')->{json}{status}, 'ok', 'the store answers');
	kill 'STOP', $door;
	my $stuck = fork;
	if (!$stuck) { # all workers wait for the store
		my @waiting = map { my $s = reader($d); print $s request('GET', '/api/jobs'); $s } 1 .. 8;
		sleep 60;
		_exit(0);
	}
	my @seconds;
	my $until = time + 30;
	my $r;
	do {
		push @seconds, health_seconds($d);
		$r = ask($d, 'GET', '/api/health/ready');
		sleep 0.1;
	} while ($r->{status} == 200 && time < $until);
	is($r->{status}, 503, 'a store that hangs makes it not ready');
	like($r->{json}{detail}, qr/^the store has not answered for \d+ s$/, 'which is told');
	ok($r->{headers}{'retry-after'}, 'with when to ask again');
	$r = ask($d, 'GET', '/api/health');
	is($r->{status}, 200, 'it is alive');
	is($r->{json}{status}, 'store does not answer', 'and says what is wrong');
	is(figure($d, 'profllm_store_up'), 0, 'figures say it, too');
	push @seconds, health_seconds($d) for 1 .. 20;
	check_health('a store that hangs', @seconds);
	kill 'CONT', $door;
	wait_for('readiness', sub { ask($d, 'GET', '/api/health/ready')->{status} == 200 });
	pass('it is ready again once the store answers');
	kill 'KILL', $stuck;
	waitpid $stuck, 0;
	kill 'KILL', $door;
	waitpid $door, 0;
	$r = ask($d, 'POST', '/api/upload/raw', json_text({ date => '20260101-000000', backend => 'vllm',
		model_id => 'm', num_prompts => 1, request_rate => 1, duration => 1, completed => 1,
		total_input_tokens => 1, total_output_tokens => 1, output_throughput => 1,
		request_throughput => 1, mean_ttft_ms => 1 }));
	is($r->{status}, 503, 'an upload is refused for now');
	ok($r->{headers}{'retry-after'}, 'with when to try again');
	is($d->stop, 0, 'and it ends well');
	done_testing();
	exit;
}

# ---- a store of some size ----

mkdir 'results';
for (my $at = 0; $at < RUNS; $at += FILE_RUNS) {
	spew("results/$at.json", json_text([map { my $n = $_; +{ date => '20260101-000000', backend => 'vllm',
		model_id => 'm' . $n % 7, num_prompts => 10, request_rate => 1 + $n % 9, duration => 1.5,
		completed => 10, total_input_tokens => 100, total_output_tokens => 100,
		output_throughput => $n / 7, request_throughput => $n, mean_ttft_ms => 3 + $n % 7,
		map { ("note_$_" => 'a text as long as somebody writes about this run ' . ($n * $_) % 999) }
			1 .. NOTES } } $at .. $at + FILE_RUNS - 1]));
}
my $store = store_url('cost');
is(run(args => ['ingest', 'results', '--store', $store], seconds => 600)->{status}, 0, RUNS . ' runs');
spew('tokens', "alice alice-alice-alice-1\nbob bob-bob-bob-bob-1\n");
my $d = start_dashboard('--no-launch', '--store', $store, '--log', 'access.jsonl');
my @columns = map { $_->{column} } @{ask($d, 'GET', '/api/filters/options?facet_values=0&bins=0')
	->{json}{items}};

# ---- cells ----

my $r = ask($d, 'POST', '/api/filters/apply', { limit => 10000, columns => \@columns });
is($r->{status}, 422, 'a page of all runs with all columns is too large');
my $count = @columns;
my ($rows) = $r->{json}{detail} =~ m{^/limit: expected at most (\d+) runs with $count columns, or }
	or diag $r->{json}{detail};
is($rows, int(500000 / @columns), 'and it is told how many would fit');
$r = ask($d, 'GET', "/api/data/experiments?limit=10000&columns=" . join ',', @columns);
is($r->{status}, 422, 'by GET, too');
$r = ask($d, 'GET', '/api/filters/options?facet_values=1000&bins=1000&filter='
	. '%7B%22and%22%3A%5B%5D%7D');
is($r->{status}, 200, 'all values of ' . @columns . ' columns');
my %page = (limit => 0 + $rows, columns => \@columns);
# Read as text: it is far too much for a JSON reader in Perl.
$r = $d->{http}->request('POST', "$d->{url}/api/filters/apply", { content => json_text(\%page),
	headers => { 'Content-Type' => 'application/json' } });
is($r->{status}, 200, "$rows runs with all columns");
is(scalar(() = $r->{content} =~ /\{"id":/g), $rows, 'are a page');
diag sprintf '%d columns; a page of %d runs has %.0f MB', scalar @columns, $rows,
	length($r->{content}) / 1e6;

# ---- those who read nothing ----

my $before = memory_mb($d);

# Meanwhile a client with a slow line exports: 8 KB a second, and the rest when all else is over.
my $slow = fork;
if (!$slow) {
	my $s = reader($d, 8192);
	my ($text, $began) = ('', time);

	print $s request('GET', '/api/export/csv', undef, 'Connection: close');
	$s->flush;
	until (-e 'hurry') {
		last unless sysread $s, $text, 2048, length $text;
		sleep 0.25;
	}
	spew('slow', time - $began . ' ' . length $text);
	spew('export', $text . rest_of($s));
	_exit(0);
}

my @readers = map { my $s = reader($d); print $s request('POST', '/api/filters/apply', \%page,
	'Connection: close'); $s->flush; $s } 1 .. READERS;
my ($most, @seconds) = ($before);
my $until = time + 240;
do {
	push @seconds, health_seconds($d);
	my $now = memory_mb($d);
	$most = $now if $now > $most;
	sleep 0.05;
} while (time < $until && (@seconds < 100
	|| figure($d, 'profllm_http_requests_waiting') || figure($d, 'profllm_http_answer_bytes')));
diag sprintf 'memory %.0f MB before, %.0f MB at most, %.0f MB after %.0f s', $before, $most,
	memory_mb($d), time - $until + 240;
cmp_ok($most, '<', MEMORY_MB, READERS . ' readers of nothing: memory stays below ' . MEMORY_MB . ' MB');
check_health('readers of nothing', @seconds);
is(figure($d, 'profllm_http_answer_bytes'), 0, 'nothing is kept for them for long');
my $cut = figure($d, 'profllm_http_answers_cut_total{reason="slow"}');
my $dropped = figure($d, 'profllm_http_answers_cut_total{reason="room"}');
my $refused = figure($d, 'profllm_http_refused_total{reason="answer_bytes"}');
diag "$cut were too slow, $dropped made room, $refused were refused";
cmp_ok($cut + $dropped, '>', 0, 'slow readers are let go');
cmp_ok($cut + $dropped + $refused, '>=', READERS / 2, 'most of them, or refused at once');
my %status;
for my $s (@readers) {
	my $text = rest_of($s);
	my $status = status_line($text);

	$status = 'cut' if $status eq '200';
	$status{$status}++;
	like($text, qr/^Retry-After: \d+\r$/m, 'refused with when to ask again') if $status eq '503';
	like($text, qr/WEB_ANSWERS_BYTES_MAX/, 'and by which limit') if $status eq '503';
}
diag join ', ', map { "$_: $status{$_}" } sort keys %status;
is($status{503} // 0, $refused, 'those for whom there was no room are told so');
wait_for('memory', sub { memory_mb($d) < $before + 150 });
diag sprintf 'memory %.0f MB in the end', memory_mb($d);

# ---- the honest one ----

spew('hurry', '');
waitpid $slow, 0;
my ($slow_s, $slow_bytes) = split ' ', slurp('slow');
diag sprintf 'a slow reader had %d bytes after %.0f s', $slow_bytes, $slow_s;
cmp_ok($slow_s, '>', 12, 'who reads slowly is served for long');
my $export = slurp('export');
ok($export =~ /\r\n0\r\n\r\n\z/, 'to the end');
is(scalar(() = $export =~ /\bsha256:[0-9a-f]{16}/g), RUNS, 'and gets all runs');

# ---- heads ----

for (['414', 'GET /api/filters/options?filter=' . 'a' x 40000 . " HTTP/1.1\r\nHost: localhost\r\n\r\n"],
	['431', "GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: " . 'a' x 40000 . "\r\n\r\n"]) {
	my ($s, $text) = (reader($d, 65536), '');

	print $s $_->[1];
	$s->flush;
	1 while $text !~ /\}\z/ && sysread $s, $text, 65536, length $text; # it may stay open for a while
	is(status_line($text), $_->[0], "a head that is too long: $_->[0]");
	like($text, qr{^Content-Type: application/problem\+json\r$}m, 'as every other error is told');
}

# ---- whose request it is ----

ask($d, 'GET', '/api/jobs', undef, 'X-Forwarded-For' => '203.0.113.9');
is($d->stop, 0, 'it ends well');
like(slurp('access.jsonl'), qr{"client": "127.0.0.1", "method": "GET", "path": "/api/jobs"},
	'nobody is believed who names another client');
$r = run(args => ['dashboard', '--listen', '127.0.0.1:0', '--store', $store, '--trusted-proxy', 'nginx']);
is($r->{status}, 2, 'a proxy has an address');
like($r->{err}, qr/--trusted-proxy nginx: expected the proxy's address, such as 127\.0\.0\.1/,
	'which is told');

$d = start_dashboard('--no-launch', '--store', $store, '--log', 'access2.jsonl',
	'--auth-token-file', 'tokens', '--trusted-proxy', '127.0.0.1');
my %alice = (Authorization => 'Bearer alice-alice-alice-1');
my %bob = (Authorization => 'Bearer bob-bob-bob-bob-1');
ask($d, 'GET', '/api/jobs', undef, %bob, 'X-Forwarded-For' => '198.51.100.7, 203.0.113.9');
wait_for('a line', sub { (slurp('access2.jsonl') // '') =~ m{/api/jobs.*\n} });
like(slurp('access2.jsonl'), qr{"client": "203.0.113.9"}, 'but a proxy that was named');

# So does TLS: the cookie is then for TLS only.
for ('https', 'http') {
	my $r = ask($d, 'POST', '/api/login', { token => 'alice-alice-alice-1' },
		'X-Forwarded-Proto' => $_);
	is(scalar($r->{headers}{"set-cookie"} =~ /; SameSite=Strict; Secure$/), $_ eq "https",
		"$_ in front of the proxy: whether the cookie is for TLS only");
}

# ---- turns ----

# Each a question of its own, so that none is answered from what is kept.
my $asked = 0;

sub hard {
	my @facets = map { $columns[($asked + $_) % @columns] } 1 .. 60;

	$asked++;
	return { %page, facets => \@facets, filter => { column => 'request_throughput',
		range => { min => $asked / 1000 } }, sort => [map { { column => $_ } } @columns[5, $asked]] };
}

my @alice = map { my $s = reader($d); print $s request('POST', '/api/filters/apply', hard(),
	"Authorization: $alice{Authorization}", 'Connection: close'); $s->flush; $s } 1 .. 100;
wait_for('alice', sub { figure($d, 'profllm_http_requests_waiting', %bob) > 8 });
my @turns;
for (1 .. 3) {
	my $began = time;
	is(ask($d, 'POST', '/api/data/summary', { statistics => [$columns[$_]] }, %bob)->{status}, 200,
		'bob asks');
	push @turns, time - $began;
	push @seconds, health_seconds($d);
}
cmp_ok(figure($d, 'profllm_http_requests_waiting', %bob), '>', 0, 'and is answered while alice waits');
diag sprintf 'bob waited %s s', join ', ', map { sprintf '%.3f', $_ } @turns;
check_health('all workers busy', @seconds[-3 .. -1]);
my $full = figure($d, 'profllm_http_refused_total{reason="user"}', %bob);
cmp_ok($full, '>=', 100 - 64 - 4, 'alice may have so many waiting and no more');
my $select = IO::Select->new(@alice);
my @told;
my $end = time + 30;
while (@told < $full && time < $end) {
	for my $s ($select->can_read(0.5)) {
		sysread $s, my $text, 2000;
		push @told, $text if status_line($text // '') eq '429';
		$select->remove($s);
		close $s;
	}
}
is(scalar @told, $full, 'the others are told so');
like($told[0], qr/^Retry-After: 1\r$/m, 'and when to ask again') if @told;
close $_ for @alice;
wait_for('alice\'s turn', sub { !figure($d, 'profllm_http_requests_waiting', %bob) });
pass('nothing is asked for those who have gone');

# ---- open ends ----

my @exports = map { my $s = reader($d); print $s request('GET', '/api/export/csv', undef,
	"Authorization: $alice{Authorization}"); $s->flush; $s } 1 .. 40;
%status = ();
for my $s (@exports) {
	sysread $s, my $text, 500;
	$status{status_line($text // '')}++;
}
is($status{200}, 32, 'somebody may have 32 exports at once');
is($status{429}, 8, 'and no more');
is(ask($d, 'GET', '/api/export/csv?limit=1', undef, %bob)->{status}, 200, 'while others have theirs');
is($d->stop, 0, 'and it ends well');

done_testing();
