/* SPDX-License-Identifier: Apache-2.0 */
/* compare_notes.c - what speaks against a verdict, and what a reader of a comparison must know. */
#include <math.h>
#include <string.h>

#include "report/compare.h"
#include "report/frame.h"
#include "stats/judge.h"

#define NAMED_RUNS_MAX 5

void compare_note(struct comparison *c, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	buf_printf(&c->notes, "%s\n", line);
}

/* ---- guards ---- */

/* The sum of one key over the sum of another, over a point's runs; NAN when there is nothing. */
static double share_of(const struct compare_side *s, size_t point, const char *part,
		       const char *whole, bool is_part_in_whole)
{
	double sum = 0, all = 0, x, y;

	for (size_t i = s->first[point]; i < s->first[point + 1]; i++)
		if (compare_number(s->run[i].record, part, &x) &&
		    compare_number(s->run[i].record, whole, &y)) {
			sum += x;
			all += is_part_in_whole ? x + y : y;
		}
	return all > 0 ? sum / all : NAN;
}

/* Other work than the baseline's, or less of it good enough; NULL: neither. */
static const char *other_guard(struct comparison *c, size_t point, size_t side)
{
	static const struct { const char *part, *what; } work[] = {
		{ "total_output_tokens", "output tokens per request" },
		{ "total_input_tokens", "input tokens per request" },
	};
	const struct compare_side *a = &c->side[0], *b = &c->side[side];
	double goods;

	for (size_t i = 0; i < sizeof(work) / sizeof(*work); i++) {
		double ta = share_of(a, point, work[i].part, "completed", false);
		double tb = share_of(b, point, work[i].part, "completed", false);

		if (fabs(tb / ta - 1) > JUDGE_GUARD_CHANGE)
			return arena_printf(c->a, "other work was done: %s %.1f, then %.1f",
					    work[i].what, ta, tb);
	}
	goods = share_of(b, point, "request_goodput", "request_throughput", false) /
		share_of(a, point, "request_goodput", "request_throughput", false);
	if (goods < 1 - JUDGE_GUARD_CHANGE)
		return arena_printf(c->a, "the share of requests within the goodput limits fell by %.1f %%",
				    (1 - goods) * 100);
	return NULL;
}

void compare_guard(struct comparison *c, size_t point, size_t side)
{
	double before = share_of(&c->side[0], point, "failed", "completed", true);
	double now = share_of(&c->side[side], point, "failed", "completed", true);

	if (now - before > JUDGE_FAILED_SHARE)
		c->point[point].failures[side] =
			arena_printf(c->a, "failed requests rose from %.1f %% to %.1f %%",
				     before * 100, now * 100);
	c->point[point].guard[side] = other_guard(c, point, side);
}

/* ---- notes ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void note_invalid(struct comparison *c, const struct compare_side *s)
{
	struct buf list = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct json_value *r = s->run[i].record, *number = json_get(r, "run_number");
		const char *point = c->point[s->run[i].point].name;

		if (!str_is(json_text(frame_value(r, STR("profllm.verdict")), STR("")), "INVALID") ||
		    n++ >= NAMED_RUNS_MAX)
			continue;
		buf_add_text(&list, n > 1 ? ", " : "");
		if (number)
			buf_printf(&list, "run %lld%s%s", (long long)json_int(number, 0),
				   *point ? " at " : "", point);
		else
			buf_add_text(&list, last_part(s->run[i].path));
	}
	if (n)
		compare_note(c, "%s: %zu of %zu runs judged themselves INVALID: %s%s", s->name, n, s->n,
			     list.data, n > NAMED_RUNS_MAX ? "..." : "");
	buf_release(&list);
}

/* Whether some point has several runs, all of them of one server's life. */
static bool is_one_session(const struct comparison *c, const struct compare_side *s)
{
	for (size_t p = 0; p < c->n_points; p++) {
		unsigned first = 0;
		size_t runs = 0, others = 0;

		for (size_t i = s->first[p]; i < s->first[p + 1]; i++) {
			first = runs++ ? first : s->run[i].session;
			others += s->run[i].session != first;
		}
		if (runs > 1 && first && !others)
			return true;
	}
	return false;
}

static void note_point(struct comparison *c, size_t point, size_t side, const char *what)
{
	const char *name = c->point[point].name;

	if (what)
		compare_note(c, "%s%s%s: %s", c->side[side].name, *name ? " at " : "", name, what);
}

static void note_sides(struct comparison *c)
{
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct compare_side *side = &c->side[s];

		if (side->is_baseline_again)
			compare_note(c, "%s: the same runs as the baseline", side->name);
		note_invalid(c, side);
		compare_note_server(c, side);
		if (is_one_session(c, side))
			compare_note(c, "%s: repeats of a point come from one server session, so they "
				     "are not independent (about 40 %% false alarms if they were "
				     "taken as such); %s. Measure with bench sweep --restart run, or a "
				     "suite with restart: on-repeat", side->name,
				     c->o->is_each_run ? "they are taken as such all the same" :
							 "their mean counts as one value");
	}
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++) {
			note_point(c, p, s, c->point[p].failures[s]);
			note_point(c, p, s, c->point[p].guard[s]);
		}
}

/* The most repeats that any point needs for a metric; 0: none lacks any, or no number would do. */
static size_t most_needed(const struct comparison *c, size_t metric)
{
	size_t most = 0;

	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++) {
			const struct compare_cell *cell = compare_cell(c, p, metric, s);

			if (cell->verdict != COMPARE_NOT_ENOUGH || !isfinite(cell->cv))
				continue;
			if (!cell->repeats_needed)
				return 0;
			most = cell->repeats_needed > most ? cell->repeats_needed : most;
		}
	return most;
}

static void note_needed(struct comparison *c)
{
	struct buf list = { 0 };
	size_t most = 0;

	for (size_t m = 0; m < c->n_metrics; m++) {
		size_t n = most_needed(c, m);

		most = n > most ? n : most;
		if (n)
			buf_printf(&list, "%s%s %zu", list.len ? ", " : "", c->metric[m].key, n);
	}
	if (most)
		compare_note(c, "at this scatter the least change worth naming shows with so many "
			     "repeats a side, each with a fresh server: %s", list.data);
	buf_release(&list);
}

void compare_notes(struct comparison *c)
{
	note_sides(c);
	note_needed(c);
}
