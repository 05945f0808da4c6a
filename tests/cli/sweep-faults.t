#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep serve when something goes wrong with a point or a server.
#
# Whatever happens, what was measured stays, what failed is named, and no server is left.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Sweep;
use Test::More;

params('b.json', [{ num_prompts => 3 }, { num_prompts => 5 }]);

# ---- a benchmark that fails ----

{
	my $f = 'BENCH--num_prompts=3-dataset_name=nothing';

	params('bad.json', [{ num_prompts => 2 }, { num_prompts => 3, dataset_name => 'nothing' },
		{ num_prompts => 4 }]);
	my $r = sweep('bad', bench_params => 'bad.json', num_runs => 2);
	my $failure = json_of(slurp("results/bad/$f/run=1.failure.json"));

	check_run('one of three points fails', $r, { status => 1, out => [
		"[FAILED BENCHMARK] run=0: CalledProcessError: Command '[*'run=0.json']' returned non-zero "
			. 'exit status 2.', "Failure details: results/bad/$f/run=1.failure.json",
		'[NO SUCCESSFUL MEASURED RUNS] leaving combination retryable',
		'Experiment has been saved at: results/bad'], warn => ['WARNING: 2 failed;*'] });
	is_deeply([map { $_->{num_prompts} } @{summary('bad')}], [2, 2, 4, 4], 'the others are there');
	is_deeply([grep { /\Q$f/ } files('bad')], ["$f/run=0.failure.json", "$f/run=1.failure.json"],
		'no result passes for one');
	is_deeply([keys_of(slurp("results/bad/$f/run=1.failure.json"))],
		[qw(run_number error_type error serve_overrides bench_overrides reason)], 'failure file');
	is($failure->{run_number}, 1, 'its run');
	like($failure->{reason}, qr/^--dataset-name: .*nothing/, 'and what the benchmark said');
	is(scalar(servers('bad')), 1, 'one server for all of it');

	$r = sweep('stop', bench_params => 'bad.json', num_runs => 2, more => ['--stop-on-error']);
	check_run('--stop-on-error', $r, { status => 1, err => 'profllm bench sweep serve: The script was '
		. 'terminated early. Use `--resume` to continue the script from its last checkpoint. '
		. "(Command '[*]' returned non-zero exit status 2.)", gone => ['results/stop/summary.csv'],
		exists => ['results/stop/BENCH--num_prompts=2/summary.json'] });
	ok(!server_is_up(), 'and its server is gone');

	# The cause is corrected: only that run is repeated, and the failures are forgotten.
	params('bad.json', [{ num_prompts => 2 }, { num_prompts => 3, dataset_name => 'random' },
		{ num_prompts => 4 }]);
	rename "results/bad/$f", 'results/bad/BENCH--num_prompts=3-dataset_name=random';
	$r = sweep('bad', bench_params => 'bad.json', num_runs => 2, more => ['--resume']);
	check_run('once it works', $r, { status => 0 });
	is_deeply([map { $_->{num_prompts} } @{summary('bad')}], [2, 2, 3, 3, 4, 4], 'it has its place');
	is((grep { /failure/ } files('bad')), 0, 'no failure is left');

	params('bad.json', [{ num_prompts => 2 }, { num_prompts => 3, dataset_name => 'nothing' }]);
	$r = sweep('survivor', bench_params => 'bad.json', num_runs => 1);
	like($r->{out}, qr{^Highest output throughput: \S+ tok/s at num_prompts=2\b}m,
		'the only point left has its name in the summary');

	$r = sweep('missing', bench_cmd => 'no-such-program bench', num_runs => 1);
	check_run('no such program', $r, { status => 1,
		out => ['[FAILED BENCHMARK] run=0: *no-such-program*'] });
	$r = sweep('nothing', bench_cmd => 'true', num_runs => 1);
	check_run('no result', $r, { status => 1, out => ['[FAILED BENCHMARK] run=0: *run=0.json*'] });
	$r = sweep('after', num_runs => 1, bench => [qw(--num-prompts 2)],
		more => ['--after-bench-cmd', 'false']);
	check_run('--after-bench-cmd fails', $r, { status => 1, out => [
		"[FAILED BENCHMARK] run=0: RuntimeError: Command '['false']' returned non-zero exit "
			. 'status 1.'] });
	is(scalar @{summary('after')}, 1, 'what was measured before counts');
}

# ---- a server that fails ----

{
	params('sbad.json', [{ max_num_seqs => 4 }, { max_num_seqs => 4, bogus_option => 1 },
		{ max_num_seqs => 8 }]);
	my $r = sweep('server', serve_params => 'sbad.json', bench_params => 'b.json', num_runs => 1);
	my $file = 'SERVE-max_num_seqs=4-bogus_option=1-failure.json';

	check_run('one of three servers cannot be started', $r, { status => 1, out => [
		'[FAILED SERVER COMBINATION] max_num_seqs=4-bogus_option=1: RuntimeError: Server process '
			. 'crashed with return code 2*', "Failure details: results/server/$file"],
		warn => ['WARNING: *--bogus-option*'] });
	is_deeply([map { "$_->{max_num_seqs} $_->{num_prompts}" } @{summary('server')}], ['4 3', '4 5', '8 3',
		'8 5'], 'the points of the others are there');
	is_deeply([(keys_of(slurp("results/server/$file")))[0 .. 2]], [qw(error_type error serve_overrides)],
		'its failure file');
	is_deeply([map { $_->{state} } servers('server')], [qw(stopped failed stopped)], 'servers.json');
	spew('vllm', "#!/bin/sh\nshift 2\nexec $program sim \"\$@\"\n");
	chmod 0755, 'vllm';
	$r = sweep('strict', serve_params => 'sbad.json', num_runs => 1, more => ['--strict-args'],
		serve_cmd => './vllm serve sim --port 1');
	check_run('--strict-args', $r, { status => 2, err => 'profllm bench sweep serve: --strict-args: *'
		. '--bogus-option*', gone => ['results/strict'] });

	# The second request of the third run is one too many for it.
	$r = sweep('dies', sim => [qw(--ttft-ms 1 --itl-ms 0 --die-after 8req)], num_runs => 4,
		bench => [qw(--num-prompts 3)]);
	check_run('a server that dies', $r, { status => 1, out => [
		'[FAILED BENCHMARK] run=2: RuntimeError: Server process crashed with return code 1*'],
		gone => ['results/dies/run=2.json'] });
	is_deeply([map { $_->{run_number} } @{summary('dies')}], [0, 1, 3], 'the next run has a new one');
	is_deeply([map { $_->{state} } servers('dies')], [qw(died stopped)], 'servers.json');
	ok(!server_is_up(), 'none is left');
}

done_testing;
