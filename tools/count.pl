#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# count.pl [TREE]: the size of src/ in figures, for holding one state of the tree against another.
#
# A function begins at a `{` in the first column and ends at the next `}` there. A static function
# is used once when its name occurs twice in its file (forward declarations do not count).
use strict;
use warnings;

my $root = $ARGV[0] // '.';
my (%n, %folder, %type);

for my $path (split /\n/, `find '$root/src' -name '*.[ch]'`) {
	open my $in, '<', $path or die "$path: $!\n";
	my @line = <$in>;
	my (%word, @static);

	$n{files}++;
	$n{lines} += @line;
	$n{'files under 40 lines'}++ if @line < 40;
	(my $dir = $path) =~ s{/[^/]*$}{};
	$folder{$dir}++;
	for my $i (0 .. $#line) {
		next if $line[$i] =~ m{^\s*/?\*};
		$word{$1}++ while $line[$i] =~ /\b([A-Za-z_]\w*)\b/g;
		$n{assertions}++ if $line[$i] =~ /\bassert\(/;
		$type{$2}{$path} = 1 if $line[$i] =~ /^(struct|enum|union) (\w+) \{/;
		if ($line[$i] =~ /^static\b.*?(\w+)\(.*;\s*$/) {
			$word{$1}--; # a forward declaration
		}
		next if $line[$i] !~ /^\{/;
		my $head = $i;
		$head-- while $head > 0 && $line[$head - 1] =~ /\S/ &&
			$line[$head - 1] !~ m/[;\}]\s*$|\*\/\s*$|^#/;
		my $end = $i;
		$end++ while $end < $#line && $line[$end] !~ /^\}/;
		$n{functions}++;
		push @static, [$1, $end - $i - 1]
			if join('', @line[$head .. $i - 1]) =~ /^static\b[^(]*?\b(\w+)\(/s;
	}
	for (@static) {
		$n{'static functions with one use, under 8 lines'}++ if $word{$_->[0]} == 2 && $_->[1] < 8;
	}
}
$n{'folders with more than 25 files'} = grep { $_ > 25 } values %folder;
$n{'type names defined more than once'} = grep { keys %$_ > 1 } values %type;
open my $make, '<', "$root/Makefile" or die "$root/Makefile: $!\n";
my $makefile = do { local $/; <$make> };
my ($libraries) = $makefile =~ /^LDLIBS :=((?:[^\n]*\\\n)*[^\n]*)/m;
my %library = map { $_ => 1 } $libraries =~ /(?<![\w-])-l(\S+?)(?=[\s)])/g;
$n{'libraries the program is linked with'} = grep { $_ ne 'm' } keys %library;
printf "%-46s %d\n", $_, $n{$_} // 0 for 'lines', 'files', 'files under 40 lines', 'functions',
	'static functions with one use, under 8 lines', 'folders with more than 25 files',
	'type names defined more than once', 'libraries the program is linked with', 'assertions';
printf "%-46s %.3f\n", 'assertions per function', $n{assertions} / $n{functions};
