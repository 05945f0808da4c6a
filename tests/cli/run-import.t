#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-import.t - test files of vLLM's performance dashboard run as a suite on the simulator: which
# tests become which experiments, what is left out, and the tables that upstream's tools make of it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';
mkdir 'tests';

my $json = JSON::PP->new->canonical;

my %client = (model => 'small', backend => 'vllm', dataset_name => 'random', 'random-input-len' => 16,
	random_output_len => 4, num_prompts => 6, 'ignore-eos' => '', temperature => '0');
my $serving = { defaults => { qps_list => ['inf'], max_concurrency_list => [2, 3],
		server_environment_variables => { VLLM_DASHBOARD => 1 },
		server_parameters => { model => 'small', dtype => 'bfloat16', 'max-num-seqs' => '64',
			tensor_parallel_size => 1,
			disable_log_stats => '', load_format => 'dummy' },
		client_parameters => \%client },
	tests => [
		{ test_name => 'serving_small_tp1' },
		{ test_name => 'serving_small_tp2', qps_list => [40, 'inf'], max_concurrency_list => [4],
			server_parameters => { tensor_parallel_size => 2 } },
		{ test_name => 'serving_other', client_parameters => { model => 'large' } }] };
my $latency = [{ test_name => 'latency_small_tp1', environment_variables => { A => 'b' },
	parameters => { model => 'small', tensor_parallel_size => 1, load_format => 'dummy',
		num_iters_warmup => 1, 'num-iters' => 2, input_len => 8, output_len => 2,
		batch_size => 2 } }];
my $throughput = [{ test_name => 'throughput_small_tp1', parameters => { model => 'small',
	tensor_parallel_size => 1, dataset_name => 'random', input_len => 8, output_len => 2,
	num_prompts => '4' } }];
spew('tests/serving.json', $json->encode($serving));
spew('tests/latency.json', $json->encode($latency));
spew('tests/throughput.json', $json->encode($throughput));

# YAML takes JSON.
sub config {
	my ($name, $import, %c) = @_;

	return spew("$name.yaml", $json->encode({ suite => $name, server => { command => 'sim',
			tokenizer => 'sim' },
		benchmark => { tokenizer => 'sim' }, telemetry => { enabled => JSON::PP::false },
		import => $import, %c }));
}

