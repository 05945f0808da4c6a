/* SPDX-License-Identifier: Apache-2.0 */
/* suite_table.c - see suite_table.h. */
#include "experiment/suite_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/redact.h"
#include "json/write.h"
#include "report/document_row.h"
#include "report/frame.h"
#include "report/points.h"

#define PARAMS_MAX 64
#define VALUE_BYTES_MAX 40 /* of a parameter's value in a cell */

static const struct points_column shown[] = {
	{ "Req/s", "request_throughput" }, { "Tok/s", "output_throughput" },
	{ "Req/s", "requests_per_second" }, { "Tok/s", "profllm.output_tokens_per_second" },
	{ "P50 TTFT(ms)", "median_ttft_ms" }, { "P99 TTFT(ms)", "p99_ttft_ms" },
	{ "P50 TPOT(ms)", "median_tpot_ms" }, { "P99 TPOT(ms)", "p99_tpot_ms" },
	{ "Tok/s/GPU", "profllm.derived.output_throughput_per_gpu" },
	{ "Cost/1M tok", "profllm.derived.cost_per_million_output_tokens" },
	{ "Latency(s)", "avg_latency" }, { "Startup(s)", "avg_cold_startup_time" },
};
static const struct points_column written[] = {
	{ "completed", "completed" }, { "failed", "failed" },
	{ "request_throughput", "request_throughput" }, { "output_throughput", "output_throughput" },
	{ "total_token_throughput", "total_token_throughput" },
	{ "requests_per_second", "requests_per_second" },
	{ "output_tokens_per_second", "profllm.output_tokens_per_second" },
	{ "median_ttft_ms", "median_ttft_ms" }, { "p90_ttft_ms", "p90_ttft_ms" },
	{ "p99_ttft_ms", "p99_ttft_ms" }, { "median_tpot_ms", "median_tpot_ms" },
	{ "p90_tpot_ms", "p90_tpot_ms" }, { "p99_tpot_ms", "p99_tpot_ms" },
	{ "median_e2el_ms", "median_e2el_ms" }, { "p99_e2el_ms", "p99_e2el_ms" },
	{ "output_throughput_per_gpu", "profllm.derived.output_throughput_per_gpu" },
	{ "output_throughput_per_user", "profllm.derived.output_throughput_per_user" },
	{ "output_tokens_per_s_per_kw", "profllm.derived.output_tokens_per_s_per_kw" },
	{ "cost_per_million_output_tokens", "profllm.derived.cost_per_million_output_tokens" },
	{ "cost_per_million_tokens", "profllm.derived.cost_per_million_tokens" },
	{ "avg_latency", "avg_latency" }, { "avg_cold_startup_time", "avg_cold_startup_time" },
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- parameters ---- */

struct param {
	const char *path, *title;
	const char **value;      /* per member; "" where it has none */
	bool is_in_names;        /* "TITLE=VALUE" stands in every member's name */
};
struct params {
	const struct suite *s;
	struct param *v;
	size_t n;
	struct map places;
	struct arena *a;
};

static const char *value_text(const struct json_value *v, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	const char *out;

	if (v->kind == JSON_STRING)
		buf_add_str(&text, v->text);
	else
		json_put_value(&w, v);
	out = text.len > VALUE_BYTES_MAX ?
	      arena_printf(a, "%.*s...", VALUE_BYTES_MAX - 3, text.data) :
	      arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static void add_value(struct params *p, size_t member, const char *path,
		      const struct json_value *v)
{
	const char *word = strrchr(path, '.');
	uint64_t at;

	if (redact_is_secret(str_of(word ? word + 1 : path)))
		return;
	if (!map_get(&p->places, str_of(path), &at)) {
		struct param *new;

		at = p->n;
		p->v = p->n % PARAMS_MAX ? p->v : mem_grow(p->v, p->n + PARAMS_MAX, sizeof(*p->v));
		new = &p->v[p->n++];
		*new = (struct param){ .path = arena_text(p->a, str_of(path)) };
		new->value = arena_alloc(p->a, p->s->n * sizeof(*new->value));
		for (size_t i = 0; i < p->s->n; i++)
			new->value[i] = "";
		map_put(&p->places, str_of(new->path), at);
	}
	p->v[at].value[member] = value_text(v, p->a);
}

/* Every value of a member's configuration by its path; lists are values. */
static void add_tree(struct params *p, size_t member, const char *path, const struct json_value *v)
{
	static const char *const aside[] = { "name", "suite", "output", "repeat" };

	for (size_t i = 0; v->kind == JSON_OBJECT && i < v->count; i++) {
		bool is_aside = false;
		const char *below = *path ? arena_printf(p->a, "%s.%.*s", path, (int)v->key[i].n,
							 v->key[i].p) : arena_text(p->a, v->key[i]);

		for (size_t k = 0; k < COUNT(aside); k++)
			is_aside |= strcmp(below, aside[k]) == 0;
		if (is_aside)
			continue;
		if (v->item[i].kind == JSON_OBJECT)
			add_tree(p, member, below, &v->item[i]);
		else
			add_value(p, member, below, &v->item[i]);
	}
}

static bool differs(const struct params *p, const struct param *x)
{
	for (size_t i = 1; i < p->s->n; i++)
		if (strcmp(x->value[i], x->value[0]) != 0)
			return true;
	return false;
}

static const char *last_word(const char *path)
{
	const char *word = strrchr(path, '.');

	return word ? word + 1 : path;
}

static void find_params(struct params *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->s->n; i++)
		add_tree(p, i, "", p->s->member[i].config);
	for (size_t k = 0; k < p->n; k++)
		if (differs(p, &p->v[k]))
			p->v[n++] = p->v[k];
	p->n = n < PARAMS_MAX ? n : PARAMS_MAX;
	for (size_t k = 0; k < p->n; k++) {
		struct param *x = &p->v[k];

		x->title = last_word(x->path);
		x->is_in_names = true;
		for (size_t j = 0; j < p->n; j++)
			if (j != k && strcmp(last_word(p->v[j].path), last_word(x->path)) == 0)
				x->title = x->path;
		for (size_t i = 0; i < p->s->n; i++)
			x->is_in_names &= strstr(p->s->member[i].label,
						 arena_printf(p->a, "%s=%s", x->title,
							      x->value[i])) != NULL;
	}
}

/* ---- lines ---- */

/* What the tables and sentences need of a document, and no more: documents may be large. */
static const struct json_value *reduced(const struct json_value *row, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	const struct json_value *ours = json_get(row, "profllm");
	struct json_value *out = NULL;
	struct err ignored;

	json_begin_object(&w);
	for (size_t i = 0; i < row->count; i++)
		if (row->item[i].kind != JSON_ARRAY && row->item[i].kind != JSON_OBJECT) {
			json_key_str(&w, row->key[i]);
			json_put_value(&w, &row->item[i]);
		}
	json_member_object(&w, "profllm");
	for (size_t i = 0; ours && i < ours->count; i++)
		if (ours->item[i].kind != JSON_ARRAY) {
			json_key_str(&w, ours->key[i]);
			json_put_value(&w, &ours->item[i]);
		}
	json_end_object(&w);
	json_end_object(&w);
	if (json_parse(a, buf_str(&text), &out, &ignored) < 0)
		out = NULL;
	buf_release(&text);
	return out;
}

static void read_line(const struct suite_member *m, struct points_line *line, struct arena *a)
{
	struct buf text = { .limit = DOCUMENT_BYTES_MAX };
	struct arena own = { 0 };
	struct json_value *v;
	const struct json_value *row;
	struct err ignored;

	*line = (struct points_line){ .name = m->label, .state = "not run" };
	if (file_read(m->path, DOCUMENT_BYTES_MAX, &text, &ignored) == 0 &&
	    json_parse(&own, buf_str(&text), &v, &ignored) == 0) {
		row = document_row(v, &own);
		line->record = row ? reduced(row, a) : NULL;
		line->state = arena_text(a, json_text(json_get(v, "status"), STR("not run")));
	}
	arena_release(&own);
	buf_release(&text);
}

static void put_grid(const struct params *p, const struct points_line *from, bool is_csv,
		     struct arena *a, struct buf *out)
{
	struct points_line *line = arena_alloc(a, p->s->n * sizeof(*line));
	const char **title = arena_alloc(a, (p->n + 1) * sizeof(*title));
	struct points_table table = {
		.name_title = is_csv ? "experiment" : "Experiment", .param = title,
		.column = is_csv ? written : shown,
		.n_columns = is_csv ? COUNT(written) : COUNT(shown), .line = line, .n = p->s->n,
	};
	struct grid grid;

	for (size_t k = 0; k < p->n; k++)
		if (is_csv || !p->v[k].is_in_names)
			title[table.n_params++] = p->v[k].title;
	for (size_t i = 0; i < p->s->n; i++) {
		const char **value = arena_alloc(a, (p->n + 1) * sizeof(*value));
		size_t n = 0;

		for (size_t k = 0; k < p->n; k++)
			if (is_csv || !p->v[k].is_in_names)
				value[n++] = p->v[k].value[i];
		line[i] = from[i];
		line[i].value = value;
	}
	points_grid(&table, is_csv ? -1 : 2, a, &grid);
	if (is_csv)
		grid_csv(&grid, out);
	else
		grid_text(&grid, false, out);
}

/* ---- what to do next ---- */

static bool has_several(const struct suite *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->member[i].x.name, s->member[0].x.name) != 0)
			return true;
	return false;
}

