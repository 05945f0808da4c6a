/* SPDX-License-Identifier: Apache-2.0 */
/* salt.c - see salt.h. */
#include "bench/options/salt.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/json/read.h"
#include "core/rng/rng.h"

#define LETTERS 3
#define COUNTED_BYTES 1024 /* bytes counted after a salt: tokens further on are the same without
			    * it */

/* One entry's salt: as text, and as token ids to follow a list's bracket. */
struct salt_drawn { char text[SALT_WORDS * (LETTERS + 1) + 1]; char ids[SALT_WORDS * 12 + 1]; };

static const char *const kinds[] = { [SALT_NONE] = "none", [SALT_RUN] = "run",
				     [SALT_REQUEST] = "request", [SALT_FRESH] = "fresh" };

const char *salt_kind_name(enum salt_kind kind)
{
	return kinds[kind];
}

int salt_parse(const char *text, enum salt_kind *kind, const char **key, struct err *e)
{
	struct str rest = str_of(text), name = str_cut(&rest, ':');
	bool has_key = name.n < strlen(text);

	*key = has_key ? rest.p : NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		*kind = (enum salt_kind)i;
		if (str_is(name, kinds[i]) && !(has_key && (i == SALT_NONE || rest.n == 0 ||
							    rest.n > SALT_KEY_BYTES)))
			return 0;
	}
	return err_set(e, ERR_USAGE, "--prompt-salt: expected none, run, request or fresh, the last "
		       "three also with :TEXT (of at most %d bytes), got '%.100s'", SALT_KEY_BYTES, text);
}

void salt_draw_key(char key[SALT_KEY_BYTES + 1])
{
	uint64_t random;

	/* 8 bytes are never cut short; if getrandom fails, the time will do. */
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint64_t)clock_real_ns();
	snprintf(key, SALT_KEY_BYTES + 1, "%016" PRIx64, random);
}

void salt_init(struct salt *s, enum salt_kind kind, const char *key, const struct tokenizer *t)
{
	uint64_t vocab = t ? tokenizer_vocab_size(t) : 0, low = 1;

	assert(kind != SALT_NONE && strlen(key) <= SALT_KEY_BYTES);
	*s = (struct salt){ .kind = kind, .key = key, .tokenizer = t, .option = "--prompt-salt",
			    .words = kind == SALT_FRESH ? SALT_FRESH_WORDS : SALT_WORDS };
	/* The number of digits that most ids have. */
	for (uint64_t p = 1; p < vocab; p *= 10) {
		uint64_t high = p * 10 < vocab ? p * 10 : vocab;

		if (high - p > s->id_high - (uint64_t)s->id_low) {
			low = p;
			s->id_high = (uint32_t)(high - 1);
			s->id_low = (uint32_t)low;
		}
	}
}

static uint32_t draw_id(const struct salt *s, struct pcg64 *g)
{
	for (int tries = 0; tries < 100; tries++) {
		uint32_t id = (uint32_t)pcg64_bounded(g, s->id_low, s->id_high);

		if (!tokenizer_is_special(s->tokenizer, id))
			return id;
	}
	return s->id_low;
}

static void draw(const struct salt *s, uint32_t round, uint32_t entry, struct salt_drawn *out)
{
	uint64_t place = (uint64_t)round << 32 | (s->kind == SALT_REQUEST ? entry : 0);
	char purpose[sizeof("prompt-salt ") + SALT_KEY_BYTES];
	struct pcg64 g;
	char *p = out->text;
	int n = 0;

	snprintf(purpose, sizeof(purpose), "prompt-salt %s", s->key);
	g = rng_fork(place, purpose);
	for (int i = 0; i < s->words; i++) {
		for (int k = 0; k < LETTERS; k++)
			*p++ = (char)('a' + pcg64_bounded(&g, 0, 25));
		*p++ = ' ';
	}
	*p = 0;
	out->ids[0] = 0;
	for (int i = 0; i < s->words && s->id_high; i++)
		n += snprintf(out->ids + n, sizeof(out->ids) - (size_t)n, "%u, ", draw_id(s, &g));
}

