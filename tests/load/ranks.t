#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Several processes that mpirun starts send one load: together they send exactly what one process
# sends, and their result is what one process would report.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;
use Time::HiRes ();

my ($mpirun) = grep { -x } map { "$_/mpirun" } split /:/, $ENV{PATH};
plan skip_all => 'mpirun is not installed (package openmpi-bin)' unless $mpirun;

plan skip_all => 'Open MPI leaks and races of its own drown the reports of a sanitizer'
	if qx(ldd '$PROFLLM') =~ /lib[at]san/;

# Without other machines, and as root in a container.
$ENV{OMPI_ALLOW_RUN_AS_ROOT} = $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;
$ENV{OMPI_MCA_plm_rsh_agent} = '/bin/false';
sub ranks { return ($mpirun, '--oversubscribe', '--mca', 'btl', 'self,vader', '-np', @_) }

sub columns
{
	my ($run) = @_;
	return { map { $_ => $run->{own}{requests}{$_} } qw(due_s request_id) };
}

my @poisson = ('--num-prompts', '60', '--request-rate', '200', '--seed', '3');
my $alone;
{
	my $sim = sim('--ttft-ms', 'uniform:2:12', '--itl-ms', 'uniform:1:4');
	$alone = serve($sim, @poisson);
	is($alone->{own}{processes}, 1, 'without mpirun there is one process');
}

for my $n (2, 4, 8) {
	my $sim = sim('--ttft-ms', 'uniform:2:12', '--itl-ms', 'uniform:1:4');
	local @LoadTest::LAUNCHER = ranks($n);
	my $record = "$sim->{dir}/record";
	my $run = serve($sim, @poisson, '--record', $record);
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, "$n processes: the run succeeds") or diag($run->{err}, $run->{out});
	is($run->{own}{processes}, $n, "$n processes: the result says so");
	is($run->{own}{threads}, $n, "$n processes: each has a loop");
	is($run->{own}{clock_error_ms}, 0, "$n processes of one machine have one clock");
	is_deeply([sort keys %truth], [sort map { "r$_" } 0 .. 59],
		"$n processes: every request is sent once");
	counts_are_right($run, \%truth, "$n processes");
	events_are_right($run, \%truth, "$n processes");
	is_deeply(columns($run), columns($alone), "$n processes: the plan of a single one");
	is_deeply($run->{result}{input_lens}, $alone->{result}{input_lens},
		"$n processes: the prompts of a single one");
	unlike($run->{out}, qr/Benchmark Result.*Benchmark Result/s, "$n processes: one report");

	my $score = "$sim->{dir}/score.json";
	@LoadTest::LAUNCHER = ();
	profllm('bench', 'score', $record, '--save-result', '--result-filename', $score);
	my $again = read_json($score);
	is_deeply([map { $again->{$_} } qw(mean_ttft_ms p99_ttft_ms mean_itl_ms p99_tpot_ms
		request_throughput duration)], [map { $run->{result}{$_} } qw(mean_ttft_ms p99_ttft_ms
		mean_itl_ms p99_tpot_ms request_throughput duration)],
		"$n processes: the record gives the same figures again");
}

# A program between mpirun and ours: @do is a shell's, with the rank in $OMPI_COMM_WORLD_RANK.
sub wrapper
{
	my ($path, @do) = @_;
	open my $out, '>', $path or die "$path: $!";
	print $out join("\n", '#!/bin/sh', @do, '');
	close $out;
	chmod 0755, $path;
	return $path;
}

