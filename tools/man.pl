#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# man.pl PROFLLM DIR: a manual page for the program and one for each of its verbs, written from its
# own --help: what a page says is what the program takes.
use strict;
use warnings;
use JSON::PP;

my $json = JSON::PP->new->utf8->canonical; # the same bytes each time

my ($program, $dir) = @ARGV;
die "usage: man.pl PROFLLM DIR\n" unless $dir;

sub output {
	open my $in, '-|', $program, @_ or die "$program @_: $!\n";
	local $/;
	my $text = <$in>;
	close $in or die "$program @_: exit status " . ($? >> 8) . "\n";
	return $text;
}

# Text in which troff sees no request and no escape.
sub plain {
	my ($text) = @_;
	$text =~ s/\\/\\e/g;
	$text =~ s/-/\\-/g;
	$text =~ s/^([.'])/\\&$1/mg;
	return $text;
}

sub write_page {
	my ($name, $version, $summary, $body) = @_;
	open my $out, '>:utf8', "$dir/$name.1" or die "$dir/$name.1: $!\n";
	print $out ".TH \U$name\E 1 \"\" \"$version\" \"ProfLLM\"\n.SH NAME\n", plain($name), ' \- ',
		plain($summary), "\n", $body;
	close $out or die "$dir/$name.1: $!\n";
}

sub option {
	my ($o) = @_;
	my $arg = defined $o->{arg} ? ' \fI' . plain($o->{arg}) . '\fR' : '';
	my $text = ".TP\n" . join(', ', map { '\fB' . plain($_) . '\fR' . $arg } @{$o->{spellings}});
	my $default = $o->{default};

	$default = $default ? undef : $default if JSON::PP::is_bool($default);
	$text .= "\n" . plain($o->{help} // '') . "\n";
	$text .= 'Choices: ' . plain(join ', ', @{$o->{choices}}) . ".\n" if $o->{choices};
	$text .= 'Default: ' . plain(ref $default ? $json->encode($default) : $default) . ".\n"
		if defined $default && !JSON::PP::is_bool($default) && length $default;
	return $text;
}

sub verb_page {
	my ($verb, $version) = @_;
	my $help = decode_json(output(split(/ /, $verb), '--help=json'));
	my $body = ".SH SYNOPSIS\n.B profllm $verb\n[options]\n.SH DESCRIPTION\n" .
		plain($help->{summary}) . "\n.SH OPTIONS\n";
	my $group = '';

	for my $o (@{$help->{options}}) {
		if (($o->{group} // '') ne $group) {
			$group = $o->{group};
			$body .= ".SS " . plain($group) . "\n";
		}
		$body .= option($o);
	}
	$body .= ".SH EXIT STATUS\n0 on success, 1 when something outside failed, 2 for a mistake on the" .
		" command line or in a file, 130 when it was interrupted.\n.SH SEE ALSO\n.BR profllm (1)\n";
	(my $name = "profllm-$verb") =~ tr/ /-/;
	(my $summary = $help->{summary}) =~ s/\.$//;
	write_page($name, $version, lcfirst $summary, $body);
	return $name;
}

my ($first, @rest) = split /\n/, output('--help');
my @verbs = map { /^  (\S+(?: \S+)*?)  +(\S.*)$/ ? [$1, $2] : () } @rest;
my $version = $first;
my $list = ".SH SYNOPSIS\n.B profllm\n.I command\n[options]\n.SH DESCRIPTION\nMeasures how fast a" .
	" server of large language models is, and proves the measurement.\n.SH COMMANDS\n";

die "$program --help lists no commands\n" unless @verbs;
mkdir $dir;
for (@verbs) {
	my $page = verb_page($_->[0], $version);
	$list .= ".TP\n.BR " . plain($page) . " (1)\n" . plain($_->[1]) . "\n";
}
write_page('profllm', $version, 'measure servers of large language models', $list);
