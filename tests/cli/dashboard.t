#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `profllm dashboard` as a server: what may ask, how it answers, uploads and jobs, its end. What the
# routes over the data answer is in api.t, what attackers send in dashboard-hostile.t.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep time);

# raw(dashboard, text): everything that comes back for what is sent as it is, to the connection's end.
sub raw {
	my ($d, $text) = @_;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) or die "$!";
	my $answer = '';

	print $s $text;
	$s->flush;
	1 while sysread $s, $answer, 65536, length $answer;
	return $answer;
}

sub get { my ($d, $path, @headers) = @_; return raw($d, join "\r\n", "GET $path HTTP/1.1", @headers,
	'Connection: close', '', '') }

# A result that is not another one.
my $runs = 0;
sub result {
	my (%more) = @_;
	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
		request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
		total_output_tokens => 100, request_throughput => 5 + ++$runs, output_throughput => 50,
		mean_ttft_ms => 3, median_ttft_ms => 3, p99_ttft_ms => 4, %more });
}

# ---- what is refused before it begins ----

check_run('the network needs a token', run(args => ['dashboard', '--listen', '0.0.0.0:0', '--store',
	'sqlite:x.db']), { status => 2,
	err => 'profllm dashboard: --listen 0.0.0.0:0: other machines can reach this address, so '
		. '--auth-token-file is needed', gone => ['x.db'] });
check_run('so does every address', run(args => ['dashboard', '--listen', '[::]:0']), { status => 2,
	err => 'profllm dashboard: --listen [[]::[]]:0: other machines*' =~ s/\[\[\]/[/r =~ s/\[\]\]/]/r });
check_run('an address has a port', run(args => ['dashboard', '--listen', 'localhost']), { status => 2,
	err => 'profllm dashboard: --listen localhost: expected HOST:PORT*' });
spew('short', "bob secret\n");
check_run('a token is long', run(args => ['dashboard', '--auth-token-file', 'short']), { status => 2,
	err => 'profllm dashboard: --auth-token-file: short: line 1: expected a token of at least 16*' });
check_run('the log can be written', run(args => ['dashboard', '--listen', '127.0.0.1:0', '--log',
	'no/such/log']), { status => 2, err => 'profllm dashboard: --log: cannot write no/such/log: *' });

# ---- how it answers ----

