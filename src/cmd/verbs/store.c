/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the verbs that maintain a store: backup, restore, store check, convert, archive... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/redact.h"
#include "core/json/write.h"
#include "results/index/filter.h"
#include "results/index/index.h"
#include "results/store/known.h"
#include "results/store/store.h"

struct keep_opts {
	const char *file, *store, *to, *traces_dir;
	struct opt_list runs;
	struct opt_json filter;
	bool is_forced, is_undone, is_sure, is_repairing;
	struct opt_real archive_days, remove_days, drop_days, trace_days, trace_gb;
};

#define R(member, flag, ...) OPT(struct keep_opts, member, flag, __VA_ARGS__)
#define STORE \
	R(store, "store", .arg = "URL", \
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder")
#define WHICH \
	R(runs, "RUN", .flags = OPT_POSITIONAL, .help = "run_ids"), \
	R(filter, "filter", .arg = "JSON", \
	  .help = "or all runs that match this filter, as in export")
/* For the verbs that look for files of traces, or remove them. */
#define TRACES \
	R(traces_dir, "traces-dir", .arg = "DIR", \
	  .help = "folder for traces; default: next to the SQLite file")
#define SET(verb, rows, ...) { .command = verb, OPT_SET_OF(rows, defaults), \
				 .stray = "store", __VA_ARGS__ }

static const struct keep_opts defaults = { 0 };

static const struct opt backup_rows[] = {
	R(file, "FILE", .flags = OPT_POSITIONAL, .help = "the file to write"),
	R(is_forced, "force", .help = "replace the file if it exists"),
	STORE,
};
const struct opt_set cmd_backup_set = SET("backup", backup_rows,
	.summary = "Copies a store into one file, while it is in use. Trace files are not "
		"included.",
	.usage = "FILE [options]",
	.epilog = "Examples:\n"
		  "  profllm backup runs.backup\n"
		  "  profllm backup runs.backup --store postgresql://db/runs");

static const struct opt restore_rows[] = {
	R(file, "FILE", .flags = OPT_POSITIONAL, .help = "a file written by profllm backup"),
	R(is_forced, "force", .help = "replace the contents of the store"),
	STORE,
};
const struct opt_set cmd_restore_set = SET("restore", restore_rows,
	.summary = "Restores a store from a backup, on either database.",
	.usage = "FILE [options]",
	.epilog = "Examples:\n"
		  "  profllm restore runs.backup --store sqlite:runs.db\n"
		  "  profllm restore runs.backup --store postgresql://db/runs --force");

static const struct opt check_rows[] = {
	R(is_repairing, "repair",
	  .help = "free columns that no run uses, and add values for which there was no column"),
	STORE,
	TRACES,
};
const struct opt_set cmd_store_check_set = SET("store check", check_rows,
	.summary = "Checks everything in a store, and exits with 1 when something is wrong.",
	.epilog = "Examples:\n"
		  "  profllm store check --store sqlite:runs.db\n"
		  "  profllm store check --store sqlite:runs.db --repair");

static const struct opt convert_rows[] = {
	STORE,
	R(to, "to", .arg = "URL", .help = "the store to fill; it must be empty unless --force is "
	"given"),
	R(is_forced, "force", .help = "replace the contents of that store"),
};
const struct opt_set cmd_store_convert_set = SET("store convert", convert_rows,
	.summary = "Copies a store into another one, of the same database or the other.",
	.usage = "--to URL [options]",
	.epilog = "Examples:\n"
		  "  profllm store convert --store sqlite:runs.db --to postgresql://db/runs");

/* The user's own store, unless --store names another. */
static const char *keep_place(const struct keep_opts *o, struct arena *a)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (o->store)
		return o->store;
	if (data && *data)
		return arena_printf(a, "%s/profllm/store.db", data);
	return arena_printf(a, "%s/.local/share/profllm/store.db", home && *home ? home : ".");
}

static int keep_open(const struct keep_opts *o, bool is_read_only, bool has_index,
		     struct store **out, struct err *e)
{
	const struct store_opts how = { .url = o->store, .is_read_only = is_read_only,
					.traces = o->traces_dir, .has_no_index = !has_index,
					.must_exist = true };

	return store_open(&how, out, e);
}

/* Opens the store to be copied, unchanged. */
static int keep_open_source(const struct keep_opts *o, struct store **out, struct err *e)
{
	const struct store_opts how = { .url = o->store, .is_read_only = true,
					.traces = o->traces_dir, .has_no_index = true,
					.takes_older = true };

	return store_open(&how, out, e);
}

