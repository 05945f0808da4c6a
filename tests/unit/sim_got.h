/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_got.h - for tests of what the simulator says: answers of chat and completions, streamed or
 * not, taken apart by choice and call.
 */
#pragma once
#include "sim_rig.h"

#include "input/constrain/constrain.h"

#define CHOICES_MAX 8
#define CALLS_MAX 4

/* ---- answers, streamed or not ---- */

struct got_call {
	char id[64], name[32];
	struct buf arguments;
	size_t deltas;
};

struct got_choice {
	struct buf text;
	char finish[16];
	size_t events, roles;
	struct got_call call[CALLS_MAX];
	size_t calls;
};

struct got {
	unsigned status;
	char error[512], model[32];
	struct got_choice choice[CHOICES_MAX];
	size_t choices;
	int64_t prompt_tokens, output_tokens, cached_tokens;
};

static inline void copy(char *out, size_t n, struct json_value *v)
{
	struct str text = json_text(v, (struct str){ 0 });

	if (v)
		snprintf(out, n, "%.*s", (int)text.n, text.p ? text.p : "");
}

static inline void calls_add(struct got_choice *c, struct json_value *list)
{
	for (size_t i = 0; list && i < list->count; i++) {
		struct json_value *v = &list->item[i], *f = json_get(v, "function");
		size_t at = (size_t)json_int(json_get(v, "index"), (int64_t)i);
		struct got_call *call = &c->call[at];

		assert_true(at < CALLS_MAX && f);
		c->calls = at + 1 > c->calls ? at + 1 : c->calls;
		copy(call->id, sizeof(call->id), json_get(v, "id"));
		copy(call->name, sizeof(call->name), json_get(f, "name"));
		buf_add_str(&call->arguments, json_text(json_get(f, "arguments"),
							(struct str){ 0 }));
		call->deltas++;
	}
}

static inline void one_choice_add(struct got *g, struct json_value *v)
{
	size_t index = (size_t)json_int(json_get(v, "index"), CHOICES_MAX);
	struct json_value *said = json_get(v, "delta") ? json_get(v, "delta") :
				  json_get(v, "message") ? json_get(v, "message") : v;
	struct got_choice *c = &g->choice[index];

	assert_true(index < CHOICES_MAX);
	g->choices = index + 1 > g->choices ? index + 1 : g->choices;
	c->events++;
	c->roles += json_get(said, "role") != NULL;
	buf_add_str(&c->text, json_text(json_get(said, said == v ? "text" : "content"),
					(struct str){ 0 }));
	calls_add(c, json_get(said, "tool_calls"));
	if (json_text(json_get(v, "finish_reason"), (struct str){ 0 }).n)
		copy(c->finish, sizeof(c->finish), json_get(v, "finish_reason"));
}

static inline void document_add(struct got *g, struct str text)
{
	struct arena a = { 0 };
	struct json_value *v, *choices, *usage, *error;

	if (str_is(text, "[DONE]"))
		return;
	if (json_parse(&a, text, &v, NULL) < 0)
		fail_msg("no JSON: %.*s", (int)text.n, text.p);
	choices = json_get(v, "choices");
	usage = json_get(v, "usage");
	error = json_get(v, "error");
	copy(g->error, sizeof(g->error), json_get(error, "message"));
	copy(g->model, sizeof(g->model), json_get(v, "model"));
	for (size_t i = 0; choices && i < choices->count; i++)
		one_choice_add(g, &choices->item[i]);
	if (usage && usage->kind == JSON_OBJECT) {
		g->prompt_tokens = json_int(json_get(usage, "prompt_tokens"), -1);
		g->output_tokens = json_int(json_get(usage, "completion_tokens"), -1);
		g->cached_tokens = json_int(json_get(json_get(usage, "prompt_tokens_details"),
						     "cached_tokens"), -1);
	}
	arena_release(&a);
}

/* members: of the body, without braces. */
static inline struct got get(const struct rig *r, bool is_chat, bool is_streamed, const char *id,
		      const char *members)
{
	struct got g = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1 };
	struct buf body = { 0 }, head = { 0 };
	struct sse sse = { 0 };
	struct sse_event event;
	struct reply reply;
	struct str in;

	buf_printf(&body, "{%s%s%s}", members, strstr(members, "\"messages\"") ||
		   strstr(members, "\"prompt\"") ? "" : is_chat ?
		   ",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" : ",\"prompt\":\"one two\"",
		   is_streamed ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "");
	buf_printf(&head, "x-request-id: %s\r\n", id);
	reply = ask(r, "POST", is_chat ? "/v1/chat/completions" : "/v1/completions", head.data,
		    body.data);
	g.status = reply.status;
	in = buf_str(&reply.body);
	if (is_streamed && reply.status == 200)
		while (sse_next(&sse, &in, &event) > 0)
			document_add(&g, event.data);
	else
		document_add(&g, in);
	sse_release(&sse);
	reply_release(&reply);
	buf_release(&body);
	buf_release(&head);
	return g;
}

static inline void got_release(struct got *g)
{
	for (size_t i = 0; i < CHOICES_MAX; i++) {
		buf_release(&g->choice[i].text);
		for (size_t k = 0; k < CALLS_MAX; k++)
			buf_release(&g->choice[i].call[k].arguments);
	}
}

/* Fast enough to wait for. */
static inline void quick_engine(struct rig *r)
{
	r->opts.ttft_ms = r->opts.itl_ms = NULL;
	r->opts.cost = (struct engine_cost){ .prefill_base_us = 10, .prefill_us_per_token = 1,
					     .decode_base_us = 10, .decode_us_per_seq = 1 };
}

/* What the checker says; member: as constraint_compile_member takes it. */
static inline enum constraint_verdict verdict(const char *member, struct str answer, char why[256])
{
	struct err e = { 0 };
	struct constraint *c = constraint_compile_member(str_of(member), NULL, &e);
	struct constraint_result result;

	if (!c)
		fail_msg("%s: %s", member, e.text);
	constraint_check(c, answer, &result);
	constraint_free(c);
	snprintf(why, 256, "%s", result.why);
	return result.verdict;
}
