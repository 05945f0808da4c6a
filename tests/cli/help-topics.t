#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What messages and verdicts refer to is explained: every kind of error, every category of a failed
# experiment and every reason of a verdict has its page of `profllm help`, and docs/errors.md is that
# table. Messages of each kind that can be caused here end with the words that show their page.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Cwd qw(abs_path);
my $root;
BEGIN { $root = abs_path("$FindBin::RealBin/../..") }
use Cli;
use Test::More;

# Status, stdout and stderr.
sub profllm
{
	my $r = run(args => [@_]);
	return @$r{qw(status out err)};
}

my ($status, $out, $err) = profllm('help', '--markdown');
is($out, slurp("$root/docs/errors.md"), 'docs/errors.md is what `profllm help --markdown` prints');

my ($kinds) = slurp("$root/src/core/base/err.h") =~ /#define ERR_KINDS\(X\)(.*?)#undef/s;
my @topics = $kinds =~ /X\([A-Z_]+, ([a-z_]+), [A-Z]+\)/g;
cmp_ok(scalar @topics, '>', 30, 'kinds of errors were found');

my @reasons = slurp("$root/src/client/metrics/trust.c") =~ /doubt\(t, [^"]*?"([a-z_]+)"/g;
push @reasons, map { slurp($_) =~ /\{ [A-Z_]+, TRUST_[A-Z]+, "([a-z_]+)"/g }
	glob("$root/src/bench/offline/*.c");
cmp_ok(scalar @reasons, '>', 50, 'reasons of verdicts were found');

my ($table) = slurp("$root/docs/guide/experiments.md") =~ /\| stage \| categories \|\n(.*?)\n\n/s;
my @categories = grep { $_ !~ /^(?:start|config|allocate|ready|benchmark|collect)$/ }
	map { /`([a-z ]+)`/g } grep { s/^\|[^|]*\|// } split /\n/, $table;
cmp_ok(scalar @categories, '>', 20, 'categories of failed experiments were found');

my %seen;
for my $topic (grep { !$seen{$_}++ } @topics, @reasons, @categories) {
	($status, $out, $err) = profllm('help', split / /, $topic);
	(my $name = $topic) =~ s/ /_/g;
	ok($status == 0 && $out =~ /^\Q$name\E \(.*\nWhat to do:\n.+\nExample:\n/s, "profllm help $topic")
		or diag($out, $err);
}

($status, $out, $err) = profllm('bench', 'serve', '--help=send_lag');
like($out, qr/^send_lag \(Reasons/, 'a command explains a topic as well');
($status, $out, $err) = profllm('--help=send-lag');
like($out, qr/^send_lag \(Reasons/, 'so does the program, with hyphens');
($status, $out, $err) = profllm('bench', 'serve', '--help=usage');
unlike($out, qr/^usage \(/, 'a word without an underscore searches the options');
($status, $out, $err) = profllm('help', 'send_lgg');
is($status, 2, 'an unknown topic is a mistake');
like($err, qr/did you mean 'send_lag'\?/, 'and the nearest one is named');
($status, $out, $err) = profllm('help', 'errors');
is(() = $out =~ /^  [a-z_]+ +\S/mg, () = slurp("$root/docs/errors.md") =~ /^### /mg,
	'the list has every topic');

# ---- messages name their topic ----

spew('result.json', '{"a": 1}');
spew('text.db', "not a database, however long it may be, as SQLite needs a head of a hundred bytes" x 2);
mkdir "empty" or die;
for ([server_unreachable => qw(bench serve --base-url http://127.0.0.1:9 --model m --tokenizer sim)],
	[url_form => qw(bench serve --base-url localhost:8000 --model m --tokenizer sim)],
	[record_foreign => qw(bench score result.json)],
	[no_results => qw(bench compare empty empty)],
	[store_address => qw(export --store mysql://db/runs)],
	[store_foreign => qw(store check --store sqlite:text.db)],
	[token_file_needed => qw(dashboard --listen 0.0.0.0:0)],
	[tokenizer_missing => qw(tokenizer count --tokenizer ./none result.json)],
	[disk_full => qw(dataset compile --tokenizer sim --num-prompts 2 --output /dev/full)]) {
	my ($topic, @words) = @$_;
	($status, $out, $err) = profllm(@words);
	isnt($status, 0, "@words fails");
	like($err, qr/ \(profllm help \Q$topic\E\)\n\z/, "and refers to $topic");
}
done_testing();
