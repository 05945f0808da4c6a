/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_cache.c - emptying a server's caches between runs (sweep spec 7.3, 14.1).
 *
 * vLLM has up to three of them and an endpoint for each, only with VLLM_SERVER_DEV_MODE=1; SGLang
 * has one that refuses while requests are under way. The others have none to be asked.
 */
#include "run/server_parts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define RESET_TIMEOUT_MS 60000
#define FLUSH_TRIES 20
#define FLUSH_PAUSE_NS 250000000

static int post(const struct server *s, const char *path, long *status, struct err *e)
{
	struct fetch_opts o = server_fetch_opts(s, RESET_TIMEOUT_MS);
	struct fetch_reply reply = { 0 };
	struct buf url = { 0 };
	int rc;

	buf_printf(&url, "%s%s", s->where.url, path);
	rc = fetch(url.data, &STR(""), &o, &reply, e);
	*status = rc == 0 ? reply.status : 0;
	fetch_reply_release(&reply);
	buf_release(&url);
	return rc < 0 ? err_wrap(e, "cannot reset the server's caches") : 0;
}

static void say_where(const struct server *s)
{
	struct buf text = { 0 };

	buf_printf(&text, "Resetting caches at %s", s->where.url);
	if (s->hooks.line)
		s->hooks.line(s->hooks.self, text.data);
	buf_release(&text);
}

/* Releases before an endpoint was there answer 404 to it; to all of them only without dev mode. */
static int reset_vllm(const struct server *s, struct err *e)
{
	static const char *const paths[] = {
		"/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache",
	};
	unsigned done = 0;
	long status;

	say_where(s);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (post(s, paths[i], &status, e) < 0)
			return -1;
		if (status >= 200 && status < 300)
			done++;
		else if (status != 404 && status != 405)
			return err_set(e, ERR_RUN, "cannot reset the server's caches: POST %s%s was answered with %ld",
				       s->where.url, paths[i], status);
	}
	if (!done)
		return err_set(e, ERR_RUN, "cannot reset the server's caches: %s has none of the /reset_... "
			       "endpoints, which vLLM has only with VLLM_SERVER_DEV_MODE=1; use --after-bench-cmd",
			       s->where.url);
	return 0;
}

static int reset_sglang(const struct server *s, struct err *e)
{
	long status = 0;

	say_where(s);
	for (int i = 0; i < FLUSH_TRIES; i++) {
		if (post(s, "/flush_cache", &status, e) < 0)
			return -1;
		if (status >= 200 && status < 300)
			return 0;
		if (status != 400)
			break;
		nanosleep(&(struct timespec){ 0, FLUSH_PAUSE_NS }, NULL);
	}
	return err_set(e, ERR_RUN, "cannot reset the server's caches: POST %s/flush_cache was answered with %ld",
		       s->where.url, status);
}

static bool has_disk_cache(char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		if (strcmp(argv[i], "--vector-disk-cache") == 0)
			return true;
	return false;
}

bool server_kind_resets(enum server_kind kind)
{
	return kind == SERVER_VLLM || kind == SERVER_SIM || kind == SERVER_SGLANG ||
	       kind == SERVER_INFINITY;
}

int server_reset_caches(struct server *s, struct err *e)
{
	switch (s->where.kind) {
	case SERVER_VLLM:
	case SERVER_SIM:
		return reset_vllm(s, e);
	case SERVER_SGLANG:
		return reset_sglang(s, e);
	case SERVER_INFINITY:
		if (!has_disk_cache(s->opts.argv))
			return 0;
		return err_set(e, ERR_RUN, "Infinity server uses caching but does not expose a method to reset "
			       "the cache");
	case SERVER_LLAMACPP:
	case SERVER_OTHER:
		break;
	}
	return err_set(e, ERR_RUN, "No implementation of `reset_caches` for `%s` server. Please specify a "
		       "custom command via `--after-bench-cmd`.", s->opts.argv[0]);
}
