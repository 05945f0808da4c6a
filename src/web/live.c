/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - runs that report to the dashboard while they are measured (`--dashboard URL`).
 *
 * A run begins, sends samples about once a second, and ends with its result, which goes into the
 * store as an upload does. Everything before the end is kept in memory only, within LIVE_RUNS_MAX
 * runs of LIVE_POINTS_MAX points each: when a run has more samples, pairs of neighbours become one
 * point, so that old and new parts of a curve are equally fine. A run that has sent nothing for
 * LIVE_LOST_S is lost; it is running again as soon as it sends something.
 *
 * Only the user who began a run may add to it. Times of samples are seconds since the run began, by
 * its own clock.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "web/api.h"
#include "web/web_internal.h"

#define LIVE_RUNS_MAX 64
#define LIVE_RETRY_S "60" /* after which a refused client may try again */
#define LIVE_POINTS_MAX 600
#define LIVE_SAMPLES_MAX 120      /* in one request */
#define LIVE_TEXT_BYTES_MAX 200   /* a name, a stage, the user who began it */
#define LIVE_FAILURE_BYTES_MAX 1000
#define LIVE_RUN_SECONDS_MAX 1e7  /* of a sample's time */
#define LIVE_NUMBER_MAX 1e15
#define LIVE_LOST_S 60
#define LIVE_KEPT_S 3600          /* after its end or its last sample */

/* Members of a sample, and the tracks they become. */
static const struct live_track { const char *member, *key, *label, *unit; } tracks[] = {
	{ "tokens_per_s", "output_tokens_per_s", "Output tokens/s", "tokens/s" },
	{ "running", "requests_running", "Requests running", "requests" },
	{ "waiting", "requests_waiting", "Requests waiting", "requests" },
	{ "kv_cache_percent", "kv_cache_percent", "KV cache", "%" },
	{ "gpu_util_percent", "gpu_util_percent", "GPU utilization", "%" },
	{ "gpu_power_w", "gpu_power_w", "GPU power", "W" },
	{ "ttft_ms", "ttft_ms", "TTFT", "ms" },
	{ "itl_ms", "itl_ms", "ITL", "ms" },
};
#define TRACKS (sizeof(tracks) / sizeof(*tracks))
#define SAMPLE_MEMBERS "t_s done failed total stage tokens_per_s running waiting kv_cache_percent " \
	"gpu_util_percent gpu_power_w ttft_ms itl_ms"
enum { TRACK_TOKENS = 0, TRACK_WAITING = 2, TRACK_KV = 3, TRACK_GPU = 4, TRACK_TTFT = 6 };

struct live_point {
	double t_s, y[TRACKS];        /* means; NAN: not known */
	uint32_t n;                   /* samples in it */
};

struct live_run {
	char id[17];
	char name[LIVE_TEXT_BYTES_MAX + 1], kind[LIVE_TEXT_BYTES_MAX + 1];
	char run_id[LIVE_TEXT_BYTES_MAX + 1], who[LIVE_TEXT_BYTES_MAX + 1];
	char stage[LIVE_TEXT_BYTES_MAX + 1], failure[LIVE_FAILURE_BYTES_MAX + 1];
	int64_t began_ns, seen_ns;    /* CLOCK_REALTIME, CLOCK_MONOTONIC */
	int64_t total, done, failed;  /* requests; total -1: not known */
	int64_t run;                  /* the store's number of its result; 0: none yet */
	bool has_ended;
	double t_s, last[TRACKS];     /* of the last sample */
	uint32_t per_point;           /* samples that a full point has */
	size_t n_points, n_failed;
	double failed_s[LIVE_POINTS_MAX];
	struct live_point point[LIVE_POINTS_MAX];
};

struct live {
	pthread_mutex_t lock;
	struct live_run *run[LIVE_RUNS_MAX];
	size_t n;
	double lost_s;
};

void live_open(struct web *w)
{
	struct live *l = mem_alloc(sizeof(*l));

	pthread_mutex_init(&l->lock, NULL);
	l->lost_s = w->o.live_lost_s > 0 ? w->o.live_lost_s : LIVE_LOST_S;
	w->live = l;
}

