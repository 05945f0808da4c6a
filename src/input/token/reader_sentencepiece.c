/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_sentencepiece.c - .model files, which are protocol buffers.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "input/token/reader.h"

/* ---- Protocol buffers ---- */

/*
 * The fields of a message, in order. Nothing is copied and nothing nests: a message inside a
 * message is a field of kind PROTOBUF_BYTES and read with a reader of its own. Groups, which no
 * format in use here has, are skipped.
 */

enum protobuf_kind {
	PROTOBUF_INT = 0,     /* all whole numbers, enums and booleans */
	PROTOBUF_FIXED64 = 1,
	PROTOBUF_BYTES = 2,   /* text, bytes, messages */
	PROTOBUF_FIXED32 = 5, /* float is one */
};

struct protobuf_field {
	uint32_t number;
	enum protobuf_kind kind;
	uint64_t value;   /* of the kinds that are numbers */
	struct str bytes; /* borrowed */
};

struct protobuf {
	struct str file; /* positions in errors count from its start */
	size_t at, end;
};

static inline struct protobuf protobuf(struct str file)
{
	return (struct protobuf){ file, 0, file.n };
}

#define GROUP_BEGIN 3u
#define GROUP_END 4u
#define NUMBER_MAX ((1u << 29) - 1)

/* The message in a field of kind PROTOBUF_BYTES that p gave. */
static struct protobuf protobuf_inner(const struct protobuf *p, const struct protobuf_field *f)
{
	size_t at = (size_t)(f->bytes.p - p->file.p);

	return (struct protobuf){ p->file, at, at + f->bytes.n };
}

static int cut_off(size_t at, struct err *e)
{
	return err_set(e, ERR_PARSE, "is damaged: a field breaks off at byte %zu", at);
}

static int read_int(struct protobuf *p, uint64_t *out, struct err *e)
{
	size_t start = p->at;

	*out = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (p->at == p->end)
			return cut_off(start, e);
		byte = (uint8_t)p->file.p[p->at++];
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return 0;
	}
	return err_set(e, ERR_PARSE, "is damaged: the number at byte %zu does not end", start);
}

static int read_fixed(struct protobuf *p, size_t n, uint64_t *out, struct err *e)
{
	if (p->end - p->at < n)
		return cut_off(p->at, e);
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out |= (uint64_t)(uint8_t)p->file.p[p->at++] << 8 * i;
	return 0;
}

static int read_bytes(struct protobuf *p, struct str *out, struct err *e)
{
	size_t start = p->at;
	uint64_t n;

	if (read_int(p, &n, e))
		return -1;
	if (n > p->end - p->at)
		return err_set(e, ERR_PARSE, "is damaged: %llu bytes should follow at byte %zu, "
			"but the message ends after %zu", (unsigned long long)n, start,
			p->end - p->at);
	*out = (struct str){ p->file.p + p->at, (size_t)n };
	p->at += (size_t)n;
	return 0;
}

static int read_value(struct protobuf *p, struct protobuf_field *f, struct err *e)
{
	switch (f->kind) {
	case PROTOBUF_INT:
		return read_int(p, &f->value, e);
	case PROTOBUF_FIXED64:
		return read_fixed(p, 8, &f->value, e);
	case PROTOBUF_BYTES:
		return read_bytes(p, &f->bytes, e);
	case PROTOBUF_FIXED32:
		return read_fixed(p, 4, &f->value, e);
	}
	return err_set(e, ERR_PARSE, "is damaged: a field of unknown kind %u before byte %zu",
		(unsigned)f->kind, p->at);
}

/* The next field: 1, or 0 at the end, or -1 when the bytes are not a message. */
static int protobuf_next(struct protobuf *p, struct protobuf_field *f, struct err *e)
{
	size_t groups = 0;

	while (p->at < p->end) {
		size_t start = p->at;
		uint64_t tag;

		if (read_int(p, &tag, e))
			return -1;
		if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
			return err_set(e, ERR_PARSE, "is damaged: no field begins at byte %zu",
				start);
		if ((tag & 7) == GROUP_BEGIN) {
			groups++;
			continue;
		}
		if ((tag & 7) == GROUP_END) {
			if (groups-- == 0)
				return err_set(e, ERR_PARSE, "is damaged: a group ends at byte %zu "
					"that did not begin", start);
			continue;
		}
		*f = (struct protobuf_field){ .number = (uint32_t)(tag >> 3),
			.kind = (enum protobuf_kind)(tag & 7) };
		if (read_value(p, f, e))
			return -1;
		if (groups == 0)
			return 1;
	}
	return groups ? cut_off(p->at, e) : 0;
}

