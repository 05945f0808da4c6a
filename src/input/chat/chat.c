/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - see chat.h.
 */
#include "input/chat/chat.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/encode/model.h"
#include "input/token/load.h"
#include "input/token/remote.h"

const struct chat_known chat_known[] = {
#define CHAT(...) { __VA_ARGS__ },
#include "input/chat/known_rows.h"
#undef CHAT
};
const size_t chat_known_count = sizeof(chat_known) / sizeof(*chat_known);

static const char *const TOKEN_NAMES[] = CHAT_TOKEN_NAMES;

#define TOKENS (sizeof TOKEN_NAMES / sizeof *TOKEN_NAMES)

const char *chat_source_name(enum chat_source source)
{
	static const char *const name[] = { "none", "flags", "known", "server", "engine" };

	assert((size_t)source < sizeof(name) / sizeof(*name));
	return name[source];
}

/* ---- applying ---- */

static bool is_blank(uint32_t c)
{
	return (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= ' ') || c == 0x85 || c == 0xa0 ||
		c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
		c == 0x202f || c == 0x205f || c == 0x3000;
}

static struct str strip(struct str s)
{
	size_t end = 0, n;

	while (s.n && is_blank(utf8_decode(s, &n)))
		s.p += n, s.n -= n;
	for (size_t at = 0; at < s.n; at += n)
		if (!is_blank(utf8_decode((struct str){ s.p + at, s.n - at }, &n)))
			end = at + n;
	s.n = end;
	return s;
}

void chat_apply(const struct chat_wrap *w, struct str content, struct buf *out)
{
	buf_add_str(out, w->prefix);
	buf_add_str(out, w->is_stripping ? strip(content) : content);
	buf_add_str(out, w->suffix);
}

void chat_apply_system(const struct chat_wrap *w, struct str system, struct str content,
	struct buf *out)
{
	assert(w->has_system);
	buf_add_str(out, w->system_prefix);
	buf_add_str(out, w->is_system_stripping ? strip(system) : system);
	buf_add_str(out, w->system_middle);
	buf_add_str(out, w->is_stripping ? strip(content) : content);
	buf_add_str(out, w->suffix);
}

bool chat_doubles_bos(const struct chat_wrap *w, const struct tokenizer *t)
{
	struct ids with = { 0 }, without = { 0 };
	struct buf text = { 0 };
	bool is_double;

	chat_apply(w, STR("x"), &text);
	is_double = tokenizer_encode(t, buf_str(&text), true, &with) == 0 &&
		tokenizer_encode(t, buf_str(&text), false, &without) == 0 &&
		with.count > without.count && without.count > 0 &&
		with.id[0] == with.id[1] && with.id[0] == without.id[0];
	ids_release(&with);
	ids_release(&without);
	buf_release(&text);
	return is_double;
}

/* ---- from the user ---- */

/* The byte of an escape, s beginning after the backslash; -1: not an escape. */
static int escaped(const char *s, size_t *n)
{
	static const char letters[] = "nrt\\", bytes[] = "\n\r\t\\";
	const char *at = *s ? strchr(letters, *s) : NULL;

	*n = at ? 1 : 3;
	if (at)
		return bytes[at - letters];
	if (*s != 'x' || str_hex(s[1]) < 0 || str_hex(s[2]) < 0)
		return -1;
	return str_hex(s[1]) << 4 | str_hex(s[2]);
}

int chat_unescape(const char *what, const char *text, struct arena *a, struct str *out,
	struct err *e)
{
	struct buf plain = { 0 };
	int rc = 0;

	for (const char *p = text ? text : ""; *p;) {
		size_t n = 0;
		int byte = *p == '\\' ? escaped(p + 1, &n) : (unsigned char)*p;

		if (byte < 0) {
			rc = err_set(e, ERR_USAGE, "%s: unknown escape '\\%.3s'; expected \\n, "
				     "\\r, \\t, \\\\ or \\xHH", what, p + 1);
			break;
		}
		buf_add_char(&plain, (char)byte);
		p += 1 + n;
	}
	if (rc == 0 && !utf8_is_valid(buf_str(&plain)))
		rc = err_set(e, ERR_USAGE, "%s: not UTF-8", what);
	if (rc == 0)
		*out = arena_str(a, buf_str(&plain));
	buf_release(&plain);
	return rc;
}

/* ---- from files ---- */

/* The template in a member: a text, or a list of {"name", "template"}. */
static struct str template_of(const struct json_value *object)
{
	const struct json_value *v = json_get(object, "chat_template");

