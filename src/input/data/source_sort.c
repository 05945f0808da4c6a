/* SPDX-License-Identifier: Apache-2.0 */
/* source_sort.c - see source_internal.h. */
#include "input/data/source_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "input/table/table.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- names ---- */

/* Tests c against the class after the '[' before *p; moves *p past the ']'. */
static bool in_class(const char **p, char c)
{
	const char *at = *p;
	bool is_not = *at == '!', is_in = false;

	at += is_not;
	for (const char *first = at; *at && (*at != ']' || at == first); at++) {
		if (at[1] == '-' && at[2] && at[2] != ']') {
			is_in |= *at <= c && c <= at[2];
			at += 2;
		} else {
			is_in |= *at == c;
		}
	}
	*p = *at ? at + 1 : at;
	return c && c != '/' && is_in != is_not;
}

/* Matches one character of the pattern that is not a star; moves *p on. */
static bool match_one(const char **p, char c)
{
	char want = *(*p)++;

	if (want == '[')
		return in_class(p, c);
	return c && (want == '?' ? c != '/' : want == c);
}

/* Two places to go back to are enough: once a "**" is reached, stars before it need no retry. */
bool source_glob(const char *p, const char *s)
{
	const char *start = p, *star = NULL, *star_s = NULL, *wide = NULL, *wide_s = NULL;
	bool is_whole = false; /* the wide star matches whole folders */

	for (;;) {
		if (p[0] == '*' && p[1] == '*') {
			is_whole = (p == start || p[-1] == '/') && p[2] == '/';
			p += is_whole ? 3 : 2;
			wide = p;
			wide_s = s;
			star = NULL;
			continue;
		}
		if (*p == '*') {
			star = ++p;
			star_s = s;
			continue;
		}
		if (!*p && !*s)
			return true;
		if (*p && match_one(&p, *s)) {
			s++;
			continue;
		}
		if (star && *star_s && *star_s != '/') {
			p = star;
			s = ++star_s;
			continue;
		}
		while (is_whole && wide && *wide_s && *wide_s != '/')
			wide_s++;
		if (!wide || !*wide_s)
			return false;
		p = wide;
		s = ++wide_s;
		star = NULL;
	}
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Parts that begin with "." (not "." and ".."), and folders that begin with "__". */
static void count_parts(const char *path, size_t *hidden, size_t *special)
{
	*hidden = *special = 0;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (*path == '.' && strspn(path, ".") < n)
			++*hidden;
		if (n >= 2 && path[0] == '_' && path[1] == '_' && path[n] == '/')
			++*special;
		path += n + (path[n] == '/');
	}
}

/* The hub's library looks at hidden files only where a pattern names them. */
static bool matches(const char *pattern, const char *name)
{
	static const char *const ignored[] = { "README.md", "config.json", "dataset_info.json",
		"dataset_infos.json", "dummy_data.zip", "dataset_dict.json" };
	const char *last = last_part(name);
	size_t hidden[2], special[2];

	if (!source_glob(pattern, name))
		return false;
	for (size_t i = 0; i < COUNT(ignored); i++)
		if (strcmp(last, ignored[i]) == 0 && strcmp(last_part(pattern), ignored[i]) != 0)
			return false;
	count_parts(pattern, &hidden[0], &special[0]);
	count_parts(name, &hidden[1], &special[1]);
	return hidden[0] == hidden[1] && special[0] == special[1];
}

/* ---- formats ---- */

/* In the order in which they are preferred when there are as many of each. */
static const struct {
	const char *ending;
	unsigned family;
} endings[] = {
	{ ".parquet", 1 }, { ".jsonl", 2 }, { ".json", 2 }, { ".csv", 3 }, { ".txt", 4 },
	{ ".tsv", 3 }, { ".ndjson", 2 }, { ".zip", 5 }, { ".tgz", 5 }, { ".tar", 5 },
};

/* Its row in endings, whether compressed or not; -1: not a data file. */
static int ending_of(const char *name)
{
	static const char *const packed[] = { "", ".gz", ".zst", ".bz2", ".xz", ".lz4" };
	char ending[24];

	if (!table_is_name(name))
		return -1;
	for (size_t i = 0; i < COUNT(endings); i++) {
		for (size_t k = 0; k < COUNT(packed); k++) {
			snprintf(ending, sizeof(ending), "%s%s", endings[i].ending, packed[k]);
			if (str_ends(str_of(name), str_of(ending)))
				return (int)i;
		}
	}
	return -1;
}

static unsigned family_of(const char *name)
{
	int ending = ending_of(name);

	return ending < 0 ? 0 : endings[ending].family;
}

#define FAMILY_ARCHIVE 5

