/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - see config.h: trees, findings, the sections of an experiment, and values that follow
 * from them.
 */
#include "experiment/config/config.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/options/serve_opts.h"
#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "experiment/config/config_internal.h"
#include "host/gpu/gpu.h"
#include "out/compare/compare.h"

#define SHOWN_MAX 80 /* bytes of a value repeated in a message */

/* ---- trees ---- */

struct json_value *config_copy(const struct config *c, const struct json_value *v, size_t more)
{
	struct json_value *out = arena_alloc(c->arena, sizeof(*out));

	*out = *v;
	json_marks_copy(c->marks, v, out);
	out->item = arena_alloc(c->arena, (v->count + more + 1) * sizeof(*out->item));
	if (v->kind == JSON_OBJECT)
		out->key = arena_alloc(c->arena, (v->count + more + 1) * sizeof(*out->key));
	for (size_t i = 0; i < v->count; i++) {
		out->item[i] = v->item[i];
		json_marks_copy(c->marks, &v->item[i], &out->item[i]);
		if (v->kind == JSON_OBJECT)
			out->key[i] = v->key[i];
	}
	return out;
}

void config_set_item(const struct config *c, struct json_value *at, const struct json_value *v)
{
	*at = *v;
	json_marks_copy(c->marks, v, at);
}

const struct json_value *config_merge(const struct config *c, const struct json_value *base,
				      const struct json_value *over)
{
	struct map places = { 0 };
	struct json_value *out;

	if (!base || base->kind != JSON_OBJECT || over->kind != JSON_OBJECT)
		return over;
	out = config_copy(c, base, over->count);
	for (size_t i = 0; i < base->count; i++)
		map_put(&places, base->key[i], i);
	for (size_t i = 0; i < over->count; i++) {
		uint64_t at = out->count;

		if (map_get(&places, over->key[i], &at)) {
			config_set_item(c, &out->item[at],
					config_merge(c, &out->item[at], &over->item[i]));
			continue;
		}
		out->key[at] = over->key[i];
		config_set_item(c, &out->item[at], &over->item[i]);
		out->count++;
	}
	map_release(&places);
	return out;
}

const struct json_value *config_without(const struct config *c, const struct json_value *tree,
					const char *key)
{
	struct json_value *out;
	size_t n = 0;

	if (!json_get(tree, key))
		return tree;
	out = config_copy(c, tree, 0);
	for (size_t i = 0; i < tree->count; i++) {
		if (str_is(tree->key[i], key))
			continue;
		out->key[n] = tree->key[i];
		config_set_item(c, &out->item[n++], &tree->item[i]);
	}
	out->count = n;
	return out;
}

/* The index of the member of that name, or where to add one. */
static size_t member_place(const struct json_value *object, struct str key)
{
	size_t i = 0;

	while (i < object->count && !str_eq(object->key[i], key))
		i++;
	return i;
}

/* "tp" and tensor_parallel_size are one key of a server. */
static size_t server_place(const struct json_value *object, struct str key)
{
	const struct engine_arg *arg = config_arg_of(key);
	size_t at = member_place(object, key), i = 0;

	while (at == object->count && arg && i < object->count) {
		if (!memchr(object->key[i].p, '.', object->key[i].n) &&
		    config_arg_of(object->key[i]) == arg)
			return i;
		i++;
	}
	return at;
}

static int place_in(const struct json_value *tree, struct str key, const char *path, size_t *at,
		    struct err *e)
{
	int64_t place;

	if (tree->kind == JSON_OBJECT) {
		*at = strncmp(path, "server", 6) == 0 ? server_place(tree, key) :
							member_place(tree, key);
		return 0;
	}
	if (tree->kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s: cannot look up '%.*s', because its parent is not "
					     "an object", path,
			       (int)key.n, key.p);
	if (!str_to_i64(key, &place) || place < 0 || (uint64_t)place > tree->count)
		return err_set(e, ERR_USAGE, "%s: expected a place in the list, from 0 to %zu, got "
			       "'%.*s'", path, tree->count, (int)key.n, key.p);
	*at = (size_t)place;
	return 0;
}

const struct json_value *config_deeper(const struct json_value *v, size_t levels)
{
	const struct json_value *out = v->kind >= JSON_ARRAY && !levels ? v : NULL;

	for (size_t i = 0; v->kind >= JSON_ARRAY && !out && i < v->count; i++)
		out = config_deeper(&v->item[i], levels - 1);
	return out;
}

