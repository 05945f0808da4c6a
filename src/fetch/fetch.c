/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - see fetch.h. The only file that includes libcurl besides a libcurl transport. */
#include "fetch/fetch.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "base/limits.h"
#include "base/mem.h"

#define PARALLEL_MAX 64
#define TIMEOUT_MS_DEFAULT 300000

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t take_bytes(char *data, size_t size, size_t n, void *self)
{
	struct fetch_reply *reply = self;

	buf_add(&reply->body, data, size * n);
	return reply->body.is_over ? 0 : size * n;
}

static bool is_cancelled(const struct fetch_opts *o)
{
	return o->cancel && atomic_load(o->cancel);
}

static int on_progress(void *self, curl_off_t down, curl_off_t got, curl_off_t up, curl_off_t sent)
{
	(void)down, (void)got, (void)up, (void)sent;
	return is_cancelled(self);
}

static struct curl_slist *header_list(const struct fetch_opts *o, bool is_post)
{
	struct curl_slist *list = NULL;

	bool is_typed = false;

	for (const char *const *h = o->header; h && *h; h++)
		is_typed |= strncasecmp(*h, "Content-Type:", 13) == 0;
	if (is_post && !is_typed)
		list = curl_slist_append(list, "Content-Type: application/json");
	for (const char *const *h = o->header; h && *h; h++)
		list = curl_slist_append(list, *h);
	return list;
}

static void set_up(CURL *curl, const char *url, const struct str *body,
		   const struct fetch_opts *o, struct curl_slist *headers,
		   struct fetch_reply *reply, char *message)
{
	reply->body.limit = o->body_bytes_max ? o->body_bytes_max : FETCH_BODY_BYTES_MAX;
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
			 (long)(o->timeout_ms ? o->timeout_ms : TIMEOUT_MS_DEFAULT));
	if (o->cancel) {
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
		curl_easy_setopt(curl, CURLOPT_XFERINFODATA, o);
	}
	if (o->unix_socket)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, o->unix_socket);
	if (o->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, o->ca_file);
	if (o->is_insecure) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->n);
		/* A copy: the next request may be written into the same memory. */
		curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body->p ? body->p : "");
	}
}

static int failed(CURLcode code, const char *message, const struct fetch_reply *reply,
		  const char *url, const struct fetch_opts *o, struct err *e)
{
	if (is_cancelled(o))
		return err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", url);
	if (reply->body.is_over)
		return err_set(e, ERR_LIMIT, "the answer from %s passes the limit of %zu bytes", url,
			       reply->body.limit);
	return err_set(e, ERR_NET, "%s: %s", url, *message ? message : curl_easy_strerror(code));
}

int fetch(const char *url, const struct str *body, const struct fetch_opts *o,
	  struct fetch_reply *reply, struct err *e)
{
	char message[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers;
	CURLcode code;
	CURL *curl;

	pthread_once(&curl_once, init_curl);
	curl = curl_easy_init();
	if (!curl)
		return err_set(e, ERR_NET, "libcurl cannot be started");
	*reply = (struct fetch_reply){ 0 };
	headers = header_list(o, body != NULL);
	set_up(curl, url, body, o, headers, reply, message);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
	curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	if (code == CURLE_OK)
		return 0;
	failed(code, message, reply, url, o, e);
	fetch_reply_release(reply);
	return -1;
}

void fetch_reply_release(struct fetch_reply *r)
{
	buf_release(&r->body);
}

/* One of the transfers under way. */
struct transfer {
	CURL *curl;
	size_t index;
	struct fetch_reply reply;
	char message[CURL_ERROR_SIZE];
};

static void begin(CURLM *multi, struct transfer *t, size_t i, const char *url,
		  const struct fetch_many *many, const struct fetch_opts *o,
		  struct curl_slist *headers)
{
	struct str body = many->body(many->self, i);

	t->index = i;
	buf_reset(&t->reply.body);
	set_up(t->curl, url, &body, o, headers, &t->reply, t->message);
	curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
	curl_multi_add_handle(multi, t->curl);
}

int fetch_many(const char *url, const struct fetch_many *many, const struct fetch_opts *o,
	       struct err *e)
{
	unsigned parallel = many->parallel < PARALLEL_MAX ? many->parallel : PARALLEL_MAX;
	struct transfer *transfer = mem_array(parallel, sizeof(*transfer));
	struct curl_slist *headers = header_list(o, true);
	size_t next = 0, done = 0;
	int running, left, rc = 0;
	CURLMsg *message;
	CURLM *multi;

	pthread_once(&curl_once, init_curl);
	multi = curl_multi_init();
	for (unsigned k = 0; k < parallel && next < many->n; k++) {
		transfer[k].curl = curl_easy_init();
		begin(multi, &transfer[k], next++, url, many, o, headers);
	}
	while (rc == 0 && done < many->n) {
		if (is_cancelled(o)) {
			rc = err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", url);
			break;
		}
		if (curl_multi_perform(multi, &running) != CURLM_OK ||
		    curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK)
			rc = err_set(e, ERR_NET, "%s: libcurl failed", url);
		while (rc == 0 && (message = curl_multi_info_read(multi, &left))) {
			struct transfer *t;

			if (message->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
			curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->reply.status);
			many->done(many->self, t->index,
				   message->data.result == CURLE_OK ? &t->reply : NULL);
			done++;
			curl_multi_remove_handle(multi, t->curl);
			if (next < many->n)
				begin(multi, t, next++, url, many, o, headers);
		}
	}
	for (unsigned k = 0; k < parallel; k++) {
		if (transfer[k].curl) {
			curl_multi_remove_handle(multi, transfer[k].curl);
			curl_easy_cleanup(transfer[k].curl);
		}
		fetch_reply_release(&transfer[k].reply);
	}
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	free(transfer);
	return rc;
}
