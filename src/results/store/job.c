/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - uploads of many files, processed after they were acknowledged.
 *
 * A file's bytes are in job_files until it has an outcome; storing its runs and the outcome is one
 * transaction. So whenever the program ends, each file is either still waiting, or done.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "results/store/store_internal.h"

#define STEP_FILES_MAX 64            /* in one transaction */
#define JOBS_LISTED_MAX 1000
#define STEP_BYTES_MAX (8u << 20)    /* packed; a larger file is processed alone */

static int no_job(const char *id, struct err *e)
{
	return err_set(e, ERR_USAGE, "there is no job %s", id);
}

static void make_id(char id[17])
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)clock_real_ns();
	snprintf(id, 17, "%016llx", (unsigned long long)random);
}

int store_job_begin(struct store *s, struct str kind, struct str detail, char id[17], struct err *e)
{
	struct store_write w;
	int64_t number;
	int rc;

	if (store_fits(kind, STORE_NAME_BYTES_MAX, "the job's kind", e) < 0 ||
	    store_write_begin(s, &w, e) < 0)
		return -1;
	make_id(id);
	rc = store_number(&w, "job", 1, &number, e);
	if (!rc) {
		struct db_value v[] = { db_text(str_of(id)), db_int(number), db_text(kind),
					db_text(STR("waiting")), db_text(detail),
					db_real(store_now_s()) };

		rc = db_do(w.db, "INSERT INTO jobs (id, number, kind, state, detail, created)"
				  " VALUES ($1, $2, $3, $4, $5, $6)", v, 6, e);
	}
	return store_write_end(s, &w, rc, e);
}

/* ERR_USAGE: there is none, or it has ended. */
static int is_open(struct store_write *w, const char *id, struct err *e)
{
	struct db_value v = db_text(str_of(id));
	int64_t found;

	if (db_integer(w->db, "SELECT CASE WHEN ended IS NULL THEN number ELSE -1 END FROM jobs"
			      " WHERE id = $1", &v, 1, 0, &found, e) < 0)
		return -1;
	if (found < 0)
		return err_set(e, ERR_USAGE, "job %s has ended already", id);
	return found ? 0 : no_job(id, e);
}

static int add_file(struct store_write *w, const char *id, struct str name, struct str bytes,
		    int64_t number, struct err *e)
{
	struct buf packed = { 0 }, clean = { 0 };
	struct db_value v[4] = { db_int(number), db_text(str_of(id)),
				 db_text(store_clean_name(&clean, name)) };
	int rc;

	pack_text(bytes, &packed);
	v[3] = db_blob(buf_str(&packed));
	rc = db_do(w->db, "INSERT INTO job_files (id, job, name, bytes, runs, run, reason)"
			   " VALUES ($1, $2, $3, $4, 0, 0, '')", v, 4, e);
	buf_release(&packed);
	buf_release(&clean);
	return rc;
}

int store_job_add_all(struct store *s, const char *id, const struct str *name,
		      const struct str *bytes, size_t n, struct err *e)
{
	struct store_write w;
	int64_t first = 0;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = is_open(&w, id, e);
	if (!rc && n)
		rc = store_number(&w, "job_file", n, &first, e);
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_file(&w, id, name[i], bytes[i], first + (int64_t)i, e);
	return store_write_end(s, &w, rc, e);
}

int store_job_add(struct store *s, const char *id, struct str name, struct str bytes, struct err *e)
{
	return store_job_add_all(s, id, &name, &bytes, 1, e);
}

static int set_state(struct store_write *w, const char *id, const char *state, struct str detail,
		     struct err *e)
{
	bool is_end = !strcmp(state, "done") || !strcmp(state, "failed") ||
		      !strcmp(state, "cancelled");
	struct db_value v[3] = { db_text(str_of(state)),
				 db_real(is_end ? store_now_s() : (double)NAN),
				 db_text(str_of(id)) };
	struct db_value d[2] = { db_text(detail), v[2] };

	if (db_do(w->db, "UPDATE jobs SET state = $1, ended = $2 WHERE id = $3", v, 3, e) < 0)
		return -1;
	if (detail.p && db_do(w->db, "UPDATE jobs SET detail = $1 WHERE id = $2", d, 2, e) < 0)
		return -1;
	if (!is_end)
		return 0;
	/* Files that still wait are no longer needed. */
	return db_do(w->db, "UPDATE job_files SET bytes = NULL WHERE job = $1 AND bytes IS NOT NULL",
		      &v[2], 1, e);
}

int store_job_state(struct store *s, const char *id, const char *state, struct str detail,
		    struct err *e)
{
	static const char *const known[] = { "waiting", "running", "done", "failed", "cancelled" };
	struct store_write w;
	size_t i = 0;
	int rc;

