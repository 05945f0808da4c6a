#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A program that is built with MEDIA=0 and PG=0 works, and says so where it lacks something; one
# that is built with everything says which package to install where a library is missing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Basename qw(dirname);
use Test::More;

(my $less = dirname($program) . '/less/profllm');
plan skip_all => "$less is not built: make suite does" unless -x $less;

my $sim = start_sim();
my @load = ('bench', 'serve', '--base-url', "http://127.0.0.1:$sim->{port}", '--num-prompts', 5,
	'--tokenizer', 'sim', '--model', 'sim', '--dataset-name', 'random');
my $r = run(command => [$less, @load]);

is($r->{status}, 0, 'the lesser program measures a server') or diag($r->{err});
like($r->{out}, qr/^Successful requests: +5 *$/m, 'with the usual report');

$r = run(command => [$less, qw(dataset show --backend openai-chat --dataset-name random-mm
	--num-prompts 1 --tokenizer sim --model sim)]);
is($r->{status}, 2, 'pictures cannot be made');
like($r->{err}, qr/writing a \w+ file needs a program with media libraries; .* MEDIA=0$/m,
	'and the sentence says how it was built');

spew('a.json', '{"num_prompts": 1}');
$r = run(command => [$less, 'ingest', '--store', 'postgresql://me:secret@127.0.0.1/x', 'a.json']);
is($r->{status}, 2, 'a store on PostgreSQL is refused');
like($r->{err}, qr/needs a program with libpq; this one was built with PG=0$/m, 'for the reason');
unlike($r->{err}, qr/secret/, 'without the password');

# The load generator alone.
(my $client = dirname($program) . '/client/profllm');
$r = run(command => [$client, @load, qw(--save-result --save-detailed --result-filename r.json)]);
is($r->{status}, 0, 'the program of make client measures a server') or diag($r->{err});
like($r->{out}, qr/^Successful requests: +5 *$/m, 'with the same report');
is(run(command => [$client, qw(tokenizer count --tokenizer sim --text), 'two words'])->{status}, 0,
	'and counts tokens');
$r = run(command => [$client, 'ingest', 'r.json']);
is($r->{status}, 2, 'it has no store');
like($r->{err}, qr/unknown command 'ingest'/, 'and does not know the word');
spew('prompts.jsonl.gz', "\x1f\x8b\x08" . "\0" x 20);
$r = run(command => [$client, qw(dataset show --dataset-name trace --tokenizer sim --num-prompts 1
	--dataset-path prompts.jsonl.gz)]);
is($r->{status}, 2, 'packed files are refused');
like($r->{err}, qr/make client does not read packed files; unpack it first/, 'with what to do');

# A folder of broken libraries, which the loader finds first.
mkdir 'broken';
spew("broken/$_", "not a library\n") for 'libsqlite3.so.0';
$r = run(args => ['ingest', '--store', 'sqlite:x.db', 'a.json'],
	env => { LD_LIBRARY_PATH => 'broken' });
is($r->{status}, 1, 'a library that cannot be loaded is an error');
like($r->{err}, qr/cannot load libsqlite3\.so\.0: .*; install the package libsqlite3-0/,
	'that names the package');
is(run(args => ['--version'], env => { LD_LIBRARY_PATH => 'broken' })->{status}, 0,
	'where it is not needed nothing is loaded');

done_testing();
