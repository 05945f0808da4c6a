#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A few command lines with one call to the system failing at a time: a small part of `make torture`,
# which tests/torture/torture.pl is and describes. The same points are tried every time.
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use Test::More;

my $program = abs_path($ENV{PROFLLM} || die "PROFLLM must name the program\n");
$ENV{TORTURED} = $program =~ s,[^/]*$,profllm-torture,r;
-x $ENV{TORTURED} or die "$ENV{TORTURED} is not there: make $ENV{TORTURED}\n";

my @lines = (
	'^bench score run.rec --save-result --result-filename own/old.json$',
	'^export --store sqlite:own/runs.db --output own/old.json$',
	'^ingest run.json again.json --store sqlite:new.db $',
	'^~init --force own/old.json --server sim --goal run$',
	'^bench serve .* --save-result --result-filename out.json$',
	'^dataset compile .* --output own/old.json$',
);
my $only = join '|', @lines;
my $out = qx('$FindBin::Bin/../torture/torture.pl' --points 5 --seed 3 --only '$only' 2>&1);

is($?, 0, 'nothing is found') or diag $out;
my ($lines, $tries, $failed, $cut) = $out =~
	/^(\d+) of \d+ command lines, .* (\d+) tries, (\d+) calls failed, (\d+) reads and writes cut/m;
is($lines // 0, scalar @lines, 'in every line');
cmp_ok($failed // 0, '>', ($tries // 1) / 2, 'calls failed');
cmp_ok($cut // 0, '>', 0, 'reads and writes were cut short');
done_testing;
