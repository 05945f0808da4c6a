/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard.c - see dashboard.h. */
#include "input/fetch/dashboard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/json/read.h"

#define TOKEN_BYTES_MAX 4096
#define ANSWER_BYTES_SHOWN 500
#define UNIX_PREFIX "unix:"
#define UNIX_BASE "http://localhost" /* what requests over a Unix socket name */
#define SOCKET_DIGITS 24             /* of a path's digest, which names its file */
#define HTTP_PORT 80
#define TOKEN_QUERY "?token="

bool dashboard_is_name(const char *name)
{
	if (strncmp(name, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return name[strlen(UNIX_PREFIX)] != 0;
	return fetch_is_url(name) && strlen(strstr(name, "://")) > 3;
}

static const char *socket_of(const char *name)
{
	size_t n = strlen(UNIX_PREFIX);

	return strncmp(name, UNIX_PREFIX, n) == 0 ? name + n : NULL;
}

char *dashboard_absolute(const char *name)
{
	const char *path = socket_of(name);
	char *here = path && *path != '/' ? realpath(".", NULL) : NULL;
	struct buf out = { 0 };

	if (here)
		buf_printf(&out, UNIX_PREFIX "%s/%s", here, path);
	else
		buf_add_text(&out, name);
	free(here);
	return buf_take(&out);
}

/* ---- the token of a file ---- */

/* The first line of text, after "Bearer "; from: where it was read, for messages. */
static int take_token(struct str text, const char *from, struct buf *header, struct err *e)
{
	struct str line = str_trim(str_cut(&text, '\n'));

	if (!line.n)
		return err_set(e, ERR_USAGE, "%s: its first line is empty", from);
	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] <= ' ' || line.p[i] == 0x7f)
			return err_set(e, ERR_USAGE, "%s: its first line must be one word", from);
	redact_learn(line);
	buf_add_text(header, "Authorization: Bearer ");
	buf_add_str(header, line);
	return 0;
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_release(b);
}

static int read_token(const char *path, struct buf *header, struct err *e)
{
	struct buf text = { 0 }, from = { 0 };
	int rc = file_read(path, TOKEN_BYTES_MAX, &text, e);

	buf_printf(&from, "token file %s", path);
	rc = rc < 0 ? err_wrap(e, "token file") : take_token(buf_str(&text), from.data, header, e);
	wipe(&text);
	buf_release(&from);
	return rc;
}

/* ---- where tokens are kept ---- */

/* Appends the parent folder; false: neither XDG_STATE_HOME nor HOME is set. */
static bool add_parent(struct buf *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && *state == '/')
		buf_printf(out, "%s/profllm/dashboards", state);
	else if (home && *home == '/')
		buf_printf(out, "%s/.local/state/profllm/dashboards", home);
	else
		return false;
	return true;
}

static bool add_folder(struct buf *out)
{
	struct utsname name;

	if (!add_parent(out))
		return false;
	if (uname(&name) < 0)
		snprintf(name.nodename, sizeof(name.nodename), "unknown");
	for (char *c = name.nodename; *c; c++)
		*c = *c == '/' ? '_' : *c;
	buf_printf(out, "/%s", name.nodename);
	return true;
}

/*
 * "http://127.0.0.1:8080/..." into its loopback address and port. Only unambiguous ones are
 * accepted: a literal address or localhost, then a slash or the end.
 */
