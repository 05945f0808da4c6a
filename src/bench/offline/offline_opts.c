/* SPDX-License-Identifier: Apache-2.0 */
/* offline_opts.c - see offline.h. */
#include <string.h>

#include "bench/offline/offline.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/json/yaml.h"
#include "host/engine/args.h"

#define HEAD "engine arguments"

const char *const offline_progress_forms[] = { "auto", "bar", "lines", "none", NULL };
const char *const offline_backends[] = {
	"vllm", "hf", "mii", "vllm-chat", "vllm-async", "llama", "http", "sim", "worker", NULL,
};

const struct opt_foreign offline_engine_args = {
	.words = engine_foreign_words, .nearest = engine_foreign_nearest,
	.row = engine_foreign_row, .is_open = true,
};
const struct opt_foreign offline_async_engine_args = {
	.self = ENGINE_FOREIGN_ASYNC,
	.words = engine_foreign_words, .nearest = engine_foreign_nearest,
	.row = engine_foreign_row, .is_open = true,
};

struct offline_check {
	const struct opt_set *set;
	const struct opt_result *result;
	const struct offline_verb *verb;
	struct offline_opts *o;
	struct offline_engine *out;
	struct arena *a;
	struct buf *notes;
	struct err *e;
};

static bool is_one_of(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(text, *list) == 0)
			return true;
	return false;
}

/* ---- the backend, and what only some of them have ---- */

static void warn_of_idle(const struct offline_check *c)
{
	static const char *const idle[] = { "worker-log", "show-log", "server-grace", "python" };

	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		if (opt_given(c->set, c->result, idle[i]))
			buf_printf(c->notes, "--%s has no effect with --base-url: the server is not "
				   "started here\n", idle[i]);
}

static int check_http(const struct offline_check *c)
{
	const struct offline_opts *o = c->o;
	bool is_http = strcmp(o->backend, "http") == 0;

	if (!is_http && (o->server_cmd || o->base_url))
		return err_set(c->e, ERR_USAGE, "--%s: for --backend http, got --backend %s",
			       o->server_cmd ? "server-cmd" : "base-url", o->backend);
	if (!is_http)
		return 0;
	if (o->server_cmd && o->base_url)
		return err_set(c->e, ERR_USAGE, "--server-cmd and --base-url exclude each other: a "
			       "server is started, or one that runs already is asked");
	if (o->worker_cmd)
		return err_set(c->e, ERR_USAGE, "--worker-cmd: --backend http has a server in place "
			       "of a worker program; see --server-cmd");
	if (o->nsight.is_set)
		return err_set(c->e, ERR_USAGE, "--nsight: not with --backend http; let --server-cmd "
			       "begin with 'nsys profile'");
	if (o->base_url)
		warn_of_idle(c);
	return 0;
}

static int check_backend(const struct offline_check *c)
{
	static const char *const with_python[] = {
		"vllm", "vllm-chat", "vllm-async", "hf", "worker", NULL,
	};
	struct offline_opts *o = c->o;

	if ((o->base_url || o->server_cmd) && !opt_given(c->set, c->result, "backend"))
		o->backend = "http";
	if (strcmp(o->backend, "mii") == 0)
		return err_set(c->e, ERR_RUN, "Unknown backend: mii (DeepSpeed-MII is no longer "
			       "maintained; vLLM accepts its name and ends with the same words)");
	if (check_http(c) < 0)
		return -1;
	if (strcmp(o->backend, "worker") == 0 && !o->worker_cmd)
		return err_set(c->e, ERR_USAGE, "--backend worker: needs --worker-cmd, the program "
			       "that drives the engine");
	if (o->python && !o->base_url && !is_one_of(o->backend, with_python))
		buf_printf(c->notes, "--python has no effect with --backend %s, which needs no "
			   "Python\n", o->backend);
	if (o->nsight.n > 1)
		return err_set(c->e, ERR_USAGE, "--nsight: one report file at most, got %zu",
			       o->nsight.n);
	if (o->disable_frontend_multiprocessing)
		buf_add_text(c->notes, "--disable-frontend-multiprocessing has no effect: no vLLM "
			     "from 0.11 on has such a front end; VLLM_ENABLE_V1_MULTIPROCESSING=0 in "
			     "the environment keeps the engine in one process\n");
	c->out->is_async = strcmp(o->backend, "vllm-async") == 0;
	if (c->out->is_async)
		o->backend = "vllm";
	c->out->worker = o->backend;
	return 0;
}

