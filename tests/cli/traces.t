#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# traces.t - a profiled run stored in each possible way: its traces are stored with it, and a
# download is the profiler's file byte for byte. Also traces that are missing, elsewhere, or sent
# later.
#
# The simulator replaces an engine with a profiler.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use Dash;
use File::Copy qw(copy move);
use File::Path qw(make_path remove_tree);
use Test::More;

my $here = getcwd();
my $token = '0123456789abcdef0123456789abcdef';
$ENV{XDG_RUNTIME_DIR} = $ENV{XDG_STATE_HOME} = "$here/state";
mkdir 'state';

# A profiled run of so many requests.
sub config {
	my ($name, $more) = @_;
	return <<"END" . ($more // '');
name: $name
server: {command: sim, model: sim}
benchmark: {tokenizer: sim, model: sim, num_prompts: 3, random_input_len: 8, random_output_len: 4,
            request_rate: inf}
telemetry: {enabled: false}
profiling: {enabled: true}
END
}

# The document of a run, which is in that folder: its path, itself, and its only trace's path.
sub profiled {
	my ($folder, $name, @more) = @_;
	make_path($folder);
	spew("$name.yaml", config($name));
	my $r = run(args => ['run', '--config', "$name.yaml", '--output', "$folder/$name.json",
		'--progress', 'none', @more]);
	my $d = json_of(slurp("$folder/$name.json"));
	is($r->{status}, 0, "$name is run") or diag($r->{err});
	is(scalar @{$d->{profiling}{traces}}, 1, "$name has a trace");
	return ("$folder/$name.json", $d, "$folder/$d->{profiling}{traces}[0]{path}", $r);
}

# All that a dashboard has of a run's traces, by name.
sub traces_of {
	my ($dash, $run, @auth) = @_;
	my $r = ask($dash, 'GET', "/api/data/experiments/$run", undef, @auth);
	return { map { ($_->{name} => $_) } @{$r->{json}{traces} // []} };
}

sub base { my ($path) = @_; return $path =~ s,.*/,,r }

# The run has that file as its only trace, and gives it back by its number and by the run's name.
sub has_trace {
	my ($what, $dash, $run, $path, @auth) = @_;
	my $traces = traces_of($dash, $run, @auth);
	my ($trace) = values %$traces;

	is_deeply([keys %$traces], [base($path)], "$what: the run's page lists it") or return;
	for my $id ($trace->{id}, $run) {
		my $r = ask($dash, 'GET', "/api/export/traces/$id", undef, @auth);
		is($r->{status}, 200, "$what: it is downloaded as $id");
		ok($r->{content} eq slurp($path), "$what: byte for byte");
	}
	return $trace;
}

sub spooled { return [glob('state/profllm/spool/*')] }

my ($one, $d1, $t1) = profiled('one', 'first');
my ($two, $d2, $t2) = profiled('two', 'second');
like($d1->{profiling}{traces}[0]{path}, qr{^first\.d/traces/sim_}, 'a path is relative to the document');
is($d1->{profiling}{trace_file_path}, $d1->{profiling}{traces}[0]{path}, 'both are');
unlike(json_text([@{$d1}{qw(profiling files warnings)}]), qr/\Q$here\E/, 'no folder of this machine is told');

# ---- ingest into a store ----

{
	my $store = store_url('ingested');
	my @to = ('--store', $store, '--traces-dir', 'ingested.traces');
	my $r = run(args => ['ingest', $one, @to]);

	check_run('a file', $r, { status => 0, out => ["new        $one: $d1->{run_id} with 1 trace"] });
	check_run('a folder', run(args => ['ingest', 'two', @to, '--json']), { status => 0,
		out => ['*"outcome": "new"*"traces": 1*'] });
	check_run('again', run(args => ['ingest', 'one', @to]), { status => 0,
		out => ["duplicate  $one: $d1->{run_id}"] });
	my $d = start_dashboard(@to);
	has_trace('ingest FILE', $d, $d1->{run_id}, $t1);
	my $trace = has_trace('ingest FOLDER', $d, $d2->{run_id}, $t2);
	is(ask($d, 'GET', '/api/traces')->{json}{total}, 2, 'a trace that comes twice is stored once');
	is(ask($d, 'GET', "/api/export/traces/$trace->{id}", undef, Range => 'bytes=0-9')->{content},
		substr(slurp($t2), 0, 10), 'a range of it');
	is(ask($d, 'GET', '/api/export/traces/nobody')->{status}, 404, 'no run of that name');
	is(ask($d, 'GET', '/api/export/traces/99')->{status}, 404, 'digits are a number of a trace');
	# Several: the answer says which.
	is(ask($d, 'POST', "/api/data/experiments/$d1->{run_id}/traces",
		form(['trace', 'rank1.json', 'another']))->{status}, 201, 'a second trace');
	my $several = ask($d, 'GET', "/api/export/traces/$d1->{run_id}");
	is($several->{status}, 409, 'of several none is chosen');
	is($several->{headers}{'content-type'}, 'application/problem+json', 'but listed in a problem');
	is_deeply([sort map { $_->{name} } @{$several->{json}{traces}}], [sort 'rank1.json', base($t1)],
		'all of them');
	$d->stop;
	check_run('the store is good', run(args => ['store', 'check', @to]), { status => 0 });
	check_run('runs go', run(args => ['store', 'remove', $d1->{run_id}, $d2->{run_id}, '--yes', @to]),
		{ status => 0 });
	is_deeply([glob 'ingested.traces/*/*'], [], 'and their traces with them');
}

# ---- what cannot be taken along ----

{
	my $n = 0;
	my $ingest = sub {
		my ($file, @more) = @_;
		my @to = ('--store', store_url('bad' . ++$n), '--traces-dir', "bad$n.traces");
		my $r = run(args => ['ingest', $file, @to, @more]);
		is($r->{status}, 0, "$file: the run is taken in") or diag($r->{err});
		my @kept = glob "bad$n.traces/*/*";
		return ($r, \@kept);
	};
	my ($r, $kept) = $ingest->($one, '--no-traces');
	is_deeply([$r->{err}, $kept], ['', []], '--no-traces: none, and not a word');

	make_path('bare/secret');
	copy($one, 'bare/first.json') or die;
	($r, $kept) = $ingest->('bare');
	is((() = $r->{err} =~ /^WARNING/mg), 1, 'a missing trace is one warning') or diag($r->{err});
	like($r->{err}, qr/first\.json: its trace was left out: first\.d\/traces\/\S+ is missing/,
		'which names it');

	spew('secret', 'not for others');
	symlink "$here/secret", 'bare/link' or die;
	for (['../secret', 'is not below'], ["$here/secret", 'is not below'], ['link', 'is not below'],
		['secret', 'is not a file'], ['first.json', 'does not have the size']) {
		my ($path, $why) = @$_;
		my $bytes = $path eq 'secret' ? -s 'bare/secret' : $path eq 'first.json' ? 1 : -s 'secret';
		my $d = json_of(slurp($one));
		$d->{profiling}{traces} = [{ path => $path, bytes => $bytes }];
		spew('bare/first.json', json_text($d));
		($r, $kept) = $ingest->('bare/first.json');
		like($r->{err}, qr/\Q$path $why\E/, "$path: $why");
		is_deeply($kept, [], "$path is not read");
	}
	# As older versions wrote it.
	my $old = json_of(slurp($one));
	$_ = "$here/one/$_" for $old->{profiling}{trace_file_path}, $old->{profiling}{traces}[0]{path};
	spew('one/old.json', json_text($old));
	($r, $kept) = $ingest->('one/old.json');
	is(scalar @$kept, 1, 'an absolute path below the document is taken');
	unlink 'one/old.json';
	# A folder that was moved.
	make_path('moved');
	system('cp', '-r', 'one', 'moved/there') == 0 or die;
	($r, $kept) = $ingest->('moved/there/first.json');
	is(scalar @$kept, 1, 'a folder of results can be moved');
}

# ---- a suite on one server: each has its own ----

{
	spew('suite.yaml', config('suite') =~ s/^name/suite/r
		. "restart: on-change\nmatrix: {benchmark.num_prompts: [2, 3, 4]}\n");
	my $r = run(args => [qw(run --config suite.yaml --output suite.json --progress none)]);
	my $d = json_of(slurp('suite.json'));
	my $store = store_url('suite');
	my @to = ('--store', $store, '--traces-dir', 'suite.traces');

	check_run('a suite', $r, { status => 0, out => ['Suite: 3 completed, 0 partial, 0 failed'] });
	is((() = $r->{out} =~ /^Starting server/mg), 1, 'one server for all');
	for my $n (2 .. 4) {
		my @files = glob "suite.d/num_prompts=$n/traces/*";
		is(scalar @files, 1, "$n requests: one trace in its own folder") or next;
		is((() = slurp($files[0]) =~ /"name": "request"/g), $n, 'and it is that of this load');
	}
	check_run('its document', run(args => ['ingest', 'suite.json', @to]), { status => 0,
		out => ['new        suite.json: 3 new with 3 traces'] });
	my $dash = start_dashboard(@to);
	for my $x (@{$d->{experiments}}) {
		has_trace("$x->{config}{name} of a suite", $dash, $x->{run_id},
			"suite.d/$x->{profiling}{traces}[0]{path}");
	}
	$dash->stop;
}

# ---- to a dashboard ----

spew('tokens', "bot $token\n");
spew('token', "$token\n");
my $dash = start_dashboard('--auth-token-file', 'tokens', '--jobs-dir', 'jobs');
my @auth = (Authorization => "Bearer $token");
my @to = ('--server', $dash->{url}, '--token-file', 'token');

check_run('ingest --server', run(args => ['ingest', $one, @to]), { status => 0,
	out => ["new        $one: $d1->{run_id} with 1 trace"] });
has_trace('ingest --server', $dash, $d1->{run_id}, $t1, @auth);
check_run('again', run(args => ['ingest', $one, @to]), { status => 0,
	out => ["duplicate  $one: $d1->{run_id}"] });
is(ask($dash, 'GET', '/api/traces', undef, @auth)->{json}{total}, 1, 'it is there once');
check_run('ingest --server --no-traces', run(args => ['ingest', $two, @to, '--no-traces']),
	{ status => 0 });
is_deeply(traces_of($dash, $d2->{run_id}, @auth), {}, 'sends none');

# A document is only a text to the server: what it names is not opened.
{
	my $d = json_of(slurp($one));
	$d->{run_id} = 'exp_hostile';
	$d->{profiling}{traces} = [{ path => "$here/secret", bytes => -s 'secret' }];
	is(ask($dash, 'POST', '/api/upload/raw?name=one%2Ffirst.json', json_text($d), @auth)->{status}, 201,
		'a document that names a file of the server');
	is_deeply(traces_of($dash, 'exp_hostile', @auth), {}, 'gets none');
}

# ---- run --upload ----

{
	my @up = ('--upload', $dash->{url}, '--token-file', 'token');
	my ($path, $d, $trace, $r) = profiled('up', 'uploaded', @up);
	like($r->{out} . $r->{err}, qr/^Uploaded uploaded with 1 trace to /m, 'is said');
	has_trace('run --upload', $dash, $d->{run_id}, $trace, @auth);

	($path, $d, $trace, $r) = profiled('up', 'alone', @up, '--no-upload-traces');
	is_deeply(traces_of($dash, $d->{run_id}, @auth), {}, '--no-upload-traces sends the document alone');

	# Traces in a folder that the configuration names, not below the document.
	($path, $d, $trace, $r) = profiled('up', 'elsewhere', @up, '--set', "output.folder=$here/scratch");
	$trace = $d->{profiling}{traces}[0]{path};
	like($trace, qr{^\Q$here\E/scratch/traces/}, 'a path that is not below the document is absolute');
	has_trace('output.folder', $dash, $d->{run_id}, $trace, @auth);

	# No server listens: document and traces wait.
	@up = ('--upload', 'http://127.0.0.1:1');
	($path, $d, $trace, $r) = profiled('up', 'waits', @up);
	my ($path2, $d2, $trace2) = profiled('up', 'gone', @up);
	is(scalar @{spooled()}, 2, 'what cannot be sent waits');
	for (@{spooled()}) {
		my $spool = json_of(slurp($_));
		@{$spool}{qw(url token_file)} = ($dash->{url}, "$here/token");
		spew($_, json_text($spool));
	}
	unlink $trace2 or die;
	$r = run(args => ['run', '--upload-spool']);
	check_run('--upload-spool', $r, { status => 0, out => ['2 sent, 0 waiting'] });
	has_trace('from the spool', $dash, $d->{run_id}, $trace, @auth);
	is((() = $r->{err} =~ /^WARNING/mg), 1, 'a trace that has gone is one warning') or diag($r->{err});
	like($r->{err}, qr/1 of 1 traces was not sent: \S+ is missing/, 'which says so');
	is_deeply(spooled(), [], 'nothing waits any more');
}

# ---- launched from the dashboard ----

{
	my $job = ask($dash, 'POST', '/api/launch', { config => config('launched') }, @auth)->{json}{job_id};
	wait_for('the job', sub { ask($dash, 'GET', "/api/jobs/$job", undef, @auth)->{json}{state}
		!~ /waiting|running/ });
	my ($run) = @{ask($dash, 'GET', "/api/jobs/$job", undef, @auth)->{json}{run_ids}};
	my ($file) = glob "jobs/$job/result.d/traces/*";
	ok($run && $file, 'a profiled run is launched') and
		has_trace('launch', $dash, $run, $file, @auth);
}

# ---- uploaded by a form ----

{
	my $trace = slurp($t2);
	my ($body, %head) = form(['file', 'second.json', slurp($two) =~ s/$d2->{run_id}/exp_form/r],
		['trace', base($t2), $trace]);
	is(ask($dash, 'POST', '/api/upload/json', $body, %head, @auth)->{status}, 201, 'a form');
	has_trace('a form', $dash, 'exp_form', $t2, @auth);
	my $alone = ask($dash, 'POST', '/api/upload/raw', $trace, @auth);
	is($alone->{status}, 422, 'a trace alone');
	like($alone->{json}{detail},
		qr/this is a profiler's trace.*attached.*ingest --trace FILE --run RUN_ID/,
		'is told how it is attached');
	($body, %head) = form(['trace', base($t2), $trace]);
	is(ask($dash, 'POST', "/api/data/experiments/$d2->{run_id}/traces", $body, %head, @auth)->{status},
		201, 'it is attached');
	has_trace('attached', $dash, $d2->{run_id}, $t2, @auth);
}

# ---- large ones ----

{
	my $of = sub {
		my ($name, $mib, %o) = @_;
		open my $f, '>', $name or die;
		truncate $f, $mib << 20 or die; # takes no room
		close $f;
		return run(args => ['ingest', '--trace', $name, '--run', $d1->{run_id}, @to], %o);
	};
	# A sanitizer's own memory passes the limit.
	my @limits = `nm -D '$program' 2>/dev/null` =~ /__asan_/ ? () : (limits => 'ulimit -d 65536');
	check_run('a trace larger than the memory that is allowed', $of->('large.json', 100, @limits),
		{ status => 0 });
	my $large = traces_of($dash, $d1->{run_id}, @auth)->{'large.json'};
	is($large->{bytes}, 100 << 20, 'arrives whole');
	check_run('a trace larger than a form', $of->('huge.json', 2048), { status => 1,
		err => 'profllm ingest: --trace: huge.json is larger than 2047 MiB (TRACE_BYTES_MAX)' });
	unlink 'large.json', 'huge.json';
}
is($dash->stop, 0, 'the dashboard ends well');

# ---- watching ----

{
	my $store = store_url('watched');
	my @store = ('--store', $store, '--traces-dir', 'watched.traces');
	make_path('watched');
	my $run = begin(args => ['ingest', 'watched', '--watch', @store]);

	wait_for('watching', sub { (slurp($run->{err_path}) // '') =~ /Watching/ });
	system('cp', '-r', 'one/first.d', 'watched/') == 0 or die;
	copy($one, 'watched/.tmp') or die;
	rename 'watched/.tmp', 'watched/first.json' or die;
	wait_for('the file', sub {
		(slurp($run->{out_path}) // '') =~ m{new +watched/first\.json.* with 1 trace} });
	kill 'TERM', $run->{pid};
	is(finish($run)->{status}, 0, 'watching ends');
	my $d = start_dashboard(@store);
	has_trace('ingest --watch', $d, $d1->{run_id}, $t1);
	$d->stop;
}

# ---- backups have no traces, and say so ----

{
	my @from = ('--store', store_url('kept'), '--traces-dir', 'kept.traces');
	my $copy = store_url('copy');
	my @copy = ('--store', $copy, '--traces-dir', 'copy.traces');

	run(args => ['ingest', $one, @from]);
	check_run('a backup', run(args => ['backup', 'kept.backup', @from[0, 1]]), { status => 0 });
	check_run('is restored', run(args => ['restore', 'kept.backup', '--store', $copy]), { status => 0 });
	my $r = run(args => ['store', 'check', @copy]);
	check_run('is a good store', $r, { status => 0, out => ['nothing is wrong'] });
	like($r->{out}, qr/^note: the files of 1 trace are not in this store, because backups leave/m,
		'whose traces are noted');
	my $d = start_dashboard(@copy);
	my ($trace) = values %{traces_of($d, $d1->{run_id})};
	is($trace->{state}, 'left_out', 'and listed as left out');
	is(ask($d, 'GET', "/api/export/traces/$trace->{id}")->{status}, 404, 'there is no file');
	$d->stop;
	system('cp', '-r', 'kept.traces', 'copy.traces') == 0 or die;
	$r = run(args => ['store', 'check', @copy]);
	unlike($r->{out}, qr{^note}m, "with the folder of traces there is no note");
	$d = start_dashboard(@copy);
	has_trace('a copied folder', $d, $d1->{run_id}, $t1);
	is($d->stop, 0, 'that dashboard, too');
}

done_testing();
