#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# faulty_worker.pl FAULT [QUESTION]: an adapter (docs/guide/adapters.md) of an engine that does nothing,
# which goes wrong as FAULT says when it is asked QUESTION ("hello": before its first word).
# FAULT none: it never does.
use strict;
use warnings;
use IO::Handle;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my ($fault, $when) = (@ARGV, '');
my $json = JSON::PP->new->utf8->canonical;
my $held = 0;
$SIG{PIPE} = 'IGNORE';
open(my $s, '+<&=', $ENV{PROFLLM_WORKER_FD}) or die "no socket: $!\n";
binmode $s;
STDOUT->autoflush(1);

sub now { return int(clock_gettime(CLOCK_MONOTONIC) * 1e9) }

sub raw {
	my ($bytes) = @_;
	while (length $bytes) {
		my $n = syswrite($s, $bytes) or POSIX::_exit(9);
		substr($bytes, 0, $n) = '';
	}
}

sub frame { my ($body) = @_; return pack('N', length $body) . $body }
sub put { my (%message) = @_; raw(frame($json->encode(\%message))) }

sub take {
	my ($n) = @_;
	my $bytes = '';
	while (length $bytes < $n) {
		sysread($s, $bytes, $n - length $bytes, length $bytes) or POSIX::_exit(0);
	}
	return $bytes;
}

sub forever { while (1) { sleep 1 } }

# What goes wrong instead of an answer; a fault that changes the answer is in the table below.
my %does = (
	exit => sub { POSIX::_exit(3) },
	'exit-0' => sub { POSIX::_exit(0) },
	kill => sub { kill 'KILL', $$; forever() },
	segv => sub { kill 'SEGV', $$; forever() },
	hang => \&forever,
	stubborn => sub { $SIG{TERM} = $SIG{INT} = 'IGNORE'; forever() },
	'oom-log' => sub {
		print STDERR "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
		POSIX::_exit(1);
	},
	'model-log' => sub {
		print STDERR "OSError: x is not a local folder and is not a valid model identifier\n";
		POSIX::_exit(1);
	},
	'package-log' => sub {
		print STDERR "Traceback\nModuleNotFoundError: No module named 'vllm'\n";
		POSIX::_exit(1);
	},
	'flag-log' => sub {
		print STDERR "usage: x\nx: error: unrecognized arguments: --warp 9\n";
		POSIX::_exit(2);
	},
	garbage => sub { raw("INFO 11-22 starting\n"); forever() },
	long => sub { raw(pack('N', 0xffffffff)); forever() },
	truncated => sub { raw(substr(frame('{"id":1,"type":"ok"}'), 0, 12)); POSIX::_exit(0) },
	'no-json' => sub { raw(frame('{"id":')); forever() },
	closes => sub { POSIX::close($ENV{PROFLLM_WORKER_FD}); forever() },
	'leaves-child' => sub { POSIX::_exit(3) if fork; forever() },
);

# What is wrong in an answer.
my %changes = (
	'wrong-id' => sub { $_[0]{id} += 5 },
	'id-text' => sub { $_[0]{id} = 'x' },
	'no-type' => sub { delete $_[0]{type} },
	'oom' => sub { %{$_[0]} = (id => $_[0]{id}, type => 'error', category => 'memory',
		text => "CUDA out of memory.\nTried to allocate 2.00 GiB") },
	'flag' => sub { %{$_[0]} = (id => $_[0]{id}, type => 'error', category => 'flag',
		text => 'unrecognized arguments: --warp 9') },
	'other' => sub { %{$_[0]} = (id => $_[0]{id}, type => 'error', category => 'other',
		text => 'ValueError: no') },
	'error-alone' => sub { %{$_[0]} = (id => $_[0]{id}, type => 'error') },
	'no-clock' => sub { delete $_[0]{began_ns} },
	'clock-text' => sub { $_[0]{ended_ns} = 'now' },
	'clock-real' => sub { $_[0]{ended_ns} = 1.5 },
	'backwards' => sub { @{$_[0]}{qw(began_ns ended_ns)} = @{$_[0]}{qw(ended_ns began_ns)} },
	'too-early' => sub { $_[0]{began_ns} -= 3_600_000_000_000 },
	'too-late' => sub { $_[0]{ended_ns} += 3_600_000_000_000 },
	'few-counts' => sub { pop @{$_[0]{output_tokens}} },
	'many-counts' => sub { push @{$_[0]{prompt_tokens}}, 3 },
	'counts-text' => sub { $_[0]{output_tokens} = 'many' },
	'count-negative' => sub { $_[0]{output_tokens}[1] = -1 },
	'count-text' => sub { $_[0]{prompt_tokens}[0] = 'x' },
	'forgets' => sub { $_[0]{n} = 0 },
	'length-text' => sub { $_[0]{max_model_len} = 'long' },
	'phases-text' => sub { $_[0]{phases} = 'three' },
	'protocol' => sub { $_[0]{protocol} = 2 },
	'prints' => sub { print "a line on stdout\n" },
	'daemon' => sub {
		return if fork;
		POSIX::setsid();
		POSIX::_exit(0) if fork;
		$SIG{TERM} = 'IGNORE';
		forever();
	},
);

sub answer {
	my ($name, %message) = @_;
	my $is_now = $name eq $when;

	$does{$fault}->() if $is_now && $does{$fault};
	$changes{$fault}->(\%message) if $is_now && $changes{$fault};
	put(%message);
}

die "faulty_worker.pl: there is no fault '$fault'\n"
	unless $fault eq 'none' || $does{$fault} || $changes{$fault};
answer('hello', type => 'hello', protocol => 1, engine => 'faulty', version => '1', features => []);
while (1) {
	my $q = $json->decode(take(unpack 'N', take(4)));
	my @ok = (id => $q->{id} + 0, type => 'ok');
	my $type = $q->{type};

	if ($type eq 'shutdown') {
		answer($type, @ok);
		POSIX::_exit(0);
	}
	if ($type eq 'load') {
		my $began = now();
		select(undef, undef, undef, 0.01);
		answer($type, @ok, began_ns => $began, ended_ns => now());
	} elsif ($type eq 'describe') {
		answer($type, @ok, device => 'none', max_model_len => 4096, vocab_size => 100);
	} elsif ($type eq 'put') {
		$held = $q->{is_first} ? 0 : $held;
		$held += @{$q->{requests}};
		answer($type, @ok, n => $held);
	} else {
		my $began = now();
		put(type => 'progress', done => 0, total => $held);
		select(undef, undef, undef, 0.01);
		answer($type, @ok, began_ns => $began, ended_ns => now(),
			prompt_tokens => [(8) x $held], output_tokens => [(4) x $held]);
	}
}
