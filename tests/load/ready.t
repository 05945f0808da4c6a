#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Before the load: ready check and warm-ups, and which model each request names.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

sub bodies
{
	my ($sim, $has_id) = @_;
	return map { JSON::PP->new->decode($_->{body}) } grep {
		$_->{path} eq '/v1/completions' && !$has_id == !defined $_->{request_id} }
		read_lines($sim->{requests});
}

# The first prompt, without an id, one try; then the warm-ups, also without ids, under the cap.
{
	my $sim = sim('--ttft-ms', '30', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '3', '--num-warmups', '6', '--max-concurrency', '2',
		'--ready-check-timeout-sec', '10', '--extra-body', '{"min_tokens": 1}');
	my @truth = grep { !defined $_->{request_id} } truth_of($sim);
	my @before = bodies($sim, 0);
	my ($first) = bodies($sim, 1);

	is(scalar @before, 7, 'one try and the warm-ups');
	is_deeply($before[$_], $first, "body $_ is the first request's") for 0 .. 6;
	@truth = sort { $a->{recv_ns} <=> $b->{recv_ns} } @truth;
	my @over = grep { $truth[$_]{recv_ns} < $truth[$_ - 2]{end_ns} } 3 .. $#truth;
	is("@over", '', 'never more warm-ups at once than the cap');
	cmp_ok($truth[2]{recv_ns}, '<', $truth[1]{end_ns}, 'but as many');
	my $lines = join "\n", 'Starting initial single prompt test run...',
		'Waiting for endpoint to become up in 10 seconds', 'Initial test run completed.',
		'Warming up with 6 requests...', 'Warmup run completed.',
		'Starting main benchmark run...', 'Traffic';
	like($run->{out}, qr/^\Q$lines\E/m, 'the lines of it');
	is($run->{result}{completed}, 3, 'none of them is in the result');
}

# A server that does not answer in time, and one that is not there.
{
	my $sim = sim('--ttft-ms', '60000', '--itl-ms', '2');
	my $run = serve($sim, '--num-prompts', '1', '--ready-check-timeout-sec', '1');

	is($run->{status}, 1, 'silent server: exit status');
	like($run->{err}, qr/Initial test run failed - .* Error: Endpoint readiness timed out after 1s\.$/m,
		'silent server: the sentence');
	my ($l, $port) = listen_local();
	close $l;
	$run = serve("http://127.0.0.1:$port", '--num-prompts', '1', '--ready-check-timeout-sec', '1');
	like($run->{err}, qr/Endpoint is not ready\. Error='.+'/, 'no server: a warning for the try');
	like($run->{err}, qr/Initial test run failed - .* Error: (?!Endpoint readiness).+/,
		'no server: the last reason');
	$run = serve(sim('--ttft-ms', '1', '--itl-ms', '1', '--fault', 'status=503:1'),
		'--num-prompts', '1', '--ready-check-timeout-sec', '1');
	like($run->{err}, qr/not ready\. Error='Service Unavailable: \{.*\}'/,
		'refused: the reason, then what the server said, in one line');
	like($run->{err}, qr/Initial test run failed - .* Error: Service Unavailable: \{/,
		'refused: the sentence');
}

# LoRA modules: the base model before the load, then in turn or drawn by the seed.
for my $how ('round-robin', 'random') {
	my @seen;

	for my $again (0, 1) {
		my $sim = sim('--ttft-ms', '2', '--itl-ms', '1', '--served-model-name', 'sim', 'a', 'b',
			'c');
		my $run = serve($sim, '--num-prompts', '12', '--max-concurrency', '1', '--num-warmups',
			'1', '--lora-modules', 'a', 'b', 'c', '--lora-assignment', $how);
		truth_of($sim);
		my ($warm) = bodies($sim, 0);

		is($run->{result}{completed}, 12, "$how: all done") or diag($run->{err});
		like($run->{out}, qr/^12 requests to 3 LoRA adapters of sim, /m, "$how: the summary says so");
		is($warm->{model}, 'sim', "$how: the base model warms up");
		push @seen, join '', map { $_->{model} } bodies($sim, 1);
	}
	is($seen[0], $seen[1], "$how: the same seed, the same modules");
	if ($how eq 'round-robin') {
		is($seen[0], 'abc' x 4, "$how: in turn");
	} else {
		# CPython's random.choice after seed(0): 1 1 0 1 2 1 1 1 ...
		like($seen[0], qr/^bbabcbbb/, "$how: as CPython draws them");
	}
}

done_testing;
