#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What a configuration that is sent to a dashboard may cost, read and start: checks are few, short
# and end with their client, nothing of the dashboard's environment or files is revealed, and with
# --launch-command no key starts another program or names a file to write.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(abs_path);
use Dash;
use IO::Socket::INET;
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(sleep time);

use constant SECRET => 'hf-secret-of-the-dashboard';
use constant TOKENS => 'alice 0123456789abcdef0123456789abcdef';

$ENV{XDG_RUNTIME_DIR} = $ENV{XDG_STATE_HOME} = "$ENV{HF_HOME}-state"; # rosters of this test alone
mkdir $ENV{XDG_RUNTIME_DIR};
my $here = abs_path('.');

sub check { my ($d, $config) = @_; return ask($d, 'POST', '/api/launch/check', { config => $config }) }

# All that an answer says, as a line.
sub said { my ($d, $config) = @_; return check($d, $config)->{content} }

# Sends a check and returns at once; the socket is what the client keeps.
sub begin_check {
	my ($d, $config) = @_;
	my $body = json_text({ config => $config });
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) or die "$!\n";

	print $s "POST /api/launch/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		. 'Content-Length: ' . length($body) . "\r\n\r\n$body";
	$s->flush;
	return $s;
}

sub answer {
	my ($s) = @_;
	my $text = '';

	$text .= $_ while sysread($s, $_, 65536) && $text !~ /\r\n\r\n\{.*\}/s;
	return $text;
}

# Processes that a dashboard has started and that still run.
sub children {
	my ($d) = @_;
	return grep { /\S/ } split /\n/, `ps -o pid=,stat= --ppid $d->{pid} | grep -v Z`;
}

# Until quick() every check waits for a file of arguments that is never written: nothing else that
# is sent to a dashboard takes that long any more.
my $pipe = "$ENV{XDG_CONFIG_HOME}/profllm/engine_args.json";
mkdir $ENV{XDG_CONFIG_HOME};
mkdir "$ENV{XDG_CONFIG_HOME}/profllm";
sub slow { mkfifo($pipe, 0600) or die "$pipe: $!\n" }
sub quick { unlink $pipe }

# ---- what is revealed ----

spew('token.txt', TOKENS . "\n");
spew('scalar.txt', "a-password-in-a-file\n");
mkdir $_ for 'opened', 'opened/deep', 'closed';
spew('opened/base.yaml',
	"server: {command: sim, model: from-base}\nbenchmark: {tokenizer: sim, num_prompts: 1}\n");
spew('opened/deep/far.yaml', "include: ../base.yaml\ntags: {far: yes}\n");
spew('opened/bad.yaml', "server: {command: sim, secret_of_bad: x, port: secret-port}\n");
spew('opened/token.txt', TOKENS . "\n");
spew('opened/broken.yaml', "a: [\nsecret-of-broken: }\n");
spew('opened/twice.yaml', "secret-twice: 1\nsecret-twice: 2\n");
spew('opened/tests.json', '[{"test_name": "serving_secret", "server_parameters": secretly');
spew('closed/base.yaml', "tags: {closed: secret-of-closed}\n");
symlink "$here/closed/base.yaml", 'opened/link.yaml';
symlink "$here/closed", 'opened/folder';

$ENV{HF_TOKEN} = SECRET;
$ENV{CHOSEN} = 'chosen-value';
my $d = start_dashboard('--jobs-dir', 'jobs', '--include-dir', 'opened', '--launch-env', 'CHOSEN');
my $plain = start_dashboard();
delete @ENV{qw(HF_TOKEN CHOSEN)};

my $good = "server: {command: sim, model: m}\nbenchmark: {tokenizer: sim, num_prompts: 1}\n";
like(said($d, "name: \"\${HF_TOKEN}\"\n$good"), qr/environment variables of a dashboard are not available/,
	'a variable of the dashboard is refused');
unlike(said($d, "name: \"\${HF_TOKEN}\"\n$good"), qr/\Q@{[SECRET]}/, 'and not told');
is(check($d, "name: \"\${HF_TOKEN:-other}\"\n$good")->{json}{plan}{experiments}[0]{name}, 'other',
	'nor as one that may be missing');
is(check($d, "name: \"\${CHOSEN}\"\n$good")->{json}{plan}{experiments}[0]{name}, 'chosen-value',
	'--launch-env names those that are read');

