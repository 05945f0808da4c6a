#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# profllm ingest: results of other tools. Every figure in a column equals the one in the tool's
# file, and every column of a figure is listed here.
#
# The files in foreign/ were made by the tools, as tests/peer/foreign/README.md says.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP;
use Test::More;

# FOREIGN: a folder of files made by the tools again.
my ($stores, $here) = (0, $ENV{FOREIGN} || "$FindBin::Bin/foreign");

# The rows of a store that took in these files, in the order of the files.
sub ingested {
	my (@file) = @_;
	my $store = store_url('s' . ++$stores);
	my $r = run(args => ['ingest', @file, '--store', $store]);
	my $x = run(args => ['export', '--store', $store, '--format', 'jsonl', '--shown', 'all']);

	is($r->{status}, 0, "ingest @file") or diag($r->{out}, $r->{err});
	return ($r, sort { $a->{id} <=> $b->{id} } map { json_of($_) } split /\n/, $x->{out});
}

# "a.b" of a tree; a list's element is its number.
sub at {
	my ($v, $path) = @_;

	for my $key (split /\./, $path) {
		$v = ref $v eq 'ARRAY' ? $v->[$key] : ref $v eq 'HASH' ? $v->{$key =~ s/~/./r} : undef;
	}
	return $v;
}

sub json_file { return json_of(slurp("$here/$_[0]")) }

# A log's keys and values.
sub log_file {
	return { map { ($_->{key} => $_->{value}) }
		map { json_of($_) } slurp("$here/$_[0]") =~ /^:::MLLOG (.*)$/mg };
}

# [column, path, times, over] for each statistic of a metric; ~ in a path is a dot inside a key.
sub stats {
	my ($name, $path, $of, @unit) = @_;
	my $plain = $path =~ s/%$//r;

	return map { ["${_}_$name", $path =~ /%/ ? $path =~ s/%/$of->{$_}/r : "$path.$of->{$_}", @unit] }
		sort keys %$of;
}

my %perf = (mean => 'avg', std => 'std', median => 'p50',
	map { ("p$_" => "p$_") } qw(1 5 10 25 50 75 90 95 99));
my %guide = (mean => 'mean', median => 'median', std => 'std_dev', 'p0.1' => 'percentiles.p001',
	'p99.9' => 'percentiles.p999', p1 => 'percentiles.p01', p5 => 'percentiles.p05',
	map { ("p$_" => "percentiles.p$_") } qw(10 25 50 75 90 95 99));
my %endpoints = (mean => 'avg', median => 'median', 'p99.9' => 'percentiles.99~9',
	map { ("p$_" => "percentiles.$_~0") } qw(1 5 10 25 50 75 80 90 95 97 99));
my @taken = qw(50 90 95 97 99);
my %mlperf = ('p99.9' => '99~90', median => '50~00', map { ("p$_" => "$_~00") } @taken);
my @ns = (1, 1e6);

