/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dashboard.c - `profllm dashboard`: one store, one server, signals.
 *
 * INT and TERM end it once requests in progress are answered, a second one at once; HUP reopens the
 * log. Signals are blocked in every thread and waited for in this one.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "input/fetch/dashboard.h"
#include "results/store/store.h"
#include "version.h"
#include "web/web.h"

#define HOST "127.0.0.1"
#define PORT 8080

struct dashboard_opts {
	const char *listen, *host, *store, *token_file, *log, *jobs_dir, *traces_dir, *port_file;
	struct opt_int port;
	struct opt_list host_name, proxy, launch_env, include_dir, launch_command;
	int64_t launch;
	double live_lost;
	bool no_auth, open_read, no_launch, is_read_only, is_health;
};

#define R(member, flag, ...) OPT(struct dashboard_opts, member, flag, __VA_ARGS__)
#define SERVER "Server"
#define DATA "Data"

static const struct opt rows[] = {
	R(listen, "listen", .group = SERVER, .arg = "HOST:PORT",
	  .words = "bind address addr",
	  .help = "address and port to listen on (default: 127.0.0.1:8080), or unix:PATH; port 0 picks "
		  "a free one; an address that other machines can reach needs --auth-token-file"),
	R(host, "host", .group = SERVER, .help = "the address alone, instead of --listen"),
	R(port, "port", .group = SERVER, .min = 0, .max = 65535,
	  .words = "-p",
	  .help = "the port alone, instead of --listen"),
	R(port_file, "port-file", .group = SERVER, .arg = "FILE",
	  .help = "write the bound port to this file"),
	R(token_file, "auth-token-file", .group = SERVER, .arg = "FILE",
	  .words = "token auth api-key password",
	  .help = "file of access tokens instead of one that is made at the start: TOKEN, NAME TOKEN or "
		  "NAME TOKEN ROLE on each line; at least 16 characters; roles: read, upload, launch; "
		  "read again at SIGHUP"),
	R(open_read, "open-read", .group = SERVER,
	  .words = "public anonymous",
	  .help = "reading needs no token; changes, uploads and starting experiments still do"),
	R(no_auth, "no-auth", .group = SERVER,
	  .words = "token password",
	  .help = "no token at all: every user of this machine may do everything; only on a loopback "
		  "address or a Unix socket"),
	R(host_name, "host-name", .group = SERVER, .arg = "NAME", .flags = OPT_EACH,
	  .help = "additional host name or address that browsers use for this dashboard; may be "
	  "repeated"),
	R(proxy, "trusted-proxy", .group = SERVER, .arg = "ADDRESS", .flags = OPT_EACH,
	  .help = "address of a proxy (or unix) whose X-Forwarded-For header is trusted; limits "
		  "per client are counted by it; may be repeated"),
	R(is_read_only, "read-only", .group = SERVER,
	  .help = "show everything and allow no changes, for a public dashboard"),
	R(log, "log", .group = SERVER, .arg = "FILE",
	  .help = "file for a line of JSON per request and error; reopened at SIGHUP; default: "
		  "errors only, on stderr"),
	R(is_health, "health", .group = SERVER,
	  .words = "probe ready check healthcheck",
	  .help = "start nothing: ask the dashboard that listens on this address whether it is ready; "
		  "exit status 0 or 1, for health checks of containers"),
	R(store, "store", .group = DATA, .arg = "URL",
	  .words = "db database url",
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder"),
	R(jobs_dir, "jobs-dir", .group = DATA, .arg = "DIR",
	  .help = "folder for logs and results of experiments started here and for incoming "
		  "uploads; default: next to the SQLite file, else in the user's data folder"),
	R(traces_dir, "traces-dir", .group = DATA, .arg = "DIR",
	  .help = "folder for traces; default: as for --jobs-dir"),
	R(launch, "launch", .group = DATA, .arg = "N", .min = 1, .max = WEB_LAUNCHES_MAX,
	  .help = "number of experiments that may run at once; others wait"),
	R(no_launch, "no-launch", .group = DATA,
	  .help = "start no experiments, and check no configurations"),
	R(launch_env, "launch-env", .group = DATA, .arg = "NAME", .flags = OPT_EACH,
	  .help = "environment variable that experiments started here get and may use as ${NAME}; "
		  "may be repeated"),
	R(include_dir, "include-dir", .group = DATA, .arg = "DIR", .flags = OPT_EACH,
	  .help = "folder from which their configurations may include files; may be repeated"),
	R(launch_command, "launch-command", .group = DATA, .arg = "COMMAND", .flags = OPT_EACH,
	  .help = "command that they may start, compared word by word, such as 'vllm serve', sim, "
		  "docker; may be repeated; default: any"),
	R(live_lost, "live-lost", .group = DATA, .flags = OPT_HIDDEN, .arg = "SECONDS", .min = 0.1,
	  .max = 3600, .help = "time without a report after which a live run counts as lost"),
};
static const struct dashboard_opts defaults = { .launch = 1, .live_lost = 60 };
static const char *const groups[] = { SERVER, DATA, NULL };

const struct opt_set cmd_dashboard_set = {
	.command = "dashboard",
	.summary = "Shows the results store in a browser and serves its API: filter, chart, "
		   "compare, upload, start experiments.",
	.epilog = "Examples:\n"
		  "  profllm dashboard\n"
		  "  profllm dashboard --store sqlite:runs.db --port 9000\n"
		  "  profllm dashboard --listen unix:/run/user/1000/profllm.sock\n"
		  "  profllm dashboard --store postgresql://db/runs --listen 0.0.0.0:8080 "
		  "--auth-token-file tokens --read-only",
	OPT_SET_OF(rows, defaults), .groups = groups, .stray = "store",
};

/* Takes --listen, or --host and --port. */
static int take_address(struct dashboard_opts *o, struct arena *a, struct err *e)
{
	const char *host = o->host ? o->host : HOST;
	bool is_v6 = strchr(host, ':') && *host != '[';

	if (o->listen && (o->host || o->port.is_set))
		return err_set(e, ERR_USAGE, "--listen %s already names address and port: leave out %s",
			       o->listen, o->host ? "--host" : "--port");
	if (!o->listen)
		o->listen = arena_printf(a, "%s%s%s:%d", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
					 o->port.is_set ? (int)o->port.v : PORT);
	return 0;
}

static int check_access(const struct dashboard_opts *o, struct err *e)
{
	if (o->no_auth && (o->token_file || o->open_read))
		return err_set(e, ERR_USAGE, "--no-auth and %s exclude each other: with --no-auth nothing "
			       "needs a token", o->token_file ? "--auth-token-file" : "--open-read");
	if (o->port_file && strncmp(o->listen, "unix:", 5) == 0)
		return err_set(e, ERR_USAGE, "--port-file: a Unix socket (--listen %s) has no port",
			       o->listen);
	return 0;
}

/* ---- places ---- */

static bool is_postgres(const char *url)
{
	return url && (strncmp(url, "postgresql:", 11) == 0 || strncmp(url, "postgres:", 9) == 0);
}

/* $XDG_DATA_HOME/profllm/NAME */
static const char *data_place(struct arena *a, const char *name)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (data && *data)
		return arena_printf(a, "%s/profllm/%s", data, name);
	return arena_printf(a, "%s/.local/share/profllm/%s", home && *home ? home : ".", name);
}