/* ---- where it goes ---- */

/* Offset of the first text of a chat in its JSON; SIZE_MAX: there is none. */
static size_t first_text(struct str messages)
{
	struct json_scan scan = { messages, 0 };
	struct json_slice all, message, content, part, text;
	struct json_iter it, parts;
	struct str key;

	if (json_next(&scan, &all, NULL) < 0 || all.kind != JSON_ARRAY)
		return SIZE_MAX;
	it = json_iter(all);
	while (json_each(&it, &key, &message) == 1) {
		if (message.kind != JSON_OBJECT || !json_member(message, "content", &content))
			continue;
		if (content.kind == JSON_STRING)
			return (size_t)(content.raw.p - messages.p);
		if (content.kind != JSON_ARRAY)
			continue;
		parts = json_iter(content);
		while (json_each(&parts, &key, &part) == 1)
			if (part.kind == JSON_OBJECT && json_member(part, "text", &text) &&
			    text.kind == JSON_STRING)
				return (size_t)(text.raw.p - messages.p);
	}
	return SIZE_MAX;
}

/* Offset just after the opening bracket of a list of ids; SIZE_MAX: it is something else. */
static size_t first_id(struct str json)
{
	size_t i = 0;

	while (i < json.n && (json.p[i] == ' ' || json.p[i] == '['))
		i++;
	if (i == 0 || i == json.n || json.p[i] < '0' || json.p[i] > '9' ||
	    memchr(json.p + 1, '[', i - 1))
		return SIZE_MAX;
	return i;
}

static int insert(struct workload *w, struct str *text, size_t at, const char *salt, struct err *e)
{
	struct buf b = { 0 };
	struct str longer;
	int rc;

	buf_add(&b, text->p, at);
	buf_add_text(&b, salt);
	buf_add(&b, text->p + at, text->n - at);
	longer = buf_str(&b);
	rc = workload_keep(w, &longer, e);
	if (rc == 0)
		*text = longer;
	buf_release(&b);
	return rc;
}

/* Up to a blank where there is one, else to the end of a character. */
static struct str beginning_of(struct str text)
{
	size_t n = COUNTED_BYTES;

	if (text.n <= n)
		return text;
	while (n > COUNTED_BYTES / 2 && text.p[n] != ' ')
		n--;
	if (text.p[n] != ' ')
		for (n = COUNTED_BYTES; n && ((unsigned char)text.p[n] & 0xc0) == 0x80;)
			n--;
	text.n = n;
	return text;
}

/* Tokens that a salt adds to a text: only text near the salt can be tokenized differently. */
static uint32_t added(const struct salt *s, const char *salt, struct str text)
{
	struct buf b = { 0 };
	size_t with, without;

	if (!s->tokenizer)
		return 0;
	text = beginning_of(text);
	buf_add_text(&b, salt);
	buf_add_str(&b, text);
	with = tokenizer_count(s->tokenizer, buf_str(&b), false);
	without = tokenizer_count(s->tokenizer, text, false);
	buf_release(&b);
	return with == SIZE_MAX || without == SIZE_MAX || with < without
	       ? (uint32_t)s->words : (uint32_t)(with - without);
}

/* Where a sample's salt goes: in which of its texts, at what offset. */
struct salt_place { struct str *text; size_t at; bool is_ids; };

static int find_place(const struct salt *s, struct workload *w, uint32_t i, struct salt_place *out,
		      struct err *e)
{
	struct sample *one = &w->v[i];

