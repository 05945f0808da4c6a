#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Hostile requests to a dashboard: every answer is a clear 4xx, memory stays flat, and the server
# continues to answer others.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Select;
use IO::Socket::INET;
use POSIX qw(_exit);
use Test::More;
use Time::HiRes qw(sleep time);

use constant CONNECTIONS => 10000;
use constant EACH => 500; # of a process: descriptors are few on some machines
use constant GROWTH_KB => 400 << 10; # of one file of 64 MiB that is taken apart, and no more

my $d = start_dashboard('--log', 'access.jsonl');

sub open_one {
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}, Timeout => 20);
}

# The whole answer; what cannot be sent any more is left.
sub raw {
	my ($text, $seconds) = @_;
	my $s = open_one() or return '';
	my $select = IO::Select->new($s);
	my $answer = '';

	syswrite $s, substr $text, 0, 65536, '' while length $text && $select->can_write(5)
		&& !$select->can_read(0);
	while ($select->can_read($seconds // 10)) {
		last unless sysread $s, $answer, 65536, length $answer;
	}
	return $answer;
}

sub status_of { return $_[0] =~ m{^HTTP/1\.[01] (\d+)} ? $1 : 'none' }
sub memory_kb { return slurp("/proc/$d->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }
sub is_alive { return ask($d, 'GET', '/api/health')->{status} == 200 }

is(ask($d, 'GET', '/api/traces')->{json}{total}, 0, 'a store without traces lists none');
my $good = json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
	request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
	total_output_tokens => 100, request_throughput => 5, output_throughput => 50, mean_ttft_ms => 3 });
is(ask($d, 'POST', '/api/upload/raw', $good)->{status}, 201, 'a good file');
my $before_kb = memory_kb();
my $runs = ask($d, 'GET', '/api/health')->{json}{runs};

# ---- slow senders: they begin now, and are looked at last ----

my @slow = map { open_one() } 1 .. 150;
my @slow_text = ("GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: ", # a head without an end
	"POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n");
syswrite $slow[$_], $slow_text[$_ % 2] for 0 .. $#slow;

# ---- bodies ----

# name, body, headers, what the status must be
my @bodies = (
	['deep lists', '[' x 100000, {}, 422],
	['deep objects', '{"a":' x 100000, {}, 422],
	['deep and whole', ('[' x 5000) . (']' x 5000), {}, 422],
	['a number', '5', {}, 422],
	['a text', '"abc"', {}, 422],
	['null', 'null', {}, 422],
	['an empty object', '{}', {}, 422],
	['an empty list', '[]', {}, 422],
	['a half', substr($good, 0, 100), {}, 422],
	['bad UTF-8', $good =~ s/"m"/"m\xff\xfe"/r, {}, 422],
	['a lone continuation', "\x80" . $good, {}, 422],
	['NUL', "\0" x 1000, {}, 422],
	['gzip', "\x1f\x8b\x08\0\0\0\0\0\0\3" . 'x' x 1000, {}, 422],
	['gzip that says so', "\x1f\x8b\x08\0", { 'Content-Encoding' => 'gzip' }, 415],
	['many codings', $good, { 'Content-Encoding' => 'gzip, gzip, br' }, 415],
	['a form of fields', 'a=b', { 'Content-Type' => 'application/x-www-form-urlencoded' }, 415],
);
for my $b (@bodies) {
	my ($name, $body, $headers, $status) = @$b;
	my $r = ask($d, 'POST', '/api/upload/raw', $body, %$headers);

	is($r->{status}, $status, "$name: $status");
	like($r->{json}{detail} // '', qr/\w/, "$name: why");
}
for ('NaN', 'Infinity', '-Infinity', '1e999', '-1e999') {
	my $r = ask($d, 'POST', '/api/upload/raw', $good =~ s/"mean_ttft_ms":3/"mean_ttft_ms":$_/r);

	ok($r->{status} == 201 || $r->{status} == 422, "a metric that is $_: $r->{status}");
	my $id = eval { $r->{json}{results}[0]{id} } or next;
	$runs++;
	my $cell = ask($d, 'GET', "/api/data/experiments/$id")->{json}{values}{mean_ttft_ms};
	ok(!defined $cell || $cell =~ /^"?-?inf"?$/, 'is no number in answers');
}
for my $q (['[' x 100000, 400], ["{\"filter\": \xff}", 400], ['{"filter": {"and": 5}}', 400],
	['{"filter": {"column": 5, "in": {}}}', 400], ['{"limit": -1}', 400], ['{"limit": 1e30}', 400],
	['[]', 400], ['{"cursor": "zzz"}', 400], ['x' x (5 << 20), 413]) {
	my $r = ask($d, 'POST', '/api/filters/apply', $q->[0]);

	is($r->{status}, $q->[1], 'a question of ' . substr($q->[0], 0, 24) . ": $r->{status}");
}

# What an error quotes does not break its line, nor a terminal.
my $quoted = ask($d, 'POST', '/api/filters/apply', "{\"a\\nb\\u001b[31m\\u007f\": 1}");
is($quoted->{status}, 400, 'a member with control characters');
is($quoted->{json}{detail} =~ /^(.*?:)/s ? $1 : '', '/a?b?[31m?:', 'is quoted without them');

# ---- forms ----

my $edge = 'multipart/form-data; boundary=e';
my $part = 'Content-Disposition: form-data';
my %forms = (
	'no boundary'         => ['multipart/form-data', "--e\r\n", 400],
	'an endless boundary' => ['multipart/form-data; boundary=' . 'e' x 5000, "--e\r\n", 400],
	'no part'             => [$edge, '--e--', 400],
	'no end'              => [$edge, "--e\r\n$part; name=\"file\"\r\n\r\nx", 400],
	'no head'             => [$edge, "--e\r\n\r\nx\r\n--e--\r\n", 400],
	'a part without name' => [$edge, "--e\r\n$part\r\n\r\nx\r\n--e--\r\n", 400],
	'another boundary'    => [$edge, "--f\r\n\r\nx\r\n--f--\r\n", 400],
	'nothing'             => [$edge, "\r\n", 400],
	'zeros'               => [$edge, "\0" x 100000, 400],
	'too many parts'      => [$edge, ("--e\r\n$part; name=file\r\n\r\n\r\n" x 10001) . "--e--\r\n", 400],
);
for my $name (sort keys %forms) {
	my ($type, $body, $status) = @{$forms{$name}};
	my @got = map { ask($d, 'POST', "/api/upload/$_", $body, 'Content-Type' => $type)->{status} }
		qw(json batch);

	is("@got", "$status $status", "a form with $name");
}

# Names are texts: nothing outside the store's folder is ever touched.
my @names = ('../../../../tmp/profllm-hostile.json', '/tmp/profllm-hostile.json', "a\x01b\x7f.json",
	"bad\xff\xfe.json", 'x' x 5000, '', '..', 'C:\\hostile.json', '%2e%2e%2fhostile.json');
my $r = ask($d, 'POST', '/api/upload/batch', form(map { ['file', $_, $good] } @names));
is($r->{status}, 202, 'names that are tricks');
my $job = $r->{json}{job_id};
wait_for('the batch', sub { ask($d, 'GET', "/api/upload/status/$job")->{json}{state} eq 'done' });
my $files = ask($d, 'GET', "/api/upload/status/$job")->{json}{files};
is(scalar(grep { $_->{outcome} eq 'duplicate' } @$files), scalar @names, 'are only names');
is($files->[0]{name}, $names[0], 'as they were given');
is($files->[2]{name}, 'a_b_.json', 'without control characters');
ok(!-e '/tmp/profllm-hostile.json', 'and never paths');
$r = ask($d, 'POST', '/api/upload/json', form(['file', 'r', $good], ['trace', '../../../evil', 'T']));
is($r->{status}, 200, 'a trace of such a name');
my ($trace) = @{ask($d, 'GET', '/api/traces')->{json}{items}};
unlike(ask($d, 'GET', "/api/export/traces/$trace->{id}")->{headers}{'content-disposition'},
	qr{filename="[^"]*[/\\]}, 'comes back without its folders');

# ---- sizes ----

my $big = 66 << 20;
is(status_of(raw("POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nContent-Length: $big\r\n\r\n")), 413,
	'too large by its own account');
is(status_of(raw("POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\n"
	. "Content-Length: 99999999999999999999\r\nConnection: close\r\n\r\n")), 413,
	'larger than numbers are');
my $chunk = sprintf("%x\r\n%s\r\n", 1 << 20, ' ' x (1 << 20));
is(status_of(raw("POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
	. "Connection: close\r\n\r\n" . $chunk x 66 . "0\r\n\r\n")), 413, 'too large in chunks');
my $wide = '{"date": "20260101-000000", ' . join(', ', map { "\"k$_\": $_" } 1 .. 2000000) . '}';
$r = ask($d, 'POST', '/api/upload/raw', $wide);
is($r->{status}, 422, 'two million keys');

# ---- malformed requests ----

my $end = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
my $chunked = "POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
my %odd = (
	'noise'             => ["\x16\x03\x01\x02\x00" . join('', map { chr($_ * 37 % 256) } 1 .. 500),
		qr/^(400|none)$/],
	'no version'        => ["GET /\r\n\r\n", qr/^(4\d\d|505|none)$/],
	'another version'   => ["GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", qr/^(4\d\d|505|none)$/],
	'no host'           => ["GET /api/health HTTP/1.1\r\n\r\n", qr/^400$/],
	'a long address'    => ['GET /' . 'a' x 100000 . " $end\r\n", qr/^4\d\d$/],
	'many headers'      => ["GET / $end" . "A: b\r\n" x 50000 . "\r\n", qr/^4\d\d$/],
	'a long header'     => ["GET / ${end}A: " . 'b' x 100000 . "\r\n\r\n", qr/^4\d\d$/],
	'a folder above'    => ["GET /../../etc/passwd $end\r\n", qr/^(200|404)$/],
	'one in disguise'   => ["GET /assets/%2e%2e/%2e%2e/etc/passwd $end\r\n", qr/^(200|404)$/],
	'a NUL in a name'   => ["GET /api/jobs/%00 $end\r\n", qr/^404$/],
	'a bad escape'      => ["GET /api/jobs/%zz $end\r\n", qr/^404$/],
	'another method'    => ["BREW /api/health $end\r\n", qr/^405$/],
	'a negative length' => ["POST /api/upload/raw ${end}Content-Length: -5\r\n\r\n", qr/^400$/],
	'a length of words' => ["POST /api/upload/raw ${end}Content-Length: ten\r\n\r\n", qr/^400$/],
	'bad chunks'        => ["${chunked}zz\r\nabc\r\n", qr/^(400|none)$/],
	'a huge chunk'      => ["${chunked}ffffffffffffffff\r\nabc\r\n", qr/^(4\d\d|none)$/],
);
for my $name (sort keys %odd) {
	my $answer = raw($odd{$name}[0], 3);

	like(status_of($answer), $odd{$name}[1], "a request with $name: " . status_of($answer));
	unlike($answer, qr/root:.*:0:0:/, 'gets no file') if $name =~ /folder|disguise/;
}
my $two = raw("POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
	. "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
	. "GET /api/jobs HTTP/1.1\r\nHost: x\r\n\r\n", 3);
is(status_of($two), 400, 'two lengths are refused');
unlike($two, qr/"items"/, 'and do not smuggle a request in');
for my $length (10, length($good) + 50) { # too short: the rest is no request; too long: it never comes
	my $s = open_one();

	syswrite $s, "POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\n"
		. "Content-Length: $length\r\n\r\n$good";
	shutdown $s, 1;
	my $answer = join '', <$s>;
	unlike($answer, qr/^HTTP\/1.1 201/, "a length of $length for " . length($good));
}
is(ask($d, 'GET', '/api/health')->{json}{runs}, $runs, 'nothing of all that was kept');
cmp_ok(memory_kb() - $before_kb, '<', GROWTH_KB, 'memory is what it was, about');

# ---- ten thousand connections ----

my $steady_kb = memory_kb();
my @children;
pipe my $told, my $tell;
for (1 .. CONNECTIONS / EACH) {
	my $pid = fork;

	if (!$pid) {
		my @open = map { open_one() } 1 .. EACH;

		$_ and syswrite $_, "GET /api/health HTTP/1.1\r\nHost: localhost\r\n" for @open;
		syswrite $tell, scalar(grep { $_ } @open) . "\n";
		sleep 60; # until it is ended
		_exit(0);
	}
	push @children, $pid;
}
close $tell;
my ($said, $answered, $longest) = ('', 0, 0);
my $select = IO::Select->new($told);
my $deadline = time + 60;
while (($said =~ tr/\n//) < @children && time < $deadline) {
	my $began = time;

	$answered += is_alive();
	$longest = time - $began if time - $began > $longest;
	sysread $told, $said, 4096, length $said if $select->can_read(0.02);
}
my @reports = split /\n/, $said;
my $opened = 0;
$opened += $_ for @reports;
is(scalar @reports, scalar @children, 'everybody is there');
cmp_ok($opened, '>', CONNECTIONS * 0.9, "$opened connections were opened, and held");
cmp_ok($answered, '>', 3, "while $answered questions of others were answered");
ok(is_alive(), 'and still are');
note sprintf 'the slowest of them took %.2f s', $longest;
cmp_ok(memory_kb() - $steady_kb, '<', 200 << 10, 'each costs little');
# Those that had to make room are counted until the thread that owns them has closed them.
my ($held, $patience) = (0, time + 30);
do {
	($held) = ask($d, 'GET', '/metrics')->{content} =~ /^profllm_http_connections (\d+)/m;
} while (($held // 0) > 1100 && time < $patience && sleep 0.1);
ok(defined $held && $held <= 1100, 'of them ' . ($held // 'an unknown number') . ' are let be');
kill 'KILL', @children;
waitpid $_, 0 for @children;

# ---- endless streams ----

$r = ask($d, 'POST', '/api/upload/batch', form(map { ['file', "f$_", $good] } 1 .. 3));
my @streams = map { open_one() } 1 .. 140;
syswrite $_, "GET /api/jobs/$r->{json}{job_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n" for @streams;
ok(is_alive(), 'many who follow a job');
close $_ for @streams;

# ---- the slow ones, at last ----

my $patient = time + 40;
my @left = grep { $_ } @slow;
while (@left && time < $patient) {
	my @gone;

	for my $s (IO::Select->new(@left)->can_read(0.2)) {
		my $n = sysread $s, my $bytes, 65536;
		push @gone, $s unless $n;
	}
	@left = grep { my $s = $_; !grep { $_ == $s } @gone } @left;
}
is(scalar @left, 0, 'those who send too slowly are let go');
ok(is_alive(), 'the server is alive');
is(ask($d, 'GET', '/api/health')->{json}{runs}, $runs, 'with what was acknowledged');
is($d->stop, 0, 'and ends well');
is(scalar(grep { /"level": "error"/ } split /\n/, slurp('access.jsonl')), 0, 'nothing was its own fault');

done_testing();
