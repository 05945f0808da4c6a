#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `init`: the file of each goal runs on the simulator as it is (with smaller loads), what is refused,
# and the questions on a terminal.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use POSIX ();
use Test::More;

my @goals = qw(run curve capacity compare nightly);

# ---- each goal's file ----

# How many documents, and smaller loads than the file has.
my %small = (
	run => [1, 'benchmark.num_prompts=6', 'benchmark.request_rate=50'],
	curve => [6, 'benchmark.duration=0.3'],
	capacity => [6, 'benchmark.duration=0.3'],
	compare => [6, 'benchmark.num_prompts=6'],
	nightly => [3, 'benchmark.num_prompts=6', 'benchmark.request_rate=50'],
);
my %begun;
for my $goal (@goals) {
	my $r = run(args => ['init', "$goal.yaml", '--server', 'sim', '--goal', $goal]);
	my $text = slurp("$goal.yaml") // '';
	my ($next) = $text =~ /^#   (profllm run --config \S+ --output.*)$/m;

	is($r->{status}, 0, "$goal: written") or diag($r->{err});
	is($r->{out}, "Wrote $goal.yaml.\nPlan: profllm run --config $goal.yaml --dry-run\nNext: $next\n",
		"$goal: what to do next is said, and is in the file");
	is(scalar(() = $text =~ /^# yaml-language-server: \$schema=\S+$/mg),
		($text =~ /\A# yaml-language-server/ ? 1 : 0), "$goal: a schema is in the first line alone");
	my $plan = run(args => ['run', '--config', "$goal.yaml", '--dry-run']);
	is($plan->{status}, 0, "$goal: its plan");
	is($plan->{err}, '', "$goal: which warns of nothing");
	my ($n, @set) = @{$small{$goal}};
	$begun{$goal} = begin(args => ['run', '--config', "$goal.yaml", '--output', "$goal.json",
		'--progress', 'none', '--set', @set], seconds => 120);
}
for my $goal (@goals) {
	my $r = finish($begun{$goal});
	my $whole = eval { json_of(slurp("$goal.json")) } || {};
	my @documents = $whole->{experiments} ? @{$whole->{experiments}} : ($whole);

	is($r->{status}, 0, "$goal: runs") or diag($r->{err}, substr $r->{out}, -2000);
	is(scalar(grep { ($_->{status} || '') eq 'completed' } @documents), $small{$goal}[0],
		"$goal: documents, all completed");
}
my $by = run(args => [qw(bench compare compare.json --by max_num_batched_tokens)]);
is($by->{status}, 0, 'compare: the next command works') or diag($by->{err});
like($by->{out}, qr/8192/, 'and compares the settings');

# What cron has to do with a night's results, also with those that did not keep the limits.
my ($after) = slurp('nightly.yaml') =~
	/^#   profllm run .* --output "\$\(date \+%F\)\.json"; kept=\$\?; (.*)$/m;
for my $kept (0, 3) {
	my $shell = "profllm() { '$ENV{PROFLLM}' \"\$@\"; }; kept=$kept; $after";
	local $ENV{XDG_DATA_HOME} = 'data';
	spew(POSIX::strftime('%F.json', localtime), slurp('nightly.json'));
	my $out = qx($shell);

	is($? >> 8, $kept ? 1 : 0, "nightly: exit status of the next commands, after $kept") or diag($out);
	like($out, qr/ 3 (?:new|duplicate)\b.*^p99_ttft_ms: .*^median_tpot_ms: /ms,
		'which add the results and judge them');
}

# ---- servers ----

my $url = run(args => [qw(init - --server http://127.0.0.1:8000 --goal run)]);
is($url->{status}, 0, 'a server that runs');
like($url->{out}, qr{^  url: http://127\.0\.0\.1:8000 }m, 'is named by its URL');
like($url->{out}, qr/^  # model: NAME /m, 'and reports its model');
unlike($url->{out}, qr/^  command:/m, 'nothing is started');
my $odd = run(args => ['init', '-', '--server', q(sh -c 'echo ${HOME} # "x"'), '--model', 'true',
	qw(--goal run)]);
spew('odd.yaml', $odd->{out});
my $shown = json_of(run(args => [qw(run --config odd.yaml --print-config)])->{out});
is($shown->[0]{given}{server}{command}, q(sh -c 'echo ${HOME} # "x"'), 'any text comes through');
is($shown->[0]{given}{server}{model}, 'true', 'also a word that YAML has for something else');

# ---- refused ----

spew('there.yaml', "mine\n");
mkdir 'folder';
my $ask = 'no terminal is available to ask for what is missing; add it, such as';
my @refused = (
	[['there.yaml', qw(--server sim --goal run)],
		'there.yaml exists already; --force replaces it, or name another file'],
	[['folder', qw(--server sim --goal run)], 'folder: is a folder; name a file in it'],
	[['a.json', qw(--server sim --goal run)],
		'a.json: expected a name that ends in .yaml, since JSON has no comments'],
	[["a\nb: c.yaml", qw(--server sim --goal run)],
		'FILE: expected a name without control characters, got one with them'],
	[['a.yaml'], "$ask --server sim --goal run"],
	[[qw(a.yaml --goal run)], "$ask --server sim"],
	[[qw(a.yaml --server sim)], "$ask --goal run"],
	[['a.yaml', '--server', 'vllm serve'],
		"$ask --model meta-llama/Llama-3.1-8B-Instruct --goal run"],
	[['a.yaml', '--server', 'vllm serve', '--model', '', '--goal', 'run'],
		'--model: expected the model that the server is to load, got an empty text'],
	[['a.yaml', '--server', '', '--goal', 'run', '--model', 'm'],
		'--server: expected a command or a URL, got an empty text'],
	[[qw(a.yaml --server localhost:8000 --model m --goal run)],
		'--server localhost:8000: expected a URL such as http://localhost:8000, or a command'],
	[[qw(a.yaml --server http://h:1 --goal compare)], '--goal compare: it changes settings of the '
		. 'server, which must be started for that; give --server a command, or compare two servers '
		. 'that run with profllm bench ab'],
	[['a.yaml', '--server', q(vllm 'serve), '--model', 'm', '--goal', 'run'],
		q(--server vllm 'serve: No closing quotation)],
	[[qw(a.yaml --server ftp://h --goal run)],
		"a.yaml:11:8: server.url: expected http://... or https://..., got 'ftp://h'; "
		. 'nothing was written'],
	[[qw(a.yaml --server sim --goal race)],
		"--goal: expected one of run, curve, capacity, compare, nightly, got 'race'"],
);
for my $row (@refused) {
	my ($args, $want) = @$row;
	my $r = run(args => ['init', @$args], in => '');

	is($r->{err}, "profllm init: $want\n", $want);
	is($r->{status}, 2, 'which is the user\'s mistake');
}
is(slurp('there.yaml'), "mine\n", 'what is there stays');
ok(!-e 'a.yaml', 'and nothing is written');
is(run(args => [qw(init there.yaml --server sim --goal run --force)])->{status}, 0, '--force');
like(slurp('there.yaml'), qr/^server:$/m, 'replaces it');
my $nowhere = run(args => [qw(init no/such/a.yaml --server sim --goal run)]);
is($nowhere->{status}, 1, 'a folder that is not there is the world\'s');
like($nowhere->{err}, qr{no/such/a\.yaml}, 'and is named');

# ---- questions ----

SKIP: {
	my $why = no_script();
	skip $why, 10 if $why;
	my $asked = sub {
		my ($typed, @args) = @_;

		return run(command => ['script', '-qec', "PATH=/usr/bin:/bin $program init @args",
			'/dev/null'], in => $typed, seconds => 30);
	};
	my $r = $asked->("\n\n3\n", 'asked.yaml');
	is($r->{status}, 0, 'three answers') or diag($r->{out});
	like($r->{out}, qr{Server: .*\[sim\]: .*Model \[meta-llama/Llama-3\.1-8B-Instruct\]: }s,
		'asked in turn');
	like($r->{out}, qr/Goal \[run\]: /, 'of which two are what is in brackets');
	like(slurp('asked.yaml') // '', qr/^name: capacity$/m, 'a goal by its number');
	$r = $asked->("http://127.0.0.1:9\n\nrace\ncurve\n", 'asked2.yaml');
	is($r->{status}, 0, 'a wrong answer is asked again');
	like($r->{out}, qr/'race' is not a goal; type a number from 1 to 5 or a name\./, 'and why');
	like(slurp('asked2.yaml') // '', qr{^  url: http://127\.0\.0\.1:9 }m, 'a URL');
	$r = $asked->("x\nx\nx\nx\n", 'asked3.yaml', '--server', 'sim', '--model', 'm');
	is($r->{status}, 2, 'three wrong ones end it');
	like($r->{out}, qr/--goal: no answer; nothing was written/, 'with a sentence');
	ok(!-e 'asked3.yaml', 'and without a file');
}
done_testing();
