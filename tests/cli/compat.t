#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --compat v0.11: console, report, result and requests as that release had them (golden),
# all rows of the serve spec's section 9 at once.
use strict;
use warnings;
no warnings 'qw'; # commas are part of what options take
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $sim = start_sim(qw(--ttft-ms 4 --itl-ms 2 --requests requests.jsonl));
my @serve = (qw(bench serve --compat v0.11 --tokenizer sim --model sim --port), $sim->{port});
my @small = qw(--num-prompts 4 --random-input-len 8 --random-output-len 5);

sub result {
	my ($name, $want_keys, @args) = @_;
	my $r = run(args => [@serve, @small, qw(--save-result --save-detailed --result-filename r.json),
		@args]);
	my $json = json_of(slurp('r.json'));

	is($r->{status}, 0, "$name: exit status");
	is_deeply([keys_of(slurp('r.json'))], $want_keys, "$name: keys");
	return ($r, $json);
}

my @head = qw(date endpoint_type backend label model_id tokenizer_id num_prompts request_rate
	burstiness max_concurrency);
my @blocks = map { my $m = $_; map { "${_}_${m}_ms" } qw(mean median std p99) } qw(ttft tpot itl);

# ---- generation ----
{
	my ($r, $json) = result('generation', [@head, qw(duration completed total_input_tokens
		total_output_tokens request_throughput request_goodput output_throughput
		total_token_throughput input_lens output_lens ttfts itls generated_texts errors
		max_output_tokens_per_s max_concurrent_requests), @blocks, 'profllm']);
	my $again = run(args => [@serve, @small, '--ready-check-timeout-sec', '0', '--record', 'run.rec']);
	my $scored = run(args => [qw(bench score run.rec)]);
	my @requests = map { json_of($_) } split /\n/, slurp('requests.jsonl');
	my @sent = grep { $_->{path} eq '/v1/completions' } @requests;

	is_golden(mask_run($r->{out}), 'run-v011.txt');
	is_golden(mask_run($again->{out}), 'run-v011-unchecked.txt');
	is($scored->{out}, substr($again->{out}, -length $scored->{out}), 'a record keeps the release');
	is(scalar(@sent), 9, 'a ready check and two times four requests');
	is(scalar(grep { $_->{body} =~ /"temperature": 0\.0/ } @sent), 9, 'all of them greedy');
	is(scalar(grep { ($_->{request_id} // '') =~ /^benchmark-serving\d$/ } @sent), 8,
		'ids of that release');
	is(scalar(@requests), 9, 'neither /metrics nor /tokenize is asked');
}

# ---- pooling ----
{
	my ($r, $json) = result('pooling', [@head, qw(duration completed total_input_tokens
		request_throughput total_token_throughput input_lens errors), 'profllm'],
		qw(--backend openai-embeddings --endpoint /v1/embeddings));

	is_golden(mask_run($r->{out}), 'run-v011-pooling.txt');
	is($json->{total_input_tokens}, 32, 'pooling: tokens as the server counts them');
}

# ---- what is refused ----
for my $row (['the following arguments are required: --model', qw(bench serve --compat v0.11)],
	["--tokenizer-mode: v0.11 has auto, slow, mistral, custom; got 'hf'", @serve,
		qw(--tokenizer-mode hf)]) {
	my ($sentence, @args) = @$row;

	check_run("refused: $sentence", run(args => [@args]), { status => 2, err => "*$sentence" });
}

done_testing();
