/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legend.c - the colors of a workload in the order of the legend, and its configurations, loads
 * and numbers in a few words.
 *
 * The order is that of all runs of the workload, so that a filter neither recolors nor reorders.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/analyse/analyse_internal.h"
#include "results/index/derive.h"

#define OTHER_AFTER 7      /* texts with a color, when there are more than SETUP_COLORS_MAX */
#define NUMBERS_MAX 64     /* with a color each; more are combined, as texts are */
#define LEVEL_SHARE 0.02   /* medians of single runs within this are level */

/* ---- values in a word ---- */

static void add_short(struct buf *b, struct arena *a, struct str column, struct value v)
{
	struct str word = parts_last_word(column);
	const char *form = column_short(column);
	double number;
	bool is_number = v.kind == VALUE_NUMBER || /* metadata are texts */
			 (v.kind == VALUE_TEXT && str_to_f64(v.text, &number));

	if (v.kind == VALUE_TEXT && !is_number) {
		const char *slash = memrchr(v.text.p, '/', v.text.n);

		buf_add_text(b, slash && slash + 1 < v.text.p + v.text.n ?
			     arena_text(a, (struct str){ slash + 1, v.text.n - (size_t)
							 (slash + 1 - v.text.p) }) :
			     arena_text(a, v.text));
		return;
	}
	if (is_number && str_is(word, "request_rate")) {
		buf_printf(b, "%s/s", parts_cell_text(a, v));
		return;
	}
	if (is_number && *form) {
		buf_printf(b, "%s%s", form, parts_cell_text(a, v));
		return;
	}
	if (str_is(word, "enable_expert_parallel")) {
		buf_add_text(b, v.kind == VALUE_BOOL && v.is_true ? "EP" : "no EP");
		return;
	}
	if (str_starts(word, STR("enable_")))
		word = (struct str){ word.p + 7, word.n - 7 };
	for (size_t i = 0; i < word.n; i++)
		buf_add_char(b, word.p[i] == '_' ? ' ' : word.p[i]);
	buf_printf(b, " %s", v.kind != VALUE_BOOL ? parts_cell_text(a, v) : v.is_true ? "on" : "off");
}

static const char *short_text(struct arena *a, struct str column, struct value v)
{
	struct buf b = { 0 };

	add_short(&b, a, column, v);
	return arena_take(a, &b).p;
}

/* ---- colors in the order of the legend ---- */

/* Versions naturally: "0.9.1" before "0.12". */
static int by_legend(const void *x, const void *y)
{
	const struct legend_color *a = x, *b = y;

	if (value_is_missing(a->value) != value_is_missing(b->value))
		return value_is_missing(a->value) ? 1 : -1;
	if (a->is_natural && a->value.kind == VALUE_TEXT && b->value.kind == VALUE_TEXT)
		return strverscmp(a->name, b->name);
	if (!a->is_natural && a->value.kind == VALUE_TEXT && b->value.kind == VALUE_TEXT &&
	    (a->best > b->best || a->best < b->best))
		return a->best > b->best ? -1 : 1;
	return value_compare(a->value, b->value);
}

static int by_runs(const void *x, const void *y)
{
	const struct legend_color *a = x, *b = y;

	return a->runs != b->runs ? (a->runs > b->runs ? -1 : 1)
				  : value_compare(a->value, b->value);
}

/* The place of each of the rows' colors in the legend. */
static void place_colors(struct setups *s)
{
	s->color_of = arena_alloc(s->r->arena, (s->rows.n + 1) * sizeof(*s->color_of));
	for (size_t i = 0; i < s->rows.n; i++) {
		struct value v = s->color ? setups_value(s, s->color, i)
					  : (struct value){ .kind = VALUE_ABSENT };
		size_t k = 0;

		if (!s->color)
			continue;
		if (v.kind == VALUE_NULL)
			v.kind = VALUE_ABSENT;
		while (k + 1 < s->n_colors && (s->legend[k].is_other ||
					       !value_same(s->legend[k].value, v)))
			k++;
		s->color_of[i] = k;
	}
}

/* Colors beyond OTHER_AFTER texts are one: the last one. */
static void fold_others(struct setups *s, size_t texts)
{
	struct legend_color other = { .is_other = true };

	if (s->n_colors <= SETUP_COLORS_MAX ||
	    (texts < s->n_colors / 2 && s->n_colors <= NUMBERS_MAX))
		return;
	qsort(s->legend, s->n_colors, sizeof(*s->legend), by_runs);
	for (size_t i = OTHER_AFTER; i < s->n_colors; i++)
		other.runs += s->legend[i].runs;
	other.name = arena_printf(s->r->arena, "other (%zu)", s->n_colors - OTHER_AFTER);
	s->legend[OTHER_AFTER] = other;
	s->n_colors = OTHER_AFTER + 1;
}

