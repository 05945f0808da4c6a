/* SPDX-License-Identifier: Apache-2.0 */
/* suite_check.c - see suite.h: what members need beside their configuration. */
#include "experiment/suite.h"

#include <string.h>

#include "base/mem.h"
#include "experiment/command.h"
#include "experiment/config_parts.h"
#include "experiment/suite_parts.h"
#include "json/write.h"

struct looking {
	const struct suite *s;
	const struct suite_opts *o;
	const struct experiment_hooks *hooks;
	bool is_planned;
	struct suite_checked *out;
	struct config_findings *f;
	size_t n_mistakes, n_commands; /* that are no notes; the rest is the world's */
	struct map seen;           /* commands and benchmarks that were looked at */
	struct map lines;          /* findings that were told */
	struct arena arena;
};

/* ---- which are alike ---- */

/* Options that requests are not made by, unless --duration counts them. */
static const char *const about_load[] = {
	"max_concurrency", "request_rate", "burstiness", "ramp_up_strategy", "ramp_up_start_rps",
	"ramp_up_end_rps", "goodput", "metadata", "label", "percentile_metrics",
	"metric_percentiles", "num_warmups", "probe_request_rate", "threads", "request_timeout",
	"grace_period", "max_errors", "max_error_rate", "ready_check_timeout_sec", "plot_timeline",
	"save_detailed", "metrics_interval", "profile",
};

static bool is_about_load(const struct experiment *x, struct str key)
{
	for (size_t i = 0; !x->serve.duration.is_set &&
	     i < sizeof(about_load) / sizeof(*about_load); i++) {
		const char *name = about_load[i];
		size_t k = 0;

		while (k < key.n && name[k] && (key.p[k] == '-' ? '_' : key.p[k]) == name[k])
			k++;
		if (k == key.n && !name[k])
			return true;
	}
	return false;
}

void suite_benchmark_key(const struct experiment *x, struct buf *out)
{
	struct json_writer w = json_writer(out);
	const struct json_value *all = x->benchmark;

	json_begin_object(&w);
	for (size_t i = 0; all && i < all->count; i++) {
		if (is_about_load(x, all->key[i]))
			continue;
		json_key_str(&w, all->key[i]);
		json_put_value(&w, &all->item[i]);
	}
	json_end_object(&w);
}

static void command_key(const struct experiment_server *s, struct buf *out)
{
	buf_printf(out, "command %s", s->command && s->command[0] ? s->command[0] : "");
	if (s->container) {
		buf_add_text(out, " in ");
		buf_add_str(out, json_text(json_get(s->container, "runtime"), STR("docker")));
	}
	for (size_t i = 0; s->env && s->env[i]; i++)
		if (strncmp(s->env[i], "PATH=", 5) == 0)
			buf_printf(out, " %s", s->env[i]);
}

static void add_arg(const struct json_value *args, const char *name, struct buf *out)
{
	struct json_writer w = json_writer(out);
	const struct json_value *v = json_get(args, name);

	buf_printf(out, "\n%s ", name);
	if (v)
		json_put_value(&w, v);
}

bool suite_cause(const struct experiment *x, const char *category, struct buf *out)
{
	static const char *const model[] = { "model", "revision", "tokenizer", "tokenizer_revision",
					     "download_dir", "load_format", "hf_config_path" };
	bool is_command = strcmp(category, "command not found") == 0;
	bool is_bench = strcmp(category, "bad configuration") == 0 && mode_is_served(x->mode);

	if (!is_command && !is_bench && strcmp(category, "model not found") != 0)
		return false;
	buf_printf(out, "%s %s", category, experiment_mode_name(x->mode));
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];
		struct json_writer w = json_writer(out);

		buf_printf(out, "\n%s ", s->url ? s->url : "");
		command_key(s, out);
		if (s->container)
			json_put_value(&w, s->container);
		for (size_t k = 0; !is_command && k < sizeof(model) / sizeof(*model); k++)
			add_arg(s->args, model[k], out);
	}
	if (is_bench)
		suite_benchmark_key(x, out);
	return true;
}

static bool is_seen(const struct looking *l, const struct buf *key)
{
	return map_get(&l->seen, buf_str(key), NULL);
}

static void see(struct looking *l, const struct buf *key)
{
	map_put(&l->seen, arena_str(&l->arena, buf_str(key)), 1);
}

/* ---- where it is said ---- */

static const struct json_value *server_tree(const struct suite_member *m, size_t i,
					    const char **section, struct arena *a)
{
	const struct json_value *list = config_get(m->config, "servers");

	*section = list ? arena_printf(a, "servers.%zu", i) : "server";
	if (!list)
		return config_get(m->config, "server");
	return i < list->count ? &list->item[i] : NULL;
}

/* Of the benchmark, else of the server that it was taken from. */
static struct config_place tokenizer_place(struct looking *l, const struct suite_member *m,
					   const char *text)
{
	static const char *const keys[] = { "tokenizer", "model" };
	const struct json_value *bench = config_get(m->config, "benchmark"), *v;
	const char *section;

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		v = config_get(bench, keys[k]);
		if (v)
			return (struct config_place){
				v, arena_printf(&l->arena, "benchmark.%s", keys[k]), text };
		for (size_t i = 0; i < m->x.n_servers; i++) {
			v = config_get(server_tree(m, i, &section, &l->arena), keys[k]);
			if (v)
				return (struct config_place){
					v, arena_printf(&l->arena, "%s.%s", section, keys[k]), text };
		}
	}
	return (struct config_place){ bench, "benchmark", text };
}

