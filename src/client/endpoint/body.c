/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - ordered members of a request body; see endpoint.h. */
#include <assert.h>
#include <ctype.h>

#include "client/endpoint/endpoint.h"
#include "core/json/read.h"
#include "core/json/write.h"

#define BODY_MEMBERS_MAX (sizeof(((struct body *)0)->member) / sizeof(struct body_member))

int body_put_str(struct body *b, struct str key, struct str value, struct err *e)
{
	size_t i = 0;

	while (i < b->n && !str_eq(b->member[i].key, key))
		i++;
	if (i == BODY_MEMBERS_MAX)
		return err_set(e, ERR_LIMIT, "a request body has more than %zu keys",
			       BODY_MEMBERS_MAX);
	b->member[i] = (struct body_member){ key, value };
	if (i == b->n)
		b->n++;
	return 0;
}

int body_put(struct body *b, const char *key, struct str json, struct err *e)
{
	return body_put_str(b, str_of(key), json, e);
}

int body_overlay(struct body *b, struct str object, struct err *e)
{
	struct json_scan scan = { object, 0 };
	struct json_slice all, value;
	struct json_iter it;
	struct str key;
	int more;

	if (object.n == 0)
		return 0;
	if (json_next(&scan, &all, e) < 0)
		return -1;
	if (all.kind != JSON_OBJECT)
		return err_set(e, ERR_RUN, "extra body keys must be a JSON object");
	it = json_iter(all);
	while ((more = json_each(&it, &key, &value)) == 1) {
		/* The slice of a string lies between its quotes; a body needs them. */
		if (value.kind == JSON_STRING)
			value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
		if (body_put_str(b, key, value.raw, e) < 0)
			return -1;
	}
	assert(more == 0); /* json_next validated the whole */
	return 0;
}

void body_write(const struct body *b, struct buf *out)
{
	buf_add_char(out, '{');
	for (size_t i = 0; i < b->n; i++) {
		if (i)
			buf_add_text(out, ", ");
		buf_add_char(out, '"');
		buf_add_str(out, b->member[i].key);
		buf_add_text(out, "\": ");
		buf_add_str(out, b->member[i].value);
	}
	buf_add_char(out, '}');
}

static bool is_among(struct str key, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(key, keys[i]))
			return true;
	return false;
}

static bool open_object(struct str json, struct json_iter *it)
{
	struct json_scan scan = { json, 0 };
	struct json_slice all;

	if (json_next(&scan, &all, NULL) < 0 || all.kind != JSON_OBJECT)
		return false;
	*it = json_iter(all);
	return true;
}

int body_omit(struct str json, const char *const *keys, size_t n, struct buf *out, struct err *e)
{
	struct json_slice value;
	struct json_iter it;
	struct str key;
	const char *sep = "";

	if (!open_object(json, &it))
		return err_set(e, ERR_USAGE, "--omit-body-keys: the API's requests are not JSON objects");
	buf_add_char(out, '{');
	while (json_each(&it, &key, &value) == 1) {
		if (is_among(key, keys, n))
			continue;
		if (value.kind == JSON_STRING)
			value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
		buf_printf(out, "%s\"", sep);
		buf_add_str(out, key);
		buf_add_text(out, "\": ");
		buf_add_str(out, value.raw);
		sep = ", ";
	}
	buf_add_char(out, '}');
	return 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* As a whole word: "stop" is not named by "stopped". */
static bool names(struct str text, struct str key)
{
	for (size_t i = 0; key.n && i + key.n <= text.n; i++)
		if (memcmp(text.p + i, key.p, key.n) == 0 && (i == 0 || !is_word(text.p[i - 1])) &&
		    (i + key.n == text.n || !is_word(text.p[i + key.n])))
			return true;
	return false;
}

static void add_key(struct str key, struct buf *out)
{
	buf_add_text(out, out->len ? "," : "");
	buf_add_str(out, key);
}

void body_own_keys(struct str json, struct str overrides, struct buf *out)
{
	struct json_slice all, value, ignored;
	struct json_scan scan = { json, 0 };
	struct json_iter it;
	char name[128];
	struct str key;

	if (json_next(&scan, &all, NULL) < 0 || !open_object(overrides, &it))
		return;
	while (json_each(&it, &key, &value) == 1) {
		snprintf(name, sizeof(name), "%.*s", (int)key.n, key.p);
		if (json_member(all, name, &ignored))
			add_key(key, out);
	}
}

void body_named_keys(struct str json, struct str refusal, struct buf *out)
{
	static const char *const needed[] = { "model", "prompt", "messages", "input", "stream",
					      "max_tokens", "max_completion_tokens" };
	struct json_slice value;
	struct json_iter it;
	struct str key;

	if (!open_object(json, &it))
		return;
	while (json_each(&it, &key, &value) == 1) {
		if (is_among(key, needed, sizeof(needed) / sizeof(*needed)) || !names(refusal, key))
			continue;
		add_key(key, out);
	}
}
