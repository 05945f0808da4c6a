#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every option of every verb, with invalid values.
#
# The first part is made from --help=json, so that a new option is tested at once: wrong kinds, both
# sides of its range, invalid choices, missing values. Rules beyond a single row are in the table of
# the second part; an option whose value is free text must be listed there or among those that take
# any text.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

# The smallest command of each verb that gets as far as reading its options.
my %verb = (
	'bench serve' => [qw(bench serve --dry-run --tokenizer sim --model sim --num-prompts 1)],
	'bench score' => [qw(bench score no.rec)],
	'bench tap'   => [qw(bench tap no.pcap --port 1)],
	'bench ab'    => [qw(bench ab --base-url http://127.0.0.1:1 --base-url http://127.0.0.1:2
		--tokenizer sim --model sim --request-rate 1)],
	'bench sweep serve'   => [qw(bench sweep serve --dry-run --serve-cmd vllm --bench-cmd vllm)],
	'bench sweep startup' => [qw(bench sweep startup --dry-run)],
	'doctor'      => ['doctor'],
	'sim'         => [qw(sim --port 0)],
	'tokenizer encode'  => [qw(tokenizer encode --tokenizer sim)],
	'tokenizer decode'  => [qw(tokenizer decode --tokenizer sim)],
	'tokenizer count'   => [qw(tokenizer count --tokenizer sim)],
	'tokenizer show'    => [qw(tokenizer show --tokenizer sim)],
	'tokenizer compile' => [qw(tokenizer compile --tokenizer sim)],
);

# ---- made from the rows ----

my ($count, @wrong) = (0);

sub bad {
	my ($verb, $status, $pattern, @args) = @_;
	my $r = run(args => [@{$verb{$verb}}, @args]);
	my @lines = grep { !/^WARNING: .* is given more than once/ } split /\n/, $r->{err};
	my $text = "profllm $verb: $pattern";

	$count++;
	return if $r->{status} eq $status && @lines == 1 && matches($lines[0], $text);
	push @wrong, "profllm $verb @args\n  status $r->{status}, not $status\n  said:     "
		. join("\n            ", @lines) . "\n  expected: $text";
}

sub flag { my ($o, $name) = @_; return scalar grep { $_ eq $name } @{$o->{flags}} }

# A good value other than the default, for options that are not in this version.
sub other_value {
	my ($o) = @_;
	my $k = $o->{kind};

	return () if $k eq 'flag' || $k eq 'tri';
	return $o->{choices}[-1] if $o->{choices};
	return $k =~ /int/ ? '7' : $k =~ /real/ ? '0.75' : $k eq 'json' ? '{"a": 1}' : 'x';
}

