/* SPDX-License-Identifier: Apache-2.0 */
/* config_read.c - see config.h: files, includes, names, the environment, --set: one tree. */
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/json/yaml.h"
#include "core/opt/opt.h"
#include "experiment/config/config.h"
#include "experiment/config/config_internal.h"
#include "host/engine/args.h"

#define SHOWN_MAX 80

/* A file being read, and the one that includes it. */
struct frame {
	const char *name;      /* as in messages */
	const char *real;      /* canonical path; "" for a text */
	const struct frame *by;
	unsigned depth;
	const char *section;   /* whose keys it has; NULL: it is a configuration */
};

struct reading {
	struct config *c;
	struct err *e;
	unsigned files;
	const struct json_value *root; /* what references lead to; NULL: they stay as they are */
	unsigned depth;                /* of references that lead to references */
	size_t referred;               /* bytes that references have brought in */
};

#define refuse(r, ...) config_refuse((r)->c, (r)->e, __VA_ARGS__)

/* ---- the environment ---- */

/* A value and its parent; the path is only built for a message. */
struct spot {
	const struct spot *in;
	const struct json_value *v;
	struct str key;        /* empty: an element, or the root */
	size_t place;
};

static const char *spot_path(const struct reading *r, const struct spot *at)
{
	struct arena *a = r->c->arena;
	const char *head = at->in ? spot_path(r, at->in) : "";
	const char *dot = *head ? "." : "";

	if (!at->in)
		return at->key.p ? arena_text(a, at->key) : "";
	if (!at->key.n)
		return arena_printf(a, "%s%s%zu", head, dot, at->place);
	return arena_printf(a, "%s%s%.*s", head, dot,
			    (int)(at->key.n < SHOWN_MAX ? at->key.n : SHOWN_MAX), at->key.p);
}

/* "server.model" of ${server.model} and of ${server.model:-otherwise}; empty: it is a variable. */
static struct str reference_in(struct str inside)
{
	struct str path = str_cut(&inside, ':');

	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] != '.' && path.p[i] != '_' && path.p[i] != '-' &&
		    !isalnum((unsigned char)path.p[i]))
			return (struct str){ 0 };
	return memchr(path.p, '.', path.n) ? path : (struct str){ 0 };
}

static bool has_reference(struct str s)
{
	const char *end;

	for (size_t i = 0; i + 2 < s.n; i++) {
		if (s.p[i] != '$')
			continue;
		if (s.p[++i] != '{')
			continue;
		end = memchr(s.p + i, '}', s.n - i);
		if (end && reference_in((struct str){ s.p + i + 1,
						      (size_t)(end - s.p) - i - 1 }).n)
			return true;
	}
	return false;
}

/* The value at a dotted path; a key may itself contain dots. */
static const struct json_value *value_at(const struct json_value *v, struct str path)
{
	bool is_server = str_starts(path, STR("server"));

	while (v && path.n) {
		const struct json_value *whole = config_get_str(v, path, is_server);
		struct str key;
		int64_t place;

		if (whole)
			return whole->kind != JSON_NULL ? whole : NULL;
		key = str_cut(&path, '.');
		if (v->kind == JSON_OBJECT)
			v = config_get_str(v, key, is_server);
		else if (v->kind == JSON_ARRAY && str_to_i64(key, &place) && place >= 0 &&
			 (uint64_t)place < v->count)
			v = &v->item[place];
		else
			v = NULL;
	}
	return v && v->kind != JSON_NULL ? v : NULL;
}

static const struct json_value *filled(struct reading *r, const struct json_value *v,
				       const struct spot *at);

/* The size of a value: bytes of texts plus a few per value; counting stops at limit. */
static size_t bytes_of(const struct json_value *v, size_t limit)
{
	size_t n = sizeof(*v) + (v->kind == JSON_STRING ? v->text.n : 0);

	if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count && n < limit; i++)
			n += bytes_of(&v->item[i], limit - n);
	return n;
}

