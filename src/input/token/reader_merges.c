/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_merges.c - a vocab.json with its merges.txt, and the stages that such files do not have.
 */
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "input/token/load.h"
#include "input/token/reader.h"

/* ---- stages of a byte-level model as JSON ---- */

static void write_pre_tokenizer(struct buf *out, const struct byte_stages *s)
{
	if (s->pattern.n > 0) {
		buf_add_text(out, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
			"\"pattern\":{\"Regex\":");
		json_quote(out, s->pattern, true);
		buf_add_text(out, "},\"behavior\":\"Isolated\",\"invert\":false},");
	}
	buf_printf(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
		"\"use_regex\":%s}", s->has_prefix_space ? "true" : "false",
		s->pattern.n ? "false" : "true");
	if (s->pattern.n > 0)
		buf_add_text(out, "]}");
}

/* One special token of a template: in its row, or with its id. */
static void write_special(struct json_writer *w, struct str name, uint32_t id, bool is_in_row)
{
	if (name.n == 0)
		return;
	if (is_in_row) {
		json_begin_object(w);
		json_key(w, "SpecialToken");
	} else {
		json_key_str(w, name);
	}
	json_begin_object(w);
	json_member_str(w, "id", name);
	json_key(w, is_in_row ? "type_id" : "ids");
	if (is_in_row) {
		json_put_int(w, 0);
	} else {
		json_begin_array(w);
		json_put_int(w, id);
		json_end_array(w);
	}
	json_end_object(w);
	if (is_in_row)
		json_end_object(w);
}

static void write_post_processor(struct buf *out, const struct byte_stages *s)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_text(&w, "type", "TemplateProcessing");
	json_member_array(&w, "single");
	write_special(&w, s->bos, s->bos_id, true);
	json_put_raw(&w, STR("{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"));
	write_special(&w, s->eos, s->eos_id, true);
	json_end_array(&w);
	json_member_object(&w, "special_tokens");
	write_special(&w, s->bos, s->bos_id, false);
	if (!str_eq(s->bos, s->eos))
		write_special(&w, s->eos, s->eos_id, false);
	json_end_object(&w);
	json_end_object(&w);
}

int byte_stages_load(struct model *m, const struct byte_stages *s, struct err *e)
{
	struct buf pre = { 0 }, post = { 0 };
	struct stage_texts text = { .decoder = STR("{\"type\":\"ByteLevel\"}") };
	int rc;

	write_pre_tokenizer(&pre, s);
	if (s->bos.n > 0 || s->eos.n > 0)
		write_post_processor(&post, s);
	if (s->is_nfc)
		text.normalizer = STR("{\"type\":\"NFC\"}");
	text.pre_tokenizer = buf_str(&pre);
	text.post_processor = buf_str(&post);
	rc = stages_load(m, &text, e);
	buf_release(&pre);
	buf_release(&post);
	return rc;
}

/*
 * vocab.json with merges.txt next to it, the form of GPT-2.
 *
 * The two hold the tokens and their merges. How text is cut and what surrounds it follows from the
 * tokenizer_class in tokenizer_config.json (none: GPT-2's); the special tokens are the class's,
 * unless that file or special_tokens_map.json names others, and those of added_tokens.json.
 */

enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, SPECIALS };
static const char *const SPECIAL_NAMES[SPECIALS] = { "bos_token", "eos_token", "unk_token",
	"sep_token", "pad_token", "cls_token", "mask_token" };

struct class {
	const char *name; /* "Fast" may follow */
	const char *pattern;
	bool is_nfc;
	bool is_wrapped; /* cls and sep around a sequence; else bos, if add_bos_token says so */
	const char *special[SPECIALS];
};

#define QWEN "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" \
	" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define END "<|endoftext|>"
#define GPT2_SPECIALS { [BOS] = END, [EOS] = END, [UNK] = END }
#define ROBERTA_SPECIALS { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>" }

static const struct class CLASSES[] = {
	{ .name = "GPT2Tokenizer", .special = GPT2_SPECIALS },
	{ .name = "CodeGenTokenizer", .special = GPT2_SPECIALS },
	{ .name = "RobertaTokenizer", .is_wrapped = true, .special = ROBERTA_SPECIALS },
	{ .name = "BartTokenizer", .is_wrapped = true, .special = ROBERTA_SPECIALS },
	{ .name = "LongformerTokenizer", .is_wrapped = true, .special = ROBERTA_SPECIALS },
	{ .name = "LEDTokenizer", .is_wrapped = true, .special = ROBERTA_SPECIALS },
	{ .name = "Qwen2Tokenizer", .pattern = QWEN, .is_nfc = true,
		.special = { [EOS] = END, [UNK] = END, [PAD] = END } },
};

