/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - finding a tokenizer's files and reading them; see load.h.
 *
 * Names are chosen by the same rules in a directory and on the hub.
 */
#include "input/token/load.h"

#include <assert.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/encode/model.h"
#include "input/fetch/hub.h"
#include "input/token/reader.h"

/* ---- Where the files are ---- */

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* In the order of load.h. */
static const struct kind {
	const char *name;
	const char *suffix; /* one other file that ends so will do */
	const char *beside; /* needed, too */
} KINDS[] = {
	{ "tokenizer.json", NULL, NULL },
	{ "tekken.json", NULL, NULL },
	{ "tiktoken.model", ".tiktoken", NULL },
	{ "tokenizer.model", ".model", NULL },
	{ "vocab.json", NULL, "merges.txt" },
};
#define KINDS_TEXT "tokenizer.json, tekken.json, tiktoken.model, *.tiktoken, tokenizer.model, " \
	"*.model, vocab.json with merges.txt"

/* Files that readers look for next to any of them. */
static const char *const BESIDE[] = { "tokenizer_config.json", "special_tokens_map.json",
	"added_tokens.json", "chat_template.jinja" };

static const char *const WEIGHTS[] = { ".safetensors", ".bin", ".gguf", ".pt", ".pth" };

/* A place's files. The strings are borrowed, or those of a listed directory. */
struct file_names {
	const char *const *name;
	size_t count;
};

static bool has_name(const struct file_names *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->name[i], name) == 0)
			return true;
	return false;
}

static bool ends(const char *name, const char *suffix)
{
	return str_ends(str_of(name), str_of(suffix));
}

/* Files in subfolders of a repository do not count. */
static const char *one_that_ends(const struct file_names *n, const char *suffix, const char **other)
{
	const char *found = NULL;

	*other = NULL;
	for (size_t i = 0; i < n->count; i++) {
		if (!ends(n->name[i], suffix) || strchr(n->name[i], '/'))
			continue;
		if (found)
			*other = n->name[i];
		else
			found = n->name[i];
	}
	return found;
}

static const char *first_weights(const struct file_names *n)
{
	for (size_t k = 0; k < COUNT(WEIGHTS); k++)
		for (size_t i = 0; i < n->count; i++)
			if (ends(n->name[i], WEIGHTS[k]))
				return n->name[i];
	return NULL;
}

struct reader_choice {
	const char *name, *beside;
};

/* The form that Mistral's own library reads; NULL: there is none. */
static const char *mistral_form(const struct file_names *n)
{
	const char *found = NULL;

	if (has_name(n, "tekken.json"))
		return "tekken.json";
	for (size_t i = 0; i < n->count; i++)
		if (str_starts(str_of(n->name[i]), STR("tokenizer.model.v")) &&
			(!found || strverscmp(n->name[i], found) > 0))
			found = n->name[i];
	return found;
}

/* place: "directory x", "model x". */
static int choose(const struct file_names *n, const char *mode, const char *place,
		  struct reader_choice *c, struct err *e)
{
	const char *weights = first_weights(n), *other;

	*c = (struct reader_choice){ 0 };
	if (mode && strcmp(mode, "mistral") == 0)
		c->name = mistral_form(n);
	if (c->name)
		return 0;
	for (size_t k = 0; k < COUNT(KINDS); k++) {
		*c = (struct reader_choice){ KINDS[k].name, KINDS[k].beside };
		if (has_name(n, c->name) && (!c->beside || has_name(n, c->beside)))
			return 0;
		if (!KINDS[k].suffix)
			continue;
		c->name = one_that_ends(n, KINDS[k].suffix, &other);
		if (c->name && other)
			return err_set(e, ERR_TOKENIZER_MISSING, "%s has several tokenizers (%s, %s): name one "
				"by its path", place, c->name, other);
		if (c->name)
			return 0;
	}
	if (weights)
		return err_set(e, ERR_TOKENIZER_MISSING, "%s has no tokenizer, only weights (%s); it needs one "
			"of " KINDS_TEXT, place, weights);
	return err_set(e, ERR_TOKENIZER_MISSING, "%s has no " KINDS_TEXT, place);
}

