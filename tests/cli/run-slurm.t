#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-slurm.t - `profllm run --scheduler slurm` with a Slurm of scripts (fake_cluster/slurm.pl): what is
# submitted, collected, resumed, refused; tasks that are cancelled, requeued and run out of time.
# tests/peer/slurm does the same with a real one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use JSON::PP ();
use Test::More;

my $mark = "SLURM_TEST_MARK=$$"; # in the environment of every server of this test
my $dir = getcwd();

$ENV{PROFLLM_NVML} = '';
$ENV{FAKE_SLURM} = "$dir/slurm";
$ENV{PATH} = "$FindBin::Bin/fake_cluster:$ENV{PATH}";
mkdir 'slurm';

# The end of everything that the fake Slurm still runs.
END { spew("$dir/slurm/" . s{.*/}{}r . '.end', 'CANCELLED') for grep { !/\./ } glob "$dir/slurm/[0-9]*_*" }

sub config {
	my ($name, %more) = @_;
	my $scheduler = delete $more{scheduler} // {};
	my %matrix = $more{experiments} ? () : (matrix => { 'server.max_num_seqs' => [2, 4, 8] });

	spew("$name.yaml", JSON::PP->new->canonical->encode({ suite => $name,
		server => { command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1,
			env => { split /=/, $mark } },
		benchmark => { tokenizer => 'sim', num_prompts => 3, random_input_len => 8,
			random_output_len => 2, max_concurrency => 2, temperature => 0 },
		telemetry => { enabled => JSON::PP::false },
		scheduler => { poll_s => 0.1, %$scheduler }, %matrix, %more }));
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --config), "$name.yaml", '--output', "$name.json", '--scheduler',
		'slurm', @more];
}

sub calls {
	my ($tool) = @_;
	return grep { /^$tool\t/ } split /\n/, slurp('slurm/calls') // '';
}

# A document that may just be being written again.
sub document {
	my ($path) = @_;
	my $text = slurp($path);

	return defined $text ? json_of($text) : {};
}

