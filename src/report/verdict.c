/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see verdict.h. */
#include "report/verdict.h"

#include <assert.h>
#include <ctype.h>

#include "report/put.h"

void verdict_doubt(struct trust *t, enum trust_verdict level, const char *code, struct str text)
{
	struct trust_reason *r = &t->reason[t->n_reasons];

	assert(t->n_reasons < TRUST_REASONS_MAX);
	r->level = level;
	r->code = code;
	snprintf(r->text, sizeof(r->text), "%.*s.", (int)text.n, text.p);
	r->text[0] = (char)toupper((unsigned char)r->text[0]);
	t->n_reasons++;
	if (level > t->verdict)
		t->verdict = level;
}

void verdict_put(struct json_writer *w, const struct trust *t)
{
	put_text(w, "verdict", trust_name(t->verdict));
	json_key(w, "reasons");
	json_begin_array(w);
	for (size_t i = 0; i < t->n_reasons; i++) {
		json_begin_object(w);
		put_text(w, "level", trust_name(t->reason[i].level));
		put_text(w, "code", t->reason[i].code);
		put_text(w, "text", t->reason[i].text);
		json_end_object(w);
	}
	json_end_array(w);
}

void verdict_show(const struct trust *t, struct buf *out)
{
	buf_printf(out, "Verdict: %s\n", trust_name(t->verdict));
	for (size_t i = 0; i < t->n_reasons; i++)
		buf_printf(out, "  %s: %s\n", trust_name(t->reason[i].level), t->reason[i].text);
}
