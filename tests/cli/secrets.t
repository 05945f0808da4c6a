#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# secrets.t - a different secret in every place where a user can put one, every verb that could keep
# or show it, and then all that was written or printed searched for each of them.
#
# The server of this test writes down what it was sent, so a secret that did not arrive fails, too.
# suite: first
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use Dash;
use File::Find ();
use File::Temp ();
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $scratch = getcwd();
my $outside = File::Temp->newdir('secrets-XXXXXX', TMPDIR => 1); # what the test knows; not searched
my $seen = "$outside/seen";

# All that profllm may write to is searched afterwards.
$ENV{HOME} = "$scratch/own";
$ENV{"XDG_${_}_HOME"} = "$scratch/own/" . lc for qw(STATE CACHE DATA CONFIG);
$ENV{XDG_RUNTIME_DIR} = "$scratch/runtime";
$ENV{TMPDIR} = "$scratch/tmp";
$ENV{PROFLLM_LOCKS} = "$scratch/locks";
$ENV{PROFLLM_NVML} = '';
mkdir for 'own', 'runtime', 'tmp', 'user';
spew($seen, '');

# ---- what is planted ----

# Each is a word that nothing else writes; the control is one that may be shown.
my %secret;
my $control = 'zqControl7Shown';

sub secret {
	my ($place) = @_;
	return $secret{$place} //= sprintf 'zq%02dHidden%04xXyZ', 1 + keys %secret,
		unpack 'n', pack 'n', 40503 * (1 + keys %secret) & 0xffff;
}

# ---- a server that writes down what it gets ----

sub answer_to {
	my ($head, $body) = @_;
	my ($path) = $head =~ /^\S+ (\S+)/;

	if ($path =~ /refuse/) {
		my ($key) = $head =~ /^authorization: *(.*?)\r/mi;
		my $text = JSON::PP->new->encode({ error => { message => "bad key $key" } });
		return "HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: "
			. length($text) . "\r\n\r\n$text";
	}
	if ($head =~ /^POST/ && $path =~ /completions/) {
		my $event = 'data: {"choices":[{"index":0,"text":" a"}]}' . "\n\n";
		my $text = $event x 4 . 'data: {"choices":[],"usage":{"prompt_tokens":8,'
			. '"completion_tokens":4}}' . "\n\ndata: [DONE]\n\n";
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "
			. length($text) . "\r\n\r\n$text";
	}
	return "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n" if $path =~ /upload/;
	return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
}

my $listen = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', LocalPort => 0)
	or die "listen: $!\n";
