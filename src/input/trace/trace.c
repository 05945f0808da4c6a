/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - replay of traces from production servers: arrivals, lengths and shared beginnings;
 * conversations spec 6.
 *
 * The file is read once for times and lengths (trace_rows.h), again in the order of time for what a
 * cache can contain, and a last time, some rows at a time, for the prompts. So memory holds 64
 * bytes a row and 24 for each distinct beginning; prompts go where those of every set go
 * (plan/workload.h).
 */
#include "input/trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "input/encode/ids.h"
#include "input/token/tokenizer.h"
#include "input/trace/trace_internal.h"

/*
 * Prompts that share blocks exactly as in a trace, and how much of them a cache can contain;
 * conversations spec 6.3.
 *
 * A block has a name: its id in the trace, or, where ids are too few, the row and its index in it.
 * The name, the block's size and a salt seed a generator, and the tokens are drawn from the allowed
 * ids. The n-th token never depends on how many are wanted, so a shortened block is the beginning
 * of the whole one.
 */
struct trace_maker {
	uint32_t *allowed;    /* token ids, ascending; freed by its owner */
	size_t n_allowed;
	size_t block;         /* tokens of one block; at least 1 */
	uint64_t ids_of, rows_of; /* hashes of kind, salt and size, the beginnings of names */
};

/* A prompt: blocks with ids, then own blocks up to `tokens`. */
struct trace_prompt {
	const uint64_t *seed; /* of the blocks with ids */
	size_t n;
	uint32_t name;        /* of the row, for blocks of its own */
	size_t tokens;
};

/* ---- what a cache without a limit would know ---- */

/*
 * The beginnings of the prompts so far, each as a hash of the blocks up to there. An id need not
 * identify its beginning: equal blocks after unequal ones are not found. Zeroed is a valid empty
 * one.
 */
struct trace_chains {
	uint64_t *key;
	uint32_t *tokens;     /* the longest beginning that ends in this block; top bit: repeated */
	size_t cap, count;
	bool is_full;         /* TRACE_CHAINS_MAX was reached: what is said is too little */
};

/* ---- blocks ---- */

#define REPEATED (1u << 31)

_Static_assert(LENGTH_TOKENS_MAX < REPEATED, "a bit is left above a number of tokens");

/* ---- tokens ---- */

static uint64_t base_of(const char *kind, const char *salt, size_t block)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%s:%.64s:%zu", kind, salt, block);

	return xxh64((struct str){ text, (size_t)n }, 0);
}

/* Sets all but the ids. */
static void trace_maker_init(struct trace_maker *m, size_t block, const char *salt)
{
	m->block = block;
	m->ids_of = base_of("trace-block", salt, block);
	m->rows_of = base_of("trace-fill", salt, block);
}

/* The seed of the block with that id. */
static uint64_t trace_block_seed(const struct trace_maker *m, struct str id)
{
	return xxh64(id, m->ids_of);
}

/* The seed of a block that no other row has. */
static uint64_t own_seed(const struct trace_maker *m, uint32_t row, size_t index)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "%u:%zu", row, index);

	return xxh64((struct str){ text, (size_t)n }, m->rows_of);
}

static void make_block(const struct trace_maker *m, uint64_t seed, size_t tokens, struct ids *out)
{
	uint32_t *to = ids_reserve(out, tokens);
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < tokens; k++)
		to[k] = m->allowed[pcg64_bounded(&g, 0, (int64_t)m->n_allowed - 1)];
	out->count += tokens;
}

/* Appends its tokens. Thread-safe. */
static void trace_prompt_make(const struct trace_maker *m, const struct trace_prompt *p,
			      struct ids *out)
{
	size_t left = p->tokens;

	for (size_t b = 0; left; b++) {
		size_t tokens = left < m->block ? left : m->block;

		make_block(m, b < p->n ? p->seed[b] : own_seed(m, p->name, b - p->n), tokens, out);
		left -= tokens;
	}
}

/* ---- beginnings ---- */

static size_t place_of(const struct trace_chains *c, uint64_t key)
{
	size_t i = (size_t)key & (c->cap - 1); /* a hash already */

	while (c->key[i] && c->key[i] != key)
		i = (i + 1) & (c->cap - 1);
	return i;
}

