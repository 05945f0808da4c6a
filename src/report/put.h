/* SPDX-License-Identifier: Apache-2.0 */
/* report/put.h - one member of a JSON object in one call. Private to report/. */
#pragma once
#include "base/arena.h"
#include "json/write.h"

static inline void put_text(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	json_put_text(w, text);
}

static inline void put_int(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	json_put_int(w, v);
}

static inline void put_real(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_put_f64(w, v);
}

static inline void put_bool(struct json_writer *w, const char *key, bool v)
{
	json_key(w, key);
	json_put_bool(w, v);
}

static inline void put_reals(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, v[i]);
	json_end_array(w);
}

/* The members of an object that is written already; nothing when it is none. */
static inline void put_members(struct json_writer *w, struct str object)
{
	struct json_value *v;
	struct arena a = { 0 };

	if (json_parse(&a, object, &v, NULL) == 0 && v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++) {
			json_key_str(w, v->key[i]);
			json_put_value(w, &v->item[i]);
		}
	arena_release(&a);
}
