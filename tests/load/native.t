#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Responses, the native APIs of other servers and APIs described in files, against the
# simulator: counts, stamps, texts, headers. Faults of APIs that have a name: backends.t.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $files = "$FindBin::Bin/../../examples/backends";
# is_uncounted: the server sends no counts
my @api = (
	{ name => 'openai-responses', options => ['--endpoint', '/v1/responses'] },
	{ name => 'anthropic' },
	{ name => 'tgi' },
	{ name => 'llamacpp' },
	{ name => 'sglang' },
	{ name => 'ollama' },
	{ name => 'ollama-chat' },
	{ name => 'vllm-demo', file => 1, is_uncounted => 1 },
	{ name => 'openai-minimal', file => 1 },
);

sub options
{
	my ($api) = @_;
	my @how = $api->{file} ? ('--backend-file', "$files/$api->{name}.json")
		: ('--backend', $api->{name});

	return (@how, @{ $api->{options} || [] });
}

for my $api (@api) {
	my $name = $api->{name};
	my $sim = sim('--ttft-ms', '20', '--itl-ms', '4');
	my $run = serve($sim, '--num-prompts', '6', '--temperature', '0', options($api));
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	if ($api->{is_uncounted}) {
		is($run->{own}{requests_with_usage}, 0, "$name: no counts came");
		$_->{prompt_tokens} = 16 for values %truth;
	} else {
		is($run->{own}{requests_with_usage}, 6, "$name: all had counts");
	}
	counts_are_right($run, \%truth, $name);
	events_are_right($run, \%truth, $name);
	is($run->{result}{backend}, $name, "$name: stands in the result");
	my @words = map { scalar(split ' ', $_) } @{ $run->{result}{generated_texts} };
	is("@words", '8 8 8 8 8 8', "$name: the texts are what was answered, once");
	is($run->{own}{usage_differs_share} // 0, 0, "$name: an event is a token");
}

# Every fault of an API described in a file, in its category; nothing is sent again.
my @described = grep { $_->{file} } @api;
my @fails = (
	['status=503', [], 'http_status', qr/^Service Unavailable/],
	['reset@3', [], 'reset', qr/connection lost|reset/],
	['close@3', [], 'truncated', qr/closed the connection/],
	['malformed@3', [], 'bad_event', qr/not JSON/],
	['error-event@4', [], 'stream_error', qr/on purpose/],
	['slow-headers=20s', ['--request-timeout', '1'], 'timeout', qr/no complete answer within 1 s/],
	['stall@3=20s', ['--request-timeout', '1'], 'timeout', qr/no complete answer within 1 s/],
);
for my $case (@fails) {
	my ($fault, $options, $category, $text) = @$case;

	for my $api (@described) {
		my $sim = sim('--ttft-ms', '5', '--itl-ms', '1', '--fault', $fault);
		my $run = serve($sim, '--num-prompts', '3', @$options, options($api));
		my %truth = truth_by_id($sim);
		my $name = "$api->{name}, $fault";

		is_deeply(failures($run), { $category => 3 }, "$name: category")
			or diag($run->{err});
		like($run->{own}{failures}[0]{examples}[0]{text}, $text, "$name: the text");
		is(scalar(keys %truth), 3, "$name: the server saw each once");
	}
}

# However the bytes are cut.
for my $api (@described) {
	for my $fault ('split', 'coalesce=3') {
		my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', $fault);
		my $run = serve($sim, '--num-prompts', '3', options($api));
		my %truth = truth_by_id($sim);

		if ($api->{is_uncounted}) {
			$_->{prompt_tokens} = 16 for values %truth;
		}
		counts_are_right($run, \%truth, "$api->{name}, $fault") or diag($run->{err});
	}
}

# Kinds of tokens: 8 tokens, the first 3 are reasoning.
for my $name ('openai-responses', 'anthropic', 'ollama-chat') {
	my ($api) = grep { $_->{name} eq $name } @api;
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1', '--reasoning', '3');
	my $run = serve($sim, '--num-prompts', '2', options($api));
	my $rows = $run->{own}{requests};

	is("@{ $rows->{n_reasoning} }", '3 3', "$name: reasoning events");
	my @words = map { scalar(split ' ', $_) } @{ $run->{result}{generated_texts} };
	is("@words", '5 5', "$name: the text is the answer alone");
}

# The key and the version of Anthropic's API; the user's own header takes precedence.
{
	local $ENV{OPENAI_API_KEY} = 'general';
	local $ENV{ANTHROPIC_API_KEY} = 'special';
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1');

	serve($sim, '--num-prompts', '1', '--backend', 'anthropic');
	serve($sim, '--num-prompts', '1', '--backend', 'anthropic', '--header', 'X-API-Key=mine');
	serve($sim, '--num-prompts', '1', '--backend', 'llamacpp');
	delete $ENV{ANTHROPIC_API_KEY};
	serve($sim, '--num-prompts', '1', '--backend', 'anthropic');
	truth_of($sim);
	my @seen = grep { $_->{path} =~ m{messages|completion$} } read_lines($sim->{requests});
	my @headers = map {
		my $sent = $_->{headers};
		my %h = map { lc($_) => $sent->{$_} } keys %$sent;
		\%h;
	} @seen;

	is($headers[0]{'x-api-key'}, 'special', 'anthropic: its own key goes first');
	is($headers[0]{'authorization'}, undef, 'anthropic: the key is sent once');
	is($headers[0]{'anthropic-version'}, '2023-06-01', 'anthropic: the version');
	is($headers[1]{'x-api-key'}, 'mine', 'anthropic: --header replaces the key');
	is($headers[2]{'authorization'}, 'Bearer general', 'llamacpp: the general key');
	is($headers[2]{'anthropic-version'}, undef, 'llamacpp: no version');
	is($headers[3]{'authorization'}, 'Bearer general', 'anthropic: the general key as vLLM has it');
	is($headers[3]{'x-api-key'}, undef, 'anthropic: the general key is no key of Anthropic');
}

# One document for the whole answer: it is one event, and the prompt is left out.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1');
	my $run = serve($sim, '--num-prompts', '2', '--backend-file', "$files/vllm-demo-whole.json");
	my @words = map { scalar(split ' ', $_) } @{ $run->{result}{generated_texts} };

	is("@words", '8 8', 'whole answers: the text without the prompt');
	is($run->{own}{token_events}, 2, 'whole answers: one event each');
	is($run->{result}{total_output_tokens}, 16, 'whole answers: tokens are counted');
}

