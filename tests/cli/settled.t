#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What one run may conclude: the interval of a mean holds the one that the simulator was given, a
# warm-up is left out, and a server that fails requests does not look faster.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @load = (@{ $tiny{model} }, qw(--dataset-name random --random-input-len 8 --random-output-len 2
	--ignore-eos --temperature 0 --disable-tqdm --request-id-prefix r-),
	'--percentile-metrics', 'ttft,e2el');

# Returns the run and "profllm" of its result, next to its usual numbers.
sub load {
	my ($sim, @more) = @_;
	my $run = run(args => ['bench', 'serve', '--report', 'full', '--base-url', $sim->{url}, @load, @more,
		qw(--save-result --result-filename result.json)], seconds => 120);
	return ($run, json_of(slurp('result.json')));
}

sub attempted {
	my ($result, $metric) = @_;
	my ($found) = grep { $_->{metric} eq $metric } @{ $result->{profllm}{attempted}{percentiles} };
	return $found;
}

# ---- known service times ----

my @service = qw(--ttft-ms exp:80 --itl-ms 1 --seed 5); # the draws follow from it and the ids

# On a busy machine the simulator answers later than it was to, and its answers are the true ones.
# Returns what load() does, and by how much an answer was late at most, in ms: by what the simulator
# says when it ends, and by what the client says of its sends. Measures again while that is much, or
# while the machine changed what its requests measured in the middle.
sub load_known {
	my (@more) = @_;
	my ($run, $result, $late_ms);

	for (1 .. 4) {
		my $sim = start_sim(@service);

		($run, $result) = load($sim, @more);
		stop_all();
		my ($max, $unit) = slurp($sim->{err}) =~ /sent after due: .* max ([\d.e+]+) (\S+)/
			or BAIL_OUT("the simulator did not say how late it was");
		$late_ms = $max * { ns => 1e-6, us => 1e-3, ms => 1, s => 1e3 }->{$unit}
			+ $result->{profllm}{send_lag_ms}{max};
		last if $late_ms < 20 && $run->{out} =~ m{left out at start/end: +0 / 0 };
	}
	return ($run, $result, $late_ms);
}

my ($run, $result, $late_ms) = load_known(qw(--num-prompts 800 --max-concurrency 32));
my $settled = $result->{profllm}{settled};
my $ttft = $settled->{ttft_ms};

check_run('a closed loop', $run, { status => 0, out => ['-*Settled Part, 95 % Intervals-*',
	'Requests left out at start/end: * 0 / 0 *', 'Settled mean TTFT (ms): * (* to *)',
	'Settled requests (req/s): * (* to *)'] });
is($ttft->{state}, 'known', 'the mean has an interval');
ok($ttft->{low} < 80 + $late_ms && 80 < $ttft->{high},
	"that holds the true 80 ms, up to $late_ms late ($ttft->{low} to $ttft->{high})");
ok($ttft->{high} - $ttft->{low} < 25 + $late_ms, 'and is not wide');
my $rate = $settled->{request_throughput};
my ($true_rate, $slowest_rate) = (32 / 0.081, 32 / (0.081 + 2 * $late_ms / 1000)); # of two events each
ok($rate->{low} < $true_rate && $slowest_rate < $rate->{high},
	"32 at once of 81 ms each: $rate->{low} to $rate->{high} holds $true_rate");
my ($median) = grep { $_->{metric} eq 'median_ttft_ms' } @{ $result->{profllm}{percentiles} };
my $true_median = 80 * log 2;
ok($median->{low_ms} < $true_median + $late_ms && $true_median < $median->{high_ms},
	"the median has one, too: $median->{low_ms} to $median->{high_ms} holds $true_median");
has_line($run->{out}, 'Median TTFT, 95 % interval (ms): * to *') or fail('and it is printed');
unlike($run->{out}, qr/of attempted/, 'all requests succeeded: nothing is said of attempted ones');
is(attempted($result, 'p99_ttft_ms')->{low_ms}, $result->{p99_ttft_ms}, 'P99 is the usual one');
is(attempted($result, 'p99_ttft_ms')->{high_ms}, $result->{p99_ttft_ms}, 'from both sides');