sub words { return [qw(run --progress none --config), "$_[0].yaml", '--output', "$_[0].json", @_[1 .. $#_]] }

sub planned {
	my ($name, $import, %c) = @_;

	config($name, $import, %c);
	my $run = run(args => words($name, '--plan', '-'), env => delete $c{env} || {});
	return ($run, $run->{status} eq '0' ? json_of($run->{out}) : undef);
}

sub names { return [map { $_->{name} } @{$_[0]{experiments}}] }

# ---- all of it, with tables ----

my @serving = qw(serving_small_tp1_qps_inf_concurrency_2 serving_small_tp1_qps_inf_concurrency_3
	serving_small_tp2_qps_40_concurrency_4 serving_small_tp2_qps_inf_concurrency_4);
my @all = (@serving, 'latency_small_tp1', 'throughput_small_tp1');

config('perf', { files => [map { "tests/$_.json" } qw(serving latency throughput)] });
my $run = run(args => words('perf'));
my $d = json_of(slurp('perf.json'));

check_run('runs', $run, { status => 0, out => ['Suite: 6 completed, 0 partial, 0 failed',
		'Tables: perf.d/upstream/benchmark_results.md'],
	warn => ['WARNING: *tests/serving.json: serving_other is skipped: its client requests large, but the '
		. 'server has small'],
	exists => [map { ("perf.d/upstream/$_.json", "perf.d/upstream/$_.commands") } @all] });
is_deeply([map { $_->{config}{name} } @{$d->{experiments}}], \@all, 'named as upstream names them');
is_deeply([map { $_->{config}{benchmark}{request_rate} } @{$d->{experiments}}[0 .. 3]],
	['inf', 'inf', 40, 'inf'], 'rates');
is_deeply([map { $_->{config}{benchmark}{max_concurrency} } @{$d->{experiments}}[0 .. 3]],
	[2, 3, 4, 4], 'concurrency');
is_deeply([map { $_->{config}{server}{tensor_parallel_size} } @{$d->{experiments}}[0 .. 3]],
	[1, 1, 2, 2], 'arguments of the server, the test over the defaults');
is($d->{experiments}[0]{config}{server}{max_num_seqs}, 64, 'a number that was a text');
is(scalar(() = "$run->{out}$run->{err}" =~ /^Starting server /mg), 2, 'one server for each test');

my $serve = json_of(slurp("perf.d/upstream/$serving[2].json"));
my $commands = json_of(slurp("perf.d/upstream/$serving[2].commands"));

is($serve->{completed}, 6, "upstream's result file");
is($serve->{tensor_parallel_size}, '2', 'with its metadata');
is_deeply([sort keys %$commands], [qw(client_command gpu_type server_command)], 'and its commands');
like($commands->{client_command}, qr/^vllm bench serve .*--request-rate 40/, 'the client');
like($commands->{server_command}, qr/ --tensor-parallel-size 2 /, 'the server');
is_deeply([sort keys %{json_of(slurp('perf.d/upstream/latency_small_tp1.commands'))}],
	[qw(gpu_type latency_command)], 'of a test without a server');

# ---- upstream's tools ----

my $rows = json_of(slurp('perf.d/upstream/benchmark_results.json'));
my $again = run(args => ['bench', 'markdown', '-r', 'perf.d/upstream']);

is(scalar @$rows, 6, 'the table has every test');
is_deeply([sort { $a <=> $b } grep { $_ ne 'NaN' } map { $_->{'TP Size'} // () } @$rows], [1, 1, 2, 2],
	'serving tests with their sizes');
check_run('bench markdown makes them again', $again, { status => 0 });
is_deeply(json_of(slurp('perf.d/upstream/benchmark_results.json')), $rows, 'and the same');
for my $name (@all) {
	like(slurp('perf.d/upstream/benchmark_results.md'), qr/^\| \Q$name\E +\|/m, "a row of $name");
}
my $compare = run(args => ['bench', 'compare', '-f', 'perf.d/upstream/benchmark_results.json']);
check_run('bench compare splits it by size', $compare, { status => 0,
	out => ['*splits/tp1_pp1*splits/tp2_pp1*'] });

# ---- several at once; resumed ----

{
	unlink glob 'perf.d/serving_small_tp2*.json';
	unlink glob 'perf.d/upstream/serving_small_tp2*';
	my $more = run(args => words('perf', '--resume', '--jobs', 2));

	check_run('children leave the same files', $more, { status => 0,
		out => ['Suite: 2 completed, 0 partial, 0 failed, 4 kept'],
		exists => [map { ("perf.d/upstream/$_.json", "perf.d/upstream/$_.commands") } @all] });
	is(json_of(slurp("perf.d/upstream/$serving[2].json"))->{completed}, 6, 'with what was measured');
}

# ---- beyond the list ----

# Four requests fit into a step of the server: from the fifth on they wait for others' ends.
{
	my $test = { test_name => 'serving_search', qps_list => ['inf'], max_concurrency_list => [2, 3],
		server_parameters => { model => 'small', max_num_seqs => 4 },
		client_parameters => { %client, random_output_len => 12 } };
	my $dir = 'search.d/upstream';

	spew('tests/search.json', $json->encode([$test]));
	config('search', { files => 'tests/search.json', adaptive => JSON::PP::true, sla_ttft_ms => 100,
		prompts_per_concurrency => 3, adaptive_max_probes => 4 });
	my $search = run(args => words('search'));
	my $summary = json_of(slurp("$dir/serving_search_qps_inf_sla_summary.json"));
	my %passes = map { my ($n) = /(\d+)\.json$/; my $r = json_of(slurp($_));
		($n => $r->{p99_ttft_ms} <= 100 && $r->{p99_tpot_ms} <= 100) }
		glob "$dir/*_concurrency_*.json";
	my @more = grep { $_ > 3 } keys %passes;
	my ($last, $fail) = @$summary{qw(final_last_pass final_first_fail)};

	check_run('a search', $search, { status => 0,
		out => ["serving_search, rate inf: the largest concurrency within 100 ms TTFT, 100 ms TPOT "
			. "and 1 % failed requests is $last", 'Tables: *'] });
	is_deeply([grep { !$passes{$_} } 2, 3], [], 'what is in the list passes')
		or diag(slurp("$dir/benchmark_results.md"));
	ok(@more >= 1 && @more <= 4, 'runs beyond the list: ' . join ' ', sort @more);
	ok($passes{$last}, 'the largest that is told passes');
	ok(!defined $fail || (!$passes{$fail} && $fail > $last), 'the failure behind it fails');
	is_deeply([grep { $_ > $last && $passes{$_} } keys %passes], [], 'nothing larger passed');
	is(json_of(slurp("$dir/serving_search_qps_inf_concurrency_$more[0].commands"))->{adaptive_search},
		JSON::PP::true, 'their commands say what they are');
	is(scalar @{json_of(slurp('search.json'))->{experiments}}, 2 + @more, 'all are in the document');

	my $again = run(args => words('search', '--resume'));
	check_run('gone on with', $again, { status => 0, out => ['Suite: 0 completed, 0 partial, 0 failed, '
		. (2 + @more) . ' kept'] });
}

# ---- which tests ----

for (
	['select', { select => '^serving_.*tp2' }, [@serving[2, 3]]],
	['select, not set', { select => '${TEST_SELECTOR:-}' }, [@serving]],
	['model', { model => 'none' }, undef],
	['dtype', { dtype => 'bfloat16' }, [@serving]],
) {
	my ($what, $opts, $want) = @$_;
	my ($got, $plan) = planned('which', { files => 'tests/serving.json', %$opts });

	is_deeply($plan && names($plan), $want, "which tests: $what");
	check_run("$what: none is left", $got, { status => 2, err => '*: import: no test is left' })
		unless $want;
}

for (['prompts_per_concurrency', { prompts_per_concurrency => 5 }, [10, 15]],
	['clamped', { prompts_per_concurrency => 5, min_num_prompts => 11, max_num_prompts => 12 }, [11, 12]],
	['as they are', {}, [6, 6]]) {
	my ($what, $opts, $want) = @$_;
	my ($got, $plan) = planned('prompts', { files => 'tests/serving.json', select => 'tp1', %$opts });

	is_deeply([map { $_->{benchmark} =~ /--num-prompts (\d+)/ } @{$plan->{experiments}}], $want,
		"prompts: $what");
}

{
	my ($got, $plan) = planned('remote', { files => 'tests/serving.json', select => 'tp2',
		remote => 'http://127.0.0.1:9' }, server => {});

	is_deeply([map { $_->{servers}[0]{command} } @{$plan->{experiments}}], [undef, undef],
		'remote: nothing is started');
	is($plan->{experiments}[0]{servers}[0]{url}, 'http://127.0.0.1:9', 'but used');
}

{
	my ($got, $plan) = planned('real', 'tests/serving.json', server => {},
		resources => { gpus => 'none' });
	my $server = $plan && $plan->{experiments}[0]{servers}[0];

	like($server->{command} // '', qr/^vllm serve small .*--disable-log-stats.* --load-format dummy /,
		'without the simulator: vllm serve');
	is($server->{environment}, 'VLLM_DASHBOARD=1', 'with its environment');
}

# ---- refused ----

my %bad = (
	'no JSON' => ['{', '*: import: tests/bad.json:1:2: *'],
	'no list' => ['3', '*: import: expected a list of tests, or an object with defaults and tests'],
	'no name' => [[{}], '*: test_name: a test needs one, a text'],
	'another kind' => [[{ test_name => 'x_y' }], '*: test_name: expected a name that begins with '
		. "serving_, latency_, throughput_ or startup_, got 'x_y'"],
	'no model' => [[{ test_name => 'serving_x', qps_list => [1] }],
		'*: serving_x: its server_parameters name no model'],
	'no rates' => [[{ %{$serving->{defaults}}, qps_list => undef, test_name => 'serving_x' }],
		'*: serving_x: qps_list: expected a list of 1 to 1000 values'],
	'a rate of 0' => [[{ %{$serving->{defaults}}, qps_list => [0], test_name => 'serving_x' }],
		'*: serving_x: qps_list: expected numbers above 0 or "inf"'],
	'no concurrency' => [[{ %{$serving->{defaults}}, max_concurrency_list => ['x'],
		test_name => 'serving_x' }], '*: serving_x: max_concurrency_list: expected whole '
		. 'numbers from 1'],
	'an unknown option' => [[{ %{$serving->{defaults}}, test_name => 'serving_x',
		client_parameters => { %client, num_promts => 3 } }],
		'*: tests/bad.json:1:*: benchmark.num_promts: unknown key; did you mean num_prompts?*'],
	'a wrong value' => [[{ %{$serving->{defaults}}, test_name => 'serving_x',
		server_parameters => { model => 'small', tensor_parallel_size => 0 } }],
		'*: tests/bad.json:1:*: server.tensor_parallel_size: expected *'],
);
for my $what (sort keys %bad) {
	my ($tests, $err) = @{$bad{$what}};

	spew('tests/bad.json', ref $tests ? $json->encode($tests) : $tests);
	config('bad', 'tests/bad.json');
	check_run("refused: $what", run(args => words('bad')), { status => 2, err => $err });
}
for ([{ file => 'x' }, '*: import: file: unknown key; did you mean files'],
	[{ files => [] }, '*: import: files: name at least one'],
	[{ files => 'tests/none.json' }, '*: import: *tests/none.json*'],
	[{ files => 'tests/serving.json', select => '(' },
		"*: import.select: '(' is not a valid regular expression"],
	[{ files => 'tests/serving.json', sla_ttft_ms => 'x' },
		'*: import: sla_ttft_ms: expected a number from 0 to 1000000000']) {
	my ($import, $err) = @$_;

	config('bad', $import);
	check_run('refused: ' . $json->encode($import), run(args => words('bad')),
		{ status => 2, err => $err });
}

done_testing;
