#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A store that an earlier profllm has made, two versions of the tables ago (older/store-4.backup.gz, by
# its `backup`): it is opened, restored on either database, and keeps every run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use Test::More;

sub unpacked {
	my ($path) = @_;

	gunzip("$FindBin::Bin/older/store-4.backup.gz", $path) or die "$GunzipError\n";
	return "sqlite:$path";
}

# What was taken in then; n tells the runs apart.
sub result {
	my ($n) = @_;
	return json_text({ date => "2026010$n-000000", backend => 'vllm', model_id => 'demo',
		num_prompts => 10,
		request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
		total_output_tokens => 100, request_throughput => $n + 0.5, output_throughput => 50,
		mean_ttft_ms => 3, ttfts => [0.003, $n / 1000] });
}

# Whether the three runs are there, whole, with the digests that the earlier program computed: the
# same files are duplicates.
sub is_as_before {
	my ($store, $what) = @_;
	my $r = run(args => ['ingest', 'r1.json', 'r2.json', 'r3.json', '--store', $store, '--json']);

	is(scalar(() = $r->{out} =~ /"outcome": "duplicate", "id"/g), 3, "$what: every run is as it was")
		or diag($r->{out}, $r->{err});
	$r = run(args => ['export', '--store', $store, '--columns', 'run_id,request_throughput', '--sort',
		'request_throughput', '--filter', '{"column": "server.model", "in": ["demo"]}']);
	is(join(' ', $r->{out} =~ /,(\S+?)\r?\n/g), 'request_throughput 1.5 2.5 3.5', "$what: they are found")
		or diag($r->{out}, $r->{err});
	$r = run(args => ['store', 'check', '--store', $store]);
	is($r->{status}, 0, "$what: nothing is wrong") or diag($r->{out}, $r->{err});
}

spew("r$_.json", result($_)) for 1 .. 3;

my $store = unpacked('opened.db');
my $r = run(args => ['backup', 'again.backup', '--store', $store]);
is($r->{status}, 0, 'a backup before anything else') or diag($r->{err});
is_as_before($store, 'opened');

my $d = start_dashboard('--no-launch', '--store', unpacked('served.db'));
is(ask($d, 'GET', '/api/health')->{json}{runs}, 3, 'a dashboard has its runs');
is(ask($d, 'PUT', '/api/data/experiments/1/exclusion', { reason => 'old' })->{status}, 200,
	'and changes it');
is($d->stop, 0, 'it ends well');

$store = store_url('restored');
unpacked('old.backup');
$r = run(args => ['restore', 'old.backup', '--store', $store]);
is($r->{status}, 0, 'the earlier backup is restored') or diag($r->{err});
is_as_before($store, 'restored');
$store = store_url('again');
$r = run(args => ['restore', 'again.backup', '--store', $store]);
is($r->{status}, 0, 'so is the backup of the earlier store') or diag($r->{err});
is_as_before($store, 'restored again');

done_testing;
