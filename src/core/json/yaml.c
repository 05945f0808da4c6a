/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - see yaml.h; libyaml parses the text, this file decides what scalars mean. */
#include "core/json/yaml.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/marks.h"

/* The functions used, loaded on first use. */
#define YAML_CALLS(X) X(yaml_document_delete) X(yaml_document_get_node) \
	X(yaml_document_get_root_node) X(yaml_event_delete) X(yaml_parser_delete) \
	X(yaml_parser_initialize) X(yaml_parser_load) X(yaml_parser_parse) X(yaml_parser_scan) \
	X(yaml_parser_set_input_string) X(yaml_token_delete)
LIBRARY(lib, YAML_CALLS, "libyaml-0.so.2", "libyaml-0-2");

struct yaml_reading {
	yaml_document_t document;
	struct arena *a;
	struct err *e;
	size_t values;
	const char *file;         /* with marks, duplicate keys are mistakes */
	struct json_marks *marks; /* NULL: positions are not recorded */
};

/* ---- words without quotes ---- */

static bool is_one_of(struct str s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, str_of(list[i])))
			return true;
	return false;
}

static bool is_word(struct str s, enum json_kind *kind)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	static const char *const yes[] = {
		"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON",
	};
	static const char *const no[] = {
		"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
	};

	if (is_one_of(s, nulls, sizeof(nulls) / sizeof(*nulls)))
		*kind = JSON_NULL;
	else if (is_one_of(s, yes, sizeof(yes) / sizeof(*yes)))
		*kind = JSON_TRUE;
	else if (is_one_of(s, no, sizeof(no) / sizeof(*no)))
		*kind = JSON_FALSE;
	else
		return false;
	return true;
}

/* Digits of the base with "_" among them, without those; false: something else is in it. */
static bool plain_digits(struct str s, int base, char out[static 80])
{
	size_t n = 0;

	for (size_t i = 0; i < s.n && n < 79; i++) {
		static const char known[] = "0123456789abcdef";
		char c = (char)tolower((unsigned char)s.p[i]);

		if (c == '_')
			continue;
		if (!memchr(known, c, (size_t)base))
			return false;
		out[n++] = c;
	}
	out[n] = 0;
	return n > 0 && n < 79;
}

/* 12, -1_000, 0x1f, 0b11, 017 (octal), 1:30 (sixty times one and thirty). */
static bool is_integer(struct str s, int64_t *out)
{
	bool is_negative = s.n && s.p[0] == '-';
	char digits[80], *end;
	size_t longest;
	int base = 10;
	int64_t v = 0;

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = (struct str){ s.p + 1, s.n - 1 };
	if (s.n == 0 || !isdigit((unsigned char)s.p[0]))
		return false;
	if (memchr(s.p, ':', s.n)) {
		for (struct str rest = s; rest.n;) {
			struct str part = str_cut(&rest, ':');
			int64_t one;

			if (!plain_digits(part, 10, digits) || strlen(digits) > 9 ||
			    !str_to_i64(str_of(digits), &one) || v > INT64_MAX / 61 ||
			    (part.p != s.p && one > 59))
				return false;
			v = v * 60 + one;
		}
		if (s.p[0] == '0' || s.p[s.n - 1] == ':')
			return false;
		*out = is_negative ? -v : v;
		return true;
	}
	if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'b')) {
		base = s.p[1] == 'x' ? 16 : 2;
		s = (struct str){ s.p + 2, s.n - 2 };
	} else if (s.n > 1 && s.p[0] == '0') {
		base = 8;
	}
	longest = base == 2 ? 62 : base == 10 ? 18 : 15;
	if (!plain_digits(s, base, digits) || strlen(digits) > longest)
		return false;
	v = strtoll(digits, &end, base);
	*out = is_negative ? -v : v;
	return true;
}

