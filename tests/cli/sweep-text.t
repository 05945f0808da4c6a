#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench sweep serve and startup without a server: what would be run, what is refused, and
# startup, whose command is a small script here.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Sweep;
use Test::More;

params('s.json', [{ max_num_seqs => 32, enable_x => JSON::PP::true(), 'a.b' => JSON::PP::false() },
	{ _benchmark_name => 'big/../one', max_num_seqs => 64, list => [1, 2.5, 'x', undef] }]);
params('b.json', { 'two words' => { max_concurrency => 4, extra_body => { k => "it's" } },
	none => { request_rate => 0.5 } }, ['two words', 'none']);
spew('nothing.json', '[]');
spew('number.json', '3');
spew('items.json', '[{}, [1]]');
spew('names.json', '[{"_benchmark_name": "x"}, {"_benchmark_name": "x"}]');
spew('broken.json', '[{"a": 1}');
spew('same.json', '[{"label": "x/y"}, {"label": "x_y"}]');
spew('twice.json', '[{"label": 1}, {"label": 1}]');
mkdir 'results';
mkdir 'results/there';

my @cmd = ('--serve-cmd', "vllm serve 'my model' --max-num-seqs=8 --port 1 --no-enable-x --list",
	'--bench-cmd', 'vllm bench serve --max_concurrency 1 --model "my model"');
my @serve = (qw(bench sweep serve), @cmd);

# ---- what would be run ----

