#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Failures of `bench serve` that its environment causes: a table, each with its exit status, its one
# sentence, and what must exist afterwards.
#
# A row is a name and:
#   args     arguments after the smallest workload (three requests of the sim model)
#   plain    1: only args
#   server   arguments of a simulator (its port is given to the command)
#   raw      answers of a canned server instead
#   env, limits   as for Cli::begin
#   and what check_run judges: status, err, warn, out, not_out, exists, gone
# In args, {port} is the server's port. Rows that measure also save a result and a record; `saved`
# is a list of patterns that an error or a failure of the result matches. Bad values of options are
# in bad-options.t.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;
use Time::HiRes qw(sleep time);

my $is_root = $> == 0;
my $never = 'Never received a valid chunk to calculate TTFT.This response will be marked as failed!';
my $all_failed = 'profllm bench serve: * (no request succeeded; 3 failed)';
my $refused = 'cannot connect to http://127.0.0.1:1: Connection refused. Is the server running?';
my $ok = "HTTP/1.1 200 OK\r\n";
my $not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno models";
my $sse = "${ok}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

sub chunk { return sprintf("%x\r\n%s\r\n", length $_[0], $_[0]) }
sub body { return "${ok}Content-Type: $_[0]\r\nContent-Length: " . length($_[1]) . "\r\n\r\n$_[1]" }
sub refusal
{
	return "HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: " . length($_[0]) . "\r\n\r\n$_[0]";
}
my $event = 'data: {"choices":[{"index":0,"text":" a"}]}' . "\n\n";

# ---- files ----

