/* SPDX-License-Identifier: Apache-2.0 */
/* compare_tables_page.c - the dashboard's tables as pages, CSV files and text. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "report/compare_tables_parts.h"
#include "report/grid.h"

#define SHEET_CHARS_MAX 31
#define FILE_CHARS_MAX 180
#define CHART_W 640
#define CHART_H 300
#define CHART_LEFT 60
#define CHART_BOTTOM 40

static const char style[] =
	"<style>body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem}"
	"table{border-collapse:collapse}th,td{border:1px solid #8886;padding:.2rem .5rem}"
	".n{text-align:right}.good{background:#e6ffe6;color:#000;font-weight:bold}"
	".fair{background:#ffe5cc;color:#000;font-weight:bold}.mark{background:#fff3b0;color:#000}"
	"h2{font-size:1.4em}h3{font-size:1.15em}svg text{font:11px system-ui,sans-serif}</style>\n";

/* A group's levels, its heading and what its files are called. */
struct group { size_t from, to; const char *title, *page, *sheet; };

/* ---- names ---- */

static const char *group_title(const struct tables *t, const struct tables_level *l)
{
	const char *text = "";

	for (size_t k = 0; k < t->n_groups; k++)
		text = arena_printf(t->a, "%s%s%s : [ %s ] ", text, k ? " , " : "", t->key[k],
				    l->text[k]);
	return text;
}

static const char *page_name(const struct tables *t, const struct tables_level *l)
{
	char *text = arena_printf(t->a, "perf_comparison");

	for (size_t k = 0; k < t->n_groups; k++)
		text = arena_printf(t->a, "%s_%s", text, l->text[k]);
	for (char *p = text; *p; p++)
		*p = *p == ',' ? '_' : *p == '/' ? '-' : *p;
	return arena_printf(t->a, "%s.html", text);
}

static const char *group_value(const struct tables *t, const struct tables_level *l,
			       const char *key)
{
	for (size_t k = 0; k < t->n_groups; k++)
		if (strcmp(t->key[k], key) == 0)
			return l->text[k];
	return NULL;
}

static char *sheet_name(const struct tables *t, const struct tables_level *l)
{
	const char *model = group_value(t, l, "Model"), *slash;
	const char *in = group_value(t, l, "Input Len"), *out = group_value(t, l, "Output Len");
	char *text;

	model = model ? model : "model";
	slash = strrchr(model, '/');
	text = in && out ? arena_printf(t->a, "%s_%sx%s", slash ? slash + 1 : model, in, out)
			 : arena_printf(t->a, "%s", slash ? slash + 1 : model);
	for (char *p = text; *p; p++)
		if (strchr(":\\/?*[]", *p))
			*p = '_';
	if (strlen(text) > SHEET_CHARS_MAX)
		text[SHEET_CHARS_MAX] = '\0';
	return *text ? text : arena_printf(t->a, "sheet");
}

static const char *unique_sheet(const struct tables *t, const struct group *before, size_t n,
				const struct tables_level *l)
{
	char *base = sheet_name(t, l), *name = base;
	size_t tries = 1;

	for (size_t i = 0; i < n; i++)
		if (strcmp(before[i].sheet, name) == 0) {
			name = arena_printf(t->a, "%.*s_%zu", SHEET_CHARS_MAX - 4, base, ++tries);
			i = (size_t)-1; /* the new name may be taken too */
		}
	return name;
}

/* Runs of what is no letter, digit, "_", "." or "-" become "_". */
static const char *csv_name(const struct tables *t, const char *sheet, const char *table)
{
	char *text = arena_printf(t->a, "%s__%s", sheet, table), *to = text;

	for (const char *p = text; *p; p++) {
		bool is_kept = isalnum((unsigned char)*p) || strchr("._-", *p) || *p & 0x80;
		bool is_blank = *p == ' ' || *p == '/'; /* these become "_" each, before the others */

		if (is_kept)
			*to++ = *p;
		else if (is_blank || p == text || isalnum((unsigned char)p[-1]) ||
			 strchr("._- /", p[-1]))
			*to++ = '_';
	}
	*to = '\0';
	if (strlen(text) > FILE_CHARS_MAX)
		text[FILE_CHARS_MAX] = '\0';
	return arena_printf(t->a, "%s.csv", text);
}

/* ---- one metric's table ---- */

