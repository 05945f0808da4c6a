/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/document_put.c - values of a document as strict JSON. */
#include "experiment/document_parts.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>


void document_put_str(struct document *d, struct str text)
{
	json_put_str(&d->w, text);
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

void document_put_words(struct document *d, const char *const *words)
{
	json_begin_array(&d->w);
	for (; words && *words; words++)
		document_put_text(d, *words);
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

void document_put(struct document *d, const struct json_value *v, enum document_numbers numbers)
{
	if (!v)
		json_put_null(&d->w);
	else if (v->kind == JSON_REAL)
		put_real(d, v, numbers);
	else if (v->kind == JSON_STRING)
		document_put_str(d, v->text);
	else if (v->kind == JSON_ARRAY) {
		json_begin_array(&d->w);
		for (size_t i = 0; i < v->count; i++)
			document_put(d, &v->item[i], numbers);
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
		document_put(d, &object->item[i], numbers);
	}
}