bool source_has_data(const struct source_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		if (family_of(names->name[i]) && family_of(names->name[i]) != FAMILY_ARCHIVE &&
		    matches("**", names->name[i]))
			return true;
	return false;
}

/* ---- splits ---- */

struct file_list {
	const char **name;
	size_t count, cap;
};

struct source_split {
	const char *name;
	struct file_list files;
};

struct sorting {
	const struct source_names *names;
	struct arena *a;
	const char *dir; /* what every name begins with, "" or "data/" */
	struct source_split *split;
	size_t count, cap;
	struct map place; /* of a split by its name */
};

static void add_name(struct file_list *list, const char *name)
{
	list->name = mem_room(list->name, list->count, &list->cap, sizeof(*list->name));
	list->name[list->count++] = name;
}

/* Names must outlive the sorting. */
static struct source_split *split_named(struct sorting *s, const char *name)
{
	uint64_t i;

	if (map_get(&s->place, str_of(name), &i))
		return &s->split[i];
	s->split = mem_room(s->split, s->count, &s->cap, sizeof(*s->split));
	s->split[s->count] = (struct source_split){ .name = name };
	map_put(&s->place, str_of(name), s->count);
	return &s->split[s->count++];
}

/*
 * Adds the files that a pattern below the folder matches. A file that several patterns of a split
 * match is added several times, with its rows: that is what the library does.
 */
static void add_matches(const struct sorting *s, const char *pattern, struct file_list *list)
{
	size_t n = strlen(s->dir);

	for (size_t i = 0; i < s->names->count; i++)
		if (strncmp(s->names->name[i], s->dir, n) == 0 &&
		    matches(pattern, s->names->name[i] + n))
			add_name(list, s->names->name[i]);
}

/* The split in "data/SPLIT-00000-of-00005*.EXT"; NULL: not such a name. */
static const char *sharded_split(struct arena *a, const char *name)
{
	size_t i = strlen(name);

	if (!source_glob("data/*-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*", name))
		return NULL;
	while (i-- > strlen("data/"))
		if (source_glob("-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*", name + i))
			return arena_text(a, (struct str){ name + 5, i - 5 });
	return NULL;
}

static int by_split(const void *a, const void *b)
{
	static const char *const first[] = { "train", "validation", "test" };
	const char *name[2] = { ((const struct source_split *)a)->name,
				((const struct source_split *)b)->name };

	for (size_t i = 0; i < COUNT(first); i++)
		for (int k = 0; k < 2; k++)
			if (strcmp(name[k], first[i]) == 0)
				return strcmp(name[0], name[1]) == 0 ? 0 : k ? 1 : -1;
	return strcmp(name[0], name[1]);
}

static bool sort_sharded(struct sorting *s)
{
	size_t n = strlen(s->dir);

	for (size_t i = 0; i < s->names->count; i++) {
		const char *name = s->names->name[i], *split = NULL;

		if (strncmp(name, s->dir, n) == 0 && matches("**", name + n))
			split = sharded_split(s->a, name + n);
		if (split)
			add_name(&split_named(s, split)->files, name);
	}
	if (s->count)
		qsort(s->split, s->count, sizeof(*s->split), by_split);
	return s->count > 0;
}

/* Splits by words in the names of folders, or of files. */
static bool sort_by_words(struct sorting *s, const char *const *shape, size_t shapes)
{
	static const struct {
		const char *split, *word[5];
	} words[] = {
		{ "train", { "train", "training" } },
		{ "validation", { "validation", "valid", "dev", "val" } },
		{ "test", { "test", "testing", "eval", "evaluation" } },
	};

	for (size_t i = 0; i < COUNT(words); i++) {
		struct file_list files = { 0 };

		for (size_t w = 0; words[i].word[w]; w++) {
			for (size_t k = 0; k < shapes; k++) {
				const char *at = strchr(shape[k], 'W');

				add_matches(s, arena_printf(s->a, "%.*s%s%s", (int)(at - shape[k]), shape[k],
					words[i].word[w], at + 1), &files);
			}
		}
		if (files.count)
			split_named(s, words[i].split)->files = files;
	}
	return s->count > 0;
}

#define BETWEEN "[-._ 0-9]"

static void sort_by_names(struct sorting *s)
{
	static const char *const folders[] = { "**/W/**", "**/W" BETWEEN "*/**",
		"**/*" BETWEEN "W/**", "**/*" BETWEEN "W" BETWEEN "*/**" };
	static const char *const files[] = { "**/W" BETWEEN "*", "**/*" BETWEEN "W" BETWEEN "*" };

	if (sort_sharded(s) || sort_by_words(s, folders, COUNT(folders)) ||
	    sort_by_words(s, files, COUNT(files)))
		return;
	add_matches(s, "**", &split_named(s, "train")->files);
}