# Conversations are dealt whole: one process sends all turns of one, with its history.
{
	my @talk = ('--backend', 'openai-chat', '--endpoint', '/v1/chat/completions', '--multi-turn',
		'--num-prompts', '12', '--multi-turn-num-turns', '3', '--request-rate', '60', '--seed', '3');
	my @sim = map { sim('--ttft-ms', '2', '--itl-ms', '1') } 0, 1;
	my $single = serve($sim[0], @talk);
	local @LoadTest::LAUNCHER = (ranks(3), wrapper("$sim[1]{dir}/named",
		'exec "$@" --header "X-Rank=$OMPI_COMM_WORLD_RANK"'));
	my $run = serve($sim[1], @talk);
	my (%said, %sender, @wrong);
	my $own = $run->{own}{requests};

	is($run->{status}, 0, 'conversations: the run succeeds') or diag($run->{err});
	is($run->{result}{sessions}{completed}, 12, 'conversations: all are completed');
	is_deeply(columns($run), columns($single), 'conversations: the plan of a single process');
	for my $i (0 .. $#{ $own->{session} || [] }) {
		$said{"rconv-$own->{session}[$i]-turn$own->{turn}[$i]"} = $run->{result}{generated_texts}[$i];
	}
	for my $r (grep { $_->{path} =~ /chat/ } read_lines($sim[1]{requests})) {
		my ($conversation, $number, $turn) = $r->{request_id} =~ /^(rconv-(\d+))-turn(\d+)$/;
		my @message = @{ JSON::PP->new->decode($r->{body})->{messages} };
		my $rank = $r->{headers}{'x-rank'};

		$sender{$conversation}{$rank}++;
		push @wrong, "$r->{request_id} came from rank $rank" if $rank != $number % 3;
		push @wrong, "$r->{request_id} has " . @message . ' messages' if @message != 2 * $turn + 1;
		for my $t (0 .. $turn - 1) {
			push @wrong, "$r->{request_id}: not the answer to turn $t"
				if ($message[2 * $t + 1]{content} // '') ne
				($said{"$conversation-turn$t"} // '?');
		}
	}
	is(scalar keys %sender, 12, 'conversations: the server had them');
	is_deeply([sort map { join ',', map { "$_" } values %$_ } values %sender], [(3) x 12],
		'conversations: each has one sender');
	is(join('; ', @wrong), '', 'conversations: dealt in turn, with their own histories');
}

# The cap is divided: 5 over 2 processes are 3 and 2.
{
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '2');
	local @LoadTest::LAUNCHER = ranks(2);
	my $run = serve($sim, '--num-prompts', '40', '--max-concurrency', '5');
	my ($now, $most) = (0, 0);

	for (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
		map { [$_->{recv_ns}, 1], [$_->{end_ns}, -1] } truth_of($sim)) {
		$most = $now if ($now += $_->[1]) > $most;
	}
	is($run->{result}{completed}, 40, 'a cap: everything is sent');
	cmp_ok($most, '<=', 5, 'a cap: the server never has more');
	cmp_ok($most, '>', 3, 'a cap: both processes send');
}

# Words: one sentence, from one process.
{
	my $sim = sim();
	local @LoadTest::LAUNCHER = ranks(3);
	my $run = serve($sim, '--num-prompts', '9', '--max-concurrency', '2');

	isnt($run->{status}, 0, 'too small a cap is refused');
	my @said = $run->{err} =~ /(--max-concurrency 2 is less than one request for each of the 3 )/g;
	is(scalar @said, 1, 'once') or diag($run->{err});
}

# A clock that is 100 ms ahead: times are moved by what was measured.
SKIP: {
	my ($fake) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';
	skip 'libfaketime is not installed', 5 unless $fake;
	my $sim = sim('--ttft-ms', '10', '--itl-ms', '2');
	my $ahead = wrapper("$sim->{dir}/ahead", '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ' .
		"export LD_PRELOAD=$fake FAKETIME=+0.1 DONT_FAKE_MONOTONIC=1", 'exec "$@"');
	local @LoadTest::LAUNCHER = (ranks(2), $ahead);
	my $run = serve($sim, '--num-prompts', '40', '--request-rate', '100', '--timestamps', 'user');
	my %truth = truth_by_id($sim);
	my $sent = $run->{own}{requests}{sent_ns} || [];
	my @late = map { $truth{"r$_"}{recv_ns} - $sent->[$_] } 0 .. $#$sent;
	my @median = map { my $k = $_; (sort { $a <=> $b } @late[grep { $_ % 2 == $k } 0 .. $#late])[10] }
		0, 1;

	is(scalar @$sent, 40, 'another clock: everything is there') or diag($run->{err});
	my ($found) = $run->{err} =~ /the clock of rank 1 on \S+ is (\+\d+\.\d+) ms from rank 0's/;
	ok($found, 'it is reported') or diag($run->{err});
	cmp_ok(abs($median[1] - $median[0]), '<', 20e6, 'and its times are moved by that');
	cmp_ok($run->{own}{clock_error_ms}, '>', 0, 'with an error of its own');
	cmp_ok(abs(($found || 0) - 100), '<=', $run->{own}{clock_error_ms} + 0.0005,
		'and the clock is not further off than that');
}

sub pid_of_rank
{
	my ($rank, $parent) = @_;
	return wait_until(30, sub {
		for my $dir (glob '/proc/[0-9]*') {
			my $stat = slurp("$dir/stat");
			next unless $stat =~ /\) \S (\d+) / && $1 == $parent;
			return $1 if slurp("$dir/environ") =~ /(?:^|\0)OMPI_COMM_WORLD_RANK=$rank\0/ &&
				$dir =~ m{/(\d+)$};
		}
		return;
	});
}

# A process is killed: its requests are missing, and the result says so.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	local @LoadTest::LAUNCHER = (ranks(3), '--enable-recovery');
	my $run = serve_start($sim, '--num-prompts', '300', '--request-rate', '60');
	my $pid = pid_of_rank(2, $run->{pid});

	ok(wait_until(60, sub { slurp($sim->{truth}) =~ /\n.*\n/ }), 'load runs');
	kill 'KILL', $pid;
	serve_end($run);
	my $own = $run->{own};
	my ($lost) = grep { $_->{code} eq 'lost_process' } @{ $own->{reasons} || [] };
	is($own->{verdict}, 'INVALID', 'a killed process: INVALID') or diag($run->{err}, $run->{out});
	like($lost->{text} || '', qr/^100 requests are missing: a process /, 'and why');
	like($run->{err}, qr/rank 2 on \S+ was lost/, 'who was lost');
	is($run->{result}{completed}, 200, 'the requests of the others are there');
}

# All of them are killed: what each had written by then is a result.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $record = "$sim->{dir}/record";
	local @LoadTest::LAUNCHER = ranks(3);
	my $run = serve_start($sim, '--num-prompts', '3000', '--request-rate', '100', '--record',
		$record);
	my @pid = map { pid_of_rank($_, $run->{pid}) } 0 .. 2;

	ok(wait_until(60, sub { -s "$record.part2" && slurp($sim->{truth}) =~ /(?:\n.*){100}/ }),
		'load runs');
	Time::HiRes::sleep(0.5); # parts are written ten times a second
	kill 'KILL', @pid;
	serve_end($run);
	@LoadTest::LAUNCHER = ();
	my $score = "$sim->{dir}/score.json";
	profllm('bench', 'score', $record, "$record.part1", "$record.part2", '--save-result',
		'--result-filename', $score, '--save-detailed');
	my $own = (read_json($score) || {})->{profllm};
	my $ids = $own->{requests}{request_id} || [];
	cmp_ok(scalar @$ids, '>', 50, 'killed: what was written can be scored');
	my %seen = map { $_ => 1 } @$ids;
	is(scalar keys %seen, scalar @$ids, 'each request once');
	ok((grep { ($_->{code} || '') eq 'broken_off' } @{ $own->{reasons} || [] }),
		'and the result says that it broke off');
}

# A process is stopped for two seconds: it is reported, and nothing is lost.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	local @LoadTest::LAUNCHER = ranks(2);
	my $run = serve_start($sim, '--num-prompts', '200', '--request-rate', '40');
	my $pid = pid_of_rank(1, $run->{pid});

	ok(wait_until(60, sub { slurp($sim->{truth}) =~ /\n.*\n/ }), 'load runs');
	kill 'STOP', $pid;
	sleep 2;
	kill 'CONT', $pid;
	serve_end($run);
	is($run->{result}{completed}, 200, 'a stopped process: nothing is lost')
		or diag($run->{err}, $run->{out});
	like($run->{err}, qr/rank 1 on \S+ did not report for [2-9]\.\d s/, 'and it is reported');
}

done_testing();
