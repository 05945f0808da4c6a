#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# roles.t - the simulator as prefill and decode server, proxy and cache: what a proxy forwards and
# adds, what a transfer costs, and that the client's times are those of all truth files together.
#
# Servers are chained by ids: the proxy's truth says which id it forwarded for which request.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IO::Socket::IP ();
use JSON::PP ();
use LoadTest;
use Test::More;
use Time::HiRes qw(time);

my $US = 20; # of a token's way from one server to another
my $names = '___prefill_addr_localhost:14579___decode_addr_localhost:14580';

# One request by hand: status and body.
sub ask {
	my ($s, $method, $path, $body, @headers) = @_;
	my $c = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $s->{port}, Timeout => 20)
		or die "no connection: $@";
	$body = '' unless defined $body;
	print $c join("\r\n", "$method $path HTTP/1.1", 'Host: x', 'Connection: close',
		'Content-Length: ' . length $body, @headers, '', $body);
	local $/;
	my $answer = <$c>;
	my ($status) = $answer =~ m,^HTTP/1\.1 (\d+),;
	my ($head, $rest) = split /\r\n\r\n/, $answer, 2;
	$rest =~ s/(?:\A|\r\n)[0-9a-f]+\r\n//g if $head =~ /chunked/i;
	return ($status, $rest);
}

sub completion {
	my ($s, $ids, $tokens, @headers) = @_;
	return ask($s, 'POST', '/v1/completions', JSON::PP::encode_json({ model => 'sim',
		prompt => $ids, max_tokens => $tokens }), @headers);
}

sub stop { return truth_of(@_) }

subtest 'disaggregated prefill' => sub {
	my $prefill = sim('--role', 'prefill');
	my $decode = sim('--kv-transfer-config',
		'{"kv_connector": "P2pNcclConnector", "kv_role": "kv_consumer"}',
		'--kv-transfer-us-per-token', $US);
	my $proxy = sim('--role', 'proxy', '--prefill-url', $prefill->{url}, '--decode-url',
		$decode->{url});
	my $r = serve($proxy, '--num-prompts', 12, '--request-rate', 20, '--random-input-len', 300);

	is $r->{status}, 0 or diag $r->{err};
	is $r->{result}{completed}, 12;
	my %before = map { $_->{request_id} => $_ } stop($prefill);
	my %after = map { $_->{request_id} => $_ } stop($decode);
	my @front = grep { defined $_->{request_id} } stop($proxy);
	is scalar @front, 12, 'the proxy has told of each request';
	my ($wrong_id, $wrong_work, $wrong_order, $wrong_sum) = (0, 0, 0, 0);
	for my $f (@front) {
		my $id = $f->{forwarded_id};
		my ($p, $d) = ($before{$id}, $after{$id});
		$wrong_id++ unless $p && $d && $id =~ /^\Q$names\E_[0-9a-f]{32}$/;
		next unless $p && $d;
		# One token there, all of them here, and of the prompt only the last token computed
		# again.
		$wrong_work++ unless $p->{output_tokens} == 1 && $d->{output_tokens} == 8 &&
			$d->{prompt_tokens} == 300 && $d->{cached_tokens} == 299 &&
			$d->{transferred_tokens} == 299 && $d->{transfer_ns} >= 299 * $US * 1000 &&
			!exists $p->{transferred_tokens};
		my @times = ($f->{recv_ns}, $f->{prefill}{sent_ns}, $p->{recv_ns}, $p->{send_ns}[0],
			$f->{prefill}{end_ns}, $f->{decode}{sent_ns}, $d->{recv_ns}, $d->{send_ns}[0],
			$f->{send_ns}[0], $f->{end_ns});
		$wrong_order++ if grep { $times[$_] < $times[$_ - 1] } 1 .. $#times;
		# What the two servers and the link took is in the time to the first token, and the proxy
		# is all that comes on top.
		my $model = $p->{send_ns}[0] - $p->{recv_ns} + $d->{send_ns}[0] - $d->{recv_ns};
		my $seen = $f->{send_ns}[0] - $f->{recv_ns};
		$wrong_sum++ unless $seen >= $model && $d->{send_ns}[0] - $d->{recv_ns} >= $d->{transfer_ns};
	}
	is $wrong_id, 0, 'both servers saw the id';
	is $wrong_work, 0, 'each did its part';
	is $wrong_order, 0, 'one after the other';
	is $wrong_sum, 0, 'and their times add up';
	# The client's own times against the proxy's.
	my @ttft = sort { $a <=> $b } @{$r->{result}{ttfts}};
	my @truth = sort { $a <=> $b } map { ($_->{send_ns}[0] - $_->{recv_ns}) / 1e9 } @front;
	is scalar(grep { $ttft[$_] < $truth[$_] - 0.0005 } 0 .. 11), 0, 'no TTFT is below the truth';
	cmp_ok $ttft[5] - $truth[5], '<', 0.05, 'nor far above';
};

