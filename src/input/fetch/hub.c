/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.c - the cache on disk, and requests to the hub; see hub.h.
 *
 * A HEAD of resolve/REVISION/FILE gives commit, ETag and size; the GET that follows names the
 * commit, so that it gets exactly that file. The files of a repository are the answer of
 * api/models/REPO/revision/REVISION.
 */
#include "input/fetch/hub.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "input/fetch/fetch.h"
#include "input/fetch/hub_internal.h"

/* ---- whether a file's bytes are those that its ETag names ---- */

/*
 * The ETag of a large file is its SHA-256; of a file in git, git's id: the SHA-1 of "blob ", the
 * size, a NUL and the bytes; mirrors may use the SHA-1 of the bytes alone.
 */

static bool is_digest(enum digest_kind kind, struct str head, struct str bytes, const char *etag)
{
	uint8_t hash[DIGEST_BYTES] = { 0 };
	size_t n = digest(kind, head, bytes, hash);

	for (size_t i = 0; i < n; i++)
		if (str_hex(etag[2 * i]) != hash[i] >> 4 ||
			str_hex(etag[2 * i + 1]) != (hash[i] & 15))
			return false;
	return true;
}

static bool is_named(struct str bytes, const char *etag)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %zu", bytes.n);

	if (strlen(etag) == 2 * DIGEST_BYTES)
		return is_digest(DIGEST_SHA256, STR(""), bytes, etag);
	return is_digest(DIGEST_SHA1, (struct str){ head, (size_t)n + 1 }, bytes, etag) ||
		is_digest(DIGEST_SHA1, STR(""), bytes, etag);
}

int hub_check(const char *path, const char *etag, struct err *e)
{
	size_t digits = strspn(etag, "0123456789abcdefABCDEF");
	struct str bytes;
	bool is_same;

	if (etag[digits] || (digits != 2 * DIGEST_SHA1_BYTES && digits != 2 * DIGEST_BYTES))
		return 0;
	if (file_map(path, &bytes, e))
		return -1;
	is_same = is_named(bytes, etag);
	file_unmap(bytes);
	if (is_same)
		return 0;
	return err_set(e, ERR_NET, "its content does not match what the hub announced (hash "
				   "%s)", etag);
}

/* ---- the cache ---- */

#define LOCK_MODE 0664             /* a group that shares a cache can wait for each other */
#define LOCK_PAUSE_NS 50000000
#define LOCK_PAUSES_BEFORE_NOTE 20

bool hub_is_safe_path(const char *path)
{
	struct str rest = str_of(path);

	if (!*path || rest.p[rest.n - 1] == '/')
		return false;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\\')
			return false;
	while (rest.n) {
		struct str name = str_cut(&rest, '/');

		if (name.n == 0 || name.n > HUB_NAME_BYTES_MAX || str_is(name, ".") ||
			str_is(name, ".."))
			return false;
	}
	return true;
}

/* ---- refs and snapshots ---- */

static bool is_name(struct str name)
{
	return name.n && !memchr(name.p, '/', name.n) && strlen(name.p) == name.n &&
		hub_is_safe_path(name.p);
}

/* The cached commit of h->revision; a commit is its own. */
static bool hub_cached_commit(const struct hub *h, struct buf *commit)
{
	struct buf path = { 0 }, text = { 0 };

	buf_reset(commit);
	buf_printf(&path, "%s/refs/%s", h->dir.data, h->revision);
	if (!hub_is_commit(h->revision) && file_exists(path.data) &&
		file_read(path.data, 4096, &text, NULL) == 0)
		buf_add_str(commit, str_trim(buf_str(&text)));
	/* A snapshot's name need not be 40 digits. */
	buf_reset(&path);
	buf_printf(&path, "%s/snapshots/%s", h->dir.data, h->revision);
	if (commit->len == 0 && (hub_is_commit(h->revision) || file_is_dir(path.data)))
		buf_add_text(commit, h->revision);
	if (!is_name(buf_str(commit)))
		buf_reset(commit);
	buf_release(&path);
	buf_release(&text);
	return commit->len > 0;
}

