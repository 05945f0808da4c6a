#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# suite: shared
# bench multi-turn: which requests are sent in which order, with which histories, and what is
# written of them. Acceptance cases S1 to S11 and H1 of the specification; `c:m` is the request of
# conversation c that carries m messages.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp ();
use IO::Uncompress::Unzip ();
use JSON::PP ();
use LoadTest;
use Test::More;
use TurnServer;

my $dir = File::Temp->newdir('multi-turn-XXXXXX', TMPDIR => 1);
my $n_files = 0;

# A file with conversations of so many messages: "q<c>.<turn>" is asked, "d<c>.<turn> ..." is the data's
# answer.
sub conversations
{
	my @messages = @_;
	my $path = "$dir/c" . $n_files++ . '.json';
	my @all;

	for my $c (0 .. $#messages) {
		push @all, { id => "c$c", messages => [map { my $t = int($_ / 2); $_ % 2
			? { role => 'assistant', content => "d$c.$t" . ' x' x $t }
			: { role => 'user', content => "q$c.$t" } } 0 .. $messages[$c] - 1] };
	}
	open(my $f, '>', $path) or die "$path: $!";
	print $f JSON::PP->new->canonical->encode(\@all);
	close $f;
	return $path;
}

sub last_of { return $_[0]{messages}[-1]{content}; }

# What the server says to a question: "re <question>".
sub replies { return 're ' . last_of($_[0]); }

# A run against a server with these answers: { status, out, err, asked, order }.
sub turns
{
	my ($messages, $answer, @args) = @_;
	my $s = turn_server($answer || \&replies);
	my %run;

	@run{qw(status out err)} = profllm('bench', 'multi-turn', '-i', conversations(@$messages), '-m',
		'sim', '-u', $s->{url}, '--progress', 'none', @args);
	$run{asked} = [asked($s)];
	$run{order} = join ' ', map { order_of($_) } @{ $run{asked} };
	turn_server_end($s);
	return \%run;
}

sub order_of
{
	my ($asked) = @_;
	my @messages = @{ $asked->{body}{messages} };
	my ($c) = $messages[-1]{content} =~ /^q(\d+)/;
	return "$c:" . @messages;
}

my $four = [4, 4, 4, 4];
my $fails = sub { my ($body, $n) = @_; return last_of($body) eq 'q1.0' ? [500] : replies($body) };
my $fails_once = sub {
	my ($body, $n) = @_;
	return last_of($body) eq 'q1.0' && $n == 2 ? [500] : replies($body);
};

# name, messages, answers, options, expected order, expected in the output
my @orders = (
	['S1', $four, undef, [], '0:1 0:3 1:1 1:3 2:1 2:3 3:1 3:3', qr/^Conversations: 4, 4 finished$/m],
	['S2', $four, undef, [qw(-k 2 --compat multi-turn-abandon)], '1:1 0:1 1:3 2:1 0:3 3:1 2:3',
		qr/^Conversations: 4, 3 finished, 1 unfinished$/m],
	['S2o', $four, undef, [qw(-k 2)], '1:1 0:1 1:3 2:1 0:3 3:1 2:3 3:3', qr/4 finished/],
	['S3', [6, 6, 6, 6], undef, [qw(-k 3 --compat abandon)],
		'2:1 1:1 0:1 2:3 1:3 0:3 2:5 3:1 1:5', qr/2 finished, 2 unfinished/],
	['S4', $four, undef, [qw(-k 2 --conversation-sampling random --seed 0 --compat abandon)],
		'0:1 0:3 2:1 1:1 2:3 3:1 3:3', qr/3 finished, 1 unfinished/],
	['S5', [8, 8], undef, [qw(--max-turns 3)], '0:1 0:3 1:1 1:3', qr/2 finished/],
	['S5 with 2', [8, 8], undef, [qw(--max-turns 2)], '0:1 1:1', qr/2 finished/],
	['S6', [2, 4, 6], undef, [qw(--warmup-step)], '0:1 1:1 2:1 1:3 2:3 2:5',
		qr/2 finished, 1 only in the warm-up$/m],
	['S7', $four, undef, [qw(-k 2 -n 3)], '1:1 0:1 1:3', qr/1 finished, 1 unfinished, 2 not begun/],
	['S10', [3], undef, [qw(--output-len 5)], '0:1 0:3', qr/1 finished/],
	['S11', $four, $fails, [], '0:1 0:3 1:1 2:1 2:3 3:1 3:3',
		qr/3 finished, 1 dropped after a failed request/],
	['a retry', [4, 4], $fails_once, [qw(--max-retries 1)], '0:1 0:3 1:1 1:1 1:3', qr/2 finished/],
);
for my $case (@orders) {
	my ($name, $messages, $answer, $args, $want, $said) = @$case;
	my $run = turns($messages, $answer, @$args);

	is($run->{order}, $want, "$name: the order of requests") or diag($run->{err});
	like($run->{out}, $said, "$name: what became of the conversations");
	is($run->{status}, 0, "$name: exit status 0");
}

