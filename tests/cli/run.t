#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run.t - `profllm run` where all goes well: every mode on the simulator, servers that others run,
# several servers, readiness of other kinds, what is printed and what is kept. The counts of a
# document are those that the simulator wrote down.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';

# YAML takes JSON.
sub config {
	my ($name, %c) = @_;

	return spew("$name.yaml", JSON::PP->new->canonical->encode({ name => $name, %c }));
}

my %sim = (command => 'sim', model => 'sim', ttft_ms => 3, itl_ms => 1);
my %load = (tokenizer => 'sim', num_prompts => 12, random_input_len => 16, random_output_len => 4,
	max_concurrency => 4, temperature => 0);

# One experiment: the run, and its document.
sub experiment {
	my ($name, $c, @more) = @_;
	my $run = run(args => ['run', '--config', config($name, %$c), '--output', "$name.json",
		'--progress', 'none', @more]);
	my $text = slurp("$name.json");

	return ($run, defined $text ? json_of($text) : undef);
}

sub is_completed {
	my ($what, $run, $d) = @_;

	return ok($run->{status} eq '0' && $d && $d->{status} eq 'completed' && !$d->{error}, $what)
		|| diag("status $run->{status}\n$run->{err}\n$run->{out}");
}

sub lines { return split /\n/, $_[0] }

# ---- a server and load ----

{
	my ($run, $d) = experiment('serve', { server => { %sim, truth => Cwd::getcwd() . '/truth' },
		benchmark => \%load });
	my @truth = lines(slurp('truth'));
	my $server = $d->{config}{servers}[0];

	is_completed('a server is started and measured', $run, $d);
	# One request is sent before the load: whether a real one is answered.
	is(@truth, $load{num_prompts} + 1, 'the server has seen every request, and the test request');
	is($d->{results}{completed_requests}, $load{num_prompts}, 'so says the document');
	is($d->{results}{failed_requests}, 0, 'none failed');
	is_deeply([map { defined $d->{results}{"${_}_ttft_ms"} } qw(mean median std p50 p90 p95 p99)],
		[(1) x 7], 'a latency has all that a document always has');
	like($d->{run_id}, qr/^exp_\d{8}_\d{6}_[0-9a-f]{6}$/, 'the name of the run');
	like($d->{timestamp}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'its time is UTC');
	ok($d->{duration} > 0, 'it took a while');
	is($d->{config}{server}{model}, 'sim', 'arguments of the server are kept');
	is($d->{config}{server}{tensor_parallel_size}, 1, 'and defaults');
	ok(-s 'serve.d/server.log', 'its log lies beside the document');
	ok(has_line($run->{out}, 'Starting server at http://127.0.0.1:*, log serve.d/server.log'),
		'its start is said');
	ok(has_line($run->{out}, '*Serving Benchmark Result*'), 'the report is printed');
	ok(has_line($run->{out}, 'Document: serve.json'), 'the end says where the document is');
	ok($d->{system}{hardware_info}, 'the machine is described');
	ok($d->{environment}, 'versions are known');
}

# ---- quiet ----

{
	my ($run) = experiment('quiet', { server => \%sim, benchmark => \%load }, '-q');

	is($run->{status}, 0, '-q of one run') or diag($run->{err});
	like($run->{out}, qr/\A12 requests to sim, .*\nTTFT .*\nThe measurement is .*\nStatus: completed\n/,
		'prints the summary and what became of it');
	unlike("$run->{out}$run->{err}", qr/Starting server|Benchmark Result/, 'without stages and report');
	for my $jobs (1, 2) {
		($run) = experiment("quiet$jobs", { server => \%sim, benchmark => { %load },
			matrix => { 'benchmark.max_concurrency' => [1, 2] } }, '-q', '--jobs', $jobs);
		like($run->{out}, qr/\ASuite: 2 completed, 0 partial, 0 failed\nExperiment /,
			"-q of a suite, $jobs at once: the table");
	}
	($run) = experiment('words', { server => \%sim, benchmark => { %load, num_prompts => 60,
		random_input_len => 100 }, matrix => { 'benchmark.max_concurrency' => [4, 8] } }, '-q');
	my @warned = $run->{err} =~ /random prompts hold/g;
	is(scalar(@warned), 1, 'the same warning of two members is shown once');
	check_run('a file without --config', run(args => ['run', 'quiet.yaml']), { status => 2,
		err => "profllm run: unexpected argument 'quiet.yaml'; did you mean --config quiet.yaml?" });
	check_run('a store without --store', run(args => ['dashboard', 'runs.db']), { status => 2,
		err => "profllm dashboard: unexpected argument 'runs.db'; did you mean --store runs.db?" });
}