static const struct class *find_class(struct str name, struct err *e)
{
	if (name.n == 0)
		return CLASSES;
	for (size_t i = 0; i < sizeof CLASSES / sizeof *CLASSES; i++) {
		struct str start = str_of(CLASSES[i].name);

		if (str_starts(name, start) && (name.n == start.n ||
			str_is((struct str){ name.p + start.n, name.n - start.n }, "Fast")))
			return CLASSES + i;
	}
	err_set(e, ERR_PARSE, "with its merges.txt is for the tokenizer_class \"%.*s\", whose stages are "
		"not known here; a tokenizer.json would hold them",
		(int)(name.n < 64 ? name.n : 64), name.p);
	return NULL;
}

struct merges_source {
	const struct class *class;
	struct json_slice vocab;
	struct buf merges; /* as a JSON list */
	struct json_value *config, *map, *added;
};

/* ---- special tokens ---- */

/* The member of tokenizer_config.json or special_tokens_map.json; NULL: neither has it. */
static const struct json_value *special_member(const struct merges_source *s, const char *name)
{
	const struct json_value *v = json_get(s->config, name);

	return v ? v : json_get(s->map, name);
}

/* A special token's content; empty where there is none. */
static struct str special_text(const struct merges_source *s, size_t which)
{
	const struct json_value *v = special_member(s, SPECIAL_NAMES[which]);

	if (!v)
		return s->class->special[which] ? str_of(s->class->special[which]) : STR("");
	return json_text(v->kind == JSON_OBJECT ? json_get(v, "content") : v, STR(""));
}

static int add_token(struct model *m, struct added_token token, const struct json_value *flags,
	struct err *e)
{
	token.is_single_word = json_bool(json_get(flags, "single_word"), token.is_single_word);
	token.is_lstrip = json_bool(json_get(flags, "lstrip"), token.is_lstrip);
	token.is_rstrip = json_bool(json_get(flags, "rstrip"), token.is_rstrip);
	token.is_normalized = json_bool(json_get(flags, "normalized"), token.is_normalized);
	token.is_special = json_bool(json_get(flags, "special"), token.is_special);
	return model_add(m, token, e);
}

static int refuse_id(const char *file, struct str content, struct err *e)
{
	return err_set(e, ERR_PARSE, "has a %s next to it whose token \"%.*s\" has no free id",
		file, (int)(content.n < 64 ? content.n : 64), content.p);
}

/* An id that no other token has. */
static bool is_free(const struct model *m, struct str content, int64_t id)
{
	if (id < 0 || id >= TOKEN_ID_MAX || content.n == 0)
		return false;
	return (size_t)id >= m->vocab.id_limit || !m->vocab.entry[id].is_known ||
		model_find(m, content) == (uint32_t)id;
}

/* {"<id>": {"content": ...}} of tokenizer_config.json. */
static int add_decoder_list(struct model *m, const struct json_value *list, struct err *e)
{
	for (size_t i = 0; list && list->kind == JSON_OBJECT && i < list->count; i++) {
		struct str content = json_text(json_get(list->item + i, "content"), STR(""));
		int64_t id = -1;

		if (!str_to_i64(list->key[i], &id) || !is_free(m, content, id))
			return refuse_id("tokenizer_config.json", content, e);
		if (add_token(m, (struct added_token){ .content = content, .id = (uint32_t)id,
			.is_normalized = true }, list->item + i, e))
			return -1;
	}
	return 0;
}

/* {"content": id} of added_tokens.json. */
static int add_encoder_list(struct model *m, const struct merges_source *s, struct err *e)
{
	const struct json_value *list = s->added;

	for (size_t i = 0; list && i < list->count; i++) {
		struct added_token token = { .content = list->key[i] };
		int64_t id = json_int(list->item + i, -1);

		if (model_added(m, token.content))
			continue;
		if (!is_free(m, token.content, id))
			return refuse_id("added_tokens.json", token.content, e);
		token.id = (uint32_t)id;
		for (size_t k = 0; k < SPECIALS; k++)
			token.is_special |= str_eq(special_text(s, k), token.content);
		token.is_normalized = !token.is_special;
		if (model_add(m, token, e))
			return -1;
	}
	return 0;
}

/* A special token that is in no list: from the vocabulary, or added after all others. */
static int add_special(struct model *m, struct str content, const struct json_value *flags,
	bool is_lstrip, struct err *e)
{
	struct added_token token = { .content = content, .is_special = true,
		.is_lstrip = is_lstrip };
	const struct added_token *old = model_added(m, content);

	if (content.n == 0 || (old && old->is_special))
		return 0;
	token.id = model_find(m, content);
	if (token.id == VOCAB_NONE)
		token.id = (uint32_t)m->vocab.id_limit;
	return add_token(m, token, flags, e);
}

