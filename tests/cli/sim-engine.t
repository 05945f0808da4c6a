#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm sim as vLLM's server: its argument list, what does not fit, how it starts and fails.
use strict;
use warnings;
no warnings 'qw'; # commas and braces are part of what options take
use FindBin;
use lib $FindBin::Bin;
use Cli;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep);

my $model = 'meta-llama/Llama-3.1-8B-Instruct';

# A server that this file ends, whatever happens.
my @served;
sub serve {
	push @served, begin(args => [@_]);
	return $served[-1];
}
END { my $status = $?; kill 'KILL', map { defined $_->{status} ? () : $_->{pid} } @served; $? = $status }

sub wait_file {
	my ($path) = @_;
	wait_for($path, sub { -s $path });
}

# ---- arguments ----
# Status, stderr, arguments. --explain ends without serving.
my @rows = (
	[0, qr/^\z/, $model, qw(--explain)],
	[0, qr/^\z/, $model, qw(-tp 2 -pp=2 --data_parallel_size 2 --gpu-memory-util 0.85 -q fp8
		--kv-cache-dtype fp8_e4m3 --dtype bfloat16 --max-model-len 32K --max-num-seqs 64
		--max-num-batched-tokens 4096 --block-size 32 --no-enable-prefix-caching
		--enable-chunked-prefill --enforce-eager --no-async-scheduling --load-format dummy
		--served-model-name a b --explain)],
	[0, qr/^\z/, $model, '--speculative-config', '{"method":"ngram","num_speculative_tokens":4}',
		'--explain'],
	[0, qr/^\z/, $model, qw(-sc.method ngram --speculative-config.num_speculative_tokens 4 -O0
		--explain)],
	[0, qr/^WARNING: no effect in the simulator: --swap-space\n\z/, $model,
		qw(--scheduling-policy priority --swap-space 4 --explain)],
	[0, qr/^\z/, $model, qw(--max-model-len auto --gpu l4-24gb --explain)],
	[2, qr/--scheduling-policy: expected one of fcfs/, $model, qw(--scheduling-policy best)],
	[2, qr/--tensor-paralel-size; did you mean --tensor-parallel-size\?/, '--tensor-paralel-size', 2],
	[2, qr/--scheduling-polcy; did you mean --scheduling-policy\?/, qw(--scheduling-polcy fcfs)],
	[2, qr/--max-num-sqs; did you mean --max-num-seqs\?/, qw(--max-num-sqs 3)],
	[2, qr/--gpu: /, qw(--gpu h101)],
	[2, qr/--quantization strange/, $model, qw(--quantization strange)],
	[2, qr/--speculative-config/, $model, qw(--speculative-config {)],
	[2, qr/--die-after: expected a time/, qw(--die-after soon)],
	[2, qr/--fail-start: expected oom, killed or exit=N/, qw(--fail-start somehow)],
	[1, qr/torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate/, 'meta-llama/Llama-3.1-70B'],
	[1, qr/No available memory for the cache blocks/, $model, qw(--gpu l4-24gb
		--gpu-memory-utilization 0.5)],
	[1, qr/KV cache is needed, which is larger than the available KV cache memory \(4\.\d\d GiB\)/,
		$model, qw(--gpu l4-24gb)],
	[1, qr/divisible by tensor parallel size \(3\)/, $model, qw(-tp 3)],
	[1, qr/CUDA out of memory/, qw(--fail-start oom)],
	[1, qr/: ValueError: The model's max seq len \(8192\) is larger than the maximum number of tokens /,
		qw(--num-gpu-blocks-override 64 --max-model-len 8192)],
	[1, qr/max seq len \(1000\) is larger .* in KV cache \(992\)/,
		qw(--kv-cache-tokens 1000 --max-model-len 1000)],
	[1, qr/max seq len \(131072\) is larger .* in KV cache \(0\)/, qw(--kv-cache-tokens 15)],
	[1, qr/max seq len \(131072\) is larger .* in KV cache \(4096\)/, $model, qw(--kv-cache-tokens 4096)],
	[7, qr/^\z/, qw(--fail-start exit=7)],
	['signal 9', qr/^\z/, qw(--fail-start killed)],
);

for my $row (@rows) {
	my ($status, $err, @args) = @$row;
	my $r = run(args => ['sim', @args]);

	is($r->{status}, $status, "@args") or diag($r->{err});
	like($r->{err}, $err, '... what it says');
}

my $noted = serve(qw(sim --port 0 --port-file n -tp 2 --num-gpu-blocks-override 100));
wait_file('n');
kill 'TERM', $noted->{pid};
like(finish($noted)->{err}, qr/no effect without --gpu, .*: --tensor-parallel-size\n/,
	'hardware that nobody named');

# A length that was not given is the cache's size, and no request is longer.
for my $row ([1024, '131072', qw(--num-gpu-blocks-override 64)],
	[512, '8192', qw(--kv-cache-tokens 520 --max-model-len auto)]) {
	my ($room, $from, @args) = @$row;
	my $tight = start_sim(@args);
	my @load = (qw(bench serve --model sim --tokenizer sim --num-prompts 1 --ignore-eos
		--random-output-len 10 --port), $tight->{port});

	is(run(args => [@load, '--random-input-len', $room - 10])->{status}, 0,
		"@args: what fits is answered");
	my $long = run(args => [@load, '--random-input-len', $room - 9]);
	like($long->{out} . $long->{err}, qr/maximum context length is $room tokens/,
		'one more token is refused');
}
my $told = serve(qw(sim --port 0 --port-file t --num-gpu-blocks-override 64));
wait_file('t');
kill 'TERM', $told->{pid};
like(finish($told)->{err}, qr/the KV cache holds 1024 tokens: --max-model-len is 1024 and not 131072\n/,
	'which is said');
my $oracle = run(args => [qw(sim --ttft-ms 1 --kv-cache-tokens 16 --show-config)]);
is($oracle->{status}, 0, 'the oracle has no cache that could be too small');
my $offline = run(args => [qw(bench throughput --backend sim --tokenizer sim --num-prompts 2 --input-len 1024
	--output-len 128 --num-gpu-blocks-override 64 --max-model-len 8192)]);
is($offline->{status}, 1, 'offline too') or diag($offline->{out}, $offline->{err});
like($offline->{err}, qr/max seq len \(8192\) is larger .* in KV cache \(1024\)/, 'for the same reason');

# ---- sizes that everybody states alike ----
sub explained {
	my $r = run(args => ['sim', $model, @_, '--explain']);
	my ($tokens, $blocks) = $r->{out} =~ /^KV cache tokens +(\d+) in (\d+) blocks of/m;
	my ($step) = $r->{out} =~ /^decode step, batch 1 +([\d.]+) ms/m;

	return ($tokens, $blocks, $step);
}

my ($tokens, $blocks, $step) = explained();
my ($fp8) = explained(qw(--kv-cache-dtype fp8));
my ($half, undef, $faster) = explained(qw(-tp 2));

is($tokens, $blocks * 16, 'tokens are blocks');
ok($fp8 >= 2 * $tokens && $fp8 < 2 * $tokens + 16, 'FP8 entries: twice as many');
ok($half > 2 * $tokens, 'two GPUs: more than twice as many');
ok($faster < $step && $faster > $step / 2, 'and faster, but not twice as fast');
is((explained(qw(--num-gpu-blocks-override 9000)))[0], 144000, 'blocks as they are told');

# ---- starting ----
sub get {
	my ($port, $path) = @_;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or return undef;
	local $/;

	print $s "GET $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	return scalar <$s>;
}

my $port = free_port();
my $slow = serve('sim', $model, '--port', $port, qw(-dp 2 --load-format dummy --enforce-eager
	--startup-scale 0.6 --port-file slow));
my $refused = 0;
$refused++ while !-s 'slow' && !get($port, '/health') && sleep 0.05;
cmp_ok($refused, '>', 3, 'nothing listens while it loads');
wait_file('slow');
like(get($port, '/health'), qr/^HTTP\/1.1 200 /, 'then it is ready');
my @info = get($port, '/metrics') =~ /^vllm:cache_config_info\{(.*)\} 1\.0/mg;
is(scalar(@info), 2, 'sizes of the cache for each engine');
like($info[1], qr/block_size="16",engine="1",num_gpu_blocks="$blocks"/, 'as explained');
kill 'TERM', $slow->{pid};
finish($slow);
is($slow->{status}, 0, 'ends by SIGTERM');
my $commas = reverse join ',', unpack '(A3)*', reverse $tokens;
my $fits = 'Maximum concurrency for 131,072 tokens per request';
my @log = (qr/^INFO Starting to load model \Q$model\E\.\.\.$/m,
	qr/^INFO Loading weights took 0\.30 seconds$/m,
	qr/^INFO Model loading took 14\.96 GiB memory and 0\.300000 seconds$/m,
	qr/^\(EngineCore_DP1 pid=\d+\) INFO GPU KV cache size: $commas tokens, $fits: 3\.\d\dx$/m,
	qr/^INFO init engine \(profile, create kv cache, warmup model\) took 1\.20 s$/m,
	qr/^INFO Application startup complete\.$/m);
like($slow->{err}, $_, 'log') for @log;

# A signal while it loads.
my $early = serve('sim', $model, qw(--port 0 --startup-scale 100));
sleep 0.05 until -s $early->{err_path};
kill 'TERM', $early->{pid};
is(finish($early)->{status}, 0, 'stopped while it loads');

# ---- failing later ----
my $dying = serve(qw(sim --port 0 --port-file dying --die-after 2req --ttft-ms 1));
wait_file('dying');
my $bench = run(args => [qw(bench serve --model sim --tokenizer sim --num-prompts 5 --max-concurrency 1
	--random-input-len 4 --random-output-len 2 --temperature 0 --ready-check-timeout-sec 0 --port),
	slurp('dying') =~ /(\d+)/]);
is(finish($dying)->{status}, 1, 'dies at the third request');
like($dying->{err}, qr/the engine died, as --die-after wants it/, '... and says so');
like($bench->{out}, qr/Successful requests: +2\b/, '... two were served');
is(run(args => [qw(sim --port 0 --die-after 100ms)])->{status}, 1, 'dies after a time');

my $deaf = serve(qw(sim --port 0 --port-file deaf --ignore-term));
wait_file('deaf');
kill 'TERM', $deaf->{pid};
sleep 0.2;
ok(kill(0, $deaf->{pid}), '--ignore-term: still there');
like(get(slurp('deaf') =~ /(\d+)/, '/health'), qr/^HTTP\/1.1 200 /, '... and serving');
kill 'INT', $deaf->{pid};
is(finish($deaf)->{status}, 0, '... until SIGINT');

my $never = serve(qw(sim --port 0 --port-file never --never-ready));
sleep 0.02 until (slurp($never->{err_path}) // '') =~ /^INFO init engine/m;
ok(!-e 'never', '--never-ready: no port');
kill 'TERM', $never->{pid};
is(finish($never)->{status}, 0, '... ends by SIGTERM');

# The daemon: a process of another session that outlives its server.
sub sims_of {
	my ($mark) = @_;
	my @pids;

	for my $path (glob '/proc/[0-9]*/cmdline') {
		my $line = slurp($path) // next;
		push @pids, $path =~ m,/(\d+)/, if $line =~ /\0\Q$mark\E\0/;
	}
	return @pids;
}

my $parent = serve(qw(sim --port 0 --fork-daemon --port-file), "daemon$$");
wait_file("daemon$$");
kill 'TERM', $parent->{pid};
is(finish($parent)->{status}, 0, '--fork-daemon: the server ends');
my @left = sims_of("daemon$$");
is(scalar(@left), 1, '... and one process is left');
kill 'KILL', @left;

# ---- a link called vllm ----
symlink($ENV{PROFLLM}, 'vllm') or die;
# What it says when it ends: CPU time per event, without the time between events.
my $paced = serve(qw(sim --port 0 --port-file paced --ttft-ms 20 --itl-ms 20));
wait_file('paced');
run(args => [qw(bench serve --model sim --tokenizer sim --num-prompts 1 --random-input-len 4
	--random-output-len 50 --ignore-eos --ready-check-timeout-sec 0 --port), slurp('paced') =~ /(\d+)/]);
kill 'TERM', $paced->{pid};
like(finish($paced)->{err}, qr/ 1 request, 50 events, .*; CPU per event [\d.]+ us; sent after due: /,
	'CPU time per event');
my ($cpu_us) = $paced->{err} =~ /CPU per event ([\d.]+) us/;
ok($cpu_us > 0 && $cpu_us < 10_000, '... is not the 20 ms between two events') or diag($paced->{err});

my $vllm = begin(command => ['./vllm', 'serve', 'Qwen/Qwen3-8B', qw(--port 0 --port-file v)],
	env => { PROFLLM_SIM_AS_VLLM => 1 });
wait_file('v');
like(get(slurp('v') =~ /(\d+)/, '/v1/models'), qr{"id": ?"Qwen/Qwen3-8B"}, 'vllm serve MODEL');
kill 'TERM', $vllm->{pid};
is(finish($vllm)->{status}, 0, '... ends');
is(run(command => ['./vllm', 'serve', 'x'])->{status}, 2, 'not without being asked');
done_testing();
