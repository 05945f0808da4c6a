/* SPDX-License-Identifier: Apache-2.0 */
/* sharegpt_convert.c - see conversation.h. */
#include "input/trace/conversation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/rng/rng.h"
#include "input/table/table.h"

struct sharegpt_part {
	size_t talk, row;
	int64_t number;
};

struct sharegpt_talk {
	struct str id;
	size_t first, n; /* parts */
};

/* A message of the file, its text still escaped in the arena. */
struct sharegpt_line {
	int role; /* enum speaker, or -1: unknown */
	struct str from, value;
};

struct converting {
	const struct sharegpt_convert_opts *o;
	struct table *table;
	struct sharegpt_part *part;
	struct sharegpt_talk *talk;
	size_t n_talks;
	struct conversations *out;
	struct sharegpt_converted *count;
	struct arena names;
	/* of one conversation */
	struct arena scratch;
	struct sharegpt_line *line;
	size_t n, cap;
	struct buf text;
};

static int refuse(const struct converting *x, size_t row, struct err *e, const char *what)
{
	struct buf where = { 0 };

	table_where(x->table, row, &where);
	err_set(e, ERR_RUN, "%s: %s", where.data, what);
	buf_release(&where);
	return -1;
}

/* ---- which item belongs to which conversation ---- */

/* "abc_12" is part 12 of "abc"; an id that is not like this is a conversation of its own. */
static int64_t split_id(struct str *id)
{
	const char *mark = memrchr(id->p, '_', id->n);
	struct str digits = { 0 };
	int64_t number;

	if (mark)
		digits = (struct str){ mark + 1, (size_t)(id->p + id->n - mark) - 1 };
	if (!mark || mark == id->p || !str_to_i64(digits, &number))
		return 0;
	id->n = (size_t)(mark - id->p);
	return number;
}

