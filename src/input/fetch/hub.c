/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.c - what is asked of the hub, and what becomes of the answers; see hub.h.
 *
 * A HEAD of resolve/REVISION/FILE tells commit, ETag and size; the GET that follows names
 * the commit, so that it gets that very file. What a repository holds is the
 * answer of api/models/REPO/revision/REVISION.
 */
#include "input/fetch/hub.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/read.h"
#include "input/fetch/fetch.h"
#include "input/fetch/hub_parts.h"

#define ASK_TRIES 3                /* with nothing in the cache to fall back on */
#define DOWNLOAD_TRIES 5
#define LIST_TIMEOUT_MS 300000
#define PROGRESS_BYTES_MIN 1000000 /* smaller files come at once */
#define SERVER_TEXT_MAX 200        /* bytes of the server's own words in a sentence */

/* What a HEAD tells about a file. */
struct answer {
	struct buf commit, etag;
	int64_t bytes; /* -1: not said */
};

static void answer_release(struct answer *a)
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

/* The server's words in brackets, harmless on a terminal. */
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
		return err_set(e, ERR_IO, "%s %s is gated and the token in use has no access to "
			"it: accept its terms at %s/%s%s with the account of the token", kind_of(h),
			h->repo, h->endpoint.data, datasets, h->repo);
	return err_set(e, ERR_IO, "%s %s is gated: accept its terms at %s/%s%s, then set HF_TOKEN "
		"to a token of that account", kind_of(h), h->repo, h->endpoint.data, datasets,
		h->repo);
}

static int is_missing(const struct hub *h, struct err *e)
{
	return err_set(e, ERR_IO, "%s has no %s %s%s", h->endpoint.data, kind_of(h), h->repo,
		h->authorization.len ? ", or the token in use has no access to it" :
		"; a private one needs HF_TOKEN");
}

/*
 * The sentence for an answer that is no success. HUB_NO_FILE, or -1; *is_final: no copy in
 * the cache is any better, for the hub knows that there is nothing.
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
		err_set(e, ERR_IO, "%s does not accept the token in use%s: set HF_TOKEN to a "
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

/* A header's value that becomes a name in the cache; quotes and W/ of an ETag are left out. */
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

static int read_answer(const struct hub *h, const struct fetch_reply *reply, struct answer *a,
	struct err *e)
{
	struct str etag = fetch_header(reply, "X-Linked-Etag");
	struct str bytes = fetch_header(reply, "X-Linked-Size");

	if (bytes.n == 0 && reply->status / 100 == 2)
		bytes = fetch_header(reply, "Content-Length");
	if (!str_to_i64(bytes, &a->bytes) || a->bytes < 0)
		a->bytes = -1;
	if (!take_name(&a->commit, fetch_header(reply, "X-Repo-Commit")))
		return err_set(e, ERR_NET, "%s does not answer as a hub does (no X-Repo-Commit); "
			"check HF_ENDPOINT and the proxy", h->endpoint.data);
	if (!take_name(&a->etag, etag.n ? etag : fetch_header(reply, "ETag")))
		return err_set(e, ERR_NET, "%s does not answer as a hub does (no usable ETag); "
			"check HF_ENDPOINT and the proxy", h->endpoint.data);
	return 0;
}

/* 0, HUB_NO_FILE (a->commit may be empty), or -1. */
static int ask(const struct hub *h, const char *file, unsigned tries, struct answer *a,
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

struct download {
	const struct hub *h;
	const struct answer *a;
	const char *file;
	const char *path; /* where it is until it is whole */
	int fd;
};

static void on_bytes(void *self, int64_t bytes)
{
	const struct download *d = self;

	d->h->o->progress(d->h->o->self, d->file, bytes, d->a->bytes);
}

/* From the descriptor's position to the end. */
static int transfer(struct download *d, struct err *e)
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

static int check_size(const struct download *d, struct err *e)
{
	int64_t bytes = lseek(d->fd, 0, SEEK_END);

	if (d->a->bytes < 0 || bytes == d->a->bytes)
		return 0;
	return err_set(e, ERR_NET, "%lld bytes came of %lld that the hub announced",
		(long long)bytes, (long long)d->a->bytes);
}

/* What an earlier download left is continued, and done with when it turns out to be wrong. */
static int fill(struct download *d, struct err *e)
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
		ftruncate(d->fd, 0);
		if (from == 0)
			return err_wrap(e, "%s of %s", d->file, d->h->repo);
	}
}

/* Under the blob's lock. */
static int get_blob(const struct hub *h, const char *file, const struct answer *a, struct err *e)
{
	struct download d = { .h = h, .a = a, .file = file };
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

static int download(const struct hub *h, const char *file, const struct answer *a,
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
	return err_set(e, ERR_IO, "%s is not in the cache (%s, revision %s), and the hub is not "
		"asked (offline by HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or an option)", what,
		h->dir.data, h->revision);
}

static void note_cache(const struct hub *h, const char *commit, const struct err *why)
{
	struct buf text = { 0 };

	if (!h->o->note)
		return;
	buf_printf(&text, "%s %s is taken from the cache (commit %.12s), for the hub cannot be "
		"asked: %s", kind_of(h), h->repo, commit, why->text);
	h->o->note(h->o->self, text.data);
	buf_release(&text);
}

/* ---- what callers call ---- */

/* Online, and not a commit's file that is known. */
static int file_from_hub(const struct hub *h, const char *file, const struct buf *cached_commit,
	bool is_cached, struct buf *path, struct err *e)
{
	struct answer a = { 0 };
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
		err_set(e, ERR_USAGE, "\"%s\" is no path of a file in a repository", file);
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
	return err_set(e, ERR_NET, "%s does not answer as a hub does (no \"sha\" and "
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
