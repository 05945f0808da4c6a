#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every backend against everything a server can do wrong: each request of a run meets another
# fault, and its row of the report must name that one. All backends run at the same time. What
# only a time limit ends has runs of its own, in which nothing else is expected, so that a busy
# machine cannot make a request late that should be in time. A run that hangs is ended by
# child_stop after a minute and has the wrong exit status.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp ();
use LoadTest;
use Test::More;

my $TOKENS = 5; # of every answer
my $LIMIT_S = 2; # of what never ends
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

# Each request's faults, and the category it fails with ('': it succeeds). Requests are identified
# by the number at the end of their id.
my @streamed = (
	[[], ''],
	(map { [["reset\@$_"], 'reset'] } 1 .. $TOKENS),
	[['reset@' . ($TOKENS + 1)], ''],
	(map { [["close\@$_"], 'truncated'] } 1 .. $TOKENS),
	(map { [["malformed\@$_"], 'bad_event'] } 1 .. $TOKENS),
	(map { [["error-event\@$_"], 'stream_error'] } 1 .. $TOKENS),
	[['slow-headers=300ms'], ''],
	[['status=503'], 'http_status'],
	[['status=429'], 'http_status'],
	[['crlf'], ''],
	[['comments'], ''],
	[['split'], ''],
	[['coalesce=3'], ''],
	[['crlf', 'comments', 'split'], ''],
	[['drop-usage'], ''],
	[['no-done'], ''],
);
# An answer that is not streamed counts as four parts of its body.
my @whole = (
	[[], ''],
	(map { [["reset\@$_"], 'reset'] } 1 .. 4),
	[['reset@5'], ''],
	[['close@1'], 'reset'], # before a single byte: there is no answer that could be cut
	(map { [["close\@$_"], 'truncated'] } 2 .. 4),
	[['malformed@1'], 'bad_event'],
	[['error-event@1'], 'stream_error'],
	[['slow-headers=300ms'], ''],
	[['slow-body=300ms'], ''],
	[['status=503'], 'http_status'],
	[['split'], ''],
	[['drop-usage'], ''],
);

my @endless = map { [[$_], 'timeout'] } 'slow-headers=90s', 'slow-start=90s', 'stall@3=90s',
	'stall@1=90s';
my @endless_whole = map { [[$_], 'timeout'] } 'slow-headers=90s', 'slow-start=90s',
	'slow-body=90s';

# An API whose stream is only over with a closing event cannot do without it.
my %closes = map { $_ => 1 } qw(openai-responses llamacpp ollama ollama-chat);

sub random_set
{
	return ('--dataset-name', 'random', '--random-input-len', '16', '--random-output-len', $TOKENS);
}

# A recording of two tenths of a second, once for each request.
sub audio_set
{
	my $bytes = pack('(s<)*', map { 8000 * sin($_ / 9) } 1 .. 3200);

	open(my $wav, '>:raw', "$dir/tone.wav") or die "$dir/tone.wav: $!";
	print $wav 'RIFF', pack('V', 36 + length $bytes), 'WAVEfmt ', pack('VvvVVvv', 16, 1, 1, 16000,
		32000, 2, 16), 'data', pack('V', length $bytes), $bytes;
	close $wav;
	open(my $rows, '>', "$dir/tones.jsonl") or die "$dir/tones.jsonl: $!";
	print $rows qq({"prompt": "", "audio": "$dir/tone.wav"}\n) for @streamed;
	close $rows;
	return ('--dataset-name', 'custom_audio', '--dataset-path', "$dir/tones.jsonl",
		'--custom-output-len', $TOKENS);
}

