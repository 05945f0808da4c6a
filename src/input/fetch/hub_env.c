/* SPDX-License-Identifier: Apache-2.0 */
/* hub_env.c - names and settings of the hub client; see hub.h for the variables. */
#include <ctype.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "input/fetch/hub_internal.h"

#define ENDPOINT "https://huggingface.co"
#define TIMEOUT_S 10
#define TIMEOUT_S_MAX 86400
#define REPO_NAME_BYTES_MAX 96
#define TOKEN_BYTES_MAX 4096

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool is_set(const char *value)
{
	struct str s = str_of(value);

	return str_eq_nocase(s, STR("1")) || str_eq_nocase(s, STR("on")) ||
		str_eq_nocase(s, STR("yes")) || str_eq_nocase(s, STR("true"));
}

/* Appends a path with "~" and $NAME, ${NAME} replaced; unset names are unchanged. */
static void add_path(struct buf *out, const char *path)
{
	if (*path == '~' && (path[1] == '/' || !path[1]) && variable("HOME")) {
		buf_add_text(out, variable("HOME"));
		path++;
	}
	while (*path) {
		bool is_braced = path[0] == '$' && path[1] == '{';
		const char *p = path + (is_braced ? 2 : 1);
		struct buf name = { 0 };
		const char *value;
		size_t n = 0;

		while (*path == '$' && (isalnum((unsigned char)p[n]) || p[n] == '_'))
			n++;
		buf_add(&name, p, n);
		value = n && (!is_braced || p[n] == '}') ? getenv(name.data) : NULL;
		if (value) {
			buf_add_text(out, value);
			path = p + n + is_braced;
		} else {
			buf_add_char(out, *path++);
		}
		buf_release(&name);
	}
}

/* HF_HOME or its default; empty when not even HOME is known. */
static void add_home(struct buf *out)
{
	if (variable("HF_HOME"))
		add_path(out, variable("HF_HOME"));
	else if (variable("XDG_CACHE_HOME"))
		buf_printf(out, "%s/huggingface", variable("XDG_CACHE_HOME"));
	else if (variable("HOME"))
		buf_printf(out, "%s/.cache/huggingface", variable("HOME"));
}

static int find_cache(struct hub *h, struct err *e)
{
	const char *dir;

	if (h->o->cache_dir)
		buf_add_text(&h->cache, h->o->cache_dir);
	else if ((dir = variable("HF_HUB_CACHE")) || (dir = variable("HUGGINGFACE_HUB_CACHE")))
		add_path(&h->cache, dir);
	else
		add_home(&h->cache);
	if (h->cache.len == 0)
		return err_set(e, ERR_IO, "HF_HUB_CACHE, HF_HOME and HOME are all unset, so there "
			"is no cache folder for files of the hub");
	if (!h->o->cache_dir && !variable("HF_HUB_CACHE") && !variable("HUGGINGFACE_HUB_CACHE"))
		buf_add_text(&h->cache, "/hub");
	return 0;
}

/* Reads the token from a file if the environment has none. */
static void read_token(struct buf *token)
{
	struct buf path = { 0 };

	if (variable("HF_TOKEN_PATH")) {
		add_path(&path, variable("HF_TOKEN_PATH"));
	} else {
		add_home(&path);
		buf_add_text(&path, "/token");
	}
	if (file_exists(path.data))
		file_read(path.data, TOKEN_BYTES_MAX, token, NULL);
	buf_release(&path);
}