static struct config_place place_of(struct looking *l, const struct suite_member *m,
				    enum point_part part, const char *text)
{
	const struct json_value *bench = config_get(m->config, "benchmark");
	const char *otherwise = "endpoint";

	if (part == PART_TOKENIZER)
		return tokenizer_place(l, m, text);
	if (part == PART_DATASET)
		otherwise = config_get(bench, "dataset_path") ? "dataset_path" : "dataset_name";
	else if (!config_get(bench, otherwise))
		otherwise = "backend";
	return config_place_of(bench, text, otherwise, &l->arena);
}

static void tell(struct looking *l, struct config_findings *own, const struct config_place *at,
		 bool is_note)
{
	if (is_note)
		config_note(l->s->config, own, at->v, at->path, "%s", at->text);
	else
		config_complain(l->s->config, own, at->v, at->path, "%s", at->text);
}

/* ---- what is looked at ---- */

static void look_at_commands(struct looking *l, const struct suite_member *m,
			     struct config_findings *own)
{
	for (size_t i = 0; i < m->x.n_servers; i++) {
		const struct experiment_server *s = &m->x.server[i];
		const char *path, *section, *key = s->container ? "container" : "command";
		const struct json_value *tree = server_tree(m, i, &section, &l->arena);
		struct config_place at = { .v = config_get(tree, key) };
		struct buf text = { 0 };
		struct err e = { 0 };

		command_key(s, &text);
		if (!s->url && !is_seen(l, &text) && command_find(s, &l->arena, &path, &e) < 0) {
			at.v = at.v ? at.v : tree;
			at.path = arena_printf(&l->arena, "%s.%s%s", section, key,
					       s->container ? ".runtime" : "");
			at.text = e.text;
			tell(l, own, &at, l->is_planned);
			l->n_commands += !l->is_planned;
		}
		see(l, &text);
		buf_release(&text);
	}
}

static void look_at_benchmark(struct looking *l, const struct suite_member *m,
			      struct config_findings *own)
{
	bool is_kept = !l->out->member && !l->is_planned && l->s->jobs <= 1;
	struct point_early other = { 0 }, *early = is_kept ? &l->out->early : &other;
	struct err e = { 0 };

	if (experiment_prepare(&m->x, l->hooks, early, &e) == 0) {
		if (is_kept && early->is_whole)
			l->out->member = m;
	} else if (e.code == ERR_CANCELLED) {
		l->out->is_cancelled = true;
	} else {
		struct config_place at = place_of(l, m, early->part, e.text);
		bool is_world = e.code == ERR_NET;

		tell(l, own, &at, is_world && l->is_planned);
		l->n_mistakes += !is_world;
	}
	if (l->out->member != m)
		point_early_release(early);
}

/* Whether there is something about the member that no other had. */
static bool is_new(const struct looking *l, const struct experiment *x, const struct buf *key)
{
	bool is_found = !is_seen(l, key);

	for (size_t i = 0; !is_found && i < x->n_servers; i++) {
		struct buf text = { 0 };

		command_key(&x->server[i], &text);
		is_found = !is_seen(l, &text);
		buf_release(&text);
	}
	return is_found;
}

static void look_at(struct looking *l, const struct suite_member *m)
{
	struct config_findings own = { 0 };
	struct buf key = { 0 };

	suite_benchmark_key(&m->x, &key);
	if (mode_is_served(m->x.mode) && is_new(l, &m->x, &key) &&
	    !(l->o->is_resumed && suite_is_done(m))) {
		look_at_commands(l, m, &own);
		if (!is_seen(l, &key))
			look_at_benchmark(l, m, &own);
		see(l, &key);
	}
	suite_add_findings(l->s, &own, &l->lines, m->x.name, &l->arena, l->f);
	config_findings_release(&own);
	buf_release(&key);
}

int suite_check(const struct suite *s, const struct suite_opts *o, bool is_planned,
		const struct experiment_hooks *hooks, struct suite_checked *out,
		struct config_findings *f)
{
	struct looking l = { .s = s, .o = o, .hooks = hooks, .is_planned = is_planned,
			     .out = out, .f = f };
	size_t before = f->n_errors, n;

	*out = (struct suite_checked){ 0 };
	for (size_t i = 0; i < s->n && !out->is_cancelled; i++)
		if (s->member[s->order[i]].is_chosen)
			look_at(&l, &s->member[s->order[i]]);
	n = f->n_errors - before;
	out->is_world = n && !l.n_mistakes && !l.n_commands;
	out->category = l.n_mistakes ? "bad configuration" :
			l.n_commands ? "command not found" : "network";
	map_release(&l.seen);
	map_release(&l.lines);
	arena_release(&l.arena);
	return n || out->is_cancelled ? -1 : 0;
}

void suite_checked_release(struct suite_checked *c)
{
	point_early_release(&c->early);
	*c = (struct suite_checked){ 0 };
}
