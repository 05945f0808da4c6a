#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-suite.t - many experiments from one file: which, in which order, on whose servers, several at
# once; what is kept by --resume; what is refused before anything is started; the plan.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use JSON::PP ();
use Test::More;

my $mark = "SUITE_TEST_MARK=$$"; # in the environment of every server of this test
$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';

my %server = (command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1,
	env => { split /=/, $mark });
my %load = (tokenizer => 'sim', num_prompts => 4, random_input_len => 8, random_output_len => 2,
	max_concurrency => 2, temperature => 0);
my $json = JSON::PP->new->canonical;

# YAML takes JSON.
sub config {
	my ($name, %c) = @_;

	return spew("$name.yaml", $json->encode({ suite => $name, server => { %server },
		benchmark => { %load }, telemetry => { enabled => JSON::PP::false }, %c }));
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --config), "$name.yaml", '--output', "$name.json", @more];
}

# Runs it: the run, and the suite's document.
sub suite {
	my ($name, $c, @more) = @_;

	config($name, %$c);
	my $run = run(args => words($name, @more));
	my $text = slurp("$name.json");
	return ($run, defined $text ? json_of($text) : undef);
}

sub labels {
	my ($d) = @_;
	return [map { $_->{config}{name} . ($_->{config}{repeats} > 1 ? "-r$_->{config}{repeat}" : '') }
		@{$d->{experiments}}];
}

# Members in the order in which they began.
sub begun {
	my ($run) = @_;
	return [map { m{^\[\d+/\d+\] (\S+)$} ? $1 : () } split /\n/, "$run->{out}$run->{err}"];
}

sub count_lines {
	my ($run, $re) = @_;
	return scalar grep { /$re/ } split /\n/, "$run->{out}$run->{err}";
}

