#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Files and names around a run: --output-json, the PyTorch benchmark file, --load-pattern,
# --plot-load-pattern, and the names of old scripts.
use strict;
use warnings;
no warnings 'qw'; # commas are part of what options take
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $sim = start_sim(qw(--ttft-ms 4 --itl-ms 2));
my @run = (qw(--tokenizer sim --model sim --temperature 0 --num-prompts 3 --random-input-len 8
	--random-output-len 4 --port), $sim->{port});
my @serve = (qw(bench serve), @run);

# ---- --output-json ----
{
	my $r = run(args => [@serve, qw(--output-json deep/out.json)]);
	my $json = json_of(slurp('deep/out.json') // 'null');

	is($r->{status}, 0, '--output-json: exit status') or diag($r->{err});
	is_deeply([map { scalar @{ $json->{$_} } } qw(ttfts itls generated_texts start_times)], [(3) x 4],
		'--output-json: the detailed result');
	is(scalar(grep { length } @{ $json->{generated_texts} }), 3, 'with its texts');
	is_deeply([glob('*.json')], [], 'and nothing else');

	$r = run(args => [@serve, qw(--output-json both.json --save-result --result-filename r.json)]);
	ok(!exists json_of(slurp('r.json'))->{ttfts}, 'beside --save-result: that is as ever');
	is(json_of(slurp('both.json'))->{completed}, 3, 'beside --save-result: both are there');
	unlink 'r.json', 'both.json';

	check_run('--output-json: a directory', run(args => [@serve, qw(--output-json deep)]),
		{ status => 1, err => '*--output-json: deep is a directory, not a file' });
}

# ---- SAVE_TO_PYTORCH_BENCHMARK_FORMAT ----
{
	my %env = (SAVE_TO_PYTORCH_BENCHMARK_FORMAT => '1');
	my $r = run(env => \%env, args => [@serve, qw(--save-result --result-filename r.v1.json --metadata
		tensor_parallel_size=4 compilation_config.mode=0)]);
	my $records = json_of(slurp('r.v1.pytorch.json') // '[]');
	my $result = json_of(slurp('r.v1.json'));
	my @names = map { my $m = $_; map { "${_}_${m}_ms" } $m eq 'tpot' ? qw(mean median std p99)
		: qw(median mean std p99) } qw(ttft tpot itl);

	is($r->{status}, 0, 'PyTorch file: exit status');
	is_deeply([map { $_->{metric}{name} } @$records], \@names, 'PyTorch file: a record per metric');
	is_deeply([map { $_->{metric}{benchmark_values}[0] } @$records], [@$result{@names}],
		'PyTorch file: with its value');
	is($records->[0]{model}{name}, 'sim', 'PyTorch file: the model');
	my $info = $records->[0]{benchmark}{extra_info};
	is($info->{args}{tensor_parallel_size}, '4', 'PyTorch file: metadata among the options');
	is_deeply([$info->{'compilation_config.mode'}, $info->{use_compile} ? 1 : 0], ['0', 0],
		'PyTorch file: not compiled');
	is($records->[3]{metric}{extra_info}{completed}, 3, 'PyTorch file: the rest of the result');
	ok(!exists $records->[3]{metric}{extra_info}{profllm}, 'PyTorch file: without what is ours');

	# Without --result-filename upstream ends with an error here.
	$r = run(env => \%env, args => [@serve, qw(--save-result --result-dir named)]);
	is($r->{status}, 0, 'PyTorch file: beside a generated name');
	is(scalar(my @f = glob('named/*.pytorch.json')), 1, 'PyTorch file: it is there');

	run(env => \%env, args => [@serve, qw(--save-result --result-filename e.json --backend
		openai-embeddings --endpoint /v1/embeddings)]);
	ok(!-e 'e.pytorch.json', 'PyTorch file: none for embeddings, which have none of the metrics');
	run(args => [@serve, qw(--save-result --result-filename plain.json)]);
	ok(!-e 'plain.pytorch.json', 'PyTorch file: only when asked for');
}

# ---- load patterns ----
{
	my @dry = (@serve, '--dry-run', '--request-id-prefix', 'x');
	my $r = run(args => [@dry, qw(--load-pattern steady --num-prompts 20)]);
	my $same = run(args => [@dry, qw(--request-rate 10 --burstiness inf --num-prompts 20)]);

	check_run('--load-pattern: says what it stands for', $r, { status => 0,
		out => ['Load pattern steady: --request-rate 10 --burstiness inf'] });
	is($r->{out} =~ s/^Load pattern .*\n//mr, $same->{out}, '--load-pattern: and is just that');
	$r = run(args => [qw(bench serve --load-pattern help)]);
	like($r->{out}, qr/^bursty +.*: --request-rate 10 --burstiness 0\.25$/m, '--load-pattern help');
	check_run('--load-pattern: no such name', run(args => [@dry, qw(--load-pattern x)]), { status => 2,
		err => "*--load-pattern: unknown name 'x'; --load-pattern help lists the names" });

	$r = run(args => [@dry, qw(--load-pattern ramp --plot-load-pattern --result-filename p.x.json)]);
	is($r->{status}, 0, '--plot-load-pattern: exit status') or diag($r->{err});
	like(slurp('p.x.load_pattern.dat') // '', qr/^# time_s due due_so_far; 3 requests/,
		'--plot-load-pattern: the table');
	like(slurp('p.x.load_pattern.gp') // '', qr/^set output 'p\.x\.load_pattern\.png'$/m,
		'--plot-load-pattern: the script');
	is($r->{err}, '', '--plot-load-pattern: a file name is of use there');
	SKIP: {
		skip 'no gnuplot', 2 unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
		like($r->{out}, qr/^Load pattern plot saved to: p\.x\.load_pattern\.png$/m,
			'--plot-load-pattern: where it is');
		is(substr(slurp('p.x.load_pattern.png') // '', 0, 8), "\x89PNG\r\n\x1a\n",
			'--plot-load-pattern: the picture');
	}
	# Of several runs it is called after the one that is saved.
	run(args => [@serve, qw(--num-runs 3 --request-rate 4 --save-result --result-dir runs
		--plot-load-pattern)]);
	is_deeply([map { s/\.load_pattern\.dat$/.json/r } glob('runs/*.dat')], [glob('runs/*.json')],
		'--plot-load-pattern: beside the result');
	mkdir 'empty';
	unlink 'p.x.load_pattern.png';
	check_run('--plot-load-pattern: without gnuplot', run(env => { PATH => 'empty' }, args => [@dry,
		qw(--plot-load-pattern --result-filename p.x.json)]), { status => 0, exists =>
		['p.x.load_pattern.gp'], gone => ['p.x.load_pattern.png'], warn => ['*--plot-load-pattern: '
		. 'gnuplot is not installed; it would draw p.x.load_pattern.gp'] });
}

# ---- runs of the same second ----
{
	my @begun = map { begin(args => [@serve, qw(--save-result --result-dir same
		--plot-load-pattern)]) } 1 .. 6;
	my @ended = map { finish($_) } @begun;
	my @results = glob('same/*.json');
	my %seen;

	is_deeply([grep { $_->{status} } @ended], [], 'runs of one second: exit statuses')
		or diag($ended[0]{err});
	is(scalar @results, 6, 'runs of one second: six results');
	$seen{json_of(slurp($_))->{profllm}{start_ns}}++ for @results;
	is(scalar keys %seen, 6, 'runs of one second: of six runs');
	is_deeply([map { s/\.load_pattern\.dat$/.json/r } glob('same/*.dat')], [@results],
		'runs of one second: plots are called as results');
	my @named = grep { /-\d{6}-\d+\.json$/ } @results;
	my $said =
		qr/^WARNING: same\/\S+ belongs to another run; the result of this run is in \S+-\d+\.json$/m;
	is(scalar(grep { $_->{err} =~ $said } @ended), scalar @named,
		'runs of one second: another name is said');
	is(scalar(grep { -s $_ } @results), 6, 'runs of one second: none is empty');
}

# ---- names of old scripts ----
{
	my $want = run(args => [@serve, '--dry-run', '--request-id-prefix', 'x'])->{out};

	for my $word (qw(benchmark_serving benchmark_serving.py benchmarks/benchmark_serving.py)) {
		my $r = run(args => [$word, @run, '--dry-run', '--request-id-prefix', 'x']);

		is($r->{out}, $want, "first word $word");
	}
	for my $name (qw(benchmark_serving benchmark_serving.py)) {
		symlink $ENV{PROFLLM}, $name;
		my $out = `./$name @run --dry-run --request-id-prefix x 2>/dev/null`;

		is($out, $want, "called as $name");
	}
	check_run('another script', run(args => ['benchmark_moe.py']), { status => 2 });
}

done_testing();
