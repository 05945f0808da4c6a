/* SPDX-License-Identifier: Apache-2.0 */
/* visit.c - finds out about a server before load is sent to it. See doctor.h. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "client/http/prometheus.h"
#include "client/http/url.h"
#include "client/net/sock.h"
#include "client/net/tls.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "host/doctor/doctor.h"
#include "input/fetch/fetch.h"

#define CONNECTS 5         /* the median of this many is shown */
#define WAIT_MS 10000      /* for a connection, a handshake, an answer */
#define MODELS_SHOWN 4

struct visitor {
	const struct doctor_visit *v;
	struct url url;
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct doctor_server *out;
};

static double since_ms(int64_t from)
{
	return (double)(clock_mono_ns() - from) / 1e6;
}

__attribute__((format(printf, 2, 3)))
static void failed(struct doctor_stage *s, const char *fmt, ...)
{
	va_list args;

	s->is = DOCTOR_FAILED;
	va_start(args, fmt);
	fmt_vtext(s->text, sizeof(s->text), fmt, args);
	va_end(args);
}

/* ---- name, route, connection ---- */

static bool resolve(struct visitor *w)
{
	struct doctor_stage *s = &w->out->name;
	struct err e = { 0 };
	int64_t from = clock_mono_ns();
	int n;

	if (w->url.is_unix) {
		if (sock_addr_unix(w->url.socket, &w->addr[0], &e) == 0)
			return true;
		failed(s, "%s", e.text);
		return false;
	}
	n = sock_resolve(w->url.host, w->url.port, w->addr, &e);
	s->ms = since_ms(from);
	if (n < 0) {
		failed(s, "%s", e.text);
		return false;
	}
	s->is = DOCTOR_DONE;
	w->out->n_addresses = (size_t)n;
	sock_addr_text(&w->addr[0], s->text, sizeof(s->text));
	return true;
}

/* A connected descriptor; -1: the stage has the reason. */
static int connect_once(struct visitor *w, double *ms)
{
	int64_t from = clock_mono_ns();
	struct pollfd wait = { .events = POLLOUT };
	struct err e = { 0 };
	int fd = sock_connect(&w->addr[0], false, &e), error = 0;

	if (fd < 0) {
		failed(&w->out->connect, "%s", e.text);
		return -1;
	}
	wait.fd = fd;
	if (!sock_is_connected(fd))
		error = poll(&wait, 1, WAIT_MS) == 1 ? sock_connect_result(fd) : ETIMEDOUT;
	*ms = since_ms(from);
	if (error) {
		failed(&w->out->connect, "%s", strerrordesc_np(error));
		sock_close(fd);
		return -1;
	}
	return fd;
}

/* The last one of several stays open, for TLS. */
static int connect_often(struct visitor *w)
{
	struct doctor_stage *s = &w->out->connect;
	double ms[CONNECTS] = { 0 };
	int fd = -1;

	for (int i = 0; i < CONNECTS; i++) {
		sock_close(fd);
		fd = connect_once(w, &ms[i]);
		if (fd < 0)
			return -1;
		w->out->connect_max_ms = fmax(w->out->connect_max_ms, ms[i]);
		for (int k = i; k > 0 && ms[k] < ms[k - 1]; k--) {
			double later = ms[k - 1];

			ms[k - 1] = ms[k];
			ms[k] = later;
		}
	}
	s->is = DOCTOR_DONE;
	s->ms = ms[CONNECTS / 2];
	return fd;
}

/* ---- TLS ---- */

/* 1 done, -1 with e. */
static int shake_hands(struct tls *tls, int fd, struct err *e)
{
	char bytes[READ_BYTES / 4];
	struct buf out = { 0 };
	struct str in = { 0 };
	int64_t until = clock_mono_ns() + WAIT_MS * 1000000ll;
	int done;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t stamp_ns;
		ssize_t n;

		buf_reset(&out);
		done = tls_handshake(tls, in, &out, e);
		/* A handshake's few thousand bytes fit into an empty socket. */
		if (out.len)
			(void)sock_send(fd, buf_str(&out));
		if (done != 0)
			break;
		if (clock_mono_ns() > until || poll(&wait, 1, WAIT_MS) != 1) {
			done = err_set(e, ERR_NET, "no answer within %d s", WAIT_MS / 1000);
			break;
		}
		n = sock_recv(fd, bytes, sizeof(bytes), &stamp_ns);
		if (n <= 0) {
			done = err_set(e, ERR_NET, "the server closed the connection");
			break;
		}
		in = (struct str){ bytes, (size_t)n };
	}
	buf_release(&out);
	return done;
}