subtest 'a decode server by itself' => sub {
	my $decode = sim('--role', 'decode');
	my @ids = (1000 .. 1199);

	is +(completion($decode, \@ids, 2))[0], 200;
	is +(completion($decode, [@ids, 7], 2, "X-Request-Id: ${names}_0"))[0], 200;
	is +(completion($decode, [9, @ids], 2, "X-Request-Id: ${names}_1", 'X-KV-Target: b:2'))[0],
		200;
	my @t = stop($decode);
	is_deeply [map { $_->{cached_tokens} } @t], [0, 200, 0],
		'computes what nobody has prefilled, and what it is to prefill';
	is_deeply [map { $_->{transferred_tokens} } @t], [undef, 8, undef],
		'and brings only what its own cache does not have';
};

subtest 'decode bench' => sub {
	my $s = sim('--kv-transfer-config',
		'{"kv_connector": "DecodeBenchConnector", "kv_role": "kv_both"}');
	my $r = serve($s, '--num-prompts', 6, '--random-input-len', 2000, '--random-output-len', 4);

	is $r->{result}{completed}, 6;
	is_deeply [map { $_->{cached_tokens} } stop($s)], [(1999) x 6], 'nothing is prefilled';
};

subtest 'host memory' => sub {
	# A KV cache of two such prompts, host memory for all.
	my $s = sim('--kv-cache-tokens', 4096, '--max-model-len', 4096, '--kv-offloading-size', 4,
		'--kv-transfer-us-per-token', $US);
	my @prompt = map { my $n = $_; [map { 1000 + 5 * $_ + $n } 1 .. 2000] } 0 .. 3;

	completion($s, $prompt[$_], 1) for 0 .. 3;
	completion($s, $prompt[$_], 1) for 0 .. 3;
	ask($s, 'POST', '/reset_prefix_cache');
	completion($s, $prompt[3], 1);
	ask($s, 'POST', '/reset_prefix_cache?reset_external=true');
	completion($s, $prompt[3], 1);
	my (undef, $metrics) = ask($s, 'GET', '/metrics');
	my @t = stop($s);
	is_deeply [map { $_->{transferred_tokens} || 0 } @t[0 .. 3]], [0, 0, 0, 0], 'cold';
	is_deeply [map { $_->{cached_tokens} } @t[4 .. 7]], [(1999) x 4], 'warm';
	is_deeply [map { $_->{transferred_tokens} } @t[4 .. 7]], [(1999) x 4],
		'what the KV cache had no room for came from the host';
	is $t[8]{transferred_tokens}, 1999, 'which a reset of the prefix cache leaves';
	is $t[9]{cached_tokens}, 0, 'unless it is to go, too';
	my $cold = $t[0]{send_ns}[0] - $t[0]{recv_ns};
	my $warm = $t[4]{send_ns}[0] - $t[4]{recv_ns};
	cmp_ok $warm, '>=', 1999 * $US * 1000, 'bringing it takes its time';
	cmp_ok $warm, '<', $cold, 'but less than computing it';
	like $metrics, qr/^vllm:external_prefix_cache_hits_total\{[^}]*\} 9995\.0$/m;
};

subtest 'a cache server' => sub {
	my $cache = sim('--role', 'cache');
	my @s = map { sim('--kv-cache-url', $cache->{url}, '--kv-transfer-us-per-token', $US) } 1 .. 2;
	my @ids = (2000 .. 2999);

	completion($s[0], \@ids, 1);
	# What one server computed is written to the cache after its answer.
	ok wait_until(10, sub { slurp($cache->{requests}) =~ m,"/kv/keep", });
	completion($s[1], \@ids, 1);
	stop($cache);
	is +(completion($s[0], [reverse @ids], 1))[0], 200, 'without it they compute themselves';
	my @one = stop($s[0]);
	my @two = stop($s[1]);
	is $one[0]{cached_tokens}, 0;
	is $two[0]{transferred_tokens}, 992, 'the other one need not compute it';
	is $one[1]{cached_tokens}, 0;
};

