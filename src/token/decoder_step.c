/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder_step.c - what one step of a decoder makes of one text.
 */
#include "token/decoder_step.h"

#include "base/str.h"

void decoder_step_work_release(struct decoder_step_work *w)
{
	buf_release(&w->text[0]);
	buf_release(&w->text[1]);
	regex_work_free(w->regex);
	*w = (struct decoder_step_work){ 0 };
}

/* The buffer that does not hold the text at hand, emptied. */
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
	const char *at = memmem(rest.p, rest.n, old.p, old.n);
	struct buf *out;

	if (!at)
		return 0;
	out = next_text(w);
	for (; at; at = memmem(rest.p, rest.n, old.p, old.n)) {
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

/* The place behind the character at at (or behind the end). */
static size_t next_character(struct str text, size_t at)
{
	size_t n = 1;

	if (at < text.n)
		utf8_decode((struct str){ text.p + at, text.n - at }, &n);
	return at + n;
}

/* An empty match does not count where the match before it ended. */
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

int decoder_steps_run(const struct decoder_step *step, size_t count, unsigned place,
	struct decoder_step_work *w, struct str *text)
{
	for (size_t i = 0; i < count; i++)
		if (run_step(step + i, place, w, text))
			return -1;
	return 0;
}
