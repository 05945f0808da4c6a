/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_http.c - see offline.h: the driver for engines reached through a server, which we manage
 * or which already runs. The measured time includes the server's requests, transport and
 * tokenizing, so its figures are not the engine's alone; every result says "managed server".
 *
 * The server is started by the first call that needs it: a render or the load.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/offline/offline_internal.h"
#include "bench/serve/prepare.h"
#include "bench/server/engine_report.h"
#include "client/endpoint/endpoint.h"
#include "client/net/sock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "host/engine/args.h"
#include "input/fetch/fetch.h"

#define DEFAULT_COMMAND "vllm serve"
#define LOOPBACK "127.0.0.1"

/* Moves the last model among the arguments to where `vllm serve` wants it; drops the others. */
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

/* Finds a port that is free at this moment. */
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

#define POST_TIMEOUT_MS 600000 /* writing a profile takes a server minutes */

void http_warn(const struct http *h, const char *text)
{
	if (h->hooks.warn)
		h->hooks.warn(h->hooks.self, text);
}

static void http_free(struct http *h)
{
	if (h->is_log_ours)
		unlink(h->log_path);
	free(h->index);
	free(h->model);
	arena_release(&h->arena);
	free(h);
}

/* ---- questions outside the measurement ---- */

static long ask(struct http *h, const char *path, const struct str *body, struct buf *answer,
		struct err *e)
{
	struct fetch_reply reply = { 0 };
	struct remote_target t;
	long status = -1;

	if (remote_target_init(&t, &h->remote, path, e) == 0) {
		t.opts.timeout_ms = POST_TIMEOUT_MS;
		if (fetch(t.url.data, body, &t.opts, &reply, e) == 0) {
			status = reply.status;
			if (answer)
				buf_add_str(answer, buf_str(&reply.body));
		}
	}
	fetch_reply_release(&reply);
	remote_target_release(&t);
	return status;
}

long http_post(struct http *h, const char *path, const struct str *body, struct buf *answer,
	       struct err *e)
{
	const struct str nothing = { "", 0 };

	return ask(h, path, body ? body : &nothing, answer, e);
}

bool http_has_died(struct http *h, struct err *e)
{
	struct server_failure why;

	if (!h->server || server_check(h->server, &why, e) == 0)
		return false;
	for (struct str rest = str_of(why.tail); rest.n;) {
		char *line;
		struct str text = str_cut(&rest, '\n');

		line = mem_copy(text.p, text.n);
		http_warn(h, line);
		free(line);
	}
	return true;
}

/* ---- start ---- */

/* Uses the user's --worker-log: a file, or a folder for one file of each kind of start. */
static int choose_log(struct http *h, const struct offline_start *how, struct err *e)
{
	const char *path = how->opts->worker_log, *in = getenv("TMPDIR");
	int fd;

	in = in && *in ? in : "/tmp";
	if (path) {
		h->log_path = file_is_dir(path) ?
			arena_printf(&h->arena, "%s/%s.log", path,
				     how->log_name ? how->log_name : "server") :
			arena_text(&h->arena, str_of(path));
		return 0;
	}
	h->log_path = arena_printf(&h->arena, "%s/profllm_server_XXXXXX", in);
	fd = mkstemp((char *)(uintptr_t)h->log_path);
	if (fd < 0)
		return err_set(e, ERR_IO, "cannot write the server's log to %s: %s; give --worker-log",
			       in, strerror(errno));
	close(fd);
	h->is_log_ours = true;
	return 0;
}

/* Uses a proxy only for servers elsewhere. The key is the server's own, else the environment's. */
static void reach(struct http *h, const struct offline_start *how)
{
	const char *key = how->engine_argv ?
		offline_argv_text(how->engine_argv, "api-key", &h->arena) : NULL;
	const char *header = NULL;
	struct point_env env;
	struct url url;

	point_env_read(&env);
	h->remote = (struct remote){
		.base_url = h->url, .fetch = { .proxy = "", .cancel = h->hooks.cancel },
		.api_key = serve_api_key(&endpoint_whole_completions, &env, false, &header),
	};
	if (key)
		h->remote.api_key = key;
	if (!h->argv) {
		const char *proxy = url_parse(str_of(h->url), &url, NULL) == 0 ?
				    serve_env_proxy(&env, &url) : NULL;

		h->remote.fetch.proxy = proxy ? proxy : "";
	}
}

static int http_start(const struct offline_start *how, void **state, struct offline_about *about,
		      struct err *e)
{
	struct http *h = mem_alloc(sizeof(*h));

