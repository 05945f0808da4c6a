#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Conditions on one run: a server that is slowed by a known factor fails, the same server unslowed passes;
# files for CI; what is refused before anything is measured; require: of experiments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Ports;
use Socket;
use Test::More;

my @load = (@{$tiny{model}},
	qw(--num-prompts 20 --random-input-len 16 --random-output-len 4 --max-concurrency 2),
	qw(--ignore-eos --progress none));
my $port = start_sim('--ttft-ms', 20, '--itl-ms', 1)->{port};
my $slow = start_sim('--ttft-ms', 2000, '--itl-ms', 1)->{port};

sub serve
{
	my ($what, $to, $want, $message, @args) = @_;
	my $r = run(args => ['bench', 'serve', @load, '--port', $to, @args]);

	is($r->{status}, $want, "$what: exit $want") or diag($r->{out}, $r->{err});
	like($r->{err}, $message, "$what: says why");
	return $r;
}

# ---- bench serve: 2 s are far beyond 1 s, and 20 ms far below, on a machine as busy as may be ----

my @limit = ('--fail-if', 'median_ttft_ms>1000', '--fail-if', 'failed>0');
serve('a fast server', $port, 0, qr/^passed: 2 conditions$/m, @limit, '--junit', 'fast.xml');
serve('a slow server', $slow, 3,
	qr/^FAILED: median_ttft_ms is 2\d\d\d(\.\d+)? ms \(limit 1000 ms\)\nfailed: 1 of 2 conditions$/m,
	@limit, '--num-prompts', 2, '--junit', 'slow.xml', '--summary', 'slow.md');
like(slurp('fast.xml'), qr/tests="2" failures="0" errors="0"/, 'JUnit: both passed');
like(slurp('slow.xml'), qr/tests="2" failures="1" errors="0".*<failure message="median_ttft_ms is 2/s,
	'JUnit: one failed');
like(slurp('slow.md'), qr/^failed: 1 of 2 conditions$/m, 'the summary');
# Bound without listening: connections are refused.
socket my $bound, AF_INET, SOCK_STREAM, 0 or die;
bind($bound, sockaddr_in(0, INADDR_LOOPBACK)) or die;
my ($nobody) = sockaddr_in(getsockname $bound);
serve('nobody there', $nobody, 1, qr/^NOT JUDGED: failed>0: there is no result: /m, @limit, '--junit',
	'none.xml',
	'--ready-check-timeout-sec', 1);
like(slurp('none.xml'), qr/errors="2"/, 'JUnit: the run failed, and no condition is judged');

# ---- refused before anything is measured ----

my @refused = (
	['p95_ttft_ms>3',
		qr/'p95_ttft_ms>3': this percentile is not computed; add 95 to --metric-percentiles$/m],
	['p99_e2el_ms>3', qr/e2el is not computed; add it to --percentile-metrics/],
	['output_troughput<3',
		qr/a result has no key 'output_troughput'; did you mean 'output_throughput'\?/],
	['backend>3', qr/'backend' is not a number/],
	['p99_ttft_ms>', qr/has no number after >/],
	['p99_ttft_ms', qr/such as 'p99_ttft_ms>200' or .*; in a shell it needs quotes$/m],
	['p99_ttft_ms>3 tokens/s', qr/is not the unit of p99_ttft_ms, which is ms/],
	['p99_ttft_ms>+5%', qr/a change needs a baseline/],
	['mean_e2el_ms>3', qr/e2el is not computed; add it to --percentile-metrics$/m],
	['request_goodput<1', qr/there is no goodput without limits; add them with --goodput$/m],
	['profllm.system.energy_j>1', qr/the result will not have it; add --system-metrics$/m],
	['profllm.runs.count<2', qr/the result will not have it; add --num-runs$/m],
	['profllm.failed>0', qr/backend openai does not have it; it is for backends that give vectors/],
	['profllm.steady_state.median_ttft_ms>1', qr/leave out --request-rate$/m, '--request-rate', 50],
);
for (@refused) {
	my ($condition, $why, @more) = @$_;
	my $said = serve("refused: $condition", $port, 2, $why, '--fail-if', $condition, '--junit',
		'refused.xml', @more);
	is($said->{out}, '', "refused: $condition: before any load");
}
ok(!-e 'refused.xml', 'and no file is written');
serve('a file and no condition', $port, 2, qr/--summary: there is no condition to report on; add --fail-if/,
	'--summary', 's.md');
