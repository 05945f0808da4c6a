#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Structured output: which requests are constrained, how the server gets the constraint, and whether
# known right and wrong answers are scored as such. Numbers in brackets are acceptance cases of the
# specification.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use JSON::PP ();
use LoadTest;
use Relay;
use Test::More;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my @serve = qw(bench serve --model sim --tokenizer sim --dataset-name structured);

# The samples that would be sent.
sub dumped
{
	my ($status, $out, $err) = profllm(@serve, '--dry-run', '--dump-workload', "$dir/dump", @_);

	is($status, 0, "@_") or diag($err);
	return read_lines("$dir/dump");
}

sub constrained { return [grep { $_[$_]{overrides} } 0 .. $#_]; }

# ---- what is sent ----

my @choice = dumped(qw(--structured-dataset choice --num-prompts 4 --structured-output-ratio 0.5));
is_deeply(constrained(@choice), [1, 3], '[J5] the rows of Python\'s sample(range(4), 2)');
is_deeply($choice[1]{overrides}, { structured_outputs => { choice => ['Positive', 'Negative'] } },
	'[J5] and how they tell it');
my @headed = dumped(qw(--structured-dataset choice --num-prompts 3 --random-prefix-len 6));
like($headed[0]{prompt}, qr/.Classify this sentiment: vLLM is wonderful!$/s, '--random-prefix-len: a prefix');
is_deeply([map { $_->{prompt} } @headed], [($headed[0]{prompt}) x 3], '... the same for all');
my @ten = dumped(qw(--structured-dataset regex --num-prompts 10 --structured-output-ratio 0.5));
is_deeply(constrained(@ten), [0, 2, 4, 6, 9], '[J6] of ten, the first one among them');
is_deeply($ten[0]{overrides}, { structured_outputs => { regex => '\w+@\w+\.com\n' } }, 'a pattern');
my @old = dumped(qw(--structured-dataset choice --num-prompts 2 --constraint-form guided));
is_deeply($old[0]{overrides}, { guided_choice => ['Positive', 'Negative'] }, '[J5] the old member');
my @openai = dumped(qw(--num-prompts 1 --constraint-form response_format));
is($openai[0]{overrides}{response_format}{json_schema}{schema}{type}, 'object', 'OpenAI\'s member');
like($openai[0]{prompt}, qr/given the following schema: \{"type": "object", "properties": \{"name": /,
	'the schema as Python prints it');
my @unique = dumped(my @how = qw(--structured-dataset json-unique --num-prompts 3 --request-id-prefix r));
my %names = map { $_ => 1 } grep { /^__/ }
	map { keys %{ $_->{overrides}{structured_outputs}{json}{properties} } } @unique;
is(keys %names, 3, 'each schema has a property of its own');
like((keys %names)[0], qr/^__optional_field_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-/,
	'named by a UUID');
is_deeply([dumped(@how)], \@unique, 'by the seed');
my @grammar = dumped(qw(--structured-dataset grammar --num-prompts 1));
like($grammar[0]{overrides}{structured_outputs}{grammar}, qr/^\n        root ::= select_statement\n\n/,
	'a grammar');

# What arrives: the initial single request, a copy of the first one, and then all of them.
sub on_the_wire
{
	my $sim = sim(qw(--ttft-ms 1 --itl-ms 1));
	my $run = serve($sim, qw(--dataset-name structured --temperature 0 --max-concurrency 1
		--ready-check-timeout-sec 30), @_);
	is($run->{status}, 0, "@_") or diag($run->{err});
	return map { $json->decode($_->{body}) } grep { $_->{path} =~ /completions/ }
		read_lines($sim->{requests});
}
my @member = qw(structured_outputs guided_choice guided_regex response_format);
my $told = sub { my ($body) = @_; return { map { $_ => $body->{$_} } grep { exists $body->{$_} } @member } };
my ($initial, @sent) = on_the_wire(qw(--structured-dataset regex --num-prompts 10
	--structured-output-ratio 0.5));
is_deeply($told->($initial), { structured_outputs => { regex => '\w+@\w+\.com\n' } },
	'[J6] the initial single request is constrained, as row 0 is');
is_deeply([grep { %{ $told->($sent[$_]) } } 0 .. 9], [0, 2, 4, 6, 9],
	'[J6] and so are the rows that were drawn');
my @choices = qw(--structured-dataset choice --num-prompts 4 --structured-output-ratio 0.5);
($initial, @sent) = on_the_wire(@choices, qw(--constraint-form structured_outputs));
my $list = ['Positive', 'Negative'];
my $new = { structured_outputs => { choice => $list } };
is_deeply([map { $told->($_) } @sent], [{}, $new, {}, $new],
	'[J5] the new member in two bodies, and neither in the others');
($initial, @sent) = on_the_wire(@choices, qw(--constraint-form guided));
is_deeply([map { $told->($_) } @sent], [{}, { guided_choice => $list }, {}, { guided_choice => $list }],
	'[J5] and the old one');

# ---- mistakes ----

for my $case (
	[['--structured-dataset', 'choice', '--constraint-form', 'response_format'],
		qr/--constraint-form response_format carries JSON schemas alone/],
	[['--json-schema-path', "$dir/none.json"], qr/--json-schema-path.*none\.json/],
	[['--json-schema-path', "$dir/bad.json"], qr/bad\.json/],
	[['--structured-output-ratio', '1.5'], qr/--structured-output-ratio.*1\.5/],
) {
	open(my $f, '>', "$dir/bad.json") or die;
	print $f '{"type": "objekt"}';
	close $f;
	my ($status, $out, $err) = profllm(@serve, '--dry-run', @{ $case->[0] });
	like($err, $case->[1], "@{$case->[0]}: what is said");
	isnt($status, 0, 'and refused');
}

# ---- what is scored ----

sub event { return 'data: ' . $json->encode($_[0]) . "\n\n"; }

# Answers in the order of the requests, as the server's streams.
my $generated = 4;
sub answering
{
	my ($finish, @answers) = @_;

	return relay_start(sub {
		my ($c, $log) = @_;
		while (my ($head, $body) = read_request($c)) {
			if ($head !~ m{^POST /v1/completions}) {
				my $about = $head =~ m{/version} ? '{"version": "0.20.0"}' : '';
				syswrite($c, "HTTP/1.1 " . ($about ? '200 OK' : '404 Not Found')
					. "\r\nContent-Length: " . length($about) . "\r\n\r\n$about");
				next;
			}
			my $text = @answers > 1 ? shift @answers : $answers[0];
			my $stream = join '', map({ event($_) } { choices => [{ text => $text }] },
				{ choices => [{ text => '', finish_reason => $finish }] },
				{ choices => [], usage => { prompt_tokens => 9,
					completion_tokens => $generated } }),
				"data: [DONE]\n\n";
			syswrite($c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				. 'Content-Length: ' . length($stream) . "\r\n\r\n$stream");
		}
	});
}

sub run_against
{
	my ($server, @args) = @_;
	my $run = serve($server, '--dataset-name', 'structured', '--max-concurrency', 1, @args);
	relay_end($server) if ref $server;
	return $run;
}

my %person = (name => 'A', email => 'b', city => 'c', age => 3);
my @json = (
	[{%person}, 8], [{ name => 'A', email => '' }, 8],      # right
	[{ %person, age => '3' }, 0], [{ name => 'A' }, 0], [[{%person}], 0],
);
my $run = run_against(answering('stop', map { $json->encode($_->[0]) } @json), '--num-prompts', 5);
my $c = $run->{own}{correctness};
is_deeply([map { $_ & 8 } @{ $run->{own}{requests}{correctness} }], [map { $_->[1] } @json],
	'answers in JSON: two of five keep to the schema') or diag($run->{err});
is($c->{constrained_correct_rate}, 40, 'and the rate says so');
is($c->{wrong}{schema}, 3, 'with the reason');
like($run->{out}, qr/Constrained answers correct \(%\):\s+40\.00 \(of 5; wrong: schema 3\)/,
	'on the terminal');
like($run->{out},
	qr/^correct_rate\(%\) by vLLM's rule: +100\.00 \(of all 5 requests; any JSON is correct\)$/m,
	'and how upstream would count') or diag($run->{out});

$run = run_against(answering('length', '{"name": "A', '{"name": "", "email": ""}'), qw(--num-prompts 2));
is($run->{own}{correctness}{wrong}{truncated}, 1, 'an answer that was cut is called so');
is($run->{own}{correctness}{constrained_correct_rate}, 50, 'and one that was not needs no excuse');

$run = run_against(answering('stop', 'Positive', 'positive', 'Negative', 'Positive '),
	qw(--structured-dataset choice --num-prompts 4 --structured-output-ratio 0.5));
$c = $run->{own}{correctness};
is_deeply([@$c{qw(constrained_correct_rate unconstrained_correct_rate correct_rate_upstream)}], [0, 100, 50],
	'choices: those that told the server, those that did not, and all as upstream counts');
is($c->{requests}, 4, 'of all');

$run = run_against(answering('stop', "ab\@cd.com\n", 'ab@cd.com', "ab\@cd.com\nmore"),
	qw(--structured-dataset regex --num-prompts 3));
is_deeply([map { $_ & 40 } @{ $run->{own}{requests}{correctness} }], [40, 0, 32],
	'[J3] a pattern has to match all of the answer, and upstream\'s only its beginning');

# ---- servers that do not know the key ----

# One that ignores it lets the model talk: the report says which key, and what else there is.
for my $case (['structured_outputs', 'guided', 'auto'], ['guided_json', 'structured_outputs', 'guided'],
	['response_format', 'structured_outputs', 'response_format']) {
	my ($key, $other, $form) = @$case;
	my $talk = run_against(answering('length', 'Sure! Here is a character:', 'The character is'),
		qw(--num-prompts 6 --constraint-form), $form);
	like($talk->{out}, qr/6 of 6 constrained answers are free text\. The server seems to ignore "$key", /,
		"a server that ignores $key");
	like($talk->{out}, qr/--constraint-form $other sends /, 'and the other form');
	is(scalar(grep { $_->{code} eq 'constraints_ignored' } @{ $talk->{own}{notes} }), 1, 'a note');
	is($talk->{own}{correctness}{wrong}{parse}, 6, 'free text that was cut is no cut JSON');
}
$run = run_against(answering('length', map { '[{"name": ' } 1 .. 6), qw(--num-prompts 6));
unlike($run->{out}, qr/seems to ignore/, 'cut JSON is another thing');
like($run->{out}, qr/6 of 6 constrained answers were cut off at the length/, 'which is said');
$run = run_against(answering('length', ('The sentiment of the text is') x 6),
	qw(--structured-dataset choice --num-prompts 6));
is($run->{own}{correctness}{wrong}{no_match}, 6, 'free text that was cut is no cut choice');
like($run->{out}, qr/seems to ignore/, 'and the server ignores the key');
$run = run_against(answering('stop', ('{"a": 1}') x 6), qw(--num-prompts 6));
unlike($run->{out}, qr/seems to ignore/, 'and so is JSON that the schema forbids');

# One that refuses it: the report names the key.
my $strict = relay_start(sub {
	my ($c, $log) = @_;
	while (my ($head, $body) = read_request($c)) {
		my $about = '{"error": {"message": "Extra inputs are not permitted: structured_outputs"}}';
		syswrite($c, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: "
			. length($about) . "\r\n\r\n$about");
	}
});
$run = run_against($strict, qw(--structured-dataset choice --num-prompts 3));
like($run->{out} . $run->{err}, qr/structured_outputs.*--omit-body-keys structured_outputs/s,
	'a server that refuses the key: the report names it');

# ---- rows of xgrammar_bench ----

my $rows = sub {
	my ($name, @schemas) = @_;
	mkdir "$dir/$name";
	open(my $f, '>', "$dir/$name/train.jsonl") or die;
	my $n = 0;
	print $f $json->encode({ prompt => [{ role => 'system', content => 'JSON' },
		{ role => 'user', content => 'row ' . $n++ }], schema => ref $_ ? $json->encode($_) : $_,
		completion => '{"a": 1}' }), "\n" for @schemas;
	close $f;
	return ('--structured-dataset', 'xgrammar_bench', '--dataset-path', "$dir/$name");
};
my $good = { type => 'object', properties => { a => { type => 'integer' } }, required => ['a'] };
my $enum = { type => 'object', properties => { b => { type => ['string', 'null'], enum => ['x', 'y'] } } };
my $tall = [ # what vLLM's benchmark leaves out
	{ type => 'integer', multipleOf => 2 }, { type => ['null', 'number'], multipleOf => 0.5 },
	(map { { type => 'array', $_ => 1 } } qw(uniqueItems contains minContains maxContains)),
	{ type => 'string', format => 'color' }, { type => 'string', pattern => 'a', minLength => 1 },
	{ type => 'object', propertyNames => { pattern => 'a' }, properties => {} },
	{ type => 'object', propertyNames => { pattern => 'a', maxLength => 3 } },
	{ type => 'object', patternProperties => { a => {} }, properties => {} },
	{ type => 'object', patternProperties => { a => {}, b => {} } },
	{ type => 'array', items => { type => 'object',
		properties => { n => { type => 'string', format => 'x' } } } },
	{ enum => [{ type => 'string', format => 'x' }] },
];
my @chat = qw(--backend openai-chat --endpoint /v1/chat/completions);
my @bench = $rows->('bench', $good, @$tall, $enum);
my @drawn = dumped(@bench, @chat, qw(--num-prompts 3));
is_deeply([map { $_->{messages}[1]{content} } @drawn], ['row 0', 'row ' . (@$tall + 1), 'row 0'],
	'xgrammar_bench: rows in their order, again from the first, unsupported schemas left out');
is($drawn[1]{overrides}{structured_outputs}{json}, $json->encode($enum), 'the schema is sent as a text');
is_deeply($drawn[1]{constraint}, { json => $enum }, 'and checked as a schema');
is($drawn[0]{expected}, '{"a": 1}', 'with the answer of the row');
is(ref +(dumped(@bench, @chat, qw(--num-prompts 1 --constraint-form response_format)))[0]{overrides}
	{response_format}{json_schema}{schema}, 'HASH', 'response_format takes the schema itself');
my $sim = sim('--ttft-ms', '2', '--itl-ms', '1');
my $kept = serve($sim, '--dataset-name', 'structured', @bench, '--num-prompts', 6,
	'--structured-output-len', 64);
is($kept->{own}{correctness}{constrained_correct_rate}, 100, 'xgrammar_bench: a server that keeps to them')
	or diag($kept->{err});
for my $case ([[$rows->('none', @$tall), @chat], qr/none: no row is left; 14 have schemas that/],
	[[$rows->('bad', 'no JSON'), @chat], qr/train\.jsonl:1: "schema" is not valid JSON/],
	[['--dataset-path', "$dir/bench"],
		qr/--dataset-path \S+: only --structured-dataset xgrammar_bench reads/]) {
	my ($status, $out, $err) = profllm(@serve, '--dry-run', @{ $case->[0] });

	isnt($status, 0, "refused: @{$case->[0]}[-1]");
	like($err, $case->[1], 'with a sentence');
}

# ---- the verb ----

$generated = 1;
my $server = answering('stop', 'Positive', 'neutral');
my ($status, $out, $err) = profllm(qw(bench structured-output --model sim --tokenizer sim --dataset choice
	--num-prompts 2 --max-concurrency 1 --ready-check-timeout-sec 0 --save-results --progress none),
	'--base-url', $server->{url}, '--result-dir', "$dir/results");
relay_end($server);
is($status, 0, 'bench structured-output') or diag($err);
like($out, qr/^correct_rate\(%\) 50\.0 $/m, 'says the rate as upstream does');
my $result = read_json("$dir/results/1.0so_vllm_infqps_sim_choice_2_out128.txt");
is($result->{backend}, 'vllm', 'the backend that the script has unless told otherwise');
is_deeply([map { $_->{correctness} ? 1 : 0 } @{ $result->{outputs} }], [1, 0], 'and every answer\'s');
is($result->{'correct_rate(%)'}, 50, 'under upstream\'s key');
is($result->{"${_}_description"}{count}, 2, "with the description of $_, answers of one token too")
	for qw(ttft tpot);
my ($first) = slurp(glob "$dir/results/*") =~ /\A\{\n    "(\w+)"/;
is($first, 'outputs', 'in its order');
my ($raw) = profllm(qw(benchmark_serving_structured_output.py --help));
is($raw, 0, 'the script\'s own name');

done_testing();
