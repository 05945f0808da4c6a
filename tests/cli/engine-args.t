#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Arguments of a server that a sweep starts: checked before it is started, and again when it has
# reported its version; the size of its KV cache, from its log or its metrics.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use IO::Socket::INET;
use Test::More;

# A server that says it is vLLM: a log line, a version, and 200 to everything.
my $vllm = <<'EOF';
use strict;
use warnings;
use IO::Socket::INET;
my ($port) = "@ARGV" =~ /--port (\d+)/;
my %body = ('/version' => '{"version": "0.20.1+cu129"}', '/metrics' =>
	"vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"292\"} 1.0\n");
my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 16,
	ReuseAddr => 1) or die "listen: $!\n";
$| = 1;
print "(EngineCore pid=7) INFO GPU KV cache size: 37,376 tokens\n" if "@ARGV" !~ /quiet/;
while (my $c = $l->accept) {
	my $head = '';
	while (defined(my $line = <$c>)) {
		$head .= $line;
		last if $line =~ /^\r?\n$/;
	}
	my ($path) = $head =~ /^\S+ (\S+)/;
	my $b = defined $path && $body{$path} || '';
	printf $c "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", length $b, $b;
	close $c;
}
EOF

mkdir 'bin' or die;
spew('bin/vllm', "#!$^X\n$vllm");
chmod 0755, 'bin/vllm';
my $port = do {
	my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die;
	$s->sockport;
};
my $cwd = getcwd();

sub sweep {
	my ($name, $serve, $params, @more) = @_;

	spew('params.json', $params);
	return run(args => ['bench', 'sweep', 'serve', '--serve-cmd', "$serve --port $port",
		'--bench-cmd', 'true', '--exec-bench', '--num-runs', 1, '--serve-params', 'params.json',
		'--output-dir', 'results', '--experiment-name', $name, @more],
		env => { PATH => "$cwd/bin:$ENV{PATH}" });
}

sub count_of { return scalar(() = $_[0]{err} =~ /\Q$_[1]\E/g) }

my $r = sweep('dry', 'vllm serve m --max-num-sqs 4', '[{"tp": 2}, {"gpu_memory_utilization": 90}]',
	'--dry-run');
is($r->{status}, 0, 'unknown arguments: only warnings');
is(count_of($r, 'WARNING: server command: --max-num-sqs: no argument of vLLM 0.11 to 0.32; did you '
	. 'mean --max-num-seqs?; passed on unchanged'), 1, 'the nearest name, once for all combinations');
is(count_of($r, '--gpu-memory-utilization: expected a number above 0 and at most 1, got \'90\''), 1,
	'a value of one combination');
is(count_of($r, '--tp: no argument of vLLM'), 1, 'a name of another');

$r = sweep('strict', 'vllm serve m', '[{"max_num_seqs": 4}, {"max_num_seqs": 0}]', '--strict-args');
is($r->{status}, 2, '--strict-args: a wrong value is the user\'s mistake');
like($r->{err}, qr/--max-num-seqs: expected an integer of at least 1, got '0'$/m, 'which it names');
ok(!-e 'results/strict', 'nothing was made');

$r = sweep('other', "$cwd/bin/serve m --max-num-sqs 4", '[{"tp": 2}]', '--dry-run');
is(count_of($r, 'server command'), 0, 'a command that starts no vLLM is not judged');

$r = sweep('told', 'vllm serve m --swap-space 4', '[{"max_num_seqs": 4}, {"attention_backend": '
	. '"quiet"}]');
is(count_of($r, 'WARNING: server command: --swap-space: not in vLLM 0.20.1; it is there up to 0.17'), 2,
	'a server that has told its version: what that lacks, for each command');
is(count_of($r, 'passed on unchanged'), 0, 'nothing before that');
my $servers = json_of(slurp('results/told/servers.json'));
is_deeply([map { $_->{version} } @$servers], [('0.20.1+cu129') x 2], 'versions are kept');
is_deeply([map { [@{$_->{kv_capacity}}{qw(kv_tokens source)}] } @$servers],
	[[37376, 'log'], [4672, 'metrics']], 'sizes of the KV cache, from the log, else the metrics');
done_testing();