# What the warm-up sent is no part of the main run, but its answers are what second turns continue:
# each of them has 7 cached tokens of 6 whole blocks (100 tokens of a prompt and 2 of an answer).
{
	my $run = turns([4, 4], undef, '--warmup-step', '--save-result', '--result-dir', "$dir/warm",
		'--result-filename', 'result.json', '--record', "$dir/warm.record");
	my ($out, $result) = ($run->{out}, read_json("$dir/warm/result.json"));
	my $again = (profllm('bench', 'score', "$dir/warm.record"))[1];

	is_deeply([@{$result}{qw(num_prompts completed failed)},
		@{ $result->{sessions} }{qw(n completed unfinished turns turns_unsent)}],
		[2, 2, 0, 2, 2, 0, 2, 0], '--warmup-step: the conversations that it began are complete');
	is($result->{sessions}{reuse_efficiency}, 7 / 96, '... and so is what they reused');
	unlike($out, qr/[Uu]nsent|Never sent/, '... nothing is called unsent');
	is_deeply([$out =~ /^ +(\d+) +\d+ +[\d.]+ .* 7\.0$/mg], [2], '... the first turns have no row');
	like($again, qr/reusable ones \(%\): +7\.29/, '... also scored again');
}

# S8: the history is what the server said. S9: lengths are the data's, whatever it said.
{
	my $run = turns($four, sub { 'A' }, '-k', 2);
	my @bad;

	for my $r (@{ $run->{asked} }) {
		my ($c) = last_of($r->{body}) =~ /^q(\d+)/;
		my @want = map { ("q$c.$_", 'A') } 0 .. 1;
		my @got = map { $_->{content} } @{ $r->{body}{messages} };
		my @roles = map { $_->{role} } @{ $r->{body}{messages} };
		push @bad, order_of($r) if "@got" ne "@want[0 .. $#got]"
			|| "@roles" !~ /^user( assistant user)*$/;
	}
	is("@bad", '', 'S8: histories hold the answers of the server');
	my ($second) = grep { order_of($_) eq '0:3' } @{ $run->{asked} };
	# "d0.1 x" is 6 bytes, and as many tokens of the simulator's tokenizer.
	is($second->{text}, '{"model": "sim", "messages": [{"role": "user", "content": "q0.0"}, '
		. '{"role": "assistant", "content": "A"}, {"role": "user", "content": "q0.1"}], '
		. '"seed": 0, "temperature": 0.0, "stream": true, "stream_options": '
		. '{"include_usage": true}, "min_tokens": 6, "max_tokens": 6}',
		'S9: the body, byte for byte');
	ok(!exists $second->{headers}{'x-session-id'}, 'no session header unless it is asked for');
}