static bool hub_cached_file(const struct hub *h, const char *commit, const char *file,
	struct buf *path)
{
	buf_reset(path);
	buf_printf(path, "%s/snapshots/%s/%s", h->dir.data, commit, file);
	return file_exists(path->data);
}

static bool hub_is_absent(const struct hub *h, const char *commit, const char *file)
{
	struct buf path = { 0 };
	bool is_absent;

	buf_printf(&path, "%s/.no_exist/%s/%s", h->dir.data, commit, file);
	is_absent = file_exists(path.data);
	buf_release(&path);
	return is_absent;
}

/* A name in a list's arena; -1 past HUB_FILES_MAX. */
static int hub_list_add(struct hub_list *list, struct str name, struct err *e)
{
	if (list->count >= HUB_FILES_MAX)
		return err_set(e, ERR_LIMIT, "the repository has more than %u files",
			HUB_FILES_MAX);
	if ((list->count & (list->count - 1)) == 0)
		list->file = mem_grow(list->file, list->count ? 2 * list->count : 1,
			sizeof(*list->file));
	list->file[list->count++] = arena_text(&list->arena, name);
	return 0;
}

/* Adds the files below root/prefix; prefix is empty or ends with a slash, and is restored. */
static int add_files(struct hub_list *list, const char *root, struct buf *prefix, int depth,
	struct err *e)
{
	size_t len = prefix->len;
	struct buf path = { 0 };
	struct dirent *entry;
	int rc = 0;
	DIR *dir;

	buf_printf(&path, "%s/%s", root, prefix->data);
	dir = opendir(path.data);
	while (rc == 0 && dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_add_text(prefix, entry->d_name);
		buf_reset(&path);
		buf_printf(&path, "%s/%s", root, prefix->data);
		if (!file_is_dir(path.data)) {
			/* A link whose blob was deleted is skipped. */
			if (file_exists(path.data))
				rc = hub_list_add(list, buf_str(prefix), e);
		} else if (depth < HUB_DEPTH_MAX) {
			buf_add_char(prefix, '/');
			rc = add_files(list, root, prefix, depth + 1, e);
		}
		prefix->data[prefix->len = len] = 0;
	}
	if (dir)
		closedir(dir);
	buf_release(&path);
	return rc;
}

/* The cached files of a commit; -1 with ERR_LIMIT only. */
static int hub_cached_list(const struct hub *h, const char *commit, struct hub_list *list,
	struct err *e)
{
	struct buf root = { 0 }, prefix = { 0 };
	int rc;

	*list = (struct hub_list){ .is_cached = true };
	list->commit = arena_text(&list->arena, str_of(commit));
	buf_printf(&root, "%s/snapshots/%s", h->dir.data, commit);
	buf_add_text(&prefix, "");
	rc = add_files(list, root.data, &prefix, 0, e);
	buf_release(&root);
	buf_release(&prefix);
	return rc;
}

/* ---- what is written ---- */

static int make_dir_of(const char *path, struct err *e)
{
	char *copy = mem_text(path);
	int rc;

	*strrchr(copy, '/') = 0;
	rc = file_is_dir(copy) ? 0 : file_mkdirs(copy, e);
	free(copy);
	return rc;
}

/* Both do nothing where the cache cannot be written. */
static void hub_put_ref(const struct hub *h, const char *commit)
{
	struct buf known = { 0 }, path = { 0 };
	struct err ignored;

	if (!(hub_cached_commit(h, &known) && strcmp(known.data, commit) == 0)) {
		buf_printf(&path, "%s/refs/%s", h->dir.data, h->revision);
		if (make_dir_of(path.data, &ignored) == 0)
			file_write_atomic(path.data, str_of(commit), &ignored);
	}
	buf_release(&known);
	buf_release(&path);
}

