#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# versions-store.sh: a results store of 343 runs, larger than the demo's, whose answers are known.
#
# 96 runs are a grid: two models, four kinds of GPU, three sizes of tensor parallelism, four
# concurrencies. They are in it twice, as version 0.12.0 and, ten days later, as version 0.13.0, in
# which every throughput is 7.5 % higher, give or take 1 %. 144 are nightly runs: 24 commits, two
# loads, three repeats, a commit a day; from the seventeenth on a decoding step takes 13 % longer.
# Seven have failures or are failures. The times of the runs are changed so that it all has happened
# in the last 24 days.
set -eu
: "${O:=build}" "${PROFLLM:=$O/profllm}"
dir=$O/versions
suite() {
	"$PROFLLM" run --config "$dir/$1.yaml" --output "$dir/$1.json" --progress none --resume \
		>"$dir/$1.out" 2>"$dir/$1.log" || [ "$1" = flaky ] || { tail -n 5 "$dir/$1.log" >&2; exit 1; }
	grep -E '^(Suite|Document)' "$dir/$1.out"
}
head_of() {
	printf 'suite: %s\njobs: 4\n' "$1"
	cat <<-'EOT'
	server: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, max_model_len: 4096, gpu: h100-80gb}
	benchmark: {tokenizer: sim, dataset_name: random, random_input_len: 256, random_output_len: 12,
	  ignore_eos: true, temperature: 0, num_prompts: 32, max_concurrency: 8}
	EOT
}

mkdir -p "$dir"
{
	head_of inference-grid
	cat <<-'EOT'
	matrix:
	  server.model: [meta-llama/Llama-3.1-8B-Instruct, meta-llama/Llama-3.1-70B-Instruct]
	  server.gpu: [h100-80gb, h200-141gb, mi300x-192gb, b200-192gb]
	  server.tensor_parallel_size: [2, 4, 8]
	  benchmark.max_concurrency: [1, 4, 16, 64]
	EOT
} >"$dir/grid.yaml"
{
	head_of nightly
	printf 'repeat: 3\nexperiments:\n'
	for i in $(seq 24); do
		for load in 8 32; do
			printf '  - {name: nightly-%02d-c%d,' "$i" $load
			printf ' provenance: {engine_commit: "%07x"},' $((0xc0ffee + i * 7919))
			printf ' benchmark: {max_concurrency: %d}, server: {decode_base_us: %d}}\n' $load \
				$((i > 16 ? 6780 : 6000))
		done
	done
} >"$dir/nightly.yaml"
{
	head_of flaky
	cat <<-'EOT'
	experiments:
	  - {name: errors-503, server: {fault: ["status=503:0.2"]}}
	  - {name: resets, server: {fault: ["reset@3:0.2"]}}
	  - {name: malformed, server: {fault: ["malformed@3:0.2"]}}
	  - {name: stalls, server: {fault: ["stall@3=1s:0.2"], ttft_ms: 20, itl_ms: 6}}
	  - {name: crash-at-start, server: {command: "false"}}
	  - {name: all-refused, server: {fault: ["status=503"]}}
	  - {name: healthy}
	EOT
} >"$dir/flaky.yaml"

echo "== 247 runs of simulated engines, two or three minutes"
suite grid
suite nightly
suite flaky

echo "== two versions, and times in the last 24 days"
perl -MJSON::PP -MPOSIX=strftime -e '
	my ($dir) = @ARGV;
	my $json = JSON::PP->new->canonical;
	my $now = time;
	srand(7);
	sub load_suite { local $/; open my $in, "<", "$dir/$_[0].json" or die; $json->decode(<$in>) }
	sub save {
		open my $out, ">", "$dir/$_[0].json" or die;
		print $out $json->encode($_[1]);
		close $out or die;
	}
	sub at {
		my ($x, $when, $tag) = @_;
		$x->{timestamp} = strftime("%Y-%m-%dT%H:%M:%S.000Z", gmtime $when);
		$x->{results}{date} = strftime("%Y%m%d-%H%M%S", gmtime $when) if $x->{results};
		$x->{run_id} .= "_$tag";
	}
	for my $version (["0.12.0", 12, 1], ["0.13.0", 2, 1.075]) {
		my ($name, $days, $gain) = @$version;
		my $grid = load_suite("grid");
		my $i = 0;
		for my $x (@{$grid->{experiments}}) {
			my $factor = $gain * (1 + 0.01 * (rand() + rand() + rand() - 1.5));
			at($x, $now - $days * 86400 + 60 * $i++, $name);
			$x->{environment}{server}{version} = $name;
			my $r = $x->{results} or next;
			/throughput$/ && defined $r->{$_} and $r->{$_} *= $factor for keys %$r;
			/_ms$/ && !ref $r->{$_} && defined $r->{$_} and $r->{$_} /= $factor for keys %$r;
			$r->{duration} /= $factor if $r->{duration};
		}
		save("grid-$name", $grid);
	}
	my $nightly = load_suite("nightly");
	my $i = 0;
	for my $x (@{$nightly->{experiments}}) {
		my $day = (hex($x->{provenance}{engine_commit}) - 0xc0ffee) / 7919;
		at($x, $now - (24 - $day) * 86400 - 3600 + 20 * $i++, "day$day");
	}
	save("nightly-days", $nightly);
' "$dir"

rm -f "$dir/runs.db"
"$PROFLLM" ingest --store "$dir/runs.db" "$dir/grid-0.12.0.json" "$dir/grid-0.13.0.json" \
	"$dir/nightly-days.json" "$dir/flaky.json" | tail -n 1
printf '  %s dashboard --store %s\n' "$PROFLLM" "$dir/runs.db"
