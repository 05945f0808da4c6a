/* SPDX-License-Identifier: Apache-2.0 */
/* data_ask.c - see data_ask.h. */
#include "web/data_ask.h"

#include <string.h>

#include "opt/opt.h"
#include "store/known.h"

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

/* ---- members ---- */

struct reader {
	struct arena *arena;
	struct web_answer *answer;
	struct ask *ask;
	struct err *err;
};

static int wrong(struct reader *r, const char *pointer, const char *expected)
{
	return asked_wrong(r->answer, r->err, r->arena, pointer, expected);
}

static int too_many(struct reader *r, const char *pointer, size_t max, const char *limit)
{
	r->answer->status = 422;
	return wrong(r, pointer, arena_printf(r->arena, "at most %zu (%s)", max, limit));
}

static int read_filter(struct reader *r, const struct json_value *v, const char *pointer)
{
	struct filter *f;

	if (filter_read(v, pointer, r->arena, &f, r->err) < 0)
		return asked_failed(r->answer, r->arena, r->err);
	r->ask->query.filter = f;
	return 0;
}

static int read_shown(struct reader *r, const struct json_value *v, const char *pointer)
{
	static const struct { const char *name; unsigned flags; bool is_only; } words[] = {
		{ "usual", 0, false },
		{ "excluded", INDEX_EXCLUDED, true },
		{ "archived", INDEX_ARCHIVED, true },
		{ "all", INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED, false },
	};
	struct str word = json_text(v, STR(""));

	for (size_t i = 0; i < COUNT(words); i++)
		if (str_is(word, words[i].name)) {
			r->ask->query.shown = words[i].flags;
			r->ask->query.only_flagged = words[i].is_only;
			return 0;
		}
	return wrong(r, pointer, "usual, excluded, archived or all");
}

