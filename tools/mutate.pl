#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# mutate.pl [--count N] [--seed N] [--under src/DIR] [--jobs N] [--show]
# mutate.pl --again FILE [--jobs N]
# mutate.pl --patches FILE --with UNIT [--jobs N]
#
# Do tests notice when the program is wrong? Changes one operator, constant or branch of a source
# file at a time, compiles that file, and runs the unit tests of its layer, then those whose
# sources include its header: the likeliest first, then the quickest. A test notices when it fails
# twice, or takes many times as long as without the change. `make mutate` builds what this needs;
# nothing in the tree is changed. --again judges what survived according to FILE, an earlier output.
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
my $least = $ENV{MUTATE_LEAST} // 85;
my $known = 'tests/mutate-equivalent.txt';
my ($slack_s, $times_clean) = (5, 8); # how long a test may take
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

my (%layer_of, %above); # folder => layer, layer => those that include it
for (split /\n/, slurp('src/LAYERS')) {
	my ($folder, $layer, $below) = m{^((?:\w+/)?(\w+)):(.*)} or next;
	$layer_of{$folder} = $layer;
	push @{$above{$_}}, $layer for split ' ', $below;
}
my %by_layer;
for my $unit (sort keys %objects) {
	my ($layer) = split /_/, $unit;
	push @{$by_layer{$layer}}, $unit;
}
# A layer without tests is judged by those of the smallest layer that includes it.
for my $layer (grep { !$by_layer{$_} } values %layer_of) {
	my ($user) = sort { @{$objects{$by_layer{$a}[0]}} <=> @{$objects{$by_layer{$b}[0]}} }
		grep { $by_layer{$_} } @{$above{$layer} // []};
	$by_layer{$layer} = $by_layer{$user} if $user;
}
my %by_header; # header => tests that include it, or whose rig does
for my $unit (sort keys %objects) {
	my @includes = slurp("tests/unit/test_$unit.c") =~ /^#include "([^"]+)"/mg;
	push @includes, map { slurp("tests/unit/$_") =~ /^#include "([^"]+)"/mg }
		grep { -e "tests/unit/$_" } @includes;
	$by_header{"src/$_"}{$unit} = 1 for @includes;
}

# The tests that judge a file, those of its own layer first.
sub judges
{
	my ($path) = @_;
	(my $object = $path) =~ s{^src/(.*)\.c$}{$build/obj/$1.o};
	(my $header = $path) =~ s/\.c$/.h/;
	(my $dir = $path) =~ s{^src/(.*)/[^/]*$}{$1};
	my ($stem) = $path =~ m{([^/]+)\.c$};
	my @own = @{$by_layer{$layer_of{$dir} // $dir} // []};
	my %is_own = map { $_ => 1 } @own;
	my $is_user = $by_header{$header} // {};
	my @others = sort { @{$objects{$a}} <=> @{$objects{$b}} || $a cmp $b }
		grep { !$is_own{$_} } keys %$is_user; # the nearest first
	splice @others, 4 if @others > 4;
	# A test that has the file's name in its own is the likeliest to notice.
	my %rank = map { $_ => (/\Q$stem\E/ ? 0 : $is_own{$_} ? 1 : 2) . ($is_user->{$_} ? 0 : 1) }
		@own, @others;
	my @all = sort { $rank{$a} <=> $rank{$b} || clean_s($a) <=> clean_s($b) || $a cmp $b }
		@own, @others;
	return grep { my $u = $_; grep { $_ eq $object } @{$objects{$u}} } @all;
}

# How long a test takes without any change, in seconds; 0 while that is unknown.
sub clean_s
{
	my ($test) = @_;
	return -s "$build/mutate/$test.clean" ? slurp("$build/mutate/$test.clean") : 0;
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
	my $is_more = 0;

	for my $line (split /^/, $code) {
		my $start = $at;
		my $skip = $is_more || $line =~ /^\s*#/ || $line =~ /\bassert\(|_Static_assert|TRACE\(/ ||
			$line !~ /^\t/;
		$is_more = $line =~ /\\$/ && ($is_more || $line =~ /^\s*#/);
		$at += length $line;
		next if $skip;
		while ($line =~ / (<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[<>+\-*\/%&|]) (?=\S)/g) {
			push @site, [$start + $-[1], length $1, $other{$1}, "$1 becomes $other{$1}"];
		}
		while ($line =~ /(?<![\w.])(\d+)(?![\w.])/g) {
			push @site, [$start + $-[1], length $1, $1 + 1, "$1 becomes " . ($1 + 1)];
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
	kill 'KILL', -$pid; # what it left behind
	return $rc;
}

# Compiles a text in the place of a file. What an assertion prints has the path of the original.
sub code_of
{
	my ($text, $source, $object, $path) = @_;
	(my $dir = $path) =~ s{/[^/]*$}{};
	write_file($source, qq(#line 1 "$path"\n$text));
	my $rc = run("$compile -iquote $dir -g0 -c -o $object $source", 120, "$object.log");
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
		(my $original = $path) =~ s{^src/(.*)\.c$}{$build/obj/$1.o};
		my $object = "$place/" . ($path =~ s{/}{_}gr) . '.o';

		File::Path::make_path($folder);
		my $before = original_code_of($source, $object, $path);
		my $after = code_of($text{$path}, $source, $object, $path) // return 'broken';
		$is_same &&= $before eq $after;
		$object{$original} = $object;
	}
	return 'same' if $is_same;
	for my $test ($unit ? $unit : judges($m->{path})) {
		next if !prepare_test($test);
		my @objects = map { $object{$_} // $_ } @{$objects{$test}};
		my $main = "$build/mutate/$test.o";
		my $made = run("$compile -Wl,-S -o $place/test $main @objects $libs", 120,
			"$place/link.log");
		return 'broken' if $made;
		my $limit_s = $slack_s + $times_clean * clean_s($test);
		my $rc = run("$place/test", $limit_s, "$place/test.log") || next;
		# Twice: a busy machine can make a test fail once.
		$rc = run("$place/test", $limit_s, "$place/test.log") || next;
		return ('killed', $rc eq 'time' ? "$test: it does not end" :
			$o{patches} ? first_word("$place/test.log") : $test);
	}
	return 'survived';
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
	my ($test) = @_;
	my ($object, $log) = ("$build/mutate/$test.o", "$build/mutate/$test.log");
	my ($clean, $unit) = ("$build/mutate/$test.clean", "$build/unit/$test");

	while (!-e $clean || -M $clean > -M $unit) {
		if (!mkdir "$dir/$test.lock") {
			Time::HiRes::sleep(0.05);
			next;
		}
		my $rc = run("$compile -Itests/unit -c -o $object tests/unit/test_$test.c", 300, $log);
		my $begun = Time::HiRes::time();
		$rc ||= run($unit, 300, $log);
		print "# $test fails without any change and is left out, see $log\n" if $rc;
		write_file("$dir/$test.new", $rc ? '' : sprintf '%.3f', Time::HiRes::time() - $begun);
		system 'mv', "$dir/$test.new", $clean;
		rmdir "$dir/$test.lock";
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
		if (!judges($path)) {
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

# Where a change is: "path:line:column", and the text of its line.
sub line_of
{
	my ($m) = @_;
	my $text = slurp($m->{path});
	my $start = rindex($text, "\n", $m->{at}) + 1;
	my ($line) = substr($text, $start) =~ /^\s*(.*)/;
	my $number = 1 + (substr($text, 0, $start) =~ tr/\n//);
	return ("$m->{path}:$number:" . (1 + $m->{at} - $start), $line);
}

# What survived according to an earlier output: the same change of the same line, wherever it is now.
sub survivors_of
{
	my ($file) = @_;
	my (%of_path, @all);

	for (split /\n/, slurp($file)) {
		my ($path, $number, $column, $change) =
			/^SURVIVED +(src\/\S+\.c):(\d+):(\d+): (.*)$/ or next;
		my %distance;
		for my $m (places_of($path)) {
			my ($place, $line) = line_of($m);
			next if "$m->{what}: $line" ne $change || $place !~ /:(\d+):$column$/;
			push @{$distance{abs $1 - $number}}, $m;
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
my (%n, %running, @left);
my $begun = time;
print "# seed $o{seed}\n" if $is_drawn;

sub reap
{
	my $pid = wait();
	my ($m, $file) = @{delete $running{$pid}};
	my ($verdict, $by) = split /\t/, slurp($file);
	my ($place, $line) = line_of($m);
	my $key = "$m->{path}: $m->{what}: $line";

	$verdict = 'equivalent' if $verdict eq 'survived' && $equivalent{$key};
	$n{$verdict}++;
	return if $verdict eq 'broken' && !$o{patches};
	printf "%-10s %s: %s%s%s\n", $verdict eq 'survived' ? 'SURVIVED' : $verdict, $place,
		$m->{what}, $o{patches} ? '' : ": $line", $by ? " [$by]" : '';
}

if ($o{show}) {
	printf "%s: %s: %s\n", (line_of($_))[0], $_->{what}, (line_of($_))[1]
		for @mutant[0 .. (List::Util::min($want, scalar @mutant)) - 1];
	exit 0;
}
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
my $judged = ($n{killed} // 0) + ($n{survived} // 0);
printf "# %d of %d killed (%.1f %%), %d equivalent, %d of the same code, %d do not compile, %d s\n",
	$n{killed} // 0, $judged, $judged ? 100 * ($n{killed} // 0) / $judged : 0,
	$n{equivalent} // 0, $n{same} // 0, $n{broken} // 0, time - $begun;
exit(!$judged || 100 * ($n{killed} // 0) / $judged < $least);