static const struct offline_fix *find_name(const struct offline_fix *row, struct str name)
{
	while (row && row->name && !str_is(name, row->name))
		row++;
	return row && row->name ? row : NULL;
}

static int check_compat(const struct offline_check *c)
{
	struct str rest = str_of(c->o->compat);

	while (rest.n) {
		struct str one = str_trim(str_cut(&rest, ','));
		const struct offline_fix *row = find_name(c->verb->compats, one);

		if (!row && !str_is(one, "v0.11"))
			return err_set(c->e, ERR_USAGE, "--compat: unknown name '%.*s'; --compat "
				       "help lists the names", (int)one.n, one.p);
		if (row)
			c->out->compat |= row->bit;
		else
			c->out->is_v011 = true;
	}
	return 0;
}

static int check_fixes(const struct offline_check *c)
{
	for (size_t i = 0; i < c->o->fix.n; i++) {
		const char *name = c->o->fix.v[i];
		const struct offline_fix *row = find_name(c->verb->fixes, str_of(name));

		if (!row)
			return err_set(c->e, ERR_USAGE, "--fix: unknown name '%.100s'; --fix "
				       "help lists the names", name);
		if (!row->bit)
			buf_printf(c->notes, "--fix %s has no effect: it is the default; --compat %s is "
				   "the opposite\n", name, name);
		c->out->fixes |= row->bit;
	}
	return 0;
}

static void list_names(const struct offline_fix *row, struct buf *out)
{
	for (; row && row->name; row++)
		if (row->bit)
			buf_printf(out, "%-16s %s\n", row->name, row->help);
}

bool offline_list_names(const struct offline_opts *o, const struct offline_verb *verb,
			struct buf *out)
{
	bool is_fix = false, is_compat = strcmp(o->compat, "help") == 0;

	for (size_t i = 0; i < o->fix.n; i++)
		is_fix |= strcmp(o->fix.v[i], "help") == 0;
	if (is_fix)
		list_names(verb->fixes, out);
	if (is_fix && out->len == 0)
		buf_printf(out, "bench %s has nothing to correct\n", verb->name);
	if (is_compat) {
		buf_printf(out, "%-16s %s\n", "v0.11", "the defaults of that release");
		list_names(verb->compats, out);
	}
	return is_fix || is_compat;
}

/* ---- the engine's arguments ---- */

static bool is_engines(const struct opt_foreign *by)
{
	return by && by->words == engine_foreign_words;
}

/* Refuses unknown words, and words for a program other than the backend's. */
static int check_words(const struct offline_check *c)
{
	const struct opt_rest *rest = &c->result->rest;
	bool is_sim = strcmp(c->o->backend, "sim") == 0;

	for (size_t i = 0; i < rest->n; i++) {
		const char *word = rest->v[i];

		if (is_engines(rest->by[i]) || word[0] != '-')
			continue;
		if (rest->by[i] && is_sim)
			continue;
		if (rest->by[i])
			return err_set(c->e, ERR_USAGE, "%.100s: an option of the simulator, for "
				       "--backend sim; got --backend %s", word, c->o->backend);
		if (c->o->strict_args)
			return err_set(c->e, ERR_USAGE, "%.100s: no option of profllm bench %s and "
				       "no argument of vLLM", word, c->verb->name);
		buf_printf(c->notes, "%.100s: no option of profllm bench %s and no argument of vLLM "
			   "that is known here; passed on unchanged\n", word, c->verb->name);
	}
	return 0;
}