my $port = $listen->sockport;
my $url = "http://127.0.0.1:$port";
my $server = fork;
if (!$server) {
	open STDOUT, '>', '/dev/null';
	open STDERR, '>', '/dev/null';
	$SIG{CHLD} = 'IGNORE';
	while (1) {
		my $c = $listen->accept or next;
		next if fork;
		while (1) {
			my $head = '';
			while (defined(my $line = <$c>)) {
				$head .= $line;
				last if $line =~ /^\r?\n/;
			}
			POSIX::_exit(0) if $head eq '';
			my ($length) = $head =~ /^content-length: *(\d+)/mi;
			read $c, my $body, $length if $length;
			open my $f, '>>', $seen;
			syswrite $f, $head . ($body // '') . "\n";
			close $f;
			print $c answer_to($head, $body);
			$c->flush;
		}
	}
}
END { kill 'KILL', $server if $server }

# ---- what was printed ----

my $printed = '';
my %status;

# keep(NAME, run...): a run whose output is searched at the end.
sub keep {
	my ($name, %o) = @_;
	my $r = run(seconds => 120, %o);

	$printed .= "== $name\n$r->{out}\n$r->{err}\n";
	$status{$name} = $r->{status};
	return $r;
}

sub is_status {
	my ($name, $status, %o) = @_;
	my $r = keep($name, %o);
	is($r->{status}, $status, "$name: exit status") or diag(substr $r->{err} . $r->{out}, 0, 1500);
	return $r;
}

sub was_sent {
	my (@places) = @_;
	my $all = slurp($seen);

	ok(index($all, secret($_)) >= 0, "the server was sent: $_") for @places;
}

# ---- bench serve ----

my @load = ('--model', 'sim', '--tokenizer', 'sim', qw(--num-prompts 3 --random-input-len 8
	--random-output-len 4 --temperature 0 --ready-check-timeout-sec 0));
my @serve = (qw(bench serve --base-url), $url, @load);

# A build with WEB=0 has no pages to search.
my $has_no_pages = run(args => [@serve, qw(--plot-timeline --save-result --result-filename none.json)])->{err}
	=~ /this build has no pages/;
my @page = $has_no_pages ? () : ('--plot-timeline');
is_status('bench serve', 0, args => [@serve, @page, '--header',
	'Authorization=Bearer ' . secret('header Authorization'), 'X-Team=' . secret('header X-Team'),
	'Content-Type=application/json', '--extra-body', JSON::PP->new->encode({
		api_key => secret('extra_body.api_key'), visible => $control,
		deep => [{ more => { client_secret => secret('extra_body at depth') } }] }),
	'--metadata', 'hub_token=' . secret('metadata'), "team=$control",
	'--label', 'first', qw(--save-result --save-detailed --result-filename first.json --record
	first.rec --output-json detailed.json)],
	env => { HF_TOKEN => secret('environment HF_TOKEN'), MY_PASSWORD => secret('environment') });
was_sent('header Authorization', 'header X-Team', 'extra_body.api_key', 'extra_body at depth');
like(slurp('first.json'), qr/$control/, 'a control: what is no secret is in the result');
like(slurp('first.rec'), qr/$control/, 'and in the record');
is(json_of(slurp('first.json'))->{profllm}{options}{extra_body}{api_key}, '***', 'how it is shown');

is_status('its dotted keys', 0, args => [@serve, '--extra-body.password',
	secret('--extra-body.password'), '--extra-body.visible', $control, qw(--compat stdout --save-result
	--result-filename second.json)],
	env => { OPENAI_API_KEY => secret('environment OPENAI_API_KEY') });
was_sent('--extra-body.password', 'environment OPENAI_API_KEY');
like($printed, qr/^Namespace\(.*'password': '\*\*\*', 'visible': '$control'/m,
	'what is no secret is printed');

keep('a refused key', args => ['bench', 'serve', '--base-url', $url, '--endpoint',
	'/v1/refuse/completions', @load, qw(--save-result --save-detailed --result-filename
	refused.json --record refused.rec)],
	env => { OPENAI_API_KEY => secret('a key that the server quotes') });
was_sent('a key that the server quotes');
like(slurp('refused.rec') // '', qr/bad key/, 'its answer is kept');

for my $how (['--dry-run'], ['--show-config'], ['--dump-workload', '-', '--dry-run']) {
	keep("bench serve @$how", args => [@serve, @$how, '--header',
		'Cookie=' . secret('header in a dry run'), '--extra-body',
		'{"auth_token": "' . secret('extra_body in a dry run') . '"}', '--metadata',
		'password=' . secret('metadata in a dry run')]);
}
is_status('bench score', 0, args => ['bench', 'score', 'first.rec']);
is_status('bench compare', 0, args => [qw(bench compare first.json second.json --output c.html)]);
keep('bench plot', args => [qw(bench plot first.json -o plots)]);

# ---- mistakes, with the secret in the value that is refused ----

my %mistake = (
	'--base-url with a password' => sub { ['--base-url', "http://u:$_[0]\@h"] },
	'--base-url with a token' => sub { ['--base-url', "https://$_[0]\@h/v1"] },
	'--base-url of another kind' => sub { ['--base-url', "ftp://u:$_[0]\@h/v1"] },
	'--proxy with a password' => sub { ['--base-url', $url, '--proxy', "http://u:$_[0]\@p:1"] },
	'--header without a sign' => sub { ['--base-url', $url, '--header', "Authorization Bearer $_[0]"] },
	'--header with a bad name' => sub { ['--base-url', $url, '--header', "X-Api Key=$_[0]"] },
	'--extra-body that is no JSON' => sub { ['--base-url', $url, '--extra-body',
		"{\"api_key\": \"$_[0]\""] },
	'--metadata without a sign' => sub { ['--base-url', $url, '--metadata', 'x', "api_key=$_[0]"] },
	'an option there is not' => sub { ['--base-url', $url, "--api-key=$_[0]"] },
	'an option there is not, apart' => sub { ['--base-url', $url, '--api-key', $_[0]] },
	'--dataset-path with a password' => sub { ['--base-url', $url, '--dataset-name', 'custom',
		'--dataset-path', "https://u:$_[0]\@127.0.0.1:1/x.jsonl"] },
	'--tokenizer with a token' => sub { ['--base-url', $url, '--tokenizer',
		"https://127.0.0.1:1/?token=$_[0]"] },
);
for my $name (sort keys %mistake) {
	my $r = keep("mistake: $name", args => ['bench', 'serve', @load,
		@{$mistake{$name}->(secret($name))}]);
	isnt($r->{status}, 0, "$name: refused");
}
keep('a proxy with a password', args => ['bench', 'serve', '--base-url', 'https://127.0.0.1:1', @load],
	env => { HTTPS_PROXY => 'http://u:' . secret('HTTPS_PROXY') . '@127.0.0.1:1' });
keep('a dataset of the hub', args => [qw(bench serve --base-url), $url, @load, qw(--dataset-name hf
	--dataset-path some/thing)], env => { HF_TOKEN => secret('a hub token'), HF_HUB_OFFLINE => 0,
	HF_ENDPOINT => 'http://127.0.0.1:1' });

# ---- engines without a server, sweeps ----

for my $verb (['throughput', qw(--dataset-name random --random-input-len 8 --random-output-len 4
		--num-prompts 2)], ['latency', qw(--input-len 8 --output-len 4 --batch-size 2 --num-iters 1
		--num-iters-warmup 1)], ['startup', qw(--num-iters-cold 1 --num-iters-warmup 0
		--num-iters-warm 1)]) {
	my ($name, @args) = @$verb;
	my @all = ('bench', $name, qw(--backend sim --model sim), @args, '--hf-token',
		secret("$name --hf-token"), '--output-json', "$name.json");

	is_status("bench $name", 0, args => \@all);
	is_status("bench $name --dry-run", 0, args => [@all, '--dry-run']);
}

spew('user/params.json', JSON::PP->new->encode([{ 'extra_body' =>
	{ access_token => secret('--bench-params') } }]));
my $sweep_port = free_port();
for my $how ('--dry-run', '-e') {
	my $r = keep("bench sweep $how", args => ['bench', 'sweep', 'serve', '--serve-cmd',
		"$program sim --port $sweep_port --api-key " . secret('--serve-cmd'),
		'--bench-cmd', "profllm bench serve --port $sweep_port @load --header Authorization=Bearer\\ "
			. secret('--serve-cmd') . ' X-Team=' . secret('--bench-cmd'),
		'--bench-params', 'user/params.json', qw(--num-runs 1 --server-ready-timeout 60
		--server-grace 2 --after-bench-cmd true -o sweeps), $how eq '-e' ?
		('-e', 'one') : '--dry-run']);
	is($r->{status}, 0, "bench sweep $how") or diag("$r->{err}$r->{out}");
}
ok(scalar(glob 'sweeps/one/*/run=0.json'), 'the sweep has a result') or diag(`find sweeps`);

# ---- run ----

# The configurations are the user's own files, and stay as they are.
sub config {
	my ($name, %c) = @_;
	return spew("user/$name.yaml", JSON::PP->new->canonical->encode({ name => $name, %c }));
}

my %sim = (command => 'sim', model => 'sim', ttft_ms => 3, itl_ms => 1);
my %few = (tokenizer => 'sim', num_prompts => 4, random_input_len => 8, random_output_len => 4,
	max_concurrency => 2, temperature => 0);
spew('user/token', secret('a token file') . "\n");
my %full = (
	server => { %sim, api_key => secret('server.api_key'), env => {
		DATABASE_URL => 'postgres://u:' . secret('server.env, a URL') . '@h/d',
		MY_SECRET => secret('server.env'), TEAM => $control } },
	benchmark => { %few, header => {
		Authorization => 'Bearer ' . secret('server.api_key'), Cookie => secret('benchmark.header'),
		'X-Team' => secret('benchmark.header X-Team') },
		extra_body => { api_key => secret('benchmark.extra_body'), visible => $control } },
	tags => { deploy_token => secret('tags'), team => $control, run_by => '${WHO_TOKEN}' },
	output => { record => JSON::PP::true, detailed => JSON::PP::true, upload => {
		url => "http://u:" . secret('output.upload.url') . "\@127.0.0.1:$port/upload/raw",
		token_file => "$scratch/user/token" } },
);
my $path = config('full', %full);
my $who = { WHO_TOKEN => secret('${NAME} of the environment') };
my @set = ('--set', 'server.env.SET_PASSWORD=' . secret('--set'));

for my $how (['--dry-run'], ['--plan', '-'], ['--plan', 'plan.json'], ['--print-config'], ['--check']) {
	my $r = keep("run @$how", args => ['run', '--config', $path, @set, '--output', 'full.json',
		'--progress', 'none', @$how], env => $who);
	is($r->{status}, 0, "run @$how") or diag($r->{err}) unless $how->[0] eq '--check';
}

# Processes of others than the user's own command line that show a text.
sub shown_by_processes {
	my ($text) = @_;
	return grep { (slurp("$_/cmdline") // '') =~ /\Q$text\E/ } glob '/proc/[0-9]*';
}

my ($r, %argv, $looked);
{
	my $run = begin(args => ['run', '--config', $path, @set, '--output', 'full.json', '--progress',
		'none', '--show-log', '--events', 'events.jsonl'], env => $who, seconds => 120);
	my $until = time + 100;

	while (time < $until && (slurp("/proc/$run->{pid}/stat") // '') !~ /\) Z /) {
		$argv{$_}++ for shown_by_processes(secret('server.api_key'));
		$looked++;
		sleep 0.02;
	}
	$r = finish($run);
	$printed .= "== run\n$r->{out}\n$r->{err}\n";
	ok($r->{status} ne 'timeout', 'run ends');
	is(json_of(slurp('full.json'))->{status}, 'completed', 'and its experiment is completed')
		or diag("$r->{err}$r->{out}");
	cmp_ok($looked, '>', 3, 'processes were looked at while it ran');
	is_deeply([keys %argv], [], 'the key of the server is in the command line of no process');
	like(slurp('full.json'), qr/$control/, 'what is no secret is in the document');
}
was_sent('a token file');

# The same configuration is kept; another header is another experiment, although it is not shown.
{
	my @again = ('run', '--output', 'full.json', '--progress', 'none', '--resume', @set);
	my %other = (%full, benchmark => { %{$full{benchmark}}, header => {
		%{$full{benchmark}{header}}, 'X-Team' => secret('a changed header') } });
	my $same = keep('run --resume', args => [@again, '--config', $path, '--dry-run'], env => $who);
	my $new = keep('run --resume, another header', args => [@again, '--config',
		config('full', %other), '--dry-run'], env => $who);

	like($same->{out}, qr/^0 experiments to run, 1 kept/m, 'the same configuration is kept')
		or diag($same->{out}, $same->{err});
	like($new->{out}, qr/^1 experiment to run/m, 'with another header it runs again');
	config('full', %full);
}

# A server that fails after it has printed what it was given.
config('fails', server => { command => ['sh', '-c',
	'echo the key is $LEAKED_TOKEN and $1 >&2; exit 3', 'sh', '--api-key=' . secret('server.command')],
	model => 'm', env => { LEAKED_TOKEN => secret('server.env, printed by the server') } },
	benchmark => \%few);
$r = keep('run of a server that fails', args => ['run', '--config', 'user/fails.yaml', '--output',
	'fails.json', '--progress', 'none', '--show-log']);
is($r->{status}, 1, 'a server that fails');
like($r->{err}, qr/^the key is \*\*\*/m, 'its log is shown without the secret');
like(slurp('fails.json'), qr/the key is \*\*\*/, 'its last words are kept without the secret');

# Mistakes of a configuration.
my %wrong = (
	'a key of the wrong type' => sub { (server => { %sim, api_key => { a => $_[0] } },
		benchmark => \%few) },
	'a header of the wrong type' => sub { (server => { %sim }, benchmark => { %few, header =>
		["Cookie $_[0]"] }) },
	'a URL with a password' => sub { (server => { url => "http://u:$_[0]\@h" }, benchmark => \%few) },
	'an upload without http' => sub { (server => { %sim }, benchmark => \%few,
		output => { upload => { url => "ftp://u:$_[0]\@h" } }) },
	'an unknown key' => sub { (server => { %sim, api_kex => $_[0], access_key => $_[0] },
		benchmark => \%few) },
	'extra_args' => sub { (server => { command => 'vllm serve', model => 'm',
		extra_args => ['--api-key', $_[0], '--port', 'x'] }, benchmark => \%few) },
	'a container' => sub { (server => { command => 'vllm serve', model => 'm', container => {
		image => 'i', env => { API_TOKEN => $_[0] }, args => ['-e', "X_SECRET=$_[0]"] } },
		benchmark => \%few) },
	'a text of words' => sub { (server => { command => "vllm serve m --hf-token $_[0] "
		. "--trace http://u:$_[0]\@h",
		model => 'm' }, benchmark => \%few) },
);
for my $name (sort keys %wrong) {
	my $file = config('wrong', $wrong{$name}->(secret("configuration: $name")));

	keep("configuration: $name @$_", args => ['run', '--config', $file, '--output', 'wrong.json',
		'--progress', 'none', @$_]) for ['--dry-run'], ['--print-config'], [];
}
$r = keep('--set of a wrong place', args => ['run', '--config', $path, '--set',
	'server.api_key.x=' . secret('--set of a wrong place'), '--dry-run', '--output', 'w.json'],
	env => $who);

# ---- killed: the roster stays ----

config('long', server => { %sim, api_key => secret('server.api_key of a killed run'), ttft_ms => 50,
	extra_args => ['--label', 'x'], itl_ms => 20 }, benchmark => { %few, num_prompts => 2000 });
config('long', server => { command => [$program, 'sim', '--api-key', secret('command of a killed run')],
	model => 'sim', ttft_ms => 50, itl_ms => 20 }, benchmark => { %few, num_prompts => 2000, header => {
	Authorization => 'Bearer ' . secret('command of a killed run') } });
{
	my $run = begin(args => ['run', '--config', 'user/long.yaml', '--output', 'long.json', '--progress',
		'none'], seconds => 60);
	my @rosters;

	wait_for('a roster', sub { @rosters = glob 'runtime/profllm/servers/*' });
	wait_for('its command', sub { (slurp($rosters[0]) // '') =~ /^command .*sim.*^member/ms });
	my ($keeper) = slurp($rosters[0]) =~ /^keeper (\d+)/m;
	my @members = slurp($rosters[0]) =~ /^member (\d+)/mg;
	kill 'STOP', $keeper, $run->{pid}; # or one would see the other's end
	kill 'KILL', $keeper, $run->{pid};
	finish($run);
	ok(-e $rosters[0], 'the roster of what was killed is still there');
	like(slurp($rosters[0]), qr/^command .*--api-key \*\*\*/m, 'its command has no secret');
	my $locks = join '', map { slurp($_) // '' } grep { -f } glob 'locks/*';
	unlike($locks, qr/zq\d\dHidden/, 'nor has a lock');
	$r = keep('the next run', args => ['run', '--config', config('next', server => \%sim,
		benchmark => \%few), '--output', 'next.json', '--progress', 'none']);
	ok(!-e $rosters[0], 'which ends what was left');
	kill 'KILL', @members;
}

# ---- stores, dashboards ----

my @store = ('--store', 'sqlite:runs.db');
is_status('ingest', 0, args => ['ingest', @store, qw(first.json second.json refused.json full.json
	fails.json)]);
is_status("export $_", 0, args => ['export', @store, '--format', $_, '--output', "all.$_"])
	for qw(csv jsonl);
is_status('export to stdout', 0, args => ['export', @store]);
keep("store at $_->[0]", args => ['ingest', '--store', $_->[1], 'first.json'])
	for ['a password', 'postgresql://u:' . secret('--store') . '@127.0.0.1:1/d'],
	['a parameter', 'postgresql://127.0.0.1:1/d?user=u&password=' . secret('--store, a parameter')],
	['no store', 'mysql://u:' . secret('--store of another kind') . '@h/d'];
keep('ingest --server', args => ['ingest', '--server', 'http://u:' . secret('--server')
	. "\@127.0.0.1:1/?token=" . secret('--server, a token'), 'first.json']);
keep('run --upload', args => ['run', '--config', 'user/next.yaml', '--output', 'up.json', '--progress',
	'none', '--upload', 'ftp://u:' . secret('--upload') . '@h']);

spew('user/tokens', 'ann ' . secret('--auth-token-file') . "\n");
chmod 0600, 'user/tokens';
my %with = (Authorization => 'Bearer ' . secret('--auth-token-file'));
my $d = start_dashboard(@store, '--auth-token-file', 'user/tokens', '--log', 'access.log');

sub ask_it {
	my ($method, $path, $body) = @_;
	my $r = ask($d, $method, $path, $body, %with);
	$printed .= "== $method " . ($path =~ s{\?.*}{}r) . "\n$r->{content}\n";
	return $r;
}

my $list = ask_it('GET', '/api/data/experiments?limit=100&columns=run_id')->{json}{items};
my @runs = map { $_->{id} } @{$list // []};
is($status{ingest}, 0, 'runs are in the store');
for my $run (@runs) {
	ask_it('GET', "/api/data/experiments/$run$_") for '', '/reproduce', '/document';
}
ok(@runs >= 3, 'the dashboard shows them') or diag(substr $printed, -2000);
ask_it('GET', '/api/health?token=' . secret('a query of the dashboard'));
ask_it('POST', '/api/launch/check', { config => slurp('user/wrong.yaml') });
ask_it('POST', '/api/launch/check', { config => "name: x\nserver: {command: sim, model: sim, api_key: "
	. secret('a configuration that is checked') . "}\nbenchmark: {tokenizer: sim}\n" });
$r = ask_it('POST', '/api/launch', { config => JSON::PP->new->canonical->encode({ name => 'job',
	server => { %sim, api_key => secret('a configuration that is launched') }, benchmark => { %few,
	header => { Authorization => 'Bearer ' . secret('a configuration that is launched') } } }) });
is($r->{status}, 202, 'a job is launched') or diag($r->{content});
my $job = $r->{json}{job_id};
wait_for('the end of the job', sub { ask($d, 'GET', "/api/jobs/$job", undef, %with)->{json}{state}
	=~ /^(done|failed)$/ }) if $job;
is(ask_it('GET', "/api/jobs/$job")->{json}{state}, 'done', 'and done') if $job;
ask_it('GET', "/api/jobs/$job/$_") for 'log', 'events';
ask_it('GET', '/api/jobs');
is($d->stop, 0, 'the dashboard ends');

# ---- the search ----

# What must hold a secret to work: the user's own files, and what is sent or run later. docs/guide/serve.md
# lists them.
my @may_hold = (
	qr{^\./user/},                                   # configurations, token files, parameters
	qr{^\./dashboard\d+\.jobs/[0-9a-f]+/config\.yaml$}, # what Launch runs; below a folder of 0700
	qr{^\./own/state/profllm/spool/},               # where a document is sent later; 0600
	qr{^\./(?:fails|wrong)\.d/server\.log$},         # what a server itself prints
	qr{^\./\.in\d+$},                                # this test's own
);
my (%hit, $files, $bytes, $controls);

sub search {
	my ($name, $text) = @_;
	for my $place (keys %secret) {
		$hit{"$place: $name"}++ if index($text, $secret{$place}) >= 0;
	}
}

File::Find::find({ no_chdir => 1, wanted => sub {
	my $name = $File::Find::name;
	search("the name $name", $name);
	return unless -f $name;
	for my $may (@may_hold) { return if $name =~ $may }
	my $text = slurp($name) // '';
	$files++;
	$bytes += length $text;
	$controls++ if index($text, $control) >= 0;
	search($name, $text);
} }, '.');
for my $part (split /^(?=== )/m, $printed) {
	search("output of " . ($part =~ /^== (.*)/)[0], $part);
}
diag(sprintf '%d secrets, %d files with %d bytes, %d bytes printed', scalar keys %secret, $files,
	$bytes, length $printed);
cmp_ok(scalar keys %secret, '>=', 30, 'at least 30 secrets were planted');
cmp_ok($controls, '>=', 4, 'the search finds what is no secret');
is(scalar keys %hit, 0, 'no secret is in a file or on the terminal') or diag(join "\n", sort keys %hit);
for my $own ((glob 'own/state/profllm/spool'), (glob 'dashboard*.jobs')) {
	is((stat $own)[2] & 077, 0, "$own is for its owner alone");
}
done_testing();
