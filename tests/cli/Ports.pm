# SPDX-License-Identifier: Apache-2.0
# Ports.pm - ports for servers that a test starts itself.
package Ports;
use strict;
use warnings;
use Exporter qw(import);
use IO::Socket::INET;

our @EXPORT = qw(free_port);

# free_port(): a port for a server that is started later, perhaps several times. The kernel gives out
# ports above these on its own; suite.pl says whose are which among tests that run at once.
my $ports = $ENV{TEST_PORTS} // 10000 + 64 * ($$ % 350);
my $port_count = 0;

sub free_port {
	for (1 .. 64) {
		my $port = $ports + $port_count++ % 64;
		return $port if IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
			Listen => 1, ReuseAddr => 1);
	}
	die "no free port from $ports\n";
}

1;
