#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The files of config-mistakes.txt, of which the schema for editors says the same as the program
# (tests/web/config-schema.mjs, tests/peer/editor): here what the program says. And the schema itself.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $text = slurp("$FindBin::Bin/config-mistakes.txt");
my $n = 0;
while ($text =~ /^# (.*)\n((?:(?!=> ).*\n)+)=> (.*)\n/mg) {
	my ($kind, $file, $want) = ($1, $2, $3);
	spew('row.yaml', $file);
	my $r = run(args => [qw(run --config row.yaml --dry-run)]);

	is($r->{err}, "profllm run: row.yaml:$want\n", "$kind: $want");
	is($r->{status}, 2, 'which is the user\'s mistake');
	$n++;
}
cmp_ok($n, '>=', 40, "$n files");

# Mistakes of the suite and of its experiments in one go.
spew('row.yaml', "server:\n  model: m\n  tensor_paralel_size: 2\nrepeat: 0\n");
is(run(args => [qw(run --config row.yaml --dry-run)])->{err}, 'profllm run: row.yaml:4:9: repeat: expected a '
	. "whole number from 1 to 4096, got 0\n"
	. "profllm run: row.yaml:3:3: server.tensor_paralel_size: unknown "
	. "key; did you mean tensor_parallel_size?\n", 'all mistakes are reported together');

# ---- the schema ----

my $r = run(args => [qw(run --print-config-schema)]);
is($r->{status}, 0, '--print-config-schema');
is($r->{err}, '', 'without a word');
my $schema = json_of($r->{out});
is($schema->{'$schema'}, 'http://json-schema.org/draft-07/schema#', 'the draft that editors read');
my $made = dirname(abs_path($program)) . '/experiment-config.schema.json';
SKIP: {
	skip 'the program alone was built', 1 if !-e $made;
	is(slurp($made), $r->{out}, 'what make made of it');
}

# Whatever a section has: what it is, and its default where it has one.
my %about = (
	vllm => [qw(max_num_seqs gpu_memory_utilization tensor_parallel_size dtype)],
	sim => [qw(itl_ms gpu max_num_seqs)], 'benchmark.serve' => [qw(num_prompts request_rate duration)],
	'benchmark.latency' => [qw(output_len)], resources => [qw(wait_s ports)], telemetry => ['interval_s'],
	output => ['record'], profiling => ['enabled'],
);
for my $name (sort keys %about) {
	my $d = $schema->{definitions}{$name};
	my $keys = ($d->{allOf} ? $d->{allOf}[0] : $d)->{properties};

	like($keys->{$_}{description}, qr/\w{3}/, "$name: $_: its help") for @{$about{$name}};
	is_deeply([grep { ref $keys->{$_} eq 'HASH' && !$keys->{$_}{description} && !$keys->{$_}{'$ref'}
		&& !$keys->{$_}{doNotSuggest} } sort keys %$keys], [], "$name: no key without help");
}
my $serve = $schema->{definitions}{'benchmark.serve'}{allOf}[0]{properties};
is($serve->{num_prompts}{default}, 1000, 'a default');
is($schema->{definitions}{vllm}{properties}{gpu_memory_utilization}{default}, 0.92, 'a default of vLLM');
like($schema->{definitions}{vllm}{properties}{gpu_memory_utilization}{description},
	qr/Default up to 0\.1\d: 0\.9\./, 'and that of earlier versions');
like($serve->{duration}{errorMessage}, qr/in seconds or as 10m/, 'a unit');
is_deeply($serve->{ramp_up_strategy}{else}{enum}, ['linear', 'exponential', undef], 'choices');
done_testing();