/* ---- the verbs ---- */

int cmd_backup(struct cli *c, void *opts)
{
	const struct keep_opts *o = opts;
	struct err *e = &c->err;
	struct store *store;
	int rc;

	if (!o->file)
		return err_set(e, ERR_USAGE, "FILE is missing: the file to write");
	if (!o->is_forced && file_exists(o->file))
		return err_set(e, ERR_USAGE, "%s exists already: choose another name, or add --force to "
			       "replace it", o->file);
	if (keep_open_source(o, &store, e) < 0)
		return -1;
	rc = store_backup(store, o->file, e);
	store_close(store);
	if (rc == 0)
		printf("%s holds the store\n", o->file);
	return rc;
}

static int restore_into(const char *url, const char *path, const char *name, bool is_forced,
			struct err *e)
{
	struct buf aside = { 0 }, done = { 0 };
	int rc = store_restore(url, path, is_forced, &aside, e);

	if (rc == 0)
		buf_printf(&done, "%s now has the contents of %s\n", url, name);
	if (rc == 0 && aside.len)
		buf_printf(&done, "the file that was there could not be used and is now %s\n", aside.data);
	redact_tail(&done, 0, REDACT_DATA); /* URLs may have passwords */
	printf("%.*s", (int)done.len, done.len ? done.data : "");
	buf_release(&aside);
	buf_release(&done);
	return rc;
}

int cmd_restore(struct cli *c, void *opts)
{
	const struct keep_opts *o = opts;
	struct err *e = &c->err;

	if (!o->file)
		return err_set(e, ERR_USAGE, "FILE is missing: a file written by profllm backup");
	if (!file_exists(o->file))
		return err_set(e, ERR_USAGE, "%s does not exist", o->file);
	return restore_into(keep_place(o, &c->arena), o->file, o->file, o->is_forced, e);
}

