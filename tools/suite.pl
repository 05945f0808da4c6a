#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# suite.pl TEST...: runs tests that speak TAP and adds them up.
#
# It is `prove` with one more line: the last one is `N passed, N failed`, alone. A test
# program that dies, ends with a status other than 0, or runs fewer cases than it planned
# counts as at least one failure. JOBS unit and command-line tests run at once (default 2: they
# wait more than they compute); those under load, which measure time, one after the other.
use strict;
use warnings;
use TAP::Harness;

$ENV{HF_HUB_OFFLINE} = 1; # no test asks the world
$ENV{PROFLLM_CACHE_DIR} = ''; # or leaves something behind
my @tests = map { twice($_) } @ARGV;
die "usage: suite.pl TEST...\n" unless @tests;
my $limit = $ENV{TEST_SECONDS} || 300;
my $harness = TAP::Harness->new({
	verbosity => $ENV{VERBOSE} ? 1 : 0,
	failures  => 1,
	merge     => 0,
	jobs      => $ENV{JOBS} || 2,
	rules     => { seq => [{ par => ['**unit/*', '**cli/*'] }, { seq => '**' }] },
	exec      => sub { return [command($_[1])] },
});
my $all = $harness->runtests(@tests);
my ($passed, $failed) = (0, 0);

for my $parser ($all->parsers) {
	my $bad = scalar($parser->failed);
	my $missing = ($parser->tests_planned || 0) - $parser->tests_run;

	$bad += $missing if $missing > 0;
	$bad = 1 if !$bad && $parser->has_problems;
	$passed += scalar($parser->actual_passed);
	$failed += $bad;
}
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);

# What works on a results store is run on SQLite and, where there is a server, on PostgreSQL too.
sub twice {
	my ($test) = @_;

	return $test unless $ENV{PROFLLM_TEST_POSTGRES} && $test =~ /\.t$/;
	open my $f, '<', $test or return $test;
	return (grep { /^use Dash\b|\bstore_url\(/ } <$f>) ? ($test, "$test\@postgresql") : $test;
}

sub command {
	my ($test, $store) = split /@/, $_[0];

	return ('env', 'TEST_STORE=' . ($store // 'sqlite'), 'timeout', '-k', '10', $limit, $test);
}
