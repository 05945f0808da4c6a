/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_file.c - the footer of a Parquet file: the schema and the row groups; see parquet.h. */
#include "input/table/parquet.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"

/* ---- the schema ---- */

/*
 * The elements come in the order of a walk through the tree, parents first, each with the number of
 * its children. A repeated element raises both levels, an optional one the definition level; what
 * is not needed for reading (field ids, precision) is dropped.
 */

#define ELEMENTS_MAX (8 * TABLE_COLUMNS_MAX) /* groups, too */
#define NAME_SHOWN 64                        /* bytes of a name in errors */
#define SCALE_MAX 1000                       /* digits after a decimal's point; 76 are real */

enum repetition { REQUIRED, OPTIONAL, REPEATED };
enum parquet_annotation { PLAIN_GROUP, AS_LIST, AS_MAP };

struct element {
	struct str name;
	struct parquet_leaf leaf; /* what is known of it so far */
	enum repetition repetition;
	enum parquet_annotation annotation;
	uint32_t children;
	bool has_type;
};

/* ---- one element ---- */

/* ConvertedType, which older writers use alone. */
static void read_converted(struct element *el, int32_t converted)
{
	static const struct {
		enum parquet_meaning meaning;
		enum parquet_annotation annotation;
		uint32_t digits;
	} of[] = {
		[0] = { .meaning = MEANS_TEXT },           /* UTF8 */
		[1] = { .annotation = AS_MAP },            /* MAP */
		[2] = { .annotation = AS_MAP },            /* MAP_KEY_VALUE */
		[3] = { .annotation = AS_LIST },           /* LIST */
		[4] = { .meaning = MEANS_TEXT },           /* ENUM */
		[5] = { .meaning = MEANS_DECIMAL },
		[6] = { .meaning = MEANS_DATE },
		[7] = { .meaning = MEANS_TIME, .digits = 3 },
		[8] = { .meaning = MEANS_TIME, .digits = 6 },
		[9] = { .meaning = MEANS_TIMESTAMP, .digits = 3 },
		[10] = { .meaning = MEANS_TIMESTAMP, .digits = 6 },
		[11] = { .meaning = MEANS_UNSIGNED },      /* UINT_8 */
		[12] = { .meaning = MEANS_UNSIGNED },
		[13] = { .meaning = MEANS_UNSIGNED },
		[14] = { .meaning = MEANS_UNSIGNED },      /* UINT_64 */
		[19] = { .meaning = MEANS_TEXT },          /* JSON */
	};

	if (converted < 0 || (size_t)converted >= sizeof of / sizeof *of)
		return;
	el->leaf.meaning = of[converted].meaning;
	el->annotation = of[converted].annotation;
	el->leaf.digits = of[converted].digits;
	el->leaf.is_utc = true;
}

/* TIME or TIMESTAMP: whether it is in UTC, and its unit. */
static void read_time(struct element *el, struct thrift *t, const struct thrift_field *f,
		      enum parquet_meaning meaning)
{
	struct thrift_field in = { 0 }, unit = { 0 };

	el->leaf.meaning = meaning;
	el->leaf.digits = 0;
	el->leaf.is_utc = false;
	if (!thrift_struct(t, f))
		return;
	while (thrift_next(t, &in)) {
		if (in.id == 1) {
			el->leaf.is_utc = thrift_bool(t, &in);
		} else if (in.id == 2 && thrift_struct(t, &in)) {
			unit = (struct thrift_field){ 0 };
			while (thrift_next(t, &unit)) {
				el->leaf.digits = unit.id >= 1 && unit.id <= 3 ?
					(uint32_t)unit.id * 3 : 0;
				thrift_skip(t, &unit);
			}
		} else {
			thrift_skip(t, &in);
		}
	}
	if (el->leaf.digits == 0) /* a unit of the future */
		el->leaf.meaning = MEANS_TYPE;
}

