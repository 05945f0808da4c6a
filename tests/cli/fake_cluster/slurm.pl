#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# slurm.pl - the part of Slurm that `profllm run --scheduler slurm` uses, by the names sbatch,
# squeue, scancel and scontrol (links to this file), on a folder ($FAKE_SLURM) in place of a
# controller.
#
# A task is the file JOB_INDEX: NAME|JOB|INDEX|STATE|NODE|REASON. The runner that sbatch starts is
# the only one that writes it. Others ask by JOB_INDEX.end, which holds the state that the task is
# to end with: PENDING is a requeue. Files that tests make: `hold` (nothing is started; with the
# content `squeue` until the next call of squeue), `down` (squeue fails), `refuse` (sbatch fails with
# its content). `calls` gets a line for each call.
use strict;
use warnings;
use POSIX qw(WNOHANG _exit setsid);
use Time::HiRes qw(sleep time);

my $dir = $ENV{FAKE_SLURM} or die "FAKE_SLURM is not set\n";
my ($tool) = $0 =~ m{([^/]+)$};

sub slurp { open my $f, '<', $_[0] or return undef; local $/; my $t = <$f>; return $t }

sub spew {
	my ($path, $text) = @_;
	open my $f, '>', "$path.new$$" or die "$path: $!\n";
	print $f $text;
	close $f;
	rename "$path.new$$", $path;
}

sub state_of { return (split /\|/, slurp("$dir/$_[0]"))[3] }

sub set_state {
	my ($task, $state, $node, $reason) = @_;
	my @f = split /\|/, slurp("$dir/$task"), -1;

	spew("$dir/$task", join '|', @f[0 .. 2], $state, $node // $f[4], $reason // 'None');
}

# The runner of one job: at most $most tasks at once, each the script with its number.
sub run_job {
	my ($job, $n, $most, $script, $log) = @_;
	my (%pid, $deadline);

	$deadline = time + 120;
	while (time < $deadline) {
		my @waiting = grep { state_of("${job}_$_") eq 'PENDING' } 0 .. $n - 1;

		for my $i (@waiting) {
			my $task = "${job}_$i";

			if (-e "$dir/$task.end") {
				my $end = slurp("$dir/$task.end");
				unlink "$dir/$task.end";
				set_state($task, $end) if $end ne 'PENDING';
				next;
			}
			next if -e "$dir/hold" || keys %pid >= $most;
			(my $path = $log) =~ s/%a/$i/;
			my $node = 'n' . (1 + $i % 4);
			my $pid = fork;
			if (!$pid) {
				setsid();
				open STDIN, '<', '/dev/null';
				open STDOUT, '>>', $path;
				open STDERR, '>&', \*STDOUT;
				$ENV{SLURM_ARRAY_TASK_ID} = $i;
				exec $script or _exit(127);
			}
			$pid{$pid} = $i;
			set_state($task, 'RUNNING', $node);
		}
		for my $pid (keys %pid) {
			my $task = "${job}_$pid{$pid}";

			if (-e "$dir/$task.end" && !-e "$dir/$task.asked") {
				my $end = slurp("$dir/$task.end");
				spew("$dir/$task.asked", '');
				kill $end eq 'PENDING' ? 'KILL' : 'TERM', $pid;
			}
			next if waitpid($pid, WNOHANG) != $pid;
			my $end = slurp("$dir/$task.end") // ($? ? 'FAILED' : 'COMPLETED');
			unlink "$dir/$task.end", "$dir/$task.asked";
			set_state($task, $end, $end eq 'PENDING' ? '' : undef);
			delete $pid{$pid};
		}
		last if !@waiting && !keys %pid;
		sleep 0.02;
	}
	kill 'KILL', keys %pid;
}

sub sbatch {
	my %o = map { /^--([a-z-]+)=(.*)$/s ? ($1 => $2) : () } @ARGV;
	my ($n, $most) = ($o{array} // '') =~ /^0-(\d+)(?:%(\d+))?$/ or die "sbatch: bad --array\n";
	my @jobs = glob "$dir/job-*";
	my $job = 100 + @jobs;

	if (defined(my $why = slurp("$dir/refuse"))) {
		print STDERR "sbatch: error: $why\n";
		exit 1;
	}
	spew("$dir/job-$job", '');
	spew("$dir/${job}_$_", "$o{'job-name'}|$job|$_|PENDING||Resources") for 0 .. $n;
	if (!fork) {
		setsid();
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', '/dev/null';
		open STDERR, '>', "$dir/runner.err";
		run_job($job, $n + 1, $most // 2, $ARGV[-1], $o{output});
		_exit(0);
	}
	print "$job\n";
}

sub squeue {
	my ($names) = map { /^--name=(.*)/s ? $1 : () } @ARGV;
	my %is_asked = map { $_ => 1 } split /,/, $names;

	die "slurm_load_jobs error: Unable to contact slurm controller\n" if -e "$dir/down";
	unlink "$dir/hold" if (slurp("$dir/hold") // '') eq 'squeue';
	for my $path (glob "$dir/[0-9]*_*") {
		next if $path =~ /\./;
		my $line = slurp($path);
		print "$line\n" if $is_asked{(split /\|/, $line)[0]};
	}
}

# A whole job, or a task of it.
sub ask_end {
	my ($end, @what) = @_;

	for my $what (@what) {
		for my $path ($what =~ /_/ ? "$dir/$what" : glob "$dir/${what}_*") {
			next if $path =~ /\./ || state_of($path =~ s{.*/}{}r) !~ /PENDING|RUNNING/;
			spew("$path.end", $end);
		}
	}
}

open my $calls, '>>', "$dir/calls";
print $calls join("\t", $tool, @ARGV), "\n";
close $calls;
if ($tool eq 'sbatch') { sbatch() }
elsif ($tool eq 'squeue') { squeue() }
elsif ($tool eq 'scancel') { ask_end('CANCELLED', @ARGV) }
elsif ($tool eq 'scontrol') { ask_end({ requeue => 'PENDING', expire => 'TIMEOUT' }->{shift @ARGV}, @ARGV) }