	if (v && v->kind == JSON_STRING)
		return v->text;
	for (size_t i = 0; v && v->kind == JSON_ARRAY && i < v->count; i++)
		if (str_is(json_text(json_get(v->item + i, "name"), STR("")), "default"))
			return json_text(json_get(v->item + i, "template"), (struct str){ 0 });
	return (struct str){ 0 };
}

static int read_jinja(const char *path, struct buf *out, struct err *e)
{
	char *full = file_beside(path, "chat_template.jinja");
	int rc = 0;

	if (file_exists(full))
		rc = file_read(full, CHAT_TEMPLATE_BYTES_MAX, out, e) ? -1 : 1;
	free(full);
	return rc;
}

/* 1 with the template's text appended, 0 when there is none. */
static int template_text(const char *path, struct buf *out, struct err *e)
{
	static const char *const file[] = { "tokenizer_config.json", "chat_template.json" };
	int rc = read_jinja(path, out, e);

	for (size_t i = 0; i < 2 && rc == 0; i++) {
		struct arena arena = { 0 };
		struct str text = { 0 };
		struct json_value *object;

		rc = model_read_beside(&arena, path, file[i], "added_tokens_decoder", &object, e);
		if (rc == 0)
			text = template_of(object);
		if (text.p) {
			buf_add_str(out, text);
			rc = 1;
		}
		arena_release(&arena);
	}
	return rc;
}

/* Reads the special tokens from the files next to the tokenizer; empty: not given. */
static int read_tokens(const char *path, struct arena *a, struct str token[TOKENS],
	struct err *e)
{
	struct json_value *config, *map;

	if (model_read_beside(a, path, "tokenizer_config.json", "added_tokens_decoder", &config, e) ||
		model_read_beside(a, path, "special_tokens_map.json", NULL, &map, e))
		return -1;
	if (json_get(config, "added_tokens_decoder"))
		map = NULL;
	for (size_t i = 0; i < TOKENS; i++) {
		const struct json_value *v = json_get(map, TOKEN_NAMES[i]);

		v = v ? v : json_get(config, TOKEN_NAMES[i]);
		token[i] = json_text(v && v->kind == JSON_OBJECT ? json_get(v, "content") : v,
			(struct str){ 0 });
	}
	return 0;
}

/* Replaces the special tokens in a text of the table; false: one is not given. */
static bool fill_in(const char *text, const struct str token[TOKENS], struct arena *a,
	struct str *out)
{
	struct buf filled = { 0 };
	bool is_whole = true;

	for (; *text; text++) {
		unsigned which = (unsigned)*text - CHAT_TOKEN_FIRST;

		if (which >= TOKENS)
			buf_add_char(&filled, *text);
		else if (token[which].n)
			buf_add_str(&filled, token[which]);
		else
			is_whole = false;
	}
	*out = arena_str(a, buf_str(&filled));
	buf_release(&filled);
	return is_whole;
}

static int by_sha256(const void *key, const void *row)
{
	return strcmp(key, ((const struct chat_known *)row)->sha256);
}

/* Templates drop a final newline, which files may or may not have. */
static struct str without_newline(struct str s)
{
	s.n -= s.n && s.p[s.n - 1] == '\n';
	return s;
}

int chat_from_files(const char *path, struct arena *a, struct chat_wrap *out, struct err *e)
{
	struct arena scratch = { 0 };
	struct str token[TOKENS];
	const struct chat_known *row = NULL;
	struct buf text = { 0 };
	char hex[DIGEST_HEX];
	int rc;

	*out = (struct chat_wrap){ 0 };
	rc = template_text(path, &text, e);
	if (rc == 1)
		row = bsearch(digest_hex(DIGEST_SHA256, without_newline(buf_str(&text)), hex),
			chat_known, chat_known_count, sizeof *chat_known, by_sha256);
	if (row)
		rc = read_tokens(path, &scratch, token, e);
	if (row && rc == 0 && fill_in(row->prefix, token, a, &out->prefix) &&
		fill_in(row->suffix, token, a, &out->suffix)) {
		out->source = CHAT_KNOWN;
		out->is_stripping = row->is_stripping;
		out->family = row->family;
		out->is_system_stripping = row->is_system_stripping;
		out->has_system = row->system_prefix &&
			fill_in(row->system_prefix, token, a, &out->system_prefix) &&
			fill_in(row->system_middle, token, a, &out->system_middle);
	}
	buf_release(&text);
	arena_release(&scratch);
	return rc < 0 ? -1 : out->source == CHAT_KNOWN;
}

