/* SPDX-License-Identifier: Apache-2.0 */
/* suite_matrix.c - see suite_internal.h: a configuration's list, imported tests and matrix. */
#include <string.h>

#include "bench/sweep/params.h"
#include "bench/options/serve_opts.h"
#include "core/base/limits.h"
#include "core/json/python.h"
#include "core/json/write.h"
#include "experiment/config/config_internal.h"
#include "experiment/suite/suite_internal.h"
#include "host/engine/args.h"

/* One combination of a matrix: the indices of its values. */
struct matrix_point {
	const struct json_value *axes;    /* path -> list */
	size_t *at;                       /* axes->count */
};

static int add_part(const struct config *c, const struct suite_part *part, struct arena *a,
		    struct suite_parts *out, struct config_findings *f)
{
	if (out->n == SUITE_MEMBERS_MAX)
		return config_complain(c, f, NULL, "suite", "it has more than %d experiments",
				       SUITE_MEMBERS_MAX);
	if (out->n == out->cap) {
		struct suite_part *v;

		out->cap = out->cap ? out->cap * 2 : 16;
		v = arena_alloc(a, out->cap * sizeof(*v));
		if (out->n)
			memcpy(v, out->v, out->n * sizeof(*v));
		out->v = v;
	}
	out->v[out->n++] = *part;
	return 0;
}

static uint64_t count_values(const struct json_value *v)
{
	uint64_t n = 1;

	if (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++)
			n += count_values(&v->item[i]);
	return n;
}

/* How often a member is merged: for each axis of each combination. The matrix has been checked. */
static uint64_t count_merges(const struct json_value *matrix)
{
	uint64_t n = matrix->kind == JSON_OBJECT ? matrix->count : 0;

	for (size_t i = 0; i < matrix->count; i++)
		if (matrix->kind == JSON_ARRAY)
			n += count_merges(&matrix->item[i]);
		else
			n *= matrix->item[i].count;
	return n;
}

/* members: their number before the matrix multiplies it. */
static int check_size(const struct config *c, uint64_t members, const struct json_value *matrix,
		      struct config_findings *f)
{
	bool has_matrix = matrix && matrix->kind != JSON_NULL;
	uint64_t values = count_values(c->tree), merges = has_matrix ? count_merges(matrix) : 1;

	if (members > SUITE_MEMBERS_MAX || members * merges <= SUITE_VALUES_MAX / values)
		return 0;
	return config_complain(c, f, matrix, "suite", "its experiments, counted for each axis of the "
			       "matrix, times its values (%llu x %llu) are more than the %u of "
			       "SUITE_VALUES_MAX; split the file",
			       (unsigned long long)(members * merges), (unsigned long long)values,
			       SUITE_VALUES_MAX);
}

/* ---- the matrix ---- */

static struct str last_word(struct str path)
{
	struct str word = { 0 };

	while (path.n)
		word = str_cut(&path, '.');
	return word;
}

/* The last word of a path, or all of it when another one ends alike. */
static struct str axis_name(const struct json_value *axes, size_t i)
{
	struct str word = last_word(axes->key[i]);

	for (size_t k = 0; k < axes->count; k++)
		if (k != i && str_eq(last_word(axes->key[k]), word))
			return axes->key[i];
	return word;
}

/* Texts as they are, anything else as JSON. */
static void add_value(struct buf *out, const struct json_value *v)
{
	struct json_writer w = json_writer(out);

	w.is_compact = w.is_raw_utf8 = true;
	if (v->kind == JSON_STRING)
		buf_add_str(out, v->text);
	else
		json_put_value(&w, v);
}

static const struct json_value *value_of(const struct matrix_point *p, size_t i)
{
	return &p->axes->item[i].item[p->at[i]];
}

