#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --compat: where upstream itself has had two behaviours.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my @chat = ('--backend', 'openai-chat', '--endpoint', '/v1/chat/completions');

# An error object inside a 200 stream, after three tokens.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2', '--fault', 'error-event@4');
	my $run = serve($sim, '--num-prompts', '4');
	is_deeply([@{ $run->{result} }{qw(completed failed)}], [0, 4], 'an error in a stream fails');
	my $topic = quotemeta '(profllm help no_success)';
	like($run->{err},
		qr/^profllm bench serve: .*on purpose.* \(no request succeeded; 4 failed\) $topic$/m,
		'all failed: the sentence that says why');
	$run = serve($sim, '--num-prompts', '4', '--compat', 'stream-error');
	is_deeply([@{ $run->{result} }{qw(completed failed)}], [4, 0],
		'--compat stream-error: it is ignored after a token');
	unlike($run->{err}, qr/no request succeeded/, 'and nothing is said');
}

# A chat answer begins with an event that has a role and no text.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim, @chat, '--num-prompts', '4');
	my $without = serve($sim, @chat, '--num-prompts', '4', '--compat', 'role-chunk');
	my @events = map { $_->{own}{token_events} } $run, $without;

	is($events[0] - $events[1], 4, '--compat role-chunk: one event less of each request')
		or diag("@events");
	is($without->{result}{total_output_tokens}, $run->{result}{total_output_tokens},
		'and as many tokens');
}

# Peak concurrency: a request counts in every second it touches, or the exact maximum.
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my @args = ('--num-prompts', '40', '--max-concurrency', '2');
	my $run = serve($sim, @args);
	my $exact = serve($sim, @args, '--compat', 'peak');

	cmp_ok($run->{result}{max_concurrent_requests}, '>', 2, 'peak: more than the cap');
	is($exact->{result}{max_concurrent_requests}, 2, '--compat peak: the cap');
}

done_testing();
