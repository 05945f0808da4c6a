#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The largest load within limits: `bench serve --find-max-rate` and --find-max-concurrency on servers
# whose capacity is known, `--slo` at a fixed rate, and `bench sweep serve_sla`. Levels are far shorter
# than users should make them: the servers answer within milliseconds.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @model = @{ $tiny{model} };
my @lengths = qw(--random-input-len 8 --random-output-len 6 --ignore-eos --temperature 0);
my @fast = qw(--level-seconds 3 --precision 20 --disable-tqdm);
my $limits = 'p90_ttft_ms<20,mean_e2el_ms<=400';

# One request at a time, each for five steps of 1 ms: a queue of Poisson arrivals and one server.
my @queue = qw(--max-num-seqs 1 --prefill-base-us 0 --prefill-us-per-token 0 --decode-base-us 1000
	--decode-us-per-seq 0);
my $service_s = 0.005;

# The share of requests that wait longer than limit_s in such a queue.
sub late {
	my ($rate, $limit_s) = @_;
	my ($wait, $late, $n) = (0, 0, 100_000);
	srand 7;
	for (1 .. $n) {
		$late += $wait > $limit_s;
		$wait += $service_s + log(1 - rand) / $rate;
		$wait = 0 if $wait < 0;
	}
	srand; # free ports are drawn, too
	return $late / $n;
}

# The rate at which a tenth waits longer.
sub truth {
	my ($low, $high) = (1, 1 / $service_s);
	for (1 .. 12) {
		my $middle = ($low + $high) / 2;
		if (late($middle, $_[0]) > 0.1) { $high = $middle } else { $low = $middle }
	}
	return $low;
}

sub find {
	my ($url, @more) = @_;
	return run(args => ['bench', 'serve', '--base-url', $url, @model, @lengths, @more], seconds => 300);
}

# ---- a rate that can be computed ----

my $sim = start_sim(@queue);
my $run = find($sim->{url}, @fast, '--find-max-rate', '--slo', $limits, qw(--budget 40
	--output-json rate.json));
check_run('a rate', $run, { status => 0, out => [
	'Searching for the largest request rate with p90_ttft_ms<20, mean_e2el_ms<=400 and at most 1 % ' .
	'failed requests.', 'Without load: mean E2EL *', 'Saturated: * requests/s with * request* at once.',
	'Bracket 1: *', 'About * requests more for +-20 % at this load*',
	'Capacity: * requests/s, 95 % interval [*] (+-* %).', 'Limiting factor: p90_ttft_ms<20. *',
	'Safe to configure: * requests/s, the lower end (--request-rate *).', 'Spent: *'] });
my $found = json_of(slurp('rate.json'))->{capacity};
my $truth = truth(0.020);
my ($low, $high) = @{ $found->{interval} };
my $doubted = $found->{levels_degraded} + $found->{levels_invalid};
# A busy machine serves less than the queue would, and delays the client: then the answer says so.
sub is_doubted {
	my ($c) = @_;
	my $levels = grep { $_->{kind} eq 'level' } @{$c->{points}};
	return 3 * ($c->{levels_degraded} + $c->{levels_invalid}) > $levels;
}
ok(is_doubted($found) || ($low < 1.1 * $truth && $high > 0.7 * $truth),
	sprintf('[%.1f, %.1f] holds what the queue carries, %.1f, or is doubted', $low, $high, $truth));
is(scalar($run->{out} =~ /^(?:\d+ of the )?\d+ (?:measuring )?levels? (?:was|were) (?:DEGRADED|INVALID)/m),
	$doubted ? 1 : '', 'and the answer says of how many');
is($found->{safe}, $low, 'the lower end is the safe one');
is($found->{binding}, 'p90_ttft_ms<20', 'the limit that binds');
ok($found->{slope} > 0, 'and how steep it is');
my @levels = grep { $_->{kind} eq 'level' } @{ $found->{points} };
ok(@levels >= 2, 'levels around it');
is(scalar @{ $found->{limits} }, 3, 'limits, and that on failures');
my @share = map { $_->{limits}[0] } @{ $found->{curve} };
ok($share[0] < 0.1 && $share[-1] > 0.1, 'the curve crosses the limit');

