/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_figure_figure.c - records as figures, figures as tables and scripts; rows checked by hand.
 * That gnuplot takes the scripts is tested by tests/cli/sweep-plots.t.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "out/figure/plots.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct arena arena;

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct frame frame_of(const char *text)
{
	struct json_value *v;
	struct frame f = { 0 };
	struct err e = { 0 };

	if (json_parse(&arena, str_of(text), &v, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < v->count; i++)
		assert_int_equal(frame_add(&f, &v->item[i], "test", &arena, &e), 0);
	return f;
}

static const char runs[] =
	"[{\"x\": 2, \"y\": 30, \"c\": 16, \"r\": \"b\", \"k\": 1},"
	" {\"x\": 1, \"y\": 10, \"c\": 8, \"r\": \"a\", \"k\": 1},"
	" {\"x\": 2, \"y\": 34, \"c\": 16, \"r\": \"b\", \"k\": 1},"
	" {\"x\": 1, \"y\": 12, \"c\": 16, \"r\": \"b\", \"k\": 1},"
	" {\"x\": 1, \"y\": 5, \"c\": null, \"r\": \"a\", \"k\": 1},"
	" {\"x\": 1, \"y\": null, \"c\": 8, \"r\": \"a\", \"k\": 1},"
	" {\"x\": 3, \"y\": \"inf\", \"c\": 8, \"r\": \"a\", \"k\": 1},"
	" {\"x\": \"nan\", \"y\": 1, \"c\": 99, \"r\": \"a\", \"k\": 1}]";

static struct sweep_plot plot_of(const char *rows, const char *curves)
{
	return (struct sweep_plot){
		.var_x = "x", .var_y = "y", .row_by = frame_keys(rows, &arena),
		.curve_by = frame_keys(curves, &arena), .has_errors = true,
	};
}

static void check_figure(const struct figure *g)
{
	struct buf script = { 0 }, data = { 0 };

	figure_script(g, "stem", &script);
	figure_data(g, &data);
	answers_release(&script);
	answers_release(&data);
}

static int draw(const struct frame *f, const struct sweep_plot *p, struct figure *out,
		struct err *e)
{
	int rc = sweep_plot_figure(f, p, out, &arena, e);

	if (rc == 1)
		check_figure(out);
	return rc;
}

/* Equal x are one point: the mean, and the standard deviation of a sample around it. */
static void averages(void **state)
{
	struct frame f = frame_of(runs);
	struct sweep_plot p = plot_of("", "c");
	struct figure g;
	struct err e = { 0 };
	const struct figure_curve *c;

	(void)state;
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_int_equal(g.rows * g.cols, 1);
	assert_string_equal(g.legend_title, "c");
	/* Numbers by size, then what is null; a value whose points have no numbers has no curve. */
	assert_int_equal(g.panel->n_curves, 3);
	c = g.panel->curve;
	assert_string_equal(c[0].title, "8");
	assert_string_equal(c[1].title, "16");
	assert_string_equal(c[2].title, "None");
	assert_int_equal(c[1].look.color, 1);
	assert_int_equal(c[1].n, 2);
	assert_true(c[1].x[0] == 1 && c[1].y[0] == 12 && c[1].count[0] == 1 && isnan(c[1].low[0]));
	assert_true(c[1].x[1] == 2 && c[1].y[1] == 32 && c[1].count[1] == 2);
	assert_true(fabs(c[1].high[1] - (32 + sqrt(8))) < 1e-12);
	assert_true(fabs(c[1].low[1] - (32 - sqrt(8))) < 1e-12);
	assert_int_equal(figure_left_out(&g), 1); /* the infinite y */
	assert_null(g.panel->title);
	p.has_errors = false;
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_null(g.panel->curve[1].low);
}

/*
 * A measured x: two configurations at two loads with repeats, drawn in one color. Each repeat has
 * its own x, but is not a point of its own.
 */
static void measured_x(void **state)
{
#define RUN(x, y, c, seqs, n) "{\"output_throughput\": " #x ", \"y\": " #y ", \"max_concurrency\": " #c \
	", \"run_number\": " #n ", \"max_num_seqs\": " #seqs ", \"gpu\": \"a\"}"
	struct frame f = frame_of("[" RUN(90, 10, 16, 8, 0) "," RUN(110, 14, 16, 8, 1) ","
				  RUN(120, 2, 1, 8, 0) "," RUN(122, 4, 1, 8, 1) ","
				  RUN(200, 5, 16, 64, 0) "," RUN(30, 1, 1, 64, 0) "]");
	struct sweep_plot p = plot_of("", "gpu");
	const struct figure_curve *c;
	struct figure g;
	struct err e = { 0 };

	(void)state;
	p.var_x = "output_throughput";
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_int_equal(g.panel->n_curves, 2);
	c = g.panel->curve;
	assert_string_equal(c[0].title, c[1].title);
	assert_int_equal(c[0].look.color, c[1].look.color);
	/* In the order of load, although the server beyond its limit is slower. */
	assert_int_equal(c[0].n, 2);
	assert_true(c[0].x[0] == 121 && c[0].y[0] == 3 && c[0].count[0] == 2);
	assert_true(c[0].x[1] == 100 && c[0].y[1] == 12 && c[0].count[1] == 2);
	assert_true(fabs(c[0].high[1] - (12 + sqrt(8))) < 1e-12);
	assert_true(c[1].n == 2 && c[1].x[0] == 30 && c[1].x[1] == 200 && isnan(c[1].low[0]));
	/* At a single load configurations are the points of one curve, by x. */
	assert_int_equal(frame_parse_filters(&p.filter_by, "max_concurrency>8", &arena, &e), 0);
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_int_equal(g.panel->n_curves, 1);
	assert_true(g.panel->curve->n == 2 && g.panel->curve->x[0] == 100);
#undef RUN
}

static void facets(void **state)
{
	struct frame f = frame_of(runs);
	struct sweep_plot p = plot_of("r", "c,k,x,r");
	struct figure g;
	struct err e = { 0 };
	size_t rows, cols;

	(void)state;
	assert_int_equal(sweep_plot_grid(&f, &p, &rows, &cols, &arena, &e), 0);
	assert_true(rows == 2 && cols == 1);
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_string_equal(g.panel[0].title, "r=a");
	assert_string_equal(g.panel[1].title, "r=b");
	/* More than three variables: one label, distinguished by color. */
	assert_null(g.legend_title);
	assert_string_equal(g.panel[0].curve[0].title, "c=8, k=1, x=1, r=a");
	assert_int_equal(g.panel[0].curve[1].look.dash, 0);
	p.curve_by = frame_keys("c,x,r", &arena);
	assert_int_equal(draw(&f, &p, &g, &e), 1);
	assert_string_equal(g.panel[1].curve[1].title, "16, 2, b");
	assert_true(g.panel[1].curve[1].look.color == 1 && g.panel[1].curve[1].look.dash == 1 &&
		    g.panel[1].curve[1].look.width == 1);
}

static void plot_errors(void **state)
{
	static const struct { const char *x, *y, *rows, *error; } rows[] = {
		{ "none", "y", "", "Cannot find var_x='none' in parameter sweep results. Available "
				   "variables: ['x', 'y', 'c', 'r', 'k']" },
		{ "x", "none", "", "Cannot find var_y='none' in parameter sweep results." },
		{ "x", "y", "c,none", "Cannot find row_by='none' in parameter sweep results." },
		{ "r", "y", "", "--var-x 'r': not all of its values are numbers" },
	};
	struct frame f = frame_of(runs);

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sweep_plot p = plot_of(rows[i].rows, "");
		struct figure g;
		struct err e = { 0 };

		p.var_x = rows[i].x;
		p.var_y = rows[i].y;
		assert_int_equal(draw(&f, &p, &g, &e), -1);
		if (!strstr(e.text, rows[i].error))
			fail_msg("row %zu: %s", i, e.text);
	}
}

