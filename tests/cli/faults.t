#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Runs that are spoiled on purpose: the verdict has the right reason for each, and doubts the right
# metrics. bench/fault.c is the table; bench/README.md has the command for all scenes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use File::Basename qw(dirname);
use Test::More;

my $bench = dirname($program) . '/bench/fault';
plan skip_all => "$bench is not built (make $bench)" unless -x $bench;

open my $out, '-|', $bench, qw(--quick --json --binary), $program or die "$bench: $!\n";
my @rows = map { JSON::PP::decode_json($_) } grep { /^\{/ } <$out>;
close $out;
is($?, 0, 'the scenes were played');

my ($clean) = grep { $_->{scene} eq 'clean runs' } @rows;
my @scenes = grep { defined $_->{given} && $_->{scene} ne 'clean run' } @rows;
cmp_ok(scalar(@scenes), '>=', 6, 'as many scenes as there should be');
for my $s (@scenes) {
	is($s->{problem}, '', "$s->{scene}: $s->{given}, $s->{verdict}");
}
is($clean->{invalid}, 0, 'no clean run is INVALID') or diag explain \@rows;
is($clean->{wrong}, 0, 'no clean run is VALID and wrong');
done_testing();
