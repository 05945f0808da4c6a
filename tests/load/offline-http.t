#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Offline verbs against a server: what goes out, when, and what is made of the answers. The
# simulator's files are the referee; a server of our own takes what the simulator refuses.
# suite: shared
use strict;
use warnings;
use File::Temp ();
use FindBin;
use IO::Socket::IP ();
use JSON::PP ();
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
my @random = qw(--model sim --tokenizer sim --dataset-name random --random-input-len 24
	--random-output-len 6);
my $n = 0;

# Runs a verb with the http backend: { status, out, err, json }.
sub offline
{
	my ($verb, @args) = @_;
	my %r = (file => "$dir/" . ++$n . '.json');

	@r{qw(status out err)} = profllm('bench', $verb, '--backend', 'http', '--output-json',
		$r{file}, '--progress', 'none', @args);
	$r{json} = read_json($r{file});
	return \%r;
}

# Requests that the simulator wrote down, those with a body apart.
sub requests_of { return grep { $_->{path} eq ($_[1] // '/v1/completions') } read_lines($_[0]{requests}) }
sub body_of { return JSON::PP->new->decode($_[0]{body}) }
sub max { my $m = shift; for (@_) { $m = $_ if $_ > $m } return $m }
sub min { my $m = shift; for (@_) { $m = $_ if $_ < $m } return $m }

# ---- throughput ----

{
	my $sim = sim('--ttft-ms', '200', '--itl-ms', '5');
	my $r = offline('throughput', '--base-url', $sim->{url}, @random, '--num-prompts', '12');
	my @asked = requests_of($sim);
	my @truth = grep { defined $_->{output_tokens} } truth_of($sim);
	my $first = min(map { $_->{recv_ns} } @truth);
	my $last = max(map { $_->{send_ns}[-1] } @truth);
	my $bodies = [map { body_of($_) } @asked];

	is($r->{status}, 0, 'throughput of a server that runs') or diag($r->{err});
	is(scalar @asked, 12, 'a request for each prompt');
	cmp_ok(max(map { $_->{recv_ns} } @truth), '<', min(map { $_->{send_ns}[0] } @truth),
		'all of them before the first answer');
	is(scalar(grep { $_->{stream} || !$_->{ignore_eos} || $_->{max_tokens} != 6 || $_->{n} != 1 }
		@$bodies), 0, 'answers in one piece, of the length that was asked for');
	is(scalar(grep { $_->{temperature} != 1 || $_->{top_p} != 1 } @$bodies), 0, 'sampled as upstream');
	is($r->{json}{total_num_tokens}, 12 * 30, 'tokens are the server\'s');
	is($r->{json}{profllm}{total_output_tokens}, 12 * 6, '... and those of answers');
	cmp_ok($r->{json}{elapsed_time} * 1e9, '>=', $last - $first, 'the clock holds all of it');
	cmp_ok($r->{json}{elapsed_time} * 1e9, '<', $last - $first + 1e9, '... and little else');
	is($r->{json}{profllm}{method}, 'managed server', 'how it was measured is told');
}

# ---- what a prefix cache had: of this run, and of one before ----

{
	my $sim = sim(qw(--enable-prefix-caching --enable-prompt-tokens-details));
	my @ask = ('--base-url', $sim->{url}, qw(--model sim --tokenizer sim --num-prompts 4
		--random-output-len 2 --random-input-len 256));

	for ([[], undef], [[], qr/^9\d\.\d % of .* explain \d\.\d % \(limit: 10 % more\)\. Use another/],
		[[qw(--seed 1 --warmup-pass same)], undef], [[qw(--seed 2 --random-prefix-len 256)], undef],
		[[qw(--seed 3 --repeat-count 2)], undef]) {
		my ($more, $text) = @$_;
		my $r = offline('throughput', @ask, @$more);
		my ($reason) = grep { $_->{code} eq 'prefix_cache' } @{$r->{json}{profllm}{reasons}};

		defined $text ? like($reason->{text}, $text, 'the prompts of an earlier run')
			: is($reason->{text}, undef, "no prompts but its own: @$more");
	}
}

# ---- a paused scheduler, the profiler ----

{
	my $sim = sim();
	my $r = offline('throughput', '--base-url', $sim->{url}, @random, qw(--num-prompts 8
		--prequeue-requests --profile));
	my @all = read_lines($sim->{requests});
	my @order = map { $_->{path} =~ m{^/(\w+?)(?:_profile|_up|)$} ? $1 : $_->{path} eq
		'/v1/completions' ? 'ask' : () } grep { $_->{method} eq 'POST' } @all;
	my ($woken) = map { $_->{recv_ns} } grep { $_->{path} eq '/wake_up' } @all;
	my @truth = grep { defined $_->{output_tokens} } truth_of($sim);

	is($r->{status}, 0, 'prequeued and profiled') or diag($r->{err});
	is_deeply(\@order, ['sleep', 'start', ('ask') x 8, 'wake', 'stop'], 'in this order');
	cmp_ok($woken, '>', max(map { $_->{recv_ns} } @truth), 'woken when it has all requests');
	cmp_ok($woken, '<', min(map { $_->{send_ns}[0] } @truth), 'nothing is answered before');
}

# ---- latency: one request for a batch, where the server takes one ----

{
	my $sim = sim();
	my $r = offline('latency', '--base-url', $sim->{url}, qw(--model sim --batch-size 4 --input-len 8
		--output-len 5 --num-iters 2 --num-iters-warmup 1));
	my @asked = requests_of($sim);

	is($r->{status}, 0, 'latency of a server without lists') or diag($r->{err});
	is(scalar @asked, 1 + 3 * 4, 'the list is tried once, then requests go out together');
	is(scalar(() = $r->{err} =~ /takes one prompt in a request/g), 1, '... which is said once');
	is(scalar(grep { ref body_of($_)->{prompt} ne 'ARRAY' } @asked), 0, 'prompts are token ids');
	my %prompt = map { join(' ', @{ body_of($_)->{prompt} }) => 1 } @asked[1 .. $#asked];
	is(scalar keys %prompt, 3 * 4, 'a prefix cache knows none from an earlier iteration');
	is($r->{json}{profllm}{output_tokens_per_iteration}, 20, 'answers\' tokens');
	truth_of($sim);
}

# A server that takes lists, and writes down what it was asked; silent: it tells no counts.
sub list_server
{
	my (%how) = @_;
	my $listen = IO::Socket::IP->new(Listen => 64, LocalHost => '127.0.0.1', LocalPort => 0) or die;
	my ($port, $log) = ($listen->sockport, "$dir/list" . ++$n);
	my $pid = fork // die;

	return { url => "http://127.0.0.1:$port", log => $log, pid => $pid } if $pid;
	$SIG{CHLD} = 'IGNORE';
	while (my $c = $listen->accept) {
		next if fork;
		while (defined(my $line = <$c>)) {
			my ($path) = $line =~ m{^\w+ (\S+)};
			my ($length, $body) = (0, '');
			while (defined($line = <$c>) && $line ne "\r\n") {
				$length = $1 if $line =~ /^content-length: *(\d+)/i;
			}
			read $c, $body, $length if $length;
			open my $f, '>>', $log; print $f "$body\n" if $path =~ /completions/; close $f;
			my ($status, $answer) = (200, '{"data": [{"id": "listy", "max_model_len": 99}]}');
			if ($path =~ /completions/) {
				my $q = JSON::PP->new->decode($body);
				my $prompts = ref $q->{prompt} && ref $q->{prompt}[0] ? @{$q->{prompt}} : 1;
				my $sequences = $prompts * $q->{n};
				$answer = JSON::PP->new->encode({
					choices => [map { { index => $_, text => 'x' } } 1 .. $sequences],
					usage => { prompt_tokens => 8 * $prompts,
						completion_tokens => $sequences * $q->{max_tokens} } });
				$answer = '{"choices": [{"text": "x"}]}' if $how{silent};
			} elsif ($path =~ m{^/is_sleeping|^/sleep|^/tokenize}) {
				$status = 404;
			}
			print $c "HTTP/1.1 $status X\r\nContent-Type: application/json\r\nContent-Length: "
				. length($answer) . "\r\n\r\n$answer";
			$c->flush;
		}
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}

sub bodies { return map { JSON::PP->new->decode($_) } grep { /\S/ } split /\n/, slurp($_[0]{log}) }

{
	my $server = list_server();
	my @small = ('--base-url', $server->{url}, qw(--model listy --batch-size 3 --input-len 8
		--output-len 5 --num-iters 2 --num-iters-warmup 1 --seed 7));
	my $r = offline('latency', @small, '--n', '2');
	my @asked = bodies($server);

	is($r->{status}, 0, 'latency of a server with lists') or diag($r->{err});
	is(scalar @asked, 3, 'one request for each iteration');
	is($r->{json}{profllm}{seed}, undef, 'no seed fixes its prompts');
	like($r->{err}, qr/^WARNING: --seed has no effect with --base-url/m, 'which is said');
	is(scalar(grep { @{$_->{prompt}} != 3 || @{$_->{prompt}[0]} != 8 } @asked), 0, 'with all prompts');
	is($asked[0]{n}, 2, 'and how many sequences of each');
	is($r->{json}{profllm}{output_tokens_per_iteration}, 3 * 2 * 5, 'their tokens in all');
	is($r->{json}{profllm}{prompt_tokens_per_iteration}, 3 * 8, 'those of prompts once');
	$r = offline('latency', @small, '--use-beam-search', '--n', '4');
	is((bodies($server))[-1]{use_beam_search}, JSON::PP::true, 'a search with beams');
	$r = offline('throughput', '--base-url', $server->{url}, @random, qw(--num-prompts 2
		--prequeue-requests));
	is($r->{status}, 1, 'a server that cannot pause');
	like($r->{err}, qr/--prequeue-requests/, '... is no server for it');
	kill 'KILL', $server->{pid};
}
{
	my $server = list_server(silent => 1);
	my $r = offline('throughput', '--base-url', $server->{url}, @random, qw(--num-prompts 2));

	is($r->{status}, 1, 'answers without usage');
	like($r->{err}, qr/2 of 2 requests failed; the first: .*usage/, '... are none');
	kill 'KILL', $server->{pid};
}

# ---- a server of ours ----

# How often a program with these words runs.
sub running { my ($word) = @_; return scalar grep { slurp($_) =~ /\Q$word\E/ } glob '/proc/[0-9]*/cmdline' }

{
	my $r = offline('throughput', '--server-cmd', "$PROFLLM sim --served-model-name only-$$", @random,
		qw(--num-prompts 3), '--worker-log', "$dir/server.log");

	is($r->{status}, 0, 'a server that is started for it') or diag($r->{err});
	is($r->{json}{profllm}{engine}{told}{model}, "only-$$", 'its own name of the model is used');
	ok(!running("only-$$"), '... is ended');
	like(slurp("$dir/server.log"), qr/serving model only-/, '... and leaves its log where it was wanted');
	cmp_ok($r->{json}{profllm}{load}{ready_s}, '>', 0, 'how long it took to start');
}
{
	my $log = spew("$dir/old.log", "INFO Loading weights took 99.50 seconds\n");
	my $r = offline('startup', '--server-cmd', "$PROFLLM sim --startup-scale 0.001", '--model',
		'meta-llama/Llama-3.1-8B-Instruct', '--tokenizer', 'sim', '--worker-log', $log,
		qw(--num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 0));
	my $s = $r->{json}{profllm}{cold}{iterations}[0]{phases}{'load weights'};

	is($r->{status}, 0, 'a start with a log that holds another') or diag($r->{err});
	ok(defined $s && $s < 50, '... is told by its own lines') or diag($s // 'nothing');
}
for my $row (
	['no such command', '/no/such/server', [], 2, qr/no such|not found|No such/i],
	['an argument that it has not', "$PROFLLM sim --no-such-thing", [], 2, qr/no-such-thing/],
	['a server that fails to start', "$PROFLLM sim --fail-start oom", [], 1, qr/out of memory/],
	['a server that dies', "$PROFLLM sim --die-after 2req --ttft-ms 300 --served-model-name dies-$$",
		[], 1, qr/crashed with return code 1/],
	['a server that is never ready', "$PROFLLM sim --never-ready --served-model-name never-$$",
		['--load-timeout', '1'], 1, qr/within 1 seconds/],
	['a server that answers nothing', "$PROFLLM sim --ttft-ms 60000 --served-model-name mute-$$",
		['--worker-timeout', '1', '--server-grace', '1'], 1, qr/answered nothing for 1 seconds/],
	['a server that refuses', "$PROFLLM sim --fault status=503", [], 1, qr/3 of 3 requests failed/],
	['no address', "$PROFLLM sim", [], 2, qr/--base-url: 'nonsense' has no scheme/, 'nonsense'],
	['both kinds', "$PROFLLM sim", ['--base-url', 'http://127.0.0.1:1'], 2, qr/exclude each other/]) {
	my ($name, $cmd, $args, $status, $says, $url) = @$row;
	my $r = offline('throughput', $url ? ('--base-url', $url) : ('--server-cmd', $cmd), @random,
		'--num-prompts', '3', @$args);
	my ($word) = $cmd =~ /(\w+-$$)/;

	is($r->{status}, $status, $name) or diag($r->{err});
	unlike($r->{err}, qr/profllm_server_/, "$name: no file is named that is gone");
	like($r->{err}, $says, "$name: the sentence");
	ok(!$word || !running($word), "$name: nothing is left");
	is($r->{json}, undef, "$name: no result");
}
{
	my $sim = sim('--ttft-ms', '30000');
	my $pid = child_start("$dir/o", "$dir/e", $PROFLLM, qw(bench throughput --backend http --base-url),
		$sim->{url}, @random, '--num-prompts', '3');

	wait_until(30, sub { requests_of($sim) == 3 });
	is(child_stop($pid, 'INT'), 130, 'Ctrl-C in the middle');
	my ($status) = profllm(qw(bench throughput --backend http --base-url), $sim->{url}, '--dry-run',
		@random);
	is($status, 0, 'a server that runs is still there, and not asked by --dry-run');
	is(scalar requests_of($sim), 3, '... indeed');
	truth_of($sim);
}

# ---- a chat template that only the server can apply ----

sub spew { my ($path, $text) = @_; open my $f, '>', $path or die; print $f $text; close $f; return $path }

{
	my $model = "$dir/other";

	mkdir $model;
	spew("$model/tokenizer.json", slurp("$FindBin::Bin/../unit/token/small.json"));
	spew("$model/tokenizer_config.json", '{"bos_token": "<|bos|>"}');
	spew("$model/chat_template.jinja", '{{ made_up }}');
	spew("$dir/p.jsonl", qq({"prompt": "one prompt", "output_tokens": 3}\n));
	my $sim = sim('--model', 'org/m', '--tokenizer', $model);
	my $r = offline('throughput', '--base-url', $sim->{url}, '--model', 'org/m', '--tokenizer', $model,
		'--dataset-name', 'custom', '--dataset-path', "$dir/p.jsonl", qw(--num-prompts 1
		--output-len 3));
	my ($asked) = requests_of($sim);

	is($r->{status}, 0, 'messages are rendered by the server') or diag($r->{err});
	is($asked ? body_of($asked)->{prompt} : undef, "<|user|>\none prompt\n<|assistant|>\n",
		'... and sent as it renders them');
	cmp_ok(scalar requests_of($sim, '/detokenize'), '>', 0, '... by way of its ids');
	truth_of($sim);
}

# ---- what a server cannot tell ----

{
	my $sim = sim();
	my $r = offline('mm-processor', '--base-url', $sim->{url}, qw(--model sim --tokenizer sim
		--num-prompts 2 --num-warmups 0));

	is($r->{status}, 0, 'mm-processor: end-to-end times alone') or diag($r->{err});
	like($r->{out}, qr/not available/, '... which is said');
	is(scalar requests_of($sim, '/v1/chat/completions'), 2, '... of chats');
	truth_of($sim);
}

done_testing();
