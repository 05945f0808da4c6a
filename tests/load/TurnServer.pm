# SPDX-License-Identifier: Apache-2.0
# TurnServer.pm - a chat server that says what its test wants, and writes down what it was asked.
#
# The simulator's answers are made up by itself; a history can only be checked against answers that
# the test knows. One process for each connection, each request one line of the log.
package TurnServer;
use strict;
use warnings;
use Exporter 'import';
use Fcntl qw(:flock O_APPEND O_CREAT O_WRONLY);
use File::Temp ();
use JSON::PP ();
use LoadTest qw(listen_local slurp);
use POSIX ();

our @EXPORT = qw(turn_server asked turn_server_end);

my %alive;

END {
	my $status = $?;
	kill 'KILL', map { -$_ } keys %alive;
	waitpid $_, 0 for keys %alive;
	$? = $status;
}

# answer: a function of the request's body and its number on its connection (from 0): the text,
# or [status]. An answer is sent a word a chunk, or whole where no stream is asked for.
sub turn_server
{
	my ($answer) = @_;
	my ($listener, $port) = listen_local();
	my $dir = File::Temp->newdir('turns-XXXXXX', TMPDIR => 1);
	my %s = (dir => $dir, log => "$dir/log", url => "http://127.0.0.1:$port");
	my $pid = fork // die "fork: $!";

	if (!$pid) {
		setpgrp;
		$SIG{CHLD} = 'IGNORE';
		while (my $c = $listener->accept) {
			next if fork;
			talk($c, $s{log}, $answer);
			POSIX::_exit(0);
		}
		POSIX::_exit(0);
	}
	close $listener;
	$s{pid} = $pid;
	$alive{$pid} = 1;
	return \%s;
}

sub turn_server_end
{
	my ($s) = @_;
	kill 'KILL', -$s->{pid};
	waitpid $s->{pid}, 0;
	delete $alive{ $s->{pid} };
}

# What was asked, in order of arrival: { text, body, headers (lower-case names) }.
sub asked
{
	my ($s) = @_;
	my $json = JSON::PP->new;
	return map { my $line = $json->decode($_); $line->{body} = $json->decode($line->{text}); $line }
		split /\n/, slurp($s->{log});
}

sub note
{
	my ($log, $line) = @_;
	sysopen(my $f, $log, O_WRONLY | O_APPEND | O_CREAT) or die "$log: $!";
	flock $f, LOCK_EX;
	syswrite $f, JSON::PP->new->canonical->ascii->encode($line) . "\n";
	close $f;
}

sub chunk { my ($text) = @_; return sprintf("%x\r\n%s\r\n", length $text, $text); }

sub streamed
{
	my ($text, $usage) = @_;
	my $json = JSON::PP->new->ascii;
	my $out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
		. "Transfer-Encoding: chunked\r\n\r\n";
	my @delta = map { { content => $_ } } $text =~ /(\s*\S+)/g;

	$out .= chunk('data: ' . $json->encode({ choices => [{ index => 0, delta => $_ }] }) . "\n\n")
		for { role => 'assistant', content => '' }, @delta;
	$out .= chunk('data: ' . $json->encode({ choices => [{ index => 0, delta => {},
		finish_reason => 'stop' }] }) . "\n\n");
	$out .= chunk('data: ' . $json->encode({ choices => [], usage => $usage }) . "\n\n") if $usage;
	return $out . chunk("data: [DONE]\n\n") . "0\r\n\r\n";
}

sub whole
{
	my ($text, $usage) = @_;
	my $body = JSON::PP->new->ascii->encode({ choices => [{ index => 0, finish_reason => 'stop',
		message => { role => 'assistant', content => $text } }], usage => $usage });
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
		. length($body) . "\r\n\r\n$body";
}

sub talk
{
	my ($c, $log, $answer) = @_;
	my $n = 0;

	while (defined(my $first = <$c>)) {
		my (%headers, $text);
		while (defined(my $line = <$c>)) {
			last if $line !~ /\S/;
			$headers{lc $1} = $2 if $line =~ /^([^:]+):\s*(.*?)\r?\n/;
		}
		read $c, $text, $headers{'content-length'} || 0;
		my ($method, $path) = split / /, $first;
		if ($path !~ m{/chat/completions$}) {
			print $c "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
			next;
		}
		note($log, { text => $text, headers => \%headers, path => $path });
		my $body = JSON::PP->new->decode($text);
		my $said = $answer->($body, $n++);
		my $usage = { prompt_tokens => 100, completion_tokens => scalar(() = ref $said ? () :
			$said =~ /\S+/g), prompt_tokens_details => { cached_tokens => 7 } };
		if (ref $said) {
			print $c "HTTP/1.1 $said->[0] No\r\nContent-Length: 0\r\n\r\n";
		} else {
			$usage = undef if $body->{stream} && !$body->{stream_options}{include_usage};
			print $c $body->{stream} ? streamed($said, $usage) : whole($said, $usage);
		}
		$c->flush;
	}
}

1;
