#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# bench prioritization in the simulated engine and on a simulated server: draws (P1), upstream's line
# and keys, classes, what priorities cost; what is refused.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

my @verb = qw(bench prioritization);
my @sim = (@verb, qw(--backend sim --model sim --scheduling-policy priority));
my @hi = qw(--input-len 4 --output-len 5 --num-prompts 10);
my @upstream = qw(elapsed_time num_requests total_num_tokens requests_per_second tokens_per_second);

sub near {
	my ($name, $got, $expected) = @_;

	return fail("$name: there is no such value") unless $got && $expected;
	return cmp_ok(abs($got - $expected), '<=', 1e-6 * abs $expected, $name);
}

# ---- in an engine ----

my $r = run(args => [@sim, @hi, qw(--output-json r.json --baseline)]);
is($r->{status}, 0, 'a run') or diag($r->{err});
like($r->{out}, qr{^Throughput: \d+\.\d\d requests/s, \d+\.\d\d tokens/s$}m, 'upstream\'s line');
my $text = slurp('r.json');
my $j = json_of($text);
is("@{[keys_of($text)]}", "@upstream profllm", 'upstream\'s keys, then ours');
is_deeply([@$j{qw(num_requests total_num_tokens)}], [10, 90], 'tokens as they were requested');
near('requests in a second', $j->{requests_per_second}, 10 / $j->{elapsed_time});
near('tokens in a second', $j->{tokens_per_second}, 90 / $j->{elapsed_time});
my $ours = $j->{profllm};
is($ours->{output_tokens}, 50, 'tokens as they are');
isnt($ours->{prompt_tokens}, 40, 'of prompts, too: hihihi is not four');
is_deeply([map { [@$_{qw(priority requests completed)}] } @{$ours->{priorities}}], [[0, 5, 5], [1, 5, 5]],
	'P1: five of each');
is_deeply([map { [@$_{qw(priority requests completed)}] } @{$ours->{baseline}{priorities}}],
	[[0, 5, 5], [1, 5, 5]], 'the same classes without priorities');
for my $i (0, 1) {
	my ($cost, $with, $without) = ($ours->{priority_cost}[$i], $ours->{priorities}[$i],
		$ours->{baseline}{priorities}[$i]);
	is($cost->{priority}, $i, "cost of class $i");
	near("$_ of class $i: its median over that of the same requests", $cost->{$_},
		$with->{"${_}_ms"}{p50} / $without->{"${_}_ms"}{p50}) for qw(ttft tpot e2el);
}
like($r->{out},
	qr{^Priority\ 1\ requests/failed:\ +5\ /\ 0\ *\n.*^Priority\ 1\ TTFT\ p50/p99/max\ \(ms\):.*
	^-+Priority\ Cost-+\n.*
	^Priority\ 0\ TTFT/TPOT/E2EL\ \(times\):\ +[\d.]+\ /\ [\d.]+\ /\ [\d.]+\ *$}msx,
	'the report has classes and costs');

# What the engine is handed: a worker that writes down its questions.
spew('worker.pl', <<'END');
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
open my $fd, '+<&=', $ENV{PROFLLM_WORKER_FD} or die;
open my $log, '>>', 'asked' or die;
sub tell_it { my $t = encode_json($_[0]); syswrite $fd, pack('N', length $t) . $t }
sub take { my ($n, $t) = ($_[0], ''); while (length $t < $n) { sysread($fd, $t, $n - length $t,
	length $t) or exit 0 } return $t }
tell_it({ type => 'hello', protocol => 1, engine => 'test', version => '1', features => [@ARGV] });
my @held;
while (1) {
	my $q = decode_json(take(unpack 'N', take(4)));
	my $began = int(clock_gettime(CLOCK_MONOTONIC) * 1e9);
	my %a = (id => $q->{id}, type => 'ok');
	if ($q->{type} eq 'put') {
		@held = () if $q->{is_first};
		push @held, @{$q->{requests}};
		$a{n} = @held;
	} elsif ($q->{type} eq 'generate') {
		print $log encode_json({ run => $q, requests => \@held }), "\n";
		$log->flush;
		%a = (%a, prompt_tokens => [map { 4 } @held],
			output_tokens => [map { $_->{output_len} } @held]);
	}
	select undef, undef, undef, 0.001;
	tell_it({ %a, began_ns => $began, ended_ns => int(clock_gettime(CLOCK_MONOTONIC) * 1e9) });
	exit 0 if $q->{type} eq 'shutdown';
}
END
my @worker = (@verb,
	qw(--backend worker --model sim --tokenizer sim --scheduling-policy priority --worker-cmd));
$r = run(args => [@worker, "$^X worker.pl priority", @hi, qw(--n 2 --disable-detokenize --baseline)]);
is($r->{status}, 0, 'another engine') or diag($r->{err});
my @asked = lines_of('asked');
is_deeply([map { $_->{priority} } @{$asked[0]{requests}}], [1, 1, 0, 0, 1, 0, 1, 0, 0, 1], 'P1: priorities');
is_deeply([map { "$_->{prompt} $_->{output_len}" } @{$asked[0]{requests}}], [('hihihi 5') x 10],
	'P1: prompts');
