/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - see script.h: parts of an answer, and deliberate mistakes. */
#include "sim/model/script.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "sim/model/draw.h"

void script_reset(struct script *s)
{
	struct script fresh = { .text = s->text, .ids = s->ids, .end = s->end,
				.end_cap = s->end_cap, .part = s->part };

	buf_reset(&fresh.text);
	ids_reset(&fresh.ids);
	*s = fresh;
}

void script_release(struct script *s)
{
	buf_release(&s->text);
	ids_release(&s->ids);
	free(s->end);
	free(s->part);
	*s = (struct script){ 0 };
}

/* The latest end of a character at or before at. */
static size_t char_end(struct str text, size_t at)
{
	while (at && at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80)
		at--;
	return at;
}

/* Finds the text ends of the tokens from `first` on, which spell the text from byte `from` on. */
static void ends_find(struct script *s, const struct tokenizer *t, size_t first, size_t from)
{
	struct str all = buf_str(&s->text);
	size_t n = s->ids.count - first, at = from;
	struct buf piece = { 0 };

	for (size_t i = 0; i < n; i++) {
		buf_reset(&piece);
		tokenizer_decode_bytes(t, &s->ids.id[first + i], 1, false, &piece);
		at += piece.len;
		s->end[first + i] = at;
	}
	/* A tokenizer that changes its input: equal shares are as good as any. */
	for (size_t i = 0; at != all.n && i < n; i++)
		s->end[first + i] = from + (all.n - from) * (i + 1) / n;
	for (size_t i = 0; i < n; i++)
		s->end[first + i] = char_end(all, s->end[first + i]);
	buf_release(&piece);
}

int script_add(struct script *s, const struct tokenizer *t, enum script_kind kind, struct str text,
	       struct str name, struct err *e)
{
	size_t first = s->ids.count, from = s->text.len;
	struct script_part *p;

	assert(s->parts < SCRIPT_PARTS_MAX);
	if (!s->part)
		s->part = mem_array(SCRIPT_PARTS_MAX, sizeof(*s->part));
	p = &s->part[s->parts];
	buf_add_str(&s->text, text);
	if (tokenizer_encode(t, text, false, &s->ids) < 0 || s->text.is_over)
		return err_set(e, ERR_RUN, "the answer cannot be tokenized");
	if (s->ids.count == first)
		return 0;
	if (s->ids.count > s->end_cap) {
		s->end_cap = s->ids.count * 2;
		s->end = mem_grow(s->end, s->end_cap, sizeof(*s->end));
	}
	ends_find(s, t, first, from);
	*p = (struct script_part){ .kind = kind, .token_end = (uint32_t)s->ids.count };
	if (kind == SCRIPT_CALL) {
		assert(name.p >= text.p && name.p + name.n <= text.p + text.n);
		p->name_at = from + (size_t)(name.p - text.p);
		p->name_n = name.n;
		s->calls++;
	}
	p->call = s->calls ? s->calls - 1 : 0;
	s->parts++;
	return 0;
}

struct str script_token(const struct script *s, uint32_t i)
{
	size_t from = i ? s->end[i - 1] : 0;

	assert(i < s->ids.count);
	return (struct str){ s->text.data + from, s->end[i] - from };
}

const struct script_part *script_part_of(const struct script *s, uint32_t i)
{
	const struct script_part *p = s->part;

	assert(i < s->ids.count);
	while (i >= p->token_end)
		p++;
	return p;
}

uint32_t script_calls(const struct script *s, uint32_t tokens, uint32_t *malformed)
{
	uint32_t calls = 0;

	*malformed = 0;
	for (uint32_t i = 0; i < s->parts; i++) {
		const struct script_part *p = &s->part[i];

		if (p->kind != SCRIPT_CALL || p->token_end > tokens)
			continue;
		calls++;
		*malformed += p->is_malformed;
	}
	return calls;
}

/*
 * Mistakes on purpose. Changes are tried in an order and at places that the seed decides,
 * until the constraint is broken; some schemas do not mind a missing member.
 */

#define PLACES_MAX 64 /* of one answer */
#define TRIES 4       /* places of each change */

/* ---- where JSON can be changed ---- */

/* A member, from its key's quote to its value's end, or the value of an element. */
struct script_place {
	size_t key, value, end; /* bytes; key == value: an element */
	enum json_kind kind;
};

