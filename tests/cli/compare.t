#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench compare and bench markdown from outside: formats, exit statuses, files, messages.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

my $json = JSON::PP->new->canonical;

# Noise that is the same everywhere: a few per mille around the value.
sub result {
	my ($value, $run, %more) = @_;
	my $v = $value * (1 + (($run * 7) % 5 - 2) / 500);

	return {
		date => "20260101-00000$run", backend => 'openai', model_id => 'm',
		request_rate => 'inf', max_concurrency => 8, completed => 100, failed => 0,
		total_input_tokens => 1000, total_output_tokens => 2000,
		request_throughput => $v / 10, output_throughput => $v,
		median_ttft_ms => 50000 / $v, p99_ttft_ms => 100000 / $v,
		median_tpot_ms => 10000 / $v, p99_tpot_ms => 20000 / $v, %more,
	};
}

sub side {
	my ($dir, $value, $runs, %more) = @_;

	mkdir $dir;
	spew("$dir/run$_.json", $json->encode(result($value, $_, %more))) for 0 .. $runs - 1;
}

side('base', 1000, 5);
side('same', 1001, 5);
side('slow', 900, 5, max_num_seqs => 16);
side('few', 900, 3);
side('other', 900, 2, model_id => 'n');
spew('none.json', '{"a": 1}');
spew('broken.json', '{"a": ');

sub status_is {
	my ($what, $want, $message, @args) = @_;
	my $r = run(args => ['bench', 'compare', @args]);

	is($r->{status}, $want, "$what: exit $want") or diag($r->{out}, $r->{err});
	like($r->{err}, $message, "$what: says why") if $message;
	return $r;
}

# ---- texts ----

is_golden(status_is('a slower side', 0, undef, 'base', 'slow')->{out}, 'compare.txt');
is_golden(status_is('three sides', 0, undef, qw(base same slow --format markdown --metrics),
	'output_throughput,p99_ttft_ms')->{out}, 'compare.md');
is_golden(status_is('too few runs', 0, undef, qw(base few --metrics output_throughput))->{out},
	'compare-few.txt');

my $r = status_is('JSON', 0, undef, qw(base slow --format json));
my $c = eval { $json->decode($r->{out}) };
is(scalar @{$c->{points}}, 1, 'JSON: one point');
my ($tput) = grep { $_->{metric} eq 'output_throughput' } @{$c->{points}[0]{metrics}};
is($tput->{verdict}, 'regression', 'JSON: verdict');
ok(abs($tput->{delta} + 0.1) < 1e-9, 'JSON: change');
ok($tput->{p_mann_whitney} > 0.007 && $tput->{p_mann_whitney} < 0.009, 'JSON: 2 of 252');
ok($tput->{delta_low} < -0.1 && -0.1 < $tput->{delta_high}, 'JSON: interval holds the change');
is_deeply($c->{sides}[1]{parameters}, { max_num_seqs => '16' }, 'JSON: what differs, nothing else');

$r = status_is('CSV', 0, undef, qw(base slow --format csv --metrics output_throughput));
is(scalar(split /\n/, $r->{out}), 2, 'CSV: heads and a row');
like($r->{out}, qr/^,output_throughput,tokens\/s,base,slow,1000\.0,900\.0,-0\.\d+,.*,5,5,regression$/m,
	'CSV: the row');