/*
 * The value that a reference names, without references in it; NULL: nothing, or a mistake (r->e).
 */
static const struct json_value *referred(struct reading *r, const struct spot *at, struct str path)
{
	const struct json_value *v = value_at(r->root, path);

	if (v && ++r->depth > REFERENCES_MAX) {
		refuse(r, at->v, spot_path(r, at), "${%.*s} refers back to itself, or through more "
		       "than %d references", (int)path.n, path.p, REFERENCES_MAX);
		return NULL;
	}
	if (!v)
		return NULL;
	v = filled(r, v, &(struct spot){ .v = v, .key = path });
	r->depth--;
	if (v)
		r->referred += bytes_of(v, REFERRED_BYTES_MAX);
	if (r->referred > REFERRED_BYTES_MAX) {
		refuse(r, at->v, spot_path(r, at), "references bring in more than the %u bytes of "
		       "REFERRED_BYTES_MAX", REFERRED_BYTES_MAX);
		return NULL;
	}
	return v;
}

/* Appends the text of ${path} or ${path:-otherwise}. */
static int add_reference(struct reading *r, const struct spot *at, struct str path,
			 struct str inside, struct buf *out)
{
	const struct json_value *v = referred(r, at, path);
	const char *text = v ? config_scalar(v, r->c->arena) : NULL;
	struct str otherwise = { inside.p + path.n, inside.n - path.n };

	if (text)
		buf_add_text(out, text);
	if (text || r->e->code)
		return r->e->code ? -1 : 0;
	if (v)
		return refuse(r, at->v, spot_path(r, at), "${%.*s} is %s, which can only be a whole "
			      "value", (int)path.n, path.p, config_got(v, r->c->arena));
	if (!str_starts(otherwise, STR(":-")))
		return refuse(r, at->v, spot_path(r, at), "the key %.*s has no value; set it, or "
			      "write ${%.*s:-default}", (int)path.n, path.p, (int)path.n, path.p);
	buf_add_str(out, (struct str){ otherwise.p + 2, otherwise.n - 2 });
	return 0;
}

/* What is between the braces: NAME, or NAME:-otherwise. */
static int add_variable(struct reading *r, const struct spot *at, struct str inside,
			struct buf *out)
{
	struct str otherwise = inside, name = str_cut(&otherwise, ':'), path = reference_in(inside);
	bool has_otherwise = name.n < inside.n;
	char text[256];
	const char *value;
	size_t i = 0;

	if (path.n)
		return add_reference(r, at, path, inside, out);
	while (i < name.n && (name.p[i] == '_' || isalnum((unsigned char)name.p[i])))
		i++;
	if (!name.n || i < name.n || isdigit((unsigned char)*name.p) || name.n >= sizeof(text) ||
	    (has_otherwise && !str_starts(otherwise, STR("-"))))
		return refuse(r, at->v, spot_path(r, at), "expected ${NAME} or ${NAME:-default} "
			      "for an environment variable, or ${server.model} for a key; got "
			      "${%.*s} (write $$ for a dollar sign)",
			      (int)(inside.n < SHOWN_MAX ? inside.n : SHOWN_MAX),
			      inside.p);
	snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	value = config_bounds_variable(r->c->bounds, text);
	if (value && (*value || !has_otherwise)) {
		buf_add_text(out, value);
		return 0;
	}
	if (!has_otherwise && r->c->bounds)
		return refuse(r, at->v, spot_path(r, at), "environment variables of a dashboard "
			      "are not available; write the value, or start the dashboard with "
			      "--launch-env %s",
			      text);
	if (!has_otherwise)
		return refuse(r, at->v, spot_path(r, at), "the environment variable %s is not set; "
			      "set it, or write ${%s:-default}", text, text);
	buf_add_str(out, (struct str){ otherwise.p + 1, otherwise.n - 1 });
	return 0;
}

