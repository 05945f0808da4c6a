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
	my $slow = $v ? 1 / $v : 0;

	return {
		date => "20260101-00000$run", backend => 'openai', model_id => 'm',
		request_rate => 'inf', max_concurrency => 8, completed => 100, failed => 0,
		total_input_tokens => 1000, total_output_tokens => 2000,
		request_throughput => $v / 10, output_throughput => $v,
		median_ttft_ms => 50000 * $slow, p99_ttft_ms => 100000 * $slow,
		median_tpot_ms => 10000 * $slow, p99_tpot_ms => 20000 * $slow, %more,
	};
}

# A sweep's folder whose runs had a server each, as --restart run leaves it.
sub runs {
	my ($dir, @runs) = @_;

	mkdir $dir;
	$runs[$_]{profllm}{start_ns} = 1767225700000000000 + $_ * 1000000000 for 0 .. $#runs;
	spew("$dir/summary.json", $json->encode(\@runs));
	spew("$dir/servers.json",
		$json->encode([map { { start_ns => $_->{profllm}{start_ns} - 1000 } } @runs]));
}

sub side {
	my ($dir, $value, $runs, %more) = @_;

	runs($dir, map { result($value, $_, %more) } 0 .. $runs - 1);
}

side('base', 1000, 5);
side('same', 1001, 5);
side('slow', 900, 5, max_num_seqs => 16);
side('few', 900, 1);
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
is(scalar @{$c->{comparisons}}, 1, 'JSON: one comparison');
is($c->{comparisons}[0]{matched}, 1, 'JSON: one configuration');
my ($tput) = grep { $_->{metric} eq 'output_throughput' } @{$c->{comparisons}[0]{metrics}};
is($tput->{verdict}, 'worse', 'JSON: verdict');
ok(abs($tput->{effect} + 0.1) < 1e-9, 'JSON: change');
is_deeply($tput->{sessions}, [5, 5], 'JSON: sessions');
ok($tput->{interval}[0] < -0.1 && -0.1 < $tput->{interval}[1], 'JSON: interval holds the change');
is_deeply($c->{sides}[1]{parameters}, { max_num_seqs => '16' }, 'JSON: what differs, nothing else');

$r = status_is('CSV', 0, undef, qw(base slow --format csv --metrics output_throughput));
is(scalar(split /\n/, $r->{out}), 2, 'CSV: heads and a row');
like($r->{out}, qr/^output_throughput,tokens\/s,base,slow,,999\.9\d*,899\.9\d*,-0\.\d+,.*,1,5,5,5,5,worse$/m,
	'CSV: the row');

