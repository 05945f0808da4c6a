#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `profllm args`: arguments of a server listed, described, and imported from a server's help; what
# was imported is known to an experiment.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

# ---- list ----

my $r = run(args => [qw(args list)]);
is($r->{status}, 0, 'list');
like($r->{out}, qr/^ModelConfig$/m, 'list: groups are headings');
like($r->{out}, qr/^  gpu-memory-utilization +number above 0 to 1 \[0\.\d+\]$/m, 'list: a row');
unlike($r->{out}, qr/guided-decoding/, 'list: what no version has any more is skipped');

$r = run(args => [qw(args list --all guided)]);
like($r->{out}, qr/guided-decoding-backend/, 'list --all: it is there');
$r = run(args => [qw(args list --version 0.11 guided)]);
like($r->{out}, qr/guided-decoding-backend/, 'list --version: of the version that had it');
$r = run(args => [qw(args list --version 0.13 guided-decoding)]);
is($r->{out}, '', 'list --version: not of one that has it no more');
# Defaults are those of the version.
for (['0.11', '0.9'], ['0.11.0', '0.9'], ['0.19.1', '0.9'], ['0.20', '0.92'], ['0.32', '0.92'],
	['0.40', undef]) {
	my ($version, $default) = @$_;
	my $one = (grep { $_->{name} eq 'gpu-memory-utilization' }
		@{json_of(run(args => [qw(args list memory --json --version), $version])->{out})})[0];

	is($one->{default}, $default, "list --json --version $version: its default");
	my ($shown) = @{json_of(run(args => [qw(args show gpu_memory_utilization --json --version),
		$version])->{out})};
	is($shown->{default}, $default, "show --json --version $version: its default");
	is_deeply($shown->{earlier}, [{ until => '0.19', default => '0.9' }], 'show --json: earlier ones');
}
like(run(args => [qw(args list --version 0.11 gpu-memory)])->{out}, qr/ \[0\.9\]$/m,
	'list --version: its default');
unlike(run(args => [qw(args list --version 0.11 aggregate)])->{out}, qr/aggregate-engine-logging/,
	'list --version 0.11: not what came with 0.11.1');
like(run(args => [qw(args list --version 0.11.1 aggregate)])->{out}, qr/aggregate-engine-logging/,
	'list --version 0.11.1: that, too');
like(run(args => [qw(args show disable_cascade_attn)])->{out},
	qr/^  earlier +to 0\.31: true, to 0\.17: false$/m, 'show: defaults of older versions');

$r = run(args => [qw(args list prefix hash)]);
like($r->{out}, qr/prefix-caching-hash-algo/, 'list TEXT: all words');
unlike($r->{out}, qr/enable-prefix-caching/, 'list TEXT: not one of them');
$r = run(args => [qw(args list --group loraconfig --json)]);
my $list = json_of($r->{out});
ok(@$list > 3 && !grep({ $_->{group} ne 'LoRAConfig' } @$list), 'list --group --json');
my $all = json_of(run(args => [qw(args list --all --json)])->{out});
cmp_ok(scalar @$all, '>=', 300, 'list --all --json: everything');
is(scalar(grep { $_->{about} !~ /[^.]$/ } @$all), 0, 'list: each is described');

for my $wrong ([['--group', 'LoraConfg'],
	qr/--group: there is no group 'LoraConfg'; did you mean LoRAConfig\?/],
	[['--version', 'new'], qr/--version: expected a version such as 0\.11, got 'new'/],
	[['--args-file', 'none.json'], qr/cannot open none\.json/]) {
	$r = run(args => [qw(args list), @{$wrong->[0]}]);
	is($r->{status}, 2, "list @{$wrong->[0]}: exit 2");
	like($r->{err}, $wrong->[1], "list @{$wrong->[0]}: says why");
}

# ---- show ----

$r = run(args => [qw(args show tensor_parallel_size tp)]);
is(scalar(() = $r->{out} =~ /^--tensor-parallel-size$/mg), 2, 'show: by key and by short name');
like($r->{out}, qr/^  value +integer from 1$/m, 'show: its range');
$r = run(args => [qw(args show --json gpu-memory-utilization)]);
my ($one) = @{json_of($r->{out})};
is_deeply([@{$one}{qw(kind min max)}, $one->{min_is_exclusive} ? 1 : 0], ['float', 0, 1, 1],
	'show --json');
