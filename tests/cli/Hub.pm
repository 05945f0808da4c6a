# SPDX-License-Identifier: Apache-2.0
# Hub.pm - a hub of models and datasets on two ports: the hub itself, and the host its
# large files are redirected to, which must never see a token.
#
#   my $hub = start_hub(models => { 'org/m' => { main => $commit, $commit => { file => text } } },
#       gated => { 'org/g' => 'hf_token' }, large => qr/\.json$/, faults => [...]);
#
# A fault is { on => qr/^GET .../, times => N, and one of: status => [503, 'Name: value'...],
# cut => bytes, silence => seconds, slow => seconds between 64 KiB, size => announced,
# etag => announced, plain => 1 (no header that a hub has) }. It is about "METHOD path".
# Every request is a line in $hub->{log}: port, METHOD path, authorization, range.
package Hub;
use strict;
use warnings;
use Digest::SHA qw(sha1_hex sha256_hex);
use Exporter qw(import);
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw(_exit setsid);
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep);

our @EXPORT = qw(start_hub stop_hubs git_id);

my @groups;
my $count = 0;

sub git_id { return sha1_hex('blob ' . length($_[0]) . "\0$_[0]") }

sub start_hub {
	my (%hub) = @_;
	my @listen = map { IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', LocalPort => 0)
		or die "listen: $!\n" } 1, 2;
	my %port = (hub => $listen[0]->sockport, cdn => $listen[1]->sockport);
	my $log = $ENV{HF_HOME} . '.' . ++$count . '.log';
	my $pid;

	open my $f, '>', $log or die "$log: $!\n";
	close $f;
	%hub = (%hub, log => $log, cdn => "http://127.0.0.1:$port{cdn}");
	$pid = fork;
	if (!$pid) {
		setsid();
		open STDOUT, '>', '/dev/null';
		open STDERR, '>', '/dev/null';
		$SIG{CHLD} = 'IGNORE';
		serve(\%hub, @listen);
	}
	select undef, undef, undef, 0.01 until getpgrp($pid) == $pid;
	push @groups, $pid;
	return { url => "http://127.0.0.1:$port{hub}", cdn => $hub{cdn}, log => $log, pid => $pid };
}

sub stop_hubs {
	kill 'KILL', map { -$_ } @groups if @groups;
	waitpid $_, 0 for @groups;
	@groups = ();
}

