/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - the stages around a model, from the JSON of a tokenizer.json. */
#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/encode/chars.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

static bool stage_is(const struct json_value *v, const char *type)
{
	return str_is(json_text(json_get(v, "type"), STR("")), type);
}

static int stage_refuse(const struct json_value *v, const char *stage, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	if (type.n == 0)
		return err_set(e, ERR_PARSE, "has a %s without a type", stage);
	return err_set(e, ERR_TOKENIZER_UNREAD, "has %s type \"%.*s\", which this version does not read",
		stage, (int)(type.n < 64 ? type.n : 64), type.p);
}

static int stage_members(const struct json_value *v, const char *key, const char *stage,
	const struct json_value **list, struct err *e)
{
	*list = json_get(v, key);
	if (!*list || (*list)->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a %s Sequence without its list \"%s\"", stage,
			key);
	return 0;
}

/* ---- Normalizers ---- */

/*
 * BertNormalizer and Lowercase are several steps. ByteLevel spells bytes as characters, and the
 * vocabulary is kept in that spelling: later stages and the model see these characters, as in the
 * reference.
 */

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

static int add_bert_steps(struct model *m, const struct json_value *v, enum normalize_kind kind,
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
	{ "BertNormalizer", add_bert_steps, NORMALIZE_CLEAN },
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

static int stages_normalizer(struct model *m, const struct json_value *root, struct err *e)
{
	return add_normalizer(m, root, e);
}

/* ---- Pre-tokenizers ---- */

/*
 * Expressions are kept as text until all stages are known; those that a scanner replaces are never
 * compiled.
 */

/* The expression of ByteLevel when its own is switched on. */
static const char BYTE_LEVEL_REGEX[] =
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* ---- the list of stages ---- */

static int push(struct model *m, struct pretok_stage stage, struct err *e)
{
	if (m->pretok.count == TOKEN_STAGES_MAX)
		return err_set(e, ERR_LIMIT, "has more than %d pre_tokenizer stages",
			TOKEN_STAGES_MAX);
	m->pretok.stage[m->pretok.count++] = stage;
	return 0;
}

static int push_chars(struct model *m, bool (*chars)(uint32_t cp), enum pretok_behavior behavior,
	struct err *e)
{
	struct pretok_stage stage = {
		.kind = PRETOK_CHARS, .behavior = behavior, .chars = chars };

	for (uint32_t cp = 0; cp < 128; cp++)
		if (chars(cp))
			stage.ascii[cp / 64] |= 1ull << cp % 64;
	return push(m, stage, e);
}

/* Text that is quoted in an error, cut to a readable length. */
static int shown(struct str s)
{
	return (int)(s.n < 64 ? s.n : 64);
}

static int read_behavior(const struct json_value *v, struct str absent, enum pretok_behavior *out,
	struct err *e)
{
	static const char *const name[] = {
		[PRETOK_REMOVED] = "Removed", [PRETOK_ISOLATED] = "Isolated",
		[PRETOK_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
		[PRETOK_MERGED_WITH_NEXT] = "MergedWithNext", [PRETOK_CONTIGUOUS] = "Contiguous",
	};
	struct str text = json_text(json_get(v, "behavior"), absent);
	struct str type = json_text(json_get(v, "type"), STR(""));

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		if (str_is(text, name[i])) {
			*out = (enum pretok_behavior)i;
			return 0;
		}
	}
	return err_set(e, ERR_PARSE, "has a %.*s pre_tokenizer with behavior \"%.*s\"; known are "
		"Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous",
		shown(type), type.p, shown(text), text.p);
}

/* A member that holds exactly one character. */
static int read_char(const struct json_value *v, const char *key, struct str *out, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	*out = json_text(json_get(v, key), STR(""));
	if (utf8_is_one(*out))
		return 0;
	return err_set(e, ERR_PARSE, "has a %.*s pre_tokenizer with %s \"%.*s\"; expected one "
		"character", shown(type), type.p, key, shown(*out), out->p);
}

/* ---- one function per type ---- */

static int add_split(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *pattern = json_get(v, "pattern");
	struct str regex = json_text(json_get(pattern, "Regex"), STR(""));
	struct str literal = json_text(json_get(pattern, "String"), STR(""));
	struct pretok_stage stage = { .kind = regex.n > 0 ? PRETOK_REGEX : PRETOK_LITERAL };

	if (read_behavior(v, STR(""), &stage.behavior, e))
		return -1;
	stage.is_inverted = json_bool(json_get(v, "invert"), false);
	stage.text = regex.n > 0 ? regex : literal;
	if (stage.text.n == 0)
		return err_set(e, ERR_PARSE, "has a Split pre_tokenizer whose pattern is neither a "
			"Regex nor a String");
	return push(m, stage, e);
}

static int add_byte_level(struct model *m, const struct json_value *v, struct err *e)
{
	if (json_bool(json_get(v, "add_prefix_space"), false) &&
		push(m, (struct pretok_stage){ .kind = PRETOK_PREFIX }, e))
		return -1;
	if (json_bool(json_get(v, "use_regex"), true) && push(m, (struct pretok_stage){
		.kind = PRETOK_REGEX, .behavior = PRETOK_ISOLATED,
		.text = str_of(BYTE_LEVEL_REGEX) }, e))
		return -1;
	m->is_byte_level = true;
	return 0;
}

static int add_metaspace(struct model *m, const struct json_value *v, struct err *e)
{
	static const char *const name[] = { [PRETOK_ALWAYS] = "always", [PRETOK_FIRST] = "first",
		[PRETOK_NEVER] = "never" };
	const struct json_value *scheme = json_get(v, "prepend_scheme");
	struct str text = json_text(scheme, scheme ? STR("") : STR("always"));
	struct pretok_stage stage = { .kind = PRETOK_METASPACE };
	size_t i = 0;

	while (i < sizeof name / sizeof *name && !str_is(text, name[i]))
		i++;
	if (i == sizeof name / sizeof *name)
		return err_set(e, ERR_PARSE, "has a Metaspace pre_tokenizer with prepend_scheme "
			"\"%.*s\"; known are always, first and never", shown(text), text.p);
	stage.prepend = (enum pretok_prepend)i;
	if (!json_bool(json_get(v, "add_prefix_space"), true)) {
		if (scheme && stage.prepend != PRETOK_NEVER)
			return err_set(e, ERR_PARSE, "has a Metaspace pre_tokenizer with "
				"add_prefix_space false and prepend_scheme \"%.*s\", which "
				"contradict each other", shown(text), text.p);
		stage.prepend = PRETOK_NEVER;
	}
	if (read_char(v, "replacement", &stage.text, e) || push(m, stage, e))
		return -1;
	if (!json_bool(json_get(v, "split"), true))
		return 0;
	return push(m, (struct pretok_stage){ .kind = PRETOK_LITERAL,
		.behavior = PRETOK_MERGED_WITH_NEXT, .text = stage.text }, e);
}

static int add_digits(struct model *m, const struct json_value *v, struct err *e)
{
	bool is_each = json_bool(json_get(v, "individual_digits"), false);

	return push_chars(m, chars_is_numeric, is_each ? PRETOK_ISOLATED : PRETOK_CONTIGUOUS, e);
}

static int add_punctuation(struct model *m, const struct json_value *v, struct err *e)
{
	enum pretok_behavior behavior;

	if (read_behavior(v, STR("Isolated"), &behavior, e))
		return -1;
	return push_chars(m, chars_is_punctuation, behavior, e);
}

static int add_whitespace_split(struct model *m, const struct json_value *v, struct err *e)
{
	(void)v;
	return push_chars(m, chars_is_space, PRETOK_REMOVED, e);
}

static int add_bert(struct model *m, const struct json_value *v, struct err *e)
{
	if (add_whitespace_split(m, v, e))
		return -1;
	return push_chars(m, chars_is_punctuation, PRETOK_ISOLATED, e);
}

static int add_whitespace(struct model *m, const struct json_value *v, struct err *e)
{
	(void)v;
	return push(m, (struct pretok_stage){ .kind = PRETOK_WORDS, .behavior = PRETOK_REMOVED,
		.is_inverted = true }, e);
}

static int add_delimiter(struct model *m, const struct json_value *v, struct err *e)
{
	struct pretok_stage stage = { .kind = PRETOK_LITERAL, .behavior = PRETOK_REMOVED };

	return read_char(v, "delimiter", &stage.text, e) ? -1 : push(m, stage, e);
}

static int add_fixed_length(struct model *m, const struct json_value *v, struct err *e)
{
	int64_t length = json_int(json_get(v, "length"), 5);

	if (length < 1)
		return err_set(e, ERR_PARSE, "has a FixedLength pre_tokenizer with length %lld; "
			"expected at least 1", (long long)length);
	return push(m, (struct pretok_stage){ .kind = PRETOK_LENGTH, .behavior = PRETOK_ISOLATED,
		.length = (size_t)length }, e);
}

/* ---- any of them ---- */

/*
 * Stages after ByteLevel see its characters. Those that would write other characters among them
 * have no meaning there.
 */
static int follow_byte_level(struct model *m, const struct json_value *v, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	if (stage_is(v, "ByteLevel") || stage_is(v, "Metaspace"))
		return err_set(e, ERR_PARSE, "has a pre_tokenizer %.*s after ByteLevel, which this "
			"version does not read", shown(type), type.p);
	for (size_t i = 0; i < m->pretok.count; i++)
		if (m->pretok.stage[i].kind == PRETOK_SPELL)
			return 0;
	return push(m, (struct pretok_stage){ .kind = PRETOK_SPELL }, e);
}

static int add_pre_tokenizer(struct model *m, const struct json_value *v, struct err *e)
{
	static const struct {
		const char *type;
		int (*add)(struct model *m, const struct json_value *v, struct err *e);
	} known[] = {
		{ "Split", add_split }, { "ByteLevel", add_byte_level },
		{ "Metaspace", add_metaspace }, { "Digits", add_digits },
		{ "Punctuation", add_punctuation }, { "BertPreTokenizer", add_bert },
		{ "WhitespaceSplit", add_whitespace_split }, { "Whitespace", add_whitespace },
		{ "CharDelimiterSplit", add_delimiter }, { "FixedLength", add_fixed_length },
	};
	const struct json_value *list;

	if (stage_is(v, "Sequence")) {
		if (stage_members(v, "pretokenizers", "pre_tokenizer", &list, e))
			return -1;
		for (size_t i = 0; i < list->count; i++)
			if (add_pre_tokenizer(m, list->item + i, e))
				return -1;
		return 0;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!stage_is(v, known[i].type))
			continue;
		if (m->is_byte_level && follow_byte_level(m, v, e))
			return -1;
		return known[i].add(m, v, e);
	}
	return stage_refuse(v, "pre_tokenizer", e);
}

