/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_capacity.c - see sweep_hunt.h: `--sla-search capacity`, the search of run/find.h. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/frame.h"
#include "run/find_tell.h"
#include "run/sweep_hunt.h"

/* ---- what it says ---- */

struct talk { struct hunt *h; bool has_cost; };

static void on_warn(void *self, const char *text)
{
	sweep_warn(((struct talk *)self)->h->s, "%s", text);
}

static void on_ended(void *self, const struct find *f)
{
	struct talk *t = self;
	struct buf out = { 0 };

	find_tell_step(f, &out);
	if (out.len)
		sweep_line(t->h->s, "%s", out.data);
	buf_reset(&out);
	if (!t->has_cost)
		find_tell_cost(f, &out);
	if (out.len) {
		sweep_line(t->h->s, "%s", out.data);
		t->has_cost = true;
	}
	buf_release(&out);
}

static void print_answer(struct hunt *h, const struct find *f)
{
	struct buf out = { 0 };
	struct str rest;

	find_tell_answer(f, &out);
	rest = buf_str(&out);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		sweep_line(h->s, "%.*s", (int)line.n, line.p);
	}
	buf_release(&out);
}

/* ---- its file ---- */

static const struct json_value *outcome_of(struct hunt *h, const struct find *f, struct err *e)
{
	struct buf text = { 0 }, sla = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *out = NULL;

	sla_text(h->asked, ", ", &sla);
	json_begin_object(&w);
	json_key(&w, "serve"), json_put_value(&w, h->serve);
	json_key(&w, "bench"), json_put_value(&w, h->bench);
	json_key(&w, "sla"), json_put_str(&w, buf_str(&sla));
	json_key(&w, "search"), json_put_text(&w, "capacity");
	find_put(f, &w);
	json_end_object(&w);
	if (json_parse(&h->s->arena, arena_str(&h->s->arena, buf_str(&text)), &out, e) < 0)
		out = NULL;
	buf_release(&text);
	buf_release(&sla);
	return out;
}

/* What an earlier sitting found; NULL: nothing, or it was interrupted. */
static const struct json_value *found_before(struct hunt *h)
{
	struct json_value *v = NULL;
	struct buf text = { 0 };
	struct err ignored = { 0 };
	struct str outcome;

	if (h->s->o->resume.is_set &&
	    file_read(hunt_path(h, ".json"), SWEEP_PARAMS_BYTES_MAX, &text, &ignored) == 0)
		json_parse(&h->s->arena, arena_str(&h->s->arena, buf_str(&text)), &v, &ignored);
	buf_release(&text);
	if (!v || v->kind != JSON_OBJECT)
		return NULL;
	outcome = json_text(json_get(v, "outcome"), STR(""));
	return outcome.n && !str_is(outcome, "stopped") &&
	       str_is(json_text(json_get(v, "variable"), STR("")), h->variable) ? v : NULL;
}

static int keep(struct hunt *h, const struct find *f, struct err *e)
{
	const struct json_value *outcome = outcome_of(h, f, e);
	char *stem = hunt_path(h, "");
	struct err undrawn = { 0 };

	if (!outcome || file_mkdirs(h->folder, e) < 0 ||
	    sweep_save(hunt_path(h, ".json"), outcome, e) < 0 || hunt_add(h, outcome, e) < 0)
		return -1;
	if (find_has_answer(f) && find_draw(f, stem, &undrawn) < 0)
		sweep_warn(h->s, "%s", undrawn.text);
	return 0;
}

/* ---- the search ---- */

static void fill(struct hunt *h, struct find_opts *out)
{
	const struct sweep_opts *o = h->s->o;
	struct arena *a = &h->s->arena;
	char **argv = params_apply(h->bench, h->s->bench_cmd, a), **words;
	size_t n = 0;

	while (argv[n])
		n++;
	words = arena_alloc(a, (n + 3) * sizeof(*words));
	memcpy(words, argv, n * sizeof(*words));
	if (o->base_url) {
		words[n++] = arena_text(a, STR("--base-url"));
		words[n++] = arena_text(a, str_of(o->base_url));
	}
	out->argc = (int)n - 3; /* after "vllm bench serve" */
	out->argv = words + 3;
	out->load = strcmp(h->variable, "request_rate") == 0 ? CAPACITY_RATE : CAPACITY_CONCURRENCY;
	out->precision = o->precision / 100;
	out->budget_s = o->budget;
	out->level_s = o->level_seconds;
	out->failed_share = o->sla_max_failed / 100;
}

/* A server that died says why; the sweep goes on without this search. */
static int fail(struct hunt *h, struct err *why, struct err *e)
{
	struct err died = { 0 };
	const struct sweep_failure f = {
		.type = "RuntimeError", .serve = h->serve, .bench = h->bench,
		.why = sweep_server_survived(h->s, true, &died) < 0 ? died.text : NULL,
		.text = why->text,
	};

	if (file_mkdirs(h->folder, e) < 0)
		return -1;
	return sweep_fail(h->s, hunt_path(h, ".failure.json"), &f, e);
}

static int search(struct hunt *h, struct err *e)
{
	struct talk t = { .h = h };
	struct find_hooks hooks = { .self = &t, .warn = on_warn, .ended = on_ended,
				    .cancel = h->s->hooks->cancel };
	struct find_opts o = { .argc = 0 };
	struct err why = { 0 };
	struct find f;
	double capacity = NAN;
	int rc;

	fill(h, &o);
	if (slo_of_sla("--sla-params", h->asked, &h->s->arena, &o.slo, e) < 0)
		return -1;
	rc = find_run(&o, &hooks, &f, &why);
	if (rc < 0 && why.code == ERR_USAGE) {
		*e = why;
	} else {
		int kept;

		if (rc == 0 || find_has_answer(&f))
			print_answer(h, &f);
		kept = keep(h, &f, e);
		if (kept == 0)
			rc = f.is_interrupted ? sweep_cancelled(e) : rc < 0 ? fail(h, &why, e) : 0;
		else
			rc = -1;
		if (find_has_answer(&f))
			capacity = capacity_answer(f.search).load;
	}
	find_release(&f);
	if (rc == 0 && h->s->o->hover > 0 && !isnan(capacity))
		return hunt_hover(h, capacity, e);
	if (rc == 0 && h->s->o->hover > 0)
		sweep_warn(h->s, "--hover: there is no boundary to stay at");
	return rc;
}

int hunt_capacity(struct hunt *h, struct err *e)
{
	const struct json_value *before;
	struct sweep *s = h->s;
	struct buf text = { 0 };
	int rc = 0;

	sla_text(&h->sla, ", ", &text);
	sweep_line(s, "[SLA START]");
	sweep_line(s, "SLA criteria: %s", text.data);
	buf_release(&text);
	before = found_before(h);
	if (before) {
		sweep_line(s, "Found existing results.");
		rc = hunt_add(h, before, e);
	} else {
		if (!s->o->base_url)
			rc = sweep_server_ready(s, h->serve, true, e);
		if (rc == 0 && s->o->dry_run)
			sweep_line(s, "Omitting SLA search.");
		else if (rc == 0 && !s->is_server_failed)
			rc = search(h, e);
	}
	if (rc == 0)
		sweep_line(s, "[SLA END]");
	return rc;
}
