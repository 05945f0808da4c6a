#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# slurm.t - `profllm run --scheduler slurm` on a real Slurm with four virtual nodes (./cluster): a suite
# of 64 experiments whose jobs are cancelled, requeued and lost with their node, and whose own process
# is killed, ends with one complete result set; GPUs, a time limit, the end of everything.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../cli";
use Cli;
use Cwd qw(getcwd);
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

my $mark = "SLURM_TEST_MARK=$$"; # in the environment of every server of this test
my $slurm = getcwd() . '/slurm';
my $parent = $$;
my $cluster = "$FindBin::Bin/cluster";

my %is_asked = map { $_ => 1 } split /,/, $ENV{SLURM_TESTS} // 'suite,all,gpus,time';

plan skip_all => 'no slurmctld, slurmd and munged (Debian: slurmctld slurmd slurm-client munge)'
	if grep { !-x "/usr/sbin/$_" } qw(slurmctld slurmd munged);
$ENV{PROFLLM_NVML} = '';
END { system($cluster, 'down', $slurm) if defined $parent && $$ == $parent }
system($cluster, 'up', $slurm) == 0 or BAIL_OUT('the cluster did not start');
$ENV{SLURM_CONF} = "$slurm/slurm.conf";

sub config {
	my ($name, %more) = @_;

	return spew("$name.yaml", JSON::PP->new->canonical->encode({ suite => $name,
		server => { command => 'sim', model => 'sim', ttft_ms => 20, itl_ms => 5,
			env => { split /=/, $mark } },
		benchmark => { tokenizer => 'sim', num_prompts => 12, random_input_len => 8,
			random_output_len => 16, max_concurrency => 1, temperature => 0 },
		telemetry => { enabled => JSON::PP::false },
		scheduler => { type => 'slurm', poll_s => 0.5 }, %more }));
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --config), "$name.yaml", '--output', "$name.json", @more];
}