/* ---- scanners in place of expressions ---- */

/*
 * The expressions from stage `at` on whose spans all become pieces. "Removed" and "inverted" do
 * that only if every character is in some match, which is true for each scanner of one stage; so
 * such a stage is offered alone.
 */
static size_t expressions_at(const struct pretok *p, size_t at, struct str out[TOKEN_STAGES_MAX])
{
	size_t n = 0;

	for (; at < p->count; at++, n++) {
		const struct pretok_stage *s = p->stage + at;

		if (s->kind != PRETOK_REGEX)
			break;
		out[n] = s->text;
		if (s->behavior == PRETOK_REMOVED && s->is_inverted && n == 0)
			return 1;
		if (s->behavior != PRETOK_ISOLATED)
			break;
	}
	return n;
}

static int choose_matchers(struct pretok *p, struct err *e)
{
	for (size_t i = 0; i < p->count; i++) {
		struct pretok_stage *s = p->stage + i;
		struct str text[TOKEN_STAGES_MAX];
		size_t n = expressions_at(p, i, text), used;
		const struct scanner *scanner = scan_find(text, n, &used);

		if (scanner) {
			*s = (struct pretok_stage){ .kind = PRETOK_SCAN, .scanner = scanner };
			p->count -= used - 1;
			memmove(s + 1, s + used, (p->count - i - 1) * sizeof *s);
		} else if (s->kind == PRETOK_REGEX) {
			s->regex = regex_new(s->text, e);
			if (!s->regex)
				return err_wrap(e, "pre_tokenizer Split");
		}
	}
	return 0;
}

