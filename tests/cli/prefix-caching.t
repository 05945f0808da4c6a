#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench prefix-caching and bench long-document-qa on the simulated engine: upstream's lines, what the
# engine is asked, and what a prefix cache of a known size can find again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use List::Util qw(sum);
use Test::More;

my @sim = qw(--backend sim --seed 0);
my @caching = (qw(bench prefix-caching), @sim);
my @documents = (qw(bench long-document-qa), @sim);
my @small = qw(--num-prompts 5 --input-length-range 20:30);

sub account {
	my @calls = grep { $_->{kind} ne 'load' } lines_of('account');
	unlink 'account';
	return @calls;
}

# The lines that upstream has.
sub without {
	my $ours = qr/^(?:Engine|Requests|Timed|Verdict|A request|Prompt tokens|  |Repeated|Ideal)/;
	return join "\n", grep { !/$ours/ } split /\n/, $_[0];
}

# ---- upstream's lines ----

my $r = run(args => [@caching, @small, qw(--prefix-len 8 --repeat-count 2 --output-json r.json
	--account account)]);
check_run('prefix-caching', $r, { status => 0 });
like(without($r->{out}), qr/\A
	Start\ to\ sample\ 5\ prompts\ from\ random\n
	Sampled\ 5\ requests\.\n
	Average\ input\ length:\ \d+\.\d+\n
	P50\ input\ length:\ \d+\n
	Min\ Prompt\ Length:\ \d+\n
	Max\ Prompt\ Length:\ \d+\n
	Testing\ filtered\ requests\n
	------start\ generating------\n
	cost\ time\ \d+\.\d+\z/x, 'upstream\'s lines');
my $j = json_of(slurp('r.json'));
my @calls = account();
is_deeply([map { $_->{requests} } @calls], [10], 'one call, no warm-up');
is($j->{num_requests}, 10, 'requests');
is_deeply([@{$j->{profllm}}{qw(command dataset repeat_count repeat_order repeated_requests seed)}],
	['prefix-caching', 'prefix_caching', 2, 'random', 5, 0], 'what was run');
is($j->{profllm}{runs}[0]{cached_tokens}, $calls[0]{cached_tokens}, 'cached tokens as the engine has them');
is($j->{elapsed_time}, $j->{profllm}{runs}[0]{elapsed_time}, 'the time');
like($r->{out}, qr/^cost time \Q$j->{elapsed_time}\E$/m, 'as it is printed');

$r = run(args => [@documents, qw(--document-length 30 --num-documents 3 --repeat-mode tile
	--output-json r.json --account account)]);
check_run('long-document-qa', $r, { status => 0 });
my $took = qr/Time to execute all requests: \d+\.\d{4} secs/;
my $parts = qr/------warm up------\n$took\n------start generating------\n$took/;
like(without($r->{out}), qr/\ARepeat mode:  tile\n$parts\z/, 'upstream\'s lines');
@calls = account();
is_deeply([map { $_->{requests} } @calls], [3, 6], 'a warm-up of its own, then all');
cmp_ok($calls[0]{cached_tokens}, '<', 3 * 24, 'whose documents share their first words alone');
$j = json_of(slurp('r.json'));
is($j->{profllm}{warmup_requests}, 3, 'warm-up requests');
cmp_ok($j->{profllm}{runs}[0]{warmup_time}, '>', 0, 'and their time');

check_run('--sort', run(args => [@caching, @small, qw(--repeat-count 2 --sort --output-json r.json)]),
	{ status => 0 });
is(json_of(slurp('r.json'))->{profllm}{repeat_order}, 'sorted', 'which fails upstream');

check_run('conversations', run(args => [@caching, qw(--num-prompts 2 --input-length-range 4:20
	--dataset-path), spew('talks.json', '[' . join(',', map {
		"{\"conversations\": [{\"value\": \"$_\"}, {\"value\": \"yes\"}]}"
	} 'abcdef', 'ghijklm', 'no') . ']')]), { status => 0, out => [
	'Start to sample 2 prompts from talks.json', 'Sampled 2 requests.', 'Average input length: 6.5',
	'P50 input length: 7', 'Min Prompt Length: 6', 'Max Prompt Length: 7'] });

# ---- ours ----

for my $verb ('--exact-tokens') {
	check_run('exact documents', run(args => [@documents, qw(--document-length 64 --num-documents 2
		--exact-tokens --account account)]), { status => 0 });
	is_deeply([map { $_->{prompt_tokens} } account()], [128, 256], 'have the tokens asked for');
	check_run('exact prompts', run(args => [@caching, qw(--num-prompts 3 --input-length-range 50:50
		--exact-tokens --account account)]), { status => 0 });
	is_deeply([map { $_->{prompt_tokens} } account()], [150], 'too');
}

check_run('--dry-run', run(args => [@documents, qw(--document-length 30 --dry-run)]), { status => 0,
	out => ['Backend: sim', 'Workload: 16 requests from dataset long_document_qa;*',
		'Repeated: 8 of them (random, 2 of each); ideal prefix reuse 50.*'],
	not_out => ['------*'] });

my $server = start_sim(qw(--enable-prompt-tokens-details));
check_run('--base-url', run(args => [qw(bench long-document-qa --base-url), $server->{url},
	qw(--model sim --document-length 60 --num-documents 2 --repeat-mode interleave
	--output-json r.json)]),
	{ status => 0, out => ['Engine: *, managed server*', "Time to execute all requests: *"] });
is(json_of(slurp('r.json'))->{profllm}{backend}, 'http', 'asks the server');

