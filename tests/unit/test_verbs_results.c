/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_results.c - what is made of result files: comparisons, tables, plots.
 */
#include "verb.h"


static const char *const varies[] = {
	"| Physical cores", "| Total", "| CPU Brand", "-|:-", "-| ", NULL,
};

static void compared(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench compare a b" },
		{ .line = "bench compare a b --format markdown" },
		{ .line = "bench compare a/run-4-0.json b/run-4-0.json --format json" },
		{ .line = "bench compare a b c" },
		{ "bench compare a b --fail-if 'p99_ttft_ms>5%' --junit j.xml --summary s.md",
		  .status = 3,
		  .files = "j.xml s.md" },
		{ .line = "bench compare a/run-4-0.json b/run-4-0.json" },
		{ .line = "bench compare a nothing", .status = 1 },
		{ .line = "bench compare a", .status = 2 },
		{ "bench markdown -r a", .files = "a/benchmark_results.md", .varies = varies },
		{ .line = "bench markdown -r nothing", .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void drawn(void **state)
{
	static const struct verb_case cases[] = {
		{ "bench plot a b --output p1.png", .status = 1, .files = "p1.gp p1.dat" },
		{ "bench plot a b --x max_concurrency --y p99_ttft_ms --output p2.png",
		  .status = 1, .files = "p2.gp p2.dat" },
		{ "bench sweep plot sweep --dry-run" , .status = 0 },
		{ "bench sweep plot sweep --var-x max_concurrency --var-y p99_e2el_ms --curve-by"
		  " max_num_seqs"
		  " --fig-dir figs", .status = 1, .files = "sweep/figs/FIGURE.gp"
		  " sweep/figs/FIGURE.dat" },
		{ "bench sweep plot_pareto sweep --user-count-var max_concurrency", .status = 1,
		  .files = "sweep/pareto/PARETO.gp sweep/pareto/PARETO.dat" },
		{ .line = "bench plot nothing", .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void put_result(const char *path, int at_once, double slow, const char *more)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "{\"date\": \"20260101-000000\", \"endpoint_type\": \"openai\", \"backend\":"
	" \"openai\","
		" \"model_id\": \"m\", \"tokenizer_id\": \"m\", \"num_prompts\": 40,"
		" \"request_rate\": \"inf\","
		" \"burstiness\": 1.0, \"max_concurrency\": %d, \"duration\": %g, \"completed\":"
		" 40,"
		" \"failed\": 0, \"total_input_tokens\": 400, \"total_output_tokens\": 800,"
		" \"request_throughput\": %g, \"output_throughput\": %g,"
		" \"total_token_throughput\": %g,"
		" \"mean_ttft_ms\": %g, \"median_ttft_ms\": %g, \"std_ttft_ms\": %g,"
		" \"p99_ttft_ms\": %g,"
		" \"mean_tpot_ms\": %g, \"median_tpot_ms\": %g, \"std_tpot_ms\": %g,"
		" \"p99_tpot_ms\": %g,"
		" \"mean_e2el_ms\": %g, \"p99_e2el_ms\": %g%s}",
		at_once, 40 * slow / at_once, at_once / slow, 20 * at_once / slow,
		30 * at_once / slow,
		10 * slow * at_once, 9 * slow * at_once, 2 * slow, 14 * slow * at_once,
		5 * slow, 4.5 * slow,
		slow, 8 * slow, 110 * slow, 170 * slow * at_once, more);
	fclose(f);
}

/* With a program in the place of gnuplot that prints its arguments, and with one that fails. */
static void figures(void **state)
{
#define PLOT .env = "PATH=$DIR/fake", .line = "bench plot "
#define SWEEP .env = "PATH=$DIR/fake", .line = "bench sweep plot "
#define PARETO .env = "PATH=$DIR/fake", .line = "bench sweep plot_pareto "
	static const struct verb_case cases[] = {
		{ PLOT "mixed --format terminal,svg --output p3.svg", .files = "p3.dat" },
		{ PLOT "mixed --kind pareto --output p4.pdf --include-invalid --by tp", .files = "p4.dat" },
		{ PLOT "mixed/m2.json --kind per-gpu --gpus 2 --format svg", .files = "mixed/m2-per-gpu.dat" },
		{ PLOT "mixed --format pdf --x request_throughput --y no_such", .status = 1 },
		{ PLOT "mixed --format pdf,terminal --y sometimes --dpi 50", .files = "mixed/plot-latency.dat" },
		{ PLOT "mixed/m3.json --output deep/er/p5.gp", .status = 1 },
		{ PLOT "mixed/m1.json --include-invalid --output deep/er/p5.gp", .files = "deep/er/p5.dat" },
		{ .line = "ingest b --store sqlite:s.db" },
		{ PLOT "--store sqlite:s.db --xscale log --yscale sqrt --format terminal",
		  .files = "plot-latency.dat" },
		{ PLOT "--store sqlite:s.db --filter '{\"column\": \"benchmark.max_concurrency\", "
		  "\"range\": {\"max\": 2}}' --kind pareto", .files = "plot-pareto.dat" },
		{ PLOT "--store sqlite:s.db --filter '{\"column\": \"completed\", "
		  "\"range\": {\"max\": 2}}'", .status = 1 },
		{ PLOT "--store sqlite:s.db --filter '{'", .status = 2 }, { PLOT "a --filter '{}'", .status = 2 },
		{ PLOT "", .status = 2 }, { PLOT "a --format gif", .status = 2 }, { PLOT "a --gpus 0", .status = 2 },
		{ .env = "PATH=$DIR/failing", .line = "bench plot a --output p6.png", .status = 1 },
		{ SWEEP "sweep --fig-by max_num_seqs --fig-dir f1 --format svg --curve-by max_concurrency"
		  " --var-x max_concurrency --var-y p99_ttft_ms",
		  .files = "sweep/f1/FIGURE-max_num_seqs=32.dat" },
		{ SWEEP "sweep --fig-by max_num_seqs,backend --fig-dir /$DIR//f2/. --fig-name \"'a/..b\" --format pdf"
		  " --dry-run" },
		{ SWEEP "sweep --filter-by max_concurrency>100 --format terminal" },
		{ SWEEP "sweep --var-y failed --scale-y log --fig-dir f3" },
		{ SWEEP "sweep --var-y none", .status = 1 }, { SWEEP "sweep --scale-x cube", .status = 2 },
		{ SWEEP "sweep --bin-by x", .status = 1 }, { SWEEP "sweep none", .status = 2 },
		{ SWEEP "none", .status = 2 }, { SWEEP "sweep --format gif", .status = 2 },
		{ SWEEP "sweep --col-by none", .status = 1 }, { SWEEP "sweep --title x --xlim 5:1", .status = 2 },
		{ PARETO "sweep --format svg --strict --label-by max_num_seqs", .files = "sweep/pareto/PARETO.csv" },
		{ PARETO "sweep --user-count-var none --average-runs --format terminal",
		  .files = "sweep/pareto/PARETO.dat" },
		{ PARETO "sweep --dry-run --format png --gpu-count-var max_num_seqs" },
		{ PARETO "few --format svg", .files = "few/pareto/PARETO.csv" },
		{ PARETO "users --format svg", .status = 1 }, { PARETO "sweep --title x --ylim 5:1", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_figures(void)
{
	mkdir("mixed", 0755);
	put_result("mixed/m1.json", 1, 1, ", \"tp\": 1, \"profllm\": {\"verdict\": \"INVALID\"}");
	put_result("mixed/m2.json", 2, 1.1, ", \"tp\": 2, \"sometimes\": 3");
	put_result("mixed/m3.json", 4, 1.2, ", \"tp\": 2, \"profllm\": {\"verdict\": \"INVALID\"}");
	put_result("mixed/m4.json", 8, 1.3, ", \"tp\": 2, \"sometimes\": 4, \"profllm\": {\"verdict\": \"DEGRADED\"}");
	put_result("mixed/m5.json", 1, 1.3, ", \"tp\": 2, \"sometimes\": 5");
	put("sweep/servers.json", "[{\"command\": [\"vllm\", \"serve\", \"m\", \"-tp\", \"4\"]}, "
	    "{\"command\": [\"vllm\", "
	    "\"serve\", \"m\", \"--tensor-parallel-size\", \"2\", \"-pp\", \"3\"]}, {\"command\": \"x\"}]");
	mkdir("few", 0755);
	mkdir("few/SERVE--0-BENCH--1", 0755);
	put("few/SERVE--0-BENCH--1/summary.json", "[{\"output_throughput\": 10, \"max_concurrency\": 2, \"tp\": 2}, "
	    "{\"output_throughput\": 20, \"request_rate\": 4}, {\"output_throughput\": 20, \"request_rate\": 5}, "
	    "{\"output_throughput\": 30, \"request_rate\": \"inf\", \"max_concurrent_requests\": 6}, "
	    "{\"output_throughput\": 40}]");
	mkdir("users", 0755);
	mkdir("users/SERVE--0-BENCH--1", 0755);
	put("users/SERVE--0-BENCH--1/summary.json", "[{\"output_throughput\": 10}]");
	mkdir("fake", 0755);
	put("fake/gnuplot", "#!/bin/sh\necho \"$@\"\n");
	mkdir("failing", 0755);
	put("failing/gnuplot", "#!/bin/sh\necho 'no such terminal' >&2\nexit 3\n");
	assert_int_equal(chmod("fake/gnuplot", 0755) | chmod("failing/gnuplot", 0755), 0);
	verb_let("DIR", dir);
}

static int setup(void **state)
{
	static const struct { const char *folder; double slow; } side[] = {
		{ "a", 1 }, { "b", 1.2 }, { "c", 0.9 },
	};
	char path[128];

	if (verb_setup(state) < 0 || system("ln -s \"$(command -v rm)\" bin; mkdir -p sweep"))
		return -1;
	for (size_t s = 0; s < COUNT(side); s++) {
		mkdir(side[s].folder, 0755);
		for (int c = 1; c <= 8; c *= 2)
			for (int run = 0; run < 3; run++) {
				snprintf(path, sizeof(path), "%s/run-%d-%d.json",
				side[s].folder, c, run);
				put_result(path, c, side[s].slow * (1 + 0.01 * run), "");
			}
	}
	for (int c = 1; c <= 8; c *= 2)
		for (int s = 0; s < 2; s++) {
			char text[4096] = "[";
			FILE *f;

			snprintf(path, sizeof(path), "sweep/SERVE--%d-BENCH--%d", s, c);
			mkdir(path, 0755);
			snprintf(path, sizeof(path), "sweep/SERVE--%d-BENCH--%d/run=0.json", s, c);
			put_result(path, c, 1 + 0.2 * s, s ? ", \"run_number\": 0,"
			" \"max_num_seqs\": 64" :
				   ", \"run_number\": 0, \"max_num_seqs\": 32");
			f = fopen(path, "r");
			text[1 + fread(text + 1, 1, sizeof(text) - 3, f)] = ']';
			fclose(f);
			snprintf(path, sizeof(path), "sweep/SERVE--%d-BENCH--%d/summary.json",
			s, c);
			f = fopen(path, "w");
			fputs(text, f);
			fclose(f);
		}
	put_figures();
	/* No gnuplot: scripts and tables are written, and that is said. */
	snprintf(path, sizeof(path), "%s/bin", dir);
	setenv("PATH", path, 1);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(compared), cmocka_unit_test(drawn),
		cmocka_unit_test(figures) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
