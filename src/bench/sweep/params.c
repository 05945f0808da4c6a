/* SPDX-License-Identifier: Apache-2.0 */
/* params.c - see params.h: reading combinations, and what Python does with dicts. */
#include "bench/sweep/params.h"

#include <math.h>
#include <string.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/json/write.h"

static const char *python_type(const struct json_value *v)
{
	static const char *const names[] = {
		[JSON_NULL] = "NoneType", [JSON_FALSE] = "bool", [JSON_TRUE] = "bool",
		[JSON_INT] = "int", [JSON_REAL] = "float", [JSON_STRING] = "str",
		[JSON_ARRAY] = "list", [JSON_OBJECT] = "dict",
	};

	return names[v->kind];
}

/* ---- values ---- */

static bool is_number(const struct json_value *v)
{
	return v->kind == JSON_INT || v->kind == JSON_REAL || v->kind == JSON_TRUE ||
	       v->kind == JSON_FALSE;
}

/* Python compares an int with a float by their values, not by rounding the int. */
static bool same_number(const struct json_value *x, const struct json_value *y)
{
	double real = x->kind == JSON_REAL ? x->real : y->real;
	int64_t a = x->kind == JSON_INT ? x->integer : x->kind == JSON_TRUE;
	int64_t b = y->kind == JSON_INT ? y->integer : y->kind == JSON_TRUE;

	if (x->kind == JSON_REAL && y->kind == JSON_REAL)
		return x->real == y->real;
	if (x->kind != JSON_REAL && y->kind != JSON_REAL)
		return a == b;
	return real >= -9223372036854775808.0 && real < 9223372036854775808.0 &&
	       real == floor(real) &&
	       (int64_t)real == (x->kind == JSON_REAL ? b : a);
}

static bool same_items(const struct json_value *x, const struct json_value *y)
{
	if (x->count != y->count)
		return false;
	for (size_t i = 0; i < x->count; i++) {
		const struct json_value *other = &y->item[i];

		if (x->kind == JSON_OBJECT) {
			size_t k = 0;

			while (k < y->count && !str_eq(x->key[i], y->key[k]))
				k++;
			if (k == y->count)
				return false;
			other = &y->item[k];
		}
		if (!params_equal(&x->item[i], other))
			return false;
	}
	return true;
}

bool params_equal(const struct json_value *x, const struct json_value *y)
{
	if (is_number(x) && is_number(y))
		return same_number(x, y);
	if (x->kind != y->kind)
		return false;
	if (x->kind == JSON_STRING)
		return str_eq(x->text, y->text);
	return x->kind == JSON_NULL || same_items(x, y);
}

const struct json_value *params_or(const struct json_value *comb, const struct json_value *other,
				   struct arena *a)
{
	struct json_value *out = arena_alloc(a, sizeof(*out));
	size_t n = comb->count + other->count;

	out->kind = JSON_OBJECT;
	out->key = arena_alloc(a, (n ? n : 1) * sizeof(*out->key));
	out->item = arena_alloc(a, (n ? n : 1) * sizeof(*out->item));
	for (size_t i = 0; i < comb->count; i++) {
		out->key[i] = comb->key[i];
		out->item[i] = comb->item[i];
	}
	out->count = comb->count;
	for (size_t i = 0; i < other->count; i++) {
		size_t k = 0;

		while (k < out->count && !str_eq(out->key[k], other->key[i]))
			k++;
		out->key[k] = other->key[i];
		out->item[k] = other->item[i];
		out->count += k == out->count;
	}
	return out;
}

const struct json_value *params_filter(const struct json_value *comb,
				       bool (*keeps)(const void *self, struct str key),
				       const void *self, struct arena *a)
{
	struct json_value *out = arena_alloc(a, sizeof(*out));

	out->kind = JSON_OBJECT;
	out->key = arena_alloc(a, (comb->count + 1) * sizeof(*out->key));
	out->item = arena_alloc(a, (comb->count + 1) * sizeof(*out->item));
	for (size_t i = 0; i < comb->count; i++)
		if (keeps(self, comb->key[i])) {
			out->key[out->count] = comb->key[i];
			out->item[out->count++] = comb->item[i];
		}
	return out;
}

static const struct json_value *with(const struct json_value *comb, const char *key,
				     struct json_value value, struct arena *a)
{
	struct str name = arena_str(a, str_of(key));
	const struct json_value one = { .kind = JSON_OBJECT, .item = &value, .key = &name,
					.count = 1 };

	return params_or(comb, &one, a);
}

