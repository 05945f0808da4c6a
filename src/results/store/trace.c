/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - files of profilers, by their content.
 *
 * A file is at FOLDER/ab/abcd...: its SHA-256. Rows of `traces` refer to it; it is removed with the
 * last one that needs it. Files appear before their row is committed and are removed within the
 * transaction that deletes the last row, so a crash leaves at worst a file too many, or a trace
 * that is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "results/store/store_internal.h"
#include "results/store/trace_files.h"

#define COLUMNS "id, run, name, hash, model, engine_commit, bytes, at, is_expired"

/* Caller frees. */
static char *path_of(const struct store *s, struct str hash)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%.2s/%.*s", s->traces, hash.p, (int)hash.n, hash.p);
	return buf_take(&path);
}

static int needs_folder(const struct store *s, struct err *e)
{
	if (s->traces)
		return 0;
	return err_set(e, ERR_USAGE, "traces need a folder next to %s; set it with "
		       "--traces-dir", s->shown);
}

/* Users who may read the store may also read its traces. */
static int copy_in(const struct store *s, const char *path, struct str bytes, struct err *e)
{
	char *folder = mem_text(path);
	int rc;

	*strrchr(folder, '/') = 0;
	rc = file_mkdirs_mode(folder, s->mode | 0700 | (s->mode & 0044) >> 2, e);
	if (!rc)
		rc = file_write_atomic_mode(path, bytes, s->mode, e);
	free(folder);
	return rc;
}

struct facts {
	struct store *s;
	struct arena *a;
	struct str model, commit;
};

static int take_facts(void *self, const struct db_got *got)
{
	struct facts *f = self;
	struct row r = { 0 };

	if (unpack_row(db_as_bytes(got->v[0]), columns_name, &f->s->columns, f->a, &r, got->e) < 0)
		return -1;
	for (size_t i = 0; i < r.n; i++) {
		if (r.cell[i].value.kind != VALUE_TEXT)
			continue;
		if (str_is(r.cell[i].column, "server.model") ||
		    (!f->model.n && str_is(r.cell[i].column, "benchmark.model")))
			f->model = r.cell[i].value.text;
		if (str_is(r.cell[i].column, "provenance.engine_commit"))
			f->commit = r.cell[i].value.text;
	}
	return 1;
}

/* A trace of that run and content, whose file was gone, is here again. */
static int find_same(struct store_write *w, int64_t run, struct str hash, int64_t *id,
		     struct err *e)
{
	struct db_value v[2] = { db_int(run), db_text(hash) };
	struct db_value again[2] = { db_real(store_now_s()) };
	int rc = db_integer(w->db, "SELECT id FROM traces WHERE run = $1 AND hash = $2"
				   " ORDER BY is_expired LIMIT 1", v, 2, 0, id, e);

	if (rc || !*id)
		return rc;
	again[1] = db_int(*id);
	return db_do(w->db, "UPDATE traces SET is_expired = 0, at = $1 WHERE id = $2"
			     " AND is_expired <> 0", again, 2, e);
}

static int insert(struct store *s, struct store_write *w, int64_t run, struct str name,
		  struct str hash, size_t bytes, int64_t *id, struct err *e)
{
	struct arena a = { 0 };
	struct facts facts = { .s = s, .a = &a };
	struct db_value v[1] = { db_int(run) };
	int rc = find_same(w, run, hash, id, e);

	if (rc || *id)
		return rc;
	if (run)
		rc = store_is_run(w, run, e);
	if (!rc && run)
		rc = db_run(w->db, "SELECT cells FROM documents WHERE id = $1", v, 1, take_facts, &facts,
			    e);
	if (!rc)
		rc = store_number(w, "trace", 1, id, e);
	if (!rc) {
		struct db_value all[] = { db_int(*id), db_int(run), db_text(name), db_text(hash),
					  db_text(facts.model), db_text(facts.commit),
					  db_int((int64_t)bytes), db_real(store_now_s()) };

		rc = db_do(w->db, "INSERT INTO traces (" COLUMNS ")"
				   " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)", all, 8, e);
	}
	arena_release(&a);
	return rc;
}

