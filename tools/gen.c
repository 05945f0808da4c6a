/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen.c - what stands in schema/ as C rows and as pages. Runs while building.
 *
 *   gen rows SCHEMA OUT      FIELD(...) and NAME(...) lines for src/schema/schema.c
 *   gen page SCHEMA OUT      docs/reference/result.md
 *   gen arg-rows SCHEMA OUT  STAND(...) and ARG(...) lines for src/engine/args.c
 *   gen arg-page SCHEMA OUT  docs/reference/engine-args.md
 *   gen experiment-schema SCHEMA OUT   the JSON Schema of an experiment's document
 *   gen experiment-literal SCHEMA OUT  that as a C string, for src/experiment/document.c
 *   gen experiment-types SCHEMA OUT    web/src/lib/experiment.ts
 *   gen experiment-page SCHEMA OUT     docs/reference/experiment-document.md
 *   gen api-literal SCHEMA OUT         the OpenAPI document as a C string, for src/web/data_api.c
 *   gen api-types SCHEMA OUT           web/src/lib/api.ts
 *   gen api-page SCHEMA OUT            docs/reference/api.md
 *   gen columns SCHEMA OUT             COLUMN(...) lines for src/store/known.c
 *
 * Those of experiments and columns take the other schemas from beside SCHEMA.
 * The schema is checked on the way: every field complete, keys and names unique,
 * groups and places declared. A fault is one sentence and exit status 1.
 */
#include "gen.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"

/* The members of a field, in the order of struct schema_field. */
static const char *const members[] = {
	"key", "unit", "type", "group", "since", "when", "definition", "better",
};
#define MEMBERS (sizeof(members) / sizeof(*members))
/* Members that a field may have besides: the range of its numbers, both ends belong to it. */
static const char *const range[] = { "min", "max" };

const char *gen_member(const struct json_value *v, const char *name)
{
	return json_text(json_get(v, name), STR("")).p;
}

bool gen_is_one_of(const char *text, const struct json_value *list)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(text, gen_member(&list->item[i], "name")) == 0)
			return true;
	return false;
}

/* ---- checking ---- */

static int check_places(const struct json_value *names, const char *key, struct err *e)
{
	char place[32];

	for (const char *p = strchr(key, '<'); p; p = strchr(p + 1, '<')) {
		snprintf(place, sizeof(place), "%.*s", (int)strcspn(p + 1, ">"), p + 1);
		if (strcmp(place, "p") != 0 && !json_get(names, place))
			return err_set(e, ERR_PARSE, "%s: <%s> is not among the names", key, place);
	}
	return 0;
}

static bool has_number(const struct json_value *f, const char *name)
{
	const struct json_value *v = json_get(f, name);

	return v && (v->kind == JSON_INT || v->kind == JSON_REAL);
}

static int check_field(const struct json_value *schema, size_t i, struct err *e)
{
	const struct json_value *fields = json_get(schema, "fields"), *f = &fields->item[i];
	const char *key = gen_member(f, "key"), *better = gen_member(f, "better");
	const char *definition = gen_member(f, "definition");
	size_t more = 0;

	for (size_t k = 0; k < MEMBERS; k++)
		if (strcmp(members[k], "when") != 0 &&
		    (!json_get(f, members[k]) || json_get(f, members[k])->kind != JSON_STRING))
			return err_set(e, ERR_PARSE, "field %zu (%s): no text \"%s\"", i, key,
				       members[k]);
	for (size_t k = 0; k < 2; k++)
		more += has_number(f, range[k]);
	if (f->count != MEMBERS - !json_get(f, "when") + more)
		return err_set(e, ERR_PARSE, "%s: a member that is none of a field", key);
	if (!*key || !*gen_member(f, "type") || !*gen_member(f, "since"))
		return err_set(e, ERR_PARSE, "field %zu (%s): key, type and since may not be empty",
			       i, key);
	if (strlen(definition) < 8 || definition[strlen(definition) - 1] != '.')
		return err_set(e, ERR_PARSE, "%s: the definition is not a sentence", key);
	if (!gen_is_one_of(gen_member(f, "group"), json_get(schema, "groups")))
		return err_set(e, ERR_PARSE, "%s: group \"%s\" is not declared", key,
			       gen_member(f, "group"));
	if (strcmp(better, "higher") != 0 && strcmp(better, "lower") != 0 &&
	    strcmp(better, "none") != 0)
		return err_set(e, ERR_PARSE, "%s: better is \"%s\"; expected higher, lower or none",
			       key, better);
	for (size_t k = 0; k < i; k++)
		if (strcmp(key, gen_member(&fields->item[k], "key")) == 0)
			return err_set(e, ERR_PARSE, "%s: two fields with this key", key);
	return check_places(json_get(schema, "names"), key, e);
}

