/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_tiktoken.c - files of lines "base64 rank", as tiktoken has them.
 *
 * Such a file holds tokens and nothing else. How text is cut into words, and which
 * special tokens there are, stands in programs; ENCODINGS has it for the files
 * whose program is known. They are told by the tokenizer_class beside them, by
 * their name, or by their number of ranks. Special tokens with an id of their own
 * in tokenizer_config.json are called as they are there.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "token/byte_stages.h"
#include "token/ranks.h"
#include "token/reader.h"

/* ---- what the files leave out ---- */

/* count 0: the token text with this id. Else "text<n>|>" for count numbers from number on. */
struct special {
	const char *text;
	uint32_t id, count, number;
};

struct encoding {
	const char *name;
	const char *file;  /* its name; NULL: any */
	const char *class; /* the tokenizer_class beside it; NULL: none is known */
	uint32_t ranks;    /* tokens it has; 0: any number */
	bool is_told_by_ranks;
	bool is_nfc;
	bool has_runs;       /* its program cuts long texts (token/runs.h) */
	bool has_bos;        /* the first special token stands before a sequence */
	const char *pattern; /* NULL: ByteLevel's own */
	const struct special *special;
	uint32_t reserved;   /* special tokens behind the ranks, "<|reserved_token_ID|>" */
};

#define SHORT_FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BY_WORDS(digits) SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define BY_CASE(but, tail) "[^\\r\\n\\p{L}\\p{N}]?[" UPPER but "]*[" LOWER but "]+" SHORT_FORMS \
	"?|[^\\r\\n\\p{L}\\p{N}]?[" UPPER but "]+[" LOWER but "]*" SHORT_FORMS \
	"?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+" tail "|" SPACES

static const struct special R50K[] = { { .text = "<|endoftext|>", .id = 50256 }, { 0 } };
static const struct special P50K_EDIT[] = {
	{ .text = "<|endoftext|>", .id = 50256 }, { .text = "<|fim_prefix|>", .id = 50281 },
	{ .text = "<|fim_middle|>", .id = 50282 }, { .text = "<|fim_suffix|>", .id = 50283 }, { 0 },
};
static const struct special CL100K[] = {
	{ .text = "<|endoftext|>", .id = 100257 }, { .text = "<|fim_prefix|>", .id = 100258 },
	{ .text = "<|fim_middle|>", .id = 100259 }, { .text = "<|fim_suffix|>", .id = 100260 },
	{ .text = "<|endofprompt|>", .id = 100276 }, { 0 },
};
static const struct special O200K[] = {
	{ .text = "<|endoftext|>", .id = 199999 }, { .text = "<|endofprompt|>", .id = 200018 }, { 0 },
};
/* 200018 has two names; its text is the first one. */
static const struct special HARMONY[] = {
	{ .text = "<|startoftext|>", .id = 199998 }, { .text = "<|endoftext|>", .id = 199999 },
	{ "<|reserved_", 200000, 2, 200000 }, { .text = "<|return|>", .id = 200002 },
	{ .text = "<|constrain|>", .id = 200003 }, { "<|reserved_", 200004, 1, 200004 },
	{ .text = "<|channel|>", .id = 200005 }, { .text = "<|start|>", .id = 200006 },
	{ .text = "<|end|>", .id = 200007 }, { .text = "<|message|>", .id = 200008 },
	{ "<|reserved_", 200009, 3, 200009 }, { .text = "<|call|>", .id = 200012 },
	{ "<|reserved_", 200013, 1075, 200013 }, { .text = "<|endofprompt|>", .id = 200018 }, { 0 },
};
static const struct special LLAMA3[] = {
	{ .text = "<|begin_of_text|>", .id = 128000 }, { .text = "<|end_of_text|>", .id = 128001 },
	{ "<|reserved_special_token_", 128002, 4, 0 },
	{ .text = "<|start_header_id|>", .id = 128006 },
	{ .text = "<|end_header_id|>", .id = 128007 },
	{ "<|reserved_special_token_", 128008, 1, 4 }, { .text = "<|eot_id|>", .id = 128009 },
	{ "<|reserved_special_token_", 128010, 246, 5 }, { 0 },
};
static const struct special QWEN[] = {
	{ .text = "<|endoftext|>", .id = 151643 }, { .text = "<|im_start|>", .id = 151644 },
	{ .text = "<|im_end|>", .id = 151645 }, { "<|extra_", 151646, 205, 0 }, { 0 },
};
static const struct special NONE[] = { { 0 } };

