#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What can be said of packages without making them: scripts refuse what is wrong, the bill of materials of
# this
# program, every library that is loaded at run time is in the .deb's lists, the service's unit, release notes,
# and --health. tests/packages makes, installs and starts them (make packages-test).
# store: sqlite
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Test::More;

my $top = abs_path("$FindBin::Bin/../..");
my $packaging = "$top/packaging";

# ---- a dashboard's health ----

my $d = start_dashboard();
my $r = run(args => ['dashboard', '--health', '--port', $d->{port}]);
is("$r->{status} $r->{out}$r->{err}", '0 ', '--health of a dashboard that is ready says nothing');
is(run(args => ['dashboard', '--health', '--listen', "0.0.0.0:$d->{port}"])->{status}, 0,
	'an address for all interfaces is asked on loopback');
my $port = $d->{port};
$d->stop;
$r = run(args => ['dashboard', '--health', '--port', $port]);
is($r->{status}, 1, 'one that is not there is not ready');
like($r->{err}, qr/127\.0\.0\.1:?.*$port/, 'and the sentence has its address');
my $sim = start_sim();
$r = run(args => ['dashboard', '--health', '--port', $sim->{port}]);
is($r->{status}, 1, 'another server is none');
like($r->{err}, qr/--health: the dashboard at http:\S+ is not ready: it answered with status 404/,
	'for this reason');

# ---- release notes ----

$r = run(command => ["$packaging/release-notes.sh"]);
is($r->{status}, 2, 'release notes want a version');
$r = run(command => ["$packaging/release-notes.sh", '99.9']);
is($r->{status}, 2, 'one that CHANGES.md has');
like($r->{err}, qr/has no section '## 99\.9'; it has: \S/, 'and name those');
my ($newest) = slurp("$top/CHANGES.md") =~ /^## (.*)$/m;
$r = run(command => ["$packaging/release-notes.sh", $newest]);
is($r->{status}, 0, "the notes of $newest");
like($r->{out}, qr/\A\S/, 'begin with text');
unlike($r->{out}, qr/^## /m, 'and end before the next version');

# ---- lists and units ----

my %listed = map { $_ => 1 } split ' ', slurp("$packaging/deb/libraries");
my %loaded;
for my $file (split /\n/, `find '$top/src' -name '*.c'`) {
	my $text = slurp($file);
	$loaded{$1} = $file while $text =~ /^LIBRARY\([^;]*"[^"]+\.so[^"]*",\s*"([^"]+)"\);/mg;
}
cmp_ok(scalar keys %loaded, '>', 10, 'libraries are loaded at run time');
is(join(' ', grep { !$listed{$_} } sort keys %loaded), '', 'and each is in deb/libraries');

my $unit = slurp("$packaging/deb/dashboard.service");
my $default = slurp("$packaging/deb/default");
my ($options) = $default =~ /^OPTIONS="(.*)"$/m;
my ($command) = $unit =~ m,^ExecStart=/usr/bin/profllm (dashboard .*)$,m;
my %value = ('${STORE}' => 'sqlite:runs.db', '$OPTIONS' => $options, '%d/tokens' => 'tokens');
$command =~ s/(\$\{STORE\}|\$OPTIONS|%d\/tokens)/$value{$1}/g;
is(run(args => [split(' ', $command), '--show-config'])->{status}, 0,
	'the service starts what the dashboard takes');
my ($by_hand) = slurp("$top/docs/operate.md") =~ /^```text\n(\[Unit\]\n.*?)^```$/ms;
for ($unit, $by_hand) {
	like($_, qr/^PrivateTmp=yes$/m, 'experiments have a folder for temporary files; others are read-only')
		if /^ProtectSystem=strict$/m;
}
SKIP: {
	skip 'there is no systemd-analyze', 3 unless -x '/usr/bin/systemd-analyze';
	mkdir 'units';
	spew('units/profllm-dashboard.service', $unit =~ s,/usr/bin/profllm,/bin/true,r);
	$r = run(command => [qw(systemd-analyze verify --man=no units/profllm-dashboard.service)]);
	unlike("$r->{out}$r->{err}", qr/profllm-dashboard\.service/,
		'systemd finds nothing wrong with the unit');
	$r = run(command => [qw(systemd-analyze security --offline=true --threshold=25
		units/profllm-dashboard.service)]);
	is($r->{status}, 0, 'which is exposed by 2.5 of 10 at most') or diag($r->{out}, $r->{err});
	spew('units/profllm.service', $by_hand =~ s,/usr/local/bin/profllm,/bin/true,r);
	$r = run(command => [qw(systemd-analyze verify --man=no units/profllm.service)]);
	unlike("$r->{out}$r->{err}", qr/profllm\.service/, 'nor with the unit of docs/operate.md');
}

# ---- bill of materials, images ----

SKIP: {
	skip 'this is no Debian', 3 unless -x '/usr/bin/dpkg-query';
	$r = run(command => ["$packaging/sbom.pl", 'deb', $program]);
	is($r->{status}, 0, 'the bill of materials') or diag($r->{err});
	my $bill = $r->{status} ? {} : json_of($r->{out});
	is($bill->{spdxVersion}, 'SPDX-2.3', 'has the version');
	my %in = map { $_->{name} => 1 } @{$bill->{packages}};
	ok($in{libc6} && $in{libssl3}, 'and what the program is linked with');
}
for (['', qr/'' is not a kind of image; expected client, sim or dashboard/],
		['sim no-such-runtime', qr/there is no no-such-runtime in PATH; expected podman or docker/],
		['sim folder out /no/program', qr,'/no/program' is not a program,]) {
	my ($words, $says) = @$_;
	$r = run(command => ["$packaging/container/build-image.sh", split ' ', $words],
		env => { PATH => ($program =~ s,/[^/]*$,,r) . ":$ENV{PATH}" });
	is($r->{status}, 2, "build-image.sh $words is refused");
	like($r->{err}, $says, 'with what is expected');
}
$r = run(command => ["$packaging/container/build-image.sh", qw(sim folder image), $program]);
is($r->{status}, 0, 'the folder of an image') or diag($r->{err});
is(run(command => ['chroot', 'image/image', '/usr/bin/profllm', '--version'])->{status}, 0,
	'has all that the program needs')
	unless $>;

stop_all();
done_testing();
