/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_http_words.c - the command that starts the server of --backend http: --server-cmd
 * (vllm serve), then the engine's arguments as they were typed.
 *
 * `vllm serve` wants its model as a word of its own. A server of vLLM's or ours whose port nobody
 * has named gets one that is free, on this machine's own address.
 */
#include "run/offline_http.h"

#include <arpa/inet.h>

#include "base/words.h"
#include "engine/args.h"
#include "net/sock.h"

#define DEFAULT_COMMAND "vllm serve"
#define LOOPBACK "127.0.0.1"

/* The last model among the arguments goes where `vllm serve` wants it; the others are gone. */
static void place_model(char **argv, char *const *begin, struct arena *a)
{
	char *const *at = begin;
	struct engine_token token;
	const char *model = NULL;
	bool is_placed = false;
	char **out = argv + (begin - argv), **first = out;

	for (char *const *from = at; engine_argv_next(&at, &token); from = at) {
		is_placed |= token.is_positional;
		if (!token.is_positional && token.arg && token.has_value &&
		    strcmp(token.arg->name, "model") == 0) {
			model = arena_text(a, token.value);
			continue;
		}
		memmove(out, from, token.n * sizeof(*out));
		out += token.n;
	}
	*out = NULL;
	if (!model || is_placed)
		return;
	memmove(first + 1, first, (size_t)(out + 1 - first) * sizeof(*first));
	*first = (char *)(uintptr_t)model;
}

static bool names(char *const *argv, const char *option)
{
	size_t n = strlen(option);

	for (; *argv; argv++)
		if (strncmp(*argv, option, n) == 0 && ((*argv)[n] == 0 || (*argv)[n] == '='))
			return true;
	return false;
}

/* One that was free a moment ago. */
static int free_port(unsigned *port, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	int fd;

	if (sock_resolve(LOOPBACK, 0, addr, e) < 0 || (fd = sock_listen(addr, 1, e)) < 0)
		return -1;
	*port = ntohs(((const struct sockaddr_in *)(const void *)&addr[0].any)->sin_port);
	sock_close(fd);
	return 0;
}

static int place_port(struct http *h, size_t n, struct err *e)
{
	struct server_address where;
	unsigned port;

	if (server_address(h->argv, &where, e) < 0)
		return -1;
	if (where.is_elsewhere || (where.kind != SERVER_VLLM && where.kind != SERVER_SIM) ||
	    names(h->argv, "--port") || names(h->argv, "--uds"))
		return 0;
	if (free_port(&port, e) < 0)
		return err_wrap(e, "a port for the server");
	if (!names(h->argv, "--host")) {
		h->argv[n++] = arena_text(&h->arena, STR("--host"));
		h->argv[n++] = arena_text(&h->arena, STR(LOOPBACK));
	}
	h->argv[n++] = arena_text(&h->arena, STR("--port"));
	h->argv[n++] = arena_printf(&h->arena, "%u", port);
	h->argv[n] = NULL;
	return 0;
}

int http_words(struct http *h, char *const *engine_argv, struct err *e)
{
	const char *text = h->opts->server_cmd ? h->opts->server_cmd : DEFAULT_COMMAND;
	size_t n, more = words_count(engine_argv);
	char *const *begin;
	char **words;

	if (words_split(str_of(text), &h->arena, &words, &n, e) < 0)
		return err_wrap(e, "--server-cmd");
	if (n == 0)
		return err_set(e, ERR_USAGE, "--server-cmd: the command is empty");
	h->argv = arena_alloc(&h->arena, (n + more + 8) * sizeof(*h->argv));
	memcpy(h->argv, words, n * sizeof(*words));
	for (size_t i = 0; i < more; i++)
		h->argv[n + i] = arena_text(&h->arena, str_of(engine_argv[i]));
	begin = engine_argv_begin(h->argv);
	if (begin && begin > h->argv && strcmp(begin[-1], "serve") == 0)
		place_model(h->argv, begin, &h->arena);
	return place_port(h, words_count(h->argv), e);
}
