/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.h - datasets of the Hugging Face hub; datasets spec 5.12 to 5.23. Private to data/.
 *
 * The table in hf.c has one row per class of datasets: its names, and everything about it that is
 * not code. A draft function turns one row of the data into a request, in a file per family
 * (hf_text.c, hf_chat.c, ...); hf_rows.c provides the rows in their order and reads their columns.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "input/data/build.h"
#include "input/data/source.h"
#include "input/table/table.h"

struct hf;

/* Which --backend carries a class. */
enum hf_gate {
	HF_ANY,
	HF_MEDIA, /* openai-chat, openai-audio and embeddings */
	HF_CHAT,  /* openai-chat */
};

/* One row of data during one draft. */
struct hf_row {
	struct hf *hf;
	size_t shard, row;         /* which one it is */
	struct json_slice object;
};

/* build.h: 1, 0 (left out) or -1. The answer of a draft is dropped when lengths are given. */
typedef int hf_draft_fn(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e);

struct hf_class {
	const char *name;
	const char *const *ids;     /* names on the hub, NULL-terminated */
	const char *const *columns; /* that are read of a row, NULL-terminated; NULL: all */
	const char *split;          /* without --hf-split; NULL: "train", else the first */
	const char *subset;         /* without --hf-subset; NULL: the data's own default */
	bool has_no_subset;         /* --hf-subset has no effect */
	bool is_templated;          /* each text is one user message */
	bool is_rendered;           /* it must be rendered by dataset_env.render */
	bool has_chat_form;         /* --enable-multimodal-chat has an effect */
	bool is_row_index;          /* as struct take */
	bool is_output_unchecked;   /* as struct take */
	bool is_always_filtered;    /* the length filter holds with --hf-output-len, too */
	bool is_output_fixed;       /* --hf-output-len has no effect */
	enum hf_gate gate;
	size_t prompt_max, total_max; /* the length filter (spec 1.4) in tokens; 0: none */
	int64_t output_len;         /* tokens asked for where a row has no answer to go by */
	int (*open)(struct hf *h, struct err *e);   /* instead of hf_open_split; may be NULL */
	hf_draft_fn *draft;
	int (*make_media)(void *self, const struct draft *d, struct buf *parts, struct err *e);
	void (*finish)(struct hf *h);               /* notes, once all are taken; may be NULL */
};

struct hf {
	const struct hf_class *class;
	const char *id;            /* the hub name it was recognised by; NULL: it was not */
	const struct dataset_opts *opts;
	const struct dataset_env *env;
	struct workload *w;
	struct take take;
	struct source_opts where;
	struct source source;
	struct table **table;      /* one per shard, opened when it is due */
	size_t shards;
	bool is_whole;             /* never a stream's order */
	struct hf_order *order;    /* NULL: rows come as listed */
	struct order_row *list;
	size_t listed;
	size_t first;              /* of w's samples, how many were there before */
	size_t left_out;           /* unusable rows, for a class's notes */
	bool is_hub_gone;          /* it did not answer once: files come from the cache alone */
	struct buf text;           /* for a moment */
	void *own;                 /* a class's own memory, from mem.h */
};

/* ---- hf_rows.c: rows in their order ---- */

/* Opens the files of the requested split, in the requested order. */
int hf_open_split(struct hf *h, struct err *e);
/* Opens path as the table of a shard; for a split this happens by itself when needed. */
int hf_open_table(struct hf *h, size_t shard, const char *path, struct err *e);
/* 1 and the i-th row (asked for from 0 upwards); 0: that was all; -1. */
int hf_next_row(struct hf *h, size_t i, struct hf_row *out, struct err *e);
void hf_close_rows(struct hf *h);

/* ---- hf_rows.c: columns ---- */

/* Fills e with the row's place followed by the error; returns -1. */
__attribute__((format(printf, 3, 4)))
int hf_refuse(const struct hf_row *r, struct err *e, const char *fmt, ...);
/* The column must exist, but may be null. -1 with e, which lists the existing columns. */
int hf_column(const struct hf_row *r, const char *column, struct json_slice *out, struct err *e);
/* The column must be text; a copy in a. */
int hf_text(const struct hf_row *r, const char *column, struct arena *a, struct str *out,
	    struct err *e);
