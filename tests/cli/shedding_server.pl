#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# shedding_server.pl --port PORT [--slots N] [--ms MS] [--good N/M] - a server with admission control: it
# answers N requests at once (4), each for MS milliseconds (20), and the others with 503. --good: of
# every M requests it answers the first N and no more. GET /health and everything else: 200.
use strict;
use warnings;
use Getopt::Long;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

my ($port, $slots, $ms, $good) = (0, 4, 20, '1/1');
GetOptions('port=i' => \$port, 'slots=i' => \$slots, 'ms=f' => \$ms, 'good=s' => \$good) or die;
my ($first, $period) = split m{/}, $good;
my $listen = IO::Socket::INET->new(Listen => 1024, LocalAddr => '127.0.0.1', LocalPort => $port,
	ReuseAddr => 1) or die "port $port: $!\n";
my $select = IO::Select->new($listen);
my (%input, @due);                 # by socket; [when, socket]
my ($active, $asked) = (0, 0);
$SIG{PIPE} = 'IGNORE';
$SIG{TERM} = sub { exit 0 };

sub drop {
	my ($s) = @_;
	$select->remove($s);
	delete $input{$s};
	close $s;
}

sub reply {
	my ($s, $status) = @_;
	syswrite $s, "HTTP/1.1 $status\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";
}

sub event { return qq(data: {"choices":[{"index":0,"text":"a","finish_reason":$_[0]}]}\n\n) }

# Handles a complete request in the buffer.
sub take {
	my ($s, $head) = @_;
	return reply($s, '200 OK') if $head !~ m{^POST \S*completions};
	return reply($s, '503 Service Unavailable') if $active >= $slots || $asked++ % $period >= $first;
	$active++;
	syswrite $s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" .
		event('null');
	push @due, [time + $ms / 1000, $s];
}

while (1) {
	my $wait = @due ? $due[0][0] - time : 1;
	my @asking;
	for my $s ($select->can_read($wait > 0 ? $wait : 0)) {
		if ($s == $listen) {
			my $new = $listen->accept or next;
			$select->add($new);
			$input{$new} = '';
		} elsif (sysread($s, $input{$s}, 65536, length $input{$s})) {
			push @asking, $s;
		} else {
			$active -= grep { $_->[1] == $s } @due;
			@due = grep { $_->[1] != $s } @due;
			drop($s);
		}
	}
	# Clients that have gone have made room by now, however late this server looks.
	for my $s (@asking) {
		while ($input{$s} =~ /^(.*?)\r\n\r\n/s) {
			my $head = $1;
			my $body = $head =~ /^content-length: *(\d+)/im ? $1 : 0;
			last if length $input{$s} < length($head) + 4 + $body;
			substr($input{$s}, 0, length($head) + 4 + $body) = '';
			take($s, $head);
		}
	}
	while (@due && $due[0][0] <= time) {
		my $s = (shift @due)->[1];
		syswrite $s, event('"length"') . qq(data: {"choices":[],"usage":{"prompt_tokens":8,) .
			qq("completion_tokens":2,"total_tokens":10}}\n\ndata: [DONE]\n\n);
		$active--;
		drop($s);
	}
}
