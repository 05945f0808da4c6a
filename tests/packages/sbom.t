#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Bills of materials: the structure that SPDX 2.3 demands, and that they name what is linked.
use strict;
use warnings;
use Digest::SHA;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Packages;
use Test::More;

sub is_valid {
	my ($name, $d) = @_;
	my %id = map { $_->{SPDXID} => $_ } $d, @{$d->{packages}};

	is_deeply([@$d{qw(spdxVersion dataLicense SPDXID)}], [qw(SPDX-2.3 CC0-1.0 SPDXRef-DOCUMENT)],
		"$name: the document's head");
	like($d->{documentNamespace}, qr{^https?://[^#\s]+$}, "$name: its name space is a URI");
	like($d->{creationInfo}{created}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, "$name: its time is in UTC");
	is(scalar keys %id, 1 + @{$d->{packages}}, "$name: no identifier is used twice");
	is(scalar(grep { !/^SPDXRef-[A-Za-z0-9.-]+$/ } keys %id), 0,
		"$name: identifiers have the form they must");
	my @lacking = grep { my $p = $_; grep { !defined $p->{$_} }
		qw(name SPDXID downloadLocation versionInfo) }
		@{$d->{packages}};
	is(scalar @lacking, 0, "$name: every package has what it must");
	my %kind = map { $_ => 1 } qw(DESCRIBES STATIC_LINK DYNAMIC_LINK OPTIONAL_DEPENDENCY_OF CONTAINS);
	my @odd = grep { !$id{$_->{spdxElementId}} || !$id{$_->{relatedSpdxElement}} ||
		!$kind{$_->{relationshipType}} } @{$d->{relationships}};
	is(scalar @odd, 0, "$name: every relationship is of a known kind, between two that are there");
}

sub names { return map { $_->{name} } @{$_[0]{packages}} }

my $deb = json_of(slurp(package_file('*.deb.spdx.json')));
is_valid('deb', $deb);
my %in = map { $_ => 1 } names($deb);
ok($in{$_}, "the bill of the .deb names $_") for qw(libc6 libssl3 libpcre2-8-0 zlib1g libzstd1 libsqlite3-0);
my ($own) = grep { $_->{name} eq 'profllm' } @{$deb->{packages}};
mkdir 'root';
system('dpkg-deb', '-x', package_file('profllm_*.deb'), 'root') == 0 or die;
is($own->{checksums}[0]{checksumValue}, Digest::SHA->new(256)->addfile('root/usr/bin/profllm')->hexdigest,
	'its checksum is that of the program in the package');
is(slurp('root/usr/share/doc/profllm/sbom.spdx.json'), slurp(package_file('*.deb.spdx.json')),
	'it lies in the package too');

my $client = json_of(slurp(package_file('profllm-client-*.spdx.json')));
is_valid('client', $client);
is_deeply([sort(names($client))], [qw(libpcre2-dev libssl-dev profllm zlib1g-dev)],
	'the bill of the client names the static libraries inside');
my $r = run(command => ["$top/packaging/sbom.pl", 'other', 'x']);
isnt($r->{status}, 0, 'an unknown kind is refused');
done_testing();
