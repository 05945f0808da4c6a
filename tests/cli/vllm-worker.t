#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# workers/vllm_worker.py on a vllm package that only notes how it was called (fake_engines/): the
# calls of the engine, their order, and which are between the two clock reads.
use strict;
use warnings;
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Talk;
use Test::More;

system('python3 -c "" 2>/dev/null') == 0 or plan skip_all =>
	'the adapter is Python, and there is no python3';

my $workers = dirname($program) . '/workers';
my $fake = "$FindBin::Bin/fake_engines";
my $journals = 0;
my ($yes, $no) = (JSON::PP::true, JSON::PP::false);

sub worker {
	my (%env) = @_;
	my $journal = 'journal' . ++$journals;
	spew($journal, '');
	my $t = Talk->new(command => ['python3', "$workers/vllm_worker.py"], log => "log$journals",
		env => { PYTHONPATH => $fake, PYTHONDONTWRITEBYTECODE => 1, FAKE_JOURNAL => $journal,
			%env });
	$t->{journal} = $journal;
	return $t;
}

# What was called since last asked.
sub calls {
	my ($t) = @_;
	my @lines = split /\n/, slurp($t->{journal});
	spew($t->{journal}, '');
	return map { JSON::PP::decode_json($_) } @lines;
}

sub names { return join ' ', map { $_->{call} } @_ }

sub load {
	my ($t, $model, @more) = @_;
	return $t->ask('load', backend => 'vllm', args => ['--model', $model, map { "$_" } @more]);
}

my @two = ({ prompt => 'a b c', prompt_len => 3, output_len => 5 },
	{ prompt => [4, 5], prompt_len => 2, output_len => 6 });
my %run = (n => 1, temperature => 1, top_p => 1, ignore_eos => $yes,
	detokenize => $yes);

# ---- the first word, arguments, loading ----

my $t = worker();
is($t->{hello}{engine}, 'vllm', 'hello');
is($t->{hello}{version}, '0.32.0-fake', 'version');
is(join(' ', sort @{$t->{hello}{features}}),
	'async beam chat encode lora mm_stats prequeue priority profile render sampling', 'what it can do');

my $r = $t->ask('generate', %run);
is("$r->{category}: $r->{text}", 'other: no engine is loaded', 'a run before load');
$r = $t->ask('render', args => ['--model', 'm'], messages => [{ role => 'user', content => 'Hi' }]);
is($r->{text}, '<user>Hi<assistant>', 'the template is applied before load');
is(names(calls($t)), 'get_tokenizer', 'with the tokenizer alone');

$r = load($t, 'm', '--max-model-length', 5);
is($r->{category}, 'flag', 'an argument that the engine has not');
like($r->{text}, qr/^unrecognized arguments: --max-model-length 5$/, 'in its own words');
$r = load($t, 'too-large');
is("$r->{category}: $r->{text}", 'memory: CUDA out of memory. Tried to allocate 2.00 GiB', 'memory');
is(load($t, 'nowhere/at-all')->{category}, 'model', 'a model that is not there');
$r = load($t, 'core-dies');
is($r->{category}, 'flag', 'an engine that died in a process of its own is judged by its log');
like($r->{text}, qr/^max_num_seqs must be 1 \(Engine core/, 'and the root cause is named first');
calls($t);

$r = load($t, 'm', '--max-model-len', 77);
is($r->{type}, 'ok', 'load') or diag(slurp($t->{log}));
my @made = calls($t);
is(names(@made), 'from_engine_args LLM', 'the engine is made from its arguments');
is($made[1]{max_model_len}, 77, 'which it has read itself');
cmp_ok($r->{began_ns}, '<=', $made[0]{at_ns}, 'the clock is read before');
cmp_ok($r->{ended_ns}, '>=', $made[1]{at_ns}, 'and after');
is($r->{compilation_s}, 1.5, 'its compilation time');
is_deeply($r->{phases}, [{ name => 'load weights', s => 1.25 }], 'phases from the log');
is(load($t, 'm')->{type}, 'error', 'one engine a worker');
calls($t);

$r = $t->ask('describe');
is_deeply([@$r{qw(engine version max_model_len device profile_to profile_dir vocab_size)}],
	['vllm', '0.32.0-fake', 77, 'a fake device', 'torch', '/traces', 1000], 'describe');
ok(!$r->{is_pooling}, 'it generates');
is($r->{kv_tokens}, 160, 'room in the KV cache');

# ---- generate ----

is($t->ask('put', is_first => $yes, requests => [$two[0]])->{n}, 1, 'put');
is($t->ask('put', is_first => $no, requests => [$two[1]])->{n}, 2, 'and more');
$r = $t->ask('generate', %run, n => 2, is_progress => $yes);
is($r->{type}, 'ok', 'generate') or diag($r->{text});
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '3 2 / 10 12', 'tokens of all sequences');
is("@{$r->{e2el_s}}", '0.75 1.75', 'latencies of requests as the engine has them');
is_deeply($t->{between}[-1], { type => 'progress', done => 2, total => 2 }, 'progress');
my ($call) = calls($t);
is_deeply($call->{prompts}, [{ prompt => 'a b c' }, { prompt_token_ids => [4, 5] }],
	'prompts in order');
