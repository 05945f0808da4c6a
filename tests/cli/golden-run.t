#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Complete runs against the simulator: every line of stdout in its place, the result file's keys in
# upstream's order, file names, and what options add to them. Times and rates are masked, everything
# else must be the same.
use strict;
use warnings;
no warnings 'qw'; # commas are part of what options take
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $sim = start_sim(qw(--ttft-ms 4 --itl-ms 2));
my @serve = (qw(bench serve --tokenizer sim --port), $sim->{port});
my @small = qw(--num-prompts 4 --random-input-len 8 --random-output-len 5);
my @chat = qw(--backend openai-chat --endpoint /v1/chat/completions);
my $all = 'ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue';

# ---- reports ----

my @reports = (
	['run-plain.txt', @small],
	['run-stdout.txt', qw(--compat stdout), @small],
	['run-options.txt', qw(--model sim --temperature 0 --max-concurrency 2 --request-rate 100
		--metric-percentiles 50,90,99.9 --goodput ttft:1000 e2el:5000 --percentile-metrics),
		$all, @small],
	['run-chat.txt', '--model', 'sim', @chat, @small],
	['run-no-tokenizer.txt', qw(--model sim --skip-tokenizer-init --dataset-name custom
		--dataset-path custom.jsonl --num-prompts 2 --custom-output-len 3 --percentile-metrics e2el)],
	['run-ready.txt', qw(--model sim --temperature 0 --ready-check-timeout-sec 5 --num-warmups 2),
		@small],
	['run-ramp.txt', qw(--model sim --temperature 0 --ramp-up-strategy exponential --ramp-up-start-rps 50
		--ramp-up-end-rps 200 --burstiness 2), @small],
	['run-failures.txt', qw(--model sim --temperature 0 --request-id-prefix t-), @small],
	['run-short.txt', qw(--report short), @small],
	['run-short-failures.txt', qw(--report short --model sim --temperature 0
		--request-id-prefix t-), @small],
);

spew('custom.jsonl', qq({"prompt": "one prompt"}\n{"prompt": "and another one"}\n));
for my $row (@reports) {
	my ($golden, @args) = @$row;
	my $port = $golden =~ /failures/
		? start_sim(qw(--ttft-ms 4 --itl-ms 2 --fault status=429:id=t-1 close@3:id=t-2))->{port}
		: $sim->{port};
	my $r = run(args => [qw(bench serve --report full --tokenizer sim --port), $port, @args,
		'--record', 'run.rec', '--metrics-interval', '0']);
	my $is_short = $golden =~ /short/;
	my $again = run(args => [qw(bench score run.rec --report), $is_short ? 'short' : 'full']);

	is($r->{status}, 0, "$golden: exit status");
	is_golden(mask_run($r->{out}), $golden);
	like($r->{out}, $is_short ? qr/\n={50}\n(?:Failed, .*)?Verdict: .*\n={50}\n[^\n]*--report full\n\z/s
		: qr/\n={50}\n-+Server Metrics.*\n={50}\n\z/s,
		"$golden: ours follows upstream's closing line");
	is($again->{out}, substr($r->{out}, -length $again->{out}), "$golden: the record says the same");
	unlink 'run.rec';
}

# ---- what stdout is for ----

{
	my $json = run(args => [@serve, @small, qw(--report json)]);
	my $quiet = run(args => [@serve, @small, qw(-q)]);

	is(json_of($json->{out})->{completed}, 4, '--report json: stdout is the result');
	like($json->{err}, qr/^Successful requests: +4/m, 'and the report is on stderr');
	like(mask_run($quiet->{out}), qr/\A4 requests .*\nTTFT .*\nThe measurement is #\n\z/,
		'-q: three lines');
	unlike($quiet->{err}, qr/Benchmark:/, 'and no progress');
}

# ---- result files ----

my @head = qw(date endpoint_type backend label model_id tokenizer_id num_prompts);
my @traffic = qw(request_rate burstiness max_concurrency);
my @ramp = qw(ramp_up_strategy ramp_up_start_rps ramp_up_end_rps);
my @totals = qw(duration completed failed total_input_tokens total_output_tokens request_throughput
	request_goodput output_throughput total_token_throughput);
my @peaks = qw(max_output_tokens_per_s max_concurrent_requests rtfx);
my @detail = qw(input_lens output_lens ttfts itls latencies start_times queue_times generated_texts errors);
my @kept = qw(latencies queue_times);

sub blocks {
	my ($percentiles, @names) = @_;
	return map { my $m = $_; map { "${_}_${m}_ms" } qw(mean median std), map { "p$_" } @$percentiles }
		@names;
}

