#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench latency on the simulated engine: figures against the engine's own account, files, modes,
# what is refused, an end by Ctrl-C; and, on a program that writes down what it is asked, that
# every iteration asks what upstream's asks.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use List::Util qw(sum);
use Test::More;

my @sim = qw(bench latency --backend sim --model sim --batch-size 4 --input-len 16 --output-len 6);
my @quick = (@sim, qw(--num-iters-warmup 1 --num-iters 2));
my @upstream = qw(model_id avg_latency latencies percentiles);

sub near { return abs($_[0] - $_[1]) <= 0.01 * $_[1] }

# ---- figures and files ----

$ENV{SAVE_TO_PYTORCH_BENCHMARK_FORMAT} = 1;
my $r = run(args => [@sim, qw(--num-iters-warmup 2 --num-iters 7 --account account --seed 3
	--output-json made/r.json)]);
check_run('a run', $r, { status => 1, err => '*--output-json: cannot write made/r.json: *' });
mkdir 'made';
$r = run(args => [@sim, qw(--num-iters-warmup 2 --num-iters 7 --account account --seed 3
	--output-json made/r.json)]);
delete $ENV{SAVE_TO_PYTORCH_BENCHMARK_FORMAT};
check_run('a run', $r, { status => 0, out => ['Warming up...', 'Avg latency: 0.* seconds',
	(map { "$_% percentile latency: 0.* seconds" } 10, 25, 50, 75, 90, 99), 'Engine: sim * simulated*',
	'Median latency: *', 'Batch: 4 x 16 prompt tokens, 1 x 6 answer tokens', 'Verdict: *'],
	warn => ['Warmup iterations: 100%* 2/2 *', 'Bench iterations: 100%* 7/7 *'] });
