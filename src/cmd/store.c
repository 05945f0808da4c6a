/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/store.c - `profllm backup`, `restore`, `store check` and `store convert`. */
#include "cmd/store.h"

#include <unistd.h>

#include "base/file.h"
#include "cmd/cmd.h"

#define R(member, flag, ...) OPT(struct keep_opts, member, flag, __VA_ARGS__)
#define STORE \
	R(store, "store", .arg = "URL", \
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder")
#define SET(verb, rows, ...) { .command = verb, .row = rows, .n = sizeof(rows) / sizeof(*rows), \
	.defaults = &defaults, .bytes = sizeof(defaults), __VA_ARGS__ }

static const struct keep_opts defaults = { 0 };

static const struct opt backup_rows[] = {
	R(file, "FILE", .flags = OPT_POSITIONAL, .help = "the file to write"),
	STORE,
};
static const struct opt_set backup_set = SET("backup", backup_rows,
	.summary = "Copies a store into one file, while it is in use; files of traces are not in it.",
	.usage = "FILE [options]",
	.epilog = "Examples:\n"
		  "  profllm backup runs.backup\n"
		  "  profllm backup runs.backup --store postgresql://db/runs");

static const struct opt restore_rows[] = {
	R(file, "FILE", .flags = OPT_POSITIONAL, .help = "what backup has written"),
	R(is_forced, "force", .help = "replace what the store holds"),
	STORE,
};
static const struct opt_set restore_set = SET("restore", restore_rows,
	.summary = "Makes a store what it was when it was backed up, on either database.",
	.usage = "FILE [options]",
	.epilog = "Examples:\n"
		  "  profllm restore runs.backup --store sqlite:runs.db\n"
		  "  profllm restore runs.backup --store postgresql://db/runs --force");

static const struct opt check_rows[] = {
	R(is_repairing, "repair",
	  .help = "give back columns that no run has, and add those for which there was no room"),
	STORE,
	KEEP_TRACES,
};
static const struct opt_set check_set = SET("store check", check_rows,
	.summary = "Looks at everything a store holds, and exits with 1 when something is wrong.",
	.epilog = "Examples:\n"
		  "  profllm store check --store sqlite:runs.db\n"
		  "  profllm store check --store sqlite:runs.db --repair");

static const struct opt convert_rows[] = {
	STORE,
	R(to, "to", .arg = "URL", .help = "the store to fill; it must be empty, or --force given"),
	R(is_forced, "force", .help = "replace what that store holds"),
};
static const struct opt_set convert_set = SET("store convert", convert_rows,
	.summary = "Copies a store into another one, of the same database or the other.",
	.usage = "--to URL [options]",
	.epilog = "Examples:\n"
		  "  profllm store convert --store sqlite:runs.db --to postgresql://db/runs");

const struct opt_set *cmd_backup_options(void)
{
	return &backup_set;
}

const struct opt_set *cmd_restore_options(void)
{
	return &restore_set;
}

const struct opt_set *cmd_store_check_options(void)
{
	return &check_set;
}

const struct opt_set *cmd_store_convert_options(void)
{
	return &convert_set;
}

/* The user's own store, which --store names otherwise. */
static const char *keep_place(const struct keep_opts *o, struct arena *a)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (o->store)
		return o->store;
	if (data && *data)
		return arena_printf(a, "%s/profllm/store.db", data);
	return arena_printf(a, "%s/.local/share/profllm/store.db", home && *home ? home : ".");
}

int keep_open(const struct keep_opts *o, bool is_read_only, bool has_index, struct store **out,
	      struct err *e)
{
	const struct store_opts how = { .url = o->store, .is_read_only = is_read_only,
					.traces = o->traces_dir, .has_no_index = !has_index };

	return store_open(&how, out, e);
}

/* ---- the verbs ---- */

static int backup(const struct keep_opts *o, struct err *e)
{
	struct store *store;
	int rc;

	if (!o->file)
		return err_set(e, ERR_USAGE, "the file to write is needed");
	if (keep_open(o, true, false, &store, e) < 0)
		return -1;
	rc = store_backup(store, o->file, e);
	store_close(store);
	if (rc == 0)
		printf("%s holds the store\n", o->file);
	return rc;
}

static int restore(const struct keep_opts *o, struct arena *a, struct err *e)
{
	struct err why = { 0 };

	if (!o->file)
		return err_set(e, ERR_USAGE, "the file that backup has written is needed");
	if (!file_exists(o->file))
		return err_set(e, ERR_USAGE, "%s does not exist", o->file);
	/* Force helps against one refusal alone. */
	if (store_restore(keep_place(o, a), o->file, o->is_forced, &why) < 0)
		return err_set(e, why.code, "%s%s", why.text,
			       strstr(why.text, " is not empty: ") ? "; --force does it" : "");
	printf("the store is what %s holds\n", o->file);
	return 0;
}

