#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench mm-processor on the simulated engine: stages, files, what is refused; and, on a program with
# given answers, which requests are asked for and how stages become numbers.
use strict;
use warnings;
no warnings 'qw'; # commas between percentiles
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use List::Util qw(sum);
use Test::More;

my @verb = qw(bench mm-processor);
my @small = qw(--num-prompts 4 --random-input-len 12 --random-output-len 3
	--random-mm-base-items-per-request 2 --random-mm-bucket-config);
push @small, '{(64, 64, 1): 0.5, (56, 112, 1): 0.5}';
my @sim = (@verb, qw(--backend sim --model sim), @small);
my @upstream = qw(completed failed mean_e2el_ms median_e2el_ms std_e2el_ms percentiles_e2el_ms
	mm_processor_stats encoder_summary config timestamp);
my @stages = qw(get_mm_hashes_ms get_cache_missing_items_ms apply_hf_processor_ms merge_mm_kwargs_ms
	apply_prompt_updates_ms preprocessor_total_ms encoder_forward_ms num_encoder_calls);

# ---- on the simulated engine ----

my $r = run(args => [@sim, qw(--metric-percentiles 50,99 --output-json r.json --account account)]);
check_run('a run', $r, { status => 0, out => ['Starting multimodal processor benchmark...',
	'Processing 1 warmup requests...', 'Processing 4 requests...', 'MM Processor Metrics:',
	'*Stage *Mean *Median *Std *P50.0 *P99.0', (map { "*$_ *" } @stages[0 .. 4]),
	'Summary: * total encoder calls across * requests.', 'End-to-End Latency (ms):',
	'Metric Value (ms)', 'Results saved to r.json', 'Engine: sim *, simulated*',
	'Requests: 4 in *', 'Verdict: VALID'], not_out => ['*Warning*'] });
my @head = split /\n/, ($r->{out} =~ /Metrics:\n(.*?)\n\n/s)[0];
is(scalar(grep { length $_ != length $head[0] } @head), 0, 'the table is flush');
my $text = slurp('r.json');
my $j = json_of($text);
is("@{[keys_of($text)]}", "@upstream profllm", 'keys, upstream\'s first');
is_deeply([sort keys %{$j->{mm_processor_stats}}], [sort @stages], 'stages');
is_deeply([keys_of($text =~ /"get_mm_hashes_ms": (\{.*?\})/s ? $1 : '{}')],
	[qw(mean median std p50.0 p99.0)], 'figures of a stage');
is_deeply([map { $_->[0] } @{$j->{percentiles_e2el_ms}}], [50, 99], 'percentiles as pairs');
is_deeply($j->{config}, { model => 'sim', num_prompts => 4, input_len => 12, output_len => 3 },
	'config');
like($j->{timestamp}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\z/, 'a local time');
my ($measured) = (grep { $_->{kind} eq 'chat' } lines_of('account'))[-1];
is($measured->{requests}, 4, 'the engine was asked for four');
is($j->{profllm}{total_num_output_tokens}, $measured->{output_tokens}, 'tokens as counted there');
is($j->{profllm}{total_num_prompt_tokens}, $measured->{prompt_tokens}, 'of prompts, too');
cmp_ok(abs($j->{profllm}{elapsed_time} - $measured->{wall_s}), '<=', 0.01 * $measured->{wall_s},
	'its time within 1 %');
cmp_ok($j->{mean_e2el_ms}, '<=', 1000 * $j->{profllm}{elapsed_time}, 'requests within the call');
is($j->{profllm}{e2el_from}, 'engine', 'their times are the engine\'s');
check_run('a dry run', run(args => [@sim, qw(--dry-run --num-warmups 0)]), { status => 0,
	not_out => ['Processing*'],
	out => ['Requests: 4 of random-mm, seed 0; before them 0 to warm up, seed 1'] });

# ---- what is refused ----

