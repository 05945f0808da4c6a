#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench tap` next to a client that knows nothing of it: its numbers against what the simulator did, and
# its counts against those of the client.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my ($AF_PACKET, $SOCK_DGRAM) = (17, 2);
plan skip_all => 'packet sockets need CAP_NET_RAW' unless socket(my $probe, $AF_PACKET, $SOCK_DGRAM, 0);
close $probe;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my $sim = sim('--ttft-ms', '30', '--itl-ms', '10');
my $tap = child_start("$dir/out", "$dir/err", $PROFLLM, qw(bench tap --interface lo --port), $sim->{port},
	'--save-result', '--save-detailed', '--result-dir', "$dir", '--result-filename', 'tap.json');
ok(wait_until(20, sub { slurp("$dir/err") =~ /listening/ }), 'it listens') or diag(slurp("$dir/err"));
my $run = serve($sim, '--num-prompts', '60', '--random-output-len', '50', '--request-rate', '60');
is($run->{status}, 0, 'the client is undisturbed');
kill 'INT', $tap;
waitpid $tap, 0;
is($? >> 8, 0, 'Ctrl-C ends it with a report') or diag(slurp("$dir/err"));

my $result = read_json("$dir/tap.json");
is_deeply([map { $result->{$_} } qw(completed failed total_input_tokens total_output_tokens)],
	[map { $run->{result}{$_} } qw(completed failed total_input_tokens total_output_tokens)],
	'the counts are those of the client');

# Both in the order of their first events; those of two requests are some 16 ms apart.
my $rows = $result->{profllm}{requests};
my @seen = sort { $rows->{first_event_ns}[$a] <=> $rows->{first_event_ns}[$b] } 0 .. $#{ $result->{ttfts} };
my @truth = sort { $a->{send_ns}[0] <=> $b->{send_ns}[0] } grep { @{ $_->{send_ns} // [] } } truth_of($sim);
is(scalar(@seen), scalar(@truth), 'every request is there');
my (@ttft, @itl);
for my $i (0 .. $#seen) {
	my ($k, $t) = ($seen[$i], $truth[$i]);
	push @ttft, abs($result->{ttfts}[$k] - ($t->{send_ns}[0] - $t->{recv_ns}) / 1e9);
	push @itl, map { abs($result->{itls}[$k][$_] - ($t->{send_ns}[$_ + 1] - $t->{send_ns}[$_]) / 1e9) }
		0 .. $#{ $result->{itls}[$k] };
}
my $mean = 0;
$mean += $_ / @ttft for @ttft;
@itl = sort { $a <=> $b } @itl;
cmp_ok($mean, '<', 0.0005, 'mean |TTFT error| within 0.5 ms');
cmp_ok($itl[$#itl * 0.99], '<', 0.0005, 'p99 of |ITL error| within 0.5 ms');
is($result->{profllm}{capture}{dropped}, 0, 'no packet was lost');
note(sprintf '%.1f us mean TTFT error, %.1f us p99 ITL error', $mean * 1e6, $itl[$#itl * 0.99] * 1e6);
done_testing();