my @generating = (
	['vllm', '/v1/completions', random_set()],
	['openai-chat', '/v1/chat/completions', random_set()],
	['openai-responses', '/v1/responses', random_set()],
	['openai-audio', '/v1/audio/transcriptions', audio_set()],
	['anthropic', '/v1/messages', random_set()],
	['tgi', '/generate_stream', random_set()],
	['llamacpp', '/completion', random_set()],
	['sglang', '/generate', random_set()],
	['ollama', '/api/generate', random_set()],
	['ollama-chat', '/api/chat', random_set()],
	# Described in a file; its name is the file's.
	['vllm-demo', '/generate', random_set()],
);
my @pooling = (
	['openai-embeddings', '/v1/embeddings', random_set()],
	['openai-embeddings-chat', '/v1/embeddings', random_set()],
	['openai-embeddings-clip', '/v1/embeddings', random_set()],
	['openai-embeddings-vlm2vec', '/v1/embeddings', random_set()],
	['infinity-embeddings', '/embeddings', random_set()],
	['infinity-embeddings-clip', '/embeddings', random_set()],
	['vllm-pooling', '/pooling', random_set()],
	['vllm-rerank', '/v1/rerank', '--dataset-name', 'random-rerank', '--random-input-len', '32',
		'--random-batch-size', '3'],
);

# One simulator for all of them; request k of every run meets fault k.
sub sim_with
{
	my ($faults) = @_;
	my @spec;

	for my $k (0 .. $#$faults) {
		push @spec, map { "$_:id=*-$k" } @{ $faults->[$k][0] };
	}
	return sim('--ttft-ms', '5', '--itl-ms', '3', '--fault', @spec);
}

sub start_all
{
	my ($sim, $faults, $options, @backend) = @_;
	return map {
		my ($name, $endpoint, @set) = @$_;
		my $file = "$FindBin::Bin/../../examples/backends/$name.json";
		my $run = serve_start($sim, '--num-prompts', scalar(@$faults),
			-e $file ? ('--backend-file', $file) : ('--backend', $name), '--endpoint',
			$endpoint, '--request-id-prefix', "$name-", @$options, @set,
			$name eq 'vllm-rerank' ? ('--num-prompts', 3 * @$faults) : ());
		$run->{name} = $name;
		$run;
	} @backend;
}

# Each request failed as it was made to, and nothing else did.
sub categories_are_right
{
	my ($run, $faults) = @_;
	my ($result, $failure) = ($run->{result}, $run->{own}{requests}{failure});
	my %count;
	my @wrong;

	for my $k (0 .. $#$faults) {
		my ($spec, $want) = @{ $faults->[$k] };
		$want = 'truncated' if "@$spec" eq 'no-done' && $closes{ $run->{name} };
		my $got = $failure->[$k] // '';
		push @wrong, "@$spec: '$got', not '$want'" if $got ne $want;
		$count{$want}++ if $want ne '';
	}
	is(join('; ', @wrong), '', "$run->{name}: each failure has its category");
	is_deeply(failures($run), \%count, "$run->{name}: categories are counted");
}

# Counts of the report equal those of the truth file.
sub counts_agree
{
	my ($run, $faults, $truth, $is_pooling) = @_;
	my ($result, $failure) = ($run->{result}, $run->{own}{requests}{failure});
	my ($good, $in, $out) = (0, 0, 0);
	my @wrong;

	for my $k (0 .. $#$faults) {
		next if defined $failure->[$k];
		my $t = $truth->{"$run->{name}-$k"};
		my $spec = "@{ $faults->[$k][0] }";
		my $prompt = $spec eq 'drop-usage' ? undef : $t->{prompt_tokens};
		# Of an audio answer the client takes the answer's length only.
		$prompt = undef if $run->{name} eq 'openai-audio';
		$prompt = 0 if $is_pooling && $spec eq 'drop-usage';

		$good++;
		$out += $t->{output_tokens};
		push @wrong, "$spec: $result->{input_lens}[$k] prompt tokens, not $prompt"
			if defined $prompt && $result->{input_lens}[$k] != $prompt;
		next if $is_pooling;
		push @wrong, "$spec: $result->{output_lens}[$k] tokens"
			if $result->{output_lens}[$k] != $t->{output_tokens};
		push @wrong, "$spec: " . scalar(@{ $result->{itls}[$k] }) . ' gaps'
			if @{ $result->{itls}[$k] } != @{ $t->{send_ns} } - 1;
	}
	is(join('; ', @wrong), '', "$run->{name}: tokens and events of each request");
	is($result->{completed}, $good, "$run->{name}: completed");
	is($result->{failed}, @$faults - $good, "$run->{name}: failed") unless $is_pooling;
	is($result->{total_output_tokens}, $out, "$run->{name}: output tokens") unless $is_pooling;
	is($run->{own}{retries}, 0, "$run->{name}: nothing was sent again");
	my @lost = grep { !$truth->{"$run->{name}-$_"} } 0 .. $#$faults;
	is("@lost", '', "$run->{name}: the server saw every request");
}

