#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm ingest: files of every verb end to end, folders, sweeps, packed files, watching, a
# dashboard.
#
# The outcome of a file is read from the lines that ingest prints and, for its cells, from export.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use File::Path qw(make_path);
use Sweep;
use Test::More;

my ($data, $stores) = ("$ENV{XDG_DATA_HOME}/profllm/store.db", 0);

# The lines that ingest prints for each file, and at the end.
sub ingest {
	my (@args) = @_;
	my $r = run(args => ['ingest', @args, '--json']);
	my @line = map { json_of($_) } split /\n/, $r->{out};

	$r->{all} = pop @line;
	$r->{of} = { map { ($_->{file} => $_) } @line };
	$r->{order} = [map { "$_->{outcome} $_->{file}" } @line];
	return $r;
}

# Cells of all runs of a store, by run_id.
sub cells {
	my ($store, @args) = @_;
	my $r = run(args => ['export', '--store', $store, '--format', 'jsonl', '--shown', 'all', @args]);
	my @row = map { json_of($_) } split /\n/, $r->{out};

	is($r->{status}, 0, 'export') or diag($r->{err});
	return { map { ($_->{run_id} => $_) } @row };
}

sub new_store { return store_url('s' . ++$stores) }

sub holds {
	my ($name, $cells, %want) = @_;
	my %got = map { ($_ => $cells->{$_}) } keys %want;

	is_deeply(\%got, \%want, $name);
}

# ---- what the verbs write ----

my $sim = start_sim(qw(--ttft-ms 1 --itl-ms 0));
my @serve = (qw(bench serve --model sim --tokenizer sim --random-input-len 8 --random-output-len 4
	--temperature 0 --disable-tqdm --port), $sim->{port});
my @engine = qw(--backend sim --model demo --tokenizer sim --gpu h100-80gb --model-shape llama-3.1-8b
	--max-model-len 1024);
my %env = (env => { SAVE_TO_PYTORCH_BENCHMARK_FORMAT => '1', VLLM_CACHE_ROOT => 'cache' });

make_path('made');
run(args => [@serve, qw(--num-prompts 3 --save-result --save-detailed --result-filename made/serve.json
	--metadata tensor_parallel_size=2 team=blue)], %env);
run(args => [@serve, qw(--num-prompts 2 --append-result --result-filename made/lines.jsonl)]) for 1 .. 2;
run(args => ['bench', 'throughput', @engine, qw(--dataset-name random --random-input-len 8
	--random-output-len 4 --num-prompts 4 --output-json made/throughput.json)], %env);
run(args => ['bench', 'latency', @engine, qw(--input-len 8 --output-len 4 --batch-size 2
	--num-iters-warmup 1 --num-iters 2 --output-json made/latency.json)]);
run(args => ['bench', 'startup', @engine, qw(--startup-scale 0.001 --num-iters-cold 1
	--num-iters-warmup 0 --num-iters-warm 1 --output-json made/startup.json)], %env);
run(args => ['bench', 'mm-processor', @engine, qw(--num-prompts 2 --random-input-len 8
	--random-output-len 4 --random-mm-bucket-config), '{(64, 64, 1): 1.0}',
	qw(--output-json made/mm.json)]);
spew('run.yaml', <<'END');
name: tiny
server: { command: sim, model: demo, ttft_ms: 1, itl_ms: 0, max_num_seqs: 8 }
benchmark: { dataset_name: random, tokenizer: sim, random_input_len: 8, random_output_len: 4, num_prompts: 3 }
tags: { team: red }
matrix: { benchmark.max_concurrency: [1, 2] }
END
run(args => [qw(run --config run.yaml --output made/suite.json --progress none)]);

