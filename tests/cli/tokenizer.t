#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `tokenizer encode|decode|count|show|compile`: forms of input and output, mistakes with their
# place, order under any number of threads, pipes that are slow, closed or full.
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use IPC::Open2;
use Test::More;

$ENV{PROFLLM_CACHE_DIR} = abs_path('.') . '/cache';
my $sim = '--tokenizer=sim';

# The small vocabulary of the unit tests, with a BOS around texts.
my $around = '{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|bos|>","type_id":0}},'
	. '{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<|bos|>":{"id":"<|bos|>",'
	. '"ids":[656],"tokens":["<|bos|>"]}}}';
my $small = abs_path(spew('small.json', slurp("$FindBin::Bin/../unit/token/small.json")
	=~ s/"post_processor":null/"post_processor":$around/r));

# The built-in tokenizer's rule (token/tokenizer.h), written a second time.
sub sim_ids {
	my ($bytes) = @_;
	my @ids;

	utf8::encode($bytes) if utf8::is_utf8($bytes);
	while ($bytes =~ /\G(?:(<\|end\|>)| ([a-z])([a-z])([a-z])|(.))/gs) {
		push @ids, defined $1 ? 17832 : defined $2 ?
			256 + (ord($2) - 97) * 676 + (ord($3) - 97) * 26 + ord($4) - 97 : ord $5;
	}
	return @ids;
}

spew('a.txt', " abc\n");
spew('b.txt', " the end<|end|>");
spew('nul.txt', "a\0b");
spew('empty', '');
spew('ok.jsonl', qq(" abc"\n{"id": 1, "prompt": " the"}\n{"prompt": "x", "text": "\\u0000"}\n""\n));
spew('bad.jsonl', qq("a"\n"b"\n[1]\n"c"\n));

# ---- what goes in and what comes out ----

my $s8 = join ' ', sim_ids(" the end<|end|>");
# Verb and arguments, standard input, standard output.
my @rows = (
	[[qw(encode)], " abc\n", "284 10\n"],
	[[qw(encode)], '', "\n"],
	[[qw(encode -)], "a\0b", "97 0 98\n"],
	[[qw(encode nul.txt)], '', "97 0 98\n"],
	[[qw(encode a.txt - b.txt empty)], "x", "284 10\n120\n$s8\n\n"],
	[[qw(encode --jsonl)], '', ''],
	[[qw(encode --jsonl ok.jsonl)], '', qq({"ids": [284]}\n{"ids": [13286]}\n{"ids": [0]}\n)
		. qq({"ids": []}\n)],
	[[qw(encode --jsonl ok.jsonl -)], ' "x" ', qq({"ids": [284]}\n{"ids": [13286]}\n{"ids": [0]}\n)
		. qq({"ids": []}\n{"ids": [120]}\n)],
	[[qw(encode --jsonl)], qq("\\ud83d\\ude00"\r\n"\\ud83d"\n"\xff"\n"<|end|>"),
		qq({"ids": [240, 159, 152, 128]}\n{"ids": [239, 191, 189]}\n{"ids": [239, 191, 189]}\n)
		. qq({"ids": [17832]}\n)],
	[[qw(decode)], "284 10", " abc\n"],
	[[qw(decode)], "284\t 10\n\n 97\r\n", " abc\na"],
	[[qw(decode)], "97 17832 98", "a<|end|>b"],
	[[qw(decode --skip-special-tokens)], "97 17832 98", "ab"],
	[[qw(decode)], "97 0 98", "a\0b"],
	[[qw(decode)], "255 97", "\xef\xbf\xbda"],
	[[qw(decode --jsonl)], qq([284, 10]\n{"x": 0, "ids": [0, 195, 169]}\n[]\n),
		qq({"text": " abc\\n"}\n{"text": "\\u0000\\u00e9"}\n{"text": ""}\n)],
	[[qw(count)], " abc\n", "2\n"],
	[[qw(count a.txt)], '', "2\n"],
	[[qw(count a.txt - empty)], 'xyz', "2 a.txt\n3 standard input\n0 empty\n5 total\n"],
	[[qw(count --jsonl ok.jsonl a.jsonl)], '', "1\n1\n1\n0\n3\n"],
);
spew('a.jsonl', '"abc"');
for my $row (@rows) {
	my ($args, $in, $out) = @$row;
	for my $threads (1, 3) {
		my $r = run(args => ['tokenizer', @$args, $sim, '--threads', $threads], in => $in);
		is("$r->{status} $r->{out}$r->{err}", "0 $out", "@$args, $threads threads");
	}
}

