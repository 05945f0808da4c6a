#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# workers/llama_worker on a library that is strict about what it decodes (fake_engines/fake_llama.c):
# every token of every prompt, every sampled token back in its place, nothing else.
use strict;
use warnings;
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Talk;
use Test::More;

my $build = dirname($program);
-e "$build/workers/fake/libllama.so" or plan skip_all =>
	"there is no $build/workers/fake/libllama.so; make suite builds it";
my ($yes, $no) = (JSON::PP::true, JSON::PP::false);
my %run = (n => 1, temperature => 1, top_p => 1, ignore_eos => $yes, detokenize => $no);
spew('m.gguf', 'GGUF and more');

sub worker {
	my (%env) = @_;
	return Talk->new(command => ["$build/workers/llama_worker"], log => 'log',
		env => { PROFLLM_LIBLLAMA => "$build/workers/fake/libllama.so", FAKE_JOURNAL => 'journal',
			%env });
}

sub load { my ($t, @args) = @_; return $t->ask('load', args => ['--model', 'm.gguf', @args]) }

sub calls {
	my $text = slurp('journal') // '';
	unlink 'journal';
	return split /\n/, $text;
}

sub put {
	my ($t, @requests) = @_;
	return $t->ask('put', is_first => $yes,
		requests => [map { { prompt => $_->[0], output_len => $_->[1] } } @requests]);
}

# Tokens of prompts and tokens fed back, over all steps.
sub steps {
	my ($prompts, $back, $n) = (0, 0, 0);
	for (@_) {
		next unless /^step (\d+) (\d+)$/;
		$prompts += $1;
		$back += $2;
		$n++;
	}
	return "$prompts+$back in $n";
}

# ---- the library ----

my $t = worker(PROFLLM_LIBLLAMA => "$build/workers/none.so");
is($t->{hello}{category}, 'missing', 'no library');
like($t->{hello}{text}, qr/PROFLLM_LIBLLAMA may name it.*none\.so/, 'which one');
is($t->over, 1, 'ends with 1');
$t = worker(PROFLLM_LIBLLAMA => 'libm.so.6');
like($t->{hello}{text}, qr/^libm\.so\.6 has no llama_\w+: a llama\.cpp from/, 'another library');
undef $t;
$t = worker(FAKE_STRANGE => 1);
is($t->{hello}{type}, 'hello', 'a library whose parameters stand elsewhere');
my $r = load($t);
like($r->{text}, qr/has other parameters of a context than this program knows: number 1 is 4096/,
	'is refused before it is used');
undef $t;

# ---- loading ----

$t = worker();
is_deeply($t->{hello}, { type => 'hello', protocol => 1, engine => 'llama', version => '0.0.7',
	features => [] }, 'hello');
is($t->ask('generate', %run)->{text}, 'no model is loaded', 'a run before load');
is(load($t, '--max-num-seqs', 'x')->{category}, 'flag', 'no number');
is(load($t, '--max-num-seqs', '0')->{category}, 'flag', 'no sequences');
is(load($t, '--max-num-seqs', '65')->{text}, '--max-num-seqs 65: llama.cpp takes at most 64', 'too many');
is(load($t, '--max-num-seqs', '64', '--max-model-len', '2000')->{category}, 'memory', 'no room');
is($t->ask('load', args => ['--model', 'none.gguf'])->{category}, 'model', 'no such file');
is($t->ask('load', args => [])->{category}, 'flag', 'no model');
spew('text', 'This is no model');
is($t->ask('load', args => ['--model', 'text'])->{category}, 'model', 'not GGUF');
is($t->ask('load', args => ['--model', 'm.gguf'], async => $yes)->{category}, 'unsupported', 'async');
calls();
$r = load($t, '--max_num_seqs=3', '--enforce-eager', '--max-num-batched-tokens', '8', '--seed', '5',
	'--threads', '1');
is($r->{type}, 'ok', 'load') or diag($r->{text});
is(join(', ', calls()), 'context 768 8 8 3, threads 1 1', 'a context for three, of the trained length');
$r = $t->ask('describe');
is_deeply([@$r{qw(engine max_model_len max_num_seqs vocab_size model_type)}],
	['llama', 256, 3, 1000, 'a fake model'], 'describe');

# ---- runs: the library ends itself when a token is not where it should be ----

