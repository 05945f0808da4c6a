/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - see find.h. One choice among names, whether a directory has them or the hub. */
#include "token/find.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fetch/hub.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* In the order of find.h. */
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

/* What readers look for beside any of them. */
static const char *const BESIDE[] = { "tokenizer_config.json", "special_tokens_map.json",
	"added_tokens.json", "chat_template.jinja" };

static const char *const WEIGHTS[] = { ".safetensors", ".bin", ".gguf", ".pt", ".pth" };

/* A place's files. The strings are borrowed, or those of a listed directory. */
struct names {
	const char *const *name;
	size_t count;
};

static bool has_name(const struct names *n, const char *name)
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

/* Files in folders of a repository are none of these. */
static const char *one_that_ends(const struct names *n, const char *suffix, const char **other)
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

static const char *first_weights(const struct names *n)
{
	for (size_t k = 0; k < COUNT(WEIGHTS); k++)
		for (size_t i = 0; i < n->count; i++)
			if (ends(n->name[i], WEIGHTS[k]))
				return n->name[i];
	return NULL;
}

struct choice {
	const char *name, *beside;
};

/* The form that Mistral's own library reads; NULL: there is none. */
static const char *mistral_form(const struct names *n)
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
static int choose(const struct names *n, const char *mode, const char *place, struct choice *c,
	struct err *e)
{
	const char *weights = first_weights(n), *other;

	*c = (struct choice){ 0 };
	if (mode && strcmp(mode, "mistral") == 0)
		c->name = mistral_form(n);
	if (c->name)
		return 0;
	for (size_t k = 0; k < COUNT(KINDS); k++) {
		*c = (struct choice){ KINDS[k].name, KINDS[k].beside };
		if (has_name(n, c->name) && (!c->beside || has_name(n, c->beside)))
			return 0;
		if (!KINDS[k].suffix)
			continue;
		c->name = one_that_ends(n, KINDS[k].suffix, &other);
		if (c->name && other)
			return err_set(e, ERR_IO, "%s has several tokenizers (%s, %s): name one "
				"by its path", place, c->name, other);
		if (c->name)
			return 0;
	}
	if (weights)
		return err_set(e, ERR_IO, "%s has no tokenizer, only weights (%s); it needs one "
			"of " KINDS_TEXT, place, weights);
	return err_set(e, ERR_IO, "%s has no " KINDS_TEXT, place);
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
	struct choice c;
	int rc = list_dir(dir, &list, e);

	buf_printf(&place, "directory %s", dir);
	if (rc == 0)
		rc = choose(&(struct names){ list.file, list.count }, mode, place.data, &c, e);
	if (rc == 0)
		buf_printf(path, "%s%s%s", dir, ends(dir, "/") ? "" : "/", c.name);
	hub_list_release(&list);
	buf_release(&place);
	return rc;
}

/* ---- the hub ---- */

/* Everything chosen of a list; path is the tokenizer's own file. */
static int get_files(const struct hub_opts *at, const char *name, const char *mode,
	const struct hub_list *list, struct buf *path, struct err *e)
{
	struct names names = { list->file, list->count };
	struct buf text = { 0 };
	struct choice c;
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
		if (!has_name(&(struct names){ list->file, list->count }, BESIDE[i]))
			absent[n++] = BESIDE[i];
	hub_remember(hub, name, list, absent);
}

/* A commit never changes: when everything about its tokenizer is known, nobody is asked. */
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
		return err_set(e, why.code, "no tokenizer \"%s\": there is no such file or "
			"directory, and %s", name, why.text);
	at.revision = list.commit;
	at.is_offline |= list.is_cached;
	rc = get_files(&at, name, opts->mode, &list, path, &why);
	if (rc)
		err_set(e, why.code, "no tokenizer \"%s\": %s", name, why.text);
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
		return err_set(e, ERR_IO, "no tokenizer \"%s\": there is no such file or "
			"directory, and it is no model name (org/name)", name);
	return find_on_hub(name, opts, path, e);
}
