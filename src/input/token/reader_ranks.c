/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_ranks.c - models that are a list of byte strings with ranks: tiktoken and tekken.
 *
 * Such a file has no merges: two neighbors are joined if their joint bytes are a token, the one of
 * the lowest rank first, the leftmost of equals; a word that is a token is that token at once.
 */
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/token/load.h"
#include "input/token/reader.h"

/* ---- ranks ---- */

/* Adds a token by its base64; what: the line or entry it is in, for errors. */
static int ranks_add(struct model *m, struct str base64, int64_t id, const char *what,
	size_t number, struct err *e)
{
	struct buf bytes = { 0 };
	int rc;

	if (id >= TOKEN_ID_MAX)
		return err_set(e, ERR_LIMIT, "%s %zu has the id %lld; ids are 0 to %u", what, number,
			(long long)id, TOKEN_ID_MAX - 1);
	if (base64.n / 4 * 3 > TOKEN_RANKED_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s %zu has a token of more than %u bytes", what,
			number, TOKEN_RANKED_BYTES_MAX);
	buf_reserve(&bytes, base64.n);
	if (base64_decode(base64, &bytes) && bytes.len > 0)
		rc = vocab_add(&m->vocab, buf_str(&bytes), id, e);
	else
		rc = err_set(e, ERR_PARSE, "%s %zu has \"%.*s\" where a token's bytes are "
			"expected in base64", what, number,
			(int)(base64.n < 64 ? base64.n : 64), base64.p);
	buf_release(&bytes);
	return rc;
}

static int check_bytes(const struct vocab *v, struct err *e)
{
	for (unsigned i = 0; i < 256; i++)
		if (vocab_find(v, (char[]){ (char)i }, 1) == VOCAB_NONE)
			return err_set(e, ERR_PARSE, "has no token for the byte 0x%02x; every byte "
				"must be one", i);
	return 0;
}

/* After the last token: indexes the vocabulary, whose id first has rank 0, and makes the BPE. */
static int ranks_index(struct model *m, uint32_t first, struct err *e)
{
	struct bpe *b = &m->bpe;
	uint32_t *rank;

	if (vocab_index(&m->vocab, e) || check_bytes(&m->vocab, e))
		return -1;
	m->kind = MODEL_BPE;
	b->vocab = &m->vocab;
	b->ignore_merges = true;
	b->unk = VOCAB_NONE;
	rank = mem_array(m->vocab.id_limit, sizeof *rank);
	for (uint32_t id = first; id < m->vocab.id_limit; id++)
		rank[id] = id - first;
	bpe_index_splits(b, rank);
	free(rank);
	return 0;
}

/* ---- tiktoken ---- */

/*
 * Files of lines "base64 rank", the form of tiktoken.
 *
 * Such a file holds only tokens. How text is cut into words, and which special tokens there are, is
 * in programs; ENCODINGS has it for the files whose program is known. These are recognized by the
 * tokenizer_class next to them, by their name, or by their number of ranks. Special tokens with an
 * id of their own in tokenizer_config.json have their names from there.
 */

/* ---- what the files leave out ---- */

/* count 0: the token text with this id. Else "text<n>|>" for count numbers from number on. */
struct special {
	const char *text;
	uint32_t id, count, number;
};

struct encoding {
	const char *name;
	const char *file;  /* its name; NULL: any */
	const char *class; /* the tokenizer_class next to it; NULL: none is known */
	uint32_t ranks;    /* tokens it has; 0: any number */
	bool is_known_by_ranks;
	bool is_nfc;
	bool has_runs;       /* its program cuts long texts (tokenizer.c) */
	bool has_bos;        /* the first special token precedes a sequence */
	const char *pattern; /* NULL: ByteLevel's own */
	const struct special *special;
	uint32_t reserved;   /* special tokens after the ranks, "<|reserved_token_ID|>" */
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
/* 200018 has two names; decoding gives the first one. */
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
	{ .name = "Llama 3", .file = "tokenizer.model", .ranks = 128000, .is_known_by_ranks = true,
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

/* Classes that do not identify the tokens. */
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
		"ranks, or by the tokenizer_class in a tokenizer_config.json next to it", ranks);
}

static const struct encoding *find_encoding(const char *path, size_t ranks, struct str class,
	struct err *e)
{
	const struct encoding *found = NULL;

