#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Conversations: what each turn says, when it is sent, what follows a failure, and the report.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my @chat = ('--backend', 'openai-chat', '--endpoint', '/v1/chat/completions');
my @multi = (@chat, '--multi-turn', '--request-id-prefix', 'r');

sub bodies { return grep { $_->{path} =~ /chat/ } read_lines($_[0]{requests}) }
sub content
{
	my ($message) = @_;
	my $content = $message->{content};
	return ref $content ? join('', map { $_->{text} } @$content) : $content;
}

# S8: every message history that the server received is the expected one, and its answers its own.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1', '--enable-prompt-tokens-details');
	my $run = serve($sim, @multi, '--num-prompts', '30', '--max-concurrency', '8', '--threads', '2',
		'--report-cached-tokens', '--goodput', 'session_duration:600000',
		'--record', "$dir/run.rec");
	my ($result, %said, %asked, @wrong) = ($run->{result});
	my $own = $run->{own}{requests};

	is($run->{status}, 0, 'history: exit status') or diag($run->{err});
	for my $i (0 .. $#{ $own->{session} }) {
		$said{"rconv-$own->{session}[$i]-turn$own->{turn}[$i]"} = $result->{generated_texts}[$i];
	}
	is(scalar(keys %said), 90, 'history: each conversation has its turns');
	for my $b (bodies($sim)) {
		my @message = @{ decode_body($b) };
		my ($conversation, $turn) = $b->{request_id} =~ /^(rconv-\d+)-turn(\d+)$/;

		$asked{ $b->{request_id} } = content($message[-1]);
		is($b->{headers}{'x-session-id'}, substr($conversation, 1), "$b->{request_id}: header")
			if $turn == 2;
		push @wrong, "$b->{request_id} has " . @message . ' messages' if @message != 2 * $turn + 1;
		for my $t (0 .. $turn - 1) {
			my $id = "$conversation-turn$t";
			push @wrong, "$b->{request_id}: not what $id asked"
				if content($message[2 * $t]) ne $asked{$id};
			push @wrong, "$b->{request_id}: not what $id was told"
				if content($message[2 * $t + 1]) ne $said{$id};
		}
	}
	is(join('; ', @wrong), '', 'history: what was asked and answered, in turn');
	my $s = $result->{sessions};
	is_deeply([@$s{qw(n completed failed unfinished turns turns_completed)}], [30, 30, 0, 0, 90, 90],
		'report: outcomes');
	my @turn = @{ $result->{per_turn_metrics} };
	is(scalar @turn, 3, 'report: a block per turn');
	is_deeply([map { $_->{completed} } @turn], [30, 30, 30], 'report: requests by turn');
	cmp_ok($turn[2]{context_tokens}{mean}, '>', $turn[0]{context_tokens}{mean}, 'report: contexts grow');
	my $tokens = 0;
	$tokens += $_->{total_output_tokens} for @turn;
	is($tokens, $result->{total_output_tokens}, 'report: tokens of all turns are those of the run');
	cmp_ok($turn[1]{cached_share}, '>', 0, 'report: later turns find their history cached');
	ok(abs($s->{goodput} - $s->{throughput}) < 1e-9, 'report: all conversations were short enough');
	like($run->{out}, qr/^-+Conversations-+\n.*^ +3 +30 /ms, 'report: the block on the terminal');
	my ($status, $out) = profllm('bench', 'score', '--report', 'full', "$dir/run.rec");
	my ($report) = $run->{out} =~ /(=+ Serving Benchmark Result =.*)/s;
	my ($again) = $out =~ /(=+ Serving Benchmark Result =.*)/s;
	is($again, $report, 'report: bench score prints the same');
}

# What an earlier run left in the server's prefix cache is found out: a turn may find the turns before
# it, not its own message.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1', '--enable-prompt-tokens-details');
	my @talk = (@multi, qw(--num-prompts 4 --multi-turn-num-turns 4 --random-input-len 300
		--per-turn-input-len 200 --max-concurrency 2));
	my @doubts = map { my $run = serve($sim, @talk);
		[scalar(grep { $_->{code} eq 'prefix_cache' } @{ $run->{own}{reasons} }),
		$run->{out} =~ /^More was cached than earlier turns explain/m ? 1 : 0] } 1, 2;
	is_deeply(\@doubts, [[0, 0], [1, 1]], 'only the second run had prompts of an earlier one cached');
}

sub decode_body { return JSON::PP->new->decode($_[0]{body})->{messages} }

