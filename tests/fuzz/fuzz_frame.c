/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_frame.c - records with filters, bins and variables as a figure and as CSV.
 *
 * Three lines (filters; bins; what rows, columns and curves are made by, the last comma list for
 * curves) and a list of records. Whatever they are: each is refused in one sentence; what a filter
 * leaves it leaves again; groups have every record once; a script has no line that a text of the
 * records ended, and nothing of theirs outside of quotes.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "out/figure/plots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Quotes of gnuplot: '' is one inside '...'; \ takes the next inside "...". Both end on their line. */
static void check_script(const char *text)
{
	char quote = 0;

	for (const char *p = text; *p; p++) {
		CHECK((unsigned char)*p >= ' ' || *p == '\n' || *p == '\t' || quote == 0);
		CHECK(quote == 0 || *p != '\n');
		if (quote == 0 && *p == '#' && (p == text || p[-1] == '\n'))
			while (p[1] && p[1] != '\n')
				p++;
		else if (quote == 0 && (*p == '\'' || *p == '"'))
			quote = *p;
		else if (quote == '"' && *p == '\\')
			p++;
		else if (quote == '\'' && *p == '\'' && p[1] == '\'')
			p++;
		else if (quote && *p == quote)
			quote = 0;
		else
			CHECK(*p != '`' || quote == '\'');
	}
	CHECK(quote == 0);
}

static void check_figure(const struct figure *f)
{
	struct buf table = { 0 }, script = { 0 };

	figure_data(f, &table);
	figure_script(f, "stem", &script);
	check_script(script.data);
	for (size_t i = 0; i < table.len; i++)
		CHECK((unsigned char)table.data[i] >= ' ' || table.data[i] == '\n');
	buf_release(&table);
	buf_release(&script);
}

static void check_groups(const struct frame *f, const struct frame_keys *keys, struct arena *a)
{
	struct frame_groups groups;
	struct err e = { 0 };
	size_t n = 0;

	if (frame_group_by(f, keys, &groups, a, &e) < 0) {
		CHECK(e.code == ERR_RUN && e.text[0]);
		return;
	}
	for (size_t i = 0; i < groups.n; i++)
		n += groups.item[i].frame.n;
	CHECK(n == f->n);
}

static void check_filters(const struct frame *f, const struct frame_filters *by, struct arena *a)
{
	struct frame once, twice;
	struct err e = { 0 };

	if (frame_filter(f, by, &once, a, &e) < 0) {
		CHECK(e.code == ERR_RUN && e.text[0]);
		return;
	}
	CHECK(once.n <= f->n);
	if (once.n && frame_filter(&once, by, &twice, a, &e) == 0)
		CHECK(twice.n == once.n);
}

static void check_csv(const struct frame *f)
{
	struct buf csv = { 0 };
	size_t lines = 0;
	bool is_quoted = false;

	frame_csv(f, &csv);
	for (size_t i = 0; i < csv.len; i++) {
		is_quoted ^= csv.data[i] == '"';
		lines += !is_quoted && csv.data[i] == '\n';
	}
	CHECK(!is_quoted && lines == f->n + 1);
	buf_release(&csv);
}

static void check_pareto(const struct frame *f, struct arena *a)
{
	struct sweep_pareto_opts o = { .user_count_var = "x", .label_by = frame_keys("c,r", a) };
	struct sweep_pareto p;
	struct figure figure;
	struct err e = { 0 };

	if (sweep_pareto(&p, f, &o, a, &e) < 0) {
		CHECK(e.code == ERR_RUN && e.text[0]);
		return;
	}
	CHECK(p.n_frontier <= p.points.n && p.points.n + p.n_skipped == f->n);
	sweep_pareto_figure(&p, &o, &figure, a);
	check_figure(&figure);
}

static void check_all(const struct frame *f, struct sweep_plot *p, struct arena *a)
{
	struct figure figure;
	struct err e = { 0 };
	int rc;

	check_csv(f);
	check_filters(f, &p->filter_by, a);
	check_groups(f, &p->curve_by, a);
	check_pareto(f, a);
	for (int scale = FIGURE_LINEAR; scale <= FIGURE_LOGIT; scale++) {
		p->scale_x = p->scale_y = (enum figure_scale)scale;
		rc = sweep_plot_figure(f, p, &figure, a, &e);
		CHECK(rc >= 0 || e.text[0]);
		if (rc > 0)
			check_figure(&figure);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size };
	struct arena a = { 0 };
	char *filters = arena_text(&a, str_cut(&rest, '\n'));
	char *bins = arena_text(&a, str_cut(&rest, '\n'));
	struct str keys = arena_str(&a, str_cut(&rest, '\n'));
	struct sweep_plot p = {
		.var_x = "x", .var_y = "y", .has_errors = true,
		.row_by = { .name = &keys, .n = 0 }, .curve_by = frame_keys(keys.p, &a),
	};
	struct json_value *v;
	struct frame f = { 0 };
	struct err e = { 0 };
	bool is_good = frame_parse_filters(&p.filter_by, filters, &a, &e) == 0 &&
		       frame_parse_bins(&p.bin_by, bins, &a, &e) == 0;

	CHECK(is_good || e.code == ERR_RUN);
	if (p.curve_by.n > 1) {
		p.row_by = (struct frame_keys){ p.curve_by.name, 1 };
		p.title = keys.p;
	}
	if (is_good && json_parse(&a, rest, &v, &e) == 0 && v->kind == JSON_ARRAY) {
		for (size_t i = 0; i < v->count && i < 200; i++)
			frame_add(&f, &v->item[i], "fuzz", &a, &e);
		check_all(&f, &p, &a);
	}
	arena_release(&a);
	return 0;
}