static void grow(struct trace_chains *c)
{
	struct trace_chains old = *c;

	c->cap = old.cap ? old.cap * 2 : 1024;
	c->key = mem_array(c->cap, sizeof(*c->key));
	c->tokens = mem_array(c->cap, sizeof(*c->tokens));
	for (size_t i = 0; i < old.cap; i++) {
		size_t at = old.key[i] ? place_of(c, old.key[i]) : 0;

		if (!old.key[i])
			continue;
		c->key[at] = old.key[i];
		c->tokens[at] = old.tokens[i];
	}
	free(old.key);
	free(old.tokens);
}

/* The hash of the blocks up to and including this one; never 0. */
static uint64_t chain(uint64_t before, uint64_t seed)
{
	const uint64_t pair[2] = { before, seed };
	uint64_t key = xxh64((struct str){ (const char *)pair, sizeof(pair) }, 0);

	return key ? key : 1;
}

static size_t end_of(const struct trace_maker *m, const struct trace_prompt *p, size_t b)
{
	return p->tokens / m->block > b ? (b + 1) * m->block : p->tokens;
}

static size_t blocks_of(const struct trace_maker *m, const struct trace_prompt *p)
{
	size_t used = p->tokens / m->block + (p->tokens % m->block != 0);

	return used < p->n ? used : p->n;
}

static void put(struct trace_chains *c, uint64_t key, size_t end)
{
	size_t at;

	if (c->count * 2 >= c->cap)
		grow(c);
	at = place_of(c, key);
	c->key[at] = key;
	c->tokens[at] = (uint32_t)end;
	c->count++;
}

/*
 * Returns the number of tokens at p's beginning that an earlier prompt had; then adds p's
 * beginnings. Only blocks with ids count. Prompts come in the order of time.
 */
static size_t trace_chains_add(struct trace_chains *c, const struct trace_maker *m,
			       const struct trace_prompt *p)
{
	size_t known = 0, n = blocks_of(m, p);
	uint64_t key = 0;

	for (size_t b = 0; b < n; b++) {
		size_t end = end_of(m, p, b), at, had;

		key = chain(key, p->seed[b]);
		at = c->cap ? place_of(c, key) : 0;
		if (c->cap && c->key[at]) {
			had = c->tokens[at] & ~REPEATED;
			known = end < had ? end : had;
			c->tokens[at] = (uint32_t)(end > had ? end : had) | REPEATED;
		} else if (c->count < TRACE_CHAINS_MAX) {
			put(c, key, end);
		} else {
			c->is_full = true;
			break;
		}
	}
	return known;
}

/* The number of tokens at p's beginning that any other added prompt has, too. */
static size_t trace_chains_shared(const struct trace_chains *c, const struct trace_maker *m,
				  const struct trace_prompt *p)
{
	size_t shared = 0, n = c->cap ? blocks_of(m, p) : 0;
	uint64_t key = 0;

	for (size_t b = 0; b < n; b++) {
		size_t at;

		key = chain(key, p->seed[b]);
		at = place_of(c, key);
		if (!c->key[at] || !(c->tokens[at] & REPEATED))
			break;
		shared = end_of(m, p, b);
	}
	return shared;
}

static void trace_chains_release(struct trace_chains *c)
{
	free(c->key);
	free(c->tokens);
	*c = (struct trace_chains){ 0 };
}

/* ---- what a row brings along ---- */

static bool trace_has_content(const struct trace_row *row)
{
	return row->text.raw.p || row->messages.raw.p || row->payload.raw.p;
}

/* The value as JSON in a body. */
static struct str json_in(struct json_slice v, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	json_put_foreign(&w, v.raw);
	return arena_take(a, &text);
}

static uint32_t count(const struct dataset_env *env, struct str text)
{
	size_t n = env->tokenizer ? tokenizer_count(env->tokenizer, text, true) : 1;

	return n < UINT32_MAX ? (uint32_t)n : 0;
}

/* The bare texts of messages: what a client can count without the template. */
static struct str texts_of(struct json_slice messages, struct arena *a)
{
	struct json_iter it = json_iter(messages);
	struct json_slice message, content;
	struct buf text = { 0 };
	struct str key;

	while (json_each(&it, &key, &message) == 1) {
		if (!json_member(message, "content", &content) || content.kind != JSON_STRING)
			continue;
		if (text.len)
			buf_add_char(&text, '\n');
		json_unescape(&text, content.raw);
	}
	return arena_take(a, &text);
}

