/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_values.c - see import_internal.h: a test's parameters as keys of a configuration.
 *
 * A test file spells everything as a shell would: "" is a flag that is set, numbers may be texts,
 * names have dashes or underscores. A configuration needs the types of the arguments.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "experiment/suite/import.h"
#include "experiment/suite/import_internal.h"
#include "host/engine/args.h"

/* ---- objects and lists that grow ---- */

static struct json_value *new_value(struct import_maker *m, enum json_kind kind)
{
	struct json_value *v = arena_alloc(m->a, sizeof(*v));

	v->kind = kind;
	return v;
}

struct json_value *import_object(struct import_maker *m)
{
	return new_value(m, JSON_OBJECT);
}

struct json_value *import_list_value(struct import_maker *m)
{
	return new_value(m, JSON_ARRAY);
}

/* Adds an element at the end; existing ones are moved with their marks. */
static struct json_value *grow(struct import_maker *m, struct json_value *v)
{
	size_t n = v->count;
	struct json_value *item = arena_alloc(m->a, (n + 1) * sizeof(*item));

	for (size_t i = 0; i < n; i++) {
		item[i] = v->item[i];
		json_marks_copy(m->c->marks, &v->item[i], &item[i]);
	}
	v->item = item;
	v->count = n + 1;
	return &item[n];
}

void import_put(struct import_maker *m, struct json_value *object, const char *key,
		const struct json_value *v)
{
	size_t i = 0;

	while (i < object->count && !str_is(object->key[i], key))
		i++;
	if (i == object->count) {
		struct str *names = arena_alloc(m->a, (i + 1) * sizeof(*names));

		if (i)
			memcpy(names, object->key, i * sizeof(*names));
		names[i] = arena_str(m->a, str_of(key));
		grow(m, object);
		object->key = names;
	}
	object->item[i] = *v;
	json_marks_copy(m->c->marks, v, &object->item[i]);
}

static struct json_value text_value(struct import_maker *m, const char *text)
{
	struct json_value v = { .kind = JSON_STRING };

	v.text = arena_str(m->a, str_of(text));
	return v;
}

void import_put_text(struct import_maker *m, struct json_value *object, const char *key,
		     const char *text)
{
	struct json_value v = text_value(m, text);

	import_put(m, object, key, &v);
}

void import_put_int(struct import_maker *m, struct json_value *object, const char *key, int64_t n)
{
	struct json_value v = { .kind = JSON_INT };

	v.integer = n;
	v.raw = str_of(arena_printf(m->a, "%lld", (long long)n));
	import_put(m, object, key, &v);
}

void import_append(struct import_maker *m, struct json_value *list, const struct json_value *v)
{
	struct json_value *to = grow(m, list);

	*to = *v;
	json_marks_copy(m->c->marks, v, to);
}

void import_append_text(struct import_maker *m, struct json_value *list, const char *text)
{
	struct json_value v = text_value(m, text);

	import_append(m, list, &v);
}

/* ---- values ---- */

/* A copy of v, with its mark, that may be changed. */
static struct json_value *copy(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out = arena_alloc(m->a, sizeof(*out));

	*out = *v;
	json_marks_copy(m->c->marks, v, out);
	return out;
}

static const struct json_value *as_flag(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out;

	if (v->kind != JSON_STRING || v->text.n)
		return v;
	out = copy(m, v);
	out->kind = JSON_TRUE;
	return out;
}

/* "4" as 4, '{"method": "ngram"}' as an object; a text that is not JSON is unchanged. */
static const struct json_value *as_json(struct import_maker *m, const struct json_value *v)
{
	struct json_value *parsed, *out;
	struct err e;

	if (v->kind != JSON_STRING || !v->text.n || json_parse(m->a, v->text, &parsed, &e) < 0)
		return v;
	out = copy(m, v);
	*out = *parsed;
	return out;
}