my $d = start_dashboard('--log', 'access.jsonl', '--host-name', 'lab.example');
my $r = ask($d, 'GET', '/api/health');
is($r->{status}, 200, 'it is well');
is_deeply([@{$r->{json}}{qw(status store runs)}], ['ok', $ENV{TEST_STORE} // 'sqlite', 0], 'and says so');
ok(exists $r->{json}{data_version} && $r->{json}{query_ms} > 0, 'with version and time');
like($r->{headers}{'content-security-policy'}, qr/default-src 'self'.*frame-ancestors 'none'/, 'a policy');
is_deeply([@{$r->{headers}}{qw(x-content-type-options referrer-policy x-frame-options)}],
	[qw(nosniff no-referrer DENY)], 'and its companions');
ok(!exists $r->{headers}{'access-control-allow-origin'}, 'no other origin reads answers');

$r = ask($d, 'GET', '/api/nothing');
is($r->{status}, 404, 'what does not exist');
is($r->{headers}{'content-type'}, 'application/problem+json', 'is told as a problem');
is_deeply([@{$r->{json}}{qw(title status)}], ['Not Found', 404], 'of the known form');
$r = ask($d, 'DELETE', '/api/health');
is($r->{status}, 405, 'another method');
is($r->{headers}{allow}, 'GET, HEAD', 'than those that are');
is(ask($d, 'POST', '/runs', '{}')->{status}, 405, 'pages are only read');
my $page = ask($d, 'GET', '/');
is($page->{status}, 200, 'the page');
like($page->{headers}{'content-type'}, qr(^text/html), 'is HTML');
is(ask($d, 'GET', '/runs')->{content}, $page->{content}, 'a view is the same page');
is(ask($d, 'GET', '/charts/a%20b')->{status}, 200, 'however deep');
is(ask($d, 'GET', '/no-such.js')->{status}, 404, 'a file is not');
my ($asset) = $page->{content} =~ m{(/assets/[^"]+\.js)};
unlike(get($d, '/', 'Host: localhost', 'Accept-Encoding: gzip'), qr/Vary.*Vary/s, 'each header is sent once');
SKIP: {
	skip 'this build has no pages', 3 unless $asset;
	$r = ask($d, 'GET', $asset);
	like($r->{headers}{'cache-control'}, qr/immutable/, 'a file with its hash is kept for good');
	is(ask($d, 'GET', $asset, undef, 'If-None-Match' => $r->{headers}{etag})->{status}, 304, 'once');
	is(ask($d, 'GET', $asset, undef, 'Accept-Encoding' => 'gzip')->{headers}{'content-encoding'},
		'gzip', 'and comes packed');
}
# Two requests on one connection: a page, a mistake.
is(scalar(() = raw($d, "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n"
	. "GET /api/none HTTP/1.1\r\nHost: localhost\r\n\r\n"
	. "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") =~ /HTTP\/1.1 \d/g), 3,
	'connections are kept');
my $head = raw($d, "HEAD /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
like($head, qr/^HTTP\/1.1 200 .*Content-Length: [1-9].*\r\n\r\n\z/s, 'HEAD has everything but the body');
$head = raw($d, "HEAD /api/export/csv HTTP/1.1\r\nHost: localhost\r\n\r\n");
like($head, qr/^HTTP\/1.\d 200 .*runs\.csv.*\r\n\r\n\z/s, 'nor has what would come by and by');

# ---- whose question it is ----

like(get($d, '/api/health', "Host: $_"), qr/^HTTP\/1.1 200/, "Host $_")
	for "127.0.0.1:$d->{port}", 'localhost', 'lab.example', 'LAB.example:1';
like(get($d, '/api/health', "Host: $_"), qr/^HTTP\/1.1 421 /, "Host $_ is refused")
	for 'evil.example', 'localhost.evil.example', 'lab.example:port', '[::1', '', '[::1]:80', '10.1.2.3';
is(ask($d, 'POST', '/api/upload/raw', result(), Origin => $_->[0])->{status}, $_->[1],
	"a change by a page of $_->[0]") for ["http://evil.example", 403], ['null', 403],
	["http://127.0.0.1:1", 403], [$d->{url}, 201];
is(ask($d, 'GET', '/api/health', undef, Origin => 'http://evil.example')->{status}, 200,
	'reading is the browser\'s to refuse');

# ---- one upload ----

my $one = result();
$r = ask($d, 'POST', '/api/upload/raw?name=a%20b.json', $one);
is($r->{status}, 201, 'a result is taken');
is($r->{json}{results}[0]{outcome}, 'new', 'as a new one');
my $version = $r->{json}{data_version};
is(ask($d, 'GET', '/api/health')->{json}{runs}, 2, 'and is seen at once');
$r = ask($d, 'POST', '/api/upload/raw', $one);
is_deeply([$r->{status}, $r->{json}{results}[0]{outcome}], [200, 'duplicate'], 'twice is once');
is($r->{json}{data_version}, $version, 'which changes nothing');
$r = ask($d, 'POST', '/api/upload/raw', '{"a": ');
is($r->{status}, 422, 'what cannot be read');
like($r->{json}{detail}, qr/\S/, 'has a reason');
is(ask($d, 'POST', '/api/upload/raw', '')->{status}, 400, 'nothing is no result');

$r = ask($d, 'POST', '/api/upload/json', form(['file', 'r.json', result()],
	['trace', '../../etc/trace.json.gz', 'TRACE']));
is($r->{status}, 201, 'a form with a trace');
my $traces = ask($d, 'GET', '/api/traces')->{json};
is($traces->{items}[0]{bytes}, 5, 'whose bytes are kept');
$r = ask($d, 'POST', "/api/data/experiments/$traces->{items}[0]{run}/traces",
	form(['trace', 't2', 'TRACES']));
is($r->{status}, 201, 'one that comes later');
is($r->{json}{ids}[0], $traces->{items}[0]{id} + 1, 'is another one of that run');
is(ask($d, 'POST', '/api/upload/json', form(['trace', 't', 'T']))->{status}, 400, 'a form without a file');
is(ask($d, 'POST', '/api/upload/json', form(['fiel', 't', 'T'], ['file', 'r', result()]))->{status}, 400,
	'a part of another name');
is(ask($d, 'GET', '/api/health')->{json}{runs}, 3, 'of which nothing was kept');
$r = ask($d, 'POST', '/api/upload/json', form(['file', 'a', result()], ['file', 'b', result()]));
is($r->{status}, 400, 'two files where one is due');
like($r->{json}{detail}, qr{2 parts called file}, 'none of which is lost in silence');
is(ask($d, 'POST', '/api/upload/batch', result())->{status}, 415, 'JSON where a form is due');
is(ask($d, 'POST', '/api/upload/raw', form(['file', 'r', result()]))->{status}, 415, 'and the reverse');

# ---- tags and packing ----

$r = ask($d, 'GET', '/api/filters/options');
my $tag = $r->{headers}{etag};
like($tag, qr/^W\/"\d+-[0-9a-f]+"$/, 'an answer that only reads has a tag');
is(ask($d, 'GET', '/api/filters/options', undef, 'If-None-Match' => "\"x\", $tag")->{status}, 304,
	'and is not sent twice');
is(ask($d, 'GET', '/api/filters/options?facet_values=3', undef, 'If-None-Match' => $tag)->{status}, 200,
	'another question has another');
ask($d, 'POST', '/api/upload/raw', result());
is(ask($d, 'GET', '/api/filters/options', undef, 'If-None-Match' => $tag)->{status}, 200,
	'and so has other data');
$r = ask($d, 'GET', '/api/filters/options', undef, 'Accept-Encoding' => 'gzip');
is($r->{headers}{'content-encoding'}, 'gzip', 'packed when asked');
SKIP: {
	eval { require IO::Uncompress::Gunzip } or skip 'no gunzip', 1;
	IO::Uncompress::Gunzip::gunzip(\$r->{content} => \my $plain);
	is_deeply(json_of($plain)->{items}, ask($d, 'GET', '/api/filters/options')->{json}{items},
		'is what it was');
}
ok(!ask($d, 'GET', '/api/filters/options', undef, 'Accept-Encoding' => 'gzip;q=0')
	->{headers}{'content-encoding'}, 'and not when refused');

# ---- many files ----

my @files = map { ['file', "f$_.json", $_ % 10 ? result() : $_ % 20 ? 'not JSON' : $one] } 1 .. 40;
$r = ask($d, 'POST', '/api/upload/batch', form(@files));
is($r->{status}, 202, 'a batch is acknowledged');
my $job = $r->{json}{job_id};
my $events = ask($d, 'GET', "/api/jobs/$job/events");
is($events->{headers}{'content-type'}, 'text/event-stream', 'its events');
my @data = map { json_of($_) } $events->{content} =~ /^event: progress\ndata: (.*)$/mg;
is(scalar(map { @{$_->{files}} } @data), 40, 'tell of each file once');
like($events->{content}, qr/\nevent: end\ndata: .*"done"/, 'and of the end');
$r = ask($d, 'GET', "/api/upload/status/$job")->{json};
is_deeply($r->{counts}, { new => 36, duplicate => 2, conflict => 0, invalid => 2 }, 'with every outcome');
is_deeply([map { $_->{name} } @{$r->{files}}], [map { $_->[1] } @files], 'in their order');
ok(!(grep { !defined $_->{reason} } grep { $_->{outcome} eq 'invalid' } @{$r->{files}}), 'with reasons');
is(ask($d, 'GET', '/api/jobs')->{json}{items}[0]{job_id}, $job, 'it is in the list');
is(ask($d, 'GET', "/api/jobs/$job/log")->{status}, 404, 'it has no log');
is(ask($d, 'POST', "/api/jobs/$job/cancel")->{status}, 409, 'and cannot be stopped any more');
is(ask($d, 'GET', '/api/upload/status/0123456789abcdef')->{status}, 404, 'another job there is not');

# ---- figures and log ----

my $metrics;
my $done = qr/^profllm_jobs\{kind="upload",state="done"\} 1$/m;
# Figures of the store are as of its last query.
wait_for('the job to be counted', sub { ($metrics = ask($d, 'GET', '/metrics')->{content}) =~ $done });
like($metrics, qr/^profllm_http_requests_total\{method="POST",route="\S+upload\/batch",status="202"\} 1$/m,
	'requests are counted by route and status');
like($metrics, qr/^profllm_http_request_duration_seconds_count\{method="GET",route="\/api\/health"\} [1-9]/m,
	'and timed');
like($metrics, qr/^profllm_runs 40$/m, 'runs');
like($metrics, $done, 'and jobs');
rename 'access.jsonl', 'access.1';
kill 'HUP', $d->{pid};
wait_for('a new log', sub { -e 'access.jsonl' });
ask($d, 'GET', '/api/jobs?limit=77', undef, Authorization => 'Bearer very-secret-token');
# A line is written after its answer: that of an earlier request may come first.
wait_for('a line', sub { (slurp('access.jsonl') // '') =~ m{/api/jobs.*\n} });
my $line = json_of((slurp('access.jsonl') =~ m{^(.*"/api/jobs".*)$}m)[0]);
is_deeply([@$line{qw(level method path status)}], ['info', 'GET', '/api/jobs', 200], 'a line of the log');
unlike(slurp('access.jsonl'), qr/secret|limit|77"/, 'has no secrets');
is(scalar(grep { !eval { json_of($_) } } split /\n/, slurp('access.1')), 0, 'all lines are JSON');

# ---- its end ----

my $slow = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port});
my $late = result();
print $slow "POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nContent-Length: " . length($late)
	. "\r\n\r\n" . substr($late, 0, 20);
$slow->flush;
wait_for('the request', sub { ask($d, 'GET', '/metrics')->{content} =~ /_in_flight 2$/m });
kill 'TERM', $d->{pid};
wait_for('the listener\'s end', sub {
	!IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) });
print $slow substr $late, 20;
$slow->flush;
like(join('', <$slow>), qr/^HTTP\/1.1 201 .*"outcome":"new"/s, 'what was in flight is finished');
waitpid $d->{pid}, 0;
is($? >> 8, 0, 'and it ends well');
my $again = start_dashboard('--store', $d->{store}, '--read-only');
is(ask($again, 'GET', '/api/health')->{json}{runs}, 41, 'everything is there');
is(ask($again, 'POST', '/api/upload/raw', result())->{status}, 403, 'one that only reads takes nothing');
is(ask($again, 'POST', '/api/filters/apply', {})->{status}, 200, 'but answers questions');
is(ask($again, 'POST', '/api/launch', { config => 'a: b' })->{status}, 403, 'and starts nothing');
is(ask($again, 'POST', '/api/launch/check', { config => 'import: /etc/hostname' })->{status}, 403,
	'nor reads what a configuration names');
is($again->stop, 0, 'and ends well, too');

# ---- tokens ----

my $token = 'correct-horse-battery';
spew('tokens', "# who may ask\nalice $token\nanother-token-of-16\n");
$d = start_dashboard('--auth-token-file', 'tokens', '--log', 'token.jsonl');
is(ask($d, 'GET', '/api/health')->{json}{needs_token}, JSON::PP::true(), 'health needs no token');
is(ask($d, 'GET', '/runs')->{status}, 200, 'nor does the page');
$r = ask($d, 'GET', '/api/jobs');
is_deeply([$r->{status}, $r->{headers}{'www-authenticate'}], [401, 'Bearer'], 'everything else does');
is(ask($d, 'GET', '/metrics')->{status}, 401, 'figures, too');
is(ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer $token")->{status}, 200, 'a token');
my $began = time;
is(ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer ${token}x")->{status}, 401, 'a wrong one');
ok(time - $began > 0.9, 'which costs a second');
is(ask($d, 'POST', '/api/login', { token => 'wrong' })->{status}, 401, 'logging in with a wrong one');
$r = ask($d, 'POST', '/api/login', { token => $token });
is($r->{status}, 200, 'and with a right one');
like($r->{headers}{'set-cookie'},
	qr/^profllm_token_$d->{port}=\Q$token\E; Path=\/; .*HttpOnly; SameSite=Strict/,
	'gives a cookie');
is(ask($d, 'GET', '/api/jobs', undef, Cookie => "a=b; profllm_token_$d->{port}=$token")
	->{status}, 200, 'that does');
is(ask($d, 'POST', '/api/upload/raw', result(), Cookie => "profllm_token_$d->{port}=$token",
	Origin => 'http://evil.example')->{status}, 403, 'but not for other pages');
$d->stop;
like(slurp('token.jsonl'), qr/"path": "\/api\/jobs", "status": 200.*"who": "alice"/, 'who asks is noted');
unlike(slurp('token.jsonl'), qr/horse/, 'and no token');

done_testing();
