/* SPDX-License-Identifier: Apache-2.0 */
/*
 * described.c - see described.h. Each member of the body is a template of its own, so that flags,
 * --extra-body and a sample's overrides replace or add members as for every API (serve spec 3.2).
 */
#include "client/endpoint/described.h"

#include "client/endpoint/peers.h"
#include "client/endpoint/template.h"
#include "client/http/head.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "core/opt/opt.h"

/* Things that the file locates by a path, one each. */
enum role {
	TEXT, REASONING, FINISH, ERROR, PROMPT_TOKENS, OUTPUT_TOKENS, CACHED_TOKENS,
	REASONING_TOKENS, ROLES,
};

static const struct { const char *group, *key; } roles[ROLES] = {
	[TEXT] = { NULL, "text" }, [REASONING] = { NULL, "reasoning" },
	[FINISH] = { NULL, "finish" }, [ERROR] = { NULL, "error" },
	[PROMPT_TOKENS] = { "usage", "prompt_tokens" },
	[OUTPUT_TOKENS] = { "usage", "output_tokens" },
	[CACHED_TOKENS] = { "usage", "cached_tokens" },
	[REASONING_TOKENS] = { "usage", "reasoning_tokens" },
};

struct member {
	struct str key;
	struct template value;
};

struct members {
	struct member *v;
	size_t n;
};

struct described {
	struct endpoint ep;     /* first: hooks get back to us from it */
	struct members top, nested;
	struct peer_place place;
	struct json_paths paths;
	int8_t at[ROLES];       /* the path of a role; -1: the file names none */
	struct str done;        /* the data that ends a stream; empty: none */
	bool is_cumulative;
};

/* State needed at every step of reading a file. */
struct reader {
	struct described *d;
	struct json_value *file;
	struct arena *arena;
	struct err *e;
};

static const struct described *of(const struct endpoint *self)
{
	return (const struct described *)self;
}

/* ---- body out ---- */

/* Fills all members into text; body borrows from it, so that text is complete before. */
static int fill(const struct members *m, const struct encode_opts *o, const struct sample *s,
		struct buf *text, struct body *b, struct err *e)
{
	size_t end[sizeof(b->member) / sizeof(*b->member)], from = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (template_fill(&m->v[i].value, o, s, text, e) < 0)
			return -1;
		end[i] = text->len;
	}
	if (text->is_over)
		return err_set(e, ERR_LIMIT, "a request body exceeds the limit of 1 GiB");
	for (size_t i = 0; i < m->n; i++) {
		struct str value = { text->data + from, end[i] - from };

		if (body_put_str(b, m->v[i].key, value, e) < 0)
			return -1;
		from = end[i];
	}
	return 0;
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	const struct described *d = of(self);
	struct body top = { .n = 0 }, nested = { .n = 0 };
	struct buf text = { 0 }, inner = { 0 };
	int rc = -1;

	if (fill(&d->top, o, s, &text, &top, e) == 0 &&
	    fill(&d->nested, o, s, &inner, &nested, e) == 0)
		rc = peer_finish_body(&d->place, &top, d->place.nested ? &nested : NULL, o, s,
				      out, e);
	buf_release(&text);
	buf_release(&inner);
	return rc;
}

/* ---- events in ---- */

static struct json_slice slice(const struct described *d, const struct json_slice *v, enum role r)
{
	return d->at[r] < 0 ? (struct json_slice){ JSON_NULL, { 0 } } : v[d->at[r]];
}

