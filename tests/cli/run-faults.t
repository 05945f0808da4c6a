#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-faults.t - `profllm run` where something goes wrong, stage by stage: what is said, the exit
# status, what the document says, and that nothing is left: no process, no lock, no port. Then
# signals in each stage, kill -9 among them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

my $there = start_sim(); # before the mark: it is not the runner's
my $locked = start_sim(qw(--api-key k));
my $mark = "$$-" . int(time * 1000);
$ENV{RUN_TEST} = $mark;
$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';

# Who carries the mark and is not one of the given.
sub left {
	my %known = map { $_ => 1 } $$, @_;
	my @found;

	for my $dir (glob '/proc/[0-9]*') {
		my ($pid) = $dir =~ /(\d+)/;
		my $environ = $known{$pid} ? undef : slurp("$dir/environ");

		push @found, "$pid " . join ' ', split /\0/, slurp("$dir/cmdline") || '(gone)'
			if defined $environ && $environ =~ /(^|\0)RUN_TEST=\Q$mark\E(\0|$)/;
	}
	return @found;
}

END { kill 'KILL', map { /^(\d+)/ } left() if $mark && $mark =~ /^$$-/ }

my %sim = (command => 'sim', model => 'sim', ttft_ms => 3, itl_ms => 1, grace_s => 2);
my %load = (tokenizer => 'sim', num_prompts => 12, random_input_len => 16, random_output_len => 4,
	max_concurrency => 4, temperature => 0);
my $n = 0;
spew('empty.jsonl', '');
spew('broken', "#!/nowhere/sh\n");
chmod 0755, 'broken';

sub config {
	my ($server, $bench) = @_;
	my $name = 'x' . ++$n;

	spew("$name.yaml", JSON::PP->new->canonical->encode({ name => $name,
		server => { %sim, %$server }, benchmark => $bench->{mode} ? $bench : { %load, %$bench } }));
	return $name;
}

sub words { return ('run', '--config', "$_[0].yaml", '--output', "$_[0].json", '--progress', 'none') }

sub document {
	my $text = slurp("$_[0].json");
	return defined $text ? json_of($text) : { status => 'none', error => {} };
}

# ---- a row for each failure: stage and category, what is said, what the log's tail has ----