sub is_left_running {
	return scalar grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

sub is_clean { ok(!is_left_running(), "$_[0]: no server is left") }

# ---- which experiments, in which order ----

{
	my ($run, $d) = suite('grid', {
		experiments => [{ name => 'a' }, { name => 'b', benchmark => { num_prompts => 3 } }],
		matrix => { 'server.max_num_seqs' => [4, 8], 'benchmark.random_output_len' => [2, 3] },
		matrix_exclude => [{ 'server.max_num_seqs' => 8, 'benchmark.random_output_len' => 3 }] });
	my @grid = map { my $n = $_; map { "$n-random_output_len=$_->[0]-max_num_seqs=$_->[1]" }
		[2, 4], [2, 8], [3, 4] } qw(a b);

	check_run('list and matrix', $run, { status => 0,
		out => ['Suite: 6 completed, 0 partial, 0 failed'] });
	is_deeply([sort @{labels($d)}], [sort @grid], 'are multiplied, less what is excluded');
	is_deeply([map { $_->{results}{completed_requests} } @{$d->{experiments}}], [4, 4, 4, 3, 3, 3],
		'each with its own values');
	is_deeply([map { $_->{suite} } @{$d->{experiments}}], [('grid') x 6], 'all of the suite');
	is_deeply($d->{lacking}, [], 'none lacks');
	# The suite ends with a line for each, a file of the same, and one hint.
	my ($end) = $run->{out} =~ /^(Experiment .*)\z/ms;
	is_deeply([sort map { /^(\S+-max_num_seqs=\d)  / ? $1 : () } split /\n/, $end], [sort @grid],
		'a line for each');
	like($end, qr/^Experiment +num_prompts +Req\/s .* P99 TTFT.* P99 TPOT.* Verdict$/m,
		'with what differs and is not in the names');
	like($end, qr/^(?:Highest|No best) output throughput/m, 'and which is the best');
	like($end, qr/^Table: grid\.csv$/m, 'the table is a file');
	like($end, qr/^Next: (?:profllm bench plot grid\.json|quote none of these .*)\n\z/m, 'one hint');
	my ($head, @rows) = split /\n/, slurp('grid.csv');
	like($head, qr/^experiment,num_prompts,random_output_len,max_num_seqs,|^experiment,.*max_num_seqs/,
		'all that differs, and the metrics');
	is(scalar @rows, 6, 'a row for each');
	is(count_lines($run, qr/^Starting server /), 2, 'one server for those that need the same');
	is(count_lines($run, qr/^Resetting caches /), 4, 'with emptied caches in between');
	is($d->{plan}{restart}, 'on-repeat', 'without being asked');
	my @servers = map { $_->{config}{servers}[0] } @{$d->{experiments}};
	my @told = grep { defined $_->{startup_s} } @servers;
	is(scalar @told, 2, 'a start is told once, by the experiment that made it');
	is(scalar(grep { $_->{reused} ? 1 : 0 } @servers), 4, 'the others say that theirs was reused');
	is(scalar(grep { $_->{reused} && defined $_->{startup_s} } @servers), 0, 'and no time');
	for my $x (@{$d->{experiments}}) {
		is_deeply(json_of(slurp("grid.d/$x->{config}{name}.json")), $x,
			"$x->{config}{name} has the same document for itself");
	}
	is_clean('grid');
}

{
	my %c = (experiments => [map { { name => $_ } } 'a' .. 'e'], repeat => 2,
		benchmark => { %load, num_prompts => 1 });
	my ($run, $d) = suite('rounds', { %c, shuffle => 7, restart => 'never' });
	my $plan = $d->{plan};
	my @order = @{begun($run)};

	is_deeply(labels($d), [map { ("$_-r1", "$_-r2") } 'a' .. 'e'],
		'documents stand as configured');
	is_deeply([map { /-r(\d)/ } @order], [(1) x 5, (2) x 5], 'all repeat before one does so twice');
	is_deeply($plan->{order}, \@order, 'the order is recorded');
	is($plan->{shuffle_seed}, 7, 'and its seed');
	isnt("@order[0 .. 4]", join(' ', map { "$_-r1" } 'a' .. 'e'), 'it is shuffled');
	is(count_lines($run, qr/^Starting server /), 1, 'never: one server for all');
	for (['the same seed', 7, 1], ['another seed', 8, '']) {
		my ($what, $seed, $is_same) = @$_;
		my $json = json_of(run(args => ['run', '--config', config('rounds', %c,
			shuffle => $seed), '--plan', '-'])->{out});
		my $got = join ' ', map { $_->{name} } @{$json->{experiments}};

		is($got eq join(' ', @order), $is_same, $what);
	}
}

# ---- whose servers ----

# Servers started, in the plan and then in fact. Repeats on one server are one sample.
{
	my @loads = (matrix => { 'benchmark.max_concurrency' => [1, 2] });
	my @both = (matrix => { 'server.max_num_seqs' => [4, 8], 'benchmark.max_concurrency' => [1, 2] });
	my %few = (benchmark => { %load, num_prompts => 1 });
	my $here = Cwd::getcwd();

	spew('own.pl', "exec '$program', 'sim', \@ARGV or die;\n");
	for (
		['a sweep of loads', 1, { @loads }],
		['each repeat of it', 2, { @loads, repeat => 2 }],
		['repeats alone', 3, { repeat => 3 }],
		['a server for each of its arguments', 2, { @both }],
		['always', 2, { @loads, restart => 'always' }],
		['on-change', 1, { @loads, repeat => 2, restart => 'on-change' }],
		['never', 1, { repeat => 2, restart => 'never' }],
		['jobs', 2, { @loads, jobs => 2 }],
		# no way is known to empty the caches of what is no engine's command
		['caches that cannot be emptied', 2, { @loads,
			server => { %server, model => undef, command => ['perl', "$here/own.pl"] },
			benchmark => { %load, num_prompts => 1, model => 'sim' } }],
		['unless that is wanted', 1, { @loads, restart => 'on-change',
			server => { %server, model => undef, command => ['perl', "$here/own.pl"] },
			benchmark => { %load, num_prompts => 1, model => 'sim' } }],
	) {
		my ($what, $starts, $c) = @$_;
		my $s = $starts == 1 ? 'start' : 'starts';

		config('starts', %few, %$c);
		my $plan = run(args => words('starts', '--dry-run'));
		like($plan->{out}, qr/^\d experiments to run, $starts server $s\b/m, "$what: planned");
		my ($run) = suite('starts', { %few, %$c });
		is(count_lines($run, qr/^(\S+: )?Starting server /), $starts, "$what: started")
			or diag($run->{err});
		remove_tree('starts.d');
	}
}

# A comparison counts repeats on one server as one.
{
	suite("sessions-$_", { repeat => 2, restart => $_ }) for qw(on-repeat on-change);
	my $out = run(args => [qw(bench compare sessions-on-repeat.json sessions-on-change.json)])->{out};

	like($out, qr/^note: sessions-on-change.json: .* count once \(2 runs, 1 session\)$/m,
		'repeats that shared a server') or diag($out);
	unlike($out, qr/^note: sessions-on-repeat.json: .* count once/m, 'repeats that did not');
	unlink glob 'sessions-*';
}

# Repeats of two settings are there to be compared; another one than the server's does not prevent it.
{
	my ($run) = suite('settings', { repeat => 2, matrix => { 'server.max_num_seqs' => [1, 8],
		'benchmark.random_output_len' => [2, 3] } });
	my $by = 'profllm bench compare settings.json --by max_num_seqs';

	like($run->{out}, qr/^Next: (?:\Q$by\E|quote none of these .*)\n\z/m, 'the next command compares');
	check_run('as it says', run(args => [(split ' ', $by)[1 .. 5]]), { status => 0,
		out => ['2 configurations matched, *'] });
	remove_tree('settings.d');
	unlink glob 'settings.*';
}

# What engines do without a server leaves none for the next one.
{
	my ($run, $d) = suite('modes', { benchmark => {}, matrix => { 'server.max_num_seqs' => [4] },
		restart => 'on-change',
		server => { %server, ttft_ms => undef, itl_ms => undef, startup_scale => 0.01 },
		experiments => [{ name => 'offline', benchmark => { mode => 'latency', num_iters => 1,
			num_iters_warmup => 1, input_len => 8, output_len => 2, batch_size => 1 } },
			{ name => 'online', benchmark => { mode => 'serve', %load } }] });

	is_deeply([map { $_->{status} } @{$d->{experiments}}], ['completed', 'completed'],
		'an engine, then a server with the same arguments') or diag($run->{err}, $run->{out});
	is(count_lines($run, qr/^Starting server /), 1, 'which is started');
}
{
	my ($run) = suite('latencies', { benchmark => { mode => 'latency', num_iters => 1,
		num_iters_warmup => 1, input_len => 8, output_len => 2 },
		server => { %server, ttft_ms => undef, itl_ms => undef },
		matrix => { 'benchmark.batch_size' => [1, 2] } });

	check_run('engines have results, too', $run, { status => 0,
		out => ['Next: profllm bench compare latencies.json --by batch_size'] });
	check_run('which the next command compares', run(args => [qw(bench compare latencies.json --by
		batch_size)]), { status => 0, out => ['avg_latency *'] });
}

# ---- what is resumed ----

{
	my %c = (matrix => { 'benchmark.num_prompts' => [2, 3, 4] });
	my ($run, $d) = suite('kept', \%c);
	my $before = slurp('kept.d/num_prompts=3.json');

	unlink 'kept.d/num_prompts=2.json';
	($run, $d) = suite('kept', { matrix => { 'benchmark.num_prompts' => [2, 3, 5] } }, '--resume');
	is_deeply(begun($run), ['num_prompts=2', 'num_prompts=5'], '--resume runs what does not exist');
	check_run('and says so', $run, { status => 0,
		out => ['Suite: 2 completed, 0 partial, 0 failed, 1 kept'] });
	is(slurp('kept.d/num_prompts=3.json'), $before, 'what is there stays');
	is_deeply(labels($d), ['num_prompts=2', 'num_prompts=3', 'num_prompts=5'], 'all in one');
	($run, $d) = suite('kept', { %c, server => { %server, max_num_seqs => 2 } }, '--resume');
	is_deeply(begun($run), [map { "num_prompts=$_" } 2 .. 4], 'another configuration: not kept');
	is(scalar(() = glob('kept.d/earlier/*.json')), 3, 'but put aside');
	($run, $d) = suite('kept', { %c, server => { %server, max_num_seqs => 2 } }, '--only', '*=4');
	is_deeply(begun($run), ['num_prompts=4'], '--only');
	is(scalar @{$d->{experiments}}, 3, 'the others stay in the document');
	check_run("--only of nothing @$_", run(args => words('kept', '--only', 'x*', @$_)), { status => 2,
		err => 'profllm run: --only: no experiment of the suite has such a name; the first of 3 is '
			. 'called num_prompts=2' }) for [], ['--dry-run'];
}

# ---- what fails ----

for (['goes on', 0, 3, 1, 0], ['stop_on_error', 1, 2, 1, 1]) {
	my ($what, $stop, $n, $failed, $left) = @$_;
	my ($run, $d) = suite('fails', { experiments => [{ name => 'a' },
		{ name => 'b', server => { extra_args => ['--no-such-flag'] } }, { name => 'c' }],
		restart => 'always', stop_on_error => $stop ? JSON::PP::true : JSON::PP::false });
	my $lacking = $left ? ['c'] : [];

	remove_tree('fails.d');
	is($run->{status}, 1, "$what: exit status");
	is(scalar @{$d->{experiments}}, $n, "$what: documents");
	is(scalar(grep { $_->{status} eq 'failed' } @{$d->{experiments}}), $failed, "$what: one failed");
	is_deeply($d->{lacking}, $lacking, "$what: what was not run");
	is($d->{experiments}[1]{error}{stage}, 'start', "$what: the stage");
}

# ---- several at once ----

{
	my %c = (experiments => [(map { { name => "m$_" } } 1 .. 5),
		{ name => 'bad', server => { extra_args => ['--no-such-flag'] } }], jobs => 3);
	my ($run, $d) = suite('jobs', \%c);
	my %port;

	is($run->{status}, 1, 'jobs: one fails');
	is_deeply(labels($d), [map({ "m$_" } 1 .. 5), 'bad'], 'all have a document');
	is_deeply([map { $_->{status} } @{$d->{experiments}}], [('completed') x 5, 'failed'],
		'which tells how it went');
	is($d->{plan}{jobs}, 3, 'the plan says how many at once');
	ok(has_line($run->{out}, 'm3: Successful requests: *'), 'lines say whose they are');
	ok(has_line("$run->{err}$run->{out}", 'bad: *'), 'errors too');
	is(count_lines($run, qr{^\[6/6\] .* after }), 1, 'all are counted');
	is_clean('jobs');
	($run, $d) = suite('jobs', \%c, '--resume', '--only', 'm*');
	# Unusual spellings: a child gets exactly what was written.
	spew('odd.yaml', <<"END");
name: odd
server: {command: sim, model: sim, ttft_ms: 2, itl_ms: 1.0, env: {A: 1.10, B: yes,
  C: "\xc3\xa9 \xf0\x9f\x98\x80",
  D: '\$\$HOME', E: 0x1f, F: 'a # b: {c\\d"', G: 010, H: "null", SUITE_TEST_MARK: $$}}
benchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 8, random_output_len: 2, request_rate: .inf,
  burstiness: 1e0, extra_body: {a: [1, 2.5e3, null, true, "\$\$x"]}}
telemetry: {enabled: no}
repeat: 2
END
	my $alone = run(args => words('odd', '--only', 'odd-r1'));
	my $first = json_of(slurp('odd.d/odd-r1.json'));
	my $child = run(args => words('odd', '--only', 'odd-r2', '--jobs', 2));
	my $second = json_of(slurp('odd.d/odd-r2.json'));

	is("$alone->{status} $child->{status}", '0 0', 'a child does the same') or diag($alone->{err},
		$child->{err}, $child->{out});
	is_deeply($_->[1], $_->[2], "as was told: $_->[0]") for
		['environment', map { $_->{config}{servers}[0]{env} } $second, $first],
		['options', map { $_->{config}{benchmark}{extra_body} } $second, $first],
		['hash', map { $_->{config}{hash} } $second, $first];
	is($second->{config}{servers}[0]{env}{D}, '$HOME', 'a dollar stays one');
	check_run('resumed', $run, { status => 0,
		out => ['Suite: 0 completed, 0 partial, 0 failed, 5 kept'] });
}