static bool names_model(const struct offline_check *c)
{
	const struct opt_rest *rest = &c->result->rest;

	for (size_t i = 0; i < rest->n; i++) {
		const struct opt_foreign *by = rest->by[i];
		struct str name, word;

		if (!is_engines(by))
			continue;
		word = str_of(engine_foreign_whole(by->self, rest->v[i], c->a));
		name = str_cut(&word, '=');
		if (str_is(name, "--model"))
			return true;
	}
	return false;
}

static void join(const struct offline_check *c)
{
	static char vllm[] = "vllm", serve[] = "serve", model[] = "--model", sim[] = "sim";
	const struct opt_rest *rest = &c->result->rest;
	size_t n_forced = words_count(c->verb->forced), n = 0, known = 0;
	size_t room = n_forced + rest->n + 5;
	char **argv = arena_alloc(c->a, room * sizeof(*argv));
	char **command = arena_alloc(c->a, room * sizeof(*command));

	command[known++] = vllm;
	command[known++] = serve;
	/* The simulator has a model of its own. */
	if (strcmp(c->o->backend, "sim") == 0 && !names_model(c)) {
		argv[n++] = command[known++] = model;
		argv[n++] = command[known++] = sim;
	}
	for (size_t i = 0; i < n_forced; i++)
		argv[n++] = command[known++] = c->verb->forced[i];
	for (size_t i = 0; i < rest->n; i++) {
		const struct opt_foreign *by = rest->by[i];

		if (!is_engines(by)) {
			argv[n++] = rest->v[i];
			continue;
		}
		/* Other readers need not know how vLLM completes names. */
		command[known] = (char *)engine_foreign_whole(by->self, rest->v[i], c->a);
		if (command[known] != rest->v[i])
			buf_printf(c->notes, "%.*s is read as %.*s\n",
				   (int)strcspn(rest->v[i], "="), rest->v[i],
				   (int)strcspn(command[known], "="), command[known]);
		argv[n++] = command[known++];
	}
	argv[n] = command[known] = NULL;
	c->out->argv = argv;
	c->out->command = command;
}

/* ---- as shown ---- */

static void show(const struct offline_check *c)
{
	char **shown = redact_words(c->out->argv, c->a);
	struct buf line = { 0 };

	for (size_t i = 0; shown[i]; i++) {
		buf_add_text(&line, i ? " " : "");
		words_quote(&line, str_of(shown[i]));
	}
	c->out->shown_argv = (const char *const *)shown;
	c->out->shown = arena_text(c->a, buf_str(&line));
	buf_release(&line);
}

/* ---- what they come to ---- */

static bool is_given(const struct offline_engine *engine, const char *name)
{
	const struct engine_arg *arg = engine_arg_find(str_of(name));
	char *const *at = engine->command + 2;
	struct engine_token t;

	while (engine_argv_next(&at, &t))
		if (t.arg == arg)
			return true;
	return false;
}

static bool is_on(const struct offline_engine *engine, const char *name, struct arena *a)
{
	const char *text = engine_argv_text(engine->command, name, a);

	return text && strcmp(text, "true") == 0;
}

static void read_engine(const struct offline_check *c)
{
	struct offline_engine *out = c->out;
	char *const *argv = out->command;
	bool is_sim = strcmp(c->o->backend, "sim") == 0;

	out->model = engine_argv_text(argv, "model", c->a);
	out->is_model_given = is_sim || is_given(out, "model");
	out->tokenizer = engine_argv_text(argv, "tokenizer", c->a);
	out->is_tokenizer_given = out->tokenizer != NULL;
	if (!out->tokenizer)
		out->tokenizer = out->model;
	out->tokenizer_mode = engine_argv_text(argv, "tokenizer-mode", c->a);
	out->quantization = engine_argv_text(argv, "quantization", c->a);
	out->dtype = engine_argv_text(argv, "dtype", c->a);
	out->executor_backend = engine_argv_text(argv, "distributed-executor-backend", c->a);
	out->seed = engine_argv_int(argv, "seed", 0);
	out->is_seed_given = is_given(out, "seed");
	out->has_lora = is_on(out, "enable-lora", c->a);
	out->trusts_remote_code = is_on(out, "trust-remote-code", c->a);
	out->max_loras = engine_argv_int(argv, "max-loras", 1);
	out->tensor_parallel = engine_argv_int(argv, "tensor-parallel-size", 1);
	out->pipeline_parallel = engine_argv_int(argv, "pipeline-parallel-size", 1);
	out->data_parallel = engine_argv_int(argv, "data-parallel-size", 1);
}

