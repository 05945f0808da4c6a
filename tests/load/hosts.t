#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Ranks on several hosts. Each host is a network namespace with an address and a host name of its
# own, and a virtual cable to a router, which leads to the simulator; mpirun reaches them like real
# machines, through a program in the place of ssh. One of the cables loses packets.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

use constant HOSTS => 8;
use constant SERVER => HOSTS + 1; # the host of the simulator

sub on_path { my ($name) = @_; return (grep { -x } map { "$_/$name" } split /:/, $ENV{PATH})[0]; }

for my $need (['mpirun', 'openmpi-bin'], ['ip', 'iproute2'], ['unshare', 'util-linux'],
	['nsenter', 'util-linux'])
{
	plan skip_all => "$need->[0] is not installed (package $need->[1])" unless on_path($need->[0]);
}
plan skip_all => 'Open MPI leaks and races of its own drown the reports of a sanitizer'
	if qx(ldd '$PROFLLM') =~ /lib[at]san/;

# This process becomes the router, in a network of its own that ends with it.
if (!$ENV{IS_ROUTER}) {
	plan skip_all => 'networks of its own need CAP_NET_ADMIN and CAP_SYS_ADMIN (root)'
		if system('unshare -n ip link set lo up 2>/dev/null') != 0;
	$ENV{IS_ROUTER} = 1;
	exec 'unshare', '-n', $^X, $0 or die "unshare: $!";
}

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my @pid;

sub run
{
	system(@_) == 0 or die "@_ ended with status $?";
}

sub script
{
	my ($name, $text) = @_;
	open my $out, '>', "$dir/$name" or die "$dir/$name: $!";
	print $out "#!/bin/sh\n$text";
	close $out;
	chmod 0755, "$dir/$name";
	return "$dir/$name";
}

sub at { my ($host) = @_; return ('nsenter', '-t', $pid[$host], '-n', '-u'); }

run('ip', 'link', 'set', 'lo', 'up');
open my $forward, '>', '/proc/sys/net/ipv4/ip_forward' or plan skip_all =>
	"/proc/sys cannot be written: $!";
print $forward "1\n";
close $forward;
for my $k (1 .. SERVER) {
	$pid[$k] = child_start("$dir/host$k", '/dev/null', 'unshare', '-n', '-u', 'sh', '-c',
		"hostname host$k && echo up && exec sleep 600");
	wait_until(30, sub { slurp("$dir/host$k") =~ /up/ }) or die "no host $k";
	run('ip', 'link', 'add', "cable$k", 'type', 'veth', 'peer', 'name', 'eth0', 'netns', $pid[$k]);
	run('ip', 'addr', 'add', "10.77.$k.1/24", 'dev', "cable$k");
	run('ip', 'link', 'set', "cable$k", 'up');
	run(at($k), 'ip', 'link', 'set', 'lo', 'up');
	run(at($k), 'ip', 'addr', 'add', "10.77.$k.2/24", 'dev', 'eth0');
	run(at($k), 'ip', 'link', 'set', 'eth0', 'up');
	run(at($k), 'ip', 'route', 'add', 'default', 'via', "10.77.$k.1");
}

my $enter = script('enter', <<'END' . join('', map { <<"CASE" } 1 .. HOSTS) . "esac\nexit 1\n");
host=$1
shift
case $host in
END
10.77.$_.2) exec nsenter -t $pid[$_] -n -u sh -c "\$*" ;;
CASE
my $server = script('server', 'exec ' . join(' ', at(SERVER)) . " '$PROFLLM' \"\$@\"\n");
$ENV{OMPI_ALLOW_RUN_AS_ROOT} = $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;

sub start_sim
{
	local $LoadTest::PROFLLM = $server;
	return sim({ host => '10.77.' . SERVER . '.2' }, @_);
}

