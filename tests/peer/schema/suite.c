/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - the official JSON Schema test suite, file by file: `suite DIR` where DIR has draft7/
 * and draft2020-12/.
 *
 * One line per file: passed, failed, and skipped for schemas with remote references and
 * international host names, which are not claimed. Exit status 1 when a claimed test fails.
 */
#include <dirent.h>
#include <stdio.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/constrain/constrain.h"

#define SUITE_BYTES_MAX (16u << 20)
#define FILES_MAX 256

struct counts { int passed, failed, skipped; };

/*
 * Not claimed: documents from elsewhere, content and formats that a vocabulary asserts, and draft
 * 7's "dependencies" in a schema of draft 2020-12.
 */
static const char *const excluded[] = {
	"draft2020-12/refRemote.json", "draft2020-12/vocabulary.json", "draft7/refRemote.json",
	"draft2020-12/optional/format-assertion.json", "draft7/optional/content.json",
	"draft2020-12/optional/dependencies-compatibility.json",
};
/* A group of hostname.json: which letters an encoded international name may have (RFC 5892). */
#define NOT_CLAIMED_GROUP "A-label"

static struct str spelled(struct buf *out, const struct json_value *v)
{
	struct json_writer w = json_writer(out);

	buf_reset(out);
	w.is_raw_utf8 = true;
	json_put_value(&w, v);
	return buf_str(out);
}

/* Draft 7's tests do not say which draft they are of. */
static struct str schema_text(struct buf *out, const struct json_value *schema, bool is_draft_7)
{
	static const char head[] = "{\"$schema\": \"http://json-schema.org/draft-07/schema#\"";
	struct buf plain = { 0 };

	spelled(&plain, schema);
	if (!is_draft_7 || schema->kind != JSON_OBJECT || json_get(schema, "$schema"))
		return spelled(out, schema);
	buf_reset(out);
	buf_printf(out, "%s%s%s", head, schema->count ? ", " : "", plain.data + 1);
	buf_release(&plain);
	return buf_str(out);
}

static void run_case(const char *file, const struct json_value *group, bool is_draft_7,
		     bool is_format_asserted, struct counts *n)
{
	const struct json_value *tests = json_get(group, "tests");
	struct constraint_opts opts = { is_format_asserted };
	struct buf text = { 0 };
	struct err e = { 0 };
	struct constraint *c = constraint_compile(CONSTRAINT_JSON,
		schema_text(&text, json_get(group, "schema"), is_draft_7), &opts, &e);

	for (size_t i = 0; i < tests->count; i++) {
		const struct json_value *test = &tests->item[i];
		bool is_valid = json_bool(json_get(test, "valid"), false);
		struct constraint_result r = { 0 };

		if ((!c && strstr(e.text, "remote references")) ||
		    strstr(json_get(group, "description")->text.p, NOT_CLAIMED_GROUP)) {
			n->skipped++;
			continue;
		}
		if (c)
			constraint_check(c, spelled(&text, json_get(test, "data")), &r);
		if (c && r.verdict == (is_valid ? CONSTRAINT_KEPT : CONSTRAINT_BROKEN)) {
			n->passed++;
			continue;
		}
		n->failed++;
		printf("  %s: %s: %s: %s\n", file, json_get(group, "description")->text.p,
			json_get(test, "description")->text.p, c ? r.why : e.text);
	}
	constraint_free(c);
	buf_release(&text);
}

static struct counts run_file(const char *root, const char *name, bool is_draft_7,
			      bool is_format_asserted)
{
	struct counts n = { 0 };
	struct arena a = { 0 };
	struct buf path = { 0 }, text = { 0 };
	struct json_value *groups;
	struct err e = { 0 };

	buf_printf(&path, "%s/%s", root, name);
	if (file_read(path.data, SUITE_BYTES_MAX, &text, &e) < 0 ||
	    json_parse(&a, buf_str(&text), &groups, &e) < 0) {
		printf("  %s: %s\n", path.data, e.text);
		n.failed++;
	} else {
		for (size_t i = 0; i < groups->count; i++)
			run_case(name, &groups->item[i], is_draft_7, is_format_asserted, &n);
	}
	buf_release(&path);
	buf_release(&text);
	arena_release(&a);
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list_files(const char *dir, char **name)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	size_t count = 0;

	while (d && (entry = readdir(d)) != NULL && count < FILES_MAX)
		if (str_ends(str_of(entry->d_name), STR(".json")))
			name[count++] = mem_text(entry->d_name);
	if (d)
		closedir(d);
	qsort(name, count, sizeof *name, by_name);
	return count;
}

static bool is_among(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* The formats that can be asserted; other files of that folder test formats that are not known. */
static const char *const formats[] = {
	"date-time.json", "date.json", "time.json", "duration.json", "email.json", "hostname.json",
	"ipv4.json", "ipv6.json", "uri.json", "uri-reference.json", "uri-template.json", "uuid.json",
	"json-pointer.json", "relative-json-pointer.json",
};

static int run_folder(const char *root, const char *folder, bool is_format_asserted)
{
	static char *name[FILES_MAX];
	struct counts all = { 0 };
	struct buf dir = { 0 };
	size_t count;

	buf_printf(&dir, "%s/%s", root, folder);
	count = list_files(dir.data, name);
	for (size_t i = 0; i < count; i++) {
		struct counts n;

		buf_reset(&dir);
		buf_printf(&dir, "%s/%s", folder, name[i]);
		if (is_among(dir.data, excluded, sizeof excluded / sizeof *excluded) ||
		    (is_format_asserted && !is_among(name[i], formats,
						    sizeof formats / sizeof *formats))) {
			printf("%-44s not claimed\n", name[i]);
			continue;
		}
		n = run_file(root, dir.data, strncmp(folder, "draft7", 6) == 0,
			is_format_asserted);
		printf("%-44s %4d passed %4d failed %4d skipped\n", name[i], n.passed, n.failed,
			n.skipped);
		all.passed += n.passed;
		all.failed += n.failed;
		all.skipped += n.skipped;
		free(name[i]);
	}
	printf("%s: %d passed, %d failed, %d skipped\n\n", folder, all.passed, all.failed,
		all.skipped);
	buf_release(&dir);
	return all.failed > 0 || all.passed == 0;
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: suite DIR\n");
		return 2;
	}
	rc |= run_folder(argv[1], "draft2020-12", false);
	rc |= run_folder(argv[1], "draft7", false);
	rc |= run_folder(argv[1], "draft2020-12/optional", false);
	rc |= run_folder(argv[1], "draft7/optional", false);
	rc |= run_folder(argv[1], "draft2020-12/optional/format", true);
	rc |= run_folder(argv[1], "draft7/optional/format", true);
	return rc;
}
