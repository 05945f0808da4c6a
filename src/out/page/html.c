/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - see html.h and plot.h: pages. */
#include "out/page/html.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "out/page/lengths.h"
#include "out/page/plot.h"

#define OUT_BYTES 65536
#define ZIP_LEVEL 1 /* times are noise: more work gains nothing */

static void flush(struct html *h)
{
	if (!h->failed && file_write_all(h->swap.fd, buf_str(&h->out)) < 0)
		h->failed = errno;
	buf_reset(&h->out);
}

static void put(struct html *h, struct str text)
{
	buf_add_str(&h->out, text);
	if (h->out.len >= OUT_BYTES)
		flush(h);
}

/* The page in two parts: out gets the first, tail the second. */
static int unpack(struct html *h, const char *name, struct err *e)
{
	const struct html_asset *a = html_assets;
	size_t got = 0;
	char *text, *mark;

	while (a->name && strcmp(a->name, name) != 0)
		a++;
	if (!a->name)
		return err_set(e, ERR_RUN, "this build has no pages: it was made with WEB=0");
	text = mem_alloc(a->bytes + 1);
	if (zip_unpack((struct str){ a->packed, a->packed_bytes }, text, a->bytes, &got) !=
	    ZIP_DONE)
		got = 0;
	text[got] = 0;
	mark = strstr(text, HTML_MARK);
	assert(mark); /* the build checks it */
	buf_add(&h->out, text, (size_t)(mark - text));
	buf_add_text(&h->tail, mark + strlen(HTML_MARK));
	free(text);
	return 0;
}

int html_begin(struct html *h, const char *name, const char *path, struct err *e)
{
	*h = (struct html){ .path = path };
	if (unpack(h, name, e) < 0)
		return -1;
	if (file_swap_begin(&h->swap, path) == 0)
		return 0;
	err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	buf_release(&h->tail);
	buf_release(&h->out);
	return -1;
}

/* "</script>" and "<!--" in a text would end or change the element. */
void html_json(struct html *h, const char *id, struct str json)
{
	assert(!h->zip);
	buf_printf(&h->out, "<script type=\"application/json\" id=\"%s\">", id);
	while (json.n) {
		const char *at = memchr(json.p, '<', json.n);
		size_t n = at ? (size_t)(at - json.p) : json.n;

		put(h, (struct str){ json.p, n });
		if (at) {
			put(h, STR("\\u003c"));
			n++;
		}
		json.p += n;
		json.n -= n;
	}
	put(h, STR("</script>\n"));
}

static void on_piece(void *self, struct str piece)
{
	struct html *h = self;

	base64_encode(piece, &h->out);
	if (h->out.len >= OUT_BYTES)
		flush(h);
}

void html_column(struct html *h, const char *id)
{
	assert(!h->zip);
	buf_printf(&h->out, "<script type=\"text/plain\" id=\"%s\">", id);
	h->zip = zip_begin(ZIP_LEVEL, on_piece, h);
}

void html_uint(struct html *h, uint64_t v)
{
	unsigned char bytes[10];
	size_t n = 0;

	assert(h->zip);
	while (v >= 0x80) {
		bytes[n++] = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	bytes[n++] = (unsigned char)v;
	buf_add(&h->raw, bytes, n);
	if (h->raw.len < OUT_BYTES)
		return;
	zip_add(h->zip, buf_str(&h->raw));
	buf_reset(&h->raw);
}

void html_column_end(struct html *h)
{
	assert(h->zip);
	zip_add(h->zip, buf_str(&h->raw));
	buf_reset(&h->raw);
	zip_end(h->zip);
	h->zip = NULL;
	put(h, STR("</script>\n"));
}

int html_end(struct html *h, struct err *e)
{
	int rc;

	put(h, buf_str(&h->tail));
	flush(h);
	errno = h->failed;
	rc = file_swap_end(&h->swap, h->failed == 0);
	if (rc < 0)
		err_set(e, ERR_IO, "cannot write %s: %s", h->path, strerror(errno));
	buf_release(&h->tail);
	buf_release(&h->out);
	buf_release(&h->raw);
	return rc;
}

/*
 * ---- the lengths of a run: "meta" with three histograms, the columns "prompt" and "output" of
 * every request (web/src/dataset) ----
 */

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
	json_member_f64s(w, "edges", h.edge, LENGTHS_BINS + 1);
	json_member_array(w, "counts");
	for (int k = 0; k < LENGTHS_BINS; k++)
		json_put_int(w, h.count[k]);
	json_end_array(w);
	json_end_object(w);
}

/* The facts of a run that every page has; the object stays open. */
static void begin_meta(struct json_writer *w, const struct report_facts *f)
{
	json_begin_object(w);
	json_member_int(w, "format", 1);
	json_member_text(w, "date", f->date);
	json_member_text(w, "model", f->model_id);
	json_member_text(w, "backend", f->backend);
	json_member_text(w, "dataset", f->dataset);
}

static void end_meta(struct json_writer *w, struct html *h)
{
	json_end_object(w);
	html_json(h, "meta", buf_str(w->out));
	buf_release(w->out);
}

static void write_lengths(struct html *h, const char *id, const int64_t *len, uint32_t n)
{
	html_column(h, id);
	for (uint32_t i = 0; i < n; i++)
		html_uint(h, (uint64_t)len[i]);
	html_column_end(h);
}

enum plot_outcome plot_dataset_page(const struct report *r, const char *path, struct err *e)
{
	const struct metrics *m = r->metrics;
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);
	struct html html;

	if (m->opts.is_pooling || m->n == 0)
		return PLOT_NOT_DETAILED;
	if (html_begin(&html, "dataset.html", path, e) < 0)
		return PLOT_FAILED;
	begin_meta(&w, r->facts);
	json_member_int(&w, "n", m->n);
	json_member_array(&w, "histograms");
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		put_hist(&w, m, panel);
	json_end_array(&w);
	end_meta(&w, &html);
	write_lengths(&html, "prompt", m->input_len, m->n);
	write_lengths(&html, "output", m->output_len, m->n);
	return html_end(&html, e) < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}

/*
 * ---- conversations by turn: "meta" with facts of the run and the result's own members "sessions"
 * and "per_turn_metrics" (web/src/turns) ----
 */

enum plot_outcome plot_turns(const struct report *r, const char *path, struct err *e)
{
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);
	struct html html;

	if (r->metrics->sessions.n == 0)
		return PLOT_NOT_DETAILED;
	if (html_begin(&html, "turns.html", path, e) < 0)
		return PLOT_FAILED;
	begin_meta(&w, r->facts);
	json_member_text(&w, "verdict", trust_name(r->trust->verdict));
	json_key(&w, "sessions");
	report_sessions_json(&w, r->metrics);
	json_key(&w, "per_turn_metrics");
	report_turns_json(&w, r->metrics);
	end_meta(&w, &html);
	return html_end(&html, e) < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
