#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# tasks.pl HOW-TO.md INDEX.json: adds the tasks of the page "How do I ...?" to the search index of the
# built site, as sections of that page, so that typing a task finds its row. Each row has its anchor.
# Pages about the source, and the types of the API, are left out: a user looks for other things.
use strict;
use warnings;
use JSON::PP ();

my ($page, $index) = @ARGV;
my $json = JSON::PP->new->utf8->canonical;

sub read_file {
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$fh>;
}

sub plain {
	my ($text) = @_;
	utf8::decode($text);
	$text =~ s/<!--.*?-->//g;
	$text =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
	$text =~ s/`//g;
	$text =~ s/([&<>])/{ '&' => '&amp;', '<' => '&lt;', '>' => '&gt;' }->{$1}/ge;
	return $text;
}

my $built = $json->decode(read_file($index));
my $tasks = 0;
@{ $built->{docs} } = grep { $_->{location} !~ m{^(?:tests|bench)/|^[A-Z]+\.html} &&
	!($_->{location} =~ m{/api\.html#} && $_->{title} =~ /^[A-Z][A-Za-z]*$/) } @{ $built->{docs} };
for (split /\n/, read_file($page)) {
	my ($id, $task, $rest) = m{^\| <a id="(task-\d+)"></a>([^|]*\?) \| (.*) \|$} or next;

	push @{ $built->{docs} }, { location => "docs/how-to.html#$id", title => plain("How do I $task"),
		text => plain($rest) };
	$tasks++;
}
$tasks > 60 or die "$page: $tasks rows with a task, expected more than 60\n";
open my $out, '>', $index or die "$index: $!\n";
print $out $json->encode($built) or die "$index: $!\n";
close $out or die "$index: $!\n";
