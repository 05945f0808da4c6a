#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench ab: two simulators under the same load in turn. What is asserted holds on a busy machine: a
# server whose steps are 10 % slower is never called better nor unchanged, equal ones never
# different, and whatever decides did so on equal work.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @model = @{ $tiny{model} };
my @lengths = qw(--random-input-len 16 --random-output-len 9 --temperature 0);
my @steady = qw(--request-rate 20 --block-seconds 2 --min-effect 5); # long gaps: noise is a small share
my @quick = qw(--request-rate 80 --block-seconds 0.5 --min-effect 5);

# The metric of a document by its name.
sub metric { my ($doc, $name) = @_; return (grep { $_->{name} eq $name } @{ $doc->{metrics} })[0] }

sub ab {
	my ($urls, @more) = @_;
	return run(args => ['bench', 'ab', (map { ('--base-url', $_) } @$urls), @model, @lengths,
		@more], seconds => 400);
}

# ---- a slower server ----

my $quick = start_sim(qw(--ttft-ms 50 --itl-ms 100 --requests a.jsonl));
my $slow = start_sim(qw(--ttft-ms 50 --itl-ms 110 --requests b.jsonl));

my $run = ab([$quick->{url}, $slow->{url}], @steady, qw(--metric mean_tpot_ms --max-pairs 40
	--output-json slow.json));
check_run('slower', $run, { status => 0, out => ['Pair 0 warmed the servers up and is not counted *',
	'Pair 1 (* first): mean_tpot_ms A *, B *', 'B is worse: mean_tpot_ms changes by +* %)*',
	'mean_ttft_ms *'] });
my $doc = json_of(slurp('slow.json'));
my $tpot = metric($doc, 'mean_tpot_ms');
is($tpot->{verdict}, 'worse', 'slower: the verdict');
ok($tpot->{low} > 0 && $tpot->{low} <= $tpot->{change} && $tpot->{change} <= $tpot->{high},
	"slower: $tpot->{change} lies in its interval, above 0");
is($doc->{ended_by}, 'decided', 'slower: it stopped by itself');
is($tpot->{pairs}, @{ $doc->{pairs} } - 1, 'slower: all pairs count but the first');
ok(!metric($doc, 'mean_ttft_ms')->{decides}, 'slower: another metric is shown and does not decide');

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

# ---- equal servers ----

my $same = start_sim(qw(--ttft-ms 50 --itl-ms 100 --seed 2));
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
	'Undecided: p99_ttft_ms *', '2 pairs in *, ended by: pair limit.'] });
$doc = json_of(slurp('closed.json'));
is(metric($doc, 'output_throughput')->{level}, 0.975, 'closed loop: two metrics share the error rate');
is($doc->{pairs}[1]{A}{requests}, $doc->{pairs}[2]{B}{requests}, 'closed loop: as many requests');
is($doc->{pairs}[1]{A}{requests}, $doc->{block_requests} - $doc->{block_requests_not_counted},
	'closed loop: the first requests are not counted');

# ---- Ctrl-C ----

my $begun = begin(args => ['bench', 'ab', '--base-url', $quick->{url}, '--base-url', $same->{url}, @model,
	@lengths, @quick, '--until-decided', '--output-json', 'cut.json'], seconds => 240);
my $deadline = time + 150;
until ((slurp($begun->{out_path}) // '') =~ /^Pair 1 /m || has_exited($begun->{pid}) ||
	time > $deadline) {
	select(undef, undef, undef, 0.05);
}
kill 'INT', $begun->{pid};
$run = finish($begun);
check_run('interrupted', $run, { status => 130, out => ['Undecided: mean_e2el_ms *',
	'*ended by: interrupted.'] });
is(json_of(slurp('cut.json'))->{ended_by}, 'interrupted', 'interrupted: the document says so');

# ---- what cannot be compared ----

my $failing = start_sim(qw(--ttft-ms 5 --itl-ms 1 --fault status=503:0.5));
$run = ab([$quick->{url}, $failing->{url}], @quick);
check_run('failures', $run, { status => 1, out => ['Not comparable: 0 of * requests failed on A, '
	. '* of * on B.', '*ended by: failing.'] });

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
sub command { my ($port, @more) = @_; return "$program sim --port $port --ttft-ms 20 @more" }
my ($one, $two) = (free_port(), free_port());

mkdir 'logs';
$run = served([command($one, '--itl-ms 20'), command($two, '--itl-ms 24 --seed 2')],
	qw(--request-rate 40 --block-seconds 1 --metric mean_tpot_ms --max-pairs 60 --fail-if worse
	--server-logs logs --output-json served.json));
check_run('servers of our own', $run, { status => 3, out => ['Starting server A.',
	"Server A answers at http://localhost:$one after *", "Server B answers at *:$two after *",
	'B is worse: mean_tpot_ms *', 'FAILED: mean_tpot_ms is worse by * %.'] });
ok(-e 'logs/a.log' && -e 'logs/b.log', 'servers of our own: their logs are kept');
$doc = json_of(slurp('served.json'));
like($doc->{B_command}, qr/--itl-ms 24/, 'servers of our own: the document names the command');
is(run(args => ['bench', 'serve', '--base-url', "http://127.0.0.1:$_", @model, '--num-prompts', 1,
	'--ready-check-timeout-sec', 0])->{status}, 1, "nothing is left on port $_") for $one, $two;

$begun = begin(args => ['bench', 'ab', '--serve-cmd', command($one, '--itl-ms 20'), '--serve-cmd',
	command($two, '--itl-ms 20'), @model, @lengths,
	qw(--request-rate 80 --block-seconds 0.5 --metric p99_ttft_ms --min-effect 0.01 --until-decided)],
	seconds => 240);
$deadline = time + 150;
until ((slurp($begun->{out_path}) // '') =~ /^Pair 1 /m || has_exited($begun->{pid}) ||
	time > $deadline) {
	select(undef, undef, undef, 0.05);
}
# The files of /proc have no size. The keeper's command names the server's, too, behind its own.
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
check_run('a server that dies', $run, { status => 1, err => '*server B (*): Server process * -9 *' });

# ---- a gate that passes, and one that cannot judge ----

$run = ab([$slow->{url}, $quick->{url}], @steady, qw(--metric mean_tpot_ms --max-pairs 40 --fail-if worse));
check_run('better', $run, { status => 0, out => ['B is better: *', 'passed: mean_tpot_ms is not worse.'] });
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