int offline_opts_check(const struct opt_set *set, const struct opt_result *result,
		       const struct offline_verb *verb, struct offline_opts *o,
		       struct offline_engine *out, struct arena *a, struct buf *notes,
		       struct err *e)
{
	/* Nsight follows processes that are spawned; forked ones lose their traces. */
	static char spawn[] = "VLLM_WORKER_MULTIPROC_METHOD=spawn";
	static char *const spawning[] = { spawn, NULL }, *const nothing[] = { NULL };
	struct offline_check c = { set, result, verb, o, out, a, notes, e };

	*out = (struct offline_engine){ 0 };
	if (check_backend(&c) < 0 || check_compat(&c) < 0 || check_fixes(&c) < 0 ||
	    check_words(&c) < 0)
		return -1;
	join(&c);
	show(&c);
	out->env = o->nsight.is_set ? spawning : nothing;
	if (engine_args_check(out->command + 2, HEAD, 0, o->strict_args, notes, e) < 0)
		return -1;
	read_engine(&c);
	return 0;
}

int offline_judge(const struct offline_opts *o, const struct offline_engine *engine,
		  const struct offline_about *about, const struct offline_hooks *hooks,
		  struct err *e)
{
	struct buf found = { 0 };
	struct str rest;
	int rc = 0;

	if (strcmp(about->engine, "vllm") != 0)
		return 0;
	engine_args_check_version(engine->command + 2, HEAD, engine_version(about->version),
				  &found);
	rest = buf_str(&found);
	while (rest.n && rc == 0) {
		struct str line = str_cut(&rest, '\n');

		if (o->strict_args)
			rc = err_set(e, ERR_USAGE, "%.*s", (int)line.n, line.p);
		found.data[line.p - found.data + (ptrdiff_t)line.n] = 0;
		if (rc == 0 && hooks->warn)
			hooks->warn(hooks->self, line.p);
	}
	buf_release(&found);
	return rc;
}

const char *offline_engine_text(const struct offline_engine *engine, const char *name,
				struct arena *a)
{
	return engine_argv_text(engine->command, name, a);
}

struct config_words {
	const struct opt_set *set;
	struct arena *a;
	char *const *typed;  /* the command line, ended by NULL */
	struct word_list out;
};

static bool is_same(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && a.n == b.n; i++)
		if ((a.p[i] == '_' ? '-' : a.p[i]) != (b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return a.n == b.n;
}

/* Whether --no-name is an option, of the verb's or of the engine's. */
static bool has_negative(const struct opt_set *set, struct str name)
{
	const struct engine_arg *arg = engine_arg_find(name);

	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		if (is_same(name, str_of(o->name)))
			return o->kind == OPT_TRI;
	}
	return arg && arg->kind == ENGINE_SWITCH;
}

