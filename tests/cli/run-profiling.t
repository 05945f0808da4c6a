#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-profiling.t - `profllm run` with a profiler: the server's options, which window is recorded,
# that traces are whole when they are counted, and what Nsight Systems is started with.
#
# The simulator replaces vLLM and writes traces of its own steps; vllm and nsys are scripts that
# record their arguments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd ();
use JSON::PP ();
use Test::More;

my $here = Cwd::getcwd();
$ENV{XDG_RUNTIME_DIR} = "$here/state";
$ENV{ASKED} = "$here/asked";
$ENV{PROGRAM} = $program;
mkdir "$here/bin";

sub script {
	my ($name, $text) = @_;
	spew("$here/bin/$name", $text);
	chmod 0755, "$here/bin/$name";
}

script('vllm', <<'END');
#!/bin/sh
if [ "$1" = --version ]; then
	echo "INFO 01-01 00:00:00 [__init__.py:1] Automatically detected platform cpu."
	echo "$VERSION"
	exit 0
fi
shift
printf '%s\n' "$@" > "$ASKED.argv"
env > "$ASKED.env"
exec "$PROGRAM" sim "$@"
END
script('nsys', <<'END');
#!/bin/sh
printf '%s\n' "$*" >> "$ASKED.nsys"
if [ "$1" = stats ]; then
	echo " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):"
	exit 0
fi
shift
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2; shift 2;;
	-*) shift;;
	*) break;;
	esac
done
"$@" &
child=$!
trap 'kill -TERM $child' TERM
(sleep 1; echo report > "$out.1.nsys-rep") > /dev/null 2>&1 &
wait $child || wait $child
END

# One experiment on a server of so many milliseconds a step; the document.
my $runs = 0;
sub experiment {
	my ($server, $profiling, %o) = @_;
	my $n = ++$runs;
	my $prompts = $o{prompts} || 4;
	my $path = $o{path} ? "$here/bin:$ENV{PATH}" : $ENV{PATH};

	spew("e$n.yaml", <<"END");
name: e$n
server: $server
benchmark: {mode: serve, dataset_name: random, random_input_len: 64, random_output_len: 16,
            num_prompts: $prompts, request_rate: @{[$o{rate} || 20]}, tokenizer: sim, model: sim}
telemetry: {enabled: false}
profiling: $profiling
END
	my $r = run(args => ['run', '--config', "e$n.yaml", '--output', "e$n.json"],
		env => { PATH => $path, %{$o{env} || {}} });
	my $d = -s "e$n.json" ? JSON::PP::decode_json(slurp("e$n.json")) : {};
	return ($r, $d, "$here/e$n.d");
}

sub events {
	my ($path) = @_;
	return @{JSON::PP::decode_json(slurp($path))->{traceEvents}};
}

subtest 'the whole main run' => sub {
	my ($r, $d, $dir) = experiment('{command: sim, trace_ms: 600}', '{enabled: true}');

	is $r->{status}, 0 or diag $r->{err};
	is $d->{status}, 'completed';
	is scalar @{$d->{profiling}{traces}}, 1, 'one trace';
	my ($trace) = @{$d->{profiling}{traces}};
	like $trace->{path}, qr,^e$runs\.d/traces/sim_\d+_1\.\d+\.pt\.trace\.json$,,
		'named from its document';
	is $d->{profiling}{trace_file_path}, $trace->{path};
	is $trace->{bytes}, -s $trace->{path}, 'its size is that of the whole file';
	my @events = events($trace->{path});
	is scalar(grep { $_->{name} eq 'request' } @events), 4, 'it has the requests of the main run';
	ok scalar(grep { $_->{name} eq 'step' && $_->{dur} > 0 } @events) >= 16, 'and steps';
	is_deeply [grep { /prompts make a trace/ } @{$d->{warnings}}], [], 'no warning of its size';
};

