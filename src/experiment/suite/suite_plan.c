/* SPDX-License-Identifier: Apache-2.0 */
/* suite_plan.c - see suite.h: the plan as JSON, and the same as a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "experiment/config/command.h"
#include "experiment/config/container.h"
#include "experiment/stages/allocate.h"
#include "experiment/suite/import.h"
#include "experiment/suite/suite.h"
#include "experiment/suite/suite_internal.h"
#include "experiment/suite/suite_search.h"
#include "out/compare/points.h"
#include "results/decide/capacity.h"
#include "results/read/document.h"
#include "results/read/frame.h"
#include "results/read/read.h"

struct earlier { bool is_there; struct suite_document d; };

struct plan_times {
	const struct suite *s;
	struct earlier *earlier;  /* of every member */
	double *start;            /* sorted, of the documents that tell one */
	size_t n_starts;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Reads the members' documents; those of another configuration are ignored. */
static struct plan_times *plan_times_new(const struct suite *s)
{
	struct plan_times *t = mem_alloc(sizeof(*t));

	t->s = s;
	t->earlier = mem_array(s->n + 1, sizeof(*t->earlier));
	t->start = mem_array(s->n + 1, sizeof(*t->start));
	for (size_t i = 0; i < s->n; i++) {
		struct earlier *x = &t->earlier[i];

		x->is_there = suite_document_of(&s->member[i], &x->d);
		if (x->is_there && isfinite(x->d.startup_s))
			t->start[t->n_starts++] = x->d.startup_s;
	}
	qsort(t->start, t->n_starts, sizeof(*t->start), by_size);
	return t;
}

double plan_load_s(const struct experiment *x)
{
	const struct serve_opts *o = &x->serve;
	double rate = o->request_rate;

	if (!mode_is_served(x->mode))
		return NAN;
	if (o->ramp_up_strategy && o->ramp_up_start_rps.is_set && o->ramp_up_end_rps.is_set)
		rate = (double)(o->ramp_up_start_rps.v + o->ramp_up_end_rps.v) / 2;
	if (x->search.find)
		return x->search.budget_s.is_set ? x->search.budget_s.v : CAPACITY_BUDGET_S;
	if (o->duration.is_set)
		return o->duration.v;
	if (isfinite(rate) && rate > 0)
		return (double)o->num_prompts / rate;
	return NAN;
}

/* The rest of the earlier run's time, without starting servers; NAN: unknown. */
static double earlier_load_s(const struct earlier *before)
{
	double s = before->d.duration_s;

	if (!before->is_there || before->d.status != OUTCOME_COMPLETED)
		return NAN;
	if (isfinite(before->d.startup_s))
		s -= before->d.startup_s;
	return s < 0 ? 0 : s;
}

/* Number of servers started for it unless it reuses those of another. */
static unsigned plan_starts(const struct experiment *x)
{
	unsigned n = 0;

	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++)
		n += !x->server[i].url;
	return n;
}

/* is_reusing: it uses the servers of the member before it. */
static struct plan_time plan_times_of(const struct plan_times *t, size_t place, bool is_reusing)
{
	const struct suite_member *m = &t->s->member[place];
	const struct earlier *before = &t->earlier[place];
	struct plan_time out = { .start_s = 0, .load_s = plan_load_s(&m->x), .total_s = NAN };
	bool has_start = !is_reusing && plan_starts(&m->x) > 0;

