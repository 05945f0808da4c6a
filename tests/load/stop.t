#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# How a run ends before its prompts do: after a time, or when too much fails.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

# A closed loop for some time: prompts are used again, with ids of their own.
for my $threads (1, 2) {
	my $name = "time, $threads thread(s)";
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--duration', '1.5', '--max-concurrency', '4', '--threads', $threads,
		'--num-warmups', '1', '--record', "$dir/run.rec");
	my %truth = truth_by_id($sim);
	my ($result, $own) = ($run->{result}, $run->{own});
	my $ids = $own->{requests}{request_id};
	my $n = $result->{completed};

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	cmp_ok($n, '>', 20, "$name: requests were sent");
	delete $truth{''}; # the warm-up has no id
	is($n, scalar(keys %truth), "$name: as many as the server had");
	is_deeply([sort @$ids], [sort keys %truth], "$name: under the same ids");
	is(scalar(@$ids), $n, "$name: what was not sent is not in the result");
	is($own->{cancelled}, 0, "$name: nothing was cut off");
	cmp_ok($result->{duration}, '>', 1.4, "$name: it took its time");
	cmp_ok($result->{duration}, '<', 4, "$name: and not much more");
	is($own->{time_limit_s}, 1.5, "$name: the result says so");
	is($own->{used_up_s}, undef, "$name: there was enough to send");
	ok(!$own->{interrupted}, "$name: no interruption");
	like($run->{out}, qr/^Time limit \(s\): +1\.50/m, "$name: and the report");
	my ($status, $out) = profllm('bench', 'score', '--report', 'full', "$dir/run.rec");
	my ($report) = $run->{out} =~ /(=+ Serving Benchmark Result =.*)/s;
	my ($again) = $out =~ /(=+ Serving Benchmark Result =.*)/s;
	is($again, $report, "$name: bench score prints the same report");
}

# A rate for some time, and 8 prompts for 20 requests.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my $run = serve($sim, '--duration', '1', '--request-rate', '20');
	my %truth = truth_by_id($sim);
	my $due = $run->{own}{requests}{due_s};

	cmp_ok(scalar(keys %truth), '>=', 19, 'rate: as many as rate and time make');
	cmp_ok(scalar(keys %truth), '<=', 20, 'rate: and no more');
	cmp_ok($due->[-1], '<=', 1, 'rate: the last is due within the time');
}
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my ($status, $out) = profllm('bench', 'serve', '--model', 'sim', '--tokenizer', 'sim',
		'--dry-run', '--duration', '100', '--request-rate', '20', '--dump-workload', '-',
		'--random-input-len', '4', '--request-id-prefix', 'q');
	my @line = grep { /^\{/ } split /\n/, $out;
	my @row = map { JSON::PP->new->decode($_) } @line;

	is(scalar @row, 2000, 'repeat: the plan has what the time needs');
	is($row[1000]{prompt}, $row[0]{prompt}, 'repeat: the first prompt comes again');
	isnt($row[1]{prompt}, $row[0]{prompt}, 'repeat: after all others');
	is($row[1000]{request_id}, 'q1000', 'repeat: under a new id');
	is($row[-1]{due_s}, 100, 'repeat: the last is due at the end');
}

# --num-prompts is an upper bound; that they were used up is said.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my $run = serve($sim, '--duration', '30', '--max-concurrency', '2', '--num-prompts', '6');
	my $own = $run->{own};

	is($run->{result}{completed}, 6, 'upper bound: no more than --num-prompts');
	cmp_ok($own->{used_up_s}, '>', 0, 'upper bound: the result says when they were used up');
	cmp_ok($own->{used_up_s}, '<', 10, 'upper bound: early');
	like($run->{out}, qr/^Planned requests used up after \(s\): +\d/m, 'upper bound: the report too');
}

# What is in flight after the grace is cancelled, and is no failure.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '400');
	my $run = serve($sim, '--duration', '0.5', '--grace-period', '0.5', '--max-concurrency', '3');
	my ($result, $own) = ($run->{result}, $run->{own});

	is($own->{cancelled}, 3, 'grace: what was in flight is cancelled');
	is($result->{failed}, 0, 'grace: not failed');
	is($run->{status}, 1, 'grace: no success is exit status 1');
	ok(!$own->{interrupted}, 'grace: no interruption');
	cmp_ok($result->{duration}, '<', 2.5, 'grace: soon after it');
}

# Refused before anything is sent.
{
	my ($status, $out, $err) = profllm('bench', 'serve', '--model', 'sim', '--tokenizer', 'sim',
		'--duration', '5');

	is($status, 2, 'everything at once for some time: refused');
	like($err, qr/--duration needs --request-rate, --max-concurrency or --num-prompts/,
		'everything at once for some time: the sentence');
}

