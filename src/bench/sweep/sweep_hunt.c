/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_hunt.c - see sweep_internal.h: the files a search writes, and following the boundary
 * (--hover).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/sweep/find.h"
#include "bench/sweep/search.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/read/files.h"
#include "results/read/frame.h"
#include "results/read/read.h"

/* ---- the KV cache ---- */

void hunt_read_capacity(struct hunt *h, const struct json_value *record)
{
	struct err ignored = { 0 };
	const struct json_value *list = result_json(sweep_path(h->s, h->s->folder, RESULT_SERVERS),
						   SWEEP_PARAMS_BYTES_MAX, &h->s->arena, &ignored);
	double in, out, completed;

	if (!frame_number(frame_value(record, STR("completed")), &completed))
		completed = NAN;
	if (!frame_number(frame_value(record, STR("num_prompts")), &h->requests))
		h->requests = completed;
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
		const struct json_value *serve = json_get(&list->item[i], "serve_overrides");
		double tokens = json_real(json_get(json_get(&list->item[i], "kv_capacity"),
						   "kv_tokens"), NAN);

		if (serve && params_equal(serve, h->serve) && tokens > 0)
			h->kv_tokens = tokens;
	}
	if (isnan(h->kv_tokens) || !(completed > 0) ||
	    !frame_number(frame_value(record, STR("total_input_tokens")), &in) ||
	    !frame_number(frame_value(record, STR("total_output_tokens")), &out) ||
	    !(in + out > 0))
		return;
	h->kv_request_tokens = (in + out) / completed;
	h->kv_requests = h->kv_tokens / h->kv_request_tokens;
}

/* ---- capacity.json ---- */

static void put_level(struct json_writer *w, const char *key, int64_t level)
{
	if (level > 0)
		json_member_int(w, key, level);
	else
		json_member_null(w, key);
}

/* The value of the limit's key at a level; NAN: it was not measured. */
static double mean_at(const struct hunt *h, int64_t level, size_t limit)
{
	for (size_t i = h->n_levels; i > 0; i--)
		if (h->level[i - 1].level == level)
			return h->level[i - 1].mean[limit];
	return NAN;
}

static void put_limits(struct json_writer *w, const struct hunt *h, const struct search_outcome *o)
{
	json_member_array(w, "constraints");
	for (size_t k = 0; k < h->sla.n; k++) {
		const struct sla_limit *l = &h->sla.limit[k];
		const struct sla one = { l, 1 };
		double at = mean_at(h, o->passing, k), beyond = mean_at(h, o->failing, k);
		struct buf text = { 0 };

		sla_text(&one, "", &text);
		json_begin_object(w);
		json_member_str(w, "constraint", buf_str(&text));
		json_member_text(w, "key", l->key);
		json_member_f64(w, "limit", l->limit);
		json_member_f64(w, "at_capacity", at);
		json_member_f64(w, "margin", isnan(at) ? NAN : sla_margin(l, at));
		json_member_f64(w, "beyond_capacity", beyond);
		json_member_bool(w, "binds", !isnan(beyond) && !sla_holds(l, beyond));
		json_end_object(w);
		buf_release(&text);
	}
	json_end_array(w);
}

static void put_outcome(struct json_writer *w, const struct hunt *h, const struct search_outcome *o)
{
	json_member_text(w, "variable", h->variable);
	json_member_text(w, "outcome", search_ends[o->end]);
	put_level(w, "capacity", o->passing);
	put_level(w, "first_failing", o->failing);
	json_member_bool(w, "is_monotone", o->is_monotone);
	put_limits(w, h, o);
	json_member_text(w, "search", search_kinds[h->kind]);
	json_member_int(w, "runs", o->runs);
	json_member_array(w, "levels");
	for (size_t i = 0; i < h->search.n; i++) {
		const struct search_point *p = &h->search.point[i];

		json_begin_object(w);
		put_level(w, "level", p->level);
		json_member_int(w, "runs", p->v.runs);
		json_member_bool(w, "passes", p->v.passes);
		json_member_f64(w, "margin", p->v.margin);
		json_member_f64(w, "failed_share", mean_at(h, p->level, h->sla.n - 1));
		json_end_object(w);
	}
	json_end_array(w);
	if (isnan(h->kv_tokens)) {
		json_member_null(w, "kv_cache");
	} else {
		json_member_object(w, "kv_cache");
		json_member_f64(w, "tokens", h->kv_tokens);
		json_member_f64(w, "request_tokens", h->kv_request_tokens);
		json_member_f64(w, "requests", h->kv_requests);
		json_end_object(w);
	}
}

