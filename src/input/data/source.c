/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - see source.h: folders on disk and repositories of the hub, handled in the same way. */
#include "input/data/source.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/marks.h"
#include "input/data/source_internal.h"
#include "input/fetch/hub.h"
#include "input/table/table.h"

#define CARD "README.md"
#define CONVERTED "refs/convert/parquet"

/* Where the files are: in a folder, or at one commit of a repository. */
struct source_part {
	const char *dir;      /* NULL: on the hub */
	const char *revision; /* what the commit is one of; NULL: main */
	const char *commit;
	bool is_cached;       /* the hub did not answer or was not asked */
	struct hub_list list;
};

enum source_place { PLACE_FILE, PLACE_FOLDER, PLACE_HUB };

/* Finds the kind of path; a folder's name ends without a slash. */
static int find_place(const struct source_opts *o, enum source_place *out, struct err *e)
{
	if (!o->path || !*o->path)
		return err_set(e, ERR_USAGE, "--dataset-path: expected a file, a folder or a dataset of "
			"the hub (org/name)");
	if (file_is_dir(o->path))
		*out = PLACE_FOLDER;
	else if (file_exists(o->path))
		*out = PLACE_FILE;
	else if (hub_is_repo(o->path) && !table_is_name(o->path)) /* not a file that is not there */
		*out = PLACE_HUB;
	else
		return err_set(e, ERR_IO, "%s: there is no such file or folder, and it is not the "
			"name of a dataset on the hub (org/name)", o->path);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- the card: the `configs:` of a README.md ---- */

struct card_reader {
	struct arena *a;
	struct json_marks marks;
	struct err *e;
};

static int card_fail(const struct card_reader *r, const struct json_value *at, const char *what)
{
	return err_set(r->e, ERR_PARSE, "line %u: %s", json_marks_get(&r->marks, at).line, what);
}

/* A scalar as it was written; empty: it is not a scalar, or empty. */
static struct str card_text(const struct json_value *v)
{
	if (!v || v->kind == JSON_NULL || v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
		return STR("");
	return v->kind == JSON_STRING ? v->text : v->raw;
}

/* One text or a list of them. */
static int take_patterns(const struct card_reader *r, const struct json_value *v,
			 struct card_split *out)
{
	const struct json_value *item = v->kind == JSON_ARRAY ? v->item : v;
	size_t n = v->kind == JSON_ARRAY ? v->count : 1;

	out->pattern = arena_alloc(r->a, n * sizeof(*out->pattern));
	for (; out->count < n; out->count++) {
		struct str text = card_text(&item[out->count]);

		if (!text.n)
			return card_fail(r, &item[out->count], "data_files: expected a path, a list of "
					 "paths, or a list of \"split\" and \"path\"");
		out->pattern[out->count] = arena_text(r->a, text);
	}
	return 0;
}

static int take_splits(const struct card_reader *r, const struct json_value *files,
		       struct card_config *out)
{
	if (files->kind == JSON_OBJECT || (files->kind == JSON_ARRAY && !files->count))
		return card_fail(r, files, "data_files: expected a path or a list");
	if (files->kind != JSON_ARRAY || card_text(&files->item[0]).n) {
		out->split = arena_alloc(r->a, sizeof(*out->split));
		out->count = 1;
		out->split->name = "train";
		return take_patterns(r, files, out->split);
	}
	out->split = arena_alloc(r->a, files->count * sizeof(*out->split));
	while (out->count < files->count) {
		const struct json_value *at = &files->item[out->count];
		const struct json_value *path = json_get(at, "path");
		struct card_split *split = &out->split[out->count++];
		struct str name = card_text(json_get(at, "split"));

		if (!name.n || !path)
			return card_fail(r, at, "data_files: expected \"split\" and \"path\"");
		split->name = arena_text(r->a, name);
		if (take_patterns(r, path, split) < 0)
			return -1;
	}
	return 0;
}

static int take_config(const struct card_reader *r, const struct json_value *v,
		       struct card_config *out)
{
	const struct json_value *files = json_get(v, "data_files");
	struct str name = card_text(json_get(v, "config_name"));
	struct str dir = card_text(json_get(v, "data_dir"));

	if (!name.n)
		return card_fail(r, v, "configs: expected entries with a \"config_name\"");
	out->name = arena_text(r->a, name);
	if (dir.n)
		out->data_dir = arena_text(r->a, dir);
	out->is_default = str_eq_nocase(card_text(json_get(v, "default")), STR("true"));
	if (!files || files->kind == JSON_NULL || (files->kind == JSON_STRING && !files->text.n))
		return 0;
	return take_splits(r, files, out);
}

/* A repeated name replaces the earlier one, at its place. */
static int take_configs(const struct card_reader *r, const struct json_value *list,
			struct dataset_card *out)
{
	struct map seen = { 0 };
	int rc = 0;

	if (!list || list->kind != JSON_ARRAY)
		return card_fail(r, list, "configs: expected one list");
	out->config = arena_alloc(r->a, (list->count + 1) * sizeof(*out->config));
	for (size_t i = 0; i < list->count && rc == 0; i++) {
		struct card_config config = { 0 };
		uint64_t place = out->count;

		rc = take_config(r, &list->item[i], &config);
		if (rc < 0)
			break;
		if (!map_get(&seen, str_of(config.name), &place))
			map_put(&seen, str_of(config.name), out->count++);
		out->config[place] = config;
	}
	map_release(&seen);
	return rc;
}

/*
 * The lines of the member `configs` in the YAML head (between the first line, "---", and the next
 * one), with an empty line for each line before them. False: there are none.
 */
static bool take_lines(struct str readme, struct buf *out)
{
	bool is_inside = false, has_lines = false;

	if (str_starts(readme, STR("\xef\xbb\xbf")))
		readme = (struct str){ readme.p + 3, readme.n - 3 };
	if (!str_is(str_trim(str_cut(&readme, '\n')), "---"))
		return false;
	while (readme.n) {
		struct str line = str_cut(&readme, '\n');

		if (str_is(str_trim(line), "---"))
			return has_lines;
		if (line.n && !memchr(" \t\r#-", line.p[0], 5))
			is_inside = str_starts(line, STR("configs:"));
		buf_add_char(out, '\n');
		if (is_inside)
			buf_add_str(out, line);
		has_lines |= is_inside;
	}
	return false;
}

int card_read(struct arena *a, struct str readme, struct dataset_card *out, struct err *e)
{
	struct card_reader r = { .a = a, .marks = { .arena = a }, .e = e };
	struct json_value *top;
	struct buf lines = { 0 };
	int rc = 0;

	*out = (struct dataset_card){ 0 };
	if (take_lines(readme, &lines)) {
		rc = yaml_parse_marked(a, buf_str(&lines), "README.md", &r.marks, &top, e);
		if (rc == 0)
			rc = take_configs(&r, json_get(top, "configs"), out);
	}
	buf_release(&lines);
	return rc;
}

/* ---- folders ---- */

struct folder_walk {
	struct arena *a;
	const char **name;
	size_t count, cap;
};

static int walk_folder(struct folder_walk *w, const char *dir, const char *prefix, unsigned depth,
	struct err *e);

/* Adds files, descends into folders, ignores the rest. */
static int walk_entry(struct folder_walk *w, const char *path, const char *name, unsigned depth,
	struct err *e)
{
	struct stat st;
	int rc;

	if (stat(path, &st) < 0)
		return 0; /* a dangling link */
	if (S_ISDIR(st.st_mode)) {
		char *prefix = mem_array(strlen(name) + 2, 1);

		memcpy(prefix, name, strlen(name));
		prefix[strlen(name)] = '/';
		rc = walk_folder(w, path, prefix, depth + 1, e);
		free(prefix);
		return rc;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	if (w->count == HUB_FILES_MAX)
		return err_set(e, ERR_LIMIT, "more than %u files (HUB_FILES_MAX)", HUB_FILES_MAX);
	w->name = mem_room(w->name, w->count, &w->cap, sizeof(*w->name));
	w->name[w->count++] = arena_text(w->a, str_of(name));
	return 0;
}

static int walk_folder(struct folder_walk *w, const char *dir, const char *prefix, unsigned depth,
	struct err *e)
{
	struct buf path = { 0 }, name = { 0 };
	struct dirent *entry;
	int rc = 0;
	DIR *d;

	if (depth > HUB_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d folders in folders (HUB_DEPTH_MAX)", dir,
			HUB_DEPTH_MAX);
	d = opendir(dir);
	if (!d)
		return err_set(e, ERR_IO, "cannot read folder %s: %s", dir, strerror(errno));
	while (rc == 0 && (entry = readdir(d)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, ".git") == 0 || strcmp(entry->d_name, ".cache") == 0)
			continue;
		buf_reset(&path);
		buf_reset(&name);
		buf_printf(&path, "%s/%s", dir, entry->d_name);
		buf_printf(&name, "%s%s", prefix, entry->d_name);
		rc = walk_entry(w, path.data, name.data, depth, e);
	}
	closedir(d);
	buf_release(&path);
	buf_release(&name);
	return rc;
}

/* ---- the hub ---- */

static struct hub_opts hub_of(const struct source_opts *o, const char *revision)
{
	return (struct hub_opts){ .kind = HUB_DATASET, .revision = revision,
		.cache_dir = o->cache_dir, .cancel = o->cancel, .progress = o->progress,
		.note = o->note, .self = o->self };
}

static int list_hub(const struct source_opts *o, struct source_part *part, struct err *e)
{
	struct hub_opts hub = hub_of(o, part->revision);

	hub_list_release(&part->list);
	if (hub_list(&hub, o->path, &part->list, e) != 0)
		return -1;
	part->commit = part->list.commit;
	part->is_cached = part->list.is_cached;
	return 0;
}

/* A file of the listed commit. Once downloaded, it is the revision's file offline. */
static int get_from_hub(const struct source_opts *o, const struct source_part *part,
	const char *name, struct buf *path, struct err *e)
{
	struct hub_opts hub = hub_of(o, part->commit);
	const char *absent[2] = { CARD, NULL };
	int rc;

	hub.is_offline = part->is_cached;
	rc = hub_file(&hub, o->path, name, path, e);
	if (rc || part->is_cached)
		return rc;
	for (size_t i = 0; i < part->list.count; i++)
		if (strcmp(part->list.file[i], CARD) == 0)
			absent[0] = NULL;
	hub = hub_of(o, part->revision);
	hub_remember(&hub, o->path, &part->list, absent);
	return 0;
}

/* ---- folders and repositories alike ---- */

static int get_file(const struct source_opts *o, const struct source_part *part, const char *name,
	struct buf *path, struct err *e)
{
	if (!part->dir)
		return get_from_hub(o, part, name, path, e);
	buf_reset(path);
	if (part->dir[0])
		buf_printf(path, "%s/", part->dir);
	buf_add_text(path, name);
	return 0;
}

/* The names of all files, in order. */
static int list_names(const struct source_opts *o, struct source *s, struct source_names *names,
	struct err *e)
{
	struct folder_walk w = { .a = &s->arena };
	int rc = 0;

	if (s->part->dir) {
		rc = walk_folder(&w, s->part->dir, "", 0, e);
	} else {
		rc = list_hub(o, s->part, e);
		for (size_t i = 0; rc == 0 && i < s->part->list.count; i++) {
			w.name = mem_grow(w.name, i + 1, sizeof(*w.name));
			w.name[w.count++] = s->part->list.file[i];
		}
	}
	if (w.count)
		qsort(w.name, w.count, sizeof(*w.name), by_text);
	*names = (struct source_names){ w.name, w.count };
	return rc;
}

static bool has_name(const struct source_names *names, const char *name)
{
	return names->count &&
		bsearch(&name, names->name, names->count, sizeof(*names->name), by_text);
}

static int read_card(const struct source_opts *o, struct source *s,
	const struct source_names *names, struct dataset_card *card, struct err *e)
{
	struct buf path = { 0 }, text = { 0 };
	int rc = 0;

	*card = (struct dataset_card){ 0 };
	if (has_name(names, CARD)) {
		rc = get_file(o, s->part, CARD, &path, e) == 0 ? 0 : -1;
		if (rc == 0)
			rc = file_read(path.data, SOURCE_CARD_BYTES_MAX, &text, e);
		if (rc == 0 && card_read(&s->arena, buf_str(&text), card, e) < 0)
			rc = err_wrap(e, "%s", path.data);
	}
	buf_release(&path);
	buf_release(&text);
	return rc;
}

/* Whether there is a loading script, which has the repository's name. */
static bool has_script(const char *repo, const struct source_names *names)
{
	const char *slash = strrchr(repo, '/');
	struct buf name = { 0 };
	bool has;

	buf_printf(&name, "%s.py", slash ? slash + 1 : repo);
	has = has_name(names, name.data);
	buf_release(&name);
	return has;
}

/* 1: the hub's converted form was taken; 0: there is none; -1. */
static int try_converted(const struct source_opts *o, struct source *s, struct err *e)
{
	struct source_part kept = *s->part;
	struct source_names names = { 0 };
	struct err why = { 0 };
	int rc;

	*s->part = (struct source_part){ .revision = CONVERTED };
	if (list_names(o, s, &names, &why) < 0) {
		hub_list_release(&s->part->list);
		*s->part = kept;
		free(names.name);
		if (why.code != ERR_CANCELLED && (why.code != ERR_NET || kept.is_cached))
			return 0;
		if (e)
			*e = why;
		return -1;
	}
	hub_list_release(&kept.list);
	rc = source_sort_converted(o, o->path, &names, s, e);
	free(names.name);
	return rc < 0 ? -1 : 1;
}

/* Files that were never downloaded leave no trace, except by names like x-00000-of-00005. */
static void note_missing(const struct source_opts *o, const struct source *s)
{
	const char *of = strstr(s->file[0], "-of-");
	size_t digits = of ? strspn(of + 4, "0123456789") : 0;
	struct buf text = { 0 };
	uint64_t all;

	if (s->part->dir || !s->part->is_cached || !o->note || digits == 0 ||
	    !str_to_u64((struct str){ of + 4, digits }, &all) || all <= s->count)
		return;
	buf_printf(&text, "%s: only %zu of the %llu files of split %s are in the cache", o->path,
		s->count, (unsigned long long)all, s->split);
	o->note(o->self, text.data);
	buf_release(&text);
}

static bool has_files(const struct dataset_card *card)
{
	return card->count && card->config[0].split;
}

static int sort_out(const struct source_opts *o, struct source *s, struct err *e)
{
	struct source_names names = { 0 };
	struct dataset_card card;
	int rc = -1;

	if (list_names(o, s, &names, e) < 0 || read_card(o, s, &names, &card, e) < 0)
		goto done;
	rc = 0;
	if (!s->part->dir && !o->revision && !has_files(&card) &&
	    (has_script(o->path, &names) || !source_has_data(&names)))
		rc = try_converted(o, s, e);
	if (rc == 0)
		rc = source_sort(o, o->path, &names, &card, s, e);
	else
		rc = rc < 0 ? -1 : 0;
	if (rc == 0)
		note_missing(o, s);
done:
	free(names.name);
	return rc;
}

/* A single file is the requested split, whatever its name. */
static void take_file(const struct source_opts *o, struct source *s)
{
	s->part->dir = "";
	s->split = arena_text(&s->arena, str_of(o->split ? o->split : "train"));
	s->splits = arena_alloc(&s->arena, sizeof(*s->splits));
	s->splits[0] = s->split;
	s->split_count = 1;
	s->file = arena_alloc(&s->arena, sizeof(*s->file));
	s->file[0] = arena_text(&s->arena, str_of(o->path));
	s->count = 1;
}

int source_open(const struct source_opts *o, struct source *s, struct err *e)
{
	enum source_place place;
	int rc = 0;

	*s = (struct source){ 0 };
	if (find_place(o, &place, e) < 0)
		return -1;
	s->part = arena_alloc(&s->arena, sizeof(*s->part));
	s->part->revision = o->revision;
	if (place == PLACE_FOLDER)
		s->part->dir = arena_text(&s->arena, str_of(o->path));
	if (place == PLACE_FILE)
		take_file(o, s);
	else
		rc = sort_out(o, s, e);
	if (rc < 0)
		source_release(s);
	return rc;
}

void source_release(struct source *s)
{
	if (s->part)
		hub_list_release(&s->part->list);
	arena_release(&s->arena);
	*s = (struct source){ 0 };
}

int source_path(const struct source_opts *o, const struct source *s, size_t i, struct buf *path,
	struct err *e)
{
	assert(i < s->count);
	return get_file(o, s->part, s->file[i], path, e) == 0 ? 0 : -1;
}

static int no_file(const char *where, const char *name, struct err *e)
{
	err_set(e, ERR_IO, "%s: there is no file \"%s\"", where, name);
	return SOURCE_NO_FILE;
}

static int file_on_disk(const char *path, bool is_folder, const char *name, struct buf *out,
	struct err *e)
{
	char *found = is_folder ? file_join(path, name) : file_beside(path, name);
	bool exists = file_exists(found);

	buf_reset(out);
	buf_add_text(out, found);
	free(found);
	return exists ? 0 : no_file(path, name, e);
}

int source_file(const struct source_opts *o, const char *name, struct buf *path, struct err *e)
{
	struct hub_opts hub = hub_of(o, o->revision);
	enum source_place place;
	int rc;

	if (find_place(o, &place, e) < 0)
		return -1;
	if (place != PLACE_HUB)
		return file_on_disk(o->path, place == PLACE_FOLDER, name, path, e);
	rc = hub_file(&hub, o->path, name, path, e);
	return rc == HUB_NO_FILE ? SOURCE_NO_FILE : rc;
}