static void read_event(const struct described *d, const struct json_slice *v, struct decoded *out)
{
	struct json_slice text = slice(d, v, TEXT), finish = slice(d, v, FINISH);
	struct json_slice thought = slice(d, v, REASONING);
	bool is_last = event_has(finish) && json_truthy(finish);

	if (peer_error(slice(d, v, ERROR), out))
		return;
	if (event_has_text(thought) || event_has_text(text) || (event_has(text) && !is_last)) {
		out->bits = DECODED_TOKEN;
		peer_other(thought, DECODED_REASONING, out);
		if (d->is_cumulative) {
			out->bits |= DECODED_WHOLE_TEXT;
			out->other = (struct str){ 0 }; /* it is all reasoning so far */
		}
		peer_answer(text, out);
	}
	if (is_last)
		event_ended(finish, out);
	peer_usage(out, event_count(slice(d, v, PROMPT_TOKENS)),
		   event_count(slice(d, v, OUTPUT_TOKENS)),
		   event_count(slice(d, v, CACHED_TOKENS)));
	out->reasoning_tokens = event_count(slice(d, v, REASONING_TOKENS));
	if (!out->bits)
		out->bits = DECODED_IGNORED;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	const struct described *d = of(self);
	struct json_slice v[ROLES];

	if (d->done.n && str_eq(data, d->done)) {
		out->bits = DECODED_DONE;
		return 0;
	}
	if (json_scan_run(&d->paths, data, v) < 0)
		return event_not_json(data, e);
	read_event(d, v, out);
	return 0;
}

static int decode_answer(const struct endpoint *self, const struct answer *answer,
			 struct decoded *out, struct err *e)
{
	const struct described *d = of(self);
	struct json_slice v[ROLES];

	if (json_scan_run(&d->paths, answer->body, v) < 0)
		return err_set(e, ERR_PARSE, "the answer is not JSON: %.*s",
			       (int)(answer->body.n < 200 ? answer->body.n : 200), answer->body.p);
	read_event(d, v, out);
	if (out->bits & DECODED_WHOLE_TEXT)
		out->bits |= DECODED_FINISH; /* all of it is here */
	if (self->is_pooling)
		out->bits &= DECODED_ERROR | DECODED_USAGE;
	return 0;
}

/* Without a marker in the file every stream with a token is a success. */
static const char *finish_unmarked(const struct request_row *row)
{
	return row->first_event_ns ? NULL : "the stream ended without a token";
}

static const char *finish_whole(const struct request_row *row)
{
	return row->first_event_ns ? NULL : "the answer has no text";
}

static const char *finish_pooling(const struct request_row *row)
{
	(void)row;
	return NULL;
}

/* ---- the file ---- */

/* Refuses "key": it must be something else. */
static int wrong(const struct reader *r, const char *key, const char *expected)
{
	return err_set(r->e, ERR_USAGE, "\"%s\" has to be %s", key, expected);
}

/* Reads a text; 1 if present, 0 if not. */
static int take_text(const struct reader *r, const char *key, struct str *out)
{
	const struct json_value *v = json_get(r->file, key);

	if (!v)
		return 0;
	if (v->kind != JSON_STRING || v->text.n == 0 || memchr(v->text.p, 0, v->text.n))
		return wrong(r, key, "a text that is not empty");
	*out = v->text;
	return 1;
}

static int take_bool(const struct reader *r, const char *key, bool *out)
{
	const struct json_value *v = json_get(r->file, key);

	if (v && v->kind != JSON_TRUE && v->kind != JSON_FALSE)
		return wrong(r, key, "true or false");
	*out = v && v->kind == JSON_TRUE;
	return 0;
}