/* A point must be there, and a sign after the "e": 1e5 is a text. */
static bool is_real(struct str s, double *out)
{
	struct str plain = s;
	char text[80];
	size_t n = 0;
	const char *e;

	if (plain.n && (plain.p[0] == '-' || plain.p[0] == '+'))
		plain = (struct str){ plain.p + 1, plain.n - 1 };
	if (str_is(plain, ".inf") || str_is(plain, ".Inf") || str_is(plain, ".INF")) {
		*out = s.p[0] == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (str_is(s, ".nan") || str_is(s, ".NaN") || str_is(s, ".NAN")) {
		*out = NAN;
		return true;
	}
	if (plain.n < 2 || !memchr(plain.p, '.', plain.n) ||
	    !(isdigit((unsigned char)plain.p[0]) ||
	      (plain.p[0] == '.' && isdigit((unsigned char)plain.p[1]))))
		return false;
	e = memchr(plain.p, 'e', plain.n);
	if (!e)
		e = memchr(plain.p, 'E', plain.n);
	if (e && (e + 2 >= plain.p + plain.n || (e[1] != '+' && e[1] != '-')))
		return false;
	for (size_t i = 0; i < s.n && n < 79; i++)
		if (s.p[i] != '_')
			text[n++] = s.p[i];
	return n < 79 && str_to_f64((struct str){ text, n }, out);
}

static void read_plain(struct yaml_reading *r, struct str s, struct json_value *out)
{
	char text[FMT_F64_BYTES];

	if (is_word(s, &out->kind)) {
		if (out->kind != JSON_NULL)
			out->raw = arena_str(r->a, s);
		return;
	}
	if (is_integer(s, &out->integer)) {
		out->kind = JSON_INT;
		out->raw = str_of(arena_printf(r->a, "%lld", (long long)out->integer));
	} else if (is_real(s, &out->real)) {
		out->kind = JSON_REAL;
		out->raw = str_of(isnan(out->real) ? "NaN" : isinf(out->real) ?
				  out->real < 0 ? "-Infinity" : "Infinity" :
				  arena_printf(r->a, "%s", fmt_f64(text, out->real)));
	} else {
		out->kind = JSON_STRING;
		out->text = arena_str(r->a, s);
	}
}

/* ---- nodes ---- */

#define TEXT_OF(limit) TEXT_OF_(limit)
#define TEXT_OF_(limit) #limit
#define TOO_MANY "more than " TEXT_OF(YAML_VALUES_MAX) " values (YAML_VALUES_MAX)"
#define TOO_DEEP "nested deeper than " TEXT_OF(JSON_DEPTH_MAX) " levels (JSON_DEPTH_MAX)"

static int fail_as(const struct yaml_reading *r, enum err_code code, const yaml_mark_t *at,
		   const char *what)
{
	if (r->marks)
		return err_set(r->e, code, "%zu:%zu: %s", at->line + 1, at->column + 1, what);
	return err_set(r->e, code, "line %zu, column %zu: %s", at->line + 1, at->column + 1, what);
}

static int fail(const struct yaml_reading *r, const yaml_mark_t *at, const char *what)
{
	return fail_as(r, ERR_PARSE, at, what);
}

static struct str scalar_of(const yaml_node_t *node)
{
	return (struct str){ (const char *)node->data.scalar.value, node->data.scalar.length };
}

/* Tags that libyaml gives to untagged values, and explicit ones with the same meaning. */
static bool has_plain_tag(const yaml_node_t *node)
{
	const char *tag = (const char *)node->tag;

	return !tag || strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, YAML_SEQ_TAG) == 0 ||
	       strcmp(tag, YAML_MAP_TAG) == 0;
}

static int convert(struct yaml_reading *r, int id, const yaml_node_t *key, unsigned depth,
		   struct json_value *out);

static int read_list(struct yaml_reading *r, const yaml_node_t *node, unsigned depth,
		     struct json_value *out)
{
	const yaml_node_item_t *first = node->data.sequence.items.start;
	size_t n = (size_t)(node->data.sequence.items.top - first);

	out->kind = JSON_ARRAY;
	out->item = arena_alloc(r->a, (n + 1) * sizeof(*out->item));
	out->count = n;
	for (size_t i = 0; i < n; i++)
		if (convert(r, first[i], NULL, depth + 1, &out->item[i]) < 0)
			return -1;
	return 0;
}

