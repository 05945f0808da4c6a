#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What bench throughput, latency, startup and mm-processor have in common on their command lines:
# the engine's arguments next to their own, --config, help, what is refused and how, Ctrl-C. Only
# the simulated engine is started.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my %verb = (
	throughput => [qw(--dataset-name random --random-input-len 8 --random-output-len 4
		--num-prompts 4)],
	latency => [qw(--input-len 8 --output-len 4 --batch-size 2 --num-iters 2
		--num-iters-warmup 1)],
	startup => [qw(--num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 1)],
	'mm-processor' => [qw(--num-prompts 2 --random-input-len 8 --random-output-len 4)],
	'prefix-caching' => [qw(--num-prompts 2 --input-length-range 8:9)],
	'long-document-qa' => [qw(--document-length 8 --num-documents 2)],
);
my @verbs = sort keys %verb;

sub plan_of {
	my ($verb, @args) = @_;
	return run(args => ['bench', $verb, qw(--backend sim --dry-run), @{$verb{$verb}}, @args]);
}

sub refuses {
	my ($verb, $status, $pattern, @args) = @_;
	my $r = run(args => ['bench', $verb, '--dry-run', @args]);

	is($r->{status}, $status, "$verb @args: status");
	like($r->{err}, qr/^profllm bench \Q$verb\E: $pattern$/m, "$verb @args: sentence");
}

spew('engine.yaml', "tensor-parallel-size: 2\nenforce_eager: yes\nseed: 3\n"
	. "compilation-config:\n  mode: 3\n");

