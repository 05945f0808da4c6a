#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Access to a dashboard: the token that it makes, the file in which the command line finds it, the
# cookie of a browser, roles, names of hosts, Unix sockets; and that another user of the machine has
# none.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(abs_path);
use Dash;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(_exit);
use Test::More;

my $scratch = abs_path('.');
my %own = (XDG_STATE_HOME => "$scratch/state"); # where start_dashboard has tokens kept
my $machine = (POSIX::uname())[1];
my $launch = "name: x\nserver: {command: [sh, -c, 'id >$scratch/pwned; exit 1'], model: m}\n"
	. "benchmark: {dataset_name: random, tokenizer: sim, num_prompts: 1}\n";

# talk(socket, METHOD, path, headers...): status, head and body of the answer.
sub talk {
	my ($s, $method, $path, @headers) = @_;
	my $answer = '';

	print $s join "\r\n", "$method $path HTTP/1.1", @headers, 'Connection: close', '', '';
	$s->flush;
	1 while sysread $s, $answer, 65536, length $answer;
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;
	return { status => ($head // '') =~ m{^HTTP/1.1 (\d+)} ? $1 : 0, head => $head // '',
		body => $body // '' };
}

sub get {
	my ($d, $path, @headers) = @_;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) or die "$!";
	return talk($s, 'GET', $path, @headers);
}

sub get_at {
	my ($path, @rest) = @_;
	my $s = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!";
	return talk($s, 'GET', @rest);
}

my $runs = 0;
sub result {
	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
		request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
		total_output_tokens => 100, request_throughput => 5 + ++$runs, output_throughput => 50,
		mean_ttft_ms => 3, median_ttft_ms => 3, p99_ttft_ms => 4 });
}

# Where something is refused: [METHOD, path, body].
my @asked = (['GET', '/api/filters/options'], ['GET', '/api/jobs'], ['GET', '/metrics'],
	['GET', '/api/data/summary'], ['POST', '/api/filters/apply', '{}'],
	['POST', '/api/upload/raw', result()],
	['POST', '/api/launch/check', json_text({ config => $launch })],
	['POST', '/api/launch', json_text({ config => $launch })]);

# as_nobody(sub): what the sub returns, a line, when another user of this machine runs it.
sub as_nobody {
	my ($do) = @_;
	my (undef, undef, $uid, $gid) = getpwnam 'nobody';

	pipe my $from, my $to;
	my $pid = fork;
	if (!$pid) {
		close $from;
		chdir '/';
		POSIX::setgid($gid);
		$( = $gid;
		$) = "$gid $gid";
		POSIX::setuid($uid);
		print $to $> == $uid && $< == $uid ? $do->() : 'still root';
		close $to;
		_exit(0);
	}
	close $to;
	my $said = join '', <$from>;
	waitpid $pid, 0;
	return $said;
}

sub mode { return sprintf '%o', (lstat $_[0])[2] & 07777 }

# ---- the token that it makes ----

my $d = start_dashboard(MADE_TOKEN, '--log', 'access.jsonl');
my @bearer = (Authorization => "Bearer $d->{token}");
my $file = "state/profllm/dashboards/$machine/127.0.0.1:$d->{port}";
like(slurp($d->{err}), qr{^\Qprofllm dashboard: $d->{url}\E/\?token=[0-9a-f]{32,}\ \(
	.*open\ this\ URL\ in\ a\ browser;\ the\ token\ in\ it\ is\ a\ password\)\n\z}x,
	'one line says how one gets in');
is(slurp($file), "$d->{token}\n", 'the token is kept for the command line');
is(mode($file), '600', 'in a file that others cannot read');
is(mode("state/profllm/dashboards/$machine"), '700', 'in a folder of the same kind');
is(ask($d, @$_)->{status}, 401, "$_->[0] $_->[1] needs it") for @asked;
my $r = ask($d, 'GET', '/api/jobs');
like($r->{json}{detail}, qr/role read; open the URL that the dashboard printed/, 'and says what to do');
$r = ask($d, 'GET', '/api/health')->{json};
is_deeply([@$r{qw(needs_token role can_launch can_change)}],
	[JSON::PP::true(), 'none', JSON::PP::false(), JSON::PP::false()], 'what a visitor may do is told');
$r = ask($d, 'GET', '/api/health', undef, @bearer)->{json};
is_deeply([@$r{qw(needs_token role can_launch can_change)}],
	[JSON::PP::true(), 'launch', JSON::PP::true(), JSON::PP::true()], 'so is what its owner may');