# What each tool's file becomes. "is": cells that are not figures, or are combined.
my @tool = (
	{ file => 'aiperf.json', is => { source => 'aiperf', 'environment.aiperf' => '0.13.0',
			completed => 12, failed => 0 },
		rows => [[qw(request_throughput request_throughput.avg)],
			[qw(duration benchmark_duration.avg)],
			[qw(output_throughput output_token_throughput.avg)],
			[qw(total_token_throughput total_token_throughput.avg)],
			[qw(total_input_tokens total_isl.avg)], [qw(total_output_tokens total_osl.avg)],
			stats('ttft_ms', 'time_to_first_token', \%perf),
			stats('e2el_ms', 'request_latency', \%perf),
			stats('tpot_ms', 'inter_token_latency', \%perf),
			stats('itl_ms', 'inter_chunk_latency', \%perf)] },
	{ file => 'genai_perf.json', is => { source => 'genai-perf', 'server.model' => 'sim',
			'benchmark.max_concurrency' => 2, 'benchmark.num_prompts' => 24,
			'benchmark.random_input_len' => 64, 'benchmark.random_output_len' => 8,
			'benchmark.backend' => 'openai', 'benchmark.request_rate' => 'inf' },
		rows => [[qw(request_throughput request_throughput.avg)], [qw(completed request_count.avg)],
			[qw(output_throughput output_token_throughput.avg)],
			stats('ttft_ms', 'time_to_first_token', \%perf),
			stats('e2el_ms', 'request_latency', \%perf),
			stats('tpot_ms', 'inter_token_latency', \%perf)] },
	map({ my $m = "benchmarks.$_.metrics";
		{ file => 'guidellm.json', run => $_, is => { source => 'guidellm', 'server.model' => 'sim',
			'environment.guidellm' => '0.8.1', 'benchmark.max_concurrency' => 2 + 2 * $_,
			'benchmark.num_prompts' => 24, 'benchmark.random_input_len' => 64,
			'benchmark.backend' => 'openai' },
		rows => [['request_throughput', "$m.requests_per_second.successful.mean"],
			['output_throughput', "$m.output_tokens_per_second.successful.mean"],
			['total_token_throughput', "$m.tokens_per_second.successful.mean"],
			['total_input_tokens', "$m.prompt_token_count.successful.total_sum"],
			['total_output_tokens', "$m.output_token_count.successful.total_sum"],
			['completed', "$m.request_totals.successful"],
			['failed', "$m.request_totals.errored"],
			['mean_itl_ms', "$m.inter_token_latency_ms.successful.mean"],
			['duration', "benchmarks.$_.duration"],
			stats('ttft_ms', "$m.time_to_first_token_ms.successful", \%guide),
			stats('e2el_ms', "$m.request_latency.successful", \%guide, 1000, 1)] } } 0, 1),
	{ file => 'mlperf_endpoints.json', is => { source => 'mlperf-endpoints',
			'environment.mlperf_endpoints' => '0.1.0', 'benchmark.max_concurrency' => 4 },
		rows => [[qw(request_throughput qps)], [qw(output_throughput tps)],
			['duration', 'duration_ns', 1, 1e9], [qw(completed n_samples_completed)],
			[qw(failed n_samples_failed)], [qw(total_input_tokens input_sequence_lengths.total)],
			[qw(total_output_tokens output_sequence_lengths.total)],
			stats('ttft_ms', 'ttft', \%endpoints, @ns),
			stats('tpot_ms', 'tpot', \%endpoints, @ns),
			stats('e2el_ms', 'latency', \%endpoints, @ns)] },
	{ file => 'mlperf_log_detail.txt', is => { source => 'mlperf-loadgen',
			'environment.loadgen' => '6.0.17 @ d6147c7eb7', 'tags.mlperf_scenario' => 'Server',
			'tags.mlperf_result' => 'INVALID', 'benchmark.request_rate' => 20 },
		rows => [[qw(request_throughput result_completed_samples_per_sec)],
			[qw(output_throughput result_completed_tokens_per_second)],
			[qw(completed result_query_count)],
			['mean_e2el_from_due_ms', 'result_mean_latency_ns', @ns],
			['mean_ttft_from_due_ms', 'result_first_token_mean_latency_ns', @ns],
			['mean_tpot_ms', 'result_time_to_output_token_mean', @ns],
			stats('e2el_from_due_ms', 'result_%_percentile_latency_ns', \%mlperf, @ns),
			stats('ttft_from_due_ms', 'result_first_token_%_percentile_latency_ns', \%mlperf,
				@ns),
			stats('tpot_ms', 'result_time_per_output_token_%_percentile_ns', \%mlperf, @ns)] },
	{ file => 'mlperf_single_stream.txt', is => { source => 'mlperf-loadgen',
			'tags.mlperf_scenario' => 'SingleStream', 'benchmark.max_concurrency' => 1 },
		rows => [[qw(request_throughput result_qps_with_loadgen_overhead)],
			[qw(completed result_query_count)], ['mean_e2el_ms', 'result_mean_latency_ns', @ns],
			['mean_ttft_ms', 'result_first_token_mean_latency_ns', @ns],
			['mean_tpot_ms', 'result_time_to_output_token_mean', @ns],
			stats('e2el_ms', 'result_%_percentile_latency_ns', \%mlperf, @ns),
			stats('ttft_ms', 'result_first_token_%_percentile_latency_ns', \%mlperf, @ns),
			stats('tpot_ms', 'result_time_per_output_token_%_percentile_ns', \%mlperf, @ns)] },
	{ file => 'inferencex.json', is => { source => 'inferencex', 'server.model' => 'sim',
			'tags.gpu' => 'h200', gpus => 8, 'server.tensor_parallel_size' => 8,
			'tags.framework' => 'vllm',
			'tags.precision' => 'fp8', 'benchmark.max_concurrency' => 2,
			'benchmark.random_input_len' => 64, 'benchmark.random_output_len' => 8 },
		rows => [['total_token_throughput', '0.tput_per_gpu', 8, 1],
			['output_throughput', '0.output_tput_per_gpu', 8, 1],
			[qw(derived.total_token_throughput_per_gpu 0.tput_per_gpu)],
			[qw(derived.output_throughput_per_gpu 0.output_tput_per_gpu)],
			map { my $m = $_; map { ["${_}_${m}_ms", "0.${_}_$m", 1000, 1] }
				qw(mean median std p50 p90 p99) } qw(ttft tpot itl e2el)] },
	{ file => 'vllm_serve.json', is => { source => 'serve', 'server.model' => 'sim' },
		rows => [map({ [$_, $_] } qw(request_throughput output_throughput duration completed failed
				total_token_throughput total_input_tokens total_output_tokens rtfx
				max_output_tokens_per_s max_concurrent_requests)),
			map { my $m = $_; map { ["${_}_${m}_ms", "${_}_${m}_ms"] }
				qw(mean median std p50 p90 p99) } qw(ttft tpot itl e2el)] },
	{ file => 'vllm_throughput.json', is => { source => 'throughput' },
		rows => [[qw(duration elapsed_time)], [qw(completed num_requests)],
			[qw(request_throughput requests_per_second)],
			[qw(total_token_throughput tokens_per_second)]] },
	{ file => 'vllm_serve.pytorch.json', is => { source => 'pytorch' }, rows => [] },
);

