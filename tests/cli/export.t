#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm export, backup, restore and the verbs below `store`.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Test::More;

my @stores = (store_url('runs'));

sub document {
	my ($id, $throughput, %tags) = @_;
	return json_text({ schema_version => 1, run_id => $id, timestamp => '2026-01-02T03:04:05Z',
		config => { name => 'c', server => { model => 'm', eager => JSON::PP::true, hole => undef },
		benchmark => { request_rate => 'inf' }, tags => \%tags },
		results => { request_throughput => $throughput }, environment => {}, status => 'completed' });
}

spew('a.json', document('exp_a', 1.5, note => '=1+1'));
spew('b.json', document('exp_b', 10, note => "two\nlines, \"quoted\""));
spew('c.json', document('exp_c', 2, note => '-plain', extra => 'x'));

for my $url (@stores) {
	my $kind = $url =~ /^(\w+)/ && $1;
	my @store = ('--store', $url);
	my $r = run(args => [qw(ingest a.json b.json c.json), @store]);
	my $columns = 'run_id,request_throughput,tags.note,server.eager,server.hole,benchmark.request_rate';

	is($r->{status}, 0, "$kind: three runs") or diag($r->{err});
	$r = run(args => ['export', @store, '--columns', $columns, '--sort', 'request_throughput']);
	is($r->{out}, join("\r\n", $columns, "exp_a,1.5,\"'=1+1\",true,null,inf",
		"exp_c,2,\"'-plain\",true,null,inf",
		"exp_b,10,\"two\nlines, \"\"quoted\"\"\",true,null,inf", ''),
		"$kind: CSV, with formulas guarded");
	$r = run(args => ['export', @store, '--format', 'jsonl', '--columns',
		'run_id,tags.extra', '--sort=-run_id',
		'--filter', '{"column": "request_throughput", "range": {"max": 9}}']);
	is_deeply([map { my $v = json_of($_); delete $v->{id}; $v } split /\n/, $r->{out}],
		[{ run_id => 'exp_c', 'tags.extra' => 'x' }, { run_id => 'exp_a' }],
		"$kind: JSON lines of those that a filter leaves");
	check_run("$kind: no column at all", run(args => ['export', @store, '--columns', '']),
		{ status => 2, err => 'profllm export: --columns: expected names of columns, got none' });
	$r = run(args => ['export', @store, qw(--limit 2 --output out.csv)]);
	is(scalar(() = slurp('out.csv') =~ /^"?exp_|,exp_/mg), 2, "$kind: a file of every column")
		or diag($r->{err});

	# ---- backup, restore, convert ----

	check_run("$kind: backup", run(args => ['backup', "$kind.backup", @store]), { status => 0,
		out => ["$kind.backup holds the store"] });
	check_run("$kind: a backup is not replaced", run(args => ['backup', "$kind.backup", @store]),
		{ status => 2, err => "profllm backup: $kind.backup exists already: choose another name, or "
		. 'add --force to replace it' });
	check_run("$kind: unless it is forced", run(args => ['backup', "$kind.backup", '--force', @store]),
		{ status => 0, out => ["$kind.backup holds the store"] });
	check_run("$kind: nothing is wrong", run(args => ['store', 'check', @store]), { status => 0,
		out => ['nothing is wrong'] });
	check_run("$kind: remove says how many", run(args => [qw(store remove exp_a exp_b), @store]),
		{ status => 0, out => ['2 runs would be removed permanently; add --yes to remove them'] });
	check_run("$kind: not those that it does not have", run(args => [
		qw(store remove exp_z exp_a exp_y), @store]), { status => 1,
		out => ['1 run would be removed permanently; add --yes to remove it'],
		err => 'profllm store remove: not in the store: exp_z, exp_y; `profllm export --columns '
			. 'run_id` lists the run_ids' });
	check_run("$kind: and does it", run(args => [qw(store remove exp_a exp_b --yes), @store]),
		{ status => 0, out => ['2 runs removed'] });
	check_run("$kind: once", run(args => [qw(store remove exp_a --yes), @store]), { status => 1,
		out => ['0 runs removed'], err => 'profllm store remove: not in the store: exp_a; *' });
	$r = run(args => ['export', @store, '--columns', 'run_id']);
	is($r->{out}, "run_id\r\nexp_c\r\n", "$kind: they are gone");
	check_run("$kind: a store that holds something is not replaced",
		run(args => ['restore', "$kind.backup", @store]),
		{ status => 2, err => 'profllm restore: *is not empty; --force replaces what it holds' });
	check_run("$kind: unless it is forced", run(args => ['restore', "$kind.backup", '--force', @store]),
		{ status => 0 });
	$r = run(args => ['export', @store, qw(--columns run_id --sort run_id)]);
	is($r->{out}, "run_id\r\nexp_a\r\nexp_b\r\nexp_c\r\n", "$kind: everything is there again");
	check_run("$kind: convert", run(args => ['store', 'convert', @store, '--to', "sqlite:$kind.copy.db"]),
		{ status => 0 });
	is(run(args => [qw(export --sort run_id --columns), $columns, '--store', "$kind.copy.db"])->{out},
		run(args => [qw(export --sort run_id --columns), $columns, @store])->{out},
		"$kind: a copy says the same");
	check_run("$kind: the copy is whole", run(args => [qw(store check --store), "$kind.copy.db"]),
		{ status => 0, out => ['nothing is wrong'] });

	# ---- archive, retain ----

	check_run("$kind: archive", run(args => ['store', 'archive', '--filter',
		'{"column": "run_id", "in": ["exp_a"]}', @store]),
		{ status => 0, out => ['1 run archived'] });
	is(run(args => ['export', @store, qw(--columns run_id --sort run_id)])->{out},
		"run_id\r\nexp_b\r\nexp_c\r\n", "$kind: not usually shown");
	is(run(args => ['export', @store, qw(--columns run_id --shown archived)])->{out},
		"run_id\r\nexp_a\r\n", "$kind: but among the archived ones");
	check_run("$kind: taken out again", run(args => [qw(store archive exp_a --undo), @store]),
		{ status => 0, out => ['1 run taken out of the archive'] });
	check_run("$kind: retain", run(args => [qw(store retain --archive-days 1), @store]), { status => 0 });
	is(run(args => ['export', @store, qw(--columns run_id --shown archived --sort run_id)])->{out},
		"run_id\r\nexp_a\r\nexp_b\r\nexp_c\r\n", "$kind: old runs are archived");
	check_run("$kind: the next limit", run(args => [qw(store retain --remove-days 1), @store]),
		{ status => 0 });
	is(run(args => ['export', @store, qw(--columns run_id --shown all)])->{out}, "run_id\r\n",
		"$kind: and then removed");
}

# ---- every key there is ----

# Options of the load are rows of the program; the store knows them as columns, with runs and without.
my ($mode, %options);
for (split /\n/, run(args => [qw(run --print-keys)])->{out}) {
	$mode = /benchmark/ if /^## /;
	$options{$1} = 1 if $mode && /^\| `(\w+)` \|/;
}
delete @options{qw(request_id_prefix metadata)}; # would tell runs apart that are alike
cmp_ok(scalar keys %options, '>', 150, 'options of the load');
check_run('are columns', run(args => ['export', '--store', $stores[0], '--columns',
	join ',', map { "benchmark.$_" } sort keys %options]), { status => 0 });
my @arguments = map { $_->{name} =~ tr/-/_/r }
	@{json_of(run(args => [qw(args list --all --json)])->{out})};
cmp_ok(scalar @arguments, '>', 250, 'arguments of the server');
check_run('are columns, too', run(args => ['export', '--store', $stores[0], '--columns',
	join ',', map { "server.$_" } @arguments]), { status => 0 });

# ---- a real document ----

my $example = "$FindBin::Bin/../../examples/results/vllm-cpu.json";
check_run('a document of a real run', run(args => ['ingest', $example, '--store', 'sqlite:real.db']),
	{ status => 0 });
my ($head, $line) = split /\r\n/, run(args => [qw(export --store sqlite:real.db)])->{out};
like($head, qr/^run_id,timestamp,name,suite,status,verdict,server\.model,server\.tensor_parallel_size,/,
	'what a run is comes first');
like($line, qr/^exp_\w+,\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z,/, 'and times are in ISO 8601');
unlike($head, qr/left_out/, 'nothing in it cannot be');

# ---- mistakes ----

my @mistakes = (
	[2, 'FILE is missing: the file to write', 'backup'],
	[2, 'FILE is missing: a file written by profllm backup', 'restore'],
	[2, 'nowhere does not exist', qw(restore nowhere)],
	[2, 'expected either run_ids or --filter', qw(store archive --store runs.db)],
	[2, 'expected either run_ids or --filter', qw(store remove a --filter {} --store runs.db)],
	[2, '--filter: *', qw(store remove --filter {"a":1} --store runs.db)],
	[2, 'expected a limit: *', qw(store retain --store runs.db)],
	[2, '--to is missing: the URL of the store to fill', qw(store convert --store runs.db)],
	[2, '--filter: /column: expected the name of a column', qw(export --store runs.db --filter),
		'{"column":1,"missing":true}'],
	[2, '--columns: *', qw(export --store runs.db --columns), ','],
	[2, '--columns: there is no column "server.modle"; did you mean "server.model"?',
		qw(export --store runs.db --columns), "run_id,server.modle"],
	[2, '--sort: there is no column "timestmap"; did you mean "timestamp"?',
		qw(export --store runs.db --sort=-timestmap)],
	[2, '--filter: /not/column: there is no column "server.modle"; did you mean "server.model"?',
		qw(export --store runs.db --filter), '{"not": {"column": "server.modle", "in": ["m"]}}'],
	[2, '--filter: /in/0: "server.model" holds texts, and this is a number',
		qw(export --store runs.db --filter), '{"column": "server.model", "in": [1]}'],
	map { [2, '--filter: /column: there is no column "server.modle"; did you mean "server.model"?',
		'store', $_, qw(--store runs.db --filter), '{"column": "server.modle", "in": ["m"]}'] }
		qw(archive remove),
);
my $all = run(args => ['export', '--store', $stores[0], '--shown', 'all'])->{out};
for (@mistakes) {
	my ($status, $err, @args) = map { $_ eq 'runs.db' ? $stores[0] : $_ } @$_;
	check_run("refused: @args", run(args => \@args), { status => $status, err => "profllm *: $err" });
}
is(run(args => ['export', '--store', $stores[0], '--shown', 'all'])->{out}, $all,
	'no mistake has changed a run');
ok(!-e 'nowhere.db' && run(args => [qw(export --store nowhere.db)])->{status} && !-e 'nowhere.db',
	'a store that is only read is not made');

# ---- invalid places ----

spew('text.txt', "no database\n" x 100);
mkdir 'folder';
for (['export', 'sqlite:none.db', 'none.db cannot be opened: No such file or directory'],
	['ingest', 'mysql://host/runs', 'mysql://host/runs: expected sqlite:PATH or postgresql://...'],
	['ingest', 'mysql:host/runs', 'mysql:host/runs: expected sqlite:PATH or postgresql://...'],
	['export', 'sqlit:runs.db',
		'sqlit:runs.db: expected sqlite:PATH or postgresql://...; did you mean sqlite:?'],
	['export', 'postgrsql://me:secret@host/runs',
		'postgrsql://me:***@host/runs: expected sqlite:PATH or postgresql://...; did you mean'
			. ' postgresql:?'],
	['export', 'folder', 'folder is a folder; expected the file of a store, such as folder/runs.db'],
	['ingest', 'sqlite:no/folder.db', 'no/folder.db cannot be opened: No such file or directory']) {
	my ($verb, $url, $why) = @$_;

	check_run("$verb $url", run(args => [$verb, '--store', $url, $verb eq 'ingest' ? 'text.txt' : ()]),
		{ status => 2, err => "profllm $verb: $why" });
}
check_run('what is no backup', run(args => [qw(restore text.txt --store new.db)]),
	{ status => 2, err => 'profllm restore: text.txt: the file is not an SQLite database, '
		. 'so it is not a backup' });

done_testing();