static const struct json_value *as_text(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out;

	if (v->kind != JSON_INT && v->kind != JSON_REAL)
		return v;
	out = copy(m, v);
	out->kind = JSON_STRING;
	out->text = arena_str(m->a, v->raw);
	return out;
}

static const struct json_value *as_engine(struct import_maker *m, const struct engine_arg *arg,
					  const struct json_value *v)
{
	switch (arg->kind) {
	case ENGINE_FLAG:
	case ENGINE_SWITCH: return as_flag(m, v);
	case ENGINE_INT:
	case ENGINE_HUMAN:
	case ENGINE_REAL:
	case ENGINE_JSON: return as_json(m, v);
	case ENGINE_TEXT: return as_text(m, v);
	case ENGINE_LIST:
	case ENGINE_KINDS: break;
	}
	return v;
}

static const struct json_value *as_option(struct import_maker *m, const struct opt *row,
					  const struct json_value *v)
{
	switch (row->kind) {
	case OPT_FLAG:
	case OPT_TRI: return as_flag(m, v);
	case OPT_TEXT: return as_text(m, v);
	case OPT_LIST: return v;
	default: return v->kind == JSON_STRING && str_is(v->text, "inf") ? v : as_json(m, v);
	}
}

/* ---- names ---- */

/* "-" as "_" up to the first dot. */
static char *key_of(struct import_maker *m, struct str name)
{
	char *key = arena_text(m->a, name);

	for (char *p = key; *p && *p != '.'; p++)
		*p = *p == '-' ? '_' : *p;
	return key;
}

/* Compares names, with "-" equal to "_". */
static bool import_is_same(struct str name, const char *key)
{
	size_t i = 0;

	while (i < name.n && key[i] && (name.p[i] == '-' ? '_' : name.p[i]) ==
				       (key[i] == '-' ? '_' : key[i]))
		i++;
	return i == name.n && !key[i];
}

const struct json_value *import_get(const struct json_value *object, const char *key)
{
	for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->count; i++)
		if (import_is_same(object->key[i], key))
			return &object->item[i];
	return NULL;
}

/* A former spelling leads to the current row. */
static const struct opt *find_row(const struct opt_set *set, const char *key)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];

		if (import_is_same(str_of(row->name), key))
			return row->alias_of ? find_row(set, row->alias_of) : row;
	}
	return NULL;
}

static void add_extra_words(struct import_maker *m, struct json_value *server, const char *key,
			    const struct json_value *v)
{
	const struct json_value *old = json_get(server, "extra_args");
	struct json_value *list = old ? copy(m, old) : import_list_value(m);
	char *flag = arena_printf(m->a, "--%s", key);

	for (char *p = flag; *p; p++)
		*p = *p == '_' ? '-' : *p;
	import_append_text(m, list, flag);
	if (v->kind == JSON_STRING && v->text.n)
		import_append(m, list, v);
	else if (v->kind == JSON_INT || v->kind == JSON_REAL)
		import_append(m, list, as_text(m, v));
	import_put(m, server, "extra_args", list);
}

static void put_argument(struct import_maker *m, struct json_value *server, char *key,
			 const struct json_value *v)
{
	struct str whole = str_of(key), name = str_cut(&whole, '.');
	const struct engine_arg *arg = engine_arg_find(name);
	const struct json_value *put;
	struct json_value *off;

	if (!arg && strncmp(key, "no_", 3) == 0 && engine_arg_find(str_of(key + 3))) {
		off = copy(m, v);
		off->kind = JSON_FALSE;
		import_put(m, server, key + 3, off);
	} else if (arg) {
		put = whole.n ? as_json(m, v) : as_engine(m, arg, v);
		import_put(m, server, key, put);
	} else if (strcmp(key, "host") == 0 || strcmp(key, "port") == 0) { /* the runner's */
		import_put(m, server, key, as_json(m, v));
	} else if (m->is_simulated) {
		config_note(m->c, m->f, v, key, "the simulator has no such argument; skipped");
	} else { /* what the table does not know yet, an engine may */
		add_extra_words(m, server, key, v);
	}
}

