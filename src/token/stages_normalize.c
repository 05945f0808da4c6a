/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_normalize.c - the normalizer of a tokenizer.json.
 *
 * BertNormalizer and Lowercase are several steps. ByteLevel spells bytes as
 * characters, and the vocabulary stays spelled: what comes behind it, stages and
 * model, sees these characters, and so it does in the reference.
 */
#include "base/codec.h"
#include "token/model.h"
#include "token/stages.h"

static struct normalize_step *new_step(struct model *m, enum normalize_kind kind, struct err *e)
{
	struct normalizer *n = &m->normalizer;

	if (n->count == TOKEN_STAGES_MAX) {
		err_set(e, ERR_LIMIT, "has more than %d normalizer steps", TOKEN_STAGES_MAX);
		return NULL;
	}
	n->step[n->count].kind = kind;
	return &n->step[n->count++];
}

static int add_steps(struct model *m, const enum normalize_kind *kind, size_t count,
	struct err *e)
{
	for (size_t i = 0; i < count; i++)
		if (!new_step(m, kind[i], e))
			return -1;
	return 0;
}

static int refuse_field(const struct json_value *v, const char *key, const char *want,
	struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	return err_set(e, ERR_PARSE, "has normalizer \"%.*s\" whose \"%s\" is not %s",
		(int)type.n, type.p, key, want);
}

static int read_bool(const struct json_value *v, const char *key, bool *out, struct err *e)
{
	const struct json_value *field = json_get(v, key);

	if (!field || (field->kind != JSON_TRUE && field->kind != JSON_FALSE))
		return refuse_field(v, key, "true or false", e);
	*out = field->kind == JSON_TRUE;
	return 0;
}

static int read_text(const struct json_value *v, const char *key, struct str *out, struct err *e)
{
	const struct json_value *field = json_get(v, key);

	if (!field || field->kind != JSON_STRING)
		return refuse_field(v, key, "a string", e);
	*out = field->text;
	return 0;
}

static int add_plain(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	(void)v;
	return new_step(m, kind, e) ? 0 : -1;
}

static int add_lowercase(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	const enum normalize_kind kinds[] = { kind, NORMALIZE_LOWER_OTHERS };

	(void)v;
	return add_steps(m, kinds, 2, e);
}

static int add_bert(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	const struct json_value *accents = json_get(v, "strip_accents");
	bool is_clean = false, has_han = false, is_lower = false, is_bare;
	enum normalize_kind kinds[6];
	size_t n = 0;

	if (read_bool(v, "clean_text", &is_clean, e) ||
		read_bool(v, "handle_chinese_chars", &has_han, e) ||
		read_bool(v, "lowercase", &is_lower, e))
		return -1;
	is_bare = is_lower;
	if (accents && accents->kind != JSON_NULL && read_bool(v, "strip_accents", &is_bare, e))
		return -1;
	if (is_clean)
		kinds[n++] = kind;
	if (has_han)
		kinds[n++] = NORMALIZE_SPACE_HAN;
	if (is_bare) {
		kinds[n++] = NORMALIZE_NFD;
		kinds[n++] = NORMALIZE_STRIP_NONSPACING;
	}
	if (is_lower) {
		kinds[n++] = NORMALIZE_LOWER_ASCII;
		kinds[n++] = NORMALIZE_LOWER_OTHERS;
	}
	return add_steps(m, kinds, n, e);
}

static int add_prepend(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	struct normalize_step *step = new_step(m, kind, e);

	return step ? read_text(v, "prepend", &step->content, e) : -1;
}

static int add_strip(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	struct normalize_step *step = new_step(m, kind, e);

	if (!step || read_bool(v, "strip_left", &step->from_left, e))
		return -1;
	return read_bool(v, "strip_right", &step->from_right, e);
}

/* An empty string matches everywhere, as an empty expression does. */
static int add_replace(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	const struct json_value *pattern = json_get(v, "pattern");
	const struct json_value *literal = json_get(pattern, "String");
	const struct json_value *expression = json_get(pattern, "Regex");
	struct normalize_step *step = new_step(m, kind, e);

	if (!step)
		return -1;
	if (!pattern || pattern->kind != JSON_OBJECT || pattern->count != 1 ||
		(literal ? literal : expression ? expression : pattern)->kind != JSON_STRING)
		return refuse_field(v, "pattern", "{\"String\": ...} or {\"Regex\": ...}", e);
	if (read_text(v, "content", &step->content, e))
		return -1;
	step->literal = literal ? literal->text : STR("");
	if (step->literal.n > 0)
		return 0;
	step->kind = NORMALIZE_REPLACE_REGEX;
	step->regex = regex_new(expression ? expression->text : STR(""), e);
	return step->regex ? 0 : err_wrap(e, "normalizer \"Replace\"");
}

static int add_map(struct model *m, const struct json_value *v, enum normalize_kind kind,
	struct err *e)
{
	struct buf bytes = { .limit = TOKEN_FILE_BYTES_MAX };
	struct normalize_step *step = new_step(m, kind, e);
	struct str text;

	if (!step || read_text(v, "precompiled_charsmap", &text, e))
		return -1;
	if (base64_decode(text, &bytes))
		step->map = charsmap_new(buf_str(&bytes), e);
	else
		refuse_field(v, "precompiled_charsmap", "base64", e);
	buf_release(&bytes);
	return step->map ? 0 : -1;
}

static int add_sentencepiece(struct model *m, const struct json_value *v,
	enum normalize_kind kind, struct err *e)
{
	struct normalize_step *step = new_step(m, kind, e);

	if (!step)
		return -1;
	step->spm = spm_normalizer_new(v, e);
	return step->spm ? 0 : -1;
}

static const struct row {
	const char *type;
	int (*add)(struct model *m, const struct json_value *v, enum normalize_kind kind,
		struct err *e);
	enum normalize_kind kind;
} rows[] = {
	{ "NFC", add_plain, NORMALIZE_NFC },
	{ "NFD", add_plain, NORMALIZE_NFD },
	{ "NFKC", add_plain, NORMALIZE_NFKC },
	{ "NFKD", add_plain, NORMALIZE_NFKD },
	{ "Lowercase", add_lowercase, NORMALIZE_LOWER_ASCII },
	{ "StripAccents", add_plain, NORMALIZE_STRIP_MARKS },
	{ "Replace", add_replace, NORMALIZE_REPLACE },
	{ "Prepend", add_prepend, NORMALIZE_PREPEND },
	{ "Strip", add_strip, NORMALIZE_STRIP },
	{ "BertNormalizer", add_bert, NORMALIZE_CLEAN },
	{ "Precompiled", add_map, NORMALIZE_MAP },
	{ "ByteLevel", add_plain, NORMALIZE_SPELL_BYTES },
	{ "Nmt", add_plain, NORMALIZE_NMT },
	{ "SentencePiece", add_sentencepiece, NORMALIZE_SENTENCEPIECE },
};

static int add_normalizer(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *list;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (stage_is(v, rows[i].type))
			return rows[i].add(m, v, rows[i].kind, e);
	if (!stage_is(v, "Sequence"))
		return stage_refuse(v, "normalizer", e);
	if (stage_members(v, "normalizers", "normalizer", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_normalizer(m, list->item + i, e))
			return -1;
	return 0;
}

int stages_normalizer(struct model *m, const struct json_value *root, struct err *e)
{
	return add_normalizer(m, root, e);
}