	h->hooks = how->hooks;
	h->opts = how->opts;
	h->env = how->env;
	if (how->opts->base_url) {
		struct str url = str_of(how->opts->base_url);

		while (url.n && url.p[url.n - 1] == '/')
			url.n--;
		h->url = arena_text(&h->arena, url);
	} else if (http_words(h, how->engine_argv, e) < 0 || choose_log(h, how, e) < 0) {
		http_free(h);
		return -1;
	}
	reach(h, how);
	*about = (struct offline_about){
		.engine = "server", .version = "", .device = "", .profile_to = "", .profile_dir = "",
		.method = "managed server", .has_chat = true, .has_beam = true, .has_encode = true,
		.has_profile = true, .has_prequeue = true, .has_render = true,
	};
	*state = h;
	return 0;
}

/* ---- the server ---- */

static void on_line(void *self, const char *text)
{
	(void)self;
	(void)text; /* messages about servers under test are not output of this verb */
}

static void on_warn(void *self, const char *text)
{
	http_warn(self, text);
}

static int start_server(struct http *h, struct err *e)
{
	const struct server_opts opts = {
		.argv = h->argv, .env = h->env, .log_path = h->log_path,
		.is_log_removed = h->is_log_ours,
		.show_fd = h->opts->show_log ? STDERR_FILENO : -1,
		.ready_timeout_s = h->opts->load_timeout, .grace_s = h->opts->server_grace,
	};
	const struct server_hooks hooks = { .self = h, .line = on_line, .warn = on_warn,
					    .cancel = h->hooks.cancel };
	struct server_failure why;
	struct stat st;

	h->log_began = stat(h->log_path, &st) == 0 ? st.st_size : 0;
	if (server_start(&opts, &hooks, &h->server, &why, e) < 0) {
		if (why.fault == SERVER_FAULT_NOT_FOUND || why.fault == SERVER_FAULT_FLAG)
			e->code = ERR_USAGE;
		return -1;
	}
	h->url = server_url(h->server);
	h->remote.base_url = h->url;
	return 0;
}

static int ensure(struct http *h, struct err *e)
{
	const struct run_hooks silent = { 0 };
	struct err ignored = { 0 };
	char *root = NULL;

	if (h->is_ready)
		return 0;
	if (h->argv && start_server(h, e) < 0)
		return -1;
	if (remote_discover_model(&h->remote, &silent, &h->model, &root, e) < 0)
		return e->code == ERR_USAGE ? err_wrap(e, "--base-url") : -1;
	free(root);
	h->has_sleep = ask(h, "/is_sleeping", NULL, NULL, &ignored) == 200;
	h->is_ready = true;
	return 0;
}

/* A string member of a JSON answer; text lives in the arena. */
static const char *told_text(struct http *h, const struct buf *json, const char *key)
{
	struct json_scan scan = { buf_str(json), 0 };
	struct json_slice all, v;
	struct buf text = { 0 };
	const char *out = "";

	if (json_next(&scan, &all, NULL) == 0 && json_member(all, key, &v) &&
	    v.kind == JSON_STRING) {
		json_unescape(&text, v.raw);
		out = arena_text(&h->arena, buf_str(&text));
		buf_release(&text);
	}
	return out;
}

static int64_t longest_of(const struct buf *models)
{
	struct arena a = { 0 };
	struct json_value *doc;
	const struct json_value *data, *v = NULL;
	int64_t n = 0;

	if (json_parse(&a, buf_str(models), &doc, NULL) == 0) {
		data = json_get(doc, "data");
		if (data && data->kind == JSON_ARRAY && data->count)
			v = json_get(&data->item[0], "max_model_len");
		if (v && v->kind == JSON_INT)
			n = v->integer;
	}
	arena_release(&a);
	return n;
}

static void describe(struct http *h, struct offline_about *about)
{
	static const char *const kinds[] = {
		[SERVER_OTHER] = "server", [SERVER_VLLM] = "vllm", [SERVER_SGLANG] = "sglang",
		[SERVER_INFINITY] = "infinity", [SERVER_LLAMACPP] = "llama.cpp",
		[SERVER_SIM] = "profllm-sim",
	};
	struct buf version = { 0 }, models = { 0 }, json = { 0 };
	struct json_writer w = json_writer(&json);
	struct err ignored = { 0 };

	if (ask(h, "/version", NULL, &version, &ignored) == 200)
		about->version = told_text(h, &version, "version");
	if (ask(h, "/v1/models", NULL, &models, &ignored) == 200)
		about->max_model_len = longest_of(&models);
	if (h->server)
		about->engine = kinds[server_where(h->server)->kind];
	about->has_prequeue = h->has_sleep;
	json_begin_object(&w);
	json_member_text(&w, "model", h->model);
	json_member_bool(&w, "is_started_by_us", h->server != NULL);
	json_end_object(&w);
	about->json = arena_str(&h->arena, buf_str(&json));
	buf_release(&version);
	buf_release(&models);
	buf_release(&json);
}