	for (size_t i = 0; i < ENCODING_COUNT; i++) {
		const struct encoding *c = ENCODINGS + i;
		bool is_named = c->file && str_is(base_name(path), c->file);

		if (is_general(class) ? is_named || (c->is_known_by_ranks && c->ranks == ranks)
			: c->class && str_is(class, c->class))
			found = c;
	}
	if (!found || (found->is_known_by_ranks && found->ranks != ranks)) {
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

static int add_encoding_special(struct model *m, const struct encoding *c, struct str content,
	uint32_t id, struct err *e)
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
			return err_set(e, ERR_PARSE, "has a tokenizer_config.json next to it whose "
				"added_tokens_decoder has \"%.*s\" where an id with a content is "
				"expected", (int)(list->key[i].n < 64 ? list->key[i].n : 64),
				list->key[i].p);
		if (has_token(m, (uint32_t)id))
			return err_set(e, ERR_PARSE, "has a tokenizer_config.json next to it that "
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
			rc = add_encoding_special(m, c, buf_str(&name), s->id + i, e);
	}
	buf_release(&name);
	return rc;
}

static int add_encoding_specials(struct model *m, const struct encoding *c,
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
		} else if (add_encoding_special(m, c, str_of(s->text), s->id, e)) {
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

static int load_tiktoken(struct model *m, const struct encoding *c, const struct json_value *config,
	struct err *e)
{
	struct byte_stages stages = { .pattern = str_of(c->pattern), .is_nfc = c->is_nfc };

	if (c->has_bos) {
		stages.bos = str_of(c->special->text);
		stages.bos_id = c->special->id;
	}
	if (byte_stages_load(m, &stages, e) || ranks_index(m, 0, e) ||
		add_encoding_specials(m, c, json_get(config, "added_tokens_decoder"), e))
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
		rc = load_tiktoken(m, c, config, e);
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

const struct model_reader reader_tiktoken = { "tiktoken", is_tiktoken, read_tiktoken };

/* ---- tekken ---- */

/*
 * tekken.json: tokens with ranks, the expression that cuts words, and special tokens, whose ids
 * come before the ranks.
 *
 * Only as many tokens count as "default_vocab_size" has room for. Files of the versions up to v7
 * may have no special tokens; ids without one are named <SPECIAL_n>. Text never becomes a special
 * token: programs that build prompts insert the id. So "</s>" in a text becomes the ids of its
 * characters.
 */

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
		return err_set(e, ERR_PARSE, "has a \"config\" whose \"%s\" is not a number from 0 "
			"to %lld", name, (long long)max);
	*out = (size_t)n;
	return 0;
}

/* "{1,3}+" is possessive here but a repetition of a repetition in a tokenizer.json. */
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
		return err_set(e, ERR_PARSE, "has a default_vocab_size of %zu that leaves no room "
			"for tokens other than its %zu special tokens", size, s->special_count);
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
		return err_set(e, ERR_PARSE, "has no \"config\" or no list \"vocab\"; it is not a "
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

static int add_tekken_special(struct model *m, struct str content, size_t id, struct err *e)
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
			rc = add_tekken_special(m, reader_json_text(name, &scratch), *count, e);
	}
	buf_release(&scratch);
	return rc;
}

static int add_tekken_specials(struct model *m, const struct sections *s, struct err *e)
{
	size_t n = 0;
	struct buf name = { 0 };
	int rc = 0;

	if (s->specials.kind == JSON_ARRAY)
		rc = read_specials(m, s, &n, e);
	else if (s->version > OLD_VERSION_MAX)
		return err_set(e, ERR_PARSE, "has no \"special_tokens\", which files after version "
			"v%d must list", OLD_VERSION_MAX);
	else
		for (; rc == 0 && n < OLD_COUNT && n < s->special_count; n++)
			rc = add_tekken_special(m, str_of(OLD_SPECIALS[n]), n, e);
	for (; rc == 0 && n < s->special_count; n++) {
		buf_reset(&name);
		buf_printf(&name, "<SPECIAL_%zu>", n);
		rc = add_tekken_special(m, buf_str(&name), n, e);
	}
	buf_release(&name);
	return rc;
}

/* The id of <s> in either list, needed before the stages are loaded. */
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

static int load_tekken(struct model *m, struct sections *s, struct str bytes, struct err *e)
{
	struct byte_stages stages = { .bos = STR(BOS) };

	if (find_sections(s, bytes, e) || find_bos(s, &stages.bos_id, e))
		return -1;
	stages.pattern = buf_str(&s->pattern);
	if (byte_stages_load(m, &stages, e) || read_vocab(m, s, e) ||
		ranks_index(m, (uint32_t)s->special_count, e) || add_tekken_specials(m, s, e))
		return -1;
	m->vocab.count = m->vocab.id_limit; /* special tokens are of the model's own */
	return 0;
}

static int read_tekken(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct sections s = { 0 };
	int rc = load_tekken(m, &s, bytes, e);

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

const struct model_reader reader_tekken = { "tekken.json", is_tekken, read_tekken };