spew('file', '');
spew('empty.json', '');
spew('empty.jsonl', '');
spew('text.json', 'this is no JSON');
spew('cut.json', qq([{"conversations":\n));
spew('list.json', '[]');
spew('object.json', '{}');
spew('short.json', '[{"conversations": [{"value": "a"}, {"value": "b"}]}]');
spew('turn.json', '[{"conversations": [{"value": 7}, {"value": "b"}]}]');
spew('good.jsonl', qq({"prompt": "a good prompt"}\n));
spew('number.jsonl', qq({"prompt": "a"}\n\n{"prompt": 3}\n));
spew('broken.jsonl', qq({"prompt": "a"}\n{"prompt": \n));
spew('other.jsonl', qq({"text": "a"}\n));
spew('list.jsonl', qq({"prompt": "a"}\n["a"]\n));
spew('nonsense.json', '{"model": {"type": "Nonsense", "vocab": {}}}');
spew('unigram.json', '{"model": {"type": "Unigram", "vocab": []}}');
spew('nomodel.json', '{"version": "1.0"}');
mkdir 'folder';

my @sharegpt = qw(--dataset-name sharegpt --dataset-path);
my @custom = qw(--dataset-name custom --dataset-path);
my @tls = eval { make_certificate() } ? qw(--ssl-certfile cert.pem --ssl-keyfile key.pem) : ();

sub make_certificate {
	return 0 if system('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes '
		. '-subj /CN=profllm.test -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout key.pem '
		. '-out cert.pem >/dev/null 2>&1');
	return 1;
}

# ---- the table ----

# Rows of one kind in short: name, arguments, message, files that must not be there.
sub refused {
	my ($kind, $common, @short) = @_;
	my @rows;

	for (@short) {
		my ($name, $args, $err, @gone) = @$_;
		my $status = ref $err ? 2 : 1; # a list: the user's mistake

		$err = $err->[0] if ref $err;
		push @rows, { %$common, name => "$kind: $name", args => [@{$common->{also} || []}, @$args],
			status => $status, err => "profllm bench serve: $err", gone => \@gone };
	}
	return @rows;
}

my @rows = (
	# the server is not there
	{ name => 'name that does not resolve', args => [qw(--host no-such-host.invalid)], status => 1,
	  err => 'profllm bench serve: cannot connect to http://no-such-host.invalid:8000: its name cannot '
		. 'be resolved. Is the URL right?' },
	{ name => 'name that does not resolve, model asked for', plain => 1,
	  args => [qw(--tokenizer sim --host no-such-host.invalid)], status => 1,
	  err => 'profllm bench serve: cannot connect to http://no-such-host.invalid:8000: its name cannot '
		. 'be resolved. Is the URL right?' },
	{ name => 'name that does not resolve, ready check', status => 1,
	  args => [qw(--host no-such-host.invalid --ready-check-timeout-sec 1)],
	  warn => ["WARNING: Endpoint is not ready. Error='cannot resolve host 'no-such-host.invalid': *'"],
	  err => 'profllm bench serve: Initial test run failed - Please make sure benchmark arguments are '
		. "correctly specified. Error: cannot resolve host 'no-such-host.invalid': *" },
	# reported before a tokenizer is looked for, which this model does not have
	{ name => 'refused port', plain => 1, args => [qw(--model nobody/nothing --port 1)], status => 1,
	  err => "profllm bench serve: $refused", not_out => ['Starting*', '===*'] },
	{ name => 'refused port, two servers', server => [], status => 1,
	  args => [qw(--base-urls http://127.0.0.1:{port} http://127.0.0.1:1)],
	  err => "profllm bench serve: $refused", not_out => ['Starting*'] },
	{ name => 'refused port, model asked for', plain => 1, args => [qw(--tokenizer sim --port 1)],
	  status => 1, err => "profllm bench serve: $refused" },
	{ name => 'refused port, ready check', args => [qw(--port 1 --ready-check-timeout-sec 1)],
	  status => 1,
	  warn => ["WARNING: Endpoint is not ready. Error='cannot connect to 127.0.0.1:1: *refused'"],
	  err => '*Initial test run failed*Error: cannot connect to 127.0.0.1:1: Connection refused' },
	{ name => 'socket that is not there', args => [qw(--base-url unix:/no/socket)],
	  status => 1, not_out => ['Starting*'], err => 'profllm bench serve: cannot connect to '
		. 'unix:/no/socket: No such file or directory. Is the server running?' },
	{ name => 'refused proxy', args => [], server => [], status => 1,
	  env => { map { $_ => 'http://name:word@127.0.0.1:1' } qw(HTTP_PROXY http_proxy) },
	  err => 'profllm bench serve: cannot connect to the proxy 127.0.0.1:1: Connection refused. Is it '
		. 'running?' },
	{ name => 'proxy that is no URL', args => [], server => [], status => 2,
	  env => { HTTP_PROXY => 'gopher://h:1', http_proxy => 'gopher://h:1' },
	  err => "profllm bench serve: *gopher*" },

	# the wrong server, or the wrong place on it
	{ name => 'wrong path', args => [qw(--endpoint /v2/completions)], server => [], status => 1,
	  err => 'profllm bench serve: 404 Not Found: no route /v2/completions; check '
		. '--base-url, --endpoint and --model (POST http://127.0.0.1:{port}/v2/completions) (no '
		. 'request succeeded; 3 failed)',
	  out => ['Failed, http_status: * 3 *',
		'  3 x Not Found: *"message":"no route /v2/completions"*'],
	  not_out => ['Error 0: *', 'Mean*', '*throughput*', 'Client lag*'],
	  saved => ['Not Found: *no route*'] },
	{ name => 'base URL with the beginning of the path', status => 1, server => [],
	  args => [qw(--base-url http://127.0.0.1:{port}/v1)], not_out => ['Starting*'],
	  err => 'profllm bench serve: POST http://127.0.0.1:{port}/v1/v1/completions: 404; did you mean '
		. '--base-url http://127.0.0.1:{port} (the endpoint /v1/completions is added)?' },
	{ name => 'wrong path, model asked for', plain => 1, raw => [$not_found],
	  args => [qw(--tokenizer sim --port {port})], status => 1,
	  err => "*at http://127.0.0.1:{port}/v1/models. Check that:\n*\nError: HTTP status 404" },
	{ name => 'models that are no JSON', plain => 1, raw => [body('text/html', '<html>')],
	  args => [qw(--tokenizer sim --port {port})], status => 1,
	  err => "*Check that:\n*\nError: *line 1, column 1: expected a value*" },
	{ name => 'no model at the server', plain => 1, raw => [body('application/json', '{"data": []}')],
	  args => [qw(--tokenizer sim --port {port})], status => 1,
	  err => 'profllm bench serve: No models found on the server at http://127.0.0.1:{port}. Make sure '
		. 'the server is running and has models loaded.' },
	{ name => 'model the server does not have', plain => 1, server => [], status => 1,
	  args => [qw(--model nobody/nothing --num-prompts 2 --random-input-len 8 --port {port})],
	  err => 'profllm bench serve: the server at http://127.0.0.1:{port} has no model '
		. '"nobody/nothing"; it serves: sim', not_out => ['Starting*'] },
	{ name => 'path of another backend', server => [], status => 1,
	  args => [qw(--port {port} --endpoint /v1/chat/completions)],
	  warn => ['WARNING: --endpoint /v1/chat/completions expects the requests of --backend openai-chat, '
		. 'but --backend openai sends those of /v1/completions'],
	  err => 'profllm bench serve: 400 Bad Request: messages is missing *' },
	{ name => 'a name for the requests where the model is asked for', plain => 1, server => [],
	  status => 0,
	  args => [qw(--tokenizer sim --served-model-name other --num-prompts 2 --random-input-len 8
		--port {port})], warn => ['WARNING: --served-model-name has no effect without --model: *'] },
	{ name => 'model that is not listed, at a server that may have it', plain => 1, status => 1,
	  args => [qw(--tokenizer sim --model other --num-prompts 2 --random-input-len 8 --port {port})],
	  raw => [body('application/json', '{"data": [{"id": "one"}]}')],
	  err => 'profllm bench serve: * (no request succeeded; 2 failed)', out => ['Starting main*'] },
	{ name => 'model the server does not have, ready check', plain => 1, server => [], status => 1,
	  args => [qw(--tokenizer sim --model other --num-prompts 2 --random-input-len 8 --port {port}
		--ready-check-timeout-sec 1)],
	  err => '*Initial test run failed*Error: *The model `other` does not exist.*' },
	{ name => 'missing key', plain => 1, server => [qw(--api-key k)], status => 1,
	  args => [qw(--model nobody/nothing --port {port})], not_out => ['Starting*'],
	  err => 'profllm bench serve: the server at http://127.0.0.1:{port} requires a key (401): set '
		. "OPENAI_API_KEY or pass --header 'Authorization=Bearer ...'" },
	{ name => 'missing key, model asked for', plain => 1, server => [qw(--api-key k)], status => 1,
	  args => [qw(--port {port})],
	  err => 'profllm bench serve: the server at * requires a key (401): *' },
	{ name => 'wrong key', args => [], server => [qw(--api-key k)], status => 1,
	  env => { OPENAI_API_KEY => 'another' },
	  err => 'profllm bench serve: the server at http://127.0.0.1:{port} refuses the key (401): check '
		. "OPENAI_API_KEY or --header 'Authorization=Bearer ...'" },
	{ name => 'wrong key, by --header', server => [qw(--api-key k)], status => 1,
	  args => ['--header', 'Authorization=Bearer x'],
	  err => 'profllm bench serve: the server at * refuses the key (401): *' },
	{ name => 'right key', args => [], server => [qw(--api-key k)], status => 0, err => '',
	  env => { OPENAI_API_KEY => 'k' }, out => ['Successful requests: * 3 *'] },
	{ name => 'key that only a request finds wrong', args => [], status => 1,
	  server => [qw(--fault status=403)],
	  err => 'profllm bench serve: 403 Forbidden: this server fails on purpose; the server at * refuses '
		. 'access (403): set *' },
	{ name => 'redirect', args => [], status => 1, err => $all_failed,
	  raw => ["HTTP/1.1 308 Permanent Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"],
	  out => ['  3 x Permanent Redirect*'] },

	# TLS
	{ name => 'https to a plain port', args => [qw(--base-url https://127.0.0.1:{port})], server => [],
	  status => 1, not_out => ['Starting*'],
	  err => 'profllm bench serve: the server at https://127.0.0.1:{port} does not speak TLS on this '
		. 'port; use http://127.0.0.1:{port}' },
	{ name => 'http to a TLS port', args => [], server => \@tls, status => 1, needs_tls => 1,
	  err => 'profllm bench serve: the server at http://127.0.0.1:{port} speaks TLS on this port; use '
		. 'https://127.0.0.1:{port}' },
	{ name => 'certificate nobody vouches for', args => [qw(--base-url https://127.0.0.1:{port})],
	  server => \@tls, status => 1, needs_tls => 1, not_out => ['Starting*'],
	  err => 'profllm bench serve: TLS: *self-signed certificate*' },
	{ name => 'certificate of another name', args => [qw(--base-url https://localhost:{port}
		--cacert cert.pem)], server => \@tls, status => 1, needs_tls => 1,
	  err => 'profllm bench serve: TLS: *localhost*' },
	{ name => 'certificate vouched for', args => [qw(--base-url https://127.0.0.1:{port}
		--cacert cert.pem)], server => \@tls, status => 0, err => '', needs_tls => 1,
	  out => ['Successful requests: * 3 *'] },
	{ name => 'certificate not looked at', args => [qw(--base-url https://localhost:{port} --insecure)],
	  server => \@tls, status => 0, err => '', needs_tls => 1, out => ['Successful requests: * 3 *'] },
	{ name => 'CA file without a certificate', args => [qw(--base-url https://127.0.0.1:{port}
		--cacert text.json)], server => \@tls, status => 2, needs_tls => 1,
	  err => "profllm bench serve: TLS: cannot use CA file 'text.json': *" },

	# answers
	{ name => 'HTTP error with a body', args => [], server => [qw(--fault status=503)], status => 1,
	  err => $all_failed,
	  out => ['  3 x Service Unavailable: {"error":{"message":"this server fails on purpose*'],
	  saved => ['Service Unavailable: {"error"*'] },
	{ name => 'keys that the server refuses', status => 1, err => $all_failed,
	  args => [qw(--ignore-eos --top-k 5)],
	  raw => [refusal("{'detail': \"Unexpected keys: {'ignore_eos', 'repetition_penalty'}\"}")],
	  out => ["  3 x Unprocessable Entity: *; the request has that key: "
		. "--omit-body-keys repetition_penalty,ignore_eos "
		. 'removes it'],
	  saved => ['*--omit-body-keys repetition_penalty,ignore_eos removes it'] },
	{ name => 'a key that was not sent', status => 1, err => $all_failed, args => [],
	  raw => [refusal('top_kk, repetition_penalty_, and the prompt')],
	  out => ['  3 x Unprocessable Entity: top_kk, repetition_penalty_, and the prompt'] },
	{ name => 'keys that are left out', server => [qw(--requests sent.jsonl)], status => 0, err => '',
	  args => ['--omit-body-keys', 'repetition_penalty,ignore_eos', '--extra-body', '{"logprobs": null}'],
	  out => ['Successful requests: * 3 *'] },
	{ name => 'HTTP error without a body', args => [], status => 1, err => $all_failed,
	  raw => ["HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"], out => ['  3 x Oops*'] },
	{ name => 'HTTP error with control characters', args => [], status => 1, err => $all_failed,
	  raw => ["HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\n\e[2Jx"],
	  out => ['  3 x Bad: ?[2Jx'] },
	{ name => 'some requests fail', server => [qw(--fault status=500:id=t-1)], status => 0, err => '',
	  args => [qw(--request-id-prefix t-)],
	  out => ['Error 0: Internal Server Error', 'Successful requests: * 2 *', 'Failed requests: * 1 *'],
	  saved => ['Internal Server Error: *'] },
	{ name => 'some requests fail, --strict', server => [qw(--fault status=500:id=t-1)], status => 3,
	  args => [qw(--request-id-prefix t- --strict)], err => '',
	  out => ['  DEGRADED (every metric): 33.3 % of the requests failed (limit *'] },
	{ name => 'a page instead of a stream', args => [], status => 1, err => $all_failed,
	  raw => [body('text/html', "<html>\n<p>Welcome</p>\n</html>\n")],
	  out => ["  3 x $never: the answer's Content-Type is not text/event-stream"],
	  saved => ["$never*Content-Type is not text/event-stream"] },
	{ name => 'JSON instead of a stream', args => [], status => 1, err => $all_failed,
	  raw => [body('application/json', '{"choices": [{"text": "a"}]}')],
	  out => ["  3 x $never: the answer's Content-Type is not text/event-stream"] },
	{ name => 'stream without events', args => [], status => 1, err => $all_failed,
	  raw => [$sse . chunk("data: [DONE]\n\n") . "0\r\n\r\n"],
	  out => ["  3 x $never*"] },
	{ name => 'event that is no JSON', args => [], server => [qw(--fault malformed@2)], status => 1,
	  err => $all_failed, out => ['  1 x a stream event is not JSON: {"id":*', 'Failed, *: * 3 *'],
	  saved => ['a stream event is not JSON: *'] },
	{ name => 'error inside a stream', args => [], server => [qw(--fault error-event@2)], status => 1,
	  err => $all_failed, out => ['  3 x *the engine failed on purpose*'] },
	{ name => 'error inside a stream, as upstream has it', server => [qw(--fault error-event@2)],
	  args => [qw(--compat stream-error)], status => 0, err => '',
	  out => ['Successful requests: * 3 *'] },
	{ name => 'stream that is cut', args => [], server => [qw(--fault close@3)], status => 1,
	  err => $all_failed,
	  out => ['  3 x the server closed the connection before the answer was complete*'],
	  saved => ['the server closed the connection*'] },
	{ name => 'stream that is cut inside an event', args => [], status => 1, err => $all_failed,
	  raw => [$sse . chunk($event) . "40\r\ndata: {\"choi"],
	  out => ['  3 x the server closed the connection before the answer was complete*'] },
	{ name => 'body shorter than its length', args => [], status => 1, err => $all_failed,
	  raw => ["${ok}Content-Type: text/event-stream\r\nContent-Length: 900\r\n\r\n$event"],
	  out => ['  3 x the server closed the connection before the answer was complete*'] },
	{ name => 'stream that is reset', args => [], server => [qw(--fault reset@2)], status => 1,
	  err => $all_failed,
	  out => ['  3 x connection lost while reading from 127.0.0.1:{port}: Connection reset by peer*'] },
	{ name => 'answer that is no HTTP', args => [], raw => ["220 mail ready\r\n\r\n"], status => 1,
	  err => $all_failed, out => ['  3 x what the server sent does not begin with HTTP/1*'] },
	{ name => 'connection closed without an answer', args => [], raw => [''], status => 1,
	  err => $all_failed,
	  out => ['  3 x *closed*'] },
	{ name => 'answer that takes too long', args => [qw(--request-timeout 0.2)], status => 1,
	  err => $all_failed,
	  server => [qw(--fault stall@2=5s --ttft-ms 1 --itl-ms 1)],
	  out => ['  3 x no complete answer within 0.2 s*', 'Failed, timeout: * 3 *'],
	  saved => ['no complete answer within 0.2 s'] },

	# datasets
	refused('dataset', { also => ['--dry-run'] },
	['missing file', [@sharegpt, 'no.json'], 'cannot open no.json: No such file or directory'],
	['missing custom file', [@custom, 'no.jsonl'], 'cannot open no.jsonl: No such file or directory'],
	['directory', [@sharegpt, 'folder'], 'cannot read folder: not a regular file'],
	['empty file', [@sharegpt, 'empty.json'], ['empty.json has no request that passes the length '
		. 'filter; nothing to send']],
	['no JSON', [@sharegpt, 'text.json'],
		["text.json: line 1, column 1: expected a value, found 'this is no JSON'"]],
	['no list', [@sharegpt, 'object.json'], ['object.json: no entry has two turns; a ShareGPT file is '
		. 'one JSON array of objects with "conversations"']],
	['empty list', [@sharegpt, 'list.json'], ['list.json has no request that passes the length filter; '
		. 'nothing to send']],
	['empty list without repeats', [@sharegpt, 'list.json', '--no-oversample'],
		['No requests provided.']],
	['only short conversations', [@sharegpt, 'short.json'],
		['short.json has no request that passes the length filter; nothing to send']],
	['turn without text', [@sharegpt, 'turn.json'],
		['turn.json: row 0: turn 0 of the conversation has no text "value"']],
	['empty custom file', [@custom, 'empty.jsonl'], ['empty.jsonl: the file has no prompts']],
	['cut off', [@sharegpt, 'cut.json'],
		['cut.json: line 2, column 1: the text ends in the middle of a value']],
	['custom file that is no .jsonl', [@custom, 'empty.json'],
		['--dataset-path empty.json: custom datasets are .jsonl files, one JSON object with '
		. '"prompt" per line']],
	['line that is no JSON', [@custom, 'broken.jsonl'],
		['broken.jsonl: line 2, column 12: the text ends in the middle of a value']],
	['line that is no object', [@custom, 'list.jsonl'], ['list.jsonl:2: expected an object, found *']],
	['prompt that is not text', [@custom, 'number.jsonl'],
		['number.jsonl:3: "prompt" must be text, got 3']],
	['no prompt at all', [@custom, 'other.jsonl'],
		['other.jsonl: no line has a "prompt" field; every line needs one, a text']],
	['no length in the row', [@custom, qw(good.jsonl --custom-output-len -1)],
		['good.jsonl:1: no "output_tokens" field; --custom-output-len TOKENS sets the length of all '
		. 'answers']],
	),

	# tokenizers
	refused('tokenizer', { plain => 1, also => [qw(--dry-run --num-prompts 1)] },
	['no file', [qw(--model m --tokenizer no/such/t.json)],
		'no tokenizer "no/such/t.json": there is no such file or directory, and it is not a model '
		. 'name *'],
	['not in the cache', [qw(--model nobody/nothing)],
		'no tokenizer for model nobody/nothing (name one with --tokenizer, or use '
		. '--skip-tokenizer-init): no tokenizer "nobody/nothing": there is no such file or '
		. 'directory, and nobody/nothing is not in the cache (*), and the hub may not be used *'],
	['unknown type', [qw(--model m --tokenizer nonsense.json)],
		'nonsense.json has model type "Nonsense", which this version does not read'],
	['a model without tokens', [qw(--model m --tokenizer unigram.json)],
		'unigram.json has a Unigram model whose "unk_id" is not one of its 0 tokens'],
	['no JSON', [qw(--model m --tokenizer text.json)],
		'text.json is not JSON: line 1, column 1: expected a value*'],
	['no model', [qw(--model m --tokenizer nomodel.json)],
		'nomodel.json has no "model"; it is not a tokenizer.json'],
	['directory without one', [qw(--model m --tokenizer folder)], '*folder*tokenizer.json*'],
	['needed by the dataset', [qw(--model m --skip-tokenizer-init)],
		['--dataset-name random needs a tokenizer and cannot be used with --skip-tokenizer-init']],
	),

	# files of ours that cannot be written; the first of these are reported before anything is
	# sent
	refused('output', { server => [], not_out => ['Starting*'] },
	['result directory under a file', [qw(--save-result --result-dir file/x)],
		'--result-dir: cannot create directory file/x: Not a directory'],
	['result directory is a file', [qw(--save-result --result-dir file)],
		'--result-dir: cannot create directory file: a file is in the way'],
	['result directory in /proc', [qw(--save-result --result-dir /proc/x)],
		'--result-dir: cannot create directory /proc/x: *'],
	['result in a missing directory', [qw(--save-result --result-filename none/r.json)],
		'--result-filename: cannot write none/r.json: No such file or directory', 'none'],
	['result under a file', [qw(--append-result --result-filename file/r.json)],
		'--result-filename: cannot write file/r.json: Not a directory'],
	['result is a directory', [qw(--save-result --result-filename folder)],
		'--result-filename: folder is a directory, not a file'],
	['label too long for a name', ['--save-result', '--label', 'x' x 300],
		'--save-result: cannot write x*.json: File name too long'],
	['label with a directory', [qw(--append-result --label none/x)],
		'--append-result: cannot write none/x-*.json: No such file or directory', 'none'],
	['record under a file', [qw(--record file/r)], '--record: cannot write file/r: Not a directory'],
	['record is a directory', [qw(--record folder)], '--record: folder is a directory, not a file'],
	['record in /proc', [qw(--record /proc/x)], '--record: cannot write /proc/x: *'],
	['workload under a file', [qw(--dump-workload file/w)],
		'--dump-workload: cannot write file/w: Not a directory'],
	['too few file descriptors', [qw(--num-prompts 200 --max-concurrency 100)],
		'up to 100 connections may be open at once, but this process may open only 64 files '
		. '(ulimit -n, or LimitNOFILE of its service); raise the limit or set a lower '
		. '--max-concurrency'],
	['too few file descriptors, all at once', [qw(--num-prompts 200)],
		'up to 200 connections may be open at once, but this process may open only 64 files '
		. '(ulimit -n, or LimitNOFILE of its service); raise the limit or set a lower '
		. '--max-concurrency'],
	),
	{ name => 'disk full for the result', args => [qw(--save-result --result-filename /dev/full
		--record kept.rec)], server => [], status => 1, exists => ['/dev/full', 'kept.rec'],
	  err => 'profllm bench serve: cannot write /dev/full: No space left on device',
	  out => ['Successful requests: * 3 *', 'Verdict: *'], kept => 'kept.rec' },
	{ name => 'disk full for the appended result', args => [qw(--append-result
		--result-filename /dev/full)], server => [], status => 1,
	  err => 'profllm bench serve: cannot append to /dev/full: No space left on device',
	  out => ['Successful requests: * 3 *'] },
	{ name => 'disk full for the record', args => [qw(--record /dev/full)], server => [], status => 1,
	  err => 'profllm bench serve: cannot write the record /dev/full: No space left on device' },
	{ name => 'disk full for the workload', args => [qw(--dump-workload /dev/full)], server => [],
	  status => 1, out => ['Successful requests: * 3 *'],
	  err => 'profllm bench serve: --dump-workload: cannot write /dev/full: No space left on device' },
	{ name => 'standard output as the result file', args => [qw(--save-result --result-filename
		/dev/stdout)], server => [], status => 0, err => '', exists => ['/dev/stdout'],
	  out => ['*{"date": "*'] },
);

sub run_row {
	my ($row) = @_;
	my $server = $row->{raw} ? start_raw(@{$row->{raw}})
		: $row->{server} ? start_sim(@{$row->{server}}) : { port => 1 };
	my @given = @{$row->{args}};
	my @args = ($row->{plain} ? () : (@{$tiny{model}}, @{$tiny{load}}));
	my ($n, %e);

	# The smallest workload, less what the row says itself.
	for my $i (reverse 0 .. $#args - 1) {
		splice @args, $i, 2 if grep { $_ eq $args[$i] } @given;
	}
	@args = drop_random(@args) if grep { /^(sharegpt|custom)$/ } @given;
	push @args, '--port', '{port}' unless $row->{plain} || grep { /^--(port|host|base-url)$/ } @given;
	push @args, qw(--save-result --save-detailed --result-filename saved.json --record saved.rec)
		if $row->{saved};
	s/\{port\}/$server->{port}/g for @args, @given;
	%e = map { $_ => ref $row->{$_} ? [map { s/\{port\}/$server->{port}/gr } @{$row->{$_}}]
		: $row->{$_} =~ s/\{port\}/$server->{port}/gr }
		grep { defined $row->{$_} } qw(status err warn out not_out exists gone);
	my $r = run(args => ['bench', 'serve', @args, @given], env => $row->{env},
		limits => $row->{limits} || ($row->{name} =~ /descriptors/ ? 'ulimit -n 64' : undef));
	# Progress lines are no message, and neither is what upstream warns about.
	$r->{err} =~ s/^(Benchmark|Prompts|Alignment|Warm-up|Ready check): .*\n//mg;
	check_run($row->{name}, $r, \%e);
	check_saved($row) if $row->{saved};
	if ($row->{kept}) {
		my $again = run(args => ['bench', 'score', $row->{kept}]);
		ok(index($r->{out}, $again->{out}) > 0, "$row->{name}: the record gives the same report");
	}
}

sub drop_random {
	my (@args) = @_;
	my @kept;

	while (@args) {
		my $one = shift @args;
		if ($one =~ /^--random-/) { shift @args } else { push @kept, $one }
	}
	return @kept;
}

sub check_saved {
	my ($row) = @_;
	my $result = eval { json_of(slurp('saved.json')) } || {};
	my @errors = @{$result->{errors} || []};
	my @texts = (@errors, map { map { $_->{text} } @{$_->{examples}} }
		@{($result->{profllm} || {})->{failures} || []});
	my $again = run(args => [qw(bench score saved.rec)]);

	for my $pattern (@{$row->{saved}}) {
		ok((grep { $_ ne '' && matches($_, $pattern) } @texts), "$row->{name}: in the result")
			or diag(join "\n", $pattern, @texts);
	}
	ok(@errors == 3 && $result->{completed} + $result->{failed} == 3
		&& $again->{out} =~ /^Failed requests: +$result->{failed} /m,
		"$row->{name}: every request is in the result and in the record");
	unlink 'saved.json', 'saved.rec';
}

for my $row (@rows) {
	SKIP: {
		skip "$row->{name}: no openssl command", 1 if $row->{needs_tls} && !@tls;
		run_row($row);
	}
}
stop_all();

my @bodies = map { json_of($_)->{body} } grep { m{"/v1/completions"} } split /\n/, slurp('sent.jsonl');
is(scalar(grep { /"prompt": / && !/repetition_penalty|ignore_eos|logprobs/ } @bodies), 3,
	'keys that are left out are in no body');

# ---- a small disk that fills up ----

SKIP: {
	mkdir 'disk';
	skip 'mounting a small disk needs root', 3
		if !$is_root || system('mount -t tmpfs -o size=64k none disk 2>/dev/null');
	my $sim = start_sim(qw(--ttft-ms 1 --itl-ms 1));
	my @args = (qw(bench serve --model sim --tokenizer sim --num-prompts 50 --random-input-len 8
		--random-output-len 200 --save-detailed --port), $sim->{port});

	check_run('full disk: the report is still there', run(args => [@args,
		qw(--save-result --result-dir disk --result-filename r.json)]),
		{ status => 1,
		  err => 'profllm bench serve: cannot write disk/r.json: No space left on device',
		  out => ['Successful requests: * 50 *'], gone => ['disk/r.json', glob('disk/*')] });
	spew('disk/log.json', '{"first": 1}');
	check_run('full disk: what was in the file stays as it was', run(args => [@args,
		qw(--append-result --result-filename disk/log.json)]),
		{ status => 1, err => 'profllm bench serve: cannot append to disk/log.json: No space left on '
			. 'device', out => ['Successful requests: * 50 *'] });
	is(slurp('disk/log.json'), '{"first": 1}', 'full disk: no half line is left');
	unlink 'disk/log.json';
	my $r = run(args => [@args, qw(--record disk/r.rec --save-result --result-filename full.json)]);
	check_run('full disk: the record breaks off, the result is saved', $r,
		{ status => 1, err => 'profllm bench serve: *the record disk/r.rec is incomplete: '
			. 'No space left on device', out => ['Successful requests: * 50 *'],
		  exists => ['full.json'] });
	system('umount', 'disk');
}
stop_all();

# ---- links are followed, files are replaced whole ----

my $sim = start_sim(qw(--ttft-ms 5 --itl-ms 5 --truth load.truth));
my @load = (qw(bench serve --model sim --tokenizer sim --temperature 0 --random-input-len 8 --port),
	$sim->{port});

spew('target.json', 'old');
symlink 'target.json', 'link.json';
run(args => [@load, qw(--num-prompts 1 --random-output-len 2 --save-result --result-filename link.json)]);
ok(-l 'link.json' && slurp('target.json') =~ /^\{"date"/, 'a link is followed, not replaced');

# ---- ports that are taken ----

check_run('simulator: port taken', run(args => ['sim', '--port', $sim->{port}]),
	{ status => 1, err => "profllm sim: *$sim->{port}*: Address already in use" });

# ---- Ctrl-C ----

# Sends the signal once condition holds; returns the finished run.
sub interrupt {
	my ($signal, $condition, @args) = @_;
	my $r = begin(args => \@args);
	my $began;

	wait_for("start of @args", sub { $condition->(map { slurp($_) // '' } @$r{qw(out_path err_path)}) });
	$began = time;
	kill $signal, $r->{pid};
	finish($r);
	$r->{seconds_to_end} = time - $began;
	return $r;
}

sub answered { return (slurp('load.truth') // '') =~ tr/\n// }

my @long = qw(--num-prompts 600 --random-output-len 10 --max-concurrency 4 --request-id-prefix t-);
for my $signal (qw(INT TERM)) {
	my $before = answered();
	my $loading = sub { $_[0] =~ /^Maximum request concurrency/m && answered() >= $before + 8 };
	my $r = interrupt($signal, $loading, @load, @long, qw(--save-result --save-detailed
		--result-filename int.json --record int.rec));
	my $result = eval { json_of(slurp('int.json')) } || {};
	my $ours = $result->{profllm} || {};

	check_run("SIG$signal while load runs", $r, { status => 130,
		out => ['Verdict: *', '  DEGRADED (every metric): The run was interrupted: *',
			'Cancelled while they ran: *'] });
	ok($ours->{interrupted} && $result->{completed} > 0
		&& $result->{completed} + $ours->{cancelled} == 600,
		"SIG$signal: the result is marked, what was measured is in it, the rest is counted");
	my $again = run(args => [qw(bench score int.rec)]);
	ok(length $again->{out} && index($r->{out}, $again->{out}) > 0,
		"SIG$signal: the record gives the same report");
	unlink 'int.json', 'int.rec';
}

# A dashboard behind TLS: its certificate is trusted by the environment.
if (@tls) {
	my $url = 'https://127.0.0.1:' . start_sim(@tls)->{port};

	spew('sent.json', '{}');
	check_run('ingest --server: a certificate nobody vouches for', run(args => ['ingest', 'sent.json',
		'--server', $url]), { status => 1, err => 'profllm ingest: *self-signed certificate; use '
		. '--cacert FILE, or for a command without it the environment variable SSL_CERT_FILE=FILE' });
	check_run('ingest --server: vouched for', run(args => ['ingest', 'sent.json', '--server', $url],
		env => { SSL_CERT_FILE => 'cert.pem' }), { status => 1,
		err => "profllm ingest: $url answered 404*" });
}

my $silent = start_raw(undef);
my @stages = (
	['the dataset is made', sub { $_[0] =~ /^Namespace/ }, @load, qw(--num-prompts 200000
		--random-input-len 4000 --compat stdout)],
	['the model is asked for', sub { $_[0] =~ /^Model not specified/m }, qw(bench serve --tokenizer sim
		--num-prompts 1 --port), $silent->{port}],
	['prompts are aligned', sub { $_[0] =~ /^Namespace/ }, qw(bench serve --tokenizer sim --model sim
		--compat stdout --random-input-len 8 --num-prompts 1 --port), $silent->{port}],
	['the ready check waits', sub { $_[1] =~ /Endpoint is not ready/ }, qw(bench serve --tokenizer sim
		--model sim --random-input-len 8 --num-prompts 1 --port 1 --ready-check-timeout-sec 60)],
	['warm-up runs', sub { $_[0] =~ /^Warming up/m }, @load, qw(--num-prompts 1 --num-warmups 4
		--random-output-len 1000)],
);
for my $stage (@stages) {
	my ($name, $condition, @args) = @$stage;
	# What it says has begun a little later.
	my $r = interrupt('INT', sub { $condition->(@_) && sleep 0.25 }, @args, qw(--save-result
		--result-filename none.json --record none.rec));

	check_run("Ctrl-C while $name", $r, { status => 130, err => 'profllm bench serve: interrupted *',
		gone => ['none.json', 'none.rec'] });
	cmp_ok($r->{seconds_to_end}, '<', 10, "Ctrl-C while $name: it ends soon");
}

done_testing();
