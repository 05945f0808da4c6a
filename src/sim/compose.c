/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose.c - what an answer says that is not words alone: text that keeps to a constraint, or
 * calls of tools, right or wrong on purpose.
 *
 * Constraints are compiled when a request comes and kept for the next one that asks for the same;
 * a slot holds the latest of those that fall into it. What is drawn comes from the choice's own
 * generator, so a run can be repeated whatever the order of arrival.
 */
#include <inttypes.h>

#include "base/map.h"
#include "sim/mistake.h"
#include "sim/server.h"

#define NO_PARAMETERS "{\"type\": \"object\", \"maxProperties\": 0}"
/* About how long a constrained answer is, where it leaves the choice. */
#define ANSWER_BYTES 256
/* Answers that are tried where the constraint allows an empty one, which no server sends. */
#define EMPTY_TRIES 8
#define ARGUMENTS_BYTES 64

/* ---- constraints ---- */

/* How vLLM begins its sentence about one that cannot be used. */
static const char *refusal(enum constraint_kind kind)
{
	static const char *const texts[] = {
		[CONSTRAINT_JSON] = "Failed to transform json schema into a grammar:",
		[CONSTRAINT_REGEX] = "Failed to transform regex into a grammar:",
		[CONSTRAINT_CHOICE] = "Failed to transform choices into a grammar:",
		[CONSTRAINT_GRAMMAR] = "Invalid grammar specification.",
	};

	return texts[kind];
}

/* Borrowed until the next call. NULL: e is the sentence for the client. */
static struct constraint *compiled(struct sim *s, enum constraint_kind kind, struct str text,
				   struct err *e)
{
	uint64_t key = words_mix(map_hash(text) + kind);
	struct compiled *at = &s->compiled[key % COMPILED_MAX];
	struct constraint *made;
	struct err why = { 0 };

	if (at->constraint && at->key == key)
		return at->constraint;
	made = constraint_compile(kind, text, NULL, &why);
	if (!made) {
		err_set(e, ERR_USAGE, "%s %s", refusal(kind), why.text);
		return NULL;
	}
	constraint_free(at->constraint);
	*at = (struct compiled){ .key = key, .constraint = made };
	return made;
}

void compose_release(struct sim *s)
{
	for (size_t i = 0; i < COMPILED_MAX; i++)
		constraint_free(s->compiled[i].constraint);
}

static struct constraint *constraint_of(struct sim *s, struct err *e)
{
	return compiled(s, s->ask.constraint_kind, buf_str(&s->ask.constraint), e);
}

static struct constraint *parameters_of(struct sim *s, size_t tool, struct err *e)
{
	struct str text = s->ask.tool[tool].parameters;

	return compiled(s, CONSTRAINT_JSON, text.n ? text : STR(NO_PARAMETERS), e);
}

int compose_check(struct sim *s, const char **param, struct err *e)
{
	const struct ask *a = &s->ask;

	*param = a->constraint_member;
	if (a->constraints && !constraint_of(s, e))
		return -1;
	*param = "tools";
	for (size_t i = 0; a->calls != ASK_CALLS_NONE && i < a->tools; i++)
		if (!parameters_of(s, i, e))
			return -1;
	*param = NULL;
	return 0;
}

/* ---- text ---- */

static bool strikes(struct choice *x, double share)
{
	return share > 0 && pcg64_double(&x->rng) < share;
}

/* An answer of about so many bytes into out, wrong on purpose for a share of them. */
static int answer_make(struct choice *x, const struct constraint *c, size_t bytes, double errors,
		       struct buf *out, const char **mistake, struct err *e)
{
	uint64_t seed = x->key ^ pcg64_u64(&x->rng);
	bool is_wrong = strikes(x, errors);
	struct err why = { 0 };

	*mistake = NULL;
	buf_reset(out);
	if (constraint_generate(c, seed, bytes, out, &why) < 0)
		return err_set(e, ERR_USAGE, "%s %s", refusal(constraint_kind(c)), why.text);
	if (is_wrong)
		*mistake = mistake_make(c, words_mix(seed), out);
	return 0;
}