# R2: two conversations of two turns, one request at a time, in the form of the Rust client.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my $run = serve($sim, @multi, '--num-prompts', '2', '--multi-turn-num-turns', '2',
		'--multi-turn-concurrency', '1', '--multi-turn-delay-ms', '0');
	my @body = bodies($sim);
	my %messages = map { $_->{request_id} => decode_body($_) } @body;
	my @ids = map { $_->{request_id} } @body;
	my %said;

	is($run->{status}, 0, 'R2: exit status') or diag($run->{err});
	my $own = $run->{own}{requests};
	$said{"rconv-$own->{session}[$_]-turn$own->{turn}[$_]"} = $run->{result}{generated_texts}[$_]
		for 0 .. $#{ $own->{session} };
	is_deeply([sort @ids], [map { ("rconv-$_-turn0", "rconv-$_-turn1") } 0, 1],
		'R2: four requests, and their ids');
	my @truth = truth_of($sim);
	my @overlaps = grep { $truth[$_]{recv_ns} < $truth[$_ - 1]{send_ns}[-1] } 1 .. $#truth;
	is("@overlaps", '', 'R2: one at a time');
	for my $c (0, 1) {
		my ($first, $second) = @messages{"rconv-$c-turn0", "rconv-$c-turn1"};
		is_deeply([map { $_->{role} } @$second], [qw(user assistant user)], "R2: conversation $c");
		is_deeply($second->[0], $first->[0], '... begins as it did');
		is(ref $second->[1]{content}, '', '... the answer is a plain text');
		is($second->[1]{content}, $said{"rconv-$c-turn0"}, '... and the server\'s own');
		is_deeply([map { [ref $_->{content}, scalar @{ $_->{content} }, $_->{content}[0]{type}] }
			@$second[0, 2]], [(['ARRAY', 1, 'text']) x 2],
			'... the user\'s are lists of one text part');
	}
}

# --on-turn-failure: what follows the failed turn of one conversation of four.
for my $how ('drop', 'continue') {
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1', '--fault', 'status=500:id=rconv-1-turn1');
	my $run = serve($sim, @multi, '--num-prompts', '4', '--on-turn-failure', $how);
	my $s = $run->{result}{sessions};
	my @body = grep { $_->{request_id} =~ /conv-1-/ } bodies($sim);

	is($s->{failed}, 1, "$how: one conversation failed");
	is($s->{completed}, 3, "$how: the others did not");
	is($s->{turns_cancelled}, $how eq 'drop' ? 1 : 0, "$how: what follows is cancelled");
	is(scalar @body, $how eq 'drop' ? 2 : 3, "$how: or sent");
	is($run->{result}{failed}, 1, "$how: one request failed");
	is(content(decode_body($body[2])->[3]), '', "$how: with an empty answer") if $how eq 'continue';
}

# --duration ends between turns: the rest of what began is counted, what did not begin is no part.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my $run = serve($sim, @multi, '--request-rate', '20', '--duration', '1', '--think-time', '30');
	my ($s, $result) = ($run->{result}{sessions}, $run->{result});

	is($run->{status}, 0, 'duration: exit status') or diag($run->{err});
	like($run->{out}, qr{ to sim at 20 conversations/s: }, '... the rate is that of conversations');
	cmp_ok($s->{n}, '>', 10, 'duration: conversations began');
	is($s->{unfinished}, $s->{n}, 'duration: none could finish');
	is($s->{turns_unsent}, 2 * $s->{n}, 'duration: two turns of each were not sent');
	is($s->{n}, scalar(bodies($sim)), 'duration: as many as the server had');
	is($result->{completed}, $s->{n}, 'duration: each sent one request');
}

# --max-sessions 1: one conversation after the other, pauses included.
{
	my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
	my $run = serve($sim, @multi, '--num-prompts', '4', '--max-sessions', '1', '--think-time', '0.02');
	my @order = map { /conv-(\d)/ } map { $_->{request_id} } bodies($sim);

	is("@order", '0 0 0 1 1 1 2 2 2 3 3 3', 'max-sessions: conversations do not interleave');
	like($run->{out}, qr{^12 requests to sim, at most 1 conversation at once: }m, '... the summary too');
}

# With several servers a conversation stays where it began, or goes round.
for my $how ('url', 'spread', 'least-loaded') {
	my @balance = $how eq 'least-loaded' ? ('--balance', $how) : ('--session-affinity', $how);
	my @sim = map { sim('--ttft-ms', '2', '--itl-ms', '1') } 1 .. 2;
	my $run = serve(\@sim, @multi, '--num-prompts', '5', '--multi-turn-num-turns', '4',
		@balance);
	my %at;
	for my $k (0, 1) {
		$at{$_}{$k} = 1 for map { /conv-(\d)/ } map { $_->{request_id} } bodies($sim[$k]);
	}
	my @homeless = grep { keys %{ $at{$_} } > 1 } 0 .. 4;
	is(scalar @homeless, $how eq 'spread' ? 5 : 0, "affinity $how: servers of a conversation");
	is(scalar keys %{ { map { %$_ } values %at } }, 2, "affinity $how: both have some");
}

