#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-versions.t - the same experiment on servers of several releases: the document has each one's
# own defaults and what it reported of itself, its hash says whether the same was used, and
# --resume goes by what is configured.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use JSON::PP ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = getcwd() . '/state';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir $_ for qw(state bin);
$ENV{PATH} = getcwd() . "/bin:$ENV{PATH}";

# A vLLM of release $ENV{RELEASE}: prints what $ENV{SAYS} holds, then answers. Each start is a line
# of the file starts.
spew('bin/vllm', "#!$^X\n" . <<'EOF');
use strict;
use warnings;
use IO::Socket::INET;

my ($port) = "@ARGV" =~ /--port (\d+)/;
my %json = ('/v1/models' => '{"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 512}]}',
	'/metrics' => 'vllm:cache_config_info{block_size="16",gpu_memory_utilization="0.5",'
		. 'num_gpu_blocks="292"} 1.0' . "\n");
$json{'/version'} = "{\"version\": \"$ENV{RELEASE}\"}" if $ENV{RELEASE};
delete $json{'/metrics'} unless $ENV{METRICS};
$SIG{CHLD} = 'IGNORE';
open my $starts, '>>', "$ENV{HERE}/starts" or die $!;
print $starts "$$\n";
close $starts;
my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 16,
	ReuseAddr => 1) or die "listen: $!\n";
$| = 1;
print $ENV{SAYS} // '';
while (1) {
	my $c = $l->accept or next; # a child has ended
	next if fork;
	my ($path, $length) = ('', 0);
	while (defined(my $line = <$c>)) {
		$path = $1 if $line =~ m{^\S+ (\S+) HTTP};
		$length = $1 if $line =~ /^content-length: (\d+)/i;
		last if $line =~ /^\r?\n$/;
	}
	read $c, my $ignored, $length;
	my $text = $json{$path} // '';
	my $status = $path =~ /^\/(version|metrics)$/ && !$text ? '404 Not Found' : '200 OK';
	my $type = 'application/json';
	if ($path eq '/v1/completions') {
		$type = 'text/event-stream';
		$text = join('', map { "data: {\"choices\": [{\"index\": 0, \"text\": \" a\"}]}\n\n" } 1 .. 4)
			. 'data: {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 4}}'
			. "\n\ndata: [DONE]\n\n";
	}
	printf $c "HTTP/1.1 $status\r\nContent-Type: $type\r\nContent-Length: %d\r\n"
		. "Connection: close\r\n\r\n%s", length $text, $text;
	close $c;
	exit;
}
EOF
chmod 0755, 'bin/vllm';

my %load = (tokenizer => 'sim', num_prompts => 2, random_input_len => 8, random_output_len => 4,
	max_concurrency => 1, temperature => 0);
my %server = (command => 'vllm serve', model => 'm', gpus => 0, max_num_seqs => 8);
my $n = 0;

# The document of one run on a release that says so much.
sub document_of {
	my (%o) = @_;
	my $name = 'x' . ++$n;
	my $env = { RELEASE => $o{release} // '', SAYS => $o{says} // '', HERE => getcwd(),
		METRICS => $o{metrics} ? 1 : '' };

	spew("$name.yaml", JSON::PP->new->canonical->encode({ name => 'x',
		server => $o{server} || \%server, benchmark => \%load,
		telemetry => { enabled => JSON::PP::false }, %{$o{more} || {}} }));
	$o{r} = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json",
		'--progress', 'none'], env => $env);
	is($o{r}{status}, 0, "run $name" . ($o{release} ? " on $o{release}" : ''))
		or diag @{$o{r}}{qw(err out)}, slurp("$name.json") // '';
	return json_of(slurp("$name.json"));
}

my $config = '(EngineCore_DP0 pid=71) INFO 10-03 12:00:01 [core.py:77] Initializing a V1 LLM engine '
	. "(v0.11.0) with config: model='m', dtype=torch.bfloat16, max_seq_len=%d, quantization=None, "
	. "seed=0, enable_prefix_caching=True, chunked_prefill_enabled=True\n";
my $says = sprintf($config, 40960) . 'INFO [scheduler.py:205] Chunked prefill is enabled with '
	. "max_num_batched_tokens=2048.\nINFO GPU KV cache size: 37,376 tokens\n";

# ---- defaults of the release that answered ----

my $old = document_of(release => '0.11.0', says => $says);
my $new = document_of(release => '0.32.0', says => $says);
my $dev = document_of(release => '0.18.2rc1.dev73+gdb7a17ecc', says => $says);
my $silent = document_of();

is_deeply([map { $_->{config}{server}{gpu_memory_utilization} } $old, $new, $dev, $silent],
	[0.9, 0.92, undef, undef], 'a default of each release; null where it is unknown');
