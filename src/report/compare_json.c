/* SPDX-License-Identifier: Apache-2.0 */
/* compare_json.c - a comparison for programs. Numbers that do not exist are null. */
#include "report/compare.h"
#include "json/write.h"

#define SCHEMA_VERSION 2 /* 1: points with Welch's test */

static void put_sides(struct json_writer *w, const struct comparison *c)
{
	json_member_array(w, "sides");
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct compare_side *side = &c->side[s];

		json_begin_object(w);
		json_member_text(w, "name", side->name);
		json_member_text(w, "path", side->path);
		json_member_int(w, "runs", (int64_t)side->n);
		json_member_object(w, "parameters");
		for (size_t p = 0; p < c->n_params; p++)
			if (c->param[p].kind == COMPARE_BETWEEN)
				json_member_text(w, c->param[p].key, side->run[0].param[p]);
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
	json_member_int(&w, "schema_version", SCHEMA_VERSION);
	json_member_f64(&w, "alpha", c->o->alpha);
	put_sides(&w, c);
	json_member_array(&w, "comparisons");
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		json_begin_object(&w);
		matched_put(&w, &c->out, &c->out.pair[i], &a);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_member_array(&w, "notes");
	while (rest.n)
		json_put_str(&w, str_cut(&rest, '\n'));
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
	arena_release(&a);
}
