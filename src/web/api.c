/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - see api.h. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/opt/opt.h"
#include "results/store/known.h"
#include "web/api.h"
#include "web/web.h"
#include "web/web_internal.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- errors ---- */

int asked_wrong(struct web_answer *a, struct err *e, struct arena *arena, const char *pointer,
		const char *expected)
{
	a->pointer = str_of(arena_printf(arena, "%s", pointer));
	return err_set(e, ERR_USAGE, "%s: expected %s", *pointer ? pointer : "the body", expected);
}

int asked_refuse(struct web_answer *a, unsigned status, struct err *e, const char *fmt, ...)
{
	char text[sizeof(e->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	a->status = status;
	return err_set(e, ERR_USAGE, "%s", text);
}

/* The nearest of a list of words between commas or blanks; NULL: none is near. */
static const char *nearest_of(struct arena *arena, struct str key, const char *known)
{
	const char **name = arena_alloc(arena, (strlen(known) + 1) * sizeof(*name));
	char *copy = arena_text(arena, str_of(known)), *rest = NULL;
	size_t n = 0;

	for (char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest))
		name[n++] = word;
	return opt_nearest(key, name, n);
}

int asked_unknown(struct web_answer *a, struct err *e, struct arena *arena, const char *what,
		  struct str key, const char *known)
{
	char *pointer = arena_printf(arena, "/%.*s", (int)(key.n < 64 ? key.n : 64), key.p);
	const char *meant = nearest_of(arena, key, known);

	a->pointer = str_of(pointer);
	err_set(e, ERR_USAGE, "%s: no such %s; expected %s%s", pointer, what,
		*known ? "one of: " : "none", known);
	if (meant)
		err_add(e, "; did you mean %s?", meant);
	return -1;
}

int asked_page_failed(struct web_answer *a, struct arena *arena, struct err *e)
{
	const char *text = arena_text(arena, str_of(e->text));

	err_set(e, e->code, "/%s", text);
	return asked_failed(a, arena, e);
}

int asked_failed(struct web_answer *a, struct arena *arena, struct err *e)
{
	const char *colon = strstr(e->text, ": ");

	if (e->text[0] == '/' && colon)
		a->pointer = arena_str(arena, (struct str){ e->text, (size_t)(colon - e->text) });
	if (strstr(e->text, "_MAX)"))
		a->status = 422;
	return -1;
}

int asked_usage(struct web_answer *a, unsigned status, const struct err *e)
{
	assert(status >= 400 && status < 500);
	if (e->code == ERR_USAGE)
		a->status = status;
	return -1;
}

/* ---- members ---- */

/* How a parameter of a GET is written. */
enum spelling { TEXT, WHOLE, JSON, NAMES, SORT };

struct ask_reader {
	struct arena *arena;
	struct web_answer *answer;
	struct ask *ask;
	struct err *err;
};

struct ask_member {
	enum asked_member bit;
	const char *name;
	enum spelling spelling;
	int (*read)(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		    const char *pointer);
	size_t max;              /* of a number or of a list's elements */
	const char *limit;       /* what max is called */
	size_t at, n_at;         /* where in struct query: the number, or the list and its length */
};

static int wrong(struct ask_reader *r, const char *pointer, const char *expected)
{
	return asked_wrong(r->answer, r->err, r->arena, pointer, expected);
}

static int too_many(struct ask_reader *r, const char *pointer, size_t max, const char *limit)
{
	r->answer->status = 422;
	return wrong(r, pointer, arena_printf(r->arena, "at most %zu (%s)", max, limit));
}

static int read_filter(struct ask_reader *r, const struct ask_member *m,
		       const struct json_value *v, const char *pointer)
{
	struct filter *f;

	(void)m;
	if (filter_read(v, pointer, r->arena, &f, r->err) < 0)
		return asked_failed(r->answer, r->arena, r->err);
	r->ask->query.filter = f;
	return 0;
}

static int read_shown(struct ask_reader *r, const struct ask_member *m,
		       const struct json_value *v, const char *pointer)
{
	static const struct { const char *name; unsigned flags; bool is_only; } words[] = {
		{ "usual", 0, false },
		{ "excluded", INDEX_EXCLUDED, true },
		{ "archived", INDEX_ARCHIVED, true },
		{ "all", INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED, false },
	};
	struct str word = json_text(v, STR(""));

	(void)m;
	for (size_t i = 0; i < COUNT(words); i++)
		if (str_is(word, words[i].name)) {
			r->ask->query.shown = words[i].flags;
			r->ask->query.only_flagged = words[i].is_only;
			return 0;
		}
	return wrong(r, pointer, "usual, excluded, archived or all");
}

static int read_sort(struct ask_reader *r, const struct ask_member *m,
		       const struct json_value *v, const char *pointer)
{
	struct query *q = &r->ask->query;

	if (v->kind != JSON_ARRAY)
		return wrong(r, pointer, "a list of {\"column\", \"descending\"}");
	if (v->count > m->max)
		return too_many(r, pointer, m->max, m->limit);
	for (size_t i = 0; i < v->count; i++) {
		const struct json_value *column = json_get(&v->item[i], "column");
		const struct json_value *order = json_get(&v->item[i], "descending");

		if (!column || column->kind != JSON_STRING || !column->text.n)
			return wrong(r, arena_printf(r->arena, "%s/%zu/column", pointer, i),
				     "the name of a column");
		if (order && order->kind != JSON_TRUE && order->kind != JSON_FALSE)
			return wrong(r, arena_printf(r->arena, "%s/%zu/descending", pointer, i),
				     "true or false");
		q->sort[i] = (struct query_sort){ column->text, json_bool(order, false) };
	}
	q->n_sorts = v->count;
	return 0;
}

static int read_count(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		      const char *pointer)
{
	if (v->kind != JSON_INT || v->integer < 0)
		return wrong(r, pointer, "a whole number from 0 on");
	if ((uint64_t)v->integer > m->max)
		return too_many(r, pointer, m->max, m->limit);
	*(size_t *)((char *)&r->ask->query + m->at) = (size_t)v->integer;
	return 0;
}

static int read_limit(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		      const char *pointer)
{
	struct ask_member of_export = *m;

	r->ask->has_limit = true;
	/* An export's limit counts all of its rows, and has its own maximum. */
	of_export.max = SIZE_MAX / 2;
	return read_count(r, r->ask->format.p ? &of_export : m, v, pointer);
}

static int read_cursor(struct ask_reader *r, const struct ask_member *m,
		       const struct json_value *v, const char *pointer)
{
	(void)m;
	if (v->kind != JSON_STRING)
		return wrong(r, pointer, "the \"next\" value of the previous page");
	r->ask->query.cursor = v->text;
	return 0;
}

static int read_names(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		      const char *pointer)
{
	struct query *q = &r->ask->query;
	struct str *name;

	if (v->kind != JSON_ARRAY)
		return wrong(r, pointer, m->bit == ASK_FACETS ?
			     "a list of names of columns, or \"auto\"" : "a list of names of columns");
	if (v->count > m->max)
		return too_many(r, pointer, m->max, m->limit);
	name = arena_alloc(r->arena, (v->count + 1) * sizeof(*name));
	for (size_t i = 0; i < v->count; i++) {
		if (v->item[i].kind != JSON_STRING || !v->item[i].text.n)
			return wrong(r, arena_printf(r->arena, "%s/%zu", pointer, i),
				     "the name of a column");
		name[i] = v->item[i].text;
	}
	*(const struct str **)((char *)q + m->at) = name;
	*(size_t *)((char *)q + m->n_at) = v->count;
	return 0;
}

static int read_facets(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		       const char *pointer)
{
	if (v->kind != JSON_STRING || !str_is(v->text, "auto"))
		return read_names(r, m, v, pointer);
	r->ask->has_auto_facets = true;
	return 0;
}

static int read_group(struct ask_reader *r, const struct ask_member *m, const struct json_value *v,
		      const char *pointer)
{
	(void)m;
	if (v->kind != JSON_STRING || !str_is(v->text, FOLD_COLUMN))
		return wrong(r, pointer, "\"" FOLD_COLUMN "\" or null");
	r->ask->query.fold = v->text;
	return 0;
}

static int read_format(struct ask_reader *r, const struct ask_member *m,
		       const struct json_value *v, const char *pointer)
{
	(void)m;
	if (v->kind != JSON_STRING || (!str_is(v->text, "csv") && !str_is(v->text, "jsonl")))
		return wrong(r, pointer, "csv or jsonl");
	r->ask->format = v->text;
	return 0;
}

#define MOST(max) max, #max
#define AT(member) offsetof(struct query, member)
static const struct ask_member members_known[] = {
	{ ASK_FILTER, "filter", JSON, read_filter, 0, NULL, 0, 0 },
	{ ASK_SHOWN, "shown", TEXT, read_shown, 0, NULL, 0, 0 },
	{ ASK_SORT, "sort", SORT, read_sort, MOST(QUERY_SORTS_MAX), 0, 0 },
	{ ASK_LIMIT, "limit", WHOLE, read_limit, MOST(QUERY_LIMIT_MAX), AT(limit), 0 },
	{ ASK_CURSOR, "cursor", TEXT, read_cursor, 0, NULL, 0, 0 },
	{ ASK_COLUMNS, "columns", NAMES, read_names, MOST(INDEX_COLUMNS_MAX), AT(column),
	  AT(n_columns) },
	{ ASK_FACETS, "facets", NAMES, read_facets, MOST(QUERY_FACETS_MAX), AT(facet), AT(n_facets) },
	{ ASK_FACET_VALUES, "facet_values", WHOLE, read_count, MOST(ASK_FACET_VALUES_MAX),
	  AT(facet_values_max), 0 },
	{ ASK_BINS, "bins", WHOLE, read_count, MOST(ASK_BINS_MAX), AT(histogram_bins), 0 },
	{ ASK_STATISTICS, "statistics", NAMES, read_names, MOST(QUERY_STATISTICS_MAX),
	  AT(statistic), AT(n_statistics) },
	{ ASK_FORMAT, "format", TEXT, read_format, 0, NULL, 0, 0 },
	{ ASK_GROUP, "group", TEXT, read_group, 0, NULL, 0, 0 },
};
#undef MOST
#undef AT

static const struct ask_member *member_of(struct str name, unsigned members)
{
	for (size_t i = 0; i < COUNT(members_known); i++)
		if (members & members_known[i].bit && str_is(name, members_known[i].name))
			return &members_known[i];
	return NULL;
}

static int refuse_unknown(struct ask_reader *r, struct str name, unsigned members)
{
	struct buf known = { 0 };
	int rc;

	for (size_t i = 0; i < COUNT(members_known); i++)
		if (members & members_known[i].bit)
			buf_printf(&known, "%s%s", known.len ? ", " : "", members_known[i].name);
	rc = asked_unknown(r->answer, r->err, r->arena, "member", name, known.data);
	buf_release(&known);
	return rc;
}

typedef int check_fn(const struct index_view *v, struct str name, const char *pointer,
		     struct arena *a, struct err *e);

static int check_names(struct ask_reader *r, const struct index_view *view, const char *member,
		       const struct str *name, size_t n, check_fn *check)
{
	for (size_t i = 0; i < n; i++)
		if (check(view, name[i], arena_printf(r->arena, "/%s/%zu", member, i),
				       r->arena, r->err) < 0)
			return -1;
	return 0;
}

/* A column that neither runs nor schemas have is misspelt, or gone: no answer would be right. */
static int check_columns(struct ask_reader *r, const struct index_view *view)
{
	const struct query *q = &r->ask->query;

	if (known_check_filter(view, q->filter, "/filter", r->arena, r->err) < 0)
		return -1;
	for (size_t i = 0; i < q->n_sorts; i++)
		if (known_check_column(view, q->sort[i].column,
				       arena_printf(r->arena, "/sort/%zu/column", i), r->arena,
				       r->err) < 0)
			return -1;
	if (check_names(r, view, "columns", q->column, q->n_columns, known_check_value) < 0 ||
	    check_names(r, view, "facets", q->facet, q->n_facets, known_check_column) < 0)
		return -1;
	return check_names(r, view, "statistics", q->statistic, q->n_statistics,
			   known_check_column);
}

static int too_many_cells(struct ask_reader *r, const struct query *q)
{
	r->answer->status = 422;
	return wrong(r, "/limit", arena_printf(r->arena, "at most %zu runs with %zu columns, or %zu "
			"columns with %zu runs: a page has at most %d cells (ASK_CELLS_MAX), what is "
			"larger is an export", ASK_CELLS_MAX / q->n_columns, q->n_columns,
			ASK_CELLS_MAX / q->limit, q->limit, ASK_CELLS_MAX));
}

int asked_facet_cells(const struct query *q, size_t n, struct arena *arena, struct web_answer *a,
		      struct err *e)
{
	size_t each = q->facet_values_max + q->histogram_bins;

	if (!n || each <= ASK_CELLS_MAX / n)
		return 0;
	a->status = 422;
	return asked_wrong(a, e, arena, q->facet_values_max > q->histogram_bins ? "/facet_values" :
			   "/bins", arena_printf(arena, "at most %zu values and bins together for each of "
			   "%zu columns (ASK_CELLS_MAX: %d in all)", ASK_CELLS_MAX / n, n,
			   ASK_CELLS_MAX));
}

int asked_read(const struct json_value *body, unsigned members, const struct index_view *view,
	       struct arena *arena, struct web_answer *a, struct ask *out, struct err *e)
{
	struct ask_reader r = { arena, a, out, e };
	struct query *q = &out->query;

	*out = (struct ask){ 0 };
	q->limit = ASK_LIMIT_DEFAULT;
	q->facet_values_max = ASK_FACET_VALUES_DEFAULT;
	q->histogram_bins = ASK_BINS_DEFAULT;
	if (members & ASK_FORMAT)
		out->format = STR("csv");
	if (filter_read(NULL, NULL, arena, (struct filter **)&q->filter, e) < 0)
		return -1;
	if (body && body->kind != JSON_OBJECT)
		return wrong(&r, "", "an object");
	for (size_t i = 0; body && i < body->count; i++) {
		const struct ask_member *m = member_of(body->key[i], members);

		if (!m)
			return refuse_unknown(&r, body->key[i], members);
		if (body->item[i].kind != JSON_NULL &&
		    m->read(&r, m, &body->item[i], arena_printf(arena, "/%s", m->name)) < 0)
			return -1;
	}
	if (!out->format.p && q->n_columns && q->limit > ASK_CELLS_MAX / q->n_columns)
		return too_many_cells(&r, q);
	if (asked_facet_cells(q, q->n_facets, arena, a, e) < 0)
		return -1;
	return check_columns(&r, view) < 0 ? asked_failed(a, arena, e) : 0;
}

/* ---- the parameters of a GET ---- */

static struct json_value text_value(struct str text)
{
	return (struct json_value){ .kind = JSON_STRING, .text = text };
}

static struct json_value *list_of(struct arena *arena, size_t room)
{
	struct json_value *list = arena_alloc(arena, sizeof(*list));

	list->kind = JSON_ARRAY;
	list->item = arena_alloc(arena, (room + 1) * sizeof(*list->item));
	return list;
}

static size_t parts_of(struct str text)
{
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == ',';
	return n;
}

/* "-timestamp,COL" as [{"column", "descending"}]. */
static struct json_value *sort_of(struct arena *arena, struct str text)
{
	struct json_value *list = list_of(arena, parts_of(text));

	while (text.n) {
		struct str name = str_cut(&text, ',');
		struct json_value *sort = &list->item[list->count++];
		bool is_descending = name.n && name.p[0] == '-';

		*sort = (struct json_value){ .kind = JSON_OBJECT };
		sort->key = arena_alloc(arena, 2 * sizeof(*sort->key));
		sort->item = arena_alloc(arena, 2 * sizeof(*sort->item));
		sort->count = 2;
		sort->key[0] = STR("column");
		sort->item[0] = text_value((struct str){ name.p + is_descending,
							 name.n - is_descending });
		sort->key[1] = STR("descending");
		sort->item[1].kind = is_descending ? JSON_TRUE : JSON_FALSE;
	}
	return list;
}

static struct json_value *names_of(struct arena *arena, struct str text)
{
	struct json_value *list = list_of(arena, parts_of(text));

	while (text.n)
		list->item[list->count++] = text_value(str_cut(&text, ','));
	return list;
}

/* The value that a parameter writes. */
static int value_of_param(struct ask_reader *r, const struct ask_member *m, struct str text,
			  struct json_value *out)
{
	struct json_value *parsed = NULL;
	struct err why = { 0 };
	int64_t whole;

	switch (m->spelling) {
	case TEXT:
		*out = text_value(text);
		return 0;
	case WHOLE:
		*out = text_value(text);
		if (str_to_i64(text, &whole))
			*out = (struct json_value){ .kind = JSON_INT, .integer = whole };
		return 0;
	case NAMES:
		if (text.p[0] != '[') {
			*out = *names_of(r->arena, text);
			return 0;
		}
		break;
	case SORT:
		*out = *sort_of(r->arena, text);
		return 0;
	case JSON:
		break;
	}
	if (json_parse(r->arena, text, &parsed, &why) < 0)
		return wrong(r, arena_printf(r->arena, "/%s", m->name),
			     arena_printf(r->arena, "JSON (%s)", why.text));
	*out = *parsed;
	return 0;
}

static int of_params(const struct web_request *r, struct web_answer *a, unsigned members,
		     const struct json_value **out, struct err *e)
{
	struct json_value *body = arena_alloc(r->arena, sizeof(*body));
	struct ask_reader reader = { .arena = r->arena, .answer = a, .err = e };

	body->kind = JSON_OBJECT;
	body->key = arena_alloc(r->arena, COUNT(members_known) * sizeof(*body->key));
	body->item = arena_alloc(r->arena, COUNT(members_known) * sizeof(*body->item));
	for (size_t i = 0; i < COUNT(members_known); i++) {
		const struct ask_member *m = &members_known[i];
		struct str text = web_param(r, m->name);

		if (!text.n || !(members & m->bit))
			continue;
		body->key[body->count] = str_of(m->name);
		if (value_of_param(&reader, m, arena_str(r->arena, text),
				   &body->item[body->count++]) < 0)
			return -1;
	}
	*out = body;
	return tags_resolve(r, body, e);
}

int asked_body(const struct web_request *r, struct web_answer *a, unsigned members,
	       const struct json_value **out, struct err *e)
{
	if (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0)
		return of_params(r, a, members, out, e);
	*out = r->body;
	return 0;
}

int asked_query(const struct web_request *r, struct web_answer *a, unsigned members,
		struct ask *out, struct err *e)
{
	const struct json_value *body;

	assert(r->view);
	return asked_body(r, a, members, &body, e) < 0 ? -1 :
	       asked_read(body, members, r->view, r->arena, a, out, e);
}

/* ---- single members, and what a path names ---- */

int asked_object(const struct web_request *r, struct web_answer *a, const char *members,
		 struct err *e)
{
	if (!r->body || r->body->kind != JSON_OBJECT)
		return asked_wrong(a, e, r->arena, "", "a JSON object");
	for (size_t i = 0; i < r->body->count; i++) {
		struct str rest = str_of(members), key = r->body->key[i];
		bool is_known = false;

		while (rest.n)
			is_known |= str_eq(str_cut(&rest, ' '), key);
		if (!is_known)
			return asked_unknown(a, e, r->arena, "member", key, members);
	}
	return 0;
}

int asked_text(const struct web_request *r, struct web_answer *a, const char *name, size_t max,
	       bool is_needed, struct str *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, name);

	if (!v && !is_needed)
		return 0;
	if (!v || v->kind != JSON_STRING || v->text.n > max || (is_needed && !v->text.n) ||
	    memchr(v->text.p, 0, v->text.n))
		return asked_wrong(a, e, r->arena, arena_printf(r->arena, "/%s", name),
				   arena_printf(r->arena, "a text of %d to %zu bytes", is_needed,
					      max));
	*out = v->text;
	return 0;
}

