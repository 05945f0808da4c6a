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
	$first{$kind} = \@prompt;
	next if $kind eq 'none';
	is(scalar(grep { !/^(?:$word){8}/ } @prompt), 0, "$kind: every prompt begins with it");
	is(scalar(keys %salt), $kind eq 'run' ? 1 : 6, "$kind: one, or one each");
	is_deeply([map { substr($_, 32) } @prompt], $first{none}, "$kind: behind it stands the prompt");
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