static const struct encoding ENCODINGS[] = {
	{ .name = "r50k_base", .file = "r50k_base.tiktoken", .ranks = 50256, .special = R50K },
	{ .name = "p50k_base", .file = "p50k_base.tiktoken", .ranks = 50280, .special = R50K },
	{ .name = "p50k_edit", .file = "p50k_edit.tiktoken", .ranks = 50280, .special = P50K_EDIT },
	{ .name = "cl100k_base", .file = "cl100k_base.tiktoken", .ranks = 100256,
		.special = CL100K, .pattern = BY_WORDS("\\p{N}{1,3}") },
	{ .name = "o200k_base", .file = "o200k_base.tiktoken", .ranks = 199998,
		.special = O200K, .pattern = BY_CASE("", "[\\r\\n/]*") },
	{ .name = "o200k_harmony", .file = "o200k_harmony.tiktoken", .ranks = 199998,
		.special = HARMONY, .pattern = BY_CASE("", "[\\r\\n/]*") },
	{ .name = "Llama 3", .file = "tokenizer.model", .ranks = 128000, .is_told_by_ranks = true,
		.has_runs = true, .has_bos = true, .special = LLAMA3, .pattern = BY_WORDS("\\p{N}{1,3}") },
	{ .name = "Qwen", .file = "qwen.tiktoken", .class = "QWenTokenizer", .ranks = 151643,
		.is_nfc = true, .special = QWEN, .pattern = BY_WORDS("\\p{N}") },
	{ .name = "Kimi", .class = "TikTokenTokenizer", .special = NONE, .reserved = 258,
		.has_runs = true,
		.pattern = "[\\p{Han}]+|" BY_CASE("&&[^\\p{Han}]", "[\\r\\n]*") },
};
#define ENCODING_COUNT (sizeof ENCODINGS / sizeof *ENCODINGS)

/* ---- which one ---- */

static struct str base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return str_of(slash ? slash + 1 : path);
}

/* Classes that say nothing of the tokens. */
static bool is_general(struct str class)
{
	return class.n == 0 || str_is(class, "PreTrainedTokenizerFast") ||
		str_is(class, "PreTrainedTokenizer");
}

static int refuse(size_t ranks, struct str class, struct err *e)
{
	if (!is_general(class))
		return err_set(e, ERR_PARSE, "is a tiktoken file whose tokenizer_class \"%.*s\" is "
			"not known here, so neither are its pattern and special tokens; "
			"TikTokenTokenizer and QWenTokenizer are",
			(int)(class.n < 64 ? class.n : 64), class.p);
	return err_set(e, ERR_PARSE, "is a tiktoken file of %zu ranks that does not say its pattern and "
		"special tokens: they are known by a name such as cl100k_base.tiktoken, "
		"o200k_base.tiktoken and qwen.tiktoken, as tokenizer.model with Llama 3's 128000 "
		"ranks, or by the tokenizer_class in a tokenizer_config.json beside it", ranks);
}

static const struct encoding *find_encoding(const char *path, size_t ranks, struct str class,
	struct err *e)
{
	const struct encoding *found = NULL;

	for (size_t i = 0; i < ENCODING_COUNT; i++) {
		const struct encoding *c = ENCODINGS + i;
		bool is_named = c->file && str_is(base_name(path), c->file);

		if (is_general(class) ? is_named || (c->is_told_by_ranks && c->ranks == ranks)
			: c->class && str_is(class, c->class))
			found = c;
	}
	if (!found || (found->is_told_by_ranks && found->ranks != ranks)) {
		refuse(ranks, class, e);
		return NULL;
	}
	if (found->ranks && found->ranks != ranks) {
		err_set(e, ERR_PARSE, "has %zu ranks, but %s has %u; the file is damaged or another",
			ranks, found->name, found->ranks);
		return NULL;
	}
	return found;
}

/* ---- special tokens ---- */

static int add_special(struct model *m, const struct encoding *c, struct str content, uint32_t id,
	struct err *e)
{
	/* Text is normalized as a whole before its special tokens are looked for. */
	struct added_token token = { .content = content, .id = id, .is_special = true,
		.is_normalized = c->is_nfc };

	if (model_added(m, content))
		return 0;
	return model_add(m, token, e);
}

static bool has_token(const struct model *m, uint32_t id)
{
	return id < m->vocab.id_limit && m->vocab.entry[id].is_known;
}

