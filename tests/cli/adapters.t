#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The example adapter through real verbs, by the very command of docs/guide/adapters.md.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cwd qw(abs_path getcwd);
use Cli;
use Test::More;

system('python3 -c "" 2>/dev/null') == 0 or plan skip_all =>
	'the example is Python, and there is no python3';

my $root = abs_path("$FindBin::Bin/../..");
my $here = getcwd();
my $guide = slurp("$root/docs/guide/adapters.md");
my $source = slurp("$root/examples/adapter/echo_worker.py");
my @echo = ('--backend', 'worker', '--worker-cmd', "python3 $root/examples/adapter/echo_worker.py");

cmp_ok(scalar(() = $source =~ /\n/g), '<=', 60, 'it has sixty lines');
my @modules = $source =~ /^import (\w+)/mg;
is("@modules", 'json os socket struct time', 'and no packages');

# ---- the command of the guide, run from the root unchanged ----

my ($command) = $guide =~ /```sh\n(.*?)```/s;
like($command, qr/^profllm bench latency --backend worker /, 'the guide has a command');
mkdir 'bin' or die;
symlink $program, 'bin/profllm' or die;
my $r = run(command => ['sh', '-ec', "cd '$root'; $command"], env => { PATH => "$here/bin:$ENV{PATH}" });
check_run('the command of the guide', $r, { status => 0,
	out => ['Avg latency: *', '99% percentile latency: *', 'Engine: echo 1.0 on cpu, *'] });

# ---- what it does is what is reported ----

# Four prompts one after the other, 20 words each, 2 ms a word: 160 ms.
$r = run(args => ['bench', 'latency', @echo, qw(--model any --pause 0.002
	--input-len 8 --output-len 20 --batch-size 4 --num-iters-warmup 0 --num-iters 3
	--output-json latency.json)]);
check_run('latency', $r, { status => 0, exists => ['latency.json'] });
my $result = json_of(slurp('latency.json'));
is(scalar(@{$result->{latencies}}), 3, 'three iterations');
for (@{$result->{latencies}}) {
	cmp_ok($_, '>=', 0.160, 'no iteration is shorter than the engine slept');
}
is($result->{profllm}{engine}{name}, 'echo', 'the engine is named');
is($result->{profllm}{engine}{told}{vocab_size}, 1000, 'what it told of itself is kept');

$r = run(args => ['bench', 'throughput', @echo, qw(--model any --tokenizer sim --dataset-name random
	--random-input-len 8 --random-output-len 4 --num-prompts 10 --output-json t.json)]);
check_run('throughput', $r, { status => 0, out => ['Throughput: *'] });
$result = json_of(slurp('t.json'));
is($result->{num_requests}, 10, 'ten requests');
is($result->{total_num_tokens}, 10 * (8 + 4), 'as many tokens as were requested');
cmp_ok($result->{elapsed_time}, '>=', 0.040, 'four words a request, a millisecond each');

# ---- what it cannot do ----

$r = run(args => ['bench', 'latency', @echo, qw(--model any --use-beam-search
	--input-len 8 --output-len 4 --batch-size 1 --num-iters-warmup 0 --num-iters 1)]);
check_run('no beams', $r, { status => 1, err => '*echo cannot search with beams' });
$r = run(args => ['bench', 'latency', @echo, qw(--input-len 8 --output-len 4
	--batch-size 1 --num-iters-warmup 0 --num-iters 1 --model any --pause)]);
check_run('its own error', $r, { status => 1,
	err => '*the worker failed during load: list index out of range' });

done_testing();