/* Both do nothing where the cache cannot be written. */
static void hub_put_absent(const struct hub *h, const char *commit, const char *file)
{
	struct buf path = { 0 };
	struct err ignored;
	int fd;

	buf_printf(&path, "%s/.no_exist/%s/%s", h->dir.data, commit, file);
	if (make_dir_of(path.data, &ignored) == 0 &&
		(fd = open(path.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) >= 0)
		close(fd);
	buf_release(&path);
}

static void hub_blob_path(const struct hub *h, const char *etag, const char *suffix,
	struct buf *path)
{
	buf_reset(path);
	buf_printf(path, "%s/blobs/%s%s", h->dir.data, etag, suffix);
}

/* 0: locked; 1: another process has the lock; -1. */
static int try_lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK || errno == EINTR ? 1 : -1;
}

int hub_lock(const struct hub *h, const char *etag, struct err *e)
{
	struct buf path = { 0 }, note = { 0 };
	int fd = -1, rc = -1;

	buf_printf(&path, "%s/.locks%s/%s.lock", h->cache.data, h->dir.data + h->cache.len, etag);
	if (make_dir_of(path.data, e))
		goto done;
	fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, LOCK_MODE);
	for (int pauses = 0; fd >= 0 && (rc = try_lock(fd)) == 1; pauses++) {
		struct timespec pause = { 0, LOCK_PAUSE_NS };

		if (h->o->cancel && atomic_load(h->o->cancel)) {
			err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", path.data);
			goto done;
		}
		if (pauses == LOCK_PAUSES_BEFORE_NOTE && h->o->note) {
			buf_printf(&note, "waiting for another process that downloads the same "
				"file (%s)", path.data);
			h->o->note(h->o->self, note.data);
		}
		nanosleep(&pause, NULL);
	}
	if (rc)
		err_set(e, ERR_IO, "cannot lock %s: %s", path.data, strerror(errno));
done:
	if (rc && fd >= 0)
		close(fd);
	buf_release(&path);
	buf_release(&note);
	return rc ? -1 : fd;
}

/* snapshots/commit/file -> the blob; path is replaced by it. */
static int hub_link(const struct hub *h, const char *commit, const char *file, const char *etag,
	struct buf *path, struct err *e)
{
	struct buf target = { 0 }, temp = { 0 };
	int rc = 0;

	if (hub_cached_file(h, commit, file, path))
		return 0;
	buf_add_text(&target, "../../");
	for (const char *p = file; *p; p++)
		if (*p == '/')
			buf_add_text(&target, "../");
	buf_printf(&target, "blobs/%s", etag);
	/*
	 * Created under another name and renamed: a dangling link is replaced without a moment
	 * without it.
	 */
	buf_printf(&temp, "%s.%ld", path->data, (long)getpid());
	if (make_dir_of(path->data, e))
		rc = -1;
	else if ((unlink(temp.data) && errno != ENOENT) || symlink(target.data, temp.data) ||
		rename(temp.data, path->data))
		rc = err_set(e, ERR_IO, "cannot link %s to %s: %s", path->data, target.data,
			strerror(errno));
	buf_release(&target);
	buf_release(&temp);
	return rc;
}

#define ASK_TRIES 3                /* with nothing in the cache to fall back on */
#define DOWNLOAD_TRIES 5
#define LIST_TIMEOUT_MS 300000
#define PROGRESS_BYTES_MIN 1000000 /* smaller files come at once */
#define SERVER_TEXT_MAX 200        /* bytes of the server's own words in a sentence */

/* A HEAD's information about a file. */
struct hub_answer {
	struct buf commit, etag;
	int64_t bytes; /* -1: not said */
};

static void answer_release(struct hub_answer *a)
{
	buf_release(&a->commit);
	buf_release(&a->etag);
}

static const char *kind_of(const struct hub *h)
{
	return h->o->kind == HUB_DATASET ? "dataset" : "model";
}

