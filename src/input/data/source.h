/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the data files of a dataset, by its name; datasets spec 8.1.
 *
 * A name is a file, a folder, or a dataset of the Hugging Face hub ("org/name"); an existing path
 * takes precedence. A folder's or repository's files are sorted into splits the way the hub's own
 * library does it:
 *
 *   1. the `configs:` in the YAML head of README.md (config_name, data_files, data_dir, default);
 *   2. data/SPLIT-00000-of-00005*.EXT;
 *   3. folders, else files, with a word for a split (train, training; validation, valid,
 *      dev, val; test, testing, eval, evaluation) between non-letters;
 *   4. everything is "train".
 *
 * Only files that table.h reads count, of one format (the most frequent one). Files of a split come
 * in the order of their paths. A repository without data files (a loading script, archives of
 * media) is read in the hub's converted form: revision refs/convert/parquet.
 *
 * Nothing is downloaded before source_path asks for it, except README.md. Without a network
 * (HF_HUB_OFFLINE=1) the cached files are the repository's.
 *
 * Errors: ERR_RUN with what is there (no such split, subset, dataset, file), ERR_IO, ERR_NET,
 * ERR_PARSE (a malformed README.md head), ERR_CANCELLED.
 */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* Zeroed but for path: the default subset and split, from the environment's cache. */
struct source_opts {
	const char *path;          /* --dataset-path */
	const char *subset;        /* --hf-subset: a config's name; NULL: "default", the only or
	                              first one */
	const char *split;         /* --hf-split; NULL: "train" when there is one, else the first */
	const char *revision;      /* of a dataset of the hub; NULL: main */
	const char *cache_dir;     /* NULL: as fetch/hub.h */
	const atomic_bool *cancel; /* may be NULL */
	/* As in fetch/hub.h; may be NULL. Called from the calling thread. */
	void (*progress)(void *self, const char *file, int64_t done, int64_t total);
	void (*note)(void *self, const char *text);
	void *self;
};

/* Zeroed is a valid empty one. */
struct source {
	const char *subset, *split; /* those taken; subset NULL: the data has none */
	const char **file;          /* names in the folder or repository, for messages */
	size_t count;               /* at least 1 */
	const char **splits;        /* all of the subset, in the library's order */
	size_t split_count;
	struct source_part *part;   /* private: where the files are */
	struct arena arena;
};

int source_open(const struct source_opts *o, struct source *s, struct err *e);
void source_release(struct source *s);

/* The local path of file i, downloaded first where needed; path is replaced. o: as source_open. */
int source_path(const struct source_opts *o, const struct source *s, size_t i, struct buf *path,
	struct err *e);

/*
 * One file of a dataset by its name, whatever splits there are: "BFCL_v3_simple.json". If the path
 * is itself a file: the file next to it, or itself if it has that name. 0, SOURCE_NO_FILE (e says
 * so, too) or -1. path is replaced.
 */
#define SOURCE_NO_FILE 1
int source_file(const struct source_opts *o, const char *name, struct buf *path, struct err *e);
