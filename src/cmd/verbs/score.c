/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.c - `profllm bench score`: the report of a recorded run, again.
 *
 * Without options, the same report and the same result as when the run ended; options choose other
 * percentiles, blocks or limits. Several files are hosts of one run: their records are merged and
 * their shares of the load added up.
 */
#include <stdio.h>

#include "client/record/file.h"
#include "cmd/console/cli.h"
#include "cmd/console/plots.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/score_verb.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "out/page/plot.h"
#include "out/report/report.h"

#define EXIT_STRICT 3
#define FILES_MAX 4096
#define APART_NS_MAX 1000000000 /* hosts of one run leave no longer time without load */

struct score_opts {
	struct opt_list files;
	struct score_choice choice;
};

#define ROW(member, name, ...) OPT(struct score_opts, choice.member, name, __VA_ARGS__)

static const struct opt rows[] = {
	OPT(struct score_opts, files, "FILE", .flags = OPT_POSITIONAL | OPT_MANY,
	    .help = "record files; several are the hosts of one run"),
	SCORE_ROWS(ROW, "as recorded", "as recorded", "as recorded")
};
static const struct score_opts defaults = { .choice = { .report = "short" } };
const char *const score_reports[] = { "short", "full", "json", NULL };

const struct opt_set cmd_bench_score_set = {
	.command = "bench score",
	.summary = "Reports a recorded run again, with other percentiles or limits if given.",
	.usage = "FILE... [options]",
	.epilog = "Examples:\n"
		  "  profllm bench score run.rec\n"
		  "  profllm bench score run.rec --metric-percentiles 50,90,99.9 --goodput ttft:200\n"
		  "  profllm bench score host0.rec host1.rec --record all.rec --save-result",
	OPT_SET_OF(rows, defaults),
};

struct loaded {
	struct record record;
	struct record_info info;
	struct report_meta meta;
	struct buf merged_meta; /* of several files; the record borrows it */
};

/* ---- options over what was recorded ---- */

static int choose_blocks(const char *list, struct metrics_opts *o, struct err *e)
{
	struct str rest = str_of(list);

	o->selected = 0;
	do {
		struct str name = str_cut(&rest, ',');
		enum metric_block block = metric_block_find(str_trim(name));

		if (block == BLOCK_COUNT)
			return err_set(e, ERR_USAGE, "--percentile-metrics: unknown metric '%.*s'",
				       (int)name.n, name.p);
		o->selected |= BLOCK_BIT(block);
	} while (rest.n);
	return 0;
}

static int choose_percentiles(const char *list, struct metrics_opts *o, struct arena *a,
			      struct err *e)
{
	struct str rest = str_of(list);
	double *percentile = arena_alloc(a, (rest.n + 1) * sizeof(*percentile));

	o->percentile = percentile;
	o->n_percentiles = 0;
	do {
		struct str text = str_trim(str_cut(&rest, ','));
		double p;

		if (!str_to_f64(text, &p) || !(p >= 0 && p <= 100))
			return err_set(e, ERR_USAGE, "--metric-percentiles: '%.*s' is not a number from 0 "
				       "to 100", (int)text.n, text.p);
		percentile[o->n_percentiles++] = p;
	} while (rest.n);
	return 0;
}

static int choose_goodput(const struct opt_list *list, struct metrics_opts *o, struct err *e)
{
	o->n_goodput = 0;
	o->session_limit_ms = 0;
	for (size_t i = 0; i < list->n; i++) {
		struct str value = str_of(list->v[i]), name = str_cut(&value, ':');
		double ms;

		if (!str_to_f64(value, &ms) || !(ms >= 0) || !metrics_opts_add_goodput(o, name, ms))
			return err_set(e, ERR_USAGE, "--goodput: '%s' is not ttft, tpot, e2el or "
				       "session_duration, a colon and a number of milliseconds",
				       list->v[i]);
	}
	return 0;
}

int score_choose(const struct score_choice *o, struct report_meta *m, struct arena *a,
		 struct err *e)
{
	if (o->percentile_metrics && choose_blocks(o->percentile_metrics, &m->opts, e) < 0)
		return -1;
	if (o->metric_percentiles &&
	    choose_percentiles(o->metric_percentiles, &m->opts, a, e) < 0)
		return -1;
	if (o->goodput.is_set && choose_goodput(&o->goodput, &m->opts, e) < 0)
		return -1;
	m->facts.is_detailed |= o->save_detailed;
	return 0;
}

/* ---- loading ---- */

