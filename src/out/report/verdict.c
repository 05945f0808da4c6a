/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see verdict.h. */
#include "out/report/verdict.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/json/write.h"

void verdict_doubt(struct trust *t, enum trust_verdict level, const char *code, struct str text)
{
	struct trust_reason *r = &t->reason[t->n_reasons];

	assert(code && *code);
	assert(t->n_reasons < TRUST_REASONS_MAX);
	r->level = level;
	r->code = code;
	snprintf(r->text, sizeof(r->text), "%.*s.", (int)text.n, text.p);
	r->text[0] = (char)toupper((unsigned char)r->text[0]);
	t->n_reasons++;
	if (level > t->verdict)
		t->verdict = level;
}

static void put_reason(struct json_writer *w, const struct trust_reason *r)
{
	json_begin_object(w);
	if (r->level != TRUST_VALID)
		json_member_text(w, "level", trust_name(r->level));
	json_member_text(w, "code", r->code);
	if (r->spoils) {
		json_member_array(w, "spoils");
		for (int k = 0; k < TRUST_METRIC_COUNT; k++)
			if (r->spoils & TRUST_BIT(k))
				json_put_text(w, trust_metric_key(k));
		json_end_array(w);
	}
	json_member_text(w, "text", r->text);
	json_end_object(w);
}

void verdict_put(struct json_writer *w, const struct trust *t)
{
	json_member_text(w, "verdict", trust_name(t->verdict));
	json_member_array(w, "reasons");
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].level != TRUST_VALID)
			put_reason(w, &t->reason[i]);
	json_end_array(w);
}

void verdict_put_metrics(struct json_writer *w, const struct trust *t)
{
	json_member_object(w, "verdicts");
	for (int k = 0; k < TRUST_METRIC_COUNT; k++)
		json_member_text(w, trust_metric_key(k), trust_name(t->metric[k]));
	json_end_object(w);
	json_member_array(w, "notes");
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].level == TRUST_VALID)
			put_reason(w, &t->reason[i]);
	json_end_array(w);
}

void verdict_show(const struct trust *t, struct buf *out)
{
	char spoils[TRUST_SPOILS_BYTES];
	unsigned valid = 0;

	for (size_t i = 0; i < t->n_reasons; i++) {
		const struct trust_reason *r = &t->reason[i];

		trust_spoils_text(r->spoils, spoils);
		if (r->level == TRUST_VALID)
			buf_printf(out, "  Note: %s\n", r->text);
		else if (*spoils)
			buf_printf(out, "  %s (%s): %s\n", trust_name(r->level), spoils, r->text);
		else
			buf_printf(out, "  %s: %s\n", trust_name(r->level), r->text);
	}
	for (int k = 0; k < TRUST_METRIC_COUNT; k++)
		valid |= t->metric[k] == TRUST_VALID ? TRUST_BIT(k) : 0;
	valid &= ~t->absent;
	if (t->verdict != TRUST_VALID)
		buf_printf(out, "  What to do: profllm help %s\n", t->reason[0].code);
	if (t->verdict != TRUST_VALID && valid && valid != TRUST_EVERYTHING)
		buf_printf(out, "  VALID: %s.\n", trust_spoils_text(valid, spoils));
}
