/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_pretok.c - the pre-tokenizer of a tokenizer.json.
 */
#include "token/model.h"
#include "token/stages.h"

/* What ByteLevel cuts by when its own expression is switched on. */
static const char BYTE_LEVEL_REGEX[] =
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static struct pretok_stage *new_stage(struct model *m, struct err *e)
{
	if (m->pretok.count == TOKEN_STAGES_MAX) {
		err_set(e, ERR_LIMIT, "has more than %d pre_tokenizer stages", TOKEN_STAGES_MAX);
		return NULL;
	}
	return &m->pretok.stage[m->pretok.count++];
}

static int read_behavior(const struct json_value *v, enum pretok_behavior *out, struct err *e)
{
	static const char *const name[] = {
		[PRETOK_REMOVED] = "Removed", [PRETOK_ISOLATED] = "Isolated",
		[PRETOK_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
		[PRETOK_MERGED_WITH_NEXT] = "MergedWithNext", [PRETOK_CONTIGUOUS] = "Contiguous",
	};
	struct str text = json_text(json_get(v, "behavior"), STR(""));

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		if (str_is(text, name[i])) {
			*out = (enum pretok_behavior)i;
			return 0;
		}
	}
	return err_set(e, ERR_PARSE, "has a Split pre_tokenizer with behavior \"%.*s\"; known are "
		"Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous",
		(int)(text.n < 64 ? text.n : 64), text.p);
}

static int add_split(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *pattern = json_get(v, "pattern");
	struct str regex = json_text(json_get(pattern, "Regex"), STR(""));
	struct str literal = json_text(json_get(pattern, "String"), STR(""));
	struct pretok_stage *stage = new_stage(m, e);

	if (!stage || read_behavior(v, &stage->behavior, e))
		return -1;
	stage->is_inverted = json_bool(json_get(v, "invert"), false);
	if (regex.n == 0 && literal.n == 0)
		return err_set(e, ERR_PARSE, "has a Split pre_tokenizer whose pattern is neither a "
			"Regex nor a String");
	if (regex.n > 0) {
		stage->kind = PRETOK_REGEX;
		stage->regex = regex_new(regex, e);
		return stage->regex ? 0 : err_wrap(e, "pre_tokenizer Split");
	}
	stage->kind = PRETOK_LITERAL;
	stage->literal = literal;
	return 0;
}

static int add_byte_level(struct model *m, const struct json_value *v, struct err *e)
{
	struct pretok_stage *stage;

	if (json_bool(json_get(v, "add_prefix_space"), false)) {
		stage = new_stage(m, e);
		if (!stage)
			return -1;
		stage->kind = PRETOK_PREFIX;
	}
	if (!json_bool(json_get(v, "use_regex"), true))
		return 0;
	stage = new_stage(m, e);
	if (!stage)
		return -1;
	stage->kind = PRETOK_REGEX;
	stage->behavior = PRETOK_ISOLATED;
	stage->regex = regex_new(str_of(BYTE_LEVEL_REGEX), e);
	return stage->regex ? 0 : -1;
}

static int add_pre_tokenizer(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *list;

	if (stage_is(v, "Sequence")) {
		if (stage_members(v, "pretokenizers", "pre_tokenizer", &list, e))
			return -1;
		for (size_t i = 0; i < list->count; i++)
			if (add_pre_tokenizer(m, list->item + i, e))
				return -1;
		return 0;
	}
	if (!stage_is(v, "Split") && !stage_is(v, "ByteLevel"))
		return stage_refuse(v, "pre_tokenizer", e);
	if (m->is_byte_level)
		return err_set(e, ERR_PARSE,
			"has a pre_tokenizer stage behind ByteLevel, which this "
			"version does not read");
	if (stage_is(v, "Split"))
		return add_split(m, v, e);
	m->is_byte_level = true;
	return add_byte_level(m, v, e);
}

int stages_pre_tokenizer(struct model *m, const struct json_value *root, struct err *e)
{
	return add_pre_tokenizer(m, root, e);
}
