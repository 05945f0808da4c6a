#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Embeddings, pooling, rerank and audio from end to end: what the simulator counted is what
# is reported, whole answers end with their last byte, and what goes wrong has its category.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my @embed = qw(--backend openai-embeddings --endpoint /v1/embeddings);

# name, options, requests, input sequences, prompt tokens of all
my @apis = (
	['embeddings', [@embed], 6, 6, 96],
	['embeddings in batches', [@embed, qw(--random-batch-size 3)], 2, 6, 96],
	['embeddings as bytes', [@embed, '--extra-body', '{"encoding_format": "bytes"}'], 6, 6, 96],
	['embeddings as bytes alone', [@embed, '--extra-body', '{"encoding_format": "bytes_only"}'],
		6, 6, 96],
	['embeddings in base64', [@embed, '--extra-body', '{"encoding_format": "base64"}'], 6, 6, 96],
	['embeddings of chats', [qw(--backend openai-embeddings-chat --endpoint /v1/embeddings)],
		6, 6, undef],
	['clip', [qw(--backend openai-embeddings-clip --endpoint /v1/embeddings)], 6, 6, undef],
	['vlm2vec', [qw(--backend openai-embeddings-vlm2vec --endpoint /v1/embeddings)], 6, 6, undef],
	['infinity', [qw(--backend infinity-embeddings --endpoint /embeddings)], 6, 6, 96],
	['infinity clip', [qw(--backend infinity-embeddings-clip --endpoint /embeddings)], 6, 6, 96],
	['pooling', [qw(--backend vllm-pooling --endpoint /pooling)], 6, 6, 96],
	['rerank', [qw(--backend vllm-rerank --endpoint /v1/rerank --dataset-name random-rerank
		--random-batch-size 2)], 3, 6, undef],
);

for my $api (@apis) {
	my ($name, $options, $requests, $sequences, $tokens) = @$api;
	my $sim = sim(qw(--ttft-ms 3 --itl-ms 1));
	my $run = serve($sim, '--num-prompts', '6', @$options);
	my $r = $run->{result};

	is($run->{status}, 0, "$name: exit status") or diag($run->{err});
	is_deeply([@$r{qw(completed total_input_sequences)}], [$requests, $sequences],
		"$name: requests and input sequences");
	is($r->{total_input_tokens}, $tokens, "$name: prompt tokens") if defined $tokens;
	cmp_ok($r->{total_input_tokens}, '>', 0, "$name: prompt tokens are told");
	is(scalar(grep { $_ > 0 } @{ $r->{latencies} }), $requests, "$name: every request has a latency");
	is($run->{own}{failed}, 0, "$name: no failures");
	ok(!exists $r->{failed} && !exists $r->{mean_ttft_ms} && $r->{mean_e2el_ms} > 0,
		"$name: the block of pooling");
	is($run->{own}{token_events}, 0, "$name: no token events");
	like($run->{out}, qr/^Input throughput \(inputs\/s\):/m, "$name: the report");
}

# ---- what goes wrong ----

my @pace = qw(--ttft-ms 3 --itl-ms 1);
my @faults = (
	['status 503', ['status=503'], [], { http_status => 4 }],
	['closed without an answer', ['close@1'], [], { reset => 4 }],
	['headers past the time limit', ['slow-headers=20s'], ['--request-timeout', '1'], { timeout => 4 }],
	['a body past the time limit', ['slow-body=20s'], ['--request-timeout', '1'], { timeout => 4 }],
);
for my $row (@faults) {
	my ($name, $faults, $options, $want) = @$row;
	my $sim = sim(@pace, '--fault', @$faults);
	my $run = serve($sim, '--num-prompts', '4', @embed, @$options);

	is_deeply(failures($run), $want, "$name: categories");
	is($run->{own}{failed}, 4, "$name: failed requests");
	is($run->{status}, 1, "$name: nothing succeeded");
	is_deeply($run->{result}{latencies}, [(0) x 4], "$name: no whole answer, no latency");
	unlike($run->{out}, qr/^Error 0:/m, "$name: no list of errors, as upstream");
}

