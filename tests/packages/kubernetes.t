#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The manifest: each document has the keys of its kind (by the types of kubernetes-types and TypeScript's
# compiler), and its arguments are ones that the dashboard takes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Packages;
use Test::More;

my $manifest = "$top/packaging/kubernetes.yaml";
spew('package.json', '{}');
my $r = run(command => [qw(npm install --no-audit --no-fund --loglevel error
	kubernetes-types@1.30.0 typescript@5.9.3
	yaml@2.8.1)], seconds => 200);
plan skip_all => "npm cannot install what is needed: $r->{err}" if $r->{status};

# What the compiler says of a manifest.
sub compiled {
	my ($file) = @_;
	my $made = run(command => ['node', "$FindBin::Bin/kubernetes.mjs", $file]);

	die $made->{err} if $made->{status};
	spew('manifest.ts', $made->{out});
	return run(command => [qw(node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module node16
		--moduleResolution node16 manifest.ts)]);
}

my $text = slurp($manifest);
my @kinds = $text =~ /^kind: (\w+)$/mg;
is("@kinds", 'Secret PersistentVolumeClaim Deployment Service', 'the documents of the manifest');
$r = compiled($manifest);
is($r->{status}, 0, 'each has the keys of its kind, with values of their types') or diag($r->{out});
for (['a key that there is not', sub { s/httpGet: \{path/httpGet: {poth/ }, qr/poth/],
		['a value of another type', sub { s/replicas: 1/replicas: one/ },
			qr/'string' is not assignable to type 'number'/]) {
	my ($what, $change, $says) = @$_;
	local $_ = $text;
	$change->();
	spew('wrong.yaml', $_);
	$r = compiled('wrong.yaml');
	isnt($r->{status}, 0, "$what is found");
	like($r->{out}, $says, 'and named');
}

# Its arguments are ones that the program takes.
my @args = $text =~ /^ +- (--\S+)$/mg;
cmp_ok(scalar @args, '>', 3, 'the container has arguments');
$r = run(args => ['dashboard', '--show-config', @args]);
is($r->{status}, 0, 'which the dashboard knows') or diag($r->{err});

# A manifest that was applied as it is opens nothing to those who have read it.
my ($tokens) = $text =~ /^  tokens: \|\n +(.*\n)/m;
spew('tokens', $tokens);
$r = run(args => [qw(dashboard --listen 127.0.0.1:0 --auth-token-file tokens --store sqlite:s.db)]);
isnt($r->{status}, 0, 'its token is refused');
like($r->{err}, qr/line 1: expected a token of at least 16 characters/, 'and why is said');
done_testing();
