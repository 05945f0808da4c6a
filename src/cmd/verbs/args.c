/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - `profllm args list`, `show` and `import`: the arguments of vLLM's server. Import stores
 * in the user's file where an installed server's help differs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/hardware/hardware.h"
#include "host/proc/tool.h"

/* ---- the user's file of arguments that the table of engine/args.h lacks ---- */

/* $XDG_CONFIG_HOME/profllm/engine_args.json, else ~/.config/...; NULL: no home. Caller frees. */
static char *file_default(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct buf path = { 0 };

	if (config && *config == '/')
		buf_printf(&path, "%s/profllm/engine_args.json", config);
	else if (home && *home)
		buf_printf(&path, "%s/.config/profllm/engine_args.json", home);
	else
		return NULL;
	return buf_take(&path);
}

int args_file_load(const char *path, struct arena *a, struct engine_extra *out, struct err *e)
{
	char *own = path ? NULL : file_default();
	struct buf text = { 0 };
	int rc = -1;

	*out = (struct engine_extra){ .version = "" };
	if (!path)
		path = own && file_exists(own) ? own : NULL;
	if (!path) {
		rc = 0;
		goto done;
	}
	if (file_read(path, CONFIG_BYTES_MAX, &text, e) < 0) {
		e->code = ERR_USAGE;
		goto done;
	}
	rc = engine_extra_parse(arena_str(a, buf_str(&text)), a, out, e);
	if (rc < 0) {
		err_wrap(e, "%s", path);
		e->code = ERR_USAGE;
	}
done:
	free(own);
	buf_release(&text);
	return rc;
}

struct args_opts {
	struct opt_list text;
	const char *group, *version, *args_file;
	bool all, json;
};

#define ROW(...) OPT(struct args_opts, __VA_ARGS__)
#define FILE_ROW                                                                      \
	ROW(args_file, "args-file", .arg = "FILE",                                    \
	    .help = "file of further arguments, from args import; default: the user's own")

static const struct opt list_rows[] = {
	ROW(text, "TEXT", .flags = OPT_POSITIONAL,
	    .help = "words to look for in names, choices and descriptions"),
	ROW(group, "group", .arg = "NAME", .help = "list only one group, named as in vLLM's help"),
	ROW(version, "version", .arg = "V",
	    .help = "list the arguments of this version of vLLM with its defaults, such as 0.11 or "
	    "0.12.1"),
	ROW(all, "all", .help = "also list arguments that only older versions have"),
	ROW(json, "json", .help = "print a JSON list with every detail"),
	FILE_ROW,
};
static const struct opt show_rows[] = {
	ROW(text, "NAME", .flags = OPT_POSITIONAL | OPT_MANY,
	    .help = "names of arguments; dashes and underscores are the same"),
	ROW(version, "version", .arg = "V",
	    .help = "show the defaults of this version of vLLM; default: the newest that has the "
	    "argument"),
	ROW(json, "json", .help = "print a JSON list"),
	FILE_ROW,
};
static const struct args_opts defaults;

const struct opt_set cmd_args_list_set = {
	.command = "args list",
	.summary = "Lists the arguments of vLLM's server that an experiment may set.",
	.usage = "[TEXT ...] [options]",
	.epilog = "Examples:\n"
		  "  profllm args list\n"
		  "  profllm args list prefix cache --version 0.12\n"
		  "  profllm args list --group ParallelConfig --json",
	OPT_SET_OF(list_rows, defaults),
};
const struct opt_set cmd_args_show_set = {
	.command = "args show",
	.summary = "Shows everything that is known about arguments of vLLM's server.",
	.usage = "NAME ... [options]",
	.epilog = "Examples:\n"
		  "  profllm args show gpu_memory_utilization\n"
		  "  profllm args show --json tensor-parallel-size\n"
		  "  profllm args show seed --version 0.11",
	OPT_SET_OF(show_rows, defaults),
};

/* ---- one argument ---- */

static bool has_text(const char *where, const char *what)
{
	return strcasestr(where, what) != NULL;
}

static bool is_wanted(const struct engine_arg *arg, const struct args_opts *o, unsigned version)
{
	char key[128];

	if (o->group && !str_eq_nocase(str_of(o->group), str_of(arg->group)))
		return false;
	if (version ? !engine_arg_is_in(arg, version) : arg->until && !o->all)
		return false;
	snprintf(key, sizeof(key), "%s", arg->name);
	for (char *p = key; *p; p++)
		*p = *p == '-' ? '_' : *p;
	for (size_t i = 0; i < o->text.n; i++)
		if (!has_text(arg->name, o->text.v[i]) && !has_text(key, o->text.v[i]) &&
		    !has_text(arg->choices, o->text.v[i]) && !has_text(arg->about, o->text.v[i]))
			return false;
	return true;
}

