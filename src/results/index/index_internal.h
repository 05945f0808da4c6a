/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_internal.h - data structures of the index, filters as bits, the parts of an answer, and the
 * file of a snapshot; for index/ itself and its tests.
 *
 * Rows are in blocks of 2^block_shift. A block of a column is written once: while it is the last
 * one (the tail) rows are added after those that any version sees; when it is full it is sealed
 * into its smallest form and never changes again. A replaced tail is kept and freed when the last
 * version that may use it has gone.
 *
 * A column begins with a dictionary: a value is a code, codes are assigned as values come, 0 is
 * absent. With more than dictionary_max values it changes to keys: 64 bits per row, whose order is
 * that of the numbers; texts are offsets into the column's own text store. Blocks that were sealed
 * before keep their codes, so every block says which of both it holds.
 *
 * A version is the number of rows and, per column, the state of its tail; everything else it
 * reaches is immutable. Readers hold versions; a lock is only held to take and to return one.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/index/formula.h"
#include "results/index/index.h"

#define INDEX_BLOCK_SHIFT 16
#define INDEX_DICTIONARY_MAX 65535 /* codes 1 to that, so they fit into two bytes */
#define INDEX_TEXT_BYTES_MAX 65536 /* of one value */
/*
 * Up to this many rows, a column with more values than a dictionary holds is still listed. They are
 * sorted for that, which for 65,536 rows took most of the time of a filter.
 */
#define FACET_LISTED_ROWS_MAX 16384
#define INDEX_ROWS_MAX (1u << 30)

/* Tables that grow without moving: part k has 16 << k elements. */
#define GROW_FIRST 16u
#define GROW_PARTS 16
static inline unsigned grow_part(size_t i)
{
	return 27u - (unsigned)__builtin_clz((unsigned)i + GROW_FIRST);
}
static inline size_t grow_place(size_t i, unsigned part)
{
	return i + GROW_FIRST - ((size_t)GROW_FIRST << part);
}

/* ---- keys ---- */

enum key_special { KEY_ABSENT, KEY_NULL, KEY_FALSE, KEY_TRUE, KEY_SPECIALS };
#define KEY_TEXT 0xfff1000000000000u /* above that of infinity; the rest is an offset */

/* The bits of a double, turned so that their order as integers is that of the numbers. */
static inline uint64_t key_of_number(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits ^ (-(bits >> 63) | 1ull << 63);
}

