#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep serve ended at moments spread over its whole life, by signals that it can and cannot
# catch: when resumed, it ends with the files and records of an undisturbed sweep, and no server is
# left.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Fcntl qw(:flock);
use File::Path qw(remove_tree);
use Sweep;
use Test::More;
use Time::HiRes qw(time);

params('s.json', [{ max_num_seqs => 4 }, { max_num_seqs => 16 }]);
params('b.json', [{ num_prompts => 3 }, { num_prompts => 5 }]);
my @grid = (serve_params => 's.json', bench_params => 'b.json', num_runs => 3);

my $began = time;
my $whole = sweep('whole', @grid);
my $lived = time - $began; # of a whole sweep
my @want = map { unmeasured($_) } @{summary('whole')};
my @files = grep { !/^logs/ } files('whole');

check_run('undisturbed', $whole, { status => 0 });
is(scalar @want, 12, 'all records');
for (['INT', 0.35, '130'], ['TERM', 0.45, '130', '--shuffle'], ['KILL', 0.4, 'signal 9']) {
	my ($signal, $step, $status, @more) = @$_;
	my $name = "cut-$signal";
	my ($cuts, $last) = disturbed(signal => $signal, step => $step * $lived,
		forget => sub { remove_tree("results/$name") },
		begin => sub {
			return begin_sweep($name, @grid,
				more => [@more, -d "results/$name" ? '--resume' : ()]);
		});

	cmp_ok($cuts, '>', 0, "ended by SIG$signal at least once");
	is($last->{status}, $status, 'with its exit status');
	like($last->{err}, qr/The script was terminated early\. Use `--resume`/, 'and the hint')
		if $signal ne 'KILL';
	is_deeply([grep { !/^logs/ } files($name)], \@files, 'the same files');
	is_deeply([map { unmeasured($_) } @{summary($name)}], \@want, 'the same records');
	wait_for('end of the servers', sub { !server_is_up() });
}

# One sweep at a time in a folder; a dry run and a sweep that ended before it began change nothing.
{
	open my $folder, '<', 'results/whole' or die "results/whole: $!";
	flock $folder, LOCK_EX or die "flock: $!";
	check_run('somebody is at work there', sweep('whole', @grid, more => ['--resume']), { status => 1,
		err => 'profllm bench sweep serve: another sweep is using results/whole; wait for it to end, '
		. 'or use another --experiment-name', not_out => ['[BEGIN SERVER]'] });
	check_run('a dry run may look', sweep('whole', @grid, more => [qw(--resume --dry-run)]),
		{ status => 0 });
	close $folder;
	spew('file', '');
	check_run('no folder, nothing to resume', sweep('none', @grid, more => [qw(-o file)]), { status => 1,
		err => 'profllm bench sweep serve: cannot create directory file/none: Not a directory' });
}

# Resumed with other commands: refused, or wanted and a warning for each, once.
{
	my $begun = 'WARNING: results/whole was begun with another';

	is(sweep('whole', @grid, more => ['--resume'])->{err}, '', 'by the same commands');
	my @other = (sim => [qw(--ttft-ms 2 --itl-ms 0)]);
	check_run('another server', sweep('whole', @grid, @other, more => ['--resume']), {
		status => 2, err => 'profllm bench sweep serve: --serve-cmd: results/whole was begun with '
		. 'another command (*ttft-ms: * -> 2*), whose runs would be taken for runs of this one; '
		. '*--resume-anyway *',
		not_out => ['[SKIPPED BENCHMARK]'] });
	my $r = sweep('whole', @grid, @other, more => [qw(--resume --resume-anyway)]);
	is($r->{err}, "$begun --serve-cmd; its earlier results are kept next to the new ones\n",
	   'another server, wanted');
	check_run('another benchmark', sweep('whole', @grid, bench => [qw(--seed 3)], more => ['--resume']), {
		status => 2, err => 'profllm bench sweep serve: --bench-cmd: results/whole was begun with ' .
		'another command, whose runs would be taken for runs of this one; '
		. 'use another --experiment-name, or --resume-anyway to keep them',
	not_out => ['[SKIPPED BENCHMARK]'] });
	check_run('a dry run of it', sweep('whole', @grid, bench => [qw(--seed 3)], more => [qw(--resume
		--dry-run)]), { status => 2, err => '*--resume-anyway*' });
	$r = sweep('whole', @grid, bench => [qw(--seed 3)], more => [qw(--resume --resume-anyway)]);
	is($r->{status}, 0, 'another benchmark, wanted');
	is($r->{err}, "$begun --bench-cmd; its earlier results are kept next to the new ones\n", 'and said');
	symlink $program, 'another-name' or die;
	my @same = sweep_args('whole', @grid, more => ['--resume']);
	s/\Q$program\E bench serve/.\/another-name bench serve/ for @same;
	is(run(args => [@same])->{err}, '', 'the same benchmark by another name of the program');
}

done_testing;
