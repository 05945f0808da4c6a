/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_grid.c - `bench sweep serve` and `startup` (sweep spec 7.7): each combination of the
 * server's options with each of the benchmark's, in the files' order or a random one. Records keep
 * the files' order.
 *
 * Options that a start-up command does not have are dropped: it has those of `bench startup`, and
 * the engine's.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/offline/startup.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/rng/rng.h"
#include "host/engine/args.h"
#include "out/compare/points.h"
#include "results/read/frame.h"

#define SHOWN_PARAMS_MAX 16 /* in the table's names of points */

struct grid_point {
	size_t serve, bench; /* which of the combinations */
	char *folder;
	unsigned lacking;    /* runs that are still to be made */
	struct sweep_records records;
};

struct layout {
	struct sweep *s;
	struct grid_point *point;
	size_t *order; /* in which they are run */
	size_t n;
};

static const struct json_value *serve_of(const struct layout *g, const struct grid_point *p)
{
	return &g->s->serve.item[p->serve];
}

static const struct json_value *bench_of(const struct layout *g, const struct grid_point *p)
{
	return &g->s->bench.item[p->bench];
}

static void warn_same(const struct layout *g, const struct grid_point *p)
{
	struct sweep *s = g->s;
	bool has_serve = serve_of(g, p)->count > 0, has_bench = bench_of(g, p)->count > 0;

	if (has_serve || has_bench)
		sweep_warn(s, "%s%s%s is given more than once and is measured as one combination; "
			   "--num-runs repeats it",
			   has_serve ? sweep_comb_text(s, serve_of(g, p)) : "",
			   has_serve && has_bench ? " with " : "",
			   has_bench ? sweep_comb_text(s, bench_of(g, p)) : "");
	else
		sweep_warn(s, "the combinations differ in no option that the command has, so they are "
			   "measured as one");
}

static int refuse_collision(const struct layout *g, const struct grid_point *x,
			    const struct grid_point *y, struct err *e)
{
	struct sweep *s = g->s;

	if (params_equal(serve_of(g, x), serve_of(g, y)) &&
	    params_equal(bench_of(g, x), bench_of(g, y))) {
		warn_same(g, y);
		return 0;
	}
	return err_set(e, ERR_RUN, "%s with %s and %s with %s would both be kept in %s; give them "
		       "a _benchmark_name", sweep_comb_text(s, serve_of(g, x)),
		       sweep_comb_text(s, bench_of(g, x)), sweep_comb_text(s, serve_of(g, y)),
		       sweep_comb_text(s, bench_of(g, y)), y->folder);
}

static int add_point(struct layout *g, struct map *folders, size_t serve, size_t bench,
		     struct err *e)
{
	struct sweep *s = g->s;
	struct grid_point *p = &g->point[g->n];
	uint64_t other;

	*p = (struct grid_point){ .serve = serve, .bench = bench };
	if (!sweep_is_linked(s, serve_of(g, p), bench_of(g, p)))
		return 0;
	p->folder = sweep_folder(s, serve_of(g, p), bench_of(g, p), NULL);
	if (map_get(folders, str_of(p->folder), &other))
		return refuse_collision(g, &g->point[other], p, e);
	map_put(folders, str_of(p->folder), g->n);
	p->lacking = sweep_runs_lacking(s, p->folder);
	g->order[g->n] = g->n;
	g->n++;
	return 0;
}

static int lay_out(struct layout *g, struct err *e)
{
	struct sweep *s = g->s;
	size_t cap = s->serve.n * s->bench.n;
	struct map folders = { 0 };
	int rc = 0;

	if (cap > SWEEP_LEVELS_MAX)
		return err_set(e, ERR_LIMIT, "%zu pairs of combinations are more than the %u of "
			       "SWEEP_LEVELS_MAX", cap, SWEEP_LEVELS_MAX);
	g->point = arena_alloc(&s->arena, cap * sizeof(*g->point));
	g->order = arena_alloc(&s->arena, cap * sizeof(*g->order));
	for (size_t i = 0; rc == 0 && i < s->serve.n; i++)
		for (size_t k = 0; rc == 0 && k < s->bench.n; k++)
			rc = add_point(g, &folders, i, k, e);
	map_release(&folders);
	for (size_t i = 0; i < g->n; i++)
		s->runs_left += g->point[i].lacking;
	return rc;
}

