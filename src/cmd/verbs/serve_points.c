/* SPDX-License-Identifier: Apache-2.0 */
/* serve_points.c - see serve_points.h. */
#include "cmd/verbs/serve_points.h"

#include <inttypes.h>
#include <math.h>

#include "bench/options/salt.h"
#include "cmd/verbs/serve_once.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "out/compare/points.h"

#define RULE_COLUMNS 70
#define COLUMNS_MAX 64 /* of the table: eleven, and two for each further percentile */
#define PERCENTILES_MAX ((COLUMNS_MAX - 11) / 2)

struct points {
	struct arena *arena;
	bool is_rate;
	double value[SWEEP_POINTS_MAX];
	struct buf result[SWEEP_POINTS_MAX]; /* JSON; empty: not measured */
	size_t n, done;
	const char *percentile[PERCENTILES_MAX]; /* of --sweep-summary-percentiles */
	size_t percentiles;
	struct points_column column[COLUMNS_MAX];
	size_t columns;
};

bool serve_points_are_wanted(const struct serve_opts *o)
{
	return o->sweep_max_concurrency || o->sweep_request_rate;
}

/* "8", "0.5", "inf": a value as options and names have it. */
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

static int read_percentiles(struct points *p, const char *list, struct err *e)
{
	struct str rest = str_of(list);

	while (rest.n) {
		struct str one = str_trim(str_cut(&rest, ','));
		char text[FMT_F64_BYTES];
		bool is_known = false;
		double v;

		if (!str_to_f64(one, &v) || !(v >= 0 && v <= 100))
			return err_set(e, ERR_USAGE, "--sweep-summary-percentiles: '%.*s' is not a "
				       "number from 0 to 100", (int)one.n, one.p);
		snprintf(text, sizeof(text), "%.10g", v);
		for (size_t i = 0; i < p->percentiles; i++)
			is_known = is_known || strcmp(p->percentile[i], text) == 0;
		if (is_known)
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

/* To a comma list, unless that has it. */
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

/* What this point has of its own, over what the user's line says. */
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

static void print_rule(char fill, size_t columns, const char *text)
{
	size_t n = strlen(text), left = columns > n ? (columns - n) / 2 : 0;
	struct buf out = { 0 };

	for (size_t i = 0; i < left; i++)
		buf_add_char(&out, fill);
	buf_add_text(&out, text);
	while (out.len < columns)
		buf_add_char(&out, fill);
	buf_add_char(&out, '\n');
	cli_out(buf_str(&out));
	buf_release(&out);
}

static int measure(struct points *p, size_t i, int argc, char **argv)
{
	struct serve_outcome outcome = { 0 };
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
	add_column(p, arena_printf(p->arena, "P%s TTFT(ms)", name),
		   arena_printf(p->arena, "p%s_ttft_ms", name));
	add_column(p, arena_printf(p->arena, "P%s TPOT(ms)", name),
		   arena_printf(p->arena, "p%s_tpot_ms", name));
}

static void make_columns(struct points *p)
{
	add_column(p, "Req/s", "request_throughput");
	add_column(p, "Tok/s", "output_throughput");
	add_column(p, "Total tok/s", "total_token_throughput");
	add_column(p, "SS req/s", "profllm.steady_state.request_throughput");
	add_column(p, "SS out tok/s", "profllm.steady_state.output_throughput");
	add_column(p, "P50 TTFT(ms)", "median_ttft_ms");
	add_column(p, "P50 TPOT(ms)", "median_tpot_ms");
	add_percentile_columns(p, "90");
	for (size_t i = 0; i < p->percentiles; i++)
		if (strcmp(p->percentile[i], "50") != 0 && strcmp(p->percentile[i], "90") != 0 &&
		    strcmp(p->percentile[i], "99") != 0)
			add_percentile_columns(p, p->percentile[i]);
	add_percentile_columns(p, "99");
}

static size_t first_line(struct str text)
{
	return str_cut(&text, '\n').n;
}

static void print_table(struct points *p)
{
	struct points_line *line = arena_alloc(p->arena, (p->done + 1) * sizeof(*line));
	struct points_table table = {
		.name_title = p->is_rate ? "Request Rate" : "Max Concurrency",
		.column = p->column, .n_columns = p->columns, .line = line, .n = p->done,
	};
	struct buf out = { 0 }, best = { 0 };
	struct points_best first;
	struct json_value *result;
	struct grid grid;
	struct err ignored;

	for (size_t i = 0; i < p->done; i++) {
		line[i] = (struct points_line){ .state = "failed" };
		line[i].name = arena_printf(p->arena, "%s=%s", p->is_rate ? "rate" : "concurrency",
					    value_text(p, i));
		if (p->result[i].len &&
		    json_parse(p->arena, buf_str(&p->result[i]), &result, &ignored) == 0)
			line[i].record = result;
	}
	points_grid(&table, 2, p->arena, &grid);
	grid_text(&grid, false, &out);
	print_rule('=', first_line(buf_str(&out)), " Sweep Summary ");
	cli_out(buf_str(&out));
	print_rule('=', first_line(buf_str(&out)), "");
	first = points_best(&table, "request_throughput");
	points_say_best(&table, &first, "request_throughput", "throughput", "req/s", &best);
	cli_out(buf_str(&best));
	buf_release(&out);
	buf_release(&best);
}

static int check(const struct serve_opts *o, struct err *e)
{
	if (o->sweep_max_concurrency && o->sweep_request_rate)
		return err_set(e, ERR_USAGE, "--sweep-max-concurrency and --sweep-request-rate cannot "
			       "be used together; bench sweep serve takes products of both");
	if (o->sweep_request_rate && o->sweep_num_prompts_factor.is_set)
		return err_set(e, ERR_USAGE, "--sweep-num-prompts-factor needs --sweep-max-concurrency");
	return 0;
}

int serve_points(struct cli *cli, const struct serve_opts *o, int argc, char **argv)
{
	struct points p = { .arena = &cli->arena, .is_rate = o->sweep_request_rate != NULL };
	int status = 0;

	if (check(o, &cli->err) < 0 || read_values(&p, o, &cli->err) < 0 ||
	    (o->sweep_summary_percentiles &&
	     read_percentiles(&p, o->sweep_summary_percentiles, &cli->err) < 0))
		return cli_end(cli);
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
	if (!o->dry_run && status != 2)
		print_table(&p);
	for (size_t i = 0; i < p.n; i++)
		buf_release(&p.result[i]);
	cli_end(cli);
	return status;
}
