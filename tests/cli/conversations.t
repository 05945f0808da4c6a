#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Conversations and sessions from files and options: what would be sent, what is said of files that
# are not as they should be, and ShareGPT's files made into conversations.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

my @show = qw(dataset show --tokenizer sim --backend openai-chat --json --examples 100
	--request-id-prefix r-);

sub says { return { role => $_[0], content => $_[1] } }
sub file { my ($name, $value) = @_; spew($name, JSON::PP->new->canonical->utf8->encode($value)); $name }

# ---- what would be sent ----

# The requests of dataset show, conversation by conversation; a failure is shown.
sub shown {
	my $r = run(args => [@show, @_]);

	is($r->{status}, 0, "@_") or diag $r->{err};
	my @all = $r->{status} ? () : @{ json_of($r->{out})->{examples} };
	@all = sort { $a->{session} <=> $b->{session} || $a->{turn} <=> $b->{turn} } @all;
	return @all;
}

sub messages { return [map { $_->{messages} } @_] }

my $talk = file('chats.json', [
	{ id => 'a', messages => [says(system => 'short'), says(user => 'one'), says(assistant => 'ONE'),
		says(user => 'two')] },
	{ id => 2, messages => [says(user => 'three'), says(assistant => 'III')] },
]);
my @turns = shown('--dataset-name', 'conversations', '--dataset-path', $talk);
is_deeply(messages(@turns), [[says(system => 'short'), says(user => 'one')], [says(user => 'two')],
	[says(user => 'three')]], 'S10: each message of the user is a request, the last one too');
is_deeply([map { $_->{prompt_len} } @turns], [8, 14, 5], 'with its history as prompt length');
is_deeply([map { $_->{output_len} } @turns], [3, undef, 3], 'and the length of the recorded answer');
is(scalar shown('--dataset-name', 'conversations', '--dataset-path', $talk, '--num-prompts', 1), 2,
	'--num-prompts counts conversations');
is_deeply([map { $_->{output_len} } shown('--dataset-name', 'conversations', '--dataset-path', $talk,
	'--output-len', 9)], [9, 9, 9], '--output-len rules all answers');

spew('book.txt', join '', ('a' .. 'z') x 200);
my $constant = sub { { distribution => 'constant', value => $_[0] + 0 } };
my %generator = (filetype => 'generate_conversations', num_conversations => 2,
	text_files => ['book.txt'],
	prompt_input => { num_turns => $constant->(3), prefix_num_tokens => $constant->(0),
		num_tokens => $constant->(100) },
	prompt_output => { num_tokens => $constant->(10) });
is(scalar shown('--dataset-name', 'conversations', '--dataset-path', file('gen.json', \%generator)), 4,
	'conversations are made up from a generator file');

my @random = shown(qw(--multi-turn --num-prompts 2 --multi-turn-num-turns 3 --random-input-len 20
	--per-turn-input-len 10 --random-output-len 5));
is_deeply([map { $_->{prompt_len} } @random], [20, 35, 50, 20, 35, 50], '--multi-turn: random texts');
is_deeply($random[0]{overrides}, { min_tokens => 5 }, 'answers have the length asked for');
is($random[4]{request_id}, 'r-conv-1-turn1', 'ids name conversation and turn');

# Rows of a hub dataset, in either spelling; those with fewer than four messages are left out.
mkdir 'talks';
spew('talks/train.jsonl', join '', map { JSON::PP->new->encode($_) . "\n" }
	{ messages => [says(system => 's'), says(user => 'u1'), says(assistant => 'answer'),
		says(user => 'u2'), says(assistant => 'aa'), says(user => 'u3')] },
	{ conversations => [{ from => 'human', value => 'h1' }, { from => 'gpt', value => 'g1' },
		{ from => 'human', value => 'h2' }, { from => 'gpt', value => 'g22' }] },
	{ messages => [says(user => 'short'), says(assistant => 'x')] }, { text => 'none' });
my @hub = qw(--dataset-name hf --dataset-path talks --multi-turn --disable-shuffle);
my @talks = shown(@hub, '--num-prompts', 2);
is_deeply([map { $_->{messages}[0]{content}[0]{text} } @talks], [qw(u1 u2 h1 h2)],
	'hf: users, each with the message that follows');
is_deeply([map { $_->{output_len} } @talks], [6, 2, 2, 3], 'and the length of its answer');
is_deeply([map { $_->{output_len} } shown(@hub, '--num-prompts', 1, '--hf-output-len', 9)], [9, 9],
	'or the one asked for');
is(scalar shown(@hub, '--num-prompts', 5), 10, 'more are copies');

spew('agents.jsonl', join '', map { JSON::PP->new->encode($_) . "\n" }
	{ id => 's', turn => 'plan', messages => [says(user => 'p')] },
	{ id => 's', turn => 'x', history => 'plan', messages => [says(user => 'x')] },
	{ id => 's', turn => 'y', history => 'plan', messages => [says(user => 'y')] },
	{ id => 's', history => 'x', waits => ['x', 'y'], gap => 0.5, messages => [says(tool => 'j')] });
