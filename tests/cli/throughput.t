#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench throughput on the simulated engine: lines, files, whose numbers they are; what the engine is
# asked, by its own account; what is refused.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use List::Util qw(sum);
use Test::More;

my @verb = qw(bench throughput);
my @lengths = qw(--random-input-len 24 --random-output-len 6);
my @small = (qw(--num-prompts 8), @lengths);
my @sim = (@verb, qw(--backend sim --model sim));
# The simulated engine in place of another backend's program.
my @as = (@verb, qw(--model sim --tokenizer sim --worker-cmd), "$program sim --engine-worker "
	. '--account account');
my @upstream = qw(model_id elapsed_time num_requests total_num_tokens requests_per_second
	tokens_per_second);

sub account {
	my @calls = grep { $_->{kind} ne 'load' } lines_of('account');
	unlink 'account';
	return @calls;
}

sub within {
	my ($name, $a, $b) = @_;
	cmp_ok(abs($a - $b), '<=', 0.01 * $b, $name);
}

# ---- on the simulated engine ----

my $r = run(args => [@sim, @small, qw(--num-warmups 3 --output-json r.json --account account)]);
check_run('a run', $r, { status => 0, out => [
	'When dataset path is not set, it will default to random dataset',
	'Warming up with 3 requests...',
	'Throughput: * requests/s, * total tokens/s, * output tokens/s',
	'Total num prompt tokens:  192', 'Total num output tokens:  48', 'Engine: sim *, simulated*',
	'Requests: 8 of 24.0 prompt tokens and 1 x 6.0 answer tokens on average, after 3 to warm up'] });
my $text = slurp('r.json');
my $j = json_of($text);
like($r->{out}, qr{^Throughput: \d+\.\d\d requests/s, \d+\.\d\d total tokens/s, \d+\.\d\d output tokens/s$}m,
	'upstream\'s line');
