/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_rig.h - example runs, and a store of each kind to put them into.
 *
 * A test runs on SQLite always, and on PostgreSQL when PROFLLM_TEST_POSTGRES holds a URL; @ in it
 * is replaced by the name of a database that the test may empty (tests/with_postgres.sh makes
 * them). STORE_RIG is that name: of the test's file, with _ for every character that is not a
 * letter or digit.
 */
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "results/store/store.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The sentence of whatever failed, so that a test says why. */
#define must(call) do { \
		struct err must_error = { 0 }, *e = &must_error; \
		if ((call) < 0) \
			fail_msg("%s: %s", #call, must_error.text); \
	} while (0)

static inline struct cell number_cell(const char *name, double v)
{
	return (struct cell){ str_of(name), { .kind = VALUE_NUMBER, .number = v } };
}

static inline struct cell text_cell(const char *name, const char *v)
{
	return (struct cell){ str_of(name), { .kind = VALUE_TEXT, .text = str_of(v) } };
}

static inline struct cell bool_cell(const char *name, bool v)
{
	return (struct cell){ str_of(name), { .kind = VALUE_BOOL, .is_true = v } };
}

static inline struct cell null_cell(const char *name)
{
	return (struct cell){ str_of(name), { .kind = VALUE_NULL } };
}

/* A run of that name; content tells two of one name apart. */
static inline struct read_run make_run(struct arena *a, const char *run_id, int content)
{
	struct read_run r = { .run_id = arena_str(a, str_of(run_id)), .kind = STR("serve") };
	char *hex = arena_alloc(a, DIGEST_HEX);
	struct cell *cell = arena_alloc(a, 6 * sizeof(*cell));

	r.document = str_of(arena_printf(a, "{\"run_id\": \"%s\", \"content\": %d}", run_id, content));
	r.hash = str_of(digest_hex(DIGEST_SHA256, r.document, hex));
	r.timestamp_s = 1.7e9 + content;
	cell[0] = (struct cell){ STR("run_id"), { .kind = VALUE_TEXT, .text = r.run_id } };
	cell[1] = number_cell("request_throughput", 10.5 + content);
	cell[2] = text_cell("server.model", content % 2 ? "llama" : "qwen");
	cell[3] = bool_cell("server.enable_prefix_caching", content % 3 == 0);
	cell[4] = null_cell("server.quantization");
	cell[5] = number_cell("benchmark.num_prompts", content);
	r.row = (struct row){ .cell = cell, .n = 6 };
	return r;
}

/* The runs of a number of content from first on, each with its own name. */
static inline struct read_run *make_runs(struct arena *a, const char *prefix, int first, size_t n)
{
	struct read_run *r = arena_alloc(a, (n + 1) * sizeof(*r));

	for (size_t i = 0; i < n; i++) {
		char *name = arena_printf(a, "%s-%d", prefix, first + (int)i);

		r[i] = make_run(a, name, first + (int)i);
	}
	return r;
}

/* How many runs are shown with those flags. */
static inline size_t shown(struct store *s, unsigned flags, bool only)
{
	struct index_view *v = index_view(store_index(s));
	struct query q = { .shown = flags, .only_flagged = only };
	struct answer answer = { 0 };
	struct arena a = { 0 };

	must(index_query(v, &q, &a, &answer, e));
	arena_release(&a);
	index_view_release(v);
	return answer.total;
}

static inline const char *in_dir(struct arena *a, const char *name)
{
	return arena_printf(a, "%s/%s", dir, name);
}

static inline struct store *open_store(const char *url, bool is_read_only)
{
	struct store_opts o = { .url = url, .is_read_only = is_read_only };
	struct arena a = { 0 };
	struct store *s = NULL;

	if (str_starts(str_of(url), STR("postgres"))) {
		o.snapshot = in_dir(&a, "postgres.index");
		o.traces = in_dir(&a, "postgres.traces");
	}
	must(store_open(&o, &s, e));
	arena_release(&a);
	return s;
}

static inline const char *postgres_url(struct arena *a)
{
	const char *url = getenv("PROFLLM_TEST_POSTGRES");
	const char *at = url ? strchr(url, '@') : NULL;

	if (!at)
		return url;
	return arena_printf(a, "%.*s%s%s", (int)(at - url), url, STORE_RIG, at + 1);
}

/*
 * Calls one(url) for an empty store of each kind. A store in PostgreSQL is emptied by restoring the
 * backup of an empty one.
 */
static inline void with_stores(void (*one)(const char *url))
{
	static int number;
	struct arena a = { 0 };
	const char *postgres = postgres_url(&a);
	char *url = arena_printf(&a, "sqlite:%s/store%d.db", dir, ++number);

	one(url);
	if (postgres && *postgres) {
		const char *empty = in_dir(&a, "empty.db");
		struct store *s = open_store(arena_printf(&a, "%s/empty-store.db", dir), false);

		must(store_backup(s, empty, e));
		store_close(s);
		must(store_restore(postgres, empty, true, NULL, e));
		one(postgres);
	}
	arena_release(&a);
}