/* INTEGER: 1 its bits, 2 whether it has a sign. DECIMAL: 1 its scale. */
static void read_numbers(struct element *el, struct thrift *t, const struct thrift_field *f,
			 int32_t *scale)
{
	struct thrift_field in = { 0 };
	bool is_decimal = f->id == 5;

	if (!thrift_struct(t, f))
		return;
	el->leaf.meaning = is_decimal ? MEANS_DECIMAL : MEANS_TYPE;
	while (thrift_next(t, &in)) {
		if (in.id == 1 && is_decimal)
			*scale = thrift_i32(t, &in);
		else if (in.id == 2 && !is_decimal)
			el->leaf.meaning = thrift_bool(t, &in) ? MEANS_TYPE : MEANS_UNSIGNED;
		else
			thrift_skip(t, &in);
	}
}

/* LogicalType, a union: everything in ConvertedType and more. */
static void read_logical(struct element *el, struct thrift *t, const struct thrift_field *f,
			 int32_t *scale)
{
	struct thrift_field in = { 0 };

	if (!thrift_struct(t, f))
		return;
	while (thrift_next(t, &in)) {
		switch (in.id) {
		case 1: case 4: case 12: /* STRING, ENUM, JSON */
			el->leaf.meaning = MEANS_TEXT;
			break;
		case 2:
			el->annotation = AS_MAP;
			break;
		case 3:
			el->annotation = AS_LIST;
			break;
		case 6:
			el->leaf.meaning = MEANS_DATE;
			break;
		case 14:
			el->leaf.meaning = MEANS_UUID;
			break;
		case 15:
			el->leaf.meaning = MEANS_HALF;
			break;
		case 5: case 10:
			read_numbers(el, t, &in, scale);
			continue;
		case 7: case 8:
			read_time(el, t, &in, in.id == 7 ? MEANS_TIME : MEANS_TIMESTAMP);
			continue;
		default:
			break;
		}
		thrift_skip(t, &in);
	}
}

/* An annotation that does not fit the type is ignored. */
static enum parquet_meaning checked_meaning(const struct parquet_leaf *leaf)
{
	enum parquet_type type = leaf->type;
	bool is_int = type == PARQUET_INT32 || type == PARQUET_INT64;
	bool is_bytes = type == PARQUET_BYTES || type == PARQUET_FIXED;
	bool fits = true;

	switch (leaf->meaning) {
	case MEANS_TYPE:
		break;
	case MEANS_TEXT:
		fits = is_bytes;
		break;
	case MEANS_UNSIGNED:
		fits = is_int;
		break;
	case MEANS_DECIMAL:
		fits = is_int || is_bytes;
		break;
	case MEANS_DATE:
		fits = type == PARQUET_INT32;
		break;
	case MEANS_TIME:
		fits = type == (leaf->digits == 3 ? PARQUET_INT32 : PARQUET_INT64);
		break;
	case MEANS_TIMESTAMP:
		fits = type == PARQUET_INT64;
		break;
	case MEANS_UUID:
		fits = type == PARQUET_FIXED && leaf->width == 16;
		break;
	case MEANS_HALF:
		fits = type == PARQUET_FIXED && leaf->width == 2;
		break;
	}
	return fits ? leaf->meaning : MEANS_TYPE;
}

static int check_element(struct parquet_file *file, struct element *el, int32_t type,
			 int32_t length, int32_t scale, struct err *e)
{
	static const uint8_t width[PARQUET_TYPES] = { [PARQUET_INT32] = 4, [PARQUET_INT64] = 8,
		[PARQUET_INT96] = 12, [PARQUET_FLOAT] = 4, [PARQUET_DOUBLE] = 8 };
	struct parquet_leaf *leaf = &el->leaf;
	int n = el->name.n > 60 ? 60 : (int)el->name.n;

	if (!el->has_type)
		return 0;
	if (type < 0 || type >= PARQUET_TYPES)
		return err_set(e, ERR_PARSE, "%s: column \"%.*s\" is of type %d, expected 0 to 7",
			       file->name, n, el->name.p, type);
	leaf->type = (enum parquet_type)type;
	leaf->width = width[type];
	if (leaf->type == PARQUET_FIXED) {
		if (length <= 0)
			return err_set(e, ERR_PARSE, "%s: column \"%.*s\" has values of %d bytes",
				       file->name, n, el->name.p, length);
		leaf->width = (uint32_t)length;
	}
	leaf->meaning = checked_meaning(leaf);
	if (leaf->meaning == MEANS_DECIMAL && (scale < 0 || scale > SCALE_MAX))
		return err_set(e, ERR_PARSE, "%s: column \"%.*s\" is of decimals of scale %d",
			       file->name, n, el->name.p, scale);
	leaf->scale = (uint32_t)scale;
	return 0;
}