static int stages_pre_tokenizer(struct model *m, const struct json_value *root, struct err *e)
{
	if (add_pre_tokenizer(m, root, e))
		return -1;
	return choose_matchers(&m->pretok, e);
}

/* ---- Post-processors ---- */

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

/* A processor adds ids around the result of the processors before it. */
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

/* part[0]: the ids before the sequence, part[1]: those after it. */
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

/* BertProcessing, RobertaProcessing: one token before, "cls", and one after, "sep". */
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

/* *is_split: a template came before, whose parts the reference passes on as if they were pairs. */
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
			return err_set(e, ERR_PARSE, "has a %s after a TemplateProcessing, "
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

static int stages_post_processor(struct model *m, const struct json_value *root, struct err *e)
{
	bool is_split = false;

	return add_post_processor(m, root, &is_split, e);
}

/* ---- Decoders ---- */

static struct str step_type(const struct json_value *v)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	return (struct str){ type.p, type.n < 64 ? type.n : 64 };
}

static int member_missing(const struct json_value *v, const char *want, struct err *e)
{
	struct str type = step_type(v);

	return err_set(e, ERR_PARSE, "has a %.*s decoder without %s", (int)type.n, type.p, want);
}

static int read_replace(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	const struct json_value *pattern = json_get(v, "pattern"), *content = json_get(v, "content");
	struct str regex = json_text(json_get(pattern, "Regex"), STR(""));

	step->text = json_text(json_get(pattern, "String"), STR(""));
	step->content = json_text(content, STR(""));
	if (!content || content->kind != JSON_STRING)
		return member_missing(v, "its \"content\"", e);
	if (regex.n == 0 && step->text.n == 0)
		return member_missing(v, "a pattern that is a String or a Regex and not empty", e);
	step->kind = regex.n ? DECODER_REGEX : DECODER_REPLACE;
	if (regex.n == 0)
		return 0;
	step->regex = regex_new(regex, e);
	return step->regex ? 0 : err_wrap(e, "decoder Replace");
}

