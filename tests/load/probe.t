#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What runs during the load: probes, the server's profiler.
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

sub median
{
	my @v = sort { $a <=> $b } @_;
	return @v % 2 ? $v[$#v / 2] : ($v[@v / 2 - 1] + $v[@v / 2]) / 2;
}

# One at a time, past the cap, and none of the main run's numbers.
for my $fix ([], ['--fix', 'probe-tail']) {
	my $name = "probes @$fix";
	my $sim = sim('--ttft-ms', '10', '--itl-ms', '60');
	my $run = serve($sim, '--num-prompts', '24', '--max-concurrency', '2', '--random-output-len',
		'10', '--probe-request-rate', '5', '--header', 'X-Own=1', '--record', "$dir/p.rec",
		@$fix);
	my %id = truth_by_id($sim);
	my @request = read_lines($sim->{requests});
	my @probe = grep { ($_->{body} // '') =~ /"prompt": "Hi"/ } @request;
	my ($result, $own) = ($run->{result}, $run->{own});
	my @truth = grep { !defined $_->{request_id} } read_lines($sim->{truth});

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	like($run->{out}, qr/^Probe request rate: 5\.0 req\/s$/m, "$name: the line");
	is($result->{completed}, 24, "$name: the load is whole");
	is($result->{probe_completed}, scalar @probe, "$name: as many as the server had");
	is($result->{probe_failed}, 0, "$name: none failed");
	cmp_ok(scalar @probe, '>=', 3, "$name: several");
	is(scalar(grep { defined $_->{request_id} } @probe), 0, "$name: without an id");
	is(scalar(grep { ($_->{headers}{'x-own'} // '') ne '1' } @probe), 0,
		"$name: with the user's headers");
	is(scalar(grep { $_->{body} !~ /"max_tokens": 1[,}]/ } @probe), 0, "$name: for one token");
	@truth = sort { $a->{recv_ns} <=> $b->{recv_ns} } @truth;
	my @close = grep { $truth[$_]{recv_ns} - $truth[$_ - 1]{end_ns} < 0.199e9 } 1 .. $#truth;
	is("@close", '', "$name: each 1/R after the end of the one before");
	my ($ended) = sort { $a <=> $b } map { $_->{end_ns} } grep { defined $_->{request_id} }
		read_lines($sim->{truth});
	cmp_ok($truth[0]{recv_ns}, '<', $ended, "$name: the first one at once, before an answer ends");
	cmp_ok($truth[0]{recv_ns}, '>', $own->{start_ns}, "$name: not before the clock");
	my ($last) = sort { $b <=> $a } map { $_ // 0 } @{ $own->{requests}{end_ns} };
	if (@$fix) {
		is($own->{stop_ns}, $last, "$name: the duration ends with the load");
	} else {
		my $tail = $own->{stop_ns} - $truth[-1]{end_ns};
		cmp_ok($tail, '>', 0.199e9, "$name: the last probe's pause is in the duration");
		cmp_ok($tail, '<', 1.5e9, "$name: and no more");
		cmp_ok($own->{stop_ns}, '>=', $last, "$name: the load's end too");
	}
	my @ms = map { ($_->{send_ns}[-1] - $_->{recv_ns}) / 1e6 } @truth;
	cmp_ok(abs($result->{probe_median_e2el_ms} - median(@ms)), '<', 20, "$name: their median");
	cmp_ok($result->{probe_max_e2el_ms}, '>=', $result->{probe_p99_e2el_ms}, "$name: and worst");
	like($run->{out}, qr/^-+Probe Requests-+\nProbe requests completed: +@{[scalar @probe]} *$/m,
		"$name: the report has them");
	my ($status, $out) = profllm('bench', 'score', '--report', 'full', "$dir/p.rec");
	my ($report) = $run->{out} =~ /(=+ Serving Benchmark Result =.*)/s;
	my ($again) = $out =~ /(=+ Serving Benchmark Result =.*)/s;
	is($again, $report, "$name: bench score prints the same report");
}

# Probes that fail are counted; with none that succeeded there is nothing to tell.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '20', '--fault', 'status=503');
	my $run = serve($sim, '--num-prompts', '2', '--probe-request-rate', '20');

	is($run->{status}, 1, 'all fail: exit status');
	ok(!exists $run->{result}{probe_completed}, 'all fail: no probes in the result');
}

# A load that is broken off takes the probe in flight with it.
{
	my $sim = sim('--ttft-ms', '30000', '--itl-ms', '20');
	my $began = time;
	my $run = serve($sim, '--num-prompts', '2', '--duration', '0.3', '--grace-period', '0.3',
		'--probe-request-rate', '5');

	cmp_ok(time - $began, '<', 15, 'broken off: the probe is not waited for');
	is($run->{result}{completed}, 0, 'broken off: nothing had ended');
	cmp_ok($run->{result}{duration}, '<', 5, 'broken off: nor does it lengthen the run');
}

# The profiler is started before the load and stopped after the report.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '4', '--profile', '--header', 'X-Own=1');
	truth_of($sim);
	my @request = read_lines($sim->{requests});
	my @path = grep { !m{^/(metrics|tokenize|v1/models)$} } map { $_->{path} } @request;
	my ($start) = grep { $_->{path} eq '/start_profile' } @request;

	is_deeply(\@path, ['/start_profile', ('/v1/completions') x 4, '/stop_profile'],
		'--profile: before and after the load');
	is($start->{method}, 'POST', '--profile: POST');
	is($start->{body}, '', '--profile: without a body');
	is($start->{headers}{'x-own'}, '1', "--profile: with the user's headers");
	like($run->{out}, qr/^Starting profiler\.\.\.\nProfiler started\nTraffic request rate/m,
		'--profile: lines before');
	like($run->{out}, qr/^=+\nStopping profiler\.\.\.\nProfiler stopped\n\z/m,
		'--profile: lines behind the report');
	ok($run->{own}{profiled}, '--profile: the result says so');
}

# Started once the batch is large enough, stopped after its time.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '40');
	my $run = serve($sim, '--num-prompts', '40', '--request-rate', '20', '--random-output-len',
		'20', '--profile-batch-threshold', '8', '--profile-duration', '0.3');
	truth_of($sim);
	my @request = read_lines($sim->{requests});
	my ($start) = grep { $_->{path} eq '/start_profile' } @request;
	my ($stop) = grep { $_->{path} eq '/stop_profile' } @request;
	my $before = grep { $_->{path} eq '/v1/completions' && $_->{recv_ns} < $start->{recv_ns} }
		@request;

	cmp_ok($before, '>=', 8, 'threshold: not before so many are in flight');
	cmp_ok($before, '<', 30, 'threshold: soon after');
	my $lasted = $stop->{recv_ns} - $start->{recv_ns};
	cmp_ok($lasted, '>', 0.29e9, 'threshold: it lasts');
	cmp_ok($lasted, '<', 1.5e9, 'threshold: no longer than asked');
	my $lines = "Starting profiler...\nProfiler started\nStopping profiler...\nProfiler stopped\n";
	like($run->{out}, qr/^\Q$lines\E/m, 'threshold: the same lines');
	ok($run->{own}{profiled}, 'threshold: the result says so');

	$sim = sim('--ttft-ms', '1', '--itl-ms', '1');
	$run = serve($sim, '--num-prompts', '4', '--max-concurrency', '2',
		'--profile-batch-threshold', '3');
	ok(!$run->{own}{profiled}, 'threshold not reached: not profiled');
	like($run->{err}, qr/there were never this many requests in flight/,
		'threshold not reached: a warning');
}

done_testing;
