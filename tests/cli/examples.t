#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every configuration of examples/ runs: on the simulator by `--set server.command=sim`, with smaller
# loads than written there and, for one, a longer start. Each is held to what it is about.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $examples = "$FindBin::Bin/../../examples";
my $at_once = 6; # simulators mostly sleep
my %documents;

# name => [words of --set, how many documents]
my @small = ('benchmark.tokenizer=sim', 'benchmark.num_prompts=6', 'benchmark.random_output_len=16');
my @shared = ('benchmark.tokenizer=sim', 'benchmark.num_prompts=12',
	'benchmark.prefix_repetition_num_prefixes=4', 'benchmark.prefix_repetition_output_len=4');
my %run = (
	'quickstart' => [[], 1],
	'model-comparison' => [[@small, 'repeat=1'], 3],
	'configuration-search' => [[@small], 8],
	'best-configuration' => [[@small, 'search.first=6', 'repeat=1'], 16],
	'scaling' => [[@small], 3],
	'memory' => [[@small], 5],
	'precision' => [[@small, 'repeat=1'], 4],
	'regression' => [[@small, 'repeat=2'], 4],
	'capacity' => [[@small, 'matrix={"benchmark.request_rate": [20, 40]}'], 2],
	'disaggregated-prefill' => [['benchmark.tokenizer=sim', 'benchmark.num_prompts=12',
		'benchmark.random_output_len=32', 'benchmark.request_rate=8'], 2],
	'cpu-offload' => [['benchmark.tokenizer=sim', 'benchmark.num_prompts=10',
		'benchmark.prefix_repetition_num_prefixes=10', 'benchmark.prefix_repetition_output_len=4',
		'benchmark.max_concurrency=1'], 4],
	'kv-sharing' => [[@shared, 'benchmark.max_concurrency=1'], 2],
	'decode-only' => [[@small], 3],
	'optimization-levels' => [[@small, 'server.startup_scale=0.02', 'benchmark.num_iters_cold=1',
		'benchmark.num_iters_warmup=0', 'benchmark.num_iters_warm=1'], 6],
	'moe' => [[@small], 4],
	'multimodal' => [[@small], 3],
);

opendir my $dir, $examples or die "$examples: $!\n";
my @files = sort map { /^(.*)\.yaml$/ ? $1 : () } readdir $dir;
is_deeply(\@files, [sort keys %run], 'every example is run, and no other');

# ---- the words that the guide has for all of them ----

my @guide = ('--set', 'server.command=sim', 'benchmark.tokenizer=sim');
like(slurp("$examples/../docs/guide/experiments.md"), qr/`@guide`/, 'the guide has these words');
for my $name (@files) {
	my $plan = run(args => ['run', '--config', "$examples/$name.yaml", '--dry-run', @guide],
		env => { ENGINE_COMMIT => 'abc123', HF_HUB_OFFLINE => 1 });
	is($plan->{status}, 0, "$name: planned with them") or diag($plan->{err});
}
my $nobody = run(args => ['run', '--config', "$examples/optimization-levels.yaml", '--dry-run', @guide,
	'benchmark.num_iter_cold=1']);
is($nobody->{status}, 2, 'a key that no experiment has');
like($nobody->{err}, qr/^profllm run: --set benchmark\.num_iter_cold=1: .*unknown key/m, 'is refused');

# ---- all of them, some at once ----

sub begin_example {
	my ($name) = @_;
	my @set = @{$run{$name}[0]};
	my @words = ('run', '--config', "$examples/$name.yaml", '--output', "$name.json",
		'--progress', 'none');

	push @words, '--set', 'server.command=sim', @set if @set;
	return begin(args => \@words, env => { ENGINE_COMMIT => 'abc123' }, seconds => 120);
}

sub documents_of {
	my ($name) = @_;
	my $whole = eval { json_of(slurp("$name.json")) } || {};

	return [$whole->{experiments} ? @{$whole->{experiments}} : ($whole)];
}

my @waiting = ('optimization-levels', sort grep { $_ ne 'optimization-levels' } keys %run); # the longest
my @running;
while (@waiting || @running) {
	while (@waiting && @running < $at_once) {
		my $name = shift @waiting;
		push @running, [$name, begin_example($name)];
	}
	my ($name, $run) = @{shift @running};
	$run = finish($run);
	is($run->{status}, 0, "$name: exit status") or diag($run->{err}, substr $run->{out}, -3000);
	my @documents = @{documents_of($name)};
	is(scalar(@documents), $run{$name}[1], "$name: documents");
	is(scalar(grep { ($_->{status} || '') eq 'completed' } @documents), $run{$name}[1],
		"$name: all completed");
	$documents{$name} = \@documents;
}

# The documents of an example by the names of their experiments.
sub of
{
	my ($name) = @_;
	return { map { $_->{config}{name} => $_ } @{$documents{$name}} };
}

sub number { my ($document, $key) = @_; return $document->{results}{$key} }
sub less { my ($a, $b, $name) = @_; cmp_ok($a, '<', $b, $name) }

# Times of an example, [the shorter, the longer, what that means] each. If other programs have made
# one slow, it is measured again, without another example running.
sub faster {
	my ($name, $times) = @_;

	for (1 .. 2) {
		last unless grep { !($_->[0] < $_->[1]) } $times->(of($name));
		diag("$name: measured again");
		is(finish(begin_example($name))->{status}, 0, "$name: again");
		$documents{$name} = documents_of($name);
	}
	less($_->[0], $_->[1], "$name: $_->[2]") for $times->(of($name));
}

# ---- what each is about ----

