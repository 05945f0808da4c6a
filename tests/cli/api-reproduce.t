#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The commands that a run's page gives do the run again, with the same options.
use strict;
use warnings;
use lib do { require FindBin; $FindBin::Bin };
use Cli;
use Dash;
use File::Basename qw(dirname);
use Test::More;

my $d = start_dashboard();
my $sim = start_sim('--ttft-ms', '1', '--itl-ms', '1');

mkdir 'bin';
spew('bin/profllm', "#!/bin/sh\nexec '$program' \"\$\@\"\n");
chmod 0755, 'bin/profllm';

# The command lines of the run in a file.
sub commands_of {
	my ($file) = @_;
	my $r = ask($d, POST => '/api/upload/raw', slurp($file));
	my $id = $r->{json}{results}[0]{id} or die "$file: $r->{content}\n";

	return @{ask($d, GET => "/api/data/experiments/$id")->{json}{reproduce}};
}

sub again {
	my ($command) = @_;
	return run(command => ['sh', '-c', $command], env => { PATH => "bin:$ENV{PATH}" });
}

my $first = run(args => ['bench', 'serve', '--port', $sim->{port}, @{$tiny{model}}, '--num-prompts', 4,
	'--dataset-name', 'random', '--random-input-len', 8, '--random-output-len', 4,
	'--request-rate', 200, '--goodput', 'ttft:500', 'tpot:50',
	'--extra-body', '{"user": "it\'s me"}', '--output-json', 'a.json']);
is($first->{status}, 0, 'a benchmark') or diag($first->{err});
my ($load, @more) = commands_of('a.json');
like($load, qr/^profllm bench serve --model sim /, 'its load as a command');
is_deeply(\@more, [], 'and no server, of which the result says nothing');
unlike($load, qr/--(port|host|threads|burstiness|output-json) /, 'without defaults and places');
$load .= " --port $sim->{port} --output-json b.json";
my $second = again($load);
is($second->{status}, 0, 'it runs') or diag($load, $second->{err});
my @options = map { json_of(slurp($_))->{profllm}{options} } 'a.json', 'b.json';
delete $_->{output_json} for @options;
is_deeply($options[1], $options[0], 'with the same options');

like((commands_of("$FindBin::Bin/foreign/vllm_serve.json"))[1],
	qr/^# Add the dataset .*: about 64 in, 8 out$/,
	'what a result of vLLM does not say');

# What is on unless it is switched off: every option that has a --no- form, by the program's own list.
my @switch = map { $_->{name} } grep { $_->{kind} eq 'tri' }
	@{json_of(run(args => ['bench', 'serve', '--help=json'])->{out})->{options}};
ok(@switch > 0, 'options that can be switched off');
for my $name (@switch) {
	(my $key = $name) =~ tr/-/_/;
	my $result = json_of(slurp('a.json'));

	$result->{profllm}{options} = { %{$result->{profllm}{options}}, $key => JSON::PP::false };
	spew("$key.json", json_text($result));
	like((commands_of("$key.json"))[0], qr/ --no-\Q$name\E( |$)/, "--no-$name is one of them");
}
spew('trace.jsonl', join '', map { qq({"timestamp": $_, "input_length": 8, "output_length": 2, )
	. qq("hash_ids": [$_]}\n) } 0, 10);
my $still = run(args => ['bench', 'serve', '--port', $sim->{port}, @{$tiny{model}}, '--dataset-name',
	'timed_trace', '--dataset-path', 'trace.jsonl', '--timed-trace-sec-multiplier', 1, '--no-self-timed',
	'--output-json', 'trace.json']);
is($still->{status}, 0, 'a trace without its times') or diag($still->{err});
($load) = commands_of('trace.json');
$load .= " --port $sim->{port} --output-json again.json";
my $soon = again($load);
is($soon->{status}, 0, '... again') or diag($load, $soon->{err});
ok(json_of(slurp('again.json'))->{duration} < 5, '... does not wait for them, either');

spew('one.yaml', <<'END');
name: one
server: { command: sim, model: sim, ttft_ms: 1, itl_ms: 1 }
benchmark: { dataset_name: random, tokenizer: sim, random_input_len: 8, random_output_len: 4, num_prompts: 4 }
tags: { who: "it's me" }
END
my $run = run(args => ['run', '--config', 'one.yaml', '--output', 'one.json']);
is($run->{status}, 0, 'an experiment') or diag($run->{err});
my ($command) = commands_of('one.json');
my $repeated = again($command);
is($repeated->{status}, 0, 'its command runs') or diag($command, $repeated->{err});
is(json_of(slurp('results.json'))->{config}{hash}, json_of(slurp('one.json'))->{config}{hash},
	'the same configuration');
done_testing();
