#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# docs/conformance.md names a test for every claim; each file and each case must be there.
use strict;
use warnings;
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/../..";

sub slurp
{
	my ($path) = @_;
	open(my $f, '<:utf8', "$root/$path") or return;
	local $/;
	return scalar <$f>;
}

my (%text, $claims);
for my $line (split /\n/, slurp('docs/conformance.md')) {
	my ($claim, $tests) = $line =~ /^\| (.+?) \| (.+) \|$/ or next;
	my @missing;
	my $named = 0;

	next if $claim eq 'claim';
	while ($tests =~ /`(tests\/[^`]+)`(?: \(([^()]+)\))?/g) {
		my ($path, $cases) = ($1, $2 // '');

		$named++;
		$text{$path} //= slurp($path) // '';
		push @missing, $path if $text{$path} eq '';
		push @missing, map { "$path: $_" } grep { index($text{$path}, $_) < 0 } split /, /, $cases;
	}
	$claims++;
	ok($named && !@missing, $claim) or diag($named ? "not there: @missing" : 'no test is named');
}
cmp_ok($claims, '>', 90, 'the page was read');
done_testing();
