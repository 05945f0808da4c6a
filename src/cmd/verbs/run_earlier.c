/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_earlier.c - `profllm run --compare-with`, see run_verb.h: compares with the latest earlier
 * runs of the same configurations, from a dashboard or a store.
 *
 * Equal config.hash is the same configuration. As many earlier runs are taken as this run has, the
 * newest ones: if each night runs the same file, those of the night before. The conclusion is that
 * of `bench compare`, over files in a temporary folder.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http/url.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/run_verb.h"
#include "cmd/verbs/store_newest.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "host/proc/tool.h"
#include "input/fetch/dashboard.h"
#include "out/compare/compare.h"
#include "results/read/document.h"
#include "results/read/frame.h"
#include "results/read/read.h"

#define PREVIOUS "previous"
#define ASK_TIMEOUT_MS 30000
#define BEFORE "before"
#define NOW "now"

/* A member's new measurement. */
struct measured {
	struct str run_id, hash, timestamp;
	const struct json_value *row; /* NULL: nothing that can be compared */
};

struct earlier {
	struct command_run *c;
	struct arena *a;
	struct dashboard *dashboard;  /* NULL: a store is asked */
	struct store *store;          /* NULL: a dashboard is asked */
	struct measured *now;         /* one for each member */
	const char *folder;           /* of both sides' documents */
	size_t n_before;              /* documents that were found */
};

/* ---- where it is looked for ---- */

static const char *wanted(const struct command_run *c)
{
	for (size_t i = 0; !c->o.compare_with && i < c->suite.n; i++)
		if (c->suite.member[i].is_chosen && c->suite.member[i].x.output.compare_with)
			return c->suite.member[i].x.output.compare_with;
	return c->o.compare_with;
}

/* The dashboard that documents go to; NULL: none. *printed: its address as it prints it. */
static const char *own_dashboard(struct command_run *c, const char **token_file, bool *printed)
{
	for (size_t i = 0; i < c->suite.n; i++) {
		const struct suite_member *m = &c->suite.member[i];
		struct upload_opts o = run_upload_opts(c, m);
		const char *live = c->o.dashboard ? c->o.dashboard : m->x.output.dashboard;

		if (!m->is_chosen || (!o.url && !live))
			continue;
		*printed = !o.url;
		*token_file = o.token_file;
		return o.url ? o.url : live;
	}
	return NULL;
}

/* Opens it. -1 with e: it is not a dashboard or store, or cannot be opened. */
static int open_place(struct earlier *x, const char *where, struct err *e)
{
	const char *token_file = x->c->o.token_file, *url = where;
	bool is_previous = strcmp(where, PREVIOUS) == 0, is_printed = false;

	if (is_previous)
		url = own_dashboard(x->c, &token_file, &is_printed);
	if (!url || (!is_previous && !dashboard_is_name(url)))
		return store_newest_open(is_previous ? NULL : where, &x->store, e);
	x->dashboard = arena_alloc(x->a, sizeof(*x->dashboard));
	return is_printed ? dashboard_find_printed(url, x->dashboard, e)
			  : dashboard_find(url, token_file, x->dashboard, e);
}

/* ---- what is there now ---- */

static void read_member(struct earlier *x, size_t i)
{
	const struct suite_member *m = &x->c->suite.member[i];
	const struct json_value *v;
	struct measured *now = &x->now[i];

	v = m->is_chosen ? result_json(m->path, FRAME_FILE_BYTES_MAX, x->a, NULL) : NULL;
	if (!v || !document_is(v) || !str_is(json_text(json_get(v, "status"), STR("")), "completed"))
		return;
	now->run_id = json_text(json_get(v, "run_id"), STR(""));
	now->hash = json_text(json_get(json_get(v, "config"), "hash"), STR(""));
	now->timestamp = json_text(json_get(v, "timestamp"), STR(""));
	if (now->hash.n && now->timestamp.n)
		now->row = document_row(v, x->a);
}

