/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns_page.c - a run's conversations by turn as a page: "meta" with facts of the run and the
 * result's own members "sessions" and "per_turn_metrics" (web/src/turns).
 */
#include "report/plot.h"

#include "report/html.h"
#include "json/write.h"
#include "report/result_parts.h"

static void write_meta(const struct report *r, struct html *h)
{
	const struct report_facts *f = r->facts;
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);

	json_begin_object(&w);
	json_member_int(&w, "format", 1);
	json_member_text(&w, "date", f->date);
	json_member_text(&w, "model", f->model_id);
	json_member_text(&w, "backend", f->backend);
	json_member_text(&w, "dataset", f->dataset);
	json_member_text(&w, "verdict", trust_name(r->trust->verdict));
	json_key(&w, "sessions");
	report_sessions_json(&w, r->metrics);
	json_key(&w, "per_turn_metrics");
	report_turns_json(&w, r->metrics);
	json_end_object(&w);
	html_json(h, "meta", buf_str(&json));
	buf_release(&json);
}

enum plot_outcome plot_turns(const struct report *r, const char *path, struct err *e)
{
	struct html html;

	if (r->metrics->sessions.n == 0)
		return PLOT_NOT_DETAILED;
	if (html_begin(&html, "turns.html", path, e) < 0)
		return PLOT_FAILED;
	write_meta(r, &html);
	return html_end(&html, e) < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
