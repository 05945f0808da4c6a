#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-series.t - what the document of an experiment keeps so that a run can be drawn elsewhere: load that
# doubles half way shows in the tokens per second, a short spike of a GPU's power is there, quantiles are
# the percentiles of the same document; the dashboard that takes the document in gives all of it.
use strict;
use warnings;
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use List::Util qw(max min sum);
use Test::More;

my $library = dirname($program) . '/tests/libfake-nvml.so';

-e $library or die "$library is missing: make builds it for unit tests and for suites\n";
$ENV{XDG_RUNTIME_DIR} = getcwd() . '/state';
$ENV{PROFLLM_LOCKS} = getcwd() . '/locks';
$ENV{PROFLLM_NVML} = $library;
$ENV{FAKE_NVML_STATE} = getcwd() . '/gpus';
$ENV{PROFLLM_DCGM} = dirname($program) . '/tests/libfake-dcgm.so';
$ENV{FAKE_DCGM_STATE} = spew(getcwd() . '/dcgm', "count 1\n0 1002 0.42\n0 1011 5000000\n");
delete @ENV{qw(CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES)};
mkdir 'state';

# Replaced as a whole, for it is read at any time.
sub gpu {
	my ($power, $util) = @_;
	spew('gpus.new', "count 1\ngpu * util $util\ngpu * power $power\n");
	rename 'gpus.new', 'gpus' or die "gpus: $!\n";
}

