#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench plot: results of any kind as a figure. What is drawn is read from the table next to it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

my $json = JSON::PP->new->canonical;

# A result of a made-up server: throughput, latency, and what the run thinks of itself.
sub result {
	my ($name, %r) = @_;
	my $verdict = delete $r{verdict} // 'VALID';

	return spew($name, $json->encode({ request_rate => 'inf', max_concurrency => undef,
		median_tpot_ms => 10, %r, profllm => { verdict => $verdict,
		verdicts => { map { $_ => $verdict }
			qw(output_throughput ttft total_token_throughput) } } }));
}

# The table's curves: title => [[x, y], ...], in the order of their points.
sub curves {
	my ($path) = @_;
	my (%curve, $title);

	for (split /\n/, slurp($path) // '') {
		$title = $1, next if /^# panel 1: (.*)/;
		push @{$curve{$title}}, [(split)[0, 1]] if defined $title && /^[\d.-]/;
	}
	return \%curve;
}

sub plot {
	my (@args) = @_;
	my $r = run(args => [qw(bench plot --format), 'svg', @args]);

	return $r;
}
plan skip_all => 'gnuplot is not installed' unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};

# A server beyond its limit: more load, less throughput. A curve follows the load and turns back.
mkdir 'curve';
my @measured = ([1, 100, 10], [4, 300, 20], [16, 500, 60], [64, 450, 400]);
for my $m (@measured) {
	result("curve/a$m->[0].json", max_concurrency => $m->[0], tp => 1, output_throughput => $m->[1],
		p99_ttft_ms => $m->[2]);
	result("curve/b$m->[0].json", max_concurrency => $m->[0], tp => 2, output_throughput => 2 * $m->[1],
		p99_ttft_ms => $m->[2] / 2);
}
# Repeats are one point; an invalid run is not a point.
result('curve/b4again.json', max_concurrency => 4, tp => 2, output_throughput => 620, p99_ttft_ms => 12);
result('curve/wrong.json', max_concurrency => 8, tp => 2, output_throughput => 5000, p99_ttft_ms => 1,
	verdict => 'INVALID');
spew('curve/servers.json', '[{"command": ["x"]}]');

my $r = plot('curve');
check_run('a folder', $r, { status => 0, out => ['Figure: curve/plot-latency.svg', 'Points: 8, of 9 results'],
	warn => ['WARNING: 1 of 10 results, in which output_throughput or p99_ttft_ms is INVALID, are left '
		. 'out; --include-invalid draws them'], exists => ['curve/plot-latency.svg'] });
is_deeply(curves('curve/plot-latency.dat'), {
	1 => [map { ["$_->[1].0", "$_->[2].0"] } @measured],
	2 => [['200.0', '5.0'], ['610.0', '11.0'], ['1000.0', '30.0'], ['900.0', '200.0']] },
	'a curve for each configuration, in the order of the load');
check_run('with INVALID ones', plot('curve', '--include-invalid'), { status => 0,
	out => ['Points: 9, of 10 results'] });

# No point of the frontier is beaten; latency is better when it is lower.
check_run('frontier', plot('curve', qw(--kind pareto --output front.png)), { status => 0,
	out => ['Figure: front.svg', 'Points: 8, of 9 results; on the Pareto frontier: 3'] });
is_deeply(curves('front.dat')->{'Pareto frontier'}, [['200.0', '5.0'], ['610.0', '11.0'],
	['1000.0', '30.0']], 'the frontier');

# Per user against per GPU: only where the GPUs are known, and as the arithmetic says.
check_run('GPUs by the configuration', plot('curve', qw(--kind per-gpu --output gpu)), { status => 0 });
is_deeply(curves('gpu.dat')->{2}[2], ['100.0', '500.0'], '1000 tokens/s of two GPUs, 10 ms a token');
result('alone.json', output_throughput => 1000, total_token_throughput => 2000, p99_ttft_ms => 1);
check_run('GPUs unknown', plot('alone.json', qw(--kind per-gpu)), { status => 1,
	err => '*no result has output_throughput_per_gpu: how many GPUs served is not known; --gpus says it',
	gone => ['alone-per-gpu.svg'] });
