#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-early.t - what is wrong with a benchmark is known before anything is held, started or put
# aside, at once and for all members; --check and --dry-run find the same. What only the server can
# give is still possible. A failure that does not depend on the member is not repeated.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Path qw(remove_tree);
use JSON::PP ();
use Test::More;

my $mark = "EARLY_TEST_MARK=$$"; # in the environment of every server of this test
$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
$ENV{HF_HUB_OFFLINE} = 1;
$ENV{HF_HOME} = Cwd::getcwd() . '/hub';
mkdir 'state';

my $json = JSON::PP->new->canonical;
my %server = (command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1, env => { split /=/, $mark });
my %load = (tokenizer => 'sim', num_prompts => 4, random_input_len => 8, random_output_len => 2,
	temperature => 0);

spew('text.json', "this is no JSON\n");
spew('shape.jsonl', qq({"question": "which field is the prompt?"}\n));
spew('good.jsonl', qq({"prompt": "one"}\n{"prompt": "two"}\n));

sub config {
	my ($name, %c) = @_;
	return spew("$name.yaml", $json->encode({ server => { %server }, benchmark => { %load }, %c }));
}

sub words { my ($name, @more) = @_; return [qw(run --progress none --config), "$name.yaml", @more] }

# Of the programs that were run: a machine that is busy with other tests makes them wait.
sub cpu_s { my @times = times; return $times[2] + $times[3] }

# How often something was started, by what is said and by what is there.
sub started {
	my ($run) = @_;
	my $left = grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
	return $left + (() = $run->{out} =~ /^(Starting server|Reserved|Using GPU)/mg);
}

sub row { my ($run, $what) = @_; return $run->{out} =~ /^  (\S+) +\Q$what\E  +(\S.*)$/m ? "$1: $2" : 'none' }

# ---- each mistake: refused at once by all three ----

# what, the benchmark, the error without place, the row of --check
my @rows = (
	['an endpoint of another API', { backend => 'openai-chat', endpoint => '/v1/completions' },
		'benchmark.endpoint: *chat/completions*', 'benchmark'],
	(map { ["$_ without a path", { dataset_name => $_ }, "benchmark.dataset_name: *--dataset-path*",
		'dataset'] } qw(custom hf burstgpt sonnet)),
	['a mix of nothing', { dataset_name => 'mix' }, 'benchmark.dataset_name: *--mix*', 'dataset'],
	(map { ["$_ of no JSON", { dataset_name => $_, dataset_path => 'text.json' },
		'benchmark.dataset_path: *text.json*', 'dataset'] } qw(sharegpt timed_trace)),
	['rows of another shape', { dataset_name => 'custom', dataset_path => 'shape.jsonl' },
		'benchmark.dataset_path: *shape.jsonl*', 'dataset'],
	['no such file', { dataset_name => 'sharegpt', dataset_path => '/nowhere.json' },
		'benchmark.dataset_path: */nowhere.json*', 'dataset'],
	['pictures for an API of texts', { dataset_name => 'random-mm' }, 'benchmark.dataset_name: *',
		'dataset'],
	['a tokenizer that is none', { tokenizer => '/nonexistent' },
		'benchmark.tokenizer: no tokenizer "/nonexistent": *', 'tokenizer'],
	['prompts of no tokens', { random_input_len => 0 }, 'benchmark.random_input_len: *', 'dataset'],
	['lengths of no distribution', { random_input_len_dist => 'foo' },
		'benchmark.random_input_len_dist: *', 'dataset'],
	['a record in no folder', { record => '/nope/x' },
		'benchmark.record: cannot write /nope/x: there is no such folder', 'record'],
	['a tokenizer that is not in the cache', { tokenizer => 'no/such-model' },
		'benchmark.tokenizer: no tokenizer "no/such-model": *', 'tokenizer'],
);
spew('wrong.json', $json->encode({ status => 'completed', results => {} }));
my $earlier = slurp('wrong.json');
for (@rows) {
	my ($what, $bench, $err, $row) = @$_;
	my $began = cpu_s();

	config('wrong', benchmark => { %load, %$bench });
	my $run = run(args => words('wrong', '--output', 'wrong.json'));
	my $took = cpu_s() - $began;

	check_run($what, $run, { status => 2, err => "profllm run: wrong.yaml:1:*: $err",
		gone => ['wrong.d'] });
	is(started($run), 0, "$what: nothing was started");
	cmp_ok($took, '<', 1, "$what: at once");
	is(slurp('wrong.json'), $earlier, "$what: the earlier result is where it was");
	my $plan = run(args => words('wrong', '--dry-run'));
	is("$plan->{status} $plan->{err}", "2 " . $run->{err} =~ s/^WARNING: .* stays as it is.*\n//mr,
		"$what: --dry-run says the same");
	my $check = run(args => words('wrong', '--check'));
	is($check->{status}, 1, "$what: --check");
	like(row($check, $row), qr/^FAIL: /, "$what: --check has it in its row");
	like(row($check, 'smoke load'), qr/^skipped: /, "$what: and starts nothing");
}

