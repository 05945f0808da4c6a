#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# workers/hf_worker.py on a transformers package that only notes how it was called (fake_engines/):
# which prompts are in a batch, what is inside the clock, and what is counted as a token.
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
my $journal = spew('journal', '');
my ($yes, $no) = (JSON::PP::true, JSON::PP::false);
my %run = (n => 1, temperature => 1, top_p => 1, ignore_eos => $no, detokenize => $yes);

sub worker {
	return Talk->new(command => ['python3', "$workers/hf_worker.py"], log => 'log',
		env => { PYTHONPATH => "$FindBin::Bin/fake_engines", FAKE_JOURNAL => $journal,
			PYTHONDONTWRITEBYTECODE => 1 });
}

sub calls {
	my @lines = split /\n/, slurp($journal);
	spew($journal, '');
	return map { JSON::PP::decode_json($_) } @lines;
}

sub names { return join ' ', map { $_->{call} } @_ }

sub text {
	my ($words, $output) = @_;
	return { prompt => join(' ', ('w') x $words), prompt_len => $words, output_len => $output };
}

my $t = worker();
is("$t->{hello}{engine} $t->{hello}{version}", 'hf 5.0.0', 'hello');
my $r = $t->ask('load', args => ['--model', 'm', '--dtype', 'int3']);
is("$r->{category}: $r->{text}", 'flag: --dtype int3: PyTorch has no such type', 'a type that is none');
$r = $t->ask('load', args => ['--dtype', 'auto']);
is($r->{category}, 'flag', 'no model');
$r = $t->ask('load', args => ['--model=m', '--dtype=bfloat16', '--trust_remote_code',
	'--enforce-eager', '--seed', '3']);
is($r->{type}, 'ok', 'load') or diag(slurp('log'));
is_deeply($t->{between}, [{ type => 'line',
	text => 'transformers has no use for --enforce-eager' }], 'what it has no use for is said');
my ($load) = calls();
is_deeply($load->{keys}, [qw(dtype revision trust_remote_code)], 'what the model is loaded with');
cmp_ok($r->{began_ns}, '<=', $load->{at_ns}, 'inside the clock');
is($t->ask('describe')->{max_model_len}, 512, 'describe');
is($t->ask('render', messages => [{ role => 'user', content => 'Hi' }])->{text}, '<user>Hi', 'render');

# ---- batches ----

# At most three at once, and not more than 2,048 tokens of the longest prompt and output together.
my @requests = (text(2, 6), text(3, 4), text(1, 5), text(4, 4), text(1, 2045), text(9, 2045), text(2, 4));
is($t->ask('put', is_first => $yes, requests => \@requests)->{n}, 7, 'put');
$r = $t->ask('generate', %run, batch_max => 3, is_progress => $yes);
is($r->{type}, 'ok', 'generate') or diag(slurp('log'));
my @seen = calls();
is(names(@seen), join(' ', ('tokenize generate decode') x 5), 'one batch after another');
is(join(' ', map { $_->{n} } grep { $_->{call} eq 'tokenize' } @seen), '3 1 1 1 1', 'who is in which');
is(join(' ', map { $_->{max} } grep { $_->{call} eq 'generate' } @seen), '6 4 2045 2045 4',
	'each runs to its longest output');
is($seen[0]{pad}, '</s>', 'the end of text is what a llama is padded with');
cmp_ok($r->{began_ns}, '<=', $seen[0]{at_ns}, 'tokenizing is inside the clock');
cmp_ok($r->{ended_ns}, '>=', $seen[-1]{at_ns}, 'text too');
is("@{$r->{prompt_tokens}}", '2 3 1 4 1 9 2', 'prompts without their padding');
is("@{$r->{output_tokens}}", '6 3 6 4 2045 2045 4', 'answers up to their ends');
is_deeply($t->{between}[-1], { type => 'progress', done => 7, total => 7 }, 'progress');

$t->ask('put', is_first => $yes, requests => [@requests[0 .. 3]]);
$r = $t->ask('generate', %run, n => 2, ignore_eos => $yes, detokenize => $no);
@seen = calls();
is(names(@seen), 'tokenize generate', 'no text unless it is wanted');
is("$seen[1]{min} $seen[1]{how}{temperature}", '6 1', 'ends are ignored by a least length');
is("@{$r->{output_tokens}}", '12 12 12 12', 'tokens of all sequences');

$t->ask('put', is_first => $yes, requests => [
	map { { prompt => [1 .. 4], prompt_len => 4, output_len => 3 } } 1 .. 2]);
$r = $t->ask('beam', %run, n => 2, ignore_eos => $yes);
is("@{$r->{prompt_tokens}} / @{$r->{output_tokens}}", '4 4 / 6 6', 'beams, of token ids');
is((calls())[0]{how}{num_beams}, 2, 'as wide as was asked for');

# ---- what it cannot do ----

is($t->ask('generate', %run, profile => $yes)->{category}, 'unsupported', 'profiling');
$r = $t->ask('put', is_first => $yes, requests => [{ %{$requests[0]}, media => [{}] }]);
is($r->{category}, 'unsupported', 'media');
$r = $t->ask('put', is_first => $yes, requests => [{ %{$requests[0]}, output_len => undef }]);
is($r->{category}, 'unsupported', 'no output length');
is($t->ask('chat')->{category}, 'unsupported', 'chat');
is($t->ask('shutdown')->{type}, 'ok', 'shutdown');
is($t->over, 0, 'ends with 0');

$t = worker();
$r = $t->ask('load', args => ['--model', 'm'], compile => $yes);
$t->ask('put', is_first => $yes, requests => [text(2, 3)]);
calls();
$t->ask('generate', %run);
ok((calls())[1]{compiled}, 'compiled');
undef $t;

done_testing();
