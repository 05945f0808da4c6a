#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# sbom.pl KIND PROGRAM [LIBRARY...]: a bill of materials (SPDX 2.3, JSON) of one package, to stdout.
#
# KIND is deb, portable or image. It lists the program, and of the Debian packages that dpkg knows:
# those whose libraries the program is linked with, those that it loads when it needs them (the
# LIBRARY lines of the sources), those whose static libraries are inside (portable), and with
# LIBRARY the files in an image. Nothing in it depends on the time or place of the build except
# SOURCE_DATE_EPOCH (default: the program's time).
use strict;
use warnings;
use Digest::SHA;
use FindBin;
use JSON::PP;
use POSIX qw(strftime);

my ($kind, $program, @files) = @ARGV;
die "usage: sbom.pl deb|portable|image PROGRAM [LIBRARY...]\n"
	unless $program && $kind =~ /^(deb|portable|image)$/;
my $src = "$FindBin::Bin/../src";

sub lines_of {
	open my $in, '-|', @_ or die "$_[0]: $!\n";
	chomp(my @lines = <$in>);
	close $in or die "sbom.pl: $_[0] failed (exit status " . ($? >> 8) . ")\n";
	return @lines;
}

# The package that owns a file; merged /usr has two names for it. Undefined: none does.
sub owner {
	my ($path) = @_;
	for my $name ($path, $path =~ m,^/usr(/.*), ? $1 : "/usr$path") {
		my $said = `dpkg-query -S '$name' 2>/dev/null`;
		return $1 if $said =~ /^([^:,\s]+)(?::\w+)?:/m;
	}
	return undef;
}

# Licence of a package as far as its machine-readable copyright file says.
sub licences {
	my ($package) = @_;
	open my $in, '<', "/usr/share/doc/$package/copyright" or return ();
	my %named;
	/^License:\s*(\S.*?)\s*$/ and $named{$1}++ for <$in>;
	return sort keys %named;
}

sub package_row {
	my ($name, $how) = @_;
	my ($line) = lines_of('dpkg-query', '-W', '-f',
		'${Version}\t${Architecture}\t${source:Package}\t${Homepage}\t${Maintainer}\n', $name);
	my ($version, $arch, $source, $home, $maintainer) = split /\t/, $line;
	my @licences = licences($name);
	return {
		SPDXID => "SPDXRef-Package-" . ($name =~ s/[^A-Za-z0-9.-]/-/gr),
		name => $name, versionInfo => $version,
		supplier => "Organization: Debian ($maintainer)",
		downloadLocation => 'NOASSERTION', filesAnalyzed => JSON::PP::false,
		licenseConcluded => 'NOASSERTION', licenseDeclared => 'NOASSERTION',
		copyrightText => 'NOASSERTION',
		(@licences ? (licenseComments => 'Debian\'s copyright file names: ' . join('; ',
			@licences)) : ()),
		($home ? (homepage => $home) : ()),
		comment => $how,
		sourceInfo => "Debian source package $source",
		externalRefs => [{ referenceCategory => 'PACKAGE-MANAGER', referenceType => 'purl',
			referenceLocator => "pkg:deb/debian/$name\@" .
				($version =~ s/([+:~])/sprintf '%%%02X', ord $1/ger) . "?arch=$arch" }],
	};
}

# What is linked: paths that the loader finds.
sub linked {
	return map { m,(/\S+), ? $1 : () } lines_of('ldd', $program);
}

# What is loaded when it is needed: Debian's packages, from the sources.
sub loaded {
	my %package;
	for my $file (lines_of('find', $src, '-name', '*.c')) {
		open my $in, '<', $file or die "$file: $!\n";
		local $/;
		my $text = <$in>;
		$package{$1}++ while $text =~ /^LIBRARY\([^;]*"[^"]+\.so[^"]*",\s*"([^"]+)"\);/mg;
	}
	return sort keys %package;
}

my %row; # by name of package: [row, relationship]
sub add {
	my ($name, $how, $relation) = @_;
	$row{$name} //= [package_row($name, $how), $relation];
}

if ($kind eq 'portable') {
	add($_, 'its static library is inside the program', 'STATIC_LINK')
		for qw(libssl-dev libpcre2-dev zlib1g-dev);
} elsif ($kind eq 'deb') {
	for (linked()) {
		my $name = owner($_) or die "sbom.pl: no package owns $_\n";
		add($name, 'the program is linked with it', 'DYNAMIC_LINK');
	}
	my @installed = grep { system("dpkg-query -W $_ >/dev/null 2>&1") == 0 } loaded();
	add($_, 'loaded when it is first needed', 'OPTIONAL_DEPENDENCY_OF') for @installed;
} else {
	for (@files) {
		my $name = owner($_) or die "sbom.pl: no package owns $_\n";
		add($name, 'a library of it is in the image', 'CONTAINS');
	}
}

my ($said) = lines_of($program, '--version');
my ($version) = $said =~ /(\S+)$/;
my $sha = Digest::SHA->new(256)->addfile($program)->hexdigest;
my $epoch = $ENV{SOURCE_DATE_EPOCH} // (stat $program)[9];
my $own = {
	SPDXID => 'SPDXRef-Package-profllm', name => 'profllm', versionInfo => $version,
	supplier => 'NOASSERTION', downloadLocation => 'NOASSERTION', filesAnalyzed => JSON::PP::false,
	licenseConcluded => 'Apache-2.0', licenseDeclared => 'Apache-2.0', copyrightText => 'NOASSERTION',
	primaryPackagePurpose => 'APPLICATION', checksums => [{ algorithm => 'SHA256',
		checksumValue => $sha }],
	comment => 'The checksum is that of the file bin/profllm of this package.',
};
my @relations = ({ spdxElementId => 'SPDXRef-DOCUMENT', relationshipType => 'DESCRIBES',
	relatedSpdxElement => $own->{SPDXID} });
for my $name (sort keys %row) {
	my ($package, $relation) = @{$row{$name}};
	my @ends = ($own->{SPDXID}, $package->{SPDXID});
	@ends = reverse @ends if $relation =~ /_OF$/;
	push @relations, { spdxElementId => $ends[0], relationshipType => $relation,
		relatedSpdxElement => $ends[1] };
}
print JSON::PP->new->canonical->pretty->encode({
	spdxVersion => 'SPDX-2.3', dataLicense => 'CC0-1.0', SPDXID => 'SPDXRef-DOCUMENT',
	name => "profllm-$version-$kind", documentNamespace => "https://spdx.org/spdxdocs/profllm-$kind-$sha",
	creationInfo => { created => strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $epoch),
		creators => ['Tool: profllm-sbom.pl'] },
	documentDescribes => [$own->{SPDXID}],
	packages => [$own, map { $row{$_}[0] } sort keys %row],
	relationships => \@relations,
});
