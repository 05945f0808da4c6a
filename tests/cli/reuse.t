#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --repeat-count, --repeat-order and --warmup-pass without a server: bench throughput, dataset show, dry
# runs, files that are replayed, and what cannot be repeated.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @throughput = qw(bench throughput --backend sim --model sim --dataset-name random
	--random-input-len 160 --random-output-len 2 --num-prompts 4);
my @serve = qw(bench serve --model sim --tokenizer sim --dry-run --random-input-len 160
	--random-output-len 2 --num-prompts 4);

sub account {
	my @calls = grep { $_->{kind} ne 'load' } lines_of('account');
	unlink 'account';
	return @calls;
}

sub prompts { return map { $_->{prompt} } lines_of($_[0]) }

# ---- bench throughput ----

check_run('throughput, repeated', run(args => [@throughput, qw(--repeat-count 3 --repeat-order tile
	--dump-workload w.jsonl --output-json r.json --account account)]), { status => 0,
	out => ['Repeated requests: * 8 (tile, 3 of each)*', 'Ideal prefix reuse (%): * 66.*'] });
my @prompts = prompts('w.jsonl');
is("@prompts[4 .. 7]", "@prompts[0 .. 3]", 'the same prompts');
is("@prompts[8 .. 11]", "@prompts[0 .. 3]", 'again');
my ($call) = account();
is($call->{requests}, 12, 'all of them are run');
cmp_ok($call->{cached_tokens}, '>=', 8 * 144, 'and found in the prefix cache');
my $own = json_of(slurp('r.json'))->{profllm};
is_deeply([@{$own}{qw(repeat_count repeat_order repeated_requests warmup_pass)}], [3, 'tile', 8, undef],
	'the result says so');

for my $pass (qw(same other)) {
	check_run("throughput, a pass of $pass prompts", run(args => [@throughput, '--warmup-pass', $pass,
		qw(--output-json r.json --account account)]), { status => 0,
		out => ["Warm-up pass: 4 requests with *", "Warm-up pass: * $pass (4 requests)*"] });
	my @calls = account();
	is_deeply([map { $_->{requests} } @calls], [4, 4], "$pass: before those that are timed");
	is($calls[0]{cached_tokens}, 0, "$pass: on a cold cache");
	is($calls[1]{cached_tokens}, $pass eq 'same' ? 4 * 144 : 0, "$pass: what it leaves in the cache");
	is(json_of(slurp('r.json'))->{profllm}{warmup_pass}, $pass, "$pass: the result says so");
}

# ---- bench serve --dry-run, dataset show ----

check_run('a dry run', run(args => [@serve, qw(--repeat-count 2 --repeat-order interleave
	--dump-workload w.jsonl)]), { status => 0,
	out => ['Workload: 8 requests from dataset random;*',
		'Repeated: 4 of them (interleave, 2 of each); ideal prefix reuse 50.*'] });
@prompts = prompts('w.jsonl');
is("@prompts[0, 2, 4, 6]", "@prompts[1, 3, 5, 7]", 'copies in a row');
my $first = slurp('w.jsonl');
check_run('another order', run(args => [@serve, qw(--repeat-count 2 --dump-workload w.jsonl)]),
	{ status => 0 });
is(join("\n", sort { $a cmp $b } prompts('w.jsonl')), join("\n", sort { $a cmp $b } @prompts),
	'has the same prompts');
isnt(join("\n", prompts('w.jsonl')), join("\n", @prompts), 'in another order');

check_run('dataset show', run(args => [qw(dataset show --tokenizer sim --num-prompts 3 --repeat-count 2
	--repeat-order tile)]), { status => 0, out => ['Repeated: 3 of them (tile, 2 of each)*'] });

# A file has the copies as requests of its own, which can be repeated once more.
check_run('dataset compile', run(args => [qw(dataset compile --tokenizer sim --num-prompts 3
	--repeat-count 2 --output w.bin)]), { status => 0, out => ['w.bin: 6 requests of random*'] });
check_run('its file, repeated', run(args => [qw(dataset show --tokenizer sim --dataset-name workload
	--dataset-path w.bin --repeat-count 2)]), { status => 0, out => ['Workload: 12 requests*'] });

# ---- what is refused ----

spew('trace.jsonl', join '', map { "{\"timestamp\": $_, \"input_length\": 16, \"output_length\": 2,"
	. " \"hash_ids\": [1]}\n" } 0 .. 2);
my @bad = (
	['a salt for each request', [@serve, qw(--repeat-count 2 --prompt-salt request)],
		'*: --prompt-salt request makes every prompt differ from all others*'],
	['and a warm-up', [@serve, qw(--warmup-pass same --prompt-salt request:k)],
		'*: --prompt-salt request:k makes every prompt differ*--warmup-pass same*'],
	['a part of a mix', [@serve, '--dataset-name', 'mix', '--mix',
		'[{"dataset-name": "random", "repeat-count": 2}]'],
		'*: --mix: "repeat-count", "repeat-order" and "warmup-pass" hold for all of a mix*'],
	['times of their own', [@serve, qw(--dataset-name timed_trace --dataset-path trace.jsonl
		--repeat-count 2)], '*: --repeat-count, --repeat-order: requests that are sent at times of'
		. ' their own (timed_trace) cannot be repeated*'],
	['no copies', [@serve, qw(--repeat-count 0)], '*--repeat-count*'],
	['an unknown order', [@serve, qw(--repeat-order best)], '*--repeat-order*random, tile*'],
	['an unknown pass', [@serve, qw(--warmup-pass all)], '*--warmup-pass*none, same, other*'],
);
check_run($_->[0], run(args => $_->[1]), { status => 2, err => $_->[2] }) for @bad;
check_run('times that are ignored', run(args => [@serve, qw(--dataset-name timed_trace --dataset-path
	trace.jsonl --repeat-count 2 --no-self-timed --num-prompts 3)]), { status => 0,
	out => ['Workload: 6 requests*'] });
check_run('a cache that is emptied', run(args => [@serve, qw(--warmup-pass same --reset-prefix-cache)]),
	{ status => 0, warn => ['WARNING: --reset-prefix-cache empties the cache that --warmup-pass *'] });

done_testing();
