/* SPDX-License-Identifier: Apache-2.0 */
/* derived.c - see derived.h. */
#include "out/report/derived.h"
#include "out/report/report_internal.h"

#include <math.h>

#include "core/json/write.h"
#include "results/read/frame.h"

struct derived_input {
	double output, total, tpot_ms, per_w; /* tokens/s, ms, tokens/s/W */
	struct derived_gpus gpus;
};

static bool is_known(double v)
{
	return v > 0 && isfinite(v);
}

/* The quotient, where both are known. */
static double over(double a, double b)
{
	return is_known(a) && is_known(b) ? a / b : NAN;
}

static double cost(const struct derived_input *in, double tokens_per_s)
{
	double per_s = in->gpus.count * in->gpus.price_per_hour / 3600;

	return is_known(in->gpus.count) && is_known(in->gpus.price_per_hour) ?
	       over(per_s, tokens_per_s) * 1e6 : NAN;
}

#define OUTPUTS 8
struct derived_output { const char *key; double value; };

static void derive(const struct derived_input *in, struct derived_output out[OUTPUTS])
{
	const struct derived_output all[OUTPUTS] = {
		{ "gpu_count", in->gpus.count },
		{ "output_throughput_per_gpu", over(in->output, in->gpus.count) },
		{ "total_token_throughput_per_gpu", over(in->total, in->gpus.count) },
		{ "output_throughput_per_user", over(1000, in->tpot_ms) },
		{ "output_tokens_per_s_per_kw", 1000 * in->per_w },
		{ "gpu_price_per_hour", in->gpus.price_per_hour },
		{ "cost_per_million_output_tokens", cost(in, in->output) },
		{ "cost_per_million_tokens", cost(in, in->total) },
	};

	memcpy(out, all, sizeof(all));
}

static void put(const struct derived_input *in, struct json_writer *w)
{
	struct derived_output out[OUTPUTS];
	size_t n = 0;

	derive(in, out);
	for (size_t i = 0; i < OUTPUTS; i++)
		n += is_known(out[i].value);
	if (!n)
		return;
	json_member_object(w, "derived");
	for (size_t i = 0; i < OUTPUTS; i++)
		if (is_known(out[i].value) && i == 0)
			json_member_int(w, out[i].key, (int64_t)out[i].value);
		else if (is_known(out[i].value))
			json_member_f64(w, out[i].key, out[i].value);
	json_end_object(w);
}

static struct derived_input of_report(const struct report *r)
{
	const struct metrics *m = r->metrics;
	bool has_tokens = !m->opts.is_pooling;

	return (struct derived_input){
		.output = has_tokens ? m->output_throughput : NAN,
		.total = m->total_token_throughput,
		.tpot_ms = has_tokens ? m->block[BLOCK_TPOT].median_ms : NAN,
		.per_w = m->system.is_reported ? m->system.tokens_per_s_per_w : NAN,
		.gpus = { (double)r->facts->gpus, r->facts->gpu_price },
	};
}

void derived_put(const struct report *r, struct json_writer *w)
{
	const struct derived_input in = of_report(r);

	put(&in, w);
}

void derived_rows(const struct report *r, struct buf *out)
{
	const struct derived_input in = of_report(r);
	struct derived_output v[OUTPUTS];

	if (!is_known(in.gpus.count))
		return;
	derive(&in, v);
	line_int(out, "GPUs:", (int64_t)in.gpus.count);
	if (is_known(v[1].value))
		line_real(out, "Output tokens/s per GPU:", v[1].value);
	if (is_known(v[3].value))
		line_real(out, "Output tokens/s per user:", v[3].value);
	if (is_known(v[6].value))
		line_real(out, "Cost of 1 million output tokens:", v[6].value);
	if (is_known(v[7].value))
		line_real(out, "Cost of 1 million tokens:", v[7].value);
}

/* ---- records ---- */

static double number(const struct json_value *record, const char *key)
{
	double v;

	return frame_number(frame_value(record, str_of(key)), &v) ? v : NAN;
}

static double first_of(const struct json_value *record, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double v = number(record, keys[i]);

		if (is_known(v))
			return v;
	}
	return NAN;
}

/* At least one of the sizes must be given: if none is, the number of GPUs is unknown, not one. */
static double gpus_of(const struct json_value *record)
{
	static const char *const counts[] = { "profllm.derived.gpu_count", "derived.gpu_count",
					      "num_gpus", "gpu_count", "gpus" };
	static const char *const sizes[][4] = {
		{ "tensor_parallel_size", "tp", "tensor-parallel-size", "server.tensor_parallel_size" },
		{ "pipeline_parallel_size", "pp", "pipeline-parallel-size",
		  "server.pipeline_parallel_size" },
		{ "data_parallel_size", "dp", "data-parallel-size", "server.data_parallel_size" },
	};
	double n = first_of(record, counts, sizeof(counts) / sizeof(*counts)), world = NAN;

	if (is_known(n))
		return n;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		double size = first_of(record, sizes[i], 4);

		if (is_known(size))
			world = is_known(world) ? world * size : size;
	}
	return world;
}

const struct json_value *derived_record(const struct json_value *record,
					const struct derived_gpus *told, struct arena *a)
{
	static const char *const prices[] = { "profllm.derived.gpu_price_per_hour",
					      "derived.gpu_price_per_hour" };
	static const char *const watts[] = { "profllm.system.tokens_per_s_per_w",
					     "system.tokens_per_s_per_w" };
	struct derived_input in = {
		.output = number(record, "output_throughput"),
		.total = number(record, "total_token_throughput"),
		.tpot_ms = number(record, "median_tpot_ms"), .per_w = first_of(record, watts, 2),
		.gpus = *told,
	};
	struct json_value *out, *derived;
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct err ignored;
	double kw = number(record, "profllm.derived.output_tokens_per_s_per_kw");

	if (!is_known(in.gpus.count))
		in.gpus.count = gpus_of(record);
	if (!is_known(in.gpus.price_per_hour))
		in.gpus.price_per_hour = first_of(record, prices, 2);
	if (!is_known(in.per_w))
		in.per_w = kw / 1000;
	json_begin_object(&w);
	put(&in, &w);
	json_end_object(&w);
	if (json_parse(a, buf_str(&text), &derived, &ignored) < 0 || !derived->count) {
		buf_release(&text);
		return record;
	}
	buf_release(&text);
	out = arena_alloc(a, sizeof(*out));
	*out = (struct json_value){ .kind = JSON_OBJECT };
	out->item = arena_alloc(a, (record->count + 1) * sizeof(*out->item));
	out->key = arena_alloc(a, (record->count + 1) * sizeof(*out->key));
	for (size_t i = 0; i < record->count; i++)
		if (!str_is(record->key[i], "derived")) {
			out->key[out->count] = record->key[i];
			out->item[out->count++] = record->item[i];
		}
	out->key[out->count] = STR("derived");
	out->item[out->count++] = derived->item[0];
	return out;
}
