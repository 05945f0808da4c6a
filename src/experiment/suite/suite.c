/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c - see suite.h: expanding a configuration, names, files, the order. */
#include "experiment/suite/suite.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sweep/params.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "experiment/config/command.h"
#include "experiment/config/config_internal.h"
#include "experiment/stages/allocate.h"
#include "experiment/suite/suite_internal.h"
#include "experiment/suite/suite_search.h"

#define OUTPUT_DEFAULT "results.json"

/* ---- keys of the suite itself ---- */

struct settings {
	unsigned repeats, rounds;  /* rounds: members of each part; of a search one, a candidate */
	bool is_member;            /* --member: repeat and hash are given */
	unsigned repeat;
	unsigned long long hash;   /* 0: not given */
};

static int64_t read_int(const struct config *c, const char *key, int64_t low, int64_t high,
			int64_t otherwise, struct config_findings *f)
{
	const struct json_value *v = json_get(c->tree, key);

	if (!v || v->kind == JSON_NULL)
		return otherwise;
	if (v->kind == JSON_INT && v->integer >= low && v->integer <= high)
		return v->integer;
	config_complain(c, f, v, key, "expected a whole number from %lld to %lld, got %s",
			(long long)low, (long long)high, config_got(v, c->arena));
	return otherwise;
}

static void read_shuffle(const struct config *c, struct suite *s, struct config_findings *f)
{
	const struct json_value *v = json_get(c->tree, "shuffle");

	if (!v || v->kind == JSON_NULL || v->kind == JSON_FALSE)
		return;
	s->is_shuffled = true;
	if (v->kind == JSON_INT && v->integer >= 0)
		s->seed = (uint64_t)v->integer;
	else if (v->kind != JSON_TRUE)
		config_complain(c, f, v, "shuffle", "expected true, false or a seed, a whole number "
				"from 0, got %s", config_got(v, c->arena));
}

const char *suite_restart_name(enum suite_restart how)
{
	static const char *const name[] = { "always", "on-change", "never", "on-repeat" };

	return name[how];
}

static void read_restart(const struct config *c, struct suite *s, struct config_findings *f)
{
	const struct json_value *v = json_get(c->tree, "restart");

	s->restart = SUITE_RESTART_ON_REPEAT;
	if (!v || v->kind == JSON_NULL)
		return;
	for (unsigned i = 0; v->kind == JSON_STRING && i <= SUITE_RESTART_ON_REPEAT; i++)
		if (str_is(v->text, suite_restart_name((enum suite_restart)i))) {
			s->restart = (enum suite_restart)i;
			if ((s->jobs > 1 || s->where != SUITE_LOCAL) &&
			    s->restart != SUITE_RESTART_ALWAYS)
				config_note(c, f, v, "restart", "ignored, because every experiment "
					    "starts its own servers when jobs is more than one, and with "
					    "a scheduler");
			return;
		}
	config_complain(c, f, v, "restart", "expected one of on-repeat, on-change, always, never, "
			"got %s", config_got(v, c->arena));
}

static void read_search(const struct config *c, struct suite *s, struct config_findings *f)
{
	struct experiment_search asked;

	config_suite_search(c, &s->arena, &asked, f);
	if (!asked.best)
		return;
	s->search = arena_alloc(&s->arena, sizeof(*s->search));
	*s->search = (struct suite_search){ .asked = asked };
}

bool suite_has_children(const struct suite *s)
{
	return !s->is_single && (s->jobs > 1 || s->where != SUITE_LOCAL);
}

bool suite_is_elsewhere(const struct config *c, const char *scheduler)
{
	struct str kind = json_text(config_get(config_get(c->tree, "scheduler"), "type"),
				    STR("local"));

	return scheduler ? strcmp(scheduler, "local") != 0 : !str_is(kind, "local");
}

static void read_hosts(const struct config *c, struct suite *s, bool has_jobs,
		       struct config_findings *f)
{
	const struct json_value *v = config_get(config_get(c->tree, "scheduler"), "hosts");
	const char *path = s->scheduler.hosts;
	struct err e = { 0 };
	unsigned slots = 0;

	if (!path)
		config_complain(c, f, v, "scheduler.hosts", "type ssh needs the file of hosts: "
				"--hosts FILE");
	else if (config_hosts(path, &s->arena, &s->host, &s->n_hosts, &e) < 0)
		config_complain(c, f, v, "scheduler.hosts", "%s", e.text);
	for (size_t i = 0; i < s->n_hosts; i++)
		slots += s->host[i].slots;
	s->jobs = has_jobs && s->jobs < slots ? s->jobs : slots;
}