is_deeply($call->{params}[1], { n => 2, temperature => 1, top_p => 1, ignore_eos => $yes,
	max_tokens => 6, detokenize => $yes, watermarking => undef }, 'sampling');
is($call->{lora}, undef, 'no adapters');
is($call->{priority}, undef, 'no priorities');
is("@{$r->{ttft_s}}", '0.25 0.25', 'times to the first token, too');

# What requests have of their own.
{
	is($t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, priority => -2 },
		{ %{$two[1]}, sampling => { top_p => 0.5, temperature => 0 } }])->{n}, 2,
		'requests that differ');
	is($t->ask('generate', %run)->{type}, 'ok', 'are run');
	my ($call) = calls($t);
	is("@{$call->{priority}}", '-2 0', 'by priority');
	is_deeply([map { [@$_{qw(top_p temperature max_tokens)}] } @{$call->{params}}],
		[[1, 1, 5], [0.5, 0, 6]], 'and with sampling parameters of their own');
	$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, sampling => { frob => 1 } }]);
	my $r = $t->ask('generate', %run);
	is("$r->{category}: $r->{text}", 'unsupported: frob with vLLM 0.32.0-fake',
		'a parameter that it has not');
	$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, priority => 1 }]);
	$r = $t->ask('chat', %run);
	is("$r->{category}: $r->{text}", 'unsupported: chat by priority with vLLM 0.32.0-fake',
		'chat by priority');
	$t->ask('put', is_first => $yes, requests => [@two]);
	calls($t);
}
cmp_ok($r->{began_ns}, '<=', $call->{at_ns}, 'the clock is read before the call');
$t->ask('generate', %run, detokenize => $no);
is(scalar(@{$t->{between}}), 0, 'no progress unless it is asked for');
($call) = calls($t);
ok(!$call->{params}[0]{detokenize}, 'no text');

$r = $t->ask('generate', %run, profile => $yes);
my @seen = calls($t);
is(names(@seen), 'start_profile generate stop_profile', 'the profiler');
cmp_ok($r->{began_ns}, '<=', $seen[0]{at_ns}, 'starts inside the clock');
cmp_ok($r->{ended_ns}, '>=', $seen[2]{at_ns}, 'and stops inside');

$r = $t->ask('generate', %run, prequeue => $yes, is_progress => $yes);
@seen = calls($t);
is(names(@seen), 'sleep enqueue wake_up wait', 'queueing ahead');
is("$seen[0]{level} $seen[0]{mode} @{$seen[2]{tags}}", '0 abort scheduling', 'only the scheduler waits');
cmp_ok($r->{began_ns}, '>=', $seen[0]{at_ns}, 'it is asleep before the clock begins');
cmp_ok($r->{began_ns}, '<=', $seen[1]{at_ns}, 'and what is queued, is inside');
is("@{$r->{output_tokens}}", '5 6', 'tokens');

