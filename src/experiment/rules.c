/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - see rules.h: rules of the experiment as a whole, and the walk over all of them. */
#include "experiment/rules.h"

#include <math.h>
#include <stdarg.h>

#include "base/limits.h"
#include "experiment/command.h"

#define TEXT_MAX 900

/* ---- values ---- */

static const struct json_value *server_tree(const struct rules *q, size_t i)
{
	const struct json_value *list = config_get(q->tree, "servers");

	if (!list)
		return config_get(q->tree, "server");
	return i < list->count ? &list->item[i] : NULL;
}

const struct json_value *rules_given(const struct rules *q, size_t i, const char *key)
{
	return config_get(server_tree(q, i), key);
}

const char *rules_path(const struct rules *q, size_t i, const char *key)
{
	if (config_get(q->tree, "servers"))
		return arena_printf(q->r->a, "servers.%zu.%s", i, key);
	return arena_printf(q->r->a, "server.%s", key);
}

double rules_number(const struct rules *q, size_t i, const char *key)
{
	return json_real(json_get(q->r->x->server[i].values, key), NAN);
}

bool rules_is_on(const struct rules *q, size_t i, const char *key)
{
	return json_bool(json_get(q->r->x->server[i].values, key), false);
}

const struct json_value *rules_bench(const struct rules *q, const char *key)
{
	return config_get(config_get(q->tree, "benchmark"), key);
}

/* ---- findings ---- */

enum finding { REFUSED, NOTED };

/* At v, or where it would stand. */
static void say(const struct rules *q, enum finding what, const struct json_value *v,
		const struct json_value *section, const char *path, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (what == REFUSED)
		config_complain(q->r->c, q->r->f, v ? v : section, path, "%s", text);
	else
		config_note(q->r->c, q->r->f, v ? v : section, path, "%s", text);
}

static void say_server(const struct rules *q, enum finding what, size_t i, const char *key,
		       const char *fmt, va_list ap)
{
	say(q, what, rules_given(q, i, key), server_tree(q, i), rules_path(q, i, key), fmt, ap);
}

static void say_bench(const struct rules *q, enum finding what, const char *key, const char *fmt,
		      va_list ap)
{
	say(q, what, rules_bench(q, key), config_get(q->tree, "benchmark"),
	    arena_printf(q->r->a, "benchmark.%s", key), fmt, ap);
}

void rules_refuse(const struct rules *q, size_t i, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_server(q, REFUSED, i, key, fmt, ap);
	va_end(ap);
}

void rules_note(const struct rules *q, size_t i, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_server(q, NOTED, i, key, fmt, ap);
	va_end(ap);
}

void rules_refuse_bench(const struct rules *q, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_bench(q, REFUSED, key, fmt, ap);
	va_end(ap);
}

void rules_note_bench(const struct rules *q, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_bench(q, NOTED, key, fmt, ap);
	va_end(ap);
}

/* ---- who is there ---- */

/* Something must answer the load. */
static void needs_server(const struct rules *q)
{
	if (q->r->x->n_servers == 0 && mode_is_served(q->r->x->mode))
		config_complain(q->r->c, q->r->f, q->tree, "server", "missing; expected a server to "
				"start, or server.url of one that runs");
}

/* The other modes drive an engine themselves. */
static void needs_engine(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const char *mode = experiment_mode_name(x->mode);

	if (mode_is_served(x->mode) || x->n_servers == 0)
		return;
	if (x->n_servers > 1)
		rules_refuse(q, 1, "name", "mode %s has one engine and no servers beside it", mode);
	else if (x->server[0].url)
		rules_refuse(q, 0, "url", "mode %s drives an engine without a server; mode serve "
			     "measures one that runs", mode);
	else if (x->server[0].container)
		rules_refuse(q, 0, "container", "mode %s drives an engine without a server, which no "
			     "container can hold here", mode);
}