is(put($t, ['hello', 4], [[10, 11], 1], ['x', 6], ['a longer prompt, more than a step', 2],
	['y', 3])->{n}, 5, 'put');
$r = $t->ask('generate', %run, is_progress => $yes);
is($r->{type}, 'ok', 'generate') or diag(slurp('log'));
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '5 2 1 33 1 / 4 1 6 2 3', 'what it counts');
cmp_ok($r->{began_ns}, '<=', $r->{ended_ns}, 'in this order');
is_deeply($t->{between}[-1], { type => 'progress', done => 5, total => 5 }, 'progress');
my @calls = calls();
like(steps(@calls), qr/^42\+11 in /, 'each prompt once, each answer fed back but for its last token');
is((grep { /^dist/ } @calls)[0], 'dist 5', 'the seed');
is(scalar(grep { /^piece/ } @calls), 0, 'no text unless it is wanted');

$r = $t->ask('generate', %run, n => 2, temperature => 0.5, top_p => 0.9, detokenize => $yes);
is("@{$r->{output_tokens}}", '8 2 12 4 6', 'two sequences of each');
@calls = calls();
like(steps(@calls), qr/^84\+22 in /, 'twice the tokens');
is(join(' ', grep { /^(temp|top_p)/ } @calls), 'temp 0.50 top_p 0.90 1', 'as it is to be sampled');
is(scalar(grep { /^piece/ } @calls), 32, 'a piece of text for each token');

put($t, [[990], 20], [[990], 5]);
$r = $t->ask('generate', %run, temperature => 0, ignore_eos => $no);
is("@{$r->{output_tokens}}", '9 5', 'the end of text ends it');
is((calls())[0], 'greedy', 'greedy');
$r = $t->ask('generate', %run);
is("@{$r->{output_tokens}}", '20 5', 'unless it is ignored');
put($t, [[1, 2], undef]);
is($t->ask('generate', %run)->{output_tokens}[0], 254, 'no length: as long as there is room');

# ---- what it refuses ----

put($t, [[(1) x 250], 7]);
like($t->ask('generate', %run)->{text}, qr/^request 0 has 250 tokens and asks for 7: more than/, 'long');
is(put($t, [[1000], 1])->{text}, '1000 is no token id of this model', 'an id that is none');
is(put($t, ['', 1])->{type}, 'ok', 'no prompt');
is($t->ask('generate', %run)->{text}, 'request 0 has no tokens', 'is told in the run');
is(put($t, ['x', 0])->{type}, 'error', 'no output');
$r = $t->ask('put', requests => [{ prompt => 'x', output_len => 1, media => [{}] }]);
is($r->{category}, 'unsupported', 'media');
put($t, ['x', 1]);
is($t->ask('generate', %run, profile => $yes)->{category}, 'unsupported', 'profiling');
is($t->ask('beam', %run)->{category}, 'unsupported', 'beams');
is($t->ask('generate', %run)->{output_tokens}[0], 1, 'and goes on');
is(load($t)->{type}, 'ok', 'another model after it');
calls();
is($t->ask('shutdown')->{type}, 'ok', 'shutdown');
is($t->over, 0, 'ends with 0');
is(join(', ', calls()), 'context_free 1, model_free 1', 'and gives back what it had');

# ---- the same through the program ----

my %verbs = (env => { PROFLLM_LIBLLAMA => "$build/workers/fake/libllama.so",
	FAKE_JOURNAL => 'journal' });
$r = run(args => [qw(bench throughput --backend llama --model m.gguf --tokenizer sim --num-prompts 20
	--random-input-len 8 --random-output-len 4 --max-num-seqs 4 --output-json t.json)], %verbs);
check_run('throughput', $r, { status => 0, out => ['Total num output tokens:  80', 'Engine: llama *'] });
$r = run(args => [qw(bench latency --backend llama --model m.gguf --input-len 8 --output-len 4
	--batch-size 6 --num-iters-warmup 1 --num-iters 2 --output-json l.json)], %verbs);
check_run('latency', $r, { status => 0, out => ['Avg latency: *'] });
$r = run(args => [qw(bench latency --backend llama --model none.gguf)], %verbs);
check_run('no such model', $r, { status => 1, err => '*no such model file: none.gguf*' });

done_testing();