static inline double number_of_key(uint64_t key)
{
	uint64_t bits = key ^ (((key >> 63) - 1) | 1ull << 63);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline bool key_is_number(uint64_t key)
{
	return key >= KEY_SPECIALS && key < KEY_TEXT;
}

/* ---- blocks ---- */

enum block_form {
	BLOCK_CODE,    /* one code for all; a zeroed block has absent values */
	BLOCK_CODE_4,  /* sealed only: of 64 rows the first 32 in the low halves of 32 bytes */
	BLOCK_CODE_8, BLOCK_CODE_16,
	BLOCK_KEYS,    /* 8 bytes each */
	BLOCK_PACKED,  /* keys minus the block's smallest one, in 4 to 8 bytes */
};

struct block {
	uint8_t form;
	uint8_t low_bytes;  /* packed: 0 to 4 bytes below the upper 32 bits */
	uint8_t zeros;      /* packed: low bits that are 0 in all keys, shifted away */
	bool has_text;      /* packed: some keys are texts */
	bool has_special;   /* packed: some are neither numbers nor texts */
	uint32_t code;      /* BLOCK_CODE */
	uint64_t base;      /* packed: key = base + ((packed - KEY_SPECIALS) << zeros) */
	uint64_t packed_max;
	void *data;         /* codes, keys, or the upper 32 bits; */
	uint8_t *low;       /* low_bytes of each key, little-endian, padded by 3 bytes */
};

/* ---- columns ---- */

struct dictionary {
	struct value *part[GROW_PARTS];
	uint32_t n;      /* codes, including absent's; the writer's: versions have their own */
	uint32_t *slot;  /* code by hash, open addressing; the writer's */
	uint32_t slots;
};

/* Texts of a column of keys: a length in four bytes, then the text; none crosses a chunk. */
#define TEXTS_CHUNK_SHIFT 20
#define TEXTS_CHUNKS_MAX 16384
struct texts {
	char *chunk[TEXTS_CHUNKS_MAX];
	uint64_t used;
};

struct column {
	struct block *sealed[GROW_PARTS]; /* table that grows */
	struct texts *texts;              /* NULL before a key is a text */
	/* Only used by the writer. */
	struct dictionary *dict;          /* NULL: no block holds codes */
	struct block tail;
	bool is_keys;
	bool has_sealed_codes;
	size_t touched;                   /* rows up to the last one with a value */
	uint32_t last_code;
	struct column_info info;
};

/* A version's data of a column. */
struct head {
	const struct column *column;
	const struct dictionary *dict;
	uint32_t n_codes;
	bool is_keys;
	struct block tail;
};

/* Ids of a sealed block or of the tail; id NULL: first, first + 1, ... */
struct ids { int64_t first; int64_t *id; };

/* Column numbers by name; rebuilt when there is a new column. */
struct names { size_t cap; uint32_t slot[]; };

struct index_view {
	struct index *index;
	uint64_t number;
	unsigned refs;
	struct index_view *older, *newer;
	size_t n_rows, n_columns;
	bool is_ascending;          /* whether the rows' ids are ascending */
	struct head *head;
	struct column_info *info;
	const struct names *names;
	struct ids tail_ids;
	uint8_t *const *flags;      /* of each block; NULL: no row has flags */
	size_t n_flags;             /* blocks in flags, the others have none */
};

/* Memory that no version after `last` uses. */
struct retired { void *p; size_t bytes; uint64_t last; };

struct cache;

struct index {
	unsigned block_shift;
	uint32_t dictionary_max;
	size_t listed_rows_max;     /* FACET_LISTED_ROWS_MAX; less in tests */
	pthread_mutex_t write;      /* one writer at a time */
	pthread_mutex_t lock;       /* current, the list of versions, retired */
	struct index_view *current; /* newest version */
	size_t n_versions;          /* held ones, including current */
	bool is_over;               /* index_free was called: the last view frees it */
	struct retired *retired;
	size_t n_retired, cap_retired;
	_Atomic int64_t bytes;
	/* The writer's. */
	struct column **column;
	size_t n_columns, cap_columns;
	struct map column_by_name;
	struct names *names;
	struct ids *ids[GROW_PARTS];
	int64_t *tail_id;
	size_t tail_cap;            /* rows that arrays of tails have room for */
	size_t n_rows;
	int64_t last_id;
	bool is_ascending;
	uint8_t **flags;
	size_t n_flags;
	uint64_t number;
	size_t *guess;              /* column of the nth cell of the previous row */
	size_t n_guesses;
	char *text_chunk;           /* texts of dictionaries and names */
	size_t text_left;
	struct text_chunk *text_chunks;
	struct str mapping;         /* of the snapshot, empty: none */
	struct cache *cache;
};

static inline size_t block_rows(const struct index *x) { return (size_t)1 << x->block_shift; }

/* Smaller blocks and dictionaries than usual, for tests. */
struct index *index_make_with(unsigned block_shift, uint32_t dictionary_max);

/*
 * Memory that index_bytes counts: index_alloc gives zeroed memory; index_retire frees it once no
 * version can use it. Both freeing functions ignore memory in the mapped snapshot.
 */
void *index_alloc(struct index *x, size_t bytes);
void index_drop(struct index *x, void *p, size_t bytes); /* at once */
void index_retire(struct index *x, void *p, size_t bytes);
struct str index_text(struct index *x, struct str s);

/* ---- the writer's side of the index; index.c ---- */

#define TAIL_ROWS_FIRST 64
#define TAIL_GROWTH 4
void index_publish(struct index *x);
void index_make_names(struct index *x); /* after columns were added, before they are published */
size_t index_add_column(struct index *x, struct str name); /* its number */
struct ids *index_sealed_ids(struct index *x, size_t block);

/* ---- the writer's side of a column; column.c ---- */

/* Row is the number of the row that v belongs to, the next one of the index. */
void column_add(struct index *x, struct column *c, size_t row, struct value v);
/* After a row: pads columns without a value in it, seals full tails. */
void column_pass(struct index *x, struct column *c, size_t rows);
void column_make_room(struct index *x, struct column *c, size_t cap);
/* Makes room for the block after `blocks` sealed ones. */
void column_make_sealed(struct index *x, struct column *c, size_t blocks);
struct block *column_sealed(struct column *c, size_t i);
void column_free(struct index *x, struct column *c);
/* Adds a value that is not there yet; codes are assigned in order. */
uint32_t dictionary_add(struct index *x, struct dictionary *d, struct value v);
struct dictionary *dictionary_new(struct index *x);
/* No more values will be looked up or added. */
void dictionary_close(struct index *x, struct column *c);

/* ---- reading; read.c ---- */

static inline struct value dictionary_value(const struct dictionary *d, uint32_t code)
{
	unsigned part = grow_part(code);

	return d->part[part][grow_place(code, part)];
}

static inline struct str texts_at(const struct texts *t, uint64_t key)
{
	uint64_t at = key - KEY_TEXT;
	const char *p = t->chunk[at >> TEXTS_CHUNK_SHIFT] + (at & ((1u << TEXTS_CHUNK_SHIFT) - 1));
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return (struct str){ p + sizeof(n), n };
}

static inline uint64_t packed_at(const struct block *b, size_t i)
{
	uint32_t low;
	uint64_t high = ((const uint32_t *)b->data)[i];

	if (!b->low_bytes)
		return high;
	memcpy(&low, b->low + i * b->low_bytes, sizeof(low));
	if (b->low_bytes < 4)
		low &= (1u << 8 * b->low_bytes) - 1;
	return high << 8 * b->low_bytes | low;
}

static inline uint64_t key_of_packed(const struct block *b, uint64_t packed)
{
	return packed < KEY_SPECIALS ? packed : b->base + ((packed - KEY_SPECIALS) << b->zeros);
}

static inline bool block_is_keys(const struct block *b)
{
	return b->form >= BLOCK_KEYS;
}

/* Size of its data, for that many rows. */
static inline size_t block_bytes(enum block_form form, size_t rows)
{
	static const uint8_t half_bytes[] = { 0, 1, 2, 4, 16, 8 };

	return rows * half_bytes[form] / 2;
}

static inline uint32_t block_code(const struct block *b, size_t i)
{
	const uint8_t *narrow = b->data;
	const uint16_t *wide = b->data;

	switch (b->form) {
	case BLOCK_CODE:
		return b->code;
	case BLOCK_CODE_4:
		return (uint32_t)narrow[(i >> 6) * 32 + (i & 31)] >> (i >> 3 & 4) & 15;
	case BLOCK_CODE_8:
		return narrow[i];
	default:
		return wide[i];
	}
}

static inline uint64_t block_key(const struct block *b, size_t i)
{
	return b->form == BLOCK_KEYS ? ((const uint64_t *)b->data)[i] :
				       key_of_packed(b, packed_at(b, i));
}

/* The number of a column, or SIZE_MAX. */
size_t view_column(const struct index_view *v, struct str name);
/* A formula with its columns looked up. An invalid text has no value in any row. */
struct view_formula { struct formula formula; size_t number[FORMULA_COLUMNS_MAX]; };
void view_formula_make(const struct index_view *v, struct str text, struct view_formula *out);
struct value view_formula_value(const struct index_view *v, const struct view_formula *f,
				size_t row);
size_t view_blocks(const struct index_view *v);
size_t view_block_rows(const struct index_view *v, size_t block);
/* Block number `block` of a column. */
const struct block *view_block(const struct index_view *v, const struct head *h, size_t block);
struct value view_value(const struct index_view *v, const struct head *h, size_t row);
struct value head_value(const struct head *h, const struct block *b, size_t i);
struct value value_of_key(const struct head *h, uint64_t key);
int64_t view_id(const struct index_view *v, size_t row);
unsigned view_flags(const struct index_view *v, size_t row);
/* A whole row by its place. */
struct row view_cells(const struct index_view *v, size_t row, struct arena *a);
/* SIZE_MAX: not found. Finds removed ones. */
size_t view_row_of(const struct index_view *v, int64_t id);

/*
 * Rows as bits: what a filter chooses of a version, and walking over it.
 *
 * Row r is bit r % 64 of word r / 64; bits after the last row are 0. Blocks begin at whole words.
 */

static inline size_t select_words(const struct index_view *v) { return (v->n_rows + 63) / 64; }

/* Zeroed bits for all rows. */
uint64_t *select_none(const struct index_view *v, struct arena *a);
void select_all(const struct index_view *v, uint64_t *out);
/* Rows whose flags are all in shown, and if is_only, that have at least one of them. */
void select_shown(const struct index_view *v, unsigned shown, bool is_only, uint64_t *out);
/* Rows that f holds for. */
void select_filter(const struct index_view *v, const struct filter *f, struct arena *a,
		   uint64_t *out);
void select_and(const struct index_view *v, const uint64_t *with, uint64_t *out);

/* Chosen rows, counted, and laid out by block. */
struct choice {
	const uint64_t *word;
	size_t total;
	uint32_t *count;  /* of each block */
	uint16_t **place; /* of each block, its chosen positions; NULL: all, or none */
};
void choice_make(const struct index_view *v, const uint64_t *word, struct arena *a,
		 struct choice *out);

/* Row number of the ith chosen one of a block, which begins at row `first`. */
static inline size_t choice_row(const struct choice *c, size_t block, size_t i, size_t first)
{
	return first + (c->place[block] ? c->place[block][i] : i);
}

/* Finite numbers of the chosen rows of a column, in the order of rows; room for choice->total. */
size_t choice_numbers(const struct index_view *v, const struct choice *c, const struct head *h,
		      struct arena *a, double *out);

/* ---- the parts of an answer, each from chosen rows ---- */

/* The conditions at the top of a filter; a filter that is not an "and" is one itself. */
size_t filter_top(const struct filter *f, struct filter *const **part);
/* Whether f names only this column. */
bool filter_is_about(const struct filter *f, struct str column);

/* Memory of one thread, reused for the parts of an answer. */
struct scratch {
	struct arena arena;
	double *number; /* capacity: number of chosen rows; made on demand */
	size_t n_numbers;
};
double *scratch_numbers(struct scratch *s, size_t n);

/* Values listed by conditions on a facet's own column. */
struct wanted { struct value *value; size_t n; };

/* Sets the parts of the facet that outlive counting. */
void facet_begin(const struct query *q, struct str column, struct arena *a, struct facet *out,
		 struct wanted *wanted);
void facet_count(const struct index_view *v, const struct choice *c, const struct query *q,
		 const struct wanted *wanted, struct scratch *s, struct facet *out);
void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    bool only_ends, struct scratch *s, struct statistic *out);

