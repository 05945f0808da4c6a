#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Answers of servers that are not vLLM: where usage comes, what a token event carries, how a
# stream ends. A scripted server replays each stream, one event every 5 ms.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use JSON::PP ();
use LoadTest;
use Relay;
use Test::More;

my $json = JSON::PP->new->canonical;

# One event: a structure is the data of one, a text is the whole event.
sub event_text
{
	my ($e) = @_;
	return ref $e ? 'data: ' . $json->encode($e) . "\n\n" : $e;
}

# A server that answers every request with these events, and always ends the HTTP message well.
sub replay
{
	my (@events) = @_;
	my @text = map { event_text($_) } @events;

	return relay_start(sub {
		my ($c) = @_;

		while (my ($head) = read_request($c)) {
			syswrite($c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" .
				"Transfer-Encoding: chunked\r\n\r\n");
			for my $text (@text) {
				select(undef, undef, undef, 0.005);
				syswrite($c, sprintf("%x\r\n%s\r\n", length $text, $text));
			}
			syswrite($c, "0\r\n\r\n");
		}
	});
}

sub run_against
{
	my ($events, @args) = @_;
	my $server = replay(@$events);
	my $run = serve($server, '--num-prompts', '2', '--max-concurrency', '1',
		'--random-output-len', '22', @args);

	relay_end($server);
	return $run;
}

sub delta { return { choices => [{ index => 0, delta => { @_ }, finish_reason => undef }] }; }
sub text { return { choices => [{ index => 0, text => $_[0], finish_reason => undef }] }; }

sub finish
{
	my ($reason, %more) = @_;
	return { choices => [{ index => 0, delta => {}, text => '', finish_reason => $reason }], %more };
}

sub tool_call
{
	my ($arguments, %more) = @_;
	return delta(tool_calls => [{ index => 0, function => { arguments => $arguments, %more } }]);
}

my @chat = qw(--backend openai-chat --endpoint /v1/chat/completions);
my $done = "data: [DONE]\n\n";
my %usage = (usage => { prompt_tokens => 16, completion_tokens => 22, total_tokens => 38 });
my $counts = { choices => [], %usage };
my @thoughts = map { delta(reasoning_content => " thought$_") } 1 .. 20;
my @answer = map { delta(content => " word$_") } 1 .. 2;
my @calls = (tool_call('', name => 'find'), map { tool_call(" part$_") } 2 .. 22);

# ---- how many tokens an answer has ----

# Of the two words of an answer the tokenizer `sim` makes 6 tokens. TPOT is of upstream's count.
my @token_cases = (
	{ name => 'usage with the last choice', events => [@thoughts, @answer,
		finish('stop', %usage), $done], lens => 6, best => 22, ignored => 2, short => 2 },
	{ name => 'usage with the last choice, --fix usage', args => [qw(--fix usage)],
		events => [@thoughts, @answer, finish('stop', %usage), $done], lens => 22, best => 22 },
	{ name => 'reasoning and an answer, no usage', events => [@thoughts, @answer, finish('stop'),
		$done], lens => 6, best => 'more', short => 2 },
	{ name => 'reasoning and an answer, no usage, --fix all-text', args => [qw(--fix all-text)],
		events => [@thoughts, @answer, finish('stop'), $done], lens => 'more', best => 'more' },
	{ name => 'reasoning alone, no usage', events => [@thoughts, finish('length'), $done],
		lens => 0, best => 'more', short => 2 },
	{ name => 'a tool call, usage with the last choice', events => [@calls,
		finish('tool_calls', %usage), $done], lens => 0, best => 22, ignored => 2, short => 2 },
	{ name => 'a tool call, no usage, --fix all-text', args => [qw(--fix all-text)],
		events => [@calls, finish('tool_calls'), $done], lens => 'more', best => 'more' },
	{ name => 'a refusal, no usage, --fix all-text', args => [qw(--fix all-text)],
		events => [(map { delta(refusal => " no$_") } 1 .. 22), finish('stop'), $done],
		lens => 'more', best => 'more' },
	{ name => 'reasoning and an answer, usage at the end', events => [@thoughts, @answer,
		finish('stop'), $counts, $done], lens => 22, best => 22 },
	{ name => 'usage in every event', events => [(map { { %$_, %usage } } @thoughts, @answer),
		finish('stop', %usage), $counts, $done], lens => 22, best => 22 },
);

