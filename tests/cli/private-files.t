#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Who may read the files that the program writes: stores and what lies next to them, backups,
# folders of jobs, documents that end up in a folder of temporary files, rosters, locks and compiled
# tokenizers.
use strict;
use warnings;
use Cwd qw(abs_path);
use Fcntl qw(:mode);
use File::Find;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Test::More;

umask 022;

sub mode_of {
	my ($path) = @_;
	my @st = lstat $path;

	return @st ? sprintf '%04o', $st[2] & 07777 : 'none';
}

my $sim = start_sim(qw(--ttft-ms 2 --itl-ms 1));
my @bench = (qw(bench serve --backend openai), '--base-url', $sim->{url}, @{$tiny{model}},
	@{$tiny{load}}, qw(--save-result --result-dir results));

is(run(args => [@bench, qw(--result-filename a.json)])->{status}, 0, 'a result');
is(run(args => [@bench, qw(--result-filename b.json)])->{status}, 0, 'another');
is(mode_of('results/a.json'), '0644', 'a result that the user named follows the umask');
is(mode_of('results'), '0755', 'its folder, too');

# ---- stores ----

SKIP: {
	skip 'files of SQLite', 14 if ($ENV{TEST_STORE} // 'sqlite') ne 'sqlite';

	is(run(args => [qw(ingest results/a.json)])->{status}, 0, 'ingest into the own store');
	is(mode_of("$ENV{XDG_DATA_HOME}/profllm"), '0700', 'the folder of the own store');
	is(mode_of("$ENV{XDG_DATA_HOME}/profllm/store.db"), '0600', 'the own store');

	my $dash = start_dashboard('--no-launch', '--store', 'sqlite:new.db');

	is(run(args => [qw(ingest results/a.json --store sqlite:new.db)])->{status}, 0, 'ingest');
	is(mode_of($_), '0600', $_) for grep { -e } map { "new.db$_" } '', '-wal', '-shm';
	ok(-e 'new.db-wal', 'while the log was there');
	$dash->stop;
	is(mode_of('new.db.index'), '0600', 'the index');

	# A group that shares a store says so by its permissions.
	is(run(args => [qw(ingest results/a.json --store sqlite:shared.db)])->{status}, 0, 'a store');
	chmod 0660, 'shared.db';
	$dash = start_dashboard('--no-launch', '--store', 'sqlite:shared.db');
	is(run(args => [qw(ingest results/b.json --store sqlite:shared.db)])->{status}, 0, 'ingest again');
	is(mode_of('shared.db'), '0660', 'permissions of a store that is there are kept');
	is(mode_of('shared.db-wal'), '0660', 'its log has the same');
	$dash->stop;

	is(run(args => [qw(backup copy.db --store sqlite:shared.db)])->{status}, 0, 'backup');
	is(mode_of('copy.db'), '0600', 'a backup');
}

# ---- folders of jobs ----

{
	my $dash = start_dashboard();

	is(mode_of("$dash->{store}.jobs") eq 'none' ? mode_of('dashboard1.jobs') : '0700', '0700',
		'a folder of jobs') if -e 'dashboard1.jobs';
	$dash->stop;
}

# ---- documents without a place ----

{
	mkdir 'tmp';
	spew('x.yaml', "name: lost\nserver: {command: sim, model: sim, ttft_ms: 2, itl_ms: 1}\n"
		. "benchmark: {dataset_name: random, tokenizer: sim, num_prompts: 2, random_input_len: 4, "
		. "random_output_len: 2}\n");
	symlink("/dev/full", "full.json") or die;
	my $run = run(args => [qw(run --config x.yaml --output full.json)],
		env => { TMPDIR => abs_path('tmp') });
	my @left = glob 'tmp/*.json';

	is($run->{status}, 1, 'an output that cannot be written');
	is(scalar(@left), 1, 'the document is in $TMPDIR') || diag($run->{err});
	is(@left ? mode_of($left[0]) : '', '0600', 'and its owner\'s alone');
}

# ---- compiled tokenizers ----

{
	my $small = abs_path("$FindBin::Bin/../unit/token/small.json");

	sub compile { return run(args => ['tokenizer', 'compile', '--tokenizer', $small]) }
	sub ids {
		return run(args => ['tokenizer', 'encode', '--tokenizer', $small], in => 'hello')->{out};
	}

	my ($path) = compile()->{out} =~ /^Compiled form: +(.*)$/m;
	my $ids = ids();
	my $bytes = slurp($path);

	is(mode_of($path), '0600', 'a compiled tokenizer');
	is(mode_of("$ENV{PROFLLM_CACHE_DIR}/tokenizers"), '0700', 'its folder');
	# Each is ignored and replaced by compile: afterwards there is a complete regular file.
	my %bad = (
		truncated => sub { spew($path, substr $bytes, 0, length($bytes) / 2) },
		empty => sub { spew($path, '') },
		changed => sub { spew($path, substr($bytes, 0, 4000) . '!' . substr $bytes, 4001) },
		'writable by all' => sub { spew($path, $bytes); chmod 0666, $path },
		'a link' => sub { rename $path, 'elsewhere'; symlink abs_path('elsewhere'), $path },
		'a folder' => sub { unlink $path; mkdir $path },
		'a pipe' => sub { unlink $path; system('mkfifo', '-m', '600', $path) },
	);

	for my $what (sort keys %bad) {
		$bad{$what}->();
		is(ids(), $ids, "$what: the ids are those of the source");
		my $again = compile();
		my @st = lstat $path;

		if ($what eq 'a folder') {
			is($again->{status}, 1, "$what: said");
			rmdir $path;
		} else {
			ok(S_ISREG($st[2]) && !($st[2] & 022), "$what: written anew");
		}
		unlink $path;
		compile();
	}
}

done_testing();