/* Appends v as Python's format() would: texts as they are, null as None. */
void hf_format(struct buf *out, struct json_slice v);
/* Appends the column's value in the same form. */
int hf_add_column(const struct hf_row *r, const char *column, struct buf *out, struct err *e);
/* Takes out the text that was built in h->text, as a copy in a. */
struct str hf_built(const struct hf_row *r, struct arena *a);
/*
 * The bytes of a binary value ("data:;base64,..."), in a. 1; 0: v is not such a text; -1: it is
 * damaged.
 */
int hf_bytes(const struct hf_row *r, struct json_slice v, struct arena *a, struct str *out,
	     struct err *e);
/*
 * The local file for a name in a row: the name as a path, in the folder or repository of the data,
 * in the repository of the class (then downloaded). *out without p: there is none.
 */
int hf_file(const struct hf_row *r, struct str name, struct arena *a, struct str *out,
	    struct err *e);
/* The place of the row ("train.jsonl:17"), in a. */
const char *hf_where(const struct hf_row *r, struct arena *a);

/* ---- the families ---- */

hf_draft_fn hf_draft_instruct_coder, hf_draft_mt_bench, hf_draft_human_eval, hf_draft_gsm8k,
	hf_draft_aimo, hf_draft_mlperf;                                    /* hf_text.c */
hf_draft_fn hf_draft_conversation, hf_draft_multimodal_conversation;       /* hf_chat.c */
hf_draft_fn hf_draft_next_edit, hf_draft_blazedit;                         /* hf_edit.c */
hf_draft_fn hf_draft_vision_arena, hf_draft_mmvu, hf_draft_mmstar;         /* hf_media.c */
hf_draft_fn hf_draft_asr, hf_draft_bfcl, hf_draft_any;   /* hf_asr.c, hf_bfcl.c, hf_any.c */

/* An image of a row (null: none) becomes d->media for hf_make_media. */
int hf_add_image(const struct hf_row *r, struct json_slice v, struct arena *a, struct draft *d,
		 struct err *e);
int hf_make_media(void *self, const struct draft *d, struct buf *parts, struct err *e);
int hf_make_audio(void *self, const struct draft *d, struct buf *parts, struct err *e);
int hf_open_asr(struct hf *h, struct err *e);
void hf_finish_asr(struct hf *h);
int hf_open_bfcl(struct hf *h, struct err *e);
void hf_finish_bfcl(struct hf *h);
void hf_finish_any(struct hf *h);

/*
 * The order of the rows of a Hugging Face dataset; datasets spec 8.2.
 *
 * Rows are identified by shard (data file) and number in it. A shard's number of rows is asked for
 * when its first row is due, so that files which are never reached need not be there; ORDER_WHOLE
 * asks for all of them at once.
 *
 * Orders equal the library's to the last row: the streams of 2.x to 4.x (the reference here: 4.8.5)
 * and those of 5.x (5.2.0), which takes rows by the hundred where it knows the types of the columns
 * beforehand (Parquet, JSON lines) and one by one elsewhere (arrays, CSV, text).
 *
 * Memory: ORDER_WHOLE 8 bytes per row, streams 64 KiB. Not thread-safe.
 */

enum order_kind {
	ORDER_NATURAL,   /* shards one after the other: --disable-shuffle */
	ORDER_WHOLE,     /* Dataset.shuffle(seed): --no-stream */
	ORDER_STREAM,    /* IterableDataset.shuffle(seed), buffer of 1000, library 2.x to 4.x */
	ORDER_STREAM_5,  /* the same of library 5.x: shards side by side, half a buffer at a time */
	ORDER_STREAM_5_ROWS, /* the same, for arrays, CSV and text lines */
};

struct order_row {
	size_t shard;
	uint64_t row;
};

/* How many rows shard has: 0, or -1 with e filled. Asked for once per shard. */
typedef int order_rows_fn(void *self, size_t shard, uint64_t *rows, struct err *e);

struct hf_order;

/* NULL with e set: rows failed, or ERR_LIMIT (more than SHUFFLED_ROWS_MAX rows for ORDER_WHOLE). */
struct hf_order *order_open(enum order_kind kind, uint64_t seed, size_t shards, order_rows_fn *rows,
	void *self, struct err *e);
void order_close(struct hf_order *o); /* accepts NULL */

/* 1 and the next row; 0: that was all; -1 with e set. */
int order_next(struct hf_order *o, struct order_row *out, struct err *e);