static void nothing_left(void **state)
{
	struct frame f = frame_of(runs);
	struct sweep_plot p = plot_of("", "");
	struct figure g;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(frame_parse_filters(&p.filter_by, "x>100", &arena, &e), 0);
	assert_int_equal(draw(&f, &p, &g, &e), 0);
}

/* ---- tables and scripts ---- */

static void texts(void **state)
{
	const double x[] = { 1, 10, 0 }, y[] = { 5, NAN, 7 };
	const char *const label[] = { "it's\n`touch x`", NULL, NULL };
	const struct figure_curve curve = { .title = "a\"b'", .n = 3, .x = x, .y = y, .label = label };
	const struct figure_limit limit = { .at = 6, .title = "limit" };
	const struct figure_panel panel = { .title = "p=1\nq=2", .curve = &curve, .n_curves = 1,
					    .limit = &limit, .n_limits = 1 };
	const struct figure f = { .x_label = "x", .y_label = "y", .panel = &panel, .rows = 1, .cols = 1,
				  .x_scale = FIGURE_LOG };
	struct buf data = { 0 }, script = { 0 };

	(void)state;
	assert_int_equal(figure_left_out(&f), 2); /* not a number; 0 on a logarithmic axis */
	figure_data(&f, &data);
	assert_string_equal(data.data, "# x: x; y: y\n# x y low high count label\n\n\n"
			    "# panel 1 (p=1 q=2): a'b'\n1.0 5.0 NaN NaN 1 \"it's `touch x`\"\n"
			    "# not drawn: 10.0 NaN NaN NaN 1\n# not drawn: 0.0 7.0 NaN NaN 1\n");
	figure_script(&f, "s'tem", &script);
	assert_non_null(strstr(script.data, "data = 's''tem'.'.dat'\n"));
	assert_non_null(strstr(script.data, "set title 'p=1'.\"\\n\".'q=2'"));
	assert_non_null(strstr(script.data, "set label 'it''s'.\"\\n\".'`touch x`' at 1.0,5.0"));
	assert_non_null(strstr(script.data, "set logscale x\n"));
	assert_non_null(strstr(script.data, "title 'a\"b'''"));
	assert_non_null(strstr(script.data, "set label 'limit'"));
	/* Between double quotes gnuplot runs commands in backquotes. */
	for (const char *p = strchr(script.data, '`'); p; p = strchr(p + 1, '`'))
		assert_true(p[-1] == '\'' || p[1] == '\'');
	buf_release(&data);
	buf_release(&script);
}