# Faults are counted here, answers are given by children, so that a slow one delays no other.
sub serve {
	my ($hub, @listen) = @_;
	my $select = IO::Select->new(@listen);

	while (1) {
		for my $listen ($select->can_read) {
			my $c = $listen->accept or next;
			my ($head, $fault) = ('');

			while ($head !~ /\r\n\r\n/) { sysread $c, $head, 65536, length $head or last }
			next unless $head =~ /^([A-Z]+) (\S+) HTTP/;
			my %r = (method => $1, path => $2, is_cdn => $listen == $listen[1]);
			my $what = "$1 $2";
			($r{token}) = $head =~ /^authorization: *Bearer (\S+)/mi;
			($r{from}) = $head =~ /^range: *bytes=(\d+)-/mi;
			open my $log, '>>', $hub->{log};
			syswrite $log, join(' ', ($r{is_cdn} ? 'cdn' : 'hub'), $what, $r{token} // '-',
				$r{from} // '-') . "\n";
			close $log;
			($fault) = grep { ($_->{times} // 1e9) > 0 && $what =~ $_->{on} }
				@{$hub->{faults} || []};
			$fault->{times}-- if $fault && $fault->{times};
			next if fork;
			answer($hub, $c, \%r, $fault || {});
			_exit(0);
		}
	}
}

sub answer {
	my ($hub, $c, $r, $fault) = @_;
	my ($status, $head, $body) = $fault->{status} ? (@{$fault->{status}}[0],
		[@{$fault->{status}}[1 .. $#{$fault->{status}}]], 'a fault') : content($hub, $r, $fault);
	my $length = length $body;

	sleep $fault->{silence} if $fault->{silence};
	if ($status == 200 && defined $r->{from} && $r->{method} eq 'GET' && !$fault->{whole}) {
		return answer_range_error($c, $length) if $r->{from} >= $length;
		push @$head, "Content-Range: bytes $r->{from}-" . ($length - 1) . "/$length";
		$body = substr $body, $r->{from};
		$status = 206;
	}
	$head = [grep { !/^(X-|ETag)/ } @$head] if $fault->{plain};
	push @$head, 'Content-Length: ' . ($r->{method} eq 'HEAD' ? $fault->{size} // $length
		: length $body) unless grep { /^Content-Length/ } @$head;
	syswrite $c, join "\r\n", "HTTP/1.1 $status X", 'Connection: close', @$head, '', '';
	return if $r->{method} eq 'HEAD';
	$body = substr $body, 0, $fault->{cut} if defined $fault->{cut};
	for (my $at = 0; $at < length $body;) {
		$at += syswrite($c, $body, 65536, $at) || last;
		sleep $fault->{slow} if $fault->{slow};
	}
	# A connection that is lost, not ended.
	setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ll', 1, 0) if defined $fault->{reset};
}

sub answer_range_error {
	my ($c, $length) = @_;
	syswrite $c, "HTTP/1.1 416 X\r\nConnection: close\r\nContent-Range: bytes */$length\r\n"
		. "Content-Length: 0\r\n\r\n";
}

sub refuse { return ($_[0], ["X-Error-Code: $_[1]", "X-Error-Message: $_[2]"], $_[2]) }

# Status, header lines, body.
sub content {
	my ($hub, $r, $fault) = @_;

	return cdn($hub, $r) if $r->{is_cdn};
	if ($r->{path} =~ m{^/api/(models|datasets)/(.+?)/revision/(.+)$}) {
		my ($repo, $commit, @refusal) = find($hub, $1, $2, $3);

		return @refusal if @refusal;
		return (200, ['Content-Type: application/json'], JSON::PP->new->encode({ id => $2,
			sha => $commit, siblings => [map { { rfilename => $_ } } sort keys %{$repo->{$commit}}] }));
	}
	if ($r->{path} =~ m{^/(datasets/)?(.+?)/resolve/([^/]+)/(.+)$}) {
		my ($kind, $name, $revision, $file) = ($1 ? 'datasets' : 'models', $2, $3, $4);
		my ($repo, $commit, @refusal) = find($hub, $kind, $name, $revision);

		return @refusal if @refusal;
		return (307, ["Location: /$hub->{moved}{$name}/resolve/$revision/$file"], '')
			if $hub->{moved}{$name};
		my $wanted = $hub->{gated}{$name};
		return refuse($r->{token} ? 403 : 401, 'GatedRepo', "Access to model $name is restricted")
			if $wanted && ($r->{token} // '') ne $wanted;
		my $text = $repo->{$commit}{$file};
		return (404, ['X-Error-Code: EntryNotFound', "X-Repo-Commit: $commit"], 'no')
			unless defined $text;
		return (302, ["Location: $hub->{cdn}/$name/$commit/$file?Signature=secret",
			'X-Linked-Etag: "' . ($fault->{etag} // sha256_hex($text)) . '"',
			'X-Linked-Size: ' . ($fault->{size} // length $text), "X-Repo-Commit: $commit"], '')
			if $hub->{large} && $file =~ $hub->{large};
		return (200, ['ETag: "' . ($fault->{etag} // git_id($text)) . '"',
			"X-Repo-Commit: $commit"], $text);
	}
	return (404, [], 'no such page');
}

sub find {
	my ($hub, $kind, $name, $revision) = @_;
	my $repo = $hub->{$kind}{$hub->{moved}{$name} // $name};
	my $commit;

	return (undef, undef, refuse(401, 'RepoNotFound', 'Repository not found')) unless $repo;
	$revision =~ s/%([0-9A-F]{2})/chr hex $1/ge;
	$commit = ref $repo->{$revision} ? $revision : $repo->{$revision};
	return (undef, undef, refuse(404, 'RevisionNotFound', "Invalid rev id: $revision"))
		unless $commit;
	return ($repo, $commit);
}

sub cdn {
	my ($hub, $r) = @_;

	return (400, [], 'a token came here') if defined $r->{token};
	return (404, [], 'no') unless $r->{path} =~ m{^/(.+)/([^/]+)/([^/]+)\?Signature=secret$};
	return (200, ['ETag: "of-the-cdn"'], $hub->{models}{$1}{$2}{$3});
}

1;
