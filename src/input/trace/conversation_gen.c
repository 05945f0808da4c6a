/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conversation_gen.c - conversations generated from texts and distributions of lengths, with the
 * draws and the texts of upstream's benchmarks/multi_turn.
 *
 * The texts are token ids T, all files one after the other. Draws, from numpy.random as the caller
 * has seeded it: messages of every conversation, own prefix of every conversation, the common
 * prefix once, and then for each conversation lengths of the user's messages and of the answers,
 * one of each per message, of which every second one is used. Nothing of T is drawn: `base` moves
 * on, so that conversations differ.
 *
 * A user's message is "<j> is a nice number... " (before it, in the first one, the common prefix),
 * the own prefix in the first one, the instruction, and ids of T until the length is reached. The
 * common prefix counts as part of that length and the own prefix does not, as in upstream. An
 * answer is the beginning of T; only its length matters.
 */
#include "input/trace/conversation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/ids.h"
#include "input/token/tokenizer.h"

#define INSTRUCTION "Please rewrite the following text and add more content: "
#define MESSAGES_MAX 65536 /* of one conversation: turns are numbered in 16 bits */

struct generator {
	const struct json_file *file;
	struct json_slice object;
	int64_t n;
	struct distribution num_turns, num_tokens, prefix, common, answer;
};

struct generation {
	const struct generator *g;
	const struct conversations_opts *o;
	struct conversations *out;
	struct ids ids;      /* T */
	int64_t base;
	struct str common;   /* common prefix as text */
	int64_t instruction; /* its tokens */
	int64_t *turns, *prefix, *user, *answer;
	struct buf text;
};

/* ---- what is asked for ---- */

static int refuse(const struct generator *g, const char *key, struct err *e, const char *what)
{
	struct json_slice v;
	const char *at = json_member(g->object, key, &v) ? v.raw.p : g->object.raw.p;

	return json_file_refuse(g->file, at, key, e, "%s", what);
}

static int read_distribution(struct generator *g, const char *section, const char *name,
			     struct arena *a, struct distribution *d, struct err *e)
{
	const char *key = arena_printf(a, "%s.%s", section, name);
	struct json_slice part, v;

	if (!json_member(g->object, section, &part) || part.kind != JSON_OBJECT)
		return refuse(g, section, e, "expected an object of distributions");
	if (json_member(part, name, &v))
		return distribution_read(g->file, key, v, a, d, e);
	if (d != &g->common)
		return json_file_refuse(g->file, part.raw.p, key, e, "is missing");
	*d = (struct distribution){ .key = key, .shown = STR("Constant[0]") };
	return 0;
}

static int read_generator(struct generator *g, struct conversations *out, struct err *e)
{
	struct arena *a = &out->arena;
	struct json_slice v;

	if (!json_member(g->object, "num_conversations", &v) || v.kind != JSON_INT ||
	    !json_to_i64(v, &g->n) || g->n < 1 || g->n > REQUESTS_MAX)
		return refuse(g, "num_conversations", e, "expected a whole number above 0");
	out->params.prints_stats = json_member(g->object, "print_stats", &v) &&
				   v.kind == JSON_TRUE;
	if (json_member(g->object, "print_stats", &v) && v.kind != JSON_TRUE && v.kind != JSON_FALSE)
		return refuse(g, "print_stats", e, "expected true or false");
	if (read_distribution(g, "prompt_input", "num_turns", a, &g->num_turns, e) < 0 ||
	    read_distribution(g, "prompt_input", "num_tokens", a, &g->num_tokens, e) < 0 ||
	    read_distribution(g, "prompt_input", "common_prefix_num_tokens", a, &g->common, e) < 0 ||
	    read_distribution(g, "prompt_input", "prefix_num_tokens", a, &g->prefix, e) < 0 ||
	    read_distribution(g, "prompt_output", "num_tokens", a, &g->answer, e) < 0)
		return -1;
	out->params.num_turns = g->num_turns.shown;
	out->params.num_tokens = g->num_tokens.shown;
	out->params.common_prefix_num_tokens = g->common.shown;
	out->params.prefix_num_tokens = g->prefix.shown;
	out->params.output_num_tokens = g->answer.shown;
	return 0;
}

/* ---- texts ---- */

/* "\r\n" and "\r" are "\n", as Python reads text files. */
static void join_line_ends(struct buf *text)
{
	size_t to = 0;

	for (size_t i = 0; i < text->len; i++) {
		char c = text->data[i];

		if (c == '\r' && i + 1 < text->len && text->data[i + 1] == '\n')
			continue;
		text->data[to++] = c == '\r' ? '\n' : c;
	}
	text->len = to;
	if (text->data)
		text->data[to] = 0;
}

