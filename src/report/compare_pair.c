/* SPDX-License-Identifier: Apache-2.0 */
/* compare_pair.c - what is a parameter of a run, and which runs are repeats of one point. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "json/python.h"
#include "report/compare.h"
#include "report/frame.h"

/* ---- what a key is ---- */

/* Of a result whose key says nothing about how the load was made. */
static bool is_bookkeeping(const char *key)
{
	static const char *const name[] = {
		"date", "run_number", "_benchmark_name", "label", "endpoint_type", "tokenizer_id",
		"rps_change_events", "num_requests", "total_num_tokens", "tags", "percentiles",
	};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (strcmp(key, name[i]) == 0)
			return true;
	return false;
}

static bool has_number_prefix(const char *key)
{
	size_t n = *key == 'p' ? strspn(key + 1, "0123456789.") : 0;

	return n && key[n + 1] == '_';
}

static bool starts_with_any(const char *key, const char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(key, word[i], strlen(word[i])) == 0)
			return true;
	return false;
}

/* Numbers of the offline modes, which schema/result.json does not list. */
static bool is_offline_time(const char *key)
{
	static const char *const word[] = { "avg_", "mean_", "median_", "std_" };

	return strcmp(key, "elapsed_time") == 0 || strncmp(key, "percentiles.", 12) == 0 ||
	       strcmp(key, "total_startup_time") == 0 || has_number_prefix(key) ||
	       starts_with_any(key, word, sizeof(word) / sizeof(*word));
}

static bool is_offline_rate(const char *key)
{
	return str_ends(str_of(key), STR("_per_second")) ||
	       str_ends(str_of(key), STR("_throughput"));
}

bool compare_is_metric(const char *key)
{
	const struct schema_field *f = schema_field_find(key);

	if (f)
		return strcmp(f->group, "setup") != 0;
	return is_offline_time(key) || is_offline_rate(key);
}

enum schema_better compare_better(const char *key)
{
	const struct schema_field *f = schema_field_find(key);

	if (f)
		return f->better;
	return is_offline_rate(key) ? SCHEMA_HIGHER : is_offline_time(key) ? SCHEMA_LOWER
									   : SCHEMA_NONE;
}

/* Options that shape the load and are not in the result's own keys. */
static bool is_load_option(const char *key)
{
	static const char *const word[] = {
		"dataset_", "random_", "sonnet_", "prefix_repetition_", "hf_", "sharegpt_", "custom_",
		"input_len", "output_len", "ignore_eos", "temperature", "top_", "min_p", "extra_body",
		"endpoint", "logprobs", "multi_turn",
	};

	return starts_with_any(key, word, sizeof(word) / sizeof(*word)) &&
	       strcmp(key, "endpoint_type") != 0;
}

/* ---- parameters of all runs ---- */

static bool is_ignored(const struct comparison *c, struct str key)
{
	struct str rest = str_of(c->o->ignore);

	while (rest.n)
		if (str_eq(str_trim(str_cut(&rest, ',')), key))
			return true;
	return false;
}

/* What is known of keys of results and of options, so that each is judged once: 1 + its place. */
struct keys { struct map record, option; size_t cap; };

/* Where the parameter stands; it is added when it is new. "-" and "_" are one. */
static size_t param_at(struct comparison *c, struct str key, size_t *cap)
{
	char *name = arena_text(c->a, key);
	size_t i;

	for (size_t k = 0; name[k] && name[k] != '.'; k++)
		if (name[k] == '-')
			name[k] = '_';
	for (i = 0; i < c->n_params; i++)
		if (strcmp(c->param[i].key, name) == 0)
			return i;
	if (c->n_params == *cap) {
		struct compare_param *param = arena_alloc(c->a, 2 * *cap * sizeof(*param));

		memcpy(param, c->param, *cap * sizeof(*param));
		c->param = param;
		*cap *= 2;
	}
	c->param[c->n_params++] = (struct compare_param){ .key = name };
	return i;
}

static const char *python_text(struct comparison *c, const struct json_value *v)
{
	struct buf text = { 0 };
	const char *out;

	json_python_str(&text, v);
	out = arena_text(c->a, buf_str(&text));
	buf_release(&text);
	return out;
}

static bool is_param(const struct comparison *c, const char *name, bool is_option)
{
	if (is_ignored(c, str_of(name)))
		return false;
	return is_option ? is_load_option(name) : !compare_is_metric(name) && !is_bookkeeping(name);
}

/* 1 + the place of a key's parameter; 0: it is none. */
static size_t place_of(struct comparison *c, struct keys *keys, struct str key, bool is_option)
{
	struct map *known = is_option ? &keys->option : &keys->record;
	uint64_t place;

	if (!map_get(known, key, &place)) {
		const char *name = arena_text(c->a, key);

		place = is_param(c, name, is_option) ? 1 + param_at(c, key, &keys->cap) : 0;
		map_put(known, str_of(name), place);
	}
	return (size_t)place;
}