/* Tokens the answer may well have: those it has by --output-len, or what leaves room to end. */
static size_t bytes_wanted(const struct sim *s, struct choice *x, int64_t limit)
{
	double most = limit > 1 ? (double)limit / 2 : 1;
	double bytes = s->has_output_len ? dist_draw(&s->output_len, &x->rng) : ANSWER_BYTES;

	return (size_t)(bytes < most ? bytes : most);
}

static int text_make(struct sim *s, struct choice *x, int64_t limit, struct err *e)
{
	size_t bytes = bytes_wanted(s, x, limit);
	const struct constraint *c = constraint_of(s, e);
	double errors = s->opts->constraint_errors;
	const char **mistake = &x->script.mistake;
	struct buf text = { 0 };
	int rc = c ? 0 : -1;

	for (int i = 0; rc == 0 && text.len == 0 && i < EMPTY_TRIES; i++)
		rc = answer_make(x, c, bytes, errors, &text, mistake, e);
	if (rc == 0 && text.len == 0)
		rc = err_set(e, ERR_USAGE, "%s no answer but an empty one was found",
			     refusal(constraint_kind(c)));
	if (rc == 0)
		rc = script_add(&x->script, s->tokenizer, SCRIPT_TEXT, buf_str(&text),
				(struct str){ 0 }, e);
	x->script.constraint = x->script.mistake ? "broken" : "kept";
	buf_release(&text);
	return rc;
}

/* ---- calls ---- */

static int call_make(struct sim *s, struct choice *x, size_t tool, struct err *e)
{
	const struct constraint *c = parameters_of(s, tool, e);
	struct str name = ask_tool_name(&s->ask, tool);
	struct script *script = &x->script;
	struct buf head = { 0 }, arguments = { 0 };
	const char *mistake = NULL;
	size_t at = script->parts;
	int rc = -1;

	buf_add_text(&head, script->calls ? "\n" ASK_CALL_MARK : ASK_CALL_MARK);
	buf_add_str(&head, name);
	name.p = head.data + head.len - name.n;
	buf_add_char(&head, '\n');
	if (c && answer_make(x, c, ARGUMENTS_BYTES, s->opts->tool_call_errors, &arguments, &mistake,
			     e) == 0 &&
	    script_add(script, s->tokenizer, SCRIPT_CALL, buf_str(&head), name, e) == 0)
		rc = script_add(script, s->tokenizer, SCRIPT_ARGUMENTS, buf_str(&arguments),
				(struct str){ 0 }, e);
	if (rc == 0) {
		uint64_t high = pcg64_u64(&x->rng), low = pcg64_u64(&x->rng);

		snprintf(script->part[at].call_id, SCRIPT_CALL_ID_BYTES,
			 "chatcmpl-tool-%016" PRIx64 "%016" PRIx64, high, low);
		memcpy(script->part[script->parts - 1].call_id, script->part[at].call_id,
		       SCRIPT_CALL_ID_BYTES);
		script->part[at].is_malformed = mistake != NULL;
		script->mistake = mistake ? mistake : script->mistake;
	}
	buf_release(&head);
	buf_release(&arguments);
	return rc;
}

static int calls_make(struct sim *s, struct choice *x, struct err *e)
{
	const struct ask *a = &s->ask;
	int64_t n = a->is_call_single ? 1 : pcg64_bounded(&x->rng, 1, s->opts->tool_calls_max);

	for (int64_t i = 0; i < n; i++) {
		size_t tool = a->calls == ASK_CALLS_NAMED ? a->named :
			      (size_t)pcg64_bounded(&x->rng, 0, (int64_t)a->tools - 1);

		if (call_make(s, x, tool, e) < 0)
			return -1;
	}
	return 0;
}

int compose_choice(struct sim *s, struct choice *x, int64_t limit, struct err *e)
{
	const struct ask *a = &s->ask;

	if (a->calls > ASK_CALLS_AUTO ||
	    (a->calls == ASK_CALLS_AUTO && strikes(x, s->opts->tool_call_share)))
		return calls_make(s, x, e);
	return a->constraints ? text_make(s, x, limit, e) : 0;
}
