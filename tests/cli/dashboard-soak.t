#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dashboard under uploads and questions for a while, killed once in the middle of it: how many requests
# were answered while it was there, how soon it was there again, and whether everything
# acknowledged is in it. SOAK_SECONDS=600 goes on for ten minutes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use POSIX qw(_exit);
use Test::More;
use Time::HiRes qw(sleep time);

use constant SECONDS => $ENV{SOAK_SECONDS} || 6;
use constant { WRITERS => 2, READERS => 3 };

my ($d, $port, $end);

sub result {
	my ($who, $n) = @_;
	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => "m$who",
		num_prompts => 10, request_rate => 'inf', duration => 1.5, completed => 10,
		total_input_tokens => 100, total_output_tokens => 100, output_throughput => 50,
		request_throughput => 0 + "$who$n", mean_ttft_ms => 3 + $n % 7 });
}

# What one client does until the end; a line for each request: when, 1 or 0, the number of its run.
sub client {
	my ($who) = @_;
	my @questions = ({ facets => 'auto', limit => 20, sort => [{ column => 'request_throughput' }] },
		{ filter => { column => 'mean_ttft_ms', range => { min => 5 } }, facets => ['server.model'],
			statistics => ['request_throughput'] }, { limit => 50 });

	open my $note, '>', "client$who" or die $!;
	$note->autoflush(1);
	for (my $n = 1000; time < $end; $n++) {
		my $r = $who <= WRITERS ? eval { ask($d, 'POST', '/api/upload/raw', result($who, $n)) } :
			eval { ask($d, 'POST', '/api/filters/apply', $questions[$n % 3]) };
		my $is_good = $r && $r->{status} =~ /^20[01]$/ ? 1 : 0;

		printf $note "%.3f %d %s\n", time, $is_good, $who <= WRITERS && $is_good ? "$who$n" : '-';
		sleep 0.01 + ($is_good ? 0 : 0.05);
	}
	_exit(0);
}

$d = start_dashboard('--no-launch', '--jobs-dir', 'jobs');
$end = time + SECONDS;
my @children;
for my $who (1 .. WRITERS + READERS) {
	my $pid = fork;

	client($who) unless $pid;
	push @children, $pid;
}
sleep SECONDS / 2;
my $killed = time;
kill 'KILL', $d->{pid};
waitpid $d->{pid}, 0;
my $again = start_dashboard('--no-launch', '--store', $d->{store}, '--jobs-dir', 'jobs', '--listen',
	"127.0.0.1:$d->{port}");
is(ask($again, 'GET', '/api/health')->{status}, 200, 'it is there again');
my $back = time;
waitpid $_, 0 for @children;

my ($asked, $answered, @acknowledged) = (0, 0);
for my $line (map { split /\n/, slurp("client$_") } 1 .. WRITERS + READERS) {
	my ($at, $is_good, $run) = split ' ', $line;

	push @acknowledged, $run if $run ne '-';
	next if $at >= $killed && $at <= $back + 0.2; # while there was none
	$asked++;
	$answered += $is_good;
}
note sprintf '%d s: %d requests, %.3f %% answered; there again after %.2f s', SECONDS, $asked,
	100 * $answered / $asked, $back - $killed;
cmp_ok($asked, '>', 20, 'it was asked');
# One request of each client may have been under way when it was killed.
cmp_ok($asked - $answered, '<=', WRITERS + READERS, 'whatever came while it was there was answered');
cmp_ok($back - $killed, '<', 15, 'it was there again soon'); # two seconds, were nothing else going on
my %found;
my $cursor;
do {
	my $r = ask($again, 'POST', '/api/filters/apply', { limit => 10000, cursor => $cursor,
		columns => ['request_throughput'] })->{json};

	$found{$_->{values}{request_throughput}}++ for @{$r->{items}};
	$cursor = $r->{next};
} while defined $cursor;
is(scalar(grep { !$found{$_} } @acknowledged), 0, scalar(@acknowledged) . ' acknowledged runs are there');
is(scalar(grep { $_ > 1 } values %found), 0, 'each of them once');
is($again->stop, 0, 'it ends well');

done_testing();
