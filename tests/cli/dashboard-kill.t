#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dashboard that is killed in the middle of uploads, again and again: what was acknowledged is there in
# the end, and once. KILLS=20 kills it twenty times.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use POSIX qw(_exit);
use Test::More;
use Time::HiRes qw(sleep time);

use constant KILLS => $ENV{KILLS} || 5;
use constant FILES => 1000; # of a batch

my ($made, %acknowledged, %sent, @jobs) = (0);
srand 20; # when it is killed

# A run of a number of its own; throughput says which.
sub result {
	my $n = ++$made;
	$sent{$n} = 1;
	return ($n, json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm',
		num_prompts => 10, request_rate => 'inf', duration => 1.5, completed => 10,
		total_input_tokens => 100, total_output_tokens => 100, request_throughput => $n,
		output_throughput => 50, mean_ttft_ms => 3 }));
}

# Sends one batch and then single files until it is killed. What was acknowledged goes to a file as it
# comes, a line each.
sub send_all {
	my ($d, $path) = @_;
	my (@numbers, @files);

	open my $note, '>', $path or die $!;
	$note->autoflush(1);
	for (1 .. FILES) {
		my ($n, $text) = result();
		push @numbers, $n;
		push @files, ['file', "$n.json", $text];
	}
	my ($body, @type) = form(@files);
	my $pid = fork;

	if ($pid) {
		# The child counts the single ones on; their numbers must not come again.
		$made += 100000;
		return $pid;
	}
	my $r = eval { ask($d, 'POST', '/api/upload/batch', $body, @type) } // {};
	print $note "job $r->{json}{job_id}\n", map { "$_\n" } @numbers if ($r->{status} // 0) == 202;
	for (;;) {
		my ($n, $text) = result();
		$r = eval { ask($d, 'POST', '/api/upload/raw', $text) } // {};
		_exit(0) unless ($r->{status} // 0) == 201;
		print $note "$n\n";
	}
}

my $first = start_dashboard('--no-launch', '--jobs-dir', 'jobs');
is(ask($first, 'POST', '/api/upload/raw', (result())[1])->{status}, 201, 'a first run');
$first->stop;
my ($starts, $longest, $cut) = (0, 0, 0);
for my $kill (1 .. KILLS) {
	my $began = time;
	my $d = start_dashboard('--no-launch', '--store', $first->{store}, '--jobs-dir', 'jobs');

	ask($d, 'GET', '/api/health');
	$longest = time - $began if time - $began > $longest;
	my $sender = send_all($d, "acknowledged$kill");
	wait_for('something to be acknowledged', sub { -s "acknowledged$kill" });
	sleep rand 0.4;
	kill 'KILL', $d->{pid};
	waitpid $d->{pid}, 0;
	waitpid $sender, 0;
	for (split /\n/, slurp("acknowledged$kill")) {
		if (/^job (\w+)/) { push @jobs, $1 } else { $acknowledged{$_} = 1 }
	}
}
note sprintf '%d runs acknowledged; the slowest start took %.2f s', scalar keys %acknowledged, $longest;
my $d = start_dashboard('--no-launch', '--store', $first->{store}, '--jobs-dir', 'jobs');
for my $job (@jobs) {
	my $state = '';

	wait_for("job $job", sub {
		my $r = ask($d, 'GET', "/api/jobs/$job")->{json};
		$cut++ if !$state && $r->{state} eq 'running';
		return ($state = $r->{state}) eq 'done';
	});
}
is(scalar @jobs, KILLS, 'every batch was acknowledged before the server was killed');
my (%found, $cursor);
do {
	my $r = ask($d, 'POST', '/api/filters/apply', { limit => 10000, columns => ['request_throughput'],
		sort => [{ column => 'request_throughput' }], cursor => $cursor })->{json};

	$found{$_->{values}{request_throughput}}++ for @{$r->{items}};
	$cursor = $r->{next};
} while defined $cursor;
my @lost = grep { !$found{$_} } keys %acknowledged;
is(scalar @lost, 0, scalar(keys %acknowledged) . ' runs that were acknowledged are there');
is(scalar(grep { $_ > 1 } values %found), 0, 'none of them twice');
cmp_ok(scalar keys %acknowledged, '>=', KILLS * FILES, 'which were enough');
is(ask($d, 'GET', '/api/health')->{json}{runs}, scalar keys %found, 'counts agree');
is($d->stop, 0, 'it ends well');
my $check = run(args => ['store', 'check', '--store', $first->{store}], seconds => 240);
is($check->{status}, 0, 'the store is sound') or diag $check->{err}, $check->{out};

done_testing();