void live_close(struct web *w)
{
	if (!w->live)
		return;
	for (size_t i = 0; i < w->live->n; i++)
		free(w->live->run[i]);
	pthread_mutex_destroy(&w->live->lock);
	free(w->live);
	w->live = NULL;
}

/* ---- the list; all below with the lock held ---- */

static double silent_s(const struct live_run *x)
{
	return (double)(clock_mono_ns() - x->seen_ns) / 1e9;
}

static const char *state_of(const struct live *l, const struct live_run *x)
{
	return x->has_ended ? "done" : silent_s(x) > l->lost_s ? "lost" : "running";
}

static void drop_run(struct live *l, size_t i)
{
	assert(i < l->n);
	free(l->run[i]);
	l->n--;
	memmove(&l->run[i], &l->run[i + 1], (l->n - i) * sizeof(*l->run));
}

/* Drops runs that ended long ago; if the list is still full, also the first that is not running. */
static void make_room(struct live *l)
{
	for (size_t i = l->n; i-- > 0;)
		if (strcmp(state_of(l, l->run[i]), "running") != 0 && silent_s(l->run[i]) > LIVE_KEPT_S)
			drop_run(l, i);
	for (size_t i = 0; l->n == LIVE_RUNS_MAX && i < l->n; i++)
		if (strcmp(state_of(l, l->run[i]), "running") != 0)
			drop_run(l, i);
}

static struct live_run *find_run(const struct live *l, struct str id)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(id, l->run[i]->id))
			return l->run[i];
	return NULL;
}

static void keep_text(char *out, size_t room, struct str text)
{
	snprintf(out, room, "%.*s", (int)(text.n < room ? text.n : room - 1), text.n ? text.p : "");
}

#define KEEP(out, text) keep_text(out, sizeof(out), text)