/* As Python's str(); objects and lists in lists as JSON. */
static const char *text_of(const struct json_value *v, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	char number[FMT_F64_BYTES];
	const char *text;

	switch (v->kind) {
	case JSON_NULL:
		return "None";
	case JSON_TRUE:
		return "True";
	case JSON_FALSE:
		return "False";
	case JSON_REAL:
		return arena_printf(a, "%s", fmt_f64(number, v->real));
	case JSON_STRING:
		return arena_text(a, v->text);
	case JSON_INT:
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	w.is_python = true;
	json_put_value(&w, v);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* Whether the option is on the command line, too, by its whole name. */
static bool is_typed(const struct config_words *c, struct str key)
{
	for (char *const *at = c->typed; *at; at++) {
		struct str rest = str_of(*at), name = str_cut(&rest, '=');

		if (!str_starts(name, STR("--")))
			continue;
		name = (struct str){ name.p + 2, name.n - 2 };
		if (is_same(name, key) ||
		    (str_starts(name, STR("no-")) &&
		     is_same((struct str){ name.p + 3, name.n - 3 }, key)))
			return true;
	}
	return false;
}

static void add_option(struct config_words *c, struct str key, const struct json_value *v)
{
	const char *name = arena_printf(c->a, "--%.*s", (int)key.n, key.p);
	const char *text;

	if (is_typed(c, key))
		return;
	if (v->kind == JSON_FALSE) {
		if (has_negative(c->set, key))
			words_add(&c->out, arena_printf(c->a, "--no-%.*s", (int)key.n, key.p));
		return;
	}
	if (v->kind == JSON_ARRAY && v->count == 0)
		return;
	if (v->kind == JSON_TRUE || v->kind == JSON_ARRAY) {
		words_add(&c->out, (char *)name);
		for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++)
			words_add(&c->out, (char *)text_of(&v->item[i], c->a));
		return;
	}
	text = text_of(v, c->a);
	/* With "=" a value may begin with a dash. */
	if (text[0] == '-') {
		words_add(&c->out, arena_printf(c->a, "%s=%s", name, text));
		return;
	}
	words_add(&c->out, (char *)name);
	words_add(&c->out, (char *)text);
}

static int read_file(struct config_words *c, const char *path, struct err *e)
{
	const char *dot = strrchr(path, '.');
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *root;
	int rc;

	if (!dot || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
		return err_set(e, ERR_USAGE, "--config: expected a .yaml or .yml file, got '%.200s'",
			       path);
	rc = file_read(path, CONFIG_BYTES_MAX, &text, e);
	if (rc == 0)
		rc = yaml_parse(c->a, buf_str(&text), &root, e);
	buf_release(&text);
	if (rc == 0 && root->kind != JSON_OBJECT)
		rc = err_set(e, ERR_PARSE, "%.200s: expected names of options with their values", path);
	if (rc < 0)
		return err_wrap(e, "--config %.200s", path);
	json_put_value(&w, root);
	redact_learn_text(buf_str(&text));
	buf_release(&text);
	for (size_t i = 0; i < root->count; i++)
		add_option(c, root->key[i], &root->item[i]);
	return 0;
}

int offline_config(const struct opt_set *set, int *argc, char ***argv, struct arena *a,
		   struct err *e)
{
	struct config_words c = { .set = set, .a = a, .typed = *argv, .out.arena = a };
	const char *path = NULL;
	int at = -1, words = 0;

	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->row[i].name, "config") == 0)
			return 0;
	for (int i = 0; i < *argc && strcmp((*argv)[i], "--") != 0; i++) {
		bool is_whole = strcmp((*argv)[i], "--config") == 0;

		if (!is_whole && strncmp((*argv)[i], "--config=", 9) != 0)
			continue;
		if (path)
			return err_set(e, ERR_USAGE, "--config: one file at most");
		if (is_whole && i + 1 == *argc)
			return err_set(e, ERR_USAGE, "--config: expected the name of a YAML file");
		at = i;
		words = 1 + is_whole;
		path = is_whole ? (*argv)[++i] : (*argv)[i] + 9;
	}
	if (!path)
		return 0;
	if (read_file(&c, path, e) < 0)
		return -1;
	for (int i = 0; i < *argc; i++)
		if (i < at || i >= at + words)
			words_add(&c.out, (*argv)[i]);
	if (!c.out.v)
		c.out.v = arena_alloc(a, sizeof(*c.out.v));
	*argc = (int)c.out.n;
	*argv = c.out.v;
	return 0;
}