/* A text spelled like a number or boolean becomes one, so that ${PORT} is a port. */
static void retype(struct json_value *v)
{
	char spelled[FMT_F64_BYTES];
	int64_t integer;
	double real;

	if (str_is(v->text, "true") || str_is(v->text, "false")) {
		v->kind = str_is(v->text, "true") ? JSON_TRUE : JSON_FALSE;
		v->raw = v->text;
	} else if (str_to_i64(v->text, &integer)) {
		snprintf(spelled, sizeof(spelled), "%lld", (long long)integer);
		if (!str_is(v->text, spelled))
			return;
		v->raw = v->text;
		v->kind = JSON_INT;
		v->integer = integer;
	} else if (str_to_f64(v->text, &real) &&
		   str_is(v->text, fmt_f64(spelled, real)) && isdigit((unsigned char)*spelled)) {
		v->raw = v->text;
		v->kind = JSON_REAL;
		v->real = real;
	}
}

/* A text with a reference is filled in when all values are known. */
static void leave_open(const struct reading *r, const struct json_value *v)
{
	struct json_mark mark = json_marks_get(r->c->marks, v);

	mark.is_open = true;
	json_marks_put(r->c->marks, v, mark);
}

static int fill_text(struct reading *r, struct json_value *v, const struct spot *at)
{
	struct str s = v->text;
	struct buf out = { 0 };
	bool is_whole = str_starts(s, STR("${"));
	int rc = 0;

	if (memchr(s.p, 0, s.n))
		return refuse(r, v, spot_path(r, at), "has a zero byte, which no text of a "
			      "configuration may have");
	if (!memchr(s.p, '$', s.n))
		return 0;
	if (!r->root && has_reference(s)) {
		leave_open(r, v);
		return 0;
	}
	for (size_t i = 0; rc == 0 && i < s.n; i++) {
		const char *end;

		if (s.p[i] != '$' || i + 1 == s.n || (s.p[i + 1] != '$' && s.p[i + 1] != '{')) {
			buf_add_char(&out, s.p[i]);
			continue;
		}
		if (s.p[++i] == '$') {
			buf_add_char(&out, '$');
			continue;
		}
		end = memchr(s.p + i, '}', s.n - i);
		if (!end) {
			rc = refuse(r, v, spot_path(r, at), "${ is not closed by }");
			break;
		}
		rc = add_variable(r, at,
				  (struct str){ s.p + i + 1, (size_t)(end - s.p) - i - 1 }, &out);
		i = (size_t)(end - s.p);
		is_whole = is_whole && i + 1 == s.n;
	}
	if (rc == 0) {
		v->text = arena_str(r->c->arena, buf_str(&out));
		if (is_whole && str_ends(s, STR("}")))
			retype(v);
	}
	buf_release(&out);
	return rc;
}

static int fill(struct reading *r, struct json_value *v, const struct spot *at)
{
	if (v->kind == JSON_STRING)
		return fill_text(r, v, at);
	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
		return 0;
	for (size_t i = 0; i < v->count; i++) {
		struct spot inner = { .in = at, .v = &v->item[i], .place = i };

		if (v->kind == JSON_OBJECT)
			inner.key = v->key[i];
		if (fill(r, &v->item[i], &inner) < 0)
			return -1;
	}
	return 0;
}

/* ---- references ---- */

/* For a text that is one reference: the value it names, of any kind; else the filled text. */
static const struct json_value *filled_text(struct reading *r, const struct json_value *v,
					    const struct spot *at)
{
	struct json_value *out = arena_alloc(r->c->arena, sizeof(*out));
	struct json_mark mark = json_marks_get(r->c->marks, v);
	const struct json_value *whole = NULL;
	struct str inside = v->text, path;

	if (str_starts(inside, STR("${")) && str_ends(inside, STR("}"))) {
		inside = (struct str){ inside.p + 2, inside.n - 3 };
		path = reference_in(inside);
		if (path.n == inside.n)
			whole = referred(r, at, path);
	}
	*out = whole ? *whole : *v;
	mark.is_open = false;
	json_marks_put(r->c->marks, out, mark);
	if (r->e->code || (!whole && fill_text(r, out, at) < 0))
		return NULL;
	return out;
}

