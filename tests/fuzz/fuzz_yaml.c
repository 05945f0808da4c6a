/* SPDX-License-Identifier: Apache-2.0 */
/* What YAML becomes is JSON: it is written, and what was written reads back as the same text. */
// LINKS: json
#include <stdlib.h>

#include "core/json/write.h"
#include "core/json/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write(const struct json_value *v, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_put_value(&w, v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first = { 0 }, second = { 0 };
	struct arena a = { 0 };
	struct json_value *v = NULL;
	struct err e = { 0 };

	if (yaml_parse(&a, (struct str){ (const char *)data, size }, &v, &e) == 0) {
		write(v, &first);
		if (json_parse(&a, buf_str(&first), &v, &e) < 0)
			abort();
		write(v, &second);
		if (!str_eq(buf_str(&first), buf_str(&second)))
			abort();
	} else if (!e.code || !*e.text) {
		abort();
	}
	buf_release(&first);
	buf_release(&second);
	arena_release(&a);
	return 0;
}
