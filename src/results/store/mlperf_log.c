/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/mlperf_log.c - see kinds.h: mlperf_log_detail.txt and mlperf_log_summary.txt as JSON.
 *
 * The summary has fewer and rounded values; its labels become the keys of the other file.
 */
#include <stdio.h>
#include <string.h>

#include "core/json/write.h"
#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define MARK ":::MLLOG"
#define HEADING "MLPerf Results Summary"
#define HEADING_WITHIN 200 /* bytes: it follows a line of "=" */
#define PERCENTILE_BYTES 8 /* "99.90" */

/* A label of the summary, after a percentile where there is one, and where the percentile goes. */
static const struct { const char *label, *head, *tail; bool has_percentile; } labels[] = {
	{ "SUT name", "sut_name", "", false },
	{ "Scenario", "effective_scenario", "", false },
	{ "Mode", "effective_test_mode", "", false },
	{ "Result is", "result_validity", "", false },
	{ "Completed samples per second", "result_completed_samples_per_sec", "", false },
	{ "Samples per second", "result_samples_per_second", "", false },
	{ "QPS w/ loadgen overhead", "result_qps_with_loadgen_overhead", "", false },
	{ "Completed tokens per second", "result_completed_tokens_per_second", "", false },
	{ "Tokens per second", "result_tokens_per_second", "", false },
	{ "Mean latency (ns)", "result_mean_latency_ns", "", false },
	{ "Mean First Token latency (ns)", "result_first_token_mean_latency_ns", "", false },
	{ "Mean Time per Output Token (ns)", "result_time_to_output_token_mean", "", false },
	{ "target_qps", "effective_target_qps", "", false },
	{ "samples_per_query", "effective_samples_per_query", "", false },
	{ " percentile latency (ns)", "result_", "_percentile_latency_ns", true },
	{ " percentile first token latency (ns)", "result_first_token_", "_percentile_latency_ns", true },
	{ " percentile time to output token (ns)", "result_time_per_output_token_", "_percentile_ns",
	  true },
};

bool mlperf_log_is(struct str bytes)
{
	size_t n = bytes.n < HEADING_WITHIN ? bytes.n : HEADING_WITHIN;

	return str_starts(bytes, STR(MARK)) || (n && memmem(bytes.p, n, HEADING, strlen(HEADING)));
}

/* One line after its mark: {"key": K, "value": V, ...}. */
static int add_detail(struct json_writer *w, struct str line, struct err *e)
{
	struct json_scan scan = { .text = line };
	struct json_slice all, key, value;
	struct buf name = { 0 };

	if (json_next(&scan, &all, e) < 0 || !json_member(all, "key", &key) ||
	    !json_member(all, "value", &value) || key.kind != JSON_STRING)
		return err_set(e, ERR_PARSE, "expected an object with \"key\" and \"value\" after " MARK);
	json_unescape(&name, key.raw);
	/* A string's slice is without its quotes, which are right before and after it. */
	if (value.kind == JSON_STRING)
		value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
	json_key_str(w, buf_str(&name));
	json_put_raw(w, value.raw);
	buf_release(&name);
	return 0;
}

/* "LABEL : VALUE"; unknown lines are ignored. */
static void add_summary(struct json_writer *w, struct str line)
{
	struct str value = line, label = str_trim(str_cut(&value, ':'));
	char name[96];
	double number;

	value = str_trim(value);
	for (size_t i = 0; value.n && i < COUNT(labels); i++) {
		struct str known = str_of(labels[i].label);
		size_t before = labels[i].has_percentile && str_ends(label, known) ?
				label.n - known.n : 0;

		if (before > PERCENTILE_BYTES || (!before && !str_eq(label, known)))
			continue;
		snprintf(name, sizeof(name), "%s%.*s%s", labels[i].head, (int)before, label.p,
			 labels[i].tail);
		json_key(w, name);
		if (str_to_f64(value, &number) && value.p[0] >= '0' && value.p[0] <= '9')
			json_put_f64(w, number);
		else
			json_put_str(w, value);
		return;
	}
}

int mlperf_log_json(struct str bytes, struct arena *a, struct str *json, struct err *e)
{
	bool is_detail = str_starts(bytes, STR(MARK));
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	size_t number = 0;
	int rc = 0;

	json_begin_object(&w);
	json_member_object(&w, "mlperf_loadgen");
	while (bytes.n && rc == 0) {
		struct str line = str_trim(str_cut(&bytes, '\n'));

		number++;
		if (!is_detail)
			add_summary(&w, line);
		else if (line.n && !str_starts(line, STR(MARK)))
			rc = err_set(e, ERR_PARSE, "expected a line that begins with " MARK);
		else if (line.n)
			rc = add_detail(&w, (struct str){ line.p + strlen(MARK),
							  line.n - strlen(MARK) }, e);
	}
	json_end_object(&w);
	json_end_object(&w);
	if (rc == 0)
		*json = arena_str(a, buf_str(&text));
	else
		err_wrap(e, "line %zu", number);
	buf_release(&text);
	return rc;
}
