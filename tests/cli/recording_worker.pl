#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# An engine's program that does nothing and writes down what it is asked, a JSON line each, into the
# file $RECORD. MM_STATS: what it answers to mm_stats, in turn; NO_E2EL: requests have no times;
# NO_BEAM: it cannot search with beams.
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $json = JSON::PP->new->utf8->canonical;
open my $talk, '+<&=', $ENV{PROFLLM_WORKER_FD} or die "descriptor: $!\n";
open my $record, '>>', $ENV{RECORD} or die "$ENV{RECORD}: $!\n";
my @stats = @{$json->decode($ENV{MM_STATS} || '[{}]')};
my @held;

sub now_ns { return int(clock_gettime(CLOCK_MONOTONIC) * 1e9) }

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
	my $type = $q->{type};
	my %clock = (began_ns => now_ns());

	return { engine => 'record', vocab_size => 500, profile_to => 'torch', profile_dir => '/traces' }
		if $type eq 'describe';
	if ($type eq 'put') {
		@held = () if $q->{is_first};
		push @held, @{$q->{requests}};
		return { n => scalar @held };
	}
	return { requests => @stats > 1 ? shift @stats : $stats[0] } if $type eq 'mm_stats';
	return { %clock, ended_ns => now_ns() } if $type eq 'load';
	return {} unless $type =~ /^(generate|chat|beam)$/;
	select undef, undef, undef, 0.002;
	return { %clock, ended_ns => now_ns(), prompt_tokens => [map { $_->{prompt_len} } @held],
		output_tokens => [map { $_->{output_len} * $q->{n} } @held],
		$ENV{NO_E2EL} ? () : (e2el_s => [map { $_ / 8 } 1 .. @held]),
		finished => [map { $ENV{UNFINISHED} && $_ == 1 ? 0 : 1 } 1 .. @held] };
}

speak({ type => 'hello', protocol => 1, engine => 'record', version => '1',
	features => [qw(chat profile), $ENV{NO_BEAM} ? () : 'beam', $ENV{MM_STATS} ? 'mm_stats' : ()] });
while (1) {
	my $q = $json->decode(take(unpack 'N', take(4)));
	syswrite $record, $json->encode($q) . "\n";
	speak({ id => $q->{id}, type => 'ok', %{answer($q)} });
	last if $q->{type} eq 'shutdown';
}
