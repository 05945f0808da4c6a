/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_run.c - see suite.h: members one after another, and the documents.
 *
 * The state of a suite is only in its members' documents: they say what is done, and the suite's
 * document is made of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "experiment/config/document.h"
#include "experiment/stages/run.h"
#include "experiment/suite/suite_internal.h"
#include "experiment/suite/suite_search.h"
#include "out/compare/markdown.h"
#include "results/read/kind.h"
#include "results/read/read.h"

/* Largest share of the time for rewriting the suite's document. */
#define WRITE_SHARE_MAX 0.05
#define EARLIER_FOLDER "earlier"
#define IMPORTED_FOLDER "upstream"
#define SCHEDULER_FOLDER "scheduler"
#define LEFTOVER_POLL_NS 20000000

/* ---- documents ---- */

static bool read_status(const struct json_value *v, enum outcome_status *out)
{
	struct str text = json_text(json_get(v, "status"), STR(""));

	for (unsigned i = OUTCOME_COMPLETED; i <= OUTCOME_FAILED; i++)
		if (str_is(text, outcome_status_name((enum outcome_status)i))) {
			*out = (enum outcome_status)i;
			return true;
		}
	return false;
}

/* v may be NULL. False: it is not a document. */
static bool read_document_of(const struct json_value *v, struct suite_document *out)
{
	enum result_verdict verdict = RESULT_VALID;
	bool is_good;

	*out = (struct suite_document){ .duration_s = NAN, .startup_s = NAN };
	is_good = v && read_status(v, &out->status);
	if (is_good) {
		const struct json_value *config = json_get(v, "config");
		const struct json_value *servers = json_get(config, "servers");
		struct str hash = json_text(json_get(config, "configured_hash"), STR(""));
		struct str reason = json_text(json_get(json_get(v, "error"), "reason"), STR(""));
		struct str category = json_text(json_get(json_get(v, "error"), "category"),
						STR(""));

		out->has_hash = hash.n > 0;
		snprintf(out->hash, sizeof(out->hash), "%.*s", (int)hash.n, hash.p);
		snprintf(out->reason, sizeof(out->reason), "%.*s", (int)reason.n, reason.p);
		snprintf(out->category, sizeof(out->category), "%.*s", (int)category.n, category.p);
		out->duration_s = json_real(json_get(v, "duration"), NAN);
		if (servers && servers->kind == JSON_ARRAY)
			for (size_t i = 0; i < servers->count; i++) /* the slowest */
				out->startup_s = fmax(out->startup_s, json_real(
					json_get(&servers->item[i], "startup_s"), NAN));
		result_verdict_read(json_get(json_get(v, "trust"), "verdict"), &verdict);
		out->is_valid = verdict == RESULT_VALID;
	}
	out->is_cut = v && str_is(json_text(json_get(v, "status"), STR("")),
				  outcome_status_name(OUTCOME_RUNNING));
	return is_good;
}

/* False: no such file, or not a document. */
static bool suite_document_read(const char *path, struct suite_document *out)
{
	struct arena arena = { 0 };
	bool is_good = read_document_of(result_json(path, DOCUMENT_BYTES_MAX, &arena, NULL), out);

	arena_release(&arena);
	return is_good;
}

bool suite_document_of(const struct suite_member *m, struct suite_document *out)
{
	char hash[sizeof(out->hash)];

	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)m->x.hash);
	if (suite_document_read(m->path, out) && out->has_hash && strcmp(out->hash, hash) == 0)
		return true;
	*out = (struct suite_document){ .duration_s = NAN, .startup_s = NAN };
	return false;
}

bool suite_is_done(const struct suite_member *m)
{
	struct suite_document d;

	return suite_document_of(m, &d) && d.status == OUTCOME_COMPLETED;
}

/* True for a file other than a failed document: a result, or something of another kind. */
static bool has_result(const char *path)
{
	struct suite_document d;
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	       !(suite_document_read(path, &d) && d.status == OUTCOME_FAILED) && !d.is_cut;
}

