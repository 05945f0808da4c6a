/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json.c - tokenizer.json files.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/encode/chars.h"
#include "input/token/reader.h"

/* Members of "model" in a tokenizer.json, still as text. Absent ones are null. */
struct model_sections {
	struct json_slice type, vocab, merges, unk_token, fuse_unk, ignore_merges, byte_fallback,
		dropout, prefix, suffix, unk_id, max_chars;
};

struct str reader_json_text(struct str raw, struct buf *scratch)
{
	if (!memchr(raw.p, '\\', raw.n))
		return raw;
	buf_reset(scratch);
	json_unescape(scratch, raw);
	return buf_str(scratch);
}

/* {"token": id, ...} into m->vocab, spelled as m->is_byte_level says, indexed. */
static int load_vocab(struct model *m, const struct model_sections *s, struct err *e)
{
	struct json_iter it = json_iter(s->vocab);
	struct json_slice value;
	struct buf scratch = { 0 };
	struct str key;
	int rc;

	if (s->vocab.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "has a model whose \"vocab\" is not an object");
	vocab_init(&m->vocab, m->is_byte_level, s->vocab.raw.n);
	while ((rc = json_each(&it, &key, &value)) > 0) {
		int64_t id;

		if (value.kind != JSON_INT || !json_to_i64(value, &id))
			rc = err_set(e, ERR_PARSE,
				"has a vocabulary entry \"%.*s\" whose id is not a whole number",
				(int)(key.n < 64 ? key.n : 64), key.p);
		else
			rc = vocab_add(&m->vocab, reader_json_text(key, &scratch), id, e);
		if (rc)
			break;
	}
	buf_release(&scratch);
	if (rc)
		return -1;
	if (m->vocab.count == 0)
		return err_set(e, ERR_PARSE, "has an empty vocabulary");
	return vocab_index(&m->vocab, e);
}

/* ---- BPE ---- */

static int check_model(const struct model_sections *s, struct err *e)
{
	if (s->vocab.kind != JSON_OBJECT || s->merges.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a BPE model without \"vocab\" or \"merges\"");
	if (json_truthy(s->prefix) || json_truthy(s->suffix))
		return err_set(e, ERR_PARSE, "has a BPE model with continuing_subword_prefix or "
			"end_of_word_suffix, which this version does not read");
	if (json_truthy(s->dropout))
		return err_set(e, ERR_PARSE,
			"has a BPE model with dropout; its ids would be random");
	return 0;
}

/* One merge: its two parts, spelled; from "a b" or ["a", "b"]. */
static int split_merge(struct json_slice v, struct buf scratch[2], struct str part[2])
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;

	if (v.kind == JSON_STRING) {
		part[1] = reader_json_text(v.raw, &scratch[0]);
		part[0] = str_cut(&part[1], ' ');
		return part[0].n && part[1].n && !memchr(part[1].p, ' ', part[1].n) ? 0 : -1;
	}
	if (v.kind != JSON_ARRAY)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (json_each(&it, &key, &item) != 1 || item.kind != JSON_STRING)
			return -1;
		part[i] = reader_json_text(item.raw, &scratch[i]);
	}
	return json_each(&it, &key, &item) == 0 && part[0].n && part[1].n ? 0 : -1;
}

/* Merges read and not yet looked up: their parts are adjacent in bytes. */
#define MERGES_TOGETHER 256

struct merge_reader {
	const struct vocab *vocab;
	struct buf scratch[2], bytes;
	struct {
		uint32_t start, cut, end, rank;
	} waiting[MERGES_TOGETHER];
	size_t waiting_count;
	uint32_t rank;
	struct bpe_pair *found;
	size_t found_count, found_cap;
};

static bool add_part(const struct vocab *v, struct str part, struct buf *bytes)
{
	if (v->is_spelled)
		return chars_to_bytes(part, bytes);
	buf_add_str(bytes, part);
	return true;
}

