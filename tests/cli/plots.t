#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --plot-timeline, --plot-dataset-stats and --plot-turns from outside: names, messages, what is refused
# before the run. What the pages show is tested in tests/web/.
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
	check_run("a build without pages has no $_", run(args => [@base, $_]), { status => 1,
		err => "*$_: this build has no pages: it was made with WEB=0",
		not_out => ['Starting main*'] }) for '--plot-timeline', '--plot-turns';
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
like($both->{out}, qr/={50}\n.*\nTimeline plot saved/, 'after the report');
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

# Conversations by turn.
mkdir 'turned.turns.html';
check_run('turns that cannot be written', run(args => [@base, '--plot-turns', '--result-filename',
	'turned.json']), { status => 1,
	err => '*--plot-turns: turned.turns.html is a directory, not a file',
	not_out => ['Starting main*'] });
check_run('a run without conversations', run(args => [@base, '--plot-turns', '--result-filename',
	'single.json']), { status => 0, gone => ['single.turns.html'],
	warn => ['WARNING: --plot-turns: the run has no conversations, so nothing is drawn'] });
check_run('turns of a run', run(args => ['bench', 'serve', '--port', $sim->{port}, '--model', 'sim',
	'--tokenizer', 'sim', '--backend', 'openai-chat', '--endpoint', '/v1/chat/completions',
	'--progress', 'none', '--dataset-name', 'random', '--multi-turn', '--num-prompts', '2',
	'--multi-turn-min-turns', '14', '--multi-turn-max-turns', '14', '--random-input-len', '8',
	'--per-turn-input-len', '4', '--random-output-len', '2', '--plot-turns', '--result-filename',
	'talk.json', '--record', 'talk.rec']), { status => 0, exists => ['talk.turns.html'],
	gone => ['talk.json'], out => ['Turns plot saved to: talk.turns.html'] });
my $scored = run(args => ['bench', 'score', 'talk.rec', '--plot-turns', '--result-filename', 'more.json']);
check_run('turns of a record', $scored, { status => 0, exists => ['more.turns.html'],
	out => ['Turns plot saved to: more.turns.html'] });
# Fourteen turns are more than the twelve rows there are: the first one, then ranges.
my @row = $scored->{out} =~ /^ {2,}(\d+(?:-\d+)?) +[24] /mg;
is("@row", '1 2-3 4-5 6-7 8-9 10-11 12-13 14', 'many turns are ranges');
like($scored->{out}, qr/^From turn 2 to turn 14 the median TTFT .*; .* cached tokens\b.*\.$/m,
	'and a sentence says what they show');
done_testing();