/* Reads the section, overridden by the command line. */
static void read_scheduler(const struct config *c, const struct suite_opts *o, struct suite *s,
			   struct config_findings *f)
{
	static const char *const kinds[] = { "local", "slurm", "ssh" };
	struct experiment_scheduler *own = &s->scheduler;
	size_t before = f->n_errors, n_more = o->scheduler_args ? o->scheduler_args->n : 0;
	bool has_jobs = o->jobs || config_get(c->tree, "jobs");
	const char **args;

	config_suite_scheduler(c, &s->arena, own, f);
	own->kind = o->scheduler ? o->scheduler : own->kind;
	own->hosts = o->hosts ? o->hosts : own->hosts;
	args = arena_alloc(&s->arena, (own->args.n + n_more + 1) * sizeof(*args));
	for (size_t i = 0; i < own->args.n + n_more; i++)
		args[i] = i < own->args.n ? own->args.v[i] : o->scheduler_args->v[i - own->args.n];
	own->args = (struct opt_list){ args, own->args.n + n_more, true };
	while (s->where < SUITE_SSH && strcmp(own->kind, kinds[s->where]) != 0)
		s->where++;
	if (o->hosts && s->where != SUITE_SSH)
		config_complain(c, f, NULL, "--hosts", "only --scheduler ssh has hosts");
	if (o->is_detached && s->where != SUITE_SLURM)
		config_complain(c, f, NULL, "--no-wait", "only --scheduler slurm can continue "
				"without this program");
	if (o->is_detached && s->search)
		config_complain(c, f, NULL, "--no-wait", "search.best needs the results of each round "
				"before it can submit the next one");
	if (s->where == SUITE_SSH && f->n_errors == before)
		read_hosts(c, s, has_jobs, f);
	else if (s->where == SUITE_SLURM && !has_jobs)
		s->jobs = 0;
}

static void read_settings(const struct config *c, const struct suite_opts *o, struct suite *s,
			  struct settings *set, struct config_findings *f)
{
	const struct json_value *stop = json_get(c->tree, "stop_on_error");

	*set = (struct settings){ .repeat = 1 };
	read_search(c, s, f);
	set->repeats = (unsigned)read_int(c, "repeat", 1, s->search ? SUITE_SEARCH_REPEATS_MAX :
					  SUITE_MEMBERS_MAX, s->search ? HALVING_REPEATS : 1, f);
	set->rounds = s->search ? 1 : set->repeats;
	s->jobs = (unsigned)read_int(c, "jobs", 1, SUITE_JOBS_MAX, 1, f);
	if (o->jobs)
		s->jobs = o->jobs;
	read_scheduler(c, o, s, f);
	read_shuffle(c, s, f);
	read_restart(c, s, f);
	if (stop && stop->kind != JSON_TRUE && stop->kind != JSON_FALSE)
		config_complain(c, f, stop, "stop_on_error", "expected true or false");
	s->stop_on_error = json_bool(stop, false);
	if (o->member) {
		set->is_member = true;
		if (sscanf(o->member, "%u/%u@%llx", &set->repeat, &set->repeats, &set->hash) < 2 ||
		    !set->repeat || set->repeat > set->repeats)
			config_complain(c, f, NULL, "--member", "expected I/N@HASH, got '%s'",
					o->member);
	}
}

/* ---- files ---- */

void suite_place(struct suite *s, struct suite_member *m)
{
	/* "." would be the folder of the suite itself. */
	struct str label = strcmp(m->label, ".") == 0 ? STR("_") : str_of(m->label);

	m->path = s->is_single ? s->output
		  : arena_printf(&s->arena, "%s/%s", s->folder,
				 params_file_name_ending(label, ".json", &s->arena));
	m->folder = s->is_single ? s->folder
		    : arena_printf(&s->arena, "%s/%s", s->folder,
				   params_file_name(label, &s->arena));
	m->x.output.path = m->path;
	m->x.output.folder = m->folder;
}

