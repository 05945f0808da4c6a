#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench hash and bench prefix-block-hash: the questions to the program with vLLM's functions,
# upstream's lines, what is skipped; then our own program on a replacement of vLLM, where there is
# Python.
use strict;
use warnings;
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $worker = "$^X $FindBin::Bin/hash_worker.pl";
my $wide = '=' x 60;

sub ask {
	my ($env, @args) = @_;
	unlink 'record';
	return run(args => ['bench', @args, '--worker-cmd', $worker], env => { RECORD => 'record', %$env });
}

sub asked { return grep { $_->{type} ne 'shutdown' } lines_of('record') }

# ---- a program that reports given times ----

my $r = ask({}, qw(hash --output-json r.json));
check_run('hash', $r, { status => 0 });
is($r->{out}, <<"END", 'upstream\'s lines');
$wide
HASH FUNCTION MICRO BENCHMARK
$wide
Test data: (32-byte bytes object, 32-int tuple)
Iterations: 10,000
$wide

Results:
  SHA256 (pickle) :     2.00 ±   0.25 μs
  xxHash (pickle) :     1.00 ±   0.25 μs
  built-in hash() :     0.50 ±   0.25 μs

$wide
SUMMARY (relative to built-in hash())
$wide
• SHA256 (pickle) is 4.0x slower than built-in hash()
• xxHash (pickle) is 2.0x slower than built-in hash()
END
my @q = asked();
is_deeply([map { [@{$_}{qw(type function iterations)}] } @q],
	[map { ['hash', $_, 10000] } qw(sha256 xxhash hash)], 'each function is asked for');
like($q[0]{bytes}, qr/^a31c06bd463e3923[0-9a-f]{48}$/, 'the bytes of seed 42');
is("@{$q[0]{ints}}[0 .. 3]", '231149 471030 617890 291705', 'and its integers');
is(scalar @{$q[0]{ints}}, 32, 'as many');
my $j = json_of(slurp('r.json'));
is_deeply([map { [$_->{name}, $_->{mean_s} * 1e6] } @{$j->{results}}],
	[['SHA256 (pickle)', 2], ['xxHash (pickle)', 1], ['built-in hash()', 0.5]], 'the file has the times');
is($j->{vllm_version}, '9', 'and whose functions they are');

check_run('a function that is missing', ask({ SKIP => 'xxhash' }, qw(hash --seed 7 --iterations 5)),
	{ status => 0, out => ["Skipping xxHash (pickle): No module named 'xxhash'", 'Iterations: 5',
		'• SHA256 (pickle) is 4.0x slower than built-in hash()'],
	not_out => ['  xxHash*'] });
isnt((asked())[0]{bytes}, $q[0]{bytes}, 'another seed, other bytes');
check_run('no built-in', ask({ SKIP => 'hash' }, 'hash'), { status => 0,
	out => ['Built-in hash() result missing; cannot compute speed ratios.'] });
check_run('no time', ask({ BAD => 'mean_s' }, 'hash'), { status => 1,
	err => '*broke the protocol*: mean_s is not a time in seconds*' });

$r = ask({}, qw(prefix-block-hash --output-json r.json));
my $times = 'avg: 0.300000s  best: 0.100000s  throughput: 3.20M tokens/s';
is($r->{out}, join('', map { "$_\n" } 'Benchmarking 6 algorithms on 10000 blocks (block size=32).',
	map { sprintf '%-14s %s', $_, $times } qw(sha256 sha256_cbor sha256_msgpack xxhash xxhash_cbor
	xxhash_msgpack)), 'prefix-block-hash: upstream\'s lines') or diag($r->{err});
@q = asked();
my @ids = map { @{$_->{ids}} } grep { $_->{type} eq 'blocks' } @q;
is("@ids[0 .. 7]", '27670 12623 24836 29171 13781 1326 8484 31636', 'the tokens of seed 0');
is(scalar @ids, 320000, 'all of them');
is_deeply([map { [@{$_}{qw(block_size trials)}] } grep { $_->{type} eq 'block_hash' } @q],
	[([32, 5]) x 6], 'each algorithm');
is_deeply(json_of(slurp('r.json'))->{results}[0], { algorithm => 'sha256',
	times_s => [0.1, 0.2, 0.3, 0.4, 0.5] }, 'the file has all trials');