static struct str last_part(struct str name)
{
	for (size_t i = name.n; i > 0; i--)
		if (name.p[i - 1] == '/' || name.p[i - 1] == '\\')
			return (struct str){ name.p + i, name.n - i };
	return name;
}

static int put(struct store *s, int64_t run, struct str name, struct str bytes, struct str hash,
	       int64_t *id, struct err *e)
{
	char *target = path_of(s, hash);
	struct buf clean = { 0 };
	struct store_write w;
	int rc;

	/* The long part goes before the lock; whether it was for nothing is seen under it. */
	rc = s->is_read_only || file_exists(target) ? 0 : copy_in(s, target, bytes, e);
	if (!rc)
		rc = store_write_begin(s, &w, e);
	if (!rc) {
		if (!file_exists(target))
			rc = copy_in(s, target, bytes, e);
		if (!rc)
			rc = insert(s, &w, run, store_clean_name(&clean, last_part(name)), hash,
				    bytes.n, id, e);
		rc = store_write_end(s, &w, rc, e);
	}
	buf_release(&clean);
	free(target);
	return rc;
}

int store_trace_put(struct store *s, int64_t run, struct str name, const char *path, int64_t *id,
		    struct err *e)
{
	char hash[DIGEST_HEX];
	struct str bytes;
	int rc;

	if (needs_folder(s, e) < 0 || file_map(path, &bytes, e) < 0)
		return -1;
	if (!bytes.n) {
		file_unmap(bytes);
		return err_set(e, ERR_USAGE, "%.*s is empty; expected a profiler's trace", (int)name.n,
			       name.p);
	}
	rc = put(s, run, name, bytes, str_of(digest_hex(DIGEST_SHA256, bytes, hash)), id, e);
	file_unmap(bytes);
	return rc;
}

/* Whether the run has it, or had it until it expired. */
static int is_known(struct store *s, int64_t run, struct str hash, bool *out, struct err *e)
{
	struct arena a = { 0 };
	struct trace *t;
	size_t n;
	int rc = store_traces(s, run, &a, &t, &n, e);

	*out = false;
	for (size_t i = 0; rc == 0 && i < n; i++)
		*out |= str_eq(t[i].hash, hash) &&
			(str_is(t[i].state, "here") || str_is(t[i].state, "expired"));
	arena_release(&a);
	return rc;
}

int store_trace_take(struct store *s, int64_t run, struct str name, const char *path, bool *is_new,
		     struct err *e)
{
	char hash[DIGEST_HEX];
	struct str bytes;
	int64_t id;
	bool known;
	int rc;

	*is_new = false;
	if (needs_folder(s, e) < 0 || file_map(path, &bytes, e) < 0)
		return -1;
	digest_hex(DIGEST_SHA256, bytes, hash);
	rc = is_known(s, run, str_of(hash), &known, e);
	if (rc == 0 && !known) {
		rc = put(s, run, name, bytes, str_of(hash), &id, e);
		*is_new = rc == 0;
	}
	file_unmap(bytes);
	return rc;
}

/* Traces, in an arena. */
struct traces {
	struct store *s;
	struct store_list list;
};

static struct traces traces_in(struct store *s, struct arena *a)
{
	return (struct traces){ s, { .a = a, .size = sizeof(struct trace) } };
}

static struct trace *trace_at(const struct traces *l, size_t i)
{
	return (struct trace *)(void *)l->list.item + i;
}