my @plain_blocks = blocks([99], qw(ttft tpot itl));
my @files = (
	['plain', [@head, @traffic, @totals, @kept, @peaks, @plain_blocks, 'profllm'], []],
	['detailed', [@head, @traffic, @totals, @detail, @peaks, @plain_blocks, 'profllm'],
		['--save-detailed']],
	['detail of the release', [@head, @traffic, @totals, @peaks, @plain_blocks, 'profllm'],
		['--compat', 'detail']],
	['metadata', [@head, qw(gpu completed note), @traffic, grep({ $_ ne 'completed' } @totals), @kept,
		@peaks, @plain_blocks, 'profllm'],
		[qw(--metadata gpu=2 completed=no backend=mine note=), 'gpu=4']],
	['metrics', [@head, @traffic, @totals, @kept, @peaks, blocks(['50', '99.9'], qw(ttft e2el
		client_queue_time e2el_including_client_queue)), 'profllm'],
		[qw(--max-concurrency 3 --request-rate 100 --metric-percentiles 50,99.9 --percentile-metrics),
		'e2el_including_client_queue,client_queue_time,e2el,ttft']],
	['ramp-up', [@head, @traffic, @ramp, @totals, @kept, @peaks, 'rps_change_events', @plain_blocks,
		'profllm'], [qw(--ramp-up-strategy linear --ramp-up-start-rps 50 --ramp-up-end-rps 80)]],
	['no tokenizer', [@head, @traffic, @totals, @kept, @peaks, 'profllm'],
		[qw(--skip-tokenizer-init --dataset-name custom --dataset-path custom.jsonl)]],
);

my $result;
for my $row (@files) {
	my ($name, $keys, $args) = @$row;
	my @args = (qw(--model sim --temperature 0), @$args, qw(--save-result --result-filename r.json));
	my $r = run(args => [@serve, grep({ $name ne 'no tokenizer' || !/^--random|^[58]$/ } @small), @args]);
	my $text = slurp('r.json') // '';

	is($r->{status}, 0, "result, $name: exit status") or diag($r->{err});
	is(join(' ', keys_of($text)), join(' ', @$keys), "result, $name: keys in order");
	unlike($text, qr/\n|[^\x20-\x7e]/, "result, $name: one line of ASCII");
	$result = json_of($text) if $name eq 'metadata';
	unlink 'r.json';
}

is($result->{gpu}, '4', 'a repeated metadata key takes the last value');
is($result->{backend}, 'mine', 'metadata overwrites an earlier key in place');
is($result->{completed}, 4, 'and is overwritten by a later one');
is($result->{request_rate}, 'inf', 'an infinite rate is the text inf');
is($result->{num_prompts}, 4, 'the number of prompts is the flag');
ok($result->{profllm}{version} ne '' && $result->{profllm}{options}{seed} == 0,
	'ours names version and options');

# ---- file names, directories, appending ----

