#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Requests with keys of their own: rows of custom, sets of a mix, compiled workloads; what is sent,
# shown and recorded, and what a server that knows no such key is said to have refused.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use IO::Socket::IP ();
use JSON::PP ();
use Test::More;

my @serve = (qw(bench serve), @{$tiny{model}}, qw(--temperature 0.25 --progress none
	--request-id-prefix r- --num-prompts 3 --disable-shuffle));
my @custom = (qw(--dataset-name custom --skip-chat-template --custom-output-len 4));
my $json = JSON::PP->new->canonical;

# The bodies and the heads as the simulator received them, by request.
sub sent {
	my ($sim) = @_;
	my %sent;

	stop_all();
	for my $line (lines_of('sent.jsonl')) {
		my $id = $line->{request_id} // $line->{headers}{'x-request-id'} // next;
		$sent{$id} = $line;
	}
	unlink 'sent.jsonl';
	return \%sent;
}

sub body { my ($line) = @_; return ref $line->{body} ? $line->{body} : json_of($line->{body}) }

# ---- rows ----

spew('rows.jsonl', join '', map { "$_\n" }
	'{"prompt": "Name a river.", "priority": 2, "headers": {"X-Tenant": "a b", "User-Agent": "mine"}}',
	'{"prompt": "Name a sea.", "temperature": 0.75, "max_tokens": 7, '
		. '"extra_body": {"top_k": 9, "x": {"y": 1}}}',
	'{"prompt": "Name a lake."}');
my $sim = start_sim(qw(--tokenizer sim --scheduling-policy priority --requests sent.jsonl));
my $r = run(args => [@serve, @custom, qw(--dataset-path rows.jsonl --extra-body.top_k 3 --header X-Tenant=c
	--save-result --save-detailed --result-filename rows.json --record rows.rec --base-url),
		$sim->{url}]);
is($r->{status}, 0, 'rows with keys of their own') or diag($r->{err});
is($r->{err}, '', 'without a warning');
my $sent = sent($sim);
my ($river, $sea, $lake) = map { body($sent->{"r-$_"}) } 0 .. 2;
is_deeply([map { [@$_{qw(priority temperature top_k max_tokens)}] } $river, $sea, $lake],
	[[2, 0.25, 3, 4], [undef, 0.75, 9, 7], [undef, 0.25, 3, 4]],
	'the row over the run, the run over the built body');
