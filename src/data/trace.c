/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - traces of production servers, replayed: arrivals, lengths and shared beginnings;
 * conversations spec 6.
 *
 * The file is walked over once for times and lengths (trace_rows.h), once more in the order of
 * time for what a cache can know, and a last time, some rows at a time, for the prompts. So
 * memory holds 64 bytes a row and 24 for each beginning that is told apart; prompts go where
 * those of every set go (plan/workload.h).
 */
#include "data/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "data/trace_blocks.h"
#include "data/trace_content.h"
#include "data/trace_ids.h"
#include "data/trace_rows.h"

#define AT_ONCE 256
#define AT_ONCE_TOKENS (4u << 20)
#define OWN_BLOCK 512 /* tokens that are drawn at once where there are no ids */

/* A request that is being made. */
struct item {
	struct trace_prompt prompt;
	size_t seed_at;        /* of its ids in trace.seed */
	size_t shared;         /* tokens that other prompts have, too */
	struct ids ids, again; /* drawn, and what their text encodes to */
	struct buf out;        /* the prompt as it is sent */
	bool is_made;          /* of blocks: not content of its own */
	bool is_exact;
	struct sample sample;
};

struct trace {
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
	struct item item[AT_ONCE];
	size_t n;
	size_t n_made, n_exact;
};

/* ---- ids ---- */

static void add_seed(struct trace *t, uint64_t seed)
{
	if (t->n_seeds == t->seeds_cap) {
		t->seeds_cap = t->seeds_cap ? t->seeds_cap * 2 : 4096;
		t->seed = mem_grow(t->seed, t->seeds_cap, sizeof(*t->seed));
	}
	t->seed[t->n_seeds++] = seed;
}

/* The ids that its length needs; left_over: how many more there are. */
static int read_ids(struct trace *t, size_t i, const struct trace_row *row,
		    struct trace_prompt *out, uint64_t *left_over, struct err *e)
{
	size_t block = t->maker.block, wanted = ((size_t)row->input + block - 1) / block;
	struct json_iter it = json_iter(row->ids);
	struct json_slice v;
	struct str key;
	struct buf name = { 0 };
	int rc = 0;

	*out = (struct trace_prompt){ .name = row->name, .tokens = (size_t)row->input };
	*left_over = 0;
	if (row->ids.kind != JSON_ARRAY || !row->ids.raw.p)
		return 0;
	while (rc == 0 && json_each(&it, &key, &v) == 1) {
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

/* A turn that is due after another one counts as sent right when that could have ended. */
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

static void count_row(struct trace *t, const struct trace_row *row, const struct trace_prompt *p,
		      uint64_t left_over)
{
	size_t named = p->n * t->maker.block;

	t->facts->left_ids += left_over;
	if (row->ids.kind == JSON_ARRAY && row->ids.raw.p && named < (size_t)row->input) {
		t->facts->short_rows++;
		t->facts->own_tokens += (uint64_t)row->input - named;
	}
}

static int walk_in_time(struct trace *t, const struct at *at, struct err *e)
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

static int find_sharing(struct trace *t, struct err *e)
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

static bool put_list(struct item *it)
{
	buf_add_char(&it->out, '[');
	for (size_t k = 0; k < it->ids.count; k++)
		trace_ids_put(&it->out, it->ids.id[k]);
	buf_add_char(&it->out, ']');
	it->sample.kind = PROMPT_JSON;
	it->sample.prompt_len = (uint32_t)it->ids.count;
	return !it->out.is_over;
}

/* The whole prompt is decoded once; what a server makes of it is the same at most. */
static bool put_text(const struct trace *t, struct item *it)
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
	struct trace *t = self;
	struct item *it = &t->item[i];

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

/* vLLM and what speaks its API; others know no such key. */
static bool takes_min_tokens(const struct dataset_env *env)
{
	static const char *const names[] = { "vllm", "openai", "openai-chat" };

	for (size_t i = 0; env->backend && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(env->backend, names[i]) == 0)
			return !env->is_offline;
	return !env->backend;
}

static int draft(struct trace *t, size_t at, struct err *e)
{
	const struct trace_kept *k = &t->rows.v[at];
	struct item *it = &t->item[t->n];
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
		return trace_refuse(&t->source, k->row, e, "the length of a text is known too late for "
				    "--max-model-len to leave whole sessions out; leave out the option or "
				    "--sessions");
	if (it->is_made ? read_ids(t, k->row, &row, &it->prompt, &left_over, e) < 0
			: trace_content_take(&t->source, &row, t->env, &t->lot, &it->sample, e) < 0)
		return -1;
	trace_content_overrides(&row, takes_min_tokens(t->env), it->sample.output_len, &overrides);
	it->sample.overrides = arena_str(&t->lot, buf_str(&overrides));
	buf_release(&overrides);
	if (t->w->sessions && k->parent == TRACE_NO_PARENT && row.id.raw.p) {
		buf_reset(&t->source.text);
		trace_ids_name(row.id, &t->source.text);
		t->w->sessions->session[k->session].id =
			arena_str(&t->w->arena, buf_str(&t->source.text));
	}
	t->n++;
	return 0;
}

static int keep(struct trace *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		struct item *it = &t->item[i];
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

/* Rows from *next on, as many as are made together. */
static int make_lot(struct trace *t, size_t *next, struct err *e)
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

/* Turns that are scheduled wait for their parent as well; others come so long after it. */
static void fill_turn(const struct trace *t, size_t i, struct sessions *s)
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

static void fill_sessions(struct trace *t)
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

/* Text is made of ids that begin words where there are enough of them. */
static int open_maker(struct trace *t, struct err *e)
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

static void note(const struct trace *t)
{
	const struct trace_facts *f = t->facts;

	if (f->short_rows)
		dataset_note(t->w, "%s: %" PRIu64 " rows have fewer ids than their lengths need; %s",
			     t->o->path, f->short_rows, t->o->is_trace_short ?
			     "their prompts are shorter (--compat timed-trace-short)" :
			     "the rest of their prompts is shared with nothing");
	if (f->left_ids)
		dataset_note(t->w, "%s: %" PRIu64 " ids stand for more tokens than their rows have and are "
			     "not used", t->o->path, f->left_ids);
	if (t->chains.is_full)
		dataset_note(t->w, "%s: the ideal hit rate is not known: more than %u beginnings of prompts "
			     "differ (TRACE_CHAINS_MAX)", t->o->path, TRACE_CHAINS_MAX);
}

static int make_all(struct trace *t, struct err *e)
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

static void finish(struct trace *t)
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
	struct trace *t = mem_alloc(sizeof(*t));
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