static void add_versions(const struct engine_arg *arg, struct buf *out)
{
	char text[16];

	engine_version_text(arg->since, text);
	if (arg->since)
		buf_printf(out, "from %s", text);
	engine_version_text(arg->until, text);
	if (arg->until)
		buf_printf(out, "%sto %s", arg->since ? " " : "", text);
	if (arg->flags & ENGINE_DEPRECATED)
		buf_printf(out, "%sdeprecated", arg->since || arg->until ? ", " : "");
}

static void add_field(struct buf *out, const char *name, const char *value)
{
	if (value && *value)
		buf_printf(out, "  %-12s %s\n", name, value);
}

/* Lists the defaults of older versions, newest first. */
static void add_earlier(const struct engine_arg *arg, struct buf *out)
{
	size_t n = 0;
	char until[16];

	while (arg->earlier && arg->earlier[n].until)
		n++;
	while (n-- > 0) {
		const char *was = arg->earlier[n].initial;

		engine_version_text(arg->earlier[n].until, until);
		buf_printf(out, "%sto %s: %s", out->len ? ", " : "", until, was ? was : "none");
	}
}

static void show_one(const struct engine_arg *arg, unsigned version, struct buf *out)
{
	struct buf text = { 0 };

	buf_printf(out, "--%s\n  %s\n", arg->name, arg->about);
	engine_arg_value_text(arg, &text);
	add_field(out, "value", text.data);
	add_field(out, "default", engine_arg_initial(arg, version));
	buf_reset(&text);
	add_earlier(arg, &text);
	add_field(out, "earlier", text.len ? text.data : "");
	buf_reset(&text);
	add_versions(arg, &text);
	add_field(out, "versions", text.len ? text.data : "");
	add_field(out, "successor", arg->successor);
	add_field(out, "also", arg->also);
	add_field(out, "group", arg->group);
	buf_release(&text);
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	json_member_text(w, key, text && *text ? text : NULL);
}

static void put_words(struct json_writer *w, const char *key, const char *words)
{
	struct str rest = str_of(words);

	json_member_array(w, key);
	while (rest.n)
		json_put_str(w, str_cut(&rest, ' '));
	json_end_array(w);
}

static void put_version(struct json_writer *w, const char *key, unsigned version)
{
	char text[16];

	engine_version_text(version, text);
	put_text(w, key, version ? text : NULL);
}