my @rows = (
	{ name => 'no such command', server => { command => './nosuch' }, status => 2,
	  stage => 'config', category => 'command not found',
	  err => '*: server.command: ./nosuch: No such file or directory' },
	{ name => 'a command that cannot be executed', server => { command => './broken' }, status => 1,
	  stage => 'start', category => 'command not found', err => 'start: cannot start ./broken: *' },
	{ name => 'out of memory', server => { fail_start => 'oom' }, status => 1,
	  stage => 'start', category => 'out of memory', err => '*out of memory*', tail => 'OutOfMemory' },
	{ name => 'killed while it starts', server => { fail_start => 'killed' }, status => 1,
	  stage => 'start', category => 'killed', err => '*return code -9 (killed: *kernel*)' },
	{ name => 'a status while it starts', server => { fail_start => 'exit=7' }, status => 1,
	  stage => 'start', category => 'crash', err => '*return code 7*' },
	{ name => 'a flag it does not take', server => { extra_args => ['--no-such-flag'] }, status => 1,
	  stage => 'start', category => 'bad flag', err => '*bad flag*', tail => 'no-such-flag' },
	{ name => 'never ready', server => { never_ready => JSON::PP::true, ready_timeout_s => 0.5 },
	  status => 1, stage => 'ready', category => 'not ready in time',
	  err => 'ready: Server failed to become ready within 0.5 seconds.', tail => 'init engine' },
	{ name => 'ready, but a real request is not answered', server => { fault => ['status=503'] },
	  bench => { ready_check_timeout_sec => 1 }, status => 1, stage => 'ready',
	  category => 'no answer', err => 'ready: Initial test run failed*' },
	{ name => 'it dies under load', server => { die_after => '5req' },
	  bench => { num_prompts => 400, max_concurrency => 2 }, status => 1, stage => 'benchmark',
	  category => 'crash', err => 'benchmark: the server ended by itself: *', tail => 'engine died',
	  measured => 1 },
	{ name => 'every request fails', server => { fault => ['status=500'] },
	  bench => { ready_check_timeout_sec => 0 }, status => 1, stage => 'benchmark',
	  category => 'all requests failed', err => 'benchmark: every request failed (12): *' },
	{ name => 'no such dataset', bench => { dataset_name => 'custom',
	  dataset_path => './nowhere.jsonl' }, status => 2, stage => 'config', err => '*nowhere.jsonl*' },
	{ name => 'a dataset that is none', bench => { dataset_name => 'custom',
	  dataset_path => 'empty.jsonl' }, status => 2, stage => 'config',
	  category => 'bad configuration', err => '*: benchmark.dataset_path: *' },
	{ name => 'a port that somebody has', server => { port => $there->{port} + 0 }, status => 1,
	  stage => 'allocate', err => "*$there->{port}*" },
	{ name => 'nobody at the URL', server => { url => 'http://127.0.0.1:' . free_port(),
	  ready_timeout_s => 0.3, map { $_ => undef } qw(command model ttft_ms itl_ms grace_s) },
	  status => 1, stage => 'ready', category => 'not reachable',
	  err => 'ready: server: no answer from http://127.0.0.1:* within * s. Is it running?' },
	# at first contact, and not after the minute that a test request may take
	{ name => 'a key is missing', server => { url => $locked->{url},
	  map { $_ => undef } qw(command model ttft_ms itl_ms grace_s) }, bench => { model => 'sim' },
	  status => 1, stage => 'benchmark', category => 'network',
	  err => 'benchmark: the server at http://127.0.0.1:* requires a key (401): set OPENAI_*' },
	{ name => 'an option that cannot be', bench => { burstiness => -1 }, status => 2,
	  stage => 'config', err => '*' },
	{ name => 'an engine that fails', server => { fail_start => 'oom', map { $_ => undef }
	  qw(ttft_ms itl_ms grace_s) }, bench => { mode => 'latency', num_iters => 1 }, status => 1,
	  stage => 'benchmark', err => 'benchmark: *' },
);