/* The same value if it contains no references; NULL with r->e. */
static const struct json_value *filled(struct reading *r, const struct json_value *v,
				       const struct spot *at)
{
	struct json_value *out = NULL;

	if (v->kind == JSON_STRING)
		return json_marks_get(r->c->marks, v).is_open ? filled_text(r, v, at) : v;
	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
		return v;
	for (size_t i = 0; i < v->count; i++) {
		struct spot inner = { .in = at, .v = &v->item[i], .place = i };
		const struct json_value *one;

		if (v->kind == JSON_OBJECT)
			inner.key = v->key[i];
		one = filled(r, &v->item[i], &inner);
		if (!one)
			return NULL;
		if (one != &v->item[i] && !out)
			out = config_copy(r->c, v, 0);
		if (one != &v->item[i])
			config_set_item(r->c, &out->item[i], one);
	}
	return out ? out : v;
}

/* Whether a value is nested too deep, which is refused. */
static bool is_too_deep(const struct reading *r, const struct json_value *v, const char *path)
{
	const struct json_value *deep = config_deeper(v, EXPERIMENT_DEPTH_MAX);

	if (deep)
		refuse(r, deep, path, "nested deeper than the %d levels of EXPERIMENT_DEPTH_MAX",
		       EXPERIMENT_DEPTH_MAX);
	return deep != NULL;
}

/* A value with all references in it, which may nest it deeper. */
static const struct json_value *filled_whole(struct reading *r, const struct json_value *v,
					     struct str key)
{
	const struct json_value *out = filled(r, v, &(struct spot){ .v = v, .key = key });

	return out && !is_too_deep(r, out, key.p) ? out : NULL;
}

const struct json_value *config_filled_value(const struct config *c, const struct json_value *tree,
					     const struct json_value *v, struct err *e)
{
	struct config own = *c;
	struct reading r = { .c = &own, .e = e, .root = tree };

	*e = (struct err){ 0 };
	return filled_whole(&r, v, STR(""));
}

const struct json_value *config_filled(const struct config *c, const struct json_value *tree,
				       const char *const *keys, struct err *e)
{
	struct config own = *c;
	struct reading r = { .c = &own, .e = e, .root = tree };

	*e = (struct err){ 0 };
	if (!keys)
		return filled_whole(&r, tree, STR(""));
	for (; tree && *keys; keys++) {
		const struct json_value *v = json_get(tree, *keys), *one;

		if (!v)
			continue;
		one = filled_whole(&r, v, str_of(*keys));
		if (one != v)
			tree = one ? config_put(c, tree, *keys, one, e) : NULL;
	}
	return tree;
}

/* ---- files ---- */

