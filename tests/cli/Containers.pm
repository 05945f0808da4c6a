# SPDX-License-Identifier: Apache-2.0
# Containers.pm - podman on machines that allow less than its defaults ask for.
package Containers;
use strict;
use warnings;
use Cli;
use Exporter qw(import);

our @EXPORT = qw(is_there mild_podman);

# Whether PATH has the command.
sub is_there {
	my ($command) = @_;
	return scalar grep { -x "$_/$command" } split /:/, $ENV{PATH};
}

# Settings for machines that lower what the runtime's defaults ask for (limits that may not be
# raised, control groups of both versions), by a file of podman's own in this folder. more: further lines.
sub mild_podman {
	my ($here, $more) = @_;
	my ($files) = `sh -c 'ulimit -Hn'` =~ /(\d+)/;
	my ($tasks) = `sh -c 'ulimit -Hu' 2>/dev/null` =~ /(\d+)/;
	my ($few, $many) = (defined $tasks && $tasks < 32768 ? $tasks : 32768, $files // 1024);
	$ENV{CONTAINERS_CONF} = spew("$here/containers.conf", qq{[containers]\n} .
		qq{default_ulimits = ["nofile=1024:$many", "nproc=$few:$few"]\n} .
		qq{[engine]\n} . (is_there("runc") ? qq{runtime = "runc"\n} : "") . ($more // ''));
	return;
}

1;