static int take_messages(const struct dataset_env *env, struct json_slice messages,
			 struct arena *a, struct sample *out)
{
	if (!env->is_chat_backend && env->backend)
		return -1;
	out->messages = json_in(messages, a);
	out->prompt = texts_of(messages, a);
	out->kind = PROMPT_TEXT;
	out->prompt_len = count(env, out->prompt);
	return 0;
}

/*
 * Fills prompt, messages and prompt_len of a row with content. Texts are in a. ERR_RUN: a backend
 * that cannot carry it, with file and line.
 */
static int trace_content_take(const struct trace_source *s, const struct trace_row *row,
			      const struct dataset_env *env, struct arena *a, struct sample *out,
			      struct err *e)
{
	struct json_slice messages = row->messages, text = row->text;

	if (row->payload.raw.p) {
		json_member(row->payload, "messages", &messages);
		json_member(row->payload, "prompt", &text);
	}
	if (messages.raw.p && messages.kind == JSON_ARRAY) {
		if (take_messages(env, messages, a, out) == 0)
			return 0;
		return trace_refuse(s, row->name, e, "the row has messages, which --backend %s does not "
				    "take; openai-chat does", env->backend);
	}
	if (!text.raw.p || text.kind != JSON_STRING)
		return trace_refuse(s, row->name, e, "\"payload\" must have messages, or a prompt that is "
				    "a text");
	out->prompt = rows_string(text, a);
	out->kind = PROMPT_TEXT;
	out->prompt_len = count(env, out->prompt);
	return 0;
}

/* ---- keys of the body ---- */

static void put_members(struct json_writer *w, struct json_slice object, const char *const *but)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;

	while (json_each(&it, &key, &v) == 1) {
		const char *const *left_out = but;

		while (*left_out && !str_is(key, *left_out))
			left_out++;
		if (*left_out)
			continue;
		json_key_str(w, key);
		if (v.kind == JSON_STRING) {
			struct buf text = { 0 };

			json_unescape(&text, v.raw);
			json_put_str(w, buf_str(&text));
			buf_release(&text);
		} else {
			json_put_foreign(w, v.raw);
		}
	}
}

/*
 * The keys that a row adds to its body as one JSON object: min_tokens if is_min (exactly `output`
 * tokens), then tools, extra and the members of a payload. Nothing: out stays empty.
 */
static void trace_content_overrides(const struct trace_row *row, bool is_min, int64_t output,
				    struct buf *out)
{
	/* Keys that the run itself sets, and those that the sample holds already. */
	static const char *const ours[] = { "model", "stream", "stream_options", "messages", "prompt",
					    NULL };
	static const char *const none[] = { NULL };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	if (is_min)
		json_member_int(&w, "min_tokens", output);
	if (row->tools.raw.p)
		json_member_foreign(&w, "tools", row->tools.raw);
	if (row->extra.raw.p)
		put_members(&w, row->extra, none);
	if (row->payload.raw.p)
		put_members(&w, row->payload, ours);
	json_end_object(&w);
	if (out->len == 2)
		buf_reset(out);
}

/* ---- traces ---- */

#define AT_ONCE 256
#define AT_ONCE_TOKENS (4u << 20)
#define OWN_BLOCK 512 /* tokens that are drawn at once where there are no ids */

/* A request being made. */
struct trace_item {
	struct trace_prompt prompt;
	size_t seed_at;        /* of its ids in trace.seed */
	size_t shared;         /* tokens that other prompts have, too */
	struct ids ids, again; /* drawn, and what their text encodes to */
	struct buf out;        /* the prompt as it is sent */
	bool is_made;          /* of blocks: not content of its own */
	bool is_exact;
	struct sample sample;
};

struct trace_build {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct workload *w;
	struct trace_source source;
	struct trace_rows rows;
	struct trace_maker maker;
	struct trace_chains chains;
	struct trace_facts *facts;
	bool is_text;          /* prompts are sent as text */
	uint64_t *seed;        /* of ids of the rows in hand */
	size_t n_seeds, seeds_cap;
	struct arena lot;      /* texts of these rows */
	struct trace_item item[AT_ONCE];
	size_t n;
	size_t n_made, n_exact;
};

/* ---- ids ---- */

