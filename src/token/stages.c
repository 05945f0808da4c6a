/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - the four stages in order, and what their parsers share.
 */
#include "token/stages.h"

#include "base/limits.h"
#include "token/model.h"

bool stage_is(const struct json_value *v, const char *type)
{
	return str_is(json_text(json_get(v, "type"), STR("")), type);
}

int stage_refuse(const struct json_value *v, const char *stage, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	if (type.n == 0)
		return err_set(e, ERR_PARSE, "has a %s without a type", stage);
	return err_set(e, ERR_PARSE, "has %s type \"%.*s\", which this version does not read",
		stage, (int)(type.n < 64 ? type.n : 64), type.p);
}

int stage_members(const struct json_value *v, const char *key, const char *stage,
	const struct json_value **list, struct err *e)
{
	*list = json_get(v, key);
	if (!*list || (*list)->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a %s Sequence without its list \"%s\"", stage,
			key);
	return 0;
}

static int load_stage(struct model *m, struct str text, struct str *kept, const char *stage,
	int (*read)(struct model *m, const struct json_value *root, struct err *e),
	struct err *e)
{
	struct json_value *root;

	if (text.n == 0 || str_is(text, "null"))
		return 0;
	if (text.n > TOKEN_STAGE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has a %s of %zu bytes; at most %u are read "
			"(TOKEN_STAGE_BYTES_MAX)", stage, text.n, TOKEN_STAGE_BYTES_MAX);
	*kept = arena_str(&m->arena, text);
	if (json_parse(&m->arena, *kept, &root, e))
		return err_wrap(e, "%s", stage);
	if (root->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "\"%s\" is not an object or null", stage);
	return read(m, root, e);
}

int stages_load(struct model *m, const struct stage_texts *text, struct err *e)
{
	struct stage_texts *kept = &m->stage_text;

	if (load_stage(m, text->normalizer, &kept->normalizer, "normalizer",
		stages_normalizer, e) ||
		load_stage(m, text->pre_tokenizer, &kept->pre_tokenizer, "pre_tokenizer",
			stages_pre_tokenizer, e) ||
		load_stage(m, text->post_processor, &kept->post_processor, "post_processor",
			stages_post_processor, e))
		return -1;
	return load_stage(m, text->decoder, &kept->decoder, "decoder", stages_decoder, e);
}