subtest 'a window' => sub {
	my ($r, $d) = experiment('{command: sim, decode_base_us: 30000}',
		'{enabled: true, delay_s: 0.3, duration_s: 0.3}', prompts => 30, rate => 30);

	is $r->{status}, 0 or diag $r->{err};
	my @steps = grep { $_->{name} eq 'step' } events($d->{profiling}{trace_file_path});
	my @requests = grep { $_->{name} eq 'request' } events($d->{profiling}{trace_file_path});
	ok @steps > 0, 'it has steps';
	ok @requests < 30, 'and not all requests';
	is_deeply [grep { /prompts make a trace/ } @{$d->{warnings}}], [], 'a window is small enough';
	like $r->{err} . $r->{out}, qr/Profiler started.*Profiler stopped/s;
};

subtest 'a window that load does not reach' => sub {
	my ($r, $d) = experiment('{command: sim}', '{enabled: true, delay_s: 60}');

	is $r->{status}, 0;
	is $d->{status}, 'partial', 'what was asked for did not come';
	is_deeply [@{$d->{error}}{qw(stage category reason)}],
		['collect', 'no trace', 'the profiler was not started, so there is no trace'], 'and why';
	is $d->{results}{completed_requests}, 4, 'the results stand';
	cmp_ok $d->{duration}, '<', 8, 'a trace that cannot come is not waited for';
	ok +(grep { /load ended before the profiler was due to start, after 60 s/ } @{$d->{warnings}}),
		'is said' or diag explain $d->{warnings};
	is_deeply $d->{profiling}{traces} || [], [];
};

subtest 'an old vLLM is told by its environment' => sub {
	my ($r, $d, $dir) = experiment('{model: sim}', '{enabled: true, stop_timeout_s: 90}',
		path => 1, env => { VERSION => '0.11.2' }, prompts => 21, rate => 200);

	is $r->{status}, 0 or diag $r->{err};
	like slurp('asked.env'), qr/^VLLM_TORCH_PROFILER_DIR=\Q$dir\E\/traces$/m, '0.11: the environment';
	like slurp('asked.env'), qr/^VLLM_RPC_TIMEOUT=90000$/m, 'and time to write';
	unlike slurp('asked.argv'), qr/profiler-config/, 'and no option it does not have';
	is scalar @{$d->{profiling}{traces}}, 1;
	ok +(grep { /21 prompts make a trace that is hard to open/ } @{$d->{warnings}}),
		'many prompts are warned of';
};

subtest 'what the configuration says itself' => sub {
	my ($r, $d, $dir) = experiment("{model: sim, env: {VLLM_TORCH_PROFILER_DIR: $here/mine}}",
		'{enabled: true}', path => 1, env => { VERSION => '0.14.0' });

	is $r->{status}, 0 or diag $r->{err};
	unlike slurp('asked.argv'), qr/profiler-config/, 'is not said twice';
	my ($trace) = @{$d->{profiling}{traces}};
	like $trace->{path}, qr,^e$runs\.d/traces/,, 'its trace lies beside the result, too';
	is -s $trace->{path}, $trace->{bytes};
	is scalar(my @mine = glob("$here/mine/*.json")), 1, 'and where it was asked for';
};

subtest 'Nsight Systems' => sub {
	my ($r, $d, $dir) = experiment('{model: sim}', '{enabled: true, tool: nsys}', path => 1,
		env => { VERSION => '0.14.0' });

	is $r->{status}, 0 or diag $r->{err};
	my ($profile, @stats) = split /\n/, slurp('asked.nsys');
	like $profile, qr/^profile --trace-fork-before-exec=true --cuda-graph-trace=node /;
	like $profile, qr/ --capture-range=cudaProfilerApi --capture-range-end=repeat /;
	like $profile, qr{ -o \Q$dir\E/traces/server vllm serve };
	like $profile, qr/--profiler-config \{"profiler": "cuda"\}/, 'the engine marks the range';
	like slurp('asked.env'), qr/^VLLM_WORKER_MULTIPROC_METHOD=spawn$/m;
	is_deeply \@stats,
		["stats --format table --force-export=true $dir/traces/server.1.nsys-rep"];
	is_deeply [sort map { s,.*/,,r } map { $_->{path} } @{$d->{profiling}{traces}}],
		['server.1.nsys-rep', 'server.1.nsys-rep.stats.txt'];
	like slurp("$dir/traces/server.1.nsys-rep.stats.txt"), qr/Kernel Summary/;
};