# U1 as a plan: four users at 2/s; the fifth conversation begins when slot 0 is free again.
{
	my ($status, $out, $err) = profllm('bench', 'serve', @multi, '--model', 'sim', '--tokenizer', 'sim',
		'--num-prompts', '5', '--user-centric-rate', '2', '--num-users', '4', '--dry-run',
		'--dump-workload', '-');
	my @line = map { JSON::PP->new->decode($_) } grep { /^\{/ } split /\n/, $out;

	is($status, 0, 'U1: exit status') or diag($err);
	is_deeply([map { $_->{due_s} } grep { !defined $_->{after} } @line], [0, 0.5, 1, 1.5, 6],
		'U1: users begin in turn, the next one of slot 0 after three gaps');
	is_deeply([map { $_->{due_s} } grep { defined $_->{after} } @line], [(2) x 10],
		'U1: two seconds between requests of a user');
}

# --think-time and --tool-time by a law: each pause is drawn by itself, from --seed, and the other
# kind of pause is left alone.
{
	my $turns = join '', map { my $id = $_; map { my $k = $_;
		sprintf qq({"id": "s%d", "messages": [{"role": "user", "content": "m"}], "gap": 7%s}\n), $id,
			$k % 2 ? ', "gap_kind": "tool"' : '' } 0 .. 4 } 1 .. 200;
	open my $file, '>', "$dir/tools.jsonl" or die;
	print $file $turns;
	close $file;
	my $gaps = sub {
		my ($status, $out, $err) = profllm('bench', 'serve', @chat, '--model', 'sim', '--dry-run',
			'--tokenizer', 'sim', '--dataset-name', 'sessions',
			'--dataset-path', "$dir/tools.jsonl", '--dump-workload', '-', @_);
		is($status, 0, "laws: @_") or diag($err);
		my @gap = map { $_->{due_s} } grep { defined $_->{after} } map { JSON::PP->new->decode($_) }
			grep { /^\{/ } split /\n/, $out;
		is(scalar @gap, 800, 'a pause before each later turn');
		return @gap;
	};
	my $mean = sub { my $sum = 0; $sum += $_ for @_; return $sum / @_ };
	my %seen;
	my @think = $gaps->('--think-time', 'exponential:2');
	my @other = grep { $_ != 7 } @think;
	is(scalar @other, 400, 'laws: pauses of tools stay');
	ok(abs($mean->(@other) - 2) < 0.5, 'laws: their mean is that of the law');
	$seen{$_}++ for @other;
	cmp_ok(scalar keys %seen, '>', 300, 'laws: each is drawn by itself');
	is(join(' ', $gaps->('--think-time', 'exponential:2')), "@think", 'laws: the same seed');
	isnt(join(' ', $gaps->('--think-time', 'exponential:2', '--seed', 1)), "@think", 'laws: another');
	my @both = $gaps->('--think-time', '0.25', '--tool-time', 'lognormal:3,0.5,1,10');
	is(scalar(grep { $_ == 0.25 } @both), 400, 'laws: a constant');
	@other = grep { $_ != 0.25 } @both;
	is(scalar(grep { $_ >= 1 && $_ <= 10 } @other), 400, "laws: a tool's time within its limits");
	ok(abs($mean->(@other) - 3) < 0.5, 'laws: and its mean');
}

# What does not fit together.
for my $case (
	[ [ @multi, '--num-users', '4' ], qr/^.*--num-users needs --user-centric-rate/m ],
	[ [ @multi, '--user-centric-rate', '4' ], qr/--user-centric-rate needs --num-users/ ],
	[ [ @multi, '--think-time', 'gauss:1' ], qr/--think-time gauss:1: expected seconds from 0 to a/ ],
	[ [ @multi, '--tool-time', 'normal:1' ],
	  qr/--tool-time normal:1: expected normal:MEAN,SD\[,MIN,MAX\]/ ],
	[ [ @multi, '--user-centric-rate', '4', '--num-users', '2', '--request-rate', '3' ],
	  qr/--user-centric-rate and --request-rate are mutually exclusive/ ],
	[ [ @chat, '--user-centric-rate', '4', '--num-users', '2' ], qr/has no conversations/ ],
	[ [ @multi, '--session-header', 'Content-Length' ], qr/--session-header 'Content-Length'/ ],
	[ [ @multi, '--goodput', 'session:5' ], qr/unknown metric 'session'; expected ttft, tpot, e2el or/ ],
) {
	my ($args, $message) = @$case;
	my ($status, $out, $err) = profllm('bench', 'serve', '--model', 'sim', '--tokenizer', 'sim',
		'--dry-run', '--num-prompts', '4', @$args);

	is($status, 2, "refused: @$args[-2, -1]");
	like($err, $message, 'with a sentence');
}

done_testing();
