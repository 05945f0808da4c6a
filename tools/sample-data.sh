#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sample-data.sh: the runs that the empty Overview offers to try, web/src/app/pages/overview/sample.json.
#
# They are the 200 runs of tools/demo-store.sh, measured by this program on simulated engines: run that
# first. What each run is known by stays (configuration, metrics, verdict); all else is left out, and
# every run has the tag "sample", by which the page removes them again.
set -eu
: "${O:=build}" "${OUT:=web/src/app/pages/overview/sample.json}"
perl -MJSON::PP -e '
	my $json = JSON::PP->new->canonical->allow_nonref;
	my %keep = (
		server => [qw(model gpu tensor_parallel_size max_num_seqs max_num_batched_tokens
			max_model_len decode_base_us)],
		benchmark => [qw(num_prompts dataset_name random_input_len random_output_len
			max_concurrency ignore_eos)],
		results => [qw(num_prompts max_concurrency duration completed_requests failed_requests
			total_input_tokens total_output_tokens request_throughput output_throughput
			total_token_throughput), map { my $m = $_; map { "${_}_${m}_ms" }
				qw(mean median p90 p99) } qw(ttft tpot itl e2el)],
	);
	sub part {
		my ($of, $keys) = @_;
		my %out;
		for (grep { defined $of->{$_} } @$keys) {
			my $v = $of->{$_};
			$out{$_} = $v =~ /^-?\d+\.\d+(e-?\d+)?$/ ? 0 + sprintf("%.5g", $v) : $v;
		}
		return \%out;
	}
	my @runs;
	for my $file (@ARGV) {
		local $/;
		open my $in, "<", $file or die "$file: $!; run tools/demo-store.sh first\n";
		my $suite = $json->decode(scalar <$in>);
		for my $x (@{$suite->{experiments}}) {
			my ($c, $t) = ($x->{config}, $x->{trust});
			my $of = $t->{verdicts};
			my %verdicts = map { ($_ => $of->{$_}) } grep { $of->{$_} ne "VALID" } keys %$of;
			push @runs, $json->encode({
				schema_version => 1, run_id => "sample_" . substr($x->{run_id}, 4),
				suite => "sample-$x->{suite}",
				timestamp => $x->{timestamp}, status => $x->{status},
				config => { name => $c->{name}, mode => $c->{mode}, hash => $c->{hash},
					configured_hash => $c->{configured_hash},
					server => part($c->{server}, $keep{server}),
					benchmark => part($c->{benchmark}, $keep{benchmark}),
					tags => { sample => JSON::PP::true } },
				environment => { server => $x->{environment}{server} },
				provenance => { engine_commit => $x->{provenance}{engine_commit} },
				results => part($x->{results}, $keep{results}),
				trust => { verdict => $t->{verdict}, verdicts => \%verdicts,
					reasons => [map { part($_, [qw(code level text)]) }
						@{$t->{reasons}}] },
			});
		}
	}
	print "{\"schema_version\": 1, \"suite\": \"sample\", \"experiments\": [\n",
		join(",\n", @runs), "\n]}\n";
' "$O/demo/store/grid.json" "$O/demo/store/commits.json" >"$OUT.new"
mv "$OUT.new" "$OUT"