$r = run(args => [qw(args show guided_decoding_backend)]);
like($r->{out}, qr/^  versions +to 0\.11/m, 'show: until when');
like($r->{out}, qr/^  successor +structured_outputs_config\.backend$/m, 'show: what took its place');
$r = run(args => [qw(args show seed --version new)]);
is($r->{status}, 2, 'show --version: exit 2');
like($r->{err}, qr/--version: expected a version such as 0\.11, got 'new'/, 'show --version: says why');
$r = run(args => [qw(args show tensor_paralel_size)]);
is($r->{status}, 2, 'show: no such argument');
like($r->{err}, qr/no argument 'tensor_paralel_size'; did you mean tensor-parallel-size\?/, 'show: says so');

# ---- import ----

my $help = slurp("$FindBin::Bin/../fuzz/corpus/engine_help/help");
spew('help.txt', $help);
$r = run(args => [qw(args import --from help.txt --dry-run)]);
is($r->{status}, 0, 'import --dry-run');
like($r->{out}, qr/^17 arguments: 11 new, \d+ gone, \d+ changed against the table of vLLM/,
	'import: the sum');
like($r->{out}, qr/^New:\n(?:  .*\n)*  warp-factor +integer\n/m, 'import: what is new');
like($r->{out}, qr/^Gone:\n(?:  .*\n)*  tensor-parallel-size /m, 'import: what is gone');
like($r->{out}, qr/^Changed:\n(?:  .*\n)*  dtype +choices: warp16 is new/m, 'import: what is changed');
ok(!-e 'config/profllm/engine_args.json', 'import --dry-run writes nothing');

spew('experiment.yaml', <<'EOF');
server: { model: m, warp_factor: 12, dtype: warp16 }
benchmark: { dataset_name: random, tokenizer: sim }
EOF
sub plan_of { return run(args => [qw(run --config experiment.yaml --output r.json --dry-run), @_]) }

$r = plan_of();
is($r->{status}, 2, 'an experiment: not known before');
like($r->{err}, qr/server\.warp_factor: unknown key/, 'an experiment: says so');
like($r->{err}, qr/server\.dtype: expected /, 'an experiment: nor the choice');

# A server that prints its help, and its Python, which tells the version.
mkdir 'bin' or die;
spew('bin/server', "#!/bin/sh\n[ \"\$2\" = --help=all ] && exec cat help.txt\nexit 3\n");
chmod 0755, 'bin/server';
$r = run(args => ['args', 'import', '--command', './bin/server serve']);
is($r->{status}, 0, 'import --command');
like($r->{out}, qr/^Written to \S+\/config\/profllm\/engine_args\.json$/m, 'import: where it is');
$r = plan_of();
is($r->{status}, 0, 'an experiment: known now') or diag $r->{err};
like($r->{out}, qr/vllm serve m .*--dtype warp16/, 'an experiment: the new choice');
like($r->{out}, qr/--warp-factor 12/, 'an experiment: the new argument');
$r = plan_of('--set', 'server.warp_factor=fast');
like($r->{err}, qr/server\.warp_factor: expected an integer, got 'fast'/, 'an experiment: it is judged');
$r = run(args => [qw(args show warp_mode)]);
like($r->{out}, qr/^  value +text: fast, faster$/m, 'show: of the own list');

spew('own.json', '{"arguments": [{"name": "warp-drive", "kind": "flag"}]}');
$r = plan_of('--args-file', 'own.json', '--set', 'server.warp_drive=true');
like($r->{err}, qr/warp_factor: unknown key/, '--args-file: in place of the own list');
spew('own.json', '{"arguments": [{"name": "warp-drive", "kind": "engine"}]}');
$r = plan_of('--args-file', 'own.json');
is($r->{status}, 2, '--args-file: a bad file');
like($r->{err}, qr/own\.json: warp-drive: kind is 'engine'; expected flag, /, '--args-file: says why');

for my $wrong ([['--command', './bin/server other'], 1, qr/ended with 3/],
	[['--command', '/nowhere/vllm'], 1, qr/nowhere/], [['--command', ' '], 2, qr/--command: expected/],
	[['--from', 'none.txt'], 1, qr/none\.txt/],
	[['--from', 'own.json'], 1, qr/own\.json: no argument is found in it/]) {
	spew('bin/server', "#!/bin/sh\nexit 3\n") if $wrong->[0][1] =~ /other/;
	$r = run(args => [qw(args import), @{$wrong->[0]}]);
	is($r->{status}, $wrong->[1], "import @{$wrong->[0]}: exit $wrong->[1]");
	like($r->{err}, $wrong->[2], "import @{$wrong->[0]}: says why");
}
$r = run(args => [qw(args import --dry-run --from -)], in => $help);
like($r->{out}, qr/^17 arguments/, 'import --from -');

done_testing();