# 4 GPUs at 3.6 an hour are 0.004 a second, for 2000 tokens: 2 for a million.
check_run('cost', plot('alone.json', '--gpus', '4xH100', '--gpu-price', spew('prices', "H100 = 3.6\n"),
	qw(--x cost_per_million_tokens --y output_throughput_per_gpu)), { status => 0 });
is_deeply((values %{curves('alone-latency.dat')})[0], [['2.0', '250.0']], 'what tokens cost');

# How it looks.
check_run('look', plot('curve', '--title', "It's mine", qw(--xlabel tokens --ylabel delay --xlim :700
	--ylim 0:100 --width 9 --height 3 --style steps --output look)), { status => 0 });
my $script = slurp('look.gp');
like($script, qr/^set xrange \[[\d.]+:700\.0\]$/m, 'the range of x');
like($script, qr/^set yrange \[0\.0:100\.0\]$/m, 'the range of y');
like($script, qr/title 'It''s mine'/, 'the title');
like($script, qr/set xlabel 'tokens'.*set ylabel 'delay'/s, 'the axes');
like($script, qr/with steps/, 'the style');
for (['--xlim', '5:1', '--xlim: the first number must be below the second, got *5:1*'],
	['--ylim', 'x', '--ylim: expected LOW:HIGH, such as 0:200 or :200, got *x*'],
	['--ylim', '0:1', '--ylim: numbers on a logarithmic axis must be above 0, got *0:1*',
		qw(--yscale log)]) {
	my ($option, $value, $says, @more) = @$_;

	check_run("$option $value", plot('curve', $option, $value, @more), { status => 2, err => "*$says" });
}
check_run('nothing', plot(), { status => 2, err => '*RESULT: expected a result, a folder or --store' });
check_run('no such metric', plot('curve', '--y', 'ttf'), { status => 1,
	err => '*no result has the metric ttf; there are *' });
check_run('no result', plot(spew('other.json', '{"a": 1}')), { status => 1,
	err => '*other.json holds no result of a benchmark*' });
check_run('all INVALID', plot('curve/wrong.json'), { status => 1,
	err => '*nothing is left to be drawn of 1 results' });

# A store gives what its files give.
my $sim = start_sim('--ttft-ms', '20', '--itl-ms', '10');
for my $len (2, 4) {
	run(args => [qw(bench serve --base-url), $sim->{url}, @{ $tiny{model} }, @{ $tiny{load} },
		qw(--progress none --gpus 2 --sweep-max-concurrency), '1,2', '--random-output-len', $len,
		qw(--save-result --result-dir real --result-filename), "$len.json"]);
}
is_deeply([sort keys %{json_of(slurp('real/2-concurrency1.json'))->{profllm}{derived}}],
	[qw(gpu_count output_throughput_per_gpu output_throughput_per_user total_token_throughput_per_gpu)],
	'what is not known is absent');
check_run('ingest', run(args => [qw(ingest --store sqlite:runs.db real)]), { status => 0 });
for my $kind (qw(latency per-gpu)) {
	check_run("$kind: files",
		plot('real', '--include-invalid', '--kind', $kind, '--output', "files-$kind"),
		{ status => 0, out => ['Points: 4, of 4 results*'] });
	check_run("$kind: a store", plot(qw(--store sqlite:runs.db --include-invalid --kind), $kind,
		'--output', "store-$kind"), { status => 0, out => ['Points: 4, of 4 results*'] });
	is_deeply([sort map { @$_ } map { @$_ } values %{curves("store-$kind.dat")}],
		[sort map { @$_ } map { @$_ } values %{curves("files-$kind.dat")}], "$kind: the same points");
}

done_testing;
