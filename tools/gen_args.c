/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_args.c - schema/engine_args.json as C rows and as a page; see gen.c.
 *
 * Members of an argument: name, group, kind and about always; also (other spellings, with
 * dashes), default (as it would be typed), earlier (defaults that older versions had, oldest first:
 * until, default), choices, known (names of vLLM's own where plugins may have others), min, max,
 * since, until, flags, successor (as a key of an experiment's configuration) where they apply.
 * Versions are minor ones, or micro ones: "0.11", "0.11.2".
 */
#include <ctype.h>
#include <stdlib.h>

#include "gen.h"

static const char *const members[] = {
	"name", "also", "group", "kind", "default", "earlier", "choices", "known", "min", "max", "since",
	"until",
	"flags", "successor", "about",
};

struct word {
	const char *name, *c;
};

static const struct word kinds[] = {
	{ "flag", "ENGINE_FLAG" }, { "switch", "ENGINE_SWITCH" }, { "int", "ENGINE_INT" },
	{ "human", "ENGINE_HUMAN" }, { "float", "ENGINE_REAL" }, { "text", "ENGINE_TEXT" },
	{ "list", "ENGINE_LIST" }, { "json", "ENGINE_JSON" },
};

static const struct word flags[] = {
	{ "auto", "ENGINE_AUTO" }, { "none", "ENGINE_NONE" }, { "text", "ENGINE_TEXT_TOO" },
	{ "deprecated", "ENGINE_DEPRECATED" }, { "secret", "ENGINE_SECRET" },
	{ "optional", "ENGINE_OPTIONAL" }, { "dashed", "ENGINE_DASHED" },
	{ "above", "ENGINE_ABOVE" }, { "below", "ENGINE_BELOW" }, { "decided", "ENGINE_DECIDED" },
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const char *word_c(const struct word *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].c;
	return NULL;
}

#define STEP 1000u /* as in engine/args.h */

/* As engine/args.h has versions; 0: absent or none. is_end: to the end of a minor version. */
static unsigned version(const char *text, bool is_end)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor, micro = is_end ? STEP - 1 : 0;

	if (!*text || *end != '.')
		return 0;
	minor = strtoul(end + 1, &end, 10);
	if (*end == '.')
		micro = strtoul(end + 1, &end, 10) + 1;
	return *end ? 0 : (unsigned)((major * STEP + minor) * STEP + micro);
}

static bool has_text(const struct json_value *list, const char *text)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(json_text(&list->item[i], STR("")).p, text) == 0)
			return true;
	return false;
}

/* ---- checking ---- */

static int check_lists(const struct json_value *v, const char *name, struct err *e)
{
	const struct json_value *list = json_get(v, "flags"), *choices = json_get(v, "choices");

	for (size_t i = 0; list && i < list->count; i++)
		if (!word_c(flags, COUNT(flags), json_text(&list->item[i], STR("")).p))
			return err_set(e, ERR_PARSE, "%s: unknown flag", name);
	for (size_t i = 0; choices && i < choices->count; i++) {
		const char *text = json_text(&choices->item[i], STR("")).p;

		if (!*text || strchr(text, ' '))
			return err_set(e, ERR_PARSE, "%s: a choice is empty or has a blank", name);
	}
	return 0;
}

static int check_text(const struct json_value *v, const char *name, struct err *e)
{
	const char *about = gen_member(v, "about");
	size_t n = strlen(about);

	if (n < 5 || about[n - 1] != '.')
		return err_set(e, ERR_PARSE, "%s: about is not a sentence", name);
	for (size_t i = 0; i < v->count; i++) {
		bool is_known = false;

		for (size_t k = 0; k < COUNT(members); k++)
			is_known |= str_is(v->key[i], members[k]);
		if (!is_known)
			return err_set(e, ERR_PARSE, "%s: \"%s\" is no member of an argument", name,
				       v->key[i].p);
	}
	for (size_t i = 0; i < 2; i++) {
		const char *member = i ? "since" : "until";

		if (json_get(v, member) && !version(gen_member(v, member), false))
			return err_set(e, ERR_PARSE, "%s: %s is no version", name, member);
	}
	return 0;
}

