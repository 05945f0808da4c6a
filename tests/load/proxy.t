#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Through a proxy: whole URLs for http, CONNECT for https, NO_PROXY, and a proxy that refuses.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use IO::Socket::IP ();
use lib $FindBin::Bin;
use LoadTest;
use Relay;
use Test::More;

my @pace = ('--ttft-ms', '5', '--itl-ms', '2');
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

sub proxy { return relay_start(http_proxy(@_)); }

# Lines of its log, one per request it saw.
sub proxy_end { return grep { /completions|CONNECT/ } relay_end(@_); }

{
	my ($sim, $p) = (sim(@pace), proxy());
	local $ENV{HTTP_PROXY} = $p->{url};
	my $run = serve($sim, '--num-prompts', '10', '--max-concurrency', '2');
	my %truth = truth_by_id($sim);
	my @seen = proxy_end($p);

	counts_are_right($run, \%truth, 'http') or diag($run->{err});
	events_are_right($run, \%truth, 'http');
	is(scalar @seen, 10, 'http: each request went through the proxy');
	is($seen[0], "POST $sim->{url}/v1/completions HTTP/1.1", 'http: it names the whole URL');
	is($run->{own}{new_connections}, 2, 'http: connections to the proxy are kept');
}
{
	my ($sim, $p) = (sim(@pace), proxy());
	local $ENV{http_proxy} = $p->{url};
	local $ENV{no_proxy} = 'example.org,127.0.0.1';
	my $run = serve($sim, '--num-prompts', '3');
	my @seen = proxy_end($p);

	is($run->{result}{completed}, 3, 'NO_PROXY: requests succeed');
	is("@seen", '', 'NO_PROXY: the proxy saw none');
}
# Of two servers one is exempt: that holds for all that is asked of it.
{
	my ($one, $two, $p) = (sim(@pace), sim(@pace), proxy());
	my $direct = "http://localhost:$two->{port}";
	local $ENV{http_proxy} = $p->{url};
	local $ENV{no_proxy} = 'localhost';
	my $run = serve([$one, $direct], '--num-prompts', '4', '--profile',
		'--reset-prefix-cache');
	my @seen = relay_end($p);

	is($run->{result}{completed}, 4, 'one of two exempt: requests succeed') or diag($run->{err});
	is(scalar(grep { /\Q$direct\E/ } @seen), 0, 'one of two exempt: nothing of it by the proxy');
	cmp_ok(scalar(grep { m{\Q$one->{url}\E/(metrics|start_profile)} } @seen), '>=', 3,
		'one of two exempt: all of the other');
}
SKIP: {
	my ($cert, $key) = certificate("$dir");

	skip 'the openssl command is needed to make a certificate', 4 unless $cert;
	my ($sim, $p) = (sim(@pace, '--ssl-certfile', $cert, '--ssl-keyfile', $key), proxy());
	local $ENV{HTTPS_PROXY} = $p->{url};
	my $run = serve($sim, '--num-prompts', '9', '--max-concurrency', '3', '--cacert', $cert);
	my %truth = truth_by_id($sim);
	my @seen = proxy_end($p);
	my @tunnels = grep { $_ eq "CONNECT 127.0.0.1:$sim->{port}" } @seen;

	is($run->{status}, 0, 'https: exit status') or diag($run->{err});
	counts_are_right($run, \%truth, 'https');
	is($run->{own}{new_connections}, 3, 'https: tunnels are kept');
	cmp_ok(scalar @tunnels, '>=', 3, 'https: a CONNECT for each');
}
{
	my ($sim, $p) = (sim(@pace), proxy(refuses => 1));
	local $ENV{HTTP_PROXY} = $p->{url};
	local $ENV{HTTPS_PROXY} = $p->{url};
	my $https = $sim->{url} =~ s/^http:/https:/r;
	my @waiting = ('--num-prompts', '2', '--ready-check-timeout-sec', '1');
	my @run = (serve($sim, '--num-prompts', '2'), serve($https, '--num-prompts', '2'),
		serve($sim, @waiting), serve($https, @waiting));

	proxy_end($p);
	like($run[0]{err}, qr/^profllm bench serve: the server at \S+ refuses access \(403\): /m,
		'a proxy that refuses, http');
	my $refused = quotemeta '(profllm help proxy_refused)';
	like($run[1]{err},
		qr/the proxy \Q$p->{host}\E makes no connection to \Q$https\E: it answers 403 $refused$/m,
		'a proxy that refuses, https');
	like($run[2]{err}, qr/^profllm bench serve: Initial test run failed.*Error: Forbidden/m,
		'a proxy that refuses, http, ready check');
	like($run[3]{err}, qr/Error: .*proxy refused CONNECT with status 403/,
		'a proxy that refuses, https, ready check');
}
{
	# Bound and not listening: it refuses, and no other program gets the port.
	my $bound = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0,
		Type => IO::Socket::IP::SOCK_STREAM()) or die "bind: $@";
	my $port = $bound->sockport;

	local $ENV{HTTP_PROXY} = "http://127.0.0.1:$port";
	my $run = serve('http://127.0.0.1:9', '--num-prompts', '2');
	is($run->{status}, 1, 'a proxy that is not there');
	my $topic = quotemeta '(profllm help server_unreachable)';
	like($run->{err},
		qr/connect to the proxy 127\.0\.0\.1:$port: Connection refused\. Is it running\? $topic$/m,
		'a proxy that is not there: the text names its address');
}

done_testing;