int asked_who(const struct web_request *r, struct web_answer *a, struct str *out, struct err *e)
{
	struct str given = r->who;

	if (asked_text(r, a, "who", ASK_WHO_BYTES_MAX, false, &given, e) < 0)
		return -1;
	*out = str_is(r->who, "local") ? given : r->who;
	return 0;
}

int asked_number(const struct web_request *r, struct web_answer *a, const char *what, int64_t *id,
		 struct err *e)
{
	if (str_to_i64(r->id[0], id) && *id > 0)
		return 0;
	return asked_refuse(a, 404, e, "there is no %s \"%.*s\"", what,
			    (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p);
}

int asked_drop(const struct web_request *r, struct web_answer *a, const char *what,
	       int (*drop)(struct store *s, int64_t id, struct err *e), struct err *e)
{
	int64_t id;

	if (asked_number(r, a, what, &id, e) < 0)
		return -1;
	return drop(r->store, id, e) < 0 ? asked_usage(a, 404, e) : 0;
}

static bool has_run(const struct web_request *r, int64_t id)
{
	struct index_view *now = r->view ? NULL : store_view(r->store);
	struct row row;
	bool is_there = index_row(now ? now : r->view, id, r->arena, &row, NULL);

	index_view_release(now);
	return is_there;
}

int asked_run(const struct web_request *r, struct web_answer *a, int64_t *id, struct err *e)
{
	if (str_to_i64(r->id[0], id) && *id > 0 && has_run(r, *id))
		return 0;
	*id = store_find(r->store, r->id[0]);
	if (*id)
		return 0;
	return asked_refuse(a, 404, e, "there is no run \"%.*s\"",
			    (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p);
}

/* ---- values ---- */

void data_add_value(struct buf *out, struct value v)
{
	struct json_writer w = json_writer(out);

	if (v.kind == VALUE_TEXT)
		buf_add_str(out, v.text);
	else if (v.kind == VALUE_NUMBER && isinf(v.number))
		buf_add_text(out, v.number < 0 ? "-inf" : "inf");
	else if (v.kind != VALUE_ABSENT)
		value_put(&w, v);
}

void data_put_key_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	value_put_number(w, v);
}

void data_put_key_or_null(struct json_writer *w, const char *key, struct str v)
{
	if (v.n)
		json_member_str(w, key, v);
	else
		json_member_null(w, key);
}

void data_put_key_id(struct json_writer *w, const char *key, int64_t id)
{
	if (id)
		json_member_int(w, key, id);
	else
		json_member_null(w, key);
}

void data_put_flags(struct json_writer *w, unsigned flags)
{
	static const struct { unsigned flag; const char *name; } names[] = {
		{ INDEX_EXCLUDED, "excluded" }, { INDEX_ARCHIVED, "archived" },
		{ INDEX_SUPERSEDED, "superseded" },
	};

	json_member_array(w, "flags");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (flags & names[i].flag)
			json_put_text(w, names[i].name);
	json_end_array(w);
}

/* ---- answers of the index ---- */

static void put_repeats(struct json_writer *w, const struct query *q, const struct page_row *row)
{
	json_member_int(w, "n", (int64_t)row->n);
	json_key(w, FOLD_COLUMN);
	value_put(w, row->fold);
	json_member_array(w, "ids");
	for (size_t i = 0; i < row->n_ids; i++)
		json_put_int(w, row->ids[i]);
	json_end_array(w);
	json_member_object(w, "spread");
	for (size_t i = 0; i < q->n_columns; i++) {
		if (isnan(row->spread[i]))
			continue;
		json_key_str(w, q->column[i]);
		value_put_number(w, row->spread[i]);
	}
	json_end_object(w);
}

static void put_row(struct json_writer *w, const struct query *q, const struct page_row *row)
{
	json_begin_object(w);
	json_member_int(w, "id", row->id);
	data_put_flags(w, row->flags);
	json_member_object(w, "values");
	for (size_t i = 0; i < q->n_columns; i++) {
		if (row->value[i].kind == VALUE_ABSENT)
			continue;
		json_key_str(w, q->column[i]);
		value_put(w, row->value[i]);
	}
	json_end_object(w);
	if (q->fold.n)
		put_repeats(w, q, row);
	json_end_object(w);
}

void data_put_page(struct json_writer *w, const struct query *q, const struct answer *a)
{
	json_member_int(w, "total", (int64_t)a->total);
	if (q->fold.n)
		json_member_int(w, "folded", (int64_t)a->folded);
	json_member_array(w, "items");
	for (size_t i = 0; i < a->n_rows; i++)
		put_row(w, q, &a->row[i]);
	json_end_array(w);
	data_put_key_or_null(w, "next", a->next);
	json_member_array(w, "columns");
	for (size_t i = 0; i < q->n_columns; i++)
		json_put_str(w, q->column[i]);
	json_end_array(w);
}

void data_put_histogram(struct json_writer *w, const struct facet *f)
{
	double n = (double)f->n_bins;
	double width = f->max / n - f->min / n; /* their difference may be infinite */

	data_put_key_number(w, "min", f->min);
	data_put_key_number(w, "max", f->max);
	json_member_array(w, "histogram");
	for (size_t i = 0; i < f->n_bins; i++) {
		json_begin_object(w);
		data_put_key_number(w, "from", f->min + width * (double)i);
		data_put_key_number(w, "to",
				    i + 1 == f->n_bins ? f->max : f->min + width * (double)(i + 1));
		json_member_int(w, "count", (int64_t)f->bin[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

void data_put_facet(struct json_writer *w, const struct facet *f)
{
	json_begin_object(w);
	json_member_str(w, "column", f->column);
	json_member_int(w, "distinct", (int64_t)f->distinct);
	json_member_int(w, "missing", (int64_t)f->missing);
	json_member_int(w, "others", (int64_t)f->others);
	json_member_array(w, "values");
	for (size_t i = 0; i < f->n; i++) {
		json_begin_object(w);
		json_key(w, "value");
		value_put(w, f->value[i].value);
		json_member_int(w, "count", (int64_t)f->value[i].count);
		json_member_bool(w, "selected", f->value[i].is_selected);
		json_end_object(w);
	}
	json_end_array(w);
	if (f->is_range)
		data_put_histogram(w, f);
	json_end_object(w);
}

void data_put_statistics(struct json_writer *w, const struct answer *a)
{
	json_member_array(w, "statistics");
	for (size_t i = 0; i < a->n_statistics; i++) {
		const struct statistic *s = &a->statistic[i];

		json_begin_object(w);
		json_member_str(w, "column", s->column);
		json_member_int(w, "count", (int64_t)s->count);
		json_member_int(w, "missing", (int64_t)s->missing);
		data_put_key_number(w, "min", s->min);
		data_put_key_number(w, "max", s->max);
		data_put_key_number(w, "mean", s->mean);
		data_put_key_number(w, "std", s->std);
		data_put_key_number(w, "p50", s->p50);
		data_put_key_number(w, "p90", s->p90);
		data_put_key_number(w, "p95", s->p95);
		data_put_key_number(w, "p99", s->p99);
		json_end_object(w);
	}
	json_end_array(w);
}

int parts_open(const struct web_request *r, struct upload_form *p, struct err *e)
{
	*p = (struct upload_form){ .request = r };
	if (form_open(&p->form, r->content_type, r->raw))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the body is not the form (multipart/form-data) that its Content-Type promises");
}

/* Valid UTF-8 without control characters, of bounded length. */
static struct str clean(struct arena *a, struct str name)
{
	struct buf out = { 0 };
	struct str done;

	if (name.n > PARTS_NAME_BYTES_MAX)
		name.n = PARTS_NAME_BYTES_MAX;
	utf8_add_lossy(&out, name);
	for (size_t i = 0; i < out.len; i++)
		if ((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7f)
			out.data[i] = '_';
	done = arena_str(a, buf_str(&out));
	buf_release(&out);
	return done;
}

int parts_next(struct upload_form *p, struct upload_part *out, struct err *e)
{
	struct form_part part;
	int rc = form_next(&p->form, &part, e);

	if (rc < 0) {
		e->code = ERR_USAGE;
		return -1;
	}
	if (rc == 0)
		return 0;
	if (++p->n > WEB_PARTS_MAX)
		return err_set(e, ERR_USAGE, "the form has more than %d parts (WEB_PARTS_MAX)",
			       WEB_PARTS_MAX);
	*out = (struct upload_part){
		.field = clean(p->request->arena, part.name),
		.name = clean(p->request->arena, part.filename), .bytes = part.body,
	};
	return 1;
}