for my $name ('benchmark_prefix_caching.py', 'benchmarks/benchmark_prefix_caching') {
	check_run($name, run(args => [$name, @sim, @small]), { status => 0, out => ['cost time *'] });
}
check_run('the other script', run(args => ['benchmark_long_document_qa_throughput.py', @sim,
	qw(--document-length 30 --num-documents 2)]), { status => 0, out => ['Repeat mode:  random'] });

# ---- what is refused ----

my @bad = (
	['min below prefix', [@caching, qw(--num-prompts 1 --input-length-range 20:30 --prefix-len 25)],
		'*: --prefix-len 25 is more than the shortest prompt of --input-length-range 20:30*'],
	['no range', [@caching, qw(--num-prompts 1)], '*: --input-length-range MIN:MAX is required*'],
	['no prompts', [@caching, qw(--input-length-range 2:3)], '*: --num-prompts N is required*'],
	['a range backwards', [@caching, qw(--num-prompts 1 --input-length-range 30:20)],
		'*: --input-length-range 30:20: expected MIN:MAX in tokens*'],
	['no range at all', [@caching, qw(--num-prompts 1 --input-length-range 30)],
		'*: --input-length-range: expected MIN:MAX in tokens, such as 128:256, got \'30\''],
	['a prefix of conversations', [@caching, @small, qw(--prefix-len 2 --dataset-path talks.json)],
		'*: --prefix-len: prompts of --dataset-path share no prefix*'],
	['an unknown mode', [@documents, qw(--repeat-mode best)], '*--repeat-mode*random, tile*'],
	['a server of somebody\'s', [qw(bench long-document-qa --base-url http://127.0.0.1:1 --model sim
		--compare-caching)], '*: --compare-caching starts an engine twice*'],
);
check_run($_->[0], run(args => $_->[1]), { status => 2, err => $_->[2] }) for @bad;

# ---- what a cache of so many documents finds again ----

my $length = 1601; # a hundred blocks, and a token that is always computed
my @one_by_one = (@documents, qw(--max-num-seqs 1 --max-num-batched-tokens 4096 --max-model-len 1610
	--document-length), $length, qw(--exact-tokens --num-documents 4 --output-len 2
	--prefill-base-us 100 --prefill-us-per-token 5 --decode-base-us 100 --decode-us-per-seq 10));
my %order = (tile => [0 .. 3, 0 .. 3], interleave => [map { ($_, $_) } 0 .. 3],
	random => [0, 1, 1, 2, 0, 3, 3, 2]);

# Hits of a cache that keeps the documents used last.
sub hits {
	my ($room, @asked) = @_;
	my ($hits, @kept) = (0);

	for my $document (@asked) {
		$hits += grep { $_ == $document } @kept;
		@kept = ($document, grep { $_ != $document } @kept);
		splice @kept, $room if @kept > $room;
	}
	return $hits;
}

for my $order (sort keys %order) {
	for my $room (1 .. 5) {
		my $tokens = $room * 101 * 16; # the one that runs is among them
		my $run = run(args => [@one_by_one, '--repeat-mode', $order, '--kv-cache-tokens', $tokens,
			qw(--output-json r.json)]);
		my $told = json_of(slurp('r.json'))->{profllm};
		my $want = hits($room, @{$order{$order}});

		is($run->{status}, 0, "$order, room for $room: exit status") or diag($run->{err});
		cmp_ok(abs($told->{runs}[0]{cached_tokens} / 1600 - $want), '<', 0.2,
			"$order, room for $room: $want documents are found again");
		cmp_ok(abs($told->{ideal_prefix_reuse} - 0.5), '<', 0.01, 'half of it, ideally');
	}
}

# ---- with and without a cache ----

unlink 'account';
$r = run(args => [@one_by_one, qw(--repeat-mode interleave --compare-caching --output-json r.json
	--account account)]);
check_run('--compare-caching', $r, { status => 0, out => ['Prefix caching: on', 'Prefix caching: off',
	'With prefix caching * s, without * s: * times as fast'] });
$j = json_of(slurp('r.json'))->{profllm};
@calls = account();
# A prompt is a step with all its tokens or with its last one, then there is a step for its second token.
my $steps_us = 8 * (100 + 100 + 10);
my $off_us = $steps_us + 8 * 5 * $length;
my $on_us = $steps_us + 4 * 5 * $length + 4 * 5;
is(scalar @calls, 4, 'two engines, each warmed up');
is_deeply([map { $_->{prefix_caching} ? 1 : 0 } @{$j->{runs}}], [1, 0], 'both results are kept');
is($j->{runs}[1]{cached_tokens}, 0, 'nothing is cached without');
is($j->{runs}[0]{cached_tokens}, 4 * 1600, 'all of the copies with it');
cmp_ok(abs($calls[1]{steps_s} * 1e6 / $on_us - 1), '<', 0.05, 'the engine model\'s time with a cache');
cmp_ok(abs($calls[3]{steps_s} * 1e6 / $off_us - 1), '<', 0.05, 'and without');
cmp_ok(abs($calls[3]{modelled_s} / $calls[1]{modelled_s} / ($off_us / $on_us) - 1), '<', 0.1,
	'so the cache brings what the model says');
is(sprintf('%.9f', $j->{caching_speedup}), sprintf('%.9f', $j->{runs}[1]{elapsed_time}
	/ $j->{runs}[0]{elapsed_time}), 'which is the ratio of the times');
cmp_ok(abs($j->{caching_speedup} / ($off_us / $on_us) - 1), '<', 0.5, 'and near it by the clock, too');

done_testing();
