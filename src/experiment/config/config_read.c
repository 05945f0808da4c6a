/* SPDX-License-Identifier: Apache-2.0 */
/* config_read.c - see config.h: files, what they include, the environment and --set as one tree. */
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

/* A file that is being read, and the one that asked for it. */
struct frame {
	const char *name;      /* as in messages */
	const char *real;      /* canonical path; "" for a text */
	const struct frame *by;
	unsigned depth;
};

struct reading {
	struct config *c;
	struct err *e;
	unsigned files;
};

/* -1 with "FILE:LINE:COLUMN: PATH: ..." for a value. */
__attribute__((format(printf, 4, 5)))
static int refuse(const struct reading *r, const struct json_value *v, const char *path,
		  const char *fmt, ...)
{
	struct config_findings f = { 0 };
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_complain(r->c, &f, v, path, "%s", text);
	if (f.errors.len)
		err_set(r->e, ERR_USAGE, "%.*s", (int)f.errors.len - 1, f.errors.data);
	config_findings_release(&f);
	return -1;
}

/* ---- the environment ---- */

/* A value and what it is in; its path is only made for a message. */
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

/* What is between the braces: NAME, or NAME:-otherwise. */
static int add_variable(const struct reading *r, const struct spot *at, struct str inside,
			struct buf *out)
{
	struct str otherwise = inside, name = str_cut(&otherwise, ':');
	bool has_otherwise = name.n < inside.n;
	char text[256];
	const char *value;
	size_t i = 0;

	while (i < name.n && (name.p[i] == '_' || isalnum((unsigned char)name.p[i])))
		i++;
	if (!name.n || i < name.n || isdigit((unsigned char)*name.p) || name.n >= sizeof(text) ||
	    (has_otherwise && !str_starts(otherwise, STR("-"))))
		return refuse(r, at->v, spot_path(r, at), "expected ${NAME} or "
			      "${NAME:-otherwise}, got ${%.*s} (a dollar is $$)",
			      (int)(inside.n < SHOWN_MAX ? inside.n : SHOWN_MAX),
			      inside.p);
	snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	value = config_bounds_variable(r->c->bounds, text);
	if (value && (*value || !has_otherwise)) {
		buf_add_text(out, value);
		return 0;
	}
	if (!has_otherwise && r->c->bounds)
		return refuse(r, at->v, spot_path(r, at), "the environment of a dashboard is not read; "
			      "write the value, or have the dashboard started with --launch-env %s",
			      text);
	if (!has_otherwise)
		return refuse(r, at->v, spot_path(r, at), "the environment has no %s; set it, or "
			      "write ${%s:-otherwise}", text, text);
	buf_add_str(out, (struct str){ otherwise.p + 1, otherwise.n - 1 });
	return 0;
}

/* A number or boolean that is spelled as it would be written is one, so that ${PORT} is a port. */
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

static int fill_text(const struct reading *r, struct json_value *v, const struct spot *at)
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

static int fill(const struct reading *r, struct json_value *v, const struct spot *at)
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

static int parse_text(const struct reading *r, struct str text, const struct frame *frame,
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
		return err_set(r->e, ERR_USAGE, "%s: is empty; expected sections such as server and "
			       "benchmark", name);
	if ((*out)->kind != JSON_OBJECT)
		return refuse(r, *out, "", "expected sections such as server and benchmark, got %s",
			      config_got(*out, c->arena));
	config_learn(*out);
	return fill(r, *out, &(struct spot){ .v = *out });
}

static int read_tree(struct reading *r, struct str text, const struct frame *frame,
		     const struct json_value **out);

/* "a.yaml includes b.yaml, which includes c.yaml": from the file that comes again. */
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

	/* The configuration itself lies nowhere that its sender knows. */
	if (config_bounds_read(r->c->bounds, v->text.p, frame->by ? dirname(copy) : NULL,
			       EXPERIMENT_BYTES_MAX, text, &real, &why) < 0)
		refuse(r, v, "include", "%s", why.text);
	free(copy);
	return real;
}