	if (has_start)
		out.start_s = t->n_starts ? t->start[t->n_starts / 2] : NAN;
	if (isfinite(earlier_load_s(before))) {
		if (has_start && isfinite(before->d.startup_s))
			out.start_s = before->d.startup_s;
		out.total_s = earlier_load_s(before) + (isfinite(out.start_s) ? out.start_s : 0);
		snprintf(out.basis, sizeof(out.basis), "as long as its earlier run%s",
			 is_reusing && isfinite(before->d.startup_s) ? ", without the start" : "");
	} else if (!isfinite(out.load_s)) {
		snprintf(out.basis, sizeof(out.basis), "%s", mode_is_served(m->x.mode) ?
			 "requests go as fast as the server takes them, and there is no earlier run"
			 : "there is no earlier run");
	} else if (!has_start) {
		out.total_s = out.load_s;
		snprintf(out.basis, sizeof(out.basis), "its schedule");
	} else if (isfinite(out.start_s)) {
		out.total_s = out.start_s + out.load_s;
		snprintf(out.basis, sizeof(out.basis), "%.0f s until ready, the median of %zu earlier "
			 "start%s, and %.0f s by its schedule", out.start_s, t->n_starts,
			 t->n_starts == 1 ? "" : "s", out.load_s);
	} else {
		out.total_s = out.load_s;
		snprintf(out.basis, sizeof(out.basis), "%.0f s by its schedule; how long the server "
			 "takes to start is not known yet", out.load_s);
	}
	return out;
}

struct planner {
	const struct suite *s;
	const struct suite_opts *o;
	struct plan_times *times;
	struct json_writer w;
	struct arena arena;       /* of one member at a time */
	const struct suite_member *before; /* that is run; NULL: none */
	double total_s;
	size_t n_unknown, n_run, n_starts;
};

static void put_buf(struct json_writer *w, const char *key, struct buf *text)
{
	json_member_str(w, key, buf_str(text));
	buf_release(text);
}

/* ---- servers ---- */

static struct role_at *addresses(struct planner *p, const struct experiment *x)
{
	struct role_at *at = arena_alloc(&p->arena, (x->n_servers + 1) * sizeof(*at));
	unsigned next = x->resources.port_first;

	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];

		at[i] = command_at(s, s->port ? s->port : next, &p->arena);
		next += !s->url && !s->port;
	}
	return at;
}

/* Names for GPUs that are only chosen later. */
static const char *const *gpus_for(struct planner *p, const struct experiment *x,
				   const struct experiment_server *s)
{
	const char **gpu = arena_alloc(&p->arena, (s->gpus + 1) * sizeof(*gpu));
	unsigned first = 0;

	for (const struct experiment_server *k = x->server; k < s; k++)
		first += k->url ? 0 : k->gpus;
	for (unsigned i = 0; i < s->gpus; i++) {
		gpu[i] = arena_printf(&p->arena, "%u", first + i);
		for (unsigned k = 0; x->resources.want == GPUS_LIST && k <= first + i; k++) {
			if (!x->resources.list[k])
				break;
			if (k == first + i)
				gpu[i] = x->resources.list[k];
		}
	}
	return gpu;
}

static int words_of(struct planner *p, const struct experiment *x, size_t i,
		    const struct role_at *at, char *const **argv, char *const **env, struct err *e)
{
	const struct experiment_server *s = &x->server[i];
	struct container container;
	char **words, **lines;

	if (command_words(x, i, at, &p->arena, &words, e) < 0 ||
	    command_env(x, i, at, &p->arena, &lines, e) < 0)
		return -1;
	*argv = words;
	*env = lines;
	if (s->container) {
		struct container_how how = {
			.run_id = "RUN_ID", .port = at[i].port, .words = words, .env = lines,
			.gpu = gpus_for(p, x, s), .is_amd = p->s->know->is_amd,
		};

		if (container_words(s, &how, &p->arena, &container, e) < 0)
			return -1;
		*argv = container.argv;
		*env = container.env;
	}
	return 0;
}