static int unknown_key(const struct reader *r, struct str key, const char *const *known, size_t n)
{
	const char *near = opt_nearest(key, known, n);

	return err_set(r->e, ERR_USAGE, "unknown key \"%.60s\"%s%s%s", key.p,
		       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int check_keys(const struct reader *r)
{
	static const char *const known[] = {
		"name", "path", "kind", "framing", "headers", "body", "sampling_in", "text",
		"reasoning", "finish", "error", "usage", "done", "cumulative", "echoes_prompt",
		"chat", "comment",
	};

	for (size_t i = 0; i < r->file->count; i++) {
		size_t j = 0;

		while (j < sizeof(known) / sizeof(*known) && !str_is(r->file->key[i], known[j]))
			j++;
		if (j == sizeof(known) / sizeof(*known))
			return unknown_key(r, r->file->key[i], known, j);
	}
	return 0;
}

static int take_names(const struct reader *r)
{
	struct endpoint *ep = &r->d->ep;
	struct str name = { 0 }, path = { 0 };

	if (take_text(r, "name", &name) < 0 || take_text(r, "path", &path) < 0)
		return -1;
	if (name.n == 0 || name.n > 64 ||
	    strspn(name.p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
	    name.n || name.p[0] == '.')
		return wrong(r, "name", "at most 64 letters, digits, '-', '_' and '.': result files "
			     "are called after it");
	if (endpoint_find(name.p))
		return err_set(r->e, ERR_USAGE, "the name \"%s\" is taken: --backend %s", name.p,
			       name.p);
	if (path.n == 0 || path.p[0] != '/' || strpbrk(path.p, " \t\r\n"))
		return wrong(r, "path", "the path of the URL, from its '/' on");
	ep->name = ep->api_name = name.p;
	ep->default_path = path.p;
	ep->suffix = "";
	return 0;
}

static int take_kind(const struct reader *r)
{
	struct endpoint *ep = &r->d->ep;
	struct str kind = STR("generate"), framing = STR("sse");
	int is_framed;

	if (take_text(r, "kind", &kind) < 0 ||
	    (is_framed = take_text(r, "framing", &framing)) < 0 ||
	    take_bool(r, "cumulative", &r->d->is_cumulative) < 0 ||
	    take_bool(r, "echoes_prompt", &ep->is_prompt_echoed) < 0 ||
	    take_bool(r, "chat", &ep->is_chat) < 0)
		return -1;
	ep->is_pooling = str_is(kind, "pooling");
	if (!ep->is_pooling && !str_is(kind, "generate"))
		return wrong(r, "kind", "\"generate\" or \"pooling\"");
	if (!str_is(framing, "sse") && !str_is(framing, "lines") && !str_is(framing, "whole"))
		return wrong(r, "framing", "\"sse\", \"lines\" or \"whole\"");
	if (ep->is_pooling && is_framed && !str_is(framing, "whole"))
		return wrong(r, "framing", "\"whole\" for pooling, which does not stream");
	ep->is_streaming = !ep->is_pooling && !str_is(framing, "whole");
	ep->framing = str_is(framing, "lines") ? FRAMING_LINES : FRAMING_SSE;
	if (!ep->is_streaming)
		r->d->is_cumulative = !ep->is_pooling; /* it is the whole answer */
	if (ep->is_prompt_echoed && !r->d->is_cumulative)
		return err_set(r->e, ERR_USAGE, "\"echoes_prompt\" needs \"cumulative\": true or "
			       "\"framing\": \"whole\"");
	return 0;
}

/* RFC 9110: a token as name; no controls in the value. */
static bool is_header(struct str name, const struct json_value *value)
{
	if (!http_is_token(name) || value->kind != JSON_STRING)
		return false;
	for (size_t i = 0; i < value->text.n; i++)
		if ((unsigned char)value->text.p[i] < 0x20 || value->text.p[i] == 0x7f)
			return false;
	return true;
}

static int take_headers(const struct reader *r)
{
	const struct json_value *v = json_get(r->file, "headers");
	struct endpoint_header *header;

	if (!v)
		return 0;
	if (v->kind != JSON_OBJECT)
		return wrong(r, "headers", "an object of names and texts");
	header = arena_alloc(r->arena, (v->count + 1) * sizeof(*header));
	for (size_t i = 0; i < v->count; i++) {
		if (!is_header(v->key[i], &v->item[i]))
			return err_set(r->e, ERR_USAGE, "\"headers\": %.60s is not a valid header",
				       v->key[i].p);
		if (http_head_is_framing(v->key[i]))
			return err_set(r->e, ERR_USAGE, "\"headers\": %s is set by profllm itself",
				       v->key[i].p);
		header[i] = (struct endpoint_header){ v->key[i].p, v->item[i].text.p };
	}
	r->d->ep.header = header;
	r->d->ep.n_headers = v->count;
	return 0;
}

/* As a body holds a key: between its quotes. */
static struct str key_of(const struct reader *r, struct str text)
{
	struct buf quoted = { 0 };
	struct str key;

	json_quote(&quoted, text, false);
	key = arena_str(r->arena, (struct str){ quoted.data + 1, quoted.len - 2 });
	buf_release(&quoted);
	return key;
}

static int take_members(const struct reader *r, const struct json_value *object,
			const char *except, struct members *out)
{
	struct buf text = { 0 };
	int rc = 0;

	out->v = arena_alloc(r->arena, (object->count + 1) * sizeof(*out->v));
	for (size_t i = 0; rc == 0 && i < object->count; i++) {
		struct member *m = &out->v[out->n];
		struct json_writer w;

		if (except && str_is(object->key[i], except))
			continue;
		m->key = key_of(r, object->key[i]);
		buf_reset(&text);
		w = json_writer(&text);
		w.is_python = true; /* keeps the spelling of the file */
		json_put_value(&w, &object->item[i]);
		rc = template_compile(&m->value, arena_str(r->arena, buf_str(&text)), r->arena,
				      r->e);
		out->n++;
	}
	buf_release(&text);
	return rc;
}

static bool uses(const struct members *m, enum template_field field)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].value.fields & (1u << field))
			return true;
	return false;
}

