/* SPDX-License-Identifier: Apache-2.0 */
/* component.c - see component.h. */
#include "run/component.h"

#include <math.h>

#include "base/mem.h"
#include "run/serve_check.h"

/* The row of a dataset's option; -1: no option, or one of the run's. */
static int row_of(const char *name)
{
	for (size_t i = 0; i < serve_opt_set.n; i++) {
		const struct opt *o = &serve_opt_set.row[i];
		bool is_own = (o->offset >= offsetof(struct serve_opts, data) &&
			       o->offset < offsetof(struct serve_opts, data) +
					   sizeof(struct dataset_opts)) ||
			      o->offset == offsetof(struct serve_opts, dataset_name) ||
			      o->offset == offsetof(struct serve_opts, input_len) ||
			      o->offset == offsetof(struct serve_opts, output_len);

		if (is_own && strcmp(o->name, name) == 0)
			return (int)i;
	}
	return -1;
}

static int assign(struct str key, struct json_slice value, struct serve_opts *o,
		  struct opt_result *given, struct arena *a, struct err *e)
{
	struct buf name = { 0 }, text = { 0 };
	int row, rc;

	json_unescape(&name, key);
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] == '_')
			name.data[i] = '-';
	row = row_of(name.len ? name.data : "");
	if (value.kind == JSON_STRING)
		json_unescape(&text, value.raw);
	else
		buf_add_str(&text, value.raw);
	if (row < 0)
		rc = err_set(e, ERR_USAGE, "--mix: \"%.100s\" is no option of a dataset",
			     name.len ? name.data : "");
	else
		rc = opt_assign(&serve_opt_set, o, name.data, buf_str(&text), a, e);
	if (rc == 0)
		given->given[row / 64] |= 1ull << row % 64;
	else if (row >= 0)
		err_wrap(e, "--mix");
	buf_release(&name);
	buf_release(&text);
	return rc;
}

static int read_members(struct json_slice object, struct serve_opts *o, struct opt_result *given,
			double *weight, struct arena *a, struct err *e)
{
	struct json_iter it;
	struct json_slice value;
	struct str key;

	if (object.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "--mix: expected a list of objects, got %.*s in it",
			       (int)(object.raw.n < 60 ? object.raw.n : 60), object.raw.p);
	it = json_iter(object);
	while (json_each(&it, &key, &value) == 1) {
		if (!str_is(key, "weight")) {
			if (assign(key, value, o, given, a, e) < 0)
				return -1;
		} else if (!json_to_f64(value, weight) || !(*weight > 0) || isinf(*weight)) {
			return err_set(e, ERR_USAGE, "--mix: \"weight\" must be a number above 0, got "
				       "%.*s", (int)(value.raw.n < 60 ? value.raw.n : 60), value.raw.p);
		}
	}
	return 0;
}

int run_component(struct json_slice object, struct arena *a, struct dataset_component *out,
		  struct buf *notes, struct err *e)
{
	struct serve_opts *o = arena_alloc(a, sizeof(*o));
	struct opt_result given = { 0 };
	const struct check c = { o, &given, a, NULL, e };
	int rc;

	*o = *(const struct serve_opts *)serve_opt_set.defaults;
	*out = (struct dataset_component){ .weight = 1 };
	rc = read_members(object, o, &given, &out->weight, a, e);
	if (rc == 0 && strcmp(o->dataset_name, "mix") == 0)
		rc = err_set(e, ERR_USAGE, "--mix: a part of a mix cannot be a mix");
	if (rc == 0 && (o->data.repeat_count != 1 || o->data.repeat_order ||
			strcmp(o->data.warmup_pass, "none") != 0))
		rc = err_set(e, ERR_USAGE, "--mix: \"repeat-count\", \"repeat-order\" and \"warmup-pass\" "
			     "hold for all of a mix; give them on the command line");
	if (rc == 0)
		rc = serve_check_dataset(&c);
	if (rc == 0)
		rc = serve_check_range_ratio(&c);
	if (rc == 0) {
		out->dataset = dataset_find(o->dataset_name);
		out->opts = o->data;
		buf_add_str(notes, buf_str(&given.notes));
	}
	buf_release(&given.notes);
	return rc;
}
