#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Who is sent when: the cap, first come first served, due times, several loops.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

# The most requests the server had at once, from when it received each to its last byte.
sub most_at_once
{
	my ($truth) = @_;
	my @edge = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
		map { [$_->{recv_ns}, 1], [$_->{end_ns}, -1] } values %$truth;
	my ($now, $most) = (0, 0);

	for my $e (@edge) {
		$now += $e->[1];
		$most = $now if $now > $most;
	}
	return $most;
}

# Pairs that are out of order in the list.
sub inversions
{
	my @v = @_;
	return scalar grep { $v[$_] < $v[$_ - 1] } 1 .. $#v;
}

for my $threads (1, 2) {
	for my $cap (1, 4) {
		my $name = "$threads thread(s), cap $cap";
		my $sim = sim('--ttft-ms', 'uniform:2:12', '--itl-ms', 'uniform:1:4');
		my $run = serve($sim, '--num-prompts', '40', '--max-concurrency', $cap, '--threads',
			$threads);
		my %truth = truth_by_id($sim);
		my $rows = $run->{own}{requests};

		is($run->{own}{threads}, $threads, "$name: the result says so");
		counts_are_right($run, \%truth, $name) or diag($run->{err});
		events_are_right($run, \%truth, $name);
		my $most = most_at_once(\%truth);
		cmp_ok($most, '<=', $cap, "$name: the server never had more");
		cmp_ok($most, '>=', $cap > 1 ? 2 : 1, "$name: and it had work at once");
		next if $threads > 1;
		is(inversions(@{ $rows->{sent_ns} }), 0, "$name: sent in the order of the plan");
		is(inversions(map { $truth{"r$_"}{recv_ns} } 0 .. 39), 0,
			"$name: received in the order of the plan");
	}
}

# Without a cap everything is out at once, whatever the number of loops.
{
	my $sim = sim('--ttft-ms', '400', '--itl-ms', '5');
	my $run = serve($sim, '--num-prompts', '24', '--threads', '2');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'no cap, two loops');
	is(most_at_once(\%truth), 24, 'no cap, two loops: all at once');
}

# A herd whose answers begin while it is still being sent.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '20');
	my $run = serve($sim, '--num-prompts', '500');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'a herd');
	events_are_right($run, \%truth, 'a herd');
	is(inversions(@{ $run->{own}{requests}{sent_ns} }), 0, 'a herd: sent in the order of the plan');
}

# Due times are the plan's, and nothing leaves before them.
for my $threads (1, 2) {
	my $name = "Poisson, $threads thread(s)";
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '60', '--request-rate', '100', '--threads', $threads);
	my %truth = truth_by_id($sim);
	my $rows = $run->{own}{requests};
	my ($start, @early, @late, @wrong) = ($run->{own}{start_ns});

	for my $i (0 .. 59) {
		my $due = $rows->{due_ns}[$i];

		push @early, $i if $rows->{sent_ns}[$i] < $due || $truth{"r$i"}{recv_ns} < $due;
		push @wrong, $i if abs($due - $start - $rows->{due_s}[$i] * 1e9) > 2;
		push @late, $rows->{sent_ns}[$i] - $due;
	}
	@late = sort { $a <=> $b } @late;
	counts_are_right($run, \%truth, $name);
	is("@early", '', "$name: none leaves early");
	is("@wrong", '', "$name: due_ns is the start plus due_s");
	is(inversions(@{ $rows->{due_s} }), 0, "$name: due times never go back");
	cmp_ok($late[30], '<', 50e6, "$name: half leave within 50 ms of the due time");
}

# The same seed plans the same times.
{
	my @due;

	for (1, 2) {
		my $sim = sim('--ttft-ms', '1', '--itl-ms', '1');
		my $run = serve($sim, '--num-prompts', '20', '--request-rate', '500', '--seed', '7');

		push @due, join ' ', @{ $run->{own}{requests}{due_s} };
	}
	is($due[0], $due[1], 'the same seed, the same due times');
}

done_testing;
