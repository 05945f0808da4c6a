/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - see upload.h. */
#include "experiment/suite/upload.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/fetch/dashboard.h"

#define UPLOAD_PATH "/api/upload/raw"
#define UPLOAD_TRIES 4
#define UPLOAD_PAUSE_MS 500
#define UPLOAD_TIMEOUT_MS 60000

/* TAKEN; REFUSED for good; NOT_ALLOWED: the token is refused; LATER: worth another try. */
enum answer { TAKEN, REFUSED, NOT_ALLOWED, LATER };

/* The target and its token; url: as the user named it, for messages. */
struct upload_place { const char *url; struct dashboard *to; };

/* A dashboard's answer about a document's run. */
struct upload_run {
	struct buf id;   /* its number, else its run_id */
	bool may_have;   /* it was there before: traces of it may be, too */
};

static void tell(void (*to)(void *self, const char *text), void *self, const char *text)
{
	if (to)
		to(self, text);
}

/* ---- one request ---- */

/* Appends the address to post to: UPLOAD_PATH, unless the base names such a path itself. */
static void address(const struct dashboard *to, struct buf *out)
{
	buf_add_str(out, buf_str(&to->base));
	if (!str_ends(buf_str(&to->base), STR("/raw")))
		buf_add_text(out, UPLOAD_PATH);
}

static enum answer upload_judge(long status)
{
	if ((status >= 200 && status < 300) || status == 409)
		return TAKEN;
	if (status == 401 || status == 403)
		return NOT_ALLOWED;
	if (status == 408 || status == 425 || status == 429 || status >= 500)
		return LATER;
	return REFUSED;
}

static void upload_say(const struct fetch_reply *reply, const char *url, struct err *e)
{
	struct buf text = { 0 };

	dashboard_add_answer(reply, &text);
	err_set(e, ERR_NET, "%s %s", url, text.data);
	buf_release(&text);
}

/* The number that the dashboard gave the run, else the document's run_id. */
static void read_run(struct str answer, struct str document, struct upload_run *run)
{
	struct json_scan scan = { .text = answer };
	struct json_slice all, list, first, v;
	struct json_iter it;
	struct str key;

	run->may_have = true;
	buf_reset(&run->id);
	if (json_next(&scan, &all, NULL) == 0 && all.kind == JSON_OBJECT &&
	    json_member(all, "results", &list) && list.kind == JSON_ARRAY) {
		it = json_iter(list);
		if (json_each(&it, &key, &first) > 0 && first.kind == JSON_OBJECT &&
		    json_member(first, "id", &v) && v.kind == JSON_INT) {
			buf_add_str(&run->id, v.raw);
			run->may_have = !json_member(first, "outcome", &v) || !str_is(v.raw, "new");
		}
	}
	scan = (struct json_scan){ .text = document };
	if (!run->id.len && json_next(&scan, &all, NULL) == 0 && all.kind == JSON_OBJECT &&
	    json_member(all, "run_id", &v) && v.kind == JSON_STRING)
		json_unescape(&run->id, v.raw);
}

/* What is sent in one request: a document, or the file of a trace. */
struct parcel {
	const char *url;
	struct str document;
	const char *trace;       /* NULL: the document */
	struct upload_run *run;  /* of a document: the answer about it */
};

static enum answer post(const struct upload_opts *o, const struct upload_place *to,
			const struct parcel *p, struct err *e)
{
	struct fetch_opts how = dashboard_opts(to->to);
	struct fetch_reply reply = { 0 };
	enum answer answer = LATER;
	int rc;

	how.cancel = o->cancel;
	if (!p->trace) {
		how.timeout_ms = UPLOAD_TIMEOUT_MS;
		how.body_bytes_max = 1u << 20;
	}
	rc = p->trace ? fetch_send_file(p->url, "trace", p->trace, &how, &reply, e) :
			fetch(p->url, &p->document, &how, &reply, e);
	if (rc == 0) {
		answer = upload_judge(reply.status);
		if (answer != TAKEN)
			upload_say(&reply, p->trace ? to->url : p->url, e);
		else if (!p->trace)
			read_run(buf_str(&reply.body), p->document, p->run);
	}
	fetch_reply_release(&reply);
	return answer;
}

static bool upload_is_cancelled(const struct upload_opts *o)
{
	return o->cancel && atomic_load(o->cancel);
}

/*
 * Sleeps for the pause to twice the pause, at random, so that the uploads of many jobs that end at
 * the same moment are not repeated at the same moment. Short steps: Ctrl-C takes effect soon.
 */