void import_server(struct import_maker *m, const struct json_value *given,
		   struct json_value *server)
{
	for (size_t i = 0; given && i < given->count; i++)
		put_argument(m, server, key_of(m, given->key[i]), &given->item[i]);
}

void import_benchmark(struct import_maker *m, const struct opt_set *set,
		      const struct json_value *given, struct json_value *benchmark,
		      struct json_value *server)
{
	for (size_t i = 0; given && i < given->count; i++) {
		char *key = key_of(m, given->key[i]);
		const struct opt *row = find_row(set, key);

		if (row)
			import_put(m, benchmark, key_of(m, str_of(row->name)),
				   as_option(m, row, &given->item[i]));
		else if (server && engine_arg_find(str_of(key)))
			put_argument(m, server, key, &given->item[i]);
		else
			import_put(m, benchmark, key, &given->item[i]);
	}
}

/* ---- the key `import` and the files it names ---- */

static const char *const keys[] = {
	"files", "select", "model", "dtype", "remote", "prompts_per_concurrency",
	"min_num_prompts", "max_num_prompts", "on_cpu", "adaptive", "sla_ttft_ms", "sla_tpot_ms",
	"sla_max_failed", "adaptive_max_probes", "adaptive_max_concurrency",
};

struct reader {
	const struct config *c;
	const struct json_value *v;
	struct config_findings *f;
	struct arena *a;
};

static int check_keys(struct reader *r)
{
	size_t n = sizeof(keys) / sizeof(*keys);
	int rc = 0;

	for (size_t i = 0; i < r->v->count; i++) {
		const char *near = opt_nearest(r->v->key[i], keys, n);

		if (!config_is_any(r->v->key[i], keys, n))
			rc = config_complain_key(r->c, r->f, &r->v->item[i], "import",
						 "%.*s: unknown key%s%s", (int)r->v->key[i].n,
						 r->v->key[i].p, near ? "; did you mean " : "",
						 near ? near : "");
	}
	return rc;
}

/* NULL: absent, or "", as for an environment variable that is not set. */
static const char *text(struct reader *r, const char *key)
{
	const struct json_value *v = json_get(r->v, key);

	if (!v || v->kind == JSON_NULL || (v->kind == JSON_STRING && v->text.n == 0))
		return NULL;
	if (v->kind == JSON_STRING)
		return arena_text(r->a, v->text);
	config_complain(r->c, r->f, v, "import", "%s: expected a text", key);
	return NULL;
}

static double number(struct reader *r, const char *key, double low, double otherwise)
{
	const struct json_value *v = json_get(r->v, key);
	double n = otherwise;

	if (!v || v->kind == JSON_NULL || (v->kind == JSON_STRING && v->text.n == 0))
		return otherwise;
	if (v->kind == JSON_STRING ? !str_to_f64(v->text, &n)
				   : v->kind != JSON_INT && v->kind != JSON_REAL)
		n = NAN;
	else if (v->kind != JSON_STRING)
		n = json_real(v, NAN);
	if (n >= low && n <= 1e9)
		return n;
	config_complain(r->c, r->f, v, "import", "%s: expected a number from %g to 1000000000", key,
			low);
	return otherwise;
}

static bool yes(struct reader *r, const char *key)
{
	const struct json_value *v = json_get(r->v, key);

	if (!v || v->kind == JSON_NULL || v->kind == JSON_FALSE || v->kind == JSON_TRUE)
		return json_bool(v, false);
	if (v->kind == JSON_STRING && (v->text.n == 0 || str_is(v->text, "0")))
		return false;
	if ((v->kind == JSON_STRING && str_is(v->text, "1")) ||
	    (v->kind == JSON_INT && (v->integer == 0 || v->integer == 1)))
		return v->kind == JSON_STRING || v->integer == 1;
	config_complain(r->c, r->f, v, "import", "%s: expected true or false", key);
	return false;
}