static float protobuf_float(const struct protobuf_field *f)
{
	uint32_t bits = (uint32_t)f->value;
	float v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* ---- The file ---- */

/*
 * Sentencepiece's .model files: a protocol buffer with the pieces (id is position), how the model
 * was trained, and how texts are normalized.
 *
 * Text between special tokens is encoded as by sentencepiece itself. Special tokens follow the
 * tokenizer classes of the model hubs: control pieces and the unknown one are found in text, are
 * left out by skip_special, and the bos piece precedes a sequence if the model has one (load.c has
 * better information from a tokenizer_config.json).
 *
 * Refused, since no model in use has them: models of words or characters, blanks as suffixes,
 * blanks that are not escaped, a normalizer for decoded text, and pieces of a BPE model that
 * merging may pass through but not end with.
 */

enum piece_type { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };
enum model_type { TYPE_UNIGRAM = 1, TYPE_BPE };

struct sentencepiece_piece {
	struct str text;
	float score;
	enum piece_type type;
};

struct sentencepiece_source {
	struct sentencepiece_piece *piece;
	size_t count, cap, bytes;
	int64_t type, bos; /* bos below 0: none */
	bool has_byte_fallback, is_suffix, is_unescaped, has_prefix, is_trimmed, has_denormalizer;
	struct str charsmap;
	uint32_t unk;
};

/* ---- the file ---- */

static int read_piece(struct protobuf in, struct sentencepiece_piece *piece, size_t id,
		      struct err *e)
{
	struct protobuf_field f;
	int rc;

	*piece = (struct sentencepiece_piece){ .type = NORMAL };
	while ((rc = protobuf_next(&in, &f, e)) > 0) {
		if (f.number == 1 && f.kind == PROTOBUF_BYTES)
			piece->text = f.bytes;
		else if (f.number == 2 && f.kind == PROTOBUF_FIXED32)
			piece->score = protobuf_float(&f);
		else if (f.number == 3 && f.kind == PROTOBUF_INT && f.value >= NORMAL &&
			f.value <= BYTE)
			piece->type = (enum piece_type)f.value;
		else if (f.number == 3)
			return err_set(e, ERR_PARSE, "has a piece (number %zu) of unknown type %llu",
				id, (unsigned long long)f.value);
	}
	if (rc)
		return -1;
	if (piece->text.n == 0 || memchr(piece->text.p, 0, piece->text.n) ||
		!utf8_is_valid(piece->text))
		return err_set(e, ERR_PARSE, "has a piece (number %zu) that is not text", id);
	if (!(fabsf(piece->score) <= UNIGRAM_SCORE_MAX))
		return err_set(e, ERR_PARSE, "has a piece (number %zu) with the score %g; expected "
			"a number from -%g to %g", id, (double)piece->score, UNIGRAM_SCORE_MAX,
			UNIGRAM_SCORE_MAX);
	return 0;
}

static int add_piece(struct sentencepiece_source *s, struct protobuf in, struct err *e)
{
	if (s->count == TOKEN_ID_MAX)
		return err_set(e, ERR_LIMIT, "has more than %u pieces", TOKEN_ID_MAX);
	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 4096;
		s->piece = mem_grow(s->piece, s->cap, sizeof *s->piece);
	}
	if (read_piece(in, s->piece + s->count, s->count, e))
		return -1;
	s->bytes += s->piece[s->count++].text.n;
	return 0;
}

static int read_trainer(struct sentencepiece_source *s, struct protobuf in, struct err *e)
{
	struct protobuf_field f;
	int rc;

	while ((rc = protobuf_next(&in, &f, e)) > 0) {
		if (f.kind != PROTOBUF_INT)
			continue;
		if (f.number == 3)
			s->type = (int64_t)f.value;
		else if (f.number == 24)
			s->is_suffix = f.value;
		else if (f.number == 35)
			s->has_byte_fallback = f.value;
		else if (f.number == 41)
			s->bos = (int32_t)f.value;
	}
	return rc;
}

