#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Drawn tokens before every prompt, as the server sees them.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

# The prompts by request id, in the order of the entries.
sub prompts_of
{
	my ($sim) = @_;
	truth_of($sim);
	my %prompt = map { $_->{request_id} => JSON::PP->new->decode($_->{body})->{prompt} }
		grep { defined $_->{request_id} } read_lines($sim->{requests});
	return map { $prompt{"r$_"} } sort { $a <=> $b } map { /(\d+)$/ } keys %prompt;
}

my $word = qr/[a-z]{3} /;
my %first;
for my $kind ('none', 'run', 'request') {
	my $sim = sim('--ttft-ms', '1', '--itl-ms', '1');
	my $run = serve($sim, '--num-prompts', '6', '--prompt-salt', $kind, '--seed', '3');
	my @prompt = prompts_of($sim);
	my %salt = map { substr($_, 0, 32) => 1 } @prompt;

	is($run->{status}, 0, "$kind: exit status") or diag($run->{err});
	is($run->{own}{prompt_salt}, $kind eq 'none' ? undef : $kind, "$kind: the result says so");
	is(defined $run->{own}{prompt_salt_key}, $kind ne 'none', "$kind: and from which key");
	$first{$kind} = \@prompt;
	next if $kind eq 'none';
	is(scalar(grep { !/^(?:$word){8}/ } @prompt), 0, "$kind: every prompt begins with it");
	is(scalar(keys %salt), $kind eq 'run' ? 1 : 6, "$kind: one, or one each");
	is_deeply([map { substr($_, 32) } @prompt], $first{none}, "$kind: the prompt follows it");
}

# The same command again sends other prompts: nothing of the earlier run is in the cache. The key
# of its result sends the same ones.
my @long = qw(--num-prompts 8 --random-input-len 400 --random-output-len 2 --seed 2
	--report-cached-tokens);
