/* SPDX-License-Identifier: Apache-2.0 */
/* repeat.c - see repeat.h. */
#include "bench/serve/repeat.h"

#include <assert.h>
#include <math.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/stats.h"

/* One number of a run, with its name in the result. */
struct value { const char *name; double v; };
struct values { struct value *v; size_t n; struct arena arena; };

struct spread { double mean, sd, min, max, cv; };

struct repeat_run *repeat_add(struct repeat *r)
{
	r->run = mem_grow(r->run, r->n + 1, sizeof(struct repeat_run *));
	r->run[r->n] = mem_alloc(sizeof(struct repeat_run));
	return r->run[r->n++];
}

void repeat_take(struct repeat_run *run, struct point *p)
{
	run->record = p->record;
	run->record.meta = NULL; /* the point's */
	p->record = (struct record){ 0 };
	run->scored.report.record = &run->record;
}

static double rank_of(const struct repeat_run *run)
{
	const struct metrics *m = &run->scored.metrics;

	return m->opts.is_pooling ? m->request_throughput : m->total_token_throughput;
}

struct repeat_run *repeat_median(const struct repeat *r)
{
	assert(r->n > 0);
	for (unsigned i = 0; i < r->n; i++) {
		unsigned below = 0;

		/* Equal ones keep their order. */
		for (unsigned k = 0; k < r->n; k++)
			below += rank_of(r->run[k]) < rank_of(r->run[i]) ||
				 (k < i && rank_of(r->run[k]) <= rank_of(r->run[i]));
		if (below == (r->n - 1) / 2)
			return r->run[i];
	}
	return r->run[0]; /* not reached: ranks are a permutation */
}

static void add(struct values *list, const char *name, double v)
{
	list->v = mem_grow(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = (struct value){ name, v };
}

/* Some run has values of the block: answers of one token have no TPOT. */
static bool is_measured(const struct repeat *r, enum metric_block b)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->run[i]->scored.metrics.block[b].n)
			return true;
	return false;
}

static void add_blocks(struct values *list, const struct repeat *r, const struct metrics *m)
{
	char p[FMT_F64_BYTES];

	for (enum metric_block b = 0; b < BLOCK_COUNT; b++) {
		const struct metrics_summary *s = &m->block[b];
		const char *key = metric_block_key(b);

		if (!s->is_reported || !is_measured(r, b))
			continue;
		add(list, arena_printf(&list->arena, "mean_%s_ms", key), s->mean_ms);
		add(list, arena_printf(&list->arena, "median_%s_ms", key), s->median_ms);
		for (size_t k = 0; k < m->opts.n_percentiles; k++)
			add(list, arena_printf(&list->arena, "p%s_%s_ms",
					       metrics_percentile_name(p, m->opts.percentile[k]),
					       key), s->percentile_ms[k]);
	}
}

/* The same names in the same order for every run of the same options. */
static struct values values_of(const struct repeat *r, const struct metrics *m)
{
	struct values list = { 0 };

	add(&list, "duration", m->duration_s);
	add(&list, "completed", m->completed);
	add(&list, "failed", m->failed);
	add(&list, "request_throughput", m->request_throughput);
	if (m->opts.n_goodput)
		add(&list, "request_goodput", m->request_goodput);
	if (m->opts.is_pooling) {
		add(&list, "input_sequence_throughput", m->sequence_throughput);
	} else {
		add(&list, "output_throughput", m->output_throughput);
		add(&list, "total_token_throughput", m->total_token_throughput);
	}
	add_blocks(&list, r, m);
	return list;
}

static void values_release(struct values *list)
{
	free(list->v);
	arena_release(&list->arena);
}

static struct spread spread_of(const double *v, size_t n)
{
	struct spread s = { .mean = stats_mean(v, n), .min = v[0], .max = v[0] };

	for (size_t i = 0; i < n; i++) {
		s.min = v[i] < s.min ? v[i] : s.min;
		s.max = v[i] > s.max ? v[i] : s.max;
	}
	/* stats_std divides by n. */
	s.sd = n > 1 ? stats_std(v, n) * sqrt((double)n / (double)(n - 1)) : 0;
	s.cv = s.mean != 0 ? s.sd / fabs(s.mean) : 0;
	return s;
}

/* Calls each() with every name, its values over the runs and their spread. */
static void walk(const struct repeat *r,
		 void (*each)(void *self, const char *name, const double *v, size_t n,
			      const struct spread *s), void *self)
{
	struct values *run = mem_array(r->n, sizeof(*run));
	double *v = mem_array(r->n, sizeof(*v));

	for (unsigned i = 0; i < r->n; i++)
		run[i] = values_of(r, &r->run[i]->scored.metrics);
	for (size_t k = 0; k < run[0].n; k++) {
		struct spread s;

		for (unsigned i = 0; i < r->n; i++) {
			assert(run[i].n == run[0].n);
			v[i] = run[i].v[k].v;
		}
		s = spread_of(v, r->n);
		each(self, run[0].v[k].name, v, r->n, &s);
	}
	for (unsigned i = 0; i < r->n; i++)
		values_release(&run[i]);
	free(run);
	free(v);
}

static void table_row(void *self, const char *name, const double *v, size_t n,
		      const struct spread *s)
{
	(void)v;
	(void)n;
	buf_printf(self, "%-32s %12.2f %12.2f %12.2f %12.2f %8.2f\n", name, s->mean, s->sd,
		   s->min, s->max, 100 * s->cv);
}

void repeat_table(const struct repeat *r, struct buf *out)
{
	unsigned chosen = 0;

	while (r->run[chosen] != repeat_median(r))
		chosen++;
	buf_printf(out, "All %u runs (the saved result is that of run %u):\n", r->n, chosen + 1);
	buf_printf(out, "%-32s %12s %12s %12s %12s %8s\n", "", "mean", "sd", "min", "max", "CV %");
	walk(r, table_row, out);
}

static void json_metric(void *self, const char *name, const double *v, size_t n,
			const struct spread *s)
{
	const struct { const char *key; double v; } member[] = {
		{ "mean", s->mean }, { "sd", s->sd }, { "min", s->min }, { "max", s->max },
		{ "cv", s->cv },
	};
	struct json_writer *w = self;

	json_begin_object(w);
	json_member_text(w, "name", name);
	for (size_t i = 0; i < sizeof(member) / sizeof(*member); i++)
		json_member_f64(w, member[i].key, member[i].v);
	json_member_array(w, "values");
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, v[i]);
	json_end_array(w);
	json_end_object(w);
}

void repeat_json(const struct repeat *r, struct buf *out)
{
	struct json_writer w = json_writer(out);
	const struct repeat_run *chosen = repeat_median(r);
	unsigned number = 0;

	while (r->run[number] != chosen)
		number++;
	json_begin_object(&w);
	json_member_int(&w, "count", r->n);
	json_member_int(&w, "saved", number + 1);
	json_member_array(&w, "metrics");
	walk(r, json_metric, &w);
	json_end_array(&w);
	json_end_object(&w);
}

void repeat_release(struct repeat *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		scored_release(&r->run[i]->scored);
		record_release(&r->run[i]->record);
		free(r->run[i]);
	}
	free(r->run);
	*r = (struct repeat){ 0 };
}
