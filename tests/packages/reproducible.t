#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The same commit gives the same bytes: `make dist` again from a clone in another folder, at another time,
# with
# another umask, zone, language and number of jobs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use File::Basename qw(basename dirname);
use Packages;
use Test::More;

my $dist = dirname(package_file('profllm-client-*.tar.gz'));
mkdir 'a longer way to it';
my $clone = getcwd() . '/a longer way to it/clone';
my $r = run(command => ['git', 'clone', '-q', $top, $clone]);
is($r->{status}, 0, 'a clone') or BAIL_OUT($r->{err});
my ($of) = slurp("$dist/SHA256SUMS") =~ /profllm-(\S+)\.tar\.gz$/m;
my $commit = $of =~ /([0-9a-f]{8})$/ ? $1 : "v$of";
is(run(command => ['git', '-C', $clone, 'checkout', '-q', $commit])->{status}, 0, "of $commit");
# The pages are built by node from a lockfile; their bytes are compared with the source tarball's, below.
system('cp', '-r', "$top/web/node_modules", "$clone/web/node_modules");
$r = run(command => ['sh', '-c', 'umask 077; cd "$0" && exec make -j1 web dist O=other', $clone],
	seconds => 1500,
	env => { TZ => 'Pacific/Auckland', LC_ALL => 'C.UTF-8', DIST_WORK => getcwd() . '/somewhere' });
is($r->{status}, 0, 'it is built') or BAIL_OUT($r->{err});
for my $path (sort grep { -f } glob "$dist/*") {
	my $name = basename($path);
	is(system('cmp', $path, "$clone/other/dist/$name"), 0, "$name has the same bytes");
}
done_testing();
