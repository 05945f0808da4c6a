/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args_import.c - `profllm args import`: what an installed server's help says of its
 * arguments, against our table; what differs goes into the user's file.
 */
#include <stdlib.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/args_file.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/hardware/environment.h"
#include "host/proc/tool.h"

struct import_opts {
	const char *command, *from, *output;
	double timeout;
	bool dry_run;
};

#define ROW(...) OPT(struct import_opts, __VA_ARGS__)

static const struct opt rows[] = {
	ROW(command, "command", .arg = "WORDS",
	    .help = "what starts the server; its --help=all is read"),
	ROW(from, "from", .arg = "FILE",
	    .help = "help that was kept in a file, - for stdin; nothing is started"),
	ROW(output, "output", .arg = "FILE", .help = "where to; default: the user's own file"),
	ROW(timeout, "timeout", .min = 0, .max = 3600, .flags = OPT_MIN_EXCLUSIVE, .arg = "SECONDS",
	    .help = "how long the server may take to print its help"),
	ROW(dry_run, "dry-run", .help = "say what differs and write nothing"),
};
static const struct import_opts defaults = { .command = "vllm serve", .timeout = 180 };

const struct opt_set cmd_args_import_set = {
	.command = "args import",
	.summary = "Reads an installed server's help: which arguments are new, gone or changed.",
	.epilog = "Examples:\n"
		  "  profllm args import\n"
		  "  profllm args import --command '/opt/venv/bin/vllm serve'\n"
		  "  profllm args import --from help.txt --dry-run",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
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
	/* Pages are for people, and lines as wide as they come. */
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

/* By the interpreter's own lists, which takes no start of the server. */
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
	cli_out(buf_str(&out));
	buf_release(&out);
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
	path = o->output ? mem_text(o->output) : args_file_default();
	if (!o->dry_run && !path)
		err_set(&cli->err, ERR_USAGE, "--output: expected a file, as there is no home folder");
	else if (!o->dry_run)
		save(path, &told, &changes, cli);
	free(path);
	return 0;
}