for my $case (@token_cases) {
	my $name = $case->{name};
	my $run = run_against($case->{events}, @chat, '--goodput', 'tpot:1000',
		@{ $case->{args} || [] });
	my ($result, $own) = @{$run}{qw(result own)};
	my @lens = @{ $result->{output_lens} };
	my ($itl) = $result->{mean_itl_ms};

	is_deeply([@{$result}{qw(completed failed)}], [2, 0], "$name: both succeed")
		or diag($run->{err});
	# Without usage the text is counted, and this tokenizer makes more than one id of a word.
	if ($case->{lens} eq 'more') {
		cmp_ok($_, '>=', 22, "$name: no fewer tokens than events") for @lens;
	} else {
		is("@lens", "$case->{lens} $case->{lens}", "$name: output_lens");
	}
	if ($case->{best} eq 'more') {
		cmp_ok($own->{best_output_tokens}, '>=', 2 * 20, "$name: the best known count");
		cmp_ok($own->{best_output_tokens}, '>', $result->{total_output_tokens},
			"$name: is above the one reported") if $case->{short};
	} else {
		is($own->{best_output_tokens}, 2 * $case->{best}, "$name: the best known count");
	}
	is($own->{requests_usage_ignored}, $case->{ignored} // 0, "$name: requests whose usage was ignored");
	is($own->{requests_count_short}, $case->{short} // 0, "$name: counted short");
	is($own->{requests_with_usage}, $name =~ /no usage/ ? 0 : 2, "$name: requests with usage");
	if ($case->{ignored}) {
		is($own->{usage_differs_share}, 1, "$name: the count is unlike usage");
		like($run->{out}, qr/^Token count unlike usage \(% of req\.\): +100\.00/m,
			"$name: and the report says so");
	}
	# The gaps are 5 ms and more: nothing is faster, whatever the count.
	cmp_ok($own->{best_tpot_ms}{mean}, '<', 1.2 * $itl + 1, "$name: the best known TPOT is no slower")
		or diag("ITL $itl");
	if ($case->{lens} eq '0') {
		is($result->{mean_tpot_ms}, 0, "$name: upstream's TPOT has no value");
		is($result->{request_goodput}, 0, "$name: an unknown TPOT meets no limit");
	} else {
		cmp_ok($result->{request_goodput}, '>', 0, "$name: goodput");
	}
	like($run->{out}, qr/^Output tokens, best known: +\Q$own->{best_output_tokens}\E\b/m,
		"$name: the report has the best known count")
		if $own->{best_output_tokens} != $result->{total_output_tokens};
}

# An event with a tool call or a refusal is not an empty one.
{
	my $run = run_against([@calls, finish('tool_calls'), $counts, $done], @chat);

	is($run->{own}{usage_differs_share}, 0, 'tool calls: as many tokens as events');
	cmp_ok(abs($run->{own}{not_one_token_share} - 1 / 23), '<', 1e-9,
		'tool calls: one event in 23 is empty');
}

# ---- which event is the first token ----
{
	my @role = (delta(role => 'assistant', content => ''), map { ": wait\n\n" } 1 .. 20);
	my @rest = (@answer, finish('stop'), $counts, $done);
	my $run = run_against([@role, @rest], @chat);
	my $own = $run->{own};

	is($own->{requests_role_first}, 2, 'a role long before the content: seen');
	cmp_ok($run->{result}{mean_ttft_ms} + 50, '<', $own->{ttft_content_ms}{mean},
		'a role long before the content: the time to content is the later one');
	$run = run_against([@role, @rest], @chat, '--compat', 'role-chunk');
	is($run->{own}{requests_role_first}, 0, 'the same, --compat role-chunk: left out');
	cmp_ok(abs($run->{result}{mean_ttft_ms} - $run->{own}{ttft_content_ms}{mean}), '<', 0.001,
		'the same, --compat role-chunk: TTFT is the time to content');
	$run = run_against([$role[0], @calls, finish('tool_calls'), $counts, $done], @chat);
	is($run->{own}{ttft_content_ms}{n}, 2, 'a tool call is content');
	$run = run_against([@answer, finish('stop'), $counts, $done], @chat);
	is($run->{own}{requests_role_first}, 0, 'no role: none is seen');
}

# ---- longer and shorter than asked ----
{
	my @rest = (@answer, finish('length'), $counts, $done);
	my %want = (22 => [0, 0], 16 => [2, 0], 40 => [0, 2]);

	for my $asked (sort keys %want) {
		my $run = run_against(\@rest, @chat, '--random-output-len', $asked);

		is_deeply([@{ $run->{own} }{qw(requests_longer_than_asked requests_shorter_than_asked)}],
			$want{$asked}, "22 tokens, $asked asked: longer, shorter");
	}
	my $run = run_against(\@rest, @chat, '--extra-body', '{"max_tokens": 16}');
	is($run->{own}{requests_longer_than_asked}, 2, 'what the extra body asks for counts');
	$run = run_against(\@rest, @chat, '--extra-body', '{"max_tokens": 11, "n": 2}');
	is($run->{own}{requests_longer_than_asked}, 0, 'so do several answers to a request');
}

# ---- how a stream ends ----

my @two = (text('a'), text('b'));
my $boom = '{"code":500,"message":"boom","type":"server_error"}';
my @end_cases = (
	['cut after two tokens', [@two], { truncated => 2 }, qr/without a finish reason/],
	['a finish reason, no [DONE]', [@two, finish('stop')], {}],
	['[DONE], no finish reason', [@two, $done], {}],
	['closing usage alone', [@two, $counts], {}],
	['object: error', [@two, { object => 'error', message => 'CUDA out of memory', code => 500 },
		$done], { stream_error => 2 }, qr/CUDA out of memory/],
	['event: error with a detail', [@two, "event: error\ndata: {\"detail\":\"boom\"}\n\n", $done],
		{ stream_error => 2 }, qr/boom/],
	['event: error with a text', [@two, "event: error\ndata: boom\n\n", $done],
		{ stream_error => 2 }, qr/^boom$/],
	['a detail', [@two, { detail => 'boom' }, $done], { stream_error => 2 }, qr/boom/],
	['a message with a code', [@two, { message => 'boom', code => 500 }, $done],
		{ stream_error => 2 }, qr/boom/],
	['type: error', [@two, { type => 'error', message => 'boom' }, $done],
		{ stream_error => 2 }, qr/boom/],
	['the field error:', [@two, "error: $boom\n\n", $done], { stream_error => 2 }, qr/boom/],
	['an error in place of everything', [{ object => 'error', message => 'boom' }],
		{ stream_error => 2 }, qr/boom/],
	['an unknown event', [@two, { choices => [], prompt_filter_results => [] }, { note => 'x' },
		finish('stop'), $done], {}],
	['finish_reason abort', [text('a'), finish('abort'), $counts, $done], { stream_error => 2 },
		qr/finish_reason is "abort"/],
	['finish_reason error', [text('a'), finish('error'), $counts, $done], { stream_error => 2 },
		qr/finish_reason is "error"/],
);

for my $case (@end_cases) {
	my ($name, $events, $want, $text) = @$case;
	my $run = run_against($events);
	my $failed = 0;

	$failed += $_ for values %$want;
	is_deeply(failures($run), $want, "$name: categories") or diag($run->{out});
	is_deeply([@{ $run->{result} }{qw(completed failed)}], [2 - $failed, $failed], "$name: counts");
	like($run->{own}{failures}[0]{examples}[0]{text}, $text, "$name: the text") if $text;
	next unless $failed && $name !~ /place of everything/;
	$run = run_against($events, '--compat', 'stream-error');
	is_deeply([@{ $run->{result} }{qw(completed failed)}], [2, 0],
		"$name, --compat stream-error: a success, as upstream");
}

# Chat ends by the same rule; audio: tests/unit/test_endpoint.c.
is_deeply(failures(run_against([@answer], @chat)), { truncated => 2 }, 'chat: cut');
is_deeply(failures(run_against([@answer, { object => 'error', message => 'x' }, $done], @chat)),
	{ stream_error => 2 }, 'chat: object: error');

# Impossible counts are not used: the answer is counted, the prompt is as long as was stated.
for my $case (['above all that was asked for', 16, 1e6], ['the largest there is', 16,
	'9223372036854775807'], ['beyond that', 16, '99999999999999999999'], ['below zero', 16, -9],
	['a prompt like no other', 3_000_000_000, 2]) {
	my ($name, $prompt, $output) = @$case;
	my $run = run_against([@two, finish('stop'), "data: {\"choices\":[],\"usage\":{"
		. "\"prompt_tokens\":$prompt,\"completion_tokens\":$output}}\n\n", $done]);
	my ($result, $own) = @$run{qw(result own)};
	my ($reason) = grep { $_->{code} eq 'usage_refused' } @{ $own->{reasons} };

	is_deeply([@$result{qw(completed total_input_tokens total_output_tokens)}], [2, 32, 4],
		"$name: counted by us") or diag(explain($own->{failures}));
	is($own->{requests_usage_refused}, 2, "$name: the result says so");
	is($own->{verdict} eq 'VALID' ? 1 : 0, 0, "$name: so does the verdict");
	like($reason->{text} // '', qr/impossible token counts with 100\.0 % of the answers/,
		"$name: with a reason");
	like($run->{out}, qr/impossible token counts/, "$name: which is in the report");
	like($run->{out}, qr/^Requests with impossible counts: +2 *$/m, "$name: with their number");
}
# Twice of what was asked for is an answer that is too long, and no lie.
is(run_against([@two, finish('stop'), { choices => [], usage => { prompt_tokens => 16,
	completion_tokens => 44 } }, $done])->{own}{requests_usage_refused}, 0, 'a bit more: taken');

# Why answers ended.
{
	my $run = run_against([@two, finish('length'), $counts, $done]);

	is($run->{own}{finish_reasons}{length}, 2, 'finish reasons are counted');
	is($run->{own}{finish_reasons}{stop}, 0, 'each by itself');
	like($run->{out}, qr/^Finish reasons: +length 2 *$/m, 'finish reasons: in the report');
	$run = run_against([@two, finish('content_filter'), $counts, $done]);
	like($run->{out}, qr/^Finish reasons: +content_filter 2 *$/m, 'a filter: in the report');
	$run = run_against([@two, finish('eos_by_another_name'), $counts, $done]);
	like($run->{out}, qr/^Finish reasons: +other 2 *$/m, 'an unknown one: in the report');
}

# ---- the Responses API ----

sub response { my ($type, %more) = @_; return { type => "response.$type", %more }; }

my $completed = response('completed', response => { status => 'completed', usage => {
	input_tokens => 16, output_tokens => 9 } });
my @responses = qw(--backend openai-responses --endpoint /v1/responses);
my @kinds = qw(function_call_arguments mcp_call_arguments custom_tool_call_input
	reasoning_summary_text reasoning_text refusal audio.transcript output_text);

for my $kind (@kinds) {
	my $run = run_against([response('created'), (map { response("$kind.delta", delta => "x$_") }
		1 .. 9), response("$kind.done"), $completed], @responses);

	is_deeply([@{ $run->{result} }{qw(completed failed total_output_tokens)}], [2, 0, 18],
		"responses, $kind: tokens") or diag($run->{out});
	is($run->{own}{token_events}, 18, "responses, $kind: events");
	is($run->{own}{not_one_token_share}, 0, "responses, $kind: none is empty");
	is($run->{result}{generated_texts}[0], $kind eq 'output_text' ? join('', map { "x$_" } 1 .. 9)
		: '', "responses, $kind: text");
}
{
	my $run = run_against([response('created'), response('unheard_of.delta', delta => 'x'),
		$completed], @responses);
	is_deeply(failures($run), { no_tokens => 2 }, 'responses: an unknown delta is no token');
	$run = run_against([response('output_text.delta', delta => 'x'), response('incomplete',
		response => { incomplete_details => { reason => 'max_output_tokens' }, usage => {
		input_tokens => 16, output_tokens => 1 } })], @responses);
	is($run->{own}{finish_reasons}{length}, 2, 'responses: incomplete by its length');
}

done_testing;
