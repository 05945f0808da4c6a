/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_file.c - see parquet_file.h. */
#include "table/parquet_file.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "table/parquet_schema.h"
#include "table/thrift.h"

#define MAGIC "PAR1"
#define TAIL_BYTES 8 /* the footer's size and the magic again */

/* What grows while row groups are read: how much there is room for. */
struct reader {
	struct parquet_file *f;
	struct thrift t;
	size_t group_room, chunk_room;
	uint64_t footer; /* where it begins: behind all pages */
	struct parquet_leaf **by_place; /* stored_count leaves, NULL where not wanted */
	struct err *e;
};

static uint32_t little_endian(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

/* The bytes of the footer. */
static int find_footer(const struct parquet_file *f, struct str *footer, struct err *e)
{
	const char *end = f->all.p + f->all.n;
	uint32_t size;

	if (f->all.n < sizeof MAGIC - 1 + TAIL_BYTES)
		return err_set(e, ERR_PARSE, "%s: %zu bytes are too few for Parquet", f->name,
			       f->all.n);
	if (memcmp(end - 4, "PARE", 4) == 0)
		return err_set(e, ERR_PARSE, "%s: an encrypted Parquet file", f->name);
	if (memcmp(f->all.p, MAGIC, 4) != 0)
		return err_set(e, ERR_PARSE, "%s: byte 0: no Parquet file, it begins without "
			       MAGIC, f->name);
	if (memcmp(end - 4, MAGIC, 4) != 0)
		return err_set(e, ERR_PARSE, "%s: byte %zu: the file does not end with " MAGIC
			       "; it may be cut short", f->name, f->all.n - 4);
	size = little_endian(end - TAIL_BYTES);
	if (size > f->all.n - 4 - TAIL_BYTES)
		return err_set(e, ERR_PARSE, "%s: byte %zu: a footer of %u bytes in a file of %zu",
			       f->name, f->all.n - TAIL_BYTES, size, f->all.n);
	if (size > PARQUET_FOOTER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s: a footer of %u bytes; the limit is %u", f->name,
			       size, PARQUET_FOOTER_BYTES_MAX);
	*footer = (struct str){ end - TAIL_BYTES - size, size };
	return 0;
}

/* ColumnMetaData, as far as it is needed; -1: not there. */
struct column_meta {
	int64_t type, codec, values, packed, data_at, dictionary_at;
	bool is_elsewhere, is_encrypted;
};

static void read_column_meta(struct thrift *t, const struct thrift_field *outer,
			     struct column_meta *meta)
{
	struct thrift_field f = { 0 };

	if (!thrift_struct(t, outer))
		return;
	while (thrift_next(t, &f))
		switch (f.id) {
		case 1: meta->type = thrift_i32(t, &f); break;
		case 4: meta->codec = thrift_i32(t, &f); break;
		case 5: meta->values = thrift_i64(t, &f); break;
		case 7: meta->packed = thrift_i64(t, &f); break;
		case 9: meta->data_at = thrift_i64(t, &f); break;
		case 11: meta->dictionary_at = thrift_i64(t, &f); break;
		default: thrift_skip(t, &f);
		}
}

/* ColumnChunk. */
static struct column_meta read_column(struct thrift *t, const struct thrift_field *outer)
{
	struct column_meta meta = { -1, -1, -1, -1, -1, -1, false, false };
	struct thrift_field f = { 0 };

	if (!thrift_struct(t, outer))
		return meta;
	while (thrift_next(t, &f)) {
		if (f.id == 3) {
			read_column_meta(t, &f, &meta);
			continue;
		}
		meta.is_elsewhere |= f.id == 1;
		meta.is_encrypted |= f.id == 8 || f.id == 9;
		thrift_skip(t, &f);
	}
	return meta;
}

static int bad_chunk(const struct reader *r, const struct parquet_leaf *leaf, const char *what)
{
	return err_set(r->e, ERR_PARSE, "%s: column \"%s\", row group %u: %s", r->f->name,
		       leaf->path.p, r->f->group_count, what);
}

static int check_chunk(const struct reader *r, const struct parquet_leaf *leaf,
		       const struct column_meta *meta, struct parquet_chunk *chunk)
{
	uint64_t begin, packed;

	if (meta->is_encrypted)
		return bad_chunk(r, leaf, "encrypted");
	if (meta->is_elsewhere)
		return bad_chunk(r, leaf, "its pages are in another file");
	if (meta->type < 0 || meta->codec < 0 || meta->values < 0 || meta->packed < 0 ||
	    meta->data_at < 0)
		return bad_chunk(r, leaf, "its description is incomplete");
	if (meta->type != (int64_t)leaf->type)
		return bad_chunk(r, leaf, "its type is not the schema's");
	if (meta->codec >= CODEC_COUNT)
		return bad_chunk(r, leaf, "a codec that is unknown");
	*chunk = (struct parquet_chunk){ .codec = (enum codec)meta->codec };
	if (meta->values == 0)
		return 0;
	begin = (uint64_t)meta->data_at;
	packed = (uint64_t)meta->packed;
	/* Some writers set 0 for none. */
	if (meta->dictionary_at > 0 && meta->dictionary_at < meta->data_at)
		begin = (uint64_t)meta->dictionary_at;
	if (begin > r->footer || packed > r->footer - begin)
		return err_set(r->e, ERR_PARSE, "%s: column \"%s\", row group %u: its %llu bytes "
			       "from byte %llu on pass the footer at byte %llu", r->f->name,
			       leaf->path.p, r->f->group_count, (unsigned long long)packed,
			       (unsigned long long)begin, (unsigned long long)r->footer);
	chunk->begin = begin;
	chunk->end = begin + packed;
	chunk->values = (uint64_t)meta->values;
	return 0;
}

static int read_chunks(struct reader *r, const struct thrift_field *f)
{
	struct parquet_file *file = r->f;
	struct thrift_field item;
	size_t base = (size_t)file->group_count * file->leaf_count;
	size_t n = thrift_list(&r->t, f, &item);

	if (!r->t.is_bad && n != file->stored_count)
		return err_set(r->e, ERR_PARSE, "%s: row group %u has %zu columns, the schema %u",
			       file->name, file->group_count, n, file->stored_count);
	for (size_t i = 0; i < n && !r->t.is_bad; i++) {
		const struct parquet_leaf *leaf = r->by_place[i];
		struct column_meta meta = read_column(&r->t, &item);
		size_t at;

		if (!leaf || r->t.is_bad)
			continue;
		at = base + (size_t)(leaf - file->leaf);
		if (at >= r->chunk_room) {
			r->chunk_room = 2 * at + 16;
			file->chunk = mem_grow(file->chunk, r->chunk_room, sizeof *file->chunk);
		}
		if (check_chunk(r, leaf, &meta, &file->chunk[at]) < 0)
			return -1;
	}
	return 0;
}

static int add_group(struct reader *r, int64_t rows)
{
	struct parquet_file *f = r->f;

	if (rows < 0)
		return err_set(r->e, ERR_PARSE, "%s: row group %u has %lld rows", f->name,
			       f->group_count, (long long)rows);
	if ((uint64_t)rows > TABLE_ROWS_MAX || f->rows + (uint64_t)rows > TABLE_ROWS_MAX)
		return err_set(r->e, ERR_LIMIT, "%s: more than %llu rows", f->name,
			       TABLE_ROWS_MAX);
	/* Callers set room aside for each row: a few bytes may not claim a billion. */
	if ((f->rows + (uint64_t)rows) / PARQUET_ROWS_PER_BYTE_MAX > f->all.n)
		return err_set(r->e, ERR_PARSE, "%s: %llu rows cannot be in %zu bytes", f->name,
			       (unsigned long long)(f->rows + (uint64_t)rows), f->all.n);
	if (f->group_count == r->group_room) {
		r->group_room = 2 * r->group_room + 16;
		f->group = mem_grow(f->group, r->group_room, sizeof *f->group);
	}
	f->group[f->group_count++] = (struct parquet_group){ f->rows, (uint64_t)rows };
	f->rows += (uint64_t)rows;
	return 0;
}

static int read_group(struct reader *r, const struct thrift_field *outer)
{
	struct thrift_field f = { 0 };
	bool has_columns = false;
	int64_t rows = -1;

	if (!thrift_struct(&r->t, outer))
		return 0;
	while (thrift_next(&r->t, &f))
		switch (f.id) {
		case 1:
			if (read_chunks(r, &f) < 0)
				return -1;
			has_columns = true;
			break;
		case 3: rows = thrift_i64(&r->t, &f); break;
		default: thrift_skip(&r->t, &f);
		}
	if (r->t.is_bad)
		return 0;
	if (!has_columns && r->f->stored_count)
		return err_set(r->e, ERR_PARSE, "%s: row group %u has no columns", r->f->name,
			       r->f->group_count);
	return add_group(r, rows);
}

static int read_groups(struct reader *r, const struct thrift_field *f)
{
	struct thrift_field item;
	size_t n = thrift_list(&r->t, f, &item);
	int rc = 0;

	r->by_place = mem_array(r->f->stored_count, sizeof(struct parquet_leaf *));
	for (uint32_t i = 0; i < r->f->leaf_count; i++)
		r->by_place[r->f->leaf[i].stored] = &r->f->leaf[i];
	for (size_t i = 0; i < n && rc == 0 && !r->t.is_bad; i++)
		rc = read_group(r, &item);
	free(r->by_place);
	return rc;
}

/* FileMetaData; the schema must come before the groups, which every writer sees to. */
static int read_footer(struct reader *r, const char *const *columns)
{
	struct parquet_file *file = r->f;
	struct thrift_field f = { 0 };
	bool has_schema = false, has_groups = false;
	int64_t rows = -1;
	int rc = 0;

	while (rc == 0 && thrift_next(&r->t, &f))
		switch (f.id) {
		case 2:
			if (has_schema)
				return err_set(r->e, ERR_PARSE, "%s: two schemas", file->name);
			has_schema = true;
			rc = parquet_schema_read(file, &r->t, &f, columns, r->e);
			break;
		case 3: rows = thrift_i64(&r->t, &f); break;
		case 4:
			if (!has_schema || has_groups)
				return err_set(r->e, ERR_PARSE, "%s: row groups %s", file->name,
					       has_schema ? "twice" : "before the schema");
			has_groups = true;
			rc = read_groups(r, &f);
			break;
		default: thrift_skip(&r->t, &f);
		}
	if (rc < 0)
		return -1;
	if (r->t.is_bad)
		return err_set(r->e, ERR_PARSE, "%s: byte %zu: the footer is damaged", file->name,
			       (size_t)(r->t.p - (const uint8_t *)file->all.p));
	if (!has_schema)
		return err_set(r->e, ERR_PARSE, "%s: the footer has no schema", file->name);
	if (rows < 0 || (uint64_t)rows != file->rows)
		return err_set(r->e, ERR_PARSE, "%s: the footer counts %lld rows, its row groups "
			       "%llu", file->name, (long long)rows,
			       (unsigned long long)file->rows);
	return 0;
}

int parquet_file_open(struct parquet_file *f, const struct table_bytes *bytes,
		      const char *const *columns, struct err *e)
{
	struct reader r = { .f = f, .e = e };
	struct str footer;

	*f = (struct parquet_file){ .name = bytes->name, .all = bytes->all };
	if (find_footer(f, &footer, e) < 0)
		return -1;
	r.t = thrift(footer);
	r.footer = (uint64_t)(footer.p - f->all.p);
	if (read_footer(&r, columns) == 0)
		return 0;
	parquet_file_release(f);
	return -1;
}

void parquet_file_release(struct parquet_file *f)
{
	arena_release(&f->arena);
	free(f->leaf);
	free(f->group);
	free(f->chunk);
}
