#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What a server can do wrong in an answer, and what the report says about it.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

# name, faults, client options, failures by category, what the first example says
my @fails = (
	['status 503', ['status=503'], [], { http_status => 6 },
		qr/^Service Unavailable: .*fails on purpose/],
	['status 429', ['status=429'], [], { http_status => 6 }, qr/^Too Many Requests: /],
	['reset in the answer', ['reset@3'], [], { reset => 6 }, qr/connection lost|reset/],
	['reset before the first token', ['reset@1'], [], { reset => 6 }, qr/connection lost|reset/],
	['closed in the answer', ['close@3'], [], { truncated => 6 },
		qr/closed the connection before the answer was complete/],
	['an event that is not JSON', ['malformed@3'], [], { bad_event => 6 }, qr/not JSON/],
	['an error in the stream', ['error-event@4'], [], { stream_error => 6 }, qr/on purpose/],
	['an error instead of the first token', ['error-event@1'], [], { stream_error => 6 },
		qr/on purpose/],
	['a stall past the time limit', ['stall@3=20s'], ['--request-timeout', '1'],
		{ timeout => 6 }, qr/no complete answer within 1 s/],
	['a late start past the time limit', ['slow-start=20s'], ['--request-timeout', '1'],
		{ timeout => 6 }, qr/no complete answer within 1 s/],
);
my @api = (
	['completions'],
	['chat', '--backend', 'openai-chat', '--endpoint', '/v1/chat/completions'],
);

for my $case (@fails) {
	my ($name, $faults, $options, $want, $text) = @$case;

	for my $kind (@api) {
		my ($what, @backend) = @$kind;
		my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', @$faults);
		my $run = serve($sim, '--num-prompts', '6', @$options, @backend);
		my %truth = truth_by_id($sim);

		is_deeply(failures($run), $want, "$what, $name: categories");
		like($run->{own}{failures}[0]{examples}[0]{text}, $text, "$what, $name: the text");
		is($run->{result}{failed}, 6, "$what, $name: failed requests");
		is($run->{status}, 1, "$what, $name: exit status, as nothing succeeded");
		is($run->{own}{retries}, 0, "$what, $name: none was sent again");
		is(scalar(keys %truth), 6, "$what, $name: the server saw each once");
	}
}

# A fault that strikes some: the rest is measured as ever.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', 'status=503:0.4', 'reset@4:0.2');
	my $run = serve($sim, '--num-prompts', '60', '--request-rate', '300');
	my %truth = truth_by_id($sim);
	my (%count, $tokens);

	for my $t (values %truth) {
		my $kind = $t->{status} == 503 ? 'http_status' : $t->{finish} eq 'error' ? 'reset' : 'good';

		$count{$kind}++;
		$tokens += $t->{output_tokens} if $kind eq 'good';
	}
	my $good = delete $count{good};

	is_deeply(failures($run), \%count, 'some fail: each failure is the one that struck');
	is($run->{result}{completed}, $good, 'some fail: the others succeed');
	is($run->{result}{total_output_tokens}, $tokens, 'some fail: tokens are those of the others');
	is($run->{status}, 0, 'some fail: exit status');
	is($run->{own}{verdict}, 'INVALID', 'some fail: too many for a valid measurement')
		if $good < 30;
	my @wrong = grep {
		my $t = $truth{"r$_"};
		my $is_good = $t->{status} == 200 && $t->{finish} ne 'error';

		$is_good == defined $run->{own}{requests}{failure}[$_];
	} 0 .. 59;
	is("@wrong", '', 'some fail: request by request');
}

# Not what the server was asked for, but an answer all the same.
my @oddities = (
	['CR LF line ends', 'crlf'],
	['comments', 'comments'],
	['events in two sends', 'split'],
	['events in one send', 'coalesce=3'],
	['no usage', 'drop-usage'],
	['no [DONE]', 'no-done'],
	['nearly all of them', 'crlf', 'comments', 'split', 'drop-usage', 'no-done'],
);
for my $case (@oddities) {
	my ($name, @faults) = @$case;

	for my $kind (@api) {
		my ($what, @backend) = @$kind;
		my $sim = sim('--ttft-ms', '5', '--itl-ms', '4', '--fault', @faults);
		my $run = serve($sim, '--num-prompts', '6', @backend);
		my %truth = truth_by_id($sim);
		my $own = $run->{own};

		if (grep { $_ eq 'drop-usage' } @faults) {
			# Without usage the prompt's length is the workload's, not the templated one.
			$_->{prompt_tokens} = 16 for values %truth;
		}
		counts_are_right($run, \%truth, "$what, $name") or diag($run->{err});
		events_are_right($run, \%truth, "$what, $name");
		if (grep { $_ eq 'drop-usage' } @faults) {
			is($own->{requests_with_usage}, 0, "$what, $name: none had usage");
			is($own->{requests_counted}, 6, "$what, $name: tokens were counted from the text");
		} else {
			is($own->{requests_with_usage}, 6, "$what, $name: all had usage");
		}
		cmp_ok($own->{shared_read_share}, '>', 0.2, "$what, $name: shared reads are seen")
			if $name =~ /one send/;
	}
}

# A stall is time, not a failure.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', 'stall@3=400ms');
	my $run = serve($sim, '--num-prompts', '4');
	my ($itl, $ttft) = @{ $run->{result} }{qw(itls ttfts)};
	# Nothing comes before it was sent: token 3 is 5 + 2 + 402 ms after the request at least.
	my $short = grep { $ttft->[$_] + $itl->[$_][0] + $itl->[$_][1] < 0.409 } 0 .. 3;
	my $elsewhere = grep { my @gap = @$_; my $stall = splice @gap, 1, 1;
		grep { $_ >= $stall } @gap } @$itl;

	is($run->{result}{completed}, 4, 'a stall: all succeed');
	is($short, 0, 'a stall: what follows is that much later');
	is($elsewhere, 0, 'a stall: it stands in the second gap of each');
}

done_testing;