static void add_seed(struct trace_build *t, uint64_t seed)
{
	t->seed = mem_room(t->seed, t->n_seeds, &t->seeds_cap, sizeof(*t->seed));
	t->seed[t->n_seeds++] = seed;
}

/* Reads the ids that its length needs; left_over: how many more there are. */
static int read_ids(struct trace_build *t, size_t i, const struct trace_row *row,
		    struct trace_prompt *out, uint64_t *left_over, struct err *e)
{
	size_t block = t->maker.block, wanted = ((size_t)row->input + block - 1) / block;
	struct json_iter it = json_iter(row->ids);
	struct json_slice v;
	struct buf name = { 0 };
	int rc = 0;

	*out = (struct trace_prompt){ .name = row->name, .tokens = (size_t)row->input };
	*left_over = 0;
	if (row->ids.kind != JSON_ARRAY || !row->ids.raw.p)
		return 0;
	while (rc == 0 && json_each(&it, NULL, &v) == 1) {
		buf_reset(&name);
		if (!trace_ids_name(v, &name))
			rc = trace_refuse(&t->source, i, e, "\"%s\" must be a list of numbers or texts",
					  t->source.format->ids);
		else if (out->n == wanted)
			++*left_over;
		else
			add_seed(t, trace_block_seed(&t->maker, buf_str(&name)));
		out->n += rc == 0 && out->n < wanted;
	}
	buf_release(&name);
	if (t->o->is_trace_short && out->n < wanted)
		out->tokens = out->n * block;
	return rc;
}

/* ---- what a cache can know ---- */

struct at { double s; uint32_t i; };

