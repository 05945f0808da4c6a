/* SPDX-License-Identifier: Apache-2.0 */
/* config_server.c - see config_parts.h: one server of an experiment, or several. */
#include <math.h>

#include "base/limits.h"
#include "base/str.h"
#include "engine/args.h"
#include "engine/extra.h"
#include "experiment/config_parts.h"
#include "experiment/container.h"
#include "opt/dotted.h"

/* Read from the tree: words, lists and objects that no row's text stands for. */
static const char *const apart[] = {
	"command", "container", "after", "ready", "env", "extra_args", NULL,
};

struct one {
	struct config_reader *r;
	const struct json_value *tree;   /* the server's object */
	const char *section;             /* "server", "servers.1" */
	struct experiment_server *s;
	struct json_value *args;         /* being made */
	void *sim;                       /* values of the simulator's rows, when it is one */
	struct opt_result sim_given;
	bool is_vllm, is_sim;
};

/* ---- own keys ---- */

static char *const *read_command(struct one *o)
{
	static const struct json_value otherwise = { .kind = JSON_STRING,
						     .text = { "vllm serve", 10 } };
	const struct json_value *v = config_get(o->tree, "command");
	const char *path = config_path(o->r, o->section, STR("command"));
	struct err e = { 0 };
	char **words;
	size_t n;

	if (!v)
		v = &otherwise;
	if (v->kind == JSON_ARRAY) {
		words = config_list(o->r, v, path);
	} else if (v->kind != JSON_STRING) {
		config_complain(o->r->c, o->r->f, v, path, "expected words or a list of them, got %s",
				config_got(v, o->r->a));
		return NULL;
	} else if (words_split(v->text, o->r->a, &words, &n, &e) < 0) {
		config_complain(o->r->c, o->r->f, v, path, "%s", e.text);
		return NULL;
	}
	if (words[0])
		return words;
	config_complain(o->r->c, o->r->f, v, path, "expected words or a list of them, got none");
	return NULL;
}

static void read_ready(struct one *o)
{
	static const char *const plain[] = { "health", "port", "started" };
	static const enum ready_by by[] = { READY_HEALTH, READY_PORT, READY_STARTED };
	const struct json_value *v = config_get(o->tree, "ready");
	const struct json_value *log = config_get(v, "log");

	if (!v)
		return;
	for (size_t i = 0; v->kind == JSON_STRING && i < sizeof(by) / sizeof(*by); i++)
		if (str_is(v->text, plain[i])) {
			o->s->ready = by[i];
			return;
		}
	if (v->kind == JSON_OBJECT && v->count == 1 && log && log->kind == JSON_STRING &&
	    log->text.n) {
		o->s->ready = READY_LOG;
		o->s->ready_log = log->text.p;
		return;
	}
	config_complain(o->r->c, o->r->f, v, config_path(o->r, o->section, STR("ready")),
			"expected one of health, port, started or {log: TEXT}, got %s",
			config_got(v, o->r->a));
}

static char *const *read_env(struct one *o)
{
	const struct json_value *v = config_get(o->tree, "env");
	const char *path = config_path(o->r, o->section, STR("env"));
	char **out = arena_alloc(o->r->a, ((v && v->kind == JSON_OBJECT ? v->count : 0) + 1) *
				 sizeof(*out));
	size_t n = 0;

	if (v && v->kind != JSON_OBJECT) {
		config_complain(o->r->c, o->r->f, v, path, "expected an object of NAME: VALUE, got %s",
				config_got(v, o->r->a));
		return out;
	}
	for (size_t i = 0; v && i < v->count; i++) {
		const char *text = config_scalar(&v->item[i], o->r->a);

		if (!v->key[i].n || memchr(v->key[i].p, '=', v->key[i].n))
			config_complain_key(o->r->c, o->r->f, &v->item[i], path,
					    "'%.*s' is no name of a variable", (int)v->key[i].n,
					    v->key[i].p);
		else if (!text)
			config_complain(o->r->c, o->r->f, &v->item[i],
					config_path(o->r, path, v->key[i]),
					"expected a text, got %s", config_got(&v->item[i], o->r->a));
		else if (v->item[i].kind != JSON_NULL)
			out[n++] = arena_printf(o->r->a, "%s=%s", v->key[i].p, text);
	}
	return out;
}