serve('a folder that is not there', $port, 1, qr/--junit/, @limit, '--junit', 'absent/x.xml');

serve('what was refused, with the options that it needs', $port, 0, qr/^passed: 4 conditions$/m,
	'--percentile-metrics', 'ttft,e2el', qw(--metric-percentiles 95 --goodput e2el:5000),
	map { ('--fail-if', $_) } 'p95_ttft_ms>5000', 'mean_e2el_ms>5000', 'request_goodput<0.01',
	'p95_e2el_ms>10s');

# ---- several loads: conditions hold at each ----

my @levels = ('--num-prompts', 4, '--sweep-max-concurrency', '1,2');
my $swept = serve('two loads that pass', $port, 0, qr/(?:^passed: 2 conditions\n[^^]*){2}/m, @levels, @limit,
	'--junit', 'level.xml');
ok(-e "level-concurrency$_.xml", "two loads: a file for $_") for 1, 2;
$swept = serve('two loads that fail', $slow, 3, qr/(?:^failed: 1 of 2 conditions\n[^^]*){2}/m, @levels,
	@limit);
like($swept->{out}, qr/Sweep Summary/, 'two loads: both are measured');

spew('levels.json', '[{"max_concurrency": 1}, {"max_concurrency": 2}]');
my $own = free_port();
my @sweep = ('bench', 'sweep', 'serve', qw(--bench-params levels.json --num-runs 1 -o sweeps));
my $bench = "$program bench serve @{$tiny{model}} --num-prompts 4 --random-input-len 16 --random-output-len 4"
	. " --disable-tqdm --port $own";
for (['passes', 20, 0, qr/^passed: 2 checks of 1 condition$/m],
	['fails', 2000, 3,
		qr/^(?:FAILED: median_ttft_ms is 2.* in sweeps\/fails\/.*\n){2}failed: 2 of 2 checks/m]) {
	my ($what, $ttft, $want, $said) = @$_;
	my $swept = run(args => [@sweep, '-e', $what, '--bench-cmd', $bench,
		'--serve-cmd', "$program sim --port $own --ttft-ms $ttft --itl-ms 1"], seconds => 120);

	is($swept->{status}, 0, "a sweep that $what: it is measured") or diag($swept->{err}, $swept->{out});
	my $judged = run(args => ['bench', 'compare', "sweeps/$what", '--fail-if', $limit[1]]);
	is($judged->{status}, $want, "a sweep that $what: exit $want") or diag($judged->{err});
	like($judged->{err}, $said, "a sweep that $what: says why");
}
my $lost = run(args => [@sweep, '--serve-cmd', 'true', '--bench-cmd', "$bench --fail-if 'median_ttft_ms>1'"]);
is($lost->{status}, 2, 'a sweep whose runs have conditions: exit 2');
like($lost->{err}, qr/^\S+ bench sweep serve: --bench-cmd: .* would be lost to the sweep; remove it, /m,
	'a sweep whose runs have conditions: says why');

$lost = run(args => ['bench', 'sweep', 'startup', '--startup-cmd',
	"$program bench startup --fail-if='avg_cold_startup_time>1'", qw(-o sweeps -e startup)]);
is($lost->{status}, 2, 'a sweep of starts with conditions: exit 2');
like($lost->{err}, qr/--startup-cmd: a run that fails --fail-if would be lost/,
	'a sweep of starts with conditions: says why');
serve('a search', $port, 2, qr/--fail-if has no meaning in a search for the largest load/, @limit,
	qw(--find-max-rate --slo p99_ttft_ms<200));

# ---- conversations ----