static bool parse_loopback(const char *name, char host[static INET6_ADDRSTRLEN + 2], uint64_t *port)
{
	struct str rest = str_of(name), part;
	struct in_addr v4;
	size_t n;

	if (!str_starts(rest, STR("http://")))
		return false;
	rest = (struct str){ rest.p + 7, rest.n - 7 };
	part = str_cut(&rest, '/');
	n = part.n && part.p[0] == '[' ? strcspn(part.p, "]/") + 1 : strcspn(part.p, ":/");
	if (n > part.n || n >= INET6_ADDRSTRLEN)
		return false;
	snprintf(host, INET6_ADDRSTRLEN + 2, "%.*s", (int)n, part.p);
	*port = HTTP_PORT;
	if (n < part.n && (part.p[n] != ':' ||
			   !str_to_u64((struct str){ part.p + n + 1, part.n - n - 1 }, port)))
		return false;
	if (*port > 65535)
		return false;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* The file for a Unix socket; false: there is no such path, or no folder. */
static bool add_socket_file(struct buf *out, const char *path)
{
	char *whole = realpath(path, NULL), hex[DIGEST_HEX];
	bool is_known = whole && add_folder(out);

	if (is_known)
		buf_printf(out, "/unix-%.*s", SOCKET_DIGITS,
			   digest_hex(DIGEST_SHA256, str_of(whole), hex));
	free(whole);
	return is_known;
}

/*
 * The token file for a dashboard of this name; false: one with such a name has none. localhost may
 * be any loopback address: *address is the k-th to try, and "" after the last.
 */
static bool add_file(struct buf *out, const char *name, int k, struct buf *address)
{
	static const char *const localhost[] = { "127.0.0.1", "[::1]" };
	const char *path = socket_of(name);
	char host[INET6_ADDRSTRLEN + 2];
	bool is_localhost;
	uint64_t port;

	buf_reset(out);
	buf_reset(address);
	if (path)
		return k == 0 && add_socket_file(out, path);
	if (!parse_loopback(name, host, &port))
		return false;
	is_localhost = strcmp(host, "localhost") == 0;
	if (k >= (is_localhost ? 2 : 1) || !add_folder(out))
		return false;
	buf_printf(address, "%s:%u", is_localhost ? localhost[k] : host, (unsigned)port);
	buf_printf(out, "/%s", address->data);
	return true;
}

/* 1: the file's token is in header; 0: there is no such file. */
static int read_kept(const char *path, struct buf *header, struct err *e)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[TOKEN_BYTES_MAX];
	struct stat st;
	ssize_t n = -1;
	int rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		rc = err_set(e, ERR_IO, "cannot read the dashboard's token: %s: %s", path,
			     strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		rc = err_set(e, ERR_IO, "the dashboard's token in %s is not used: expected a file of this "
			     "user with mode 0600; give the token with --token-file", path);
	else if ((n = read(fd, text, sizeof(text))) < 0)
		rc = err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	else
		rc = take_token((struct str){ text, (size_t)n }, path, header, e) < 0 ? -1 : 1;
	if (fd >= 0)
		close(fd);
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* ---- asking ---- */

static int find_kept(const char *name, struct dashboard *d, struct err *e)
{
	struct buf path = { 0 }, address = { 0 };
	int rc = 0;

	for (int k = 0; rc == 0 && add_file(&path, name, k, &address); k++)
		rc = read_kept(path.data, &d->header, e);
	d->is_own = rc > 0;
	/*
	 * Use the address itself, since a name may lead to another user's listener at another
	 * address.
	 */
	if (d->is_own && address.len) {
		const char *rest = strchr(name + strlen("http://"), '/');

		buf_reset(&d->base);
		buf_printf(&d->base, "http://%s%s", address.data, rest ? rest : "");
	}
	buf_release(&path);
	buf_release(&address);
	return rc < 0 ? -1 : 0;
}

/* token: NULL, or one that was read from there. */
static int find(const char *name, const char *token_file, const char *token, const char *from,
		struct dashboard *d, struct err *e)
{
	const char *path = socket_of(name);
	int rc;

	*d = (struct dashboard){ 0 };
	if (!dashboard_is_name(name))
		return err_set(e, ERR_USAGE, "the dashboard '%s': expected a URL that begins with "
			       "http:// or https://, or unix:PATH", name);
	if (path)
		buf_add_text(&d->socket, path);
	buf_add_text(&d->base, path ? UNIX_BASE : name);
	rc = token ? take_token(str_of(token), from, &d->header, e) :
	     token_file ? read_token(token_file, &d->header, e) : find_kept(name, d, e);
	while (d->base.len && d->base.data[d->base.len - 1] == '/')
		d->base.data[--d->base.len] = 0;
	return rc;
}

int dashboard_find(const char *name, const char *token_file, struct dashboard *d, struct err *e)
{
	return find(name, token_file, NULL, NULL, d, e);
}

int dashboard_find_printed(const char *url, struct dashboard *d, struct err *e)
{
	const char *query = strchr(url, '?'), *own = query ? query + strlen(TOKEN_QUERY) : NULL;
	const char *other = getenv(DASHBOARD_TOKEN_VARIABLE);
	char *name = mem_copy(url, query ? (size_t)(query - url) : strlen(url));
	int rc;

	if (query && strncmp(query, TOKEN_QUERY, strlen(TOKEN_QUERY)) != 0)
		rc = err_set(e, ERR_USAGE, "the dashboard '%s': expected its address, with ?token=TOKEN "
			     "after it where it needs one", name);
	else
		rc = find(name, NULL, own ? own : other && *other ? other : NULL,
			  own ? "the token after ?token=" : DASHBOARD_TOKEN_VARIABLE, d, e);
	free(name);
	return rc;
}

struct fetch_opts dashboard_opts(struct dashboard *d)
{
	d->headers[0] = d->header.len ? d->header.data : NULL;
	return (struct fetch_opts){
		.header = d->headers, .unix_socket = d->socket.len ? d->socket.data : NULL,
		.proxy = d->is_own || d->socket.len ? "" : NULL,
	};
}

/* Whether an answer is a web page, which a dashboard's API never sends. */
static bool is_page(struct str body)
{
	return str_starts(str_trim(body), STR("<"));
}

/* What the page of a proxy means; NULL: nothing that is known. */
static const char *meaning(long status, struct str body)
{
	static const struct { long status; const char *text; } known[] = {
		{ 413, "a proxy in front of the dashboard accepts no body of this size; nginx has "
		       "client_max_body_size for that" },
		{ 502, "a proxy in front of the dashboard cannot reach it" },
		{ 503, "a proxy in front of the dashboard limits requests, or cannot reach it" },
		{ 504, "a proxy in front of the dashboard gets no answer from it" },
	};

	if (status == 400 && str_find(body, STR("HTTPS port")))
		return "this port expects TLS: write https:// instead of http://";
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].status == status)
			return known[i].text;
	return NULL;
}