static void put_server(struct planner *p, const struct experiment *x, size_t i,
		       const struct role_at *at)
{
	const struct experiment_server *s = &x->server[i];
	struct buf command = { 0 }, env = { 0 };
	struct json_writer *w = &p->w;
	char *const *argv, *const *lines;
	struct err e;

	json_begin_object(w);
	json_member_text(w, "name", s->name);
	json_member_text(w, "role", server_role_name(s->role));
	json_member_text(w, "url", role_url(&at[i], &p->arena));
	json_member_int(w, "gpus", s->url ? 0 : s->gpus);
	if (s->url) {
		json_member_null(w, "command");
	} else if (words_of(p, x, i, at, &argv, &lines, &e) < 0) {
		json_member_text(w, "error", e.text);
	} else {
		shell_env(&env, lines);
		shell_words(&command, argv);
		put_buf(w, "environment", &env);
		put_buf(w, "command", &command);
	}
	json_end_object(w);
}

/* ---- one member ---- */

static void put_member(struct planner *p, size_t place, bool is_kept)
{
	const struct suite_member *m = &p->s->member[place];
	const struct experiment *x = &m->x;
	bool is_reusing = !is_kept && p->before && plan_starts(x) &&
			  suite_keeps_servers(p->s, p->before, m);
	struct plan_time t = plan_times_of(p->times, place, is_reusing);
	struct role_at *at = addresses(p, x);
	struct json_writer *w = &p->w;
	struct buf command = { 0 };

	json_begin_object(w);
	json_member_text(w, "name", m->label);
	json_member_text(w, "mode", experiment_mode_name(x->mode));
	json_member_text(w, "document", m->path);
	json_member_bool(w, "is_kept", is_kept);
	json_member_text(w, "servers_of", is_reusing ? p->before->label : NULL);
	if (x->resources.want == GPUS_LIST)
		json_member_texts(w, "gpus", x->resources.list);
	else if (x->resources.want == GPUS_COUNT)
		json_member_int(w, "gpus", x->resources.count);
	else
		json_member_text(w, "gpus", x->resources.want == GPUS_NONE ? "none" : "auto");
	json_member_int(w, "n_gpus", choose_wanted(x));
	json_member_array(w, "ports");
	json_put_int(w, x->resources.port_first);
	json_put_int(w, x->resources.port_last);
	json_end_array(w);
	json_member_array(w, "servers");
	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++)
		put_server(p, x, i, at);
	json_end_array(w);
	shell_benchmark(&command, x, mode_is_served(x->mode) && x->n_servers ?
				     role_url(&at[x->serving], &p->arena) : NULL);
	put_buf(w, "benchmark", &command);
	json_member_text(w, "profiling", x->profiling.is_enabled ? x->profiling.tool : NULL);
	json_member_object(w, "time");
	json_member_f64(w, "start_s", t.start_s);
	json_member_f64(w, "load_s", t.load_s);
	json_member_f64(w, "total_s", t.total_s);
	json_member_text(w, "basis", t.basis);
	json_end_object(w);
	json_end_object(w);
	if (!is_kept) {
		p->before = m;
		p->n_run++;
		p->n_starts += is_reusing ? 0 : plan_starts(x);
		if (isfinite(t.total_s))
			p->total_s += t.total_s;
		else
			p->n_unknown++;
	}
	arena_release(&p->arena);
}

void suite_plan_json(const struct suite *s, const struct suite_opts *o, struct buf *out)
{
	struct plan_times *times = plan_times_new(s);
	struct planner p = { .s = s, .o = o, .times = times, .w = json_writer(out) };
	struct json_writer *w = &p.w;
	size_t from = out->len;

	w->indent = 2;
	json_begin_object(w);
	json_member_text(w, "suite", s->name);
	json_member_text(w, "output", s->output);
	json_member_int(w, "jobs", s->jobs);
	json_member_text(w, "restart", suite_restart_name(suite_has_children(s) ? SUITE_RESTART_ALWAYS :
			 s->restart));
	if (s->is_shuffled)
		json_member_int(w, "shuffle_seed", (int64_t)s->seed);
	else
		json_member_null(w, "shuffle_seed");
	json_member_array(w, "experiments");
	for (size_t i = 0; i < s->n; i++)
		if (s->member[s->order[i]].is_chosen)
			put_member(&p, s->order[i],
				   o->is_resumed && suite_is_done(&s->member[s->order[i]]));
	json_end_array(w);
	json_member_f64(w, "total_s", p.total_s / (s->jobs > 1 ? s->jobs : 1));
	json_member_int(w, "n_run", (int64_t)p.n_run);
	json_member_int(w, "n_unknown", (int64_t)p.n_unknown);
	json_member_int(w, "n_starts", (int64_t)p.n_starts);
	if (s->search)
		suite_search_put(s, w);
	json_end_object(w);
	buf_add_char(out, '\n');
	redact_tail(out, from, REDACT_SETTINGS);
	free(times->earlier);
	free(times->start);
	free(times);
}