const struct json_value *params_with_int(const struct json_value *comb, const char *key,
					 int64_t value, struct arena *a)
{
	return with(comb, key, (struct json_value){ .kind = JSON_INT, .integer = value }, a);
}

const struct json_value *params_with_text(const struct json_value *comb, const char *key,
					  const char *value, struct arena *a)
{
	return with(comb, key, (struct json_value){ .kind = JSON_STRING,
						    .text = arena_str(a, str_of(value)) }, a);
}

/* ---- reading ---- */

/* {"name": {...}} is the list of the inner objects, each beginning with its name. */
static int named(const struct json_value *file, struct arena *a, struct params *out,
		 struct err *e)
{
	struct json_value *item = arena_alloc(a, (file->count + 1) * sizeof(*item));

	for (size_t i = 0; i < file->count; i++) {
		struct str *key = arena_alloc(a, sizeof(*key));
		struct json_value *name = arena_alloc(a, sizeof(*name));
		struct json_value head = { .kind = JSON_OBJECT, .item = name, .key = key,
					   .count = 1 };

		if (file->item[i].kind != JSON_OBJECT)
			return err_set(e, ERR_RUN, "'%s' object is not a mapping (%.*s)",
				       python_type(&file->item[i]), (int)file->key[i].n,
				       file->key[i].p);
		*key = STR(PARAMS_NAME_KEY);
		*name = (struct json_value){ .kind = JSON_STRING, .text = file->key[i] };
		item[i] = *params_or(&head, &file->item[i], a);
	}
	*out = (struct params){ item, file->count, NULL };
	return 0;
}

/* Refuses names that occur several times, listing each once, in order. */
static int refuse_equal_names(const struct params *p, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct json_value *x = json_get(&p->item[i], PARAMS_NAME_KEY);
		size_t before = 0, after = 0;

		for (size_t k = 0; x && k < p->n; k++) {
			const struct json_value *y = json_get(&p->item[k], PARAMS_NAME_KEY);
			bool is_same = y && k != i && params_equal(x, y);

			before += is_same && k < i;
			after += is_same && k > i;
		}
		if (before || !after)
			continue;
		buf_add_text(&text, text.len ? ", " : "");
		json_repr(&text, x);
	}
	if (text.len)
		rc = err_set(e, ERR_RUN, "Duplicate _benchmark_name values found: {%s}. "
			     "All _benchmark_name values must be unique.", text.data);
	buf_release(&text);
	return rc;
}

int params_parse(struct str text, struct arena *a, struct params *out, struct err *e)
{
	struct json_value *file;

	redact_learn_text(text);
	if (json_parse(a, text, &file, e) < 0)
		return -1;
	if (file->kind == JSON_OBJECT) {
		if (named(file, a, out, e) < 0)
			return -1;
	} else if (file->kind == JSON_ARRAY) {
		*out = (struct params){ file->item, file->count, NULL };
	} else {
		return err_set(e, ERR_RUN, "The parameter sweep should be a list of dictionaries, "
			       "but found type: <class '%s'>", python_type(file));
	}
	for (size_t i = 0; i < out->n; i++)
		if (out->item[i].kind != JSON_OBJECT)
			return err_set(e, ERR_RUN, "Each item in the parameter sweep should be a "
				       "dictionary, but found type: <class '%s'>",
				       python_type(&out->item[i]));
	for (size_t i = 0; i < out->n; i++)
		for (size_t k = 0; k < out->item[i].count; k++) {
			const struct json_value *v = &out->item[i].item[k];
			struct str key = out->item[i].key[k];

			if (memchr(key.p, 0, key.n) ||
			    (v->kind == JSON_STRING && memchr(v->text.p, 0, v->text.n)))
				return err_set(e, ERR_RUN, "a key or value with a zero byte cannot "
					       "be passed on a command line");
		}
	if (out->n > SWEEP_COMBINATIONS_MAX)
		return err_set(e, ERR_LIMIT, "%zu combinations are more than the %u of "
			       "SWEEP_COMBINATIONS_MAX", out->n, SWEEP_COMBINATIONS_MAX);
	return refuse_equal_names(out, e);
}

int params_load(const char *value, struct buf *out, struct err *e)
{
	struct str text = str_trim(str_of(value));

	if (text.n == 0 || (text.p[0] != '[' && text.p[0] != '{') || file_exists(value))
		return file_read(value, SWEEP_PARAMS_BYTES_MAX, out, e);
	buf_add_str(out, text);
	return 0;
}

