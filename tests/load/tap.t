#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --timestamps tap: a client that reads late still gives each event its own arrival time. The client
# is stopped again and again, so that dozens of events of each stream wait for it; the truth is the
# simulator's.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;
use Time::HiRes ();

my $AF_PACKET = 17;
my $SOCK_DGRAM = 2;
my $STOP_S = 0.4;

my $is_allowed = socket(my $probe, $AF_PACKET, $SOCK_DGRAM, 0);
close $probe if $is_allowed;
my $is_root = $> == 0;
my ($without) = grep { -x } '/usr/bin/setpriv', '/bin/setpriv';
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my ($cert, $key) = certificate("$dir");

# Eight streams of 2 s against a new simulator; meanwhile the client lies still three times.
sub stopped_run
{
	my ($sim_args, @args) = @_;
	my $sim = sim('--ttft-ms', '50', '--itl-ms', '10', @$sim_args);
	my $run = serve_start($sim, '--num-prompts', '8', '--random-output-len', '200', @args);

	wait_until(20, sub { -s $sim->{requests} });
	for (1 .. 3) {
		Time::HiRes::sleep(0.2);
		kill 'STOP', $run->{pid};
		Time::HiRes::sleep($STOP_S);
		kill 'CONT', $run->{pid};
	}
	serve_end($run);
	is($run->{status}, 0, "@args: exit status") or diag($run->{err});
	return ($run, { truth_by_id($sim) });
}

# How late each event's stamp is, in seconds, ascending.
sub lateness
{
	my ($run, $truth) = @_;
	my $rows = $run->{own}{requests};
	my @late;

	for my $i (0 .. $#{ $rows->{request_id} }) {
		my $send = $truth->{ $rows->{request_id}[$i] }{send_ns};
		my $at = $rows->{first_event_ns}[$i];

		push @late, ($at - $send->[0]) / 1e9;
		for my $k (0 .. $#{ $run->{result}{itls}[$i] }) {
			$at += sprintf('%.0f', $run->{result}{itls}[$i][$k] * 1e9);
			push @late, ($at - $send->[$k + 1]) / 1e9;
		}
	}
	return sort { $a <=> $b } @late;
}

sub codes { return join ' ', map { $_->{code} } @{ $_[0]{own}{reasons} }, @{ $_[0]{own}{notes} || [] }; }

SKIP: {
	skip 'packet sockets need CAP_NET_RAW', 1 unless $is_allowed;
	my @kinds = (['plain', []]);
	push @kinds, ['TLS', ['--ssl-certfile', $cert, '--ssl-keyfile', $key]] if $cert;

	for my $kind (@kinds) {
		my ($name, $sim_args) = @$kind;
		my @args = @$sim_args ? ('--insecure') : ();
		my ($by_read, $truth) = stopped_run($sim_args, @args, '--timestamps', 'kernel');
		my @late = lateness($by_read, $truth);

		# Without the tap this test can see that the client read late.
		cmp_ok($late[-1], '>', $STOP_S / 2, "$name, kernel: late reads spoil stamps");
		like(codes($by_read), qr/shared_reads/, "$name, kernel: and the verdict says so");
		is($by_read->{own}{segment_stamps}{events}, 0, "$name, kernel: no event by segment");
		is($by_read->{own}{segment_stamps}{unused}, undef, "$name, kernel: none was asked for");

		(my $tapped, $truth) = stopped_run($sim_args, @args, '--timestamps', 'tap');
		@late = lateness($tapped, $truth);
		is(scalar(@late), 8 * 200, "$name, tap: all events are there");
		counts_are_right($tapped, $truth, "$name, tap");
		cmp_ok($late[0], '>=', 0, "$name, tap: no stamp is before its send");
		cmp_ok($late[$#late * 0.99], '<', $STOP_S / 8, "$name, tap: 99 % have their own time");
		cmp_ok($late[$#late / 2], '<', 0.002, "$name, tap: half of them within 2 ms");
		my $own = $tapped->{own};
		is($own->{stamp_source}, 'kernel', "$name, tap: the clock is the kernel's");
		is($own->{segment_stamps}{events}, $own->{token_events}, "$name, tap: events by segment");
		is($own->{segment_stamps}{dropped}, 0, "$name, tap: no segment was dropped");
		cmp_ok($own->{segment_stamps}{events_per_segment}, '<', 1.2,
			"$name, tap: events per segment");
		is($own->{late_shared_read_share}, 0, "$name, tap: no stamp is shared for lateness");
		unlike(codes($tapped), qr/shared|segments/, "$name, tap: nothing to doubt in that");
		like($tapped->{out}, qr/^Time stamps: +kernel, each segment *$/m,
			"$name, tap: the report says so");
	}

	# Where it is allowed, the tap is used by itself.
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '4', '--max-concurrency', '2', '--threads', '2');
	is($run->{own}{segment_stamps}{events}, $run->{own}{token_events}, 'auto: events by segment');
	is($run->{own}{segment_stamps}{unused}, undef, 'auto: nothing to say');
	is($run->{own}{retries}, 0, 'auto: kept connections stay usable');
	$run = serve($sim, '--num-prompts', '2', '--timestamps', 'user');
	is($run->{own}{segment_stamps}{events}, 0, 'user: no tap');
	truth_of($sim);

	# No TCP, or not our connections: as without it, and the result says why.
	$sim = sim({ unix => 1 }, '--ttft-ms', '5', '--itl-ms', '2');
	$run = serve($sim, '--num-prompts', '2', '--timestamps', 'tap');
	is($run->{status}, 0, 'Unix socket: exit status') or diag($run->{err});
	like($run->{own}{segment_stamps}{unused}, qr/none of the server's packets passed/,
		'Unix socket: why');
	truth_of($sim);
	$sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	$run = serve($sim, '--num-prompts', '2', '--timestamps', 'tap', '--transport', 'curl');
	is($run->{status}, 0, 'curl: exit status') or diag($run->{err});
	like($run->{own}{segment_stamps}{unused}, qr/curl transport/, 'curl: why');
	truth_of($sim);
}

# The same without the capability.
SKIP: {
	skip 'needs root and setpriv', 1 unless $is_root && $without;
	my @as = ($without, '--bounding-set=-net_raw', '--inh-caps=-net_raw', '--');
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $script = "$dir/profllm";

	open(my $f, '>', $script);
	print $f "#!/bin/sh\nexec @as $LoadTest::PROFLLM \"\$@\"\n";
	close $f;
	chmod 0755, $script;
	local $LoadTest::PROFLLM = $script;
	my $run = serve($sim, '--num-prompts', '2', '--timestamps', 'tap');
	is($run->{status}, 1, 'not allowed, tap: exit status');
	like($run->{err}, qr/^profllm bench serve: .*--timestamps tap: .*sudo setcap cap_net_raw\+ep/m,
		'not allowed, tap: the sentence says what to do');
	$run = serve($sim, '--num-prompts', '2');
	is($run->{status}, 0, 'not allowed, auto: exit status') or diag($run->{err});
	is($run->{own}{segment_stamps}{events}, 0, 'not allowed, auto: no event by segment');
	like($run->{own}{segment_stamps}{unused}, qr/CAP_NET_RAW.*setcap/, 'not allowed, auto: why');
	like($run->{out}, qr/^Time stamps: +kernel *$/m, 'not allowed, auto: the report');
	is(scalar(my @rows = truth_of($sim)), 2, 'not allowed, tap: nothing was sent');
}

done_testing;