/* ---- as a text ---- */

static struct str text_at(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), STR(""));
}

static void add_row(struct buf *out, const char *what, struct str text)
{
	buf_printf(out, "  %-10s %.*s\n", what, (int)text.n, text.n ? text.p : "");
}

static void add_server(struct buf *out, const struct json_value *v)
{
	struct str env = text_at(v, "environment"), command = text_at(v, "command");
	struct str name = text_at(v, "name"), error = text_at(v, "error"), url = text_at(v, "url");

	buf_printf(out, "  %-10.*s ", (int)name.n, name.p);
	if (error.n)
		buf_printf(out, "cannot be started: %.*s", (int)error.n, error.p);
	else if (!command.n)
		buf_printf(out, "runs already at %.*s", (int)url.n, url.p);
	else
		buf_printf(out, "%.*s%s%.*s", (int)env.n, env.p, env.n ? " " : "",
			   (int)command.n, command.p);
	buf_add_char(out, '\n');
}

static void add_needs(struct buf *out, const struct json_value *v)
{
	const struct json_value *ports = json_get(v, "ports"), *gpus = json_get(v, "gpus");
	int64_t n = json_int(json_get(v, "n_gpus"), 0);
	bool has_server = false;
	const struct json_value *servers = json_get(v, "servers");

	for (size_t i = 0; i < servers->count; i++)
		has_server = has_server || text_at(&servers->item[i], "command").n;
	buf_printf(out, "  %-10s ", "needs");
	if (gpus->kind == JSON_ARRAY) {
		buf_add_text(out, gpus->count == 1 ? "GPU " : "GPUs ");
		for (size_t i = 0; i < gpus->count; i++)
			buf_printf(out, "%s%s", i ? "," : "", gpus->item[i].text.p);
	} else if (n == 0) {
		buf_add_text(out, "no GPU");
	} else {
		buf_printf(out, "%lld GPU%s, chosen when it starts", (long long)n, n == 1 ? "" : "s");
	}
	if (has_server)
		buf_printf(out, "; ports of %lld to %lld", (long long)ports->item[0].integer,
			   (long long)ports->item[1].integer);
	buf_add_char(out, '\n');
}

static void add_time(struct buf *out, const struct json_value *v)
{
	const struct json_value *time = json_get(v, "time");
	double total = json_real(json_get(time, "total_s"), NAN);
	struct str basis = text_at(time, "basis");
	char rough[FMT_F64_BYTES];

	buf_printf(out, "  %-10s ", "time");
	if (isfinite(total))
		buf_printf(out, "about %s: %.*s\n", fmt_rough_time(rough, total), (int)basis.n,
			   basis.p);
	else
		buf_printf(out, "not known: %.*s\n", (int)basis.n, basis.p);
}

static void add_member(struct buf *out, const struct json_value *v)
{
	const struct json_value *servers = json_get(v, "servers");
	struct str name = text_at(v, "name"), profiling = text_at(v, "profiling");
	struct str reused = text_at(v, "servers_of");

	buf_printf(out, "\n%.*s\n", (int)name.n, name.p);
	if (json_bool(json_get(v, "is_kept"), false)) {
		add_row(out, "kept", text_at(v, "document"));
		return;
	}
	for (size_t i = 0; i < servers->count && !reused.n; i++)
		add_server(out, &servers->item[i]);
	if (reused.n)
		buf_printf(out, "  %-10s those of %.*s, with emptied caches\n", "servers",
			   (int)reused.n, reused.p);
	add_row(out, "benchmark", text_at(v, "benchmark"));
	if (profiling.n)
		add_row(out, "profiler", profiling);
	add_needs(out, v);
	add_row(out, "document", text_at(v, "document"));
	add_time(out, v);
}

