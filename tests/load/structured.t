#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Structured output: which requests are constrained, how the server is told, and whether known right
# and wrong answers are scored so. Numbers in brackets are acceptance cases of the specification.
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
my @ten = dumped(qw(--structured-dataset regex --num-prompts 10 --structured-output-ratio 0.5));
is_deeply(constrained(@ten), [0, 2, 4, 6, 9], '[J6] of ten, the first one among them');
is_deeply($ten[0]{overrides}, { structured_outputs => { regex => '\w+@\w+\.com\n' } }, 'a pattern');
my @old = dumped(qw(--structured-dataset choice --num-prompts 2 --constraint-form guided));
is_deeply($old[0]{overrides}, { guided_choice => ['Positive', 'Negative'] }, '[J5] the old member');
my @openai = dumped(qw(--num-prompts 1 --constraint-form response_format));
is($openai[0]{overrides}{response_format}{json_schema}{schema}{type}, 'array', 'OpenAI\'s member');
like($openai[0]{prompt}, qr/given the following schema: \{"type": "array", "items": \{"type": "object", /,
	'the schema as Python prints it');
my @unique = dumped(my @how = qw(--structured-dataset json-unique --num-prompts 3 --request-id-prefix r));
my %names = map { (keys %{ $_->{overrides}{structured_outputs}{json}{properties} })[0] => 1 } @unique;
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
				{ choices => [], usage => { prompt_tokens => 9, completion_tokens => 4 } }),
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

my %person = (name => 'A', race => 'b', class => 'c', level => 3, background => 'd', alignment => 'e',
	backstory => 'f g');
my @json = (
	[[{%person}], 8], [[], 8],                              # right
	[[{ %person, level => '3' }], 0], [[{ name => 'A' }], 0], [{%person}, 0],
);
my $run = run_against(answering('stop', map { $json->encode($_->[0]) } @json), '--num-prompts', 5);
my $c = $run->{own}{correctness};
is_deeply([map { $_ & 8 } @{ $run->{own}{requests}{correctness} }], [map { $_->[1] } @json],
	'answers in JSON: two of five keep to the schema') or diag($run->{err});
is($c->{constrained_correct_rate}, 40, 'and the rate says so');
is($c->{wrong}{schema}, 3, 'with the reason');
like($run->{out}, qr/Constrained answers correct \(%\):\s+40\.00 \(of 5; wrong: schema 3\)/,
	'on the terminal');

$run = run_against(answering('length', '[{"name": "A', '[]'), qw(--num-prompts 2));
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

# ---- the verb ----

my $server = answering('stop', 'Positive', 'neutral');
my ($status, $out, $err) = profllm(qw(bench structured-output --model sim --tokenizer sim --dataset choice
	--num-prompts 2 --max-concurrency 1 --ready-check-timeout-sec 0 --save-results --progress none),
	'--base-url', $server->{url}, '--result-dir', "$dir/results");
relay_end($server);
is($status, 0, 'bench structured-output') or diag($err);
like($out, qr/^correct_rate\(%\) 50\.0 $/m, 'says the rate as upstream does');
my $result = read_json("$dir/results/1.0so_openai_infqps_sim_choice_2_out128.txt")
	// read_json("$dir/results/1.0so_vllm_infqps_sim_choice_2_out128.txt");
is_deeply([map { $_->{correctness} ? 1 : 0 } @{ $result->{outputs} }], [1, 0], 'and every answer\'s');
is($result->{'correct_rate(%)'}, 50, 'under upstream\'s key');
is($result->{ttft_description}{count}, 2, 'with the descriptions');
my ($first) = slurp(glob "$dir/results/*") =~ /\A\{\n    "(\w+)"/;
is($first, 'outputs', 'in its order');
my ($raw) = profllm(qw(benchmark_serving_structured_output.py --help));
is($raw, 0, 'the script\'s own name');

done_testing();