static int keep_file(struct earlier *x, const char *side, size_t k, struct str text, struct err *e)
{
	const char *dir = arena_printf(x->a, "%s/%s", x->folder, side);
	const char *path = arena_printf(x->a, "%s/%zu.json", dir, k);

	if (file_mkdirs(dir, e) < 0)
		return -1;
	return file_write_atomic(path, text, e);
}

/* ---- earlier runs of one configuration ---- */

/* The query for runs of this hash that began before the first one of this run. */
static struct str question(struct earlier *x, struct str hash, struct str before)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	buf_printf(&text, "{\"and\": [{\"column\": \"config_hash\", \"in\": [");
	w = json_writer(&text);
	json_put_str(&w, hash);
	buf_add_text(&text, "]}, {\"column\": \"status\", \"in\": [\"completed\"]}, "
		     "{\"not\": {\"column\": \"timestamp\", \"range\": {\"min\": ");
	w = json_writer(&text);
	json_put_str(&w, before);
	buf_add_text(&text, "}}}]}");
	return arena_take(x->a, &text);
}

static int keep_before(void *self, struct str document, struct err *e)
{
	struct earlier *x = self;

	return keep_file(x, BEFORE, x->n_before++, document, e);
}

static int ask(struct earlier *x, const char *path, struct buf *out, struct err *e)
{
	struct fetch_opts how = dashboard_opts(x->dashboard);
	struct fetch_reply reply = { 0 };
	struct buf url = { 0 }, text = { 0 };
	int rc;

	how.cancel = cli_is_interrupted();
	how.timeout_ms = ASK_TIMEOUT_MS;
	buf_add_str(&url, buf_str(&x->dashboard->base));
	buf_add_text(&url, path);
	rc = fetch(url.data, NULL, &how, &reply, e);
	if (rc == 0 && reply.status != 200) {
		dashboard_add_answer(&reply, &text);
		rc = err_set(e, ERR_NET, "%s %s", x->dashboard->base.data, text.data);
	}
	if (rc == 0)
		buf_add_str(out, buf_str(&reply.body));
	fetch_reply_release(&reply);
	buf_release(&url);
	buf_release(&text);
	return rc;
}

static int take_of_dashboard(struct earlier *x, struct str filter, size_t n, struct err *e)
{
	struct buf path = { 0 }, text = { 0 };
	struct json_value *v = NULL;
	const struct json_value *items;
	int rc;

	buf_printf(&path, "/api/data/experiments?sort=-timestamp&columns=run_id&limit=%zu&filter=", n);
	url_add_encoded(&path, filter);
	rc = ask(x, path.data, &text, e);
	if (rc == 0 && json_parse(x->a, arena_str(x->a, buf_str(&text)), &v, NULL) < 0)
		rc = err_set(e, ERR_NET, "%s did not answer as a dashboard does", x->dashboard->base.data);
	items = rc == 0 ? json_get(v, "items") : NULL;
	for (size_t i = 0; rc == 0 && items && i < items->count; i++) {
		buf_reset(&path);
		buf_reset(&text);
		buf_printf(&path, "/api/data/experiments/%lld/document",
			   (long long)json_int(json_get(&items->item[i], "id"), 0));
		rc = ask(x, path.data, &text, e);
		if (rc == 0)
			rc = keep_before(x, buf_str(&text), e);
	}
	buf_release(&path);
	buf_release(&text);
	return rc;
}

/* Looks up a configuration, once for all its members. */
static int take_configuration(struct earlier *x, size_t first, struct err *e)
{
	struct str hash = x->now[first].hash, before = x->now[first].timestamp, filter;
	size_t n = 0;

	for (size_t i = 0; i < x->c->suite.n; i++) {
		const struct measured *m = &x->now[i];

		if (!m->row || !str_eq(m->hash, hash))
			continue;
		if (i < first)
			return 0;
		if (m->timestamp.n == before.n && memcmp(m->timestamp.p, before.p, before.n) < 0)
			before = m->timestamp;
		n++;
	}
	filter = question(x, hash, before);
	return x->dashboard ? take_of_dashboard(x, filter, n, e) :
		store_newest(x->store, filter, n, x, keep_before, e);
}