int suite_write_refused(const struct experiment *x, const char *path, const char *category,
			const char *reason, bool *is_kept, struct err *e)
{
	struct buf text = { .limit = DOCUMENT_BYTES_MAX };
	struct outcome out;
	int rc;

	*is_kept = has_result(path);
	if (*is_kept)
		return 0;
	experiment_refused(category, reason, &out);
	document_write(x, &out, &text);
	rc = file_write_atomic(path, buf_str(&text), e);
	buf_release(&text);
	outcome_release(&out);
	return rc;
}

int suite_write_lost(const struct suite_member *m, const char *category, const char *reason,
		     struct err *e)
{
	struct buf text = { .limit = DOCUMENT_BYTES_MAX };
	struct suite_document d;
	struct outcome out;
	int rc;

	suite_document_read(m->path, &d);
	experiment_refused(category, reason, &out);
	out.stage = d.is_cut ? AT_BENCHMARK : AT_ALLOCATE;
	document_write(&m->x, &out, &text);
	rc = file_write_atomic(m->path, buf_str(&text), e);
	buf_release(&text);
	outcome_release(&out);
	return rc;
}

char *suite_scheduler_folder(const struct suite *s, struct err *e)
{
	char *folder = file_join(s->folder, SCHEDULER_FOLDER);

	/* The folder contains configurations, which may hold secrets. */
	char *whole = file_mkdirs_mode(folder, 0700, e) == 0 ? realpath(folder, NULL) : NULL;

	if (!whole && file_is_dir(folder))
		err_set(e, ERR_IO, "cannot use the folder %s: %s", folder, strerror(errno));
	free(folder);
	return whole;
}

static void put_plan(const struct suite_sitting *t, struct json_writer *w)
{
	const struct suite *s = t->s;

	json_member_object(w, "plan");
	json_member_int(w, "members", (int64_t)s->n);
	json_member_int(w, "repeats", s->n ? (int64_t)s->member[0].x.repeats : 0);
	if (s->is_shuffled)
		json_member_int(w, "shuffle_seed", (int64_t)s->seed);
	else
		json_member_null(w, "shuffle_seed");
	json_member_text(w, "restart", suite_restart_name(suite_has_children(s) ? SUITE_RESTART_ALWAYS :
			 s->restart));
	json_member_int(w, "jobs", s->jobs);
	if (s->where != SUITE_LOCAL)
		json_member_text(w, "scheduler", s->scheduler.kind);
	json_member_array(w, "order");
	for (size_t i = 0; i < s->n; i++)
		json_put_text(w, s->member[s->order[i]].label);
	json_end_array(w);
	json_end_object(w);
}

/* Copies members' documents from file to file: together they need not fit into memory. */
static int put_documents(const struct suite_sitting *t, int fd, struct json_writer *w,
			 bool *has_document)
{
	size_t n = t->s->n + t->n_probe;
	int rc = 0;

	json_member_array(w, "experiments");
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *path = i < t->s->n ? t->s->member[i].path : t->probe[i - t->s->n]->path;
		struct buf text = { .limit = DOCUMENT_BYTES_MAX };
		struct suite_document d;
		struct err e;

		has_document[i] = suite_document_read(path, &d) &&
				  file_read(path, DOCUMENT_BYTES_MAX, &text, &e) == 0;
		if (has_document[i]) {
			json_put_raw(w, str_trim(buf_str(&text)));
			rc = file_write_all(fd, buf_str(w->out));
			buf_reset(w->out);
		}
		buf_release(&text);
	}
	json_end_array(w);
	return rc;
}