subtest 'an engine without a server' => sub {
	spew('latency.yaml', <<'END');
name: latency
server: {command: sim, model: sim, tokenizer: sim}
benchmark: {mode: latency, input_len: 16, output_len: 4, num_iters: 2, num_iters_warmup: 1}
telemetry: {enabled: false}
profiling: {enabled: true}
END
	my $r = run(args => [qw(run --config latency.yaml --output latency.json)]);
	my $d = JSON::PP::decode_json(slurp('latency.json'));

	is $r->{status}, 0 or diag $r->{err};
	ok $d->{results}{latency}, 'latency is measured without the profiler';
	is scalar @{$d->{profiling}{traces}}, 1, 'and then traced';
};

# What differs between experiments is how many requests their traces have.
sub suite {
	my ($name, $server, $profiling) = @_;
	spew("$name.yaml", <<"END");
suite: $name
restart: on-change
server: $server
benchmark: {dataset_name: random, random_input_len: 8, random_output_len: 8, tokenizer: sim, model: sim}
matrix: {benchmark.num_prompts: [2, 3, 4]}
telemetry: {enabled: false}
profiling: $profiling
END
	my $r = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json"]);
	return ($r, JSON::PP::decode_json(slurp("$name.json"))->{experiments},
		scalar(() = "$r->{out}$r->{err}" =~ /^Starting server /mg));
}

for my $mine ('', "$here/together") {
	subtest 'experiments that share a server' . ($mine ? ', in a folder of the user' : '') => sub {
		my ($r, $list, $starts) = suite($mine ? 'mine' : 'own',
			'{command: sim, model: sim, trace_ms: 300}',
			$mine ? "{enabled: true, dir: $mine}" : '{enabled: true}');

		is $r->{status}, 0 or diag $r->{err};
		is_deeply [map { $_->{status} } @$list], [('completed') x 3], 'each has its trace';
		is $starts, 1, 'of one server';
		my %seen;
		for my $n (2 .. 4) {
			my $d = $list->[$n - 2];
			my @files = glob(($mine ? 'mine' : 'own') . ".d/num_prompts=$n/traces/*");
			is scalar @files, 1, "$n requests: one file in its folder" or next;
			is_deeply [map { $_->{path} } @{$d->{profiling}{traces}}],
				[$files[0] =~ s,^\w+\.d/,,r], 'which its document names';
			is scalar(grep { $_->{name} eq 'request' } events($files[0])), $n, 'its own load';
			$seen{(stat $files[0])[1]}++;
		}
		is scalar keys %seen, 3, 'three files';
		is scalar(() = glob("$mine/*.json")), 3, 'which are in the folder of the user, too' if $mine;
	};
}

subtest 'a server that may still be writing' => sub {
	my ($r, $list, $starts) = suite('late', '{command: sim, model: sim, trace_ms: 2500}',
		'{enabled: true, stop_timeout_s: 0.3}');

	is $starts, 3, 'is not kept';
	for my $n (2 .. 4) {
		is scalar(my @files = glob "late.d/num_prompts=$n/traces/*"), 1, "$n: only its own trace";
	}
};

subtest 'failures' => sub {
	my ($r, $d) = experiment('{command: sim}', '{enabled: true, tool: nsys}',
		env => { PATH => '/nowhere' });

	isnt $r->{status}, 0;
	is $d->{status}, 'failed';
	like $d->{error}{reason}, qr/profiling\.tool: there is no nsys \(Nsight Systems\) in PATH/;

	# A server whose profiler leaves nothing.
	($r, $d) = experiment("{command: sim, profiler_config: {profiler: cuda}}",
		'{enabled: true, stop_timeout_s: 0.5}');
	is $r->{status}, 0 or diag $r->{err};
	like $r->{out}, qr,^Status: partial: the profiler left no trace in \S+/traces$,m,
		'partial: the numbers stand';
	is_deeply [$d->{status}, @{$d->{error}}{qw(stage category)}], ['partial', 'collect', 'no trace'];
	ok +(grep { /the profiler left no file in/ } @{$d->{warnings}}), 'no trace is said'
		or diag explain $d->{warnings};
	is_deeply $d->{profiling}{traces}, [];
};

stop_all();
done_testing();
