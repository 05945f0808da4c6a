#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Counts and stamps of plain runs: completions and chat, reasoning, several tokens an event.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my @chat = ('--backend', 'openai-chat', '--endpoint', '/v1/chat/completions');
my @case = (
	['completions', [], []],
	['completions at a rate', [], ['--request-rate', '200']],
	['chat', [], \@chat],
	['chat with reasoning', ['--reasoning', '5'], \@chat],
	['several tokens an event', ['--tokens-per-event', '3'], []],
	['bursts', ['--burst-ms', '20', '--itl-ms', '20'], []],
	['random pacing', ['--ttft-ms', 'uniform:5:60', '--itl-ms', 'exp:4'], []],
	['one token', [], ['--random-output-len', '1']],
	['user stamps', [], ['--timestamps', 'user']],
);

for my $case (@case) {
	my ($name, $server, $client) = @$case;
	my $sim = sim('--ttft-ms', '30', '--itl-ms', '5', @$server);
	my $run = serve($sim, '--num-prompts', '12', '--random-output-len', '10', @$client);
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	counts_are_right($run, \%truth, $name);
	events_are_right($run, \%truth, $name) unless $name eq 'user stamps';
	is($run->{own}{usage_differs_share}, $name =~ /several/ ? 1 : 0,
		"$name: how many requests have another number of tokens than of events");
}

# Kinds of tokens in a chat answer: 20 tokens, the first 6 are reasoning.
{
	my $sim = sim('--ttft-ms', '10', '--itl-ms', '5', '--reasoning', '6');
	my $run = serve($sim, '--num-prompts', '4', '--random-output-len', '20', @chat);
	my $rows = $run->{own}{requests};

	for my $i (0 .. 3) {
		is($rows->{n_reasoning}[$i], 6, "reasoning events of request $i");
		cmp_ok($rows->{first_reasoning_ns}[$i], '<', $rows->{first_answer_ns}[$i],
			"reasoning comes before the answer in request $i");
	}
	my @words = map { scalar(split ' ', $_) } @{ $run->{result}{generated_texts} };
	is("@words", '14 14 14 14', 'the generated text is the answer without the reasoning');
}

# User-space stamps start the clock before connecting.
{
	my $sim = sim('--ttft-ms', '10', '--itl-ms', '5');
	my $run = serve($sim, '--num-prompts', '2', '--timestamps', 'user');
	my $rows = $run->{own}{requests};

	is($rows->{sent_ns}[0], $rows->{connect_ns}[0], 'user stamps: sent is when connecting began');
	is($run->{own}{stamp_source}, 'user', 'user stamps: the result says so');
}

done_testing;