static int by_talk(const void *a, const void *b)
{
	const struct sharegpt_part *x = a, *y = b;

	if (x->talk != y->talk)
		return x->talk < y->talk ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int name_parts(struct converting *x, struct err *e)
{
	struct map ids = { 0 };
	size_t n = table_rows(x->table);
	int rc = 0;

	x->part = mem_array(n, sizeof(*x->part));
	x->talk = mem_array(n, sizeof(*x->talk));
	for (size_t row = 0; rc == 0 && row < n; row++) {
		struct json_slice item, v;
		uint64_t talk = x->n_talks;
		struct str id;

		rc = table_row(x->table, row, &item, e);
		if (rc == 0 && (!json_member(item, "id", &v) || v.kind != JSON_STRING))
			rc = refuse(x, row, e, "\"id\" must be a text");
		if (rc < 0)
			break;
		buf_reset(&x->text);
		json_unescape(&x->text, v.raw);
		id = arena_str(&x->names, buf_str(&x->text));
		x->part[row] = (struct sharegpt_part){ .row = row, .number = split_id(&id) };
		if (!map_get(&ids, id, &talk)) {
			map_put(&ids, id, talk);
			x->talk[x->n_talks++].id = id;
		}
		x->part[row].talk = talk;
	}
	map_release(&ids);
	x->count->items = n;
	if (rc < 0)
		return -1;
	qsort(x->part, n, sizeof(*x->part), by_talk);
	for (size_t i = 0; i < n; i++) {
		struct sharegpt_talk *t = &x->talk[x->part[i].talk];

		t->first = t->n++ ? t->first : i;
	}
	return 0;
}

/* ---- one conversation ---- */

static int role_of(struct str from)
{
	static const struct { const char *name; enum speaker role; } known[] = {
		{ "human", SPEAKER_USER }, { "user", SPEAKER_USER }, { "gpt", SPEAKER_ASSISTANT },
		{ "bing", SPEAKER_ASSISTANT }, { "chatgpt", SPEAKER_ASSISTANT },
		{ "bard", SPEAKER_ASSISTANT }, { "system", SPEAKER_SYSTEM },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_is(from, known[i].name))
			return (int)known[i].role;
	return -1;
}

static int add_line(struct converting *x, size_t row, struct json_slice message, struct err *e)
{
	struct json_slice from, value;

	if (!json_member(message, "from", &from) || from.kind != JSON_STRING ||
	    !json_member(message, "value", &value) || value.kind != JSON_STRING)
		return refuse(x, row, e, "a message of \"conversations\" needs the texts \"from\" and "
			      "\"value\"");
	x->line = mem_room(x->line, x->n, &x->cap, sizeof(*x->line));
	x->line[x->n++] = (struct sharegpt_line){
		.role = role_of(from.raw), .from = arena_str(&x->scratch, from.raw),
		.value = arena_str(&x->scratch, value.raw),
	};
	return 0;
}

static int join(struct converting *x, const struct sharegpt_talk *t, struct err *e)
{
	x->n = 0;
	arena_release(&x->scratch);
	for (size_t i = t->first; i < t->first + t->n; i++) {
		struct json_slice item, list, message, from;
		bool is_first = true;
		struct json_iter it;

		if (table_row(x->table, x->part[i].row, &item, e) < 0)
			return -1;
		if (!json_member(item, "conversations", &list) || list.kind != JSON_ARRAY)
			return refuse(x, x->part[i].row, e, "\"conversations\" must be a list");
		it = json_iter(list);
		for (; json_each(&it, NULL, &message) == 1; is_first = false) {
			if (is_first && x->n && json_member(message, "from", &from) &&
			    str_eq(from.raw, x->line[x->n - 1].from))
				continue;
			if (add_line(x, x->part[i].row, message, e) < 0)
				return -1;
		}
	}
	return 0;
}

static int64_t characters(struct str text)
{
	int64_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return n;
}

/* Counts why a message is not taken, or adds it to the last conversation. */
static bool take_line(struct converting *x, const struct sharegpt_line *line, size_t taken)
{
	const struct sharegpt_convert_opts *o = x->o;
	struct str text;
	int64_t n;

	if (line->role != (taken % 2 ? SPEAKER_ASSISTANT : SPEAKER_USER)) {
		x->count->not_alternating++;
		return false;
	}
	buf_reset(&x->text);
	json_unescape(&x->text, line->value);
	text = buf_str(&x->text);
	n = characters(text);
	if ((o->min_content_len && n < o->min_content_len) ||
	    (o->max_content_len && n > o->max_content_len)) {
		x->count->wrong_length++;
		return false;
	}
	if (!o->any_language && (size_t)n < text.n) { /* some character has several bytes */
		x->count->wrong_language++;
		return false;
	}
	conversations_add_message(x->out, (enum speaker)line->role)->text =
		arena_str(&x->out->arena, text);
	return true;
}

/* Removes the latest conversation. */
static void take_back(struct conversations *c)
{
	c->n_messages = c->v[--c->n].first;
}

static int convert(struct converting *x, const struct sharegpt_talk *t, struct err *e)
{
	size_t taken = 0, skipped;

	if (join(x, t, e) < 0)
		return -1;
	if (x->n == 0)
		return 0;
	x->count->joined++;
	if ((int64_t)x->n < x->o->min_turns) {
		x->count->too_short++;
		return 0;
	}
	for (size_t i = 0; i < x->n; i++) {
		char text[160];

		if (x->line[i].role >= 0)
			continue;
		snprintf(text, sizeof(text), "\"from\": unknown speaker '%.*s'",
			 (int)(x->line[i].from.n < 80 ? x->line[i].from.n : 80), x->line[i].from.p);
		return refuse(x, x->part[t->first].row, e, text);
	}
	skipped = x->line[0].role != SPEAKER_USER; /* it still counts for max_turns, as upstream */
	conversations_add(x->out, arena_str(&x->out->arena, t->id));
	for (size_t i = skipped; i < x->n; i++) {
		if (x->o->max_turns && (int64_t)i >= x->o->max_turns)
			break;
		if (!take_line(x, &x->line[i], taken++)) {
			take_back(x->out);
			return 0;
		}
	}
	if (!taken)
		take_back(x->out);
	return 0;
}

/* A sample of max_items, from the generator's state after the shuffle. */
static void draw(struct converting *x, struct pyrandom *rng)
{
	struct conversations *c = x->out;
	size_t k = (size_t)x->o->max_items, *which;
	struct conversation *kept;

	x->count->kept = c->n;
	if (!k || c->n <= k)
		return;
	which = mem_array(k, sizeof(*which));
	kept = mem_array(k, sizeof(*kept));
	pyrandom_sample(rng, c->n, which, k);
	for (size_t i = 0; i < k; i++)
		kept[i] = c->v[which[i]];
	memcpy(c->v, kept, k * sizeof(*kept));
	c->n = k;
	free(which);
	free(kept);
}

int sharegpt_convert(const char *path, const struct sharegpt_convert_opts *o,
		     struct conversations *out, struct sharegpt_converted *count, struct err *e)
{
	static const char *const columns[] = { "id", "conversations", NULL };
	const struct table_opts opts = {
		.columns = columns, .cancel = o->cancel,
		.ending = file_is_stream(path) ? ".json" : NULL,
	};
	struct converting x = { .o = o, .out = out, .count = count };
	struct pyrandom rng;
	size_t *order;
	int rc;

	assert(!out->n);
	*count = (struct sharegpt_converted){ 0 };
	x.table = table_open(path, &opts, e);
	rc = x.table ? name_parts(&x, e) : -1;
	order = mem_array(x.n_talks, sizeof(*order));
	for (size_t i = 0; i < x.n_talks; i++)
		order[i] = i;
	pyrandom_seed(&rng, o->seed);
	pyrandom_shuffle(&rng, order, x.n_talks, sizeof(*order));
	for (size_t i = 0; rc == 0 && i < x.n_talks; i++)
		rc = convert(&x, &x.talk[order[i]], e);
	if (rc == 0 && !out->n)
		rc = err_set(e, ERR_RUN, "%s: no conversation passes: %zu have too few turns, %zu do not "
			     "alternate between user and assistant, %zu have a message of another length, "
			     "%zu one that is not ASCII", path, count->too_short, count->not_alternating,
			     count->wrong_length, count->wrong_language);
	if (rc == 0)
		draw(&x, &rng);
	table_close(x.table);
	arena_release(&x.names);
	arena_release(&x.scratch);
	buf_release(&x.text);
	free(x.part);
	free(x.talk);
	free(x.line);
	free(order);
	return rc;
}