static int take_trace(void *self, const struct db_got *got)
{
	struct traces *l = self;
	struct trace t = {
		.id = db_as_int(got->v[0]),
		.run = db_as_int(got->v[1]),
		.name = db_keep(l->list.a, got->v[2]),
		.hash = db_keep(l->list.a, got->v[3]),
		.model = db_keep(l->list.a, got->v[4]),
		.commit = db_keep(l->list.a, got->v[5]),
		.bytes = db_as_int(got->v[6]),
		.at_s = db_as_real(got->v[7]),
		.state = STR("missing"),
	};
	char *path = l->s->traces && t.hash.n > 2 ? path_of(l->s, t.hash) : NULL;

	if (db_as_int(got->v[8]) == TRACE_EXPIRED)
		t.state = STR("expired");
	else if (path && file_exists(path))
		t.state = STR("here");
	else if (db_as_int(got->v[8]) == TRACE_LEFT_OUT)
		t.state = STR("left_out");
	free(path);
	*(struct trace *)store_list_add(&l->list) = t;
	return 0;
}

int store_traces(struct store *s, int64_t run, struct arena *a, struct trace **out, size_t *n,
		 struct err *e)
{
	struct traces l = traces_in(s, a);
	struct db_value v = db_int(run);
	int rc = run ? store_ask(s, "SELECT " COLUMNS " FROM traces WHERE run = $1 ORDER BY id DESC", &v,
				 1, take_trace, &l, e) :
		       store_ask(s, "SELECT " COLUMNS " FROM traces ORDER BY id DESC", NULL, 0,
				 take_trace, &l, e);

	*out = trace_at(&l, 0);
	*n = l.list.n;
	return rc;
}

int store_trace_open(struct store *s, int64_t id, struct arena *a, struct trace *out, struct err *e)
{
	struct traces l = traces_in(s, a);
	struct db_value v = db_int(id);
	char *path;
	int fd;

	if (store_ask(s, "SELECT " COLUMNS " FROM traces WHERE id = $1", &v, 1, take_trace, &l, e) < 0)
		return -1;
	if (!l.list.n)
		return store_has_none("trace", id, e);
	*out = *trace_at(&l, 0);
	if (!str_is(out->state, "here"))
		return err_set(e, ERR_USAGE, "the file of trace %lld is %s", (long long)id,
			       str_is(out->state, "left_out") ? "not in this store: backups leave "
			       "traces out" : str_is(out->state, "expired") ? "expired" : "missing");
	path = path_of(s, out->hash);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	free(path);
	return fd;
}

/* The file goes when no row needs it any more. */
static int drop_file(struct store *s, struct store_write *w, struct str hash, struct err *e)
{
	struct db_value v = db_text(hash);
	int64_t others;
	char *path;

	if (!s->traces || hash.n < 3)
		return 0;
	if (db_integer(w->db, "SELECT count(*) FROM traces WHERE hash = $1 AND is_expired <> 1", &v, 1,
		       0, &others, e) < 0)
		return -1;
	if (others)
		return 0;
	path = path_of(s, hash);
	unlink(path);
	free(path);
	return 0;
}

static int drop_all(struct store *s, struct store_write *w, const struct traces *l, bool is_expiry,
		    struct err *e)
{
	for (size_t i = 0; i < l->list.n; i++) {
		struct db_value v = db_int(trace_at(l, i)->id);

		if (db_do(w->db, is_expiry ? "UPDATE traces SET is_expired = 1 WHERE id = $1" :
			  "DELETE FROM traces WHERE id = $1", &v, 1, e) < 0 ||
		    drop_file(s, w, trace_at(l, i)->hash, e) < 0)
			return -1;
	}
	return 0;
}

int store_trace_drop(struct store *s, int64_t id, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = traces_in(s, &a);
	struct db_value v = db_int(id);
	struct store_write w;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = db_run(w.db, "SELECT " COLUMNS " FROM traces WHERE id = $1", &v, 1, take_trace, &l, e);
	if (!rc && !l.list.n)
		rc = store_has_none("trace", id, e);
	if (!rc)
		rc = drop_all(s, &w, &l, false, e);
	arena_release(&a);
	return store_write_end(s, &w, rc, e);
}