# All backends at once against one simulator; their runs and the truth.
sub run_all
{
	my ($faults, $options, @backend) = @_;
	my $sim = sim_with($faults);
	my @run = start_all($sim, $faults, $options, @backend);

	serve_end($_) for @run;
	return ({ truth_by_id($sim) }, @run);
}

for my $case ([0, \@streamed, @generating], [1, \@whole, @pooling]) {
	my ($is_pooling, $faults, @backend) = @$case;
	my ($truth, @run) = run_all($faults, [], @backend);

	for my $run (@run) {
		is($run->{status}, 0, "$run->{name}: exit status") or diag($run->{err});
		categories_are_right($run, $faults);
		counts_agree($run, $faults, $truth, $is_pooling);
	}
}
for my $case ([\@endless, @generating], [\@endless_whole, @pooling]) {
	my ($faults, @backend) = @$case;
	my ($truth, @run) = run_all($faults, ['--request-timeout', $LIMIT_S], @backend);

	for my $run (@run) {
		is($run->{status}, 1, "$run->{name}, time limit: exit status, as nothing succeeded");
		is_deeply(failures($run), { timeout => scalar(@$faults) },
			"$run->{name}, time limit: all that never ends is given up");
		is($run->{result}{completed}, 0, "$run->{name}, time limit: completed");
	}
}

# Reasoning first, and several tokens in an event: counts are the server's, not the events'.
{
	my @plain = map { [[], ''] } 1 .. 6;
	my $drafts = sim('--ttft-ms', '3', '--itl-ms', '2', '--reasoning', '2', '--spec-tokens', '3',
		'--enable-prompt-tokens-details');
	my @with_drafts = start_all($drafts, \@plain, [], @generating);

	serve_end($_) for @with_drafts;
	my %seen = truth_by_id($drafts);
	my @wide = grep { $_ > 1 } map { @{ $_->{tokens} } } values %seen;

	cmp_ok(scalar(@wide), '>', 0, 'drafts: some events have several tokens');
	for my $run (@with_drafts) {
		my $name = $run->{name};

		$run->{name} = "$name with drafts";
		categories_are_right($run, \@plain);
		$run->{name} = $name;
		# Nothing in the demo server's stream says how many tokens an event has; the text does.
		counts_agree($run, \@plain, \%seen, 0);
	}
}

# What an embedding may come as.
for my $format (qw(float base64 bytes bytes_only)) {
	my $plain = sim('--ttft-ms', '2');
	my $run = serve($plain, '--num-prompts', 3, '--backend', 'openai-embeddings', '--endpoint',
		'/v1/embeddings', '--extra-body', qq({"encoding_format": "$format"}), random_set());
	my %seen = truth_by_id($plain);
	my $prompt = 0;

	$prompt += $_->{prompt_tokens} for values %seen;
	is($run->{result}{completed}, 3, "embeddings as $format: completed");
	is($run->{result}{total_input_tokens}, $prompt, "embeddings as $format: tokens");
}

done_testing;
