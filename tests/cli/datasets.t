#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Datasets from the user's own files, end to end: what a run would send, what it sends to the
# simulator, and what is said of files that are not as they should be.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use MIME::Base64 qw(encode_base64);
use Test::More;

# ---- files ----

sub turn { return qq({"from": "x", "value": "$_[0]"}) }
sub entry { return '{"conversations": [' . turn($_[0]) . ', ' . turn($_[1]) . "]$_[2]}" }

# A millisecond of silence: 8 samples of 16 bits.
my $wav = 'RIFF' . pack('V', 36 + 16) . 'WAVEfmt ' . pack('VvvVVvv', 16, 1, 1, 8000, 16000, 2, 16)
	. 'data' . pack('V', 16) . "\0" x 16;
# One red pixel.
my $png = "\x89PNG\r\n\x1a\n" . join '', map { pack('N', length($_) - 4) . $_ . pack('N', crc32($_)) }
	'IHDR' . pack('NNCCCCC', 1, 1, 8, 2, 0, 0, 0),
	'IDAT' . "\x78\x01\x01\x04\x00\xfb\xff\x00\xff\x00\x00\x03\x01\x01\x00", 'IEND';

sub crc32 {
	my $crc = 0xffffffff;

	for my $byte (unpack 'C*', $_[0]) {
		$crc ^= $byte;
		$crc = $crc & 1 ? $crc >> 1 ^ 0xedb88320 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

spew('chats.json', '[' . join(', ', entry('first prompt', 'first answer', ', "image": "http://h/a.png"'),
	entry('second prompt', 'second', ', "video": "v.mp4"'), '{"conversations": []}',
	entry('no', 'too short', '')) . ']');
spew('own.jsonl',
	qq({"prompt": "one", "output_tokens": 3}\n\n{"output_tokens": 4.0, "prompt": "caf\\u00e9"}\n));
spew('images.jsonl', qq({"prompt": "what is it", "image_files": ["a.png", "https://h/b.jpg"]}\n)
	. qq({"content": [{"type": "text", "text": "one "}, {"type": "image", "image": "a.png"}, )
	. qq({"type": "text", "text": "two"}, {"image_url": {"detail": "low", "url": "file:///c.png"}, )
	. qq("type": "image_url"}]}\n));
spew('image.jsonl', qq({"prompt": "what", "image_files": ["a.png"]}\n));
spew('a.png', $png);
spew('sounds.jsonl', qq({"prompt": "say it", "audio": "a.wav"}\n)
	. qq({"prompt": "again", "audio": {"array": [0, 0.5, -1], "sampling_rate": 16000}}\n)
	. qq({"prompt": "pair", "audio": [[0.25], 8000]}\n));
spew('a.wav', $wav);
spew('question.jsonl', join '', map { qq({"question_id": $_, "category": ") . ($_ % 2 ? 'qa' : 'math')
	. qq(", "turns": ["question $_", "more"]}\n) } 0 .. 5);
mkdir 'speed';
spew('speed/qualitative.jsonl',
	qq({"messages": [{"role": "user", "content": "fast?"}], "category": "rag"}\n));
mkdir 'raw';
spew('raw/README.md', "---\nconfigs:\n- config_name: qualitative\n  data_files: rows.json\n---\n");
spew('raw/rows.json',
	qq([{"turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"], "category": "qa"},)
	. qq({"turns": ["a real one", "b"], "category": "qa"}]));
mkdir 'notices';
spew('notices/README.md', slurp('raw/README.md'));
spew('notices/rows.json', qq([{"turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"]}]));
spew('poem.txt', join '', map { " $_ abc def ghi jkl\n" } qw(one two six ten));
spew('trace.jsonl', qq({"timestamp": 0, "input_length": 20, "output_length": 3, "hash_ids": [1, "b"]}\n)
	. qq({"timestamp": 40, "input_length": 10, "output_length": 2, "hash_ids": [1]}\n));
spew('epoch.jsonl', join '', map { qq({"timestamp": 170000000000$_, "input_length": 10, )
	. qq("output_length": 2, "hash_ids": [1]}\n) } 0 .. 2);
spew('named.jsonl', qq({"t": 1, "in": 3, "out": 2, "h": [7]}\n));

my @serve = qw(bench serve --model sim --tokenizer sim --temperature 0 --progress none
	--request-id-prefix t-);
my @chat = qw(--backend openai-chat --endpoint /v1/chat/completions);
my @order = qw(--disable-shuffle --no-oversample);
my @wrap = ('--chat-prefix', '<u>', '--chat-suffix', '</u>');

sub set {
	my ($name, $path, @more) = @_;
	return ('--dataset-name', $name, '--dataset-path', $path, @more);
}

sub part { return { type => $_[0], $_[0] => { url => $_[1] } } }
sub text { return { type => 'text', text => $_[0] } }
sub message { return [{ role => 'user', content => [@_] }] }

# ---- what would be sent ----

# name, arguments, warnings, then for each request: prompt, its tokens, tokens asked for, and
# what else the line has
my @two_images = (part('image_url', 'file://a.png'), part('image_url', 'https://h/b.jpg'));
my @four_parts = (text('one '), part('image_url', 'file://a.png'), text('two'),
	{ type => 'image_url', image_url => { url => 'file:///c.png', detail => 'low' } });
my $chunk = [5709, 4768, 13360, 11833, 8271, 11408, 13375, 17592, 2325, 6264];
my @rows = (
	['sharegpt', [set('sharegpt', 'chats.json'), @order],
		['WARNING: images, videos and sound are not sent by *'],
		['first prompt', 9, 9, media => [part('image_url', 'http://h/a.png')]],
		['second prompt', 10, 6, media => [part('video_url', 'file://v.mp4')]]],
	['sharegpt as chat', [set('sharegpt', 'chats.json'), @order, @chat, '--enable-multimodal-chat',
		qw(--sharegpt-output-len 7)], [],
		[message(text('first prompt'), part('image_url', 'http://h/a.png')), 9, 7],
		[message(text('second prompt'), part('video_url', 'file://v.mp4')), 10, 7]],
	['custom', [set('custom', 'own.jsonl'), @order, qw(--custom-output-len -1), @wrap], [],
		['<u>one</u>', 10, 3], ["<u>caf\x{e9}</u>", 12, 4]],
	['custom, all rows', [set('custom', 'own.jsonl'), @order, qw(--num-prompts 0)], [],
		['one', 3, 256], ["caf\x{e9}", 5, 256]],
	['custom, without a tokenizer', [set('custom', 'own.jsonl'), @order, '--skip-tokenizer-init'], [],
		['one', 1, 1], ["caf\x{e9}", 1, 1]],
	['custom, repeated', [set('custom', 'image.jsonl'), '--disable-shuffle', qw(--num-prompts 3)], [],
		(['what', 4, 256]) x 3],
	['custom_image', [set('custom_image', 'images.jsonl'), @order, @chat], [],
		['what is it', 10, 256, media => [@two_images]],
		[[@four_parts], 4, 256]],
	['custom_mm as chat', [set('custom_mm', 'images.jsonl'), @order, @chat, '--enable-multimodal-chat'],
		[],
		[message(text('what is it'), @two_images), 10, 256],
		[message(@four_parts), 4, 256]],
	['custom_audio', [set('custom_audio', 'sounds.jsonl'), @order, @chat, '--enable-multimodal-chat'], [],
		['say it', 6, 256, media => [{ type => 'input_audio',
			input_audio => { data => encode_base64($wav, ''), format => 'wav' } }]],
		['again', 5, 256, media => '*'], ['pair', 4, 256, media => '*']],
	['spec_bench', [set('spec_bench', 'question.jsonl'), @order, qw(--spec-bench-category qa
		--skip-chat-template), @wrap], ['WARNING: --skip-chat-template has no effect: *'],
		['<u>question 1</u>', 17, 256], ['<u>question 3</u>', 17, 256],
		['<u>question 5</u>', 17, 256]],
	['speed_bench', [set('speed_bench', 'speed'), @order, '--skip-chat-template'], [],
		['fast?', 5, 4096]],
	['speed_bench of the hub', [set('speed_bench', 'raw'), @order, qw(--speed-bench-output-len 5)],
		['WARNING: 1 of 2 rows hold a notice instead of a prompt and are skipped'],
		['a real one', 4, 5]],
	['timed_trace', [set('timed_trace', 'trace.jsonl'), qw(--timed-trace-sec-multiplier 0.001)],
		['WARNING: the trace has 2 rows: *'],
		['*', 20, 3, timestamp_s => 0, due_s => 0],
		[$chunk, 10, 2, timestamp_s => 0.04, due_s => 0.04]],
	['timed_trace, other names', [set('timed_trace', 'named.jsonl'), qw(--num-prompts 1
		--timed-trace-label-timestamp t --timed-trace-label-input-length in
		--timed-trace-label-output-length out
		--timed-trace-label-hash-ids h --timed-trace-chunk-hash-size 2 --no-self-timed)], [],
		['*', 2, 2, timestamp_s => 1, due_s => 0]],
);

sub same {
	my ($got, $want) = @_;
	return 1 if !ref $want && $want eq '*' && defined $got;
	return JSON::PP->new->canonical->allow_nonref->encode($got)
		eq JSON::PP->new->canonical->allow_nonref->encode($want) if ref $want;
	return defined $got && ($got eq $want
		|| (!grep { !/^[\d.e-]+$/ } $got, $want) && $got == $want);
}

for my $row (@rows) {
	my ($name, $args, $warnings, @requests) = @$row;
	my $r = run(args => [@serve, qw(--num-prompts 9), @$args, qw(--dry-run --dump-workload w.jsonl)]);
	my @got = map { json_of($_) } split /\n/, slurp('w.jsonl') // '';
	my @why;

	check_run($name, $r, { status => 0, warn => $warnings });
	push @why, scalar(@got) . ' requests, not ' . @requests if @got != @requests;
	for my $i (0 .. $#requests) {
		my ($prompt, $len, $output, %more) = @{$requests[$i]};
		%more = (%more, prompt => $prompt, prompt_len => $len, output_len => $output,
			request_id => "t-$i");
		for my $key (sort keys %more) {
			push @why, "request $i: $key" unless same($got[$i]{$key}, $more{$key});
		}
		push @why, "request $i has media" if !$more{media} && $got[$i]{media};
	}
	ok(!@why, "$name: the requests") or diag(join "\n", @why, slurp('w.jsonl'), $r->{err});
	unlink 'w.jsonl';
}

# ---- draws ----

sub prompts {
	my (@args) = @_;
	my $r = run(args => [@serve, @args, qw(--dry-run --dump-workload w.jsonl)]);
	my @prompts = map { json_of($_)->{prompt} } split /\n/, slurp('w.jsonl') // '';

	unlink 'w.jsonl';
	return (\@prompts, $r);
}

my ($zero) = prompts(set('spec_bench', 'question.jsonl'), qw(--num-prompts 6), @wrap);
my ($five, $r) = prompts(set('spec_bench', 'question.jsonl'), qw(--num-prompts 6 --seed 5), @wrap);
is_deeply($five, $zero, 'spec_bench: --seed changes nothing, as upstream');
ok(has_line($r->{err}, 'WARNING: --seed does not change this dataset, as in vLLM; *'), '... and it is said');
isnt("@$zero", join(' ', map { "<u>question $_</u>" } 0 .. 5), 'spec_bench is shuffled');

my @sonnet = (set('sonnet', 'poem.txt'), qw(--num-prompts 4 --sonnet-input-len 80 --sonnet-prefix-len 55),
	@wrap);
my ($one, $said) = prompts(@sonnet);
my ($same) = prompts(@sonnet);
my ($other) = prompts(@sonnet, qw(--seed 3));
my $begins = "<u>Pick as many lines as you can from these poem lines:\n one abc def ghi jkl\n";
is(scalar(grep { /^\Q$begins\E.*\n<\/u>$/s } @$one), 4, 'sonnet: instruction, shared lines, drawn lines')
	or diag($said->{err}, @$one);
is_deeply($same, $one, 'sonnet: the same seed, the same prompts');
isnt("@$other", "@$one", 'sonnet: another seed, other prompts');

my $mix = '[{"weight": 3, "dataset-name": "custom", "dataset-path": "own.jsonl", "custom-output-len": 5},'
	. ' {"weight": 1, "dataset-name": "random", "random-input-len": 6}]';
my ($mixed, $mixing) = prompts(qw(--dataset-name mix --num-prompts 200 --mix), $mix);
is(scalar @$mixed, 200, 'mix: so many requests') or diag($mixing->{err});
my $own = grep { /^(one|caf.)$/ } @$mixed;
ok($own > 120 && $own < 180, "mix: three of four are from the first set ($own of 200)");

# ---- what is sent ----

my $sim = start_sim(qw(--requests asked.jsonl));
sub bodies {
	my @all = map { json_of($_) } split /\n/, slurp('asked.jsonl') // '';
	my @new = splice @all, $_[0];
	return map { json_of($_->{body}) } grep { length $_->{body} } @new;
}
my @sent = (
	['chat with an image', [@chat, set('custom_image', 'image.jsonl'),
		'--custom-ensure-client-side-data'],
		sub { $_[0]{messages}[0]{content}[1]{image_url}{url} =~ m{^data:image/png;base64,iVBOR} }],
	['chat with sound', [@chat, set('custom_audio', 'sounds.jsonl'), '--enable-multimodal-chat'],
		sub { $_[0]{messages}[0]{content}[1]{input_audio}{format} eq 'wav' }],
	['a trace', [set('timed_trace', 'trace.jsonl'), qw(--timed-trace-sec-multiplier 0.001)],
		sub { $_[0]{ignore_eos} && "@{$_[0]{prompt}}[0 .. 9]" eq "@$chunk" },
		['timed-trace: chunk_size: *, sec_multiplier: 0.001, label_ts: "timestamp", *']],
	['a mix', [qw(--dataset-name mix --mix), $mix], sub { $_[0]{prompt} }],
);
for my $row (@sent) {
	my ($name, $args, $is_right, $lines) = @$row;
	my $before = () = (slurp('asked.jsonl') // '') =~ /\n/g;
	my $run = run(args => [@serve, '--port', $sim->{port}, @$args,
		qw(--num-prompts 2 --disable-shuffle)]);
	my @body = grep { $_->{stream} } bodies($before);

	check_run("$name is answered", $run, { status => 0,
		out => ['Successful requests: * 2 *', @{$lines // []}] });
	ok(@body == 2 && $is_right->($body[0]), "$name: the body")
		or diag(substr slurp('asked.jsonl'), -2000);
}

# ---- pipes ----

# A shell's <(...), its |, and a named pipe; a set that is read twice (warm-up, points).
spew('pipe.jsonl', join '', map { qq({"prompt": "prompt number $_"}\n) } 1 .. 9);
spew('pipe.csv', join '', "Timestamp,Model,Request tokens,Response tokens\n", map { "$_,GPT-4,$_,5\n" }
	4 .. 9);
spew('pipe.txt', join '', map { "line $_\n" } 1 .. 200);
for (['a file', 'custom', '/dev/stdin', 'cat pipe.jsonl'],
	['a compressed one', 'custom', '/dev/stdin', 'gzip -c pipe.jsonl'],
	['CSV', 'burstgpt', '/dev/stdin', 'cat pipe.csv'],
	['a poem', 'sonnet', '/dev/fd/0', 'cat pipe.txt']) {
	my ($name, $set, $path, $from) = @$_;
	my @show = ($program, qw(dataset show --tokenizer sim --num-prompts 3 --examples 0), '--dataset-name',
		$set, qw(--chat-prefix u --sonnet-prefix-len 50 --dataset-path), $path);

	check_run("a pipe: $name", run(command => ['bash', '-c', "$from | " . join ' ', @show]),
		{ status => 0, out => ["Workload: 3 requests from dataset $set; *"] });
}
check_run('fewer rows than requests', run(args => [qw(dataset show --tokenizer sim --dataset-name custom
	--skip-chat-template --num-prompts 3 --examples 0 --custom-output-len -1
	--dataset-path own.jsonl)]), { status => 0,
	err => '*own.jsonl has 2 requests to send, so 1 of the 3 are repeats, which a *' });
unlike(run(args => [qw(dataset show --tokenizer sim --dataset-name custom --skip-chat-template
	--num-prompts 2 --examples 0 --dataset-path own.jsonl)])->{err}, qr/repeats/, 'as many rows');
spew('twice.jsonl', qq({"prompt": "a"}\n{"prompt": "b"}\n{"prompt": "a"}\n));
check_run('rows that repeat', run(args => [qw(dataset show --tokenizer sim --dataset-name custom
	--skip-chat-template --num-prompts 3 --examples 0 --dataset-path twice.jsonl)]), { status => 0,
	warn => ['WARNING: twice.jsonl: 1 of the 3 prompts repeats an earlier one, which a prefix cache '
		. 'answers faster: --prompt-salt request makes all different'] });
check_run('a mix with fewer requests than sets', run(args => [qw(dataset show --tokenizer sim
	--dataset-name mix --num-prompts 1 --examples 0 --mix), '[{}, {}]']), { status => 0,
	out => ['Workload: 1 request from dataset mix; *'] });
check_run('a pipe: a shell\'s file', run(command => ['bash', '-c', "$program dataset show --tokenizer sim "
	. '--dataset-name custom --skip-chat-template --num-prompts 3 --examples 0 --dataset-path '
	. '<(cat pipe.jsonl)']), { status => 0, out => ['Workload: 3 requests *'] });
check_run('a pipe: with a name', run(command => ['bash', '-c', "mkfifo named; cat pipe.jsonl >named & "
	. "exec $program dataset show --tokenizer sim --dataset-name custom --skip-chat-template "
	. '--num-prompts 3 --examples 0 --dataset-path named']),
	{ status => 0, out => ['Workload: 3 requests *'] });
check_run('a pipe: drawn from twice', run(command => ['bash', '-c', "cat pipe.jsonl | $program bench "
	. 'throughput --backend sim --model sim --dataset-name custom --skip-chat-template --num-prompts 3 '
	. '--custom-output-len 2 --num-warmups 2 --dataset-path /dev/stdin']),
	{ status => 0, out => ['Total num output tokens:  6'] });
check_run('a pipe: at two points', run(command => ['bash', '-c', "cat pipe.jsonl | @{[$program, @serve]} "
	. '--dataset-name custom --skip-chat-template --num-prompts 3 --dry-run --sweep-request-rate 1,2 '
	. '--dataset-path /dev/stdin']), { status => 0, out => ['*2/2: request_rate=2*'] });
check_run('a pipe: with nothing in it', run(args => [@serve, qw(--dry-run --dataset-name custom
	--skip-chat-template --dataset-path /dev/fd/0)], in => ''),
	{ status => 2, err => '*the file has no prompts' });

# ---- what is refused ----

my %bad = (
	'form.jsonl' => '{"prompt": "a"}', 'type.jsonl' => '{"content": [{"type": "sound"}]}',
	'none.jsonl' => '{"content": []}', 'files.jsonl' => '{"prompt": "a", "image_files": []}',
	'part.jsonl' => '{"content": [5]}', 'gone.jsonl' => '{"prompt": "a", "image_files": ["gone.png"]}',
	'sound.jsonl' => '{"prompt": "a", "audio": "gone.wav"}', 'mute.jsonl' => '{"prompt": "a"}',
	'rate.jsonl' => '{"prompt": "a", "audio": {"array": [0], "sampling_rate": 0}}',
	'empty.jsonl' => '', 'turns.jsonl' => '{"turns": []}', 'void.txt' => '',
	'row.jsonl' => '{"when": 1}',
	'later.jsonl' => qq({"prompt": "a"}\n{"prompt": "b", "image_files": "c"}\n),
	'image.json' => '[{"conversations": [{"value": "one two"}, {"value": "three"}], "image": ["a"]}]',
	'text.jsonl' => 'not JSON', 'cut.jsonl' => qq({"prompt": "a"}\n{"prompt": ),
	'number.jsonl' => qq({"prompt": "a"}\n{"prompt": 5}\n),
	'partly.jsonl' => qq({"prompt": "a"}\n{"promt": "b"}\n),
);
spew($_, $bad{$_}) for keys %bad;

my @refused = (
	['line 1 has neither form', [set('custom_image', 'form.jsonl')],
		'form.jsonl:1: a line needs "content", or "prompt" and "image_files"'],
	['a part of no known type', [set('custom_image', 'type.jsonl')],
		'type.jsonl:1: a part of "content" has the type \'sound\'; known are *'],
	['no parts', [set('custom_image', 'none.jsonl')], 'none.jsonl:1: "content" is empty'],
	['no images', [set('custom_image', 'files.jsonl')], 'files.jsonl:1: "image_files" is empty'],
	['a part that is no object', [set('custom_image', 'part.jsonl')], 'part.jsonl:1: each part of *'],
	['images that are no list', [set('custom_image', 'later.jsonl')], 'later.jsonl:1: a line needs *'],
	['an image that is not there', [@chat, set('custom_image', 'gone.jsonl'),
		'--custom-ensure-client-side-data'], 'gone.jsonl: *gone.png*', 1],
	['images in no .jsonl', [set('custom_image', 'chats.json')],
		'--dataset-path chats.json: custom_image datasets are .jsonl files, *'],
	['a recording that is not there', [set('custom_audio', 'sound.jsonl')],
		'sound.jsonl:1: cannot open gone.wav: No such file or directory', 1],
	['no recording', [set('custom_audio', 'mute.jsonl')], 'mute.jsonl:1: no "audio" field'],
	['a recording without a rate', [set('custom_audio', 'rate.jsonl')],
		'rate.jsonl:1: "audio" must be *'],
	['sound for chat without its switch', [@chat, set('custom_audio', 'sounds.jsonl')],
		'custom_audio with --backend openai-chat needs --enable-multimodal-chat: *'],
	['an empty file', [set('spec_bench', 'empty.jsonl')], 'empty.jsonl: the file has no prompts'],
	['no turn', [set('spec_bench', 'turns.jsonl')], 'turns.jsonl:1: "turns" must be text, got []'],
	['no turns', [set('spec_bench', 'row.jsonl')],
		'row.jsonl: no line has a "turns" field; every line needs one, a text'],
	['no such category', [set('spec_bench', 'question.jsonl'), qw(--spec-bench-category art)],
		'question.jsonl: no row has the category \'art\''],
	['no JSON', [set('spec_bench', 'text.jsonl')], 'text.jsonl: line 1, column 1: *'],
	['a line that is cut off', [set('custom', 'cut.jsonl'), '--skip-chat-template'],
		'cut.jsonl: line 2, column 12: the text ends in the middle of a value'],
	['a prompt that is no text', [set('custom', 'number.jsonl'), '--skip-chat-template'],
		'number.jsonl:2: "prompt" must be text, got 5'],
	['a line without a prompt', [set('custom', 'partly.jsonl'), '--skip-chat-template'],
		'partly.jsonl:2: no "prompt" field; every line needs one, a text'],
	['lengths that are no numbers', [qw(--random-input-len-dist histogram:text.jsonl)],
		'--random-input-len-dist: text.jsonl: the weights add up to 0; expected a sum above 0'],
	['a file of lengths that is not there', [qw(--random-input-len-dist histogram:absent.csv)],
		'--random-input-len-dist: cannot open absent.csv: *', 1],
	['a folder without the subset', [set('speed_bench', 'speed'),
		qw(--speed-bench-dataset-subset throughput_1k)],
		'--dataset-path speed has no throughput_1k.jsonl and is not SPEED-Bench itself: *'],
	['nothing but notices', [set('speed_bench', 'notices')],
		'notices: every row is a notice that the data must be fetched; *'],
	['a poem without lines', [set('sonnet', 'void.txt'), @wrap], 'void.txt: the file has no lines'],
	['a poem without a template', [set('sonnet', 'poem.txt')], 'sonnet needs a chat template, *'],
	['a poem in too few tokens', [set('sonnet', 'poem.txt'), qw(--sonnet-input-len 9), @wrap],
		'prompts of 9 tokens are too short for sonnet: the instruction alone has * tokens; raise '
			. '--sonnet-input-len (bench throughput: --input-len)'],
	['a trace without its fields', [set('timed_trace', 'row.jsonl')],
		'row.jsonl:1: no "timestamp" field; '
		. 'the row has: when. --timed-trace-label-timestamp names the field to take'],
	['a trace in milliseconds since 1970', [set('timed_trace', 'epoch.jsonl')],
		'timestamps: request 0 is due 1700000000000.0 s after the start, expected at most a year '
		. '(31536000 s); they look like milliseconds since 1970: subtract the first one from all and '
		. 'use --timed-trace-sec-multiplier 0.001'],
	['a trace in seconds since 1970',
		[set('timed_trace', 'epoch.jsonl'), qw(--timed-trace-sec-multiplier 0.001)],
		'timestamps: request 0 is due 1700000000.0 s after the start, expected at most a year '
		. '(31536000 s); they look like seconds since 1970: subtract the first one from all'],
	['a trace for chat', [@chat, set('timed_trace', 'trace.jsonl')],
		'--dataset-name timed_trace sends token ids, which --backend openai-chat does not take: use '
		. 'vllm or openai'],
	['images in a list', [set('sharegpt', 'image.json')],
		'image.json: row 0: "image" must be a path or URL'],
	['no file and no hub', [qw(--dataset-name sharegpt)], 'sharegpt without --dataset-path takes *', 1],
	['a mix of nothing', [qw(--dataset-name mix --mix []), ], '--mix: the list is empty'],
	['no mix', [qw(--dataset-name mix)], '--dataset-name mix needs --mix, *'],
	['a mix of a mix', [qw(--dataset-name mix --mix), '[{"dataset-name": "mix"}]'],
		'*cannot be a mix'],
	['a mix with a missing file', [qw(--dataset-name mix --mix), '[{"dataset-name": "custom", '
		. '"dataset-path": "absent.jsonl"}]'],
		'set 1 of the mix (custom): cannot open absent.jsonl: *', 1],
	['a mix with too few rows', [qw(--dataset-name mix --mix), '[{"dataset-name": "custom", '
		. '"dataset-path": "own.jsonl", "no-oversample": true}]'],
		'set 1 of the mix (custom) has 2 of the 3 requests that its weight gives it'],
);
for my $row (@refused) {
	my ($name, $args, $why, $status) = @$row;

	check_run("refused: $name", run(args => [@serve, qw(--num-prompts 3 --dry-run), @$args]),
		{ status => $status // 2, err => "profllm bench serve: $why" });
}

stop_all();
done_testing();
