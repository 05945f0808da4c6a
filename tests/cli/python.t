#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The Python package as others meet it: its wheel in a new virtual environment, the lines of the guide,
# then every test of python/tests with what is installed there.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $root = abs_path("$FindBin::Bin/../..");
my $build = dirname($program);
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3'; # the system's, where it has one

plan skip_all => 'no python3' if system("$python -c '' 2>/dev/null") != 0;
plan skip_all => 'python3 cannot make virtual environments: python3-venv is missing'
	if system("$python -c 'import ensurepip, venv' 2>/dev/null") != 0;
plan skip_all => 'a library with a sanitizer needs a program that has it first'
	if `nm -D '$program' 2>/dev/null` =~ /__(asan|tsan|ubsan)_/;

sub run_ok
{
	my ($name, @command) = @_;
	my $run = run(command => \@command, seconds => 200);

	is($run->{status}, 0, $name) or diag($run->{out}, $run->{err});
	return $run;
}

# The program is not rebuilt while other tests use it.
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{HOME} = abs_path('.');
my @made = grep { -e } "$build/profllm", "$build/gen/version.h", glob("$build/libprofllm.so.*");
run_ok('make wheel', 'make', '-s', '-C', $root, "O=$build", "PYTHON=$python", 'wheel',
	(map { ('-o', $_) } @made), exists $ENV{WEB} ? "WEB=$ENV{WEB}" : ());
my ($wheel, @more) = glob("$build/profllm-*.whl");
is(scalar(@more), 0, 'one wheel');
like($wheel, qr{/profllm-[\d.]+[\w.+]*-py3-none-linux_\w+\.whl$}, 'named as pip expects it');
run_ok('a virtual environment', $python, '-m', 'venv', 'venv');
run_ok('pip install', qw(venv/bin/pip --disable-pip-version-check install --quiet --no-index), $wheel);
is(run_ok('the command profllm', 'venv/bin/profllm', '--version')->{out},
	run(args => ['--version'])->{out}, 'is the same program');

# ---- the guide's first lines ----

my ($lines) = slurp("$root/docs/guide/python.md") =~ /^```python\n(.*?)^```/ms;
is(scalar(() = $lines =~ /\n/g), 5, 'the guide begins with five lines');
mkdir 'examples';
spew('examples/quickstart.yaml', slurp("$root/examples/quickstart.yaml"));
my $said = run_ok('they run', 'venv/bin/python', spew('five.py', $lines));
like($said->{out}, qr/^[\d.]+ (VALID|DEGRADED|INVALID)$/m, 'a throughput and its verdict');
is($said->{err}, '', 'nothing else is printed where stderr is no terminal');

# ---- the package's own tests ----

spew('tap.py', <<'END');
import sys
import unittest


class Tap(unittest.TestResult):
    def addSuccess(self, test):
        print("ok", test.id())

    def addSkip(self, test, reason):
        print("skip", test.id(), reason)

    def addFailure(self, test, why):
        print("not", test.id(), self._exc_info_to_string(why, test).replace("\n", "\n  "))

    def addSubTest(self, test, subtest, why):
        if why:
            self.addFailure(subtest, why)

    addError = addFailure


unittest.defaultTestLoader.discover(sys.argv[1]).run(Tap())
END
my $tests = run_ok('the tests of the package end', 'venv/bin/python', 'tap.py', "$root/python/tests");
my @cases = $tests->{out} =~ /^(?:ok|not|skip) .*(?:\n  .*)*/mg;
cmp_ok(scalar(@cases), '>', 25, 'every case was found');
for (@cases) {
	my ($how, $name, $why) = /^(\w+) (\S+) ?(.*)/s;
	SKIP: {
		skip "$name: $why", 1 if $how eq 'skip';
		is($how, 'ok', $name) or diag($why);
	}
}

# ---- without what it needs ----

my $none = run(command => ['venv/bin/python', '-c', 'import profllm; profllm.version()'],
	env => { PROFLLM_LIB => 'nowhere.so' });
like($none->{err}, qr/^OSError: libprofllm cannot be loaded: nowhere\.so.*; install the wheel/m,
	'a missing library in one sentence');
done_testing();