static int write_suite(struct suite_sitting *t, struct err *e)
{
	const struct suite *s = t->s;
	int64_t began_ns = clock_mono_ns();
	bool *has_document = mem_array(s->n + t->n_probe + 1, sizeof(*has_document));
	struct buf text = { .limit = SIZE_MAX };
	struct json_writer w = json_writer(&text);
	struct file_swap swap;
	int rc = file_swap_begin(&swap, s->output);

	if (rc == 0) {
		json_begin_object(&w);
		json_member_int(&w, "schema_version", DOCUMENT_SCHEMA_VERSION);
		json_member_text(&w, "suite", s->name);
		put_plan(t, &w);
		rc = put_documents(t, swap.fd, &w, has_document);
		json_member_array(&w, "lacking");
		for (size_t i = 0; i < s->n; i++)
			if (!has_document[i])
				json_put_text(&w, s->member[i].label);
		json_end_array(&w);
		if (s->search)
			suite_search_put(s, &w);
		json_end_object(&w);
		buf_add_char(&text, '\n');
		if (rc == 0)
			rc = file_write_all(swap.fd, buf_str(&text));
		rc = file_swap_end(&swap, rc == 0) < 0 ? -1 : rc;
	}
	buf_release(&text);
	free(has_document);
	t->written_ns = clock_mono_ns();
	t->write_took_ns = t->written_ns - began_ns;
	return rc < 0 ? err_set(e, ERR_IO, "cannot write %s: %s", s->output, strerror(errno)) : 0;
}

/* ---- counting, telling ---- */

bool suite_is_cancelled(const struct suite_sitting *t)
{
	const atomic_bool *cancel = t->hooks->run.cancel;

	return cancel && atomic_load(cancel);
}

static double left_s(const struct suite_sitting *t)
{
	size_t jobs = t->n_running ? t->n_running : t->s->jobs ? t->s->jobs : 1;

	if (t->n_ended == 0)
		return NAN;
	return t->took_s / (double)t->n_ended / (double)jobs *
	       (double)(t->n_due + t->n_probes - t->n_ended);
}

void suite_say_begin(struct suite_sitting *t, const struct suite_member *m, size_t at)
{
	struct suite_now now = {
		.member = m, .at = at, .n = t->n_due + t->n_probes, .left_s = left_s(t),
	};

	if (t->hooks->member)
		t->hooks->member(t->hooks->self, &now);
}

/* ---- failures that others would repeat ---- */

static void keep_cause(struct suite_sitting *t, const struct suite_member *m,
		       const struct suite_document *d)
{
	struct buf text = { 0 };

	if (d->status == OUTCOME_FAILED && suite_cause(&m->x, d->category, &text) &&
	    !map_get(&t->causes, buf_str(&text), NULL)) {
		map_put(&t->causes, arena_str(&t->arena, buf_str(&text)), t->n_causes);
		t->cause = mem_grow(t->cause, t->n_causes + 1, sizeof(*t->cause));
		t->cause[t->n_causes++] = (struct suite_failed){
			m->label, arena_text(&t->arena, str_of(d->reason)), 0,
		};
	}
	buf_release(&text);
}

bool suite_is_futile(struct suite_sitting *t, const struct suite_member *m)
{
	static const char *const categories[] = { "command not found", "model not found",
						  "bad configuration" };
	bool is_futile = false;

	for (size_t i = 0; !is_futile && t->n_causes &&
	     i < sizeof(categories) / sizeof(*categories); i++) {
		struct buf text = { 0 };
		uint64_t at;

		is_futile = suite_cause(&m->x, categories[i], &text) &&
			    map_get(&t->causes, buf_str(&text), &at);
		if (is_futile)
			t->cause[at].n++;
		buf_release(&text);
	}
	return is_futile;
}

static void say_futile(const struct suite_sitting *t)
{
	const struct experiment_hooks *hooks = &t->hooks->run;

	for (size_t i = 0; hooks->warn && i < t->n_causes; i++) {
		const struct suite_failed *c = &t->cause[i];
		struct buf text = { 0 };

		if (!c->n)
			continue;
		buf_printf(&text, "%zu experiment%s not run, because %s fail as %s did: %s", c->n,
			   c->n == 1 ? " was" : "s were", c->n == 1 ? "it would" : "they would",
			   c->label, c->reason);
		hooks->warn(hooks->self, text.data);
		buf_release(&text);
	}
}

