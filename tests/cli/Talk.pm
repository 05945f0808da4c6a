# SPDX-License-Identifier: Apache-2.0
# Talk.pm - the other end of a worker's socket: sends profllm's messages to an engine's adapter, so
# that an adapter is tested without a verb. docs/guide/adapters.md is the protocol.
package Talk;
use strict;
use warnings;
use Fcntl qw(F_SETFD);
use JSON::PP ();
use POSIX qw(_exit);
use Socket;

my $json = JSON::PP->new->utf8->canonical;

# Talk->new(command => [...], env => {...}, log => PATH): started, and what it said first in hello.
sub new {
	my ($class, %how) = @_;
	socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!\n";
	my $pid = fork // die "fork: $!\n";
	if (!$pid) {
		close $ours;
		fcntl $theirs, F_SETFD, 0;
		$ENV{PROFLLM_WORKER_FD} = fileno $theirs;
		$ENV{$_} = $how{env}{$_} for keys %{$how{env}};
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $how{log};
		open STDERR, '>>', $how{log};
		exec { $how{command}[0] } @{$how{command}} or _exit(127);
	}
	close $theirs;
	my $self = bless { pid => $pid, socket => $ours, id => 0, log => $how{log} }, $class;
	$self->{hello} = $self->hear;
	return $self;
}

sub bytes {
	my ($self, $n) = @_;
	my $data = '';
	while (length $data < $n) {
		sysread($self->{socket}, $data, $n - length $data, length $data) or return undef;
	}
	return $data;
}

# The next frame; undef: the other side is gone.
sub hear {
	my ($self) = @_;
	my $head = $self->bytes(4) // return undef;
	return $json->decode($self->bytes(unpack 'N', $head) // return undef);
}

# The answer to a question; what came in between is in {between}.
sub ask {
	my ($self, $type, %with) = @_;
	my $body = $json->encode({ id => ++$self->{id}, type => $type, %with });
	my $frame = pack('N', length $body) . $body;
	$self->{between} = [];
	syswrite($self->{socket}, $frame) == length $frame or die "a question was cut off\n";
	while (my $heard = $self->hear) {
		return $heard if defined $heard->{id} && $heard->{id} == $self->{id};
		push @{$self->{between}}, $heard;
	}
	return { type => 'gone' };
}

# Its exit status, after the socket was closed.
sub over {
	my ($self) = @_;
	close $self->{socket};
	waitpid $self->{pid}, 0;
	$self->{pid} = 0;
	return $? & 127 ? "signal " . ($? & 127) : $? >> 8;
}

sub DESTROY {
	my ($self) = @_;
	local $?;
	$self->over if $self->{pid};
}

1;
