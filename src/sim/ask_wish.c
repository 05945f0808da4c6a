/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask_wish.c - see ask.h: constraints in their three spellings, and tools. Texts of errors are
 * those by which vLLM's are known.
 */
#include "sim/ask.h"

#define ANY_OBJECT "{\"type\": \"object\"}" /* what json_object asks for */

void ask_wish_reset(struct ask *a)
{
	buf_reset(&a->constraint);
	buf_reset(&a->tool_text);
	buf_reset(&a->named_text);
	a->constraints = 0;
	a->constraint_member = NULL;
	a->calls = ASK_CALLS_NONE;
	a->is_choice_given = a->is_call_single = false;
	a->tools = a->named = 0;
	a->tools_raw = (struct str){ 0 };
}

/* ---- constraints ---- */

static const struct { const char *name; enum constraint_kind kind; } kinds[] = {
	{ "json", CONSTRAINT_JSON }, { "regex", CONSTRAINT_REGEX },
	{ "choice", CONSTRAINT_CHOICE }, { "grammar", CONSTRAINT_GRAMMAR },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* A schema may also come as JSON text in a string, a choice is a list, the others are texts. */
static int constraint_set(struct ask *a, enum constraint_kind kind, const char *name,
			  struct json_slice v, struct err *e)
{
	bool is_text = v.kind == JSON_STRING;

	if (v.kind == JSON_NULL)
		return 0;
	if (kind == CONSTRAINT_JSON && !is_text && v.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "%s must be a JSON Schema: an object, or its text", name);
	if (kind == CONSTRAINT_CHOICE && v.kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s must be a list of strings", name);
	if ((kind == CONSTRAINT_REGEX || kind == CONSTRAINT_GRAMMAR) && !is_text)
		return err_set(e, ERR_USAGE, "%s must be a string", name);
	a->constraints++;
	a->constraint_kind = kind;
	buf_reset(&a->constraint);
	if (is_text)
		json_unescape(&a->constraint, v.raw);
	else
		buf_add_str(&a->constraint, v.raw);
	return 0;
}

static void any_object(struct ask *a)
{
	a->constraints++;
	a->constraint_kind = CONSTRAINT_JSON;
	buf_reset(&a->constraint);
	buf_add_text(&a->constraint, ANY_OBJECT);
}

int ask_read_structured(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	unsigned before = a->constraints;
	struct json_slice member;

	if (!(a->knows & ASK_KNOWS_STRUCTURED) || v.kind == JSON_NULL)
		return 0;
	a->constraint_member = name;
	if (v.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "%s must be an object", name);
	for (size_t i = 0; i < KINDS; i++)
		if (json_member(v, kinds[i].name, &member) &&
		    constraint_set(a, kinds[i].kind, kinds[i].name, member, e) < 0)
			return -1;
	if (json_member(v, "json_object", &member) && member.kind == JSON_TRUE)
		any_object(a);
	if (json_member(v, "structural_tag", &member) && member.kind != JSON_NULL)
		return err_set(e, ERR_USAGE, "structural_tag is not supported by this server");
	if (a->constraints == before)
		return err_set(e, ERR_USAGE, "You must use one kind of structured outputs constraint "
			       "but none are specified");
	return 0;
}

int ask_read_guided(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	const char *kind = name + sizeof("guided_") - 1;

	if (!(a->knows & ASK_KNOWS_GUIDED))
		return 0;
	a->constraint_member = name;
	for (size_t i = 0; i < KINDS; i++)
		if (str_is(str_of(kind), kinds[i].name))
			return constraint_set(a, kinds[i].kind, name, v, e);
	return 0;
}

int ask_read_format(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_slice type, schema;

	if (!(a->knows & ASK_KNOWS_FORMAT) || v.kind == JSON_NULL)
		return 0;
	a->constraint_member = name;
	if (!json_member(v, "type", &type) || type.kind != JSON_STRING)
		return err_set(e, ERR_USAGE, "%s must be an object with a type", name);
	if (str_is(type.raw, "text"))
		return 0;
	if (str_is(type.raw, "json_object")) {
		any_object(a);
		return 0;
	}
	if (!str_is(type.raw, "json_schema"))
		return err_set(e, ERR_USAGE, "%s.type must be text, json_object or json_schema on this "
			       "server, got %.*s", name, (int)(type.raw.n < 80 ? type.raw.n : 80),
			       type.raw.p);
	if (!json_path(v, &schema, "json_schema", "schema", NULL) || schema.kind == JSON_NULL)
		return err_set(e, ERR_USAGE, "The \"json_schema\" field must be provided");
	return constraint_set(a, CONSTRAINT_JSON, name, schema, e);
}

/* ---- tools ---- */

static int tool_add(struct ask *a, const char *list, struct json_slice v, struct err *e)
{
	struct ask_tool tool = { .name_at = a->tool_text.len };
	struct json_slice function, name, parameters;

	if (!json_member(v, "function", &function) || !json_member(function, "name", &name) ||
	    name.kind != JSON_STRING || name.raw.n == 0)
		return err_set(e, ERR_USAGE, "%s[] must be objects with a function that has a name",
			       list);
	if (a->tools == ASK_TOOLS_MAX)
		return err_set(e, ERR_USAGE, "%s has more than %d tools", list, ASK_TOOLS_MAX);
	json_unescape(&a->tool_text, name.raw);
	tool.name_n = a->tool_text.len - tool.name_at;
	if (json_member(function, "parameters", &parameters) && parameters.kind != JSON_NULL) {
		if (parameters.kind != JSON_OBJECT)
			return err_set(e, ERR_USAGE, "%s[].function.parameters must be an object", list);
		tool.parameters = parameters.raw;
	}
	a->tool[a->tools++] = tool;
	return 0;
}

int ask_read_tools(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice tool;
	struct str key;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s must be a list", name);
	a->tools_raw = v.raw;
	while (json_each(&it, &key, &tool) > 0)
		if (tool_add(a, name, tool, e) < 0)
			return -1;
	return 0;
}

int ask_read_tool_choice(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	static const struct { const char *name; enum ask_calls calls; } choices[] = {
		{ "none", ASK_CALLS_NONE }, { "auto", ASK_CALLS_AUTO },
		{ "required", ASK_CALLS_REQUIRED },
	};
	struct json_slice function;

	if (v.kind == JSON_NULL)
		return 0;
	a->is_choice_given = true;
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		if (v.kind != JSON_STRING || !str_is(v.raw, choices[i].name))
			continue;
		a->calls = choices[i].calls;
		return 0;
	}
	if (!json_path(v, &function, "function", "name", NULL) || function.kind != JSON_STRING)
		return err_set(e, ERR_USAGE, "%s must be none, auto, required or an object with a "
			       "function's name", name);
	json_unescape(&a->named_text, function.raw);
	a->calls = ASK_CALLS_NAMED;
	return 0;
}

int ask_read_parallel(struct ask *a, const char *name, struct json_slice v, struct err *e)
{
	if (v.kind != JSON_TRUE && v.kind != JSON_FALSE && v.kind != JSON_NULL)
		return err_set(e, ERR_USAGE, "%s must be true or false", name);
	a->is_call_single = v.kind == JSON_FALSE;
	return 0;
}

struct str ask_tool_name(const struct ask *a, size_t i)
{
	return (struct str){ a->tool_text.data + a->tool[i].name_at, a->tool[i].name_n };
}

/* tool_choice and tools go together. */
static int tools_check(struct ask *a, struct err *e)
{
	if (a->tools == 0) {
		if (a->calls != ASK_CALLS_NONE)
			return err_set(e, ERR_USAGE, "When using `tool_choice`, `tools` must be set.");
		return 0;
	}
	if (!a->is_choice_given)
		a->calls = ASK_CALLS_AUTO;
	if (a->calls != ASK_CALLS_NAMED)
		return 0;
	for (a->named = 0; a->named < a->tools; a->named++)
		if (str_eq(ask_tool_name(a, a->named), buf_str(&a->named_text)))
			return 0;
	return err_set(e, ERR_USAGE, "The tool specified in `tool_choice` does not match any of the "
		       "specified `tools`");
}

int ask_wish_check(struct ask *a, const char **param, struct err *e)
{
	if (a->constraints > 1) {
		if (param)
			*param = a->constraint_member;
		return err_set(e, ERR_USAGE, "You can only use one kind of structured outputs "
			       "constraint but multiple are specified");
	}
	if (tools_check(a, e) == 0)
		return 0;
	if (param)
		*param = "tool_choice";
	return -1;
}

/* ---- calls in messages ---- */

int ask_calls_add(struct buf *out, bool is_first, const char *name, struct json_slice v,
		  struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice call, called, arguments;
	struct str key;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s[].tool_calls must be a list", name);
	for (; json_each(&it, &key, &call) > 0; is_first = false) {
		if (!json_path(call, &called, "function", "name", NULL) ||
		    called.kind != JSON_STRING ||
		    !json_path(call, &arguments, "function", "arguments", NULL) ||
		    arguments.kind != JSON_STRING)
			return err_set(e, ERR_USAGE, "%s[].tool_calls[] must be objects with a function "
				       "that has a name and arguments, both texts", name);
		buf_add_text(out, is_first ? ASK_CALL_MARK : "\n" ASK_CALL_MARK);
		json_unescape(out, called.raw);
		buf_add_char(out, '\n');
		json_unescape(out, arguments.raw);
	}
	return 0;
}