/* What a page is sorted by, as keys that compare like the values; page.c. */
struct column_order {
	const struct head *head;
	const uint32_t *rank; /* of each code; NULL: the column has keys */
	bool is_descending;
};

struct order {
	const struct index_view *view;
	struct column_order by[QUERY_SORTS_MAX];
	size_t n;
	const struct fold *fold; /* NULL: rows are sorted; else its groups */
};
/* For the value of a row in the order's nth column; missing ones last in both directions. */
uint64_t order_key(const struct order *o, size_t nth, size_t row);
uint64_t order_key_of_number(const struct column_order *by, double v);
#define KEY_LAST UINT64_MAX /* missing values, in either direction */

/*
 * Chosen rows as groups of equal values in one column (query.fold); rows with other flags, and rows
 * without a value, are separate groups. fold.c; everything is in the arena.
 */
struct fold {
	size_t n_rows, n;         /* chosen rows; groups, in the order of their first rows */
	uint32_t *row, *group;    /* of each chosen row: its place in the index, its group */
	uint32_t *newest;         /* of each group: the place of its row with the largest id */
	uint32_t *first, *member; /* rows of group g: member[first[g]] up to first[g + 1] */
	uint64_t *key[QUERY_SORTS_MAX];
	bool is_computed[QUERY_SORTS_MAX]; /* equal keys mean equal values */
};
/*
 * o: the order of the rows, whose keys become those of the groups. Some row has a value in q->fold.
 */
