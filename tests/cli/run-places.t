#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-places.t - where documents go: places that cannot be read back, names that are no files' names,
# a run that is stopped before it begins, a kept document with a verdict, the same name twice.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_LOCKS} = Cwd::getcwd() . '/locks';
$ENV{PROFLLM_NVML} = ''; # no GPU, whatever this machine has
mkdir 'state';

# YAML takes JSON.
sub config {
	my ($name, %more) = @_;

	return spew("$name.yaml", JSON::PP->new->canonical->encode({
		server => { command => 'sim', model => 'sim', ttft_ms => 2, itl_ms => 1 },
		benchmark => { tokenizer => 'sim', num_prompts => 3, random_input_len => 8,
			random_output_len => 2, max_concurrency => 2, temperature => 0 },
		telemetry => { enabled => JSON::PP::false }, output => { folder => "$name.d" }, %more }));
}

sub words {
	my ($name, $output, @more) = @_;
	return [qw(run --progress none --config), "$name.yaml", '--output', $output, @more];
}

subtest 'places that cannot be read back' => sub {
	config('nowhere', name => 'nowhere');
	for my $place ('/dev/null', '/dev/stdout') {
		my $run = run(args => words('nowhere', $place));

		is($run->{status}, 0, "$place: a completed run has succeeded");
		like($run->{out}, $place =~ /null/ ? qr/^Status: completed$/m : qr/^  "status": "completed"/m,
			"$place: and says so");
	}
};

subtest 'names of members' => sub {
	my @names = ('.', '..', 'a/b', '../out', "two\nlines", '-x');

	config('names', suite => 'names', experiments => [map +{ name => $_ }, @names]);
	my $run = run(args => words('names', 'names.json'));
	my $d = json_of(slurp('names.json'));

	is($run->{status}, 0, 'all of them run');
	is_deeply([map { $_->{config}{name} } @{$d->{experiments}}], \@names, 'under their names');
	is(scalar(() = glob 'names.d/*.json'), scalar @names, 'each document has a file in the folder');
	ok(!-e 'names.d/server.log', 'and each log a folder of its own');
};

