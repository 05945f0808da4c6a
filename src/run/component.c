/* SPDX-License-Identifier: Apache-2.0 */
/* component.c - see component.h. */
#include "run/component.h"

#include <math.h>

#include "base/mem.h"
#include "data/datasets.h"
#include "data/request_keys.h"
#include "json/write.h"
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

/* The name with one kind of stroke; the other is as good. */
static void name_with(char stroke, struct str key, struct buf *name)
{
	buf_reset(name);
	json_unescape(name, key);
	for (size_t i = 0; i < name->len; i++)
		if (name->data[i] == '_' || name->data[i] == '-')
			name->data[i] = stroke;
}

/* A key of the requests themselves (request_keys.h) goes into *own, an object. */
static bool is_own(struct str key, struct json_slice value, struct json_writer *own)
{
	struct buf name = { 0 };
	bool is_known;

	name_with('_', key, &name);
	is_known = request_keys_know(buf_str(&name));
	if (is_known) {
		if (value.kind == JSON_STRING)
			value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
		json_key_str(own, buf_str(&name));
		json_put_raw(own, value.raw);
	}
	buf_release(&name);
	return is_known;
}

static int read_own(struct buf *text, struct arena *a, struct dataset_component *out,
		    struct err *e)
{
	struct json_scan scan = { arena_str(a, buf_str(text)), 0 };
	struct json_slice object;

	buf_release(text);
	out->own.output_len = -1;
	if (json_next(&scan, &object, e) < 0 ||
	    request_keys_read(object, a, &out->own, &out->has_priority, e) < 0) {
		e->code = ERR_USAGE;
		return err_wrap(e, "--mix");
	}
	out->has_length = out->own.output_len >= 0;
	return 0;
}

static int assign(struct str key, struct json_slice value, struct serve_opts *o,
		  struct opt_result *given, struct arena *a, struct err *e)
{
	struct buf name = { 0 }, text = { 0 };
	int row, rc;

	name_with('-', key, &name);
	row = row_of(name.len ? name.data : "");
	if (value.kind == JSON_STRING)
		json_unescape(&text, value.raw);
	else
		buf_add_str(&text, value.raw);
	if (row < 0)
		rc = err_set(e, ERR_USAGE, "--mix: \"%.100s\" is no option of a dataset, "
			     "and no key of its requests (extra_body, headers, priority, temperature...)",
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
			struct dataset_component *out, struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer own = json_writer(&text);
	struct json_iter it;
	int rc = 0;
	struct json_slice value;
	struct str key;

	if (object.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "--mix: expected a list of objects, got %.*s in it",
			       (int)(object.raw.n < 60 ? object.raw.n : 60), object.raw.p);
	it = json_iter(object);
	json_begin_object(&own);
	while (rc == 0 && json_each(&it, &key, &value) == 1) {
		if (!str_is(key, "weight"))
			rc = is_own(key, value, &own) ? 0 : assign(key, value, o, given, a, e);
		else if (!json_to_f64(value, &out->weight) || !(out->weight > 0) ||
			 isinf(out->weight))
			rc = err_set(e, ERR_USAGE, "--mix: \"weight\" must be a number above 0, got "
				     "%.*s", (int)(value.raw.n < 60 ? value.raw.n : 60), value.raw.p);
	}
	json_end_object(&own);
	if (rc == 0)
		return read_own(&text, a, out, e);
	buf_release(&text);
	return -1;
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
	rc = read_members(object, o, &given, out, a, e);
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
