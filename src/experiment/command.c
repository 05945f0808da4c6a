/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - see command.h. */
#include "experiment/command.h"

#include "engine/flags.h"
#include "proc/program.h"

/* What stands for an address: of the server itself, or of one by its name. */
struct place {
	const struct experiment *x;
	size_t self;
	const unsigned *port;
	struct arena *a;
};

struct words {
	char **v;
	size_t n, room;
	struct arena *a;
};

static void add(struct words *w, char *word)
{
	char **more;

	if (w->n + 1 >= w->room) {
		w->room = w->room ? 2 * w->room : 16;
		more = arena_alloc(w->a, w->room * sizeof(*more));
		if (w->n)
			memcpy(more, w->v, w->n * sizeof(*more));
		w->v = more;
	}
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

/* Every address of the machine is asked at its own. */
static const char *host_to_ask(const char *host)
{
	if (!host || !*host || strcmp(host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(host, "::") == 0 ? "[::1]" : host;
}

const char *command_url(const struct experiment *x, size_t server, const unsigned *port,
			struct arena *a)
{
	const struct experiment_server *s = &x->server[server];
	const char *host = host_to_ask(s->host);
	bool is_bare = strchr(host, ':') && host[0] != '[';

	if (s->url)
		return s->url;
	return arena_printf(a, "http://%s%s%s:%u", is_bare ? "[" : "", host, is_bare ? "]" : "",
			    port[server]);
}

/* ---- addresses in words ---- */

/* What {name} stands for; NULL: for itself. */
static const char *place_text(const struct place *p, struct str name)
{
	struct str of = { 0 };
	const char *dot = memrchr(name.p, '.', name.n);
	size_t i = p->self;

	if (dot) {
		of = (struct str){ name.p, (size_t)(dot - name.p) };
		name = (struct str){ dot + 1, name.n - of.n - 1 };
		for (i = 0; i < p->x->n_servers && !str_is(of, p->x->server[i].name); i++)
			;
		if (i == p->x->n_servers)
			return NULL;
	}
	if (str_is(name, "url"))
		return command_url(p->x, i, p->port, p->a);
	if (str_is(name, "host") && !p->x->server[i].url)
		return host_to_ask(p->x->server[i].host);
	if (str_is(name, "port") && !p->x->server[i].url)
		return arena_printf(p->a, "%u", p->port[i]);
	return NULL;
}

static char *placed(const struct place *p, const char *word)
{
	struct buf out = { 0 };
	char *text;

	while (*word) {
		const char *end = *word == '{' ? strpbrk(word + 1, "{}") : NULL;
		const char *with = NULL;

		if (end && *end == '}' && end > word + 1)
			with = place_text(p, (struct str){ word + 1, (size_t)(end - word - 1) });
		if (with) {
			buf_add_text(&out, with);
			word = end + 1;
		} else {
			buf_add_char(&out, *word++);
		}
	}
	text = arena_text(p->a, buf_str(&out));
	buf_release(&out);
	return text;
}

static bool is_self_placed(char *const *words)
{
	for (size_t i = 0; words && words[i]; i++)
		if (strstr(words[i], "{port}") || strstr(words[i], "{url}"))
			return true;
	return false;
}

/* ---- the command ---- */

static const char *last_part(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

static const char *last_word(char *const *words)
{
	const char *last = "";

	for (size_t i = 0; words && words[i]; i++)
		last = words[i];
	return last;
}

bool command_is_sim(const struct experiment_server *s)
{
	char *const *c = s->command;

	if (!c || !c[0])
		return false;
	if (!c[1])
		return strcmp(c[0], "sim") == 0;
	for (size_t i = 0; c[i + 1]; i++)
		if (strcmp(last_part(c[i]), "profllm") == 0 && strcmp(c[i + 1], "sim") == 0)
			return true;
	return false;
}

static void add_command(struct words *w, const struct experiment_server *s)
{
	struct buf program = { 0 };

	if (s->command[0] && !s->command[1] && strcmp(s->command[0], "sim") == 0) {
		if (program_path(&program, NULL) < 0)
			buf_add_text(&program, "profllm");
		add(w, arena_text(w->a, buf_str(&program)));
		buf_release(&program);
	}
	for (size_t i = 0; s->command[i]; i++)
		add(w, s->command[i]);
}

/* The model has no name behind `vllm serve` and `profllm sim`. */
static void add_model(struct words *w, const struct experiment_server *s)
{
	struct str model = json_text(json_get(s->args, "model"), (struct str){ 0 });
	bool is_positional = command_is_sim(s) || strcmp(last_word(s->command), "serve") == 0;

	if (!model.n)
		return;
	if (!is_positional)
		add(w, arena_text(w->a, STR("--model")));
	add(w, arena_text(w->a, model));
}

char **command_words(const struct experiment *x, size_t server, const unsigned *port,
		     struct arena *a)
{
	static const char *const apart[] = { "model", "host", "port", NULL };
	const struct experiment_server *s = &x->server[server];
	const struct place place = { x, server, port, a };
	struct words w = { .a = a };
	char **flags = engine_flags(s->args, apart, a);

	add_command(&w, s);
	add_model(&w, s);
	if (!is_self_placed(s->command) && !is_self_placed(s->extra_args)) {
		add(&w, arena_text(a, STR("--host")));
		add(&w, arena_text(a, str_of(s->host ? s->host : "127.0.0.1")));
		add(&w, arena_text(a, STR("--port")));
		add(&w, arena_printf(a, "%u", port[server]));
	}
	for (size_t i = 0; flags[i]; i++)
		add(&w, flags[i]);
	for (size_t i = 0; s->extra_args && s->extra_args[i]; i++)
		add(&w, s->extra_args[i]);
	for (size_t i = 0; i < w.n; i++)
		w.v[i] = placed(&place, w.v[i]);
	return w.v;
}

char **command_env(const struct experiment *x, size_t server, const unsigned *port,
		   struct arena *a)
{
	const struct place place = { x, server, port, a };
	struct words w = { .a = a, .v = arena_alloc(a, sizeof(char *)) };
	char *const *env = x->server[server].env;

	for (size_t i = 0; env && env[i]; i++)
		add(&w, placed(&place, env[i]));
	return w.v;
}
