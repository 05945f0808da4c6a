/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - see roles.h. */
#include "experiment/roles.h"

#include "base/str.h"

bool role_has_engine(enum server_role role)
{
	return role != ROLE_PROXY && role != ROLE_CACHE;
}

/* ---- $(NAME.part) ---- */

static void add_url(const struct role_at *at, struct buf *out)
{
	bool is_v6 = strchr(at->host, ':') && at->host[0] != '[';

	if (at->url)
		buf_add_text(out, at->url);
	else
		buf_printf(out, is_v6 ? "http://[%s]:%u" : "http://%s:%u", at->host, at->port);
}

const char *role_url(const struct role_at *at, struct arena *a)
{
	struct buf url = { 0 };
	const char *text;

	add_url(at, &url);
	text = arena_text(a, buf_str(&url));
	buf_release(&url);
	return text;
}

static bool add_part(const struct role_at *at, struct str part, struct buf *out)
{
	if (str_is(part, "url"))
		add_url(at, out);
	else if (str_is(part, "host"))
		buf_add_text(out, at->host);
	else if (str_is(part, "port"))
		buf_printf(out, "%u", at->port);
	else
		return false;
	return true;
}

/* The length of a reference at the beginning of text; 0: it is none; -1: of an unknown server. */
static ptrdiff_t reference(const struct experiment *x, const struct role_at *at, struct str text,
			   struct buf *out, struct err *e)
{
	const char *end = memchr(text.p, ')', text.n), *dot;
	struct str name, part;

	if (!str_starts(text, STR("$(")) || !end)
		return 0;
	name = (struct str){ text.p + 2, (size_t)(end - text.p) - 2 };
	dot = name.n ? memrchr(name.p, '.', name.n) : NULL;
	if (!dot)
		return 0;
	part = (struct str){ dot + 1, (size_t)(end - dot) - 1 };
	name.n = (size_t)(dot - name.p);
	if (!str_is(part, "url") && !str_is(part, "host") && !str_is(part, "port"))
		return 0;
	for (size_t i = 0; i < x->n_servers; i++)
		if (str_is(name, x->server[i].name) && add_part(&at[i], part, out))
			return end + 1 - text.p;
	return err_set(e, ERR_USAGE, "$(%.*s.%.*s): no server of this experiment is called %.*s",
		       (int)name.n, name.p, (int)part.n, part.p, (int)name.n, name.p);
}

int role_text(const struct experiment *x, const struct role_at *at, const char *text,
	      struct arena *a, char **out, struct err *e)
{
	struct str rest = str_of(text);
	struct buf b = { 0 };
	ptrdiff_t n = 0;

	while (rest.n) {
		n = *rest.p == '$' ? reference(x, at, rest, &b, e) : 0;
		if (n < 0)
			break;
		if (n == 0)
			buf_add_char(&b, *rest.p);
		n = n ? n : 1;
		rest = (struct str){ rest.p + n, rest.n - (size_t)n };
	}
	*out = arena_text(a, buf_str(&b));
	buf_release(&b);
	return n < 0 ? -1 : 0;
}

int role_list(const struct experiment *x, const struct role_at *at, char *const *list,
	      struct arena *a, char ***out, struct err *e)
{
	size_t n = words_count(list);

	*out = arena_alloc(a, (n + 1) * sizeof(**out));
	for (size_t i = 0; i < n; i++)
		if (role_text(x, at, list[i], a, &(*out)[i], e) < 0)
			return -1;
	return 0;
}

/* ---- the simulator's ---- */

struct sim_line {
	char **word;
	size_t n;
	char *const *given;
	struct arena *arena;
};

static bool is_given(const struct sim_line *w, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; w->given[i]; i++)
		if (strncmp(w->given[i], name, n) == 0 &&
		    (w->given[i][n] == 0 || w->given[i][n] == '='))
			return true;
	return false;
}

static void add_option(struct sim_line *w, const char *name, const char *value)
{
	w->word[w->n++] = arena_printf(w->arena, "%s", name);
	w->word[w->n++] = arena_printf(w->arena, "%s", value);
}

/* --NAME URL... for all servers of that role; whether there is one. */
static bool add_urls(struct sim_line *w, const struct experiment *x, const struct role_at *at,
		     enum server_role role, const char *name)
{
	bool is_there = false, is_wanted = !is_given(w, name);

	for (size_t i = 0; i < x->n_servers; i++) {
		if (x->server[i].role != role)
			continue;
		if (is_wanted && !is_there)
			w->word[w->n++] = arena_printf(w->arena, "%s", name);
		if (is_wanted)
			w->word[w->n++] = arena_printf(w->arena, "%s", role_url(&at[i], w->arena));
		is_there = true;
	}
	return is_there;
}

static void sim_words(struct sim_line *w, const struct experiment *x, size_t i,
		      const struct role_at *at)
{
	enum server_role role = x->server[i].role;
	bool is_told = is_given(w, "--kv-transfer-config") || is_given(w, "--role");

	if (role != ROLE_SERVE && !is_told)
		add_option(w, "--role", server_role_name(role));
	if (role == ROLE_PROXY) {
		bool is_split = add_urls(w, x, at, ROLE_PREFILL, "--prefill-url");

		if (add_urls(w, x, at, ROLE_DECODE, "--decode-url") || is_split)
			return;
		add_urls(w, x, at, ROLE_SERVE, "--backend-url");
	} else if (role == ROLE_SERVE) {
		add_urls(w, x, at, ROLE_CACHE, "--kv-cache-url");
	}
}

int role_words(const struct experiment *x, size_t i, const struct role_at *at, char *const *argv,
	       struct arena *a, char ***out, struct err *e)
{
	size_t n = words_count(argv);
	struct server_address where;
	struct sim_line w = { .n = n, .arena = a };
	char **plain;

	if (role_list(x, at, argv, a, &plain, e) < 0)
		return err_wrap(e, "server %s", x->server[i].name);
	w.given = plain;
	w.word = arena_alloc(a, (n + 2 * x->n_servers + 3) * sizeof(*w.word));
	memcpy(w.word, plain, n * sizeof(*plain));
	if (server_address(plain, &where, e) < 0)
		return err_wrap(e, "server %s", x->server[i].name);
	if (where.kind == SERVER_SIM)
		sim_words(&w, x, i, at);
	w.word[w.n] = NULL;
	*out = w.word;
	return 0;
}