	*out = (struct salt_place){ .text = one->messages.n ? &one->messages : &one->prompt };
	if (one->file.n)
		return err_set(e, ERR_RUN, "%s cannot be used with dataset %s: request %u is a "
			       "file", s->option, w->dataset, i);
	if (one->messages.n) {
		out->at = first_text(one->messages);
		if (out->at == SIZE_MAX)
			return err_set(e, ERR_RUN, "%s cannot be used with dataset %s: request %u is a "
				       "chat without text", s->option, w->dataset, i);
		return 0;
	}
	if (one->kind == PROMPT_TEXT)
		return 0;
	out->is_ids = true;
	out->at = first_id(one->prompt);
	if (out->at == SIZE_MAX)
		return err_set(e, ERR_RUN, "%s cannot be used with dataset %s: request %u is "
			       "neither text nor a list of token ids nor a chat", s->option, w->dataset, i);
	if (!s->id_high)
		return err_set(e, ERR_RUN, "%s needs a tokenizer for prompts of token ids",
			       s->option);
	return 0;
}

int salt_check(const struct salt *s, const struct workload *w, struct err *e)
{
	struct salt_place place;

	for (uint32_t i = 0; i < w->n; i++)
		if (find_place(s, (struct workload *)w, i, &place, e) < 0)
			return -1;
	return 0;
}

/*
 * Removes the last n tokens of a text, so that common beginnings of prompts stay. Returns their
 * number; 0 where the text has no more than n.
 */
static uint32_t shorten(const struct salt *s, struct str *text, uint32_t n)
{
	size_t from = text->n > COUNTED_BYTES ? text->n - COUNTED_BYTES : 0, low, high = text->n;
	size_t all, kept;

	while (from < text->n && ((unsigned char)text->p[from] & 0xc0) == 0x80)
		from++;
	low = from;
	all = tokenizer_count(s->tokenizer, (struct str){ text->p + from, text->n - from }, false);
	if (all == SIZE_MAX || all <= 2 * (size_t)n) /* little more would be left than a salt */
		return 0;
	while (low < high) { /* the longest end of the text that has n tokens less */
		size_t middle = low + (high - low + 1) / 2, end = middle;
		struct str left;

		while (end > low && end < text->n && ((unsigned char)text->p[end] & 0xc0) == 0x80)
			end--;
		left = (struct str){ text->p + from, end - from };
		if (tokenizer_count(s->tokenizer, left, false) > all - n)
			high = middle - 1;
		else
			low = middle;
	}
	while (low > from && low < text->n && ((unsigned char)text->p[low] & 0xc0) == 0x80)
		low--;
	kept = tokenizer_count(s->tokenizer, (struct str){ text->p + from, low - from }, false);
	if (low == from || kept == SIZE_MAX || kept > all)
		return 0;
	text->n = low;
	return (uint32_t)(all - kept);
}

/* Removes as many ids as a salt has from the end of a list "[1, 2, 3]"; the bracket stays. */
static int shorten_ids(const struct salt *s, struct workload *w, struct str *json, struct err *e)
{
	size_t end = json->n;
	int n = 0;
	struct buf b = { 0 };
	struct str shorter;
	int rc;

	for (size_t i = json->n; i > 0 && n < s->words; i--)
		if (json->p[i - 1] == ',') {
			end = i - 1;
			n++;
		}
	if (n < s->words)
		return 0;
	buf_add(&b, json->p, end);
	buf_add_char(&b, ']');
	shorter = buf_str(&b);
	rc = workload_keep(w, &shorter, e);
	if (rc == 0)
		*json = shorter;
	buf_release(&b);
	return rc < 0 ? -1 : n;
}

