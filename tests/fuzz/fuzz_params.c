/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_params.c - parameter files, and the words, names and folders that combinations become.
 *
 * The first line is a command, the rest a parameter file. Whatever they are: each is refused in
 * one sentence, or every combination's folder is a name a file system takes, and its command line
 * says all of it, which putting it on a second time does not change.
 */
#include <string.h>

#include "bench/sweep/params.h"
#include "check.h"
#include "core/base/limits.h"
#include "core/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

static bool is_same(char *const *x, char *const *y)
{
	for (; *x && *y; x++, y++)
		if (strcmp(*x, *y) != 0)
			return false;
	return !*x && !*y;
}

/* Keys that are one in all their spellings write over each other, in their order. */
static bool has_twins(const struct json_value *comb)
{
	for (size_t i = 0; i < comb->count; i++)
		for (size_t k = 0; k < comb->count; k++) {
			struct str x = comb->key[i], y = comb->key[k];
			bool is_same_key = i != k && x.n == y.n;

			for (size_t c = 0; is_same_key && c < x.n; c++)
				is_same_key = x.p[c] == y.p[c] || (strchr("-_", x.p[c]) &&
								   strchr("-_", y.p[c]));
			if (is_same_key)
				return true;
		}
	return false;
}

/* Values and keys that look like options, and negations, may be mistaken for each other's. */
static bool is_plain(const struct json_value *comb)
{
	if (has_twins(comb))
		return false;
	for (size_t i = 0; i < comb->count; i++) {
		const struct json_value *v = &comb->item[i];
		struct str key = comb->key[i];

		if (!key.n || key.p[0] == '-' || memchr(key.p, '=', key.n) ||
		    memchr(key.p, '.', key.n) || v->kind == JSON_FALSE || v->kind == JSON_TRUE)
			return false;
		if (v->kind == JSON_STRING && v->text.n && v->text.p[0] == '-')
			return false;
	}
	return true;
}

static void check_combination(const struct json_value *comb, char *const *argv, struct arena *a)
{
	const struct params_side side = { "SERVE-", comb }, none = { "BENCH-", comb };
	char *folder = params_folder(side, none, NULL, a);
	char **once = params_apply(comb, argv, a), **twice = params_apply(comb, once, a);

	CHECK(strlen(folder) <= FILE_NAME_BYTES_MAX && !strchr(folder, '/'));
	CHECK(strcmp(folder, ".") != 0 && strcmp(folder, "..") != 0);
	CHECK(strlen(params_folder_single_dash(comb, comb, a)) <= FILE_NAME_BYTES_MAX);
	CHECK(count(once) >= count(argv) && count(once) <= count(argv) + 2 * comb->count);
	if (is_plain(comb))
		CHECK(is_same(once, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str file = { (const char *)data, size };
	struct str line = str_cut(&file, '\n');
	struct arena a = { 0 };
	struct params params;
	struct err e = { 0 };
	char **argv;

	if (words_split(line, &a, &argv, NULL, &e) < 0) {
		CHECK(e.code == ERR_USAGE && e.text[0]);
	} else if (params_parse(file, &a, &params, &e) < 0) {
		CHECK(e.code != ERR_NONE && e.text[0]);
	} else {
		for (size_t i = 0; i < params.n && i < 64; i++)
			check_combination(&params.item[i], argv, &a);
	}
	arena_release(&a);
	return 0;
}
