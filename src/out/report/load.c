/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - how load was generated, where it differs from upstream, and what was sent again: rows
 * and members of the report.
 */
#include "out/report/report_internal.h"

#include <math.h>

#include "core/json/write.h"
#include "out/report/report.h"

void report_reuse_rows(const struct report_reuse *r, struct buf *out)
{
	struct buf value = { 0 };

	if (r->order) {
		buf_printf(&value, "%u (%s, %u of each)", r->repeated, r->order, r->copies);
		line_text(out, "Repeated requests:", value.data);
		buf_reset(&value);
	}
	if (r->pass) {
		buf_printf(&value, "%s (%u requests)", r->pass, r->pass_requests);
		line_text(out, "Warm-up pass:", value.data);
	}
	if ((r->order || r->pass) && r->ideal >= 0)
		line_real(out, "Ideal prefix reuse (%):", 100 * r->ideal);
	buf_release(&value);
}

/* Below 0: not known, null. */
static double known(double v)
{
	return v >= 0 ? v : NAN;
}

void report_reuse_json(const struct report_reuse *r, struct json_writer *w)
{
	if (!r->order && !r->pass)
		return;
	json_member_int(w, "repeat_count", r->order ? r->copies : 1);
	json_member_text(w, "repeat_order", r->order);
	json_member_int(w, "repeated_requests", r->repeated);
	json_member_text(w, "warmup_pass", r->pass);
	json_member_int(w, "warmup_pass_requests", r->pass_requests);
	json_member_f64(w, "ideal_prefix_reuse", known(r->ideal));
}

static void row_positive(struct buf *out, const char *label, double v)
{
	if (v > 0)
		line_real(out, label, v);
}

static void url_rows(const struct report *r, struct buf *out)
{
	struct str rest = str_of(r->facts->load.urls);

	for (size_t i = 0; rest.n; i++) {
		struct str url = str_cut(&rest, '\n');
		struct metrics_url u = { 0 };

		if (i < r->metrics->n_urls)
			u = r->metrics->url[i];
		buf_printf(out, "  %.*s: %u requests, %u failed", (int)url.n, url.p, u.requests,
			   u.failed);
		if (u.completed && !r->metrics->opts.is_pooling)
			buf_printf(out, ", mean TTFT %.2f ms", u.mean_ttft_ms);
		buf_add_char(out, '\n');
	}
}

/* Requests per second that were sent / that were planned; below 0: not known. */
static double rate_share(const struct metrics_schedule *s)
{
	if (s->sent_span_s <= 0 || s->planned_span_s <= 0)
		return -1;
	return s->planned_span_s / s->sent_span_s;
}

static void replay_rows(const struct report *r, struct buf *out)
{
	const struct report_load *l = &r->facts->load;
	const struct metrics_schedule *s = &r->metrics->client.schedule;
	struct buf value = { 0 };

	buf_printf(&value, "%s, speed-up %g", l->trace_format ? l->trace_format : r->facts->dataset,
		   l->speedup);
	line_text(out, "Trace:", value.data);
	buf_release(&value);
	line_real(out, "Planned span (s):", s->planned_span_s);
	if (rate_share(s) >= 0)
		line_real(out, "Achieved / planned rate:", rate_share(s));
	line_real(out, "Requests later than 1 ms (%):", 100 * s->late_share);
	if (l->ideal_hit_rate >= 0)
		line_real(out, "Ideal prefix hit rate (%):", 100 * l->ideal_hit_rate);
	if (l->prefix_exact >= 0)
		line_real(out, "Exact shared prefixes (% of prompts):", 100 * l->prefix_exact);
}

void report_load_rows(const struct report *r, struct buf *out)
{
	const struct report_load *l = &r->facts->load;

	if (r->metrics->given_up)
		line_int(out, "Cancelled by plan:", r->metrics->given_up);
	row_positive(out, "Time limit (s):", l->time_limit_s);
	row_positive(out, "Planned requests used up after (s):", l->used_up_s);
	if (l->aborted)
		line_text(out, "Stopped:", l->aborted);
	if (l->prompt_salt) {
		struct buf value = { 0 };

		buf_add_text(&value, l->prompt_salt);
		if (l->prompt_salt_key)
			buf_printf(&value, ":%s", l->prompt_salt_key);
		line_text(out, "Prompt salt:", value.data);
		buf_release(&value);
	}
	report_reuse_rows(&l->reuse, out);
	if (l->is_replay)
		replay_rows(r, out);
	if (l->is_profile_asked)
		line_text(out, "Profiled:", l->is_profiled ? "yes" : "no");
	if (l->urls) {
		buf_add_text(out, "Base URLs:\n");
		url_rows(r, out);
	}
}

static void put_replay(struct json_writer *w, const struct report *r)
{
	const struct report_load *l = &r->facts->load;
	const struct metrics_schedule *s = &r->metrics->client.schedule;

	json_member_object(w, "trace");
	json_member_text(w, "format", l->trace_format);
	json_member_f64(w, "speedup", known(l->speedup));
	json_member_f64(w, "planned_span_s", known(s->planned_span_s));
	json_member_f64(w, "sent_span_s", known(s->sent_span_s));
	json_member_f64(w, "rate_share", known(rate_share(s)));
	json_member_f64(w, "late_share", known(s->late_share));
	json_member_f64(w, "ideal_hit_rate", known(l->ideal_hit_rate));
	json_member_f64(w, "prefix_exact", known(l->prefix_exact));
	json_end_object(w);
}

static void put_urls(struct json_writer *w, const struct report *r)
{
	struct str rest = str_of(r->facts->load.urls);

	if (!r->facts->load.urls)
		return;
	json_member_array(w, "endpoints");
	for (size_t i = 0; rest.n; i++) {
		struct str url = str_cut(&rest, '\n');
		struct metrics_url u = { 0 };

		if (i < r->metrics->n_urls)
			u = r->metrics->url[i];
		json_begin_object(w);
		json_member_str(w, "url", url);
		json_member_int(w, "requests", u.requests);
		json_member_int(w, "completed", u.completed);
		json_member_int(w, "failed", u.failed);
		json_member_f64(w, "mean_ttft_ms", u.mean_ttft_ms > 0 ? u.mean_ttft_ms : NAN);
		json_end_object(w);
	}
	json_end_array(w);
}

void report_load_json(const struct report *r, struct json_writer *w)
{
	const struct report_load *l = &r->facts->load;

	json_member_int(w, "given_up", r->metrics->given_up);
	json_member_text(w, "aborted", l->aborted);
	json_member_f64(w, "time_limit_s", l->time_limit_s > 0 ? l->time_limit_s : NAN);
	json_member_f64(w, "used_up_s", l->used_up_s > 0 ? l->used_up_s : NAN);
	json_member_text(w, "prompt_salt", l->prompt_salt);
	json_member_text(w, "prompt_salt_key", l->prompt_salt_key);
	report_reuse_json(&l->reuse, w);
	put_urls(w, r);
	if (l->is_replay)
		put_replay(w, r);
	if (l->is_profile_asked)
		json_member_bool(w, "profiled", l->is_profiled);
	if (l->runs.n)
		json_member_raw(w, "runs", l->runs);
}
