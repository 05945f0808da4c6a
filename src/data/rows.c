/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h. */
#include "data/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "data/request_keys.h"

static struct table *table_of(const struct rows *r, size_t *row)
{
	size_t t = 0;

	while (*row >= r->end[t])
		t++;
	*row -= t ? r->end[t - 1] : 0;
	return r->table[t];
}

static int refuse_at(const struct rows *r, size_t row, struct err *e, enum err_code code,
		     const char *text)
{
	struct buf where = { 0 };
	struct table *t = table_of(r, &row);

	table_where(t, row, &where);
	err_set(e, code, "%s: %s", where.data, text);
	buf_release(&where);
	return -1;
}

int rows_refuse(const struct rows *r, size_t i, struct err *e, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return refuse_at(r, r->order[i], e, ERR_RUN, text);
}

static int get(struct rows *r, size_t row, struct json_slice *out, struct err *e)
{
	struct table *t = table_of(r, &row);

	return table_row(t, row, out, e);
}

static bool is_known(const struct rows *r, struct str key)
{
	if (str_is(key, "output_tokens"))
		return r->output_len == -1;
	for (const char *const *k = r->known; *k; k++)
		if (str_is(key, *k))
			return true;
	return request_keys_know(key);
}

static void count_unused(struct rows *r, struct json_slice row)
{
	struct json_iter it = json_iter(row);
	struct json_slice value;
	struct str key;

	while (json_each(&it, &key, &value) == 1) {
		size_t k = 0;

		if (is_known(r, key))
			continue;
		while (k < r->n_unused && !str_is(key, r->unused[k].name))
			k++;
		if (k == UNUSED_KEYS_MAX) {
			r->unnamed++;
			continue;
		}
		if (k == r->n_unused) {
			char *name = mem_array(key.n + 1, 1);

			memcpy(name, key.p, key.n);
			r->unused[r->n_unused++].name = name;
		}
		r->unused[k].rows++;
	}
}

int rows_get(struct rows *r, size_t i, struct json_slice *row, struct err *e)
{
	if (get(r, r->order[i], row, e) < 0)
		return -1;
	if (r->known && row->kind == JSON_OBJECT)
		count_unused(r, *row);
	return 0;
}

void rows_note_unused(const struct rows *r, const struct dataset_opts *o, struct workload *w)
{
	for (size_t i = 0; i < r->n_unused; i++) {
		const struct unused_key *key = &r->unused[i];

		if (strcmp(key->name, "output_tokens") == 0)
			dataset_note(w, "%s: \"output_tokens\" of %zu row%s is not used, because "
				     "--custom-output-len is %" PRId64 "; -1 uses it", o->path,
				     key->rows, key->rows > 1 ? "s" : "", r->output_len);
		else
			dataset_note(w, "%s: \"%.100s\" of %zu row%s is not used", o->path, key->name,
				     key->rows, key->rows > 1 ? "s" : "");
	}
	if (r->unnamed)
		dataset_note(w, "%s: more than %d keys are not used; keys beyond these occur %zu times",
			     o->path, UNUSED_KEYS_MAX, r->unnamed);
}

int rows_own_keys(const struct rows *r, size_t i, struct json_slice row, struct arena *a,
		  struct draft *d, struct err *e)
{
	struct err why = { 0 };

	if (request_keys_read(row, a, &d->sample, &d->has_priority, &why) == 0)
		return 0;
	return rows_refuse(r, i, e, "%s", why.text);
}

static int open_tables(struct rows *r, const char *const *path, size_t n,
		       const struct rows_opts *opts, struct err *e)
{
	struct dataset_reading reading = { .env = opts->env };
	struct table_opts table_opts = {
		.columns = opts->columns, .cancel = opts->env->cancel,
		.progress = dataset_reading_show, .self = &reading,
	};

	r->table = mem_array(n, sizeof(struct table *));
	r->end = mem_array(n, sizeof(*r->end));
	for (size_t i = 0; i < n; i++) {
		struct table *t;

		reading.path = path[i];
		table_opts.ending = file_is_stream(path[i]) ? ".jsonl" : NULL;
		t = table_open(path[i], &table_opts, e);

		if (!t)
			return -1;
		r->table[r->tables] = t;
		r->all += table_rows(t);
		r->end[r->tables++] = r->all;
		if (r->all > SHUFFLED_ROWS_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %llu rows to be shuffled "
				       "(SHUFFLED_ROWS_MAX)", path[i], SHUFFLED_ROWS_MAX);
	}
	return 0;
}

static int choose(struct rows *r, const struct rows_opts *opts, struct err *e)
{
	r->order = mem_array(r->all, sizeof(*r->order));
	for (size_t row = 0; row < r->all; row++) {
		struct json_slice object;
		struct err why = { 0 };
		int is_kept = 1;

		if (opts->keep) {
			if (dataset_go_on(opts->env, e) < 0 || get(r, row, &object, e) < 0)
				return -1;
			is_kept = opts->keep(opts->self, object, &why);
		}
		if (is_kept < 0)
			return refuse_at(r, row, e, why.code, why.text);
		if (is_kept)
			r->order[r->n++] = row;
	}
	return 0;
}

int rows_open(struct rows *r, const char *const *path, size_t n, const struct rows_opts *opts,
	      struct compat_rng *rng, struct err *e)
{
	*r = (struct rows){
		.known = opts->is_known_only ? opts->columns : NULL, .output_len = opts->output_len,
	};
	if (open_tables(r, path, n, opts, e) < 0 || choose(r, opts, e) < 0)
		return -1;
	pyrandom_seed(&rng->py, (int64_t)opts->seed);
	if (!opts->o->disable_shuffle)
		pyrandom_shuffle(&rng->py, r->order, r->n, sizeof(*r->order));
	return 0;
}

void rows_release(struct rows *r)
{
	for (size_t i = 0; i < r->tables; i++)
		table_close(r->table[i]);
	for (size_t i = 0; i < r->n_unused; i++)
		free(r->unused[i].name);
	free(r->table);
	free(r->end);
	free(r->order);
	*r = (struct rows){ 0 };
}

bool rows_text(struct json_slice object, const char *key, struct buf *out)
{
	struct json_slice v;

	if (!json_member(object, key, &v) || v.kind != JSON_STRING)
		return false;
	json_unescape(out, v.raw);
	return true;
}

bool rows_item(struct json_slice list, size_t index, struct json_slice *item)
{
	struct json_iter it;
	struct str key;

	if (list.kind != JSON_ARRAY)
		return false;
	it = json_iter(list);
	for (size_t i = 0; json_each(&it, &key, item) == 1; i++)
		if (i == index)
			return true;
	return false;
}

int rows_take(const struct rows *r, struct take *take, const struct rows_opts *opts,
	      struct compat_rng *rng, struct workload *w, struct err *e)
{
	if (r->all == 0)
		return err_set(e, ERR_RUN, "%s: the file has no prompts", opts->o->path);
	take->rows = r->n;
	return dataset_take(take, opts->o, opts->env, rng, w, e);
}