is_deeply($sea->{x}, { y => 1 }, 'any member of extra_body');
my $text = join "\n",
	map { ref $_->{headers} ? $json->encode($_->{headers}) : $_->{head} // '' }
	map { $sent->{"r-$_"} } 0 .. 2;
like((split /\n(?=\{)/, $text)[0], qr/a b/, 'a header of the row');
unlike((split /\n(?=\{)/, $text)[0], qr/"c"|: c\b|profllm\//, 'in place of the run\'s of that name');
my $result = json_of(slurp('rows.json'));
is_deeply($result->{profllm}{requests}{priority}, [2, 0, 0], 'the priority of each');
is_deeply([map { [@$_{qw(priority requests completed failed)}] } @{$result->{profllm}{priorities}}],
	[[0, 2, 2, 0], [2, 1, 1, 0]], 'the result by priority');
like($r->{out},
	qr{^-+Priorities-+\n.*^Priority\ 0\ requests/failed:\ +2\ /\ 0\ *\n.*^Priority\ 0\ TTFT\ p50/p99/max
	.*^Priority\ 2\ requests/failed:\ +1\ /\ 0\ *$}msx,
	'and the report');
is_deeply($result->{output_lens}, [4, 7, 4], 'answers as long as each was asked for');
my $score = run(args => [qw(bench score rows.rec --save-result --result-filename again.json)]);
is($score->{status}, 0, 'a record is scored') or diag($score->{err});
is_deeply(json_of(slurp('again.json'))->{profllm}{priorities}, $result->{profllm}{priorities},
	'with the same priorities');

# ---- shown and compiled ----

sub dump_of {
	my ($file) = @_;
	my $r = run(args => [@serve, qw(--dry-run --dump-workload), $file, @_[1 .. $#_]]);

	is($r->{status}, 0, "dump $file") or diag($r->{err});
	return ($r->{out}, slurp($file));
}
my ($out, $dump) = dump_of('a.dump', @custom, qw(--dataset-path rows.jsonl));
ok(matches($out, "*\nRequests with keys of their own: 2 in the body, 1 in headers\n"
	. "Priorities: 0: 2 requests, 2: 1 request\n"),
	'--dry-run says so');
my @rows = map { json_of($_) } split /\n/, $dump;
is_deeply([map { [$_->{overrides}, $_->{headers}] } @rows],
	[[{ priority => 2 }, { 'X-Tenant' => 'a b', 'User-Agent' => 'mine' }],
	[{ top_k => 9, x => { y => 1 }, temperature => 0.75, max_tokens => 7 }, undef], [undef, undef]],
	'--dump-workload has them');
$r = run(args => [qw(dataset show --tokenizer sim --num-prompts 3 --disable-shuffle), @custom,
	qw(--dataset-path rows.jsonl)]);
ok(matches($r->{out}, "*\n    overrides: *priority*\n    headers: *X-Tenant*"), 'dataset show, too');
$r = run(args => [qw(dataset compile --tokenizer sim --num-prompts 3 --disable-shuffle --output w.bin),
	@custom,
	qw(--dataset-path rows.jsonl)]);
is($r->{status}, 0, 'dataset compile') or diag($r->{err});
is((dump_of('b.dump', qw(--dataset-name workload --dataset-path w.bin)))[1], $dump, 'and it is read again');

# ---- a mix ----

my $mix = $json->encode([
	{ weight => 1, 'dataset-name' => 'random', random_input_len => 8, random_output_len => 4,
		priority => 1, headers => { 'X-Set' => 'one' }, 'extra_body' => { top_k => 2 },
			max_tokens => 5 },
	{ weight => 1, 'dataset-name' => 'custom', 'dataset-path' => 'rows.jsonl',
		'skip-chat-template' => JSON::PP::true,
		'custom-output-len' => 4, priority => 7, temperature => 0.125 }]);
($out, $dump) = dump_of('mix.dump', qw(--dataset-name mix --mix), $mix, qw(--num-prompts 12));
my (%of, @wrong);
for my $row (map { json_of($_) } split /\n/, $dump) {
	my $o = $row->{overrides} || {};
	if ($row->{prompt} !~ /^Name a/) {
		$of{random}++;
		push @wrong, $row unless $o->{priority} == 1 && $o->{top_k} == 2 && $row->{output_len} == 5
			&& $row->{headers}{'X-Set'} eq 'one';
		next;
	}
	$of{custom}++;
	my %want = ('Name a river.' => [2, 0.125, 4], 'Name a sea.' => [7, 0.75, 7],
		'Name a lake.' => [7, 0.125, 4]);
	push @wrong, $row unless $json->encode([0 + $o->{priority}, 0 + $o->{temperature},
		$row->{output_len}])
		eq $json->encode($want{$row->{prompt}});
}
is_deeply(\@wrong, [],
	'sets of a mix have keys, and their rows come over them') or diag($json->encode(\@wrong));
ok($of{random} && $of{custom}, 'both sets are there');
for my $row (['"priority" must be a whole number of 64 bits*got "high"', priority => 'high'],
	['"headers" must be an object of names and texts*', headers => ['a']],
	['"frobnicate" is neither an option of a dataset nor a key of its requests*', frobnicate => 1]) {
	my ($why, %key) = @$row;
	check_run("mix: $why", run(args => [@serve, qw(--dry-run --dataset-name mix --mix),
		$json->encode([{ 'dataset-name' => 'random', %key }])]), { status => 2,
		err => "profllm bench serve: *--mix: *$why" });
}

# ---- classes at random ----

($out) = dump_of('classes.dump', qw(--dataset-name random --num-prompts 200 --priority-classes), '0:3,5:1');
my ($zero, $five) = $out =~ /^Priorities: 0: (\d+) requests, 5: (\d+) requests$/m;
is(($zero || 0) + ($five || 0), 200, 'every request has a class');
cmp_ok($zero || 0, '>', 2 * ($five || 0), 'by shares');
check_run('classes beside priorities of rows', run(args => [@serve, qw(--dry-run --priority-classes),
	'0:1,1:1', @custom,
	qw(--dataset-path rows.jsonl)]), { status => 2,
	err => 'profllm bench serve: --priority-classes: requests of this dataset have priorities already' });

# ---- what is refused ----

for my $row (['"priority" must be a whole number of 64 bits (the lower, the earlier), got "high"',
	'"priority": "high"'],
	['"extra_body" must be an object of members for the request\'s body, got 3', '"extra_body": 3'],
	['"headers" must be an object of names and texts, got []', '"headers": []'],
	['"headers": "Content-Length" is set by profllm itself; leave it out',
		'"headers": {"Content-Length": "1"}'],
	['"headers": "X" is not a valid header*', '"headers": {"X": "a\r\nY: b"}']) {
	my ($why, $key) = @$row;
	spew('bad.jsonl', "{\"prompt\": \"a\"}\n{\"prompt\": \"b\", $key}\n");
	check_run("row: $why", run(args => [@serve, qw(--dry-run), @custom, qw(--dataset-path bad.jsonl)]),
		{ status => 2, err => "profllm bench serve: bad.jsonl:2: $why" });
}

# ---- servers that do not know the keys ----

# Answers requests without a priority, or of priority 0, and refuses others with this text.
sub server {
	my ($refusal) = @_;
	my $listen = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 64) or die $@;
	my $pid = fork // die "fork: $!";

	return ($pid, $listen->sockport) if $pid;
	while (my $c = $listen->accept) {
		my ($head, $body) = ('', '');
		$head .= $_ while defined($_ = <$c>) && !/^\r?\n$/;
		read $c, $body, $1 if $head =~ /^Content-Length: (\d+)/mi;
		my $is_refused = $body =~ /"priority": [1-9]|structured_outputs/;
		my $answer = $is_refused ? $refusal
			: qq(data: {"choices":[{"text":"a","finish_reason":"stop"}]}\n\ndata: [DONE]\n\n);
		print $c 'HTTP/1.1 ', $is_refused ? '400 Bad Request' : '200 OK', "\r\nContent-Type: ",
			$is_refused ? 'application/json' : 'text/event-stream', "\r\nConnection: close\r\n",
			'Content-Length: ', length $answer, "\r\n\r\n", $answer;
		close $c;
	}
	exit 0;
}

for my $row (['named', '{"error": "priority scheduling is not enabled"}',
		'the request has that key: --omit-body-keys priority removes it', '"priority": 1'],
	['not named', '{"error": "bad request"}',
		'this request has the additional keys priority,top_k: --omit-body-keys removes such keys',
		'"priority": 1, "top_k": 2'],
	['a constraint', '{"error": "Extra inputs are not permitted: structured_outputs"}',
		'the request has that key: --omit-body-keys structured_outputs removes it',
		'"structured_outputs": {"choice": ["a"]}']) {
	my ($name, $refusal, $hint, $key) = @$row;
	spew('refused.jsonl', "{\"prompt\": \"a\"}\n{\"prompt\": \"b\", $key}\n{\"prompt\": \"c\"}\n");
	my ($pid, $port) = server($refusal);
	$r = run(args => [@serve, @custom,
		qw(--dataset-path refused.jsonl --ready-check-timeout-sec 0 --base-url),
		"http://127.0.0.1:$port"]);
	kill 'KILL', $pid;
	waitpid $pid, 0;
	like($r->{out}, qr/^Successful requests: +2 *$/m,
		"$name: the others are answered") or diag($r->{err});
	like($r->{out}, qr/\Q$hint\E/, "$name: the report has the key");
}

done_testing();
