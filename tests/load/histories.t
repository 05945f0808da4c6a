#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 1,000 conversations with and without a prefix cache: every message history that the servers received is
# the expected one, and TTFT by turn is what the engine model's formula says (docs/guide/sim.md).
#
# A step of the engine costs what all its prompts cost together, so each conversation has a server to
# itself while it is under way: LANES servers, and as many conversations at a time.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IO::Socket::IP ();
use JSON::PP ();
use LoadTest;
use Test::More;

use constant { CONVERSATIONS => 1000, TURNS => 3, LANES => 32, USER_TOKENS => 40, ANSWER_TOKENS => 8,
	BASE_MS => 100, TOKEN_MS => 1, BLOCK => 16 };

my $json = JSON::PP->new->utf8->canonical;
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

# So many words of one token each, unlike those of any other conversation and turn.
sub words
{
	my ($c, $turn) = @_;
	return join '', map { sprintf ' %s', join '', map { chr(97 + $_ % 26) } int($c / 26), $c,
		$turn * 7 + int($c / 676) + $_ } 1 .. USER_TOKENS;
}

# The recorded answers are no part of any request: only their lengths count.
open(my $f, '>', "$dir/conversations.jsonl") or die;
for my $c (0 .. CONVERSATIONS - 1) {
	print $f $json->encode({ id => "c$c", messages => [map { (
		{ role => 'user', content => words($c, $_) },
		{ role => 'assistant', content => ' abc' x ANSWER_TOKENS }) } 0 .. TURNS - 1] }), "\n";
}
close $f;

sub start
{
	my @sim = map { sim('--prefill-base-us', 1000 * BASE_MS, '--prefill-us-per-token', 1000 * TOKEN_MS,
		'--decode-base-us', 1000, '--decode-us-per-seq', 0, '--enable-prompt-tokens-details', @_)
	} 1 .. LANES;
	return (\@sim, serve_start(\@sim, qw(--backend openai-chat --endpoint /v1/chat/completions
		--dataset-name conversations --balance least-loaded --report-cached-tokens --ignore-eos
		--dataset-path), "$dir/conversations.jsonl", '--num-prompts', CONVERSATIONS,
		'--max-sessions', LANES));
}

# ---- histories ----

my $teller = sim(qw(--ttft-ms 0 --itl-ms 0));
my $http = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $teller->{port}) or die "connect: $@";

# What the server says to these messages (JSON), asked for by another client, and not as a stream. In one
# write: two would wait for the kernel's delayed acknowledgement.
sub answer_to
{
	my ($messages) = @_;
	my $body = qq({"model": "sim", "max_tokens": ${\ANSWER_TOKENS}, "messages": [$messages]});
	my $bytes;

	syswrite $http, "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\n"
		. "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
	while (defined(my $line = <$http>)) {
		last if $line !~ /\S/;
		$bytes = $1 if $line =~ /^content-length: (\d+)/i;
	}
	defined $bytes && read($http, my $text, $bytes) == $bytes or die 'the simulator did not answer';
	return $json->decode($text)->{choices}[0]{message}{content};
}

# A message as the client writes it; texts are letters and blanks.
sub says { return qq({"role": "$_[0]", "content": "$_[1]"}); }

# By conversation and number of answers.
sub expect_histories
{
	my %expected;

	for my $c (0 .. CONVERSATIONS - 1) {
		my $messages = '';
		for my $turn (0 .. TURNS - 1) {
			$messages .= ', ' . says(assistant => answer_to($messages)) . ', ' if $turn;
			$messages .= says(user => words($c, $turn));
			$expected{"c$c $turn"} = $messages;
		}
	}
	return \%expected;
}

# The lists are compared as they were sent, byte for byte: reading so much JSON would take minutes.
sub histories_are_right
{
	my ($sims, $expected, $name) = @_;
	my (%received, @wrong);

	for my $line (grep { m{"path":\s*"/v1/chat} } map { split /\n/, slurp($_->{requests}) } @$sims) {
		my ($id) = $line =~ /"x-session-id":\s*"(\w+)"/;
		my ($messages) = $line =~ /\\"messages\\": \[(.*?)\]/;
		$messages =~ s/\\"/"/g;
		my $key = "$id " . (() = $messages =~ /"assistant"/g);
		push @wrong, $key if $received{$key}++ || $messages ne ($expected->{$key} // '');
	}
	is(scalar(keys %received), CONVERSATIONS * TURNS, "$name: so many requests");
	is(join(', ', splice @wrong, 0, 5), '', "$name: each one's history is the expected one, sent once");
}

# ---- TTFT ----

# The template of the simulator: "<|user|>\n", the text, "\n", and at the end "<|assistant|>\n", in which
# every byte is a token; an answer is followed by "\n".
sub prompt_tokens
{
	my ($turn) = @_;
	my $asked = length("<|user|>\n") + USER_TOKENS + length("\n<|assistant|>\n");
	return $asked + $turn * ($asked + ANSWER_TOKENS + length "\n");
}

# Whole blocks of what was asked and answered before.
sub cached_tokens
{
	my ($turn) = @_;
	return $turn && BLOCK * int((prompt_tokens($turn - 1) + ANSWER_TOKENS) / BLOCK);
}

sub ttfts_are_right
{
	my ($run, $sims, $has_cache, $name) = @_;
	my @turn = @{ $run->{result}{per_turn_metrics} };
	my %count;

	is(scalar @turn, TURNS, "$name: a block of figures for each turn");
	for my $sim (@$sims) {
		child_stop($sim->{pid}, 'TERM');
		my $truth = slurp($sim->{truth});
		$count{"$1 $2"}++
			while $truth =~ /"prompt_tokens":\s*(\d+),\s*"cached_tokens":\s*(\d+)/g;
	}
	for my $t (0 .. TURNS - 1) {
		my $cached = $has_cache ? cached_tokens($t) : 0;
		my $ms = BASE_MS + TOKEN_MS * (prompt_tokens($t) - $cached);
		my $got = $turn[$t]{median_ttft_ms};

		is($count{ prompt_tokens($t) . " $cached" }, CONVERSATIONS,
			"$name, turn $t: the servers count the same prompt and cached tokens");
		ok(abs($turn[$t]{cached_share} - $cached / prompt_tokens($t)) < 1e-9,
			"$name, turn $t: the report has their share");
		cmp_ok(abs($got - $ms), '<', 0.05 * $ms,
			"$name, turn $t: the median TTFT is within 5 % of the model's $ms ms") or diag($got);
	}
}

my ($uncached, $off) = start('--no-enable-prefix-caching');
my ($cached, $on) = start('--enable-prefix-caching');
my $expected = expect_histories();
for my $case ([$uncached, serve_end($off), 0, 'without a cache'],
	[$cached, serve_end($on), 1, 'with a cache']) {
	my ($sims, $run, $has_cache, $name) = @$case;

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	is($run->{result}{sessions}{completed}, CONVERSATIONS, "$name: all conversations ended");
	histories_are_right($sims, $expected, $name);
	ttfts_are_right($run, $sims, $has_cache, $name);
}

done_testing();
