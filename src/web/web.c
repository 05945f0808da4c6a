/* SPDX-License-Identifier: Apache-2.0 */
/* web.c - see web.h: clients, log, pulse, and the server from options to its end. */
#include "web/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "web/job.h"
#include "web/web_internal.h"

#define BACKLOG 1024
#define PAUSE_NS 20000000
#define MAPPED_BYTES_MIN (128 << 10)
#define HEAPS_MAX 2
/* In addition to connections: the store's files, logs, jobs, traces being sent. */
#define DESCRIPTORS_MIN 256

#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/* ---- whose a request is that came by way of a proxy ---- */

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

int client_check_names(const struct web_opts *o, struct err *e)
{
	struct sockaddr_storage address;

	for (size_t i = 0; i < o->n_host_names; i++)
		if ((!o->host_name[i][0] || o->host_name[i][strspn(o->host_name[i], HOST_CHARS)]) &&
		    !read_address(str_of(o->host_name[i]), &address))
			return err_set(e, ERR_USAGE, "--host-name %s: expected a name or an address without "
				       "scheme and port, such as bench.example", o->host_name[i]);
	for (size_t i = 0; i < o->n_proxies; i++)
		if (strcmp(o->proxy[i], "unix") != 0 && !read_address(str_of(o->proxy[i]), &address))
			return err_set(e, ERR_USAGE, "--trusted-proxy %s: expected the proxy's address, "
				       "such as 127.0.0.1, or unix where it comes by a Unix socket",
				       o->proxy[i]);
	return 0;
}

/*
 * The log as lines of JSON: one for each request in a file, errors otherwise.
 *
 * A line has the path but not the query, no header and no body, so it contains no secret.
 */

#define PATH_BYTES_MAX 500

struct web_log {
	pthread_mutex_t lock;
	int fd;              /* of the file; -1: none */
};

