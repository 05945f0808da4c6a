/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_adapt.c - see suite_parts.h: beyond an imported test's list of concurrency (adapt.h).
 *
 * A group is all members of one test and rate. Its results are read from the files that upstream's
 * tools read, so that a search that was ended goes on from them like everything else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "experiment/adapt.h"
#include "experiment/suite_parts.h"
#include "json/write.h"

/* ---- groups ---- */

static void add_label(struct buf *out, const struct import_test *test, int64_t concurrency)
{
	buf_printf(out, "%s_qps_%s_concurrency_%lld", test->test, test->qps,
		   (long long)concurrency);
}

/* Members of a matrix, or repeated ones, are other points than upstream's. */
static bool is_adaptive(const struct suite_member *m)
{
	const struct import_test *test = m->test;
	struct buf label = { 0 };
	bool is_plain;

	if (!test || !mode_is_served(test->mode) || !test->o->is_adaptive || !m->is_chosen)
		return false;
	add_label(&label, test, test->concurrency);
	is_plain = str_is(buf_str(&label), m->label);
	buf_release(&label);
	return is_plain;
}

static bool is_same_group(const struct suite_member *a, const struct suite_member *b)
{
	return a->test && b->test && strcmp(a->test->test, b->test->test) == 0 && a->test->qps &&
	       b->test->qps && strcmp(a->test->qps, b->test->qps) == 0;
}

bool suite_adapt_is_due(const struct suite_sitting *t, size_t at)
{
	const struct suite_member *m = &t->s->member[t->due[at]];

	if (!is_adaptive(m))
		return false;
	for (size_t i = at + 1; i < t->n_due; i++)
		if (is_same_group(&t->s->member[t->due[i]], m))
			return false;
	return true;
}

/* ---- results ---- */

static enum adapt_verdict judge_file(const struct suite_sitting *t, const struct suite_member *m)
{
	char *stem = suite_imported_stem(t->s, m);
	struct buf path = { 0 }, text = { .limit = DOCUMENT_BYTES_MAX };
	struct arena arena = { 0 };
	enum adapt_verdict verdict = ADAPT_UNKNOWN;
	struct json_value *v;
	struct err e;

	buf_printf(&path, "%s.json", stem);
	if (file_read(path.data, DOCUMENT_BYTES_MAX, &text, &e) == 0 &&
	    json_parse(&arena, buf_str(&text), &v, &e) == 0)
		verdict = adapt_judge(v, m->test->o);
	buf_release(&path);
	buf_release(&text);
	arena_release(&arena);
	free(stem);
	return verdict;
}

static int by_concurrency(const void *a, const void *b)
{
	int64_t x = ((const struct adapt_point *)a)->concurrency;
	int64_t y = ((const struct adapt_point *)b)->concurrency;

	return (x > y) - (x < y);
}

static size_t read_points(const struct suite_sitting *t, const struct suite_member *m,
			  struct adapt_point *out)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < t->s->n; i++) {
		const struct suite_member *one = &t->s->member[i];

		if (is_same_group(one, m))
			out[n++] = (struct adapt_point){ one->test->concurrency,
							 judge_file(t, one) };
	}
	qsort(out, n, sizeof(*out), by_concurrency);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || out[kept - 1].concurrency != out[i].concurrency)
			out[kept++] = out[i];
	return kept;
}

/* ---- probes ---- */

static const struct json_value *put_int(const struct suite_sitting *t,
					const struct json_value *tree, const char *path, int64_t n,
					struct err *e)
{
	struct json_value v = { .kind = JSON_INT };

	v.integer = n;
	return tree ? config_put(t->s->config, tree, path, &v, e) : NULL;
}

static const struct json_value *with_word(struct suite_sitting *t, const struct json_value *tree,
					  const char *path, const struct json_value *list,
					  const char *word, struct err *e)
{
	struct json_value out = { .kind = JSON_ARRAY };
	size_t n = list && list->kind == JSON_ARRAY ? list->count : 0;

	out.item = arena_alloc(&t->arena, (n + 1) * sizeof(*out.item));
	for (size_t i = 0; i < n; i++)
		out.item[i] = list->item[i];
	out.item[n].kind = JSON_STRING;
	out.item[n].text = str_of(word);
	out.count = n + 1;
	return config_put(t->s->config, tree, path, &out, e);
}

/* The group's member m at another level; NULL with e. */
static struct suite_member *make_probe(struct suite_sitting *t, const struct suite_member *m,
				       int64_t concurrency, struct err *e)
{
	struct suite_member *out = arena_alloc(&t->arena, sizeof(*out));
	struct import_test *test = arena_alloc(&t->arena, sizeof(*test));
	const struct json_value *bench = json_get(m->config, "benchmark"), *tree;
	struct json_value name = { .kind = JSON_STRING };
	struct config_findings f = { 0 };
	struct buf label = { 0 };

	*test = *m->test;
	test->concurrency = concurrency;
	test->is_probe = true;
	out->test = test;
	out->is_chosen = true;
	add_label(&label, test, concurrency);
	out->label = arena_text(&t->arena, buf_str(&label));
	buf_release(&label);
	out->path = arena_printf(&t->arena, "%s/%s.json", t->s->folder, out->label);
	out->folder = arena_printf(&t->arena, "%s/%s", t->s->folder, out->label);
	name.text = str_of(out->label);
	tree = config_put(t->s->config, m->config, "name", &name, e);
	tree = put_int(t, tree, "benchmark.max_concurrency", concurrency, e);
	if (test->o->prompts_per_concurrency)
		tree = put_int(t, tree, "benchmark.num_prompts", import_prompts(test->o, concurrency),
			       e);
	tree = tree ? with_word(t, tree, "benchmark.metadata", json_get(bench, "metadata"),
				"adaptive_search=1", e) : NULL;
	if (!tree)
		return NULL;
	out->config = tree;
	if (config_experiment(t->s->config, tree, t->s->know, &t->arena, &out->x, &f) < 0) {
		err_set(e, ERR_USAGE, "%s: %s", out->label, f.errors.data);
		out = NULL;
	} else {
		out->x.output.path = out->path;
		out->x.output.folder = out->folder;
	}
	config_findings_release(&f);
	return out;
}