is(ask($d, 'GET', '/api/jobs', undef, @bearer)->{status}, 200, 'with it one may read');
is(ask($d, 'POST', '/api/upload/raw', result(), @bearer)->{status}, 201, 'and upload');

SKIP: {
	skip 'only root can be another user', 10 if $> != 0 || !defined getpwnam 'nobody';
	chmod 0755, $scratch; # so that nothing but the file's own mode keeps others out
	chmod 0755, $_ for 'state', 'state/profllm';
	for my $question (@asked) {
		is(as_nobody(sub { ask($d, @$question)->{status} }), 401,
			"another user is refused $question->[0] $question->[1]");
	}
	is(as_nobody(sub { open my $f, '<', "$scratch/$file" or return "$!"; return <$f> }),
		'Permission denied', 'and cannot read the token');
	chmod 0755, "state/profllm/dashboards", "state/profllm/dashboards/$machine";
	is(as_nobody(sub { open my $f, '<', "$scratch/$file" or return "$!"; return <$f> }),
		'Permission denied', 'even where folders were opened');
}
ok(!-e 'pwned', 'nothing was run');

# ---- the command line ----

spew('r.json', result());
spew('wrong', "0123456789abcdef0123456789abcdef\n");
for my $url ($d->{url}, "$d->{url}/", "http://localhost:$d->{port}") {
	spew('r.json', result());
	check_run("ingest --server $url", run(args => ['ingest', 'r.json', '--server', $url], env => \%own),
		{ status => 0, out => ['new *'] });
}
check_run('a token file takes precedence', run(args => ['ingest', 'r.json', '--server', $d->{url},
	'--token-file', 'wrong'], env => \%own), { status => 1, err => "*answered 401*not one of this*" });
check_run('another user has no such file', run(args => ['ingest', 'r.json', '--server', $d->{url}],
	env => { XDG_STATE_HOME => "$scratch/elsewhere" }), { status => 1, err => '*answered 401*' });
# It goes to no proxy and to no other port.
{
	my $log = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1', LocalPort => 0) or die;
	my $other = 'http://127.0.0.1:' . $log->sockport;
	my $pid = fork;

	if (!$pid) {
		open my $f, '>', 'other.heads';
		$f->autoflush;
		while (my $c = $log->accept) {
			while (defined(my $line = <$c>)) {
				print $f $line;
				last if $line eq "\r\n";
			}
			print $c "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
		}
		_exit(0);
	}
	spew('r.json', result());
	check_run('with a proxy in the environment', run(env => { %own, http_proxy => $other },
		args => ['ingest', 'r.json', '--server', $d->{url}]), { status => 0, out => ['new *'] });
	check_run('to another port', run(args => ['ingest', 'r.json', '--server', $other], env => \%own),
		{ status => 1, err => '*answered 503*' });
	kill 'KILL', $pid;
	waitpid $pid, 0;
	my $heads = slurp('other.heads');
	is((() = $heads =~ m{^POST /api}mg), 1, 'the other server was asked once');
	unlike($heads, qr/authorization|\Q$d->{token}\E/i, 'and told no token');
}
spew('quick.yaml', "name: quick\nserver: {command: sim, model: m, gpu: h100-80gb}\n"
	. "benchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 16, random_output_len: 4}\n");
my $sent = run(args => ['run', '--config', 'quick.yaml', '--output', 'q.json', '--progress', 'none',
	'--upload', $d->{url}], env => \%own);
is($sent->{status}, 0, 'run --upload') or diag($sent->{err});
like($sent->{out} . $sent->{err}, qr/^Uploaded quick to/m, 'says no token either');
like(run(args => ['run', '--config', 'quick.yaml', '--output', 'q2.json', '--check', '--upload',
	$d->{url}], env => \%own)->{out}, qr/pass +upload +\S+ answers/, 'run --check finds it');

# ---- a browser ----

my @host = ("Host: 127.0.0.1:$d->{port}");
$r = get($d, "/runs?sel=1%2C2&token=$d->{token}&f=a", @host);
is($r->{status}, 303, 'the printed URL leads on');
like($r->{head}, qr{^Location: /runs\?sel=1%2C2&f=a\r?$}m, 'to the page without the token');
like($r->{head}, qr{^Set-Cookie:\ profllm_token_$d->{port}=\Q$d->{token}\E;
	\ Path=/;\ Max-Age=\d+;\ HttpOnly;\ SameSite=Strict\r?$}mx, 'with a cookie');