/* Points of one server stay together, unless every point has a server of its own. */
static void shuffle(struct layout *g)
{
	struct sweep *s = g->s;
	struct pyrandom rng;
	size_t *serve, n = 0;

	pyrandom_seed(&rng, s->o->seed);
	if (sweep_opts_restart(s->o) != SWEEP_RESTART_NEVER) {
		pyrandom_shuffle(&rng, g->order, g->n, sizeof(*g->order));
		return;
	}
	serve = arena_alloc(&s->arena, s->serve.n * sizeof(*serve));
	for (size_t i = 0; i < s->serve.n; i++)
		serve[i] = i;
	pyrandom_shuffle(&rng, serve, s->serve.n, sizeof(*serve));
	for (size_t i = 0; i < s->serve.n; i++) {
		size_t first = n;

		for (size_t k = 0; k < g->n; k++)
			if (g->point[k].serve == serve[i])
				g->order[n++] = k;
		pyrandom_shuffle(&rng, g->order + first, n - first, sizeof(*g->order));
	}
}

/* Whether any of the following points with this server has something to run. */
static bool needs_server(const struct layout *g, size_t at)
{
	size_t serve = g->point[g->order[at]].serve;

	for (; at < g->n && g->point[g->order[at]].serve == serve; at++)
		if (g->point[g->order[at]].lacking)
			return true;
	return false;
}

static int run_point(struct layout *g, size_t at, struct err *e)
{
	struct sweep *s = g->s;
	struct grid_point *p = &g->point[g->order[at]];
	bool is_new = at == 0 || g->point[g->order[at - 1]].serve != p->serve;
	unsigned left = s->runs_left;
	int rc;

	if (is_new && sweep_server_end(s, e) < 0)
		return -1;
	if (is_new && !s->startup_cmd && needs_server(g, at) &&
	    sweep_server_begin(s, serve_of(g, p), e) < 0)
		return -1;
	s->progress.point = (unsigned)at + 1;
	rc = sweep_level(s, serve_of(g, p), bench_of(g, p), p->folder, &p->records, e);
	s->runs_left = left - p->lacking;
	return rc;
}

static int run_all(struct sweep *s, struct err *e)
{
	struct layout g = { .s = s };
	int rc = lay_out(&g, e);

	if (rc < 0)
		return -1;
	if (g.n == 0)
		return err_set(e, ERR_USAGE, "--link-vars %s: no combination of --serve-params has the "
			       "same value as one of --bench-params, so nothing would be measured",
			       s->o->link_vars);
	if (s->o->shuffle)
		shuffle(&g);
	s->progress.points = (unsigned)g.n;
	for (size_t i = 0; rc == 0 && i < g.n; i++)
		rc = run_point(&g, i, e);
	for (size_t i = 0; i < g.n; i++)
		sweep_add(s, &g.point[i].records);
	return rc;
}

/* ---- the table ---- */

static bool differ(const struct json_value *x, const struct json_value *y)
{
	return (x == NULL) != (y == NULL) || (x && !params_equal(x, y));
}

/*
 * Whether a parameter differs between records, or between combinations, of which perhaps only one
 * has a record.
 */
static bool varies(const struct sweep *s, const struct params *p, struct str key)
{
	for (size_t i = 1; i < s->records.n; i++)
		if (differ(frame_value(s->records.v[i], key), frame_value(s->records.v[0], key)))
			return true;
	for (size_t i = 1; i < p->n; i++)
		if (differ(frame_value(&p->item[i], key), frame_value(&p->item[0], key)))
			return true;
	return false;
}

