#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# mutate.pl [--count N] [--seed N] [--under src/DIR] [--jobs N] [--show]
# mutate.pl --again FILE [--jobs N]
# mutate.pl --patches FILE --with UNIT [--jobs N]
#
# Do tests notice when the program is wrong? Changes one operator, constant or branch of a source
# file at a time, compiles that file, and runs the unit tests of its layer, then those whose
# sources include its header: the likeliest first, then the quickest. A test notices when it fails
# twice, or takes many times as long as without the change. What survives is judged once more with
# the changed file under AddressSanitizer, as `make asan` runs these tests: a leak or an access out
# of bounds is noticed, too. `make mutate` builds what this needs; nothing in the tree is changed.
# --again judges what survived according to FILE, an earlier output.
#
# With --patches the changes are those of a file, and one unit test judges them all. A blank line
# ends one; it may have several pieces, of several files:
#
#   # what it is
#   src/client/load/load.c
#   -	the text as it is, one or more lines
#   +	the text that replaces it
#
# One line each: killed and by what, SURVIVED, or same (the compiler makes the same code of both, so
# it counts for nothing). Changes that do not compile are drawn again. tests/mutate-equivalent.txt
# lists survivors that change nothing anyone can see; they do not count either. The seed repeats a
# run. Exit status 1 when less than MUTATE_LEAST percent (85) was killed.
use strict;
use warnings;
use Digest::MD5 ();
use File::Path ();
use File::Temp ();
use Getopt::Long ();
use List::Util ();
use POSIX ();
use Time::HiRes ();

my %o = (count => 100, seed => time() % 100_000, under => 'src', jobs => 2);
Getopt::Long::GetOptions(\%o, 'count=i', 'seed=i', 'under=s', 'jobs=i', 'show', 'again=s',
	'patches=s', 'with=s') or die "usage: see the head of tools/mutate.pl\n";
my $build = $ENV{O} || 'build';
my $compile = $ENV{MUTATE_CC} or die "run it by make mutate, which says how to compile\n";
my $libs = $ENV{MUTATE_LIBS} // '';
# What `make ubsan` would report ends the test.
my $traps = '-fsanitize=undefined -fsanitize-undefined-trap-on-error';
# What `make asan` would report, in a second round.
my $sanitizer = '-fsanitize=address';
$ENV{ASAN_OPTIONS} = 'detect_stack_use_after_return=1:strict_string_checks=1';
my $least = $ENV{MUTATE_LEAST} // 85;
my $known = 'tests/mutate-equivalent.txt';
my $memory = 'src/core/base/mem.c';
my ($slack_s, $times_clean) = (5, 8); # how long a test may take
# Of a change: the time of its tests without it, and how many. What survived once meets more of them.
my ($tests_s, $tests_max) = $o{again} ? (60, 60) : (30, 15);
$ENV{CCACHE_READONLY} = 1; # of mutants nothing is kept
my $dir = File::Temp::tempdir('mutate-XXXXXX', TMPDIR => 1, CLEANUP => 1);

sub slurp
{
	my ($path) = @_;
	open my $f, '<', $path or die "$path: $!\n";
	local $/;
	return scalar <$f>;
}

# ---- what is there: the objects of each unit test, the tests of each file ----

my %objects; # unit test => its objects
for (split /\n/, slurp("$build/mutate/units")) {
	my ($unit, $rest) = /^(\w+): (.*)$/ or next;
	$objects{$unit} = [split ' ', $rest];
}

my %is_linked = map { $_ => 1 } map { @$_ } values %objects;

sub object_of { return $_[0] =~ s{^src/(.*)\.c$}{$build/obj/$1.o}r }

