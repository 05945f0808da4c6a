/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - what the index is made of; for index/ itself and its tests.
 *
 * Rows lie in blocks of 2^block_shift. A block of a column is written once: while it is the last
 * one (the tail) rows are added behind those that any version sees; when it is full it is sealed
 * into its smallest form and never changes again. What a tail outgrows is put aside and freed
 * when the last version that may look at it has gone.
 *
 * A column begins with a dictionary: a value is a code, codes are handed out as values come, 0 is
 * absent. With more than dictionary_max values it changes over to keys: 64 bits in a row, in whose
 * order numbers lie in theirs; texts are offsets into the column's own text store. Blocks that
 * were sealed before keep their codes, so every block says which of both it holds.
 *
 * A version is the number of rows and, per column, what its tail was; everything else it
 * reaches does not change. Readers hold versions, a lock is held only to take and to give back one.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "core/base/mem.h"
#include "results/index/index.h"

#define INDEX_BLOCK_SHIFT 16
#define INDEX_DICTIONARY_MAX 65535 /* codes 1 to that, so they fit into two bytes */
#define INDEX_TEXT_BYTES_MAX 65536 /* of one value */
/* Rows of a column of more values than a dictionary takes that are still listed value by value. */
#define FACET_LISTED_ROWS_MAX 65536
#define INDEX_ROWS_MAX (1u << 30)

/* Tables that grow without moving: part k has 16 << k places. */
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
	BLOCK_CODE,    /* one code for all; a zeroed block is one of absent values */
	BLOCK_CODE_4,  /* sealed only: of 64 rows the first 32 in the low halves of 32 bytes */
	BLOCK_CODE_8, BLOCK_CODE_16,
	BLOCK_KEYS,    /* 8 bytes each */
	BLOCK_PACKED,  /* keys less the least one of the block, in 4 to 8 bytes */
};

struct block {
	uint8_t form;
	uint8_t low_bytes;  /* packed: 0 to 4 bytes below the upper 32 bits */
	uint8_t zeros;      /* packed: low bits that are 0 in all keys, shifted away */
	bool has_text;      /* packed: some keys are texts */
	bool has_special;   /* packed: some are no numbers and no texts */
	uint32_t code;      /* BLOCK_CODE */
	uint64_t base;      /* packed: key = base + ((packed - KEY_SPECIALS) << zeros) */
	uint64_t packed_max;
	void *data;         /* codes, keys, or the upper 32 bits; */
	uint8_t *low;       /* low_bytes of each, least first, three bytes of room behind */
};

/* ---- columns ---- */

struct dictionary {
	struct value *part[GROW_PARTS];
	uint32_t n;      /* codes, with that of absent; the writer's: versions have their own */
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
	/* What only the writer looks at. */
	struct dictionary *dict;          /* NULL: no block holds codes */
	struct block tail;
	bool is_keys;
	bool has_sealed_codes;
	size_t touched;                   /* rows up to the last one with a value */
	uint32_t last_code;
	struct column_info info;
};

/* What a version knows of a column. */
struct head {
	const struct column *column;
	const struct dictionary *dict;
	uint32_t n_codes;
	bool is_keys;
	struct block tail;
};

/* Ids of a sealed block or of the tail; id NULL: first, first + 1, ... */
struct ids { int64_t first; int64_t *id; };

/* Column numbers by name; made anew when there is a new column. */
struct names { size_t cap; uint32_t slot[]; };

struct index_view {
	struct index *index;
	uint64_t number;
	unsigned refs;
	struct index_view *older, *newer;
	size_t n_rows, n_columns;
	bool is_ascending;          /* ids of the rows */
	struct head *head;
	struct column_info *info;
	const struct names *names;
	struct ids tail_ids;
	uint8_t *const *flags;      /* of each block; NULL: none has any */
	size_t n_flags;             /* blocks in flags, the rest has none */
};

/* Something that no version after `last` looks at. */
struct retired { void *p; size_t bytes; uint64_t last; };

struct cache;

struct index {
	unsigned block_shift;
	uint32_t dictionary_max;
	size_t listed_rows_max;     /* FACET_LISTED_ROWS_MAX; fewer in tests */
	pthread_mutex_t write;      /* one writer at a time */
	pthread_mutex_t lock;       /* current, the list of versions, retired */
	struct index_view *current; /* newest version */
	size_t n_versions;          /* that somebody holds, current among them */
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
	size_t *guess;              /* column of the nth cell of the row before */
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
 * Memory that index_bytes counts: zeroed, and freed when nobody can look at it. What lies in the
 * mapped snapshot may be handed to both that free: it stays.
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
/* After a row: columns that had no value in it take note, tails that are full are sealed. */
void column_pass(struct index *x, struct column *c, size_t rows);
void column_make_room(struct index *x, struct column *c, size_t cap);
/* Room for the block after `blocks` sealed ones. */
void column_make_sealed(struct index *x, struct column *c, size_t blocks);
struct block *column_sealed(struct column *c, size_t i);
void column_free(struct index *x, struct column *c);
/* Puts a value without looking whether it is there; codes are handed out in order. */
uint32_t dictionary_add(struct index *x, struct dictionary *d, struct value v);
struct dictionary *dictionary_new(struct index *x);
/* No value will be looked up or added any more. */
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

/* Of its data, for so many rows. */
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
/* SIZE_MAX: there is none. Removed ones are found. */
size_t view_row_of(const struct index_view *v, int64_t id);
