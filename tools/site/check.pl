#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# check.pl FOLDER: every link of a built site leads to a file, and to an anchor in it that exists; no
# page loads anything from another origin; the search index knows the pages. 1 when not.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Spec ();

my $root = shift or die "check.pl: expected the folder of the site\n";
my (%ids, $links, $findings);

sub read_page {
	my ($file) = @_;
	open my $fh, '<:encoding(UTF-8)', $file or die "$file: $!\n";
	local $/;
	return scalar <$fh>;
}

sub finding {
	print "$_[0]: $_[1]\n";
	$findings++;
}

# Resolves the dots of a path that is relative to a folder.
sub resolved {
	my @out;
	for (split m{/}, File::Spec->catfile(@_)) {
		if ($_ eq '..') { pop @out }
		elsif ($_ ne '.') { push @out, $_ }
	}
	return join '/', @out;
}

chomp(my @pages = `find '$root' -name '*.html' ! -name 404.html | sort`);
@pages or die "check.pl: no pages in $root\n";
for my $page (@pages) {
	$ids{$page} = { map { $_ => 1 } read_page($page) =~ /\s(?:id|name)="([^"]+)"/g };
}
for my $page (@pages) {
	my $html = read_page($page);
	while ($html =~ /<(\w+)\b[^>]*?\s(?:href|src)="([^"]*)"/g) {
		my ($tag, $link) = ($1, $2);
		if ($link =~ m{^(?:https?:)?//}) {
			finding($page, "loads $link") if $tag ne 'a';
			next;
		}
		next if $link =~ /^(?:mailto|data|javascript):/;
		my ($path, $anchor) = $link =~ /^([^#?]*)(?:\?[^#]*)?(?:#(.*))?$/;
		my $target = $path eq '' ? $page : resolved(dirname($page), $path);
		$target .= '/index.html' if -d $target;
		$links++;
		if (!-e $target) { finding($page, "link to $link, which does not exist") }
		elsif (length($anchor // '') && $ids{$target}) {
			$anchor =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
			utf8::decode($anchor);
			finding($page, "link to $link: no such heading") unless $ids{$target}{$anchor};
		}
	}
}
my $index = "$root/search/search_index.json";
finding($index, 'the search index lacks the tutorial')
	unless -e $index && read_page($index) =~ m{docs/tutorial\.html};
printf "site: %d pages, %d links, %d findings\n", scalar @pages, $links, $findings // 0;
exit($findings ? 1 : 0);
