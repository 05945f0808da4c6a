#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench sweep serve_sla` on the simulator: an engine whose latency is a formula of the load, so that
# the answer is known.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Find;
use Test::More;

my $port = free_port();

# A token takes 2 ms and 2 ms more for each request in the batch: with n at once 2 + 2n. Twelve
# requests, so that 4 fill their batches and the fifth shows.
my $engine = "$program sim --port $port --prefill-base-us 0 --prefill-us-per-token 0 " .
	'--decode-base-us 6000 --decode-us-per-seq 6000 --kv-cache-tokens 1000';
my $oracle = "$program sim --port $port --ttft-ms 1 --itl-ms 1";
my $client = "$program bench serve --port $port --model sim --tokenizer sim --num-prompts 12 " .
	'--random-input-len 8 --random-output-len 6 --ignore-eos --progress none';

sub sweep { return run_sweep($client, @_) }

sub files {
	my ($folder, $pattern) = @_;
	my @found;
	find(sub { push @found, $File::Find::name if /$pattern/ }, $folder);
	return sort @found;
}

sub capacity { return @{json_of(slurp("results/$_[0]/capacity.json"))} }

spew('tpot.json', '[{"median_tpot_ms": "<=33"}]');
spew('two.json', '[{"median_tpot_ms": "<=33", "request_throughput": ">0.01"}, {"p99_ttft_ms": "<0.0001"},' .
	'{"median_tpot_ms": "<45"}]');
spew('ttft.json', '[{"profllm.connect_ms.p99": "<60000", "p99_ttft_ms": "<=60000"}]');
my @bisect = qw(--sla-search bisect --num-runs 1);
my @concurrency = ('--sla-variable', 'max_concurrency', '--sla-search', 'interpolate');

# ---- an answer that can be computed ----

my $one = sweep('serve_sla', $engine, '--sla-params', 'tpot.json', @concurrency, '-e', 'one');
check_run('the largest level is found', $one, { status => 0, out => ['[SLA START]',
	'SLA criteria: median_tpot_ms<=33.00, failed<=1.00 %', 'Testing max_concurrency: 65536 req/s',
	'Validating SLA: median_tpot_ms = *<=33.00 | FAILED', 'SLA criteria are met. (margin=-*)',
	'SLA criteria are not met. (margin=*)', 'Maximum max_concurrency for SLA: * req/s.',
	'[SLA END]', 'Experiment has been saved at: results/one'],
	exists => ['results/one/SLA--median_tpot_ms<=33.00.json', 'results/one/summary.csv',
	'results/one/max_concurrency=65536/run=0.json'] });
my ($found) = capacity('one');
ok(abs($found->{capacity} - 4) <= 1, "it is 4, give or take one: $found->{capacity}");
is($found->{outcome}, 'found', 'and said to be found');
is($found->{first_failing}, $found->{capacity} + 1, 'the next one fails');
ok($found->{constraints}[0]{binds}, 'the limit that binds is named');
ok($found->{kv_cache}{tokens} > 900 && $found->{kv_cache}{tokens} <= 1000, 'the KV cache is known');
ok(abs($found->{kv_cache}{requests} * 14 / $found->{kv_cache}{tokens} - 1) < 0.2, 'in requests too');
my @runs = files('results/one', qr/^run=\d+\.json$/);
is(scalar @runs, $found->{runs}, 'the runs that were made are counted');
is(scalar @{json_of(slurp('results/one/SLA--median_tpot_ms<=33.00.json'))}, scalar @runs,
	'and all of them are in the file of the search');
SKIP: {
	skip 'gnuplot is needed', 1 unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
	like(slurp('results/one/BENCH.png'), qr/\A\x89PNG/, 'latency over throughput is drawn');
}
ok(-s 'results/one/BENCH.gp' && -s 'results/one/BENCH.dat', 'with script and table');

# ---- the same files again ----

my $before = slurp('results/one/capacity.json');
my $again = sweep('serve_sla', $engine, '--sla-params', 'tpot.json', @concurrency, '--resume', 'one');
check_run('resumed, everything is there', $again, { status => 0, not_out => ['[BEGIN SERVER]'],
	out => ['Found existing results.', 'Search: * levels, * runs (0 made now).'] });
is(slurp('results/one/capacity.json'), $before, 'with the same answer');

