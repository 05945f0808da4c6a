/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - helpers of all analyses; see analyse_internal.h. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/schema/schema.h"
#include "core/stats/stats.h"
#include "results/analyse/analyse_internal.h"

/* ---- requests ---- */

int parts_refuse(struct err *e, const char *pointer, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(e, ERR_USAGE, "%s: %s", pointer, text);
}

int parts_column(const struct analyse_request *r, const char *key, struct str *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, key);

	if (!v || v->kind != JSON_STRING || !v->text.n)
		return err_set(e, ERR_USAGE, "/%s: expected the name of a column%s", key,
			       v ? "" : ", and there is none");
	*out = v->text;
	return 0;
}

int parts_metric(const struct analyse_request *r, const char *key, struct str *out, struct err *e)
{
	const struct column_info *info;

	if (parts_column(r, key, out, e) < 0)
		return -1;
	info = index_column(r->view, *out);
	if (info && !info->has_number && (info->has_text || info->has_bool))
		return err_set(e, ERR_USAGE, "/%s: expected a metric; %.*s holds no numbers", key,
			       (int)out->n, out->p);
	return 0;
}

int parts_columns(const struct analyse_request *r, const char *key, struct str **out, size_t *n,
		  struct err *e)
{
	const struct json_value *v = json_get(r->body, key);
	size_t count = !v || v->kind == JSON_NULL ? 0 : v->kind == JSON_ARRAY ? v->count : 1;

	*n = 0;
	*out = arena_alloc(r->arena, (count + 1) * sizeof(**out));
	if (count > ANALYSE_COLUMNS_MAX)
		return err_set(e, ERR_USAGE, "/%s: %zu columns are more than the limit of %d", key,
			       count, ANALYSE_COLUMNS_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct json_value *one = v->kind == JSON_ARRAY ? &v->item[i] : v;
		bool is_old = false;

		if (one->kind != JSON_STRING || !one->text.n)
			return v->kind == JSON_ARRAY ?
				err_set(e, ERR_USAGE, "/%s/%zu: expected the name of a column",
					key, i) :
				err_set(e, ERR_USAGE, "/%s: expected a list of columns", key);
		for (size_t k = 0; k < *n; k++)
			is_old |= str_eq((*out)[k], one->text);
		if (!is_old)
			(*out)[(*n)++] = one->text;
	}
	return 0;
}

int parts_number(const struct json_value *object, const char *pointer, const char *key,
		 double otherwise, double min, double max, double *out, struct err *e)
{
	const struct json_value *v = json_get(object, key);

	*out = otherwise;
	if (!v || v->kind == JSON_NULL)
		return 0;
	*out = json_real(v, NAN);
	if ((v->kind == JSON_INT || v->kind == JSON_REAL) && *out >= min && *out <= max)
		return 0;
	return err_set(e, ERR_USAGE, "%s/%s: expected a number from %g to %g", pointer, key, min,
		       max);
}

int parts_whole(const struct json_value *object, const char *pointer, const char *key,
		size_t otherwise, size_t min, size_t max, size_t *out, struct err *e)
{
	double v;

	if (parts_number(object, pointer, key, (double)otherwise, (double)min, (double)max, &v,
			 e) < 0)
		return -1;
	*out = (size_t)v;
	if (v > trunc(v))
		return err_set(e, ERR_USAGE, "%s/%s: expected a whole number", pointer, key);
	return 0;
}

const char *const parts_series_default[] = {
	"mode", "server.model", "hardware.gpu", "hardware.gpus", "server.gpu", "environment.driver",
	"measured_lengths", "tags.gpu", "tags.gpu_model", "tags.gpu_type",
	"server.tensor_parallel_size", "server.pipeline_parallel_size", "server.data_parallel_size",
	"server.quantization", "server.dtype", "benchmark.backend", "benchmark.dataset_name",
	"benchmark.num_prompts", "benchmark.random_input_len", "benchmark.random_output_len",
	"benchmark.input_len", "benchmark.output_len", "benchmark.batch_size",
	"benchmark.random_input_len_dist", "benchmark.random_output_len_dist",
	"benchmark.random_prefix_len", "benchmark.random_range_ratio", "benchmark.hf_name",
	"benchmark.multi_turn", "benchmark.multi_turn_num_turns",
	"benchmark.request_rate", "benchmark.max_concurrency", NULL,
};

