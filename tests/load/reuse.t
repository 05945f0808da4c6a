#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Requests that are sent again, and warm-up passes, as the server sees them.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my @engine = qw(--num-gpu-blocks 100000 --enable-prompt-tokens-details);
my @load = qw(--num-prompts 4 --random-input-len 400 --random-output-len 2 --seed 2
	--report-cached-tokens --max-concurrency 1);

# What was sent, in the order in which it came: [request id, prompt]; warm-ups have no id.
sub sent
{
	my ($sim) = @_;
	truth_of($sim);
	return map { [$_->{request_id}, JSON::PP->new->decode($_->{body})->{prompt}] }
		grep { $_->{body} =~ /"max_tokens"/ } read_lines($sim->{requests});
}

# The prompts as letters, in the order in which they first appear.
sub pattern
{
	my ($n, %seen) = (0);
	return join ' ', map { $seen{$_} //= chr(ord('a') + $n++) } @_;
}

# Measured requests: their prompts, without the ready check.
sub measured { return map { $_->[1] } grep { defined $_->[0] } @_ }

my %want = (tile => 'a b c d a b c d', interleave => 'a a b b c c d d');
for my $order (sort keys %want) {
	my $sim = sim(@engine);
	my $run = serve($sim, @load, '--repeat-count', 2, '--repeat-order', $order);
	my @sent = sent($sim);
	my %ids = map { $_->[0] => 1 } grep { defined $_->[0] } @sent;

	is($run->{status}, 0, "$order: exit status") or diag($run->{err});
	is(pattern(measured(@sent)), $want{$order}, "$order: each prompt twice, byte for byte");
	is(scalar keys %ids, 8, "$order: under ids of their own");
	is_deeply([@{$run->{own}}{qw(repeat_count repeat_order repeated_requests warmup_pass)}],
		[2, $order, 4, undef], "$order: the result says so");
	cmp_ok(abs($run->{own}{ideal_prefix_reuse} - 0.5), '<', 0.01, "$order: half can be reused");
	cmp_ok(abs($run->{own}{cached_share} - 0.5), '<', 0.1, "$order: and was");
	like($run->{out}, qr/^Repeated requests: +4 \($order, 2 of each\) *$/m, "$order: the report");
	like($run->{out}, qr/^Ideal prefix reuse \(%\): +50\.\d\d *$/m, "$order: with the ideal");
}

# The shuffle follows the dataset's draws: the prompts stay, their order is drawn from the seed.
{
	my $sim = sim(@engine);
	my @runs = map { serve($sim, @load, '--repeat-count', 3) } 1, 2;
	my @prompts = measured(sent($sim));
	my $alone = sim(@engine);

	serve($alone, @load);
	is($_->{status}, 0, 'random: exit status') for @runs;
	is(pattern(@prompts[0 .. 11]), pattern(@prompts[12 .. 23]), 'random: the same seed, the same order');
	isnt(pattern(@prompts[0 .. 11]), 'a b c d a b c d a b c d', 'random: which is shuffled');
	is(join("\0", sort { $a cmp $b } (measured(sent($alone))) x 3),
		join("\0", sort { $a cmp $b } @prompts[0 .. 11]), 'random: of the dataset\'s own prompts');
}

# Nothing is said, sent or drawn without these options.
{
	my $run = serve(sim(@engine), @load);

	ok(!exists $run->{own}{$_}, "no $_") for qw(repeat_count warmup_pass ideal_prefix_reuse);
	unlike($run->{out}, qr/Repeated|Warm-up pass|Ideal/, 'no line either');
}

# ---- warm-up passes ----

my %cached;
for my $pass (qw(same other)) {
	my $sim = sim(@engine);
	my $run = serve($sim, @load, '--warmup-pass', $pass);
	my @sent = sent($sim);
	my @before = map { $_->[1] } @sent[0 .. 3];

	is($run->{status}, 0, "$pass: exit status") or diag($run->{err});
	is(scalar @sent, 8, "$pass: a request of the pass for each prompt");
	ok(!(grep { defined $_->[0] } @sent[0 .. 3]), "$pass: before the measured ones");
	is_deeply([@{$run->{own}}{qw(warmup_pass warmup_pass_requests)}], [$pass, 4],
		"$pass: the result says so");
	is($run->{result}{completed}, 4, "$pass: measured are the others alone");
	$cached{$pass} = $run->{own}{cached_share} // 0;
	if ($pass eq 'same') {
		is_deeply(\@before, [measured(@sent)], 'same: the same prompts');
		cmp_ok($cached{same}, '>', 0.9, 'same: all of them are cached');
		is($run->{own}{ideal_prefix_reuse}, 1, 'same: as they ideally are');
		unlike($run->{out} . $run->{err}, qr/cached prompt tokens|--reset-prefix-cache/,
			'same: which nobody is warned of');
	} else {
		is(scalar(grep { !/^(?:[a-z]{3} ){8}/ } @before), 0, 'other: words of their own in front');
		cmp_ok($cached{other}, '<', 0.1, 'other: nothing is cached');
	}
	like($run->{out}, qr/^Warm-up pass: +$pass \(4 requests\) *$/m, "$pass: the report");
}

# Copies are warmed up once; the record says all of it again.
{
	my $sim = sim(@engine);
	my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
	my $run = serve($sim, @load, qw(--repeat-count 3 --repeat-order tile --warmup-pass same --record),
		"$dir/run.rec");
	my ($status, $out) = profllm(qw(bench score --report full), "$dir/run.rec");
	my @lines = grep { /^(?:Repeated requests|Warm-up pass|Ideal prefix)/ } split /\n/, $out;

	is($status, 0, 'the record is scored');
	is(scalar @lines, 3, 'with these lines');
	is_deeply(\@lines, [grep { /^(?:Repeated requests|Warm-up pass: {2}|Ideal prefix)/ }
		split /\n/, $run->{out}], 'as in the run\'s own report');

	is(pattern(map { $_->[1] } sent($sim)), join(' ', ('a b c d') x 4), 'one pass, three copies');
	is($run->{own}{warmup_pass_requests}, 4, 'as the result says');
}

done_testing();
