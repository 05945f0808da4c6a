#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# words.pl: questions words in what people read (tools/words.txt says which, and what to write).
#
#   tools/words.pl             findings in messages, help, docs and pages: `file:line: "told": ...`
#   tools/words.pl --comments  findings in comments
#   tools/words.pl --count     one row per word, one column per kind of text
#   tools/words.pl --list      every text of the program itself, one per line, to be read
#
# A text of C, Python or TypeScript is a string with a blank in it; adjacent strings are one text.
# Code in Markdown (fences, backquotes) is not prose. docs/reference is made of schema/ by
# tools/gen.pl.
use strict;
use warnings;

my %opt = map { $_ => 1 } grep { /^--/ } @ARGV;
my @named = grep { !/^--/ } @ARGV;
my (@words, @allow);

sub read_file {
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$fh>;
}

# A row is `pattern TAB use instead`; `allow FILE TAB text` excuses texts of one file.
sub read_words {
	for (split /\n/, read_file('tools/words.txt')) {
		next if /^\s*(#|$)/;
		my ($left, $right) = split /\t+/, $_, 2;
		die "tools/words.txt: no tab in: $_\n" unless defined $right;
		if ($left =~ /^allow (\S+)$/) { push @allow, [$1, $right] }
		else { push @words, [$left, qr/\b(?:$left)\b/i, $right] }
	}
}

# Splits source into [kind, line, text]; kind is "text" or "comment".
sub parts_of_code {
	my ($src, $hash_comments) = @_;
	my ($line, @out, $open) = (1);
	my $comment = $hash_comments ? qr{\#[^\n]*|""".*?"""}s : qr{/\*.*?\*/|//[^\n]*}s;
	my $quote = qr{"(?<t>(?:[^"\\\n]|\\.)*)"|'(?<t>(?:[^'\\\n]|\\.)*)'}s;
	$quote = qr{$quote|`(?<t>(?:[^`\\]|\\.)*)`}s if !$hash_comments;

	while ($src =~ /\G(?:(?<c>$comment)|$quote|(?<blank>\s+)|.)/gcs) {
		my ($whole, $c, $text, $blank) = ($&, $+{c}, $+{t}, $+{blank});
		if (defined $c) { push @out, ['comment', $line, $c] }
		elsif (defined $text) {
			if ($open) { $open->[2] .= $text }
			else { push @out, $open = ['text', $line, $text] }
		}
		elsif (!defined $blank) { undef $open }
		$line += $whole =~ tr/\n//;
	}
	return map { $_->[0] eq 'text' && $_->[2] !~ / / ? () : $_ } @out;
}

sub parts_of_markdown {
	my ($src) = @_;
	my ($line, $fenced, @out) = (0, 0);
	for (split /\n/, $src) {
		$line++;
		$fenced = !$fenced, next if /^\s*```/;
		next if $fenced || /^    \S/;
		s/`[^`]*`/`code`/g;
		s/\]\([^)]*\)/]/g;
		push @out, ['text', $line, $_];
	}
	return @out;
}

sub parts_of_json {
	my ($src) = @_;
	my ($line, @out) = (0);
	for (split /\n/, $src) {
		$line++;
		my @texts = grep { / / } /"((?:[^"\\]|\\.)*)"/g;
		push @out, map { ["text", $line, $_] } @texts;
	}
	return @out;
}

sub parts_of_html {
	my ($src) = @_;
	$src =~ s/<(script|style)\b.*?<\/\1>/"\n" x ($& =~ tr#\n##)/gse;
	my $line = 0;
	return map { $line++; s/<[^>]*>/ /g; ['text', $line, $_] } split /\n/, $src;
}

my @kind = (    # kind of text, files, how they are read
	[messages => qr{^src/.*\.[ch]$}, sub { parts_of_code($_[0], 0) }],
	[messages => qr{^(workers|python/src)/.*\.py$}, sub { parts_of_code($_[0], 1) }],
	[help => qr{^schema/(result|experiment|api|columns|engine_args)\.json$}, \&parts_of_json],
	[docs => qr{^(README|CHANGES|SECURITY|ARCHITECTURE|STYLE)\.md$|^docs/.*\.md$},
		\&parts_of_markdown],
	[pages => qr{^web/(?:src|pages)/.*\.(ts|tsx|mjs)$}, sub { parts_of_code($_[0], 0) }],
	[pages => qr{^web/.*\.html$}, \&parts_of_html],
);

sub is_allowed {
	my ($file, $text) = @_;
	for (@allow) {
		return 1 if $file =~ /^\Q$_->[0]\E/ && index($text, $_->[1]) >= 0;
	}
	return 0;
}

my (%count, $findings);
sub judge {
	my ($kind, $file, $part) = @_;
	my ($line, $text) = @$part[1, 2];
	for (@words) {
		my ($name, $pattern, $instead) = @$_;
		while ($text =~ /$pattern/g) {
			next if is_allowed($file, $text);
			$count{$name}{$kind}++;
			my $at = $line + (substr($text, 0, $-[0]) =~ tr/\n//);
			printf qq($file:$at: "%s": write %s\n), $&, $instead unless $opt{'--count'};
			$findings++;
		}
	}
}

read_words();
my @files = @named ? @named : split /\n/, `git ls-files -co --exclude-standard`;
for my $file (@files) {
	my ($row) = grep { $file =~ $_->[1] } @kind or next;
	next if !-f $file || $file =~ /\.test\.ts$/;
	for my $part ($row->[2]->(read_file($file))) {
		if ($opt{'--list'}) { print "$file:$part->[1]: $part->[2]\n" if $part->[0] eq 'text' }
		elsif ($part->[0] eq 'comment') {
			judge('comments', $file, $part) if $opt{'--comments'} || $opt{'--count'};
		} elsif (!$opt{'--comments'} || $opt{'--count'}) { judge($row->[0], $file, $part) }
	}
}
if ($opt{'--count'}) {
	my @cols = qw(messages help docs pages comments);
	my %sum;
	printf "%-34s" . '%10s' x @cols . "\n", 'word', @cols;
	for my $name (map { $_->[0] } @words) {
		printf "%-34s" . '%10d' x @cols . "\n", $name, map { $count{$name}{$_} // 0 } @cols;
		$sum{$_} += $count{$name}{$_} // 0 for @cols;
	}
	printf "%-34s" . '%10d' x @cols . "\n", 'all', map { $sum{$_} // 0 } @cols;
}
exit($findings && !$opt{'--count'} ? 1 : 0);
