#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench startup: the caches that each start finds, how its times are evaluated, and that nothing of
# it is left, however it ends.
#
# A worker of our own records its arguments, and reports a load time that depends on them: so every
# figure is known in advance.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use List::Util qw(min);
use Test::More;

my $worker = spew('worker.pl', <<'WORKER');
use strict; use warnings; use JSON::PP; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
open(my $wire, '+<&=', $ENV{PROFLLM_WORKER_FD}) or die; binmode $wire;
sub put { my $j = encode_json($_[0]); syswrite $wire, pack('N', length $j) . $j; }
sub get { my $h = take(4); my $n = unpack 'N', $h; return decode_json(take($n)); }
sub take {
	my $b = '';
	while (length $b < $_[0]) { sysread($wire, $b, $_[0] - length $b, length $b) or exit 0 }
	return $b;
}
my ($log, $nth) = ($ENV{STARTS}, 0);
my @cold = @ENV{qw(VLLM_CACHE_ROOT TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR)};
if (open my $f, '<', $log) { $nth = () = <$f>; }
my @inside = map { defined $_ && -d $_ ? scalar(() = glob "$_/*") : -1 } @cold;
if (defined $cold[0] && -d $cold[0]) { mkdir "$cold[0]/deep"; open my $f, '>', "$cold[0]/deep/code"; }
open my $f, '>>', $log; print $f encode_json({ env => \@cold, inside => \@inside,
	one => $ENV{VLLM_ENABLE_V1_MULTIPROCESSING}, pid => $$ }), "\n"; close $f;