struct places {
	struct str text;
	struct script_place place[PLACES_MAX];
	size_t n;
};

static void places_add(struct places *p, struct str key, bool is_member, struct json_slice v)
{
	size_t quote = v.kind == JSON_STRING;
	struct script_place *at = &p->place[p->n];

	if (p->n == PLACES_MAX)
		return;
	at->value = (size_t)(v.raw.p - p->text.p) - quote;
	at->end = at->value + v.raw.n + 2 * quote;
	at->key = is_member ? (size_t)(key.p - p->text.p) - 1 : at->value;
	at->kind = v.kind;
	p->n++;
}

static void places_walk(struct places *p, struct json_slice v, unsigned depth)
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;

	if ((v.kind != JSON_OBJECT && v.kind != JSON_ARRAY) || depth == 8)
		return;
	while (json_each(&it, &key, &item) > 0) {
		places_add(p, key, v.kind == JSON_OBJECT, item);
		places_walk(p, item, depth + 1);
	}
}

static bool is_number(const struct script_place *at)
{
	return at->kind == JSON_INT || at->kind == JSON_REAL;
}

static bool is_member(const struct script_place *at)
{
	return at->key < at->value;
}

static bool is_scalar(const struct script_place *at)
{
	return at->kind != JSON_OBJECT && at->kind != JSON_ARRAY && at->kind != JSON_NULL;
}

/* One of the fitting ones, chosen by draw; NULL: none fits. */
static const struct script_place *
place_choose(const struct places *p, bool (*fits)(const struct script_place *at), uint64_t draw)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += fits(&p->place[i]);
	for (size_t i = 0, k = n ? draw % n : 0; n && i < p->n; i++)
		if (fits(&p->place[i]) && k-- == 0)
			return &p->place[i];
	return NULL;
}

/* ---- changes ---- */

/* text with its bytes from..to replaced. */
static void put(struct buf *out, struct str text, size_t from, size_t to, struct str instead)
{
	buf_add(out, text.p, from);
	buf_add_str(out, instead);
	buf_add(out, text.p + to, text.n - to);
}

typedef void change(const struct places *p, uint64_t draw, struct buf *out);

static void number_quoted(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_number, draw);

	if (!at)
		return;
	buf_add(out, p->text.p, at->value);
	buf_printf(out, "\"%.*s\"", (int)(at->end - at->value), p->text.p + at->value);
	buf_add(out, p->text.p + at->end, p->text.n - at->end);
}

static void number_nan(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_number, draw);

	if (at)
		put(out, p->text, at->value, at->end, STR("NaN"));
}

static void value_null(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_scalar, draw);

	if (at)
		put(out, p->text, at->value, at->end, STR("null"));
}

static void key_misspelt(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_member, draw);
	const char *quote = at ? memchr(p->text.p + at->key + 1, '"', at->value - at->key - 1) : NULL;
	size_t end;

	if (!quote)
		return;
	end = (size_t)(quote - p->text.p);
	if (end > at->key + 2)
		put(out, p->text, end - 1, end, (struct str){ 0 });
}

static void key_missing(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_member, draw);
	size_t from, to;

	if (!at)
		return;
	from = at->key;
	to = at->end;
	while (to < p->text.n && memchr(" \n\t\r", p->text.p[to], 4))
		to++;
	if (to < p->text.n && p->text.p[to] == ',') {
		to++;
	} else {
		to = at->end;
		while (from && memchr(" \n\t\r", p->text.p[from - 1], 4))
			from--;
		from -= from && p->text.p[from - 1] == ',';
	}
	put(out, p->text, from, to, (struct str){ 0 });
}

static void key_twice(const struct places *p, uint64_t draw, struct buf *out)
{
	const struct script_place *at = place_choose(p, is_member, draw);

	if (!at)
		return;
	buf_add(out, p->text.p, at->end);
	buf_printf(out, ", %.*s", (int)(at->end - at->key), p->text.p + at->key);
	buf_add(out, p->text.p + at->end, p->text.n - at->end);
}

static void end_missing(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	if (p->text.n > 1)
		buf_add(out, p->text.p, p->text.n - 1);
}

static void comma_last(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	if (p->n)
		put(out, p->text, p->text.n - 1, p->text.n - 1, STR(","));
}

static void text_behind(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	put(out, p->text, p->text.n, p->text.n, STR("\n\nThat is all."));
}