static const yaml_node_t *node_of(struct yaml_reading *r, int id)
{
	return lib.yaml_document_get_node(&r->document, id);
}

/* The pairs of an object: its own, then merged ones whose keys it lacks. */
struct yaml_pairs {
	const yaml_node_pair_t **v;
	size_t n, cap;
	struct map seen;
};

static int refuse_twice(struct yaml_reading *r, const yaml_node_pair_t *first,
			const yaml_node_t *key)
{
	const yaml_mark_t *before = &node_of(r, first->key)->start_mark;
	struct str name = scalar_of(key);

	return err_set(r->e, ERR_PARSE, "%zu:%zu: the key '%.*s' appears twice; it is also at %zu:%zu",
		       key->start_mark.line + 1, key->start_mark.column + 1,
		       (int)(name.n < 80 ? name.n : 80), name.p, before->line + 1,
		       before->column + 1);
}

/* The last one of a name counts, as in Python; its place is the first one's. */
static int add_pair(struct yaml_reading *r, const yaml_node_pair_t *pair, bool is_merged,
		    struct yaml_pairs *to)
{
	const yaml_node_t *key = node_of(r, pair->key);
	uint64_t at;

	if (map_get(&to->seen, scalar_of(key), &at)) {
		if (!is_merged && r->marks)
			return refuse_twice(r, to->v[at], key);
		if (!is_merged)
			to->v[at] = pair;
		return 0;
	}
	to->v = mem_room(to->v, to->n, &to->cap, sizeof(*to->v));
	map_put(&to->seen, scalar_of(key), to->n);
	to->v[to->n++] = pair;
	return 0;
}

