/* SPDX-License-Identifier: Apache-2.0 */
/* correct.c - see correct.h. */
#include "run/correct.h"

#include "constrain/constrain.h"
#include "json/read.h"

/* The constraint that was compiled last: most runs have one for all requests. */
struct last {
	struct str text;            /* borrowed: the sample's */
	struct constraint *compiled; /* NULL: it is no constraint of ours */
};

bool correct_is_asked(const struct workload *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].constraint.n)
			return true;
	return false;
}

static const struct constraint *compile(struct last *last, struct str text)
{
	if (!last->text.p || !str_eq(last->text, text)) {
		constraint_free(last->compiled);
		last->compiled = constraint_compile_member(text, NULL, NULL);
		last->text = text;
	}
	return last->compiled;
}

/* The members that tell a server, whichever form was chosen. */
static bool is_told(struct str overrides)
{
	static const char *const keys[] = { "structured_outputs", "guided_json", "guided_regex",
		"guided_choice", "guided_grammar", "response_format" };
	struct json_scan scan = { .text = overrides };
	struct json_slice object, v;

	if (!overrides.n || json_next(&scan, &object, NULL) < 0)
		return false;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_member(object, keys[i], &v))
			return true;
	return false;
}

static void answer_of(const struct point *p, const struct request_row *row, struct buf *escaped,
		      struct buf *out)
{
	buf_reset(escaped);
	buf_reset(out);
	record_text_of(&p->record, row, escaped);
	json_unescape(out, buf_str(escaped));
}

static enum row_wrong wrong_of(const struct request_row *row, const char *why)
{
	if (row->finish == FINISH_LENGTH)
		return WRONG_TRUNCATED;
	if (str_starts(str_of(why), STR("parse")))
		return WRONG_PARSE;
	return str_starts(str_of(why), STR("schema")) ? WRONG_SCHEMA : WRONG_MATCH;
}

static unsigned judge(const struct constraint *c, const struct request_row *row, struct str answer)
{
	struct constraint_result result;
	unsigned bits = 0;
	int upstream = constraint_check_upstream(c, answer);

	if (upstream >= 0)
		bits |= ROW_UPSTREAM_SCORED | (upstream ? ROW_UPSTREAM_CORRECT : 0);
	if (row->state != REQ_DONE)
		return bits;
	constraint_check(c, answer, &result);
	if (result.verdict == CONSTRAINT_NOT_SCORED)
		return bits;
	bits |= ROW_SCORED;
	if (result.verdict == CONSTRAINT_KEPT)
		return bits | ROW_CORRECT;
	return bits | (unsigned)wrong_of(row, result.why) << ROW_WRONG_SHIFT;
}

void correct_answers(struct point *p)
{
	struct buf escaped = { 0 }, answer = { 0 };
	struct last last = { 0 };

	for (uint32_t i = 0; i < p->plan.n; i++) {
		struct request_row *row = &p->record.row[i];
		const struct sample *s = &p->workload.v[row->sample];
		const struct constraint *c = s->constraint.n ? compile(&last, s->constraint) : NULL;

		if (!s->constraint.n || row->state == REQ_UNSENT)
			continue;
		row->correctness = ROW_HAS_CONSTRAINT;
		row->correctness |= is_told(s->overrides) ? ROW_CONSTRAINED : 0;
		answer_of(p, row, &escaped, &answer);
		if (c)
			row->correctness |= (uint16_t)judge(c, row, buf_str(&answer));
	}
	constraint_free(last.compiled);
	buf_release(&escaped);
	buf_release(&answer);
}