static void add_next(const struct suite *s, const struct suite_tally *tally,
		     const struct points_best *best, struct buf *out)
{
	if (tally->left)
		buf_printf(out, "Next: the same command with --resume runs the %zu that are left\n",
			   tally->left);
	else if (!best->n)
		buf_printf(out, "Next: no experiment has a result; \"error\" in %s and the logs in %s "
			   "say why\n", s->output, s->folder);
	else if (best->at == SIZE_MAX)
		buf_printf(out, "Next: quote none of these numbers; \"trust\" in %s lists the reasons "
			   "and docs/guide/troubleshooting.md what helps\n", s->output);
	else if (has_several(s))
		buf_printf(out, "Next: profllm bench plot %s\n", s->output);
	else
		buf_printf(out, "Next: profllm bench compare EARLIER.json %s\n", s->output);
}

static void hide(struct buf *b)
{
	redact_tail(b, 0, REDACT_SETTINGS);
}

void suite_table(const struct suite *s, const struct suite_tally *tally, struct suite_table *out)
{
	static const struct { const char *key, *what, *unit; } ranked[] = {
		{ "output_throughput", "output throughput", "tok/s" },
		{ "request_throughput", "throughput", "req/s" },
		{ "requests_per_second", "throughput", "req/s" },
	};
	struct arena a = { 0 };
	struct points_line *line = arena_alloc(&a, (s->n + 1) * sizeof(*line));
	struct points_table all = { .line = line, .n = s->n };
	struct params params = { .s = s, .a = &a };
	struct points_best best = { .at = SIZE_MAX };
	size_t k = 0;

	*out = (struct suite_table){ 0 };
	for (size_t i = 0; i < s->n; i++)
		read_line(&s->member[i], &line[i], &a);
	find_params(&params);
	put_grid(&params, line, false, &a, &out->text);
	put_grid(&params, line, true, &a, &out->csv);
	for (k = 0; k < COUNT(ranked) && !best.n; k++)
		best = points_best(&all, ranked[k].key);
	if (best.n && (has_several(s) || best.n_invalid))
		points_say_best(&all, &best, ranked[k - 1].key, ranked[k - 1].what,
				ranked[k - 1].unit, &out->text);
	add_next(s, tally, &best, &out->next);
	hide(&out->text);
	hide(&out->csv);
	map_release(&params.places);
	free(params.v);
	arena_release(&a);
}

void suite_table_release(struct suite_table *t)
{
	buf_release(&t->text);
	buf_release(&t->csv);
	buf_release(&t->next);
}

char *suite_csv_path(const struct suite *s)
{
	struct str path = str_of(s->output);
	struct buf out = { 0 };
	struct stat st;

	if (lstat(s->output, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	if (str_ends(path, STR(".json")))
		path.n -= strlen(".json");
	buf_printf(&out, "%.*s.csv", (int)path.n, path.p);
	return buf_take(&out);
}
