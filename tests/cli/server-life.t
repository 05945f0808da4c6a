#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# server-life.t - servers that fail below `bench sweep serve`: the messages, the exit status, and
# that no process is left, whichever one was killed.
#
# Everything that a sweep starts carries LIFE_TEST in its environment, so survivors are found by
# looking at /proc, not by a list of what was started.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

my $taken = start_sim(); # before the mark: it is not the sweeps'
my $mark = "$$-" . int(time * 1000);
$ENV{LIFE_TEST} = $mark;
$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';

# server.pl PORT HOW: answers /health; HOW is how it goes wrong.
spew('server.pl', <<'END');
use strict; use IO::Socket::INET; use POSIX (); $| = 1;
my ($port, $how, $file) = @ARGV;
print "starting\n";
if ($how eq 'never') { sleep 1 while 1 }
if ($how eq 'chatty') { print 'x' x 60, "\n" for 1 .. 8000; }
$SIG{TERM} = 'IGNORE' if $how eq 'stubborn';
if ($how eq 'daemon' && !fork) {
	POSIX::setsid();
	exit 0 if fork;
	$SIG{$_} = 'IGNORE' for qw(TERM HUP INT);
	sleep 1 while 1;
}
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 9, ReuseAddr => 1)
	or die "cannot listen: $!\n";
while (my $c = $s->accept) {
	my $path; while (<$c>) { $path = (split)[1] unless defined $path; last if /^\r?$/ }
	if ($how eq 'mortal' && $path =~ m,/v1/completions,) { print "that is too much\n"; exit 9 }
	my $status = $how eq 'loading' ? '503 Loading' : '200 OK';
	print $c "HTTP/1.1 $status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	close $c;
}
END
# bench.pl ... --result-dir DIR --result-filename NAME: a result. With WAIT in its environment it
# says that it has begun, and waits.
spew('bench.pl', <<'END');
use strict;
my %o = map { $ARGV[$_] => $ARGV[$_ + 1] } 0 .. $#ARGV - 1;
if (my $file = $ENV{WAIT}) { open my $f, '>', $file; close $f; sleep 1 while 1 }
open my $f, '>', "$o{'--result-dir'}/$o{'--result-filename'}" or die "$!\n";
print $f '{"duration": 1.5}';
END

sub left {
	my @found;
	for my $dir (glob '/proc/[0-9]*') {
		next if $dir eq "/proc/$$";
		my $environ = slurp("$dir/environ");
		next unless defined $environ && $environ =~ /(^|\0)LIFE_TEST=\Q$mark\E(\0|$)/;
		push @found, join ' ', split /\0/, slurp("$dir/cmdline") || '(gone)';
	}
	return @found;
}

# What stays when a test fails must not stay on the machine.
END {
	for my $dir (glob '/proc/[0-9]*') {
		my $environ = $dir eq "/proc/$$" ? undef : slurp("$dir/environ");
		kill 'KILL', $dir =~ /(\d+)/ if defined $environ && $environ =~ /LIFE_TEST=\Q$mark\E/;
	}
}

my $sweeps = 0;

sub sweep_args {
	my ($serve, @more) = @_;
	return ('bench', 'sweep', 'serve', '--serve-cmd', $serve, '--bench-cmd', "$^X bench.pl",
		'--num-runs', 1, '--after-bench-cmd', 'true', '-o', 'results', '-e', 'e' . ++$sweeps, @more);
}

sub nothing_left {
	my ($name) = @_;
	my @left = left();
	is("@left", '', "$name: no process is left");
}

# ---- the table of faults ----

my $port = free_port();
my $server = "$^X server.pl $port";
for my $case (
	['never becomes ready', "$server never --port $port", ['--server-ready-timeout', 1], 1,
		'*Server failed to become ready within 1 seconds.*', 'not ready in time', '*  starting'],
	['is not ready', "$server loading --port $port", ['--server-ready-timeout', 1], 1,
		'*Server failed to become ready within 1 seconds.*', 'not ready in time',
		"WARNING: /health at http://*:$port (*): it answers 503, not 200"],
	['listens elsewhere', "$server elsewhere --port " . free_port(), ['--server-ready-timeout', 1], 1,
		'*Server failed to become ready within 1 seconds.*', 'not ready in time',
		'WARNING: /health at *: nothing listens there, so *, or it listens on another port'],
	['ignores TERM', "$server stubborn --port $port", ['--server-grace', '0.3'], 0],
	['forks a daemon', "$server daemon --port $port", ['--server-grace', '0.3'], 0],
	['a simulator that ignores TERM and leaves a daemon',
		"$program sim --port $port --ignore-term --fork-daemon", ['--server-grace', '0.3'], 0],
	['a simulator that never listens', "env A=1 $program sim --port $port --never-ready --ignore-term",
		['--server-ready-timeout', 1, '--server-grace', '0.2'], 1,
		'*Server failed to become ready within 1 seconds.*', 'not ready in time'],
	['a model that does not fit', "$program sim --port $port --fail-start oom", [], 1,
		'*Server process crashed with return code 1 (out of memory: *', 'out of memory'],
	['a server that is killed', "$program sim --port $port --fail-start killed", [], 1,
		'*Server process crashed with return code -9 (killed: *out*of*memory*)', 'killed'],
	['another server is on the port', "$program sim --port $taken->{port}", [], 1,
		"*port $taken->{port} is already served by PID $taken->{pid} (*sim --port 0*)*",
		'port taken'],
	['command not found', "no-such-server --port $port", [], 1,
		'*cannot start no-such-server: No such file or directory*',
		'command not found'],
	['bad flag', "$program sim --port $port --max-num-sequences 4", [], 1,
		'*Server process crashed with return code 2 (bad flag: *--max-num-sequences*)*', 'bad flag'],
	['ends at once', "$^X server.pl x --port $port", [], 1,
		'*Server process crashed with return code *', 'crash'],
) {
	my ($name, $serve, $more, $status, $says, $fault, $warns) = @$case;
	my $run = run(args => [sweep_args($serve, @$more)]);

	check_run($name, $run, { status => $status, out => [grep { defined } $says],
		warn => [grep { defined } $warns] });
	nothing_left($name);
	next unless $fault;
	my $servers = json_of(slurp("results/e$sweeps/servers.json") || '[]');
	my ($first) = ref $servers eq 'ARRAY' ? @$servers : @{$servers->{servers} || []};
	is($first->{fault}, $fault, "$name: the fault is written down");
}
ok(kill(0, $taken->{pid}), 'the other server was let be');

