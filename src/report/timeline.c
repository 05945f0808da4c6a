/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - the data of the timeline page.
 *
 * One JSON value "meta": facts, summary, verdict, labels of the categories, rates
 * over time, series, distinct errors; then columns of whole numbers, one value per
 * request in sample order (web/src/timeline/data.ts reads them):
 *
 *   start   sent (of a failure before that: connecting), from the first request's; differences,
 *           signed; 0 when never sent
 *   lead    due to sent
 *   ttft    sent to first token event
 *   whole   sent to the end of the attempt
 *   answer  sent to first answer text behind reasoning, plus 1; 0 for none
 *   gaps    how many gaps between token events
 *   prompt, output   tokens
 *   session conversation, plus 1; 0 for none; turn: place in it, from 0. Both only where
 *           meta.n_sessions is not 0
 *   state   0 succeeded, 1 failed, 2 cancelled, 3 never sent; plus 4 times (index of the
 *           error + 1), 0 for no text
 *
 * and all gaps in runs of whole requests, column "gaps-0", "gaps-1"... Times are in
 * units of meta.unit_ns: 1 while the run has few gaps, so that what is shown is
 * exact, else 1000. A gap is the difference of two rounded instants since the first
 * token, so that rounding does not add up along a request.
 */
#include "report/plot.h"

#include "report/timeline.h"

#define EXACT_GAPS_MAX (1u << 20)  /* more: microseconds, or the page would be too large */
#define ERROR_BYTES 300

enum state { STATE_DONE, STATE_FAILED, STATE_CANCELLED, STATE_UNSENT };

int64_t timeline_start_ns(const struct timeline *t, uint32_t i)
{
	const struct request_row *row = timeline_row(t, i);

	if (row->sent_ns || row->state != REQ_FAILED)
		return row->sent_ns;
	return row->connect_ns ? row->connect_ns : row->admitted_ns ? row->admitted_ns
								    : row->due_ns;
}

static enum state state_of(const struct timeline *t, uint32_t i)
{
	const struct request_row *row = timeline_row(t, i);

	if (!timeline_start_ns(t, i))
		return STATE_UNSENT;
	return row->state == REQ_DONE ? STATE_DONE : row->state == REQ_FAILED ? STATE_FAILED
									      : STATE_CANCELLED;
}

static int64_t positive(int64_t v)
{
	return v > 0 ? v : 0;
}

int64_t timeline_whole_ns(const struct timeline *t, uint32_t i)
{
	const struct metrics *m = t->r->metrics;
	const struct request_row *row = timeline_row(t, i);
	int64_t end = row->end_ns > row->last_event_ns ? row->end_ns : row->last_event_ns;
	int64_t first = timeline_ns(m->ttft[i]);

	end = end ? end - timeline_start_ns(t, i) : 0;
	return positive(end > first ? end : first);
}

static bool find_span(struct timeline *t)
{
	const struct metrics *m = t->r->metrics;
	bool is_any = false;

	for (uint32_t i = 0; i < m->n; i++) {
		int64_t sent = timeline_start_ns(t, i), end = sent + timeline_whole_ns(t, i);

		if (!sent)
			continue;
		t->from_ns = !is_any || sent < t->from_ns ? sent : t->from_ns;
		t->to_ns = !is_any || end > t->to_ns ? end : t->to_ns;
		is_any = true;
	}
	t->unit_ns = m->itl_at[m->n] > EXACT_GAPS_MAX ? 1000 : 1;
	return is_any;
}

static uint64_t in_units(const struct timeline *t, int64_t ns)
{
	return (uint64_t)((positive(ns) + t->unit_ns / 2) / t->unit_ns);
}

/* ---- errors ---- */

/* The first line; equal texts share an index. */
static unsigned error_index(struct timeline *t, uint32_t i)
{
	struct buf text = { 0 };
	char *end;
	unsigned k;

	record_error_of(t->r->record, timeline_row(t, i), &text);
	if (text.len == 0)
		return 0;
	end = memchr(text.data, '\n', text.len);
	if (end)
		text.len = (size_t)(end - text.data);
	if (text.len > ERROR_BYTES)
		text.len = ERROR_BYTES;
	for (k = 0; k < t->n_errors; k++)
		if (str_eq(buf_str(&t->error[k]), buf_str(&text)))
			break;
	if (k == t->n_errors && k < TIMELINE_ERRORS_MAX) {
		buf_add_str(&t->error[k], k < TIMELINE_ERRORS_MAX - 1 ? buf_str(&text) :
			    STR("an error of another text; the result file has all of them"));
		t->n_errors++;
	}
	buf_release(&text);
	return (k < TIMELINE_ERRORS_MAX ? k : TIMELINE_ERRORS_MAX - 1) + 1;
}