for my $file ('/etc/passwd', "$here/token.txt", "$here/scalar.txt", 'closed/base.yaml', '../token.txt',
	'link.yaml', 'folder/base.yaml', "$here/opened/../closed/base.yaml", '/proc/self/environ',
	"/proc/$d->{pid}/environ", '/no/such/file') {
	my $text = said($d, "include: $file\n$good");

	like($text, qr/there is no such file in the folders that the dashboard allows/,
		"include $file: refused");
	unlike($text, qr/root:|\Q@{[TOKENS]}|a-password|secret/, 'and nothing of it told');
	like(said($d, "import: $file\n$good"), qr/no such file in the folders/, "import $file, too");
	like(said($plain, "include: $file\n"), qr/cannot include files, unless .*--include-dir/,
		'without --include-dir no file at all');
}
like(said($d, "include: base.yaml\n"), qr/"plan": ?\{.*from-base/s, 'a file of an opened folder is included');
ok(check($d, "include: [deep/far.yaml]\n")->{json}{ok}, 'and what that includes, relative to it');
ok(check($d, "include: $here/opened/base.yaml\n")->{json}{ok}, 'also by its whole path');
for my $file (qw(bad.yaml token.txt broken.yaml twice.yaml)) {
	my $text = said($d, "include: $file\n$good");

	like($text, qr/$file:\d+:\d+: a mistake, which is not shown here/, "a mistake in $file has a place");
	unlike($text, qr/\Q@{[TOKENS]}|secret/, 'and no text');
}
unlike(said($d, "import: tests.json\n$good"), qr/secret/, 'nor has one in an imported test');

# ---- what an experiment has of the environment ----

my $id = ask($d, 'POST', '/api/launch', { config => <<"END" })->{json}{job_id};
name: environment
server:
  command: [sh, -c, "env; echo expanded \${CHOSEN}; exit 1"]
  model: m
benchmark: {tokenizer: sim, num_prompts: 1}
END
wait_for('the experiment', sub { ask($d, 'GET', "/api/jobs/$id")->{json}{state} eq 'failed' });
my $all = join "\n", map { slurp($_) // '' } split /\n/, `find jobs -type f`;
unlike($all, qr/\Q@{[SECRET]}/, 'an experiment has none of the dashboard\'s secrets');
like($all, qr/^expanded chosen-value$/m, 'but what --launch-env names');
like($all, qr/^PATH=/m, 'and what every program needs');

# ---- whose it is ----

spew('two', TOKENS . " launch\nbob fedcba9876543210fedcba9876543210 launch\n");
chmod 0600, 'two';
my $two = start_dashboard('--auth-token-file', 'two');
my ($alice, $bob) = map { { Authorization => 'Bearer ' . $_ x 2 } } qw(0123456789abcdef fedcba9876543210);
my $long = $good =~ s/num_prompts: 1/$&000, request_rate: 5/r;
my $hers = ask($two, 'POST', '/api/launch', { config => $long }, %$alice)->{json}{job_id};
my $his = ask($two, 'POST', '/api/launch', { config => $good }, %$bob)->{json}{job_id};
sub job_of { return ask($two, 'GET', "/api/jobs/$_[0]", undef, %$alice)->{json} }
is_deeply([map { job_of($_)->{detail}{by} } $hers, $his], ['alice', 'bob'], 'a job says who launched it');
ask($two, 'POST', "/api/jobs/$his/cancel", undef, %$alice);
is(job_of($his)->{detail}{reason}, 'cancelled by alice before it began', 'and who cancelled it');
wait_for('hers to run', sub { job_of($hers)->{state} eq 'running' });
ask($two, 'POST', "/api/jobs/$hers/cancel", undef, %$bob);
wait_for('its end', sub { job_of($hers)->{state} eq 'cancelled' });
is(job_of($hers)->{detail}{reason}, 'cancelled by bob', 'while it ran, too');

# Members that run as programs of their own are in the same bounds: what they are given is not read again.
$id = ask($d, 'POST', '/api/launch', { config => <<"END" })->{json}{job_id};
name: pair
jobs: 2
server: {command: sim}
benchmark: {tokenizer: sim, num_prompts: 1, random_input_len: 8, random_output_len: 2}
experiments:
  - {name: one, server: {model: m}, include: $here/scalar.txt, tags: {text: "\$\${HF_TOKEN}"}}
  - {name: two, server: {model: n}, include: /etc/passwd}
END
wait_for('the pair', sub { ask($d, 'GET', "/api/jobs/$id")->{json}{state} !~ /waiting|running/ });
$all = join "\n", map { slurp($_) // '' } split /\n/, `find jobs/$id -type f`;
is(ask($d, 'GET', "/api/jobs/$id")->{json}{state}, 'done', 'a suite of two at once')
	or diag(slurp("jobs/$id/log.txt"));
unlike($all, qr/root:x|a-password|\Q@{[SECRET]}/, 'whose members read no files and no variables');
like($all, qr/\$\{HF_TOKEN\}/, 'and keep their texts');

# ---- what a check costs ----

my $deep = 'a: ' . '[' x 1_000_000;
my $r = check($d, $deep);
like($r->{json}{findings}[0]{text}, qr/^nested deeper than 64 levels/, 'a megabyte of [ is refused');
is_deeply([@{$r->{json}{findings}[0]}{qw(line column)}], [1, 67], 'where it is');

slow();
my $first = begin_check($d, $good);
wait_for('the check', sub { children($d) });
$r = check($d, $good);
is($r->{status}, 429, 'another check of the same user waits');
is($r->{headers}{'retry-after'}, 1, 'for a second');
like($r->{json}{detail}, qr/one is checked at a time for each user/, 'and is told why');
is(ask($d, 'POST', '/api/launch', { config => $good })->{status}, 429, 'so is a start');
is(ask($d, 'GET', '/api/health')->{status}, 200, 'others are answered meanwhile');
my $began = time;
close $first;
wait_for('the end of the check', sub { !children($d) });
my $took = time - $began;
diag(sprintf 'a check ended %.2f s after its client', $took);
quick();
is(check($d, $good)->{status}, 200, 'a check ends with its client, and the next one is taken');

my @crowd = map { begin_check($d, $deep) } 1 .. 12;
is(ask($d, 'GET', '/api/health')->{status}, 200, 'twelve checks at once stop nobody');
is(ask($d, 'GET', '/api/data/summary')->{status}, 200, 'who asks a question, either');
like(answer($_), qr/^HTTP\/1.1 (200|429) /, 'each is answered') for @crowd;

slow();
$began = time;
$r = check($d, $good);
is($r->{status}, 422, 'a check that takes too long is ended');
cmp_ok(time - $began, '<', 30, 'after five seconds');
like($r->{json}{detail}, qr/took more than 5 s/, 'and the answer says so');
is_deeply([children($d)], [], 'nothing of it is left');

# ---- two users ----

spew('tokens', "alice alice-has-this-token\nbob bob-has-this-token\ncarol carol-has-this-token\n");
my $shared = start_dashboard('--auth-token-file', 'tokens');
my @held;
for my $who (qw(alice bob)) {
	my $body = json_text({ config => $good });
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shared->{port});

	print $s "POST /api/launch/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
		. "$who-has-this-token\r\nContent-Type: application/json\r\nContent-Length: "
		. length($body) . "\r\n\r\n$body";
	$s->flush;
	push @held, $s;
}
wait_for('two checks', sub { children($shared) == 2 });
$r = ask($shared, 'POST', '/api/launch/check', { config => $good },
	Authorization => 'Bearer carol-has-this-token');
is($r->{status}, 429, 'a third user waits');
like($r->{json}{detail}, qr/already checking as many configurations/, 'and is told why');
is(ask($shared, 'GET', '/api/data/summary', undef, Authorization => 'Bearer carol-has-this-token')->{status},
	200, 'but is answered otherwise');
close $_ for @held;
quick();

# ---- no launching ----

my $off = start_dashboard('--no-launch');
$r = check($off, $good);
is($r->{status}, 403, '--no-launch checks nothing');
like($r->{json}{detail}, qr/--no-launch/, 'and says why');

# ---- commands that may be started ----

my $few = start_dashboard('--launch-command', 'sim', '--launch-command', 'vllm serve', '--launch-command',
	'worker', '--launch-env', 'CHOSEN');

sub refused {
	my ($config, $name) = @_;
	my $r = check($few, $config);

	ok(!$r->{json}{ok}, "$name: refused");
	like($r->{content}, qr/dashboard --launch-(command|env)/, 'by the list') or diag($config);
}

ok(check($few, $good)->{json}{ok}, 'a command that is listed may be started');
ok(check($few, <<'END')->{json}{ok}, 'with its arguments') or diag(said($few, "server: {model: a/b}"));
server: {model: a/b, tensor_parallel_size: 1, max_model_len: 32k, dtype: bfloat16, enforce_eager: true,
  limit_mm_per_prompt: {image: 2}, served_model_name: [a, b], env: {CHOSEN: x}}
resources: {gpus: none}
benchmark: {tokenizer: sim, num_prompts: 1, extra_body: {min_tokens: 8}}
END

my $bench = 'benchmark: {tokenizer: sim, num_prompts: 1}';
for my $command ('sh', '[sh, -c, id]', 'vllm', 'vllm serve --trust-remote-code', '[vllm serve]',
	'/tmp/vllm serve', 'profllm sim', 'sim --truth /tmp/x') {
	refused("server: {command: $command, model: m}\n$bench\n", "command $command");
}
my %server = (
	container => '{image: x}', env => '{LD_PRELOAD: /tmp/x.so}',
	extra_args => '[--middleware, os.system]',
	host => '"--middleware=os.system"', trust_remote_code => 'true', middleware => '[os.system]',
	served_model_name => '[a, --middleware, os.system]', model => '"--config=/tmp/x"',
	tool_parser_plugin => '/tmp/x.py', worker_cls => 'a.b', worker_extension_cls => 'a.b',
	scheduler_cls => 'a.b', logits_processors => '[a.b]', config => '/tmp/x', download_dir => '/tmp/x',
	uds => '/tmp/x', log_config_file => '/tmp/x', io_processor_plugin => 'x', load_format => 'x',
	reasoning_parser_plugin => '/tmp/x', hf_overrides => '{architectures: [x]}',
	kv_transfer_config => '{kv_connector_module_path: x}', compilation_config => '{backend: a.b}',
	'compilation_config.cache_dir' => '/tmp/x', additional_config => '{x: y}',
	profiler_config => '{torch_profiler_dir: /tmp/x}', speculative_config => '{model: x}',
	distributed_executor_backend => 'a.b', model_impl => 'x', chat_template => '/tmp/x',
);
refused("server: {model: m, $_: $server{$_}}\nresources: {gpus: none}\n$bench\n"
	=~ s/model: m, (?=model:)//r, "server.$_") for sort keys %server;
refused("server: {command: sim, model: m, $_: /tmp/x}\n$bench\n", "server.$_ of the simulator")
	for qw(truth requests account port_file uds ssl_certfile);
refused("servers: [{command: sim, model: m}, {command: [sh, -c, id], model: m, role: cache}]\n"
	. "$bench\n", 'a second server');
refused("$good$_\n", $_) for 'output: {folder: /tmp/x}', 'output: {path: /tmp/x}',
	'output: {upload: {url: "http://h", token_file: /tmp/x}}', 'profiling: {enabled: true, dir: /tmp/x}',
	'profiling: {enabled: true, tool: nsys}';
refused("server: {command: sim, model: m}\nbenchmark: {tokenizer: sim, $_: /tmp/x}\n", "benchmark.$_")
	for qw(record dump_workload);
my $throughput = 'mode: throughput, dataset_name: random, num_prompts: 1, backend: vllm';
ok(check($few, "server: {model: m}\nresources: {gpus: none}\nbenchmark: {$throughput}\n")->{json}{ok},
	'worker: engines without a server');
refused("server: {model: m}\nresources: {gpus: none}\nbenchmark: {$throughput, $_}\n", "benchmark $_")
	for 'python: /tmp/python', 'worker_cmd: sh -c id', 'worker_log: /tmp/x', 'nsight: [/tmp/x]',
	'dump_workload: /tmp/x';
refused("matrix: {server.command: [sim, sh]}\nserver: {model: m}\n$bench\n", 'one of a matrix');
refused("experiments: [{name: a, server: {command: sh}}]\nserver: {model: m}\n$bench\n", 'one of a list');

# Every key that takes a text and is not refused: a new one has to be thought about.
my %harmless = map { $_ => 1 } qw(
	dataset_path label endpoint model tokenizer hf_subset hf_split hf_name hf_revision hf_text_column
	bfcl_categories spec_bench_category speed_bench_category random_range_ratio
	timed_trace_label_timestamp timed_trace_label_input_length timed_trace_label_output_length
	timed_trace_label_hash_ids random_mm_bucket_config percentile_metrics metric_percentiles
	request_id_prefix served_model_name timeline_itl_thresholds chat_prefix chat_suffix cacert
	random_input_len_dist random_output_len_dist slo backend_file prompt_salt client_cert client_key proxy
	metrics_url load_pattern compat trace header metadata goodput lora_modules omit_body_keys fix
	warm_connections lora_path random_mm_limit_mm_per_prompt chat_template_kwargs extra_body mix
	json_schema_path priority_classes multi_turn_turns_dist multi_turn_delay_dist session_header
	session_token_header dataset input_length_range input_file warmup_percentages
	gpus gpu_price cpus source_addresses
);
my %tested = map { $_ => 1 } qw(record dump_workload worker_log nsight python worker_cmd);
my @keys = map { /^\| `(\w+)` \| (a text|a list of|an object|NAME\|FILE|N\|auto)/ ? $1 : () }
	split /\n/, (run(args => ['run', '--print-keys'])->{out} =~ s/.*?(?=^## benchmark, mode serve)//msr);
cmp_ok(scalar @keys, '>', 40, 'keys of benchmarks that take texts');
is_deeply([grep { !$harmless{$_} && !$tested{$_} } @keys], [],
	'are all known to start and write nothing, or refused');

done_testing();