sub left_running {
	return grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

sub wait_long {
	my ($what, $seconds, $condition) = @_;
	my $deadline = time + $seconds;

	until ($condition->()) {
		die "$what did not happen\n" if time > $deadline;
		sleep 0.2;
	}
}

# ID (JOB_TASK) => [state, node]
sub queue {
	my ($pattern) = @_;
	my $squeue = q(squeue --noheader --array --states=all --format='%j|%i|%T|%N');
	my @lines = map { chomp; [split /\|/] } `$squeue`;

	return map { $_->[1] => [$_->[2], $_->[3] // ''] } grep { $_->[0] =~ /^$pattern-/ } @lines;
}

sub in_state {
	my ($state, %queue) = @_;
	my @ids = sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } grep { $queue{$_}[0] eq $state }
		keys %queue;

	return @ids;
}

sub statuses {
	my ($d) = @_;
	my %n;

	$n{$_->{status}}++ for @{$d->{experiments}};
	return \%n;
}

# Everything of a node, as when its power fails: slurmd, slurmstepd, and all that they started. Slurm
# sees it by the node's silence alone.
sub node_pids {
	my ($node) = @_;
	my @tasks = grep { (slurp("/proc/$_/environ") // '') =~ /(^|\0)SLURMD_NODENAME=$node\0/ }
		map { m{(\d+)} } glob '/proc/[0-9]*';
	my @parents = map { (slurp("/proc/$_/status") // '') =~ /^PPid:\s*(\d+)/m } @tasks;

	return @tasks, grep { (slurp("/proc/$_/comm") // '') =~ /^slurmstepd/ } @parents;
}

sub kill_node {
	my ($node) = @_;
	my @pids = node_pids($node);

	chomp(my $daemon = slurp("$slurm/slurmd.$node.pid"));
	kill 'STOP', $daemon, @pids; # so that none reports the end of another
	kill 'KILL', $daemon, @pids;
	return scalar @pids;
}

subtest 'a suite of 64' => sub {
	config('big', repeat => 4, matrix => { 'server.max_num_seqs' => [2, 4, 8, 16],
		'benchmark.seed' => [1 .. 4] });
	my $run = begin(args => words('big'), seconds => 300);
	my (%queue, @pending, @running);

	wait_long('the first results', 60, sub { (() = glob 'big.d/*.json') > 10 });
	%queue = queue('big');
	is(scalar keys %queue, 64, 'one task for each experiment');
	wait_long('running tasks', 30, sub {
		%queue = queue('big');
		@running = in_state('RUNNING', %queue);
		return @running > 3 && grep { $queue{$_}[1] eq 'n2' } @running;
	});
	system('scontrol', 'requeue', (grep { $queue{$_}[1] ne 'n2' } @running)[0]);
	wait_long('work of n2', 30, sub { my @pids = node_pids('n2'); @pids > 4 });
	cmp_ok(kill_node('n2'), '>', 1, 'a node is killed with what it runs');
	kill 'KILL', $run->{pid};
	is(finish($run)->{status}, 'signal 9', 'the submitting process is killed');
	cmp_ok(scalar @{json_of(slurp('big.json'))->{lacking}}, '>', 0, 'the suite is not complete');

	check_run('without --resume it is refused', run(args => words('big')), { status => 1,
		err => q(profllm run: Slurm's job * of an earlier run still has * of these experiments. *) });
	$run = begin(args => words('big', '--resume'), seconds => 300);
	wait_long('a running task', 30, sub {
		%queue = queue('big');
		@running = in_state('RUNNING', %queue);
		return @running && slurp($run->{out_path}) =~ /still in Slurm/;
	});
	@pending = in_state('PENDING', %queue);
	my @cancelled = (@pending[-2, -1], $running[-1]);
	system('scancel', @cancelled);
	my $again = finish($run);
	check_run('--resume waits for what still runs', $again, { status => 1,
		out => [q(* experiments of an earlier run are still in Slurm's queue and are waited for)] });
	my %named = map { $_ => 1 } ($again->{out} . $again->{err}) =~
		/Slurm job (\d+_\d+)[^\n]*(?:ended as CANCELLED|is not in Slurm's list any more)/g;
	is_deeply([sort keys %named], [sort @cancelled], 'the cancelled ones are named')
		or diag($again->{out}, $again->{err});
	is(statuses(json_of(slurp('big.json')))->{completed}, 61, 'the others are complete')
		or diag($again->{out}, $again->{err});

	check_run('--resume runs those again', run(args => words('big', '--resume'), seconds => 300), {
		status => 0, out => ['Slurm job *: 3 experiments',
			'Suite: 3 completed, 0 partial, 0 failed, 61 kept'] });
	my $d = json_of(slurp('big.json'));
	is_deeply([statuses($d), $d->{lacking}], [{ completed => 64 }, []], 'one complete result set');
	my %names = map { ("$_->{config}{name} $_->{config}{repeat}" => 1) } @{$d->{experiments}};
	is(scalar keys %names, 64, 'each experiment once');
	is_deeply([left_running()], [], 'no server is left');
	is_deeply([glob 'big.d/scheduler/*/*.{yaml,sh,json}'], [], 'no configuration is left');
} if $is_asked{suite};

# The node comes back as a person would bring it back.
system("PATH=\$PATH:/usr/sbin slurmd -N n2 -f $slurm/slurm.conf");

subtest 'scancel of everything' => sub {
	config('all', matrix => { 'benchmark.seed' => [1 .. 6] },
		benchmark => { tokenizer => 'sim', num_prompts => 4000, random_input_len => 8,
			random_output_len => 16, max_concurrency => 1, temperature => 0 });
	my $run = begin(args => words('all'), seconds => 120);
	my %queue;

	wait_long('servers', 60, sub { left_running() >= 4 });
	%queue = queue('all');
	system('scancel', (keys %queue)[0] =~ /(\d+)_/);
	my $end = finish($run);
	is(scalar(() = ($end->{out} . $end->{err}) =~ /ended as CANCELLED: it was cancelled; --resume/g), 6,
		'of each by its name') or diag($end->{out}, $end->{err});
	wait_for('the end of all servers', sub { !left_running() });
	is_deeply(json_of(slurp('all.json'))->{lacking}, [], 'each has a document');
} if $is_asked{all};

subtest 'GPUs, and two sizes of jobs' => sub {
	my $fake = "$FindBin::Bin/../../../build/tests/libfake-nvml.so";

	plan skip_all => 'no build/tests/libfake-nvml.so' unless -e $fake;
	my @gpus_of = (1, 2, 1, 1);
	config('gpu', experiments => [map { { name => "g$gpus_of[$_]-$_",
		resources => { gpus => $gpus_of[$_] } } } 0 .. 3]);
	check_run('with GPUs of Slurm', run(args => words('gpu'), seconds => 120,
		env => { PROFLLM_NVML => $fake, PROFLLM_LOCKS => getcwd() . '/locks' }), { status => 0,
		out => ['Slurm job *: 3 experiments with 1 GPU each',
			'Slurm job *: 1 experiment with 2 GPUs each'] });
	for my $x (@{json_of(slurp('gpu.json'))->{experiments}}) {
		my ($n) = $x->{config}{name} =~ /g(\d)/;
		my @gpus = map { $_->{index} } @{$x->{config}{servers}[0]{gpus} // $x->{gpus} // []};
		is(scalar @gpus, $n, "$x->{config}{name} has so many");
		is(scalar(grep { $_ > 1 } @gpus), 0, "$x->{config}{name}: of those that its node has");
	}
} if $is_asked{gpus};

subtest 'a time limit' => sub {
	config('slow', benchmark => { tokenizer => 'sim', duration => 300, random_input_len => 8,
		random_output_len => 16, max_concurrency => 1, temperature => 0 });
	my $end = run(args => words('slow', '--set', 'scheduler.time_limit=1m'), seconds => 240);

	check_run('it says so', $end, { status => 0, err => 'WARNING: slow: Slurm job * ended as TIMEOUT: '
		. 'it reached its time limit; scheduler.time_limit raises it; --resume runs it again, *' });
	is(statuses(json_of(slurp('slow.json')))->{partial}, 1, 'what was measured until then is kept')
		or diag($end->{out}, $end->{err});
	is_deeply([left_running()], [], 'no server is left');
} if $is_asked{time};

done_testing;