# The document of a failure is written where no result lies.
{
	config('none', benchmark => { %load, tokenizer => '/nonexistent' });
	my $run = run(args => words('none', '--output', 'none.json'));
	my $d = json_of(slurp('none.json'));

	is("$d->{status} $d->{error}{stage} $d->{error}{category}", 'failed config bad configuration',
		'a failed document');
	like($d->{error}{reason}, qr/benchmark\.tokenizer: no tokenizer/, 'with the reason');
	run(args => words('none', '--output', 'none.json', '--set', 'benchmark.tokenizer=/other'));
	like(slurp('none.json'), qr{no tokenizer \\"/other\\"}, 'which the next failure replaces');
	spew('typo.yaml', $json->encode({ server => { %server, prot => 1 } }));
	$run = run(args => words('typo', '--output', 'wrong.json'));
	is("$run->{status} " . slurp('wrong.json'), "2 $earlier", 'a typing mistake costs no result');
	check_run('and that is said', $run, { status => 2, warn => ['WARNING: wrong.json holds an '
		. 'earlier result and stays as it is; this failure has no document'] });
}

# The world's failure is another status, and no reason not to plan.
{
	my %away = (HF_HUB_OFFLINE => 0, HF_ENDPOINT => 'http://127.0.0.1:1');

	config('away', benchmark => { %load, tokenizer => 'no/such-model' });
	my $run = run(args => words('away', '--output', 'away.json'), env => \%away, seconds => 60);
	check_run('a hub that does not answer', $run, { status => 1,
		err => 'profllm run: away.yaml:1:*: benchmark.tokenizer: no tokenizer "no/such-model": *' });
	is(started($run), 0, 'is known before anything is started, too');
	is(json_of(slurp('away.json'))->{error}{category}, 'network', 'by its name');
	$run = run(args => words('away', '--set', 'benchmark.tokenizer=sim',
		'benchmark.dataset_name=sharegpt', '--output', 's.json'), env => \%away, seconds => 60);
	check_run('a data set of the hub', $run, { status => 1, gone => ['s.d'],
		err => 'profllm run: *: benchmark.dataset_name: *127.0.0.1*' });
	$run = run(args => words('away', '--dry-run'), env => \%away, seconds => 60);
	check_run('which a plan only warns of', $run, { status => 0,
		warn => ['WARNING: away.yaml:1:*: benchmark.tokenizer: *'],
		out => ['1 experiment to run*'] });
}

# ---- a suite: all mistakes at once, nothing started ----