/* Notes which parameters a run has; with text their texts too, one place for each. */
static void read_params(struct comparison *c, const struct compare_run *run, struct keys *keys,
			const char **text)
{
	const struct json_value *r = run->record;
	const struct json_value *options = frame_value(r, STR("profllm.options"));

	for (size_t i = 0; i < r->count; i++) {
		size_t at = r->item[i].kind == JSON_ARRAY ? 0 : place_of(c, keys, r->key[i], false);

		if (at && text)
			text[at - 1] = python_text(c, &r->item[i]);
	}
	for (size_t i = 0; options && options->kind == JSON_OBJECT && i < options->count; i++) {
		size_t at = options->item[i].kind == JSON_NULL ? 0 :
			place_of(c, keys, options->key[i], true);

		if (at && text && !text[at - 1])
			text[at - 1] = python_text(c, &options->item[i]);
	}
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void classify(struct comparison *c)
{
	for (size_t p = 0; p < c->n_params; p++) {
		enum compare_param_kind kind = COMPARE_SAME;

		for (size_t s = 0; s < c->n_sides; s++) {
			const struct compare_side *side = &c->side[s];

			if (!is_same(side->run[0].param[p], c->side[0].run[0].param[p]) &&
			    kind == COMPARE_SAME)
				kind = COMPARE_BETWEEN;
			for (size_t i = 1; i < side->n; i++)
				if (!is_same(side->run[i].param[p], side->run[0].param[p]))
					kind = COMPARE_WITHIN;
		}
		c->param[p].kind = kind;
	}
}

/* ---- points ---- */

/* What makes a run's point: each of its parameters' texts, with their lengths. In the arena. */
static struct str point_key(struct comparison *c, const struct compare_run *run)
{
	struct buf text = { 0 };
	struct str out;

	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == COMPARE_WITHIN && run->param[p])
			buf_printf(&text, "%zu:%zu:%s", p, strlen(run->param[p]), run->param[p]);
	out = arena_str(c->a, buf_str(&text));
	buf_release(&text);
	return out;
}

static const char *point_name(struct comparison *c, const struct compare_run *run)
{
	struct buf text = { 0 };
	const char *out;

	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == COMPARE_WITHIN && run->param[p])
			buf_printf(&text, "%s%s=%s", text.len ? " " : "", c->param[p].key,
				   run->param[p]);
	out = arena_text(c->a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* By the parameters in their order: numbers before texts, each in theirs. */
static int by_params(const void *x, const void *y, void *arg)
{
	const struct comparison *c = arg;
	const char **a = c->point[*(const size_t *)x].param;
	const char **b = c->point[*(const size_t *)y].param;

	for (size_t p = 0; p < c->n_params; p++) {
		double v, w;
		bool is_v, is_w;

		if (c->param[p].kind != COMPARE_WITHIN || is_same(a[p], b[p]))
			continue;
		if (!a[p] || !b[p])
			return a[p] ? 1 : -1;
		is_v = str_to_f64(str_of(a[p]), &v);
		is_w = str_to_f64(str_of(b[p]), &w);
		if (is_v && is_w)
			return (v > w) - (v < w);
		return is_v != is_w ? (is_v ? -1 : 1) : strcmp(a[p], b[p]);
	}
	return 0;
}

static void sort_points(struct comparison *c)
{
	size_t *order = mem_array(c->n_points, sizeof(*order));
	size_t *place = mem_array(c->n_points, sizeof(*place));
	struct compare_point *sorted = arena_alloc(c->a, c->n_points * sizeof(*sorted));

	for (size_t i = 0; i < c->n_points; i++)
		order[i] = i;
	qsort_r(order, c->n_points, sizeof(*order), by_params, c);
	for (size_t i = 0; i < c->n_points; i++) {
		sorted[i] = c->point[order[i]];
		place[order[i]] = i;
	}
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++)
			c->side[s].run[i].point = place[c->side[s].run[i].point];
	c->point = sorted;
	free(order);
	free(place);
}

static void make_points(struct comparison *c)
{
	struct map known = { 0 };
	size_t cap = 0;

	for (size_t s = 0; s < c->n_sides; s++)
		cap += c->side[s].n;
	c->point = arena_alloc(c->a, cap * sizeof(*c->point));
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			struct compare_run *run = &c->side[s].run[i];
			struct str key = point_key(c, run);
			uint64_t at;

			if (!map_get(&known, key, &at)) {
				at = c->n_points++;
				map_put(&known, key, at);
				c->point[at] = (struct compare_point){ .name = point_name(c, run),
								       .param = run->param };
			}
			run->point = (size_t)at;
		}
	map_release(&known);
}

/* Runs of a point stand together, so that nobody searches all runs for them. */
static void group_runs(struct comparison *c, struct compare_side *side)
{
	struct compare_run *run = arena_alloc(c->a, (side->n + 1) * sizeof(*run));
	size_t *next = mem_array(c->n_points + 1, sizeof(*next));

	side->first = arena_alloc(c->a, (c->n_points + 1) * sizeof(*side->first));
	for (size_t i = 0; i < side->n; i++)
		side->first[side->run[i].point + 1]++;
	for (size_t p = 0; p < c->n_points; p++)
		side->first[p + 1] += side->first[p];
	memcpy(next, side->first, (c->n_points + 1) * sizeof(*next));
	for (size_t i = 0; i < side->n; i++)
		run[next[side->run[i].point]++] = side->run[i];
	side->run = run;
	free(next);
}

void compare_pair(struct comparison *c)
{
	struct keys keys = { .cap = 32 };

	c->param = arena_alloc(c->a, keys.cap * sizeof(*c->param));
	/* First which parameters there are, then what each run has of them. */
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++)
			read_params(c, &c->side[s].run[i], &keys, NULL);
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			struct compare_run *run = &c->side[s].run[i];

			run->param = arena_alloc(c->a, (c->n_params + 1) * sizeof(*run->param));
			read_params(c, run, &keys, run->param);
		}
	map_release(&keys.record);
	map_release(&keys.option);
	classify(c);
	make_points(c);
	sort_points(c);
	for (size_t s = 0; s < c->n_sides; s++)
		group_runs(c, &c->side[s]);
}