static void settle_files(struct suite *s, const struct suite_opts *o)
{
	const struct experiment_output *given = &s->member[0].x.output;
	struct str base;

	s->output = o->output ? o->output : given->path ? given->path : OUTPUT_DEFAULT;
	base = str_of(s->output); /* "a/r.json": "a/r.d" */
	if (str_ends(base, STR(".json")))
		base.n -= strlen(".json");
	s->folder = given->folder ? given->folder :
				    arena_printf(&s->arena, "%.*s.d", (int)base.n, base.p);
	for (size_t i = 0; i < s->n; i++)
		suite_place(s, &s->member[i]);
}

/* Refuses what is impossible when this process does not start the servers itself. */
static void check_elsewhere(const struct suite *s, struct config_findings *f)
{
	for (size_t i = 0; s->where != SUITE_LOCAL && i < s->n; i++) {
		const struct suite_member *m = &s->member[i];
		const struct json_value *gpus = config_get(config_get(m->config, "resources"), "gpus");

		if (m->test && m->test->o->is_adaptive) {
			config_complain(s->config, f, json_get(s->config->tree, "import"),
					"import.adaptive", "each level depends on the one before it, so "
					"it needs the scheduler local");
			return;
		}
		if (s->where == SUITE_SLURM && m->x.resources.want == GPUS_LIST) {
			config_complain(s->config, f, gpus, "resources.gpus", "Slurm chooses the GPUs; "
					"expected auto, none or a number");
			return;
		}
	}
}

static int check_names(const struct suite *s, struct config_findings *f)
{
	struct map seen = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct suite_member *m = &s->member[i];

		if (map_get(&seen, str_of(m->path), NULL))
			rc = config_complain(s->config, f, json_get(m->config, "name"), "name",
					     "two experiments have the name %s", m->label);
		map_put(&seen, str_of(m->path), i);
	}
	map_release(&seen);
	return rc;
}

/* ---- members ---- */

static const struct json_value *with_text(const struct suite *s, const struct json_value *tree,
					  const char *key, const char *text, struct arena *a)
{
	struct json_value *v = arena_alloc(a, sizeof(*v));
	struct err e;

	if (str_is(json_text(json_get(tree, key), STR("")), text))
		return tree;
	v->kind = JSON_STRING;
	v->text = arena_str(a, str_of(text));
	return config_put(s->config, tree, key, v, &e);
}

/*
 * Adds to f the findings of `from` that no earlier member had (seen), with the experiment's name if
 * there are several; name NULL: of all. Keys of seen are in a.
 */
static void suite_add_findings(const struct suite *s, const struct config_findings *from,
			struct map *seen, const char *name, struct arena *a,
			struct config_findings *f)
{
	const struct { const struct buf *from; struct buf *to; size_t *n; } kind[] = {
		{ &from->errors, &f->errors, &f->n_errors },
		{ &from->notes, &f->notes, &f->n_notes },
	};

	for (size_t k = 0; k < 2; k++) {
		struct str rest = buf_str(kind[k].from);

		while (rest.n) {
			struct str line = str_cut(&rest, '\n');

			if (line.n == 0 || map_get(seen, line, NULL))
				continue;
			map_put(seen, arena_str(a, line), 1);
			if (k == 0 && f->n_errors >= EXPERIMENT_FINDINGS_MAX) {
				f->n_errors++;
				continue;
			}
			buf_add_str(kind[k].to, line);
			if (!s->is_single && name)
				buf_printf(kind[k].to, " (experiment %s)", name);
			buf_add_char(kind[k].to, '\n');
			++*kind[k].n;
		}
	}
}

/* ---- --set for members of several modes ---- */

static bool has_option(enum experiment_mode mode, struct str option, struct arena *a)
{
	return config_row(config_bench_set(mode), option) ||
	       (mode == MODE_MULTI_TURN && config_row(&serve_opt_set, option)) ||
	       config_is_elsewhere(mode, arena_text(a, option));
}

/*
 * A member without those options of --set that only other members' modes have. Options that no mode
 * has stay, and are refused when they are read.
 */
static const struct json_value *without_others(const struct suite *s,
					       const struct suite_parts *parts,
					       const struct json_value *tree, struct arena *a)
{
	const struct json_value *bench = json_get(tree, "benchmark"), *kept = bench;
	enum experiment_mode mode = suite_mode_of(tree);
	struct err e;

	for (size_t i = 0; bench && i < s->config->n_sets; i++) {
		struct str rest = str_of(s->config->sets[i]);
		struct str option = str_trim(str_cut(&rest, '='));
		bool is_for_another = false;

		if (!str_is(str_cut(&option, '.'), "benchmark") || !option.n ||
		    str_is(option, "mode") || has_option(mode, option, a))
			continue;
		for (size_t k = 0; k < parts->n && !is_for_another; k++) {
			enum experiment_mode other = suite_mode_of(parts->v[k].tree);

			is_for_another = other != mode && has_option(other, option, a);
		}
		if (is_for_another)
			kept = config_without(s->config, kept, arena_text(a, option));
	}
	return kept == bench ? tree : config_put(s->config, tree, "benchmark", kept, &e);
}

