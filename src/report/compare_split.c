/* SPDX-License-Identifier: Apache-2.0 */
/* compare_split.c - see compare_split: one file with many runs as sides of a comparison. */
#include <string.h>

#include "base/limits.h"
#include "json/python.h"
#include "report/compare.h"
#include "results/frame.h"

/* The text of a run's value; "(none)" when it has none. */
static const char *value_of(const struct comparison *c, const struct compare_run *run)
{
	struct str key = str_of(c->o->by);
	const struct json_value *v = frame_value(run->record, key);
	const struct json_value *options = frame_value(run->record, STR("profllm.options"));
	struct buf text = { 0 };
	const char *out;

	if (!v)
		v = frame_value(options, key);
	if (!v || v->kind == JSON_NULL)
		return "(none)";
	json_python_str(&text, v);
	out = arena_text(c->a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* The side of that value among those from first on; a new one, or NULL when there is no room. */
static struct compare_side *side_for(struct comparison *c, size_t first,
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

int compare_split(struct comparison *c, struct err *e)
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
