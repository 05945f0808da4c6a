#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What make tidy and tools/unused.sh must refuse, and what they must let pass.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp ();
use FindBin;
use Test::More;

my $root = abs_path("$FindBin::Bin/../..");
my $tag = "/* SPDX-License-Identifier: Apache-2.0 */\n";
my $body = "int x(void)\n{\n%s}\n";
my $debt = 'TO' . 'DO';
my $home = '/ho' . 'me/somebody/file';

# file, text after the SPDX line, what a finding about that file says ('' for none)
my @case = (
	['a call of printf', 'src/client/net/a.c', sprintf($body, "\tprintf(\"x\");\n"), 'only cmd/ prints'],
	['printf in a comment', 'src/client/net/a.c', "/* printf(x) */\n// exit(1)\n", ''],
	['printf in a comment of two lines', 'src/client/net/a.c', "/*\n * exit(1)\n */\n", ''],
	['printf in a string', 'src/client/net/a.c', "const char *t = \"printf(\\\"x\\\")\";\n", ''],
	['printf where it belongs', 'src/cmd/a.c', sprintf($body, "\tprintf(\"x\");\n"), ''],
	['a member called send', 'src/client/load/a.c', sprintf($body, "\tt->send(1);\n"), ''],
	['a longer name', 'src/client/load/a.c', sprintf($body, "\tpool_connect(1);\n"), ''],
	['a call of send', 'src/client/load/a.c', sprintf($body, "\tsend(1);\n"), 'sockets'],
	['a call of malloc', 'src/core/json/a.c', sprintf($body, "\tmalloc (1);\n"), 'base/mem.h'],
	['a call of fork', 'src/bench/run/a.c', sprintf($body, "\tfork();\n"), 'only proc/'],
	['70 lines', 'src/client/net/a.c', sprintf($body, "\tx();\n" x 70), ''],
	['71 lines', 'src/client/net/a.c', sprintf($body, "\tx();\n" x 71), 'function of 71 lines'],
	['a table in a function', 'src/client/net/a.c',
		sprintf($body, "\tstatic const int t[] = {\n" . "\t\t1,\n" x 80 . "\t};\n"), ''],
	['1001 lines', 'src/client/net/a.c', "int a;\n" x 1000, '1001 lines'],
	['100 columns', 'src/client/net/a.c', "\t" . 'a' x 92 . "\n", ''],
	['101 columns', 'src/client/net/a.c', "\t" . 'a' x 93 . "\n", '101 columns'],
	['101 columns of a text', 'src/client/net/a.c', "\t\"" . 'a' x 91 . "\"\n", ''],
	['100 columns of UTF-8', 'src/client/net/a.c', "\xc3\xa9" x 100 . "\n", ''],
	['blanks at the end', 'src/client/net/a.c', "int a; \n", 'blanks'],
	['a questioned word in a message', 'src/cmd/a.c',
		"const char *t = \"it was told\"\n\t\" that\";\n", '"told": write'],
	['a questioned word in a comment', 'src/cmd/a.c', "/* it was told */\n", '"told"'],
	['a questioned word that is a key', 'src/cmd/a.c', "const char *t = \"told\";\n", ''],
	['unfinished work', 'src/client/net/a.c', "/* $debt: later */\n", 'unfinished'],
	['a layer above', 'src/core/json/a.c', "#include \"client/net/a.h\"\n", 'json may not use net'],
	['a layer that is written without its folder', 'src/client/net/a.c',
		"#include \"base/err.h\"\n", 'base is no layer'],
	['a layer below', 'src/client/net/a.c', "#include \"core/base/err.h\"\n", ''],
	['a bare include', 'src/client/net/a.c', "#include \"loop.h\"\n", 'written from src/'],
	['a third level', 'src/client/net/deep/a.c', "int a;\n", 'two levels deep'],
	['a folder without a line', 'src/util/a.c', "int a;\n", 'not in src/LAYERS'],
	['OpenSSL elsewhere', 'src/client/net/a.c', "#include <openssl/ssl.h>\n",
		'src/client/net/tls.c alone'],
	['a header nobody includes', 'src/client/net/a.h', "#pragma once\n", 'nobody but its own'],
	['a unit test no rule runs', 'tests/unit/test_nothing.c', "int a;\n", 'not a layer'],
	['a path of one machine', 'src/client/net/a.c', "/* $home */\n", 'one machine'],
	['a fuzz target without corpus', 'tests/fuzz/fuzz_x.c', "int a;\n", 'no corpus/x'],
);

sub spill
{
	my ($path, $text) = @_;
	make_path($path =~ s,/[^/]*$,,r);
	open(my $f, '>:raw', $path) or die "$path: $!";
	print $f $text;
	close($f) or die "$path: $!";
}

for my $case (@case) {
	my ($name, $file, $text, $want) = @$case;
	my $dir = File::Temp->newdir;
	make_path("$dir/tools");
	system("cp $root/tools/*.sh $root/tools/*.awk $root/tools/words.* $dir/tools && cd $dir &&"
		. ' git init -q .') == 0 or die;
	spill("$dir/src/LAYERS", "core/base:\ncore/json: base\n"
		. "client/net: base\nclient/load: base net\nbench/run: base\ncmd: base\n");
	spill("$dir/src/core/base/err.h", "$tag#pragma once\n");
	spill("$dir/src/main.c", "$tag#include \"core/base/err.h\"\n");
	spill("$dir/Makefile", "all:\n");
	spill("$dir/$file", $tag . $text);
	my $out = `cd $dir && tools/tidy.sh 2>&1`;
	my $status = $? >> 8;

	if ($want eq '') {
		like($out, qr/, 0 findings$/, $name);
	} else {
		like($out, qr/^\Q$file\E:\d+: .*\Q$want\E/m, $name);
		is($status, 1, "$name: status");
	}
}

my $dir = File::Temp->newdir;
spill("$dir/src/a.c", "int used(void); int used(void) { return 1; }\n"
	. "int dead(void); int dead(void) { return 2; }\n");
spill("$dir/src/b.c", "int used(void); int main(void); int main(void) { return used(); }\n");
spill("$dir/src/gone.c", "int gone(void); int gone(void) { return 3; }\n");
my $compiled = system("cd $dir && mkdir obj && for f in a b gone; do gcc -c src/\$f.c -o obj/\$f.o ||"
	. ' exit 1; done; rm src/gone.c') == 0;
ok($compiled, 'three objects');
my $out = `cd $dir && $root/tools/unused.sh obj 2>&1`;
isnt($?, 0, 'an unused function: status');
is($out, "src/a.c: dead: global, but nobody outside this file uses it\n", 'an unused function');

# The tree itself: the suite has compiled all of it, except what needs a library that is missing here.
chdir $root or die;
my $objects = ($ENV{O} || 'build') . '/obj';
my @left_out = grep { !/none\.c$/ && !-e s/^src(.*)c$/$objects$1o/r }
	glob('src/*.c src/*/*.c src/*/*/*.c');
SKIP: {
	skip("not compiled: @left_out", 1) if @left_out;
	is(`tools/unused.sh $objects 2>&1`, '', 'nothing in this tree is unused');
}
done_testing();
