/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds_pytorch.c - see kinds.h: the list of records that SAVE_TO_PYTORCH_BENCHMARK_FORMAT
 * leaves, one run told as a record per metric.
 */
#include <math.h>
#include <string.h>

#include "results/store/kinds.h"

static const struct json_value *path(const struct json_value *v, const char *a, const char *b)
{
	return json_get(json_get(v, a), b);
}

/* One value, or the mean of several; NAN: none. */
static double mean_of(const struct json_value *list)
{
	double sum = 0;

	if (!list || list->kind != JSON_ARRAY || !list->count)
		return NAN;
	for (size_t i = 0; i < list->count; i++)
		sum += json_real(&list->item[i], NAN);
	return sum / (double)list->count;
}

/* The result that the records were made of: their metrics, then what the first says beside. */
static struct json_value gather(struct reading *r, const struct json_value *list)
{
	const struct json_value *extra = json_get(json_get(&list->item[0], "metric"), "extra_info");
	struct json_value out = { .kind = JSON_OBJECT };
	size_t room = list->count + (extra && extra->kind == JSON_OBJECT ? extra->count : 0);

	out.key = arena_alloc(r->scratch, (room + 1) * sizeof(*out.key));
	out.item = arena_alloc(r->scratch, (room + 1) * sizeof(*out.item));
	for (size_t i = 0; i < list->count; i++) {
		struct str name = json_text(path(&list->item[i], "metric", "name"), STR(""));
		double v = mean_of(path(&list->item[i], "metric", "benchmark_values"));

		if (!name.n)
			continue;
		out.key[out.count] = str_is(name, "latency") ? STR("avg_latency") : name;
		out.item[out.count++] = (struct json_value){ .kind = JSON_REAL, .real = v };
	}
	for (size_t i = 0; i < room - list->count; i++) {
		out.key[out.count] = extra->key[i];
		out.item[out.count++] = extra->item[i];
	}
	return out;
}

/* Every option of the command; what both a server and the load have is the server's offline. */
static void put_args(struct reading *r, const struct json_value *args, bool is_serving)
{
	static const char *const inside[] = {
		"subparser", "bench_type", "dispatch_function", "config", "output_json",
		"result_filename", "result_dir", "save_result", "save_detailed", "metadata",
		"request_id_prefix", "logging_config",
	};

	for (size_t i = 0; args && args->kind == JSON_OBJECT && i < args->count; i++) {
		struct str key = args->key[i];
		bool is_inside = false;

		for (size_t k = 0; k < sizeof(inside) / sizeof(*inside); k++)
			is_inside |= str_is(key, inside[k]);
		if (is_inside)
			continue;
		if (is_serving && !str_is(key, "tensor_parallel_size"))
			cells_put_json(r->cells, "benchmark", key, &args->item[i]);
		else
			put_parameter(r, key, &args->item[i]);
	}
}

int put_pytorch(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *first = &v->item[0], *info, *model;
	struct json_value result = gather(r, v);
	enum result_kind kind = result_kind(&result);

	info = json_get(json_get(first, "benchmark"), "extra_info");
	model = path(first, "model", "name");
	if (model && model->kind == JSON_STRING)
		cells_put_json(r->cells, NULL, STR("server.model"), model);
	cells_put_json(r->cells, NULL, STR("server.compilation_config.mode"),
		       json_get(info, "compilation_config.mode"));
	cells_put_json(r->cells, NULL, STR("server.optimization_level"),
		       json_get(info, "optimization_level"));
	put_args(r, json_get(info, "args"), kind == RESULT_SERVE);
	return put_kind(r, kind == RESULT_NONE ? RESULT_SERVE : kind, &result, e);
}