static void upload_rest(const struct upload_opts *o, unsigned *pause_ms)
{
	uint64_t pause_ns = (uint64_t)*pause_ms * 1000000, draw = 0;
	int64_t until = clock_mono_ns() + (int64_t)pause_ns;

	if (pause_ns && getrandom(&draw, sizeof(draw), GRND_NONBLOCK) == sizeof(draw))
		until += (int64_t)(draw % pause_ns);
	while (!upload_is_cancelled(o) && clock_mono_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	*pause_ms *= 2;
}

int upload_check(const struct upload_opts *o, struct err *e)
{
	struct dashboard to;
	int rc = dashboard_find(o->url, o->token_file, &to, e);

	dashboard_release(&to);
	return rc < 0 ? err_wrap(e, "upload") : 0;
}

/* Tries until it is taken or the tries are used up. */
static enum answer post_often(const struct upload_opts *o, unsigned tries,
			      const struct upload_place *to, const struct parcel *p, struct err *e)
{
	unsigned pause = o->pause_ms ? o->pause_ms : UPLOAD_PAUSE_MS;
	enum answer answer = post(o, to, p, e);

	assert(tries > 0);
	for (unsigned i = 1; i < tries && answer == LATER && !upload_is_cancelled(o); i++) {
		upload_rest(o, &pause);
		answer = post(o, to, p, e);
	}
	return answer;
}

/* The progress of a document and its traces. */
struct delivered {
	bool is_document_taken;
	size_t traces;
};

/* "BASE/api/data/experiments/RUN"; false: the base is an address for documents alone. */
static bool run_address(const struct dashboard *to, struct str run, struct buf *out)
{
	struct str u = buf_str(&to->base), own = STR(UPLOAD_PATH);

	if (str_ends(u, own))
		u.n -= own.n;
	else if (str_ends(u, STR("/raw")))
		return false;
	buf_add_str(out, u);
	buf_add_text(out, "/api/data/experiments/");
	url_add_encoded(out, run);
	return true;
}

/* The dashboard's data of the run; NULL: nothing. */
static const struct json_value *ask_known(const struct upload_opts *o,
					  const struct upload_place *to, const char *address,
					  struct arena *a)
{
	struct fetch_opts how = dashboard_opts(to->to);
	struct fetch_reply reply = { 0 };
	struct json_value *answer = NULL;

	how.timeout_ms = UPLOAD_TIMEOUT_MS;
	how.cancel = o->cancel;
	if (fetch(address, NULL, &how, &reply, NULL) < 0)
		return NULL;
	if (reply.status != 200 ||
	    json_parse(a, arena_str(a, buf_str(&reply.body)), &answer, NULL) < 0)
		answer = NULL;
	fetch_reply_release(&reply);
	return json_get(answer, "traces");
}

/* Why the trace cannot be sent; NULL: it can. */
static const char *obstacle(const struct upload_trace *t)
{
	struct stat st;

	if (stat(t->path, &st) < 0)
		return "is missing";
	if (!S_ISREG(st.st_mode) || access(t->path, R_OK) < 0)
		return "cannot be read";
	if ((uint64_t)st.st_size != t->bytes ||
	    (t->changed_ns && t->changed_ns !=
		      (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec))
		return "has changed since";
	return t->bytes > TRACE_BYTES_MAX ? "is larger than 2047 MiB (TRACE_BYTES_MAX)" : NULL;
}

static bool is_known(const struct json_value *known, const char *path)
{
	char hex[DIGEST_HEX];
	struct str bytes;
	bool is = false;

	if (!known || known->kind != JSON_ARRAY || !known->count ||
	    file_map(path, &bytes, NULL) < 0)
		return false;
	digest_hex(DIGEST_SHA256, bytes, hex);
	file_unmap(bytes);
	for (size_t i = 0; i < known->count; i++)
		is |= str_is(json_text(json_get(&known->item[i], "hash"), STR("")), hex);
	return is;
}

/*
 * Sends o->trace to that run, each in at most this many tries. A trace that can never be sent is a
 * warning. *sent: how many arrived. TAKEN; LATER or NOT_ALLOWED with e: the rest is worth another
 * try.
 */
static enum answer upload_send_traces(const struct upload_opts *o, const struct upload_place *to,
			       unsigned tries, const struct upload_run *run, size_t *sent,
			       struct err *e)
{
	struct buf address = { 0 }, url = { 0 }, said = { 0 };
	const struct json_value *known = NULL;
	enum answer answer = TAKEN;
	struct arena a = { 0 };
	size_t unsent = 0;

	*sent = 0;
	if (!run_address(to->to, buf_str(&run->id), &address)) {
		buf_printf(&said, "the traces were not sent: %s accepts documents only; expected "
			   "the address of a dashboard, such as http://host:8080", to->url);
	} else if (o->n_traces && run->may_have) {
		known = ask_known(o, to, address.data, &a);
	}
	buf_printf(&url, "%s/traces", address.len ? address.data : "");
	for (size_t i = 0; address.len && i < o->n_traces; i++) {
		const char *path = o->trace[i].path, *why = obstacle(&o->trace[i]);

		if (!why && is_known(known, path))
			continue;
		answer = why ? REFUSED : post_often(o, tries, to, &(struct parcel){
			.url = url.data, .trace = path }, e);
		if (answer == LATER || answer == NOT_ALLOWED)
			break;
		*sent += answer == TAKEN;
		if (answer == REFUSED && !unsent++)
			buf_printf(&said, "%s%s%s", path, why ? " " : ": ", why ? why : e->text);
		answer = TAKEN;
	}
	if (unsent) {
		struct buf whole = { 0 };

		buf_printf(&whole, "%zu of %zu traces %s not sent: %s", unsent, o->n_traces,
			   unsent == 1 ? "was" : "were", said.data);
		buf_release(&said);
		said = whole;
	}
	if (said.len && o->warn)
		o->warn(o->self, said.data);
	buf_release(&address);
	buf_release(&url);
	buf_release(&said);
	arena_release(&a);
	return answer;
}

/* e is set unless TAKEN; REFUSED too when the token cannot be read. */
static enum answer deliver(const struct upload_opts *o, unsigned tries, const char *url,
			   const char *token_file, struct str document, struct delivered *done,
			   struct err *e)
{
	struct upload_run run = { 0 };
	struct dashboard dashboard;
	struct buf address_of = { 0 };
	enum answer answer = REFUSED;

	*done = (struct delivered){ 0 };
	if (dashboard_find(url, token_file, &dashboard, e) == 0) {
		const struct upload_place to = { url, &dashboard };

		address(&dashboard, &address_of);
		answer = post_often(o, tries, &to, &(struct parcel){
			.url = address_of.data, .document = document, .run = &run }, e);
		done->is_document_taken = answer == TAKEN;
		if (answer == TAKEN && o->n_traces)
			answer = upload_send_traces(o, &to, tries, &run, &done->traces, e);
	}
	dashboard_release(&dashboard);
	buf_release(&address_of);
	buf_release(&run.id);
	return answer;
}

/* ---- the spool ---- */

/* $XDG_STATE_HOME/profllm/spool or ~/.local/state/profllm/spool; "" without either. */
static void state_spool(struct buf *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	buf_reset(out);
	if (state && *state == '/')
		buf_printf(out, "%s/profllm/spool", state);
	else if (home && *home)
		buf_printf(out, "%s/.local/state/profllm/spool", home);
	else
		buf_add_text(out, "");
}

static void spool_folder(const struct upload_opts *o, struct buf *out)
{
	if (!o->spool) {
		state_spool(out);
		return;
	}
	buf_reset(out);
	buf_add_text(out, o->spool);
}

static int spool(const struct upload_opts *o, struct str document, struct err *e)
{
	struct buf folder = { 0 }, text = { 0 }, path = { 0 };
	struct json_writer w = json_writer(&text);
	char name[DIGEST_HEX], *token = o->token_file ? realpath(o->token_file, NULL) : NULL;
	char *url = dashboard_absolute(o->url);
	int rc;

	text.limit = UPLOAD_BYTES_MAX;
	spool_folder(o, &folder);
	json_begin_object(&w);
	json_member_text(&w, "url", url);
	json_member_text(&w, "token_file", token); /* whole: it is sent from another folder */
	json_member_raw(&w, "document", document);
	if (o->n_traces)
		json_member_array(&w, "traces");
	for (size_t i = 0; i < o->n_traces; i++) {
		json_begin_object(&w);
		json_member_text(&w, "path", o->trace[i].path);
		json_member_int(&w, "bytes", (int64_t)o->trace[i].bytes);
		json_member_int(&w, "changed_ns", o->trace[i].changed_ns);
		json_end_object(&w);
	}
	if (o->n_traces)
		json_end_array(&w);
	json_end_object(&w);
	digest_hex(DIGEST_SHA256, buf_str(&text), name);
	buf_printf(&path, "%s/%.24s.json", folder.data ? folder.data : "", name);
	if (!folder.len)
		rc = err_set(e, ERR_IO, "there is no folder to keep it in: neither XDG_STATE_HOME "
			     "nor HOME is set");
	else if (text.is_over)
		rc = err_set(e, ERR_LIMIT, "it is larger than UPLOAD_BYTES_MAX");
	else
		/* A URL may contain a password, which is needed to send. */
		rc = file_mkdirs_mode(folder.data, 0700, e) < 0 ? -1 :
			file_write_atomic_mode(path.data, buf_str(&text), 0600, e);
	free(token);
	free(url);
	buf_release(&folder);
	buf_release(&text);
	buf_release(&path);
	return rc;
}

static void say_uploaded(const struct upload_opts *o, const char *name, size_t traces)
{
	struct buf said = { 0 };

	buf_printf(&said, "Uploaded %s", name);
	if (traces)
		buf_printf(&said, " with %zu trace%s", traces, traces == 1 ? "" : "s");
	buf_printf(&said, " to %s", o->url);
	tell(o->line, o->self, said.data);
	buf_release(&said);
}

int upload_document(const struct upload_opts *o, struct str document, const char *name,
		    struct err *e)
{
	struct err why = { 0 };
	struct buf said = { 0 };
	struct delivered done;
	enum answer answer = deliver(o, o->tries ? o->tries : UPLOAD_TRIES, o->url, o->token_file,
				     document, &done, &why);
	const char *what = done.is_document_taken ? " was uploaded, but not all of its traces were" :
						    " was not uploaded";
	int rc = UPLOAD_SENT;

	if (answer == TAKEN) {
		say_uploaded(o, name, done.traces);
	} else if (answer == REFUSED) {
		*e = why;
		rc = err_wrap(e, "%s was not uploaded", name);
	} else if (spool(o, document, e) < 0) {
		rc = err_wrap(e, "%s%s (%s), and cannot be kept to be sent later", name, what,
			      why.text);
	} else {
		rc = UPLOAD_SPOOLED;
		buf_printf(&said, "%s%s (%s); it waits and is sent with the next upload or by "
			   "profllm run --upload-spool", name, what, why.text);
		tell(o->warn, o->self, said.data);
	}
	buf_release(&said);
	return rc;
}

/* ---- what waits ---- */

/* The member's text in buf, NULL when it is null or not a text. */
static const char *member(struct json_slice object, const char *key, struct buf *buf)
{
	struct json_slice v;

	if (!json_member(object, key, &v) || v.kind != JSON_STRING)
		return NULL;
	json_unescape(buf, v.raw);
	return buf->data ? buf->data : "";
}

/* The list of traces that spool wrote, in the arena. */
static void read_traces(struct json_slice object, struct arena *a, struct upload_opts *out)
{
	struct upload_trace *trace;
	struct json_slice list;
	struct json_value *v;

	out->trace = NULL;
	out->n_traces = 0;
	if (!json_member(object, "traces", &list) || json_parse(a, list.raw, &v, NULL) < 0 ||
	    v->kind != JSON_ARRAY)
		return;
	trace = arena_alloc(a, (v->count + 1) * sizeof(*trace));
	for (size_t i = 0; i < v->count; i++) {
		trace[out->n_traces++] = (struct upload_trace){
			arena_text(a, json_text(json_get(&v->item[i], "path"), STR(""))),
			(uint64_t)json_int(json_get(&v->item[i], "bytes"), 0),
			json_int(json_get(&v->item[i], "changed_ns"), 0),
		};
	}
	out->trace = trace;
}

static enum answer send_spooled(const struct upload_opts *o, const char *path, struct err *e)
{
	struct buf text = { 0 }, url = { 0 }, token = { 0 };
	struct upload_opts whole = *o;
	struct arena a = { 0 };
	struct delivered done;
	struct json_scan scan;
	struct json_slice all, document;
	const char *to, *noted, *with;
	enum answer answer = REFUSED;

	if (file_read(path, UPLOAD_BYTES_MAX, &text, e) < 0) {
		buf_release(&text);
		return access(path, F_OK) == 0 ? LATER : TAKEN; /* another run has sent it */
	}
	scan = (struct json_scan){ .text = buf_str(&text) };
	if (json_next(&scan, &all, e) == 0 && json_at_end(&scan) && all.kind == JSON_OBJECT &&
	    (to = member(all, "url", &url)) && json_member(all, "document", &document)) {
		noted = member(all, "token_file", &token);
		read_traces(all, &a, &whole);
		/* The token for one dashboard is not sent to another. */
		with = o->is_moved || (o->token_file && (!o->url || strcmp(o->url, to) == 0)) ?
			o->token_file : noted;
		answer = deliver(&whole, 1, o->is_moved ? o->url : to, with, document.raw, &done,
				 e);
		if (answer == LATER && !o->is_moved)
			err_add(e, "; if that dashboard has moved, profllm run --upload-spool --upload "
				"URL sends it there");
	} else {
		err_set(e, ERR_PARSE, "not a file of the spool: expected an object with url and "
				      "document");
	}
	buf_release(&text);
	buf_release(&url);
	buf_release(&token);
	arena_release(&a);
	return answer;
}

/* 1: sent, 0: stays in the spool. */
static int work_off(const struct upload_opts *o, const char *path)
{
	struct err e = { 0 };
	struct buf said = { 0 };
	enum answer answer = send_spooled(o, path, &e);

	if (answer == TAKEN) {
		unlink(path);
		buf_printf(&said, "Uploaded %s, which was waiting", path);
		tell(o->line, o->self, said.data);
	} else if (answer == REFUSED && e.code != ERR_USAGE && e.code != ERR_IO) {
		buf_printf(&said, "%s.refused", path);
		if (rename(path, said.data) == 0) {
			buf_reset(&said);
			buf_printf(&said, "%s was refused and is no longer sent (%s); it is kept as "
				   "%s.refused", path, e.text, path);
		}
		tell(o->warn, o->self, said.data);
	} else {
		buf_printf(&said, "%s still waits to be uploaded: %s", path, e.text);
		tell(o->warn, o->self, said.data);
	}
	buf_release(&said);
	return answer == TAKEN;
}

int upload_spool(const struct upload_opts *o, size_t *left, struct err *e)
{
	struct buf folder = { 0 }, path = { 0 };
	struct dirent *entry;
	DIR *dir;
	int sent = 0;
	size_t waiting = 0;

	spool_folder(o, &folder);
	dir = folder.len ? opendir(folder.data) : NULL;
	if (!dir && folder.len && errno != ENOENT)
		sent = err_set(e, ERR_IO, "cannot read the folder %s: %s", folder.data, strerror(errno));
	while (dir && (entry = readdir(dir))) {
		if (!str_ends(str_of(entry->d_name), STR(".json")) || entry->d_name[0] == '.')
			continue;
		buf_reset(&path);
		buf_printf(&path, "%s/%s", folder.data, entry->d_name);
		if (!upload_is_cancelled(o) && work_off(o, path.data))
			sent++;
		else
			waiting += access(path.data, F_OK) == 0;
	}
	if (dir)
		closedir(dir);
	if (left)
		*left = waiting;
	buf_release(&folder);
	buf_release(&path);
	return sent;
}

/* ---- traces for an existing run ---- */

int upload_traces(const struct upload_opts *o, struct str run, bool may_have, size_t *sent,
		  struct err *e)
{
	struct upload_run to_run = { .may_have = may_have };
	struct dashboard dashboard;
	int rc = dashboard_find(o->url, o->token_file, &dashboard, e);

	*sent = 0;
	buf_add_str(&to_run.id, run);
	if (rc == 0) {
		const struct upload_place to = { o->url, &dashboard };

		rc = upload_send_traces(o, &to, 1, &to_run, sent, e) == TAKEN ? 0 : -1;
	}
	dashboard_release(&dashboard);
	buf_release(&to_run.id);
	return rc;
}

int upload_trace(const struct upload_opts *o, struct str run, const char *path, struct err *e)
{
	struct parcel parcel = { .trace = path };
	struct dashboard dashboard;
	struct buf address = { 0 };
	struct stat st;
	int rc = dashboard_find(o->url, o->token_file, &dashboard, e);

	if (rc == 0 && stat(path, &st) == 0 && (uint64_t)st.st_size > TRACE_BYTES_MAX)
		rc = err_set(e, ERR_LIMIT, "%s is larger than 2047 MiB (TRACE_BYTES_MAX)", path);
	if (rc == 0 && !run_address(&dashboard, run, &address))
		rc = err_set(e, ERR_USAGE, "%s accepts documents only; expected the address of a "
			     "dashboard, such as http://host:8080", o->url);
	if (rc == 0) {
		const struct upload_place to = { o->url, &dashboard };

		buf_add_text(&address, "/traces");
		parcel.url = address.data;
		rc = post(o, &to, &parcel, e) == TAKEN ? 0 : -1;
	}
	dashboard_release(&dashboard);
	buf_release(&address);
	return rc;
}
