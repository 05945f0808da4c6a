/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.c - see capacity.h.
 *
 * An engine may print its size once per worker (vLLM 0.8 to 0.10 did): the smallest counts. Engines
 * are distinguished by the process name at the beginning of log lines.
 */
#include "bench/server/capacity.h"

#include <ctype.h>
#include <math.h>

#include "client/http/prometheus.h"
#include "core/base/limits.h"

#define TOLD_MAX 1e15   /* larger numbers of a server's are no sizes */
#define BLOCK_TOKENS 16 /* where a log tells blocks alone: what vLLM had then */

/* What one engine printed; NAN: nothing. */
struct engine {
	struct str name; /* "EngineCore_DP0 pid=17"; empty where lines name no process */
	double tokens, blocks, concurrency, length;
};

struct engines {
	struct engine one[ENGINES_MAX];
	size_t n;
};

static void keep_smaller(double *kept, double v)
{
	if (isnan(*kept) || v < *kept)
		*kept = v;
}

/* NULL beyond ENGINES_MAX. */
static struct engine *engine_of(struct engines *all, struct str name)
{
	for (size_t i = 0; i < all->n; i++)
		if (str_eq(all->one[i].name, name))
			return &all->one[i];
	if (all->n == ENGINES_MAX)
		return NULL;
	all->one[all->n] = (struct engine){ name, NAN, NAN, NAN, NAN };
	return &all->one[all->n++];
}

/* "1,234,567", "131.48": the number a text begins with, without commas; NAN: none. */
static double number_of(struct str text)
{
	char digits[32];
	size_t n = 0;
	double v;

	for (size_t i = 0; i < text.n && n < sizeof(digits) - 1; i++) {
		if (isdigit((unsigned char)text.p[i]) || text.p[i] == '.')
			digits[n++] = text.p[i];
		else if (text.p[i] != ',' || i + 1 == text.n ||
			 !isdigit((unsigned char)text.p[i + 1]))
			break;
	}
	return str_to_f64((struct str){ digits, n }, &v) && v < TOLD_MAX ? v : NAN;
}

/* Keeps the number that follows the mark; false when there is none. */
static bool take(struct str line, const char *mark, double *kept)
{
	struct str rest = str_after(line, mark);
	double v = rest.n ? number_of(rest) : NAN;

	if (isnan(v))
		return false;
	keep_smaller(kept, v);
	return true;
}

/* "(EngineCore_DP0 pid=17) INFO ...": the process, where a line names one. */
static struct str process_of(struct str line)
{
	struct str rest = str_after(line, "(EngineCore");

	if (!rest.n)
		return (struct str){ 0 };
	return str_cut(&rest, ')');
}

/* "# GPU blocks: 865, # CPU blocks: 327", "# cuda blocks: 865": the first of the line. */
static void take_blocks(struct str line, struct engine *engine)
{
	struct str rest = str_after(line, "# "), name = rest;
	size_t n = 0;

	if (!rest.n)
		return;
	while (n < name.n && isalpha((unsigned char)name.p[n]))
		n++;
	rest.p += n;
	rest.n -= n;
	if (n && str_starts(rest, STR(" blocks: ")))
		take(rest, " blocks: ", &engine->blocks);
}

static void read_line(struct str line, struct engines *all)
{
	struct engine *engine;
	double context = NAN;

	if (!memmem(line.p, line.n, "oken", 4) && !memmem(line.p, line.n, " blocks: ", 9))
		return;
	engine = engine_of(all, process_of(line));
	if (!engine)
		return;
	take(line, " KV cache size: ", &engine->tokens);
	if (take(line, "Maximum concurrency for ", &engine->length))
		take(line, " tokens per request: ", &engine->concurrency);
	take_blocks(line, engine);
	/* SGLang's */
	if (take(line, "max_total_num_tokens=", &engine->tokens) &&
	    take(line, "context_len=", &context))
		engine->length = context;
}