struct str *parts_present(const struct analyse_request *r, const char *const *list, size_t *n)
{
	size_t count = 0;
	struct str *out;

	while (list[count])
		count++;
	out = arena_alloc(r->arena, (count + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0; i < count; i++)
		if (index_column(r->view, str_of(list[i])))
			out[(*n)++] = str_of(list[i]);
	return out;
}

/* ---- runs ---- */

int parts_select(const struct analyse_request *r, const struct str *column, size_t n_columns,
		 struct rows *out, struct err *e)
{
	struct filter *f;

	if (filter_read(json_get(r->body, "filter"), "/filter", r->arena, &f, e) < 0)
		return -1;
	return parts_select_by(r, f, column, n_columns, out, e);
}

int parts_select_by(const struct analyse_request *r, const struct filter *f,
		    const struct str *column, size_t n_columns, struct rows *out, struct err *e)
{
	const size_t n_all = n_columns + COUNTED_COLUMNS;
	struct query q = { .filter = f };
	struct answer count;
	struct str *all;

	assert(r->view && r->arena);
	all = arena_alloc(r->arena, n_all * sizeof(*all));
	*out = (struct rows){ 0 };
	if (parts_bool(r->body, "include_invalid", &out->verdicts.is_everything, e) < 0)
		return -1;
	if (index_query(r->view, &q, r->arena, &count, e) < 0)
		return -1;
	if (count.total * (n_all + 1) > ANALYSE_CELLS_MAX)
		return parts_refuse(e, "/filter", "%s runs match; at most %s can be analysed at "
				    "once with %zu columns: narrow the filter",
				    arena_count(r->arena, count.total),
				    arena_count(r->arena, ANALYSE_CELLS_MAX / (n_all + 1)),
				    n_columns);
	for (size_t c = 0; c < n_all; c++)
		all[c] = c < n_columns ? column[c] : counted_columns[c - n_columns];
	if (index_select(r->view, f, 0, all, n_all, r->arena, &out->id, &out->n, &out->value,
			 e) < 0)
		return -1;
	for (size_t c = 0; c < COUNTED_COLUMNS; c++)
		out->verdicts.value[c] = out->value + (n_columns + c) * out->n;
	return 0;
}

struct filter *parts_both(struct arena *a, const struct filter *x, const struct filter *y)
{
	struct filter *both = arena_alloc(a, sizeof(*both));

	both->kind = FILTER_AND;
	both->part = arena_alloc(a, 2 * sizeof(*both->part));
	if (x)
		both->part[both->n_parts++] = (struct filter *)x;
	if (y)
		both->part[both->n_parts++] = (struct filter *)y;
	return both;
}

int parts_newest(const struct analyse_request *r, const struct filter *f, size_t most,
		 struct filter **out, size_t *matching, struct err *e)
{
	static const struct str time = { "timestamp", 9 };
	const struct query counted = { .filter = f };
	struct arena scratch = { 0 };
	struct answer count;
	struct value *at;
	double *time_s, oldest_s;
	int64_t *id;
	size_t n, n_times = 0;

