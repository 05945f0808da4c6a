/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/document_put.c - values of a document: strict JSON, and nothing secret in it. */
#include "experiment/document_parts.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "engine/args.h"
#include "experiment/document.h"

#define SECRET_BYTES_MIN 6 /* shorter texts stand in others by chance */
#define HIDDEN "***"

/* ---- what is secret ---- */

/* Of "token_counts" and "key_heads" the first word says nothing, of HF_TOKEN_2 the one before 2. */
static bool is_secret_word(struct str word, bool is_last)
{
	static const char *const ends[] = {
		"secret", "secrets", "password", "passwd", "credential", "credentials",
		"authorization", "key", "token",
	};
	size_t n_ends = sizeof(ends) / sizeof(*ends);

	for (size_t i = 0; i < (is_last ? n_ends : n_ends - 2); i++) {
		size_t n = strlen(ends[i]);

		if (word.n >= n &&
		    str_eq_nocase((struct str){ word.p + word.n - n, n }, str_of(ends[i])))
			return true;
	}
	return false;
}

bool document_is_secret(struct str name)
{
	size_t at = 0;

	while (name.n && !isalpha((unsigned char)name.p[name.n - 1]))
		name.n--;
	while (at < name.n) {
		size_t end = at;

		while (end < name.n && isalnum((unsigned char)name.p[end]))
			end++;
		if (is_secret_word((struct str){ name.p + at, end - at }, end == name.n))
			return true;
		at = end + 1;
	}
	return false;
}

static bool is_secret_setting(const char *key)
{
	const struct engine_arg *arg;

	if (!key)
		return false;
	arg = engine_arg_find(str_of(key));
	return (arg && (arg->flags & ENGINE_SECRET)) || document_is_secret(str_of(key));
}

/* Lines "NAME=VALUE" and "NAME: VALUE" stand below these. */
static bool holds_lines(const char *key)
{
	return key && (strcmp(key, "header") == 0 || strcmp(key, "headers") == 0 ||
		       strcmp(key, "env") == 0);
}

static size_t line_name(struct str line)
{
	size_t n = 0;

	while (n < line.n && line.p[n] != '=' && line.p[n] != ':')
		n++;
	return n;
}

static void add_secret(struct document *d, struct str text)
{
	if (text.n >= SECRET_BYTES_MIN && !str_is(text, HIDDEN) &&
	    d->n_secrets < DOCUMENT_SECRETS_MAX)
		d->secret[d->n_secrets++] = text;
}

static void add_secret_line(struct document *d, struct str line)
{
	size_t n = line_name(line);
	struct str value;

	if (n == line.n || !document_is_secret((struct str){ line.p, n }))
		return;
	value = str_trim((struct str){ line.p + n + 1, line.n - n - 1 });
	add_secret(d, value);
	str_cut(&value, ' '); /* "Bearer abc": the part behind as well */
	add_secret(d, value);
}

static void find_in_tree(struct document *d, const struct json_value *v, const char *key)
{
	if (!v)
		return;
	if (v->kind == JSON_STRING && is_secret_setting(key))
		add_secret(d, v->text);
	else if (v->kind == JSON_STRING && holds_lines(key))
		add_secret_line(d, v->text);
	else if (v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			find_in_tree(d, &v->item[i], key);
	else if (v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++)
			find_in_tree(d, &v->item[i], v->key[i].p);
}

/* What an option's word is called: "--api-key=x" is api-key; empty: no option. */
static struct str word_name(const char *word)
{
	struct str name = str_of(word);

	if (name.n < 3 || name.p[0] != '-' || name.p[1] != '-')
		return STR("");
	name = (struct str){ name.p + 2, name.n - 2 };
	return str_cut(&name, '=');
}

static bool is_secret_option(struct document *d, const char *word)
{
	struct str name = word_name(word);

	return name.n && is_secret_setting(arena_text(&d->arena, name));
}

static void find_in_words(struct document *d, const char *const *words)
{
	for (; words && *words; words++) {
		const char *equals = strchr(*words, '=');

		if (!is_secret_option(d, *words))
			continue;
		if (equals)
			add_secret(d, str_of(equals + 1));
		else if (words[1])
			add_secret(d, str_of(words[1]));
	}
}

void document_find_secrets(struct document *d)
{
	const struct experiment *x = d->x;

	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];

		for (char *const *line = s->env; line && *line; line++)
			add_secret_line(d, str_of(*line));
		find_in_tree(d, s->args, NULL);
		find_in_tree(d, s->values, NULL);
		find_in_tree(d, s->container, NULL);
		find_in_words(d, (const char *const *)s->command);
		find_in_words(d, (const char *const *)s->extra_args);
		if (d->o->server)
			find_in_words(d, d->o->server[i].argv);
	}
	find_in_tree(d, x->benchmark, NULL);
	find_in_tree(d, x->given, NULL);
	find_in_words(d, (const char *const *)x->offline_argv);
}

/* ---- texts ---- */

static size_t secret_at(const struct document *d, struct str text)
{
	size_t longest = 0;

	for (size_t i = 0; i < d->n_secrets; i++)
		if (d->secret[i].n > longest && str_starts(text, d->secret[i]))
			longest = d->secret[i].n;
	return longest;
}

/* Without the secrets; text itself when it holds none. */
static struct str without_secrets(const struct document *d, struct str text, struct buf *room)
{
	bool has_one = false;