void dashboard_add_answer(const struct fetch_reply *r, struct buf *out)
{
	struct str body = buf_str(&r->body), detail = { 0 };
	struct json_value *answer = NULL;
	struct arena a = { 0 };
	const char *text = is_page(body) ? meaning(r->status, body) : NULL;

	if (json_parse(&a, body, &answer, NULL) == 0)
		detail = json_text(json_get(answer, "detail"), STR(""));
	else if (!is_page(body))
		detail = body;
	detail.n = detail.n < ANSWER_BYTES_SHOWN ? detail.n : ANSWER_BYTES_SHOWN;
	/* What the dashboard says is for people with a browser. */
	if (r->status == 401 && detail.n)
		detail = str_starts(detail, STR("this token is not")) ?
			STR("the token is not one of this dashboard's") :
			STR("a token is needed: --token-file names its file; for --dashboard it is in "
			    DASHBOARD_TOKEN_VARIABLE);
	buf_printf(out, "answered %ld", r->status);
	if (r->redirect.len)
		buf_printf(out, ": it redirects to %s; name that address", r->redirect.data);
	else if (text)
		buf_printf(out, ": %s", text);
	else if (detail.n)
		buf_add_text(out, ": ");
	for (size_t i = 0; i < detail.n && !text && !r->redirect.len; i++)
		buf_add_char(out, (unsigned char)detail.p[i] < ' ' ? ' ' : detail.p[i]);
	arena_release(&a);
}

void dashboard_release(struct dashboard *d)
{
	wipe(&d->header);
	buf_release(&d->base);
	buf_release(&d->socket);
	*d = (struct dashboard){ 0 };
}

/* ---- keeping ---- */

/* Makes a folder that only this user can access. */
static int make_private(const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, "cannot make the folder %s: %s", path, strerror(errno));
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_IO, "%s is not a folder of this user", path);
	if (st.st_mode & 077 && chmod(path, 0700) < 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	return 0;
}

static int make_folders(struct err *e)
{
	struct buf path = { 0 };
	char *above;
	int rc;

	if (!add_parent(&path))
		return err_set(e, ERR_IO, "neither XDG_STATE_HOME nor HOME is set");
	above = file_beside(path.data, "");
	rc = file_mkdirs(above, e);
	if (rc == 0)
		rc = make_private(path.data, e);
	buf_reset(&path);
	if (rc == 0 && add_folder(&path))
		rc = make_private(path.data, e);
	free(above);
	buf_release(&path);
	return rc;
}

/* Writes a new file next to path, never into an existing one, and renames it to path. */
static int write_private(const char *path, const char *token, struct err *e)
{
	struct buf temp = { 0 }, text = { 0 };
	int fd, rc = -1;

	buf_printf(&temp, "%s.%d.new", path, (int)getpid());
	buf_printf(&text, "%s\n", token);
	unlink(temp.data);
	fd = open(temp.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && file_write_all(fd, buf_str(&text)) == 0 && rename(temp.data, path) == 0)
		rc = 0;
	if (rc < 0) {
		err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
		unlink(temp.data);
	}
	if (fd >= 0)
		close(fd);
	wipe(&text);
	buf_release(&temp);
	return rc;
}

int dashboard_keep(const char *name, const char *token, struct buf *path, struct err *e)
{
	struct buf address = { 0 };
	int rc = make_folders(e);

	if (rc == 0 && !add_file(path, name, 0, &address))
		rc = err_set(e, ERR_IO, "%s is not a loopback address", name);
	buf_release(&address);
	if (rc == 0)
		rc = write_private(path->data, token, e);
	if (rc < 0)
		buf_release(path);
	return rc;
}

void dashboard_forget(struct buf *path)
{
	if (path->len)
		unlink(path->data);
	buf_release(path);
}