void suite_plan_text(const struct suite *s, const struct suite_opts *o, struct buf *out)
{
	struct buf json = { .limit = SIZE_MAX };
	struct arena arena = { 0 };
	const struct json_value *list;
	struct json_value *v;
	char rough[FMT_F64_BYTES];
	int64_t n, unknown, starts;
	struct err e;
	size_t kept;

	suite_plan_json(s, o, &json);
	if (json_parse(&arena, buf_str(&json), &v, &e) < 0) {
		buf_printf(out, "%s\n", e.text);
		goto done;
	}
	list = json_get(v, "experiments");
	n = json_int(json_get(v, "n_run"), 0);
	unknown = json_int(json_get(v, "n_unknown"), 0);
	starts = json_int(json_get(v, "n_starts"), 0);
	kept = list->count - (size_t)n;
	if (s->search)
		suite_search_plan(s, out);
	buf_printf(out, "%lld experiment%s to run", (long long)n, n == 1 ? "" : "s");
	if (kept)
		buf_printf(out, ", %zu kept", kept);
	if (starts || n > 1)
		buf_printf(out, ", %lld server start%s", (long long)starts, starts == 1 ? "" : "s");
	if (s->jobs > 1)
		buf_printf(out, ", %u at once", s->jobs);
	if (s->is_shuffled)
		buf_printf(out, ", in an order shuffled with seed %llu", (unsigned long long)s->seed);
	if (n > unknown)
		buf_printf(out, "; about %s",
			   fmt_rough_time(rough, json_real(json_get(v, "total_s"), 0)));
	if (n > unknown && unknown)
		buf_printf(out, " and %lld more of unknown duration", (long long)unknown);
	buf_add_text(out, "\n");
	for (size_t i = 0; i < list->count; i++)
		add_member(out, &list->item[i]);
done:
	arena_release(&arena);
	buf_release(&json);
}

#define PARAMS_MAX 64
#define VALUE_BYTES_MAX 40 /* of a parameter's value in a cell */

static const struct points_column shown[] = {
	{ "Rate", "capacity_request_rate" }, { "95 % from", "capacity_request_rate_low" },
	{ "to", "capacity_request_rate_high" }, { "At once", "capacity_concurrency" },
	{ "95 % from", "capacity_concurrency_low" }, { "to", "capacity_concurrency_high" },
	{ "Req/s", "request_throughput" }, { "Tok/s", "output_throughput" },
	{ "Req/s", "requests_per_second" }, { "Tok/s", "profllm.output_tokens_per_second" },
	{ "P50 TTFT(ms)", "median_ttft_ms" }, { "P99 TTFT(ms)", "p99_ttft_ms" },
	{ "P50 TPOT(ms)", "median_tpot_ms" }, { "P99 TPOT(ms)", "p99_tpot_ms" },
	{ "Tok/s/GPU", "profllm.derived.output_throughput_per_gpu" },
	{ "Cost/1M tok", "profllm.derived.cost_per_million_output_tokens" },
	{ "Latency(s)", "avg_latency" }, { "Startup(s)", "avg_cold_startup_time" },
};
static const struct points_column written[] = {
	{ "capacity_request_rate", "capacity_request_rate" },
	{ "capacity_request_rate_low", "capacity_request_rate_low" },
	{ "capacity_request_rate_high", "capacity_request_rate_high" },
	{ "capacity_concurrency", "capacity_concurrency" },
	{ "capacity_concurrency_low", "capacity_concurrency_low" },
	{ "capacity_concurrency_high", "capacity_concurrency_high" },
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
	bool is_in_names;        /* every member's name contains "TITLE=VALUE" */
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

static const char *last_word(const char *path)
{
	const char *word = strrchr(path, '.');

	return word ? word + 1 : path;
}

static void add_value(struct params *p, size_t member, const char *path,
		      const struct json_value *v)
{
	uint64_t at;

	if (redact_is_secret(str_of(last_word(path))))
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
		const char *below = *path ? arena_printf(p->a, "%s.%.*s", path, (int)v->key[i].n,
							 v->key[i].p) : arena_text(p->a, v->key[i]);

		if (config_is_any(str_of(below), aside, COUNT(aside)))
			continue;
		if (v->item[i].kind == JSON_OBJECT)
			add_tree(p, member, below, &v->item[i]);
		else
			add_value(p, member, below, &v->item[i]);
	}
}

