#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every command of every page, README included, on a bare Debian 12 with the .deb, the packages that it
# suggests, and the other programs that pages use: as tests/cli/docs.t runs them, which comes along.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Packages;
use Test::More;

my $root = bare_root('bookworm');
system('cp', package_file('profllm_*.deb'), "$root/profllm.deb");
spew("$root/etc/hosts", "127.0.0.1 localhost\n");
my $r = in_root($root, <<'END', seconds => 900);
apt-get update -q
apt-get install -q -y /profllm.deb
apt-get install -q -y --no-install-recommends perl curl jq openssl \
	$(dpkg-query -W -f '${Suggests}' profllm | tr -d ,)
END
is($r->{status}, 0, 'the .deb and what the pages use are installed') or diag($r->{out}, $r->{err});
mkdir "$root/profllm";
system("cd '$top' && git archive HEAD *.md docs examples tools/sharegpt.awk tests/cli |"
	. " tar -C '$root/profllm' -x") == 0 or die;
for my $test (qw(docs-first.t docs.t docs-last.t)) {
	$r = in_root($root, "PROFLLM=/usr/bin/profllm perl /profllm/tests/cli/$test", seconds => 1200);
	my @done = $r->{out} =~ /^ok \d+/mg;
	is($r->{status}, 0, "$test: " . @done . ' commands') or
		diag(grep { !/^ok/ } split /^/, "$r->{out}$r->{err}");
}
done_testing();