/* As text every curve has its own letter; the legend is a list of them below the panels. */
static void letters(void **state)
{
	const double x[] = { 1, 2 }, y[] = { 5, 6 };
	const struct figure_curve curve[] = {
		{ .title = "all", .style = FIGURE_POINTS, .look.is_muted = true, .n = 2, .x = x, .y = y },
		{ .title = "m 8", .look.dash = 1, .n = 2, .x = x, .y = y },
		{ .title = "m 64", .look = { .color = 1, .dash = 1 }, .n = 2, .x = x, .y = y },
	};
	const struct figure_panel panel = { .curve = curve, .n_curves = 3 };
	const struct figure f = { .x_label = "x", .y_label = "y", .panel = &panel, .rows = 1, .cols = 1,
				  .legend_title = "gpu, max_num_seqs" };
	struct buf script = { 0 };

	(void)state;
	figure_script(&f, "f", &script);
	assert_non_null(strstr(script.data, "\tprint '  '.'gpu, max_num_seqs'\n\tprint '  .  '.'all'\n"
			       "\tprint '  A  '.'m 8'\n\tprint '  B  '.'m 64'\n"));
	assert_non_null(strstr(script.data, "pt (is_text ? 1 : 5)"));
	assert_non_null(strstr(script.data, "pt (is_text ? 2 : 5)"));
	/* The key is below its title, which is a label, because gnuplot's own lies on an entry. */
	assert_non_null(strstr(script.data, "set label 'gpu, max_num_seqs' at screen "));
	assert_null(strstr(script.data, " title 'gpu, max_num_seqs' left"));
	buf_release(&script);
}