static int read_included(struct reading *r, const struct json_value *v, const struct frame *frame,
			 const struct json_value **base)
{
	struct frame inner = { .by = frame, .depth = frame->depth + 1 };
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

static int read_tree(struct reading *r, struct str text, const struct frame *frame,
		     const struct json_value **out)
{
	const struct json_value *include, *base = NULL;
	struct json_value *own;

	if (parse_text(r, text, frame, &own) < 0)
		return -1;
	include = config_get(own, "include");
	if (include && include->kind == JSON_ARRAY) {
		for (size_t i = 0; i < include->count; i++)
			if (read_included(r, &include->item[i], frame, &base) < 0)
				return -1;
	} else if (include && read_included(r, include, frame, &base) < 0) {
		return -1;
	}
	*out = config_without(r->c, own, "include");
	if (base)
		*out = config_merge(r->c, base, *out);
	return 0;
}

/* ---- --set ---- */

static void mark_all(const struct config *c, const struct json_value *v, const char *name)
{
	json_marks_put(c->marks, v, (struct json_mark){ .file = name });
	if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			mark_all(c, &v->item[i], name);
}

/* With `servers`, "server.KEY" is each one's key. */
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

/* Where members have several servers, "server.KEY" is for them (set again in each), and no server. */
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

static int apply_set(struct reading *r, const char *word)
{
	const char *equals = strchr(word, '='), *name, *path;
	const struct json_value *servers = config_get(r->c->tree, "servers"), *tree;
	struct json_value *v;
	struct err why = { 0 };

	if (!equals || equals == word)
		return err_set(r->e, ERR_USAGE, "--set %.200s: expected KEY=VALUE, for example "
			       "benchmark.num_prompts=100", word);
	if (strncmp(word, "include=", 8) == 0)
		return err_set(r->e, ERR_USAGE, "--set %.200s: what is included is read before values are "
			       "changed; name it in the file", word);
	name = arena_printf(r->c->arena, "--set %s", word);
	path = arena_text(r->c->arena, (struct str){ word, (size_t)(equals - word) });
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

const struct json_value *config_with_sets(const struct config *c, const struct json_value *tree,
					  struct err *e)
{
	struct config own = *c;
	struct reading r = { .c = &own, .e = e };

	own.tree = tree;
	for (size_t i = 0; i < c->n_sets; i++)
		if (apply_set(&r, c->sets[i]) < 0)
			return NULL;
	return own.tree;
}

/* ---- all of it ---- */

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

/* ---- what a server's arguments are, and where that is known from ---- */

/* A number as it counts: "4k" is 4000. False: it is none, or need not be one. */
static bool as_number(const struct engine_arg *arg, struct str text, struct json_value *out)
{
	bool is_whole = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN;

	*out = (struct json_value){ .kind = is_whole ? JSON_INT : JSON_REAL };
	if (is_whole)
		return opt_human_int(text, &out->integer);
	return arg->kind == ENGINE_REAL && opt_python_float(text, &out->real);
}

/* As it was typed, or as the table has it; NULL: null. */
static struct json_value typed_value(const struct engine_arg *arg, const char *text,
				     struct arena *a)
{
	struct json_value v = { .kind = JSON_STRING, .text = str_of(text) }, *json, number;

	if (!text)
		return (struct json_value){ 0 };
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		return (struct json_value){ .kind = str_is(v.text, "true") ? JSON_TRUE : JSON_FALSE };
	if (as_number(arg, v.text, &number))
		return number;
	if (arg->kind == ENGINE_JSON && json_parse(a, v.text, &json, NULL) == 0)
		return *json;
	return v;
}

static struct json_value hidden(void)
{
	return (struct json_value){ .kind = JSON_STRING, .text = STR(REDACTED) };
}

/* The runner gives each server an address of its own. */
static bool is_runners(const char *name)
{
	return strcmp(name, "host") == 0 || strcmp(name, "port") == 0;
}

const struct json_value *config_sim_values(struct config_reader *r, const struct json_value *args,
					   const void *sim)
{
	struct json_value *out = arena_alloc(r->a, sizeof(*out));
	const struct opt_set *set = r->know->sim;
	const struct json_value *all;
	struct buf json = { 0 };

	out->kind = JSON_OBJECT;
	opt_json(set, sim, &json);
	all = config_tree_of(buf_str(&json), r->a);
	buf_release(&json);
	for (size_t i = 0; i < all->count; i++) {
		const struct opt *row = config_row(set, all->key[i]);
		bool is_null = all->item[i].kind == JSON_NULL;
		bool is_vllms = engine_arg_find(all->key[i]) && !is_runners(all->key[i].p);

		if (row && !is_null && (is_vllms || json_get(args, all->key[i].p)))
			config_member(out, all->key[i].p, all->item[i], r->a);
	}
	return out;
}

/* Where a user may give an argument as words, each behind a program's name. */
struct givers {
	char **command, **extra; /* the server's command, as far as it is vLLM's; extra_args */
};

static char **words_of(char *const *args, struct arena *a)
{
	static char program[] = "vllm";
	struct word_list w = { .arena = a };

	words_add(&w, program);
	for (; args && *args; args++)
		words_add(&w, *args);
	return w.v;
}

static struct givers givers_of(const struct experiment_server *s, struct arena *a)
{
	return (struct givers){
		words_of(s->command ? engine_argv_begin(s->command) : NULL, a),
		words_of(s->extra_args, a),
	};
}

/* Of several places the last one of the command line counts: extra_args, a key, the command. */
static bool is_given(const struct experiment_server *s, const struct engine_arg *arg,
		     const char *name, const struct givers *by, struct arena *a,
		     struct json_value *out)
{
	const struct json_value *v = json_get(s->args, name);
	const char *text = s->is_vllm ? engine_argv_given(by->extra, arg->name, a) : NULL;

	if (!text && !v && s->is_vllm)
		text = engine_argv_given(by->command, arg->name, a);
	if (text)
		*out = redact_is_secret(str_of(arg->name)) ? hidden() : typed_value(arg, text, a);
	else if (v && redact_is_secret(str_of(arg->name)))
		*out = hidden();
	else if (v && !(v->kind == JSON_STRING && as_number(arg, v->text, out)))
		*out = *v;
	else if (v)
		return true; /* a number that was written as a text */
	else if (s->port && strcmp(name, "port") == 0)
		*out = (struct json_value){ .kind = JSON_INT, .integer = s->port };
	else
		return false;
	return true;
}

static bool has_arg(const struct experiment_server *s, const struct engine_arg *arg,
		    const struct config_told *told)
{
	if (!s->is_vllm && !s->is_sim)
		return false;
	if (told->is_engine_alone && !engine_arg_is_engines(arg, false))
		return false;
	return told->version ? engine_arg_is_in(arg, told->version) : !arg->until;
}

const struct json_value *config_server_values(const struct experiment_server *s,
					      const struct config_told *told, struct arena *a)
{
	struct json_value *out = arena_alloc(a, sizeof(*out)), given;
	const struct givers by = givers_of(s, a);

	out->kind = JSON_OBJECT;
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *name = config_key(str_of(arg->name), a), *initial = NULL;
		const struct json_value *own = json_get(s->own, name);
		const struct json_value *reported = json_get(told->reported, name);

		if (told->version && !is_runners(name))
			initial = engine_arg_initial(arg, told->version);
		if (is_given(s, arg, name, &by, a, &given))
			config_member(out, name, given, a);
		else if (reported || own)
			config_member(out, name, reported ? *reported : *own, a);
		else if (has_arg(s, arg, told))
			config_member(out, name, typed_value(arg, initial, a), a);
	}
	for (size_t i = 0; s->args && i < s->args->count; i++)
		if (!engine_arg_find(s->args->key[i]))
			config_member(out, s->args->key[i].p, s->args->item[i], a);
	for (size_t i = 0; s->own && i < s->own->count; i++)
		if (!engine_arg_find(s->own->key[i]))
			config_member(out, s->own->key[i].p, s->own->item[i], a);
	return out;
}

/* Arguments in a file that the server reads: only the server knows them. */
static bool has_file(const struct experiment_server *s)
{
	struct arena a = { 0 };
	const struct givers by = givers_of(s, &a);
	bool is_there = json_get(s->args, "config") ||
			engine_argv_given(by.extra, "config", &a) ||
			engine_argv_given(by.command, "config", &a);

	arena_release(&a);
	return is_there;
}

const char *config_defaults_version(const struct experiment_server *s, const char *engine,
				    const char *version, struct config_told *told)
{
	const char *why;

	if (s->url)
		why = "started by others";
	else if (!s->is_vllm || (engine && strcmp(engine, "vllm") != 0))
		why = "another engine";
	else if (has_file(s))
		why = "arguments in a file";
	else
		told->version = engine_version_release(version, &why);
	return why;
}

void config_not_reported(const struct json_value *values, const struct config_told *told,
			 struct json_writer *w)
{
	struct arena a = { 0 };

	json_begin_array(w);
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *name = config_key(str_of(arg->name), &a);
		const struct json_value *v = json_get(values, name);

		if (arg->flags & ENGINE_DECIDED && engine_arg_is_in(arg, told->version) &&
		    !(told->is_engine_alone && !engine_arg_is_engines(arg, false)) &&
		    !json_get(told->reported, name) &&
		    (!v || v->kind == JSON_NULL || str_is(json_text(v, STR("")), "auto")))
			json_put_text(w, name);
	}
	json_end_array(w);
	arena_release(&a);
}

