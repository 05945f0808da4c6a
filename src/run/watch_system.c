/* SPDX-License-Identifier: Apache-2.0 */
/* watch_system.c - see watch.h. */
#include "base/mem.h"
#include "http/url.h"
#include "proc/tree.h"
#include "run/watch.h"

static bool is_here(const struct url *u)
{
	return u->is_unix || strcmp(u->host, "localhost") == 0 || strcmp(u->host, "::1") == 0 ||
	       strncmp(u->host, "127.", 4) == 0;
}

/* Whoever listens there; 0: not on this machine, or not to be seen. */
static pid_t listener_of(const char *base_url)
{
	struct err ignored;
	struct url url;
	pid_t holder = 0;

	if (url_parse(str_of(base_url), &url, &ignored) == 0 && is_here(&url))
		port_look(url.port, url.is_unix ? url.socket : NULL, 0, &holder);
	return holder;
}

static size_t find_servers(const struct stage *s, struct system_process *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->derived->n_urls; i++) {
		pid_t pid = listener_of(s->derived->base_urls[i]);
		bool is_known = pid == 0;

		for (size_t k = 0; k < n; k++)
			is_known |= out[k].pid == pid;
		if (!is_known)
			out[n++] = (struct system_process){ pid, "server" };
	}
	return n;
}

struct system_watch *watch_system(const struct stage *s)
{
	struct system_opts opts = s->derived->system;
	struct system_process *found;
	struct system_watch *watch;

	if (!opts.gpu && !opts.host && !opts.process)
		return NULL;
	found = mem_array(s->derived->n_urls, sizeof(*found));
	if (opts.process && opts.n_processes == 0) {
		opts.processes = found;
		opts.n_processes = find_servers(s, found);
	}
	watch = system_begin(&opts);
	free(found);
	return watch;
}
