#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep serve on the simulator: what is run, what is kept, and going on with it.
#
# An experiment is judged by its files: which are there, what they say apart from what was
# measured, which of them were written again, and how many servers were started.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Sweep;
use Test::More;
use Time::HiRes qw(sleep time);

my @serve = ({ max_num_seqs => 4 }, { max_num_seqs => 16 });
my @bench = ({ num_prompts => 3 }, { num_prompts => 5, max_concurrency => 2 });
my @folders = map { my $s = $_; map { "SERVE--max_num_seqs=$s-BENCH--$_" } 'num_prompts=3',
	'num_prompts=5-max_concurrency=2' } 4, 16;

params('s.json', \@serve);
params('b.json', \@bench);

sub grid { return (serve_params => 's.json', bench_params => 'b.json', @_) }

# ---- a whole sweep ----

{
	my $r = sweep('whole', grid(num_runs => 2));
	my $got = summary('whole');
	my @blocks = $r->{out} =~ /^\[(?:BEGIN|END)[^\n]*|^Resetting caches at http:\/\/localhost:\d+$/mg;
	my @csv = split /\n/, slurp('results/whole/summary.csv');
	my @head = split /,/, $csv[0], -1;

	check_run('every pair of combinations', $r, { status => 0, out => [
		"Server overrides: {'max_num_seqs': 4}", "Server command: [*, '--max-num-seqs', '16']",
		"Benchmark overrides: {'num_prompts': 5, 'max_concurrency': 2}", 'Run Number: 1',
		"Benchmark command: [*'--num-prompts', '3', '--percentile-metrics', 'ttft,tpot,itl,e2el', "
			. "'--save-result', '--result-dir', 'results/whole/$folders[0]', "
			. "'--result-filename', 'run=0.json']",
		"Output file: results/whole/$folders[3]/run=1.json",
		'Experiment has been saved at: results/whole'], not_out => ['Found*', '*FAILED*'] });
	my @run = ('[BEGIN BENCHMARK]', 'Resetting caches at ' . url(), '[END BENCHMARK]');
	is_deeply(\@blocks, [map { ('[BEGIN SERVER]', (@run) x 4, '[END SERVER]') } 1, 2],
		'blocks in upstream\'s order');
	is_deeply([files('whole')], [sort((map { my $f = $_; map { "$f/$_" } 'run=0.json', 'run=1.json',
		'summary.json' } @folders), 'logs/SERVE-max_num_seqs=4.log',
		'logs/SERVE-max_num_seqs=16.log', 'servers.json', 'summary.csv')], 'files');
	is_deeply([map { "$_->{max_num_seqs} $_->{num_prompts} $_->{run_number}" } @$got],
		['4 3 0', '4 3 1', '4 5 0', '4 5 1', '16 3 0', '16 3 1', '16 5 0', '16 5 1'],
		'records in the order of the files, with their parameters');
	is(scalar(grep { $_->{completed} != $_->{num_prompts} } @$got), 0, 'all of them measured');
	is(scalar @csv, 9, 'a line of the table for each');
	is($head[0], '', 'the first column has no name');
	is_deeply([@head[1 .. $#head]], [grep { $_ ne 'profllm' }
		keys_of(slurp("results/whole/$folders[2]/run=0.json"))],
		'the others are a record\'s keys without ours');
	is_deeply([(keys_of(slurp("results/whole/$folders[0]/run=1.json")))[-2, -1]],
		['run_number', 'max_num_seqs'], 'new keys stand at the end of a run\'s file');
	like(slurp("results/whole/$folders[0]/summary.json"), qr/\A\[\n    \{\n        "date": /,
		'four blanks a level');
	is_deeply([map { "$_->{serve_overrides}{max_num_seqs} $_->{state} $_->{runs} $_->{log}" }
		servers('whole')], ['4 stopped 4 logs/SERVE-max_num_seqs=4.log',
		'16 stopped 4 logs/SERVE-max_num_seqs=16.log'], 'servers.json');
	ok(!server_is_up(), 'the server is gone');
}

# ---- going on ----

{
	my %before = stamps('whole');
	my $csv = slurp('results/whole/summary.csv');
	my $r = sweep(undef, grid(num_runs => 2), more => [qw(--resume whole)]);

	check_run('nothing is lacking, nothing is started', $r, { status => 0,
		out => ['Found existing results.', '[SKIPPED BENCHMARK]'],
		not_out => ['[BEGIN SERVER]', 'Resetting*'] });
	is(slurp('results/whole/summary.csv'), $csv, 'the same table');
	spew("results/whole/$folders[1]/run=1.json", substr slurp("results/whole/$folders[1]/run=1.json"),
		0, 300);
	my @half = ('results/whole/.profllm-7-8f', "results/whole/$folders[0]/.profllm-aB3dEf");
	spew($_, '{') for @half;
	spew("results/whole/$folders[0]/notes.json.backup", '');
	$r = sweep('whole', grid(num_runs => 2), more => ['--resume']);
	check_run('half a file is run again', $r, { status => 0, gone => \@half,
		exists => ["results/whole/$folders[0]/notes.json.backup"],
		out => ["Server overrides: {'max_num_seqs': 4}", '[BEGIN BENCHMARK]'] });
	my %after = stamps('whole');
	is_deeply([grep { /run=/ && $before{$_} ne $after{$_} } sort keys %after],
		["$folders[1]/run=1.json"], 'and only that one');
	$r = sweep('whole', grid(num_runs => 3), more => ['--resume']);
	my %more = stamps('whole');
	check_run('more runs of what is complete', $r, { status => 0 });
	is_deeply([grep { /run=/ && ($after{$_} || '') ne $more{$_} } sort keys %more],
		[map { "$_/run=2.json" } sort @folders], 'only those are made');
	is(scalar @{summary('whole')}, 12, 'and all are in the summary');
	is(scalar(servers('whole')), 5, 'every start is remembered');
}

# ---- a benchmark that goes elsewhere ----

{
	my ($here, $there) = (free_port(), free_port());
	my $r = run(args => [qw(bench sweep serve -e astray --num-runs 1 --serve-cmd),
		"$program sim --port $here", '--bench-cmd',
		"vllm bench serve --model sim --port $there --num-prompts 1"]);

	check_run('another port', $r, { status => 1, warn => ["WARNING: --bench-cmd sends to port $there, "
		. "but the server of --serve-cmd listens on port $here"] });
}

# ---- links, names, warm-up ----

{
	my $pairs = sub { join ' ', map { "$_->{max_num_seqs}/$_->{max_concurrency}" } @{$_[0]} };

	params('l.json', [map { { max_concurrency => $_, num_prompts => 3 } } 16, 4, 8]);
	my @link = (serve_params => 's.json', bench_params => 'l.json', num_runs => 1,
		more => ['--link-vars', 'max_num_seqs = max_concurrency']);
	my $r = sweep('linked', @link);

	check_run('linked pairs alone', $r, { status => 0 });
	is($pairs->(summary('linked')), '4/4 16/16', 'are run');
	push @{$link[-1]}, '--resume';
	$r = sweep('linked', @link);
	check_run('the others start no server', $r, { status => 0, not_out => ['[BEGIN SERVER]'] });

	params('n.json', { 'a/b' => { num_prompts => 3 }, two => { num_prompts => 2, max_concurrency => 1 } },
		['a/b', 'two']);
	$r = sweep('named', bench_params => 'n.json', num_runs => 1, more => ['--warmup-num-prompts', 2]);
	check_run('names and a warm-up', $r, { status => 0, out => ['Run Number: -1', 'Server overrides: {}',
		"Benchmark overrides: {'_benchmark_name': 'a/b', 'num_prompts': 2}"] });
	is_deeply([grep { /BENCH/ } files('named')], [map { ("BENCH--$_/run=0.json", "BENCH--$_/summary.json",
		"BENCH--$_/warmup.json") } 'a_b', 'two'], 'folders of names');
	is_deeply([map { "$_->{_benchmark_name} $_->{run_number} $_->{completed}" } @{summary('named')}],
		['a/b 0 3', 'two 0 2'], 'the warm-up is not among the records');
	is(json_of(slurp('results/named/BENCH--two/warmup.json'))->{run_number}, -1, 'but kept');
	like(slurp('results/named/summary.csv'), qr/\A[^\n]*,_benchmark_name/, 'names are a column');

	# As serve_multi named folders once.
	mkdir 'results/old';
	mkdir 'results/old/SERVE-max_num_seqs=4-BENCH-num_prompts=3';
	spew("results/old/SERVE-max_num_seqs=4-BENCH-num_prompts=3/run=0.json",
		slurp("results/whole/$folders[0]/run=0.json"));
	$r = sweep('old', grid(num_runs => 1), verb => 'serve_multi', more => ['--resume']);
	check_run('serve_multi\'s folders', $r, { status => 0, out => ['Found existing results.'],
		exists => ['results/old/SERVE-max_num_seqs=4-BENCH-num_prompts=3/summary.json'],
		gone => ["results/old/$folders[0]"] });
}

# ---- the order and the servers ----

{
	my $order = sub {
		join ' ', map { s/.*=//r } $_[0]{out} =~ /^Output file: .*\/(?=SERVE)(.*)\/run=0/mg;
	};
	params('o.json', [map { { num_prompts => $_ } } 1 .. 6]);
	my @o = (serve_params => 's.json', bench_params => 'o.json', num_runs => 1);
	my $one = sweep('shuffled', @o, more => [qw(--shuffle --seed 3)]);
	my $same = sweep('again', @o, more => [qw(--shuffle --seed 3 --dry-run)]);
	my $other = sweep('other', @o, more => [qw(--shuffle --seed 4 --dry-run)]);

	check_run('shuffled', $one, { status => 0 });
	isnt($order->($one), '1 2 3 4 5 6 1 2 3 4 5 6', 'another order');
	is($order->($same), $order->($one), 'the same of the same seed');
	isnt($order->($other), $order->($one), 'another of another');
	is(() = $one->{out} =~ /^\[BEGIN SERVER\]/mg, 2, 'each server is started once');
	is_deeply([map { "$_->{max_num_seqs} $_->{num_prompts}" } @{summary('shuffled')}],
		[map { my $s = $_; map { "$s $_" } 1 .. 6 } 4, 16], 'records in the order of the files');

	params('two.json', [map { { num_prompts => $_ } } 1, 2]);
	for (['never', 1], ['point', 2], ['run', 4]) {
		my ($how, $starts) = @$_;
		my $r = sweep("restart-$how", bench_params => 'two.json', num_runs => 2,
			more => ['--restart', $how]);

		check_run("--restart $how", $r, { status => 0 });
		is(scalar(servers("restart-$how")), $starts, "$starts server(s)");
	}
}

# ---- combinations that are in no file ----

{
	my %more = (bench => [qw(--num-prompts 2)], num_runs => 1);
	my @line = sweep_args('piped', %more, serve_params => '/dev/stdin',
		bench_params => '[{"num_prompts": 1}, {"num_prompts": 2}]');

	check_run('from a pipe and from the command line', run(command => ['bash', '-c',
		'cat s.json | "$0" "$@"', $program, @line]), { status => 0 });
	is_deeply([map { "$_->{max_num_seqs} $_->{num_prompts}" } @{summary('piped')}],
		['4 1', '4 2', '16 1', '16 2'], 'all combinations');
	check_run('a pipe without an end', run(command => ['bash', '-c', 'yes 2>/dev/null | "$0" "$@"',
		$program, @line]), { status => 1, err =>
		'profllm bench sweep serve: --serve-params: /dev/stdin '
		. 'has more than 16777216 bytes, which is the limit' });
	check_run('a mistake in the text', run(args => [sweep_args('no', %more, bench_params => '[{"a": ]')]),
		{ status => 2, err => '*--bench-params: [{"a": ]: *' });
}

# ---- this program by its name ----

for (['is not in PATH', { PATH => '/usr/bin:/bin' }], ['is another program in PATH', other_profllm()]) {
	my ($name, $env) = @$_;
	my @sim = qw(sim --ttft-ms 1 --itl-ms 0 --port);
	my ($port) = url() =~ /(\d+)$/;
	my $made = $name =~ tr/ /-/r;
	my @args = sweep_args($made, num_runs => 1, serve_cmd => "profllm @sim $port",
		bench_cmd => "profllm bench serve --model sim --tokenizer sim --num-prompts 2 "
			. "--random-input-len 8 --random-output-len 4 --disable-tqdm --port $port");

	check_run("profllm $name: a sweep", run(args => \@args, env => $env), { status => 0 });
	check_run("profllm $name: the benchmark as a program", run(args => [@args, '--exec-bench',
		'-e', "$made-spawned", '--after-bench-cmd', 'profllm --version'], env => $env),
		{ status => 0 });
	check_run("profllm $name: starts", run(args => [qw(bench sweep startup --startup-cmd),
		'profllm bench startup --backend sim --model sim --num-iters-cold 1 --num-iters-warm 1 '
			. '--num-iters-warmup 0', '-e', "$made-starts"], env => $env), { status => 0 });
}

# ---- other commands ----

{
	my $r = sweep('spawned', num_runs => 2, bench => [qw(--num-prompts 2)],
		more => ['--exec-bench', '--show-stdout', '--after-bench-cmd',
			'sh -c "echo after >>after.txt"']);

	check_run('the benchmark as a program, its output shown', $r, { status => 0,
		out => ['=* Serving Benchmark Result =*'], not_out => ['Resetting*'] });
	is(slurp('after.txt'), "after\nafter\n", '--after-bench-cmd after each run');
	$r = sweep('quiet', num_runs => 1, bench => [qw(--num-prompts 2)]);
	check_run('its output is not shown', $r, { status => 0, not_out => ['*Serving Benchmark*'] });
}

done_testing;