# Runs a test of the coverage build and keeps which lines it reached and which it did not, a line
# for each file: "src/core/base/buf.c 12 13 -14 20". The files it counts in are its own.
sub measure_reach
{
	my ($test) = @_;
	my $place = "$dir/$test.reach";
	my $prefix = $place . POSIX::getcwd() . "/$build/cov/obj";
	my $reached = '';
	my ($path, @line);

	mkdir $place;
	run("GCOV_PREFIX=$place $build/cov/unit/$test", 300, "$dir/$test.log");
	my @count = split /\n/, `find $prefix -name '*.gcda'`;
	for (@count) {
		my $notes = s{^\Q$place\E(.*)\.gcda$}{$1.gcno}r;
		symlink $notes, s{\.gcda$}{.gcno}r;
	}
	open my $f, '-|', "gcov -t @count 2>/dev/null" or die "gcov: $!\n";
	my $keep = sub { $reached .= "$path @line\n" if @line && $path =~ /^src\/.*\.c$/ };
	while (<$f>) {
		if (/^ +-: +0:Source:(.*)/) {
			$keep->() if defined $path;
			($path, @line) = $1;
		} elsif (/^ *(?:\d+\*?|(#####|=====)): *(\d+):/) {
			push @line, $1 ? -$2 : $2;
		}
	}
	$keep->() if defined $path;
	write_file("$dir/$test.new", $reached);
	system "mv $dir/$test.new $build/mutate/$test.reach; rm -rf $place";
}

my (%reach, %has_code); # path => test => a bit for each line; path => a bit for each line
sub read_reach
{
	my %running;
	for my $test (sort keys %objects) {
		my ($kept, $unit) = ("$build/mutate/$test.reach", "$build/cov/unit/$test");
		next if -e $kept && (stat $kept)[9] >= (stat $unit)[9];
		delete $running{wait()} if keys %running >= $o{jobs};
		my $pid = fork() // die "fork: $!\n";
		if (!$pid) {
			measure_reach($test);
			POSIX::_exit(0);
		}
		$running{$pid} = 1;
	}
	1 while wait() > 0;
	for my $test (sort keys %objects) {
		for (split /\n/, slurp("$build/mutate/$test.reach")) {
			my ($path, @line) = split ' ';
			my $bits = '';
			vec($bits, $_, 1) = 1 for grep { $_ > 0 } @line;
			$reach{$path}{$test} = $bits if $bits ne '';
			$has_code{$path} //= '';
			vec($has_code{$path}, abs, 1) = 1 for @line;
		}
	}
}

# The tests that reach a line: those of its file, of its layer, and the quickest first; one at least,
# however long it takes. A line without code of its own, as in a table, is reached by all that reach the file.
sub judges
{
	my ($path, $number) = @_;
	my ($layer, $stem) = $path =~ m{(\w+)/([^/]+)\.c$};
	my $of_test = $reach{$path} // {};
	my @all = grep { vec($of_test->{$_}, $number, 1) } keys %$of_test;
	@all = keys %$of_test if !@all && !vec($has_code{$path} // '', $number, 1);
	my %far = map { $_ => /^\Q$layer\E(_|$)/ ? (/_\Q$stem\E/ ? 0 : 1) : 2 } @all;
	@all = sort { $far{$a} <=> $far{$b} || clean_s($a) <=> clean_s($b) || $a cmp $b } @all;
	splice @all, $tests_max if @all > $tests_max;
	my ($left_s, $n) = ($tests_s, 0);
	return grep { ($left_s -= clean_s($_)) > 0 || !$n++ } @all;
}

# What is kept of a test that is built with these flags: its object, how long it takes.
sub kept_of { return "$build/mutate/$_[0]" . ($_[1] ? '.asan' : '') }

# How long a test takes without any change, in seconds; 0 while that is unknown.
sub clean_s
{
	my ($test, $flags) = @_;
	my $clean = kept_of($test, $flags) . '.clean';
	return -s $clean ? slurp($clean) : 0;
}

# ---- mutants ----

my %other = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==',
	'&&' => '||', '||' => '&&', '+' => '-', '-' => '+', '*' => '/', '/' => '*', '%' => '*',
	'+=' => '-=', '-=' => '+=', '&' => '|', '|' => '&', '<<' => '>>', '>>' => '<<');

# Comments, strings and characters become blanks of the same length.
sub masked
{
	my ($text) = @_;
	$text =~ s{(/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')}
		{my $t = $1; $t =~ s/[^\n]/ /g; $t}gse;
	return $text;
}

my $statement = qr/(?:\w+(?:->|\.))*\w+(?:\(.*\)| [-+|&]?= .*|\+\+|--)|\+\+.*|break|continue/;

# Whether what opens in a text also closes there.
sub is_whole { return ($_[0] =~ tr/(//) == ($_[0] =~ tr/)//) }

# Every change of a file: [offset, length, replacement, what].
sub sites
{
	my ($text) = @_;
	my $code = masked($text);
	my @site;
	my $at = 0;
	my ($is_more, $is_assertion) = (0, 0);

	for my $line (split /^/, $code) {
		my $start = $at;
		$is_assertion ||= $line =~ /\bassert\(|_Static_assert|TRACE\(/;
		my $skip = $is_more || $is_assertion || $line =~ /^\s*#/ || $line !~ /^\t/;
		$is_more = $line =~ /\\$/ && ($is_more || $line =~ /^\s*#/);
		$is_assertion &&= $line !~ /;/;
		$at += length $line;
		next if $skip;
		while ($line =~ / (<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[<>+\-*\/%&|]) (?=\S)/g) {
			push @site, [$start + $-[1], length $1, $other{$1}, "$1 becomes $other{$1}"];
		}
		# Any number below 0 is a failure: -1 becomes 0, and a success that is returned becomes -1.
		while ($line =~ /(?<![\w.])(\d+)(?![\w.])/g) {
			my ($number, $place, $next) = ($1, $-[1], $+[1]);
			my $before = substr($line, 0, $place);
			next if $before =~ /\b(?:arena_alloc|mem_(?:alloc|array|grow))\(/; # more memory
			my $is_success = !$number && $before =~ /(?:return|-1 :) $/ &&
				substr($line, $next) =~ /^;/;
			my $new = $is_success ? -1 : $number == 1 && $before =~ /-$/ ? 0 : $number + 1;
			push @site, [$start + $place, $next - $place, $new, "$number becomes $new"];
		}
		while ($line =~ /(?<=[(\s])!(?=[\w(])/g) {
			push @site, [$start + $-[0], 1, '', 'a negation less'];
		}
		while ($line =~ /\b(true|false)\b/g) {
			my $new = $1 eq 'true' ? 'false' : 'true';
			push @site, [$start + $-[1], length $1, $new, "$1 becomes $new"];
		}
		if ($line =~ /\b(?:if|while) \((.*)\)( \{)?$/) {
			my ($place, $n) = ($start + $-[1], length $1);
			my $condition = substr($text, $place, $n);
			push @site, [$place, $n, "!($condition)", 'a condition is negated'] if is_whole($1);
		}
		if ($line =~ /^\t+($statement);$/) {
			push @site, [$start + $-[1], length $1, '', 'a statement less'] if is_whole($1);
		}
	}
	return @site;
}

# ---- judging one ----

sub run
{
	my ($command, $seconds, $log) = @_;
	my $pid = fork() // die "fork: $!\n";
	if (!$pid) {
		POSIX::setsid();
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', $log;
		open STDERR, '>&', \*STDOUT;
		exec('/bin/sh', '-c', $command) or POSIX::_exit(127);
	}
	my $end = Time::HiRes::time() + $seconds;
	my $rc;
	while (1) {
		if (waitpid($pid, POSIX::WNOHANG()) == $pid) {
			$rc = $?;
			last;
		}
		if (Time::HiRes::time() > $end) {
			kill 'KILL', -$pid;
			waitpid $pid, 0;
			return 'time';
		}
		Time::HiRes::sleep(0.01);
	}
	kill 'KILL', -$pid; # processes it left
	return $rc;
}

# Compiles a text in the place of a file. What an assertion prints has the path of the original.
sub code_of
{
	my ($text, $source, $object, $path, $flags) = @_;
	$flags //= '';
	(my $dir = $path) =~ s{/[^/]*$}{};
	write_file($source, qq(#line 1 "$path"\n$text));
	my $rc = run("$compile $traps $flags -iquote $dir -g0 -c -o $object $source", 120, "$object.log");
	return $rc ? undef : Digest::MD5::md5_hex(slurp($object));
}

# That of a file without any change: once for all mutants of it.
sub original_code_of
{
	my ($source, $object, $path) = @_;
	my $kept = "$dir/" . ($path =~ s{/}{_}gr) . '.md5';
	return slurp($kept) if -e $kept;
	my $code = code_of(slurp($path), $source, $object, $path) // die "$path does not compile\n";
	write_file("$object.md5", $code);
	rename "$object.md5", $kept;
	return $code;
}

# ('broken' | 'same' | 'survived' | 'killed', by what).
sub judge
{
	my ($m, $place, $unit) = @_;
	my (%text, %object);
	my $is_same = 1;

	$text{$_->{path}} //= slurp($_->{path}) for @{$m->{edits}};
	# From the end, so that places stay where they are.
	for my $e (sort { $b->{at} <=> $a->{at} } @{$m->{edits}}) {
		substr($text{$e->{path}}, $e->{at}, $e->{n}) = $e->{new};
	}
	for my $path (sort keys %text) {
		my $source = "$place/$path";
		(my $folder = $source) =~ s{/[^/]*$}{};
		my $object = "$place/" . ($path =~ s{/}{_}gr) . '.o';

		File::Path::make_path($folder);
		my $before = original_code_of($source, $object, $path);
		my $after = code_of($text{$path}, $source, $object, $path) // return 'broken';
		$is_same &&= $before eq $after;
		$object{object_of($path)} = $object;
	}
	return 'same' if $is_same;
	my @judge = $unit ? $unit : judges($m->{path}, (line_of($m))[1]);
	return ('survived', 'no unit test reaches it') if !@judge;
	my @verdict = killer_of(\%object, $place, '', @judge);
	return @verdict if @verdict;
	return 'survived' if $o{patches};
	for my $path (sort keys %text) {
		my $object = $object{object_of($path)};

		code_of($text{$path}, "$place/$path", $object, $path, $sanitizer) // return 'broken';
	}
	@verdict = killer_of(\%object, $place, $sanitizer, @judge);
	return @verdict ? @verdict : 'survived';
}

# What a test links with. Under a sanitizer each allocation of an arena is one of the heap (mem.c).
sub objects_of
{
	my ($test, $flags, $changed) = @_;
	my $arenas = $flags ? object_of($memory) : '';
	return map { $changed->{$_} // ($_ eq $arenas ? "$dir/mem.o" : $_) } @{$objects{$test}};
}

# The first of these tests that notices, and how; an empty list when none does.
sub killer_of
{
	my ($changed, $place, $flags, @judge) = @_;

	for my $test (@judge) {
		next if !prepare_test($test, $flags);
		my @objects = objects_of($test, $flags, $changed);
		my $main = kept_of($test, $flags) . '.o';
		my $made = run("$compile $flags -Wl,-S -o $place/$test $main @objects $libs", 120,
			"$place/link.log");
		return 'broken' if $made;
		my $limit_s = $slack_s + $times_clean * clean_s($test, $flags);
		my $rc = run("$place/$test", $limit_s, "$place/test.log") || next;
		# Twice: a busy machine can make a test fail once.
		$rc = run("$place/$test", $limit_s, "$place/test.log") || next if $rc ne 'time';
		return ('killed', $rc eq 'time' ? "$test: it does not end" :
			$o{patches} ? first_word("$place/test.log") :
			$flags ? "$test, AddressSanitizer" : $test);
	}
	return;
}

# What the test says of it.
sub first_word
{
	my ($log) = @_;
	my $text = slurp($log);
	my ($what) = $text =~ /violated: (.*)/ ? $1 : $text =~ /([^\/]*: Assertion .*)/;
	my ($seed) = $text =~ /# (seed \d+)/;
	return ($what // 'it dies') . ($seed ? ", $seed" : '');
}

sub write_file
{
	my ($path, $text) = @_;
	open my $f, '>', $path or die "$path: $!\n";
	print $f $text;
	close $f or die "$path: $!\n";
}

# A test that fails without any change judges nothing. Made by one process when it is first needed,
# and again when its sources have changed.
sub prepare_test
{
	my ($test, $flags) = @_;
	my $kept = kept_of($test, $flags);
	my ($object, $log, $clean) = ("$kept.o", "$kept.log", "$kept.clean");
	my ($unit, $place) = ("$build/unit/$test", "$dir/$test.lock");
	my $program = $flags ? "$place/$test" : $unit;

	die "$unit is missing: run it by make mutate\n" if !-e $unit;
	while (!-e $clean || (stat $clean)[9] < (stat $unit)[9]) {
		if (!mkdir $place) {
			Time::HiRes::sleep(0.05);
			next;
		}
		my $rc = run("$compile $flags -Itests/unit -c -o $object tests/unit/test_$test.c", 300, $log);
		my @all = ($object, objects_of($test, $flags, {}));
		$rc ||= run("$compile $flags -Wl,-S -o $program @all $libs", 300, $log) if $flags;
		my $begun = Time::HiRes::time();
		$rc ||= run($program, 300, $log);
		print "# $test fails without any change and is left out, see $log\n" if $rc;
		write_file("$dir/$test.new", $rc ? '' : sprintf '%.3f', Time::HiRes::time() - $begun);
		system 'mv', "$dir/$test.new", $clean;
		system 'rm', '-rf', $place;
	}
	return -s $clean;
}

# ---- which ones ----

sub places_of
{
	my ($path) = @_;
	return map { { path => $path, at => $_->[0], what => $_->[3], edits =>
		[{ path => $path, at => $_->[0], n => $_->[1], new => $_->[2] }] } } sites(slurp($path));
}

sub drawn
{
	my @path = grep { m{^\Q$o{under}\E} } split /\n/, `git ls-files 'src/*.c'`;
	my (@all, %without);

	for my $path (@path) {
		if (!$is_linked{object_of($path)}) {
			$without{$path} = scalar(() = sites(slurp($path)));
			next;
		}
		push @all, places_of($path);
	}
	printf "# %d places in %d files; %d files with %d more have no unit test%s\n", scalar @all,
		@path - keys %without, scalar keys %without, List::Util::sum0(values %without),
		$o{show} ? ": @{[sort keys %without]}" : '';
	srand $o{seed};
	for my $i (reverse 1 .. $#all) {
		my $k = int rand($i + 1);
		@all[$i, $k] = @all[$k, $i];
	}
	return @all;
}

# Where a change is: the text of its line, its number and column.
sub line_of
{
	my ($m) = @_;
	my $text = slurp($m->{path});
	my $start = rindex($text, "\n", $m->{at}) + 1;
	my ($line) = substr($text, $start) =~ /^\s*(.*)/;
	my $number = 1 + (substr($text, 0, $start) =~ tr/\n//);
	return ($line, $number, 1 + $m->{at} - $start);
}

# What survived according to an earlier output: the same change of the same line, wherever it is now.
sub survivors_of
{
	my ($file) = @_;
	my (%of_path, @all);

	for (split /\n/, slurp($file)) {
		my ($path, $number, $column, $change) =
			/^SURVIVED +(src\/\S+\.c):(\d+):(\d+): (.*?)(?: \[no unit.*)?$/ or next;
		my %distance;
		for my $m (places_of($path)) {
			my ($line, @place) = line_of($m);
			push @{$distance{abs $place[0] - $number}}, $m
				if "$m->{what}: $line" eq $change && $place[1] == $column;
		}
		my $nearest = List::Util::min(keys %distance);
		print "# no longer there: $_\n" if !defined $nearest;
		push @all, $distance{$nearest}[0] if defined $nearest;
	}
	return @all;
}

sub patched
{
	my @all;
	my ($what, $path, $old, $new, @edits);
	my $piece = sub {
		return if !defined $old || $old eq '';
		my $at = index slurp($path), $old;
		die "$o{patches}: '$what': this text is not in $path:\n$old" if $at < 0;
		push @edits, { path => $path, at => $at, n => length $old, new => $new };
		($old, $new) = ('', '');
	};
	my $end = sub {
		$piece->();
		push @all, { path => $edits[0]{path}, at => $edits[0]{at}, what => $what,
			edits => [@edits] } if @edits;
		@edits = ();
	};

	for (split(/\n/, slurp($o{patches})), '') {
		if ($_ eq '') { $end->() }
		elsif (/^# ?(.*)/) { $what = $1 }
		elsif (/^src\//) { $piece->(); $path = $_; ($old, $new) = ('', '') }
		elsif (/^-(.*)/s) { $piece->() if $new ne ''; $old .= "$1\n" }
		elsif (/^\+(.*)/s) { $new .= "$1\n" }
	}
	return @all;
}

my %equivalent; # "path: what: line"
if (-e $known) {
	/^(src\/.*)/ and $equivalent{$1} = 1 for split /\n/, slurp($known);
}

$| = 1;
my $is_drawn = !$o{patches} && !$o{again};
my @mutant = $o{patches} ? patched() : $o{again} ? survivors_of($o{again}) : drawn();
my $want = $is_drawn ? $o{count} : @mutant;
my (%n, %by_folder, %running);
my $begun = time;
# A test finds libraries that stand in for others in ../tests of its own folder.
symlink POSIX::getcwd() . "/$build/tests", "$dir/tests" or die "$dir/tests: $!\n";
print "# seed $o{seed}\n" if $is_drawn;

sub reap
{
	my $pid = wait();
	my ($m, $file) = @{delete $running{$pid}};
	my ($verdict, $by) = split /\t/, slurp($file);
	my ($line, @place) = line_of($m);
	my $key = "$m->{path}: $m->{what}: $line";

	$verdict = 'equivalent' if $verdict eq 'survived' && $equivalent{$key};
	$n{$verdict}++;
	(my $folder = $m->{path}) =~ s{^src/(.*)/[^/]*$}{$1};
	$by_folder{$folder}{$verdict}++;
	$by_folder{$folder}{unreached}++ if $verdict eq 'survived' && $by;
	return if $verdict eq 'broken' && !$o{patches};
	printf "%-10s %s: %s%s%s\n", $verdict eq 'survived' ? 'SURVIVED' : $verdict,
		join(':', $m->{path}, @place), $m->{what}, $o{patches} ? '' : ": $line", $by ? " [$by]" : '';
}

if ($o{show}) {
	for my $m (@mutant[0 .. List::Util::min($want, scalar @mutant) - 1]) {
		my ($line, @place) = line_of($m);
		printf "%s: %s: %s\n", join(':', $m->{path}, @place), $m->{what}, $line;
	}
	exit 0;
}
read_reach() if !$o{patches};
code_of(slurp($memory), "$dir/mem.c", "$dir/mem.o", $memory, "$sanitizer -DARENA_EXACT") //
	die "$memory does not compile\n";
for my $m (@mutant) {
	my $judged = ($n{killed} // 0) + ($n{survived} // 0);
	last if $is_drawn && $judged + keys(%running) >= $want;
	reap() if keys(%running) >= $o{jobs};
	my $place = "$dir/" . (++$n{begun});
	mkdir $place;
	my $pid = fork() // die "fork: $!\n";
	if (!$pid) {
		my ($verdict, $by) = judge($m, $place, $o{with});
		write_file("$place.verdict", join("\t", $verdict, $by // ''));
		system 'rm', '-rf', $place;
		POSIX::_exit(0);
	}
	$running{$pid} = [$m, "$place.verdict"];
}
reap() while keys %running;
printf "# %-20s %3d of %3d killed, %d not reached by a unit test\n", $_->[0], $_->[1]{killed} // 0,
	($_->[1]{killed} // 0) + ($_->[1]{survived} // 0), $_->[1]{unreached} // 0
	for map { [$_, $by_folder{$_}] } sort keys %by_folder;
my $judged = ($n{killed} // 0) + ($n{survived} // 0);
printf "# %d of %d killed (%.1f %%), %d equivalent, %d of the same code, %d do not compile, %d s\n",
	$n{killed} // 0, $judged, $judged ? 100 * ($n{killed} // 0) / $judged : 0,
	$n{equivalent} // 0, $n{same} // 0, $n{broken} // 0, time - $begun;
exit(!$judged || 100 * ($n{killed} // 0) / $judged < $least);