static int add_file(struct generation *gen, const char *path, struct err *e)
{
	const struct tokenizer *t = gen->o->tokenizer;
	struct buf text = { .limit = TOKEN_TEXT_BYTES_MAX };
	int rc = file_read(path, TOKEN_TEXT_BYTES_MAX, &text, e);

	if (rc == 0 && !utf8_is_valid(buf_str(&text)))
		rc = err_set(e, ERR_PARSE, "%s: the text is not UTF-8", path);
	join_line_ends(&text);
	if (rc == 0 && tokenizer_encode(t, buf_str(&text), false, &gen->ids) < 0)
		rc = tokenizer_refuse(t, buf_str(&text), e);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "%s: text_files", gen->g->file->path) : 0;
}

static int add_files(struct generation *gen, struct err *e)
{
	const struct generator *g = gen->g;
	struct buf names = { 0 }, name = { 0 };
	struct json_slice list, v;
	struct json_iter it;
	int rc = 0;

	if (!json_member(g->object, "text_files", &list) || list.kind != JSON_ARRAY)
		return refuse(g, "text_files", e, "expected a list of names of text files");
	it = json_iter(list);
	while (rc == 0 && json_each(&it, NULL, &v) == 1) {
		buf_reset(&name);
		json_unescape(&name, v.raw);
		if (v.kind != JSON_STRING || !name.len || strlen(name.data) != name.len) {
			rc = json_file_refuse(g->file, v.raw.p, "text_files", e,
					      "expected names of text files");
			break;
		}
		buf_printf(&names, "%s%s", names.len ? ", " : "", name.data);
		rc = add_file(gen, name.data, e);
	}
	if (rc == 0 && !names.len)
		rc = refuse(g, "text_files", e, "the list is empty");
	gen->out->params.text_files = arena_take(&gen->out->arena, &names);
	buf_release(&name);
	return rc;
}

/* Appends the text of T[from:to]; j below 0: of no conversation. */
static int add_text(struct generation *gen, const struct distribution *field, int64_t j, int64_t t,
		    int64_t from, int64_t to, struct err *e)
{
	char where[64] = "the prefix";

	if (to <= from)
		return 0;
	if (j >= 0)
		snprintf(where, sizeof(where), "conversation %" PRId64 ", turn %" PRId64, j, t);
	if (to >= (int64_t)gen->ids.count)
		return json_file_refuse(gen->g->file, gen->g->object.raw.p, field->key, e,
					"%s needs offsets %" PRId64 " to %" PRId64 " of the texts, which "
					"have %zu tokens; name more text_files, or ask for less with a "
					"\"max\"", where, from, to, gen->ids.count);
	if (tokenizer_decode(gen->o->tokenizer, gen->ids.id + from, (size_t)(to - from), false,
			     &gen->text) < 0)
		return err_set(e, ERR_LIMIT, "%s: %s: %s has more text than a buffer holds",
			       gen->g->file->path, field->key, where);
	return 0;
}

/* ---- lengths ---- */

static int sample(const struct generation *gen, const struct distribution *d, int64_t n,
		  int64_t least, int64_t most, int64_t *out, struct err *e)
{
	distribution_sample(d, gen->o->np, (size_t)n, out);
	for (int64_t i = 0; i < n; i++) {
		if (out[i] > most)
			return json_file_refuse(gen->g->file, gen->g->object.raw.p, d->key, e,
						"the value drawn is %" PRId64 ", above %" PRId64 "; \"max\" "
						"limits the values", out[i], most);
		if (out[i] < least)
			out[i] = least;
	}
	return 0;
}

static int draw_lengths(struct generation *gen, struct err *e)
{
	const struct generator *g = gen->g;
	int64_t most = 0, common;

	gen->turns = mem_array((size_t)g->n, sizeof(*gen->turns));
	gen->prefix = mem_array((size_t)g->n, sizeof(*gen->prefix));
	if (sample(gen, &g->num_turns, g->n, 2, MESSAGES_MAX, gen->turns, e) < 0 ||
	    sample(gen, &g->prefix, g->n, 0, LENGTH_TOKENS_MAX, gen->prefix, e) < 0 ||
	    sample(gen, &g->common, 1, 0, LENGTH_TOKENS_MAX, &common, e) < 0)
		return -1;
	for (int64_t j = 0; j < g->n; j++) {
		gen->turns[j] += gen->turns[j] % 2;
		most = gen->turns[j] > most ? gen->turns[j] : most;
	}
	gen->user = mem_array((size_t)most, sizeof(*gen->user));
	gen->answer = mem_array((size_t)most, sizeof(*gen->answer));
	if (common == 0)
		return 0;
	/* Two tokens less, and a full stop; of one token upstream makes the whole text. */
	if (add_text(gen, &g->common, -1, 0, 0, common - 2, e) < 0)
		return -1;
	buf_add_char(&gen->text, '.');
	gen->common = arena_str(&gen->out->arena, buf_str(&gen->text));
	gen->base = common;
	return 0;
}

