/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_read.c - turns operands into sides: finds the files that hold results and which runs
 * shared a server, splits an operand by a parameter, compares two servers' commands.
 */
#include "out/compare/compare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/python.h"
#include "host/engine/args.h"
#include "results/read/files.h"
#include "results/read/frame.h"
#include "results/read/kind.h"
#include "results/read/read.h"

/* ---- runs ---- */

static void add_run(struct bench_comparison *c, struct compare_side *s,
		    const struct json_value *record, const char *path, unsigned session)
{
	s->run = arena_room(c->a, s->run, s->n, &s->cap, sizeof(*s->run));
	s->run[s->n++] = (struct compare_run){ .record = record, .path = path,
					       .session = session };
}

static struct str server_of(const struct json_value *record)
{
	return json_text(frame_value(record, STR("profllm.server_key")), (struct str){ 0 });
}

static bool is_same_folder(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return str_eq((struct str){ a, x ? (size_t)(x - a) : 0 },
		      (struct str){ b, y ? (size_t)(y - b) : 0 });
}

/*
 * Documents name their servers (read/document.h): a start has logs of its own, and a run that
 * reuses a server names those of its start. 0: no such document.
 */
static unsigned session_of_document(struct compare_side *s, const struct json_value *record,
				const char *path)
{
	struct str server = server_of(record);

	if (!server.n)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (is_same_folder(s->run[i].path, path) &&
		    str_eq(server_of(s->run[i].record), server))
			return s->run[i].session;
	return ++s->sessions;
}

/* ---- runs of an engine without a server (docs/guide/offline.md) ---- */

static bool is_of_engine(const struct json_value *record)
{
	return json_get(json_get(record, "profllm"), "engine");
}

/* Whether the run started the engine itself; one at a URL may serve several runs. */
static bool has_own_engine(const struct json_value *record)
{
	const struct json_value *ours = json_get(record, "profllm");
	struct str none = { 0 };

	return is_of_engine(record) &&
	       (!str_is(json_text(json_get(ours, "backend"), none), "http") ||
		str_is(json_text(json_get(ours, "command"), none), "startup"));
}

/* Adds a member unless the object has it. */
static void put_new(struct json_value *object, struct str key, struct json_value v)
{
	for (size_t i = 0; i < object->count; i++)
		if (str_eq(object->key[i], key))
			return;
	object->key[object->count] = key;
	object->item[object->count++] = v;
}

/* "--max-num-seqs 4", "--max-num-seqs=4": max_num_seqs is "4"; a flag alone is "True". */
static void put_engine_args(struct bench_comparison *c, struct json_value *to,
			    const struct json_value *args)
{
	for (size_t i = 0; args && args->kind == JSON_ARRAY && i < args->count; i++) {
		struct json_value v = { .kind = JSON_STRING, .text = STR("True") };
		struct str rest = json_text(&args->item[i], STR("")), name;
		bool has_value = memchr(rest.p, '=', rest.n);
		char *key;

		if (!str_starts(rest, STR("--")))
			continue;
		name = str_cut(&rest, '=');
		key = arena_text(c->a, (struct str){ name.p + 2, name.n - 2 });
		for (char *p = key; *p && *p != '.'; p++)
			*p = *p == '-' ? '_' : *p;
		if (has_value)
			v.text = rest;
		else if (i + 1 < args->count &&
			 !str_starts(json_text(&args->item[i + 1], STR("")), STR("--")))
			v.text = json_text(&args->item[++i], STR(""));
		put_new(to, strcmp(key, "model") == 0 ? STR("model_id") : str_of(key), v);
	}
}

/*
 * A result with its load and its engine's arguments as members, where those of servers have them:
 * runs that differ in these are not repeats.
 */
