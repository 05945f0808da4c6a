/* SPDX-License-Identifier: Apache-2.0 */
/* plan_time.c - see plan_time.h. */
#include "experiment/plan_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "experiment/suite_parts.h"

struct earlier { bool is_there; struct suite_document d; };

struct plan_times {
	const struct suite *s;
	struct earlier *earlier;  /* of every member */
	double *start;            /* sorted, of the documents that tell one */
	size_t n_starts;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct plan_times *plan_times_new(const struct suite *s)
{
	struct plan_times *t = mem_alloc(sizeof(*t));

	t->s = s;
	t->earlier = mem_array(s->n + 1, sizeof(*t->earlier));
	t->start = mem_array(s->n + 1, sizeof(*t->start));
	for (size_t i = 0; i < s->n; i++) {
		struct earlier *x = &t->earlier[i];

		x->is_there = suite_document_of(&s->member[i], &x->d);
		if (x->is_there && isfinite(x->d.startup_s))
			t->start[t->n_starts++] = x->d.startup_s;
	}
	qsort(t->start, t->n_starts, sizeof(*t->start), by_size);
	return t;
}

void plan_times_free(struct plan_times *t)
{
	free(t->earlier);
	free(t->start);
	free(t);
}

double plan_load_s(const struct experiment *x)
{
	const struct serve_opts *o = &x->serve;
	double rate = o->request_rate;

	if (!mode_is_served(x->mode))
		return NAN;
	if (o->ramp_up_strategy && o->ramp_up_start_rps.is_set && o->ramp_up_end_rps.is_set)
		rate = (double)(o->ramp_up_start_rps.v + o->ramp_up_end_rps.v) / 2;
	if (o->duration.is_set)
		return o->duration.v;
	if (isfinite(rate) && rate > 0)
		return (double)o->num_prompts / rate;
	return NAN;
}

/* What is left of the earlier run when nothing is started; NAN: it does not tell. */
static double earlier_load_s(const struct earlier *before)
{
	double s = before->d.duration_s;

	if (!before->is_there || before->d.status != OUTCOME_COMPLETED)
		return NAN;
	if (isfinite(before->d.startup_s))
		s -= before->d.startup_s;
	return s < 0 ? 0 : s;
}

unsigned plan_starts(const struct experiment *x)
{
	unsigned n = 0;

	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++)
		n += !x->server[i].url;
	return n;
}

struct plan_time plan_times_of(const struct plan_times *t, size_t place, bool is_reusing)
{
	const struct suite_member *m = &t->s->member[place];
	const struct earlier *before = &t->earlier[place];
	struct plan_time out = { .start_s = 0, .load_s = plan_load_s(&m->x), .total_s = NAN };
	bool has_start = !is_reusing && plan_starts(&m->x) > 0;

	if (has_start)
		out.start_s = t->n_starts ? t->start[t->n_starts / 2] : NAN;
	if (isfinite(earlier_load_s(before))) {
		if (has_start && isfinite(before->d.startup_s))
			out.start_s = before->d.startup_s;
		out.total_s = earlier_load_s(before) + (isfinite(out.start_s) ? out.start_s : 0);
		snprintf(out.basis, sizeof(out.basis), "as long as its earlier run%s",
			 is_reusing && isfinite(before->d.startup_s) ? ", without the start" : "");
	} else if (!isfinite(out.load_s)) {
		snprintf(out.basis, sizeof(out.basis), "%s", mode_is_served(m->x.mode) ?
			 "requests go as fast as the server takes them, and no earlier run is there"
			 : "no earlier run is there");
	} else if (!has_start) {
		out.total_s = out.load_s;
		snprintf(out.basis, sizeof(out.basis), "its schedule");
	} else if (isfinite(out.start_s)) {
		out.total_s = out.start_s + out.load_s;
		snprintf(out.basis, sizeof(out.basis), "%.0f s until ready, the median of %zu earlier "
			 "start%s, and %.0f s by its schedule", out.start_s, t->n_starts,
			 t->n_starts == 1 ? "" : "s", out.load_s);
	} else {
		out.total_s = out.load_s;
		snprintf(out.basis, sizeof(out.basis), "%.0f s by its schedule; how long the server "
			 "takes to start is not known yet", out.load_s);
	}
	return out;
}
