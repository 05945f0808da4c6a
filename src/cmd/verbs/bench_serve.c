/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_serve.c - `profllm bench serve`: one run, several for --sweep-max-concurrency or
 * --sweep-request-rate, or a search for the largest load; also called by other verbs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "bench/sweep/find.h"
#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/serve_once.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "host/ranks/ranks.h"
#include "out/compare/compare.h"
#include "out/compare/points.h"
#include "out/report/report.h"

#define EXIT_INTERRUPTED 130

struct find_talk {
	struct progress progress;
	bool has_cost;      /* the forecast was printed */
};

static bool serve_find_is_wanted(const struct serve_opts *o)
{
	return o->find_max_rate || o->find_max_concurrency;
}

static void on_find_warn(void *self, const char *text)
{
	progress_clear(&((struct find_talk *)self)->progress);
	cli_warn(text);
}

static void on_find_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	progress_show(&((struct find_talk *)self)->progress, stage, done, total, load);
}

static void on_ended(void *self, const struct find *f)
{
	struct find_talk *t = self;
	struct buf out = { 0 };

	progress_clear(&t->progress);
	find_tell_step(f, &out);
	if (out.len)
		cli_line(out.data);
	buf_reset(&out);
	if (!t->has_cost)
		find_tell_cost(f, &out);
	if (out.len) {
		cli_line(out.data);
		t->has_cost = true;
	}
	fflush(stdout);
	buf_release(&out);
}

/* ---- files ---- */

/* "capacity-MODEL-DATE" in the folder of results, unless the user names it. */
static char *path_of(const struct serve_opts *o, const struct find *f)
{
	struct report_facts none = { .backend = o->backend };
	char date[REPORT_DATE_BYTES], *model = mem_text(f->model ? f->model : "model"), *path;
	struct buf name = { 0 };

	for (char *c = model; *c; c++)
		if (*c == '/')
			*c = '-';
	buf_printf(&name, "capacity-%s-%s.json", model, report_date(date, clock_real_ns()));
	path = report_path(&none, o->result_dir,
			   o->result_filename ? o->result_filename : name.data);
	buf_release(&name);
	free(model);
	return path;
}

