/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_post.c - the post-processor of a tokenizer.json: what stands around a sequence.
 */
#include "token/model.h"
#include "token/stages.h"

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
	for (size_t i = 0; i < ids->count; i++) {
		int64_t id = json_int(ids->item + i, -1);

		if (id < 0 || id >= TOKEN_ID_MAX)
			return err_set(e, ERR_PARSE,
				"has a TemplateProcessing with a token id that is "
				"not a number from 0 to %d", (int)TOKEN_ID_MAX - 1);
		ids_push(list, (uint32_t)id);
	}
	return 0;
}

/* A processor goes around what the processors before it made. */
static void wrap(struct model *m, const struct ids *before, const struct ids *after)
{
	struct ids all = { 0 };

	ids_add(&all, before->id, before->count);
	ids_add(&all, m->before.id, m->before.count);
	ids_release(&m->before);
	m->before = all;
	ids_add(&m->after, after->id, after->count);
}

static int add_template(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *single = json_get(v, "single");
	struct ids part[2] = { 0 };
	size_t sequences = 0;
	int rc = -1;

	for (size_t i = 0; single && single->kind == JSON_ARRAY && i < single->count; i++) {
		const struct json_value *token = json_get(single->item + i, "SpecialToken");

		if (json_get(single->item + i, "Sequence"))
			sequences++;
		else if (add_template_token(v, json_text(json_get(token, "id"), STR("")),
			&part[sequences > 0], e))
			goto done;
	}
	if (sequences != 1) {
		err_set(e, ERR_PARSE, "has a TemplateProcessing whose \"single\" does not hold the "
			"sequence exactly once");
		goto done;
	}
	wrap(m, &part[0], &part[1]);
	rc = 0;
done:
	ids_release(&part[0]);
	ids_release(&part[1]);
	return rc;
}

static int add_post_processor(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *list;

	if (stage_is(v, "ByteLevel")) /* touches offsets only */
		return 0;
	if (stage_is(v, "TemplateProcessing"))
		return add_template(m, v, e);
	if (!stage_is(v, "Sequence"))
		return stage_refuse(v, "post_processor", e);
	if (stage_members(v, "processors", "post_processor", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_post_processor(m, list->item + i, e))
			return -1;
	return 0;
}

int stages_post_processor(struct model *m, const struct json_value *root, struct err *e)
{
	return add_post_processor(m, root, e);
}
