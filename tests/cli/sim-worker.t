#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm sim --engine-worker, over its socket: its answers, the account that it writes, and the
# faults that options ask for.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Fcntl qw(F_SETFD);
use JSON::PP ();
use POSIX ();
use Socket;
use Test::More;
use Time::HiRes qw(time);

my $json = JSON::PP->new->allow_nonref;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my @quick = qw(--decode-base-us 1000 --decode-us-per-seq 10 --prefill-base-us 200
	--prefill-us-per-token 2 --startup-scale 0);
my @all = (n => 1, ignore_eos => $true, detokenize => $true);

# ---- the other end ----

sub spawn {
	my (%o) = @_;
	my $w = { n => 0, seen => [] };

	socketpair($w->{fd}, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!\n";
	$w->{pid} = fork;
	if (!$w->{pid}) {
		close $w->{fd};
		POSIX::dup2(fileno $theirs, 3) if fileno $theirs != 3;
		fcntl($theirs, F_SETFD, 0) if fileno $theirs == 3;
		$ENV{$_} = $o{env}{$_} for keys %{$o{env} || {}};
		$ENV{PROFLLM_WORKER_FD} = 3;
		open STDERR, '>', 'worker.log';
		exec { $program } $program, 'sim', '--engine-worker', @{$o{args} || []}
			or POSIX::_exit(127);
	}
	close $theirs;
	return $w;
}

sub take {
	my ($w, $n) = @_;
	my $got = '';

	while (length $got < $n) {
		my $k = sysread $w->{fd}, $got, $n - length $got, length $got;
		return undef unless $k;
	}
	return $got;
}

sub hear {
	my ($w) = @_;
	my $head = take($w, 4);
	my $length = defined $head ? unpack('N', $head) : 0;

	return undef unless defined $head && $length < 1 << 28;
	my $text = take($w, $length);
	return defined $text ? eval { $json->decode($text) } : undef;
}

sub ask {
	my ($w, $type, %members) = @_;
	my $text = $json->encode({ id => ++$w->{n}, type => $type, %members });

	syswrite $w->{fd}, pack('N', length $text) . $text;
	while (my $frame = hear($w)) {
		return $frame if defined $frame->{id};
		push @{$w->{seen}}, $frame;
	}
	return undef;
}

sub bury {
	my ($w) = @_;
	close $w->{fd};
	kill 'KILL', $w->{pid} if $w->{is_stuck};
	waitpid $w->{pid}, 0;
	return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

# A worker that has loaded the engine.
sub loaded {
	my ($args, %o) = @_;
	my $w = spawn(%o);

	hear($w) or die 'no hello: ' . slurp('worker.log');
	$w->{load} = ask($w, 'load', backend => 'sim', args => ['--model', 'sim', @quick, @$args],
		%{$o{load} || {}});
	return $w;
}

sub put {
	my ($w, @requests) = @_;
	return ask($w, 'put', is_first => $true, requests => \@requests);
}

sub same {
	my ($n, $prompt, $output) = @_;
	return map { my $i = $_; { prompt => [map { $i * 1000 + $_ } 1 .. $prompt],
		output_len => $output } } 1 .. $n;
}

sub sum { my $s = 0; $s += $_ for @_; return $s }

# ---- the talk ----

{
	my $w = spawn();
	my $hello = hear($w);

	is($hello->{type}, 'hello', 'it speaks first');
	is("$hello->{protocol} $hello->{engine}", '1 sim', 'and says who it is');
	is_deeply([sort @{$hello->{features}}],
		[qw(async beam chat encode lora mm_stats prequeue priority profile render sampling)],
		'all features');
	my $early = ask($w, 'generate', @all);
	is("$early->{type} $early->{text}", 'error generate before load', 'nothing runs before load');
	is(ask($w, 'render', messages => [{ role => 'user', content => 'hi' }])->{text},
		"<|user|>\nhi\n<|assistant|>\n", 'render needs no engine');
	my $load = ask($w, 'load', args => [@quick, '--max-model-len', '64', '--model', 'm']);
	ok($load->{ended_ns} >= $load->{began_ns}, 'loading has a begin and an end');
	my $about = ask($w, 'describe');
	is("$about->{engine} $about->{max_model_len} $about->{model} $about->{is_pooling}",
		'sim 64 m 0', 'describe');
	is(put($w, same(3, 8, 4))->{n}, 3, 'put counts');
	is(ask($w, 'put', requests => [same(2, 8, 2)])->{n}, 5, 'in several parts');
	my $ran = ask($w, 'generate', @all, n => 2);
	is_deeply($ran->{prompt_tokens}, [8, 8, 8, 8, 8], 'prompt tokens of each');
	is_deeply($ran->{output_tokens}, [8, 8, 8, 4, 4], 'output tokens over all sequences');
	is_deeply([scalar @{$ran->{e2el_s}}, scalar @{$ran->{finished}}], [5, 5], 'and the rest');
	ok($ran->{e2el_s}[0] > 0 && $ran->{e2el_s}[0] <= ($ran->{ended_ns} - $ran->{began_ns}) / 1e9,
		'a request ends within the run');
	put($w, { prompt => [1 .. 64], output_len => 1 });
	like(ask($w, 'generate', @all)->{text}, qr/decoder prompt \(length 64\).*maximum model length/,
		'the context is a limit');
	put($w, { prompt => [1 .. 60], output_len => 100 }, { prompt => [1], output_len => undef });
	is_deeply(ask($w, 'generate', @all, n => undef)->{output_tokens}, [4, 63],
		'where an answer ends');
	like(put($w, { prompt => 7, output_len => 1 })->{text}, qr/requests\[0\]: prompt: expected/,
		'a prompt that is none');
	is(ask($w, 'dance')->{category}, 'unsupported', 'an unknown question');
	is(ask($w, 'encode', @all)->{category}, 'unsupported', 'a generating model does not embed');
	is(ask($w, 'shutdown')->{type}, 'ok', 'shutdown is answered');
	is(bury($w), 0, 'and ends it with 0');
}
{
	my $w = spawn();

	hear($w);
	is(bury($w), 0, 'the end of the socket ends it, too');
	my $r = run(args => [qw(sim --engine-worker)], env => { PROFLLM_WORKER_FD => 77 });
	is($r->{status}, 2, 'without a socket it does not start');
	like($r->{err}, qr/descriptor 77, which is not open/, 'and says why');
	$r = run(args => [qw(sim --engine-worker --worker-fault dance)]);
	like($r->{err}, qr/--worker-fault: expected KIND/, 'a mishap that is none');
}

# ---- arguments ----

for my $case (
	[['--max-model-len', 'x'], 'flag', qr/max-model-len/],
	[['--ttft-ms', '5'], 'flag', qr/only the engine model/],
	[['--truth', 'f'], 'flag', qr/--account FILE/],
	[['--gpu', 'l4-24gb', '--model-shape', 'llama-3.1-70b'], 'memory', qr/memory/i],
	[['--tokenizer', '/no/such/thing'], 'model', qr{/no/such/thing}],
	[['--fail-start', 'oom'], 'memory', qr/OutOfMemory/],
) {
	my ($args, $category, $text) = @$case;
	my $w = loaded($args);

	is($w->{load}{category}, $category, "@$args: $category");
	like($w->{load}{text}, $text, 'with its reason');
	is(ask($w, 'load', args => [@quick])->{type}, 'ok', 'another load may follow');
	bury($w);
}

# ---- figures against the account ----

{
	my $w = loaded(['--account', 'a.jsonl', '--no-enable-prefix-caching']);
	my @ran;

	put($w, same(20, 16, 12));
	push @ran, ask($w, 'generate', @all, is_progress => $true);
	push @ran, ask($w, 'generate', @all, prequeue => $true);
	push @ran, ask($w, 'chat', @all);
	push @ran, ask($w, 'beam', @all, n => 2);
	bury($w);
	my ($load, @rows) = lines_of('a.jsonl');
	is($load->{kind}, 'load', 'a load is accounted for');
	is_deeply([map { $_->{kind} } @rows], [qw(generate generate chat beam)], 'and each run');
	for my $i (0 .. 3) {
		my ($row, $ran) = ($rows[$i], $ran[$i]);
		my $s = ($ran->{ended_ns} - $ran->{began_ns}) / 1e9;

		ok(abs($row->{wall_s} - $s) < 1e-6, "$row->{kind}: its clock is the answer's");
		ok($s >= $row->{modelled_s}, 'which takes at least what is modelled');
		cmp_ok($row->{output_tokens}, '==', sum(@{$ran->{output_tokens}}), 'output tokens');
		cmp_ok($row->{prompt_tokens}, '==', sum(@{$ran->{prompt_tokens}}), 'prompt tokens');
		is($row->{cached_tokens}, 0, 'nothing is cached');
	}
	is(scalar(grep { $_->{type} ne 'progress' } @{$w->{seen}}), 0, 'only progress between');
	# 12 steps: 20 prompts of 16 tokens together, then 11 times 20 sequences.
	is($rows[1]{steps}, 12, 'queued first, all begin together');
	ok(abs($rows[1]{steps_s} - (200 + 20 * 16 * 2 + 11 * (1000 + 20 * 10)) * 1e-6) < 1e-9,
		'and cost what the options say');
	cmp_ok($rows[0]{steps}, '>', 12, 'one after the other, they do not');
	cmp_ok($rows[2]{prompt_tokens}, '>', $rows[1]{prompt_tokens}, 'a chat has its template');
	is($rows[3]{output_tokens}, 20 * 12 * 2, 'beams are counted by their width');
	cmp_ok($rows[3]{steps_s}, '>', $rows[1]{steps_s}, 'and cost more');
}
{
	my $w = loaded(['--account', 'b.jsonl', '-dp', '2', '--spec-tokens', '2',
		'--kv-cache-tokens', '256', '--output-len', '3']);

	put($w, (map { { prompt => [1 .. 40], output_len => 20,
		lora => { name => 'l', id => 1, path => '/l' } } } 1 .. 6));
	is_deeply(ask($w, 'generate', @all)->{output_tokens}, [(20) x 6], 'a small KV cache, drafts');
	is_deeply(ask($w, 'generate', @all, ignore_eos => $false)->{output_tokens}, [(3) x 6],
		'answers end by themselves');
	bury($w);
	my (undef, $first, $second) = lines_of('b.jsonl');
	is($first->{lora}, 6, 'LoRA requests are counted');
	cmp_ok($second->{cached_tokens}, '==', 6 * 32, 'known prompts');
}

# ---- priorities ----

# One at a time: who is done first is decided by the requests' own priorities.
{
	my $w = loaded(['--scheduling-policy', 'priority', '--max-num-seqs', '1']);
	my $bare = loaded([]);
	my @urgent = map { { prompt => [1 .. 8], output_len => 4, priority => $_ } } 5, 0, -5, 0;

	put($w, @urgent);
	my $e2el = ask($w, 'generate', @all, prequeue => $true)->{e2el_s};
	is_deeply([sort { $e2el->[$a] <=> $e2el->[$b] } 0 .. 3], [2, 1, 3, 0], 'lower values first');
	bury($w);
	put($bare, @urgent);
	my $refused = ask($bare, 'generate', @all);
	is("$refused->{type} $refused->{category}", 'error flag', 'only where the policy says so');
	like($refused->{text}, qr/Got priority 5 but Priority scheduling is not enabled\./, 'as in vLLM');
	bury($bare);
}

# ---- pooling, media, profiles ----

{
	my $w = loaded(['--runner', 'pooling']);

	put($w, same(2, 8, 0));
	is_deeply(ask($w, 'encode')->{output_tokens}, [0, 0], 'a pooling model embeds');
	is(ask($w, 'generate', @all)->{category}, 'unsupported', 'and generates nothing');
	bury($w);
}
{
	my $w = loaded(['--account', 'm.jsonl'], load => { mm_stats => $true });
	my $bytes = JSON::PP->new->encode([1 .. 3000]); # of no kind that we know
	my @image = map { { type => 'image_url', image_url => { url => "data:image/x,$_$bytes" } } } 1, 2;
	my @messages = map { [{ role => 'user', content => [{ type => 'text', text => 'see' }, $_] }] }
		@image, $image[0];

	put($w, map { { messages => $_, output_len => 2 } } @messages);
	my $ran = ask($w, 'chat', @all);
	is($ran->{prompt_tokens}[0], $ran->{prompt_tokens}[1], 'media count as tokens');
	my $stats = ask($w, 'mm_stats')->{requests};
	is_deeply([sort keys %$stats], [0, 1, 2], 'stages of each request');
	is($stats->{0}{num_encoder_calls}, 1, 'the encoder is called');
	is($stats->{2}{num_encoder_calls}, 0, 'but not for what it knows');
	cmp_ok($stats->{0}{apply_hf_processor_secs}, '>', $stats->{2}{apply_hf_processor_secs},
		'nor is the processor');
	for my $s (values %$stats) {
		ok(abs($s->{preprocessor_total_secs} - sum(@$s{qw(get_mm_hashes_secs
			get_cache_missing_items_secs apply_hf_processor_secs merge_mm_kwargs_secs
			apply_prompt_updates_secs)})) < 1e-8, 'stages add up');
	}
	is_deeply(ask($w, 'mm_stats')->{requests}, {}, 'and are told once');
	bury($w);
	my (undef, $row) = lines_of('m.jsonl');
	is($row->{media}, 3, 'the account counts media');
	ok(abs($row->{encoder_s} - sum(map { $_->{encoder_forward_secs} } values %$stats)) < 1e-6,
		'and the encoder');
}
{
	my $w = loaded([]);

	put($w, same(1, 4, 4));
	like(ask($w, 'generate', @all, profile => $true)->{text}, qr/--profiler-config/,
		'no profile without a folder');
	bury($w);
	$w = loaded(['--profiler-config', '{"profiler":"torch","torch_profiler_dir":"traces"}']);
	is(ask($w, 'describe')->{profile_dir}, 'traces', 'the folder is told');
	put($w, same(1, 4, 4));
	is(ask($w, 'generate', @all, profile => $true)->{type}, 'ok', 'a profiled run');
	ask($w, 'profile_start');
	ask($w, 'generate', @all);
	is(ask($w, 'profile_stop')->{type}, 'ok', 'and one from outside');
	bury($w);
	my @traces = map { $json->decode(slurp($_)) } glob 'traces/*.pt.trace.json';
	is_deeply([map { scalar @{$_->{traceEvents}} } @traces], [4, 4], 'traces have the steps');
}

# ---- the compile cache ----

{
	my @loads;

	for my $multi (0, 0, 1) {
		my $w = loaded(['--account', 'c.jsonl', '--startup-scale', '0.001'], env => {
			VLLM_CACHE_ROOT => 'cc', VLLM_ENABLE_V1_MULTIPROCESSING => $multi });
		push @loads, $w->{load};
		bury($w);
	}
	my @rows = lines_of('c.jsonl');
	ok(!$rows[0]{is_compiled} && $rows[1]{is_compiled}, 'the second start finds the first one\'s');
	cmp_ok($rows[1]{phases}{'torch.compile'}{modelled_s}, '<',
		$rows[0]{phases}{'torch.compile'}{modelled_s} / 4, 'which is quicker');
	for my $i (0 .. 2) {
		my $s = ($loads[$i]{ended_ns} - $loads[$i]{began_ns}) / 1e9;

		ok($s >= $rows[$i]{modelled_s}, 'a load takes what is modelled');
		is_deeply([map { $_->{name} } @{$loads[$i]{phases}}], [$i == 2 ? 'engine process' : (),
			'load weights', 'torch.compile', 'KV cache', 'CUDA graphs', 'warm-up'], 'phases');
	}
	ok(defined $loads[0]{compilation_s} && !defined $loads[2]{compilation_s},
		'counters are readable in one process');
	my $log = slurp('worker.log');
	like($log, qr/$_/, "log: $_") for 'Loading weights took', 'Directly load the compiled graph',
		'GPU KV cache size: ', 'Graph capturing finished in', 'init engine \(profile, create kv';
	my $w = loaded(['--startup-scale', '0.001', '--dtype', 'float32'],
		env => { VLLM_CACHE_ROOT => 'cc', VLLM_ENABLE_V1_MULTIPROCESSING => 0 });
	is(scalar(() = glob 'cc/torch_compile_cache/*/compiled'), 2, 'other arguments, another entry');
	bury($w);
}

# ---- going wrong ----

{
	my @cases = (
		['killed', 'signal 9'], ['exit=7', 7], ['oom@put', 1],
		['cut', 1], ['not-json', 0], ['garbage', 'signal 9', 1],
		['oversize', 'signal 9', 1], ['close', 'signal 9', 1],
	);
	for my $case (@cases) {
		my ($fault, $status, $is_stuck) = @$case;
		my $w = loaded(['--worker-fault', $fault]);

		put($w, same(2, 4, 2));
		is(ask($w, 'generate', @all), undef, "$fault: no answer");
		$w->{is_stuck} = $is_stuck;
		is(bury($w), $status, "its end: $status");
	}
	for my $category (qw(missing flag model memory unsupported other)) {
		my $w = loaded(['--worker-fault', "$category\@put"]);

		is(put($w, same(1, 1, 1))->{category}, $category, "$category is answered");
		bury($w);
	}
	my $w = loaded(['--worker-fault', 'wrong-id']);
	put($w, same(2, 4, 2));
	is(ask($w, 'generate', @all)->{id}, 4, 'the wrong id');
	bury($w);
	$w = loaded(['--worker-fault', 'short']);
	put($w, same(2, 4, 2));
	is(scalar @{ask($w, 'generate', @all)->{output_tokens}}, 1, 'a count is missing');
	bury($w);
	$w = spawn(args => ['--worker-fault', 'missing@hello']);
	is(hear($w)->{category}, 'missing', 'instead of hello');
	is(bury($w), 1, 'and it is over');
	$w = loaded(['--worker-fault', 'memory@load']);
	is($w->{load}{category}, 'memory', 'a load that brings its own fault');
	bury($w);
	$w = loaded(['--worker-fault', 'missing@hello']);
	like($w->{load}{text}, qr/--worker-fault missing\@hello: a hello fails on the worker's own/,
		'a hello is over by then');
	bury($w);
	$w = loaded(['--die-after', '3req']);
	put($w, same(2, 4, 2));
	is(ask($w, 'generate', @all)->{type}, 'ok', '--die-after: the first batch');
	is(ask($w, 'generate', @all), undef, 'the second one is too many');
	is(bury($w), 1, 'status 1');
	like(slurp('worker.log'), qr/--die-after/, 'with a reason in the log');
}

done_testing();