static int read_stdin(struct buf *out, struct err *e)
{
	ssize_t n;

	out->limit = EXPERIMENT_BYTES_MAX + READ_BYTES + 1;
	do {
		if (buf_reserve(out, READ_BYTES) < 0 || out->len > EXPERIMENT_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "stdin has more than the %u bytes of "
				       "EXPERIMENT_BYTES_MAX", EXPERIMENT_BYTES_MAX);
		n = read(STDIN_FILENO, out->data + out->len, out->cap - out->len - 1);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return err_set(e, ERR_IO, "cannot read stdin: %s", strerror(errno));
	out->data[out->len] = 0;
	return 0;
}

void config_learn(const struct json_value *tree)
{
	struct buf text = { .limit = DOCUMENT_BYTES_MAX };
	struct json_writer w = json_writer(&text);

	if (tree)
		json_put_value(&w, tree);
	redact_learn_text(buf_str(&text));
	buf_release(&text);
}

static int parse_text(struct reading *r, struct str text, const struct frame *frame,
		      struct json_value **out)
{
	const char *name = frame->name;
	struct config *c = r->c;
	bool is_json = str_ends(str_of(name), STR(".json"));
	struct err why = { 0 };

	if (text.n > EXPERIMENT_BYTES_MAX)
		return err_set(r->e, ERR_USAGE, "%s: has %zu bytes, more than the %u of "
			       "EXPERIMENT_BYTES_MAX", name, text.n, EXPERIMENT_BYTES_MAX);
	if ((is_json ? json_parse_marked : yaml_parse_marked)(c->arena, text, name, c->marks, out,
							      &why) < 0)
		return err_set(r->e, ERR_USAGE, "%s:%s", name,
			       frame->by ? config_bounds_fault(c, why.text) : why.text);
	if ((*out)->kind == JSON_NULL)
		return err_set(r->e, ERR_USAGE, "%s is empty; expected sections such as server and "
			       "benchmark", name);
	if ((*out)->kind != JSON_OBJECT)
		return refuse(r, *out, "", "expected %s, got %s", frame->section ?
			      "keys of the section that includes it, such as model: NAME" :
			      "sections such as server and benchmark", config_got(*out, c->arena));
	if (is_too_deep(r, *out, ""))
		return -1;
	config_learn(*out);
	if (fill(r, *out, &(struct spot){ .v = *out }) < 0)
		return -1;
	return config_settle_names(c, *out, frame->section, r->e);
}

static int read_tree(struct reading *r, struct str text, const struct frame *frame,
		     const struct json_value **out);

/* "a.yaml includes b.yaml, which includes c.yaml": the cycle, from the repeated file on. */
static int refuse_cycle(const struct reading *r, const struct json_value *v,
			const struct frame *frame, const char *real)
{
	const struct frame *chain[EXPERIMENT_FILES_MAX] = { frame };
	struct buf text = { 0 };
	size_t n = 0;
	int rc;

	for (const struct frame *at = frame; at; at = at->by) {
		chain[n++] = at;
		if (strcmp(at->real, real) == 0)
			break;
	}
	buf_add_text(&text, chain[n - 1]->name);
	for (size_t i = n - 1; i-- > 0;)
		buf_printf(&text, "%s includes %s", i == n - 2 ? "" : ", which", chain[i]->name);
	buf_printf(&text, "%s includes %s again", n == 1 ? "" : ", which", chain[n - 1]->name);
	rc = refuse(r, v, "include", "a cycle: %s", text.data);
	buf_release(&text);
	return rc;
}

/* The file's text and its path without links, which the caller frees; NULL: it may not be read. */
static char *read_bounded(const struct reading *r, const struct json_value *v,
			  const struct frame *frame, struct buf *text)
{
	char *copy = mem_text(frame->real), *real = NULL;
	struct err why = { 0 };

	/* The configuration itself was sent and is in no folder of its sender. */
	if (config_bounds_read(r->c->bounds, v->text.p, frame->by ? dirname(copy) : NULL,
			       EXPERIMENT_BYTES_MAX, text, &real, &why) < 0)
		refuse(r, v, "include", "%s", why.text);
	free(copy);
	return real;
}

static int read_included(struct reading *r, const struct json_value *v,
			 const struct frame *frame, const char *section,
			 const struct json_value **base)
{
	struct frame inner = { .by = frame, .depth = frame->depth + 1, .section = section };
	const struct json_value *tree = NULL;
	struct buf text = { 0 };
	struct err why = { 0 };
	char *path, *real;
	int rc = -1;

	if (v->kind != JSON_STRING || !v->text.n)
		return refuse(r, v, "include", "expected the name of a file, got %s",
			      config_got(v, r->c->arena));
	if (++r->files > EXPERIMENT_FILES_MAX)
		return refuse(r, v, "include", "more than the %d files of EXPERIMENT_FILES_MAX",
			      EXPERIMENT_FILES_MAX);
	if (r->c->bounds) {
		real = read_bounded(r, v, frame, &text);
		if (!real)
			return -1;
		path = mem_text(real);
	} else {
		path = *frame->real && v->text.p[0] != '/' ? file_beside(frame->real, v->text.p) :
			file_join(NULL, v->text.p);
		real = realpath(path, NULL);
	}
	inner.real = arena_text(r->c->arena, str_of(real ? real : path));
	inner.name = v->text.p;
	if (v->text.p[0] != '/' && strchr(frame->name, '/')) {
		char *shown = file_beside(frame->name, v->text.p);

		inner.name = arena_text(r->c->arena, str_of(shown));
		free(shown);
	}
	free(path);
	free(real);
	for (const struct frame *at = frame; at; at = at->by)
		if (strcmp(at->real, inner.real) == 0) {
			buf_release(&text);
			return refuse_cycle(r, v, frame, inner.real);
		}
	if (!r->c->bounds && file_read(inner.real, EXPERIMENT_BYTES_MAX, &text, &why) < 0)
		rc = refuse(r, v, "include", "%s", why.text);
	else
		rc = read_tree(r, buf_str(&text), &inner, &tree);
	buf_release(&text);
	if (rc == 0)
		*base = *base ? config_merge(r->c, *base, tree) : tree;
	return rc;
}

/* own merged over its includes; section: whose keys the files hold, or NULL. */
static const struct json_value *with_included(struct reading *r, const struct json_value *own,
					      const struct frame *frame, const char *section)
{
	const struct json_value *include = config_get(own, "include"), *base = NULL;
	bool is_list = include && include->kind == JSON_ARRAY;

	for (size_t i = 0; include && i < (is_list ? include->count : 1); i++)
		if (read_included(r, is_list ? &include->item[i] : include, frame, section,
				  &base) < 0)
			return NULL;
	own = config_without(r->c, own, "include");
	return base ? config_merge(r->c, base, own) : own;
}

/* `include` of a section: files with only its keys, as vllm serve --config takes. */
static int include_into(struct reading *r, struct json_value *v, const struct frame *frame,
			const char *section)
{
	const struct json_value *out;

	if (!v || v->kind != JSON_OBJECT || !config_get(v, "include"))
		return 0;
	out = with_included(r, v, frame, section);
	if (!out)
		return -1;
	config_set_item(r->c, v, out);
	return 0;
}

/* Includes of an experiment: of its sections, and of each of its servers. */
static int include_into_sections(struct reading *r, struct json_value *x,
				 const struct frame *frame)
{
	struct json_value *list = x->kind == JSON_OBJECT ? json_get(x, "servers") : NULL;

	if (x->kind != JSON_OBJECT)
		return 0;
	for (const char *const *name = config_section_names; *name; name++)
		if (include_into(r, json_get(x, *name), frame, *name) < 0)
			return -1;
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (include_into(r, &list->item[i], frame, "servers") < 0)
			return -1;
	return 0;
}

static int read_tree(struct reading *r, struct str text, const struct frame *frame,
		     const struct json_value **out)
{
	struct json_value *own, *list;

	if (parse_text(r, text, frame, &own) < 0)
		return -1;
	list = frame->section ? NULL : json_get(own, "experiments");
	if (!frame->section && include_into_sections(r, own, frame) < 0)
		return -1;
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (include_into_sections(r, &list->item[i], frame) < 0)
			return -1;
	*out = with_included(r, own, frame, frame->section);
	return *out ? 0 : -1;
}

/* ---- --set ---- */

static void mark_all(const struct config *c, const struct json_value *v, const char *name)
{
	json_marks_put(c->marks, v, (struct json_mark){ .file = name });
	if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			mark_all(c, &v->item[i], name);
}

/* With `servers`, "server.KEY" sets the key of each. */
static int set_servers(struct reading *r, const char *path, const struct json_value *v)
{
	const struct json_value *servers = json_get(r->c->tree, "servers");

	for (size_t i = 0; i < servers->count; i++) {
		const char *one = arena_printf(r->c->arena, "servers.%zu%s", i,
					       path + strlen("server"));
		const struct json_value *tree = config_put(r->c, r->c->tree, one, v, r->e);

		if (!tree)
			return -1;
		r->c->tree = tree;
	}
	return 0;
}

/* If members have several servers, "server.KEY" is for those (set again in each). */
static bool is_for_members(const struct json_value *tree)
{
	const struct json_value *list = config_get(tree, "experiments");

	if (!list || list->kind != JSON_ARRAY || config_get(tree, "server"))
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (config_get(&list->item[i], "servers"))
			return true;
	return false;
}

/* "-m KEY=V1,V2": one more axis of the matrix. */
static int apply_axis(struct reading *r, const char *word)
{
	const char *key = word + strlen(CONFIG_AXIS), *equals = strchr(key, '=');
	const struct json_value *tree;
	struct arena *a = r->c->arena;
	struct json_value *v;
	struct err why = { 0 };

	if (!equals || equals == key || !equals[1] ||
	    str_ends(str_trim(str_of(equals)), STR(",")))
		return err_set(r->e, ERR_USAGE, "%.200s: expected KEY=V1,V2, for example "
			       "max_num_seqs=64,256", word);
	if (yaml_parse(a, str_of(equals[1] == '[' ? equals + 1 :
				 arena_printf(a, "[%s]", equals + 1)), &v, &why) < 0)
		return err_set(r->e, ERR_USAGE, "%.200s: %s", word, why.text);
	mark_all(r->c, v, word);
	if (fill(r, v, &(struct spot){ .v = v, .key = { key, (size_t)(equals - key) } }) < 0)
		return -1;
	tree = config_put(r->c, r->c->tree, arena_printf(a, "matrix.%.*s", (int)(equals - key), key),
			  v, r->e);
	if (!tree)
		return err_wrap(r->e, "%.200s", word);
	r->c->tree = tree;
	return 0;
}

static int apply_set(struct reading *r, const char *word)
{
	const char *equals = strchr(word, '='), *name, *path;
	const struct json_value *servers = config_get(r->c->tree, "servers"), *tree;
	struct json_value *v;
	struct err why = { 0 };

	if (strncmp(word, CONFIG_AXIS, strlen(CONFIG_AXIS)) == 0)
		return apply_axis(r, word);
	if (!equals || equals == word)
		return err_set(r->e, ERR_USAGE, "--set %.200s: expected KEY=VALUE, for example "
			       "benchmark.num_prompts=100", word);
	if (strncmp(word, "include=", 8) == 0)
		return err_set(r->e, ERR_USAGE, "--set %.200s: files are included before values "
			       "are changed; write include in the file", word);
	name = arena_printf(r->c->arena, "--set %s", word);
	path = config_spelled_path(r->c, (struct str){ word, (size_t)(equals - word) });
	if (yaml_parse(r->c->arena, str_of(equals + 1), &v, &why) < 0)
		return err_set(r->e, ERR_USAGE, "%.200s: %s", name, why.text);
	mark_all(r->c, v, name);
	if (fill(r, v, &(struct spot){ .v = v, .key = str_of(path) }) < 0)
		return -1;
	if (strncmp(path, "server.", 7) == 0 && is_for_members(r->c->tree))
		return 0;
	if (strncmp(path, "server.", 7) == 0 && servers && servers->kind == JSON_ARRAY &&
	    !config_get(r->c->tree, "server"))
		return set_servers(r, path, v);
	tree = config_put(r->c, r->c->tree, path, v, r->e);
	if (!tree)
		return err_wrap(r->e, "--set %.200s", word);
	r->c->tree = tree;
	return 0;
}

/* Of two axes with the same key only the last one would count. */
static int refuse_axis_twice(const struct config *c, size_t at, struct err *e)
{
	const char *word = c->sets[at], *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) + 1 : 0;

	if (strncmp(word, CONFIG_AXIS, strlen(CONFIG_AXIS)) != 0)
		return 0;
	for (size_t i = 0; n && i < at; i++)
		if (strncmp(word, c->sets[i], n) == 0)
			return err_set(e, ERR_USAGE, "%.200s: %.200s is also given; list all "
				       "values in one of them", word, c->sets[i]);
	return 0;
}