static void put_document(const struct serve_opts *o, const struct find *f, struct buf *out)
{
	struct json_writer w = json_writer(out);
	char date[REPORT_DATE_BYTES];

	w.indent = 2;
	json_begin_object(&w);
	json_key(&w, "command"), json_put_text(&w, o->find_max_rate ? "bench serve --find-max-rate"
						   : "bench serve --find-max-concurrency");
	json_key(&w, "date"), json_put_text(&w, report_date(date, clock_real_ns()));
	json_key(&w, "model_id"), json_put_text(&w, f->model);
	json_key(&w, "seed"), json_put_int(&w, f->seed);
	json_key(&w, "salt_key"), json_put_text(&w, *f->salt_key ? f->salt_key : NULL);
	json_member_object(&w, "capacity");
	find_put(f, &w);
	json_end_object(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

static int save_found(const struct serve_opts *o, const struct find *f, struct err *e)
{
	struct buf text = { 0 };
	struct err undrawn = { 0 };
	char *path = NULL;
	size_t stem;
	int rc = 0;

	put_document(o, f, &text);
	if (o->output_json)
		rc = file_write_atomic(o->output_json, buf_str(&text), e);
	if (rc == 0 && o->save_result) {
		path = path_of(o, f);
		rc = file_write_atomic(path, buf_str(&text), e);
	}
	if (rc == 0 && path) {
		stem = strlen(path);
		if (stem > 5 && strcmp(path + stem - 5, ".json") == 0)
			path[stem - 5] = 0;
		if (find_has_answer(f) && find_draw(f, path, &undrawn) < 0)
			cli_warn(undrawn.text);
	}
	free(path);
	buf_release(&text);
	return rc;
}

static int check_files(const struct serve_opts *o, struct err *e)
{
	if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	if (o->save_result && o->result_dir && *o->result_dir && file_mkdirs(o->result_dir, e) < 0)
		return err_wrap(e, "--result-dir");
	return 0;
}

static int read_options(struct cli *cli, const struct serve_opts *o, struct find_opts *out)
{
	struct err *e = &cli->err;
	bool is_rate = o->find_max_rate;
	const char *searched = is_rate ? "request-rate" : "max-concurrency";

	if (is_rate && o->find_max_concurrency)
		return err_set(e, ERR_USAGE, "--find-max-rate and --find-max-concurrency cannot be used "
			       "together: one of them is varied");
	if (!o->slo)
		return err_set(e, ERR_USAGE, "--find-max-%s needs --slo, the limits to keep, such as "
			       "--slo 'p99_ttft_ms<200,p99_tpot_ms<30'", is_rate ? "rate" : "concurrency");
	if (opt_given(&serve_opt_set, &cli->result, searched))
		return err_set(e, ERR_USAGE, "--%s is what --find-max-%s looks for; remove it", searched,
			       is_rate ? "rate" : "concurrency");
	if (!is_rate && opt_given(&serve_opt_set, &cli->result, "request-rate") &&
	    !isinf(o->request_rate))
		return err_set(e, ERR_USAGE, "--request-rate %g limits the load that "
			       "--find-max-concurrency looks for; remove it", o->request_rate);
	out->load = is_rate ? CAPACITY_RATE : CAPACITY_CONCURRENCY;
	out->precision = o->precision / 100;
	out->budget_s = o->budget;
	out->level_s = o->level_seconds;
	return slo_parse("--slo", o->slo, &cli->arena, &out->slo, e);
}

/* The options are valid, and the first request is about to be sent. */
static void on_begun(void *self, const struct find *f)
{
	struct buf out = { 0 };

	(void)self;
	if (f->step.ask != CAPACITY_PROBE)
		return;
	find_tell_begin(f->opts, &out);
	cli_line(out.data);
	fflush(stdout);
	buf_release(&out);
}

static int search_load(struct cli *cli, const struct serve_opts *o, struct find_opts *find)
{
	struct find_talk t = { .has_cost = false };
	struct find_hooks hooks = { .self = &t, .warn = on_find_warn, .begun = on_begun,
				    .ended = on_ended, .progress = on_find_progress,
				    .cancel = cli_is_interrupted() };
	struct buf out = { 0 };
	struct err unsaved = { 0 };
	struct find f;
	int rc, status;

	progress_init(&t.progress, serve_progress_of(o));
	cli_catch_signals();
	rc = find_run(find, &hooks, &f, &cli->err);
	progress_clear(&t.progress);
	if (rc == 0 || find_has_answer(&f)) {
		find_tell_answer(&f, &out);
		if (cli_answer(buf_str(&out), o->quiet, &unsaved) < 0 && !cli->err.code)
			cli->err = unsaved;
		if ((o->save_result || o->output_json) && save_found(o, &f, &unsaved) < 0 &&
		    !cli->err.code)
			cli->err = unsaved;
	}
	status = f.is_interrupted ? EXIT_INTERRUPTED : find_has_answer(&f) ? 0 : 1;
	buf_release(&out);
	find_release(&f);
	return rc < 0 ? -1 : status;
}

/*
 * cli and o come from cli_begin with serve_opt_set and these words. Ends cli, whose err stays;
 * returns the exit status: 0 with a capacity, 1 without one, 130 interrupted.
 */
static int serve_find(struct cli *cli, const struct serve_opts *o, int argc, char **argv)
{
	struct find_opts find = { .argc = argc, .argv = argv };
	int rc = -1, status;

	if (read_options(cli, o, &find) == 0 && check_files(o, &cli->err) == 0) {
		cli_flush_notes(cli);
		rc = o->dry_run ? 0 : search_load(cli, o, &find);
	}
	status = cli_end(cli);
	return rc > 0 && !status ? rc : status;
}

#define RULE_COLUMNS 70
#define COLUMNS_MAX 64 /* of the table: eleven, and two for each further percentile */
#define PERCENTILES_MAX ((COLUMNS_MAX - 11) / 2)

struct points {
	struct arena *arena;
	bool is_rate;
	double value[SWEEP_POINTS_MAX];
	struct buf result[SWEEP_POINTS_MAX]; /* JSON; empty: not measured */
	size_t n, done;
	struct buf warned;   /* warnings of the points so far */
	const char *percentile[PERCENTILES_MAX]; /* of --sweep-summary-percentiles */
	size_t percentiles;
	struct points_column column[COLUMNS_MAX];
	size_t columns;
};

static bool serve_points_are_wanted(const struct serve_opts *o)
{
	return o->sweep_max_concurrency || o->sweep_request_rate;
}

/* Of several processes that mpirun started, each would make all of it. */
static int check_alone(const struct serve_opts *o, struct err *e)
{
	const char *what = serve_find_is_wanted(o) ? "a search"
			   : serve_points_are_wanted(o) ? "a sweep" : NULL;

	if (!what || !ranks_are_started())
		return 0;
	return err_set(e, ERR_USAGE, "%s runs in one process; start it without mpirun", what);
}

/* "8", "0.5", "inf": a value in the form of options and names. */
static const char *value_text(const struct points *p, size_t i)
{
	char text[FMT_F64_BYTES];

	if (isinf(p->value[i]))
		return "inf";
	if (p->value[i] == floor(p->value[i]) && p->value[i] < 1e15)
		return arena_printf(p->arena, "%.0f", p->value[i]);
	return arena_printf(p->arena, "%s", fmt_f64(text, p->value[i]));
}

static int read_values(struct points *p, const struct serve_opts *o, struct err *e)
{
	const char *option = p->is_rate ? "sweep-request-rate" : "sweep-max-concurrency";
	struct str rest = str_of(p->is_rate ? o->sweep_request_rate : o->sweep_max_concurrency);

	do {
		struct str one = str_trim(str_cut(&rest, ','));
		double *v = &p->value[p->n];

		if (p->n == SWEEP_POINTS_MAX)
			return err_set(e, ERR_USAGE, "--%s: more than %d values", option,
				       SWEEP_POINTS_MAX);
		if (!str_to_f64(one, v) || !(*v > 0) ||
		    (!p->is_rate && (*v != floor(*v) || *v > UINT32_MAX)))
			return err_set(e, ERR_USAGE, "--%s: '%.*s' is not %s", option, (int)one.n,
				       one.p, p->is_rate ? "a rate above 0, or inf"
							 : "a whole number above 0");
		p->n++;
	} while (rest.n);
	return 0;
}

static bool has_percentile(const struct points *p, const char *name)
{
	for (size_t i = 0; i < p->percentiles; i++)
		if (strcmp(p->percentile[i], name) == 0)
			return true;
	return false;
}

static int read_percentiles(struct points *p, const char *list, struct err *e)
{
	struct str rest = str_of(list);

	while (rest.n) {
		struct str one = str_trim(str_cut(&rest, ','));
		char text[FMT_F64_BYTES];
		double v;

		if (!str_to_f64(one, &v) || !(v >= 0 && v <= 100))
			return err_set(e, ERR_USAGE, "--sweep-summary-percentiles: '%.*s' is not a "
				       "number from 0 to 100", (int)one.n, one.p);
		snprintf(text, sizeof(text), "%.10g", v);
		if (has_percentile(p, text))
			continue;
		if (p->percentiles == PERCENTILES_MAX)
			return err_set(e, ERR_USAGE, "--sweep-summary-percentiles: more than %d",
				       PERCENTILES_MAX);
		p->percentile[p->percentiles++] = arena_text(p->arena, str_of(text));
	}
	return 0;
}

/* ---- one point ---- */

/* "results/a.json" and "8" give "results/a-8.json". */
static const char *named(const struct points *p, const char *path, size_t i)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	size_t stem = dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path);

	return arena_printf(p->arena, "%.*s-%s%s%s", (int)stem, path,
			    p->is_rate ? "rate" : "concurrency", value_text(p, i), path + stem);
}

