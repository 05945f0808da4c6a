/* SPDX-License-Identifier: Apache-2.0 */
/* compare_json.c - a comparison for programs. Numbers that do not exist are null. */
#include "report/compare.h"
#include "report/put.h"

#define SCHEMA_VERSION 2 /* 1: points with Welch's test */

static void put_sides(struct json_writer *w, const struct comparison *c)
{
	json_key(w, "sides");
	json_begin_array(w);
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct compare_side *side = &c->side[s];

		json_begin_object(w);
		put_text(w, "name", side->name);
		put_text(w, "path", side->path);
		put_int(w, "runs", (int64_t)side->n);
		json_key(w, "parameters");
		json_begin_object(w);
		for (size_t p = 0; p < c->n_params; p++)
			if (c->param[p].kind == COMPARE_BETWEEN)
				put_text(w, c->param[p].key, side->run[0].param[p]);
		json_end_object(w);
		json_end_object(w);
	}
	json_end_array(w);
}

void compare_json(const struct comparison *c, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct str rest = buf_str(&c->notes);
	struct arena a = { 0 };

	w.indent = 2;
	json_begin_object(&w);
	put_int(&w, "schema_version", SCHEMA_VERSION);
	put_real(&w, "alpha", c->o->alpha);
	put_sides(&w, c);
	json_key(&w, "comparisons");
	json_begin_array(&w);
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		json_begin_object(&w);
		matched_put(&w, &c->out, &c->out.pair[i], &a);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_key(&w, "notes");
	json_begin_array(&w);
	while (rest.n)
		json_put_str(&w, str_cut(&rest, '\n'));
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
	arena_release(&a);
}
