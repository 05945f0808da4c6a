/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_page.c - the lengths of a run as a page: "meta" with three histograms, and
 * the columns "prompt" and "output" of every request (web/src/dataset).
 */
#include "report/plot.h"

#include "json/write.h"
#include "report/lengths.h"
#include "report/html.h"

static void put_hist(struct json_writer *w, const struct metrics *m, enum lengths_panel panel)
{
	struct lengths_hist h;

	lengths_count(m, panel, &h);
	json_begin_object(w);
	json_member_text(w, "title", lengths_words[panel].title);
	json_member_text(w, "label", lengths_words[panel].label);
	json_member_int(w, "min", h.min);
	json_member_int(w, "max", h.max);
	json_member_f64(w, "mean", h.mean);
	json_member_array(w, "edges");
	for (int k = 0; k <= LENGTHS_BINS; k++)
		json_put_f64(w, h.edge[k]);
	json_end_array(w);
	json_member_array(w, "counts");
	for (int k = 0; k < LENGTHS_BINS; k++)
		json_put_int(w, h.count[k]);
	json_end_array(w);
	json_end_object(w);
}

static void write_meta(const struct report *r, struct html *h)
{
	const struct report_facts *f = r->facts;
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);

	json_begin_object(&w);
	json_member_int(&w, "format", 1);
	json_member_int(&w, "n", r->metrics->n);
	json_member_text(&w, "date", f->date);
	json_member_text(&w, "model", f->model_id);
	json_member_text(&w, "backend", f->backend);
	json_member_text(&w, "dataset", f->dataset);
	json_member_array(&w, "histograms");
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		put_hist(&w, r->metrics, panel);
	json_end_array(&w);
	json_end_object(&w);
	html_json(h, "meta", buf_str(&json));
	buf_release(&json);
}

enum plot_outcome plot_dataset_page(const struct report *r, const char *path, struct err *e)
{
	const struct metrics *m = r->metrics;
	struct html html;

	if (m->opts.is_pooling || m->n == 0)
		return PLOT_NOT_DETAILED;
	if (html_begin(&html, "dataset.html", path, e) < 0)
		return PLOT_FAILED;
	write_meta(r, &html);
	html_column(&html, "prompt");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(&html, (uint64_t)m->input_len[i]);
	html_column_end(&html);
	html_column(&html, "output");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(&html, (uint64_t)m->output_len[i]);
	html_column_end(&html);
	return html_end(&html, e) < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