/* Python's reader, and so upstream, uses the last value without a word. */
static const char *find_twice(struct str text, struct arena *a)
{
	struct json_value *v;
	struct err e = { 0 };

	return json_parse_strict(a, text, &v, &e) < 0 && strstr(e.text, "one key twice") ?
	       arena_printf(a, "%s", e.text) : NULL;
}

int params_read(const char *path, struct arena *a, struct params *out, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	if (!path || !*path) {
		struct json_value *empty = arena_alloc(a, sizeof(*empty));

		empty->kind = JSON_OBJECT;
		*out = (struct params){ empty, 1, NULL };
		return 0;
	}
	rc = params_load(path, &text, e);
	if (rc == 0) {
		rc = params_parse(buf_str(&text), a, out, e);
		if (rc < 0)
			err_wrap(e, "%.100s", path);
		else
			out->twice = find_twice(buf_str(&text), a);
	}
	buf_release(&text);
	return rc;
}

/* ---- on a command line ---- */

/* The spellings of a key in the order in which a command is searched for them. */
enum { DASHED, UNDERSCORED, AS_WRITTEN, SPELLINGS };

static char *spelled(struct str key, int how, struct arena *a)
{
	char *text = arena_printf(a, "--%.*s", (int)key.n, key.p);

	for (char *c = text + 2; how != AS_WRITTEN && *c && *c != '.'; c++)
		if (*c == '-' || *c == '_')
			*c = how == DASHED ? '-' : '_';
	return text;
}

bool params_has(const struct json_value *comb, const char *key)
{
	struct arena a = { 0 };
	bool is_there = false;

	for (int how = 0; how < SPELLINGS && !is_there; how++)
		is_there = json_get(comb, spelled(str_of(key), how, &a) + 2);
	arena_release(&a);
	return is_there;
}

/* What a key and its value become: one word when second is NULL. */
struct spelling { char *first, *second; };

static struct spelling as_words(struct str key, const struct json_value *v, struct arena *a)
{
	bool is_on = v->kind == JSON_TRUE, is_bool = is_on || v->kind == JSON_FALSE;
	struct buf text = { 0 };
	struct spelling out = { .first = spelled(key, DASHED, a) };

	if (is_bool && memchr(key.p, '.', key.n)) {
		out.first = arena_printf(a, "%s=%s", out.first, is_on ? "true" : "false");
	} else if (is_bool && !is_on) {
		out.first = arena_printf(a, "--no-%s", out.first + 2);
	} else if (!is_bool) {
		struct json_writer w = json_writer(&text);

		w.is_python = true; /* options read it again */
		if (v->kind == JSON_OBJECT)
			json_put_value(&w, v);
		else
			json_python_str(&text, v);
		out.second = arena_text(a, buf_str(&text));
	}
	buf_release(&text);
	return out;
}

/* Inserts before the word at `at`. */
static void insert(struct word_list *c, size_t at, char *word)
{
	words_add(c, word);
	memmove(c->v + at + 1, c->v + at, (c->n - 1 - at) * sizeof(*c->v));
	c->v[at] = word;
}

/* "--x", "-tp": an option and no value; "-1" and "-.5" are values. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

static void replace(struct word_list *c, size_t at, struct spelling w)
{
	c->v[at] = w.first;
	if (!w.second)
		return;
	if (at + 1 < c->n && !is_option(c->v[at + 1]))
		c->v[at + 1] = w.second;
	else
		insert(c, at + 1, w.second);
}

/* The word equal to name, or (has_value) beginning with name and "=". False: there is none. */
static bool find(const struct word_list *c, const char *name, bool has_value, size_t *at)
{
	size_t n = strlen(name);

	for (*at = 0; *at < c->n; ++*at)
		if (strncmp(c->v[*at], name, n) == 0 &&
		    c->v[*at][n] == (has_value ? '=' : 0))
			return true;
	return false;
}

static void put(struct word_list *c, struct str key, const struct json_value *v)
{
	struct spelling w = as_words(key, v, c->arena);
	size_t at;

	for (int how = 0; how < SPELLINGS; how++) {
		if (find(c, spelled(key, how, c->arena), false, &at)) {
			replace(c, at, w);
			return;
		}
	}
	for (int how = 0; how < SPELLINGS; how++) {
		if (find(c, spelled(key, how, c->arena), true, &at)) {
			c->v[at] = w.second ? arena_printf(c->arena, "%s=%s", w.first, w.second) :
				w.first;
			return;
		}
	}
	words_add(c, w.first);
	if (w.second)
		words_add(c, w.second);
}

