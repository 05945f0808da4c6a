#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Prompts that are put through the model's chat template: where the template comes from,
# what is sent and counted then, and the server's tokenizer when no files are at hand.
# The simulator's own template is <|ROLE|>, a line end, the content, a line end.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $small = slurp("$FindBin::Bin/../unit/token/small.json");
my $bos = '"bos_token": "<|bos|>"';
my $llama = '"tokenizer_class": "LlamaTokenizer", "add_bos_token": true';
# The plain format that many models share, with a BOS in front: a template that is known.
my $chatml = q({{ bos_token }}{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n')
	. q( + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %})
	. q({{ '<|im_start|>assistant\n' }}{% endif %});

sub model {
	my ($name, $config, $jinja) = @_;

	mkdir $name;
	spew("$name/tokenizer.json", $small);
	spew("$name/tokenizer_config.json", "{$config}") if defined $config;
	spew("$name/chat_template.jinja", $jinja) if defined $jinja;
}

model('plain');
model('known', qq($bos, "chat_template": "$chatml"));
model('twice', qq($bos, $llama, "chat_template": "$chatml"));
model('nobos', qq("chat_template": "$chatml"));
model('other', $bos, '{{ made_up }}');
model('broken', '"chat_template": ');
spew('p.jsonl', qq({"prompt": "one prompt"}\n{"prompt": " word "}\n));

my $sim = start_sim(qw(--model org/m --tokenizer other --requests asked.jsonl));
my @custom = qw(--dataset-name custom --dataset-path p.jsonl --disable-shuffle --num-prompts 2
	--custom-output-len 3 --temperature 0 --progress none --request-id-prefix t-);
my @chat = qw(--backend openai-chat --endpoint /v1/chat/completions);
my $twice_put = 'WARNING: prompts are put through the chat template twice, *';
my $twice_bos = 'WARNING: prompts begin with the BOS token of the chat template *';

my $chatml_text = ["<|im_start|>user\none prompt<|im_end|>\n<|im_start|>assistant\n",
	"<|im_start|>user\n word <|im_end|>\n<|im_start|>assistant\n"];
my $with_bos = [map { "<|bos|>$_" } @$chatml_text];
my $sims = ["<|user|>\none prompt\n<|assistant|>\n", "<|user|>\n word \n<|assistant|>\n"];
my $bare = ['one prompt', ' word '];

# name, model, source in the result, prompts, lines on stderr, arguments
my @rows = (
	['no template', 'plain', 'none', $bare, []],
	['a known template', 'known', 'known', $with_bos, []],
	['a BOS on top of the template\'s', 'twice', 'known', $with_bos, [$twice_bos]],
	['a template that needs a token nobody gives', 'nobos', 'server', $sims, []],
	['a template nobody knows', 'other', 'server', $sims, []],
	['texts of the user', 'other', 'flags', ["<u>\none prompt</u>", "<u>\n word </u>"], [],
		'--chat-prefix', '<u>\n', '--chat-suffix', '<\x2fu>'],
	['one text of the user', 'plain', 'flags', ['a: one prompt', 'a:  word '], [],
		'--chat-prefix', 'a: '],
	['skipped', 'known', 'skipped', $bare, [], '--skip-chat-template'],
	['variables', 'known', 'server', $sims, [], '--chat-template-kwargs.thinking', 'true'],
	['chat', 'known', 'known', $with_bos, [$twice_put], @chat],
	['chat, skipped', 'known', 'skipped', $bare, [], @chat, '--skip-chat-template'],
	['chat, no template', 'plain', 'none', $bare, [], @chat],
);
for my $row (@rows) {
	my ($name, $model, $source, $prompts, $lines, @args) = @$row;
	my $r = run(args => [qw(bench serve --model org/m --tokenizer), $model, '--port', $sim->{port},
		@custom, @args, qw(--save-result --result-filename r.json --dump-workload w.jsonl)]);
	my @workload = map { json_of($_) } split /\n/, slurp('w.jsonl') // '';
	my $count = run(args => [qw(tokenizer count --jsonl --add-special-tokens --tokenizer), $model],
		in => slurp('w.jsonl') // '');
	my @said = grep { !/tokenizer gives another length/ } $r->{err} =~ /^(WARNING: .*)$/mg;

	check_run($name, $r, { status => 0, warn => $lines });
	is(scalar @said, scalar @$lines, "$name: nothing else is said") or diag($r->{err});
	is_deeply([map { $_->{prompt} } @workload], $prompts, "$name: what is sent");
	is(join(' ', map { $_->{prompt_len} } @workload), join(' ', $count->{out} =~ /(\d+)/g),
		"$name: what is counted");
	is(json_of(slurp('r.json'))->{profllm}{chat_template}, $source, "$name: the source");
	unlink 'r.json', 'w.jsonl';
}
is(json_of((run(args => [qw(bench serve --model org/m --tokenizer plain --port), $sim->{port},
	qw(--num-prompts 1 --random-input-len 4 --random-output-len 2 --progress none --save-result
	--result-filename r.json)]), slurp('r.json'))[1])->{profllm}{chat_template}, undef,
	'a dataset without templates');

# ---- refused ----

my $help = 'give the text before and after a user message with --chat-prefix and --chat-suffix, or use '
	. '--skip-chat-template';
my $json = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
my $no = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
my $bytes = '{"tokens": [1, 2, 3]}';
my $other = sprintf("%sContent-Length: %d\r\n\r\n%s", $json, length $bytes, $bytes);
my @refused = (
	['nothing is asked in a dry run', 'other', undef, "the chat template of other is unknown, "
		. "and the server cannot apply it (a dry run sends nothing to it): $help "
		. '(prompts are sent unchanged)',
		'--dry-run'],
	['no /tokenize', 'other', [$no], "the chat template of other is unknown, and the server "
		. "cannot apply it (http://127.0.0.1:*/tokenize: HTTP status 404): $help "
		. "(prompts are sent unchanged)"],
	['no /tokenize, chat', 'other', [$no], "*$help (the chat endpoint applies it)", @chat],
	['another tokenizer', 'other', [$other], '*the server cannot apply it (the chat template of * does '
		. 'not contain the message exactly once): *'],
	['variables without a server', 'known', [$no], 'the chat template of known is unknown with '
		. '--chat-template-kwargs, and *', '--chat-template-kwargs.x', '1'],
	['a broken file', 'broken', undef, 'broken/tokenizer_config.json is not JSON: *', '--dry-run'],
);
for my $row (@refused) {
	my ($name, $model, $answers, $message, @args) = @$row;
	my $port = $answers ? start_raw(@$answers)->{port} : 1;
	my $r = run(args => [qw(bench serve --model org/m --tokenizer), $model, '--port', $port, @custom,
		@args]);

	check_run($name, $r, { status => 1, err => "profllm bench serve: $message" });
}

# ---- the server's tokenizer ----

for my $args ([@custom], [qw(--num-prompts 20 --random-input-len 30 --random-output-len 2 --progress
	none --request-id-prefix t- --seed 7)]) {
	my @dumps;

	for my $tokenizer ([qw(--tokenizer other)], []) {
		my $r = run(args => [qw(bench serve --model org/m --port), $sim->{port}, @$args, @$tokenizer,
			qw(--dump-workload w.jsonl)]);

		check_run("tokenizer: @$tokenizer", $r, { status => 0, warn => @$tokenizer ? [] :
			['WARNING: no tokenizer "org/m": *; the server\'s own tokenizer is used, *'] });
		push @dumps, slurp('w.jsonl');
	}
	is($dumps[1], $dumps[0], 'the server\'s tokenizer gives the same prompts and lengths');
}
check_run('a server that does not tokenize', run(args => [qw(bench serve --model org/m --port),
	start_raw($no)->{port}, @custom]), { status => 1, err =>
	'profllm bench serve: no tokenizer for model org/m (name one with --tokenizer, or use '
	. '--skip-tokenizer-init): no tokenizer "org/m": *' });
check_run('a tokenizer that was named', run(args => [qw(bench serve --model org/m --tokenizer org/m
	--port), $sim->{port}, @custom]), { status => 1, err =>
	'profllm bench serve: no tokenizer "org/m": *' });
stop_all();
my ($kwargs) = grep { /"kwargs|chat_template_kwargs/ } split /\n/, slurp('asked.jsonl');
like(json_of($kwargs)->{body}, qr/"chat_template_kwargs": \{"thinking": true\}/,
	'variables go to the server');

done_testing();
