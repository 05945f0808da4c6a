#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-ssh.t - `profllm run --scheduler ssh` with an ssh that is a script (fake_cluster/ssh.pl): hosts and
# slots, hosts that fail in each way, the end of the run that started the members.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use JSON::PP ();
use Test::More;

my $mark = "SSH_TEST_MARK=$$"; # in the environment of every server of this test

$ENV{PROFLLM_NVML} = '';
$ENV{FAKE_SSH} = getcwd() . '/ssh';
$ENV{PATH} = "$FindBin::Bin/fake_cluster:$ENV{PATH}";
mkdir 'ssh';

my %short = (tokenizer => 'sim', num_prompts => 3, random_input_len => 8, random_output_len => 2,
	max_concurrency => 2, temperature => 0);
my %long = (%short, duration => 600, random_output_len => 8);
delete $long{num_prompts};

sub config {
	my ($name, $hosts, %more) = @_;

	spew("$name.hosts", $hosts);
	spew("$name.yaml", JSON::PP->new->canonical->encode({ suite => $name,
		server => { command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1,
			env => { split /=/, $mark } },
		benchmark => \%short, telemetry => { enabled => JSON::PP::false },
		matrix => { 'server.max_num_seqs' => [2, 4, 8, 16] }, %more }));
	unlink 'ssh/calls', 'ssh/lose';
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --scheduler ssh --config), "$name.yaml", '--output', "$name.json",
		'--hosts', "$name.hosts", @more];
}

sub hosts_called {
	my %n;

	$n{$_}++ for map { (split /\t/)[0] } split /\n/, slurp('ssh/calls') // '';
	return \%n;
}

sub left_running {
	return grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

sub servers {
	return grep { (slurp(s/environ$/cmdline/r) // '') =~ /\0sim\0/ } left_running();
}

sub is_complete {
	my ($name) = @_;
	my $d = json_of(slurp("$name.json"));

	is_deeply([[map { $_->{status} } @{$d->{experiments}}], $d->{lacking}], [[('completed') x 4], []],
		"$name: one complete result set");
	is_deeply([glob "$name.d/scheduler/*"], [], "$name: no configuration is left");
}

# ---- hosts and slots ----

config('plain', "# two machines\n\nuser\@one slots=2\ntwo\t# the slow one\n");
check_run('a suite', run(args => words('plain', '--scheduler-args=-p', '--scheduler-args=2222')), {
	status => 0, out => ['Suite: 4 completed, 0 partial, 0 failed', 'max_num_seqs=4: *'] });
is_complete('plain');
is_deeply([sort keys %{hosts_called()}], ['two', 'user@one'], 'each host has worked');
like(slurp('ssh/calls'), qr/\tBatchMode=yes\t.*\t-p\t2222\t/, 'options of ssh');

# ---- hosts that fail ----

config('bad', "down1\nalone1\nempty1\ngood slots=2\n");
{
	my $run = run(args => words('bad'));

	check_run('hosts that are of no use', $run, { status => 0,
		out => ['Suite: 4 completed, 0 partial, 0 failed'],
		warn => ['WARNING: host down1 is no longer used: ssh: connect to host down1 port 22: '
			. 'Connection refused. The experiment * goes to another host',
			'WARNING: host alone1 is no longer used: it does not have the folder of bad.json, '
			. 'or the current one; both must be on a file system that all hosts share. *',
			'WARNING: host empty1 is no longer used: it does not have this program '
			. '(*no-such-program*); scheduler.program says where it is on the hosts. *'] });
	is_complete('bad');
	is_deeply([map { hosts_called()->{$_} } qw(down1 alone1 empty1)], [1, 1, 1], 'each was tried once');
}

config('none', "down1\ndown2\n");
check_run('no host is left', run(args => words('none')), { status => 1, err => 'profllm run: all hosts '
	. 'of none.hosts have failed, and 4 experiments were not run; --resume runs them' });
spew('none.hosts', "good slots=4\n");
check_run('and later another one', run(args => words('none', '--resume')), { status => 0,
	out => ['Suite: 4 completed, 0 partial, 0 failed'] });

config('lost', "lost1\ngood\n", benchmark => \%long);
{
	my $run = begin(args => words('lost'));

	wait_for('both servers', sub { servers() >= 2 });
	wait_for('loads', sub { 2 == grep { (slurp($_) // '') =~ /"running"/ } glob 'lost.d/*.json' });
	spew('ssh/lose', '');
	wait_for('the loss', sub { (slurp($run->{err_path}) // '') =~ /^WARNING: host lost1 /m });
	ok(has_line(slurp($run->{err_path}), 'WARNING: host lost1 is no longer used: client_loop: send '
		. 'disconnect: Broken pipe. The experiment max_num_seqs=* goes to another host'),
		'a connection that is lost');
	# What ran there has ended with it; the other one goes on.
	wait_for('one server', sub { servers() == 1 });
	kill 'INT', $run->{pid};
	is(finish($run)->{status}, 130, 'interrupted');
	wait_for('the end of all servers', sub { !left_running() });
	is_deeply([map { $_->{error}{category} } grep { $_->{config}{name} eq 'max_num_seqs=4' }
		@{json_of(slurp('lost.json'))->{experiments}}], ['interrupted'], 'and its document says so');
}

# ---- the end of this process ----

config('cut', "good slots=4\n", benchmark => \%long);
{
	my $run = begin(args => words('cut'));

	wait_for('servers', sub { servers() >= 4 });
	kill 'KILL', $run->{pid};
	is(finish($run)->{status}, 'signal 9', 'killed');
	wait_for('the end of all servers', sub { !left_running() });
	config('cut', "good slots=4\n");
	check_run('resumed', run(args => words('cut', '--resume')), { status => 0,
		out => ['Suite: 4 completed, 0 partial, 0 failed'] });
	is_complete('cut');
}

# ---- a file of hosts ----

for (['one slots=0', 'cut.hosts:1: expected a host and slots=N with N from 1 to 256, such as '
		. q("node1 slots=2", got 'one slots=0')],
	["\n-oProxyCommand=x", q(cut.hosts:2: expected the name of a host, got '-oProxyCommand=x')],
	['# nothing', 'cut.hosts names no host; expected one on each line'],
	["one slots=200\ntwo slots=200", 'cut.hosts has 400 slots, more than the 256 of SUITE_JOBS_MAX']) {
	my ($text, $why) = @$_;

	spew('cut.hosts', "$text\n");
	check_run("refused: $text", run(args => words('cut')), { status => 2,
		err => "profllm run: *scheduler.hosts: $why" });
}
check_run('refused: no file', run(args => [grep { !/hosts/ } @{words('cut')}]), { status => 2,
	err => 'profllm run: *scheduler.hosts: type ssh needs the file of hosts: --hosts FILE' });
check_run('refused: no such file', run(args => words('cut', '--hosts', 'gone')), { status => 2,
	err => 'profllm run: *scheduler.hosts: *gone*No such file*' });

done_testing;