sub left_running {
	return grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

sub servers {
	return grep { (slurp(s/environ$/cmdline/r) // '') =~ /\0sim\0/ } left_running();
}

sub is_complete {
	my ($name, $n) = @_;
	my $d = json_of(slurp("$name.json"));

	is_deeply([[map { $_->{status} } @{$d->{experiments}}], $d->{lacking}], [[('completed') x $n], []],
		"$name: one complete result set");
	wait_for("the end of the servers of $name", sub { !left_running() });
	is_deeply([glob "$name.d/scheduler/*/*.{yaml,sh,json}"], [], "$name: no configuration is left");
	return $d;
}

# A load that lasts until it is stopped.
my %long = (benchmark => { tokenizer => 'sim', duration => 600, random_input_len => 8,
	random_output_len => 8, max_concurrency => 1, temperature => 0 });

# ---- a suite from beginning to end ----

config('plain', repeat => 2, scheduler => { partition => 'main', account => 'a1', qos => 'low',
	time_limit => '90s', args => ['--mem=1G'] });
check_run('a suite', run(args => words('plain', '--jobs', 3, '--scheduler-args=--exclusive')), { status => 0,
	out => ['Slurm job 100: 6 experiments', 'Suite: 6 completed, 0 partial, 0 failed'] });
{
	my $d = is_complete('plain', 6);
	my @call = split /\t/, (calls('sbatch'))[0];

	is_deeply([@{$d->{plan}}{qw(scheduler jobs restart)}], ['slurm', 3, 'always'], 'the plan says how');
	is_deeply([grep { /^--(array|partition|account|qos|time|mem|exclusive|requeue|gres)\b/ } @call],
		[qw(--array=0-5%3 --requeue --partition=main --account=a1 --qos=low --time=2 --mem=1G
			--exclusive)], 'what Slurm is asked for');
	is(scalar(() = glob 'plain.d/scheduler/*/*.log'), 6, 'what members print is kept');
}
check_run('nothing is left to do', run(args => words('plain', '--resume')), { status => 0,
	out => ['Suite: 0 completed, 0 partial, 0 failed, 6 kept'] });
is(scalar calls('sbatch'), 1, 'and nothing was submitted');

# ---- one experiment; GPUs ----

config('gpus', experiments => [{ name => 'one', resources => { gpus => 1 } },
	{ name => 'two', resources => { gpus => 2 } }, { name => 'none' }]);
spew('slurm/hold', '');
check_run('without waiting', run(args => words('gpus', '--no-wait')), { status => 0,
	out => ['Slurm job 101: 1 experiment with 1 GPU each', 'Slurm job 102: 1 experiment with 2 GPUs each',
		'Slurm job 103: 1 experiment', '3 experiments go on in Slurm; the same command with --resume '
		. 'collects them, scancel 101 102 103 ends them'] });
is_deeply([map { /--gres=(\S+)/ ? $1 : '-' } calls('sbatch')], ['-', 'gpu:1', 'gpu:2', '-'],
	'GPUs of each array');
my @files = glob 'gpus.d/scheduler/*/0.*';
is_deeply([map { sprintf '%o', (stat)[2] & 0777 } @files], [('600') x 6], 'files are the owner\'s alone');

# ---- what an earlier run has left in the queue ----

check_run('not twice', run(args => words('gpus')), { status => 1, err => q(profllm run: Slurm's job 10* of )
	. q(an earlier run still has 1 of these experiments. --resume waits for it; `scancel 10*` ends it) });
check_run('not with another configuration', run(args => words('gpus', '--resume', '--set',
	'benchmark.num_prompts=4')), { status => 1, err => q(profllm run: Slurm's job * of an earlier run )
	. q(still has 1 of these experiments with another configuration. `scancel *` ends it) });
unlink 'slurm/hold';
check_run('--resume collects', run(args => words('gpus', '--resume')), { status => 0,
	out => [q(3 experiments of an earlier run are still in Slurm's queue and are waited for),
		'Suite: 3 completed, 0 partial, 0 failed'] });
is(scalar calls('sbatch'), 4, 'without submitting');
is_complete('gpus', 3);

# ---- killed, interrupted ----

config('cut');
spew('slurm/hold', '');
for my $signal (qw(KILL INT)) {
	my @more = $signal eq 'KILL' ? () : '--resume';
	my $run = begin(args => words('cut', @more));

	wait_for("$signal", sub { (slurp($run->{out_path}) // '') =~ /Slurm keeps 3 experiments waiting/ });
	kill $signal, $run->{pid};
	$run = finish($run);
	is($run->{status}, $signal eq 'KILL' ? 'signal 9' : 130, "ended by $signal");
	like($run->{out}, qr/^3 experiments go on in Slurm; the same command with --resume collects them, /m,
		'it says what goes on') if $signal eq 'INT';
}
unlink 'slurm/hold';
check_run('resumed', run(args => words('cut', '--resume')), { status => 0,
	out => ['Suite: 3 completed, 0 partial, 0 failed'] });
is(scalar calls('sbatch'), 5, 'the tasks were submitted once');
is_complete('cut', 3);

# ---- cancelled, out of time, requeued ----

config('lost', %long, jobs => 3);
{
	my $run = begin(args => words('lost'));
	my @docs = map { "lost.d/max_num_seqs=$_.json" } 2, 4, 8;

	wait_for('servers', sub { servers() >= 3 });
	wait_for('documents', sub { 3 == grep { -e } @docs });
	my $first = document($docs[2])->{run_id};
	system('scancel', '105_0');
	system('scontrol', 'expire', '105_1');
	system('scontrol', 'requeue', '105_2');
	wait_for('a second try', sub { (document($docs[2])->{run_id} // $first) ne $first });
	is(document($docs[2])->{status}, 'running', 'which begins anew');
	system('scancel', '105_2');
	$run = finish($run);
	for (['2', '105_0', 'n1', 'CANCELLED: it was cancelled'],
		['4', '105_1', 'n2', 'TIMEOUT: it reached its time limit; scheduler.time_limit raises it'],
		['8', '105_2', 'n3', 'CANCELLED: it was cancelled']) {
		my ($seqs, $job, $node, $why) = @$_;

		ok(has_line($run->{err}, "WARNING: max_num_seqs=$seqs: Slurm job $job on $node ended as "
			. "$why; " . '--resume runs it again, its log is *'), "$job is named")
			or diag($run->{err});
	}
	wait_for('the end of all servers', sub { !left_running() });
	config('lost');
	check_run('and they are run again', run(args => words('lost', '--resume')), { status => 0,
		out => ['Slurm job 106: 3 experiments', 'Suite: 3 completed, 0 partial, 0 failed'] });
	is_complete('lost', 3);
}

# ---- cancelled before it ran; Slurm that does not answer ----

config('never');
{
	spew('slurm/hold', '');
	spew('slurm/down', '');
	my $run = begin(args => words('never'));

	wait_for('a warning', sub { (slurp($run->{err_path}) // '') =~ /Unable to contact/ });
	unlink 'slurm/down';
	wait_for('an answer', sub { (slurp($run->{out_path}) // '') =~ /Slurm keeps/ });
	system('scancel', '107');
	unlink 'slurm/hold';
	check_run('cancelled while it waited', finish($run), { status => 1,
		out => ['[*] max_num_seqs=2: failed after * Slurm job 107_0 ended as CANCELLED: it was '
			. 'cancelled; --resume runs it again, *',
			'Suite: 0 completed, 0 partial, 3 failed'] });
	is_deeply([@{json_of(slurp('never.d/max_num_seqs=2.json'))->{error}}{qw(stage category)}],
		['allocate', 'scheduler'], 'with a document');
}

# ---- refused ----

spew('slurm/refuse', 'Batch job submission failed: Invalid partition name specified');
check_run('by Slurm', run(args => words('never', '--resume')), { status => 1, err => 'profllm run: sbatch '
	. 'failed: sbatch: error: Batch job submission failed: Invalid partition name specified' });
unlink 'slurm/refuse';
for (
	['a list of GPUs', ['--set', 'resources.gpus=[0,1]'], 2, 'profllm run: --set resources.gpus=[[]0,1]: '
		. 'resources.gpus: Slurm chooses the GPUs; expected auto, none or a number*'],
	['hosts', ['--hosts', 'h'], 2, 'profllm run: *--hosts: only --scheduler ssh has hosts'],
	['an unknown key', ['--set', 'scheduler.partitions=x'], 2, '*scheduler.partitions: unknown key; '
		. 'did you mean partition?'],
	['an unknown scheduler', ['--scheduler', 'pbs'], 2, '*--scheduler*local*slurm*ssh*'],
	['a screen', ['--live'], 2, 'profllm run: --live shows one run at a time, *'],
	['no waiting for ssh', ['--scheduler', 'local', '--no-wait'], 2, '*--no-wait: only --scheduler slurm '
		. 'can continue without this program'],
	['a dashboard\'s configuration', ['--bounded'], 2, '*scheduler: a configuration that is sent to a '
		. 'dashboard runs on the dashboard\'s machine; remove it'],
) {
	my ($what, $more, $status, $err) = @$_;
	$err =~ s/\[\[\]/[/;
	check_run("refused: $what", run(args => words('never', '--resume', @$more)), { status => $status,
		err => $err });
}
$ENV{PATH} = '/usr/bin:/bin' unless -x '/usr/bin/sbatch';
SKIP: {
	skip 'this machine has Slurm', 1 if -x '/usr/bin/sbatch';
	check_run('refused: no Slurm', run(args => words('never', '--resume')), { status => 1,
		err => 'profllm run: scheduler slurm: sbatch is not in PATH; run this where '
			. 'jobs of Slurm can be submitted' });
}

done_testing;
