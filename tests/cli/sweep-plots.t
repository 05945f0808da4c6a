#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep plot and plot_pareto: upstream's lines, files, pictures in every format, mistakes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $gnuplot = (grep { -x } map { "$_/gnuplot" } split /:/, $ENV{PATH})[0];
my @plot = qw(bench sweep plot);
my @pareto = qw(bench sweep plot_pareto);

# Two servers, three loads, two runs of each; what is unlimited has a null concurrency.
sub sweep {
	my ($dir) = @_;

	mkdir $dir;
	for my $seqs (16, 64) {
		for my $load (1, 8, 64) {
			my $in = $load < $seqs ? $load : $seqs;
			my $folder = "$dir/SERVE--max_num_seqs=$seqs-BENCH--max_concurrency=$load";
			my @runs = map {
				sprintf '{"model_id": "a/b", "request_rate": "inf", "max_concurrency": %s, '
					. '"max_concurrent_requests": %d, "output_throughput": %g, '
					. '"total_token_throughput": %g, "median_ttft_ms": %g, '
					. '"run_number": %d, "max_num_seqs": %d, "tensor_parallel_size": 2, '
					. '"profllm": {"verdict": "VALID"}}',
					$load == 64 && $seqs == 16 ? 'null' : $load, $load, 100 * $in + $_,
					500 * $in, 20 + 100 * $load / $in + $_, $_, $seqs;
			} 0, 1;

			mkdir $folder;
			spew("$folder/summary.json", '[' . join(', ', @runs) . "]\n");
			spew("$folder/run=0.json", $runs[0]);
		}
	}
	return $dir;
}

