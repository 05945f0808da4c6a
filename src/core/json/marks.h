/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - the position of each value in its file, for messages.
 *
 * A table next to the tree, keyed by a value's address, so that trees do not grow. Code that copies
 * a value copies its mark (json_marks_copy); values inside it stay where they were and keep theirs.
 * Memory is the arena's; a zeroed table is a valid empty one once its arena is set.
 */
#pragma once
#include "core/json/read.h"

struct json_mark {
	const char *file;        /* or what replaces one: "--set server.port=80"; NULL: unknown */
	unsigned line, column;   /* of the value, from 1; 0: no file */
	unsigned key_line, key_column; /* of its key; 0: it is not a member of an object */
	bool is_open;            /* private to the reader: the value must still be filled in */
};

struct json_marks {
	struct arena *arena;
	struct json_marks_slot { const struct json_value *of; struct json_mark mark; } *slot;
	size_t cap, count;
};

void json_marks_put(struct json_marks *m, const struct json_value *v, struct json_mark mark);
/* All zero when there is none. */
struct json_mark json_marks_get(const struct json_marks *m, const struct json_value *v);
void json_marks_copy(struct json_marks *m, const struct json_value *from,
		     const struct json_value *to);

/*
 * As json_parse and yaml_parse (json/yaml.h), with a mark for every value; file is borrowed. A key
 * that appears twice in one object is an error that names both places. Errors begin with
 * "LINE:COLUMN: ", without the file.
 */
int json_parse_marked(struct arena *a, struct str text, const char *file, struct json_marks *m,
		      struct json_value **out, struct err *e);
int yaml_parse_marked(struct arena *a, struct str text, const char *file, struct json_marks *m,
		      struct json_value **out, struct err *e);