static const char *jobs_place(const struct dashboard_opts *o, struct arena *a)
{
	const char *path = o->store ? o->store : data_place(a, "store.db");

	if (o->jobs_dir)
		return o->jobs_dir;
	if (is_postgres(o->store))
		return data_place(a, "jobs");
	if (strncmp(path, "sqlite:", 7) == 0)
		path += 7;
	return arena_printf(a, "%s.jobs", path);
}

static const char *traces_place(const struct dashboard_opts *o, struct arena *a)
{
	return o->traces_dir || !is_postgres(o->store) ? o->traces_dir : data_place(a, "traces");
}

/* One per database, shared by all dashboards of a user on this machine. */
static const char *snapshot_place(const struct dashboard_opts *o, struct arena *a)
{
	struct buf room = { 0 };
	char hex[DIGEST_HEX];

	if (!is_postgres(o->store))
		return NULL;
	digest_hex(DIGEST_SHA256, redact(str_of(o->store), &room), hex);
	buf_release(&room);
	file_mkdirs_mode(data_place(a, ""), 0700, NULL);
	return data_place(a, arena_printf(a, "postgresql-%.16s.index", hex));
}

static struct web_names names_of(const struct opt_list *list)
{
	return (struct web_names){ list->v, list->n };
}

/* ---- running ---- */

