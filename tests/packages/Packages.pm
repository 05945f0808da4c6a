# SPDX-License-Identifier: Apache-2.0
# Packages.pm - what the tests of packages share: the files of `make dist`, bare roots of Debian to install
# them in, and settings with which podman runs here.
#
# A root is made by debootstrap once and kept as a tarball in $ROOTS (default: build/roots); each test
# unpacks its own. Making one, and what apt installs there, needs Debian's mirror; nothing else does.
package Packages;
use strict;
use warnings;
use Cli;
use Containers;
use Cwd qw(abs_path getcwd);
use Exporter qw(import);
use File::Basename qw(dirname);
use Test::More;

our @EXPORT = qw($top package_file bare_root in_root measures $measure podman);
our $top = abs_path(dirname(__FILE__) . '/../..');
my $dist = $ENV{DIST} || die "DIST must name the folder of make dist\n";
my $roots = $ENV{ROOTS} || "$top/build/roots";

plan skip_all => 'roots and containers are made by root' if $>;

# The one file of `make dist` that has this name.
sub package_file {
	my ($pattern) = @_;
	my @found = grep { !/\.spdx\.json$/ || $pattern =~ /spdx/ } glob "$dist/$pattern";
	die "$dist has no single $pattern: @found\n" unless @found == 1;
	return $found[0];
}

# bare_root(suite): the path of a Debian with nothing but its base system, which apt can add to.
sub bare_root {
	my ($suite) = @_;
	my $tar = "$roots/$suite.tar";
	my $root = getcwd() . "/$suite";

	if (!-s $tar) {
		mkdir $roots;
		my $made = run(command => ['debootstrap', '--variant=minbase', $suite, "$root.new",
			'http://deb.debian.org/debian'], seconds => 900);
		die "debootstrap $suite: $made->{out}\n" if $made->{status};
		system('tar', '-C', "$root.new", '-cf', "$tar.new", '.') == 0 && rename("$tar.new", $tar)
			or die "cannot keep $tar\n";
		system('rm', '-rf', "$root.new");
	}
	mkdir $root;
	system('tar', '-C', $root, '-xf', $tar) == 0 or die "cannot unpack $tar\n";
	system('cp', '/etc/resolv.conf', "$root/etc/resolv.conf");
	return $root;
}

# A shell script as root of that root, with /proc and processes of its own that end with it.
sub in_root {
	my ($root, $script, %o) = @_;

	# Certificates and folders are those of that root.
	spew("$root/script", "unset SSL_CERT_FILE SSL_CERT_DIR TMPDIR\nexport DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/tmp\ncd /tmp\n$script\n");
	return run(command => ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c',
		'mount -t proc proc "$0/proc" && exec chroot "$0" sh -eu /script', $root],
		seconds => $o{seconds} || 120);
}

# What proves that a package works: the program measures its own simulator.
our $measure = <<'END';
rm -f port; ${P:-profllm} sim --port 0 --port-file port --ttft-ms 20 --itl-ms 5 --model demo >sim.log 2>&1 &
for i in $(seq 300); do [ -s port ] && break; sleep 0.1; done
${P:-profllm} bench serve --port $(cat port) --model demo --tokenizer sim --num-prompts 50 --max-concurrency 5 \
	--random-input-len 64 --random-output-len 16 --output-json result.json
END

sub measures {
	my ($name, $root, %o) = @_;
	my $r = in_root($root, ($o{before} // '') . "\n$measure");

	is($r->{status}, 0, "$name: bench serve measures profllm sim") or diag($r->{out}, $r->{err});
	like($r->{out}, qr/^Successful requests: +50 *$/m, "$name: all 50 requests are in the report");
	my ($tpot) = $r->{out} =~ /^Median TPOT \(ms\): +([\d.]+)/m;
	cmp_ok($tpot // 0, '>=', 4.9, "$name: and the TPOT is not below the simulator's 5 ms");
	note("$name: median TPOT $tpot ms");
	return $r;
}

# podman(words...): with settings that work on this machine; see Containers.pm.
sub podman { return run(command => ['podman', @_], seconds => 300) }

1;