static int add_specials(struct model *m, const struct merges_source *s, struct err *e)
{
	const struct json_value *more = special_member(s, "additional_special_tokens");

	if (add_decoder_list(m, json_get(s->config, "added_tokens_decoder"), e) ||
		add_encoder_list(m, s, e))
		return -1;
	for (size_t i = 0; i < SPECIALS; i++) {
		const struct json_value *flags = special_member(s, SPECIAL_NAMES[i]);

		if (add_special(m, special_text(s, i), flags,
			i == MASK && (!flags || flags->kind == JSON_STRING), e))
			return -1;
	}
	for (size_t i = 0; more && more->kind == JSON_ARRAY && i < more->count; i++) {
		const struct json_value *v = more->item + i;

		if (add_special(m, json_text(v->kind == JSON_OBJECT ? json_get(v, "content") : v,
			STR("")), v, false, e))
			return -1;
	}
	return 0;
}

/* ---- stages ---- */

static int find_id(const struct merges_source *s, struct str content, uint32_t *id, struct err *e)
{
	struct json_value *list = json_get(s->config, "added_tokens_decoder");
	struct json_slice v;
	int64_t found = -1;

	if (json_member(s->vocab, content.p, &v))
		json_to_i64(v, &found);
	if (json_get(s->added, content.p))
		found = json_int(json_get(s->added, content.p), -1);
	for (size_t i = 0; list && list->kind == JSON_OBJECT && i < list->count; i++)
		if (str_eq(json_text(json_get(list->item + i, "content"), STR("")), content))
			str_to_i64(list->key[i], &found);
	if (found < 0 || found >= TOKEN_ID_MAX)
		return err_set(e, ERR_PARSE, "has no token \"%.*s\", which %s puts around a text",
			(int)(content.n < 64 ? content.n : 64), content.p, s->class->name);
	*id = (uint32_t)found;
	return 0;
}

static int load_stages(struct model *m, const struct merges_source *s, struct err *e)
{
	const struct class *c = s->class;
	struct byte_stages stages = { .pattern = str_of(c->pattern), .is_nfc = c->is_nfc,
		.has_prefix_space = json_bool(json_get(s->config, "add_prefix_space"), false) };

	if (c->is_wrapped) {
		stages.bos = special_text(s, CLS);
		stages.eos = special_text(s, SEP);
	} else if (json_bool(json_get(s->config, "add_bos_token"), false)) {
		stages.bos = special_text(s, BOS);
	}
	if ((stages.bos.n && find_id(s, stages.bos, &stages.bos_id, e)) ||
		(stages.eos.n && find_id(s, stages.eos, &stages.eos_id, e)))
		return -1;
	return byte_stages_load(m, &stages, e);
}

/* ---- the files ---- */

/* Lines as a list of strings, without the version line. */
static int read_merges(const char *path, struct buf *out, struct err *e)
{
	char *file = file_beside(path, "merges.txt");
	struct buf text = { 0 };
	struct str rest;
	int rc;

	out->limit = 4ull * TOKEN_FILE_BYTES_MAX;
	rc = file_read(file, TOKEN_FILE_BYTES_MAX, &text, e);
	if (rc)
		err_wrap(e, "needs merges.txt next to it");
	buf_add_char(out, '[');
	for (rest = buf_str(&text); rc == 0 && rest.n > 0;) {
		struct str line = str_cut(&rest, '\n');

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n == 0 || str_starts(line, STR("#version")))
			continue;
		if (out->len > 1)
			buf_add_char(out, ',');
		json_quote(out, line, true);
	}
	buf_add_char(out, ']');
	free(file);
	buf_release(&text);
	return rc;
}

static int load(struct model *m, struct merges_source *s, struct err *e)
{
	struct json_scan scan = { .text = buf_str(&s->merges) };
	struct json_slice merges;

	s->class = find_class(json_text(json_get(s->config, "tokenizer_class"), STR("")), e);
	if (!s->class || json_next(&scan, &merges, e) || load_stages(m, s, e) ||
		reader_json_bpe(m, s->vocab, merges, e))
		return -1;
	return add_specials(m, s, e);
}

static int read_pair(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct json_scan scan = { .text = bytes };
	struct merges_source s = { 0 };
	struct arena arena = { 0 };
	int rc = -1;

	if (json_next(&scan, &s.vocab, e) || !json_at_end(&scan)) {
		err_set(e, ERR_PARSE, "is not JSON");
		goto done;
	}
	if (read_merges(path, &s.merges, e) ||
		model_read_beside(&arena, path, "tokenizer_config.json", NULL, &s.config, e) ||
		model_read_beside(&arena, path, "special_tokens_map.json", NULL, &s.map, e) ||
		model_read_beside(&arena, path, "added_tokens.json", NULL, &s.added, e))
		goto done;
	rc = load(m, &s, e);
done:
	buf_release(&s.merges);
	arena_release(&arena);
	return rc;
}

static bool is_vocab(struct str path, struct str bytes)
{
	(void)bytes;
	return str_is(path, "vocab.json") || str_ends(path, STR("/vocab.json"));
}

const struct model_reader reader_merges = { "vocab.json", is_vocab, read_pair };
