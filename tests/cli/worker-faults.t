#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every way in which an engine's program goes wrong, through `bench latency`: what is said, with
# which exit status, and that no process is left, however it (or we) ended.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;
use Time::HiRes qw(sleep time);

my $faulty = "perl $FindBin::Bin/faulty_worker.pl";
my @small = qw(--model x --batch-size 2 --input-len 8 --output-len 4 --num-iters-warmup 0 --num-iters 1);
$ENV{FAULTS_TEST} = "faults-$$";

# Processes that carry our variable, the tests themselves left out.
sub survivors {
	my @found;

	for my $path (glob '/proc/[0-9]*/environ') {
		my ($pid) = $path =~ m{/proc/(\d+)/};
		my $text = slurp($path);
		push @found, $pid if $pid != $$ && defined $text && $text =~ /\bFAULTS_TEST=faults-$$\0/;
	}
	return @found;
}

sub nothing_is_left {
	my ($name) = @_;
	my @left = survivors();

	is("@left", '', "$name: nothing is left") or kill 'KILL', @left;
}

sub latency {
	my ($name, $args, $expected, %more) = @_;

	check_run($name, run(args => ['bench', 'latency', @small, @$args], %more), $expected);
	nothing_is_left($name);
}

my $who = 'the worker';
my $broke = "$who broke the protocol during";
my $ended = "$who ended with status";
my $clocks = 'the clocks of faulty cannot be trusted: it reports that the run';
my @rows = (
	# fault, when, exit status, the sentence, [options], lines of the log's end
	['none', '', 0, undef],
	['exit', 'hello', 1, "$ended 3 without an answer during starting (crash)"],
	['exit', 'load', 1, "$ended 3 without an answer during load (crash)"],
	['exit', 'describe', 1, "$ended 3 without an answer during describe (crash)"],
	['exit', 'put', 1, "$ended 3 without an answer during put (crash)"],
	['exit', 'generate', 1, "$ended 3 without an answer during generate (crash)"],
	['exit-0', 'generate', 1, "$ended 0 without an answer during generate (crash)"],
	['kill', 'load', 1, "$who was killed by signal 9 (Killed) during load (killed: *"],
	['segv', 'generate', 1, "$who was killed by signal 11 (Segmentation fault) during generate (crash)"],
	['hang', 'hello', 1, "$who was not done with starting within 3 seconds (--load-timeout)",
		['--load-timeout', 3]],
	['hang', 'load', 1, "$who was not done with load within 3 seconds (--load-timeout)",
		['--load-timeout', 3]],
	['hang', 'generate', 1, "$who gave no sign of life for 2 seconds during generate (--worker-timeout)",
		['--worker-timeout', 2]],
	['stubborn', 'generate', 1,
		"$who gave no sign of life for 2 seconds during generate (--worker-timeout)",
		['--worker-timeout', 2]],
	['oom', 'load', 1,
		"$who failed during load (out of memory): CUDA out of memory. Tried to allocate 2.00 GiB"],
	['oom', 'generate', 1, "$who failed during generate (out of memory): CUDA out of memory. Tried *"],
	['oom-log', 'load', 1, "$ended 1 without an answer during load (out of memory: "
		. 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB)', [],
		'*the end of the log of the worker:', '*  torch.OutOfMemoryError: CUDA out of memory. *'],
	['model-log', 'load', 1, "$ended 1 without an answer during load (model not found: OSError: *)"],
	['package-log', 'hello', 1, "$ended 1 without an answer during starting (package missing: "
		. "ModuleNotFoundError: No module named 'vllm')", [], '*  Traceback'],
	['flag-log', 'load', 2, "$ended 2 without an answer during load (bad flag: "
		. 'x: error: unrecognized arguments: --warp 9)'],
	['flag', 'load', 2, "$who failed during load (bad flag): unrecognized arguments: --warp 9"],
	['other', 'generate', 1, "$who failed during generate: ValueError: no"],
	['garbage', 'hello', 1, "$broke starting: 'INFO' found where a frame's length was expected"],
	['garbage', 'generate', 1, "$broke generate: 'INFO' found where a frame's length was expected"],
	['long', 'load', 1, "$broke load: a frame of 4294967295 bytes; at most 268435456"],
	['truncated', 'generate', 1, "$broke generate: it ended in the middle of a frame"],
	['no-json', 'put', 1, "$broke put: a frame that is not a JSON object: {\"id\":"],
	['closes', 'generate', 1, "$broke generate: it closed its socket without an answer"],
	['leaves-child', 'generate', 1, "$ended 3 without an answer during generate (crash)"],
	['protocol', 'hello', 1, "$broke starting: it speaks version 2, we speak 1"],
	['no-type', 'load', 1, "$broke load: a frame without a type: *"],
	['wrong-id', 'generate', 1, "$broke generate: question * was answered as *"],
	['id-text', 'generate', 1, "$broke generate: an id that is no integer: *"],
	['error-alone', 'generate', 1, "$broke generate: an error without a text: *"],
	['no-clock', 'generate', 1, "$broke its answer: began_ns is not an integer number of nanoseconds"],
	['clock-text', 'load', 1, "$broke its answer: ended_ns is not an integer number of nanoseconds"],
	['clock-real', 'generate', 1, "$broke its answer: ended_ns is not an integer *"],
	['too-early', 'load', 1, "$broke its answer: its load began at *, but it was asked at *"],
	['backwards', 'generate', 1, "$clocks ended * s before it began"],
	['too-early', 'generate', 1, "$clocks began 3* s before it was asked for"],
	['too-late', 'generate', 1, "$clocks ended 3* s after its answer came"],
	['few-counts', 'generate', 1, "$broke its answer: output_tokens has 1 entries for 2 requests"],
	['many-counts', 'generate', 1, "$broke its answer: prompt_tokens has 3 entries for 2 requests"],
	['counts-text', 'generate', 1, "$broke its answer: output_tokens is not a list"],
	['count-negative', 'generate', 1, "$broke its answer: output_tokens[1] is -1"],
	['count-text', 'generate', 1, "$broke its answer: prompt_tokens[0] is x"],
	['forgets', 'put', 1, "$broke its answer: it does not hold the 2 requests it was given"],
	['length-text', 'describe', 1, "$broke its answer: max_model_len is not an integer"],
	['phases-text', 'load', 1, "$broke its answer: phases is not a list"],
	['prints', 'generate', 0, undef],
	['daemon', 'generate', 0, undef, ['--server-grace', 1]],
	['hang', 'shutdown', 0, undef, ['--server-grace', 1],
		'*the worker did not end within 1 seconds when it was asked to'],
	['stubborn', 'shutdown', 0, undef, ['--server-grace', 1]],
);