/* ---- a directory ---- */

static int list_dir(const char *dir, struct hub_list *list, struct err *e)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return err_set(e, ERR_IO, "cannot read directory %s", dir);
	while ((entry = readdir(d)) && list->count < HUB_FILES_MAX) {
		if ((list->count & (list->count - 1)) == 0)
			list->file = mem_grow(list->file, list->count ? 2 * list->count : 1,
				sizeof *list->file);
		list->file[list->count++] = arena_text(&list->arena, str_of(entry->d_name));
	}
	closedir(d);
	return 0;
}

static int find_in_dir(const char *dir, const char *mode, struct buf *path, struct err *e)
{
	struct hub_list list = { 0 };
	struct buf place = { 0 };
	struct reader_choice c;
	int rc = list_dir(dir, &list, e);

	buf_printf(&place, "directory %s", dir);
	if (rc == 0)
		rc = choose(&(struct file_names){ list.file, list.count }, mode, place.data, &c, e);
	if (rc == 0)
		buf_printf(path, "%s%s%s", dir, ends(dir, "/") ? "" : "/", c.name);
	hub_list_release(&list);
	buf_release(&place);
	return rc;
}

/* ---- the hub ---- */

/* Downloads everything chosen from a list; path is the tokenizer's own file. */
static int get_files(const struct hub_opts *at, const char *name, const char *mode,
	const struct hub_list *list, struct buf *path, struct err *e)
{
	struct file_names names = { list->file, list->count };
	struct buf text = { 0 };
	struct reader_choice c;
	int rc;

	buf_printf(&text, "model %s (commit %.12s%s)", name, list->commit,
		list->is_cached ? " in the cache" : "");
	rc = choose(&names, mode, text.data, &c, e);
	for (size_t i = 0; rc == 0 && i < COUNT(BESIDE); i++)
		if (has_name(&names, BESIDE[i]))
			rc = hub_file(at, name, BESIDE[i], &text, e);
	if (rc == 0 && c.beside)
		rc = hub_file(at, name, c.beside, &text, e);
	if (rc == 0)
		rc = hub_file(at, name, c.name, path, e);
	buf_release(&text);
	return rc ? -1 : 0;
}

static void remember(const struct hub_opts *hub, const char *name, const struct hub_list *list)
{
	const char *absent[COUNT(BESIDE) + 1] = { NULL };
	size_t n = 0;

	for (size_t i = 0; i < COUNT(BESIDE); i++)
		if (!has_name(&(struct file_names){ list->file, list->count }, BESIDE[i]))
			absent[n++] = BESIDE[i];
	hub_remember(hub, name, list, absent);
}

/* A commit never changes: when everything about its tokenizer is cached, no request is made. */
static bool find_commit(const struct hub_opts *hub, const char *name, const char *mode,
	struct buf *path)
{
	struct hub_opts offline = *hub;
	struct hub_list list = { 0 };
	struct buf ignored = { 0 };
	bool is_known;

	if (!hub->revision || !hub_is_commit(hub->revision))
		return false;
	offline.is_offline = true;
	is_known = hub_list(&offline, name, &list, NULL) == 0;
	for (size_t i = 0; is_known && i < COUNT(BESIDE); i++)
		is_known = hub_file(&offline, name, BESIDE[i], &ignored, NULL) >= 0;
	is_known = is_known && get_files(&offline, name, mode, &list, path, NULL) == 0;
	hub_list_release(&list);
	buf_release(&ignored);
	return is_known;
}

