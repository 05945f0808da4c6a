/* SPDX-License-Identifier: Apache-2.0 */
/* hf_text.c - hub datasets whose rows are texts; see hf.h. */
#include "input/sets/hf.h"

#include <assert.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"

/* ---- any data with text ---- */

/*
 * Data of no known class: the column of prompts is found by its name; spec 8.5.
 *
 * Recorded conversations give their first user turn and the reply to it; other columns of prompts
 * are paired with a column of answers, whose length is asked for.
 */

static const char *const prompt_columns[] = {
	"conversation", "conversations", "messages", "turns", "prompt", "question", "problem",
	"input", "text", "content", "instruction",
};
static const char *const answer_columns[] = {
	"completion", "response", "answer", "output", "solution", "answers",
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct found_columns {
	const char *prompt, *answer; /* columns of the first row that has any */
	bool has_context;
};

/* The text of one turn: {"role", "content"} or {"from", "value"}; parts give their first text. */
static bool turn_text(struct json_slice turn, struct json_slice *out)
{
	struct json_slice part, text;
	struct json_iter it;

	if (!json_member(turn, "content", out) && !json_member(turn, "value", out))
		return false;
	it = json_iter(*out);
	while (out->kind == JSON_ARRAY && json_each(&it, NULL, &part) == 1)
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

	if (json_each(it, NULL, &turn) == 1 && !is_user(turn) && turn_text(turn, &text))
		return text;
	return (struct json_slice){ 0 };
}

/* The text of a value, and for a conversation the reply to it (raw.p NULL: none). */
static bool find_text(struct json_slice v, struct json_slice *text, struct json_slice *reply)
{
	struct json_iter it;
	struct json_slice turn;

	*reply = (struct json_slice){ 0 };
	if (v.kind == JSON_OBJECT && !json_member(v, "text", &v))
		return false;
	*text = v;
	it = json_iter(v);
	while (v.kind == JSON_ARRAY && json_each(&it, NULL, &turn) == 1) {
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
	struct found_columns *found = r->hf->own;
	struct json_slice v, text, reply;

	for (size_t i = 0; i < COUNT(answer_columns); i++) {
		if (!json_member(r->object, answer_columns[i], &v) || !find_text(v, &text, &reply))
			continue;
		d->answer = rows_string(text, a);
		if (!found->answer)
			found->answer = answer_columns[i];
		return;
	}
}

static void add_prompt(const struct hf_row *r, const char *column, struct json_slice text,
		       struct arena *a, struct draft *d)
{
	struct found_columns *found = r->hf->own;
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
		d->answer = rows_string(reply, a);
	else
		add_answer(r, a, d);
	return true;
}

static int refuse(const struct hf_row *r, struct err *e)
{
	struct json_slice v;

	if (hf_column(r, "prompt", &v, e) == 0)
		return 0;
	return err_wrap(e, "the column of prompts is not recognized by its name; name it with "
			   "--hf-text-column");
}

int hf_draft_any(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	const char *asked = r->hf->opts->hf_text_column;
	struct json_slice v;
	bool is_known = false;

	if (!r->hf->own)
		r->hf->own = mem_alloc(sizeof(struct found_columns));
	if (asked && hf_column(r, asked, &v, e) < 0)
		return -1;
	if (asked && read_column(r, asked, a, d))
		return 1;
	/*
	 * "context" and "input" together are one prompt, and are tried before the other columns of
	 * texts.
	 */
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
	const struct found_columns *found = h->own;

	if (!found)
		return;
	if (found->prompt)
		dataset_note(h->w, "%s is read as generic text data, which vLLM refuses: prompts "
			"are %s\"%s\", %s%s%s", h->opts->path,
			found->has_context ? "\"context\" and " : "the column ", found->prompt,
			found->answer ? "lengths those of \"" : "lengths those of replies, or 128",
			found->answer ? found->answer : "", found->answer ? "\"" : "");
	if (h->left_out)
		dataset_note(h->w, "%zu row%s skipped: no text in the prompt's column",
			     h->left_out, h->left_out == 1 ? " was" : "s were");
}

/* ---- function calls ---- */

/*
 * The Berkeley function calling leaderboard: spec 5.23.
 *
 * A category is a file of its own; rows come from all of them in turn, then shuffled. A row's
 * functions become tools of its request.
 */

#define CATEGORIES "simple,live_simple,multiple"
#define CATEGORIES_MAX 64 /* there are 24 */

/* ---- files ---- */

static int open_category(struct hf *h, struct str category, struct err *e)
{
	struct buf name = { 0 }, path = { 0 };
	int rc;

	if (h->shards == CATEGORIES_MAX)
		return err_set(e, ERR_USAGE, "--bfcl-categories: more than %d categories",
			       CATEGORIES_MAX);
	buf_printf(&name, "BFCL_v3_%.*s.json", (int)category.n, category.p);
	rc = source_file(&h->where, name.data, &path, e);
	if (rc == SOURCE_NO_FILE)
		rc = err_wrap(e, "no category \"%.*s\"", (int)category.n, category.p);
	if (rc == 0) {
		h->shards++;
		rc = hf_open_table(h, h->shards - 1, path.data, e);
	}
	buf_release(&name);
	buf_release(&path);
	return rc;
}

/* Row 0 of each category, row 1 of each, ... */
static void list_rows(struct hf *h)
{
	size_t total = 0;

	for (size_t c = 0; c < h->shards; c++)
		total += table_rows(h->table[c]);
	h->list = mem_array(total, sizeof(*h->list));
	for (size_t row = 0; h->listed < total; row++)
		for (size_t c = 0; c < h->shards; c++)
			if (row < table_rows(h->table[c]))
				h->list[h->listed++] = (struct order_row){ c, row };
}

int hf_open_bfcl(struct hf *h, struct err *e)
{
	struct str rest = str_of(h->opts->bfcl_categories ? h->opts->bfcl_categories : CATEGORIES);
	struct pyrandom random;

	assert(!h->table);
	h->table = mem_array(CATEGORIES_MAX, sizeof(*h->table));
	h->own = mem_alloc(sizeof(bool));
	while (rest.n) {
		struct str category = str_trim(str_cut(&rest, ','));

		if (category.n && open_category(h, category, e) < 0)
			return -1;
	}
	if (h->shards == 0)
		return err_set(e, ERR_USAGE, "--bfcl-categories names no category (the usual ones are "
			       CATEGORIES ")");
	list_rows(h);
	if (h->opts->disable_shuffle)
		return 0;
	pyrandom_seed(&random, (int64_t)h->env->seed);
	pyrandom_shuffle(&random, h->list, h->listed, sizeof(*h->list));
	return 0;
}

/* ---- rows ---- */

/* Renames the set's types to those of JSON schemas, at any depth. */
static void rename_types(struct json_value *v)
{
	static const struct { const char *from, *to; } name[] = {
		{ "dict", "object" }, { "float", "number" }, { "tuple", "array" }, { "any", "string" },
	};

	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
		return;
	for (size_t i = 0; i < v->count; i++) {
		struct json_value *item = &v->item[i];
		bool is_type = v->kind == JSON_OBJECT && str_is(v->key[i], "type") &&
			       item->kind == JSON_STRING;

		for (size_t j = 0; is_type && j < sizeof(name) / sizeof(*name); j++)
			if (str_is(item->text, name[j].from)) {
				item->text = str_of(name[j].to);
				break;
			}
		rename_types(item);
	}
}

/* A function or a list of them, as the tools of a chat request. */
static struct str make_tools(const struct hf_row *r, struct json_value *function, struct arena *a)
{
	bool is_list = function->kind == JSON_ARRAY;
	size_t n = is_list ? function->count : 1;
	struct buf *text = &r->hf->text;

	rename_types(function);
	for (size_t i = 0; i < n; i++) {
		struct json_writer w = json_writer(text); /* its own: a schema may be deep */

		buf_add_text(text, i ? ", " : "[");
		buf_add_text(text, "{\"type\": \"function\", \"function\": ");
		json_put_value(&w, is_list ? &function->item[i] : function);
		buf_add_char(text, '}');
	}
	buf_add_char(text, ']');
	return hf_built(r, a);
}

/*
 * Appends the text that lengths count: the rendered template, or the bare texts, with a note at the
 * end.
 */
static int add_counted(const struct hf_row *r, const struct json_value *messages, struct str tools,
		       struct arena *a, struct draft *d, struct err *e)
{
	const struct dataset_env *env = r->hf->env;
	bool *is_bare = r->hf->own;
	struct buf *text = &r->hf->text;
	struct err why = { 0 };

	for (int with = env->render && !*is_bare ? 1 : -1; with >= 0; with--) {
		if (dataset_go_on(env, e) < 0)
			return -1;
		if (env->render(env->render_self, d->sample.messages, with ? tools : STR(""), text,
				&why) == 0) {
			d->counted = hf_built(r, a);
			return 0;
		}
		if (why.code == ERR_CANCELLED) {
			*e = why;
			return -1;
		}
		buf_reset(text);
	}
	if (!*is_bare)
		dataset_note(r->hf->w, "prompt lengths of BFCL count the messages alone, without the chat "
			"template and the tools (%s); the server's usage replaces them",
			env->render ? why.text : "no server to ask for them");
	*is_bare = true;
	for (size_t i = 0; i < messages->count; i++) {
		if (i)
			buf_add_char(text, '\n');
		buf_add_str(text, json_text(json_get(&messages->item[i], "content"), STR("")));
	}
	d->counted = hf_built(r, a);
	return 0;
}

static bool is_something(const struct json_value *v)
{
	return v && (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) && v->count > 0;
}

int hf_draft_bfcl(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_value *row, *question, *function, *messages;
	struct json_writer w = json_writer(&r->hf->text);
	struct str tools;

	if (json_parse(a, r->object.raw, &row, e) < 0)
		return err_wrap(e, "%s", hf_where(r, a));
	question = json_get(row, "question");
	function = json_get(row, "function");
	if (!is_something(question) || !is_something(function) || question->kind != JSON_ARRAY ||
	    question->item[0].kind != JSON_ARRAY || question->item[0].count == 0) {
		r->hf->left_out++;
		return 0;
	}
	messages = &question->item[0];
	json_put_value(&w, messages);
	d->sample.messages = hf_built(r, a);
	d->sample.prompt = json_text(json_get(&messages->item[messages->count - 1], "content"),
				     STR(""));
	tools = make_tools(r, function, a);
	buf_add_text(&r->hf->text, "{\"tools\": ");
	buf_add_str(&r->hf->text, tools);
	buf_add_text(&r->hf->text, ", \"tool_choice\": \"auto\"}");
	d->sample.overrides = hf_built(r, a);
	return add_counted(r, messages, tools, a, d, e) < 0 ? -1 : 1;
}

void hf_finish_bfcl(struct hf *h)
{
	if (h->left_out)
		dataset_note(h->w, "%zu row%s skipped: no \"question\" with messages or no \"function\"",
			     h->left_out, h->left_out == 1 ? " was" : "s were");
}

/* ---- conversations ---- */

/* Hub datasets of recorded conversations, with and without a picture: spec 5.16. */

/* The first two turns; conversations without them are left out. */
int hf_draft_conversation(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_slice turns, turn[2], value[2];

	if (hf_column(r, "conversations", &turns, e) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		if (!rows_item(turns, i, &turn[i]))
			return turns.kind == JSON_ARRAY ? 0 :
			       hf_refuse(r, e, "\"conversations\" must be a list");
	for (size_t i = 0; i < 2; i++)
		if (!json_member(turn[i], "value", &value[i]) || value[i].kind != JSON_STRING)
			return hf_refuse(r, e, "\"conversations\": turn %zu has no text \"value\"", i);
	d->sample.prompt = rows_string(value[0], a);
	d->answer = rows_string(value[1], a);
	return 1;
}

int hf_draft_multimodal_conversation(const struct hf_row *r, struct arena *a, struct draft *d,
				     struct err *e)
{
	struct json_slice image;
	int rc = hf_draft_conversation(r, a, d, e);

	/* Rows without a picture are conversations like any other. */
	if (rc <= 0 || !json_member(r->object, "image", &image))
		return rc;
	return hf_add_image(r, image, a, d, e) < 0 ? -1 : 1;
}

/* ---- changes to code ---- */

/*
 * Hub datasets of changes to code: spec 5.18, 5.20.
 *
 * The sentences of the prompts are upstream's to the byte, as the measurement depends on them.
 */

/*
 * The text after the marker. Without a marker upstream's search gives -1, which Python takes as
 * "from the last character on"; the requested length must equal upstream's.
 */
static struct str editable_part(struct str output)
{
	const struct str marker = STR("<|editable_region_start|>");
	const char *at = str_find(output, marker);
	size_t from = at ? (size_t)(at - output.p) : output.n;

	while (!at && from > 0) {
		from--;
		if (((unsigned char)output.p[from] & 0xc0) != 0x80)
			break;
	}
	return (struct str){ output.p + from, output.n - from };
}

int hf_draft_next_edit(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct buf *text = &r->hf->text;
	struct str output;

	buf_add_text(text, "### Instruction:\nYou are a code completion assistant and your task is "
		     "to analyze user edits and then rewrite an excerpt that the user provides, "
		     "suggesting the appropriate edits within the excerpt, taking into account the "
		     "cursor location.\n\n### User Edits:\n\n");
	if (hf_add_column(r, "events", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\n### User Excerpt:\n\n");
	if (hf_add_column(r, "input", text, e) < 0 || hf_text(r, "output", a, &output, e) < 0)
		return -1;
	buf_add_text(text, "\n\n### Response:\n\n");
	d->sample.prompt = hf_built(r, a);
	d->answer = editable_part(output);
	return 1;
}

/* Whether the row's distance is in the window that is asked for. */
static int is_within(const struct hf_row *r, struct err *e)
{
	const struct dataset_opts *o = r->hf->opts;
	struct json_slice v;
	double distance;

	if (hf_column(r, "norm_distance", &v, e) < 0)
		return -1;
	if (!json_to_f64(v, &distance) && (v.kind != JSON_STRING || !str_to_f64(v.raw, &distance)))
		return hf_refuse(r, e, "\"norm_distance\" must be a number");
	return distance >= o->blazedit_min_distance && distance <= o->blazedit_max_distance;
}

int hf_draft_blazedit(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct buf *text = &r->hf->text;
	int rc = is_within(r, e);

	if (rc <= 0)
		return rc;
	buf_add_text(text, "Given a code file, please apply the change requests and generate the new "
		     "file.\n\nOriginal file:\n```python\n");
	if (hf_add_column(r, "code", text, e) < 0)
		return -1;
	buf_add_text(text, "\n```\n\nChange request:\n");
	if (hf_add_column(r, "change_request", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\nPlease generate the new code file in the \"New file\" section below.");
	d->sample.prompt = hf_built(r, a);
	return 1;
}

/* ---- questions ---- */

/* The two texts around the instruction: the task, and that only code is wanted. */
int hf_draft_instruct_coder(const struct hf_row *r, struct arena *a, struct draft *d,
			    struct err *e)
{
	struct buf *text = &r->hf->text;

	if (hf_add_column(r, "input", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\n");
	if (hf_add_column(r, "instruction", text, e) < 0)
		return -1;
	buf_add_text(text, " Just output the code, do not include any explanation.");
	d->sample.prompt = hf_built(r, a);
	return 1;
}

int hf_draft_mt_bench(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_slice turns, first;

	if (hf_column(r, "turns", &turns, e) < 0)
		return -1;
	if (!rows_item(turns, 0, &first) || first.kind != JSON_STRING)
		return hf_refuse(r, e, "\"turns\" must be a list of texts");
	d->sample.prompt = rows_string(first, a);
	return 1;
}

static int draft_text(const struct hf_row *r, const char *column, struct arena *a,
		      struct draft *d, struct err *e)
{
	return hf_text(r, column, a, &d->sample.prompt, e) < 0 ? -1 : 1;
}

int hf_draft_human_eval(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return draft_text(r, "prompt", a, d, e);
}

int hf_draft_gsm8k(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return draft_text(r, "question", a, d, e);
}

int hf_draft_aimo(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return hf_text(r, "solution", a, &d->answer, e) < 0 ? -1 : draft_text(r, "problem", a, d, e);
}

/* {"role": role, "content": the column's text} */
static int put_message(const struct hf_row *r, const char *role, const char *column,
		       struct arena *a, struct json_writer *w, struct err *e)
{
	struct str content;

	if (hf_text(r, column, a, &content, e) < 0)
		return -1;
	json_begin_object(w);
	json_member_text(w, "role", role);
	json_member_str(w, "content", content);
	json_end_object(w);
	return 0;
}

int hf_draft_mlperf(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	const struct dataset_env *env = r->hf->env;
	struct json_writer w = json_writer(&r->hf->text);
	struct str messages;

	json_begin_array(&w);
	if (put_message(r, "system", "system_prompt", a, &w, e) < 0 ||
	    put_message(r, "user", "question", a, &w, e) < 0 ||
	    hf_text(r, "output", a, &d->answer, e) < 0)
		return -1;
	json_end_array(&w);
	messages = hf_built(r, a);
	if (env->render(env->render_self, messages, STR(""), &r->hf->text, e) < 0)
		return err_wrap(e, "%s", hf_where(r, a));
	d->sample.prompt = hf_built(r, a);
	d->is_answer_plain = true;
	return 1;
}