/* Appends it to a comma list, unless it is there. */
static void add_percentile(struct buf *list, const char *name)
{
	struct str rest = buf_str(list);
	double wanted = 0, v;

	str_to_f64(str_of(name), &wanted);
	while (rest.n)
		if (str_to_f64(str_trim(str_cut(&rest, ',')), &v) && v == wanted)
			return;
	buf_printf(list, ",%s", name);
}

struct giving { struct cli *cli; struct serve_opts *opts; int rc; };

static void give(struct giving *g, const char *option, const char *value)
{
	struct cli *c = g->cli;

	if (g->rc == 0)
		g->rc = opt_give(&serve_opt_set, g->opts, &c->result, option, str_of(value),
				 &c->arena, &c->err);
}

/* Sets this point's own options over the user's. */
static int give_point(const struct points *p, size_t i, struct cli *cli, struct serve_opts *o)
{
	struct giving g = { cli, o, 0 };
	struct buf list = { 0 };

	give(&g, p->is_rate ? "request-rate" : "max-concurrency", value_text(p, i));
	/* An earlier point's prompts may be in the cache. Salts of one key are the same. */
	if (serve_is_salt_free(o, &cli->result))
		give(&g, "prompt-salt", salt_kind_name(SALT_FRESH));
	else if (strchr(o->prompt_salt, ':'))
		give(&g, "prompt-salt", arena_printf(p->arena, "%s-%s", o->prompt_salt,
						     value_text(p, i)));
	if (!p->is_rate && o->sweep_num_prompts_factor.is_set)
		give(&g, "num-prompts", arena_printf(p->arena, "%.0f", p->value[i] *
						     (double)o->sweep_num_prompts_factor.v));
	buf_add_text(&list, o->metric_percentiles);
	add_percentile(&list, "90");
	add_percentile(&list, "99");
	for (size_t k = 0; k < p->percentiles; k++)
		add_percentile(&list, p->percentile[k]);
	give(&g, "metric-percentiles", arena_text(p->arena, buf_str(&list)));
	buf_release(&list);
	if (o->result_filename && !o->append_result)
		give(&g, "result-filename", named(p, o->result_filename, i));
	if (o->record_path)
		give(&g, "record", named(p, o->record_path, i));
	if (o->output_json)
		give(&g, "output-json", named(p, o->output_json, i));
	if (o->gate.junit)
		give(&g, "junit", named(p, o->gate.junit, i));
	if (o->gate.summary)
		give(&g, "summary", named(p, o->gate.summary, i));
	if (o->dump_workload && strcmp(o->dump_workload, "-") != 0)
		give(&g, "dump-workload", named(p, o->dump_workload, i));
	return g.rc;
}