static void read_opts(struct reader *r, struct import_opts *o)
{
	o->select = text(r, "select");
	o->model = text(r, "model");
	o->dtype = text(r, "dtype");
	o->remote = text(r, "remote");
	o->prompts_per_concurrency = (int64_t)number(r, "prompts_per_concurrency", 0, 0);
	o->min_num_prompts = (int64_t)number(r, "min_num_prompts", 1, (double)o->min_num_prompts);
	o->max_num_prompts = (int64_t)number(r, "max_num_prompts", 1, (double)o->max_num_prompts);
	o->is_on_cpu = yes(r, "on_cpu");
	o->is_adaptive = yes(r, "adaptive");
	o->sla_ttft_ms = number(r, "sla_ttft_ms", 0, o->sla_ttft_ms);
	o->sla_tpot_ms = number(r, "sla_tpot_ms", 0, o->sla_tpot_ms);
	o->sla_max_failed = number(r, "sla_max_failed", 0, o->sla_max_failed);
	o->adaptive_max_probes = (int64_t)number(r, "adaptive_max_probes", 0,
						 (double)o->adaptive_max_probes);
	o->adaptive_max_concurrency = (int64_t)number(r, "adaptive_max_concurrency", 1,
						      (double)o->adaptive_max_concurrency);
}

/* ---- what there is of devices ---- */

static unsigned numa_nodes(void)
{
	DIR *dir = opendir("/sys/devices/system/node");
	const struct dirent *d;
	unsigned n = 0;

	while (dir && (d = readdir(dir)))
		n += strncmp(d->d_name, "node", 4) == 0 && d->d_name[4] >= '0' &&
		     d->d_name[4] <= '9';
	if (dir)
		closedir(dir);
	return n ? n : 1;
}

/* ---- files ---- */

static int read_one(struct reader *r, const struct json_value *name, const struct import_opts *o,
		    struct import_list *out)
{
	struct buf bytes = { .limit = IMPORT_FILE_BYTES_MAX };
	struct err e;
	char *path;
	int rc;

	if (name->kind != JSON_STRING || name->text.n == 0)
		return config_complain(r->c, r->f, name, "import", "expected the name of a file");
	if (r->c->bounds) {
		path = NULL;
		rc = config_bounds_read(r->c->bounds, name->text.p, NULL, IMPORT_FILE_BYTES_MAX,
					&bytes, &path, &e);
	} else {
		path = name->text.p[0] == '/' ? mem_copy(name->text.p, name->text.n)
					      : file_beside(r->c->path, name->text.p);
		rc = file_read(path, IMPORT_FILE_BYTES_MAX, &bytes, &e);
	}
	if (rc < 0)
		config_complain(r->c, r->f, name, "import", "%s", e.text);
	else
		rc = import_parse(r->c, buf_str(&bytes), arena_text(r->a, str_of(path)), o, r->a,
				  out, r->f);
	buf_release(&bytes);
	free(path);
	return rc;
}

int import_read(const struct config *c, const struct json_value *import,
		const struct config_know *know, struct arena *a, struct import_list *out,
		struct config_findings *f)
{
	struct import_opts *o = arena_alloc(a, sizeof(*o));
	struct reader r = { c, import, f, a };
	const struct json_value *files = import;
	const struct json_value *command = json_get(json_get(c->tree, "server"), "command");
	struct str word;
	int rc = 0;