static int read_sort(struct reader *r, const struct json_value *v, const char *pointer)
{
	struct query *q = &r->ask->query;

	if (v->kind != JSON_ARRAY)
		return wrong(r, pointer, "a list of {\"column\", \"descending\"}");
	if (v->count > QUERY_SORTS_MAX)
		return too_many(r, pointer, QUERY_SORTS_MAX, "QUERY_SORTS_MAX");
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

static int read_count(struct reader *r, const struct json_value *v, const char *pointer, size_t max,
		      const char *limit, size_t *out)
{
	if (v->kind != JSON_INT || v->integer < 0)
		return wrong(r, pointer, "a whole number from 0 on");
	if ((uint64_t)v->integer > max)
		return too_many(r, pointer, max, limit);
	*out = (size_t)v->integer;
	return 0;
}

static int read_limit(struct reader *r, const struct json_value *v, const char *pointer)
{
	r->ask->has_limit = true;
	/* An export's limit counts all of its rows, and has its own maximum. */
	if (r->ask->format.p)
		return read_count(r, v, pointer, SIZE_MAX / 2, "", &r->ask->query.limit);
	return read_count(r, v, pointer, QUERY_LIMIT_MAX, "QUERY_LIMIT_MAX", &r->ask->query.limit);
}

static int read_facet_values(struct reader *r, const struct json_value *v, const char *pointer)
{
	return read_count(r, v, pointer, ASK_FACET_VALUES_MAX, "ASK_FACET_VALUES_MAX",
			  &r->ask->query.facet_values_max);
}

static int read_bins(struct reader *r, const struct json_value *v, const char *pointer)
{
	return read_count(r, v, pointer, ASK_BINS_MAX, "ASK_BINS_MAX",
			  &r->ask->query.histogram_bins);
}

static int read_cursor(struct reader *r, const struct json_value *v, const char *pointer)
{
	if (v->kind != JSON_STRING)
		return wrong(r, pointer, "what the page before gave as \"next\"");
	r->ask->query.cursor = v->text;
	return 0;
}

static int read_names(struct reader *r, const struct json_value *v, const char *pointer, size_t max,
		      const char *limit, const struct str **out, size_t *n)
{
	struct str *name;

	if (v->kind != JSON_ARRAY)
		return wrong(r, pointer, "a list of names of columns");
	if (v->count > max)
		return too_many(r, pointer, max, limit);
	name = arena_alloc(r->arena, (v->count + 1) * sizeof(*name));
	for (size_t i = 0; i < v->count; i++) {
		if (v->item[i].kind != JSON_STRING || !v->item[i].text.n)
			return wrong(r, arena_printf(r->arena, "%s/%zu", pointer, i),
				     "the name of a column");
		name[i] = v->item[i].text;
	}
	*out = name;
	*n = v->count;
	return 0;
}

static int read_columns(struct reader *r, const struct json_value *v, const char *pointer)
{
	struct query *q = &r->ask->query;

	return read_names(r, v, pointer, INDEX_COLUMNS_MAX, "INDEX_COLUMNS_MAX", &q->column,
			  &q->n_columns);
}

static int read_facets(struct reader *r, const struct json_value *v, const char *pointer)
{
	struct query *q = &r->ask->query;

	if (v->kind == JSON_STRING && str_is(v->text, "auto")) {
		r->ask->has_auto_facets = true;
		return 0;
	}
	if (v->kind != JSON_ARRAY)
		return wrong(r, pointer, "a list of names of columns, or \"auto\"");
	return read_names(r, v, pointer, QUERY_FACETS_MAX, "QUERY_FACETS_MAX", &q->facet,
			  &q->n_facets);
}

static int read_statistics(struct reader *r, const struct json_value *v, const char *pointer)
{
	struct query *q = &r->ask->query;

	return read_names(r, v, pointer, QUERY_STATISTICS_MAX, "QUERY_STATISTICS_MAX",
			  &q->statistic, &q->n_statistics);
}

static int read_format(struct reader *r, const struct json_value *v, const char *pointer)
{
	if (v->kind != JSON_STRING || (!str_is(v->text, "csv") && !str_is(v->text, "jsonl")))
		return wrong(r, pointer, "csv or jsonl");
	r->ask->format = v->text;
	return 0;
}

/* How a parameter of a GET is written. */
enum spelling { TEXT, WHOLE, JSON, NAMES, SORT };

static const struct member {
	enum asked_member bit;
	const char *name;
	enum spelling spelling;
	int (*read)(struct reader *r, const struct json_value *v, const char *pointer);
} members_known[] = {
	{ ASK_FILTER, "filter", JSON, read_filter },
	{ ASK_SHOWN, "shown", TEXT, read_shown },
	{ ASK_SORT, "sort", SORT, read_sort },
	{ ASK_LIMIT, "limit", WHOLE, read_limit },
	{ ASK_CURSOR, "cursor", TEXT, read_cursor },
	{ ASK_COLUMNS, "columns", NAMES, read_columns },
	{ ASK_FACETS, "facets", NAMES, read_facets },
	{ ASK_FACET_VALUES, "facet_values", WHOLE, read_facet_values },
	{ ASK_BINS, "bins", WHOLE, read_bins },
	{ ASK_STATISTICS, "statistics", NAMES, read_statistics },
	{ ASK_FORMAT, "format", TEXT, read_format },
};

static const struct member *member_of(struct str name, unsigned members)
{
	for (size_t i = 0; i < COUNT(members_known); i++)
		if (members & members_known[i].bit && str_is(name, members_known[i].name))
			return &members_known[i];
	return NULL;
}

static int refuse_unknown(struct reader *r, struct str name, unsigned members)
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

static int check_names(struct reader *r, const struct index_view *view, const char *member,
		       const struct str *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (known_check_column(view, name[i], arena_printf(r->arena, "/%s/%zu", member, i),
				       r->arena, r->err) < 0)
			return -1;
	return 0;
}

/* A column that neither runs nor schemas have is misspelt, or gone: no answer would be right. */
static int check_columns(struct reader *r, const struct index_view *view)
{
	const struct query *q = &r->ask->query;

	if (known_check_filter(view, q->filter, "/filter", r->arena, r->err) < 0)
		return -1;
	for (size_t i = 0; i < q->n_sorts; i++)
		if (known_check_column(view, q->sort[i].column,
				       arena_printf(r->arena, "/sort/%zu/column", i), r->arena,
				       r->err) < 0)
			return -1;
	if (check_names(r, view, "columns", q->column, q->n_columns) < 0 ||
	    check_names(r, view, "facets", q->facet, q->n_facets) < 0)
		return -1;
	return check_names(r, view, "statistics", q->statistic, q->n_statistics);
}

static int too_many_cells(struct reader *r, const struct query *q)
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
	struct reader r = { arena, a, out, e };
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
		const struct member *m = member_of(body->key[i], members);

		if (!m)
			return refuse_unknown(&r, body->key[i], members);
		if (body->item[i].kind != JSON_NULL &&
		    m->read(&r, &body->item[i], arena_printf(arena, "/%s", m->name)) < 0)
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
static int value_of_param(struct reader *r, const struct member *m, struct str text,
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
		     struct arena *arena, const struct json_value **out, struct err *e)
{
	struct json_value *body = arena_alloc(arena, sizeof(*body));
	struct reader reader = { .arena = arena, .answer = a, .err = e };

	body->kind = JSON_OBJECT;
	body->key = arena_alloc(arena, COUNT(members_known) * sizeof(*body->key));
	body->item = arena_alloc(arena, COUNT(members_known) * sizeof(*body->item));
	for (size_t i = 0; i < COUNT(members_known); i++) {
		const struct member *m = &members_known[i];
		struct str text = web_param(r, m->name);

		if (!text.n || !(members & m->bit))
			continue;
		body->key[body->count] = str_of(m->name);
		if (value_of_param(&reader, m, arena_str(arena, text),
				   &body->item[body->count++]) < 0)
			return -1;
	}
	*out = body;
	return 0;
}

int asked_body(const struct web_request *r, struct web_answer *a, unsigned members,
	       struct arena *arena, const struct json_value **out, struct err *e)
{
	if (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0)
		return of_params(r, a, members, arena, out, e);
	*out = r->body;
	return 0;
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