static int check_earlier(const struct json_value *v, const char *name, struct err *e)
{
	const struct json_value *list = json_get(v, "earlier");
	unsigned last = version(gen_member(v, "since"), false);

	for (size_t i = 0; list && i < list->count; i++) {
		unsigned until = version(gen_member(&list->item[i], "until"), true);

		if (until <= last)
			return err_set(e, ERR_PARSE, "%s: earlier defaults are not in order of versions",
				       name);
		last = until;
	}
	if (list && json_get(v, "until") && last >= version(gen_member(v, "until"), true))
		return err_set(e, ERR_PARSE, "%s: an earlier default lasts to the end", name);
	return 0;
}

static int check_arg(const struct json_value *schema, size_t i, struct err *e)
{
	const struct json_value *args = json_get(schema, "arguments"), *v = &args->item[i];
	const char *name = gen_member(v, "name");

	if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
		return err_set(e, ERR_PARSE, "argument %zu (%s): name is empty or ill-formed", i, name);
	if (!gen_is_one_of(gen_member(v, "group"), json_get(schema, "groups")))
		return err_set(e, ERR_PARSE, "%s: group \"%s\" is not declared", name,
			       gen_member(v, "group"));
	if (!word_c(kinds, COUNT(kinds), gen_member(v, "kind")))
		return err_set(e, ERR_PARSE, "%s: kind \"%s\" is unknown", name,
			       gen_member(v, "kind"));
	for (size_t k = 0; k < i; k++) {
		const struct json_value *other = json_get(&args->item[k], "also");
		const struct json_value *also = json_get(v, "also");

		if (strcmp(name, gen_member(&args->item[k], "name")) == 0)
			return err_set(e, ERR_PARSE, "%s: two arguments of this name", name);
		for (size_t s = 0; also && s < also->count; s++)
			if (has_text(other, json_text(&also->item[s], STR("")).p))
				return err_set(e, ERR_PARSE, "%s: a spelling is taken", name);
	}
	if (i && strcmp(gen_member(v, "group"), gen_member(&args->item[i - 1], "group")) != 0)
		for (size_t k = 0; k + 1 < i; k++)
			if (strcmp(gen_member(v, "group"), gen_member(&args->item[k], "group")) == 0)
				return err_set(e, ERR_PARSE, "%s: its group is in two places", name);
	if (check_lists(v, name, e) < 0 || check_text(v, name, e) < 0)
		return -1;
	return check_earlier(v, name, e);
}

int gen_args_check(const struct json_value *schema, struct err *e)
{
	const struct json_value *args = json_get(schema, "arguments");

	if (!args || args->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected a list \"arguments\"");
	if (!version(gen_member(schema, "oldest"), false) ||
	    !version(gen_member(schema, "newest"), true))
		return err_set(e, ERR_PARSE, "expected the versions \"oldest\" and \"newest\"");
	for (size_t i = 0; i < args->count; i++)
		if (check_arg(schema, i, e) < 0)
			return -1;
	return 0;
}

/* ---- rows ---- */

/* The texts of a list, blank-separated. */
static void add_joined(const struct json_value *list, const char *between, struct buf *out)
{
	for (size_t i = 0; list && i < list->count; i++)
		buf_printf(out, "%s%s", i ? between : "", json_text(&list->item[i], STR("")).p);
}

static void add_joined_literal(const struct json_value *list, struct buf *out)
{
	struct buf text = { 0 };

	buf_add_text(&text, "");
	add_joined(list, " ", &text);
	gen_add_literal(out, text.len ? text.data : "");
	buf_release(&text);
}

static void add_bound(const struct json_value *v, const char *open, struct buf *out)
{
	if (v)
		buf_add_str(out, v->raw);
	else
		buf_add_text(out, open);
}