static int check(const struct json_value *schema, struct err *e)
{
	const struct json_value *fields = json_get(schema, "fields");
	const struct json_value *names = json_get(schema, "names");

	if (!fields || fields->kind != JSON_ARRAY || !names || names->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "expected a list \"fields\" and an object \"names\"");
	for (size_t i = 0; i < fields->count; i++)
		if (check_field(schema, i, e) < 0)
			return -1;
	return 0;
}

/* ---- rows ---- */

void gen_add_literal(struct buf *out, const char *text)
{
	json_quote(out, str_of(text), true); /* its escapes are C's for printable text */
}

static void write_rows(const struct json_value *schema, struct buf *out)
{
	const struct json_value *fields = json_get(schema, "fields");
	const struct json_value *names = json_get(schema, "names");

	buf_add_text(out, "/* Generated by tools/gen.c from schema/result.json. */\n");
	for (size_t i = 0; i < fields->count; i++) {
		const struct json_value *f = &fields->item[i];
		const char *better = gen_member(f, "better");

		buf_add_text(out, "FIELD(");
		for (size_t k = 0; k + 1 < MEMBERS; k++) {
			gen_add_literal(out, gen_member(f, members[k]));
			buf_add_text(out, ", ");
		}
		buf_printf(out, "SCHEMA_%s)\n", *better == 'h' ? "HIGHER" :
			   *better == 'l' ? "LOWER" : "NONE");
	}
	for (size_t i = 0; i < names->count; i++) {
		const struct json_value *list = &names->item[i];

		for (size_t k = 0; k < list->count; k++) {
			buf_add_text(out, "NAME(");
			gen_add_literal(out, names->key[i].p);
			buf_add_text(out, ", ");
			gen_add_literal(out, gen_member(&list->item[k], "name"));
			buf_add_text(out, ", ");
			gen_add_literal(out, gen_member(&list->item[k], "definition"));
			buf_add_text(out, ")\n");
		}
	}
}

/* ---- page ---- */

/* A table cell: a bar would end it, < would begin a tag. */
void gen_add_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<' || *text == '*')
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
}

static void write_group(const struct json_value *schema, const struct json_value *group,
			struct buf *out)
{
	const struct json_value *fields = json_get(schema, "fields");

	buf_printf(out, "\n## %s\n\n%s\n\n| Key | Unit | Type | Better | Definition |\n"
		   "|---|---|---|---|---|\n", gen_member(group, "title"), gen_member(group, "about"));
	for (size_t i = 0; i < fields->count; i++) {
		const struct json_value *f = &fields->item[i];

		if (strcmp(gen_member(f, "group"), gen_member(group, "name")) != 0)
			continue;
		buf_printf(out, "| `%s` | %s | %s | %s | ", gen_member(f, "key"), gen_member(f, "unit"),
			   gen_member(f, "type"),
			   strcmp(gen_member(f, "better"), "none") == 0 ? "" : gen_member(f, "better"));
		gen_add_cell(out, gen_member(f, "definition"));
		if (*gen_member(f, "when")) {
			buf_add_text(out, " Present: ");
			gen_add_cell(out, gen_member(f, "when"));
			buf_add_char(out, '.');
		}
		buf_add_text(out, " |\n");
	}
}

