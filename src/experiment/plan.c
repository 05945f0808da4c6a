/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - see plan.h: the plan as JSON, and that as a text. */
#include "experiment/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"
#include "base/str.h"
#include "experiment/command.h"
#include "experiment/container.h"
#include "experiment/plan_time.h"
#include "experiment/shell.h"
#include "experiment/suite_parts.h"
#include "json/write.h"

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

static void put_seconds(struct json_writer *w, const char *key, double s)
{
	json_key(w, key);
	if (isfinite(s))
		json_put_f64(w, s);
	else
		json_put_null(w);
}

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

/* Places that stand for those which will be chosen. */
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
	json_member_text(w, "url", command_url(&at[i], &p->arena));
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

static unsigned servers_gpus(const struct experiment *x)
{
	unsigned n = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		n += x->server[i].url ? 0 : x->server[i].gpus;
	return n;
}

static void put_gpus(struct planner *p, const struct experiment_resources *r,
		     const struct experiment *x)
{
	struct json_writer *w = &p->w;

	json_key(w, "gpus");
	switch (r->want) {
	case GPUS_NONE: json_put_text(w, "none"); break;
	case GPUS_AUTO: json_put_text(w, "auto"); break;
	case GPUS_COUNT: json_put_int(w, r->count); break;
	case GPUS_LIST:
		json_begin_array(w);
		for (const char *const *g = r->list; *g; g++)
			json_put_text(w, *g);
		json_end_array(w);
		break;
	}
	json_member_int(w, "n_gpus", r->want == GPUS_COUNT ? r->count : r->want == GPUS_NONE ? 0 :
			servers_gpus(x));
}

static void put_time(struct planner *p, const struct plan_time *t)
{
	struct json_writer *w = &p->w;

	json_member_object(w, "time");
	put_seconds(w, "start_s", t->start_s);
	put_seconds(w, "load_s", t->load_s);
	put_seconds(w, "total_s", t->total_s);
	json_member_text(w, "basis", t->basis);
	json_end_object(w);
}

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
	put_gpus(p, &x->resources, x);
	json_member_array(w, "ports");
	json_put_int(w, x->resources.port_first);
	json_put_int(w, x->resources.port_last);
	json_end_array(w);
	json_member_array(w, "servers");
	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++)
		put_server(p, x, i, at);
	json_end_array(w);
	shell_benchmark(&command, x, mode_is_served(x->mode) && x->n_servers ?
				     command_url(&at[x->serving], &p->arena) : NULL);
	put_buf(w, "benchmark", &command);
	json_member_text(w, "profiling", x->profiling.is_enabled ? x->profiling.tool : NULL);
	put_time(p, &t);
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
	json_member_text(w, "restart", suite_restart_name(s->jobs > 1 ? SUITE_RESTART_ALWAYS :
			 s->restart));
	json_key(w, "shuffle_seed");
	if (s->is_shuffled)
		json_put_int(w, (int64_t)s->seed);
	else
		json_put_null(w);
	json_member_array(w, "experiments");
	for (size_t i = 0; i < s->n; i++)
		if (s->member[s->order[i]].is_chosen)
			put_member(&p, s->order[i],
				   o->is_resumed && suite_is_done(&s->member[s->order[i]]));
	json_end_array(w);
	put_seconds(w, "total_s", p.total_s / (s->jobs > 1 ? s->jobs : 1));
	json_member_int(w, "n_run", (int64_t)p.n_run);
	json_member_int(w, "n_unknown", (int64_t)p.n_unknown);
	json_member_int(w, "n_starts", (int64_t)p.n_starts);
	json_end_object(w);
	buf_add_char(out, '\n');
	redact_tail(out, from, REDACT_SETTINGS);
	plan_times_free(times);
}

/* ---- as a text ---- */

static struct str text_at(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), STR(""));
}

static void add_row(struct buf *out, const char *what, struct str text)
{
	buf_printf(out, "  %-10s ", what);
	buf_add_str(out, text);
	buf_add_char(out, '\n');
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
	if (isfinite(total)) {
		buf_printf(out, "about %s: %.*s", fmt_rough_time(rough, total), (int)basis.n, basis.p);
	} else {
		buf_printf(out, "not known: %.*s", (int)basis.n, basis.p);
	}
	buf_add_char(out, '\n');
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
		buf_printf(out, "  %-10s those of %.*s, whose caches are emptied\n", "servers",
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
		buf_printf(out, " and %lld more of which nothing is known", (long long)unknown);
	buf_add_text(out, "\n");
	for (size_t i = 0; i < list->count; i++)
		add_member(out, &list->item[i]);
done:
	arena_release(&arena);
	buf_release(&json);
}