spew('talks.json', '[' . join(', ', map { qq({"id": "t$_", "messages": [
	{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"},
	{"role": "user", "content": "second"}, {"role": "assistant", "content": "two"}]}) } 1 .. 2) . ']');
for (['pass', $port, 0, qr/^passed: 2 conditions$/m],
	['fail', $slow, 3, qr/^FAILED: median_ttft_ms is 2.*\nfailed: 1 of 2 conditions$/m]) {
	my ($what, $to, $want, $said) = @$_;
	my $talk = run(args => ['bench', 'multi-turn', @{$tiny{model}}, '--input-file', 'talks.json',
		'--url', "http://127.0.0.1:$to", qw(--num-clients 2 --no-early-stop --progress none), @limit,
		'--junit', "talk-$what.xml"], seconds => 120);

	is($talk->{status}, $want, "conversations that $what: exit $want")
		or diag($talk->{err}, $talk->{out});
	like($talk->{err}, $said, "conversations that $what: says why");
}
like(slurp('talk-fail.xml'), qr/tests="2" failures="1"/, 'conversations: JUnit');

# ---- engines without a server ----

my @engine = qw(--backend sim --model sim --progress none);
my %engine = (
	latency => ['avg_latency', qw(--num-iters 2 --num-iters-warmup 0 --batch-size 1 --output-len 4)],
	throughput => ['elapsed_time', qw(--num-prompts 4 --input-len 8 --output-len 4)],
	startup => ['avg_cold_startup_time', qw(--num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 0)],
);
for my $verb (sort keys %engine) {
	my ($key, @args) = @{$engine{$verb}};
	my $try = sub {
		my ($what, $want, $message, @more) = @_;
		my $r = run(args => ['bench', $verb, @engine, @args, @more], seconds => 120);

		is($r->{status}, $want, "$verb, $what: exit $want") or diag($r->{err}, $r->{out});
		like($r->{err}, $message, "$verb, $what: says why");
		return $r;
	};

	$try->('passes', 0, qr/^passed: 2 conditions$/m, '--fail-if', "$key>3000 s", '--fail-if', "$key<=0",
		'--junit', "$verb.xml");
	like(slurp("$verb.xml"), qr/<testsuite name="bench $verb" tests="2" failures="0" errors="0"/,
		"$verb: JUnit");
	my $r = $try->('fails', 3,
		qr/^FAILED: $key is [\d.e-]+ s \(limit 3000 s\)\nfailed: 1 of 1 condition$/m,
		'--fail-if', "$key<3000", '--output-json', "$verb.json", '--summary', "$verb.md");
	ok(json_of(slurp("$verb.json"))->{$key} > 0, "$verb: the result is kept");
	like(slurp("$verb.md"), qr/^\| `$key<3000` \| failed /m, "$verb: the summary");
	$r = $try->('a metric of servers', 2,
		qr/--fail-if: 'p99_ttft_ms>1': a result of bench $verb has no number 'p99_ttft_ms'/,
		'--fail-if', 'p99_ttft_ms>1', '--junit', 'refused.xml');
	unlike($r->{out}, qr/\d s/, "$verb: nothing is measured");
	$try->('a typing mistake', 2, qr/did you mean '$key'\?/, '--fail-if', "x$key>1");
	$try->('a change', 2, qr/a change needs a baseline/, '--fail-if', "$key>5%");
	$try->('a file and no condition', 2, qr/--junit: there is no condition/, '--junit', 'refused.xml');
	$try->('an engine that does not start', 1, qr/^NOT JUDGED: $key>1: there is no result: /m,
		qw(--backend worker --worker-cmd false), '--fail-if', "$key>1", '--junit', "none-$verb.xml");
	like(slurp("none-$verb.xml"), qr/errors="1"/, "$verb: JUnit of no result");
}
ok(!-e 'refused.xml', 'engines: what is refused writes no file');
like(run(args => ['bench', 'latency', @engine, '--profile', '--fail-if', 'avg_latency>1'])->{err},
	qr/--fail-if cannot be used with --profile/, 'latency: nothing to judge');

# ---- profllm run ----

spew('x.yaml', <<'END');
name: gate
server: {model: sim, command: sim, ttft_ms: 20, itl_ms: 1}
benchmark: {tokenizer: sim, num_prompts: 6, random_input_len: 16, random_output_len: 4, max_concurrency: 2}
require:
  - median_ttft_ms<=1000
  - failed<=0
END
my @run = (qw(run --config x.yaml --progress none --output), 'x.json');
my $r = run(args => [@run]);
is($r->{status}, 0, 'run: requirements that are met') or diag($r->{err});
like($r->{err}, qr/^passed: 2 conditions$/m, 'run: says so');
is_deeply([map { $_->{outcome} } @{json_of(slurp('x.json'))->{requirements}}], [qw(passed passed)],
	'run: the document has them');
my @two = ('--set', 'experiments=[{"name": "fast"}, {"name": "slow", "server": {"ttft_ms": 2000}}]');
$r = run(args => [qw(run --config x.yaml --progress none --output two.json --junit two.xml), @two],
	seconds => 120);
is($r->{status}, 3, 'run: a member that is too slow') or diag($r->{err});
like($r->{err},
	qr/^FAILED: median_ttft_ms is 2\d\d\d(\.\d+)? ms \(limit 1000 ms\) in slow
failed: 1 of 4 checks of 2 conditions$/m,
	'run: which one');
like(slurp('two.xml'), qr/tests="4" failures="1"/, 'run: JUnit has a case for each condition of each member');
my ($one) = grep { $_->{config}{name} eq 'slow' } @{json_of(slurp('two.json'))->{experiments}};
is_deeply([map { $_->{outcome} } @{$one->{requirements}}], [qw(failed passed)],
	'run: its document says which failed');
$r = run(args => [qw(run --config x.yaml --progress none --output two.json --resume), @two]);
is($r->{status}, 3, 'run: documents that are kept are judged too') or diag($r->{err});
for ([q(require=["p99_tttft_ms<2"]), qr/require\.0: 'p99_tttft_ms<2': a result has no key/],
	['require=3', qr/require: expected a list of at most \d+ conditions such as .*, got 3$/m],
	[q(require=["output_throughput<5%"]),
		qr/require\.0: 'output_throughput<5%': a change needs a baseline/],
	[q(require=["p99.9_ttft_ms<9"]),
		qr/this percentile is not computed; add 99\.9 to benchmark\.metric_percentiles$/m],
	[q(require=["p99_client_queue_time_ms<9"]),
		qr/client_queue_time is not computed; add it to benchmark\.percentile_metrics$/m],
	[q(require=["request_goodput>1"]), qr/add them with benchmark\.goodput$/m],
	['tags={decode_only: "true"}',
		qr/'median_ttft_ms<=1000': an experiment tagged decode_only has no times/]) {
	$r = run(args => [@run, '--set', $_->[0]]);
	is($r->{status}, 2, "run: $_->[0]");
	like($r->{err}, $_->[1], "run: $_->[0] is refused");
}
$r = run(args => [@run, '--set', 'benchmark.metric_percentiles=99.9', 'benchmark.goodput=["ttft:5000"]',
	'require=["p99.9_ttft_ms<5000", "p90_e2el_ms<5000", "mean_e2el_ms<5000", "request_goodput>0.01", '
		. '"profllm.system.host.cpus>0"]']);
is($r->{status}, 0, 'run: metrics that a document always has, and those asked for') or diag($r->{err});
like($r->{err}, qr/^passed: 5 conditions$/m, 'run: all of them are judged');
my @quick = ('--set', 'server={model: sim, command: sim}',
	'benchmark={mode: latency, num_iters: 1, num_iters_warmup: 0, batch_size: 1, output_len: 4}');
for (['avg_latency<3000', 0, qr/^passed: 1 condition$/m],
	['percentiles.99<=0', 3, qr/^FAILED: percentiles\.99 is [\d.e-]+ s \(limit 0 s\)$/m],
	['p99_ttft_ms<1', 2, qr/a result of mode latency has no number 'p99_ttft_ms'/]) {
	$r = run(args => [@run, @quick, qq(require=["$_->[0]"])]);
	is($r->{status}, $_->[1], "run: mode latency, $_->[0]: exit $_->[1]") or diag($r->{err});
	like($r->{err}, $_->[2], "run: mode latency, $_->[0]: says why");
}
spew('bad.yaml', slurp('x.yaml') =~ s/failed<=0/faild<=0/r);
like(run(args => [qw(run --config bad.yaml --output b.json)])->{err},
	qr/^profllm run: bad\.yaml:6:5: require\.1: /m,
	'run: the place in the file');
$r = run(args => [@run, '--set', 'require=[]', '--junit', 'x.xml']);
is($r->{status}, 2, 'run: a file and no condition');

done_testing();