static int look_up(struct merge_reader *r, struct err *e)
{
	struct str key[3 * MERGES_TOGETHER];
	uint32_t id[3 * MERGES_TOGETHER];

	for (size_t i = 0; i < r->waiting_count; i++) {
		const char *p = r->bytes.data + r->waiting[i].start;
		size_t cut = r->waiting[i].cut - r->waiting[i].start;
		size_t all = r->waiting[i].end - r->waiting[i].start;

		key[3 * i] = (struct str){ p, cut };
		key[3 * i + 1] = (struct str){ p + cut, all - cut };
		key[3 * i + 2] = (struct str){ p, all };
	}
	vocab_find_many(r->vocab, key, id, 3 * r->waiting_count);
	for (size_t i = 0; i < r->waiting_count; i++) {
		const uint32_t *of = id + 3 * i;

		if (of[0] == VOCAB_NONE || of[1] == VOCAB_NONE || of[2] == VOCAB_NONE)
			return err_set(e, ERR_PARSE,
				"has a merge (number %u, \"%.*s\" and \"%.*s\") of which "
				"a part or the result is not in the vocabulary",
				r->waiting[i].rank,
				(int)(key[3 * i].n < 64 ? key[3 * i].n : 64), key[3 * i].p,
				(int)(key[3 * i + 1].n < 64 ? key[3 * i + 1].n : 64),
				key[3 * i + 1].p);
		if (r->found_count == r->found_cap) {
			r->found_cap = r->found_cap ? r->found_cap * 2 : 4096;
			r->found = mem_grow(r->found, r->found_cap, sizeof *r->found);
		}
		r->found[r->found_count++] =
			(struct bpe_pair){ of[0], of[1], r->waiting[i].rank, of[2] };
	}
	r->waiting_count = 0;
	buf_reset(&r->bytes);
	return 0;
}

static int add_merge(struct merge_reader *r, struct json_slice v, struct err *e)
{
	size_t start = r->bytes.len, cut;
	struct str part[2];
	bool is_bytes;

	if (split_merge(v, r->scratch, part))
		return err_set(e, ERR_PARSE, "has a merge (number %u) that is not two tokens",
			r->rank);
	is_bytes = add_part(r->vocab, part[0], &r->bytes);
	cut = r->bytes.len;
	/* A token that no bytes spell never occurs in a word, so its merges never apply. */
	if (!is_bytes || !add_part(r->vocab, part[1], &r->bytes)) {
		r->bytes.len = start;
		r->rank++;
		return 0;
	}
	r->waiting[r->waiting_count].start = (uint32_t)start;
	r->waiting[r->waiting_count].cut = (uint32_t)cut;
	r->waiting[r->waiting_count].end = (uint32_t)r->bytes.len;
	r->waiting[r->waiting_count++].rank = r->rank++;
	return r->waiting_count == MERGES_TOGETHER ? look_up(r, e) : 0;
}

static int load_merges(struct model *m, const struct model_sections *s, struct err *e)
{
	struct merge_reader *r = mem_alloc(sizeof *r);
	struct json_iter it = json_iter(s->merges);
	struct json_slice value;
	struct str key;
	int rc;

	r->vocab = &m->vocab;
	while ((rc = json_each(&it, &key, &value)) > 0) {
		rc = add_merge(r, value, e);
		if (rc)
			break;
	}
	if (rc == 0)
		rc = look_up(r, e);
	if (rc == 0)
		bpe_index(&m->bpe, r->found, r->found_count);
	buf_release(&r->scratch[0]);
	buf_release(&r->scratch[1]);
	buf_release(&r->bytes);
	free(r->found);
	free(r);
	return rc;
}

static int read_unk(struct model *m, const struct model_sections *s, struct err *e)
{
	struct buf scratch = { 0 };

	m->bpe.unk = VOCAB_NONE;
	if (s->unk_token.kind != JSON_STRING)
		return 0;
	m->bpe.unk = vocab_find_spelled(&m->vocab, reader_json_text(s->unk_token.raw, &scratch));
	buf_release(&scratch);
	if (m->bpe.unk == VOCAB_NONE)
		return err_set(e, ERR_PARSE, "has an unk_token that is not in its vocabulary");
	return 0;
}

static int load_bpe(struct model *m, const struct model_sections *s, struct err *e)
{
	struct bpe *b = &m->bpe;

	m->kind = MODEL_BPE;
	if (check_model(s, e) || load_vocab(m, s, e) || read_unk(m, s, e))
		return -1;
	b->vocab = &m->vocab;
	b->is_chars = !m->is_byte_level;
	b->has_byte_fallback = b->is_chars && json_truthy(s->byte_fallback);
	b->ignore_merges = json_truthy(s->ignore_merges);
	b->fuse_unk = json_truthy(s->fuse_unk);
	return load_merges(m, s, e);
}

int reader_json_bpe(struct model *m, struct json_slice vocab, struct json_slice merges,
	struct err *e)
{
	return load_bpe(m, &(struct model_sections){ .vocab = vocab, .merges = merges }, e);
}

