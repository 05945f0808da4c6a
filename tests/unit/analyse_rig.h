/* SPDX-License-Identifier: Apache-2.0 */
/* analyse_rig.h - runs built by hand, an analysis asked in JSON, and its answer by paths. */
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

#include "answers.h"
#include "results/analyse/analyse.h"

#define RIG_CELLS_MAX 64

struct rig {
	struct arena arena;
	struct index *index;
	struct index_view *view;
	struct json_value *marks;
	const char *prices, *watts;      /* that the server keeps, as JSON; NULL: none */
	struct cell cell[RIG_CELLS_MAX]; /* of the run being built */
	size_t n_cells;
	int64_t next;
	struct buf text;                 /* of the last answer */
	uint64_t seed;
};

static inline void rig_begin(struct rig *r)
{
	*r = (struct rig){ .index = index_make(), .next = 1, .seed = 1 };
}

static inline void rig_end(struct rig *r)
{
	index_view_release(r->view);
	index_free(r->index);
	arena_release(&r->arena);
	buf_release(&r->text);
}

static inline void rig_put(struct rig *r, const char *column, struct value v)
{
	assert_true(r->n_cells < RIG_CELLS_MAX);
	r->cell[r->n_cells++] = (struct cell){ str_of(column), v };
}

static inline void rig_number(struct rig *r, const char *column, double v)
{
	rig_put(r, column, (struct value){ .kind = VALUE_NUMBER, .number = v });
}

static inline void rig_text(struct rig *r, const char *column, const char *v)
{
	rig_put(r, column, (struct value){ .kind = VALUE_TEXT, .text = str_of(v) });
}

/* The run's number. */
static inline int64_t rig_run(struct rig *r, unsigned flags)
{
	struct row row = { r->next++, r->cell, r->n_cells };
	struct err e = { 0 };

	if (index_add(r->index, &row, flags, &e) < 0)
		fail_msg("%s", e.text);
	r->n_cells = 0;
	return row.id;
}

static inline struct json_value *rig_settings(struct rig *r, const char *text)
{
	struct json_value *out = NULL;
	struct err e = { 0 };

	if (text && json_parse(&r->arena, str_of(text), &out, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return out;
}

static inline int rig_call(struct rig *r, analyse_fn *f, const char *body, struct json_value **out,
			   struct err *e)
{
	struct analyse_request q = { .arena = &r->arena, .marks = r->marks };
	struct json_writer w = json_writer(&r->text);
	struct json_value *json;
	int rc;

	if (r->view)
		index_view_release(r->view);
	r->view = index_view(r->index);
	q.view = r->view;
	if (json_parse(&r->arena, str_of(body), &json, e) < 0)
		fail_msg("%s: %s", body, e->text);
	q.body = json;
	q.prices = rig_settings(r, r->prices);
	q.watts = rig_settings(r, r->watts);
	buf_reset(&r->text);
	json_begin_object(&w);
	rc = f(&q, &w, e);
	if (rc < 0)
		return rc;
	json_end_object(&w);
	return json_parse(&r->arena, arena_str(&r->arena, buf_str(&r->text)), out, e);
}

static inline struct json_value *rig_ask(struct rig *r, analyse_fn *f, const char *body)
{
	struct json_value *out = NULL;
	struct err e = { 0 };

	if (rig_call(r, f, body, &out, &e) < 0)
		fail_msg("%s: %s", body, e.text);
	answers_check(r->text.data, r->text.len);
	return out;
}

/* The request is refused with this pointer in front. */
static inline void rig_refused(struct rig *r, analyse_fn *f, const char *body, const char *pointer)
{
	struct json_value *out;
	struct err e = { 0 };

	if (rig_call(r, f, body, &out, &e) == 0)
		fail_msg("%s is answered", body);
	assert_int_equal(e.code, ERR_USAGE);
	if (strncmp(e.text, pointer, strlen(pointer)) != 0 || e.text[strlen(pointer)] != ':')
		fail_msg("%s: '%s', expected pointer %s", body, e.text, pointer);
}

/* "series/0/changes/1/p"; NULL: not there. */
static inline const struct json_value *rig_at(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path);

	while (v && rest.n) {
		struct str word = str_cut(&rest, '/');
		char key[128];
		int64_t at;

		snprintf(key, sizeof(key), "%.*s", (int)word.n, word.p);
		if (v->kind == JSON_ARRAY && str_to_i64(word, &at))
			v = (size_t)at < v->count ? &v->item[at] : NULL;
		else
			v = json_get(v, key);
	}
	return v;
}

/* NAN: null, absent or no number. */
static inline double rig_real(const struct json_value *v, const char *path)
{
	return json_real(rig_at(v, path), NAN);
}

static inline void rig_same(const struct json_value *v, const char *path, const char *want)
{
	struct str got = json_text(rig_at(v, path), STR("(none)"));

	if (!str_is(got, want))
		fail_msg("%s: '%.*s', expected '%s'", path, (int)got.n, got.p, want);
}

static inline void rig_near(const struct json_value *v, const char *path, double want)
{
	double got = rig_real(v, path);

	if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("%s: %.17g, expected %.17g", path, got, want);
}

static inline size_t rig_count(const struct json_value *v, const char *path)
{
	const struct json_value *list = rig_at(v, path);

	assert_non_null(list);
	return list->count;
}

/* Whether any note holds these words. */
static inline bool rig_has_note(const struct json_value *v, const char *words)
{
	const struct json_value *notes = json_get(v, "notes");

	for (size_t i = 0; notes && i < notes->count; i++)
		if (strstr(notes->item[i].text.p, words))
			return true;
	return false;
}

/* Evenly spread over 0 to 1; then normal. */
static inline double rig_uniform(struct rig *r)
{
	uint64_t z = r->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static inline double rig_normal(struct rig *r)
{
	double u = 1 - rig_uniform(r), v = rig_uniform(r);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}
