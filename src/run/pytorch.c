/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.c - see pytorch.h. */
#include "run/pytorch.h"

#include <assert.h>
#include <string.h>

#include "json/write.h"
#include "report/pytorch.h"
#include "report/report.h"

bool run_pytorch_is_wanted(void)
{
	const char *v = getenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT");

	return v && *v;
}

/* {(256, 256, 1): 0.5} with its keys as texts. */
static void put_buckets(struct json_writer *w, const char *literal)
{
	struct buf json = { 0 };
	struct json_slice v;
	bool is_tuple = false;

	for (const char *p = literal; *p; p++) {
		is_tuple = (is_tuple || *p == '(') && !(p > literal && p[-1] == ')');
		if (*p == '(')
			buf_add_char(&json, '"');
		if (!is_tuple || (*p != ' ' && *p != '\t'))
			buf_add_char(&json, *p);
		if (is_tuple && *p == ',')
			buf_add_char(&json, ' ');
		if (*p == ')')
			buf_add_char(&json, '"');
	}
	if (json_next(&(struct json_scan){ buf_str(&json), 0 }, &v, NULL) == 0)
		json_put_raw(w, v.raw);
	else
		json_put_text(w, literal);
	buf_release(&json);
}

/* One number, or JSON with two. */
static void put_ratio(struct json_writer *w, const char *text)
{
	double number;

	if (str_to_f64(str_of(text), &number))
		json_put_f64(w, number);
	else
		json_put_raw(w, str_of(text)); /* its check took it */
}

/* Rows that upstream has, by their spelling with underscores. */
static const struct opt *row_of(struct str key)
{
	for (size_t i = 0; i < serve_opt_set.n; i++) {
		const struct opt *row = &serve_opt_set.row[i];
		size_t n = strlen(row->name), same = 0;

		while (same < n && n == key.n &&
		       key.p[same] == (row->name[same] == '-' ? '_' : row->name[same]))
			same++;
		if (same == n && !(row->flags & OPT_OURS))
			return row;
	}
	return NULL;
}

static void put_arg(struct json_writer *w, const struct serve_opts *o, const struct opt *row,
		    struct json_slice value)
{
	const struct serve_opts *usual = serve_opt_set.defaults;
	double factor = o->data.timed_trace_sec_multiplier;

	if (strcmp(row->name, "random-mm-bucket-config") == 0)
		put_buckets(w, o->data.random_mm_bucket_config);
	else if (strcmp(row->name, "random-range-ratio") == 0)
		put_ratio(w, o->data.random_range_ratio);
	else if (strcmp(row->name, "self-timed") == 0)
		json_put_bool(w, o->self_timed == OPT_TRI_YES);
	else if (row->flags & OPT_WHOLE && factor >= usual->data.timed_trace_sec_multiplier &&
		 factor <= usual->data.timed_trace_sec_multiplier)
		json_put_int(w, (int64_t)factor); /* an integer unless it is given */
	else if (value.kind == JSON_STRING)
		json_put_raw(w, (struct str){ value.raw.p - 1, value.raw.n + 2 });
	else
		json_put_raw(w, value.raw);
}

void run_pytorch_args(const struct serve_opts *o, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct buf options = { 0 };
	struct json_slice all, value;
	struct json_scan scan;
	struct json_iter it;
	struct str key;
	const struct opt *row;

	opt_json(&serve_opt_set, o, &options);
	scan = (struct json_scan){ buf_str(&options), 0 };
	if (json_next(&scan, &all, NULL) < 0)
		assert(!"opt_json writes JSON");
	json_begin_object(&w);
	json_key(&w, "subparser");
	json_put_text(&w, "bench");
	json_key(&w, "bench_type");
	json_put_text(&w, "serve");
	json_key(&w, "dispatch_function");
	json_put_text(&w, "<function is not JSON serializable>");
	it = json_iter(all);
	while (json_each(&it, &key, &value) == 1) {
		row = row_of(key);
		if (!row)
			continue;
		json_key_str(&w, key);
		put_arg(&w, o, row, value);
	}
	/* Options of the whole vllm command. */
	json_key(&w, "log_config_file");
	json_put_null(&w);
	json_key(&w, "logging_config");
	json_put_text(&w, "<LoggingConfig is not JSON serializable>");
	json_end_object(&w);
	buf_release(&options);
}

int run_pytorch_save(const struct serve_opts *o, const char *path, struct str result,
		     struct err *e)
{
	struct buf args = { 0 }, records = { 0 };
	struct pytorch_opts opts = { .model = o->model, .result_filename = o->result_filename,
				     .output_json = o->output_json };
	char *beside = pytorch_path(path);
	int rc;

	run_pytorch_args(o, &args);
	opts.args = buf_str(&args);
	rc = pytorch_write(&opts, result, &records, e);
	if (rc == 0 && records.len)
		rc = report_save(beside, buf_str(&records), false, e);
	buf_release(&args);
	buf_release(&records);
	free(beside);
	return rc;
}