for ([2, '--dataset-name hf needs --dataset-path, such as lmarena-ai/VisionArena-Chat',
		qw(--dataset-name hf)],
	[2, "--dataset-path a/b: not a supported multimodal dataset; there are "
		. "['lmarena-ai/VisionArena-Chat', 'lmarena-ai/vision-arena-bench-v0.1', "
		. "'lmms-lab/LLaVA-OneVision-Data']", qw(--dataset-name hf --dataset-path a/b)],
	[2, "--metric-percentiles: could not convert string to float: 'x'", qw(--metric-percentiles 99,x)],
	[2, '--metric-percentiles: expected numbers from 0 to 100, got 101', qw(--metric-percentiles 101)],
	[1, 'Please ensure that max_model_len is greater than the sum of prompt_len and '
		. 'expected_output_len for all requests*', qw(--max-model-len 14)],
	[2, '--num-prompts: expected at least 1, got 0', qw(--num-prompts 0)],
	[2, '*--dataset-name*sonnet*', qw(--dataset-name sonnet)]) {
	my ($status, $err, @args) = @$_;

	check_run("@args", run(args => [@sim, @args]), { status => $status, err => "*$err",
		not_out => ['*Results'] });
}

# ---- what is asked, and what is made of the answers ----

my @own = (@verb, qw(--backend worker --model sim --tokenizer sim), @small, '--worker-cmd',
	"perl $FindBin::Bin/recording_worker.pl");

sub asked {
	my ($name, $env, @args) = @_;
	my $r;

	unlink 'asked', 'own.json';
	$r = run(args => [@own, qw(--output-json own.json), @args], env => { RECORD => 'asked', %$env });
	is($r->{status}, 0, $name) or diag($r->{err});
	return ($r, json_of(slurp('own.json') || 'null'), lines_of('asked'));
}

my %first = ('0' => { x_secs => 1, num_encoder_calls => 9 });
my %told = ('1' => { x_secs => 0.5, num_encoder_calls => 1 }, '2' => { x_secs => 0.25 },
	'3' => { num_encoder_calls => 3 });
my ($out, $own, @q) = asked('stages that are told',
	{ MM_STATS => JSON::PP->new->encode([\%first, \%told]) }, qw(--num-warmups 2 --seed 5));
is(join(' ', map { $_->{type} } @q),
	'load describe put chat mm_stats put chat mm_stats shutdown', 'asked in order');
is($q[0]{mm_stats}, JSON::PP::true(), 'stages are asked for when loading');
is(scalar @{$q[2]{requests}}, 2, 'warm-ups first');
is(scalar @{$q[5]{requests}}, 4, 'then what is measured');
isnt($q[2]{requests}[0]{messages}[0]{content}[0]{text},
	$q[5]{requests}[0]{messages}[0]{content}[0]{text}, 'of another seed');
is($q[5]{requests}[0]{messages}[0]{content}[1]{type}, 'image_url', 'with pictures');
is_deeply([@{$q[6]}{qw(temperature ignore_eos n)}], [0, JSON::PP::false(), 1],
	'greedy, and a text may end');
is($q[3]{temperature}, 1, 'warm-ups are not');
is_deeply($own->{mm_processor_stats}, { x_ms => { mean => 375, median => 375, std => 125,
	'p99.0' => 497.5 }, num_encoder_calls => { mean => 2, median => 2, std => 1, 'p99.0' => 2.98 } },
	'what warm-ups left is not counted; seconds are milliseconds, counts stay');
is_deeply($own->{encoder_summary}, { total_encoder_calls => 4,
	num_requests_with_encoder_calls => 2 }, 'calls of the encoder');
is_deeply([@{$own}{qw(completed failed mean_e2el_ms)}], [4, 0, 312.5], 'requests\' own times');
like($out->{out}, qr/^Stages: of 3 of 4 requests\.$/m, 'requests without stages are told');

($out, $own) = asked('no stages and no times', { NO_E2EL => 1, UNFINISHED => 1 });
check_run('is said', $out, { status => 0, out => [
	"\x{e2}\x{9a}\x{a0}\x{ef}\x{b8}\x{8f}  Warning: No MM processor stats found in registry.",
	'*Warning: Detailed end-to-end latency metrics not available.', 'Empty DataFrame',
	'Stages: not available: the engine does not report stage times.'], not_out => ['Summary:*'] });
is_deeply($own->{mm_processor_stats}, {}, 'nothing in place of stages');
is_deeply([@{$own}{qw(completed failed)}], [3, 1], 'a request that did not finish failed');
cmp_ok(abs($own->{mean_e2el_ms} - 1000 * $own->{profllm}{elapsed_time} / 3), '<', 1e-6,
	'the whole time over those that completed');
is($own->{profllm}{e2el_from}, 'average', 'and it is said so');
is(join(' ', map { $_->{code} } @{$own->{profllm}{reasons}}), 'failed no_request_times',
	'and is a reason to doubt');

done_testing();