# Five that need a GPU each, five allowed at once, two GPUs (tests/README.md): never three at a time.
{
	my $library = dirname($program) . '/tests/libfake-nvml.so';
	local @ENV{qw(PROFLLM_NVML PROFLLM_LOCKS FAKE_NVML_STATE)} =
		($library, Cwd::getcwd() . '/locks', spew(Cwd::getcwd() . '/gpus', "count 2\n"));
	my ($run, $d) = suite('gpus', { experiments => [map { { name => "g$_" } } 1 .. 5], jobs => 5,
		resources => { gpus => 1 } });
	my ($now, $most) = (0, 0);

	for (split /\n/, "$run->{out}$run->{err}") {
		$now++ if m{^\[\d/5\] g\d$};
		$now-- if m{^\[\d/5\] g\d: };
		$most = $now if $now > $most;
	}
	check_run('jobs and GPUs', $run, { status => 0, out => ['Suite: 5 completed, 0 partial, 0 failed'] });
	is($most, 2, 'as many at once as there are GPUs');
	is_deeply([map { scalar @{$_->{config}{servers}[0]{gpus}} } @{$d->{experiments}}], [(1) x 5],
		'each with one of them');
}

# ---- refused ----

for (
	[{ matrix => 3 }, '*: matrix: expected an object of lists, or a list of such objects, got a number'],
	[{ matrix => { 'server.max_num_seqs' => 4 } },
		'*: server.max_num_seqs: expected a list of at least one value, got a number'],
	[{ matrix => { 'server.max_num_seq' => [4] } },
		'*: server.max_num_seq: unknown key; did you mean max_num_seqs?*'],
	[{ matrix => { 'benchmark.num_prompts' => [1, 'x'] } }, '*benchmark.num_prompts*x*'],
	[{ matrix => { 'benchmark.num_prompts' => [1] }, matrix_exclude => [{ 'benchmark.nun' => 1 }] },
		'*: matrix_exclude: benchmark.nun is not a path of the matrix'],
	[{ matrix => { 'benchmark.num_prompts' => [1], 'benchmark.seed' => [1] },
		matrix_exclude => [{ 'benchmark.num_prompts' => 1 }] }, '*: no experiment is left'],
	[{ matrix => { 'benchmark.num_prompts' => [1 .. 101], 'benchmark.seed' => [1 .. 100] } },
		'*: matrix: it has more than 4096 combinations'],
	[{ matrix => { 'benchmark.num_prompts' => [1 .. 100], 'benchmark.seed' => [1 .. 10] },
		repeat => 5 },
		'*: repeat: 5000 experiments including repeats, but at most 4096 are possible'],
	[{ experiments => {} }, '*: experiments: expected a list of objects, got an object'],
	[{ experiments => [{ benchmark => {} }] }, '*: each of a list needs a name, a text'],
	[{ experiments => [{ name => 'a' }, { name => 'a' }] }, '*: two experiments have the name a'],
	[{ experiments => [{ name => 'a', repeat => 2 }] },
		'*: repeat belongs to the suite, not to one of its experiments'],
	[{ repeat => 0 }, '*: repeat: expected a whole number from 1 to 4096, got 0'],
	[{ jobs => 2, profiling => { enabled => JSON::PP::true, dir => 'd' },
		experiments => [{ name => 'a' }, { name => 'b' }] },
		"*: profiling.dir: experiments that run at the same time would mix up their traces *"],
	[{ jobs => 'many' }, "*: jobs: expected a whole number from 1 to 256, got the text 'many'"],
	[{ shuffle => 'yes please' }, '*: shuffle: expected true, false or a seed, *'],
	[{ restart => 'sometimes' },
		'*: restart: expected one of on-repeat, on-change, always, never, got *'],
	[{ server => { %server, env => { CUDA_VISIBLE_DEVICES => '2' } } },
		'*.yaml:1:*: server.env.CUDA_VISIBLE_DEVICES: *use resources.gpus*'],
	[{ server => undef, servers => [{ name => 'a', command => 'sim' },
		{ name => 'b', command => 'sim', role => 'proxy', env => { HIP_VISIBLE_DEVICES => 0 } }] },
		'*: servers.1.env.HIP_VISIBLE_DEVICES: *use resources.gpus*'],
	[{ restart => 'never', matrix => { 'server.max_num_seqs' => [1, 2] } },
		'*: restart: never needs the same server for all experiments, *'],
	[{ matrix => { max_num_seq => [8] } },
		'*: matrix: max_num_seq: unknown key; did you mean max_num_seqs?'],
	[{ matrix => { nonsense => [8] } }, '*: matrix: nonsense: expected a dotted path such as '
		. 'server.max_num_seqs or benchmark.max_concurrency'],
	[{ matrix => { seed => [8] } },
		'*: matrix: seed is a key of several sections; write server.seed or benchmark.seed'],
	[{ matrix_exclude => [{ 'server.seed' => 1 }] },
		'*: matrix_exclude: there is no matrix to leave combinations out of'],
	[{ stop_on_error => 'x' }, '*: stop_on_error: expected true or false'],
) {
	my ($c, $err) = @$_;
	my ($run) = suite('refused', $c);

	check_run('refused: ' . substr($json->encode($c), 0, 60), $run, { status => 2, err => $err,
		gone => ['refused.d'] });
}