char **params_apply(const struct json_value *comb, char *const *argv, struct arena *a)
{
	struct word_list c = { .arena = a };

	while (*argv)
		words_add(&c, *argv++);
	for (size_t i = 0; i < comb->count; i++)
		if (!str_is(comb->key[i], PARAMS_NAME_KEY))
			put(&c, comb->key[i], &comb->item[i]);
	return c.v ? c.v : arena_alloc(a, sizeof(*c.v));
}

#define HASH_DIGITS 16

void params_text(const struct json_value *comb, const char *sep, struct buf *out)
{
	bool is_first = true;

	for (size_t i = 0; i < comb->count; i++) {
		if (str_is(comb->key[i], PARAMS_NAME_KEY))
			continue;
		buf_add_text(out, is_first ? "" : sep);
		buf_add_str(out, comb->key[i]);
		buf_add_char(out, '=');
		json_python_str(out, &comb->item[i]);
		is_first = false;
	}
}

void params_name(const struct json_value *comb, struct buf *out)
{
	const struct json_value *name = json_get(comb, PARAMS_NAME_KEY);

	if (name)
		json_python_str(out, name);
	else
		params_text(comb, "-", out);
}

/* Python's s.strip(c). */
static struct str strip(struct str s, char c)
{
	while (s.n && s.p[0] == c)
		s = (struct str){ s.p + 1, s.n - 1 };
	while (s.n && s.p[s.n - 1] == c)
		s.n--;
	return s;
}

/* Applies upstream's changes to a name, and writes control characters as %XX. */
static void sanitize(struct str name, struct buf *out)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (c == '.' && i + 1 < name.n && name.p[i + 1] == '.') {
			buf_add_text(out, "__");
			i++;
		} else if ((unsigned char)c < 0x20 || c == 0x7f) {
			buf_printf(out, "%%%02X", (unsigned char)c);
		} else {
			buf_add_char(out, c == '/' ? '_' : c);
		}
	}
}

/* A valid file name, ending with the hash of the full one. */
static char *cut(struct str name, size_t bytes_max, struct arena *a)
{
	size_t n = bytes_max - HASH_DIGITS - 1;
	char hex[DIGEST_HEX];

	digest_hex(DIGEST_SHA256, name, hex);
	while (n && ((unsigned char)name.p[n] & 0xc0) == 0x80)
		n--; /* not within a character */
	return arena_printf(a, "%.*s~%.*s", (int)n, name.p, HASH_DIGITS, hex);
}

char *params_file_name_ending(struct str name, const char *ending, struct arena *a)
{
	size_t bytes_max = FILE_NAME_BYTES_MAX - strlen(ending);
	struct buf clean = { 0 }, hidden = { 0 };
	char *out, hex[DIGEST_HEX];
	struct str s, shown;

	shown = redact(name, &hidden);
	sanitize(shown, &clean);
	/* Two different secrets give two files, without showing the secrets. */
	if (shown.p != name.p) {
		digest_hex(DIGEST_SHA256, name, hex);
		buf_printf(&clean, "~%.*s", HASH_DIGITS, hex);
	}
	buf_release(&hidden);
	s = strip(strip(buf_str(&clean), '\''), '"');
	out = s.n > bytes_max ? cut(s, bytes_max, a) : arena_text(a, s);
	buf_release(&clean);
	return *ending ? arena_printf(a, "%s%s", out, ending) : out;
}

char *params_file_name(struct str name, struct arena *a)
{
	return params_file_name_ending(name, "", a);
}

static void add_part(struct buf *out, const char *part)
{
	buf_add_text(out, out->len ? "-" : "");
	buf_add_text(out, part);
}

static void add_side(struct buf *out, struct params_side side)
{
	if (side.comb->count == 0)
		return;
	add_part(out, side.word);
	buf_add_char(out, '-');
	params_name(side.comb, out);
}

char *params_folder(struct params_side first, struct params_side second, const char *const *extra,
		    struct arena *a)
{
	struct buf text = { 0 };
	char *out;

	add_side(&text, first);
	add_side(&text, second);
	for (; extra && *extra; extra++)
		add_part(&text, *extra);
	out = params_file_name(buf_str(&text), a);
	buf_release(&text);
	return out;
}

char *params_folder_single_dash(const struct json_value *serve, const struct json_value *bench,
				struct arena *a)
{
	struct buf text = { 0 };
	char *out;

	buf_add_text(&text, "SERVE-");
	params_text(serve, "-", &text);
	buf_add_text(&text, "-BENCH-");
	params_text(bench, "-", &text);
	out = params_file_name(buf_str(&text), a);
	buf_release(&text);
	return out;
}