$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, output_len => 99 }]);
$r = $t->ask('generate', %run);
is("$r->{category}: $r->{text}", 'other: max_tokens is more than there is',
	'what an engine raises in a run is its own');
$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, output_len => undef }]);
calls($t);
$t->ask('put', is_first => $yes, requests => [$two[0],
	{ %{$two[1]}, lora => { name => '3', id => 3, path => 'x' } }]);
$t->ask('generate', %run);
($call) = calls($t);
is_deeply($call->{lora}, [undef, { lora_name => '3', lora_int_id => 3, lora_path => '/adapters/x' }],
	'adapters, found before');

# ---- chat, beam search, encoding ----

my $part = { type => 'image_url', image_url => { url => 'data:image/png;base64,AA==' } };
my $said = [{ role => 'system', content => 'S' }, { role => 'user', content => 'U' }];
$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, media => [$part] },
	{ prompt => '', prompt_len => 1, output_len => 2, messages => $said }]);
$r = $t->ask('chat', %run, temperature => 0, ignore_eos => $no);
is("@{$r->{output_tokens}}", '5 2', 'chat');
($call) = calls($t);
is_deeply($call->{messages}, [[{ role => 'user', content => [{ type => 'text', text => 'a b c' },
	$part] }], $said], 'a text is one message with its media, a conversation stays as it is');
is($call->{params}[0]{temperature}, 0, 'greedy');
$r = $t->ask('chat', %run, prequeue => $yes);
is($r->{category}, 'unsupported', 'this release cannot queue conversations');
calls($t);

$t->ask('put', is_first => $yes, requests => [{ %{$two[0]}, output_len => 6 }, $two[1]]);
$r = $t->ask('beam', %run, n => 3);
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '3 2 / 18 18',
	'the sequences of a beam without their prompts');
($call) = calls($t);
is_deeply($call->{params}, { beam_width => 3, max_tokens => 6, ignore_eos => $yes },
	'how wide, how long');
$r = $t->ask('encode', %run);
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '3 2 / 0 0', 'encode');
($call) = calls($t);
is($call->{task}, 'embed', 'as the model can');

is_deeply($t->ask('mm_stats')->{requests}, {}, 'no times of stages unless the engine keeps them');
is($t->ask('profile_start')->{type} . $t->ask('profile_stop')->{type}, 'okok', 'profiler by hand');
is($t->ask('fly')->{category}, 'unsupported', 'a question it does not know');
calls($t);
is($t->ask('shutdown')->{type}, 'ok', 'shutdown');
is($t->over, 0, 'ends with 0');
is(names(calls($t)), 'core.shutdown', 'and ends its engine');

# ---- stages of multimodal preprocessing; the end of the socket ----

$t = worker();
$t->ask('load', args => ['--model', 'm'], mm_stats => $yes);
is_deeply($t->ask('mm_stats')->{requests}, {
	0 => { preprocessor_total_secs => 0.5, encoder_forward_secs => 0.75, num_encoder_calls => 2 },
	1 => { preprocessor_total_secs => 0.25 },
	'x-9' => { encoder_forward_secs => 0.125, num_encoder_calls => 1 },
}, 'ranks work at the same time; an id with a suffix is the one without');
is($t->over, 0, 'the end of the socket is the end of the worker');

# ---- the asynchronous engine ----

