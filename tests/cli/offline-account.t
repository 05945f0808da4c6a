#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The four offline commands on the simulated engine, with nothing in PATH (no Python, either): what
# they report is what the engine's account says, exactly where it is the clock's figure, and within
# 1 % where it is the model's. The latter is asked of the best of several tries, because the
# machine may have been busy.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use List::Util qw(max min sum);
use Test::More;

my $json = JSON::PP->new;
my @cheap = qw(--backend sim --model sim --decode-base-us 4000 --prefill-us-per-token 20);
my %env = (PATH => '/nonexistent', PROFLLM_WORKERS => '/nonexistent');
my $tries = 5;

# Runs a command; its file, and the account's lines.
sub offline {
	my ($verb, @args) = @_;

	unlink 'account';
	my $r = run(args => ['bench', $verb, @cheap, qw(--account account --output-json r.json), @args],
		env => \%env);
	is($r->{status}, 0, "bench $verb") or diag($r->{err});
	return ($json->decode(slurp('r.json')), lines_of('account'));
}

sub same {
	my ($got, $expected, $name) = @_;
	ok(abs($got - $expected) <= 1e-9 * abs($expected) + 1e-9, $name)
		or diag("$got is not $expected");
}

# The smallest excess of figures over what is modelled, over all tries.
sub excess { return min(map { $_->[0] / $_->[1] - 1 } @_) }

sub within_a_percent {
	my ($name, @pairs) = @_;
	my $excess = excess(@pairs);

	ok($excess > -1e-6 && $excess < 0.01, "$name: within 1 % of the model") or diag($excess);
}

{
	my @pairs;

	for (1 .. $tries) {
		my ($file, $load, $run) = offline('throughput', qw(--num-prompts 40 --random-input-len 64
			--random-output-len 24));

		same($file->{elapsed_time}, $run->{wall_s}, 'throughput: elapsed time');
		same($file->{requests_per_second}, 40 / $run->{wall_s}, 'requests a second');
		is($file->{total_num_tokens}, $run->{prompt_tokens} + $run->{output_tokens}, 'tokens');
		same($file->{profllm}{load}{load_s}, $load->{wall_s}, 'the load');
		push @pairs, [$file->{elapsed_time}, $run->{modelled_s}];
		last if excess(@pairs) < 0.01;
	}
	within_a_percent('throughput', @pairs);
}
{
	my ($file, undef, @runs) = offline('latency', qw(--input-len 32 --output-len 16 --batch-size 4
		--num-iters-warmup 1 --num-iters 6));
	my @walls = map { $_->{wall_s} } @runs[1 .. 6];

	is(scalar @runs, 7, 'latency: one to warm up, six that count');
	same($file->{latencies}[$_], $walls[$_], "iteration $_") for 0 .. 5;
	same($file->{avg_latency}, sum(@walls) / 6, 'their mean');
	is(sum(map { $_->{cached_tokens} } @runs), 0, 'without a prefix cache');
	within_a_percent('latency', map { [$file->{latencies}[$_], $runs[$_ + 1]{modelled_s}] } 0 .. 5);
}
{
	my (@cold_pairs, @warm_pairs);

	for my $try (1 .. $tries) {
		local $env{VLLM_CACHE_ROOT} = "caches$try";
		my ($file, @loads) = offline('startup', qw(--num-iters-cold 2 --num-iters-warmup 1
			--num-iters-warm 2 --startup-scale 0.02));
		my @cold = @{$file->{cold_startup_times}};
		my @warm = @{$file->{warm_startup_times}};

		is(scalar @loads, 5, 'startup: five loads');
		is(join('', map { $_->{is_compiled} ? 'w' : 'c' } @loads), 'cccww',
			'cold, one that fills the cache, warm');
		same($cold[$_], $loads[$_]{wall_s}, "cold start $_") for 0, 1;
		same($warm[$_], $loads[3 + $_]{wall_s}, "warm start $_") for 0, 1;
		same($file->{cold_compilation_times}[$_], $loads[$_]{phases}{'torch.compile'}{wall_s},
			"compiling $_") for 0, 1;
		cmp_ok(min(@cold), '>', max(@warm), 'a warm start is quicker');
		push @cold_pairs, map { [$cold[$_], $loads[$_]{modelled_s}] } 0, 1;
		push @warm_pairs, map { [$warm[$_], $loads[3 + $_]{modelled_s}] } 0, 1;
		last if excess(@cold_pairs) < 0.01 && excess(@warm_pairs) < 0.01;
	}
	within_a_percent('cold', @cold_pairs);
	within_a_percent('warm', @warm_pairs);
}
{
	my ($file, undef, $warmup, $run) = offline('mm-processor', qw(--num-prompts 5 --num-warmups 1
		--random-output-len 4 --random-input-len 32));
	my $stats = $file->{mm_processor_stats};

	is("$warmup->{requests} $run->{requests} $run->{media}", '1 5 5', 'mm-processor: requests');
	is($file->{completed}, 5, 'all of them completed');
	same($stats->{encoder_forward_ms}{mean} * 5 / 1e3, $run->{encoder_s}, 'the encoder');
	ok($stats->{preprocessor_total_ms}{mean} * 5 / 1e3 < $run->{frontend_s},
		'the stages are part of preparing requests');
	ok($file->{percentiles_e2el_ms}[0][1] / 1e3 <= $run->{modelled_s} + 1e-6,
		'requests end within the batch');
	cmp_ok($file->{mean_e2el_ms} / 1e3, '>', $run->{modelled_s} - $run->{frontend_s} - 0.1,
		'and near its end');
}

done_testing();
