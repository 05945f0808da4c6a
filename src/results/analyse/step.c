/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - see step.h. */
#include "results/analyse/step.h"

#include <ctype.h>
#include <math.h>
#include <time.h>

#include "core/base/str.h"

#define NAME_BYTES 96
#define PLACE_BYTES_MAX 40

/* ---- places ---- */

static const char *time_text(struct arena *a, double at_s, const char *form)
{
	time_t t = (time_t)at_s;
	char text[64];
	struct tm tm;

	if (!(fabs(at_s) < 1e11) || !gmtime_r(&t, &tm) || !strftime(text, sizeof(text), form, &tm))
		return "an unknown time";
	return arena_text(a, str_of(text));
}

const char *step_place(struct arena *a, enum axis axis, const struct point *p)
{
	if (axis == AXIS_COMMIT)
		return arena_printf(a, "commit %.*s", (int)p->commit.n, p->commit.p);
	if (axis == AXIS_VERSION)
		return arena_printf(a, "version %.*s", (int)p->version.n, p->version.p);
	return time_text(a, p->at_s, axis == AXIS_DAY ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ");
}

/* ---- what else ---- */

void step_put_also(struct json_writer *w, const struct series_change *also, size_t n)
{
	json_member_array(w, "also");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_str(w, "column", also[i].column);
		parts_put_value(w, "before", also[i].before);
		parts_put_value(w, "after", also[i].after);
		json_end_object(w);
	}
	json_end_array(w);
}

static void add_pair(struct buf *b, struct str name, const char *before, const char *after)
{
	buf_printf(b, "%s%.*s %s -> %s", b->len ? ", " : "", (int)name.n, name.p, before, after);
}

const char *step_text(struct arena *a, const struct step *s)
{
	struct str before = s->before->commit, after = s->after->commit;
	double change = s->value[1] / s->value[0] - 1;
	const char *unit = column_unit(s->metric), *text;
	struct buf what = { 0 };

	for (size_t i = 0; i < s->n_also; i++)
		add_pair(&what, s->also[i].column, parts_cell_text(a, s->also[i].before),
			 parts_cell_text(a, s->also[i].after));
	if (before.n && after.n && !str_eq(before, after))
		add_pair(&what, STR("commit"), arena_text(a, before), arena_text(a, after));
	text = arena_printf(a, "%.*s %s by %s, from %.4g to %.4g%s%s, at %s; changed there: %s",
			    (int)s->metric.n, s->metric.p,
			    s->value[1] > s->value[0] ? "rose" : "fell",
			    isfinite(change) ? arena_printf(a, "%.3g %%", 100 * fabs(change))
					     : arena_printf(a, "%.4g", fabs(s->value[1] - s->value[0])),
			    s->value[0], s->value[1], *unit ? " " : "", unit,
			    step_place(a, s->axis, s->after),
			    what.len ? arena_text(a, buf_str(&what)) : "nothing that results record");
	buf_release(&what);
	return text;
}

/* ---- the command ---- */

/* Whether `bench ab` can be decided by it. */
static bool is_ab_metric(struct str metric)
{
	static const char *const time[] = { "ttft_ms", "tpot_ms", "itl_ms", "e2el_ms" };
	struct str rest = metric, word = str_cut(&rest, '_');

	if (str_is(metric, "output_throughput") || str_is(metric, "request_throughput"))
		return true;
	if (!str_is(word, "mean") && !str_is(word, "median") &&
	    !(word.n > 1 && word.p[0] == 'p' && isdigit((unsigned char)word.p[1])))
		return false;
	for (size_t i = 0; i < sizeof(time) / sizeof(*time); i++)
		if (str_is(rest, time[i]))
			return true;
	return false;
}

/* A place for the URL of a server: "URL_OF_c000007". */
static void add_side(struct buf *line, const char *place)
{
	char name[PLACE_BYTES_MAX + 1];
	const char *from = strchr(place, ' ');

	snprintf(name, sizeof(name), "%s", from ? from + 1 : place);
	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) || strchr("._-", *p) ? *p : '_';
	buf_printf(line, " --base-url URL_OF_%s", name);
}

static void add_option(struct buf *line, struct arena *a, struct str name, struct value v)
{
	buf_add_text(line, " --");
	for (size_t i = 0; i < name.n; i++)
		buf_add_char(line, name.p[i] == '_' ? '-' : name.p[i]);
	if (v.kind == VALUE_BOOL)
		return;
	buf_add_char(line, ' ');
	words_quote(line, str_of(parts_cell_text(a, v)));
}

/* Options of the load that are not their defaults. */
static void add_load(struct buf *line, struct arena *a, const struct row *row)
{
	static const struct str head = { "benchmark.", 10 };
	const struct value none = { .kind = VALUE_ABSENT };

	for (size_t i = 0; i < row->n; i++) {
		const struct cell *c = &row->cell[i];
		struct str name = { c->column.p + head.n, c->column.n - head.n };

		if (str_is(c->column, "server.model"))
			add_option(line, a, STR("model"), c->value);
		if (!str_starts(c->column, head) || memchr(name.p, '.', name.n) ||
		    str_is(name, "mode") || str_is(name, "header") || series_role(c->column) != SERIES_KEY ||
		    parts_is_missing(series_value(c->column, c->value, none)))
			continue;
		add_option(line, a, name, c->value);
	}
}

static bool is_serve(const struct row *row)
{
	for (size_t i = 0; i < row->n; i++)
		if (str_is(row->cell[i].column, "mode"))
			return row->cell[i].value.kind == VALUE_TEXT &&
			       str_is(row->cell[i].value.text, "serve");
	return false;
}

const char *step_command(const struct analyse_request *r, const struct step *s, int64_t run)
{
	struct buf line = { 0 };
	const char *text;
	struct row row;
	unsigned flags;

	if (!index_row(r->view, run, r->arena, &row, &flags) || !is_serve(&row))
		return NULL;
	buf_add_text(&line, "profllm bench ab");
	add_side(&line, step_place(r->arena, s->axis, s->before));
	add_side(&line, step_place(r->arena, s->axis, s->after));
	if (is_ab_metric(s->metric))
		buf_printf(&line, " --metric %.*s", (int)s->metric.n, s->metric.p);
	add_load(&line, r->arena, &row);
	text = arena_text(r->arena, buf_str(&line));
	buf_release(&line);
	return text;
}
