/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_tekken.c - tekken.json: tokens with ranks, the expression that cuts words, and
 * special tokens, whose ids come before the ranks.
 *
 * Only as many tokens count as "default_vocab_size" leaves room for. Files of the
 * versions up to v7 may leave their special tokens out; ids without one are called
 * <SPECIAL_n>. Text never becomes a special token: whoever builds a prompt puts in
 * the id. So the ids of "</s>" in a text are those of its characters.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "token/byte_stages.h"
#include "token/ranks.h"
#include "token/reader.h"

static const char *const OLD_SPECIALS[] = {
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
	"[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
	"[TOOL_CONTENT]",
};
#define OLD_COUNT (sizeof OLD_SPECIALS / sizeof *OLD_SPECIALS)
#define OLD_VERSION_MAX 7
#define BOS "<s>"

struct sections {
	struct json_slice vocab, specials;
	struct buf pattern;
	size_t special_count, token_count;
	uint64_t version;
};

/* ---- parts of the file ---- */

static int read_count(struct json_slice config, const char *name, int64_t max, size_t *out,
	struct err *e)
{
	struct json_slice v;
	int64_t n;

	if (!json_member(config, name, &v) || v.kind != JSON_INT || !json_to_i64(v, &n) || n < 0 ||
		n > max)
		return err_set(e, ERR_PARSE, "has a \"config\" whose \"%s\" is no number from 0 to "
			"%lld", name, (long long)max);
	*out = (size_t)n;
	return 0;
}

/* "{1,3}+" is possessive here and a repetition of a repetition in a tokenizer.json. */
static bool has_possessive_count(struct str pattern)
{
	for (size_t i = 2; i < pattern.n; i++)
		if (pattern.p[i] == '+' && pattern.p[i - 1] == '}' &&
			memchr("0123456789,", pattern.p[i - 2], 11))
			return true;
	return false;
}

static int read_config(struct sections *s, struct json_slice config, struct err *e)
{
	struct json_slice pattern, version;
	size_t size;

	if (!json_member(config, "pattern", &pattern) || pattern.kind != JSON_STRING ||
		pattern.raw.n == 0)
		return err_set(e, ERR_PARSE, "has a \"config\" without \"pattern\"");
	json_unescape(&s->pattern, pattern.raw);
	if (has_possessive_count(buf_str(&s->pattern)))
		return err_set(e, ERR_PARSE, "has a pattern with a possessive count like {1,3}+, "
			"which this version does not read");
	if (read_count(config, "default_num_special_tokens", TOKEN_ADDED_MAX, &s->special_count, e) ||
		read_count(config, "default_vocab_size", TOKEN_ID_MAX, &size, e))
		return -1;
	if (size <= s->special_count)
		return err_set(e, ERR_PARSE, "has a default_vocab_size of %zu that leaves nothing "
			"besides its %zu special tokens", size, s->special_count);
	s->token_count = size - s->special_count;
	if (!json_member(config, "version", &version) || version.kind != JSON_STRING ||
		version.raw.n < 2 || version.raw.p[0] != 'v' ||
		!str_to_u64((struct str){ version.raw.p + 1, version.raw.n - 1 }, &s->version))
		return err_set(e, ERR_PARSE, "has a \"config\" without a \"version\" like v3");
	return 0;
}

static int find_sections(struct sections *s, struct str bytes, struct err *e)
{
	struct json_scan scan = { .text = bytes };
	struct json_slice root, config;

	if (json_next(&scan, &root, e))
		return err_wrap(e, "is not JSON");
	if (!json_at_end(&scan))
		return err_set(e, ERR_PARSE, "is not JSON: text after the end of the object");
	if (!json_member(root, "config", &config) || !json_member(root, "vocab", &s->vocab) ||
		s->vocab.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has no \"config\" or no list \"vocab\"; it is no "
			"tekken.json");
	if (!json_member(root, "special_tokens", &s->specials))
		s->specials.kind = JSON_NULL;
	return read_config(s, config, e);
}

/* ---- tokens ---- */

/* The string of an entry, whose rank must be its place in the list. */
static int read_entry(struct json_slice entry, const char *name, size_t place, struct str *text,
	struct err *e)
{
	struct json_iter it = json_iter(entry);
	struct json_slice value;
	struct str key;
	int64_t rank = -1;

	*text = (struct str){ 0 };
	while (entry.kind == JSON_OBJECT && json_each(&it, &key, &value) > 0) {
		if (str_is(key, name) && value.kind == JSON_STRING)
			*text = value.raw;
		else if (str_is(key, "rank") && (value.kind != JSON_INT || !json_to_i64(value, &rank)))
			rank = -1;
	}
	if (!text->p || rank != (int64_t)place)
		return err_set(e, ERR_PARSE, "has an entry without \"%s\" or the rank %zu at place "
			"%zu of a list", name, place, place);
	return 0;
}