const struct json_value *config_with_sets(const struct config *c, const struct json_value *tree,
					  struct err *e)
{
	struct config own = *c;
	struct reading r = { .c = &own, .e = e };

	own.tree = tree;
	for (size_t i = 0; i < c->n_sets; i++)
		if (refuse_axis_twice(c, i, e) < 0 || apply_set(&r, c->sets[i]) < 0)
			return NULL;
	return own.tree;
}

/* ---- all of it ---- */

/* Keys outside experiments, so that references to them have one value in the whole suite. */
static const char *const of_all[] = {
	"name", "suite", "output", "import", "repeat", "shuffle", "restart", "jobs", "stop_on_error",
	"scheduler", NULL,
};

static int read_all(struct reading *r, struct str text, const struct frame *frame,
		    const char *const *sets, size_t n_sets)
{
	const struct json_value *tree;

	if (read_tree(r, text, frame, &tree) < 0)
		return -1;
	r->c->sets = sets;
	r->c->n_sets = n_sets;
	config_learn(tree);
	r->c->tree = config_with_sets(r->c, tree, r->e);
	if (r->c->tree)
		r->c->tree = config_filled(r->c, r->c->tree, of_all, r->e);
	config_learn(r->c->tree);
	return r->c->tree ? 0 : -1;
}