static const char *number_text(const struct tables *t, double v, bool is_exact)
{
	char text[FMT_F64_BYTES];

	if (isnan(v))
		return "";
	return is_exact ? arena_text(t->a, str_of(fmt_f64(text, v))) : arena_printf(t->a, "%.2f", v);
}

/* Above 1 means better than the first file. */
static double ratio_of(const struct tables_level *l, size_t metric, size_t file)
{
	double base = l->value[metric][0], v = l->value[metric][file];

	if (!(fabs(base) > 0))
		return NAN;
	return metric == TABLES_TPUT ? v / base : base / v;
}

static enum grid_tone value_tone(const struct tables *t, const struct tables_level *l,
				 size_t metric, size_t file)
{
	double v = l->value[metric][file];
	double limit = metric == TABLES_TTFT ? t->o->ttft_max_ms : t->o->tpot_max_ms;

	if (metric == TABLES_TPUT || isnan(v))
		return GRID_PLAIN;
	return v <= limit ? GRID_GOOD : tables_passes(t, l, metric, file) ? GRID_FAIR : GRID_PLAIN;
}

/* first: the first key that is shown; pages leave out those of the group. */
static void metric_heads(const struct tables *t, size_t first, struct grid *g)
{
	for (size_t k = first; k < t->n_keys; k++)
		grid_add(g, t->key[k]);
	for (size_t f = 0; f < t->n; f++) {
		if (t->o->is_debug)
			grid_add(g, arena_printf(t->a, "%s_name", t->file[f].label));
		grid_add(g, t->file[f].label);
		if (f)
			grid_add_toned(g, arena_printf(t->a, "Ratio 1 vs %zu", f + 1), GRID_MARK);
	}
	grid_end_heads(g);
}

static void metric_grid(const struct tables *t, const struct group *group, size_t metric,
			bool is_exact, struct grid *g)
{
	size_t first = is_exact ? 0 : t->n_groups;

	grid_begin(g, t->a);
	metric_heads(t, first, g);
	for (size_t i = group->from; i < group->to; i++) {
		const struct tables_level *l = &t->level[i];
		bool has_any = false;

		for (size_t f = 0; f < t->n; f++)
			has_any |= !isnan(l->value[metric][f]);
		if (!has_any)
			continue;
		for (size_t k = first; k < t->n_keys; k++)
			grid_add(g, l->text[k]);
		for (size_t f = 0; f < t->n; f++) {
			if (t->o->is_debug)
				grid_add(g, l->name[f] ? l->name[f] : "");
			grid_add_toned(g, number_text(t, l->value[metric][f], is_exact),
				       value_tone(t, l, metric, f));
			if (f)
				grid_add_toned(g, number_text(t, ratio_of(l, metric, f), is_exact),
					       GRID_MARK);
		}
	}
}

/* ---- the summary ---- */

static const char *limit_text(const struct tables *t, const char *name, double limit, double slack)
{
	return arena_printf(t->a, "Max %s (%s ≤ %g–%g ms (+%g%%))", t->key[t->x], name, limit,
			    limit * (1 + slack / 100), slack);
}

static void summary_grid(const struct tables *t, const struct group *group, bool is_exact,
			 struct grid *g)
{
	const struct tables_opts *o = t->o;
	const char *x = t->key[t->x];

	grid_begin(g, t->a);
	grid_add(g, "Configuration");
	grid_add(g, limit_text(t, "TTFT", o->ttft_max_ms, o->ttft_slack_pct));
	grid_add(g, limit_text(t, "TPOT", o->tpot_max_ms, o->tpot_slack_pct));
	grid_add(g, arena_printf(t->a, "Max %s (Both)", x));
	grid_add(g, "Output Tput @ Both (tok/s)");
	grid_add(g, "TTFT @ Both (ms)");
	grid_add(g, "TPOT @ Both (ms)");
	grid_add(g, arena_printf(t->a, "First failing %s", x));
	grid_add(g, arena_printf(t->a, "Max %s below it (Both in one row)", x));
	grid_add(g, "Output Tput there (tok/s)");
	grid_end_heads(g);
	for (size_t f = 0; f < t->n; f++) {
		struct tables_capacity c;
		double v[9];

		tables_capacity(t, group->from, group->to, f, &c);
		v[0] = c.ttft;
		v[1] = c.tpot;
		v[2] = c.both;
		for (size_t m = 0; m < TABLES_METRICS; m++)
			v[3 + m] = c.at_both ? c.at_both->value[m][f] : NAN;
		v[6] = c.first_failure;
		v[7] = c.same_row;
		v[8] = c.at_same_row ? c.at_same_row->value[TABLES_TPUT][f] : NAN;
		grid_add(g, t->file[f].label);
		for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
			grid_add_toned(g, number_text(t, v[i], is_exact),
				       i == 2 && !isnan(v[i]) ? GRID_GOOD : GRID_PLAIN);
	}
}

