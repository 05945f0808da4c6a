#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench sweep serve_sla` over conversations: how many may be under way, or begin per second, within
# limits on a conversation's duration or on the TTFT of its later turns. The engine serves one request
# at a time, so that the answers are known.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $port = free_port();

# Six tokens, five of which cost a step of 6 ms, and one request at a time: a request takes T = 30 ms, a
# conversation of three turns 90 ms. With S under way each turn waits for the S - 1 others: its TTFT is
# (S - 1) T, a conversation takes 3 S T, and 1 / (3 T) = 11 conversations are done per second.
my $engine = "$program sim --port $port --prefill-base-us 0 --prefill-us-per-token 0 --max-num-seqs 1 " .
	'--decode-base-us 6000 --decode-us-per-seq 0';
my $client = "$program bench serve --port $port --model sim --tokenizer sim --random-input-len 8 " .
	'--random-output-len 6 --ignore-eos --progress none --backend openai-chat ' .
	'--endpoint /v1/chat/completions';
my $talk = "$client --multi-turn --multi-turn-num-turns 3 --num-prompts 12";
my @search = ('--num-runs', 2, '--sla-max', 64);

sub capacity { return @{json_of(slurp("results/$_[0]/capacity.json"))} }

sub sweep
{
	my ($name, $limits, @more) = @_;

	return run_sweep("$talk --burstiness inf", 'serve_sla', $engine, '--sla-params', $limits, @search,
		'-e', $name, @more);
}

# 3 S T <= 405 ms: S = 4. (S - 1) T <= 75 ms: S = 3.
my $both = sweep('both', '[{"sessions.duration_s.p50": "<=0.405"}, '
	. '{"sessions.ttft_later_turns_ms.p50": "<=75"}, {"per_turn_metrics[2].median_ttft_ms": "<=75"}]',
	'--sla-variable', 'max_sessions');
check_run('how many conversations may be under way', $both, { status => 0, out => [
	'SLA criteria: sessions.duration_s.p50<=0.41, failed<=1.00 %',  'Testing max_sessions: 64 req/s',
	'SLA criteria: sessions.ttft_later_turns_ms.p50<=75.00, failed<=1.00 %'] });
my ($duration, $later, $third) = capacity('both');
is($duration->{outcome}, 'found', 'by their duration');
ok(abs($duration->{capacity} - 4) <= 1, "4, give or take one: $duration->{capacity}");
ok(abs($later->{capacity} - 3) <= 1, "by the TTFT of later turns 3, likewise: $later->{capacity}");
ok(abs($third->{capacity} - 3) <= 1, "of the third turn, too: $third->{capacity}");
my ($level) = grep { $_->{level} == $duration->{capacity} } @{$duration->{levels}};
ok($level, 'levels are those of the variable');

# Conversations that begin more often than they are done pile up, and the last ones take long.
my $rate = sweep('rate', '[{"sessions.duration_s.p99": "<=0.4", "sessions.completed": ">=12"}]');
check_run('how many may begin per second', $rate, { status => 0, out => [
	'Testing request_rate: 64 req/s', 'Maximum request_rate for SLA: *'] });
my ($begin) = capacity('rate');
ok($begin->{capacity} > 8 && $begin->{capacity} < 22, "about what the engine does: $begin->{capacity}");
my ($ratio) = map { $_->{values}{'sessions.duration_s.p99'} // 1 } @{$begin->{levels}};
ok($ratio, 'each level tells its value');

# What cannot be searched.
check_run('no conversations', run_sweep("$client --num-prompts 4", 'serve_sla', $engine, @search,
	'--sla-params', '[{"p99_ttft_ms": "<=1"}]', '--sla-variable', 'max_sessions', '-e', 'none'),
	{ status => 1, err => '*--sla-variable max_sessions: the benchmark has no conversations, of which ' .
	'it is a cap; --bench-cmd needs a dataset that has, such as --multi-turn*' });
for (['a key of conversations', '[{"sessions.duration.p99": "<1"}]',
	"*--sla-params: a result has no key 'sessions.duration.p99'*"],
	['a percentile of a turn', '[{"per_turn_metrics[2].p95_ttft_ms": "<1"}]',
	"*'per_turn_metrics[2].p95_ttft_ms' is not computed by --bench-cmd, whose --metric-percentiles is " .
	'99; add 95 to it']) {
	my ($name, $limits, $err) = @$_;
	check_run("refused: $name", sweep('no', $limits), { status => 2, err => $err,
		not_out => ['[BEGIN SERVER]'] });
}
my $missing = sweep('missing', '[{"per_turn_metrics[7].median_ttft_ms": "<=75"}]');
check_run('a turn that no conversation has', $missing, { status => 1, err => "*SLA constraint on " .
	"'per_turn_metrics[7].median_ttft_ms': the benchmark's result has no such number*" });

done_testing();
