# SPDX-License-Identifier: Apache-2.0
# LoadTest.pm - what the tests of the load path share.
#
# The simulator is the referee: it writes down what it received and sent, and each test
# compares what `profllm bench serve` reports with that. Nothing here judges speed; bounds on
# time are there to find a stamp that belongs to another event, not a slow machine.
package LoadTest;
use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use IO::Socket::IP ();
use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes ();

our @EXPORT = qw(sim serve serve_start serve_end profllm truth_of truth_by_id events_are_right
	counts_are_right failures slurp read_json read_lines certificate listen_local answers_once child_start
	child_stop wait_until $PROFLLM);
our $PROFLLM = $ENV{PROFLLM} || 'build/profllm';

# The machine's own proxies are not part of any test.
delete @ENV{qw(HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy NO_PROXY no_proxy
	OPENAI_API_KEY)};

my %alive; # pid => 1: ended when the test ends, however it ends

END {
	my $status = $?;
	for my $pid (keys %alive) {
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
	$? = $status;
}

sub slurp
{
	my ($path) = @_;
	open(my $f, '<:raw', $path) or return '';
	local $/;
	my $text = <$f>;
	return defined $text ? $text : '';
}

sub wait_until
{
	my ($seconds, $test) = @_;
	my $end = Time::HiRes::time() + $seconds;
	while (Time::HiRes::time() < $end) {
		my $value = $test->();
		return $value if $value;
		Time::HiRes::sleep(0.01);
	}
	return;
}

# Runs a program in the background with its output in files.
sub child_start
{
	my ($out, $err, @argv) = @_;
	my $pid = fork();
	die "fork: $!" unless defined $pid;
	if ($pid == 0) {
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', $out) or POSIX::_exit(126);
		open(STDERR, '>', $err) or POSIX::_exit(126);
		exec { $argv[0] } @argv or POSIX::_exit(127);
	}
	$alive{$pid} = 1;
	return $pid;
}

# Ends it with a signal (none: waits for its own end) and gives its exit status.
sub child_stop
{
	my ($pid, $signal) = @_;
	kill $signal, $pid if $signal;
	my $ended = wait_until(60, sub { waitpid($pid, POSIX::WNOHANG()) == $pid });
	my $status = $?;
	if (!$ended) {
		kill 'KILL', $pid;
		waitpid $pid, 0;
		$status = $?;
	}
	delete $alive{$pid};
	return $status & 127 ? 128 + ($status & 127) : $status >> 8;
}

# Starts a simulator: { url, dir, pid, ... }. Options as on its command line; unix => 1
# listens on a socket file, host => ADDR on that address.
sub sim
{
	my ($how, @args) = ref $_[0] ? @_ : ({}, @_);
	my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
	my %s = (dir => $dir, truth => "$dir/truth.jsonl", requests => "$dir/requests.jsonl");
	my @where = ('--port', '0', '--port-file', "$dir/port");

	@where = ('--uds', "$dir/socket") if $how->{unix};
	push @where, '--host', $how->{host} if $how->{host};
	$s{pid} = child_start("$dir/sim.out", "$dir/sim.err", $PROFLLM, 'sim', @where, '--truth',
		$s{truth}, '--requests', $s{requests}, @args);
	my $up = wait_until(30, sub {
		$how->{unix} ? -S "$dir/socket" : slurp("$dir/port") =~ /^\d+\n/ });
	die 'the simulator did not start: ' . slurp("$dir/sim.err") unless $up;
	if ($how->{unix}) {
		$s{url} = "unix:$dir/socket";
	} else {
		my $scheme = (grep { $_ eq '--ssl-certfile' } @args) ? 'https' : 'http';
		my $host = $how->{host} || '127.0.0.1';
		$host = "[$host]" if $host =~ /:/;
		($s{port}) = slurp("$dir/port") =~ /(\d+)/;
		$s{url} = "$scheme://$host:$s{port}";
	}
	return \%s;
}

# What starts the program: mpirun and its options (ranks.t).
our @LAUNCHER;

# Starts `bench serve` against a simulator, a URL or a list of them; the result lands in its own
# directory.
sub serve_start
{
	my ($to, @args) = @_;
	my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
	my %r = (dir => $dir, json => "$dir/result.json");

	my @to = map { ref $_ ? $_->{url} : $_ } ref $to eq 'ARRAY' ? @$to : $to;
	$r{pid} = child_start("$dir/out", "$dir/err", @LAUNCHER, $PROFLLM, 'bench', 'serve',
		@to > 1 ? '--base-urls' : '--base-url', @to, '--model', 'sim', '--tokenizer', 'sim',
		'--dataset-name', 'random', '--random-input-len', '16', '--random-output-len', '8',
		'--ready-check-timeout-sec', '0', '--save-result', '--save-detailed',
		'--result-dir', "$dir", '--result-filename', 'result.json', '--progress', 'none',
		'--report', 'full', '--request-id-prefix', 'r', @args);
	return \%r;
}

sub serve_end
{
	my ($r, $signal) = @_;
	$r->{status} = child_stop($r->{pid}, $signal);
	$r->{out} = slurp("$r->{dir}/out");
	$r->{err} = slurp("$r->{dir}/err");
	$r->{result} = read_json($r->{json});
	$r->{own} = $r->{result} ? $r->{result}{profllm} : {};
	return $r;
}

sub serve { return serve_end(serve_start(@_)); }

# Runs the program and gives (status, stdout, stderr).
sub profllm
{
	my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
	my $status = child_stop(child_start("$dir/out", "$dir/err", $PROFLLM, @_));
	return ($status, slurp("$dir/out"), slurp("$dir/err"));
}

# Python's spelling of infinities is not JSON.
sub decode
{
	my ($text) = @_;
	$text =~ s/(?<=[:\[,] )(-?Infinity|NaN)/"$1"/g;
	return eval { JSON::PP->new->decode($text) };
}

sub read_json { my $text = slurp($_[0]); return $text eq '' ? undef : decode($text); }
sub read_lines { return map { decode($_) } split /\n/, slurp($_[0]); }

# Ends the simulator and gives its truth rows.
sub truth_of
{
	my ($s) = @_;
	child_stop($s->{pid}, 'TERM') if $s->{pid};
	$s->{pid} = 0;
	return read_lines($s->{truth});
}

sub truth_by_id { return map { ($_->{request_id} // '') => $_ } truth_of(@_); }

# { category => count } of a result.
sub failures
{
	my ($run) = @_;
	return { map { $_->{category} => $_->{count} } @{ $run->{own}{failures} || [] } };
}

# Requests, tokens and events of the report equal what the simulator counted.
sub counts_are_right
{
	my ($run, $truth, $name) = @_;
	my ($result, @row) = ($run->{result}, values %$truth);
	my ($tokens, $prompt, $events) = (0, 0, 0);

	for my $t (@row) {
		$tokens += $t->{output_tokens};
		$prompt += $t->{prompt_tokens};
		$events += @{ $t->{send_ns} };
	}
	my @got = ($result->{completed}, $result->{failed}, $result->{total_output_tokens},
		$result->{total_input_tokens}, $run->{own}{token_events});
	is_deeply(\@got, [scalar(@row), 0, $tokens, $prompt, $events],
		"$name: requests, failures, output and prompt tokens, events");
}

# Every event's stamp is at or after its send, and soon after in most cases.
sub events_are_right
{
	my ($run, $truth, $name) = @_;
	my ($result, $rows) = ($run->{result}, $run->{own}{requests});
	my (@late, @early, @unlike);

	for my $i (0 .. $#{ $rows->{request_id} }) {
		my $t = $truth->{ $rows->{request_id}[$i] };
		my $sent = $rows->{sent_ns}[$i];
		my $at = $rows->{first_event_ns}[$i];
		my @stamp = ($at);

		push @early, "request $i was received before it was sent" if $t->{recv_ns} < $sent;
		for my $gap (@{ $result->{itls}[$i] }) {
			$at += sprintf('%.0f', $gap * 1e9);
			push @stamp, $at;
		}
		push @unlike, "request $i" if @stamp != @{ $t->{send_ns} };
		for my $k (0 .. $#{ $t->{send_ns} }) {
			my $late = ($stamp[$k] // 0) - $t->{send_ns}[$k];

			push @late, $late;
			push @early, "request $i event $k by $late ns" if $late < 0;
		}
	}
	is("@unlike", '', "$name: every event of every request is there");
	is(join('; ', @early), '', "$name: no stamp is before its send");
	@late = sort { $a <=> $b } @late;
	cmp_ok($late[$#late / 2], '<', 50e6, "$name: half of the stamps within 50 ms of the send");
	cmp_ok($late[-1], '<', 2e9, "$name: all of them within 2 s");
}

# A certificate for 127.0.0.1 and localhost: (cert, key) paths, or nothing without openssl.
sub certificate
{
	my ($dir) = @_;
	my @cmd = ('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
		'-nodes', '-keyout', "$dir/key.pem", '-out', "$dir/cert.pem", '-days', '2', '-subj',
		'/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1');

	return unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};
	my $pid = child_start('/dev/null', "$dir/openssl.err", '/usr/bin/env', @cmd);
	return child_stop($pid) == 0 ? ("$dir/cert.pem", "$dir/key.pem") : ();
}

sub listen_local
{
	my $l = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 128,
		ReuseAddr => 1, Type => IO::Socket::IP::SOCK_STREAM()) or die "listen: $@";
	return ($l, $l->sockport);
}

# The port of a server that answers the first contact and is gone before a request comes.
sub answers_once
{
	my ($listener, $port) = listen_local();
	my $pid = fork // die "fork: $!";

	if (!$pid) {
		alarm 60;
		my $c = $listener->accept;
		close $listener;
		while (my $line = <$c>) { last if $line !~ /\S/ }
		print $c "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
		close $c;
		POSIX::_exit(0);
	}
	close $listener;
	$alive{$pid} = 1;
	return $port;
}

1;
