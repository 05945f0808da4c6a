#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --sweep-max-concurrency and --sweep-request-rate: several runs of one line and a table.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $sim = start_sim('--ttft-ms', '2', '--itl-ms', '1');
my @args = ('bench', 'serve', '--base-url', $sim->{url}, @{ $tiny{model} }, @{ $tiny{load} },
	'--progress', 'none');

# The rows of the table: name => its numbers.
sub rows { map { my ($name, @v) = split; $name => \@v } $_[0] =~ /^((?:concurrency|rate)=.*)$/mg }

my $run = run(args => [@args, '--sweep-max-concurrency', '1, 2', '--sweep-num-prompts-factor', '2',
	'--sweep-summary-percentiles', '95,99.9,90,95', '--save-result', '--result-dir', 'caps',
	'--result-filename', 'one.json', '--record', 'run.rec']);
check_run('caps', $run, { status => 0, out => ['Sweeping --max-concurrency over 2 values: [1, 2]',
	'*- Run 1/2: max_concurrency=1 -*', '*Run 2/2: max_concurrency=2 *',
	'*= Sweep Summary =*', 'Highest throughput: *'] });
my %row = rows($run->{out});
is(join(' ', sort keys %row), 'concurrency=1 concurrency=2', 'caps: a row each');
my ($head) = $run->{out} =~ /^Max Concurrency +(.*)$/m;
is_deeply([split / {2,}| (?=SS|Total|P\d)/, $head],
	['Req/s', 'Tok/s', 'Total tok/s', 'SS req/s', 'SS out tok/s',
	map({ ("$_ TTFT(ms)", "$_ TPOT(ms)") } qw(P50 P90 P95 P99 P99.9)), 'Verdict'], 'caps: the columns');
for my $cap (1, 2) {
	my $result = json_of(slurp("caps/one-concurrency$cap.json"));

	is("$result->{max_concurrency} $result->{num_prompts}", "$cap " . 2 * $cap, "cap $cap: its result");
	ok(-s "run-concurrency$cap.rec", "cap $cap: its record");
	is_deeply([@{ $row{"concurrency=$cap"} }[0 .. 2, 5 .. 14]], [map { sprintf '%.2f', $result->{$_} }
		qw(request_throughput output_throughput total_token_throughput median_ttft_ms median_tpot_ms
		p90_ttft_ms p90_tpot_ms p95_ttft_ms p95_tpot_ms p99_ttft_ms p99_tpot_ms p99.9_ttft_ms
		p99.9_tpot_ms)],
		"cap $cap: its row");
}

$run = run(args => [@args, '--sweep-request-rate', '50,inf', '--save-result', '--result-dir', 'rates']);
check_run('rates', $run, { status => 0,
	out => ['*Run 1/2: request_rate=50 *', '*Run 2/2: request_rate=inf *'] });
is(scalar(() = glob 'rates/*.json'), 2, 'rates: generated names differ');

# What is true of every point is said once.
$run = run(args => [@args, '--sweep-max-concurrency', '1,2,4', '--num-prompts', '100', '--num-prompts', '60',
	'--random-input-len', '64']);
is($run->{err} =~ s/^WARNING: --num-prompts is given more than once; the last one counts\n//mg, 1,
	'a warning about an option is not repeated for every point');
is($run->{err} =~ s/^WARNING: random prompts hold \d+ (?:more|fewer) tokens .*\n//mg, 1,
	'nor one about the prompts, whose number differs');

$run = run(args => [@args, '--sweep-max-concurrency', '2', '--dry-run']);
check_run('dry run', $run, { status => 0, not_out => ['*Sweep Summary*'] });

$sim = start_sim('--fault', 'status=503');
$run = run(args => ['bench', 'serve', '--base-url', $sim->{url}, @{ $tiny{model} }, @{ $tiny{load} },
	'--progress', 'none', '--sweep-max-concurrency', '1,2']);
check_run('all fail', $run, { status => 1, err => '*', out => ['*Run 2/2: *'] });

# What is INVALID is no best, and the table says that it is.
$sim = start_sim('--ttft-ms', '2', '--itl-ms', '1', '--fault', 'status=503:0.8');
$run = run(args => ['bench', 'serve', '--base-url', $sim->{url}, @{ $tiny{model} }, @{ $tiny{load} },
	'--num-prompts', '60', '--progress', 'none', '--sweep-max-concurrency', '1,2']);
check_run('most fail', $run, { status => 0, out => ['concurrency=1 *INVALID*', 'concurrency=2 *INVALID*',
	'No highest throughput: request_throughput is INVALID in all 2 results'],
	not_out => ['Highest throughput*'] });

for (
	[['--sweep-max-concurrency', '1,x'], "*--sweep-max-concurrency: 'x' is not a whole number above 0"],
	[['--sweep-max-concurrency', '1.5'], "*--sweep-max-concurrency: '1.5' is not a whole number above 0"],
	[['--sweep-max-concurrency', ''], "*--sweep-max-concurrency: '' is not a whole number above 0"],
	[['--sweep-request-rate', '0'], "*--sweep-request-rate: '0' is not a rate above 0, or inf"],
	[['--sweep-request-rate', '1', '--sweep-max-concurrency', '1'], '*cannot be used together*'],
	[['--sweep-request-rate', '1', '--sweep-num-prompts-factor', '2'], '*needs --sweep-max-concurrency'],
	[['--sweep-max-concurrency', '1', '--sweep-summary-percentiles', '101'],
		"*'101' is not a number from 0 to 100"],
) {
	my ($options, $says) = @$_;

	check_run("@$options", run(args => [@args, @$options]), { status => 2, out => '', err => $says });
}

my @compare = qw(bench serve --compare caps/one-concurrency1.json);
$run = run(args => [@compare, 'caps/one-concurrency2.json']);
check_run('compare', $run, { status => 0, out => ['*request_throughput*%*'] });
check_run('compare one', run(args => \@compare),
	{ status => 2, err => '*--compare: expected two result files, got 1' });
check_run('compare with nothing', run(args => [@compare, 'none.json']),
	{ status => 1, err => '*none.json*' });

done_testing;
