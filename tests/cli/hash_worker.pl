#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Answers bench hash and bench prefix-block-hash with times that the test knows, and writes what it is
# asked, a JSON line each, into the file $RECORD. SKIP: a function or algorithm that is missing; BAD:
# a member of the answer that is replaced by a text.
use strict;
use warnings;
use JSON::PP;

my $json = JSON::PP->new->utf8->canonical;
open my $talk, '+<&=', $ENV{PROFLLM_WORKER_FD} or die "descriptor: $!\n";
open my $record, '>>', $ENV{RECORD} or die "$ENV{RECORD}: $!\n";
my %mean_s = (sha256 => 2e-6, xxhash => 1e-6, hash => 0.5e-6);
my $held = 0;

sub take {
	my ($n) = @_;
	my $got = '';
	while (length $got < $n) { sysread $talk, $got, $n - length $got, length $got or exit 0 }
	return $got;
}

sub speak {
	my $text = $json->encode($_[0]);
	syswrite $talk, pack('N', length $text) . $text;
}

sub answer {
	my ($q) = @_;
	my $name = $q->{function} // $q->{algorithm} // '';

	return { skipped => "No module named '$name'" } if $name && $name eq ($ENV{SKIP} // '');
	return { mean_s => $mean_s{$name}, std_s => 0.25e-6 } if $q->{type} eq 'hash';
	if ($q->{type} eq 'blocks') {
		$held = 0 if $q->{is_first};
		$held += @{$q->{ids}};
		return { n => $held };
	}
	return { times_s => [map { $_ / 10 } 1 .. $q->{trials}] } if $q->{type} eq 'block_hash';
	return {};
}

speak({ type => 'hello', protocol => 1, engine => 'vllm', version => '9', features => [] });
while (1) {
	my $q = $json->decode(take(unpack 'N', take(4)));
	my $told = answer($q);

	syswrite $record, $json->encode($q) . "\n";
	$told->{$ENV{BAD}} = 'soon' if $ENV{BAD} && exists $told->{$ENV{BAD}};
	speak({ id => $q->{id}, type => 'ok', %$told });
	last if $q->{type} eq 'shutdown';
}
