#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What the server says of itself: /metrics as series, the steady state, cached tokens, and
# the doubt that a warm prefix cache casts on a run.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

sub codes { return join ' ', map { $_->{code} } @{ $_[0]{own}{reasons} }; }
sub is_warm { return codes($_[0]) =~ /prefix_cache/ ? 1 : 0; }

# Series while load runs, the window of the closed loop, and the same from the record.
{
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '10');
	my $run = serve($sim, '--num-prompts', '40', '--max-concurrency', '4', '--metrics-interval',
		'0.05', '--random-output-len', '20', '--record', "$sim->{dir}/run.rec");
	my ($server, $steady) = @{ $run->{own} }{qw(server steady_state)};

	is($run->{status}, 0, 'series: the run succeeds') or diag($run->{err});
	cmp_ok($server->{scrapes}, '>', 5, 'series: read while load runs');
	is($server->{failed_scrapes}, 0, 'series: each time with an answer');
	is($server->{not_read}, undef, 'series: nothing to explain');
	cmp_ok($server->{running}{max}, '<=', 4, 'series: never more running than the cap');
	cmp_ok($server->{running}{max}, '>=', 2, 'series: and more than one');
	is($server->{waiting}{max}, 0, 'series: none waited');
	is($server->{prompt_tokens}, $run->{result}{total_input_tokens},
		'series: prompt tokens of the run alone');
	is($server->{generation_tokens}, 800, 'series: and the generated ones');
	like($run->{out}, qr/^Running requests min\/mean\/max\/last: +\d+ \/ [\d.]+ \/ \d+ \/ \d+ *$/m,
		'series: on the terminal');
	is($steady->{window}{target_concurrency}, 4, 'steady state: of this cap');
	is($steady->{window}{threshold_abs}, 4, 'steady state: 0.95 of it, rounded up');
	is($steady->{window}{observed_peak}, 4, 'steady state: reached');
	is($steady->{window}{requests_total}, 40, 'steady state: of all requests');
	like($steady->{window}{warning}, qr/too short/, 'steady state: below ten seconds is said');
	cmp_ok($steady->{window}{end_s} - $steady->{window}{start_s}, '<=',
		$run->{result}{duration}, 'steady state: inside the run');
	like($run->{out}, qr/^Steady mean TTFT \(ms\):/m, 'steady state: on the terminal');

	my ($status, $out) = profllm('bench', 'score', '--report', 'full', "$sim->{dir}/run.rec",
		'--save-result', '--result-dir', "$sim->{dir}", '--result-filename', 'again.json');
	my $again = read_json("$sim->{dir}/again.json");
	is($status, 0, 'record: scored again');
	is_deeply($again->{profllm}{server}, $server, 'record: the same of the server');
	is_deeply($again->{profllm}{steady_state}, $steady, 'record: the same steady state');
}

# Only before and after; a window that is not wanted; a loop that is not closed.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '8', '--metrics-interval', '0', '--max-concurrency', '2',
		'--no-steady-state');
	is($run->{own}{server}{scrapes}, 2, 'interval 0: before and after');
	is($run->{own}{server}{running}, undef, 'interval 0: no gauge');
	is($run->{own}{server}{generation_tokens}, 64, 'interval 0: counters all the same');
	ok(!exists $run->{own}{steady_state}, '--no-steady-state: none');
	unlike($run->{out}, qr/Steady/, '--no-steady-state: none on the terminal');
	$run = serve($sim, '--num-prompts', '4', '--max-concurrency', '2', '--request-rate', '100');
	ok(!exists $run->{own}{steady_state}, 'a finite rate: none');
	$run = serve($sim, '--num-prompts', '2', '--max-concurrency', '50');
	like($run->{own}{steady_state}{window}{warning}, qr/^There was no steady state: never more than/,
		'too few requests: said so');
	is($run->{own}{steady_state}{window}{start_s}, undef, 'too few requests: no window');
}

# Engines with the same address: each is read separately.
{
	my ($one, $two) = (sim('--ttft-ms', '5', '--itl-ms', '2'), sim('--ttft-ms', '6', '--itl-ms', '2'));
	my @urls = map { "$_->{url}/metrics" } $one, $two;
	my $run = serve($one, '--num-prompts', '4', '--metrics-url', join ',', @urls);
	is_deeply([map { $_->{url} } @{$run->{own}{server}{each}}], \@urls, 'several URLs: each is told');
	is(scalar(grep { $_->{scrapes} >= 2 } @{$run->{own}{server}{each}}), 2, 'several URLs: and read');
}

# No /metrics there: nothing but the reason.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '4', '--metrics-url', "$sim->{url}/nothing/here");
	is($run->{status}, 0, 'no metrics: the run succeeds');
	is($run->{own}{server}{scrapes}, 0, 'no metrics: none');
	is($run->{own}{server}{not_read}, "$sim->{url}/nothing/here: HTTP status 404",
		'no metrics: and why');
	unlike($run->{out}, qr/Server Metrics/, 'no metrics: no block');
	is($run->{err} =~ /metrics/ ? 1 : 0, 0, 'no metrics: no warning');
}