# ---- the same queue at a fixed rate ----

my @at = qw(--slo p90_ttft_ms<20 --progress none --num-prompts);
# A limit that stalls of a busy machine do not break, either.
check_run('a rate that holds', find($sim->{url}, @at, 400, '--request-rate', 40, '--slo', 'p90_ttft_ms<2000'),
	{ status => 0, out => [
	'40 requests/s holds within the limits, by * requests after the warm-up:',
	'*p90_ttft_ms<2000: * of * requests are beyond it (* %, 10 % allowed): holds.'] });
check_run('one that does not', find($sim->{url}, @at, 1500, '--request-rate', 300), { status => 3, out => [
	'300 requests/s does not hold within the limits, by * requests after the warm-up:',
	'*p90_ttft_ms<20: * requests are beyond it (* %, 10 % allowed): does not hold.'] });
check_run('a rate of conversations', find($sim->{url}, @at, 5, '--request-rate', 40, qw(--backend openai-chat
	--endpoint /v1/chat/completions --multi-turn)), { status => 3, out => [
	'Whether 40 conversations/s holds within the limits cannot be decided yet, by * request*:'] });
check_run('too few requests', find($sim->{url}, @at, 10, '--request-rate', 40), { status => 3, out => [
	'Whether 40 requests/s holds within the limits cannot be decided yet, by * request* after the *:',
	'*p90_ttft_ms<20: * not enough requests*'] });

check_run('answers of one token', find($sim->{url}, @at, 10, '--request-rate', 40, '--slo',
	'p90_ttft_ms<20000,mean_tpot_ms<20', '--random-output-len', 1), { status => 3,
	out => ['Whether *', '*mean_tpot_ms<20: no answer has a value of it.'],
	not_out => ['*more request*'] });

# ---- Ctrl-C gives what is known ----

my $cut = begin(args => ['bench', 'serve', '--base-url', $sim->{url}, @model, @lengths,
	qw(--disable-tqdm --find-max-rate --slo p90_ttft_ms<20 --output-json cut.json)], seconds => 120);