static void scales(void **state)
{
	enum figure_scale scale;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; figure_scale_names[i]; i++) {
		assert_int_equal(figure_scale_parse(&scale, figure_scale_names[i], &e), 0);
		assert_int_equal(scale, i);
	}
	assert_int_equal(figure_scale_parse(&scale, NULL, &e), 0);
	assert_int_equal(scale, FIGURE_LINEAR);
	assert_int_equal(figure_scale_parse(&scale, "cube", &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

/* The lines of a script that say axes, colors and the encoding. */
static void check_lines(const struct figure *f)
{
	static const char *const word[] = {
		"set xrange", "set yrange", "set xtics", "set ytics", "set format", "set nonlinear", "set logscale",
		"unset xlabel", "unset ylabel", "data index", "set encoding",
	};
	struct buf script = { 0 }, got = { 0 };
	struct str rest;

	figure_script(f, "stem", &script);
	for (rest = buf_str(&script); rest.n;) {
		struct str line = str_cut(&rest, '\n');

		for (size_t i = 0; i < COUNT(word); i++)
			if (memmem(line.p, line.n, word[i], strlen(word[i])))
				buf_printf(&got, "%.*s\n", (int)line.n, line.p);
	}
	answers_release(&got);
	buf_release(&script);
}

/* Ranges, formats and marks of every scale: of few values, of many decades, below 0, around 1e6. */
static void axes(void **state)
{
	static const struct { enum figure_scale scale; double v[5]; } row[] = {
		{ FIGURE_LINEAR, { 1, 2, 4, 8, 16 } },
		{ FIGURE_LINEAR, { 2e6, 2.01e6, 2.02e6, 2.03e6, 2.04e6 } },
		{ FIGURE_LINEAR, { 1, 1e5, 2e5, 3e5, 4e5 } }, { FIGURE_LOG, { 1, 2, 4, 8, 16 } },
		{ FIGURE_LOG, { 1, 1.01, 4, 8, 16 } }, { FIGURE_LOG, { 0.003, 1, 4, 50, 1000 } },
		{ FIGURE_LOG, { 1e-7, 1, 4, 1e5, 1e9 } }, { FIGURE_SQRT, { 0, 2, 4, 8, 16 } },
		{ FIGURE_SYMLOG, { -40, -2, 0, 8, 160 } },
		{ FIGURE_SYMLOG, { 3, 20, 400, 800, 16000 } },
		{ FIGURE_ASINH, { -1e12, -2, 0, 8, 1e6 } }, { FIGURE_ASINH, { 0, 2, 4, 8, 16 } },
		{ FIGURE_LOG, { 2, 2.01, 40, 80, 5000 } },
		{ FIGURE_LOGIT, { 0.01, 0.02, 0.5, 0.9, 0.99 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const struct figure_curve curve = { .n = 5, .x = row[i].v, .y = row[i].v };
		const struct figure_panel panel[] = {
			{ .curve = &curve, .n_curves = 1 }, { .curve = &curve, .n_curves = 1 },
		};
		const struct figure f = {
			.x_label = "x", .y_label = "y", .panel = panel, .rows = i % 2 ? 2 : 1,
			.cols = i % 2 ? 1 : 2, .x_scale = row[i].scale, .y_scale = row[i].scale,
		};

		check_lines(&f);
	}
}

/* More curves than colors that are told apart: a ramp. Texts outside ASCII say so. */
static void many_curves(void **state)
{
	const double x[] = { 1, 2, 3 }, y[] = { 5, 6, 7 };
	struct figure_curve curve[12] = { 0 };
	const struct figure_panel panel = { .curve = curve, .n_curves = COUNT(curve) };
	struct figure f = { .x_label = "x", .y_label = "y", .panel = &panel, .rows = 1, .cols = 1 };

	(void)state;
	for (size_t i = 0; i < COUNT(curve); i++)
		curve[i] = (struct figure_curve){ .title = arena_printf(&arena, "%zu", i), .n = 3, .x = x,
						  .y = y, .look.color = (unsigned)i };
	curve[3].look.is_muted = true;
	curve[5].look.is_ink = true;
	check_lines(&f);
	f.y_label = "\xc2\xb5s";
	check_lines(&f);
}

static void axis_labels(void **state)
{
	static const struct { const char *variable, *label; } rows[] = {
		{ "median_ttft_ms", "median_ttft_ms (ms)" },
		{ "p99.9_itl_ms", "p99.9_itl_ms (ms)" },
		{ "my_parameter", "my_parameter" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf text = { 0 };

		figure_axis_label(&text, rows[i].variable);
		assert_string_equal(text.data, rows[i].label);
		buf_release(&text);
	}
}

/* ---- Pareto ---- */

#define T "\"output_throughput\": 120, "

static void users_and_gpus(void **state)
{
	static const struct {
		const char *record, *users, *gpus;
		double per_user, per_gpu;
	} rows[] = {
		{ T "\"max_concurrency\": 4", "max_concurrency", NULL, 30, 120 },
		{ T "\"max-concurrency\": 4, \"tensor-parallel-size\": 2, \"pp\": 3", "max_concurrency",
		  NULL, 30, 20 },
		/* Unlimited: the observed peak, not the rate. */
		{ T "\"max_concurrency\": null, \"request_rate\": 2, \"max_concurrent_requests\": 12",
		  "max_concurrency", NULL, 10, 120 },
		{ T "\"max_concurrency\": 0, \"max_concurrent_requests\": 12", "max_concurrency", NULL, 10,
		  120 },
		{ T "\"request_rate\": 2, \"max_concurrent_requests\": 12", "max_concurrency", NULL, 60,
		  120 },
		{ T "\"request_rate\": \"inf\"", "", NULL, 0, 120 },
		{ T "\"u\": 6, \"g\": 0, \"tp\": 4, \"dp\": 0", "u", "g", 20, 30 },
		{ T "\"u\": 6, \"num_gpus\": 8, \"tp\": 4", "u", NULL, 20, 15 },
		{ T "\"u\": 6, \"gpu_count\": 3, \"tp\": 4", "u", "", 20, 40 },
		{ T "\"u\": \"6\", \"g\": 5, \"num_gpus\": 8", "u", "g", 20, 24 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct frame f = frame_of(arena_printf(&arena, "[{%s}]", rows[i].record));
		struct sweep_pareto_opts o = { .user_count_var = rows[i].users,
					       .gpu_count_var = rows[i].gpus };
		struct sweep_pareto p;
		struct err e = { 0 };

		if (sweep_pareto(&p, &f, &o, &arena, &e) < 0)
			fail_msg("row %zu: %s", i, e.text);
		assert_int_equal(p.points.n, 1);
		if (p.per_user[0] != rows[i].per_user || p.per_gpu[0] != rows[i].per_gpu)
			fail_msg("row %zu: %g and %g", i, p.per_user[0], p.per_gpu[0]);
	}
}

static void check_pareto(const struct sweep_pareto *p, const struct figure *g)
{
	struct buf csv = { 0 };

	sweep_pareto_csv(p, &csv);
	answers_release(&csv);
	check_figure(g);
}

static void pareto_errors(void **state)
{
	static const struct { const char *record, *error; } rows[] = {
		{ "\"b\": 1, \"a\": 2", "Cannot find throughput metric 'output_throughput' in run data. "
					"Available keys: ['a', 'b']" },
		{ T "\"max_concurrency\": \"many\"", "Expected numeric value for one of "
		  "['max_concurrency', 'request_rate'], but found 'many' in run_data={'output_throughput': "
		  "120, 'max_concurrency': 'many'}" },
		{ T "\"max_concurrency\": 1, \"tp\": [2]", "Expected numeric value for one of "
		  "['tensor_parallel_size', 'tp'], but found [2]" },
	};
	const struct sweep_pareto_opts o = { .user_count_var = "max_concurrency" };
	struct frame f = frame_of("[{" T "\"a\": 1}, {" T "\"max_concurrency\": 2}]");
	struct sweep_pareto p;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct frame bad = frame_of(arena_printf(&arena, "[{%s}]", rows[i].record));
		struct err e = { 0 };

		assert_int_equal(sweep_pareto(&p, &bad, &o, &arena, &e), -1);
		if (!strstr(e.text, rows[i].error))
			fail_msg("row %zu: %s", i, e.text);
	}
	assert_int_equal(sweep_pareto(&p, &f, &o, &arena, NULL), 0);
	assert_int_equal(p.n_skipped, 1);
	assert_int_equal(p.points.n, 1);
}

static void averaged_runs(void **state)
{
	struct frame f = frame_of(
		"[{\"max_concurrency\": 2, \"output_throughput\": 10, \"run_number\": 0, \"tp\": 1},"
		" {\"max_concurrency\": 2, \"output_throughput\": 30, \"run_number\": 1, \"tp\": 1},"
		" {\"max_concurrency\": 2, \"output_throughput\": 50, \"run_number\": 0, \"tp\": 2},"
		" {\"max_concurrency\": 4, \"output_throughput\": 70, \"run_number\": 0, \"tp\": 2},"
		" {\"max_concurrency\": 2, \"output_throughput\": 10},"
		" {\"max_concurrency\": 2, \"output_throughput\": 10}]");
	const struct sweep_pareto_opts o = { .user_count_var = "max_concurrency", .is_averaged = true,
					     .rule = PARETO_STRICT,
					     .label_by = frame_keys("tp,runs", &arena) };
	static const double per_user[] = { 10, 25, 17.5, 5, 5 }, per_gpu[] = { 20, 25, 35, 10, 10 };
	const struct figure_curve *frontier;
	struct sweep_pareto p;
	struct figure g;
	struct buf csv = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sweep_pareto(&p, &f, &o, &arena, &e), 0);
	assert_int_equal(p.points.n, COUNT(per_user));
	for (size_t i = 0; i < COUNT(per_user); i++)
		if (p.per_user[i] != per_user[i] || p.per_gpu[i] != per_gpu[i])
			fail_msg("point %zu: %g and %g", i, p.per_user[i], p.per_gpu[i]);
	assert_int_equal(p.n_frontier, 2);
	sweep_pareto_figure(&p, &o, &g, &arena);
	check_pareto(&p, &g);
	frontier = &g.panel->curve[g.panel->n_curves - 1];
	assert_int_equal(frontier->n, 2);
	assert_true(frontier->x[0] == 17.5 && frontier->x[1] == 25);
	assert_string_equal(frontier->label[0], "tp=2\nruns=1");
	sweep_pareto_csv(&p, &csv);
	assert_int_equal(strncmp(csv.data, ",max_concurrency,output_throughput,run_number,tp,"
				 "tokens_per_user,tokens_per_gpu,user_count_estimate,gpu_count,runs,"
				 "is_frontier\n0,2,20.0,0.0,1.0,10.0,20.0,2.0,1.0,2.0,False\n", 150), 0);
	buf_release(&csv);
}

/* A color for each configuration; labels say the load, and follow --label-by where it is given. */
static void pareto_colors(void **state)
{
#define RUN(tokens, c, gpu, tp, seqs) "{\"max_concurrency\": " #c ", \"output_throughput\": " #tokens \
	", \"run_number\": 0, \"max_concurrency\": " #c ", \"gpu\": \"" gpu "\", \"tp\": " #tp \
	", \"max_num_seqs\": " #seqs "}"
	struct frame f = frame_of("[" RUN(100, 1, "h100", 2, 8) "," RUN(320, 4, "h100", 2, 8) ","
				  RUN(150, 1, "b200", 1, 8) "," RUN(480, 4, "b200", 1, 64) "]");
	struct sweep_pareto_opts o = { .user_count_var = "max_concurrency" };
	const struct figure_curve *c;
	struct sweep_pareto p;
	struct figure g;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sweep_pareto(&p, &f, &o, &arena, &e), 0);
	sweep_pareto_figure(&p, &o, &g, &arena);
	check_pareto(&p, &g);
	assert_string_equal(g.legend_title, "gpu, max_num_seqs"); /* tp follows from gpu */
	assert_int_equal(g.panel->n_curves, 4);
	c = g.panel->curve;
	assert_string_equal(c[0].title, "b200, 8");
	assert_string_equal(c[1].title, "b200, 64");
	assert_string_equal(c[2].title, "h100, 8");
	assert_true(c[2].n == 2 && c[2].look.color == 2 && !c[2].look.is_muted);
	assert_string_equal(c[3].title, "Pareto frontier");
	assert_true(c[3].look.is_ink && c[3].n == 2);
	assert_string_equal(c[3].label[0], "c=4");
	assert_string_equal(c[3].label[1], "c=1");
	o.label_by = frame_keys("max_concurrency,gpu", &arena);
	sweep_pareto_figure(&p, &o, &g, &arena);
	check_pareto(&p, &g);
	assert_string_equal(g.panel->curve[3].label[0], "max_concurrency=4\ngpu=b200");
#undef RUN
}

/*
 * Runs of one configuration and load are one point; parameters that differ make curves; what is
 * INVALID or has no number is counted and left out.
 */
static void results_of_any_kind(void **state)
{
#define RUN(c, gpu, x, y, more) "{\"max_concurrency\": " #c ", \"gpu\": \"" gpu \
	"\", \"output_throughput\": " #x ", \"mean_tpot_ms\": " #y more "}"
	struct frame f = frame_of("[" RUN(1, "h100", 100, 10, "") "," RUN(1, "h100", 120, 12, "") ","
		RUN(8, "h100", 700, 20, "") "," RUN(4, "h100", 390, 15, ", \"date\": \"now\"") ","
		RUN(1, "b200", 150, 8, "") "," RUN(4, "b200", null, 9, "") ","
		RUN(8, "b200", 900, 30, ", \"profllm\": {\"verdict\": {\"status\": \"INVALID\"}}")
		"]");
	struct result_plot p = { .var_x = "output_throughput", .var_y = "mean_tpot_ms" };
	const struct figure_curve *c;
	struct result_plot_told told = { 0 };
	struct figure g;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(result_plot_figure(&f, &p, &g, &told, &arena, &e), 1);
	check_figure(&g);
	assert_int_equal(told.n, 7);
	assert_int_equal(told.n_incomplete, 1);
	assert_int_equal(g.panel->n_curves, 2);
	assert_string_equal(g.panel->curve[1].title, "b200");
	c = &g.panel->curve[0];
	assert_string_equal(c->title, "h100");
	assert_int_equal(c->n, 3);
	assert_true(c->x[0] == 110 && c->y[0] == 11 && c->x[1] == 390 && c->x[2] == 700);
	p.has_frontier = p.has_invalid = true;
	told = (struct result_plot_told){ 0 };
	assert_int_equal(result_plot_figure(&f, &p, &g, &told, &arena, &e), 1);
	check_figure(&g);
	assert_true(told.n_frontier > 0 && told.n_frontier <= told.n_points);
	p.is_chosen = true;
	p.curve_by = frame_keys("max_concurrency", &arena);
	assert_int_equal(result_plot_figure(&f, &p, &g, &told, &arena, &e), 1);
	check_figure(&g);
	p.var_y = "nothing";
	assert_int_equal(result_plot_figure(&f, &p, &g, &told, &arena, &e), -1);
	answers_check(e.text, strlen(e.text));
#undef RUN
}

/* Names of curves, and the parameters that make them: those that follow from another make none. */
static void results_by_name(void **state)
{
#define RUN(model, tp, seqs, len, x, more) "{\"model_id\": \"" model "\", \"tensor_parallel_size\": " tp \
	", \"max_num_seqs\": " seqs ", \"output_throughput\": " x ", \"total_token_throughput\": " x \
	", \"mean_tpot_ms\": 5, \"max_concurrency\": 2, \"seed\": " x ", \"copy\": " tp ", \"list\": [" x \
	"], \"cost_per_million_tokens\": 3, \"profllm\": {\"verdict\": \"VALID\", " \
	"\"options\": {\"random_input_len\": " \
	len ", \"num_prompts\": " x ", \"max_num_seqs\": " seqs "}}" more "}"
	static const char *const records[] = {
		"[" RUN("a/m1", "1", "8", "16", "10", "") "," RUN("a/m1", "2", "8", "16", "20", "") ","
		RUN("a/m1", "2", "64", "16", "30", "") "," RUN("b/m2", "2", "64", "32", "40", ", \"note\": \"x\"") "]",
		/* Two of the short names would be the same. */
		"[" RUN("a/m", "1", "8", "16", "10", "") "," RUN("b/m", "2", "8", "16", "20", "") ","
		RUN("b/m", "1", "8", "16", "30", "") "," RUN("c/m", "1", "8", "16", "40", "") "]",
		"[" RUN("7b", "1", "8", "16", "10", "") "," RUN("8b", "1", "16", "16", "20", "") ","
		RUN("8b", "1", "32", "16", "25", "") "]",
		/* Of a store. */
		"[{\"benchmark.num_prompts\": 4, \"server.model\": \"x/y\", \"benchmark.dataset_name\": \"r\", "
		"\"hardware.gpu\": \"A\", \"output_throughput\": 5, \"mean_tpot_ms\": 4}, "
		"{\"benchmark.num_prompts\": 4, \"server.model\": \"x/z\", \"benchmark.dataset_name\": \"s\", "
		"\"hardware.gpu\": \"B\", \"output_throughput\": 6, \"mean_tpot_ms\": 3}, "
		"{\"benchmark.num_prompts\": 4, \"server.model\": \"x/z\", \"benchmark.dataset_name\": \"r\", "
		"\"hardware.gpu\": \"C\", \"output_throughput\": 7, \"mean_tpot_ms\": 3}]",
	};
	static const struct { size_t of; const char *by, *x, *y; } row[] = {
		{ 0, NULL, NULL, NULL }, { 1, NULL, NULL, NULL },
		{ 2, NULL, NULL, NULL }, { 3, NULL, NULL, NULL },
		{ 0, "model_id", NULL, "cost_per_million_tokens" }, { 0, "random_input_len,copy", NULL, NULL },
		{ 0, "note", NULL, NULL }, { 0, "max_num_seqs,model_id,list", "total_token_throughput", NULL },
		{ 0, "zzz", NULL, NULL }, { 3, "gpu", NULL, NULL }, { 3, "model,gpu", NULL, NULL },
		{ 3, "y", NULL, NULL }, { 3, NULL, "output_throughput_per_gpu", NULL },
		{ 3, NULL, NULL, "cost_per_million_tokens" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct frame f = frame_of(records[row[i].of]);
		struct result_plot p = {
			.var_x = row[i].x ? row[i].x : "output_throughput",
			.var_y = row[i].y ? row[i].y : "mean_tpot_ms",
			.is_chosen = row[i].by, .curve_by = frame_keys(row[i].by ? row[i].by : "", &arena),
		};
		struct result_plot_told told;
		struct buf got = { 0 };
		struct figure g = { 0 };
		struct err e = { 0 };
		int rc = result_plot_figure(&f, &p, &g, &told, &arena, &e);

		if (rc < 0)
			buf_printf(&got, "%s\n", e.text);
		else
			buf_printf(&got, "%s / %s / %s\n", g.x_label, g.y_label, g.legend_title ? g.legend_title : "-");
		for (size_t k = 0; rc > 0 && k < g.panel->n_curves; k++)
			buf_printf(&got, "%s: %zu from %g\n", g.panel->curve[k].title ? g.panel->curve[k].title : "-",
				   g.panel->curve[k].n, g.panel->curve[k].x[0]);
		answers_release(&got);
	}
#undef RUN
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(averages), cmocka_unit_test(measured_x), cmocka_unit_test(facets),
		cmocka_unit_test(plot_errors), cmocka_unit_test(letters),
		cmocka_unit_test(pareto_colors),
		cmocka_unit_test(nothing_left), cmocka_unit_test(texts), cmocka_unit_test(scales),
		cmocka_unit_test(axis_labels), cmocka_unit_test(users_and_gpus),
		cmocka_unit_test(pareto_errors), cmocka_unit_test(averaged_runs),
		cmocka_unit_test(results_of_any_kind), cmocka_unit_test(axes),
		cmocka_unit_test(many_curves), cmocka_unit_test(results_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