/*
 * Reads only what this start has written: a log file that the user named may hold earlier starts.
 */
static void read_log(struct http *h, struct offline_loaded *out)
{
	int fd = open(h->log_path, O_RDONLY | O_CLOEXEC);
	struct buf log = { .limit = SWEEP_LOG_BYTES_MAX };
	ssize_t n = fd < 0 ? 0 : 1;

	while (n > 0 && buf_reserve(&log, READ_BYTES) == 0) {
		n = pread(fd, log.data + log.len, READ_BYTES, h->log_began + (off_t)log.len);
		log.len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (log.len) {
		out->phase = arena_alloc(&h->arena, ENGINE_LOG_PHASES * sizeof(*out->phase));
		out->n_phases = engine_log_phases(buf_str(&log), out->phase);
		out->compilation_s = engine_log_compilation_s(buf_str(&log));
	}
	buf_release(&log);
}

static int http_load(void *state, struct offline_about *about, struct offline_loaded *out,
		     struct err *e)
{
	struct http *h = state;

	if (ensure(h, e) < 0)
		return -1;
	if (h->server) {
		out->ready_s = server_startup_s(h->server);
		read_log(h, out);
	}
	describe(h, about);
	return 0;
}

/* ---- the chat template ---- */

/* One member of the answer to a question; v points into answer. */
static int ask_member(struct http *h, const char *path, const struct buf *body, const char *key,
		      struct buf *answer, struct json_slice *v, struct err *e)
{
	const struct str given = buf_str(body);
	long status = http_post(h, path, &given, answer, e);
	struct json_slice all;

	if (status < 0)
		return err_wrap(e, "%s%s", h->url, path);
	if (status != 200)
		return err_set(e, ERR_RUN, "%s%s: HTTP status %ld, so its chat template cannot be applied",
			       h->url, path, status);
	if (json_next(&(struct json_scan){ buf_str(answer), 0 }, &all, NULL) < 0 ||
	    !json_member(all, key, v))
		return err_set(e, ERR_RUN, "%s%s: the answer has no \"%s\"", h->url, path, key);
	return 0;
}

/* Begins the JSON of a question about this model, without the closing brace. */
static void begin_question(const struct http *h, struct buf *body)
{
	buf_add_text(body, "{\"model\": ");
	json_quote(body, str_of(h->model), false);
}

/* Asks the server for the token ids of the messages, and then for the text of those ids. */
static int http_render(void *state, struct str messages, struct str tools, struct buf *text,
		       struct err *e)
{
	struct buf question = { 0 }, ids = { 0 }, back = { 0 };
	struct http *h = state;
	struct json_slice v;
	int rc = -1;

	if (ensure(h, e) < 0)
		return -1;
	begin_question(h, &question);
	buf_add_text(&question, ", \"messages\": ");
	buf_add_str(&question, messages);
	if (tools.n) {
		buf_add_text(&question, ", \"tools\": ");
		buf_add_str(&question, tools);
	}
	buf_add_text(&question, ", \"add_generation_prompt\": true}");
	if (ask_member(h, "/tokenize", &question, "tokens", &ids, &v, e) < 0)
		goto done;
	buf_reset(&question);
	begin_question(h, &question);
	buf_add_text(&question, ", \"tokens\": ");
	buf_add_str(&question, v.raw);
	buf_add_char(&question, '}');
	if (ask_member(h, "/detokenize", &question, "prompt", &back, &v, e) < 0)
		goto done;
	json_unescape(text, v.raw);
	rc = 0;
done:
	buf_release(&question);
	buf_release(&ids);
	buf_release(&back);
	return rc;
}

/* ---- the end ---- */

static int http_stop(void *state, struct err *e)
{
	struct http *h = state;
	int rc = server_stop(h->server, NULL, e);

	http_free(h);
	return rc;
}

const struct offline_driver offline_http_driver = {
	.name = "http", .start = http_start, .render = http_render, .load = http_load,
	.put = http_put, .run = http_run, .stop = http_stop,
};