/* An element of capacity.json; o NULL: what the capacity procedure found. */
static const struct json_value *element_of(struct hunt *h, const struct search_outcome *o,
					   const struct find *f, struct err *e)
{
	struct arena *a = &h->s->arena;
	struct buf text = { 0 }, sla = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *out = NULL;

	assert(o || f);
	sla_text(h->asked, ", ", &sla);
	json_begin_object(&w);
	json_member_value(&w, "serve", h->serve);
	json_member_value(&w, "bench", h->bench);
	json_member_str(&w, "sla", buf_str(&sla));
	if (o) {
		put_outcome(&w, h, o);
	} else {
		json_member_text(&w, "search", "capacity");
		find_put(f, &w);
	}
	json_end_object(&w);
	if (json_parse(a, arena_str(a, buf_str(&text)), &out, e) < 0)
		out = NULL;
	buf_release(&text);
	buf_release(&sla);
	return out;
}

/* Adds an element of capacity.json and writes the file. */
static int hunt_add(struct hunt *h, const struct json_value *outcome, struct err *e)
{
	struct sweep *s = h->s;

	sweep_records_add(s, h->outcomes, outcome);
	if (file_mkdirs(s->folder, e) < 0)
		return -1;
	return sweep_save(sweep_path(s, s->folder, RESULT_CAPACITY), sweep_list(s, h->outcomes), e);
}

int hunt_report(struct hunt *h, const struct search_outcome *o, struct err *e)
{
	const struct json_value *element = element_of(h, o, NULL, e);

	return element ? hunt_add(h, element, e) : -1;
}

/* ---- --hover ---- */

static bool one_is_enough(void *self, const struct sweep_records *so_far)
{
	(void)self;
	return so_far->n > 0;
}

static int tell_window(struct hunt *h, const struct hover *hover, int64_t level,
		       const double *value, const struct search_verdict *v, struct err *e)
{
	struct buf line = { 0 }, sla = { 0 };
	struct json_writer w = json_writer(&line);
	const char *path = sweep_path(h->s, h->folder, "hover.jsonl");
	int rc, fd;

	sla_text(h->asked, ", ", &sla);
	json_begin_object(&w);
	json_member_f64(&w, "time", (double)(clock_real_ns() / 1000000) / 1000);
	json_member_str(&w, "sla", buf_str(&sla));
	json_member_text(&w, "variable", h->variable);
	put_level(&w, "level", level);
	json_member_object(&w, "values");
	for (size_t k = 0; k < h->sla.n; k++)
		json_member_f64(&w, h->sla.limit[k].key, value[k]);
	json_end_object(&w);
	json_member_f64(&w, "margin", v->margin);
	json_member_bool(&w, "passes", v->passes);
	json_member_f64(&w, "capacity", hover->capacity);
	json_end_object(&w);
	sweep_line(h->s, "%s", line.data);
	buf_add_char(&line, '\n');
	/* Lines are appended, so that a reader of the file sees each window as it ends. */
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	rc = fd < 0 ? -1 : file_write_all(fd, buf_str(&line));
	if (rc < 0)
		err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	buf_release(&line);
	buf_release(&sla);
	return rc;
}

static bool is_num_prompts(struct str word)
{
	return str_is(word, "--num-prompts") || str_is(word, "--num_prompts") ||
	       str_is(word, "num-prompts") || str_is(word, "num_prompts");
}

/* A window has a fixed duration, so --num-prompts is removed. */
static char **without_num_prompts(struct sweep *s)
{
	struct word_list out = { .arena = &s->arena };

	for (char **w = s->bench_cmd; *w; w++) {
		struct str rest = str_of(*w);

		if (!is_num_prompts(str_cut(&rest, '=')))
			words_add(&out, *w);
		else if (!strchr(*w, '=') && w[1])
			w++;
	}
	return out.v;
}

static bool is_of_window(const void *self, struct str key)
{
	(void)self;
	return !is_num_prompts(key);
}

