/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - the client's own possible error (metrics/budget.h), for people and programs. */
#include "client/metrics/budget.h"

#include <math.h>
#include <stdio.h>

#include "core/json/write.h"
#include "out/report/report_internal.h"

/* Between the calibration and the end of the run; 0 for a calibration that came after it. */
static double age_s(const struct report *r)
{
	double age = (double)(r->record->stop_ns - r->facts->budget.at_ns) / 1e9;

	return age > 0 ? age : 0;
}

static void add_age(double seconds, struct buf *out)
{
	if (seconds < 120)
		buf_printf(out, "%.0f s", seconds);
	else if (seconds < 7200)
		buf_printf(out, "%.0f min", seconds / 60);
	else
		buf_printf(out, "%.0f h", seconds / 3600);
}

static void add_mean(const char *name, const struct budget_error *b, struct buf *out)
{
	buf_printf(out, "%s %+.3f ms (mean; %.0f %%: %.3f to %.3f), ", name, b->mean,
		   100 * BUDGET_LEVEL, b->low, b->high);
}

void report_budget_rows(const struct report *r, struct buf *out)
{
	const struct budget *b = &r->facts->budget;
	struct buf text = { 0 };
	char parts[80];

	if (!b->rounds)
		return;
	add_mean("TTFT", &b->ttft, &text);
	add_mean("E2EL", &b->e2el, &text);
	buf_printf(&text, "ITL p99 within %.3f ms; calibrated ", b->itl.high);
	if (b->is_kept) {
		add_age(age_s(r), &text);
		buf_add_text(&text, " before");
	} else {
		buf_add_text(&text, "after the run");
	}
	buf_printf(&text, " at %u stream%s x %.4g events/s", b->level.streams,
		   b->level.streams == 1 ? "" : "s", b->level.events_per_s);
	line_text(out, "Error of these numbers:", text.data);
	buf_release(&text);
	snprintf(parts, sizeof(parts), "%.3f / %.3f / %.3f", b->send, b->kernel, b->late);
	line_text(out, "TTFT error, send/kernel/late (ms):", parts);
}

static void put_error(struct json_writer *w, const char *key, const struct budget_error *b)
{
	json_member_object(w, key);
	json_member_f64(w, "mean_ms", b->mean);
	json_member_f64(w, "p99_ms", b->p99);
	json_member_f64(w, "low_ms", b->low);
	json_member_f64(w, "high_ms", b->high);
	json_end_object(w);
}

void report_put_budget(struct json_writer *w, const struct report *r)
{
	const struct budget *b = &r->facts->budget;

	json_key(w, "error_budget");
	if (!b->rounds) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_text(w, "source", b->is_kept ? "kept" : "calibrated");
	json_member_f64(w, "age_s", age_s(r));
	json_member_text(w, "stamps", budget_stamps_name(b->level.stamps));
	json_member_int(w, "streams", b->level.streams);
	json_member_f64(w, "events_per_s", b->level.events_per_s);
	json_member_int(w, "rounds", b->rounds);
	json_member_int(w, "round_requests", b->level.requests);
	json_member_int(w, "round_events", b->level.events);
	put_error(w, "ttft", &b->ttft);
	put_error(w, "itl", &b->itl);
	put_error(w, "e2el", &b->e2el);
	json_member_f64(w, "send_ms", b->send);
	json_member_f64(w, "kernel_ms", b->kernel);
	json_member_f64(w, "late_ms", b->late);
	json_member_f64(w, "signs_ttft_ms", b->signs.ttft);
	json_member_f64(w, "signs_itl_ms", b->signs.itl);
	json_end_object(w);
}
