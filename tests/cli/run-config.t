#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-config.t - the configuration of `profllm run` by the verb: mistakes with their file, line and
# column, --set, the environment, includes, and the document of what never began. What every single
# value may be is in tests/unit/test_config_config.c.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use POSIX ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = '';
delete $ENV{CONFIG_TEST_MODEL};
mkdir 'state';

sub try_config {
	my ($text, @more) = @_;

	spew('exp.yaml', $text);
	return run(args => ['run', '--config', 'exp.yaml', '--dry-run', @more]);
}

# name, configuration, words, lines of stderr without "profllm run: "
my @refused = (
	['an unknown key', "server:\n  command: sim\n  max_num_sqs: 4\n", [],
		'exp.yaml:3:3: server.max_num_sqs: unknown key; did you mean max_num_seqs?'],
	['a key of the simulator', "server:\n  command: sim\n  ttft_mss: 4\n", [],
		'exp.yaml:3:3: server.ttft_mss: unknown key; did you mean ttft_ms?'],
	['the simulator\'s key in another server', "server:\n  ttft_ms: 4\n", [],
		'exp.yaml:2:3: server.ttft_ms: unknown key'],
	['a wrong type', "server: {command: sim}\nbenchmark:\n  num_prompts: [1, 2]\n", [],
		'exp.yaml:3:16: benchmark.num_prompts: expected an integer of at most 268435456, got a list'],
	['a value out of range', "server:\n  gpu_memory_utilization: 1.5\n", [],
		'exp.yaml:2:27: server.gpu_memory_utilization: expected a number above 0 and at most 1, '
		. "got '1.5'"],
	['a range of the simulator\'s', "server:\n  command: sim\n  max_num_seqs: 0\n", [],
		'exp.yaml:3:17: server.max_num_seqs: expected an integer from 1 to 1000000, got \'0\''],
	['a choice', "server:\n  dtype: int9\n", [],
		'exp.yaml:2:10: server.dtype: expected one of auto, bfloat16, float, float16, float32, half, '
		. "got 'int9'"],
	['several mistakes', "server:\n  modle: m\n  port: -1\nbenchmark:\n  seed: x\n", [],
		'exp.yaml:3:9: server.port: expected an integer from 0 to 65535, got \'-1\'',
		'exp.yaml:2:3: server.modle: unknown key; did you mean model?',
		'exp.yaml:5:9: benchmark.seed: expected an integer from 0 to 4294967295, got \'x\''],
	['bad YAML', "server: [\n", [], "exp.yaml:2:1: expected a value"],
	['a tab', "server:\n\tport: 1\n", [], 'exp.yaml:2:1: a tab; YAML is indented with blanks'],
	['a key twice', "server:\n  port: 1\n  port: 2\n", [],
		"exp.yaml:3:3: the key 'port' appears twice; it is also at 2:3"],
	['no experiment', "", [], 'exp.yaml is empty; expected sections such as server and benchmark'],
	['--set', "server: {command: sim}\n", ['--set', 'server.port=x'],
		"--set server.port=x: server.port: expected an integer from 0 to 65535, got 'x'"],
	['--set without a value', "server: {}\n", ['--set', 'server'],
		'--set server: expected KEY=VALUE, for example benchmark.num_prompts=100'],
	['--set of what is included', "server: {}\n", ['--set', 'include=a.yaml'],
		'--set include=a.yaml: files are included before values are changed; write include in the '
		. 'file'],
	['a matrix of nothing', "server: {command: sim, model: sim}\nmatrix: {}\n", [],
		'exp.yaml:2:9: matrix: expected an object with a list of values for each path, such as '
		. '{server.max_num_seqs: [64, 256]}, got an empty one'],
	['an unset variable', "server:\n  model: \${CONFIG_TEST_MODEL}\n", [],
		'exp.yaml:2:10: server.model: the environment variable CONFIG_TEST_MODEL is not set; set '
		. 'it, or write ${CONFIG_TEST_MODEL:-default}'],
	['a rule between values', "server:\n  max_num_batched_tokens: 64\n  max_num_seqs: 128\n", [],
		'exp.yaml:3:17: server.max_num_seqs: 128 is more than max_num_batched_tokens (64): each '
		. 'running request takes a token of every step'],
	['requests beyond the model', "server: {command: sim, max_model_len: 512}\nbenchmark:\n"
		. "  random_input_len: 500\n  random_output_len: 100\n", [],
		'exp.yaml:3:21: benchmark.random_input_len: requests of up to 600 tokens (prefix 0, prompt '
		. '500, answer 100, ratio 0), and server.max_model_len is 512'],
	['what a suite is for', "server: {command: sim}\nbenchmark:\n  sweep_num_prompts_factor: 2\n",
		[],
		'exp.yaml:3:3: benchmark.sweep_num_prompts_factor: cannot be set here; it is for '
		. '--sweep-max-concurrency; give num_prompts in each entry of experiments instead'],
	['blocks of the simulator, too', "server:\n  command: sim\n  block_size: 7\n", [],
		'exp.yaml:3:15: server.block_size: expected 1 or a multiple of 8, got 7'],
	['drafts of nobody knows how many tokens',
		"server:\n  command: sim\n  speculative_config: {method: ngram}\n", [],
		'exp.yaml:3:23: server.speculative_config: method ngram needs '
		. 'num_speculative_tokens, because '
		. 'no draft model defines it'],
	['several GPUs where none is', "server: {command: vllm serve}\n", ['--set',
		'server.tensor_parallel_size=4'],
		'--set server.tensor_parallel_size=4: server.tensor_parallel_size: 4 GPUs are needed, but '
		. 'none is available here (does nvidia-smi list any?); '
		. 'resources.gpus: none starts the server without GPUs'],
	['a GPU that was asked for', "server: {command: vllm serve, gpus: 1}\n", [],
		'exp.yaml:1:37: server.gpus: 1 GPU is needed, but none is available here (does nvidia-smi '
		. 'list any?); resources.gpus: none starts the server without GPUs'],
	['no GPU', "server: {command: vllm serve}\nresources:\n  gpus: 2\n", [],
		'exp.yaml:3:9: resources.gpus: 2 requested, but no GPU may be used here'],
);
for my $row (@refused) {
	my ($name, $text, $words, @want) = @$row;
	my $r = try_config($text, @$words);

	is($r->{err}, join('', map { "profllm run: $_\n" } @want), $name);
	is($r->{status}, 2, 'which is the user\'s mistake');
}

