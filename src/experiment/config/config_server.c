/* SPDX-License-Identifier: Apache-2.0 */
/* config_server.c - see config_internal.h: one server of an experiment, or several. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "experiment/config/config.h"
#include "experiment/config/config_internal.h"
#include "experiment/config/container.h"
#include "host/engine/args.h"
#include "host/engine/extra.h"

#define SPELLED_BYTES 64 /* of a name with its dashes; no argument has a longer one */

/* Read from the tree: words, lists and objects that a row's text cannot express. */
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
	} else if (words_split(v->text, o->r->a, &words, &n, &e) < 0 ||
		   (words[0] && server_refuse_shell(words, &e) < 0)) {
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
	static const enum server_ready by[] = {
		SERVER_READY_HEALTH, SERVER_READY_PORT, SERVER_READY_STARTED,
	};
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
		o->s->ready = SERVER_READY_LOG;
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
					    "'%.*s' is not a valid variable name", (int)v->key[i].n,
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

	/* Any experiment runs on our own simulator with `--set server.command=sim`. */
	if (!v || (o->is_sim && !o->s->command[1]))
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
		config_complain(o->r->c, o->r->f, v, path, "url names a running server and command "
				"starts one; remove one of the two");
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

static int refuse_kind(struct one *o, const struct json_value *v, const char *path,
		       const char *what)
{
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

/* On success sets *as to the value to record (NULL: none). -1 after a finding. */
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
		return refuse_kind(o, v, path, "true or false");
	*as = is_on ? &yes : arg->kind == ENGINE_FLAG ? NULL : &no;
	return 0;
}

static int read_texts(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		      const char *path)
{
	size_t n = v->kind == JSON_ARRAY ? v->count : 1;

	if (v->kind == JSON_OBJECT)
		return refuse_kind(o, v, path, "a list");
	for (size_t i = 0; i < n; i++) {
		const struct json_value *one = v->kind == JSON_ARRAY ? &v->item[i] : v;
		const char *text = config_scalar(one, o->r->a);

		if (check_text(o, arg, one, text ? text : config_json(one, o->r->a), path) < 0)
			return -1;
	}
	return 0;
}

static int read_arg(struct one *o, const struct engine_arg *arg, const struct json_value *v,
		    const char *path, const struct json_value **as)
{
	const char *text = config_scalar(v, o->r->a);
	bool is_bool = v->kind == JSON_TRUE || v->kind == JSON_FALSE, is_word;
	bool is_number = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN ||
			 arg->kind == ENGINE_REAL;
	int64_t bytes;

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
	/* vLLM does not accept "4GiB". */
	if (v->kind == JSON_STRING && str_ends(str_of(arg->name), STR("-bytes")) &&
	    (arg->kind == ENGINE_HUMAN || arg->kind == ENGINE_INT) && opt_bytes(v->text, &bytes)) {
		text = arena_printf(o->r->a, "%" PRId64, bytes);
		*as = v = config_tree_of(str_of(text), o->r->a);
	}
	/*
	 * "off" may be a word, although YAML reads it as a boolean; true and false are not words.
	 */
	is_word = text && config_has_item(str_of(arg->choices), ' ', str_of(text));
	if (!text || (is_bool && (is_number || (!is_word && (!v->raw.n || strlen(text) > 3)))))
		return refuse_kind(o, v, path, is_number ? "a number" : "a text");
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

/* Notes a name that only a plugin can have, or that is mistyped. */
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

/* 4k, 4K: the simulator gets the number. "auto" and -1 mean what fits. */
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

/* The user's own list of arguments takes precedence over the table. */
static const struct engine_arg *find_arg(struct one *o, struct str name)
{
	const struct engine_arg *own;

	if (memchr(name.p, '-', name.n))
		return NULL;
	own = engine_extra_find(o->r->know->extra, name);
	return own ? own : engine_arg_find(name);
}

const struct engine_arg *config_arg_of(struct str key)
{
	struct str rest = key, head = str_cut(&rest, '.');
	const struct engine_arg *arg = engine_arg_find(str_is(head, "O") ? STR("optimization-level") :
								   head);
	char typed[SPELLED_BYTES];

	for (size_t dashes = 1; !arg && dashes <= 2 && head.n + dashes < sizeof(typed); dashes++) {
		int n = snprintf(typed, sizeof(typed), "%.*s%.*s", (int)dashes, "--", (int)head.n,
				 head.p);

		arg = engine_arg_spelled((struct str){ typed, (size_t)n });
	}
	return arg;
}

/* The argument's full name: "tp" means vLLM's "-tp". Other servers may use it differently. */
static struct str whole_name(struct one *o, struct str key, const struct json_value *v)
{
	struct str rest = key, head = str_cut(&rest, '.');
	const struct engine_arg *arg = config_arg_of(key);
	const char *name;

	if (!arg || (!o->is_vllm && !o->is_sim) || engine_arg_find(head) || find_arg(o, head) ||
	    config_row(o->is_sim ? o->r->know->sim : NULL, key))
		return key;
	name = config_key(str_of(arg->name), o->r->a);
	if (config_get(o->tree, name))
		config_complain_key(o->r->c, o->r->f, v, config_path(o->r, o->section, key),
				    "it is the same as %s, which is also given; remove one of the "
				    "two", name);
	return rest.n ? str_of(arena_printf(o->r->a, "%s.%.*s", name, (int)rest.n, rest.p)) :
		str_of(name);
}

/* Reads a key that is not the server's own. */
static void read_key(struct one *o, struct str key, const struct json_value *v)
{
	const char *path = config_path(o->r, o->section, key);
	const struct opt_set *sim = o->is_sim ? o->r->know->sim : NULL;
	const struct json_value *as = v;
	const struct engine_arg *arg;
	struct str rest, head;
	const struct opt *row;

	if (v->kind == JSON_NULL)
		return;
	key = rest = whole_name(o, key, v);
	head = str_cut(&rest, '.');
	row = config_row(sim, key);
	arg = find_arg(o, head);
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
		if (rest.n && arg->kind != ENGINE_JSON) { /* a dot: one key of a JSON argument */
			config_complain_key(o->r->c, o->r->f, v, path,
					    "%s is not a JSON value, so it has no keys", arg->name);
			return;
		}
		if (!rest.n && read_arg(o, arg, v, path, &as) < 0)
			return;
		note_deprecated(o, arg, v, path);
		note_unlisted(o, arg, v, path);
	} else if (o->is_vllm || (o->is_sim && sim)) {
		unknown_arg(o, v, key);
		return;
	}
	if (as) {
		config_member(o->args, arena_text(o->r->a, key), *as, o->r->a);
		json_marks_copy(o->r->c->marks, as, &o->args->item[o->args->count - 1]);
	}
}

/* ---- one server ---- */

static void count_gpus(struct one *o)
{
	char *const *words = config_server_words(o->s, o->r->a);
	struct word_list argv = { .arena = o->r->a };

	if (o->s->gpus || config_get(o->tree, "gpus") || o->s->url || o->is_sim ||
	    o->s->role == ROLE_PROXY || o->s->role == ROLE_CACHE)
		return;
	for (char *const *word = o->s->command; *word; word++)
		words_add(&argv, *word);
	for (; *words; words++)
		words_add(&argv, *words);
	o->s->gpus = argv.v ? (unsigned)engine_argv_gpus(argv.v) : 0;
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
		config_complain_key(r->c, r->f, list, "servers", "server and servers are both "
				    "given; remove one of them");
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

#define OPTION "dashboard --launch-command"

const char *config_bounds_variable(const struct config_bounds *b, const char *name)
{
	if (b && !config_is_any(str_of(name), b->variables, b->n_variables))
		return NULL;
	return getenv(name);
}

/* ---- files ---- */

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	while (n && folder[n - 1] == '/')
		n--;
	return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/*
 * Opens a file below the folder. Checked again once it is open: links may have been changed in
 * between.
 */
static int open_below(const char *path, const char *folder, char **real)
{
	char *root = realpath(folder, NULL), *found = realpath(path, NULL), link[48];
	char now[PATH_MAX];
	struct stat st;
	ssize_t n = 0;
	int fd = -1;

	if (root && found && is_below(found, root))
		fd = open(found, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, now, sizeof(now) - 1);
		now[n > 0 ? n : 0] = 0;
		if (!is_below(now, root) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
			close(fd);
			fd = -1;
		}
	}
	free(root);
	if (fd < 0)
		free(found);
	else
		*real = found;
	return fd;
}

int config_bounds_read(const struct config_bounds *b, const char *name, const char *folder,
		       size_t limit, struct buf *out, char **real, struct err *e)
{
	char link[48];
	int fd = -1, rc;

	for (size_t i = 0; i < b->n_folders && fd < 0; i++) {
		char *path = file_join(folder ? folder : b->folders[i], name);

		fd = open_below(path, b->folders[i], real);
		free(path);
	}
	if (fd < 0 && !b->n_folders)
		return err_set(e, ERR_USAGE, "a configuration that is sent to a dashboard cannot "
			       "include files, unless the dashboard was started with --include-dir "
			       "DIR");
	if (fd < 0)
		return err_set(e, ERR_USAGE, "there is no such file in the folders that the "
			       "dashboard allows (--include-dir)");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	rc = file_read(link, limit, out, e);
	close(fd);
	if (rc < 0) {
		free(*real);
		*real = NULL;
	}
	return rc;
}

const char *config_bounds_fault(const struct config *c, const char *text)
{
	size_t place = strspn(text, "0123456789:");

	if (!c->bounds)
		return text;
	return arena_printf(c->arena, "%.*s%sa mistake, which is not shown here because it is in "
			    "another file", (int)place, text, place ? " " : "");
}

/* ---- programs ---- */

static const char *all_commands(struct config_reader *r)
{
	const struct config_bounds *b = r->c->bounds;
	struct buf text = { 0 };
	const char *out;

	for (size_t i = 0; i < b->n_commands; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", b->commands[i]);
	out = arena_text(r->a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Compares word for word: further words could mean anything to a command. */
static bool may_start(struct config_reader *r, char *const *words)
{
	const struct config_bounds *b = r->c->bounds;

	for (size_t i = 0; i < b->n_commands; i++) {
		char **allowed;
		size_t n, k = 0;

		if (words_split(str_of(b->commands[i]), r->a, &allowed, &n, NULL) < 0)
			continue;
		while (k < n && words[k] && strcmp(allowed[k], words[k]) == 0)
			k++;
		if (k == n && !words[k])
			return true;
	}
	return false;
}

static void need_command(struct config_reader *r, char *const *words,
			 const struct json_value *v, const char *path)
{
	struct buf text = { 0 };

	if (may_start(r, words))
		return;
	for (size_t i = 0; words[i]; i++)
		buf_printf(&text, "%s%s", i ? " " : "", words[i]);
	config_complain(r->c, r->f, v, path, "this dashboard does not start '%.200s', only: %s ("
			OPTION ")", text.len ? text.data : "", all_commands(r));
	buf_release(&text);
}

static void need_word(struct config_reader *r, const char *word, const struct json_value *v,
		      const char *path)
{
	char *words[] = { arena_text(r->a, str_of(word)), NULL };

	need_command(r, words, v, path);
}

static void refuse(struct config_reader *r, const struct json_value *v, const char *path)
{
	config_complain(r->c, r->f, v, path, "refused, because it could start a program or write a "
			"file and this dashboard starts only: %s (" OPTION ")", all_commands(r));
}

/* ---- servers ---- */

static void check_env(struct config_reader *r, const struct json_value *env, const char *path)
{
	const struct config_bounds *b = r->c->bounds;

	for (size_t i = 0; env && env->kind == JSON_OBJECT && i < env->count; i++)
		if (!config_is_any(env->key[i], b->variables, b->n_variables))
			config_complain_key(r->c, r->f, &env->item[i],
					    config_path(r, path, env->key[i]), "refused, because "
					    "an environment variable could make a program start "
					    "another one; only variables of dashboard --launch-env "
					    "can be set");
}

/* Numbers and booleans, alone or in lists and objects, name neither programs nor files. */
static bool is_plain(const struct json_value *v)
{
	if (v->kind == JSON_STRING)
		return false;
	if (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++)
			if (!is_plain(&v->item[i]))
				return false;
	return true;
}

/* A text, or a list of them, that no program takes for an option. */
static bool is_value(const struct json_value *v)
{
	if (v->kind == JSON_ARRAY) {
		for (size_t i = 0; i < v->count; i++)
			if (v->item[i].kind == JSON_ARRAY || !is_value(&v->item[i]))
				return false;
		return true;
	}
	if (v->kind == JSON_STRING)
		return !v->text.n || *v->text.p != '-';
	return v->kind != JSON_OBJECT;
}

/* An argument of a server, whose value may be a text. */
static bool is_harmless(const struct config_reader *r, const struct experiment_server *s,
			struct str key, const struct json_value *v)
{
	static const char *const names[] = {
		"model", "tokenizer", "served_model_name", "revision", "tokenizer_revision",
	};
	const struct engine_arg *arg = engine_arg_find(key);
	const struct opt *row = s->is_sim ? config_row(r->know->sim, key) : NULL;

	if (!is_value(v))
		return false;
	if (row && row->kind != OPT_JSON && !(row->kind == OPT_TEXT && row->arg &&
					      (strcmp(row->arg, "FILE") == 0 ||
					       strcmp(row->arg, "PATH") == 0 ||
					       strcmp(row->arg, "JSON") == 0)))
		return true;
	if (arg && s->is_vllm && (arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN ||
				  arg->kind == ENGINE_REAL || *arg->choices ||
				  (v->kind == JSON_STRING && arg->known &&
				   config_has_item(str_of(arg->known), ' ', v->text))))
		return true;
	return config_is_any(key, names, sizeof(names) / sizeof(*names));
}

static void check_server(struct config_reader *r, const struct json_value *tree,
			 const char *section, const struct experiment_server *s)
{
	const struct json_value *container = config_get(tree, "container");
	const struct json_value *extra = config_get(tree, "extra_args"), *v;

	if (!s->url && mode_is_served(r->x->mode)) {
		v = config_get(tree, "command");
		need_command(r, s->command, v ? v : tree, config_path(r, section, STR("command")));
	}
	if (container) {
		need_word(r, arena_text(r->a, json_text(json_get(container, "runtime"),
							STR("docker"))),
			  container, config_path(r, section, STR("container")));
		check_env(r, config_get(container, "env"),
			  config_path(r, section, STR("container.env")));
	}
	check_env(r, config_get(tree, "env"), config_path(r, section, STR("env")));
	if (extra && !is_plain(extra))
		refuse(r, extra, config_path(r, section, STR("extra_args")));
	v = config_get(tree, "host");
	if (v && !is_value(v))
		refuse(r, v, config_path(r, section, STR("host")));
	for (size_t i = 0; i < s->args->count; i++) {
		struct str key = s->args->key[i];

		v = &s->args->item[i];
		/* trust_remote_code, trust-remote-code: the model's own code would be run. */
		if (key.n >= 5 && strncasecmp(key.p, "trust", 5) == 0 ? v->kind != JSON_FALSE :
		    !is_plain(v) && !is_harmless(r, s, key, v))
			refuse(r, v, config_path(r, section, key));
	}
}

/* ---- the rest ---- */

/* Refuses keys of a benchmark that start a program or write a file. */
static void check_bench(struct config_reader *r, const struct json_value *bench)
{
	static const char *const refused[] = { "record", "dump_workload", "worker_log", "nsight" };
	const struct json_value *python = config_get(bench, "python");
	const struct json_value *worker = config_get(bench, "worker_cmd");
	bool is_sim = r->x->n_servers && config_is_sim(r->x->server[0].command);
	char **words;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (config_get(bench, refused[i]))
			refuse(r, config_get(bench, refused[i]),
			       config_path(r, "benchmark", str_of(refused[i])));
	if (json_bool(config_get(bench, "trust_remote_code"), false) && !mode_is_served(r->x->mode))
		refuse(r, config_get(bench, "trust_remote_code"), "benchmark.trust_remote_code");
	if (python && python->kind == JSON_STRING)
		need_word(r, python->text.p, python, "benchmark.python");
	if (worker && worker->kind == JSON_STRING &&
	    words_split(worker->text, r->a, &words, NULL, NULL) == 0)
		need_command(r, words, worker, "benchmark.worker_cmd");
	if (!mode_is_served(r->x->mode))
		need_word(r, is_sim ? "sim" : "worker", config_get(bench, "mode"), "benchmark.mode");
}

static void check_outputs(struct config_reader *r, const struct json_value *tree)
{
	static const char *const keys[] = { "path", "folder", "upload", "dashboard",
					    "compare_with" };
	const struct json_value *output = config_get(tree, "output");
	const struct json_value *profiling = config_get(tree, "profiling");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (config_get(output, keys[i]))
			refuse(r, config_get(output, keys[i]),
			       config_path(r, "output", str_of(keys[i])));
	if (config_get(profiling, "dir"))
		refuse(r, config_get(profiling, "dir"), "profiling.dir");
	if (r->x->profiling.is_enabled && strcmp(r->x->profiling.tool, "nsys") == 0)
		need_word(r, "nsys", config_get(profiling, "tool"), "profiling.tool");
}

void config_bounds_check(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *one = config_get(tree, "server");
	const struct json_value *list = config_get(tree, "servers");

	if (!r->c->bounds || !r->c->bounds->n_commands)
		return;
	for (size_t i = 0; i < r->x->n_servers; i++)
		check_server(r, one ? one : &list->item[i],
			     one ? "server" : arena_printf(r->a, "servers.%zu", i),
			     &r->x->server[i]);
	check_bench(r, config_get(tree, "benchmark"));
	check_outputs(r, tree);
}