static void add_rule(char fill, size_t columns, const char *text, struct buf *out)
{
	size_t n = strlen(text), left = columns > n ? (columns - n) / 2 : 0, start = out->len;

	for (size_t i = 0; i < left; i++)
		buf_add_char(out, fill);
	buf_add_text(out, text);
	while (out->len < start + columns)
		buf_add_char(out, fill);
	buf_add_char(out, '\n');
}

static void print_rule(char fill, size_t columns, const char *text)
{
	struct buf out = { 0 };

	add_rule(fill, columns, text, &out);
	cli_out_buf(&out);
}

static int measure(struct points *p, size_t i, int argc, char **argv)
{
	struct serve_outcome outcome = { .warned = &p->warned };
	struct serve_opts opts;
	struct cli cli;
	int status;

	print_rule('-', RULE_COLUMNS,
		   arena_printf(p->arena, " Run %zu/%zu: %s=%s ", i + 1, p->n,
				p->is_rate ? "request_rate" : "max_concurrency", value_text(p, i)));
	status = cli_begin(&cli, &serve_opt_set, argc, argv, &opts);
	if (status == CLI_CONTINUE && give_point(p, i, &cli, &opts) < 0)
		status = cli_end(&cli);
	else if (status == CLI_CONTINUE)
		status = serve_once(&cli, &opts, &outcome);
	putchar('\n');
	p->result[i] = outcome.result;
	p->done = i + 1;
	return status;
}

/* ---- the table ---- */

static void add_column(struct points *p, const char *title, const char *key)
{
	p->column[p->columns++] = (struct points_column){ title, key };
}

static void add_percentile_columns(struct points *p, const char *name)
{
	const char *key = strcmp(name, "50") == 0 ? "median" : arena_printf(p->arena, "p%s", name);

	add_column(p, arena_printf(p->arena, "P%s TTFT(ms)", name),
		   arena_printf(p->arena, "%s_ttft_ms", key));
	add_column(p, arena_printf(p->arena, "P%s TPOT(ms)", name),
		   arena_printf(p->arena, "%s_tpot_ms", key));
}

static int lower_percentile(const void *a, const void *b)
{
	double x = strtod(*(const char *const *)a, NULL), y = strtod(*(const char *const *)b, NULL);

	return (x > y) - (x < y);
}