{
	my $r = ingest('made');

	is($r->{status}, 0, 'a folder of results') or diag($r->{err});
	is_deeply($r->{order}, [map { "new made/$_" } qw(latency.json lines.jsonl mm.json serve.json
		startup.json suite.json throughput.json)],
		'each result once: neither side files nor a document\'s own folder');
	is_deeply($r->{all}, { files => 7, new => 7, duplicate => 0, conflict => 0, invalid => 0,
		skipped => 0 }, 'counts');
	is(scalar @{$r->{of}{'made/lines.jsonl'}{runs}}, 2, 'lines are runs');
	is(scalar @{$r->{of}{'made/suite.json'}{runs}}, 2, 'so are a suite\'s experiments');
	ok(-s $data, 'the user\'s own store');

	my %run;
	my $cells = cells("sqlite:$data");
	for my $file (keys %{$r->{of}}) {
		$run{$file =~ s/^made\///r} = $cells->{$_->{run_id}} for reverse @{$r->{of}{$file}{runs}};
	}
	is(scalar keys %$cells, 9, 'runs in the store');
	holds('serve', $run{'serve.json'}, source => 'serve', mode => 'serve', completed => 3, failed => 0,
		status => 'completed', 'server.model' => 'sim', 'server.tensor_parallel_size' => 2,
		'tags.team' => 'blue', 'benchmark.num_prompts' => 3, 'benchmark.request_rate' => 'inf');
	my $file = json_of(slurp('made/serve.json'));
	holds('numbers as they are in the file', $run{'serve.json'}, map { ($_ => $file->{$_}) }
		qw(request_throughput median_ttft_ms p99_itl_ms mean_tpot_ms duration));
	holds('a line', $run{'lines.jsonl'}, source => 'serve', completed => 2);
	holds('throughput', $run{'throughput.json'}, source => 'throughput', mode => 'throughput',
		completed => 4, 'server.model' => 'demo', 'benchmark.dataset_name' => 'random',
		request_throughput => json_of(slurp('made/throughput.json'))->{requests_per_second});
	my $latency = json_of(slurp('made/latency.json'));
	holds('latency', $run{'latency.json'}, source => 'latency', 'benchmark.batch_size' => 2,
		avg_latency => $latency->{avg_latency}, p90_latency => $latency->{percentiles}{90},
		median_latency => $latency->{percentiles}{50});
	holds('startup', $run{'startup.json'}, source => 'startup', mode => 'startup',
		avg_cold_startup_time => json_of(slurp('made/startup.json'))->{avg_cold_startup_time});
	holds('mm-processor', $run{'mm.json'}, source => 'mm-processor', completed => 2,
		mean_e2el_ms => json_of(slurp('made/mm.json'))->{mean_e2el_ms});
	my $document = json_of(slurp('made/suite.json'))->{experiments}[0];
	holds('a document', $run{'suite.json'}, source => 'profllm', run_id => $document->{run_id},
		suite => $document->{suite}, name => $document->{config}{name}, status => 'completed',
		completed => 3, 'server.model' => 'demo', 'server.max_num_seqs' => 8, 'tags.team' => 'red',
		'benchmark.max_concurrency' => $document->{config}{benchmark}{max_concurrency},
		config_hash => $document->{config}{hash}, 'environment.server.kind' => 'sim',
		median_ttft_ms => $document->{results}{median_ttft_ms});

	$r = ingest('made');
	is_deeply([@{$r->{all}}{qw(new duplicate)}], [0, 7], 'again: nothing new');
	is(scalar keys %{cells("sqlite:$data")}, 9, 'and no run more');
	check_run('the same in words', run(args => [qw(ingest made/serve.json)]),
		{ status => 0, out => ['duplicate  made/serve.json: sha256:*', '1 file: 1 duplicate'] });
}

# A duplicate that no page shows says why.
{
	my $store = new_store();
	my ($one, $other) = @{json_of(slurp('made/suite.json'))->{experiments}};

	spew('one.json', json_text($one));
	spew('edited.json', json_text({ %$one, duration => 5 }));
	spew('other.json', json_text($other));
	ingest("$_.json", '--store', $store) for qw(one edited other);
	run(args => ['store', 'archive', '--store', $store, $other->{run_id}]);
	for (['one', "run 1 ($one->{run_id}) has this content and is not shown, because it is an older "
			. 'version; run 2 is shown'],
		['edited', $one->{run_id}],
		['other', "run 3 ($other->{run_id}) has this content and is not shown, because it is "
			. 'archived']) {
		my ($file, $text) = @$_;

		check_run("$file again", run(args => ['ingest', "$file.json", '--store', $store]),
			{ status => 0, out => ["duplicate  $file.json: $text", '1 file: 1 duplicate'] });
	}
}

{
	my $store = new_store();
	my $r = ingest('made/serve.pytorch.json', glob('made/startup.*.pytorch.json'), '--store', $store);
	my $cells = cells($store);
	my ($serve) = grep { exists $_->{median_ttft_ms} } values %$cells;

	is($r->{all}{new}, 1 + (() = glob('made/startup.*.pytorch.json')),
		'files of the PyTorch format, when they are named');
	holds('their metrics', $serve, source => 'pytorch', mode => 'serve', 'server.model' => 'sim',
		'benchmark.num_prompts' => 3, completed => 3,
		median_ttft_ms => json_of(slurp('made/serve.json'))->{median_ttft_ms});
}

# ---- what conversations, constraints, priorities and shared prefixes write ----

{
	my $store = new_store();
	my $sim = start_sim(qw(--max-num-seqs 8 --scheduling-policy priority --enable-prompt-tokens-details));
	my @engine = qw(--backend sim --model sim --tokenizer sim);

	make_path('more');
	spew('talk.json', json_text([map { { id => "t$_", messages => [
		{ role => 'user', content => "first $_ " . 'word ' x 40 },
		{ role => 'assistant', content => 'yes' }, { role => 'user', content => 'second' },
		{ role => 'assistant', content => 'no' }] } } 1 .. 3]));
	run(args => [qw(bench multi-turn --input-file talk.json --model sim --tokenizer sim --num-clients 2
		--no-early-stop --disable-tqdm --save-result --result-filename more/talk.json --url),
		$sim->{url}]);
	run(args => [qw(bench structured-output --model sim --tokenizer sim --dataset choice --num-prompts 6
		--output-len 20 --disable-tqdm --save-results --result-filename more/choice.json --base-url),
		$sim->{url}]);
	run(args => [qw(bench prioritization), @engine, qw(--scheduling-policy priority --input-len 4
		--output-len 5 --num-prompts 10 --baseline --output-json more/prio.json)]);
	run(args => [qw(bench prefix-caching), @engine, qw(--num-prompts 4 --repeat-count 2
		--input-length-range 64:96 --sort --compare-caching --output-json more/prefix.json)]);
	run(args => [qw(bench long-document-qa), @engine, qw(--document-length 100 --num-documents 2
		--repeat-mode tile --output-json more/documents.json)]);
	my $r = ingest('more', '--store', $store);
	my %run = map { ($_ => cells($store)->{$r->{of}{"more/$_.json"}{runs}[0]{run_id}}) }
		qw(talk choice prio prefix documents);

	is($r->{all}{new}, 5, 'a file of each new verb') or diag explain $r->{of};
	my $sessions = json_of(slurp('more/talk.json'))->{sessions};
	holds('conversations', $run{talk}, 'sessions.completed' => 3, 'sessions.turns' => 6,
		'sessions.duration_s.p99' => $sessions->{duration_s}{p99},
		'sessions.ttft_first_turn_ms.mean' => $sessions->{ttft_first_turn_ms}{mean},
		'sessions.ttft_later_turns_ms.p99' => $sessions->{ttft_later_turns_ms}{p99},
		'sessions.ttft_later_turns_ms.n' => 3, 'sessions.cached_share' => $sessions->{cached_share},
		'benchmark.dataset_name' => 'conversations', 'benchmark.num_clients' => 2,
		'benchmark.conversation_sampling' => 'round_robin');
	cmp_ok($run{talk}{'sessions.cached_share'}, '>', 0, 'some of whose tokens were cached');
	my $judged = json_of(slurp('more/choice.json'))->{profllm}{correctness};
	holds('judged answers', $run{choice}, 'correctness.scored' => 6, 'correctness.constrained' => 6,
		'correctness.correct' => $judged->{correct},
		'correctness.constrained_correct_rate' => $judged->{constrained_correct_rate},
		'correctness.correct_rate_upstream' => $judged->{correct_rate_upstream},
		'benchmark.dataset_name' => 'structured', 'benchmark.structured_dataset' => 'choice');
	is($run{choice}{'tags.correct_rate(%)'}, undef, 'and nothing of them is a tag');
	my $ours = json_of(slurp('more/prio.json'))->{profllm};
	holds('priorities', $run{prio}, mode => 'prioritization', priorities => 2,
		map { my $class = $ours->{priorities}[$_]; ("priority.$_.completed" => 5,
			"priority.$_.ttft_ms.mean" => $class->{ttft_ms}{mean},
			"priority.$_.e2el_ms.p99" => $class->{e2el_ms}{p99},
			"priority.$_.e2el_cost" => $ours->{priority_cost}[$_]{e2el}) } 0, 1);
	$ours = json_of(slurp('more/prefix.json'))->{profllm};
	holds('shared prefixes', $run{prefix}, mode => 'prefix-caching',
		'benchmark.dataset_name' => 'prefix_caching', 'benchmark.repeat_count' => 2,
		'benchmark.repeat_order' => 'sorted', caching_speedup => $ours->{caching_speedup},
		'prefix_cache.off.duration' => $ours->{runs}[1]{elapsed_time},
		'prefix_cache.off.cached_share' => 0,
		'client.ideal_prefix_reuse' => $ours->{ideal_prefix_reuse});
	holds('long documents', $run{documents}, mode => 'long-document-qa',
		'benchmark.dataset_name' => 'long_document_qa', 'benchmark.repeat_order' => 'tile');
	is(run(args => [qw(export --columns), 'mode,priority.1.completed', '--filter',
		'{"column": "priority.1.completed", "range": {"min": 1}}', '--store', $store])->{out},
		"mode,priority.1.completed\r\nprioritization,5\r\n", 'a question about a class');
	is(run(args => [qw(export --columns mode --filter),
		'{"column": "priority.9.ttft_ms.p99", "range": {"min": 1}}', '--store', $store])->{out},
		"mode\r\n", 'about one that no run has, too');
	check_run('one that makes no sense is not', run(args => [qw(export --columns), 'mode',
		'--filter', '{"column": "priority.9.tftt_ms.p99", "range": {"min": 1}}', '--store', $store]),
		{ status => 2, err => '*priority.9.tftt_ms.p99*' });
}

# ---- sweeps, and vLLM's tables ----

{
	my $store = new_store();
	spew('s.json', '[{"max_num_seqs": 4}, {"max_num_seqs": 16}]');
	spew('b.json', '[{"num_prompts": 2}]');
	sweep('grid', serve_params => 's.json', bench_params => 'b.json', num_runs => 2);
	my $r = ingest('results', '--store', $store);
	my $cells = cells($store);

	is_deeply($r->{order}, [map { "new results/grid/SERVE--max_num_seqs=$_-BENCH--num_prompts=2/"
		. 'summary.json' } 16, 4], 'a sweep: the summary of each combination');
	is(scalar keys %$cells, 4, 'with a run for each repeat');
	is_deeply([sort map { join ' ', @$_{qw(suite server.max_num_seqs benchmark.num_prompts repeat)} }
		values %$cells], ['grid 16 2 0', 'grid 16 2 1', 'grid 4 2 0', 'grid 4 2 1'],
		'its parameters on their sides');
	unlink glob('results/grid/*/summary.json');
	$r = ingest('results', '--store', $store);
	is_deeply([@{$r->{all}}{qw(files new duplicate)}], [4, 0, 4], 'the runs of one cut short: the same');
}

{
	my $store = new_store();
	spew('benchmark_results.json', '[{"Test name": "serving_a", "GPU": "H100", "Model": "m", "qps": 4,'
		. ' "Tput (req/s)": 3.5, "Median TTFT (ms)": 20.5}]');
	is(ingest('benchmark_results.json', '--store', $store)->{all}{new}, 1, 'vLLM\'s nightly tables');
	holds('their columns', (values %{cells($store)})[0], name => 'serving_a', source => 'nightly',
		'server.model' => 'm', 'hardware.gpu' => 'H100', 'benchmark.request_rate' => 4,
		request_throughput => 3.5, median_ttft_ms => 20.5);
}

# ---- other tools ----

# A file of aiperf 0.13 and a result of ours, both of `sim --ttft-ms 50 --itl-ms 10` with two streams.
{
	my ($store, $sim) = (new_store(), start_sim('--ttft-ms', 50, '--itl-ms', 10));
	my $file = slurp("$FindBin::Bin/foreign/aiperf.json");
	my $told = json_of($file);

	spew('renamed.json', $file);
	is(ingest('renamed.json', '--store', $store)->{all}{new}, 1, 'a file of aiperf, whatever its name');
	run(args => [qw(bench serve --model sim --tokenizer sim --random-input-len 64),
		qw(--random-output-len 8 --ignore-eos --num-prompts 12 --max-concurrency 2 --save-result
		--result-filename ours.json),
		'--percentile-metrics', 'ttft,tpot,itl,e2el', '--base-url', "http://127.0.0.1:$sim->{port}"]);
	is(ingest('ours.json', '--store', $store)->{all}{new}, 1, 'and a result of ours');
	my ($theirs, $ours) = sort { $a->{source} cmp $b->{source} } values %{cells($store)};
	holds('its source', $theirs, source => 'aiperf', 'environment.aiperf' => '0.13.0',
		status => 'completed', completed => 12, failed => 0, total_output_tokens => 96);
	is($theirs->{$_->[0]}, $told->{$_->[1]}{avg}, "$_->[0] is what aiperf says") for
		[qw(request_throughput request_throughput)], [qw(output_throughput output_token_throughput)],
		[qw(total_token_throughput total_token_throughput)], [qw(duration benchmark_duration)],
		[qw(total_input_tokens total_isl)];
	for my $time ([qw(ttft time_to_first_token)], [qw(tpot inter_token_latency)],
		[qw(itl inter_chunk_latency)], [qw(e2el request_latency)]) {
		my ($name, $of) = ($time->[0], $told->{$time->[1]});

		is($theirs->{"${_}_${name}_ms"}, $of->{$_}, "$_ of $name") for qw(std p1 p50 p90 p95 p99);
		is($theirs->{"mean_${name}_ms"}, $of->{avg}, "mean of $name");
		is($theirs->{"median_${name}_ms"}, $of->{p50}, "median of $name");
		cmp_ok(abs($theirs->{"median_${name}_ms"} / $ours->{"median_${name}_ms"} - 1), '<', 0.2,
			"$name of both tools in one column and one unit");
	}
	is($theirs->{$_}, $ours->{$_}, "$_ is the same") for qw(server.model mode benchmark.backend
		benchmark.dataset_name benchmark.num_prompts benchmark.max_concurrency benchmark.request_rate
		benchmark.random_input_len benchmark.random_output_len);
}

# ---- what is doubtful in many files is said once ----

{
	my $store = new_store();
	my $bare = sub {
		return '{"run_id": "' . $_[0] . '", "config": {}, "results": {"request_throughput": 1}}';
	};

	make_path('bare');
	spew("bare/$_.json", $bare->("exp_$_")) for 1 .. 9;
	my $r = run(args => ['ingest', 'bare', '--store', $store]);
	is($r->{status}, 0, 'nine files without a version');
	is(scalar(my @said = $r->{err} =~ /has no schema_version/g), 1, 'one sentence');
	ok(has_line($r->{err}, '*9 files, the first is bare/1.json: The document has no schema_version.'),
		'which counts them') or diag($r->{err});
	spew('bare/10.json', $bare->('exp_10'));
	$r = run(args => ['ingest', 'bare/10.json', '--store', $store]);
	ok(has_line($r->{err}, '*bare/10.json: The document has no schema_version.'), 'of one file');
}

# ---- conflicts, invalid files, packed ones ----

sub document {
	my ($id, $throughput, %more) = @_;
	return json_text({ schema_version => 1, run_id => $id, timestamp => '2026-01-02T03:04:05Z',
		config => { name => 'c' }, results => { request_throughput => $throughput },
		environment => {}, status => 'completed', %more });
}

{
	my $store = new_store();

	make_path('mixed/deep');
	spew('mixed/a.json', document('exp_a', 1));
	spew('mixed/b.json', document('exp_a', 2));
	spew('mixed/broken.json', '{"request_throughput": 1, ');
	spew('mixed/config.json', '{"name": "no result"}');
	spew('mixed/deep/c.json', document('exp_c', 3));
	spew('mixed/.hidden.json', document('exp_h', 3));
	spew('mixed/notes.txt', 'x');
	spew('mixed/type.json', document('exp_t', 1, results => [1]));
	my $r = ingest('mixed', '--store', $store);
	is($r->{status}, 1, 'an invalid file among others');
	is_deeply($r->{order}, [map { s/ / mixed\//r } 'new a.json', 'conflict b.json', 'invalid broken.json',
		'skipped config.json', 'new deep/c.json', 'invalid type.json'], 'each is told');
	like($r->{of}{'mixed/broken.json'}{runs}[0]{reason}, qr/^line 1, column \d+: /, 'with the place');
	is($r->{of}{'mixed/type.json'}{runs}[0]{reason},
		'results: expected an object or null, got a list', 'or the key');
	is($r->{all}{files}, 6, 'and nothing else is looked at');
	is_deeply([sort map { $_->{request_throughput} } values %{cells($store, qw(--shown usual))}],
		[2, 3],
		'of a conflict the newer one is shown');
	check_run('a file that is named and no result', run(args => [qw(ingest mixed/config.json --store),
		$store]), { status => 1, out => ['invalid*mixed/config.json: no result that is known*'] });
	make_path('nothing');
	spew('nothing/result.out', document('exp_o', 1));
	check_run('a folder without a result says so', run(args => [qw(ingest nothing --store), $store]),
		{ status => 0, out => ['0 files: in folders, results are looked for in files named *'] });
}

SKIP: {
	my $store = new_store();

	make_path('packed');
	spew('packed/a.json', document('exp_z', 1));
	system('gzip', '-k', 'packed/a.json');
	system('zstd', '-q', 'packed/a.json', '-o', 'packed/a.json.zst') if -x '/usr/bin/zstd';
	my @files = sort glob('packed/*');
	my $r = ingest(@files, '--store', $store);
	is_deeply([@{$r->{all}}{qw(new duplicate)}], [1, @files - 1], 'packed files are what is in them');
	open my $f, '|-', 'gzip -1 >bomb.json.gz' or skip('no gzip', 1);
	print $f ' ' x (1 << 20) for 1 .. 65;
	close $f;
	cmp_ok(-s 'bomb.json.gz', '<', 1 << 20, 'little that is much');
	$r = ingest('bomb.json.gz', '--store', $store);
	like($r->{of}{'bomb.json.gz'}{runs}[0]{reason}, qr/^it unpacks to more than \d+ bytes$/,
		'is refused');
}

# ---- traces ----

{
	my $store = new_store();

	spew('rank0.json', '{"traceEvents": []}');
	check_run('a trace with its run', run(args => ['ingest', 'mixed/a.json', '--trace', 'rank0.json',
		'--traces-dir', 'traces', '--store', $store]),
		{ status => 0, out => ['new*', 'trace 1 of run 1: rank0.json'] });
	check_run('a trace for a run that is there', run(args => [qw(ingest --trace rank0.json --run exp_a
		--traces-dir traces --store), $store]),
		{ status => 0, out => ['trace * of run 1: rank0.json'] });
	check_run('a trace for nobody', run(args => [qw(ingest --trace rank0.json --run nobody
		--traces-dir traces --store), $store]),
		{ status => 2, err => "profllm ingest: --run: there is no run 'nobody'" });
	check_run('which is there', run(args => [qw(store check --traces-dir traces --store), $store]),
		{ status => 0, out => ['nothing is wrong'] });
	check_run('a run goes', run(args => [qw(store remove exp_a --yes --traces-dir traces --store),
		$store]), { status => 0 });
	is_deeply([glob 'traces/*/*'], [], 'and its trace with it');
}

# ---- watching ----

{
	my $store = new_store();

	make_path('watched/old');
	spew('watched/old/a.json', document('exp_1', 1));
	my $run = begin(args => ['ingest', 'watched', '--watch', '--store', $store]);
	my $said = sub {
		my ($what) = @_;
		wait_for($what, sub { (slurp($run->{out_path}) // '') =~ /\Q$what\E/ });
	};

	$said->('new        watched/old/a.json');
	wait_for('watching', sub { (slurp($run->{err_path}) // "") =~ /Watching/ });
	spew('watched/.b.tmp', document('exp_2', 2));
	rename 'watched/.b.tmp', 'watched/b.json' or die;
	$said->('new        watched/b.json');
	open my $f, '>', 'watched/c.json' or die;
	print $f substr(document('exp_3', 3), 0, 20);
	$f->flush;
	make_path('watched/new/deeper');
	spew('watched/new/deeper/d.json', document('exp_4', 4));
	$said->('new        watched/new/deeper/d.json');
	print $f substr(document('exp_3', 3), 20);
	close $f;
	$said->('new        watched/c.json');
	spew('watched/c.json', document('exp_3', 33));
	$said->('conflict   watched/c.json');
	spew('watched/ignored.txt', 'x');
	kill 'TERM', $run->{pid};
	my $r = finish($run);
	is($r->{status}, 0, 'watching ends by a signal');
	is((() = $r->{out} =~ /^(new|conflict|duplicate) /mg), 5,
		'each file was taken once, when it was whole') or diag($r->{out});
	unlike($r->{out}, qr/^invalid/m, 'half a file is no mistake');
	is_deeply([sort keys %{cells($store)}], [map { "exp_$_" } 1 .. 4], 'all of them are there');
}

# ---- to a dashboard ----

{
	spew('tokens', "bot 0123456789abcdef0123456789abcdef\n");
	spew('token', "0123456789abcdef0123456789abcdef\n");
	my $d = start_dashboard('--auth-token-file', 'tokens');
	my @to = ('--server', $d->{url});

	check_run('without a token', run(args => ['ingest', 'mixed/a.json', @to]),
		{ status => 1, err => "profllm ingest: $d->{url} answered 401*" });
	my $r = ingest('mixed', @to, '--token-file', 'token');
	is_deeply($r->{order}, [map { s/ / mixed\//r } 'new a.json', 'conflict b.json', 'invalid broken.json',
		'skipped config.json', 'new deep/c.json', 'invalid type.json'], 'the same is told');
	is($r->{status}, 1, 'with the same exit status');
	my $answer = ask($d, 'POST', '/api/filters/apply', { columns => ['run_id'], limit => 10 },
		Authorization => 'Bearer 0123456789abcdef0123456789abcdef');
	is_deeply([sort map { $_->{values}{run_id} } @{$answer->{json}{items}}], ['exp_a', 'exp_c'],
		'and the runs are there');
	ingest('more', @to, '--token-file', 'token');
	for my $column (qw(sessions.ttft_later_turns_ms.mean priority.1.e2el_cost
		prefix_cache.off.duration correctness.scored)) {
		$answer = ask($d, 'POST', '/api/filters/apply', { columns => [$column], limit => 10,
			filter => { column => $column, range => { min => 0 } },
			sort => [{ column => $column }] },
			Authorization => 'Bearer 0123456789abcdef0123456789abcdef');
		is(scalar @{$answer->{json}{items} // []}, 1, "the API is asked by $column");
	}
	check_run('a trace', run(args => ['ingest', '--trace', 'rank0.json', '--run', 'exp_c', @to,
		'--token-file', 'token']), { status => 0 });
	$answer = ask($d, 'GET', '/api/traces', undef,
		Authorization => 'Bearer 0123456789abcdef0123456789abcdef');
	is($answer->{json}{total}, 1, 'is kept there');
	$d->stop;
	check_run('nobody answers', run(args => ['ingest', 'mixed/a.json', @to]),
		{ status => 1, err => 'profllm ingest: *' });
}

check_run('a dashboard that is not there', run(args => [qw(ingest made/serve.json --server),
	'http://127.0.0.1:1']), { status => 1, err => 'profllm ingest: cannot connect to http://127.0.0.1:1: '
	. 'Connection refused. Is the dashboard running?' });

# ---- mistakes ----

my @mistakes = (
	['a file or a folder is needed'],
	['nowhere.json does not exist*', 'nowhere.json'],
	['--store and --server exclude each other', qw(mixed --store x.db --server http://x)],
	['--token-file needs --server', qw(mixed --token-file token)],
	['--run needs --trace', qw(mixed --run a)],
	['--trace: nowhere is not a file', qw(--trace nowhere)],
	['--watch needs a folder, and excludes --trace', qw(--watch mixed --trace token)],
	['*expected a URL that begins with*', qw(mixed --server ftp://x)],
	['token file token2: its first line is empty',
		qw(mixed --server http://127.0.0.1:9 --token-file token2)],
);
spew('token2', "\n");
for (@mistakes) {
	my ($err, @args) = @$_;
	check_run("refused: @args", run(args => ['ingest', @args]), { status => 2,
		err => "profllm ingest: $err" });
}

# ---- a damaged store ----

# What SQLite says of it is followed by what to do.
if (($ENV{TEST_STORE} // 'sqlite') eq 'sqlite') {
	my $bytes;
	my %damage = (
		'its schema' => sub { $bytes =~ s{CREATE TABLE documents}{CRXATE TABLE documents}g },
		'its pages' => sub { substr($bytes, 3 * 4096, 17 * 4096) = "\xff" x (17 * 4096) },
		'its first page' => sub { substr($bytes, 100, 3000) = "\0" x 3000 },
	);

	run(args => [qw(ingest made/serve.json --store sqlite:whole.db)]);
	run(args => [qw(backup whole.backup --store sqlite:whole.db)]);
	my $restored = sub {
		my ($what) = @_;
		my $r = run(args => [qw(restore whole.backup --store sqlite:damaged.db --force)]);

		is($r->{status}, 0, "$what: restore does that") or diag($r->{err});
		my ($aside) = $r->{out} =~ /could not be used and is now (damaged\.db\.replaced-\d+)$/m;
		is(slurp($aside // 'damaged.db'), $bytes, "$what: and keeps the file");
		like(run(args => [qw(store check --store sqlite:damaged.db)])->{out},
			qr/^1 run .*^nothing is wrong$/ms, "$what: the store is as it was");
	};
	for my $what (sort keys %damage) {
		$bytes = slurp('whole.db');
		$damage{$what}->();
		spew('damaged.db', $bytes);

		my $r = run(args => [qw(store check --store sqlite:damaged.db)]);
		is($r->{status}, 1, "$what: store check fails");
		like("$r->{out}$r->{err}", qr/`profllm restore BACKUP --store STORE --force`/,
			"$what: says how to restore") || diag($r->{out}, $r->{err});
		like("$r->{out}$r->{err}", qr/`sqlite3 STORE \.recover`/, "$what: and what to do without");
		$r = run(args => [qw(restore damaged.db --store sqlite:other.db)]);
		check_run("$what: as a backup", $r, { status => 1,
			err => 'profllm restore: damaged.db: the backup is damaged; *' });
		$restored->($what);
	}
	spew('cut.backup', substr slurp('whole.backup'), 0, 100_000);
	spew('damaged.db', $bytes);
	check_run('a damaged backup', run(args => [qw(restore cut.backup --store sqlite:damaged.db --force)]),
		{ status => 1, err => 'profllm restore: cut.backup: the backup is damaged; *' });
	is(slurp('damaged.db'), $bytes, 'leaves the store as it was');
}

done_testing();