static int gather(struct earlier *x, struct err *e)
{
	for (size_t i = 0; i < x->c->suite.n; i++) {
		struct buf text = { 0 };
		int rc;

		if (!x->now[i].row)
			continue;
		rc = file_read(x->c->suite.member[i].path, FRAME_FILE_BYTES_MAX, &text, e);
		if (rc == 0)
			rc = keep_file(x, NOW, i, buf_str(&text), e);
		buf_release(&text);
		if (rc < 0 || take_configuration(x, i, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- what has changed ---- */

/* The metric that the conclusion is about. */
static const char *primary(const struct earlier *x)
{
	static const char *const names[] = {
		"output_throughput", "request_throughput", "requests_per_second", "tokens_per_second",
		"avg_latency", "avg_cold_startup_time",
	};
	double v;

	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
		for (size_t i = 0; i < x->c->suite.n; i++)
			if (x->now[i].row &&
			    frame_number(frame_value(x->now[i].row, str_of(names[k])), &v))
				return names[k];
	return NULL;
}

/* "+3.2 %, better": by the evidence of this configuration alone. */
static const char *cell_of(const struct matched_row *row, const struct matched_config *k,
			   struct arena *a)
{
	const struct matched_estimate *is = &k->is;
	double least = log1p(row->metric->effect_min);
	const char *verdict = "not enough data";

	if (k->apart)
		return "not comparable";
	if (k->evident)
		verdict = !row->metric->better ? "changed" :
			k->evident == row->metric->better ? "better" : "worse";
	else if (is->rule != MATCHED_BY_NOTHING && log(is->narrow.low) > -least &&
		 log(is->narrow.high) < least)
		verdict = "no change";
	return arena_printf(a, "%+.1f %%, %s", (is->ratio - 1) * 100, verdict);
}

static const struct matched_row *row_of(const struct bench_comparison *c)
{
	const struct matched_pair *pair = &c->out.pair[0];

	for (size_t i = 0; i < c->n_metrics; i++)
		if (pair->row[i].is_primary)
			return &pair->row[i];
	return NULL;
}

static const char *find_cell(const struct bench_comparison *c, const struct matched_row *row,
			     struct str run_id, struct arena *a)
{
	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->spec.run[i];

		if (run->side != 1 || !run->id || !str_is(run_id, run->id))
			continue;
		for (size_t k = 0; k < row->n_configs; k++)
			if (strcmp(row->config[k].name, run->config) == 0)
				return cell_of(row, &row->config[k], a);
	}
	return NULL;
}

/* Further metrics that have become better or worse, by the evidence of all configurations. */
static void add_others(const struct matched_pair *pair, size_t n, struct buf *out)
{
	static const struct { enum matched_verdict verdict, small; const char *words; } said[] = {
		{ MATCHED_WORSE, MATCHED_WORSE_SMALL, "Worse, too" },
		{ MATCHED_BETTER, MATCHED_BETTER_SMALL, "Better, too" },
	};

	for (size_t k = 0; k < sizeof(said) / sizeof(*said); k++) {
		const char *between = "";

		for (size_t i = 0; i < n; i++) {
			const struct matched_row *row = &pair->row[i];

			if (row->is_primary || (row->verdict != said[k].verdict &&
						row->verdict != said[k].small))
				continue;
			if (!*between)
				buf_printf(out, "%s: ", said[k].words);
			buf_printf(out, "%s%s %+.1f %%", between, row->metric->name,
				   (row->is.ratio - 1) * 100);
			between = ", ";
		}
		if (*between)
			buf_add_char(out, '\n');
	}
}

static void conclude(struct earlier *x, const struct bench_comparison *c, struct suite_against *out)
{
	const struct matched_pair *pair = &c->out.pair[0];
	const struct matched_row *row = pair->refusal == MATCHED_ACCEPTED ? row_of(c) : NULL;
	const char **cell = arena_alloc(x->a, (x->c->suite.n + 1) * sizeof(*cell));
	struct buf text = { 0 };

	if (!row) {
		buf_printf(&text, "Against before: not comparable: %s\n",
			   pair->reason ? pair->reason : "no metric that both have");
	} else {
		buf_printf(&text, "Against before (%zu earlier run%s of the same configuration%s): %s\n",
			   c->side[0].n, c->side[0].n == 1 ? "" : "s", row->n_configs > 1 ? "s" : "",
			   matched_sentence(&c->out, pair, row, x->a));
		add_others(pair, c->n_metrics, &text);
		for (size_t i = 0; i < x->c->suite.n; i++)
			cell[i] = x->now[i].row ? find_cell(c, row, x->now[i].run_id, x->a) : NULL;
		out->title = "Against before";
		out->cell = cell;
	}
	out->text = arena_take(x->a, &text);
}

static int compare(struct earlier *x, struct suite_against *out, struct err *e)
{
	const char *const side[] = { arena_printf(x->a, "%s/" BEFORE, x->folder),
				     arena_printf(x->a, "%s/" NOW, x->folder) };
	struct compare_opts *o = arena_alloc(x->a, sizeof(*o));
	struct bench_comparison c = { 0 };
	int rc;

	*o = (struct compare_opts){ .alpha = MATCHED_ALPHA, .min_effect = -1,
				    .primary = primary(x) };
	rc = compare_load(&c, o, side, 2, x->a, e);
	if (rc == 0) {
		c.side[0].name = BEFORE;
		c.side[1].name = NOW;
		rc = compare_judge(&c, e);
	}
	if (rc == 0)
		conclude(x, &c, out);
	compare_release(&c);
	return rc;
}

static bool is_any_measured(const struct earlier *x)
{
	for (size_t i = 0; i < x->c->suite.n; i++)
		if (x->now[i].row)
			return true;
	return false;
}

static int look(struct earlier *x, const char *where, struct suite_against *out, struct err *e)
{
	if (open_place(x, where, e) < 0 || gather(x, e) < 0)
		return -1;
	if (!x->n_before) {
		out->text = STR("Against before: there is no earlier run of the same configuration "
				"yet\n");
		return 0;
	}
	return compare(x, out, e);
}

void run_earlier(struct command_run *c, struct suite_against *out)
{
	const char *tmp = getenv("TMPDIR"), *where = wanted(c);
	char *folder = arena_printf(&c->arena, "%s/profllm-earlier-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	struct earlier x = { .c = c, .a = &c->arena };
	struct buf said = { 0 };
	struct err e = { 0 };

	*out = (struct suite_against){ .text = { 0 } };
	if (!where)
		return;
	x.now = arena_alloc(x.a, (c->suite.n + 1) * sizeof(*x.now));
	for (size_t i = 0; i < c->suite.n; i++)
		read_member(&x, i);
	if (!is_any_measured(&x))
		return;
	if (!mkdtemp(folder)) {
		cli_warn(arena_printf(x.a, "nothing is compared with before: %s cannot be made", folder));
		return;
	}
	x.folder = folder;
	if (look(&x, where, out, &e) < 0)
		cli_warn(arena_printf(x.a, "nothing is compared with before: %s", e.text));
	if (x.dashboard)
		dashboard_release(x.dashboard);
	store_newest_close(x.store);
	tool_run((const char *const[]){ "rm", "-rf", folder, NULL }, (struct str){ 0 }, 60, &said, NULL,
		 NULL);
	buf_release(&said);
}