subtest 'stopped while its configuration is read' => sub {
	# A pipe without a writer.
	my $pid = open(my $in, '|-') // die;
	unless ($pid) {
		open STDOUT, '>', 'early.out';
		open STDERR, '>', 'early.err';
		exec $program, qw(run --progress none --config - --output early.json) or die;
	}
	wait_for('the program', sub { (slurp("/proc/$pid/cmdline") // '') =~ /early\.json/ });
	kill 'TERM', $pid;
	close $in;
	is($? & 127, 15, 'the signal ends it');
	ok(!-e 'early.json', 'and there is no document, for it is not known what would run');
};

subtest 'a kept document has a verdict' => sub {
	config('kept', name => 'kept');
	is(run(args => words('kept', 'kept.json'))->{status}, 0, 'it is there');
	my $d = slurp('kept.json');
	$d =~ s/"verdict": "\w+"/"verdict": "INVALID"/ or die;
	spew('kept.json', $d);
	is(run(args => words('kept', 'kept.json', qw(--resume)))->{status}, 0, 'kept');
	is(run(args => words('kept', 'kept.json', qw(--resume --strict)))->{status}, 3,
		'and --strict sees that it is not VALID');
	is(slurp('kept.json'), $d, 'nothing was run');
};

subtest 'a mistake costs no earlier document' => sub {
	config('good', name => 'good');
	is(run(args => words('good', 'good.json'))->{status}, 0, 'it is there');
	my $d = slurp('good.json');

	for my $set ('benchmark.num_prompts=ten', 'server.env.CUDA_VISIBLE_DEVICES=1', 'restart=perhaps',
		'server.extra_args=[--to, $(nobody.port)]') {
		my $r = run(args => [@{words('good', 'good.json')}, '--set', $set]);
		is($r->{status}, 2, "$set: refused");
		is(slurp('good.json'), $d, "$set: what was there is as it was");
		ok(has_line($r->{err}, '*good.json holds an earlier result and stays as it is*'),
			"$set: which is said");
	}
	is_deeply([glob 'good.json.* good.d/earlier/*'], [], 'nothing is moved');
	my $r = run(args => [@{words('good', 'bad.json')}, '--set', 'benchmark.num_prompts=ten']);
	is(json_of(slurp('bad.json'))->{status}, 'failed', 'where nothing was the mistake has its document');
	$r = run(args => words('good', 'good.json'));
	is($r->{status}, 0, 'the next run takes its place');
	my @aside = glob 'good.d/earlier/good.*.json';
	is(scalar @aside, 1, 'and puts it aside');
	is(slurp($aside[0] // 'good.yaml'), $d, 'as it was');
};

# Begun, and killed while load runs: what the document says then, and what is made of it.
subtest 'a run that was killed' => sub {
	config('cut', name => 'cut', benchmark => { tokenizer => 'sim', num_prompts => 600,
		random_input_len => 8, random_output_len => 2, request_rate => 10, temperature => 0 });
	my $run = begin(args => words('cut', 'cut.json'));
	wait_for('load', sub { (slurp($run->{out_path}) // '') =~ /^Traffic request rate/m });
	my $d = json_of(slurp('cut.json'));

	is($d->{status}, 'running', 'a document while it runs');
	like($d->{run_id}, qr/^exp_\d{8}_\d{6}_[0-9a-f]{6}$/, 'with its id');
	is($d->{config}{name}, 'cut', 'and what it was asked');
	is($d->{results}, undef, 'but no result');
	kill 'KILL', $run->{pid};
	finish($run);
	is_deeply(json_of(slurp('cut.json')), $d, 'killed: it stays');

	my @store = ('--store', store_url('cut'));
	my $r = run(args => ['ingest', 'cut.json', @store]);
	is($r->{status}, 1, 'which is no result');
	like($r->{out}, qr/^invalid +cut\.json: the run has not ended: it is still running, or it was inter/m,
		'and says why');
	mkdir 'taken' or die;
	rename 'cut.json', 'taken/cut.json' or die;
	$r = run(args => ['ingest', 'taken', @store]);
	is($r->{status}, 0, 'among others it is passed over');
	like($r->{out}, qr/^skipped +taken/m, 'and said');
	rename 'taken/cut.json', 'cut.json' or die;

	$r = run(args => words('cut', 'cut.json', '--resume', '--set', 'benchmark.num_prompts=3'));
	is($r->{status}, 0, 'it is run again') or diag($r->{err});
	ok(has_line($r->{err}, '*1 experiment was interrupted by the end of an earlier run and is run again'),
		'which is said');
	$d = json_of(slurp('cut.json'));
	is($d->{status}, 'completed', 'and completed');
	is_deeply([glob 'cut.d/earlier/*'], [], 'there was nothing to keep');
	is(run(args => ['ingest', 'cut.json', @store])->{status}, 0, 'and taken in');
};

subtest 'the same id in both' => sub {
	config('id', name => 'id', benchmark => { tokenizer => 'sim', num_prompts => 20,
		random_input_len => 8, random_output_len => 2, request_rate => 20, temperature => 0 });
	my $run = begin(args => words('id', 'id.json'));
	wait_for('its document', sub { -s 'id.json' });
	my $id = json_of(slurp('id.json'))->{run_id};
	is(finish($run)->{status}, 0, 'it ends');
	is(json_of(slurp('id.json'))->{run_id}, $id, 'the run is called as it was while it ran');
};

subtest 'one after the other within a second' => sub {
	config('again', suite => 'again', experiments => [{ name => 'one' }]);
	run(args => words('again', 'again.json')) for 1 .. 3;
	is(scalar(() = glob 'again.d/earlier/one.*.json'), 2, 'no earlier document is lost');
};

done_testing;
