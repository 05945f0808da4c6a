/* SPDX-License-Identifier: Apache-2.0 */
/* data_put.c - see data_put.h. */
#include "web/data_put.h"

#include <math.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to there every whole number is a double */

/* ---- values ---- */

static bool is_whole(double v)
{
	return fabs(v) < WHOLE_MAX && trunc(v) == v && !(v == 0 && signbit(v));
}

void data_put_number(struct json_writer *w, double v)
{
	if (isnan(v))
		json_put_null(w);
	else if (isinf(v))
		json_put_text(w, v < 0 ? "-inf" : "inf");
	else if (is_whole(v))
		json_put_int(w, (int64_t)v);
	else
		json_put_f64(w, v);
}

void data_put_value(struct json_writer *w, struct value v)
{
	switch (v.kind) {
	case VALUE_ABSENT:
	case VALUE_NULL:
		json_put_null(w);
		break;
	case VALUE_BOOL:
		json_put_bool(w, v.is_true);
		break;
	case VALUE_NUMBER:
		data_put_number(w, v.number);
		break;
	case VALUE_TEXT:
		json_put_str(w, v.text);
		break;
	}
}

void data_add_value(struct buf *out, struct value v)
{
	struct json_writer w = json_writer(out);

	if (v.kind == VALUE_TEXT)
		buf_add_str(out, v.text);
	else if (v.kind == VALUE_NUMBER && isinf(v.number))
		buf_add_text(out, v.number < 0 ? "-inf" : "inf");
	else if (v.kind != VALUE_ABSENT)
		data_put_value(&w, v);
}

void data_put_key_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	data_put_number(w, v);
}

void data_put_key_str(struct json_writer *w, const char *key, struct str v)
{
	json_member_str(w, key, v);
}

void data_put_key_or_null(struct json_writer *w, const char *key, struct str v)
{
	json_key(w, key);
	if (v.n)
		json_put_str(w, v);
	else
		json_put_null(w);
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
		data_put_value(w, row->value[i]);
	}
	json_end_object(w);
	json_end_object(w);
}

void data_put_page(struct json_writer *w, const struct query *q, const struct answer *a)
{
	json_member_int(w, "total", (int64_t)a->total);
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

static void put_counts(struct json_writer *w, const struct facet *f)
{
	json_member_int(w, "distinct", (int64_t)f->distinct);
	json_member_int(w, "missing", (int64_t)f->missing);
	json_member_int(w, "others", (int64_t)f->others);
}

void data_put_facet(struct json_writer *w, const struct facet *f)
{
	json_begin_object(w);
	data_put_key_str(w, "column", f->column);
	put_counts(w, f);
	json_member_array(w, "values");
	for (size_t i = 0; i < f->n; i++) {
		json_begin_object(w);
		json_key(w, "value");
		data_put_value(w, f->value[i].value);
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
		data_put_key_str(w, "column", s->column);
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
