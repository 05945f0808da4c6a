/* SPDX-License-Identifier: Apache-2.0 */
/* web/job.c - see job.h; the routes below /api/jobs. */
#include "web/job.h"

#include <math.h>

#include "base/mem.h"
#include "web/events.h"
#include "web/launch.h"
#include "web/state.h"

#define LISTED 50
#define LISTED_MAX 1000

int job_find(const struct web_request *r, struct web_answer *a, struct job *out, struct err *e)
{
	if (store_job(r->store, arena_text(r->arena, r->id[0]), r->arena, out, e) == 0)
		return 0;
	if (e->code == ERR_USAGE)
		a->status = 404;
	return -1;
}

bool job_is_over(const struct job *job)
{
	return !str_is(job->state, "waiting") && !str_is(job->state, "running");
}

static void put_time(struct json_writer *j, const char *key, double s)
{
	json_key(j, key);
	if (isnan(s))
		json_put_null(j);
	else
		json_put_f64(j, s);
}

/* What the job's kind keeps, and the runs that came of it. */
static void put_detail(struct json_writer *j, struct str detail)
{
	struct json_scan s = { .text = detail };
	struct json_slice object = { 0 }, ids;
	bool is_object = detail.n && json_next(&s, &object, NULL) == 0 &&
			 object.kind == JSON_OBJECT;

	json_member_raw(j, "detail", is_object ? object.raw : STR("{}"));
	json_member_raw(j, "run_ids", is_object && json_member(object, "run_ids", &ids) ? ids.raw :
			STR("[]"));
}

void job_put(struct json_writer *j, const struct job *job)
{
	static const enum put_outcome all[] = { PUT_NEW, PUT_DUPLICATE, PUT_CONFLICT, PUT_INVALID };

	json_member_str(j, "job_id", job->id);
	json_member_str(j, "kind", job->kind);
	json_member_str(j, "state", job->state);
	put_time(j, "created", job->created_s);
	put_time(j, "ended", job->ended_s);
	json_member_int(j, "total", (int64_t)job->n_files);
	json_member_int(j, "done", (int64_t)job->n_done);
	json_member_object(j, "counts");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		json_member_int(j, put_outcome_name(all[i]), (int64_t)job->n_outcome[all[i]]);
	json_end_object(j);
	put_detail(j, job->detail);
}

static void put_file(struct json_writer *j, const struct job_file *f)
{
	json_begin_object(j);
	json_member_str(j, "name", f->name);
	json_member_text(j, "outcome", f->is_done ? put_outcome_name(f->result.outcome) : NULL);
	json_member_int(j, "runs", (int64_t)f->n_runs);
	json_key(j, "id");
	if (f->result.id)
		json_put_int(j, f->result.id);
	else
		json_put_null(j);
	json_key(j, "reason");
	if (f->result.reason.n)
		json_put_str(j, f->result.reason);
	else
		json_put_null(j);
	json_end_object(j);
}

void job_put_files(struct json_writer *j, const struct job *job, bool *seen)
{
	json_member_array(j, "files");
	for (size_t i = 0; i < job->n_files; i++) {
		if (seen && (seen[i] || !job->file[i].is_done))
			continue;
		if (seen)
			seen[i] = true;
		put_file(j, &job->file[i]);
	}
	json_end_array(j);
}

/* ---- routes ---- */

static int jobs_list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str limit = web_param(r, "limit");
	uint64_t most = LISTED;
	struct job *job;
	size_t n;

	if (limit.n && (!str_to_u64(limit, &most) || most < 1 || most > LISTED_MAX))
		return err_set(e, ERR_USAGE, "limit: expected a number from 1 to %d", LISTED_MAX);
	if (store_jobs(r->store, (size_t)most, r->arena, &job, &n, e) < 0)
		return -1;
	json_key(&a->json, "total");
	json_put_int(&a->json, (int64_t)n);
	json_key(&a->json, "items");
	json_begin_array(&a->json);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&a->json);
		job_put(&a->json, &job[i]);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	json_key(&a->json, "next");
	json_put_null(&a->json);
	return 0;
}

static int job_show(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	job_put(&a->json, &job);
	return 0;
}

static int job_events(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (str_is(job.kind, "run"))
		launch_events(r, &job, a);
	else
		events_upload(r, &job, a);
	return 0;
}

static int job_log(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (!str_is(job.kind, "run")) {
		a->status = 404;
		return err_set(e, ERR_USAGE, "job %.*s has no log", (int)job.id.n, job.id.p);
	}
	return launch_log(r, &job, a, e);
}

static int job_cancel(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (job_is_over(&job)) {
		a->status = 409;
		return err_set(e, ERR_USAGE, "job %.*s is %.*s already", (int)job.id.n, job.id.p,
			       (int)job.state.n, job.state.p);
	}
	if (str_is(job.kind, "run"))
		return launch_cancel(r->web, &job, e);
	if (store_job_state(r->store, arena_text(r->arena, job.id), "cancelled", (struct str){ 0 },
			    e) < 0) {
		if (e->code == ERR_USAGE) /* it ended at this moment */
			a->status = 409;
		return -1;
	}
	atomic_fetch_add(&r->web->job_changes, 1);
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/jobs", 0, jobs_list },
	{ "GET", "/api/jobs/{id}", 0, job_show },
	{ "GET", "/api/jobs/{id}/events", 0, job_events },
	{ "GET", "/api/jobs/{id}/log", 0, job_log },
	{ "POST", "/api/jobs/{id}/cancel", ROUTE_CHANGES | ROUTE_LAUNCHES, job_cancel },
};
const struct web_routes job_routes = { routes, sizeof(routes) / sizeof(*routes) };