	*out = NULL;
	if (index_query(r->view, &counted, r->arena, &count, e) < 0)
		return -1;
	*matching = count.total;
	if (count.total <= most)
		return 0;
	if (index_select(r->view, f, 0, &time, 1, &scratch, &id, &n, &at, e) < 0) {
		arena_release(&scratch);
		return -1;
	}
	time_s = arena_alloc(&scratch, (n + 1) * sizeof(*time_s));
	for (size_t i = 0; i < n; i++)
		if (at[i].kind == VALUE_NUMBER)
			time_s[n_times++] = at[i].number;
	/* Ordered as a page is, the last of the newest has none where there are fewer times. */
	if (n_times >= most) {
		oldest_s = stats_select(time_s, n_times, n_times - most);
		*out = arena_alloc(r->arena, sizeof(**out));
		**out = (struct filter){ .kind = FILTER_RANGE, .column = time, .min = oldest_s,
					 .max = INFINITY };
	}
	arena_release(&scratch);
	return 0;
}

bool parts_is_number(struct value v, double *out)
{
	if (v.kind != VALUE_NUMBER || !(fabs(v.number) <= ANALYSE_NUMBER_MAX))
		return false;
	*out = v.number;
	return true;
}

double parts_number_at(const struct rows *rows, size_t column, size_t row)
{
	double v;

	return parts_is_number(rows->value[column * rows->n + row], &v) ? v : NAN;
}

/* ---- series ---- */

void parts_add_key(struct buf *b, struct value v)
{
	char kind = (char)(value_is_missing(v) ? VALUE_ABSENT : v.kind);

	buf_add_char(b, kind);
	if (v.kind == VALUE_BOOL)
		buf_add_char(b, (char)v.is_true);
	if (v.kind == VALUE_NUMBER) {
		double number = v.number + 0.0; /* -0 is 0 */

		buf_add(b, &number, sizeof(number));
	}
	if (v.kind == VALUE_TEXT) {
		buf_add(b, &v.text.n, sizeof(v.text.n));
		buf_add_str(b, v.text);
	}
}

const char *parts_cell_text(struct arena *a, struct value v)
{
	switch (v.kind) {
	case VALUE_BOOL:
		return v.is_true ? "true" : "false";
	case VALUE_NUMBER:
		return arena_printf(a, "%.10g", v.number);
	case VALUE_TEXT:
		return arena_text(a, v.text);
	default:
		return "not set";
	}
}

struct str parts_last_word(struct str column)
{
	const char *dot = memrchr(column.p, '.', column.n);