for my $row (@rows) {
	my $name = config($row->{server} || {}, $row->{bench} || {});
	my $run = run(args => [words($name)]);
	my $d = document($name);
	my $e = $d->{error} || {};
	my @why;

	(my $last = $run->{err}) =~ s/\n\z//;
	$last =~ s/.*\n//s;
	push @why, "exit status $run->{status}, not $row->{status}" if $run->{status} ne $row->{status};
	push @why, "status $d->{status}" if $d->{status} ne 'failed';
	push @why, "stage $e->{stage}" if ($e->{stage} // '') ne $row->{stage};
	push @why, "category $e->{category}"
		if $row->{category} && ($e->{category} // '') ne $row->{category};
	push @why, "stderr: $last" unless matches($last, "profllm run: $row->{err}");
	push @why, "log_tail: " . ($e->{log_tail} // 'null')
		if $row->{tail} && ($e->{log_tail} // '') !~ /\Q$row->{tail}\E/;
	push @why, 'nothing of what was measured'
		if $row->{measured} && !($d->{results}{completed_requests} // 0);
	push @why, map { "left: $_" } left($there->{pid});
	ok(!@why, $row->{name}) or diag(join "\n", @why, $run->{err}, $run->{out});
}

# ---- before anything is started ----

{
	my $name = config({}, {});

	spew('file', 'no folder');
	for my $row (['a folder that is a file', 'file/r.json'], ['a file that is a folder', 'state']) {
		my ($what, $path) = @$row;
		my $run = run(args => ['run', '--config', "$name.yaml", '--progress', 'none',
			'--output', $path]);

		like($run->{status}, qr/^[12]$/, "$what: refused");
		like($run->{err}, qr/^profllm run: --output: /m, "$what: with the reason");
		unlike($run->{out}, qr/Starting/, "$what: before anything is started");
	}
}

# ---- signals ----

# What a line on stdout says has been reached.
my %stage = (
	start => [{ never_ready => JSON::PP::true }, {}, qr/^Starting server/m],
	benchmark => [{}, { num_prompts => 4000, request_rate => 20, max_concurrency => undef },
		qr/^Traffic request rate/m],
);

sub begin_in {
	my ($stage, %server) = @_;
	my ($server, $bench, $line) = @{$stage{$stage}};
	my $truth = Cwd::getcwd() . "/$n.truth"; # a line for each answer
	my $name = config({ %$server, %server, truth => $truth }, $bench);
	my $run = begin(args => [words($name)]);

	wait_for("stage $stage", sub { (slurp($run->{out_path}) // '') =~ $line });
	# Something must have been measured.
	wait_for('a few answers', sub { ((slurp($truth) // '') =~ tr/\n//) >= 5 }) if $stage eq 'benchmark';
	return ($run, $name);
}

for my $signal (qw(INT TERM)) {
	for my $stage (qw(start benchmark)) {
		my ($run, $name) = begin_in($stage);
		kill $signal, $run->{pid};
		finish($run);
		my $d = document($name);
		my $done = $d->{results}{completed_requests} // 0;

		is($run->{status}, 130, "$signal in the stage $stage: exit status");
		is($d->{error}{category}, 'interrupted', "$signal in the stage $stage: the document says so");
		is($d->{error}{stage}, $stage, "$signal in the stage $stage: and where");
		is($d->{status}, $stage eq 'start' ? 'failed' : 'partial',
			"$signal in the stage $stage: status");
		ok($done > 0 && $done < 4000, "$signal: what was measured is kept") if $stage eq 'benchmark';
		is_deeply([left($there->{pid})], [], "$signal in the stage $stage: nothing is left");
	}
}

# Twice: at once, although the server does not want to end. Its keeper sees to it.
{
	my ($run) = begin_in('benchmark', ignore_term => JSON::PP::true, grace_s => 60);

	kill 'INT', $run->{pid};
	sleep 0.1;
	kill 'INT', $run->{pid};
	finish($run);
	like($run->{status}, qr/^signal 2$|^130$/, 'a second Ctrl-C ends it');
	kill 'KILL', map { /^(\d+)/ } left($there->{pid});
}

# kill -9: the keeper ends the server; the next start has the same port.
for my $stage (qw(start benchmark)) {
	my $port = free_port();
	my ($run, $name) = begin_in($stage, port => $port);

	kill 'KILL', $run->{pid};
	finish($run);
	is($run->{status}, 'signal 9', "kill -9 in the stage $stage");
	wait_for('the end of its server', sub { !left($there->{pid}) });
	pass("kill -9 in the stage $stage: nothing is left");

	my $next = config({ port => $port }, {});
	my $again = run(args => [words($next)]);
	is($again->{status}, 0, "kill -9 in the stage $stage: the next run has its port")
		or diag($again->{err});
}

# The runner and its keeper both: the next start ends what they left.
{
	my ($run, $name) = begin_in('benchmark');
	my @below = grep { /__keeper/ } left($there->{pid}, $run->{pid});

	kill 'KILL', $run->{pid}, map { /^(\d+)/ } @below;
	finish($run);
	my $next = config({}, {});
	my $again = run(args => [words($next)]);
	is($again->{status}, 0, 'runner and keeper killed: the next run goes on') or diag($again->{err});
	wait_for('the end of what was left', sub { !left($there->{pid}) });
	pass('runner and keeper killed: nothing is left');
}

done_testing();
