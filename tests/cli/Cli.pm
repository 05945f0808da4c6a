# SPDX-License-Identifier: Apache-2.0
# Cli.pm - what the command-line tests share: running the program in a scratch directory, with
# simulators and canned servers, and comparing texts with patterns and with golden files.
#
# Every test file gets its own scratch directory, which is also the working directory, and an
# environment without proxies, keys or a model cache. Everything that was started is stopped at the
# end. A sanitizer's report on stderr fails the run it came from. Only modules of Perl's core are
# used.
package Cli;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use Fcntl qw(O_RDWR O_NOCTTY);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw(WNOHANG _exit setsid);
use Ports;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw($program run begin finish spew slurp start_sim start_raw stop_all has_line
	matches is_golden mask_run json_of keys_of %tiny store_url postgres_url wait_for check_run
	disturbed other_profllm no_terminal no_script has_exited free_port lines_of run_sweep);

our $program = $ENV{PROFLLM} || die "PROFLLM must name the program\n";
my $here = abs_path(dirname(__FILE__));
my $scratch = tempdir('cli-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $parent = $$;
my (@started, @groups);

chdir $scratch or die "cannot enter $scratch: $!\n";
delete @ENV{grep { /^(https?|all|no)_proxy$/i || /^(HF_|HUGGING_?FACE|OPENAI_API_KEY|COLUMNS)/ }
	keys %ENV};
$ENV{HF_HOME} = "$scratch/hf";
$ENV{HF_HUB_OFFLINE} = 1; # no test asks the world
$ENV{PROFLLM_CACHE_DIR} = "$scratch/cache";
$ENV{XDG_CONFIG_HOME} = "$scratch/config"; # no list of arguments but the test's own
$ENV{XDG_DATA_HOME} = "$scratch/data"; # nor a store
$ENV{TZ} = 'UTC';
$ENV{LC_ALL} = 'C';
$SIG{PIPE} = 'IGNORE';

# The smallest workload: model, tokenizer and lengths that need nothing but a server.
our %tiny = (
	model => [qw(--model sim --tokenizer sim)],
	load  => [qw(--num-prompts 3 --random-input-len 8 --random-output-len 4 --temperature 0)],
);

sub spew {
	my ($path, $text) = @_;
	open my $f, '>', $path or die "$path: $!\n";
	binmode $f;
	print $f $text;
	close $f or die "$path: $!\n";
	return $path;
}

sub slurp {
	my ($path) = @_;
	open my $f, '<', $path or return undef;
	binmode $f;
	local $/;
	my $text = <$f>;
	return defined $text ? $text : '';
}

# ---- the program ----

# begin(args => [...], env => {...}, limits => 'ulimit -n 64', in => text, command => [...]);
# finish() waits. Both ends are files, so that no pipe has to be emptied.
my $runs = 0;

sub begin {
	my (%o) = @_;
	my $n = ++$runs;
	my @command = $o{command} ? @{$o{command}} : ($program, @{$o{args} || []});
	my $run = { out_path => "$scratch/.out$n", err_path => "$scratch/.err$n", began => time,
		seconds => $o{seconds} || 60 };

	@command = ('sh', '-c', "$o{limits} && exec \"\$@\"", 'sh', @command) if $o{limits};
	spew("$scratch/.in$n", defined $o{in} ? $o{in} : '');
	$run->{pid} = fork;
	die "fork: $!\n" unless defined $run->{pid};
	return $run if $run->{pid};
	setsid();
	open STDIN, '<', "$scratch/.in$n";
	open STDOUT, '>', $run->{out_path};
	open STDERR, '>', $run->{err_path};
	$ENV{$_} = $o{env}{$_} for keys %{$o{env} || {}};
	exec { $command[0] } @command or _exit(127);
}

sub finish {
	my ($run) = @_;
	my $waited;

	while (!($waited = waitpid $run->{pid}, WNOHANG)) {
		if (time - $run->{began} > $run->{seconds}) {
			kill 'KILL', -$run->{pid};
			waitpid $run->{pid}, 0;
			$run->{status} = 'timeout';
			last;
		}
		sleep 0.002;
	}
	$run->{status} = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8 unless $run->{status};
	$run->{out} = slurp($run->{out_path});
	$run->{err} = slurp($run->{err_path});
	unlink $run->{out_path}, $run->{err_path};
	$run->{status} = 'sanitizer' if $run->{err} =~ /(Address|Leak|Thread)Sanitizer|runtime error:/;
	return $run;
}

sub run { return finish(begin(@_)) }

# run_sweep(client, verb, server, arguments...): a sweep's verb with these two commands.
sub run_sweep {
	my ($client, $verb, $server, @more) = @_;
	return run(args => ['bench', 'sweep', $verb, '--serve-cmd', $server, '--bench-cmd', $client,
		'--server-grace', 5, '--server-ready-timeout', 60, @more], seconds => 120);
}

# An environment whose PATH has another profllm, which always fails.
sub other_profllm {
	mkdir "$scratch/other-bin";
	spew("$scratch/other-bin/profllm", "#!/bin/sh\necho another program >&2\nexit 9\n");
	chmod 0755, "$scratch/other-bin/profllm";
	return { PATH => "$scratch/other-bin:/usr/bin:/bin" };
}

# Why a test cannot have a terminal of its own; undef: it can.
sub no_terminal {
	sysopen(my $fd, '/dev/ptmx', O_RDWR | O_NOCTTY) or return "/dev/ptmx: $!";
	ioctl($fd, 0x80045430, my $n = pack 'i', 0) or return "/dev/ptmx: $!";
	my $path = '/dev/pts/' . unpack('i', $n);
	return -e $path ? undef : "$path does not exist";
}

# Why script cannot run a command on a terminal; undef: it can.
sub no_script {
	return 'no script command' if system('command -v script >/dev/null 2>&1');
	return no_terminal();
}

# postgres_url(): a new database of the server that tests/with_postgres.sh started: a test that is run
# again finds nothing of the time before. store_url(NAME): where a results store of its own is, empty:
# NAME.db, or, where TEST_STORE says postgresql, such a database.
my $databases = 0;

sub store_url {
	my ($name) = @_;

	return ($ENV{TEST_STORE} // 'sqlite') eq 'sqlite' ? "sqlite:$name.db" : postgres_url();
}

sub postgres_url {
	my $database = "t${$}_" . ++$databases;
	system(split(/ /, $ENV{PROFLLM_TEST_CREATEDB}), $database) == 0 or die "no database $database\n";
	return $ENV{PROFLLM_TEST_POSTGRES} =~ s/\@/$database/r;
}

sub wait_for {
	my ($what, $condition, $seconds) = @_;
	my $deadline = time + ($seconds // 30);

	until ($condition->()) {
		die "$what did not happen\n" if time > $deadline;
		sleep 0.005;
	}
}

# ---- servers ----

# start_sim(args...): a simulator on a free port; returns it. The same arguments give the
# one that runs already.
my %sims;

sub start_sim {
	my (@args) = @_;
	my $key = join "\0", @args;
	my $file = "$scratch/.port" . (++$runs);
	my $pid;

	return $sims{$key} if $sims{$key};
	$pid = fork;
	if (!$pid) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$file.out";
		open STDERR, '>', "$file.err";
		exec { $program } $program, 'sim', '--port', '0', '--port-file', $file, @args
			or _exit(127);
	}
	push @started, $pid;
	wait_for("simulator (@args)", sub {
		die "sim @args: " . slurp("$file.err") if waitpid($pid, WNOHANG) == $pid;
		return -s $file;
	});
	(my $port = slurp($file)) =~ s/\s//g;
	return $sims{$key} = { port => $port, pid => $pid, url => "http://127.0.0.1:$port",
			       err => "$file.err" };
}

# start_raw(bytes, bytes...): answers the k-th request of a connection with the k-th text
# (later ones with the last), then closes. An undefined text: it never answers.
sub start_raw {
	my (@answers) = @_;
	my $listen = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', LocalPort => 0)
		or die "listen: $!\n";
	my $port = $listen->sockport;
	my $pid = fork;

	if (!$pid) {
		setsid();
		open STDOUT, '>', '/dev/null'; # so that no process waits for the end of our output
		open STDERR, '>', '/dev/null';
		$SIG{CHLD} = 'IGNORE';
		while (1) {
			my $c = $listen->accept or next;
			next if fork;
			for my $answer (@answers) {
				my ($head, $length) = ('', 0);

				$head .= $_ while $head !~ /\r\n\r\n/ && defined($_ = <$c>);
				$length = $1 if $head =~ /^content-length: *(\d+)/mi;
				read $c, my $body, $length if $length;
				sleep 60 unless defined $answer;
				print $c $answer;
				$c->flush;
			}
			shutdown $c, 1;
			_exit(0);
		}
	}
	wait_for('group of the canned server', sub { getpgrp($pid) == $pid });
	push @groups, $pid;
	return { port => $port, pid => $pid, url => "http://127.0.0.1:$port" };
}

sub stop_all {
	kill 'TERM', @started if @started;
	kill 'KILL', map { -$_ } @groups if @groups;
	waitpid $_, 0 for @started, @groups;
	@started = @groups = %sims = ();
}

END {
	if ($$ == $parent) {
		my $status = $?;

		stop_all();
		chdir '/';
		$? = $status;
	}
}

# ---- comparing ----

# A pattern is a whole text in which * matches anything.
sub matches {
	my ($text, $pattern) = @_;
	my $re = join '.*', map { quotemeta } split /\*/, $pattern, -1;
	return $text =~ /\A$re\z/s;
}

# Whether one of the lines matches.
sub has_line {
	my ($text, $pattern) = @_;
	return scalar grep { matches($_, $pattern) } split /\n/, $text;
}

# check_run(name, run, expected): one test about everything a row expects.
#   status  exit status
#   err     pattern of the last line on stderr ('' for no line at all)
#   warn    patterns of other lines on stderr
#   out     patterns of lines on stdout
#   not_out patterns no line on stdout has
#   exists  files that must be there;  gone  files that must not
sub check_run {
	my ($name, $run, $e) = @_;
	my @why;
	(my $last = $run->{err}) =~ s/\n\z//;

	$last =~ s/.*\n//s unless defined $e->{err} && $e->{err} =~ /\n/;
	# Where a message leads to is help-topics.t's matter.
	$last =~ s/ \(profllm help [a-z_]+\)$// unless ($e->{err} // '') =~ /\(profllm help/;
	push @why, "exit status $run->{status}, not $e->{status}" if $run->{status} ne $e->{status};
	push @why, "stderr does not end with: $e->{err}"
		if defined $e->{err} && !matches($e->{err} =~ /\n/ ? $run->{err} =~ s/\n\z//r : $last,
			$e->{err});
	for (@{$e->{warn} || []}) { push @why, "no line on stderr: $_" unless has_line($run->{err}, $_) }
	for (@{$e->{out} || []}) { push @why, "no line on stdout: $_" unless has_line($run->{out}, $_) }
	for (@{$e->{not_out} || []}) { push @why, "on stdout: $_" if has_line($run->{out}, $_) }
	for (@{$e->{exists} || []}) { push @why, "missing: $_" unless -e $_ }
	for (@{$e->{gone} || []}) { push @why, "should not be there: $_" if -e $_ || -l $_ }
	ok(!@why, $name) and return 1;
	$run->{out} =~ s/^Namespace\(.*\n//;
	diag(join "\n", @why, "--- stderr", $run->{err}, "--- stdout", substr($run->{out}, 0, 6000));
	return 0;
}

# What differs from run to run and from host to host; runs of digits of a number stay one #.
sub mask_run {
	my ($text) = @_;

	for ($text) {
		s/^(Namespace\(.*?request_id_prefix='bench-)[0-9a-f]{8}-/$1########-/mg;
		s/^(Namespace\(.*? port=)\d+/$1#/mg;
		s/^(.{40} +)-?\d+\.\d+ \/ .*$/$1#/mg;
		s/^(.{40} )\d+\.\d\d( *)$/$1#/mg;
		s/^(New connections: +)\d+ *$/$1#/mg;
		s/^(\d+ requests? .*: \d+ succeeded, \d+ failed, in ).*$/$1#/mg;
		s/^((?:TTFT|TPOT|E2EL|[\d.]+) .*requests\/s)$/$1 =~ s![\d.]+ (ms|output|req)!# $1!gr/gme;
		s/^(The measurement is ).*$/$1#/mg;
		s/^(Slow (?:gaps|by \S+): +)\S.*$/$1#/mg;
		s/^(ITL p99 without each of them \(ms\): +)\S.*$/$1#/mg;
		s/^(Version: +)\S.*$/$1#/mg;
		s/^(Build: +)\S.*$/$1#/mg;
		s/^(Time stamps: +)\S.*$/$1#/mg;
		s/^(Network round trip \(ms\): +)\S.*$/$1#/mg;
		s/^Correlated requests, at worst: .*\n//mg;
		s/^((?:Median|P[\d.]+) .*, 95 % interval \(ms\): +)\S.*$/$1#/mg;
		s/^((?:Settled [^:]*|Requests left out at start\/end|.* of attempted \(ms\)): +)\S.*$/$1#/mg;
		s/^(Verdict: +)\S.*$/$1#/mg;
		s/^  What to do: .*\n//mg;
		s/^  (?:(?:DEGRADED|INVALID)(?: \(.*?\))?|VALID|Note): .*\n//mg;
		s/^(Maximum TTFT.*|Mean TTFT with\/without connect.*)\n//mg;
		s/127\.0\.0\.1:\d+/127.0.0.1:#/g;
	}
	return $text;
}

# Compares with golden/NAME; UPDATE_GOLDEN=1 writes it instead, for a person to read.
sub is_golden {
	my ($text, $name) = @_;
	my $path = "$here/golden/$name";

	spew($path, $text) if $ENV{UPDATE_GOLDEN};
	my $golden = slurp($path);
	return fail("golden/$name is missing") unless defined $golden;
	return pass("golden/$name") if $text eq $golden;
	spew("$scratch/got", $text);
	fail("golden/$name");
	diag(`diff -u '$path' '$scratch/got' | head -60`);
	return 0;
}

# ---- JSON with its order ----

sub json_of {
	my ($text) = @_;
	$text =~ s/(?<=[ \[,:])(-?)(Infinity|NaN)(?=[,\]}])/"$1$2"/g;
	return JSON::PP->new->utf8->allow_nonref->decode($text);
}

# The values of a file that has one a line.
sub lines_of { return map { json_of($_) } split /\n/, slurp($_[0]) // '' }

# The keys of the outermost object in their order.
sub keys_of {
	my ($text) = @_;
	my ($depth, $is_key, @keys) = (0, 0);

	while ($text =~ /\G(?:("(?:[^"\\]|\\.)*")|([\[{])|([\]}])|([,:])|[^"\[\]{},:]+)/gs) {
		if (defined $1) { push @keys, substr($1, 1, -1) if $depth == 1 && $is_key; }
		elsif (defined $2) { $depth++; $is_key = $depth == 1; }
		elsif (defined $3) { $depth--; }
		elsif (defined $4 && $depth == 1) { $is_key = $4 eq ','; }
	}
	return @keys;
}

# disturbed(signal => NAME, step => SECONDS, begin => CODE, forget => CODE): starts something
# resumable with begin, again and again, until it ends with 0. Start n gets the signal after n
# steps; the last of 12 is not disturbed. Returns how many were cut short, and the last one's result
# (as run() gives it). When the first ended before its signal, because this machine was slower when
# the step was measured, forget removes its files and the step is halved.
sub disturbed {
	my (%o) = @_;
	my ($cuts, $step, $last) = (0, $o{step});

	for my $n (1 .. 12) {
		my $run = $o{begin}->();
		my $deadline = time + $step * $n;

		sleep 0.005 while time < $deadline && !has_exited($run->{pid});
		kill $o{signal}, $run->{pid} if $n < 12;
		my $r = finish($run);
		if ($r->{status} eq '0' && !$cuts && $step > $o{step} / 8) {
			$o{forget}->();
			$step /= 2;
			redo;
		}
		return ($cuts, $last) if $r->{status} eq '0';
		$cuts++;
		$last = $r;
	}
	return ($cuts, $last);
}

# A zombie that finish() will fetch.
sub has_exited {
	my ($pid) = @_;
	return (slurp("/proc/$pid/stat") // '') =~ /\) Z /;
}

1;
