/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_redact.c - whatever text it is, what is shown of it is JSON if the text was, a second look
 * finds nothing more, and a text without anything to hide is not copied.
 */
#include <stdint.h>

#include "core/base/redact.h"
#include "core/json/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(struct str text)
{
	struct arena a = { 0 };
	struct json_value *v;
	bool is = json_parse(&a, text, &v, NULL) == 0 &&
		  (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY);

	arena_release(&a);
	return is;
}

static void look(struct str text, enum redact_kind kind, bool was_json)
{
	struct buf once = { 0 }, twice = { 0 };

	buf_add_str(&once, text);
	redact_tail(&once, 0, kind);
	buf_add_str(&twice, buf_str(&once));
	redact_tail(&twice, 0, kind);
	if (was_json && (!is_json(buf_str(&once)) || !str_eq(buf_str(&once), buf_str(&twice))))
		abort();
	buf_release(&once);
	buf_release(&twice);
}

static void split(struct str text)
{
	struct arena a = { 0 };
	char **argv = arena_alloc(&a, (text.n + 2) * sizeof(*argv)), **shown;
	size_t n = 0;

	while (text.n)
		argv[n++] = arena_text(&a, str_cut(&text, '\n'));
	shown = redact_words(argv, &a);
	for (size_t i = 0; i < n; i++)
		if (!shown[i])
			abort();
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Bytes of its own, so that reading past them is found. */
	char *copy = malloc(size ? size : 1);
	struct str text = { copy, size };
	struct buf room = { 0 };
	bool was_json;

	if (size)
		memcpy(copy, data, size);
	was_json = is_json(text);
	look(text, REDACT_SENTENCES, was_json);
	look(text, REDACT_SETTINGS, was_json);
	look(text, REDACT_DATA, was_json);
	redact_line(text, &room);
	split(text);
	buf_release(&room);
	free(copy);
	return 0;
}
