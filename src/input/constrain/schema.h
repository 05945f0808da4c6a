/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - JSON Schema compiled to a graph of nodes, and values judged by it.
 *
 * Drafts 2020-12, 7 and 6 (as 7), chosen by $schema of each resource; 2020-12 where it is absent.
 * One node is one schema object or boolean; a $ref is an edge, so the graph may have cycles. All
 * of it lives in one arena and is read-only once compiled. References are resolved inside the
 * schema only: by its $id, $anchor and $dynamicAnchor names and JSON pointers, and to the
 * metaschemas of these drafts, which mean "is a schema" and are not read as schemas.
 *
 * Keywords that are not known are annotations, as the drafts say.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/constrain/syntax.h"

/*
 * Numbers as they are written, compared without rounding.
 *
 * A struct decimal is a view of a JSON number's spelling, which has to outlive it. Its value is
 * 0.d1d2d3... times ten to the power, where d1 is the first and dn the last digit that is not 0.
 * Powers beyond DECIMAL_POWER_MAX count as that.
 */
#define DECIMAL_POWER_MAX (1ll << 40)
#define DECIMAL_DIVISOR_DIGITS_MAX 18 /* digits of a multipleOf, so that it fits 64 bits */

struct decimal {
	struct str digits; /* from the first to the last that counts; may hold the point */
	int64_t power;
	uint32_t count;    /* of digits; 0: the number is zero */
	bool is_negative;
};

struct decimal decimal_of(struct str number); /* a spelling the JSON reader accepted; finite */
int decimal_compare(struct decimal a, struct decimal b); /* negative, 0, positive */
bool decimal_is_integer(struct decimal d);
/* The digits as a number, for at most DECIMAL_DIVISOR_DIGITS_MAX of them. */
uint64_t decimal_digits(struct decimal d);

/*
 * The formats of JSON Schema that can be asserted.
 *
 * date-time, date, time (RFC 3339), duration (its appendix A), email (RFC 5321), hostname (RFC
 * 1123), ipv4 (RFC 2673), ipv6 (RFC 4291), uri and uri-reference (RFC 3986), uri-template (RFC
 * 6570), uuid (RFC 4122), json-pointer (RFC 6901), relative-json-pointer. Which letters an
 * international host name (xn--...) encodes is not looked at.
 */
struct format;

const struct format *format_find(struct str name); /* NULL: not one of these */
bool format_holds(const struct format *f, struct str text);
const char *format_example(const struct format *f); /* an example text */

/* JSON values as JSON Schema compares them: numbers by value, objects without order. */
int64_t value_length(struct str text); /* code points; the reader has made it valid UTF-8 */
bool value_has_repeats(const struct json_value *array);
/* A member by a key that may hold any bytes; NULL when v is not an object or has none. */
struct json_value *value_member(const struct json_value *v, struct str key);
static inline bool value_is_number(const struct json_value *v)
{
	return v->kind == JSON_INT || v->kind == JSON_REAL;
}

/*
 * References of a schema to names inside it (RFC 3986, section 5).
 *
 * Nothing is fetched; a URI is a name here.
 */
/* The part before the first #, and what follows it; no #: all of it and an empty one. */
struct str uri_without_fragment(struct str uri, struct str *fragment);
/* What a reference means inside a document of that URI; neither has a fragment. In the arena. */
struct str uri_resolve(struct arena *a, struct str base, struct str reference);
struct str uri_decoded(struct arena *a, struct str text); /* %41 is A */

#define SCHEMA_BYTES_MAX (4u << 20)
#define SCHEMA_NODES_MAX 100000    /* schemas in one schema */
#define SCHEMA_STEPS_MAX 5000000   /* schemas asked for one value: references may multiply */
#define SCHEMA_DEPTH_MAX 1000      /* of them within each other: references may go round */

enum schema_draft { DRAFT_7 = 1, DRAFT_2020 = 2 };

struct schema_node;
struct schema_list { struct schema_node **item; size_t count; };
struct schema_resource {
	struct str uri;
	struct json_value *root;
	enum schema_draft draft;
	struct map dynamic; /* $dynamicAnchor: its node */
	struct schema_resource *next;
};
struct schema_pattern { struct str text; struct pattern *pattern; struct schema_node *node; };
struct schema_needs { struct str key; struct str *name; size_t count; };

/* What a keyword lacks is NULL, an empty list, or -1 for counts. */
struct schema_node {
	bool is_boolean, allows;          /* the schemas true and false */
	enum schema_draft metaschema;     /* asks whether the value is a schema of this draft */
	struct schema_resource *resource;
	struct schema_node *ref, *dynamic_ref;
	struct str dynamic_name;          /* empty: $dynamicRef is a plain reference */
	unsigned types;                   /* bit 1 << json_kind, TYPE_INTEGER; 0: any */
	const struct json_value *enums, *constant;
	struct decimal *minimum, *maximum, *above, *below, *multiple_of;
	int64_t min_length, max_length, min_items, max_items, min_contains, max_contains;
	int64_t min_properties, max_properties;
	struct pattern *pattern;
	struct str pattern_text;
	const struct format *format;
	bool has_unique_items;
	struct schema_list prefix_items;
	struct schema_node *items, *contains, *unevaluated_items;
	struct map properties;            /* name: its node */
	struct str *property;             /* the names in their order */
	size_t property_count;
	struct schema_pattern *pattern_property;
	size_t pattern_count;
	struct schema_node *additional, *property_names, *unevaluated_properties;
	struct str *required;
	size_t required_count;
	struct schema_needs *needs;       /* dependentRequired */
	size_t needs_count;
	struct map dependents;            /* dependentSchemas: property, its node */
	struct schema_list all_of, any_of, one_of;
	struct schema_node *not_this, *if_this, *then_that, *else_that;
	struct schema_node *next;         /* all nodes of a schema, in no order */
};

#define TYPE_INTEGER (1u << 16)

struct schema {
	struct arena arena;
	struct schema_node *root, *nodes;
	struct schema_resource *resources;
	bool is_format_asserted;
	struct pattern **pattern;         /* all of them, to be released */
	size_t pattern_count, pattern_cap;
};

/* ERR_USAGE: a JSON pointer into the schema and what was expected there. */
struct schema *schema_new(struct str text, bool is_format_asserted, struct err *e);
void schema_free(struct schema *s);
/* Whether a value is a schema of that draft; references in it are not followed. */
bool schema_is_one(const struct json_value *v, enum schema_draft draft);

enum schema_answer { SCHEMA_BROKEN, SCHEMA_KEPT, SCHEMA_GAVE_UP };
/* why: for SCHEMA_BROKEN "POINTER KEYWORD", where the root is (root); else what was too much. */
enum schema_answer schema_judge(const struct schema *s, const struct json_value *v, char *why,
				size_t why_bytes);
/* Validates against one schema of it, without its surroundings. */
bool schema_node_holds(const struct schema *s, const struct schema_node *n,
		       const struct json_value *v);

/*
 * Appends the JSON text of one value, of about this many bytes where the schema leaves a choice. It
 * follows all keywords about what a value has, and retries for those about what it must not have;
 * the result has been validated. ERR_RUN: none was found in INVENT_TRIES_MAX.
 */
#define INVENT_TRIES_MAX 64
int schema_invent(const struct schema *s, struct dice *d, size_t bytes, struct buf *out,
		  struct err *e);
