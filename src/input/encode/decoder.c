/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.c - texts of tokens, computed once, and joining them. */
#include "input/encode/decoder.h"

#include <assert.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/chars.h"
#include "input/encode/model.h"

/* ---- One step ---- */

/* Where among the tokens a text is: both bits for the only one, none in the middle. */
#define DECODER_FIRST 1u
#define DECODER_LAST 2u

struct decoder_step_work {
	size_t bytes_left; /* that all steps may still write */
	size_t text_bytes; /* of all texts together, for the time of regular expressions */
	struct buf text[2];
	unsigned turn; /* the text that was written last */
	struct regex_work *regex;
};

static void decoder_step_work_release(struct decoder_step_work *w)
{
	buf_release(&w->text[0]);
	buf_release(&w->text[1]);
	regex_work_free(w->regex);
	*w = (struct decoder_step_work){ 0 };
}

/* The other of the two buffers than the current text's, emptied. */
static struct buf *next_text(struct decoder_step_work *w)
{
	struct buf *out = &w->text[w->turn ^= 1];

	buf_reset(out);
	return out;
}

static int take_text(struct decoder_step_work *w, struct buf *out, struct str *text)
{
	*text = out->len ? buf_str(out) : STR("");
	if (out->is_over || out->len > w->bytes_left)
		return -1;
	w->bytes_left -= out->len;
	return 0;
}

static int replace(struct decoder_step_work *w, struct str old, struct str new, struct str *text)
{
	struct str rest = *text;
	const char *at = str_find(rest, old);
	struct buf *out;

	if (!at)
		return 0;
	out = next_text(w);
	for (; at; at = str_find(rest, old)) {
		size_t before = (size_t)(at - rest.p);

		buf_add(out, rest.p, before);
		buf_add_str(out, new);
		rest = (struct str){ at + old.n, rest.n - before - old.n };
		if (out->is_over)
			return -1;
	}
	buf_add_str(out, rest);
	return take_text(w, out, text);
}

/* The offset after the character at `at` (or past the end). */
static size_t next_character(struct str text, size_t at)
{
	size_t n = 1;

	if (at < text.n)
		utf8_decode((struct str){ text.p + at, text.n - at }, &n);
	return at + n;
}

/* An empty match directly after the previous match does not count. */
static int replace_matches(const struct decoder_step *step, struct decoder_step_work *w,
	struct str *text)
{
	size_t done = 0, from = 0, start, end, match_end = SIZE_MAX;
	struct buf *out = next_text(w);
	int rc = 0;

	if (!w->regex) {
		w->regex = regex_work_new();
		regex_work_begin(w->regex, w->text_bytes);
	}
	while (text->n > 0 && from <= text->n && !out->is_over) {
		rc = regex_find(step->regex, w->regex, *text, from, &start, &end);
		if (rc <= 0)
			break;
		if (start == end && end == match_end) {
			from = next_character(*text, from);
			continue;
		}
		buf_add(out, text->p + done, start - done);
		buf_add_str(out, step->content);
		done = from = match_end = end;
	}
	if (rc < 0)
		return -1;
	buf_add(out, text->p + done, text->n - done);
	return take_text(w, out, text);
}

static void strip(const struct decoder_step *step, struct str *text)
{
	for (size_t i = 0; i < step->start && str_starts(*text, step->text); i++)
		*text = (struct str){ text->p + step->text.n, text->n - step->text.n };
	for (size_t i = 0; i < step->stop && str_ends(*text, step->text); i++)
		text->n -= step->text.n;
}

