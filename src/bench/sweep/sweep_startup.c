/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_startup.c - `bench sweep startup`: a command that measures starting a server, run with
 * each combination of the server's options and each of its own (sweep spec 7.7).
 *
 * Options that the command does not have are dropped: it has those of `bench startup`, and the
 * engine's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/offline/startup.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "host/engine/args.h"

/* ---- which options the command has ---- */

static const char *const own[] = {
	"config", "device_memory_utilization", /* gpu_memory_utilization's other name */
};

/* name: with underscores. Ours are for a command that is not upstream's own. */
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

static bool is_upstreams(const char *command)
{
	const char *slash = strrchr(command, '/');

	return strcmp(slash ? slash + 1 : command, "vllm") == 0;
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
	const struct json_value *name = params_get(comb, PARAMS_NAME_KEY);
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

static int filter(struct sweep *s, struct params *params, const char *command, struct err *e)
{
	bool is_upstream = is_upstreams(command);
	struct json_value *kept = arena_alloc(&s->arena, params->n * sizeof(*kept));

	for (size_t i = 0; i < params->n; i++) {
		const struct json_value *comb = &params->item[i];
		struct str *dropped = arena_alloc(&s->arena, (comb->count + 1) * sizeof(*dropped));
		size_t n = 0;

		kept[i] = (struct json_value){ .kind = JSON_OBJECT };
		kept[i].key = arena_alloc(&s->arena, (comb->count + 1) * sizeof(*kept->key));
		kept[i].item = arena_alloc(&s->arena, (comb->count + 1) * sizeof(*kept->item));
		for (size_t k = 0; k < comb->count; k++) {
			if (!has_option(comb->key[k], is_upstream)) {
				dropped[n++] = comb->key[k];
				continue;
			}
			kept[i].key[kept[i].count] = comb->key[k];
			kept[i].item[kept[i].count++] = comb->item[k];
		}
		if (n && tell_dropped(s, comb, dropped, n, e) < 0)
			return -1;
	}
	params->item = kept;
	return 0;
}

/* ---- runs ---- */

/* Without any --output-json of its own, then with ours. */
static char **command(struct sweep *s, char *const *base, const struct json_value *serve,
		      const struct json_value *startup, const char *path)
{
	static const char *const keys[] = { "--output-json", "--output_json" };
	char **argv = params_apply(startup, params_apply(serve, base, &s->arena), &s->arena);
	char **out;
	size_t n = 0, kept = 0;

	while (argv[n])
		n++;
	out = arena_alloc(&s->arena, (n + 3) * sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		bool is_ours = false;

		for (size_t k = 0; k < 2 && !is_ours; k++) {
			size_t length = strlen(keys[k]);

			is_ours = strncmp(argv[i], keys[k], length) == 0 &&
				(argv[i][length] == 0 || argv[i][length] == '=');
			i += is_ours && argv[i][length] == 0;
		}
		if (!is_ours)
			out[kept++] = argv[i];
	}
	out[kept++] = (char *)keys[0];
	out[kept++] = (char *)path;
	return out;
}

static int execute(struct sweep *s, const struct sweep_run *run, char *const *argv,
		   const struct json_value **record, struct err *e)
{
	char *slash = strrchr(run->path, '/');
	const char *folder = arena_text(&s->arena, (struct str){ run->path,
					(size_t)(slash - run->path) });
	const char *failure = sweep_path(s, folder, arena_printf(&s->arena, "run=%d.failure.json",
								 run->number));
	struct err why = { 0 }, said = { 0 };
	int rc;

	unlink(run->path);
	if (sweep_enter(s, e) < 0 || file_mkdirs(folder, e) < 0)
		return -1;
	rc = sweep_command(s, argv, &said, &why);
	if (why.code == ERR_CANCELLED) {
		unlink(run->path);
		*e = why;
		return -1;
	}
	if (rc == 0)
		*record = sweep_record_merge(s, run, &why);
	if (*record) {
		unlink(failure);
		return 0;
	}
	unlink(run->path);
	return sweep_fail(s, failure, &(struct sweep_failure){
		.type = rc > 0 ? "CalledProcessError" : "OSError", .text = why.text,
		.serve = run->first, .bench = run->second, .run = run->number }, e);
}

static int one(struct sweep *s, char *const *base, const struct sweep_run *run,
	       const struct json_value **record, struct err *e)
{
	char **argv = command(s, base, run->first, run->second, run->path);

	*record = sweep_record_read(s, run);
	if (!*record && !s->o->dry_run && s->hooks->progress)
		s->hooks->progress(s->hooks->self, &s->progress);
	sweep_line(s, "[BEGIN BENCHMARK]");
	sweep_line(s, "Serve overrides: %s", sweep_comb_text(s, run->first));
	sweep_line(s, "Startup overrides: %s", sweep_comb_text(s, run->second));
	sweep_line(s, "Run Number: %d", run->number);
	sweep_line(s, "Benchmark command: %s", sweep_argv_text(s, argv));
	sweep_line(s, "Output file: %s", run->path);
	if (*record) {
		sweep_line(s, "Found existing results.");
		sweep_line(s, "[SKIPPED BENCHMARK]");
		return 0;
	}
	if (!s->o->dry_run && (execute(s, run, argv, record, e) < 0))
		return -1;
	if (s->o->dry_run || *record)
		sweep_line(s, "[END BENCHMARK]");
	return 0;
}

static int level(struct sweep *s, char *const *base, const struct json_value *serve,
		 const struct json_value *startup, struct err *e)
{
	const char *folder = sweep_path(s, s->folder, params_folder(
		(struct params_side){ "SERVE-", serve }, (struct params_side){ "STARTUP-", startup },
		NULL, &s->arena));
	struct sweep_records records = { 0 };
	const struct json_value *record;

	if (s->o->resume.is_set && !s->o->dry_run)
		sweep_record_sweep_out(s, folder);
	s->progress.point++;
	for (int i = 0; i < s->o->num_runs; i++) {
		const struct sweep_run run = { serve, startup, i, sweep_path(s, folder,
			arena_printf(&s->arena, "run=%d.json", i)) };

		s->progress.run = (unsigned)i + 1;
		if (one(s, base, &run, &record, e) < 0)
			return -1;
		if (record)
			sweep_records_add(s, &records, record);
	}
	if (s->o->dry_run || records.n == 0)
		return 0;
	sweep_add(s, &records);
	return sweep_record_summary(s, folder, &records, e);
}

static int run_all(struct sweep *s, char *const *base, struct err *e)
{
	int rc = 0;

	s->progress.points = (unsigned)(s->serve.n * s->bench.n);
	s->progress.runs = (unsigned)s->o->num_runs;
	for (size_t i = 0; rc == 0 && i < s->serve.n; i++)
		for (size_t k = 0; rc == 0 && k < s->bench.n; k++)
			rc = level(s, base, &s->serve.item[i], &s->bench.item[k], e);
	return rc;
}

int sweep_startup(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e)
{
	struct sweep s;
	char **base;
	int rc = sweep_begin(&s, o, hooks, e);

	if (rc == 0) {
		rc = words_split(str_of(o->startup_cmd), &s.arena, &base, NULL, e);
		if (rc < 0)
			err_wrap(e, "--startup-cmd");
		else if (!*base)
			rc = err_set(e, ERR_USAGE, "--startup-cmd: the command is empty");
		else
			rc = sweep_refuse_gates("--startup-cmd", base, e);
	}
	if (rc == 0 && (filter(&s, &s.serve, *base, e) < 0 || filter(&s, &s.bench, *base, e) < 0))
		rc = -1;
	if (rc == 0)
		rc = sweep_finish(&s, run_all(&s, base, e), e);
	sweep_release(&s);
	return rc;
}
