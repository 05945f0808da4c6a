/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_rig.h - for tests of sweeps: a benchmark whose figures are a formula of its options, and
 * parameter files. $S are the commands of a simulator and of that benchmark.
 */
#pragma once
#include "verb.h"


/*
 * n requests, at most c at once: a token takes 2 + 2c ms, and TTFT is 10c ms; at a rate of r
 * requests/s r/10 are at once. Beyond $FULL at once a run fails, and beyond $SHED requests do.
 */
static const char bench[] =
	"use strict; my (%o, $k);\n"
	"for (@ARGV) { if (/^--(.*)/) { $k = $1 =~ tr/-/_/r; $o{$k} = 1 } elsif ($k) { $o{$k} ="
	" $_; $k = '' } }\n"
	"my ($n, $c, $r) = ($o{num_prompts} || 40, $o{max_concurrency}, $o{request_rate} ||"
	" 'inf');\n"
	"my $at_once = $r ne 'inf' && $r / 10 < $n ? $r / 10 : $n;\n"
	"$at_once = $c if $c && $c < $at_once;\n"
	"if ($at_once > ($ENV{FULL} || 1e9)) { print \"too many\\n\"; exit 9 }\n"
	"my $rate = $r ne 'inf' && $r < 100 ? $r : 100;\n"
	"my $failed = $at_once > ($ENV{SHED} || 1e9) ? $n / 2 : 0;\n"
	"mkdir $o{result_dir} if $o{result_dir};\n"
	"open my $f, '>', ($o{result_dir} ? \"$o{result_dir}/\" : '') . $o{result_filename} or"
	" die \"$!\\n\";\n"
	"printf $f '{\"num_prompts\": %d, \"request_rate\": %s, \"max_concurrency\": %s,"
	" \"duration\": %g,'\n"
	"  . ' \"completed\": %d, \"failed\": %d, \"request_throughput\": %g,"
	" \"output_throughput\": %g,'\n"
	"  . ' \"total_token_throughput\": %g, \"mean_ttft_ms\": %g, \"median_ttft_ms\": %g,"
	" \"p99_ttft_ms\": %g,'\n"
	"  . ' \"mean_tpot_ms\": %g, \"median_tpot_ms\": %g, \"p99_tpot_ms\": %g,"
	" \"p99_e2el_ms\": %g,'\n"
	"  . ' \"mean_e2el_ms\": %g}',\n"
	"  $n, $r eq 'inf' ? '\"inf\"' : $r, $c // 'null', $n / $rate, $n - $failed, $failed,"
	" $rate, 6 * $rate,\n"
	"  14 * $rate, 10 * $at_once, 10 * $at_once, 12 * $at_once, 2 + 2 * $at_once, 2 + 2 *"
	" $at_once,\n"
	"  3 + 3 * $at_once, 20 * $at_once, 18 * $at_once;\n"
	"print \"said by the benchmark\\n\";\n";

/* A start takes n seconds, n being what is served at once. */
static const char starts[] =
	"my %o = @ARGV; die \"too many\\n\" if ($o{'--max-num-seqs'} || 0) > 50;\n"
	"open my $f, '>', $o{'--output-json'} or die;\n"
	"printf $f '{\"avg_cold_startup_time\": %g, \"max_num_seqs\": 0, \"seen\": \"%s\"}',\n"
	"  $o{'--max-num-seqs'} || 1, \"@ARGV[0, 1]\";\n";

static const char *const varies[] = {
	"\"started\": ", "\"start_ns\": ", "\"startup_s\": ", "\"bench_digest\": ", NULL,
};
/* Of runs that take real time. */
static const char *const inside_varies[] = {
	".started = ", ".start_ns = ", ".startup_s = ", ".bench_digest = ", "-max_concurrency=",
	"Highest output throughput: ", "-Within 3 % of it: ", NULL,
};
#define V .varies = varies
#define R(experiment, file) "results/" experiment "/" file

static void spew(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int sweep_setup(void **state)
{
	char value[512];

	if (verb_setup(state) < 0 || system("ln -s \"$(command -v perl)\" bin/perl && "
					    "ln -s \"$(command -v rm)\""
					    " bin"))
		return -1;
	/* No gnuplot: where there is none the script is written and that is said. */
	snprintf(value, sizeof(value), "%s/bin", dir);
	setenv("PATH", value, 1);
	spew("bench.pl", bench);
	spew("start.pl", starts);
	spew("b.json", "[{\"max_concurrency\": 2}, {\"max_concurrency\": 4}]");
	spew("s.json", "[{\"max_num_seqs\": 4}, {\"_benchmark_name\": \"big\", \"max_num_seqs\":"
	" 2}]");
	spew("t.json", "[{\"max_num_seqs\": 8, \"port\": 1}, {\"max_num_seqs\": 16}]");
	spew("names.json", "{\"two words\": {\"max_concurrency\": 4, \"extra_body\": {\"k\":"
	" \"it's\"}},"
	     " \"none\": {\"request_rate\": 0.5}}");
	spew("nothing.json", "[]");
	spew("tpot.json", "[{\"median_tpot_ms\": \"<=33\"}]");
	spew("two.json", "[{\"median_tpot_ms\": \"<=33\", \"request_throughput\": \">0.01\"},"
	     " {\"p99_ttft_ms\": \"<0.0001\"}, {\"median_tpot_ms\": \"<45\"}]");
	verb_free_port("P");
	snprintf(value, sizeof(value), "--serve-cmd '%s sim --port %s' --bench-cmd 'perl bench.pl"
		 " --num-prompts 40'", verb_value(STR("PROFLLM")), verb_value(STR("P")));
	verb_let("S", value);
	return 0;
}
