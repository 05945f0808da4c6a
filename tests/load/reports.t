#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --dashboard does nothing to the times of a run: the same load with and without it, in turn, has the
# same distance between what the client stamped and what the simulator wrote down.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my $dashboard = child_start("$dir/out", "$dir/err", $PROFLLM, 'dashboard', '--no-auth', '--listen',
	'127.0.0.1:0', '--port-file', "$dir/port", '--store', "sqlite:$dir/runs.db");
wait_until(30, sub { return slurp("$dir/port") =~ /^\d+\n/ }) or die slurp("$dir/err");
my ($port) = slurp("$dir/port") =~ /(\d+)/;

# How long after its send each first token was stamped, in ms, and the delays of the client's sends.
sub distances
{
	my (@report) = @_;
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '4');
	my $run = serve($sim, '--num-prompts', '120', '--request-rate', '40', '--temperature', '0', @report);
	my %truth = truth_by_id($sim);
	my $rows = $run->{own}{requests};

	is($run->{status}, 0, "a run (@report)") or diag $run->{err};
	return map { ($rows->{first_event_ns}[$_] - $truth{ $rows->{request_id}[$_] }{send_ns}[0]) / 1e6 }
		0 .. $#{ $rows->{request_id} };
}

my (@with, @without);
for (1 .. 3) {
	push @with, distances('--dashboard', "http://127.0.0.1:$port");
	push @without, distances();
}
my ($with, $without) = map { my @s = sort { $a <=> $b } @$_; $s[$#s / 2] } \@with, \@without;
diag sprintf('median distance of first tokens: %.3f ms with, %.3f ms without', $with, $without)
	if $ENV{VERBOSE};
cmp_ok(scalar(grep { $_ < 0 } @with), '==', 0, 'no stamp is before its send');
cmp_ok($with, '<', $without + 2, 'first tokens are stamped as soon after their send as without reporting');
child_stop($dashboard, 'TERM');
done_testing();
