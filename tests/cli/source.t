#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dataset's name in place of a path: which of its files are fetched from a hub, and what is
# read when there is none. The hub is our own (Hub.pm); its log says what was asked of it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Path qw(remove_tree);
use Hub;
use Test::More;

my ($c1, $c2, $c3, $c4) = map { $_ x 40 } qw(a b c d);

sub prompt_lines {
	my ($word, $n) = @_;
	return join '', map { "{\"prompt\": \"$word $_ and some more words\"}\n" } 1 .. $n;
}

my $card = <<'END';
---
license: mit
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: main/test.jsonl
- config_name: other
  data_files: "x/*.csv"
  default: true
---
# A set
END
my %set = ('README.md' => $card, 'main/test.jsonl' => prompt_lines('tested', 3), 'x/1.csv' =>
	"prompt\nfrom a table of one column\n", 'x/2.csv' => "prompt\n\"and, from another\none\"\n",
	'y.csv' => 'no', map { ("main/train-0000$_-of-00002.jsonl" => prompt_lines("train$_", 2)) } 0, 1);
my %old = ('old.py' => 'print()', 'README.md' => '# old', 'list.tsv' => "a\tb\n");

delete $ENV{HF_HUB_OFFLINE};
$ENV{HF_HUB_ETAG_TIMEOUT} = $ENV{HF_HUB_DOWNLOAD_TIMEOUT} = 5;

sub start {
	return start_hub(models => {}, datasets => { 'org/set' => { main => $c1, v2 => $c2, $c1 => \%set,
		$c2 => { 'data.json' => '[{"prompt": "the second version of it"}]' } },
		'org/old' => { main => $c3, $c3 => \%old, 'refs/convert/parquet' => $c4,
		$c4 => { 'default/train/0000.parquet' => 'PAR1 but damaged' } } });
}

sub show {
	my ($hub, $path, %o) = @_;
	return run(args => [qw(dataset show --json --examples 9 --tokenizer sim --num-prompts 9),
		qw(--no-oversample --dataset-name hf --disable-shuffle --dataset-path), $path,
		@{$o{args} || []}], env => { HF_ENDPOINT => $hub->{url}, %{$o{env} || {}} });
}

sub prompts {
	return [map { $_->{prompt} =~ s/ and some more words//r } @{json_of($_[0]{out})->{examples}}];
}

sub asked { return [map { m{^\S+ GET (?:/datasets)?/org/\w+/resolve/\w+/(\S+)} ? $1 : () } split /\n/,
	slurp($_[0]{log})] }

my $hub = start();
my $r = show($hub, 'org/set');
is_deeply(prompts($r), ['from a table of one column', "and, from another\none"], 'the default subset')
	or diag $r->{err};
is_deeply(asked($hub), [qw(README.md x/1.csv x/2.csv)], 'only its files are fetched');
$r = show($hub, 'org/set', args => [qw(--hf-subset main)]);
is_deeply(prompts($r), ['train0 1', 'train0 2', 'train1 1', 'train1 2'], 'train when no split is named');
$r = show($hub, 'org/set', args => [qw(--hf-subset main --hf-split test)]);
is_deeply(prompts($r), ['tested 1', 'tested 2', 'tested 3'], 'a split by name');
$r = show($hub, 'org/set', args => [qw(--hf-revision v2)]);
is_deeply(prompts($r), ['the second version of it'], 'a revision');
is_deeply([sort @{asked($hub)}], [sort 'README.md', 'data.json', 'main/test.jsonl', qw(x/1.csv x/2.csv),
	map { "main/train-0000$_-of-00002.jsonl" } 0, 1], 'nothing twice');

for (['no such split', [qw(--hf-subset main --hf-split dev)],
		'*org/set, subset main: there is no split "dev"; it has train, test'],
	['no such subset', [qw(--hf-subset x)], '*org/set: there is no subset "x"; it has main, other']) {
	my ($name, $args, $err) = @$_;
	check_run($name, show($hub, 'org/set', args => $args), { status => 2, err => $err });
}
check_run('no such dataset', show($hub, 'org/none'), { status => 1, err => '* has no dataset org/none; *' });
check_run('a script: the converted form', show($hub, 'org/old'), { status => 2,
	err => '*/datasets--org--old/snapshots/' . $c4 . '/default/train/0000.parquet*' });
check_run('no such file', show($hub, './none'), { status => 1,
	err => '*./none: there is no such file or *' });

stop_hubs();
$r = show($hub, 'org/set', args => [qw(--hf-subset main)], env => { HF_HUB_OFFLINE => 1 });
is_deeply(prompts($r), ['train0 1', 'train0 2', 'train1 1', 'train1 2'], 'offline: what is cached');
check_run('offline, another set', show($hub, 'org/x', env => { HF_HUB_OFFLINE => 1 }), { status => 1,
	err => '*org/x is not in the cache (*' });
unlink "$ENV{HF_HOME}/hub/datasets--org--set/snapshots/$c1/main/train-00001-of-00002.jsonl";
$r = show($hub, 'org/set', args => [qw(--hf-subset main)], env => { HF_HUB_OFFLINE => 1 });
is_deeply(prompts($r), ['train0 1', 'train0 2'], 'offline: a part of it');
ok(matches($r->{err}, '*org/set: only 1 of the 2 files of split train are in the cache*'), 'said')
	or diag $r->{err};

done_testing();