static bool is_merge_key(const yaml_node_t *key)
{
	return str_is(scalar_of(key), "<<") && key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int collect(struct yaml_reading *r, const yaml_node_t *node, unsigned merges,
		   struct yaml_pairs *to);

/* The value of a merge key: an object, or a list of them, the earlier ones taking precedence. */
static int merge(struct yaml_reading *r, const yaml_node_t *node, unsigned merges,
		 struct yaml_pairs *to)
{
	const yaml_node_item_t *first = node->data.sequence.items.start;
	bool is_list = node->type == YAML_SEQUENCE_NODE;
	size_t n = is_list ? (size_t)(node->data.sequence.items.top - first) : 1;

	for (size_t i = 0; i < n; i++) {
		const yaml_node_t *from = is_list ? node_of(r, first[i]) : node;

		if (from->type != YAML_MAPPING_NODE)
			return fail(r, &from->start_mark, "expected what << merges: *NAME of an object, "
				    "or a list of such");
		if (collect(r, from, merges + 1, to) < 0)
			return -1;
	}
	return 0;
}

/* merges: how many of them lead here. Each pair counts, so that merges of merges end. */
static int collect(struct yaml_reading *r, const yaml_node_t *node, unsigned merges,
		   struct yaml_pairs *to)
{
	const yaml_node_pair_t *first = node->data.mapping.pairs.start;
	size_t n = (size_t)(node->data.mapping.pairs.top - first);

	if (merges >= JSON_DEPTH_MAX)
		return fail_as(r, ERR_LIMIT, &node->start_mark, TOO_DEEP);
	r->values += merges ? n : 0;
	if (r->values > YAML_VALUES_MAX)
		return fail_as(r, ERR_LIMIT, &node->start_mark, TOO_MANY);
	for (size_t i = 0; i < n; i++) {
		const yaml_node_t *key = node_of(r, first[i].key);

		if (key->type != YAML_SCALAR_NODE)
			return fail(r, &key->start_mark, "a key that is not a text");
		if (!is_merge_key(key) && add_pair(r, &first[i], merges > 0, to) < 0)
			return -1;
	}
	for (size_t i = 0; i < n; i++)
		if (is_merge_key(node_of(r, first[i].key)) &&
		    merge(r, node_of(r, first[i].value), merges, to) < 0)
			return -1;
	return 0;
}

static int read_map(struct yaml_reading *r, const yaml_node_t *node, unsigned depth,
		    struct json_value *out)
{
	struct yaml_pairs pairs = { 0 };
	int rc = collect(r, node, 0, &pairs);

	out->kind = JSON_OBJECT;
	out->item = arena_alloc(r->a, (pairs.n + 1) * sizeof(*out->item));
	out->key = arena_alloc(r->a, (pairs.n + 1) * sizeof(*out->key));
	out->count = rc == 0 ? pairs.n : 0;
	for (size_t i = 0; i < out->count; i++)
		out->key[i] = arena_str(r->a, scalar_of(node_of(r, pairs.v[i]->key)));
	for (size_t i = 0; rc == 0 && i < out->count; i++)
		rc = convert(r, pairs.v[i]->value, node_of(r, pairs.v[i]->key), depth + 1,
			     &out->item[i]);
	map_release(&pairs.seen);
	free(pairs.v);
	return rc;
}

static void mark_value(struct yaml_reading *r, const yaml_node_t *node, const yaml_node_t *key,
		       const struct json_value *out)
{
	struct json_mark mark = {
		.file = r->file, .line = (unsigned)node->start_mark.line + 1,
		.column = (unsigned)node->start_mark.column + 1,
	};

	if (!r->marks)
		return;
	if (key) {
		mark.key_line = (unsigned)key->start_mark.line + 1;
		mark.key_column = (unsigned)key->start_mark.column + 1;
	}
	json_marks_put(r->marks, out, mark);
}

static int convert(struct yaml_reading *r, int id, const yaml_node_t *key, unsigned depth,
		   struct json_value *out)
{
	const yaml_node_t *node = lib.yaml_document_get_node(&r->document, id);

	if (depth >= JSON_DEPTH_MAX)
		return fail_as(r, ERR_LIMIT, &node->start_mark, TOO_DEEP);
	if (++r->values > YAML_VALUES_MAX)
		return fail_as(r, ERR_LIMIT, &node->start_mark, TOO_MANY);
	if (!has_plain_tag(node))
		return fail(r, &node->start_mark, "a tag that is not read here");
	mark_value(r, node, key, out);
	if (node->type == YAML_SEQUENCE_NODE)
		return read_list(r, node, depth, out);
	if (node->type == YAML_MAPPING_NODE)
		return read_map(r, node, depth, out);
	if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
		read_plain(r, scalar_of(node), out);
		return 0;
	}
	out->kind = JSON_STRING;
	out->text = arena_str(r->a, scalar_of(node));
	return 0;
}

/* For a tab libyaml only says that it cannot begin a token, and a value is "node content". */
static int parser_error(const struct yaml_reading *r, const yaml_parser_t *parser, struct str text)
{
	const yaml_mark_t *at = &parser->problem_mark;
	bool is_tab = at->index < text.n && text.p[at->index] == '\t';
	const char *what = is_tab ? "a tab; YAML is indented with blanks" :
		!parser->problem ? "no YAML" :
		str_is(str_of(parser->problem), "did not find expected node content") ?
		"expected a value" : parser->problem;

	if (parser->error == YAML_READER_ERROR) /* it has no mark */
		return err_set(r->e, ERR_PARSE, "%sbyte %zu: %s", r->marks ? "1:1: " : "",
			       parser->problem_offset, what);
	return fail(r, at, what);
}

static int open_parser(const struct yaml_reading *r, struct str text, yaml_parser_t *parser)
{
	if (library_open(&lib_library, r->e) < 0)
		return -1;
	if (!lib.yaml_parser_initialize(parser))
		return err_set(r->e, ERR_RUN, "YAML: out of memory");
	lib.yaml_parser_set_input_string(parser, (const unsigned char *)text.p, text.n);
	return 0;
}

/* Running totals over tokens: depth, and the items that libyaml keeps in lists. */
struct cost { size_t depth, anchors, directives; };