/* ---- Unigram ---- */

/*
 * [["token", score], ...], ids in the order of the list.
 *
 * The reference fails at the first unknown character when unk_id is null; here such a file is
 * refused as a whole.
 */

#define SCORE_CHARS_MAX 400 /* as str_to_f64; digits beyond do not count anyway */

/*
 * A number as the reference reads it, which is not always the nearest double: as many leading
 * digits as fit 64 bits, as a double, times or divided by a power of ten.
 */
struct token_decimal {
	uint64_t digits;
	int exponent;
};

/* false: the digits followed by this one do not fit. */
static bool add_digit(struct token_decimal *d, char digit)
{
	uint64_t v;

	if (__builtin_mul_overflow(d->digits, 10u, &v) ||
		__builtin_add_overflow(v, (unsigned)(digit - '0'), &v))
		return false;
	d->digits = v;
	return true;
}

static bool is_digit(const char *p, const char *end)
{
	return p < end && *p >= '0' && *p <= '9';
}

static const char *read_digits(const char *p, const char *end, struct token_decimal *d)
{
	for (; is_digit(p, end) && add_digit(d, *p); p++)
		;
	for (; is_digit(p, end); p++)
		d->exponent++;
	if (p == end || *p != '.')
		return p;
	for (p++; is_digit(p, end) && add_digit(d, *p); p++)
		d->exponent--;
	while (is_digit(p, end))
		p++;
	return p;
}

/* 10^n, the nearest double. */
static double power_of_ten(int n)
{
	char text[16];
	double v = 1;

	if (n > 22) {
		str_to_f64((struct str){ text, (size_t)snprintf(text, sizeof text, "1e%d", n) }, &v);
		return v;
	}
	while (n-- > 0)
		v *= 10;
	return v;
}

static int read_score(struct json_slice v, double *score)
{
	const char *p = v.raw.p, *end = p + v.raw.n;
	struct token_decimal d = { 0 };
	int64_t exponent = 0;
	bool is_negative;

	if ((v.kind != JSON_INT && v.kind != JSON_REAL) || v.raw.n > SCORE_CHARS_MAX)
		return -1;
	is_negative = *p == '-';
	p += is_negative;
	if (!is_digit(p, end)) /* Infinity, NaN */
		return -1;
	p = read_digits(p, end, &d);
	if (p < end && !str_to_i64((struct str){ p + 1, (size_t)(end - p - 1) }, &exponent))
		return -1;
	exponent += d.exponent;
	if (exponent < -308 || exponent > 308)
		return -1;
	*score = (double)d.digits;
	if (exponent < 0)
		*score /= power_of_ten((int)-exponent);
	else
		*score *= power_of_ten((int)exponent);
	if (is_negative)
		*score = -*score;
	return fabs(*score) <= UNIGRAM_SCORE_MAX ? 0 : -1;
}

struct score_list {
	double *score; /* by id */
	size_t cap;
	double lowest;
};

static int add_token(struct model *m, struct score_list *list, struct json_slice v,
	struct buf *scratch, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice token, score;
	struct str key;
	size_t id = m->vocab.count;

	if (v.kind != JSON_ARRAY || json_each(&it, &key, &token) != 1 ||
		token.kind != JSON_STRING || json_each(&it, &key, &score) != 1 ||
		json_each(&it, &key, &v) != 0)
		return err_set(e, ERR_PARSE, "has a Unigram model whose token number %zu is not "
			"[\"text\", score]", id);
	if (vocab_add(&m->vocab, reader_json_text(token.raw, scratch), (int64_t)id, e))
		return -1;
	if (id == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 4096;
		list->score = mem_grow(list->score, list->cap, sizeof *list->score);
	}
	if (read_score(score, list->score + id))
		return err_set(e, ERR_PARSE, "has a Unigram model whose token number %zu has the "
			"score %.*s; expected a number from -%g to %g", id,
			(int)(score.raw.n < 64 ? score.raw.n : 64), score.raw.p,
			UNIGRAM_SCORE_MAX, UNIGRAM_SCORE_MAX);
	list->lowest = fmin(list->lowest, list->score[id]);
	return 0;
}

static int add_tokens(struct model *m, struct score_list *list, struct json_slice vocab,
	struct err *e)
{
	struct json_iter it = json_iter(vocab);
	struct json_slice value;
	struct buf scratch = { 0 };
	struct str key;
	int rc;