$r = status_is('HTML', 0, undef, qw(base slow --output page.html));
is($r->{out}, '', 'HTML: nothing on stdout');
my $page = slurp('page.html');
like($page, qr/^<!doctype html>.*<svg.*regression.*<\/html>\n\z/s, 'HTML: a page with a drawing');
unlike($page, qr/(src|href|url)\s*[=(]|https?:|\@import|<script/i, 'HTML: nothing from elsewhere');

# ---- gates ----

status_is('a condition that is met', 3,
	qr{^FAILED: output_throughput fell by 10 % \(limit 5 %\): 1000 tokens/s, then 900 tokens/s
failed: 1 of 1 condition\n\z},
	'--fail-if', 'output_throughput<-5%', 'base', 'slow');
status_is('one that is not', 0, qr/^passed: 1 condition\n\z/, 'base', 'slow', '--fail-if',
	'output_throughput<-15%');
status_is('the second of two', 3,
	qr/^FAILED: p99_ttft_ms rose by 11\.\d+ % \(limit 5 %\).*\nfailed: 1 of 2 conditions$/m,
	'--fail-if=output_throughput<-15%',
	'--fail-if', 'p99_ttft_ms>+5%', 'base', 'slow');
status_is('a limit on the value', 3,
	qr/^FAILED: output_throughput is 900 tokens\/s \(limit 950 tokens\/s\)$/m, 'base', 'slow',
	'--fail-if',
	'output_throughput<950');
status_is('no evidence', 0, qr/^passed: 1 condition\n\z/, 'base', 'same', '--fail-if',
	'output_throughput>+0.01%');
status_is('none wanted', 3, qr/^FAILED: output_throughput rose by/m, 'base', 'same', '--fail-if',
	'output_throughput>+0.01%',
	'--fail-if-any');
my @gate = ('--fail-if', 'p99_ttft_ms>+5%');
status_is('too few to judge', 3,
	qr/^NOT JUDGED: output_throughput<-5%: not enough data \(5 against 3 values, 4 needed\)
failed: 1 condition could not be judged/,
	'base', 'few', '--fail-if', 'output_throughput<-5%');
status_is('too few, allowed', 0, qr/^passed: 0 conditions, 1 could not be judged$/m, 'base', 'few',
	'--allow-unjudged', '--fail-if',
	'output_throughput<-5%');
my $same = qr/^NOT JUDGED: p99_ttft_ms>\+5%: both sides are the same runs$/m;
status_is('a file with itself', 3, $same, 'base/run0.json', 'base/run0.json', @gate);
status_is('a folder with itself', 3, $same, 'base', 'base', @gate);
status_is('the same, allowed', 0, $same, 'base', 'base', '--allow-unjudged', @gate);
like(status_is('the same without a gate', 0, undef, 'base', 'base')->{out},
	qr/: the same runs as the baseline$/m, 'the same without a gate: a note says so');
status_is('the same, by value', 0, qr/^passed: 1 condition\n\z/, 'base', 'base', '--fail-if',
	'p99_ttft_ms>500');

# Half of the requests fail and the others are faster.
side('shedding', 1700, 5, completed => 50, failed => 50, total_input_tokens => 500,
	total_output_tokens => 1000);
side('shorter', 1700, 5, total_output_tokens => 500);
my $risen = qr/^FAILED: failed requests rose from 0\.0 % to 50\.0 %$/m;
status_is('failures of a faster side', 3, $risen, 'base', 'shedding', @gate);
status_is('failures, medians alone', 3, $risen, 'base', 'shedding', '--fail-if-any', @gate);
status_is('failures, unjudged allowed', 3, $risen, 'base', 'shedding', '--allow-unjudged', @gate);
status_is('failures, allowed', 0, qr/^passed: 1 condition\n\z/, 'base', 'shedding', '--allow-failures',
	@gate);
status_is('failures without a gate', 0, qr/^\z/, 'base', 'shedding');
status_is('other work', 3, qr/^NOT JUDGED: p99_ttft_ms>\+5%: other work was done: output tokens /m,
	'base', 'shorter', @gate);
status_is('other work, allowed', 0, qr/could not be judged/, 'base', 'shorter', '--allow-unjudged', @gate);
status_is('other work, but slower', 3, qr/^FAILED: p99_ttft_ms rose by/, 'shorter', 'base', @gate);
status_is('other work, by value', 0, qr/^passed: 1 condition\n\z/, 'base', 'shorter', '--fail-if',
	'p99_ttft_ms>500');

side('two', 1000, 5);
spew("two/more$_.json", $json->encode(result(900, $_, max_concurrency => 16))) for 0 .. 4;
side('one', 1001, 5);
status_is('a point that was not measured', 3,
	qr/^NOT JUDGED: p99_ttft_ms>\+5% in one at max_concurrency=16: only the baseline has it$/m, 'two',
		'one', @gate);

side('broken', 1e308, 5);
my $wide = status_is('numbers of a broken file', 0, undef, 'base', 'broken')->{out};
like($wide, qr/^output_throughput +1000\.0 +1e\+308 /m, 'numbers of a broken file: short');
is(scalar(grep { length > 140 } split /\n/, $wide), 0, 'numbers of a broken file: no line is wider than 140');

# ---- gates on one operand ----

my @limit = ('--fail-if', 'output_throughput<950');
status_is('one run that passes', 0, qr/^passed: 1 condition\n\z/, 'base/run0.json', @limit);
status_is('one run that is slower', 3,
	qr{^FAILED: output_throughput is 896\.4 tokens/s \(limit 950 tokens/s\)
failed: 1 of 1 condition\n\z},
	'slow/run0.json', @limit);
status_is('a folder, run by run', 3,
	qr/^(FAILED: .* in slow\/run\d\.json\n){5}failed: 5 of 5 checks of 1 condition$/m,
	'slow', @limit);
status_is('failed requests', 3, qr/^FAILED: 50 % of the requests failed \(limit 1 %/m, 'shedding/run0.json',
	@limit);
status_is('failed requests, on purpose', 0, qr/^passed: 2 conditions$/m, 'shedding/run0.json', @limit,
	'--fail-if', 'failed>60');
status_is('a change of one', 2, qr/--fail-if 'output_throughput<-5%': a change needs a baseline/, 'base',
	'--fail-if', 'output_throughput<-5%');
status_is('what it does not have', 3,
	qr/^NOT JUDGED: p95_ttft_ms>1: the result has no value of p95_ttft_ms$/m,
	'base/run0.json', '--fail-if', 'p95_ttft_ms>1');
status_is('a table of one', 2, qr/--format: base has nothing to be compared with/, 'base', @limit,
	'--format', 'json');
my $reason = { level => 'INVALID', code => 'shared_reads', spoils => ['itl', 'tpot'], text => 'Late reads.' };
side('invalid', 1000, 1, profllm => { verdict => 'INVALID', reasons => [$reason] });
for my $limit (1, 1000) { # on either side of the value
	status_is("INVALID with the limit $limit", 3,
		qr/^NOT JUDGED: p99_tpot_ms>$limit: p99_tpot_ms is INVALID in this run: Late reads\.$/m,
		'invalid', '--fail-if', "p99_tpot_ms>$limit");
}
status_is('INVALID, allowed', 0, qr/could not be judged$/m, 'invalid', '--allow-unjudged', '--fail-if',
	'p99_tpot_ms>1');
status_is('what is valid in it', 0, qr/^passed: 1 condition$/m, 'invalid', @limit);

status_is('files for CI', 3, undef, 'slow/run0.json', @limit, '--fail-if', 'p99_ttft_ms>500', '--junit',
	'j.xml', '--summary', 's.md');
like(slurp('j.xml'), qr/^<testsuite name="bench compare" tests="2" failures="1" errors="0" skipped="0">$/m,
	'JUnit: the counts');
like(slurp('j.xml'), qr/name="output_throughput&lt;950">\s+<failure message="output_throughput is 896/,
	'JUnit: a failed condition');
like(slurp('s.md'),
	qr/^failed: 1 of 2 conditions\n\n\| Condition .*\n.*\n\| `output_throughput<950` \| failed /m,
	'the summary');
status_is('a file without conditions', 2, qr/--junit: there is no condition to report on; add --fail-if/,
	'base', 'slow', '--junit', 'none.xml');
ok(!-e 'none.xml', 'is not written');

# ---- mistakes ----

is_golden(run(args => [qw(bench compare --help)])->{out}, 'help-compare.txt');
is_golden(run(args => [qw(bench markdown --help)])->{out}, 'help-markdown.txt');

status_is('nothing named', 2, qr/no result is named/);
status_is('a baseline alone', 2, qr/at least one other result/, 'base');
status_is('not there', 1, qr/absent\.json does not exist/, 'base', 'absent.json');
status_is('no result', 1, qr/none\.json holds no result/, 'base', 'none.json');
status_is('not JSON', 1, qr/broken\.json/, 'base', 'broken.json');
status_is('models', 1, qr/is of model 'm'.*of 'n'; --across-models/, 'base', 'other');
status_is('models on purpose', 0, undef, 'base', 'other', '--across-models');
status_is('a gate without number', 2, qr/--fail-if: 'x>' has no number after >/, 'base', 'slow',
	'--fail-if', 'x>');
status_is('a gate on nothing', 2, qr/--fail-if: no run has a number called 'p99_nothing'/, 'base',
	'slow', '--fail-if', 'p99_nothing>1');

# ---- scaling ----

side('tp1', 1000, 1, tensor_parallel_size => 1);
side('tp4', 3200, 1, tensor_parallel_size => 4);
like(status_is('scaling', 0, undef, qw(tp1 tp4 --scaling))->{out}, qr/4 +3187\.\d +796\.\d+ +3\.200 +80\.0%/,
	'scaling: speed-up and efficiency per GPU');

# ---- the dashboard's tables ----

sub dashboard {
	my ($dir, @rows) = @_;

	mkdir $dir;
	spew("$dir/benchmark_results.json", $json->encode([map { {
		'Test name' => "serving_c$_->[1]", Model => 'org/m', 'Dataset Name' => 'random',
		'Input Len' => 128, 'Output Len' => 64, 'TP Size' => $_->[0], 'PP Size' => 1,
		'# of max concurrency.' => $_->[1], qps => 'inf', 'Output Tput (tok/s)' => $_->[2],
		'P99 TTFT (ms)' => $_->[3], P99 => $_->[4],
	} } @rows]));
}

# At 16 TPOT fails, at 32 it passes again: the highest passing level is not the valid one.
dashboard('da', [1, 8, 100, 500, 50], [1, 16, 200, 900, 120], [1, 32, 300, 3100, 90],
	[1, 64, 320, 4000, 95]);
dashboard('db', [1, 8, 110, 400, 40], [1, 16, 210, 800, 60], [1, 32, 330, 2000, 80]);
$r = status_is('tables', 0, undef, '-f', 'da/benchmark_results.json', '-f',
	'db/benchmark_results.json', qw(--csv-out-dir csv --html-out-dir pages));
is_golden($r->{out}, 'compare-tables.txt');
is_deeply([sort map { s/^csv\///r } glob 'csv/*'],
	[map { "m_128x64__$_.csv" } qw(Output_Tput__tok_s_ P99 P99_TTFT__ms_ Valid_Max_Concurrency_Summary)],
	'tables: CSV files by upstream\'s names');
like(slurp('csv/m_128x64__P99.csv'), qr/^org\/m,random,128,64,8,inf,50\.0,40\.0,1\.25$/m,
	'tables: above 1 is better');
like(slurp('csv/m_128x64__Valid_Max_Concurrency_Summary.csv'),
	qr/^da,32\.0,64\.0,32\.0,300\.0,3100\.0,90\.0,16\.0,8\.0,100\.0$/m,
	'tables: upstream\'s maximum, the first failure, and the level below it');
ok(-s 'pages/perf_comparison.html' && -s 'pages/perf_comparison_org-m_random_128_64.html',
	'tables: the page and a group\'s');
unlike(slurp('pages/perf_comparison.html'), qr/https?:|<script/, 'tables: nothing from elsewhere');

dashboard('dc', [1, 8, 100, 500, 50], [2, 8, 180, 300, 30]);
$r = status_is('one file', 0, undef, 'dc/benchmark_results.json', '--html-out-dir', 'split');
like($r->{out}, qr/^Saved: split\/splits\/tp1_pp1\/benchmark_results\.json$/m, 'one file: is split');
like($r->{out}, qr/8 +inf +100\.00 +180\.00 +1\.80/, 'one file: its parts are compared');
status_is('an odd axis', 2, qr/--xaxis: no column 'odd'/, '-x', 'odd', '-f', 'da/benchmark_results.json',
	'-f', 'db/benchmark_results.json');
status_is('a spreadsheet', 2, qr/--excel-out x\.xlsx: spreadsheets are not written; use --csv-out-dir DIR, /,
	'-f', 'da/benchmark_results.json', '-f', 'db/benchmark_results.json', qw(--excel-out x.xlsx));
status_is('tables of results', 0, undef, qw(base slow --tables --html-out-dir results-tables));

# ---- bench markdown ----

mkdir 'md';
spew('md/serving_x.json', $json->encode(result(1000, 0)));
spew('md/serving_x.commands', $json->encode({
	server_command => 'vllm serve m --tensor-parallel-size 2 --dtype=bfloat16',
	client_command => 'vllm bench serve --dataset-name random --random-input-len 128 '
		. '--metadata a=b c=d --request-rate 4.5', gpu_type => "A100\nA100" }));
spew('md/serving_y.json', $json->encode(result(1000, 0)));
spew('md/throughput_z.json', $json->encode({ elapsed_time => 10.5, num_requests => 200,
	total_num_tokens => 12345, requests_per_second => 19.1, tokens_per_second => 1188.25 }));
spew('md/throughput_z.commands', $json->encode({ gpu_type => 'H100' }));
spew('md/notes.json', '{}');
$r = run(args => [qw(bench markdown -r md)]);
is($r->{status}, 0, 'markdown: exit 0') or diag($r->{err});
like($r->{out}, qr/^Skipping md\/notes\.json$/m, 'markdown: what is no test is skipped');
like($r->{out}, qr/serving_y\.commands/, 'markdown: a test without its commands is named');
my $tables = slurp('md/benchmark_results.md');
like($tables, qr/^\| serving_x +\| m +\| random +\| +128 \| +2 \| bfloat16 \| 2xA100 \| +100 \| +4\.5 \|/m,
	'markdown: columns from the commands');
like($tables, qr/^\| throughput_z \| 1xH100 \| +200 \| +12345 \| +10\.5 \| +19\.1 \| +1188\.25 \|$/m,
	'markdown: throughput');
my $records = eval { $json->decode(slurp('md/benchmark_results.json')) } || [];
is_deeply([map { $_->{'Test name'} } @$records], [qw(throughput_z serving_x)],
	'markdown: records, throughput first');
is($records->[1]{'# of max concurrency.'}, 8, 'markdown: records have display names');
status_is('its records', 0, undef, '-f', 'md/benchmark_results.json', '-f', 'da/benchmark_results.json',
	'--html-out-dir', 'from-md');
$r = run(args => [qw(bench markdown -r nowhere)]);
is($r->{status}, 1, 'markdown: no folder');
like($r->{err}, qr/results folder does not exist: nowhere/, 'markdown: upstream\'s sentence');

# ---- results of this program, and a sweep ----

mkdir 'ours';
my $port = start_sim()->{port};
for my $i (0, 1) {
	$r = run(args => ['bench', 'serve', @{$tiny{model}}, @{$tiny{load}}, '--port', $port,
		'--save-result', '--result-dir', 'ours', '--result-filename', "r$i.json"]);
	is($r->{status}, 0, 'a run to compare') or diag($r->{err});
}
$r = status_is('our own results', 0, undef, 'ours/r0.json', 'ours/r1.json');
like($r->{out}, qr/1 point, \d+ metrics: not enough data \d+/, 'our own results: pair as one point');
$r = run(args => [qw(bench markdown -r ours)]);
is($r->{status}, 0, 'our own results need no .commands');
like(slurp('ours/benchmark_results.md'), qr/^\| r0 +\| sim .*\n\| r1 +\| sim /m, 'they are in the table');

# ---- what the servers were started with ----

for my $seqs (4, 32) {
	my @runs = map { result(1000, $_, profllm => { start_ns => 1767225700000000000 + $_ }) } 0 .. 1;

	mkdir "served$seqs";
	spew("served$seqs/summary.json", $json->encode(\@runs));
	spew("served$seqs/servers.json", $json->encode([{ started => '2026-01-01T00:00:00Z',
		serve_overrides => { max_model_len => 10 * $seqs }, command => [qw(vllm serve m --port),
		8000 + $seqs, '--max-num-seqs', "$seqs", '--max-model-len', 10 * $seqs . ''] }]));
}
my $served = run(args => [qw(bench compare served4 served32 --metrics output_throughput)]);
like($served->{out}, qr/^note: served32: its server was .* than served4's: max-num-seqs: 4 -> 32$/m,
	'servers: arguments that are no parameters of the runs, without the address');

done_testing();