static void find_params(struct params *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->s->n; i++)
		add_tree(p, i, "", p->s->member[i].config);
	for (size_t k = 0; k < p->n; k++) {
		size_t i = 1;

		while (i < p->s->n && strcmp(p->v[k].value[i], p->v[k].value[0]) == 0)
			i++;
		if (i < p->s->n)
			p->v[n++] = p->v[k];
	}
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

static void put_members(struct json_writer *w, const struct json_value *from, bool has_objects)
{
	for (size_t i = 0; from && i < from->count; i++) {
		const struct json_value *v = &from->item[i];

		if (v->kind == JSON_ARRAY || (v->kind == JSON_OBJECT && !has_objects))
			continue;
		json_key_str(w, from->key[i]);
		json_put_value(w, v);
	}
}

/* Only what the tables and sentences need of a document, as documents may be large. */
static const struct json_value *reduced(const struct json_value *row, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *out = NULL;
	struct err ignored;

	json_begin_object(&w);
	put_members(&w, row, false);
	json_member_object(&w, "profllm");
	put_members(&w, json_get(row, "profllm"), true);
	json_end_object(&w);
	json_member_object(&w, "capacity");
	put_members(&w, json_get(row, "capacity"), false);
	json_end_object(&w);
	json_end_object(&w);
	if (json_parse(a, buf_str(&text), &out, &ignored) < 0)
		out = NULL;
	buf_release(&text);
	return out;
}

static void read_line(const struct suite_member *m, struct points_line *line, struct arena *a)
{
	struct arena own = { 0 };
	const struct json_value *row, *v = result_json(m->path, DOCUMENT_BYTES_MAX, &own, NULL);

	*line = (struct points_line){ .name = m->label, .group = m->x.name, .state = "not run" };
	if (v) {
		row = document_row(v, &own);
		line->record = row ? reduced(row, a) : NULL;
		line->state = arena_text(a, json_text(json_get(v, "status"), STR("not run")));
	}
	arena_release(&own);
}

static void put_grid(const struct params *p, const struct points_line *from,
		     const struct suite_against *against, bool is_csv, struct arena *a,
		     struct buf *out)
{
	struct points_line *line = arena_alloc(a, p->s->n * sizeof(*line));
	const char **title = arena_alloc(a, (p->n + 1) * sizeof(*title));
	struct points_table table = {
		.name_title = is_csv ? "experiment" : "Experiment", .param = title,
		.column = is_csv ? written : shown,
		.n_columns = is_csv ? COUNT(written) : COUNT(shown), .line = line, .n = p->s->n,
		.more_title = against->title,
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
		line[i].more = against->title ? against->cell[i] : NULL;
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

/* Whether there are repeats, each with a server of its own: only these can be compared. */
static bool has_sessions(const struct suite *s)
{
	for (size_t i = 1; i < s->n; i++) { /* they follow one another */
		const struct suite_member *a = &s->member[i - 1], *b = &s->member[i];

		if (strcmp(a->x.name, b->x.name) == 0)
			return plan_starts(&b->x) && !suite_keeps_servers(s, a, b);
	}
	return false;
}

/* If one parameter of the server differs: its title; else NULL. */
static const char *server_param(const struct params *p)
{
	const char *title = NULL;

	for (size_t i = 0; i < p->n; i++) {
		if (!str_starts(str_of(p->v[i].path), STR("server.")))
			continue;
		if (title)
			return NULL;
		title = p->v[i].title;
	}
	return title;
}

/* A result that has no throughput: of an engine's latency or start. */
static bool has_result(const struct points_table *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->line[i].record)
			return true;
	return false;
}

static void add_next(const struct params *p, const struct suite_tally *tally,
		     const struct points_table *all, const struct points_best *best,
		     struct buf *out)
{
	const struct suite *s = p->s;

