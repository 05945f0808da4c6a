/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - how far percentiles can be trusted (stats/percentile.h): rows and JSON. */
#include <math.h>

#include "report/lines.h"
#include "report/ours.h"
#include "json/write.h"

#define LABEL_BYTES 80
#define MS 1000 /* bounds are seconds, as the record's arrays are */

/* "12.30 to 15.84", or what is known below it and how many requests would bound it. */
static void say(const struct percentile *p, const char *name, struct buf *out)
{
	if (!isinf(p->low) && !isinf(p->high))
		buf_printf(out, "%.2f to %.2f", p->low * MS, p->high * MS);
	else if (!isinf(p->low))
		buf_printf(out, ">= %.2f, n = %zu cannot bound %s from above (%zu needed)",
			   p->low * MS, p->n, name, p->needed);
	else if (!isinf(p->high))
		buf_printf(out, "<= %.2f, n = %zu cannot bound %s from below (%zu needed)",
			   p->high * MS, p->n, name, p->needed);
	else
		buf_printf(out, "n = %zu cannot bound %s (%zu needed)", p->n, name, p->needed);
	if (p->marks & PERCENTILE_CLUMPED)
		buf_add_text(out, ", too narrow: slow requests come in long clumps");
}

void report_bounds_rows(const struct metrics *m, struct buf *out)
{
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		for (size_t k = 0; m->block[b].bounds && k < m->opts.n_percentiles; k++) {
			const struct percentile *p = &m->block[b].bounds[k];
			char label[LABEL_BYTES], name[FMT_F64_BYTES + 1] = "P";
			struct buf text = { 0 };

			if (!p->n)
				continue;
			metrics_percentile_name(name + 1, m->opts.percentile[k]);
			snprintf(label, sizeof(label), "%s %s, %g %% interval (ms):", name,
				 report_block_name(b), 100 * PERCENTILE_LEVEL);
			say(p, name, &text);
			line_text(out, label, text.data);
			buf_release(&text);
		}
}

static void put_end(struct json_writer *w, const char *key, double seconds)
{
	json_key(w, key);
	if (isinf(seconds))
		json_put_null(w);
	else
		json_put_f64(w, seconds * MS);
}

static void put_marks(struct json_writer *w, unsigned marks)
{
	static const char *const names[] = { "few", "clumped", "open" }; /* by their bits */

	json_member_array(w, "marks");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (marks & 1u << i)
			json_put_text(w, names[i]);
	json_end_array(w);
}

void ours_bounds(struct json_writer *w, const struct metrics *m)
{
	json_member_array(w, "percentiles");
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		for (size_t k = 0; m->block[b].bounds && k < m->opts.n_percentiles; k++) {
			const struct percentile *p = &m->block[b].bounds[k];
			char key[LABEL_BYTES], name[FMT_F64_BYTES];

			if (!p->n)
				continue;
			snprintf(key, sizeof(key), "p%s_%s_ms",
				 metrics_percentile_name(name, m->opts.percentile[k]),
				 metric_block_key(b));
			json_begin_object(w);
			json_member_text(w, "metric", key);
			json_member_int(w, "n", (int64_t)p->n);
			put_end(w, "low_ms", p->low);
			put_end(w, "high_ms", p->high);
			json_member_int(w, "n_needed", (int64_t)p->needed);
			json_member_f64(w, "dispersion", p->phi);
			json_member_f64(w, "correlation", p->correlation);
			put_marks(w, p->marks);
			json_end_object(w);
		}
	json_end_array(w);
}
