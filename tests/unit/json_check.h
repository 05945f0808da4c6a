/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_check.h - the key scanner judged by the tree: same verdict on the text,
 * same value at every path. Used by the unit test and by the fuzz target.
 */
#pragma once
#include "core/json/scan.h"
#include "core/json/write.h"

#define CHECK_PATHS 13
static const char *const check_path[CHECK_PATHS] = {
	"choices", "choices[0].text", "choices[0].delta.content", "choices[0].delta.reasoning_content",
	"choices[0].delta.reasoning", "choices[0].finish_reason", "usage", "usage.prompt_tokens",
	"usage.completion_tokens", "usage.prompt_tokens_details.cached_tokens", "error",
	"choices[2][1]", "error.a.b.c",
};

/* What the tree holds at a path; NULL when nothing. */
static struct json_value *check_tree_at(struct json_value *v, const char *path)
{
	while (v && *path) {
		char name[32];
		size_t n = strcspn(path, ".[");

		if (*path == '[') {
			size_t index = (size_t)(path[1] - '0');

			v = v->kind == JSON_ARRAY && index < v->count ? &v->item[index] : NULL;
			path += 3;
		} else {
			snprintf(name, sizeof(name), "%.*s", (int)n, path);
			v = json_get(v, name);
			path += n;
		}
		path += *path == '.';
	}
	return v;
}

static bool check_same(struct json_slice slice, const struct json_value *v)
{
	struct buf a = { 0 }, b = { 0 };
	struct json_writer w = json_writer(&b);
	struct arena arena = { 0 };
	struct json_value *again;
	bool is_same = false;

	if (!v || !slice.raw.p)
		return !v && !slice.raw.p && slice.kind == JSON_NULL;
	if (slice.kind != v->kind && !(slice.kind == JSON_INT && v->kind == JSON_REAL))
		return false;
	if (slice.kind == JSON_STRING) {
		json_unescape(&a, slice.raw);
		is_same = str_eq(buf_str(&a), v->text);
	} else if (json_parse(&arena, slice.raw, &again, NULL) == 0) {
		json_put_value(&w, v);
		w = json_writer(&a);
		json_put_value(&w, again);
		is_same = str_eq(buf_str(&a), buf_str(&b));
	}
	arena_release(&arena);
	buf_release(&a);
	buf_release(&b);
	return is_same;
}

/* NULL when scanner and tree agree, else what differs. */
static const char *check_scan(struct str text)
{
	struct json_slice out[CHECK_PATHS];
	struct json_paths paths;
	struct json_value *tree = NULL;
	struct arena arena = { 0 };
	const char *differs = NULL;
	int want = json_parse(&arena, text, &tree, NULL);

	json_scan_paths_init(&paths, check_path, CHECK_PATHS);
	if (json_scan_run(&paths, text, out) != want)
		differs = "verdict";
	for (size_t i = 0; !differs && want == 0 && i < CHECK_PATHS; i++)
		if (!check_same(out[i], check_tree_at(tree, check_path[i])))
			differs = check_path[i];
	arena_release(&arena);
	return differs;
}