/* ---- conversations ---- */

static int add_user(struct generation *gen, int64_t j, int64_t t, int64_t longest, struct err *e)
{
	const struct generator *g = gen->g;
	int64_t left, begin;
	size_t taken;

	buf_reset(&gen->text);
	if (t == 0)
		buf_add_str(&gen->text, gen->common);
	buf_printf(&gen->text, "%" PRId64 " is a nice number... ", j);
	taken = tokenizer_count(gen->o->tokenizer, buf_str(&gen->text), false);
	if (taken == SIZE_MAX)
		return tokenizer_refuse(gen->o->tokenizer, buf_str(&gen->text), e);
	left = gen->user[t] - (int64_t)taken;
	if (t == 0 && gen->prefix[j] > 0) {
		buf_printf(&gen->text, "%" PRId64 ", ", j);
		if (add_text(gen, &g->prefix, j, t, gen->base, gen->base + gen->prefix[j], e) < 0)
			return -1;
		gen->base += gen->prefix[j];
	}
	buf_add_text(&gen->text, INSTRUCTION);
	left -= gen->instruction;
	begin = gen->base + t * longest;
	if (add_text(gen, &g->num_tokens, j, t, begin, begin + left, e) < 0)
		return -1;
	conversations_add_message(gen->out, SPEAKER_USER)->text =
		arena_str(&gen->out->arena, buf_str(&gen->text));
	return 0;
}

static int add_answer(struct generation *gen, int64_t j, int64_t t, struct err *e)
{
	buf_reset(&gen->text);
	if (add_text(gen, &gen->g->answer, j, t, 0, gen->answer[t], e) < 0)
		return -1;
	conversations_add_message(gen->out, SPEAKER_ASSISTANT)->text =
		arena_str(&gen->out->arena, buf_str(&gen->text));
	return 0;
}

static int add_conversation(struct generation *gen, int64_t j, struct err *e)
{
	const struct generator *g = gen->g;
	int64_t longest = 0, n = gen->turns[j];

	if (gen->o->cancel && atomic_load(gen->o->cancel))
		return err_set(e, ERR_CANCELLED, "interrupted before the benchmark began");
	if (sample(gen, &g->num_tokens, n, gen->instruction, LENGTH_TOKENS_MAX, gen->user, e) < 0 ||
	    sample(gen, &g->answer, n, 1, LENGTH_TOKENS_MAX, gen->answer, e) < 0)
		return -1;
	conversations_add(gen->out, str_of(arena_printf(&gen->out->arena, "CONV_ID_%" PRId64, j)));
	for (int64_t t = 0; t < n; t++)
		longest = gen->user[t] > longest ? gen->user[t] : longest;
	for (int64_t t = 0; t < n; t++)
		if ((t % 2 ? add_answer(gen, j, t, e) : add_user(gen, j, t, longest, e)) < 0)
			return -1;
	gen->base += n;
	return 0;
}

int conversations_generate(const struct json_file *f, struct json_slice object,
			   const struct conversations_opts *o, struct conversations *out,
			   struct err *e)
{
	struct generator g = { .file = f, .object = object };
	struct generation gen = { .g = &g, .o = o, .out = out };
	int rc;

	assert(!out->n);
	out->params.is_generated = true;
	if (!o->tokenizer)
		return err_set(e, ERR_USAGE, "%s: a tokenizer is needed to make up conversations", f->path);
	rc = read_generator(&g, out, e);
	if (rc == 0)
		rc = add_files(&gen, e);
	if (rc == 0) {
		gen.instruction = (int64_t)tokenizer_count(o->tokenizer, STR(INSTRUCTION), false);
		rc = draw_lengths(&gen, e);
	}
	for (int64_t j = 0; rc == 0 && j < g.n; j++)
		rc = add_conversation(&gen, j, e);
	free(gen.turns);
	free(gen.prefix);
	free(gen.user);
	free(gen.answer);
	ids_release(&gen.ids);
	buf_release(&gen.text);
	return rc;
}
