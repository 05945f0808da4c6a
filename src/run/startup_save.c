/* SPDX-License-Identifier: Apache-2.0 */
/* startup_save.c - the files of `bench startup`; see startup.h. */
#include "run/startup.h"

#include "base/fmt.h"
#include "json/write.h"
#include "report/report.h"
#include "run/offline_told.h"
#include "run/pytorch.h"

static void put_ours(const struct startup_opts *o, const struct offline_engine *engine,
		     const struct startup_result *r, struct buf *out)
{
	const struct offline_told told = {
		.command = "startup", .backend = o->common.backend,
		.about = r->is_started ? &r->about : NULL,
	};
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	offline_told(&w, &told);
	json_member_text(&w, "model_id", engine->model);
	offline_told_args(&w, engine);
	json_end_object(&w);
}

/* One file for each metric. */
static int save_metrics(const struct startup_opts *o, const struct offline_engine *engine,
			const struct startup_result *r, struct err *e)
{
	const struct run_pytorch_verb verb = { &startup_opt_set, o, engine, o->output_json };
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct arena a = { 0 };
	size_t n = startup_metrics(&r->runs, m, &a);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct buf value = { 0 }, extra = { 0 };
		char number[FMT_F64_BYTES];
		struct pytorch_metric metric = { .name = arena_printf(&a, "avg_%s_time", m[i].key) };

		buf_printf(&value, "[%s]", fmt_f64(number, m[i].mean));
		metric.values = buf_str(&value);
		startup_extra(&m[i], &extra);
		rc = run_pytorch_save_verb(&verb, m[i].key, &metric, 1, buf_str(&extra), e);
		buf_release(&value);
		buf_release(&extra);
	}
	arena_release(&a);
	return rc;
}

void startup_result_json(const struct startup_opts *o, const struct offline_engine *engine,
			 const struct startup_result *r, struct buf *out)
{
	struct buf ours = { 0 };

	put_ours(o, engine, r, &ours);
	startup_json(&r->runs, buf_str(&ours), out);
	buf_release(&ours);
}

void startup_example(const struct startup_opts *o, struct buf *out)
{
	struct startup_iteration one = {
		.startup_s = 1, .compilation_s = 1, .encoder_compilation_s = 1, .spawn_s = 1,
		.ready_s = 1, .dropped_bytes = -1, .left_bytes = -1,
	};
	const int64_t n[] = { o->num_iters_cold, o->num_iters_warmup, o->num_iters_warm };
	struct startup_runs runs = { 0 };
	struct buf ours = { 0 };

	for (size_t i = 0; i < STARTUP_SIDES; i++) {
		runs.side[i].v = &one;
		runs.side[i].n = runs.side[i].wanted = n[i] > 0;
	}
	offline_told_example("startup", &ours);
	startup_json(&runs, buf_str(&ours), out);
	buf_release(&ours);
}

int startup_save(const struct startup_opts *o, const struct offline_engine *engine,
		 const struct startup_result *r, struct err *e)
{
	struct buf json = { 0 };
	int rc;

	if (!o->output_json)
		return 0;
	startup_result_json(o, engine, r, &json);
	rc = report_save(o->output_json, buf_str(&json), false, e);
	buf_release(&json);
	return rc < 0 ? -1 : save_metrics(o, engine, r, e);
}