my $is_figure = qr/throughput|_ms$|^(duration|completed|failed|total_\w+_tokens|rtfx|max_\w+)$/;

for my $tool (grep { -e "$here/$_->{file}" } @tool) {
	my ($r, @row) = ingested("$here/$tool->{file}");
	my $told = $tool->{file} =~ /txt$/ ? log_file($tool->{file}) : json_file($tool->{file});
	my $run = $row[$tool->{run} // 0];
	my (%want, %got) = %{$tool->{is}};

	for (@{$tool->{rows}}) {
		my ($column, $path, $times, $over) = @$_;
		my $figure = at($told, $path);

		ok(defined $figure, "$tool->{file} has $path") or next;
		$want{$column} = $figure * ($times // 1) / ($over // 1);
	}
	$got{$_} = $run->{$_} for keys %{$tool->{is}}, grep { /$is_figure/ && defined $run->{$_} } keys %$run;
	delete @got{qw(output_tokens_per_s_per_slot)};
	is_deeply(\%got, \%want, "$tool->{file}: " . @{$tool->{rows}} . ' figures, and no other')
		if @{$tool->{rows}};
	is($run->{status}, 'completed', "$tool->{file}: its status");
	is($run->{left_out}, undef, "$tool->{file}: nothing that cannot be");
}

# ---- the same numbers by two ways ----

if (-e "$here/vllm_serve.json") {
	my ($r, $records) = ingested("$here/vllm_serve.pytorch.json");
	my $told = json_file('vllm_serve.json');

	is($records->{$_}, $told->{$_}, "$_ of vLLM's PyTorch records is that of its result") for
		qw(mean_ttft_ms p99_ttft_ms mean_tpot_ms median_itl_ms p90_e2el_ms request_throughput
		output_throughput total_token_throughput);
}
{
	my ($r, $whole, $short) = ingested("$here/mlperf_log_detail.txt", "$here/mlperf_log_summary.txt");

	is($short->{$_}, $whole->{$_}, "$_ of LoadGen's summary is that of its log") for
		grep { /_ms$|^tags\.|^benchmark\./ } keys %$whole;
	cmp_ok(abs($short->{$_} - $whole->{$_}), '<=', 0.005, "$_ has two digits there") for
		qw(request_throughput output_throughput);
}

if ($ENV{FOREIGN}) {
	done_testing();
	exit;
}

# ---- folders ----

{
	my ($r, @row) = ingested($here);

	is(scalar(grep { $_->{source} eq 'mlperf-loadgen' } @row), 1, 'of two logs of a run the longer one');
	is(scalar(grep { $_->{source} eq 'guidellm' } @row), 2, 'each benchmark of a file is a run');
	ok(has_line($r->{err}, "*mlperf_log_detail.txt: MLPerf's own result of this run is INVALID*"),
		'what MLPerf thinks of it') or diag($r->{err});
}

# A folder of vLLM's performance suite: the commands next to results, and the table of all of them.
{
	my %test = (serving_sim => 'vllm_serve.json', latency_tiny => 'vllm_latency.json',
		throughput_tiny => 'vllm_throughput.json');

	mkdir 'nightly';
	for my $name (keys %test) {
		spew("nightly/$name.json", slurp("$here/$test{$name}"));
		my $verb = $name =~ /^serving/ ? 'server' : $name =~ s/_.*//r;
		spew("nightly/$name.commands", encode_json({ gpu_type => "NVIDIA H100\nNVIDIA H100",
			"${verb}_command" => 'vllm serve --model sim --tensor-parallel-size 2 '
				. '--dtype=bfloat16' }));
	}
	spew('nightly/serving_sim.pytorch.json', slurp("$here/vllm_serve.pytorch.json"));
	spew('nightly/benchmark_results.json', slurp("$here/vllm_nightly.json"));
	my ($r, @row) = ingested('nightly');
	my %of = map { ($_->{name} => $_) } @row;
	my ($latency, $told) = ($of{latency_tiny}, json_file('vllm_latency.json'));

	is(scalar(@row), 3, 'each measurement once') or diag($r->{out});
	is("$_->{'hardware.gpu'} $_->{'hardware.gpus'}", 'NVIDIA H100 2', "$_->{name}: its GPUs") for @row;
	is($of{serving_sim}{'server.tensor_parallel_size'}, 2, 'arguments of the server');
	is($of{serving_sim}{'server.dtype'}, 'bfloat16', 'and others');
	is($latency->{avg_latency}, $told->{avg_latency}, 'the mean latency');
	is($latency->{"p${_}_latency"}, $told->{percentiles}{$_}, "p$_ of the latency") for
		qw(10 25 50 75 90 99);
	($r, @row) = ingested("$here/vllm_nightly.json");
	my %table = map { ($_->{name} => $_) } @row;
	is($table{serving_sim}{$_}, $of{serving_sim}{$_}, "$_ of the table alone") for
		qw(mean_ttft_ms p99_ttft_ms median_tpot_ms p99_itl_ms request_throughput
		server.tensor_parallel_size);
	is_deeply([map { $table{$_}{mode} } qw(latency_tiny throughput_tiny serving_sim)],
		[qw(latency throughput serve)], 'what each row measured');
	cmp_ok(abs($table{latency_tiny}{avg_latency} / $latency->{avg_latency} - 1), '<', 1e-12,
		'milliseconds in the table, seconds in the column');
	($r, @row) = ingested('nightly/benchmark_results.json');
	is(scalar(@row), 3, 'a table that is named is taken');
}

# ---- what is wrong ----

my $log = slurp("$here/mlperf_log_detail.txt");
my $guide = slurp("$here/guidellm.json");
my @wrong = (
	['a cut log', 'cut.txt', substr($log, 0, 5000),
		'line *: expected an object with "key" and "value" after :::MLLOG'],
	['a test that did not end', 'early.txt', join('', grep { !/result_/ } split /^/, $log),
		"MLPerf's log has no result_validity, so the test did not end or the file is cut off; *"],
	['an accuracy run', 'accuracy.txt', $log =~ s/PerformanceOnly/AccuracyOnly/gr,
		'no result that is known: this is the log of an accuracy run of MLPerf\'s LoadGen, *'],
	['another line in a log', 'other.txt', ":::MLLOG {\"key\": \"a\", \"value\": 1}\nhello\n",
		'line 2: expected a line that begins with :::MLLOG'],
	['guidellm without metrics', 'no-metrics.json', $guide =~ s/"metrics": \{/"other": {/gr,
		"benchmark 1: guidellm's result has no object \"metrics\", *"],
	['guidellm without benchmarks', 'none.json',
		'{"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": []}',
		"guidellm's list \"benchmarks\" is empty; expected at least one benchmark"],
	['half a file', 'half.json', substr($guide, 0, 9000), 'line *'],
);

for (@wrong) {
	my ($name, $file, $text, $want) = @$_;

	spew($file, $text);
	my $r = run(args => ['ingest', $file, '--store', store_url('wrong')]);
	is($r->{status}, 1, "$name: exit 1");
	ok(has_line($r->{out}, "invalid    $file: $want"), "$name: one sentence")
		or diag($r->{out}, $r->{err});
}

done_testing();