static int no_file(const struct hub *h, const char *file, struct err *e)
{
	err_set(e, ERR_IO, "%s %s has no file %s at revision %s", kind_of(h), h->repo, file,
		h->revision);
	return HUB_NO_FILE;
}

/* ---- requests ---- */

static void add_quoted(struct buf *url, const char *text, const char *kept)
{
	for (const char *p = text; *p; p++)
		if (isalnum((unsigned char)*p) || strchr(kept, *p))
			buf_add_char(url, *p);
		else
			buf_printf(url, "%%%02X", (unsigned char)*p);
}

static void file_url(const struct hub *h, const char *revision, const char *file, struct buf *url)
{
	buf_printf(url, "%s/%s%s/resolve/", h->endpoint.data,
		h->o->kind == HUB_DATASET ? "datasets/" : "", h->repo);
	add_quoted(url, revision, "-_.~");
	buf_add_char(url, '/');
	add_quoted(url, file, "-_.~/");
}

static const char *const HEADERS[] = { "User-Agent: profllm", NULL };

static int request(const struct hub *h, struct fetch_get g, int64_t timeout_ms,
	struct fetch_reply *reply, struct err *e)
{
	struct fetch_opts opts = { .header = HEADERS, .cancel = h->o->cancel,
		.timeout_ms = timeout_ms };

	g.authorization = h->authorization.data;
	g.opts = &opts;
	return fetch_get(&g, reply, e);
}

/* ---- refusals ---- */

/* The server's words in brackets, without control characters. */
static void add_words(struct buf *out, const struct fetch_reply *reply)
{
	struct str words = fetch_header(reply, "X-Error-Message");

	for (size_t i = 0; i < words.n && i < SERVER_TEXT_MAX; i++) {
		unsigned char c = (unsigned char)words.p[i];

		if (i == 0)
			buf_add_text(out, " (");
		buf_add_char(out, c < ' ' || c == 0x7f ? '?' : words.p[i]);
	}
	if (words.n)
		buf_add_char(out, ')');
}

static int is_gated(const struct hub *h, struct err *e)
{
	const char *datasets = h->o->kind == HUB_DATASET ? "datasets/" : "";

	if (h->authorization.len)
		return err_set(e, ERR_HUB_GATED, "%s %s is gated and the token in use has no access to "
			"it: accept its terms at %s/%s%s with the account of the token", kind_of(h),
			h->repo, h->endpoint.data, datasets, h->repo);
	return err_set(e, ERR_HUB_GATED, "%s %s is gated: accept its terms at %s/%s%s, then set HF_TOKEN "
		"to a token of that account", kind_of(h), h->repo, h->endpoint.data, datasets,
		h->repo);
}

static int is_missing(const struct hub *h, struct err *e)
{
	return err_set(e, ERR_HUB_MISSING, "%s has no %s %s%s", h->endpoint.data, kind_of(h), h->repo,
		h->authorization.len ? ", or the token in use has no access to it" :
		"; a private one needs HF_TOKEN");
}

/*
 * The error for an answer that is not a success. HUB_NO_FILE, or -1; *is_final: a cached copy would
 * not help, as the hub says that there is nothing.
 */