int store_traces_forget(struct store *s, struct store_write *w, int64_t run, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = traces_in(s, &a);
	struct db_value v = db_int(run);
	int rc = db_run(w->db, "SELECT " COLUMNS " FROM traces WHERE run = $1", &v, 1, take_trace, &l,
			e);

	if (!rc)
		rc = drop_all(s, w, &l, false, e);
	arena_release(&a);
	return rc;
}

int store_traces_expire(struct store *s, struct store_write *w, double before_s, int64_t bytes_max,
			size_t *n, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = traces_in(s, &a), old = traces_in(s, &a);
	int64_t bytes = 0;
	int rc = db_run(w->db, "SELECT " COLUMNS " FROM traces WHERE is_expired <> 1 ORDER BY id DESC",
			NULL, 0, take_trace, &l, e);

	for (size_t i = 0; i < l.list.n; i++) {
		bytes += trace_at(&l, i)->bytes;
		if (trace_at(&l, i)->at_s < before_s || (bytes_max && bytes > bytes_max))
			*(struct trace *)store_list_add(&old.list) = *trace_at(&l, i);
	}
	*n = old.list.n;
	if (!rc)
		rc = drop_all(s, w, &old, true, e);
	arena_release(&a);
	return rc;
}

#define PATH_BYTES_SHOWN 200

/* The document's own folder; its members'; the caller's. Files are in the first or last. */
enum { OWN, MEMBERS, OTHER, FOLDERS };

enum found { FOUND, GONE, OUTSIDE, NO_FILE, UNREADABLE, OTHER_SIZE };

struct finder {
	char *folder[FOLDERS]; /* as from realpath; NULL: it does not exist */
	struct arena *arena;
	struct trace_files *out;
	size_t named, left_out;
	const char *first;     /* of those left out, with the reason */
	enum found why;
};

/* The folder of a file's path. Caller frees. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_text(".");
	return mem_copy(path, slash == path ? 1 : (size_t)(slash - path));
}

/* "a/suite.d" of "a/suite.json" or "a/suite.json.gz"; NULL: it is called otherwise. Caller frees. */
static char *members_folder(const char *path)
{
	const char *end = NULL;
	struct buf out = { 0 };

	for (const char *at = strrchr(path, '/'); (at = strstr(at ? at : path, ".json")); at++)
		end = at;
	if (!end)
		return NULL;
	buf_printf(&out, "%.*s.d", (int)(end - path), path);
	return buf_take(&out);
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = folder ? strlen(folder) : 0;

	if (n && folder[n - 1] == '/')
		n--;
	return folder && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static enum found look(const struct finder *f, const char *path, int64_t bytes,
		       struct trace_file *out)
{
	char *real = realpath(path, NULL);
	enum found found = OUTSIDE;
	struct stat st;

	if (!real)
		return errno == EACCES ? UNREADABLE : GONE;
	/* Not the members' folder, which may be a link to anywhere. */
	if (is_below(real, f->folder[OWN]) || is_below(real, f->folder[OTHER]))
		found = FOUND;
	if (found == FOUND && stat(real, &st) < 0)
		found = GONE;
	else if (found == FOUND && !S_ISREG(st.st_mode))
		found = NO_FILE;
	else if (found == FOUND && access(real, R_OK) < 0)
		found = UNREADABLE;
	else if (found == FOUND && bytes >= 0 && st.st_size != bytes)
		found = OTHER_SIZE;
	if (found == FOUND)
		*out = (struct trace_file){
			.path = arena_text(f->arena, str_of(real)), .bytes = (uint64_t)st.st_size,
			.changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		};
	free(real);
	return found;
}

/* Searches the folders; reports what is wrong with the first file of that name. */
static enum found find(const struct finder *f, const char *path, int64_t bytes,
		       struct trace_file *out)
{
	enum found found = GONE, here;

	if (path[0] == '/')
		return look(f, path, bytes, out);
	for (size_t i = 0; i < FOLDERS; i++) {
		char *whole = f->folder[i] ? file_join(f->folder[i], path) : NULL;

		here = whole ? look(f, whole, bytes, out) : GONE;
		free(whole);
		if (here == FOUND)
			return FOUND;
		found = found == GONE ? here : found;
	}
	return found;
}

static bool is_taken(const struct trace_files *out, const char *path)
{
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->file[i].path, path) == 0)
			return true;
	return false;
}

