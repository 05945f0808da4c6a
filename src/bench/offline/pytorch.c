/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.c - see pytorch.h. */
#include "bench/offline/pytorch.h"

#include <assert.h>
#include <string.h>

#include "core/json/write.h"
#include "host/engine/args.h"
#include "out/report/report.h"

bool run_pytorch_is_wanted(void)
{
	const char *v = getenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT");

	return v && *v;
}

/* {(256, 256, 1): 0.5} with its keys as texts. */
static void put_buckets(struct json_writer *w, struct str literal)
{
	struct buf json = { 0 };
	struct json_slice v;
	bool is_tuple = false;

	for (size_t i = 0; i < literal.n; i++) {
		char c = literal.p[i];

		is_tuple = (is_tuple || c == '(') && !(i && literal.p[i - 1] == ')');
		if (c == '(')
			buf_add_char(&json, '"');
		if (!is_tuple || (c != ' ' && c != '\t'))
			buf_add_char(&json, c);
		if (is_tuple && c == ',')
			buf_add_char(&json, ' ');
		if (c == ')')
			buf_add_char(&json, '"');
	}
	if (json_next(&(struct json_scan){ buf_str(&json), 0 }, &v, NULL) == 0)
		json_put_foreign(w, v.raw);
	else
		json_put_str(w, literal);
	buf_release(&json);
}

/* One number, or JSON with two. */
static void put_ratio(struct json_writer *w, const char *text)
{
	double number;

	if (str_to_f64(str_of(text), &number))
		json_put_setting(w, number);
	else
		json_put_foreign(w, str_of(text)); /* its check took it */
}

/* Rows that upstream has, by their spelling with underscores. */
static const struct opt *row_of(const struct opt_set *set, struct str key)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];
		size_t n = strlen(row->name), same = 0;

		while (same < n && n == key.n &&
		       key.p[same] == (row->name[same] == '-' ? '_' : row->name[same]))
			same++;
		if (same == n && !(row->flags & OPT_OURS))
			return row;
	}
	return NULL;
}

/* Special forms of some options of serve's command; false: nothing special. */
static bool put_of_serve(struct json_writer *w, const struct serve_opts *o, const struct opt *row)
{
	const struct serve_opts *usual = serve_opt_set.defaults;
	double factor = o->data.timed_trace_sec_multiplier;

	if (strcmp(row->name, "random-range-ratio") == 0)
		put_ratio(w, o->data.random_range_ratio);
	else if (strcmp(row->name, "self-timed") == 0)
		json_put_bool(w, o->self_timed == OPT_TRI_YES);
	else if (row->flags & OPT_WHOLE && factor >= usual->data.timed_trace_sec_multiplier &&
		 factor <= usual->data.timed_trace_sec_multiplier)
		json_put_int(w, (int64_t)factor); /* an integer unless it is given */
	else
		return false;
	return true;
}

/* serve: NULL for other verbs. */
static void put_rows(struct json_writer *w, const struct opt_set *set, const void *values,
		     const struct serve_opts *serve)
{
	struct buf options = { 0 }, text = { 0 };
	struct json_slice all, value;
	struct json_scan scan;
	struct json_iter it;
	struct str key;
	const struct opt *row;

	opt_json(set, values, &options);
	scan = (struct json_scan){ buf_str(&options), 0 };
	if (json_next(&scan, &all, NULL) < 0)
		assert(!"opt_json writes JSON");
	it = json_iter(all);
	while (json_each(&it, &key, &value) == 1) {
		row = row_of(set, key);
		if (!row)
			continue;
		json_key_str(w, key);
		if (serve && put_of_serve(w, serve, row))
			continue;
		if (strcmp(row->name, "random-mm-bucket-config") == 0 &&
		    value.kind == JSON_STRING) {
			text.len = 0;
			json_unescape(&text, value.raw);
			put_buckets(w, buf_str(&text));
		} else {
			if (value.kind == JSON_STRING) /* its slice lies between the quotes */
				value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
			json_put_raw(w, value.raw);
		}
	}
	buf_release(&options);
	buf_release(&text);
}

/* The options of the top-level command, before and after the verb's own. */
static void put_head(struct json_writer *w, const char *type)
{
	json_member_text(w, "subparser", "bench");
	json_member_text(w, "bench_type", type);
	json_member_text(w, "dispatch_function", "<function is not JSON serializable>");
}

static void put_tail(struct json_writer *w)
{
	json_member_null(w, "log_config_file");
	json_member_text(w, "logging_config", "<LoggingConfig is not JSON serializable>");
}

void run_pytorch_args(const struct serve_opts *o, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_head(&w, "serve");
	put_rows(&w, &serve_opt_set, o, o);
	put_tail(&w);
	json_end_object(&w);
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

/* ---- offline verbs ---- */

/* The options as upstream would show them. */
static void put_verb_args(const struct run_pytorch_verb *verb, struct buf *out)
{
	const char *space = strrchr(verb->set->command, ' ');
	const char *type = space ? space + 1 : verb->set->command;
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_head(&w, type);
	put_rows(&w, verb->set, verb->values, NULL);
	engine_argv_values(verb->engine->command, strcmp(type, "throughput") == 0, &w);
	put_tail(&w);
	json_end_object(&w);
}

/* The optimization level: an integer by default, a text if it is given. */
static void add_optimization(const struct run_pytorch_verb *verb, struct buf *mode,
			     struct buf *level)
{
	struct engine_optimization opt;

	engine_argv_optimization(verb->engine->command, 0, &opt);
	if (strcmp(opt.mode_by, "--compilation-config") == 0)
		buf_printf(mode, "%d", opt.mode);
	else
		buf_add_text(mode, "null");
	buf_printf(level, *opt.level_by ? "\"%d\"" : "%d", opt.level);
}

int run_pytorch_save_verb(const struct run_pytorch_verb *verb, const char *key,
			  const struct pytorch_metric *metric, size_t n, struct str extra,
			  struct err *e)
{
	struct buf args = { 0 }, mode = { 0 }, level = { 0 }, records = { 0 }, name = { 0 };
	struct pytorch_opts opts = { .model = verb->engine->model,
				     .output_json = verb->output_json };
	char *path;
	int rc;

	if (!verb->output_json || !run_pytorch_is_wanted())
		return 0;
	put_verb_args(verb, &args);
	add_optimization(verb, &mode, &level);
	opts.args = buf_str(&args);
	opts.mode = buf_str(&mode);
	opts.level = buf_str(&level);
	path = pytorch_path(verb->output_json);
	if (key) {
		buf_add(&name, path, strlen(path) - strlen(".pytorch.json"));
		buf_printf(&name, ".%s.pytorch.json", key);
		free(path);
		path = buf_take(&name);
	}
	rc = pytorch_write_metrics(&opts, metric, n, extra, &records, e);
	if (rc == 0)
		rc = report_save(path, buf_str(&records), false, e);
	free(path);
	buf_release(&args);
	buf_release(&mode);
	buf_release(&level);
	buf_release(&records);
	return rc;
}