static int refused(const struct hub *h, const struct fetch_reply *reply, const char *file,
	bool *is_final, struct err *e)
{
	struct str code = fetch_header(reply, "X-Error-Code");
	struct str later = fetch_header(reply, "Retry-After");
	struct buf words = { 0 };

	*is_final = str_is(code, "RevisionNotFound") || str_is(code, "EntryNotFound");
	if (str_is(code, "EntryNotFound"))
		return no_file(h, file, e);
	if (str_is(code, "RevisionNotFound"))
		return err_set(e, ERR_IO, "%s %s has no revision %s", kind_of(h), h->repo,
			h->revision);
	if (str_is(code, "GatedRepo"))
		return is_gated(h, e);
	if (str_is(code, "RepoNotFound") || (reply->status == 404 && code.n == 0))
		return is_missing(h, e);
	add_words(&words, reply);
	if (reply->status == 401 && h->authorization.len)
		err_set(e, ERR_HUB_TOKEN, "%s does not accept the token in use%s: set HF_TOKEN to a "
			"valid one", h->endpoint.data, words.data ? words.data : "");
	else if (reply->status == 401)
		is_missing(h, e);
	else if (reply->status == 403)
		err_set(e, ERR_IO, "%s refuses access to %s %s%s", h->endpoint.data, kind_of(h),
			h->repo, words.data ? words.data : "");
	else if (reply->status == 429)
		err_set(e, ERR_NET, "%s has had too many requests%s%.*s%s", h->endpoint.data,
			later.n ? "; it asks for a pause of " : "", (int)(later.n < 32 ? later.n :
			32), later.p, later.n ? " s" : "");
	else
		err_set(e, ERR_NET, "%s answers %s %s with HTTP status %ld%s", h->endpoint.data,
			kind_of(h), h->repo, reply->status, words.data ? words.data : "");
	buf_release(&words);
	return -1;
}

/* ---- one file's HEAD ---- */

/* A header's value as a name in the cache, without quotes and W/ of an ETag. */
static bool take_name(struct buf *out, struct str value)
{
	if (str_starts(value, STR("W/")))
		value = (struct str){ value.p + 2, value.n - 2 };
	if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
		value = (struct str){ value.p + 1, value.n - 2 };
	buf_reset(out);
	buf_add_str(out, value);
	return value.n && !memchr(value.p, 0, value.n) && !memchr(value.p, '/', value.n) &&
		value.p[0] != '.' && hub_is_safe_path(out->data);
}

static int read_answer(const struct hub *h, const struct fetch_reply *reply, struct hub_answer *a,
	struct err *e)
{
	struct str etag = fetch_header(reply, "X-Linked-Etag");
	struct str bytes = fetch_header(reply, "X-Linked-Size");

	if (bytes.n == 0 && reply->status / 100 == 2)
		bytes = fetch_header(reply, "Content-Length");
	if (!str_to_i64(bytes, &a->bytes) || a->bytes < 0)
		a->bytes = -1;
	if (!take_name(&a->commit, fetch_header(reply, "X-Repo-Commit")))
		return err_set(e, ERR_HUB_FOREIGN, "%s does not answer as a hub does (no X-Repo-Commit); "
			"check HF_ENDPOINT and the proxy", h->endpoint.data);
	if (!take_name(&a->etag, etag.n ? etag : fetch_header(reply, "ETag")))
		return err_set(e, ERR_HUB_FOREIGN, "%s does not answer as a hub does (no usable ETag); "
			"check HF_ENDPOINT and the proxy", h->endpoint.data);
	return 0;
}

/* 0, HUB_NO_FILE (a->commit may be empty), or -1. */
static int ask(const struct hub *h, const char *file, unsigned tries, struct hub_answer *a,
	bool *is_final, struct err *e)
{
	struct fetch_reply reply;
	struct buf url = { 0 };
	struct fetch_get get = { .mark = "X-Repo-Commit", .is_head = true, .fd = -1,
		.silence_ms = h->etag_timeout_ms, .tries = tries };
	int rc;

	file_url(h, h->revision, file, &url);
	get.url = url.data;
	rc = request(h, get, h->etag_timeout_ms, &reply, e);
	if (rc == 0) {
		if (reply.status < 400)
			rc = read_answer(h, &reply, a, e);
		else
			rc = refused(h, &reply, file, is_final, e);
		if (rc == HUB_NO_FILE && !take_name(&a->commit, fetch_header(&reply,
			"X-Repo-Commit")))
			buf_reset(&a->commit);
		fetch_reply_release(&reply);
	}
	buf_release(&url);
	return rc;
}

/* ---- one file's bytes ---- */

struct hub_download {
	const struct hub *h;
	const struct hub_answer *a;
	const char *file;
	const char *path; /* where it is until it is whole */
	int fd;
};