static void try_tls(struct visitor *w, int fd)
{
	const struct tls_opts opts = { .is_insecure = w->v->is_insecure, .ca_file = w->v->ca_file };
	struct doctor_stage *s = &w->out->tls;
	struct err e = { 0 };
	struct tls_config *config = tls_config_new(&opts, &e);
	struct tls *tls = config ? tls_new(config, w->url.host, &e) : NULL;
	int64_t from = clock_mono_ns();

	if (tls && shake_hands(tls, fd, &e) > 0) {
		s->is = DOCTOR_DONE;
		s->ms = since_ms(from);
		snprintf(w->out->tls_version, sizeof(w->out->tls_version), "%s", tls_version(tls));
	} else {
		failed(s, "%s", e.text);
	}
	tls_free(tls);
	tls_config_free(config);
}

/* ---- answers ---- */

/* The status; 0: no answer, and the stage has the reason. */
static long get(struct visitor *w, const char *path, struct doctor_stage *s, struct buf *body)
{
	struct fetch_opts opts = { .is_insecure = w->v->is_insecure, .ca_file = w->v->ca_file,
				   .proxy = w->v->proxy ? w->v->proxy : "",
				   .timeout_ms = WAIT_MS };
	struct buf url = { 0 }, key = { 0 };
	const char *header[2] = { NULL, NULL };
	struct fetch_reply reply = { 0 };
	struct err e = { 0 };
	int64_t from;
	long status = 0;

	if (w->url.is_unix) {
		opts.unix_socket = w->url.socket;
		buf_printf(&url, "http://localhost%.*s%s", (int)w->url.path.n, w->url.path.p, path);
	} else {
		buf_printf(&url, "%s%s", w->v->url, path);
	}
	if (w->v->api_key) {
		buf_printf(&key, "Authorization: Bearer %s", w->v->api_key);
		header[0] = key.data;
		opts.header = header;
	}
	from = clock_mono_ns();
	if (fetch(url.data, NULL, &opts, &reply, &e) == 0) {
		s->is = DOCTOR_DONE;
		s->ms = since_ms(from);
		status = reply.status;
		buf_add_str(body, buf_str(&reply.body));
	} else {
		failed(s, "%s", e.text);
	}
	fetch_reply_release(&reply);
	buf_release(&url);
	buf_release(&key);
	return status;
}

/* The names that /v1/models lists, in the stage's text. */
static void name_models(struct str body, struct doctor_stage *s)
{
	const struct json_value *list;
	struct json_value *v = NULL;
	struct arena a = { 0 };
	struct buf names = { 0 };

	if (json_parse(&a, body, &v, NULL) == 0) {
		list = json_get(v, "data");
		for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
			const struct json_value *id = json_get(&list->item[i], "id");

			if (i < MODELS_SHOWN && id && id->kind == JSON_STRING)
				buf_printf(&names, "%s%.*s", i ? ", " : "", (int)id->text.n,
					   id->text.p);
			else if (i == MODELS_SHOWN)
				buf_add_text(&names, ", ...");
		}
	}
	snprintf(s->text, sizeof(s->text), "%s", names.data ? names.data : "");
	buf_release(&names);
	arena_release(&a);
}

static void ask(struct visitor *w)
{
	struct doctor_server *out = w->out;
	struct prometheus_sample sample;
	struct buf body = { 0 };
	struct str rest;
	int rc;

	out->models_status = get(w, "/v1/models", &out->models, &body);
	if (out->models_status == 200)
		name_models(buf_str(&body), &out->models);
	if (out->models.is == DOCTOR_FAILED)
		goto done;
	buf_reset(&body);
	out->metrics_status = get(w, "/metrics", &out->metrics, &body);
	rest = buf_str(&body);
	while (out->metrics_status == 200 && (rc = prometheus_next(&rest, &sample, NULL)) != 0)
		out->n_series += rc > 0;
done:
	buf_release(&body);
}

int doctor_visit(const struct doctor_visit *v, struct doctor_server *out, struct err *e)
{
	struct visitor w = { .v = v, .out = out };
	struct buf authority = { 0 };
	int fd = -1;

	*out = (struct doctor_server){ .has_proxy = v->proxy != NULL };
	if (url_parse(str_of(v->url), &w.url, e) < 0)
		return -1;
	out->is_unix = w.url.is_unix;
	out->is_tls = w.url.is_tls;
	snprintf(out->host, sizeof(out->host), "%s", w.url.host);
	url_add_authority(&authority, &w.url);
	snprintf(out->authority, sizeof(out->authority), "%s", authority.data);
	buf_release(&authority);
	if (resolve(&w)) {
		char route[LINK_NAME_BYTES];

		if (link_to(&w.addr[0], route))
			link_look(route, &out->route);
		fd = connect_often(&w);
		if (fd >= 0 && out->is_tls)
			try_tls(&w, fd);
		sock_close(fd);
	}
	/* A proxy may know names and ways that this machine does not. */
	if (out->has_proxy || (out->connect.is == DOCTOR_DONE && out->tls.is != DOCTOR_FAILED))
		ask(&w);
	return 0;
}
