/* SPDX-License-Identifier: Apache-2.0 */
/* priorities.c - see priorities.h. */
#include "out/report/priorities.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/json/write.h"
#include "out/report/report_internal.h"

static void spread_row(struct buf *out, int64_t priority, const char *name,
		       const struct metrics_spread *s)
{
	char label[80];

	snprintf(label, sizeof(label), "Priority %" PRId64 " %s p50/p99/max (ms):", priority, name);
	line_spread(out, label, s);
}

/* Only the rows, for a report of n classes. */
static void report_class_rows(const struct metrics_class *class, size_t n, struct buf *out)
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

void report_classes_json(const struct metrics_class *class, size_t n, struct json_writer *w)
{
	assert(n <= METRICS_CLASSES_MAX);
	json_begin_array(w);
	for (size_t i = 0; i < n; i++) {
		const struct metrics_class *c = &class[i];

		json_begin_object(w);
		json_member_int(w, "priority", c->priority);
		json_member_int(w, "requests", c->requests);
		json_member_int(w, "completed", c->completed);
		json_member_int(w, "failed", c->failed);
		report_put_spread(w, "ttft_ms", &c->ttft);
		report_put_spread(w, "tpot_ms", &c->tpot);
		report_put_spread(w, "e2el_ms", &c->e2el);
		report_put_spread(w, "queue_ms", &c->queue);
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

/* ---- the result of bench prioritization ---- */

static double per_second(const struct prioritization_run *r, double amount)
{
	return r->elapsed_s > 0 ? amount / r->elapsed_s : 0;
}

static uint64_t counted(const struct prioritization_run *r)
{
	return r->prompt_tokens + r->output_tokens;
}

/* The same class in the other run; NULL: it has none. */
static const struct metrics_class *same(const struct prioritization_run *r, int64_t priority)
{
	for (size_t i = 0; i < r->n_classes; i++)
		if (r->class[i].priority == priority)
			return &r->class[i];
	return NULL;
}

static void add_ratio(struct buf *out, const char *separator, double ratio)
{
	if (isnan(ratio))
		buf_printf(out, "%s-", separator);
	else
		buf_printf(out, "%s%.2f", separator, ratio);
}

static void cost_rows(const struct prioritization_facts *f, struct buf *out)
{
	char label[80];

	line_heading(out, '-', "Priority Cost");
	for (size_t i = 0; i < f->run.n_classes; i++) {
		const struct metrics_class *with = &f->run.class[i];
		const struct metrics_class *without = same(&f->baseline, with->priority);
		struct metrics_class_cost cost;
		struct buf text = { 0 };

		if (!without)
			continue;
		cost = metrics_class_cost(with, without);
		add_ratio(&text, "", cost.ttft);
		add_ratio(&text, " / ", cost.tpot);
		add_ratio(&text, " / ", cost.e2el);
		snprintf(label, sizeof(label), "Priority %" PRId64 " TTFT/TPOT/E2EL (times):",
			 with->priority);
		line_text(out, label, text.data);
		buf_release(&text);
	}
	buf_add_text(out, "Median of each class over that of the same requests without priorities.\n");
}

static void count_rows(const char *which, const struct prioritization_run *r, struct buf *out)
{
	if (!r->has_counts) {
		buf_printf(out, "%s: the engine reported no tokens\n", which);
		return;
	}
	buf_printf(out, "%s: %.3f s, %" PRIu64 " prompt tokens, %" PRIu64 " output tokens, %.2f "
		   "tokens/s\n", which, r->elapsed_s, r->prompt_tokens, r->output_tokens,
		   per_second(r, (double)counted(r)));
}

void prioritization_terminal(const struct prioritization_facts *f, struct buf *out)
{
	buf_printf(out, "Throughput: %.2f requests/s, %.2f tokens/s\n",
		   per_second(&f->run, (double)f->n), per_second(&f->run, (double)f->asked_tokens));
	count_rows("Counted", &f->run, out);
	if (f->has_baseline)
		count_rows("Counted without priorities", &f->baseline, out);
	line_heading(out, '-', "Priorities");
	report_class_rows(f->run.class, f->run.n_classes, out);
	if (f->has_baseline)
		cost_rows(f, out);
}

static void put_run(struct json_writer *w, const struct prioritization_run *r)
{
	if (r->has_counts) {
		json_member_int(w, "prompt_tokens", (int64_t)r->prompt_tokens);
		json_member_int(w, "output_tokens", (int64_t)r->output_tokens);
		json_member_f64(w, "counted_tokens_per_second", per_second(r, (double)counted(r)));
	}
	json_key(w, "priorities");
	report_classes_json(r->class, r->n_classes, w);
}

static void put_costs(struct json_writer *w, const struct prioritization_facts *f)
{
	json_member_array(w, "priority_cost");
	for (size_t i = 0; i < f->run.n_classes; i++) {
		const struct metrics_class *with = &f->run.class[i];
		const struct metrics_class *without = same(&f->baseline, with->priority);
		struct metrics_class_cost cost;

		if (!without)
			continue;
		cost = metrics_class_cost(with, without);
		json_begin_object(w);
		json_member_int(w, "priority", with->priority);
		json_member_f64(w, "ttft", cost.ttft); /* null where not known */
		json_member_f64(w, "tpot", cost.tpot);
		json_member_f64(w, "e2el", cost.e2el);
		json_member_f64(w, "queue", cost.queue);
		json_end_object(w);
	}
	json_end_array(w);
}

void prioritization_json(const struct prioritization_facts *f, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 4;
	json_begin_object(&w);
	json_member_f64(&w, "elapsed_time", f->run.elapsed_s);
	json_member_int(&w, "num_requests", (int64_t)f->n);
	json_member_int(&w, "total_num_tokens", (int64_t)f->asked_tokens);
	json_member_f64(&w, "requests_per_second", per_second(&f->run, (double)f->n));
	json_member_f64(&w, "tokens_per_second", per_second(&f->run, (double)f->asked_tokens));
	json_member_object(&w, "profllm");
	json_put_members(&w, f->ours);
	put_run(&w, &f->run);
	if (f->has_baseline) {
		json_member_object(&w, "baseline");
		json_member_f64(&w, "elapsed_time", f->baseline.elapsed_s);
		put_run(&w, &f->baseline);
		json_end_object(&w);
		put_costs(&w, f);
	}
	json_end_object(&w);
	json_end_object(&w);
}
