#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Through a proxy: whole URLs for http, CONNECT for https, NO_PROXY, and a proxy that refuses.
use strict;
use warnings;
use File::Temp ();
use FindBin;
use IO::Select;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my @pace = ('--ttft-ms', '5', '--itl-ms', '2');
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

sub read_head
{
	my ($c) = @_;
	my $head = '';

	while ($head !~ /\r\n\r\n/) {
		sysread($c, $head, 4096, length $head) or return;
	}
	return $head;
}

sub dial
{
	my ($host, $port) = @_;
	return IO::Socket::IP->new(PeerHost => $host, PeerPort => $port,
		Type => IO::Socket::IP::SOCK_STREAM());
}

sub copy
{
	my ($from, $to) = @_;
	my $n = sysread($from, my $data, 65536) or return 0;

	for (my $at = 0; $at < $n;) {
		my $wrote = syswrite($to, $data, $n - $at, $at) or return 0;
		$at += $wrote;
	}
	return 1;
}

sub relay
{
	my ($client, $server) = @_;
	my $ready = IO::Select->new($client, $server);

	while (my @from = $ready->can_read(30)) {
		for my $from (@from) {
			return unless copy($from, $from == $client ? $server : $client);
		}
	}
}

# Plain requests name the whole URL; each may name another server, ours always the same.
sub forward
{
	my ($c, $head, $log) = @_;
	my $server;

	while (1) {
		my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
		my ($first, $body) = split /\r\n\r\n/, $head, 2;
		my ($host, $port, $path) = $first =~ m{^\w+ http://([^:/]+):(\d+)(/\S*) HTTP/1\.1\r\n};

		syswrite($log, ($first =~ /^(.*?)\r/)[0] . "\n");
		return unless defined $path;
		while (length $body < ($length || 0)) {
			sysread($c, $body, 65536, length $body) or return;
		}
		$first =~ s{^(\w+) \S+}{$1 $path};
		$server //= dial($host, $port) or return;
		syswrite($server, "$first\r\n\r\n$body");
		my $ready = IO::Select->new($c, $server);
		ANSWER: while (1) {
			for my $from ($ready->can_read(30)) {
				last ANSWER if $from == $c;
				return unless copy($server, $c);
			}
		}
		$head = read_head($c) or return;
	}
}

sub serve_one
{
	my ($c, $log, $refuses) = @_;
	my $head = read_head($c) or return;

	if ($refuses) {
		syswrite($log, ($head =~ /^(.*?)\r/)[0] . "\n");
		syswrite($c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nrefused");
	} elsif ($head =~ m{^CONNECT ([^:]+):(\d+) HTTP/1\.1\r\n}) {
		syswrite($log, "CONNECT $1:$2\n");
		my $server = dial($1, $2) or return;
		syswrite($c, "HTTP/1.1 200 Connection established\r\n\r\n");
		relay($c, $server);
	} else {
		forward($c, $head, $log);
	}
}

# A proxy with one child per connection; its log has one line per request it saw.
sub proxy
{
	my ($refuses) = @_;
	my ($listener, $port) = listen_local();
	my $path = "$dir/log$port";
	my $pid = fork();

	if ($pid == 0) {
		open(my $log, '>>', $path);
		setpgrp(0, 0);
		$SIG{CHLD} = 'IGNORE';
		$SIG{PIPE} = 'IGNORE';
		alarm 120;
		while (1) {
			my $c = $listener->accept or next;
			next if fork();
			serve_one($c, $log, $refuses);
			POSIX::_exit(0);
		}
	}
	close $listener;
	return { pid => $pid, port => $port, url => "http://127.0.0.1:$port", log => $path };
}

sub proxy_end
{
	my ($p) = @_;
	kill 'KILL', -$p->{pid}, $p->{pid};
	waitpid $p->{pid}, 0;
	return grep { /completions|CONNECT/ } split /\n/, slurp($p->{log});
}

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
	my ($sim, $p) = (sim(@pace), proxy('refuses'));
	local $ENV{HTTP_PROXY} = $p->{url};
	local $ENV{HTTPS_PROXY} = $p->{url};
	my $plain = serve($sim, '--num-prompts', '2');
	my $tls = serve($sim->{url} =~ s/^http:/https:/r, '--num-prompts', '2');

	proxy_end($p);
	is_deeply(failures($plain), { http_status => 2 }, 'a proxy that refuses, http');
	is_deeply(failures($tls), { connect => 2 }, 'a proxy that refuses, https');
	like($tls->{own}{failures}[0]{examples}[0]{text}, qr/proxy refused CONNECT with status 403/,
		'a proxy that refuses, https: the text');
}
{
	my ($listener, $port) = listen_local();

	close $listener;
	local $ENV{HTTP_PROXY} = "http://127.0.0.1:$port";
	my $run = serve('http://127.0.0.1:9', '--num-prompts', '2');
	is_deeply(failures($run), { connect => 2 }, 'a proxy that is not there');
	like($run->{own}{failures}[0]{examples}[0]{text}, qr/127\.0\.0\.1:$port/,
		'a proxy that is not there: the text names its address');
}

done_testing;
