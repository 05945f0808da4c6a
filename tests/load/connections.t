#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Connections: kept ones, ones the server closes, other kinds of address, none at all.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use IO::Select;
use IO::Socket::INET;
use Test::More;

my @pace = ('--ttft-ms', '5', '--itl-ms', '2');

# A closed loop of 3 needs 3 connections, whatever the number of requests.
{
	my $sim = sim(@pace);
	my $run = serve($sim, '--num-prompts', '30', '--max-concurrency', '3');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'kept connections');
	is($run->{own}{new_connections}, 3, 'kept connections: as many as the cap');
	is($run->{own}{retries}, 0, 'kept connections: no retry');
}

# Opened before the clock starts.
{
	my $sim = sim(@pace);
	my $run = serve($sim, '--num-prompts', '8', '--warm-connections', '8');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'warm connections');
	is($run->{own}{new_connections}, 0, 'warm connections: no request opened one');
	is($run->{own}{warm_connections}, 8, 'warm connections: the result says so');
}

# Connections come from the named addresses in turn, and a loop stays on its processor.
{
	my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1') or die $!;
	my ($cpu) = slurp('/proc/self/status') =~ /^Cpus_allowed_list:\s+(\d+)/m;
	my $run = serve_start('http://127.0.0.1:' . $listen->sockport, '--num-prompts', '6',
		'--source-addresses', '127.0.0.2', '127.0.0.3', '--cpus', $cpu, '--metrics-interval', '0');
	my ($ready, @taken, %from) = IO::Select->new($listen);

	while (@taken < 6 && $ready->can_read(30)) {
		my $client = $listen->accept;
		$from{$client->peerhost}++;
		push @taken, $client if $client->peerhost ne '127.0.0.1';
		print $client "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
			if $client->peerhost eq '127.0.0.1'; # it asks for /metrics
	}
	my @places = map { slurp($_) =~ /^Cpus_allowed_list:\s+(\S+)/m ? $1 : () }
		glob "/proc/$run->{pid}/task/*/status";
	is($from{'127.0.0.2'}, 3, 'source addresses: three connections from one') or diag(explain(\%from));
	is($from{'127.0.0.3'}, 3, 'and three from the other');
	is_deeply([grep { $_ ne $cpu } @places], [], 'cpus: every thread is where it was put');
	close $_ for @taken, $listen;
	serve_end($run);
	is($run->{result}{failed}, 6, 'source addresses: six requests') or diag($run->{err});
}

# The server closes what was idle for 30 ms; requests come every 60 ms.
{
	my $sim = sim(@pace, '--keep-alive-ms', '30');
	my $run = serve($sim, '--num-prompts', '8', '--request-rate', '16', '--burstiness', 'inf',
		'--random-output-len', '1');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'idle ones closed by the server') or diag($run->{out});
	cmp_ok($run->{own}{new_connections}, '>=', 5, 'idle ones closed by the server: new ones');
}

# A server that takes a second request on a connection and hangs up without a byte: the two
# crossed, so the request goes out again on another connection, and is counted.
my $first = 'data: {"choices":[{"index":0,"text":" a","finish_reason":null}]}' . "\n\n";
my $last = 'data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":1,' .
	'"total_tokens":17}}' . "\n\n" . "data: [DONE]\n\n";

sub answer
{
	my ($to) = @_;
	my $body = $first . $last;
	print $to "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: ",
		length $body, "\r\n\r\n", $body;
	$to->flush;
}

sub read_request
{
	my ($from) = @_;
	my ($length, $path) = (0);

	while (my $line = <$from>) {
		$path = $1 if !defined $path && $line =~ m{^\w+ (\S+) };
		$length = $1 if $line =~ /^content-length:\s*(\d+)/i;
		last if $line =~ /^\r?\n$/;
	}
	return unless defined $path;
	read($from, my $body, $length) if $length;
	return $path;
}