# ---- out of disk ----

my $run = run(args => [sweep_args("$server chatty --port $port")], limits => 'ulimit -f 200');
check_run('a log that may not grow', $run, { status => 1, out =>
	['*Server process crashed with return code -25 (out of disk*'] });
nothing_left('a log that may not grow');

SKIP: {
	mkdir $_ for qw(results full);
	skip 'no mount here', 2 unless $> == 0 &&
		system('unshare -m mount -t tmpfs none full 2>/dev/null') == 0;
	$run = run(command => ['unshare', '-m', 'sh', '-c',
		'mount -t tmpfs -o size=200k none full && exec "$@"', 'sh', $program,
		sweep_args("$server chatty --port $port", '-o', 'full')]);
	check_run('a full disk', $run, { status => 1,
		err => 'profllm bench sweep serve: *(cannot write full/*: No space left on device)' });
	nothing_left('a full disk');
}

# ---- death in the middle ----

$run = run(args => ['bench', 'sweep', 'serve', '--serve-cmd', "$server mortal --port $port", '--bench-cmd',
	"$program bench serve --port $port @{$tiny{model}} @{$tiny{load}} --dataset-name random " .
	'--ready-check-timeout-sec 0', '--num-runs', 1, '--after-bench-cmd', 'true', '-o', 'results',
	'-e', 'mortal']);
check_run('dies in the middle of a run', $run, { status => 1,
	out => ['*Server process crashed with return code 9 (crash: that is too much)*'] });
ok(!-e 'results/mortal/run=0.json', '... whose result is not taken for one');
ok(-e 'results/mortal/run=0.failure.json', '... but written down as a failure');
nothing_left('dies in the middle of a run');

# ---- caches ----

$run = run(args => ['bench', 'sweep', 'serve', '--serve-cmd', "$program sim --port=$port", '--bench-cmd',
	"$^X bench.pl", '--num-runs', 2, '-o', 'results', '-e', 'caches']);
check_run('caches are reset', $run, { status => 0, out => ["Resetting caches at http://localhost:$port"] });
my @resets = $run->{out} =~ /^Resetting caches at /mg;
is(scalar @resets, 2, 'after every run');
nothing_left('caches');

# ---- we are stopped, or killed ----

sub begin_waiting {
	my ($how) = @_;
	my $file = Cwd::getcwd() . "/begun$sweeps";
	my $waiting = begin(args => [sweep_args("$server $how --port $port", '--server-grace', '0.5')],
		env => { WAIT => $file });
	wait_for('the benchmark', sub { -e $file });
	return $waiting;
}

my $waiting = begin(args => [sweep_args("$server never --port $port", '--server-grace', '0.5')]);
wait_for('the server', sub { (slurp("results/e$sweeps/logs/SERVE-default.log") || '') =~ /starting/ });
kill 'INT', $waiting->{pid};
finish($waiting);
check_run('Ctrl-C before the server is ready', $waiting, { status => 130 });
nothing_left('Ctrl-C before the server is ready');

$waiting = begin_waiting('daemon');
kill 'INT', $waiting->{pid};
finish($waiting);
check_run('Ctrl-C', $waiting, { status => 130 });
nothing_left('Ctrl-C');

$waiting = begin_waiting('daemon');
kill 'KILL', $waiting->{pid};
finish($waiting);
wait_for('the end of all', sub { !left() });
nothing_left('kill -9');

$waiting = begin_waiting('daemon');
my @keepers = grep { (slurp("/proc/$_/comm") || '') =~ /^profllm-keeper/ &&
	(slurp("/proc/$_/environ") || '') =~ /LIFE_TEST=\Q$mark\E/ } map { /(\d+)/ } glob '/proc/[0-9]*';
is(scalar @keepers, 2, 'one keeper for the server, one for the benchmark');
kill 'KILL', @keepers, $waiting->{pid};
finish($waiting);
wait_for('the daemon', sub { left() < 3 });
ok(scalar left(), 'kill -9 of all of us leaves the daemon');
$run = run(args => [sweep_args("$server good --port $port")]);
check_run('the next start ends it', $run, { status => 0,
	warn => ['*ended *process* that an earlier run left when it was killed: *server.pl*daemon*'] });
nothing_left('the next start');
is(join(' ', glob 'state/profllm/servers/*'), '', 'no roster is left');

done_testing;
