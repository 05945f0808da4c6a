/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters.c - routes that filter: the list of columns, a filter's answer, saved views and boards.
 */
#include <math.h>
#include <stdlib.h>

#include "results/index/names.h"
#include "web/api.h"
#include "web/web_internal.h"

#define MEASURED_WEIGHT 0.01
#define NAMES_MIN 20     /* fewer texts are no names, however different they are */
#define FACET_VALUES 20  /* that are distinguished when facets are chosen */

struct filters_item {
	const struct column_info *column;
	const struct facet *facet;
	double score;
};

struct filters_split {
	struct filters_item *item;  /* best first, ties in the order columns were first seen */
	size_t n;
	size_t total;               /* rows that match */
};

double filters_entropy(const size_t *count, size_t n)
{
	double total = 0, bits = 0;

	for (size_t i = 0; i < n; i++)
		total += (double)count[i];
	for (size_t i = 0; i < n; i++)
		if (count[i])
			bits -= (double)count[i] / total * log2((double)count[i] / total);
	return bits;
}

/* ---- from facets ---- */

static double weight_of(const struct column_info *c, size_t distinct, size_t rows)
{
	bool is_named = c->has_text && distinct > NAMES_MIN && distinct * 2 > rows;

	return is_named || column_name(c->name).is_outcome ? MEASURED_WEIGHT : 1;
}

static double score_of(const struct column_info *c, const struct facet *f, struct arena *a)
{
	size_t *count = arena_alloc(a, (f->n + f->n_bins + 2) * sizeof(*count));
	size_t n = 0, rows = f->missing + f->others;

	for (size_t i = 0; i < f->n; i++)
		rows += f->value[i].count;
	count[n++] = f->missing;
	if (f->is_range) {
		for (size_t i = 0; i < f->n_bins; i++)
			count[n++] = f->bin[i];
	} else {
		for (size_t i = 0; i < f->n; i++)
			count[n++] = f->value[i].count;
		count[n++] = f->others;
	}
	return filters_entropy(count, n) * weight_of(c, f->distinct, rows);
}

static int by_score(const void *a, const void *b)
{
	const struct filters_item *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	/* Infos are one array, in the order columns were first seen. */
	return x->column < y->column ? -1 : x->column > y->column;
}

static int split_columns(const struct index_view *v, const struct query *q, struct arena *a,
		  struct filters_split *out, struct err *e)
{
	size_t n;
	const struct column_info *info = index_columns(v, &n);
	struct str *name = arena_alloc(a, (n + 1) * sizeof(*name));
	struct query count = *q;
	struct answer answer;

	*out = (struct filters_split){ .n = n };
	out->item = arena_alloc(a, (n + 1) * sizeof(*out->item));
	for (size_t i = 0; i < n; i++)
		name[i] = info[i].name;
	count.limit = count.n_columns = count.n_sorts = count.n_statistics = 0;
	count.cursor = STR("");
	for (size_t at = 0; at < n || at == 0; at += QUERY_FACETS_MAX) {
		count.facet = name + at;
		count.n_facets = n - at < QUERY_FACETS_MAX ? n - at : QUERY_FACETS_MAX;
		if (index_query(v, &count, a, &answer, e) < 0)
			return -1;
		out->total = answer.total;
		for (size_t i = 0; i < answer.n_facets; i++)
			out->item[at + i] = (struct filters_item){
				&info[at + i], &answer.facet[i],
				score_of(&info[at + i], &answer.facet[i], a),
			};
	}
	qsort(out->item, n, sizeof(*out->item), by_score);
	return 0;
}

/* ---- from a sample ---- */

/* Counts of the different values in column c of the sample's rows; returns how many. */
static size_t count_values(const struct answer *rows, size_t c, size_t *count)
{
	size_t n = 0, at[FILTERS_SAMPLE_ROWS];

	for (size_t i = 0; i < rows->n_rows; i++) {
		struct value v = rows->row[i].value[c];
		size_t k = 0;

		while (k < n && !value_same(rows->row[at[k]].value[c], v))
			k++;
		if (k == n) {
			count[n] = 0;
			at[n++] = i;
		}
		count[k]++;
	}
	return n;
}

static int sample(const struct index_view *v, const struct query *q, const struct str *name,
		  const struct column_info *const *info, size_t n, struct arena *a,
		  struct filters_item *item, struct err *e)
{
	struct query few = { .filter = q->filter, .shown = q->shown,
			     .only_flagged = q->only_flagged, .limit = FILTERS_SAMPLE_ROWS,
			     .column = name, .n_columns = n };
	size_t count[FILTERS_SAMPLE_ROWS];
	struct answer rows;