static void make_columns(struct points *p)
{
	static const char *const always[] = { "50", "90", "99" };
	const char *name[PERCENTILES_MAX + sizeof(always) / sizeof(*always)];
	size_t n = p->percentiles;

	add_column(p, "Req/s", "request_throughput");
	add_column(p, "Tok/s", "output_throughput");
	add_column(p, "Total tok/s", "total_token_throughput");
	add_column(p, "SS req/s", "profllm.steady_state.request_throughput");
	add_column(p, "SS out tok/s", "profllm.steady_state.output_throughput");
	memcpy(name, p->percentile, p->percentiles * sizeof(*name));
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		if (!has_percentile(p, always[i]))
			name[n++] = always[i];
	qsort(name, n, sizeof(*name), lower_percentile);
	for (size_t i = 0; i < n; i++)
		add_percentile_columns(p, name[i]);
}

static size_t first_line(struct str text)
{
	return str_cut(&text, '\n').n;
}

static int print_table(struct points *p, bool is_quiet, struct err *e)
{
	struct points_line *line = arena_alloc(p->arena, (p->done + 1) * sizeof(*line));
	struct points_table table = {
		.name_title = p->is_rate ? "Request Rate" : "Max Concurrency",
		.column = p->column, .n_columns = p->columns, .line = line, .n = p->done,
	};
	struct buf rows = { 0 }, out = { 0 };
	struct points_best first;
	struct json_value *result;
	struct grid grid;
	struct err ignored;
	int rc;

	for (size_t i = 0; i < p->done; i++) {
		line[i] = (struct points_line){ .state = "failed" };
		line[i].name = arena_printf(p->arena, "%s=%s", p->is_rate ? "rate" : "concurrency",
					    value_text(p, i));
		if (p->result[i].len &&
		    json_parse(p->arena, buf_str(&p->result[i]), &result, &ignored) == 0)
			line[i].record = result;
	}
	points_grid(&table, 2, p->arena, &grid);
	grid_text(&grid, false, &rows);
	add_rule('=', first_line(buf_str(&rows)), " Sweep Summary ", &out);
	buf_add_str(&out, buf_str(&rows));
	add_rule('=', first_line(buf_str(&rows)), "", &out);
	first = points_best(&table, "request_throughput");
	points_say_best(&table, &first, "request_throughput", "throughput", "req/s", p->arena, &out);
	rc = cli_answer(buf_str(&out), is_quiet, e);
	buf_release(&rows);
	buf_release(&out);
	return rc;
}

static int check_points(const struct serve_opts *o, struct err *e)
{
	if (o->sweep_max_concurrency && o->sweep_request_rate)
		return err_set(e, ERR_USAGE, "--sweep-max-concurrency and --sweep-request-rate cannot "
			       "be used together; bench sweep serve takes products of both");
	if (o->sweep_request_rate && o->sweep_num_prompts_factor.is_set)
		return err_set(e, ERR_USAGE, "--sweep-num-prompts-factor needs --sweep-max-concurrency");
	return 0;
}

/*
 * cli and o as from cli_begin for argv. Ends cli; returns the first status other than 0. A point
 * that fails does not keep the others from being measured; an interrupt or a usage error does.
 */
static int serve_points(struct cli *cli, const struct serve_opts *o, int argc, char **argv)
{
	struct points p = { .arena = &cli->arena, .is_rate = o->sweep_request_rate != NULL };
	int status = 0;

	if (check_points(o, &cli->err) < 0 || read_values(&p, o, &cli->err) < 0 ||
	    (o->sweep_summary_percentiles &&
	     read_percentiles(&p, o->sweep_summary_percentiles, &cli->err) < 0))
		return cli_end(cli);
	buf_reset(&cli->result.notes); /* the first point has them, too */
	make_columns(&p);
	print_rule('=', RULE_COLUMNS, p.is_rate ? " Request Rate Sweep " : " Concurrency Sweep ");
	printf("Sweeping --%s over %zu values: [", p.is_rate ? "request-rate" : "max-concurrency", p.n);
	for (size_t i = 0; i < p.n; i++)
		printf("%s%s", i ? ", " : "", value_text(&p, i));
	puts("]\n");
	for (size_t i = 0; i < p.n; i++) {
		int now = measure(&p, i, argc, argv);

		status = status ? status : now;
		if (now == 2 || *cli_is_interrupted())
			break;
	}
	if (!o->dry_run && status != 2 && print_table(&p, o->quiet, &cli->err) < 0 && !status)
		status = 1;
	for (size_t i = 0; i < p.n; i++)
		buf_release(&p.result[i]);
	buf_release(&p.warned);
	cli_end(cli);
	return status;
}