	while (i < 5 && strcmp(state, known[i]))
		i++;
	if (i == 5)
		return err_set(e, ERR_USAGE, "a job is never %s", state);
	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = is_open(&w, id, e);
	if (!rc)
		rc = set_state(&w, id, state, detail, e);
	return store_write_end(s, &w, rc, e);
}

int store_job_resume(struct store *s, double waited_s, struct err *e)
{
	struct db_value v = db_real(store_now_s() - waited_s);
	struct store_write w;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = db_do(w.db, "UPDATE jobs SET state = 'running' WHERE state = 'waiting' AND kind = 'upload'"
			 " AND created <= $1", &v, 1, e);
	return store_write_end(s, &w, rc, e);
}

/* ---- working them off ---- */

struct work_file {
	int64_t id;
	struct str job, name;
	struct read_file read;
	bool is_invalid;
	struct put_result result; /* of the file as a whole */
};

struct work {
	struct arena arena;
	struct work_file *file;
	size_t n, bytes;
};

static void set_invalid(struct work *w, struct work_file *f, const struct err *e)
{
	f->is_invalid = true;
	f->read.n = 0;
	f->result = (struct put_result){ .outcome = PUT_INVALID };
	f->result.reason = arena_str(&w->arena, str_of(e->text));
}

/* id, job, name, bytes */
static int take_file(void *self, const struct db_got *got)
{
	struct work *w = self;
	struct work_file *f = &w->file[w->n];
	struct str packed = db_as_bytes(got->v[3]);
	struct buf text = { .limit = PACK_TEXT_BYTES_MAX };
	struct err why = { 0 };

	if (w->n && w->bytes + packed.n > STEP_BYTES_MAX)
		return 1;
	w->bytes += packed.n;
	w->n++;
	f->id = db_as_int(got->v[0]);
	f->job = db_keep(&w->arena, got->v[1]);
	f->name = db_keep(&w->arena, got->v[2]);
	if (unpack_text(packed, &text, &why) < 0 ||
	    read_document(f->name, arena_str(&w->arena, buf_str(&text)), &w->arena, &f->read,
			  &why) < 0)
		set_invalid(w, f, &why);
	buf_release(&text);
	return w->n == STEP_FILES_MAX;
}

/* The worst outcome of a file's runs. */
static void sum_up(struct work_file *f, const struct put_result *out, size_t n)
{
	static const int rank[] = { [PUT_DUPLICATE] = 0, [PUT_INVALID] = 1, [PUT_NEW] = 2,
				    [PUT_CONFLICT] = 3 };

	f->result = (struct put_result){ .outcome = PUT_DUPLICATE };
	for (size_t i = 0; i < n; i++) {
		if (rank[out[i].outcome] > rank[f->result.outcome])
			f->result.outcome = out[i].outcome;
		if (!f->result.id)
			f->result.id = out[i].id;
		if (!f->result.reason.n)
			f->result.reason = out[i].reason;
	}
}

/* Another process may have been here since the files were read. */
static int still_waits(struct store_write *w, int64_t id, bool *out, struct err *e)
{
	struct db_value v = db_int(id);
	int64_t found;
	int rc = db_integer(w->db, "SELECT id FROM job_files WHERE id = $1 AND outcome IS NULL"
				   " AND bytes IS NOT NULL", &v, 1, 0, &found, e);

	*out = found != 0;
	return rc;
}

/* All files of a job are one upload. */
static int read_new_columns(struct store_write *w, struct str job, struct err *e)
{
	struct db_value v = db_text(job);
	int64_t n;

	if (db_integer(w->db, "SELECT new_columns FROM jobs WHERE id = $1", &v, 1, 0, &n, e) < 0)
		return -1;
	w->new_columns = (size_t)n;
	return 0;
}

static int take_in(struct store *s, struct store_write *w, struct work_file *f, struct arena *a,
		   struct err *e)
{
	struct put_result *out = arena_alloc(a, (f->read.n + 1) * sizeof(*out));
	struct db_value v[5], job[2] = { { 0 }, db_text(f->job) };
	bool waits;

	if (still_waits(w, f->id, &waits, e) < 0)
		return -1;
	if (!waits)
		return 0;
	if (!f->is_invalid) {
		if (read_new_columns(w, f->job, e) < 0 ||
		    store_put_runs(s, w, f->read.run, f->read.n, STR("upload"), a, out, e) < 0)
			return -1;
		sum_up(f, out, f->read.n);
		job[0] = db_int((int64_t)w->new_columns);
		if (db_do(w->db, "UPDATE jobs SET new_columns = $1 WHERE id = $2", job, 2, e) < 0)
			return -1;
	}
	v[0] = db_int(f->result.outcome);
	v[1] = db_int((int64_t)f->read.n);
	v[2] = db_int(f->result.id);
	v[3] = db_text(f->result.reason);
	v[4] = db_int(f->id);
	return db_do(w->db, "UPDATE job_files SET outcome = $1, bytes = NULL, runs = $2, run = $3,"
			     " reason = $4 WHERE id = $5", v, 5, e);
}