static int read_element(struct parquet_file *file, struct thrift *t,
			const struct thrift_field *item, struct element *el, struct err *e)
{
	struct thrift_field f = { 0 };
	int32_t type = 0, length = 0, repetition = REQUIRED, children = 0, scale = 0;

	*el = (struct element){ .name = STR("") };
	if (!thrift_struct(t, item))
		return 0;
	while (thrift_next(t, &f))
		switch (f.id) {
		case 1:
			type = thrift_i32(t, &f);
			el->has_type = true;
			break;
		case 2: length = thrift_i32(t, &f); break;
		case 3: repetition = thrift_i32(t, &f); break;
		case 4: el->name = thrift_bytes(t, &f); break;
		case 5: children = thrift_i32(t, &f); break;
		case 6: read_converted(el, thrift_i32(t, &f)); break;
		case 7: scale = thrift_i32(t, &f); break;
		case 10: read_logical(el, t, &f, &scale); break;
		default: thrift_skip(t, &f);
		}
	if (repetition < REQUIRED || repetition > REPEATED || children < 0 ||
	    children > ELEMENTS_MAX)
		return err_set(e, ERR_PARSE, "%s: a column of the schema has repetition %d and %d "
			       "children", file->name, repetition, children);
	el->repetition = (enum repetition)repetition;
	el->children = (uint32_t)children;
	return check_element(file, el, type, length, scale, e);
}

/* ---- the tree ---- */

struct schema_builder {
	struct parquet_file *file;
	const struct element *element;
	uint32_t at, count;
	struct buf path; /* of the element being built, "a.b.c" */
	struct err *e;
};

/* The surroundings of an element: its levels, and JSON's nesting depth. */
struct schema_place {
	unsigned def, rep, depth;
};

static struct parquet_node *field(struct schema_builder *b, struct schema_place at);
static struct parquet_node *content(struct schema_builder *b, const struct element *el,
				    struct schema_place at);

static const struct element *take(struct schema_builder *b)
{
	if (b->at < b->count)
		return &b->element[b->at++];
	err_set(b->e, ERR_PARSE, "%s: the schema ends before all its columns", b->file->name);
	return NULL;
}

static struct parquet_node *new_node(struct schema_builder *b, enum parquet_shape shape)
{
	struct parquet_node *node = arena_alloc(&b->file->arena, sizeof *node);

	node->shape = shape;
	node->first_leaf = b->file->leaf_count;
	return node;
}

static struct parquet_node *value(struct schema_builder *b, const struct element *el,
				  struct schema_place at)
{
	struct parquet_node *node = new_node(b, SHAPE_VALUE);
	struct parquet_file *file = b->file;
	struct parquet_leaf *leaf;

	if (file->stored_count >= TABLE_COLUMNS_MAX) {
		err_set(b->e, ERR_LIMIT, "%s: more than %d columns", file->name,
			TABLE_COLUMNS_MAX);
		return NULL;
	}
	file->leaf = mem_grow(file->leaf, file->leaf_count + 1, sizeof *leaf);
	leaf = &file->leaf[file->leaf_count++];
	*leaf = el->leaf;
	leaf->path = arena_str(&file->arena, buf_str(&b->path));
	leaf->max_def = (uint8_t)at.def;
	leaf->max_rep = (uint8_t)at.rep;
	leaf->stored = file->stored_count++;
	return node;
}

/* The children of a group as members of node, keys and all. */
static struct parquet_node *members(struct schema_builder *b, struct parquet_node *node,
				    uint32_t children, struct schema_place at)
{
	struct parquet_node **link = &node->child;

	at.depth++;
	if (at.depth > JSON_DEPTH_MAX) {
		err_set(b->e, ERR_LIMIT, "%s: columns nest deeper than %d", b->file->name,
			JSON_DEPTH_MAX);
		return NULL;
	}
	for (uint32_t i = 0; i < children; i++) {
		*link = field(b, at);
		if (!*link)
			return NULL;
		link = &(*link)->next;
	}
	return node;
}