static int take_body(const struct reader *r)
{
	struct described *d = r->d;
	const struct json_value *v = json_get(r->file, "body"), *nested;
	struct str place = { 0 };

	if (!v || v->kind != JSON_OBJECT)
		return wrong(r, "body", "an object, the body of a request");
	if (take_text(r, "sampling_in", &place) < 0)
		return -1;
	if (place.n) {
		nested = json_get(v, place.p);
		if (nested && nested->kind != JSON_OBJECT)
			return err_set(r->e, ERR_USAGE, "\"sampling_in\": \"%.60s\" is not an "
				       "object in the body", place.p);
		if (nested && take_members(r, nested, NULL, &d->nested) < 0)
			return -1;
		d->place.nested = key_of(r, place).p;
	}
	if (take_members(r, v, place.p, &d->top) < 0)
		return -1;
	if (d->top.n >= sizeof(((struct body *)0)->member) / sizeof(struct body_member) ||
	    d->nested.n >= sizeof(((struct body *)0)->member) / sizeof(struct body_member))
		return wrong(r, "body", "an object of fewer than 64 members");
	if (!uses(&d->top, TEMPLATE_PROMPT) && !uses(&d->top, TEMPLATE_MESSAGES) &&
	    !uses(&d->nested, TEMPLATE_PROMPT) && !uses(&d->nested, TEMPLATE_MESSAGES))
		return err_set(r->e, ERR_USAGE, "the body holds neither {{prompt}} nor {{messages}}");
	d->ep.is_eos_kept = !uses(&d->top, TEMPLATE_IGNORE_EOS) &&
			    !uses(&d->nested, TEMPLATE_IGNORE_EOS);
	d->ep.is_model_unnamed = !uses(&d->top, TEMPLATE_MODEL) &&
				 !uses(&d->nested, TEMPLATE_MODEL);
	return 0;
}

#define PATH_STEPS_MAX 7
_Static_assert(PATH_STEPS_MAX <= JSON_PATH_STEPS_MAX &&
	       ROLES * PATH_STEPS_MAX < JSON_PATH_NODES_MAX && ROLES <= JSON_PATHS_MAX,
	       "any paths of a file can be compiled");

/* Names of plain ASCII separated by dots, each followed by any [n]: what json/scan.h compiles. */
static bool is_path(struct str text)
{
	const char *p = text.p;
	size_t steps = 0;

	for (const char *c = p; *c; c++)
		if ((unsigned char)*c < 0x21 || (unsigned char)*c > 0x7e || *c == '"' || *c == '\\')
			return false;
	while (*p) {
		if (*p == '[') {
			size_t digits = strspn(++p, "0123456789");

			if (digits == 0 || digits > 6 || p[digits] != ']')
				return false;
			p += digits + 1;
		} else {
			size_t n = strcspn(p, ".[");

			if (n == 0 || memchr(p, ']', n))
				return false;
			p += n;
		}
		if (++steps > PATH_STEPS_MAX)
			return false;
		if (*p == '.' && (!p[1] || p[1] == '.' || p[1] == '['))
			return false;
		p += *p == '.';
	}
	return steps > 0;
}