# Runs $each->($socket) for every connection, one after the other, in a child.
sub peer
{
	my ($each) = @_;
	my ($listener, $port) = listen_local();
	my $pid = fork();

	if ($pid == 0) {
		local $SIG{PIPE} = 'IGNORE';
		alarm 60;
		while (my $c = $listener->accept) {
			$each->($c);
			close $c;
		}
		exit 0;
	}
	close $listener;
	return ($pid, "http://127.0.0.1:$port");
}

# Questions about the tokenizer are not what these tests are about.
sub not_found
{
	my ($to) = @_;
	print $to "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	$to->flush;
}

{
	my ($pid, $url) = peer(sub {
		my ($c) = @_;
		my $path = read_request($c) or return;

		return not_found($c) unless $path =~ /completions/;
		answer($c);
		read_request($c);
	});
	my $run = serve($url, '--num-prompts', '4', '--max-concurrency', '1');

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is($run->{result}{completed}, 4, 'closed on a second request: all succeed');
	is($run->{own}{retries}, 3, 'closed on a second request: three were sent twice');
	is("@{ $run->{own}{requests}{attempts} }", '1 2 2 2', 'closed on a second request: attempts');
}

# Hung up on the first request of a connection: that is the request's failure.
{
	my ($pid, $url) = peer(sub { read_request($_[0]); });
	my $run = serve($url, '--num-prompts', '3', '--max-concurrency', '1');

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is_deeply(failures($run), { reset => 3 }, 'never answered: reset');
	is($run->{own}{retries}, 0, 'never answered: not sent again');
}

# Answers that are not HTTP, or not what was asked for.
my @odd = (
	['not HTTP', "SSH-2.0-OpenSSH_9.2\r\n", 'http_protocol'],
	['another content coding', "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" .
		"Content-Length: 4\r\n\r\nabcd", 'http_protocol'],
	['two framings', "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" .
		"0\r\n\r\n", 'http_protocol'],
	['half an answer', "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" .
		"Content-Length: 1000\r\n\r\n$first", 'truncated'],
	['a stream without events', "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" .
		"Content-Length: 14\r\n\r\ndata: [DONE]\n\n", 'no_tokens'],
	['a redirect', "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
		'http_status'],
);
for my $case (@odd) {
	my ($name, $bytes, $category) = @$case;
	my ($pid, $url) = peer(sub {
		my ($c) = @_;
		my $path = read_request($c) or return;

		return not_found($c) unless $path =~ /completions/;
		print $c $bytes;
		$c->flush;
	});
	my $run = serve($url, '--num-prompts', '2', '--max-concurrency', '1');

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is_deeply(failures($run), { $category => 2 }, "$name: $category")
		or diag(explain($run->{own}{failures}));
}

# A body that ends when the server closes is a whole one.
{
	my ($pid, $url) = peer(sub {
		my ($c) = @_;
		my $path = read_request($c) or return;

		return not_found($c) unless $path =~ /completions/;
		print $c "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", $first, $last;
		$c->flush;
	});
	my $run = serve($url, '--num-prompts', '3', '--max-concurrency', '1');

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is($run->{result}{completed}, 3, 'bodies that end with the connection');
	is($run->{own}{new_connections}, 3, 'bodies that end with the connection: one each');
}

# Other kinds of address.
{
	my $sim = sim({ unix => 1 }, @pace);
	my $run = serve($sim, '--num-prompts', '5');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'Unix socket') or diag($run->{err});
	is($run->{status}, 0, 'Unix socket: exit status');
}
SKIP: {
	my $six = IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1);

	skip 'this machine has no ::1', 2 unless $six;
	my $sim = sim({ host => '::1' }, @pace);
	my $run = serve($sim, '--num-prompts', '5');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'IPv6') or diag($run->{err});
	events_are_right($run, \%truth, 'IPv6');
}

# No server listens.
{
	my $port = answers_once();
	my $run = serve("http://127.0.0.1:$port", '--num-prompts', '3');
	is_deeply(failures($run), { connect => 3 }, 'refused: category');
	is($run->{status}, 1, 'refused: exit status');
	like($run->{own}{failures}[0]{examples}[0]{text}, qr/127\.0\.0\.1:$port: Connection refused/,
		'refused: the text names the address');
}

done_testing;