	return dot ? (struct str){ dot + 1, column.n - (size_t)(dot + 1 - column.p) } : column;
}

/* Adds the column's name for numbers; other texts are clear without it. */
static void name_part(struct buf *b, struct arena *a, struct str column, struct value v,
		      const char *apart)
{
	struct str word = parts_last_word(column);
	double number;

	if (b->len)
		buf_add_text(b, apart);
	if (v.kind != VALUE_TEXT || str_to_f64(v.text, &number)) {
		buf_add_str(b, word);
		buf_add_char(b, value_is_missing(v) ? ' ' : '=');
	}
	buf_add_text(b, parts_cell_text(a, v));
}

/* Whether key k distinguishes series: two have different values, or (is_strict) one has none. */
static bool tells_apart(const struct series_list *l, size_t k, bool is_strict)
{
	const struct value *column = l->rows->value + k * l->rows->n;
	const struct value *first = NULL;
	size_t missing = 0;

	for (size_t i = 0; i < l->shown; i++) {
		const struct value *v = &column[l->series[i].row];

		if (value_is_missing(*v)) {
			missing++;
			continue;
		}
		if (first && !value_same(*first, *v))
			return true;
		first = first ? first : v;
	}
	return is_strict && missing && missing < l->shown;
}

static void make_name(struct arena *a, const struct series_list *l, struct series *s,
		      const bool *in_name)
{
	const struct rows *rows = l->rows;
	struct buf name = { 0 }, id = { 0 };

	for (size_t k = 0; k < l->n_keys; k++) {
		struct value v = rows->value[k * rows->n + s->row];

		if (in_name[k] || (l->n == 1 && !value_is_missing(v) && !name.len))
			name_part(&name, a, l->key[k], v, ", ");
		if (!value_is_missing(v))
			buf_printf(&id, "%s%.*s=%s", id.len ? " " : "", (int)l->key[k].n,
				   l->key[k].p, parts_cell_text(a, v));
	}
	s->name = arena_text(a, name.len ? buf_str(&name) : STR("all runs"));
	s->id = arena_text(a, id.len ? buf_str(&id) : STR("all"));
	buf_release(&name);
	buf_release(&id);
}

static bool has_same_names(const struct series_list *l)
{
	for (size_t i = 0; i < l->shown; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(str_of(l->series[i].name), str_of(l->series[k].name)))
				return true;
	return false;
}

/* Shortest distinguishing names; a run of another kind, without most keys, lengthens no name. */
void parts_name_series(struct arena *a, struct series_list *l)
{
	bool *in_name = arena_alloc(a, l->n_keys + 1);

	for (int strict = 0; strict < 2; strict++) {
		for (size_t k = 0; k < l->n_keys; k++)
			in_name[k] = tells_apart(l, k, strict);
		for (size_t i = 0; i < l->shown; i++)
			make_name(a, l, &l->series[i], in_name);
		if (!has_same_names(l))
			return;
	}
}

static int by_size(const void *x, const void *y)
{
	const struct series *a = x, *b = y;

	return a->n != b->n ? (a->n > b->n ? -1 : 1) : (a->row > b->row) - (a->row < b->row);
}

/* The series of each row; SIZE_MAX: left out. */
static size_t number_rows(struct arena *a, struct series_list *l, const bool *keep, size_t *of)
{
	const struct rows *rows = l->rows;
	struct map seen = { 0 };
	struct buf key = { 0 };
	size_t cap = 0;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t at;

		of[i] = SIZE_MAX;
		if (keep && !keep[i])
			continue;
		buf_reset(&key);
		for (size_t k = 0; k < l->n_keys; k++)
			parts_add_key(&key, rows->value[k * rows->n + i]);
		buf_add_char(&key, 0);
		if (!map_get(&seen, buf_str(&key), &at)) {
			if (l->n == cap) {
				struct series *more;

				cap = cap ? 2 * cap : 16;
				more = arena_alloc(a, cap * sizeof(*more));
				if (l->n)
					memcpy(more, l->series, l->n * sizeof(*more));
				l->series = more;
			}
			at = l->n;
			l->series[l->n++] = (struct series){ .row = i };
			map_put(&seen, arena_str(a, buf_str(&key)), at);
		}
		of[i] = (size_t)at;
		l->series[at].n++;
	}
	map_release(&seen);
	buf_release(&key);
	return l->n;
}

void parts_series(struct arena *a, const struct rows *rows, const struct str *key, size_t n_keys,
		  const bool *keep, struct series_list *out)
{
	size_t *of = arena_alloc(a, (rows->n + 1) * sizeof(*of));

	*out = (struct series_list){ .key = key, .n_keys = n_keys, .rows = rows };
	number_rows(a, out, keep, of);
	for (size_t s = 0; s < out->n; s++) {
		out->series[s].member = arena_alloc(a, out->series[s].n * sizeof(size_t));
		out->series[s].n = 0;
	}
	for (size_t i = 0; i < rows->n; i++)
		if (of[i] != SIZE_MAX) {
			struct series *s = &out->series[of[i]];

			s->member[s->n++] = i;
		}
	if (out->n)
		qsort(out->series, out->n, sizeof(*out->series), by_size);
	out->shown = out->n < ANALYSE_SERIES_MAX ? out->n : ANALYSE_SERIES_MAX;
	parts_name_series(a, out);
}

void parts_put_series(struct json_writer *w, const struct series_list *l, size_t i)
{
	const struct rows *rows = l->rows;

	json_member_object(w, "key");
	for (size_t k = 0; k < l->n_keys; k++) {
		struct value v = rows->value[k * rows->n + l->series[i].row];

		if (value_is_missing(v))
			continue;
		json_key_str(w, l->key[k]);
		value_put(w, v);
	}
	json_end_object(w);
	json_member_text(w, "name", l->series[i].name);
}

/* ---- out ---- */

void parts_put_double(struct json_writer *w, double v)
{
	value_put_number(w, v + 0.0); /* -0 is 0 */
}

void parts_put_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	parts_put_double(w, v);
}

void parts_put_value(struct json_writer *w, const char *key, struct value v)
{
	json_key(w, key);
	value_put(w, v);
}

