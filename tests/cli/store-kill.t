#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm ingest killed in the middle of 1,000 files, again and again, while backups are taken: what
# it said is taken in is there, nothing is there twice, every backup restores. On SQLite, and on
# PostgreSQL where PROFLLM_TEST_POSTGRES names a server. KILLS=20 kills it twenty times on each.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

use constant KILLS => $ENV{KILLS} || 2;
use constant FILES => 1000;
srand 9; # when it is killed

# A folder of results, each of a throughput of its own.
sub folder {
	my ($name, $first) = @_;

	mkdir $name or die "$name: $!";
	spew("$name/$_.json", JSON::PP->new->encode({ date => '20260101-000000', backend => 'vllm',
		model_id => 'm', num_prompts => 10, request_rate => 'inf', duration => 1.5, completed => 10,
		total_input_tokens => 100, total_output_tokens => 100, request_throughput => $_,
		output_throughput => 50, mean_ttft_ms => 3 })) for $first .. $first + FILES - 1;
	return $name;
}

# Throughputs of all runs of a store, how often each.
sub runs_of {
	my ($store) = @_;
	my $r = run(args => ['export', '--store', $store, '--format', 'jsonl']);
	my %seen;

	is($r->{status}, 0, 'exported') or diag $r->{err};
	$seen{JSON::PP->new->decode($_)->{request_throughput}}++ for split /\n/, $r->{out};
	return \%seen;
}

sub is_whole {
	my ($store, $what) = @_;
	my $r = run(args => ['store', 'check', '--store', $store]);

	is($r->{status}, 0, "$what is whole") or diag $r->{out}, $r->{err};
}

sub kill_again_and_again {
	my ($kind, $store) = @_;
	my (%told, %sent, $cut);

	for my $round (1 .. KILLS) {
		my $first = $round * 10000;
		my $folder = folder("$kind-$round", $first);
		my $ingest = begin(args => ['ingest', $folder, '--store', $store, '--json']);
		my $began = time;

		$sent{$_} = 1 for $first .. $first + FILES - 1;
		wait_for('the first files', sub { -s $ingest->{out_path} || waitpid($ingest->{pid}, 1) });
		sleep rand 0.2;
		kill 'KILL', $ingest->{pid};
		$ingest = finish($ingest);
		for (split /(?<=\n)/, $ingest->{out}) {
			$told{$1} = 1 if m{/(\d+)\.json", "outcome": "new".*\n$};
		}
		$cut++ if $ingest->{out} =~ tr/\n// < FILES;
	}
	note sprintf '%s: %d of %d runs told, %d times before the end', $kind, scalar keys %told,
		scalar keys %sent, $cut // 0;
	my $seen = runs_of($store);
	ok(%told > 0, "$kind: something was told");
	is(scalar(grep { !$seen->{$_} } keys %told), 0, "$kind: every run that was told is there");
	is(scalar(grep { $seen->{$_} > 1 } keys %$seen), 0, "$kind: none is there twice");
	is(scalar(grep { !$sent{$_} } keys %$seen), 0, "$kind: and nothing else");
	is_whole($store, "$kind: the store");
	# Going on where it was cut off.
	my $r = run(args => ['ingest', (map { "$kind-$_" } 1 .. KILLS), '--store', $store]);
	is($r->{status}, 0, "$kind: all again") or diag $r->{err};
	$seen = runs_of($store);
	is(scalar(grep { ($seen->{$_} // 0) == 1 } keys %sent), KILLS * FILES, "$kind: each is there once");
}

sub backup_under_load {
	my ($kind, $store) = @_;
	my $ingest = begin(args => ['ingest', folder("$kind-load", 1), '--store', $store]);

	for my $n (1 .. (KILLS > 2 ? 3 : 1)) {
		my $r = run(args => ['backup', "$kind-$n.backup", '--store', $store]);
		is($r->{status}, 0, "$kind: a backup while runs come in") or diag $r->{err};
		$r = run(args => ['restore', "$kind-$n.backup", '--store', "sqlite:$kind-$n.db"]);
		is($r->{status}, 0, "$kind: which is restored") or diag $r->{err};
		is_whole("sqlite:$kind-$n.db", "$kind: what it made");
		my $seen = runs_of("sqlite:$kind-$n.db");
		is(scalar(grep { $seen->{$_} > 1 } keys %$seen), 0, "$kind: with each run once");
		ok(keys %$seen >= KILLS * FILES, "$kind: and with those from before");
	}
	is(finish($ingest)->{status}, 0, "$kind: the runs came in meanwhile");
}

# Every cell of every run, as a digest, and how many runs there are.
sub sum_of {
	my ($store) = @_;
	my $r = run(args => ['export', '--store', $store, qw(--format jsonl --sort run_id)], seconds => 240);
	my @runs = map { my $v = json_of($_); delete $v->{id}; JSON::PP->new->canonical->ascii->encode($v) }
		split /\n/, $r->{out};

	return (scalar @runs, sha256_hex(join "\n", @runs));
}

sub is_the_same_elsewhere {
	my ($kind, $store) = @_;
	my @here = sum_of($store);

	cmp_ok($here[0], '>=', KILLS * FILES, "$kind: a store of many runs");
	is(run(args => ['backup', "$kind.backup", '--store', $store])->{status}, 0, "$kind: its backup");
	is(run(args => ['restore', "$kind.backup", '--store', "sqlite:$kind.elsewhere.db"])->{status}, 0,
		"$kind: is restored elsewhere");
	is_deeply([sum_of("sqlite:$kind.elsewhere.db")], \@here, "$kind: with the same runs and values");
}

my @stores = ([sqlite => 'sqlite:kill.db']);
push @stores, [postgresql => postgres_url()] if $ENV{PROFLLM_TEST_POSTGRES};
for (@stores) {
	kill_again_and_again(@$_);
	backup_under_load(@$_);
	is_the_same_elsewhere(@$_);
}
done_testing;