static void write_page(const struct json_value *schema, struct buf *out)
{
	const struct json_value *groups = json_get(schema, "groups");
	const struct json_value *names = json_get(schema, "names");

	buf_add_text(out,
		"<!-- Generated from schema/result.json by `make reference`. -->\n"
		"# The result file of `bench serve`\n\n"
		"One JSON object: first the keys of `vllm bench serve` in its order, then one key\n"
		"`profllm` with everything of ours. Keys given with `--metadata` stand after\n"
		"`num_prompts`. A dot leads into an object, `[]` into the elements of a list.\n"
		"Places such as `<metric>` stand for the names listed at the end, `<p>` for a\n"
		"percentile as it was asked for (`p99_ttft_ms`, `p99.9_itl_ms`). Numbers may be\n"
		"`null` where the definition divides by nothing. They are 0 or more, but for lags,\n"
		"temperatures and places in time; shares end at 1 and percentages at 100 (`min` and\n"
		"`max` in schema/result.json). The results store leaves out what cannot be.\n");
	for (size_t i = 0; i < groups->count; i++)
		write_group(schema, &groups->item[i], out);
	buf_add_text(out, "\n## Names\n");
	for (size_t i = 0; i < names->count; i++) {
		const struct json_value *list = &names->item[i];

		buf_printf(out, "\n`<%s>`:\n\n", names->key[i].p);
		for (size_t k = 0; k < list->count; k++)
			buf_printf(out, "- `%s`: %s\n", gen_member(&list->item[k], "name"),
				   gen_member(&list->item[k], "definition"));
	}
}

static const struct kind {
	const char *name;
	bool is_several; /* schemas, not one */
	int (*check)(const struct json_value *schema, struct err *e);
	void (*write)(const struct json_value *schema, struct buf *out);
} kinds[] = {
	{ "rows", false, check, write_rows },
	{ "page", false, check, write_page },
	{ "arg-rows", false, gen_args_check, gen_args_rows },
	{ "arg-page", false, gen_args_check, gen_args_page },
	{ "experiment-schema", true, gen_experiment_check, gen_experiment_schema },
	{ "experiment-literal", true, gen_experiment_check, gen_experiment_literal },
	{ "experiment-types", true, gen_experiment_check, gen_experiment_types },
	{ "experiment-page", true, gen_experiment_check, gen_experiment_page },
	{ "api-literal", false, gen_api_check, gen_api_literal },
	{ "api-types", false, gen_api_check, gen_api_types },
	{ "api-page", false, gen_api_check, gen_api_page },
	{ "columns", true, gen_columns_check, gen_columns_rows },
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static int read_one(const char *path, struct arena *a, struct json_value *out, struct err *e)
{
	struct buf text = { 0 };
	struct json_value *v;
	int rc = -1;

	if (file_read(path, BUF_BYTES_MAX, &text, e) < 0)
		goto done;
	if (json_parse(a, arena_str(a, buf_str(&text)), &v, e) < 0) {
		err_wrap(e, "%s", path);
		goto done;
	}
	*out = *v;
	rc = 0;
done:
	buf_release(&text);
	return rc;
}

/* The schemas of the folder that path lies in, as members of one object. */
static int read_all(const char *path, struct arena *a, struct json_value *out, struct err *e)
{
	static const char *const names[] = { "experiment", "result", "engine_args", "columns" };
	const size_t n = sizeof(names) / sizeof(*names);

	*out = (struct json_value){ .kind = JSON_OBJECT };
	out->count = n;
	out->key = arena_alloc(a, n * sizeof(*out->key));
	out->item = arena_alloc(a, n * sizeof(*out->item));
	for (size_t i = 0; i < n; i++) {
		char *beside = file_beside(path, arena_printf(a, "%s.json", names[i]));
		int rc = read_one(beside, a, &out->item[i], e);

		free(beside);
		if (rc < 0)
			return -1;
		out->key[i] = str_of(names[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 4 ? kind_of(argv[1]) : NULL;
	struct json_value schema;
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	int status = 1;

	if (!kind) {
		fprintf(stderr, "usage: gen KIND SCHEMA OUT\n");
		return 2;
	}
	if ((kind->is_several ? read_all : read_one)(argv[2], &a, &schema, &e) < 0)
		goto done;
	if (kind->check(&schema, &e) < 0) {
		err_wrap(&e, "%s", argv[2]);
		goto done;
	}
	kind->write(&schema, &out);
	if (file_write_atomic(argv[3], buf_str(&out), &e) == 0)
		status = 0;
done:
	if (status)
		fprintf(stderr, "gen: %s\n", e.text);
	arena_release(&a);
	buf_release(&out);
	return status;
}
