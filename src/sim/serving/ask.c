/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - see ask.h. */
#include "sim/serving/ask.h"

#include <assert.h>
#include <inttypes.h>

#include "client/http/form.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "sim/serving/serving.h"

#define ANY_OBJECT "{\"type\": \"object\"}" /* schema of json_object */

static void ask_wish_reset(struct sim_ask *a)
{
	buf_reset(&a->constraint);
	buf_reset(&a->tool_text);
	buf_reset(&a->named_text);
	a->constraints = 0;
	a->told_by = NULL;
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
static int constraint_set(struct sim_ask *a, enum constraint_kind kind, const char *name,
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

static void any_object(struct sim_ask *a)
{
	a->constraints++;
	a->constraint_kind = CONSTRAINT_JSON;
	buf_reset(&a->constraint);
	buf_add_text(&a->constraint, ANY_OBJECT);
}

static int ask_read_structured(struct sim_ask *a, const char *name, struct json_slice v,
			       struct err *e)
{
	unsigned before = a->constraints;
	struct json_slice member;

	if (!(a->knows & ASK_KNOWS_STRUCTURED) || v.kind == JSON_NULL)
		return 0;
	a->told_by = name;
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

static int ask_read_guided(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	const char *kind = name + sizeof("guided_") - 1;

	if (!(a->knows & ASK_KNOWS_GUIDED))
		return 0;
	a->told_by = name;
	for (size_t i = 0; i < KINDS; i++)
		if (str_is(str_of(kind), kinds[i].name))
			return constraint_set(a, kinds[i].kind, name, v, e);
	return 0;
}

static int ask_read_format(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_slice type, schema;

	if (!(a->knows & ASK_KNOWS_FORMAT) || v.kind == JSON_NULL)
		return 0;
	a->told_by = name;
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

static int tool_add(struct sim_ask *a, const char *list, struct json_slice v, struct err *e)
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

static int ask_read_tools(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
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

static int ask_read_tool_choice(struct sim_ask *a, const char *name, struct json_slice v,
				struct err *e)
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

static int ask_read_parallel(struct sim_ask *a, const char *name, struct json_slice v,
			     struct err *e)
{
	if (v.kind != JSON_TRUE && v.kind != JSON_FALSE && v.kind != JSON_NULL)
		return err_set(e, ERR_USAGE, "%s must be true or false", name);
	a->is_call_single = v.kind == JSON_FALSE;
	return 0;
}

struct str ask_tool_name(const struct sim_ask *a, size_t i)
{
	assert(i < a->tools);
	return (struct str){ a->tool_text.data + a->tool[i].name_at, a->tool[i].name_n };
}

/* tool_choice and tools go together. */
static int tools_check(struct sim_ask *a, struct err *e)
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

/* All members are read: do they go together? *param as ask_read's. */
static int ask_wish_check(struct sim_ask *a, const char **param, struct err *e)
{
	if (a->constraints > 1) {
		if (param)
			*param = a->told_by;
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

static int ask_calls_add(struct buf *out, bool is_first, const char *name, struct json_slice v,
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

/*
 * A table of members, each with the reader of its value.
 *
 * The chat template is "<|tools|>\nJSON\n" where there are tools, "<|ROLE|>\nCONTENT\n" for
 * each message and "<|assistant|>\n" at the end; text parts of a content list are joined by
 * line ends, other parts (images, audio) count as nothing. A call of an assistant's is
 * "<|tool_call|>NAME\nARGUMENTS", on a line of its own.
 */

#define API(x) (1u << (x))
#define OPENAI (API(ASK_COMPLETIONS) | API(ASK_CHAT))
#define OLLAMA (API(ASK_OLLAMA) | API(ASK_OLLAMA_CHAT))
#define TGI (API(ASK_TGI) | API(ASK_TGI_STREAM))
#define GENERATE (OPENAI | OLLAMA | TGI | API(ASK_RESPONSES) | API(ASK_ANTHROPIC) | \
		  API(ASK_LLAMACPP) | API(ASK_SGLANG) | API(ASK_DEMO))
#define ANY_API (GENERATE | API(ASK_TOKENIZE) | API(ASK_DETOKENIZE))

/* A flag or a count goes where it is kept; read: everything else. */
struct read_member {
	const char *name;
	unsigned apis;
	int (*read)(struct sim_ask *a, const char *name, struct json_slice v, struct err *e);
	bool is_flag;
	size_t at; /* bool or int64_t in struct sim_ask */
	int64_t least; /* of a count */
};

#define FLAG(member) .is_flag = true, .at = offsetof(struct sim_ask, member)
#define COUNT(member, min) .at = offsetof(struct sim_ask, member), .least = (min)

static int wrong(const char *name, const char *expected, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s must be %s", name, expected);
}

static int read_bool(const char *name, struct json_slice v, bool *out, struct err *e)
{
	if (v.kind != JSON_TRUE && v.kind != JSON_FALSE && v.kind != JSON_NULL)
		return wrong(name, "true or false", e);
	*out = v.kind == JSON_TRUE;
	return 0;
}

static int read_echo(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	bool is_echo = false;

	(void)a;
	if (read_bool(name, v, &is_echo, e) < 0)
		return -1;
	return is_echo ? err_set(e, ERR_USAGE, "echo is not supported by this server") : 0;
}

static int read_usage(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_slice flag;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_OBJECT)
		return wrong(name, "an object", e);
	if (json_member(v, "include_usage", &flag) &&
	    read_bool("stream_options.include_usage", flag, &a->has_usage, e) < 0)
		return -1;
	if (json_member(v, "continuous_usage_stats", &flag) &&
	    read_bool("stream_options.continuous_usage_stats", flag, &a->has_usage_always, e) < 0)
		return -1;
	return 0;
}

static int read_model(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_STRING)
		return wrong(name, "a string", e);
	json_unescape(&a->model, v.raw);
	return 0;
}

/* Reads an integer of at least `least`; null leaves *out unchanged. */
static int read_count(const char *name, struct json_slice v, int64_t least, int64_t *out,
		      struct err *e)
{
	if (v.kind == JSON_NULL)
		return 0;
	if (!json_to_i64(v, out))
		return wrong(name, "an integer", e);
	if (*out < least)
		return err_set(e, ERR_USAGE, "%s must be at least %" PRId64 ", got %" PRId64 ".",
			       name, least, *out);
	return 0;
}

/* A negative limit means none: -1 unlimited, -2 until the context is full. */
static int read_limit(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	int64_t n = -1;

	if (read_count(name, v, INT64_MIN, &n, e) < 0)
		return -1;
	a->max_tokens = n < 1 ? -1 : n;
	return 0;
}

static int read_n(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	int64_t n = 1;

	(void)a;
	if (read_count(name, v, 1, &n, e) < 0)
		return -1;
	return n == 1 ? 0 : err_set(e, ERR_USAGE, "%s must be 1 on this server, got %" PRId64,
				    name, n);
}

static int read_choices(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	if (read_count(name, v, 1, &a->n, e) < 0)
		return -1;
	return a->n <= ASK_CHOICES_MAX ? 0 :
	       err_set(e, ERR_USAGE, "%s must be at most %d, got %" PRId64 ".", name,
		       ASK_CHOICES_MAX, a->n);
}

static int stop_add(struct sim_ask *a, struct json_slice v, struct err *e)
{
	size_t before = a->stop_text.len;

	if (v.kind != JSON_STRING)
		return wrong("stop", "a string or a list of strings", e);
	if (a->stops == ASK_STOPS_MAX)
		return err_set(e, ERR_USAGE, "stop has more than %d strings", ASK_STOPS_MAX);
	json_unescape(&a->stop_text, v.raw);
	if (a->stop_text.len == before)
		return err_set(e, ERR_USAGE, "stop cannot contain an empty string.");
	a->stop_end[a->stops++] = a->stop_text.len;
	return 0;
}

static int read_stop(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it;
	struct json_slice item;
	struct str key;

	(void)name;
	a->stops = 0;
	buf_reset(&a->stop_text);
	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return stop_add(a, v, e);
	it = json_iter(v);
	while (json_each(&it, &key, &item) > 0)
		if (stop_add(a, item, e) < 0)
			return -1;
	return 0;
}

static int read_ids(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;
	int64_t id;

	if (v.kind != JSON_ARRAY)
		return wrong(name, "a list of token ids", e);
	a->has_ids = a->has_prompt = true;
	while (json_each(&it, &key, &item) > 0) {
		if (item.kind != JSON_INT || !json_to_i64(item, &id) || id < 0 || id > UINT32_MAX)
			return wrong(name, "a list of token ids", e);
		ids_push(&a->ids, (uint32_t)id);
	}
	return 0;
}

static int read_prompt(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it;
	struct json_slice first, second;
	struct str key;

	buf_reset(&a->text);
	ids_reset(&a->ids);
	a->has_ids = false;
	a->has_prompt = true;
	if (v.kind == JSON_STRING) {
		json_unescape(&a->text, v.raw);
		return 0;
	}
	if (v.kind != JSON_ARRAY)
		return wrong(name, "a string or a list of token ids", e);
	it = json_iter(v);
	if (json_each(&it, &key, &first) <= 0)
		return err_set(e, ERR_USAGE, "%s must not be an empty list", name);
	if (first.kind == JSON_INT)
		return read_ids(a, name, v, e);
	if (json_each(&it, &key, &second) > 0)
		return err_set(e, ERR_USAGE, "%s must hold one prompt on this server", name);
	return read_prompt(a, name, first, e);
}

/* A message's content: a string, null, or parts, of which only texts are used. */
static int content_add(struct buf *out, struct json_slice content, const char *name,
		       struct err *e)
{
	struct json_iter it;
	struct json_slice part, text;
	struct str key;
	bool is_first = true;

	if (content.kind == JSON_STRING)
		json_unescape(out, content.raw);
	if (content.kind == JSON_STRING || content.kind == JSON_NULL)
		return 0;
	if (content.kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s[].content must be a string or a list of parts",
			       name);
	it = json_iter(content);
	while (json_each(&it, &key, &part) > 0) {
		if (part.kind != JSON_OBJECT)
			return err_set(e, ERR_USAGE, "%s[].content[] must be an object", name);
		if (!json_member(part, "text", &text) || text.kind != JSON_STRING)
			continue;
		if (!is_first)
			buf_add_char(out, '\n');
		is_first = false;
		json_unescape(out, text.raw);
	}
	return 0;
}

int ask_messages(struct buf *out, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice message, role, content, calls;
	struct str key;
	size_t before;

	if (v.kind != JSON_ARRAY)
		return wrong(name, "a list", e);
	buf_reset(out);
	while (json_each(&it, &key, &message) > 0) {
		if (!json_member(message, "role", &role) || role.kind != JSON_STRING)
			return err_set(e, ERR_USAGE, "%s[] must be an object with a role", name);
		buf_add_text(out, "<|");
		json_unescape(out, role.raw);
		buf_add_text(out, "|>\n");
		before = out->len;
		if (json_member(message, "content", &content) &&
		    content_add(out, content, name, e) < 0)
			return -1;
		if (json_member(message, "tool_calls", &calls) &&
		    ask_calls_add(out, out->len == before, name, calls, e) < 0)
			return -1;
		buf_add_char(out, '\n');
	}
	if (out->len == 0)
		return err_set(e, ERR_USAGE, "%s must not be empty", name);
	buf_add_text(out, "<|assistant|>\n");
	return 0;
}

static int read_messages(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	a->has_ids = false;
	a->has_prompt = true;
	return ask_messages(&a->text, name, v, e);
}

/* The input of Responses: one text of the user, token ids, or a list of messages. */
static int read_input(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice first;
	struct str key;

	if (v.kind == JSON_ARRAY && json_each(&it, &key, &first) > 0 && first.kind == JSON_INT)
		return read_prompt(a, name, v, e);
	if (v.kind != JSON_STRING)
		return read_messages(a, name, v, e);
	a->has_prompt = true;
	buf_add_text(&a->text, "<|user|>\n");
	json_unescape(&a->text, v.raw);
	buf_add_text(&a->text, "\n<|assistant|>\n");
	return 0;
}

static int read_system(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	buf_reset(&a->system);
	return content_add(&a->system, v, name, e);
}

static int member_read(struct sim_ask *a, struct str key, struct json_slice v, const char **param,
		       struct err *e);

/* Parameters in an object of their own: the members of the same table. */
static int read_nested(struct sim_ask *a, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice value;
	const char *param;
	struct str key;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_OBJECT)
		return wrong(name, "an object", e);
	while (json_each(&it, &key, &value) > 0)
		if (member_read(a, key, value, &param, e) < 0)
			return -1;
	return 0;
}

static const struct read_member members[] = {
	{ "model", ANY_API, .read = read_model },
	{ "prompt", API(ASK_COMPLETIONS) | API(ASK_TOKENIZE) | API(ASK_LLAMACPP) | API(ASK_DEMO) |
	  API(ASK_OLLAMA), .read = read_prompt },
	{ "messages", API(ASK_CHAT) | API(ASK_TOKENIZE) | API(ASK_ANTHROPIC) |
	  API(ASK_OLLAMA_CHAT), .read = read_messages },
	{ "tokens", API(ASK_DETOKENIZE), .read = read_ids },
	{ "input", API(ASK_RESPONSES), .read = read_input },
	{ "inputs", TGI, .read = read_prompt },
	{ "text", API(ASK_SGLANG), .read = read_prompt },
	{ "input_ids", API(ASK_SGLANG), .read = read_prompt },
	{ "instructions", API(ASK_RESPONSES), .read = read_system },
	{ "system", API(ASK_ANTHROPIC) | API(ASK_OLLAMA), .read = read_system },
	{ "parameters", TGI, .read = read_nested },
	{ "sampling_params", API(ASK_SGLANG), .read = read_nested },
	{ "options", OLLAMA, .read = read_nested },
	{ "stream", GENERATE & ~API(ASK_TGI_STREAM), FLAG(is_stream) },
	{ "stream_options", OPENAI, .read = read_usage },
	{ "max_tokens", OPENAI | API(ASK_ANTHROPIC) | API(ASK_DEMO), COUNT(max_tokens, 1) },
	{ "max_completion_tokens", API(ASK_CHAT), COUNT(max_tokens, 1) },
	{ "max_output_tokens", API(ASK_RESPONSES), COUNT(max_tokens, 1) },
	{ "max_new_tokens", TGI | API(ASK_SGLANG), COUNT(max_tokens, 1) },
	{ "n_predict", API(ASK_LLAMACPP), .read = read_limit },
	{ "num_predict", OLLAMA, .read = read_limit },
	{ "min_tokens", GENERATE, COUNT(min_tokens, 0) },
	{ "min_new_tokens", API(ASK_SGLANG), COUNT(min_tokens, 0) },
	{ "ignore_eos", GENERATE, FLAG(is_eos_ignored) },
	{ "stop", GENERATE, .read = read_stop },
	{ "stop_sequences", API(ASK_ANTHROPIC), .read = read_stop },
	{ "include_stop_str_in_output", GENERATE, FLAG(is_stop_kept) },
	{ "n", OPENAI, .read = read_choices },
	{ "n", API(ASK_SGLANG) | API(ASK_DEMO), .read = read_n },
	{ "priority", GENERATE, COUNT(priority, INT64_MIN) },
	{ "structured_outputs", OPENAI, .read = ask_read_structured },
	{ "guided_json", OPENAI, .read = ask_read_guided },
	{ "guided_regex", OPENAI, .read = ask_read_guided },
	{ "guided_choice", OPENAI, .read = ask_read_guided },
	{ "guided_grammar", OPENAI, .read = ask_read_guided },
	{ "response_format", OPENAI, .read = ask_read_format },
	{ "tools", API(ASK_CHAT) | API(ASK_TOKENIZE), .read = ask_read_tools },
	{ "tool_choice", API(ASK_CHAT), .read = ask_read_tool_choice },
	{ "parallel_tool_calls", API(ASK_CHAT), .read = ask_read_parallel },
	{ "echo", OPENAI, .read = read_echo },
	{ "add_special_tokens", ANY_API, FLAG(has_special) },
};

static int member_read(struct sim_ask *a, struct str key, struct json_slice v, const char **param,
		       struct err *e)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const struct read_member *m = &members[i];

		if (!(m->apis & API(a->api)) || !str_is(key, m->name))
			continue;
		*param = m->name;
		if (m->read)
			return m->read(a, m->name, v, e);
		return m->is_flag ? read_bool(m->name, v, (bool *)((char *)a + m->at), e) :
		       read_count(m->name, v, m->least, (int64_t *)((char *)a + m->at), e);
	}
	return 0;
}

static void ask_reset(struct sim_ask *a, enum ask_api api)
{
	buf_reset(&a->model);
	buf_reset(&a->text);
	buf_reset(&a->system);
	buf_reset(&a->stop_text);
	ids_reset(&a->ids);
	a->api = api;
	a->is_stream = (API(api) & (OLLAMA | API(ASK_TGI_STREAM))) != 0;
	a->has_usage = !(API(api) & (OPENAI | API(ASK_AUDIO)));
	a->has_usage_always = false;
	a->is_eos_ignored = a->is_stop_kept = a->has_ids = a->has_prompt = false;
	a->has_special = !(API(api) & (API(ASK_CHAT) | API(ASK_RESPONSES) | API(ASK_ANTHROPIC) |
				       API(ASK_OLLAMA_CHAT)));
	a->salt = 0;
	a->max_tokens = -1;
	a->min_tokens = 0;
	a->stops = 0;
	a->n = 1;
	a->priority = 0;
	ask_wish_reset(a);
}

/* The member without which there is nothing to do. */
static const char *needed(enum ask_api api)
{
	static const char *const names[ASK_APIS] = {
		[ASK_CHAT] = "messages", [ASK_ANTHROPIC] = "messages",
		[ASK_OLLAMA_CHAT] = "messages", [ASK_DETOKENIZE] = "tokens",
		[ASK_RESPONSES] = "input", [ASK_TGI] = "inputs", [ASK_TGI_STREAM] = "inputs",
		[ASK_SGLANG] = "text",
	};

	return names[api] ? names[api] : "prompt";
}

/* The tools, then the system's text go in front of the messages. */
static void front_add(struct sim_ask *a)
{
	struct buf all = { 0 };

	if ((a->system.len == 0 && a->tools == 0) || a->has_ids)
		return;
	if (a->tools) {
		buf_add_text(&all, "<|tools|>\n");
		buf_add_str(&all, a->tools_raw);
		buf_add_char(&all, '\n');
	}
	if (a->system.len) {
		buf_add_text(&all, "<|system|>\n");
		buf_add_str(&all, buf_str(&a->system));
		buf_add_char(&all, '\n');
	}
	buf_add_str(&all, buf_str(&a->text));
	buf_release(&a->text);
	a->text = all;
}

int ask_read(struct sim_ask *a, enum ask_api api, struct str body, const char **param,
	     struct err *e)
{
	struct json_scan scan = { .text = body };
	struct json_slice object, value;
	struct json_iter it;
	struct str key;
	const char *at = NULL;

	ask_reset(a, api);
	if (param)
		*param = NULL;
	if (json_next(&scan, &object, e) < 0 || !json_at_end(&scan))
		return err_set(e, ERR_PARSE, "the request body is not valid JSON");
	if (object.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "the request body must be a JSON object");
	it = json_iter(object);
	while (json_each(&it, &key, &value) > 0) {
		if (member_read(a, key, value, &at, e) < 0) {
			if (param)
				*param = at;
			return -1;
		}
	}
	if (!a->has_prompt)
		return err_set(e, ERR_USAGE, "%s is missing", needed(api));
	if (api == ASK_ANTHROPIC && a->max_tokens < 0)
		return err_set(e, ERR_USAGE, "max_tokens is missing");
	if (a->max_tokens >= 0 && a->min_tokens > a->max_tokens)
		return err_set(e, ERR_USAGE, "min_tokens must be less than or equal to max_tokens="
			       "%" PRId64 ", got %" PRId64 ".", a->max_tokens, a->min_tokens);
	if (ask_wish_check(a, param, e) < 0)
		return -1;
	front_add(a);
	return 0;
}

enum ask_api ask_generate_api(struct str body)
{
	struct json_scan scan = { .text = body };
	struct json_slice object, value;

	if (json_next(&scan, &object, NULL) < 0 || json_member(object, "prompt", &value))
		return ASK_DEMO;
	return json_member(object, "inputs", &value) ? ASK_TGI : ASK_SGLANG;
}

struct str ask_stop(const struct sim_ask *a, size_t i)
{
	size_t from = i ? a->stop_end[i - 1] : 0;

	assert(i < a->stops);
	return (struct str){ a->stop_text.data + from, a->stop_end[i] - from };
}

void ask_release(struct sim_ask *a)
{
	buf_release(&a->model);
	buf_release(&a->text);
	buf_release(&a->system);
	buf_release(&a->stop_text);
	buf_release(&a->constraint);
	buf_release(&a->tool_text);
	buf_release(&a->named_text);
	ids_release(&a->ids);
	*a = (struct sim_ask){ 0 };
}

/*
 * Reads the form of a transcription or translation into the input of any answer. The sound's bytes
 * determine the words; its length has no effect. The prompt is the start tokens of a speech model,
 * then the form's own prompt.
 */

/* A form spells booleans as its client's language does: True, true, 1. */
static bool is_true(struct str v)
{
	return str_eq_nocase(v, STR("true")) || str_is(v, "1");
}

static int field_read(struct sim_ask *a, const struct form_part *p, struct buf *prompt,
		      const char **param, struct err *e)
{
	static const struct { const char *name; size_t at; } flags[] = {
		{ "stream", offsetof(struct sim_ask, is_stream) },
		{ "stream_include_usage", offsetof(struct sim_ask, has_usage) },
		{ "stream_continuous_usage_stats", offsetof(struct sim_ask, has_usage_always) },
		{ "ignore_eos", offsetof(struct sim_ask, is_eos_ignored) },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (str_is(p->name, flags[i].name))
			*(bool *)((char *)a + flags[i].at) = is_true(p->body);
	if (str_is(p->name, "model")) {
		buf_add_str(&a->model, p->body);
	} else if (str_is(p->name, "prompt")) {
		buf_add_str(prompt, p->body);
	} else if (str_is(p->name, "file")) {
		a->salt = map_hash(p->body);
		a->has_prompt = p->body.n > 0;
	} else if (str_is(p->name, "max_completion_tokens")) {
		*param = "max_completion_tokens";
		if (!str_to_i64(p->body, &a->max_tokens) || a->max_tokens < 1)
			return err_set(e, ERR_USAGE, "max_completion_tokens must be at least 1");
		*param = NULL;
	}
	return 0;
}

int audio_read(struct conn *c, struct str body, const char **param, struct err *e)
{
	struct sim_ask *a = &c->sim->ask;
	struct buf prompt = { 0 };
	struct form form;
	struct form_part part;
	int rc = 0;

	*param = NULL;
	ask_reset(a, ASK_AUDIO);
	if (!form_open(&form, http_head_value(buf_str(&c->head), "content-type"), body))
		return err_set(e, ERR_PARSE, "the request is no multipart form");
	while (rc == 0 && (rc = form_next(&form, &part, e)) > 0)
		rc = field_read(a, &part, &prompt, param, e);
	buf_add_text(&a->text, "<|startoftranscript|>");
	buf_add_str(&a->text, buf_str(&prompt));
	buf_release(&prompt);
	if (rc < 0)
		return -1;
	if (a->has_prompt)
		return 0;
	*param = "file";
	return err_set(e, ERR_USAGE, "file is missing or empty");
}
