/* SPDX-License-Identifier: Apache-2.0 */
/* serve_system.c - what is watched of the machine: --system-metrics and what belongs to it. */
#include <string.h>

#include "base/limits.h"
#include "run/serve_check.h"

#define INTERVAL_S_MIN 0.01 /* below, watching would be a load of its own */

static int bad_list(const struct check *c)
{
	return err_set(c->e, ERR_USAGE, "--system-metrics: expected off, all, or a comma list of gpu, "
		       "host, process, got '%s'", c->o->system_metrics);
}

static int parse_list(const struct check *c)
{
	struct system_opts *s = &c->d->system;
	struct str rest = str_of(c->o->system_metrics);
	const struct { const char *name; bool *wanted; } row[] = {
		{ "gpu", &s->gpu }, { "host", &s->host }, { "process", &s->process },
	};

	if (str_is(rest, "off"))
		return 0;
	if (str_is(rest, "all")) {
		s->gpu = s->host = s->process = true;
		return 0;
	}
	if (rest.n == 0 || str_ends(rest, STR(",")))
		return bad_list(c);
	while (rest.n) {
		struct str word = str_trim(str_cut(&rest, ','));
		bool is_known = false;

		for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
			if (str_is(word, row[i].name))
				*row[i].wanted = is_known = true;
		}
		if (!is_known)
			return bad_list(c);
	}
	return 0;
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char ch = s.p[i];

		if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
		      (ch >= '0' && ch <= '9') || ch == '-' || ch == '_' || ch == '.'))
			return false;
	}
	return s.n > 0;
}

static int parse_pids(const struct check *c)
{
	const struct opt_list *list = &c->o->system_pid;
	struct system_process *p = arena_alloc(c->arena, list->n * sizeof(*p));

	for (size_t i = 0; i < list->n; i++) {
		struct str rest = str_of(list->v[i]), name = STR("server");
		uint64_t pid;

		if (memchr(rest.p, '=', rest.n))
			name = str_cut(&rest, '=');
		if (!is_name(name) || !str_to_u64(rest, &pid) || pid == 0 || pid > PROC_TREE_MAX)
			return err_set(c->e, ERR_USAGE, "--system-pid: expected the number of a process, "
				       "or NAME=NUMBER with a name of letters, digits, '-', '_' and '.', "
				       "got '%s'", list->v[i]);
		p[i] = (struct system_process){ (pid_t)pid, arena_text(c->arena, name) };
	}
	c->d->system.processes = p;
	c->d->system.n_processes = list->n;
	return 0;
}

static int check_gpus(const struct check *c)
{
	const struct opt_list *list = &c->o->system_gpus;

	for (size_t i = 0; i < list->n; i++)
		if (!is_name(str_of(list->v[i])))
			return err_set(c->e, ERR_USAGE, "--system-gpus: expected the index of a GPU or its "
				       "UUID, got '%s'", list->v[i]);
	return 0;
}

static void check_unused(const struct check *c)
{
	const struct system_opts *s = &c->d->system;
	const struct { const char *name; bool has_effect; const char *why; } row[] = {
		{ "system-interval", s->gpu || s->host || s->process, "without --system-metrics" },
		{ "system-gpus", s->gpu, "unless --system-metrics has gpu" },
		{ "system-pid", s->process, "unless --system-metrics has process" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		if (serve_given(c, row[i].name) && !row[i].has_effect)
			serve_warn(c, "--%s has no effect %s", row[i].name, row[i].why);
}

int serve_check_system(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (parse_list(c) < 0 || parse_pids(c) < 0 || check_gpus(c) < 0)
		return -1;
	if (o->system_interval > 0 && o->system_interval < INTERVAL_S_MIN)
		return err_set(c->e, ERR_USAGE, "--system-interval: expected 0 or at least %g seconds, "
			       "got %g", INTERVAL_S_MIN, o->system_interval);
	c->d->system.interval_ns = (int64_t)(o->system_interval * 1e9);
	c->d->system.gpus = o->system_gpus.v;
	c->d->system.n_gpus = o->system_gpus.n;
	check_unused(c);
	return 0;
}
