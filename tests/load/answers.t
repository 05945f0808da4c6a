#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What the simulator's options make of answers, as `bench serve` receives them: several choices,
# constraints kept and broken on purpose, tool calls, adapters. What was counted on both sides is the
# same, and the truth file says of which kind each answer was.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use JSON::PP ();
use LoadTest;
use Test::More;

my $json = JSON::PP->new->canonical;
my $schema = { type => 'object', required => ['age'], properties => { age => { type => 'integer' } } };
my @chat = ('--backend', 'openai-chat', '--endpoint', '/v1/chat/completions');
my @tools = map { { type => 'function', function => { name => $_, parameters => $schema } } } qw(f g);

# Runs 30 requests whose bodies have these members; ends the simulator.
sub asked
{
	my ($members, $sim, @args) = @_;
	my $s = sim('--ttft-ms', '1', '--itl-ms', '0.2', '--lora-modules', 'tuned=/x', @$sim);
	my $run = serve($s, '--num-prompts', '30', '--random-output-len', '200', '--extra-body',
		$json->encode($members), @args);

	return ($run, { truth_by_id($s) }, $s);
}

sub choices { return map { $_->{choices} ? @{ $_->{choices} } : () } values %{ $_[0] } }

{
	my ($run, $truth) = asked({ n => 3 }, []);

	is($run->{status}, 0, 'three choices') or diag($run->{err});
	is($run->{result}{completed}, 30, '... of every request');
	is($run->{result}{total_output_tokens}, 30 * 3 * 200, '... all of whose tokens are counted');
	is(scalar(choices($truth)), 90, '... as they were sent');
}
for my $row ([{ structured_outputs => { json => $schema } }],
	[{ guided_json => $schema }, '--constraint-form', 'guided']) {
	my ($members, @sim) = @$row;
	my ($run, $truth) = asked($members, ['--constraint-errors', '0.5', @sim], @chat);
	my ($key) = keys %$members;

	is($run->{status}, 0, $key) or diag($run->{err});
	counts_are_right($run, $truth, $key);
	my @broken = grep { $_->{constraint} eq 'broken' } choices($truth);
	my @kept = grep { $_->{constraint} eq 'kept' } choices($truth);
	is(@broken + @kept, 30, "$key: every answer was bound by it");
	ok(@broken > 3 && @kept > 3, "$key: and about half of them break it")
		or diag(scalar(@broken), ' of 30');
}
{
	my ($run, $truth) = asked({ structured_outputs => { json => $schema } },
		['--ignore-constraints'], @chat);

	is($run->{result}{total_output_tokens}, 30 * 200, 'who ignores constraints sends words');
	is(scalar(choices($truth)), 0, '... and does not say that it kept to them');
}
{
	my ($run, $truth) = asked({ tools => \@tools },
		['--tool-call-share', '0.5', '--tool-calls', '2', '--tool-call-errors', '0.3'], @chat);
	my @called = choices($truth);
	my ($calls, $bad) = (0, 0);

	is($run->{result}{completed}, 30, 'tools') or diag($run->{err});
	counts_are_right($run, $truth, 'tools');
	$calls += $_->{tool_calls}, $bad += $_->{malformed} for @called;
	ok(@called > 3 && @called < 27, 'a share of the answers are calls');
	ok($calls > @called && $bad > 0 && $bad < $calls, '... some are two, some are malformed')
		or diag("$calls calls, $bad malformed, in ", scalar(@called));
}
{
	my ($run, undef, $s) = asked({}, [], '--lora-modules', 'tuned');
	my %model = map { ($json->decode($_->{body})->{model} => 1) }
		grep { $_->{path} eq '/v1/completions' } read_lines($s->{requests});

	is($run->{result}{completed}, 30, 'an adapter is served under its name') or diag($run->{err});
	is_deeply([keys %model], ['tuned'], '... which every request had');
}
{
	my ($run) = asked({ priority => 3 }, []);

	is($run->{result}{completed}, 0, 'a priority where nobody schedules by it is refused');
	ok($run->{result}{failed} >= 10, '... until the run stops by itself') or diag($run->{out});
	like($run->{out} . $run->{err}, qr/Got priority 3 but Priority scheduling is not enabled/,
		'... in the words of vLLM');
	($run) = asked({ priority => 3 }, ['--scheduling-policy', 'priority']);
	is($run->{result}{completed}, 30, '... and accepted otherwise');
}
for my $row ([qr/--lora-modules: expected NAME=PATH/, '--lora-modules', 'x'],
	[qr/--lora-modules: two adapters are called 'a'/, '--lora-modules', 'a=1', 'a=2'],
	[qr/--lora-modules: expected NAME=PATH/, '--lora-modules', '{"name": "a"}'],
	[qr/--constraint-errors/, '--constraint-errors', '1.5'],
	[qr/--constraint-form/, '--constraint-form', 'json'],
	[qr/--tool-calls/, '--tool-calls', '17']) {
	my ($why, @args) = @$row;
	my ($status, $out, $err) = profllm('sim', '--port', '0', @args);

	is($status, 2, "@args");
	like($err, $why, '... and why');
}

done_testing();