/* ---- columns ---- */

static void write_states(struct timeline *t, struct html *h)
{
	html_column(h, "state");
	for (uint32_t i = 0; i < t->r->metrics->n; i++) {
		unsigned error = timeline_row(t, i)->state == REQ_FAILED ? error_index(t, i) : 0;

		html_uint(h, (uint64_t)state_of(t, i) + 4 * (uint64_t)error);
	}
	html_column_end(h);
}

static int64_t answer_ns(const struct request_row *row)
{
	return row->first_reasoning_ns && row->first_answer_ns > row->first_reasoning_ns
		       ? row->first_answer_ns - row->sent_ns : -1;
}

static void write_times(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;
	int64_t last = 0;

	html_column(h, "start");
	for (uint32_t i = 0; i < m->n; i++) {
		int64_t sent = timeline_start_ns(t, i);
		int64_t at = sent ? (int64_t)in_units(t, sent - t->from_ns) : 0;

		html_int(h, at - last);
		last = at;
	}
	html_column_end(h);
	html_column(h, "lead");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, in_units(t, timeline_ns(m->queue_time[i])));
	html_column_end(h);
	html_column(h, "ttft");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, in_units(t, timeline_ns(m->ttft[i])));
	html_column_end(h);
	html_column(h, "whole");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, timeline_start_ns(t, i) ? in_units(t, timeline_whole_ns(t, i)) : 0);
	html_column_end(h);
	html_column(h, "answer");
	for (uint32_t i = 0; i < m->n; i++) {
		int64_t at = answer_ns(timeline_row(t, i));

		html_uint(h, at < 0 ? 0 : in_units(t, at) + 1);
	}
	html_column_end(h);
}

static void write_counts(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;

	html_column(h, "gaps");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, m->itl_at[i + 1] - m->itl_at[i]);
	html_column_end(h);
	html_column(h, "prompt");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, (uint64_t)m->input_len[i]);
	html_column_end(h);
	html_column(h, "output");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, (uint64_t)m->output_len[i]);
	html_column_end(h);
}

static void write_turns(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;

	if (!m->sessions.n)
		return;
	html_column(h, "session");
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t session = timeline_row(t, i)->session;

		html_uint(h, session == RECORD_NONE ? 0 : (uint64_t)session + 1);
	}
	html_column_end(h);
	html_column(h, "turn");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, timeline_row(t, i)->turn);
	html_column_end(h);
}

static void write_gaps(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;
	char id[32];
	unsigned run = 0;

	for (uint32_t i = 0; i < m->n; run++) {
		size_t stop = m->itl_at[i] + TIMELINE_RUN_GAPS;

		snprintf(id, sizeof(id), "gaps-%u", run);
		html_column(h, id);
		for (; i < m->n && m->itl_at[i] < stop; i++) {
			int64_t at_ns = 0;
			uint64_t at = 0, next;

			for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k++, at = next) {
				at_ns += positive(timeline_ns(m->itl[k]));
				next = in_units(t, at_ns);
				html_uint(h, next - at);
			}
		}
		html_column_end(h);
	}
}

enum plot_outcome plot_timeline(const struct report *r, const double threshold_ms[2],
				const char *path, struct err *e)
{
	struct timeline t = { .r = r };
	struct html html;
	int rc;

	if (r->metrics->opts.is_pooling || r->metrics->n == 0)
		return PLOT_NOT_DETAILED;
	if (!find_span(&t))
		return PLOT_EMPTY;
	if (html_begin(&html, "timeline.html", path, e) < 0)
		return PLOT_FAILED;
	write_states(&t, &html);
	timeline_meta(&t, threshold_ms, &html);
	write_times(&t, &html);
	write_counts(&t, &html);
	write_turns(&t, &html);
	write_gaps(&t, &html);
	rc = html_end(&html, e);
	for (unsigned k = 0; k < t.n_errors; k++)
		buf_release(&t.error[k]);
	return rc < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