# What cannot work is said before anything is sent.
my $any = sim('--ttft-ms', '1', '--itl-ms', '1');
for my $case (
	[2, qr/--backend-file: .*no-such.json/, '--backend-file', '/tmp/no-such.json'],
	[2, qr/vllm-demo.json and --backend openai are mutually exclusive/,
		'--backend-file', "$files/vllm-demo.json",
		'--backend', 'openai'],
	[2, qr/the Anthropic Messages API of --backend anthropic needs a URL that ends with messages /,
		'--backend',
		'anthropic', '--endpoint', '/v1/completions'],
	[1, qr/--backend tgi sends plain text, but a prompt is \[/, '--backend', 'tgi',
		'--prompt-token-ids'],
) {
	my ($status, $text, @options) = @$case;
	my $run = serve($any, '--num-prompts', '1', @options);

	is($run->{status}, $status, "@options: exit status");
	like($run->{err}, $text, "@options: the sentence");
}

# An API without ignore_eos says so.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1');
	my $run = serve($sim, '--num-prompts', '1', '--ignore-eos', '--backend', 'ollama');

	like($run->{err}, qr/--backend ollama has no ignore_eos/, 'ollama: a warning');
}

# Adapters go by the model's name: an API that sends none cannot ask for one.
for my $case (['sglang', 1], ['vllm-demo', 1], ['ollama', 0], ['openai-minimal', 0]) {
	my ($name, $is_said) = @$case;
	my ($api) = grep { $_->{name} eq $name } @api;
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1', '--served-model-name', 'sim', 'adapter');
	my $run = serve($sim, '--num-prompts', '1', '--lora-modules', 'adapter', options($api));

	is($run->{err} =~ /--lora-modules has no effect: .*--backend $name name no model/ ? 1 : 0,
		$is_said, "$name: whether adapters can be asked for") or diag($run->{err});
}

# Pictures go with the chat APIs, and what sends text alone refuses them.
for my $name ('anthropic', 'ollama-chat') {
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '1');
	my $run = serve($sim, '--num-prompts', '2', '--backend', $name, '--dataset-name', 'random-mm',
		'--random-mm-base-items-per-request', '1', '--random-mm-num-mm-items-range-ratio', '0',
		'--random-mm-bucket-config', '{"(8, 8, 1)": 1.0}');

	is($run->{result}{completed}, 2, "$name: pictures") or diag($run->{err});
	truth_of($sim);
	my ($body) = map { $_->{body} } grep { $_->{path} =~ /messages|chat/ } read_lines($sim->{requests});
	my $message = (ref $body ? $body : JSON::PP->new->decode($body))->{messages}[0];
	my $data = $name eq 'anthropic' ? $message->{content}[1]{source}{data} : $message->{images}[0];

	like($data, qr{^/9j/}, "$name: a JPEG as the API has it");
}

done_testing;