static int open_file(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static int log_open(struct web *w, struct err *e)
{
	struct web_log *log = mem_alloc(sizeof(*log));

	pthread_mutex_init(&log->lock, NULL);
	log->fd = -1;
	w->log = log;
	if (w->o.log_path) {
		log->fd = open_file(w->o.log_path);
		if (log->fd < 0)
			return err_set(e, ERR_USAGE, "--log: cannot write %s: %s", w->o.log_path,
				       strerror(errno));
	}
	return 0;
}

static void log_reopen(struct web *w)
{
	int fd = w->o.log_path ? open_file(w->o.log_path) : -1;
	char why[256];
	int before;

	if (!w->o.log_path)
		return;
	if (fd < 0) {
		snprintf(why, sizeof(why), "--log: %s cannot be opened again: %s; "
			 "lines go to the old file", w->o.log_path, strerror(errno));
		log_say(w, NULL, "error", why);
		/* The old file may be one that is packed or removed. */
		if (w->o.log_fd >= 0)
			dprintf(w->o.log_fd, "profllm dashboard: %s\n", why);
		return;
	}
	pthread_mutex_lock(&w->log->lock);
	before = w->log->fd;
	w->log->fd = fd;
	pthread_mutex_unlock(&w->log->lock);
	close(before);
}

static void log_close(struct web *w)
{
	if (!w->log)
		return;
	if (w->log->fd >= 0)
		close(w->log->fd);
	pthread_mutex_destroy(&w->log->lock);
	free(w->log);
	w->log = NULL;
}

static struct json_writer begin_line(struct buf *line, const char *level, const struct exchange *x)
{
	struct json_writer j = json_writer(line);
	int64_t now = clock_real_ns();
	time_t s = (time_t)(now / 1000000000);
	char at[48], id[24];
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(at + n, sizeof(at) - n, ".%03dZ", (int)(now / 1000000 % 1000));
	json_begin_object(&j);
	json_member_str(&j, "at", str_of(at));
	json_member_str(&j, "level", str_of(level));
	if (x) {
		snprintf(id, sizeof(id), "%llu", (unsigned long long)x->number);
		json_member_str(&j, "request", str_of(id));
		json_member_str(&j, "client", str_of(x->client));
		json_member_str(&j, "method", str_of(x->method));
		json_member_str(&j, "path", x->raw_path.n > PATH_BYTES_MAX ?
		     (struct str){ x->raw_path.p, PATH_BYTES_MAX } : x->raw_path);
	}
	return j;
}

static void end_line(struct web *w, struct buf *line, struct json_writer *j, int otherwise)
{
	int fd;

	json_end_object(j);
	buf_add_char(line, '\n');
	redact_tail(line, 0, REDACT_SENTENCES);
	pthread_mutex_lock(&w->log->lock);
	fd = w->log->fd >= 0 ? w->log->fd : otherwise;
	/* A failure to write the log cannot be logged. */
	if (fd >= 0)
		(void)!file_write_all(fd, buf_str(line));
	pthread_mutex_unlock(&w->log->lock);
	buf_release(line);
}

void log_exchange(struct web *w, const struct exchange *x, unsigned status)
{
	struct buf line = { 0 };
	struct json_writer j;

	if (!w->o.log_path)
		return;
	/* Overload is answered with 503: not an error of the server. */
	j = begin_line(&line, status == 500 || status == 507 ? "error" :
			      status >= 400 ? "warning" : "info", x);
	json_member_int(&j, "status", status);
	json_member_int(&j, "received_bytes", (int64_t)x->received);
	json_member_int(&j, "sent_bytes", (int64_t)x->sent);
	json_member_f64(&j, "ms", (double)((clock_mono_ns() - x->began_ns) / 1000) / 1000);
	if (x->request.who.n)
		json_member_str(&j, "who", x->request.who);
	end_line(w, &line, &j, -1);
}

void log_say(struct web *w, const struct exchange *x, const char *level, const char *said)
{
	struct buf line = { 0 };
	struct json_writer j = begin_line(&line, level, x);
	bool is_error = strcmp(level, "error") == 0;

	if (is_error) {
		atomic_fetch_add(&w->errors, 1);
		atomic_store(&w->error_ns, clock_real_ns());
	}
	json_member_str(&j, "text", str_of(said));
	end_line(w, &line, &j, is_error || strcmp(level, "notice") == 0 ? w->o.log_fd : -1);
}

/*
 * Whether the store answers, and what /metrics reports about it.
 *
 * One thread asks, every two seconds and when this process has changed a job. A store that hangs
 * blocks only that thread: requests get the latest values, and the time since then.
 */

#define LOOK_NS 2000000000
#define SILENT_NS 5000000000 /* then it does not answer */
#define SIZE_NS 30000000000  /* its size is asked for as seldom */

struct web_pulse {
	pthread_mutex_t lock;
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	size_t n_jobs;
	int64_t answered_ns;         /* CLOCK_MONOTONIC */
	bool has_failed;
	double store_bytes, free_bytes;
	/* Used by the asking thread only. */
	int64_t looked_ns, sized_ns;
	uint64_t changes;
};

static void pulse_open(struct web *w)
{
	w->pulse = mem_alloc(sizeof(*w->pulse));
	pthread_mutex_init(&w->pulse->lock, NULL);
	w->pulse->answered_ns = clock_mono_ns();
	w->pulse->store_bytes = w->pulse->free_bytes = NAN;
}

static void pulse_close(struct web *w)
{
	if (!w->pulse)
		return;
	pthread_mutex_destroy(&w->pulse->lock);
	free(w->pulse);
	w->pulse = NULL;
}

static void look_at_size(struct web *w, struct web_pulse *p, int64_t now)
{
	const char *file = store_file(w->store);
	/* PostgreSQL's disk is elsewhere: then the one on which uploads arrive. */
	int64_t bytes, room = file_free_bytes(file ? file : w->o.folder);
	bool is_known = store_bytes(w->store, &bytes, NULL) == 0;

	p->sized_ns = now;
	pthread_mutex_lock(&p->lock);
	if (is_known)
		p->store_bytes = (double)bytes;
	p->free_bytes = room < 0 ? (double)NAN : (double)room;
	pthread_mutex_unlock(&p->lock);
}

void pulse_look(struct web *w)
{
	struct web_pulse *p = w->pulse;
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	uint64_t changes = atomic_load(&w->job_changes);
	int64_t now = clock_mono_ns();
	size_t n = 0;
	int rc;

	if (p->looked_ns && changes == p->changes && now - p->looked_ns < LOOK_NS)
		return;
	p->looked_ns = now;
	p->changes = changes;
	rc = store_job_counts(w->store, jobs, &n, NULL);
	pthread_mutex_lock(&p->lock);
	p->has_failed = rc < 0;
	if (rc == 0) {
		p->answered_ns = clock_mono_ns();
		p->n_jobs = n;
		memcpy(p->jobs, jobs, sizeof(jobs));
	}
	pthread_mutex_unlock(&p->lock);
	if (rc == 0 && (!p->sized_ns || now - p->sized_ns > SIZE_NS))
		look_at_size(w, p, now);
}

void pulse_get(struct web *w, struct pulse *out)
{
	struct web_pulse *p = w->pulse;
	int64_t silent;

	pthread_mutex_lock(&p->lock);
	silent = clock_mono_ns() - p->answered_ns;
	out->is_replaced = store_is_replaced(w->store);
	out->is_there = !p->has_failed && !out->is_replaced && silent < SILENT_NS;
	out->silent_s = (double)silent / 1e9;
	out->store_bytes = p->store_bytes;
	out->free_bytes = p->free_bytes;
	out->n_jobs = p->n_jobs;
	memcpy(out->jobs, p->jobs, sizeof(p->jobs));
	pthread_mutex_unlock(&p->lock);
}

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

/* The bytes that distinguish clients. */
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

/* A socket file of mode 0600 from the beginning; before there are threads, for the umask. */
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
		return err_set(e, ERR_PORT_TAKEN, "--listen %s: another program listens there; end it "
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
		return err_set(e, ERR_TOKEN_FILE_NEEDED, "--listen %s: other machines can reach this "
			       "address, so --auth-token-file is needed", w->o.listen);
	if (sock_resolve(host, port, address, e) < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	w->listener = sock_listen(&address[0], BACKLOG, e);
	if (w->listener < 0 && errno == EADDRINUSE)
		return err_set(e, ERR_PORT_TAKEN, "--listen %s: another program listens there (`ss -ltnp` "
			       "names it); end it first, or choose another port", w->o.listen);
	if (w->listener < 0)
		return err_wrap(e, "--listen %s", w->o.listen);
	sock_addr_text(&address[0], text, sizeof(text));
	snprintf(w->url, sizeof(w->url), "http://%s", text);
	w->port = ntohs(address[0].any.sa_family == AF_INET6 ?
			((struct sockaddr_in6 *)&address[0].storage)->sin6_port :
			((struct sockaddr_in *)&address[0].storage)->sin_port);
	return 0;
}

static void free_tokens(struct auth *a)
{
	while (a) {
		struct auth *before = a->before;

		auth_release(a);
		free(a);
		a = before;
	}
}

/* Requests that began with the tokens of before may still read them, so these stay. */
static int read_tokens(struct web *w, struct err *e)
{
	struct auth *a = mem_alloc(sizeof(*a));
	int rc = 0;

	a->is_read_open = w->o.is_read_open;
	if (w->o.token_file)
		rc = auth_read(a, w->o.token_file, e);
	else if (!w->o.has_no_auth)
		rc = auth_make(a, w->made_token, e);
	if (rc < 0) {
		free_tokens(a);
		return -1;
	}
	a->before = atomic_load(&w->auth);
	atomic_store(&w->auth, a);
	return 0;
}

void web_reload(struct web *w)
{
	struct err e = { 0 };
	char text[1200];

	log_reopen(w);
	if (!w->o.token_file)
		return;
	if (read_tokens(w, &e) < 0)
		snprintf(text, sizeof(text), "%s; the tokens of before stay valid", e.text);
	else
		snprintf(text, sizeof(text), "%s was read again: %zu token%s", w->o.token_file,
			 atomic_load(&w->auth)->n, atomic_load(&w->auth)->n == 1 ? "" : "s");
	log_say(w, NULL, *e.text ? "error" : "info", text);
}

/* Configurations may hold secrets: only its owner has access to a new folder. */
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
	answers_begin(&w->kept);
	metrics_open(w);
	pulse_open(w);
	if (getrandom(&w->boot, sizeof(w->boot), 0) != sizeof(w->boot))
		w->boot = (uint64_t)w->began_ns;
	if (sock_raise_nofile() < WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN) {
		err_set(e, ERR_RUN, "too few files may be open (ulimit -n): at least %d are needed",
			WEB_CONNECTIONS_MAX + DESCRIPTORS_MIN);
		goto fail;
	}
	if (client_check_names(o, e) < 0 || read_tokens(w, e) < 0 || listen_at(w, e) < 0 ||
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
	w->o.is_read_only |= store_is_read_only(store);
	/* Large blocks are mapped individually, so that an answer's memory is returned with it. */
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
	/* With one heap for each thread, each would keep what its largest question needed. */
	mallopt(M_ARENA_MAX, HEAPS_MAX);
	pulse_look(w);
	carrier_make(w);
	live_open(w);
	/* Jobs first, so that requests for a job find it. */
	if (upload_open(w, e) < 0 || launch_open(w, e) < 0 || work_open(w, e) < 0)
		return -1;
	return carrier_open(w, e);
}

/* Waits until no request is in progress. */
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
	/* New connections are refused instead of waiting. */
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
	live_close(w);
	upload_close(w);
	work_close(w);
	stop_listening(w);
	log_close(w);
	metrics_close(w);
	pulse_close(w);
	free_tokens(atomic_load(&w->auth));
	answers_release(&w->kept);
	explicit_bzero(w->made_token, sizeof(w->made_token));
	arena_release(&w->arena);
	free(w);
}
