/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_any.c - data of no known class: the column of prompts is found by its name; spec 8.5.
 *
 * Recorded conversations give their first user turn and the reply to it; other columns of
 * prompts go with a column of answers, whose length is asked for.
 */
#include "base/mem.h"
#include "data/hf.h"

static const char *const prompt_columns[] = {
	"conversation", "conversations", "messages", "turns", "prompt", "question", "problem",
	"input", "text", "content", "instruction",
};
static const char *const answer_columns[] = {
	"completion", "response", "answer", "output", "solution", "answers",
};
#define COUNT(array) (sizeof(array) / sizeof(*array))

struct found {
	const char *prompt, *answer; /* columns of the first row that has any */
	bool has_context;
};

/* The text of one turn: {"role", "content"} or {"from", "value"}; parts give their first text. */
static bool turn_text(struct json_slice turn, struct json_slice *out)
{
	struct json_slice part, text;
	struct json_iter it;
	struct str key;

	if (!json_member(turn, "content", out) && !json_member(turn, "value", out))
		return false;
	it = json_iter(*out);
	while (out->kind == JSON_ARRAY && json_each(&it, &key, &part) == 1)
		if (json_member(part, "text", &text) && text.kind == JSON_STRING)
			*out = text;
	return out->kind == JSON_STRING;
}

static bool is_user(struct json_slice turn)
{
	struct json_slice role;

	return (json_member(turn, "role", &role) || json_member(turn, "from", &role)) &&
	       role.kind == JSON_STRING && (str_is(role.raw, "user") || str_is(role.raw, "human"));
}

/* The reply to a turn: the next one, when it is not the user's. raw.p NULL: none. */
static struct json_slice find_reply(struct json_iter *it)
{
	struct json_slice turn, text;
	struct str key;

	if (json_each(it, &key, &turn) == 1 && !is_user(turn) && turn_text(turn, &text))
		return text;
	return (struct json_slice){ 0 };
}

/* The text that a value stands for, and in a conversation the reply to it (raw.p NULL: none). */
static bool find_text(struct json_slice v, struct json_slice *text, struct json_slice *reply)
{
	struct json_iter it;
	struct json_slice turn;
	struct str key;

	*reply = (struct json_slice){ 0 };
	if (v.kind == JSON_OBJECT && !json_member(v, "text", &v))
		return false;
	*text = v;
	it = json_iter(v);
	while (v.kind == JSON_ARRAY && json_each(&it, &key, &turn) == 1) {
		if (turn.kind == JSON_STRING || turn.kind == JSON_ARRAY)
			return find_text(turn, text, reply);
		if (is_user(turn) && turn_text(turn, text)) {
			*reply = find_reply(&it);
			return true;
		}
	}
	return text->kind == JSON_STRING && text->raw.n > 0;
}

static void add_answer(const struct hf_row *r, struct arena *a, struct draft *d)
{
	struct found *found = r->hf->own;
	struct json_slice v, text, reply;

	for (size_t i = 0; i < COUNT(answer_columns); i++) {
		if (!json_member(r->object, answer_columns[i], &v) || !find_text(v, &text, &reply))
			continue;
		d->answer = hf_string(text, a);
		if (!found->answer)
			found->answer = answer_columns[i];
		return;
	}
}

static void add_prompt(const struct hf_row *r, const char *column, struct json_slice text,
		       struct arena *a, struct draft *d)
{
	struct found *found = r->hf->own;
	struct json_slice context;
	bool has_context = strcmp(column, "input") == 0 &&
			   json_member(r->object, "context", &context) &&
			   context.kind == JSON_STRING && context.raw.n > 0;

	if (has_context) {
		json_unescape(&r->hf->text, context.raw);
		buf_add_text(&r->hf->text, "\n\n");
	}
	json_unescape(&r->hf->text, text.raw);
	d->sample.prompt = hf_built(r, a);
	if (!found->prompt) {
		found->prompt = column;
		found->has_context = has_context;
	}
}

/* Reads one column; false: it has no text. */
static bool read_column(const struct hf_row *r, const char *column, struct arena *a,
			struct draft *d)
{
	struct json_slice v, text, reply;

	if (!json_member(r->object, column, &v) || !find_text(v, &text, &reply))
		return false;
	add_prompt(r, column, text, a, d);
	if (reply.raw.p)
		d->answer = hf_string(reply, a);
	else
		add_answer(r, a, d);
	return true;
}

static int refuse(const struct hf_row *r, struct err *e)
{
	struct json_slice v;

	if (hf_column(r, "prompt", &v, e) == 0)
		return 0;
	return err_wrap(e, "no column of prompts is known by its name; --hf-text-column names one");
}

int hf_draft_any(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	const char *asked = r->hf->opts->hf_text_column;
	struct json_slice v;
	bool is_known = false;

	if (!r->hf->own)
		r->hf->own = mem_alloc(sizeof(struct found));
	if (asked && hf_column(r, asked, &v, e) < 0)
		return -1;
	if (asked && read_column(r, asked, a, d))
		return 1;
	/* Both together are one prompt, and come before the other columns of texts. */
	if (!asked && json_member(r->object, "context", &v) && read_column(r, "input", a, d))
		return 1;
	for (size_t i = 0; !asked && i < COUNT(prompt_columns); i++) {
		if (read_column(r, prompt_columns[i], a, d))
			return 1;
		is_known |= json_member(r->object, prompt_columns[i], &v);
	}
	if (!asked && !is_known)
		return refuse(r, e);
	r->hf->left_out++;
	return 0;
}

void hf_finish_any(struct hf *h)
{
	const struct found *found = h->own;

	if (!found)
		return;
	if (found->prompt)
		dataset_note(h->w, "%s is read as any data with text, which upstream refuses: prompts are "
			"%s\"%s\", %s%s%s", h->opts->path,
			found->has_context ? "\"context\" and " : "the column ", found->prompt,
			found->answer ? "lengths those of \"" : "lengths those of replies, or 128",
			found->answer ? found->answer : "", found->answer ? "\"" : "");
	if (h->left_out)
		dataset_note(h->w, "%zu rows were left out: no text where the prompt stands", h->left_out);
}
