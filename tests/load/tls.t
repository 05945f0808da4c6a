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
{
	my $sim = https();
	my $run = serve($sim, '--num-prompts', '3');

	is_deeply(failures($run), { tls => 3 }, 'unknown certificate: category') or diag($run->{err});
	is($run->{status}, 1, 'unknown certificate: exit status');
	like($run->{own}{failures}[0]{examples}[0]{text}, qr/certificate/,
		'unknown certificate: the text');
	is(scalar(my @rows = truth_of($sim)), 0, 'unknown certificate: nothing was sent');
}
{
	my $sim = https();
	my $url = $sim->{url} =~ s/127\.0\.0\.1/127.0.0.2/r;
	my $run = serve($url, '--num-prompts', '2', '--cacert', $cert);
	my $got = failures($run);

	ok($got->{tls} || $got->{connect}, 'another name than the certificate\'s: refused');
}
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '2');
	my $run = serve($sim->{url} =~ s/^http:/https:/r, '--num-prompts', '2', '--insecure');

	is_deeply(failures($run), { tls => 2 }, 'https to a server that speaks http: category');
}
{
	my $sim = https();
	my $run = serve($sim->{url} =~ s/^https:/http:/r, '--num-prompts', '2');
	my $count = 0;

	$count += $_ for values %{ failures($run) };
	is($count, 2, 'http to a server that speaks https: both fail');
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
