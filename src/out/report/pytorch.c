/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.c - see pytorch.h. */
#include "out/report/pytorch.h"

#include <assert.h>

#include "core/base/mem.h"
#include "core/json/write.h"

/* In the order of the records. */
static const char *const metrics[] = {
	"median_ttft_ms", "mean_ttft_ms", "std_ttft_ms", "p99_ttft_ms",
	"mean_tpot_ms", "median_tpot_ms", "std_tpot_ms", "p99_tpot_ms",
	"median_itl_ms", "mean_itl_ms", "std_itl_ms", "p99_itl_ms",
};
#define METRICS (sizeof(metrics) / sizeof(*metrics))

static bool is_left_out(struct str key)
{
	static const char *const large[] = { "ttfts", "itls", "generated_texts", "errors",
					     "profllm" };

	for (size_t i = 0; i < METRICS; i++)
		if (str_is(key, metrics[i]))
			return true;
	for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++)
		if (str_is(key, large[i]))
			return true;
	return false;
}

/* A string's slice with its quotes. */
static struct str whole(struct json_slice v)
{
	return v.kind == JSON_STRING ? (struct str){ v.raw.p - 1, v.raw.n + 2 } : v.raw;
}

/* The part of the result that every record repeats. */
static int put_extra(struct str result, struct buf *out, struct err *e)
{
	struct json_writer w = json_writer(out);
	struct json_scan scan = { result, 0 };
	struct json_slice all, value;
	struct json_iter it;
	struct str key;

	if (json_next(&scan, &all, e) < 0)
		return -1;
	it = json_iter(all);
	json_begin_object(&w);
	while (json_each(&it, &key, &value) == 1) {
		struct arena a = { 0 };
		struct json_value *v;
		struct buf name = { 0 };
		int rc;

		if (is_left_out(key))
			continue;
		rc = json_parse(&a, whole(value), &v, e);
		if (rc == 0) {
			json_unescape(&name, key);
			json_key_str(&w, buf_str(&name));
			json_put_value(&w, v);
		}
		buf_release(&name);
		arena_release(&a);
		if (rc < 0)
			return -1;
	}
	json_end_object(&w);
	return 0;
}

static bool has_word(const char *text, const char *word)
{
	return text && strstr(text, word);
}

/* The result's value, else the options', else "". */
static void put_field(struct json_writer *w, const struct json_value *extra, const char *key,
		      struct str of_options)
{
	const struct json_value *v = json_get(extra, key);

	json_key(w, key);
	if (v)
		json_put_value(w, v);
	else if (of_options.n)
		json_put_raw(w, of_options);
	else
		json_put_text(w, "");
}

/* The options, with tensor parallelism from the metadata. */
static void put_args(struct json_writer *w, const struct json_value *args,
		     const struct json_value *extra)
{
	const struct json_value *tp = json_get(extra, "tensor_parallel_size");

	json_member_object(w, "args");
	for (size_t i = 0; i < args->count; i++) {
		json_key_str(w, args->key[i]);
		json_put_value(w, &args->item[i]);
	}
	if (tp && !json_get(args, "tensor_parallel_size"))
		json_member_value(w, "tensor_parallel_size", tp);
	json_end_object(w);
}

static void put_benchmark(struct json_writer *w, const struct pytorch_opts *o,
			  const struct json_value *args, const struct json_value *extra)
{
	const struct json_value *mode = json_get(extra, "compilation_config.mode");
	bool is_eager = (mode && mode->kind == JSON_STRING && str_is(mode->text, "0")) ||
			has_word(o->output_json, "eager") || has_word(o->result_filename, "eager");

	json_member_object(w, "benchmark");
	json_member_text(w, "name", "vLLM benchmark");
	json_member_object(w, "extra_info");
	put_args(w, args, extra);
	put_field(w, extra, "compilation_config.mode", o->mode);
	put_field(w, extra, "optimization_level", o->level);
	json_member_bool(w, "use_compile", !is_eager);
	json_end_object(w);
	json_end_object(w);
}

static void put_record(struct json_writer *w, const struct pytorch_opts *o,
		       const struct json_value *args, const struct json_value *extra_tree,
		       const struct pytorch_metric *metric, struct str extra)
{
	json_begin_object(w);
	put_benchmark(w, o, args, extra_tree);
	json_member_object(w, "model");
	json_member_text(w, "name", o->model);
	json_end_object(w);
	json_member_object(w, "metric");
	json_member_text(w, "name", metric->name);
	json_member_raw(w, "benchmark_values", metric->values);
	json_member_raw(w, "extra_info", extra);
	json_end_object(w);
	json_end_object(w);
}

int pytorch_write_metrics(const struct pytorch_opts *o, const struct pytorch_metric *metric,
			  size_t n, struct str extra, struct buf *out, struct err *e)
{
	struct json_writer w = json_writer(out);
	struct json_value *args, *tree;
	struct arena a = { 0 };
	int rc = -1;

	assert(n > 0);
	if (json_parse(&a, o->args, &args, e) == 0 && json_parse(&a, extra, &tree, e) == 0) {
		json_begin_array(&w);
		for (size_t i = 0; i < n; i++)
			put_record(&w, o, args, tree, &metric[i], extra);
		json_end_array(&w);
		rc = 0;
	}
	arena_release(&a);
	return rc;
}

/* The result's own metrics. */
static int write_records(const struct pytorch_opts *o, struct json_slice result, struct str extra,
			 struct buf *out, struct err *e)
{
	struct pytorch_metric metric[METRICS];
	struct buf values[METRICS] = { 0 };
	struct json_slice value;
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < METRICS; i++) {
		if (!json_member(result, metrics[i], &value))
			continue;
		buf_printf(&values[n], "[%.*s]", (int)value.raw.n, value.raw.p);
		metric[n] = (struct pytorch_metric){ metrics[i], buf_str(&values[n]) };
		n++;
	}
	if (n)
		rc = pytorch_write_metrics(o, metric, n, extra, out, e);
	for (size_t i = 0; i < n; i++)
		buf_release(&values[i]);
	return rc;
}

int pytorch_write(const struct pytorch_opts *o, struct str result, struct buf *out, struct err *e)
{
	struct json_scan scan = { result, 0 };
	struct buf extra = { 0 };
	struct json_slice all;
	int rc;

	rc = json_next(&scan, &all, e) < 0 ? -1 : put_extra(result, &extra, e);
	if (rc == 0)
		rc = write_records(o, all, buf_str(&extra), out, e);
	if (rc == 0 && (out->is_over || extra.is_over))
		rc = err_set(e, ERR_LIMIT, "the PyTorch benchmark file is larger than %llu bytes; "
			     "leave out --save-detailed", BUF_BYTES_MAX);
	buf_release(&extra);
	return rc;
}

char *pytorch_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	const char *name = slash ? slash + 1 : path;
	struct buf out = { 0 };

	/* Leading dots of a name are not a suffix, as in Python. */
	while (*name == '.')
		name++;
	buf_add(&out, path, dot && dot > name ? (size_t)(dot - path) : strlen(path));
	buf_add_text(&out, ".pytorch.json");
	return buf_take(&out);
}
