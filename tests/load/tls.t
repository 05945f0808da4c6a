#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# https: verified by default, by a given CA, or not at all; stamps as exact as without.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my ($cert, $key) = certificate("$dir");

plan skip_all => 'the openssl command is needed to make a certificate' unless $cert;

sub https { return sim('--ttft-ms', '20', '--itl-ms', '5', '--ssl-certfile', $cert,
	'--ssl-keyfile', $key, @_); }

{
	my $sim = https();
	my $run = serve($sim, '--num-prompts', '8', '--insecure');
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, '--insecure: exit status') or diag($run->{err});
	counts_are_right($run, \%truth, '--insecure');
	events_are_right($run, \%truth, '--insecure');
	is($run->{own}{stamp_source}, 'kernel', 'stamps are the kernel\'s');
}
{
	my $sim = https();
	my $run = serve($sim, '--num-prompts', '12', '--cacert', $cert, '--max-concurrency', '2');
	my %truth = truth_by_id($sim);

	is($run->{status}, 0, '--cacert: exit status') or diag($run->{err});
	counts_are_right($run, \%truth, '--cacert');
	is($run->{own}{new_connections}, 2, '--cacert: connections are kept');
}
{
	my $sim = https();
	my $run = serve($sim, '--num-prompts', '4', '--warm-connections', '4', '--insecure');
	my %truth = truth_by_id($sim);

	counts_are_right($run, \%truth, 'warm');
	is($run->{own}{new_connections}, 0, 'warm: no request opened one');
}
# What cannot work is refused at first contact; with a ready check, by the requests' own transport.
for my $case (
	['unknown certificate', https(), sub { $_[0] }, [], qr/TLS: .*certificate/, qr/TLS: .*certificate/],
	['another name than the certificate\'s', https(), sub { $_[0] =~ s/127\.0\.0\.1/127.0.0.2/r },
		['--cacert', $cert], qr/TLS: |cannot connect/, qr/TLS: |cannot connect/],
	['https to a server that speaks http', sim('--ttft-ms', '5', '--itl-ms', '2'),
		sub { $_[0] =~ s/^http:/https:/r }, ['--insecure'],
		qr/the server at https:\S+ does not speak TLS on this port; use http:/,
		qr/TLS: 127\.0\.0\.1 does not speak TLS on this port; use http:/],
	['http to a server that speaks https', https(), sub { $_[0] =~ s/^https:/http:/r }, [],
		qr/the server at http:\S+ speaks TLS on this port; use https:/, qr/Error: ./],
) {
	my ($name, $sim, $url, $args, $contact, $transport) = @$case;
	my $run = serve($url->($sim->{url}), '--num-prompts', '2', @$args);

	is($run->{status}, 1, "$name: exit status");
	like($run->{err}, qr/^profllm bench serve: $contact/m, "$name: the sentence");
	unlike($run->{out}, qr/Starting|====/, "$name: nothing was begun");
	$run = serve($url->($sim->{url}), '--num-prompts', '2', @$args, '--ready-check-timeout-sec', '1');
	is($run->{status}, 1, "$name: the ready check's exit status");
	like($run->{err}, qr/^profllm bench serve: Initial test run failed.*$transport/m,
		"$name: the ready check's sentence");
	is(scalar(my @rows = truth_of($sim)), 0, "$name: nothing was sent");
}
for my $fault (['reset@3', 'reset'], ['close@3', 'truncated'], ['split', undef]) {
	my ($what, $category) = @$fault;
	my $sim = https('--fault', $what);
	my $run = serve($sim, '--num-prompts', '4', '--insecure');

	is_deeply(failures($run), $category ? { $category => 4 } : {}, "$what under TLS");
}

# A server that demands a client certificate, here one that signed itself.
{
	my $sim = https('--ssl-ca-certs', $cert);
	my $run = serve($sim, '--num-prompts', '4', '--insecure');

	is_deeply(failures($run), { tls => 4 }, 'no client certificate: category');
	like($run->{own}{failures}[0]{examples}[0]{text}, qr/demands a client certificate/,
		'no client certificate: the text');
	$run = serve($sim, '--num-prompts', '4', '--insecure', '--client-cert', $cert, '--client-key',
		$key);
	is($run->{result}{completed}, 4, 'client certificate: all succeed') or diag($run->{err});
	open(my $both, '>', "$dir/both.pem");
	print $both slurp($cert), slurp($key);
	close $both;
	$run = serve($sim, '--num-prompts', '2', '--insecure', '--client-cert', "$dir/both.pem",
		'--transport', 'curl');
	is($run->{result}{completed}, 2, 'client certificate by libcurl, key in its file');

	# What is asked outside the measurement shows it too: the model's name here.
	my ($status, $out, $err) = profllm('bench', 'serve', '--base-url', $sim->{url}, '--tokenizer',
		'sim', '--num-prompts', '1', '--random-input-len', '4', '--random-output-len', '2',
		'--ready-check-timeout-sec', '0', '--insecure', '--client-cert', "$dir/both.pem");

	is($status, 0, 'client certificate: /v1/models') or diag($err);
	truth_of($sim);
}
{
	my ($other_cert, $other_key) = do { mkdir "$dir/other"; certificate("$dir/other") };
	my @bad = (
		['missing', ['--client-cert', "$dir/none.pem"],
			qr/--client-cert: cannot read \S+none\.pem: No such file/],
		['missing key', ['--client-cert', $cert, '--client-key', "$dir/none.pem"],
			qr/--client-key: cannot read \S+none\.pem: No such file/],
		['no certificate', ['--client-cert', $key], qr/cannot use certificate file '\S+key\.pem'/],
		['not its key', ['--client-cert', $cert, '--client-key', $other_key],
			qr/key file|does not belong to the certificate/],
		['key alone', ['--client-key', $key], qr/--client-key needs --client-cert/],
	);
	my $sim = https();

	for my $row (@bad) {
		my ($name, $args, $text) = @$row;
		my ($status, $out, $err) = profllm('bench', 'serve', '--base-url', $sim->{url},
			'--model', 'sim', '--tokenizer', 'sim', '--insecure', @$args);

		is($status, 2, "client certificate, $name: exit status");
		like($err, $text, "client certificate, $name: the sentence");
	}
	is(scalar(my @rows = truth_of($sim)), 0, 'bad client certificates: nothing was sent');
}

done_testing;