static void put_earlier(struct json_writer *w, const struct engine_earlier *before)
{
	json_member_array(w, "earlier");
	for (; before && before->until; before++) {
		json_begin_object(w);
		put_version(w, "until", before->until);
		json_member_text(w, "default", before->initial);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_one(struct json_writer *w, const struct engine_arg *arg, unsigned version)
{
	json_begin_object(w);
	put_text(w, "name", arg->name);
	put_words(w, "also", arg->also);
	put_text(w, "group", arg->group);
	put_text(w, "kind", engine_kind_name(arg->kind));
	json_member_text(w, "default", engine_arg_initial(arg, version));
	put_earlier(w, arg->earlier);
	json_member_bool(w, "decided_at_start", arg->flags & ENGINE_DECIDED);
	put_words(w, "choices", arg->choices);
	json_member_f64(w, "min", arg->min);
	json_member_bool(w, "min_is_exclusive", arg->flags & ENGINE_ABOVE);
	json_member_f64(w, "max", arg->max);
	put_version(w, "since", arg->since);
	put_version(w, "until", arg->until);
	json_member_bool(w, "deprecated", arg->flags & ENGINE_DEPRECATED);
	put_text(w, "successor", arg->successor);
	put_text(w, "about", arg->about);
	json_end_object(w);
}

/* ---- several ---- */

struct wanted {
	const struct engine_arg **arg;
	size_t n;
	unsigned version; /* whose defaults are shown; 0: the newest's */
};

/* The user's own arguments replace the table's of the same name. */
static struct wanted choose(const struct args_opts *o, const struct engine_extra *extra,
			    unsigned version, struct arena *a)
{
	struct wanted w = { arena_alloc(a, (engine_arg_count + extra->n) * sizeof(*w.arg)), 0,
			    version };

	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const struct engine_arg *own = engine_extra_find(extra, str_of(arg->name));

		arg = own ? own : arg;
		if (is_wanted(arg, o, version))
			w.arg[w.n++] = arg;
	}
	for (size_t i = 0; i < extra->n; i++)
		if (!engine_arg_find(str_of(extra->arg[i].name)) &&
		    is_wanted(&extra->arg[i], o, version))
			w.arg[w.n++] = &extra->arg[i];
	return w;
}

static void list_all(const struct wanted *w, struct buf *out)
{
	const char *group = "";

	for (size_t i = 0; i < w->n; i++) {
		const struct engine_arg *arg = w->arg[i];
		const char *initial = engine_arg_initial(arg, w->version);
		struct buf value = { 0 };

		if (strcmp(group, arg->group) != 0)
			buf_printf(out, "%s%s\n", i ? "\n" : "", arg->group);
		group = arg->group;
		engine_arg_value_text(arg, &value);
		buf_printf(out, "  %-40s %s", arg->name, value.data);
		if (initial && *initial)
			buf_printf(out, " [%s]", initial);
		buf_add_char(out, '\n');
		buf_release(&value);
	}
}

static void print(const struct wanted *w, bool is_json, bool is_list)
{
	struct buf out = { 0 };
	struct json_writer json = json_writer(&out);

	if (is_json) {
		json.indent = 2;
		json_begin_array(&json);
		for (size_t i = 0; i < w->n; i++)
			put_one(&json, w->arg[i], w->version);
		json_end_array(&json);
		buf_add_char(&out, '\n');
	} else if (is_list) {
		list_all(w, &out);
	} else {
		for (size_t i = 0; i < w->n; i++) {
			buf_add_text(&out, i ? "\n" : "");
			show_one(w->arg[i], w->version, &out);
		}
	}
	cli_out_buf(&out);
}

static int check_group(const struct args_opts *o, const struct engine_extra *extra, struct err *e)
{
	const char *names[64];
	size_t n = 0;
	const char *near;

	for (size_t i = 0; i < engine_arg_count + extra->n; i++) {
		const char *group = i < engine_arg_count ? engine_args[i].group :
				    extra->arg[i - engine_arg_count].group;

		if (!o->group || str_eq_nocase(str_of(o->group), str_of(group)))
			return 0;
		if (n < sizeof(names) / sizeof(*names) && (!n || strcmp(names[n - 1], group) != 0))
			names[n++] = group;
	}
	near = opt_nearest(str_of(o->group), names, n);
	return err_set(e, ERR_USAGE, "--group: there is no group '%s'%s%s%s", o->group,
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* 0: no version was given, or, with e, one that cannot be read. */
static unsigned asked_version(const struct args_opts *o, struct err *e)
{
	unsigned version = o->version ? engine_version(o->version) : 0;

	if (o->version && !version)
		err_set(e, ERR_USAGE, "--version: expected a version such as 0.11, got '%s'", o->version);
	return version;
}

int cmd_args_list(struct cli *cli, void *values)
{
	struct args_opts *o = values;
	struct engine_extra extra;
	struct wanted wanted;
	unsigned version;

	version = asked_version(o, &cli->err);
	if (!cli->err.code && args_file_load(o->args_file, &cli->arena, &extra, &cli->err) == 0 &&
	    check_group(o, &extra, &cli->err) == 0) {
		wanted = choose(o, &extra, version, &cli->arena);
		print(&wanted, o->json, true);
	}
	return 0;
}

/* "x_y", "x-y", and other spellings without their dashes: "tp". */
static const struct engine_arg *find(const struct engine_extra *extra, const char *word)
{
	struct str name = str_of(word);
	const struct engine_arg *arg = engine_extra_find(extra, name);

	if (!arg)
		arg = engine_arg_find(name);
	for (size_t i = 0; !arg && i < engine_arg_count; i++) {
		struct str rest = str_of(engine_args[i].also);

		while (rest.n && !arg) {
			struct str one = str_cut(&rest, ' ');

			if (one.n > name.n && str_ends(one, name) &&
			    one.p[one.n - name.n - 1] == '-')
				arg = &engine_args[i];
		}
	}
	return arg;
}

static int refuse(const struct engine_extra *extra, const char *word, struct arena *a,
		  struct err *e)
{
	const char **names = arena_alloc(a, (engine_arg_count + extra->n) * sizeof(*names));
	char *dashed = arena_text(a, str_of(word));
	const char *near;

	for (char *p = dashed; *p; p++)
		*p = *p == '_' ? '-' : *p;
	for (size_t i = 0; i < engine_arg_count; i++)
		names[i] = engine_args[i].name;
	for (size_t i = 0; i < extra->n; i++)
		names[engine_arg_count + i] = extra->arg[i].name;
	near = opt_nearest(str_of(dashed), names, engine_arg_count + extra->n);
	return err_set(e, ERR_USAGE, "vLLM's server has no argument '%s'%s%s%s", word,
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int cmd_args_show(struct cli *cli, void *values)
{
	struct args_opts *o = values;
	struct engine_extra extra;
	struct wanted wanted;

	wanted.version = asked_version(o, &cli->err);
	if (cli->err.code || args_file_load(o->args_file, &cli->arena, &extra, &cli->err) < 0)
		return -1;
	wanted.n = 0;
	wanted.arg = arena_alloc(&cli->arena, (o->text.n + 1) * sizeof(*wanted.arg));
	for (size_t i = 0; i < o->text.n; i++) {
		const struct engine_arg *arg = find(&extra, o->text.v[i]);

		if (!arg) {
			refuse(&extra, o->text.v[i], &cli->arena, &cli->err);
			return -1;
		}
		wanted.arg[wanted.n++] = arg;
	}
	print(&wanted, o->json, false);
	return 0;
}

/* ---- import: what an installed server's help says, against our table ---- */

struct import_opts {
	const char *command, *from, *output;
	double timeout;
	bool dry_run;
};

#define IMPORT(...) OPT(struct import_opts, __VA_ARGS__)

static const struct opt import_rows[] = {
	IMPORT(command, "command", .arg = "WORDS",
	    .help = "command that starts the server; its --help=all is read"),
	IMPORT(from, "from", .arg = "FILE",
	    .help = "read the help from this file (- for stdin) and start nothing"),
	IMPORT(output, "output", .arg = "FILE", .help = "file to write; default: the one in the "
	"user's configuration folder"),
	IMPORT(timeout, "timeout", .min = 0, .max = 3600, .flags = OPT_MIN_EXCLUSIVE, .arg = "SECONDS",
	    .help = "how long the server may take to print its help"),
	IMPORT(dry_run, "dry-run", .help = "print the differences and write nothing"),
};
static const struct import_opts import_defaults = { .command = "vllm serve", .timeout = 180 };

const struct opt_set cmd_args_import_set = {
	.command = "args import",
	.summary = "Imports the arguments of an installed server from its help, and lists what is "
		   "new, gone or changed.",
	.epilog = "Examples:\n"
		  "  profllm args import\n"
		  "  profllm args import --command '/opt/venv/bin/vllm serve'\n"
		  "  profllm args import --from help.txt --dry-run",
	OPT_SET_OF(import_rows, import_defaults),
};

/* ---- the help ---- */

static char **split(const char *words, struct arena *a, const char *last)
{
	struct str rest = str_of(words);
	char **argv = arena_alloc(a, (rest.n + 3) * sizeof(*argv));
	size_t n = 0;

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (word.n)
			argv[n++] = arena_text(a, word);
	}
	if (n && last)
		argv[n] = arena_text(a, str_of(last));
	return argv;
}

static int run_help(const struct import_opts *o, struct cli *c, struct buf *out)
{
	char **argv = split(o->command, &c->arena, "--help=all");
	struct buf errors = { 0 };
	struct str said;
	int status;

	if (!argv[0])
		return err_set(&c->err, ERR_USAGE, "--command: expected the words that start a server");
	/* For people: no pager, and lines of any width. */
	setenv("PAGER", "cat", 1);
	setenv("COLUMNS", "80", 1);
	setenv("NO_COLOR", "1", 1);
	status = tool_run((const char *const *)argv, STR(""), (unsigned)(o->timeout + 0.999), out,
			  &errors, &c->err);
	said = str_trim(buf_str(&errors));
	while (said.n && memchr(said.p, '\n', said.n))
		str_cut(&said, '\n');
	if (status > 0)
		err_set(&c->err, ERR_RUN, "%s --help=all: ended with %d: %.*s", o->command, status,
			(int)(said.n < 300 ? said.n : 300), said.p ? said.p : "");
	buf_release(&errors);
	return status == 0 ? 0 : -1;
}

static int read_stdin(struct buf *out, struct err *e)
{
	char room[4096];
	size_t n;

	while ((n = fread(room, 1, sizeof(room), stdin)) > 0) {
		buf_add(out, room, n);
		if (out->len > ENGINE_HELP_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "stdin: more than %u bytes of help",
				       ENGINE_HELP_BYTES_MAX);
	}
	return 0;
}

static int read_help(const struct import_opts *o, struct cli *c, struct engine_extra *told)
{
	const char *whence = o->from ? o->from : o->command;
	struct buf text = { 0 };
	int rc;

	if (!o->from)
		rc = run_help(o, c, &text);
	else if (strcmp(o->from, "-") == 0)
		rc = read_stdin(&text, &c->err);
	else
		rc = file_read(o->from, ENGINE_HELP_BYTES_MAX, &text, &c->err);
	if (rc == 0) {
		rc = engine_help_read(buf_str(&text), &c->arena, told, &c->err);
		if (rc < 0)
			err_wrap(&c->err, "%s", whence);
	}
	buf_release(&text);
	return rc;
}

/* Asks the interpreter's package list, without starting the server. */
static void find_version(const struct import_opts *o, struct arena *a, struct engine_extra *told)
{
	struct interpreter py = { 0 };
	const char *words = o->command;

	if (o->from)
		return;
	interpreter_ask(split(words, a, NULL), o->timeout, &py);
	if (py.is_known)
		told->version = arena_text(a, json_text(json_get(py.packages, "vllm"), STR("")));
	interpreter_release(&py);
}

/* ---- what differs ---- */

static void add_changes(struct buf *out, const char *head, const struct engine_change *change,
			size_t n)
{
	if (n)
		buf_printf(out, "\n%s:\n", head);
	for (size_t i = 0; i < n; i++) {
		struct buf value = { 0 };

		engine_arg_value_text(change[i].arg, &value);
		if (*change[i].what)
			buf_printf(out, "  %-40s %s\n", change[i].arg->name, change[i].what);
		else
			buf_printf(out, "  %-40s %s\n", change[i].arg->name, value.data);
		buf_release(&value);
	}
}

static void report(const struct engine_extra *told, const struct engine_changes *c)
{
	char oldest[16], newest[16];
	struct buf out = { 0 };

	engine_version_text(engine_version_oldest, oldest);
	engine_version_text(engine_version_newest, newest);
	buf_printf(&out, "%zu arguments%s%s: %zu new, %zu gone, %zu changed against the table of "
		   "vLLM %s to %s\n", told->n, *told->version ? " of vLLM " : "",
		   told->version, c->n_added, c->n_gone, c->n_changed, oldest, newest);
	add_changes(&out, "New", c->added, c->n_added);
	add_changes(&out, "Gone", c->gone, c->n_gone);
	add_changes(&out, "Changed", c->changed, c->n_changed);
	cli_out_buf(&out);
}

static int make_folder(struct str folder, struct cli *cli)
{
	return file_mkdirs(arena_text(&cli->arena, folder), &cli->err);
}

static int save(const char *path, const struct engine_extra *told, const struct engine_changes *c,
		struct cli *cli)
{
	struct engine_extra kept = { .version = told->version };
	const char *slash = strrchr(path, '/');
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc = 0;

	kept.arg = arena_alloc(&cli->arena, (c->n_added + c->n_changed + 1) * sizeof(*kept.arg));
	for (size_t i = 0; i < c->n_added; i++)
		kept.arg[kept.n++] = *c->added[i].arg;
	for (size_t i = 0; i < c->n_changed; i++)
		kept.arg[kept.n++] = *c->changed[i].arg;
	w.indent = 2;
	engine_extra_write(&kept, &w);
	buf_add_char(&text, '\n');
	if (slash && slash > path)
		rc = make_folder((struct str){ path, (size_t)(slash - path) }, cli);
	if (rc == 0)
		rc = file_write_atomic(path, buf_str(&text), &cli->err);
	if (rc == 0) {
		buf_reset(&text);
		buf_printf(&text, "\nWritten to %s\n", path);
		cli_out(buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

int cmd_args_import(struct cli *cli, void *values)
{
	struct import_opts *o = values;
	struct engine_changes changes;
	struct engine_extra told;
	char *path = NULL;

	if (read_help(o, cli, &told) < 0)
		return -1;
	find_version(o, &cli->arena, &told);
	engine_extra_compare(&told, &cli->arena, &changes);
	report(&told, &changes);
	path = o->output ? mem_text(o->output) : file_default();
	if (!o->dry_run && !path)
		err_set(&cli->err, ERR_USAGE, "--output: expected a file, as there is no home folder");
	else if (!o->dry_run)
		save(path, &told, &changes, cli);
	free(path);
	return 0;
}
