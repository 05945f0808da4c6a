/* SPDX-License-Identifier: Apache-2.0 */
/* web/web.c - see web.h: the server from options to its end. */
#include "web/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "net/sock.h"
#include "web/launch.h"
#include "web/server.h"
#include "web/state.h"

#define BACKLOG 1024
#define PAUSE_NS 20000000
/* Beside connections: the store's files, logs, jobs, traces that are sent. */
#define DESCRIPTORS_MIN 256

static const char *copy(struct web *w, const char *text)
{
	return text ? arena_text(&w->arena, str_of(text)) : NULL;
}

static void copy_options(struct web *w, const struct web_opts *o)
{
	const char **names = arena_alloc(&w->arena, (o->n_host_names + 1) * sizeof(*names));

	w->o = *o;
	w->o.listen = copy(w, o->listen);
	w->o.token_file = copy(w, o->token_file);
	w->o.version = copy(w, o->version);
	w->o.log_path = copy(w, o->log_path);
	w->o.folder = copy(w, o->folder);
	for (size_t i = 0; i < o->n_host_names; i++)
		names[i] = copy(w, o->host_name[i]);
	w->o.host_name = names;
}

void server_address_text(const struct sockaddr_storage *address, char out[static 46])
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	*out = 0;
	if (address->ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, out, 46);
	else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], out, 46);
	else if (address->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, out, 46);
}

/* The bytes that tell clients apart. */
static struct str client_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const char *bytes = (const char *)&six->sin6_addr;

	if (address->ss_family == AF_INET)
		return (struct str){ (const char *)&four->sin_addr, 4 };
	if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return (struct str){ bytes + 12, 4 };
	return (struct str){ bytes, address->ss_family == AF_INET6 ? 8 : 0 };
}

bool server_is_same_client(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	return str_eq(client_of(a), client_of(b));
}

/* "HOST:PORT" into its parts; host in the arena. */
static int split_listen(struct web *w, const char **host, uint16_t *port, struct err *e)
{
	struct str all = str_of(w->o.listen), part = auth_host_part(all);
	const char *colon = strrchr(w->o.listen, ':');
	uint64_t number;

	if (!part.p || !colon || !str_to_u64(str_of(colon + 1), &number) || number > 65535)
		return err_set(e, ERR_USAGE, "--listen %s: expected HOST:PORT, such as 127.0.0.1:8080 "
			       "or [::1]:8080", w->o.listen);
	*host = arena_text(&w->arena, part);
	*port = (uint16_t)number;
	return 0;
}

static int listen_at(struct web *w, struct err *e)
{
	struct sock_addr address[SOCK_ADDRS_MAX];
	const char *host = NULL;
	char text[80];
	uint16_t port = 0;

	if (split_listen(w, &host, &port, e) < 0)
		return -1;
	if (!w->auth.n && !auth_is_loopback(str_of(host)))
		return err_set(e, ERR_USAGE, "--listen %s: others than this machine can reach that, so "
			       "--auth-token-file is needed", w->o.listen);
	if (sock_resolve(host, port, address, e) < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	w->listener = sock_listen(&address[0], BACKLOG, e);
	if (w->listener < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	sock_addr_text(&address[0], text, sizeof(text));
	snprintf(w->url, sizeof(w->url), "http://%s", text);
	w->port = ntohs(address[0].any.sa_family == AF_INET6 ?
			((struct sockaddr_in6 *)&address[0].storage)->sin6_port :
			((struct sockaddr_in *)&address[0].storage)->sin_port);
	return 0;
}

/* Configurations may hold secrets: a new folder is its owner's alone. */
static int make_folder(const char *path, struct err *e)
{
	return file_mkdirs_mode(path, 0700, e) < 0 ? err_wrap(e, "--jobs-dir") : 0;
}

int web_open(const struct web_opts *o, struct web **out, struct err *e)
{
	struct web *w = mem_alloc(sizeof(*w));

	w->listener = -1;
	w->began_ns = clock_real_ns();
	copy_options(w, o);
	metrics_open(w);
	if (getrandom(&w->boot, sizeof(w->boot), 0) != sizeof(w->boot))
		w->boot = (uint64_t)w->began_ns;
	if (sock_raise_nofile() < WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN) {
		err_set(e, ERR_RUN, "too few files may be open (ulimit -n): at least %d are needed",
			WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN);
		goto fail;
	}
	if ((o->token_file && auth_read(&w->auth, o->token_file, e) < 0) || listen_at(w, e) < 0 ||
	    log_open(w, e) < 0)
		goto fail;
	if (make_folder(o->folder, e) < 0 || params_open(w, e) < 0)
		goto fail;
	*out = w;
	return 0;
fail:
	web_free(w);
	return -1;
}

const char *web_url(const struct web *w)
{
	return w->url;
}

unsigned web_port(const struct web *w)
{
	return w->port;
}

int web_start(struct web *w, struct store *store, struct err *e)
{
	w->store = store;
	carrier_make(w);
	/* Jobs first: whoever asks for one finds it. */
	if (upload_open(w, e) < 0 || launch_open(w, e) < 0 || work_open(w, e) < 0)
		return -1;
	return carrier_open(w, e);
}

/* Until no request is under way. */
static bool wait_for_requests(struct web *w, int64_t until_ns)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };

	while (atomic_load(&w->in_flight) > 0) {
		if (clock_mono_ns() > until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static int left_ms(int64_t until_ns)
{
	int64_t left = (until_ns - clock_mono_ns()) / 1000000;

	return left > 1000 ? (int)left : 1000;
}

bool web_stop(struct web *w)
{
	int64_t until = clock_mono_ns() + WEB_STOP_SECONDS * 1000000000ll;

	carrier_quiesce(w);
	/* Who comes now is refused and does not wait. */
	close(w->listener);
	w->listener = -1;
	atomic_store(&w->is_stopping, true);
	launch_stop(w);
	wait_for_requests(w, until);
	if (w->work && !work_stop(w, left_ms(until)))
		return false;
	if (w->upload && !upload_stop(w, left_ms(until)))
		return false;
	carrier_close(w);
	return true;
}

void web_free(struct web *w)
{
	if (!w)
		return;
	launch_close(w);
	upload_close(w);
	work_close(w);
	if (w->listener >= 0)
		close(w->listener);
	log_close(w);
	metrics_close(w);
	auth_release(&w->auth);
	arena_release(&w->arena);
	free(w);
}
