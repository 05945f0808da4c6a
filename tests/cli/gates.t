#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Conditions on one run: a server that is slowed by a known factor fails, the same server unslowed passes;
# files for CI; what is refused before anything is measured; require: of experiments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
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
# Bound and not listened at: nobody answers there.
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
		qr/'p95_ttft_ms>3': this percentile is not computed; add 95 to --metric-percentiles/],
	['p99_e2el_ms>3', qr/e2el is not computed; add it to --percentile-metrics/],
	['output_troughput<3',
		qr/a result has no key 'output_troughput'; did you mean 'output_throughput'\?/],
	['backend>3', qr/'backend' is not a number/],
	['p99_ttft_ms>', qr/has no number after >/],
	['p99_ttft_ms>3 tokens/s', qr/is not the unit of p99_ttft_ms, which is ms/],
	['p99_ttft_ms>+5%', qr/a change needs a baseline/],
	['request_goodput<1', qr/add --goodput with its limits/],
);
serve("refused: $_->[0]", $port, 2, $_->[1], '--fail-if', $_->[0], '--junit', 'refused.xml') for @refused;
ok(!-e 'refused.xml', 'and no file is written');
serve('a file and no condition', $port, 2, qr/--summary: there is no condition to report on; add --fail-if/,
	'--summary', 's.md');
serve('a folder that is not there', $port, 1, qr/--junit/, @limit, '--junit', 'absent/x.xml');

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
		qr/require\.0: 'output_throughput<5%': a change needs a baseline/]) {
	$r = run(args => [@run, '--set', $_->[0]]);
	is($r->{status}, 2, "run: $_->[0]");
	like($r->{err}, $_->[1], "run: $_->[0] is refused");
}
spew('bad.yaml', slurp('x.yaml') =~ s/failed<=0/faild<=0/r);
like(run(args => [qw(run --config bad.yaml --output b.json)])->{err},
	qr/^profllm run: bad\.yaml:6:5: require\.1: /m,
	'run: the place in the file');
$r = run(args => [@run, '--set', 'require=[]', '--junit', 'x.xml']);
is($r->{status}, 2, 'run: a file and no condition');

done_testing();