static void signals_of(sigset_t *s)
{
	sigemptyset(s);
	sigaddset(s, SIGINT);
	sigaddset(s, SIGTERM);
	sigaddset(s, SIGHUP);
}

static int write_port(const struct dashboard_opts *o, const struct web *w, struct err *e)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u\n", web_port(w));

	if (!o->port_file)
		return 0;
	if (file_write_atomic(o->port_file, (struct str){ text, (size_t)n }, e) < 0)
		return err_wrap(e, "--port-file");
	return 0;
}

/* Prints the address, how to log in, and who has access without a token. */
static void say_where(const struct dashboard_opts *o, const struct web *w, struct store *s)
{
	const char *who = web_port(w) ? "every user of this machine" : "every user who can open the socket";
	const char *token = web_token(w);
	const char *kind = store_kind(s);
	size_t runs = store_runs(s);
	char store[64];

	/* With the number of runs: a store at a wrong place is seen to be empty. */
	snprintf(store, sizeof(store), "%s, %zu run%s", kind, runs, runs == 1 ? "" : "s");
	/* Not with cli_warn, which would hide the token. */
	if (token && web_port(w))
		fprintf(stderr, "profllm dashboard: %s/?token=%s (%s; open this URL in a browser; "
			"the token in it is a password)\n", web_url(w), token, store);
	else if (token)
		fprintf(stderr, "profllm dashboard: %s (%s; open /?token=%s there, by a proxy or "
			"a tunnel; the token is a password)\n", web_url(w), store, token);
	else
		fprintf(stderr, "profllm dashboard: %s (%s)\n", web_url(w), store);
	if (store_is_read_only(s) && !o->is_read_only)
		fprintf(stderr, "profllm dashboard: the database takes no writes, as a read replica does: "
			"this dashboard is read-only, and starts no experiments\n");
	if (o->no_auth)
		fprintf(stderr, "profllm dashboard: --no-auth: %s can %s\n", who,
			store_is_read_only(s) ? "read this store" :
			o->no_launch ? "read and change this store" :
			"run commands as you, and read and change this store");
}

/* A folder that was named must be there: it may be a disk that is not mounted. */
static int check_store(const struct dashboard_opts *o, struct arena *a, struct err *e)
{
	const char *path = o->store, *slash;

	if (!path)
		return 0;
	if (store_check_url(path, e) < 0)
		return err_wrap(e, "--store");
	if (is_postgres(path))
		return 0;
	if (strncmp(path, "sqlite:", 7) == 0)
		path += 7;
	slash = strrchr(path, '/');
	if (slash && slash != path && !file_is_dir(arena_printf(a, "%.*s", (int)(slash - path), path)))
		return err_set(e, ERR_USAGE, "--store %s: the folder %.*s does not exist: make it, or "
			       "mount its disk", o->store, (int)(slash - path), path);
	return 0;
}

static int check_launch(const struct dashboard_opts *o, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < o->include_dir.n; i++)
		if (!file_is_dir(o->include_dir.v[i]))
			return err_set(e, ERR_USAGE, "--include-dir %s: expected a folder",
				       o->include_dir.v[i]);
	for (size_t i = 0; i < o->launch_env.n; i++)
		if (!*o->launch_env.v[i] || strchr(o->launch_env.v[i], '='))
			return err_set(e, ERR_USAGE, "--launch-env %s: expected the name of a variable",
				       o->launch_env.v[i]);
	for (size_t i = 0; i < o->launch_command.n; i++) {
		char **words;
		size_t n = 0;

		if (words_split(str_of(o->launch_command.v[i]), a, &words, &n, e) < 0)
			return err_wrap(e, "--launch-command");
		if (!n)
			return err_set(e, ERR_USAGE, "--launch-command: expected a command, such as "
				       "'vllm serve', got nothing");
	}
	return 0;
}

/* Serves until a signal. False: requests in progress could not be finished. */
static bool serve(struct web *w, struct buf *kept)
{
	sigset_t signals;
	int got;

	signals_of(&signals);
	while (sigwait(&signals, &got) == 0 && got == SIGHUP)
		web_reload(w);
	/* A second one ends it at once. */
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	/* Before another dashboard can use this address. */
	dashboard_forget(kept);
	return web_stop(w);
}

/* Stores the token for this user's other programs; without it they need --token-file. */
static void keep_token(const struct web *w, struct buf *path)
{
	struct err e = { 0 };

	if (web_token(w) && dashboard_keep(web_url(w), web_token(w), path, &e) < 0)
		fprintf(stderr, "profllm dashboard: the token could not be saved for profllm ingest "
			"and profllm run, which now need --token-file: %s\n", e.text);
}

