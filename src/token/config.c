/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - the files beside a tokenizer that say which tokens are special and
 * whether the model has a chat template. A tekken.json says itself what is special.
 *
 * special_tokens_map.json counts only where tokenizer_config.json does not carry
 * the added tokens itself, as in upstream. The Llama classes build their
 * post-processor from add_bos_token and add_eos_token instead of the file's.
 */
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "token/model.h"
#include "token/reader.h"

static const char *const SPECIAL_NAMES[] = { "bos_token", "eos_token", "unk_token", "sep_token",
	"pad_token", "cls_token", "mask_token" };

/* The text with {} in place of what a member of its object holds. */
static struct str without(struct str text, const char *member, struct buf *shorter)
{
	struct json_scan scan = { .text = text };
	struct json_slice root, value;

	if (json_next(&scan, &root, NULL) || !json_member(root, member, &value) ||
		value.kind != JSON_OBJECT)
		return text;
	buf_add(shorter, text.p, (size_t)(value.raw.p - text.p));
	buf_add_text(shorter, "{}");
	buf_add(shorter, value.raw.p + value.raw.n,
		(size_t)(text.p + text.n - value.raw.p) - value.raw.n);
	return buf_str(shorter);
}

int model_read_beside(struct arena *a, const char *path, const char *name, const char *emptied,
	struct json_value **out, struct err *e)
{
	char *full = file_beside(path, name);
	struct buf shorter = { 0 };
	struct str text = { 0 }, json;
	int rc = 0;

	*out = NULL;
	if (!file_exists(full))
		goto done;
	rc = file_map(full, &text, e);
	if (rc)
		goto done;
	json = emptied ? without(text, emptied, &shorter) : text;
	if (json.n > TOKEN_CONFIG_BYTES_MAX) {
		rc = err_set(e, ERR_LIMIT, "%s has %zu bytes; at most %u are read "
			"(TOKEN_CONFIG_BYTES_MAX)", full, json.n, TOKEN_CONFIG_BYTES_MAX);
	} else if (json_parse(a, json, out, e)) {
		rc = err_wrap(e, "%s is not JSON", full);
	} else if ((*out)->kind != JSON_OBJECT) {
		rc = err_set(e, ERR_PARSE, "%s does not hold a JSON object", full);
	}
	file_unmap(text);
done:
	free(full);
	buf_release(&shorter);
	return rc;
}

/* A token is its text, or an object with "content". */
static struct str token_text(const struct json_value *v)
{
	if (v && v->kind == JSON_OBJECT)
		v = json_get(v, "content");
	return json_text(v, STR(""));
}

static void add_special(struct model *m, const struct json_value *v)
{
	struct str text = token_text(v);
	uint32_t id = text.n ? model_find(m, text) : VOCAB_NONE;

	if (id == VOCAB_NONE)
		return;
	for (size_t i = 0; i < m->special.count; i++)
		if (m->special.id[i] == id)
			return;
	ids_push(&m->special, id);
}

/* A tekken.json declares them itself: all in front of the ranks. */
static void read_tekken_specials(struct model *m)
{
	for (uint32_t id = 0; id < m->vocab.id_limit; id++)
		if (m->vocab.entry[id].is_special)
			ids_push(&m->special, id);
}

/* What the first of the two objects that has a member says of it. */
static const struct json_value *either(const struct json_value *a, const struct json_value *b,
	const char *name)
{
	const struct json_value *v = json_get(a, name);

	return v ? v : json_get(b, name);
}

static int read_specials(struct model *m, const struct json_value *config,
	const struct json_value *map, struct err *e)
{
	const struct json_value *first = map, *second = config, *more;

	if (json_get(config, "added_tokens_decoder"))
		first = config, second = NULL;
	for (size_t i = 0; i < sizeof SPECIAL_NAMES / sizeof *SPECIAL_NAMES; i++)
		add_special(m, either(first, second, SPECIAL_NAMES[i]));
	more = either(first, second, "additional_special_tokens");
	if (more && more->kind == JSON_ARRAY && more->count > TOKEN_ADDED_MAX)
		return err_set(e, ERR_LIMIT, "more than %d additional_special_tokens "
			"(TOKEN_ADDED_MAX)", TOKEN_ADDED_MAX);
	for (size_t i = 0; more && more->kind == JSON_ARRAY && i < more->count; i++)
		add_special(m, more->item + i);
	return 0;
}

/* Rebuilds what stands around a sequence where the tokenizer's class does so. */
static int read_bos_eos(struct model *m, const struct json_value *config, const char *path,
	struct err *e)
{
	static const struct {
		const char *flag, *token;
	} part[] = { { "add_bos_token", "bos_token" }, { "add_eos_token", "eos_token" } };
	struct str class = json_text(json_get(config, "tokenizer_class"), STR(""));

	if (!str_is(class, "LlamaTokenizer") && !str_is(class, "LlamaTokenizerFast"))
		return 0;
	if (!json_get(config, "add_bos_token") && !json_get(config, "add_eos_token"))
		return 0;
	ids_reset(&m->before);
	ids_reset(&m->after);
	for (size_t i = 0; i < 2; i++) {
		struct str text = token_text(json_get(config, part[i].token));
		uint32_t id = model_find(m, text);

		if (!json_bool(json_get(config, part[i].flag), i == 0))
			continue;
		if (id == VOCAB_NONE)
			return err_set(e, ERR_PARSE,
				"the tokenizer_config.json beside %s sets %s, but its "
				"%s \"%.*s\" is no token",
				path, part[i].flag, part[i].token,
				(int)(text.n < 64 ? text.n : 64), text.p);
		ids_push(i ? &m->after : &m->before, id);
	}
	return 0;
}

static bool has_template_file(const char *path)
{
	static const char *const name[] = { "chat_template.jinja", "chat_template.json" };
	bool is_there = false;

	for (size_t i = 0; i < 2 && !is_there; i++) {
		char *full = file_beside(path, name[i]);

		is_there = file_exists(full);
		free(full);
	}
	return is_there;
}

int model_load_config(struct model *m, const char *path, struct err *e)
{
	struct arena arena = { 0 };
	struct json_value *config, *map;
	int rc = -1;

	if (model_read_beside(&arena, path, "tokenizer_config.json", "added_tokens_decoder",
		&config, e) ||
		model_read_beside(&arena, path, "special_tokens_map.json", NULL, &map, e))
		goto done;
	if (strcmp(m->format, reader_tekken.name) == 0) {
		read_tekken_specials(m);
	} else {
		if (read_specials(m, config, map, e)) {
			err_wrap(e, "the files beside %s", path);
			goto done;
		}
		if (read_bos_eos(m, config, path, e))
			goto done;
	}
	m->has_chat_template = has_template_file(path);
	if (json_get(config, "chat_template") &&
		json_get(config, "chat_template")->kind != JSON_NULL)
		m->has_chat_template = true;
	rc = 0;
done:
	arena_release(&arena);
	return rc;
}