sub wrong_values {
	my ($verb, $o) = @_;
	my ($name, $k) = ($o->{name}, $o->{kind});
	my $range = defined $o->{min} || defined $o->{max};

	if ($k eq 'flag' || $k eq 'tri') {
		bad($verb, 2, "--$name: takes no value, got '1'", "--$name=1");
		bad($verb, 2, "--no-$name: takes no value, got '1'", "--no-$name=1") if $k eq 'tri';
		return;
	}
	bad($verb, 2, "--$name: expected one argument*", "--$name") if $k ne 'list';
	bad($verb, 2, "--$name: expected at least one argument*", "--$name") if flag($o, 'needs_value');
	if ($k =~ /int/) {
		bad($verb, 2, "--$name: expected an integer*, got '$_'", "--$name=$_")
			for 'x', '1.5', '', '1e3', '99999999999999999999';
	}
	if ($k =~ /real/) {
		bad($verb, 2, "--$name: expected a number*, got '$_'", "--$name=$_") for 'x', '', '1,5';
	}
	bad($verb, 2, "--$name: expected JSON, got '$_'*", "--$name=$_") for $k eq 'json' ? qw({ x) : ();
	if ($range) {
		my @out;
		push @out, flag($o, 'min_exclusive') ? $o->{min} : $o->{min} - 1 if defined $o->{min};
		push @out, $k =~ /int/ ? sprintf('%.0f', $o->{max} + 1) : $o->{max} * 10 if defined $o->{max};
		my $kind = $k =~ /real/ ? 'a*number' : 'an integer';
		bad($verb, 2, "--$name: expected $kind*, got '$_'", "--$name=$_") for @out;
	}
	if ($o->{choices}) {
		bad($verb, 2, "--$name: expected one of *, got 'no-such-choice'", "--$name=no-such-choice");
	}
}

my %options;
for my $verb (sort keys %verb) {
	(my $words = $verb) =~ s/ .*//;
	my $help = run(args => [split(/ /, $verb), '--help=json']);
	my @options = grep { !flag($_, 'positional') } @{json_of($help->{out})->{options}};

	($count, @wrong) = (0);
	$options{$verb} = \@options;
	for my $o (@options) {
		next if $o->{name} =~ /^(help|show-config)$/;
		wrong_values($verb, $o);
		bad($verb, 2, "--$o->{name}: not in this version*", "--$o->{name}", other_value($o))
			if flag($o, 'later');
	}
	ok(!@wrong && $count, "$verb: $count bad values of " . @options . ' options');
	diag(join "\n", @wrong) if @wrong;
}

# ---- what a row alone cannot say ----

my $long = 'x' x 300;
my $objectives = '--goodput: expected NAME:MS, a metric and its limit in milliseconds, got ';
my $percentiles = '--metric-percentiles: expected numbers from 0 to 100 with commas between, got ';
my $thresholds = '--timeline-itl-thresholds: expected two numbers of milliseconds, the smaller one first, '
	. 'got ';
my $scheme = 'expected http://HOST:PORT, https://HOST:PORT or unix:/PATH';
my @ramp = qw(--ramp-up-strategy linear);
my @chat = qw(--backend openai-chat);

spew('empty.rec', '');
spew('file', '');
spew('custom.jsonl', qq({"prompt": "a"}\n));

my @tokenizer = qw(encode decode count show compile);

# Verb, exit status, message, arguments.
my @rows = (
	# server
	['serve', 2, "--base-url: '127.0.0.1:8000' has no scheme; $scheme", qw(--base-url 127.0.0.1:8000)],
	['serve', 2, "--dashboard: the dashboard 'x': expected a URL that begins with http:// or https://, "
		. 'or unix:PATH', qw(--dashboard x)],
	['serve', 2, "--base-url: scheme 'ftp' is not supported; $scheme", qw(--base-url ftp://h:1)],
	['serve', 2, "--base-url: port '99999' of host 'h' is not a number from 1 to 65535",
		qw(--base-url http://h:99999)],
	['serve', 2, "--base-url: the URL has no host; $scheme", qw(--base-url http://)],
	['serve', 2, "--host: the URL has no host; $scheme", '--host', ''],
	['serve', 2, '--endpoint: the OpenAI Completions API of --backend openai needs a URL that ends with '
		. 'completions (usually --endpoint /v1/completions), got *', qw(--endpoint /v1/nope)],
	['serve', 2, '--endpoint: the OpenAI Chat Completions API of --backend openai-chat needs a URL that '
		. 'ends with chat/completions (usually *', @chat, qw(--endpoint /v1/completions)],
	['serve', 2, "--slo: 'p99_ttft_ms' is not a limit; expected a metric, < or <=, and a number of "
		. 'milliseconds, such as p99_ttft_ms<200', qw(--slo p99_ttft_ms)],
	['serve', 2, "--header: expected KEY=VALUE, got 'X'", qw(--header X)],
	['serve', 2, "--header: expected KEY=VALUE, got 'Authorization...'", qw(--header Authorization:x)],
	['serve', 2, "--header: 'a b' is not a valid header name", '--header', 'a b=1'],
	['serve', 2, '--header: the value of a holds a control character', '--header', "a=1\r\nb: 2"],
	['serve', 2, '--backend-file: cannot open no.json: No such file or directory',
		qw(--backend-file no.json)],
	['serve', 2, '--cacert: cannot read no.pem: No such file or directory',
		qw(--base-url https://127.0.0.1:1 --cacert no.pem)],
	['doctor', 2, '--cacert: cannot read no.pem: No such file or directory', qw(--cacert no.pem)],
	# model and tokenizer
	['serve', 1, 'no tokenizer "": there is no such file or directory, and it is not a model name '
		. '(org/name)', '--tokenizer', ''],
	['serve', 1, 'no tokenizer "no.json": there is no such file or directory, and no.json is not in the '
		. 'cache *, and the hub may not be used *', qw(--tokenizer no.json)],
	# chat template
	['serve', 2, q(--chat-prefix: unknown escape '\q'; expected \n, \r, \t, \\\\ or \xHH),
		'--chat-prefix', '\q'],
	['serve', 2, '--chat-suffix: not UTF-8', '--chat-suffix', '\xff'],
	['serve', 2, '--chat-template-kwargs: expected a JSON object, got 5',
		qw(--chat-template-kwargs 5)],
	# traffic
	['serve', 2, "--max-concurrency: expected an integer of at least 1, got '0'",
		qw(--max-concurrency 0)],
	['serve', 2, "--request-rate: expected a number above 0, got '0'", qw(--request-rate 0)],
	['serve', 2, "--request-rate: expected a number above 0, got '-1'", qw(--request-rate=-1)],
	['serve', 2, "--request-rate: expected a number above 0, got 'nan'", qw(--request-rate nan)],
	['serve', 2, "--burstiness: expected a number above 0, got '0'", qw(--burstiness 0)],
	['serve', 2, '--request-rate 1e-11 (--burstiness inf): request 0 is due 100000000000.0 s after the '
		. 'start, expected at most a year (31536000 s); use a higher rate',
		qw(--request-rate 1e-11 --burstiness inf)],
	['serve', 2, '--probe-request-rate 1e-11: expected at least one request a year (31536000 s); use a '
		. 'higher rate, or 0 for none', qw(--probe-request-rate 1e-11)],
	['serve', 2, '--base-urls and --base-url are mutually exclusive',
		qw(--base-urls http://a http://b --base-url http://c)],
	['serve', 2, "--source-addresses: expected an IPv4 or IPv6 address of this machine, got 'localhost'",
		qw(--source-addresses 127.0.0.1 localhost)],
	['serve', 2, '--source-addresses 192.0.2.1: cannot connect from 192.0.2.1:0: *',
		qw(--source-addresses 192.0.2.1)],
	['serve', 2, '--source-addresses: --transport curl cannot choose where connections come from; *',
		qw(--source-addresses 127.0.0.1 --transport curl)],
	['serve', 2, "--cpus: expected numbers of processors below 1024 such as 2-5,8, got '3-1'",
		qw(--cpus 3-1)],
	['serve', 2, '--cpus 0,0: processor 0 is named twice', '--cpus', '0,0'],
	['serve', 2, '--cpus 0 names 1 processors, fewer than the 2 that the loops of 1 process on this ' .
		'machine need (--threads 2)', qw(--cpus 0 --threads 2)],
	['serve', 2, '--cpus 1023: this process may not use processor 1023; *', qw(--cpus 1023)],
	['serve', 2, "--base-urls: scheme 'ftp' is not supported; *", qw(--base-urls http://a ftp://b)],
	(map { ['serve', 2, "$thresholds'$_'", '--timeline-itl-thresholds', $_] } '5', '50,10', '1,x'),
	['serve', 2, '--client-cert: cannot read none.pem: *',
		qw(--client-cert none.pem --base-url https://x)],
	['serve', 2, '--client-key needs --client-cert, *', qw(--client-key none.pem)],
	['serve', 2, "--proxy: proxies of kind 'gopher' are not supported; *", qw(--proxy gopher://x)],
	['serve', 2, "--num-warmups: expected an integer of at most 268435456, got '268435457'",
		qw(--num-warmups 268435457)],
	['serve', 2, '--self-timed: only the datasets trace and timed_trace have arrival times, not random',
		qw(--self-timed)],
	['serve', 2, '--request-id-prefix: expected text without control characters: it becomes a header',
		'--request-id-prefix', "a\nb"],
	['serve', 2, '--request-rate and --ramp-up-strategy are mutually exclusive: *', @ramp,
		qw(--request-rate 5)],
	['serve', 2, '--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps; '
		. '--ramp-up-start-rps is missing', @ramp],
	['serve', 2, "--ramp-up-start-rps: expected an integer of at least 1, got '-1'",
		@ramp, qw(--ramp-up-start-rps=-1 --ramp-up-end-rps 4)],
	['serve', 2, '--ramp-up-start-rps: expected at most --ramp-up-end-rps, 4, got 5',
		@ramp, qw(--ramp-up-start-rps 5 --ramp-up-end-rps 4)],
	['serve', 2, "--warm-connections: expected auto or an integer from 0 to 1000000, got '-1'",
		qw(--warm-connections=-1)],
	['serve', 2, "--warm-connections: expected auto or an integer from 0 to 1000000, got 'many'",
		qw(--warm-connections many)],
	# sampling
	(map { ['serve', 2, "--omit-body-keys: expected keys with commas between, got '$_'",
		'--omit-body-keys', $_] } 'a,,b', ',a'),
	['serve', 2, '--extra-body: expected a JSON object, got [1]', '--extra-body', '[1]'],
	['serve', 2, '--host.a: --host is not a JSON value, so it has no keys', qw(--host.a 1)],
	# datasets
	['serve', 2, '--num-prompts: expected at least 1, got 0', qw(--num-prompts 0)],
	['serve', 2, '--dataset-path x.json: the random dataset reads no file; *',
		qw(--dataset-path x.json)],
	['serve', 2, '--dataset-name custom needs --dataset-path', qw(--dataset-name custom)],
	['serve', 2, '--random-input-len 0 is too small: *; at least 1 is needed', qw(--random-input-len 0)],
	['serve', 2, '--random-input-len: expected at most 67108864 tokens, got 9223372036854775807',
		qw(--random-input-len 9223372036854775807)],
	['serve', 2, '--random-input-len: expected at most 67108864 tokens, got 67108865',
		qw(--input-len 67108865)],
	['serve', 2, '--random-output-len: expected at most 67108864 tokens, got 67108865',
		qw(--output-len 67108865)],
	['serve', 2, '--random-prefix-len: expected at most 67108864 tokens, got 67108865',
		qw(--random-prefix-len 67108865)],
	['serve', 2, "--random-range-ratio: the range ratio must be in [0, 1), got '1'",
		qw(--random-range-ratio 1)],
	['serve', 2, "--random-range-ratio: expected a number or JSON like *, got 'half'",
		qw(--random-range-ratio half)],
	['serve', 2, '*--random-input-len-dist*', qw(--random-input-len-dist gauss:1)],
	['serve', 2, '*--random-output-len-dist*', '--random-output-len-dist', 'zipf:0,5'],
	['serve', 2, '*--random-mm-bucket-config*', qw(--dataset-name random-mm --backend openai-chat
		--endpoint /v1/chat/completions --random-mm-bucket-config), '{(1, 2): 1}'],
	['serve', 2, "--dataset-name random-mm: Multi-modal content (images) is not supported on backend "
		. "'openai-responses'; use one of *",
		qw(--dataset-name random-mm --backend openai-responses)],
	['serve', 2, '--sharegpt-output-len: expected 0 or more tokens, got -5',
		qw(--dataset-name sharegpt --dataset-path x --sharegpt-output-len=-5)],
	['serve', 2, '--custom-output-len: expected 0 or more tokens, or -1 for each row\'s own, got -7',
		qw(--dataset-name custom --dataset-path custom.jsonl --custom-output-len=-7)],
	# conversations
	(map { ['serve', 2, "--$_ 'a b': expected the name of a header " .
		'that profllm does not set itself, such as X-Session-ID', "--$_", 'a b'] }
		qw(session-header session-token-header)),
	['serve', 2, '*--multi-turn-turns-dist gauss:1: expected histogram:FILE*',
		qw(--backend openai-chat --multi-turn --multi-turn-turns-dist gauss:1)],
	['serve', 2, '*--multi-turn-delay-dist zipf:0,5*',
		qw(--backend openai-chat --multi-turn --multi-turn-delay-dist), 'zipf:0,5'],
	(map { ['serve', 2,
		"*--$_ gauss:1: expected seconds from 0 to a year or a distribution*", "--$_", 'gauss:1'] }
		qw(think-time tool-time)),
	['serve', 1, '--json-schema-path none.json: cannot open none.json: No such file or directory',
		qw(--dataset-name structured --json-schema-path none.json)],
	# metrics and output
	(map { ['serve', 2, "$objectives'$_'", '--goodput', $_] } 'ttft', 'ttft:fast', 'ttft:1:2'),
	(map { ['serve', 2, "--goodput: unknown metric '$_'; expected ttft, tpot, e2el or session_duration",
		'--goodput', "$_:200"] } 'itl', 'ttf'),
	['serve', 2, "--goodput: expected a limit of at least 0 milliseconds, got 'ttft:-1'",
		qw(--goodput ttft:-1)],
	(map { ['serve', 2, "$percentiles'$_'", '--metric-percentiles', "50,$_"] } 'x', '100.5', '101', ''),
	['serve', 2, "--percentile-metrics: unknown metric 'foo'; expected some of ttft, *",
		'--percentile-metrics', 'ttft,foo'],
	['serve', 2, "--percentile-metrics: unknown metric 'ttf'; did you mean ttft?",
		'--percentile-metrics', 'ttf'],
	['serve', 2, "--metadata: expected KEY=VALUE, got 'b'", qw(--metadata a=1 b)],
	['serve', 1, '--dump-workload: cannot write file/x: Not a directory', qw(--dump-workload file/x)],
	['serve', 2, "--trace: unknown category 'nope'; there are *, all", qw(--trace nope)],
	['serve', 2, "--fix: unknown name 'nope'; --fix help lists the names", qw(--fix nope)],
	['serve', 2, "--prompt-salt: expected none, run, request or fresh, the last three also with "
		. ":TEXT (of at most 64 bytes), got 'runs'",
		qw(--prompt-salt runs)],
	['serve', 2, "--gpus: expected a number from 1 to 1000000, also with a name (4xH100), "
		. "got '0xH100'",
		qw(--gpus 0xH100)],
	['serve', 2, "--gpu-price: expected a price above 0, or a file, got '-1'", '--gpu-price=-1'],
	["serve", 1, "--gpu-price: cannot open none.txt: No such file or directory",
		qw(--gpu-price none.txt)],
	['serve', 2, "--gpu-price: a file of prices needs the GPU's name: --gpus 4xH100, say",
		'--gpu-price', spew('prices.txt', "H100 = 3\nL4 = x\n")],
	['serve', 2, 'prices.txt:2: expected NAME = PRICE with a price above 0',
		qw(--gpus H100 --gpu-price prices.txt)],
	['serve', 2, "--gpu-price: other.txt has no line for 'A100'; add one, or give the price itself",
		qw(--gpus 4xA100), '--gpu-price', spew('other.txt', "# mine\nH100 = 3 # each\n")],
	['serve', 2, "--compat: unknown name 'nope'; --compat help lists the names", qw(--compat nope)],
	['serve', 2, "--load-pattern: unknown name 'stead'; did you mean steady?; --load-pattern "
		. 'help lists the names', qw(--load-pattern stead)],
	['serve', 2, '--metrics-interval: expected 0 or at least 0.01 seconds, got 0.001',
		qw(--metrics-interval 0.001)],
	(map { ['serve', 2, '--metrics-url: *', '--metrics-url', $_] } 'ftp://a/metrics',
		'http://a/metrics,ftp://b'),
	(map { ['serve', 2, '--system-metrics: expected off, all, or a comma list of gpu, host, process, '
		. "got '$_'", '--system-metrics', $_] } 'gpus', 'gpu,', 'off,host', ''),
	['serve', 2, '--system-interval: expected 0 or at least 0.01 seconds, got 0.009',
		qw(--system-interval 0.009)],
	['serve', 2, '*--system-interval*', qw(--system-interval -1)],
	(map { ['serve', 2, "--system-gpus: expected the index of a GPU or its UUID, got '$_'",
		'--system-gpus', $_] } '', '0,1'),
	(map { ['serve', 2, "--system-pid: expected the number of a process, or NAME=NUMBER with a name "
		. "of letters, digits, '-', '_' and '.', got '$_'", '--system-pid', $_] }
		'x', '0', '=7', 'a b=7', 'a=', '99999999999'),
	# names
	['serve', 2, 'unknown option --num-promts; did you mean --num-prompts?', qw(--num-promts 3)],
	['serve', 2, 'unknown option --zzzzzzzzz', qw(--zzzzzzzzz)],
	(map { ['serve', 2, "unknown option $_->[0]; did you mean --$_->[1]?", grep { defined } @$_[0, 2]] }
		['--rate', 'request-rate', 5], ['--rps', 'request-rate', 5], ['--qps', 'request-rate', 5],
		['--api-key', 'header', 'k'], ['--json', 'output-json', 'f'], ['--url', 'base-url', 'u'],
		['--output', 'output-json', 'f'], ['--timeout', 'request-timeout', 5],
		['--warmup', 'num-warmups', 1], ['--silent', 'disable-tqdm'],
		['--dry', 'dry-run'], ['--load-pat', 'load-pattern', 'x'], ['-c', 'max-concurrency', 4],
		['-n', 'num-prompts', 4], ['-d', 'duration', 4], ['-c8', 'max-concurrency'],
		# older vLLM, sglang, aiperf, genai-perf, guidellm, llmperf
		['--best-of', 'extra-body', 2], ['--api-url', 'base-url', 'u'],
		['--extra-request-body', 'extra-body', '{}'], ['--output-file', 'output-json', 'f'],
		['--benchmark-duration', 'duration', 5], ['--isl-stddev', 'random-input-len-dist', 5],
		['--output-tokens-mean', 'output-len', 5], ['--artifact-dir', 'result-dir', 'd'],
		['--request-rate-mode', 'burstiness', 'constant'], ['--random-seed', 'seed', 5],
		['--fixed-schedule', 'self-timed'], ['--max-requests', 'num-prompts', 5],
		['--processor', 'tokenizer', 'm'], ['--request-type', 'backend', 'chat'],
		['--num-concurrent-requests', 'max-concurrency', 5]),
	['serve', 2, 'ambiguous option --num: it could be --num-prompts, --num-warmups', qw(--num 3)],
	['serve', 2, "unexpected argument 'word'", qw(word)],
	['serve', 2, "--temperature: expected one argument; a value that starts with a dash is written "
		. '--temperature=-x', qw(--temperature -x)],
	# score
	['tap', 1, 'cannot open no.pcap: No such file or directory'],
	['tap', 2, "--port: '70000' is not a port from 1 to 65535", '--port', '80,70000'],
	['tap', 2, "--host: 'gpu-1' is not an IPv4 or IPv6 address; a capture has no names",
		qw(--host gpu-1)],
	['tap', 2, '--interface is for live packets, but the file no.pcap was given too: leave out ' .
		'one of them', qw(--interface lo)],
	['tap', 2, '--duration is for live packets, but the file no.pcap was given too: leave out ' .
		'one of them', qw(--duration 5)],
	['tap', 2, "--backend: 'nope' is not a backend of bench serve", qw(--backend nope)],
	['tap', 2, "--percentile-metrics: unknown metric 'nope'", qw(--percentile-metrics nope)],
	['tap', 2, "--metric-percentiles: '101' is not a number from 0 to 100", qw(--metric-percentiles 101)],
	['tap', 2, "--goodput: 'x' is not ttft, tpot, e2el or session_duration, a colon and a number of " .
		'milliseconds', qw(--goodput x)],
	['score', 1, 'cannot open no.rec: No such file or directory'],
	['score', 2, "--percentile-metrics: unknown metric 'nope'", qw(--percentile-metrics nope)],
	['score', 2, "--metric-percentiles: '101' is not a number from 0 to 100",
		qw(--metric-percentiles 101)],
	['serve', 2, "--slo: 'nope' is not a limit; expected a metric, *", qw(--slo nope)],
	['serve', 2, "--fail-if: 'p99_ttft_ms>' has no number after >; expected one such as 200, or +5% "
		. 'for a change',
		'--fail-if', 'p99_ttft_ms>'],
	(map { ['serve', 2, "--$_: there is no condition to report on; add --fail-if CONDITION",
		"--$_", 'x'] }
		qw(junit summary)),
	['score', 2, "--goodput: 'itl:5' is not ttft, tpot, e2el or session_duration, a colon and a " .
		'number of milliseconds', qw(--goodput itl:5)],
	# bench ab
	['ab', 2, '--base-url: expected two servers, got 1; *', qw(--base-url http://127.0.0.1:3)],
	['ab', 2, '--serve-cmd starts servers and --base-url names running ones; *', '--serve-cmd', 'a b'],
	(map { ['ab', 2, "--metric $_: expected output_throughput, request_throughput, or *", '--metric',
		$_] } qw(ttft p100_ttft_ms p_ttft_ms max_ttft_ms mean_ttft), ''),
	['ab', 2, '--server-logs is about servers that are started; *', qw(--server-logs x)],
	['ab', 1, '--output-json: cannot write file/x: Not a directory', qw(--output-json file/x)],
	['ab', 2, '--allow-unjudged says what --fail-if lets pass; give --fail-if, too',
		'--allow-unjudged'],
	['ab', 2, '--until-decided means no time limit, and --max-minutes is one; remove one of the two',
		qw(--until-decided --max-minutes 5)],
	(map { ['ab', 2, "--$_ has no meaning in bench ab, *; remove it", "--$_=1"] }
		qw(duration num-runs slo precision budget level-seconds)),
	(map { ['ab', 2, "--$_ has no meaning in bench ab, *; remove it", "--$_"] }
		qw(find-max-rate find-max-concurrency strict save-result dry-run)),
	# simulator
	['sim', 2, "*--ttft-ms*'fast'*", qw(--ttft-ms fast)],
	['sim', 2, "*--itl-ms*'uniform:5'*", qw(--itl-ms uniform:5)],
	['sim', 2, "*--output-len*'x'*", qw(--output-len x)],
	['sim', 2, "*--fault*'nope'*", qw(--fault nope)],
	['sim', 2, "--die-after: expected *'soon'", qw(--die-after soon)],
	['sim', 2, "--fail-start: expected *'x'", qw(--fail-start x)],
	['sim', 2, '--quantization x: *', qw(--gpu h100-80gb --quantization x)],
	['sim', 2, '--kv-cache-dtype x: *', qw(--gpu h100-80gb --kv-cache-dtype x)],
	['sim', 1, '*/no/host*', qw(--uds /no/host/socket)],
	['sim', 1, '*not-an-address*', qw(--host not-an-address.invalid)],
	['sim', 1, '*file/t*', qw(--truth file/t)],
	['sim', 1, '*file/r*', qw(--requests file/r)],
	['sim', 1, '*file/p*', qw(--port-file file/p)],
	(map { ['sim', 2, "$_ needs --engine-worker", $_, 'x'] }
		qw(--account --worker-fault)),
	['sim', 2, "TLS: cannot use certificate file 'no.pem': No such file or directory",
		qw(--ssl-certfile no.pem --ssl-keyfile no.pem)],
	['sim', 2, '*--ssl-keyfile*', qw(--ssl-certfile no.pem)],
	['sim', 2, '--ssl-ca-certs needs *', qw(--ssl-ca-certs no.pem)],
	(map { ['serve', 2, "--priority-classes $_: expected a whole number and a share above 0 "
		. 'for each class, such as 0:0.5,1:0.5, and no number twice', '--priority-classes', $_] }
		qw(x 0 0:0 high:1), '0:1,0:1'),
	['sim', 2, "--kv-cache-url: 'x:y' has no scheme; *", qw(--kv-cache-url x:y)],
	(map { ['sim', 2, "$_ needs --role proxy", $_, 'http://127.0.0.1:1'] }
		qw(--prefill-url --decode-url --backend-url)),
	['sim', 2, "--backend-url: ':x' has no scheme; *", qw(--role proxy --backend-url :x)],
	['sim', 1, 'no tokenizer "no.json"*', qw(--tokenizer no.json)],
	# tokenizer
	(map { ["tokenizer $_", 1, 'no tokenizer "no.json"*', qw(--tokenizer no.json)] } @tokenizer),
	(map { ["tokenizer $_", 2, "unexpected argument 'word'", qw(word)] } qw(show compile)),
);
for my $verb (@tokenizer) {
	check_run("tokenizer $verb without a tokenizer", run(args => ['tokenizer', $verb]), { status => 2,
		err => "profllm tokenizer $verb: --tokenizer is missing: a file, its directory, a model "
			. 'name or sim' });
}

# ---- words that are no command, and abbreviations ----

for my $row (
	["unknown command 'serve'; did you mean 'bench serve'?", 'serve'],
	["unknown command 'bench server'; did you mean 'bench serve'?", qw(bench server --model m)],
	["unknown command 'benchserve'; did you mean 'bench serve'?", 'benchserve'],
	["unknown command 'bench plots'; did you mean 'bench plot'?", qw(bench plots)],
	["unknown command 'bench thruput'; did you mean 'bench throughput'?", qw(bench thruput)],
	["unknown command 'compare'; did you mean 'bench compare'?", qw(compare a.json b.json)],
	["unknown command 'dataset convert'; did you mean 'dataset convert-sharegpt'?", qw(dataset convert)],
	["unknown command 'bench frob'; profllm bench --help lists the commands", qw(bench frob)],
	["unknown command 'dataset list'; profllm dataset --help lists the commands", qw(dataset list)],
	["unknown command 'bench run'; did you mean 'run'?", qw(bench run)],
	["unknown command or topic 'frob'; profllm --help lists the commands", qw(help frob)],
	["unknown option '--frob'; profllm --help lists the commands", '--frob'],
	(map { ["unknown command '*$_->[-1]'; did you mean 'bench multi-turn'?", @$_] }
		['multi-turn'], ['multi_turn'], [qw(bench multi_turn.py)]),
	["unknown command 'bench prioritisation'; did you mean 'bench prioritization'?",
		qw(bench prioritisation)],
	["unknown command 'prefix-caching'; did you mean 'bench prefix-caching'?", 'prefix-caching'],
	["unknown command 'bench prefix-cache'; did you mean 'bench prefix-caching'?",
		qw(bench prefix-cache)],
	["unknown command 'bench long-document'; did you mean 'bench long-document-qa'?",
		qw(bench long-document)]) {
	my ($message, @args) = @$row;

	check_run("profllm @args", run(args => \@args), { status => 2, err => "profllm: $message" });
}
for my $row (['bench', qr/: bench serve, bench structured-output, .*, bench sweep plot_pareto; /],
	['bench sweep', qr/: bench sweep serve, bench sweep serve_multi, /],
	['dataset', qr/: dataset show, /]) {
	my ($words, $list) = @$row;
	my $r = run(args => [split / /, $words]);

	is("$r->{status}$r->{out}", '2', "profllm $words: exit status");
	like($r->{err}, qr/^profllm $words: a command is missing$list/, "profllm $words: what could follow");
}
for my $row (['help', '--help'], ['help bench', 'bench --help'],
	['bench sweep --help=all', 'bench sweep --help'],
	['help bench serve', 'bench serve --help'], ['help dataset show', 'dataset show --help'],
	['version', '--version'], ['-V', '--version']) {
	my ($said, $same) = map { run(args => [split / /, $_]) } @$row;

	is("$said->{status} $said->{out}$said->{err}", "0 $same->{out}",
		"profllm $row->[0] is profllm $row->[1]");
}

# Beginnings of names: vLLM's own options alone, and with a note.
for my $row (
	[0, 'WARNING: --request-rat is read as --request-rate', @{$verb{'bench serve'}}, qw(--request-rat 3)],
	[2, 'profllm dashboard: unknown option --por; did you mean --port?', qw(dashboard --por 1)],
	[2, 'profllm dashboard: unknown option --read; did you mean --read-only?', qw(dashboard --read)],
	[2, 'profllm dashboard: --listen 127.0.0.1:0 already names address and port: leave out --port',
		qw(dashboard --listen 127.0.0.1:0 --port 1)],
	[2, 'profllm dashboard: --listen 0.0.0.0:0: *', qw(dashboard --host 0.0.0.0 --port 0)],
	[2, 'profllm sim: unknown option --ttft; did you mean --ttft-ms?', qw(sim --ttft 3)],
	[2, 'profllm export: unknown option --col; did you mean --columns?', qw(export --col a)],
	[2, 'profllm run: unknown option --conf; did you mean --config?', qw(run --conf x.yaml)]) {
	my ($status, $message, @args) = @$row;
	my $r = run(args => \@args);

	is($r->{status}, $status, "profllm @args: exit status");
	like($r->{err}, qr/^\Q$message\E$/m, "profllm @args: message") if $message !~ /\*/;
	ok(matches((split /\n/, $r->{err})[0], $message), "profllm @args: message") if $message =~ /\*/;
}
ok(!-e '1', 'no file is named by a port');

# Options that take any text at all, and why nothing can be wrong with it.
my %any_text = (
	'bench serve' => {
		'model' => 'a name', 'served-model-name' => 'a name', 'lora-modules' => 'names',
		'label' => 'a name; too long for a file: bad-input.t',
		'result-dir' => 'a path: bad-input.t', 'result-filename' => 'a path: bad-input.t',
		'record' => 'a path: bad-input.t', 'output-json' => 'a path: outputs.t',
		(map { ("timed-trace-label-$_" => 'a key: datasets.t') }
			qw(timestamp input-length output-length hash-ids)),
		(map { ("sweep-$_" => 'points.t') }
			qw(max-concurrency request-rate summary-percentiles)), 'compare' => 'points.t',
		(map { ("$_-bench-category" => 'a category: datasets.t') } qw(spec speed)),
		(map { ("hf-$_" => 'a name of the data: test_sets_hf.c, test_data_source.c') }
			qw(subset split name text-column revision)),
		'bfcl-categories' => 'names of files: test_data_hf_bfcl.c',
	},
	'bench score' => {
		'result-dir' => 'a path: score.t', 'result-filename' => 'a path: score.t',
		'record' => 'a path: score.t', 'timeline-itl-thresholds' => 'two numbers: plots.t',
	},
	'bench tap' => { 'interface' => 'a name, not with a file', 'tokenizer' => 'a name',
		'result-dir' => 'a path: score.t', 'result-filename' => 'a path: score.t',
		'record' => 'a path: score.t', 'timeline-itl-thresholds' => 'two numbers: plots.t' },
	'sim' => { 'model' => 'a name', 'served-model-name' => 'names', 'api-key' => 'a secret',
		'spec-method' => 'any but those known costs a layer', 'load-format' => 'dummy or not',
		'kv-host' => 'a name', 'lora-modules' => 'NAME=PATH or JSON: tests/load/answers.t' },
	'bench sweep serve' => { map { ($_ => 'sweep-text.t') } qw(serve-cmd bench-cmd after-bench-cmd
		serve-params bench-params link-vars output-dir experiment-name resume) },
	'bench sweep startup' => { map { ($_ => 'sweep-text.t') } qw(startup-cmd serve-params
		startup-params output-dir experiment-name resume) },
	map { ("tokenizer $_" => { 'revision' => 'a name', 'text' => 'any text' }) } @tokenizer,
);

my %covered;
for my $row (@rows) {
	my ($short, $status, $message, @args) = @$row;
	my $verb = $short =~ /^(doctor|sim|tokenizer .*)$/ ? $short : "bench $short";
	my @command = @{$verb{$verb}};
	my ($option) = grep { /^--/ } @args;
	my $r;

	$covered{"$verb " . substr((split /[=.]/, $_)[0], 2)} = 1 for grep { /^--/ } @args;
	# Options of a table row replace the same ones of the smallest command.
	for my $i (reverse 0 .. $#command - 1) {
		splice @command, $i, 2 if grep { $_ eq $command[$i] } @args;
	}
	$r = run(args => [@command, @args]);
	$r->{err} =~ s/^WARNING: .*\n//mg;
	check_run("$verb @args" =~ s/[\r\n]/?/gr, $r,
		{ status => $status, err => "profllm $verb: $message" });
}

my @missed;
for my $verb (sort keys %options) {
	for my $o (@{$options{$verb}}) {
		next if $o->{kind} !~ /^(text|list)$/ || $o->{choices} || flag($o, 'later');
		next if $o->{name} =~ /^(help|show-config)$/;
		push @missed, "$verb --$o->{name}"
			unless $covered{"$verb $o->{name}"} || $any_text{$verb}{$o->{name}};
	}
}
is("@missed", '', 'every option that takes free text has a row above, or cannot be wrong');

done_testing();