is(scalar shown(qw(--dataset-name sessions --dataset-path agents.jsonl)), 4, 'sessions with branches');

# ---- compiled ----

# A workload file gives the plan that its dataset gave: every line of what would be sent and when.
spew('mixed.jsonl', join '', map { JSON::PP->new->canonical->encode($_) . "\n" }
	(map { ({ id => $_, turn => 'plan', timestamp => 0.5 * length,
			messages => [says(user => "p$_")] },
		{ id => $_, turn => 'x', history => 'plan', gap => 'exponential:2', priority => -3,
			headers => { 'X-Tenant' => $_ }, messages => [says(user => 'x')],
			extra_body => { structured_outputs => { choice => ['a', 'b'] } } },
		{ id => $_, turn => 'y', history => 'plan', gap => 1, gap_from => 'start',
			messages => [says(user => 'y')], output_tokens => 4 },
		{ id => $_, turn => 'new', history => undef, waits => ['x'],
			messages => [says(user => 'n')] },
		{ id => $_, history => 'y', waits => ['y', 'x', 'new'], gap => 'uniform:0.1,3',
			gap_kind => 'tool', messages => [says(tool => 'j')] }) } 's', 'tt', 'uuu'));
my @serve = qw(--model m --tokenizer sim --backend openai-chat --endpoint /v1/chat/completions
	--request-id-prefix r-);