/* tree: with the values of the point, for references into it. */
static const char *point_name(const struct config *c, const struct matrix_point *p,
			      const char *before, const struct json_value *tree, struct arena *a)
{
	struct buf text = { 0 };
	struct err e;
	char *out;

	buf_add_text(&text, before ? before : "");
	for (size_t i = 0; i < p->axes->count; i++) {
		const struct json_value *v;

		buf_add_text(&text, text.len ? "-" : "");
		buf_add_str(&text, axis_name(p->axes, i));
		buf_add_char(&text, '=');
		v = config_filled_value(c, tree, value_of(p, i), &e);
		add_value(&text, v ? v : value_of(p, i));
	}
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Whether the point has all values of the object. */
static bool is_covered(const struct matrix_point *p, const struct json_value *by)
{
	for (size_t i = 0; i < by->count; i++) {
		bool is_so = false;

		for (size_t k = 0; k < p->axes->count; k++)
			is_so = is_so || (str_eq(by->key[i], p->axes->key[k]) &&
					  params_equal(&by->item[i], value_of(p, k)));
		if (!is_so)
			return false;
	}
	return by->count > 0;
}

static bool is_excluded(const struct config *c, const struct matrix_point *p)
{
	const struct json_value *list = json_get(c->tree, "matrix_exclude");

	for (size_t i = 0; list && i < list->count; i++)
		if (is_covered(p, &list->item[i]))
			return true;
	return false;
}

static int add_point(const struct config *c, const struct suite_part *part,
		     const struct matrix_point *p, struct arena *a, struct suite_parts *out,
		     struct config_findings *f)
{
	struct suite_part made = *part;
	struct err e = { 0 };

	for (size_t i = 0; i < p->axes->count; i++) {
		const char *path = arena_text(a, p->axes->key[i]);

		made.tree = config_put(c, made.tree, path, value_of(p, i), &e);
		if (!made.tree)
			return config_complain_key(c, f, &p->axes->item[i], "matrix", "%s", e.text);
	}
	made.name = point_name(c, p, part->name, made.tree, a);
	return add_part(c, &made, a, out, f);
}

/* The next combination, the last axis first; false after the last one. */
static bool next_point(struct matrix_point *p)
{
	for (size_t i = p->axes->count; i-- > 0;) {
		if (++p->at[i] < p->axes->item[i].count)
			return true;
		p->at[i] = 0;
	}
	return false;
}

static int add_axes(const struct config *c, const struct json_value *axes,
		    const struct suite_part *part, struct arena *a, struct suite_parts *out,
		    struct config_findings *f)
{
	struct matrix_point p = { axes, arena_alloc(a, (axes->count + 1) * sizeof(*p.at)) };

	do {
		if (!is_excluded(c, &p) && add_point(c, part, &p, a, out, f) < 0)
			return -1;
	} while (next_point(&p));
	return 0;
}

static const char *kind_of(const struct json_value *v)
{
	static const char *const name[] = {
		[JSON_NULL] = "nothing", [JSON_FALSE] = "false", [JSON_TRUE] = "true",
		[JSON_INT] = "a number", [JSON_REAL] = "a number", [JSON_STRING] = "a text",
		[JSON_ARRAY] = "a list", [JSON_OBJECT] = "an object",
	};

	return name[v->kind];
}

/* ---- paths ---- */

/* Turns objects within an axis into paths, and a key alone into that of its only section. */
struct paths {
	const struct config *c;
	const struct config_know *know;
	struct arena *a;
	struct config_findings *f;
	enum experiment_mode mode;
	struct json_value *out;    /* with room for all of them */
	bool is_wrong;
};

/* The argument of a server, or option of a benchmark, closest to the key; or NULL. */
static const char *nearest_key(struct paths *p, const char *key)
{
	size_t n = 0, all = engine_arg_count + serve_opt_set.n;
	const char **names = arena_alloc(p->a, all * sizeof(*names)), *near;

	for (size_t i = 0; i < engine_arg_count; i++)
		names[n++] = engine_args[i].name;
	for (size_t i = 0; i < serve_opt_set.n; i++)
		names[n++] = serve_opt_set.row[i].name;
	near = opt_nearest(str_of(key), names, n);
	return near ? config_key(str_of(near), p->a) : NULL;
}

/* "benchmark.num_prompts" for "num_prompts"; NULL: a finding was made. */
static const char *whole_path(struct paths *p, struct str key, const struct json_value *v)
{
	const char *path = config_spelled_path(p->c, key), *found[CONFIG_SECTIONS_MAX];
	struct str rest = str_of(path), head = str_cut(&rest, '.');
	const char *root = config_root_nearest(head);
	bool is_root = root && str_is(head, root);
	size_t n = 0;

	if ((is_root && (rest.n || v->kind == JSON_OBJECT)) || str_is(key, "name") ||
	    str_is(key, "suite") || str_is(key, "profile"))
		return path;
	if (!is_root)
		n = config_sections_of(str_of(path), p->mode, p->know ? p->know->sim : NULL, found);
	if (n == 1)
		return arena_printf(p->a, "%s.%s", found[0], path);
	if (n > 1)
		config_complain_key(p->c, p->f, v, "matrix", "%s is a key of several sections; write "
				    "%s.%s or %s.%s", path, found[0], path, found[1], path);
	else if (!is_root && nearest_key(p, path))
		config_complain_key(p->c, p->f, v, "matrix", "%s: unknown key; did you mean %s?", path,
				    nearest_key(p, path));
	else
		config_complain_key(p->c, p->f, v, "matrix", "%s: expected a dotted path such as "
				    "server.max_num_seqs or benchmark.max_concurrency", path);
	p->is_wrong = true;
	return NULL;
}

/* The argument of "server.tp", which is also that of "server.tensor_parallel_size"; or NULL. */
static const struct engine_arg *arg_at(struct str path)
{
	struct str head = str_cut(&path, '.');

	return str_is(head, "server") && !memchr(path.p, '.', path.n) ? config_arg_of(path) : NULL;
}

static bool has_path(const struct json_value *axes, struct str path)
{
	const struct engine_arg *arg = arg_at(path);

	for (size_t i = 0; i < axes->count; i++)
		if (str_eq(axes->key[i], path) || (arg && arg_at(axes->key[i]) == arg))
			return true;
	return false;
}

/* before: the path that leads here; NULL: none. */
static void add_paths(struct paths *p, const char *before, const struct json_value *object)
{
	for (size_t i = 0; i < object->count; i++) {
		const struct json_value *v = &object->item[i];
		struct str key = object->key[i];
		const char *path;

		if (before)
			path = arena_printf(p->a, "%s.%.*s", before, (int)key.n, key.p);
		else
			path = whole_path(p, key, v);
		if (!path)
			continue;
		path = config_spelled_path(p->c, str_of(path));
		if (v->kind == JSON_OBJECT && v->count) {
			add_paths(p, path, v);
			continue;
		}
		if (has_path(p->out, str_of(path))) {
			config_complain_key(p->c, p->f, v, "matrix", "%s is given twice", path);
			p->is_wrong = true;
			continue;
		}
		p->out->key[p->out->count] = str_of(path);
		config_set_item(p->c, &p->out->item[p->out->count++], v);
	}
}

static size_t count_leaves(const struct json_value *v)
{
	size_t n = 0;

	if (v->kind != JSON_OBJECT)
		return 1;
	for (size_t i = 0; i < v->count; i++)
		n += count_leaves(&v->item[i]);
	return n ? n : 1;
}

/* Handles an object of the matrix; anything else is unchanged. */
static const struct json_value *with_paths(struct paths *p, const struct json_value *axes)
{
	if (axes->kind != JSON_OBJECT)
		return axes;
	p->out = config_copy(p->c, axes, count_leaves(axes));
	p->out->count = 0;
	add_paths(p, NULL, axes);
	return p->out;
}

static const struct json_value *settled(struct paths *p, const struct json_value *v)
{
	struct json_value *list;

	if (v->kind != JSON_ARRAY)
		return with_paths(p, v);
	list = config_copy(p->c, v, 0);
	for (size_t i = 0; i < v->count; i++)
		config_set_item(p->c, &list->item[i], with_paths(p, &v->item[i]));
	return list;
}

/* c with the matrix and its exclusions in full paths. */
static int settle_paths(const struct config *c, const struct config_know *know, struct arena *a,
			struct config *out, struct config_findings *f)
{
	static const char *const keys[] = { "matrix", "matrix_exclude" };
	struct paths p = { .c = c, .know = know, .a = a, .f = f, .mode = suite_mode_of(c->tree) };
	struct err e;

	*out = *c;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct json_value *v = json_get(c->tree, keys[i]);

		if (v && v->kind != JSON_NULL)
			out->tree = config_put(c, out->tree, keys[i], settled(&p, v), &e);
	}
	return p.is_wrong ? -1 : 0;
}