/* The item of a list, by the rules for older writers: the repeated field or its child. */
static bool is_wrapper(const struct schema_builder *b, const struct element *repeated)
{
	return repeated->children == 1 && !str_is(repeated->name, "array") &&
	       !str_ends(repeated->name, STR("_tuple")) &&
	       repeated->annotation == PLAIN_GROUP && b->at < b->count &&
	       b->element[b->at].repetition != REPEATED;
}

static struct parquet_node *list(struct schema_builder *b, const struct element *repeated,
				 bool may_wrap, struct schema_place at)
{
	struct parquet_node *node = new_node(b, SHAPE_LIST);

	node->filled = (uint8_t)++at.def;
	node->rep = (uint8_t)++at.rep;
	if (++at.depth > JSON_DEPTH_MAX) {
		err_set(b->e, ERR_LIMIT, "%s: columns nest deeper than %d", b->file->name,
			JSON_DEPTH_MAX);
		return NULL;
	}
	node->child = may_wrap && is_wrapper(b, repeated) ? field(b, at) :
							    content(b, repeated, at);
	return node->child ? node : NULL;
}

/* A map is an object when its keys are text, else a list of {"key", "value"}. */
static struct parquet_node *map(struct schema_builder *b, struct schema_place at)
{
	struct parquet_node *node = new_node(b, SHAPE_MAP);

	node->filled = (uint8_t)++at.def;
	node->rep = (uint8_t)++at.rep;
	at.depth++;
	if (!members(b, node, 2, at))
		return NULL;
	node->has_text_keys = node->child->shape == SHAPE_VALUE &&
			      b->file->leaf[node->child->first_leaf].meaning == MEANS_TEXT;
	node->child->key = STR("\"key\": ");
	node->child->next->key = STR("\"value\": ");
	return node;
}

/* An element's content when it is present; its levels are those of `at`. */
static struct parquet_node *content(struct schema_builder *b, const struct element *el,
				    struct schema_place at)
{
	const struct element *inner;

	if (el->has_type && el->children == 0)
		return value(b, el, at);
	if (el->has_type || el->children == 0) {
		err_set(b->e, ERR_PARSE, "%s: column \"%s\" has %s", b->file->name, b->path.data,
			el->has_type ? "a type and children" : "neither a type nor children");
		return NULL;
	}
	inner = b->at < b->count ? &b->element[b->at] : NULL;
	if (inner && el->annotation != PLAIN_GROUP && el->children == 1 &&
	    inner->repetition == REPEATED) {
		b->at++;
		if (el->annotation == AS_MAP && inner->children == 2 && !inner->has_type)
			return map(b, at);
		return list(b, inner, el->annotation == AS_LIST, at);
	}
	return members(b, new_node(b, SHAPE_OBJECT), el->children, at);
}

/* `"name": ` as JSON. */
static struct str key_of(struct schema_builder *b, struct str name)
{
	struct buf text = { 0 };

	json_quote(&text, name, true);
	buf_add_text(&text, ": ");
	return arena_take(&b->file->arena, &text);
}

/* Recursion ends: every second turn is a container, and those are limited in members and list. */
static struct parquet_node *field(struct schema_builder *b, struct schema_place at)
{
	const struct element *el = take(b);
	struct parquet_node *node;
	size_t path = b->path.len;
	uint8_t present = 0;

	if (!el)
		return NULL;
	if (path)
		buf_add_char(&b->path, '.');
	buf_add(&b->path, el->name.p, el->name.n < NAME_SHOWN ? el->name.n : NAME_SHOWN);
	if (el->repetition == OPTIONAL)
		present = (uint8_t)++at.def;
	node = el->repetition == REPEATED ? list(b, el, false, at) : content(b, el, at);
	b->path.len = path;
	if (b->path.data)
		b->path.data[path] = 0;
	if (!node)
		return NULL;
	node->present = present;
	node->leaf_count = b->file->leaf_count - node->first_leaf;
	if (node->key.n == 0)
		node->key = key_of(b, el->name);
	return node;
}

/* Skips an element and all below it. */
static int skip_field(struct schema_builder *b)
{
	for (uint64_t pending = 1; pending; pending--) {
		const struct element *el = take(b);

		if (!el)
			return -1;
		pending += el->children;
		b->file->stored_count += el->children == 0;
	}
	return 0;
}

