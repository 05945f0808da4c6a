#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep serve ended at moments spread over its whole life, by signals that it sees and by one
# that it does not: gone on with, it ends with the files and records of a sweep that nothing
# disturbed, and no server is left.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Fcntl qw(:flock);
use File::Path qw(remove_tree);
use Sweep;
use Test::More;
use Time::HiRes qw(sleep time);

params('s.json', [{ max_num_seqs => 4 }, { max_num_seqs => 16 }]);
params('b.json', [{ num_prompts => 3 }, { num_prompts => 5 }]);
my @grid = (serve_params => 's.json', bench_params => 'b.json', num_runs => 3);
my $sittings_max = 12; # the last one is let be
my $lived; # seconds of a whole sweep

# Sitting n is ended after n times the step, a share of the life of a whole sweep. How often that cut
# one short, and the last of those.
sub disturbed {
	my ($name, $signal, $step, @more) = @_;
	my ($cuts, $last) = (0);

	for my $n (1 .. $sittings_max) {
		my $run = begin_sweep($name, @grid,
			more => [@more, -d "results/$name" ? '--resume' : ()]);
		my $deadline = time + $step * $lived * $n;

		sleep 0.005 while time < $deadline && !exited($run->{pid});
		kill $signal, $run->{pid} if $n < $sittings_max;
		my $r = finish($run);
		if ($r->{status} eq '0' && !$cuts && $step > 0.05) { # this machine was slower before
			remove_tree("results/$name");
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
sub exited {
	my ($pid) = @_;
	return (slurp("/proc/$pid/stat") // '') =~ /\) Z /;
}

my $began = time;
my $whole = sweep('whole', @grid);
$lived = time - $began;
my @want = map { unmeasured($_) } @{summary('whole')};
my @files = grep { !/^logs/ } files('whole');

check_run('undisturbed', $whole, { status => 0 });
is(scalar @want, 12, 'all records');
for (['INT', 0.35, '130'], ['TERM', 0.45, '130', '--shuffle'], ['KILL', 0.4, 'signal 9']) {
	my ($signal, $step, $status, @more) = @$_;
	my ($cuts, $last) = disturbed("cut-$signal", $signal, $step, @more);

	cmp_ok($cuts, '>', 0, "ended by SIG$signal at least once");
	is($last->{status}, $status, 'with its exit status');
	like($last->{err}, qr/The script was terminated early\. Use `--resume`/, 'and the hint')
		if $signal ne 'KILL';
	is_deeply([grep { !/^logs/ } files("cut-$signal")], \@files, 'the same files');
	is_deeply([map { unmeasured($_) } @{summary("cut-$signal")}], \@want, 'the same records');
	wait_for('end of the servers', sub { !server_is_up() });
}

# One sweep at a time in a folder; a dry run and a sweep that ended before it began change nothing.
{
	open my $folder, '<', 'results/whole' or die "results/whole: $!";
	flock $folder, LOCK_EX or die "flock: $!";
	check_run('somebody is at work there', sweep('whole', @grid, more => ['--resume']), { status => 1,
		err => 'profllm bench sweep serve: another sweep is at work in results/whole; wait for its '
		. 'end or give another --experiment-name', not_out => ['[BEGIN SERVER]'] });
	check_run('a dry run may look', sweep('whole', @grid, more => [qw(--resume --dry-run)]),
		{ status => 0 });
	close $folder;
	spew('file', '');
	check_run('no folder, nothing to resume', sweep('none', @grid, more => [qw(-o file)]), { status => 1,
		err => 'profllm bench sweep serve: cannot create directory file/none: Not a directory' });
}

# Gone on with by other commands: said, once each.
{
	my $begun = 'WARNING: results/whole was begun with another';

	is(sweep('whole', @grid, more => ['--resume'])->{err}, '', 'by the same commands');
	my $r = sweep('whole', @grid, sim => [qw(--ttft-ms 2 --itl-ms 0)], more => ['--resume']);
	is($r->{err}, "$begun --serve-cmd; what is there stays beside what is run now\n", 'another server');
	$r = sweep('whole', @grid, bench => [qw(--seed 3)], more => ['--resume']);
	is($r->{err}, "$begun --bench-cmd; what is there stays beside what is run now\n",
		'another benchmark');
}

done_testing;
