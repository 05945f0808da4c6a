#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Traces of production servers, replayed from a file to the simulator: what it received and what the
# report says of the schedule and of shared prefixes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @serve = qw(bench serve --report full --model sim --tokenizer sim --temperature 0 --progress none
	--request-id-prefix t- --dataset-name trace);

sub rows { return join '', map { "$_\n" } @_ }
sub mooncake {
	my ($ms, $in, $out, @ids) = @_;
	return qq({"timestamp": $ms, "input_length": $in, "output_length": $out, "hash_ids": [)
		. join(', ', @ids) . ']}';
}

# Ten rows of three blocks that begin alike, two that share two blocks, one without an answer.
spew('mooncake.jsonl', rows((map { mooncake($_ * 20, 48, 3, 1, 100 + $_, 200 + $_) } 0 .. 9),
	mooncake(200, 40, 2, 7, 8, 9), mooncake(220, 44, 2, 7, 8, 10), mooncake(240, 44, 0, 7, 8, 10)));
spew('conv.csv', rows('TIMESTAMP,ContextTokens,GeneratedTokens', '2023-11-16 18:15:46.6805900,374,44',
	'2023-11-16 18:15:50.9951690,396,109', '2023-11-16 18:15:51.2224670,879,55'));
spew('backwards.jsonl', rows(map { mooncake($_ * 1000, 5, 1, 1) } 0, 5, 3));
spew('unknown.csv', rows('when,what', '1,2'));

sub dry {
	my ($name, $e, @args) = @_;
	unlink 'w.jsonl';
	my $r = run(args => [@serve, @args, qw(--dry-run --dump-workload w.jsonl)]);
	check_run($name, $r, { status => 0, %$e });
	return map { json_of($_) } split /\n/, slurp('w.jsonl') // '';
}

# Case A1, at once and ten times as fast.
for my $speedup (1, 10) {
	my @got = dry("Azure at speed-up $speedup",
		{ out => ["trace: azure (found by its content), 3 requests, speed-up $speedup, *"] },
		qw(--dataset-path conv.csv --speedup), $speedup);
	is_deeply([map { [$_->{due_s} + 0, $_->{prompt_len}, $_->{output_len}] } @got],
		[[0, 374, 44], [4.314579 / $speedup, 396, 109], [4.541877 / $speedup, 879, 55]],
		'due times and lengths') or diag(explain(\@got));
}

my @sorted = dry('a trace that is sorted', {}, qw(--dataset-path backwards.jsonl --sort-trace));
is_deeply([map { $_->{due_s} + 0 } @sorted], [0, 3, 5], 'in the order of its times'); # case M5

my @short = dry('prompts as short as upstream makes them', { warn => ['*--compat timed-trace-short*'] },
	qw(--dataset-path mooncake.jsonl --trace-block-size 8 --compat timed-trace-short));
is($short[0]{prompt_len}, 24, 'three ids of eight tokens');

# ---- sent ----

my $sim = start_sim(qw(--requests asked.jsonl));
my @at = ('--port', $sim->{port});
my $run = run(args => [@serve, @at, qw(--dataset-path mooncake.jsonl --trace-block-size 16 --speedup 2
	--record run.record --save-result --result-filename r.json)]);
# A cache knows 9 x 16 and 32 tokens of 10 x 48 + 40 + 44.
my $share = sprintf '%.2f', 100 * (9 * 16 + 32) / 564;
check_run('a Mooncake trace', $run, { status => 0,
	warn => ['WARNING: mooncake.jsonl: 1 row is not sent: no answer or no prompt tokens'],
	out => ['Successful requests: * 12 *', "trace: mooncake *, ideal hit rate $share %",
		'Trace: * mooncake, speed-up 2', 'Planned span (s): * 0.11 *',
		"Ideal prefix hit rate (%): * $share *", "Prefix cache hit rate (%): * $share *",
		'Requests later than 1 ms (%): *', 'Client lag p50/p99/max (ms): *'] });
my $trace = json_of(slurp('r.json'))->{profllm}{trace};
ok($trace->{format} eq 'mooncake' && $trace->{speedup} == 2 && abs($trace->{planned_span_s} - 0.11) < 1e-9
	&& $trace->{sent_span_s} > 0.1 && $trace->{rate_share} > 0 && $trace->{rate_share} < 1.1
	&& $trace->{late_share} >= 0 && abs(100 * $trace->{ideal_hit_rate} - $share) < 0.01
	&& !defined $trace->{prefix_exact}, 'the result says so') or diag(explain($trace));

my @body = grep { $_->{stream} } map { json_of(json_of($_)->{body} || '{}') }
	split /\n/, slurp('asked.jsonl');
is(scalar @body, 12, 'so many requests arrived');
my @by_time = sort { $a->{max_tokens} <=> $b->{max_tokens} || @{$a->{prompt}} <=> @{$b->{prompt}} } @body;
ok(!(grep { $_->{min_tokens} != $_->{max_tokens} || !$_->{ignore_eos} } @body),
	'answers have the recorded length');
is("@{$by_time[0]{prompt}}[0 .. 31]", "@{$by_time[1]{prompt}}[0 .. 31]", 'two blocks are shared');
isnt("@{$by_time[0]{prompt}}[32 .. 39]", "@{$by_time[1]{prompt}}[32 .. 39]", 'and the third is not');

# ---- options of other arrivals ----

for my $load ([qw(--request-rate 100)],
	[qw(--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2)]) {
	my $r = run(args => [@serve, @at, qw(--dataset-path mooncake.jsonl --duration 0.09 --save-result
		--result-filename r.json), @$load]);
	check_run("a trace with @$load", $r, { status => 0, warn => ['*is not sent*',
		"WARNING: $load->[0] has no effect: requests are sent at the workload's times *"],
		out => ['5 requests to sim: 5 succeeded*'], not_out => ['Request rate configured*'] });
	is(json_of(slurp('r.json'))->{request_rate}, 'inf', 'and in its result');
}

# ---- sessions ----

# Answers take about 0.3 s. The second turn is due long before the first has ended, the third long
# after the second has.
sub turn {
	my ($id, $parent, $at, $turn, $input) = @_;
	return qq({"chat_id": $id, "parent_chat_id": $parent, "timestamp": $at, "input_length": $input, )
		. qq("output_length": 4, "type": "text", "turn": $turn, "hash_ids": [1, $id]});
}
spew('bailian.jsonl', rows(turn(1, -1, 0, 1, 20), turn(2, 1, 0.05, 2, 21), turn(3, 2, 2, 3, 22),
	turn(4, -1, 2.1, 1, 23)));
my $slow = start_sim(qw(--ttft-ms 300 --itl-ms 1));
for my $waits (0, 1) {
	my $r = run(args => [@serve, '--port', $slow->{port}, qw(--dataset-path bailian.jsonl --save-result
		--save-detailed --result-filename s.json), $waits ? '--sessions' : ()]);
	check_run($waits ? 'turns that wait' : 'turns by the clock alone', $r, { status => 0,
		out => ['Successful requests: * 4 *'] });
	my $d = json_of(slurp('s.json'));
	my %at; # by prompt tokens: first, second, third turn, and the other session
	for my $i (0 .. 3) {
		$at{$d->{input_lens}[$i]} = { sent => $d->{profllm}{requests}{sent_ns}[$i] / 1e9,
			ended => $d->{profllm}{requests}{end_ns}[$i] / 1e9 };
	}
	my $begin = $at{20}{sent};
	is($at{21}{sent} > $at{20}{ended}, !!$waits, $waits ? 'a turn waits for the end of its parent'
		: 'a turn is sent before its parent has ended');
	cmp_ok($at{22}{sent} - $begin, '>', 1.99, 'and is not sent before its time');
	cmp_ok($at{23}{sent} - $begin, '>', 2.09, 'nor is another session');
}

# ---- our own record ----

my @again = dry('a record', { out => ['trace: record (found by its content), 12 requests, *'] },
	qw(--dataset-path run.record));
is_deeply([map { "$_->{prompt_len} $_->{output_len}" } @again], [('48 3') x 10, '40 2', '44 2'],
	'lengths as recorded') or diag(explain(\@again));
ok(abs($again[11]{due_s} - 0.11) < 1e-6, 'and the times that the requests were due at');

# ---- texts ----

my @text = dry('as chat', { out => ['trace: *, shared prefixes exact in 100.00 % of the prompts'] },
	qw(--dataset-path mooncake.jsonl --trace-block-size 16 --backend openai-chat
	--endpoint /v1/chat/completions));
is(substr($text[10]{prompt}, 0, 128), substr($text[11]{prompt}, 0, 128), 'words are shared');

# ---- refused ----

for my $row (
	['a time that runs backwards', 2, 'backwards.jsonl:3: the time is 3.0 s, which is before that of an '
		. 'earlier row, 5.0 s; --sort-trace puts the rows in the order of their times',
		qw(--dataset-path backwards.jsonl)],
	['columns of no trace', 2, 'unknown.csv:2: no known trace has the columns when, what; *',
		qw(--dataset-path unknown.csv)],
	['another family', 2, 'conv.csv:2: no "timestamp"; a row of a Mooncake trace has timestamp, *',
		qw(--dataset-path conv.csv --trace-format mooncake)],
	['a unit for dates', 2, '--trace-time-unit ms: times of an Azure trace have no unit to choose',
		qw(--dataset-path conv.csv --trace-time-unit ms)],
	['a window of nothing', 2, '--trace-start: expected at most --trace-end, 1, got 2',
		qw(--dataset-path conv.csv --trace-start 2 --trace-end 1)],
	['no speed', 2, '--speedup: expected *', qw(--dataset-path conv.csv --speedup 0)],
) {
	my ($name, $status, $err, @args) = @$row;
	check_run($name, run(args => [@serve, @args, '--dry-run']), { status => $status, err => "*$err" });
}
my $other = run(args => [qw(bench serve --model sim --tokenizer sim --dry-run --speedup 2)]);
check_run('no trace', $other, { status => 0,
	warn => ['WARNING: --speedup has no effect: the dataset is random'] });

stop_all();
done_testing();