/* ---- every member ---- */

/* Traces are assigned by time, which does not distinguish experiments that run at once. */
static int check_traces(const struct suite *s, const struct settings *set,
			const struct json_value *tree, const struct experiment *x,
			struct config_findings *f)
{
	const struct json_value *profiling = json_get(tree, "profiling");

	if (!suite_has_children(s) || set->is_member || !x->profiling.is_enabled ||
	    !x->profiling.dir)
		return 0;
	return config_complain(s->config, f, json_get(profiling, "dir"), "profiling.dir",
			       "experiments that run at the same time would mix up their traces in "
			       "one folder; remove dir, so that each has its own folder");
}

static bool is_wanted(const struct suite_opts *o, const char *name)
{
	bool is = !o->only || !*o->only;

	for (const char *const *p = o->only; p && *p; p++)
		is = is || fnmatch(*p, name, 0) == 0;
	return is;
}

static const char *label_of(const struct settings *set, const char *name, unsigned repeat,
			    struct arena *a)
{
	return set->is_member || set->rounds == 1 ? name : arena_printf(a, "%s-r%u", name, repeat);
}

/* The GPUs of this machine say nothing about a part of which --only runs no repeat. */
static struct config_know know_of(struct suite *s, const struct suite_part *part,
				  const struct settings *set, const struct suite_opts *o)
{
	struct config_know know = *s->know;
	bool is = !part->name || is_wanted(o, part->name);

	for (unsigned r = 1; !is && r <= set->rounds; r++)
		is = is_wanted(o, label_of(set, part->name, r, &s->arena));
	know.is_gpus_known = know.is_gpus_known && is;
	return know;
}

static int type_members(struct suite *s, const struct suite_parts *parts,
			const struct settings *set, const struct suite_opts *o, struct map *seen,
			struct config_findings *f)
{
	const char *suite = s->name;
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < parts->n; i++) {
		const struct suite_part *part = &parts->v[i];
		const struct json_value *tree = part->tree;
		struct config_findings own = { 0 };
		struct suite_member first = { 0 };
		struct config_know know = know_of(s, part, set, o);

		tree = without_others(s, parts, tree, &s->arena);
		if (part->name)
			tree = with_text(s, tree, "name", part->name, &s->arena);
		if (suite)
			tree = with_text(s, tree, "suite", suite, &s->arena);
		if (config_experiment(s->config, tree, &know, &s->arena, &first.x, &own) < 0)
			rc = -1;
		else if (check_traces(s, set, tree, &first.x, &own) < 0)
			rc = -1;
		suite_add_findings(s, &own, seen, part->name, &s->arena, f);
		config_findings_release(&own);
		first.config = first.x.given;
		first.test = part->test;
		for (unsigned r = 1; r <= (set->is_member ? 1 : set->rounds); r++) {
			struct suite_member *m = &s->member[n++];

			*m = first;
			m->x.repeat = set->is_member ? set->repeat : r;
			m->x.repeats = s->search ? 1 : set->repeats;
			m->x.hash = set->hash ? set->hash : m->x.hash;
			m->x.is_one_of_many = set->is_member || s->n > 1;
			m->label = label_of(set, m->x.name, r, &s->arena);
		}
	}
	return rc;
}

/* ---- the order ---- */

/* The member, when it is there, and a character after it. */
static void add_member_text(const struct json_value *object, const char *key, char after,
			    struct buf *out)
{
	const struct json_value *v = json_get(object, key);
	struct json_writer w = json_writer(out);

	if (v)
		json_put_value(&w, v);
	buf_add_char(out, after);
}

/* Everything that servers are started with; an engine without a server has none. */
static void servers_text(const struct experiment *x, struct buf *out)
{
	static const char *const key[] = { "server", "servers", "resources", "profiling" };

	buf_add_text(out, mode_is_served(x->mode) ? "serve\n" : "\n");
	for (size_t i = 0; i < sizeof(key) / sizeof(*key); i++)
		add_member_text(x->given, key[i], '\n', out);
}