	if (vocab.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a Unigram model whose \"vocab\" is not a list");
	vocab_init(&m->vocab, false, vocab.raw.n);
	m->vocab.has_doubles = true;
	while ((rc = json_each(&it, &key, &value)) > 0) {
		rc = add_token(m, list, value, &scratch, e);
		if (rc)
			break;
	}
	buf_release(&scratch);
	return rc ? -1 : vocab_index(&m->vocab, e);
}

static int load_unigram(struct model *m, const struct model_sections *s, struct err *e)
{
	struct score_list list = { .lowest = INFINITY };
	struct unigram *u = &m->unigram;
	int64_t unk;
	int rc = -1;

	m->kind = MODEL_UNIGRAM;
	if (m->is_byte_level)
		return err_set(e, ERR_PARSE, "has a Unigram model after a ByteLevel stage, which "
			"this version does not read");
	u->vocab = &m->vocab;
	if (add_tokens(m, &list, s->vocab, e))
		goto done;
	if (s->unk_id.kind != JSON_INT || !json_to_i64(s->unk_id, &unk) || unk < 0 ||
		(uint64_t)unk >= m->vocab.count) {
		err_set(e, ERR_PARSE, "has a Unigram model whose \"unk_id\" is not one of its "
			"%zu tokens", m->vocab.count);
		goto done;
	}
	u->unk = (uint32_t)unk;
	u->unk_score = list.lowest - UNIGRAM_UNK_PENALTY;
	rc = unigram_index(u, list.score, json_truthy(s->byte_fallback), e);
done:
	free(list.score);
	return rc;
}

/* ---- WordPiece and WordLevel ---- */

/*
 * The reference fails at the first unknown word when unk_token is not in the
 * vocabulary; here such a file is refused as a whole.
 */

static int read_words(struct model *m, const struct model_sections *s, const char *name,
	struct err *e)
{
	struct wordpiece *p = &m->wordpiece;
	struct buf scratch = { 0 };
	struct str unk;

	if (m->is_byte_level)
		return err_set(e, ERR_PARSE, "has a %s model after a ByteLevel stage, which this "
			"version does not read", name);
	if (load_vocab(m, s, e))
		return -1;
	if (s->unk_token.kind != JSON_STRING)
		return err_set(e, ERR_PARSE, "has a %s model without \"unk_token\"", name);
	unk = reader_json_text(s->unk_token.raw, &scratch);
	p->vocab = &m->vocab;
	p->unk = vocab_find(&m->vocab, unk.p, unk.n);
	buf_release(&scratch);
	if (p->unk == VOCAB_NONE)
		return err_set(e, ERR_PARSE,
			"has a %s model whose unk_token is not in its vocabulary", name);
	return 0;
}

static int load_wordpiece(struct model *m, const struct model_sections *s, struct err *e)
{
	struct buf scratch = { 0 };
	int64_t max_chars;

	m->kind = MODEL_WORDPIECE;
	if (read_words(m, s, "WordPiece", e))
		return -1;
	if (s->prefix.kind != JSON_STRING)
		return err_set(e, ERR_PARSE,
			"has a WordPiece model without \"continuing_subword_prefix\"");
	if (s->max_chars.kind != JSON_INT || !json_to_i64(s->max_chars, &max_chars) ||
		max_chars < 0)
		return err_set(e, ERR_PARSE, "has a WordPiece model whose "
			"\"max_input_chars_per_word\" is not a whole number of at least 0");
	m->wordpiece.max_chars = max_chars < UINT32_MAX ? (uint32_t)max_chars : UINT32_MAX;
	wordpiece_index(&m->wordpiece, reader_json_text(s->prefix.raw, &scratch));
	buf_release(&scratch);
	return 0;
}

static int load_wordlevel(struct model *m, const struct model_sections *s, struct err *e)
{
	m->kind = MODEL_WORDLEVEL;
	return read_words(m, s, "WordLevel", e);
}

/* ---- The file ---- */

/*
 * The file is read with the pull scanner, which checks it: vocabulary and merges make up nearly all
 * of it and go straight into their tables. Only the small stages become trees (stages.c).
 */

/* The top-level members, still as text; absent ones are null. */
struct file_sections {
	struct json_slice added_tokens, normalizer, pre_tokenizer, post_processor, decoder;
	struct model_sections model;
	bool has_model;
};

struct wanted_member {
	const char *name;
	struct json_slice *slice;
};

static void keep_member(const struct wanted_member *member, size_t count, struct str key,
	struct json_slice value)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(key, member[i].name))
			*member[i].slice = value;
}