static void read_container(struct one *o)
{
	const struct json_value *v = config_get(o->tree, "container");
	const char *path = config_path(o->r, o->section, STR("container"));
	struct err e = { 0 };

	if (!v || o->is_sim)
		return;
	if (v->kind != JSON_OBJECT)
		config_complain(o->r->c, o->r->f, v, path, "expected an object, got %s",
				config_got(v, o->r->a));
	else if (container_check(v, &e) < 0)
		config_complain(o->r->c, o->r->f, v, "", "%s", e.text);
	else
		o->s->container = v;
}

static void read_url(struct one *o, const char *url)
{
	const struct json_value *v = config_get(o->tree, "url");
	const struct json_value *command = config_get(o->tree, "command");
	const char *path = config_path(o->r, o->section, STR("url"));
	struct json_mark mark = json_marks_get(o->r->c->marks, command);

	/* --set server.command=sim makes any experiment one on the simulator. */
	if (!url || (command && !mark.line))
		return;
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		config_complain(o->r->c, o->r->f, v, path, "expected http://... or https://..., got "
				"'%.200s'", url);
	if (command)
		config_complain(o->r->c, o->r->f, v, path, "a server that runs already and a command "
				"that starts one; leave one of url and command out");
	o->s->url = url;
}

static void read_own(struct one *o, const char *const *others)
{
	struct config_server own;
	struct opt_result given = { 0 };
	struct experiment_server *s = o->s;

	config_section(o->r, o->tree, o->section, &config_server_set, &own, &given, others);
	s->name = own.name;
	for (size_t i = 0; config_server_set.row && i < 5; i++)
		if (strcmp(own.role, server_role_name((enum server_role)i)) == 0)
			s->role = (enum server_role)i;
	s->host = own.host;
	s->port = (unsigned)own.port;
	s->ready_timeout_s = own.ready_timeout_s;
	s->grace_s = own.grace_s;
	s->gpus = own.gpus.is_set ? (unsigned)own.gpus.v : 0;
	s->env = read_env(o);
	s->extra_args = config_list(o->r, json_get(o->tree, "extra_args"),
				    config_path(o->r, o->section, STR("extra_args")));
	s->after = (const char *const *)config_list(o->r, json_get(o->tree, "after"),
						    config_path(o->r, o->section, STR("after")));
	read_ready(o);
	read_container(o);
	read_url(o, own.url);
}

/* ---- arguments ---- */

static int refuse_arg(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		      const char *path, const char *what)
{
	(void)arg;
	return config_complain(o->r->c, o->r->f, v, path, "expected %s, got %s", what,
			       config_got(v, o->r->a));
}

static int check_text(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		      const char *text, const char *path)
{
	size_t head = strlen("--") + strlen(arg->name) + strlen(": ");
	struct err e = { 0 };

	if (engine_arg_check(arg, str_of(text), &e) == 0)
		return 0;
	return config_complain(o->r->c, o->r->f, v, path, "%s", e.text + head);
}

/* -1, or 0 with *as: what is kept of it, NULL for nothing. */
static int read_flag(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		     const char *path, const struct json_value **as)
{
	static const struct json_value yes = { .kind = JSON_TRUE }, no = { .kind = JSON_FALSE };
	bool is_on = v->kind == JSON_TRUE, is_off = v->kind == JSON_FALSE;

	if (v->kind == JSON_STRING) {
		is_on = str_is(v->text, "true");
		is_off = str_is(v->text, "false");
	}
	if (!is_on && !is_off)
		return refuse_arg(o, arg, v, path, "true or false");
	*as = is_on ? &yes : arg->kind == ENGINE_FLAG ? NULL : &no;
	return 0;
}

