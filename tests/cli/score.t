#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench score`: a record gives what the run gave, other options give what they ask for, and files
# that are cut, damaged or of another kind are distinguished.
use strict;
use warnings;
no warnings 'qw'; # commas are part of what options take
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

my $sim = start_sim(qw(--ttft-ms 4 --itl-ms 2 --fault status=500:id=a-1));
my @serve = (qw(bench serve --model sim --tokenizer sim --num-prompts 5 --random-input-len 8
	--random-output-len 6 --temperature 0 --save-result --port), $sim->{port});

sub score { return run(args => ['bench', 'score', @_]) }

my $first = run(args => [@serve, qw(--request-id-prefix a- --record a.rec --result-filename a.json
	--percentile-metrics ttft,e2el --goodput ttft:1000 --metadata x=1 --save-detailed)]);
is($first->{status}, 0, 'a run with a record');

# ---- the same again ----

my $again = score('a.rec');
is($again->{status}, 0, 'exit status');
is($again->{err}, '', 'no word on stderr');
is($again->{out}, substr($first->{out}, -length $again->{out}), 'the same report');
like($again->{out}, qr/\AFailed requests.*Error 0: Internal Server Error\n/s, 'with its failures');
score(qw(a.rec --save-result --result-filename b.json));
is(slurp('b.json'), slurp('a.json'), 'the same result, byte for byte');
score(qw(a.rec --save-result --result-dir named));
like((glob 'named/*')[0] // '', qr/openai-infqps-sim-\d{8}-\d{6}\.json$/, 'under the generated name');
my ($name) = glob 'named/*';
my $kept = slurp($name);
check_run('saved again', score(qw(a.rec --save-result --result-dir named --metric-percentiles 5)),
	{ status => 0, warn => ["WARNING: $name belongs to another run; the result of this run is in " .
	$name =~ s/\.json$/-2.json/r], exists => [$name =~ s/\.json$/-2.json/r] });
is(slurp($name), $kept, 'which is another file');
score(qw(a.rec --append-result --result-dir lines)) for 1 .. 2;
is(scalar(split /\n/, slurp((glob 'lines/*')[0])), 2, 'lines are added to one file');

# ---- other questions ----

my $other = score(qw(a.rec --metric-percentiles 25,99.9 --goodput e2el:0.001
	--percentile-metrics itl,tpot));
check_run('other percentiles, blocks and limits', $other, { status => 0, err => '',
	out => ['P25 ITL (ms): *', 'P99.9 TPOT (ms): *', 'Request goodput (req/s): * 0.00 *'],
	not_out => ['*TTFT (ms):*', 'P99 *'] });
is(score(qw(a.rec --strict))->{status}, 3, '--strict: 3, for the run was not VALID');

# ---- conversations, priorities, constraints ----

# What a run said, what its record says of it, and both compared.
sub is_scored_again {
	my ($what, $metrics, @words) = @_;
	my $engine = start_sim(qw(--max-num-seqs 4 --scheduling-policy priority
		--enable-prompt-tokens-details));
	my @more = (qw(--save-result --save-detailed --result-filename), "$what.json");
	my $ran = run(args => ['bench', @words, @more, '--record', "$what.rec",
		$words[0] eq 'multi-turn' ? '--url' : '--base-url', $engine->{url}]);
	my $again = score("$what.rec", @more[0 .. 2], "$what-again.json");

	is($ran->{status}, 0, "$what: a run") or diag($ran->{err});
	is($again->{status}, 0, "$what: scored again") or diag($again->{err});
	is(slurp("$what-again.json"), slurp("$what.json"), "$what: the same result, byte for byte");
	spew("$what-other.json", slurp("$what-again.json") =~ s/\{/{"who": "other", /r);
	check_run("$what: compared", run(args => ['bench', 'compare', "$what.json", "$what-other.json",
		'--metrics', join ',', @$metrics]), { status => 0, out => [map { "$_ *+0.0%*" } @$metrics] });
	return json_of(slurp("$what-again.json"));
}

spew('talk.json', JSON::PP->new->encode([map { { id => "t$_", messages => [
	{ role => 'user', content => "first $_" },
	{ role => 'assistant', content => 'one' }, { role => 'user', content => 'second' },
	{ role => 'assistant', content => 'two' }] } } 1 .. 4]));
my $talk = is_scored_again('turns', ['per_turn_metrics[1].mean_ttft_ms', 'per_turn_metrics[0].p99_ttft_ms',
	'sessions.ttft_later_turns_ms.mean', 'sessions.duration_s.p99'],
	qw(multi-turn --input-file talk.json --model sim --tokenizer sim --num-clients 2
	--no-early-stop --disable-tqdm));
is_deeply([map { $_->{completed} } @{$talk->{per_turn_metrics}}], [4, 4], 'statistics of each turn');
is($talk->{profllm}{options}{num_clients}, 2, 'and the options of the verb');
my $classes = is_scored_again('classes', ['profllm.priorities[0].ttft_ms.p99',
	'profllm.priorities[1].e2el_ms.mean'], qw(serve --model sim --tokenizer sim --num-prompts 20
	--random-input-len 8 --random-output-len 6 --disable-tqdm --priority-classes 0:1,7:1));
is_deeply([map { $_->{priority} } @{$classes->{profllm}{priorities}}], [0, 7], 'of each class');
my $answers = is_scored_again('answers', ['mean_ttft_ms'], qw(serve --model sim --tokenizer sim
	--dataset-name structured --structured-dataset choice --structured-output-ratio 0.5
	--structured-output-len 20 --num-prompts 8 --temperature 0 --disable-tqdm));
is_deeply([@{$answers->{profllm}{correctness}}{qw(requests constrained scored)}], [8, 4, 4], 'of answers');
my @bits = @{$answers->{profllm}{requests}{correctness}};
is(scalar(grep { ($_ & 14) == 14 } @bits), $answers->{profllm}{correctness}{correct},
	'which agrees with what each request has');

# ---- several hosts ----

finish($_) for map { begin(args => [@serve, qw(--request-rate 2 --request-id-prefix), "$_-", '--record',
	"host-$_.rec", '--result-filename', "host-$_.json"]) } qw(a b);
my $both = score(qw(host-a.rec host-b.rec --record all.rec));
check_run('two records are one run', $both, { status => 0,
	out => ['Successful requests: * 9 *', 'Failed requests: * 1 *'], exists => ['all.rec'] });
is(score('all.rec')->{out}, $both->{out}, 'and the merged record gives the same report');
check_run('a record twice', score(qw(all.rec host-b.rec)), { status => 2,
	err => 'profllm bench score: all.rec and host-b.rec hold the same requests, *' });

# ---- records that are not whole ----

my $bytes = slurp('a.rec');
spew('cut.rec', substr($bytes, 0, length($bytes) - 20));
check_run('a record that breaks off', score('cut.rec'), { status => 0,
	err => 'WARNING: cut.rec is incomplete: it holds * of * requests',
	out => ['  DEGRADED (every metric): The record file breaks off: *'] });
my ($scored, $refused, @strange) = (0, 0);
for my $n (map { int($_ * length($bytes) / 40) } 0 .. 39) {
	spew('cut.rec', substr($bytes, 0, $n));
	my $r = score('cut.rec');
	my @lines = split /\n/, $r->{err};

	if ($r->{status} eq '0') { $scored++ } elsif ($r->{status} eq '1') { $refused++ }
	push @strange, "$n bytes: $r->{status}: $r->{err}" if $r->{status} !~ /^[01]$/ || @lines != 1;
}
is("@strange", '', 'a record cut anywhere: a report with one warning, or one sentence');
ok($scored + $refused == 40 && $refused > 0, "$scored were reported, $refused refused");

my @broken;
for my $k (1 .. 40) {
	my $copy = $bytes;
	my $at = int($k * length($bytes) / 41);

	substr($copy, $at, 1) = chr(ord(substr $copy, $at, 1) ^ 0x41);
	spew('flipped.rec', $copy);
	my $r = score('flipped.rec');
	push @broken, "byte $at: $r->{status}: $r->{err}" if $r->{status} !~ /^[01]$/ || $r->{err} eq '';
}
is("@broken", '', 'a changed byte is always noticed');

# ---- what is no record ----

spew('text.rec', "this is a text\n");
spew('empty.rec', '');
spew('zeros.rec', "\0" x 5000);
mkdir 'folder';
my @rows = (
	['text.rec', '*text.rec*'], ['empty.rec', '*empty.rec*'], ['zeros.rec', '*zeros.rec*'],
	['a.json', 'a.json is not a record (made by --record): it does not begin with PLLMREC1; result files '
		. 'are compared with bench compare'], ['folder', 'cannot read folder: not a regular file'],
	['/dev/null', 'cannot read /dev/null: not a regular file'],
	['none.rec', 'cannot open none.rec: No such file or directory'],
);
for my $row (@rows) {
	my ($file, $pattern) = @$row;
	my $r = score($file);

	check_run("no record: $file", $r, { status => 1, err => "profllm bench score: $pattern" });
	ok($r->{err} =~ tr/\n// == 1 && $r->{out} eq '', "no record: $file: one sentence and nothing else");
}

# ---- output that cannot be written ----

for my $row ([qw(--save-result --result-filename /dev/full)],
	[qw(--append-result --result-filename /dev/full)], [qw(--record /dev/full)],
	[qw(--save-result --result-filename text.rec/x)],
	[qw(--save-result --result-dir text.rec)], [qw(--record none/x.rec)]) {
	my $r = score('a.rec', @$row);

	check_run("score @$row", $r, { status => 1, err => 'profllm bench score: *',
		out => ['Successful requests: * 4 *'] });
}
ok(-c '/dev/full', 'a device is written to, not replaced');

done_testing();