/* Names out of tokenizer_config.json, by id. */
static int add_configured(struct model *m, const struct encoding *c,
	const struct json_value *list, struct err *e)
{
	for (size_t i = 0; list && list->kind == JSON_OBJECT && i < list->count; i++) {
		struct str content = json_text(json_get(list->item + i, "content"), STR(""));
		struct added_token token = { .content = content, .is_normalized = c->is_nfc,
			.is_special = json_bool(json_get(list->item + i, "special"), false) };
		int64_t id;

		if (!str_to_i64(list->key[i], &id) || id < 0 || id >= TOKEN_ID_MAX ||
			content.n == 0)
			return err_set(e, ERR_PARSE, "has a tokenizer_config.json beside it whose "
				"added_tokens_decoder has \"%.*s\" where an id with a content is "
				"expected", (int)(list->key[i].n < 64 ? list->key[i].n : 64),
				list->key[i].p);
		if (has_token(m, (uint32_t)id))
			return err_set(e, ERR_PARSE, "has a tokenizer_config.json beside it that "
				"gives \"%.*s\" the id %lld of another token",
				(int)(content.n < 64 ? content.n : 64), content.p, (long long)id);
		token.id = (uint32_t)id;
		if (model_add(m, token, e))
			return -1;
	}
	return 0;
}

static int add_numbered(struct model *m, const struct encoding *c, const struct special *s,
	struct err *e)
{
	struct buf name = { 0 };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->count; i++) {
		buf_reset(&name);
		buf_printf(&name, "%s%u|>", s->text, s->number + i);
		if (!has_token(m, s->id + i))
			rc = add_special(m, c, buf_str(&name), s->id + i, e);
	}
	buf_release(&name);
	return rc;
}

static int add_specials(struct model *m, const struct encoding *c,
	const struct json_value *configured, struct err *e)
{
	uint32_t limit = (uint32_t)m->vocab.id_limit;
	struct special reserved = { "<|reserved_token_", limit, c->reserved, limit };

	if (add_configured(m, c, configured, e))
		return -1;
	for (const struct special *s = c->special; s->text; s++) {
		if (s->count > 0) {
			if (add_numbered(m, c, s, e))
				return -1;
		} else if (add_special(m, c, str_of(s->text), s->id, e)) {
			return -1;
		}
	}
	return add_numbered(m, c, &reserved, e);
}

/* ---- the file ---- */

static int read_lines(struct model *m, struct str bytes, struct err *e)
{
	int64_t rank_max = (int64_t)bytes.n; /* more lines than bytes there are not */

	vocab_init(&m->vocab, false, bytes.n);
	for (size_t number = 1; bytes.n > 0; number++) {
		struct str rank = str_trim(str_cut(&bytes, '\n')), token;
		int64_t id;

		if (rank.n == 0)
			continue;
		token = str_cut(&rank, ' ');
		if (!str_to_i64(rank, &id) || id < 0 || id > rank_max)
			return err_set(e, ERR_PARSE, "line %zu is not a token in base64, a blank and "
				"a rank that a file of its size can have", number);
		if (ranks_add(m, token, id, "line", number, e))
			return -1;
	}
	return m->vocab.count ? 0 : err_set(e, ERR_PARSE, "holds no tokens");
}

static int load(struct model *m, const struct encoding *c, const struct json_value *config,
	struct err *e)
{
	struct byte_stages stages = { .pattern = str_of(c->pattern), .is_nfc = c->is_nfc };

	if (c->has_bos) {
		stages.bos = str_of(c->special->text);
		stages.bos_id = c->special->id;
	}
	if (byte_stages_load(m, &stages, e) || ranks_index(m, 0, e) ||
		add_specials(m, c, json_get(config, "added_tokens_decoder"), e))
		return -1;
	m->has_runs = c->has_runs;
	m->vocab.count = m->vocab.id_limit; /* the encoding's own count has them all */
	return 0;
}

static int read_tiktoken(struct model *m, const char *path, struct str bytes, struct err *e)
{
	const struct encoding *c;
	struct arena arena = { 0 };
	struct json_value *config = NULL;
	int rc = -1;

	if (read_lines(m, bytes, e) ||
		model_read_beside(&arena, path, "tokenizer_config.json", NULL, &config, e))
		goto done;
	c = find_encoding(path, m->vocab.count,
		json_text(json_get(config, "tokenizer_class"), STR("")), e);
	if (c)
		rc = load(m, c, config, e);
done:
	arena_release(&arena);
	return rc;
}

/* By the name, or by a first line of base64, a blank and digits. */
static bool is_tiktoken(struct str path, struct str bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
	struct str line = str_trim(str_cut(&bytes, '\n')), token = str_cut(&line, ' ');
	uint64_t rank;

	if (str_ends(path, STR(".tiktoken")) || str_ends(path, STR("tiktoken.model")))
		return true;
	for (size_t i = 0; i < token.n; i++)
		if (!memchr(digits, token.p[i], sizeof digits - 1))
			return false;
	return token.n >= 4 && token.n % 4 == 0 && str_to_u64(line, &rank);
}

const struct reader reader_tiktoken = { "tiktoken", is_tiktoken, read_tiktoken };