static bool is_wanted(const char *const *columns, struct str name)
{
	if (!columns)
		return true;
	for (; *columns; columns++)
		if (str_is(name, *columns))
			return true;
	return false;
}

static int build(struct schema_builder *b, const char *const *columns)
{
	const struct element *root = take(b);
	struct parquet_node **link = &b->file->top;

	if (!root)
		return -1;
	if (root->has_type)
		return err_set(b->e, ERR_PARSE, "%s: the schema's root has a type",
			       b->file->name);
	for (uint32_t i = 0; i < root->children; i++) {
		if (b->at < b->count && !is_wanted(columns, b->element[b->at].name)) {
			if (skip_field(b) < 0)
				return -1;
			continue;
		}
		*link = field(b, (struct schema_place){ .depth = 1 });
		if (!*link)
			return -1;
		link = &(*link)->next;
	}
	if (b->file->stored_count > TABLE_COLUMNS_MAX)
		return err_set(b->e, ERR_LIMIT, "%s: more than %d columns", b->file->name,
			       TABLE_COLUMNS_MAX);
	if (b->at != b->count)
		return err_set(b->e, ERR_PARSE, "%s: the schema has %u elements, its tree %u",
			       b->file->name, b->count, b->at);
	return 0;
}

/* Reads the list that is field f of t; fills f's leaves and top. -1 with e set, see there. */
static int parquet_schema_read(struct parquet_file *file, struct thrift *t,
			       const struct thrift_field *f, const char *const *columns,
			       struct err *e)
{
	struct schema_builder b = { .file = file, .e = e };
	struct thrift_field item;
	size_t count = thrift_list(t, f, &item);
	struct element *element;
	int rc = 0;

	if (count > ELEMENTS_MAX)
		return err_set(e, ERR_LIMIT, "%s: a schema of %zu elements; the limit is %d",
			       file->name, count, ELEMENTS_MAX);
	element = mem_array(count, sizeof *element);
	for (size_t i = 0; i < count && rc == 0 && !t->is_bad; i++)
		rc = read_element(file, t, &item, &element[i], e);
	b.element = element;
	b.count = (uint32_t)count;
	if (rc == 0 && !t->is_bad)
		rc = build(&b, columns);
	buf_release(&b.path);
	free(element);
	return rc;
}

/* ---- the footer ---- */

#define MAGIC "PAR1"
#define TAIL_BYTES 8 /* the footer's size and the magic again */

/* What grows while row groups are read: how much there is room for. */
struct parquet_reader {
	struct parquet_file *f;
	struct thrift t;
	size_t group_room, chunk_room;
	uint64_t footer; /* where it begins: after all pages */
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
		return err_set(e, ERR_PARSE, "%s: byte 0: not a Parquet file, because it does not "
					     "begin with "
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

/* The needed part of ColumnMetaData; -1: absent. */
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

static int bad_chunk(const struct parquet_reader *r, const struct parquet_leaf *leaf,
		     const char *what)
{
	return err_set(r->e, ERR_PARSE, "%s: column \"%s\", row group %u: %s", r->f->name,
		       leaf->path.p, r->f->group_count, what);
}

static int check_chunk(const struct parquet_reader *r, const struct parquet_leaf *leaf,
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

static int read_chunks(struct parquet_reader *r, const struct thrift_field *f)
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

static int add_group(struct parquet_reader *r, int64_t rows)
{
	struct parquet_file *f = r->f;

	if (rows < 0)
		return err_set(r->e, ERR_PARSE, "%s: row group %u has %lld rows", f->name,
			       f->group_count, (long long)rows);
	if ((uint64_t)rows > TABLE_ROWS_MAX || f->rows + (uint64_t)rows > TABLE_ROWS_MAX)
		return err_set(r->e, ERR_LIMIT, "%s: more than %llu rows", f->name,
			       TABLE_ROWS_MAX);
	/* Callers allocate for each row, so a few bytes may not claim a billion. */
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

static int read_group(struct parquet_reader *r, const struct thrift_field *outer)
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

static int read_groups(struct parquet_reader *r, const struct thrift_field *f)
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

/* FileMetaData; the schema must precede the groups, as every writer writes it. */
static int read_footer(struct parquet_reader *r, const char *const *columns)
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
	struct parquet_reader r = { .f = f, .e = e };
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