ok(exists $old->{config}{server}{swap_space} && !exists $new->{config}{server}{swap_space},
	'an argument that is gone is in the old document alone');
ok(!exists $old->{config}{server}{grpc} && exists $new->{config}{server}{grpc},
	'one that came later in the new one');
is_deeply([map { [@{$_->{config}{server_defaults}}{qw(version reason)}] } $old, $new, $dev, $silent],
	[['0.11.0', undef], ['0.32.0', undef], [undef, 'development version'],
		[undef, 'not reported']], 'the document says whose defaults these are, or why of none');
is_deeply([map { $_->{config}{server}{max_num_seqs} } $old, $new, $dev, $silent], [(8) x 4],
	'what is configured is always there');

# ---- what the server decided ----

is_deeply([@{$old->{config}{server}}{qw(max_model_len dtype max_num_batched_tokens quantization
	enable_prefix_caching)}], [40960, 'bfloat16', 2048, undef, JSON::PP::true],
	'values of the log are those of the run');
is_deeply([@{$silent->{config}{server}}{qw(max_model_len dtype max_num_batched_tokens)}],
	[512, undef, undef], 'without a log: the length from /v1/models, the rest null');
is_deeply([grep { /^(max_|dtype|quant)/ } @{$silent->{config}{server_defaults}{not_reported}}],
	[qw(dtype quantization max_num_batched_tokens)], 'and named as not reported');
is_deeply([grep { /^(max_|dtype|quant)/ } @{$old->{config}{server_defaults}{not_reported}}], [],
	'what was reported is not');
is(document_of(release => '0.11.0', metrics => 1)->{config}{server}{gpu_memory_utilization}, 0.5,
	'/metrics: what is reported goes before a default');

# ---- the hash ----

my $again = document_of(release => '0.11.0', says => $says);
my $longer = document_of(release => '0.11.0', says => sprintf($config, 8192));

is($again->{config}{hash}, $old->{config}{hash}, 'hash: the same again is the same');
isnt($new->{config}{hash}, $old->{config}{hash}, 'hash: other defaults differ');
isnt($longer->{config}{hash}, $old->{config}{hash}, 'hash: another value of the server differs');
like($old->{config}{configured_hash}, qr/^[0-9a-f]{16}$/, 'configured_hash: there');
is_deeply([map { $_->{config}{configured_hash} } $new, $dev, $longer],
	[($old->{config}{configured_hash}) x 3], 'configured_hash: the same file is the same');

# ---- resume goes by what is configured ----

my @suite = (release => '0.11.0', more => { matrix => { 'server.max_num_seqs' => [2, 4] } });
my $starts = () = slurp('starts') =~ /\n/g;
my $first = document_of(@suite);
my $name = "x$n";
my $r = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json", '--progress', 'none',
	'--resume'], env => { RELEASE => '0.32.0', HERE => getcwd() });
my $resumed = json_of(slurp("$name.json"));

is($r->{status}, 0, 'resume');
is(scalar(() = slurp('starts') =~ /\n/g) - $starts, 2, 'resume: nothing is started again');
is_deeply([map { $_->{config}{hash} } @{$resumed->{experiments}}],
	[map { $_->{config}{hash} } @{$first->{experiments}}], 'resume: members are as they were');
$r = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json", '--progress', 'none',
	'--resume', '--set', 'server.dtype=half'], env => { RELEASE => '0.11.0', HERE => getcwd() });
is($r->{status}, 0, 'resume of another configuration');
is(scalar(() = slurp('starts') =~ /\n/g) - $starts, 4, 'resume: another configuration is run');

# ---- servers of others, and the simulator ----

my $sim = start_sim('--max-model-len', 777);
my $attached = document_of(server => { url => $sim->{url}, model => 'sim' });

is($attached->{config}{server}{max_model_len}, 777, 'a server of others: /v1/models');
ok(!exists $attached->{config}{server}{gpu_memory_utilization},
	'a server of others: no default is claimed');
is($attached->{config}{server_defaults}{reason}, 'started by others', 'and that is said');

my $own = document_of(server => { command => 'sim', model => 'Qwen/Qwen3-8B', gpu => 'h100-80gb',
	tensor_parallel_size => 2, startup_scale => 0 });

is($own->{config}{server_defaults}{reason}, 'another engine', 'the simulator is none');
is($own->{config}{server}{max_model_len}, 40960, 'the simulator: what it chose for this model');
is($own->{config}{server}{swap_space}, undef, 'the simulator: null for what it does not have');
ok(!exists $own->{config}{server}{no_such} && exists $own->{config}{server}{trust_remote_code},
	'the simulator: vLLM\'s names all the same');
cmp_ok($own->{config}{server_defaults}{reported}{max_num_batched_tokens}, '>', 0,
	'the simulator: its log is read');

done_testing();