static void add_varying(const struct sweep *s, const struct params *p, struct frame_keys *out)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->item[i].count; k++) {
			struct str key = p->item[i].key[k];
			bool is_known = key.n && key.p[0] == '_'; /* names of combinations */

			for (size_t j = 0; j < out->n; j++)
				is_known |= str_eq(out->name[j], key);
			if (!is_known && out->n < SHOWN_PARAMS_MAX && varies(s, p, key))
				out->name[out->n++] = key;
		}
}

/* "max_num_seqs=8 request_rate=4", and " run=0" where that is asked for. */
static const char *point_name(struct sweep *s, const struct json_value *record,
			      const struct frame_keys *keys, bool has_run)
{
	struct buf text = { 0 };
	const char *name;

	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);

		if (!v)
			continue;
		buf_printf(&text, "%s%.*s=", text.len ? " " : "", (int)keys->name[k].n,
			   keys->name[k].p);
		frame_text(&text, v, FRAME_OBJECT);
	}
	if (has_run && (s->o->num_runs > 1 || !text.len))
		buf_printf(&text, "%srun=%lld", text.len ? " " : "",
			   (long long)json_int(json_get(record, "run_number"), 0));
	redact_tail(&text, 0, REDACT_SETTINGS);
	name = arena_text(&s->arena, buf_str(&text));
	buf_release(&text);
	return name;
}

static void show_table(struct sweep *s, const struct points_column *column, size_t n_columns,
		       int digits)
{
	struct points_line *line = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*line));
	struct points_table table = {
		.name_title = "Point", .column = column, .n_columns = n_columns, .line = line,
		.n = s->records.n,
	};
	struct str names[SHOWN_PARAMS_MAX];
	struct frame_keys keys = { .name = names };
	struct points_best best;
	struct buf text = { 0 };
	struct grid grid;

	add_varying(s, &s->serve, &keys);
	add_varying(s, &s->bench, &keys);
	for (size_t i = 0; i < s->records.n; i++)
		line[i] = (struct points_line){
			.name = point_name(s, s->records.v[i], &keys, true),
			.group = point_name(s, s->records.v[i], &keys, false),
			.record = s->records.v[i] };
	points_grid(&table, digits, &s->arena, &grid);
	grid_text(&grid, false, &text);
	best = points_best(&table, "output_throughput");
	points_say_best(&table, &best, "output_throughput", "output throughput", "tok/s",
			&s->arena, &text);
	sweep_lines(s, buf_str(&text));
	buf_release(&text);
}

int sweep_serve(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e)
{
	static const struct points_column column[] = {
		{ "Req/s", "request_throughput" }, { "Tok/s", "output_throughput" },
		{ "P50 TTFT(ms)", "median_ttft_ms" }, { "P99 TTFT(ms)", "p99_ttft_ms" },
		{ "P50 TPOT(ms)", "median_tpot_ms" }, { "P99 TPOT(ms)", "p99_tpot_ms" },
	};
	struct sweep s;
	int rc = sweep_begin(&s, o, hooks, e);

	if (rc == 0)
		rc = sweep_finish(&s, run_all(&s, e), e);
	if (rc >= 0 && s.records.n)
		show_table(&s, column, sizeof(column) / sizeof(*column), 2);
	sweep_release(&s);
	return rc;
}

/* ---- which options the command has ---- */

static const char *const own[] = {
	"config", "device_memory_utilization", /* gpu_memory_utilization's other name */
};

/* name: with underscores. Our own options are only for a command that is not upstream's. */
static bool is_row(const char *name, bool is_upstream)
{
	for (size_t i = 0; i < startup_opt_set.n; i++) {
		const struct opt *row = &startup_opt_set.row[i];
		size_t k = 0;

		while (name[k] && name[k] == (row->name[k] == '-' ? '_' : row->name[k]))
			k++;
		if (!name[k] && !row->name[k])
			return !(is_upstream && row->flags & OPT_OURS);
	}
	return false;
}