static int read_normalizer(struct sentencepiece_source *s, struct protobuf in, struct err *e)
{
	struct protobuf_field f;
	int rc;

	while ((rc = protobuf_next(&in, &f, e)) > 0) {
		if (f.number == 2 && f.kind == PROTOBUF_BYTES)
			s->charsmap = f.bytes;
		else if (f.number == 3 && f.kind == PROTOBUF_INT)
			s->has_prefix = f.value;
		else if (f.number == 4 && f.kind == PROTOBUF_INT)
			s->is_trimmed = f.value;
		else if (f.number == 5 && f.kind == PROTOBUF_INT)
			s->is_unescaped = !f.value;
	}
	return rc;
}

static int read_denormalizer(struct sentencepiece_source *s, struct protobuf in, struct err *e)
{
	struct protobuf_field f;
	int rc;

	while ((rc = protobuf_next(&in, &f, e)) > 0)
		s->has_denormalizer |= f.number == 2 && f.kind == PROTOBUF_BYTES && f.bytes.n > 0;
	return rc;
}

static int read_file(struct sentencepiece_source *s, struct str bytes, struct err *e)
{
	static int (*const READ[])(struct sentencepiece_source *s, struct protobuf in,
				   struct err *e) = {
		[1] = add_piece, [2] = read_trainer, [3] = read_normalizer,
		[5] = read_denormalizer,
	};
	struct protobuf in = protobuf(bytes);
	struct protobuf_field f;
	int rc;

	*s = (struct sentencepiece_source){ .type = TYPE_UNIGRAM, .bos = 1, .has_prefix = true,
		.is_trimmed = true };
	while ((rc = protobuf_next(&in, &f, e)) > 0) {
		if (f.number >= sizeof READ / sizeof *READ || !READ[f.number] ||
			f.kind != PROTOBUF_BYTES)
			continue;
		if (READ[f.number](s, protobuf_inner(&in, &f), e))
			return -1;
	}
	return rc;
}

/* ---- what sentencepiece demands of a model, and what is not read here ---- */

static int check_types(struct sentencepiece_source *s, struct err *e)
{
	size_t unknown = 0, bytes = 0;

	for (uint32_t id = 0; id < s->count; id++) {
		const struct sentencepiece_piece *piece = s->piece + id;

		if (piece->type == UNKNOWN) {
			s->unk = id;
			unknown++;
		}
		bytes += piece->type == BYTE;
		if (piece->type == UNUSED && s->type == TYPE_BPE)
			return err_set(e, ERR_PARSE, "has a BPE model with unused pieces (number "
				"%u), which this version does not read", id);
	}
	if (unknown != 1)
		return err_set(e, ERR_PARSE, "has %zu pieces for unknown text; expected one",
			unknown);
	if (bytes != (s->has_byte_fallback ? 256 : 0))
		return err_set(e, ERR_PARSE, "has %zu pieces for bytes; expected %s", bytes,
			s->has_byte_fallback ? "256, for it sets byte_fallback"
					     : "none without byte_fallback");
	return 0;
}

static int check(struct sentencepiece_source *s, struct err *e)
{
	const char *what = NULL;

	if (s->count == 0)
		return err_set(e, ERR_PARSE, "has no pieces; it is not a sentencepiece model");
	if (s->type != TYPE_UNIGRAM && s->type != TYPE_BPE)
		return err_set(e, ERR_PARSE, "has sentencepiece model type %lld; read are 1 "
			"(unigram) and 2 (bpe)", (long long)s->type);
	if (s->is_suffix)
		what = "treat_whitespace_as_suffix";
	if (s->is_unescaped)
		what = "escape_whitespaces false";
	if (s->has_denormalizer)
		what = "a denormalizer_spec";
	if (what)
		return err_set(e, ERR_PARSE, "sets %s, which this version does not read", what);
	return check_types(s, e);
}

/* ---- stages ---- */

static void add_base64(struct buf *out, struct str bytes)
{
	static const char LETTERS[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t n = bytes.n - i < 3 ? bytes.n - i : 3;
		uint32_t bits = 0;
		char letter[4];

		for (size_t k = 0; k < n; k++)
			bits |= (uint32_t)(uint8_t)bytes.p[i + k] << (16 - 8 * k);
		for (size_t k = 0; k < 4; k++)
			letter[k] = k <= n ? LETTERS[bits >> (18 - 6 * k) & 63] : '=';
		buf_add(out, letter, sizeof letter);
	}
}