void parts_put_count(struct json_writer *w, const char *key, size_t n)
{
	json_member_int(w, key, (int64_t)n);
}

void parts_put_interval(struct json_writer *w, const char *key, double low, double high)
{
	json_key(w, key);
	if (!isfinite(low) || !isfinite(high)) {
		json_put_null(w);
		return;
	}
	json_begin_array(w);
	parts_put_double(w, low);
	parts_put_double(w, high);
	json_end_array(w);
}

void parts_put_kind(struct json_writer *w, struct str column)
{
	struct column_name c = column_name(column);

	json_member_text(w, "unit", *c.unit ? c.unit : NULL);
	json_member_text(w, "better", c.better > 0 ? "higher" : c.better < 0 ? "lower" : NULL);
}

void parts_put_axis(struct json_writer *w, const char *key, struct str column)
{
	json_member_object(w, key);
	json_member_str(w, "column", column);
	parts_put_kind(w, column);
	json_end_object(w);
}

void parts_put_ids(struct json_writer *w, const struct rows *rows, const size_t *member, size_t n)
{
	json_member_array(w, "ids");
	for (size_t i = 0; i < n && i < ANALYSE_IDS_SHOWN_MAX; i++)
		json_put_int(w, rows->id[member[i]]);
	json_end_array(w);
}

void parts_note(struct notes *n, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (n->n == ANALYSE_NOTES_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n->text[n->n++] = arena_text(n->arena, str_of(text));
}

void parts_put_notes(struct json_writer *w, const struct notes *n)
{
	json_member_array(w, "notes");
	for (size_t i = 0; i < n->n; i++)
		json_put_text(w, n->text[i]);
	json_end_array(w);
}

double parts_median(double *x, size_t n)
{
	if (!n)
		return NAN;
	stats_sort(x, n);
	return stats_median(x, n);
}

int parts_bool(const struct json_value *body, const char *key, bool *out, struct err *e)
{
	const struct json_value *v = json_get(body, key);

	*out = json_bool(v, false);
	if (!v || v->kind == JSON_NULL || v->kind == JSON_TRUE || v->kind == JSON_FALSE)
		return 0;
	return err_set(e, ERR_USAGE, "/%s: expected true or false", key);
}

#define COLUMNS_AT_ONCE 256 /* of whole rows: 12 MB at most */
#define SHOWN_ALL (INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED)

/* ---- reading ---- */

/* The run that now goes by this run_id; 0: none. */
static int64_t id_of_run(const struct analyse_request *r, struct str run_id, struct err *e)
{
	struct value wanted = { .kind = VALUE_TEXT, .text = run_id };
	struct filter f = { .kind = FILTER_IN, .column = STR("run_id"), .value = &wanted,
			    .n_values = 1 };
	unsigned shown[] = { 0, SHOWN_ALL };
	int64_t *id;
	size_t n;

	for (size_t i = 0; i < 2; i++) {
		struct value *none;

		if (index_select(r->view, &f, shown[i], NULL, 0, r->arena, &id, &n, &none, e) < 0)
			return -1;
		if (n)
			return id[n - 1];
	}
	return 0;
}

static int by_id(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	return (a->id > b->id) - (a->id < b->id);
}

static int read_ids(const struct analyse_request *r, const struct json_value *list,
		    const char *pointer, struct side *out, struct err *e)
{
	size_t n = 0;

	if (list->kind != JSON_ARRAY || list->count > SIDE_IDS_MAX)
		return parts_refuse(e, pointer, "expected a list of at most %d runs",
				    SIDE_IDS_MAX);
	out->row = arena_alloc(r->arena, (list->count + 1) * sizeof(*out->row));
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *one = &list->item[i];
		int64_t id = one->kind == JSON_INT ? one->integer : -1;
		char place[160];
		unsigned flags;

		snprintf(place, sizeof(place), "%s/%zu", pointer, i);
		if (one->kind == JSON_STRING)
			id = id_of_run(r, one->text, e);
		else if (one->kind != JSON_INT)
			return parts_refuse(e, place, "expected the number or run_id of a run");
		if (id <= 0 || !index_row(r->view, id, r->arena, &out->row[i], &flags))
			return one->kind == JSON_INT ?
			       parts_refuse(e, place, "no run has the number %lld", (long long)id) :
			       parts_refuse(e, place, "no run has this run_id");
	}
	if (list->count)
		qsort(out->row, list->count, sizeof(*out->row), by_id);
	out->id = arena_alloc(r->arena, (list->count + 1) * sizeof(*out->id));
	for (size_t i = 0; i < list->count; i++)
		if (!n || out->row[i].id != out->id[n - 1]) {
			out->row[n] = out->row[i];
			out->id[n++] = out->row[i].id;
		}
	out->n = n;
	return 0;
}

