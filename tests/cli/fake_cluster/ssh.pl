#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# ssh.pl - what `profllm run --scheduler ssh` sees of ssh (a link called ssh): the command runs on this
# machine, with HOST in $FAKE_HOST. Hosts are what their names say: down* cannot be reached, alone*
# does not share the folder, empty* has no program, lost* loses the connection once a run has begun.
# $FAKE_SSH is a folder; `calls` in it gets a line for each call.
use strict;
use warnings;
use IO::Handle;
use POSIX qw(WNOHANG setsid);
use Time::HiRes qw(sleep);

my (@options, $host, $command);

while (@ARGV && $ARGV[0] =~ /^-/) {
	my $option = shift @ARGV;
	push @options, $option, $option =~ /^-[oipF]$/ ? shift @ARGV : ();
}
($host, $command) = (shift @ARGV, join ' ', @ARGV);
open my $calls, '>>', "$ENV{FAKE_SSH}/calls";
print $calls join("\t", $host, @options, $command), "\n";
close $calls;
if ($host =~ /^down/) {
	print STDERR "ssh: connect to host $host port 22: Connection refused\n";
	exit 255;
}
$command =~ s/'[^']*'$/'\/nowhere'/ || $command =~ s/\S+$/\/nowhere/ if $host =~ /^alone/;
$command = 'no-such-program' if $host =~ /^empty/;
$ENV{FAKE_HOST} = $host;
if ($host !~ /^lost/) {
	exec 'sh', '-c', $command or exit 127;
}

# As sshd does: the command's input ends, the client ends at once, and what the command says then is lost.
pipe my $read, my $write or die "pipe: $!\n";
pipe my $said, my $say or die "pipe: $!\n";
my $pid = fork;
if (!$pid) {
	setsid();
	close $write;
	close $said;
	open STDIN, '<&', $read;
	open STDOUT, '>', '/dev/null';
	open STDERR, '>&', $say;
	exec 'sh', '-c', $command;
}
close $read;
close $say;
$said->blocking(0);
until (-e "$ENV{FAKE_SSH}/lose" || waitpid($pid, WNOHANG) == $pid) {
	syswrite STDERR, $_ while sysread $said, $_, 4096;
	sleep 0.02;
}
print STDERR "client_loop: send disconnect: Broken pipe\n";
exit 255;