static int by_time(const void *a, const void *b)
{
	const struct at *x = a, *y = b;

	if (x->s < y->s || x->s > y->s)
		return x->s < y->s ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

/* A turn that follows another one counts as sent as soon as that could have ended. */
static struct at *order_by_time(const struct trace_rows *r)
{
	struct at *at = mem_array(r->n, sizeof(*at));

	for (size_t i = 0; i < r->n; i++) {
		const struct trace_kept *k = &r->v[i];

		at[i] = (struct at){ k->at_s, (uint32_t)i };
		if (isnan(k->at_s))
			at[i].s = k->parent == TRACE_NO_PARENT ? 0 : at[k->parent].s;
		if (isnan(k->at_s) && !isnan(k->delay_s))
			at[i].s += k->delay_s;
	}
	qsort(at, r->n, sizeof(*at), by_time);
	return at;
}

static void count_row(struct trace_build *t, const struct trace_row *row,
		      const struct trace_prompt *p, uint64_t left_over)
{
	size_t named = p->n * t->maker.block;

	t->facts->left_ids += left_over;
	if (row->ids.kind == JSON_ARRAY && row->ids.raw.p && named < (size_t)row->input) {
		t->facts->short_rows++;
		t->facts->own_tokens += (uint64_t)row->input - named;
	}
}

static int walk_in_time(struct trace_build *t, const struct at *at, struct err *e)
{
	uint64_t hit = 0, all = 0;
	bool is_known = true;

	for (size_t k = 0; k < t->rows.n; k++) {
		size_t i = t->rows.v[at[k].i].row, known;
		struct trace_prompt p;
		struct trace_row row;
		uint64_t left_over;

		t->n_seeds = 0;
		if (dataset_go_on(t->env, e) < 0 || trace_source_row(&t->source, i, &row, e) < 0 ||
		    read_ids(t, i, &row, &p, &left_over, e) < 0)
			return -1;
		is_known &= !trace_has_content(&row);
		p.seed = t->seed;
		count_row(t, &row, &p, left_over);
		known = trace_chains_add(&t->chains, &t->maker, &p);
		hit += p.tokens && known > p.tokens - 1 ? p.tokens - 1 : known;
		all += p.tokens;
	}
	if (is_known && all && !t->chains.is_full)
		t->facts->ideal_hit_rate = (double)hit / (double)all;
	return 0;
}

static int find_sharing(struct trace_build *t, struct err *e)
{
	const struct trace_format *f = t->source.format;
	struct at *at;
	int rc;

	t->facts->ideal_hit_rate = f->is_record ? NAN : 0;
	if (!f->ids)
		return 0;
	t->facts->ideal_hit_rate = NAN;
	at = order_by_time(&t->rows);
	rc = walk_in_time(t, at, e);
	free(at);
	return rc;
}

/* ---- prompts ---- */

static bool put_list(struct trace_item *it)
{
	buf_add_char(&it->out, '[');
	for (size_t k = 0; k < it->ids.count; k++)
		trace_ids_put(&it->out, it->ids.id[k]);
	buf_add_char(&it->out, ']');
	it->sample.kind = PROMPT_JSON;
	it->sample.prompt_len = (uint32_t)it->ids.count;
	return !it->out.is_over;
}

/* The prompt is decoded as a whole, since a server sees only its text. */
static bool put_text(const struct trace_build *t, struct trace_item *it)
{
	const struct tokenizer *tokenizer = t->env->tokenizer;

	ids_reset(&it->again);
	if (tokenizer_decode(tokenizer, it->ids.id, it->ids.count, false, &it->out) < 0 ||
	    tokenizer_encode(tokenizer, buf_str(&it->out), false, &it->again) < 0)
		return false;
	it->is_exact = it->again.count >= it->shared &&
		       (it->shared == 0 || memcmp(it->again.id, it->ids.id,
						  it->shared * sizeof(*it->ids.id)) == 0);
	it->sample.kind = PROMPT_TEXT;
	it->sample.prompt_len = (uint32_t)(it->again.count +
					   tokenizer_special_per_sequence(tokenizer));
	return true;
}

static bool make_one(void *self, size_t i, unsigned worker)
{
	struct trace_build *t = self;
	struct trace_item *it = &t->item[i];

	(void)worker;
	if (!it->is_made)
		return true;
	it->prompt.seed = t->seed ? t->seed + it->seed_at : NULL; /* no row has ids */
	it->shared = t->is_text ? trace_chains_shared(&t->chains, &t->maker, &it->prompt) : 0;
	ids_reset(&it->ids);
	buf_reset(&it->out);
	trace_prompt_make(&t->maker, &it->prompt, &it->ids);
	return t->is_text ? put_text(t, it) : put_list(it);
}

/* True for vLLM and servers with its API; others do not know the key. */
static bool takes_min_tokens(const struct dataset_env *env)
{
	static const char *const names[] = { "vllm", "openai", "openai-chat" };

	for (size_t i = 0; env->backend && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(env->backend, names[i]) == 0)
			return !env->is_offline;
	return !env->backend;
}

static int draft(struct trace_build *t, size_t at, struct err *e)
{
	const struct trace_kept *k = &t->rows.v[at];
	struct trace_item *it = &t->item[t->n];
	struct trace_row row;
	struct buf overrides = { 0 };
	uint64_t left_over;

	if (trace_source_row(&t->source, k->row, &row, e) < 0)
		return -1;
	it->sample = (struct sample){
		.timestamp_s = k->at_s,
		.output_len = k->output < 0 ? t->o->trace_output_len : k->output,
	};
	it->is_made = !trace_has_content(&row);
	it->seed_at = t->n_seeds;
	if (!it->is_made && t->w->sessions && t->o->max_model_len.is_set)
		return trace_refuse(&t->source, k->row, e, "the length of a text is not known "
				    "early enough for --max-model-len to skip whole sessions; "
				    "remove that option or --sessions");
	if (it->is_made ? read_ids(t, k->row, &row, &it->prompt, &left_over, e) < 0
			: trace_content_take(&t->source, &row, t->env, &t->lot, &it->sample, e) < 0)
		return -1;
	trace_content_overrides(&row, takes_min_tokens(t->env), it->sample.output_len, &overrides);
	it->sample.overrides = arena_take(&t->lot, &overrides);
	if (t->w->sessions && k->parent == TRACE_NO_PARENT && row.id.raw.p) {
		buf_reset(&t->source.text);
		trace_ids_name(row.id, &t->source.text);
		t->w->sessions->session[k->session].id =
			arena_str(&t->w->arena, buf_str(&t->source.text));
	}
	t->n++;
	return 0;
}

static int keep(struct trace_build *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		struct trace_item *it = &t->item[i];
		struct sample *s = workload_add(t->w);

		*s = it->sample;
		if (it->is_made)
			s->prompt = buf_str(&it->out);
		s->request_id = dataset_request_id(t->w, t->env, t->w->n - 1);
		t->n_made += it->is_made;
		t->n_exact += it->is_made && it->is_exact;
		if (workload_keep(t->w, &s->prompt, e) < 0 ||
		    workload_keep(t->w, &s->messages, e) < 0 ||
		    workload_keep(t->w, &s->overrides, e) < 0)
			return -1;
	}
	return 0;
}