{
	my $began = cpu_s();

	spew('three.json', $json->encode({ suite => 'last night' }));
	mkdir 'three.d';
	spew('three.d/a.json', 'a result');
	spew('three.yaml', <<"END");
suite: three
server: {command: sim, model: sim, ttft_ms: 2, env: {EARLY_TEST_MARK: $$}}
benchmark: {tokenizer: sim, num_prompts: 4, random_input_len: 8, random_output_len: 2}
experiments:
  - name: a
    benchmark:
      tokenizer: /nonexistent
  - name: b
    benchmark:
      dataset_name: custom
      dataset_path: /nowhere.jsonl
  - name: c
    benchmark:
      backend: openai-chat
      endpoint: /v1/completions
matrix:
  benchmark.request_rate: [1, 2, inf]
END
	my $run = run(args => words('three', '--output', 'three.json'));
	my @lines = map { s/^profllm run: //r } grep { !/^WARNING/ } split /\n/, $run->{err};

	cmp_ok(cpu_s() - $began, '<', 1, 'a suite: at once');
	is($run->{status}, 2, 'a suite of mistakes');
	is(started($run), 0, 'starts nothing');
	is(scalar(@lines), 3, 'each mistake is told once') or diag($run->{err});
	like($lines[0], qr/^three\.yaml:7:18: benchmark\.tokenizer: .*\(experiment a-/, 'where it is');
	like($lines[1], qr/^three\.yaml:11:21: benchmark\.dataset_path: /, 'the second');
	like($lines[2], qr/^three\.yaml:15:17: benchmark\.endpoint: /, 'the third');
	is(slurp('three.d/a.json'), 'a result', 'no document of an earlier run is put aside');
	is(slurp('three.json'), $json->encode({ suite => 'last night' }), 'nor is its suite');
	$run = run(args => words('three', '--output', 'three.json', '--only', 'c*'));
	is(scalar(grep { /^profllm run: three/ } split /\n/, $run->{err}), 1,
		'of what is not chosen nothing is said');
}

# A command that is not there.
{
	local $ENV{PATH} = '/usr/bin:/bin';
	my %vllm = (command => 'no-such-vllm serve', model => 'm');

	config('path', server => \%vllm, benchmark => { %load, model => 'm' });
	my $run = run(args => words('path', '--output', 'path.json'));
	check_run('a command that is not in PATH', $run, { status => 2, err => 'profllm run: '
		. 'path.yaml:1:*: server.command: no-such-vllm is not in PATH; is the environment it is '
		. 'installed in active?' });
	is(json_of(slurp('path.json'))->{error}{stage}, 'config', 'in the stage config');
	is(json_of(slurp('path.json'))->{error}{category}, 'command not found', 'by its name');
	check_run('which a plan only warns of', run(args => words('path', '--dry-run')), { status => 0,
		warn => ['WARNING: path.yaml:1:*: server.command: no-such-vllm is not in PATH*'] });
	mkdir 'bin';
	spew('bin/no-such-vllm', "#!/bin/sh\nshift 2\nexec '$program' sim --model m \"\$@\"\n");
	chmod 0755, 'bin/no-such-vllm';
	$vllm{env} = { PATH => Cwd::getcwd() . '/bin:/usr/bin:/bin' };
	config('path', server => \%vllm, benchmark => { %load, model => 'm' });
	$run = run(args => words('path', '--output', 'path.json'));
	is($run->{status}, 0, 'the server\'s own PATH counts') or diag($run->{err});
}

# ---- what only the server knows is asked of it ----

spew('serve', "#!/bin/sh\nexec '$program' sim --model org/m \"\$@\"\n");
chmod 0755, 'serve';
my %own = (command => './serve', ready_timeout_s => 20, env => $server{env});
my %asked = (model => 'org/m', num_prompts => 4, random_input_len => 8, random_output_len => 2);
for (
	['a tokenizer that the server lends', { %asked }],
	['a model that the server names', { %asked, model => undef }],
	['a chat backend without an endpoint', { %asked, tokenizer => 'sim', backend => 'openai-chat' }],
	['a dataset, counted by the server', { %asked, dataset_name => 'custom',
		dataset_path => 'good.jsonl', num_prompts => 2, skip_chat_template => JSON::PP::true,
		map { $_ => undef } qw(random_input_len random_output_len) }],
) {
	my ($what, $bench) = @$_;

	config('lend', server => { %own }, benchmark => $bench);
	my $run = run(args => words('lend', '--output', 'lend.json'));
	my $d = json_of(slurp('lend.json') // '{}');

	is($run->{status}, 0, "$what: exit status") or diag($run->{err}, $run->{out});
	is($d->{results}{completed_requests}, $bench->{num_prompts}, "$what: requests");
	is(run(args => words('lend', '--dry-run'))->{status}, 0, "$what: a plan");
}
config('lend', server => { %own }, benchmark => { %asked, dataset_name => 'sharegpt',
	dataset_path => '/nowhere.json' });
check_run('a wrong file is found all the same', run(args => words('lend', '--output', 'l.json')),
	{ status => 2, err => '*benchmark.dataset_path: *' });

# A chat template that only the server knows: prompts go through its rendering.
mkdir 'other';
spew('other/tokenizer.json', slurp("$FindBin::Bin/../unit/token/small.json"));
spew('other/tokenizer_config.json', '{"bos_token": "<|bos|>", "chat_template": "{{ made_up }}"}');
spew('render', "#!/bin/sh\nexec '$program' sim --model org/m --tokenizer other \"\$\@\"\n");
chmod 0755, 'render';
my %custom = (model => 'org/m', tokenizer => 'other', dataset_name => 'custom', num_prompts => 2,
	dataset_path => 'good.jsonl', custom_output_len => 2);
config('render', server => { %own, command => './render' }, benchmark => \%custom);
{
	my $run = run(args => words('render', '--output', 'render.json'));
	my $d = json_of(slurp('render.json') // '{}');

	is("$run->{status} $d->{status}", '0 completed', 'a chat template of the server\'s')
		or diag($run->{err}, $run->{out});
	like(row(run(args => words('render', '--check')), 'dataset'), qr/^note: .* applies the chat template/,
		'--check says who is asked');
	$run = run(args => words('render', '--output', 'r.json', '--set',
		'benchmark.dataset_path=shape.jsonl'));
	check_run('rows of another shape', $run, { status => 2,
		err => '*--set benchmark.dataset_path=shape.jsonl: benchmark.dataset_path: *shape.jsonl*' });
	is(started($run), 0, 'are found without it');
}

# Requests are made once, and are those of a run that makes them late.
{
	config('once', benchmark => { %load, random_range_ratio => 0.5, seed => 5, save_detailed =>
		JSON::PP::true });
	my $run = run(args => words('once', '--output', 'once.json'));
	my $sim = start_sim();
	my $late = run(args => [qw(bench serve --model sim --tokenizer sim --num-prompts 4
		--random-input-len 8 --random-output-len 2 --random-range-ratio 0.5 --seed 5 --temperature 0
		--save-result --save-detailed --result-filename late.json --progress none --base-url),
		$sim->{url}]);
	my $early = json_of(slurp('once.d/detailed.json'));

	is($run->{status} + $late->{status}, 0, 'both run') or diag($run->{err}, $late->{err});
	$late = json_of(slurp('late.json'));
	is_deeply([@$early{qw(input_lens output_lens)}], [@$late{qw(input_lens output_lens)}],
		'requests made before the server are those made after it');
}

# ---- failures that are not repeated ----

# A model that is not there is the same in all members; memory may be a matter of the member.
spew('gone', "#!/bin/sh\necho 'OSError: org/m is not a local folder and is not a valid model identifier"
	. " listed on https://huggingface.co/models'\nexit 1\n");
spew('oom', "#!/bin/sh\necho 'torch.OutOfMemoryError: CUDA out of memory.'\nexit 1\n");
chmod 0755, 'gone', 'oom';
for my $jobs (1, 2) {
	for (['gone', 'model not found', 1], ['oom', 'out of memory', 4]) {
		my ($command, $category, $n) = @$_;

		remove_tree('again.d');
		$n = 2 if $n == 1 && $jobs == 2; # two had begun
		config('again', suite => 'again', server => { command => "./$command", model => 'org/m' },
			matrix => { 'server.max_num_seqs' => [8, 16, 32, 64] }, jobs => $jobs,
			benchmark => { %load });
		my $run = run(args => words('again', '--output', 'again.json'));
		my $d = json_of(slurp('again.json'));
		my $left = 4 - $n;

		is(scalar(@{$d->{experiments}}), $n, "$category, $jobs at once: $n of 4 were run");
		is($d->{experiments}[0]{error}{category}, $category, 'which failed so');
		is(scalar(@{$d->{lacking}}), $left, 'the others have no document');
		my $end = "Suite: 0 completed, 0 partial, $n failed" . ($left ? ", $left not run" : '');
		my @warn = $left ? (warn => ["WARNING: $left experiments were not run, because they would "
			. 'fail as max_num_seqs=* did: *']) : ();
		check_run("$category, $jobs at once: what is said", $run,
			{ status => 1, out => [$end], @warn });
	}
}
{
	config('other', suite => 'other', server => { command => './gone', model => 'org/m' },
		experiments => [{ name => 'a' }, { name => 'b' }, { name => 'c', server => { %server } }],
		benchmark => { %load });
	my $run = run(args => words('other', '--output', 'other.json'));

	my @all = @{json_of(slurp('other.json'))->{experiments}};
	is_deeply([map { "$_->{config}{name} $_->{status}" } @all], ['a failed', 'c completed'],
		'members with another model are run');
}

done_testing;
