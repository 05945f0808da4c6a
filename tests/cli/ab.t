#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench ab: two simulators under the same load in turn. What is asserted holds on a busy machine: a
# server whose steps are a quarter quicker is never called worse nor unchanged, equal ones never
# different, and whatever decides did so on equal work. How small a difference is found, and how
# often wrongly, is shown by bench/ab and tests/unit/test_decide_paired.c.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @model = @{ $tiny{model} };
my @lengths = qw(--random-input-len 16 --random-output-len 9 --temperature 0);
my @steady = qw(--request-rate 25 --block-seconds 1); # and long gaps: noise is a small share
my @quick = qw(--request-rate 80 --block-seconds 0.5 --min-effect 5);

# The metric of a document by its name.
sub metric { my ($doc, $name) = @_; return (grep { $_->{name} eq $name } @{ $doc->{metrics} })[0] }

sub ab {
	my ($urls, @more) = @_;
	return run(args => ['bench', 'ab', (map { ('--base-url', $_) } @$urls), @model, @lengths,
		@more], seconds => 400);
}

# ---- a quicker server, and a gate that passes ----

my $slow = start_sim(qw(--ttft-ms 30 --itl-ms 40 --requests a.jsonl));
my $quick = start_sim(qw(--ttft-ms 30 --itl-ms 30 --requests b.jsonl));

my $run = ab([$slow->{url}, $quick->{url}], @steady, qw(--metric mean_tpot_ms --max-pairs 40
	--fail-if worse --output-json quicker.json));
check_run('quicker', $run, { status => 0, out => ['Pair 0 warmed the servers up and is not counted *',
	'Pair 1 (* first): mean_tpot_ms A *, B *', 'B is better: mean_tpot_ms changes by -* %)*',
	"A, the baseline: $slow->{url}", "B: $quick->{url}", 'mean_ttft_ms *',
	'passed: mean_tpot_ms is not worse.'] });
my $doc = json_of(slurp('quicker.json'));
my $tpot = metric($doc, 'mean_tpot_ms');
is($tpot->{verdict}, 'better', 'quicker: the verdict');
ok($tpot->{low} <= $tpot->{change} && $tpot->{change} <= $tpot->{high} && $tpot->{high} < 0,
	"quicker: $tpot->{change} lies in its interval, below 0");
is($doc->{ended_by}, 'decided', 'quicker: it stopped by itself');
is($tpot->{pairs}, @{ $doc->{pairs} } - 1, 'quicker: all pairs count but the first');
ok(!metric($doc, 'mean_ttft_ms')->{decides}, 'quicker: another metric is shown and does not decide');
check_run('its document is no run', run(args => [qw(ingest --store sqlite:ab.db quicker.json)]), {
	status => 1, out => ['invalid *quicker.json: * this is the answer of bench ab, *'] });

# ---- the same work on both sides, other work in each pair ----

sub sent {
	my ($path) = @_;
	return map { json_of($_) } grep { m{"/v1/completions"} } split /\n/, slurp($path);
}
my @a = sent('a.jsonl');
my @b = sent('b.jsonl');
is(scalar @a, scalar @b, 'both servers got as many requests');
my @prompts = map { json_of($_->{body})->{prompt} } @a;
is(join("\n", sort @prompts), join("\n", sort map { json_of($_->{body})->{prompt} } @b),
	'both servers got the same prompts');
# A salt is eight short words. The ready check of the first pair may have one more.
my %salt = map { join(' ', (split ' ', $_)[0 .. 7]) => 1 } @prompts;
my $pairs = @{ $doc->{pairs} };
ok(keys %salt == $pairs || keys %salt == $pairs + 1,
	"each of $pairs pairs begins its prompts with a salt of its own: " . keys %salt);

# ---- a metric that is not the same thing on both sides ----