static void add_default(const struct json_value *v, struct buf *out)
{
	if (json_get(v, "default"))
		gen_add_literal(out, gen_member(v, "default"));
	else
		buf_add_text(out, "NULL");
	buf_add_text(out, ", ");
}

static void add_earlier(const struct json_value *list, struct buf *out)
{
	if (!list) {
		buf_add_text(out, "NULL, ");
		return;
	}
	buf_add_text(out, "(const struct engine_earlier[]){ ");
	for (size_t i = 0; i < list->count; i++) {
		buf_printf(out, "{ %u, ", version(gen_member(&list->item[i], "until"), true));
		add_default(&list->item[i], out);
		buf_add_text(out, "}, ");
	}
	buf_add_text(out, "{ 0, NULL } }, ");
}

static void add_row(const struct json_value *v, struct buf *out)
{
	const struct json_value *list = json_get(v, "flags");

	buf_add_text(out, "ARG(");
	gen_add_literal(out, gen_member(v, "name"));
	buf_add_text(out, ", ");
	add_joined_literal(json_get(v, "also"), out);
	buf_add_text(out, ", ");
	gen_add_literal(out, gen_member(v, "group"));
	buf_printf(out, ", %s, ", word_c(kinds, COUNT(kinds), gen_member(v, "kind")));
	add_default(v, out);
	add_earlier(json_get(v, "earlier"), out);
	add_joined_literal(json_get(v, "choices"), out);
	buf_add_text(out, ", ");
	add_joined_literal(json_get(v, "known"), out);
	buf_add_text(out, ", ");
	add_bound(json_get(v, "min"), "-INFINITY", out);
	buf_add_text(out, ", ");
	add_bound(json_get(v, "max"), "INFINITY", out);
	buf_printf(out, ", %u, %u, 0", version(gen_member(v, "since"), false),
		   version(gen_member(v, "until"), true));
	for (size_t i = 0; list && i < list->count; i++)
		buf_printf(out, " | %s",
			   word_c(flags, COUNT(flags), json_text(&list->item[i], STR("")).p));
	buf_add_text(out, ", ");
	gen_add_literal(out, gen_member(v, "about"));
	buf_add_text(out, ", ");
	gen_add_literal(out, gen_member(v, "successor"));
	buf_add_text(out, ")\n");
}

void gen_args_rows(const struct json_value *schema, struct buf *out)
{
	const struct json_value *args = json_get(schema, "arguments");

	buf_add_text(out, "/* Generated by tools/gen.c from schema/engine_args.json. */\n");
	buf_printf(out, "STAND(%u, %u)\n", version(gen_member(schema, "oldest"), false),
		   version(gen_member(schema, "newest"), true));
	for (size_t i = 0; i < args->count; i++)
		add_row(&args->item[i], out);
}

/* ---- page ---- */

static void add_kind_cell(const struct json_value *v, struct buf *out)
{
	const struct json_value *choices = json_get(v, "choices"), *list = json_get(v, "flags");
	const struct json_value *min = json_get(v, "min"), *max = json_get(v, "max");
	const char *kind = gen_member(v, "kind");

	buf_add_text(out, strcmp(kind, "human") == 0 ? "integer, 4k, 4K" :
		     strcmp(kind, "int") == 0 ? "integer" : strcmp(kind, "float") == 0 ? "number" :
		     strcmp(kind, "json") == 0 ? "JSON" : kind);
	if (min)
		buf_printf(out, ", %s%.*s", has_text(list, "above") ? "above " : "from ",
			   (int)min->raw.n, min->raw.p);
	if (max)
		buf_printf(out, " %s %.*s", has_text(list, "below") ? "to below" : "to",
			   (int)max->raw.n, max->raw.p);
	if (choices) {
		buf_add_text(out, ": ");
		add_joined(choices, ", ", out);
	}
	if (json_get(v, "known")) {
		buf_add_text(out, ": ");
		add_joined(json_get(v, "known"), ", ", out);
		buf_add_text(out, ", or a plugin's");
	}
	if (has_text(list, "auto"))
		buf_add_text(out, ", or auto");
	if (has_text(list, "text"))
		buf_add_text(out, " or text");
}