static int ended(struct suite_sitting *t, const struct suite_member *m,
		 const struct suite_document *d, double took_s, struct err *e)
{
	struct suite_now now = { .member = m, .n = t->n_due + t->n_probes, .has_ended = true,
				 .took_s = took_s };

	t->tally->completed += d->status == OUTCOME_COMPLETED;
	t->tally->partial += d->status == OUTCOME_PARTIAL;
	t->tally->failed += d->status == OUTCOME_FAILED;
	t->tally->doubtful += d->status != OUTCOME_FAILED && !d->is_valid;
	keep_cause(t, m, d);
	t->n_ended++;
	t->took_s += took_s;
	now.at = t->n_ended;
	now.status = d->status;
	now.reason = *d->reason ? d->reason : NULL;
	now.left_s = left_s(t);
	if (t->hooks->member)
		t->hooks->member(t->hooks->self, &now);
	if (t->s->is_single || (double)(clock_mono_ns() - t->written_ns) * WRITE_SHARE_MAX <
			       (double)t->write_took_ns)
		return 0;
	return write_suite(t, e);
}

int suite_ended(struct suite_sitting *t, const struct suite_member *m, double took_s,
		struct err *e)
{
	struct suite_document d;

	if (!suite_document_read(m->path, &d)) {
		snprintf(d.reason, sizeof(d.reason), "%s", d.is_cut ? "its process was killed" :
			 "it left no document");
		d.status = OUTCOME_FAILED;
	}
	return ended(t, m, &d, took_s, e);
}

/* ---- one after another ---- */

/*
 * Writes the document to its place, else to $TMPDIR. *d gets its content: the place may be one that
 * cannot be read back, a terminal or a pipe.
 */
static int store(const struct suite_member *m, const struct outcome *out, struct suite_document *d,
		 struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	struct buf text = { .limit = DOCUMENT_BYTES_MAX }, other = { 0 };
	struct arena arena = { 0 };
	struct json_value *v;
	struct err second;
	int rc;

	document_write(&m->x, out, &text);
	read_document_of(json_parse(&arena, buf_str(&text), &v, &second) == 0 ? v : NULL, d);
	arena_release(&arena);
	rc = file_write_atomic(m->path, buf_str(&text), e);
	if (rc < 0) {
		buf_printf(&other, "%s/%s.json", tmp && *tmp ? tmp : "/tmp", out->run_id);
		/* All users share $TMPDIR; a path that the user named follows the umask. */
		if (file_write_atomic_mode(other.data, buf_str(&text), 0600, &second) == 0)
			err_wrap(e, "the document is in %s", other.data);
	}
	buf_release(&other);
	buf_release(&text);
	return rc;
}

/*
 * Writes a document that says "running", which remains if the run is killed. Failures to write are
 * handled at the end, when there is a result to lose.
 */
static void announce(const struct suite_member *m, struct outcome *out)
{
	struct outcome now;
	struct buf text = { .limit = DOCUMENT_BYTES_MAX };
	struct stat st;

	outcome_begin(out);
	/* A link may lead to a stream: /dev/stdout. */
	if (lstat(m->path, &st) == 0 && !S_ISREG(st.st_mode))
		return;
	now = *out;
	now.status = OUTCOME_RUNNING;
	document_write(&m->x, &now, &text);
	file_write_atomic(m->path, buf_str(&text), NULL);
	buf_release(&text);
}

/* A child gets the stem of the files after its number: "I/N:STEM". */
static int store_imported(const struct suite_sitting *t, const struct suite_member *m,
			  const struct outcome *out, struct err *e)
{
	const char *told = t->o->member ? strchr(t->o->member, ':') : NULL;
	char *stem;
	int rc;

	if (!m->test)
		return told ? import_store(&m->x, told + 1, out, false, e) : 0;
	stem = suite_imported_stem(t->s, m);
	rc = import_store(&m->x, stem, out, m->test->is_probe, e);
	free(stem);
	return rc;
}

char *suite_imported_stem(const struct suite *s, const struct suite_member *m)
{
	struct buf stem = { 0 };

	buf_printf(&stem, "%s/%s/%s", s->folder, IMPORTED_FOLDER, m->label);
	return buf_take(&stem);
}

/*
 * A child of a killed suite may still be stopping its servers in the member's folder, and will
 * write its document there. No other process uses it: the suite's own folder is locked by us.
 */