static void take(struct finder *f, struct json_slice path, struct json_slice bytes)
{
	struct trace_file *file = &f->out->file[f->out->n];
	struct buf text = { 0 };
	int64_t size = -1;
	enum found found;

	if (path.kind != JSON_STRING || f->named == TRACES_MAX)
		return;
	f->named++;
	if (bytes.kind == JSON_INT && !str_to_i64(bytes.raw, &size))
		size = -1;
	json_unescape(&text, path.raw);
	/* U+0000 would end the path early. */
	found = text.len && strlen(text.data) == text.len ? find(f, text.data, size, file) : GONE;
	if (found == FOUND && is_taken(f->out, file->path)) {
		f->named--; /* twice in the list */
	} else if (found == FOUND) {
		file->name = arena_text(f->arena, buf_str(&text));
		f->out->n++;
	} else if (!f->left_out++) {
		f->first = arena_text(f->arena, buf_str(&text));
		f->why = found;
	}
	buf_release(&text);
}

static void take_all(struct finder *f, struct str document)
{
	struct json_scan scan = { .text = document };
	struct json_slice all, list, path, bytes;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	if (json_next(&scan, &all, NULL) < 0 || all.kind != JSON_OBJECT)
		return;
	if (json_path(all, &list, "profiling", "traces", NULL) && list.kind == JSON_ARRAY) {
		for (it = json_iter(list); json_each(&it, &key, &path) > 0;)
			n++;
		f->out->file = arena_alloc(f->arena, (n + 1) * sizeof(*f->out->file));
		for (it = json_iter(list); json_each(&it, &key, &all) > 0;) {
			bytes = (struct json_slice){ .kind = JSON_NULL };
			if (all.kind == JSON_OBJECT && json_member(all, "path", &path)) {
				json_member(all, "bytes", &bytes);
				take(f, path, bytes);
			}
		}
	} else if (json_path(all, &path, "profiling", "trace_file_path", NULL)) {
		f->out->file = arena_alloc(f->arena, sizeof(*f->out->file));
		take(f, path, (struct json_slice){ .kind = JSON_NULL });
	}
}

static void say_left_out(struct finder *f)
{
	static const char *const why[] = {
		[FOUND] = "", [GONE] = "is missing",
		[OUTSIDE] = "is not below the document's folder", [NO_FILE] = "is not a file",
		[UNREADABLE] = "cannot be read",
		[OTHER_SIZE] = "does not have the size that the document says",
	};
	struct buf text = { 0 };

	if (!f->left_out)
		return;
	if (f->named == 1)
		buf_printf(&text, "its trace was left out: ");
	else
		buf_printf(&text, "%zu of its %zu traces %s left out: ", f->left_out, f->named,
			   f->left_out == 1 ? "was" : "were");
	buf_printf(&text, "%.*s %s. `profllm ingest --trace FILE --run RUN_ID` attaches a trace",
		   PATH_BYTES_SHOWN, f->first, why[f->why]);
	f->out->note = arena_str(f->arena, buf_str(&text));
	buf_release(&text);
}

void trace_files_find(struct str document, const char *place, const char *folder,
		      struct arena *a, struct trace_files *out)
{
	char *named[FOLDERS] = { folder_of(place), members_folder(place),
				 folder ? mem_text(folder) : NULL };
	struct finder f = { .arena = a, .out = out };

	*out = (struct trace_files){ 0 };
	for (size_t i = 0; i < FOLDERS; i++)
		f.folder[i] = named[i] ? realpath(named[i], NULL) : NULL;
	take_all(&f, document);
	say_left_out(&f);
	for (size_t i = 0; i < FOLDERS; i++) {
		free(f.folder[i]);
		free(named[i]);
	}
}
