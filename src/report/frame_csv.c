/* SPDX-License-Identifier: Apache-2.0 */
/* frame_csv.c - records as pandas writes them; see frame.h. */
#include <math.h>

#include "report/frame.h"

static void add_field(struct buf *out, struct str text)
{
	bool is_quoted = false;

	for (size_t i = 0; i < text.n; i++)
		is_quoted |= strchr(",\"\n\r", text.p[i]) && text.p[i];
	if (!is_quoted) {
		buf_add_str(out, text);
		return;
	}
	buf_add_char(out, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, text.p[i]);
	}
	buf_add_char(out, '"');
}

static void add_value(struct buf *out, const struct json_value *v, enum frame_kind kind,
		      struct buf *scratch)
{
	if (!v || v->kind == JSON_NULL || (v->kind == JSON_REAL && isnan(v->real)))
		return;
	buf_reset(scratch);
	frame_text(scratch, v, kind);
	add_field(out, buf_str(scratch));
}

void frame_csv(const struct frame *f, struct buf *out)
{
	struct arena a = { 0 };
	struct buf scratch = { 0 };
	struct frame_columns c = frame_columns(f, &a);
	enum frame_kind *kind = arena_alloc(&a, (c.n + 1) * sizeof(*kind));

	for (size_t k = 0; k < c.n; k++) {
		kind[k] = frame_kind(f, c.name[k]);
		buf_add_char(out, ',');
		add_field(out, c.name[k]);
	}
	buf_add_char(out, '\n');
	for (size_t i = 0; i < f->n; i++) {
		buf_printf(out, "%zu", i);
		for (size_t k = 0; k < c.n; k++) {
			buf_add_char(out, ',');
			add_value(out, frame_value(f->row[i], c.name[k]), kind[k], &scratch);
		}
		buf_add_char(out, '\n');
	}
	buf_release(&scratch);
	arena_release(&a);
}