static int run(const struct dashboard_opts *o, struct cli *cli, struct err *e)
{
	const struct store_opts how = { .url = o->store, .is_read_only = o->is_read_only,
					.takes_replica = true,
					.snapshot = snapshot_place(o, &cli->arena),
					.traces = traces_place(o, &cli->arena) };
	struct web_opts web = {
		.listen = o->listen, .token_file = o->token_file, .has_no_auth = o->no_auth,
		.is_read_open = o->open_read, .host_name = o->host_name.v,
		.n_host_names = o->host_name.n, .proxy = o->proxy.v, .n_proxies = o->proxy.n,
		.version = PROFLLM_VERSION, .log_path = o->log,
		.log_fd = STDERR_FILENO, .folder = jobs_place(o, &cli->arena),
		.launches = o->no_launch ? 0 : (unsigned)o->launch, .live_lost_s = o->live_lost,
		.is_read_only = o->is_read_only,
		.launch_env = names_of(&o->launch_env), .include_dir = names_of(&o->include_dir),
		.launch_command = names_of(&o->launch_command),
	};
	struct store *store;
	struct buf kept = { 0 };
	struct web *w = NULL;
	int rc;

	if (check_store(o, &cli->arena, e) < 0)
		return -1;
	/* Address and tokens are checked first: opening a store may take seconds. */
	if (web_open(&web, &w, e) < 0)
		return -1;
	rc = store_open(&how, &store, e);
	if (rc < 0) {
		web_free(w);
		return err_wrap(e, "--store");
	}
	rc = web_start(w, store, e);
	if (rc == 0) {
		keep_token(w, &kept);
		say_where(o, w, store);
		rc = write_port(o, w, e);
	}
	if (rc == 0 && !serve(w, &kept)) {
		/*
		 * Its threads use the store, so they end with the process. Acknowledged data is on
		 * disk.
		 */
		fprintf(stderr, "profllm dashboard: shutdown timed out after %d seconds\n",
			WEB_STOP_SECONDS);
		_exit(1);
	}
	dashboard_forget(&kept);
	if (rc < 0)
		web_stop(w);
	web_free(w);
	store_close(store);
	return rc;
}

/* ---- health ---- */

#define HEALTH_MS 5000

/* The address by which this machine reaches it; loopback for one that listens on all. */
static const char *own_name(const char *listen, struct arena *a)
{
	static const char *const all[][2] = { { "0.0.0.0:", "127.0.0.1:" }, { "[::]:", "[::1]:" } };

	if (strncmp(listen, "unix:", 5) == 0)
		return listen;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strncmp(listen, all[i][0], strlen(all[i][0])) == 0)
			return arena_printf(a, "http://%s%s", all[i][1], listen + strlen(all[i][0]));
	return arena_printf(a, "http://%s", listen);
}

/* 0: it is ready. Needs no token and uses no proxy. */
static int ask_health(const struct dashboard_opts *o, struct arena *a, struct err *e)
{
	const char *name = own_name(o->listen, a);
	struct fetch_reply reply = { 0 };
	struct dashboard d = { 0 };
	int rc = dashboard_find(name, NULL, &d, e);

	if (rc == 0) {
		struct fetch_opts how = dashboard_opts(&d);

		how.proxy = "";
		how.timeout_ms = HEALTH_MS;
		rc = fetch(arena_printf(a, "%s/api/health/ready", d.base.data), NULL, &how, &reply, e);
	}
	if (rc == 0 && reply.status != 200)
		rc = err_set(e, ERR_RUN, "--health: the dashboard at %s is not ready: it answered with "
			     "status %ld", name, reply.status);
	fetch_reply_release(&reply);
	dashboard_release(&d);
	return rc;
}

int cmd_dashboard(struct cli *cli, void *values)
{
	struct dashboard_opts *o = values;
	sigset_t signals;

	if (take_address(o, &cli->arena, &cli->err) < 0 || check_access(o, &cli->err) < 0 ||
	    check_launch(o, &cli->arena, &cli->err) < 0)
		return -1;
	if (o->is_health)
		return ask_health(o, &cli->arena, &cli->err);
	signal(SIGPIPE, SIG_IGN);
	signals_of(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return run(o, cli, &cli->err);
}
