/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd/store_keep.c - `profllm store archive|remove|retain`: what becomes of runs that nobody needs
 * every day.
 */
#include "cmd/cmd.h"
#include "cmd/store.h"
#include "index/filter.h"
#include "index/index.h"
#include "json/write.h"
#include "store/known.h"

#define R(member, flag, ...) OPT(struct keep_opts, member, flag, __VA_ARGS__)
#define STORE \
	R(store, "store", .arg = "URL", \
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder")
#define WHICH \
	R(runs, "RUN", .flags = OPT_POSITIONAL, .help = "run_ids"), \
	R(filter, "filter", .arg = "JSON", .help = "or all runs that it holds for, as in export")
#define SET(verb, rows, ...) { .command = "store " verb, .row = rows, \
	.n = sizeof(rows) / sizeof(*rows), .defaults = &defaults, .bytes = sizeof(defaults), \
	__VA_ARGS__ }

static const struct keep_opts defaults = { 0 };

static const struct opt archive_rows[] = {
	WHICH,
	R(is_undone, "undo", .help = "take them out of the archive"),
	STORE,
};
static const struct opt_set archive_set = SET("archive", archive_rows,
	.summary = "Hides runs from every view but \"archived\" and \"all\"; nothing is lost.",
	.usage = "[RUN...] [options]",
	.epilog = "Examples:\n"
		  "  profllm store archive exp_20250131_120000_c0ffee\n"
		  "  profllm store archive --filter '{\"column\": \"timestamp\", \"range\": "
		  "{\"max\": \"2025-01-01\"}}'");

static const struct opt remove_rows[] = {
	WHICH,
	R(is_sure, "yes", .help = "do it; without it only their number is said"),
	STORE,
	KEEP_TRACES,
};
static const struct opt_set remove_set = SET("remove", remove_rows,
	.summary = "Removes runs for good, with documents, arrays and what was said of them.",
	.usage = "[RUN...] [options]",
	.epilog = "Examples:\n"
		  "  profllm store remove exp_20250131_120000_c0ffee --yes");

static const struct opt retain_rows[] = {
	R(archive_days, "archive-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "archive runs that are older"),
	R(remove_days, "remove-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove archived runs that are older"),
	R(trace_days, "trace-days", .arg = "DAYS", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove files of traces that are older"),
	R(trace_gb, "trace-gb", .arg = "GB", .min = 0, .max = 1e6, .flags = OPT_MIN_EXCLUSIVE,
	  .help = "remove the oldest files of traces until the rest takes at most this"),
	STORE,
	KEEP_TRACES,
};
static const struct opt_set retain_set = SET("retain", retain_rows,
	.summary = "Applies limits of age and room; to be called once a day.",
	.epilog = "Examples:\n"
		  "  profllm store retain --archive-days 365 --trace-days 90 --trace-gb 50");

const struct opt_set *cmd_store_archive_options(void)
{
	return &archive_set;
}

const struct opt_set *cmd_store_remove_options(void)
{
	return &remove_set;
}

const struct opt_set *cmd_store_retain_options(void)
{
	return &retain_set;
}

/* ---- which ---- */

/* The runs that are named, or those of the filter; neither is a mistake. */
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

static int on_store(const struct opt_set *set, int argc, char **argv,
		    int (*what)(const struct keep_opts *o, struct store *s, struct arena *a,
				struct err *e))
{
	struct keep_opts o;
	struct store *store;
	struct cli cli;
	int status = cli_begin(&cli, set, argc, argv, &o);

	if (status != CLI_CONTINUE)
		return status;
	if (keep_open(&o, false, true, &store, &cli.err) == 0) {
		what(&o, store, &cli.arena, &cli.err);
		store_close(store);
	}
	return cli_end(&cli);
}

static int archive(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	struct filter *f;
	size_t n;

	if (read_which(o, s, a, &f, e) < 0 || store_archive(s, f, !o->is_undone, &n, e) < 0)
		return -1;
	printf("%zu %s %s\n", n, n == 1 ? "run" : "runs",
	       o->is_undone ? "taken out of the archive" : "archived");
	return 0;
}

static int remove_runs(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	struct filter *f;
	size_t n;

	if (read_which(o, s, a, &f, e) < 0)
		return -1;
	if (!o->is_sure) {
		if (count(s, f, a, &n, e) < 0)
			return -1;
		printf("%zu %s would be removed for good; --yes does it\n", n,
		       n == 1 ? "run" : "runs");
		return 0;
	}
	if (store_remove(s, f, &n, e) < 0)
		return -1;
	printf("%zu %s removed\n", n, n == 1 ? "run" : "runs");
	return 0;
}

static int retain(const struct keep_opts *o, struct store *s, struct arena *a, struct err *e)
{
	const struct retention r = {
		.archive_days = o->archive_days.v, .remove_days = o->remove_days.v,
		.trace_days = o->trace_days.v, .trace_bytes = (int64_t)(o->trace_gb.v * 1e9),
	};
	struct buf told = { 0 };
	int rc;

	(void)a;
	if (!o->archive_days.is_set && !o->remove_days.is_set && !o->trace_days.is_set &&
	    !o->trace_gb.is_set)
		return err_set(e, ERR_USAGE, "expected a limit: --archive-days, --remove-days, "
			       "--trace-days or --trace-gb");
	rc = store_retain(s, &r, &told, e);
	if (rc == 0 && told.len && told.data[told.len - 1] != '\n')
		buf_add_char(&told, '\n');
	if (rc == 0)
		cli_out(buf_str(&told));
	buf_release(&told);
	return rc;
}

int cmd_store_archive(int argc, char **argv)
{
	return on_store(&archive_set, argc, argv, archive);
}

int cmd_store_remove(int argc, char **argv)
{
	return on_store(&remove_set, argc, argv, remove_runs);
}

int cmd_store_retain(int argc, char **argv)
{
	return on_store(&retain_set, argc, argv, retain);
}