static void needs_one_that_serves(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	size_t n_serve = 0, n_proxy = 0;

	for (size_t i = 0; i < x->n_servers; i++) {
		n_serve += x->server[i].role == ROLE_SERVE;
		n_proxy += x->server[i].role == ROLE_PROXY;
	}
	if (x->n_servers > 1 && !n_serve && !n_proxy)
		config_complain(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
				"load goes to none of them; give one the role proxy or serve");
	else if (n_proxy > 1)
		config_complain(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
				"%zu proxies, and load goes to one", n_proxy);
	else if (!n_proxy && n_serve > 1)
		config_note(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
			    "load goes to %s, the first of %zu that serve; a proxy would share it",
			    x->server[x->serving].name, n_serve);
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < 64 && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static void has_names_of_its_own(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	for (size_t i = 0; i < x->n_servers; i++) {
		if (!is_name(x->server[i].name))
			rules_refuse(q, i, "name", "expected up to 63 letters, digits and . _ -, got "
				     "'%.80s'", x->server[i].name);
		for (size_t k = 0; k < i; k++)
			if (strcmp(x->server[i].name, x->server[k].name) == 0)
				rules_refuse(q, i, "name", "two servers are called %s",
					     x->server[i].name);
	}
}

static void has_ports_of_its_own(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	for (size_t i = 0; i < x->n_servers; i++)
		for (size_t k = 0; k < i && x->server[i].port && !x->server[i].url; k++)
			if (!x->server[k].url && x->server[k].port == x->server[i].port)
				rules_refuse(q, i, "port", "%u is %s's already", x->server[i].port,
					     x->server[k].name);
}

/* ---- the order of starting ---- */

static size_t server_called(const struct experiment *x, const char *name)
{
	size_t i = 0;

	while (i < x->n_servers && strcmp(x->server[i].name, name) != 0)
		i++;
	return i;
}

static bool has_unknown_names(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const char *names[EXPERIMENT_SERVERS_MAX];
	bool is_found = false;

	for (size_t i = 0; i < x->n_servers; i++)
		names[i] = x->server[i].name;
	for (size_t i = 0; i < x->n_servers; i++)
		for (const char *const *name = x->server[i].after; name && *name; name++) {
			const char *near = opt_nearest(str_of(*name), names, x->n_servers);

			if (server_called(x, *name) < x->n_servers)
				continue;
			rules_refuse(q, i, "after", "no server is called '%.80s'%s%s%s", *name,
				     near ? "; did you mean " : "", near ? near : "",
				     near ? "?" : "");
			is_found = true;
		}
	return is_found;
}

/* Follows `after` from i; true with the way it went once it comes back to where it began. */
static bool goes_round(const struct experiment *x, size_t i, size_t begin, bool *seen,
		       struct buf *way)
{
	size_t before = way->len;

	seen[i] = true;
	for (const char *const *name = x->server[i].after; name && *name; name++) {
		size_t next = server_called(x, *name);

		buf_printf(way, " after %s", *name);
		if (next == begin || (!seen[next] && goes_round(x, next, begin, seen, way)))
			return true;
		way->len = before;
	}
	return false;
}

static void can_be_ordered(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	if (has_unknown_names(q))
		return;
	for (size_t i = 0; i < x->n_servers; i++) {
		bool seen[EXPERIMENT_SERVERS_MAX] = { false };
		struct buf way = { 0 };
		bool is_round = goes_round(x, i, i, seen, &way);

		if (is_round)
			rules_refuse(q, i, "after", "a cycle, so none of them can be first: %s%s",
				     x->server[i].name, way.data);
		buf_release(&way);
		if (is_round)
			return;
	}
}

/* Words that name a server which is not there, or a port that is none. */
static void can_be_commanded(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	struct arena *a = q->r->a;
	struct role_at *at = arena_alloc(a, (x->n_servers + 1) * sizeof(*at));

	for (size_t i = 0; i < x->n_servers; i++)
		at[i] = command_at(&x->server[i], x->server[i].port ? x->server[i].port : 1, a);
	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++) {
		struct err e = { 0 };
		char **words, **env;

		if (x->server[i].url || (command_words(x, i, at, a, &words, &e) == 0 &&
					 command_env(x, i, at, a, &env, &e) == 0) ||
		    e.code != ERR_USAGE)
			continue;
		config_complain(q->r->c, q->r->f, server_tree(q, i),
				config_get(q->tree, "servers") ?
					arena_printf(a, "servers.%zu", i) : "server", "%s", e.text);
	}
}

/* ---- GPUs ---- */

