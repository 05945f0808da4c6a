/* SPDX-License-Identifier: Apache-2.0 */
/* prioritization.c - see prioritization.h. */
#include "report/prioritization.h"

#include <inttypes.h>
#include <math.h>

#include "report/classes.h"
#include "report/lines.h"
#include "json/write.h"

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
		buf_printf(out, "%s: the engine told no tokens\n", which);
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