check_run('chosen algorithms', ask({ SKIP => 'xxhash' }, qw(prefix-block-hash --num-blocks 3 --block-size
	4 --vocab-size 10 --trials 2 --algorithms sha256 xxhash)), { status => 0,
	out => ['Benchmarking 2 algorithms on 3 blocks (block size=4).', 'sha256         avg: *'],
	not_out => ['xxhash*'], err => "WARNING: Skipping xxhash: No module named 'xxhash'" });
check_run('none at all', ask({ SKIP => 'sha256' }, qw(prefix-block-hash --num-blocks 3 --algorithms
	sha256)), { status => 1, err => '*none of the hash functions could be timed*' });
check_run('an unknown algorithm', ask({}, qw(prefix-block-hash --algorithms md5)), { status => 2,
	err => '*--algorithms*sha256*' });
check_run('too many tokens', ask({}, qw(prefix-block-hash --num-blocks 60000000 --block-size 32)),
	{ status => 2, err => '*--num-blocks 60000000 x --block-size 32: at most 67108864 tokens' });
unlink 'record';
check_run('the script\'s name', run(args => ['benchmark_prefix_block_hash.py', qw(--num-blocks 3
	--worker-cmd), $worker], env => { RECORD => 'record' }), { status => 0, out => ['sha256 *'] });
check_run('and the other\'s', run(args => ['benchmarks/benchmark_hash.py', '--worker-cmd', $worker],
	env => { RECORD => 'record' }), { status => 0, out => ['Results:'] });

# ---- our program on a replacement of vLLM ----

SKIP: {
	skip 'there is no python3', 11 if system('python3 -c "" 2>/dev/null');
	my %env = (PYTHONDONTWRITEBYTECODE => 1, FAKE_JOURNAL => 'journal',
		PYTHONPATH => "$FindBin::Bin/fake_hashes");

	spew('journal', '');
	$r = run(args => [qw(bench hash --python python3 --iterations 20)], env => \%env);
	check_run('vLLM\'s functions', $r, { status => 0, out => [
		"Skipping xxHash (pickle): No module named 'xxhash'", '  SHA256 (pickle) : * ± * μs',
		'  built-in hash() : * ± * μs', '• SHA256 (pickle) is *x slower than built-in hash()'] });
	my @calls = lines_of('journal');
	is(scalar @calls, 220, '200 calls before those that are timed');
	is(scalar(keys %{{ map { $_->{data} => 1 } @calls }}), 1, 'all on the same value');
	like($calls[0]{data}, qr/^\(b'\\xa3\\x1c\\x06\\xbdF>9#.*', \(231149, 471030, 617890, 291705, .*\)\)$/,
		'which is upstream\'s');

	spew('journal', '');
	$r = run(args => [qw(bench prefix-block-hash --python python3 --num-blocks 3 --block-size 4 --trials 2
		--algorithms sha256 sha256_cbor xxhash)], env => { %env, PYTHONHASHSEED => 5 });
	check_run('a chain of blocks', $r, { status => 0, out => ['sha256         avg: *s  best: *'],
		warn => ["WARNING: Skipping xxhash: No module named 'xxhash'",
			'WARNING: Skipping sha256_cbor: Unsupported hash function: sha256_cbor'] });
	@calls = map { $_->{data} } lines_of('journal');
	is(scalar @calls, 8, 'a root and three blocks, twice');
	is($calls[0], "'5'", 'the root is the hash of PYTHONHASHSEED');
	like($calls[1], qr/^\(b'.*', \(27670, 12623, 24836, 29171\), None\)$/, 'the first block');
	isnt($calls[2] =~ s/\), \(.*//r, $calls[1] =~ s/\), \(.*//r, 'each is named by the one before');
	is("@calls[4 .. 7]", "@calls[0 .. 3]", 'every trial hashes the same chain');

	mkdir 'empty';
	mkdir 'empty/vllm';
	spew('empty/vllm/__init__.py', "raise ModuleNotFoundError(\"No module named 'vllm'\")\n");
	check_run('no vLLM', run(args => [qw(bench hash --python python3)],
		env => { %env, PYTHONPATH => 'empty' }), { status => 1,
		err => '*vLLM\'s hash functions cannot be timed: python3 has no vllm.utils.hashing (*);'
			. ' install vLLM there, or name another interpreter with --python' });
}

done_testing();