sub is_png { return (slurp($_[0]) // '') =~ /\A\x89PNG.{1000}/s }

sweep('exp');

# ---- what is printed ----

check_run('a dry run tells and makes the folder', run(args => [@plot, './exp/', '--fig-dir', 'figs',
	'--fig-by', 'max_num_seqs,model_id', '--col-by', 'run_number', '--dry-run', '--var-x', 'none']), {
	status => 0, err => '', exists => ['exp/figs'], gone => ['exp/figs/FIGURE.gp'] });
is(run(args => [@plot, './exp/', '--fig-dir', 'figs', '--fig-by', 'max_num_seqs,model_id', '--row-by',
	'max_concurrency', '--col-by', 'run_number', '--dry-run'])->{out}, <<'END', 'upstream\'s lines');
[BEGIN FIGURE]
Group: {'max_num_seqs': '16', 'model_id': 'a/b'}
Grid: 3 rows x 2 cols
Output file: exp/figs/FIGURE-max_num_seqs=16-model_id=a_b.png
[END FIGURE]
[BEGIN FIGURE]
Group: {'max_num_seqs': '64', 'model_id': 'a/b'}
Grid: 3 rows x 2 cols
Output file: exp/figs/FIGURE-max_num_seqs=64-model_id=a_b.png
[END FIGURE]
END
is(run(args => [@pareto, 'exp', '--dry-run'])->{out}, <<'END', 'upstream\'s lines of plot_pareto');
[BEGIN FIGURE]
Group: {}
Output file: exp/pareto/PARETO.png
[END FIGURE]
END
check_run('filters that leave nothing', run(args => [@plot, 'exp', '--filter-by',
	'max_num_seqs>=100,model_id!=c']), { status => 0, err => '', out => ['Grid: 1 rows x 1 cols',
	'No data to plot. Filters: [PlotGreaterThanOrEqualTo(var=\'max_num_seqs\', target=\'100\'), '
		. 'PlotNotEqualTo(var=\'model_id\', target=\'c\')]', '[END FIGURE]'] });

# ---- mistakes ----

mkdir 'empty';
for ([['nowhere'], 2, 'nowhere does not exist; expected the folder of a sweep'],
	[['empty'], 1, 'Did not find any parameter sweep results under empty'],
	[['exp', '--var-x', 'none'], 1, 'Cannot find var_x=\'none\' in parameter sweep results. Available '
		. 'variables: [\'model_id\', \'request_rate\', *'],
	[['exp', '--curve-by', 'model_id,none'], 1, 'Cannot find curve_by=\'none\' in *'],
	[['exp', '--fig-by', 'none'], 1, 'Cannot find metric \'none\' in run_data={\'model_id\': \'a/b\'*'],
	[['exp', '--filter-by', 'max_num_seqs=3'], 1, 'Invalid operator for plot filter '
		. '\'max_num_seqs=3\'. Valid operators are: *'],
	[['exp', '--filter-by', 'max_num_seqs<x'], 1, 'could not convert string to float: \'x\''],
	[['exp', '--bin-by', 'max_num_seqs'], 1, 'Invalid operator for plot binner \'max_num_seqs\'. *'],
	[['exp', '--var-y', 'model_id'], 1, '--var-y \'model_id\': not all of its values are numbers'],
	[['exp', '--scale-x', 'cube'], 2, '--scale-x*cube*'],
	[['exp', '--format', 'png,gif'], 2, '--format: \'gif\' is not png, svg, pdf or terminal'],
	[['exp', 'exp'], 2, 'EXPERIMENT_DIR: one folder is expected, not 2'],
	[['exp', '--fig-height', '0'], 2, '*fig-height*'],
	[['exp', '--var-z', 'x'], 2, '*--var-z*']) {
	my ($args, $status, $err) = @$_;

	check_run("mistake: @$args", run(args => [@plot, @$args]), { status => $status,
		err => "profllm bench sweep plot: $err" });
}
for ([['empty'], 1, 'Did not find any parameter sweep results under empty'],
	[['exp', '--gpu-count-var', 'model_id'], 1, 'Expected numeric value for one of [\'model_id\'], but '
		. 'found \'a/b\' in run_data=*']) {
	my ($args, $status, $err) = @$_;

	check_run("mistake: plot_pareto @$args", run(args => [@pareto, @$args]), { status => $status,
		err => "profllm bench sweep plot_pareto: $err" });
}
mkdir 'few';
spew('few/summary.json', '[{"output_throughput": 5}]');
check_run('no users', run(args => [@pareto, 'few']), { status => 1,
	out => ['Skipped 1 runs without a user count (`max_concurrency` or `max_concurrent_requests`).'],
	err => 'profllm bench sweep plot_pareto: No data points with both throughput and user count '
		. 'available to plot Pareto frontier.' });
spew('few/summary.json', '[{"output_throughput": 5, "max_concurrency": 1, "p99_itl_ms": 2}, '
	. '{"output_throughput": 6, "max_concurrency": 1, "p99_itl_ms": 2, '
	. '"profllm": {"verdict": "INVALID"}}]');
check_run('a run that is INVALID', run(args => [@pareto, 'few', '--dry-run']), { status => 0,
	warn => ['WARNING: 1 of 2 results, in which output_throughput is INVALID, are left out'] });
check_run('and in other plots', run(args => [@plot, 'few', '--dry-run', qw(--var-x max_concurrency --var-y
	p99_itl_ms)]), { status => 0, warn => ['WARNING: max_concurrency or p99_itl_ms is INVALID in 1 of '
		. 'the 2 results; --filter-by profllm.verdict!=INVALID leaves them out'] });
spew('few/summary.json', slurp('few/summary.json') =~ s/INVALID/DEGRADED/r);
check_run('a run that is DEGRADED', run(args => [@pareto, 'few', '--dry-run']), { status => 0,
	warn => ['WARNING: 1 of the 2 results that are drawn is DEGRADED'] });
check_run('and in other plots, too', run(args => [@plot, 'few', '--dry-run', qw(--var-x max_concurrency
	--var-y p99_itl_ms)]), { status => 0,
	warn => ['WARNING: 1 of the 2 results that are drawn is DEGRADED'] });
spew('few/summary.json', '[{"output_throughput": 5, "max');
check_run('a file that breaks off', run(args => [@plot, 'few']), { status => 1,
	err => 'profllm bench sweep plot: few/summary.json: line 1*' });

# ---- without gnuplot ----

mkdir 'no-tools';
check_run('without gnuplot script and data are written', run(args => [@plot, 'exp', '--fig-name', 'bare'],
	env => { PATH => 'no-tools' }), { status => 1, exists => ['exp/bare.gp', 'exp/bare.dat'],
	gone => ['exp/bare.png'],
	err => 'profllm bench sweep plot: gnuplot is not installed, so there is no picture; it would draw '
		. 'exp/bare.gp, which was written with its data' });

# ---- pictures ----

SKIP: {
	skip 'gnuplot is needed', 12 unless $gnuplot;
	my @by = ('--var-x', 'max_concurrent_requests', '--curve-by', 'max_num_seqs', '--fig-dpi', '60');

	check_run('a figure', run(args => [@plot, 'exp', @by]), { status => 0, err => '',
		out => ['Output file: exp/FIGURE.png', '[END FIGURE]'], exists => ['exp/FIGURE.gp'] });
	ok(is_png('exp/FIGURE.png'), 'it is a PNG');
	like(slurp('exp/FIGURE.dat'), qr/^# panel 1: 16\n1\.0 120\.5 119\.79\d+ 121\.20\d+ 2\n8\.0 /m,
		'its table has means and deviations');

	# Moved elsewhere, the script draws again, in another format.
	mkdir 'else where';
	rename "exp/FIGURE.$_", "else where/FIGURE.$_" for qw(gp dat);
	my $again = run(command => ['sh', '-c',
		q(cd 'else where' && gnuplot FIGURE.gp && gnuplot -e "format='svg'" FIGURE.gp)]);
	check_run('the script runs alone', $again, { status => 0, err => '' });
	ok(is_png('else where/FIGURE.png') && slurp('else where/FIGURE.svg') =~ /<svg/, 'and draws');

	check_run('every scale and a name with quotes', run(args => [@plot, 'exp', @by, '--scale-x', $_,
		'--scale-y', $_, '--fig-name', "it's `touch bad` $_", '--format', 'png,svg,pdf', '--row-by',
		'model_id', '--bin-by', 'median_ttft_ms%10', '--no-error-bars']), { status => 0,
		gone => ['bad', 'exp/bad'], exists => [map { "exp/it's `touch bad` log.$_" } qw(png svg pdf)],
		err => $_ eq 'logit' ? '*points are not drawn*' : '' })
		for qw(log sqrt symlog asinh linear logit);

	my $text = run(args => [@plot, 'exp', @by, '--format', 'terminal', '--fig-name', 'text']);
	check_run('as text', $text, { status => 0, out => ['*median_ttft_ms*', '*max_num_seqs*',
		'  A  16', '  B  64'],
		gone => ['exp/text.png'], exists => ['exp/text.gp'] });

	my $pareto = run(args => [@pareto, 'exp']);
	check_run('the frontier', $pareto, { status => 0, err => '', exists => ['exp/pareto/PARETO.gp'] });
	like($pareto->{out}, qr/^Plotted 12 points; Pareto frontier size: (\d+)\.\n\[END FIGURE\]\nUsers: /m,
		'upstream\'s count, then which users');
	like($pareto->{out}, qr/^Users: max_concurrency \(10 runs\), max_concurrent_requests \(the observed/m,
		'the observed peak where nothing was limited');
	ok(is_png('exp/pareto/PARETO.png'), 'it is a PNG');
	my @csv = split /\n/, slurp('exp/pareto/PARETO.csv');
	my ($size) = $pareto->{out} =~ /frontier size: (\d+)/;
	is(scalar @csv, 13, 'a row for every run');
	like($csv[0], qr/,tokens_per_user,tokens_per_gpu,user_count_estimate,gpu_count,is_frontier$/,
		'and columns for what was worked out');
	is(scalar(grep { /,2\.0,True$/ } @csv), $size, 'as many are marked as were told');
	check_run('means of the runs', run(args => [@pareto, 'exp', '--average-runs', '--strict']), {
		status => 0, err => '', out => ['Plotted 6 points; *'] });
}

# ---- GPUs that only the server's command tells ----

mkdir $_ for qw(gpus gpus/a);
spew('gpus/a/summary.json', '[{"output_throughput": 100.0, "max_concurrency": 4}]');
spew('gpus/servers.json', '[{"command": ["vllm", "serve", "m", "-tp", "2", "--pipeline-parallel-size=2"]}]');
my @dry = (@pareto, 'gpus', '--dry-run');
like(run(args => \@dry)->{err}, qr{^WARNING: gpus/servers.json names a server of 4 GPUs},
	'GPUs nobody counts');
spew('gpus/a/summary.json', '[{"output_throughput": 100.0, "max_concurrency": 4, "num_gpus": "4"}]');
is(run(args => \@dry)->{err}, '', 'GPUs that results tell');

done_testing();
