#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The same plan several times: every run is reported, the one in the middle saved.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my $sim = sim('--ttft-ms', 'uniform:5:40', '--itl-ms', 'uniform:1:9');
my $run = serve($sim, '--num-prompts', '8', '--max-concurrency', '4', '--num-runs', '3',
	'--num-warmups', '2', '--reset-prefix-cache', '--record', "$dir/run.rec",
	'--percentile-metrics', 'ttft,e2el', '--probe-request-rate', '50');
truth_of($sim);
my @request = grep { $_->{path} !~ m{^/(metrics|tokenize|v1/models)$} &&
	($_->{body} // '') !~ /"prompt": "Hi"/ } read_lines($sim->{requests});
my $runs = $run->{own}{runs};
my %metric = map { $_->{name} => $_ } @{ $runs->{metrics} };

is($run->{status}, 0, 'exit status') or diag($run->{err});
is_deeply([map { $_->{path} } @request], [('/v1/completions') x 2,
	(('/reset_prefix_cache'), ('/v1/completions') x 8) x 3],
	'warm-ups once, then the cache is emptied before every run');
my @body = map { $_->{body} } grep { defined $_->{request_id} } @request;
my %sent;
$sent{$_}++ for @body;
is_deeply([sort { $a <=> $b } values %sent], [(3) x 8], 'every run sends the same requests');
my @report = $run->{out} =~ /^(=+ Serving Benchmark Result =+)$/mg;
is(scalar @report, 3, 'every run is reported');
like($run->{out}, qr/^All 3 runs \(the saved result is that of run $runs->{saved}\):\n +mean +sd/m,
	'then all of them');
is($runs->{count}, 3, 'the result has all');
my @rate = @{ $metric{total_token_throughput}{values} };
my ($low, $middle, $high) = sort { $a <=> $b } @rate;
is($run->{result}{total_token_throughput}, $middle, 'the saved one is the median');
is($rate[$runs->{saved} - 1], $middle, 'and it is named');
is_deeply([map { $run->{result}{$_} } sort keys %metric],
	[map { $metric{$_}{values}[$runs->{saved} - 1] } sort keys %metric],
	'its values are those of the result');
for my $m (@{ $runs->{metrics} }) {
	my @v = @{ $m->{values} };
	my $mean = ($v[0] + $v[1] + $v[2]) / 3;
	my $sd = sqrt((($v[0] - $mean)**2 + ($v[1] - $mean)**2 + ($v[2] - $mean)**2) / 2);
	my ($min, undef, $max) = sort { $a <=> $b } @v;
	my $unlike = abs($m->{mean} - $mean) > 1e-9 * abs($mean) ||
		abs($m->{sd} - $sd) > 1e-6 * (abs($mean) + 1e-9) || $m->{min} != $min ||
		$m->{max} != $max || abs($m->{cv} - ($mean ? $sd / $mean : 0)) > 1e-6;
	ok(!$unlike, "spread of $m->{name}");
	my $row = sprintf('%-32s %12.2f %12.2f %12.2f %12.2f', $m->{name}, $m->{mean}, $m->{sd},
		$min, $max);
	like($run->{out}, qr/^\Q$row\E/m, "row of $m->{name}");
}
ok($metric{mean_ttft_ms} && $metric{p99_e2el_ms} && !$metric{mean_itl_ms},
	'the blocks that were requested');
for my $k (1 .. 3) {
	my ($status, $out) = profllm('bench', 'score', '--report', 'full', "$dir/run.rec.$k");
	my ($again) = $out =~ /^Total token throughput \(tok\/s\): +(\S+)/m;

	is($again, sprintf('%.2f', $rate[$k - 1]), "the record of run $k");
}

# A server without that path is named once, and measured all the same.
{
	my $plain = sim('--ttft-ms', '1', '--itl-ms', '1', '--fault', 'status=500:0.0');
	my $prefixed = { url => "$plain->{url}/" };
	$run = serve($prefixed, '--num-prompts', '2', '--num-runs', '2', '--reset-prefix-cache',
		'--endpoint', 'v1/completions');
	my @warning = $run->{err} =~ /(did not empty its prefix cache)/g;

	is($run->{result}{completed}, 2, 'no such path: measured') or diag($run->{err});
	is(scalar @warning, 1, 'no such path: one warning');
}

# A limit of failures ends all of it.
{
	my $bad = sim('--ttft-ms', '1', '--itl-ms', '1', '--fault', 'reset@4:1');
	$run = serve($bad, '--num-prompts', '50', '--max-concurrency', '1', '--num-runs', '3',
		'--max-errors', '2');
	@report = $run->{out} =~ /^(=+ Serving Benchmark Result =+)$/mg;
	is(scalar @report, 1, 'too many failures: no further run');
	is($run->{status}, 1, 'too many failures: exit status');
}

done_testing;
