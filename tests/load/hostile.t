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

my ($END_S, $RSS_KIB, $PROMPT_S, $PROMPT_CPU_S, $TRIES) = (40, 400 * 1024, 0.5, 0.2, 4);
$PROMPT_S *= 5, $PROMPT_CPU_S *= 5 if ($ENV{PROFLLM} // '') =~ m{/[at]san/}; # libcurl is slower there
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
	'comments' => [$answer, $stream, chunk(": nothing\n\n" x 5000)],
	'comments without a blank line' => [$answer, $stream, chunk(": nothing\n" x 6000)],
	'token events' => [$answer, $stream, chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n" x 2000)],
	'events that are not JSON' => [$answer, $stream, chunk("data: {\n\n" x 6000)],
	'one-byte chunks' => [$answer, $stream, chunk("\n")],
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

	syswrite($log, "flooding\n");
	syswrite($c, $begin);
	while (defined syswrite($c, $block)) {
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
	my ($n, $to, @args) = @_;
	my @time = (grep { $_ eq '--request-timeout' } @args) ? () : ('--request-timeout', '2');
	my $began = Time::HiRes::time();
	my $run = serve_start($to, '--num-prompts', $n, '--max-concurrency', '2', @time, @args);
	my $peak = 0;
	my $is_over = wait_until(120, sub {
		my $now = peak_kib($run->{pid});

		$peak = $now if $now > $peak;
		slurp("/proc/$run->{pid}/stat") =~ /\) Z /;
	});

	return (serve_end($run, $is_over ? () : 'KILL'), Time::HiRes::time() - $began, $peak);
}

# A fast machine gets to the limit of bytes before the time is over.
sub why
{
	my %failed = %{ failures($_[0]) };

	$failed{timeout} += delete $failed{limit} if $failed{limit} && $_[0]{err} =~ /limit of 1024 MiB/;
	return \%failed;
}

sub ends_well
{
	my ($name, $to, $want, @args) = @_;
	my ($run, $seconds, $kib) = run_to_its_end(2, $to, @args);

	cmp_ok($seconds, '<', $END_S, "$name: the run ends");
	cmp_ok($kib, '<', $RSS_KIB, "$name: memory stays flat");
	diag(sprintf('%s: %.1f s, %d MiB', $name, $seconds, $kib / 1024));
	if (ref $want eq 'HASH') {
		is_deeply(why($run), $want, "$name: why its requests failed") or diag($run->{err});
	} else {
		like($run->{err}, $want, "$name: what is said");
	}
	return $run;
}

# Seconds from SIGINT to the end of a run that is flooded, and the CPU time that it took for it.
sub interrupted_in
{
	my ($run, $is_begun) = @_;

	wait_until(60, $is_begun) or diag('no flood has begun');
	Time::HiRes::sleep(0.3);
	my @before = times;
	my @stat = split ' ', slurp("/proc/$run->{pid}/stat") =~ s/.*\)//r;
	my $at = Time::HiRes::time();
	$run->{status} = child_stop($run->{pid}, 'INT');
	my $took = Time::HiRes::time() - $at;
	my @after = times;

	return ($took, $after[2] + $after[3] - $before[2] - $before[3] - ($stat[11] + $stat[12]) / 100);
}

# On a busy machine several tries; the CPU time alone says whether the program let itself wait.
sub is_interruptible
{
	my ($name, $start, $is_begun) = @_;
	my ($took, $cpu, $run);

	for (1 .. $TRIES) {
		$run = $start->();
		($took, $cpu) = interrupted_in($run, $is_begun);
		last if $took < $PROMPT_S;
	}
	ok($took < $PROMPT_S || $cpu < $PROMPT_CPU_S, "$name: Ctrl-C is prompt");
	is($run->{status}, 130, "$name: Ctrl-C, exit status") or diag(slurp("$run->{dir}/err"));
	diag(sprintf('%s: Ctrl-C took %.3f s, %.2f s of CPU', $name, $took, $cpu));
}

sub serve_is_interruptible
{
	my ($name, $server, @args) = @_;
	my $floods = 0;

	is_interruptible($name, sub {
		$floods = () = slurp($server->{log}) =~ /flooding/g;
		return serve_start($server, '--num-prompts', '400', '--max-concurrency', '2',
			'--request-timeout', '600', @args);
	}, sub { (() = slurp($server->{log}) =~ /flooding/g) > $floods });
}

my %why = ('an event' => 'limit', 'one-byte chunks' => 'timeout', 'token events' => 'limit',
	'events that are not JSON' => 'bad_event', 'header lines' => 'http_protocol',
	'the words of an error' => 'http_status', 'a chunk extension by native' => 'http_protocol',
	'comments without a blank line' => 'limit', 'a chunk size, slowly by curl' => 'http_protocol',
	'trailers by curl' => 'http_protocol', 'interim answers by curl' => 'http_protocol');
