/* SPDX-License-Identifier: Apache-2.0 */
/* web/client.c - whose a request is that came by way of a proxy. */
#include <arpa/inet.h>

#include "web/state.h"

static bool read_address(struct str text, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	char copy[INET6_ADDRSTRLEN];

	*out = (struct sockaddr_storage){ 0 };
	if (!text.n || text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = 0;
	if (inet_pton(AF_INET, copy, &four->sin_addr) == 1)
		out->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, copy, &six->sin6_addr) == 1)
		out->ss_family = AF_INET6;
	return out->ss_family != 0;
}

bool client_is_proxy(const struct web *w, const char *address)
{
	for (size_t i = 0; i < w->o.n_proxies; i++)
		if (strcmp(w->o.proxy[i], *address ? address : "unix") == 0)
			return true;
	return false;
}

bool client_forwarded(struct str header, struct sockaddr_storage *out)
{
	struct str last = { 0 };

	while (header.n)
		last = str_trim(str_cut(&header, ','));
	return read_address(last, out);
}

int client_check_proxies(const struct web_opts *o, struct err *e)
{
	struct sockaddr_storage address;

	for (size_t i = 0; i < o->n_proxies; i++)
		if (strcmp(o->proxy[i], "unix") != 0 && !read_address(str_of(o->proxy[i]), &address))
			return err_set(e, ERR_USAGE, "--trusted-proxy %s: expected the proxy's address, "
				       "such as 127.0.0.1, or unix where it comes by a Unix socket",
				       o->proxy[i]);
	return 0;
}
