/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c - how requests of each priority fared: rows and members of a report. */
#include "report/classes.h"

#include <inttypes.h>
#include <math.h>

#include "report/lines.h"
#include "json/write.h"

static void spread_row(struct buf *out, int64_t priority, const char *name,
		       const struct metrics_spread *s)
{
	char label[80];

	snprintf(label, sizeof(label), "Priority %" PRId64 " %s p50/p99/max (ms):", priority, name);
	line_spread(out, label, s);
}

void report_class_rows(const struct metrics_class *class, size_t n, struct buf *out)
{
	char label[80], counts[80];

	for (size_t i = 0; i < n; i++) {
		const struct metrics_class *c = &class[i];

		snprintf(label, sizeof(label), "Priority %" PRId64 " requests/failed:", c->priority);
		snprintf(counts, sizeof(counts), "%u / %u", c->requests, c->failed);
		line_text(out, label, counts);
		spread_row(out, c->priority, "TTFT", &c->ttft);
		spread_row(out, c->priority, "TPOT", &c->tpot);
		spread_row(out, c->priority, "E2EL", &c->e2el);
		spread_row(out, c->priority, "queue time", &c->queue);
	}
}

void report_classes(const struct metrics *m, struct buf *out)
{
	if (m->n_priorities < 2)
		return;
	line_heading(out, '-', "Priorities");
	if (m->class)
		report_class_rows(m->class, m->n_priorities, out);
	else
		buf_printf(out, "%zu different priorities are too many to be reported one by one (at "
			   "most %d).\n", m->n_priorities, METRICS_CLASSES_MAX);
}

/* null when there was nothing to measure */
static void put_spread(struct json_writer *w, const char *key, const struct metrics_spread *s)
{
	json_key(w, key);
	if (s->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_int(w, "n", (int64_t)s->n);
	json_member_f64(w, "mean", s->mean_ms);
	json_member_f64(w, "p50", s->p50_ms);
	json_member_f64(w, "p99", s->p99_ms);
	json_member_f64(w, "max", s->max_ms);
	json_end_object(w);
}

void report_classes_json(const struct metrics_class *class, size_t n, struct json_writer *w)
{
	json_begin_array(w);
	for (size_t i = 0; i < n; i++) {
		const struct metrics_class *c = &class[i];

		json_begin_object(w);
		json_member_int(w, "priority", c->priority);
		json_member_int(w, "requests", c->requests);
		json_member_int(w, "completed", c->completed);
		json_member_int(w, "failed", c->failed);
		put_spread(w, "ttft_ms", &c->ttft);
		put_spread(w, "tpot_ms", &c->tpot);
		put_spread(w, "e2el_ms", &c->e2el);
		put_spread(w, "queue_ms", &c->queue);
		json_end_object(w);
	}
	json_end_array(w);
}

static void read_spread(const struct json_value *class, const char *key, struct metrics_spread *s)
{
	const struct json_value *v = json_get(class, key);

	if (!v || v->kind != JSON_OBJECT)
		return;
	s->n = (size_t)json_int(json_get(v, "n"), 0);
	s->mean_ms = json_real(json_get(v, "mean"), NAN);
	s->p50_ms = json_real(json_get(v, "p50"), NAN);
	s->p99_ms = json_real(json_get(v, "p99"), NAN);
	s->max_ms = json_real(json_get(v, "max"), NAN);
}

size_t report_classes_read(const struct json_value *list,
			   struct metrics_class out[METRICS_CLASSES_MAX])
{
	size_t all = list && list->kind == JSON_ARRAY ? list->count : 0, n = 0;

	for (; n < all && n < METRICS_CLASSES_MAX; n++) {
		const struct json_value *v = &list->item[n];

		out[n] = (struct metrics_class){
			.priority = json_int(json_get(v, "priority"), 0),
			.requests = (uint32_t)json_int(json_get(v, "requests"), 0),
			.completed = (uint32_t)json_int(json_get(v, "completed"), 0),
			.failed = (uint32_t)json_int(json_get(v, "failed"), 0),
		};
		read_spread(v, "ttft_ms", &out[n].ttft);
		read_spread(v, "tpot_ms", &out[n].tpot);
		read_spread(v, "e2el_ms", &out[n].e2el);
		read_spread(v, "queue_ms", &out[n].queue);
	}
	return n;
}
