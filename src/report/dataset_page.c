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
	json_key(w, "title");
	json_put_text(w, lengths_words[panel].title);
	json_key(w, "label");
	json_put_text(w, lengths_words[panel].label);
	json_key(w, "min");
	json_put_int(w, h.min);
	json_key(w, "max");
	json_put_int(w, h.max);
	json_key(w, "mean");
	json_put_f64(w, h.mean);
	json_key(w, "edges");
	json_begin_array(w);
	for (int k = 0; k <= LENGTHS_BINS; k++)
		json_put_f64(w, h.edge[k]);
	json_end_array(w);
	json_key(w, "counts");
	json_begin_array(w);
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
	json_key(&w, "format");
	json_put_int(&w, 1);
	json_key(&w, "n");
	json_put_int(&w, r->metrics->n);
	json_key(&w, "date");
	json_put_text(&w, f->date);
	json_key(&w, "model");
	json_put_text(&w, f->model_id);
	json_key(&w, "backend");
	json_put_text(&w, f->backend);
	json_key(&w, "dataset");
	json_put_text(&w, f->dataset);
	json_key(&w, "histograms");
	json_begin_array(&w);
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