is(run(args => [qw(tokenizer count --tokenizer sim --text), 'hello'])->{out}, "5\n",
	'a text as an argument is counted');
is(run(args => [qw(tokenizer encode --tokenizer sim --text), 'a b'])->{out}, "97 32 98\n", 'or encoded');

# ---- a tokenizer with a file ----

my $plain = run(args => ['tokenizer', 'encode', '--tokenizer', $small], in => "the state<|eos|> of");
like($plain->{out}, qr/^[0-9 ]+ 657 [0-9 ]+\n$/, 'special tokens in a text are parsed');
my $more = run(args => ['tokenizer', 'encode', '--tokenizer', $small, '--add-special-tokens'],
	in => "the state<|eos|> of");
is($more->{out}, "656 $plain->{out}", 'and --add-special-tokens puts the BOS before it');
is(run(args => ['tokenizer', 'count', '--tokenizer', $small, '--add-special-tokens'],
	in => "the state<|eos|> of")->{out}, scalar(split ' ', $more->{out}) . "\n", 'and is counted');
is(run(args => ['tokenizer', 'decode', '--tokenizer', $small], in => $more->{out})->{out},
	'<|bos|>the state<|eos|> of', 'the ids decode to the text');
is(run(args => ['tokenizer', 'decode', '--tokenizer', $small, '--skip-special-tokens'],
	in => $more->{out})->{out}, 'the state of', 'without special tokens');

# ---- mistakes ----