static int check_axes(const struct config *c, const struct json_value *axes,
		      struct config_findings *f)
{
	uint64_t points = 1;
	int rc = 0;

	if (axes->kind != JSON_OBJECT)
		return config_complain(c, f, axes, "matrix", "expected an object of lists, or a "
				       "list of such objects, got %s", kind_of(axes));
	if (axes->count == 0)
		return config_complain(c, f, axes, "matrix", "expected an object with a list of values "
				       "for each path, such as {server.max_num_seqs: [64, 256]}, got an "
				       "empty one");
	for (size_t i = 0; i < axes->count; i++) {
		const struct json_value *list = &axes->item[i];

		if (list->kind != JSON_ARRAY || list->count == 0) {
			rc = config_complain(c, f, list, "matrix", "%.*s: expected a list of at "
					     "least one value, got %s", (int)axes->key[i].n,
					     axes->key[i].p, list->kind == JSON_ARRAY ?
					     "an empty one" : kind_of(list));
			continue;
		}
		points = points > SUITE_MEMBERS_MAX ? points : points * list->count;
	}
	if (points > SUITE_MEMBERS_MAX)
		return config_complain(c, f, axes, "matrix", "it has more than %d combinations",
				       SUITE_MEMBERS_MAX);
	return rc;
}

/* Whether some object of the matrix has the path. */
static bool has_axis(const struct json_value *matrix, struct str path)
{
	for (size_t i = 0; matrix->kind == JSON_OBJECT && i < matrix->count; i++)
		if (str_eq(matrix->key[i], path))
			return true;
	for (size_t i = 0; matrix->kind == JSON_ARRAY && i < matrix->count; i++)
		if (has_axis(&matrix->item[i], path))
			return true;
	return false;
}