int side_read(const struct analyse_request *r, const struct json_value *json, const char *pointer,
	      const char *name, struct side *out, struct err *e)
{
	const struct json_value *ids = json_get(json, "ids"), *by = json_get(json, "filter");
	struct str given = json_text(json_get(json, "name"), STR(""));
	struct filter *f;
	struct value *none;
	char place[128];

	*out = (struct side){ .name = given.n ? arena_text(r->arena, given) : name };
	if (!json || json->kind != JSON_OBJECT || (!ids && !by) || (ids && by))
		return parts_refuse(e, pointer, "expected an object with either ids or a filter");
	snprintf(place, sizeof(place), "%s/%s", pointer, ids ? "ids" : "filter");
	if (ids)
		return read_ids(r, ids, place, out, e);
	if (filter_read(by, place, r->arena, &f, e) < 0 ||
	    index_select(r->view, f, 0, NULL, 0, r->arena, &out->id, &out->n, &none, e) < 0)
		return -1;
	out->filter = f;
	return 0;
}

/* ---- columns ---- */

/* Runs of one kind mostly have a column in the same place: *place is where the last one had it. */
static struct value cell_of(const struct row *row, struct str column, size_t *place)
{
	if (*place < row->n && str_eq(row->cell[*place].column, column))
		return row->cell[*place].value;
	for (size_t i = 0; i < row->n; i++)
		if (str_eq(row->cell[i].column, column)) {
			*place = i;
			return row->cell[i].value;
		}
	return (struct value){ .kind = VALUE_ABSENT };
}

int side_column(const struct analyse_request *r, const struct side *s, struct str column,
		struct value **out, struct err *e)
{
	int64_t *id;
	size_t n, place = 0;

	assert(s->filter || s->row || !s->n);
	if (s->filter)
		return index_select(r->view, s->filter, 0, &column, 1, r->arena, &id, &n, out, e);
	*out = arena_alloc(r->arena, (s->n + 1) * sizeof(**out));
	for (size_t i = 0; i < s->n; i++)
		(*out)[i] = cell_of(&s->row[i], column, &place);
	return 0;
}

int side_put_runs(const struct analyse_request *r, const struct side *s, struct json_writer *w,
		  struct err *e)
{
	size_t shown = s->n < ANALYSE_IDS_SHOWN_MAX ? s->n : ANALYSE_IDS_SHOWN_MAX;
	struct value *configuration;

	if (side_column(r, s, STR("configuration"), &configuration, e) < 0)
		return -1;
	json_member_array(w, "ids");
	for (size_t i = 0; i < shown; i++)
		json_put_int(w, s->id[i]);
	json_end_array(w);
	json_member_array(w, "configurations");
	for (size_t i = 0; i < shown; i++)
		value_put(w, configuration[i]);
	json_end_array(w);
	return 0;
}

int side_verdicts(const struct analyse_request *r, const struct side *s, struct verdicts *out,
		struct err *e)
{
	*out = (struct verdicts){ 0 };
	if (parts_bool(r->body, "include_invalid", &out->is_everything, e) < 0)
		return -1;
	for (size_t c = 0; c < COUNTED_COLUMNS; c++) {
		struct value *v;

		if (side_column(r, s, counted_columns[c], &v, e) < 0)
			return -1;
		out->value[c] = v;
	}
	return 0;
}