	*o = (struct import_opts)IMPORT_DEFAULTS;
	if (import->kind == JSON_OBJECT) {
		if (check_keys(&r) < 0)
			return -1;
		read_opts(&r, o);
		files = json_get(import, "files");
	}
	/* The simulator needs no devices, however many it models. */
	if (command && command->kind == JSON_ARRAY && command->count)
		command = &command->item[command->count - 1];
	word = json_text(command, STR(""));
	o->is_simulated = str_is(word, "sim") || str_ends(word, STR(" sim"));
	if (o->is_on_cpu)
		o->devices = numa_nodes();
	else if (know && know->is_gpus_known && !o->is_simulated)
		o->devices = know->n_gpus;
	if (!files || (files->kind == JSON_ARRAY && files->count == 0))
		return config_complain(c, f, import, "import", "files: name at least one");
	if (files->kind != JSON_ARRAY)
		return read_one(&r, files, o, out);
	for (size_t i = 0; i < files->count; i++)
		if (read_one(&r, &files->item[i], o, out) < 0)
			rc = -1;
	return rc < 0 || f->n_errors ? -1 : 0;
}

/* ---- a result and its commands, in the form of upstream's tables ---- */

/*
 * The word after the vendor's name, one line per GPU: "H100\nH100"; upstream's table counts them.
 */
static void add_gpus(const struct outcome *o, const struct experiment *x, struct buf *out)
{
	for (size_t i = 0; o->server && i < x->n_servers; i++)
		for (size_t k = 0; k < o->server[i].n_gpus; k++) {
			const char *name = o->server[i].gpu[k].name;
			struct str rest = str_of(name ? name : "GPU"), first = str_cut(&rest, ' ');

			buf_add_text(out, out->len ? "\n" : "");
			buf_add_str(out, rest.n ? str_cut(&rest, ' ') : first);
		}
	if (!out->len)
		buf_add_text(out, "cpu");
}

static void put_commands(const struct experiment *x, const struct outcome *o, bool is_probe,
			 struct buf *out)
{
	const struct outcome_server *served = o->server ? &o->server[x->serving] : NULL;
	struct buf server = { 0 }, client = { 0 }, gpus = { 0 };
	struct json_writer w = json_writer(out);
	char key[32];

	if (served && served->argv)
		shell_words(&server, (char *const *)(uintptr_t)served->argv);
	shell_benchmark(&client, x, served && mode_is_served(x->mode) ? served->url : NULL);
	add_gpus(o, x, &gpus);
	json_begin_object(&w);
	if (mode_is_served(x->mode)) {
		json_member_str(&w, "server_command", buf_str(&server));
		json_member_str(&w, "client_command", buf_str(&client));
	} else {
		snprintf(key, sizeof(key), "%s_command", experiment_mode_name(x->mode));
		json_member_str(&w, key, buf_str(&client));
	}
	json_member_str(&w, "gpu_type", buf_str(&gpus));
	if (is_probe)
		json_member_bool(&w, "adaptive_search", true);
	json_end_object(&w);
	buf_add_char(out, '\n');
	buf_release(&server);
	buf_release(&client);
	buf_release(&gpus);
}

static int write_file(const char *stem, const char *ending, struct str bytes, struct err *e)
{
	struct buf path = { 0 };
	int rc;

	buf_printf(&path, "%s%s", stem, ending);
	rc = file_write_atomic(path.data, bytes, e);
	buf_release(&path);
	return rc;
}

int import_store(const struct experiment *x, const char *stem, const struct outcome *o,
		 bool is_probe, struct err *e)
{
	const char *slash = strrchr(stem, '/');
	struct buf commands = { 0 };
	int rc = 0;

	if (o->result.n == 0)
		return 0;
	if (slash) {
		char *dir = mem_copy(stem, (size_t)(slash - stem));

		rc = file_mkdirs(dir, e);
		free(dir);
	}
	put_commands(x, o, is_probe, &commands);
	if (rc == 0)
		rc = write_file(stem, ".commands", buf_str(&commands), e);
	if (rc == 0)
		rc = write_file(stem, ".json", o->result, e);
	buf_release(&commands);
	return rc;
}