# Members and headers by options; H1.
{
	my $run = turns([2], undef, qw(--send-conversation-id --no-stream --limit-min-tokens -1
		--limit-max-tokens -1 --api-key k --header), 'A: b', '--header', 'X=http://h', '--header',
		'authorization=mine', '--served-model-name', 'other');
	my $r = $run->{asked}[0];

	is($r->{text}, '{"model": "other", "messages": [{"role": "user", "content": "q0.0"}], '
		. '"seed": 0, "temperature": 0.0, "conversation_id": "c0"}',
		'a body without stream and limits');
	is($r->{headers}{'x-session-id'}, 'c0', '... and the header of --send-conversation-id');
	is($r->{headers}{a}, 'b', 'H1: KEY: VALUE');
	is($r->{headers}{x}, 'http://h', 'H1: the first separator counts');
	is($r->{headers}{authorization}, 'Bearer k', '--api-key takes precedence');
	is($run->{status}, 0, '... and the answer in one piece is one');
	$run = turns([2], undef, '--compat', 'usage', '--header', 'A=b', qw(--limit-min-tokens 3
		--limit-max-tokens 4 --extra-body), '{"temperature": 1, "x": [1]}');
	is($run->{asked}[0]{text}, '{"model": "sim", "messages": [{"role": "user", '
		. '"content": "q0.0"}], "seed": 0, "temperature": 1, "stream": true, "stream_options": '
		. '{"include_usage": false}, "min_tokens": 3, "max_tokens": 4, "x": [1]}',
		'limits, --compat usage, and --extra-body on top');
	is($run->{asked}[0]{headers}{a}, 'b', 'H1: KEY=VALUE');
}