/* ---- counts ---- */

static int by_count(const void *x, const void *y)
{
	const struct value_count *a = x, *b = y;

	return a->count != b->count ? (a->count > b->count ? -1 : 1)
				    : value_compare(a->value, b->value);
}

static void count_values(struct arena *a, struct value *v, size_t n, struct value_counts *out)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == VALUE_NULL)
			v[i].kind = VALUE_ABSENT;
	if (n)
		qsort(v, n, sizeof(*v), value_order);
	out->of = arena_alloc(a, (n + 1) * sizeof(*out->of));
	for (size_t i = 0; i < n; i++) {
		if (!i || !value_same(v[i - 1], v[i]))
			out->of[out->distinct++].value = v[i];
		out->of[out->distinct - 1].count++;
	}
	if (out->distinct)
		qsort(out->of, out->distinct, sizeof(*out->of), by_count);
	out->n = out->distinct < SIDE_VALUES_MAX ? out->distinct : SIDE_VALUES_MAX;
}

static void counts_of_rows(const struct analyse_request *r, const struct side *s,
			   const struct str *column, size_t n, struct value_counts *out)
{
	struct value *value = mem_array(s->n * n + 1, sizeof(*value));
	struct map place = { 0 };

	map_reserve(&place, n);
	for (size_t c = 0; c < n; c++)
		map_put(&place, column[c], c);
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->row[i].n; k++) {
			uint64_t c;

			if (map_get(&place, s->row[i].cell[k].column, &c))
				value[c * s->n + i] = s->row[i].cell[k].value;
		}
	for (size_t c = 0; c < n; c++)
		count_values(r->arena, value + c * s->n, s->n, &out[c]);
	map_release(&place);
	free(value);
}

static void from_facet(struct arena *a, const struct facet *f, struct value_counts *out)
{
	size_t missing = f->missing;

	out->of = arena_alloc(a, (f->n + 2) * sizeof(*out->of));
	for (size_t i = 0; i < f->n; i++)
		if (!value_is_missing(f->value[i].value) && f->value[i].count)
			out->of[out->n++] = (struct value_count){ f->value[i].value,
								  f->value[i].count };
	if (missing)
		out->of[out->n++] = (struct value_count){ { .kind = VALUE_ABSENT }, missing };
	out->distinct = out->n + (f->others ? f->distinct > f->n ? f->distinct - f->n : 1 : 0);
	if (out->n)
		qsort(out->of, out->n, sizeof(*out->of), by_count);
	out->n = out->n < SIDE_VALUES_MAX ? out->n : SIDE_VALUES_MAX;
}

static int counts_of_filter(const struct analyse_request *r, const struct side *s,
			    const struct str *column, size_t n, struct value_counts *out,
			    struct err *e)
{
	const struct filter *closed = filter_closed(s->filter, r->arena);

	for (size_t from = 0; from < n; from += QUERY_FACETS_MAX) {
		struct query q = { .filter = closed, .facet = column + from,
				   .facet_values_max = SIDE_VALUES_MAX };
		struct answer answer;

		q.n_facets = n - from < QUERY_FACETS_MAX ? n - from : QUERY_FACETS_MAX;
		if (index_query(r->view, &q, r->arena, &answer, e) < 0)
			return -1;
		for (size_t i = 0; i < q.n_facets; i++)
			from_facet(r->arena, &answer.facet[i], &out[from + i]);
	}
	return 0;
}

int side_counts(const struct analyse_request *r, const struct side *s, const struct str *column,
		size_t n, struct value_counts *out, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (struct value_counts){ 0 };
	if (s->filter)
		return counts_of_filter(r, s, column, n, out, e);
	for (size_t from = 0; from < n; from += COLUMNS_AT_ONCE)
		counts_of_rows(r, s, column + from,
			       n - from < COLUMNS_AT_ONCE ? n - from : COLUMNS_AT_ONCE, out + from);
	return 0;
}