/* Keeps the files of the most frequent format; notes others. */
static void keep_format(struct sorting *s, const struct source_opts *o, const char *what)
{
	size_t seen[COUNT(endings)] = { 0 }, best = 0, left_out = 0;
	struct buf text = { 0 };

	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < s->split[i].files.count; k++) {
			int ending = ending_of(s->split[i].files.name[k]);

			if (ending >= 0)
				seen[ending]++;
		}
	}
	for (size_t i = 1; i < COUNT(endings); i++)
		if (seen[i] > seen[best] && (endings[i].family != FAMILY_ARCHIVE || !seen[best]))
			best = i;
	for (size_t i = 0; i < s->count; i++) {
		struct file_list *files = &s->split[i].files;
		size_t n = 0;

		for (size_t k = 0; k < files->count; k++)
			if (family_of(files->name[k]) == endings[best].family)
				files->name[n++] = files->name[k];
			else
				left_out += family_of(files->name[k]) != 0;
		files->count = n;
	}
	if (!left_out || !o->note)
		return;
	buf_printf(&text, "%s: most data files are %s; %zu of another format are skipped", what,
		endings[best].ending, left_out);
	o->note(o->self, text.data);
	buf_release(&text);
}

/* ---- the result ---- */

static void join(struct buf *out, const char *const *name, size_t n)
{
	for (size_t i = 0; i < n && i < 20; i++)
		buf_printf(out, "%s%s", i ? ", " : "", name[i]);
	if (n > 20)
		buf_printf(out, " and %zu more", n - 20);
}

static void release(struct sorting *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->split[i].files.name);
	free(s->split);
	map_release(&s->place);
}

static int fail_split(const struct source_opts *o, const char *what, const struct source *out,
	struct err *e)
{
	struct buf names = { 0 };
	int rc;

	join(&names, out->splits, out->split_count);
	rc = err_set(e, ERR_RUN, "%s%s%s: there is no split \"%s\"; it has %s", what,
		out->subset ? ", subset " : "", out->subset ? out->subset : "", o->split, names.data);
	buf_release(&names);
	return rc;
}

/* The split that is asked for. Those that are empty do not count. */
static int take_split(const struct source_opts *o, const char *what, const struct sorting *s,
	struct source *out, struct err *e)
{
	const struct source_split *taken = NULL, *first = NULL;

	out->splits = arena_alloc(&out->arena, (s->count + 1) * sizeof(*out->splits));
	for (size_t i = 0; i < s->count; i++) {
		const struct source_split *split = &s->split[i];

		if (split->files.count == 0)
			continue;
		out->splits[out->split_count++] = arena_text(&out->arena, str_of(split->name));
		first = first ? first : split;
		if (strcmp(split->name, o->split ? o->split : "train") == 0)
			taken = split;
	}
	if (!first)
		return err_set(e, ERR_RUN, "%s%s%s: there is no data file (.parquet, .jsonl, .json, .csv, "
			".tsv, .txt) in it", what, out->subset ? ", subset " : "",
			out->subset ? out->subset : "");
	if (!taken && o->split)
		return fail_split(o, what, out, e);
	taken = taken ? taken : first;
	out->split = arena_text(&out->arena, str_of(taken->name));
	out->count = taken->files.count;
	out->file = arena_alloc(&out->arena, out->count * sizeof(*out->file));
	for (size_t i = 0; i < out->count; i++)
		out->file[i] = arena_text(&out->arena, str_of(taken->files.name[i]));
	return 0;
}

static int fail_subset(const char *what, const char *asked, const char *const *name, size_t n,
	struct err *e)
{
	struct buf names = { 0 };
	int rc;

	join(&names, name, n);
	if (n)
		rc = err_set(e, ERR_RUN, "%s: there is no subset \"%s\"; it has %s", what, asked,
			names.data);
	else
		rc = err_set(e, ERR_RUN, "%s: there is no subset \"%s\"; it has none", what, asked);
	buf_release(&names);
	return rc;
}

/* Notes which of several subsets was taken when none was asked for. */
static void note_subset(const struct source_opts *o, const char *what, const char *taken,
	const char *const *name, size_t n)
{
	struct buf text = { 0 };

	if (!o->note)
		return;
	buf_printf(&text, "%s: no subset was given, so \"%s\" is used; it has ", what, taken);
	join(&text, name, n);
	o->note(o->self, text.data);
	buf_release(&text);
}

