#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The portable client: what it needs of the C library, and that it measures on Debian 12 and 11 (glibc 2.36
# and 2.31) from a folder of its own, by TLS too, where certificates are kept as other distributions do.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Packages;
use Test::More;

my $tar = package_file('profllm-client-*.tar.gz');
mkdir 'here';
system('tar', '-C', 'here', '--strip-components=1', '-xzf', $tar) == 0 or die;
my $of = run(command => ['objdump', '-p', 'here/bin/profllm'])->{out};
my @needed = sort $of =~ /NEEDED +(\S+)/g;
is_deeply(\@needed, [qw(ld-linux-x86-64.so.2 libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0)],
	'it is linked with the C library alone');
my ($highest) = sort { $b <=> $a } map { 0 + $_ } run(command => ['objdump', '-T', 'here/bin/profllm'])->{out}
	=~ /GLIBC_2\.(\d+)/g;
cmp_ok($highest, '<=', 28, 'and asks for nothing newer than glibc 2.28');
note("the newest symbol is of glibc 2.$highest");
like(slurp('here/share/doc/profllm/copyright.libssl-dev'), qr/OpenSSL/,
	'licences of what is inside are there');

for my $suite (qw(bookworm bullseye)) {
	my $root = bare_root($suite);
	my $name = run(command => ['chroot', $root, 'ldd',
		'--version'])->{out} =~ /(GLIBC [\d.]+)/ ? $1 : $suite;
	mkdir "$root/opt/any folder";
	system('cp', '-r', 'here', "$root/opt/any folder/moved");
	my $path = 'PATH="/opt/any folder/moved/bin:$PATH"';
	measures("$suite ($name)", $root, before => $path);
	next if $suite ne 'bullseye';
	# No OpenSSL there, and a bundle where Fedora has it.
	system('openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 ' .
		'-subj /CN=sim -addext subjectAltName=IP:127.0.0.1 2>openssl.log') == 0 or die;
	system('cp', 'key.pem', 'cert.pem', "$root/tmp") == 0 or die;
	my $r = in_root($root, <<"END");
$path
rm -f port
profllm sim --port 0 --port-file port --ssl-certfile cert.pem --ssl-keyfile key.pem --model demo 2>sim.log &
for i in \$(seq 100); do [ -s port ] && break; sleep 0.1; done
try() {
	profllm bench serve --base-url https://127.0.0.1:\$(cat port) --model demo --tokenizer sim \\
		--num-prompts 2 -q
}
try 2>refused && exit 9
mkdir -p /etc/pki/tls/certs && cp cert.pem /etc/pki/tls/certs/ca-bundle.crt
try
END
	is($r->{status}, 0, 'certificates of authorities are found in /etc/pki') or diag($r->{out},
		$r->{err});
}
done_testing();