static int read_texts(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		      const char *path)
{
	size_t n = v->kind == JSON_ARRAY ? v->count : 1;

	if (v->kind == JSON_OBJECT)
		return refuse_arg(o, arg, v, path, "a list");
	for (size_t i = 0; i < n; i++) {
		const struct json_value *one = v->kind == JSON_ARRAY ? &v->item[i] : v;
		const char *text = config_scalar(one, o->r->a);

		if (check_text(o, arg, one, text ? text : config_json(one, o->r->a), path) < 0)
			return -1;
	}
	return 0;
}

static bool is_word_of_choices(const struct engine_arg *arg, const char *text)
{
	struct str rest = str_of(arg->choices);

	while (rest.n)
		if (str_is(str_cut(&rest, ' '), text))
			return true;
	return false;
}

static int read_arg(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		    const char *path, const struct json_value **as)
{
	const char *text = config_scalar(v, o->r->a);
	bool is_bool = v->kind == JSON_TRUE || v->kind == JSON_FALSE;
	bool is_number = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN ||
			 arg->kind == ENGINE_REAL;

	*as = v;
	switch (arg->kind) {
	case ENGINE_FLAG:
	case ENGINE_SWITCH:
		return read_flag(o, arg, v, path, as);
	case ENGINE_LIST:
		return read_texts(o, arg, v, path);
	case ENGINE_JSON:
		if (!text || is_bool || v->kind == JSON_INT || v->kind == JSON_REAL)
			text = config_json(v, o->r->a);
		return check_text(o, arg, v, text, path);
	case ENGINE_INT:
	case ENGINE_HUMAN:
	case ENGINE_REAL:
	case ENGINE_TEXT:
	case ENGINE_KINDS:
		break;
	}
	/* "off" may be a word, whatever YAML takes it for; true and false are none. */
	if (!text || (is_bool && (is_number || (!is_word_of_choices(arg, text) &&
						(!v->raw.n || strlen(text) > 3)))))
		return refuse_arg(o, arg, v, path, is_number ? "a number" : "a text");
	return check_text(o, arg, v, text, path);
}

static void note_deprecated(struct one *o, const struct engine_arg *arg,
			    const struct json_value *v, const char *path)
{
	const char *by = arg->successor;
	char until[16];

	if (!(arg->flags & ENGINE_DEPRECATED) && !arg->until)
		return;
	engine_version_text(arg->until, until);
	if (arg->until)
		config_note(o->r->c, o->r->f, v, path, "vLLM has it up to %s only%s%s", until,
			    *by ? "; it became " : "", by);
	else
		config_note(o->r->c, o->r->f, v, path, "deprecated%s%s", *by ? "; write " : "", by);
}