static int find_in_model(struct json_iter *it, struct model_sections *s)
{
	const struct wanted_member member[] = {
		{ "type", &s->type }, { "vocab", &s->vocab }, { "merges", &s->merges },
		{ "unk_token", &s->unk_token }, { "fuse_unk", &s->fuse_unk },
		{ "ignore_merges", &s->ignore_merges }, { "byte_fallback", &s->byte_fallback },
		{ "dropout", &s->dropout }, { "continuing_subword_prefix", &s->prefix },
		{ "end_of_word_suffix", &s->suffix }, { "unk_id", &s->unk_id },
		{ "max_input_chars_per_word", &s->max_chars },
	};
	struct json_slice value;
	struct str key;
	int rc;

	*s = (struct model_sections){ 0 }; /* the last of equal names counts */
	while ((rc = json_each(it, &key, &value)) > 0)
		keep_member(member, sizeof member / sizeof *member, key, value);
	return rc;
}

/*
 * -1: not a JSON object, or followed by something. The model's members are found in the same pass.
 */
static int find_in_file(struct str text, struct file_sections *s)
{
	const struct wanted_member member[] = {
		{ "added_tokens", &s->added_tokens }, { "normalizer", &s->normalizer },
		{ "pre_tokenizer", &s->pre_tokenizer }, { "post_processor", &s->post_processor },
		{ "decoder", &s->decoder },
	};
	struct json_iter it, model;
	struct json_slice value;
	struct str key;
	int rc;

	if (text.n < 2 || *text.p != '{')
		return -1;
	it = json_iter((struct json_slice){ JSON_OBJECT, text });
	while ((rc = json_step(&it, &key)) > 0) {
		if (str_is(key, "model") && json_open(&it, &model) && model.is_object) {
			if (find_in_model(&model, &s->model))
				return -1;
			s->has_model = true;
			json_close(&it, &model);
			continue;
		}
		if (json_take(&it, &value) < 0)
			return -1;
		keep_member(member, sizeof member / sizeof *member, key, value);
	}
	return rc || !str_is(str_trim(it.rest), "}") ? -1 : 0;
}

static int find_sections(struct str text, struct file_sections *s, struct err *e)
{
	struct json_scan scan = { .text = text };
	struct json_slice root;

	if (find_in_file(str_trim(text), s)) {
		/* Only a damaged file is parsed again, to find the place. */
		if (json_next(&scan, &root, e))
			return err_wrap(e, "is not JSON");
		return err_set(e, ERR_PARSE, json_at_end(&scan) ? "does not hold a JSON object"
			: "is not JSON: text after the end of the object");
	}
	if (!s->has_model)
		return err_set(e, ERR_PARSE, "has no \"model\"; it is not a tokenizer.json");
	return 0;
}

static int read_model(struct model *m, const struct model_sections *s, struct err *e)
{
	static const struct {
		const char *type;
		int (*read)(struct model *m, const struct model_sections *s, struct err *e);
	} kind[] = {
		{ "BPE", load_bpe }, { "Unigram", load_unigram },
		{ "WordPiece", load_wordpiece }, { "WordLevel", load_wordlevel },
	};

	/* Old files have no type; their members show which it is. */
	if (s->type.kind != JSON_STRING)
		return s->merges.kind == JSON_ARRAY ? load_bpe(m, s, e)
			: s->vocab.kind == JSON_ARRAY ? load_unigram(m, s, e)
			: load_wordpiece(m, s, e);
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
		if (str_is(s->type.raw, kind[i].type))
			return kind[i].read(m, s, e);
	return err_set(e, ERR_TOKENIZER_UNREAD, "has model type \"%.*s\", which this version does not read",
		(int)(s->type.raw.n < 64 ? s->type.raw.n : 64), s->type.raw.p);
}

static int read_json(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct file_sections s = { 0 };
	struct stage_texts text;

	(void)path;
	if (find_sections(bytes, &s, e))
		return -1;
	text = (struct stage_texts){ s.normalizer.raw, s.pre_tokenizer.raw, s.post_processor.raw,
		s.decoder.raw };
	if (stages_load(m, &text, e) || read_model(m, &s.model, e))
		return -1;
	return model_add_list(m, s.added_tokens, e);
}

static bool is_any(struct str path, struct str bytes)
{
	(void)path;
	(void)bytes;
	return true;
}

const struct model_reader reader_json = { "tokenizer.json", is_any, read_json };
