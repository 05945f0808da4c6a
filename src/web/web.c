/* SPDX-License-Identifier: Apache-2.0 */
/* web/web.c - see web.h: the server from options to its end. */
#include "web/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/sock.h"
#include "web/launch.h"
#include "web/server.h"
#include "web/state.h"

#define BACKLOG 1024
#define PAUSE_NS 20000000
#define MAPPED_BYTES_MIN (128 << 10)
/* Beside connections: the store's files, logs, jobs, traces that are sent. */
#define DESCRIPTORS_MIN 256

static const char *copy(struct web *w, const char *text)
{
	return text ? arena_text(&w->arena, str_of(text)) : NULL;
}

static struct web_names copy_names(struct web *w, struct web_names names)
{
	const char **v = arena_alloc(&w->arena, (names.n + 1) * sizeof(*v));

	for (size_t i = 0; i < names.n; i++)
		v[i] = copy(w, names.v[i]);
	return (struct web_names){ v, names.n };
}

static void copy_options(struct web *w, const struct web_opts *o)
{
	w->o = *o;
	w->o.listen = copy(w, o->listen);
	w->o.token_file = copy(w, o->token_file);
	w->o.version = copy(w, o->version);
	w->o.log_path = copy(w, o->log_path);
	w->o.folder = copy(w, o->folder);
	w->o.host_name = copy_names(w, (struct web_names){ o->host_name, o->n_host_names }).v;
	w->o.proxy = copy_names(w, (struct web_names){ o->proxy, o->n_proxies }).v;
	w->o.launch_env = copy_names(w, o->launch_env);
	w->o.include_dir = copy_names(w, o->include_dir);
	w->o.launch_command = copy_names(w, o->launch_command);
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

uint64_t server_client_key(const struct sockaddr_storage *address)
{
	return map_hash(client_of(address));
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

/* A socket file of mode 0600 from its first moment; before there are threads, for the umask. */
static int listen_at_path(struct web *w, const char *path, struct err *e)
{
	struct sock_addr address;
	struct stat st;
	mode_t before;

	if (sock_addr_unix(path, &address, e) < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return err_set(e, ERR_USAGE, "--listen %s: %s already exists and is not a socket; "
			       "choose another path", w->o.listen, path);
	before = umask(0177);
	w->listener = sock_listen(&address, BACKLOG, e);
	umask(before);
	if (w->listener < 0 && errno == EADDRINUSE)
		return err_set(e, ERR_RUN, "--listen %s: another program listens there; end it "
			       "first, or choose another path", w->o.listen);
	if (w->listener < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	if (lstat(path, &st) == 0) {
		w->socket = arena_text(&w->arena, str_of(path));
		w->socket_id = (struct file_id){ st.st_dev, st.st_ino };
	}
	snprintf(w->url, sizeof(w->url), "unix:%s", path);
	return 0;
}

/* Unless another server has taken its place. */
static void remove_socket(struct web *w)
{
	struct stat st;

	if (w->socket && lstat(w->socket, &st) == 0 && st.st_dev == w->socket_id.dev &&
	    st.st_ino == w->socket_id.ino)
		unlink(w->socket);
	w->socket = NULL;
}

static void stop_listening(struct web *w)
{
	remove_socket(w);
	sock_close(w->listener);
	w->listener = -1;
}

static int listen_at(struct web *w, struct err *e)
{
	struct sock_addr address[SOCK_ADDRS_MAX];
	const char *host = NULL;
	char text[80];
	uint16_t port = 0;

	if (strncmp(w->o.listen, "unix:", 5) == 0)
		return listen_at_path(w, w->o.listen + 5, e);
	if (split_listen(w, &host, &port, e) < 0)
		return -1;
	if (!w->o.token_file && !auth_is_loopback(str_of(host)))
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

static int read_tokens(struct web *w, struct err *e)
{
	w->auth.is_read_open = w->o.is_read_open;
	if (w->o.token_file)
		return auth_read(&w->auth, w->o.token_file, e);
	return w->o.has_no_auth ? 0 : auth_make(&w->auth, w->made_token, e);
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
	w->answers.max = WEB_ANSWERS_BYTES_MAX;
	metrics_open(w);
	pulse_open(w);
	if (getrandom(&w->boot, sizeof(w->boot), 0) != sizeof(w->boot))
		w->boot = (uint64_t)w->began_ns;
	if (sock_raise_nofile() < WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN) {
		err_set(e, ERR_RUN, "too few files may be open (ulimit -n): at least %d are needed",
			WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN);
		goto fail;
	}
	if (client_check_proxies(o, e) < 0 || read_tokens(w, e) < 0 || listen_at(w, e) < 0 ||
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

const char *web_token(const struct web *w)
{
	return *w->made_token ? w->made_token : NULL;
}

int web_start(struct web *w, struct store *store, struct err *e)
{
	w->store = store;
	/* Large blocks are mapped one by one, so that the memory of an answer goes with it. */
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
	pulse_look(w);
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
	stop_listening(w);
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
	stop_listening(w);
	log_close(w);
	metrics_close(w);
	pulse_close(w);
	auth_release(&w->auth);
	explicit_bzero(w->made_token, sizeof(w->made_token));
	arena_release(&w->arena);
	free(w);
}
