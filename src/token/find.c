/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find.c - path first, then the local Hugging Face cache, whose layout is
 * <hub>/models--<org>--<name>/refs/<revision> (holding a commit) and
 * .../snapshots/<commit>/<file>.
 */
#include "token/find.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/file.h"

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* The hub directory, or nothing when not even HOME is known. */
static void hub_dir(const struct tokenizer_load_opts *opts, struct buf *out)
{
	const char *dir;

	if ((dir = opts->cache_dir) || (dir = environment("HF_HUB_CACHE")) ||
		(dir = environment("HUGGINGFACE_HUB_CACHE")))
		buf_add_text(out, dir);
	else if ((dir = environment("HF_HOME")))
		buf_printf(out, "%s/hub", dir);
	else if ((dir = environment("XDG_CACHE_HOME")))
		buf_printf(out, "%s/huggingface/hub", dir);
	else if ((dir = environment("HOME")))
		buf_printf(out, "%s/.cache/huggingface/hub", dir);
}

/* "name" or "org/name", in the letters such names may have. */
static bool is_model_name(const char *name)
{
	size_t slashes = 0;

	for (const char *p = name; *p; p++) {
		if (*p == '/')
			slashes++;
		else if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return false;
	}
	return *name && *name != '/' && *name != '.' && name[strlen(name) - 1] != '/' &&
		slashes <= 1 && !strstr(name, "..");
}

static void model_dir(const char *hub, const char *name, struct buf *out)
{
	buf_printf(out, "%s/models--", hub);
	for (const char *p = name; *p; p++)
		buf_add_text(out, *p == '/' ? "--" : (char[]){ *p, 0 });
}

/* The commit that a revision names; the revision itself when it is no branch or tag. */
static void commit_of(const char *dir, const char *revision, struct buf *out)
{
	struct buf ref = { 0 }, text = { 0 };

	buf_printf(&ref, "%s/refs/%s", dir, revision);
	if (file_exists(ref.data) && file_read(ref.data, 4096, &text, NULL) == 0)
		buf_add_str(out, str_trim(buf_str(&text)));
	else
		buf_add_text(out, revision);
	buf_release(&ref);
	buf_release(&text);
}

static bool find_in_hub(const char *hub, const char *name, const char *revision,
	struct buf *path)
{
	struct buf dir = { 0 }, commit = { 0 };

	model_dir(hub, name, &dir);
	commit_of(dir.data, revision, &commit);
	buf_reset(path);
	buf_printf(path, "%s/snapshots/%s/tokenizer.json", dir.data,
		commit.data ? commit.data : "");
	buf_release(&dir);
	buf_release(&commit);
	return file_exists(path->data);
}

int find_tokenizer(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e)
{
	const char *revision = opts->revision ? opts->revision : "main";
	struct buf hub = { 0 };
	int rc = 0;

	buf_reset(path);
	if (file_is_dir(name)) {
		buf_printf(path, "%s/tokenizer.json", name);
		if (!file_exists(path->data))
			rc = err_set(e, ERR_IO, "directory %s has no tokenizer.json", name);
		return rc;
	}
	if (file_exists(name)) {
		buf_add_text(path, name);
		return 0;
	}
	hub_dir(opts, &hub);
	if (!is_model_name(name) || strstr(revision, ".."))
		rc = err_set(e, ERR_IO,
			"no tokenizer \"%s\": there is no such file or directory, and it is no "
			"model name (org/name)", name);
	else if (hub.len == 0)
		rc = err_set(e, ERR_IO,
			"no tokenizer \"%s\": there is no such file or directory, and none of "
			"HF_HUB_CACHE, HF_HOME and HOME says where models are cached", name);
	else if (!find_in_hub(hub.data, name, revision, path))
		rc = err_set(e, ERR_IO,
			"no tokenizer \"%s\": looked for a file or directory of that name, "
			"then for %s",
			name, path->data);
	buf_release(&hub);
	return rc;
}
