/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_bfcl.c - the Berkeley function calling leaderboard: spec 5.23; see hf.h.
 *
 * A category is a file of its own; rows come from all of them in turn, then shuffled. The
 * functions of a row become tools that its messages are sent with.
 */
#include "base/mem.h"
#include "data/hf.h"
#include "json/write.h"

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

/* The set's own names of types become those of JSON schemas, however deep they stand. */
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

/* What the lengths count: the rendered template, or the bare texts, which is said at the end. */
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
		dataset_note(h->w, "%zu rows were left out: no \"question\" with messages or no \"function\"",
			h->left_out);
}