static void add_probe(struct suite_sitting *t, struct suite_member *m)
{
	t->probe = mem_grow(t->probe, t->n_probe + 1, sizeof(struct suite_member *));
	t->probe[t->n_probe++] = m;
}

static int probe(struct suite_sitting *t, const struct suite_member *m, struct adapt *a,
		 struct experiment_site *site, struct err *e)
{
	int64_t level = adapt_next(a);
	struct suite_member *made = make_probe(t, m, level, e);
	bool is_new;

	if (!made)
		return -1;
	add_probe(t, made);
	is_new = !t->o->is_resumed || !suite_is_done(made) ||
		 judge_file(t, made) == ADAPT_UNKNOWN;
	if (is_new) {
		t->n_probes++;
		if (suite_run_one(t, made, t->n_ended + 1, site,
				  t->s->restart != SUITE_RESTART_ALWAYS, e) < 0)
			return -1;
	} else {
		t->tally->kept++;
	}
	adapt_take(a, level, judge_file(t, made), is_new);
	return 0;
}

/* ---- the summary ---- */

static void put_level(struct json_writer *w, const char *key, int64_t level)
{
	json_key(w, key);
	if (level)
		json_put_int(w, level);
	else
		json_put_null(w);
}

static int write_summary(const struct suite_sitting *t, const struct suite_member *m,
			 const struct adapt *a, struct err *e)
{
	char *stem = suite_imported_stem(t->s, m), *slash = strrchr(stem, '/');
	struct buf text = { 0 }, path = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	w.indent = 2;
	json_begin_object(&w);
	json_member_text(&w, "test_name", m->test->test);
	json_member_text(&w, "qps", m->test->qps);
	json_member_f64(&w, "sla_ttft_ms", a->o->sla_ttft_ms);
	json_member_f64(&w, "sla_tpot_ms", a->o->sla_tpot_ms);
	put_level(&w, "static_last_pass", a->static_last_pass);
	put_level(&w, "static_first_fail", a->static_first_fail);
	put_level(&w, "final_last_pass", a->last_pass);
	put_level(&w, "final_first_fail", a->first_fail);
	json_end_object(&w);
	buf_add_char(&text, '\n');
	buf_printf(&path, "%.*s/%s_qps_%s_sla_summary.json", (int)(slash - stem), stem,
		   m->test->test, m->test->qps);
	*slash = '\0';
	rc = file_mkdirs(stem, e);
	if (rc == 0)
		rc = file_write_atomic(path.data, buf_str(&text), e);
	buf_release(&text);
	buf_release(&path);
	free(stem);
	return rc;
}

int suite_adapt(struct suite_sitting *t, const struct suite_member *m,
		struct experiment_site *site, struct err *e)
{
	struct adapt_point *points = mem_array(t->s->n, sizeof(*points));
	const struct experiment_hooks *hooks = &t->hooks->run;
	struct adapt a;
	int rc = 0;

	adapt_begin(&a, m->test->o, points, read_points(t, m, points));
	free(points);
	while (rc == 0 && adapt_next(&a) && !suite_is_cancelled(t))
		rc = probe(t, m, &a, site, e);
	if (rc == 0 && !suite_is_cancelled(t))
		rc = write_summary(t, m, &a, e);
	if (rc == 0 && hooks->line) {
		struct buf text = { 0 };

		buf_printf(&text, "%s, rate %s: the largest concurrency within %g ms TTFT, %g ms "
			   "TPOT and %g %% failed requests is ", m->test->test, m->test->qps,
			   a.o->sla_ttft_ms, a.o->sla_tpot_ms, a.o->sla_max_failed);
		if (a.last_pass)
			buf_printf(&text, "%lld", (long long)a.last_pass);
		else
			buf_add_text(&text, "not known: none of the list is");
		hooks->line(hooks->self, text.data);
		buf_release(&text);
	}
	return rc;
}

/* Whether due, run in this process, has seen to the group. */
static bool is_seen_to(const struct suite_sitting *t, const struct suite_member *m)
{
	for (size_t i = 0; t->s->jobs <= 1 && i < t->n_due; i++)
		if (is_same_group(&t->s->member[t->due[i]], m))
			return true;
	return false;
}

int suite_adapt_rest(struct suite_sitting *t, struct experiment_site *site, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->s->n && !suite_is_cancelled(t); i++) {
		const struct suite_member *m = &t->s->member[i];
		bool is_first = true;

		for (size_t k = 0; k < i; k++)
			is_first = is_first && !is_same_group(&t->s->member[k], m);
		if (!is_first || !is_adaptive(m) || is_seen_to(t, m))
			continue;
		rc = suite_adapt(t, m, site, e);
		experiment_leave(site, &t->hooks->run);
	}
	return rc;
}