my $bundles = start_sim(qw(--ttft-ms 30 --itl-ms 40 --tokens-per-event 4));
check_run('events of several tokens', ab([$slow->{url}, $bundles->{url}], qw(--max-concurrency 2
	--num-prompts 4 --metric mean_itl_ms --max-pairs 1)), { status => 0, out => ['Undecided: *',
	'Note: mean_itl_ms is DEGRADED in * of 2 blocks. The last reason: *'] });

check_run('answers of one token', ab([$slow->{url}, $bundles->{url}], qw(--max-concurrency 2
	--num-prompts 4 --metric mean_tpot_ms --max-pairs 1 --random-output-len 1)), { status => 1,
	out => ['mean_tpot_ms has no value. No answer has one; *'] });

# ---- equal servers ----

my $same = start_sim(qw(--ttft-ms 30 --itl-ms 30 --seed 2));
$run = ab([$quick->{url}, $same->{url}], @steady, qw(--metric mean_tpot_ms --min-effect 20
	--max-pairs 40 --output-json same.json));
check_run('equal', $run, { status => 0, out => ['No change above 20 %: mean_tpot_ms *'] });
$tpot = metric(json_of(slurp('same.json')), 'mean_tpot_ms');
is($tpot->{verdict}, 'no change', 'equal: the verdict');
ok($tpot->{is_below_min_effect}, 'equal: within the minimum effect');

# ---- a closed loop, two metrics, a limit of pairs ----

$run = ab([$quick->{url}, $same->{url}], qw(--max-concurrency 4 --block-seconds 0.5 --max-pairs 2
	--metric output_throughput --metric p99_ttft_ms --output-json closed.json));
check_run('closed loop', $run, { status => 0, out => ['Undecided: output_throughput *',
	'Undecided: p99_ttft_ms *', '2 pairs in *. The run ended because the limit of pairs '
	. 'was reached (--max-pairs).'] });
$doc = json_of(slurp('closed.json'));
is(metric($doc, 'output_throughput')->{level}, 0.975, 'closed loop: two metrics share the error rate');
is($doc->{pairs}[1]{A}{requests}, $doc->{pairs}[2]{B}{requests}, 'closed loop: as many requests');
is($doc->{pairs}[1]{A}{requests}, $doc->{block_requests} - $doc->{block_requests_not_counted},
	'closed loop: the first requests are not counted');

# ---- limits that end it early ----

$run = ab([$quick->{url}, $same->{url}], @quick, qw(--max-minutes 0.001));
check_run('no time for a pair', $run, { status => 0, out => ['Undecided: the run ended before the first '
	. 'pair that counts, *', '0 pairs in *. The run ended because another pair would have '
	. 'passed the time limit (--max-minutes).'] });

# ---- what cannot be compared ----

my $failing = start_sim(qw(--ttft-ms 5 --itl-ms 1 --fault status=503:0.5));
$run = ab([$quick->{url}, $failing->{url}], @quick);
check_run('failures', $run, { status => 1, out => ['Not comparable: 0 of * requests failed on A, '
	. '* of * on B.', 'The first request that failed on B: Service Unavailable',
	'*The run ended because too many requests failed.'] });

my $short = start_sim(qw(--ttft-ms 5 --itl-ms 5 --output-len 6));
$run = ab([$quick->{url}, $short->{url}], @quick, qw(--max-pairs 1
	--omit-body-keys ignore_eos));
check_run('other work', $run, { status => 1, out => ['Not comparable: the answers have 9.0 tokens on '
	. 'A and 6.0 on B. --ignore-eos *'] });

my $dead = start_sim(qw(--ttft-ms 5 --itl-ms 5 --fault status=503));
$run = ab([$quick->{url}, $dead->{url}], @quick);
check_run('all fail', $run, { status => 1, err => "*bench ab: $dead->{url}: *503*" });

my $port = free_port();
$run = ab(["http://127.0.0.1:$port", $quick->{url}], @quick);
check_run('no server', $run, { status => 1, err => "*127.0.0.1:$port*" });