# What is written.
{
	my $run = turns([4, 4], $fails, '-o', "$dir/out/said.json", '--stats-json-output',
		"$dir/out/stats.json", '--save-result', '--result-dir', "$dir/out",
		'--result-filename', 'result.json', '-v', '--print-content');
	my $said = read_json("$dir/out/said.json");
	my $stats = read_json("$dir/out/stats.json");
	my $result = read_json("$dir/out/result.json");
	my @keys = slurp("$dir/out/stats.json") =~ /^    "(\w+)":/mg;

	is_deeply($said, [
		{ id => 'c0', messages => [
			{ role => 'user', content => 'q0.0' },
			{ role => 'assistant', content => 're q0.0' },
			{ role => 'user', content => 'q0.1' },
			{ role => 'assistant', content => 're q0.1' }] },
		{ id => 'c1', finished => JSON::PP::false, messages => [
			{ role => 'user', content => 'q1.0' }, { role => 'assistant', content => 'd1.0' },
			{ role => 'user', content => 'q1.1' },
			{ role => 'assistant', content => 'd1.1 x' }] }], '-o: who said what');
	like(slurp("$dir/out/said.json"), qr/^\[\n    \{\n        "id"/, '... with indent 4');
	is("@keys[0 .. 14]", 'ttft_ms tpot_ms latency_ms start_time_ms input_num_turns '
		. 'input_num_tokens output_num_tokens output_num_chunks '
		. 'output_num_first_chunk_tokens approx_cached_percent conversation_id client_id '
		. 'server_prompt_tokens server_cached_tokens server_output_tokens',
		'--stats-json-output: keys in their order');
	is(scalar(@$stats), 2, '... of the requests that were answered');
	is_deeply([@{ $stats->[1] }{qw(input_num_turns input_num_tokens output_num_tokens
		output_num_chunks output_num_first_chunk_tokens conversation_id client_id
		server_cached_tokens)}], [3, 15, 7, 1, 2, 'c0', 0, 7],
		'... counted on the texts: 4 + 7 + 4 bytes, "re" and " q0.1"');
	is($stats->[1]{approx_cached_percent}, 100 * 11 / 15, '... all but the last question');
	is($result->{completed}, 2, '--save-result: the result of bench serve, too');
	like($run->{out}, qr/^input_num_tokens\s+2\.0\s+9\.5\d?(?:e\+00)?\s/m, 'the statistics');
	like($run->{out}, qr/^time_between_user_turns_sec\s+1\.0/m, '-v adds the time between turns');
	like($run->{out}, qr/turn 2, user:\nq0\.1\nassistant:\nre q0\.1\n/, '--print-content');
	like($run->{out}, qr/turn 1, user:\nq1\.0\nno answer: http_status\n/, '... of failures, too');
}

# The spreadsheet is named by the clients and the date, in the current folder.
{
	my $s = turn_server(\&replies);
	my $program = $PROFLLM =~ m{^/} ? $PROFLLM : "$ENV{PWD}/$PROFLLM";
	my $file = conversations(4, 4);
	my $pid = child_start("$dir/xlsx.out", "$dir/xlsx.err", '/bin/sh', '-c',
		'cd "$1" && shift && exec "$@"', 'sh', "$dir", $program, 'bench', 'multi-turn', '-i', $file,
		'-m', 'sim', '-u', $s->{url}, '-e', '-p', 2, '--no-early-stop', '--progress', 'none',
		'--warmup-percentages', '0%,50%');
	is(child_stop($pid), 0, '-e') or diag(slurp("$dir/xlsx.err"));
	turn_server_end($s);
	my ($path) = glob "$dir/statistics_2_clients__*.xlsx";
	like($path // '', qr/__\d\d-\d\d-\d{4}_\d\d-\d\d-\d\d\.xlsx$/, '... is named by its date');
	my %file;
	my $z = IO::Uncompress::Unzip->new($path) or die 'no archive';
	do {
		local $/;
		$file{ $z->getHeaderInfo->{Name} } = <$z>;
	} while ($z->nextStream > 0);
	my @shares = $file{'xl/worksheets/sheet1.xml'} =~ />runtime_sec</g;
	my @rows = $file{'xl/worksheets/sheet2.xml'} =~ /<row /g;
	is(scalar(@shares), 2, '... has a table for each percentage');
	is(scalar(@rows), 5, '... and a row for each request below the head');
	like(slurp("$dir/xlsx.out"), qr/Statistics summary \(assuming 50% warmup samples\):/,
		'... as the terminal has');
}

# --verify-output.
{
	my $like_data = sub {
		my ($q) = last_of($_[0]) =~ /^q(.*)/;
		my ($turn) = $q =~ /\.(\d+)/;
		return $q eq '2.0' ? 'other' : "d$q" . ' x' x $turn;
	};
	my $run = turns([4, 4], $like_data, '--verify-output');
	is($run->{status}, 0, '--verify-output: all as in the data');
	like($run->{out}, qr/^Answers: all are those/m, '... which is said');
	$run = turns($four, $like_data, '--verify-output');
	is($run->{status}, 1, 'one answer differs: exit status 1');
	is($run->{order}, '0:1 0:3 1:1 1:3 2:1 2:3 3:1 3:3', '... and the run goes on');
	like($run->{out}, qr/^Answers: 1 .* turn 1 of conversation c2$/m, '... and it is named');
	$run = turns($four, $like_data, '--verify-output=stop');
	is($run->{order}, '0:1 0:3 1:1 1:3 2:1', '=stop: it ends its client, and that the run');
	is($run->{status}, 1, '... exit status 1');
}

# Several clients: which one takes what depends on speed, what each request holds does not.
{
	my $run = turns([(6) x 120], undef, '-p', 8, '-k', 20, '--no-early-stop', '--threads', 2);
	my (%seen, @bad);

	for my $r (@{ $run->{asked} }) {
		my ($c, $t) = last_of($r->{body}) =~ /^q(\d+)\.(\d+)/;
		my @want = map { ("q$c.$_", "re q$c.$_") } 0 .. $t;
		my @got = map { $_->{content} } @{ $r->{body}{messages} };
		push @bad, order_of($r) if join('|', @got) ne join('|', @want[0 .. 2 * $t]);
		$seen{ order_of($r) }++;
	}
	is(scalar(keys %seen), 360, '8 clients: every turn is sent') or diag($run->{err});
	is(scalar(@{ $run->{asked} }), 360, '... once');
	is("@bad", '', '... with the whole history');
	like($run->{out}, qr/^Order of requests: by completion/m, '... in no fixed order, which is said');
}

# The first client without a conversation ends all, unless an option says otherwise.
{
	my @args = ([2, 12], sub { select(undef, undef, undef, 0.2) if last_of($_[0]) =~ /^q1/;
		replies($_[0]) }, '-p', 2);
	like(turns(@args)->{out}, qr/1 finished, 1 unfinished/, 'early stop');
	like(turns(@args, '--no-early-stop')->{out}, qr/2 finished/, '--no-early-stop');
}

# Conversations that are generated: parameters and statistics of them; each message of the user is
# sent, with the number of tokens that its answer was drawn with.
{
	my $s = turn_server(\&replies);
	open(my $text, '>', "$dir/text.txt") or die;
	print $text join('', 'a' .. 'z') x 231, "\n";
	close $text;
	open(my $f, '>', "$dir/generate.json") or die;
	print $f JSON::PP->new->encode({ filetype => 'generate_conversations', num_conversations => 2,
		text_files => ["$dir/text.txt"], print_stats => JSON::PP::true,
		prompt_input => { map { $_->[0] => { distribution => 'constant', value => $_->[1] } }
			['num_turns', 3], ['prefix_num_tokens', 0], ['num_tokens', 100] },
		prompt_output => { num_tokens => { distribution => 'constant', value => 10 } } });
	close $f;
	my ($status, $out, $err) = profllm('bench', 'multi-turn', '-i', "$dir/generate.json", '-m', 'sim',
		'-u', $s->{url}, '--progress', 'none');
	my @asked = map { $_->{body} } asked($s);

	is($status, 0, 'a generate_conversations file') or diag($err);
	is_deeply([map { scalar @{ $_->{messages} } } @asked], [1, 3, 1, 3],
		'G1: an odd number of messages becomes the next even one');
	is_deeply([map { @{$_}{qw(min_tokens max_tokens)} } @asked], [(10) x 8], '... answers of 10');
	like($out, qr/^Conversations:\n +count .* 99% +max\nconversation_turns +2\.0 /m,
		'print_stats: means of conversations');
	like($out, qr/^user_tokens +2\.0 +97\.0 /m,
		'... 100 tokens, three of which join their neighbours in the text');
	like($out, qr/^Requests:\n +count .*\nrequest_tokens +4\.0 /m, '... and of all requests');
	like($out, qr/^Conversations Generation Parameters:\ntext_files=.*\ninput_num_turns=Constant/m,
		'... and the parameters in the report');
	turn_server_end($s);
}

# Without usage the tokens of a prompt are counted, its history once.
for my $limits ([], [qw(--limit-min-tokens 2 --limit-max-tokens 2)],
	[qw(--limit-min-tokens -1 --limit-max-tokens -1)]) {
	my $run = turns([6, 4], sub { return 'as long as that' }, '--compat', 'usage', @$limits,
		'--stats-json-output', "$dir/u.json", '--save-result', '--result-dir', "$dir",
		'--result-filename', 'u-result.json');
	my $said = 0;

	$said += $_->{input_num_tokens} for @{ read_json("$dir/u.json") };
	is($run->{status}, 0, "no usage (@$limits)") or diag($run->{err});
	is(read_json("$dir/u-result.json")->{total_input_tokens}, $said, '... input tokens');
}

# --compat body: 0.32's script sends no seed, temperature and min_tokens.
{
	my $run = turns([2], undef, '--compat', 'body');
	is($run->{asked}[0]{text}, '{"model": "sim", "messages": [{"role": "user", "content": "q0.0"}], '
		. '"stream": true, "stream_options": {"include_usage": true}, "max_tokens": 4}',
		'--compat body');
	$run = turns([2], undef, '--no-stream', '--stats-json-output', "$dir/whole.json");
	is(read_json("$dir/whole.json")->[0]{output_num_first_chunk_tokens}, 0,
		'--no-stream: there is no first chunk');
}

# The alias, and a time limit.
{
	my $s = turn_server(sub { sleep 30; 'late' });
	my ($status, $out, $err) = profllm('benchmark_serving_multi_turn.py', '-i', conversations(2),
		'-m', 'sim', '--url', $s->{url}, '--request-timeout-sec', 1, '--progress', 'none');
	is($status, 1, "the script's name; a request that times out is a failure");
	like($err, qr/no request succeeded/, '... and nothing succeeded');
	turn_server_end($s);
}

done_testing();
