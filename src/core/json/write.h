/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h - JSON out, spelled as Python's json.dumps spells it.
 *
 * Separators ", " and ": "; every character outside 0x20..0x7e is escaped (\uXXXX lower-case hex,
 * surrogate pairs, short forms for \n \r \t \b \f \" \\); floats as repr(). The writer places
 * commas itself; pairing begin/end is asserted.
 *
 * The output is strict JSON (RFC 8259), which has no NaN and no Infinity: a number that is not
 * finite is written as null, an infinite setting as the text "inf", as in vLLM. is_python is for
 * files that only Python or this program reads.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/json/read.h"

struct json_writer {
	struct buf *out;
	unsigned depth;
	bool has_item[JSON_DEPTH_MAX];
	bool is_object[JSON_DEPTH_MAX];
	bool is_after_key;
	bool is_compact;   /* separators "," and ":" */
	bool is_raw_utf8;  /* ensure_ascii=False: valid UTF-8 passes through */
	bool is_python;    /* NaN, Infinity and -Infinity are written as such */
	unsigned indent;   /* spaces per level; 0 = one line */
};

struct json_writer json_writer(struct buf *out);
void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_key_str(struct json_writer *w, struct str key);
void json_put_null(struct json_writer *w);
void json_put_bool(struct json_writer *w, bool v);
void json_put_int(struct json_writer *w, int64_t v);
void json_put_f64(struct json_writer *w, double v);
void json_put_setting(struct json_writer *w, double v); /* "inf", "-inf"; json_setting reads it */
void json_put_str(struct json_writer *w, struct str text); /* broken UTF-8 becomes U+FFFD */
void json_put_text(struct json_writer *w, const char *text); /* NULL gives null */
void json_put_raw(struct json_writer *w, struct str json);  /* one value already spelled out */
/* A value spelled by another program as JSON or Python's; non-finite numbers become settings. */
void json_put_foreign(struct json_writer *w, struct str json);
void json_put_value(struct json_writer *w, const struct json_value *v); /* NULL gives null */

/* Members: a key with what the json_put_ function of the same name writes. */
void json_member_null(struct json_writer *w, const char *key);
void json_member_bool(struct json_writer *w, const char *key, bool v);
void json_member_int(struct json_writer *w, const char *key, int64_t v);
void json_member_f64(struct json_writer *w, const char *key, double v);
void json_member_f64s(struct json_writer *w, const char *key, const double *v, size_t n);
void json_member_setting(struct json_writer *w, const char *key, double v);
void json_member_str(struct json_writer *w, const char *key, struct str text);
void json_member_text(struct json_writer *w, const char *key, const char *text);
void json_member_texts(struct json_writer *w, const char *key, const char *const *v);
void json_member_raw(struct json_writer *w, const char *key, struct str json);
void json_member_foreign(struct json_writer *w, const char *key, struct str json);
void json_member_value(struct json_writer *w, const char *key, const struct json_value *v);
/* A member that is an object or a list; its end is json_end_object or json_end_array. */
void json_member_object(struct json_writer *w, const char *key);
void json_member_array(struct json_writer *w, const char *key);
/* Members written by a writer with the same separators, without their braces. */
void json_put_members_raw(struct json_writer *w, struct str members);
/* All members of an object that is already JSON text; writes nothing for any other text. */
void json_put_members(struct json_writer *w, struct str object);

/* Only the quoted, escaped string. */
void json_quote(struct buf *out, struct str text, bool is_raw_utf8);