/* ---- from a renderer ---- */

struct probing {
	const struct chat_renderer *by;
	struct buf text;
};

/* Renders one message into p->text. */
static int render(struct probing *p, struct str content, struct err *e)
{
	buf_reset(&p->text);
	return p->by->render(p->by->self, content, &p->text, e);
}

/* Cuts the text around the only occurrence of content; false: there is none or several. */
static bool cut_around(struct str text, struct str content, struct str *prefix,
	struct str *suffix)
{
	const char *at = str_find(text, content);

	if (!at)
		return false;
	*prefix = (struct str){ text.p, (size_t)(at - text.p) };
	*suffix = (struct str){ at + content.n, text.n - prefix->n - content.n };
	return !str_find(*suffix, content);
}

/* -1 with an error unless the rendering of content equals that of w. */
static int confirm(struct probing *p, const struct chat_wrap *w, struct str content,
	struct err *e)
{
	struct buf want = { 0 };
	bool is_same;

	if (render(p, content, e))
		return -1;
	chat_apply(w, content, &want);
	is_same = str_eq(buf_str(&want), buf_str(&p->text));
	buf_release(&want);
	return is_same ? 0 : err_set(e, ERR_RUN, "the chat template of %s does not only add text "
		"before and after a message", p->by->name);
}

static int learn(struct probing *p, struct arena *a, struct chat_wrap *out, struct err *e)
{
	static const char blanks[] = " \n\tseven lanterns 4711 \n\t";
	/* Contents that templates are known to look for, and empty texts. */
	static const char *const probe[] = { "an orchard, 209", blanks, "two\n\nlines", "",
		"/no_think", "a <think>b</think> c", "{\"x\": [\"it's\"]}" };
	const struct str plain = str_trim(str_of(blanks));
	struct chat_wrap w = { .source = CHAT_ENGINE };

	if (render(p, plain, e))
		return -1;
	if (!cut_around(buf_str(&p->text), plain, &w.prefix, &w.suffix))
		return err_set(e, ERR_RUN, "the chat template of %s does not contain the message "
					   "exactly once",
			p->by->name);
	w.prefix = arena_str(a, w.prefix);
	w.suffix = arena_str(a, w.suffix);
	if (render(p, str_of(blanks), e))
		return -1;
	w.is_stripping = !str_find(buf_str(&p->text), str_of(blanks));
	for (size_t i = 0; i < sizeof probe / sizeof *probe; i++)
		if (confirm(p, &w, str_of(probe[i]), e))
			return -1;
	*out = w;
	return 0;
}

int chat_from_renderer(const struct chat_renderer *r, struct arena *a, struct chat_wrap *out,
	struct err *e)
{
	struct probing p = { .by = r };
	int rc;

	*out = (struct chat_wrap){ 0 };
	rc = learn(&p, a, out, e);
	buf_release(&p.text);
	return rc;
}

/* ---- from the server ---- */

struct asking {
	const struct token_server *server;
	const struct tokenizer *tokenizer;
	struct str kwargs;
	struct ids ids, again;
};

static int render_ids(void *self, struct str content, struct buf *text, struct err *e)
{
	struct asking *p = self;

	ids_reset(&p->ids);
	ids_reset(&p->again);
	if (token_server_render(p->server, content, p->kwargs, &p->ids, e))
		return -1;
	if (tokenizer_decode(p->tokenizer, p->ids.id, p->ids.count, false, text) ||
		tokenizer_encode(p->tokenizer, buf_str(text), false, &p->again) ||
		p->again.count != p->ids.count || (p->ids.count &&
		memcmp(p->again.id, p->ids.id, p->ids.count * sizeof *p->ids.id) != 0))
		return err_set(e, ERR_RUN, "%s/tokenize: the ids of a message, decoded and encoded "
			"again, are other ids", p->server->base_url);
	return 0;
}

int chat_from_server(const struct token_server *s, const struct tokenizer *t, struct str kwargs,
	struct arena *a, struct chat_wrap *out, struct err *e)
{
	struct asking p = { .server = s, .tokenizer = t, .kwargs = kwargs };
	const struct chat_renderer by = { s->base_url, render_ids, &p };
	int rc = chat_from_renderer(&by, a, out, e);

	if (rc == 0)
		out->source = CHAT_SERVER;
	ids_release(&p.ids);
	ids_release(&p.again);
	return rc;
}