	if (tally->left)
		buf_printf(out, "Next: run the same command with --resume to run the %zu without a "
				"complete result\n",
			   tally->left + tally->partial + tally->failed);
	else if (!best->n && has_result(all) && p->n)
		buf_printf(out, "Next: profllm bench compare %s --by %s\n", s->output, p->v[0].title);
	else if (!best->n && !has_result(all))
		buf_printf(out, "Next: no experiment has a result; \"error\" in %s and the logs in %s "
			   "say why\n", s->output, s->folder);
	else if (best->n && best->at == SIZE_MAX)
		buf_printf(out, "Next: quote none of these numbers; \"trust\" in %s lists the reasons "
			   "and docs/guide/troubleshooting.md what helps\n", s->output);
	else if (best->n && all->has_sessions && server_param(p))
		buf_printf(out, "Next: profllm bench compare %s --by %s\n", s->output, server_param(p));
	else if (best->n && has_several(s))
		buf_printf(out, "Next: profllm bench plot %s\n", s->output);
	else
		buf_printf(out, "Next: profllm bench compare EARLIER.json %s\n", s->output);
}

void suite_table(const struct suite *s, const struct suite_tally *tally,
		 const struct suite_against *against, struct suite_table *out)
{
	static const struct { const char *key, *what, *unit; } ranked[] = {
		{ "capacity_request_rate", "capacity", "requests/s" },
		{ "capacity_concurrency", "capacity", "requests at once" },
		{ "output_throughput", "output throughput", "tok/s" },
		{ "request_throughput", "throughput", "req/s" },
		{ "requests_per_second", "throughput", "req/s" },
	};
	struct arena a = { 0 };
	struct points_line *line = arena_alloc(&a, (s->n + 1) * sizeof(*line));
	struct points_table all = { .line = line, .n = s->n, .has_sessions = has_sessions(s) };
	struct params params = { .s = s, .a = &a };
	struct points_best best = { .at = SIZE_MAX };
	size_t k = 0;

	*out = (struct suite_table){ 0 };
	if (s->search) {
		suite_search_table(s, tally, out);
		goto done;
	}
	for (size_t i = 0; i < s->n; i++)
		read_line(&s->member[i], &line[i], &a);
	find_params(&params);
	put_grid(&params, line, against, false, &a, &out->text);
	put_grid(&params, line, against, true, &a, &out->csv);
	for (k = 0; k < COUNT(ranked) && !best.n; k++)
		best = points_best(&all, ranked[k].key);
	if (best.n && (has_several(s) || best.n_invalid))
		points_say_best(&all, &best, ranked[k - 1].key, ranked[k - 1].what,
				ranked[k - 1].unit, &a, &out->text);
	buf_add_str(&out->text, against->text);
	add_next(&params, tally, &all, &best, &out->next);
done:
	redact_tail(&out->text, 0, REDACT_SETTINGS);
	redact_tail(&out->csv, 0, REDACT_SETTINGS);
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

	if (lstat(s->output, &st) == 0 && !S_ISREG(st.st_mode))
		return NULL;
	if (str_ends(path, STR(".json")))
		path.n -= strlen(".json");
	buf_printf(&out, "%.*s.csv", (int)path.n, path.p);
	return buf_take(&out);
}