/* A name that only a plugin can have brought, or a mistyped one. */
static void note_unlisted(struct one *o, const struct engine_arg *arg, const struct json_value *v,
			  const char *path)
{
	const char *text = config_scalar(v, o->r->a), *names[ENGINE_KNOWN_MAX], *near;
	struct str rest = str_of(arg->known ? arg->known : "");
	size_t n = 0;

	while (rest.n && n < ENGINE_KNOWN_MAX) {
		names[n] = arena_text(o->r->a, str_cut(&rest, ' '));
		if (!text || !*text || strcmp(names[n++], text) == 0)
			return;
	}
	near = n ? opt_nearest(str_of(text), names, n) : NULL;
	if (n)
		config_note(o->r->c, o->r->f, v, path, "vLLM has no %s of its own; a plugin may%s%s%s",
			    text, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* A key with a dot is one key of a JSON argument. */
static int read_dotted(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		       const char *path)
{
	if (arg->kind == ENGINE_JSON)
		return 0;
	return config_complain_key(o->r->c, o->r->f, v, path, "%s holds no JSON, so it has no keys",
				   arg->name);
}

static void unknown_arg(struct one *o, const struct json_value *v, struct str key)
{
	const struct opt_set *sim = o->is_sim ? o->r->know->sim : NULL;
	const char **names = arena_alloc(o->r->a, (engine_arg_count + config_server_set.n +
					 (sim ? sim->n : 0)) * sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; i < config_server_set.n; i++)
		names[n++] = config_server_set.row[i].name;
	for (size_t i = 0; i < engine_arg_count; i++)
		if (!engine_args[i].until)
			names[n++] = engine_args[i].name;
	for (size_t i = 0; sim && i < sim->n; i++)
		names[n++] = sim->row[i].name;
	config_unknown(o->r, v, key, o->section, names, n);
}

static void add_arg(struct one *o, struct str key, const struct json_value *v)
{
	config_member(o->args, arena_text(o->r->a, key), *v, o->r->a);
	json_marks_copy(o->r->c->marks, v, &o->args->item[o->args->count - 1]);
}

/* 4k, 4K: the simulator is told the number. "auto" and -1 are what fits. */
static bool is_ranged_for_sim(struct one *o, const struct opt *row, const struct json_value *v,
			      struct str key, const char *path)
{
	const char *text = config_scalar(v, o->r->a);
	struct json_value *number = arena_alloc(o->r->a, sizeof(*number));

	number->kind = JSON_INT;
	if (!text || !opt_human_int(str_of(text), &number->integer) || number->integer == -1)
		return true;
	json_marks_copy(o->r->c->marks, v, number);
	return config_value(o->r, o->r->know->sim, row, number, key, path, o->sim,
			    &o->sim_given) == 0;
}

/* The user's own list of arguments wins over the table. */
static const struct engine_arg *find_arg(struct one *o, struct str name)
{
	const struct engine_arg *own;

	if (memchr(name.p, '-', name.n))
		return NULL;
	own = engine_extra_find(o->r->know->extra, name);
	return own ? own : engine_arg_find(name);
}

/* A key that is not the server's own. */
static void read_key(struct one *o, struct str key, const struct json_value *v)
{
	const char *path = config_path(o->r, o->section, key);
	const struct opt_set *sim = o->is_sim ? o->r->know->sim : NULL;
	const struct opt *row = config_row(sim, key);
	struct str rest = key, head = str_cut(&rest, '.');
	const struct engine_arg *arg = find_arg(o, head);
	const struct json_value *as = v;

	if (v->kind == JSON_NULL)
		return;
	if (row && !(arg && arg->kind == ENGINE_HUMAN)) {
		if (config_value(o->r, sim, row, v, key, path, o->sim, &o->sim_given) < 0 ||
		    (arg && *arg->choices && read_arg(o, arg, v, path, &as) < 0) ||
		    (row->kind == OPT_FLAG && v->kind == JSON_FALSE))
			return;
		if (arg)
			note_unlisted(o, arg, v, path);
	} else if (arg && (o->is_vllm || o->is_sim)) {
		if (row && !is_ranged_for_sim(o, row, v, key, path))
			return;
		if (rest.n ? read_dotted(o, arg, v, path) < 0 : read_arg(o, arg, v, path, &as) < 0)
			return;
		note_deprecated(o, arg, v, path);
		note_unlisted(o, arg, v, path);
	} else if (o->is_vllm || (o->is_sim && sim)) {
		unknown_arg(o, v, key);
		return;
	}
	if (as)
		add_arg(o, key, as);
}

/* ---- one server ---- */

static void count_gpus(struct one *o)
{
	char *const *words = config_server_words(o->s, o->r->a);
	size_t n = 0, n_command = 0;
	char **argv;

	if (o->s->gpus || config_get(o->tree, "gpus") || o->s->url || o->is_sim ||
	    o->s->role == ROLE_PROXY || o->s->role == ROLE_CACHE)
		return;
	while (words[n])
		n++;
	while (o->s->command[n_command])
		n_command++;
	argv = arena_alloc(o->r->a, (n + n_command + 1) * sizeof(*argv));
	memcpy(argv, o->s->command, n_command * sizeof(*argv));
	memcpy(argv + n_command, words, n * sizeof(*argv));
	o->s->gpus = (unsigned)engine_argv_gpus(argv);
}

static void read_server(struct config_reader *r, const struct json_value *tree,
			const char *section, struct experiment_server *s)
{
	struct one o = { .r = r, .tree = tree, .section = section, .s = s };
	const char **others = arena_alloc(r->a, (tree->count + sizeof(apart) / sizeof(*apart)) *
					  sizeof(*others));
	const struct config_told newest = { .version = engine_version_newest };
	const struct opt_set *sim = r->know->sim;
	size_t n = 0;

	while (apart[n]) {
		others[n] = apart[n];
		n++;
	}
	for (size_t i = 0; i < tree->count; i++)
		if (!config_row(&config_server_set, tree->key[i]))
			others[n++] = tree->key[i].p;
	s->command = read_command(&o);
	if (!s->command)
		s->command = arena_alloc(r->a, sizeof(*s->command));
	o.is_sim = config_is_sim(s->command);
	o.is_vllm = engine_argv_begin(s->command) != NULL || config_get(tree, "container") ||
		    (s->command[0] && s->command[1] && strcmp(s->command[1], "serve") == 0 &&
		     str_ends(str_of(s->command[0]), STR("vllm")));
	o.args = arena_alloc(r->a, sizeof(*o.args));
	o.args->kind = JSON_OBJECT;
	s->args = o.args;
	if (o.is_sim && sim) {
		o.sim = arena_alloc(r->a, sim->bytes);
		memcpy(o.sim, sim->defaults, sim->bytes);
	}
	read_own(&o, others);
	for (size_t i = 0; i < tree->count; i++)
		if (!config_row(&config_server_set, tree->key[i]))
			read_key(&o, tree->key[i], &tree->item[i]);
	s->is_sim = o.is_sim && !s->url;
	s->is_vllm = o.is_vllm && !o.is_sim && !s->url;
	s->own = o.sim && !s->url ? config_sim_values(r, o.args, o.sim) : NULL;
	s->values = config_server_values(s, &newest, r->a);
	count_gpus(&o);
}

/* ---- all of them ---- */

static size_t serving(const struct experiment *x)
{
	for (size_t i = 0; i < x->n_servers; i++)
		if (x->server[i].role == ROLE_PROXY)
			return i;
	for (size_t i = 0; i < x->n_servers; i++)
		if (x->server[i].role == ROLE_SERVE)
			return i;
	return 0;
}

static void read_list(struct config_reader *r, const struct json_value *list)
{
	struct experiment *x = r->x;

	if (list->kind != JSON_ARRAY || list->count == 0) {
		config_complain(r->c, r->f, list, "servers", "expected a list of servers, got %s",
				list->kind == JSON_ARRAY ? "an empty one" : config_got(list, r->a));
		return;
	}
	if (list->count > EXPERIMENT_SERVERS_MAX) {
		config_complain(r->c, r->f, list, "servers", "%zu are more than the %d of "
				"EXPERIMENT_SERVERS_MAX", list->count, EXPERIMENT_SERVERS_MAX);
		return;
	}
	x->server = arena_alloc(r->a, list->count * sizeof(*x->server));
	for (size_t i = 0; i < list->count; i++) {
		const char *section = arena_printf(r->a, "servers.%zu", i);
		struct experiment_server *s = &x->server[x->n_servers];

		if (!config_is_object(r, &list->item[i], section))
			continue;
		x->n_servers++;
		read_server(r, &list->item[i], section, s);
		if (!s->name && list->count == 1)
			s->name = "server";
		else if (!s->name)
			s->name = arena_printf(r->a, "%s%zu", server_role_name(s->role), i);
	}
}

void config_servers(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *one = config_object(r, tree, "server");
	const struct json_value *list = config_get(tree, "servers");
	struct experiment *x = r->x;

	if (one && list) {
		config_complain_key(r->c, r->f, list, "servers", "server and servers; leave one of "
				    "them out");
	} else if (list) {
		read_list(r, list);
	} else if (one) {
		x->server = arena_alloc(r->a, sizeof(*x->server));
		x->n_servers = 1;
		read_server(r, one, "server", x->server);
		if (!x->server->name)
			x->server->name = "server";
	}
	x->serving = serving(x);
}
