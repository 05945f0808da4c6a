#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Results that InferenceX published, against the columns that profllm ingest makes of them: every row, every
# latency and throughput. Opt-in: RESULTS names agg_bmk.json files, as README.md says where from.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../cli";
use Cli;
use JSON::PP;
use Test::More;

my @file = split ' ', $ENV{RESULTS} // '';
plan skip_all => 'RESULTS names no agg_bmk.json' unless @file;

# Equal but for the rounding of a product.
sub same { my ($got, $want) = @_; return defined $got && abs($got - $want) <= 1e-9 * abs($want) }

my ($store, $n, $split) = (store_url('published'), 0, 0);
my $r = run(args => ['ingest', @file, '--store', $store]);
is($r->{status}, 0, 'all of them are taken in') or diag($r->{err});
$r = run(args => ['export', '--store', $store, '--format', 'jsonl', '--shown', 'all']);
my %run = map { my $x = decode_json($_); (sprintf('%.9g', $x->{mean_e2el_ms}) => $x) } split /\n/, $r->{out};

for my $row (map { my $v = decode_json(slurp($_)); ref $v eq 'ARRAY' ? @$v : $v } @file) {
	my $x = $run{sprintf('%.9g', 1000 * $row->{mean_e2el})};
	my $gpus = $row->{num_prefill_gpu} ? $row->{num_prefill_gpu} + $row->{num_decode_gpu} : $row->{tp};
	my @wrong;

	ok($x, 'row ' . ++$n . " has a run: $row->{model}, $row->{conc} at once") or next;
	for my $key (grep { /_(ttft|tpot|itl|e2el)$/ } sort keys %$row) {
		push @wrong, $key if !same($x->{"${key}_ms"}, 1000 * $row->{$key});
	}
	push @wrong, 'tput_per_gpu' if !same($x->{total_token_throughput}, $row->{tput_per_gpu} * $gpus);
	push @wrong, 'output_tput_per_gpu' if !same($x->{output_throughput}, $row->{output_tput_per_gpu} *
		($row->{num_decode_gpu} || $gpus));
	# What goes in and what comes out, each per GPU of its own, is all there is.
	my $in = $row->{input_tput_per_gpu} * ($row->{num_prefill_gpu} || $gpus);
	push @wrong, 'input_tput_per_gpu' if abs($x->{total_token_throughput} - $x->{output_throughput} -
		$in) > 1e-6 * $x->{total_token_throughput};
	push @wrong, grep { $x->{$_->[0]} ne $row->{$_->[1]} } (['benchmark.max_concurrency', 'conc'],
		['benchmark.random_input_len', 'isl'], ['benchmark.random_output_len', 'osl'],
		['server.model', 'model'], ['tags.gpu', 'hw'], ['tags.framework', 'framework'],
		['tags.precision', 'precision']);
	$split += !!$row->{num_prefill_gpu};
	is_deeply(\@wrong, [], "row $n: every figure is equal");
}
diag("$n rows, $split of them with prefill and decode on GPUs of their own");
done_testing;