my $two = sweep('serve_multi', $engine, '--sla-params', 'two.json', @concurrency, '--resume', 'one');
check_run('two SLAs, by the verb\'s old name', $two, { status => 0, out => ['Found existing results.',
	'SLA criteria: median_tpot_ms<=33.00, request_throughput>0.01, failed<=1.00 %',
	'No max_concurrency meets the SLA: even 1 at once does not.'] });
my ($first, $second, $third) = capacity('one');
ok(abs($first->{capacity} - $found->{capacity}) <= 1, 'the first finds what the search before did');
is($second->{outcome}, 'none_passes', 'none passes the second');
is($second->{capacity}, undef, 'so there is no capacity');
is($second->{first_failing}, 1, 'even one fails');
ok(abs($third->{capacity} - 6) <= 1, 'the third, which knows what the others measured');
my @then = map { slurp("results/one/$_") } 'capacity.json', 'summary.csv';
my $same = sweep('serve_sla', $engine, '--sla-params', 'two.json', @concurrency, '--resume', 'one');
check_run('resumed', $same, { status => 0, not_out => ['[BEGIN SERVER]'] });
is(slurp('results/one/capacity.json'), $then[0], 'the same answers');
is(slurp('results/one/summary.csv'), $then[1], 'the same table');

my $bisect = sweep('serve_sla', $engine, '--sla-params', 'tpot.json', @concurrency, '--num-runs', 1,
	'--sla-search', 'bisect', '--resume', 'one');
check_run("upstream's first recipe", $bisect, { status => 0, out => [
	'Initial max_concurrency to search: * req/s.', 'Range of max_concurrency to search: [*] req/s.',
	'SLA criteria are met.', 'SLA criteria are not met.'],
	not_out => ['Testing max_concurrency: 65536*'] });
ok(abs((capacity('one'))[0]{capacity} - $found->{capacity}) <= 1, 'finds the same');

# ---- ends that are no answer ----

my $all = sweep('serve_sla', $oracle, '--sla-params', 'ttft.json', '-e', 'all', @bisect);
check_run('all pass', $all, { status => 0, out => ['Maximum request_rate for SLA: 65536 req/s.',
	'Every level meets the SLA, even 65536 req/s: its limits do not bind with the 12 requests of a ' .
	'run.'] });
is((capacity('all'))[0]{outcome}, 'all_pass', 'said in the file');
is(scalar(my @made = files('results/all', qr/^run=/)), 1, 'after one level');
spew('e2el.json', '[{"p99_e2el_ms": "<=0.01"}, {"p99_e2el_ms": "<=60000"}]');
my $none = sweep('serve_sla', $oracle, '--sla-params', 'e2el.json', '-e', 'none', @bisect);
check_run('a limit below everything', $none, { status => 0, out => ['No request_rate meets the SLA: *'] });
my @lines_of = slurp('results/none/BENCH.gp') =~ /^set label '(p99_e2el_ms[^']*)' at graph/mg;
is("@lines_of", 'p99_e2el_ms<=0.01', 'is a line of the figure; one far above what was measured is not');

my $small = sweep('serve_sla', $oracle =~ s/--ttft.*/--kv-cache-tokens 48/r, '--sla-params', 'ttft.json',
	@concurrency, '--hover', 1, '-e', 'small');
check_run('more than the KV cache holds', $small, { status => 0, warn => ['WARNING: max_concurrency=65536 ' .
	'is more than the * requests of * tokens that the KV cache of 48 tokens holds: *',
	'WARNING: --hover: there is no boundary to stay at'] });

# ---- what is refused before anything is started ----