bool suite_same_servers(const struct experiment *a, const struct experiment *b)
{
	struct buf x = { 0 }, y = { 0 };
	bool is_same;

	servers_text(a, &x);
	servers_text(b, &y);
	is_same = str_eq(buf_str(&x), buf_str(&y));
	buf_release(&x);
	buf_release(&y);
	return is_same;
}

/* Whether every kind of engine that we start has a way to empty its caches. */
static bool can_empty_caches(const struct experiment *x)
{
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];
		struct server_address where;
		struct err e;

		if (s->url || !role_has_engine(s->role) || config_is_sim(s->command))
			continue;
		if (server_address(s->command, &where, &e) < 0 || !server_kind_resets(where.kind))
			return false;
	}
	return true;
}

bool suite_keeps_servers(const struct suite *s, const struct suite_member *a,
			 const struct suite_member *b)
{
	if (s->restart == SUITE_RESTART_ALWAYS || suite_has_children(s) ||
	    !mode_is_served(a->x.mode) || !suite_same_servers(&a->x, &b->x))
		return false;
	return s->restart != SUITE_RESTART_ON_REPEAT ||
	       (a->x.repeat == b->x.repeat && can_empty_caches(&a->x));
}

/* Puts members of one round with the same servers together, at the place of the first. */
static void put_together(struct suite *s, size_t *order, size_t n)
{
	struct map group = { 0 };
	size_t *of = arena_alloc(&s->arena, n * sizeof(*of));
	size_t *old = arena_alloc(&s->arena, n * sizeof(*old)), groups = 0, to = 0;

	memcpy(old, order, n * sizeof(*old));
	for (size_t i = 0; i < n; i++) {
		struct buf text = { 0 };
		uint64_t at = groups;

		servers_text(&s->member[old[i]].x, &text);
		if (!map_get(&group, buf_str(&text), &at)) {
			map_put(&group, arena_str(&s->arena, buf_str(&text)), at);
			groups++;
		}
		of[i] = (size_t)at;
		buf_release(&text);
	}
	map_release(&group);
	for (size_t g = 0; g < groups; g++)
		for (size_t i = 0; i < n; i++)
			if (of[i] == g)
				order[to++] = old[i];
}

/*
 * Repeats of one member are as far apart as possible: drift shows as spread. A random order that
 * was asked for is kept even if it needs more starts, unless fewer starts were asked for too.
 */
static void settle_order(struct suite *s, unsigned repeats)
{
	size_t each = s->n / repeats;
	struct pyrandom rng;

	s->order = arena_alloc(&s->arena, s->n * sizeof(*s->order));
	pyrandom_seed(&rng, (int64_t)s->seed);
	for (size_t r = 0; r < repeats; r++) {
		size_t *round = s->order + r * each;

		for (size_t i = 0; i < each; i++)
			round[i] = i * repeats + r;
		if (s->is_shuffled)
			pyrandom_shuffle(&rng, round, each, sizeof(*round));
		if (s->restart != SUITE_RESTART_ALWAYS && !suite_has_children(s) &&
		    !(s->is_shuffled && s->restart == SUITE_RESTART_ON_REPEAT))
			put_together(s, round, each);
	}
}

static int check_never(const struct suite *s, struct config_findings *f)
{
	const struct json_value *v = json_get(s->config->tree, "restart");

	for (size_t i = 1; s->restart == SUITE_RESTART_NEVER && i < s->n; i++)
		if (!suite_same_servers(&s->member[0].x, &s->member[i].x))
			return config_complain(s->config, f, v, "restart", "never needs the same "
					       "server for all experiments, but %s has another one "
					       "than %s",
					       s->member[i].label, s->member[0].label);
	return 0;
}

static void choose(struct suite *s, const struct suite_opts *o)
{
	for (size_t i = 0; i < s->n; i++) {
		struct suite_member *m = &s->member[i];

		m->is_chosen = is_wanted(o, m->label) || is_wanted(o, m->x.name);
	}
}

int suite_check_only(const struct suite *s, struct err *e)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->member[i].is_chosen)
			return 0;
	return err_set(e, ERR_USAGE, "--only: no experiment of the suite has such a name; the "
		       "first of %zu is called %s", s->n, s->member[0].label);
}