static const struct json_value *with_setup(struct bench_comparison *c, const struct json_value *r)
{
	static const struct { const char *ours, *as; } load[] = {
		{ "dataset", "dataset_name" }, { "random_input_len", "random_input_len" },
		{ "random_output_len", "random_output_len" },
		{ "random_prefix_len", "random_prefix_len" }, { "repeat_count", "repeat_count" },
		{ "batch_size", "batch_size" }, { "input_len", "input_len" },
		{ "output_len", "output_len" }, { "n", "n" },
		{ "is_beam_search", "use_beam_search" }, { "async_engine", "async_engine" },
		{ "finished_requests", "completed" }, { "total_prompt_tokens", "total_input_tokens" },
		{ "total_output_tokens", "total_output_tokens" },
	};
	const struct json_value *ours = json_get(r, "profllm"), *v;
	const struct json_value *args = json_get(ours, "engine_args");
	size_t n_load = sizeof(load) / sizeof(*load);
	size_t room = r->count + n_load + (args && args->kind == JSON_ARRAY ? args->count : 0);
	struct json_value *out = arena_alloc(c->a, sizeof(*out));

	*out = (struct json_value){ .kind = JSON_OBJECT };
	out->key = arena_alloc(c->a, (room + 1) * sizeof(*out->key));
	out->item = arena_alloc(c->a, (room + 1) * sizeof(*out->item));
	for (size_t i = 0; i < r->count; i++)
		put_new(out, r->key[i], r->item[i]);
	for (size_t i = 0; i < n_load; i++)
		if ((v = json_get(ours, load[i].ours)) && v->kind != JSON_NULL)
			put_new(out, str_of(load[i].as), *v);
	put_engine_args(c, out, args);
	return out;
}

/* Adds the results of a file; notes those that must not count. Returns the number, or -1. */
static int add_file(struct bench_comparison *c, struct compare_side *s, const char *path,
		    unsigned session, struct err *e)
{
	struct frame f = { 0 };
	int n = 0;

	if (frame_read_file(&f, path, c->a, e) < 0)
		return -1;
	path = arena_text(c->a, str_of(path));
	for (size_t i = 0; i < f.n; i++) {
		const struct json_value *row = f.row[i];

		if (!result_is_record(row))
			continue;
		if (json_bool(frame_value(row, STR("profllm.profiled")), false)) {
			compare_note(c, "%s was profiled and is left out", path);
			continue;
		}
		add_run(c, s, is_of_engine(row) ? with_setup(c, row) : row, path,
			has_own_engine(row) ? ++s->sessions :
			session ? session : session_of_document(s, row, path));
		n++;
	}
	return n;
}

static int read_loose(struct bench_comparison *c, struct compare_side *s,
		      const struct result_files *f, struct err *e)
{
	size_t other = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct err why = { 0 };
		int n = add_file(c, s, f->path[i], 0, &why);

		if (n < 0 && why.code != ERR_PARSE) {
			*e = why;
			return -1;
		}
		other += n <= 0;
	}
	if (other && s->n)
		compare_note(c, "%s: %zu of %zu JSON files hold no result and are left out", s->path,
			     other, f->n);
	return 0;
}

/* ---- sessions of a sweep ---- */

/* Every start of a server in a servers.json: its instants, and the number of its first session. */
struct starts {
	char *path;
	const struct json_value *list;
	unsigned first;
};

/*
 * The servers.json of the folder above that of a file, spelt alike for all files below it. Caller
 * frees.
 */
static char *servers_above(const char *summary)
{
	char *folder = file_beside(summary, ""), *path;
	size_t n = strlen(folder);
	const char *name;

	while (n > 1 && folder[n - 1] == '/')
		folder[--n] = '\0';
	name = strrchr(folder, '/');
	name = name ? name + 1 : folder;
	path = !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ?
		       file_beside(summary, "../" RESULT_SERVERS) : file_beside(folder, RESULT_SERVERS);
	free(folder);
	return path;
}

/* The servers.json of the experiment that a folder of runs belongs to, or NULL. Caller frees. */
static char *servers_path(const char *summary)
{
	char *place[] = { file_beside(summary, RESULT_SERVERS), servers_above(summary) };
	char *found = NULL;

	for (size_t i = 0; i < 2; i++) {
		if (!found && file_exists(place[i]))
			found = place[i];
		else
			free(place[i]);
	}
	return found;
}

static void load_starts(struct bench_comparison *c, struct compare_side *s, const char *path,
			struct starts *out)
{
	struct err e = { 0 };
	const struct json_value *list = result_json(path, FRAME_FILE_BYTES_MAX, c->a, &e);

	if (list && list->kind == JSON_ARRAY && list->count) {
		out->list = list;
		out->first = s->sessions + 1;
		s->sessions += (unsigned)list->count;
	} else if (e.text[0]) {
		compare_note(c, "%s", e.text);
	}
}