sub ranks
{
	my ($n) = @_;
	return ('mpirun', '--mca', 'plm_rsh_agent', $enter, '--mca', 'btl', 'self,tcp', '--mca',
		'btl_tcp_if_include', '10.77.0.0/16', '--mca', 'oob_tcp_if_include', '10.77.0.0/16',
		'--host', join(',', map { "10.77.$_.2" } 1 .. $n), '-np', $n);
}

# Packets that came from each host.
sub packets
{
	my %n = slurp('/proc/self/net/dev') =~ /^ *cable(\d+): *\d+ +(\d+)/mg;
	return \%n;
}

# All numbers of a result that are statistics.
sub statistics
{
	my ($result) = @_;
	return { map { $_ => $result->{$_} } grep { /_ms$|throughput$|^duration$|^total_/ } keys %$result };
}

my @load = ('--num-prompts', '80', '--request-rate', '100', '--seed', '3');
my $alone;
{
	my $sim = start_sim('--ttft-ms', 'uniform:2:12', '--itl-ms', 'uniform:1:4');
	local @LoadTest::LAUNCHER = at(1);
	$alone = serve($sim, @load);
	is($alone->{result}{completed}, 80, 'one process on one host') or diag($alone->{err});
}

for my $n (2, 4, 8) {
	my $sim = start_sim('--ttft-ms', 'uniform:2:12', '--itl-ms', 'uniform:1:4');
	my $record = "$dir/record$n";
	local @LoadTest::LAUNCHER = ranks($n);
	my $before = packets();
	my $run = serve($sim, @load, '--record', $record);
	my $after = packets();
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, "$n hosts: the run succeeds") or diag($run->{err}, $run->{out});
	is($run->{own}{processes}, $n, "$n hosts: a process each");
	my @few = grep { $after->{$_} - $before->{$_} < 80 / $n } 1 .. $n;
	is("@few", '', "$n hosts: each of them sends");
	counts_are_right($run, \%truth, "$n hosts");
	events_are_right($run, \%truth, "$n hosts");
	for my $column (qw(due_s request_id)) {
		is_deeply($run->{own}{requests}{$column}, $alone->{own}{requests}{$column},
			"$n hosts: $column of a single process");
	}
	is_deeply($run->{result}{input_lens}, $alone->{result}{input_lens},
		"$n hosts: prompts of a single process");
	is($run->{own}{clock_error_ms}, 0, "$n hosts: on one kernel they have one clock");

	@LoadTest::LAUNCHER = ();
	profllm('bench', 'score', $record, '--save-result', '--result-filename', "$record.json");
	is_deeply(statistics(read_json("$record.json")), statistics($run->{result}),
		"$n hosts: one process that has the record finds the same statistics");
}

# Two of a hundred packets to one of the hosts are lost.
SKIP: {
	skip 'neither netem nor the statistic match of iptables is here', 5
		if system('tc qdisc add dev cable1 root netem loss 2% 2>/dev/null') != 0 &&
		system('iptables -A FORWARD -o cable1 -m statistic --mode random --probability 0.02 -j DROP'
			. ' 2>/dev/null') != 0;
	my $sim = start_sim('--ttft-ms', '5', '--itl-ms', '2');
	local @LoadTest::LAUNCHER = ranks(2);
	my $run = serve($sim, '--num-prompts', '300', '--request-rate', '100', '--random-output-len',
		'32');
	my %truth = truth_by_id($sim);
	my ($loss) = grep { $_->{code} eq 'packet_loss' } @{ $run->{own}{reasons} || [] };

	is($run->{status}, 0, 'a lossy link: the run succeeds') or diag($run->{err}, $run->{out});
	counts_are_right($run, \%truth, 'a lossy link: nothing is lost');
	like($loss->{text} || '', qr/\d/, 'a lossy link: the verdict names it');
	isnt($run->{own}{verdict}, 'VALID', 'a lossy link: the result is not VALID');
	diag($loss->{text}) if $loss;
}

done_testing();