static int count_token(const struct yaml_reading *r, const yaml_token_t *token, struct cost *c)
{
	switch (token->type) {
	case YAML_BLOCK_SEQUENCE_START_TOKEN:
	case YAML_BLOCK_MAPPING_START_TOKEN:
	case YAML_FLOW_SEQUENCE_START_TOKEN:
	case YAML_FLOW_MAPPING_START_TOKEN:
		return ++c->depth > JSON_DEPTH_MAX ?
			fail_as(r, ERR_LIMIT, &token->start_mark, TOO_DEEP) : 0;
	case YAML_BLOCK_END_TOKEN:
	case YAML_FLOW_SEQUENCE_END_TOKEN:
	case YAML_FLOW_MAPPING_END_TOKEN:
		c->depth -= c->depth > 0; /* below 0: the parser reports the extra end */
		return 0;
	case YAML_ANCHOR_TOKEN:
		return ++c->anchors > YAML_ANCHORS_MAX ?
			fail_as(r, ERR_LIMIT, &token->start_mark, "more than "
				TEXT_OF(YAML_ANCHORS_MAX) " anchors (YAML_ANCHORS_MAX)") : 0;
	case YAML_VERSION_DIRECTIVE_TOKEN:
	case YAML_TAG_DIRECTIVE_TOKEN:
		return ++c->directives > YAML_DIRECTIVES_MAX ?
			fail_as(r, ERR_LIMIT, &token->start_mark, "more than "
				TEXT_OF(YAML_DIRECTIVES_MAX) " directives (YAML_DIRECTIVES_MAX)") : 0;
	default:
		return 0;
	}
}

/*
 * Refuses texts that would cost libyaml more than linear time, before loading them: each token
 * searches all open flow collections, each alias all anchors, each directive the earlier ones. Only
 * scans tokens, up to the first that exceeds a limit. Mistakes are left to the parser.
 */
static int check_cost(const struct yaml_reading *r, struct str text)
{
	bool is_over = false;
	struct cost cost = { 0 };
	yaml_parser_t parser;
	yaml_token_t token;
	int rc = 0;

	if (open_parser(r, text, &parser) < 0)
		return -1;
	while (rc == 0 && !is_over && lib.yaml_parser_scan(&parser, &token)) {
		is_over = token.type == YAML_STREAM_END_TOKEN;
		rc = count_token(r, &token, &cost);
		lib.yaml_token_delete(&token);
	}
	lib.yaml_parser_delete(&parser);
	return rc;
}

static int read_one(struct yaml_reading *r, yaml_parser_t *parser, struct str text,
		    struct json_value *out)
{
	const yaml_node_t *root;
	yaml_event_t next;
	int rc = 0;

	if (!lib.yaml_parser_load(parser, &r->document))
		return parser_error(r, parser, text);
	root = lib.yaml_document_get_root_node(&r->document);
	if (root)
		rc = convert(r, 1, NULL, 0, out);
	lib.yaml_document_delete(&r->document);
	if (rc < 0 || !root)
		return rc;
	if (!lib.yaml_parser_parse(parser, &next))
		return parser_error(r, parser, text);
	if (next.type != YAML_STREAM_END_EVENT)
		rc = fail(r, &next.start_mark, "a second document, where one is expected");
	lib.yaml_event_delete(&next);
	return rc;
}

static int parse(struct yaml_reading *r, struct str text, struct json_value **out)
{
	yaml_parser_t parser;
	int rc;

	*out = arena_alloc(r->a, sizeof(**out));
	if (check_cost(r, text) < 0 || open_parser(r, text, &parser) < 0)
		return -1;
	rc = read_one(r, &parser, text, *out);
	lib.yaml_parser_delete(&parser);
	return rc;
}

int yaml_parse(struct arena *a, struct str text, struct json_value **out, struct err *e)
{
	struct yaml_reading r = { .a = a, .e = e };

	return parse(&r, text, out);
}

int yaml_parse_marked(struct arena *a, struct str text, const char *file, struct json_marks *m,
		      struct json_value **out, struct err *e)
{
	struct yaml_reading r = { .a = a, .e = e, .file = file, .marks = m };

	return parse(&r, text, out);
}