static void begin(struct config *c, const struct config_bounds *bounds, const char *path,
		  struct arena *a)
{
	*c = (struct config){ .path = path, .arena = a, .bounds = bounds };
	c->marks = arena_alloc(a, sizeof(*c->marks));
	c->marks->arena = a;
}

static int parse_within(const struct config_bounds *bounds, struct str text, const char *name,
			const char *const *sets, size_t n_sets, struct arena *a,
			struct config *out, struct err *e)
{
	struct reading r = { .c = out, .e = e, .files = 1 };
	char *real = realpath(name, NULL);
	struct frame frame = { .name = arena_text(a, str_of(name)),
			       .real = arena_text(a, str_of(real ? real : "")) };

	free(real);
	begin(out, bounds, frame.name, a);
	return read_all(&r, text, &frame, sets, n_sets);
}

int config_parse(struct str text, const char *name, const char *const *sets, size_t n_sets,
		 struct arena *a, struct config *out, struct err *e)
{
	return parse_within(NULL, text, name, sets, n_sets, a, out, e);
}

int config_read_within(const struct config_bounds *bounds, const char *path,
		       const char *const *sets, size_t n_sets, struct arena *a,
		       struct config *out, struct err *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct buf text = { 0 };
	struct err why = { 0 };
	int rc;

	begin(out, bounds, path, a);
	rc = is_stdin ? read_stdin(&text, &why) :
		file_read(path, EXPERIMENT_BYTES_MAX, &text, &why);
	if (rc < 0)
		rc = err_set(e, ERR_USAGE, "--config: %s", why.text);
	else
		rc = parse_within(bounds, buf_str(&text), is_stdin ? "stdin" : path, sets, n_sets, a,
				  out, e);
	buf_release(&text);
	return rc;
}

int config_read(const char *path, const char *const *sets, size_t n_sets, struct arena *a,
		struct config *out, struct err *e)
{
	return config_read_within(NULL, path, sets, n_sets, a, out, e);
}
