/* SPDX-License-Identifier: Apache-2.0 */
/* import_opts.c - see import.h: the key `import` and the files it names. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "experiment/import.h"

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
		size_t k = 0;

		while (k < n && !str_is(r->v->key[i], keys[k]))
			k++;
		if (k == n)
			rc = config_complain_key(r->c, r->f, &r->v->item[i], "import",
						 "%.*s: unknown key%s%s", (int)r->v->key[i].n,
						 r->v->key[i].p, near ? "; did you mean " : "",
						 near ? near : "");
	}
	return rc;
}

/* NULL: absent, or "" as an environment variable that is not set gives it. */
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

static struct str last_text(const struct json_value *v)
{
	if (v && v->kind == JSON_ARRAY && v->count)
		v = &v->item[v->count - 1];
	return json_text(v, STR(""));
}

/* The simulator needs no devices, however many it plays. */
static bool is_simulated(const struct config *c)
{
	struct str command = last_text(json_get(json_get(c->tree, "server"), "command"));

	return str_is(command, "sim") || str_ends(command, STR(" sim"));
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
	int rc = 0;

	*o = (struct import_opts)IMPORT_DEFAULTS;
	if (import->kind == JSON_OBJECT) {
		if (check_keys(&r) < 0)
			return -1;
		read_opts(&r, o);
		files = json_get(import, "files");
	}
	o->is_simulated = is_simulated(c);
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
