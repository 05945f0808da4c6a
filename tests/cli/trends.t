#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm trends: its messages and exit status for cron and CI, for a store whose nights changed, or
# did not.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Socket::INET;
use POSIX ();
use Test::More;

use constant { NIGHTS => 30, STEP => 20 };

my @store = ('--store', store_url('nights'));
my $metric = 'output_throughput';

# A night's run; %with: what differs from the usual one.
sub night {
	my ($i, %with) = @_;
	my $v = ($with{level} // 100) * (1 + 0.004 * (($i * 7) % 5 - 2));

	return json_text({ schema_version => 1, run_id => "$with{model}-$i", status => 'completed',
		timestamp => sprintf('2026-03-%02dT02:00:00Z', $i + 1),
		config => { name => "night $i", mode => 'serve', server => { model => $with{model},
				max_num_seqs => $with{seqs} // 256, port => 8000 + $i },
			benchmark => { request_rate => 4, seed => $i, dataset_name => 'random' } },
		provenance => { engine_commit => sprintf 'c%07d', $i },
		environment => { server => { kind => 'vllm' } },
		trust => { verdict => $with{verdict} // 'VALID' },
		results => { $metric => $v } });
}

sub only { return ('--filter', json_text({ column => 'server.model', in => [$_[0]] })) }
sub trends { return run(args => ['trends', @store, '--metric', $metric, @_], seconds => 60) }

spew('slow.jsonl', join "\n", map { night($_, model => 'slow', level => $_ < STEP ? 100 : 90) }
	0 .. NIGHTS - 1);
spew('seqs.jsonl', join "\n", map { night($_, model => 'seqs', level => $_ < STEP ? 100 : 40,
	seqs => $_ < STEP ? 256 : 16) } 0 .. NIGHTS - 1);
spew('doubt.jsonl', join "\n", map { night($_, model => 'doubt', level => $_ < STEP ? 100 : 50,
	verdict => $_ < STEP ? 'VALID' : 'INVALID') } 0 .. NIGHTS - 1);
spew('few.jsonl', join "\n", map { night($_, model => 'few') } 0 .. 3);
is(run(args => ['ingest', @store, map { "$_.jsonl" } qw(slow seqs doubt few)])->{status}, 0,
	'four histories');

my $r = trends(only('slow'), '--last', NIGHTS - STEP);
is($r->{status}, 3, 'a step of 10 %: status 3') or diag($r->{err});
like($r->{out},
	qr/^slow: $metric fell by 10 %, from 100 to 90 tokens\/s, at commit c0000020; changed there: /m,
	'... is named with its commit');
like($r->{out}, qr/^  decide it: profllm bench ab --base-url URL_OF_c0000019 --base-url URL_OF_c0000020 /m,
	'... with the command that decides it');
$r = trends(only('slow'));
is($r->{status}, 0, 'old by the last night: status 0') or diag($r->{out});
like($r->{out}, qr/no recent change/, '... in words');

$r = trends(only('seqs'), '--last', NIGHTS - STEP);
is($r->{status}, 0, 'another max_num_seqs is no regression') or diag($r->{out});
like($r->{out}, qr/a new series begins at commit c0000020: server\.max_num_seqs 256 -> 16/,
	'... but a new series');
$r = trends(only('doubt'), '--last', NIGHTS - STEP);
is($r->{status}, 0, 'INVALID nights change nothing');
like($r->{out}, qr/$metric is INVALID in 10 runs, left out/, '... and are counted');

$r = trends(only('few'));
is($r->{status}, 3, 'what cannot be judged fails');
like($r->{out}, qr/not judged: there are too few points to judge: 4 in the longest series/,
	'... and says why');
is(trends(only('few'), '--allow-unjudged')->{status}, 0, '... unless that is allowed');
is(trends(only('slow'), '--last', NIGHTS - STEP, '--min-effect', 20)->{status}, 0, 'a larger least effect');

# ---- the webhook ----

my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $!";
my $hook = 'http://127.0.0.1:' . $listener->sockport;

# Answers one request in a child, which writes down its body.
sub hook {
	my ($status) = @_;
	my $pid = fork // die "fork: $!";

	return $pid if $pid;
	my $client = $listener->accept or POSIX::_exit(1);
	my ($head, $body) = ('', '');
	$head .= <$client> until $head =~ /\r\n\r\n\z/;
	read $client, $body, $1 if $head =~ /^content-length: (\d+)/mi;
	spew('hook.json', $body);
	print $client "HTTP/1.1 $status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	close $client;
	POSIX::_exit(0);
}

my $pid = hook('204 No Content');
$r = trends(only('slow'), '--last', NIGHTS - STEP, '--webhook', $hook);
waitpid $pid, 0;
is($r->{status}, 3, 'with a webhook');
my $sent = json_of(slurp('hook.json'));
like($sent->{text}, qr/$metric fell by 10/, '... which gets a text');
is_deeply([map { [@{$_}{qw(series verdict commit)}] } @{$sent->{changes}}],
	[['slow', 'worse', 'c0000020']], '... and the change');
$pid = hook('500 Internal Server Error');
$r = trends(only('slow'), '--last', NIGHTS - STEP, '--webhook', $hook);
waitpid $pid, 0;
check_run('a webhook that fails', $r, { status => 1,
	err => 'profllm trends: --webhook: expected status 200 to 299, got 500; the changes above '
		. 'were not delivered' });
close $listener;
$r = trends(only('slow'), '--last', NIGHTS - STEP, '--webhook', "$hook/T0/secret");
is($r->{status}, 1, 'nobody there');
like($r->{err}, qr/^profllm trends: --webhook: .*the changes above were not delivered$/m,
	'... in a sentence');
unlike($r->{err}, qr/secret/, '... without the path, which is a secret');
is(trends(only('seqs'), '--webhook', $hook)->{status}, 0, 'nothing to tell: nobody is asked');

# ---- wrong options ----

check_run('no metric', run(args => ['trends', @store]), { status => 2,
	err => 'profllm trends: --metric is needed: the name of a metric, such as output_throughput' });
check_run('no such metric', run(args => ['trends', @store, qw(--metric output_troughput)]),
	{ status => 2, err => 'profllm trends: --metric: there is no column "output_troughput"; did you mean '
		. '"output_throughput"?' });
check_run('no URL', trends('--webhook', 'hooks'), { status => 2,
	err => 'profllm trends: --webhook: expected an address that begins with http:// or https://, '
		. q(got 'hooks') });
done_testing;