/* Makes requests from *next on, as many as are made together. */
static int make_lot(struct trace_build *t, size_t *next, struct err *e)
{
	size_t tokens = 0, failed;

	t->n = t->n_seeds = 0;
	arena_release(&t->lot);
	while (*next < t->rows.n && t->n < AT_ONCE && tokens < AT_ONCE_TOKENS) {
		if (dataset_go_on(t->env, e) < 0 || draft(t, *next, e) < 0)
			return -1;
		tokens += t->rows.v[*next].input;
		++*next;
	}
	failed = parallel_for(t->env->threads, t->n, make_one, t);
	if (failed < t->n)
		return trace_refuse(&t->source, t->rows.v[*next - t->n + failed].row, e, "the text of the "
				    "prompt is too long");
	return keep(t, e);
}

/* ---- sessions ---- */

static double gap_of(double s)
{
	return !(s > 0) ? 0 : s < DUE_S_MAX ? s : DUE_S_MAX;
}

/* Scheduled turns also wait for their parent; unscheduled ones come a given time after it. */
static void fill_turn(const struct trace_build *t, size_t i, struct sessions *s)
{
	const struct trace_kept *k = &t->rows.v[i];
	bool has_parent = k->parent != TRACE_NO_PARENT;
	struct turn *turn = &s->turn[i];
	double gap_s = has_parent ? k->at_s - t->rows.v[s->session[k->session].first].at_s : 0;

	*turn = (struct turn){
		.session = k->session, .history = TURN_NONE, .wait = (uint32_t)s->n_waits,
		.n_waits = has_parent,
		.number = k->depth < UINT16_MAX ? (uint16_t)k->depth : UINT16_MAX,
	};
	if (has_parent && t->o->trace_message_mode &&
	    strcmp(t->o->trace_message_mode, "delta") == 0)
		turn->history = k->parent;
	if (has_parent)
		s->waits[s->n_waits++] = k->parent;
	if (has_parent && !isnan(k->at_s)) {
		turn->is_gap_from_arrival = true;
		turn->gap_s = gap_of(gap_s);
	} else if (has_parent && !isnan(k->delay_s)) {
		turn->gap_kind = TURN_THINKS;
		turn->gap_s = gap_of(k->delay_s);
	}
	if (!has_parent)
		s->session[k->session].first = (uint32_t)i;
	s->session[k->session].n++;
}

static void fill_sessions(struct trace_build *t)
{
	struct arena *a = &t->w->arena;
	struct sessions *s;

	if (!t->rows.sessions)
		return;
	s = arena_alloc(a, sizeof(*s));
	*s = (struct sessions){
		.turn = arena_alloc(a, t->rows.n * sizeof(*s->turn)),
		.waits = arena_alloc(a, t->rows.n * sizeof(*s->waits)),
		.session = arena_alloc(a, t->rows.sessions * sizeof(*s->session)),
		.n_turns = t->rows.n, .n_sessions = t->rows.sessions,
	};
	for (size_t i = 0; i < t->rows.n; i++)
		fill_turn(t, i, s);
	for (size_t i = 0; i < s->n_sessions; i++)
		s->session[i].id = str_of(arena_printf(a, "trace-%zu", i));
	t->w->sessions = s;
}

/* ---- the set ---- */

/* Text is made of ids that begin words if there are enough of them. */
static int open_maker(struct trace_build *t, struct err *e)
{
	bool is_seeded = t->o->trace_salt && strcmp(t->o->trace_salt, "seed") == 0;
	char salt[24] = "";

	if (is_seeded)
		snprintf(salt, sizeof(salt), "%" PRIu64, t->env->seed);
	trace_maker_init(&t->maker, t->source.block ? t->source.block : OWN_BLOCK, salt);
	if (trace_ids_all(t->env->tokenizer, &t->maker.allowed, &t->maker.n_allowed, e) < 0)
		return -1;
	if (t->is_text)
		trace_ids_words(t->env->tokenizer, t->maker.allowed, &t->maker.n_allowed);
	return 0;
}