# ---- files ----

spew('a.yaml', "include: b.yaml\n");
spew('b.yaml', "include: [c.yaml]\n");
spew('c.yaml', "include:\n  - a.yaml\n");
my $r = run(args => [qw(run --config a.yaml --dry-run)]);
is($r->{err}, "profllm run: c.yaml:2:5: include: a cycle: a.yaml includes b.yaml, which includes "
	. "c.yaml, which includes a.yaml again\n", 'a cycle of includes is spelled out');

spew('big.yaml', "server: {command: sim}\n" . ("# nothing of any use to anybody\n" x 330000));
ok(-s 'big.yaml' > 10 << 20, 'a configuration of 10 MB');
$r = run(args => [qw(run --config big.yaml --dry-run)]);
like($r->{err}, qr/^profllm run: --config: big\.yaml has \d+ bytes; the limit is 4194304\n\z/,
	'is refused by its size');
is($r->{status}, 2, 'at once');

spew('bomb.yaml', "a: &a [x, x, x, x, x, x, x, x, x, x]\n" . join('', map {
	"$_->[0]: &$_->[0] [" . join(', ', ("*$_->[1]") x 10) . "]\n"
} ['b', 'a'], ['c', 'b'], ['d', 'c'], ['e', 'd'], ['f', 'e'], ['g', 'f']));
$r = run(args => [qw(run --config bomb.yaml --dry-run)]);
like($r->{err}, qr/^profllm run: bomb\.yaml:1:\d+: more than 1000000 values \(YAML_VALUES_MAX\)\n\z/,
	'aliases that multiply are stopped');

$r = run(args => [qw(run --config none.yaml --dry-run)]);
is($r->{err}, "profllm run: --config: cannot open none.yaml: No such file or directory\n", 'no file');

spew('exp.json', qq({"server": {"command": "sim",\n  "port": "x"}}));
$r = run(args => [qw(run --config exp.json --dry-run)]);
is($r->{err}, "profllm run: exp.json:2:11: server.port: expected an integer from 0 to 65535, got 'x'\n",
	'JSON has places, too');

# ---- what is good ----

mkdir 'sub';
spew('sub/base.yaml', "server: {command: sim, model: '\${CONFIG_TEST_MODEL}', max_num_seqs: 4}\n");
spew('exp.yaml', "include: sub/base.yaml\nserver: {max_num_seqs: 8}\nbenchmark: {num_prompts: 3}\n");
$r = run(args => [qw(run --config exp.yaml --set benchmark.request_rate=inf
	--set server.enable_prefix_caching=false --dry-run)], env => { CONFIG_TEST_MODEL => 'some/model' });
is($r->{status}, 0, 'file, include, environment and --set make one') or diag($r->{err});
like($r->{out}, qr/sim some\/model .*--max-num-seqs 8 /, 'the file wins over what it includes');
like($r->{out}, qr/ --no-enable-prefix-caching/, 'false turns a switch off');
like($r->{out}, qr/--num-prompts 3\b/, 'the benchmark is as written');

$r = run(args => [qw(run --config - --dry-run)], in => "server: {command: sim}\n");
is($r->{status}, 0, 'stdin is read') or diag($r->{err});

$r = try_config("server: {command: vllm serve, task: generate, model: m}\n");
like($r->{err}, qr/^WARNING: exp\.yaml:1:37: server\.task: vLLM has it up to 0\.12 only; it became runner$/m,
	'what vLLM gave up is said, with what came after it');