# ---- the plan ----

{
	my %c = (experiments => [
		{ name => 'plain', benchmark => { request_rate => 2, num_prompts => 120 } },
		{ name => 'secret', server => { command => 'vllm serve', model => "it's",
			api_key => 'topsecret',
			ttft_ms => undef, itl_ms => undef, env => { HF_TOKEN => 'hf_topsecret' } } },
		{ name => 'there', server => { url => 'http://127.0.0.1:9', command => undef, model => undef,
			ttft_ms => undef, itl_ms => undef, env => undef } }]);

	config('plan', %c);
	my $run = run(args => words('plan', '--dry-run'));
	my $plan = json_of(run(args => words('plan', '--plan', '-'))->{out});

	check_run('a plan', $run, { status => 0, gone => ['plan.d', 'plan.json'], out => [
		'3 experiments to run*', 'plain',
		"  server     $mark * sim sim --itl-ms 1 --ttft-ms 2 --host 127.0.0.1 --port *",
		'  benchmark  vllm bench serve --base-url http://127.0.0.1:* --num-prompts 120 *',
		'  time       about 60 s: 60 s by its schedule; *', "  server     *vllm serve 'it'\\''s' *",
		'  server     runs already at http://127.0.0.1:9', '  needs      no GPU' ] });
	unlike("$run->{out}$run->{err}", qr/topsecret/, 'without secrets');
	is_deeply([map { $_->{name} } @{$plan->{experiments}}], [qw(plain secret there)], 'as JSON');
	is($plan->{experiments}[0]{time}{load_s}, 60, 'with its time');
	is($plan->{experiments}[2]{servers}[0]{command}, undef, 'nothing is started for it');
}

