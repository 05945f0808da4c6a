/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_pretok.c - the pre-tokenizer of a tokenizer.json.
 *
 * Expressions are kept as text until all stages are known; then those that a scanner
 * stands for are never compiled.
 */
#include "base/str.h"
#include "token/chars.h"
#include "token/model.h"
#include "token/stages.h"

/* What ByteLevel cuts by when its own expression is switched on. */
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
	return err_set(e, ERR_PARSE, "has a %.*s pre_tokenizer with %s \"%.*s\"; one character "
		"was expected", shown(type), type.p, key, shown(*out), out->p);
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
		return err_set(e, ERR_PARSE, "has a FixedLength pre_tokenizer with length %lld; at "
			"least 1 was expected", (long long)length);
	return push(m, (struct pretok_stage){ .kind = PRETOK_LENGTH, .behavior = PRETOK_ISOLATED,
		.length = (size_t)length }, e);
}

/* ---- any of them ---- */

/*
 * Stages behind ByteLevel see its characters. Those that would write others among them
 * have no meaning there.
 */
static int follow_byte_level(struct model *m, const struct json_value *v, struct err *e)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	if (stage_is(v, "ByteLevel") || stage_is(v, "Metaspace"))
		return err_set(e, ERR_PARSE, "has a pre_tokenizer %.*s behind ByteLevel, which this "
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
 * The expressions from stage at on whose spans all become pieces. Removed and inverted
 * does that only where every character is in some match, which holds for each scanner of
 * one stage; so such a stage is offered alone.
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

int stages_pre_tokenizer(struct model *m, const struct json_value *root, struct err *e)
{
	if (add_pre_tokenizer(m, root, e))
		return -1;
	return choose_matchers(&m->pretok, e);
}