like($r->{head}, qr/^Cache-Control: no-store\r?$/m, 'which is not kept by caches');
like($r->{head}, qr/^Referrer-Policy: no-referrer\r?$/m, 'nor told to others');
like(get($d, "/?token=$d->{token}", @host)->{head}, qr{^Location: /\r?$}m, 'alone, it leaves nothing');
my ($cookie) = $r->{head} =~ /^Set-Cookie: ([^;]+)/m;
is(get($d, '/api/jobs', @host, "Cookie: $cookie")->{status}, 200, 'the cookie does');
is(get($d, '/api/jobs', 'Host: localhost:1', "Cookie: $cookie")->{status}, 401,
	'but not that of another port, where another dashboard may be');
$r = get($d, '/?token=00000000000000000000000000000000', @host);
is($r->{status}, 303, 'a wrong token is taken away, too');
unlike($r->{head}, qr/Set-Cookie/, 'for no cookie');
unlike(get($d, "//evil.example/?token=$d->{token}", @host)->{head}, qr/^Location/m,
	'nobody is led elsewhere');
$r = get($d, '/api/jobs', @host, "Cookie: profllm_token_$d->{port}=0123456789abcdef0123456789abcdef");
is($r->{status}, 401, 'the cookie of an earlier start');
like($r->{head}, qr/^Set-Cookie: profllm_token_$d->{port}=; Path=\/; Max-Age=0/m, 'is taken back');
$r = ask($d, 'POST', '/api/login', { token => $d->{token} },
	Cookie => "profllm_token_$d->{port}=0123456789abcdef0123456789abcdef");
is(ref $r->{headers}{'set-cookie'}, '', 'logging in sets one cookie');
like($r->{headers}{'set-cookie'}, qr/=\Q$d->{token}\E;/, 'the new one');
my $key = $d->{token};
is($d->stop, 0, 'it ends well');
unlike(slurp('access.jsonl'), qr/$key|token=/, 'the log has no token');
like(slurp('access.jsonl'), qr{"path": "/runs", "status": 303}, 'but the visit');
ok(!-e $file, 'the kept token is gone');

# ---- after a kill, and where another user has placed a link ----

$d = start_dashboard(MADE_TOKEN, '--store', $d->{store});
my $first = $d->{token};
$file = "state/profllm/dashboards/$machine/127.0.0.1:$d->{port}";
kill 'KILL', $d->{pid};
waitpid $d->{pid}, 0;
is(slurp($file), "$first\n", 'one that is killed leaves its token');
unlink $file;
spew('victim', 'untouched');
symlink "$scratch/victim", $file;
my $again = start_dashboard(MADE_TOKEN, '--store', $d->{store}, '--listen', "127.0.0.1:$d->{port}");
is(slurp('victim'), 'untouched', 'a link there is not followed');
ok(!-l $file && slurp($file) eq "$again->{token}\n", 'but replaced');
isnt($again->{token}, $first, 'the token is another one');
is(ask($again, 'GET', '/api/jobs', undef, Authorization => "Bearer $first")->{status}, 401,
	'and the old one is void');
$again->stop;
$d = start_dashboard(MADE_TOKEN, '--store', $d->{store});
$file = "state/profllm/dashboards/$machine/127.0.0.1:$d->{port}";
chmod 0644, $file;
check_run('a file that others can read', run(args => ['ingest', 'r.json', '--server', $d->{url}],
	env => \%own), { status => 1, err => '*expected a file of this user with mode 0600*' });
$d->stop;

rename 'state', 'state.kept';
spew('state', 'no folder');
$d = start_dashboard(MADE_TOKEN, '--store', $d->{store});
like(slurp($d->{err}),
	qr/^profllm dashboard: the token could not be saved for profllm ingest .*--token-file: \S/,
	'where it cannot be kept, that is said');