for (['sweep-dry-run.txt', @serve, qw(--serve-params s.json --bench-params b.json --num-runs 2 -e x
		--warmup-num-prompts 3 --dry-run)],
	['sweep-dry-run-plain.txt', @serve, qw(-o .//out -e x --dry-run)],
	['sweep-help.txt', qw(bench sweep serve --help)],
	['sweep-startup-help.txt', qw(bench sweep startup --help)],
	['sweep-startup-dry-run.txt', qw(bench sweep startup --startup-cmd),
		'vllm bench startup --output-json=a --output_json b',
		qw(--serve-params s.json -e x --dry-run)]) {
	my ($golden, @args) = @$_;
	my $r = run(args => \@args);

	is_golden("status $r->{status}\n$r->{out}", $golden);
}
ok(!-e 'results/x' && !-e 'out', 'nothing was made');

# ---- what is refused: status, last line, arguments ----

my $resume = 'The script was terminated early. Use `--resume` to continue the script from its last '
	. 'checkpoint.';
for ([2, 'the following arguments are required: --serve-cmd, --bench-cmd', qw(bench sweep serve)],
	[2, 'the following arguments are required: --bench-cmd', qw(bench sweep serve --serve-cmd x)],
	[2, '--num-runs: expected at least 1, got 0', @serve, qw(--num-runs 0)],
	[2, '--warmup-num-prompts: expected at least 0, got -1', @serve, qw(--warmup-num-prompts -1)],
	[1, "Cannot overwrite existing experiment_dir=PosixPath('results/there')", @serve, qw(-e there)],
	[1, "Cannot overwrite existing experiment_dir=PosixPath('results/there')", @serve,
		qw(-o ./results// -e there --dry-run)],
	[1, "Cannot resume from non-existent experiment_dir=PosixPath('results/nowhere')", @serve,
		qw(--resume nowhere)],
	[2, '--resume a names another experiment than --experiment-name b', @serve, qw(--resume a -e b)],
	[2, '--resume: one experiment\'s name at most, got 2', @serve, qw(--resume a b)],
	[2, '--stop-on-error and --continue-on-error exclude each other', @serve,
		qw(--stop-on-error --continue-on-error)],
	[2, '--serve-cmd: No closing quotation', qw(bench sweep serve --bench-cmd x --serve-cmd), "vllm 'x"],
	[2, '--bench-cmd: unknown option --num-promts; did you mean --num-prompts?', qw(bench sweep serve
		--serve-cmd sim --bench-cmd), 'vllm bench serve --num-promts 2'],
	[2, '--bench-cmd: the command is empty', qw(bench sweep serve --serve-cmd x --bench-cmd), ' '],
	[2, '--after-bench-cmd: No escaped character', @serve, '--after-bench-cmd', 'x\\'],
	[1, 'No implementation of `reset_caches` for `other` server. Please specify a custom command via '
		. '`--after-bench-cmd`.', qw(bench sweep serve --serve-cmd), 'other x', qw(--bench-cmd x)],
	[2, '--bench-params: nothing.json holds no combination', @serve, qw(--bench-params nothing.json)],
	[2, '--bench-params: number.json: The parameter sweep should be a list of dictionaries, but found '
		. "type: <class 'int'>", @serve, qw(--bench-params number.json)],
	[2, '--serve-params: items.json: Each item in the parameter sweep should be a dictionary, but found '
		. "type: <class 'list'>", @serve, qw(--serve-params items.json)],
	[2, "--serve-params: names.json: Duplicate _benchmark_name values found: {'x'}. All _benchmark_name "
		. 'values must be unique.', @serve, qw(--serve-params names.json)],
	[2, '--serve-params: broken.json: *line 1*', @serve, qw(--serve-params broken.json)],
	[1, '--serve-params: cannot * missing.json: No such file or directory', @serve,
		qw(--serve-params missing.json)],
	[2, "--link-vars: expected server's=benchmark's, got 'a'", @serve, qw(--link-vars a)],
	[2, "--link-vars: expected server's=benchmark's, got 'b=c=d'", @serve, '--link-vars', 'a=b,b=c=d'],
	[1, "*{'label': 'x/y'} and {} with {'label': 'x_y'} would both be kept in results/x/BENCH--label=x_y"
		. '; *', @serve, qw(--bench-params same.json -e x --dry-run)],
	[2, "--bench-cmd: unknown option --modle; *", qw(bench sweep serve --serve-cmd), 'vllm serve m',
		'--bench-cmd', 'vllm bench serve --modle m', qw(-e x --dry-run)],
	[2, "--bench-cmd: '|' needs a shell, *", qw(bench sweep serve --serve-cmd), 'vllm serve m',
		'--bench-cmd', 'vllm bench serve --model m | tee x.log', qw(-e x)],
	[2, '--serve-cmd: HF_HOME=... before the command needs a shell, *', qw(bench sweep serve --serve-cmd),
		'HF_HOME=/data vllm serve m', '--bench-cmd', 'vllm bench serve --model m', qw(-e x)],
	[2, "--restart: *'often'*", @serve, qw(--restart often)],
	[1, 'Ignoring unsupported startup params for max_num_seqs=32, enable_x=True, a.b=False: a.b, '
		. 'enable_x',
		qw(bench sweep startup --serve-params s.json --strict-params)]) {
	my ($status, $line, @args) = @$_;
	my $verb = $args[2];
	my $r = run(args => \@args);

	check_run("refused: $line", $r, { status => $status, err => "profllm bench sweep $verb: $line" });
}
ok(!-e 'results/x', 'nothing was made');
spew('keys.json', qq([{"a": 1},\n {"max_num_seqs": 4, "max_num_seqs": 8}]));
check_run('one key twice', run(args => [@serve, qw(--serve-params keys.json -e x --dry-run)]),
	{ status => 0, warn => ['WARNING: --serve-params: keys.json: line 2, column *: an object has one key '
		. "twice: 'max_num_seqs'; only the last value is used"] });
check_run('a list as a value', run(args => [@serve, '--serve-params', '[{"max_num_seqs": [4, 8]}]',
		qw(-e x --dry-run)]),
	{ status => 0,
	  warn => ["WARNING: --serve-params: the list of 'max_num_seqs' is passed as one value; *"] });
check_run('the same combination twice', run(args => [@serve, qw(--bench-params twice.json -e x --dry-run)]),
	{ status => 0 });

# ---- startup ----

spew('start.pl', <<'END');
my %o = @ARGV;
die "too many\n" if ($o{'--max-num-seqs'} || 0) > 50;
open my $f, '>', $o{'--output-json'} or die;
print $f qq({"avg_cold_startup_time": 1.5, "max_num_seqs": 0, "seen": "@ARGV[0, 1]"});
open my $log, '>>', 'starts.txt';
print $log "start\n";
END
my @startup = (qw(bench sweep startup --startup-cmd), 'perl start.pl --cold 1', qw(--serve-params t.json
	--startup-params u.json --num-runs 2));
spew('t.json', '[{"max_num_seqs": 8, "port": 1}, {"max_num_seqs": 16}]');
spew('u.json', '[{"num_iters_cold": 2}]');
{
	my $r = run(args => [@startup, qw(-e start)]);
	my @f = map { "SERVE--max_num_seqs=$_-STARTUP--num_iters_cold=2" } 16, 8;

	check_run('startup', $r, { status => 0, out => [
		'Ignoring unsupported startup params for max_num_seqs=8, port=1: port',
		"Serve overrides: {'max_num_seqs': 8}", "Startup overrides: {'num_iters_cold': 2}",
		'Run Number: 1',
		"Benchmark command: ['perl', 'start.pl', '--cold', '1', '--max-num-seqs', '16', "
			. "'--num-iters-cold', '2', '--output-json', 'results/start/$f[0]/run=1.json']",
		'[END BENCHMARK]', 'Experiment has been saved at: results/start'] });
	is_deeply([files('start')], [sort 'summary.csv', map { my $f = $_; map { "$f/$_" } 'run=0.json',
		'run=1.json', 'summary.json' } @f], 'files');
	is_deeply([map { "$_->{max_num_seqs} $_->{run_number} $_->{seen}" } @{summary('start')}],
		['8 0 --cold 1', '8 1 --cold 1', '16 0 --cold 1', '16 1 --cold 1'], 'records');
	unlink "results/start/$f[0]/run=0.json";
	$r = run(args => [@startup, qw(--resume start)]);
	check_run('gone on with', $r, { status => 0,
		out => ['Found existing results.', '[SKIPPED BENCHMARK]'] });
	is(slurp('starts.txt'), "start\n" x 5, 'only the lacking run');
	spew('t.json', '[{"max_num_seqs": 64}, {"max_num_seqs": 16}]');
	$r = run(args => [@startup, qw(-e half)]);
	check_run('one fails', $r, { status => 1,
		out => ["[FAILED BENCHMARK] run=0: CalledProcessError: *"] });
	is_deeply([map { $_->{max_num_seqs} } @{summary('half')}], [16, 16], 'the other is there');
	$r = run(args => [@startup, qw(-e ended --stop-on-error)]);
	check_run('--stop-on-error', $r, { status => 1, err => "profllm bench sweep startup: $resume (*)",
		gone => ['results/ended/summary.csv'] });
}

done_testing;