static int read_strip(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	int64_t start = json_int(json_get(v, "start"), -1), stop = json_int(json_get(v, "stop"), -1);

	step->kind = DECODER_STRIP;
	step->text = json_text(json_get(v, "content"), STR(""));
	step->start = (size_t)start;
	step->stop = (size_t)stop;
	if (!utf8_is_one(step->text))
		return member_missing(v, "a \"content\" of one character", e);
	return start >= 0 && stop >= 0 ? 0
		: member_missing(v, "counts of characters in \"start\" and \"stop\"", e);
}

static int read_metaspace(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	struct str scheme = json_text(json_get(v, "prepend_scheme"), STR("always"));
	bool is_never = str_is(scheme, "never");

	step->kind = DECODER_METASPACE;
	step->is_first_kept = is_never;
	step->text = json_text(json_get(v, "replacement"), STR(""));
	if (!utf8_is_one(step->text))
		return member_missing(v, "a \"replacement\" of one character", e);
	if (!is_never && !str_is(scheme, "always") && !str_is(scheme, "first"))
		return member_missing(v, "a prepend_scheme that is always, first or never", e);
	if (!is_never && !json_bool(json_get(v, "add_prefix_space"), true))
		return member_missing(v, "the prepend_scheme never that goes with its "
			"add_prefix_space", e);
	return 0;
}

