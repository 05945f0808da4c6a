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
static const char *told_by(struct str overrides)
{
	static const char *const keys[] = { "structured_outputs", "guided_json", "guided_regex",
		"guided_choice", "guided_grammar", "response_format" };
	struct json_scan scan = { .text = overrides };
	struct json_slice object, v;

	if (!overrides.n || json_next(&scan, &object, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_member(object, keys[i], &v))
			return keys[i];
	return NULL;
}

const char *correct_told_by(const struct workload *w)
{
	const char *key = NULL;

	for (size_t i = 0; i < w->n && !key; i++)
		if (w->v[i].constraint.n)
			key = told_by(w->v[i].overrides);
	return key;
}

static void answer_of(const struct point *p, const struct request_row *row, struct buf *escaped,
		      struct buf *out)
{
	buf_reset(escaped);
	buf_reset(out);
	record_text_of(&p->record, row, escaped);
	json_unescape(out, buf_str(escaped));
}

/* Whether more of it could have become a JSON value: free text cannot. */
static bool begins_json(struct str answer)
{
	static const struct str words[] = { STR("true"), STR("false"), STR("null") };

	answer = str_trim(answer);
	if (!answer.n || strchr("{[\"-0123456789", *answer.p))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_starts(words[i].n < answer.n ? answer : words[i],
			       words[i].n < answer.n ? words[i] : answer))
			return true;
	return false;
}

static enum row_wrong wrong_of(const struct request_row *row, const char *why, struct str answer)
{
	bool is_json = str_starts(str_of(why), STR("parse"));

	if (row->finish == FINISH_LENGTH && (!is_json || begins_json(answer)))
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
	return bits | (unsigned)wrong_of(row, result.why, answer) << ROW_WRONG_SHIFT;
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
		row->correctness |= told_by(s->overrides) ? ROW_CONSTRAINED : 0;
		answer_of(p, row, &escaped, &answer);
		if (c)
			row->correctness |= (uint16_t)judge(c, row, buf_str(&answer));
	}
	constraint_free(last.compiled);
	buf_release(&escaped);
	buf_release(&answer);
}
