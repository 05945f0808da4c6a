#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-suite-resume.t - a suite ended at moments spread over its whole life, by signals that it can
# and cannot catch, alone and with children: when resumed, it ends with the experiments of an
# undisturbed one, and no server is left.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Fcntl qw(LOCK_EX);
use File::Path qw(make_path remove_tree);
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

my $mark = "SUITE_TEST_MARK=$$"; # in the environment of every server of this test
$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';

# YAML takes JSON.
sub config {
	my ($name) = @_;

	return spew("$name.yaml", JSON::PP->new->canonical->encode({ suite => 'cut',
		server => { command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1,
			env => { split /=/, $mark } },
		benchmark => { tokenizer => 'sim', num_prompts => 3, random_input_len => 8,
			random_output_len => 2, max_concurrency => 2, temperature => 0 },
		telemetry => { enabled => JSON::PP::false },
		matrix => { 'server.max_num_seqs' => [2, 4] }, repeat => 2 }));
}

sub words {
	my ($name, @more) = @_;
	return [qw(run --progress none --config), config($name), '--output', "$name.json", @more];
}

sub is_left_running {
	return scalar grep { (slurp($_) // '') =~ /(^|\0)\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*/environ';
}

# What a suite measured, without what is different each time.
sub asked {
	my ($d) = @_;
	return [map { [$_->{config}{name}, $_->{config}{repeat}, $_->{config}{hash}, $_->{status},
		$_->{results}{completed_requests}] } @{$d->{experiments}}];
}

my $began = time;
my $whole = run(args => words('whole'));
my $lived = time - $began;
my $d = json_of(slurp('whole.json'));

check_run('undisturbed', $whole, { status => 0, out => ['Suite: 4 completed, 0 partial, 0 failed'] });
for (['INT', 0.3, '130'], ['TERM', 0.4, '130', '--jobs', 2], ['KILL', 0.35, 'signal 9'],
	['KILL', 0.3, 'signal 9', '--jobs', 2]) {
	my ($signal, $step, $status, @more) = @$_;
	my $name = "cut-$signal" . @more;
	my ($cuts, $last) = disturbed(signal => $signal, step => $step * $lived,
		forget => sub { remove_tree("$name.d") },
		begin => sub { return begin(args => words($name, '--resume', @more)) });
	my $got = json_of(slurp("$name.json"));

	cmp_ok($cuts, '>', 0, "$name: ended at least once");
	is($last->{status}, $status, "$name: with its exit status") or diag($last->{out}, $last->{err});
	is_deeply(asked($got), asked($d), "$name: the same experiments in the end");
	is_deeply($got->{lacking}, [], "$name: none lacks");
	wait_for("end of the servers of $name", sub { !is_left_running() });
}

# A member's folder in which a child of a killed suite is still at work.
for my $more ([], ['--jobs', 2]) {
	my $name = 'leftover' . @$more;
	my $folder = "$name.d/max_num_seqs=2-r1";

	make_path($folder);
	open(my $held, '<', $folder) or die "$folder: $!";
	flock($held, LOCK_EX) or die "flock: $!";
	my $run = begin(args => words($name, @$more));
	wait_for("$name to wait", sub { (slurp($run->{err_path}) // q()) =~ /waiting for the end/ });
	ok(!-e "$name.d/max_num_seqs=2-r1.json", "$name: it waits");
	close $held;
	check_run("$name: goes on after the end", finish($run), { status => 0,
		out => ['Suite: 4 completed, 0 partial, 0 failed'] });
}

done_testing;