static int read_word_piece(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	const struct json_value *prefix = json_get(v, "prefix"), *cleanup = json_get(v, "cleanup");

	step->kind = DECODER_WORDPIECE;
	step->text = json_text(prefix, STR(""));
	step->is_cleaned = json_bool(cleanup, false);
	return prefix && prefix->kind == JSON_STRING && cleanup ? 0
		: member_missing(v, "\"prefix\" and \"cleanup\"", e);
}

static int read_suffix(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	step->kind = DECODER_SUFFIX;
	step->text = json_text(json_get(v, "suffix"), STR(""));
	return step->text.n ? 0 : member_missing(v, "a \"suffix\" that is not empty", e);
}

static const struct {
	const char *type;
	int (*read)(struct decoder_step *step, const struct json_value *v, struct err *e);
} STEPS[] = {
	{ "Replace", read_replace }, { "Strip", read_strip }, { "Metaspace", read_metaspace },
	{ "WordPiece", read_word_piece }, { "BPEDecoder", read_suffix },
};

static const struct {
	const char *type;
	enum decoder_kind kind;
} JOINS[] = {
	{ "Fuse", DECODER_PLAIN }, { "ByteFallback", DECODER_BYTE_RUNS },
	{ "ByteLevel", DECODER_BYTE_LEVEL },
};

/* What is known of the steps so far. */
struct step_order {
	const char *join;  /* the step that looked at neighbours; NULL: none yet */
	bool is_whole;     /* one text is left */
};

static int refuse_order(const struct json_value *v, const struct step_order *o, struct err *e)
{
	struct str type = step_type(v);

	return err_set(e, ERR_PARSE, "has a decoder with %.*s after %s, which this version does "
		"not read", (int)type.n, type.p, o->join);
}

static int add_join(struct decoder *d, struct step_order *o, size_t index,
		    const struct json_value *v, struct err *e)
{
	enum decoder_kind kind = JOINS[index].kind;

	if (o->join && kind != DECODER_PLAIN)
		return refuse_order(v, o, e);
	if (!o->join) {
		d->kind = kind;
		d->token_steps = d->steps;
		o->join = JOINS[index].type;
	}
	o->is_whole |= kind != DECODER_BYTE_RUNS;
	return 0;
}

static int add_decoder(struct decoder *d, struct step_order *o, const struct json_value *v,
	struct err *e)
{
	const struct json_value *list;

	if (stage_is(v, "Sequence")) {
		if (stage_members(v, "decoders", "decoder", &list, e))
			return -1;
		for (size_t i = 0; i < list->count; i++)
			if (add_decoder(d, o, list->item + i, e))
				return -1;
		return 0;
	}
	for (size_t i = 0; i < sizeof JOINS / sizeof *JOINS; i++)
		if (stage_is(v, JOINS[i].type))
			return add_join(d, o, i, v, e);
	for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
		if (!stage_is(v, STEPS[i].type))
			continue;
		if (o->join && !o->is_whole)
			return refuse_order(v, o, e);
		if (d->steps == TOKEN_STAGES_MAX)
			return err_set(e, ERR_LIMIT, "has more than %d decoder steps",
				TOKEN_STAGES_MAX);
		return STEPS[i].read(&d->step[d->steps++], v, e);
	}
	return stage_refuse(v, "decoder", e);
}

static int stages_decoder(struct model *m, const struct json_value *root, struct err *e)
{
	struct decoder *d = &m->decoder;
	struct step_order order = { 0 };

	d->kind = DECODER_PLAIN;
	if (add_decoder(d, &order, root, e))
		return -1;
	if (!order.join)
		d->token_steps = d->steps;
	return 0;
}

/* ---- the four in order ---- */

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