static int end_jobs(struct store_write *w, struct err *e)
{
	struct db_value v = db_real(store_now_s());

	return db_do(w->db, "UPDATE jobs SET state = 'done', ended = $1 WHERE state = 'running'"
			     " AND kind = 'upload' AND NOT EXISTS (SELECT 1 FROM job_files f"
			     " WHERE f.job = jobs.id AND f.outcome IS NULL"
			     " AND f.bytes IS NOT NULL)", &v, 1, e);
}

static int take_in_all(struct store *s, struct work *work, size_t first, size_t n, struct err *e)
{
	struct store_write w;
	int rc = 0;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	for (size_t i = first; i < first + n && !rc; i++)
		rc = take_in(s, &w, &work->file[i], &work->arena, e);
	if (!rc)
		rc = end_jobs(&w, e);
	return store_write_end(s, &w, rc, e);
}

/* One by one, so that a faulty file only affects its own outcome. */
static int take_in_each(struct store *s, struct work *work, struct err *e)
{
	for (size_t i = 0; i < work->n; i++) {
		struct err why = { 0 };

		if (take_in_all(s, work, i, 1, &why) == 0)
			continue;
		if (why.code == ERR_IO || why.code == ERR_NET) {
			if (e)
				*e = why;
			return -1;
		}
		set_invalid(work, &work->file[i], &why);
		if (take_in_all(s, work, i, 1, e) < 0)
			return -1;
	}
	return 0;
}

/* Jobs that were released with nothing left to do. */
static int end_idle_jobs(struct store *s, struct err *e)
{
	struct store_write w;
	int64_t n = 0;
	struct db *d = store_reader(s, e);
	int rc = d ? 0 : -1;

	if (d) {
		rc = db_integer(d, "SELECT count(*) FROM jobs WHERE state = 'running'"
				   " AND kind = 'upload'", NULL, 0, 0, &n, e);
		store_reader_back(s, d);
	}
	if (rc || !n)
		return rc;
	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = end_jobs(&w, e);
	return store_write_end(s, &w, rc, e);
}

int store_job_step(struct store *s, struct err *e)
{
	struct work w = { 0 };
	struct err why = { 0 };
	int rc;

	pthread_mutex_lock(&s->step_lock);
	w.file = mem_array(STEP_FILES_MAX, sizeof(*w.file));
	rc = store_ask(s, "SELECT f.id, f.job, f.name, f.bytes FROM job_files f JOIN jobs j"
			  " ON j.id = f.job WHERE f.outcome IS NULL AND f.bytes IS NOT NULL"
			  " AND j.state = 'running' AND j.kind = 'upload' ORDER BY f.id LIMIT 64",
		       NULL, 0, take_file, &w, e);
	if (!rc && w.n && take_in_all(s, &w, 0, w.n, &why) < 0) {
		rc = -1;
		if (why.code != ERR_IO && why.code != ERR_NET)
			rc = take_in_each(s, &w, e);
		else if (e)
			*e = why;
	} else if (!rc && !w.n) {
		rc = end_idle_jobs(s, e);
	}
	pthread_mutex_unlock(&s->step_lock);
	rc = rc ? rc : w.n > 0;
	arena_release(&w.arena);
	free(w.file);
	return rc;
}

/* ---- what became of them ---- */

struct jobs {
	struct arena *a;
	struct job *job;
	size_t n, room;
};

/* id, kind, state, detail, created, ended */
static int take_job(void *self, const struct db_got *got)
{
	struct jobs *l = self;

	if (l->n == l->room)
		return 1;
	l->job[l->n++] = (struct job){
		.id = db_keep(l->a, got->v[0]),
		.kind = db_keep(l->a, got->v[1]),
		.state = db_keep(l->a, got->v[2]),
		.detail = db_keep(l->a, got->v[3]),
		.created_s = db_as_real(got->v[4]),
		.ended_s = db_as_real(got->v[5]),
	};
	return 0;
}

static int take_count(void *self, const struct db_got *got)
{
	struct job *j = self;
	size_t count = (size_t)db_as_int(got->v[1]);

	j->n_files += count;
	if (got->v[0].kind == DB_NULL || (uint64_t)db_as_int(got->v[0]) > PUT_INVALID)
		return 0;
	j->n_done += count;
	j->n_outcome[db_as_int(got->v[0])] += count;
	return 0;
}