# ---- the record, and every array ----

{
	my ($run, $d) = experiment('kept', { server => \%sim, benchmark => \%load,
		output => { record => JSON::PP::true, detailed => JSON::PP::true } });
	my $again = run(args => ['bench', 'score', 'kept.d/run.rec']);

	is_completed('with its record', $run, $d);
	is($again->{status}, 0, 'which is reported again');
	ok(has_line($again->{out}, 'Successful requests: *12 *'), 'with the same count');
	is(@{json_of(slurp('kept.d/detailed.json'))->{ttfts}}, 12, 'and every request by itself');
}

# ---- engines without a server ----

for my $mode (['throughput', num_prompts => 4, random_input_len => 16, random_output_len => 4],
		['latency', num_iters => 2, num_iters_warmup => 1, input_len => 16, output_len => 4],
		['startup', num_iters_cold => 1, num_iters_warmup => 0, num_iters_warm => 1],
		['prioritization', num_prompts => 6, input_len => 8, output_len => 4],
		['prefix-caching', num_prompts => 3, repeat_count => 2, input_length_range => '64:96',
			compare_caching => JSON::PP::true],
		['long-document-qa', num_documents => 2, document_length => 100, repeat_mode => 'tile']) {
	my ($name, %o) = @$mode;
	my ($run, $d) = experiment($name, { server => { command => 'sim', model => 'sim',
		$name eq 'prioritization' ? (scheduling_policy => 'priority') : () },
		benchmark => { mode => $name, %o } });

	is_completed("mode $name", $run, $d);
	is(ref $d->{results}{$name}, 'HASH', "$name: its result is in the document");
	is($d->{config}{mode}, $name, "$name: the mode is told");
	ok(!-e "$name.d/.result.json", "$name: nothing is left between");
	ok(-e "$name.d/engine.log", "$name: the engine's output is kept");
}

is_deeply([map { $_->{completed} } @{json_of(slurp('prioritization.json'))
	->{results}{prioritization}{profllm}{priorities}}], [3, 3], 'priorities have their classes');
cmp_ok(json_of(slurp('prefix-caching.json'))->{results}{'prefix-caching'}{profllm}{caching_speedup}, '>', 0,
	'prefix-caching has both runs');
is(json_of(slurp('long-document-qa.json'))->{results}{completed_requests}, 4,
	'documents are asked about twice');

# ---- conversations, constraints, priorities: other verbs of a server ----

sub says { return { role => $_[0], content => $_[1] } }
spew('talk.json', JSON::PP->new->encode([map { { id => "t$_", messages => [says(user => "first $_"),
	says(assistant => 'one two'), says(user => 'second'), says(assistant => 'three')] } } 1 .. 3]));

