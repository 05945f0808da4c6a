/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_none.c - replaces yaml.c in a program without libyaml (make client). */
#include "core/json/yaml.h"

#include "core/json/marks.h"

#define WHY "the program of make client does not read YAML; build the whole program (make)"

int yaml_parse(struct arena *a, struct str text, struct json_value **out, struct err *e)
{
	(void)a, (void)text, (void)out;
	return err_set(e, ERR_USAGE, WHY);
}

int yaml_parse_marked(struct arena *a, struct str text, const char *file, struct json_marks *marks,
		      struct json_value **out, struct err *e)
{
	(void)a, (void)text, (void)marks, (void)out;
	return err_set(e, ERR_USAGE, "%s: " WHY, file);
}
