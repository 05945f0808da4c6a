#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --plot-timeline and --plot-dataset-stats from outside: names, messages, what is refused before the
# run. What the pages show is tested in tests/web/.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $no_pages = ($ENV{WEB} // '1') eq '0';
my ($gnuplot) = grep { -x } map { "$_/gnuplot" } split /:/, $ENV{PATH};
my $sim = start_sim('--model', 'sim', '--ttft-ms', '2', '--itl-ms', '1');
my @base = ('bench', 'serve', '--port', $sim->{port}, @{$tiny{model}}, @{$tiny{load}}, '--progress', 'none');

# Before anything is sent, with the plot and without.
my $expected = '--timeline-itl-thresholds: expected two numbers of milliseconds, the smaller one first, got';
for (['25', '--plot-timeline'], ['1,2,3', '--plot-timeline'], ['5,x', '--plot-timeline'], ['x']) {
	my ($limits, @plot) = @$_;

	check_run("--timeline-itl-thresholds $limits", run(args => [@base, @plot,
		'--timeline-itl-thresholds', $limits]), { status => 2,
		err => "*$expected '$limits'", not_out => ['Starting main*'] });
}

if ($no_pages) {
	check_run('a build without pages says so', run(args => [@base, '--plot-timeline']), { status => 1,
		err => '*--plot-timeline: this build has no pages: it was made with WEB=0',
		not_out => ['Starting main*'] });
	done_testing();
	exit;
}

check_run('the name without a saved result', run(args => [@base, '--plot-timeline', '--result-filename',
	'one.v1', '--result-dir', 'sub']), { status => 0, exists => ['sub/one.timeline.html'],
	gone => ['sub/one.v1'], out => ['Timeline plot saved to: sub/one.timeline.html'] });
mkdir 'generated';
run(args => [@base, '--plot-timeline', '--result-dir', 'generated', '--request-rate', '50']);
is(join(' ', map { s/\d{8}-\d{6}/T/r } glob('generated/*')),
	'generated/openai-50.0qps-sim-T.timeline.html', 'the generated name');

mkdir 'plots/';
my $both = run(args => [@base, '--plot-timeline', '--plot-dataset-stats', '--save-result',
	'--result-filename', 'plots/r.json']);
check_run('both plots and the result', $both, { status => 0, exists => ['plots/r.json',
	'plots/r.timeline.html', 'plots/r.dataset_stats.html'],
	out => ['Timeline plot saved to: plots/r.timeline.html',
		'Dataset statistics page saved to: plots/r.dataset_stats.html'] });
like($both->{out}, qr/={50}\nTimeline plot saved/, 'after the report');
SKIP: {
	skip 'gnuplot is needed', 2 unless $gnuplot;
	ok(has_line($both->{out}, 'Dataset statistics plot saved to: plots/r.dataset_stats.png'),
		'the picture is named');
	like(slurp('plots/r.dataset_stats.png'), qr/\A\x89PNG/, 'and is one');
}

mkdir 'empty';
check_run('the lengths without gnuplot', run(args => [@base, '--plot-dataset-stats', '--result-filename',
	'bare.json'], env => { PATH => 'empty' }), { status => 0, exists => ['bare.dataset_stats.html'],
	gone => ['bare.json', 'bare.dataset_stats.png'],
	warn => ['WARNING: gnuplot is not installed, so --plot-dataset-stats draws its page alone'] });
spew('empty/gnuplot', "#!/bin/sh\necho no font >&2\nexit 3\n");
chmod 0755, 'empty/gnuplot';
check_run('a gnuplot that fails', run(args => [@base, '--plot-dataset-stats', '--result-filename',
	'bad.json'], env => { PATH => "empty:$ENV{PATH}" }), { status => 0,
	exists => ['bad.dataset_stats.html', 'bad.dataset_stats.gp'],
	warn => ['WARNING: Failed to generate dataset statistics plot: gnuplot ended with 3: no font'] });
# A shell cannot hand an ignored SIGCHLD on; some supervisors do.
check_run('the same below a parent that ignores SIGCHLD', run(command => ['perl', '-e',
	'$SIG{CHLD} = "IGNORE"; exec { $ARGV[0] } @ARGV', $program, @base, '--plot-dataset-stats',
	'--result-filename', 'bad.json'], env => { PATH => "empty:$ENV{PATH}" }), { status => 0, warn => [
	'WARNING: Failed to generate dataset statistics plot: gnuplot ended with 3: no font'] });

mkdir 'taken.timeline.html';
check_run('a place that cannot be written', run(args => [@base, '--plot-timeline', '--result-filename',
	'taken.json']), { status => 1,
	err => '*--plot-timeline: taken.timeline.html is a directory, not a file',
	not_out => ['Starting main*'] });

my @pooling = ('bench', 'serve', '--port', $sim->{port}, @{$tiny{model}}, '--num-prompts', '3',
	'--random-input-len', '8', '--progress', 'none', '--backend', 'openai-embeddings', '--endpoint',
	'/v1/embeddings', '--plot-timeline', '--plot-dataset-stats', '--result-filename', 'pool.json');
check_run('pooling has no timeline', run(args => [@pooling]), { status => 0,
	gone => ['pool.timeline.html', 'pool.dataset_stats.html'],
	warn => ['WARNING: Timeline plot requires detailed metrics. Ensure the benchmark completed '
		. 'successfully.', 'WARNING: Dataset statistics plot requires input and output length data. '
		. 'Ensure the benchmark completed successfully.'] });

run(args => [@base, '--record', 'run.rec']);
check_run('from a record', run(args => ['bench', 'score', 'run.rec', '--plot-timeline',
	'--plot-dataset-stats', '--result-filename', 'again.json', '--timeline-itl-thresholds', '1,2']),
	{ status => 0, gone => ['again.json'], exists => ['again.timeline.html', 'again.dataset_stats.html'],
		out => ['Timeline plot saved to: again.timeline.html'] });
check_run('limits of a record\'s timeline', run(args => ['bench', 'score', 'run.rec', '--plot-timeline',
	'--timeline-itl-thresholds', '1']), { status => 2, err => "*$expected '1'" });
done_testing();