static void await_leftover(const struct suite_sitting *t, const struct suite_member *m)
{
	const struct experiment_hooks *hooks = &t->hooks->run;
	const struct timespec pause = { .tv_nsec = LEFTOVER_POLL_NS };
	int64_t until_ns = clock_mono_ns() + clock_span_ns(suite_grace_s(&m->x));
	int fd = open(m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_reported = !hooks->warn;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
	       clock_mono_ns() < until_ns && !suite_is_cancelled(t)) {
		if (!is_reported)
			hooks->warn(hooks->self, "waiting for the end of an earlier run of this "
				    "experiment, which is stopping its servers");
		is_reported = true;
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
}

int suite_run_one(struct suite_sitting *t, const struct suite_member *m, size_t at,
		  struct experiment_site *site, bool is_kept, struct err *e)
{
	struct suite_checked *checked = t->hooks->checked;
	struct experiment_hooks hooks = t->hooks->run;
	struct outcome *out = &t->tally->outcome;
	int64_t began_ns = clock_mono_ns();
	struct suite_document d;
	int rc;

	if (t->tally->single)
		outcome_release(out);
	*out = (struct outcome){ 0 };
	t->tally->single = out;
	suite_say_begin(t, m, at);
	if (!t->s->is_single)
		await_leftover(t, m);
	if (checked && checked->member == m)
		hooks.early = &checked->early;
	announce(m, out);
	if (site->held || is_kept)
		experiment_run_at(&m->x, site, &hooks, out);
	else
		experiment_run(&m->x, &hooks, out);
	if (hooks.early)
		suite_checked_release(checked);
	if (!is_kept)
		experiment_leave(site, &t->hooks->run);
	rc = store(m, out, &d, e);
	if (rc == 0)
		rc = store_imported(t, m, out, e);
	if (rc == 0)
		rc = ended(t, m, &d, (double)(clock_mono_ns() - began_ns) / 1e9, e);
	return rc;
}

static int run_all(struct suite_sitting *t, struct experiment_site *site, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n_due; i++) {
		const struct suite_member *m = &t->s->member[t->due[i]];
		bool is_kept = i + 1 < t->n_due && suite_keeps_servers(t->s, m,
							&t->s->member[t->due[i + 1]]);
		bool is_last = suite_adapt_is_due(t, i);
		bool is_searched = is_last && t->s->restart != SUITE_RESTART_ALWAYS;
		size_t failed = t->tally->failed;

		/* A suite of one has its document, if only to say that it was stopped. */
		if (suite_is_cancelled(t) && !t->s->is_single)
			break;
		if (suite_is_futile(t, m)) {
			experiment_leave(site, &t->hooks->run);
			continue;
		}
		rc = suite_run_one(t, m, i + 1 + t->n_probes, site, is_kept || is_searched, e);
		if (t->s->stop_on_error && t->tally->failed > failed)
			break;
		if (rc == 0 && is_last)
			rc = suite_adapt(t, m, site, e);
		if (!is_kept)
			experiment_leave(site, &t->hooks->run);
	}
	return rc;
}

/* ---- the sitting ---- */

/* Locks the folder for one suite at a time. *fd: to be closed. */
static int enter(const struct suite *s, int *fd, struct err *e)
{
	if (file_mkdirs(s->folder, e) < 0)
		return -1;
	*fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return err_set(e, ERR_IO, "cannot open %s: %s", s->folder, strerror(errno));
	/* A file system without locks does not prevent measuring. */
	if (flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_RUN, "another run is using %s; wait for it to end, or use "
			       "another --output", s->folder);
	return 0;
}

static int find_work(struct suite_sitting *t, struct err *e)
{
	const struct suite *s = t->s;
	struct suite_document d;

	for (size_t i = s->search ? s->search->from : 0; i < s->n; i++) {
		const struct suite_member *m = &s->member[s->order[i]];

		if (!m->is_chosen)
			continue;
		if (t->o->is_resumed && suite_document_of(m, &d) &&
		    d.status == OUTCOME_COMPLETED) {
			t->tally->kept++;
			t->tally->doubtful += !d.is_valid;
		} else {
			t->due[t->n_due++] = s->order[i];
		}
	}
	if (suite_check_only(s, e) < 0)
		return -1;
	return s->where == SUITE_SLURM ? suite_slurm_adopt(t, e) : 0;
}