static bool has_option(struct str key, bool is_upstream)
{
	struct str rest = key, head = str_cut(&rest, '.');
	char name[128];
	const struct engine_arg *arg;

	if (str_is(key, PARAMS_NAME_KEY))
		return true;
	if (head.n >= sizeof(name))
		return false;
	for (size_t i = 0; i <= head.n; i++)
		name[i] = (char)(i == head.n ? 0 : head.p[i] == '-' ? '_' : head.p[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	if (is_row(name, is_upstream))
		return true;
	arg = engine_arg_find(str_of(name));
	if (!arg && strncmp(name, "no_", 3) == 0) {
		arg = engine_arg_find(str_of(name + 3));
		return arg && arg->kind == ENGINE_SWITCH && engine_arg_is_engines(arg, false);
	}
	return arg && engine_arg_is_engines(arg, false);
}

static int by_bytes(const void *x, const void *y)
{
	const struct str *a = x, *b = y;
	int order = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static int tell_dropped(struct sweep *s, const struct json_value *comb, struct str *dropped,
			size_t n, struct err *e)
{
	const struct json_value *name = json_get(comb, PARAMS_NAME_KEY);
	struct buf text = { 0 };
	int rc = 0;

	buf_add_text(&text, "Ignoring unsupported startup params for ");
	if (name && name->kind == JSON_STRING && name->text.n)
		buf_add_str(&text, name->text);
	else
		params_text(comb, ", ", &text);
	qsort(dropped, n, sizeof(*dropped), by_bytes);
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s%.*s", i ? ", " : ": ", (int)dropped[i].n, dropped[i].p);
	if (s->o->strict_params)
		rc = err_set(e, ERR_RUN, "%s", text.data);
	else
		sweep_line(s, "%s", text.data);
	buf_release(&text);
	return rc;
}

struct filter { bool is_upstream, is_dropping; };

static bool keeps(const void *self, struct str key)
{
	const struct filter *f = self;

	return has_option(key, f->is_upstream) != f->is_dropping;
}

static int filter(struct sweep *s, struct params *params, struct err *e)
{
	const char *slash = strrchr(*s->startup_cmd, '/');
	bool is_upstream = strcmp(slash ? slash + 1 : *s->startup_cmd, "vllm") == 0;
	struct json_value *kept = arena_alloc(&s->arena, params->n * sizeof(*kept));

	for (size_t i = 0; i < params->n; i++) {
		const struct json_value *comb = &params->item[i];
		const struct json_value *dropped = params_filter(comb, keeps,
			&(struct filter){ is_upstream, true }, &s->arena);

		kept[i] = *params_filter(comb, keeps, &(struct filter){ is_upstream, false },
					 &s->arena);
		if (dropped->count && tell_dropped(s, comb, dropped->key, dropped->count, e) < 0)
			return -1;
	}
	params->item = kept;
	return 0;
}

int sweep_startup(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e)
{
	static const struct points_column column[] = {
		{ "Cold start(s)", "avg_cold_startup_time" },
		{ "Cold compilation(s)", "avg_cold_compilation_time" },
		{ "Warm start(s)", "avg_warm_startup_time" },
		{ "Warm compilation(s)", "avg_warm_compilation_time" },
	};
	struct sweep s;
	int rc = sweep_begin(&s, o, hooks, e);

	if (rc == 0 && (filter(&s, &s.serve, e) < 0 || filter(&s, &s.bench, e) < 0))
		rc = -1;
	if (rc == 0)
		rc = sweep_finish(&s, run_all(&s, e), e);
	if (rc >= 0 && s.records.n)
		show_table(&s, column, sizeof(column) / sizeof(*column), 3);
	sweep_release(&s);
	return rc;
}