/* ---- charts ---- */

struct span { double low, high; };

static void widen(struct span *s, double v)
{
	if (!isnan(v)) {
		s->low = fmin(s->low, v);
		s->high = fmax(s->high, v);
	}
}

static double place_x(struct span s, double v)
{
	double whole = s.high > s.low ? s.high - s.low : 1;

	return CHART_LEFT + (v - s.low) / whole * (CHART_W - CHART_LEFT - 10);
}

static double place_y(struct span s, double v)
{
	double whole = s.high > s.low ? s.high - s.low : 1;

	return CHART_H - CHART_BOTTOM - (v - s.low) / whole * (CHART_H - CHART_BOTTOM - 20);
}

static void draw_file(const struct tables *t, const struct group *group, size_t metric,
		      size_t file, struct span x, struct span y, struct buf *out)
{
	static const char *const colour[] = { "#2563eb", "#c2410c", "#15803d", "#7c3aed", "#a16207",
					      "#0e7490" };
	const char *c = colour[file % (sizeof(colour) / sizeof(*colour))];

	buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", c);
	for (size_t i = group->from; i < group->to; i++)
		if (!isnan(t->level[i].value[metric][file]) && !isnan(t->level[i].number[t->x]))
			buf_printf(out, "%.1f,%.1f ", place_x(x, t->level[i].number[t->x]),
				   place_y(y, t->level[i].value[metric][file]));
	buf_printf(out, "\"/><text fill=\"%s\" x=\"%d\" y=\"%zu\">", c, CHART_LEFT + 8,
		   16 + 14 * file);
	html_escape(out, t->file[file].label);
	buf_add_text(out, "</text>\n");
}

static void chart(const struct tables *t, const struct group *group, size_t metric,
		  struct buf *out)
{
	struct span x = { INFINITY, -INFINITY }, y = { 0, 0 };
	double limit = metric == TABLES_TTFT ? t->o->ttft_max_ms : t->o->tpot_max_ms;

	for (size_t i = group->from; i < group->to; i++) {
		widen(&x, t->level[i].number[t->x]);
		for (size_t f = 0; f < t->n; f++)
			widen(&y, t->level[i].value[metric][f]);
	}
	if (!isfinite(x.low))
		return;
	if (metric != TABLES_TPUT && limit <= 2 * y.high)
		widen(&y, limit);
	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", CHART_W,
		   CHART_H, CHART_W, CHART_H);
	buf_printf(out, "<path fill=\"none\" stroke=\"#888\" d=\"M%d 10V%dH%d\"/>\n", CHART_LEFT,
		   CHART_H - CHART_BOTTOM, CHART_W - 10);
	for (int i = 0; i <= 4; i++) {
		double xv = x.low + (x.high - x.low) * i / 4, yv = y.high * i / 4;

		buf_printf(out, "<text fill=\"currentColor\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">"
			   "%.4g</text><text fill=\"currentColor\" x=\"%d\" y=\"%.1f\" "
			   "text-anchor=\"end\">%.4g</text>\n", place_x(x, xv),
			   CHART_H - CHART_BOTTOM + 16, xv, CHART_LEFT - 6, place_y(y, yv) + 4, yv);
	}
	buf_printf(out, "<text fill=\"currentColor\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
		   CHART_W / 2, CHART_H - 6);
	html_escape(out, t->key[t->x]);
	buf_add_text(out, "</text>\n");
	for (size_t f = 0; f < t->n; f++)
		draw_file(t, group, metric, f, x, y, out);
	if (metric != TABLES_TPUT && limit <= y.high)
		buf_printf(out, "<line stroke=\"%s\" stroke-dasharray=\"6 4\" x1=\"%d\" x2=\"%d\" "
			   "y1=\"%.1f\" y2=\"%.1f\"/>\n", metric == TABLES_TTFT ? "red" : "blue",
			   CHART_LEFT, CHART_W - 10, place_y(y, limit), place_y(y, limit));
	buf_add_text(out, "</svg>\n");
}