# Verb and arguments, standard input, exit status, sentence, what was written before.
my $text_wanted = 'expected a string, or an object with a string "text" or "prompt", got';
my $ids_wanted = 'expected token ids, whole numbers from 0 to 4294967295, got';
my @bad = (
	[[qw(encode --jsonl bad.jsonl)], '', 1, "bad.jsonl:3: $text_wanted [1]", 2],
	[[qw(encode --jsonl a.jsonl bad.jsonl)], '', 1, "bad.jsonl:3: $text_wanted [1]", 3],
	[[qw(count --jsonl)], qq("a"\n\n"b"\n), 1, 'standard input:2: not one JSON value: *', 1],
	[[qw(encode --jsonl)], qq("a"\n{"prompt": 5}\n), 1, "standard input:2: $text_wanted *", 1],
	[[qw(encode --jsonl)], '"a" "b"', 1,
		'standard input:1: expected one JSON value, but more text follows it', 0],
	[[qw(encode --jsonl)], '"a', 1, 'standard input:1: not one JSON value: line 1, column *', 0],
	[[qw(encode --jsonl)], '[' x 100, 1, 'standard input:1: not one JSON value: *', 0],
	[[qw(encode --jsonl)], 'x' x 300, 1, 'standard input:1: not one JSON value: *', 0],
	[[qw(decode)], "97\n98 x\n", 1, "standard input:2: $ids_wanted 'x'", 0],
	[[qw(decode)], '-1', 1, "standard input:1: $ids_wanted '-1'", 0],
	[[qw(decode)], '4294967296', 1, "standard input:1: $ids_wanted '4294967296'", 0],
	[[qw(decode --jsonl)], qq([1]\n[1, "2"]), 1, "standard input:2: $ids_wanted '\"2\"'", 1],
	[[qw(decode --jsonl)], '[1.5]', 1, "standard input:1: $ids_wanted '1.5'", 0],
	[[qw(decode --jsonl)], '[[1]]', 1, "standard input:1: $ids_wanted '[[]1]'", 0],
	[[qw(decode --jsonl)], '"a"', 1, 'standard input:1: expected an array of ids, or an object with one '
		. 'as "ids", got "a"', 0],
	[[qw(encode a.txt no.txt b.txt)], '', 1, 'cannot open no.txt: No such file or directory; '
		. 'arguments are files, a text is given with --text', 1],
	[[qw(decode no.txt)], '', 1, 'cannot open no.txt: No such file or directory', 0],
	[[qw(count --text a a.txt)], '', 2, "--text and files are mutually exclusive, got 'a.txt'", 0],
	[[qw(encode --jsonl --text), '{'], '', 1, 'not one JSON value: *', 0],
	[[qw(encode .)], '', 1, 'cannot read .: Is a directory', 0],
	[[qw(encode big)], '', 1, 'big is longer than the limit of 268435456 bytes', 0],
);
truncate(spew('big', ''), 1 + (256 << 20)) or die;
for my $row (@bad) {
	my ($args, $in, $status, $sentence, $lines) = @$row;
	for my $threads (1, 3) {
		my $r = run(args => ['tokenizer', @$args, $sim, '--threads', $threads], in => $in);
		(my $pattern = $sentence) =~ s/\[\[\]1\]/[1]/;
		check_run("@$args, $threads threads: $sentence", $r, { status => $status,
			err => "profllm tokenizer $args->[0]: $pattern\n" =~ s/\n//r });
		is(($r->{out} =~ tr/\n//), $lines, 'lines before it') if $args->[0] ne 'decode' || $lines;
	}
}
check_run('ids that name no token', run(args => [qw(tokenizer decode), $sim], in => '97 17833 98 99999'),
	{ status => 0, out => ['ab'], err => 'WARNING: 2 ids are not tokens of sim and were skipped' });

# ---- many lines by many threads ----

my @texts = map { ' abc' x ($_ * 7919 % 97) . " $_" } 1 .. 20000;
spew('many.jsonl', join "\n", map { qq("$_") } @texts);
my $want = join '', map { '{"ids": [' . join(', ', sim_ids($_)) . "]}\n" } @texts;
for my $threads (1, 2, 7, 64) {
	my $r = run(args => ['tokenizer', 'encode', $sim, '--jsonl', '--threads', $threads, 'many.jsonl',
		'many.jsonl', '--timing']);
	ok($r->{status} eq 0 && $r->{out} eq $want x 2, "40,000 lines in order, $threads threads");
	check_run('--timing', $r, { status => 0,
		err => "load * ms; * bytes, * ids in * s: * MB/s, * ids/s, $threads threads" });
	my $back = run(args => ['tokenizer', 'decode', $sim, '--jsonl', '--threads', $threads], in => $want);
	ok($back->{out} eq join('', map { qq({"text": "$_"}\n) } @texts), 'and back');
}
my @broken = map { qq("$_") } @texts;
@broken[12344, 12345, 19000] = ('{', '5', '');
spew('broken.jsonl', join "\n", @broken);
for my $threads (1, 2, 64) {
	my $r = run(args => ['tokenizer', 'count', $sim, '--jsonl', '--threads', $threads, 'broken.jsonl']);
	check_run("the first of several bad lines, $threads threads", $r, { status => 1,
		err => 'profllm tokenizer count: broken.jsonl:12345: not one JSON value: *' });
	is(($r->{out} =~ tr/\n//), 12344, 'all lines before it and none after');
}
my @files = map { spew("f$_", $texts[$_]) } 1 .. 300;
my $counts = run(args => ['tokenizer', 'count', $sim, '--threads', 5, @files])->{out};
my $sum = 0;
is($counts, join('', map { $sum += my $n = sim_ids($texts[$_]); "$n f$_\n" } 1 .. 300) . "$sum total\n",
	'300 files in order');

# ---- pipes ----

for my $threads (1, 2) {
	my $pid = open2(my $from, my $to, 'sh', '-c',
		"exec $program tokenizer encode --jsonl $sim --threads $threads 2>/dev/null");
	my @answers;

	$to->autoflush(1);
	local $SIG{ALRM} = sub { kill 'KILL', $pid };
	alarm 20;
	for my $text (' abc', ' the') {
		print $to qq("$text"\n);
		push @answers, scalar <$from>;
	}
	is(join('', grep { defined } @answers), qq({"ids": [284]}\n{"ids": [13286]}\n),
		"a line is answered before the next one comes, $threads threads");
	print $to "oops\n";
	is(scalar <$from>, undef, 'a bad line ends it while the input is still open');
	waitpid $pid, 0;
	is($? >> 8, 1, 'exit status');
	alarm 0;
	close $to;
}
my $closed = run(command => ['bash', '-c', "$program tokenizer encode $sim --jsonl many.jsonl many.jsonl "
	. '| head -n 1 >/dev/null; exit ${PIPESTATUS[0]}']);
check_run('standard output closed early', $closed, { status => 1, err => 'profllm tokenizer encode: cannot '
	. 'write to standard output: Broken pipe' });
SKIP: {
	skip 'no /dev/full', 1 unless -c '/dev/full';
	my $full = run(command => ['sh', '-c', "$program tokenizer encode $sim a.txt >/dev/full"]);
	check_run('a full disk', $full, { status => 1, err => 'profllm tokenizer encode: cannot write '
		. 'to standard output: No space left on device' });
}
SKIP: {
	my $why = no_script();
	skip $why, 1 if $why;
	# Far more than any machine reads before the first bar is due; ended as soon as that is there.
	my $files = join ' ', ('many.jsonl') x 1000;
	my $t = begin(command => ['script', '-q', '-e', '-f', '-c',
		"$program tokenizer encode $sim --jsonl --threads 1 $files >/dev/null", 'typescript']);
	wait_for('a bar', sub { (slurp($t->{out_path}) // '') =~ /\rRead: .*\]/ || has_exited($t->{pid}) });
	kill 'TERM', $t->{pid};
	like(finish($t)->{out}, qr{\rRead: +\d+%\|[# ]{24}\| [\d.]+/[\d.]+ MB \[},
		'what takes long draws a bar');
}

# ---- show and compile ----

my $show = run(args => [qw(tokenizer show --tokenizer), $small]);
check_run('show', $show, { status => 0, err => '', out => ["Tokenizer        $small",
	'Format           tokenizer.json', 'Model            byte-level BPE, * merges',
	'Before a text    656 <|bos|>', 'Pre-tokenizer    *Split "*',
	'Cut by           scanner *', 'Compiled form    not made: *',
	'Chat template    no'] });
my $facts = json_of(run(args => [qw(tokenizer show --json --tokenizer), $small])->{out});
is_deeply([@$facts{qw(name path format model is_byte_level ids_before ids_after vocab_size)}],
	[$small, $small, 'tokenizer.json', 'BPE', JSON::PP::true, [656], [], 656], 'show --json');
is($facts->{pre_tokenizer}{type}, 'Sequence', 'with the stages of the file');
check_run('show of the built-in one', run(args => ['tokenizer', 'show', $sim]), { status => 0, err => '',
	out => ['Vocabulary       17832 tokens, ids below 17833', 'File             none, it is built in'] });
is(json_of(run(args => ['tokenizer', 'show', $sim, '--json'])->{out})->{id_limit}, 17833, 'likewise as JSON');

my $compiled = run(args => [qw(tokenizer compile --tokenizer), $small]);
check_run('compile', $compiled, { status => 0, err => '', out => ['Compiled form:     *cache/*',
	'Size:              * MB', 'Loads from source: * ms', 'Loads compiled:    * ms'] });
my ($path) = $compiled->{out} =~ /^Compiled form: +(.*)$/m;
ok(-s $path, 'the compiled form is there');
check_run('show afterwards', run(args => [qw(tokenizer show --tokenizer), $small]), { status => 0,
	out => ['Compiled form    * MB, in use: *'] });
is(run(args => ['tokenizer', 'encode', '--tokenizer', $small], in => "the state<|eos|> of")->{out},
	$plain->{out}, 'and gives the same ids');
check_run('compile sim', run(args => ['tokenizer', 'compile', $sim]), { status => 2,
	err => 'profllm tokenizer compile: --tokenizer sim is built in: it has no file to compile' });
check_run('compile without a cache', run(args => [qw(tokenizer compile --tokenizer), $small],
	env => { PROFLLM_CACHE_DIR => '' }), { status => 1, err => 'profllm tokenizer compile: *' });

done_testing();