static const struct json_value *put(const struct config *c, const struct json_value *tree,
				    struct str rest, const char *path,
				    const struct json_value *value, struct err *e)
{
	static const struct json_value empty = { .kind = JSON_OBJECT };
	const struct json_value *inner;
	struct json_value *out;
	struct str whole = rest, key;
	size_t at = 0;

	if (!tree || tree->kind == JSON_NULL)
		tree = &empty;
	/* A key may itself contain dots, as written in the file. */
	if (tree->kind == JSON_OBJECT && member_place(tree, whole) < tree->count)
		rest = (struct str){ 0 }, key = whole;
	else
		key = str_cut(&rest, '.');
	if (!key.n) {
		err_set(e, ERR_USAGE, "%s: a key is empty", path);
		return NULL;
	}
	if (place_in(tree, key, path, &at, e) < 0)
		return NULL;
	inner = rest.n ? put(c, at < tree->count ? &tree->item[at] : NULL, rest, path, value, e) :
		value;
	if (!inner)
		return NULL;
	out = config_copy(c, tree, 1);
	config_set_item(c, &out->item[at], inner);
	if (at == out->count) {
		if (out->kind == JSON_OBJECT)
			out->key[at] = arena_str(c->arena, key);
		out->count++;
	}
	return out;
}

const struct json_value *config_put(const struct config *c, const struct json_value *tree,
				    const char *path, const struct json_value *value,
				    struct err *e)
{
	size_t levels = 1;

	for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.'))
		levels++;
	if (levels > EXPERIMENT_DEPTH_MAX ||
	    config_deeper(value, EXPERIMENT_DEPTH_MAX - levels)) {
		err_set(e, ERR_USAGE, "%.80s: nested deeper than the %d levels of "
			"EXPERIMENT_DEPTH_MAX", path, EXPERIMENT_DEPTH_MAX);
		return NULL;
	}
	return put(c, tree, str_of(path), path, value, e);
}

/* ---- values as texts ---- */