# What may be meant is a warning.
for (
	['a quantization of a plugin', '{command: vllm serve, model: m, quantization: magic}',
		'server.quantization: vLLM has no magic of its own; a plugin may'],
	['a parser that is mistyped', '{command: vllm serve, model: m, reasoning_parser: deepseek_r2}',
		'server.reasoning_parser: vLLM has no deepseek_r2 of its own; a plugin may; did you mean '
		. 'deepseek_r1?'],
	['GPUs of the simulator', "{command: sim, model: sim}\nresources: {gpus: 4}",
		'resources.gpus: no GPU may be used here; the simulator runs without, so nothing about GPUs '
		. 'is tested'],
) {
	my ($name, $server, $warn) = @$_;

	check_run($name, try_config("server: $server\nbenchmark: {tokenizer: sim}\n"), { status => 0,
		warn => ["WARNING: exp.yaml:*: $warn"] });
}
unlike(try_config("server: {command: vllm serve, model: m, quantization: fp8, reasoning_parser: "
	. "deepseek_r1}\nbenchmark: {tokenizer: sim}\n")->{err}, qr/of its own/, 'names of vLLM\'s own');
is(try_config("server: {command: vllm serve, model: m, tensor_parallel_size: 4}\nbenchmark: "
	. "{tokenizer: sim}\n", '--set', 'resources.gpus=none')->{status}, 0,
	'an engine without a GPU, when that is said');
like(try_config("server: {command: sim, kv_cache_dtype: fp9}\n")->{err},
	qr/^profllm run: exp\.yaml:1:40: server\.kv_cache_dtype: expected one of auto, .*, got 'fp9'/,
	'the simulator\'s arguments are judged by the table, too');

my $page = run(args => [qw(run --print-keys)])->{out};
is($page, slurp("$FindBin::Bin/../../docs/reference/experiment.md"),
	'the reference of keys is what the program reads');
cmp_ok(scalar(() = $page =~ /^\| `/mg), '>', 250, 'all of them');

# ---- what a text costs, and how its reading ends ----

# CPU time of `run --plan` on a file, in seconds: the least of three.
sub cost_of {
	my ($file) = @_;
	my $least = 1e9;

	for (1 .. 3) {
		my @before = times;
		$r = run(args => ['run', '--config', $file, '--plan', '-']);
		my @after = times;
		my $took = $after[2] + $after[3] - $before[2] - $before[3];
		$least = $took if $took < $least;
	}
	return $least;
}

my $start = cost_of(spew('exp.yaml', "a: b\n")); # of any program, more under a sanitizer
for (['exp.yaml', 'a: ' . '[' x 1_000_000, '1:67'], ['exp.yaml', 'a: ' . '{' x 1_000_000, '1:67'],
	['exp.yaml', '- ' x 500_000, '1:129'], ['exp.json', '[' x 1_000_000, '1:65'],
	['exp.json', '{"a":' x 200_000, '1:321']) {
	my ($file, $text, $place) = @$_;
	my $cpu = cost_of(spew($file, $text)) - $start;

	is($r->{status}, 2, "a megabyte of " . substr($text, 0, 8) . " in $file is refused");
	like($r->{err}, qr/^profllm run: $file:$place: nested deeper than .*JSON_DEPTH_MAX/,
		'where it is too deep');
	diag(sprintf '%.2f s of CPU', $cpu);
	cmp_ok($cpu, '<', 0.2, 'at once');
}
unlink 'exp.json';

# Nothing has been started while a configuration is read, so one signal is enough.
for my $signal (qw(TERM INT HUP)) {
	pipe my $from, my $to or die "$!\n";
	my $pid = fork // die "$!\n";

	if (!$pid) {
		close $to;
		open STDIN, '<&', $from;
		open STDERR, '>', 'signal.err';
		exec { $program } $program, qw(run --config - --plan -) or POSIX::_exit(127);
	}
	close $from;
	syswrite $to, "name: x\n";
	wait_for('the reading', sub { (slurp("/proc/$pid/wchan") // '') =~ /pipe/
		|| (slurp("/proc/$pid/stat") // '') =~ /^\d+ \(profllm\) S/ });
	kill $signal, $pid;
	wait_for("the end by SIG$signal", sub { waitpid($pid, POSIX::WNOHANG()) > 0 });
	is($? & 127, { TERM => 15, INT => 2, HUP => 1 }->{$signal}, "SIG$signal ends the reading of stdin");
	close $to;
}

# ---- the document of what never began ----

spew('exp.yaml', "server:\n  command: sim\n  prot: 1\n");
$r = run(args => [qw(run --config exp.yaml --output r.json)]);
is($r->{status}, 2, 'a wrong configuration');
my $d = json_of(slurp('r.json') // '{}');
is($d->{status}, 'failed', 'leaves a failed document');
is($d->{error}{stage}, 'config', 'of the stage config');
is($d->{error}{reason}, 'exp.yaml:3:3: server.prot: unknown key; did you mean port?',
	'with the reason');

done_testing;