static int check_exclude(const struct config *c, const struct json_value *matrix,
			 struct config_findings *f)
{
	const struct json_value *list = json_get(c->tree, "matrix_exclude");
	int rc = 0;

	if (list && list->kind != JSON_ARRAY)
		return config_complain(c, f, list, "matrix_exclude", "expected a list of objects, "
				       "got %s", kind_of(list));
	for (size_t i = 0; list && i < list->count; i++) {
		const struct json_value *by = &list->item[i];

		if (by->kind != JSON_OBJECT || by->count == 0)
			rc = config_complain(c, f, by, "matrix_exclude", "expected an object of "
					     "paths and values, got %s", by->count ? kind_of(by) :
					     "an empty one");
		for (size_t k = 0; by->kind == JSON_OBJECT && k < by->count; k++)
			if (!has_axis(matrix, by->key[k]))
				rc = config_complain_key(c, f, &by->item[k], "matrix_exclude",
							 "%.*s is not a path of the matrix",
							 (int)by->key[k].n, by->key[k].p);
	}
	return rc;
}

static int check_matrix(const struct config *c, const struct json_value *matrix,
			struct config_findings *f)
{
	int rc = 0;

	if (matrix->kind != JSON_ARRAY)
		rc = check_axes(c, matrix, f);
	for (size_t i = 0; matrix->kind == JSON_ARRAY && i < matrix->count; i++)
		if (check_axes(c, &matrix->item[i], f) < 0)
			rc = -1;
	return rc < 0 ? -1 : check_exclude(c, matrix, f);
}

/* part with every combination of the matrix; without a matrix, part itself. */
static int multiply(const struct config *c, const struct suite_part *part, struct arena *a,
		    struct suite_parts *out, struct config_findings *f)
{
	const struct json_value *matrix = json_get(c->tree, "matrix");

	if (!matrix || matrix->kind == JSON_NULL)
		return add_part(c, part, a, out, f);
	if (matrix->kind != JSON_ARRAY)
		return add_axes(c, matrix, part, a, out, f);
	for (size_t i = 0; i < matrix->count; i++)
		if (add_axes(c, &matrix->item[i], part, a, out, f) < 0)
			return -1;
	return 0;
}

/* ---- the list, the imported tests ---- */

static const char *const suite_keys[] = {
	"matrix", "matrix_exclude", "experiments", "import", "repeat", "shuffle", "restart", "jobs",
	"stop_on_error", "scheduler",
};

static const struct json_value *without_suite(const struct config *c,
					      const struct json_value *tree)
{
	for (size_t k = 0; k < sizeof(suite_keys) / sizeof(*suite_keys); k++)
		tree = config_without(c, tree, suite_keys[k]);
	if (config_get(config_get(c->tree, "search"), "best")) /* of them all */
		tree = config_without(c, tree, "search");
	return tree;
}

/* --set takes precedence over the members of the list. */
static int set_again(const struct config *c, struct suite_part *part, struct config_findings *f)
{
	const struct json_value *tree, *own = json_get(part->tree, "benchmark");
	struct err e;

	if (!c->n_sets || !part->name)
		return 0;
	tree = config_with_sets(c, part->tree, &e);
	if (tree && part->has_own_benchmark)
		tree = config_put(c, tree, "benchmark", own, &e);
	if (!tree)
		return config_complain(c, f, NULL, part->name, "%s", e.text);
	part->tree = without_suite(c, tree);
	return 0;
}