static int read_vocab(struct model *m, const struct sections *s, struct err *e)
{
	struct json_iter it = json_iter(s->vocab);
	struct json_slice entry;
	struct str key, base64;
	size_t n = 0;

	vocab_init(&m->vocab, false, s->vocab.raw.n / 8);
	for (; n < s->token_count && json_each(&it, &key, &entry) > 0; n++)
		if (read_entry(entry, "token_bytes", n, &base64, e) ||
			ranks_add(m, base64, (int64_t)(n + s->special_count), "vocab entry", n, e))
			return -1;
	if (n < s->token_count)
		return err_set(e, ERR_PARSE, "has %zu entries in \"vocab\"; its default_vocab_size "
			"is for %zu", n, s->token_count);
	return 0;
}

static int add_special(struct model *m, struct str content, size_t id, struct err *e)
{
	struct added_token token = { .content = content, .id = (uint32_t)id, .is_special = true,
		.is_silent = true };

	if (content.n == 0 || model_added(m, content))
		return err_set(e, ERR_PARSE, "has no name of its own for special token %zu", id);
	return model_add(m, token, e);
}

static int read_specials(struct model *m, const struct sections *s, size_t *count, struct err *e)
{
	struct json_iter it = json_iter(s->specials);
	struct json_slice entry;
	struct buf scratch = { 0 };
	struct str key, name;
	int rc = 0;

	for (*count = 0; rc == 0 && json_each(&it, &key, &entry) > 0; ++*count) {
		if (*count == s->special_count)
			rc = err_set(e, ERR_PARSE, "has more \"special_tokens\" than its "
				"default_num_special_tokens, %zu", s->special_count);
		else if (read_entry(entry, "token_str", *count, &name, e))
			rc = -1;
		else
			rc = add_special(m, reader_json_text(name, &scratch), *count, e);
	}
	buf_release(&scratch);
	return rc;
}

static int add_specials(struct model *m, const struct sections *s, struct err *e)
{
	size_t n = 0;
	struct buf name = { 0 };
	int rc = 0;

	if (s->specials.kind == JSON_ARRAY)
		rc = read_specials(m, s, &n, e);
	else if (s->version > OLD_VERSION_MAX)
		return err_set(e, ERR_PARSE, "has no \"special_tokens\", which files behind version "
			"v%d must list", OLD_VERSION_MAX);
	else
		for (; rc == 0 && n < OLD_COUNT && n < s->special_count; n++)
			rc = add_special(m, str_of(OLD_SPECIALS[n]), n, e);
	for (; rc == 0 && n < s->special_count; n++) {
		buf_reset(&name);
		buf_printf(&name, "<SPECIAL_%zu>", n);
		rc = add_special(m, buf_str(&name), n, e);
	}
	buf_release(&name);
	return rc;
}

/* The id of <s> in either list; the stages must know it before they are loaded. */
static int find_bos(const struct sections *s, uint32_t *id, struct err *e)
{
	struct json_iter it = json_iter(s->specials);
	struct json_slice entry, name;
	struct str key;

	*id = 1;
	if (s->specials.kind != JSON_ARRAY && s->special_count > 1)
		return 0;
	for (*id = 0; s->specials.kind == JSON_ARRAY && json_each(&it, &key, &entry) > 0; ++*id)
		if (json_member(entry, "token_str", &name) && str_is(name.raw, BOS))
			return 0;
	return err_set(e, ERR_PARSE, "has no special token " BOS);
}

/* ---- the file ---- */

static int load(struct model *m, struct sections *s, struct str bytes, struct err *e)
{
	struct byte_stages stages = { .bos = STR(BOS) };

	if (find_sections(s, bytes, e) || find_bos(s, &stages.bos_id, e))
		return -1;
	stages.pattern = buf_str(&s->pattern);
	if (byte_stages_load(m, &stages, e) || read_vocab(m, s, e) ||
		ranks_index(m, (uint32_t)s->special_count, e) || add_specials(m, s, e))
		return -1;
	m->vocab.count = m->vocab.id_limit; /* special tokens are of the model's own */
	return 0;
}

static int read_tekken(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct sections s = { 0 };
	int rc = load(m, &s, bytes, e);

	(void)path;
	buf_release(&s.pattern);
	return rc;
}

/* By the name, or by an entry near the front. */
static bool is_tekken(struct str path, struct str bytes)
{
	struct str name = path;

	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/')
			name = (struct str){ path.p + i + 1, path.n - i - 1 };
	if (str_ends(name, STR(".json")) && memmem(name.p, name.n, "tekken", 6))
		return true;
	return memmem(bytes.p, bytes.n < 4096 ? bytes.n : 4096, "\"token_bytes\"", 13);
}

const struct reader reader_tekken = { "tekken.json", is_tekken, read_tekken };