static int pick_config(const struct source_opts *o, const char *what,
		       const struct dataset_card *card, struct arena *a,
		       const struct card_config **out, struct err *e)
{
	const char **name = arena_alloc(a, (card->count + 1) * sizeof(*name));
	const struct card_config *taken = NULL;

	for (size_t i = 0; i < card->count; i++) {
		const struct card_config *config = &card->config[i];

		name[i] = config->name;
		if (!taken && (o->subset ? strcmp(config->name, o->subset) == 0 :
			config->is_default || strcmp(config->name, "default") == 0))
			taken = config;
	}
	if (!taken && o->subset && (card->count || strcmp(o->subset, "default") != 0))
		return fail_subset(what, o->subset, name, card->count, e);
	if (!taken && card->count) {
		taken = &card->config[0];
		if (card->count > 1)
			note_subset(o, what, taken->name, name, card->count);
	}
	*out = taken;
	return 0;
}

static const char *folder_of(struct arena *a, const char *dir)
{
	size_t n;

	while (dir && dir[0] == '.' && dir[1] == '/')
		dir += 2;
	n = dir ? strlen(dir) : 0;
	if (n == 0 || strcmp(dir, ".") == 0)
		return "";
	return arena_printf(a, "%s%s", dir, dir[n - 1] == '/' ? "" : "/");
}

int source_sort(const struct source_opts *o, const char *what, const struct source_names *names,
	const struct dataset_card *card, struct source *out, struct err *e)
{
	const struct card_config *config = NULL;
	struct sorting s = { .names = names, .a = &out->arena, .dir = "" };
	int rc;

	if (pick_config(o, what, card, &out->arena, &config, e) < 0)
		return -1;
	if (config) {
		out->subset = config->name;
		s.dir = folder_of(&out->arena, config->data_dir);
	}
	if (!config || !config->split) {
		sort_by_names(&s);
	} else {
		for (size_t i = 0; i < config->count; i++) {
			struct source_split *split = split_named(&s, config->split[i].name);

			for (size_t k = 0; k < config->split[i].count; k++) {
				const char *pattern = config->split[i].pattern[k];

				while (pattern[0] == '.' && pattern[1] == '/')
					pattern += 2;
				add_matches(&s, pattern, &split->files);
			}
		}
	}
	keep_format(&s, o, what);
	rc = take_split(o, what, &s, out, e);
	release(&s);
	return rc;
}

/* "CONFIG/SPLIT/0000.parquet"; of very large sets "CONFIG/partial-SPLIT/0000.parquet". */
static bool is_converted(struct arena *a, const char *name, const char **config,
	const char **split)
{
	struct str rest = str_of(name), part[2];

	if (!source_glob("*/*/*.parquet", name))
		return false;
	part[0] = str_cut(&rest, '/');
	part[1] = str_cut(&rest, '/');
	if (str_starts(part[1], STR("partial-")))
		part[1] = (struct str){ part[1].p + 8, part[1].n - 8 };
	*config = arena_text(a, part[0]);
	*split = arena_text(a, part[1]);
	return true;
}

/* The subset that is asked for, "default" or the first; NULL: there is none at all. */
static int pick_converted(const struct source_opts *o, const char *what,
	const struct file_list *configs, const char **out, struct err *e)
{
	const char *wanted = o->subset ? o->subset : "default";

	*out = NULL;
	for (size_t i = 0; i < configs->count && !*out; i++)
		if (strcmp(configs->name[i], wanted) == 0)
			*out = configs->name[i];
	if (!*out && o->subset)
		return fail_subset(what, wanted, configs->name, configs->count, e);
	if (!*out && configs->count) {
		*out = configs->name[0];
		if (configs->count > 1)
			note_subset(o, what, *out, configs->name, configs->count);
	}
	return 0;
}

int source_sort_converted(const struct source_opts *o, const char *what,
	const struct source_names *names, struct source *out, struct err *e)
{
	struct sorting s = { .names = names, .a = &out->arena, .dir = "" };
	const char *config, *split, *wanted;
	struct file_list configs = { 0 };
	int rc;

	/* Names are sorted, so those of a config are adjacent. */
	for (size_t i = 0; i < names->count; i++)
		if (is_converted(&out->arena, names->name[i], &config, &split) &&
		    (configs.count == 0 || strcmp(configs.name[configs.count - 1], config) != 0))
			add_name(&configs, config);
	rc = pick_converted(o, what, &configs, &wanted, e);
	out->subset = wanted;
	for (size_t i = 0; rc == 0 && i < names->count; i++)
		if (is_converted(&out->arena, names->name[i], &config, &split) &&
		    strcmp(config, wanted) == 0)
			add_name(&split_named(&s, split)->files, names->name[i]);
	if (s.count)
		qsort(s.split, s.count, sizeof(*s.split), by_split);
	if (rc == 0)
		rc = take_split(o, what, &s, out, e);
	free(configs.name);
	release(&s);
	return rc;
}