/*
 * When a server was started, from its element of servers.json: in ns, or to the second in UTC; 0:
 * unknown. Of starts within one second the last one gets all the runs, so independent sessions may
 * be undercounted, never overcounted.
 */
static int64_t start_of(const struct json_value *start)
{
	int64_t ns = json_int(json_get(start, "start_ns"), 0);
	const struct json_value *text = json_get(start, "started");
	struct tm tm = { 0 };

	if (ns || !text || text->kind != JSON_STRING)
		return ns;
	return strptime(text->text.p, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (int64_t)timegm(&tm) * 1000000000
								 : 0;
}

/* The last start before the run began. 0: unknown. */
static unsigned session_of(const struct starts *t, const struct json_value *record)
{
	int64_t began = json_int(frame_value(record, STR("profllm.start_ns")), 0);
	int64_t latest = 0;
	unsigned session = 0;

	for (size_t i = 0; began && t->list && i < t->list->count; i++) {
		int64_t at = start_of(&t->list->item[i]);

		if (at && at <= began && at >= latest) {
			latest = at;
			session = t->first + (unsigned)i;
		}
	}
	return session;
}

static int read_sweep(struct bench_comparison *c, struct compare_side *s,
		      const struct result_files *f, struct err *e)
{
	struct starts starts = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n; i++) {
		size_t before = s->n;
		char *servers = servers_path(f->path[i]);
		unsigned whole;

		if (servers && (!starts.path || strcmp(servers, starts.path) != 0)) {
			free(starts.path);
			starts = (struct starts){ .path = servers };
			load_starts(c, s, servers, &starts);
		} else {
			free(servers);
		}
		whole = ++s->sessions;
		if (add_file(c, s, f->path[i], whole, e) < 0)
			rc = -1;
		for (size_t k = before; servers && k < s->n; k++) {
			unsigned session = session_of(&starts, s->run[k].record);

			s->run[k].session = session ? session : whole;
			if (!s->server && session)
				s->server = &starts.list->item[session - starts.first];
		}
	}
	free(starts.path);
	return rc;
}

/* ---- one operand ---- */

/* The last parts of a path, at least one. */
static const char *tail_of(const struct bench_comparison *c, const char *path, size_t parts)
{
	struct str s = str_of(path);
	size_t at;

	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	for (at = s.n; at > 0; at--)
		if (s.p[at - 1] == '/' && at < s.n && parts-- == 1)
			break;
	return arena_text(c->a, (struct str){ s.p + at, s.n - at });
}

/* Two sides of one name both get as much more of their paths as tells them apart. */
static void name_side(struct bench_comparison *c, struct compare_side *s)
{
	s->name = tail_of(c, s->path, 1);
	for (size_t i = 0; i < c->n_sides; i++) {
		struct compare_side *other = &c->side[i];

		for (size_t parts = 2; strcmp(other->name, s->name) == 0 &&
		     strcmp(other->path, s->path) != 0 && parts <= strlen(s->path); parts++) {
			other->name = tail_of(c, other->path, parts);
			s->name = tail_of(c, s->path, parts);
		}
	}
}

static int read_dir(struct bench_comparison *c, struct compare_side *s, struct err *e)
{
	struct result_files files = { 0 };
	bool is_sweep;
	int rc = result_files_of(s->path, &files, &is_sweep, e);

	if (rc == 0)
		rc = is_sweep ? read_sweep(c, s, &files, e) : read_loose(c, s, &files, e);
	result_files_release(&files);
	return rc;
}

int compare_read(struct bench_comparison *c, const char *path, struct err *e)
{
	struct compare_side *s = &c->side[c->n_sides];
	int rc;

	assert(c->n_sides < COMPARE_SIDES_MAX);
	*s = (struct compare_side){ .path = path };
	name_side(c, s);
	if (!file_exists(path))
		return err_set(e, ERR_RUN, "%s does not exist; a result file, a folder of results or "
			       "the folder of a sweep is expected", path);
	rc = file_is_dir(path) ? read_dir(c, s, e) : add_file(c, s, path, 0, e) < 0 ? -1 : 0;
	if (rc < 0)
		return -1;
	if (s->n == 0)
		return frame_refuse(path, c->a, e);
	c->n_sides++;
	return 0;
}

/* ---- one operand as several sides ---- */

