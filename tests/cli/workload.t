#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench sweep serve_workload` on the simulator: which levels it takes, and what it does without.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $port = free_port();
my $engine = "$program sim --port $port --decode-base-us 2000 --decode-us-per-seq 500";
my $client = "$program bench serve --port $port --model sim --tokenizer sim --num-prompts 12 " .
	'--random-input-len 8 --random-output-len 6 --ignore-eos --progress none';

sub sweep { return run_sweep($client, @_) }

spew('bench.json', '[{"request-rate": 3}]');

my @workload = ('--workload-var', 'max_concurrency', '--workload-iters', 4, '--num-runs', 1);
my $wl = sweep('serve_workload', $engine, @workload, '-e', 'wl');
check_run('levels between one and all', $wl, { status => 0, out => ['[WL START]', 'Serve parameters: (None)',
	'Number of workload iterations: 4', 'Dataset size: 12', 'Serial inference: max_concurrency=1',
	'Batch inference: max_concurrency=*', 'Exploring: max_concurrency=*', '[WL END]'],
	exists => ['results/wl/BENCH--max_concurrency=1-WL--max_concurrency=1/run=0.json',
	'results/wl/BENCH--max_concurrency=12-WL--max_concurrency=12/summary.json'] });
my ($low) = $wl->{out} =~ /^Serial inference: max_concurrency=(\d+)$/m;
my ($high) = $wl->{out} =~ /^Batch inference: max_concurrency=(\d+)$/m;
my %want;
for my $i (1, 2) {
	my $v = $low + $i * ($high - $low) / 3;
	my $down = int $v;
	$want{$v - $down > 0.5 || ($v - $down == 0.5 && $down % 2) ? $down + 1 : $down} = 1;
}
is(join(' ', $wl->{out} =~ /^Exploring: max_concurrency=(\d+)$/mg), join(' ', sort { $a <=> $b } keys %want),
	'evenly spaced, rounded');
is(scalar split(/\n/, slurp('results/wl/summary.csv')), 3 + keys %want, 'all in the table');
check_run('resumed without a server', sweep('serve_workload', $engine, @workload, '--resume', 'wl'),
	{ status => 0, out => ['Found existing results.'], not_out => ['[BEGIN SERVER]'] });
my $free = sweep('serve_workload', $engine, '--dry-run', '--workload-serial-unthrottled', '-e', 'free');
check_run('a serial level that is not throttled', $free, { status => 0,
	out => ["Benchmark overrides: {'max_concurrency': 1, 'request_rate': 'inf'}",
	'Output file: results/free/BENCH--max_concurrency=1-WL--request_rate=inf/run=0.json',
	'Omitting intermediate Workload iterations.', '[WL END]'] });
check_run('one level is too few', sweep('serve_workload', $engine, '--workload-iters', 1, '-e', 'no'),
	{ status => 2, err => '*--workload-iters: expected at least 2, got 1', gone => ['results/no'] });
check_run('the variable is overridden', sweep('serve_workload', $engine, '--bench-params', 'bench.json',
	'-e', 'no'), { status => 1, err => '*You should not override `request_rate` in `bench_params` ' .
	'since it is supposed to be explored automatically.', gone => ['results/no'] });

done_testing();