spew('bench.json', '[{"request-rate": 3}]');
spew('op.json', '[{"p99_ttft_ms": "=5"}]');
spew('key.json', '[{"p99_tft_ms": "<5"}]');
spew('p999.json', '[{"p95_ttft_ms": "<=5", "p99.9_ttft_ms": "<=9"}]');
spew('p95.json', '[{"metric_percentiles": "50,95"}]');
for (['the variable is overridden', 1, '*You should not override `request_rate` in `bench_params` in SLA ' .
	'mode, since it is supposed to be determined automatically.', '--sla-params', 'tpot.json',
	'--bench-params', 'bench.json'],
	['no limits', 2, '*the following arguments are required: --sla-params'],
	['an operator', 2, "*--sla-params: the limit of 'p99_ttft_ms' is =5; expected a text with <=, >=, " .
	'< or > before the number: "<=200"', '--sla-params', 'op.json'],
	['a number', 2, "*--sla-params: the limit of 'p99_ttft_ms' is 200; expected a text with <=, >=, < " .
	'or > before the number: "<=200"', '--sla-params', '[{"p99_ttft_ms": 200}]'],
	['JSON on the command line that is none', 2, '*--sla-params [{"p99_ttft_ms": : *', '--sla-params',
	'[{"p99_ttft_ms": '],
	['a file that is not there', 1, '*--sla-params: cannot open none.json: No such file or directory',
	'--sla-params', 'none.json'],
	['a key', 2, "*--sla-params: a result has no key 'p99_tft_ms'*", '--sla-params', 'key.json'],
	['a percentile nobody computes', 2, "*--sla-params: 'p99.9_ttft_ms' is not computed by " .
	'--bench-cmd, whose --metric-percentiles is 50,95; add 99.9 to it', '--sla-params', 'p999.json',
	qw(--sla-search bisect --bench-params p95.json)],
	['hovering with a foreign client', 2, '*--hover needs a --bench-cmd with --duration*', '--sla-params',
	'tpot.json', qw(--hover 5 --exec-bench)]) {
	my ($name, $status, $err, @args) = @$_;
	check_run("refused: $name", sweep('serve_sla', $engine, '-e', 'no', @args),
		{ status => $status, err => $err, not_out => ['[BEGIN SERVER]'], gone => ['results/no'] });
}
check_run('limits on the command line', sweep('serve_sla', $engine, '--sla-params',
	'[{"p99_ttft_ms": "<=5"}]', qw(--sla-search bisect --dry-run -e dry)),
	{ status => 0, out => ['Output file: results/dry/request_rate=65536/run=0.json'] });
check_run('a dry run', sweep('serve_sla', $engine,
	qw(--sla-params tpot.json --sla-search bisect --dry-run -e dry)),
	{ status => 0, out => ['[BEGIN SERVER]', 'Output file: results/dry/request_rate=65536/run=0.json',
	'Omitting SLA search.', '[SLA END]', 'Experiment will be saved at: results/dry'],
	gone => ['results/dry'] });

# ---- interrupted ----

my $cut = begin(args => ['bench', 'sweep', 'serve_sla', '--serve-cmd', $engine, '--bench-cmd', $client,
	'--sla-params', 'tpot.json', @concurrency, '-e', 'cut'], seconds => 120);
wait_for('the first run', sub { -e 'results/cut/max_concurrency=65536/run=0.json' });
kill 'INT', $cut->{pid};
check_run('interrupted', finish($cut), { status => 130, err => '*The script was terminated early. Use ' .
	'`--resume` to continue the script from its last checkpoint.*' });
check_run('and resumed', sweep('serve_sla', $engine, '--sla-params', 'tpot.json', @concurrency,
	'--resume', 'cut'), { status => 0, out => ['Maximum max_concurrency for SLA: * req/s.'] });
ok(abs((capacity('cut'))[0]{capacity} - 4) <= 1, 'it finds the same');

# ---- staying there ----

my $hover = sweep('serve_sla', $engine, '--sla-params', 'tpot.json', @concurrency, '--resume', 'cut',
	'--hover', 2.5, '--hover-window', 0.4);
check_run('hovering', $hover, { status => 0, out => ['Capacity while hovering: * at once after * window*',
	'{"time": *, "sla": "median_tpot_ms<=33.00", "variable": "max_concurrency", "level": *'] });
my @lines = map { json_of($_) } split /\n/, slurp('results/cut/hover.jsonl');
is(scalar @lines, ($hover->{out} =~ /after (\d+) windows/)[0], 'a line for each window');
ok(!(grep { $_->{passes} != ($_->{values}{median_tpot_ms} <= 33) } @lines), 'each tells whether it passed');
my $follows = 1;
for my $i (1 .. $#lines) {
	my $moved = $lines[$i]{capacity} - $lines[$i - 1]{capacity};
	$follows &&= $lines[$i]{passes} ? $moved > 0 : $moved < 0;
}
ok($follows, 'up after a window that passed, down after one that failed');
ok(!(grep { /hover/ } split /\n/, slurp('results/cut/summary.csv')), 'windows are no levels');

done_testing();