static void write_normalizer(const struct sentencepiece_source *s, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct buf map = { 0 };

	add_base64(&map, s->charsmap);
	json_begin_object(&w);
	json_member_text(&w, "type", "SentencePiece");
	json_member_text(&w, "precompiled_charsmap", map.data);
	json_member_bool(&w, "add_dummy_prefix", s->has_prefix);
	json_member_bool(&w, "remove_extra_whitespaces", s->is_trimmed);
	json_member_array(&w, "symbols");
	for (size_t i = 0; i < s->count; i++)
		if (s->piece[i].type == USER_DEFINED)
			json_put_str(&w, s->piece[i].text);
	json_end_array(&w);
	json_end_object(&w);
	buf_release(&map);
}

/* bos before the sequence, as a TemplateProcessing. */
static void write_post_processor(const struct sentencepiece_source *s, struct buf *out)
{
	if (s->bos < 0 || (uint64_t)s->bos >= s->count || s->piece[s->bos].type != CONTROL)
		return;
	buf_printf(out, "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
		"{\"id\":\"bos\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":"
		"{\"bos\":{\"ids\":[%d]}}}", (int)s->bos);
}

static void write_decoder(const struct sentencepiece_source *s, struct buf *out)
{
	buf_add_text(out, "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
		"\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"}");
	if (s->has_byte_fallback)
		buf_add_text(out, ",{\"type\":\"ByteFallback\"}");
	buf_add_text(out, ",{\"type\":\"Fuse\"}");
	/* Removes the blank that was prepended; all of them if there cannot have been one. */
	if (s->has_prefix || s->is_trimmed)
		buf_printf(out, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":%llu,\"stop\":0}",
			s->is_trimmed ? BUF_BYTES_MAX : 1);
	buf_add_text(out, "]}");
}

static int load_stages(struct model *m, const struct sentencepiece_source *s, struct err *e)
{
	struct buf normalizer = { 0 }, post_processor = { 0 }, decoder = { 0 };
	struct stage_texts text;
	int rc;

	write_normalizer(s, &normalizer);
	write_post_processor(s, &post_processor);
	write_decoder(s, &decoder);
	text = (struct stage_texts){ .normalizer = buf_str(&normalizer),
		.post_processor = buf_str(&post_processor), .decoder = buf_str(&decoder) };
	rc = stages_load(m, &text, e);
	buf_release(&normalizer);
	buf_release(&post_processor);
	buf_release(&decoder);
	return rc;
}

/* ---- vocabulary and models ---- */

static int load_vocab(struct model *m, const struct sentencepiece_source *s, struct err *e)
{
	struct vocab *v = &m->vocab;

	vocab_init(v, false, s->bytes + s->count * VOCAB_SLACK);
	for (size_t id = 0; id < s->count; id++)
		if (vocab_add(v, s->piece[id].text, (int64_t)id, e))
			return -1;
	return vocab_index(v, e);
}

static int load_unigram(struct model *m, const struct sentencepiece_source *s, struct err *e)
{
	struct unigram *u = &m->unigram;
	double *score = mem_array(s->count, sizeof *score);
	float lowest = FLT_MAX, highest = FLT_MIN; /* not -FLT_MAX: as in sentencepiece */
	int rc;

	m->kind = MODEL_UNIGRAM;
	for (size_t id = 0; id < s->count; id++) {
		if (s->piece[id].type != NORMAL)
			continue;
		lowest = fminf(lowest, s->piece[id].score);
		highest = fmaxf(highest, s->piece[id].score);
	}
	for (size_t id = 0; id < s->count; id++) {
		const struct sentencepiece_piece *piece = s->piece + id;

		score[id] = piece->type == NORMAL ? piece->score : NAN;
		if (piece->type == USER_DEFINED) /* so high that it is always taken */
			score[id] = (double)((float)piece->text.n * highest) - 0.1;
	}
	u->vocab = &m->vocab;
	u->is_sentencepiece = true;
	u->unk = s->unk;
	u->unk_score = lowest - (float)UNIGRAM_UNK_PENALTY;
	rc = lowest == FLT_MAX ? err_set(e, ERR_PARSE, "has no normal pieces")
			       : unigram_index(u, score, s->has_byte_fallback, e);
	free(score);
	return rc;
}