/*
 * A machine without GPUs and one whose driver is broken look alike. Who asked for several, or for
 * some by a key, is not given an engine on the CPU unless he says so.
 */
static void refuse_without_gpu(const struct rules *q)
{
	static const char *const keys[] = { "gpus", "tensor_parallel_size",
					    "pipeline_parallel_size", "data_parallel_size" };
	const struct experiment *x = q->r->x;

	if (x->resources.want != GPUS_AUTO || !q->r->know->is_gpus_known || q->r->know->n_gpus)
		return;
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];
		const size_t n = sizeof(keys) / sizeof(*keys);
		size_t k = 0;

		if (s->url || !s->gpus || (s->gpus == 1 && !rules_given(q, i, "gpus")))
			continue;
		while (k < n && !rules_given(q, i, keys[k]))
			k++;
		rules_refuse(q, i, keys[k < n ? k : 0], "%u GPU%s needed, and none may be used here (does "
			     "nvidia-smi find any?); resources.gpus: none starts the server without",
			     s->gpus, s->gpus == 1 ? " is" : "s are");
	}
}

/* Of several servers each gets what it takes: there is nobody to give the rest to. */
static void shares_are_whole(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const struct experiment_resources *res = &x->resources;
	unsigned need = 0, given = res->count;
	size_t n_started = 0;

	for (size_t i = 0; i < x->n_servers; i++) {
		n_started += !x->server[i].url;
		need += x->server[i].url ? 0 : x->server[i].gpus;
	}
	if (res->want == GPUS_LIST)
		for (given = 0; res->list[given]; given++)
			;
	if ((res->want == GPUS_COUNT || res->want == GPUS_LIST) && n_started > 1 && need &&
	    given > need)
		config_complain(q->r->c, q->r->f,
				config_get(config_get(q->tree, "resources"), "gpus"),
				"resources.gpus", "%u given, but the %zu servers take %u together",
				given, n_started, need);
}

static void has_gpus(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const struct experiment_resources *res = &x->resources;
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "gpus");
	const struct config_know *know = q->r->know;
	unsigned need = 0, asked = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		need += x->server[i].gpus;
	while (res->want == GPUS_LIST && res->list && res->list[asked])
		asked++;
	asked = res->want == GPUS_COUNT ? res->count : asked;
	if (res->want != GPUS_AUTO && res->want != GPUS_NONE && need > asked)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u, and the server%s take%s "
				"%u: tensor x pipeline x data parallel size, or gpus of a server",
				asked, x->n_servers > 1 ? "s" : "", x->n_servers > 1 ? "" : "s", need);
	refuse_without_gpu(q);
	need = need > asked ? need : asked;
	if (!know->is_gpus_known || res->want == GPUS_NONE || need <= know->n_gpus)
		return;
	if (know->n_gpus)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u GPUs are taken, and %u "
				"may be used here", need, know->n_gpus);
	else if (res->want != GPUS_AUTO)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u asked for, and none may be "
				"used here", need);
}

static void names_gpus_once(const struct rules *q)
{
	const char *const *list = q->r->x->resources.list;
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "gpus");

	for (size_t i = 0; list && list[i]; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(list[i], list[k]) == 0)
				config_complain(q->r->c, q->r->f, v, "resources.gpus",
						"%s is named twice", list[i]);
}

/* ---- the walk ---- */

static rule *const rules_of_experiment[] = {
	needs_server, needs_engine, needs_one_that_serves, has_names_of_its_own,
	has_ports_of_its_own, can_be_ordered, can_be_commanded, has_gpus, shares_are_whole,
	names_gpus_once, NULL,
};

void config_rules(struct config_reader *r, const struct json_value *tree)
{
	const struct rules q = { r, tree };

	for (size_t i = 0; rules_of_experiment[i]; i++)
		rules_of_experiment[i](&q);
	for (size_t s = 0; s < r->x->n_servers; s++) {
		for (size_t i = 0; rules_of_servers[i]; i++)
			rules_of_servers[i](&q, s);
		for (size_t i = 0; rules_of_engines[i] && !config_is_sim(r->x->server[s].command) &&
		     !r->x->server[s].url; i++)
			rules_of_engines[i](&q, s);
	}
	for (size_t i = 0; rules_of_benchmark[i]; i++)
		rules_of_benchmark[i](&q);
}