	if (index_query(v, &few, a, &rows, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		size_t distinct = count_values(&rows, i, count);

		item[i] = (struct filters_item){ .column = info[i] };
		item[i].score = filters_entropy(count, distinct) *
			weight_of(info[i], distinct, rows.n_rows);
		/* What only older runs differ in comes next, before what never differs. */
		if (item[i].score == 0)
			item[i].score = 1e-6 / (double)(info[i]->distinct + 1);
	}
	return 0;
}

static void take_facets(struct query *q, const struct filters_item *item, size_t n, struct arena *a)
{
	struct str *facet = arena_alloc(a, FILTERS_AUTO_FACETS * sizeof(*facet));

	q->facet = facet;
	q->n_facets = 0;
	for (size_t i = 0; i < n && q->n_facets < FILTERS_AUTO_FACETS; i++)
		if (item[i].score > 0)
			facet[q->n_facets++] = item[i].column->name;
}

/* True for texts that are nearly all different. */
static bool is_name(const struct column_info *c)
{
	return c->has_text && c->distinct > NAMES_MIN && c->distinct * 2 > c->present;
}

/* Counts distinct values in all rows that match. */
static int count_all(const struct index_view *v, const struct query *q, const struct str *name,
		     const struct column_info *const *info, size_t n, struct arena *a,
		     struct filters_item *item, struct err *e)
{
	struct query count = { .filter = q->filter, .shown = q->shown,
			       .only_flagged = q->only_flagged, .facet = name, .n_facets = n,
			       .facet_values_max = FACET_VALUES, .histogram_bins = FACET_VALUES };
	struct answer answer;