for my $name (grep { $endless{$_}[0] eq $answer } sort keys %endless) {
	for my $transport ('native', 'curl') {
		my $server = hostile($name);
		my $what = "$name by $transport";
		my $want = $why{$name} // $why{$what} // 'timeout';
		# What has a limit of its own needs no time limit to end.
		my $run = ends_well($what, $server, { $want => 2 }, '--transport', $transport,
			$want eq 'timeout' ? () : ('--request-timeout', '600'));

		is($run->{status}, 1, "$what: exit status");
		serve_is_interruptible($what, $server, '--transport', $transport)
			if $want =~ /timeout|limit|bad_event/;
		relay_end($server);
	}
}

# What is asked for outside the measurement: refused with a sentence, or left after its time; the
# run goes on without.
my %said = ('trailers of /tokenize' =>
	qr{headers and trailers of the answer from \S+/tokenize exceed the limit of 262144 bytes},
	'blanks from /tokenize' => qr{answer from \S+/tokenize exceeds the limit of \d+ bytes});
for my $name (grep { $endless{$_}[0] ne $answer } sort keys %endless) {
	my $server = hostile($name);
	# Time for a busy machine to get to the limit.
	my $run = ends_well($name, $server, $said{$name} // qr/^/,
		$said{$name} ? ('--request-timeout', '20') : ());

	is($run->{result}{completed}, 2, "$name: the run goes on without it");
	serve_is_interruptible($name, $server) if $name =~ /chunk/;
	relay_end($server);
}

# The same by TLS: openssl's own server hands on what it is fed, to one connection after another.
sub tls_flood
{
	my ($name) = @_;
	my ($listener, $port) = listen_local();
	my (undef, $begin, $unit) = @{ $endless{$name} };

	close $listener;
	pipe(my $from, my $to) or die "pipe: $!";
	my $pid = fork() // die "fork: $!";
	if (!$pid) {
		open(STDIN, '<&', $from);
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', "$dir/s_server.err");
		close $to;
		exec 'openssl', 's_server', '-quiet', '-accept', "127.0.0.1:$port", '-cert', $cert,
			'-key', $key;
	}
	close $from;
	my $feeder = fork() // die "fork: $!";
	if (!$feeder) {
		$SIG{PIPE} = 'DEFAULT';
		alarm 120;
		syswrite($to, $begin);
		my $block = $unit x (1 + int(65536 / length $unit));
		1 while syswrite($to, $block);
		POSIX::_exit(0);
	}
	close $to;
	# A connection would get the beginning: what shows is that the port is taken.
	wait_until(20, sub {
		!IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $port, Listen => 1) });
	return { pids => [$pid, $feeder], url => "https://127.0.0.1:$port" };
}

for my $transport ($cert ? ('native', 'curl') : ()) {
	for my $name ('comments', 'an event') {
		my $server = tls_flood($name);
		# Without a first contact, which would get the beginning of the flood.
		my @args = ('--transport', $transport, '--cacert', $cert, '--compat', 'v0.11');
		my ($run, $seconds, $kib) = run_to_its_end(1, $server, @args);

		cmp_ok($seconds, '<', $END_S, "TLS, $name by $transport: the run ends");
		cmp_ok($kib, '<', $RSS_KIB, "TLS, $name by $transport: memory stays flat");
		is_deeply(why($run), { $name eq 'comments' ? 'timeout' : 'limit' => 1 },
			"TLS, $name by $transport: why it failed")
			or diag($run->{err}, slurp("$dir/s_server.err"));
		kill 'KILL', @{ $server->{pids} };
		waitpid $_, 0 for @{ $server->{pids} };
	}
}

# `run` has the same client: its document is there when it is interrupted.
{
	my $server = hostile('comments');
	my $floods;

	is_interruptible('run', sub {
		my %r = (dir => File::Temp->newdir('load-XXXXXX', TMPDIR => 1));

		$floods = () = slurp($server->{log}) =~ /flooding/g;
		open(my $f, '>', "$r{dir}/x.yaml") or die "x.yaml: $!";
		print $f "name: x\nserver: {url: '$server->{url}'}\n",
			"benchmark: {model: sim, tokenizer: sim, num_prompts: 400, max_concurrency: 2,",
			" random_input_len: 8, ready_check_timeout_sec: 0}\n";
		close $f;
		$r{pid} = child_start("$r{dir}/out", "$r{dir}/err", $PROFLLM, 'run', '--config',
			"$r{dir}/x.yaml", '--output', "$r{dir}/d.json", '--progress', 'none');
		return \%r;
	}, sub { (() = slurp($server->{log}) =~ /flooding/g) > $floods });
	relay_end($server);
}

done_testing;
