/* SPDX-License-Identifier: Apache-2.0 */
/* upload_traces.c - see upload.h: files of profilers, a request each, read while they are sent. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/file.h"
#include "base/limits.h"
#include "experiment/upload_parts.h"
#include "http/url.h"
#include "json/read.h"

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

/* What the dashboard says of the run; NULL: nothing. */
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

/* What speaks against sending it; NULL: nothing. */
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

static enum answer post(const struct upload_opts *o, const struct upload_place *to,
			const char *address, const char *path, struct err *e)
{
	struct fetch_opts how = dashboard_opts(to->to);
	struct fetch_reply reply = { 0 };
	struct buf url = { 0 };
	enum answer answer = LATER;

	how.cancel = o->cancel;
	buf_printf(&url, "%s/traces", address);
	if (fetch_send_file(url.data, "trace", path, &how, &reply, e) == 0) {
		answer = upload_judge(reply.status);
		if (answer != TAKEN)
			upload_say(&reply, to->url, e);
	}
	fetch_reply_release(&reply);
	buf_release(&url);
	return answer;
}

static enum answer post_often(const struct upload_opts *o, const struct upload_place *to,
			      unsigned tries, const char *address, const char *path, struct err *e)
{
	unsigned pause = o->pause_ms ? o->pause_ms : UPLOAD_PAUSE_MS;
	enum answer answer = post(o, to, address, path, e);

	for (unsigned i = 1; i < tries && answer == LATER && !upload_is_cancelled(o); i++) {
		upload_rest(o, &pause);
		answer = post(o, to, address, path, e);
	}
	return answer;
}

enum answer upload_send_traces(const struct upload_opts *o, const struct upload_place *to,
			       unsigned tries, const struct upload_run *run, size_t *sent,
			       struct err *e)
{
	struct buf address = { 0 }, said = { 0 };
	const struct json_value *known = NULL;
	enum answer answer = TAKEN;
	struct arena a = { 0 };
	size_t unsent = 0;

	*sent = 0;
	if (!run_address(to->to, buf_str(&run->id), &address)) {
		buf_printf(&said, "the traces were not sent: %s is an address for documents alone. "
			   "Expected that of a dashboard, such as http://host:8080", to->url);
	} else if (o->n_traces && run->may_have) {
		known = ask_known(o, to, address.data, &a);
	}
	for (size_t i = 0; address.len && i < o->n_traces; i++) {
		const char *path = o->trace[i].path, *why = obstacle(&o->trace[i]);

		if (!why && is_known(known, path))
			continue;
		answer = why ? REFUSED : post_often(o, to, tries, address.data, path, e);
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
	buf_release(&said);
	arena_release(&a);
	return answer;
}

/* ---- for a run that is there ---- */

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
	struct dashboard dashboard;
	struct buf address = { 0 };
	struct stat st;
	int rc = dashboard_find(o->url, o->token_file, &dashboard, e);

	if (rc == 0 && stat(path, &st) == 0 && (uint64_t)st.st_size > TRACE_BYTES_MAX)
		rc = err_set(e, ERR_LIMIT, "%s is larger than 2047 MiB (TRACE_BYTES_MAX)", path);
	if (rc == 0 && !run_address(&dashboard, run, &address))
		rc = err_set(e, ERR_USAGE, "%s is an address for documents alone; expected that of a "
			     "dashboard, such as http://host:8080", o->url);
	if (rc == 0) {
		const struct upload_place to = { o->url, &dashboard };

		rc = post(o, &to, address.data, path, e) == TAKEN ? 0 : -1;
	}
	dashboard_release(&dashboard);
	buf_release(&address);
	return rc;
}