# Whole answers that cannot be read: they failed, but they have a latency (serve spec 3.9).
my $usage = '{"usage": {"prompt_tokens": 5}}';
my @odd = (
	['not JSON', 'application/json', '{"usage"', [], 0, qr/is not a JSON object/],
	['another type', 'text/plain', $usage, [], 0, qr/Content-Type is text\/plain/],
	['no usage', 'application/json', '{"data": []}', [], 1],
	['usage is null', 'application/json', '{"usage": null}', [], 0, qr/usage in the answer/],
	['bytes without metadata', 'application/octet-stream', 'xxxx',
		['--extra-body', '{"encoding_format": "bytes"}'], 0, qr/no header "metadata"/],
	['bytes alone', 'application/octet-stream', 'xxxx',
		['--extra-body', '{"encoding_format": "bytes_only"}'], 1],
	['cut short', 'application/json', $usage, [], 0, qr/before the answer was complete/],
);
for my $row (@odd) {
	my ($name, $type, $body, $options, $is_good, $text) = @$row;
	my ($listener, $port) = listen_local();
	my $is_cut = $name eq 'cut short';
	my $stated = length($body) + ($is_cut ? 10 : 0);
	my $pid = fork();

	if ($pid == 0) {
		while (my $c = $listener->accept) {
			my ($length, $sent) = (0);
			while (defined(my $line = <$c>) ) {
				last if $line eq "\r\n";
				$length = $1 if $line =~ /^content-length: *(\d+)/i;
			}
			read $c, $sent, $length;
			print $c "HTTP/1.1 200 OK\r\nContent-Type: $type\r\nContent-Length: $stated",
				"\r\nConnection: close\r\n\r\n$body";
			close $c;
		}
		POSIX::_exit(0);
	}
	my $run = serve("http://127.0.0.1:$port", qw(--num-prompts 3 --max-concurrency 1), @embed, @$options);

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is_deeply(failures($run), $is_good ? {} : { $is_cut ? 'truncated' : 'bad_event' => 3 },
		"$name: categories");
	is(scalar(grep { $_ > 0 } @{ $run->{result}{latencies} }), $is_cut ? 0 : 3, "$name: latencies");
	is($run->{result}{total_input_tokens}, $name eq 'bytes alone' ? 48 : 0, "$name: prompt tokens");
	like($run->{own}{failures}[0]{examples}[0]{text}, $text, "$name: the text") if $text;
}

# ---- audio ----
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $dir = File::Temp->newdir;
	my $samples = 16000 * 2;
	my $data = pack('v*', map { ($_ * 37) % 2000 } 1 .. $samples);

	open(my $wav, '>:raw', "$dir/a.wav") or die;
	print $wav 'RIFF', pack('V', 36 + length $data), 'WAVEfmt ',
		pack('VvvVVvv', 16, 1, 1, 16000, 32000, 2, 16), 'data', pack('V', length $data), $data;
	close $wav;
	open(my $rows, '>', "$dir/rows.jsonl") or die;
	print $rows qq({"prompt": "", "audio": "$dir/a.wav"}\n) x 4;
	close $rows;
	my $run = serve($sim, qw(--backend openai-audio --endpoint /v1/audio/transcriptions --dataset-name
		custom_audio --num-prompts 4 --custom-output-len 7 --dataset-path), "$dir/rows.jsonl");
	my $r = $run->{result};
	my @truth = truth_of($sim);

	is($run->{status}, 0, 'audio: exit status') or diag($run->{err});
	is_deeply($r->{output_lens}, [(7) x 4], 'audio: output tokens');
	is(scalar(@truth), 4, 'audio: the server saw each once');
	cmp_ok(abs($r->{rtfx} * $r->{duration} - 8), '<', 1e-6, 'audio: 8 seconds of sound in all');
	like($run->{out}, qr/^RTFx \(Inverse Real-Time Factor\): +\d+\.\d\d *$/m, 'audio: the report');
}

done_testing();
