#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench tap FILE`: the report of what another client did, from packets that this test writes, so that
# every time in it is known: the numbers, what a capture lacks, the kinds of files, and refusals.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my ($CLIENT, $SERVER, $PORT) = ("\x0a\0\0\2", "\x0a\0\0\1", 8000);
my ($FIN, $SYN, $ACK) = (1, 2, 16);

# ---- packets ----

# One connection; from: 'c' or 's'. Each has its stamp in ms after 1,700,000,000 s.
my (%next, @packets);
sub packet
{
	my ($from, $ms, $data, $flags) = @_;
	my $is_client = $from eq 'c';
	my $tcp = pack('nnNNCCnnn', $is_client ? (40000, $PORT) : ($PORT, 40000), $next{$from},
		$next{ $is_client ? 's' : 'c' }, 5 << 4, ($flags // 0) | $ACK, 65535, 0, 0);
	my $ip = pack('CCnnnCCna4a4', 0x45, 0, 40 + length $data, 0, 0, 64, 6, 0,
		$is_client ? ($CLIENT, $SERVER) : ($SERVER, $CLIENT));

	push @packets, [$ms, $ip . $tcp . $data];
	$next{$from} += length($data) + (($flags // 0) & ($SYN | $FIN) ? 1 : 0);
}

sub connection
{
	%next = (c => 1000, s => 4294967000); # the server's numbers wrap on the way
	packet('c', $_[0], '', $SYN);
	packet('s', $_[0] + 1, '', $SYN);
}

sub chunk { return sprintf("%x\r\n%s\r\n", length $_[0], $_[0]); }
sub event { return chunk("data: $_[0]\n\n"); }

sub request
{
	my ($ms, $path, $body) = @_;
	packet('c', $ms, "POST $path HTTP/1.1\r\nHost: x\r\nContent-Length: " . length($body)
		. "\r\n\r\n$body");
}

my $BODY = '{"model": "llama", "max_tokens": 3, "stream": true}';
my $HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
my $USAGE = '{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}';

# A completion whose first event comes after $ttft ms and whose others are 10 ms apart.
sub completion
{
	my ($ms, $ttft, $has_usage, $lost) = @_;

	request($ms, '/v1/completions', $BODY);
	packet('s', $ms + 5, $HEAD);
	for my $k (0 .. 2) {
		packet('s', $ms + $ttft + 10 * $k, event('{"choices": [{"text": " a"}]}'));
		pop @packets if $lost && $k == 1;
		packet('c', $ms + $ttft + 10 * $k + 0.1, ''); # acknowledges
	}
	packet('s', $ms + $ttft + 20.5, ($has_usage ? event($USAGE) : '') . event('[DONE]') . chunk(''));
}

# order: "L" or "B"; ng: pcapng.
sub pcap
{
	my ($order, $is_ng) = @_;
	my ($n, $N) = $order eq 'L' ? ('v', 'V') : ('n', 'N');
	my $out;

	$out = pack("$N$n$n$N$N$N$N", 0xa1b23c4d, 2, 4, 0, 0, 262144, 101) unless $is_ng;
	$out = pack("${N}3$n$n${N}3", 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, 0xffffffff, 0xffffffff, 28)
		. pack("${N}2$n$n$N$n${n}a4$n$n$N", 1, 32, 101, 0, 262144, 9, 1, "\x09", 0, 0, 32) if $is_ng;
	for (@packets) {
		my ($ms, $bytes) = @$_;
		my ($len, $ns) = (length $bytes, int($ms * 1e6 + 0.5));
		my $at = 1_700_000_000 * 1_000_000_000 + $ns;

		if ($is_ng) {
			my $pad = "\0" x (-$len % 4);
			my $block = 32 + $len + length $pad;
			$out .= pack("${N}7", 6, $block, 0, $at >> 32, $at & 0xffffffff, $len, $len)
				. $bytes . $pad . pack($N, $block);
		} else {
			$out .= pack("${N}4", 1_700_000_000 + int($ns / 1e9), $ns % 1_000_000_000, $len, $len)
				. $bytes;
		}
	}
	return $out;
}

sub us { return [map { sprintf '%.0f', $_ * 1e6 } @_]; }

sub tap
{
	my ($file, @args) = @_;
	unlink 'result.json';
	my $r = run(args => [qw(bench tap), $file, '--port', $PORT, qw(--save-result --save-detailed
		--result-filename result.json), @args]);
	return ($r, json_of(slurp('result.json') // ''));
}

# ---- the numbers ----

connection(0);
completion(10, 20, 1);
request(100, '/v1/embeddings', '{}');
packet('s', 101, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
completion(110, 30, 1);
packet('s', 300, '', $FIN);

for my $kind (['little.pcap', 'L'], ['big.pcap', 'B'], ['little.pcapng', 'L', 1], ['big.pcapng', 'B', 1]) {
	my ($name, $order, $is_ng) = @$kind;
	my ($r, $result) = tap(spew($name, pcap($order, $is_ng)));
	my $own = $result->{profllm};

	is($r->{status}, 0, "$name: exit status") or diag($r->{err});
	is_deeply(us(@{ $result->{ttfts} }), [20_000, 30_000], "$name: TTFT");
	is_deeply(us(map { @$_ } @{ $result->{itls} }), [(10_000) x 4], "$name: ITL");
	is_deeply(us(@{ $result->{latencies} }), [40_000, 50_000], "$name: E2EL");
	is_deeply([@$result{qw(model_id backend completed total_input_tokens total_output_tokens)}],
		['llama', 'openai', 2, 14, 6], "$name: what was asked for, and the server's counts");
	is_deeply([@{ $own->{capture} }{qw(source connections joined other lost)}], [$name, 1, 0, 1, 0],
		"$name: what was seen");
}
like(run(args => [qw(bench tap little.pcap --report full --port), $PORT])->{out},
	qr/^Time stamps: +packets of the capture/m, 'the report says whose clock it is');

# ---- what a capture lacks ----

@packets = grep { $_->[0] >= 10 } @packets;
my ($r, $result) = tap(spew('middle.pcap', pcap('L')));
is_deeply([$result->{completed}, $result->{profllm}{capture}{joined}], [2, 1],
	'a connection that was open before is read from its next request on');

@packets = ();
connection(0);
completion(10, 20, 1);
completion(110, 20, 1, 'lost');
completion(210, 40, 1);
($r, $result) = tap(spew('hole.pcap', pcap('L')));
is_deeply(us(map { $result->{ttfts}[$_] } grep { $result->{errors}[$_] eq '' } 0 .. 2), [20_000, 40_000],
	'a request whose packets are missing is not in the numbers, the next one is')
	or diag($r->{out}, $r->{err});
is_deeply([@{ $result->{profllm}{capture} }{qw(holes lost)}], [1, 1], 'it is counted');
my ($why) = grep { $_->{code} eq 'capture_lost' } @{ $result->{profllm}{reasons} };
like($why->{text}, qr/^The capture lacks packets of 33\.3 % of the requests/, 'and the verdict says so');

@packets = ();
connection(0);
completion(10, 20, 0);
($r, $result) = tap(spew('no-usage.pcap', pcap('L')));
is($result->{total_output_tokens}, 3, 'without token counts each event with text is a token');
ok((grep { $_->{code} eq 'capture_tokens' } @{ $result->{profllm}{reasons} }), 'and the verdict says so');
($r, $result) = tap('no-usage.pcap', qw(--tokenizer sim));
is($result->{profllm}{capture}{counted}, 0, 'a tokenizer counts the text');

# ---- refusals ----

@packets = ();
connection(0);
packet('c', 5, "\x16\x03\x01 a handshake");
my @refused = (
	[pcap('L'), [], 1, qr/is encrypted \(TLS\), so its requests cannot be read: capture it where/],
	[do { @packets = (); pcap('L') }, [], 1, qr/no packet of these ports was seen: check --port$/],
	['{"not": "a capture"}', [], 1, qr/x\.pcap is not a capture: expected a pcap or pcapng file/],
	['', [], 1, qr/x\.pcap is not a capture/],
	[do { connection(0); substr(pcap('L'), 0, 60) }, [], 1, qr/x\.pcap ends in the middle of a packet/],
);
for (@refused) {
	my ($bytes, $args, $status, $pattern) = @$_;
	my $run = run(args => [qw(bench tap), spew('x.pcap', $bytes), '--port', $PORT, @$args]);
	is($run->{status}, $status, "exit status: $pattern");
	like($run->{err}, qr/^profllm bench tap: .*$pattern/m, 'one sentence') or diag($run->{out});
}
is(run(args => [qw(bench tap nowhere.pcap --port 1)])->{status}, 1, 'a file that is not there');
done_testing();