/* Moves "NAME.json" to earlier/NAME.TIME.json of the folder, or renames it if it is elsewhere. */
static int put_aside(const struct suite *s, const struct suite_member *m, const struct stat *st,
		     struct err *e)
{
	char *folder = file_join(s->folder, EARLIER_FOLDER);
	const char *slash = strrchr(m->path, '/');
	struct str base = str_of(slash ? slash + 1 : m->path);
	struct buf to = { 0 };
	int rc = file_mkdirs(folder, e), renamed;

	if (str_ends(base, STR(".json")))
		base.n -= strlen(".json");
	buf_printf(&to, "%s/%.*s.%lld.%09ld.json", folder, (int)base.n, base.p,
		   (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	renamed = rc == 0 ? rename(m->path, to.data) : 0;
	if (renamed < 0 && errno == EXDEV) {
		buf_reset(&to);
		buf_printf(&to, "%s.%lld.%09ld", m->path, (long long)st->st_mtim.tv_sec,
			   st->st_mtim.tv_nsec);
		renamed = rename(m->path, to.data);
	}
	if (renamed < 0)
		rc = err_set(e, ERR_IO, "cannot rename %s to %s: %s", m->path, to.data,
			     strerror(errno));
	buf_release(&to);
	free(folder);
	return rc;
}

/* A table of tests that no longer exist would be wrong. */
static int put_tables_aside(const struct suite_sitting *t, struct err *e)
{
	char *dir = file_join(t->s->folder, IMPORTED_FOLDER);
	char *folder = file_join(t->s->folder, EARLIER_FOLDER);
	struct buf to = { 0 };
	struct stat st;
	int rc = 0;

	if (stat(dir, &st) == 0 && !t->o->is_resumed && !t->o->only) {
		rc = file_mkdirs(folder, e);
		buf_printf(&to, "%s/%s.%lld.%09ld", folder, IMPORTED_FOLDER,
			   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		if (rc == 0 && rename(dir, to.data) < 0)
			rc = err_set(e, ERR_IO, "cannot rename %s to %s: %s", dir, to.data,
				     strerror(errno));
	}
	buf_release(&to);
	free(folder);
	free(dir);
	return rc;
}

static void say_old(const struct suite_sitting *t, size_t n, size_t n_cut)
{
	const struct experiment_hooks *hooks = &t->hooks->run;
	struct buf text = { 0 };

	if (n_cut)
		buf_printf(&text, "%zu experiment%s interrupted by the end of an earlier run and %s run "
			   "again", n_cut, n_cut == 1 ? " was" : "s were", n_cut == 1 ? "is" : "are");
	if (n_cut && hooks->warn)
		hooks->warn(hooks->self, text.data);
	buf_reset(&text);
	if (n)
		buf_printf(&text, "%zu document%s of earlier runs put aside in %s/%s%s", n,
			   n == 1 ? "" : "s", t->s->folder, EARLIER_FOLDER,
			   t->o->is_resumed ? "" : "; --resume would have kept what is completed");
	if (n && hooks->warn)
		hooks->warn(hooks->self, text.data);
	buf_release(&text);
}

/*
 * Documents of an earlier run are other measurements: if this run ends early they must not be taken
 * for its own. They are moved, not deleted.
 */
static int put_old_aside(const struct suite_sitting *t, struct err *e)
{
	size_t n = 0, n_cut = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n_due; i++) {
		const struct suite_member *m = &t->s->member[t->due[i]];
		struct suite_document d;
		struct stat st;

		if ((t->is_adopted && t->is_adopted[i]) || lstat(m->path, &st) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		suite_document_read(m->path, &d);
		if (d.is_cut) {
			n_cut++;
			unlink(m->path); /* it holds nothing that was measured */
			continue;
		}
		rc = put_aside(t->s, m, &st, e);
		n++;
	}
	if (rc == 0)
		say_old(t, n, n_cut);
	return rc;
}

/* Ends with upstream's tables, and reports which files they left out. */
static int write_tables(const struct suite_sitting *t, struct err *e)
{
	const struct experiment_hooks *hooks = &t->hooks->run;
	char *dir = file_join(t->s->folder, IMPORTED_FOLDER);
	struct buf lines = { 0 };
	struct str rest;
	int rc = 0;

	if (t->s->n && t->s->member[0].test && file_is_dir(dir)) {
		rc = markdown_report(dir, &lines, e);
		buf_printf(&lines, "Tables: %s/benchmark_results.md\n", dir);
	}
	rest = buf_str(&lines);
	while (rc == 0 && hooks->line && rest.n) {
		struct str line = str_cut(&rest, '\n');
		char *text = mem_copy(line.p, line.n);

		hooks->line(hooks->self, text);
		free(text);
	}
	buf_release(&lines);
	free(dir);
	return rc;
}

/* Begins a later round of a search. */
static int begin_round(struct suite_sitting *t, struct err *e)
{
	t->n_due = t->n_ended = 0;
	t->took_s = 0;
	free(t->due);
	t->due = mem_array(t->s->n, sizeof(*t->due));
	return find_work(t, e) < 0 ? -1 : put_old_aside(t, e);
}

static int run_due(struct suite_sitting *t, struct experiment_site *site, struct err *e)
{
	if (t->s->where == SUITE_SLURM)
		return suite_slurm_run(t, e);
	return suite_has_children(t->s) ? suite_jobs_run(t, e) : run_all(t, site, e);
}

/* Runs round by round; an interrupted one has no conclusion. */
static int run_search(struct suite_sitting *t, struct suite *s, struct experiment_site *site,
		      struct err *e)
{
	int rc;

	suite_search_say_first(s, &t->hooks->run);
	do {
		rc = run_due(t, site, e);
		experiment_leave(site, &t->hooks->run);
		if (rc < 0 || suite_is_cancelled(t) || (s->stop_on_error && t->tally->failed) ||
		    !suite_search_next(s, &t->hooks->run, e, &rc))
			break;
		rc = begin_round(t, e);
	} while (rc == 0);
	return rc;
}

int suite_run(struct suite *s, const struct suite_opts *o, const struct suite_hooks *hooks,
	      struct suite_tally *out, struct err *e)
{
	struct suite_sitting t = { .s = s, .o = o, .hooks = hooks, .tally = out };
	struct experiment_site site = {
		.needs_empty_caches = s->restart == SUITE_RESTART_ON_REPEAT,
	};
	struct err second;
	int fd = -1, rc;

	*out = (struct suite_tally){ 0 };
	t.due = mem_array(s->n, sizeof(*t.due));
	if (o->member)
		await_leftover(&t, &s->member[0]);
	rc = enter(s, &fd, e);
	if (rc == 0)
		rc = find_work(&t, e);
	if (rc == 0)
		rc = put_tables_aside(&t, e);
	if (rc == 0)
		rc = put_old_aside(&t, e);
	if (rc == 0 && !s->is_single)
		rc = write_suite(&t, e); /* now, and not after hours: that it can be written */
	if (rc == 0) {
		rc = s->search ? run_search(&t, s, &site, e) : run_due(&t, &site, e);
		if (rc == 0)
			rc = suite_adapt_rest(&t, &site, e);
		experiment_leave(&site, &hooks->run);
		if (!s->is_single && write_suite(&t, rc == 0 ? e : &second) < 0)
			rc = -1;
		if (rc == 0)
			rc = write_tables(&t, e);
		say_futile(&t);
		out->left = t.n_due + t.n_probes - t.n_ended;
		out->is_interrupted = suite_is_cancelled(&t);
		out->is_detached = t.is_detached;
	}
	if (fd >= 0)
		close(fd);
	suite_slurm_free(t.slurm);
	free(t.is_adopted);
	free(t.due);
	free(t.probe);
	free(t.cause);
	map_release(&t.causes);
	arena_release(&t.arena);
	return rc;
}

void suite_tally_release(struct suite_tally *t)
{
	if (t->single)
		outcome_release(t->single);
	*t = (struct suite_tally){ 0 };
}