/* The run in the path. NULL, and the answer says why: there is none, or another user began it. */
static struct live_run *own_run(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct live_run *x = find_run(r->web->live, r->id[0]);

	if (!x)
		asked_refuse(a, 404, e, "live run \"%.*s\" does not exist; POST /api/live begins one",
			     (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p);
	else if (!str_is(r->who, x->who))
		asked_refuse(a, 403, e, "live run %s was begun with another token; only that one may "
			     "add to it", x->id);
	else
		return x;
	return NULL;
}

/* ---- points ---- */

static double mean_of(double a, uint32_t n_a, double b, uint32_t n_b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return (a * n_a + b * n_b) / ((double)n_a + n_b);
}

static void merge_point(struct live_point *into, const struct live_point *p)
{
	for (size_t k = 0; k < TRACKS; k++)
		into->y[k] = mean_of(into->y[k], into->n, p->y[k], p->n);
	into->t_s = mean_of(into->t_s, into->n, p->t_s, p->n);
	into->n += p->n;
}

static void halve_points(struct live_run *x)
{
	for (size_t i = 0; i < LIVE_POINTS_MAX / 2; i++) {
		struct live_point two = x->point[2 * i];

		merge_point(&two, &x->point[2 * i + 1]);
		x->point[i] = two;
	}
	x->n_points = LIVE_POINTS_MAX / 2;
	x->per_point *= 2;
}

static void add_point(struct live_run *x, const struct live_point *p)
{
	struct live_point *last = x->n_points ? &x->point[x->n_points - 1] : NULL;

	if (last && last->n < x->per_point) {
		merge_point(last, p);
		return;
	}
	if (x->n_points == LIVE_POINTS_MAX)
		halve_points(x);
	x->point[x->n_points++] = *p;
}

/* ---- beginning ---- */

/* A whole number from 0 on; absent or null: otherwise. */
static int read_count(const struct json_value *v, const char *pointer, int64_t otherwise,
		      int64_t *out, const struct web_request *r, struct web_answer *a,
		      struct err *e)
{
	*out = otherwise;
	if (!v || v->kind == JSON_NULL)
		return 0;
	if (v->kind != JSON_INT || v->integer < 0 || (double)v->integer > LIVE_NUMBER_MAX)
		return asked_wrong(a, e, r->arena, pointer, "a whole number from 0 to 1e15");
	*out = v->integer;
	return 0;
}

static int add_run(const struct web_request *r, struct web_answer *a, const struct live_run *made,
		   struct err *e)
{
	struct live *l = r->web->live;
	uint64_t random = 0;

	make_room(l);
	if (l->n == LIVE_RUNS_MAX) {
		web_set_header(r, a, "Retry-After", LIVE_RETRY_S);
		return asked_refuse(a, 429, e, "%d runs report to this dashboard already "
				    "(LIVE_RUNS_MAX); wait until one of them has ended", LIVE_RUNS_MAX);
	}
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return asked_refuse(a, 503, e, "the system has no random bytes yet; try again");
	l->run[l->n] = mem_alloc(sizeof(*made));
	*l->run[l->n] = *made;
	snprintf(l->run[l->n++]->id, sizeof(made->id), "%016llx", (unsigned long long)random);
	return 0;
}

/* A client that lost its connection begins again with the same run_id: it is the same run. */
static struct live_run *same_run(const struct live *l, const struct live_run *made)
{
	for (size_t i = 0; *made->run_id && i < l->n; i++)
		if (!l->run[i]->has_ended && strcmp(l->run[i]->run_id, made->run_id) == 0 &&
		    strcmp(l->run[i]->who, made->who) == 0)
			return l->run[i];
	return NULL;
}

static int live_begin(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct live *l = r->web->live;
	struct str run_id = STR(""), name = STR(""), kind = STR("");
	struct live_run *made, *same;
	int rc = 0;

	if (asked_object(r, a, "run_id name kind total", e) < 0 ||
	    asked_text(r, a, "run_id", LIVE_TEXT_BYTES_MAX, false, &run_id, e) < 0 ||
	    asked_text(r, a, "name", LIVE_TEXT_BYTES_MAX, true, &name, e) < 0 ||
	    asked_text(r, a, "kind", LIVE_TEXT_BYTES_MAX, true, &kind, e) < 0)
		return -1;
	made = arena_alloc(r->arena, sizeof(*made));
	if (read_count(json_get(r->body, "total"), "/total", -1, &made->total, r, a, e) < 0)
		return -1;
	KEEP(made->run_id, run_id);
	KEEP(made->name, name);
	KEEP(made->kind, kind);
	KEEP(made->who, r->who);
	made->began_ns = clock_real_ns();
	made->seen_ns = clock_mono_ns();
	made->per_point = 1;
	for (size_t k = 0; k < TRACKS; k++)
		made->last[k] = NAN;
	pthread_mutex_lock(&l->lock);
	same = same_run(l, made);
	if (same)
		same->seen_ns = made->seen_ns;
	else
		rc = add_run(r, a, made, e);
	if (rc == 0)
		json_member_text(&a->json, "id", same ? same->id : l->run[l->n - 1]->id);
	pthread_mutex_unlock(&l->lock);
	if (rc == 0)
		a->status = 201;
	return rc;
}

/* ---- samples ---- */

/* What one member of a request's list says; total -1 and stage without p: as before. */
struct live_sample { struct live_point p; int64_t done, failed, total; struct str stage; };

static const char *pointer_of(const struct web_request *r, size_t i, const char *member)
{
	return arena_printf(r->arena, "/samples/%zu/%s", i, member);
}

static int read_number(const struct web_request *r, struct web_answer *a,
		       const struct json_value *v, size_t i, const char *member, double *out,
		       struct err *e)
{
	*out = NAN;
	if (!v || v->kind == JSON_NULL)
		return 0;
	*out = json_real(v, NAN);
	if (!(*out >= 0 && *out <= LIVE_NUMBER_MAX))
		return asked_wrong(a, e, r->arena, pointer_of(r, i, member),
				   "a number from 0 to 1e15, or null");
	return 0;
}

static int check_sample_members(const struct web_request *r, struct web_answer *a,
				const struct json_value *v, size_t i, struct err *e)
{
	if (v->kind != JSON_OBJECT)
		return asked_wrong(a, e, r->arena, arena_printf(r->arena, "/samples/%zu", i),
				   "an object with t_s, done and failed");
	for (size_t k = 0; k < v->count; k++) {
		struct str rest = STR(SAMPLE_MEMBERS);
		bool is_known = false;

		while (rest.n)
			is_known |= str_eq(str_cut(&rest, ' '), v->key[k]);
		if (!is_known)
			return asked_unknown(a, e, r->arena, "member of a sample", v->key[k],
					     SAMPLE_MEMBERS);
	}
	return 0;
}

static int read_sample(const struct web_request *r, struct web_answer *a,
		       const struct json_value *v, size_t i, struct live_sample *s, struct err *e)
{
	const struct json_value *stage = json_get(v, "stage");

	*s = (struct live_sample){ .p = { .n = 1 } };
	if (check_sample_members(r, a, v, i, e) < 0)
		return -1;
	s->p.t_s = json_real(json_get(v, "t_s"), NAN);
	if (!(s->p.t_s >= 0 && s->p.t_s <= LIVE_RUN_SECONDS_MAX))
		return asked_wrong(a, e, r->arena, pointer_of(r, i, "t_s"),
				   "seconds since the run began, from 0 to 1e7");
	if (read_count(json_get(v, "done"), pointer_of(r, i, "done"), 0, &s->done, r, a, e) < 0 ||
	    read_count(json_get(v, "failed"), pointer_of(r, i, "failed"), 0, &s->failed, r, a, e) < 0 ||
	    read_count(json_get(v, "total"), pointer_of(r, i, "total"), -1, &s->total, r, a, e) < 0)
		return -1;
	if (stage && (stage->kind != JSON_STRING || stage->text.n > LIVE_TEXT_BYTES_MAX))
		return asked_wrong(a, e, r->arena, pointer_of(r, i, "stage"),
				   "a text of at most 200 bytes");
	s->stage = stage ? stage->text : (struct str){ 0 };
	for (size_t k = 0; k < TRACKS; k++)
		if (read_number(r, a, json_get(v, tracks[k].member), i, tracks[k].member,
				&s->p.y[k], e) < 0)
			return -1;
	return 0;
}

static void take_sample(struct live_run *x, const struct live_sample *s)
{
	if (s->failed > x->failed && x->n_failed < LIVE_POINTS_MAX)
		x->failed_s[x->n_failed++] = s->p.t_s;
	x->done = s->done;
	x->failed = s->failed;
	x->total = s->total >= 0 ? s->total : x->total;
	if (s->stage.p)
		KEEP(x->stage, s->stage);
	x->t_s = s->p.t_s;
	memcpy(x->last, s->p.y, sizeof(x->last));
	add_point(x, &s->p);
}

/* All samples are checked before one is kept. */
static int live_samples(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct json_value *list = json_get(r->body, "samples");
	struct live *l = r->web->live;
	struct live_sample *s;
	struct live_run *x;
	double before = 0;

	if (asked_object(r, a, "samples", e) < 0)
		return -1;
	if (!list || list->kind != JSON_ARRAY || list->count > LIVE_SAMPLES_MAX)
		return asked_wrong(a, e, r->arena, "/samples",
				   "a list of at most 120 samples (LIVE_SAMPLES_MAX)");
	s = arena_alloc(r->arena, (list->count + 1) * sizeof(*s));
	for (size_t i = 0; i < list->count; i++) {
		if (read_sample(r, a, &list->item[i], i, &s[i], e) < 0)
			return -1;
		if (s[i].p.t_s < before)
			return asked_wrong(a, e, r->arena, pointer_of(r, i, "t_s"),
					   "a time that is not before the previous sample's");
		before = s[i].p.t_s;
	}
	pthread_mutex_lock(&l->lock);
	x = own_run(r, a, e);
	if (x && x->has_ended) {
		asked_refuse(a, 409, e, "live run %s has ended", x->id);
		x = NULL;
	} else if (x && list->count && s[0].p.t_s < x->t_s) {
		asked_wrong(a, e, r->arena, "/samples/0/t_s",
			    "a time that is not before the last sample's");
		x = NULL;
	}
	if (x)
		x->seen_ns = clock_mono_ns();
	for (size_t i = 0; x && i < list->count; i++)
		take_sample(x, &s[i]);
	pthread_mutex_unlock(&l->lock);
	return x ? 0 : -1;
}

/* ---- the end ---- */

/* The members of the body; result without p: none. */
static int read_end(const struct web_request *r, struct web_answer *a, struct str *result,
		    struct buf *failure, struct err *e)
{
	struct json_scan scan = { .text = r->raw };
	struct json_slice all, v;
	struct json_iter it;
	struct str key;

	if (!r->raw.n)
		return 0;
	if (json_next(&scan, &all, NULL) < 0 || !json_at_end(&scan) || all.kind != JSON_OBJECT)
		return asked_wrong(a, e, r->arena, "", "a JSON object");
	it = json_iter(all);
	while (json_each(&it, &key, &v) > 0) {
		if (str_is(key, "result") && v.kind == JSON_OBJECT)
			*result = v.raw;
		else if (str_is(key, "failure") && v.kind == JSON_STRING)
			json_unescape(failure, v.raw);
		else if (str_is(key, "result") || str_is(key, "failure"))
			return asked_wrong(a, e, r->arena, str_is(key, "result") ? "/result" : "/failure",
					   str_is(key, "result") ? "an object" : "a text");
		else
			return asked_unknown(a, e, r->arena, "member", key, "result failure");
	}
	return 0;
}

static int end_run(const struct web_request *r, struct web_answer *a, struct str failure,
		   struct err *e)
{
	struct live *l = r->web->live;
	struct live_run *x;
	bool had_ended = false;

	pthread_mutex_lock(&l->lock);
	x = own_run(r, a, e);
	if (x) {
		had_ended = x->has_ended;
		x->has_ended = true;
		x->seen_ns = clock_mono_ns();
		KEEP(x->failure, failure);
	}
	pthread_mutex_unlock(&l->lock);
	if (had_ended)
		return asked_refuse(a, 409, e, "live run %.*s has ended already", (int)r->id[0].n,
				    r->id[0].p);
	return x ? 0 : -1;
}

/* The run may have been dropped for another one since. */
static void note_result(const struct web_request *r, int64_t run, const char *failure)
{
	struct live *l = r->web->live;
	struct live_run *x;

	pthread_mutex_lock(&l->lock);
	x = find_run(l, r->id[0]);
	if (x && failure)
		KEEP(x->failure, str_of(failure));
	if (x)
		x->run = run;
	pthread_mutex_unlock(&l->lock);
}

/* The run has ended, even if its result is not stored. */
static int live_end(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct buf failure = { 0 };
	struct str result = { 0 };
	int64_t run = 0;
	int rc = read_end(r, a, &result, &failure, e);

	if (rc == 0)
		rc = end_run(r, a, buf_str(&failure), e);
	buf_release(&failure);
	if (rc == 0 && result.n) {
		rc = upload_put(r, STR("live"), result, a, &run, e);
		note_result(r, run, rc < 0 ? e->text : NULL);
	}
	if (rc == 0)
		data_put_key_id(&a->json, "run", run);
	return rc;
}

/* ---- looking ---- */

static void put_item_members(struct json_writer *w, const struct live *l, const struct live_run *x)
{
	int64_t ago_ns = clock_mono_ns() - x->seen_ns;

	json_member_text(w, "id", x->id);
	json_member_text(w, "name", x->name);
	json_member_text(w, "kind", x->kind);
	json_member_text(w, "who", x->who);
	data_put_key_or_null(w, "stage", str_of(x->stage));
	data_put_key_number(w, "started_s", (double)(x->began_ns / 1000000) / 1000);
	data_put_key_number(w, "seen_s", (double)((clock_real_ns() - ago_ns) / 1000000) / 1000);
	data_put_key_number(w, "elapsed_s", x->t_s);
	json_key(w, "total");
	if (x->total < 0)
		json_put_null(w);
	else
		json_put_int(w, x->total);
	json_member_int(w, "done", x->done);
	json_member_int(w, "failed", x->failed);
	data_put_key_number(w, "tokens_per_s", x->last[TRACK_TOKENS]);
	data_put_key_number(w, "ttft_ms", x->last[TRACK_TTFT]);
	data_put_key_id(w, "run", x->run);
	data_put_key_or_null(w, "failure", str_of(x->failure));
	json_member_text(w, "state", state_of(l, x));
}

static bool has_track(const struct live_run *x, size_t track)
{
	for (size_t i = 0; i < x->n_points; i++)
		if (!isnan(x->point[i].y[track]))
			return true;
	return false;
}

static void put_track(struct json_writer *w, const struct live_run *x, size_t track)
{
	json_begin_object(w);
	json_member_text(w, "key", tracks[track].key);
	json_member_text(w, "label", tracks[track].label);
	json_member_text(w, "unit", tracks[track].unit);
	json_member_array(w, "t_s");
	for (size_t i = 0; i < x->n_points; i++)
		json_put_f64(w, x->point[i].t_s);
	json_end_array(w);
	json_member_array(w, "y");
	for (size_t i = 0; i < x->n_points; i++) {
		double y = x->point[i].y[track];

		if (isnan(y))
			json_put_null(w);
		else
			json_put_f64(w, y);
	}
	json_end_array(w);
	json_member_null(w, "min");
	json_member_null(w, "max");
	json_end_object(w);
}

static void put_series(struct json_writer *w, const struct live_run *x)
{
	json_member_object(w, "series");
	data_put_key_number(w, "start_s", (double)(x->began_ns / 1000000) / 1000);
	data_put_key_number(w, "duration_s", x->t_s);
	json_member_array(w, "tracks");
	for (size_t k = 0; k < TRACKS; k++)
		if (has_track(x, k))
			put_track(w, x, k);
	json_end_array(w);
	json_member_array(w, "failed_s");
	for (size_t i = 0; i < x->n_failed; i++)
		json_put_f64(w, x->failed_s[i]);
	json_end_array(w);
	json_member_array(w, "missing");
	if (x->n_points && !has_track(x, TRACK_WAITING) && !has_track(x, TRACK_KV))
		json_put_text(w, "This run has no server metrics.");
	if (x->n_points && !has_track(x, TRACK_GPU))
		json_put_text(w, "This run has no GPU telemetry.");
	json_end_array(w);
	json_end_object(w);
}

/* Newest first. */
static int live_list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct live *l = r->web->live;

	(void)e;
	json_member_array(&a->json, "items");
	pthread_mutex_lock(&l->lock);
	make_room(l);
	for (size_t i = l->n; i-- > 0;) {
		json_begin_object(&a->json);
		put_item_members(&a->json, l, l->run[i]);
		json_end_object(&a->json);
	}
	pthread_mutex_unlock(&l->lock);
	json_end_array(&a->json);
	return 0;
}

static int live_one(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct live *l = r->web->live;
	const struct live_run *x;

	pthread_mutex_lock(&l->lock);
	x = find_run(l, r->id[0]);
	if (x) {
		put_item_members(&a->json, l, x);
		put_series(&a->json, x);
	}
	pthread_mutex_unlock(&l->lock);
	return x ? 0 : asked_refuse(a, 404, e, "live run \"%.*s\" does not exist; a run that has ended is "
				    "listed for an hour, and its result is in the store",
				    (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p);
}

static const struct web_route routes[] = {
	{ "GET", "/api/live", ROUTE_QUICK, live_list },
	{ "POST", "/api/live", ROUTE_CHANGES, live_begin },
	{ "GET", "/api/live/{id}", 0, live_one },
	{ "POST", "/api/live/{id}/samples", ROUTE_CHANGES, live_samples },
	{ "POST", "/api/live/{id}/end", ROUTE_CHANGES | ROUTE_RAW, live_end },
};
const struct web_routes live_routes = { routes, sizeof(routes) / sizeof(*routes) };