# Several at once: most of them wait for something.
while (my @some = splice @rows, 0, 6) {
	my @runs = map { begin(args => ['bench', 'latency', @small, '--backend', 'worker', '--worker-cmd',
		"$faulty $_->[0] $_->[1]", @{$_->[4] || []}]) } @some;

	for (@some) {
		my ($fault, $when, $status, $err, $options, @warn) = @$_;

		check_run("$fault $when", finish(shift @runs), { status => $status,
			err => defined $err ? "*$err" : undef, warn => \@warn,
			$status ? () : (out => ['Avg latency: *']) });
	}
	nothing_is_left(join ', ', map { "$_->[0] $_->[1]" } @some);
}

# ---- what is not there ----

my $bin = 'bin';
mkdir $bin or die;
mkdir 'workers' or die;
spew('workers/vllm_worker.py', "none of its lines is reached\n");
spew("$bin/mypython", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'vllm'\" >&2\nexit 1\n");
chmod 0755, "$bin/mypython";
my %bare = (PATH => '/nowhere', PROFLLM_WORKERS => 'workers', PROFLLM_PYTHON => '', VIRTUAL_ENV => '');

latency('no such program', ['--backend', 'worker', '--worker-cmd', 'no-such-worker x'],
	{ status => 2, err => "*the worker cannot be started: 'no-such-worker': No such file or directory" });
latency('a command that is none', ['--backend', 'worker', '--worker-cmd', "perl 'x"],
	{ status => 2, err => '*--worker-cmd*No closing quotation*' });
latency('a script that is not there', ['--backend', 'worker', '--worker-cmd', 'sh no-such-script'],
	{ status => 2, err => '*(program not found: *no-such-script*)' });
latency('no Python', ['--backend', 'vllm'], { status => 2,
	err => '*backend vllm needs Python, and python3 is not in PATH; --python or *' },
	env => \%bare);
latency('a Python that is not there', ['--backend', 'vllm', '--python', '/no/python'], { status => 2,
	err => "*the vllm worker cannot be started: '/no/python': No such file or directory" },
	env => \%bare);
latency('no package', ['--backend', 'vllm', '--python', "$bin/mypython"], { status => 1,
	err => "*the vllm worker ended with status 1 without an answer during starting (package missing: "
		. "ModuleNotFoundError: No module named 'vllm')",
	warn => ["*the interpreter is $bin/mypython; --python or PROFLLM_PYTHON may name another one"] },
	env => { %bare, PATH => $ENV{PATH} });