subtest 'bad requests to a cache server' => sub {
	my $cache = sim('--role', 'cache');
	is +(ask($cache, 'POST', '/kv/look', "zz\n"))[0], 400;
	is +(ask($cache, 'POST', '/kv/keep', "0123456789abcdef0\n"))[0], 400;
	is +(ask($cache, 'POST', '/kv/keep', "0123456789abcdef\nfedcba9876543210\n"))[0], 200;
	like +(ask($cache, 'POST', '/kv/look', "0123456789abcdef\n0000000000000000\nfedcba9876543210\n"))[1],
		qr/^1$/, 'what follows an unknown block is not known';
	like +(ask($cache, 'POST', '/kv/look', "0123456789abcdef\nfedcba9876543210\n"))[1], qr/^2$/;
	stop($cache);
};

subtest 'round robin' => sub {
	my @s = map { sim('--ttft-ms', 5, '--itl-ms', 1) } 1 .. 2;
	my $proxy = sim('--role', 'proxy', '--backend-url', map { $_->{url} } @s);
	my $r = serve($proxy, '--num-prompts', 10, '--max-concurrency', 3);

	is $r->{status}, 0 or diag $r->{err};
	my @front = stop($proxy);
	my @seen = map { [grep { $_->{request_id} } stop($_)] } @s;
	is_deeply [sort map { $_->{request_id} } @front], [sort map { $_->{request_id} } map { @$_ } @seen],
		'ids are left as they are';
	is scalar @front, 10;
	my %from;
	$from{"http://$_->{decode}{url}"}++ for @front;
	is_deeply \%from, { map { $_->{url} => 5 } @s }, 'in turn';
	is_deeply [map { $_->{prefill} } @front], [(undef) x 10];
};

subtest 'servers that fail' => sub {
	my $decode = sim('--role', 'decode');
	my ($socket, $port) = listen_local();
	my $closed = "http://127.0.0.1:$port";
	close $socket;
	my $prefill = sim('--ttft-ms', 5, '--fault', 'status=503');
	my $proxy = sim('--role', 'proxy', '--prefill-url', $closed, '--decode-url', $decode->{url});
	my ($status, $body) = completion($proxy, [1 .. 5], 1);
	is $status, 503;
	like $body, qr/the prefill server does not answer: /;
	stop($proxy);

	$proxy = sim('--role', 'proxy', '--prefill-url', $prefill->{url}, '--decode-url', $decode->{url});
	($status, $body) = completion($proxy, [1 .. 5], 1);
	is $status, 500;
	like $body, qr/the prefill server refused: .*this server fails on purpose/;
	my ($told) = stop($proxy);
	is $told->{status}, 500;
	is $told->{decode}, undef, 'the decode server was not asked';
	stop($prefill);

	# Half an answer stays half.
	my $broken = sim('--ttft-ms', 1, '--itl-ms', 1, '--fault', 'reset@3');
	$proxy = sim('--role', 'proxy', '--backend-url', $broken->{url});
	my $r = serve($proxy, '--num-prompts', 3);
	is $r->{result}{completed}, 0;
	is $r->{result}{failed}, 3;
	stop($_) for $proxy, $broken, $decode;
};

subtest 'wrong words' => sub {
	my @rows = (
		[[qw(--role proxy)], 2, qr/expected --prefill-url and --decode-url, or --backend-url/],
		[[qw(--role proxy --prefill-url http://127.0.0.1:1)], 2, qr/expected --prefill-url and/],
		[[qw(--backend-url http://127.0.0.1:1)], 2, qr/--backend-url needs --role proxy/],
		[[qw(--role proxy --backend-url https://127.0.0.1:1)], 2,
			qr{--backend-url: expected http://HOST:PORT, got https}],
		[['--kv-transfer-config', '{"kv_connector": "NixlConnector"}'], 2,
			qr/kv_connector needs kv_role, one of kv_producer, kv_consumer, kv_both/],
		[['--kv-transfer-config', '{"kv_connector": '], 2, qr/--kv-transfer-config/],
		[['--profiler-config', '{"profiler": "torch"}'], 2, qr/needs torch_profiler_dir/],
		[[qw(--role manager)], 2, qr/--role.*manager/],
	);
	for my $row (@rows) {
		my ($status, undef, $err) = profllm('sim', '--port', '0', @{$row->[0]});
		is $status, $row->[1], "@{$row->[0]}" or diag $err;
		like $err, $row->[2];
	}
};

done_testing();