const char *config_json(const struct json_value *v, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	const char *text;

	w.is_raw_utf8 = w.is_python = true; /* options read it again */
	json_put_value(&w, v);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

const char *config_scalar(const struct json_value *v, struct arena *a)
{
	switch (v->kind) {
	case JSON_NULL:
		return "";
	case JSON_TRUE:
	case JSON_FALSE:
		return v->raw.n ? arena_text(a, v->raw) : v->kind == JSON_TRUE ? "true" : "false";
	case JSON_STRING:
		return v->text.p;
	case JSON_INT:
		return v->raw.n ? arena_text(a, v->raw) : arena_printf(a, "%" PRId64, v->integer);
	case JSON_REAL:
		return v->raw.n ? arena_text(a, v->raw) : config_json(v, a);
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return NULL;
}

const char *config_got(const struct json_value *v, struct arena *a)
{
	const char *text;

	if (v->kind == JSON_ARRAY)
		return "a list";
	if (v->kind == JSON_OBJECT)
		return "an object";
	if (v->kind == JSON_NULL)
		return "nothing";
	text = config_scalar(v, a);
	if (v->kind == JSON_STRING)
		return arena_printf(a, "the text '%.*s'", SHOWN_MAX, text);
	return arena_printf(a, "%.*s", SHOWN_MAX, text);
}

struct json_value *config_tree_of(struct str json, struct arena *a)
{
	struct json_value *v = NULL;

	if (json_parse(a, json, &v, NULL) < 0)
		v = arena_alloc(a, sizeof(*v));
	return v;
}

void config_member(struct json_value *object, const char *key, struct json_value v,
		   struct arena *a)
{
	size_t at = member_place(object, str_of(key));

	/* Room doubles, so a count that is a power of two is full. */
	if (at == object->count && (at & (at - 1)) == 0) {
		size_t room = at ? 2 * at : 1;
		struct json_value *item = arena_alloc(a, room * sizeof(*item));
		struct str *keys = arena_alloc(a, room * sizeof(*keys));

		for (size_t i = 0; i < at; i++) {
			item[i] = object->item[i];
			keys[i] = object->key[i];
		}
		object->item = item;
		object->key = keys;
	}
	if (at == object->count) {
		object->key[at] = arena_str(a, str_of(key));
		object->count++;
	}
	object->item[at] = v;
}

struct json_value *config_get_str(const struct json_value *object, struct str key, bool is_server)
{
	size_t at = object->count;

	if (object->kind == JSON_OBJECT)
		at = (is_server ? server_place : member_place)(object, key);
	return at < object->count ? &object->item[at] : NULL;
}

const struct json_value *config_get(const struct json_value *object, const char *key)
{
	const struct json_value *v = json_get(object, key);

	return v && v->kind != JSON_NULL ? v : NULL;
}

bool config_is_any(struct str s, const char *const *names, size_t n)
{
	for (size_t i = 0; names && i < n && names[i]; i++)
		if (str_is(s, names[i]))
			return true;
	return false;
}

bool config_has_item(struct str list, char sep, struct str item)
{
	while (list.n)
		if (str_eq(str_trim(str_cut(&list, sep)), item))
			return true;
	return false;
}

const char *config_key(struct str name, struct arena *a)
{
	char *key = arena_text(a, name);

	for (char *c = key; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return key;
}

uint64_t config_digest(const char *what, struct str text)
{
	uint8_t out[DIGEST_BYTES];
	uint64_t hash = 0;

	digest(DIGEST_SHA256, str_of(what), text, out);
	for (int i = 0; i < 8; i++)
		hash = hash << 8 | out[i];
	return hash;
}

/* ---- findings ---- */

void config_findings_release(struct config_findings *f)
{
	buf_release(&f->errors);
	buf_release(&f->notes);
	*f = (struct config_findings){ 0 };
}

__attribute__((format(printf, 6, 0)))
static void add(const struct config *c, struct buf *out, const struct json_value *v, bool is_key,
		const char *path, const char *fmt, va_list ap)
{
	struct json_mark m = json_marks_get(c->marks, v);
	char text[sizeof(((struct err *)0)->text)];

	buf_add_text(out, m.file ? m.file : c->path);
	if (m.file && is_key && m.key_line)
		buf_printf(out, ":%u:%u", m.key_line, m.key_column);
	else if (m.file && m.line)
		buf_printf(out, ":%u:%u", m.line, m.column);
	buf_add_text(out, ": ");
	if (c->bounds && m.file && m.file != c->path) {
		buf_printf(out, "%s\n", config_bounds_fault(c, ""));
		return;
	}
	vsnprintf(text, sizeof(text), fmt, ap);
	if (path && *path)
		buf_printf(out, "%s: ", path);
	buf_printf(out, "%s\n", text);
}

int config_complain(const struct config *c, struct config_findings *f,
		    const struct json_value *v, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_errors > EXPERIMENT_FINDINGS_MAX)
		return -1;
	va_start(ap, fmt);
	add(c, &f->errors, v, false, path, fmt, ap);
	va_end(ap);
	return -1;
}

int config_complain_key(const struct config *c, struct config_findings *f,
			const struct json_value *v, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_errors > EXPERIMENT_FINDINGS_MAX)
		return -1;
	va_start(ap, fmt);
	add(c, &f->errors, v, true, path, fmt, ap);
	va_end(ap);
	return -1;
}

void config_note(const struct config *c, struct config_findings *f, const struct json_value *v,
		 const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_notes > EXPERIMENT_FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	add(c, &f->notes, v, false, path, fmt, ap);
	va_end(ap);
}

int config_refuse(const struct config *c, struct err *e, const struct json_value *v,
		  const char *path, const char *fmt, ...)
{
	struct config_findings f = { 0 };
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_complain(c, &f, v, path, "%s", text);
	if (f.errors.len)
		err_set(e, ERR_USAGE, "%.*s", (int)f.errors.len - 1, f.errors.data);
	config_findings_release(&f);
	return -1;
}

/* Keys of a suite are read by suite.h. */
static const char *const sections[] = {
	"name", "suite", "tags", "server", "servers", "benchmark", "profiling", "resources",
	"telemetry", "output", "provenance", "require", "profile", "search", "include", "matrix",
	"matrix_exclude", "experiments", "import", "repeat", "shuffle", "restart", "jobs",
	"stop_on_error", "scheduler",
};
#define N_SECTIONS (sizeof(sections) / sizeof(*sections))

/* ---- the root ---- */

const char *config_root_nearest(struct str key)
{
	return opt_nearest(key, sections, N_SECTIONS);
}

static void check_root(struct config_reader *r, const struct json_value *tree)
{
	if (tree->count > EXPERIMENT_KEYS_MAX)
		config_complain(r->c, r->f, tree, "", "%zu keys, more than the %d of "
				"EXPERIMENT_KEYS_MAX", tree->count, EXPERIMENT_KEYS_MAX);
	for (size_t i = 0; i < tree->count && i < EXPERIMENT_KEYS_MAX; i++) {
		struct str key = tree->key[i];
		const char *near = config_root_nearest(key), *section;
		struct str rest = key, head = str_cut(&rest, '.');

		if (near && str_is(key, near))
			continue;
		section = config_root_nearest(head);
		if (rest.n && section && str_is(head, section))
			config_complain_key(r->c, r->f, &tree->item[i], arena_text(r->a, key),
					    "a path with dots is for --set and matrix; write %s: {%.*s: ...}",
					    section, (int)rest.n, rest.p);
		else if (!near && config_row(&serve_opt_set, key))
			config_complain_key(r->c, r->f, &tree->item[i], arena_text(r->a, key),
					    "unknown key; it belongs in benchmark");
		else
			config_complain_key(r->c, r->f, &tree->item[i], arena_text(r->a, key),
					    "unknown key%s%s%s", near ? "; did you mean " : "",
					    near ? near : "", near ? "?" : "");
	}
}

static const char *read_text(struct config_reader *r, const struct json_value *tree,
			     const char *key)
{
	const struct json_value *v = config_get(tree, key);
	const char *text = v ? config_scalar(v, r->a) : NULL;

	if (v && (!text || !*text))
		config_complain(r->c, r->f, v, key, "expected a text, got %s",
				text ? "an empty one" : config_got(v, r->a));
	return text && *text ? text : NULL;
}

static const struct json_value *read_texts(struct config_reader *r, const struct json_value *tree,
					   const char *key)
{
	const struct json_value *v = config_object(r, tree, key);
	struct json_value *out;

	if (!v)
		return NULL;
	out = arena_alloc(r->a, sizeof(*out));
	out->kind = JSON_OBJECT;
	for (size_t i = 0; i < v->count; i++) {
		const char *text = config_scalar(&v->item[i], r->a);

		if (!text)
			config_complain(r->c, r->f, &v->item[i], config_path(r, key, v->key[i]),
					"expected a text, got %s", config_got(&v->item[i], r->a));
		else
			config_member(out, v->key[i].p, (struct json_value){
				.kind = JSON_STRING, .text = str_of(text) }, r->a);
	}
	return out;
}

/* "a-b" for "dir/a-b.yaml": the name of an experiment that has none. */
static const char *name_of_file(const struct config_reader *r)
{
	const char *slash = strrchr(r->c->path, '/'), *name = slash ? slash + 1 : r->c->path;
	const char *dot = strrchr(name, '.');

	return dot && dot > name ?
		arena_text(r->a, (struct str){ name, (size_t)(dot - name) }) : name;
}

/* ---- resources ---- */

static void read_gpus(struct config_reader *r, const struct json_value *v)
{
	struct experiment_resources *out = &r->x->resources;
	const char *text = v ? config_scalar(v, r->a) : NULL;
	struct json_value *list;
	int64_t count;

	if (!v || (text && strcmp(text, "auto") == 0))
		return;
	if (text && strcmp(text, "none") == 0) {
		out->want = GPUS_NONE;
		return;
	}
	if (text && str_to_i64(str_of(text), &count)) {
		if (count < 0 || count > EXPERIMENT_GPUS_MAX)
			config_complain(r->c, r->f, v, "resources.gpus",
					"expected auto, none, a number of GPUs (at most %d) or a list "
					"of indices or UUIDs, got %s", EXPERIMENT_GPUS_MAX,
					config_got(v, r->a));
		out->want = count ? GPUS_COUNT : GPUS_NONE;
		out->count = (unsigned)count;
		return;
	}
	out->want = GPUS_LIST;
	if (v->kind == JSON_STRING && v->text.n) {
		struct str rest = v->text;

		/* "0,1", as in CUDA_VISIBLE_DEVICES. */
		list = arena_alloc(r->a, sizeof(*list));
		list->kind = JSON_ARRAY;
		list->item = arena_alloc(r->a, (v->text.n + 1) * sizeof(*list->item));
		while (rest.n)
			list->item[list->count++] = (struct json_value){
				.kind = JSON_STRING,
				.text = arena_str(r->a, str_trim(str_cut(&rest, ','))) };
		json_marks_copy(r->c->marks, v, list);
		v = list;
	}
	if (v->kind != JSON_ARRAY || v->count == 0)
		config_complain(r->c, r->f, v, "resources.gpus", "expected auto, none, a number of "
				"GPUs (at most %d) or a list of indices or UUIDs, got %s",
				EXPERIMENT_GPUS_MAX, config_got(v, r->a));
	else if (v->count > EXPERIMENT_GPUS_MAX)
		config_complain(r->c, r->f, v, "resources.gpus", "a list of %zu GPUs, more than the "
				"%d that an experiment may have", v->count, EXPERIMENT_GPUS_MAX);
	else
		out->list = (const char *const *)config_list(r, v, "resources.gpus");
}

static void read_ports(struct config_reader *r, const struct json_value *object, const char *text)
{
	struct str last = str_of(text), first = str_cut(&last, '-');
	int64_t low, high;

	if (!last.n)
		last = first;
	if (str_to_i64(str_trim(first), &low) && str_to_i64(str_trim(last), &high) && low >= 1 &&
	    high <= 65535 && low <= high) {
		r->x->resources.port_first = (unsigned)low;
		r->x->resources.port_last = (unsigned)high;
		return;
	}
	config_complain(r->c, r->f, config_get(object, "ports"), "resources.ports",
			"expected FIRST-LAST within 1-65535, got '%.80s'", text);
}

static void read_resources(struct config_reader *r, const struct json_value *tree)
{
	static const char *const others[] = { "gpus", NULL };
	const struct json_value *object = config_object(r, tree, "resources");
	struct experiment_resources *out = &r->x->resources;
	struct config_resources own;

	config_section(r, object, "resources", &config_resources_set, &own, NULL, others);
	read_gpus(r, config_get(object, "gpus"));
	out->is_shared = own.shared;
	/* A shared GPU is already in use. */
	out->memory_free_min = own.shared && !config_get(object, "memory_free") ? 0 :
										    own.memory_free;
	out->wait_s = own.wait_s;
	read_ports(r, object, own.ports);
}

/* ---- output ---- */

static void check_upload(struct config_reader *r, const struct json_value *upload)
{
	static const char *const known[] = { "url", "token_file" };

	if (!upload)
		return;
	if (upload->kind != JSON_OBJECT || !config_get(upload, "url")) {
		config_complain(r->c, r->f, upload, "output.upload", "expected {url: URL, token_file: "
				"FILE}, got %s", config_got(upload, r->a));
		return;
	}
	for (size_t i = 0; i < upload->count; i++) {
		struct str key = upload->key[i];

		if (!str_is(key, known[0]) && !str_is(key, known[1]))
			config_unknown(r, &upload->item[i], key, "output.upload", known, 2);
		else if (upload->item[i].kind != JSON_STRING && upload->item[i].kind != JSON_NULL)
			config_complain(r->c, r->f, &upload->item[i],
					config_path(r, "output.upload", key),
					"expected a text, got %s",
					config_got(&upload->item[i], r->a));
	}
}

/* ---- require ---- */

/* Conditions that must hold: the gate fails on the opposite. */
static int read_condition(const struct config_reader *r, struct str text, struct gate *out,
			  struct err *e)
{
	static const enum gate_op opposite[] = {
		[GATE_ABOVE] = GATE_AT_MOST, [GATE_AT_MOST] = GATE_ABOVE,
		[GATE_BELOW] = GATE_AT_LEAST, [GATE_AT_LEAST] = GATE_BELOW,
	};
	const char *mode = arena_printf(r->a, "mode %s", experiment_mode_name(r->x->mode));

	if (gate_parse(out, text, r->a, e) < 0)
		return -1;
	out->op = opposite[out->op];
	if (strstr(out->key, "ttft") &&
	    str_is(json_text(json_get(r->x->tags, "decode_only"), STR("")), "true"))
		return err_set(e, ERR_USAGE, "'%s': an experiment tagged decode_only has no times to "
			       "the first token; remove the condition or the tag", out->text);
	if (r->derived)
		return serve_gate_check(out, r->asked, r->derived, true, e);
	if (r->example)
		return gate_check_like(out, r->example, mode, e);
	if (!out->is_relative && !mode_is_served(r->x->mode) && compare_is_metric(out->key))
		return 0;
	return gate_check_alone(out, e);
}

static void read_require(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *v = config_get(tree, "require");
	struct gate *gate;

	if (v && (v->kind != JSON_ARRAY || v->count > GATE_CONDITIONS_MAX))
		config_complain(r->c, r->f, v, "require", "expected a list of at most %d conditions such "
				"as \"p99_ttft_ms<=200\", got %s", GATE_CONDITIONS_MAX,
				v->kind == JSON_ARRAY ? "a longer one" : config_got(v, r->a));
	if (!v || v->kind != JSON_ARRAY || v->count > GATE_CONDITIONS_MAX)
		return;
	gate = arena_alloc(r->a, (v->count + 1) * sizeof(*gate));
	for (size_t i = 0; i < v->count; i++) {
		const char *path = arena_printf(r->a, "require.%zu", i);
		const struct json_value *one = &v->item[i];
		struct err e = { 0 };

		if (one->kind != JSON_STRING)
			config_complain(r->c, r->f, one, path, "expected a condition such as "
					"\"p99_ttft_ms<=200\", got %s", config_got(one, r->a));
		else if (read_condition(r, one->text, &gate[i], &e) < 0)
			config_complain(r->c, r->f, one, path, "%s", e.text);
	}
	r->x->require = gate;
	r->x->n_require = v->count;
}

/* ---- what follows from all ---- */

/* A server with an explicit number of GPUs gets that many, whatever its parallel sizes are. */
static void settle_gpus(struct config_reader *r, const struct json_value *tree)
{
	struct experiment *x = r->x;
	struct experiment_resources *res = &x->resources;
	size_t n_sim = 0, n_listed = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		n_sim += config_is_sim(x->server[i].command);
	while (res->list && res->list[n_listed])
		n_listed++;
	/* The simulator needs no GPU and runs without any. */
	if (n_sim == x->n_servers && n_sim && r->know->is_gpus_known && r->know->n_gpus == 0) {
		if (res->want == GPUS_COUNT || res->want == GPUS_LIST)
			config_note(r->c, r->f, config_get(config_get(tree, "resources"), "gpus"),
				    "resources.gpus", "no GPU may be used here; the simulator runs "
				    "without, so nothing about GPUs is tested");
		res->want = GPUS_NONE;
		for (size_t i = 0; i < x->n_servers; i++)
			x->server[i].gpus = 0;
	}
	if (res->want == GPUS_NONE || x->n_servers != 1 || x->server[0].url)
		return;
	if (res->want == GPUS_COUNT && !x->server[0].gpus)
		x->server[0].gpus = res->count;
	else if (res->want == GPUS_LIST && !x->server[0].gpus)
		x->server[0].gpus = (unsigned)n_listed;
}

static void add_server(struct json_writer *w, const struct experiment_server *s)
{
	json_begin_object(w);
	json_member_texts(w, "command", (const char *const *)s->command);
	json_member_texts(w, "env", (const char *const *)s->env);
	json_member_texts(w, "extra_args", (const char *const *)s->extra_args);
	json_member_text(w, "url", s->url);
	json_member_text(w, "role", server_role_name(s->role));
	json_member_int(w, "gpus", s->gpus);
	json_member_value(w, "args", s->args);
	if (s->container)
		json_member_value(w, "container", s->container);
	json_end_object(w);
}

static void add_search(struct json_writer *w, const struct experiment_search *s)
{
	json_member_array(w, "search");
	json_put_text(w, s->find);
	json_put_text(w, s->slo);
	json_put_f64(w, s->precision);
	json_put_f64(w, s->level_s);
	json_put_f64(w, s->budget_s.is_set ? s->budget_s.v : 0);
	json_end_array(w);
}

/*
 * Hash of what is to be measured, without name, files and telemetry. Defaults do not count: they
 * are unknown before the start.
 */
static uint64_t hash_of(const struct experiment *x)
{
	struct buf text = { 0 }, hidden = { 0 };
	struct json_writer w = json_writer(&text);
	uint64_t hash;

	json_begin_object(&w);
	json_member_array(&w, "servers");
	for (size_t i = 0; i < x->n_servers; i++)
		add_server(&w, &x->server[i]);
	json_end_array(&w);
	json_member_value(&w, "benchmark", x->benchmark);
	json_member_array(&w, "profiling");
	json_put_bool(&w, x->profiling.is_enabled);
	json_put_text(&w, x->profiling.tool);
	json_put_f64(&w, x->profiling.delay_s);
	json_put_f64(&w, x->profiling.duration_s);
	json_end_array(&w);
	json_member_texts(&w, "offline", (const char *const *)x->offline_argv);
	if (x->search.find)
		add_search(&w, &x->search);
	opt_json_hidden(&serve_opt_set, &x->serve, &hidden);
	if (mode_is_served(x->mode) && hidden.len)
		json_member_str(&w, "hidden", buf_str(&hidden));
	buf_release(&hidden);
	json_end_object(&w);
	hash = config_digest("profllm experiment", buf_str(&text));
	buf_release(&text);
	return hash;
}

/* With a finding, returns the tree unchanged, with ${...} in its texts. */
static const struct json_value *fill_references(struct config_reader *r,
						const struct json_value *tree)
{
	const struct json_value *out;
	struct err e;

	out = config_filled(r->c, tree, NULL, &e);
	if (!out && ++r->f->n_errors <= EXPERIMENT_FINDINGS_MAX)
		buf_printf(&r->f->errors, "%s\n", e.text);
	if (out && out != tree)
		config_learn(out);
	return out ? out : tree;
}

int config_experiment(const struct config *c, const struct json_value *tree,
		      const struct config_know *know, struct arena *a, struct experiment *out,
		      struct config_findings *f)
{
	static const struct config_know nothing;
	struct config_reader r = { .c = c, .know = know ? know : &nothing, .a = a, .f = f,
				   .x = out };
	static const char *const others[] = { "upload", NULL };
	const struct json_value *section;
	struct config_findings unused = { 0 };
	size_t before = f->n_errors;
	const char *name;

	assert(tree && tree->kind == JSON_OBJECT);
	tree = fill_references(&r, tree);
	if (f->n_errors > before)
		r.f = &unused; /* what follows from texts that were not filled in */
	tree = config_profiled(&r, tree);
	*out = (struct experiment){ .repeat = 1, .repeats = 1, .given = tree };
	check_root(&r, tree);
	name = read_text(&r, tree, "name");
	out->name = name ? name : name_of_file(&r);
	out->suite = read_text(&r, tree, "suite");
	out->tags = read_texts(&r, tree, "tags");
	out->provenance = config_object(&r, tree, "provenance");
	section = config_object(&r, tree, "output");
	config_section(&r, section, "output", &config_output_set, &out->output, NULL, others);
	check_upload(&r, config_get(section, "upload"));
	read_resources(&r, tree);
	config_section(&r, config_object(&r, tree, "profiling"), "profiling", &config_profiling_set,
		       &out->profiling, NULL, NULL);
	config_section(&r, config_object(&r, tree, "telemetry"), "telemetry", &config_telemetry_set,
		       &out->telemetry, NULL, NULL);
	config_servers(&r, tree);
	config_bench(&r, tree);
	config_search(&r, tree);
	read_require(&r, tree);
	settle_gpus(&r, tree);
	if (f->n_errors == before)
		config_rules(&r, tree);
	if (f->n_errors == before)
		config_bounds_check(&r, tree);
	out->hash = hash_of(out);
	config_findings_release(&unused);
	return f->n_errors == before ? 0 : -1;
}

/* ---- the machine, as far as a configuration is judged by it ---- */

static void know_gpu(struct config_know *know, const struct gpu *gpu)
{
	unsigned least = know->compute_capability, here = 0;

	if (gpu->capability_major >= 0)
		here = (unsigned)(gpu->capability_major * 10 + gpu->capability_minor);
	know->n_gpus++;
	know->is_amd |= gpu->maker == GPU_AMD;
	if (here && (!least || here < least))
		know->compute_capability = here;
}

void config_know_gpus(struct config_know *know)
{
	struct gpu_set *gpus = gpu_open(NULL);
	size_t n;
	const struct gpu *gpu = gpu_list(gpus, &n);

	know->is_gpus_known = true;
	for (size_t i = 0; i < n; i++)
		if (gpu[i].is_allowed && !gpu[i].is_split)
			know_gpu(know, &gpu[i]);
	gpu_close(gpus);
}