static void fenced(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	buf_printf(out, "```json\n%.*s\n```", (int)p->text.n, p->text.p);
}

/* A byte of ASCII, so that characters stay whole; n: none was found near the draw's place. */
static size_t letter_at(struct str text, uint64_t draw)
{
	for (size_t i = 0; i < text.n; i++) {
		size_t at = (draw + i) % text.n;

		if ((unsigned char)text.p[at] < 0x80)
			return at;
	}
	return text.n;
}

static void letter_missing(const struct places *p, uint64_t draw, struct buf *out)
{
	size_t at = letter_at(p->text, draw);

	if (at < p->text.n)
		put(out, p->text, at, at + 1, (struct str){ 0 });
}

static void letter_twice(const struct places *p, uint64_t draw, struct buf *out)
{
	size_t at = letter_at(p->text, draw);

	if (at < p->text.n)
		put(out, p->text, at, at, (struct str){ p->text.p + at, 1 });
}

static void letters_swapped(const struct places *p, uint64_t draw, struct buf *out)
{
	size_t at = letter_at(p->text, draw);
	char pair[2];

	if (at + 1 >= p->text.n || (unsigned char)p->text.p[at + 1] >= 0x80)
		return;
	pair[0] = p->text.p[at + 1];
	pair[1] = p->text.p[at];
	put(out, p->text, at, at + 2, (struct str){ pair, 2 });
}

static void case_changed(const struct places *p, uint64_t draw, struct buf *out)
{
	for (size_t i = 0; i < p->text.n; i++) {
		size_t at = (draw + i) % p->text.n;
		char c = p->text.p[at] ^ 0x20;

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
			continue;
		put(out, p->text, at, at + 1, (struct str){ &c, 1 });
		return;
	}
}

static void space_before(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	put(out, p->text, 0, 0, STR(" "));
}

static void space_behind(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	put(out, p->text, p->text.n, p->text.n, STR(" "));
}

static void stop_behind(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	put(out, p->text, p->text.n, p->text.n, STR("."));
}

static void line_behind(const struct places *p, uint64_t draw, struct buf *out)
{
	(void)draw;
	put(out, p->text, p->text.n, p->text.n, STR("\n"));
}

struct script_row {
	const char *name;
	change *make;
};

static const struct script_row of_json[] = {
	{ "number as text", number_quoted }, { "NaN", number_nan }, { "null", value_null },
	{ "member misspelt", key_misspelt }, { "member missing", key_missing },
	{ "member twice", key_twice }, { "end missing", end_missing },
	{ "comma before the end", comma_last }, { "text after it", text_behind },
	{ "fenced", fenced },
};

static const struct script_row of_text[] = {
	{ "letter missing", letter_missing }, { "letter twice", letter_twice },
	{ "letters swapped", letters_swapped }, { "other case", case_changed },
	{ "space in front", space_before }, { "space at the end", space_behind },
	{ "full stop at the end", stop_behind }, { "line end at the end", line_behind },
};

/* ---- trying ---- */

const char *mistake_make(const struct constraint *c, uint64_t seed, struct buf *answer)
{
	bool is_json = constraint_kind(c) == CONSTRAINT_JSON;
	const struct script_row *row = is_json ? of_json : of_text;
	size_t rows = is_json ? sizeof(of_json) / sizeof(*row) : sizeof(of_text) / sizeof(*row);
	struct json_scan scan = { .text = buf_str(answer) };
	struct places p = { .text = buf_str(answer) };
	struct constraint_result result;
	struct buf wrong = { 0 };
	const char *name = NULL;
	struct json_slice all;

	if (is_json && json_next(&scan, &all, NULL) == 0)
		places_walk(&p, all, 0);
	for (size_t i = 0; p.text.n && !name && i < rows * TRIES; i++) {
		const struct script_row *r = &row[(seed + i) % rows];

		buf_reset(&wrong);
		r->make(&p, words_mix(seed + i) >> 8, &wrong);
		if (wrong.len == 0)
			continue;
		constraint_check(c, buf_str(&wrong), &result);
		if (result.verdict == CONSTRAINT_BROKEN)
			name = r->name;
	}
	if (name) {
		buf_reset(answer);
		buf_add_str(answer, buf_str(&wrong));
	}
	buf_release(&wrong);
	return name;
}
