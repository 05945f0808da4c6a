/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds_nightly.c - see kinds.h: a record of vLLM's benchmark_results.json, whose keys are the
 * heads of the tables that people read.
 */
#include <math.h>
#include <string.h>

#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const struct rename head[] = {
	{ "Test name", "name" }, { "Model", "server.model" },
	{ "Dataset Name", "benchmark.dataset_name" }, { "Input Len", "benchmark.random_input_len" },
	{ "Output Len", "benchmark.random_output_len" }, { "TP Size", "server.tensor_parallel_size" },
	{ "PP Size", "server.pipeline_parallel_size" }, { "dtype", "server.dtype" },
	{ "# of req.", "completed" }, { "qps", "benchmark.request_rate" },
	{ "# of max concurrency.", "benchmark.max_concurrency" },
	{ "Tput (req/s)", "request_throughput" },
	{ "Total Token Tput (tok/s)", "total_token_throughput" },
	{ "Tput (tok/s)", "total_token_throughput" }, { "Output Tput (tok/s)", "output_throughput" },
	{ "Mean TTFT (ms)", "mean_ttft_ms" }, { "P99 TTFT (ms)", "p99_ttft_ms" },
	{ "STD TTFT (ms)", "std_ttft_ms" }, { "Mean TPOT (ms)", "mean_tpot_ms" },
	{ "P99", "p99_tpot_ms" }, { "STD TPOT (ms)", "std_tpot_ms" },
	{ "Mean ITL (ms)", "mean_itl_ms" }, { "P99 ITL (ms)", "p99_itl_ms" },
	{ "Total # of tokens", "total_tokens" }, { "Elapsed time (s)", "duration" },
	{ "Mean cold startup (s)", "avg_cold_startup_time" },
	{ "Mean cold compilation (s)", "avg_cold_compilation_time" },
	{ "Mean warm startup (s)", "avg_warm_startup_time" },
	{ "Mean warm compilation (s)", "avg_warm_compilation_time" },
};
static const struct rename median[] = {
	{ "Median TTFT (ms)", "median_ttft_ms" }, { "Median", "median_tpot_ms" },
	{ "Median ITL (ms)", "median_itl_ms" },
};
/* Milliseconds that everywhere else are seconds. */
static const struct rename seconds[] = {
	{ "Mean latency (ms)", "avg_latency" }, { "Median latency (ms)", "median_latency" },
	{ "P99 latency (ms)", "p99_latency" },
};

/* "2xH100", or a line for each GPU. */
static void put_gpu(struct reading *r, struct str gpu)
{
	struct str rest = gpu, name = str_cut(&rest, '\n');
	double gpus = 1;
	size_t digits = 0;

	while (digits < name.n && name.p[digits] >= '0' && name.p[digits] <= '9')
		digits++;
	if (digits && digits < 4 && digits < name.n && name.p[digits] == 'x') {
		str_to_f64((struct str){ name.p, digits }, &gpus);
		name = (struct str){ name.p + digits + 1, name.n - digits - 1 };
	}
	while (rest.n)
		gpus += str_cut(&rest, '\n').n > 0;
	if (!name.n)
		return;
	cells_put_text(r->cells, "hardware.gpu", name);
	cells_put_number(r->cells, "hardware.gpus", gpus);
}

static bool put_seconds(struct reading *r, struct str key, const struct json_value *v)
{
	struct value one = value_of(v);

	for (size_t i = 0; i < COUNT(seconds); i++) {
		if (!str_is(key, seconds[i].key))
			continue;
		if (one.kind == VALUE_NUMBER)
			one.number /= 1000;
		put_metric_value(r, str_of(seconds[i].column), one);
		return true;
	}
	return false;
}

static bool put_median(struct reading *r, struct str key, const struct json_value *v)
{
	for (size_t i = 0; i < COUNT(median); i++)
		if (str_is(key, median[i].key)) {
			put_metric(r, str_of(median[i].column), v);
			return true;
		}
	return false;
}

int put_nightly(struct reading *r, const struct json_value *v, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < v->count; i++) {
		struct str key = v->key[i];
		const struct json_value *m = &v->item[i];

		if (str_is(key, "GPU") && m->kind == JSON_STRING)
			put_gpu(r, m->text);
		else if (!put_renamed(r, head, COUNT(head), key, m) && !put_median(r, key, m) &&
			 !put_seconds(r, key, m))
			put_parameter(r, key, m);
	}
	return 0;
}
