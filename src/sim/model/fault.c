/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. */
#include "sim/model/fault.h"

#include <fnmatch.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>

enum fault_value { VALUE_NONE, VALUE_STATUS, VALUE_DURATION, VALUE_COUNT };

#define NOWHERE SIZE_MAX

static const struct fault_row {
	const char *name;
	bool has_token;
	enum fault_value value;
	int64_t fallback;    /* value when none is written; -1: it must be written */
	size_t token_at;     /* uint32_t in struct fault_plan */
	size_t value_at;     /* int64_t in struct fault_plan */
	size_t flag_at;      /* bool in struct fault_plan */
} table[] = {
#define AT(member) offsetof(struct fault_plan, member)
	{ "status", false, VALUE_STATUS, -1, NOWHERE, AT(status), NOWHERE },
	{ "slow-start", false, VALUE_DURATION, -1, NOWHERE, AT(slow_ns), NOWHERE },
	{ "slow-headers", false, VALUE_DURATION, -1, NOWHERE, AT(slow_head_ns), NOWHERE },
	{ "slow-body", false, VALUE_DURATION, -1, NOWHERE, AT(slow_body_ns), NOWHERE },
	{ "stall", true, VALUE_DURATION, -1, AT(stall_at), AT(stall_ns), NOWHERE },
	{ "reset", true, VALUE_NONE, 0, AT(reset_at), NOWHERE, NOWHERE },
	{ "close", true, VALUE_NONE, 0, AT(close_at), NOWHERE, NOWHERE },
	{ "malformed", true, VALUE_NONE, 0, AT(malformed_at), NOWHERE, NOWHERE },
	{ "error-event", true, VALUE_NONE, 0, AT(error_at), NOWHERE, NOWHERE },
	{ "drop-usage", false, VALUE_NONE, 0, NOWHERE, NOWHERE, AT(is_without_usage) },
	{ "no-done", false, VALUE_NONE, 0, NOWHERE, NOWHERE, AT(is_without_done) },
	{ "crlf", false, VALUE_NONE, 0, NOWHERE, NOWHERE, AT(is_crlf) },
	{ "comments", false, VALUE_NONE, 0, NOWHERE, NOWHERE, AT(is_commented) },
	{ "split", false, VALUE_NONE, 0, NOWHERE, NOWHERE, AT(is_split) },
	{ "coalesce", false, VALUE_COUNT, 2, AT(coalesce), NOWHERE, NOWHERE },
#undef AT
};

#define KINDS (sizeof(table) / sizeof(*table))

static bool duration(struct str s, int64_t *ns)
{
	static const struct { const char *unit; double ns; } units[] = {
		{ "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "", 1e6 },
	};
	double v;

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		struct str unit = str_of(units[i].unit);

		if (!str_ends(s, unit))
			continue;
		s.n -= unit.n;
		if (!str_to_f64(s, &v) || !(v >= 0 && v * units[i].ns < 1e15))
			return false;
		*ns = (int64_t)llround(v * units[i].ns);
		return true;
	}
	return false;
}

static bool value_read(enum fault_value kind, struct str s, int64_t *out)
{
	switch (kind) {
	case VALUE_STATUS:
		return str_to_i64(s, out) && *out >= 400 && *out <= 599;
	case VALUE_DURATION:
		return duration(s, out);
	case VALUE_COUNT:
		return str_to_i64(s, out) && *out >= 2 && *out <= 1000;
	case VALUE_NONE:
		break;
	}
	return false;
}

static int kind_unknown(struct str name, const char *text, struct err *e)
{
	char names[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
				      table[i].name);
	return err_set(e, ERR_USAGE, "--fault %s: unknown fault '%.*s'; expected one of %s", text,
		       (int)name.n, name.p, names);
}

static int when_read(struct fault *f, struct str when, struct err *e)
{
	if (str_starts(when, STR("id=")) && when.n > 3) {
		f->pattern = when.p + 3; /* up to the end of the text, so NUL-terminated */
		return 0;
	}
	if (!str_to_f64(when, &f->probability) || !(f->probability >= 0 && f->probability <= 1))
		return err_set(e, ERR_USAGE, "--fault: ':%.*s' in '%s' is neither a probability "
			       "from 0 to 1 nor id=PATTERN", (int)when.n, when.p, f->text);
	return 0;
}

int fault_add(struct fault_set *set, const char *text, struct err *e)
{
	static const char *const wants[] = { "", "a status from 400 to 599",
		"a duration such as 500ms or 2s", "a count from 2 to 1000" };
	struct fault f = { .probability = 1, .text = text };
	struct str rest = str_of(text);
	struct str spec = str_cut(&rest, ':');
	struct str when = rest;
	struct str value = spec, name, token;
	uint64_t at = 0;
	bool has_value, has_token;

	if (set->n == FAULTS_MAX)
		return err_set(e, ERR_USAGE, "--fault: more than %d faults", FAULTS_MAX);
	name = str_cut(&value, '=');
	has_value = memchr(spec.p, '=', spec.n) != NULL;
	token = name;
	name = str_cut(&token, '@');
	has_token = name.n < spec.n && spec.p[name.n] == '@';
	while (f.kind < KINDS && !str_is(name, table[f.kind].name))
		f.kind++;
	if (f.kind == KINDS)
		return kind_unknown(name, text, e);
	if (has_token != table[f.kind].has_token ||
	    (has_token && (!str_to_u64(token, &at) || at < 1 || at > UINT32_MAX)))
		return err_set(e, ERR_USAGE, "--fault: '%s' %s", text, table[f.kind].has_token ?
			       "needs @TOKEN, counted from 1" : "takes no @TOKEN");
	f.token = (uint32_t)at;
	f.value = table[f.kind].fallback;
	if (has_value && !value_read(table[f.kind].value, value, &f.value))
		return err_set(e, ERR_USAGE, "--fault: '%s' takes %s after '='", text,
			       table[f.kind].value ? wants[table[f.kind].value] : "nothing");
	if (f.value < 0)
		return err_set(e, ERR_USAGE, "--fault: '%s' needs %s after '='", text,
			       wants[table[f.kind].value]);
	if (strchr(text, ':') && when_read(&f, when, e) < 0)
		return -1;
	set->fault[set->n++] = f;
	return 0;
}

static void fault_apply(const struct fault *f, struct fault_plan *p)
{
	const struct fault_row *row = &table[f->kind];
	char *plan = (char *)p;
	uint32_t token = row->value == VALUE_COUNT ? (uint32_t)f->value : f->token;

	if (row->token_at != NOWHERE)
		memcpy(plan + row->token_at, &token, sizeof(token));
	if (row->value_at != NOWHERE)
		memcpy(plan + row->value_at, &f->value, sizeof(f->value));
	if (row->flag_at != NOWHERE)
		*(bool *)(plan + row->flag_at) = true;
}

struct fault_plan fault_plan(const struct fault_set *set, const char *id, struct pcg64 *g)
{
	struct fault_plan p = { 0 };

	for (size_t i = 0; i < set->n; i++) {
		const struct fault *f = &set->fault[i];
		bool is_hit = f->pattern ? fnmatch(f->pattern, id, 0) == 0 :
			      f->probability >= 1 || pcg64_double(g) < f->probability;

		if (!is_hit)
			continue;
		p.hit |= 1ull << i;
		fault_apply(f, &p);
	}
	return p;
}

bool fault_paces(const struct fault_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (table[set->fault[i].kind].value == VALUE_DURATION)
			return true;
	return false;
}

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