/* Two roles may share a path: it is compiled once. */
static int take_path(const struct reader *r, enum role role, struct str text, const char **path,
		     size_t *n)
{
	if (!is_path(text))
		return err_set(r->e, ERR_USAGE, "\"%s\": \"%.80s\" is not a path like "
			       "choices[0].text", roles[role].key, text.p);
	for (size_t i = 0; i < *n; i++) {
		if (strcmp(path[i], text.p) == 0) {
			r->d->at[role] = (int8_t)i;
			return 0;
		}
	}
	path[*n] = text.p;
	r->d->at[role] = (int8_t)(*n)++;
	return 0;
}

static int check_usage(const struct reader *r, const struct json_value *usage)
{
	if (usage && usage->kind != JSON_OBJECT)
		return wrong(r, "usage", "an object of paths");
	for (size_t i = 0; usage && i < usage->count; i++) {
		const char *known[ROLES];
		bool is_known = false;
		size_t n = 0;

		for (size_t role = 0; role < ROLES; role++)
			if (roles[role].group) {
				known[n++] = roles[role].key;
				is_known = is_known || str_is(usage->key[i], roles[role].key);
			}
		if (!is_known) {
			unknown_key(r, usage->key[i], known, n);
			return err_wrap(r->e, "\"usage\"");
		}
	}
	return 0;
}

static int take_paths(const struct reader *r)
{
	struct described *d = r->d;
	const struct json_value *usage = json_get(r->file, "usage");
	const char *path[ROLES];
	size_t n = 0;

	if (check_usage(r, usage) < 0)
		return -1;
	for (enum role role = 0; role < ROLES; role++) {
		const struct json_value *v = json_get(roles[role].group ? usage : r->file,
						      roles[role].key);

		d->at[role] = -1;
		if (!v)
			continue;
		if (v->kind != JSON_STRING || memchr(v->text.p, 0, v->text.n))
			return wrong(r, roles[role].key, "a path, as text");
		if (take_path(r, role, v->text, path, &n) < 0)
			return -1;
	}
	if (d->ep.is_pooling != (d->at[TEXT] < 0))
		return err_set(r->e, ERR_USAGE, d->ep.is_pooling ? "\"text\" has no use for pooling"
			       : "\"text\" is missing: where an event has the answer's text");
	json_scan_paths_init(&d->paths, path, n);
	return 0;
}

static int take_end(const struct reader *r)
{
	struct described *d = r->d;

	if (take_text(r, "done", &d->done) < 0)
		return -1;
	if (d->done.n && !d->ep.is_streaming)
		return err_set(r->e, ERR_USAGE, "\"done\" ends a stream, and this API does not stream");
	d->ep.encode = encode;
	d->ep.decode = decode;
	d->ep.decode_answer = decode_answer;
	d->ep.finish = d->ep.is_pooling ? finish_pooling
		: !d->ep.is_streaming ? finish_whole
		: d->done.n || d->at[FINISH] >= 0 ? peer_finish
		: finish_unmarked;
	return 0;
}

const struct endpoint *endpoint_described_text(const char *name, struct str json, struct arena *a,
					       struct err *e)
{
	struct reader r = { .arena = a, .e = e };

	r.d = arena_alloc(a, sizeof(*r.d));
	r.d->ep.is_openai = r.d->ep.is_ours = r.d->ep.is_error_final = true;
	if (json_parse(a, json, &r.file, e) < 0)
		goto failed;
	if (r.file->kind != JSON_OBJECT) {
		err_set(e, ERR_USAGE, "expected a JSON object");
		goto failed;
	}
	if (check_keys(&r) == 0 && take_names(&r) == 0 && take_kind(&r) == 0 &&
	    take_headers(&r) == 0 && take_body(&r) == 0 && take_paths(&r) == 0 &&
	    take_end(&r) == 0)
		return &r.d->ep;
failed:
	err_wrap(e, "--backend-file %s", name);
	if (e)
		e->code = ERR_USAGE;
	return NULL;
}

const struct endpoint *endpoint_described(const char *path, struct arena *a, struct err *e)
{
	const struct endpoint *ep = NULL;
	struct buf text = { 0 };

	if (file_read(path, BACKEND_FILE_BYTES_MAX, &text, e) < 0) {
		err_wrap(e, "--backend-file");
		if (e)
			e->code = ERR_USAGE;
	} else {
		ep = endpoint_described_text(path, buf_str(&text), a, e);
	}
	buf_release(&text);
	return ep;
}