my $first = $documents{quickstart}[0];
is(number($first, 'completed_requests'), 60, 'quickstart: requests');
like($first->{trust}{verdict}, qr/^(VALID|DEGRADED|INVALID)$/, 'quickstart: a verdict');
ok($first->{system}{host}, 'quickstart: the host was watched');
ok(-s 'quickstart.d/run.rec', 'quickstart: the record is kept');
is($first->{config}{server}{model}, 'meta-llama/Llama-3.1-8B-Instruct', 'quickstart: the engine model');

is_deeply([sort keys %{of('model-comparison')}], [qw(llama-3.1-8b qwen2.5-7b qwen3-8b)],
	'model-comparison: three models');

my %combination = map { join('/', @{$_->{config}{server}}{qw(max_num_seqs max_num_batched_tokens)},
	$_->{config}{benchmark}{max_concurrency}) => 1 } @{$documents{'configuration-search'}};
is(scalar(keys %combination), 8, 'configuration-search: every combination once');

sub gpus { my ($document) = @_; return $document->{config}{server}{tensor_parallel_size} }
faster('scaling', sub {
	my @tpot = map { number($_, 'median_tpot_ms') }
		sort { gpus($a) <=> gpus($b) } @{$documents{scaling}};
	return ([$tpot[1], $tpot[0], '4 GPUs beat 2'], [$tpot[2], $tpot[1], '8 GPUs beat 4']);
});
my $speedup = run(args => [qw(bench compare scaling.json --scaling)]);
like($speedup->{out}, qr/^ +2 .* 1\.000 .*\n +4 .*\n +8 /m, 'scaling: a table of speed-ups');

my $memory = of('memory');
sub room { my ($d) = @_; return $d->{config}{servers}[0]{capacity}{kv_tokens} || 0 }
less(room($memory->{baseline}), room($memory->{$_}), "memory: $_ makes room")
	for 'more-of-the-gpu', 'kv-cache-fp8', 'weights-fp8';

faster('precision', sub {
	my %tpot = map { $_ => number($_[0]{$_}, 'median_tpot_ms') } qw(fp8-dynamic bf16);
	return [$tpot{'fp8-dynamic'}, $tpot{bf16}, 'FP8 decodes faster'];
});

is($documents{regression}[0]{provenance}{engine_commit}, 'abc123', 'regression: the commit is kept');
my @gate = (qw(bench compare regression.json regression.json --fail-if), 'output_throughput<-5%');
is(run(args => [@gate])->{status}, 3, 'regression: with itself nothing is compared');
is(run(args => [@gate, '--allow-unjudged'])->{status}, 0, 'regression: which can be allowed');

ok(defined number($_, 'request_goodput'), 'capacity: goodput') for @{$documents{capacity}};

my $pair = of('disaggregated-prefill');
is_deeply([map { $_->{role} } @{$pair->{disaggregated}{config}{servers}}], [qw(prefill decode proxy)],
	'disaggregated-prefill: roles');
faster('disaggregated-prefill', sub {
	my %tpot = map { $_ => number($_[0]{$_}, 'median_tpot_ms') } qw(disaggregated two-plain-servers);
	return [$tpot{disaggregated}, $tpot{'two-plain-servers'}, 'prompts do not delay tokens'];
});
faster('cpu-offload', sub {
	my %ttft = map { $_ => number($_[0]{$_}, 'median_ttft_ms') } keys %{$_[0]};
	return ([2 * $ttft{'offload-warm'}, $ttft{'offload-cold'},
			'the warm pass need not compute prefixes'],
		[$ttft{'gpu-only-cold'}, 1.5 * $ttft{'gpu-only-warm'},
			'without it there is little to gain']);
});
faster('kv-sharing', sub {
	return [number($_[0]{shared}, 'mean_ttft_ms'), number($_[0]{apart}, 'mean_ttft_ms'),
		'what one has computed the other need not'];
});

is($documents{'decode-only'}[0]{config}{tags}{decode_only}, 'true', 'decode-only: tagged');
faster('decode-only', sub {
	return [number($documents{'decode-only'}[0], 'median_ttft_ms'), 150, 'prompts are not computed'];
});
my $decode = run(args => [qw(bench serve --compare decode-only.json decode-only.json)]);
unlike($decode->{out}, qr/ttft/, 'decode-only: no time to the first token in comparisons');
like($decode->{out}, qr/tpot/, 'decode-only: but others');

faster('optimization-levels', sub {
	my @start = map { number($_[0]{"start-optimization_level=$_"}, 'startup') } 0, 2;
	my @tpot = map { number($_[0]{"serve-optimization_level=$_"}, 'median_tpot_ms') } 0, 2;
	return ([(map { $_->{avg_cold_startup_time} } @start), '-O0 starts sooner'],
		[@tpot[1, 0], '-O2 serves faster']);
});

my %parallel = map { $_->{config}{server}{enable_expert_parallel} ? 'experts' : 'tensors', 1 }
	@{$documents{moe}};
is_deeply([sort keys %parallel], [qw(experts tensors)], 'moe: both ways');

my %items = map { $_->{config}{name} => $_->{config}{benchmark}{random_mm_base_items_per_request} }
	@{$documents{multimodal}};
is_deeply(\%items, { 'text' => 0, 'one-small' => 1, 'two-large' => 2 }, 'multimodal: pictures');

# One file, split by what was varied in it.
my $by = run(args => [qw(bench compare memory.json --by experiment --metrics output_throughput)]);
like($by->{out}, qr/^baseline \(baseline\) .*\n(.*\n)*kv-cache-fp8 against baseline\n.*\noutput_throughput /m,
	'bench compare --by: experiments of one file');
my $alike = run(args => [qw(bench compare memory.json --by max_model_len)]);
is($alike->{status}, 1, 'bench compare --by: nothing differs');
like($alike->{err}, qr/--by max_model_len: all runs have the same value, 16384/, 'and it says so');
done_testing();