sub near {
	my ($got, $want, $share, $name) = @_;
	return ok(defined $got && abs($got - $want) <= $share * $want, $name)
		|| diag('got ' . ($got // 'nothing') . ", expected about $want");
}

# Means of a track between two times, weighted by nothing: its points are equally far apart.
sub mean_of {
	my ($track, $from, $to) = @_;
	my @y = map { $track->{y}[$_] } grep { $track->{t_s}[$_] >= $from && $track->{t_s}[$_] < $to }
		0 .. $#{ $track->{y} };
	return @y ? sum(@y) / @y : undef;
}

# ---- the run: 20 requests a second for 3 s, then 40 a second for 3 s; 21 tokens each ----

gpu(200, 0);
spew('load.jsonl', join '', map { qq({"timestamp": $_, "input_length": ) . (16 + int($_ / 50))
	. ', "output_length": 21, "hash_ids": []}' . "\n" } (map { 50 * $_ } 0 .. 59),
	(map { 3000 + 25 * $_ } 0 .. 119));
spew('e.json', json_text({ server => { command => 'sim', ttft_ms => 20, itl_ms => 2,
		requests => getcwd() . '/asked.jsonl' },
	resources => { gpus => 1 }, telemetry => { interval_s => 0.02 },
	benchmark => { tokenizer => 'sim', temperature => 0, dataset_name => 'trace',
		dataset_path => 'load.jsonl', ignore_eos => \1 } }));
my $run = begin(args => [qw(run --config e.json --output e.document.json --progress none)], seconds => 120);
sub asked { return scalar(() = (slurp('asked.jsonl') // '') =~ /"method": "POST"/g) }
wait_for('half of the load', sub { asked() >= 90 });
gpu(700, 80);
my $half = asked();
wait_for('a little more of it', sub { asked() >= $half + 20 });
gpu(200, 80);
$run = finish($run);
is($run->{status}, 0, 'an experiment with a simulator and a GPU that is not there')
	or diag("$run->{err}\n$run->{out}");

my $text = slurp('e.document.json');
my $results = json_of($text)->{results};
my ($series, $sketches) = @{ $results->{profllm} }{qw(series sketches)};
my %kept = map { $_->{key} => $_ } @{ $series->{tracks} };
is($results->{completed_requests}, 180, 'all of it is answered');
is_deeply([map { $_->{key} } @{ $series->{tracks} }], [qw(output_tokens_per_s requests_running
	kv_cache_percent gpu_util_percent gpu_power_w server_requests_running server_requests_waiting)],
	'the document has the load, the server and the GPU over time') or diag(explain([keys %kept]));
my $system = json_of($text)->{system};
my $one = $system->{gpus}[0];
is_deeply([map { $one->{$_}{mean} } qw(sm_active nvlink_sent_mb_per_s)], [42, 5],
	'what DCGM knows of the GPU is there');
ok(!exists $one->{tensor_active}, 'and what it does not know is not') or diag(explain($one));
near($system->{j_per_token}, $system->{energy_j} / (180 * 21), 1e-6, 'joules per output token');
is($series->{step_s}, 0.1, 'in tenths of a second');
near(sum(@{ $kept{output_tokens_per_s}{y} }) * 0.1, 180 * 21, 0.02, 'which add up to its tokens');
my $bytes = sum(map { length } $text =~ /^ *"(?:series|sketches)": (.*)$/mg);
cmp_ok($bytes, '<', 40_000, "which is small: $bytes bytes with the distributions");

# ---- elsewhere ----

my $d = start_dashboard();
my $put = ask($d, 'POST', '/api/upload/raw', $text);
my $id = $put->{json}{results}[0]{id};
my $got = ask($d, 'GET', "/api/data/experiments/$id/series")->{json};
my %track = map { $_->{key} => $_ } @{ $got->{tracks} };
is($put->{status}, 201, 'the document is taken in') or diag($put->{content});
is_deeply([map { $_->{label} } @{ $got->{tracks} }], ['Output tokens/s', 'Requests in flight',
	'KV cache used', 'GPU utilization', 'GPU power', 'Requests running in the server',
	'Requests waiting in the server'], 'and its tracks have names');
near($got->{duration_s}, $results->{duration}, 0.001, 'as long as the run');
near($got->{start_s}, $results->{profllm}{start_ns} / 1e9, 1e-9, 'from its beginning');
near(mean_of($track{output_tokens_per_s}, 0, 2.9), 20 * 21, 0.25, 'tokens per second before');
near(mean_of($track{output_tokens_per_s}, 3.1, 5.9), 40 * 21, 0.25, 'and after the load has doubled');
# Little's law: what is in flight is how many come times how long they stay.
near(mean_of($track{requests_running}, 0, 99) * $results->{duration},
	180 * $results->{mean_e2el_ms} / 1000, 0.05, 'requests in flight');
my $power = $track{gpu_power_w};
is(max(map { $power->{max} ? $power->{max}[$_] : $power->{y}[$_] } 0 .. $#{ $power->{y} }), 700,
	'the spike of the power is there');
my @high = map { $power->{t_s}[$_] } grep { $power->{y}[$_] > 300 } 0 .. $#{ $power->{y} };
ok(@high && max(@high) - min(@high) < 2, 'and short') or diag(explain(\@high));
near(mean_of($power, 0, 2.5), 200, 0.001, 'the power before it');
is_deeply([mean_of($track{gpu_util_percent}, 0, 2.5), mean_of($track{gpu_util_percent}, 5, 9)], [0, 80],
	'its utilization');
is_deeply([@$got{qw(failed_s missing)}], [[], []], 'nothing failed, nothing is missing');

# ---- distributions ----

my $drawn = ask($d, 'GET', "/api/data/experiments/$id/sketches")->{json};
my %metric = map { $_->{key} => $_ } @{ $drawn->{metrics} };
is_deeply([map { $_->{key} } @{ $drawn->{metrics} }], [qw(ttft_ms tpot_ms itl_ms e2el_ms)],
	'four distributions');
for my $name (qw(ttft tpot itl e2el)) {
	my $m = $metric{"${name}_ms"};
	my %at = map { $m->{p}[$_] => $m->{value}[$_] } 0 .. $#{ $m->{p} };

	for my $p (50, 90, 95, 99) {
		near($at{$p / 100}, $results->{"p${p}_${name}_ms"}, 1e-4,
			"P$p of $name is that of the result");
	}
	is($m->{n}, $name eq 'itl' ? 180 * 20 : 180, "so many values of $name");
	ok(!(grep { $m->{value}[$_] < $m->{value}[$_ - 1] } 1 .. $#{ $m->{value} }), "$name ascends");
}
is(scalar @{ $drawn->{by_prompt}{ttft_ms} }, 180, 'TTFT of each request against its prompt');
is_deeply([@$drawn{qw(by_turn missing)}], [undef, []], 'no conversations');
is(ask($d, 'GET', "/api/data/experiments/$id")->{json}{values}{'client.series.step_s'}, undef,
	'and none of it is a column');

done_testing();