# Counters of the engine: growth over the run, not what stood there before.
for my $round (['speculation', '--spec-tokens', '3', '--spec-acceptance', '0.6'],
	['diffusion', '--diffusion-block', '8', '--diffusion-steps', '5']) {
	my ($what, @sim) = @$round;
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', @sim);
	my @runs = map { serve($sim, '--num-prompts', '6', '--random-output-len', '24', '--seed', $_) }
		0, 1;

	for my $run (@runs) {
		my $r = $run->{result};
		my %spec = map { $_ => $r->{"spec_decode_$_"} } qw(acceptance_rate acceptance_length
			num_drafts draft_tokens accepted_tokens per_position_acceptance_rates);

		is($run->{status}, 0, "$what: the run succeeds") or diag($run->{err});
		if ($what eq 'diffusion') {
			like($run->{out}, qr/^-+Diffusion Decoding-+\nCommitted throughput \(tok\/s\): +\d/m,
				"$what: its block");
			is($r->{diffusion_committed_tokens}, 6 * 24, "$what: committed tokens of this run");
			cmp_ok(abs($r->{diffusion_committed_throughput} * $r->{duration} - 6 * 24), '<', 1e-6,
				"$what: throughput over the duration");
			next;
		}
		like($run->{out}, qr/^-+Speculative Decoding-+\nAcceptance rate \(%\): +[\d.]+ *$/m,
			"$what: its block");
		cmp_ok($spec{num_drafts}, '<', 6 * 24, "$what: drafts of this run alone");
		cmp_ok(abs($spec{acceptance_rate} - 100 * $spec{accepted_tokens} / $spec{draft_tokens}), '<',
			1e-9, "$what: rate");
		cmp_ok(abs($spec{acceptance_length} - 1 - $spec{accepted_tokens} / $spec{num_drafts}), '<',
			1e-9, "$what: length");
		is(scalar @{ $spec{per_position_acceptance_rates} }, 3, "$what: a rate for each position");
	}
}

# Several servers: each by itself, and all together.
{
	my @sim = map { sim('--ttft-ms', '5', '--itl-ms', '2') } 1, 2;
	my $run = serve(\@sim, '--num-prompts', '10', '--metrics-interval', '0.1');
	my $server = $run->{own}{server};

	is($run->{status}, 0, 'several servers: the run succeeds') or diag($run->{err});
	is_deeply([map { $_->{url} } @{ $server->{each} }], [map { $_->{url} } @sim],
		'several servers: each has its figures');
	is($server->{generation_tokens}, 80, 'several servers: together they made all tokens');
	is($server->{each}[0]{generation_tokens} + $server->{each}[1]{generation_tokens}, 80,
		'several servers: each a part of them');
}

# A second run with the same prompts meets a warm cache; nothing else does.
for my $details ([], ['--enable-prompt-tokens-details']) {
	my $by = @$details ? 'usage' : '/metrics';
	my @long = ('--num-prompts', '20', '--random-input-len', '400', '--random-output-len', '4',
		'--max-concurrency', '4', '--report-cached-tokens');
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', @$details);
	my $run = serve($sim, @long);
	is(is_warm($run), 0, "$by: the first run is not doubted") or diag(codes($run));
	is(exists $run->{result}{total_cached_tokens} ? 1 : 0, 1, "$by: total_cached_tokens");
	$run = serve($sim, @long);
	is(is_warm($run), 1, "$by: the second run with the same prompts is") or diag(codes($run));
	is($run->{own}{verdict} eq 'VALID' ? 1 : 0, 0, "$by: so it is not valid");
	if (@$details) {
		cmp_ok($run->{result}{total_cached_tokens}, '>', 7000, "$by: cached tokens");
		like($run->{out}, qr/^Total cached tokens: +$run->{result}{total_cached_tokens} *$/m,
			"$by: on the terminal");
	}
	$run = serve($sim, @long, '--seed', '1');
	is(is_warm($run), 0, "$by: other prompts are not") or diag(codes($run));

	# What the run sends itself: a shared prefix, copies of the first prompt, few prefixes.
	$run = serve($sim, @long, '--seed', '2', '--random-prefix-len', '300');
	is(is_warm($run), 0, "$by: nor a prefix that all share") or diag(codes($run));
	$run = serve($sim, @long, '--seed', '3', '--num-prompts', '2', '--num-warmups', '2',
		'--ready-check-timeout-sec', '10');
	is(is_warm($run), 0, "$by: nor copies sent before") or diag(codes($run));
	$run = serve($sim, '--dataset-name', 'prefix_repetition', '--prefix-repetition-prefix-len',
		'300', '--prefix-repetition-suffix-len', '100', '--prefix-repetition-num-prefixes', '2',
		'--prefix-repetition-output-len', '4', '--num-prompts', '20', '--seed', '4');
	is(is_warm($run), 0, "$by: nor repeated prefixes") or diag(codes($run));
}

done_testing();