my $sim = start_sim(@service);
($run, $result) = load($sim, qw(--num-prompts 20 --max-concurrency 4));
check_run('too short', $run, { status => 0, out => [
	'P99 TTFT, 95 % interval (ms): * n = 20 cannot bound P99* (* needed)*',
	'Settled means: * none: too short, at least * requests are needed'] });
is($result->{profllm}{settled}{ttft_ms}{low}, undef, 'and has no interval');

# An answer takes long enough for a busy machine to send all of them before.
($run, $result) = load(start_sim(qw(--ttft-ms 1500)), qw(--num-prompts 20));
check_run('all at once', $run, { status => 0,
	out => ['Settled means: * none: all requests were sent within * s, less than one takes'] });

# One request at a time, a new one every 5 ms: 200 requests/s at most. On a busy machine the server
# itself can become slower while it is measured; then its throughput has none or a wide one, and again.
for (1 .. 5) {
	stop_all();
	my $queue = start_sim(qw(--max-num-seqs 1 --prefill-base-us 0 --prefill-us-per-token 0
		--decode-base-us 5000 --decode-us-per-seq 0 --truth queue.jsonl));
	($run, $result) = load($queue, qw(--num-prompts 500 --request-rate 400));
	$settled = $result->{profllm}{settled};
	stop_all();
	my $rate = $settled->{request_throughput};
	last if $rate->{state} eq 'known' && $rate->{high} - $rate->{low} < 50;
}
check_run('twice as much load as the server carries', $run, { status => 0,
	out => ['Settled mean TTFT (ms): * (no interval: it drifts as long as the run lasts)'] });
is($settled->{ttft_ms}{state}, 'drifting', 'the mean of a growing queue is none');
is($settled->{ttft_ms}{high}, undef, 'and has no interval');
my $carried = $settled->{request_throughput};
is($carried->{state}, 'known', 'throughput has one');
my @ends = sort { $a <=> $b } map { $_->{send_ns}[-1] } lines_of('queue.jsonl');
my $of_server = 499 / (($ends[-1] - $ends[0]) / 1e9);
ok($carried->{low} < 1.05 * $of_server && $carried->{high} > 0.95 * $of_server,
	"which is about what the server carried: $carried->{low} to $carried->{high} holds $of_server");
ok($carried->{high} - $carried->{low} < 0.5 * $of_server, 'and is not wide');

# ---- failing requests ----

$sim = start_sim(@service);
my ($honest_run, $honest) = load($sim, qw(--num-prompts 400 --max-concurrency 16));
my $late = log(10) * 0.08; # the slowest tenth takes longer
my ($late_run, $timed_out) = load($sim, qw(--num-prompts 400 --max-concurrency 16
	--request-timeout), $late);

ok($timed_out->{p99_ttft_ms} < $honest->{p99_ttft_ms}, 'P99 of the successes falls by timeouts');
my $p99 = attempted($timed_out, 'p99_ttft_ms');
is($p99->{high_ms}, undef, 'over the attempted requests it has no upper bound');
ok($p99->{low_ms} >= 1000 * $late - 1, 'and is at least the timeout');
check_run('timeouts', $late_run, { status => 0, out => [
	'Attempted/succeeded/failed/cancelled: * 400 / * / * / 0', 'P99 TTFT of attempted (ms): * > *',
	'P99 E2EL of attempted (ms): * > *'] });

my $dropping = start_sim(@service, qw(--fault status=503:0.05));
(my $drop_run, my $dropped) = load($dropping, qw(--num-prompts 400 --max-concurrency 16
	--goodput ttft:200));
is(attempted($dropped, 'p99_ttft_ms')->{high_ms}, undef, 'nor where one in twenty is dropped at once');
my $a = $dropped->{profllm}{attempted};
is($a->{requests}, $a->{succeeded} + $a->{failed} + $a->{cancelled}, 'every request is counted once');
is($a->{failed}, $dropped->{failed}, 'failures are the usual ones');
ok($a->{good_share} < $a->{succeeded} / $a->{requests}, 'goodput counts failures as not good');
done_testing();