static int find_token(struct hub *h, struct err *e)
{
	const char *given = h->o->token;
	struct buf text = { 0 };
	struct str token;
	int rc = 0;

	if (!given && is_set(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")))
		return 0;
	if (given || (given = variable("HF_TOKEN")) || (given = variable("HUGGING_FACE_HUB_TOKEN")))
		buf_add_text(&text, given);
	else
		read_token(&text);
	token = str_trim(buf_str(&text));
	for (size_t i = 0; rc == 0 && i < token.n; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			rc = err_set(e, ERR_USAGE, "the hub token (HF_TOKEN or the file of "
				"HF_TOKEN_PATH) has a character at position %zu that tokens cannot "
				"contain", i);
	redact_learn(token);
	if (rc == 0 && token.n)
		buf_printf(&h->authorization, "Bearer %.*s", (int)token.n, token.p);
	buf_release(&text);
	return rc;
}

static int read_seconds(const char *name, int64_t *ms, struct err *e)
{
	const char *text = variable(name);
	int64_t seconds = 0;

	if (text && (!str_to_i64(str_trim(str_of(text)), &seconds) || seconds < 0 ||
		seconds > TIMEOUT_S_MAX))
		return err_set(e, ERR_USAGE, "%s=%s: expected whole seconds, at most %d", name,
			text, TIMEOUT_S_MAX);
	*ms = 1000 * (seconds ? seconds : TIMEOUT_S);
	return 0;
}

static int find_endpoint(struct hub *h, struct err *e)
{
	const char *url = variable("HF_ENDPOINT");

	buf_add_text(&h->endpoint, url ? url : ENDPOINT);
	while (h->endpoint.len && h->endpoint.data[h->endpoint.len - 1] == '/')
		h->endpoint.data[--h->endpoint.len] = 0;
	if (str_starts(buf_str(&h->endpoint), STR("http://")) ||
		str_starts(buf_str(&h->endpoint), STR("https://")))
		return 0;
	return err_set(e, ERR_USAGE, "HF_ENDPOINT=%s: expected http://... or https://...", url);
}

static int check_names(const struct hub *h, struct err *e)
{
	if (!hub_is_repo(h->repo))
		return err_set(e, ERR_USAGE, "\"%s\" is not the name of a %s (expected name or org/name)",
			h->repo, h->o->kind == HUB_DATASET ? "dataset" : "model");
	if (!hub_is_safe_path(h->revision) || strlen(h->revision) > HUB_NAME_BYTES_MAX)
		return err_set(e, ERR_USAGE, "\"%s\" is not a valid revision (branch, tag or "
					     "commit)",
			h->revision);
	return 0;
}

int hub_begin(struct hub *h, const struct hub_opts *o, const char *repo, struct err *e)
{
	const char *offline = variable("HF_HUB_OFFLINE");

	*h = (struct hub){ .o = o, .repo = repo, .revision = o->revision ? o->revision : "main" };
	h->is_offline = o->is_offline ||
		is_set(offline ? offline : getenv("TRANSFORMERS_OFFLINE"));
	if (check_names(h, e) || find_cache(h, e) || find_token(h, e) || find_endpoint(h, e) ||
		read_seconds("HF_HUB_ETAG_TIMEOUT", &h->etag_timeout_ms, e) ||
		read_seconds("HF_HUB_DOWNLOAD_TIMEOUT", &h->download_timeout_ms, e))
		return -1;
	buf_printf(&h->dir, "%s/%s--", h->cache.data,
		o->kind == HUB_DATASET ? "datasets" : "models");
	for (const char *p = repo; *p; p++)
		buf_add_text(&h->dir, *p == '/' ? "--" : (char[]){ *p, 0 });
	return 0;
}

void hub_end(struct hub *h)
{
	buf_release(&h->endpoint);
	buf_release(&h->cache);
	buf_release(&h->dir);
	buf_release(&h->authorization);
}

static bool is_repo_part(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && !strchr("-_.", s.p[i]))
			return false;
	return s.n && s.n <= REPO_NAME_BYTES_MAX && !strchr("-.", s.p[0]) &&
		!strchr("-.", s.p[s.n - 1]);
}

bool hub_is_repo(const char *name)
{
	struct str rest = str_of(name), first = str_cut(&rest, '/');

	if (!is_repo_part(first) || (strchr(name, '/') && !is_repo_part(rest)))
		return false;
	return !strstr(name, "--") && !strstr(name, "..") && !str_ends(str_of(name), STR(".git"));
}

bool hub_is_commit(const char *revision)
{
	size_t n = 0;

	while (str_hex(revision[n]) >= 0)
		n++;
	return n == 40 && !revision[n];
}