sub cached { return $_[0]{own}{cached_share} // 'nan' } # neither small nor large
for my $kind ('run', 'request') {
	my $sim = sim(qw(--num-gpu-blocks 100000 --enable-prompt-tokens-details));
	my @run = map { serve($sim, @long, '--prompt-salt', $kind) } 1, 2;
	my $again = serve($sim, @long, '--prompt-salt', "$kind:$run[1]{own}{prompt_salt_key}");
	my @sent;

	is($_->{status}, 0, "$kind: exit status") or diag($_->{err}) for @run, $again;
	cmp_ok(cached($_), '<', 0.1, "$kind: a cold cache") for @run;
	cmp_ok(cached($again), '>', 0.9, "$kind: the same key finds what it has sent") or diag($again->{err});
	is($again->{own}{prompt_salt}, $kind, "$kind: the result keeps the two apart");
	like($again->{out}, qr/^Prompt salt: +\Q$kind:$run[1]{own}{prompt_salt_key}\E *$/m,
		"$kind: the report has what repeats the run");
	truth_of($sim);
	@sent = map { JSON::PP->new->decode($_->{body})->{prompt} }
		grep { defined $_->{request_id} } read_lines($sim->{requests});
	is_deeply([@sent[16 .. 23]], [@sent[8 .. 15]], "$kind: byte for byte");
}

# Nor does what a run sends itself help it: ready check, warm-up, earlier runs, earlier points.
for my $kind ('run', 'request', 'request:mine') {
	my $sim = sim(qw(--num-gpu-blocks 100000));
	my $run = serve($sim, qw(--ready-check-timeout-sec 10 --num-warmups 3 --num-runs 3), @long,
		'--prompt-salt', $kind);
	is($run->{status}, 0, "$kind: three runs") or diag($run->{err});
	my ($status, $out) = profllm(qw(bench serve --model sim --tokenizer sim --base-url), $sim->{url},
		@long, '--sweep-request-rate', '100,inf', '--save-result', '--result-dir', $run->{dir},
		'--prompt-salt', $kind);

	is($status, 0, "$kind: the points");
	is(scalar(grep { ($_->{cached_tokens} // 0) >= 100 } truth_of($sim)), $kind eq 'run' ? 2 : 0,
		"$kind: only repeated warm-ups of a run find a cached prompt");
}

# Points of a sweep and repeats are fresh without being asked: whatever their order, no request finds
# an earlier point's prompt in the cache, and prompts keep the length that was asked for.
{
	my @cached;

	for my $points ('1,4,16', '16,4,1') {
		my $sim = sim(qw(--num-gpu-blocks 100000));
		my ($status, $out, $err) = profllm(qw(bench serve --model sim --tokenizer sim --base-url),
			$sim->{url}, @long, '--sweep-max-concurrency', $points);
		my @sent = grep { $_->{status} == 200 } truth_of($sim);

		is($status, 0, "points $points") or diag($err);
		is(scalar @sent, 24, "points $points: all were sent");
		is(scalar(grep { $_->{prompt_tokens} != 400 } @sent), 0,
			"points $points: of the length asked for") or
			diag(join ' ', map { $_->{prompt_tokens} } @sent);
		push @cached, [map { $_->{cached_tokens} // 0 } @sent];
		is(scalar(my @salts = $out =~ /^Prompt salt: +fresh:\w{16}/mg), 3,
			"points $points: each with its own salt");
	}
	is_deeply($cached[0], $cached[1], 'the order of the points changes nothing');
	is_deeply($cached[0], [(0) x 24], 'no prompt was cached');

	# The cache is what is asked about: the user says so.
	my $sim = sim(qw(--num-gpu-blocks 100000));
	profllm(qw(bench serve --model sim --tokenizer sim --base-url), $sim->{url}, @long,
		'--sweep-max-concurrency', '1,4', qw(--prompt-salt none));
	my @sent = grep { $_->{status} == 200 } truth_of($sim);
	is(scalar(grep { ($_->{cached_tokens} // 0) > 300 } @sent), 8,
		'none: the second point finds the first');

	$sim = sim(qw(--num-gpu-blocks 100000));
	my $run = serve($sim, @long, '--num-runs', '3');
	@sent = grep { $_->{status} == 200 } truth_of($sim);
	is(scalar @sent, 24, 'three runs');
	is_deeply([map { $_->{cached_tokens} // 0 } @sent], [(0) x 24], 'runs: no prompt was cached');

	# What prompts of one point share is still shared: conversations and prefixes keep their hits.
	$sim = sim(qw(--num-gpu-blocks 100000));
	my @prefix = (qw(bench serve --model sim --tokenizer sim --base-url), $sim->{url}, qw(
		--dataset-name prefix_repetition --prefix-repetition-prefix-len 320
		--prefix-repetition-suffix-len 32 --prefix-repetition-num-prefixes 2
		--prefix-repetition-output-len 2 --num-prompts 8), '--sweep-max-concurrency', '1,2');
	my ($status, undef, $err) = profllm(@prefix);
	@sent = grep { $_->{status} == 200 } truth_of($sim);
	is($status, 0, 'prefixes') or diag($err);
	for my $point (0, 1) {
		my @here = @sent[8 * $point .. 8 * $point + 7];
		my @hits = grep { ($_->{cached_tokens} // 0) >= 256 } @here;

		cmp_ok(scalar @hits, '>=', 5, "prefixes, point $point: shared within the point");
		is(scalar(grep { ($_->{cached_tokens} // 0) > 330 } @here), 0,
			"prefixes, point $point: nothing more than the prefix");
		cmp_ok(scalar(grep { !$_->{cached_tokens} } @here), '>=', 2,
			"prefixes, point $point: each was new once");
	}
}

# Prompts that are used again have others each time.
{
	my $sim = sim('--ttft-ms', '1', '--itl-ms', '1');
	my $run = serve($sim, '--duration', '1', '--request-rate', '40', '--prompt-salt', 'request',
		'--dataset-name', 'custom', '--dataset-path', do {
			my $path = "$sim->{dir}/p.jsonl";
			open(my $f, '>', $path) or die $!;
			print $f qq({"prompt": "only one", "output_tokens": 4}\n);
			close $f;
			$path;
		}, '--skip-chat-template', '--no-oversample');
	my @prompt = prompts_of($sim);
	my %seen = map { $_ => 1 } @prompt;

	cmp_ok(scalar @prompt, '>', 30, 'again: one prompt, many requests') or diag($run->{err});
	is(scalar(keys %seen), scalar @prompt, 'again: none like another');
	is(scalar(grep { !/^(?:$word){8}only one$/ } @prompt), 0, 'again: of the same form');
}

done_testing;