/* ---- output ---- */

static void heading(struct buf *out, const char *tag, const char *text, const char *more)
{
	buf_printf(out, "<%s>", tag);
	html_escape(out, text);
	if (*more) {
		buf_add_text(out, " — ");
		html_escape(out, more);
	}
	buf_printf(out, "</%s>\n", tag);
}

static int write_csv(const struct tables *t, const struct group *group, const char *table,
		     const struct grid *g, struct err *e)
{
	struct buf text = { 0 };
	char *path;
	int rc;

	if (!*t->o->csv_dir)
		return 0;
	path = file_join(t->o->csv_dir, csv_name(t, group->sheet, table));
	grid_csv(g, &text);
	rc = file_write_atomic(path, buf_str(&text), e);
	free(path);
	buf_release(&text);
	return rc;
}

static int write_group(const struct tables *t, const struct group *group, struct buf *page,
		       struct err *e)
{
	struct grid g, turned;

	heading(page, "h2", group->title, "");
	buf_printf(t->out, "\n%s\n", group->title);
	for (size_t m = 0; m < TABLES_METRICS; m++) {
		metric_grid(t, group, m, false, &g);
		heading(page, "h3", t->metric[m], group->title);
		grid_html(&g, page);
		buf_printf(t->out, "\n%s\n", t->metric[m]);
		grid_text(&g, false, t->out);
		if (t->o->is_plotted)
			chart(t, group, m, page);
		metric_grid(t, group, m, true, &g);
		if (write_csv(t, group, t->metric[m], &g, e) < 0)
			return -1;
	}
	summary_grid(t, group, false, &g);
	heading(page, "h3", "Valid Max Concurrency Summary", "");
	grid_html(&g, page);
	buf_add_text(t->out, "\nValid Max Concurrency Summary\n");
	grid_turn(&g, &turned);
	grid_text(&turned, false, t->out);
	summary_grid(t, group, true, &g);
	return write_csv(t, group, "Valid_Max_Concurrency_Summary", &g, e);
}

static int write_page(const struct tables *t, const char *name, struct str body, struct err *e)
{
	struct buf text = { 0 };
	char *path = file_join(t->o->html_dir, name);
	int rc;

	buf_add_text(&text, "<meta charset=\"utf-8\">\n");
	buf_add_text(&text, style);
	buf_add_str(&text, body);
	rc = text.is_over ? err_set(e, ERR_LIMIT, "%s is larger than a buffer may be", path)
			  : file_write_atomic(path, buf_str(&text), e);
	free(path);
	buf_release(&text);
	return rc;
}

static bool is_same_group(const struct tables *t, size_t i, size_t k)
{
	for (size_t g = 0; g < t->n_groups; g++)
		if (strcmp(t->level[i].text[g], t->level[k].text[g]) != 0)
			return false;
	return true;
}

int tables_write(const struct tables *t, struct err *e)
{
	struct group *group = arena_alloc(t->a, (t->n_levels + 1) * sizeof(*group));
	struct buf whole = { 0 };
	size_t n = 0;
	int rc = 0;

	if ((*t->o->csv_dir && file_mkdirs(t->o->csv_dir, e) < 0) ||
	    (*t->o->html_dir && file_mkdirs(t->o->html_dir, e) < 0))
		return -1;
	for (size_t i = 0; rc == 0 && i < t->n_levels; i = group[n++].to) {
		struct buf page = { 0 };
		struct group *now = &group[n];

		now->from = i;
		now->to = i + 1;
		while (now->to < t->n_levels && is_same_group(t, i, now->to))
			now->to++;
		now->title = group_title(t, &t->level[i]);
		now->page = page_name(t, &t->level[i]);
		now->sheet = unique_sheet(t, group, n, &t->level[i]);
		rc = write_group(t, now, &page, e);
		if (rc == 0)
			rc = write_page(t, now->page, buf_str(&page), e);
		buf_add_str(&whole, buf_str(&page));
		buf_release(&page);
	}
	if (rc == 0)
		rc = write_page(t, "perf_comparison.html", buf_str(&whole), e);
	if (rc == 0 && *t->o->csv_dir)
		buf_printf(t->out, "Wrote CSVs under: %s\n", t->o->csv_dir);
	buf_release(&whole);
	return rc;
}