static int salt_sample(const struct salt *s, struct workload *w, uint32_t i, struct err *e)
{
	struct sample *one = &w->v[i];
	struct salt_place place;
	struct salt_drawn salt;
	struct str text;
	uint32_t n;

	draw(s, 0, i, &salt);
	if (find_place(s, w, i, &place, e) < 0)
		return -1;
	if (place.is_ids) {
		int taken = s->keeps_length ? shorten_ids(s, w, place.text, e) : 0;

		if (taken < 0)
			return -1;
		one->prompt_len += (uint32_t)(s->words - taken);
		return insert(w, place.text, place.at, salt.ids, e);
	}
	text = (struct str){ place.text->p + place.at, place.text->n - place.at };
	if (one->messages.n)
		text.n = (size_t)((const char *)memchr(text.p, '"', text.n) - text.p);
	n = added(s, salt.text, text);
	if (s->keeps_length && s->tokenizer && !one->messages.n)
		one->prompt_len -= shorten(s, place.text, n);
	one->prompt_len += n;
	return insert(w, place.text, place.at, salt.text, e);
}

int salt_workload(const struct salt *s, struct workload *w, struct err *e)
{
	for (uint32_t i = 0; i < w->n; i++) {
		if (salt_sample(s, w, i, e) < 0)
			return -1;
		if (i % 1024 == 0)
			workload_forget(w);
	}
	return 0;
}

void salt_again(const struct salt *s, uint32_t sample, uint32_t round, uint32_t entry,
		struct sample *sent, struct buf *text)
{
	struct str *where = sent->messages.n ? &sent->messages : &sent->prompt;
	struct salt_drawn old, new;
	const char *from, *to;
	char *at;

	if (s->kind == SALT_NONE || (s->kind != SALT_REQUEST && round == 0))
		return;
	draw(s, 0, sample, &old);
	draw(s, round, entry, &new);
	from = sent->messages.n || sent->kind == PROMPT_TEXT ? old.text : old.ids;
	to = from == old.text ? new.text : new.ids;
	assert(strlen(from) == strlen(to));
	buf_add_str(text, *where);
	at = memmem(text->data, text->len, from, strlen(from));
	if (at)
		memcpy(at, to, strlen(to));
	*where = buf_str(text);
}

/* ---- repeated requests and the warm-up pass ---- */

const char *const reuse_passes[] = { "none", "same", "other", NULL };

bool reuse_has_pass(const struct dataset_opts *o)
{
	return o->warmup_pass && strcmp(o->warmup_pass, "none") != 0;
}

size_t reuse_pass_count(const struct workload *w, const struct dataset_opts *o)
{
	if (!reuse_has_pass(o))
		return 0;
	return w->repeats ? w->repeats->n : w->n;
}

int reuse_pass(const struct workload *w, const struct dataset_opts *o, uint64_t seed,
	       const struct tokenizer *t, struct workload *out, struct err *e)
{
	const size_t n = reuse_pass_count(w, o);
	char key[SALT_KEY_BYTES + 1];
	struct salt salt;

	for (size_t i = 0; i < n; i++)
		*workload_add(out) = w->v[w->repeats ? w->repeats->first[i] : i];
	out->dataset = w->dataset;
	if (n == 0 || strcmp(o->warmup_pass, "same") == 0)
		return 0;
	snprintf(key, sizeof(key), "warmup-pass %" PRIu64, seed);
	salt_init(&salt, SALT_REQUEST, key, t);
	salt.option = "--warmup-pass other";
	return salt_workload(&salt, out, e);
}

void reuse_facts(const struct workload *w, const struct dataset_opts *o, struct report_reuse *out)
{
	const struct repeats *r = w->repeats;
	double ideal;

	*out = (struct report_reuse){ .ideal = -1 };
	if (!r && !reuse_has_pass(o))
		return;
	if (r) {
		out->order = r->order;
		out->copies = r->count;
		out->repeated = (uint32_t)(w->n - r->n);
	}
	if (reuse_has_pass(o)) {
		out->pass = o->warmup_pass;
		out->pass_requests = (uint32_t)reuse_pass_count(w, o);
	}
	ideal = dataset_ideal_reuse(w, out->pass && strcmp(out->pass, "same") == 0);
	if (!isnan(ideal))
		out->ideal = ideal;
}