static void on_bytes(void *self, int64_t bytes)
{
	const struct hub_download *d = self;

	d->h->o->progress(d->h->o->self, d->file, bytes, d->a->bytes);
}

/* From the descriptor's position to the end. */
static int transfer(struct hub_download *d, struct err *e)
{
	const struct hub *h = d->h;
	struct fetch_reply reply;
	struct buf url = { 0 };
	struct fetch_get get = { .fd = d->fd, .silence_ms = h->download_timeout_ms,
		.tries = DOWNLOAD_TRIES, .self = d };
	bool is_final;
	int rc;

	get.file_bytes_max = h->o->file_bytes_max ? h->o->file_bytes_max : HUB_FILE_BYTES_MAX;
	if (d->a->bytes > get.file_bytes_max)
		return err_set(e, ERR_LIMIT, "%s of %s has %lld bytes; the limit is %lld", d->file,
			h->repo, (long long)d->a->bytes, (long long)get.file_bytes_max);
	if (h->o->progress && d->a->bytes > PROGRESS_BYTES_MIN)
		get.progress = on_bytes;
	file_url(h, d->a->commit.data, d->file, &url);
	get.url = url.data;
	rc = request(h, get, 0, &reply, e);
	if (rc == 0) {
		if (reply.status != 200 && reply.status != 206)
			rc = refused(h, &reply, d->file, &is_final, e);
		fetch_reply_release(&reply);
	}
	buf_release(&url);
	return rc;
}

static int check_size(const struct hub_download *d, struct err *e)
{
	int64_t bytes = lseek(d->fd, 0, SEEK_END);

	if (d->a->bytes < 0 || bytes == d->a->bytes)
		return 0;
	return err_set(e, ERR_NET, "%lld bytes arrived of the %lld that the hub announced",
		(long long)bytes, (long long)d->a->bytes);
}

/* Continues an earlier, incomplete download, which is dropped if it turns out to be wrong. */
static int fill(struct hub_download *d, struct err *e)
{
	for (int64_t from = lseek(d->fd, 0, SEEK_END);; from = 0) {
		int rc;

		if (d->a->bytes >= 0 && from > d->a->bytes)
			from = 0;
		if (ftruncate(d->fd, from) || lseek(d->fd, from, SEEK_SET) < 0)
			return err_set(e, ERR_IO, "cannot write: %s", strerror(errno));
		if (from != d->a->bytes && (rc = transfer(d, e)) != 0)
			return rc;
		if (check_size(d, e) == 0 && hub_check(d->path, d->a->etag.data, e) == 0)
			return 0;
		if (ftruncate(d->fd, 0))
			return err_set(e, ERR_IO, "cannot write: %s", strerror(errno));
		if (from == 0)
			return err_wrap(e, "%s of %s", d->file, d->h->repo);
	}
}

/* Called with the blob's lock. */
static int get_blob(const struct hub *h, const char *file, const struct hub_answer *a,
		    struct err *e)
{
	struct hub_download d = { .h = h, .a = a, .file = file };
	struct buf blob = { 0 }, part = { 0 };
	int rc;

	hub_blob_path(h, a->etag.data, "", &blob);
	hub_blob_path(h, a->etag.data, ".incomplete", &part);
	if (file_exists(blob.data)) {
		rc = 0;
		goto done;
	}
	d.path = part.data;
	d.fd = open(part.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (d.fd < 0) {
		rc = err_set(e, ERR_IO, "cannot write %s: %s", part.data, strerror(errno));
		goto done;
	}
	rc = fill(&d, e);
	if (rc == 0 && (fsync(d.fd) || rename(part.data, blob.data)))
		rc = err_set(e, ERR_IO, "cannot write %s: %s", blob.data, strerror(errno));
	else if (rc == -1 && e && e->code == ERR_IO)
		rc = err_wrap(e, "%s", part.data);
	close(d.fd);
done:
	buf_release(&blob);
	buf_release(&part);
	return rc;
}

static int download(const struct hub *h, const char *file, const struct hub_answer *a,
	struct buf *path, struct err *e)
{
	struct buf blobs = { 0 };
	int rc = -1, lock;

