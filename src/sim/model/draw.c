/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c - see draw.h. */
#include "sim/model/draw.h"

#include <assert.h>
#include <math.h>

#include "core/base/mem.h"

static const struct dist_form {
	const char *name;
	enum dist_kind kind;
	int numbers;
} forms[] = {
	{ "uniform", DIST_UNIFORM, 2 },
	{ "normal", DIST_NORMAL, 2 },
	{ "exp", DIST_EXP, 1 },
	{ "lognormal", DIST_LOGNORMAL, 2 },
};

static int dist_bad(const char *option, const char *text, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s: '%s' is neither a number >= 0 nor one of "
		       "uniform:LOW:HIGH, normal:MEAN:SD, exp:MEAN, lognormal:MEDIAN:SIGMA",
		       option, text);
}

static bool amount(struct str text, double *out)
{
	return str_to_f64(text, out) && isfinite(*out) && *out >= 0;
}

int dist_parse(struct dist *d, const char *option, const char *text, struct err *e)
{
	struct str rest = str_of(text);
	struct str name = str_cut(&rest, ':');
	struct str first;

	*d = (struct dist){ 0 };
	if (strchr(text, ':') == NULL)
		return amount(str_of(text), &d->a) ? 0 : dist_bad(option, text, e);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (!str_is(name, forms[i].name))
			continue;
		d->kind = forms[i].kind;
		first = forms[i].numbers == 2 ? str_cut(&rest, ':') : rest;
		if (!amount(first, &d->a) || (forms[i].numbers == 2 && !amount(rest, &d->b)))
			return dist_bad(option, text, e);
		if (d->kind == DIST_UNIFORM && d->b < d->a)
			return err_set(e, ERR_USAGE, "%s: '%s' has its high end below its low end",
				       option, text);
		return 0;
	}
	return dist_bad(option, text, e);
}

static double normal(struct pcg64 *g)
{
	double radius = sqrt(-2 * log(1 - pcg64_double(g)));

	return radius * cos(2 * M_PI * pcg64_double(g));
}

double dist_draw(const struct dist *d, struct pcg64 *g)
{
	switch (d->kind) {
	case DIST_CONSTANT:
		return d->a;
	case DIST_UNIFORM:
		return d->a + (d->b - d->a) * pcg64_double(g);
	case DIST_NORMAL:
		return fmax(0, d->a + d->b * normal(g));
	case DIST_EXP:
		return -d->a * log(1 - pcg64_double(g));
	case DIST_LOGNORMAL:
		return d->a * exp(d->b * normal(g));
	}
	assert(!"a distribution of unknown kind");
	return 0;
}

/*
 * Candidates are all vocabulary entries of the right shape that encode to their
 * own id. Then long random texts of them are encoded: a tokenizer that joins
 * words across the space between them would show it there, and is refused.
 */

#define WORDS_MAX 32768
#define WORDS_MIN 16
#define TRIAL_WORDS 20000

static bool is_word(struct str s)
{
	if (s.n < 3 || s.n > WORD_BYTES_MAX || s.p[0] != ' ')
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (s.p[i] < 'a' || s.p[i] > 'z')
			return false;
	return true;
}

static void words_collect(struct sim_words *w, const struct tokenizer *t)
{
	size_t limit = tokenizer_vocab_size(t);
	struct buf text = { 0 };
	struct ids again = { 0 };

	for (uint32_t id = 0; id < limit && w->n < WORDS_MAX; id++) {
		struct word *word = &w->word[w->n];

		buf_reset(&text);
		ids_reset(&again);
		if (tokenizer_decode_bytes(t, &id, 1, false, &text) < 0 || !is_word(buf_str(&text)))
			continue;
		if (tokenizer_encode(t, buf_str(&text), false, &again) < 0 || again.count != 1 ||
		    again.id[0] != id)
			continue;
		word->id = id;
		word->n = (uint8_t)text.len;
		memcpy(word->text, text.data, text.len);
		w->n++;
	}
	buf_release(&text);
	ids_release(&again);
}

static bool words_are_stable(const struct sim_words *w, const struct tokenizer *t)
{
	struct buf text = { 0 };
	struct ids again = { 0 };
	bool is_stable = true;

	for (uint64_t i = 0; i < TRIAL_WORDS; i++) {
		const struct word *word = words_at(w, 1, i);

		buf_add(&text, word->text, word->n);
	}
	is_stable = tokenizer_encode(t, buf_str(&text), false, &again) == 0 &&
		    again.count == TRIAL_WORDS;
	for (uint64_t i = 0; is_stable && i < TRIAL_WORDS; i++)
		is_stable = again.id[i] == words_at(w, 1, i)->id;
	buf_release(&text);
	ids_release(&again);
	return is_stable;
}

int words_init(struct sim_words *w, const struct tokenizer *t, struct err *e)
{
	*w = (struct sim_words){ .word = mem_array(WORDS_MAX, sizeof(*w->word)) };
	words_collect(w, t);
	if (w->n >= WORDS_MIN && words_are_stable(w, t))
		return 0;
	words_release(w);
	return err_set(e, ERR_PARSE, "tokenizer '%s' has no set of words that keep their token "
		       "count when joined, so honest answers cannot be written with it",
		       tokenizer_name(t));
}

void words_release(struct sim_words *w)
{
	free(w->word);
	*w = (struct sim_words){ 0 };
}
