#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# libprofllm as others meet it: installed into an empty prefix, found by pkg-config, used from C and
# from Python, by several threads and with a wish to stop.
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
my $prefix = abs_path('.') . '/prefix';
my $sanitized = `nm -D '$program' 2>/dev/null` =~ /__(asan|tsan|ubsan)_/;
my @quick = qw(benchmark.num_prompts=6 benchmark.request_rate=inf benchmark.random_output_len=8);

plan skip_all => 'a library with a sanitizer needs a program that has it first' if $sanitized;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)}; # `make test` is not to be asked for a job
# The program is not rebuilt while other tests use it.
my $made = run(command => ['make', '-s', '-C', $root, "O=$build", "PREFIX=$prefix", 'install',
	'-o', "$build/profllm", '-o', "$build/gen/version.h",
	exists $ENV{WEB} ? "WEB=$ENV{WEB}" : ()], seconds => 600);
is($made->{status}, 0, 'make install') or diag($made->{err}) or die("nothing is installed\n");
ok(-e "$prefix/$_", "installed: $_")
	for qw(bin/profllm lib/libprofllm.so lib/libprofllm.so.1 lib/pkgconfig/profllm.pc include/profllm.h
		share/man/man1/profllm.1 share/man/man1/profllm-bench-serve.1);
like(slurp("$prefix/share/man/man1/profllm-bench-serve.1"), qr/^\\fB\\-\\-request\\-rate\\fR/m,
	'a manual page has the options of its verb');
is_deeply([sort map { /(\S+)$/ } `nm -D --defined-only '$prefix/lib/libprofllm.so'`],
	[qw(profllm_api profllm_release profllm_run profllm_version)], 'four names and no other are visible');

$ENV{PKG_CONFIG_PATH} = "$prefix/lib/pkgconfig";
$ENV{LD_LIBRARY_PATH} = "$prefix/lib";
chomp(my $flags = `pkg-config --cflags --libs profllm 2>/dev/null`
	|| "-I$prefix/include -L$prefix/lib -lprofllm");

sub compile
{
	my ($source, $name) = @_;
	my $command = "cc -std=c99 -Wall -Wextra -Werror -pthread -o $name '$source' $flags";
	my $cc = run(command => ['sh', '-c', $command]);

	is($cc->{status}, 0, "$name compiles as C99") or diag($cc->{err});
}

# ---- the C example ----

compile("$root/examples/library/run.c", 'run');
my $c = run(command => ['./run', "$root/examples/quickstart.yaml", 'c.json', @quick]);
is($c->{status}, 0, 'C: completed') or diag($c->{err}, $c->{out});
like($c->{out}, qr/^profllm \S+: status 0$/m, 'C: the version and the status');
like($c->{err}, qr/Starting server at/, 'C: what goes on is told by the hook');
my $document = json_of(slurp('c.json'));
is($document->{status}, 'completed', 'C: the document');
is($document->{results}{completed_requests}, 6, 'C: --set words arrive');

my $refused = run(command => ['./run', "$root/examples/quickstart.yaml", 'refused.json',
	'benchmark.num_promts=1']);
is($refused->{status}, 4, 'C: a wrong configuration is refused');
like($refused->{out}, qr/benchmark\.num_promts: unknown key; did you mean num_prompts\?/,
	'C: with the sentence');

# ---- cancelled, and from two threads at once ----

compile(spew('threads.c', <<'END'), 'threads');
#include <profllm.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static unsigned char stop;

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	(void)self, (void)total;
	if (strcmp(what, "Benchmark") == 0 && done > 0)
		stop = 1;
}

static void *one(void *path)
{
	struct profllm_request r = PROFLLM_REQUEST_INIT;
	struct profllm_outcome o = PROFLLM_OUTCOME_INIT;
	const char *const set[] = { "benchmark.num_prompts=6", "benchmark.request_rate=inf", NULL };

	r.config_path = path;
	r.set = set;
	profllm_run(&r, &o);
	printf("%d %s\n", o.status, o.document && strstr(o.document, "\"completed\"") ? "whole" : "none");
	profllm_release(&o);
	profllm_release(&o);
	return NULL;
}

int main(int argc, char **argv)
{
	struct profllm_request r = PROFLLM_REQUEST_INIT;
	struct profllm_outcome o = PROFLLM_OUTCOME_INIT;
	pthread_t t[2];

	if (argc < 2)
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, one, argv[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	r.config_path = argv[1];
	r.cancel = &stop;
	r.hooks.progress = on_progress;
	profllm_run(&r, &o);
	printf("cancelled %d %s\n", o.status, o.document ? "document" : "nothing");
	profllm_release(&o);
	r.config_text = "name: both";
	profllm_run(&r, &o);
	printf("both %d %s\n", o.status, o.error);
	profllm_release(&o);
	r.size = 0;
	profllm_run(&r, &o);
	printf("size %d %s\n", o.status, o.error);
	profllm_release(&o);
	return 0;
}
END
my $threads = run(command => ['./threads', "$root/examples/quickstart.yaml"]);
is($threads->{status}, 0, 'two threads, then a run that is cancelled') or diag($threads->{err});
is($threads->{err}, '', 'the library prints nothing');
is(scalar(() = $threads->{out} =~ /^0 whole$/mg), 2, 'both threads have their documents')
	or diag($threads->{out});
like($threads->{out}, qr/^cancelled 3 document$/m, 'cancelled: with a document of what was measured');
like($threads->{out}, qr/^both 4 .*config_path or a config_text, got both$/m, 'two configurations');
like($threads->{out}, qr/^size 4 .*no size/m, 'no size');
ok(!-e 'results.json' && !glob('/tmp/profllm-??????/results.json'),
	'no document is left where none was asked for');

# ---- the program is looked for, and missed in one sentence ----

rename "$prefix/bin/profllm", "$prefix/bin/elsewhere" or die $!;
my $named = run(command => ['./run', "$root/examples/quickstart.yaml", 'n.json', @quick],
	env => { PROFLLM_PROGRAM => "$prefix/bin/elsewhere", PATH => '/usr/bin:/bin' });
is($named->{status}, 0, 'PROFLLM_PROGRAM names it') or diag($named->{err}, $named->{out});
my $missed = run(command => ['./run', "$root/examples/quickstart.yaml", 'm.json', @quick],
	env => { PATH => '/usr/bin:/bin' });
is($missed->{status}, 2, 'without the program a run fails');
like($missed->{out}, qr/the program profllm is neither next to .* set PROFLLM_PROGRAM to its path/,
	'and says why');
rename "$prefix/bin/elsewhere", "$prefix/bin/profllm" or die $!;

# ---- the Python example ----

SKIP: {
	skip 'no python3', 4 if system('python3 -c "import ctypes, json" 2>/dev/null') != 0;
	my $py = run(command => ['python3', "$root/examples/library/run.py",
		"$root/examples/quickstart.yaml", @quick]);

	is($py->{status}, 0, 'Python: completed') or diag($py->{err}, $py->{out});
	like($py->{out}, qr/^profllm \S+ completed$/m, 'Python: the status');
	like($py->{out}, qr/^[\d.]+ output tokens a second, .* verdict (VALID|DEGRADED|INVALID)$/m,
		'Python: numbers of the document');
	my $wrong = run(command => ['python3', "$root/examples/library/run.py",
		"$root/examples/quickstart.yaml", 'benchmark.num_promts=1']);
	like($wrong->{err}, qr/benchmark\.num_promts: unknown key/, 'Python: a refusal');
}
done_testing();