	if (hub_cached_file(h, a->commit.data, file, path))
		return 0;
	hub_blob_path(h, "", "", &blobs);
	if (file_mkdirs(blobs.data, e) == 0 && (lock = hub_lock(h, a->etag.data, e)) >= 0) {
		rc = get_blob(h, file, a, e);
		if (rc == 0)
			rc = hub_link(h, a->commit.data, file, a->etag.data, path, e);
		close(lock);
	}
	buf_release(&blobs);
	return rc;
}

/* ---- the cache instead ---- */

static int not_cached(const struct hub *h, const char *what, struct err *e)
{
	return err_set(e, ERR_HUB_OFFLINE, "%s is not in the cache (%s, revision %s), and the hub "
		"may not be used (offline by HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or an "
		"option)", what,
		h->dir.data, h->revision);
}

static void note_cache(const struct hub *h, const char *commit, const struct err *why)
{
	struct buf text = { 0 };

	if (!h->o->note)
		return;
	buf_printf(&text, "%s %s is used from the cache (commit %.12s), because the hub cannot be "
		"reached: %s", kind_of(h), h->repo, commit, why->text);
	h->o->note(h->o->self, text.data);
	buf_release(&text);
}

/* ---- what callers call ---- */

/* Asks the hub; not called for a commit's file that is cached. */
static int file_from_hub(const struct hub *h, const char *file, const struct buf *cached_commit,
	bool is_cached, struct buf *path, struct err *e)
{
	struct hub_answer a = { 0 };
	struct err why = { 0 };
	bool is_final = false;
	int rc = ask(h, file, is_cached ? 1 : ASK_TRIES, &a, &is_final, &why);

	if (rc == HUB_NO_FILE && a.commit.len) {
		hub_put_absent(h, a.commit.data, file);
		if (!hub_is_commit(h->revision))
			hub_put_ref(h, a.commit.data);
	} else if (rc == -1 && is_cached && !is_final && why.code != ERR_CANCELLED) {
		hub_cached_file(h, cached_commit->data, file, path);
		note_cache(h, cached_commit->data, &why);
		rc = 0;
	} else if (rc == 0) {
		rc = download(h, file, &a, path, &why);
		if (rc == 0 && !hub_is_commit(h->revision))
			hub_put_ref(h, a.commit.data);
	}
	if (rc && e)
		*e = why;
	answer_release(&a);
	return rc;
}

int hub_file(const struct hub_opts *o, const char *repo, const char *file, struct buf *path,
	struct err *e)
{
	struct buf commit = { 0 };
	struct hub h;
	bool is_cached;
	int rc = -1;