my $text = slurp('made/r.json');
my $j = json_of($text);
is("@{[keys_of($text)]}", "@upstream profllm", 'keys, upstream\'s first');
like($text, qr/\A\{\n    "model_id": "sim",\n    "avg_latency": /, 'indented by four');
is($r->{out} =~ /^Avg latency: (\S+) /m ? $1 : '', $text =~ /"avg_latency": ([^,\n]+)/ ? $1 : '-',
	'the same number on the terminal and in the file');
my @calls = grep { $_->{kind} eq 'generate' } lines_of('account');
is(scalar @calls, 9, 'warm-ups and iterations are the engine\'s calls');
splice @calls, 0, 2;
is(scalar(grep { !near($j->{latencies}[$_], $calls[$_]{wall_s}) } 0 .. 6), 0,
	'every latency is the engine\'s own within 1 %');
ok(near($j->{avg_latency}, sum(map { $_->{wall_s} } @calls) / 7), 'so is their mean');
is(scalar(grep { $j->{latencies}[$_] < 0.99 * $calls[$_]{modelled_s} } 0 .. 6), 0,
	'none is below what is modelled');
is($j->{profllm}{output_tokens_per_iteration}, $calls[0]{output_tokens}, 'tokens as counted there');
is($j->{profllm}{prompt_tokens_per_iteration}, 64, 'prompt tokens');
is($j->{profllm}{seed}, 3, 'the seed is kept');
is(scalar @{$j->{profllm}{warmup_latencies}}, 2, 'warm-ups are kept apart');
is_deeply([grep { $_->{cached_tokens} } @calls], [], 'prefix caching is off');
my $records = json_of(slurp('made/r.pytorch.json'));
is(scalar @$records, 1, 'one record in the PyTorch file');
is_deeply($records->[0]{metric}, { name => 'latency', benchmark_values => $j->{latencies},
	extra_info => { map { $_ => $j->{$_} } qw(avg_latency percentiles) } }, 'with the same numbers');
is($records->[0]{benchmark}{extra_info}{args}{batch_size}, 4, 'and the options');

# ---- modes ----

check_run('a beam', run(args => [@quick, qw(--use-beam-search --n 2 --account beam)]),
	{ status => 0, out => ['Batch: 4 x 16 prompt tokens, beams 2 x 6 answer tokens'] });
is((grep { $_->{kind} eq 'beam' } lines_of('beam')), 3, 'is asked of the engine');
check_run('more than the engine takes at once',
	run(args => [@quick, qw(--n 3 --max-num-seqs 2 --account few)]), { status => 0 });
is((lines_of('few'))[-1]{output_tokens}, 4 * 3 * 6, 'is worked off all the same');
$r = run(args => [@quick, qw(--profile --output-json p.json --profiler-config.profiler torch
	--profiler-config.torch_profiler_dir traces --account profiled)]);
check_run('profiling', $r, { status => 0, gone => ['p.json'], not_out => ['*latency: *'],
	out => ['Profiling with torch profiler (results will be saved to traces)...',
		'Profiled one batch in * s; its traces are in traces'],
	warn => ['WARNING: --profile runs one batch and measures nothing: p.json is not written'] });
is((grep { $_->{kind} eq 'generate' } lines_of('profiled')), 2, 'one batch after the warm-up');
ok(scalar(glob 'traces/*'), 'traces are there');
check_run('a profiler in one JSON text', run(args => [@quick, qw(--profile --profiler-config),
	'{"profiler": "torch", "torch_profiler_dir": "more"}']), { status => 0, exists => ['more'] });
check_run('a dry run', run(args => [@quick, qw(--dry-run --output-json d.json)]),
	{ status => 0, gone => ['d.json'], not_out => ['Warming up...'], out => ['Backend: sim',
		'Batch: 4 prompts of 16 tokens, seed 0; answers 1 x 6 tokens each',
		'Iterations: 1 to warm up, 2 that count'] });
check_run('no warm-up', run(args => [@sim, qw(--num-iters-warmup 0 --num-iters 1)]),
	{ status => 0, not_out => ['Note: *'],
	  out => ['Warming up...', 'Avg latency: *', '*: Fewer than 6 iterations do not show *'] });

# ---- what is refused ----

for ([1, 'Please ensure that max_model_len is greater than the sum of input_len and output_len.*',
		qw(--max-model-len 21)],
	[2, '*--output-len: expected at least 1, got 0', qw(--output-len 0)],
	[2, '*--n: expected at least 1, got -1', qw(--n -1)],
	[2, '*--batch-size: expected at least 1, got -1', qw(--batch-size -1)],
	[2, '--seed: expected 0 to 4294967295, got 4294967296', qw(--seed 4294967296)],
	[2, '*--input-len: expected at least 1, got 0', qw(--input-len 0)],
	[2, '*--num-iters: expected at least 1, got 0', qw(--num-iters 0)],
	[1, '*Profiling is not enabled. Please set --profiler-config to enable profiling. Example: *',
		'--profile'],
	[2, '*--input-len*1.5*', qw(--input-len 1.5)],
	[2, '*ambiguous option --num-iter*', qw(--num-iter 3)],
	[1, '*--output-json: . is a directory, not a file', qw(--output-json .)]) {
	my ($status, $err, @args) = @$_;
	my $r = run(args => [@quick, @args]);

	check_run("@args", $r, { status => $status, err => "*$err", not_out => ['Avg latency: *'] });
}

# ---- Ctrl-C ----

my $run = begin(args => [@sim, qw(--num-iters-warmup 0 --num-iters 100000 --output-json i.json
	--progress lines --account interrupted)]);
wait_for('iterations', sub { (slurp('interrupted') || '') =~ /(generate.*\n.*){3}/ });
kill 'INT', $run->{pid};
$r = finish($run);
check_run('Ctrl-C', $r, { status => 130, out => ['Avg latency: *', 'Verdict: DEGRADED',
	'  DEGRADED: Stopped after * of 100000 iterations.'], exists => ['i.json'] });
$j = json_of(slurp('i.json'));
cmp_ok(scalar @{$j->{latencies}}, '>=', 2, 'what was measured is kept');
is($j->{profllm}{iterations}, scalar @{$j->{latencies}}, 'and counted');
is($j->{profllm}{reasons}[0]{code}, 'interrupted', 'and said');

# ---- an engine that dies ----

$r = run(args => [@sim, qw(--batch-size 1 --num-iters-warmup 1 --num-iters 9 --die-after 5req
	--output-json d.json)]);
check_run('the engine dies', $r, { status => 1, err => '*as --die-after wants it)',
	out => ['Avg latency: *', '  DEGRADED: Stopped after * of 9 iterations.'] });
$j = json_of(slurp('d.json'));
cmp_ok(scalar @{$j->{latencies}}, '>=', 3, 'what was measured is kept');

# ---- what the engine lacks is said before it is loaded ----

$r = run(args => [qw(bench latency --backend worker --worker-cmd),
	"perl $FindBin::Bin/recording_worker.pl", qw(--model m --use-beam-search --num-iters 1)],
	env => { RECORD => 'lacking.jsonl', NO_BEAM => 1 });
check_run('no beams', $r, { status => 1, err => '*cannot search with beams' });
unlike(slurp('lacking.jsonl') || '', qr/"load"/, '... and nothing was loaded');

# ---- what the engine is asked ----

my @own = (qw(bench latency --backend worker --model m --batch-size 2 --input-len 9 --output-len 5
	--worker-cmd), "perl $FindBin::Bin/recording_worker.pl");

sub asked {
	my ($name, @args) = @_;
	my $r;

	unlink 'asked';
	$r = run(args => [@own, qw(--num-iters-warmup 1 --num-iters 2), @args],
		env => { RECORD => 'asked' });
	is($r->{status}, 0, $name) or diag($r->{err});
	return ($r, lines_of('asked'));
}

my ($out, @q) = asked('the usual questions', '--seed', 4294967295);
is(join(' ', map { $_->{type} } @q), 'load describe put generate generate generate shutdown',
	'in order');
is_deeply([@{$q[0]{args}}[-4 .. -1]], [qw(--model m --seed 4294967295)], 'arguments as typed');
ok((grep { $_ eq '--no-enable-prefix-caching' } @{$q[0]{args}}), 'without prefix caching');
# numpy.random.seed(2**32 - 1); numpy.random.randint(500, size=(2, 9)), of a vocabulary of 500
my $numpy = slurp("$FindBin::Bin/../unit/latency_golden.h");
my ($rows) = $numpy =~ /latency_ids_few\[\] = \{(.*?)\};/s;
is_deeply([map { $_->{prompt} } @{$q[2]{requests}}], [map { json_of($_) } $rows =~ /"(.*?)"/g],
	'prompts are NumPy\'s of that seed, within the vocabulary');
is_deeply([@{$q[3]}{qw(n temperature top_p ignore_eos detokenize profile prequeue)}],
	[1, 1, 1, map { $_ ? JSON::PP::true() : JSON::PP::false() } 1, 1, 0, 0], 'sampling as upstream');
($out, @q) = asked('other sampling', qw(--n 3 --disable-detokenize --enable-prefix-caching));
is($q[3]{n}, 3, 'answers to each prompt');
is($q[3]{detokenize}, JSON::PP::false(), 'answers stay ids');
is((grep { /prefix-caching/ } @{$q[0]{args}})[-1], '--enable-prefix-caching',
	'prefix caching when asked for');
($out, @q) = asked('a profile', '--profile');
is(join(' ', map { $_->{profile} ? 'profiled' : $_->{type} } @q),
	'load describe put generate profiled shutdown', 'is one batch more');

done_testing();
