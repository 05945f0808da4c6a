/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - see dump.h. */
#include "run/dump.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/limits.h"
#include "base/mem.h"
#include "data/repeat.h"
#include "json/write.h"
#include "run/prepare.h"
#include "stats/stats.h"

#define PRIORITIES_SHOWN 16 /* in the summary */

static void put_json(struct json_writer *w, const char *key, struct str json)
{
	if (json.n == 0)
		return;
	json_member_foreign(w, key, json);
}

static void put_file(struct json_writer *w, const struct sample *s)
{
	struct buf base64 = { 0 };

	base64_encode(s->file, &base64);
	json_member_object(w, "file");
	json_member_str(w, "name", str_of(s->file_name));
	json_member_str(w, "bytes_base64", buf_str(&base64));
	json_member_f64(w, "seconds", s->audio_s);
	json_end_object(w);
	buf_release(&base64);
}

static void put_index(struct json_writer *w, const char *key, uint32_t entry)
{
	json_key(w, key);
	if (entry == PLAN_NONE)
		json_put_null(w);
	else
		json_put_int(w, entry);
}

/* after and history are indices of other lines; due_s then counts from the end of `after`. */
static void put_turn(struct json_writer *w, const struct plan_entry *entry)
{
	put_index(w, "session", entry->session);
	put_index(w, "turn", entry->turn);
	put_index(w, "after", entry->after);
	put_index(w, "history", entry->history);
}

static void dump_entry(const struct plan_entry *entry, uint32_t index, struct str id,
		       const struct sample *s, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_int(&w, "index", index);
	json_key(&w, "request_id");
	if (id.n)
		json_put_str(&w, id);
	else
		json_put_null(&w);
	json_member_f64(&w, "due_s", entry->due_s);
	json_key(&w, "prompt");
	if (s->kind == PROMPT_TEXT)
		json_put_str(&w, s->prompt);
	else
		json_put_foreign(&w, s->prompt);
	json_member_int(&w, "prompt_len", s->prompt_len);
	json_key(&w, "output_len");
	if (s->output_len < 0)
		json_put_null(&w);
	else
		json_put_int(&w, s->output_len);
	if (!isnan(s->timestamp_s))
		json_member_f64(&w, "timestamp_s", s->timestamp_s);
	put_json(&w, "messages", s->messages);
	put_json(&w, "media", s->media);
	put_json(&w, "overrides", s->overrides);
	put_json(&w, "headers", s->headers);
	put_json(&w, "constraint", s->constraint);
	if (s->expected.n)
		json_member_str(&w, "expected", s->expected);
	if (s->file.n)
		put_file(&w, s);
	if (entry->session != PLAN_NONE)
		put_turn(&w, entry);
	if (entry->lora != PLAN_NO_LORA)
		json_member_int(&w, "lora", entry->lora);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

void dump_workload(const struct workload *w, const struct plan *plan, const char *id_prefix,
		   struct buf *out)
{
	struct buf id = { 0 };

	out->limit = WORKLOAD_DUMP_BYTES_MAX;
	for (uint32_t i = 0; i < plan->n; i++) {
		buf_reset(&id);
		prepare_request_id(id_prefix, plan, i, w, &id);
		dump_entry(&plan->entry[i], i, buf_str(&id), &w->v[plan->entry[i].sample], out);
	}
	buf_release(&id);
}

static void row(struct buf *out, const char *label, double *sorted, size_t n)
{
	stats_sort(sorted, n);
	buf_printf(out, "%-28s%10.0f%10.1f%10.0f%10.0f%10.0f\n", label, sorted[0],
		   stats_mean(sorted, n), stats_percentile(sorted, n, 50),
		   stats_percentile(sorted, n, 99), sorted[n - 1]);
}

static int by_priority(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* "Priorities: 0: 5 requests, 1: 5 requests". */
static void add_priorities(const struct workload *w, const struct plan *plan, struct buf *out)
{
	int64_t *v = mem_array(plan->n, sizeof(*v));
	unsigned shown = 0;

	for (size_t i = 0; i < plan->n; i++)
		v[i] = w->v[plan->entry[i].sample].priority;
	qsort(v, plan->n, sizeof(*v), by_priority);
	buf_add_text(out, "Priorities:");
	for (size_t i = 0, same; i < plan->n && shown < PRIORITIES_SHOWN; i += same, shown++) {
		for (same = 1; i + same < plan->n && v[i + same] == v[i];)
			same++;
		buf_printf(out, "%s %" PRId64 ": %zu request%s", shown ? "," : "", v[i], same,
			   same > 1 ? "s" : "");
	}
	buf_add_text(out, shown == PRIORITIES_SHOWN ? ", ...\n" : "\n");
	free(v);
}

/* What requests have of their own. */
static void add_own(const struct workload *w, const struct plan *plan, struct buf *out)
{
	size_t bodies = 0, heads = 0;

	for (size_t i = 0; i < plan->n; i++) {
		const struct sample *s = &w->v[plan->entry[i].sample];

		bodies += s->overrides.n > 0;
		heads += s->headers.n > 0;
	}
	if (bodies || heads)
		buf_printf(out, "Requests with keys of their own: %zu in the body, %zu in headers\n",
			   bodies, heads);
	if (w->has_priorities)
		add_priorities(w, plan, out);
}

void dump_summary(const struct workload *w, const struct plan *plan, struct buf *out)
{
	size_t n = plan->n, with_output = 0;
	double *prompt = mem_array(n, sizeof(*prompt)), *output = mem_array(n, sizeof(*output));
	uint64_t prompt_sum = 0, output_sum = 0;
	double last = plan->n_roots ? plan->entry[plan->n_roots - 1].due_s : 0;

	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &w->v[plan->entry[i].sample];

		prompt[i] = s->prompt_len;
		prompt_sum += s->prompt_len;
		if (s->output_len >= 0) {
			output[with_output++] = (double)s->output_len;
			output_sum += (uint64_t)s->output_len;
		}
	}
	buf_printf(out, "Workload: %zu requests from dataset %s; %llu prompt tokens, %llu output tokens\n",
		   n, w->dataset, (unsigned long long)prompt_sum, (unsigned long long)output_sum);
	buf_printf(out, "%-28s%10s%10s%10s%10s%10s\n", "", "min", "mean", "median", "p99", "max");
	row(out, "Prompt length (tokens)", prompt, n);
	if (with_output)
		row(out, "Output length (tokens)", output, with_output);
	if (w->repeats)
		buf_printf(out, "Repeated: %zu of them (%s, %u of each); ideal prefix reuse %.2f %%\n",
			   w->n - w->repeats->n, w->repeats->order, w->repeats->count,
			   100 * dataset_ideal_reuse(w, false));
	if (last > 0)
		buf_printf(out, "Arrivals: first due at %.3f s, last at %.3f s, %.3f %s/s\n",
			   plan->entry[0].due_s, last, (double)plan->n_roots / last,
			   plan->n == plan->n_roots ? "requests" : "conversations");
	else
		buf_add_text(out, "Arrivals: all due at once\n");
	add_own(w, plan, out);
	free(prompt);
	free(output);
}
