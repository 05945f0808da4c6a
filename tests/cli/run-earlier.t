#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-earlier.t - `profllm run --compare-with`: the night before against last night, from a store
# and from a dashboard. The simulator becomes slower by a known amount, so the answer is known.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use JSON::PP ();
use Test::More;

my $store = store_url('nights');

sub config {
	my ($server, $repeat, @loads) = @_;
	local $" = ', ';
	return spew('nightly.yaml', <<"END");
name: nightly
server: $server
benchmark: {mode: serve, dataset_name: random, random_input_len: 8, random_output_len: 20,
            num_prompts: 24, tokenizer: sim, model: sim, request_rate: inf, num_warmups: 0}
repeat: $repeat
restart: always
matrix: {benchmark.max_concurrency: [@loads]}
telemetry: {enabled: false}
END
}

sub night {
	my ($name, @more) = @_;
	return run(args => ['run', '--config', 'nightly.yaml', '--output', "$name.json", @more],
		seconds => 120);
}

sub keep { return run(args => ['ingest', "$_[0].json", '--store', $store], seconds => 120) }

subtest 'from a store' => sub {
	my $sim = start_sim('--ttft-ms', '20', '--itl-ms', '10');

	config("{url: \"$sim->{url}\", model: sim}", 1, 2, 4, 8);
	my $r = night('none', '--compare-with', $store);
	is $r->{status}, 0 or diag $r->{err};
	like $r->{err}, qr/nothing is compared with before: .*(?:nights|has no tables of a store)/,
		'no store yet: a warning';
	unlike $r->{out}, qr/Against before/;
	is keep('none')->{status}, 0;
	$r = night('same', '--compare-with', $store);
	is $r->{status}, 0 or diag $r->{err};
	like $r->{out}, qr/^Experiment .*Against before +Verdict$/m, 'a column of the table';
	my @cells = $r->{out} =~
		/^max_concurrency=\d .*[+-]\d+\.\d %, (?:not enough data|no change)/mg;
	is scalar(@cells), 3, 'a cell for each member' or diag $r->{out};
	like $r->{out}, qr/^Against before \(3 earlier runs of the same configurations\): /m;
	like slurp('same.csv'), qr/Against before/, 'in the CSV file, too';
	is keep('same')->{status}, 0;
};

# The server's speed is in a file that is not part of the configuration. Each member starts it
# again, so there are two sessions of each configuration, and evidence.
subtest 'a slower night' => sub {
	spew('engine', qq{#!/bin/sh\nexec "$program" sim --ttft-ms 20 --itl-ms \$(cat itl) "\$@"\n});
	chmod 0755, 'engine';
	config('{command: [./engine], model: sim}', 2, 4, 8);
	spew('itl', 10);
	my $r = night('monday');
	is $r->{status}, 0 or diag $r->{err};
	is keep('monday')->{status}, 0;
	spew('itl', 20);
	$r = night('tuesday', '--set', "output.compare_with=$store");
	is $r->{status}, 0, 'a change is no failure' or diag $r->{err};
	my @change = $r->{out} =~ /^max_concurrency=\d\S* .* (-\d+\.\d) %, worse /mg;
	is scalar @change, 4, 'a cell for each member' or diag $r->{out};
	is scalar(grep { $_ < -35 && $_ > -60 } @change), 4, 'about half as many tokens a second';
	like $r->{out}, qr/^Against before \(4 earlier runs .*output_throughput: worse/m
		or diag $r->{out};
	like $r->{out}, qr/^Worse, too: .*median_tpot_ms \+\d/m, 'and what else is worse';
};

subtest 'from the dashboard that it is sent to' => sub {
	my $sim = start_sim('--ttft-ms', '20', '--itl-ms', '10');
	my $dash = start_dashboard();

	config("{url: \"$sim->{url}\", model: sim}", 1, 2, 4, 8);
	my @to = ('--upload', $dash->{url}, '--compare-with', 'previous');
	my $r = night('first', @to);
	is $r->{status}, 0 or diag $r->{err};
	like $r->{out}, qr/^Against before: there is no earlier run of the same configuration yet$/m;
	$r = night('second', @to);
	is $r->{status}, 0 or diag $r->{err};
	like $r->{out}, qr/^Against before \(3 earlier runs of the same configurations\): /m
		or diag $r->{err};
	$r = night('third', '--compare-with', 'http://127.0.0.1:9');
	is $r->{status}, 0, 'nobody answers: the run is as good';
	like $r->{err}, qr/nothing is compared with before: /;
};

stop_all();
done_testing();