/* ---- the verb ---- */

static int list_switches(const struct serve_switch *row)
{
	for (; row->name; row++)
		printf("%-17s %s\n", row->name, row->help);
	return 1;
}

static int list_fixes(const struct serve_opts *o)
{
	if (o->compat && strcmp(o->compat, "help") == 0)
		return list_switches(serve_compats);
	for (size_t i = 0; i < o->fix.n; i++)
		if (strcmp(o->fix.v[i], "help") == 0)
			return list_switches(serve_fixes);
	return 0;
}

static int list_patterns(const struct serve_opts *o)
{
	if (!o->load_pattern || strcmp(o->load_pattern, "help") != 0)
		return 0;
	for (const struct load_pattern *p = load_patterns; p->name; p++) {
		printf("%-10s %s:", p->name, p->help);
		for (const struct preset *set = p->set; set->option; set++)
			printf(" --%s %s", set->option, set->value);
		putchar('\n');
	}
	return 1;
}

/* --compare A B, as in upstream's Rust client. */
static int compare(struct cli *cli, const struct serve_opts *o)
{
	struct buf text = { 0 };

	if (o->compare.n != 2)
		err_set(&cli->err, ERR_USAGE, "--compare: expected two result files, got %zu",
			o->compare.n);
	else if (compare_two(o->compare.v[0], o->compare.v[1], &text, &cli->err) == 0)
		cli_out_buf(&text);
	return cli_end(cli);
}

static int serve(int argc, char **argv, struct err *e)
{
	struct serve_opts opts;
	struct cli_divert divert;
	struct cli cli;
	int status = cli_begin(&cli, &serve_opt_set, argc, argv, &opts);
	bool is_diverted;

	if (status != CLI_CONTINUE)
		goto done;
	is_diverted = opts.quiet || strcmp(opts.report, "json") == 0;
	opts.disable_tqdm |= opts.quiet;
	if (is_diverted && cli_divert_begin(&divert, opts.quiet ? CLI_TO_NOWHERE : CLI_TO_STDERR,
					    &cli.err) < 0)
		status = cli_end(&cli);
	else if (list_fixes(&opts) || list_patterns(&opts))
		status = cli_end(&cli);
	else if (opts.compare.is_set)
		status = compare(&cli, &opts);
	else if (check_alone(&opts, &cli.err) < 0)
		status = cli_end(&cli);
	else if (serve_find_is_wanted(&opts))
		status = serve_find(&cli, &opts, argc, argv);
	else if (serve_points_are_wanted(&opts))
		status = serve_points(&cli, &opts, argc, argv);
	else
		status = serve_once(&cli, &opts, NULL);
	if (is_diverted)
		cli_divert_end(&divert);
done:
	*e = cli.err;
	return status;
}

int cmd_bench_serve(int argc, char **argv)
{
	struct err e;

	return serve(argc, argv, &e);
}

/* ---- within another verb ---- */

static bool is_called(const char *word, const char *name)
{
	const char *slash = strrchr(word, '/');

	return strcmp(slash ? slash + 1 : word, name) == 0;
}

bool bench_run_knows(char *const *argv)
{
	return argv[0] && (is_called(argv[0], "vllm") || is_called(argv[0], "profllm")) &&
	       argv[1] && strcmp(argv[1], "bench") == 0 && argv[2] && strcmp(argv[2], "serve") == 0;
}

int bench_run(char *const *argv, bool is_shown, struct err *e)
{
	struct cli_divert divert;
	int argc = 0, status;
	char **copy;

	while (argv[3 + argc])
		argc++;
	copy = mem_grow(NULL, (size_t)argc + 1, sizeof(*copy));
	memcpy(copy, argv + 3, ((size_t)argc + 1) * sizeof(*copy));
	if (is_shown || cli_divert_begin(&divert, CLI_TO_NOWHERE, e) == 0)
		status = serve(argc, copy, e);
	else
		status = err_exit_status(e);
	if (!is_shown)
		cli_divert_end(&divert);
	free(copy);
	return status;
}