void fold_make(const struct index_view *v, const struct choice *c, const struct query *q,
	       const struct order *o, struct arena *a, struct fold *out);
/* The group of a row; SIZE_MAX: not among the chosen ones. */
size_t fold_find(const struct fold *f, size_t row);
struct page_row fold_row(const struct index_view *v, const struct fold *f, size_t group,
			 const struct query *q, const size_t *column, struct arena *a);
/* A row as a group by itself. */
struct page_row fold_single(struct page_row row, size_t n_columns, struct arena *a);

/* The ids of the first chosen rows, at most `most`, in the query's order; returns how many. */
size_t page_order(const struct index_view *v, const struct choice *c, const struct query *q,
		  size_t most, struct arena *a, int64_t *id);
/* -1: an invalid cursor. */
int page_make(const struct index_view *v, const struct choice *c, const struct query *q,
	      struct arena *a, struct answer *out, struct err *e);

/* ---- cache of answers for the newest version; thread-safe ---- */

#define CACHE_ANSWERS_MAX 256
#define CACHE_ROWS_MAX 1000 /* larger pages are not cached */

struct cache;
struct cache *cache_new(size_t bytes_max);
void cache_free(struct cache *c);
void cache_limit(struct cache *c, size_t bytes_max);

/* A query as bytes: equal ones have equal answers in one version. */
struct str cache_key(const struct query *q, struct arena *a);
bool cache_get(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       struct arena *a, struct answer *out);
void cache_put(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       const struct answer *answer);

/*
 * The file of a snapshot, for its writer, its reader and its tests.
 *
 *   head    64 bytes: magic, form, byte order, sizes, checksums
 *   table   columns, dictionaries and the positions of the pieces of every block: 64-bit numbers,
 *           texts preceded by their length
 *   pieces  arrays of blocks, each at a multiple of 64 bytes from the first one
 *
 * Everything is checked: the head and the table by their own sums, each piece by the one in the
 * table, and then the content of pieces (codes that exist, texts inside the text store).
 * Little-endian machines only; files of another byte order are refused.
 */

#define SNAPSHOT_MAGIC "profllmX"
#define SNAPSHOT_FORM 7 /* derived columns: 4: all; 5: configuration; 6: lengths; 7: verdict */
#define SNAPSHOT_ORDER 0x0102030405060708u
#define SNAPSHOT_ALIGN 64

struct snapshot_head {
	char magic[8];
	uint64_t form, order;
	uint64_t file_bytes, table_bytes, table_sum;
	int64_t sequence;
	uint64_t head_sum; /* of the bytes before it */
};

static inline size_t snapshot_align(size_t n)
{
	return (n + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
}

/* Every single changed byte changes the sum, because each step is invertible. */
uint64_t snapshot_sum(struct str bytes);