latency('no worker', ['--backend', 'vllm', '--python', "$bin/mypython"], { status => 2,
	err => '*PROFLLM_WORKERS names no folder with vllm_worker.py: elsewhere' },
	env => { %bare, PROFLLM_WORKERS => 'elsewhere' });

# The interpreter of the first line of vllm in PATH, before any python3.
{
	my $here = `pwd`;
	chomp $here;
	spew("$bin/vllm", "#!$here/$bin/python-of-vllm -E\n");
	spew("$bin/python-of-vllm", "#!/bin/sh\necho \"asked to run \$1\" >&2\nexit 1\n");
	chmod 0755, "$bin/vllm", "$bin/python-of-vllm";
	latency('the interpreter of vllm', ['--backend', 'vllm'], { status => 1,
		err => '*(crash: asked to run workers/vllm_worker.py)' }, env => { %bare, PATH => $bin });
}

# ---- Nsight Systems ----

latency('no nsys', ['--nsight', '--backend', 'worker', '--worker-cmd', "$faulty none"],
	{ status => 2, err => '*--nsight: nsys (Nsight Systems) is not in PATH' });
spew("$bin/nsys", <<'END');
#!/bin/sh
echo "$@" >nsys-args
echo "$VLLM_WORKER_MULTIPROC_METHOD" >nsys-method
while [ "$1" != perl ]; do shift; done
exec "$@"
END
chmod 0755, "$bin/nsys";
my %with_nsys = (env => { PATH => "$bin:$ENV{PATH}" });
latency('nsys', ['--nsight', 'report', '--backend', 'worker', '--worker-cmd', "$faulty none"],
	{ status => 0 }, %with_nsys);
like(slurp('nsys-args'), qr/^profile --trace-fork-before-exec=true --cuda-graph-trace=node -o report perl /,
	'how nsys is called');
is(slurp('nsys-method'), "spawn\n", 'workers are spawned');
latency('nsys with a range', ['--nsight', 'report', '--backend', 'worker', '--worker-cmd', "$faulty none",
	'--profiler-config.profiler', 'cuda'], { status => 0 }, %with_nsys);
like(slurp('nsys-args'), qr/ --capture-range=cudaProfilerApi --capture-range-end=repeat -o report perl /,
	'a range when the profiler is CUDA\'s');

# ---- the log ----

latency('a log with a name', ['--backend', 'worker', '--worker-cmd', "$faulty prints generate",
	'--worker-log', 'logs/engine.log'], { status => 0, not_out => ['a line on stdout'] });
is(slurp('logs/engine.log'), "a line on stdout\n", 'it has what was printed');
latency('a log in a folder', ['--backend', 'worker', '--worker-cmd', "$faulty oom-log load",
	'--worker-log', 'logs'], { status => 1,
	warn => ['*the end of the log of the worker, logs/latency.log:'] });
latency('a log that is shown', ['--backend', 'worker', '--worker-cmd', "$faulty prints generate",
	'--show-log'], { status => 0, warn => ['*a line on stdout'] });

# ---- ended by others ----

# The worker's environment carries the variable, too: once it is asked, the run is under way.
sub under_way { return sub { -s 'under-way' } }
spew('slow.pl', <<"END");
open my \$f, '>', 'under-way.new'; print \$f 1; close \$f; rename 'under-way.new', 'under-way';
\@ARGV = ('stubborn', 'generate'); do '$FindBin::Bin/faulty_worker.pl'; die \$@;
END

for my $case (['INT', 130], ['TERM', 130]) {
	my ($signal, $status) = @$case;
	unlink 'under-way';
	my $run = begin(args => ['bench', 'latency', @small, '--backend', 'worker', '--worker-cmd',
		'perl slow.pl', '--server-grace', 1]);
	wait_for('the worker', under_way());
	sleep 0.3;
	my $began = time;
	kill $signal, $run->{pid};
	check_run("ended by $signal", finish($run), { status => $status });
	ok(time - $began < 15, "$signal: it does not wait for an answer");
	nothing_is_left("ended by $signal");
}

unlink 'under-way';
my $run = begin(args => ['bench', 'latency', @small, '--backend', 'worker', '--worker-cmd', 'perl slow.pl',
	'--server-grace', 1]);
wait_for('the worker', under_way());
ok(scalar(survivors()) >= 3, 'we, the keeper and the worker are there');
kill 'KILL', $run->{pid};
is(finish($run)->{status}, 'signal 9', 'killed');
wait_for('the end of the worker', sub { !survivors() });
nothing_is_left('killed');

done_testing();
