#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Several servers that share the load, and requests that are given up on purpose.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

sub serve_several
{
	my ($sims, @args) = @_;
	return serve($sims->[0], @args) if @$sims == 1;
	my @urls = map { $_->{url} } @$sims;
	my $dir = File::Temp->newdir('load-XXXXXX', TMPDIR => 1);
	my %r = (dir => $dir, json => "$dir/result.json");

	$r{pid} = child_start("$dir/out", "$dir/err", $PROFLLM, 'bench', 'serve', '--base-urls',
		@urls, '--model', 'sim', '--tokenizer', 'sim', '--random-input-len', '16',
		'--random-output-len', '8', '--save-result', '--save-detailed', '--result-dir',
		"$dir", '--result-filename', 'result.json', '--progress', 'none',
		'--request-id-prefix', 'r', @args);
	return serve_end(\%r);
}

sub hosts_are_right
{
	my ($sim, $name) = @_;
	my $port = $sim->{port};
	my @other = grep { ($_->{headers}{host} // "none") ne "127.0.0.1:$port" }
		read_lines($sim->{requests});

	is(scalar @other, 0, "$name: the Host is that of the server");
}

for my $case (['round-robin', [30, 30]], ['random', undef], ['least-loaded', undef]) {
	my ($how, $want) = @$case;
	my @sim = map { sim('--ttft-ms', $_, '--itl-ms', 2) } (5, $how eq 'least-loaded' ? 60 : 5);
	my $run = serve_several(\@sim, '--num-prompts', '60', '--max-concurrency', '6', '--balance',
		$how, '--ready-check-timeout-sec', '10', '--threads', '2');
	my @truth = map { { truth_by_id($_) } } @sim;
	my $list = $run->{own}{endpoints};

	is($run->{status}, 0, "$how: exit status") or diag($run->{err});
	for my $i (0, 1) {
		ok(delete $truth[$i]{''}, "$how: server $i was asked whether it is ready");
		is($list->[$i]{url}, $sim[$i]{url}, "$how: url $i");
		is($list->[$i]{requests}, scalar(keys %{ $truth[$i] }), "$how: requests of server $i");
		is($list->[$i]{completed}, $list->[$i]{requests}, "$how: all of them done");
		is($list->[$i]{failed}, 0, "$how: none failed");
		cmp_ok($list->[$i]{mean_ttft_ms}, '>', 4, "$how: a mean TTFT");
		like($run->{out}, qr/^  \Q$sim[$i]{url}\E: $list->[$i]{requests} requests, 0 failed/m,
			"$how: and the report has them");
		hosts_are_right($sim[$i], $how);
	}
	is(scalar(keys %{ $truth[0] }) + scalar(keys %{ $truth[1] }), 60, "$how: all were sent");
	my $at = $run->{own}{requests}{endpoint};
	my @wrong = grep { !$truth[$at->[$_]]{"r$_"} } 0 .. 59;
	is("@wrong", '', "$how: each went where the result says");
	if ($want) {
		is_deeply([map { $_->{requests} } @$list], $want, "$how: in turn");
	} elsif ($how eq 'random') {
		cmp_ok($list->[0]{requests}, '>', 10, "$how: some here");
		cmp_ok($list->[0]{requests}, '<', 50, "$how: some there");
	} else {
		cmp_ok($list->[0]{requests}, '>', 1.5 * $list->[1]{requests},
			"$how: the faster server gets more");
	}
}

# One of two servers fails: the counts say which.
{
	my @sim = (sim('--ttft-ms', 2, '--itl-ms', 1),
		sim('--ttft-ms', 2, '--itl-ms', 1, '--fault', 'reset@4:1'));
	my $run = serve_several(\@sim, '--num-prompts', '20', '--max-concurrency', '4');
	my @failed = map { $_->{failed} } @{ $run->{own}{endpoints} };

	is_deeply(\@failed, [0, 10], 'failures stand with their server');
}

# Given up on purpose: the same ones for the same seed, closed on the server's side too.
{
	my @marked;

	for my $again (0, 1) {
		my $name = "cancellation $again";
		my $sim = sim('--ttft-ms', '20', '--itl-ms', '100');
		my $run = serve($sim, '--num-prompts', '60', '--max-concurrency', '20',
			'--request-cancellation-rate', '30', '--request-cancellation-delay', '0.1',
			'--seed', '5', '--threads', 1 + $again);
		my %truth = truth_by_id($sim);
		my ($result, $own) = ($run->{result}, $run->{own});
		my $rows = $own->{requests};
		my @cancelled = grep { ($rows->{failure}[$_] // '') eq 'cancelled' } 0 .. 59;

		cmp_ok(scalar @cancelled, '>', 8, "$name: some were given up");
		cmp_ok(scalar @cancelled, '<', 30, "$name: not many more than asked for");
		is($own->{given_up}, scalar @cancelled, "$name: counted");
		is($own->{cancelled}, 0, "$name: and apart from others");
		is($result->{failed}, 0, "$name: no failures");
		is($result->{completed}, 60 - @cancelled, "$name: the others are successes");
		is_deeply([grep { /success|failures|interrupted|aborted/ } map { $_->{code} }
			@{ $own->{reasons} }], [], "$name: the verdict is not lowered by them");
		like($run->{out}, qr/^Cancelled by plan: +@{[scalar @cancelled]} *$/m, "$name: the report");
		my @early = grep { my $d = $rows->{end_ns}[$_] - $rows->{sent_ns}[$_];
			$d < 0.099e9 || $d > 2e9 } @cancelled;
		is("@early", '', "$name: after the delay");
		my @open = grep { ($truth{"r$_"}{finish} // '') ne 'abort' } @cancelled;
		is("@open", '', "$name: the server saw them go");
		push @marked, "@cancelled";
	}
	is($marked[0], $marked[1], 'cancellation: the same seed, the same requests');
}

done_testing;