static int clean_up(struct decoder_step_work *w, struct str *text)
{
	static const struct {
		const char *old, *new;
	} row[] = {
		{ " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" },
		{ " n't", "n't" }, { " 'm", "'m" }, { " do not", " don't" }, { " 's", "'s" },
		{ " 've", "'ve" }, { " 're", "'re" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (replace(w, str_of(row[i].old), str_of(row[i].new), text))
			return -1;
	return 0;
}

static int word_piece(const struct decoder_step *step, unsigned place,
	struct decoder_step_work *w, struct str *text)
{
	if (!(place & DECODER_FIRST)) {
		if (str_starts(*text, step->text)) {
			*text = (struct str){ text->p + step->text.n, text->n - step->text.n };
		} else {
			struct buf *out = next_text(w);

			buf_add_char(out, ' ');
			buf_add_str(out, *text);
			if (take_text(w, out, text))
				return -1;
		}
	}
	return step->is_cleaned ? clean_up(w, text) : 0;
}

static int run_step(const struct decoder_step *step, unsigned place, struct decoder_step_work *w,
	struct str *text)
{
	bool vanishes;

	switch (step->kind) {
	case DECODER_REPLACE:
		return replace(w, step->text, step->content, text);
	case DECODER_REGEX:
		return replace_matches(step, w, text);
	case DECODER_STRIP:
		strip(step, text);
		return 0;
	case DECODER_METASPACE:
		vanishes = place & DECODER_FIRST && !step->is_first_kept;
		return replace(w, step->text, vanishes ? STR("") : STR(" "), text);
	case DECODER_WORDPIECE:
		return word_piece(step, place, w, text);
	case DECODER_SUFFIX:
		vanishes = place & DECODER_LAST;
		return replace(w, step->text, vanishes ? STR("") : STR(" "), text);
	}
	return -1;
}

/*
 * Applies the steps to one token's text; place: DECODER_FIRST, DECODER_LAST. *text becomes part of
 * what it was, or a text in w. -1 when a regular expression gave up or the text outgrew w's limits.
 */
static int decoder_steps_run(const struct decoder_step *step, size_t count, unsigned place,
	struct decoder_step_work *w, struct str *text)
{
	assert(!(place & ~(unsigned)(DECODER_FIRST | DECODER_LAST)));
	for (size_t i = 0; i < count; i++)
		if (run_step(step + i, place, w, text))
			return -1;
	return 0;
}

/* ---- Decoders ---- */

void decoder_release(struct decoder *d)
{
	for (size_t i = 0; i < d->steps; i++)
		regex_free(d->step[i].regex);
	if (!d->table.is_borrowed) {
		free(d->table.shown);
		free(d->table.text);
	}
	*d = (struct decoder){ 0 };
}

/* ---- texts of tokens ---- */

struct decoder_maker {
	struct model *m;
	struct str *added; /* contents of added tokens by id; p NULL: none */
	struct buf spelled, text;
	struct decoder_step_work work;
};

/* A token as its file spells it. */
static struct str spelling(struct decoder_maker *k, uint32_t id)
{
	const struct vocab *v = &k->m->vocab;
	struct str bytes = vocab_bytes(v, id);

	if (k->added[id].p)
		return k->added[id];
	if (!v->is_spelled || v->entry[id].is_foreign)
		return bytes;
	buf_reset(&k->spelled);
	chars_spell(bytes, &k->spelled);
	return k->spelled.len ? buf_str(&k->spelled) : STR("");
}

/* "<0x4F>" is a byte: two hexadecimal digits, or as in the reference a plus and one. */
static int byte_of(struct str s)
{
	int high, low;

	if (s.n != 6 || memcmp(s.p, "<0x", 3) != 0 || s.p[5] != '>')
		return -1;
	high = s.p[3] == '+' ? 0 : str_hex(s.p[3]);
	low = str_hex(s.p[4]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static int show(struct decoder_maker *k, uint32_t id, size_t place, struct decoder_shown *shown,
	struct err *e)
{
	const struct decoder *d = &k->m->decoder;
	struct str text = spelling(k, id);
	size_t start = k->text.len;
	char byte;

	if (decoder_steps_run(d->step, d->token_steps, (unsigned)place, &k->work, &text))
		return err_set(e, ERR_PARSE, "has a decoder that fails on token %u: the text "
			"exceeds %u bytes, or a regular expression needs too much time or "
			"memory", id,
			TOKEN_SHOWN_BYTES_MAX);
	if (d->kind == DECODER_BYTE_RUNS && byte_of(text) >= 0) {
		byte = (char)byte_of(text);
		text = (struct str){ &byte, 1 };
		shown->is_byte = 1;
	}
	if (d->kind == DECODER_SPACED && place == 0)
		buf_add_char(&k->text, ' ');
	if (shown->is_byte || (d->kind == DECODER_BYTE_LEVEL && !chars_to_bytes(text, &k->text)))
		buf_add_str(&k->text, text);
	else if (d->kind != DECODER_BYTE_LEVEL)
		utf8_add_lossy(&k->text, text);
	if (k->text.is_over || k->text.len - start > TOKEN_SHOWN_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has tokens that decode to too much text: token %u "
			"to more than %u bytes, or all to more than %u", id,
			TOKEN_SHOWN_BYTES_MAX, TOKEN_SHOWN_ALL_BYTES_MAX);
	shown->start = (uint32_t)start;
	shown->length = (uint32_t)(k->text.len - start) & 0xfffffff;
	return 0;
}

/* Stores a text once if it is the same as in the middle. */
static void share(struct decoder_maker *k, const struct decoder_shown *middle,
	struct decoder_shown *shown)
{
	const char *text = k->text.data;

	if (shown->length != middle->length || shown->is_byte != middle->is_byte ||
		memcmp(text + shown->start, text + middle->start, shown->length) != 0)
		return;
	k->text.len = shown->start;
	shown->start = middle->start;
}

static int show_all(struct decoder_maker *k, struct err *e)
{
	const struct vocab *v = &k->m->vocab;
	struct decoder_table *t = &k->m->decoder.table;

	for (size_t place = 0; place < t->places; place++) {
		for (uint32_t id = 0; id < v->id_limit; id++) {
			struct decoder_shown *shown = t->shown + place * v->id_limit + id;

			if (!v->entry[id].is_known)
				continue;
			shown->is_known = 1;
			shown->is_special = v->entry[id].is_special;
			if (show(k, id, place, shown, e))
				return -1;
			if (place > 0)
				share(k, t->shown + id, shown);
		}
	}
	return 0;
}

/* Byte-level tokens are stored as the bytes they decode to. */
static void show_vocabulary(struct decoder_table *t, const struct vocab *v)
{
	t->is_shared = true;
	for (size_t id = 0; id < v->id_limit; id++) {
		const struct vocab_entry *entry = v->entry + id;

		t->shown[id] = (struct decoder_shown){ .start = entry->start,
			.length = entry->length & 0xfffffff, .is_known = entry->is_known,
			.is_special = entry->is_special };
	}
}

static void find_longest(struct decoder_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->shown[i].length > t->longest)
			t->longest = t->shown[i].length;
}

static size_t count_places(const struct decoder *d)
{
	size_t places = d->kind == DECODER_SPACED ? 2 : 1;

	for (size_t i = 0; i < d->token_steps; i++) {
		if (d->step[i].kind == DECODER_SUFFIX)
			return 4;
		if (d->step[i].kind == DECODER_METASPACE || d->step[i].kind == DECODER_WORDPIECE)
			places = 2;
	}
	return places;
}

int decoder_index(struct model *m, struct err *e)
{
	struct decoder *d = &m->decoder;
	struct decoder_table *t = &d->table;
	struct decoder_maker k = { .m = m };
	int rc;

	assert(!m->decoder.table.shown);
	t->places = count_places(d);
	t->count = t->places * m->vocab.id_limit;
	t->shown = mem_array(t->count + 1, sizeof *t->shown);
	if (d->kind == DECODER_BYTE_LEVEL && d->steps == 0 && m->is_byte_level) {
		show_vocabulary(t, &m->vocab);
		find_longest(t);
		return 0;
	}
	k.added = mem_array(m->vocab.id_limit + 1, sizeof *k.added);
	for (size_t i = 0; i < m->added_count; i++)
		k.added[m->added[i].id] = m->added[i].content;
	k.work.text[0].limit = k.work.text[1].limit = TOKEN_SHOWN_BYTES_MAX;
	k.work.bytes_left = TOKEN_SHOWN_WORK_BYTES_MAX;
	k.work.text_bytes = m->vocab.bytes.len;
	k.text.limit = TOKEN_SHOWN_ALL_BYTES_MAX;
	rc = show_all(&k, e);
	buf_add(&k.text, (char[VOCAB_SLACK]){ 0 }, VOCAB_SLACK);
	t->text_bytes = k.text.len;
	t->text = buf_take(&k.text);
	find_longest(t);
	free(k.added);
	buf_release(&k.spelled);
	decoder_step_work_release(&k.work);
	return rc;
}

/* ---- decoding ---- */

/* Tokens are copied in pieces of COPY bytes, which most fit into. */
#define COPY 16
static_assert(COPY <= VOCAB_SLACK, "a copy may not leave the text of tokens");

struct decoder_writer {
	const char *text;
	char *to;
	char *run; /* where the run of byte tokens that ends at to began; NULL: none */
};

/* Bytes that are not UTF-8 become one U+FFFD each; there is room for it. */
static void end_run(struct decoder_writer *w)
{
	struct str run = { w->run, (size_t)(w->to - w->run) };

	if (!utf8_is_valid(run)) {
		for (size_t i = 0; i < run.n; i++)
			memcpy(w->run + 3 * i, "\xef\xbf\xbd", 3);
		w->to = w->run + 3 * run.n;
	}
	w->run = NULL;
}

static inline void put(struct decoder_writer *w, struct decoder_shown shown, bool has_runs)
{
	const char *text = w->text + shown.start;

	if (has_runs && shown.is_byte && !w->run)
		w->run = w->to;
	else if (has_runs && !shown.is_byte && w->run)
		end_run(w);
	memcpy(w->to, text, COPY);
	if (shown.length > COPY)
		memcpy(w->to, text, shown.length);
	w->to += shown.length;
}

static inline bool is_shown(struct decoder_shown shown, bool skip_special)
{
	return shown.is_known && !(skip_special && shown.is_special);
}

/* Cuts ids that are not shown off both ends and says how many bytes the rest has at most. */
static size_t measure(const struct model *m, const char *text, const uint32_t **ids, size_t *n,
	bool skip_special)
{
	const struct decoder_table *t = &m->decoder.table;
	size_t limit = m->vocab.id_limit, first = *n, last = 0, bytes = COPY;

	for (size_t i = 0; i < *n; i++) {
		uint32_t id = (*ids)[i];

		if (id >= limit || !is_shown(t->shown[id], skip_special))
			continue;
		if (first == *n)
			first = i;
		last = i;
		__builtin_prefetch(text + t->shown[id].start); /* for put_all */
		bytes += t->shown[id].length + 2u * t->shown[id].is_byte;
	}
	if (first == *n) {
		*n = 0;
		return 0;
	}
	/* At both ends texts may differ from those in the middle; a byte may become 3. */
	for (size_t place = 1; place < t->places; place++)
		bytes += 3ull * t->shown[place * limit + (*ids)[first]].length +
			3ull * t->shown[place * limit + (*ids)[last]].length;
	*ids += first;
	*n = last - first + 1;
	return bytes;
}

static void put_all(const struct model *m, struct decoder_writer *w, const uint32_t *ids, size_t n,
	bool skip_special, bool is_exact)
{
	const struct decoder_table *t = &m->decoder.table;
	size_t limit = m->vocab.id_limit, mask = is_exact ? 0 : t->places - 1, i = 0, end = n;
	bool has_runs = m->decoder.kind == DECODER_BYTE_RUNS && !is_exact;
	size_t first = (DECODER_FIRST | (n == 1 ? DECODER_LAST : 0)) & mask;

	if (mask) {
		put(w, t->shown[first * limit + ids[0]], has_runs);
		i = 1;
		end = n > 1 ? n - 1 : n;
	}
	for (; i < end; i++)
		if (ids[i] < limit && is_shown(t->shown[ids[i]], skip_special))
			put(w, t->shown[ids[i]], has_runs);
	if (end < n)
		put(w, t->shown[(DECODER_LAST & mask) * limit + ids[end]], has_runs);
	if (w->run)
		end_run(w);
}

/* Applies the steps to the whole text, which is in out from `from` on. */
static int finish(const struct decoder *d, struct buf *out, size_t from)
{
	struct decoder_step_work work = { 0 };
	struct str text;
	int rc;

	if (d->kind == DECODER_BYTE_LEVEL && decoder_make_valid(out, from))
		return -1;
	text = (struct str){ out->data + from, out->len - from };
	if (d->token_steps == d->steps)
		return 0;
	work.text[0].limit = work.text[1].limit = normalize_growth(text.n);
	work.bytes_left = TOKEN_GROWTH_MAX * text.n + TOKEN_GROWTH_FREE_BYTES;
	work.text_bytes = text.n;
	rc = decoder_steps_run(d->step + d->token_steps, d->steps - d->token_steps,
		DECODER_FIRST | DECODER_LAST, &work, &text);
	if (rc == 0 && text.p >= out->data && text.p <= out->data + out->len) {
		memmove(out->data + from, text.p, text.n);
		out->len = from + text.n;
		out->data[out->len] = 0;
	} else if (rc == 0) {
		out->len = from;
		buf_add_str(out, text);
		rc = out->is_over ? -1 : 0;
	}
	decoder_step_work_release(&work);
	return rc;
}

/*
 * If every token has a single text, neighbors do not matter, and if out could hold the longest text
 * for every id, lengths are not measured first.
 */
#define TOGETHER 256

static bool is_plain(const struct decoder *d, size_t n, const struct buf *out)
{
	size_t room = (out->limit ? out->limit : BUF_BYTES_MAX) - out->len;

	return d->table.places == 1 && d->kind != DECODER_BYTE_RUNS && n > 0 &&
		n < room / (d->table.longest + COPY);
}

static int put_plain(const struct model *m, const char *text, const uint32_t *ids, size_t n,
	bool skip_special, struct buf *out)
{
	const struct decoder_shown *shown = m->decoder.table.shown;
	const size_t limit = m->vocab.id_limit, longest = m->decoder.table.longest, ahead = 8;
	struct decoder_writer w = { .text = text };

	for (size_t at = 0; at < n; at += TOGETHER) {
		size_t end = n - at < TOGETHER ? n : at + TOGETHER;

		if (buf_reserve(out, (end - at) * longest + COPY))
			return -1;
		w.to = out->data + out->len;
		for (size_t i = at; i < end; i++) {
			if (i + 2 * ahead < n && ids[i + 2 * ahead] < limit)
				__builtin_prefetch(shown + ids[i + 2 * ahead]);
			if (i + ahead < n && ids[i + ahead] < limit)
				__builtin_prefetch(text + shown[ids[i + ahead]].start);
			if (ids[i] < limit && is_shown(shown[ids[i]], skip_special))
				put(&w, shown[ids[i]], false);
		}
		out->len = (size_t)(w.to - out->data);
		*w.to = 0;
	}
	return 0;
}

int decoder_run(const struct model *m, const uint32_t *ids, size_t n, bool skip_special,
	bool is_exact, struct buf *out)
{
	const struct decoder *d = &m->decoder;
	struct decoder_writer w = { .text = d->table.is_shared ? m->vocab.bytes.data
							       : d->table.text };
	size_t from = out->len, bytes;

	if (is_plain(d, n, out)) {
		if (put_plain(m, w.text, ids, n, skip_special, out))
			return -1;
		return is_exact ? 0 : finish(d, out, from);
	}
	bytes = measure(m, w.text, &ids, &n, skip_special);
	if (n == 0)
		return 0;
	if (buf_reserve(out, bytes))
		return -1;
	w.to = out->data + from;
	put_all(m, &w, ids, n, skip_special, is_exact);
	out->len = (size_t)(w.to - out->data);
	assert(out->len - from + COPY <= bytes);
	*w.to = 0;
	return is_exact ? 0 : finish(d, out, from);
}

int decoder_make_valid(struct buf *out, size_t from)
{
	struct buf raw = { 0 };
	struct str text;

	assert(from <= out->len);
	if (out->len == from)
		return 0;
	text = (struct str){ out->data + from, out->len - from };
	if (utf8_is_valid(text))
		return 0;
	buf_add_str(&raw, text);
	out->len = from;
	utf8_add_lossy(out, buf_str(&raw));
	buf_release(&raw);
	return out->is_over || raw.is_over ? -1 : 0;
}
