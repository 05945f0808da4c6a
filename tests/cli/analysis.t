#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Questions over many runs, asked of a dashboard whose runs are known: where a level changed, whether
# it became worse, what differs between groups, how many GPUs a load needs; and marks on trends.
use strict;
use warnings;
use lib do { require FindBin; $FindBin::Bin };
use Cli;
use Dash;
use Test::More;

use constant { COMMITS => 24, STEP => 16 };

my $d = start_dashboard();
my $metric = 'output_throughput';

sub question {
	my ($what, $body) = @_;
	my $r = ask($d, POST => "/api/$what", json_text($body));

	is($r->{status}, 200, $what) or diag($r->{content});
	return $r->{json};
}

sub near { my ($a, $b) = @_; return defined $a && abs($a - $b) <= 1e-9 * abs $b }

sub mean_log {
	my $sum = 0;
	$sum += log for @_;
	return exp($sum / @_);
}

is_deeply(question('analysis/trends', { metric => $metric })->{series}, [], 'a store without runs');

# Three runs a commit, on two machines; from one commit on both are a tenth slower.
my (@doc, %value);
for my $c (0 .. COMMITS - 1) {
	for my $gpu ('A', 'B') {
		for my $i (0 .. 2) {
			my $level = ($gpu eq 'A' ? 100 : 300) * ($c < STEP ? 1 : 0.9);
			my $v = $level * (1 + 0.004 * (($c + $i) % 3 - 1));

			push @{$value{$gpu}[$c]}, $v;
			push @doc, { schema_version => 1, run_id => "$gpu-$c-$i", status => 'completed',
				timestamp => sprintf('2026-01-%02dT%02d:00:00Z', $c + 1, $i),
				config => { name => 'n', mode => 'serve', server => { model => 'm' },
					benchmark => { request_rate => 'inf' }, tags => { machine => $gpu } },
				provenance => { engine_commit => sprintf 'c%07d', $c },
				results => { $metric => $v, median_ttft_ms => 1000 / $v } };
		}
	}
}
my $sent = ask($d, POST => '/api/upload/raw?name=runs.jsonl', join "\n", map { json_text($_) } @doc);
is(scalar(grep { $_->{outcome} eq 'new' } @{$sent->{json}{results}}), scalar @doc, 'all runs are new');

# ---- trends, marks ----

