#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Servers that never stop: whatever it is that has no end, the request ends on time, memory stays
# flat, and Ctrl-C is answered at once. Wide bounds: the machine may be busy.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Relay;
use Test::More;
use Time::HiRes ();

my ($END_S, $RSS_KIB, $PROMPT_S, $TRIES) = (40, 400 * 1024, 0.5, 6);
my $ok = "HTTP/1.1 200 OK\r\n";
my $chunked = "Transfer-Encoding: chunked\r\n\r\n";
my $stream = "${ok}Content-Type: text/event-stream\r\n$chunked";
my ($cert, $key) = certificate(my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1));

sub chunk { return sprintf("%x\r\n%s\r\n", length $_[0], $_[0]); }

# What has no end: what comes before it, and what is repeated (a number: one at a time, so many
# seconds apart). where: the request that gets it.
my $answer = qr{^POST /v1/completions};
my %endless = (
	'an event' => [$answer, $stream . chunk('data: '), chunk('x' x 60000)],
	'comments' => [$answer, $stream, chunk(": nothing\n" x 6000)],
	'token events' => [$answer, $stream, chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n" x 2000)],
	'events that are not JSON' => [$answer, $stream, chunk("data: {\n\n" x 6000)],
	'one-byte chunks' => [$answer, $stream, chunk(':')],
	'a chunk extension' => [$answer, "${stream}1;", 'x' x 1000],
	'trailers' => [$answer, $stream . chunk(":\n") . "0\r\n", 'X-T: ' . 'x' x 90 . "\r\n"],
	'interim answers' => [$answer, '', "HTTP/1.1 102 Processing\r\nX: y\r\n\r\n"],
	'header lines' => [$answer, $ok, "X-H: yyyyyyyyyyyyyyyy\r\n"],
	'the words of an error' => [$answer, "HTTP/1.1 500 No\r\n$chunked", chunk('sorry ' x 9000)],
	'a chunk size, slowly' => [$answer, $stream, '0', 0.02],
	'trailers of /tokenize' => [qr{^POST /tokenize}, $ok . $chunked . chunk('{}') . "0\r\n",
		'X-T: ' . 'x' x 90 . "\r\n"],
	'blanks from /tokenize' => [qr{^POST /tokenize}, $ok . $chunked, chunk(' ' x 60000)],
	'a chunk extension of /tokenize' => [qr{^POST /tokenize}, "$ok${chunked}1;", 'x' x 1000],
	'one-byte chunks of /tokenize' => [qr{^POST /tokenize}, $ok . $chunked, chunk(' ')],
	'interim answers of /v1/models' => [qr{^GET /v1/models}, '',
		"HTTP/1.1 102 Processing\r\nX: y\r\n\r\n"],
	'blanks from /v1/models' => [qr{^GET /v1/models}, $ok . $chunked, chunk(' ' x 60000)],
	'header lines of /v1/models' => [qr{^GET /v1/models}, $ok, "X-H: yyyyyyyyyyyyyyyy\r\n"],
	'blanks from /metrics' => [qr{^GET /metrics}, $ok . $chunked, chunk(' ' x 60000)],
);

my $good = $stream . chunk("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n")
	. "0\r\n\r\n";

sub flood
{
	my ($c, $log, $begin, $unit, $pause) = @_;
	my $block = $pause ? $unit : $unit x (1 + int(65536 / length $unit));
	my $sent = 0;

	syswrite($c, $begin);
	while (my $n = syswrite($c, $block)) {
		syswrite($c, substr $block, $n) if $n < length $block;
		syswrite($log, "flooding\n") if !$sent;
		$sent += $n;
		Time::HiRes::sleep($pause) if $pause;
	}
}

sub hostile
{
	my ($where, @what) = @{ $endless{ $_[0] } };

	return relay_start(sub {
		my ($c, $log) = @_;

		while (my ($head) = read_request($c)) {
			return flood($c, $log, @what) if $head =~ $where;
			syswrite($c, $head =~ $answer ? $good
				: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
		}
	});
}

# The most memory that it has had so far.
sub peak_kib { return slurp("/proc/$_[0]/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : 0; }

# A run until its end: (run, seconds, KiB).
sub run_to_its_end
{
	my ($to, @args) = @_;
	my $began = Time::HiRes::time();
	my $run = serve_start($to, '--num-prompts', '2', '--max-concurrency', '2',
		'--request-timeout', '2', @args);
	my $peak = 0;
	my $is_over = wait_until(120, sub {
		my $now = peak_kib($run->{pid});

		$peak = $now if $now > $peak;
		slurp("/proc/$run->{pid}/stat") =~ /\) Z /;
	});

	return (serve_end($run, $is_over ? () : 'KILL'), Time::HiRes::time() - $began, $peak);
}

sub ends_well
{
	my ($name, $to, $want, @args) = @_;
	my ($run, $seconds, $kib) = run_to_its_end($to, @args);

	cmp_ok($seconds, '<', $END_S, "$name: the run ends");
	cmp_ok($kib, '<', $RSS_KIB, "$name: memory stays flat");
	diag(sprintf('%s: %.1f s, %d MiB', $name, $seconds, $kib / 1024));
	if (ref $want eq 'HASH') {
		is_deeply(failures($run), $want, "$name: why its requests failed") or diag($run->{err});
	} else {
		like($run->{err}, $want, "$name: what is said");
	}
	return $run;
}

# Seconds from SIGINT to the end of a run, which began when the flood did; the best of some.
sub interrupted_in
{
	my ($server, @args) = @_;
	my $best = 99;
	my $status;

	for (1 .. $TRIES) {
		my $floods = () = slurp($server->{log}) =~ /flooding/g;
		my $run = serve_start($server->{to} // $server, '--num-prompts', '100000', '--max-concurrency',
			'2', '--request-timeout', '600', @args);
		my $is_begun = wait_until(30, sub {
			(() = slurp($server->{log}) =~ /flooding/g) > $floods || $server->{to} });

		Time::HiRes::sleep($server->{to} ? 1 : 0.3);
		my $at = Time::HiRes::time();
		serve_end($run, 'INT');
		my $took = Time::HiRes::time() - $at;

		$status = $run->{status};
		return (99, $status) if !$is_begun;
		$best = $took if $took < $best;
		last if $best < $PROMPT_S;
	}
	return ($best, $status);
}

sub is_interruptible
{
	my ($name, $server, @args) = @_;
	my ($took, $status) = interrupted_in($server, @args);

	cmp_ok($took, '<', $PROMPT_S, "$name: Ctrl-C is prompt");
	is($status, 130, "$name: Ctrl-C, exit status");
	diag(sprintf('%s: Ctrl-C took %.3f s', $name, $took));
}

my %why = ('an event' => { limit => 2 }, 'token events' => { limit => 2 },
	'events that are not JSON' => { bad_event => 2 }, 'header lines' => { http_protocol => 2 },
	'the words of an error' => { http_status => 2 });
for my $name (grep { $endless{$_}[0] eq $answer } sort keys %endless) {
	for my $transport ('native', 'curl') {
		my $server = hostile($name);
		my $what = "$name by $transport";
		my $want = $why{$name} // { $transport eq 'curl' && $name =~ /trailers|interim/
			? (http_protocol => 2) : (timeout => 2) };

		$want = { limit => 2 } if $name eq 'one-byte chunks' && 0;
		my $run = ends_well($what, $server, $want, '--transport', $transport);
		is($run->{status}, 1, "$what: exit status");
		is_interruptible($what, $server, '--transport', $transport);
		relay_end($server);
	}
}

# What is asked for outside the measurement: refused with a sentence, or left after its time; the
# run goes on without.
my %said = ('trailers of /tokenize' => qr{headers and trailers of the answer from \S+/tokenize pass the
	\ limit of 262144 bytes}x,
	'blanks from /tokenize' => qr{answer from \S+/tokenize passes the limit of \d+ bytes});
for my $name (grep { $endless{$_}[0] ne $answer } sort keys %endless) {
	my $server = hostile($name);
	my $run = ends_well($name, $server, $said{$name} // qr/^/);

	is($run->{result}{completed}, 2, "$name: the run goes on without it");
	is_interruptible($name, $server) if $name =~ /chunk/;
	relay_end($server);
}

done_testing;