/* Merging reaches a piece only through its characters: each must be a piece too. */
static int check_characters(const struct model *m, const struct sentencepiece_source *s,
			    struct err *e)
{
	for (size_t id = 0; id < s->count; id++) {
		struct str rest = s->piece[id].text;
		size_t n;

		for (; s->piece[id].type == NORMAL && rest.n > 0; rest.p += n, rest.n -= n) {
			utf8_decode(rest, &n);
			if (vocab_find(&m->vocab, rest.p, n) == VOCAB_NONE)
				return err_set(e, ERR_PARSE, "has a BPE model with piece number "
					"%zu of characters that are not pieces, which this version "
					"does not read", id);
		}
	}
	return 0;
}

static int compare_scores(const void *a, const void *b, void *ctx)
{
	const struct sentencepiece_piece *piece = ctx;
	float x = piece[*(const uint32_t *)a].score, y = piece[*(const uint32_t *)b].score;

	return (x < y) - (x > y);
}

/* Higher scores have lower ranks; equal scores have the same rank. */
static void rank_pieces(const struct sentencepiece_source *s, uint32_t *rank)
{
	uint32_t *id = mem_array(s->count, sizeof *id), next = 0;
	size_t count = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		rank[i] = BPE_NEVER;
		if (s->piece[i].type == NORMAL)
			id[count++] = i;
	}
	qsort_r(id, count, sizeof *id, compare_scores, s->piece);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && s->piece[id[i]].score < s->piece[id[i - 1]].score)
			next++;
		rank[id[i]] = next;
	}
	free(id);
}

static int load_bpe(struct model *m, const struct sentencepiece_source *s, struct err *e)
{
	struct bpe *b = &m->bpe;
	uint32_t *rank;

	m->kind = MODEL_BPE;
	if (check_characters(m, s, e))
		return -1;
	*b = (struct bpe){ .vocab = &m->vocab, .is_chars = true, .fuse_unk = true, .unk = s->unk,
		.has_byte_fallback = s->has_byte_fallback };
	rank = mem_array(s->count, sizeof *rank);
	rank_pieces(s, rank);
	bpe_index_splits(b, rank);
	free(rank);
	return 0;
}

/* A BPE model's own symbols are never part of a merge: they cut the normalized text. */
static int load_added(struct model *m, const struct sentencepiece_source *s, struct err *e)
{
	for (uint32_t id = 0; id < s->count; id++) {
		const struct sentencepiece_piece *piece = s->piece + id;
		struct added_token token = { .content = piece->text, .id = id };

		token.is_special = piece->type == CONTROL || piece->type == UNKNOWN;
		token.is_normalized = piece->type == USER_DEFINED && s->type == TYPE_BPE;
		if ((token.is_special || token.is_normalized) && model_add(m, token, e))
			return -1;
	}
	return 0;
}

static int read_sentencepiece(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct sentencepiece_source s;
	int rc = -1;

	(void)path;
	if (read_file(&s, bytes, e) || check(&s, e) || load_stages(m, &s, e) ||
		load_vocab(m, &s, e))
		goto done;
	rc = s.type == TYPE_BPE ? load_bpe(m, &s, e) : load_unigram(m, &s, e);
	if (rc == 0)
		rc = load_added(m, &s, e);
done:
	free(s.piece);
	return rc;
}

/* The first field is a piece whose first field is text and whose second is the score or type. */
static bool looks_like_model(struct str bytes)
{
	struct protobuf in = protobuf(bytes);
	struct protobuf_field f;

	for (int depth = 0; depth < 2; depth++) {
		if (protobuf_next(&in, &f, NULL) != 1 || f.number != 1 || f.kind != PROTOBUF_BYTES)
			return false;
		if (depth == 0)
			in = protobuf_inner(&in, &f);
	}
	return protobuf_next(&in, &f, NULL) == 0 || f.number == 2 || f.number == 3;
}

static bool is_mine(struct str path, struct str bytes)
{
	return str_ends(path, STR(".model")) || str_ends(path, STR(".spm")) ||
		looks_like_model(bytes);
}

const struct model_reader reader_sentencepiece = { "sentencepiece .model", is_mine, read_sentencepiece };
