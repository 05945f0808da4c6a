#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --tokenizer-mode: which of a model's files is read, and what is said about it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use MIME::Base64;
use Test::More;

my $small = slurp("$FindBin::Bin/../unit/token/small.json");

# A tekken.json of the single bytes, preceded by three special tokens.
my $tekken = '{"config": {"pattern": "\\\\S+|\\\\s+", "version": "v3", "default_vocab_size": 259,'
	. ' "default_num_special_tokens": 3}, "vocab": ['
	. join(',', map { sprintf '{"rank": %d, "token_bytes": "%s", "token_str": null}', $_,
		encode_base64(chr $_, '') } 0 .. 255) . ']}';

for (['both', $small, $tekken], ['json', $small], ['tekken', undef, $tekken], ['bad', $small, '{}']) {
	my ($name, $json, $other) = @$_;

	mkdir $name;
	spew("$name/tokenizer.json", $json) if defined $json;
	spew("$name/tekken.json", $other) if defined $other;
}
spew('p.jsonl', qq({"prompt": "tokens"}\n));

my $slow = 'WARNING: --tokenizer-mode slow is an older choice; hf gives the same ids';
my $deepseek = 'WARNING: --tokenizer-mode deepseek_v32 gives the ids of hf; its chat encoding is a '
	. 'program without a template';
# model, mode, bytes of "tokens" are its ids, lines on stderr
my @rows = (
	['both', 'auto', 0, []],
	['both', 'hf', 0, []],
	['both', 'mistral', 1, []],
	['both', 'slow', 0, [$slow]],
	['both', 'deepseek_v32', 0, [$deepseek]],
	['json', 'mistral', 0, []],
	['tekken', 'auto', 1, []],
	['tekken', 'mistral', 1, []],
	['bad', 'auto', 0, []],
);
for my $row (@rows) {
	my ($model, $mode, $is_tekken, $lines) = @$row;
	my $r = run(args => [qw(bench serve --model m --dry-run --dataset-name custom --dataset-path p.jsonl
		--custom-output-len 1 --num-prompts 1 --progress none --dump-workload w.jsonl --tokenizer),
		$model, '--tokenizer-mode', $mode]);
	my $n = json_of(slurp('w.jsonl') // '{}')->{prompt_len} // 'nothing';

	check_run("$model, $mode", $r, { status => 0, warn => $lines });
	ok($is_tekken ? $n eq '7' : $n < 6, "$model, $mode: $n ids");
	unlink 'w.jsonl';
}

sub refused {
	my ($name, $err, $status, @args) = @_;

	check_run($name, run(args => [qw(bench serve --model m --dry-run), @args]),
		{ status => $status, err => $err });
}
refused('a damaged file of its mode', '*bad/tekken.json has no "config" or no list "vocab"; it is not '
	. 'a tekken.json', 1, qw(--tokenizer bad --tokenizer-mode mistral));
check_run('a class of one\'s own', run(args => [qw(bench serve --model m --dry-run --tokenizer both
	--tokenizer-mode custom)]), { status => 0,
	warn => ['WARNING: --tokenizer-mode custom: a Python class '
	. 'cannot be loaded; the model\'s own files are read, as with auto'], out => ['Workload: *'] });
refused('a plugin', '*--tokenizer-mode*mine*', 2, qw(--tokenizer both --tokenizer-mode mine));

done_testing();