static int convert(const struct keep_opts *o, struct arena *a, struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char *path = arena_printf(a, "%s/profllm-convert-%ld", folder && *folder ? folder : "/tmp",
				  (long)getpid());
	struct store *store;
	int rc;

	if (!o->to)
		return err_set(e, ERR_USAGE, "--to URL is needed");
	if (keep_open(o, true, false, &store, e) < 0)
		return -1;
	rc = store_backup(store, path, e);
	store_close(store);
	if (rc == 0)
		rc = store_restore(o->to, path, o->is_forced, e);
	unlink(path);
	if (rc == 0)
		printf("%s holds what %s does\n", o->to, keep_place(o, a));
	return rc;
}

/* Nothing is wrong with traces that a backup has left out, but people look for them. */
static int note_left_out(struct store *store, struct arena *a, struct err *e)
{
	struct trace *t;
	size_t n, left_out = 0;

	if (store_traces(store, 0, a, &t, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		left_out += str_is(t[i].state, "left_out");
	if (left_out)
		printf("note: the files of %zu trace%s are not in this store, because backups leave "
		       "them out. The folder of traces of the store that was backed up, copied to "
		       "the place of this store's, brings them back\n", left_out,
		       left_out == 1 ? "" : "s");
	return 0;
}

/* How many columns there may be besides those that schemas list, and how many there are. */
static void print_columns(struct store *store)
{
	struct store_columns c;

	store_columns(store, &c);
	printf("%zu of %zu columns for names that no schema lists are used (%.0f %%)\n", c.used, c.max,
	       100.0 * (double)c.used / (double)c.max);
	if ((double)c.used > STORE_FULL_SHARE * (double)c.max)
		printf("warning: the columns are running out. Remove runs whose names hold numbers, such as "
		       "one per request or layer; what they alone have is given back\n");
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static int repair(const struct keep_opts *o, struct err *e)
{
	struct repaired r;
	struct store *store;
	int rc;

	if (keep_open(o, false, false, &store, e) < 0)
		return -1;
	rc = store_repair(store, &r, e);
	store_close(store);
	if (rc < 0)
		return -1;
	printf("%zu column%s given back, %zu value%s of %zu run%s brought in%s\n", r.n_columns,
	       plural(r.n_columns), r.n_values, plural(r.n_values), r.n_runs, plural(r.n_runs),
	       r.is_table_new ? ", benchmark_runs made anew" : "");
	if (r.n_left)
		printf("note: there is still no room for %zu value%s, which %s in %s alone\n", r.n_left,
		       plural(r.n_left), r.n_left == 1 ? "is" : "are",
		       r.n_left == 1 ? "its document" : "their documents");
	return 0;
}

/* Also where SQLite only says that a table is missing. */
static int add_remedy(struct err *e)
{
	return strstr(e->text, STORE_REMEDY) ? -1 : err_add(e, ". " STORE_REMEDY);
}

/* Sentences on stdout; how many, or -1. */
static int check(const struct keep_opts *o, struct arena *a, struct err *e)
{
	struct store *store;
	struct str *finding;
	size_t n = 0;
	int rc;

	if ((o->is_repairing && repair(o, e) < 0) || keep_open(o, true, true, &store, e) < 0)
		return e->code == ERR_RUN ? add_remedy(e) : -1;
	print_columns(store);
	rc = store_check(store, a, &finding, &n, e);
	if (rc == 0)
		rc = note_left_out(store, a, e);
	store_close(store);
	if (rc < 0)
		return e->code == ERR_RUN ? add_remedy(e) : -1;
	for (size_t i = 0; i < n; i++)
		printf("%.*s\n", (int)finding[i].n, finding[i].p);
	if (n)
		printf("note: " STORE_REMEDY "\n");
	if (n == 0)
		printf("nothing is wrong\n");
	return n > 0;
}

int cmd_backup(int argc, char **argv)
{
	struct keep_opts o;
	struct cli cli;
	int status = cli_begin(&cli, &backup_set, argc, argv, &o);

	if (status != CLI_CONTINUE)
		return status;
	backup(&o, &cli.err);
	return cli_end(&cli);
}

int cmd_restore(int argc, char **argv)
{
	struct keep_opts o;
	struct cli cli;
	int status = cli_begin(&cli, &restore_set, argc, argv, &o);

	if (status != CLI_CONTINUE)
		return status;
	restore(&o, &cli.arena, &cli.err);
	return cli_end(&cli);
}

int cmd_store_check(int argc, char **argv)
{
	struct keep_opts o;
	struct cli cli;
	int found, status = cli_begin(&cli, &check_set, argc, argv, &o);

	if (status != CLI_CONTINUE)
		return status;
	found = check(&o, &cli.arena, &cli.err);
	status = cli_end(&cli);
	return status == 0 && found ? 1 : status;
}

int cmd_store_convert(int argc, char **argv)
{
	struct keep_opts o;
	struct cli cli;
	int status = cli_begin(&cli, &convert_set, argc, argv, &o);

	if (status != CLI_CONTINUE)
		return status;
	convert(&o, &cli.arena, &cli.err);
	return cli_end(&cli);
}