static int load_one(const char *path, struct loaded *l, struct arena *a, struct err *e)
{
	char text[512];

	if (record_file_load(&l->record, &l->info, path, e) < 0)
		return -1;
	if (!l->record.meta)
		return err_set(e, ERR_PARSE, "%s has no metadata: the program ended before the "
			"load began", path);
	if (report_meta_read(&l->meta, str_of(l->record.meta), a, e) < 0)
		return err_wrap(e, "%s", path);
	if (l->info.is_complete)
		return 0;
	l->meta.trust.is_broken_off = true;
	report_date(l->meta.facts.date, l->record.stop_ns);
	snprintf(text, sizeof(text), "%s is incomplete: it holds %u of %u requests", path,
		 l->record.n_rows, l->record.n_rows + l->info.n_missing);
	cli_warn(text);
	return 0;
}

/* Adds up the shares of the load; of the drivers' observations the worst counts. */
static void add_meta(struct report_meta *sum, const struct report_meta *one)
{
	int64_t step = one->trust.clock_step_ns, old = sum->trust.clock_step_ns;

	sum->facts.num_prompts += one->facts.num_prompts;
	sum->facts.request_rate += one->facts.request_rate;
	sum->facts.user_rate += one->facts.user_rate;
	sum->facts.users += one->facts.users;
	sum->facts.max_concurrency += one->facts.max_concurrency;
	sum->facts.threads += one->facts.threads;
	sum->facts.segments.events += one->facts.segments.events;
	sum->facts.segments.dropped += one->facts.segments.dropped;
	if (!sum->facts.segments.unused)
		sum->facts.segments.unused = one->facts.segments.unused;
	sum->opts.max_concurrency += one->opts.max_concurrency;
	sum->opts.max_sessions += one->opts.max_sessions;
	sum->opts.n_hosts += one->opts.n_hosts ? one->opts.n_hosts : 1;
	if (one->trust.cpu_share_max > sum->trust.cpu_share_max)
		sum->trust.cpu_share_max = one->trust.cpu_share_max;
	if (one->trust.wait_share_max > sum->trust.wait_share_max)
		sum->trust.wait_share_max = one->trust.wait_share_max;
	if (one->trust.throttled_share > sum->trust.throttled_share)
		sum->trust.throttled_share = one->trust.throttled_share;
	if (one->trust.resolve_ns > sum->trust.resolve_ns)
		sum->trust.resolve_ns = one->trust.resolve_ns;
	sum->trust.connections_most += one->trust.connections_most;
	sum->trust.ports += one->trust.ports;
	sum->trust.descriptors += one->trust.descriptors;
	sum->trust.no_ports += one->trust.no_ports;
	sum->trust.no_descriptors += one->trust.no_descriptors;
	sum->trust.resent += one->trust.resent;
	sum->trust.out_of_order += one->trust.out_of_order;
	sum->trust.reads += one->trust.reads;
	sum->trust.reads_without_stamp += one->trust.reads_without_stamp;
	if ((step < 0 ? -step : step) > (old < 0 ? -old : old))
		sum->trust.clock_step_ns = step;
	if (!sum->trust.no_tap)
		sum->trust.no_tap = one->trust.no_tap;
	sum->trust.is_kernel_stamped |= one->trust.is_kernel_stamped;
	sum->trust.is_interrupted |= one->trust.is_interrupted;
	sum->trust.is_broken_off |= one->trust.is_broken_off;
}

static void warn_lines(struct buf *lines)
{
	struct str rest = buf_str(lines);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		char *text = mem_copy(line.p, line.n);

		cli_warn(text);
		free(text);
	}
	buf_release(lines);
}

/* Whether the files are parts of one plan, sent by mpirun's processes (bench/serve/dealt.c). */
static bool are_dealt(const struct loaded *one, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (one[i].meta.facts.processes < 2)
			return false;
	return true;
}

/* Joins the parts; each has the options of the whole run. */
static int rejoin(struct loaded *one, size_t n, struct loaded *out, struct err *e)
{
	struct report_meta *meta = &out->meta;

	*meta = one[0].meta;
	for (size_t i = 1; i < n; i++)
		add_meta(meta, &one[i].meta);
	meta->facts.num_prompts = one[0].meta.facts.num_prompts;
	meta->facts.request_rate = one[0].meta.facts.request_rate;
	meta->facts.user_rate = one[0].meta.facts.user_rate;
	meta->facts.users = one[0].meta.facts.users;
	meta->facts.max_concurrency = one[0].meta.facts.max_concurrency;
	meta->opts.max_concurrency = one[0].meta.opts.max_concurrency;
	meta->opts.max_sessions = one[0].meta.opts.max_sessions;
	meta->opts.n_hosts = one[0].meta.opts.n_hosts;
	record_empty(&out->record, one[0].record.n_rows + one[0].info.n_missing,
		     one[0].record.start_ns);
	out->info.is_complete = true;
	for (size_t i = 0; i < n; i++)
		if (record_rejoin(&out->record, &out->info, &one[i].record, &one[i].info, e) < 0)
			return -1;
	report_meta_write(meta, &out->merged_meta);
	out->record.meta = out->merged_meta.data;
	return 0;
}