wait_for('the first levels', sub { (slurp($cut->{out_path}) // '') =~ /^Saturated/m });
kill 'INT', $cut->{pid};
check_run('interrupted', finish($cut), { status => 130, out => ['No capacity yet*'] });
is(json_of(slurp('cut.json'))->{capacity}{outcome}, 'stopped', 'also in the file');

# ---- limits that nothing meets ----

check_run('without load', find($sim->{url}, @fast, qw(--find-max-rate --slo mean_e2el_ms<1)), { status => 1,
	out => ['mean_e2el_ms<1 cannot be met even without load: one request at a time breaks it.'] });

# ---- a server that answers 503 beyond four at once ----

my $port = free_port();
my $shed = begin_server('--ms', 20);
sub begin_server {
	my $pid = fork // die;
	return $pid if $pid;
	exec $^X, "$FindBin::Bin/shedding_server.pl", '--port', $port, @_;
}
sub is_up { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }
wait_for('the server', \&is_up);
$run = find("http://127.0.0.1:$port", @fast, qw(--find-max-concurrency --slo p90_e2el_ms<5000 --budget 40
	--output-json shed.json));
check_run('a server that sheds load', $run, { status => 0, out => ['Limiting factor: *',
	'Safe to configure: * requests at once*'] });
$found = json_of(slurp('shed.json'))->{capacity};
is($found->{capacity}, 4, "it takes four");

# ---- a server that dies ----

my $dying = begin(args => ['bench', 'serve', '--base-url', "http://127.0.0.1:$port", @model, @lengths,
	qw(--disable-tqdm --find-max-concurrency --slo p90_e2el_ms<5000)], seconds => 120);
sleep 6;
kill 'KILL', $shed;
waitpid $shed, 0;
check_run('a server that dies', finish($dying), { status => 1, err => '*127.0.0.1*' });
my $began = time;
check_run('a server that is down', find("http://127.0.0.1:$port", qw(--find-max-rate --slo p99_ttft_ms<5)),
	{ status => 1, err => '*cannot connect to*' });
ok(time - $began < 30, 'is known soon');

# ---- what is refused ----

for (['no limits', '*--find-max-rate needs --slo*'],
	['a key', "*--slo: 'p99_tft_ms' is not a limit on requests*", '--slo', 'p99_tft_ms<3'],
	['a total', '*--slo: request_throughput belongs to a whole run*', '--slo', 'request_throughput>3'],
	['tokens', '*--slo: p99_itl_ms is taken over tokens*', '--slo', 'p99_itl_ms<3'],
	['a contradiction', '*--slo: p99_ttft_ms is limited from below*', '--slo',
	'p99_ttft_ms<200,p99_ttft_ms>300'],
	['one key twice', '*--slo: p99_ttft_ms is limited twice*', '--slo', 'p99_ttft_ms<2,p99_ttft_ms<3'],
	['a unit', "*'200ms' in 'p99_ttft_ms<200ms' is not a number*", '--slo', 'p99_ttft_ms<200ms'],
	['no number', "*'p99_ttft_ms' is not a limit;*", '--slo', 'p99_ttft_ms'],
	['zero', '*the limit of p99_ttft_ms is 0;*', '--slo', 'p99_ttft_ms<0'],
	['p100', '*p100_ttft_ms: expected a percentile from 1 to 99.99*', '--slo', 'p100_ttft_ms<5'],
	['a rate', '*--request-rate is what --find-max-rate looks for*', '--slo', 'p99_ttft_ms<5',
	'--request-rate', 3],
	['a cap', '*--max-concurrency keeps requests in the client*', '--slo', 'p99_ttft_ms<5',
	'--max-concurrency', 3],
	['repeats', '*--num-runs has no meaning in a search*', '--slo', 'p99_ttft_ms<5', '--num-runs', 3],
	['both', '*cannot be used together*', '--slo', 'p99_ttft_ms<5', '--find-max-concurrency']) {
	my ($name, $err, @args) = @$_;
	check_run("refused: $name", find('http://127.0.0.1:9', '--find-max-rate', @args),
		{ status => 2, err => $err, not_out => ['Searching*'] });
}

# ---- the same as a sweep, on a server that runs ----

my $client = join ' ', $program, 'bench serve', @model, @lengths, '--request-rate 3';
$run = run(args => ['bench', 'sweep', 'serve_sla', '--base-url', $sim->{url}, '--bench-cmd', $client,
	'--sla-params', '[{"p90_ttft_ms": "<20"}]', @fast[0 .. 3], qw(--budget 90 -e swept)],
	seconds => 300);
check_run('a sweep', $run, { status => 0, out => ['[SLA START]', 'SLA criteria: p90_ttft_ms<20.00*',
	'Capacity: * requests/s, 95 % interval *', '[SLA END]'], exists => ['results/swept/capacity.json'] });
my $swept = json_of(slurp('results/swept/capacity.json'))->[0];
($low, $high) = @{ $swept->{interval} };
ok(is_doubted($swept) || ($low < 1.1 * $truth && $high > 0.7 * $truth),
	"finds the same, or is doubted: [$low, $high]");
$run = run(args => ['bench', 'sweep', 'serve_sla', '--base-url', $sim->{url}, '--bench-cmd', $client,
	'--sla-params', '[{"p90_ttft_ms": "<20"}]', '--resume', 'swept'], seconds => 60);
check_run('resumed', $run, { status => 0, out => ['Found existing results.'], not_out => ['Bracket*'] });
check_run('a sweep of another key', run(args => ['bench', 'sweep', 'serve_sla', '--base-url', $sim->{url},
	'--bench-cmd', $client, '--sla-search', 'capacity', '--sla-params', '[{"request_throughput": ">3"}]',
	'-e', 'no']), { status => 2, err => '*--sla-params: request_throughput belongs to a whole run*' });

done_testing();
