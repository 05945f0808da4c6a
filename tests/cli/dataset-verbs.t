#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm dataset show, compile and slices: what is printed, what is written, and that a
# compiled workload is sent byte for byte as the options it was compiled from would be.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @random = qw(--tokenizer sim --num-prompts 5 --random-input-len 8 --random-output-len 4
	--random-range-ratio 0.5);

sub profllm { return run(args => [@_]) }

# ---- show ----

my $r = profllm(qw(dataset show), @random, qw(--examples 2));
is($r->{status}, 0, 'show');
ok(matches($r->{out}, "Workload: 5 requests from dataset random; *Prompt length (tokens)\n*"
	. "#*Output length (tokens)\n*\n[0] prompt_len *\n    prompt: \"*\n[1] *"), 'its page');
unlike($r->{out}, qr/^\[2\]/m, 'as many examples as asked for');

my $json = json_of(profllm(qw(dataset show --json), @random)->{out});
is($json->{requests}, 5, 'show --json: requests');
is(scalar @{$json->{examples}}, 3, 'three examples unless asked otherwise');
my $sum = 0;
$sum += $_ for @{$json->{prompt_len}{bin_count}};
is($sum, 5, 'every request is in a bin');
cmp_ok($json->{output_len}{min}, '<=', $json->{output_len}{median}, 'quantiles are in order');

# ---- compile and replay ----

my @compile = (qw(dataset compile), @random);
$r = profllm(@compile, qw(--output a.bin));
is($r->{status}, 0, 'compile');
my ($hash) = $r->{out} =~ /^a\.bin: 5 requests of random, hash ([0-9a-f]{64})$/m;
ok($hash, 'says how many and the hash');
profllm(@compile, qw(--output b.bin --request-id-prefix other-));
is(slurp('b.bin'), slurp('a.bin'), 'the same options give the same file');
like(profllm(@compile, qw(--output c.bin --seed 1))->{out}, qr/hash (?!$hash)/, 'another seed another hash');

sub dump_of {
	my $file = "dump-$_[0]";

	is(profllm(qw(bench serve --model sim --tokenizer sim --temperature 0 --request-id-prefix r-),
		qw(--progress none --dry-run --dump-workload), $file, @_[1 .. $#_])->{status}, 0, $_[0]);
	return slurp($file);
}

my @replay = qw(--dataset-name workload --dataset-path a.bin);
my $want = dump_of('plain', @random);
is(dump_of('replayed', @replay), $want, 'a replay is what the options give');
is(dump_of('part', @replay, qw(--num-prompts 2)), join('', ($want =~ /(.*\n)/g)[0, 1]),
	'or the first of it');

my $sim = start_sim(qw(--tokenizer sim));
profllm(qw(bench serve --model sim --tokenizer sim --temperature 0 --progress none --save-result),
	qw(--result-filename replay.json --base-url), $sim->{url}, @replay);
my $result = json_of(slurp('replay.json'));
is($result->{completed}, 5, 'a replay is measured');
is($result->{profllm}{workload_hash}, $hash, 'its result carries the hash');

# Answers of this server are 3 tokens long unless ignore_eos is in the body.
my $short = start_sim(qw(--tokenizer sim --output-len 3));
profllm(qw(bench serve --model sim --tokenizer sim --temperature 0 --progress none --save-result),
	qw(--result-filename short.json --base-url), $short->{url}, @replay);
is(json_of(slurp('short.json'))->{total_output_tokens}, $result->{total_output_tokens},
	'a replay of random ignores the end, as random does');

# ---- slices ----

spew('text.txt', "It was the best of times.\nIt was the worst of times.\n" x 50);
my @slices = qw(dataset slices --tokenizer sim --input text.txt --num-prompts 7 --input-len 30);
$r = profllm(@slices, qw(--output s.jsonl --output-len 9));
is($r->{status}, 0, 'slices');
is($r->{out}, "s.jsonl: 7 prompts\n", 'says how many');
is(scalar(() = slurp('s.jsonl') =~ /^\{"prompt": "[^\n]+", "output_tokens": 9\}$/mg), 7, 'a line each');
$json = json_of(profllm(qw(dataset show --json --tokenizer sim --dataset-name custom --num-prompts 0),
	qw(--dataset-path s.jsonl --skip-chat-template --custom-output-len -1))->{out});
is($json->{requests}, 7, 'custom reads them');
is($json->{output_len}{max}, 9, 'with their lengths');

# ---- mistakes ----

my @rows = (
	[2, '*--output is missing: *workload*', qw(dataset compile --tokenizer sim)],
	[1, '*nowhere/x.bin*', qw(dataset compile --tokenizer sim --output nowhere/x.bin)],
	[2, '*--tokenizer or --model is needed to count tokens*', qw(dataset show)],
	[2, '*--tokenizer or --model is needed to count tokens*', qw(dataset compile --output x)],
	[2, '*--dataset-name workload needs --dataset-path*', qw(dataset show --tokenizer sim
		--dataset-name workload)],
	[2, '*text.txt: not a workload file of `profllm dataset compile`*', qw(dataset show
		--tokenizer sim --dataset-name workload --dataset-path text.txt)],
	[2, '*a.bin holds 5 requests, and --num-prompts asks for 6*', qw(dataset show --tokenizer sim
		--num-prompts 6), @replay],
	[2, '*cut.bin: the file is cut off*', qw(dataset show --tokenizer sim --dataset-name workload
		--dataset-path cut.bin)],
	[2, '*--examples*', qw(dataset show --tokenizer sim --examples -1)],
	[2, '*--input FILE is needed*', qw(dataset slices --tokenizer sim --output x)],
	[2, '*--range-ratio: the range ratio must be in [0, 1)*', @slices, qw(--output x
		--range-ratio 1)],
	[1, '*missing.txt*', qw(dataset slices --tokenizer sim --input missing.txt --output x)],
	[2, '*--mix*"wieght" is neither an option of a dataset*', qw(dataset show --tokenizer sim
		--dataset-name mix --mix), '[{"wieght": 1}]'],
	[2, '*--mix*"weight" must be a number above 0, got 0*', qw(dataset show --tokenizer sim
		--dataset-name mix --mix), '[{"weight": 0}]'],
	[2, '*--mix*"request-rate" is neither an option of a dataset*', qw(dataset show --tokenizer sim
		--dataset-name mix --mix), '[{"request-rate": 1}]'],
	[2, '*a part of a mix cannot be a mix*', qw(dataset show --tokenizer sim --dataset-name mix
		--mix), '[{"dataset-name": "mix"}]'],
);
spew('cut.bin', substr slurp('a.bin'), 0, 200);
for my $row (@rows) {
	my ($status, $message, @words) = @$row;

	$r = profllm(@words);
	is($r->{status}, $status, "$message: status");
	ok(matches($r->{err}, $message), "$message: message") or diag $r->{err};
	ok(!-e 'x', 'nothing is left behind');
}

done_testing();
