#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C in the middle, and the same report again from a record.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

# Everything of a result but what names the moment it was written.
sub comparable
{
	my ($r) = @_;
	my %copy = %$r;
	my %own = %{ $copy{profllm} };

	delete $copy{date};
	delete $own{options};
	$copy{profllm} = \%own;
	return \%copy;
}

sub score_equals
{
	my ($run, $record, $name) = @_;
	my ($status, $out, $err) = profllm('bench', 'score', '--report', 'full', $record, '--save-result',
		'--save-detailed', '--result-dir', "$dir", '--result-filename', 'again.json');
	my ($report) = $run->{out} =~ /(=+ Serving Benchmark Result =.*)/s;
	my ($again) = $out =~ /(=+ Serving Benchmark Result =.*)/s;

	is($again, $report, "$name: bench score prints the same report") or diag("$status $err");
	is_deeply(comparable(read_json("$dir/again.json")), comparable($run->{result}),
		"$name: and writes the same result");
	unlink "$dir/again.json";
	return $status;
}

for my $signal ('INT', 'TERM', 'HUP') {
	my $name = "SIG$signal";
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '20');
	my $run = serve_start($sim, '--num-prompts', '200', '--max-concurrency', '4',
		'--random-output-len', '10', '--record', "$dir/cut.rec");

	# Wait for two rounds of answers: the truth file has a line for each that ended.
	wait_until(30, sub { scalar(() = slurp($sim->{truth}) =~ /\n/g) >= 8 })
		or diag('the run did not get going: ' . slurp("$run->{dir}/err"));
	serve_end($run, $signal);
	my %truth = truth_by_id($sim);
	my $own = $run->{own};
	my $rows = $own->{requests};
	my @whole = grep { !defined $rows->{failure}[$_] } 0 .. $#{ $rows->{failure} };
	my @unlike = grep { $rows->{n_events}[$_] != @{ $truth{"r$_"}{send_ns} } } @whole;

	is($run->{status}, 130, "$name: exit status");
	ok($own->{interrupted}, "$name: the result says interrupted");
	cmp_ok($run->{result}{completed}, '>=', 8, "$name: what was measured is there");
	cmp_ok($run->{result}{completed}, '<', 200, "$name: not everything was sent");
	is(scalar @whole, $run->{result}{completed}, "$name: as many rows without failure");
	is("@unlike", '', "$name: those have all their events");
	my @cancelled = grep { ($_->{finish} // '') eq 'abort' } values %truth;
	cmp_ok(scalar @cancelled, '<=', 4, "$name: no more than the cap were cut off");
	like($run->{out}, qr/^Successful requests: +\d+/m, "$name: the report is printed");
	score_equals($run, "$dir/cut.rec", $name);
	unlink "$dir/cut.rec";
}

my @case = (
	['completions', [], ['--percentile-metrics', 'ttft,tpot,itl,e2el', '--metric-percentiles',
		'50,90,99.9', '--goodput', 'ttft:100']],
	['chat with reasoning and failures', ['--reasoning', '3', '--fault', 'reset@4:0.3'],
		['--backend', 'openai-chat', '--endpoint', '/v1/chat/completions']],
	['two loops at a rate', [], ['--threads', '2', '--request-rate', '200']],
	['long gaps', ['--fault', 'stall@3=4400ms'], ['--num-prompts', '3']],
);
for my $case (@case) {
	my ($name, $server, $client) = @$case;
	my $sim = sim('--ttft-ms', '15', '--itl-ms', '4', @$server);
	my $run = serve($sim, '--num-prompts', '20', @$client, '--record', "$dir/run.rec");
	my %truth = truth_by_id($sim);

	cmp_ok($run->{result}{completed}, '>', 0, "$name: measured") or diag($run->{err});
	events_are_right($run, \%truth, $name) unless $name =~ /failures/;
	score_equals($run, "$dir/run.rec", $name);
	unlink "$dir/run.rec";
}

done_testing;
