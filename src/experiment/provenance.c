/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/provenance.c - where the measured engine came from; see environment.h. */
#include <string.h>

#include "base/str.h"
#include "experiment/environment.h"
#include "json/write.h"

#define NAMES 5

/* A value and the variables it is taken from: ours, GitHub's, GitLab's, Buildkite's. */
static const struct {
	const char *key;
	const char *variable[NAMES];
} values[] = {
	/* A commit of the checkout is the engine's only when the engine's own pipeline runs. */
	{ "engine_commit", { "PROFLLM_ENGINE_COMMIT", "VLLM_COMMIT", NULL } },
	{ "branch", { "PROFLLM_ENGINE_BRANCH", "GITHUB_HEAD_REF", "CI_COMMIT_REF_NAME",
		      "BUILDKITE_BRANCH", NULL } },
	{ "pr", { "PROFLLM_ENGINE_PR", "CI_MERGE_REQUEST_IID", "BUILDKITE_PULL_REQUEST", NULL } },
	{ "build", { "PROFLLM_BUILD", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILDKITE_BUILD_NUMBER",
		     NULL } },
	{ "trigger", { "PROFLLM_TRIGGER", "GITHUB_EVENT_NAME", "CI_PIPELINE_SOURCE",
		       "BUILDKITE_SOURCE", NULL } },
};
#define VALUES (sizeof(values) / sizeof(*values))

static bool is_hex(char c)
{
	return str_hex(c) >= 0;
}

/* "0.11.1.dev12+gabcdef0.d20250101": abcdef0; empty: a release. */
static struct str version_commit(const char *version)
{
	const char *plus = version ? strchr(version, '+') : NULL, *at = plus;

	while (at) {
		size_t n = 0;

		if (at[1] == 'g')
			while (is_hex(at[2 + n]))
				n++;
		if (n >= 7 && n <= 40 && (!at[2 + n] || at[2 + n] == '.'))
			return (struct str){ at + 2, n };
		at = strchr(at + 1, '.');
	}
	return STR("");
}

/* What a pipeline says when there is nothing to say. */
static bool is_told(const char *text)
{
	return text && *text && strcmp(text, "false") != 0;
}

/* "refs/pull/123/merge" of GitHub: 123. */
static struct str pull_of(const char *ref)
{
	struct str rest = str_of(ref ? ref : "");

	if (!str_starts(rest, STR("refs/pull/")))
		return STR("");
	rest = (struct str){ rest.p + 10, rest.n - 10 };
	return str_cut(&rest, '/');
}

static struct str find(size_t i, const struct json_value *given, const char *server_version,
		       const char *(*get)(const char *name))
{
	const struct json_value *own = json_get(given, values[i].key);

	if (own && own->kind == JSON_STRING)
		return own->text;
	if (own && own->kind == JSON_INT)
		return own->raw;
	for (const char *const *name = values[i].variable; *name; name++)
		if (is_told(get(*name)))
			return str_of(get(*name));
	if (i == 0)
		return version_commit(server_version);
	if (strcmp(values[i].key, "pr") == 0)
		return pull_of(get("GITHUB_REF"));
	if (strcmp(values[i].key, "branch") == 0 && is_told(get("GITHUB_REF_NAME")))
		return str_of(get("GITHUB_REF_NAME"));
	return STR("");
}

static bool is_one_of_ours(struct str key)
{
	for (size_t i = 0; i < VALUES; i++)
		if (str_is(key, values[i].key))
			return true;
	return false;
}

void provenance_json(const struct json_value *given, const char *server_version,
		     const char *(*get)(const char *name), struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	for (size_t i = 0; i < VALUES; i++) {
		struct str text = find(i, given, server_version, get);

		json_key(&w, values[i].key);
		if (text.n)
			json_put_str(&w, text);
		else
			json_put_null(&w);
	}
	for (size_t i = 0; given && given->kind == JSON_OBJECT && i < given->count; i++) {
		const struct json_value *v = &given->item[i];

		if (is_one_of_ours(given->key[i]))
			continue;
		json_key_str(&w, given->key[i]);
		if (v->kind == JSON_INT || v->kind == JSON_REAL)
			json_put_str(&w, v->raw);
		else
			json_put_str(&w, json_text(v, STR("")));
	}
	json_end_object(&w);
}