my $asked = { metric => $metric, series => ['tags.machine'] };
my $trends = question('analysis/trends', $asked);
is($trends->{axis}, 'commit', 'by commits where there are any');
is_deeply([sort map { $_->{name} } @{$trends->{series}}], ['A', 'B'], 'a series for each machine');
for my $s (@{$trends->{series}}) {
	my @point = @{$s->{points}};

	is(scalar @point, COMMITS, "$s->{name}: a point a commit");
	is(scalar(grep { near($point[$_]{value}, mean_log(@{$value{$s->{name}}[$_]})) } 0 .. $#point),
		COMMITS,
		'... whose value is the geometric mean of its runs');
	is_deeply([map { [@{$_}{qw(index commit verdict)}] } @{$s->{changes}}],
		[[STEP, sprintf('c%07d', STEP), 'worse']], '... and one change, at the step');
	ok(near($s->{changes}[0]{effect}, -0.1), '... of a tenth');
}
my $mark = ask($d, POST => '/api/analysis/marks', json_text({ series => $trends->{series}[0]{id},
	metric => $metric, at => $trends->{series}[0]{changes}[0]{commit}, kind => 'expected',
	text => 'a safer default' }));
is($mark->{status}, 201, 'a mark');
$trends = question('analysis/trends', $asked);
is_deeply([map { $_->{changes}[0]{mark}{text} } @{$trends->{series}}], ['a safer default', undef],
	'... is on the change of its series alone');
my $wait = question('analysis/trends', { %$asked, metric => 'median_ttft_ms' })->{series}[0]{changes}[0];
is_deeply([$wait->{index}, $wait->{mark}], [STEP, undef], '... and of its metric');
is_deeply([map { [@{$_}{qw(metric text)}] } @{ask($d, GET => '/api/analysis/marks')->{json}{items}}],
	[[$metric, 'a safer default']], '... which the list says');
is(ask($d, DELETE => "/api/analysis/marks/$mark->{json}{id}")->{status}, 200, '... and is taken away');
ok(!question('analysis/trends', $asked)->{series}[0]{changes}[0]{is_marked}, '... for good');
is(scalar @{question('analysis/trends', { %$asked, effect => 0.2 })->{series}[0]{changes}}, 0,
	'a least effect above the step');

# ---- regressions, groups ----

my $judged = question('analysis/regression', { metrics => [$metric, 'median_ttft_ms'],
	series => ['tags.machine'], baseline => { last => COMMITS - STEP } });
is_deeply([map { $_->{verdict} } @{$judged->{items}}], [('worse') x 4], 'both metrics are worse');
ok(near($judged->{items}[0]{effect}, -0.1), '... by a tenth');
$judged = question('analysis/regression', { metric => $metric, series => ['tags.machine'],
	baseline => { last => 4 }, filter => { column => 'provenance.engine_commit',
		in => [map { sprintf 'c%07d', $_ } 0 .. STEP - 1] } });
is_deeply([map { $_->{verdict} } @{$judged->{items}}], [('no_change') x 2], 'before: no change');

sub machine { return { column => 'tags.machine', in => [$_[0]] } }
my $compared = question('data/compare', { groups => [map { { name => "on $_", filter => machine($_) } }
	'A', 'B'], metrics => [$metric] });
is_deeply([map { $_->{column} } @{$compared->{parameters}}], ['tags.machine', 'provenance.engine_commit'],
	'what differs between groups comes before what differs within them');
my $one = $compared->{comparisons}[0]{metrics}[0];
is_deeply([$compared->{comparisons}[0]{matched}, $one->{verdict}], [1, 'not_enough_data'],
	'one configuration, of which nobody knows which runs shared a server');
ok(abs($one->{effect} - 2) < 0.1, '... three times as fast');
is_deeply([$one->{interval}, $one->{p}], [undef, undef], '... without an interval and a p');
like($one->{sentence}, qr/server sessions a side are needed/, '... and what would do');
my $impact = question('analysis/impact', { metric => $metric });
is($impact->{parameters}[0]{column}, 'tags.machine', 'the machine matters');
ok($impact->{parameters}[0]{share} > 0.95, '... most of all');

# A sweep of two versions: 24 servers of four loads, 7.5 % faster, configurations far apart.
srand 5;
my $of_version = sub {
	my ($version, $factor, $size, $rate) = @_;
	my $own = 100 * $size ** 0.7 * $rate * (0.995 + 0.01 * rand);

	return { schema_version => 1, run_id => "$version-$size-$rate", timestamp => '2026-05-01T00:00:00Z',
		status => 'completed', config => { mode => 'serve', server => { model => 'swept',
			max_num_seqs => $size }, benchmark => { request_rate => $rate }, servers => [{ role =>
			'serve', is_serving => JSON::PP::true, arguments => {},
			started_by => "$version-$size" }] },
		environment => { server => { version => $version } }, results => { completed_requests => 100,
			failed_requests => 0, total_output_tokens => 12_800, $metric => $own * $factor } };
};
my @swept = map { my $size = $_; map { my $rate = $_; map { $of_version->($_->[0], $_->[1], $size, $rate) }
	['0.12.0', 1], ['0.13.0', 1.075] } 1, 2, 4, 8 } 1 .. 24;
is(ask($d, POST => '/api/upload/raw', join "\n", map { json_text($_) } @swept)->{status}, 201, 'a sweep');
sub of_version {
	my ($version) = @_;
	return { name => $version, filter => { and => [{ column => 'server.model', in => ['swept'] },
		{ column => 'environment.server.version', in => [$version] }] } };
}
$compared = question('data/compare', { groups => [of_version('0.12.0'), of_version('0.13.0')],
	metrics => [$metric] });
is_deeply($compared->{matched_by}, ['server.max_num_seqs', 'benchmark.request_rate'],
	'what tells configurations apart');
$one = $compared->{comparisons}[0]{metrics}[0];
is_deeply([@$one{qw(verdict higher lower n_configurations n_clusters)}], ['better', 96, 0, 96, 24],
	'96 of 96 configurations, 24 servers: better');
ok($one->{interval}[0] > 0.07 && $one->{interval}[1] < 0.08, '... by 7.5 %');
for (
	[[of_version('0.12.0'), of_version('0.12.0')], 'are the same runs'],
	[[of_version('0.12.0'), { %{of_version('0.13.0')}, name => 'none', filter => { column =>
		'server.model', in => ['nobody'] } }], 'none has no run'],
	[[of_version('0.12.0'), { name => 'on A', filter => machine('A') }], 'no configuration in common'],
) {
	my $r = ask($d, POST => '/api/data/compare', json_text({ groups => $_->[0] }));

	is($r->{status}, 400, "$_->[1]: refused");
	like($r->{json}{detail}, qr/$_->[1]/, '... with that sentence');
}

# ---- capacity ----

my @load = map { json_text({ date => "20260201-00000$_->[0]", model_id => 'c', request_rate => $_->[0],
	request_throughput => $_->[0] + 0, p99_ttft_ms => $_->[1], tensor_parallel_size => 2,
	completed => 100, failed => 0 }) } [2, 100], [4, 300], [8, 700];
is(ask($d, POST => '/api/upload/raw', join "\n", @load)->{status}, 201, 'three loads');
my $capacity = question('analysis/capacity', { rate => 20,
	slo => [{ column => 'p99_ttft_ms', max => 500 }] });
my ($c) = @{$capacity->{configurations}};
is_deeply([@{$c->{rate_per_server}}{qw(value low high)}, $c->{servers}, $c->{gpus}{value}], [6, 4, 8, 4, 8],
	'half way between the loads: six a second, four servers of two GPUs');

# ---- runs that do not count ----

# As vLLM writes them: zeros for latencies where nothing completed.
sub result_of {
	my ($model, $day, %more) = @_;
	return json_text({ date => sprintf('202603%02d-000000', $day), model_id => $model,
		request_rate => 10, completed => 100, failed => 0, request_throughput => 10,
		p99_ttft_ms => 20 + 0.01 * ($day % 3), %more });
}
my %nothing = (completed => 0, failed => 100, request_throughput => 0, p99_ttft_ms => 0);
my @result = ((map { result_of('f', $_) } 1 .. 10), (map { result_of('f', $_, %nothing) } 11 .. 16),
	result_of('f', 17, p99_ttft_ms => 1, profllm => { verdict => 'INVALID', reasons => [],
		verdicts => { ttft => 'INVALID', request_throughput => 'VALID' } }));
is(ask($d, POST => '/api/upload/raw', join "\n", @result)->{status}, 201, 'a server that stops answering');
my $f = { column => 'server.model', in => ['f'] };
my $trend = question('analysis/trends', { metric => 'p99_ttft_ms', axis => 'time', filter => $f });
is(scalar @{$trend->{series}[0]{points}}, 10, 'its trend has the runs that measured something');
is_deeply($trend->{series}[0]{changes}, [], '... and no improvement');
is_deeply($trend->{trust}, [{ column => 'p99_ttft_ms', failed => 6, invalid => 1, degraded => 0,
	would_lead => JSON::PP::true }], '... and says what it left out');
like("@{$trend->{notes}}", qr/6 runs failed and are left out/, '... in words, too');
like("@{$trend->{notes}}", qr/INVALID in 1 run, left out here; that run would have led/, '...');
my $xy = { x => 'request_throughput', y => 'p99_ttft_ms', filter => $f };
my ($front) = @{question('analysis/pareto', $xy)->{groups}};
is($front->{n}, 10, 'so has the frontier');
ok(!(grep { $_->{y} < 20 } @{$front->{points}}), '... on which no run is that failed');
is(question('analysis/pareto', { %$xy, include_invalid => JSON::PP::true })->{groups}[0]{n}, 11,
	'... unless it is asked for, and has numbers');
is(question('analysis/trends', { metric => 'failed', axis => 'time', filter => $f })->{left_out}, 0,
	'how many failed is known of every run');

@load = (result_of('g', 1, request_throughput => 9.9), result_of('g', 2, request_rate => 20,
	request_throughput => 19.9), result_of('g', 3, request_rate => 40, %nothing));
is(ask($d, POST => '/api/upload/raw', join "\n", @load)->{status}, 201, 'the third load fails');
$capacity = question('analysis/capacity', { rate => 100, filter => { column => 'server.model',
	in => ['g'] }, slo => [{ column => 'p99_ttft_ms', max => 1000 }] });
is_deeply([@{$capacity->{configurations}[0]{rate_per_server}}{qw(value low high)},
	$capacity->{configurations}[0]{reason}, $capacity->{left_out}], [19.9, 19.9, 40, undef, 0],
	'... so it carries less than that');

# ---- what pages ask (web/src/app/filter.ts: whole) ----

my $only = { and => [{ column => 'server.model', in => ['g'] }] };
sub models_of {
	my ($filter) = @_;
	my $r = ask($d, POST => '/api/filters/apply', json_text({ filter => $filter, limit => 0,
		facets => ['server.model'] }));

	return [map { [$_->{value}, $_->{count}] } @{$r->{json}{facets}[0]{values}}];
}
is_deeply(models_of({ or => [$only, { or => [] }] }), [['g', 3]], 'counts of the runs that match alone');
ok(@{models_of({ or => [$only] })} > 1, '... which takes the empty "or"');

# ---- wrong questions ----

for my $wrong (
	['analysis/trends', { metric => 7 }, '/metric'],
	['analysis/trends', { metric => $metric, filter => { and => 1 } }, '/filter/and'],
	['analysis/regression', { metric => $metric, baseline => { ids => ['nobody'] } }, '/baseline/ids/0'],
	['analysis/scaling', { metric => $metric }, '/by'],
	['analysis/capacity', { rate => -1, slo => [] }, '/rate'],
	['analysis/parallel', { columns => [] }, '/columns'],
	['analysis/marks', { series => 's', at => 'c', kind => 'seen' }, '/metric'],
	(map { ["analysis/$_->[0]", { %{$_->[1]}, include_invalid => 1 }, '/include_invalid'] }
		['trends', { metric => $metric }],
		['regression', { metric => $metric, baseline => { last => 1 } }],
		['impact', { metric => $metric }], ['scaling', { metric => $metric, by => $metric }],
		['capacity', { rate => 1, slo => [{ column => $metric, min => 1 }] }],
		['resources', { x => $metric, y => $metric }], ['pareto', { x => $metric, y => $metric }],
		['distribution', { metric => $metric }], ['parallel', { columns => [$metric] }]),
	['data/compare', { groups => [{ ids => [0] }] }, '/groups/0/ids/0'],
) {
	my ($what, $body, $pointer) = @$wrong;
	my $r = ask($d, POST => "/api/$what", json_text($body));

	is_deeply([$r->{status}, $r->{json}{pointer}], [400, $pointer], "$what: $pointer")
		or diag($r->{content});
}
done_testing();
