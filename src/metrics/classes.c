/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c - how requests of each priority fared, and what priorities cost a class. */
#include "metrics/parts.h"

#include <math.h>

#include "base/mem.h"

static int by_priority(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The different ones in ascending order; to be freed. */
static int64_t *priorities_of(const struct metrics_class_request *v, size_t n, size_t *distinct)
{
	int64_t *all = mem_array(n, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i] = v[i].priority;
	qsort(all, n, sizeof(*all), by_priority);
	*distinct = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || all[i] != all[*distinct - 1])
			all[(*distinct)++] = all[i];
	return all;
}

/* The values of a class that are told, into room for n of them. */
static struct metrics_spread spread_of(const struct metrics_class_request *v, size_t n,
				       int64_t priority, size_t offset, double *room)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		double value = *(const double *)((const char *)&v[i] + offset);

		if (v[i].priority == priority && v[i].is_completed && !isnan(value))
			room[k++] = value;
	}
	return metrics_spread(room, k);
}

static void fill(struct metrics_class *c, const struct metrics_class_request *v, size_t n,
		 double *room)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].priority != c->priority)
			continue;
		c->requests++;
		c->completed += v[i].is_completed;
		c->failed += v[i].is_failed;
	}
#define SPREAD(member) spread_of(v, n, c->priority,                                        \
				 offsetof(struct metrics_class_request, member), room)
	c->ttft = SPREAD(ttft_s);
	c->tpot = SPREAD(tpot_s);
	c->e2el = SPREAD(e2el_s);
	c->queue = SPREAD(queue_s);
#undef SPREAD
}

size_t metrics_class_split(const struct metrics_class_request *v, size_t n,
			   struct metrics_class out[METRICS_CLASSES_MAX])
{
	size_t distinct;
	int64_t *priority = priorities_of(v, n, &distinct);
	double *room = mem_array(n, sizeof(*room));

	for (size_t k = 0; k < distinct && distinct <= METRICS_CLASSES_MAX; k++) {
		out[k] = (struct metrics_class){ .priority = priority[k] };
		fill(&out[k], v, n, room);
	}
	free(room);
	free(priority);
	return distinct;
}

static double ratio(const struct metrics_spread *with, const struct metrics_spread *without)
{
	return with->n && without->n && without->p50_ms > 0 ? with->p50_ms / without->p50_ms : NAN;
}

struct metrics_class_cost metrics_class_cost(const struct metrics_class *with,
					     const struct metrics_class *without)
{
	return (struct metrics_class_cost){
		.ttft = ratio(&with->ttft, &without->ttft),
		.tpot = ratio(&with->tpot, &without->tpot),
		.e2el = ratio(&with->e2el, &without->e2el),
		.queue = ratio(&with->queue, &without->queue),
	};
}

void metrics_classes(struct metrics *m, const struct record *r)
{
	struct metrics_class_request *v = mem_array(m->n, sizeof(*v));
	struct metrics_class class[METRICS_CLASSES_MAX];
	bool has_tokens = !m->opts.is_pooling;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		double decode_s = m->latency[i] - m->ttft[i];

		v[i] = (struct metrics_class_request){
			.priority = row->priority, .is_completed = metrics_is_success(row),
			.is_failed = row->state == REQ_FAILED,
			.ttft_s = has_tokens ? m->ttft[i] : NAN,
			.tpot_s = has_tokens && m->output_len[i] > 1 ?
				  decode_s / (double)(m->output_len[i] - 1) : NAN,
			.e2el_s = m->latency[i], .queue_s = NAN, /* no API tells it of a request */
		};
	}
	m->n_priorities = m->n ? metrics_class_split(v, m->n, class) : 0;
	if (m->n_priorities > 1 && m->n_priorities <= METRICS_CLASSES_MAX) {
		m->class = mem_array(m->n_priorities, sizeof(*m->class));
		memcpy(m->class, class, m->n_priorities * sizeof(*m->class));
	}
	free(v);
}