int suite_check_gpus(const struct suite *s, struct config_findings *f)
{
	static const char key[] = "resources.gpus";
	struct gpu_set *gpus = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct suite_member *m = &s->member[i];
		struct candidates may = { 0 };
		struct err e;

		if (!m->is_chosen || m->x.resources.want != GPUS_LIST)
			continue;
		gpus = gpus ? gpus : gpu_open(NULL);
		if (choose_candidates(&m->x.resources, gpus, &may, &e) < 0)
			rc = config_complain(s->config, f,
					     json_get(json_get(m->config, "resources"), "gpus"),
					     key, "%s", e.text + strlen(key) + strlen(": "));
		free(may.place);
	}
	gpu_close(gpus);
	return rc;
}

int suite_expand(const struct config *config, const struct config_know *know,
		 const struct suite_opts *o, struct suite *out, struct config_findings *f)
{
	struct suite *s = out;
	struct config_findings own = { 0 };
	struct suite_parts parts = { 0 };
	const struct json_value *name;
	struct map seen = { 0 };
	struct settings set;
	size_t n_wrong; /* settings; the experiments' mistakes are reported together with them */
	int rc;

	assert(config->tree);
	*s = (struct suite){ .config = config, .know = know };
	read_settings(config, o, s, &set, f);
	n_wrong = f->n_errors;
	rc = suite_parts(config, know, &s->arena, &parts, &own);
	suite_add_findings(s, &own, &seen, NULL, &s->arena, f);
	config_findings_release(&own);
	if (rc < 0 || f->n_errors > n_wrong)
		goto done;
	if (s->search && !parts.is_list) {
		rc = config_complain(config, f, json_get(config->tree, "search"), "search.best",
				     "it needs experiments to search among: matrix or experiments");
		goto done;
	}
	s->is_single = !parts.is_list && (set.is_member || set.repeats == 1) &&
		       s->where == SUITE_LOCAL;
	name = json_get(config->tree, "suite");
	if (!s->is_single && (!name || name->kind != JSON_STRING))
		name = json_get(config->tree, "name");
	s->name = name && name->kind == JSON_STRING ? arena_text(&s->arena, name->text) : NULL;
	s->n = parts.n * (set.is_member ? 1 : set.rounds);
	if (s->n > SUITE_MEMBERS_MAX) {
		config_complain(config, f, json_get(config->tree, "repeat"), "repeat",
				"%zu experiments including repeats, but at most %d are "
				"possible", s->n,
				SUITE_MEMBERS_MAX);
		goto done;
	}
	s->member = arena_alloc(&s->arena, s->n * sizeof(*s->member));
	rc = type_members(s, &parts, &set, o, &seen, f);
	if (n_wrong)
		goto done;
	check_elsewhere(s, f);
	settle_files(s, o);
	settle_order(s, set.is_member ? 1 : set.rounds);
	choose(s, o);
	if (rc == 0 && !s->is_single)
		rc = check_names(s, f);
	if (rc == 0)
		rc = check_never(s, f);
	if (rc == 0 && f->n_errors == 0 && s->search)
		rc = suite_search_begin(s, set.repeats, f);
done:
	map_release(&seen);
	if (rc == 0 && s->n && f->n_errors == 0)
		return 0;
	if (!s->is_single || !s->n || n_wrong)
		suite_release(s);
	return -1;
}

void suite_release(struct suite *s)
{
	arena_release(&s->arena);
	*s = (struct suite){ 0 };
}

/* ---- what members need in addition to their configuration ---- */

struct looking {
	const struct suite *s;
	const struct suite_opts *o;
	const struct experiment_hooks *hooks;
	bool is_planned;
	struct suite_checked *out;
	struct config_findings *f;
	size_t n_mistakes, n_commands; /* that are no notes; the rest is the world's */
	struct map seen;           /* commands and benchmarks that were looked at */
	struct map lines;          /* findings that were reported */
	struct arena arena;
};

/* ---- which are alike ---- */

/* Options that do not influence the requests, unless --duration counts them. */
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

/*
 * Appends what a benchmark prepares before it sends anything, as a text: equal texts mean the same
 * requests.
 */
static void suite_benchmark_key(const struct experiment *x, struct buf *out)
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
		for (size_t k = 0; !is_command && k < sizeof(model) / sizeof(*model); k++) {
			buf_printf(out, "\n%s ", model[k]);
			add_member_text(s->args, model[k], ' ', out);
		}
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
	bool is_kept = !l->out->member && !l->is_planned && !suite_has_children(l->s);
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

/* Whether the member has something that no earlier one had. */
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