/* The block size follows from the concurrency, which is rounded. */
static double tokens_of(const struct engine *e)
{
	double block = BLOCK_TOKENS;

	if (!isnan(e->tokens) || isnan(e->blocks))
		return e->tokens;
	if (e->concurrency > 0 && e->length > 0 && e->blocks > 0)
		block = round(e->concurrency * e->length / e->blocks);
	return e->blocks * (block >= 1 ? block : 1);
}

static void add(double *sum, double v)
{
	if (!isnan(v))
		*sum = isnan(*sum) ? v : *sum + v;
}

static void sum_up(const struct engines *all, const char *source, struct capacity *out)
{
	*out = (struct capacity){ false, NAN, NAN, NAN, "" };
	for (size_t i = 0; i < all->n; i++) {
		const struct engine *e = &all->one[i];
		double tokens = tokens_of(e), concurrency = e->concurrency;

		if (isnan(concurrency) && e->length > 0)
			concurrency = tokens / e->length;
		add(&out->kv_tokens, tokens);
		add(&out->max_concurrency, concurrency);
		if (e->length > 0)
			keep_smaller(&out->tokens_per_request, e->length);
	}
	out->is_known = !isnan(out->kv_tokens);
	if (out->is_known || !isnan(out->max_concurrency))
		out->source = source;
}

void capacity_of_log(struct str log, struct capacity *out)
{
	struct engines all = { .n = 0 };

	while (log.n)
		read_line(str_cut(&log, '\n'), &all);
	sum_up(&all, "log", out);
}

static double label_of(struct str labels, const char *name)
{
	struct str value;
	double v;

	return prometheus_label(labels, name, &value) && str_to_f64(value, &v) && v > 0 &&
	       v < TOLD_MAX ? v : NAN;
}

static struct engine *labelled(struct str labels, const char *label, struct engines *all)
{
	struct str name;

	return engine_of(all, prometheus_label(labels, label, &name) ? name : STR(""));
}

static void read_vllm(struct str labels, struct engines *all)
{
	struct engine *engine = labelled(labels, "engine", all);

	if (!engine)
		return;
	engine->tokens = label_of(labels, "kv_cache_size_tokens");
	engine->concurrency = label_of(labels, "kv_cache_max_concurrency");
	engine->length = round(engine->tokens / engine->concurrency);
	if (isnan(engine->tokens))
		engine->tokens = label_of(labels, "num_gpu_blocks") * label_of(labels, "block_size");
}

static void read_sglang(const struct prometheus_sample *s, struct engines *all)
{
	bool is_size = str_is(s->name, "sglang:max_total_num_tokens");
	struct engine *engine;

	if ((!is_size && !str_is(s->name, "sglang:context_len")) || !(s->value >= 0 && s->value < TOLD_MAX))
		return;
	engine = labelled(s->labels, "dp_rank", all);
	if (engine)
		keep_smaller(is_size ? &engine->tokens : &engine->length, s->value);
}

void capacity_of_metrics(struct str text, struct capacity *out)
{
	struct engines all = { .n = 0 };
	struct prometheus_sample s;
	int rc;

	while ((rc = prometheus_next(&text, &s, NULL)) != 0) {
		if (rc < 0)
			continue;
		if (str_is(s.name, "vllm:cache_config_info"))
			read_vllm(s.labels, &all);
		else
			read_sglang(&s, &all);
	}
	sum_up(&all, "metrics", out);
}

static void put(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	if (isnan(v))
		json_put_null(w);
	else
		json_put_f64(w, v);
}

void capacity_write(const struct capacity *c, struct json_writer *w)
{
	json_begin_object(w);
	put(w, "kv_tokens", c->kv_tokens);
	put(w, "max_concurrency", c->max_concurrency);
	put(w, "tokens_per_request", c->tokens_per_request);
	json_member_text(w, "source", *c->source ? c->source : NULL);
	json_end_object(w);
}
