/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c - see shell.h. */
#include "experiment/shell.h"

#include <string.h>

#include "base/redact.h"
#include "base/str.h"
#include "json/write.h"
#include "opt/opt.h"

void shell_words(struct buf *out, char *const *argv)
{
	struct arena arena = { 0 };
	char **shown = redact_words(argv, &arena);

	for (size_t i = 0; shown[i]; i++) {
		buf_add_text(out, i ? " " : "");
		words_quote(out, str_of(shown[i]));
	}
	arena_release(&arena);
}

void shell_env(struct buf *out, char *const *env)
{
	for (size_t i = 0; env && env[i]; i++) {
		struct buf room = { 0 };
		struct str value = redact_line(str_of(env[i]), &room), name = str_cut(&value, '=');

		buf_add_text(out, i ? " " : "");
		buf_add_str(out, name);
		buf_add_char(out, '=');
		words_quote(out, value);
		buf_release(&room);
	}
}

/* ---- benchmarks ---- */

static void add_value(struct buf *out, const struct json_value *v)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	w.is_raw_utf8 = w.is_python = true;
	if (v->kind == JSON_STRING)
		buf_add_str(&text, v->text);
	else
		json_put_value(&w, v);
	buf_add_char(out, ' ');
	words_quote(out, buf_str(&text));
	buf_release(&text);
}

static void add_option(struct buf *out, const struct opt *row, const struct json_value *v)
{
	bool is_off = v->kind == JSON_FALSE;

	if (v->kind == JSON_NULL || (is_off && row->kind != OPT_TRI))
		return;
	buf_printf(out, " --%s%s", is_off ? "no-" : "", row->name);
	if (v->kind == JSON_FALSE || v->kind == JSON_TRUE)
		return;
	if (row->flags & OPT_SECRET || redact_is_secret(str_of(row->name)))
		buf_add_text(out, " '" REDACTED "'");
	else if (v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			add_value(out, &v->item[i]);
	else
		add_value(out, v);
}

static const struct json_value *value_of(const struct json_value *options, const char *name)
{
	for (size_t i = 0; options && options->kind == JSON_OBJECT && i < options->count; i++) {
		struct str key = options->key[i];
		size_t k = 0;

		while (k < key.n && name[k] && (key.p[k] == name[k] ||
						(key.p[k] == '_' && name[k] == '-')))
			k++;
		if (k == key.n && !name[k])
			return &options->item[i];
	}
	return NULL;
}

static void add_given(struct buf *out, const struct opt_set *set, const struct opt_result *given,
		      const struct json_value *options)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];
		bool is_own = set == &multi_turn_opt_set && strcmp(row->name, "request-rate") == 0;
		const struct json_value *v = value_of(options, is_own ? "client-request-rate" :
						      row->name);

		if (v && !row->alias_of && opt_given(set, given, row->name))
			add_option(out, row, v);
	}
}

void shell_benchmark(struct buf *out, const struct experiment *x, const char *url)
{
	bool has_turns = x->mode == MODE_MULTI_TURN;

	buf_printf(out, "%s bench %s", x->mode >= MODE_PRIORITIZATION ? "profllm" : "vllm",
		   x->mode == MODE_STRUCTURED ? experiment_mode_name(MODE_SERVE) :
		   experiment_mode_name(x->mode));
	if (!mode_is_served(x->mode)) {
		if (x->offline_argv && *x->offline_argv) {
			buf_add_char(out, ' ');
			shell_words(out, x->offline_argv);
		}
		return;
	}
	if (url) {
		buf_add_text(out, has_turns ? " --url " : " --base-url ");
		words_quote(out, str_of(url));
	}
	if (has_turns)
		add_given(out, &multi_turn_opt_set, &x->turns_given, x->benchmark);
	add_given(out, &serve_opt_set, &x->serve_given, x->benchmark);
}
