/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - the stages around the model, from their JSON.
 *
 * Every stage is null or an object with a "type"; "Sequence" nests. A type that
 * is not read is an error, for a stage left out would give other ids.
 */
#include <assert.h>

#include "base/mem.h"
#include "token/model.h"

/* What ByteLevel cuts by when its own expression is switched on. */
static const char BYTE_LEVEL_REGEX[] =
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static int parse(struct model *m, struct json_slice v, struct json_value **out, const char *stage,
	struct err *e)
{
	if (v.kind == JSON_NULL) {
		*out = NULL;
		return 0;
	}
	if (v.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "\"%s\" is not an object or null", stage);
	return json_parse(&m->arena, v.raw, out, e);
}

static int refuse_type(const struct json_value *v, const char *stage, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	if (type.n == 0)
		return err_set(e, ERR_PARSE, "has a %s without a type", stage);
	return err_set(e, ERR_PARSE, "has %s type \"%.*s\", which this version does not read",
		stage, (int)(type.n < 64 ? type.n : 64), type.p);
}

static bool is_type(const struct json_value *v, const char *type)
{
	return str_is(json_text(json_get(v, "type"), STR("")), type);
}

/* The elements of a Sequence. */
static int members(const struct json_value *v, const char *key, const char *stage,
	const struct json_value **list, struct err *e)
{
	*list = json_get(v, key);
	if (!*list || (*list)->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a %s Sequence without its list \"%s\"", stage,
			key);
	return 0;
}

/* ---- normalizer ---- */

static int add_normalizer(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *list;

	if (is_type(v, "NFC")) {
		m->normalizer.is_nfc = true;
		return 0;
	}
	if (!is_type(v, "Sequence"))
		return refuse_type(v, "normalizer", e);
	if (members(v, "normalizers", "normalizer", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_normalizer(m, list->item + i, e))
			return -1;
	return 0;
}

int stages_normalizer(struct model *m, struct json_slice v, struct err *e)
{
	struct json_value *root;

	if (parse(m, v, &root, "normalizer", e))
		return -1;
	return root ? add_normalizer(m, root, e) : 0;
}

/* ---- pre-tokenizer ---- */

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

/* *is_bytes: a ByteLevel stage has passed, and what follows would see bytes, not text. */
static int add_pre_tokenizer(struct model *m, const struct json_value *v, bool *is_bytes,
	struct err *e)
{
	const struct json_value *list;

	if (is_type(v, "Sequence")) {
		if (members(v, "pretokenizers", "pre_tokenizer", &list, e))
			return -1;
		for (size_t i = 0; i < list->count; i++)
			if (add_pre_tokenizer(m, list->item + i, is_bytes, e))
				return -1;
		return 0;
	}
	if (!is_type(v, "Split") && !is_type(v, "ByteLevel"))
		return refuse_type(v, "pre_tokenizer", e);
	if (*is_bytes)
		return err_set(e, ERR_PARSE,
			"has a pre_tokenizer stage behind ByteLevel, which this "
			"version does not read");
	if (is_type(v, "Split"))
		return add_split(m, v, e);
	*is_bytes = true;
	return add_byte_level(m, v, e);
}

int stages_pre_tokenizer(struct model *m, struct json_slice v, struct err *e)
{
	struct json_value *root;
	bool is_bytes = false;

	if (parse(m, v, &root, "pre_tokenizer", e) ||
		(root && add_pre_tokenizer(m, root, &is_bytes, e)))
		return -1;
	if (!is_bytes)
		return err_set(e, ERR_PARSE, "has no ByteLevel pre_tokenizer; this version reads "
			"byte-level BPE only");
	return 0;
}

/* ---- post-processor ---- */

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

	if (is_type(v, "ByteLevel")) /* touches offsets only */
		return 0;
	if (is_type(v, "TemplateProcessing"))
		return add_template(m, v, e);
	if (!is_type(v, "Sequence"))
		return refuse_type(v, "post_processor", e);
	if (members(v, "processors", "post_processor", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_post_processor(m, list->item + i, e))
			return -1;
	return 0;
}

int stages_post_processor(struct model *m, struct json_slice v, struct err *e)
{
	struct json_value *root;

	if (parse(m, v, &root, "post_processor", e))
		return -1;
	return root ? add_post_processor(m, root, e) : 0;
}

/* ---- decoder ---- */

/* ByteLevel it must be, alone or as the one member of a Sequence. */
int stages_decoder(struct model *m, struct json_slice v, struct err *e)
{
	struct json_value *root;
	const struct json_value *decoder, *list;

	if (parse(m, v, &root, "decoder", e))
		return -1;
	decoder = root;
	if (!decoder)
		return err_set(e, ERR_PARSE,
			"has no decoder; this version reads files with a ByteLevel "
			"decoder");
	if (is_type(decoder, "Sequence")) {
		if (members(decoder, "decoders", "decoder", &list, e))
			return -1;
		if (list->count == 1)
			decoder = list->item;
	}
	return is_type(decoder, "ByteLevel") ? 0 : refuse_type(decoder, "decoder", e);
}
