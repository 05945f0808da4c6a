#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Who made the slow gaps: a server that stalls, one that writes several events at once, something in
# between that holds bytes, a client that was stopped. The truth file says what the server did.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;
use Time::HiRes qw(sleep);

my @load = ('--num-prompts', '16', '--random-output-len', '60', '--request-rate', '60');

# Slow gaps by cause, and a line about them for diagnosis.
sub causes {
	my ($run, $name) = @_;
	my $g = $run->{own}{slow_gaps};

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	is($g->{server}{n} + $g->{delivery}{n} + $g->{client}{n} + $g->{unknown}{n}, $g->{slow},
		"$name: every slow gap has a cause");
	note("$name: $g->{slow} of $g->{arrivals}; " . join ', ', map {
		"$_ $g->{$_}{n} (p99 without: $g->{$_}{p99_itl_without_ms})" } qw(server delivery client));
	return $g;
}

# Gaps of the server's own sends above the limit, of all requests.
sub slow_sends {
	my ($sim, $limit_ms) = @_;
	my $n = 0;

	for my $t (truth_of($sim)) {
		my @at = @{$t->{send_ns} || []};
		$n += grep { $at[$_] - $at[$_ - 1] > $limit_ms * 1e6 } 1 .. $#at;
	}
	return $n;
}

{
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '40', '--fault', 'stall@20=400ms');
	my $run = serve($sim, @load);
	my $g = causes($run, 'stalls');

	# A machine that stops the server adds gaps of the server's; none is missing.
	cmp_ok($g->{server}{n}, '>=', 16, 'each stall is the server\'s');
	cmp_ok($g->{server}{n}, '<=', slow_sends($sim, $g->{limit_ms} - 20), 'as its own sends say');
}
{
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '40', '--fault', 'coalesce=4');
	my $run = serve($sim, @load);
	my $g = causes($run, 'four events a write');

	cmp_ok($g->{delivery}{share}, '>', 0.5, 'they are held back and come together');
	cmp_ok(abs($g->{typical_ms} - 40), '<', 8, 'the typical gap is that of one event');
	is($run->{own}{itl_event_ms}{p50}, 0, 'most gaps between events are 0');
	cmp_ok($run->{own}{itl_segment_ms}{p50}, '>', 120, 'those between arrivals are of four');
}
# The same stop, by what the stamps are of.
for my $stamps ('kernel', 'user', 'auto') {
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '40');
	my $name = "a client that is stopped, --timestamps $stamps";
	my $child = serve_start($sim, '--num-prompts', '16', '--random-output-len', '100',
		'--request-rate', '60', '--timestamps', $stamps);
	my ($run, $g, $sent_late);

	ok(wait_until(30, sub { 16 <= grep { $_->{request_id} } read_lines($sim->{requests}) }),
		"$name: all requests are there");
	sleep 0.3;
	for (1 .. 3) {
		kill 'STOP', $child->{pid};
		sleep 0.3;
		kill 'CONT', $child->{pid};
		sleep 0.4;
	}
	$run = serve_end($child);
	$g = causes($run, $name);
	$sent_late = slow_sends($sim, $g->{limit_ms} - 20);
	if ($stamps eq 'auto') {
		my $stamped = $run->{own}{segment_stamps}{events};

		SKIP: {
			skip 'segments have no stamps of their own here', 2 unless $stamped;
			is($g->{client}{n}, 0, "$name: with a stamp for each segment none is the client's");
			cmp_ok($g->{slow}, '<=', $sent_late, "$name: and none was made by the stop");
		}
		next;
	}
	cmp_ok($g->{slow}, '>=', 48, "$name: three stops of 16 streams");
	# A stop may end just after the last bytes came: nothing tells that from a late server.
	cmp_ok(2 * $g->{client}{n}, '>=', $g->{slow} - $sent_late,
		"$name: what the server did not send late is the client's");
	cmp_ok($g->{client}{n}, '>=', 16, "$name: and there is such a stop");
}
{
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '40', '--tokens-per-event', '4');
	my $run = serve($sim, @load);

	causes($run, 'four tokens an event');
	is($run->{own}{itl_token_ms}{n}, 4 * $run->{own}{itl_event_ms}{n}, 'four times as many tokens');
	cmp_ok(abs($run->{own}{itl_event_ms}{mean} / $run->{own}{itl_token_ms}{mean} - 4), '<', 1e-6,
		'each of which takes a quarter');
}

done_testing();