static int find_on_hub(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e)
{
	struct hub_opts hub = { .revision = opts->revision, .cache_dir = opts->cache_dir,
		.token = opts->token, .is_offline = opts->is_offline, .cancel = opts->cancel,
		.file_bytes_max = TOKEN_FILE_BYTES_MAX, .progress = opts->progress,
		.note = opts->note, .self = opts->self }, at = hub;
	struct hub_list list = { 0 };
	struct err why = { 0 };
	int rc = 0;

	if (find_commit(&hub, name, opts->mode, path))
		return 0;
	if (hub_list(&hub, name, &list, &why))
		return err_set(e, err_again(&why), "no tokenizer \"%s\": there is no such file or "
			"directory, and %s", name, why.text);
	at.revision = list.commit;
	at.is_offline |= list.is_cached;
	rc = get_files(&at, name, opts->mode, &list, path, &why);
	if (rc)
		err_set(e, err_again(&why), "no tokenizer \"%s\": %s", name, why.text);
	else if (!list.is_cached)
		remember(&hub, name, &list);
	hub_list_release(&list);
	return rc;
}

int find_tokenizer(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e)
{
	buf_reset(path);
	if (file_is_dir(name))
		return find_in_dir(name, opts->mode, path, e);
	if (file_exists(name) && ends(name, ".gguf"))
		return err_set(e, ERR_IO, "%s is a GGUF file, whose tokenizer is not read; name a "
			"directory or model with one of " KINDS_TEXT, name);
	if (file_exists(name)) {
		buf_add_text(path, name);
		return 0;
	}
	if (!hub_is_repo(name))
		return err_set(e, ERR_TOKENIZER_MISSING, "no tokenizer \"%s\": there is no such "
			"file or directory, and it is not a model name (org/name)", name);
	return find_on_hub(name, opts, path, e);
}

/* ---- the files next to it ---- */

/*
 * The files next to a tokenizer that say which tokens are special and whether the model has a chat
 * template. A tekken.json has its special tokens itself.
 *
 * special_tokens_map.json counts only if tokenizer_config.json does not have the added tokens
 * itself, as in upstream. The Llama classes build their post-processor from add_bos_token and
 * add_eos_token instead of the file's.
 */

static const char *const SPECIAL_NAMES[] = { "bos_token", "eos_token", "unk_token", "sep_token",
	"pad_token", "cls_token", "mask_token" };

/* The text with {} in place of a member's value. */
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

/* A tekken.json declares them itself: all before the ranks. */
static void read_tekken_specials(struct model *m)
{
	for (uint32_t id = 0; id < m->vocab.id_limit; id++)
		if (m->vocab.entry[id].is_special)
			ids_push(&m->special, id);
}

/* The member's value in the first of the two objects that has it. */
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

/* Rebuilds the tokens around a sequence if the tokenizer's class does so. */
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
				"the tokenizer_config.json next to %s sets %s, but its %s \"%.*s\" "
				"is not a token",
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
			err_wrap(e, "the files next to %s", path);
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

/* ---- Loading ---- */

static const struct model_reader *const READERS[] = {
	&reader_tiktoken, &reader_tekken, &reader_sentencepiece, &reader_merges, &reader_json,
};

static int read_bytes(struct model *m, const char *path, struct str bytes, struct err *e)
{
	size_t i = 0;

	if (bytes.n > TOKEN_FILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has %zu bytes; at most %u are read", bytes.n,
			TOKEN_FILE_BYTES_MAX);
	while (!READERS[i]->is_mine(str_of(path), bytes))
		i++;
	snprintf(m->format, sizeof m->format, "%s", READERS[i]->name);
	if (READERS[i]->read(m, path, bytes, e))
		return -1;
	return model_index_added(m, e) ? -1 : decoder_index(m, e);
}

int model_load(struct model *m, const char *path, struct err *e)
{
	struct str bytes;
	int rc;

	assert(!m->vocab.slots && !m->added_count);
	if (file_map(path, &bytes, e))
		return -1;
	rc = read_bytes(m, path, bytes, e);
	file_unmap(bytes);
	if (rc) {
		struct err inner = e ? *e : (struct err){ 0 };

		return err_set(e, inner.code, "%s %s", path, inner.text);
	}
	TRACE(token, "%s: %zu tokens, %zu merges, %zu added\n", path, m->vocab.count, m->bpe.count,
		m->added_count);
	return 0;
}
