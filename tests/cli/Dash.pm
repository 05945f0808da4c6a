# SPDX-License-Identifier: Apache-2.0
# Dash.pm - what tests of the dashboard share: one that runs on a store of its own, requests to it.
#
# Numbers in answers are compared as the doubles they are: JSON::PP reads what is written.
package Dash;
use strict;
use warnings;
use Cli;
use Cwd qw(abs_path);
use Exporter qw(import);
use HTTP::Tiny;
use JSON::PP ();
use POSIX qw(WNOHANG _exit);
use Time::HiRes qw(sleep time);

use constant MADE_TOKEN => 'made token';

our @EXPORT = qw(start_dashboard ask form json_text MADE_TOKEN);

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $number = 0;
my $parent = $$;
my @running;

sub json_text { return $json->encode($_[0]) }

# A connection a request: on a connection that is kept the body waits for the head to be acknowledged.
sub client { return HTTP::Tiny->new(timeout => 60, keep_alive => 0, max_size => 1 << 30) }

# start_dashboard(args...): on a free port, with a store of its own unless args name one. It needs
# no token, unless args set access; with MADE_TOKEN it generates one and keeps it in the folder
# "state"; token has it. --listen unix:PATH: there is no port and no url.
sub start_dashboard {
	my (@args) = @_;
	my $name = 'dashboard' . ++$number;
	my $self = { port_file => "$name.port", err => "$name.err",
		http => client() };
	my $makes = grep { $_ eq MADE_TOKEN || $_ eq '--open-read' } @args;
	my ($socket) = map { /^unix:(.*)/s ? $1 : () } @args;

	@args = grep { $_ ne MADE_TOKEN } @args;
	$makes = 0 if grep { $_ eq '--auth-token-file' } @args;
	unshift @args, '--no-auth'
		unless $makes || grep { /^--(?:auth-token-file|no-auth)$/ } @args;
	unshift @args, '--listen', '127.0.0.1:0', '--port-file', $self->{port_file} unless defined $socket;
	push @args, '--store', store_url($name) unless grep { $_ eq '--store' } @args;
	($self->{store}) = map { $args[$_] eq '--store' ? $args[$_ + 1] : () } 0 .. $#args;
	push @args, '--traces-dir', 'traces' if ($ENV{TEST_STORE} // '') eq 'postgresql'
		&& !grep { $_ eq '--traces-dir' } @args;
	$self->{pid} = fork;
	if (!$self->{pid}) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$name.out";
		open STDERR, '>', $self->{err};
		$ENV{XDG_STATE_HOME} = abs_path('.') . '/state' if $makes;
		exec { $program } $program, 'dashboard', '--jobs-dir', "$name.jobs", @args or _exit(127);
	}
	push @running, $self->{pid};
	wait_for("dashboard (@args)", sub {
		die "dashboard @args: " . slurp($self->{err}) if waitpid($self->{pid}, WNOHANG) > 0;
		return -s $self->{port_file} unless defined $socket;
		return (slurp($self->{err}) // '') =~ /^profllm dashboard: .*\)\n/;
	}, 120);
	($self->{token}) = slurp($self->{err}) =~ m{\?token=([0-9a-f]+)} if $makes;
	return bless $self, 'Dash' if defined $socket;
	($self->{port} = slurp($self->{port_file})) =~ s/\s//g;
	$self->{url} = "http://127.0.0.1:$self->{port}";
	return bless $self, 'Dash';
}

# Its exit status, once TERM has been sent.
sub stop {
	my ($self) = @_;

	kill 'TERM', $self->{pid};
	waitpid $self->{pid}, 0;
	my $status = $?;
	@running = grep { $_ != $self->{pid} } @running;
	return $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
}

# ask(dashboard, METHOD, path, body, headers): what came back; json is its body when that is JSON. A
# body that is not text is sent as JSON. seconds: until the answer was there; reading its JSON takes Perl
# several times as long as making it takes the dashboard.
sub ask {
	my ($self, $method, $path, $body, %headers) = @_;
	my %o = (headers => { %headers });

	if (defined $body) {
		$o{content} = ref $body ? $json->encode($body) : $body;
		$o{headers}{'Content-Type'} //= 'application/json';
	}
	my $began = time;
	my $r = $self->{http}->request($method, "$self->{url}$path", \%o);
	$r->{seconds} = time - $began;
	die "$method $path: $r->{content}\n" if $r->{status} == 599;
	$r->{json} = eval { $json->decode($r->{content}) } // {};
	return $r;
}

# form([field, file name, bytes], ...): body and Content-Type of a form.
sub form {
	my (@parts) = @_;
	my $edge = 'edge-of-a-part-of-the-form';
	my $body = join '', map {
		"--$edge\r\nContent-Disposition: form-data; name=\"$_->[0]\"; filename=\"$_->[1]\"\r\n"
			. "Content-Type: application/octet-stream\r\n\r\n$_->[2]\r\n"
	} @parts;

	return ("$body--$edge--\r\n", 'Content-Type' => "multipart/form-data; boundary=$edge");
}

END {
	if ($$ == $parent && @running) {
		my $status = $?;

		kill 'TERM', @running;
		waitpid $_, 0 for @running;
		$? = $status;
	}
}

1;