{
	my %c = (matrix => { 'benchmark.num_prompts' => [2, 3] });

	suite('known', \%c, '--only', '*=2');
	my $run = run(args => words('known', '--dry-run', '--resume'));

	check_run('a plan after half of it', $run, { status => 0,
		out => ['1 experiment to run, 1 kept*', '  kept       known.d/num_prompts=2.json'] });
}

# What a command of the plan says is what is run.
{
	my ($run, $d) = suite('same', { repeat => 2 });
	my $plan = json_of(run(args => words('same', '--plan', '-'))->{out})->{experiments}[0];
	my $words = join ' ', @{$d->{experiments}[0]{config}{servers}[0]{command}};

	s/--port \d+/--port #/ for $words, $plan->{servers}[0]{command};
	is($words, $plan->{servers}[0]{command}, 'the planned command was started');
	like($plan->{time}{basis}, qr/as long as its earlier run/, 'and how long it took is known');
}

# A document of another configuration says nothing about how long this one takes.
{
	suite('slow', {});
	my %slow = (benchmark => { %load, max_concurrency => undef, num_prompts => 7200, request_rate => 2 });
	config('slow', %slow);
	my $plan = json_of(run(args => words('slow', '--plan', '-'))->{out})->{experiments}[0];

	is($plan->{time}{load_s}, 3600, 'an hour by its schedule');
	cmp_ok($plan->{time}{total_s}, '>=', 3600, 'whatever was measured at its place before');
	unlike($plan->{time}{basis}, qr/as long as its earlier run/, 'and it says so');
}