static int count_files(struct db *d, struct job *j, struct err *e)
{
	struct db_value v = db_text(j->id);

	return db_run(d, "SELECT outcome, count(*) FROM job_files WHERE job = $1 GROUP BY outcome", &v,
		      1, take_count, j, e);
}

struct files {
	struct arena *a;
	struct job *job;
	size_t n;
};

/* name, outcome, run, reason, runs */
static int take_file_row(void *self, const struct db_got *got)
{
	struct files *l = self;
	struct job_file *f = &l->job->file[l->n];

	if (l->n == l->job->n_files)
		return 1;
	l->n++;
	f->name = db_keep(l->a, got->v[0]);
	f->is_done = got->v[1].kind != DB_NULL;
	if (f->is_done && (uint64_t)db_as_int(got->v[1]) <= PUT_INVALID)
		f->result.outcome = (enum put_outcome)db_as_int(got->v[1]);
	f->result.id = db_as_int(got->v[2]);
	f->result.reason = db_keep(l->a, got->v[3]);
	f->n_runs = (size_t)db_as_int(got->v[4]);
	return 0;
}

static int read_job(struct db *d, struct arena *a, struct str id, struct job *out, struct err *e)
{
	struct jobs one = { .a = a, .job = out, .room = 1 };
	struct files files = { .a = a, .job = out };
	struct db_value v = db_text(id);

	if (db_run(d, "SELECT id, kind, state, detail, created, ended FROM jobs WHERE id = $1", &v, 1,
		   take_job, &one, e) < 0)
		return -1;
	if (!one.n)
		return no_job(arena_text(a, id), e);
	if (count_files(d, out, e) < 0)
		return -1;
	out->file = arena_alloc(a, (out->n_files + 1) * sizeof(*out->file));
	return db_run(d, "SELECT name, outcome, run, reason, runs FROM job_files WHERE job = $1"
			 " ORDER BY id", &v, 1, take_file_row, &files, e);
}

/* One moment: counts and files agree. */
int store_job(struct store *s, const char *id, struct arena *a, struct job *out, struct err *e)
{
	struct db *d = store_reader(s, e);
	int rc = d ? db_begin(d, DB_READ, e) : -1;

	*out = (struct job){ 0 };
	if (!rc)
		rc = db_end(d, read_job(d, a, str_of(id), out, e), e);
	if (d)
		store_reader_back(s, d);
	/* The writer commits before it adds the runs to the index, and holds its lock over both. */
	if (!rc && out->ended_s > 0) {
		pthread_mutex_lock(&s->write_lock);
		pthread_mutex_unlock(&s->write_lock);
	}
	return rc;
}

int store_jobs(struct store *s, size_t limit, struct arena *a, struct job **out, size_t *n,
	       struct err *e)
{
	struct jobs l = { .a = a, .room = limit < JOBS_LISTED_MAX ? limit : JOBS_LISTED_MAX };
	struct db_value v = db_int((int64_t)l.room);
	struct db *d = store_reader(s, e);
	int rc;

	if (!d)
		return -1;
	l.job = arena_alloc(a, (l.room + 1) * sizeof(*l.job));
	rc = db_run(d, "SELECT id, kind, state, detail, created, ended FROM jobs"
		       " ORDER BY number DESC LIMIT $1", &v, 1, take_job, &l, e);
	for (size_t i = 0; i < l.n && !rc; i++)
		rc = count_files(d, &l.job[i], e);
	store_reader_back(s, d);
	*out = l.job;
	*n = l.n;
	return rc;
}

struct job_counts { struct job_count *row; size_t n; };

/* kind, state, count */
static int take_job_count(void *self, const struct db_got *got)
{
	struct job_counts *c = self;
	struct job_count *row = &c->row[c->n++];
	struct str kind = db_as_bytes(got->v[0]), state = db_as_bytes(got->v[1]);

	snprintf(row->kind, sizeof(row->kind), "%.*s", (int)kind.n, kind.p);
	snprintf(row->state, sizeof(row->state), "%.*s", (int)state.n, state.p);
	row->n = (size_t)db_as_int(got->v[2]);
	return c->n == STORE_JOB_COUNTS_MAX;
}

int store_job_counts(struct store *s, struct job_count out[STORE_JOB_COUNTS_MAX], size_t *n,
		     struct err *e)
{
	struct job_counts c = { .row = out };
	struct db_value v = db_int(JOBS_LISTED_MAX);
	int rc = store_ask(s, "SELECT kind, state, count(*) FROM (SELECT kind, state FROM jobs"
			      " ORDER BY number DESC LIMIT $1) AS latest GROUP BY kind, state", &v, 1,
			   take_job_count, &c, e);

	*n = c.n;
	return rc < 0 ? -1 : 0;
}
