#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --dashboard: a run that reports while it is measured. What the dashboard has in the end is what the
# local result says; a dashboard that refuses, dies or comes back changes neither result nor status; a
# client that dies leaves a lost run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(abs_path);
use Dash;
use Test::More;

my $scratch = abs_path('.');
my %own = (XDG_STATE_HOME => "$scratch/state"); # where a dashboard keeps the token that it makes
my $sim = start_sim(qw(--ttft-ms 20 --itl-ms 4));
my @load = (qw(bench serve --base-url), $sim->{url}, @{$tiny{model}}, qw(--dataset-name random
	--random-input-len 8 --random-output-len 32 --temperature 0 --disable-tqdm --max-concurrency 4));
# Some seconds long.
my @long = (@load, qw(--num-prompts 80));

sub items { return $_[0]->ask('GET', '/api/live', undef, @_[1 .. $#_])->{json}{items} }

sub warnings_of { return scalar(() = $_[0]{err} =~ /--dashboard:/g) }

sub result_of {
	my ($file) = @_;
	return json_of(slurp($file));
}

# The figures of a run of the store, next to those of the file.
sub same_figures {
	my ($name, $d, $run, $file) = @_;
	my $values = $d->ask('GET', "/api/data/experiments/$run")->{json}{values};
	my $result = result_of($file);
	my @keys = grep { /^(?:mean|median|std|p99)_[a-z0-9]+_ms$|throughput$|^(?:completed|failed)$/ }
		keys %{ $result->{results} // $result };
	my %file = map { $_ => ($result->{results} // $result)->{$_} + 0 } @keys;

	cmp_ok(scalar @keys, '>', 10, "$name: there are figures");
	is_deeply({ map { $_ => ($values->{$_} // 'none') + 0 } @keys }, \%file,
		"$name: the store has the figures of the local result");
}

# ---- to the end ----

my $d = start_dashboard(qw(--live-lost 1));
my $run = begin(args => [@long, '--dashboard', $d->{url}, '--output-json', 'one.json']);
my (@seen, @curves);

wait_for('samples', sub {
	my ($item) = @{items($d)};
	push @seen, $item if $item && $item->{done} && $item->{done} < 80;
	return @seen;
});
$run = finish($run);
check_run('a run that reports', $run, { status => 0, out => ["Dashboard: $d->{url}/runs/*"] });
is($seen[0]{state}, 'running', 'it is seen while it runs');
is_deeply([@{$seen[0]}{qw(name kind total failed)}], ['sim, random, concurrency 4', 'bench serve', 80, 0],
	'by its name and size');
my ($item) = @{items($d)};
is_deeply([@{$item}{qw(state done total failure)}], ['done', 80, 80, undef],
	'it has ended, with its last sample');
same_figures('bench serve', $d, $item->{run}, 'one.json');
my $live = $d->ask('GET', "/api/live/$item->{id}")->{json}{series};
my %track = map { $_->{key} => $_ } @{$live->{tracks}};
cmp_ok(scalar @{$track{output_tokens_per_s}{y}}, '>=', 2, 'there are curves');
my $tokens = 0;
$tokens += $_ // 0 for @{$track{output_tokens_per_s}{y}};
cmp_ok($tokens / @{$track{output_tokens_per_s}{y}}, '>', 100, 'of tokens');
my ($ttft) = sort { $a <=> $b } grep { defined } @{$track{ttft_ms}{y}};
cmp_ok($ttft, '>=', 19, 'and of TTFT, as the server makes it');

# ---- a dashboard that is not there, refuses, ends, comes back ----

my $plain = run(args => [@load, qw(--num-prompts 8 --output-json plain.json)]);
for (['nothing listens', 'http://127.0.0.1:1'], ['it is none', $sim->{url}]) {
	my ($name, $url) = @$_;
	my $got = run(args => [@load, qw(--num-prompts 8 --output-json away.json), '--dashboard', $url]);

	is($got->{status}, $plain->{status}, "$name: the exit status is the same");
	is(warnings_of($got), 1, "$name: one warning") or diag $got->{err};
	like($got->{err}, qr/does not show this run \(.+\); the run goes on without it/,
		"$name: it says why");
	is(result_of('away.json')->{completed}, 8, "$name: the result is there");
	unlink 'away.json';
}
check_run('an address that is none', run(args => [@load, qw(--num-prompts 8 --dashboard host:80)]),
	{ status => 2, err => "*--dashboard: the dashboard 'host:80': expected a URL*" });

my $other = start_dashboard();
$run = begin(args => [@long, '--dashboard', $other->{url}, '--output-json', 'killed.json']);
wait_for('a sample', sub { return grep { $_->{done} } @{items($other)} });
kill 'KILL', $other->{pid};
$run = finish($run);
is($run->{status}, 0, 'a dashboard that is killed: the run ends as it would');
is(warnings_of($run), 1, 'with one warning') or diag $run->{err};
is(result_of('killed.json')->{completed}, 80, 'and its whole result');

my $first = start_dashboard();
$run = begin(args => [@load, qw(--num-prompts 160), '--dashboard', $first->{url},
	'--output-json', 'back.json']);
wait_for('a sample', sub { return grep { $_->{done} } @{items($first)} });
$first->stop;
my $again = start_dashboard('--store', $first->{store}, '--listen', "127.0.0.1:$first->{port}");
$run = finish($run);
is($run->{status}, 0, 'a dashboard that is started again');
($item) = @{items($again)};
is($item->{state}, 'done', 'has the run again');
same_figures('after that', $again, $item->{run}, 'back.json');

# ---- tokens ----

my $kept = start_dashboard(MADE_TOKEN);
my %bearer = (Authorization => "Bearer $kept->{token}");
my @quick = (@load, qw(--num-prompts 8));
for (['the printed URL', "$kept->{url}/?token=$kept->{token}"], ['the variable', $kept->{url},
	PROFLLM_DASHBOARD_TOKEN => $kept->{token}], ['the kept token', $kept->{url}, %own]) {
	my ($name, $url, %env) = @$_;
	my $got = run(args => [@quick, '--dashboard', $url], env => \%env);

	check_run("$name gets in", $got, { status => 0, out => ["Dashboard: $kept->{url}/runs/*"] });
	unlike($got->{out} . $got->{err}, qr/$kept->{token}/, "$name: the token is not printed");
}
is(scalar @{items($kept, %bearer)}, 3, 'three runs');
my $out = run(args => [@quick, '--dashboard', "$kept->{url}/?token=wrong-token-of-nobody"]);
is($out->{status}, 0, 'a wrong token does not stop the run');
is(warnings_of($out), 1, 'it is one warning');
unlike($out->{err}, qr/wrong-token/, 'without the token');
like($out->{err}, qr/answered 401: the token is not one of this dashboard's\)/, 'which says why');

# ---- several runs ----

{
	my $got = run(args => [@quick, qw(--num-runs 2 --output-json several.json --dashboard), $d->{url}]);

	check_run('of several runs the result is stored', $got, { status => 0,
		out => ["Dashboard: $d->{url}/runs/*"] });
	my ($id) = $got->{out} =~ m{/runs/(\d+)};
	is($d->ask('GET', "/api/data/experiments/$id/document")->{json}{profllm}{runs}{count}, 2,
		'with the values of all');
}

# ---- a client that dies ----

$run = begin(args => [@long, '--dashboard', $d->{url}]);
wait_for('the run', sub { return grep { $_->{state} eq 'running' && $_->{done} } @{items($d)} });
my ($lost) = grep { $_->{state} eq 'running' } @{items($d)};
kill 'KILL', $run->{pid};
finish($run);
wait_for('it is lost', sub { return $d->ask('GET', "/api/live/$lost->{id}")->{json}{state} eq 'lost' });
ok(1, 'a client that dies leaves a lost run');

# ---- experiments ----

my $config = "server: { command: sim, model: sim, ttft_ms: 20, itl_ms: 4 }\n"
	. "benchmark: { dataset_name: random, tokenizer: sim, random_input_len: 8, random_output_len: 32,"
	. " num_prompts: 60, max_concurrency: 4 }\n";
spew('x.yaml', "name: quick\n$config");
$run = run(args => [qw(run --config x.yaml --output x.json --dashboard), $d->{url}]);
check_run('profllm run reports', $run, { status => 0, out => ["Dashboard: $d->{url}/runs/*"] });
($item) = @{items($d)};
is_deeply([@{$item}{qw(name kind state done total failure)}], ['quick', 'run', 'done', 60, 60, undef],
	'it has ended');
same_figures('run', $d, $item->{run}, 'x.json');

spew('k.yaml', "name: keyed\noutput: { dashboard: '$d->{url}' }\n$config");
is(run(args => [qw(run --config k.yaml --output k.json)])->{status}, 0, 'the key output.dashboard');
($item) = @{items($d)};
is_deeply([@{$item}{qw(name state)}], ['keyed', 'done'], 'does the same');
check_run('a key that is no address', run(args => [qw(run --config k.yaml --output k.json --set),
	'output.dashboard=nowhere']), { status => 2, err => "*output.dashboard: the dashboard 'nowhere'*" });

spew('s.yaml', "name: grid\n$config" . "matrix: { benchmark.max_concurrency: [2, 4] }\n");
for (['one after the other'], ['at once', qw(--jobs 2)]) {
	my ($name, @more) = @$_;
	my $before = @{items($d)};

	$run = run(args => [qw(run --config s.yaml --output s.json --dashboard), $d->{url}, @more],
		seconds => 120);
	is($run->{status}, 0, "a suite, $name") or diag $run->{err};
	my @new = @{items($d)};
	@new = @new[0 .. $#new - $before];
	is_deeply([sort map { "$_->{name} $_->{state} $_->{done}" } @new],
		['max_concurrency=2 done 60', 'max_concurrency=4 done 60'], "$name: each member reports");
	is(scalar(grep { $_->{run} } @new), 2, "$name: and is a run of the store");
	unlink 's.json';
}

done_testing();
