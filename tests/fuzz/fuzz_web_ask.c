/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_web_ask.c - whatever a question about runs is, it is answered in valid JSON or refused.
 *
 * A first byte below 128 sends the rest as a body, above that as the parameters of a GET.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "mutate.h"
#include "results/store/store.h"
#include "web/web_internal.h"

#define RUNS 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_run(struct index *x, int i)
{
	struct cell cell[] = {
		{ STR("run_id"), { .kind = VALUE_TEXT, .text = STR("=1+1") } },
		{ STR("tags.on"), { .kind = VALUE_BOOL, .is_true = i % 2 } },
		{ STR("benchmark.request_rate"), { .kind = VALUE_NUMBER } },
		{ STR("median_ttft_ms"), { .kind = VALUE_NUMBER, .number = (i % 13 - 6) * 2.5e307 } },
		{ STR("status"), { .kind = VALUE_NULL } },
	};
	struct row row = { i + 1, cell, sizeof(cell) / sizeof(*cell) - (size_t)(i % 3) };

	cell[2].value.number = i % 5 ? i : INFINITY;
	CHECK(index_add(x, &row, i == 7 ? INDEX_EXCLUDED : 0, NULL) == 0);
}

static struct index_view *runs(void)
{
	static struct index_view *view;

	if (!view) {
		struct index *x = index_make();

		for (int i = 0; i < RUNS; i++)
			add_run(x, i);
		view = index_view(x);
	}
	return view;
}

/* The route's answer, which is refused with a sentence or is one object. */
static void ask(const struct web_route *route, struct web_request *r)
{
	static struct web w; /* keeps an answer only until the next question */
	struct web_answer a = { .fd = -1 };
	struct json_value *v;
	struct err e = { 0 };

	answers_begin(&w.kept);
	r->web = &w;
	r->route = route;
	r->method = route->method;
	a.json = json_writer(&a.body);
	json_begin_object(&a.json);
	if (route->handle(r, &a, &e) < 0) {
		CHECK(e.code == ERR_USAGE && *e.text);
	} else {
		json_end_object(&a.json);
		CHECK(json_parse(r->arena, buf_str(&a.body), &v, &e) == 0);
	}
	buf_release(&a.body);
	answers_release(&w.kept);
}

static void ask_all(const struct web_routes *routes, const char *method, struct web_request *r)
{
	static const char *const paths[] = {
		"/api/filters/options", "/api/filters/apply", "/api/data/experiments",
		"/api/data/summary",
	};

	for (size_t i = 0; i < routes->n; i++)
		for (size_t k = 0; k < sizeof(paths) / sizeof(*paths); k++)
			if (strcmp(routes->route[i].path, paths[k]) == 0 &&
			    strcmp(routes->route[i].method, method) == 0)
				ask(&routes->route[i], r);
}

/* An empty one, which a summary asks how full it is. */
static struct store *store(void)
{
	static struct store *opened;
	char path[] = "/tmp/fuzz-web-ask-XXXXXX", name[64];
	const struct store_opts o = { .url = name };

	if (!opened) {
		CHECK(mkdtemp(path));
		snprintf(name, sizeof(name), "sqlite:%s/store.db", path);
		CHECK(store_open(&o, &opened, NULL) == 0);
	}
	return opened;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct web_request r = { .view = runs(), .arena = &a, .store = store() };
	struct json_value *body = NULL;
	struct str text = { (const char *)data + 1, size - 1 };

	if (size < 2)
		return 0;
	if (data[0] < 128 && json_parse(&a, text, &body, NULL) < 0)
		goto done;
	r.body = body;
	if (!body)
		r.query = text;
	ask_all(&filters_routes, body ? "POST" : "GET", &r);
	ask_all(&data_routes, body ? "POST" : "GET", &r);
done:
	arena_release(&a);
	return 0;
}

/* Values of a body, parameters of a query; the first byte stays. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (size < 2)
		return LLVMFuzzerMutate(data, size, max);
	return 1 + (data[0] < 128 ? mutate_json(data + 1, size - 1, max - 1, seed) :
				    mutate_pieces(data + 1, size - 1, max - 1, '&', seed));
}