$t = worker();
$r = $t->ask('load', args => ['--model', 'm'], async => $yes);
is($r->{type}, 'ok', 'asynchronous') or diag($r->{text});
is($t->ask('describe')->{max_model_len}, 128, 'describe');
$t->ask('put', is_first => $yes, requests => \@two);
$r = $t->ask('generate', %run, n => 2, id_prefix => 'warmup', profile => $yes,
	is_progress => $yes);
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '3 2 / 10 12', 'tokens of all sequences');
@seen = calls($t);
is(names(@seen), 'start_profile async.generate async.generate stop_profile', 'merged streams');
is(join(' ', sort grep { defined } map { $_->{id} } @seen), 'warmup0 warmup1', 'ids');
cmp_ok($r->{began_ns}, '<=', $seen[0]{at_ns}, 'the clock is around');
cmp_ok($r->{ended_ns}, '>=', $seen[-1]{at_ns}, 'all of it');
is($t->ask('chat', %run)->{category}, 'unsupported', 'no chat');
is($t->ask('shutdown')->{type}, 'ok', 'shutdown');
is($t->over, 0, 'ends with 0');
is(names(calls($t)), 'client.shutdown', 'its engine too');

# ---- releases from before; no vLLM at all ----

$t = worker(FAKE_OLD => 1);
unlike("@{$t->{hello}{features}}", qr/prequeue/, 'an old release cannot queue ahead');
is(load($t, 'm')->{type}, 'ok', 'load');
is(names(calls($t)), 'LLM', 'made by name');
$t->ask('put', is_first => $yes, requests => \@two);
is($t->ask('generate', %run, prequeue => $yes)->{category}, 'unsupported', 'prequeue');
is("@{$t->ask('generate', %run)->{output_tokens}}", '5 6', 'generate');
undef $t;
$t = worker(FAKE_OLD => 1);
is($t->ask('load', args => ['--model', 'm'], async => $yes)->{type}, 'ok', 'asynchronous');
undef $t;

mkdir 'none' or die;
$t = worker(PYTHONPATH => 'none', PYTHONNOUSERSITE => 1);
SKIP: {
	skip 'vLLM is installed here', 2 if $t->{hello}{type} eq 'hello';
	is_deeply($t->{hello}, { type => 'error', category => 'missing',
		text => q(No module named 'vllm') }, 'no vLLM');
	is($t->over, 1, 'ends with 1');
}
undef $t;

# ---- the same through the program ----

my %verbs = (env => { PYTHONPATH => $fake, PYTHONDONTWRITEBYTECODE => 1, FAKE_JOURNAL => 'verbs',
	PROFLLM_WORKERS => $workers });
my @asked = qw(--python python3 --tokenizer sim --random-input-len 8 --random-output-len 4);
$r = run(args => [qw(bench throughput --model m --max-model-len 64), @asked, qw(--num-prompts 6
	--num-warmups 2 --output-json t.json)], %verbs);
check_run('throughput', $r, { status => 0, out => ['Throughput: *', 'Engine: vllm 0.32.0-fake *'] });
is(json_of(slurp('t.json'))->{num_requests}, 6, 'six requests');
@seen = calls({ journal => 'verbs' });
is(names(@seen), 'from_engine_args LLM generate generate core.shutdown', 'warm-up and run');
is($seen[1]{max_model_len}, 64, "the engine's arguments reach it");
is(scalar(@{$seen[3]{prompts}}), 6, 'all prompts in one call');

$r = run(args => [qw(bench startup --model m --python python3 --num-iters-cold 1 --num-iters-warm 1
	--output-json s.json)], %verbs);
check_run('startup', $r, { status => 0 });
$r = json_of(slurp('s.json'));
is("@{$r->{cold_compilation_times}}", '1.5', 'compiling');
is(scalar(grep { $_->{call} eq 'LLM' } calls({ journal => 'verbs' })), 3, 'cold, warm-up, warm');

$r = run(args => [qw(bench latency --model too-large --python python3)], %verbs);
check_run('an engine without memory', $r, { status => 1, err => '*CUDA out of memory*' });
$r = run(args => [qw(bench latency --model core-dies --python python3)], %verbs);
check_run('arguments it refuses', $r, { status => 2, err => '*max_num_seqs must be 1*' });

done_testing();
