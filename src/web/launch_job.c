/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch_job.c - see launch_parts.h.
 *
 * A job's folder is its id below the dashboard's folder: no path is ever taken from the store.
 * "owner" of its detail is the process that runs it, by number and start time.
 */
#include <errno.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "proc/tree.h"
#include "web/launch_parts.h"

#define JOBS_LOOKED_AT 1000

char *launch_folder(const struct web *w, const struct job *job)
{
	char id[17];

	if (job->id.n != 16)
		return NULL;
	for (size_t i = 0; i < 16; i++)
		if (str_hex(job->id.p[i]) < 0)
			return NULL;
	snprintf(id, sizeof(id), "%.*s", 16, job->id.p);
	return file_join(w->o.folder, id);
}

void launch_detail(const struct started *s, struct buf *out)
{
	struct json_writer j = json_writer(out);
	struct tree_process self = { 0 };
	char owner[64] = "";

	if (tree_process_read(getpid(), &self))
		snprintf(owner, sizeof(owner), "%d %llu", (int)self.pid,
			 (unsigned long long)self.start);
	json_begin_object(&j);
	json_member_text(&j, "name", s->name);
	json_member_text(&j, "status", s->status);
	json_member_text(&j, "reason", s->reason);
	json_key(&j, "exit");
	if (s->has_code)
		json_put_int(&j, s->code);
	else
		json_put_null(&j);
	json_member_text(&j, "owner", owner);
	json_member_raw(&j, "run_ids", str_of(s->run_ids ? s->run_ids : "[]"));
	json_end_object(&j);
}

static char *text_of(const struct json_value *v, const char *key)
{
	struct str text = json_text(json_get(v, key), (struct str){ 0 });

	return text.p ? mem_copy(text.p, text.n) : NULL;
}

void launch_read_status(struct started *s, struct str document)
{
	struct arena arena = { 0 };
	struct json_value *v = NULL;

	if (document.n && json_parse(&arena, document, &v, NULL) == 0) {
		free(s->status);
		s->status = text_of(v, "status");
		/* The run has ended, and not by itself. */
		if (s->status && strcmp(s->status, "running") == 0) {
			free(s->status);
			s->status = mem_text("interrupted");
		}
		free(s->reason);
		s->reason = text_of(json_get(v, "error"), "reason");
	}
	arena_release(&arena);
}

bool launch_read_end(const char *path, size_t bytes, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && buf_reserve(out, bytes) == 0) {
		off_t at = st.st_size > (off_t)bytes ? st.st_size - (off_t)bytes : 0;

		n = pread(fd, out->data, bytes, at);
	}
	if (n > 0) {
		out->len = (size_t)n;
		out->data[n] = 0;
	}
	if (fd >= 0)
		close(fd);
	return n > 0;
}

int launch_make(struct launch *l, struct str config, struct str name, struct started **out,
		struct err *e)
{
	struct started *s = mem_alloc(sizeof(*s));
	struct buf detail = { 0 };
	char *path = NULL;
	int rc;

	s->name = mem_copy(name.n ? name.p : "", name.n);
	launch_detail(s, &detail);
	rc = store_job_begin(l->web->store, STR("run"), buf_str(&detail), s->id, e);
	buf_release(&detail);
	if (rc == 0) {
		s->folder = file_join(l->web->o.folder, s->id);
		path = file_join(s->folder, LAUNCH_CONFIG);
		rc = file_mkdirs(s->folder, e) < 0 ? -1 : file_write_atomic(path, config, e);
		if (rc < 0)
			store_job_state(l->web->store, s->id, "failed", (struct str){ 0 }, NULL);
	}
	free(path);
	if (rc < 0)
		launch_drop(s);
	else
		*out = s;
	return rc;
}

/* ---- what an earlier process left ---- */

static bool has_other_owner(const struct json_value *detail)
{
	uint64_t start;
	pid_t pid;

	return tree_parse_process(json_text(json_get(detail, "owner"), STR("")), &pid, &start) &&
	       pid != getpid() && tree_is_running(pid, start);
}

/* One that waits or ran, and whose owner is no more. */
static int resume_one(struct launch *l, const struct job *job, struct arena *a, struct err *e)
{
	struct json_value *detail = NULL;
	char *folder = launch_folder(l->web, job), *config;
	struct started *s;
	bool is_ours = folder && file_is_dir(folder);
	int rc = 0;

	json_parse(a, job->detail, &detail, NULL);
	if (!is_ours || has_other_owner(detail)) {
		free(folder);
		return 0;
	}
	s = mem_alloc(sizeof(*s));
	s->folder = folder;
	s->name = text_of(detail, "name");
	snprintf(s->id, sizeof(s->id), "%.*s", (int)job->id.n, job->id.p);
	config = file_join(folder, LAUNCH_CONFIG);
	if (str_is(job->state, "waiting") && file_exists(config)) {
		launch_add(l, s);
	} else {
		struct buf text = { 0 };

		s->reason = mem_text("the dashboard ended while it ran");
		launch_detail(s, &text);
		rc = store_job_state(l->web->store, s->id, "failed", buf_str(&text), e);
		buf_release(&text);
		launch_drop(s);
	}
	free(config);
	return rc;
}

int launch_resume(struct launch *l, struct err *e)
{
	struct arena arena = { 0 };
	struct job *job;
	size_t n;
	int rc = store_jobs(l->web->store, JOBS_LOOKED_AT, &arena, &job, &n, e);

	/* Oldest first, as they were asked for. */
	for (size_t i = rc == 0 ? n : 0; i-- > 0 && rc == 0;)
		if (str_is(job[i].kind, "run") && !job_is_over(&job[i]))
			rc = resume_one(l, &job[i], &arena, e);
	arena_release(&arena);
	return rc;
}