	if (index_query(v, &count, a, &answer, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		item[i] = (struct filters_item){ info[i], &answer.facet[i],
						 score_of(info[i], &answer.facet[i], a) };
	return 0;
}

/* Adds measured columns after the parameters, in the order they were first seen. */
static void add_measured(const struct index_view *v, struct query *q, struct arena *a)
{
	size_t n, shown = q->n_facets;
	const struct column_info *info = index_columns(v, &n);
	struct str *facet = arena_alloc(a, FILTERS_AUTO_FACETS * sizeof(*facet));

	if (shown)
		memcpy(facet, q->facet, shown * sizeof(*facet));
	for (size_t i = 0; i < n && shown < FILTERS_AUTO_FACETS; i++)
		if (info[i].distinct > 1 && column_name(info[i].name).is_metric)
			facet[shown++] = info[i].name;
	q->facet = facet;
	q->n_facets = shown;
}

int filters_auto_facets(const struct index_view *v, struct query *q, struct arena *a,
			struct err *e)
{
	struct query none = { .filter = q->filter, .shown = q->shown,
			      .only_flagged = q->only_flagged };
	size_t n_all, n = 0;
	const struct column_info *info = index_columns(v, &n_all);
	const struct column_info **some = arena_alloc(a, (n_all + 1) * sizeof(*some));
	struct filters_item *item = arena_alloc(a, (n_all + 1) * sizeof(*item));
	struct str *name = arena_alloc(a, (n_all + 1) * sizeof(*name));
	struct answer answer;
	bool is_small;

	if (index_query(v, &none, a, &answer, e) < 0)
		return -1;
	for (size_t i = 0; i < n_all; i++)
		if ((info[i].distinct > 1 || info[i].present < answer.total) &&
		    !str_is(info[i].name, FOLD_COLUMN) && !is_name(&info[i]) &&
		    !column_name(info[i].name).is_outcome) {
			name[n] = info[i].name;
			some[n++] = &info[i];
		}
	is_small = answer.total * n <= FILTERS_EXACT_CELLS_MAX && n <= QUERY_FACETS_MAX;
	if ((is_small ? count_all : sample)(v, q, name, some, n, a, item, e) < 0)
		return -1;
	qsort(item, n, sizeof(*item), by_score);
	take_facets(q, item, n, a);
	add_measured(v, q, a);
	return 0;
}

/* ---- usual choices ---- */

static const char *const main_columns[] = {
	"run_id", "timestamp", "name", "suite", "status", "verdict", "server.model",
	"server.tensor_parallel_size", "hardware.gpu", "benchmark.dataset_name",
	"benchmark.request_rate", "benchmark.max_concurrency", "request_throughput",
	"output_throughput", "median_ttft_ms", "p95_ttft_ms", "p99_ttft_ms", "median_tpot_ms",
	"p99_tpot_ms", "median_e2el_ms", "completed", "failed",
};
static const char *const usual_statistics[] = {
	"request_throughput", "output_throughput", "total_token_throughput", "median_ttft_ms",
	"p95_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_e2el_ms",
};

static struct str *those_of_view(const struct index_view *v, struct arena *a,
				 const char *const *names, size_t n, size_t *out_n)
{
	struct str *out = arena_alloc(a, (n + 1) * sizeof(*out));

	*out_n = 0;
	for (size_t i = 0; i < n; i++)
		if (index_column(v, str_of(names[i])))
			out[(*out_n)++] = str_of(names[i]);
	return out;
}

void filters_main_columns(const struct index_view *v, struct arena *a, struct query *q)
{
	q->column = those_of_view(v, a, main_columns,
				  sizeof(main_columns) / sizeof(*main_columns), &q->n_columns);
}

void filters_usual_statistics(const struct index_view *v, struct arena *a, struct query *q)
{
	q->statistic = those_of_view(v, a, usual_statistics,
				     sizeof(usual_statistics) / sizeof(*usual_statistics),
				     &q->n_statistics);
}

#define PRESET_NAME_BYTES_MAX 200
#define PRESET_BODY_BYTES_MAX (256u << 10)
#define BOARD_BODY_BYTES_MAX PRESET_BYTES_MAX /* with the answers of frozen blocks in it */
#define PRESETS_MAX 1000                  /* all of them are in one answer */
#define PRESETS_BYTES_MAX (16u << 20)     /* their bodies together */

/* ---- GET /api/filters/options ---- */

static const char *kind_of(const struct column_info *c)
{
	int kinds = c->has_bool + c->has_number + c->has_text;

	return kinds != 1 ? "mixed" : c->has_bool ? "bool" : c->has_number ? "number" : "text";
}

static void put_name(struct json_writer *w, struct str name, const struct column_name *n)
{
	struct buf label = { 0 };

	column_label(name, &label);
	json_member_str(w, "column", name);
	json_member_str(w, "group", n->group);
	json_member_str(w, "label", buf_str(&label));
	buf_release(&label);
}

static void put_values(struct json_writer *w, const struct facet *f)
{
	json_member_array(w, "values");
	for (size_t i = 0; i < f->n; i++) {
		json_begin_object(w);
		json_key(w, "value");
		value_put(w, f->value[i].value);
		json_member_int(w, "count", (int64_t)f->value[i].count);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_option(struct json_writer *w, const struct column_info *c, const struct facet *f,
		       const struct column_split *s)
{
	struct column_name name = column_name(c->name);

	json_begin_object(w);
	put_name(w, c->name, &name);
	json_member_text(w, "role", column_role_name(column_role(c->name)));
	data_put_key_or_null(w, "short", str_of(column_short(c->name)));
	json_member_bool(w, "differs", s && s->differs);
	data_put_key_or_null(w, "same_as", s ? s->same_as : STR(""));
	json_member_text(w, "kind", kind_of(c));
	data_put_key_or_null(w, "unit", str_of(name.unit));
	json_member_text(w, "better", name.better > 0 ? "higher" : name.better < 0 ? "lower" :
			 NULL);
	json_member_int(w, "distinct", (int64_t)f->distinct);
	json_member_int(w, "missing", (int64_t)f->missing);
	json_member_bool(w, "is_constant", facet_is_constant(f));
	if (!f->is_range || !name.is_metric)
		put_values(w, f);
	if (f->is_range) {
		data_put_histogram(w, f);
	} else {
		data_put_key_number(w, "min", f->min);
		data_put_key_number(w, "max", f->max);
	}
	json_end_object(w);
}

static int make_options(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_FACET_VALUES | ASK_BINS;
	struct columns_split differing;
	struct filters_split split;
	struct ask ask;
	size_t n;

	if (asked_query(r, a, members, &ask, e) < 0)
		return -1;
	index_columns(r->view, &n);
	if (asked_facet_cells(&ask.query, n, r->arena, a, e) < 0 ||
	    split_columns(r->view, &ask.query, r->arena, &split, e) < 0)
		return -1;
	columns_split_make(r->view, &ask.query, r->arena, &differing);
	json_member_int(&a->json, "total",
			(int64_t)split.n - !!index_column(r->view, STR(FOLD_COLUMN)));
	json_member_int(&a->json, "runs", (int64_t)split.total);
	json_member_array(&a->json, "items");
	for (size_t i = 0; i < split.n; i++)
		if (!str_is(split.item[i].column->name, FOLD_COLUMN))
			put_option(&a->json, split.item[i].column, split.item[i].facet,
				   columns_split_find(&differing, split.item[i].column->name));
	json_end_array(&a->json);
	json_member_null(&a->json, "next");
	return 0;
}

/*
 * Every page asks for them, and they depend only on the data and the query: hundreds of columns,
 * each with its values, take longer to make than to send.
 */
static int options(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const char *text = arena_printf(r->arena, "%s %.*s", r->route->path, (int)r->query.n,
					r->query.p ? r->query.p : "");
	uint64_t version = index_view_version(r->view);
	size_t from = a->body.len;
	int rc;

	if (answers_get(&r->web->kept, version, str_of(text), &a->json))
		return 0;
	rc = make_options(r, a, e);
	if (rc == 0 && !a->body.is_over)
		answers_put(&r->web->kept, version, str_of(text),
			    (struct str){ a->body.data + from, a->body.len - from });
	answers_end(&r->web->kept, version, str_of(text));
	return rc;
}

/* ---- POST /api/filters/apply ---- */

static int apply(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_SORT | ASK_LIMIT | ASK_CURSOR |
		ASK_COLUMNS | ASK_FACETS | ASK_FACET_VALUES | ASK_BINS | ASK_STATISTICS |
		ASK_GROUP;
	struct columns_split differing;
	struct answer answer;
	struct ask ask;
	bool is_first;

	if (asked_read(r->body, members, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	is_first = !ask.query.cursor.n;
	if (is_first || !ask.query.column)
		columns_split_make(r->view, &ask.query, r->arena, &differing);
	if (!ask.query.column &&
	    filters_usual_columns(r->view, &differing, r->arena, &ask.query, e) < 0)
		return -1;
	if (ask.has_auto_facets &&
	    filters_auto_facets(r->view, &ask.query, r->arena, e) < 0)
		return -1;
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return asked_page_failed(a, r->arena, e);
	data_put_page(&a->json, &ask.query, &answer);
	json_member_array(&a->json, "facets");
	for (size_t i = 0; i < answer.n_facets; i++)
		data_put_facet(&a->json, &answer.facet[i]);
	json_end_array(&a->json);
	data_put_statistics(&a->json, &answer);
	if (is_first)
		return filters_put_constants(&a->json, r->view, &ask.query, &differing, r->arena,
					     e);
	return 0;
}

/* ---- presets and boards: a name and a body that only the pages read ---- */

static const char *saved_kind(const struct web_request *r)
{
	return str_starts(r->path, STR("/api/boards")) ? "board" : "preset";
}

static int presets(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct preset *p;
	size_t n;

	if (store_presets(r->store, saved_kind(r), r->arena, &p, &n, e) < 0)
		return -1;
	json_member_array(&a->json, "items");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&a->json);
		json_member_int(&a->json, "id", p[i].id);
		json_member_str(&a->json, "name", p[i].name);
		json_member_foreign(&a->json, "body", p[i].body);
		data_put_key_number(&a->json, "at", p[i].at_s);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

/* "filters": F is short for "body": {"filter": F}. */
static const struct json_value *preset_body(const struct web_request *r)
{
	const struct json_value *filters = json_get(r->body, "filters");
	struct json_value *body;

	if (!filters)
		return json_get(r->body, "body");
	body = arena_alloc(r->arena, sizeof(*body));
	*body = (struct json_value){ .kind = JSON_OBJECT, .item = (struct json_value *)filters,
				     .count = 1 };
	body->key = arena_alloc(r->arena, sizeof(*body->key));
	body->key[0] = STR("filter");
	return body;
}

/* Name and body of the request, where they are given. */
static int read_preset(const struct web_request *r, struct web_answer *a, bool is_new,
		       struct str *name, struct str *body, struct err *e)
{
	const struct json_value *given = preset_body(r);
	const struct json_value *was = json_get(r->body, "was");
	bool is_board = str_starts(r->path, STR("/api/boards"));
	struct buf text = { .limit = is_board ? BOARD_BODY_BYTES_MAX : PRESET_BODY_BYTES_MAX };
	struct json_writer w = json_writer(&text);
	bool is_over;

	if (json_get(r->body, "filters") && json_get(r->body, "body"))
		return asked_wrong(a, e, r->arena, "/filters", "either body or filters");
	if (asked_object(r, a, is_new ? "name body filters" : "name body filters was", e) < 0 ||
	    asked_text(r, a, "name", PRESET_NAME_BYTES_MAX, is_new, name, e) < 0)
		return -1;
	if (!is_new && json_get(r->body, "name") && !name->n)
		return asked_wrong(a, e, r->arena, "/name", "a name");
	if (was && isnan(json_real(was, (double)NAN)))
		return asked_wrong(a, e, r->arena, "/was", "the `at` of what was read");
	if (!given)
		return is_new ? asked_wrong(a, e, r->arena, "/body", "what is to be saved") : 0;
	json_put_value(&w, given);
	is_over = text.is_over;
	*body = arena_str(r->arena, buf_str(&text));
	buf_release(&text);
	if (!is_over)
		return 0;
	a->pointer = STR("/body");
	return asked_refuse(a, 413, e, "/body: expected at most %u bytes (%s)%s",
			    is_board ? BOARD_BODY_BYTES_MAX : PRESET_BODY_BYTES_MAX,
			    is_board ? "BOARD_BODY_BYTES_MAX" : "PRESET_BODY_BYTES_MAX",
			    is_board ? "; unfreeze a block or begin another board" : "");
}

/* Errors of the store: the name is taken, or the preset was changed since "was". */
static int put_preset(const struct web_request *r, struct web_answer *a, struct preset put,
		      struct err *e)
{
	const struct json_value *was = json_get(r->body, "was");
	double was_s = json_real(was, (double)NAN);

	if (store_preset_put(r->store, saved_kind(r), &put, was_s, e) < 0) {
		if (e->code == ERR_USAGE && put.at_s > 0)
			a->pointer = STR("/was");
		return asked_usage(a, 409, e);
	}
	json_member_int(&a->json, "id", put.id);
	data_put_key_number(&a->json, "at", put.at_s);
	return 0;
}

static int check_room(const struct web_request *r, struct web_answer *a, size_t bytes,
		      struct err *e)
{
	struct preset *p;
	size_t n;

	if (store_presets(r->store, saved_kind(r), r->arena, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		bytes += p[i].body.n;
	if (n < PRESETS_MAX && bytes <= PRESETS_BYTES_MAX)
		return 0;
	return asked_refuse(a, 422, e, "there are %zu %ss of %zu bytes with this one, and at most %d "
			    "of %u bytes are kept (PRESETS_MAX, PRESETS_BYTES_MAX); delete some of them",
			    n + 1, saved_kind(r), bytes, PRESETS_MAX, PRESETS_BYTES_MAX);
}

static int preset_add(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str name = STR(""), body = STR("");

	if (read_preset(r, a, true, &name, &body, e) < 0 || check_room(r, a, body.n, e) < 0 ||
	    put_preset(r, a, (struct preset){ .name = name, .body = body }, e) < 0)
		return -1;
	a->status = 201;
	return 0;
}

static int preset_change(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str name = STR(""), body = STR("");
	struct preset *p, *old = NULL;
	int64_t id;
	size_t n, bytes = 0;

	if (asked_number(r, a, saved_kind(r), &id, e) < 0 ||
	    read_preset(r, a, false, &name, &body, e) < 0 ||
	    store_presets(r->store, saved_kind(r), r->arena, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (p[i].id == id)
			old = &p[i];
	if (!old)
		return asked_refuse(a, 404, e, "there is no %s %lld", saved_kind(r),
				    (long long)id);
	for (size_t i = 0; i < n; i++)
		bytes += p[i].body.n;
	if (body.n > old->body.n && bytes - old->body.n + body.n > PRESETS_BYTES_MAX)
		return asked_refuse(a, 422, e, "all %ss together may have at most %u bytes "
				    "(PRESETS_BYTES_MAX); delete some of them", saved_kind(r),
				    PRESETS_BYTES_MAX);
	return put_preset(r, a, (struct preset){ .id = id, .name = name, .body = body }, e);
}

static int preset_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t id;

	if (asked_number(r, a, saved_kind(r), &id, e) < 0)
		return -1;
	return store_preset_drop(r->store, saved_kind(r), id, e) < 0 ? asked_usage(a, 404, e) : 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/filters/options", ROUTE_READS, options },
	{ "POST", "/api/filters/apply", ROUTE_READS, apply },
	{ "GET", "/api/filters/presets", 0, presets },
	{ "POST", "/api/filters/presets", ROUTE_CHANGES, preset_add },
	{ "PUT", "/api/filters/presets/{id}", ROUTE_CHANGES, preset_change },
	{ "DELETE", "/api/filters/presets/{id}", ROUTE_CHANGES, preset_drop },
	{ "GET", "/api/boards", 0, presets },
	{ "POST", "/api/boards", ROUTE_CHANGES, preset_add },
	{ "PUT", "/api/boards/{id}", ROUTE_CHANGES, preset_change },
	{ "DELETE", "/api/boards/{id}", ROUTE_CHANGES, preset_drop },
};
const struct web_routes filters_routes = { routes, sizeof(routes) / sizeof(*routes) };