is_deeply([map { $_->{priority} } @{$asked[1]{requests}}], [(undef) x 10], 'the baseline has no priorities');
is_deeply([map { $_->{prompt} } @{$asked[1]{requests}}], [map { $_->{prompt} } @{$asked[0]{requests}}],
	'and the same prompts');
is_deeply({ map { $_ => 0 + $asked[0]{run}{$_} } qw(n temperature top_p ignore_eos detokenize) },
	{ n => 2, temperature => 1, top_p => 1, ignore_eos => 1, detokenize => 0 },
		'sampled as upstream does');
check_run('an engine without priorities', run(args => [@worker, "$^X worker.pl chat", @hi]), { status => 1,
	err => 'profllm bench prioritization: the worker cannot serve requests by priority' });

# Conversations: lengths of their own, as many as there are.
spew('talks.json', JSON::PP->new->encode([map { { conversations => [{ value => "what is number $_, please?" },
	{ value => "it is number $_ of all" }] } } 1 .. 12]));
$r = run(args => [@sim, qw(--dataset talks.json --num-prompts 100 --output-json talks-result.json)]);
is($r->{status}, 0, 'conversations') or diag($r->{err});
$j = json_of(slurp('talks-result.json'));
is($j->{num_requests}, 12, 'no request is repeated');
is($j->{total_num_tokens}, $j->{profllm}{prompt_tokens} + $j->{profllm}{output_tokens},
	'their tokens are counted');
ok(!exists $j->{profllm}{priority_cost}, 'no cost without --baseline');

# ---- on a server ----

my $server = start_sim(qw(--tokenizer sim --requests sent.jsonl --scheduling-policy priority));
$r = run(args => [@verb, '--base-url', $server->{url}, qw(--model sim --tokenizer sim --progress none
	--ready-check-timeout-sec 0 --baseline --output-json online.json), @hi]);
is($r->{status}, 0, 'a server') or diag($r->{err});
unlike($r->{err}, qr/more than once/, 'an option given once is not said to be given twice');
stop_all();
my @bodies = map { ref $_->{body} ? $_->{body} : json_of($_->{body}) }
	grep { ($_->{path} // $_->{target} // '') =~ /completions/ } lines_of('sent.jsonl');
is(scalar(@bodies), 20, 'both runs were sent');
is(scalar(grep { defined $_->{priority} } @bodies[0 .. 9]), 10, 'the first with priorities');
is(scalar(grep { ($_->{priority} // 0) == 1 } @bodies), 5, 'five of class 1');
is(scalar(grep { defined $_->{priority} } @bodies[10 .. 19]), 0, 'the second without');
is_deeply({ map { $_ => $bodies[0]{$_} } qw(prompt max_tokens temperature top_p ignore_eos) },
	{ prompt => 'hihihi', max_tokens => 5, temperature => 1, top_p => 1, ignore_eos => JSON::PP::true },
	'requests as the script makes them');
$text = slurp('online.json');
$j = json_of($text);
is("@{[keys_of($text)]}", "@upstream profllm", 'the same file');
is_deeply([@$j{qw(num_requests total_num_tokens)}], [10, 90], 'of what was asked for');
is_deeply([map { $_->{requests} } @{$j->{profllm}{priorities}}, @{$j->{profllm}{baseline}{priorities}}],
	[5, 5, 5, 5], 'both runs are split');
for (qw(ttft e2el)) {
	my ($with, $without) = map { $_->[1] } $j->{profllm}{priorities}, $j->{profllm}{baseline}{priorities};

	near("$_ of class 1", $j->{profllm}{priority_cost}[1]{$_},
		($with->{"${_}_ms"}{p50} // 0) / ($without->{"${_}_ms"}{p50} || 1));
}

# ---- what is refused, and what is said ----

my $both = 'without --dataset both --input-len and --output-len are needed';
for my $row ([$both], [$both, qw(--input-len 4)], [$both, qw(--base-url http://127.0.0.1:1)],
	['--input-len is for runs without --dataset*', qw(--dataset talks.json --input-len 4)],
	['--output-len: expected at least 4 tokens with a dataset, got 3',
		qw(--dataset talks.json --output-len 3)],
	['--input-len: expected an integer from 2 to *', qw(--input-len 1 --output-len 1)],
	['--num-prompts: *', @hi, qw(--num-prompts 0)]) {
	my ($why, @args) = @$row;
	check_run("refused: $why", run(args => [@sim, @args]), { status => 2,
		err => "profllm bench prioritization: $why" });
}
check_run('no scheduler', run(args => [@verb, qw(--backend sim --model sim --dry-run), @hi]), { status => 0,
	err => "WARNING: without --scheduling-policy priority an engine serves requests in the order*\n"
		. 'WARNING: prompts have 6 tokens, not the 4 that were requested: *',
	out => ['Priorities: 0: 5 requests, 1: 5 requests'] });
for my $name (map { ($_, "$_.py", "benchmarks/$_.py") } 'benchmark_prioritization') {
	$r = run(args => [$name, qw(--backend sim --model sim --dry-run --scheduling-policy priority), @hi]);
	is($r->{status}, 0, "$name is the verb") or diag($r->{err});
}

done_testing();