$r = status_is('HTML', 0, undef, qw(base slow --output page.html));
is($r->{out}, '', 'HTML: nothing on stdout');
my $page = slurp('page.html');
like($page, qr/^<!doctype html>.*worse by at least 3 %.*<svg.*<\/html>\n\z/s, 'HTML: a page with a drawing');
unlike($page, qr/(src|href|url)\s*[=(]|https?:|\@import|<script/i, 'HTML: nothing from elsewhere');

like($page, qr{>-20 %</text>.*>-10 %</text>.*>0 %</text>.*>\+10 %</text>}s,
	'HTML: round marks, 0 without a sign');

# Long names are shown by what differs between them; the table of sides has both forms.
my @long = map { "a-folder-of-some-release-candidate-$_-h100-80gb-tp4" } '0.12.0', '0.13.0';
side($long[0], 1000, 5);
side($long[1], 900, 5);
$page = status_is('long names', 0, undef, @long, '--format', 'html')->{out};
like($page, qr{<h2>0\.13\.0 against 0\.12\.0</h2>}, 'long names: a short heading');
like($page, qr{<td>0\.13\.0: \Q$long[1]\E</td>}, 'long names: whole ones in the table of sides');
like($page, qr{<th[^>]*>0\.12\.0</th><th[^>]*>0\.13\.0</th>}, 'long names: short heads of columns');

# ---- many configurations, one run each ----

# 12 servers of 8 loads: factors of 96 between configurations, 1 % of noise.
sub grid {
	my ($dir, $change, $seed) = @_;
	my $noise = sub { $seed = ($seed * 16807) % 2147483647; return $seed / 2147483647 - 0.5 };

	mkdir $dir;
	for my $i (0 .. 95) {
		my $value = 100 * (1 + $i % 8) * (1 + int($i / 8)) * (1 + $change)
			* (1 + 0.035 * $noise->());

		spew("$dir/$i.json", $json->encode(result($value, 2, max_concurrency => 2 ** ($i % 8),
			tensor_parallel_size => 1 + int($i / 8), version => $dir)));
	}
}

grid('v1', 0, 11);
grid('v2', 0.075, 12);
grid('v3', 0, 13);
my @tput = qw(--metrics output_throughput);
$r = status_is('96 of 96', 0, undef, qw(v1 v2), @tput);
like($r->{out}, qr/^output_throughput .* 96 : 0 +96 : 96 +better by at least 3 %$/m, '96 of 96: better');
like($r->{out}, qr/^note: output_throughput: better .*higher in 96 of 96 configurations/m,
	'96 of 96: in a sentence');
like($r->{out}, qr/^and 84 more\n.*^max_concurrency=128 .* 12\n/ms, '96 of 96: by configuration and load');
like(status_is('96, swapped', 0, undef, qw(v2 v1), @tput)->{out},
	qr/ worse by at least 3 %$/m, '96, swapped: worse');
like(status_is('96, no change', 0, undef, qw(v1 v3), @tput)->{out},
	qr/^output_throughput .* no change above 3 %$/m, '96, no change: none above 3 %');
is(scalar(split /\n/, status_is('96 as CSV', 0, undef, qw(v1 v2 --format csv), @tput)->{out}), 98,
	'96 as CSV: heads, all, and each');
unlink 'v2/95.json';
like(status_is('95 of 96', 0, undef, qw(v1 v2), @tput)->{out},
	qr/^note: 1 configuration of v1 without a counterpart in v2: max_concurrency=128 tensor\S+=12$/m,
	'95 of 96: the other one is listed');

# ---- nothing to conclude from ----

mkdir 'loose';
spew("loose/$_.json", $json->encode(result(900, $_))) for 0 .. 4;
$r = status_is('loose files', 0, undef, 'base', 'loose', @tput);
like($r->{out}, qr/ not enough data$/m, 'loose files: may be of one server');
like($r->{out}, qr/^note: .* --assume-independent counts it/m, 'loose files: what the user may know');
like(status_is('loose files, many servers', 0, undef, qw(base loose --assume-independent), @tput)->{out},
	qr/ worse by at least 3 %$/m, 'loose files, many servers: worse');
like(status_is('one run a side', 0, undef, 'loose/0.json', 'few', @tput)->{out},
	qr/not enough data.* are needed if sessions scatter by 2\.5 %/, 'one run a side: how many would do');

runs('wild', map { result(400 * 8 ** $_, $_) } 0 .. 2);
runs('wilder', map { result(300 * 9 ** $_, $_) } 0 .. 2);
like(status_is('too much scatter', 0, undef, qw(wild wilder))->{out},
	qr/ over 1,000 sessions +not enough data$/m, 'too much scatter: no number will do');

my $same = qr/^profllm bench compare: \S+ and \S+ are the same runs$/m;
status_is('a file with itself', 2, $same, 'loose/0.json', 'loose/0.json');
status_is('a folder with itself', 2, $same, 'base', 'base');
status_is('a part of it', 2, qr/every run of 0\.json is also a run of loose/, 'loose', 'loose/0.json');
side('busier', 1000, 5, max_concurrency => 16);
status_is('another load', 2,
	qr/ \(1 against 1\): they differ in max_concurrency \(8 against 16\); --ignore max_\w+ compares/,
	'base', 'busier');
status_is('another load on purpose', 0, undef, qw(base busier --ignore max_concurrency));
runs('doubted', map { result(900, $_, profllm => { verdict => 'INVALID' }) } 0 .. 4);
status_is('all INVALID', 2, qr/every run of doubted that could be compared is INVALID/, 'base', 'doubted');
like(status_is('INVALID ones too', 0, undef, qw(base doubted --include-invalid), @tput)->{out},
	qr/ worse by at least 3 %$/m, 'INVALID ones too');
runs('partly', map { result(900, $_, profllm => { verdict => 'INVALID',
	verdicts => { ttft => 'INVALID', output_throughput => 'VALID' } }) } 0 .. 4);
$r = status_is('INVALID for a metric', 0, undef, qw(base partly --metrics),
	'output_throughput,p99_ttft_ms');
like($r->{out}, qr/^output_throughput .* worse by at least 3 %$/m, 'INVALID for a metric: not for another');
like($r->{out}, qr/^note: .*\(p99_ttft_ms\): it is INVALID in every run of partly/m,
	'INVALID for a metric: which');

# Every request fails: there is nothing to compare, and more runs would not help.
side('down', 0, 2, completed => 0, failed => 100);
$r = status_is('all failed', 0, undef, 'base', 'down', @tput);
like($r->{out}, qr/ not comparable$/m, 'all failed: not comparable');
like($r->{out}, qr/^note: .*: every request of down failed$/m, 'all failed: says so');
side('down2', 0, 1, completed => 0, failed => 90);
status_is('all failed on both sides', 1,
	qr/: every request of down failed, so there is nothing to compare$/m, 'down', 'down2');

# Half of the requests fail and the others are faster; or they are shorter.
side('shedding', 1700, 5, completed => 50, failed => 50, total_input_tokens => 500,
	total_output_tokens => 1000);
side('shorter', 1700, 5, total_output_tokens => 500);
for my $other (['shedding', 'failed requests: 0\.00 % against 50\.00 %', 'failed requests: 50\.00 %'],
	['shorter', 'different work: 20\.0 against 5\.0 output', 'different work: 5\.0 against 20\.0']) {
	my ($name, $there, $back) = @$other;

	for my $way (['base', $name, $there], [$name, 'base', $back]) {
		my $out = status_is("$way->[0], then $way->[1]", 0, undef, @$way[0, 1], @tput)->{out};

		like($out, qr/^output_throughput +[\d.]+ +[\d.]+ +5 : 5 +not comparable$/m,
			"$way->[0], then $way->[1]: no change is shown");
		like($out, qr/$way->[2]/, "$way->[0], then $way->[1]: why");
	}
}

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
my $few = qr/^NOT JUDGED: p99_ttft_ms>\+5%: 5 and 1 server sessions over 1 configuration are too few for /m;
status_is('too few to judge', 3, $few, 'base', 'few', @gate);
status_is('too few, allowed', 0, $few, 'base', 'few', '--allow-unjudged', @gate);
$same = qr/^NOT JUDGED: p99_ttft_ms>\+5%: \S+ and \S+ are the same runs$/m;
status_is('a file with itself, gated', 3, $same, 'loose/0.json', 'loose/0.json', @gate);
status_is('a folder with itself, gated', 3, $same, 'base', 'base', @gate);
status_is('the same, allowed', 0, $same, 'base', 'base', '--allow-unjudged', @gate);
status_is('the same, by value', 0, qr/^passed: 1 condition\n\z/, 'base', 'base', '--fail-if',
	'p99_ttft_ms>500');

my $risen = qr/^FAILED: failed requests rose from 0\.0 % to 50\.0 %$/m;
status_is('failures of a faster side', 3, $risen, 'base', 'shedding', @gate);
status_is('failures, medians alone', 3, $risen, 'base', 'shedding', '--fail-if-any', @gate);
status_is('failures, unjudged allowed', 3, $risen, 'base', 'shedding', '--allow-unjudged', @gate);
status_is('failures, allowed', 0, qr/^passed: 0 conditions, 1 could not be judged$/m, 'base', 'shedding',
	'--allow-failures', '--allow-unjudged', @gate);
status_is('failures without a gate', 0, qr/^\z/, 'base', 'shedding');
my $work = qr/^NOT JUDGED: p99_ttft_ms>\+5%: different work: .* output tokens per request$/m;
status_is('different work', 3, $work, 'base', 'shorter', @gate);
status_is('different work, allowed', 0, $work, 'base', 'shorter', '--allow-unjudged', @gate);
status_is('different work, but slower', 3, $work, 'shorter', 'base', @gate);
status_is('different work, by value', 0, qr/^passed: 1 condition\n\z/, 'base', 'shorter', '--fail-if',
	'p99_ttft_ms>500');

runs('two', (map { result(1000, $_) } 0 .. 4), map { result(900, $_, max_concurrency => 16) } 0 .. 4);
side('one', 1001, 5);
status_is('a configuration that was not measured', 3,
	qr/^NOT JUDGED: p99_ttft_ms>\+5% in one at max_concurrency=16: only the baseline has it$/m,
	'two', 'one', @gate);

# ---- gates on runs that are INVALID ----

sub doubted {
	my (@spoils) = @_;
	my $reason = { level => 'INVALID', code => 'shared_reads', text => 'Late reads.',
		spoils => \@spoils };

	return { verdict => 'INVALID', reasons => [$reason],
		verdicts => { map { $_ => 'INVALID' } @spoils } };
}
my @latencies = qw(ttft tpot itl e2el);
runs('late', map { result(1000, $_, profllm => doubted(@latencies)) } 0 .. 4);
runs('half', (map { result(1001, $_) } 0 .. 4),
	map { result(400, $_, max_concurrency => 16, profllm => doubted(@latencies)) } 0 .. 4);
my $late = qr/NOT JUDGED: p99_ttft_ms>\+5%: it is INVALID in every run of late/;
for my $sides (['base', 'late'], ['late', 'base']) {
	status_is("INVALID: @$sides", 3, qr/^$late.*\nfailed: 1 condition could not be judged/, @$sides,
		@gate);
	status_is("INVALID: @$sides, allowed", 0, qr/^$late.*\npassed: 0 conditions, 1 could not be judged$/m,
		@$sides, '--allow-unjudged', @gate);
}
status_is('INVALID, and estimates decide', 3, qr/^$late/, 'base', 'late', '--fail-if-any', @gate);
status_is('INVALID, by value', 3,
	qr/^NOT JUDGED: p99_ttft_ms>500: it is INVALID in every run of late that has it$/m,
	'base', 'late', '--fail-if', 'p99_ttft_ms>500');
status_is('INVALID, counted on purpose', 0, qr/^passed: 1 condition$/m, 'base', 'late',
	'--include-invalid', @gate);
status_is('INVALID, but not this metric', 0, qr/^passed: 1 condition$/m, 'base', 'late', '--fail-if',
	'output_throughput<-5%');
status_is('one of two further sides is INVALID', 3,
	qr/^FAILED: p99_ttft_ms rose by .* in slow
NOT JUDGED: p99_ttft_ms>\+5% in late: .*
failed: 1 of 2 checks of 1 condition, 1 could not be judged/m, 'base', 'slow', 'late', @gate);
# The other configuration passes and must not speak for this one, which is 2.3 times as slow.
my $hidden = qr/^NOT JUDGED: p99_ttft_ms>\S+ in half at max_concurrency=16: it is INVALID in every run/m;
status_is('INVALID in one configuration', 3, $hidden, 'two', 'half', @gate);
status_is('INVALID in one, by value', 3, $hidden, 'two', 'half', '--fail-if', 'p99_ttft_ms>120');
status_is('INVALID in one, allowed', 0, $hidden, 'two', 'half', '--allow-unjudged', @gate);
status_is('INVALID in one, counted', 3, qr/^FAILED: p99_ttft_ms rose by/, 'two', 'half',
	'--include-invalid', @gate);

side('broken', 1e308, 5);
my $wide = status_is('numbers of a broken file', 0, undef, 'base', 'broken')->{out};
like($wide, qr/^output_throughput +1000\.00 +9\.99996e\+307 /m, 'numbers of a broken file: short');
is(scalar(grep { !/^note/ && length > 160 } split /\n/, $wide), 0,
	'numbers of a broken file: no line of a table is wider than 160');

# ---- gates on one operand ----

spew('loose/5.json', $json->encode(result(1000, 2)));
spew('shed.json', $json->encode(result(1700, 0, completed => 50, failed => 50)));
my @limit = ('--fail-if', 'output_throughput<950');
status_is('one run that passes', 0, qr/^passed: 1 condition\n\z/, 'loose/5.json', @limit);
status_is('one run that is slower', 3,
	qr{^FAILED: output_throughput is 896\.4 tokens/s \(limit 950 tokens/s\)
failed: 1 of 1 condition\n\z},
	'loose/0.json', @limit);
status_is('a folder, run by run', 3,
	qr/^(FAILED: .* in run \d of slow\/summary\.json\n){5}failed: 5 of 5 checks of 1 condition$/m,
	'slow', @limit);
status_is('failed requests', 3, qr/^FAILED: 50 % of the requests failed \(limit 1 %/m, 'shed.json',
	@limit);
status_is('failed requests, on purpose', 0, qr/^passed: 2 conditions$/m, 'shed.json', @limit,
	'--fail-if', 'failed>60');
status_is('a change of one', 2, qr/--fail-if 'output_throughput<-5%': a change needs a baseline/, 'base',
	'--fail-if', 'output_throughput<-5%');
status_is('what it does not have', 3,
	qr/^NOT JUDGED: p95_ttft_ms>1: the result has no value of p95_ttft_ms$/m,
	'loose/5.json', '--fail-if', 'p95_ttft_ms>1');
status_is('a key that nobody has', 2,
	qr/--fail-if: 'p99_tftt_ms>1': a result of loose\/5\.json has no number 'p99_tftt_ms'; did you mean /,
	'loose/5.json', '--allow-unjudged', '--fail-if', 'p99_tftt_ms>1');
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

status_is('files for CI', 3, undef, 'loose/0.json', @limit, '--fail-if', 'p99_ttft_ms>500', '--junit',
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
status_is('no least change', 2, qr/--min-effect 0: must be greater than 0/, qw(base slow --min-effect 0));
status_is('no such metric', 2, qr/--metric: no run has a number called 'p99_nothing'/, 'base', 'slow',
	'--metric', 'p99_nothing');
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

status_is('scaling with a gate', 3, qr/^NOT JUDGED: /m, qw(tp1 tp4 --scaling), @gate);

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
mkdir 'unread';
symlink '/proc/self/mem', 'unread/serving_y.json' or die "$!\n"; # opened, and not read
$r = run(args => [qw(bench markdown -r unread)]);
is($r->{status}, 1, 'markdown: a result that cannot be read is not left out');
like($r->{err}, qr/cannot read unread\/serving_y\.json: /, 'markdown: it is named');
ok(!-e 'unread/benchmark_results.md', 'markdown: and no table is written');
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
like($r->{out}, qr/^1 configuration matched, \d+ metrics: not enough data \d+/m,
	'our own results: one configuration');
for my $i (0, 1) {
	my $dir = (qw(here/ours there/ours))[$i];

	system('mkdir', '-p', $dir);
	spew("$dir/r.json", slurp("ours/r$i.json"));
}
$r = run(args => [qw(bench compare here/ours/r.json there/ours/r.json)]);
like($r->{out}, qr{here/ours/r\.json.*there/ours/r\.json}s, 'files of one name: both with their folders');
unlike($r->{out}, qr{(?<![/\w])r\.json}, 'none of them without');
$r = run(args => [qw(bench markdown -r ours)]);
is($r->{status}, 0, 'our own results need no .commands');
like(slurp('ours/benchmark_results.md'), qr/^\| r0 +\| sim .*\n\| r1 +\| sim /m, 'they are in the table');

# ---- what the servers were started with ----

for my $seqs (4, 32) {
	my @runs = map { result(1000 + $seqs, $_,
		profllm => { start_ns => 1767225700000000000 + $_ }) } 0 .. 1;

	mkdir "served$seqs";
	spew("served$seqs/summary.json", $json->encode(\@runs));
	spew("served$seqs/servers.json", $json->encode([{ started => '2026-01-01T00:00:00Z',
		serve_overrides => { max_model_len => 10 * $seqs }, command => [qw(vllm serve m --port),
		8000 + $seqs, '--max-num-seqs', "$seqs", '--max-model-len', 10 * $seqs . ''] }]));
}
my $served = run(args => [qw(bench compare served4 served32 --metrics output_throughput)]);
like($served->{out}, qr/^note: served32: its server was .* than served4's: max-num-seqs: 4 -> 32$/m,
	'servers: arguments that are no parameters of the runs, without the address');

# ---- engines without a server ----

for my $i (0 .. 7) {
	my %more = $i < 6 ? () : (input_len => 64);
	my $name = $i < 3 ? "plain$i" : $i < 6 ? "seqs4-$i" : "long$i";

	mkdir 'engine';
	mkdir "engine/" . $name =~ s/-?\d\z//r;
	spew("engine/" . ($name =~ s/-?\d\z//r) . "/$i.json", $json->encode({
		avg_latency => 1 + $i / 1000, percentiles => { 50 => 1, 99 => 1 },
		profllm => { command => 'latency', backend => 'sim', engine => { name => 'sim' },
			batch_size => 8, input_len => 32, %more, stop_ns => $i,
			engine_args => ['--model', 'm',
				$i >= 3 && $i < 6 ? ('--max-num-seqs', '4') : ()] } }));
}
$r = status_is('an engine', 0, undef, 'engine/plain', 'engine/seqs4', '--metrics', 'avg_latency');
like($r->{out}, qr/^avg_latency .* 3 : 3 /m, 'each run of an engine is a session of its own');
like($r->{out}, qr/max_num_seqs\n.*plain.*\nseqs4 +3 +4\n/, 'its arguments define the sides');
status_is('other prompts', 2, qr/differ in input_len \(32 against 64\)/, 'engine/plain', 'engine/long');
mkdir 'starts';
for my $i (0 .. 3) {
	mkdir 'starts/' . int($i / 2);
	spew('starts/' . int($i / 2) . "/$i.json", $json->encode({ avg_cold_startup_time => 5 + $i / 100,
		cold_startup_percentiles => { 50 => 5 + $i / 100 }, profllm => { command => 'startup',
			backend => 'vllm', engine => { name => 'vllm' }, engine_args => [] } }));
}
$r = status_is('starts', 0, undef, 'starts/0', 'starts/1');
like($r->{out}, qr/^avg_cold_startup_time .* 2 : 2 /m, 'measured percentiles are no parameters');
status_is('other models are refused of an engine, too', 1, qr/--across-models/, 'engine/plain',
	do { mkdir 'model'; spew('model/a.json', slurp('engine/plain/0.json') =~ s/"m"/"n"/r); 'model' });

# ---- why runs are DEGRADED ----

{
	my $why = sub { { level => 'DEGRADED', code => $_[0], spoils => [$_[1]], text => 'x' } };
	my %late = (profllm => { verdict => 'DEGRADED', verdicts => { ttft => 'DEGRADED' },
		reasons => [$why->('send_lag', 'ttft'), $why->('usage', 'itl')] });

	runs('late', map { result(1000, $_, $_ ? () : %late) } 0 .. 2);
	$r = status_is('DEGRADED runs', 0, undef, 'base', 'late', '--metrics', 'median_ttft_ms');
	like($r->{out}, qr/^note: DEGRADED because of late: send_lag in 1 of 3 runs; profllm help explains /m,
		'the reasons that concern the metrics are named');
	$r = status_is('another metric', 0, undef, 'base', 'late', '--metrics', 'output_throughput');
	unlike($r->{out}, qr/because of late/, 'and no others');
}

# ---- experiments without a result ----

{
	my %doc = (schema_version => 1, run_id => 'exp_1', config => { name => 'x' }, results => undef);
	my $failed = { %doc, status => 'failed', error => { stage => 'start', reason => 'no memory' } };

	spew('failed.json', $json->encode($failed));
	spew('running.json', $json->encode({ %doc, status => 'running' }));
	spew('suite.json', $json->encode({ schema_version => 1, suite => 's',
		experiments => [$failed, $failed] }));
	for my $verb ('compare', 'plot') {
		for (['failed', 'the experiment of failed.json has no result: it failed in the stage '
			. 'start: no memory'],
			['running', 'the experiment of running.json has no result: it has not ended: *'],
			['suite', 'none of the 2 experiments of suite.json has a result. The first one: '
			. 'it failed *']) {
			check_run("$verb: $_->[0]", run(args => ['bench', $verb, "$_->[0].json", 'base']),
				{ status => 1, err => "profllm bench $verb: $_->[1]" });
		}
	}
}

done_testing();