static void note(const struct trace_build *t)
{
	const struct trace_facts *f = t->facts;

	if (f->short_rows)
		dataset_note(t->w, "%s: %" PRIu64 " row%s fewer ids than the length needs; %s",
			     t->o->path, f->short_rows, f->short_rows == 1 ? " has" : "s have",
			     t->o->is_trace_short ?
			     "their prompts are shorter (--compat timed-trace-short)" :
			     "the rest of their prompts is not shared with other prompts");
	if (f->left_ids)
		dataset_note(t->w, "%s: %" PRIu64 " block ids have more tokens than their rows and are "
			     "not used", t->o->path, f->left_ids);
	if (t->chains.is_full)
		dataset_note(t->w, "%s: the ideal hit rate is not known: more than %u beginnings of prompts "
			     "differ (TRACE_CHAINS_MAX)", t->o->path, TRACE_CHAINS_MAX);
}

static int make_all(struct trace_build *t, struct err *e)
{
	size_t next = 0;

	if (trace_source_open(&t->source, t->o, t->env, e) < 0 ||
	    trace_rows_read(&t->rows, &t->source, t->o, t->env, t->w, e) < 0 ||
	    open_maker(t, e) < 0 || find_sharing(t, e) < 0)
		return -1;
	fill_sessions(t);
	while (next < t->rows.n) {
		if (make_lot(t, &next, e) < 0)
			return -1;
		dataset_progress(t->env, next, t->rows.n);
	}
	note(t);
	t->w->is_self_timed = t->rows.has_times;
	return 0;
}

static void finish(struct trace_build *t)
{
	struct trace_facts *f = t->facts;

	f->format = t->source.format->name;
	f->is_format_given = t->o->trace_format && strcmp(t->o->trace_format, "auto") != 0;
	f->block = t->source.format->ids ? t->source.block : 0;
	f->speedup = dataset_speedup(t->o);
	f->sessions = t->rows.sessions;
	f->skipped = t->rows.skipped;
	f->prefix_exact = t->is_text && t->n_made ? (double)t->n_exact / (double)t->n_made : NAN;
	t->w->trace = f;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct trace_build *t = mem_alloc(sizeof(*t));
	int rc;

	(void)rng; /* blocks are drawn from their names */
	t->o = o;
	t->env = env;
	t->w = w;
	t->facts = arena_alloc(&w->arena, sizeof(*t->facts));
	t->is_text = env->backend && !env->is_offline && strcmp(env->backend, "vllm") != 0 &&
		     strcmp(env->backend, "openai") != 0;
	rc = make_all(t, e);
	if (rc == 0)
		finish(t);
	for (size_t i = 0; i < AT_ONCE; i++) {
		ids_release(&t->item[i].ids);
		ids_release(&t->item[i].again);
		buf_release(&t->item[i].out);
	}
	trace_rows_release(&t->rows);
	trace_source_release(&t->source);
	trace_chains_release(&t->chains);
	arena_release(&t->lot);
	free(t->maker.allowed);
	free(t->seed);
	free(t);
	return rc;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	if (o->trace_start.is_set && o->trace_end.is_set && o->trace_start.v > o->trace_end.v)
		return err_set(e, ERR_USAGE, "--trace-start: expected at most --trace-end, %g, got %g",
			       o->trace_end.v, o->trace_start.v);
	if (o->speedup_gaps && !o->sessions)
		return err_set(e, ERR_USAGE, "--speedup-gaps needs --sessions: only turns have gaps");
	if (o->trace_message_mode && strcmp(o->trace_message_mode, "delta") == 0 && !o->sessions)
		return err_set(e, ERR_USAGE, "--trace-message-mode delta needs --sessions: what a turn "
			       "adds follows the answer to the turn before");
	return 0;
}

static const char *const options[] = {
	"trace-format", "trace-block-size", "trace-time-unit", "trace-output-len", "trace-origin",
	"trace-start", "trace-end", "sort-trace", "speedup", "speedup-gaps", "trace-salt", "sessions",
	"trace-message-mode", "self-timed", NULL,
};

const struct dataset dataset_trace = {
	.name = "trace", .summary = "a recorded trace: its arrivals, lengths and shared prefixes",
	.options = options, .needs_path = true, .needs_tokenizer = true, .ignores_eos = true,
	.takes_all = true, .is_whole = true, .may_have_timestamps = true, .check = check,
	.build = build,
};
