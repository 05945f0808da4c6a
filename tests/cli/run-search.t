#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-search.t - what an experiment looks for: the largest load within limits, of one or of each of a
# matrix, in documents, tables and the store; the best of a matrix, in rounds, with --resume; profiles;
# what is refused. The simulator's steps take a time that says which configuration is the best.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = '';
mkdir 'state';

my $json = JSON::PP->new->canonical;
# Steps of 5 ms whatever is in them: twice the sequences, twice the throughput.
my %server = (command => 'sim', model => 'sim', prefill_base_us => 0, prefill_us_per_token => 0,
	decode_base_us => 5000, decode_us_per_seq => 0);
my %load = (random_input_len => 8, random_output_len => 6, temperature => 0, ignore_eos =>
	JSON::PP::true);

sub config {
	my ($name, %c) = @_;
	return spew("$name.yaml", $json->encode({ suite => $name, server => { %server }, benchmark =>
		{ %load }, telemetry => { enabled => JSON::PP::false }, %c }));
}

sub words { ['run', qw(--progress none --config), "$_[0].yaml", '--output', "$_[0].json", @_[1 .. $#_]] }

sub document { json_of(slurp($_[0]) // 'null') }

# ---- profiles ----

config('profiled', profile => 'latency', benchmark => { %load, num_prompts => 7 });
my $run = run(args => words('profiled', '--print-config'));
my $x = json_of($run->{out});
is($run->{status}, 0, 'a profile is read');
is_deeply([@{$x->[0]{benchmark}}{qw(num_prompts max_concurrency num_warmups)}], [7, 1, 4],
	'a key of the file wins over the profile');
config('profiled', profile => 'soak', benchmark => { %load, request_rate => 3 });
$x = json_of(run(args => words('profiled', '--print-config'))->{out});
is_deeply([@{$x->[0]{benchmark}}{qw(duration request_rate max_concurrency)}], [3600, 3, undef],
	'a rate takes the place of the requests at once');
config('profiled', profile => 'capacity', search => { budget => 60 });
$x = json_of(run(args => words('profiled', '--print-config'))->{out});
is_deeply($x->[0]{given}{search}, { find => 'rate', slo => 'p99_ttft_ms<1000,p99_tpot_ms<50',
	budget => 60 }, 'a profile has a search');

# ---- what is refused ----

my @matrix = (matrix => { 'server.max_num_seqs' => [1, 2] });
for ([{ profile => JSON::PP::true }, 'profile: expected one of throughput, latency, capacity, soak, got '
	. 'true; the engine\'s profiler is `profiling`'],
	[{ search => {} }, 'search: expected one of find *and best *'],
	[{ search => { find => 'rate' } }, 'search.find: slo, the limits to keep, is missing; *'],
	[{ search => { find => 'rate', slo => 'p99_itl_ms<3' } }, 'search.slo: *p99_itl_ms*'],
	[{ search => { find => 'rate', slo => 'p99_ttft_ms<9', eta => 2 } },
		'search.eta: it belongs to a search with best'],
	[{ search => { find => 'rate', slo => 'p99_ttft_ms<9' }, benchmark => { request_rate => 4 } },
		'benchmark.request_rate: it is what search.find looks for'],
	[{ search => { best => 'output_throughput' } }, 'search.best: it needs experiments to search '
	. 'among: matrix or experiments'],
	[{ search => { best => 'output_thruput' }, @matrix },
		'search.best: a result has no key *output_throughput*'],
	[{ search => { best => 'total_output_tokens' }, @matrix }, 'search.best: *"total_output_tokens '
	. 'highest" or "total_output_tokens lowest"'],
	[{ search => { best => 'output_throughput', first => 2000 }, @matrix },
		'search.first: expected at most benchmark.num_prompts, which is 1000, got 2000'],
	[{ search => { best => 'output_throughput' }, matrix => { 'benchmark.num_prompts' => [3, 4] } },
		'*benchmark.num_prompts: search.best needs experiments of the same length; *']) {
	my ($c, $said) = @$_;
	config('refused', %$c);
	check_run("refused: $said", run(args => words('refused')),
		{ status => 2, err => "profllm run: *refused.yaml:*$said*" });
}

# ---- the largest load within limits, of each of a matrix ----

my %find = (find => 'concurrency', slo => 'mean_e2el_ms<200', level_seconds => 1, precision => 20,
	budget => 60);
config('capacity', search => { %find }, matrix => { 'server.max_num_seqs' => [2, 8] });
check_run('a capacity is planned', run(args => words('capacity', '--dry-run')), { status => 0,
	out => ['*--find-max-concurrency --precision 20 --level-seconds 1 --budget 60 --slo *'] });
$run = run(args => words('capacity'), seconds => 400);
check_run('a capacity of each', $run, { status => 0, out => [
	'Searching for the largest number of requests at once with mean_e2el_ms<200 *',
	'Highest capacity: * requests at once at max_num_seqs=8',
	'It is * % more than at max_num_seqs=2; the 95 % intervals do not overlap'] });
like($run->{out}, qr/^max_num_seqs=8 .*(?:precise|too few levels)/m, 'how well each is known');
my $d = document('capacity.json');
my @found = map { $_->{results} } @{$d->{experiments}};
is(scalar(grep { $_->{status} eq 'completed' } @{$d->{experiments}}), 2, 'both have an answer');
cmp_ok($found[1]{capacity_concurrency}, '>', 2 * $found[0]{capacity_concurrency},
	'more sequences carry more');
for my $r (@found) {
	ok($r->{capacity_concurrency_low} <= $r->{capacity_concurrency} &&
		$r->{capacity_concurrency} <= $r->{capacity_concurrency_high}, 'within its interval');
	is($r->{capacity}{binding}, 'mean_e2el_ms<200', 'the limit that binds');
	ok(@{$r->{capacity}{points}} > 2, 'the levels are there');
}
$run = run(args => [qw(ingest --store sqlite:store.db capacity.json)]);
is($run->{status}, 0, 'the store takes them');
$run = run(args => [qw(export --store sqlite:store.db --format csv)]);
like($run->{out}, qr/capacity_concurrency_low/, 'the answer is in columns');
like($run->{out}, qr/capacity_limits.*mean_e2el_ms<200/s, 'and so are the limits that it holds for');

config('none', search => { %find, slo => 'mean_e2el_ms<1' });
check_run('no capacity', run(args => words('none'), seconds => 200), { status => 1,
	err => 'profllm run: benchmark: mean_e2el_ms<1 cannot be met even without load: *' });
is(document('none.json')->{error}{category}, 'no capacity', 'the document says so');

# ---- the best of a matrix ----

my %best = (benchmark => { %load, num_prompts => 54, max_concurrency => 9 }, matrix => {
	'server.max_num_seqs' => [1, 2, 3, 4, 9], 'server.decode_base_us' => [5000, 10000] },
	search => { best => 'output_throughput', first => 9, eta => 3 }, repeat => 2);
config('best', %best);
check_run('a search is planned', run(args => words('best', '--dry-run')), { status => 0, out => [
	'Search for the highest output_throughput among 10 experiments, by rounds of',
	'  10 of 9 prompts', '  at least 2 of 54 prompts, on restarted servers'] });
ok(!-e 'best.json', 'and nothing is started');
$run = run(args => words('best'), seconds => 400);
check_run('the best of a matrix', $run, { status => 0, out => [
	'Round 1 of 4: 10 experiments of 9 prompts', '* continue*', 'Round 2 of 4: * prompts',
	'Round 4 of 4: * prompts, again on restarted servers',
	'Best output_throughput: * tokens/s*, at decode_base_us=5000-max_num_seqs=9, measured 2 times at ' .
	'full length', 'It is * % higher than the runner-up, *', 'Cost: * runs in *',
	"Next: profllm run --config best.yaml --only 'decode_base_us=5000-max_num_seqs=9' *"] });
$d = document('best.json');
is($d->{search}{best}, 'decode_base_us=5000-max_num_seqs=9', 'the document names it');
is($d->{search}{is_over}, JSON::PP::true, 'the search is over');
is(scalar(@{$d->{search}{candidates}}), 10, 'every candidate is there');
is($d->{search}{rounds}[0]{measured}, 10, 'all are in the first round');
cmp_ok($d->{search}{rounds}[2]{measured}, '<', 10, 'fewer are measured at full length');
is_deeply($d->{lacking}, [], 'nothing lacks');
is(scalar(grep { $_->{config}{name} eq $d->{search}{best} && $_->{config}{benchmark}{num_prompts} == 54 }
	@{$d->{experiments}}), 2, 'the best one was measured twice at full length');
my %seed;
for my $x (@{$d->{experiments}}) {
	my $tags = ref $x->{config}{tags} eq 'HASH' ? $x->{config}{tags} : {};
	my $round = $tags->{search_round} // 2 + $x->{config}{repeat};
	$seed{$round}{$x->{config}{benchmark}{seed} // 0}++;
}
is_deeply([map { scalar keys %{$seed{$_}} } sort keys %seed], [(1) x keys %seed],
	'the experiments of a round have the same requests');
is_deeply([map { keys %{$seed{$_}} } sort keys %seed], [0 .. keys(%seed) - 1],
	'and each round has others');
like(slurp('best.csv'), qr/^decode_base_us=5000-max_num_seqs=9,/m, 'the table has it first');

# Two that are equal, of which little is known.
config('equal', server => { command => 'sim', model => 'sim' }, benchmark => { %load, num_prompts => 20 },
	matrix => { 'server.ttft_ms' => ['exp:10', 'exp:10.0001'] }, repeat => 3,
	search => { best => 'mean_ttft_ms', first => 19 });
$run = run(args => words('equal'), seconds => 400);
check_run('equals', $run, { status => 0, out => ['It is * % lower than the runner-up, *'] });
unlike($run->{out}, qr/level within (?:[4-9]|\d\d|\S+e)/, 'a wide interval does not make them level');

# From its documents the search goes on, and concludes the same.
my @kept = map { $_->{run_id} } @{$d->{experiments}};
unlink glob 'best.d/decode_base_us=5000-max_num_seqs=9-r2.json';
$run = run(args => words('best', '--resume'), seconds => 200);
is($run->{status}, 0, 'a search goes on');
my $again = document('best.json');
is($again->{search}{best}, $d->{search}{best}, 'with the same answer');
my %was = map { $_ => 1 } @kept;
is(scalar(grep { !$was{$_->{run_id}} } @{$again->{experiments}}), 1, 'and one run that was missing');

# What fails or breaks a condition is out, and says why.
config('out', %best, matrix => { 'server.max_num_seqs' => [1, 2, 9], 'server.gpu' =>
	['h100-80gb', 'l4-24gb'] },
	server => { command => 'sim', model => 'Qwen/Qwen3-30B-A3B' }, require =>
	['failed<=0']);
$run = run(args => words('out'), seconds => 400);
check_run('those that fail are out', $run, { status => 0, out => ['Out: 3 experiments',
	'  gpu=l4-24gb-max_num_seqs=1 and 2 more: *out of memory*', 'Best output_throughput: *'] });
config('nobody', %best, require => ['mean_e2el_ms<=0.001'], repeat => 1, matrix =>
	{ 'server.max_num_seqs' => [1, 2] });
check_run('nobody is left', run(args => words('nobody'), seconds => 200), { status => 1, err =>
	'*the search found no experiment that can be the answer*' });

done_testing;