	buf_reset(path);
	if (hub_begin(&h, o, repo, e))
		goto done;
	if (!hub_is_safe_path(file)) {
		err_set(e, ERR_USAGE, "\"%s\" is not a path of a file in a repository", file);
		goto done;
	}
	is_cached = hub_cached_commit(&h, &commit) && hub_cached_file(&h, commit.data, file, path);
	if (is_cached && (h.is_offline || hub_is_commit(h.revision)))
		rc = 0;
	else if (commit.len && (h.is_offline || hub_is_commit(h.revision)) &&
		hub_is_absent(&h, commit.data, file))
		rc = no_file(&h, file, e);
	else if (h.is_offline)
		rc = not_cached(&h, file, e);
	else
		rc = file_from_hub(&h, file, &commit, is_cached, path, e);
done:
	buf_release(&commit);
	hub_end(&h);
	return rc;
}

/* ---- lists ---- */

static int bad_list(const struct hub *h, struct err *e)
{
	return err_set(e, ERR_HUB_FOREIGN, "%s does not answer as a hub does (no \"sha\" and "
		"\"siblings\" of %s); check HF_ENDPOINT and the proxy", h->endpoint.data, h->repo);
}

static int read_list(const struct hub *h, struct str body, struct hub_list *list, struct err *e)
{
	struct json_scan scan = { body, 0 };
	struct json_slice all, sha, siblings, item, name;
	struct buf text = { 0 };
	struct json_iter it;
	struct str key;
	int rc = 0;

	if (json_next(&scan, &all, NULL) || !json_member(all, "sha", &sha) ||
		sha.kind != JSON_STRING || !take_name(&text, sha.raw) ||
		!json_member(all, "siblings", &siblings) || siblings.kind != JSON_ARRAY) {
		rc = bad_list(h, e);
		goto done;
	}
	list->commit = arena_text(&list->arena, buf_str(&text));
	it = json_iter(siblings);
	while (rc == 0 && json_each(&it, &key, &item) == 1) {
		buf_reset(&text);
		if (json_member(item, "rfilename", &name) && name.kind == JSON_STRING)
			json_unescape(&text, name.raw);
		if (text.len == 0 || memchr(text.data, 0, text.len))
			rc = bad_list(h, e);
		else
			rc = hub_list_add(list, buf_str(&text), e);
	}
done:
	buf_release(&text);
	return rc;
}

static int ask_list(const struct hub *h, unsigned tries, struct hub_list *list, bool *is_final,
	struct err *e)
{
	struct fetch_reply reply;
	struct buf url = { 0 };
	struct fetch_get get = { .fd = -1, .silence_ms = h->etag_timeout_ms, .tries = tries };
	int rc;

	buf_printf(&url, "%s/api/%ss/%s/revision/", h->endpoint.data, kind_of(h), h->repo);
	add_quoted(&url, h->revision, "-_.~");
	get.url = url.data;
	rc = request(h, get, LIST_TIMEOUT_MS, &reply, e);
	if (rc == 0) {
		if (reply.status == 200)
			rc = read_list(h, buf_str(&reply.body), list, e);
		else
			rc = refused(h, &reply, "", is_final, e) ? -1 : 0;
		fetch_reply_release(&reply);
	}
	buf_release(&url);
	return rc;
}

int hub_list(const struct hub_opts *o, const char *repo, struct hub_list *list, struct err *e)
{
	struct hub_list cached = { 0 };
	struct buf commit = { 0 };
	struct err why = { 0 };
	bool is_final = false, is_from_cache;
	struct hub h;
	int rc = -1;

	*list = (struct hub_list){ 0 };
	if (hub_begin(&h, o, repo, e) || (hub_cached_commit(&h, &commit) &&
		hub_cached_list(&h, commit.data, &cached, e)))
		goto done;
	is_from_cache = h.is_offline && cached.count;
	if (is_from_cache)
		rc = 0;
	else if (h.is_offline)
		rc = not_cached(&h, repo, &why);
	else
		rc = ask_list(&h, cached.count ? 1 : ASK_TRIES, list, &is_final, &why);
	if (rc && cached.count && !is_final && why.code != ERR_CANCELLED) {
		note_cache(&h, commit.data, &why);
		is_from_cache = true;
		rc = 0;
	}
	if (is_from_cache) {
		hub_list_release(list);
		*list = cached;
		cached = (struct hub_list){ 0 };
	}
	if (rc && e)
		*e = why;
done:
	if (rc)
		hub_list_release(list);
	hub_list_release(&cached);
	buf_release(&commit);
	hub_end(&h);
	return rc;
}

void hub_list_release(struct hub_list *list)
{
	arena_release(&list->arena);
	free(list->file);
	*list = (struct hub_list){ 0 };
}

void hub_remember(const struct hub_opts *o, const char *repo, const struct hub_list *list,
	const char *const *absent)
{
	struct hub h;

	if (hub_begin(&h, o, repo, NULL) == 0) {
		if (!hub_is_commit(h.revision))
			hub_put_ref(&h, list->commit);
		for (; *absent; absent++)
			hub_put_absent(&h, list->commit, *absent);
	}
	hub_end(&h);
}
