# SPDX-License-Identifier: Apache-2.0
# Relay.pm - what tests put between the program and a simulator: HTTP and SOCKS5 proxies,
# with and without a password, and servers that answer each connection by a given function.
package Relay;
use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use IO::Select;
use LoadTest;
use MIME::Base64 ();

our @EXPORT = qw(relay_start relay_end read_head read_request http_proxy socks_proxy);

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my $relays = 0;

sub read_head
{
	my ($c) = @_;
	my $head = '';

	while ($head !~ /\r\n\r\n/) {
		sysread($c, $head, 4096, length $head) or return;
	}
	return $head;
}

# Head and body of one request.
sub read_request
{
	my ($c) = @_;
	my $head = read_head($c) or return;
	my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
	my ($first, $body) = split /\r\n\r\n/, $head, 2;

	while (length $body < ($length || 0)) {
		sysread($c, $body, 65536, length $body) or return;
	}
	return ($first, $body);
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

# refuses => 1: every request gets a 403; password => "NAME:WORD": only who brings it is served.
sub http_proxy
{
	my (%how) = @_;
	my $want = $how{password} ? 'Basic ' . MIME::Base64::encode_base64($how{password}, '') : '';

	return sub {
		my ($c, $log) = @_;
		my $head = read_head($c) or return;

		if ($how{refuses}) {
			syswrite($log, ($head =~ /^(.*?)\r/)[0] . "\n");
			syswrite($c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nrefused");
		} elsif ($want && $head !~ /^Proxy-Authorization: \Q$want\E\r$/mi) {
			syswrite($log, "unknown client\n");
			syswrite($c, "HTTP/1.1 407 Proxy Authentication Required\r\n" .
				"Proxy-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\n\r\n");
		} elsif ($head =~ m{^CONNECT ([^:]+):(\d+) HTTP/1\.1\r\n}) {
			syswrite($log, "CONNECT $1:$2\n");
			my $server = dial($1, $2) or return;
			syswrite($c, "HTTP/1.1 200 Connection established\r\n\r\n");
			relay($c, $server);
		} else {
			forward($c, $head, $log);
		}
	};
}

sub read_n
{
	my ($c, $n) = @_;
	my $bytes = '';

	while (length $bytes < $n) {
		sysread($c, $bytes, $n - length $bytes, length $bytes) or return '';
	}
	return $bytes;
}

# SOCKS version 5 (RFC 1928, 1929) for one user; version 4 and 4a without one.
sub socks_proxy
{
	my ($user, $word) = @_;

	return sub {
		my ($c, $log) = @_;
		my $version = ord read_n($c, 1);
		my ($host, $port, $server);

		if ($version == 4) {
			(my $command, $port, my @ip) = unpack 'C n C4', read_n($c, 7);
			my ($name, $byte) = ('');

			1 while ($byte = read_n($c, 1)) ne '' && $byte ne "\0"; # the user's id
			$host = join '.', @ip;
			if ($host =~ /^0\.0\.0\.[1-9]/) {
				$name .= $byte while ($byte = read_n($c, 1)) ne '' && $byte ne "\0";
				$host = $name;
			}
			syswrite($log, "socks4 $host:$port\n");
			$server = dial($host, $port);
			syswrite($c, pack 'C C n N', 0, $server ? 90 : 91, 0, 0);
		} else {
			my $methods = read_n($c, ord read_n($c, 1));

			if (index($methods, "\2") < 0) {
				syswrite($log, "socks5 no password\n");
				syswrite($c, "\5\xff");
				return;
			}
			syswrite($c, "\5\2");
			read_n($c, 1);
			my $got = read_n($c, ord read_n($c, 1));
			my $pass = read_n($c, ord read_n($c, 1));

			if ($got ne $user || $pass ne $word) {
				syswrite($log, "socks5 wrong password\n");
				syswrite($c, "\1\1");
				return;
			}
			syswrite($c, "\1\0");
			my (undef, undef, undef, $kind) = unpack 'C4', read_n($c, 4);
			$host = $kind == 3 ? read_n($c, ord read_n($c, 1))
				: join '.', unpack 'C4', read_n($c, 4);
			$port = unpack 'n', read_n($c, 2);
			syswrite($log, "socks5 $kind $host:$port\n");
			$server = dial($host, $port);
			syswrite($c, pack 'C4 N n', 5, $server ? 0 : 5, 0, 1, 0, 0);
		}
		relay($c, $server) if $server;
	};
}

# Listens and serves each connection in a child of its own with handler(connection, log).
sub relay_start
{
	my ($handler) = @_;
	my ($listener, $port) = listen_local();
	my $path = "$dir/log" . ++$relays; # a port can come again
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
			$handler->($c, $log);
			POSIX::_exit(0);
		}
	}
	close $listener;
	return { pid => $pid, port => $port, host => "127.0.0.1:$port",
		url => "http://127.0.0.1:$port", log => $path };
}

# Ends it and gives the lines of its log.
sub relay_end
{
	my ($p) = @_;
	kill 'KILL', -$p->{pid}, $p->{pid};
	waitpid $p->{pid}, 0;
	return split /\n/, slurp($p->{log});
}

1;