is("@{[keys_of($text)]}", "@upstream profllm", 'keys, upstream\'s first');
like($text, qr/\A\{\n    "model_id": "sim",\n    "elapsed_time": /, 'as Python writes it');
unlike($text, qr/\n\z/, 'without a line end');
my @calls = account();
is_deeply([map { $_->{requests} } @calls], [3, 8], 'the engine was asked twice');
is($j->{num_requests}, 8, 'requests');
is($j->{total_num_tokens}, $calls[1]{prompt_tokens} + $calls[1]{output_tokens}, 'tokens as there');
is($j->{profllm}{total_output_tokens}, $calls[1]{output_tokens}, 'answers\' as there');
within('its time', $j->{elapsed_time}, $calls[1]{wall_s});
within('requests in a second', $j->{requests_per_second}, 8 / $calls[1]{wall_s});
within('tokens in a second', $j->{tokens_per_second}, $j->{total_num_tokens} / $calls[1]{wall_s});
is_deeply([@{$j->{profllm}}{qw(command dataset random_input_len random_output_len seed
	token_counts)}], ['throughput', 'random', 24, 6, 0, 'counted'], 'what was run');

check_run('several runs', run(args => [@sim, @small, qw(--num-runs 3 --output-json r.json
	--account account)]), { status => 0, out => ['Runs: 3, median *'] });
$j = json_of(slurp('r.json'));
@calls = account();
is_deeply([map { $_->{requests} } @calls], [8, 8, 8], 'as often as asked');
is(scalar @{$j->{profllm}{elapsed_times}}, 3, 'with all their times');
is($j->{elapsed_time}, $j->{profllm}{elapsed_times}[0], 'upstream\'s is the first');
cmp_ok($calls[1]{cached_tokens}, '>', $calls[0]{cached_tokens}, 'for later ones find prompts');

check_run('the PyTorch file', run(args => [@sim, @small, qw(--output-json p.json)],
	env => { SAVE_TO_PYTORCH_BENCHMARK_FORMAT => 1 }), { status => 0 });
$j = json_of(slurp('p.json'));
my $records = json_of(slurp('p.pytorch.json'));
is_deeply([map { [$_->{metric}{name}, $_->{metric}{benchmark_values}] } @$records],
	[map { [$_, [$j->{$_}]] } qw(requests_per_second tokens_per_second)], 'both metrics');
is_deeply($records->[0]{metric}{extra_info},
	{ map { $_ => $j->{$_} } qw(elapsed_time num_requests total_num_tokens) }, 'beside them');
is($records->[0]{benchmark}{extra_info}{args}{dataset_name}, 'random', 'the name in force');

# ---- other methods, by the engine's account ----

for ([chat => 'chat', qw(--backend vllm-chat)], [prequeued => 'generate', '--prequeue-requests'],
	[vllm => 'generate', qw(--backend vllm)]) {
	my ($name, $kind, @more) = @$_;

	check_run($name, run(args => [@as, @small, @more]), { status => 0, out => ['Throughput: *'] });
	is(join(' ', map { "$_->{kind} $_->{requests}" } account()), "$kind 8", "$name: asked so");
}

# Upstream counts what was asked for here, one answer each.
for (['the asynchronous engine', qw(--async-engine)], ['its older name', qw(--backend vllm-async)],
	['transformers', qw(--backend hf --hf-max-batch-size 4)]) {
	my ($name, @more) = @$_;

	check_run($name, run(args => [@as, @small, @more, qw(--n 2 --output-json r.json)]), { status => 0,
		out => ['Total num output tokens:  48', '*he tokens above are those asked for*'] });
	is_deeply([@{json_of(slurp('r.json'))->{profllm}}{qw(token_counts counted_output_tokens)}],
		['requested', 96], "$name: both are saved");
	is(json_of(slurp('r.json'))->{profllm}{async_engine} ? 1 : 0, $name =~ /transf/ ? 0 : 1,
		"$name: the file says which engine");
	check_run("$name, mended", run(args => [@as, @small, @more, qw(--n 2 --fix token-counts)]),
		{ status => 0, out => ['Total num output tokens:  96'] });
}
unlink 'account';
check_run('an empty name of a file is none', run(args => [@sim, @small, '--output-json', '']),
	{ status => 0 });

check_run('adapters', run(args => [@sim, @small, qw(--enable-lora --lora-path x --max-loras 3
	--lora-assignment round-robin --account account)]), { status => 0 });
is((account())[0]{lora}, 8, 'each request has one');
check_run('adapters without an engine that takes them', run(args => [@sim, @small,
	qw(--lora-path x --account account)]), { status => 0,
	warn => ['WARNING: --lora-path has no effect on the engine without --enable-lora'] });
is((account())[0]{lora}, 0, 'none is handed over');
check_run('a share of the data', run(args => [@sim, @small, qw(--data-parallel-size 2
	--distributed-executor-backend external_launcher --account account)],
	env => { RANK => 1, WORLD_SIZE => 2 }), { status => 0, out => ['Requests: 4 of *'] });
is((account())[0]{requests}, 4, 'every second request');
check_run('a rank that is none of theirs', run(args => [@sim, @small, qw(--data-parallel-size 2
	--distributed-executor-backend external_launcher)], env => { RANK => 3, WORLD_SIZE => 2 }),
	{ status => 1, err => '*none of 8 requests is of data-parallel rank 3' });
my $pooled = run(args => [@sim, @small, qw(--runner pooling)]);
check_run('a model that embeds', $pooled, { status => 0, out => ['Total num output tokens:  0'] });
unlike($pooled->{out}, qr/came back/, 'no answers, and none missing');
check_run('pictures', run(args => [@sim, @small, qw(--dataset-name random-mm
	--random-mm-bucket-config), '{(32, 32, 1): 1.0}', qw(--account account)]), { status => 0 });
is((account())[0]{media}, 8, 'one each');

# ---- this program by its name ----

for my $env ({ PATH => '/usr/bin:/bin' }, other_profllm()) {
	check_run('profllm as the server', run(args => [@verb, qw(--backend http --model sim --tokenizer sim
		--server-cmd), 'profllm sim', @small], env => $env),
		{ status => 0, out => ['Throughput: *'] });
	check_run('profllm as the worker', run(args => [@verb, qw(--backend worker --model sim
		--tokenizer sim --worker-cmd), 'profllm sim --engine-worker', @small], env => $env),
		{ status => 0, out => ['Throughput: *'] });
}

# ---- lengths and sets in force ----

my @typed = qw(--num-prompts 2 --input-len 9 --output-len 5);
check_run('typed lengths count', run(args => [@sim, @typed, qw(--output-json r.json)]),
	{ status => 0, out => ['Total num prompt tokens:  18', 'Total num output tokens:  10'],
	warn => [] });
is_deeply(json_of(slurp('r.json'))->{profllm}{compat}, [], 'and the file says so');
check_run('lengths as in vLLM', run(args => [@sim, @typed, qw(--compat lengths --output-json r.json)]),
	{ status => 0, out => ['Total num prompt tokens:  2048', 'Total num output tokens:  256'],
	warn => ['WARNING: --input-len 9 has no effect, as in vLLM (--compat lengths): *1024 tokens',
		'WARNING: --output-len 5 has no effect, as in vLLM (--compat lengths): *128 tokens'] });
is_deeply(json_of(slurp('r.json'))->{profllm}{compat}, ['lengths'], 'and the file says that');
check_run('its opposite', run(args => [@sim, @typed, qw(--fix lengths)]),
	{ status => 0, out => ['Total num prompt tokens:  18', 'Total num output tokens:  10'],
	warn => ['WARNING: --fix lengths has no effect: it is the default; --compat lengths is the '
		. 'opposite'] });
check_run('that release', run(args => [@sim, @typed, qw(--compat v0.11)]),
	{ status => 0, out => ['Total num prompt tokens:  18', 'Total num output tokens:  10'] });
spew('sharegpt.json', '[' . join(', ', map { qq({"conversations": [{"from": "human", "value": )
	. qq("where is the house of number $_"}, {"from": "gpt", "value": "it is in the street $_"}]}) }
	1 .. 6) . ']');
check_run('a file', run(args => [@sim, qw(--dataset-path sharegpt.json --num-prompts 5 --output-len 4
	--output-json r.json)]), { status => 0, out => ['Total num output tokens:  20'],
	not_out => ['When dataset path is not set*'] });
is(json_of(slurp('r.json'))->{profllm}{dataset}, 'sharegpt', 'is sharegpt');
check_run('its older name', run(args => [@sim, qw(--dataset sharegpt.json --num-prompts 5
	--output-len 4)]), { status => 0, warn => ['*The \'--dataset\' argument will be *'] });
check_run('more requests than rows', run(args => [@sim, qw(--dataset-path sharegpt.json
	--num-prompts 9 --output-len 4 --no-oversample)]), { status => 0, out => ['Requests: 6 of *'] });

# A template that no table knows: the engine's program is asked, before it is loaded.
mkdir 'other';
spew('other/tokenizer.json', slurp("$FindBin::Bin/../unit/token/small.json"));
spew('other/tokenizer_config.json', '{}');
spew('other/chat_template.jinja', '{{ made_up }}');
spew('p.jsonl', qq({"prompt": "one prompt"}\n{"prompt": "word two"}\n));
my @custom = (@sim, qw(--tokenizer other --dataset-name custom --dataset-path p.jsonl --num-prompts 2
	--disable-shuffle --custom-output-len 3 --dump-workload w.jsonl));
check_run('a template of the engine\'s', run(args => [@custom, qw(--output-json r.json)]),
	{ status => 0 });
is_deeply([map { $_->{prompt} } lines_of('w.jsonl')],
	["<|user|>\none prompt\n<|assistant|>\n", "<|user|>\nword two\n<|assistant|>\n"],
	'is around the prompts');
is(json_of(slurp('r.json'))->{profllm}{chat_template}, 'engine', 'and named');
check_run('nobody to ask', run(args => [@custom, '--dry-run']), { status => 1,
	err => '*the chat template of * is unknown, and a dry run starts no engine to apply it; '
		. 'give --chat-prefix and --chat-suffix' });
check_run('a template of the user\'s', run(args => [@custom, '--dry-run', '--chat-prefix', 'Q: ',
	'--chat-suffix', '\nA:']), { status => 0, warn => [] });
is_deeply([map { $_->{prompt} } lines_of('w.jsonl')], ["Q: one prompt\nA:", "Q: word two\nA:"],
	'is around the prompts');
check_run('a template without an escape', run(args => [@custom, '--dry-run', '--chat-prefix', '\q']),
	{ status => 2, err => '*--chat-prefix: unknown escape \'\q\'; *' });
check_run('answers are as long as in bench serve', run(args => [@sim, qw(--dataset-name custom
	--dataset-path p.jsonl --num-prompts 2 --skip-chat-template --dump-workload w.jsonl --dry-run)]),
	{ status => 0 });
is_deeply([map { $_->{output_len} } lines_of('w.jsonl')], [256, 256], 'without a number: 256');
check_run('no template asked for', run(args => [@custom, qw(--dry-run --skip-chat-template)]),
	{ status => 0 });

# A poem needs a template to be counted with; a tokenizer without one is not the end.
spew('poem.txt', join '', map { "line $_ of a poem that is quite long\n" } 1 .. 200);
my @poem = (@sim, qw(--tokenizer sim --dataset-name sonnet --dataset-path poem.txt --num-prompts 3 --input-len
	300 --prefix-len 50 --output-len 4));
check_run('a poem without a template', run(args => [@poem]), { status => 2,
	err => '*with --chat-prefix and --chat-suffix' });
check_run('a poem', run(args => [@poem, '--chat-prefix', '<u>', '--chat-suffix', '</u>', '--output-json',
	'r.json']), { status => 0, out => ['Throughput: *'] });
is(json_of(slurp('r.json'))->{profllm}{chat_template}, 'flags', 'the file says whose template');
check_run('no messages, no template', run(args => [@sim, @small, '--chat-prefix', 'x']), { status => 0,
	warn => ['WARNING: --chat-prefix has no effect: the dataset is random'] });
check_run('a template that is skipped', run(args => [@custom, '--dry-run', '--chat-suffix', 'x',
	'--skip-chat-template']),
	{ status => 0, warn => ['WARNING: --chat-suffix has no effect with --skip-chat-template'] });

# ---- nothing is run ----

check_run('a dry run', run(args => [@sim, @small, qw(--dry-run --output-json none.json --seed 5)]),
	{ status => 0, out => ['Backend: sim', 'Requests: dataset random, seed 5',
		'Workload: 8 requests from dataset random; 192 prompt tokens, 48 output tokens'],
	not_out => ['Throughput:*'], gone => ['none.json'] });
check_run('no engine is needed for it', run(args => [@verb, qw(--tokenizer sim --dry-run), @small]),
	{ status => 0, out => ['Backend: vllm'] });
check_run('same requests', run(args => [@sim, @small, qw(--seed 5 --dump-workload a.jsonl)]),
	{ status => 0 });
check_run('again', run(args => [@verb, qw(--tokenizer sim --seed 5 --dry-run --dump-workload b.jsonl),
	@small]), { status => 0 });
is(slurp('a.jsonl'), slurp('b.jsonl'), 'whoever runs them');
check_run('what can be mended', run(args => [@verb, qw(--fix help)]), { status => 0,
	out => ['token-counts *'], not_out => ['lengths *'] });
check_run('what can be restored', run(args => [@verb, qw(--compat help)]), { status => 0,
	out => ['v0.11 *', 'lengths *', 'dataset-name *'] });

# ---- what is refused ----

for ([2, '*--backend*', qw(--backend nobody)], [2, '*--dataset-name*', qw(--dataset-name nobody)],
	[2, '*--num-prompts*', qw(--num-prompts many)],
	[2, '*--random-mm-bucket-config: *', '--random-mm-bucket-config', '{(1, 2): 1}'],
	[2, '*--fix: unknown name \'x\'*', qw(--fix x)],
	[2, '*--compat: unknown name \'x\'; --compat help lists the names', qw(--compat x)],
	[1, 'profllm bench throughput: Unknown backend: mii *', qw(--backend mii)],
	[2, 'profllm bench throughput: --backend hf needs --hf-max-batch-size', qw(--backend hf)],
	[2, 'profllm bench throughput: --num-prompts: expected at least 1, got 0', qw(--num-prompts 0)],
	[1, '*: Please ensure that max_model_len is greater than the sum of prompt_len and '
		. 'expected_output_len for all requests: request 0 has 24 and 6, the model takes 29',
		qw(--max-model-len 29)],
	[2, '*--random-range-ratio*', qw(--random-range-ratio 2)],
	[1, '*Profiling is not enabled*', qw(--profile)],
	[1, '*gives lists of texts in one request*', qw(--dataset-name random-rerank)],
	[2, '*--dataset-name hf needs --dataset-path', qw(--dataset-name hf)],
	[1, '*gives chat messages, which --backend vllm-chat takes and sim does not',
		qw(--dataset-path sharegpt.json --enable-multimodal-chat)],
	[1, '*cannot write /proc/none/r.json*', qw(--output-json /proc/none/r.json)]) {
	my ($status, $error, @args) = @$_;

	check_run("refused: @args", run(args => [@sim, @small, @args, qw(--worker-timeout 20)]),
		{ status => $status, err => $error, not_out => ['Throughput:*'] });
}

done_testing();