/* ---- the arguments of a server as the words of a command line ---- */

bool config_is_sim(char *const *command)
{
	if (!command || !command[0])
		return false;
	if (!command[1])
		return strcmp(command[0], "sim") == 0;
	for (size_t i = 0; command[i + 1]; i++)
		if ((strcmp(command[i], "profllm") == 0 ||
		     str_ends(str_of(command[i]), STR("/profllm"))) &&
		    strcmp(command[i + 1], "sim") == 0)
			return true;
	return false;
}

/* Behind `vllm serve` and `profllm sim` the model has no name. */
static bool is_model_bare(char *const *command)
{
	const char *last = "";

	for (size_t i = 0; command && command[i]; i++)
		last = command[i];
	return config_is_sim(command) || strcmp(last, "serve") == 0;
}

/* Of several keys vLLM takes one from its environment. */
static const struct { const char *key, *variable; bool is_sims; } secrets[] = {
	{ "api_key", "VLLM_API_KEY", true }, { "hf_token", "HF_TOKEN", false },
};
#define N_SECRETS (sizeof(secrets) / sizeof(*secrets))

/* The value that goes into the environment; empty: it does not. */
static struct str secret_of(const struct experiment_server *s, size_t i)
{
	if (!s->is_vllm && !(s->is_sim && secrets[i].is_sims))
		return STR("");
	return json_text(json_get(s->args, secrets[i].key), STR(""));
}

