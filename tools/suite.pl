#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# suite.pl TEST...: runs tests that speak TAP and adds them up.
#
# It is `prove` with two more things. The last line is `N passed, N failed`, followed by
# `, N skipped` when cases were skipped; their reasons are listed above it, and the files that took
# longest. A test program that dies, ends with a status other than 0, or runs fewer cases than it
# planned counts as at least one failure. The second is what runs next to what: JOBS tests at once
# (default 6 on two processors: they wait more than they compute), and after them, one at a time,
# those of tests/load, which compare times. A comment `suite: CLASS` at the start of a line of the
# test's source says otherwise:
#   alone   one at a time, because it measures how long something takes
#   shared  next to others although it is in tests/load
#   first   next to others, started before them because it takes longest
# A unit test whose source does not say `threads: yes` runs with the library NO_THREADS, if that is set.
#
# Up to AGAIN files that failed (5; 0 under a sanitizer, whose findings never count as chance) are run
# once more at the end, by themselves. One that passes then counts as passed, and is listed above the
# last line as one that does not bear a busy machine.
use strict;
use warnings;
use TAP::Harness;
use TAP::Parser::Aggregator;

$| = 1;
$ENV{HF_HUB_OFFLINE} = 1; # no test asks the world
$ENV{PROFLLM_CACHE_DIR} = ''; # or leaves files
die "usage: suite.pl TEST...\n" unless @ARGV;
my $limit = $ENV{TEST_SECONDS} || 300;
my %class = (first => [], shared => [], alone => []);
my (%skipped, %seconds);
my ($is_broken, $started) = (0, 0);
# cmocka calls what is skipped failed, and has no place for a reason: a test prints it before. Where and
# why a test failed are comments of TAP, which nobody would see.
my $cmocka = "/^# .*: error: /{x; w /dev/stderr\nx; w /dev/stderr\n}\n"
	. '/^# /h; /^not ok [0-9]* # SKIP/{s/not //; G; s/\n#*/:/; s/: *$//}';

push @{$class{class_of($_)}}, twice($_) for @ARGV;
my ($all, $second) = map { TAP::Parser::Aggregator->new } 1, 2;
my $harness = TAP::Harness->new({
	verbosity => $ENV{VERBOSE} ? 1 : 0,
	failures  => 1,
	merge     => 0,
	exec      => sub { return [command($_[1])] },
});
$harness->callback(made_parser => \&watch);
$harness->callback(after_test => sub { $seconds{$_[0][0]} = $_[1]->end_time - $_[1]->start_time });
$_->start for $all, $second;
run_tests($all, $ENV{JOBS} || jobs(), @{$class{first}}, @{$class{shared}});
run_tests($all, 1, @{$class{alone}});
my @again = grep { has_failed($all->parsers($_)) } $all->descriptions;
@again = () if @again > ($ENV{AGAIN} // 5);
run_tests($second, 1, @again);
$_->stop for $all, $second;
report();

sub jobs {
	my $jobs = 2 + 2 * (`nproc` || 2);

	return $jobs < 16 ? $jobs : 16; # memory: some start a browser
}

sub run_tests {
	my ($sum, $jobs, @tests) = @_;

	$harness->jobs($jobs);
	return if !@tests || eval { $harness->aggregate_tests($sum, @tests); 1 };
	print "suite.pl: $@";
	$is_broken = 1;
}

# What a test skips is noted with its reason.
sub watch {
	my ($parser, $job) = @_;
	my $note = sub { $skipped{"$job->[0]: " . ($_[0]->explanation || 'no reason given')}++ };

	$parser->callback(test => sub { $note->(@_) if $_[0]->has_skip });
	$parser->callback(plan => sub { $note->(@_) if ($_[0]->directive // '') eq 'SKIP' });
}

sub has_failed { return $_[0]->failed || $_[0]->has_problems }

sub report {
	my ($passed, $failed, $skipped) = (0, $is_broken, 0);
	my @slow = sort { $seconds{$b} <=> $seconds{$a} } keys %seconds;

	$harness->summary($all);
	my %second = map { $_ => $second->parsers($_) } $second->descriptions;
	for my $parser (map { $second{$_} // $all->parsers($_) } $all->descriptions) {
		my $bad = scalar($parser->failed);
		my $missing = ($parser->tests_planned || 0) - $parser->tests_run;

		$bad += $missing if $missing > 0;
		$bad = 1 if !$bad && $parser->has_problems;
		$failed += $bad;
		$passed += $parser->actual_passed - grep { $_ } $parser->skipped;
	}
	printf "%5.1f s  %s\n", $seconds{$_}, $_ for grep { defined } @slow[0 .. 9];
	for (sort keys %skipped) {
		print "skipped: $_", $skipped{$_} > 1 ? " ($skipped{$_} cases)" : '', "\n";
		$skipped += $skipped{$_};
	}
	print "passed only when run again, by itself: $_\n"
		for grep { !has_failed($second{$_}) } sort keys %second;
	print "$passed passed, $failed failed", $skipped ? ", $skipped skipped" : '', "\n";
	exit($failed ? 1 : 0);
}

sub slurp {
	my ($path) = @_;

	open my $f, '<', $path or return '';
	local $/;
	return <$f> // '';
}

# The text of a test; that of a unit test is not the program.
sub source {
	my ($test) = @_;

	return slurp($test =~ m,unit/([^/]+)$, ? "tests/unit/test_$1.c" : $test);
}

sub class_of {
	my ($test) = @_;
	my ($word) = source($test) =~ m,^(?:#|//| \*) suite: (\w+),m;

	$word //= $test =~ m,tests/load/, ? 'alone' : 'shared';
	die "$test: suite: $word: expected alone, shared or first\n" unless $class{$word};
	return $word;
}

# What works on a results store is run on SQLite and, where there is a server, on PostgreSQL too,
# unless it says `# store: sqlite`: then the store is not what it tests.
sub twice {
	my ($test) = @_;

	return $test unless $ENV{PROFLLM_TEST_POSTGRES} && $test =~ /\.t$/;
	my $text = source($test);
	return $text =~ /^use Dash\b|\bstore_url\(/m && $text !~ /^# store: sqlite$/m
		? ($test, "$test\@postgresql") : $test;
}

sub command {
	my ($test, $store) = split /@/, $_[0];

	my $is_unit = $test =~ m,unit/[^/]+$,;
	my $guard = $is_unit && source($test) !~ m,^(?: \*|/\*) threads: yes\b,m ? $ENV{NO_THREADS} : '';
	my @command = $is_unit ? ('bash', '-c', "set -o pipefail; \"\$0\" | sed '$cmocka'", $test) : $test;

	# See free_port in Ports.pm; another suite on this machine begins elsewhere.
	my $ports = 10000 + 64 * (($$ + $started++) % 350);
	return ('env', $guard ? "LD_PRELOAD=$guard" : (), 'TEST_STORE=' . ($store // 'sqlite'),
		"TEST_PORTS=$ports", 'timeout', '-k', '10', $limit, @command);
}