	for (size_t i = 0; i < d->n_secrets && !has_one; i++)
		has_one = text.n >= d->secret[i].n &&
			  memmem(text.p, text.n, d->secret[i].p, d->secret[i].n);
	if (!has_one)
		return text;
	while (text.n) {
		size_t n = secret_at(d, text);

		if (n)
			buf_add_text(room, HIDDEN);
		else
			buf_add_char(room, *text.p);
		text.p += n ? n : 1;
		text.n -= n ? n : 1;
	}
	return buf_str(room);
}

void document_put_str(struct document *d, struct str text)
{
	struct buf room = { 0 };

	json_put_str(&d->w, without_secrets(d, text, &room));
	buf_release(&room);
}

void document_put_text(struct document *d, const char *text)
{
	if (text)
		document_put_str(d, str_of(text));
	else
		json_put_null(&d->w);
}

/* How much of path is the folder that the document lies in; 0: it is not below that. */
static size_t folder_bytes(const struct document *d, const char *path)
{
	const char *own = d->x->output.path, *slash = own ? strrchr(own, '/') : NULL;
	size_t n = slash ? (size_t)(slash - own) + 1 : 0, m;
	char here[PATH_MAX];

	if (n && strncmp(path, own, n) == 0)
		return n;
	/* Folders of traces are absolute: servers are told them. */
	if (!own || own[0] == '/' || path[0] != '/' || !getcwd(here, sizeof(here)))
		return 0;
	m = strlen(here);
	m -= here[m - 1] == '/';
	if (strncmp(path, here, m) != 0 || path[m] != '/' || strncmp(path + m + 1, own, n) != 0)
		return 0;
	return m + 1 + n;
}

void document_put_path(struct document *d, const char *path)
{
	size_t n = path ? folder_bytes(d, path) : 0;

	document_put_text(d, path && path[n] ? path + n : path);
}

static void put_line(struct document *d, struct str line)
{
	size_t n = line_name(line);
	struct buf text = { 0 };

	if (n < line.n && document_is_secret((struct str){ line.p, n })) {
		buf_add(&text, line.p, n + 1);
		buf_add_text(&text, HIDDEN);
		json_put_str(&d->w, buf_str(&text));
		buf_release(&text);
	} else {
		document_put_str(d, line);
	}
}

void document_put_words(struct document *d, const char *const *words)
{
	bool is_hidden = false;

	json_begin_array(&d->w);
	for (; words && *words; words++) {
		const char *equals = strchr(*words, '=');
		bool is_secret = is_secret_option(d, *words);
		struct buf text = { 0 };

		if (is_hidden) {
			json_put_text(&d->w, HIDDEN);
		} else if (is_secret && equals) {
			buf_add(&text, *words, (size_t)(equals - *words) + 1);
			buf_add_text(&text, HIDDEN);
			json_put_str(&d->w, buf_str(&text));
		} else {
			document_put_text(d, *words);
		}
		is_hidden = is_secret && !equals && !is_hidden;
		buf_release(&text);
	}
	json_end_array(&d->w);
}

static bool is_set_again(char *const *lines, struct str name)
{
	for (; *lines; lines++)
		if (str_starts(str_of(*lines), name) && (*lines)[name.n] == '=')
			return true;
	return false;
}

void document_put_env(struct document *d, char *const *lines)
{
	json_begin_object(&d->w);
	for (; lines && *lines; lines++) {
		struct str value = str_of(*lines), name = str_cut(&value, '=');

		if (is_set_again(lines + 1, name))
			continue;
		json_key_str(&d->w, name);
		if (document_is_secret(name))
			json_put_text(&d->w, HIDDEN);
		else
			document_put_str(d, value);
	}
	json_end_object(&d->w);
}

/* ---- values ---- */

void document_put_number(struct document *d, double v)
{
	if (isfinite(v))
		json_put_f64(&d->w, v);
	else
		json_put_null(&d->w);
}

static void put_real(struct document *d, const struct json_value *v, enum document_numbers numbers)
{
	if (isfinite(v->real))
		json_put_value(&d->w, v);
	else if (isinf(v->real) && numbers == DOCUMENT_INF)
		json_put_text(&d->w, v->real > 0 ? "inf" : "-inf");
	else
		json_put_null(&d->w);
}

void document_put(struct document *d, const struct json_value *v, const char *key,
		  enum document_numbers numbers)
{
	if (!v)
		json_put_null(&d->w);
	else if (v->kind == JSON_REAL)
		put_real(d, v, numbers);
	else if (v->kind == JSON_STRING && is_secret_setting(key))
		json_put_text(&d->w, HIDDEN);
	else if (v->kind == JSON_STRING && holds_lines(key))
		put_line(d, v->text);
	else if (v->kind == JSON_STRING)
		document_put_str(d, v->text);
	else if (v->kind == JSON_ARRAY) {
		json_begin_array(&d->w);
		for (size_t i = 0; i < v->count; i++)
			document_put(d, &v->item[i], key, numbers);
		json_end_array(&d->w);
	} else if (v->kind == JSON_OBJECT) {
		json_begin_object(&d->w);
		document_put_members(d, v, NULL, numbers);
		json_end_object(&d->w);
	} else {
		json_put_value(&d->w, v);
	}
}

static bool is_among(struct str key, const char *const *names)
{
	for (; names && *names; names++)
		if (str_is(key, *names))
			return true;
	return false;
}

void document_put_members(struct document *d, const struct json_value *object,
			  const char *const *but, enum document_numbers numbers)
{
	if (!object || object->kind != JSON_OBJECT)
		return;
	for (size_t i = 0; i < object->count; i++) {
		if (is_among(object->key[i], but))
			continue;
		json_key_str(&d->w, object->key[i]);
		document_put(d, &object->item[i], object->key[i].p, numbers);
	}
}