# Failures: so many, or so large a share.
for my $case (['--max-errors', '5', qr/--max-errors 5 was reached/],
	['--max-error-rate', '0.1', qr/--max-error-rate 0\.1 was passed/]) {
	my ($option, $value, $text) = @$case;
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', 'reset@4:0.4');
	my $run = serve($sim, '--num-prompts', '2000', '--max-concurrency', '4', $option, $value);
	my ($result, $own) = ($run->{result}, $run->{own});

	is($run->{status}, 1, "$option: exit status");
	like($own->{aborted}, $text, "$option: the result says why");
	like($run->{out}, qr/^Stopped: +$text/m, "$option: the report too");
	cmp_ok($result->{completed}, '>', 0, "$option: what was measured is there");
	cmp_ok($result->{failed}, '>=', $option eq '--max-errors' ? 5 : 3, "$option: the failures");
	cmp_ok($result->{failed}, '<', 40, "$option: it stopped soon");
	is($result->{completed} + $result->{failed} + $own->{cancelled}, 2000,
		"$option: the rest is cancelled");
	is_deeply([grep { $_->{code} eq 'interrupted' } @{ $own->{reasons} }], [],
		"$option: no interruption");
	is(scalar(grep { $_->{code} eq 'aborted' } @{ $own->{reasons} }), 1,
		"$option: a reason of the verdict");
}
{
	my $sim = sim('--ttft-ms', '1', '--itl-ms', '1', '--fault', 'reset@4:0.3');
	my $run = serve($sim, '--num-prompts', '60', '--max-concurrency', '8', '--max-errors', '60',
		'--max-error-rate', '0.9');

	is($run->{result}{completed} + $run->{result}{failed}, 60, 'limits not reached: all is sent');
	is($run->{own}{aborted}, undef, 'limits not reached: the result says so');
	is($run->{status}, 0, 'limits not reached: exit status');
}

# Refusals from the first request on: ten of them alike end the run, unless a limit is named.
{
	my @pace = ('--ttft-ms', '1', '--itl-ms', '1');
	my @args = ('--num-prompts', '300', '--max-concurrency', '4');
	my $run = serve(sim(@pace, '--fault', 'status=400'), @args);
	my ($result, $own) = ($run->{result}, $run->{own});

	is($run->{status}, 1, 'refused: exit status');
	like($run->{err}, qr/^profllm bench serve: 400 Bad Request: this server fails on purpose \(/m,
		'refused: the server\'s words come first');
	like($own->{aborted}, qr/^the first 10 requests were all refused with status 400$/,
		'refused: the result is written and says why');
	like($run->{err},
		qr/\(the run was stopped, no request succeeded; \d+ failed\) \(profllm help no_success\)$/m,
		'refused: and what became of the run');
	cmp_ok($result->{failed}, '>=', 10, 'refused: ten failures at least');
	cmp_ok($result->{failed}, '<', 20, 'refused: it stopped soon');
	is($result->{failed} + $own->{cancelled}, 300, 'refused: the rest is cancelled');
	like($run->{out}, qr/=== Serving/, 'refused: there is a report');
	cmp_ok(scalar(split /\n/, $run->{out} =~ s/.*(?==== Serving)//sr), '<', 16,
		'refused: a short report');
	unlike($run->{out}, qr/ 0\.00 /, 'refused: no zeros');
	for my $case (['--max-error-rate 1', ['status=400'], 300, '--max-error-rate', '1'],
		['--max-errors 300', ['status=400'], 300, '--max-errors', '300'],
		['--compat v0.11', ['status=400'], 300, '--compat', 'v0.11', '--ready-check-timeout-sec',
			'0'],
		['not all alike', [map { 'status=' . ($_ == 5 ? 422 : 400) . ":id=r$_" } 0 .. 9], 10],
		['only for now', ['status=429'], 300]) {
		my ($name, $faults, $failed, @more) = @$case;
		my $all = serve(sim(@pace, '--fault', @$faults), @args, @more);

		my ($count) = $all->{out} =~ /^Failed, http_status: +(\d+)/m;
		is_deeply([$count, $all->{own}{cancelled}], [$failed, 0], "refused, $name: all are sent");
	}
	# Nine of the first ten, and everything after them: one that succeeds is enough.
	$run = serve(sim(@pace, '--fault', map { "status=400:id=*-$_" } 0 .. 8, 10 .. 59),
		'--num-prompts', '60', '--request-id-prefix', 'r-');
	is_deeply([@{ $run->{result} }{qw(completed failed)}], [1, 59],
		'one of the first ten is answered: all are sent');
	is($run->{status}, 0, 'one of the first ten is answered: exit status');
}

done_testing;