char **config_server_secrets(const struct experiment_server *s, struct arena *a)
{
	char **out = arena_alloc(a, (N_SECRETS + 1) * sizeof(*out));
	size_t n = 0;

	for (size_t i = 0; i < N_SECRETS; i++) {
		struct str value = secret_of(s, i);

		if (value.n)
			out[n++] = arena_printf(a, "%s=%.*s", secrets[i].variable, (int)value.n,
						value.p);
	}
	return out;
}

char *const *config_server_words(const struct experiment_server *s, struct arena *a)
{
	const char *apart[4 + N_SECRETS] = { "model", "host", "port" };
	struct str model = json_text(json_get(s->args, "model"), (struct str){ 0 });
	struct word_list words = { .arena = a, .v = arena_alloc(a, sizeof(char *)) };
	size_t n_apart = 3;

	for (size_t i = 0; i < N_SECRETS; i++)
		if (secret_of(s, i).n)
			apart[n_apart++] = secrets[i].key;
	if (model.n && !is_model_bare(s->command))
		words_add(&words, arena_text(a, STR("--model")));
	if (model.n)
		words_add(&words, arena_text(a, model));
	for (char **flag = engine_flags(s->args, apart, a); *flag; flag++)
		words_add(&words, *flag);
	for (char *const *word = s->extra_args; word && *word; word++)
		words_add(&words, *word);
	return words.v;
}
