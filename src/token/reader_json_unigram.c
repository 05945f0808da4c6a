/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json_unigram.c - the Unigram model of a tokenizer.json: [["token", score], ...],
 * ids in the order of the list.
 *
 * The reference fails at the first unknown character when unk_id is null; here
 * such a file is refused as a whole.
 */
#include <math.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "token/reader.h"

#define SCORE_CHARS_MAX 400 /* as str_to_f64; digits beyond do not count anyway */

/*
 * A number as the reference reads it, which is not always the nearest double: as many
 * leading digits as fit 64 bits, as a double, times or divided by a power of ten.
 */
struct decimal {
	uint64_t digits;
	int exponent;
};

/* false: the digits with this one behind them do not fit. */
static bool add_digit(struct decimal *d, char digit)
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

static const char *read_digits(const char *p, const char *end, struct decimal *d)
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
	struct decimal d = { 0 };
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
		return err_set(e, ERR_PARSE, "has a Unigram model whose \"vocab\" is no list");
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

int reader_json_unigram(struct model *m, const struct model_sections *s, struct err *e)
{
	struct score_list list = { .lowest = INFINITY };
	struct unigram *u = &m->unigram;
	int64_t unk;
	int rc = -1;

	m->kind = MODEL_UNIGRAM;
	if (m->is_byte_level)
		return err_set(e, ERR_PARSE, "has a Unigram model behind a ByteLevel stage, which "
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
