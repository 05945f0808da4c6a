/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_watch.c - see run_parts.h: the machine beside an engine without a server.
 *
 * Load is what goes on between the first and the last sign of progress of the measured batch or
 * iterations; loading and warming up are before it. Of start-ups everything is measured. The
 * engine's program descends from this process, so the processes that are watched are ours with all
 * below it.
 */
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiment/run_parts.h"
#include "report/system.h"

void watch_begin_offline(struct run *r, struct run_watch *w)
{
	const struct experiment_telemetry *t = &r->x->telemetry;
	const struct allocation *got = &r->held->allocation;
	const struct system_process self = { getpid(), "engine" };
	const char **gpu = arena_alloc(&r->held->arena, (got->n_gpus + 1) * sizeof(*gpu));
	struct system_opts o = {
		.gpu = t->gpu && got->n_gpus, .host = t->host, .process = t->process,
		.interval_ns = (int64_t)(t->interval_s * 1e9), .gpus = gpu,
		.processes = &self, .n_processes = 1,
	};

	*w = (struct run_watch){ 0 };
	if (!t->is_enabled || !(o.gpu || o.host || o.process))
		return;
	for (size_t i = 0; i < got->n_servers; i++)
		for (size_t k = 0; k < got->server[i].n_gpus && o.n_gpus < got->n_gpus; k++)
			gpu[o.n_gpus++] = got->server[i].gpu[k].uuid;
	w->began_ns = clock_real_ns();
	w->system = system_begin(&o);
}

void watch_progress(struct run_watch *w, const char *what)
{
	static const char *const measured[] = { "Processed prompts", "Bench iterations" };

	for (size_t i = 0; i < sizeof(measured) / sizeof(*measured); i++)
		if (strcmp(what, measured[i]) == 0) {
			w->to_ns = clock_real_ns();
			w->from_ns = w->from_ns ? w->from_ns : w->to_ns;
		}
}

static double number(struct json_slice object, const char *key)
{
	struct json_slice v;
	double n;

	return json_member(object, key, &v) && json_to_f64(v, &n) ? n : NAN;
}

/*
 * In so many seconds at the rate of a set of requests; other modes have no such rate. The first
 * sign of progress comes a little after the beginning, and there may have been several runs.
 */
static struct metrics_tokens tokens_of(struct str result, double seconds)
{
	struct json_scan scan = { .text = result };
	struct metrics_tokens tokens = { NAN, NAN };
	struct json_slice object, ours;
	double elapsed_s;

	if (!result.n || json_next(&scan, &object, NULL) < 0 ||
	    !json_member(object, "profllm", &ours))
		return tokens;
	elapsed_s = number(object, "elapsed_time");
	tokens.input = number(ours, "total_prompt_tokens") / elapsed_s * seconds;
	tokens.output = number(ours, "total_output_tokens") / elapsed_s * seconds;
	return tokens;
}

void watch_end_offline(struct run *r, struct run_watch *w)
{
	struct metrics_tokens tokens;
	struct buf json = { 0 };
	struct json_writer out = json_writer(&json);
	struct record record = { 0 };
	struct metrics_system m;
	struct arena arena = { 0 };

	if (!w->system)
		return;
	system_end(w->system, &record);
	record.start_ns = w->from_ns ? w->from_ns : w->began_ns;
	record.stop_ns = w->to_ns > record.start_ns ? w->to_ns : clock_real_ns();
	tokens = tokens_of(r->out->result, (double)(record.stop_ns - record.start_ns) / 1e9);
	metrics_system(&m, &record, &tokens, &arena);
	if (m.is_told) {
		report_system_json(&m, &out);
		r->out->system = run_keep(r, &json);
	}
	buf_release(&json);
	record_release(&record);
	arena_release(&arena);
}