static int add_listed(const struct config *c, const struct json_value *base,
		      const struct json_value *list, struct arena *a, struct suite_parts *out,
		      struct config_findings *f)
{
	if (list->kind != JSON_ARRAY)
		return config_complain(c, f, list, "experiments", "expected a list of objects, "
				       "got %s", kind_of(list));
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *over = &list->item[i], *name = json_get(over, "name");
		struct suite_part part = { 0 };

		if (over->kind != JSON_OBJECT) {
			config_complain(c, f, over, "experiments", "expected an object, got %s",
					kind_of(over));
			continue;
		}
		for (size_t k = 0; k < sizeof(suite_keys) / sizeof(*suite_keys); k++)
			if (json_get(over, suite_keys[k]))
				config_complain_key(c, f, json_get(over, suite_keys[k]),
						    "experiments", "%s belongs to the suite, not "
						    "to one of its experiments", suite_keys[k]);
		if (!name || name->kind != JSON_STRING || name->text.n == 0) {
			config_complain(c, f, name ? name : over, "experiments", "each of a list "
					"needs a name, a text");
			continue;
		}
		part.name = arena_text(a, name->text);
		part.tree = config_merge(c, base, over);
		if (add_part(c, &part, a, out, f) < 0)
			return -1;
	}
	return f->n_errors ? -1 : 0;
}

/* Options of one verb are not another's: `benchmark` is for tests of its own mode. */
enum experiment_mode suite_mode_of(const struct json_value *base)
{
	struct str name = json_text(json_get(json_get(base, "benchmark"), "mode"), STR("serve"));
	enum experiment_mode mode = MODE_SERVE;

	while (mode < MODE_COUNT - 1 && !str_is(name, experiment_mode_name(mode)))
		mode++;
	return mode;
}

static int add_imported(const struct config *c, const struct config_know *know,
			const struct json_value *base, const struct json_value *import,
			struct arena *a, struct suite_parts *out, struct config_findings *f)
{
	struct import_list list = { 0 };

	if (import_read(c, import, know, a, &list, f) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		const struct import_member *m = &list.v[i];
		struct suite_part part = { .name = m->name, .test = &m->test };

		part.has_own_benchmark = m->test.mode != suite_mode_of(base);
		part.tree = config_merge(c, part.has_own_benchmark ?
					 config_without(c, base, "benchmark") : base, m->over);
		if (add_part(c, &part, a, out, f) < 0)
			return -1;
	}
	if (out->n == 0)
		return config_complain(c, f, import, "import", "no test is left");
	return 0;
}

int suite_parts(const struct config *config, const struct config_know *know, struct arena *a,
		struct suite_parts *out, struct config_findings *f)
{
	const struct json_value *list, *import, *matrix, *exclude;
	struct suite_parts first = { 0 };
	struct suite_part whole = { 0 };
	struct config own, *c = &own;

	if (settle_paths(config, know, a, c, f) < 0)
		return -1;
	list = config_get(c->tree, "experiments");
	import = config_get(c->tree, "import");
	matrix = config_get(c->tree, "matrix");
	whole.tree = without_suite(c, c->tree);
	exclude = json_get(c->tree, "matrix_exclude");
	if (exclude && exclude->kind != JSON_NULL && !matrix)
		return config_complain_key(c, f, exclude, "matrix_exclude", "there is no matrix to "
					   "leave combinations out of");
	if ((matrix && check_matrix(c, matrix, f) < 0) ||
	    check_size(c, list && list->kind == JSON_ARRAY ? list->count : 1, matrix, f) < 0)
		return -1;
	if (list && add_listed(c, whole.tree, list, a, &first, f) < 0)
		return -1;
	if (import && (add_imported(c, know, whole.tree, import, a, &first, f) < 0 ||
		       check_size(c, first.n, matrix, f) < 0))
		return -1;
	out->is_list = list || import || matrix;
	if (!list && !import && add_part(c, &whole, a, &first, f) < 0)
		return -1;
	for (size_t i = 0; i < first.n; i++)
		if (set_again(c, &first.v[i], f) < 0 ||
		    multiply(c, &first.v[i], a, out, f) < 0)
			return -1;
	if (out->n == 0)
		return config_complain(c, f, list ? list : matrix, "suite", "no experiment is left");
	return 0;
}