# Once a member's servers are another's, its start costs nothing.
{
	my %c = (matrix => { 'benchmark.max_concurrency' => [1, 2] },
		benchmark => { %load, num_prompts => 60, request_rate => 1 });

	config('cheaper', %c);
	my $plan = json_of(run(args => words('cheaper', '--plan', '-'))->{out});
	is($plan->{n_starts}, 1, 'one start');
	is_deeply([map { $_->{servers_of} } @{$plan->{experiments}}], [undef, 'max_concurrency=1'],
		'the second goes on with the server of the first');
	is($plan->{experiments}[1]{time}{start_s}, 0, 'and waits for none');
}

# The document of a suite cannot be written: a folder has its name by then.
{
	spew('blocker.pl', "unlink 'blocked.json'; mkdir 'blocked.json';\n"
		. "exec '$program', 'sim', \@ARGV or die;\n");
	config('blocked', matrix => { 'benchmark.max_concurrency' => [1, 2] },
		server => { model => 'sim', command => ['perl', Cwd::getcwd() . '/blocker.pl'] });
	my $r = run(args => words('blocked', '-q'));

	is($r->{status}, 1, 'no document: exit 1');
	like($r->{err}, qr/^profllm run: cannot write blocked\.json: /m, 'and says so');
	like($r->{out}, qr/^Suite: 1 completed.*^max_concurrency=1 .*^Highest output throughput: /ms,
		'the table is printed');
	like($r->{out}, qr{^Each experiment's document, logs and records: blocked\.d$}m,
		'with where the rest is');
	unlike($r->{out}, qr/^Document: |^Next: /m, 'and no document that is not there');
}

done_testing;
