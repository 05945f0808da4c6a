/* SPDX-License-Identifier: Apache-2.0 */
/* mishap.c - see mishap.h. */
#include "sim/mishap.h"

#include <stdint.h>

static const struct { const char *name; enum mishap_kind kind; } kinds[] = {
	{ "hang", MISHAP_HANG }, { "killed", MISHAP_CRASH }, { "oom", MISHAP_CRASH },
	{ "close", MISHAP_CLOSE }, { "garbage", MISHAP_GARBAGE }, { "not-json", MISHAP_NOT_JSON },
	{ "oversize", MISHAP_OVERSIZE }, { "cut", MISHAP_CUT }, { "wrong-id", MISHAP_WRONG_ID },
	{ "short", MISHAP_SHORT }, { "clock", MISHAP_CLOCK }, { "missing", MISHAP_ANSWER },
	{ "flag", MISHAP_ANSWER }, { "model", MISHAP_ANSWER }, { "memory", MISHAP_ANSWER },
	{ "unsupported", MISHAP_ANSWER }, { "other", MISHAP_ANSWER },
};

static const char *const questions[] = {
	"hello", "load", "describe", "render", "put", "generate", "chat", "beam", "encode",
	"profile_start", "profile_stop", "mm_stats", "shutdown",
};

static bool is_question(struct str name)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++)
		if (str_is(name, questions[i]))
			return true;
	return false;
}

int mishap_read(struct mishap *m, const char *text, struct err *e)
{
	struct str rest = str_of(text ? text : "");
	uint64_t status;

	*m = (struct mishap){ 0 };
	if (!text)
		return 0;
	m->how = str_cut(&rest, '@');
	m->question = rest;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_is(m->how, kinds[i].name))
			m->kind = kinds[i].kind;
	if (str_starts(m->how, STR("exit=")) && str_to_u64((struct str){ m->how.p + 5,
			m->how.n - 5 }, &status) && status < 256)
		m->kind = MISHAP_CRASH;
	if (m->kind && (rest.n == 0 || is_question(rest)))
		return 0;
	return err_set(e, ERR_USAGE, "--worker-fault: expected KIND[@QUESTION] with hang, killed, oom, "
		       "exit=N, close, garbage, not-json, oversize, cut, wrong-id, short, clock, "
		       "missing, flag, model, memory, unsupported or other, got '%.80s'", text);
}

bool mishap_strikes(const struct mishap *m, struct str question)
{
	if (m->kind == MISHAP_NONE)
		return false;
	if (m->question.n)
		return str_eq(m->question, question);
	return str_is(question, "generate") || str_is(question, "chat") ||
	       str_is(question, "beam") || str_is(question, "encode");
}