static bool is_same_process(const struct record_info *x, const struct record_info *y)
{
	for (uint32_t i = 0; i < x->n_hosts; i++)
		for (uint32_t k = 0; k < y->n_hosts; k++)
			if (x->host[i].start_real_ns == y->host[k].start_real_ns &&
			    x->host[i].start_mono_ns == y->host[k].start_mono_ns &&
			    strcmp(x->host[i].name, y->host[k].name) == 0)
				return true;
	return false;
}

/* If no record has load shortly before record i begins: the last one to end before; else n. */
static size_t ended_before(const struct loaded *one, size_t n, size_t i)
{
	int64_t begins = one[i].record.start_ns;
	size_t last = n;

	for (size_t k = 0; k < n; k++) {
		const struct record *r = &one[k].record;

		if (!r->start_ns || r->start_ns > begins || k == i)
			continue;
		if (!r->stop_ns || r->stop_ns >= begins - APART_NS_MAX)
			return n;
		if (last == n || r->stop_ns > one[last].record.stop_ns)
			last = k;
	}
	return last;
}

/* Rates of records that are not parts of one run would be wrong. */
static int check_one_run(const struct opt_list *files, const struct loaded *one, struct err *e)
{
	const char *first = one[0].meta.facts.model_id;

	for (size_t i = 1; i < files->n; i++) {
		const char *model = one[i].meta.facts.model_id;

		if (first && model && strcmp(first, model) != 0)
			return err_set(e, ERR_USAGE, "%s measured the model %s and %s the model %s, so they "
				       "are not hosts of one run; score each by itself", files->v[0],
				       first, files->v[i], model);
		for (size_t k = 0; k < i; k++)
			if (is_same_process(&one[k].info, &one[i].info))
				return err_set(e, ERR_USAGE, "%s and %s hold the same requests, which would "
					       "count twice; give each record once", files->v[k],
					       files->v[i]);
	}
	for (size_t i = 0; i < files->n; i++) {
		size_t before = ended_before(one, files->n, i);

		if (before < files->n)
			return err_set(e, ERR_USAGE, "%s ended %.3g s before %s began, so they are not hosts "
				       "of one run, or their clocks disagree; score each by itself, "
				       "and compare the results with bench compare", files->v[before],
				       (double)(one[i].record.start_ns -
						one[before].record.stop_ns) / 1e9, files->v[i]);
	}
	return 0;
}

static int merge(struct loaded *one, size_t n, struct loaded *out, struct err *e)
{
	struct record *record = mem_array(n, sizeof(*record));
	struct record_info *info = mem_array(n, sizeof(*info));
	struct buf warnings = { 0 };
	int rc;

	out->meta = one[0].meta;
	out->meta.opts.n_hosts = one[0].meta.opts.n_hosts ? one[0].meta.opts.n_hosts : 1;
	for (size_t i = 0; i < n; i++) {
		record[i] = one[i].record;
		info[i] = one[i].info;
		one[i].record = (struct record){ 0 };
		one[i].info = (struct record_info){ 0 };
		if (i)
			add_meta(&out->meta, &one[i].meta);
	}
	rc = record_merge(&out->record, &out->info, record, info, n, &warnings, e);
	for (size_t i = 0; i < n; i++) {
		record_release(&record[i]);
		record_info_release(&info[i]);
	}
	free(record);
	free(info);
	warn_lines(&warnings);
	if (rc < 0)
		return -1;
	report_meta_write(&out->meta, &out->merged_meta);
	out->record.meta = out->merged_meta.data;
	return 0;
}

static void release_loaded(struct loaded *l)
{
	record_release(&l->record);
	record_info_release(&l->info);
	buf_release(&l->merged_meta);
}