static char *window_folder(struct hunt *h, unsigned number)
{
	return sweep_path(h->s, h->folder, arena_printf(&h->s->arena, "hover/window=%u", number));
}

/* 1: measured; 0: the window could not be measured; -1 with e. */
static int window(struct hunt *h, struct hover *hover, unsigned number, struct err *e)
{
	struct arena *a = &h->s->arena;
	const struct json_value *bench =
		params_with_text(params_filter(h->bench, is_of_window, NULL, a), "duration",
				 arena_printf(a, "%g", h->s->o->hover_window), a);
	int64_t level = hover_level(hover);
	double value[SLA_ALL_MAX];
	struct sweep_records runs;
	struct search_verdict v;
	struct str why;

	if (sweep_level_until(h->s, h->serve, params_with_int(bench, h->variable, level, a),
			      window_folder(h, number),
			      one_is_enough, NULL, &runs, e) < 0)
		return -1;
	if (runs.n == 0)
		return 0;
	runs.n = 1;
	if (!sla_is_measured(runs.v[0], &h->sla, &why)) {
		sweep_warn(h->s, "window %u at %s=%lld is INVALID and does not count: %.*s", number,
			   h->variable, (long long)level, (int)why.n, why.p);
		return 1;
	}
	if (hunt_values(h, &runs, value, e) < 0)
		return -1;
	v = search_judge(&h->sla, value, 1);
	hover_tell(hover, v.gap, v.passes);
	return tell_window(h, hover, level, value, &v, e) < 0 ? -1 : 1;
}

int hunt_hover(struct hunt *h, double capacity, struct err *e)
{
	int64_t end_ns = clock_mono_ns() + (int64_t)(h->s->o->hover * 1e9);
	char **whole = h->s->bench_cmd;
	struct hover hover;
	unsigned number = 0;
	int rc = 1;

	h->s->bench_cmd = without_num_prompts(h->s);
	hover_init(&hover, capacity, h->s->o->sla_max);
	while (file_exists(window_folder(h, number)))
		number++;
	while (rc > 0 && clock_mono_ns() < end_ns)
		rc = window(h, &hover, number++, e);
	h->s->bench_cmd = whole;
	if (rc >= 0)
		sweep_line(h->s, "Capacity while hovering: %.2f %s after %u window%s.",
			   hover.capacity, hunt_unit(h), number, number == 1 ? "" : "s");
	return rc < 0 ? -1 : 0;
}

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

/* ---- its file ---- */

/* The answer of an earlier process; NULL: none, or it was interrupted. */
static const struct json_value *found_before(struct hunt *h)
{
	struct err ignored = { 0 };
	const struct json_value *v = h->s->o->resume.is_set ?
		result_json(hunt_path(h, ".json"), SWEEP_PARAMS_BYTES_MAX, &h->s->arena, &ignored) : NULL;
	struct str outcome = json_text(json_get(v, "outcome"), STR(""));

	return outcome.n && !str_is(outcome, "stopped") &&
	       str_is(json_text(json_get(v, "variable"), STR("")), h->variable) ? v : NULL;
}

static int keep(struct hunt *h, const struct find *f, struct err *e)
{
	const struct json_value *outcome = element_of(h, NULL, f, e);
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
	struct word_list words = { .arena = a };

	for (char **word = params_apply(h->bench, h->s->bench_cmd, a); *word; word++)
		words_add(&words, *word);
	if (o->base_url) {
		words_add(&words, (char *)"--base-url");
		words_add(&words, (char *)o->base_url);
	}
	out->argc = (int)words.n - 3; /* after "vllm bench serve" */
	out->argv = words.v + 3;
	out->load = strcmp(h->variable, "request_rate") == 0 ? CAPACITY_RATE : CAPACITY_CONCURRENCY;
	out->precision = o->precision / 100;
	out->budget_s = o->budget;
	out->level_s = o->level_seconds;
	out->failed_share = o->sla_max_failed / 100;
}

/* A server that died is reported; the sweep continues without this search. */
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
	struct buf text = { 0 };
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

		if (rc == 0 || find_has_answer(&f)) {
			find_tell_answer(&f, &text);
			sweep_lines(h->s, buf_str(&text));
			buf_release(&text);
		}
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
