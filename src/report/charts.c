/* SPDX-License-Identifier: Apache-2.0 */
/* charts.c - the two charts that upstream prints before its report; see report.h. */
#include "report/report.h"

#include "base/str.h"

#define LINES 20 /* of each chart */

/* One point a second. A single one would have no range, and gnuplot would warn of it. */
static void add_chart(struct buf *out, const char *title, size_t n, const double *real,
		      const int64_t *whole)
{
	char number[FMT_F64_BYTES];

	buf_printf(out, "set title \"%s\"\nset xrange [0:%zu]\nplot \"-\" with lines\n", title,
		   n > 1 ? n - 1 : 1);
	for (size_t i = 0; i < n; i++) {
		if (real)
			buf_printf(out, "%zu %s\n", i, fmt_f64(number, real[i]));
		else
			buf_printf(out, "%zu %lld\n", i, (long long)whole[i]);
	}
	buf_add_text(out, "e\n");
}

void report_charts_script(const struct report *r, unsigned columns, struct buf *out)
{
	struct metrics_by_second s;

	if (r->metrics->opts.is_pooling)
		return;
	metrics_by_second(&s, r->metrics, r->record);
	if (s.n) {
		buf_printf(out, "set terminal dumb size %u, %d\nunset key\nset yrange [0:*]\n",
			   columns, LINES);
		add_chart(out, "Output tokens per second", s.n, s.tokens, NULL);
		add_chart(out, "Concurrent requests per second", s.n, NULL, s.running);
	}
	metrics_by_second_release(&s);
}

void report_charts_trim(struct str drawn, struct buf *out)
{
	while (drawn.n) {
		struct str line = str_cut(&drawn, '\n');

		/* The terminal feeds a form between two plots. */
		while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\f'))
			line.n--;
		if (line.n && *line.p == '\f')
			line.p++, line.n--;
		if (line.n == 0)
			continue;
		buf_add_str(out, line);
		buf_add_char(out, '\n');
	}
}