static int load(const struct opt_list *files, struct loaded *out, struct arena *a, struct err *e)
{
	struct loaded *one;
	int rc = 0;

	if (files->n > FILES_MAX)
		return err_set(e, ERR_LIMIT, "%zu files are more than the limit of %d", files->n,
			       FILES_MAX);
	if (files->n == 1)
		return load_one(files->v[0], out, a, e);
	one = mem_array(files->n, sizeof(*one));
	for (size_t i = 0; rc == 0 && i < files->n; i++)
		rc = load_one(files->v[i], &one[i], a, e);
	if (rc == 0 && are_dealt(one, files->n))
		rc = rejoin(one, files->n, out, e);
	else if (rc == 0 && (rc = check_one_run(files, one, e)) == 0)
		rc = merge(one, files->n, out, e);
	for (size_t i = 0; i < files->n; i++)
		release_loaded(&one[i]);
	free(one);
	return rc;
}

/* ---- output ---- */

static int save(const struct score_choice *o, const struct report *r, const char *path,
		struct err *e)
{
	struct buf json = { 0 };
	int rc;

	if (!o->save_result && !o->append_result)
		return 0;
	rc = report_result_json(r, &json, e);
	if (rc == 0)
		rc = report_save(path, buf_str(&json), o->append_result, e);
	buf_release(&json);
	return rc;
}

static bool is_drawn(const struct score_choice *o)
{
	return o->plot_timeline || o->plot_dataset_stats || o->plot_turns;
}

/* Checked like the files of bench serve, although no measurement could be lost here. */
static int plot(const struct score_choice *o, const struct report *r, const char *path,
		struct err *e)
{
	struct plots plots = { .is_timeline = o->plot_timeline,
			       .is_dataset_stats = o->plot_dataset_stats,
			       .is_turns = o->plot_turns };
	int rc = 0;

	if (!is_drawn(o))
		return 0;
	if (o->plot_timeline && o->timeline_itl_thresholds &&
	    plot_thresholds(o->timeline_itl_thresholds, plots.timeline_ms, e) < 0)
		rc = -1;
	if (rc == 0 && o->result_dir && *o->result_dir)
		rc = file_mkdirs(o->result_dir, e);
	if (rc == 0)
		rc = plots_check(&plots, path, e);
	if (rc == 0)
		plots_draw(&plots, r, path);
	return rc;
}

static int write_files(const struct score_choice *o, const struct report *r, struct err *e)
{
	struct target t = { 0 };
	int rc = 0;

	/*
	 * If only plots are asked for, they are named after the result that the run itself saved.
	 */
	if (o->save_result || o->append_result || is_drawn(o))
		rc = target_name(&t, r->facts, o->result_dir, o->result_filename,
				 o->append_result || !o->save_result, e);
	if (rc == 0 && (plot(o, r, t.path, e) < 0 || save(o, r, t.path, e) < 0))
		rc = -1;
	if (rc == 0)
		target_written(&t);
	target_release(&t);
	return rc;
}

int score_show(const struct score_choice *o, struct record *record, const struct record_info *info,
	       struct report_meta *meta, struct arena *a, struct err *e)
{
	struct metrics m;
	struct trust t;
	struct report r = { .facts = &meta->facts, .record = record, .metrics = &m, .trust = &t };
	struct buf text = { 0 };
	int rc = -1;

	if (score_choose(o, meta, a, e) < 0)
		return -1;
	metrics_score(&m, record, &meta->opts);
	trust_judge(&t, &m, &meta->trust);
	if (strcmp(o->report, "json") != 0)
		report_terminal(&r, strcmp(o->report, "full") == 0 ? REPORT_FULL : REPORT_SHORT,
				&text);
	else if (report_result_json(&r, &text, e) == 0)
		buf_add_char(&text, '\n');
	cli_out_buf(&text);
	if (!e->code && write_files(o, &r, e) == 0 &&
	    (!o->record || record_file_save(record, info, o->record, e) == 0))
		rc = m.completed == 0 ? 1 : o->strict && t.verdict != TRUST_VALID ? EXIT_STRICT : 0;
	metrics_release(&m);
	return rc;
}

int cmd_bench_score(struct cli *cli, void *values)
{
	struct report_meta unread = { 0 };
	struct score_opts *o = values;
	struct loaded l = { 0 };
	int rc = -1;

	/* A bad option is reported before a large file is read. */
	if (score_choose(&o->choice, &unread, &cli->arena, &cli->err) == 0 &&
	    load(&o->files, &l, &cli->arena, &cli->err) == 0)
		rc = score_show(&o->choice, &l.record, &l.info, &l.meta, &cli->arena, &cli->err);
	release_loaded(&l);
	return rc;
}
