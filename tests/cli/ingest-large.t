#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Files larger than the 64 MiB that are read at once: JSON lines and lists are read in pieces, into
# a store and by a dashboard; one result that large is refused with a remedy, and so is damage,
# before anything is kept.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Socket::INET;
use Test::More;

use constant RESULTS => 34;
my $times = join ', ', map { sprintf '%.17g', 1 / (3 + $_) } 1 .. 100_000; # 2 MB

sub result {
	my ($n) = @_;
	return '{"date": "20260101-000000", "backend": "vllm", "model_id": "m", "num_prompts": 100000, '
		. '"request_rate": "inf", "duration": 1.5, "completed": 100000, "total_input_tokens": 100, '
		. '"total_output_tokens": 100, "request_throughput": ' . $n . ', "output_throughput": 50, '
		. '"mean_ttft_ms": 3, "ttfts": [' . $times . ']}';
}

sub spill {
	my ($path, $head, $between, $tail) = @_;

	open my $f, '>', $path or die "$path: $!\n";
	print $f $head;
	print $f $_ > 1 ? $between : '', result($_) for 1 .. RESULTS;
	print $f $tail;
	close $f or die "$path: $!\n";
	cmp_ok(-s $path, '>', 64 << 20, "$path is large");
}

sub throughputs {
	my ($store) = @_;
	my $r = run(args => ['export', '--store', $store, '--columns', 'request_throughput', '--sort',
		'request_throughput']);
	return join ' ', $r->{out} =~ /^(\d+)\r?$/mg;
}

spill('lines.jsonl', '', "\n", "\n");
my $store = store_url('lines');
my $r = run(args => ['ingest', 'lines.jsonl', '--store', $store], seconds => 240);
is($r->{status}, 0, 'JSON lines') or diag($r->{err});
like($r->{out}, qr/^new        lines\.jsonl, lines 1 to 4: 4 new\n/, 'a line for each piece');
like($r->{out}, qr/^1 file: 1 new\n\z/m, 'it is one file');
is(throughputs($store), join(' ', 1 .. RESULTS), 'every run is there');

my $d = start_dashboard('--no-launch');
$r = run(args => ['ingest', 'lines.jsonl', '--server', $d->{url}, '--json'], seconds => 240);
is($r->{status}, 0, 'to a dashboard') or diag($r->{err});
is(ask($d, 'GET', '/api/health')->{json}{runs}, RESULTS, 'which has every run');
like($r->{out}, qr/"part": "lines 1 to 4", "outcome": "new"/, 'pieces are named in JSON');
my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) or die "$!\n";
print $s "POST /api/upload/raw HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	. 'Content-Length: ' . (-s 'lines.jsonl') . "\r\n\r\n";
$s->flush;
like(join('', <$s>), qr/^HTTP\/1\.1 413 .*profllm ingest FILE --server URL/s,
	'a body of that size is refused, and the answer names what helps');
is($d->stop, 0, 'it ends well');

unlink 'lines.jsonl';
spill('list.json', "[\n", ",\n", '');
$r = run(args => ['ingest', 'list.json', '--store', 'sqlite:list.db'], seconds => 240);
is($r->{status}, 1, 'a list that is not closed');
like($r->{out}, qr/^invalid    list\.json: the list of results ends within result 35$/m,
	'says where it ends');
is(throughputs('sqlite:list.db'), '', 'and nothing of it is kept');
open my $f, '>>', 'list.json' or die $!;
print $f ']';
close $f;
$r = run(args => ['ingest', 'list.json', '--store', 'sqlite:list.db'], seconds => 240);
is($r->{status}, 0, 'once it is closed it is taken') or diag($r->{out}, $r->{err});
is(throughputs('sqlite:list.db'), join(' ', 1 .. RESULTS), 'with every run');

unlink 'list.json';
open $f, '>', 'one.json' or die $!;
print $f substr(result(1), 0, -2), (", $times") x RESULTS, ']}';
close $f;
$r = run(args => ['ingest', 'one.json', '--store', 'sqlite:one.db'], seconds => 240);
is($r->{status}, 1, 'one result of that size');
like($r->{out},
	qr/^invalid    one\.json: the file has \d+ MiB and is not a list of results.* at most 64 MiB: .*jq/m,
	'is refused with what to do');

done_testing;