my $plan = sub {
	my ($name, @args) = @_;
	my $r = run(args => ['bench', 'serve', @serve, '--dry-run', '--dump-workload', '-', @_[1 .. $#_]]);

	is($r->{status}, 0, "plan of $name") or diag $r->{err};
	return $r->{out} =~ s/ from dataset \S+;//r;
};
for my $row (['conversations', qw(--dataset-name conversations --dataset-path chats.json --num-prompts 2)],
	['a generator', qw(--dataset-name conversations --dataset-path gen.json --num-prompts 2)],
	['random conversations', qw(--multi-turn --num-prompts 4 --random-input-len 20),
		'--multi-turn-turns-dist', 'uniform:1,5', '--multi-turn-delay-dist', 'exponential:500'],
	['sessions', qw(--dataset-name sessions --dataset-path mixed.jsonl --num-prompts 3)]) {
	my ($name, @args) = @$row;
	my ($n) = "@args" =~ /--num-prompts (\d+)/;
	my @file = ('--dataset-name', 'workload', '--dataset-path', 'w.bin', '--num-prompts', $n);
	my $r = run(args => ['dataset', 'compile', @serve, @args, '--output', 'w.bin']);

	is($r->{status}, 0, "compiled: $name") or diag $r->{err};
	for my $load ([], ['--request-rate', 3],
		['--request-rate', 3, '--seed', 4, '--think-time', 'uniform:1,2'],
		['--user-centric-rate', 2, '--num-users', 2]) {
		my @data = "@$load" =~ /seed/ && $name =~ /random|sessions/ ? () : @$load;
		is($plan->("$name, compiled, @data", @file, @data), $plan->("$name, @data", @args, @data),
			"$name: line for line");
	}
}
my ($whole, $part) = map { $plan->("$_ sessions", qw(--dataset-name workload --dataset-path w.bin
	--num-prompts), $_) } 3, 2;
is(scalar(() = $part =~ /"session": /g), 10, '--num-prompts counts the conversations of a workload file');
my $lines_of = sub { join '', map { s/"(index|after|history)": \w+//gr } grep { /^\{/ && !/"session": 2/ }
	split /^/, $_[0] };
is($lines_of->($whole), $lines_of->($part), 'and takes the first ones');
is(run(args => ['bench', 'serve', @serve, qw(--dataset-name workload --dataset-path w.bin --num-prompts 4
	--dry-run)])->{err} =~ s/.*?: //r, "w.bin holds 3 conversations, and --num-prompts asks for 4\n",
	'not more than there are');

# ---- bad input ----

# name, arguments, exit status, what is said
for my $row (
	['a missing tokenizer is no reason', [qw(dataset show --skip-tokenizer-init --backend openai-chat
		--dataset-name conversations --dataset-path chats.json)], 0, ''],
	['conversations need a chat API', [qw(dataset show --tokenizer sim --dataset-name conversations
		--dataset-path chats.json)], 2, 'conversations are sent as chat messages; use openai-chat'],
	['two users in a row', [@show, qw(--dataset-name conversations --dataset-path),
		file('users.json', [{ id => 'a', messages => [says(user => 'x'), says(user => 'y')] }])], 2,
		"users.json: row 0: conversation 'a': messages[1]: two messages of the user in a row"],
	['null content', [@show, qw(--dataset-name conversations --dataset-path),
		file('null.json', [{ id => 'a', messages => [says(user => undef)] }])], 2,
		'messages[0]: "content" must be a text or a list of parts, got null'],
	['a text that is too short', [@show, qw(--dataset-name conversations --dataset-path),
		file('short.json', { %generator, prompt_input => { %{$generator{prompt_input}},
			num_turns => $constant->(40) }, text_files => ['chats.json'] })], 2,
		'prompt_input.num_tokens: conversation 0, turn '],
	['a turn that is unknown', [@show, qw(--dataset-name sessions --dataset-path),
		spew('unknown.jsonl', qq({"id": "s", "waits": ["z"], "messages": [{"role": "user", )
			. qq("content": "x"}]}\n))], 2, 'unknown.jsonl:1: "waits" names turn \'z\''],
	['rows without conversations', [@show, qw(--multi-turn --num-prompts 2 --dataset-name hf),
		'--dataset-path', do { mkdir 'plain';
			spew('plain/train.jsonl', qq({"text": "x"}\n)); 'plain' }], 2,
		'plain: no conversation has enough turns; a row is an object with a list "conversations"'],
	['turns out of range', [@show, qw(--multi-turn --multi-turn-min-turns 5 --multi-turn-max-turns 4)], 2,
		'--multi-turn-min-turns 5 is above --multi-turn-max-turns 4'],
	['ratios that leave nothing', [@show, qw(--multi-turn --multi-turn-prefix-global-ratio 0.5
		--multi-turn-prefix-conversation-ratio 0.5)], 2, 'their sum must be below 1'],
	['another API', [qw(dataset show --tokenizer sim --backend openai --multi-turn)], 2,
		'only --backend openai-chat carries conversations'],
	['another dataset', [@show, qw(--multi-turn --dataset-name burstgpt --dataset-path chats.json)], 2,
		'--multi-turn: conversations are made of --dataset-name random, sharegpt or hf, not of'],
	['an option without its switch', [@show, qw(--multi-turn-delay-ms 5 --num-prompts 1)], 0,
		'--multi-turn-delay-ms has no effect without --multi-turn'],
) {
	my ($name, $args, $status, $said) = @$row;
	my $r = run(args => $args);

	is($r->{status}, $status, $name) or diag $r->{err};
	like($r->{err}, qr/\Q$said\E/, "$name: what is said");
}

# ---- ShareGPT's files ----

sub says_raw { return { from => $_[0], value => $_[1] } }
my $raw = file('raw.json', [
	{ id => 'b_1', conversations => [says_raw(human => 'B2'), says_raw(gpt => 'b2')] },
	{ id => 'b_0', conversations => [says_raw(gpt => 'skipped'), says_raw(human => 'B1'),
		says_raw(gpt => 'b1')] },
	{ id => 'c_0', conversations => [says_raw(human => 'C'), says_raw(gpt => 'c')] },
	{ id => 'c_1', conversations => [says_raw(gpt => 'again'), says_raw(human => 'D'),
		says_raw(bard => 'd')] },
	{ id => 'x_0', conversations => [says_raw(human => "caf\x{e9}"), says_raw(gpt => 'x')] },
	{ id => 'y_0', conversations => [says_raw(human => 'a'), says_raw(human => 'b')] },
	{ id => 'z_0', conversations => [] },
]);

sub converted {
	my $r = run(args => [qw(dataset convert-sharegpt raw.json out.json), @_]);

	is($r->{status}, 0, "convert @_") or diag $r->{err};
	return ({ map { $_->{id} => join ' ', map { "$_->{role}:$_->{content}" } @{$_->{messages}} }
		@{ json_of(slurp('out.json')) } }, $r->{out});
}

my ($got, $said) = converted();
is_deeply($got, { b => 'user:B1 assistant:b1 user:B2 assistant:b2',
	c => 'user:C assistant:c user:D assistant:d' },
	'parts are joined by their numbers, repeated speakers and other languages dropped');
like($said, qr/2 conversations of 7 items \(4 joined\)/, 'counts are reported');
like($said, qr/not ASCII: 1/, 'and why the others were dropped');
($got) = converted('--any-language');
is($got->{x}, "user:caf\x{e9} assistant:x", 'other languages on request');
($got) = converted(qw(--max-turns 3));
is_deeply($got, { b => 'user:B1 assistant:b1', c => 'user:C assistant:c user:D' },
	'a first message that is skipped counts for --max-turns, as upstream');
($got) = converted(qw(--min-turns 5));
is_deeply([keys %$got], ['b'], '--min-turns counts it, too');
($got) = converted(qw(--max-items 1 --seed 3));
is(scalar keys %$got, 1, '--max-items draws');
for my $row (
	[[qw(raw.json)], 2, 'expected two files'],
	[[qw(raw.json out.json --min-turns 4 --max-turns 3)], 2, '--min-turns 4 is above --max-turns 3'],
	[[qw(raw.json out.json --min-content-len 100)], 2, 'no conversation passes'],
	[[file('bad.json', [{ id => 'a_0', conversations => [says_raw(cat => 'x')] }]), 'out.json'], 2,
		"bad.json: row 0: \"from\": unknown speaker 'cat'"],
	[[qw(chats.json out.json)], 2, 'chats.json: row '],
) {
	my ($args, $status, $want) = @$row;
	my $r = run(args => [qw(dataset convert-sharegpt), @$args]);

	is($r->{status}, $status, "convert @$args") or diag $r->{err};
	like($r->{err}, qr/\Q$want\E/, 'what is said');
}

done_testing();
