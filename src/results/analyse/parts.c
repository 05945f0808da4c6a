/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "results/analyse/parts.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/stats/stats.h"

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
		return err_set(e, ERR_USAGE, "/%s: the name of a column was expected%s", key,
			       v ? "" : ", and there is none");
	*out = v->text;
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
				err_set(e, ERR_USAGE, "/%s/%zu: the name of a column was expected",
					key, i) :
				err_set(e, ERR_USAGE, "/%s: a list of columns was expected", key);
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
	return err_set(e, ERR_USAGE, "%s/%s: a number from %g to %g was expected", pointer, key, min,
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
		return err_set(e, ERR_USAGE, "%s/%s: a whole number was expected", pointer, key);
	return 0;
}

const char *const parts_series_default[] = {
	"mode", "server.model", "hardware.gpu", "hardware.gpus", "server.gpu", "environment.driver",
	"server.tensor_parallel_size", "server.pipeline_parallel_size", "server.data_parallel_size",
	"server.quantization", "server.dtype", "benchmark.backend", "benchmark.dataset_name",
	"benchmark.num_prompts", "benchmark.random_input_len", "benchmark.random_output_len",
	"benchmark.input_len", "benchmark.output_len", "benchmark.batch_size",
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
	const size_t n_all = n_columns + COUNTED_COLUMNS;
	struct str *all = arena_alloc(r->arena, n_all * sizeof(*all));
	struct query q = { .filter = NULL };
	struct answer count;
	struct filter *f;

	*out = (struct rows){ 0 };
	if (verdicts_read(r->body, &out->verdicts.is_everything, e) < 0 ||
	    filter_read(json_get(r->body, "filter"), "/filter", r->arena, &f, e) < 0)
		return -1;
	q.filter = f;
	if (index_query(r->view, &q, r->arena, &count, e) < 0)
		return -1;
	if (count.total * (n_all + 1) > ANALYSE_CELLS_MAX)
		return parts_refuse(e, "/filter", "%zu runs match; at most %zu can be analysed at "
				    "once with %zu columns: narrow the filter", count.total,
				    ANALYSE_CELLS_MAX / (n_all + 1), n_columns);
	for (size_t c = 0; c < n_all; c++)
		all[c] = c < n_columns ? column[c] : counted_columns[c - n_columns];
	if (index_select(r->view, f, 0, all, n_all, r->arena, &out->id, &out->n, &out->value,
			 e) < 0)
		return -1;
	for (size_t c = 0; c < COUNTED_COLUMNS; c++)
		out->verdicts.value[c] = out->value + (n_columns + c) * out->n;
	return 0;
}

bool parts_is_number(struct value v, double *out)
{
	if (v.kind != VALUE_NUMBER || !(fabs(v.number) <= ANALYSE_NUMBER_MAX))
		return false;
	*out = v.number;
	return true;
}

bool parts_is_missing(struct value v)
{
	return v.kind == VALUE_ABSENT || v.kind == VALUE_NULL;
}

double parts_number_at(const struct rows *rows, size_t column, size_t row)
{
	double v;

	return parts_is_number(rows->value[column * rows->n + row], &v) ? v : NAN;
}

/* Beside an empty "or", which is false and about no column, a filter is never about one alone. */
struct filter *parts_closed(struct arena *a, struct filter *f)
{
	struct filter *none = arena_alloc(a, sizeof(*none));
	struct filter *closed = arena_alloc(a, sizeof(*closed));

	*none = (struct filter){ .kind = FILTER_OR };
	*closed = (struct filter){ .kind = FILTER_OR, .n_parts = 2 };
	closed->part = arena_alloc(a, 2 * sizeof(*closed->part));
	closed->part[0] = f;
	closed->part[1] = none;
	return closed;
}

/* ---- series ---- */

static void add_key(struct buf *b, struct value v)
{
	char kind = (char)(parts_is_missing(v) ? VALUE_ABSENT : v.kind);

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
		return "none";
	}
}

static struct str last_word(struct str column)
{
	const char *dot = memrchr(column.p, '.', column.n);

	return dot ? (struct str){ dot + 1, column.n - (size_t)(dot + 1 - column.p) } : column;
}

/* Texts speak for themselves; of numbers the name is needed. */
static void name_part(struct buf *b, struct arena *a, struct str column, struct value v,
		      const char *apart)
{
	struct str word = last_word(column);

	if (b->len)
		buf_add_text(b, apart);
	if (v.kind != VALUE_TEXT) {
		buf_add_str(b, word);
		buf_add_char(b, '=');
	}
	buf_add_text(b, parts_cell_text(a, v));
}

/* Key k tells series apart: two have different values there, or (is_strict) one has none. */
static bool tells_apart(const struct series_list *l, size_t k, bool is_strict)
{
	const struct value *column = l->rows->value + k * l->rows->n;
	const struct value *first = NULL;
	size_t missing = 0;

	for (size_t i = 0; i < l->shown; i++) {
		const struct value *v = &column[l->series[i].row];

		if (parts_is_missing(*v)) {
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

		if (in_name[k] || (l->n == 1 && !parts_is_missing(v) && !name.len))
			name_part(&name, a, l->key[k], v, ", ");
		if (!parts_is_missing(v))
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

/* As short as tells them apart: a run of another kind, without most keys, lengthens no name. */
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
			add_key(&key, rows->value[k * rows->n + i]);
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

		if (parts_is_missing(v))
			continue;
		json_key_str(w, l->key[k]);
		parts_put_cell(w, v);
	}
	json_end_object(w);
	parts_put_text(w, "name", l->series[i].name);
}

/* ---- out ---- */

void parts_put_double(struct json_writer *w, double v)
{
	if (isnan(v))
		json_put_null(w);
	else if (isinf(v))
		json_put_text(w, v > 0 ? "inf" : "-inf");
	else if (fabs(v) < 1e15 && fabs(v - trunc(v)) <= 0)
		json_put_int(w, (int64_t)v);
	else
		json_put_f64(w, v);
}

void parts_put_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	parts_put_double(w, v);
}

void parts_put_cell(struct json_writer *w, struct value v)
{
	if (v.kind == VALUE_BOOL)
		json_put_bool(w, v.is_true);
	else if (v.kind == VALUE_NUMBER)
		parts_put_double(w, v.number);
	else if (v.kind == VALUE_TEXT)
		json_put_str(w, v.text);
	else
		json_put_null(w);
}

void parts_put_value(struct json_writer *w, const char *key, struct value v)
{
	json_key(w, key);
	parts_put_cell(w, v);
}

void parts_put_text(struct json_writer *w, const char *key, const char *text)
{
	json_member_text(w, key, text);
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

	parts_put_text(w, "unit", *c.unit ? c.unit : NULL);
	parts_put_text(w, "better", c.better > 0 ? "higher" : c.better < 0 ? "lower" : NULL);
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