put({ type => 'hello', protocol => 1, engine => 'made-up', version => '1.2', features => [] });
while (1) {
	my $q = get();
	my $began = int(clock_gettime(CLOCK_MONOTONIC) * 1e9);
	if ($q->{type} eq 'load') {
		if (($ENV{FAIL_AT} // -1) == $nth) {
			put({ id => $q->{id}, type => 'error', category => 'memory',
				text => 'no room for weights' });
			next;
		}
		if (($ENV{HANG_AT} // -1) == $nth) { sleep 60 }
		sleep 0.011 * ($nth + 1);
		put({ id => $q->{id}, type => 'ok', began_ns => $began,
			ended_ns => $began + 10_000_000 * ($nth + 1), compilation_s => $nth / 4,
			$ENV{ENCODER} ? (encoder_compilation_s => $nth == 1 ? 0.5 : 0) : (),
			phases => [{ name => 'weights', s => 1 + $nth }] });
	} else { put({ id => $q->{id}, type => 'ok' }); }
	exit 0 if $q->{type} eq 'shutdown';
}
WORKER

my @mine = ('--backend', 'worker', '--worker-cmd', "$^X $worker", '--model', 'm');
my $round = 0;

# Runs it with a log of starts of its own: { run, starts => [...], json }.
sub startup {
	my ($how, @args) = @_;
	my $n = ++$round;
	mkdir "tmp$n";
	my %env = (STARTS => "starts$n", TMPDIR => "tmp$n", %{$how->{env} || {}});
	my $r = begin(args => ['bench', 'startup', @{$how->{engine} || \@mine}, '--output-json',
		"r$n.json", @args], env => \%env);
	if ($how->{while}) {
		$how->{while}->($r, "starts$n");
	}
	finish($r);
	$r->{starts} = [map { JSON::PP::decode_json($_) } split /\n/, slurp("starts$n") // ''];
	$r->{json} = -e "r$n.json" ? json_of(slurp("r$n.json")) : undef;
	$r->{file} = "r$n.json";
	opendir my $d, "tmp$n";
	$r->{left} = [grep { !/^\./ } readdir $d];
	return $r;
}

# ---- a whole run ----

{
	my $r = startup({ env => { ENCODER => 1 } }, qw(--num-iters-cold 2 --num-iters-warmup 1
		--num-iters-warm 2));
	my @s = @{$r->{starts}};
	my $j = $r->{json};

	check_run('two cold starts, one to warm up, two warm ones', $r, { status => 0, out => [
		'Setting VLLM_ENABLE_V1_MULTIPROCESSING=0 to collect startup metrics.',
		'Measuring cold startup time...', 'Warming up for warm startup measurement...',
		'Measuring warm startup time...', 'STARTUP TIME BENCHMARK RESULTS', 'COLD STARTUP:',
		'Avg encoder compilation time: 0.25 seconds', 'WARM STARTUP:',
		'Encoder compilation time percentiles:', 'Engine: made-up 1.2*',
		'Cold means empty compilation caches*'],
		warn => ['Cold startup iterations*2/2*', 'Warmup iterations*1/1*',
			'Warm startup iterations*2/2*'] });
	is_deeply([map { /^(\w+|=)/ ? $1 : $_ } (split /\n/, $r->{out}, -1)[0 .. 12]], ['Setting', '',
		'Measuring', '', '', 'Warming', '', '', 'Measuring', '', '', '=', 'STARTUP'],
		'blank lines as upstream has them');
	is(scalar @s, 5, 'five programs');
	is(scalar(keys %{{ map { $_->{pid} => 1 } @s }}), 5, 'each its own');
	is(scalar(grep { $_->{one} eq '0' } @s), 5, 'all with the engine in one process');
	for my $i (0, 1) {
		like($s[$i]{env}[0], qr{^tmp1/vllm_startup_bench_cold_\w+$}, "cold start $i: vLLM's caches");
		is_deeply([@{$s[$i]{inside}}[0, 1]], [0, 0], '... and inductor\'s are there and empty');
		is($s[$i]{env}[2], "$s[$i]{env}[1]/triton", '... Triton\'s are in inductor\'s');
	}
	isnt($s[0]{env}[0], $s[1]{env}[0], 'no two cold starts share them');
	is(scalar(grep { defined $_->{env}[0] || defined $_->{env}[1] } @s[2 .. 4]), 0,
		'the others find the usual ones');
	is_deeply($r->{left}, [], 'nothing is left of them');
	my @metrics = map { my $s = $_; map { "${s}_$_" } qw(startup compilation encoder_compilation) }
		qw(cold warm);
	is_deeply([keys_of(slurp($r->{file}))], [(map { ("avg_${_}_time", "${_}_times", "${_}_percentiles") }
		@metrics), 'profllm'], 'upstream\'s keys, in its order, then ours');
	is_deeply([map { sprintf '%.3f', $_ } @{$j->{cold_startup_times}}, @{$j->{warm_startup_times}}],
		[qw(0.010 0.020 0.040 0.050)], 'times are the engine\'s own');
	is_deeply($j->{warm_compilation_times}, [0.75, 1.0], 'and what it compiled');
	cmp_ok(abs($j->{avg_cold_startup_time} - 0.015), '<', 1e-9, 'mean');
	cmp_ok(abs($j->{warm_startup_percentiles}{75} - 0.0475), '<', 1e-9, 'percentile');
	my $own = $j->{profllm};
	is($own->{cold}{phases}{weights}{mean}, 1.5, 'mean of a phase');
	is_deeply([map { $_->{phases}{weights} } @{$own->{warm}{iterations}}], [4, 5],
		'phases of each start');
	is($own->{warmup}{iterations}[0]{startup_s}, 0.03, 'the warm-up is told beside');
	cmp_ok($own->{cold}{iterations}[0]{ready_s}, '>', $own->{cold}{iterations}[0]{spawn_s},
		'it can be asked after its first word');
	is($own->{engine}{name}, 'made-up', 'which engine');
}

# ---- none of a kind ----

{
	my $r = startup({}, qw(--num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 1));

	check_run('no cold starts', $r, { status => 0, warn => ['WARNING: --num-iters-cold 0*',
		'WARNING: --num-iters-warmup 0*'] });
	is(scalar @{$r->{starts}}, 1, 'one start');
	is_deeply([grep { /cold/ } keys %{$r->{json}}], [], 'no keys of them, and no NaN');
}
{
	my $r = startup({}, qw(--num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 0));

	check_run('no starts at all', $r, { status => 2, err => '*there is nothing to start' });
	is(scalar @{$r->{starts}}, 0, '... start nothing');
}
for my $row ([[], '3 cold, 1 for warm-up, 3 warm'],
	[[qw(--compat v0.11)], '5 cold, 3 for warm-up, 5 warm'],
	[[qw(--compat v0.11 --num_iters_warm 2)], '5 cold, 3 for warm-up, 2 warm']) {
	my $r = run(args => ['bench', 'startup', @mine, '--dry-run', @{$row->[0]}]);

	check_run("defaults: @{$row->[0]}", $r, { status => 0, out => ["Starts: $row->[1]"] });
}

# ---- failures ----

for my $row ([0, 'the first cold start'], [1, 'the warm-up'], [2, 'a warm start']) {
	my $r = startup({ env => { FAIL_AT => $row->[0] } }, qw(--num-iters-cold 1));

	check_run("$row->[1] fails", $r, { status => 1,
		warn => ['*Subprocess failed: *no room for weights*'] });
	is_deeply($r->{left}, [], '... and leaves no caches');
	is($r->{json} ? $r->{json}{profllm}{reasons}[0]{code} : undef,
		$row->[0] ? 'interrupted' : undef, '... and a file of those before it, if any');
}
{
	my $pid;
	my $r = startup({ env => { HANG_AT => 1 }, while => sub {
		my ($run, $starts) = @_;
		wait_for('the second start', sub { (() = (slurp($starts) // '') =~ /\n/g) == 2 });
		kill 'INT', $run->{pid};
	} }, qw(--num-iters-cold 2));

	is($r->{status}, 130, 'Ctrl-C in the second start');
	like($r->{out}, qr/STARTUP TIME BENCHMARK RESULTS/, '... shows the first');
	is_deeply($r->{json}{cold_startup_times}, [0.01], '... and keeps it');
	ok($r->{json}{profllm}{interrupted}, '... as interrupted');
	is_deeply($r->{left}, [], '... and leaves no caches');
	ok(!kill(0, $r->{starts}[1]{pid}), '... and no program');
}
{
	my $r = startup({ env => { HANG_AT => 1 }, while => sub {
		my ($run, $starts) = @_;
		wait_for('the second start', sub { (() = (slurp($starts) // '') =~ /\n/g) == 2 });
		kill 'INT', $run->{pid};
	} }, qw(--num-iters-cold 2 --output-json /dev/full));

	is($r->{status}, 130, 'Ctrl-C and a full disk');
	like($r->{err}, qr{cannot write /dev/full}, '... are both said');
}
{
	my $r = run(args => ['bench', 'startup', '--backend', 'http', '--base-url', 'http://localhost:1',
		'--model', 'm']);

	check_run('a server that runs cannot be started', $r, { status => 2, warn => ['*--base-url*'] });
	$r = run(args => ['bench', 'startup', @mine, '--num-iters-cold', '-1']);
	check_run('a negative number', $r, { status => 2, warn => ['*--num-iters-cold*'] });
	$r = run(args => ['bench', 'startup', @mine, '--output-json', '/proc/none.json']);
	check_run('a file that cannot be written is refused before', $r, { status => 1,
		warn => ['*--output-json*'], not_out => ['Setting*'] });
}

# ---- further files ----

{
	my $r = startup({ env => { SAVE_TO_PYTORCH_BENCHMARK_FORMAT => 1 } }, qw(--num-iters-cold 1
		--num-iters-warmup 0 --num-iters-warm 1));
	my ($base) = $r->{file} =~ /(.*)\.json/;
	my @files = map { my $s = $_; map { "$base.${s}_$_.pytorch.json" } qw(startup compilation) }
		qw(cold warm);
	my $record = json_of(slurp($files[0]) // '[]')->[0];

	is_deeply([sort glob "$base.*.pytorch.json"], [sort @files], 'a PyTorch file for each metric');
	is($record->{metric}{name}, 'avg_cold_startup_time', 'its metric');
	is_deeply($record->{metric}{benchmark_values}, [$r->{json}{avg_cold_startup_time}], 'its value');
	is_deeply([sort keys %{$record->{metric}{extra_info}}], ['cold_startup_percentiles',
		'cold_startup_times'], 'and what goes with it');
}

# ---- page cache ----

{
	mkdir 'model';
	spew('model/weights.bin', 'x' x 100_000);
	my $r = startup({ engine => [@mine[0 .. 3], '--model', 'model'] },
		qw(--num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 1 --drop-page-cache));
	my $it = $r->{json}{profllm}{cold}{iterations}[0];

	check_run('model files out of the page cache', $r, { status => 0,
		out => ['*out of the page cache*'] });
	cmp_ok($it->{page_cache_dropped_bytes} + $it->{page_cache_left_bytes}, '<=', 100_000,
		'no more than there is');
	ok(!exists $r->{json}{profllm}{warm}{iterations}[0]{page_cache_dropped_bytes}, 'cold starts only');
	$r = startup({}, '--drop-page-cache');
	check_run('a model that is nowhere', $r, { status => 1, warn => ['*--drop-page-cache: m *'] });
}

# ---- the simulated engine, and a server ----

{
	# Long enough for a busy machine: 0.3 s of compiling, or 0.05 s with a cache.
	my $r = startup({ engine => [qw(--backend sim --model sim --startup-scale 0.02)] },
		qw(--num-iters-cold 2 --num-iters-warmup 1 --num-iters-warm 2));
	my ($cold, $warm) = map { min(@{$r->{json}{"${_}_compilation_times"}}) } qw(cold warm);

	is($r->{status}, 0, 'the simulated engine');
	is($r->{json}{profllm}{method}, 'simulated', '... says what it is');
	cmp_ok($cold, '>', $warm, '... compiles when its caches are empty');
	is_deeply($r->{left}, [], '... and leaves nothing');
}
{
	my $r = startup({ engine => ['--backend', 'http', '--server-cmd', "$program sim", '--model', 'sim'] },
		qw(--num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 1));

	is($r->{status}, 0, 'a server');
	is($r->{json}{profllm}{method}, 'managed server', '... is named as one');
	is($r->{json}{avg_cold_startup_time}, $r->{json}{profllm}{cold}{iterations}[0]{ready_s},
		'... and counts from its start to its first answer');
	unlike($r->{out}, qr/VLLM_ENABLE_V1_MULTIPROCESSING/, '... which has processes of its own');
	is_deeply($r->{left}, [], '... and leaves nothing');
}

# ---- a sweep of starts ----

{
	spew('se.json', '[{"max_model_len": 512}, {"max_model_len": 1024, "port": 99}]');
	spew('st.json', '[{"num_iters_cold": 1, "backend": "sim", "num_iters_warm": 1}]');
	my $r = run(args => ['bench', 'sweep', 'startup', '--startup-cmd',
		"$program bench startup --model sim --num-iters-warmup 0", '--serve-params', 'se.json',
		'--startup-params', 'st.json', '-e', 'starts', '--num-runs', 2]);
	my @files = glob 'results/starts/*/summary.json';

	check_run('bench sweep startup with ours', $r, { status => 0,
		out => ['Ignoring unsupported startup params for *: port'] });
	unlike($r->{out}, qr/: backend/, 'our options are not dropped');
	like($r->{out}, qr/^Point +Cold start\(s\) .* Warm start\(s\) .*\nmax_model_len=512 run=0 +\d/m,
		'the sweep ends with its times');
	my ($short, $long) = map { "results/starts/SERVE--max_model_len=$_-STARTUP--num_iters_cold=1" .
		'-backend=sim-num_iters_warm=1' } 512, 1024;
	my $c = run(args => ['bench', 'compare', $short, $long]);
	check_run('starts of two settings are compared', $c, { status => 0,
		out => ['*max_model_len*', 'avg_cold_startup_time * 2 : 2 *'] });
	spew('twice.json', '[{"port": 1}, {"port": 2}]');
	$r = run(args => ['bench', 'sweep', 'startup', '--startup-cmd', "$program bench startup --model sim",
		'--serve-params', 'twice.json', '-e', 'twice', '--dry-run']);
	check_run('nothing is left of two combinations', $r, { status => 0,
		warn => ['*differ in no option that the command has, so they are measured as one'] });
	is(() = $r->{out} =~ /BEGIN BENCHMARK/g, 1, 'which is measured once');
	is(scalar @files, 2, 'two combinations');
	is_deeply([sort { $a <=> $b } map { json_of(slurp($_))->[0]{max_model_len} } @files], [512, 1024],
		'each with its own');
	$r = run(args => ['bench', 'sweep', 'startup', '--startup-cmd', 'vllm bench startup',
		'--serve-params', 'se.json', '--startup-params', 'st.json', '-e', 'theirs', '--dry-run']);
	check_run('upstream\'s command has no --backend', $r, { status => 0,
		out => ['Ignoring unsupported startup params for *: backend'] });
}

done_testing();
