/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_post.c - the post-processor of a tokenizer.json: what stands around a sequence.
 */
#include "base/limits.h"
#include "token/model.h"
#include "token/stages.h"

/* Appends an id from the file. */
static int add_id(const struct json_value *v, const char *type, struct ids *list, struct err *e)
{
	int64_t id = json_int(v, -1);

	if (id < 0 || id >= TOKEN_ID_MAX)
		return err_set(e, ERR_PARSE,
			"has a %s with a token id that is not a number from 0 to %d", type,
			(int)TOKEN_ID_MAX - 1);
	if (list->count == TOKEN_AROUND_MAX)
		return err_set(e, ERR_LIMIT, "has a %s that adds more than %d ids "
			"(TOKEN_AROUND_MAX)", type, TOKEN_AROUND_MAX);
	ids_push(list, (uint32_t)id);
	return 0;
}

/* Adds the ids of one special token of a template at the end of list. */
static int add_template_token(const struct json_value *root, struct str name, struct ids *list,
	struct err *e)
{
	const struct json_value *specials = json_get(root, "special_tokens"), *ids = NULL;

	for (size_t i = 0; specials && specials->kind == JSON_OBJECT && i < specials->count; i++)
		if (str_eq(specials->key[i], name))
			ids = json_get(specials->item + i, "ids");
	if (!ids || ids->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a TemplateProcessing without ids for its token "
			"\"%.*s\"", (int)(name.n < 64 ? name.n : 64), name.p);
	for (size_t i = 0; i < ids->count; i++)
		if (add_id(ids->item + i, "TemplateProcessing", list, e))
			return -1;
	return 0;
}

/* A processor goes around what the processors before it made. */
static int wrap(struct model *m, const struct ids *before, const struct ids *after, struct err *e)
{
	struct ids all = { 0 };

	if (m->before.count + before->count > TOKEN_AROUND_MAX ||
		m->after.count + after->count > TOKEN_AROUND_MAX)
		return err_set(e, ERR_LIMIT, "has a post_processor that adds more than %d ids "
			"(TOKEN_AROUND_MAX)", TOKEN_AROUND_MAX);
	ids_add(&all, before->id, before->count);
	ids_add(&all, m->before.id, m->before.count);
	ids_release(&m->before);
	m->before = all;
	ids_add(&m->after, after->id, after->count);
	return 0;
}

/* part[0]: the ids before the sequence, part[1]: those behind it. */
static int read_template(const struct json_value *v, struct ids part[2], struct err *e)
{
	const struct json_value *single = json_get(v, "single"), *sequence;
	size_t sequences = 0;

	for (size_t i = 0; single && single->kind == JSON_ARRAY && i < single->count; i++) {
		const struct json_value *token = json_get(single->item + i, "SpecialToken");

		sequence = json_get(single->item + i, "Sequence");
		if (sequence && !str_is(json_text(json_get(sequence, "id"), STR("")), "A"))
			return err_set(e, ERR_PARSE, "has a TemplateProcessing whose \"single\" "
				"holds another sequence than A");
		if (sequence)
			sequences++;
		else if (add_template_token(v, json_text(json_get(token, "id"), STR("")),
			&part[sequences > 0], e))
			return -1;
	}
	if (sequences != 1)
		return err_set(e, ERR_PARSE, "has a TemplateProcessing whose \"single\" does not "
			"hold the sequence exactly once");
	return 0;
}

/* BertProcessing, RobertaProcessing: one token before, "cls", and one behind, "sep". */
static int read_cls_sep(const struct json_value *v, const char *type, struct ids part[2],
	struct err *e)
{
	static const char *const name[] = { "cls", "sep" };

	for (size_t i = 0; i < 2; i++) {
		const struct json_value *pair = json_get(v, name[i]);

		if (!pair || pair->kind != JSON_ARRAY || pair->count != 2)
			return err_set(e, ERR_PARSE, "has a %s whose \"%s\" is not "
				"[\"token\", id]", type, name[i]);
		if (add_id(pair->item + 1, type, &part[i], e))
			return -1;
	}
	return 0;
}

static int add_wrapper(struct model *m, const struct json_value *v, bool is_template,
	const char *type, struct err *e)
{
	struct ids part[2] = { 0 };
	int rc = is_template ? read_template(v, part, e) : read_cls_sep(v, type, part, e);

	if (rc == 0)
		rc = wrap(m, &part[0], &part[1], e);
	ids_release(&part[0]);
	ids_release(&part[1]);
	return rc;
}

/* *is_split: a template came before; the reference hands its parts on as if they were pairs. */
static int add_post_processor(struct model *m, const struct json_value *v, bool *is_split,
	struct err *e)
{
	static const char *const WRAPPERS[] = { "TemplateProcessing", "BertProcessing",
		"RobertaProcessing" };
	const struct json_value *list;

	if (stage_is(v, "ByteLevel")) /* touches offsets only */
		return 0;
	for (size_t i = 0; i < sizeof WRAPPERS / sizeof *WRAPPERS; i++) {
		if (!stage_is(v, WRAPPERS[i]))
			continue;
		if (*is_split)
			return err_set(e, ERR_PARSE, "has a %s behind a TemplateProcessing, "
				"which this version does not read", WRAPPERS[i]);
		*is_split = i == 0;
		return add_wrapper(m, v, i == 0, WRAPPERS[i], e);
	}
	if (!stage_is(v, "Sequence"))
		return stage_refuse(v, "post_processor", e);
	if (stage_members(v, "processors", "post_processor", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_post_processor(m, list->item + i, is_split, e))
			return -1;
	return 0;
}

int stages_post_processor(struct model *m, const struct json_value *root, struct err *e)
{
	bool is_split = false;

	return add_post_processor(m, root, &is_split, e);
}