int cmd_store_convert(struct cli *c, void *opts)
{
	const struct keep_opts *o = opts;
	struct err *e = &c->err;
	const char *folder = getenv("TMPDIR");
	char *path = arena_printf(&c->arena, "%s/profllm-convert-%ld",
				  folder && *folder ? folder : "/tmp", (long)getpid());
	struct store *store;
	int rc;

	if (!o->to)
		return err_set(e, ERR_USAGE, "--to is missing: the URL of the store to fill");
	if (keep_open_source(o, &store, e) < 0)
		return -1;
	rc = store_backup(store, path, e);
	store_close(store);
	if (rc == 0)
		rc = restore_into(o->to, path, keep_place(o, &c->arena), o->is_forced, e);
	if (rc < 0 && strstr(e->text, path) && e->kind == ERR_STORE_DAMAGED)
		err_set(e, ERR_STORE_DAMAGED, "%s: the store is damaged. " STORE_REMEDY,
			keep_place(o, &c->arena));
	unlink(path);
	return rc;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* It is not an error that a backup has left out traces, but users would look for them. */
static int note_left_out(const struct keep_opts *o, struct store *store, struct arena *a,
			 struct err *e)
{
	struct trace *t;
	size_t n, left_out = 0, unseen = 0;

	if (store_traces(store, 0, a, &t, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		left_out += str_is(t[i].state, "left_out");
		unseen += str_is(t[i].state, "missing");
	}
	if (unseen && !o->traces_dir && o->store && store_is_postgres(o->store))
		printf("note: the file%s of %zu trace%s %s not looked for; --traces-dir names their "
		       "folder\n", plural(unseen), unseen, plural(unseen),
		       unseen == 1 ? "was" : "were");
	if (left_out)
		printf("note: the files of %zu trace%s are not in this store, because backups leave "
		       "them out. The folder of traces of the store that was backed up, copied to "
		       "the place of this store's, brings them back\n", left_out,
		       plural(left_out));
	return 0;
}

/* Prints the maximum and the current number of columns that schemas do not list. */
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
	printf("%zu column%s freed, %zu value%s of %zu run%s added%s\n", r.n_columns,
	       plural(r.n_columns), r.n_values, plural(r.n_values), r.n_runs, plural(r.n_runs),
	       r.is_table_new ? ", benchmark_runs rebuilt" : "");
	if (r.n_left)
		printf("note: there is still no room for %zu value%s, which %s in %s alone\n", r.n_left,
		       plural(r.n_left), r.n_left == 1 ? "is" : "are",
		       r.n_left == 1 ? "its document" : "their documents");
	return 0;
}

/* What helps where something is wrong with this store. */
static const char *remedy(const struct keep_opts *o)
{
	return o->store && store_is_postgres(o->store) ? STORE_REMEDY_BACKUP : STORE_REMEDY;
}

/* Also where SQLite only says that a table is missing. */
static int add_remedy(const struct keep_opts *o, struct err *e)
{
	return strstr(e->text, STORE_REMEDY) ? -1 : err_add(e, ". %s", remedy(o));
}

/* Prints findings on stdout; 1 when there are some. */
int cmd_store_check(struct cli *c, void *opts)
{
	const struct keep_opts *o = opts;
	struct err *e = &c->err;
	struct store *store;
	struct str *finding;
	size_t n = 0, runs;
	int rc;

	if ((o->is_repairing && repair(o, e) < 0) || keep_open(o, true, true, &store, e) < 0)
		return e->code == ERR_RUN ? add_remedy(o, e) : -1;
	runs = store_runs(store);
	printf("%zu run%s in this store\n", runs, plural(runs));
	print_columns(store);
	rc = store_check(store, &c->arena, &finding, &n, e);
	if (rc == 0)
		rc = note_left_out(o, store, &c->arena, e);
	store_close(store);
	if (rc < 0)
		return e->code == ERR_RUN ? add_remedy(o, e) : -1;
	for (size_t i = 0; i < n; i++)
		printf("%.*s\n", (int)finding[i].n, finding[i].p);
	if (n)
		printf("note: %s\n", remedy(o));
	if (n == 0)
		printf("nothing is wrong\n");
	return n > 0;
}

static const struct opt archive_rows[] = {
	WHICH,
	R(is_undone, "undo", .help = "show the runs again"),
	STORE,
};
const struct opt_set cmd_store_archive_set = SET("store archive", archive_rows,
	.summary = "Hides runs from every view but \"archived\" and \"all\"; nothing is lost.",
	.usage = "[RUN...] [options]",
	.epilog = "Examples:\n"
		  "  profllm store archive exp_20250131_120000_c0ffee\n"
		  "  profllm store archive --filter '{\"column\": \"timestamp\", \"range\": "
		  "{\"max\": \"2025-01-01\"}}'");

static const struct opt remove_rows[] = {
	WHICH,
	R(is_sure, "yes", .help = "remove the runs; without it only their number is printed"),
	STORE,
	TRACES,
};
const struct opt_set cmd_store_remove_set = SET("store remove", remove_rows,
	.summary = "Removes runs permanently, with their documents, arrays and notes.",
	.usage = "[RUN...] [options]",
	.epilog = "Examples:\n"
		  "  profllm store remove exp_20250131_120000_c0ffee --yes");

static const struct opt retain_rows[] = {
	R(archive_days, "archive-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "archive runs that are older"),
	R(remove_days, "remove-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove archived runs that are older"),
	R(drop_days, "drop-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "drop partitions whose runs were all received earlier than DAYS days ago, archived or "
		  "not (PostgreSQL)"),
	R(trace_days, "trace-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove files of traces that are older"),
	R(trace_gb, "trace-gb", .arg = "GB", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove the oldest files of traces until the rest takes at most this"),
	STORE,
	TRACES,
};
const struct opt_set cmd_store_retain_set = SET("store retain", retain_rows,
	.summary = "Applies limits of age and disk space; run it once a day.",
	.epilog = "The age of a run counts from its date, or from when it was received if its date is unknown or "
		  "before 2000.\n\n"
		  "Examples:\n"
		  "  profllm store retain --archive-days 365 --trace-days 90 --trace-gb 50");

/* ---- which runs ---- */

/* The named runs, or those of the filter; having neither is a mistake. */
static int read_which(const struct keep_opts *o, struct store *s, struct arena *a,
		      struct filter **out, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *v;
	int rc;

	if ((o->runs.n == 0) == (o->filter.text == NULL))
		return err_set(e, ERR_USAGE, "expected either run_ids or --filter");
	if (o->filter.text) {
		buf_add_text(&text, o->filter.text);
	} else {
		json_begin_object(&w);
		json_member_text(&w, "column", "run_id");
		json_member_array(&w, "in");
		for (size_t i = 0; i < o->runs.n; i++)
			json_put_text(&w, o->runs.v[i]);
		json_end_array(&w);
		json_end_object(&w);
	}
	rc = json_parse(a, arena_str(a, buf_str(&text)), &v, e);
	buf_release(&text);
	if (rc == 0)
		rc = filter_read(v, NULL, a, out, e);
	if (rc == 0) {
		struct index_view *view = index_view(store_index(s));

		rc = known_check_filter(view, *out, "", a, e);
		index_view_release(view);
	}
	return rc < 0 ? err_wrap(e, "--filter") : 0;
}

/* Appends the run_ids that the store does not have. -1: one of them cannot be a run_id. */
static int find_unknown(const struct keep_opts *o, struct store *s, struct buf *out, struct err *e)
{
	for (size_t i = 0; i < o->runs.n; i++) {
		const char *id = o->runs.v[i];

		if (!*id || strlen(id) > STORE_RUN_ID_BYTES_MAX)
			return err_set(e, ERR_USAGE, "'%.40s' is not a run_id: expected 1 to %d bytes",
				       id, STORE_RUN_ID_BYTES_MAX);
		if (!store_find(s, str_of(id)))
			buf_printf(out, "%s%s", out->len ? ", " : "", id);
	}
	return 0;
}

/* Those that are known have been changed: a command that was interrupted can be repeated. */
static int refuse_unknown(struct buf *unknown, struct err *e)
{
	int rc = unknown->len ? err_set(e, ERR_RUN, "not in the store: %.400s; `profllm export --columns "
					"run_id` lists the run_ids", unknown->data) : 0;

	buf_release(unknown);
	return rc;
}

static int count(struct store *s, const struct filter *f, struct arena *a, size_t *n, struct err *e)
{
	struct index_view *view = index_view(store_index(s));
	const struct query q = { .filter = f,
				 .shown = INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED };
	struct answer answer;
	int rc = index_query(view, &q, a, &answer, e);

	*n = rc == 0 ? answer.total : 0;
	index_view_release(view);
	return rc;
}

/* ---- the verbs ---- */

typedef int store_work(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e);

static int on_store(struct cli *c, const struct keep_opts *o, store_work *work)
{
	struct store *store;
	int rc;

	if (keep_open(o, false, true, &store, &c->err) < 0)
		return -1;
	rc = work(o, store, &c->arena, &c->err);
	store_close(store);
	return rc;
}

static int archive(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	struct buf unknown = { 0 };
	struct filter *f;
	size_t n;

	if (read_which(o, s, a, &f, e) < 0 || find_unknown(o, s, &unknown, e) < 0 ||
	    store_archive(s, f, !o->is_undone, &n, e) < 0) {
		buf_release(&unknown);
		return -1;
	}
	printf("%zu run%s %s\n", n, plural(n),
	       o->is_undone ? "taken out of the archive" : "archived");
	return refuse_unknown(&unknown, e);
}

static int remove_runs(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	struct buf unknown = { 0 };
	struct filter *f;
	size_t n = 0;

	if (read_which(o, s, a, &f, e) < 0 || find_unknown(o, s, &unknown, e) < 0 ||
	    (o->is_sure ? store_remove(s, f, &n, e) : count(s, f, a, &n, e)) < 0) {
		buf_release(&unknown);
		return -1;
	}
	if (o->is_sure)
		printf("%zu run%s removed\n", n, plural(n));
	else if (n)
		printf("%zu run%s would be removed permanently; add --yes to remove %s\n", n,
		       plural(n), n == 1 ? "it" : "them");
	else if (!unknown.len)
		puts("no run would be removed");
	return refuse_unknown(&unknown, e);
}

static int retain(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	const struct retention r = {
		.archive_days = o->archive_days.v, .remove_days = o->remove_days.v,
		.drop_days = o->drop_days.v, .trace_days = o->trace_days.v,
		.trace_bytes = (int64_t)(o->trace_gb.v * 1e9),
	};
	struct buf told = { 0 };
	int rc;

	(void)a;
	if (!o->archive_days.is_set && !o->remove_days.is_set && !o->drop_days.is_set &&
	    !o->trace_days.is_set && !o->trace_gb.is_set)
		return err_set(e, ERR_USAGE, "expected a limit: --archive-days, --remove-days, "
			       "--drop-days, --trace-days or --trace-gb");
	rc = store_retain(s, &r, &told, e);
	if (rc == 0 && told.len && told.data[told.len - 1] != '\n')
		buf_add_char(&told, '\n');
	if (rc == 0)
		cli_out_buf(&told);
	return rc;
}

int cmd_store_archive(struct cli *c, void *opts)
{
	return on_store(c, opts, archive);
}

int cmd_store_remove(struct cli *c, void *opts)
{
	return on_store(c, opts, remove_runs);
}

int cmd_store_retain(struct cli *c, void *opts)
{
	return on_store(c, opts, retain);
}