{
	my ($run, $d) = experiment('turns', { server => { %sim, requests => Cwd::getcwd() . '/sent' },
		benchmark => { mode => 'multi-turn', input_file => 'talk.json', num_clients => 1,
			max_active_conversations => 2, warmup_percentages => '0%,50%', tokenizer => 'sim',
			goodput => 'session_duration:60000', ready_check_timeout_sec => 0 },
		output => { record => JSON::PP::true } });
	my $r = $d->{results};

	is_completed('mode multi-turn', $run, $d);
	is_deeply([map { $_->{completed} } @{$r->{per_turn_metrics}}], [3, 3], 'statistics of each turn');
	is($r->{sessions}{completed}, 3, 'and of conversations');
	cmp_ok($r->{sessions}{goodput}, '>', 0, 'a limit of bench serve is held');
	like($run->{out}, qr/^Statistics summary/m, 'the script\'s tables are printed');
	is_deeply([@{$d->{config}}{qw(mode)}, @{$d->{config}{benchmark}}{qw(num_clients dataset_name
		max_active_conversations input_file)}], ['multi-turn', 1, 'conversations', 2, 'talk.json'],
		'its options are in the document');
	# S2o: with K = 2 the first conversations are started last first.
	my @sent = map { $_->{body} } map { json_of($_) } lines(slurp('sent'));
	@sent = map { ref $_ ? $_ : json_of($_) } grep { length } @sent;
	is_deeply([map { my @m = @{$_->{messages}}; substr($m[0]{content}, -1) . ':' . @m } grep {
		($_->{messages}[0]{content} // '') =~ /^first/ } @sent],
		[qw(2:1 1:1 2:3 3:1 1:3 3:3)], 'in the order of bench multi-turn');
	my $again = run(args => [qw(bench score turns.d/run.rec --save-result --result-filename again.json)]);
	is($again->{status}, 0, 'the record is scored') or diag($again->{err});
	$again = json_of(slurp('again.json'));
	is_deeply([@$again{qw(sessions per_turn_metrics)}], [@$r{qw(sessions per_turn_metrics)}],
		'with the same figures');
}

{
	spew('twice.json', JSON::PP->new->encode([{ id => 'a',
		messages => [says(user => 'one'), says(user => 'two')] }]));
	my ($run, $d) = experiment('twice', { server => \%sim,
		benchmark => { mode => 'multi-turn', input_file => 'twice.json', tokenizer => 'sim' } });

	is($run->{status}, 2, 'conversations that are none are the user\'s mistake');
	like($run->{err}, qr/benchmark\.input_file: twice\.json: .*two messages of the user in a row/,
		'named as such');
	unlike($run->{out}, qr/^Starting server/m, 'before a server is started');
}

{
	my ($run, $d) = experiment('answers', { server => { command => 'sim', model => 'sim' },
		benchmark => { mode => 'structured-output', structured_dataset => 'choice', num_prompts => 6,
			structured_output_len => 20, structured_output_ratio => 0.5, tokenizer => 'sim' } });
	my $c = $d->{results}{profllm}{correctness};

	is_completed('mode structured-output', $run, $d);
	is_deeply([@$c{qw(requests constrained scored)}], [6, 3, 3], 'answers are judged');
	is($d->{config}{benchmark}{temperature}, 0, 'as the verb asks for them');
}

{
	my ($run, $d) = experiment('classes', { server => { command => 'sim', model => 'sim',
		scheduling_policy => 'priority' }, benchmark => { %load, max_concurrency => undef,
		priority_classes => '0:1,5:1', repeat_count => 2, repeat_order => 'interleave',
		warmup_pass => 'same' } });
	my $ours = $d->{results}{profllm};

	is_completed('options of bench serve in mode serve', $run, $d);
	is_deeply([map { $_->{priority} } @{$ours->{priorities}}], [0, 5], 'priority classes');
	is_deeply([@$ours{qw(repeat_count repeat_order warmup_pass)}], [2, 'interleave', 'same'],
		'repeated requests and a warm-up pass');
	is($d->{results}{completed_requests}, 24, 'twice each');
}

{
	spew('azure.csv', "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,37,4\n"
		. "2023-11-16 18:15:50.9951690,39,10\n2023-11-16 18:15:51.2224670,87,5\n");
	my ($run, $d) = experiment('trace', { server => \%sim, benchmark => { dataset_name => 'trace',
		dataset_path => 'azure.csv', num_prompts => 0, speedup => 10, tokenizer => 'sim' } });

	is_completed('a trace', $run, $d);
	is($d->{results}{total_output_tokens}, 19, 'with its lengths');
	cmp_ok($d->{results}{duration}, '<', 4, 'and its times, ten times as fast');
}

{
	my ($run, $d) = experiment('sessions', { server => \%sim, benchmark => { backend => 'openai-chat',
		multi_turn => JSON::PP::true, num_prompts => 3, multi_turn_num_turns => 2, max_sessions => 2,
		think_time => 0.01, tokenizer => 'sim', random_input_len => 8, random_output_len => 4 } });

	is_completed('conversations in mode serve', $run, $d);
	is_deeply([map { $_->{completed} } @{$d->{results}{per_turn_metrics}}], [3, 3], 'by turn');
}

# ---- a server that others run ----

{
	my $there = start_sim('--ttft-ms', 2);
	my ($run, $d) = experiment('attach', { server => { url => $there->{url} },
		benchmark => \%load });

	is_completed('a server that others run', $run, $d);
	ok(kill(0, $there->{pid}), 'it still runs');
	is($d->{results}{completed_requests}, 12, 'it was measured');
	like($run->{out}, qr/^Using the running server at \Q$there->{url}\E$/m, 'as is said');
	ok(!-e 'attach.d/server.log', 'it has no log of ours');
	($run, $d) = experiment('other', { server => { url => $there->{url}, model => 'another/model' },
		benchmark => \%load });
	is($run->{status}, 1, 'one that has another model is not measured under its name');
	like($run->{err}, qr/has no model "another\/model"; it serves: /, 'which is said');
}

# ---- some requests fail ----

{
	my ($run, $d) = experiment('partial', { server => { %sim, fault => ['status=503:0.3'] },
		benchmark => { %load, num_prompts => 40, ready_check_timeout_sec => 0 } });
	my $r = $d->{results};

	is($run->{status}, 0, 'failed requests alone are no failure');
	is($d->{status}, 'partial', 'but not all of it');
	is($r->{completed_requests} + $r->{failed_requests}, 40, 'all of them are counted');
	is($d->{error}{reason}, "$r->{failed_requests} of 40 requests failed", 'and said');
}

# ---- several servers, in order, known to each other ----

spew('helper.pl', <<'END');
use strict; $| = 1;
print "I am told: @ARGV; $ENV{GREETING}\n";
sleep 1 while 1;
END
{
	my ($run, $d) = experiment('several', {
		servers => [
			{ name => 'late', role => 'serve', after => ['early'], %sim },
			{ name => 'early', role => 'cache', command => ['perl', 'helper.pl'], port => 0,
			  extra_args => ['$(late.url)', '$(early.port)'], ready => { log => 'I am told' },
			  env => { GREETING => 'at $(late.port)' } },
		],
		benchmark => \%load,
	});
	my @said = grep { /^Starting (late|early) |^(late|early) is ready/ } lines($run->{out});
	my ($url) = $run->{out} =~ m,Starting late at (\S+?):(\d+)\,, ? "$1:$2" : '';
	my ($port) = $url =~ /(\d+)$/;

	is_completed('several servers', $run, $d);
	is_deeply([map { /^(Starting \w+|\w+ is ready)/ } @said],
		['Starting early', 'early is ready', 'Starting late', 'late is ready'],
		'each after those it waits for');
	like(slurp('several.d/early.log') // '', qr/^I am told: \Q$url\E \d+; at \Q$port\E$/m,
		'words and environment name the others');
}

# ---- what is only shown ----

{
	my $c = config('shown', server => { %sim, env => { HF_TOKEN => 'hush' } },
		benchmark => \%load);
	my $printed = run(args => ['run', '--config', $c, '--print-config', '--output', 'shown.json',
		'--set', 'benchmark.num_prompts=5', '--set', 'server.max_num_seqs=7']);
	my $seen = eval { json_of($printed->{out}) };
	my $plan = run(args => ['run', '--config', $c, '--dry-run', '--output', 'shown.json']);
	my $schema = run(args => ['run', '--print-schema']);

	is($printed->{status}, 0, 'a configuration is printed');
	is($seen->[0]{benchmark}{num_prompts}, 5, '--set counts');
	is($seen->[0]{given}{server}{max_num_seqs}, 7, 'each of them');
	unlike($printed->{out}, qr/hush/, 'secrets are not shown');
	is($plan->{status}, 0, 'a plan is shown');
	like($plan->{out}, qr/profllm sim sim /, 'with the command');
	ok(!-e 'shown.json' && !-e 'shown.d', 'and nothing is made');
	is(json_of($schema->{out})->{'$schema'}, 'https://json-schema.org/draft/2020-12/schema',
		'the schema is printed');
}

# ---- from stdin; exit status of a verdict; logs shown ----

{
	my $run = run(args => ['run', '--config', '-', '--output', 'in/to/stdin.json', '--strict',
			'--show-log', '--progress', 'none'],
		in => JSON::PP->new->encode({ name => 'stdin', benchmark => { %load, num_prompts => 3 },
			server => { %sim, tokens_per_event => 2 } }));

	# Two tokens in one event: ITL is then not per token, on every machine.
	is($run->{status}, 3, '--strict: a verdict that is not VALID');
	is(json_of(slurp('in/to/stdin.json'))->{status}, 'completed', 'the document is there');
	like($run->{err}, qr/serving model sim/, '--show-log: what the server prints');
}

# ---- this program by its name ----

for my $env ({ PATH => '/usr/bin:/bin' }, other_profllm()) {
	my $run = run(args => ['run', '--config', config('named', server => { %sim,
		command => 'profllm sim' }, benchmark => { %load, num_prompts => 3 }), '--output',
		'named.json', '--progress', 'none'], env => $env);

	is_completed('profllm sim is this program, whatever PATH has', $run, json_of(slurp('named.json')));
	$run = run(args => ['run', '--config', 'named.yaml', '--check'], env => $env);
	is($run->{status}, 0, 'and is checked as that') or diag("$run->{out}$run->{err}");
}

# ---- nothing stays ----

is_deeply([grep { (slurp("$_/environ") // '') =~ /XDG_RUNTIME_DIR=\Q$ENV{XDG_RUNTIME_DIR}\E\0/ &&
		(slurp("$_/cmdline") // '') !~ /--port-file/ } grep { $_ ne "/proc/$$" } glob '/proc/[0-9]*'],
	[], 'no process is left');

done_testing();