is(ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer $d->{token}")->{status}, 200, 'and it works');
$d->stop;
unlink 'state';
rename 'state.kept', 'state';

# ---- reading for everybody, everything for everybody ----

$d = start_dashboard('--open-read');
is(ask($d, @$_)->{status}, $_->[1] =~ /upload|launch/ ? 401 : 200, "--open-read: $_->[0] $_->[1]") for @asked;
$r = ask($d, 'GET', '/api/health')->{json};
is_deeply([@$r{qw(role can_change can_launch)}], ['read', JSON::PP::false(), JSON::PP::false()],
	'which is told');
is(ask($d, 'POST', '/api/upload/raw', result(), Authorization => "Bearer $d->{token}")->{status}, 201,
	'with the token it goes');
is(ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer 0123456789abcdef")->{status}, 401,
	'a wrong one is told');
is(get($d, '/api/jobs', @host = ("Host: 127.0.0.1:$d->{port}"),
	"Cookie: profllm_token_$d->{port}=0123456789abcdef0123456789abcdef")->{status}, 200,
	'an old cookie keeps nobody from reading');
$d->stop;

$d = start_dashboard();
like(slurp($d->{err}), qr{^\Qprofllm dashboard: $d->{url}\E\ \([a-z]+,\ 0\ runs\)\n
	profllm\ dashboard:\ --no-auth:\ every\ user\ of\ this\ machine\ can\ run\ commands\ as\ you,
	\ and\ read\ and\ change\ this\ store\n\z}x,
	'--no-auth says what it means');
is(ask($d, 'GET', '/api/health')->{json}{role}, 'launch', 'everybody may do everything');
$d->stop;
for (['--no-launch', 'read and change this store'], ['--read-only', 'read this store']) {
	$again = start_dashboard('--store', $d->{store}, $_->[0]);
	like(slurp($again->{err}), qr/--no-auth: every user of this machine can $_->[1]\n/,
		"with $_->[0], too");
	$again->stop;
}
spew('tokens', "alice 0123456789abcdef-launch\n");
for (['--no-auth and --auth-token-file exclude each other*', '--no-auth', '--auth-token-file', 'tokens'],
	['--no-auth and --open-read exclude each other*', '--no-auth', '--open-read'],
	['--listen 0.0.0.0:0: other machines can reach this address, so --auth-token-file is needed',
		'--listen', '0.0.0.0:0', '--no-auth'],
	['--listen 0.0.0.0:0: other machines*', '--listen', '0.0.0.0:0', '--open-read'],
	['--port-file: a Unix socket (--listen unix:s) has no port', qw(--listen unix:s --port-file p)]) {
	my ($why, @args) = @$_;
	check_run("@args", run(args => ['dashboard', '--store', 'sqlite:x.db', @args], env => \%own),
		{ status => 2, err => "profllm dashboard: $why", gone => ['x.db', 's'] });
}

# ---- roles ----

my %token = map { $_ => "0123456789abcdef-$_" } qw(read upload launch);
spew('tokens', join '', map { "$_-er $token{$_} $_\n" } sort keys %token);
$d = start_dashboard('--auth-token-file', 'tokens', '--jobs-dir', 'jobs');
my @roles = qw(none read upload launch);
for my $case (['read', 'GET', '/api/filters/options'], ['read', 'POST', '/api/filters/apply', '{}'],
	['read', 'GET', '/api/jobs'], ['read', 'GET', '/metrics'], ['upload', 'POST', '/api/upload/raw', '{'],
	['upload', 'PUT', '/api/data/experiments/1/exclusion', '{}'],
	['upload', 'POST', '/api/filters/presets', '{}'],
	['upload', 'POST', '/api/data/bulk', json_text({ action => 'exclude', text => 'x', ids => [1] })],
	['launch', 'POST', '/api/launch/check', json_text({ config => 'a: b' })],
	['launch', 'POST', '/api/launch', json_text({ config => 'a: b' })],
	['launch', 'POST', '/api/jobs/0123456789abcdef/cancel']) {
	my ($needed, $method, $path, $body) = @$case;
	my $enough = 0;

	for my $role (qw(read upload launch)) {
		$enough ||= $role eq $needed;
		$r = ask($d, $method, $path, $body, Authorization => "Bearer $token{$role}");
		if ($enough) {
			unlike($r->{status}, qr/^40[13]$/, "$role may $method $path");
		} else {
			is($r->{status}, 403, "$role may not $method $path");
			is($r->{json}{detail}, "this needs a token of role $needed; "
				. "that of $role-er has role $role", 'which says what is missing');
		}
	}
}
for my $role (qw(upload launch)) {
	$r = ask($d, 'POST', '/api/data/bulk', json_text({ action => 'delete', ids => [999] }),
		Authorization => "Bearer $token{$role}");
	is($r->{status}, $role eq 'launch' ? 200 : 403, "whether $role may delete runs");
	is($r->{json}{detail}, 'deleting runs needs a token of role launch; that of upload-er has role '
		. 'upload; exclude the runs instead', 'which says what one may do') if $role eq 'upload';
}
for my $role (qw(read upload launch)) {
	$r = ask($d, 'GET', '/api/health', undef, Authorization => "Bearer $token{$role}")->{json};
	is_deeply([$r->{role}, !!$r->{can_change}, !!$r->{can_launch}],
		[$role, $role ne 'read', $role eq 'launch'], "the page of $role learns what it may offer");
}
$d->stop;

# ---- names ----

$d = start_dashboard('--host-name', 'lab.example', '--host-name', '10.1.2.3');
is(get($d, '/api/health', "Host: $_")->{status}, 200, "Host $_") for "127.0.0.1:$d->{port}", 'localhost',
	'LAB.example:1', '10.1.2.3';
for ('1.2.3.4', '127.0.0.2', '[::1]:80', 'evil.example', '') {
	$r = get($d, '/api/health', "Host: $_");
	is($r->{status}, 421, "Host $_ is refused");
	like($r->{body}, qr/profllm dashboard --host-name NAME adds it/, 'which says what would add it');
}
$d->stop;
# The address that a request was sent to, where the server listens at all of them.
$d = start_dashboard('--auth-token-file', 'tokens', '--listen', '0.0.0.0:0');
is(get($d, '/api/health', "Host: $_->[0]")->{status}, $_->[1], "at every address: Host $_->[0]")
	for ['127.0.0.1', 200], ['localhost', 200], ['0.0.0.0', 421], ['127.0.0.2', 421], ['10.9.8.7', 421];
is(do {
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.2', PeerPort => $d->{port}) or die "$!";
	talk($s, 'GET', '/api/health', 'Host: 127.0.0.2')->{status};
}, 200, 'each connection has its own');
$d->stop;

# ---- a Unix socket ----

my $socket = "$scratch/dash.sock";
$d = start_dashboard(MADE_TOKEN, '--listen', "unix:$socket", '--log', 'unix.jsonl');
ok(-S $socket, 'a socket');
is(mode($socket), '600', 'for its owner alone');
like(slurp($d->{err}),
	qr{^profllm dashboard: unix:\Q$socket\E \(.*open /\?token=[0-9a-f]+ there, .*password\)\n\z},
	'where it is');
is(get_at($socket, '/api/health', "Host: $_->[0]")->{status}, $_->[1], "Host $_->[0]")
	for ['localhost', 200], ['localhost:8080', 200], ['127.0.0.1', 421], ['evil.example', 421];
is(get_at($socket, '/api/jobs', 'Host: localhost')->{status}, 401, 'it needs the token, too');
is(get_at($socket, '/api/jobs', 'Host: localhost', "Authorization: Bearer $d->{token}")->{status}, 200,
	'with it one gets in');
for my $name ("unix:$socket", 'unix:dash.sock') {
	spew('r.json', result());
	check_run("ingest --server $name", run(args => ['ingest', 'r.json', '--server', $name], env => \%own),
		{ status => 0, out => ['new *'] });
}
my $over = run(args => ['run', '--config', 'quick.yaml', '--output', 'q3.json', '--progress', 'none',
	'--upload', 'unix:dash.sock'], env => \%own);
like($over->{out} . $over->{err}, qr/^Uploaded quick to unix:dash\.sock/m, 'run --upload')
	or diag($over->{err});
SKIP: {
	skip 'only root can be another user', 1 if $> != 0 || !defined getpwnam 'nobody';
	is(as_nobody(sub { IO::Socket::UNIX->new(Peer => $socket) ? 'connected' : "$!" }),
		'Permission denied', 'another user cannot connect');
}
check_run('a live one is not replaced', run(args => ['dashboard', '--store', 'sqlite:x.db', '--listen',
	"unix:$socket"], env => \%own), { status => 1, gone => ['x.db'],
	err => "profllm dashboard: --listen unix:$socket: another program listens there*" });
kill 'KILL', $d->{pid};
waitpid $d->{pid}, 0;
ok(-S $socket, 'one that is killed leaves it');
$d = start_dashboard('--listen', "unix:$socket", '--no-auth');
like(slurp($d->{err}), qr/--no-auth: every user who can open the socket can run commands as you/,
	'it is replaced');
is(get_at($socket, '/api/jobs', 'Host: localhost')->{status}, 200, 'and answers');
is($d->stop, 0, 'and ends well');
ok(!-e $socket, 'taking it along');
like(slurp('unix.jsonl'), qr{"client": "unix".*"path": "/api/health"}, 'the log says how it was asked');
spew('file', 'kept');
check_run('a file is not replaced', run(args => ['dashboard', '--store', 'sqlite:x.db', '--listen',
	'unix:file'], env => \%own), { status => 2, gone => ['x.db'], err => 'profllm dashboard: --listen '
	. 'unix:file: file already exists and is not a socket; choose another path' });
is(slurp('file'), 'kept', 'nor touched');

done_testing();