for my $verb (@verbs) {
	my $r = plan_of($verb, qw(-tp 2 --max_model_len=4k --compilation-config.mode 3 -O2
		--hf-token hush));
	is($r->{status}, 0, "$verb: engine arguments pass") or diag $r->{err};
	like($r->{out}, qr/^Backend: sim$/m, "$verb: the plan names the backend");
	like($r->{out}, qr/^Engine arguments: .*-tp 2 --max_model_len=4k --compilation-config.mode 3 /m,
		"$verb: as they were typed");
	like($r->{out}, qr/-O2 --hf-token '\*\*\*'$/m, "$verb: a secret is not shown");
	unlike($r->{out} . $r->{err}, qr/hush/, "$verb: nowhere");

	$r = plan_of($verb, qw(--config engine.yaml --seed 9));
	like($r->{out}, qr/^Engine arguments: .*--tensor-parallel-size 2 --enforce_eager --compilation/m,
		"$verb: --config") or diag $r->{err};
	like($r->{out}, qr/'\{"mode": 3\}' --seed 9$/m, "$verb: what is typed wins");
	unlike($r->{out}, qr/--seed 3/, "$verb: alone");

	$r = plan_of($verb, '--brand-new-engine-flag', 'x');
	is($r->{status}, 0, "$verb: an unknown argument passes");
	like($r->{err}, qr/^WARNING: --brand-new-engine-flag: no option of profllm bench $verb/m,
		"$verb: with a warning");
	like($r->{out}, qr/--brand-new-engine-flag x$/m, "$verb: to the engine");

	$r = run(args => ['bench', $verb, '--help']);
	like($r->{out}, qr/^  ParallelConfig +\d+ arguments$/m, "$verb --help: groups of the engine's");
	unlike($r->{out}, qr/--tensor-parallel-size/, "$verb --help: not each of them");
	$r = run(args => ['bench', $verb, '--help=parallelconfig']);
	like($r->{out}, qr/^  -tp, --tensor-parallel-size TENSOR_PARALLEL_SIZE$/m,
		"$verb --help=GROUP: the engine's");
	$r = run(args => ['bench', $verb, '--help=json']);
	my $all = json_of($r->{out});
	my %seen;
	$seen{$_->{name}}++ for @{$all->{options}};
	ok($seen{'tensor-parallel-size'} && $seen{'worker-cmd'}, "$verb --help=json: both");
	is_deeply([grep { $seen{$_} > 1 } sort keys %seen], [], "$verb --help=json: each name once");
	my @taken;
	for my $o (@{$all->{options}}) {
		next if $o->{name} eq 'help' || grep { $_ eq 'engine' || $_ eq 'later' } @{$o->{flags}};
		next if $o->{kind} =~ /^(text|list)$/ && !$o->{choices};
		my $bad = plan_of($verb, "--$o->{name}={x");
		push @taken, $o->{name}
			unless $bad->{status} == 2 && $bad->{err} =~ /--\Q$o->{name}\E: (expected|takes no)/;
	}
	is("@taken", '', "$verb: no option takes a value of another kind");

	$r = run(args => ['bench', $verb, qw(--fix help)]);
	is($r->{status}, 0, "$verb --fix help: status");
	like($r->{out}, qr/^\S/, "$verb --fix help: says something");
	$r = run(args => ['bench', $verb, qw(--show-config -tp 2)]);
	like($r->{out}, qr/^tp = 2 +# given, an argument of the engine$/m,
		"$verb --show-config: the engine's");

	refuses($verb, 2, 'unknown option --tensor-paralel-size; did you mean '
		. '--tensor-parallel-size\?', qw(--tensor-paralel-size 2));
	refuses($verb, 2, '--port: an argument of vLLM\'s HTTP server, which this command does not '
		. 'start', qw(--port 80));
	refuses($verb, 2, '--fault: an option of the simulator, for --backend sim; got --backend vllm',
		qw(--fault drop));
	refuses($verb, 2, '--brand-new-engine-flag: no option of profllm bench \S+ and no argument of '
		. 'vLLM', qw(--strict-args --brand-new-engine-flag));
	refuses($verb, 2, 'engine arguments: --dtype: expected one of .*, got \'int3\'',
		qw(--strict-args --dtype int3));
	refuses($verb, 1, 'Unknown backend: mii \(.*\)', qw(--backend mii))
		unless $verb =~ /-(caching|qa)$/;
	refuses($verb, 2, '--backend worker: needs --worker-cmd, .*', qw(--backend worker));
	refuses($verb, 2, '--base-url: for --backend http, got --backend vllm',
		qw(--backend vllm --base-url http://127.0.0.1:1));
	refuses($verb, 2, '--config: expected a .yaml or .yml file, got \'x.json\'',
		qw(--config x.json));
	refuses($verb, 1, '--config no.yaml: .*No such file or directory.*', qw(--config no.yaml));
}

# Old names of the scripts.
for my $verb (qw(throughput latency)) {
	my $r = run(args => ["benchmarks/benchmark_$verb.py", qw(--backend sim --dry-run),
		@{$verb{$verb}}]);
	is($r->{status}, 0, "benchmark_$verb.py") or diag $r->{err};
	like($r->{out}, qr/^Engine arguments: --model sim/m, "benchmark_$verb.py is bench $verb");
}

# The engine's asynchronous interface has one more, which throughput alone takes.
is(plan_of('throughput', '--enable-log-requests')->{status}, 0, 'throughput --enable-log-requests');
is(plan_of('latency', '--enable-log-requests')->{status}, 2, 'latency does not have it');

# Progress off a terminal is lines, and none when there shall be none.
{
	my @args = (qw(bench latency --backend sim), @{$verb{latency}});
	my $r = run(args => \@args);
	is($r->{status}, 0, 'latency on the simulated engine') or diag $r->{err};
	like($r->{err}, qr{^Bench iterations: 100% 2/2 \[00:\d\d<00:00, .*(?:it/s|s/it)\]$}m,
		'progress as a line');
	unlike($r->{err}, qr/\r/, 'no bar off a terminal');
	$r = run(args => [@args, qw(--progress none)]);
	is($r->{err}, '', '--progress none is silent');
	$r = run(args => [@args, qw(--progress bar)], env => { LC_ALL => 'C.UTF-8' });
	like($r->{err}, qr/\rBench iterations:   0%\| +\| 0\/2 \[00:00<\?, \?it\/s\]/,
		'a bar where it is asked for');
	like($r->{err}, qr/\rBench iterations: 100%\|(?:\xe2\x96\x88)+\| 2\/2 [^\r]*\n/, 'up to its end');
	$r = run(args => [@args, qw(--progress bar)], env => { LC_ALL => 'C' });
	like($r->{err}, qr/\rBench iterations: 100%\|#+\| 2\/2 /, 'without UTF-8: number signs');
}

# Ctrl-C while the engine works ends it and says so.
{
	my $run = begin(args => [qw(bench latency --backend sim --num-iters 100000)]);
	wait_for('warming up', sub { (slurp($run->{out_path}) // '') =~ /Warming up/ });
	select undef, undef, undef, 0.3;
	kill INT => $run->{pid};
	my $r = finish($run);
	is($r->{status}, 130, 'Ctrl-C: status 130');
	like($r->{err}, qr/^profllm bench latency: /m, 'Ctrl-C: a sentence');
}

done_testing();