/* The text of a run's value; "(none)" when it has none. */
static const char *value_of(const struct bench_comparison *c, const struct compare_run *run)
{
	struct str key = str_of(c->o->by);
	const struct json_value *v = frame_value(run->record, key);
	const struct json_value *options = frame_value(run->record, STR("profllm.options"));
	struct buf text = { 0 };

	if (!v)
		v = frame_value(options, key);
	if (!v || v->kind == JSON_NULL)
		return "(none)";
	json_python_str(&text, v);
	return arena_take(c->a, &text).p;
}

/* The side with that value, from `first` on; a new one, or NULL when there is no room. */
static struct compare_side *side_for(struct bench_comparison *c, size_t first,
				     const struct compare_side *from, const char *value,
				     bool is_prefixed)
{
	const char *name = is_prefixed ? arena_printf(c->a, "%s: %s", from->name, value) : value;

	for (size_t i = first; i < c->n_sides; i++)
		if (strcmp(c->side[i].name, name) == 0)
			return &c->side[i];
	if (c->n_sides == COMPARE_SIDES_MAX)
		return NULL;
	c->side[c->n_sides] = (struct compare_side){
		.name = name, .path = from->path,
		.sessions = from->sessions, .server = from->server,
		.run = arena_alloc(c->a, from->n * sizeof(*from->run)), .cap = from->n,
	};
	return &c->side[c->n_sides++];
}

int compare_split(struct bench_comparison *c, struct err *e)
{
	struct compare_side *given = c->side;
	size_t n = c->n_sides;

	c->side = arena_alloc(c->a, COMPARE_SIDES_MAX * sizeof(*c->side));
	c->n_sides = 0;
	for (size_t i = 0; i < n; i++) {
		size_t first = c->n_sides;

		for (size_t k = 0; k < given[i].n; k++) {
			struct compare_side *to = side_for(c, first, &given[i],
				value_of(c, &given[i].run[k]), n > 1);

			if (!to)
				return err_set(e, ERR_LIMIT, "%s has more values than COMPARE_SIDES_MAX "
					       "(%d) sides", c->o->by, COMPARE_SIDES_MAX);
			to->run[to->n++] = given[i].run[k];
		}
	}
	if (c->n_sides < 2)
		return err_set(e, ERR_RUN, "--by %s: all runs have the same value, %s", c->o->by,
			       c->side[0].name);
	return 0;
}

/* ---- servers ---- */

/* The command of a start as a list of words; NULL: not recorded. */
static char **words_of(struct bench_comparison *c, const struct json_value *server)
{
	const struct json_value *command = json_get(server, "command");
	char **argv;

	if (!command || command->kind != JSON_ARRAY)
		return NULL;
	argv = arena_alloc(c->a, (command->count + 1) * sizeof(*argv));
	for (size_t i = 0; i < command->count; i++)
		argv[i] = arena_text(c->a, json_text(&command->item[i], STR("")));
	return argv;
}

static bool is_same_name(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++)
		if ((a.p[i] == '_' ? '-' : a.p[i]) != (b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return a.n == b.n;
}

static bool is_override(const struct json_value *server, struct str name)
{
	const struct json_value *keys = json_get(server, "serve_overrides");

	for (size_t i = 0; keys && keys->kind == JSON_OBJECT && i < keys->count; i++)
		if (is_same_name(keys->key[i], name))
			return true;
	return false;
}

static bool is_address(struct str name)
{
	return str_is(name, "port") || str_is(name, "host") || str_is(name, "uds");
}

void compare_note_server(struct bench_comparison *c, const struct compare_side *side)
{
	const struct json_value *base = c->side[0].server;
	char **a, **b;
	struct buf lines = { 0 }, text = { 0 };
	struct str rest;

	if (side == c->side || !base || !side->server)
		return;
	a = words_of(c, base);
	b = words_of(c, side->server);
	if (a && b)
		engine_argv_diff(a, b, &lines);
	for (rest = buf_str(&lines); rest.n;) {
		struct str line = str_cut(&rest, '\n'), value = line, name = str_cut(&value, ':');

		if (!is_address(name) && !is_override(base, name) &&
		    !is_override(side->server, name))
			buf_printf(&text, "%s%.*s", text.len ? "; " : "", (int)line.n, line.p);
	}
	if (text.len)
		compare_note(c, "%s: its server was started otherwise than %s's: %s", side->short_name,
			     c->side[0].short_name, text.data);
	buf_release(&lines);
	buf_release(&text);
}