# ---- servers that are started ----

sub served {
	my ($commands, @more) = @_;
	return run(args => ['bench', 'ab', (map { ('--serve-cmd', $_) } @$commands), @model, @lengths,
		@more], seconds => 400);
}
sub command { my ($port, @more) = @_; return "$program sim --port $port --ttft-ms 10 @more" }
my ($one, $two) = (free_port(), free_port());

mkdir 'logs';
$run = served([command($one, '--itl-ms 30'), command($two, '--itl-ms 40 --seed 2')], @steady,
	qw(--metric mean_tpot_ms --max-pairs 40 --fail-if worse --server-logs logs
	--output-json served.json));
check_run('servers of our own', $run, { status => 3, out => ['Starting server A.',
	"Server A answers at http://localhost:$one after *", "Server B answers at *:$two after *",
	'B is worse: mean_tpot_ms *', 'FAILED: mean_tpot_ms is worse by * %.'] });
ok(-e 'logs/a.log' && -e 'logs/b.log', 'servers of our own: their logs are kept');
$doc = json_of(slurp('served.json'));
like($doc->{B_command}, qr/--itl-ms 40/, 'servers of our own: the document names the command');
# begun(pattern, arguments...): servers of our own, up to a line on standard output.
sub begun {
	my ($line, @args) = @_;
	my $begun = begin(args => ['bench', 'ab', (map { ('--serve-cmd', command($_, '--itl-ms 1')) } $one,
		$two), @model, @lengths, qw(--metric p99_ttft_ms --min-effect 0.01), @args], seconds => 240);
	my $deadline = time + 150;

	until ((slurp($begun->{out_path}) // '') =~ /^$line/m || has_exited($begun->{pid}) ||
		time > $deadline) {
		select(undef, undef, undef, 0.02);
	}
	return $begun;
}
sub is_free {
	my ($name) = @_;

	is(run(args => ['bench', 'serve', '--base-url', "http://127.0.0.1:$_", @model,
		qw(--num-prompts 1 --ready-check-timeout-sec 0)])->{status}, 1,
		"$name: nothing is left on port $_") for $one, $two;
}
is_free('servers of our own');

# Blocks of a few milliseconds: shorter than the progress in which a signal is seen.
for my $signal (qw(INT TERM)) {
	my $begun = begun('Pair 1 ', qw(--max-concurrency 20 --num-prompts 20 --until-decided --fail-if worse
		--output-json cut.json));

	kill $signal, $begun->{pid};
	$run = finish($begun);
	check_run("SIG$signal", $run, { status => 130, out => ['Undecided: p99_ttft_ms *',
		'*The run ended because it was interrupted.'], not_out => ['FAILED*', 'passed*'] });
	$doc = json_of(slurp('cut.json'));
	is($doc->{ended_by}, 'interrupted', "SIG$signal: the document says so");
	cmp_ok(@{ $doc->{pairs} }, '>', 1, "SIG$signal: what was measured is kept");
	is_free("SIG$signal");
	unlink 'cut.json';
}
my $begun = begun('Starting server B', qw(--request-rate 20 --num-prompts 100000));
kill 'INT', $begun->{pid};
check_run('Ctrl-C before a pair', finish($begun), { status => 130,
	err => 'profllm bench ab: interrupted before a pair was measured' });
is_free('Ctrl-C before a pair');

$begun = begun('Pair 1 ', qw(--request-rate 80 --block-seconds 0.5 --until-decided --metric mean_tpot_ms
	--extra-body), '{"n": 2}'); # which makes TPOT DEGRADED
# The files of /proc have no size. The keeper's command includes the server's, after its own.
sub command_of {
	open my $f, '<', "/proc/$_[0]/cmdline" or return '';
	local $/;
	return <$f> // '';
}
my ($victim) = grep { command_of($_) =~ /^[^\x00]*profllm\x{0}sim\x{0}--port\x{0}$two\x{0}/ }
	map { m{(\d+)} } glob '/proc/[0-9]*';
ok($victim, 'a server that dies: it was found');
kill $victim ? ('KILL', $victim) : ('INT', $begun->{pid});
$run = finish($begun);
check_run('a server that dies', $run, { status => 1, out => ['Note: mean_tpot_ms is DEGRADED *'],
	not_out => ['*The last reason: The run was interrupted*'],
	err => '*server B (*): Server process * -9 *' });

# ---- a gate that cannot judge ----

my @short = (@quick, qw(--max-pairs 1 --fail-if worse));
check_run('undecided', ab([$quick->{url}, $same->{url}], @short), { status => 3,
	out => ['FAILED: whether mean_e2el_ms is worse cannot be judged (undecided).'] });
check_run('undecided, allowed', ab([$quick->{url}, $same->{url}], @short, '--allow-unjudged'), {
	status => 0, out => ['passed: whether mean_e2el_ms is worse cannot be judged (undecided), *'] });

# ---- mistakes ----

for (
	['one port', [command($one), command($one)], '*both servers would listen on port*'],
	['one command', [command($one)], '*--serve-cmd: expected two servers, got 1*'],
	['no command', [command($one), ''], '*--serve-cmd of server B: the command is empty*'],
) {
	my ($name, $commands, $err) = @$_;

	check_run($name, served($commands, @quick), { status => 2, err => $err });
}
check_run('URLs and commands', served([command($one), command($two)], @quick, '--base-url',
	$quick->{url}), { status => 2, err => '*give one of the two, twice*' });
check_run('a value of bench serve, before servers start', served([command($one), command($two)], @quick,
	'--burstiness', '-1'), { status => 2, err => '*--burstiness*' });

for (
	['one server', [$quick->{url}], [@quick], '*--base-url: expected two servers, got 1*'],
	['the same server', [($quick->{url}) x 2], [@quick], '*a server cannot be compared with itself'],
	['the same server, spelled otherwise', [$quick->{url}, "$quick->{url}/"], [@quick],
		'*a server cannot be compared with itself'],
	(map { ["no URL of $_->[0]", $_->[1], [@quick], "*--base-url: 'nope' has no scheme; *"] }
		['A', ['nope', $quick->{url}]], ['B', [$quick->{url}, 'nope']]),
	['no limit and a limit', [$quick->{url}, $same->{url}], [@quick, qw(--until-decided --max-minutes 5)],
		'*--until-decided means no time limit, and --max-minutes is one; *'],
	['logs of servers that run', [$quick->{url}, $same->{url}], [@quick, qw(--server-logs logs)],
		'*--server-logs is about servers that are started; *'],
	['no prompts', [$quick->{url}, $same->{url}], [@quick, qw(--num-prompts 0)],
		'*--num-prompts: expected at least 1, got 0'],
	['a search', [$quick->{url}, $same->{url}], [@quick, '--find-max-rate'],
		'*--find-max-rate has no meaning in bench ab*'],
	['no such metric', [$quick->{url}, $same->{url}], [@quick, '--metric', 'speed'],
		'*--metric speed: expected output_throughput*'],
	['a metric twice', [$quick->{url}, $same->{url}], [@quick, ('--metric', 'mean_tpot_ms') x 2],
		'*--metric mean_tpot_ms is given twice'],
	['no load', [$quick->{url}, $same->{url}], [], '*--request-rate: bench ab needs a load that lasts*'],
	['an option of a single run', [$quick->{url}, $same->{url}], [@quick, '--save-result'],
		'*--save-result has no meaning in bench ab*'],
	['a value of bench serve', [$quick->{url}, $same->{url}], [@quick, '--burstiness', '-1'],
		'*--burstiness*'],
) {
	my ($name, $urls, $args, $err) = @$_;

	check_run($name, ab($urls, @$args), { status => 2, err => $err });
}

stop_all();
done_testing();
