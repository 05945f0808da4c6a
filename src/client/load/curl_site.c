/* SPDX-License-Identifier: Apache-2.0 */
/* curl_site.c - see curl_site.h. */
#include "client/load/curl_site.h"

#include <assert.h>

#include "client/http/head.h"
#include "client/http/url.h"
#include "client/net/sock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

static int resolve(struct curl_site *s, const struct url *url, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct buf line = { 0 };
	int n = sock_resolve(url->host, url->port, addr, e);

	if (n < 0)
		return -1;
	if (strchr(url->host, ':')) /* an IPv6 address names itself */
		return 0;
	buf_printf(&line, "%s:%u:", url->host, (unsigned)url->port);
	for (int i = 0; i < n; i++) {
		char text[128];

		sock_addr_text(&addr[i], text, sizeof(text));
		*strrchr(text, ':') = 0;
		buf_printf(&line, "%s%s", i ? "," : "", text);
	}
	s->resolve = buf_take(&line);
	return 0;
}

int curl_site_fill(struct curl_site *s, const char *base_url, const char *proxy, struct err *e)
{
	struct buf origin = { 0 };
	struct url url;

	*s = (struct curl_site){ 0 };
	if (url_parse(str_of(base_url), &url, e) < 0)
		return -1;
	s->is_tls = url.is_tls;
	s->proxy = proxy && !url.is_unix ? proxy : "";
	if (url.is_unix) {
		s->unix_path = mem_text(url.socket);
		s->origin = mem_text("http://localhost");
		return 0;
	}
	buf_add_text(&origin, url.is_tls ? "https://" : "http://");
	url_add_authority(&origin, &url);
	s->origin = buf_take(&origin);
	return *s->proxy ? 0 : resolve(s, &url, e);
}

void curl_site_release(struct curl_site *s)
{
	free(s->origin);
	free(s->unix_path);
	free(s->resolve);
	*s = (struct curl_site){ 0 };
}

void curl_request_split(struct str request, struct curl_request *out)
{
	ptrdiff_t n = http_head_end(request, NULL);
	struct str line;

	assert(n > 0); /* we wrote it */
	out->lines = (struct str){ request.p, (size_t)n };
	out->body = (struct str){ request.p + n, request.n - (size_t)n };
	http_head_line(&out->lines, &line);
	assert(str_starts(line, STR("POST ")));
	str_cut(&line, ' ');
	out->target = str_cut(&line, ' ');
}

int curl_head_add(struct buf *head, size_t *bytes, struct str line, bool is_trailer, struct err *e)
{
	*bytes += line.n;
	if (*bytes > HTTP_HEADS_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the headers and trailers of the answer exceed the "
			       "limit of %d bytes",
			       HTTP_HEADS_BYTES_MAX);
	if (is_trailer)
		return 0;
	if (str_starts(line, STR("HTTP/")))
		buf_reset(head);
	buf_add_str(head, line);
	if (!head->is_over)
		return 0;
	return err_set(e, ERR_LIMIT, "the head of the answer exceeds the limit of %d bytes",
		       HTTP_HEAD_BYTES_MAX);
}

int curl_head_read(struct str head, bool *is_event_stream, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	struct http_framing f;

	if (http_framing_read(head, &f, e) < 0)
		return -1;
	if (f.coding.p)
		return err_set(e, ERR_NET, "the answer is compressed (Content-Encoding: %s) though "
			       "identity was asked for", http_excerpt(shown, f.coding));
	*is_event_stream = f.is_event_stream;
	return 0;
}