static void add_version_cell(const struct json_value *v, struct buf *out)
{
	const char *since = gen_member(v, "since"), *until = gen_member(v, "until");

	if (*since && *until)
		buf_printf(out, "%s to %s", since, until);
	else if (*until)
		buf_printf(out, "to %s", until);
	else if (*since)
		buf_printf(out, "from %s", since);
	if (has_text(json_get(v, "flags"), "deprecated"))
		buf_printf(out, "%sdeprecated", *since || *until ? ", " : "");
}

static void add_default_cell(const struct json_value *v, struct buf *out)
{
	const struct json_value *list = json_get(v, "earlier");

	if (*gen_member(v, "default"))
		buf_printf(out, "`%s`", gen_member(v, "default"));
	else if (list)
		buf_add_text(out, "none");
	for (size_t i = list ? list->count : 0; i-- > 0;) {
		const char *was = gen_member(&list->item[i], "default");

		buf_printf(out, "; to %s %s%s%s", gen_member(&list->item[i], "until"), *was ? "`" : "",
			   *was ? was : "none", *was ? "`" : "");
	}
	if (has_text(json_get(v, "flags"), "decided"))
		buf_printf(out, "%sdecided at start", list || *gen_member(v, "default") ? "; " : "");
}

static void add_line(const struct json_value *v, struct buf *out)
{
	const struct json_value *also = json_get(v, "also");

	buf_printf(out, "| `--%s`", gen_member(v, "name"));
	for (size_t i = 0; also && i < also->count; i++)
		buf_printf(out, " `%s`", json_text(&also->item[i], STR("")).p);
	buf_add_text(out, " | ");
	add_kind_cell(v, out);
	buf_add_text(out, " | ");
	add_default_cell(v, out);
	buf_add_text(out, " | ");
	add_version_cell(v, out);
	buf_add_text(out, " | ");
	gen_add_cell(out, gen_member(v, "about"));
	if (*gen_member(v, "successor"))
		buf_printf(out, " Now `%s`.", gen_member(v, "successor"));
	buf_add_text(out, " |\n");
}

void gen_args_page(const struct json_value *schema, struct buf *out)
{
	const struct json_value *groups = json_get(schema, "groups");
	const struct json_value *args = json_get(schema, "arguments");

	buf_printf(out,
		"<!-- Generated from schema/engine_args.json by `make reference`. -->\n"
		"# Arguments of vLLM's server\n\n"
		"The arguments of `vllm serve`, versions %s to %s, as `profllm` checks them before it\n"
		"starts a server. Versions and defaults were read from the sources of every release of\n"
		"that range (tests/peer/args/). Versions are minor ones unless they have three numbers;\n"
		"an argument without a version is in all of them. The first default is the newest\n"
		"version's, followed by those of older versions, newest first; `decided at start`: unset\n"
		"(or `auto`), the server chooses a value when it starts. A `switch` is turned off by\n"
		"`--no-`NAME. A key of a JSON argument may be given by itself:\n"
		"`--compilation-config.mode 3`. `-O3` is `--optimization-level 3`; up to 0.11 it was\n"
		"`--compilation-config` with level 3.\n", gen_member(schema, "oldest"),
		gen_member(schema, "newest"));
	for (size_t g = 0; g < groups->count; g++) {
		buf_printf(out, "\n## %s\n\n%s\n\n| Argument | Value | Default | Versions | What it is "
			   "|\n|---|---|---|---|---|\n", gen_member(&groups->item[g], "name"),
			   gen_member(&groups->item[g], "about"));
		for (size_t i = 0; i < args->count; i++)
			if (strcmp(gen_member(&args->item[i], "group"),
				   gen_member(&groups->item[g], "name")) == 0)
				add_line(&args->item[i], out);
	}
}