my $stamp = '\d{8}-\d{6}';
my @names = (
	["openai-infqps-sim-$stamp", qw(--model sim)],
	["vllm-100\\.0qps-sim-$stamp", qw(--model sim --backend vllm --request-rate 100)],
	["openai-0\\.5e\\+03qps-sim-$stamp|openai-500\\.0qps-sim-$stamp",
		qw(--model sim --request-rate 0.5e3)],
	["openai-infqps-concurrency7-sim-$stamp", qw(--model sim --max-concurrency 7)],
	["mine-infqps-sim-$stamp", qw(--model sim --label mine)],
	["openai-ramp-up-linear-50qps-90qps-concurrency2-sim-$stamp", qw(--model sim --max-concurrency 2
		--ramp-up-strategy linear --ramp-up-start-rps 50 --ramp-up-end-rps 90)],
	["openai-infqps-last-$stamp", qw(--model org/first/last --served-model-name sim)],
	["openai-infqps-sim-$stamp"],
);
for my $row (@names) {
	my ($pattern, @args) = @$row;
	my $r = run(args => [@serve, @small, @args, qw(--save-result --result-dir), 'deep/dir']);
	my @found = map { s,.*/,,r } glob('deep/dir/*');

	ok($r->{status} == 0 && @found == 1 && $found[0] =~ /\A(?:$pattern)\.json\z/, "file name: @args")
		or diag("@found\n$r->{err}");
	unlike($r->{out} =~ s/^Namespace.*//r, qr/deep/, "file name: @args: no path is printed");
	unlink map { "deep/dir/$_" } @found;
}

my $sum = 0;
for (1 .. 3) {
	my $r = run(args => [@serve, @small, qw(--model sim --append-result --result-filename log.json)]);
	$sum += $r->{status};
}
my @lines = split /\n/, slurp('log.json'), -1;
ok($sum == 0 && @lines == 3 && !(grep { !eval { json_of($_)->{completed} == 4 } } @lines),
	'appended results are JSON lines with no newline at the end');

# ---- what the server was asked ----

my $spy = start_sim(qw(--ttft-ms 1 --itl-ms 1 --served-model-name served --requests requests.jsonl));
sub asked {
	my (@args) = @_;
	my $before = () = (slurp('requests.jsonl') // '') =~ /\n/g;
	my @new;

	run(args => [qw(bench serve --tokenizer sim --port), $spy->{port}, @args]);
	wait_for('requests file', sub {
		my @all = split /\n/, slurp('requests.jsonl') // '';
		@new = map { json_of($_) } @all[$before .. $#all];
		return grep { $_->{path} =~ /completions/ } @new;
	});
	return grep { $_->{path} =~ /completions/ } @new;
}

my @got = asked(qw(--model other --served-model-name served --num-prompts 1 --random-input-len 4
	--temperature 0.5 --top_k 3 --extra-body.min_tokens 2 --request-id-prefix p- --header X-A=1));
my $body = json_of($got[0]{body});
is(join(' ', keys_of($got[0]{body})), 'model prompt repetition_penalty max_tokens logprobs stream '
	. 'stream_options ignore_eos top_k temperature min_tokens', 'keys of the body in order');
is($body->{model}, 'served', '--served-model-name is the model of the request');
is_deeply([@$body{qw(temperature top_k min_tokens max_tokens)}], [0.5, 3, 2, 128], 'sampling and extra body');
is($got[0]{request_id}, 'p-0', 'request id');
@got = asked(qw(--num-prompts 1 --random-input-len 4));
is(json_of($got[0]{body})->{model}, 'served', 'without --model it is the first one the server lists');

# ---- progress ----

my @slow = (@serve, qw(--model sim --num-prompts 2 --random-input-len 8 --random-output-len 150));
my $r = run(args => \@slow);
like($r->{err}, qr{^Benchmark: 2/2 \[00:00, \d+\.\d\d/s, in flight 0, \d+ tok/s\]$}m,
	'progress is a line without a terminal');
unlike($r->{err}, qr/\r/, 'and nothing is drawn');
is(run(args => [@slow, '--disable-tqdm'])->{err}, '', '--disable-tqdm: none');
is(run(args => [@slow, qw(--progress none)])->{err}, '', '--progress none: none');
like(run(args => [@slow, qw(--progress bar)])->{err}, qr{\rBenchmark: +\d+%\|[# ]{24}\| \d/2 },
	'--progress bar: a bar');
SKIP: {
	my $why = no_script();
	skip $why, 1 if $why;
	my $command = join ' ', map { "'$_'" } $program, @slow;
	my $t = run(command => ['script', '-q', '-e', '-c', $command, 'typescript']);
	like($t->{out}, qr{\rBenchmark: 100%\|#{24}\| 2/2 }, 'on a terminal it is a bar');
}

# ---- --strict and a line as users paste it ----

my $faulty = start_sim(qw(--ttft-ms 1 --itl-ms 1 --fault status=500:id=t-1));
my @strict = (qw(bench serve --model sim --tokenizer sim --request-id-prefix t- --port), $faulty->{port},
	@small);
is(run(args => [@strict])->{status}, 0, 'failed requests alone: 0');
is(run(args => [@strict, '--strict'])->{status}, 3, 'failed requests with --strict: 3');
is(run(args => [@serve, @small, qw(--strict --skip-no-such)])->{status}, 2, 'usage stays 2');

my $pasted = run(args => [qw(bench serve --backend openai --base_url), $sim->{url},
	qw(--model sim --tokenizer sim --dataset_name random --random_input_len 16 --random-output-len=6
	--num_prompts 5 --request-rate inf --ignore-eos
	--percentile_metrics ttft,tpot,itl,e2el --metric-perc 95 --save-res
	--result_dir pasted --seed 42)]);
check_run('a pasted line with underscores and abbreviations', $pasted, { status => 0,
	out => ['Successful requests: * 5 *', 'Total generated tokens: * 30 *', 'P95 E2EL (ms): *'] });
is(scalar(my @pasted = glob 'pasted/openai-infqps-sim-*.json'), 1, 'and its result');

done_testing();
