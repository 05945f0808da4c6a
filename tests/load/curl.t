#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# libcurl's transport: the same facts as the native one, and what only it can do.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Relay;
use Test::More;

my @pace = ('--ttft-ms', '5', '--itl-ms', '2');
my @curl = ('--transport', 'curl');
my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);

# ---- the same as the native one ----

my @workloads = (
	['completions', '--num-prompts', '30', '--max-concurrency', '5'],
	['a rate', '--num-prompts', '30', '--request-rate', '200'],
	['two threads', '--num-prompts', '40', '--threads', '2', '--max-concurrency', '8'],
	['all at once', '--num-prompts', '60'],
	['chat', '--num-prompts', '12', '--backend', 'openai-chat', '--endpoint',
		'/v1/chat/completions'],
);
for my $row (@workloads) {
	my ($name, @args) = @$row;
	my %run;

	for my $transport ('native', 'curl') {
		my $sim = sim(@pace);
		my $run = $run{$transport} = serve($sim, '--transport', $transport, @args);
		my %truth = truth_by_id($sim);

		is($run->{status}, 0, "$name by $transport: exit status") or diag($run->{err});
		counts_are_right($run, \%truth, "$name by $transport");
		events_are_right($run, \%truth, "$name by $transport");
		is($run->{own}{transport}, $transport, "$name by $transport: the result says so");
		like($run->{out}, qr/^Transport: +$transport *$/m, "$name by $transport: the report too");
		is($run->{own}{http_version}, '1.1', "$name by $transport: HTTP version");
	}
	for my $key (qw(generated_texts input_lens output_lens errors)) {
		is_deeply($run{curl}{result}{$key}, $run{native}{result}{$key}, "$name: same $key");
	}
	is($run{curl}{own}{requests_user_stamped}, $run{curl}{result}{completed},
		"$name: libcurl's stamps are user-space ones");
	is($run{native}{own}{requests_user_stamped}, 0, "$name: native ones are not");
}
{
	my $sim = sim({ unix => 1 }, @pace);
	my $run = serve($sim, '--num-prompts', '4', @curl);

	is($run->{result}{completed}, 4, 'a Unix socket') or diag($run->{err});
}
{
	my $sim = sim(@pace);
	my $run = serve($sim, '--num-prompts', '20', '--max-concurrency', '2', @curl);

	is($run->{own}{new_connections}, 2, 'connections are kept');
}
{
	my %seen;

	for my $transport ('native', 'curl') {
		my $server = relay_start(sub {
			my ($c, $log) = @_;
			my ($head) = read_request($c);
			syswrite($log, "$_\n") for map { s/^([^:]+): */\L$1:/r } split /\r\n/, $head;
			syswrite($c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
		});
		local $ENV{OPENAI_API_KEY} = 'secret';

		serve($server->{url}, '--num-prompts', '1', '--transport', $transport, '--header',
			'X-One=a b', 'X-Empty=');
		$seen{$transport} = [sort map { s/:$server->{port}$/:port/r } relay_end($server)];
	}
	is_deeply($seen{curl}, $seen{native}, 'request line and headers are the same');
	is(scalar(grep { /^expect/ } @{ $seen{curl} }), 0, 'no Expect');
}

# ---- what can go wrong ----

my @faults = (
	['status=503'], ['reset@3'], ['reset@1'], ['close@3'], ['malformed@3'], ['error-event@4'],
	['stall@3=20s', '--request-timeout', '1'], ['slow-start=20s', '--request-timeout', '1'],
);
for my $row (@faults) {
	my ($fault, @args) = @$row;
	my %got;

	for my $transport ('native', 'curl') {
		my $sim = sim(@pace, '--fault', $fault);
		my $run = serve($sim, '--num-prompts', '4', '--transport', $transport, @args);

		$got{$transport} = failures($run);
		is($run->{own}{retries}, 0, "$fault by $transport: none was sent again");
	}
	is_deeply($got{curl}, $got{native}, "$fault: the same category");
	is_deeply([values %{ $got{curl} }], [4], "$fault: of all");
}

my @answers = (
	['no answer', undef], ['not HTTP', "SSH-2.0-nonsense\r\n\r\n"],
	['half a head', "HTTP/1.1 200 OK\r\nContent-Ty"],
	['bad chunk', "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" .
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
	['cut chunk', "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" .
		"Transfer-Encoding: chunked\r\n\r\n40\r\ndata: "],
	['compressed', "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"],
	['two framings', "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" .
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
);
for my $row (@answers) {
	my ($name, $answer) = @$row;
	my %got;

	for my $transport ('native', 'curl') {
		my $server = relay_start(sub {
			my ($c) = @_;
			read_request($c);
			syswrite($c, $answer) if defined $answer;
		});
		$got{$transport} = failures(serve($server->{url}, '--num-prompts', '2', '--transport',
			$transport));
		relay_end($server);
	}
	is_deeply($got{curl}, $got{native}, "$name: the same category");
}
{
	my $port = answers_once();
	my $run = serve("http://127.0.0.1:$port", '--num-prompts', '2', @curl);
	is_deeply(failures($run), { connect => 2 }, 'nobody listens');
}
{
	my $sim = sim('--ttft-ms', '5', '--itl-ms', '400');
	my $run = serve_start($sim, '--num-prompts', '8', '--threads', '2', @curl);

	wait_until(20, sub { read_lines($sim->{requests}) >= 8 });
	serve_end($run, 'INT');
	is($run->{status}, 130, 'Ctrl-C: exit status');
	is($run->{own}{cancelled}, 8, 'Ctrl-C: what was in flight was cancelled');
}

# ---- proxies ----

{
	my ($sim, $p) = (sim(@pace), relay_start(socks_proxy('me', 'pass:word')));
	my $proxy = "socks5h://me:pass%3Aword\@$p->{host}";
	my $run = serve($sim->{url} =~ s/127\.0\.0\.1/localhost/r, '--num-prompts', '6',
		'--max-concurrency', '2', '--proxy', $proxy);
	my %truth = truth_by_id($sim);
	my @log = relay_end($p);

	counts_are_right($run, \%truth, 'SOCKS5') or diag($run->{err});
	is($run->{own}{transport}, 'curl', 'SOCKS5: libcurl was taken for it');
	is($run->{own}{new_connections}, 2, 'SOCKS5: connections are kept');
	cmp_ok(scalar @log, '>=', 2, 'SOCKS5: through the proxy');
	is_deeply([grep { $_ ne "socks5 3 localhost:$sim->{port}" } @log], [],
		'SOCKS5: which resolves the name');
	unlike($run->{out}, qr/pass%3Aword|pass:word/, 'SOCKS5: the password is not shown');
}
{
	my ($sim, $p) = (sim(@pace), relay_start(socks_proxy('me', 'word')));
	local $ENV{ALL_PROXY} = "socks5://me:wrong\@$p->{host}";
	my $run = serve($sim, '--num-prompts', '2');

	is_deeply(failures($run), { connect => 2 }, 'SOCKS5 from ALL_PROXY, wrong password');
	is((relay_end($p))[0], 'socks5 wrong password', 'which was the reason');
}
for my $kind (['socks4', '127.0.0.1'], ['socks4a', 'localhost']) {
	my ($scheme, $host) = @$kind;
	my ($sim, $p) = (sim(@pace), relay_start(socks_proxy('', '')));
	my $run = serve($sim->{url} =~ s/127\.0\.0\.1/$host/r, '--num-prompts', '2', '--proxy',
		"$scheme://$p->{host}");

	is($run->{result}{completed}, 2, "$scheme: all succeed") or diag($run->{err});
	is((relay_end($p))[0], "socks4 $host:$sim->{port}", "$scheme: where to");
}
{
	my ($sim, $p) = (sim(@pace), relay_start(http_proxy(password => 'me:word')));
	local $ENV{HTTP_PROXY} = "http://me:word\@$p->{host}";
	my $run = serve($sim, '--num-prompts', '5', '--max-concurrency', '1');
	my @log = grep { /completions/ } relay_end($p);

	is($run->{result}{completed}, 5, 'a proxy with a password, http') or diag($run->{err});
	is_deeply(\@log, [("POST $sim->{url}/v1/completions HTTP/1.1") x 5],
		'a proxy with a password, http: whole URLs');
}
SKIP: {
	my ($cert, $key) = certificate("$dir");

	skip 'the openssl command is needed to make a certificate', 5 unless $cert;
	my ($sim, $p) = (sim(@pace, '--ssl-certfile', $cert, '--ssl-keyfile', $key),
		relay_start(http_proxy(password => 'me:word')));
	my $run = serve($sim, '--num-prompts', '4', '--max-concurrency', '2', '--cacert', $cert,
		'--proxy', "http://me:word\@$p->{host}");
	my $bad = serve($sim, '--num-prompts', '2', '--cacert', $cert, '--proxy',
		"http://me:no\@$p->{host}");
	my @log = relay_end($p);

	is($run->{result}{completed}, 4, 'a proxy with a password, https') or diag($run->{err});
	is($run->{own}{new_connections}, 2, 'a proxy with a password, https: tunnels are kept');
	cmp_ok(scalar(grep { $_ eq "CONNECT 127.0.0.1:$sim->{port}" } @log), '>=', 2,
		'a proxy with a password, https: a tunnel for each connection');
	is($bad->{status}, 1, 'a proxy that does not know the password');
	my $why = quotemeta '(profllm help proxy_refused)';
	like($bad->{err},
		qr/the proxy \Q$p->{host}\E refuses the user name or password \(407\): check --proxy $why$/m,
		'its status is in the sentence, the password is not');
}

# ---- redirects ----

# One that sends every request on to the simulator with the given status.
sub redirector
{
	my ($status, $to) = @_;
	return relay_start(sub {
		my ($c, $log) = @_;
		while (my ($head, $body) = read_request($c)) {
			syswrite($log, ($head =~ /^(.*?)\r/)[0] . "\n");
			syswrite($c, "HTTP/1.1 $status Elsewhere\r\nLocation: $to\r\n" .
				"Content-Length: 4\r\n\r\ngone");
		}
	});
}

for my $status (307, 308) {
	my $sim = sim(@pace);
	my $from = redirector($status, "$sim->{url}/v1/completions");
	my $run = serve($from->{url}, '--num-prompts', '4', '--follow-redirects');
	my %truth = truth_by_id($sim);

	relay_end($from);
	counts_are_right($run, \%truth, "$status") or diag($run->{err});
	is($run->{own}{transport}, 'curl', "$status: libcurl was taken for it");
	is($run->{own}{retries}, 0, "$status: a hop is not a retry");
}
{
	my $sim = sim(@pace);
	my $from = redirector(307, "$sim->{url}/v1/completions");
	my $run = serve($from->{url}, '--num-prompts', '2');

	relay_end($from);
	is_deeply(failures($run), { http_status => 2 }, '307 without --follow-redirects');
}
for my $status (301, 302, 303) {
	my $last = relay_start(sub {
		my ($c, $log) = @_;
		my ($head) = read_request($c);
		syswrite($log, ($head =~ /^(.*?)\r/)[0] . "\n");
		syswrite($c, "HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	});
	my $from = redirector($status, "$last->{url}/there");
	my $run = serve($from->{url}, '--num-prompts', '1', '--follow-redirects');

	relay_end($from);
	is_deeply([relay_end($last)], ['GET /there HTTP/1.1'], "$status makes a GET of a POST");
	is_deeply(failures($run), { http_status => 1 }, "$status: the last answer counts");
}
{
	my $loop;
	$loop = relay_start(sub {
		my ($c, $log) = @_;
		while (my ($head) = read_request($c)) {
			syswrite($log, "hop\n") if $head =~ /completions/;
			syswrite($c, "HTTP/1.1 307 Again\r\nLocation: /v1/completions\r\n" .
				"Content-Length: 0\r\n\r\n");
		}
	});
	my $run = serve($loop->{url}, '--num-prompts', '1', '--follow-redirects');
	my @hops = relay_end($loop);

	is(scalar @hops, 11, 'a circle of redirects: ten are followed');
	is_deeply(failures($run), { http_protocol => 1 }, 'a circle of redirects: category');
}

# ---- what does not go together ----

for my $row (
	['native and HTTP/2', qr/--transport native cannot do --http-version 2; expected/,
		'--transport', 'native', '--http-version', '2'],
	['native and redirects', qr/native cannot do --follow-redirects/, '--transport', 'native',
		'--follow-redirects'],
	['native and SOCKS', qr/native cannot do a proxy other than/, '--transport', 'native',
		'--proxy', 'socks5://127.0.0.1:9'],
	['native and a password', qr/native cannot do a proxy with a user name or password/,
		'--transport', 'native', '--proxy', 'http://me:word@127.0.0.1:9'],
	['an unknown kind', qr/--proxy: proxies of kind 'ftp' are not supported; expected http/,
		'--proxy', 'ftp://127.0.0.1:9'],
	['warm connections', qr/--warm-connections 4: libcurl .*expected 0 or auto/, '--transport',
		'curl', '--warm-connections', '4'],
) {
	my ($name, $text, @args) = @$row;
	my $sim = sim(@pace);
	my $run = serve($sim, '--num-prompts', '1', @args);

	is($run->{status}, 2, "$name: exit status");
	like($run->{err}, $text, "$name: the sentence");
	unlike($run->{err}, qr/me:word/, "$name: it is not shown") if $name =~ /a password/;
	is(scalar(my @rows = truth_of($sim)), 0, "$name: nothing was sent");
}

# ---- HTTP/2 ----

my $node = (grep { -x } map { "$_/node" } split /:/, $ENV{PATH})[0];

# A server of completions by HTTP/2 alone; the first line of its output is the port.
my $script = <<'JS';
const http2 = require('http2'), fs = require('fs');
const [cert, key, fault] = process.argv.slice(2);
const server = cert ? http2.createSecureServer({ cert: fs.readFileSync(cert),
	key: fs.readFileSync(key) }) : http2.createServer();
let sessions = 0;
server.on('session', (session) => {
	console.log('session ' + ++sessions);
	session.on('error', () => 0);
});
server.on('sessionError', () => 0);
server.on('stream', (stream, headers) => {
	let body = '';
	stream.on('error', () => 0);
	stream.on('data', (piece) => body += piece);
	stream.on('end', () => {
		console.log(headers[':method'] + ' ' + headers[':path'] + ' ' + headers['x-request-id']);
		if (headers[':path'] !== '/v1/completions') {
			stream.respond({ ':status': 404 });
			stream.end();
			return;
		}
		const n = JSON.parse(body).max_tokens;
		let k = 0;
		stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
		const timer = setInterval(() => {
			if (fault === 'reset' && k === 3) {
				clearInterval(timer);
				stream.destroy(new Error('on purpose'));
			} else if (k < n) {
				stream.write('data: {"choices":[{"text":" w' + k++ + '"}]}\n\n');
			} else {
				clearInterval(timer);
				stream.end('data: {"choices":[],"usage":{"prompt_tokens":16,' +
					'"completion_tokens":' + n + '}}\n\ndata: [DONE]\n\n');
			}
		}, 20);
	});
});
server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port));
JS

my $servers = 0;

sub http2_start
{
	my (@args) = @_;
	my $out = "$dir/node" . $servers++;

	open(my $f, '>', "$dir/server.js");
	print $f $script;
	close $f;
	my $pid = child_start($out, "$out.err", $node, "$dir/server.js", @args);
	my ($port) = wait_until(20, sub { slurp($out) =~ /^port \d+$/m })
		? slurp($out) =~ /^port (\d+)$/m : die 'node: ' . slurp("$out.err");
	return { pid => $pid, out => $out, port => $port };
}

sub http2_end
{
	my ($s) = @_;
	child_stop($s->{pid}, 'TERM');
	return split /\n/, slurp($s->{out});
}

sub http2_is_right
{
	my ($run, $name, $want, @log) = @_;

	is($run->{result}{completed}, $want, "$name: all succeed") or diag($run->{err}, explain(
		$run->{own}{failures}));
	is($run->{result}{total_output_tokens}, $want * 8, "$name: tokens");
	is($run->{result}{generated_texts}[0], ' w0 w1 w2 w3 w4 w5 w6 w7', "$name: the text");
	is($run->{own}{http_version}, '2', "$name: the result names HTTP/2");
	like($run->{out}, qr/^HTTP version: +2 *$/m, "$name: the report too");
	is(scalar(grep { m{^POST /v1/completions r\d+$} } @log), $want, "$name: what the server saw");
}

SKIP: {
	skip 'node is needed to speak HTTP/2', 11 unless $node;
	my $server = http2_start();
	my $run = serve("http://127.0.0.1:$server->{port}", '--num-prompts', '12', '--http-version', '2');
	my @log = http2_end($server);

	http2_is_right($run, 'HTTP/2 without TLS', 12, @log);
	# libcurl 7 needs one for each.
	ok(scalar(grep { $_ == $run->{own}{new_connections} } 1, 12),
		'HTTP/2 without TLS: one connection carries them');
	# A first event that is read late shortens the gaps after it, never the whole.
	my ($itl, $ttft) = @{ $run->{result} }{qw(itls ttfts)};
	is_deeply([grep { $_ < 0.020 || $_ > 5 } map { my $sum = $ttft->[$_]; $sum += $_ for @{ $itl->[$_] };
		$sum } 0 .. 11], [], 'HTTP/2 without TLS: answers take as long as the server did');
	my @spans = sort { $a <=> $b } map { my $sum = 0; $sum += $_ for @$_; $sum }
		@{ $run->{result}{itls} };
	ok($spans[6] >= 0.020 && $spans[-1] < 5, 'HTTP/2 without TLS: gaps are those of the server')
		or diag("gaps of each request: @spans");
	$server = http2_start('', '', 'reset');
	$run = serve("http://127.0.0.1:$server->{port}", '--num-prompts', '3', '--http-version', '2');
	http2_end($server);
	is_deeply(failures($run), { reset => 3 }, 'HTTP/2: streams that are reset');
	my $sim = sim(@pace);
	$run = serve($sim, '--num-prompts', '2', '--http-version', '2');
	is((keys %{ failures($run) })[0] ? 1 : 0, 1, 'HTTP/2 to a server that has only 1.1: fails');
}
SKIP: {
	my ($cert, $key) = certificate("$dir");

	skip 'node and openssl are needed for HTTP/2 by TLS', 9 unless $node && $cert;
	my $server = http2_start($cert, $key);
	my $run = serve("https://127.0.0.1:$server->{port}", '--num-prompts', '10', '--threads', '2',
		'--http-version', '2', '--cacert', $cert);
	my @log = http2_end($server);

	http2_is_right($run, 'HTTP/2 by TLS', 10, @log);
	cmp_ok($run->{own}{new_connections}, '<=', 2, 'HTTP/2 by TLS: one connection a thread');
	my $sim = sim(@pace, '--ssl-certfile', $cert, '--ssl-keyfile', $key);
	$run = serve($sim, '--num-prompts', '2', '--http-version', '2', '--cacert', $cert);
	is($run->{result}{completed}, 2, 'a server that has only 1.1, by TLS: that is spoken');
	is($run->{own}{http_version}, '1.1', 'and named');
}

done_testing;
