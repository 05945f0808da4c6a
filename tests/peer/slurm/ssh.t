#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# ssh.t - `profllm run --scheduler ssh` with a real ssh and sshd on this machine: a suite, a host without
# sshd, the end of the run that started the experiments.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../cli";
use Cli;
use Cwd qw(getcwd);
use JSON::PP ();
use Test::More;

my $mark = "SSH_TEST_MARK=$$"; # in the environment of every server of this test
my $dir = getcwd();
my $port = free_port();
my $user = getpwuid($<);
my $parent = $$;
my $sshd = 0;

plan skip_all => 'no /usr/sbin/sshd (Debian: openssh-server)' unless -x '/usr/sbin/sshd';
$ENV{PROFLLM_NVML} = '';
END { kill 'TERM', $sshd if $sshd && $$ == $parent }

for my $key (qw(host user)) {
	system('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/$key") == 0 or BAIL_OUT('no key');
}
spew('authorized', slurp('user.pub'));
spew('sshd_config', <<"CONF");
Port $port
ListenAddress 127.0.0.1
HostKey $dir/host
AuthorizedKeysFile $dir/authorized
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile $dir/sshd.pid
CONF
spew('ssh_config', <<"CONF");
Host good1 good2
	HostName 127.0.0.1
	Port $port
Host down
	HostName 127.0.0.1
	Port 1
Host *
	User $user
	IdentityFile $dir/user
	StrictHostKeyChecking no
	UserKnownHostsFile /dev/null
	LogLevel ERROR
CONF
mkdir '/run/sshd' if $< == 0;
$sshd = fork;
exec '/usr/sbin/sshd', '-D', '-f', "$dir/sshd_config", '-E', "$dir/sshd.log" if !$sshd;
wait_for('sshd', sub { -e 'sshd.pid' });

sub config {
	my ($name, %more) = @_;

	spew("$name.yaml", JSON::PP->new->canonical->encode({ suite => $name,
		server => { command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1,
			env => { split /=/, $mark } },
		benchmark => { tokenizer => 'sim', num_prompts => 3, random_input_len => 8,
			random_output_len => 2, max_concurrency => 2, temperature => 0 },
		telemetry => { enabled => JSON::PP::false },
		scheduler => { type => 'ssh', hosts => "$dir/hosts", args => ['-F', "$dir/ssh_config"] },
		matrix => { 'server.max_num_seqs' => [2, 4, 8, 16] }, %more }));
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --config), "$name.yaml", '--output', "$name.json", @more];
}

sub left_running {
	return grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

sub servers {
	return grep { (slurp(s/environ$/cmdline/r) // '') =~ /\0sim\0/ } left_running();
}

my %long = (benchmark => { tokenizer => 'sim', duration => 600, random_input_len => 8,
	random_output_len => 8, max_concurrency => 1, temperature => 0 });

spew('hosts', "down\ngood1 slots=2\ngood2 slots=2\n");
config('plain');
check_run('a suite', run(args => words('plain')), { status => 0,
	out => ['Suite: 4 completed, 0 partial, 0 failed'],
	warn => ['WARNING: host down is no longer used: ssh: connect to host 127.0.0.1 port 1: Connection '
		. 'refused. The experiment * goes to another host'] });

config('cut', %long);
for my $signal (qw(KILL INT)) {
	my $run = begin(args => words('cut'));

	wait_for('servers', sub { servers() >= 4 });
	kill $signal, $run->{pid};
	is(finish($run)->{status}, $signal eq 'KILL' ? 'signal 9' : 130, "ended by $signal");
	wait_for('the end of all servers', sub { !left_running() });
}
is_deeply([map { $_->{error}{category} } @{json_of(slurp('cut.json'))->{experiments}}], [('interrupted') x 4],
	'INT: each document says so');

config('cut');
check_run('resumed', run(args => words('cut', '--resume')), { status => 0,
	out => ['Suite: 4 completed, 0 partial, 0 failed'] });

done_testing;