int setups_legend(struct setups *s, size_t metric, struct err *e)
{
	struct arena *a = s->r->arena;
	struct str column[2] = { s->color ? s->color->column : STR("workload"), s->metric[metric] };
	struct counting counting = counting_of(s->metric[metric]);
	struct rows all;
	uint32_t *code, n_codes;
	size_t texts = 0, sorted;

	if (!s->color) {
		s->legend = arena_alloc(a, sizeof(*s->legend));
		s->legend[0] = (struct legend_color){ .name = "all runs", .runs = s->rows.n };
		s->n_colors = s->rows.n > 0;
		place_colors(s);
		return 0;
	}
	if (parts_select_by(s->r, s->unfiltered, column, 2, &all, e) < 0)
		return -1;
	code = setups_codes(a, all.value, all.n, &n_codes);
	s->n_colors = n_codes;
	s->legend = arena_alloc(a, ((size_t)n_codes + 2) * sizeof(*s->legend));
	for (size_t i = 0; i < all.n; i++) {
		struct legend_color *c = &s->legend[code[i]];
		double v = parts_number_at(&all, 1, i) * (counting.better < 0 ? -1 : 1);

		if (!c->runs++) {
			c->value = all.value[i];
			if (c->value.kind == VALUE_NULL)
				c->value.kind = VALUE_ABSENT;
			c->best = -INFINITY;
			c->name = short_text(a, s->color->column, c->value);
			c->is_natural = s->color->role == ROLE_VERSION;
			texts += c->value.kind == VALUE_TEXT;
		}
		if (v > c->best && counts_for(&counting, &all.verdicts, i, fabs(v)) == COUNTS)
			c->best = v;
	}
	fold_others(s, texts);
	sorted = s->n_colors - (s->n_colors && s->legend[s->n_colors - 1].is_other);
	if (sorted)
		qsort(s->legend, sorted, sizeof(*s->legend), by_legend);
	place_colors(s);
	return 0;
}

/* ---- words ---- */

const char *setups_name(const struct setups *s, size_t row, const char *otherwise)
{
	struct buf b = { 0 };
	const char *out;

	for (size_t i = 0; i < s->n_configuration; i++) {
		const struct differing *d = s->configuration[i];
		struct value v = setups_value(s, d, row);

		bool is_load = d->role == ROLE_LOAD &&
			       value_is_text(setups_fact(s, SETUP_LOAD_KIND, row), LOAD_RATE);

		if ((value_is_missing(v) && s->n_configuration > 1) || is_load)
			continue;
		if (b.len)
			buf_add_text(&b, " \u00b7 ");
		add_short(&b, s->r->arena, d->column, v);
	}
	out = b.len ? arena_text(s->r->arena, buf_str(&b)) : otherwise;
	buf_release(&b);
	return out;
}

const char *setups_load_text(const struct setups *s, const struct setup_point *p)
{
	struct value kind = setups_fact(s, SETUP_LOAD_KIND, p->member[0]);
	const char *number = arena_printf(s->r->arena, "%.10g", p->load);

	if (isnan(p->load))
		return "";
	if (value_is_text(kind, LOAD_RATE))
		return arena_printf(s->r->arena, "%s/s", number);
	return arena_printf(s->r->arena, "%s%s", value_is_text(kind, "batch size") ? "b" : "c", number);
}

const char *setups_number(struct arena *a, double v)
{
	char digits[64], out[96];
	size_t n, k = 0;

	if (!(fabs(v) >= 999.95) || fabs(v) >= 1e15)
		return arena_printf(a, "%.4g", v);
	snprintf(digits, sizeof(digits), "%.0f", fabs(v));
	n = strlen(digits);
	if (v < 0)
		out[k++] = '-';
	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			out[k++] = ',';
		out[k++] = digits[i];
	}
	return arena_text(a, (struct str){ out, k });
}

bool setups_is_level(struct folded a, struct folded b)
{
	if (!a.n || !b.n)
		return false;
	if (a.n > 1 && b.n > 1)
		return a.sure_low <= b.sure_high && b.sure_low <= a.sure_high;
	return fabs(a.value - b.value) <= LEVEL_SHARE * fmax(fabs(a.value), fabs(b.value));
}

/* ---- out ---- */

void setups_put_workloads(struct json_writer *w, const struct setups *s)
{
	json_member_str(w, "workload", s->key);
	json_member_array(w, "workloads");
	for (size_t i = 0; i < s->n_workloads; i++) {
		const struct workload *one = &s->workload[i];

		json_begin_object(w);
		json_member_str(w, "key", one->key);
		json_member_str(w, "label", one->key.n ? one->key : STR("unknown workload"));
		parts_put_count(w, "runs", one->runs);
		parts_put_count(w, "configurations", one->configurations);
		json_end_object(w);
	}
	json_end_array(w);
}
